//! What a command asks of the store, as data, and how the answers become the client's.

use super::Said;
use kv::ask::{Answer, Ask, Lifetime, Refused, Value};
use std::collections::{BTreeSet, VecDeque};

/// What is to be done for a command.
#[derive(Debug)]
pub enum Plan {
    /// One question, one answer.
    One(Ask, Shape),
    /// Several, side by side.
    Each(VecDeque<Ask>, Gather),
    /// Several, one after the other; none of them changes anything.
    Steps(Steps),
    /// Nothing is asked, or what is asked is not waited for.
    Now(Outcome, Option<Ask>),
}

/// Memory of a question of many beside itself: its key, and what the allocator adds.
const ASK_EXTRA_BYTES: usize = 32;

impl Plan {
    /// Bytes of memory that it takes beside the bytes that the client sent.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Each(asks, _) => asks.len() * (size_of::<Ask>() + ASK_EXTRA_BYTES),
            Self::One(..) | Self::Steps(_) | Self::Now(..) => 0,
        }
    }
}

/// What a client is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is done.
    Ok,
    /// A word.
    Word(&'static str),
    /// A number.
    Integer(i64),
    /// Nothing is there.
    Null,
    /// A value.
    Value(Value),
    /// Names.
    Names(Vec<Box<[u8]>>),
    /// Where a scan goes on, and names.
    Scan(u64, Vec<Box<[u8]>>),
    /// Two numbers.
    Pair(i64, i64),
    /// It was not done.
    Failed(Said),
}

/// How the store's answer becomes the client's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    /// OK if a value was set, nothing if not.
    Stored,
    /// 1 if a value was set, 0 if not.
    WhetherStored,
    /// The value before.
    Before,
    /// The value, or nothing.
    Value,
    /// The value, empty if there is none.
    ValueOrEmpty,
    /// Its length, 0 if there is none.
    Length,
    /// What it is.
    Type,
    /// 1 if the key was there, 0 if not.
    WasThere,
    /// 1 if the key was there and was to end.
    WasToEnd,
    /// Milliseconds that are left.
    LeftMs {
        /// The time.
        now_ms: u64,
    },
    /// Seconds that are left, rounded.
    LeftSeconds {
        /// The time.
        now_ms: u64,
    },
    /// When it ends, in milliseconds.
    EndMs,
    /// When it ends, in seconds.
    EndSeconds,
    /// Names that match.
    Scan {
        /// What they must match, if anything.
        pattern: Option<Box<[u8]>>,
        /// Whether keys of another type are wanted, which there are none of.
        none: bool,
    },
    /// How many, how long, or what it is now.
    Count,
    /// It is done.
    Done,
    /// It is done, and everything acknowledged before is durable.
    Saved,
    /// It is durable here, and on no replica.
    DurableHere,
}

/// How many answers become one.
#[derive(Debug)]
pub enum Gather {
    /// How many were there.
    Sum(i64),
    /// OK when all are done.
    All,
    /// All of them, in order.
    List,
}

/// Several questions, one after the other.
#[derive(Debug)]
pub enum Steps {
    /// All names that match.
    Names {
        /// What they must match.
        pattern: Box<[u8]>,
        /// Those that did.
        found: BTreeSet<Box<[u8]>>,
        /// How much they take.
        found_bytes: usize,
        /// How much they may take.
        bytes_max: usize,
    },
}

/// What comes after a step.
#[derive(Debug)]
pub enum Turn {
    /// This is asked.
    Ask(Ask),
    /// It is at its end.
    End(Outcome),
}

/// Names asked for in one step.
const NAMES_PER_STEP: u32 = 1000;

/// In the words that clients look for.
pub(crate) fn refused(why: &Refused) -> Outcome {
    let word = match why {
        Refused::NoSpace { .. } => "OOM command not allowed:",
        Refused::ReadOnly => "READONLY",
        Refused::Shutdown => "LOADING",
        Refused::Busy | Refused::Forgotten => "BUSY",
        Refused::Key { .. } | Refused::TooLarge { .. } => "ERR",
        Refused::Damaged { .. } => "ERR DAMAGED",
        Refused::NotANumber => return Outcome::Failed(super::NOT_AN_INTEGER),
        Refused::Overflow => {
            return Outcome::Failed(Said::of("ERR increment or decrement would overflow"));
        }
    };
    Outcome::Failed(Said::of(format!("{word} {why}")))
}

fn integer(value: u64) -> Outcome {
    Outcome::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

fn value_or_null(value: Option<Value>) -> Outcome {
    value.map_or(Outcome::Null, Outcome::Value)
}

/// What `by` measures of the end of a key's life: -2 without a key, -1 without an end.
fn end(described: Option<kv::ask::Description>, by: impl FnOnce(u64) -> u64) -> Outcome {
    match described.map(|described| described.until_ms) {
        None => Outcome::Integer(-2),
        Some(None) => Outcome::Integer(-1),
        Some(Some(until_ms)) => integer(by(until_ms)),
    }
}

impl Shape {
    /// The client's answer.
    pub fn outcome(self, answer: Result<Answer, Refused>) -> Outcome {
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => return refused(&why),
        };
        match answer {
            Answer::Set { stored, old } => self.of_set(stored, old),
            Answer::Value(None) if self == Self::ValueOrEmpty => Outcome::Value(Value::default()),
            Answer::Value(value) => value_or_null(value),
            Answer::Described(described) => self.of_description(described),
            Answer::Deleted { old, .. } if self == Self::Before => value_or_null(old),
            Answer::Deleted { was_there, .. } => Outcome::Integer(i64::from(was_there)),
            Answer::Scanned { cursor, keys } => self.of_scan(cursor, keys),
            Answer::Count(count) | Answer::Length(count) => integer(count),
            Answer::Sum(sum) => Outcome::Integer(sum),
            Answer::Done if self == Self::DurableHere => Outcome::Pair(1, 0),
            Answer::Done => Outcome::Ok,
        }
    }

    fn of_scan(self, cursor: u64, mut keys: Vec<Box<[u8]>>) -> Outcome {
        if let Self::Scan { pattern, none } = self {
            keys.retain(|key| {
                !none && pattern.as_ref().is_none_or(|pattern| crate::glob::matches(pattern, key))
            });
        }
        Outcome::Scan(cursor, keys)
    }

    fn of_set(self, stored: bool, old: Option<Value>) -> Outcome {
        if self == Self::Before {
            value_or_null(old)
        } else if self == Self::WhetherStored {
            Outcome::Integer(i64::from(stored))
        } else if stored {
            Outcome::Ok
        } else {
            Outcome::Null
        }
    }

    fn of_description(self, described: Option<kv::ask::Description>) -> Outcome {
        match self {
            Self::Length => integer(described.map_or(0, |described| described.value_bytes)),
            Self::Type => Outcome::Word(if described.is_some() { "string" } else { "none" }),
            Self::WasToEnd => {
                Outcome::Integer(i64::from(described.is_some_and(|described| described.until_ms.is_some())))
            }
            Self::LeftMs { now_ms } => end(described, |until_ms| until_ms.saturating_sub(now_ms)),
            Self::LeftSeconds { now_ms } => {
                end(described, |until_ms| until_ms.saturating_sub(now_ms).saturating_add(500) / 1000)
            }
            Self::EndMs => end(described, |until_ms| until_ms),
            Self::EndSeconds => end(described, |until_ms| until_ms.saturating_add(500) / 1000),
            // Of the others only this one is asked for by a description.
            Self::WasThere
            | Self::Stored
            | Self::WhetherStored
            | Self::Before
            | Self::Value
            | Self::ValueOrEmpty
            | Self::Scan { .. }
            | Self::Count
            | Self::Done
            | Self::Saved
            | Self::DurableHere => Outcome::Integer(i64::from(described.is_some())),
        }
    }
}

impl Steps {
    /// What is asked first.
    pub fn first(&self) -> Ask {
        match self {
            Self::Names { .. } => Ask::Scan { cursor: 0, count: NAMES_PER_STEP },
        }
    }

    /// What comes after an answer.
    pub fn next(&mut self, answer: Result<Answer, Refused>) -> Turn {
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => return Turn::End(refused(&why)),
        };
        match self {
            Self::Names { pattern, found, found_bytes, bytes_max } => {
                let Answer::Scanned { cursor, keys } = answer else { return unexpected() };
                for key in keys {
                    let length = key.len();
                    if crate::glob::matches(pattern, &key) && found.insert(key) {
                        *found_bytes += length + size_of::<Box<[u8]>>();
                    }
                }
                if *found_bytes > *bytes_max {
                    let text = format!("ERR the names that match take more than {bytes_max} bytes; use SCAN");
                    return Turn::End(Outcome::Failed(Said::of(text)));
                }
                match cursor {
                    0 => Turn::End(Outcome::Names(std::mem::take(found).into_iter().collect())),
                    cursor => Turn::Ask(Ask::Scan { cursor, count: NAMES_PER_STEP }),
                }
            }
        }
    }
}

fn unexpected() -> Turn {
    Turn::End(Outcome::Failed(Said::of("ERR the store gave an answer to something else")))
}

/// A new end of a key's life; if that is past, there is no key.
pub(super) fn live(key: Box<[u8]>, until_ms: u64, now_ms: u64) -> Ask {
    if until_ms <= now_ms {
        return Ask::Delete { key, old: kv::ask::Old::Ignored };
    }
    Ask::Live { key, lifetime: Lifetime::UntilMs(until_ms) }
}
