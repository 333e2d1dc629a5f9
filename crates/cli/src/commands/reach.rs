//! The server of an array, for commands that need one.

use lab::failure::Failure;
use node::called::members;
use node::control::Client;
use node::session::{Reach, server_of};
use std::path::PathBuf;

/// The array's server, which must be there.
pub fn server_that_runs(given: &[PathBuf]) -> Result<Client, Failure> {
    match server_of(&members(given)?)? {
        Reach::Server(client) => Ok(client),
        Reach::Copy(why) => Err(Failure::new(why)),
        Reach::Nobody => {
            let first = given.first().map_or_else(String::new, |path| path.display().to_string());
            Err(Failure::new(format!("{first}: its array is not being served, so nothing is under way")))
        }
    }
}
