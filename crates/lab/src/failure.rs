//! What a command reports when it could not do its work: one line, and the exit code.

use std::error::Error;
use std::fmt;

/// The command failed.
pub const EXIT_FAILED: u8 = 1;
/// The command line makes no sense.
pub const EXIT_MISUSED: u8 = 2;
/// `status` could not look at the array.
pub const EXIT_CANNOT_LOOK: u8 = 4;
/// What a shell adds to the number of the signal that ended a process.
const EXIT_SIGNAL: u8 = 128;

/// See the module's documentation.
#[derive(Debug)]
pub struct Failure {
    message: String,
    exit: u8,
}

impl Failure {
    /// A failure with this line and exit code 1.
    pub fn new(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), exit: EXIT_FAILED }
    }

    /// The same with another exit code.
    pub fn with_exit(self, exit: u8) -> Self {
        Self { exit, ..self }
    }

    /// The exit code.
    pub fn exit(&self) -> u8 {
        self.exit
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line, whatever an underlying library put in.
        f.write_str(&self.message.split('\n').map(str::trim).collect::<Vec<_>>().join(" "))
    }
}

/// The errors of the crates below say what is wrong themselves.
impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let failure = Self::new(&error);
        match (&error as &(dyn Error + 'static)).downcast_ref() {
            Some(node::error::Error::Interrupted { signal }) => failure.with_exit(EXIT_SIGNAL + signal),
            Some(_) | None => failure,
        }
    }
}
