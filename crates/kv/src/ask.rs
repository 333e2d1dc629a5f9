//! What a client asks of the store, and what it is told. No storage in here: protocols are written against
//! this.

pub use bytes::Bytes;
use std::fmt;

/// Bytes that a key may have; it has at least one.
pub const KEY_BYTES_MAX: usize = 255;
/// Bytes that a value may have.
pub const VALUE_BYTES_MAX: u64 = 512 << 20;
/// Bytes that one part of a [`Value`] may have.
pub const PART_BYTES_MAX: usize = 1 << 20;

/// A value in parts, so that a large one needs no allocation of its size. A part may be shared with others
/// that read it.
///
/// Where the parts begin and end has no meaning; none is empty and none has more than [`PART_BYTES_MAX`].
#[derive(Clone)]
pub struct Value(Parts);

/// Nearly all values have one part, which needs no list.
#[derive(Clone)]
enum Parts {
    One(Bytes),
    List(Vec<Bytes>),
}

impl Default for Value {
    fn default() -> Self {
        Self(Parts::List(Vec::new()))
    }
}

impl Value {
    /// The value of these bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Self::from_parts(bytes.chunks(PART_BYTES_MAX).map(Bytes::copy_from_slice))
    }

    /// The value of these parts.
    pub fn from_parts<P: Into<Bytes>>(parts: impl IntoIterator<Item = P>) -> Self {
        let mut value = Self::default();
        parts.into_iter().for_each(|part| value.push(part));
        value
    }

    /// Adds a part at the end; an empty one is nothing, one that is too long becomes several.
    pub fn push(&mut self, part: impl Into<Bytes>) {
        let mut rest = part.into();
        while !rest.is_empty() {
            let part = rest.split_to(rest.len().min(PART_BYTES_MAX));
            self.push_part(part);
        }
    }

    fn push_part(&mut self, part: Bytes) {
        self.0 = match std::mem::replace(&mut self.0, Parts::List(Vec::new())) {
            Parts::List(list) if list.is_empty() => Parts::One(part),
            Parts::One(first) => Parts::List(vec![first, part]),
            Parts::List(mut list) => {
                list.push(part);
                Parts::List(list)
            }
        };
    }

    /// The parts in order.
    pub fn parts(&self) -> &[Bytes] {
        match &self.0 {
            Parts::One(part) => std::slice::from_ref(part),
            Parts::List(list) => list,
        }
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.parts().iter().map(|part| length(part)).sum()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.parts().is_empty()
    }

    /// All bytes in one piece: for small values and tests.
    pub fn to_vec(&self) -> Vec<u8> {
        self.parts().concat()
    }

    /// Calls `each` with the bytes from `first` on, `length` of them, piece by piece.
    pub fn pieces(&self, first: u64, length_bytes: u64, mut each: impl FnMut(&[u8])) {
        let (mut skip, mut left) = (first, length_bytes);
        for part in self.parts() {
            let whole = length(part);
            if skip >= whole {
                skip -= whole;
                continue;
            }
            let take = left.min(whole - skip);
            let (from, to) = (index(skip), index(skip + take));
            if from < to {
                each(&part[from..to]);
            }
            skip = 0;
            left -= take;
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.parts().iter().flatten().eq(other.parts().iter().flatten())
    }
}

impl Eq for Value {}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({} bytes)", self.len())
    }
}

fn length(part: &[u8]) -> u64 {
    u64::try_from(part.len()).expect("a length fits 64 bits")
}

fn index(at: u64) -> usize {
    usize::try_from(at).expect("a place in a part fits memory")
}

/// Whether a set depends on the key being there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum When {
    /// It does not.
    #[default]
    Always,
    /// Only if the key is not there.
    IfAbsent,
    /// Only if the key is there.
    IfPresent,
}

/// How long a key lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Lifetime {
    /// Until it is deleted.
    #[default]
    Forever,
    /// As it was before; for ever if the key was not there.
    AsBefore,
    /// Until this time in milliseconds since 1970; if that is past, it is gone at once.
    UntilMs(u64),
}

/// Whether the value before is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Old {
    /// It is not.
    #[default]
    Ignored,
    /// It comes with the answer.
    Wanted,
}

/// On what of its lifetime it depends whether a key gets another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Only if the key has none.
    IfNone,
    /// Only if it has one.
    IfSome,
    /// Only if the new one is longer.
    IfLater,
    /// Only if the new one is shorter.
    IfSooner,
}

impl Condition {
    /// Whether it holds for what is there now, in milliseconds since 1970.
    pub fn holds(self, now: Option<u64>, new_ms: u64) -> bool {
        match self {
            Self::IfNone => now.is_none(),
            Self::IfSome => now.is_some(),
            Self::IfLater => now.is_some_and(|now| new_ms > now),
            Self::IfSooner => now.is_none_or(|now| new_ms < now),
        }
    }
}

/// Bytes that a value may have that is a number.
pub const NUMBER_BYTES_MAX: u64 = 20;

/// What becomes of a value that `by` is added to; without one it is 0.
pub fn sum(value: Option<&Value>, by: i64) -> Result<i64, Refused> {
    let now = match value {
        None => Some(0),
        Some(value) if value.len() <= NUMBER_BYTES_MAX => crate::decimal::number(&value.to_vec()),
        Some(_) => None,
    };
    now.ok_or(Refused::NotANumber)?.checked_add(by).ok_or(Refused::Overflow)
}

/// Which bytes of a value are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Range {
    /// All.
    #[default]
    Whole,
    /// From `first` to `last`, both included; negative ones count from the end (-1 is the last byte), and
    /// what lies outside of the value is cut off, as in Redis.
    Between {
        /// The first byte.
        first: i64,
        /// The last byte.
        last: i64,
    },
}

impl Range {
    /// The first byte and the length, within a value of `value_bytes`.
    pub fn within(self, value_bytes: u64) -> (u64, u64) {
        let Self::Between { first, last } = self else { return (0, value_bytes) };
        let place = |at: i64| match u64::try_from(at) {
            Ok(at) => i128::from(at),
            Err(_) => i128::from(value_bytes) + i128::from(at),
        };
        let first = place(first).max(0);
        let end = (place(last) + 1).min(i128::from(value_bytes));
        if first >= end {
            return (0, 0);
        }
        let number = |at: i128| u64::try_from(at).expect("a place within a value");
        (number(first), number(end - first))
    }
}

/// What a client asks of the store. Keys have 1..=255 bytes, values up to 512 MiB.
///
/// What was started earlier for a key happens earlier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Give a key a value. Answer: [`Answer::Set`].
    Set {
        /// The key.
        key: Box<[u8]>,
        /// The value.
        value: Value,
        /// Whether it depends on the key being there.
        when: When,
        /// How long the key lives.
        lifetime: Lifetime,
        /// Whether the value before is wanted, also if nothing was set.
        old: Old,
    },
    /// The value of a key, or some of it. Answer: [`Answer::Value`].
    Get {
        /// The key.
        key: Box<[u8]>,
        /// Which bytes.
        range: Range,
        /// Another lifetime at the same time, if the key is there.
        lifetime: Option<Lifetime>,
    },
    /// Length and lifetime of a key (EXISTS, STRLEN, TTL). Answer: [`Answer::Described`].
    Describe {
        /// The key.
        key: Box<[u8]>,
    },
    /// Delete a key. Answer: [`Answer::Deleted`].
    Delete {
        /// The key.
        key: Box<[u8]>,
        /// Whether the value before is wanted.
        old: Old,
    },
    /// Another lifetime (EXPIRE, PERSIST). Answer: [`Answer::Described`], as it was before.
    Live {
        /// The key.
        key: Box<[u8]>,
        /// The lifetime.
        lifetime: Lifetime,
    },
    /// Another lifetime, if the key is there and all conditions hold. Answer: [`Answer::Set`].
    LiveIf {
        /// The key.
        key: Box<[u8]>,
        /// When its time is up, in milliseconds since 1970; if that is past, it is gone at once.
        until_ms: u64,
        /// On what it depends.
        conditions: Vec<Condition>,
    },
    /// Add to a number; a key that is not there has 0. It lives as long as before. Answer: [`Answer::Sum`].
    Add {
        /// The key.
        key: Box<[u8]>,
        /// What is added.
        by: i64,
    },
    /// Put bytes behind a value, or make them one; it lives as long as before. Answer: [`Answer::Length`].
    Append {
        /// The key.
        key: Box<[u8]>,
        /// The bytes.
        tail: Value,
    },
    /// Some of the keys. Answer: [`Answer::Scanned`]. A scan begins with cursor 0, goes on with the cursor of
    /// the last answer, and ends when that is 0. A key that is there from begin to end is returned at least
    /// once.
    Scan {
        /// Where to go on.
        cursor: u64,
        /// About how many keys.
        count: u32,
    },
    /// How many keys there are; those whose time is up may still count. Answer: [`Answer::Count`].
    Count,
    /// Delete everything. Answer: [`Answer::Done`].
    Clear,
    /// Everything acknowledged so far becomes durable. Answer: [`Answer::Done`].
    Flush,
}

impl Ask {
    /// The key that it is about; empty if it is about none.
    pub(crate) fn key(&self) -> &[u8] {
        match self {
            Self::Set { key, .. }
            | Self::Get { key, .. }
            | Self::Describe { key }
            | Self::Delete { key, .. }
            | Self::Live { key, .. }
            | Self::LiveIf { key, .. }
            | Self::Add { key, .. }
            | Self::Append { key, .. } => key,
            Self::Scan { .. } | Self::Count | Self::Clear | Self::Flush => &[],
        }
    }
}

/// What is known of a key without its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Description {
    /// Length of the value.
    pub value_bytes: u64,
    /// When its time is up, in milliseconds since 1970; none: never.
    pub until_ms: Option<u64>,
}

/// The answer to an [`Ask`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Whether the value was set, and the value before if it was wanted and there.
    Set {
        /// Whether it was set: `when` may have forbidden it.
        stored: bool,
        /// The value before.
        old: Option<Value>,
    },
    /// The value, if the key is there.
    Value(Option<Value>),
    /// What is known of the key, if it is there.
    Described(Option<Description>),
    /// Whether the key was there, and its value if that was wanted.
    Deleted {
        /// Whether it was there.
        was_there: bool,
        /// The value before.
        old: Option<Value>,
    },
    /// What the number became.
    Sum(i64),
    /// How long the value became.
    Length(u64),
    /// Some keys.
    Scanned {
        /// Where to go on; 0: the scan is complete.
        cursor: u64,
        /// The keys; one may come twice.
        keys: Vec<Box<[u8]>>,
    },
    /// How many keys there are.
    Count(u64),
    /// It is done.
    Done,
}

/// Why the store did not do what was asked. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The key has no bytes, or too many.
    Key {
        /// How many it has.
        key_bytes: usize,
    },
    /// The value is too large.
    TooLarge {
        /// How large it is.
        value_bytes: u64,
        /// How large it may be.
        limit_bytes: u64,
    },
    /// What is to be added to is no number of 64 bits.
    NotANumber,
    /// The sum has more than 64 bits.
    Overflow,
    /// There is no space for it; deleting makes some.
    NoSpace {
        /// How much it needs.
        needed_bytes: u64,
        /// How much is left.
        free_bytes: u64,
    },
    /// What is stored cannot be read, or may be out of date because something newer cannot be read.
    Damaged {
        /// What was found where.
        what: Box<str>,
    },
    /// The store takes no changes, since the volume takes none or failed to.
    ReadOnly,
    /// The store is shutting down.
    Shutdown,
    /// Too much is under way; ask again later.
    Busy,
    /// Nobody wanted to know it any more.
    Forgotten,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { key_bytes } => {
                write!(f, "The key has {key_bytes} bytes; it must have 1 to {KEY_BYTES_MAX}.")
            }
            Self::TooLarge { value_bytes, limit_bytes } => {
                write!(f, "The value has {value_bytes} bytes; at most {limit_bytes} are possible.")
            }
            Self::NotANumber => f.write_str("The value is not an integer of 64 bits."),
            Self::Overflow => f.write_str("The sum would have more than 64 bits."),
            Self::NoSpace { needed_bytes, free_bytes } => {
                write!(f, "The value needs {needed_bytes} bytes of space, and {free_bytes} are left.")
            }
            Self::Damaged { what } => write!(f, "The store is damaged: {what}."),
            Self::ReadOnly => f.write_str("The store takes no changes: its volume takes no writes."),
            Self::Shutdown => f.write_str("The store is shutting down."),
            Self::Busy => f.write_str("The store has too much to do; ask again later."),
            Self::Forgotten => f.write_str("Nobody wanted to know it any more."),
        }
    }
}

impl std::error::Error for Refused {}

/// The end of an [`Ask`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// The tag given to [`Keys::start`].
    pub tag: u64,
    /// How it ended.
    pub answer: Result<Answer, Refused>,
}

/// What a store says of itself. Sizes in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// Keys, those whose time is up included until they are removed.
    pub key_count: u64,
    /// Bytes of the volume that records may take.
    pub capacity_bytes: u64,
    /// Bytes of records that count.
    pub live_bytes: u64,
    /// Bytes of memory that the index takes.
    pub index_bytes: u64,
    /// Bytes of memory that the cache of metadata takes.
    pub cache_bytes: u64,
    /// Lookups that the cache answered.
    pub cache_hit_count: u64,
    /// Lookups that it did not answer.
    pub cache_miss_count: u64,
    /// Bytes of keys and values that clients gave.
    pub given_bytes: u64,
    /// Bytes written to the volume.
    pub written_bytes: u64,
    /// Bytes read from the volume.
    pub read_bytes: u64,
    /// Bytes of records that compaction copied.
    pub moved_bytes: u64,
    /// Flushes of the volume.
    pub flush_count: u64,
    /// Records that could not be read.
    pub damaged_count: u64,
    /// Asks under way.
    pub under_way_count: u64,
    /// A write has failed: no change is taken until the store is opened again.
    pub only_reads: bool,
}

/// A store as seen by a protocol. Nothing here blocks.
pub trait Keys {
    /// Starts what is asked. Every ask gets exactly one [`Told`] from a later [`Keys::drive`]; tags under way
    /// are distinct.
    fn start(&mut self, tag: u64, ask: Ask);

    /// Nobody wants to know these any more: what only reads may be refused as far as it has not been done.
    /// Each still gets its [`Told`].
    fn forget(&mut self, tags: &[u64]) {
        let _ = tags;
    }

    /// Does everything that can be done now, and appends what has ended. `now_ms` is the time in milliseconds
    /// since 1970.
    fn drive(&mut self, now_ms: u64, told: &mut Vec<Told>);

    /// What there is to say now.
    fn figures(&self) -> Figures;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_as_redis_cuts_them() {
        let range = |first, last| Range::Between { first, last }.within(16);
        assert_eq!(range(0, 3), (0, 4));
        assert_eq!(range(-3, -1), (13, 3));
        assert_eq!(range(0, -1), (0, 16));
        assert_eq!(range(10, 100), (10, 6));
        assert_eq!(range(i64::MIN, i64::MAX), (0, 16));
        assert_eq!((range(5, 3), range(16, 20), range(-1, -3)), ((0, 0), (0, 0), (0, 0)));
        assert_eq!(Range::Between { first: 0, last: -1 }.within(0), (0, 0));
        assert_eq!(Range::Whole.within(7), (0, 7));
    }

    #[test]
    fn pieces_of_a_value_are_its_bytes() {
        let mut value = Value::new(b"hello ");
        value.push(Box::from(&b""[..]));
        value.push(Box::from(&b"wonderful "[..]));
        value.push(Box::from(&b"world"[..]));
        let whole = value.to_vec();
        for first in 0..=whole.len() {
            for end in first..=whole.len() {
                let mut found = Vec::new();
                let number = |at: usize| u64::try_from(at).expect("small");
                value.pieces(number(first), number(end - first), |piece| found.extend_from_slice(piece));
                assert_eq!(found, whole[first..end]);
            }
        }
        assert_eq!(value, Value::new(&whole));
        assert_ne!(value, Value::new(b"hello wonderful worle"));
    }
}
