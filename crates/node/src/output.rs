//! Printing that survives whoever reads it: `elastripe status | head` closes the pipe early, and a server
//! must outlive the terminal it was started from. The standard macros panic then; clippy bans them in this
//! crate.
//!
//! Nobody reads the rest of a closed pipe, or what goes to a terminal that is gone, so that is no failure.
//! All else is one, such as a disk that is full: see [`cut_short`].

use rustix::fs::{FileType, fstat};
use std::fmt;
use std::io::{Error, ErrorKind, Result, Write};
use std::sync::OnceLock;

/// Why something printed did not arrive where standard output goes: the first such error.
static CUT_SHORT: OnceLock<Error> = OnceLock::new();

/// Prints to standard output, as it is.
pub fn print(text: impl fmt::Display) {
    let mut out = std::io::stdout().lock();
    note(write!(out, "{text}").and_then(|()| out.flush()));
}

/// Takes note of how it went to print something by other means.
pub fn note(written: Result<()>) {
    if let Err(error) = written
        && !nobody_reads(&error)
    {
        // Later errors tell nothing new.
        let _ = CUT_SHORT.set(error);
    }
}

/// Prints a line to standard output.
pub fn line(text: impl fmt::Display) {
    print(format_args!("{text}\n"));
}

/// Prints a line to standard error.
pub fn warn(text: impl fmt::Display) {
    // Nobody is left to be told.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Why results are missing where standard output goes, if some are.
pub fn cut_short() -> Option<&'static Error> {
    CUT_SHORT.get()
}

/// A server goes on when its terminal is gone, which answers everything with an error of input and output.
fn nobody_reads(error: &Error) -> bool {
    let is_device = || {
        fstat(std::io::stdout())
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice)
    };
    let is_gone = error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error());
    error.kind() == ErrorKind::BrokenPipe || (is_gone && is_device())
}
