//! What happened to a served array lately, for who looks at it now and did not see the log.

use crate::logbook::Level;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

/// So many are remembered: what fits on a page. The log has all.
pub const REMEMBERED_MAX: usize = 40;

/// Something that happened.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Happened {
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
    /// How bad it is.
    pub level: Level,
    /// What it was, in a word that scripts know: those of `--on-event`, and some more.
    pub event: String,
    /// The member that it happened to, if it was one.
    pub device: String,
    /// As the log says it.
    pub message: String,
}

/// The last of them, oldest first.
#[derive(Default)]
pub struct Lately(VecDeque<Happened>);

impl Lately {
    /// Takes note of something that happens now.
    pub fn remember(&mut self, level: Level, event: &str, device: &str, message: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if self.0.len() == REMEMBERED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Happened {
            unix_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            level,
            event: event.to_owned(),
            device: device.to_owned(),
            message: message.to_owned(),
        });
    }

    /// The last of all.
    pub fn newest(&self) -> Option<&Happened> {
        self.0.back()
    }

    /// All that are remembered.
    pub fn all(&self) -> Vec<Happened> {
        self.0.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut lately = Lately::default();
        for number in 0..REMEMBERED_MAX + 3 {
            lately.remember(Level::Info, "scrub", "", &number.to_string());
        }
        let all = lately.all();
        assert_eq!((all.len(), all[0].message.as_str()), (REMEMBERED_MAX, "3"));
    }
}
