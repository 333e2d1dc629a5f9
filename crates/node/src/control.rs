//! The control socket of a served array: where it is, and what is said over it.
//!
//! One JSON object per line: a [`Request`] from the client, one [`Reply`] from the server, as often as the
//! client likes. The server answers when the thing asked for has happened or, for rebuild and scrub, has
//! begun; their progress is polled with [`Request::Status`].

mod client;

pub use client::Client;

use crate::grow::Growth;
use crate::happened::Happened;
use crate::operate::Steering;
use crate::recovering::Recovering;
use crate::status::Status;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Bytes in a line at most.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// What a client asks for.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Request {
    /// How is the array?
    Status,
    /// How is it, and what happened to it lately?
    Watch,
    /// Does this device belong to the array that is served here? Refused if it is a copy of one that does.
    Belongs {
        /// Which file or device it is: [`device::Identity::numbers`].
        identity: (u64, u64),
        /// The place that its superblock claims.
        dev: u16,
        /// The serial that its superblock claims.
        serial: u32,
    },
    /// Take a member out of service.
    Fail {
        /// Name or path of the member.
        device: String,
        /// Even if the array does not bear it.
        force: bool,
        /// Even if it leaves no redundancy.
        #[serde(default)]
        yes: bool,
    },
    /// Put another device in a member's place.
    Replace {
        /// Name or path of the member.
        device: String,
        /// Absolute path of the new device.
        path: PathBuf,
        /// A member that works is failed first, instead of staying in service meanwhile.
        #[serde(default)]
        fail_first: bool,
        /// Overwrite what is on it.
        force: bool,
        /// Even if the member works, and its loss leaves no redundancy.
        #[serde(default)]
        yes: bool,
    },
    /// The device that becomes what a member is does not take its place.
    CallOff {
        /// Name or path of the member.
        device: String,
    },
    /// Take the device of a member that left back.
    Online {
        /// Name or path of the member.
        device: String,
        /// Absolute path of its device; `None` = where it was.
        path: Option<PathBuf>,
        /// Fill it anew rather than by what it missed.
        full: bool,
    },
    /// Keep a device at hand.
    AddSpare {
        /// Absolute path of the device.
        path: PathBuf,
        /// Overwrite what is on it.
        force: bool,
    },
    /// Let go of a spare, which is none any more.
    RemoveSpare {
        /// Its name or absolute path.
        spare: PathBuf,
    },
    /// Check everything.
    Scrub,
    /// Let a scrub wait, go on, or end.
    Steer {
        /// Which.
        scrub: Steering,
    },
    /// Limit rebuild and scrub.
    Rate {
        /// Bytes per second of each data device; `None` = as fast as possible.
        bytes_per_s: Option<u64>,
    },
    /// Count errors anew.
    Clear {
        /// Of this member; `None` = of every one.
        device: Option<String>,
    },
    /// Give the array another name.
    Rename {
        /// Which.
        name: String,
    },
    /// Take the room of devices that have become larger.
    Grow,
    /// Parity commit.
    Commit {
        /// It is answered at once rather than at its end.
        #[serde(default)]
        at_once: bool,
    },
    /// Let parity commits wait, go on, or end.
    SteerCommits {
        /// Which.
        commits: Steering,
    },
    /// Write a checkpoint.
    Checkpoint {
        /// Full rather than incremental.
        full: bool,
    },
    /// Stop serving, in order.
    Stop {
        /// Even with clients connected.
        #[serde(default)]
        force: bool,
    },
}

impl Request {
    /// Whether it is answered while the array grows.
    pub fn is_answered_anyway(&self) -> bool {
        matches!(self, Self::Status | Self::Watch | Self::Belongs { .. } | Self::Stop { .. })
    }

    /// Whether the server answers it at once, whatever the array does; others when what was asked for has
    /// happened.
    fn is_answered_at_once(&self) -> bool {
        match self {
            Self::Status
            | Self::Watch
            | Self::Belongs { .. }
            | Self::CallOff { .. }
            | Self::Scrub
            | Self::Steer { .. }
            | Self::SteerCommits { .. }
            | Self::Rate { .. } => true,
            Self::Fail { .. }
            | Self::Replace { .. }
            | Self::Online { .. }
            | Self::AddSpare { .. }
            | Self::RemoveSpare { .. }
            | Self::Clear { .. }
            | Self::Rename { .. }
            | Self::Grow
            | Self::Commit { .. }
            | Self::Checkpoint { .. }
            | Self::Stop { .. } => false,
        }
    }

    /// Whether what comes of it is on the members afterwards. A device that hangs can be taken out of
    /// service in any case.
    pub fn is_kept(&self) -> bool {
        match self {
            Self::Status
            | Self::Watch
            | Self::Belongs { .. }
            | Self::Fail { .. }
            | Self::Rate { .. }
            | Self::RemoveSpare { .. }
            | Self::SteerCommits { .. }
            | Self::Stop { .. } => false,
            Self::Replace { .. }
            | Self::CallOff { .. }
            | Self::Online { .. }
            | Self::AddSpare { .. }
            | Self::Scrub
            | Self::Steer { .. }
            | Self::Clear { .. }
            | Self::Rename { .. }
            | Self::Grow
            | Self::Commit { .. }
            | Self::Checkpoint { .. } => true,
        }
    }
}

/// What the server answers.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Reply {
    /// Why it was not done, if it was not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
    /// How the array is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub status: Option<Box<Status>>,
    /// What happened to it lately.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lately: Option<Vec<Happened>>,
    /// What it has become.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub grown: Option<Box<Growth>>,
    /// Nothing was done as the array is recovered still.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recovering: Option<Recovering>,
}

impl Reply {
    /// It was done.
    pub fn done() -> Self {
        Self { error: None, status: None, lately: None, grown: None, recovering: None }
    }

    /// It was not, since the array is recovered still.
    pub fn recovering(how: Recovering) -> Self {
        Self { recovering: Some(how), ..Self::refused(how.to_string()) }
    }

    /// It was not.
    pub fn refused(why: impl Into<String>) -> Self {
        Self { error: Some(why.into()), ..Self::done() }
    }
}
