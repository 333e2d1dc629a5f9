//! What an array can do, in a word.

use serde::{Deserialize, Serialize};

/// What the array can do.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    /// Every member works.
    Healthy,
    /// Members are missing or being rebuilt, or the last scrub left errors; nothing is lost.
    Degraded,
    /// Requests wait for a member in service: it lacks room, or does not answer.
    Suspended,
    /// Data is lost, was given up by a forced start, or a rebuild met something it cannot make whole.
    Lost,
    /// More members are missing than the code can make up for, or than the array starts without.
    Failed,
    /// Too few members were looked at to tell.
    Incomplete,
    /// It was being served, and its server is gone without having stopped.
    Down,
}

impl Condition {
    /// In capitals, as the screen shows it.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Healthy => "HEALTHY",
            Self::Degraded => "DEGRADED",
            Self::Suspended => "SUSPENDED",
            Self::Lost => "LOST",
            Self::Failed => "FAILED",
            Self::Incomplete => "INCOMPLETE",
            Self::Down => "DOWN",
        }
    }
}
