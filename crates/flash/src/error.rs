//! What can be wrong with a configuration, and with a request.

use std::fmt;

/// A field of a configuration makes no sense.
#[derive(Clone, PartialEq, Debug)]
pub struct ConfigError {
    /// The field, as the configuration names it.
    pub field: &'static str,
    /// What was given.
    pub found: String,
    /// What would do.
    pub expected: String,
}

impl ConfigError {
    pub(crate) fn new(field: &'static str, found: impl fmt::Display, expected: impl fmt::Display) -> Self {
        Self { field, found: found.to_string(), expected: expected.to_string() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: found {}, expected {}", self.field, self.found, self.expected)
    }
}

impl std::error::Error for ConfigError {}

/// `found` if it is within `min..=max`.
pub(crate) fn within(field: &'static str, found: u64, min: u64, max: u64) -> Result<u64, ConfigError> {
    if (min..=max).contains(&found) {
        Ok(found)
    } else {
        Err(ConfigError::new(field, found, format_args!("{min} to {max}")))
    }
}

/// A request lies outside of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfRange {
    /// First page asked for.
    pub page: u64,
    /// Pages asked for.
    pub count: u64,
    /// Pages the device has.
    pub capacity: u64,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { page, count, capacity } = self;
        write!(f, "pages: found {count} pages from page {page}, expected them below page {capacity}")
    }
}

impl std::error::Error for OutOfRange {}

impl OutOfRange {
    /// Holds a range against the capacity.
    pub(crate) fn check(page: u64, count: u64, capacity: u64) -> Result<(), Self> {
        match page.checked_add(count) {
            Some(end) if end <= capacity => Ok(()),
            Some(_) | None => Err(Self { page, count, capacity }),
        }
    }
}

/// A law of conservation does not hold: a bug of this crate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BrokenLaw {
    /// The law.
    pub law: &'static str,
    /// What was counted.
    pub found: u64,
    /// What the law demands.
    pub expected: u64,
}

impl fmt::Display for BrokenLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: found {}, expected {}", self.law, self.found, self.expected)
    }
}

impl std::error::Error for BrokenLaw {}
