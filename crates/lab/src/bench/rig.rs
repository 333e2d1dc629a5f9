//! One array under load: a loop that keeps requests in flight and does nothing else.
//!
//! Every place in the queue owns its buffers for good, so a request costs the loop a few stores and one
//! entry in the histogram. The clock is read once per turn.

use crate::failure::Failure;
use crate::options::batches::Batches;
use crate::options::cache::CacheSizes;
use crate::options::discards::Discards;
use crate::options::placement::ElasticChoices;
use crate::options::rewrites::RewriteChoice;
use crate::subject::array::{WAIT_NS, rebuild_members};
use crate::subject::build::{DeviceKind, Kind, LocalArray, LocalSet, Room, build, size};
use crate::subject::fit;
use crate::subject::gc::gc_since;
use array::{Done, EngineOptions, EngineStats, GcStats, SchemeOptions};
use block::{DevIndex, DeviceSet as _, Durability, Pool, Random as _, Slot, SplitMix, Stream};
use format::{ArrayConfig, CLASSES_MAX, CheckpointKind};
use hdrhistogram::Histogram;
use node::placement::placement_info;
use node::status::{self, Memory};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::ops::Range;
use std::time::Instant;

/// Longer latencies count as this: an hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// How often a volume is overwritten before garbage collection is measured.
pub const AGE_PASSES: u64 = 2;

/// A fresh histogram of nanoseconds.
pub fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("these bounds are valid")
}

fn since_ns(origin: Instant) -> u64 {
    origin.elapsed().as_nanos() as u64
}

/// Processor time of this thread so far.
pub fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Neither is negative, and the sum lasts for 584 years.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Random content in the slots of requests and in all free ones, which change places with them: no buffer
/// is a page that was never touched.
fn fill_buffers(pool: &mut Pool, slots: &[Slot], random: &mut SplitMix) {
    let free: Vec<Slot> = std::iter::from_fn(|| pool.alloc()).collect();
    for &slot in slots.iter().chain(&free) {
        let (words, _) = pool.bytes_mut(slot).as_chunks_mut::<8>();
        words.iter_mut().for_each(|word| *word = random.word().to_le_bytes());
    }
    free.into_iter().rev().for_each(|slot| pool.free(slot));
}

/// Updates that fit into an array of which `stripe_count` stripes are in use; in-place schemes do as many
/// as the others.
fn burst_requests(
    config: &ArrayConfig,
    options: &SchemeOptions,
    stripe_count: u64,
    spare_chunks: u64,
) -> u64 {
    let (rows, geometry) = (u64::from(config.chunks_per_device), config.geometry);
    if config.scheme.is_elastic() {
        // Two units of each class may be begun, and one be kept.
        let begun = (2 * CLASSES_MAX as u64 + 1) * u64::from(config.unit_rows);
        let collected_from = rows * options.gc_threshold.percent() / 100;
        collected_from.saturating_sub(stripe_count + begun) * geometry.data_count() as u64
    } else {
        // They spread unevenly over the devices: a quarter is left.
        spare_chunks * geometry.device_count() as u64 * 3 / 4
    }
}

/// What requests do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Read.
    Read,
    /// Write.
    Write,
}

/// When a slice of load ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// After so much time or so many requests, whichever comes first.
    Spent {
        /// Time.
        ns: u64,
        /// Requests.
        requests: u64,
    },
    /// When the control request with this tag is answered.
    Answered {
        /// The tag.
        tag: u64,
    },
}

/// What a slice of load came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Slice {
    /// Requests done.
    pub requests: u64,
    /// How long it took.
    pub ns: u64,
    /// Processor time that took: less than `ns` where other processes had the processor.
    pub cpu_ns: u64,
    /// Time during which a parity commit was under way.
    pub commit_ns: u64,
    /// Requests done while none was.
    pub requests_between: u64,
    /// What garbage collection did.
    pub gc: GcStats,
    /// Stripes written whole.
    pub full_stripes: u64,
    /// Elastic stripes written with fewer chunks.
    pub short_stripes: u64,
    /// Chunks overwritten in memory and never written.
    pub absorbed_chunks: u64,
    /// Bytes written to the SSDs, metadata included.
    pub ssd_bytes: u64,
    /// Those of metadata.
    pub metadata_bytes: u64,
    /// Bytes written to log devices.
    pub log_bytes: u64,
    /// Pages of the table that were read because they were not in memory.
    pub pages_read: u64,
}

impl Slice {
    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.ns += other.ns;
        self.cpu_ns += other.cpu_ns;
        self.commit_ns += other.commit_ns;
        self.requests_between += other.requests_between;
        self.gc.units_collected += other.gc.units_collected;
        self.gc.chunks_rewritten += other.gc.chunks_rewritten;
        self.gc.chunks_read += other.gc.chunks_read;
        self.full_stripes += other.full_stripes;
        self.short_stripes += other.short_stripes;
        self.absorbed_chunks += other.absorbed_chunks;
        self.ssd_bytes += other.ssd_bytes;
        self.metadata_bytes += other.metadata_bytes;
        self.log_bytes += other.log_bytes;
        self.pages_read += other.pages_read;
    }
}

/// Bytes written to devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Written {
    ssd: u64,
    metadata: u64,
    log: u64,
}

/// How a rig is made.
#[derive(Clone, Copy, Debug)]
pub struct RigOptions {
    /// Devices.
    pub devices: DeviceKind,
    /// The array.
    pub kind: Kind,
    /// Stripes of the volume.
    pub stripe_count: u64,
    /// Those of them, the first, that are filled and then used.
    pub used_count: u64,
    /// Memory for the table of chunks at most; `None` is all of it.
    pub table_bytes: Option<u64>,
    /// Spare chunks on each device.
    pub spare_chunks: u64,
    /// Requests in flight.
    pub depth: usize,
    /// Seed of addresses and payload.
    pub seed: u64,
    /// What becomes of whole stripes that are written again, with eplog.
    pub rewrites: RewriteChoice,
    /// The write cache; schemes that have none go without.
    pub cache: CacheSizes,
    /// Placement and garbage collection of elastic schemes.
    pub elastic: ElasticChoices,
    /// Rebuild and commit.
    pub batches: Batches,
}

/// See the module's documentation.
pub struct Rig {
    array: LocalArray,
    main_bytes: u64,
    origin: Instant,
    slots: Vec<Slot>,
    started_ns: Vec<u64>,
    idle: Vec<usize>,
    done: Vec<Done>,
    random: SplitMix,
    stripe_count: u64,
    data_count: u64,
    chunk_bytes: u64,
    serial: u32,
    options: SchemeOptions,
    /// Null devices read as zeros, so zeros are written; the engine leaves anything in the buffers of a
    /// write.
    writes_zeros: bool,
    /// Whether so much was overwritten that garbage collection runs all the time.
    aged: bool,
    /// Updates that fit between two commits, or until collection begins.
    pub burst_requests: u64,
}

impl Rig {
    /// Makes the array and writes what is used of its volume once.
    pub fn new(options: &RigOptions) -> Result<Self, Failure> {
        let geometry = options.kind.geometry;
        let (k, n) = (geometry.data_count() as u64, geometry.device_count() as u64);
        let chunk_bytes = geometry.chunk_bytes() as u64;
        let (stripe_count, spare_chunks) = (options.stripe_count, options.spare_chunks);
        let used_count = options.used_count;
        // Every update could be a log stripe of its own; frames of the journal come on top.
        let log_blocks =
            (spare_chunks.saturating_mul(n)).max(1024).saturating_mul(chunk_bytes / 4096 * 5 / 4 + 1);
        let room = Room {
            volume_bytes: stripe_count.saturating_mul(k * chunk_bytes),
            spare_chunks,
            log_blocks,
            sized_by: "--volume-size or --device-size",
        };
        let sized = size(&options.kind, &room)?;
        // Devices in memory would be given pages back only to ask for them anew.
        let mut engine = Discards::Large.apply(options.batches.apply(EngineOptions::default()));
        if options.cache.check(options.kind.scheme).is_ok() {
            engine = options.cache.apply(engine);
        }
        engine = options.rewrites.apply(options.elastic.apply(engine, options.seed));
        engine.commit.idle_ns = None;
        engine.table_bytes = options.table_bytes.unwrap_or(u64::MAX);
        engine.pool_bytes = engine.pool_bytes.max(4 * options.depth as u64 * k * chunk_bytes);
        // Devices in memory are made resident, all of them.
        let device_bytes = match options.devices {
            DeviceKind::Memory => sized.sizes_bytes().into_iter().fold(0, u64::saturating_add),
            DeviceKind::Null => 0,
        };
        let less = "--volume-size or --device-size, or larger chunks, or --device null";
        fit::check_made(&sized.config, &engine, device_bytes, less)?;
        let mut array = build(options.devices, &sized, engine)?;
        let mut slots = Vec::new();
        if !array.engine().take_slots(options.depth * geometry.data_count(), &mut slots) {
            return Err(Failure::new(format!("queue depth {}: too many requests in flight", options.depth)));
        }
        let mut random = SplitMix::new(options.seed);
        if options.devices == DeviceKind::Memory {
            fill_buffers(array.engine().pool(), &slots, &mut random);
        }
        let mut rig = Self {
            array,
            main_bytes: sized.main_bytes,
            origin: Instant::now(),
            slots,
            started_ns: vec![0; options.depth],
            idle: (0..options.depth).collect(),
            done: Vec::new(),
            random,
            stripe_count: used_count,
            data_count: k,
            chunk_bytes,
            serial: 1000,
            options: engine.scheme,
            writes_zeros: options.devices == DeviceKind::Null,
            aged: !options.kind.scheme.is_elastic(),
            burst_requests: burst_requests(&sized.config, &engine.scheme, used_count, spare_chunks).max(1),
        };
        rig.touch(
            (0..geometry.device_count() + usize::from(sized.config.log_count))
                .map(|i| DevIndex::new(i as u16)),
        );
        rig.fill()?;
        Ok(rig)
    }

    /// Makes memory devices resident, so that no page fault falls into the measurement. Only writes zeros
    /// over zeros.
    fn touch(&mut self, devices: impl Iterator<Item = DevIndex>) {
        if let LocalSet::Memory(set) = self.array.devices().inner_mut() {
            for dev in devices {
                for page in set.bytes_mut(dev).chunks_exact_mut(4096) {
                    // Writing back what is there makes the page resident.
                    page[0] = std::hint::black_box(page[0]);
                }
            }
        }
    }

    /// The array.
    pub fn array(&mut self) -> &mut LocalArray {
        &mut self.array
    }

    /// Stripes in use.
    pub fn stripe_count(&self) -> u64 {
        self.stripe_count
    }

    /// Bytes of a chunk.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// Bytes of a stripe's data.
    pub fn stripe_bytes(&self) -> u64 {
        self.data_count * self.chunk_bytes
    }

    fn now_ns(&self) -> u64 {
        since_ns(self.origin)
    }

    /// Whether the scheme collects garbage.
    pub fn is_elastic(&self) -> bool {
        self.array.engine_ref().store().config.scheme.is_elastic()
    }

    /// What an elastic scheme runs with; null for others.
    pub fn placement(&self) -> Value {
        json!(placement_info(&self.options, &self.array.engine_ref().store().config))
    }

    /// Whether pages of the table may be absent from memory.
    pub fn is_paged(&self) -> bool {
        self.array.engine_ref().store().table.is_paged()
    }

    /// Memory of the maps.
    pub fn memory(&self) -> Memory {
        status::memory(self.array.engine_ref())
    }

    /// Elastic schemes: overwrites the volume at random so often that it is full of garbage, which is
    /// collected all the time from then on.
    pub fn age(&mut self) -> Result<(), Failure> {
        if !std::mem::replace(&mut self.aged, true) {
            let requests = AGE_PASSES * self.stripe_count * self.data_count;
            let until = Until::Spent { ns: u64::MAX, requests };
            self.random(Access::Write, until, &mut latency_histogram())?;
        }
        Ok(())
    }

    /// Room for a burst of updates: by a commit, or by a volume that is written anew.
    pub fn free_space(&mut self) -> Result<(), Failure> {
        if self.is_elastic() { self.refill() } else { self.clean() }
    }

    /// Writes every stripe of the volume, in order.
    fn fill(&mut self) -> Result<(), Failure> {
        let (mut stripe, bytes) = (0, self.stripe_bytes());
        let limit = self.stripe_count;
        let until = Until::Spent { ns: u64::MAX, requests: limit };
        let mut latency = latency_histogram();
        self.drive(Access::Write, self.data_count, until, &mut latency, |_| {
            stripe += 1;
            (stripe - 1) * bytes
        })?;
        self.array.settle();
        Ok(())
    }

    /// Single-chunk requests at random addresses.
    pub fn random(
        &mut self,
        access: Access,
        until: Until,
        latency: &mut Histogram<u64>,
    ) -> Result<Slice, Failure> {
        let (chunks, chunk_bytes) = (self.stripe_count * self.data_count, self.chunk_bytes);
        self.drive(access, 1, until, latency, |random| random.below(chunks) * chunk_bytes)
    }

    /// Requests of a whole stripe, in order, from the start of the volume, at most one pass.
    pub fn sequential(
        &mut self,
        access: Access,
        until: Until,
        latency: &mut Histogram<u64>,
    ) -> Result<Slice, Failure> {
        let (mut stripe, count, bytes) = (0, self.stripe_count, self.stripe_bytes());
        self.drive(access, self.data_count, until, latency, |_| {
            let at = stripe;
            stripe = (stripe + 1) % count;
            at * bytes
        })
    }

    /// Updates one chunk of every stripe.
    pub fn dirty_all(&mut self) -> Result<(), Failure> {
        let (mut stripe, bytes) = (0, self.stripe_bytes());
        let (chunk, columns) = (self.chunk_bytes, self.data_count);
        let until = Until::Spent { ns: u64::MAX, requests: self.stripe_count };
        self.drive(Access::Write, 1, until, &mut latency_histogram(), |random| {
            stripe += 1;
            (stripe - 1) * bytes + random.below(columns) * chunk
        })?;
        Ok(())
    }

    /// Commits, and makes what that frees usable.
    pub fn clean(&mut self) -> Result<(), Failure> {
        self.array.settle();
        self.array.run(|engine, tag| engine.commit(tag))?;
        self.array.run(|engine, tag| engine.flush(tag))?;
        self.array.run(|engine, tag| engine.write_checkpoint(tag, CheckpointKind::Incremental))?;
        self.array.run(|engine, tag| engine.flush(tag))?;
        self.array.run(|engine, tag| engine.flush(tag))?;
        self.array.settle();
        Ok(())
    }

    /// Gives the whole volume back, so that writes to it are new again.
    pub fn discard_all(&mut self) -> Result<(), Failure> {
        self.array.settle();
        let length = self.stripe_count * self.stripe_bytes();
        let edges = [self.slots[0], self.slots[0]];
        self.array.run(|engine, tag| engine.zero(tag, 0, length, edges, Durability::Volatile))?;
        self.clean()?;
        // Discards of long runs give memory back.
        let config = self.array.engine_ref().store().config;
        self.touch((0..config.geometry.device_count() as u16).map(DevIndex::new));
        Ok(())
    }

    /// Writes the whole volume anew.
    pub fn refill(&mut self) -> Result<(), Failure> {
        self.discard_all()?;
        self.aged = !self.is_elastic();
        self.fill()
    }

    /// Commits what is dirty; how long it took, and the processor time of that.
    pub fn time_commit(&mut self) -> Result<(u64, u64), Failure> {
        let (start, cpu_start) = (self.now_ns(), cpu_ns());
        self.array.run(|engine, tag| engine.commit(tag))?;
        Ok((self.now_ns() - start, cpu_ns() - cpu_start))
    }

    /// Starts a commit; its tag.
    pub fn start_commit(&mut self) -> u64 {
        let tag = self.array.own_tag();
        self.array.engine().commit(tag);
        tag
    }

    /// Loses the first `count` main devices and rebuilds them; bytes rebuilt, time, processor time.
    pub fn rebuild(&mut self, count: usize) -> Result<(u64, u64, u64), Failure> {
        self.clean()?;
        let devices: Vec<DevIndex> = (0..count).map(|i| DevIndex::new(i as u16)).collect();
        for &dev in &devices {
            self.array.engine().fail_device(dev);
        }
        self.array.settle();
        for &dev in &devices {
            self.array.devices().inner_mut().replace(dev, self.main_bytes)?;
        }
        self.touch(devices.clone().into_iter());
        let before: Vec<_> = devices.iter().map(|&dev| self.array.devices_ref().device(dev)).collect();
        let (start, cpu_start) = (self.now_ns(), cpu_ns());
        let (first_serial, origin) = (self.serial + 1, self.origin);
        rebuild_members(&mut self.array, &devices, first_serial, |_| since_ns(origin))?;
        self.serial += u32::try_from(count).unwrap_or(u32::MAX);
        let (ns, cpu_ns) = (self.now_ns() - start, cpu_ns() - cpu_start);
        let written = devices.iter().zip(before).map(|(&dev, before)| {
            let bytes = self.array.devices_ref().device(dev).since(&before).write_bytes;
            bytes[Stream::Data.index()] + bytes[Stream::Parity.index()]
        });
        Ok((written.sum(), ns, cpu_ns))
    }

    /// Keeps the queue full of requests of `width` chunks at the offsets that `next` names.
    fn drive(
        &mut self,
        access: Access,
        width: u64,
        until: Until,
        latency: &mut Histogram<u64>,
        mut next: impl FnMut(&mut SplitMix) -> u64,
    ) -> Result<Slice, Failure> {
        let (length, stride) = (width * self.chunk_bytes, self.data_count as usize);
        let (depth, width) = (self.started_ns.len(), width as usize);
        let (start, cpu_start) = (self.now_ns(), cpu_ns());
        let (deadline, limit, awaited) = match until {
            Until::Spent { ns, requests } => (start.saturating_add(ns), requests, None),
            Until::Answered { tag } => (u64::MAX, u64::MAX, Some(tag)),
        };
        let mut slice = Slice::default();
        let (gc, stats) = self.counted();
        let written = self.written();
        let (mut now, mut issued, mut open) = (start, 0, true);
        self.array.engine().set_now(now);
        while open || self.idle.len() < depth {
            while open && let Some(place) = self.idle.pop() {
                self.started_ns[place] = now;
                let offset = next(&mut self.random);
                self.send(access, place, (offset, length), place * stride..place * stride + width);
                issued += 1;
                open = issued < limit;
            }
            let progress = self.array.turn();
            let before = now;
            now = self.now_ns();
            self.array.engine().set_now(now);
            let committing = self.array.engine_ref().is_committing();
            slice.commit_ns += if committing { now - before } else { 0 };
            self.array.take_answers(&mut self.done);
            for done in self.done.drain(..) {
                done.result?;
                if Some(done.tag) == awaited {
                    open = false;
                    continue;
                }
                let place = done.tag as usize;
                latency.saturating_record(now - self.started_ns[place]);
                self.idle.push(place);
                slice.requests += 1;
                slice.requests_between += u64::from(!committing);
            }
            open &= now < deadline;
            if !progress {
                self.array.devices().wait(WAIT_NS);
            }
        }
        slice.ns = self.now_ns() - start;
        slice.cpu_ns = cpu_ns() - cpu_start;
        self.account(&mut slice, (gc, stats), written);
        Ok(slice)
    }

    /// Hands a request to the engine.
    fn send(&mut self, access: Access, place: usize, (offset, length): (u64, u64), slots: Range<usize>) {
        let (tag, slots) = (place as u64, &self.slots[slots]);
        match access {
            Access::Write => {
                if self.writes_zeros {
                    slots.iter().for_each(|&slot| self.array.engine().pool().bytes_mut(slot).fill(0));
                }
                self.array.engine().write(tag, offset, length, slots, Durability::Volatile);
            }
            Access::Read => self.array.engine().read(tag, offset, length, slots),
        }
    }

    /// Puts into a slice what was counted and written in it.
    fn account(&self, slice: &mut Slice, (gc, stats): (GcStats, EngineStats), written: Written) {
        let (gc_after, stats_after) = self.counted();
        slice.gc = gc_since(gc_after, gc);
        slice.full_stripes = stats_after.full_stripes - stats.full_stripes;
        slice.short_stripes = stats_after.short_stripes - stats.short_stripes;
        slice.pages_read = stats_after.pages_read - stats.pages_read;
        slice.absorbed_chunks = stats_after.cache_absorbed - stats.cache_absorbed;
        let written_after = self.written();
        slice.ssd_bytes = written_after.ssd - written.ssd;
        slice.metadata_bytes = written_after.metadata - written.metadata;
        slice.log_bytes = written_after.log - written.log;
    }

    /// Bytes that devices were given so far.
    fn written(&self) -> Written {
        let config = &self.array.engine_ref().store().config;
        let (main, all) =
            (config.geometry.device_count(), config.geometry.device_count() + usize::from(config.log_count));
        let mut written = Written::default();
        for index in 0..all {
            let device = self.array.devices_ref().device(DevIndex::new(index as u16));
            if index < main {
                written.ssd += device.write_bytes_all();
                // What a scheme with a journal copies to the main devices is metadata.
                written.metadata +=
                    device.write_bytes[Stream::Metadata.index()] + device.write_bytes[Stream::Log.index()];
            } else {
                written.log += device.write_bytes_all();
            }
        }
        written
    }

    fn counted(&self) -> (GcStats, EngineStats) {
        let engine = self.array.engine_ref();
        (engine.scheme().gc_stats(), engine.stats())
    }
}
