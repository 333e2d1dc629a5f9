//! Printing that survives whoever reads it: `elastripe status | head` closes the pipe early, and a server
//! must outlive the terminal it was started from. The standard macros panic then; clippy bans them in this
//! crate.
//!
//! Nobody reads the rest of a closed pipe, so that is no failure. A disk that is full is one: see
//! [`is_cut_short`].

use std::fmt;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether something printed did not fit where standard output goes.
static CUT_SHORT: AtomicBool = AtomicBool::new(false);

/// Prints to standard output, as it is.
pub fn print(text: impl fmt::Display) {
    let mut out = std::io::stdout().lock();
    let written = write!(out, "{text}").and_then(|()| out.flush());
    if written.is_err_and(|error| is_full(error.kind())) {
        CUT_SHORT.store(true, Ordering::Relaxed);
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

/// Whether results are missing where standard output goes, because there is no room for them.
pub fn is_cut_short() -> bool {
    CUT_SHORT.load(Ordering::Relaxed)
}

fn is_full(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}
