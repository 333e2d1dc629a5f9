//! Printing that survives whoever reads it: `elastripe status | head` closes the pipe early, and a server must outlive
//! the terminal it was started from. The standard macros panic then.

use std::fmt;
use std::io::Write;

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
