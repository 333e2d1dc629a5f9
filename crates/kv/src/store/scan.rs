//! SCAN, and `Clear`.

use super::{Flight, Store};
use crate::ask::Answer;
use crate::blocks::BLOCK_BYTES;
use crate::cuckoo::{Candidate, Cuckoo};
use crate::hash::KeyHash;
use crate::layout::{HEAD_BYTES, HEAD_BYTES_MAX, Head, Kind, Place, UNIT_BYTES};
use crate::locks::ByHash;
use crate::log::{FRONT, New};
use crate::numbers::{narrow, small, wide};
use block::slab::Key;

/// Keys that one ask gets at most, however many it wants.
const COUNT_MAX: u32 = 4096;
/// How often one ask looks again since compaction moved what it read.
const RETRIES_MAX: u32 = 100;

/// A scan's ask under way.
pub(super) struct Scan {
    tag: u64,
    cursor: u64,
    count: u32,
    next: u64,
    candidates: Vec<Candidate>,
    keys: Vec<Option<Box<[u8]>>>,
    in_flight: usize,
    failed: bool,
    retries: u32,
}

/// The key of a record, if it is there.
fn scanned_key(bytes: &[u8], place: Place, now_ms: u64) -> Result<Option<Box<[u8]>>, ()> {
    let (head, key) = Head::decode(bytes, place).map_err(|_| ())?;
    let over = head.until_ms != 0 && head.until_ms <= now_ms;
    let there = matches!(head.kind, Kind::Value | Kind::Large) && !over;
    Ok(there.then(|| Box::from(key)))
}

impl Store {
    pub(super) fn begin_scan(&mut self, tag: u64, cursor: u64, count: u32) {
        let scan = Box::new(Scan {
            tag,
            cursor,
            count: count.clamp(1, COUNT_MAX),
            next: 0,
            candidates: Vec::new(),
            keys: Vec::new(),
            in_flight: 0,
            failed: false,
            retries: 0,
        });
        let id = self.work.scans.insert(None).index();
        self.work.count += 1;
        self.scan_step(id, scan);
    }

    /// Reads the keys of the next candidates.
    fn scan_step(&mut self, id: u32, mut scan: Box<Scan>) {
        scan.candidates.clear();
        scan.failed = false;
        scan.next = self.index.scan(scan.cursor, small(scan.count), &mut scan.candidates);
        scan.keys = vec![None; scan.candidates.len()];
        for (at, candidate) in scan.candidates.iter().enumerate() {
            let address = candidate.payload * UNIT_BYTES;
            let place = Place { sequence: self.sequence_at(address), address };
            let now_ms = self.marks.now_ms;
            if let Some(bytes) = self.in_memory(place) {
                match scanned_key(bytes, place, now_ms) {
                    Ok(key) => scan.keys[at] = key.filter(|key| self.is_newest(place, key)),
                    Err(()) => scan.failed = true,
                }
                continue;
            }
            let end = self.geometry().slot_start(self.geometry().slot_of(address) + 1);
            let length = wide(HEAD_BYTES_MAX).min(end - address).max(wide(HEAD_BYTES));
            self.traffic.read(Flight::Scan { id, candidate: at, address }, address, length);
            scan.in_flight += 1;
        }
        self.scan_goes_on(id, scan);
    }

    pub(super) fn scan_read(&mut self, id: u32, candidate: usize, address: u64, blocks: Option<&[u8]>) {
        let key = Key::from_index(id);
        if self.work.scans.get(key).is_none() {
            return;
        }
        let Some(mut scan) = self.work.scans[key].take() else { return };
        let place = Place { sequence: self.sequence_at(address), address };
        let bytes = blocks.map(|blocks| &blocks[narrow(address % wide(BLOCK_BYTES))..]);
        match bytes.map_or(Err(()), |bytes| scanned_key(bytes, place, self.marks.now_ms)) {
            Ok(key) => scan.keys[candidate] = key.filter(|key| self.is_newest(place, key)),
            Err(()) => scan.failed = true,
        }
        scan.in_flight -= 1;
        self.scan_goes_on(id, scan);
    }

    /// Whether a key has nothing newer than what the index names at this place.
    fn is_newest(&self, place: Place, key: &[u8]) -> bool {
        self.outlived.is_empty() || !self.outlived.has(place, KeyHash::of(self.header.secret, key))
    }

    fn scan_goes_on(&mut self, id: u32, mut scan: Box<Scan>) {
        if scan.in_flight > 0 {
            self.work.scans[Key::from_index(id)] = Some(scan);
            return;
        }
        if scan.failed && scan.retries < RETRIES_MAX {
            scan.retries += 1;
            return self.scan_step(id, scan);
        }
        // A record that stays unreadable is counted, and its key is not known.
        self.figures.damaged_count += u64::from(scan.failed);
        self.work.scans.release(Key::from_index(id));
        self.work.count -= 1;
        let keys = scan.keys.into_iter().flatten().collect();
        self.tell(scan.tag, Ok(Answer::Scanned { cursor: scan.next, keys }));
    }

    /// Deletes everything, when nothing is under way. False: there is no room for the record of it now.
    pub(super) fn clear(&mut self) -> bool {
        let hash = KeyHash { main: 0, more: 0 };
        let new = New { kind: Kind::Clear, hash, seq: None, until_ms: 0, key: &[], value: &[], owns: None };
        let Ok((_, seq)) = self.log.append(FRONT, &mut self.slots, &new) else { return false };
        self.marks.floor = seq;
        self.marks.doubt_below = 0;
        self.marks.key_count = 0;
        self.index = Cuckoo::new();
        self.cache.clear();
        self.kept.clear();
        self.outlived.clear();
        self.parts = ByHash::default();
        self.compaction.give_up();
        self.slots.clear();
        true
    }
}
