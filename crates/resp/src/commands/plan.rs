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
    /// Several, one after the other. Nobody else changes its key in between.
    Steps(Steps),
    /// Nothing is asked, or what is asked is not waited for.
    Now(Outcome, Option<Ask>),
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
    /// How many.
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

/// Whether a new lifetime is taken.
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

/// Several questions, one after the other.
#[derive(Debug)]
pub enum Steps {
    /// Another lifetime, on conditions.
    Expire {
        /// The key.
        key: Box<[u8]>,
        /// The new end.
        until_ms: u64,
        /// The conditions, all of which must hold.
        conditions: Vec<Condition>,
        /// The time.
        now_ms: u64,
        /// Whether they held.
        held: bool,
    },
    /// A number that is added to another one.
    Add {
        /// The key.
        key: Box<[u8]>,
        /// What is added.
        by: i64,
        /// What it became.
        sum: Option<i64>,
    },
    /// Bytes that are put behind others.
    Append {
        /// The key.
        key: Box<[u8]>,
        /// The bytes.
        tail: Value,
        /// How long it became.
        length: Option<u64>,
    },
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
        Refused::Busy => "BUSY",
        Refused::Key { .. } | Refused::TooLarge { .. } => "ERR",
        Refused::Damaged { .. } => "ERR DAMAGED",
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
            Answer::Count(count) => integer(count),
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

impl Condition {
    /// Whether it holds for what is there now.
    fn holds(self, now: Option<u64>, new_ms: u64) -> bool {
        match self {
            Self::IfNone => now.is_none(),
            Self::IfSome => now.is_some(),
            Self::IfLater => now.is_some_and(|now| new_ms > now),
            Self::IfSooner => now.is_none_or(|now| new_ms < now),
        }
    }
}

impl Steps {
    /// The key that nobody else may change meanwhile.
    pub fn key(&self) -> Option<&[u8]> {
        match self {
            Self::Expire { key, .. } | Self::Add { key, .. } | Self::Append { key, .. } => Some(key),
            Self::Names { .. } => None,
        }
    }

    /// What is asked first.
    pub fn first(&self) -> Ask {
        match self {
            Self::Expire { key, .. } => Ask::Describe { key: key.clone() },
            Self::Add { key, .. } | Self::Append { key, .. } => {
                Ask::Get { key: key.clone(), range: kv::ask::Range::Whole, lifetime: None }
            }
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
            Self::Expire { held: true, .. } => Turn::End(Shape::WasThere.outcome(Ok(answer))),
            Self::Expire { key, until_ms, conditions, now_ms, held } => {
                let Answer::Described(described) = answer else { return unexpected() };
                *held = described.is_some_and(|described| {
                    conditions.iter().all(|condition| condition.holds(described.until_ms, *until_ms))
                });
                if !*held {
                    return Turn::End(Outcome::Integer(0));
                }
                Turn::Ask(live(key.clone(), *until_ms, *now_ms))
            }
            Self::Add { key, by, sum } => match (*sum, answer) {
                (Some(sum), _) => Turn::End(Outcome::Integer(sum)),
                (None, Answer::Value(value)) => add(key, *by, sum, value),
                (None, _) => unexpected(),
            },
            Self::Append { key, tail, length } => match (*length, answer) {
                (Some(length), _) => Turn::End(integer(length)),
                (None, Answer::Value(value)) => {
                    let mut value = value.unwrap_or_default();
                    tail.parts().iter().for_each(|part| value.push(part.clone()));
                    *length = Some(value.len());
                    Turn::Ask(set_as_before(key, value))
                }
                (None, _) => unexpected(),
            },
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

fn set_as_before(key: &[u8], value: Value) -> Ask {
    let (when, lifetime, old) = (kv::ask::When::Always, Lifetime::AsBefore, kv::ask::Old::Ignored);
    Ask::Set { key: key.into(), value, when, lifetime, old }
}

/// A new end of a key's life; if that is past, there is no key.
pub(super) fn live(key: Box<[u8]>, until_ms: u64, now_ms: u64) -> Ask {
    if until_ms <= now_ms {
        return Ask::Delete { key, old: kv::ask::Old::Ignored };
    }
    Ask::Live { key, lifetime: Lifetime::UntilMs(until_ms) }
}

fn add(key: &[u8], by: i64, sum: &mut Option<i64>, value: Option<Value>) -> Turn {
    let failed = |said: Said| Turn::End(Outcome::Failed(said));
    let now = match &value {
        None => Some(0),
        Some(value) if value.len() <= 20 => crate::wire::number(&value.to_vec()),
        Some(_) => None,
    };
    let Some(now) = now else { return failed(super::NOT_AN_INTEGER) };
    let Some(new) = now.checked_add(by) else {
        return failed(Said::of("ERR increment or decrement would overflow"));
    };
    *sum = Some(new);
    Turn::Ask(set_as_before(key, Value::new(new.to_string().as_bytes())))
}
