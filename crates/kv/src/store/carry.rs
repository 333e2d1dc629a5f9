//! What is done with a key that was found: answers, and new records.

use super::find::{class_of, payload};
use super::operation::{Operation, Phase, Want};
use super::{Course, Store, Sync, Work};
use crate::ask::{
    Answer, Ask, Bytes, Condition, Description, Lifetime, NUMBER_BYTES_MAX, Old, Refused, VALUE_BYTES_MAX,
    Value, When, sum,
};
use crate::blocks::BLOCK_BYTES;
use crate::cache::Meta;
use crate::layout::{Kind, MANIFEST_BYTES, Manifest, Place, record_bytes};
use crate::log::{FRONT, New, Wait};
use crate::numbers::{narrow, wide};
use crate::planted::{Planted, planted};
use crate::slots::cost;
use std::collections::VecDeque;

/// Segments that are emptied at most for one ask that finds no room.
const VICTIMS_AN_ASK: u64 = 16;

/// Times have 48 bits on the volume: until the year 10889.
const UNTIL_MS_MAX: u64 = (1 << 48) - 1;

fn description(meta: &Meta) -> Description {
    Description { value_bytes: meta.value_bytes, until_ms: (meta.until_ms != 0).then_some(meta.until_ms) }
}

/// What is free when a key is gone.
fn frees(meta: &Meta) -> u64 {
    cost(meta.taken_bytes) + if meta.kind == Kind::Large { meta.value_bytes } else { 0 }
}

/// The lifetime of a record: 0 is for ever.
fn until(lifetime: Lifetime, before: Option<&Meta>) -> u64 {
    match lifetime {
        Lifetime::Forever => 0,
        Lifetime::AsBefore => before.map_or(0, |meta| meta.until_ms),
        Lifetime::UntilMs(until) => until.clamp(1, UNTIL_MS_MAX),
    }
}

/// The lifetime that a value gets which stays.
fn renewed(want: &Want) -> Lifetime {
    match want {
        Want::Live { lifetime } | Want::Get { lifetime: Some(lifetime), .. } => *lifetime,
        Want::LiveIf { until_ms, .. } => Lifetime::UntilMs(*until_ms),
        Want::Set { .. }
        | Want::Get { lifetime: None, .. }
        | Want::Describe
        | Want::Delete { .. }
        | Want::Add { .. }
        | Want::Append { .. } => Lifetime::AsBefore,
    }
}

/// Makes a value to be set of what is added or put behind what is there. The key is held: until that is set
/// nobody changes it.
fn compose(operation: &mut Operation, there: Option<Meta>) -> Result<(), Refused> {
    let (value, gives) = match &operation.want {
        Want::Add { .. } if there.is_some_and(|meta| meta.value_bytes > NUMBER_BYTES_MAX) => {
            return Err(Refused::NotANumber);
        }
        Want::Add { by } => {
            let sum = sum(operation.loaded.take().as_ref(), *by)?;
            (Value::new(sum.to_string().as_bytes()), Answer::Sum(sum))
        }
        Want::Append { tail } => {
            let mut value = operation.loaded.take().unwrap_or_default();
            tail.parts().iter().for_each(|part| value.push(part.clone()));
            let value_bytes = value.len();
            if value_bytes > VALUE_BYTES_MAX {
                return Err(Refused::TooLarge { value_bytes, limit_bytes: VALUE_BYTES_MAX });
            }
            (value, Answer::Length(value_bytes))
        }
        Want::Set { .. }
        | Want::Get { .. }
        | Want::Describe
        | Want::Delete { .. }
        | Want::Live { .. }
        | Want::LiveIf { .. } => return Ok(()),
    };
    // Not as before: should its time be up meanwhile, it is up for the sum as well.
    let lifetime = match there.map_or(0, |meta| meta.until_ms) {
        0 => Lifetime::Forever,
        until_ms => Lifetime::UntilMs(until_ms),
    };
    operation.want = Want::Set { value, when: When::Always, lifetime, old: Old::Ignored };
    operation.gives = Some(gives);
    Ok(())
}

impl Store {
    /// Does what was asked, now that what is there is known.
    pub(super) fn execute(&mut self, id: u32, mut operation: Box<Operation>) {
        let there = operation.current.filter(|meta| self.is_there(meta));
        if there.is_none() {
            // Its time was up while it was read.
            operation.loaded = None;
        }
        if let Err(refused) = compose(&mut operation, there) {
            return self.refuse(id, &operation, refused);
        }
        let holds = |meta: Meta, until_ms: u64, conditions: &[Condition]| {
            let now = (meta.until_ms != 0).then_some(meta.until_ms);
            conditions.iter().all(|condition| condition.holds(now, until_ms))
        };
        let old = |operation: &mut Operation, wanted: Old| match wanted {
            Old::Wanted => operation.loaded.take(),
            Old::Ignored => None,
        };
        let answer = match &operation.want {
            Want::Describe => Answer::Described(there.as_ref().map(description)),
            Want::Get { lifetime: None, .. } => self.value_answer(&mut operation, there),
            Want::Get { .. } if there.is_none() => Answer::Value(None),
            Want::Live { .. } if there.is_none() => Answer::Described(None),
            Want::LiveIf { until_ms, conditions }
                if !there.is_some_and(|meta| holds(meta, *until_ms, conditions)) =>
            {
                Answer::Set { stored: false, old: None }
            }
            Want::Delete { .. } if there.is_none() => Answer::Deleted { was_there: false, old: None },
            Want::Set { when, old: wanted, .. }
                if *when == When::IfAbsent && there.is_some()
                    || *when == When::IfPresent && there.is_none() =>
            {
                let wanted = *wanted;
                self.abandon_parts(&operation);
                operation.storing = None;
                Answer::Set { stored: false, old: old(&mut operation, wanted) }
            }
            Want::Get { .. }
            | Want::Live { .. }
            | Want::LiveIf { .. }
            | Want::Delete { .. }
            | Want::Set { .. }
            | Want::Add { .. }
            | Want::Append { .. } => return self.change(id, operation, there),
        };
        self.leave(id, &operation);
        self.tell(operation.tag, Ok(answer));
    }

    fn value_answer(&self, operation: &mut Operation, there: Option<Meta>) -> Answer {
        let (Some(meta), Want::Get { range, .. }) = (there, &operation.want) else {
            return Answer::Value(None);
        };
        let (first, length) = range.within(meta.value_bytes);
        let from = self.loaded_from(operation);
        let loaded = operation.loaded.take().unwrap_or_default();
        if first == from && length == loaded.len() {
            return Answer::Value(Some(loaded));
        }
        let mut some = Value::default();
        loaded.pieces(first.saturating_sub(from), length, |piece| some.push(Bytes::copy_from_slice(piece)));
        Answer::Value(Some(some))
    }

    /// Writes a new record for the key.
    fn change(&mut self, id: u32, mut operation: Box<Operation>, there: Option<Meta>) {
        if self.course == Course::Failed {
            return self.refuse(id, &operation, Refused::ReadOnly);
        }
        // Compaction may have moved the record while this waited.
        let moved = |address: u64| !self.index.contains(operation.hash.main, payload(address));
        let all_damaged = || operation.damaged.iter().copied();
        if operation.current.map(|meta| meta.address).into_iter().chain(all_damaged()).any(moved) {
            operation.restarts += 1;
            return self.look_up(id, operation);
        }
        if operation.promised_bytes == 0
            && operation.storing.is_none()
            && let Err(refused) = self.promise(&mut operation)
        {
            if self.may_find_room(&mut operation) {
                self.park(id, operation, Phase::Room);
                return self.work.unpromised.push_back(id);
            }
            return self.refuse(id, &operation, refused);
        }
        match self.write(&mut operation, there) {
            Ok(Some(cycle)) => {
                self.park(id, operation, Phase::Parts { cycle });
                self.cycles.wake_operation(cycle, id);
            }
            Ok(None) => self.changed(id, operation, there),
            Err(Wait::Writes | Wait::Segments) => {
                self.park(id, operation, Phase::Room);
                self.work.stalled.push_back(id);
            }
        }
    }

    /// Takes what the operation will need off what is free.
    fn promise(&mut self, operation: &mut Operation) -> Result<(), Refused> {
        let key_bytes = operation.key.len();
        let part_bytes = self.geometry().part_bytes();
        let old = operation.current.map_or(0, |meta| cost(meta.taken_bytes));
        let (needed, goes) = match &operation.want {
            Want::Set { value, .. } if value.len() > part_bytes => {
                let whole = value.len() / part_bytes * cost(record_bytes(12, narrow(part_bytes)));
                let rest = cost(record_bytes(12, narrow(value.len() % part_bytes)));
                (whole + rest + 2 * cost(record_bytes(key_bytes, MANIFEST_BYTES)), 0)
            }
            Want::Set { value, .. } => (cost(record_bytes(key_bytes, narrow(value.len()))), old),
            Want::Delete { .. } if planted(Planted::FullForGood) => (cost(record_bytes(key_bytes, 0)), 0),
            // What these write is not larger than what it replaces.
            Want::Delete { .. }
            | Want::Live { .. }
            | Want::LiveIf { .. }
            | Want::Get { .. }
            | Want::Describe
            | Want::Add { .. }
            | Want::Append { .. } => return Ok(()),
        };
        let taken = self.slots.live_bytes() + self.marks.promised_bytes;
        let free_bytes = self.slots.capacity_bytes().saturating_sub(taken);
        if needed > free_bytes + goes {
            return Err(Refused::NoSpace { needed_bytes: needed, free_bytes });
        }
        operation.promised_bytes = needed.saturating_sub(goes);
        self.marks.promised_bytes += operation.promised_bytes;
        Ok(())
    }

    /// Whether who finds no room should wait until some segments are emptied of keys whose time is up.
    fn may_find_room(&mut self, operation: &mut Operation) -> bool {
        if operation.waits_until == 0 {
            self.look_for_over();
            operation.waits_until = self.compaction.victim_count() + VICTIMS_AN_ASK;
        }
        self.compaction.victim_count() < operation.waits_until
            && (!self.compaction.is_idle() || self.may_gain(operation.waits_until))
    }

    /// Appends the record; or says which cycle makes the parts durable that it will name.
    fn write(&mut self, operation: &mut Operation, there: Option<Meta>) -> Result<Option<u64>, Wait> {
        let part_bytes = self.geometry().part_bytes();
        if let Want::Set { value, .. } = &operation.want
            && value.len() > part_bytes
        {
            self.store_parts(operation)?;
            if let Some(storing) = &mut operation.storing
                && !storing.durable
                && !planted(Planted::ManifestBeforeParts)
            {
                storing.durable = true;
                return Ok(Some(self.cycles.want_front()));
            }
        }
        let manifest;
        let flat: Vec<u8>;
        let stays = there.filter(|meta| meta.kind == Kind::Large).map(|meta| (meta.id, meta.value_bytes));
        let (kind, value, lifetime, owns): (Kind, &[u8], Lifetime, Option<(u64, u64)>) = match &operation.want
        {
            Want::Delete { .. } | Want::Describe => (Kind::Tombstone, &[], Lifetime::Forever, None),
            Want::LiveIf { until_ms, .. } if *until_ms <= self.marks.now_ms => {
                (Kind::Tombstone, &[], Lifetime::Forever, None)
            }
            Want::Set { value, lifetime, .. } => match (&operation.storing, value.parts()) {
                (Some(storing), _) => (Kind::Large, &[], *lifetime, Some((storing.id, value.len()))),
                (None, []) => (Kind::Value, &[], *lifetime, None),
                (None, [only]) => (Kind::Value, only, *lifetime, None),
                (None, _) => {
                    flat = value.to_vec();
                    (Kind::Value, &flat, *lifetime, None)
                }
            },
            Want::Live { .. }
            | Want::LiveIf { .. }
            | Want::Get { .. }
            | Want::Add { .. }
            | Want::Append { .. } => match stays {
                Some(stays) => (Kind::Large, &[], renewed(&operation.want), Some(stays)),
                None => {
                    flat = operation.loaded.as_ref().map(Value::to_vec).unwrap_or_default();
                    (Kind::Value, &flat, renewed(&operation.want), None)
                }
            },
        };
        let value = match owns {
            Some((id, value_bytes)) => {
                manifest = Manifest { id, value_bytes }.encode();
                &manifest[..]
            }
            None => value,
        };
        let until_ms = until(lifetime, there.as_ref());
        let owned = owns.map(|(id, _)| id);
        let new =
            New { kind, hash: operation.hash, seq: None, until_ms, key: &operation.key, value, owns: owned };
        let (address, seq) = self.log.append(FRONT, &mut self.slots, &new)?;
        let meta = Meta {
            address,
            kind,
            seq,
            until_ms,
            taken_bytes: record_bytes(operation.key.len(), value.len()),
            value_bytes: owns.map_or(wide(value.len()), |(_, value_bytes)| value_bytes),
            id: owned.unwrap_or(0),
        };
        self.figures.given_bytes += wide(operation.key.len()) + meta.value_bytes;
        self.point(operation, meta);
        Ok(None)
    }

    /// Makes a new record the one that counts.
    fn point(&mut self, operation: &mut Operation, new: Meta) {
        let (hash, entry) = (operation.hash.main, payload(new.address));
        let class = class_of(new.address, new.taken_bytes);
        let counted = |meta: &Meta| matches!(meta.kind, Kind::Value | Kind::Large);
        for address in operation.damaged.drain(..) {
            self.outlived.note(Place { sequence: self.sequence_at(address), address }, operation.hash);
        }
        match operation.current {
            Some(old) => {
                let there = self.index.replace(hash, payload(old.address), entry, class);
                assert!(there, "the operation looked before it wrote");
                let slot = self.geometry().slot_of(old.address);
                self.slots.dies(slot, old.kind, old.taken_bytes);
                self.slots.ends_no_more(slot, old.until_ms, frees(&old));
                if old.kind == Kind::Large && old.id != new.id {
                    self.drop_parts(old.id, old.value_bytes);
                }
                self.marks.key_count -= u64::from(counted(&old));
                if new.kind == Kind::Value {
                    self.keep_instead(old.address, new.address, new.taken_bytes);
                }
            }
            // More than eight keys with the same 33 bits of a secret hash: never, by all that is known. Then
            // the key is on the volume and found after the next start.
            None if self.index.insert(hash, entry, class).is_err() => return,
            None => {}
        }
        let slot = self.geometry().slot_of(new.address);
        self.slots.lives(slot, new.kind, new.taken_bytes);
        self.slots.ends(slot, new.until_ms, frees(&new));
        self.marks.key_count += u64::from(counted(&new));
        self.cache.put(hash, &operation.key, new);
        // What it wrote is not to be abandoned any longer.
        operation.storing = None;
    }

    /// The new record is appended: answers as durability wants it.
    fn changed(&mut self, id: u32, mut operation: Box<Operation>, there: Option<Meta>) {
        let mut old = |wanted: Old| operation.loaded.take().filter(|_| wanted == Old::Wanted);
        let answer = match operation.want {
            Want::Set { .. } if operation.gives.is_some() => operation.gives.take().unwrap_or(Answer::Done),
            Want::LiveIf { .. } => Answer::Set { stored: true, old: None },
            Want::Set { old: wanted, .. } => Answer::Set { stored: true, old: old(wanted) },
            Want::Delete { old: wanted } => Answer::Deleted { was_there: true, old: old(wanted) },
            Want::Live { .. } | Want::Describe | Want::Add { .. } | Want::Append { .. } => {
                Answer::Described(there.as_ref().map(description))
            }
            Want::Get { .. } => self.value_answer(&mut operation, there),
        };
        self.leave(id, &operation);
        self.acknowledge(operation.tag, answer);
    }

    /// Answers a change: at once, or when it is durable.
    pub(super) fn acknowledge(&mut self, tag: u64, answer: Answer) {
        match self.options.sync {
            Sync::Always if !planted(Planted::AnswerBeforeFlush) => self.answer_when_durable(tag, answer),
            Sync::Always | Sync::EverySecond | Sync::OnFlush => self.tell(tag, Ok(answer)),
        }
    }

    /// Goes on with what waits for room, as far as there is some.
    pub(super) fn resume_stalled(&mut self) {
        self.resume_all_of(|work| &mut work.stalled);
        self.resume_all_of(|work| &mut work.unpromised);
    }

    fn resume_all_of(&mut self, queue: fn(&mut Work) -> &mut VecDeque<u32>) {
        while let Some(id) = queue(&mut self.work).pop_front() {
            self.resume(id);
            let queue = queue(&mut self.work);
            if queue.back() == Some(&id) {
                queue.rotate_right(1);
                return;
            }
        }
    }

    /// Refuses a clear that finds no room even for itself.
    fn refuse_clear(&mut self) {
        let waits = self.work.held_back.front().is_some_and(|held| held.ask == Ask::Clear);
        if waits && self.work.count == 0 && self.course != Course::Failed && self.choose_victim().is_none() {
            let Some(held) = self.work.held_back.pop_front() else { return };
            self.tell(held.tag, Err(Refused::NoSpace { needed_bytes: wide(BLOCK_BYTES), free_bytes: 0 }));
        }
    }

    /// Refuses what waits for room that nothing under way can make.
    pub(super) fn refuse_hopeless(&mut self) {
        let failed = self.course == Course::Failed;
        let at_rest = self.traffic.in_flight == 0 && self.compaction.is_idle() && self.cycles.is_idle();
        if !failed && (!at_rest || self.work.wants_room() && self.choose_victim().is_some()) {
            return;
        }
        let waiting = self.work.unpromised.pop_front().or_else(|| self.work.stalled.pop_front());
        let Some(id) = waiting else { return self.refuse_clear() };
        let Some(operation) = self.take_operation(id) else { return };
        let refused = if failed {
            Refused::ReadOnly
        } else {
            Refused::NoSpace { needed_bytes: operation.promised_bytes, free_bytes: 0 }
        };
        self.refuse(id, &operation, refused);
    }
}
