//! The log of a server: lines on standard error, with the time and how bad it is where nobody else adds them.
//!
//! Whoever should read them may not: a terminal that is held, a pipe that nobody empties. So a thread of its
//! own writes them, and the array goes on. What finds no room any more is counted.

mod scribe;

use crate::output;
use crate::units::show_moment;
use scribe::Scribe;
use serde::{Deserialize, Serialize};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long the last lines have to be written.
const LAST_LINES: Duration = Duration::from_secs(1);

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

/// Who writes the lines of a server.
static SCRIBE: OnceLock<Arc<Scribe>> = OnceLock::new();

/// The log of a server, until this is dropped.
#[must_use = "its last lines are written when it is dropped"]
pub struct Logbook(());

/// Begins the log of a server, whose lines look so. It is written on a thread of its own.
pub fn begin(time: LogTime) -> Logbook {
    let style = match time {
        LogTime::Always => TIMED,
        LogTime::Never => PLAIN,
        LogTime::Auto if std::env::var_os("JOURNAL_STREAM").is_some() => JOURNAL,
        LogTime::Auto if std::io::stderr().is_terminal() => PLAIN,
        LogTime::Auto => TIMED,
    };
    STYLE.store(style, Ordering::Relaxed);
    let lost =
        |count| styled(Level::Warning, &format!("{count} lines of the log are lost here, as nobody read it"));
    if let Some(scribe) = Scribe::start(|line| output::warn(line), lost) {
        // There is one log of one server.
        let _ = SCRIBE.set(scribe);
    }
    Logbook(())
}

impl Drop for Logbook {
    fn drop(&mut self) {
        finish();
    }
}

/// Waits until everything is written, unless nobody reads it.
pub fn finish() {
    if let Some(scribe) = SCRIBE.get() {
        scribe.finish(LAST_LINES);
    }
}

/// A line of the log.
pub fn log(line: &str) {
    log_as(Level::Info, line);
}

/// Adds a line that is so bad.
pub fn log_as(level: Level, line: &str) {
    let line = styled(level, line);
    match SCRIBE.get() {
        Some(scribe) => scribe.put(line),
        None => output::warn(line),
    }
}

fn styled(level: Level, line: &str) -> String {
    match STYLE.load(Ordering::Relaxed) {
        TIMED => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
            format!("elastripe: {} {}: {line}", show_moment(now_ms), level.name())
        }
        JOURNAL => format!("{}elastripe: {line}", level.prefix()),
        _ => format!("elastripe: {line}"),
    }
}
