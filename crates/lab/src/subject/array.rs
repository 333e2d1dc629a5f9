//! An array in this process as what is measured.

use super::snapshot::{Snapshot, copies_as_metadata};
use super::target::{Finished, Part, Sink, Source, Target};
use crate::failure::Failure;
use array::{Array, Done};
use block::{DevIndex, DeviceSet, Durability, Slot};
use device::Counting;
use flash::Counters;
use format::{ArrayConfig, CheckpointKind};
use node::status::{self, Memory};

/// How long to wait for devices before the clock is read again; a completion ends the wait.
pub const WAIT_NS: u64 = 10_000_000;

/// What the payload of unverified writes is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload {
    /// Whatever the buffers hold.
    Any,
    /// Zeros, as null devices need.
    Zeros,
}

#[derive(Default)]
struct Place {
    slots: Vec<Slot>,
    offset_bytes: u64,
    length_bytes: u64,
}

/// An array in this process.
pub struct ArrayTarget<D> {
    array: Array<Counting<D>>,
    /// Reads the clock of simulated devices.
    clock: Option<fn(&D) -> u64>,
    /// Reads the counters of so many simulated devices, the first ones.
    flash: Option<fn(&D, usize) -> Counters>,
    payload: Payload,
    places: Vec<Place>,
    done: Vec<Done>,
    member_count: usize,
    chunk_bytes: u64,
    part_bytes_max: u64,
}

impl<D: DeviceSet> ArrayTarget<D> {
    /// Replays against `array`.
    pub fn new(mut array: Array<Counting<D>>, payload: Payload) -> Self {
        let config = array.engine_ref().store().config;
        let chunk_bytes = config.geometry.chunk_bytes() as u64;
        // One chunk less: a part that starts within a chunk touches one more.
        let slots = array.engine().slots_per_request_max().saturating_sub(1).max(1) as u64;
        Self {
            clock: None,
            flash: None,
            payload,
            places: Vec::new(),
            done: Vec::new(),
            member_count: config.geometry.device_count() + usize::from(config.log_count),
            chunk_bytes,
            part_bytes_max: slots * chunk_bytes,
            array,
        }
    }

    /// Runs against an array over simulated devices, whose clock counts.
    pub fn simulated(
        array: Array<Counting<D>>,
        clock: fn(&D) -> u64,
        flash: fn(&D, usize) -> Counters,
    ) -> Self {
        Self { clock: Some(clock), flash: Some(flash), ..Self::new(array, Payload::Any) }
    }

    /// The array.
    pub fn array(&self) -> &Array<Counting<D>> {
        &self.array
    }

    /// The array, to be run on by itself.
    pub fn array_mut(&mut self) -> &mut Array<Counting<D>> {
        &mut self.array
    }

    /// Rebuilds lost members, in the time of the devices.
    pub fn rebuild(&mut self, lost: &[DevIndex], first_serial: u32) -> Result<(), Failure> {
        let clock = self.clock;
        rebuild_members(&mut self.array, lost, first_serial, |array| {
            clock.map_or(0, |clock| clock(array.devices_ref().inner()))
        })
    }

    /// How long to wait for devices at most: not past the time at which the engine has something to do.
    fn wait_until_due(&self, wait_ns: u64) -> u64 {
        let engine = self.array.engine_ref();
        match (self.clock_ns(), engine.next_deadline_ns()) {
            (Some(now_ns), Some(due_ns)) if due_ns > now_ns => wait_ns.min(due_ns - now_ns),
            (Some(_) | None, Some(_) | None) => wait_ns,
        }
    }

    fn take_slots(&mut self, part: Part) -> bool {
        let first = part.offset_bytes / self.chunk_bytes;
        let count = (part.offset_bytes + part.length_bytes).div_ceil(self.chunk_bytes) - first;
        let place = &mut self.places[part.tag];
        (place.offset_bytes, place.length_bytes) = (part.offset_bytes, part.length_bytes);
        // At most the slots of a part, which fit memory.
        self.array.engine().take_slots(count as usize, &mut place.slots)
    }
}

/// Rebuilds lost members side by side, with serials from `first_serial` on; `clock` tells the time.
pub fn rebuild_members<D: DeviceSet>(
    array: &mut Array<D>,
    lost: &[DevIndex],
    first_serial: u32,
    clock: impl Fn(&Array<D>) -> u64,
) -> Result<(), Failure> {
    let mut open = Vec::new();
    for (&dev, serial) in lost.iter().zip(first_serial..) {
        let tag = array.own_tag();
        array.engine().rebuild(tag, dev, serial);
        open.push(tag);
    }
    let mut answers = Vec::new();
    while !open.is_empty() {
        let now_ns = clock(array);
        array.engine().set_now(now_ns);
        let progress = array.turn();
        array.take_answers(&mut answers);
        for done in answers.drain(..) {
            done.result?;
            open.retain(|&tag| tag != done.tag);
        }
        if !progress {
            array.devices().wait(WAIT_NS);
        }
    }
    Ok(())
}

/// The spans of a range in its chunks: index of the chunk, first and last byte within it, offset in the
/// volume.
fn spans(offset: u64, length: u64, chunk: u64) -> impl Iterator<Item = (usize, std::ops::Range<usize>, u64)> {
    let (first, end) = (offset / chunk, offset + length);
    (first..end.div_ceil(chunk)).map(move |index| {
        let start = index * chunk;
        let (from, to) = (offset.max(start), end.min(start + chunk));
        // A chunk is at most 1 MiB.
        ((index - first) as usize, (from - start) as usize..(to - start) as usize, from)
    })
}

impl<D: DeviceSet> Target for ArrayTarget<D> {
    fn prepare(&mut self, places: usize) {
        self.places.resize_with(places, Place::default);
    }

    fn clock_ns(&self) -> Option<u64> {
        self.clock.map(|clock| clock(self.array.devices_ref().inner()))
    }

    fn volume_bytes(&self) -> u64 {
        self.array.engine_ref().volume_bytes()
    }

    fn part_bytes_max(&self) -> u64 {
        self.part_bytes_max
    }

    fn trims_to_zeros(&self) -> bool {
        true
    }

    fn start_write(&mut self, part: Part, source: Source<'_>) -> bool {
        if !self.take_slots(part) {
            return false;
        }
        let (slots, engine) = (&self.places[part.tag].slots, self.array.engine());
        for (index, span, offset) in spans(part.offset_bytes, part.length_bytes, self.chunk_bytes) {
            let bytes = engine.pool().bytes_mut(slots[index]);
            match self.payload {
                Payload::Any => source(offset, &mut bytes[span]),
                Payload::Zeros => bytes.fill(0),
            }
        }
        engine.write(part.tag as u64, part.offset_bytes, part.length_bytes, slots, Durability::Volatile);
        true
    }

    fn start_read(&mut self, part: Part) -> bool {
        if !self.take_slots(part) {
            return false;
        }
        let slots = &self.places[part.tag].slots;
        self.array.engine().read(part.tag as u64, part.offset_bytes, part.length_bytes, slots);
        true
    }

    fn start_flush(&mut self, tag: usize) -> bool {
        self.array.engine().flush(tag as u64);
        true
    }

    fn start_trim(&mut self, part: Part) -> bool {
        let place = &mut self.places[part.tag];
        if !self.array.engine().take_slots(2, &mut place.slots) {
            return false;
        }
        let edges = [place.slots[0], place.slots[1]];
        let (offset, length) = (part.offset_bytes, part.length_bytes);
        self.array.engine().zero(part.tag as u64, offset, length, edges, Durability::Volatile);
        true
    }

    fn turn(&mut self, now_ns: u64, wait_ns: u64) -> Result<(), Failure> {
        self.array.engine().set_now(now_ns);
        let progress = self.array.turn();
        self.array.take_answers(&mut self.done);
        // What was answered from memory has ended now, not when something else happens.
        if !progress && self.done.is_empty() && wait_ns > 0 {
            let wait_ns = self.wait_until_due(wait_ns);
            self.array.devices().wait(wait_ns);
        }
        Ok(())
    }

    fn pass_to(&mut self, now_ns: u64) -> Result<(), Failure> {
        let due = |array: &Array<Counting<D>>| array.engine_ref().next_deadline_ns();
        while let Some(due_ns) = due(&self.array).filter(|&due_ns| due_ns <= now_ns) {
            self.array.engine().set_now(due_ns);
            // What leaves must be on its way: until it is planned, a newer version takes its place.
            while self.array.turn() {}
            if due(&self.array) == Some(due_ns) {
                break;
            }
        }
        Ok(())
    }

    fn take_finished(&mut self, out: &mut Vec<Finished>) {
        self.array.take_answers(&mut self.done);
        out.extend(self.done.drain(..).map(|done| Finished {
            // Tags are places.
            tag: done.tag as usize,
            result: done.result.map_err(|error| error.to_string()),
        }));
    }

    fn content(&mut self, tag: usize, sink: Sink<'_>) {
        let place = &self.places[tag];
        for (index, span, offset) in spans(place.offset_bytes, place.length_bytes, self.chunk_bytes) {
            sink(offset, &self.array.engine().pool().bytes(place.slots[index])[span]);
        }
    }

    fn release(&mut self, tag: usize) {
        let pool = self.array.engine().pool();
        self.places[tag].slots.drain(..).for_each(|slot| pool.free(slot));
    }

    fn flash(&self) -> Option<Counters> {
        let main_count = self.array.engine_ref().store().main_count();
        self.flash.map(|flash| flash(self.array.devices_ref().inner(), main_count))
    }

    fn free_chunks(&self) -> Option<u64> {
        let spaces = &self.array.engine_ref().store().spaces;
        Some(spaces.iter().map(|space| u64::from(space.free_count())).sum())
    }

    fn snapshot(&self) -> Option<Snapshot> {
        let devices =
            (0..self.member_count as u16).map(|dev| self.array.devices_ref().device(DevIndex::new(dev)));
        let engine = self.array.engine_ref();
        let gc = engine.scheme().gc_stats();
        let snapshot = Snapshot { devices: devices.collect(), stats: engine.stats(), gc };
        Some(copies_as_metadata(snapshot, self.array.engine_ref().store().main_count()))
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.array.run(|engine, tag| engine.flush(tag))?;
        self.array.settle();
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.array.run(|engine, tag| engine.commit(tag))?;
        self.settle()
    }

    fn checkpoint(&mut self, kind: CheckpointKind) -> Result<(), Failure> {
        self.array.run(|engine, tag| engine.write_checkpoint(tag, kind))?;
        Ok(())
    }

    fn lose(&mut self, members: usize) {
        for dev in (0u16..).map(DevIndex::new).take(members) {
            self.array_mut().engine().fail_device(dev);
        }
    }

    fn commit_every(&mut self, writes: Option<u64>) {
        self.array.engine().commit_every(writes);
    }

    fn memory(&self) -> Option<Memory> {
        Some(status::memory(self.array.engine_ref()))
    }

    fn config(&self) -> Option<&ArrayConfig> {
        Some(&self.array.engine_ref().store().config)
    }

    fn stop(&mut self) -> Result<(), Failure> {
        self.array.run(|engine, tag| engine.write_checkpoint(tag, CheckpointKind::Incremental))?;
        self.array.stop()?;
        Ok(())
    }
}
