//! An ask for one key while it is under way.

use crate::ask::{Answer, Condition, Lifetime, Old, Range, Value, When};
use crate::cache::Meta;
use crate::cuckoo::Candidates;
use crate::hash::KeyHash;
use crate::locks::Mode;

/// What is wanted of a key.
#[derive(Debug)]
pub(super) enum Want {
    Set {
        value: Value,
        when: When,
        lifetime: Lifetime,
        old: Old,
    },
    Get {
        range: Range,
        lifetime: Option<Lifetime>,
    },
    Describe,
    Delete {
        old: Old,
    },
    Live {
        lifetime: Lifetime,
    },
    LiveIf {
        until_ms: u64,
        conditions: Vec<Condition>,
    },
    /// Becomes a `Set` when the value that is there is known.
    Add {
        by: i64,
    },
    /// The same.
    Append {
        tail: Value,
    },
}

/// What an operation waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Its key.
    Key,
    /// The record of a candidate.
    Candidate,
    /// Its value, or parts of it.
    Value,
    /// That large values which others read are done with.
    Turn,
    /// Room in the log.
    Room,
    /// That its parts are durable.
    Parts { cycle: u64 },
}

/// What of a value is read.
#[derive(Default)]
pub(super) struct Loading {
    /// The first part wanted, and the one after the last.
    pub(super) first: u32,
    pub(super) end: u32,
    /// The next one to ask for.
    pub(super) next: u32,
    pub(super) in_flight: u32,
    /// How often parts had moved when they came.
    pub(super) retries: u32,
    pub(super) parts: Vec<Option<Box<[u8]>>>,
    pub(super) failed: Option<u64>,
}

/// What of a large value is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Storing {
    pub(super) id: u64,
    pub(super) next: u32,
    pub(super) durable: bool,
}

/// An ask for one key.
pub(super) struct Operation {
    pub(super) tag: u64,
    pub(super) key: Box<[u8]>,
    pub(super) hash: KeyHash,
    pub(super) want: Want,
    pub(super) phase: Phase,
    pub(super) candidates: Candidates,
    /// The candidate that is looked at.
    pub(super) at: usize,
    /// How often the search began anew since something had moved.
    pub(super) restarts: u32,
    /// Candidates that cannot be read.
    pub(super) damaged: Vec<u64>,
    /// The newest record of the key, also if it says that the key is deleted.
    pub(super) current: Option<Meta>,
    pub(super) loading: Loading,
    /// What it is counted for among the large values that are read, or will be when it is its turn.
    pub(super) loading_bytes: u64,
    /// The value as it was, if it was wanted.
    pub(super) loaded: Option<Value>,
    pub(super) storing: Option<Storing>,
    /// What is told when it is set, if not that.
    pub(super) gives: Option<Answer>,
    /// It waits for room until there have been so many victims; 0: it did not find that there is none.
    pub(super) waits_until: u64,
    /// What it was promised of the capacity.
    pub(super) promised_bytes: u64,
}

impl Operation {
    /// Whether others may read the key meanwhile.
    pub(super) fn mode(&self) -> Mode {
        match &self.want {
            Want::Get { lifetime: None, .. } | Want::Describe => Mode::Read,
            Want::Set { .. }
            | Want::Get { .. }
            | Want::Delete { .. }
            | Want::Live { .. }
            | Want::LiveIf { .. }
            | Want::Add { .. }
            | Want::Append { .. } => Mode::Write,
        }
    }

    /// Whether the value that is there is needed.
    pub(super) fn needs_value(&self) -> bool {
        match &self.want {
            Want::Get { .. }
            | Want::Live { .. }
            | Want::LiveIf { .. }
            | Want::Add { .. }
            | Want::Append { .. } => true,
            Want::Set { old, .. } | Want::Delete { old } => *old == Old::Wanted,
            Want::Describe => false,
        }
    }
}
