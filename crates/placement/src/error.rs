//! What can be wrong with a policy's options.

use std::fmt;

/// An option is out of its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionError {
    /// A number is too small or too large.
    Range {
        /// The option, with its unit.
        option: &'static str,
        /// What was given.
        found: u64,
        /// Smallest possible value.
        min: u64,
        /// Largest possible value.
        max: u64,
    },
    /// Hotness thresholds are not in ascending order.
    NotAscending {
        /// The threshold that should have been the lower one.
        lower: u8,
        /// The one after it.
        upper: u8,
    },
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range { option, found, min, max } => {
                write!(f, "{option}: found {found}, expected {min} to {max}")
            }
            Self::NotAscending { lower, upper } => {
                write!(f, "hotness thresholds: found {lower} before {upper}, expected ascending ones")
            }
        }
    }
}

impl std::error::Error for OptionError {}

/// `found` if it is within `min..=max`.
pub(crate) fn within(option: &'static str, found: u64, min: u64, max: u64) -> Result<u64, OptionError> {
    if (min..=max).contains(&found) { Ok(found) } else { Err(OptionError::Range { option, found, min, max }) }
}
