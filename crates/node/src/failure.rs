//! What a command reports when it could not do its work: one line, and the exit code.
//!
//! Commands print nothing else on an error, so whoever reads the line must learn from it which file, device or option is
//! meant, what was found, what was expected and what to do.

use std::fmt;

/// The command failed.
pub const EXIT_FAILED: u8 = 1;
/// The command line makes no sense.
pub const EXIT_MISUSED: u8 = 2;
/// `status` could not look at the array.
pub const EXIT_CANNOT_LOOK: u8 = 4;

/// See the module's documentation.
#[derive(Debug)]
pub struct Failure {
    message: String,
    exit: u8,
    outcome: Outcome,
}

/// What became of the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// It was not done.
    NotDone,
    /// Whoever was asked to do it did not answer.
    Unknown,
}

impl Failure {
    /// A failure with this line and exit code 1.
    pub fn new(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), exit: EXIT_FAILED, outcome: Outcome::NotDone }
    }

    /// The same with another exit code.
    pub fn with_exit(self, exit: u8) -> Self {
        Self { exit, ..self }
    }

    /// The same, of work that may have been done all the same.
    pub fn with_unknown_outcome(self) -> Self {
        Self { outcome: Outcome::Unknown, ..self }
    }

    /// Whether the work may have been done all the same.
    pub fn may_have_been_done(&self) -> bool {
        self.outcome == Outcome::Unknown
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
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}
