//! SIGHUP: what may change while an array is served is read again.

use crate::logbook::{Level, log, log_as};
use front::{Guard, Rules};
use std::fmt;

/// What was read.
pub struct Reread {
    /// What of it may change, in words.
    pub what: &'static str,
    /// Who may come in by TCP, and how; certificates were read from their files.
    pub rules: Rules,
    /// Limit of rebuild and scrub, in bytes per second of each device.
    pub rebuild_rate: Option<u64>,
    /// Options that are others than when serving began, and count at the next start.
    pub later: Vec<String>,
}

/// Reads it again, or says why it cannot.
pub type Read = Box<dyn Fn() -> Result<Reread, String>>;

/// What SIGHUP changes.
pub struct Reloading {
    guard: Guard,
    read: Read,
    /// The limit that was read last.
    rebuild_rate: Option<u64>,
    /// One that the array is to be told of.
    new_rate: Option<Option<u64>>,
}

impl fmt::Debug for Reloading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloading").field("guard", &self.guard).finish_non_exhaustive()
    }
}

impl Reloading {
    /// Of a guard, and of an array that was given this limit.
    pub fn new(guard: &Guard, rebuild_rate: Option<u64>, read: Read) -> Self {
        Self { guard: guard.clone(), read, rebuild_rate, new_rate: None }
    }

    /// Whom clients who come by TCP pass.
    pub(crate) fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Reads everything again. What cannot be read stays as it was; the log says which it is.
    pub(crate) fn read_again(&mut self) {
        let read = (self.read)().and_then(|read| {
            match read.rules.tls.is_some() == self.guard.rules().tls.is_some() {
                true => Ok(read),
                false => Err("whether connections are encrypted changes at the next start only".to_owned()),
            }
        });
        let Reread { what, rules, rebuild_rate, later } = match read {
            Ok(read) => read,
            Err(why) => {
                return log_as(Level::Error, &format!("SIGHUP: everything stays as it was: {why}"));
            }
        };
        if rules.admit_all() && !self.guard.rules().admit_all() {
            let text = "SIGHUP: from now on nobody who comes by TCP is turned away: neither --allow nor --tls-client-ca is given";
            log_as(Level::Warning, text);
        }
        self.guard.replace(rules);
        // An operator may have set another one since; that counts until this one changes.
        if rebuild_rate != self.rebuild_rate {
            (self.rebuild_rate, self.new_rate) = (rebuild_rate, Some(rebuild_rate));
        }
        let mut text = format!("SIGHUP: {what} were read again");
        if !later.is_empty() {
            text += &format!("; at the next start: {}", later.join(", "));
        }
        log(&text);
    }

    /// The limit that the array is to be told of, once.
    pub(crate) fn take_rate(&mut self) -> Option<Option<u64>> {
        self.new_rate.take()
    }
}
