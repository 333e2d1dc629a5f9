//! Printing that survives whoever reads it: `elastripe status | head` closes the pipe early, and a server must outlive
//! the terminal it was started from. The standard macros panic then.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Prints to standard output, as it is.
pub fn print(text: impl fmt::Display) {
    let mut out = std::io::stdout().lock();
    // Nobody is left to be told.
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// Prints a line to standard output.
pub fn line(text: impl fmt::Display) {
    print(format_args!("{text}\n"));
}

/// Prints a line to standard error.
pub fn warn(text: impl fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// The name under which a file is written until it is whole and takes its own.
pub fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    PathBuf::from(name)
}
