//! The store's requests, carried over to a volume: cut into pieces that the volume takes, through slots of
//! its pool.
//!
//! # Invariants
//! - At most [`SHARE_PERCENT`] of the pool's slots are taken; requests wait for them in order.
//! - A flush is begun when it comes: what it must cover has ended before, which is the store's affair.

use block::slab::{Key, Slab};
use block::{Durability, Slot};
use front::{Done, Volume, VolumeError, VolumeRequest};
use kv::blocks::{Buffer, Ended, Fault, Issued, Medium, Request};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::collections::VecDeque;
use std::sync::Arc;

/// Share of the pool's slots that are taken at most; the rest is the engine's.
const SHARE_PERCENT: usize = 50;
/// Largest piece, large enough for full stripes; as front ends have it.
const PIECE_BYTES_MAX: u64 = 1 << 20;
/// How long a wait for the volume lasts at most, before it is looked at again.
const LOOK_NS: u64 = 1_000_000_000;

/// What a request reads into or writes from.
enum Cargo {
    In(Buffer),
    Out(Arc<Buffer>, Durability),
    None,
}

/// A request of the store's.
struct Order {
    tag: u64,
    cargo: Cargo,
    pieces_open: usize,
    result: Result<(), Fault>,
}

/// A part of a request, which waits for slots or is with the volume.
struct Piece {
    order: Key<Order>,
    request: VolumeRequest,
    /// Where it is in the buffer.
    start: usize,
    length: usize,
    slots: Vec<Slot>,
}

/// See the module's documentation.
pub struct Ferry<V> {
    volume: V,
    orders: Slab<Order>,
    pieces: Slab<Piece>,
    waiting: VecDeque<Key<Piece>>,
    slots_taken: usize,
    slots_max: usize,
    orders_open: usize,
    done: Vec<Done>,
    ended: Vec<Ended>,
    /// Something was given to the volume since it was driven last.
    started: bool,
}

fn wide(value: usize) -> u64 {
    u64::try_from(value).expect("a size fits 64 bits")
}

fn narrow(value: u64) -> usize {
    usize::try_from(value).expect("a size of memory fits memory")
}

fn fault_of(error: VolumeError) -> Fault {
    match error {
        VolumeError::Io => Fault::Io,
        VolumeError::NoSpace => Fault::NoSpace,
        VolumeError::ReadOnly => Fault::ReadOnly,
        VolumeError::Shutdown => Fault::Shutdown,
    }
}

impl<V: Volume> Ferry<V> {
    /// To and from this volume, which nobody else uses.
    pub fn new(mut volume: V) -> Self {
        let slots_max = (volume.pool().slot_count() * SHARE_PERCENT / 100).max(1);
        Self {
            volume,
            orders: Slab::default(),
            pieces: Slab::default(),
            waiting: VecDeque::new(),
            slots_taken: 0,
            slots_max,
            orders_open: 0,
            done: Vec::new(),
            ended: Vec::new(),
            started: false,
        }
    }

    /// The volume.
    pub fn volume(&self) -> &V {
        &self.volume
    }

    /// The volume, to be looked after.
    pub fn volume_mut(&mut self) -> &mut V {
        &mut self.volume
    }

    /// The volume, when nothing is under way.
    pub fn into_volume(self) -> V {
        self.volume
    }

    /// Requests that have not ended.
    pub fn orders_open(&self) -> usize {
        self.orders_open
    }

    /// Whether the volume has something that it was not driven for.
    pub fn has_started(&self) -> bool {
        self.started || !self.ended.is_empty()
    }

    /// Takes a request; its end comes from [`Ferry::drive`].
    pub fn start(&mut self, issued: Issued) {
        let Issued { tag, request } = issued;
        self.orders_open += 1;
        let (whole, cargo) = match request {
            Request::Read { offset_bytes, buffer } => ((offset_bytes, wide(buffer.len())), Cargo::In(buffer)),
            Request::Write { offset_bytes, buffer, durability } => {
                ((offset_bytes, wide(buffer.len())), Cargo::Out(buffer, durability))
            }
            Request::Flush => {
                let order = self.order(tag, Cargo::None, 1);
                return self.without_slots(order, VolumeRequest::Flush);
            }
            Request::Discard { offset_bytes, length_bytes } => {
                let durability = Durability::Volatile;
                let order = self.order(tag, Cargo::None, 1);
                let discard = VolumeRequest::Discard { offset_bytes, length_bytes, durability };
                return self.without_slots(order, discard);
            }
        };
        let cuts = self.cuts(whole.0, whole.1);
        if cuts.is_empty() {
            let buffer = if let Cargo::In(buffer) = cargo { Some(buffer) } else { None };
            self.orders_open -= 1;
            self.ended.push(Ended { tag, buffer, result: Ok(()) });
            return;
        }
        let durability = match &cargo {
            Cargo::Out(_, durability) => Some(*durability),
            Cargo::In(_) | Cargo::None => None,
        };
        let order = self.order(tag, cargo, cuts.len());
        for (offset_bytes, length_bytes) in cuts {
            let request = match durability {
                Some(durability) => VolumeRequest::Write { offset_bytes, length_bytes, durability },
                None => VolumeRequest::Read { offset_bytes, length_bytes },
            };
            let (start, length) = (narrow(offset_bytes - whole.0), narrow(length_bytes));
            let piece = Piece { order, request, start, length, slots: Vec::new() };
            let key = self.pieces.insert(piece);
            self.waiting.push_back(key);
        }
        self.send_waiting();
    }

    /// Has the volume work; appends what has ended.
    pub fn drive(&mut self, ended: &mut Vec<Ended>) {
        self.started = false;
        let mut done = std::mem::take(&mut self.done);
        self.volume.drive(&mut done);
        for Done { tag, result } in done.drain(..) {
            self.piece_done(tag, result);
        }
        self.done = done;
        self.send_waiting();
        ended.append(&mut self.ended);
    }

    /// In how many nanoseconds the volume wants to be driven again.
    pub fn idle_for(&self) -> Option<u64> {
        if self.has_started() { Some(0) } else { self.volume.idle_for() }
    }

    /// Sleeps until the volume can go on.
    pub fn sleep(&self) {
        let ns = self.idle_for().unwrap_or(LOOK_NS).min(LOOK_NS);
        let Some(fd) = self.volume.wake_fd().filter(|_| ns > 0) else { return };
        let timeout = Timespec {
            tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(1),
            tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
        };
        // Interrupted or not, the volume is looked at again.
        let _ = rustix::event::poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&timeout));
    }

    /// Pieces that the volume takes: within a unit, and not so large that others find no slots.
    fn cuts(&self, offset_bytes: u64, length_bytes: u64) -> Vec<(u64, u64)> {
        let chunk = wide(self.volume.chunk_bytes());
        let slots = wide(self.slots_max / 4).max(1);
        let piece = (PIECE_BYTES_MAX / chunk).clamp(1, slots) * chunk;
        let end = offset_bytes + length_bytes;
        let mut cuts = Vec::new();
        let mut at = offset_bytes;
        while at < end {
            // To a multiple of the piece's size: so no piece touches more chunks than it has slots for.
            let mut next = (at / piece + 1) * piece;
            if let Some(unit) = self.volume.unit_bytes() {
                next = next.min((at / unit + 1) * unit);
            }
            let next = next.min(end);
            cuts.push((at, next - at));
            at = next;
        }
        cuts
    }

    fn order(&mut self, tag: u64, cargo: Cargo, pieces_open: usize) -> Key<Order> {
        self.orders.insert(Order { tag, cargo, pieces_open, result: Ok(()) })
    }

    fn without_slots(&mut self, order: Key<Order>, request: VolumeRequest) {
        let piece = self.pieces.insert(Piece { order, request, start: 0, length: 0, slots: Vec::new() });
        self.volume.start(piece.index().into(), request, &[]);
        self.started = true;
    }

    /// Gives the volume what waits, as far as there are slots.
    fn send_waiting(&mut self) {
        let chunk = self.volume.chunk_bytes();
        while let Some(&key) = self.waiting.front() {
            let Piece { request, start, length, order, .. } = self.pieces[key];
            let offset_bytes = match request {
                VolumeRequest::Read { offset_bytes, .. } | VolumeRequest::Write { offset_bytes, .. } => {
                    offset_bytes
                }
                VolumeRequest::Flush
                | VolumeRequest::Discard { .. }
                | VolumeRequest::WriteZeroes { .. }
                | VolumeRequest::Cache { .. } => unreachable!("only what needs slots waits for them"),
            };
            let within = narrow(offset_bytes % wide(chunk));
            let count = (within + length).div_ceil(chunk);
            let pool = self.volume.pool();
            if self.slots_taken + count > self.slots_max && self.slots_taken > 0 || pool.free_count() < count
            {
                return;
            }
            let slots: Vec<Slot> =
                (0..count).map(|_| pool.alloc().expect("so many slots are free")).collect();
            if let Cargo::Out(buffer, _) = &self.orders[order].cargo {
                for (index, at, span, from) in spans(within, start, length, chunk) {
                    pool.bytes_mut(slots[index])[at..at + span].copy_from_slice(&buffer[from..from + span]);
                }
            }
            self.volume.start(key.index().into(), request, &slots);
            self.slots_taken += slots.len();
            self.pieces[key].slots = slots;
            self.waiting.pop_front();
            self.started = true;
        }
    }

    fn piece_done(&mut self, tag: u64, result: Result<(), VolumeError>) {
        let key = Key::from_index(u32::try_from(tag).expect("tags are given here"));
        let chunk = self.volume.chunk_bytes();
        let Piece { request, start, length, order, .. } = self.pieces[key];
        let slots = std::mem::take(&mut self.pieces[key].slots);
        self.pieces.release(key);
        let pool = self.volume.pool();
        let order_of = &mut self.orders[order];
        if let (VolumeRequest::Read { offset_bytes, .. }, Cargo::In(buffer), Ok(())) =
            (request, &mut order_of.cargo, result)
        {
            let within = narrow(offset_bytes % wide(chunk));
            for (index, at, span, to) in spans(within, start, length, chunk) {
                buffer[to..to + span].copy_from_slice(&pool.bytes(slots[index])[at..at + span]);
            }
        }
        self.slots_taken -= slots.len();
        slots.into_iter().for_each(|slot| pool.free(slot));
        order_of.result = order_of.result.and(result.map_err(fault_of));
        order_of.pieces_open -= 1;
        if order_of.pieces_open == 0 {
            let (tag, result) = (order_of.tag, order_of.result);
            let buffer = match std::mem::replace(&mut order_of.cargo, Cargo::None) {
                Cargo::In(buffer) => Some(buffer),
                Cargo::Out(..) | Cargo::None => None,
            };
            self.orders.release(order);
            self.orders_open -= 1;
            self.ended.push(Ended { tag, buffer, result });
        }
    }
}

/// The parts of `length` bytes that begin at byte `within` of the first slot and at byte `start` of a
/// buffer: slot, place in it, length, place in the buffer.
fn spans(
    within: usize,
    start: usize,
    length: usize,
    chunk: usize,
) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let end = within + length;
    (0..end.div_ceil(chunk)).map(move |index| {
        let from = within.max(index * chunk);
        let to = end.min((index + 1) * chunk);
        (index, from - index * chunk, to - from, start + from - within)
    })
}

impl<V: Volume> Medium for Ferry<V> {
    fn carry(&mut self, requests: Vec<Issued>) -> Vec<Ended> {
        let count = requests.len();
        requests.into_iter().for_each(|issued| self.start(issued));
        let mut ended = Vec::with_capacity(count);
        loop {
            self.drive(&mut ended);
            if ended.len() >= count {
                return ended;
            }
            self.sleep();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use front::memory::MemoryVolume;

    fn read(tag: u64, offset_bytes: u64, length: usize) -> Issued {
        Issued { tag, request: Request::Read { offset_bytes, buffer: Buffer::new(length) } }
    }

    fn write(tag: u64, offset_bytes: u64, buffer: Buffer) -> Issued {
        let (buffer, durability) = (Arc::new(buffer), Durability::Volatile);
        Issued { tag, request: Request::Write { offset_bytes, buffer, durability } }
    }

    /// Bytes that say where they are.
    fn pattern(seed: u8, blocks: usize) -> Buffer {
        let mut buffer = Buffer::new(blocks * kv::blocks::BLOCK_BYTES);
        buffer.iter_mut().enumerate().for_each(|(at, byte)| *byte = seed ^ (at % 251).to_le_bytes()[0]);
        buffer
    }

    #[test]
    fn what_is_written_is_read_whatever_the_chunks_and_units() {
        for (chunk, slots, unit) in
            [(4096, 4, None), (16384, 8, Some(32768)), (65536, 64, None), (8192, 2, None)]
        {
            let volume = MemoryVolume::new(4 << 20, chunk, slots);
            let mut ferry = Ferry::new(match unit {
                Some(unit) => volume.in_units(unit),
                None => volume,
            });
            let places = [(0, 300), (1_228_800, 1), (1_232_896, 7), (2_097_152 - 4096, 2), (3 << 20, 256)];
            let seeds = 1_u8..;
            let writes = places
                .iter()
                .zip(seeds.clone())
                .map(|((offset, blocks), seed)| write(u64::from(seed), *offset, pattern(seed, *blocks)));
            let ended = ferry.carry(writes.collect());
            assert!(ended.len() == 5 && ended.iter().all(|ended| ended.result.is_ok()));
            let reads = places.iter().zip(seeds).map(|((offset, blocks), seed)| {
                read(u64::from(seed), *offset, blocks * kv::blocks::BLOCK_BYTES)
            });
            for ended in ferry.carry(reads.collect()) {
                let seed = u8::try_from(ended.tag).expect("small");
                let blocks = places[usize::from(seed) - 1].1;
                assert!(
                    ended.buffer.expect("a read has one")[..] == pattern(seed, blocks)[..],
                    "{chunk} {seed}"
                );
            }
            assert_eq!((ferry.slots_taken, ferry.orders_open()), (0, 0));
            assert_eq!(ferry.volume_mut().pool().free_count(), slots);
        }
    }

    #[test]
    fn flushes_and_discards_end_and_refusals_are_told() {
        let mut ferry = Ferry::new(MemoryVolume::new(1 << 20, 4096, 8).into_read_only());
        let discard = Request::Discard { offset_bytes: 0, length_bytes: 1 << 19 };
        let requests = vec![
            Issued { tag: 1, request: Request::Flush },
            Issued { tag: 2, request: discard },
            write(3, 0, pattern(1, 3)),
            read(4, 0, 4096),
        ];
        let mut ended = ferry.carry(requests);
        ended.sort_by_key(|ended| ended.tag);
        let results: Vec<_> = ended.iter().map(|ended| ended.result).collect();
        assert_eq!(results, [Ok(()), Err(Fault::ReadOnly), Err(Fault::ReadOnly), Ok(())]);
    }
}
