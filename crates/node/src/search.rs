//! A search for one array that did not end with one.

use std::fmt;

/// Why a search did not end with one array.
#[derive(Debug)]
pub struct Search {
    /// The name or UUID that was looked for.
    pub wanted: Option<String>,
    /// The arrays that were found, by name and UUID.
    pub found: Vec<String>,
    /// How many of them fit.
    pub fitting: usize,
    /// Block devices that this user may not read.
    pub unreadable: usize,
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(wanted) = &self.wanted {
            write!(f, "{wanted}: ")?;
        }
        let names = self.found.join(", ");
        if let Some(unreadable) = unreadable(self.unreadable) {
            write!(f, "{unreadable}; ")?;
        }
        match (self.found.is_empty(), self.fitting) {
            (true, _) => f.write_str(
                "no member of an array was found; name the devices, files or directories to look at",
            ),
            (false, 0) => write!(f, "not found; found {names}"),
            (false, _) => write!(f, "several arrays were found: {names}; choose with --array UUID"),
        }
    }
}

impl std::error::Error for Search {}

/// What of block devices could not be looked at, in a sentence, if anything.
pub fn unreadable(count: usize) -> Option<String> {
    let devices = if count == 1 { "block device" } else { "block devices" };
    let advice = if rustix::process::geteuid().is_root() { "" } else { "; try as root" };
    (count > 0).then(|| format!("{count} {devices} could not be read: Permission denied{advice}"))
}
