//! A store in plain memory: for tests, and as the yardstick of what the protocol itself costs. It forgets
//! everything.

use kv::ask::{
    Answer, Ask, Bytes, Description, Figures, Keys, Lifetime, Old, Range, Refused, Told, Value, When,
};
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

#[derive(Clone, Debug)]
struct Held {
    value: Value,
    until_ms: Option<u64>,
}

/// A store in memory. What is asked is done when it is driven next.
#[derive(Debug, Default)]
pub struct MemoryKeys {
    /// By a number made of the key, which is the place of a scan, and the key.
    held: BTreeMap<(u64, Box<[u8]>), Held>,
    asked: Vec<(u64, Ask)>,
    now_ms: u64,
    given_bytes: u64,
    flushes: u64,
    /// Values of this size and more find no space.
    pub space_bytes: Option<u64>,
    /// Keys that begin so are damaged.
    pub damaged: Option<Box<[u8]>>,
}

fn place_of(key: &[u8]) -> (u64, Box<[u8]>) {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    // Scans begin at 0, which is also what they end with.
    (hasher.finish().max(1), key.into())
}

impl MemoryKeys {
    fn get(&mut self, key: &[u8]) -> Option<&mut Held> {
        let place = place_of(key);
        let now_ms = self.now_ms;
        if self.held.get(&place)?.until_ms.is_some_and(|until_ms| until_ms <= now_ms) {
            self.held.remove(&place);
        }
        self.held.get_mut(&place)
    }

    fn set(
        &mut self,
        key: &[u8],
        value: Value,
        when: When,
        lifetime: Lifetime,
        old: Old,
    ) -> Result<Answer, Refused> {
        let value_bytes = value.len();
        if self.space_bytes.is_some_and(|space_bytes| value_bytes >= space_bytes) {
            return Err(Refused::NoSpace { needed_bytes: value_bytes, free_bytes: 0 });
        }
        let before = self.get(key).cloned();
        let stored = match when {
            When::Always => true,
            When::IfAbsent => before.is_none(),
            When::IfPresent => before.is_some(),
        };
        if stored {
            let until_ms = until(lifetime, before.as_ref().and_then(|before| before.until_ms));
            self.given_bytes += value_bytes;
            self.held.insert(place_of(key), Held { value, until_ms });
        }
        let old = if old == Old::Wanted { before.map(|before| before.value) } else { None };
        Ok(Answer::Set { stored, old })
    }

    fn scan(&self, cursor: u64, count: u32) -> Answer {
        let count = usize::try_from(count.max(1)).unwrap_or(usize::MAX);
        let mut keys = Vec::new();
        let mut last = cursor;
        for (place, key) in self.held.range((cursor, Box::from(&[][..]))..).map(|(place, _)| place) {
            if keys.len() >= count && *place != last {
                return Answer::Scanned { cursor: *place, keys };
            }
            last = *place;
            keys.push(key.clone());
        }
        Answer::Scanned { cursor: 0, keys }
    }

    fn carry_out(&mut self, ask: Ask) -> Result<Answer, Refused> {
        if let Some(damaged) = &self.damaged
            && key_of(&ask).is_some_and(|key| key.starts_with(damaged))
        {
            return Err(Refused::Damaged { what: "a test says so".into() });
        }
        Ok(match ask {
            Ask::Set { key, value, when, lifetime, old } => self.set(&key, value, when, lifetime, old)?,
            Ask::Get { key, range, lifetime } => Answer::Value(self.get(&key).map(|held| {
                if let Some(lifetime) = lifetime {
                    held.until_ms = until(lifetime, held.until_ms);
                }
                part_of(&held.value, range)
            })),
            Ask::Describe { key } => Answer::Described(self.get(&key).map(|held| describe(held))),
            Ask::Add { key, by } => {
                let sum = kv::ask::sum(self.get(&key).map(|held| &held.value), by)?;
                let value = Value::new(sum.to_string().as_bytes());
                self.set(&key, value, When::Always, Lifetime::AsBefore, Old::Ignored)?;
                Answer::Sum(sum)
            }
            Ask::Append { key, tail } => {
                let mut value = self.get(&key).map(|held| held.value.clone()).unwrap_or_default();
                tail.parts().iter().for_each(|part| value.push(part.clone()));
                let length = value.len();
                self.set(&key, value, When::Always, Lifetime::AsBefore, Old::Ignored)?;
                Answer::Length(length)
            }
            Ask::LiveIf { key, until_ms, conditions } => {
                let holds = |held: &&mut Held| {
                    conditions.iter().all(|condition| condition.holds(held.until_ms, until_ms))
                };
                let held = self.get(&key).filter(holds);
                let stored = held.map(|held| held.until_ms = Some(until_ms)).is_some();
                // Whose time is up is gone.
                self.get(&key);
                Answer::Set { stored, old: None }
            }
            Ask::Delete { key, old } => {
                let before = self.get(&key).is_some().then(|| self.held.remove(&place_of(&key))).flatten();
                let was_there = before.is_some();
                let old = if old == Old::Wanted { before.map(|before| before.value) } else { None };
                Answer::Deleted { was_there, old }
            }
            Ask::Live { key, lifetime } => Answer::Described(self.get(&key).map(|held| {
                let before = describe(held);
                held.until_ms = until(lifetime, held.until_ms);
                before
            })),
            Ask::Scan { cursor, count } => self.scan(cursor, count),
            Ask::Count => Answer::Count(u64::try_from(self.held.len()).unwrap_or(u64::MAX)),
            Ask::Clear => {
                self.held.clear();
                Answer::Done
            }
            Ask::Flush => {
                self.flushes += 1;
                Answer::Done
            }
        })
    }
}

fn key_of(ask: &Ask) -> Option<&[u8]> {
    match ask {
        Ask::Set { key, .. }
        | Ask::Get { key, .. }
        | Ask::Describe { key }
        | Ask::Delete { key, .. }
        | Ask::Add { key, .. }
        | Ask::Append { key, .. }
        | Ask::Live { key, .. }
        | Ask::LiveIf { key, .. } => Some(key),
        Ask::Scan { .. } | Ask::Count | Ask::Clear | Ask::Flush => None,
    }
}

fn describe(held: &Held) -> Description {
    Description { value_bytes: held.value.len(), until_ms: held.until_ms }
}

fn until(lifetime: Lifetime, before: Option<u64>) -> Option<u64> {
    match lifetime {
        Lifetime::Forever => None,
        Lifetime::AsBefore => before,
        Lifetime::UntilMs(until_ms) => Some(until_ms),
    }
}

fn part_of(value: &Value, range: Range) -> Value {
    if range == Range::Whole {
        return value.clone();
    }
    let (first, length) = range.within(value.len());
    let mut part = Value::default();
    value.pieces(first, length, |piece| part.push(Bytes::copy_from_slice(piece)));
    part
}

impl Keys for MemoryKeys {
    fn start(&mut self, tag: u64, ask: Ask) {
        self.asked.push((tag, ask));
    }

    fn drive(&mut self, now_ms: u64, told: &mut Vec<Told>) {
        self.now_ms = now_ms;
        for (tag, ask) in std::mem::take(&mut self.asked) {
            let answer = self.carry_out(ask);
            told.push(Told { tag, answer });
        }
    }

    fn figures(&self) -> Figures {
        let under_way = self.asked.len();
        Figures {
            key_count: u64::try_from(self.held.len()).unwrap_or(u64::MAX),
            live_bytes: self.held.values().map(|held| held.value.len()).sum(),
            given_bytes: self.given_bytes,
            flush_count: self.flushes,
            under_way_count: u64::try_from(under_way).unwrap_or(u64::MAX),
            ..Figures::default()
        }
    }
}
