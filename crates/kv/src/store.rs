//! The store: asks go in, requests to the volume come out, ends of those go in, answers come out.
//!
//! | file | what |
//! |---|---|
//! | `store/operation.rs` | what an ask is while it is under way |
//! | `store/find.rs` | where a key is: cache, index, and the key at its address (K-04) |
//! | `store/carry.rs` | what is done when the key is found: read, set, delete, lifetimes |
//! | `store/large.rs` | values in parts |
//! | `store/scan.rs` | SCAN |
//! | `store/cycle.rs` | flushes, the table of segments, an orderly stop |
//! | `store/compact.rs` | compaction |
//! | `store/outlived.rs` | records that could not be read when their keys were set anew |
//! | `store/recover.rs`, `store/walk.rs`, `store/reading.rs` | creating and opening |
//!
//! Invariants: the index names one record for each key that has one, a tombstone included, and it is the
//! newest, but for those that are known to be outlived; what the index names is in a segment that is in use
//! in the newest durable table, or is newer than that table.

mod ahead;
mod carry;
mod compact;
mod cycle;
mod find;
mod large;
mod operation;
mod options;
mod outlived;
mod reading;
mod recover;
mod scan;
mod walk;

pub use options::{Options, Sync};
pub use recover::{Create, OpenError, create, is_store, open};

use crate::ask::{Ask, Figures, Keys, Refused, Told};
use crate::blocks::{BLOCK_BYTES, Buffer, Ended, Fault, Issued, Request};
use crate::cuckoo::Cuckoo;
use crate::hash::KeyHash;
use crate::kept::Kept;
use crate::known::Known;
use crate::layout::{Geometry, Header};
use crate::locks::{ByHash, Locks};
use crate::log::Log;
use crate::numbers::{narrow, wide};
use crate::slots::Slots;
use block::slab::{Key, Slab};
use compact::Compaction;
use cycle::Cycles;
use operation::Operation;
use outlived::Outlived;
use scan::Scan;
use std::collections::{HashSet, VecDeque};

/// What a request to the volume is for.
#[derive(Clone, Copy, Debug)]
enum Flight {
    /// A read for an operation; the number of the part for large values.
    Operation {
        id: u32,
        part: u32,
        address: u64,
    },
    Scan {
        id: u32,
        candidate: usize,
        address: u64,
    },
    Batch {
        number: u64,
    },
    Flush,
    Table,
    Victim {
        address: u64,
    },
    Discard {
        slot: usize,
    },
}

/// What is under way on the volume.
struct Traffic {
    queue: VecDeque<Issued>,
    flights: Slab<Flight>,
    in_flight: usize,
    ended: VecDeque<Ended>,
    /// Small buffers to use again.
    spare: Vec<Buffer>,
}

/// Buffers of up to this size are used again.
const SPARE_BYTES_MAX: usize = 16 << 10;
const SPARE_COUNT_MAX: usize = 64;

impl Traffic {
    fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            flights: Slab::default(),
            in_flight: 0,
            ended: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    fn issue(&mut self, flight: Flight, request: Request) {
        let tag = u64::from(self.flights.insert(flight).index());
        self.in_flight += 1;
        self.queue.push_back(Issued { tag, request });
    }

    /// Reads the blocks around some bytes; the answer's buffer begins at the block of `address`.
    fn read(&mut self, flight: Flight, address: u64, length: u64) {
        let bytes = Self::around(address, length).1;
        let spare = self.spare.iter().position(|spare| spare.len() == bytes);
        let memory = spare.map(|at| self.spare.swap_remove(at)).unwrap_or_default();
        self.read_into(flight, address, length, memory);
    }

    /// The same into this memory, if it has room.
    fn read_into(&mut self, flight: Flight, address: u64, length: u64, memory: Buffer) {
        let (offset_bytes, bytes) = Self::around(address, length);
        let buffer = memory.of_length(bytes);
        self.issue(flight, Request::Read { offset_bytes, buffer });
    }

    /// Where the blocks around some bytes begin, and their length.
    fn around(address: u64, length: u64) -> (u64, usize) {
        let block = wide(BLOCK_BYTES);
        let start = address / block * block;
        (start, narrow((address + length).next_multiple_of(block) - start))
    }

    fn give_back(&mut self, buffer: Buffer) {
        if buffer.len() <= SPARE_BYTES_MAX && self.spare.len() < SPARE_COUNT_MAX {
            self.spare.push(buffer);
        }
    }
}

/// What holds of the whole store.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// Records with a lower number are deleted.
    floor: u64,
    /// Records with a lower number may be out of date; 0: none.
    doubt_below: u64,
    /// The number of the newest table.
    epoch: u64,
    /// The number of the next large value.
    next_value: u64,
    /// Keys that have a value.
    key_count: u64,
    /// Bytes that operations under way have been promised.
    promised_bytes: u64,
    /// What the last drive said.
    now_ms: u64,
}

/// What becomes of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Course {
    Running,
    /// No new asks; then everything becomes durable, then a last table.
    Stopping,
    Stopped,
    /// A write failed: nothing more is written.
    Failed,
}

/// Everything that is under way for clients.
struct Work {
    operations: Slab<Option<Box<Operation>>>,
    scans: Slab<Option<Box<Scan>>>,
    count: usize,
    locks: Locks,
    /// Operations that have got their key.
    ready: VecDeque<u32>,
    /// Bytes of large values that are being read, and who waits for the end of those, with how many.
    loading_bytes: u64,
    awaits_turn: VecDeque<(u32, u64)>,
    /// Operations that wait for room in the log, in order.
    stalled: VecDeque<u32>,
    /// Operations that have not been promised what they need of the capacity, in order. Nobody else waits
    /// behind them: a deletion gives room.
    unpromised: VecDeque<u32>,
    /// Asks that have not begun: new ones, and those behind a `Clear` that waits for what is under way.
    held_back: VecDeque<HeldBack>,
    /// Asks that nobody wants to know the answers of.
    forgotten: HashSet<u64>,
    told: Vec<Told>,
}

impl Work {
    /// Whether an operation waits for room.
    fn wants_room(&self) -> bool {
        !self.stalled.is_empty() || !self.unpromised.is_empty()
    }

    fn operation(&self, id: u32) -> Option<&Operation> {
        self.operations.get(Key::from_index(id)).and_then(|operation| operation.as_deref())
    }
}

/// An ask that has not begun.
struct HeldBack {
    tag: u64,
    ask: Ask,
    /// Of its key; of what has none it means nothing.
    hash: KeyHash,
}

/// A key-value store on a volume.
pub struct Store {
    header: Header,
    options: Options,
    index: Cuckoo,
    cache: Known,
    kept: Kept,
    outlived: Outlived,
    /// Where the parts of large values are.
    parts: ByHash<u64, Vec<u64>>,
    slots: Slots,
    log: Log,
    work: Work,
    traffic: Traffic,
    cycles: Cycles,
    compaction: Compaction,
    marks: Marks,
    course: Course,
    figures: Figures,
    /// What the volume had gained when the store was opened.
    gained_bytes: u64,
}

impl Store {
    /// Bytes that the volume had gained since the store was opened before; it uses them now.
    pub fn gained_bytes(&self) -> u64 {
        self.gained_bytes
    }

    /// The next request that the volume should carry out.
    pub fn next_request(&mut self) -> Option<Issued> {
        self.traffic.queue.pop_front()
    }

    /// A request has ended. What follows from it happens in the next [`Keys::drive`].
    pub fn ended(&mut self, ended: Ended) {
        self.traffic.ended.push_back(ended);
    }

    /// Whether [`Keys::drive`] has something to do at once.
    pub fn wants_drive(&self) -> bool {
        let work = &self.work;
        let new = work.held_back.front().is_some_and(|held| held.ask != Ask::Clear || work.count == 0);
        // With nothing in flight no end will come that would let these go on.
        let alone = self.traffic.in_flight == 0
            && (work.wants_room() || self.compaction.is_moving() || !self.cycles.is_idle());
        !self.traffic.ended.is_empty() || !work.ready.is_empty() || !work.told.is_empty() || new || alone
    }

    /// When [`Keys::drive`] wants to be called again if nothing happens, in milliseconds since 1970.
    pub fn deadline_ms(&self) -> Option<u64> {
        (self.options.sync == Sync::EverySecond && self.log.is_dirty() && self.course != Course::Failed)
            .then(|| self.cycles.due_ms())
    }

    /// Whether nothing is under way, neither for clients nor on the volume.
    pub fn is_idle(&self) -> bool {
        self.work.count == 0 && self.traffic.in_flight == 0 && !self.wants_drive() && self.cycles.is_idle()
    }

    /// Begins an orderly stop: what is under way ends, new asks are refused, everything becomes durable.
    pub fn stop(&mut self) {
        if self.course == Course::Running {
            self.course = Course::Stopping;
        }
    }

    /// Whether the stop has come to its end, or the store has failed and nothing is under way.
    pub fn is_stopped(&self) -> bool {
        match self.course {
            Course::Stopped => true,
            Course::Failed => self.work.count == 0 && self.traffic.in_flight == 0,
            Course::Running | Course::Stopping => false,
        }
    }

    /// Whether something that is lost may have been newer than what is there: then what may be out of date is
    /// refused as damaged until it is written anew.
    pub fn is_in_doubt(&self) -> bool {
        self.marks.doubt_below > 0
    }

    fn geometry(&self) -> &Geometry {
        &self.header.geometry
    }

    fn tell(&mut self, tag: u64, answer: Result<crate::ask::Answer, Refused>) {
        self.work.told.push(Told { tag, answer });
    }

    /// Gives the volume what the log wants written.
    fn send_log(&mut self) {
        for out in self.log.outgoing() {
            let bytes = wide(out.buffer.len());
            self.figures.written_bytes += bytes;
            let write =
                Request::Write { offset_bytes: out.address, buffer: out.buffer, durability: out.durability };
            self.traffic.issue(Flight::Batch { number: out.number }, write);
        }
    }

    fn take_end(&mut self, ended: Ended) {
        let Ok(index) = u32::try_from(ended.tag) else { return };
        let key = Key::from_index(index);
        if self.traffic.flights.get(key).is_none() {
            return;
        }
        let flight = self.traffic.flights.remove(key);
        self.traffic.in_flight -= 1;
        if let Some(buffer) = &ended.buffer {
            self.figures.read_bytes += wide(buffer.len());
        }
        let bytes = if ended.result.is_ok() { ended.buffer.as_deref() } else { None };
        match flight {
            Flight::Operation { id, part, address } => self.operation_read(id, part, address, bytes),
            Flight::Scan { id, candidate, address } => self.scan_read(id, candidate, address, bytes),
            // The victim keeps the memory for what it reads next.
            Flight::Victim { address } => {
                return self.victim_read(address, ended.buffer.filter(|_| ended.result.is_ok()));
            }
            Flight::Discard { slot } => self.slots.release(slot),
            Flight::Batch { .. } | Flight::Flush | Flight::Table => self.written(flight, ended.result),
        }
        if let Some(buffer) = ended.buffer {
            self.traffic.give_back(buffer);
        }
    }

    fn written(&mut self, flight: Flight, result: Result<(), Fault>) {
        if result.is_err() {
            self.fail();
            return;
        }
        match flight {
            Flight::Batch { number, .. } => self.log.ended(number, &mut self.slots),
            Flight::Flush => self.flushed(),
            Flight::Table => self.table_written(),
            Flight::Operation { .. }
            | Flight::Scan { .. }
            | Flight::Victim { .. }
            | Flight::Discard { .. } => {}
        }
    }

    /// After a failed write nothing is trusted to be written: the store only reads from now on.
    fn fail(&mut self) {
        self.course = Course::Failed;
        self.compaction.give_up();
        let unanswered = self.cycles.give_up();
        self.work.told.extend(unanswered.into_iter().map(|tag| Told { tag, answer: Err(Refused::ReadOnly) }));
    }
}

impl Keys for Store {
    fn start(&mut self, tag: u64, ask: Ask) {
        // Whoever had this tag before may have been told before it was forgotten.
        if !self.work.forgotten.is_empty() {
            self.work.forgotten.remove(&tag);
        }
        match self.course {
            Course::Stopping | Course::Stopped => return self.tell(tag, Err(Refused::Shutdown)),
            Course::Running | Course::Failed => {}
        }
        if self.work.count + self.work.held_back.len() >= self.options.under_way_max {
            return self.tell(tag, Err(Refused::Busy));
        }
        // What an ask means depends on the time, which the next drive tells.
        let hash = KeyHash::of(self.header.secret, ask.key());
        self.work.held_back.push_back(HeldBack { tag, ask, hash });
    }

    fn forget(&mut self, tags: &[u64]) {
        self.work.forgotten.extend(tags);
    }

    fn drive(&mut self, now_ms: u64, told: &mut Vec<Told>) {
        self.marks.now_ms = now_ms;
        loop {
            while let Some(ended) = self.traffic.ended.pop_front() {
                self.take_end(ended);
            }
            self.admit_held_back();
            self.resume_stalled();
            while let Some(id) = self.work.ready.pop_front() {
                self.resume(id);
            }
            self.step_compaction();
            self.step_table();
            self.step_cycle();
            self.send_log();
            self.refuse_hopeless();
            if self.traffic.ended.is_empty() && self.work.ready.is_empty() {
                break;
            }
        }
        if !self.work.forgotten.is_empty() {
            for told in &self.work.told {
                self.work.forgotten.remove(&told.tag);
            }
        }
        told.append(&mut self.work.told);
    }

    fn figures(&self) -> Figures {
        Figures {
            key_count: self.marks.key_count,
            capacity_bytes: self.slots.capacity_bytes(),
            live_bytes: self.slots.live_bytes(),
            index_bytes: self.index.bytes(),
            cache_bytes: self.cache.bytes() + self.kept.bytes(),
            cache_hit_count: self.cache.hit_count,
            cache_miss_count: self.cache.miss_count,
            under_way_count: wide(self.work.count),
            only_reads: self.course == Course::Failed,
            ..self.figures
        }
    }
}
