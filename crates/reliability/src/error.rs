//! What cannot be computed, and why.

use std::fmt;

/// A parameter that makes no sense.
#[derive(Clone, PartialEq, Debug)]
pub struct Error {
    /// Which.
    pub what: &'static str,
    /// Its value.
    pub found: f64,
    /// What it must be.
    pub expected: &'static str,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: found {}, expected {}", self.what, self.found, self.expected)
    }
}

impl std::error::Error for Error {}

/// Fails unless `found` is fine.
pub fn check(what: &'static str, found: f64, fine: bool, expected: &'static str) -> Result<(), Error> {
    if fine && found.is_finite() { Ok(()) } else { Err(Error { what, found, expected }) }
}
