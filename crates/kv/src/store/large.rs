//! Values: reading them, whole or in parts, and writing those that are larger than a record.

use super::operation::{Loading, Operation, Phase, Storing, Want};
use super::{Flight, Store};
use crate::ask::{Refused, Value};
use crate::hash::KeyHash;
use crate::layout::{Head, Kind, Malformed, Manifest, Place, record_bytes};
use crate::log::{FRONT, New, Wait};
use crate::numbers::{narrow, short, small, wide};
use crate::planted::{Planted, planted};

/// Parts of one value that are read at a time.
const PARTS_AT_A_TIME: u32 = 4;
/// How often parts are looked for again because compaction moved them.
const RETRIES_MAX: u32 = 1000;

/// The line of a part in a summary: its value's number and its own.
pub(super) fn part_hash(id: u64, index: u32) -> KeyHash {
    KeyHash { main: id, more: index }
}

fn value_of<'a>(bytes: &'a [u8], place: Place, key: &[u8]) -> Result<&'a [u8], Malformed> {
    let (head, found) = Head::decode(bytes, place)?;
    if found != key {
        return Err(Malformed::Elsewhere);
    }
    if planted(Planted::ValueUnverified) {
        return Ok(head.value_verified(bytes).unwrap_or_default());
    }
    head.value(bytes)
}

impl Store {
    /// Bytes of a value of which the client wants `(first, length)`.
    fn wanted(&self, operation: &Operation, value_bytes: u64) -> (u64, u64) {
        match &operation.want {
            Want::Get { range, .. } => range.within(value_bytes),
            // A large value stays where it is when its lifetime changes.
            Want::Live { .. } | Want::LiveIf { .. } => (0, 0),
            Want::Set { .. }
            | Want::Delete { .. }
            | Want::Describe
            | Want::Add { .. }
            | Want::Append { .. } => (0, value_bytes),
        }
    }

    /// Reads the value that is there; `read` is its record, if that was read already.
    pub(super) fn load(&mut self, id: u32, mut operation: Box<Operation>, read: Option<&[u8]>) {
        let Some(meta) = operation.current else { return self.execute(id, operation) };
        if meta.kind == Kind::Large {
            let (first, length) = self.wanted(&operation, meta.value_bytes);
            let part = self.geometry().part_bytes();
            let number = |at: u64| short(narrow(at));
            let end = if length == 0 { 0 } else { number((first + length).div_ceil(part)) };
            let first = if length == 0 { 0 } else { number(first / part) };
            if !self.may_load(id, &mut operation, u64::from(end - first) * part) {
                return self.park(id, operation, Phase::Turn);
            }
            let mut parts = Vec::new();
            parts.resize_with(small(end - first), || None);
            operation.loading = Loading { first, end, next: first, parts, ..Loading::default() };
            return self.load_more(id, operation);
        }
        let place = Place { sequence: self.sequence_at(meta.address), address: meta.address };
        if let Some(bytes) = read.or_else(|| self.in_memory(place)) {
            match value_of(bytes, place, &operation.key) {
                Ok(value) => operation.loaded = Some(Value::new(value)),
                Err(_) => return self.value_damaged(id, &operation, meta.address),
            }
            if let Some(record) = read.and_then(|bytes| bytes.get(..narrow(meta.taken_bytes))) {
                self.kept.keep(place.address, place.sequence, record);
            }
            return self.execute(id, operation);
        }
        let flight = Flight::Operation { id, part: 0, address: meta.address };
        self.traffic.read(flight, meta.address, meta.taken_bytes);
        self.park(id, operation, Phase::Value);
    }

    /// Whether a large value may be read now; if not, its turn comes when others are done with. Whoever asks
    /// for many of them at once, and does not take them, must not fill the memory.
    fn may_load(&mut self, id: u32, operation: &mut Operation, bytes: u64) -> bool {
        if operation.loading_bytes > 0 || bytes == 0 {
            return true;
        }
        operation.loading_bytes = bytes;
        let at_once = self.work.awaits_turn.is_empty() && self.fits_beside(bytes);
        if at_once {
            self.work.loading_bytes += bytes;
        } else {
            self.work.awaits_turn.push_back((id, bytes));
        }
        at_once
    }

    /// Whether a value of so many bytes may be read beside those that are; one alone always may.
    fn fits_beside(&self, bytes: u64) -> bool {
        let loading = self.work.loading_bytes;
        loading == 0 || loading + bytes <= self.options.loading_bytes_max
    }

    /// A large value is done with: it is the turn of those that fit now.
    pub(super) fn loaded(&mut self, bytes: u64) {
        self.work.loading_bytes -= bytes;
        while let Some(&(id, bytes)) = self.work.awaits_turn.front()
            && self.fits_beside(bytes)
        {
            self.work.awaits_turn.pop_front();
            self.work.loading_bytes += bytes;
            self.work.ready.push_back(id);
        }
    }

    fn value_damaged(&mut self, id: u32, operation: &Operation, address: u64) {
        self.figures.damaged_count += 1;
        let what = format!("the value at byte {address} cannot be read as what it should be");
        self.refuse(id, operation, Refused::Damaged { what: what.into() });
    }

    /// A record that was read for its value has come.
    pub(super) fn value_read(
        &mut self,
        id: u32,
        mut operation: Box<Operation>,
        part: u32,
        address: u64,
        bytes: Option<&[u8]>,
    ) {
        let Some(meta) = operation.current else { return self.execute(id, operation) };
        let place = Place { sequence: self.sequence_at(address), address };
        let bytes = bytes.ok_or(Malformed::Magic);
        if meta.kind != Kind::Large {
            if let Ok((record, value)) =
                bytes.and_then(|bytes| Ok((bytes, value_of(bytes, place, &operation.key)?)))
            {
                operation.loaded = Some(Value::new(value));
                if let Some(record) = record.get(..narrow(meta.taken_bytes)) {
                    self.kept.keep(address, place.sequence, record);
                }
                return self.execute(id, operation);
            }
            if !self.index.contains(operation.hash.main, super::find::payload(address))
                && operation.restarts < 100
            {
                operation.restarts += 1;
                return self.look_up(id, operation);
            }
            return self.value_damaged(id, &operation, address);
        }
        operation.loading.in_flight -= 1;
        let key = Manifest::part_key(meta.id, part);
        match bytes.and_then(|bytes| value_of(bytes, place, &key)) {
            Ok(value) => {
                let at = small(part - operation.loading.first);
                operation.loading.parts[at] = Some(Box::from(value));
            }
            Err(_) => {
                let now = self.part_address(meta.id, part);
                if now != Some(address) && now.is_some() && operation.loading.retries < RETRIES_MAX {
                    operation.loading.retries += 1;
                    self.ask_for_part(id, &mut operation, meta.id, part);
                } else {
                    operation.loading.failed = Some(address);
                }
            }
        }
        self.load_more(id, operation);
    }

    fn part_address(&self, id: u64, part: u32) -> Option<u64> {
        self.parts.get(&id)?.get(small(part)).copied().filter(|&address| address != 0)
    }

    /// Asks the volume for a part, or takes it from memory.
    fn ask_for_part(&mut self, id: u32, operation: &mut Operation, value: u64, part: u32) {
        let Some(address) = self.part_address(value, part) else {
            operation.loading.failed = Some(0);
            return;
        };
        let place = Place { sequence: self.sequence_at(address), address };
        if let Some(bytes) = self.log.in_memory(address) {
            match value_of(bytes, place, &Manifest::part_key(value, part)) {
                Ok(found) => {
                    operation.loading.parts[small(part - operation.loading.first)] = Some(Box::from(found));
                }
                Err(_) => operation.loading.failed = Some(address),
            }
            return;
        }
        let value_bytes = operation.current.map_or(0, |meta| meta.value_bytes);
        let part_bytes = self.geometry().part_bytes();
        let length = part_bytes.min(value_bytes.saturating_sub(u64::from(part) * part_bytes));
        self.traffic.read(Flight::Operation { id, part, address }, address, record_bytes(12, narrow(length)));
        operation.loading.in_flight += 1;
    }

    /// Asks for further parts, or goes on when all are there.
    fn load_more(&mut self, id: u32, mut operation: Box<Operation>) {
        let value = operation.current.map_or(0, |meta| meta.id);
        let is_forgotten = self.is_forgotten(&operation);
        if is_forgotten {
            operation.loading.end = operation.loading.next;
        }
        while operation.loading.failed.is_none()
            && operation.loading.next < operation.loading.end
            && operation.loading.in_flight < PARTS_AT_A_TIME
        {
            let part = operation.loading.next;
            operation.loading.next += 1;
            self.ask_for_part(id, &mut operation, value, part);
        }
        if operation.loading.in_flight > 0 {
            return self.park(id, operation, Phase::Value);
        }
        if is_forgotten {
            return self.refuse(id, &operation, Refused::Forgotten);
        }
        if let Some(address) = operation.loading.failed {
            return self.value_damaged(id, &operation, address);
        }
        let mut all = Value::default();
        for part in std::mem::take(&mut operation.loading.parts) {
            all.push(part.unwrap_or_default());
        }
        operation.loaded = Some(all);
        self.execute(id, operation);
    }

    /// Where the bytes that were loaded begin in the value.
    pub(super) fn loaded_from(&self, operation: &Operation) -> u64 {
        match operation.current {
            Some(meta) if meta.kind == Kind::Large => {
                u64::from(operation.loading.first) * self.geometry().part_bytes()
            }
            Some(_) | None => 0,
        }
    }

    /// Writes what is left of the parts of a large value, then waits until they are durable.
    pub(super) fn store_parts(&mut self, operation: &mut Operation) -> Result<(), Wait> {
        let Want::Set { value, .. } = &operation.want else { return Ok(()) };
        let value_bytes = value.len();
        let part_bytes = self.header.geometry.part_bytes();
        let count = short(narrow(value_bytes.div_ceil(part_bytes)));
        let storing = operation.storing.get_or_insert_with(|| {
            self.marks.next_value += 1;
            Storing { id: self.marks.next_value - 1, next: 0, durable: false }
        });
        let mut part = Vec::new();
        while storing.next < count {
            part.clear();
            let first = u64::from(storing.next) * part_bytes;
            value.pieces(first, part_bytes.min(value_bytes - first), |piece| part.extend_from_slice(piece));
            let new = New {
                kind: Kind::Part,
                hash: part_hash(storing.id, storing.next),
                seq: None,
                until_ms: 0,
                key: &Manifest::part_key(storing.id, storing.next),
                value: &part,
                owns: None,
            };
            let (address, _) = self.log.append(FRONT, &mut self.slots, &new)?;
            let slot = self.header.geometry.slot_of(address);
            let taken = record_bytes(12, part.len());
            self.slots.lives(slot, Kind::Part, taken);
            operation.promised_bytes = operation.promised_bytes.saturating_sub(crate::slots::cost(taken));
            self.marks.promised_bytes = self.marks.promised_bytes.saturating_sub(crate::slots::cost(taken));
            self.parts.entry(storing.id).or_default().push(address);
            storing.next += 1;
        }
        Ok(())
    }

    /// A record takes the place of another one: if that one was kept, this one is.
    pub(super) fn keep_instead(&mut self, old: u64, new: u64, taken_bytes: u64) {
        if self.kept.has(old) {
            let sequence = self.sequence_at(new);
            let record = self.log.in_memory(new).and_then(|bytes| bytes.get(..narrow(taken_bytes)));
            if let Some(record) = record {
                self.kept.keep(new, sequence, record);
            }
        }
    }

    /// The parts of a value that nobody names count no longer.
    pub(super) fn drop_parts(&mut self, id: u64, value_bytes: u64) {
        let part_bytes = self.geometry().part_bytes();
        for (at, address) in self.parts.remove(&id).into_iter().flatten().enumerate() {
            if address != 0 {
                let length = part_bytes.min(value_bytes.saturating_sub(wide(at) * part_bytes));
                let slot = self.geometry().slot_of(address);
                self.slots.dies(slot, Kind::Part, record_bytes(12, narrow(length)));
            }
        }
    }

    /// What was written of a value that will not be.
    pub(super) fn abandon_parts(&mut self, operation: &Operation) {
        if let (Some(storing), Want::Set { value, .. }) = (&operation.storing, &operation.want) {
            self.drop_parts(storing.id, value.len());
        }
    }
}
