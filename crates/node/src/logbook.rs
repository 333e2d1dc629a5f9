//! The log of a server: lines on standard error, with the time and how bad it is where nobody else adds them.

use crate::output;
use crate::units::show_moment;
use serde::{Deserialize, Serialize};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// How bad it is.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The array is less safe than it was, or may become so.
    Warning,
    /// Something could not be done, or is lost.
    Error,
    /// Good to know.
    Info,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// As the journal of systemd takes it at the beginning of a line (sd-daemon(3)).
    fn prefix(self) -> &'static str {
        match self {
            Self::Info => "<6>",
            Self::Warning => "<4>",
            Self::Error => "<3>",
        }
    }
}

/// Whether lines of the log begin with the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LogTime {
    /// Unless standard error is a terminal, or the journal, which has the time anyway.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

const PLAIN: u8 = 0;
const TIMED: u8 = 1;
const JOURNAL: u8 = 2;

static STYLE: AtomicU8 = AtomicU8::new(PLAIN);

/// How lines look from now on.
pub fn begin(time: LogTime) {
    let style = match time {
        LogTime::Always => TIMED,
        LogTime::Never => PLAIN,
        LogTime::Auto if std::env::var_os("JOURNAL_STREAM").is_some() => JOURNAL,
        LogTime::Auto if std::io::stderr().is_terminal() => PLAIN,
        LogTime::Auto => TIMED,
    };
    STYLE.store(style, Ordering::Relaxed);
}

/// A line of the log.
pub fn log(line: &str) {
    log_as(Level::Info, line);
}

/// Adds a line that is so bad.
pub fn log_as(level: Level, line: &str) {
    match STYLE.load(Ordering::Relaxed) {
        TIMED => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
            output::warn(format_args!("elastripe: {} {}: {line}", show_moment(now_ms), level.name()));
        }
        JOURNAL => output::warn(format_args!("{}elastripe: {line}", level.prefix())),
        _ => output::warn(format_args!("elastripe: {line}")),
    }
}
