//! The writer: appends records to the open segment of each stream, in batches of whole blocks, and knows what
//! is durable.
//!
//! A block that was given to the volume is never written again while its segment is in use. Batches and
//! summaries are numbered in the order in which they are issued; a flush makes durable what had ended before
//! it began.

use crate::blocks::{BLOCK_BYTES, Buffer};
use crate::hash::KeyHash;
use crate::layout::{
    BATCH_BYTES, Batch, Durable, Entry, Footer, Geometry, Head, Kind, Place, STREAMS, UNIT_BYTES,
    summary_bytes,
};
use crate::numbers::{narrow, short, wide};
use crate::planted::{Planted, planted};
use crate::slots::{Slots, Use};
use block::Durability;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Batches and summaries in flight; more would only wait in the volume.
const IN_FLIGHT_MAX: usize = 8;
/// Written batches whose memory is kept.
const SPARE_MAX: usize = IN_FLIGHT_MAX + STREAMS;
/// The stream of what clients write.
pub(crate) const FRONT: usize = 0;
/// The stream of what compaction moves.
pub(crate) const BACK: usize = 1;

/// Why nothing can be appended now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Too much is in flight.
    Writes,
    /// No segment is free.
    Segments,
}

/// A write that the volume is to carry out.
pub(crate) struct Out {
    pub(crate) number: u64,
    pub(crate) address: u64,
    pub(crate) buffer: Arc<Buffer>,
    pub(crate) durability: Durability,
}

/// What is appended. The line in the summary has the hash of the key, or the part's number.
pub(crate) struct New<'a> {
    pub(crate) kind: Kind,
    pub(crate) hash: KeyHash,
    /// None: the next one.
    pub(crate) seq: Option<u64>,
    pub(crate) until_ms: u64,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    /// The large value that a manifest owns.
    pub(crate) owns: Option<u64>,
}

struct Open {
    slot: usize,
    sequence: u64,
    /// Blocks that are issued.
    block: u32,
    entries: Vec<Entry>,
}

struct Stream {
    open: Option<Open>,
    /// The batch that grows; empty if there is none.
    batch: Growing,
    /// What was issued and is not durable: number, sequence, blocks.
    issued: VecDeque<(u64, u64, u32)>,
}

/// A batch that grows in the memory that will be written, so that it is not copied once more.
#[derive(Default)]
struct Growing {
    memory: Vec<u8>,
    /// Where it begins: at a multiple of a block in memory.
    start: usize,
}

impl Growing {
    fn len(&self) -> usize {
        self.memory.len() - self.start
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.start..]
    }

    /// Begins with an empty head, in memory that has room for so many bytes.
    fn begin(&mut self, mut memory: Vec<u8>, bytes: usize) {
        memory.clear();
        memory.reserve(bytes + 2 * BLOCK_BYTES);
        self.start = memory.as_ptr().align_offset(BLOCK_BYTES);
        memory.resize(self.start + BATCH_BYTES, 0);
        self.memory = memory;
    }

    /// Takes what has grown.
    fn take(&mut self) -> Buffer {
        let Self { memory, start } = std::mem::take(self);
        Buffer::from_memory(memory, start)
    }
}

struct Closing {
    slot: usize,
    sequence: u64,
    entries: Vec<Entry>,
    /// Its last batch.
    number: u64,
    /// The write of its summary.
    footer: Option<u64>,
}

struct Flying {
    address: u64,
    buffer: Arc<Buffer>,
}

/// Where the numbers go on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Next {
    pub(crate) batch: u64,
    pub(crate) record: u64,
    pub(crate) sequence: u64,
}

/// The writer.
pub(crate) struct Log {
    geometry: Geometry,
    owner: u64,
    streams: [Stream; STREAMS],
    closing: Vec<Closing>,
    next: Next,
    in_flight: BTreeMap<u64, Flying>,
    /// Segments without a durable beginning, with the number of their first batch.
    begun: VecDeque<(u64, Option<u64>)>,
    durable: Durable,
    out: Vec<Out>,
    /// Memory of batches that were written, to use again.
    spare: Vec<Vec<u8>>,
}

impl Log {
    pub(crate) fn new(geometry: Geometry, owner: u64, next: Next, epoch: u64) -> Self {
        let stream = || Stream { open: None, batch: Growing::default(), issued: VecDeque::new() };
        Self {
            geometry,
            owner,
            streams: [stream(), stream()],
            closing: Vec::new(),
            next,
            in_flight: BTreeMap::new(),
            begun: VecDeque::new(),
            durable: Durable {
                number: next.batch - 1,
                sequences: next.sequence,
                epoch,
                ..Durable::default()
            },
            out: Vec::new(),
            spare: Vec::new(),
        }
    }

    pub(crate) fn next(&self) -> Next {
        self.next
    }

    pub(crate) fn durable(&self) -> Durable {
        self.durable
    }

    pub(crate) fn set_epoch(&mut self, epoch: u64) {
        self.durable.epoch = epoch;
    }

    /// What is to be written, in order.
    pub(crate) fn outgoing(&mut self) -> std::vec::Drain<'_, Out> {
        self.out.drain(..)
    }

    /// Whether something was appended that is not durable.
    pub(crate) fn is_dirty(&self) -> bool {
        self.streams.iter().any(|stream| !stream.batch.is_empty())
            || self.durable.number + 1 < self.next.batch
    }

    /// Lets the batch that was sealed last be durable when it has ended, if all before it is: then no flush
    /// is needed. False: it is not so.
    pub(crate) fn last_is_durable(&mut self) -> bool {
        let last = self.next.batch - 1;
        let alone = self.durable.number + 1 == last;
        match self.out.last_mut().filter(|out| alone && out.number == last) {
            Some(out) => {
                out.durability = Durability::Durable;
                true
            }
            None => false,
        }
    }

    /// Whether something is on its way to the volume.
    pub(crate) fn is_writing(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Whether segments wait for a flush to get their summaries.
    pub(crate) fn wants_flush(&self) -> bool {
        self.closing.iter().any(|closing| closing.footer.is_none())
    }

    /// Every write up to this number has ended.
    pub(crate) fn ended_through(&self) -> u64 {
        self.in_flight.first_key_value().map_or(self.next.batch, |(number, _)| *number) - 1
    }

    /// Whether a cycle may seal batches now.
    pub(crate) fn may_seal(&self) -> bool {
        self.in_flight.len() < IN_FLIGHT_MAX
    }

    /// The sequence of the segment in a slot and the bytes at an address, if they are still in memory.
    pub(crate) fn in_memory(&self, address: u64) -> Option<&[u8]> {
        for stream in &self.streams {
            if let Some(open) = &stream.open {
                let start = self.batch_start(open);
                if address >= start && address < start + wide(stream.batch.len()) {
                    return Some(&stream.batch.bytes()[narrow(address - start)..]);
                }
            }
        }
        self.in_flight.values().find_map(|flying| {
            let end = flying.address + wide(flying.buffer.len());
            (flying.address..end)
                .contains(&address)
                .then(|| &flying.buffer[narrow(address - flying.address)..])
        })
    }

    fn batch_start(&self, open: &Open) -> u64 {
        self.geometry.slot_start(open.slot) + u64::from(open.block) * wide(BLOCK_BYTES)
    }

    /// Appends a record; returns its address and number.
    pub(crate) fn append(
        &mut self,
        stream: usize,
        slots: &mut Slots,
        new: &New<'_>,
    ) -> Result<(u64, u64), Wait> {
        let taken = crate::layout::record_bytes(new.key.len(), new.value.len());
        // What is behind a clear needs no compaction: all of it is free.
        let takes_reserve = stream == BACK || new.kind == Kind::Clear;
        self.make_room(stream, slots, taken, takes_reserve)?;
        let seq = new.seq.unwrap_or(self.next.record);
        self.next.record = self.next.record.max(seq + 1);
        let Stream { open: Some(open), batch, .. } = &mut self.streams[stream] else {
            unreachable!("room was made in a segment");
        };
        if batch.is_empty() {
            let most = narrow(self.geometry.batch_bytes_max().max(wide(BATCH_BYTES) + taken));
            batch.begin(self.spare.pop().unwrap_or_default(), most);
        }
        let slot_start = self.geometry.slot_start(open.slot);
        let offset = u64::from(open.block) * wide(BLOCK_BYTES) + wide(batch.len());
        let address = slot_start + offset;
        let place = Place { sequence: open.sequence, address };
        Head::new(new.kind, seq, new.until_ms, new.key, new.value).append(
            &mut batch.memory,
            place,
            new.key,
            new.value,
        );
        let units = |bytes: u64| short(narrow(bytes / UNIT_BYTES));
        let entry = Entry {
            hash: new.hash,
            seq,
            offset_units: units(offset),
            units: u16::try_from(units(taken)).expect("a record has at most a part"),
            kind: Some(new.kind),
        };
        open.entries.push(entry);
        if let Some(id) = new.owns {
            open.entries.push(Entry { hash: KeyHash { main: id, more: 0 }, kind: None, ..entry });
        }
        slots.present(open.slot, new.kind, seq);
        Ok((address, seq))
    }

    /// Sees to it that a record of so many bytes fits the open batch of a stream, in a slot of those that are
    /// kept for compaction if need be.
    fn make_room(
        &mut self,
        stream: usize,
        slots: &mut Slots,
        taken: u64,
        takes_reserve: bool,
    ) -> Result<(), Wait> {
        // Seal, close, open, and see that it fits: each at most once, and the end of a segment may need both
        // of the first.
        for _ in 0..5 {
            let Some(open) = &self.streams[stream].open else {
                if !self.may_seal() {
                    return Err(Wait::Writes);
                }
                let sequence = self.next.sequence;
                let slot = slots.open(sequence, takes_reserve).ok_or(Wait::Segments)?;
                self.next.sequence += 1;
                self.begun.push_back((sequence, None));
                self.streams[stream].open = Some(Open { slot, sequence, block: 0, entries: Vec::new() });
                continue;
            };
            let batch = wide(self.streams[stream].batch.len().max(BATCH_BYTES)) + taken;
            let end = (u64::from(open.block) * wide(BLOCK_BYTES) + batch).next_multiple_of(wide(BLOCK_BYTES));
            // Behind it there must be room for an empty batch that says that it is the last, and for the
            // summary.
            let needed = end + wide(BLOCK_BYTES) + summary_bytes(open.entries.len() + 2);
            if needed > self.geometry.segment_bytes {
                if !self.may_seal() {
                    return Err(Wait::Writes);
                }
                self.close(stream, slots);
            } else if batch > self.geometry.batch_bytes_max() && !self.streams[stream].batch.is_empty() {
                if !self.may_seal() {
                    return Err(Wait::Writes);
                }
                self.seal(stream, false);
            } else {
                return Ok(());
            }
        }
        unreachable!("a record fits an empty batch of an empty segment");
    }

    /// Ends the open segment of a stream.
    fn close(&mut self, stream: usize, slots: &mut Slots) {
        if self.streams[stream].batch.is_empty() {
            let memory = self.spare.pop().unwrap_or_default();
            self.streams[stream].batch.begin(memory, BATCH_BYTES);
        }
        self.seal(stream, true);
        if let Some(Open { slot, sequence, entries, .. }) = self.streams[stream].open.take() {
            slots.set(slot, Use::Closing);
            let number = self.next.batch - 1;
            self.closing.push(Closing { slot, sequence, entries, number, footer: None });
        }
        if planted(Planted::SummaryBeforeBatches) {
            self.summarize(u64::MAX);
        }
    }

    /// Gives the open batch of a stream to the volume.
    pub(crate) fn seal(&mut self, stream: usize, last: bool) {
        let Stream { open: Some(open), batch, issued } = &mut self.streams[stream] else { return };
        if batch.is_empty() {
            return;
        }
        let number = self.next.batch;
        self.next.batch += 1;
        let address = self.geometry.slot_start(open.slot) + u64::from(open.block) * wide(BLOCK_BYTES);
        let head = Batch {
            owner: self.owner,
            sequence: open.sequence,
            address,
            number,
            used_bytes: short(batch.len()),
            last,
            stream: u8::try_from(stream).expect("two streams"),
            record_limit: self.next.record,
            durable: self.durable,
        };
        let start = batch.start;
        head.encode(&mut batch.memory[start..start + BATCH_BYTES]);
        let buffer = Arc::new(batch.take());
        open.block += short(buffer.len() / BLOCK_BYTES);
        issued.push_back((number, open.sequence, open.block));
        let sequence = open.sequence;
        if let Some(begun) = self.begun.iter_mut().find(|(begun, _)| *begun == sequence) {
            begun.1.get_or_insert(number);
        }
        self.send(number, address, buffer);
    }

    fn send(&mut self, number: u64, address: u64, buffer: Arc<Buffer>) {
        self.in_flight.insert(number, Flying { address, buffer: Arc::clone(&buffer) });
        self.out.push(Out { number, address, buffer, durability: Durability::Volatile });
    }

    /// A write has ended.
    pub(crate) fn ended(&mut self, number: u64, slots: &mut Slots) {
        let flying = self.in_flight.remove(&number);
        // Whoever carried it out may hold it still; then it is not used again.
        let memory = flying.and_then(|flying| Arc::try_unwrap(flying.buffer).ok()).map(Buffer::into_memory);
        self.spare.extend(memory.filter(|_| self.spare.len() < SPARE_MAX));
        self.closing.retain(|closing| {
            let ended = closing.footer == Some(number);
            // What was emptied meanwhile stays so.
            if ended && slots.get(closing.slot).used == Use::Closing {
                slots.set(closing.slot, Use::Closed);
            }
            !ended
        });
    }

    /// Everything up to this number is durable.
    pub(crate) fn made_durable(&mut self, number: u64) {
        self.durable.number = self.durable.number.max(number);
        for (stream, reached) in self.streams.iter_mut().zip(&mut self.durable.reached) {
            while let Some(&(issued, sequence, blocks)) =
                stream.issued.front().filter(|(at, _, _)| *at <= number)
            {
                debug_assert!(issued <= number, "in order");
                *reached = (sequence, blocks);
                stream.issued.pop_front();
            }
        }
        while self.begun.front().is_some_and(|(_, first)| first.is_some_and(|first| first <= number)) {
            self.begun.pop_front();
        }
        self.durable.sequences = self.begun.front().map_or(self.next.sequence, |(sequence, _)| *sequence);
        self.summarize(number);
    }

    /// Writes the summaries of closed segments whose batches have numbers up to this one.
    fn summarize(&mut self, number: u64) {
        let mut ready = Vec::new();
        for closing in
            self.closing.iter_mut().filter(|closing| closing.footer.is_none() && closing.number <= number)
        {
            let start = self.geometry.slot_start(closing.slot);
            let blocks = Footer::encode(self.owner, closing.sequence, start, &closing.entries);
            let address = start + self.geometry.segment_bytes - wide(blocks.len());
            closing.footer = Some(self.next.batch);
            ready.push((self.next.batch, address, Arc::new(Buffer::of(&blocks))));
            self.next.batch += 1;
        }
        for (number, address, buffer) in ready {
            self.send(number, address, buffer);
        }
    }
}
