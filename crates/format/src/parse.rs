//! What can be wrong with a text that names something of the format.

use thiserror::Error;

/// Why a text is not a name or an identity of this format.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ParseError {
    /// Not one of a fixed set of names.
    #[error("{what}: found {found:?}, expected {expected}")]
    Name {
        /// What the name stands for.
        what: &'static str,
        /// The text.
        found: String,
        /// The names.
        expected: &'static str,
    },
    /// Not a UUID.
    #[error("array UUID: found {found:?}, expected 8-4-4-4-12 hexadecimal digits")]
    Uuid {
        /// The text.
        found: String,
    },
}
