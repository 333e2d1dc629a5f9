//! How a server says that it recovers its array still.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A server whose array is recovered still.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recovering {
    /// Its process.
    pub pid: u32,
    /// For how long.
    pub seconds: u64,
}

impl fmt::Display for Recovering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, seconds } = self;
        write!(
            f,
            "the server of the array, process {pid}, has been recovering it for {seconds} s and does what it is asked for when that is \
             over; `stop` gives it up, and the next start recovers the array"
        )
    }
}
