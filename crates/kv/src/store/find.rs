//! Beginning an ask, and finding the newest record of its key.

use super::ahead::AHEAD;
use super::operation::{Loading, Operation, Phase, Want};
use super::{Course, Flight, HeldBack, Store};
use crate::ask::{Answer, Ask, KEY_BYTES_MAX, NUMBER_BYTES_MAX, Range, Refused, VALUE_BYTES_MAX, Value};
use crate::blocks::BLOCK_BYTES;
use crate::cache::Meta;
use crate::cuckoo::Candidates;
use crate::hash::KeyHash;
use crate::layout::{HEAD_BYTES_MAX, Head, Kind, Malformed, Manifest, Place, UNIT_BYTES};
use crate::locks::Mode;
use crate::numbers::{narrow, wide};
use block::slab::Key;

/// How often a search begins anew because compaction moved what it looked at.
const RESTARTS_MAX: u32 = 100;

/// Blocks that a record of each class touches at most; the last class has no more than a part.
const CLASS_BLOCKS: [u64; 16] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 52, 67];

/// The class of a record.
pub(super) fn class_of(address: u64, taken_bytes: u64) -> u8 {
    let block = wide(BLOCK_BYTES);
    let blocks = (address + taken_bytes).div_ceil(block) - address / block;
    let class = CLASS_BLOCKS.iter().position(|&most| blocks <= most).unwrap_or(CLASS_BLOCKS.len() - 1);
    u8::try_from(class).expect("sixteen classes")
}

/// The address in an entry of the index.
pub(super) fn payload(address: u64) -> u64 {
    address / UNIT_BYTES
}

/// What a record says of its key, and whether the key is this.
fn meta_of(bytes: &[u8], place: Place, key: &[u8]) -> Result<Option<Meta>, Malformed> {
    let (head, found) = Head::decode(bytes, place)?;
    if found != key || matches!(head.kind, Kind::Part | Kind::Clear) {
        return Ok(None);
    }
    let mut meta = meta_from(&head, place.address);
    if head.kind == Kind::Large {
        let manifest = Manifest::decode(head.value(bytes)?)?;
        (meta.value_bytes, meta.id) = (manifest.value_bytes, manifest.id);
    }
    Ok(Some(meta))
}

/// What a head says, of which the value is in the same record.
fn meta_from(head: &Head, address: u64) -> Meta {
    Meta {
        address,
        kind: head.kind,
        seq: head.seq,
        until_ms: head.until_ms,
        taken_bytes: head.taken_bytes(),
        value_bytes: head.value_bytes.into(),
        id: 0,
    }
}

impl Store {
    /// Begins an ask, or holds it back behind a `Clear` that has to wait.
    fn admit(&mut self, held: HeldBack) {
        let HeldBack { tag, ask, hash } = held;
        match ask {
            Ask::Count => self.tell(tag, Ok(Answer::Count(self.marks.key_count))),
            Ask::Flush if self.course == Course::Failed => self.tell(tag, Err(Refused::ReadOnly)),
            Ask::Flush => self.answer_when_durable(tag, Answer::Done),
            // In a store that works it was carried out where it waited.
            Ask::Clear => self.tell(tag, Err(Refused::ReadOnly)),
            Ask::Scan { .. } if self.work.forgotten.contains(&tag) => self.tell(tag, Err(Refused::Forgotten)),
            Ask::Scan { cursor, count } => self.begin_scan(tag, cursor, count),
            Ask::Set { key, value, when, lifetime, old } => {
                let value_bytes = value.len();
                if value_bytes > VALUE_BYTES_MAX {
                    let refused = Refused::TooLarge { value_bytes, limit_bytes: VALUE_BYTES_MAX };
                    return self.tell(tag, Err(refused));
                }
                self.begin(tag, (key, hash), Want::Set { value, when, lifetime, old });
            }
            Ask::Get { key, range, lifetime } => self.begin(tag, (key, hash), Want::Get { range, lifetime }),
            Ask::Describe { key } => self.begin(tag, (key, hash), Want::Describe),
            Ask::Delete { key, old } => self.begin(tag, (key, hash), Want::Delete { old }),
            Ask::Live { key, lifetime } => self.begin(tag, (key, hash), Want::Live { lifetime }),
            Ask::LiveIf { key, until_ms, conditions } => {
                self.begin(tag, (key, hash), Want::LiveIf { until_ms, conditions });
            }
            Ask::Add { key, by } => self.begin(tag, (key, hash), Want::Add { by }),
            Ask::Append { key, tail } => self.begin(tag, (key, hash), Want::Append { tail }),
        }
    }

    /// Clears when nothing else is under way, and goes on with what came behind that.
    pub(super) fn admit_held_back(&mut self) {
        let mut begun = 0;
        while let Some(HeldBack { ask, .. }) = self.work.held_back.front() {
            let failed = self.course == Course::Failed;
            if *ask == Ask::Clear && !failed && (self.work.count > 0 || !self.clear()) {
                return;
            }
            if begun % AHEAD == 0 {
                self.look_ahead();
            }
            begun += 1;
            let Some(held) = self.work.held_back.pop_front() else { return };
            if held.ask == Ask::Clear && !failed {
                self.acknowledge(held.tag, Answer::Done);
            } else {
                self.admit(held);
            }
        }
    }

    fn begin(&mut self, tag: u64, (key, hash): (Box<[u8]>, KeyHash), want: Want) {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return self.tell(tag, Err(Refused::Key { key_bytes: key.len() }));
        }
        if let Want::Get { range, lifetime: None } = want
            && let Some(value) = self.get_kept(&key, hash, range)
        {
            return self.tell(tag, Ok(Answer::Value(value)));
        }
        let operation = Box::new(Operation {
            tag,
            key,
            hash,
            want,
            phase: Phase::Key,
            candidates: Candidates::default(),
            at: 0,
            restarts: 0,
            damaged: Vec::new(),
            current: None,
            loading: Loading::default(),
            loading_bytes: 0,
            loaded: None,
            storing: None,
            gives: None,
            waits_until: 0,
            promised_bytes: 0,
        });
        let mode = operation.mode();
        if mode == Mode::Write && self.course == Course::Failed {
            return self.tell(tag, Err(Refused::ReadOnly));
        }
        let id = self.work.operations.insert(Some(operation)).index();
        self.work.count += 1;
        if self.work.locks.take(hash.main, id, mode) {
            self.resume(id);
        }
    }

    pub(super) fn take_operation(&mut self, id: u32) -> Option<Box<Operation>> {
        let key = Key::from_index(id);
        self.work.operations.get(key)?;
        self.work.operations[key].take()
    }

    /// Leaves an operation until what it waits for has come.
    pub(super) fn park(&mut self, id: u32, mut operation: Box<Operation>, phase: Phase) {
        operation.phase = phase;
        self.work.operations[Key::from_index(id)] = Some(operation);
    }

    /// An operation is over; its key is free for the next.
    pub(super) fn leave(&mut self, id: u32, operation: &Operation) {
        self.marks.promised_bytes -= operation.promised_bytes;
        self.work.operations.release(Key::from_index(id));
        self.work.count -= 1;
        self.loaded(operation.loading_bytes);
        self.work.locks.give(operation.hash.main, operation.mode(), &mut self.work.ready);
    }

    pub(super) fn refuse(&mut self, id: u32, operation: &Operation, refused: Refused) {
        self.abandon_parts(operation);
        self.leave(id, operation);
        self.tell(operation.tag, Err(refused));
    }

    /// Goes on with an operation that has got what it waited for.
    pub(super) fn resume(&mut self, id: u32) {
        let Some(operation) = self.take_operation(id) else { return };
        match operation.phase {
            Phase::Key | Phase::Turn if self.is_forgotten(&operation) => {
                self.refuse(id, &operation, Refused::Forgotten);
            }
            Phase::Key => self.look_up(id, operation),
            Phase::Turn => self.load(id, operation, None),
            Phase::Room | Phase::Parts { .. } => self.execute(id, operation),
            Phase::Candidate | Phase::Value => self.park_again(id, operation),
        }
    }

    /// Whether it only reads, and nobody wants to know.
    pub(super) fn is_forgotten(&self, operation: &Operation) -> bool {
        !self.work.forgotten.is_empty()
            && operation.mode() == Mode::Read
            && self.work.forgotten.contains(&operation.tag)
    }

    fn park_again(&mut self, id: u32, operation: Box<Operation>) {
        let phase = operation.phase;
        self.park(id, operation, phase);
    }

    /// Searches the newest record of the key.
    pub(super) fn look_up(&mut self, id: u32, mut operation: Box<Operation>) {
        operation.loaded = None;
        operation.damaged.clear();
        operation.current = self.cache.get(operation.hash.main, &operation.key);
        if operation.current.is_some() {
            return self.found(id, operation, None);
        }
        operation.candidates = self.index.candidates(operation.hash.main);
        operation.at = 0;
        self.next_candidate(id, operation);
    }

    /// Searches anew what has moved meanwhile. Whoever has no luck for long is refused: what is not found
    /// where it was is not known to be absent.
    fn look_up_again(&mut self, id: u32, mut operation: Box<Operation>) {
        if operation.restarts >= RESTARTS_MAX {
            return self.refuse(id, &operation, Refused::Busy);
        }
        operation.restarts += 1;
        self.look_up(id, operation);
    }

    /// What a GET is told whose record is kept, if nobody works on the key: it waits for nothing, and asks
    /// less of the memory than the cache would. The outer `None`: it has to go the long way.
    fn get_kept(&mut self, key: &[u8], hash: KeyHash, range: Range) -> Option<Option<Value>> {
        if self.marks.doubt_below > 0 || self.work.locks.is_held(hash.main) {
            return None;
        }
        let candidates = self.index.candidates(hash.main);
        for candidate in (0..).map_while(|at| candidates.get(at)) {
            let address = candidate.payload * UNIT_BYTES;
            let place = Place { sequence: self.sequence_at(address), address };
            let Some(record) = self.kept.get(address, place.sequence) else { continue };
            if self.outlived.has(place, hash) {
                continue;
            }
            let Ok((head, found)) = Head::decode_verified(record) else { continue };
            if found != key || head.kind != Kind::Value {
                continue;
            }
            let whole = head.value_verified(record).ok()?;
            let (first, length) = range.within(head.value_bytes.into());
            let value = Value::from_parts([record.slice_ref(&whole[narrow(first)..narrow(first + length)])]);
            return Some(self.is_there(&meta_from(&head, address)).then_some(value));
        }
        None
    }

    /// Looks at the next record that may be the key's.
    fn next_candidate(&mut self, id: u32, mut operation: Box<Operation>) {
        loop {
            let Some(candidate) = operation.candidates.get(operation.at) else {
                // What cannot be read stays beside what is written now, and is noted as outlived.
                let damaged = operation.damaged.first().copied();
                if let Some(address) = damaged.filter(|_| !self.goes_without_before(&operation)) {
                    let what = format!("the record at byte {address} cannot be read as what it should be");
                    self.figures.damaged_count += 1;
                    return self.refuse(id, &operation, Refused::Damaged { what: what.into() });
                }
                return self.found(id, operation, None);
            };
            // It may have moved while the one before it was read.
            if operation.at > 0 && !self.index.contains(operation.hash.main, candidate.payload) {
                return self.look_up_again(id, operation);
            }
            let address = candidate.payload * UNIT_BYTES;
            let place = Place { sequence: self.sequence_at(address), address };
            if self.outlived.has(place, operation.hash) {
                operation.at += 1;
                continue;
            }
            if let Some(bytes) = self.in_memory(place) {
                match meta_of(bytes, place, &operation.key) {
                    Ok(Some(meta)) => return self.matched(id, operation, meta, None),
                    Ok(None) => {}
                    Err(_) => operation.damaged.push(address),
                }
                operation.at += 1;
                continue;
            }
            let block = wide(BLOCK_BYTES);
            let most = CLASS_BLOCKS[usize::from(candidate.class)];
            let end = self.geometry().slot_start(self.geometry().slot_of(address) + 1);
            let length = if operation.needs_value() {
                ((address / block + most) * block).min(end) - address
            } else {
                wide(HEAD_BYTES_MAX).min(((address / block + most) * block).min(end) - address)
            };
            self.traffic.read(Flight::Operation { id, part: 0, address }, address, length);
            return self.park(id, operation, Phase::Candidate);
        }
    }

    /// The record at a place, if it need not be read: it was written just now, or it is kept.
    pub(super) fn in_memory(&mut self, place: Place) -> Option<&[u8]> {
        let written = self.log.in_memory(place.address);
        written.or_else(|| self.kept.get(place.address, place.sequence).map(|record| &record[..]))
    }

    /// The sequence of the segment at an address.
    pub(super) fn sequence_at(&self, address: u64) -> u64 {
        self.slots.get(self.geometry().slot_of(address)).sequence
    }

    /// A read for an operation has ended; without bytes it failed.
    pub(super) fn operation_read(&mut self, id: u32, part: u32, address: u64, blocks: Option<&[u8]>) {
        let Some(operation) = self.take_operation(id) else { return };
        let bytes = blocks.map(|blocks| &blocks[narrow(address % wide(BLOCK_BYTES))..]);
        match operation.phase {
            Phase::Candidate => self.candidate_read(id, operation, address, bytes),
            Phase::Value => self.value_read(id, operation, part, address, bytes),
            Phase::Key | Phase::Turn | Phase::Room | Phase::Parts { .. } => self.park_again(id, operation),
        }
    }

    fn candidate_read(&mut self, id: u32, mut operation: Box<Operation>, address: u64, bytes: Option<&[u8]>) {
        let place = Place { sequence: self.sequence_at(address), address };
        let meta = bytes.map_or(Err(Malformed::Magic), |bytes| meta_of(bytes, place, &operation.key));
        // What compaction moved while it was read is searched again.
        if !self.index.contains(operation.hash.main, payload(address)) {
            return self.look_up_again(id, operation);
        }
        match meta {
            Ok(Some(meta)) => return self.matched(id, operation, meta, bytes),
            Ok(None) => {}
            Err(_) => operation.damaged.push(address),
        }
        operation.at += 1;
        self.next_candidate(id, operation);
    }

    fn matched(&mut self, id: u32, mut operation: Box<Operation>, meta: Meta, bytes: Option<&[u8]>) {
        operation.current = Some(meta);
        self.cache.put(operation.hash.main, &operation.key, meta);
        self.found(id, operation, bytes);
    }

    /// Whether the key is there.
    pub(super) fn is_there(&self, meta: &Meta) -> bool {
        let over = meta.until_ms != 0 && meta.until_ms <= self.marks.now_ms;
        !over && matches!(meta.kind, Kind::Value | Kind::Large)
    }

    /// The newest record of the key is known, or there is none.
    fn found(&mut self, id: u32, mut operation: Box<Operation>, bytes: Option<&[u8]>) {
        let newest = operation.current.map_or(0, |meta| meta.seq);
        if newest < self.marks.doubt_below && !self.goes_without_before(&operation) {
            let what = "records are lost that may be newer than what is there of this key";
            self.figures.damaged_count += 1;
            return self.refuse(id, &operation, Refused::Damaged { what: what.into() });
        }
        let there = operation.current.is_some_and(|meta| self.is_there(&meta));
        let is_too_long = |meta: Meta| meta.value_bytes > NUMBER_BYTES_MAX;
        let is_no_number =
            matches!(operation.want, Want::Add { .. }) && operation.current.is_some_and(is_too_long);
        if self.is_forgotten(&operation) {
            return self.refuse(id, &operation, Refused::Forgotten);
        }
        if there && operation.needs_value() && !is_no_number {
            return self.load(id, operation, bytes);
        }
        operation.loaded = None;
        self.execute(id, operation);
    }

    /// Whether what is asked does not depend on what was there.
    fn goes_without_before(&self, operation: &Operation) -> bool {
        use crate::ask::{Lifetime, Old, When};
        match &operation.want {
            Want::Set { when, lifetime, old, .. } => {
                *when == When::Always && *lifetime != Lifetime::AsBefore && *old == Old::Ignored
            }
            Want::Get { .. }
            | Want::Describe
            | Want::Delete { .. }
            | Want::Live { .. }
            | Want::LiveIf { .. }
            | Want::Add { .. }
            | Want::Append { .. } => false,
        }
    }
}
