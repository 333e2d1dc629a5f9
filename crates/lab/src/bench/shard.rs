//! One shard under load: an array on devices of its own, and buffers for every place in the queue.
//!
//! Most arrays have a single shard, which is all of them.

use super::counts::Counts;
use super::threads::Spread;
use crate::failure::Failure;
use crate::options::batches::Batches;
use crate::options::cache::CacheSizes;
use crate::options::discards::Discards;
use crate::options::placement::ElasticChoices;
use crate::options::rewrites::RewriteChoice;
use crate::subject::array::rebuild_members;
use crate::subject::build::{DeviceKind, Kind, LocalArray, LocalSet, Room, Sized, build, size_shards};
use crate::subject::fit;
use crate::subject::gc::gc_since;
use array::{EngineOptions, EngineStats, GcStats, SchemeOptions, unit_of};
use block::{DevIndex, Durability, Pool, Random as _, Slot, SplitMix, Stream, mix};
use format::{ArrayConfig, CLASSES_MAX, CheckpointKind};
use node::placement::placement_info;
use node::status::{self, Memory};
use serde_json::{Value, json};
use std::ops::Range;
use std::time::Instant;

/// What requests do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Read.
    Read,
    /// Write.
    Write,
}

/// How an array is made.
#[derive(Clone, Copy, Debug)]
pub struct RigOptions {
    /// Devices.
    pub devices: DeviceKind,
    /// The array.
    pub kind: Kind,
    /// Threads and shards.
    pub spread: Spread,
    /// Stripes of the volume.
    pub stripe_count: u64,
    /// Those of them, the first, that are filled and then used.
    pub used_count: u64,
    /// Memory for the table of chunks at most; `None` is all of it.
    pub table_bytes: Option<u64>,
    /// Spare chunks on each device.
    pub spare_chunks: u64,
    /// Requests that each thread has in flight.
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

impl RigOptions {
    /// What the engine of one shard runs with.
    fn engine(&self) -> EngineOptions {
        // Devices in memory would be given pages back only to ask for them anew.
        let mut engine = Discards::Large.apply(self.batches.apply(EngineOptions::default()));
        engine = self.cache.apply_fitting(engine, self.kind.scheme);
        engine = self.rewrites.apply(self.elastic.served(self.kind.scheme).apply(engine, self.seed));
        engine.commit.idle_ns = None;
        engine.table_bytes = self.table_bytes.unwrap_or(u64::MAX);
        engine = split(engine, self.spread.shards);
        let stripe_bytes = self.kind.geometry.data_count() * self.kind.geometry.chunk_bytes();
        let queue_bytes = u64::try_from(4 * self.depth * stripe_bytes).unwrap_or(u64::MAX);
        engine.pool_bytes = engine.pool_bytes.max(queue_bytes);
        engine
    }
}

/// What a shard has of the memory of the whole array.
fn split(engine: EngineOptions, shards: u16) -> EngineOptions {
    if shards == 1 {
        return engine;
    }
    let (count, mut engine) = (u64::from(shards), engine);
    engine.pool_bytes = engine.pool_bytes.div_ceil(count);
    engine.table_bytes = if engine.table_bytes == u64::MAX { u64::MAX } else { engine.table_bytes / count };
    engine.cache_stripes = engine.cache_stripes.div_ceil(shards.into());
    engine.cache_slots = engine.cache_slots.div_ceil(shards.into());
    engine.scheme.stripe_cache = engine.scheme.stripe_cache.div_ceil(shards.into());
    engine.scheme.tuning.recent_entries = engine.scheme.tuning.recent_entries.div_ceil(count);
    engine
}

/// What every shard of an array is made by.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    devices: DeviceKind,
    sized: Sized,
    engine: EngineOptions,
    spread: Spread,
    used_count: u64,
    depth: usize,
    seed: u64,
    burst_requests: u64,
}

impl Plan {
    /// Sizes the shards, and looks whether there is memory for all of them.
    pub fn new(options: &RigOptions) -> Result<Self, Failure> {
        let (geometry, shards) = (options.kind.geometry, u64::from(options.spread.shards));
        let stripe_bytes = u64::try_from(geometry.data_count() * geometry.chunk_bytes())?;
        let blocks = u64::try_from(geometry.chunk_bytes())? / 4096;
        let unit = if shards == 1 { 1 } else { unit_of(stripe_bytes) / stripe_bytes };
        if options.stripe_count < shards.saturating_mul(unit) {
            return Err(Failure::new(format!(
                "--shards {shards}: found a volume of {} bytes, expected at least {}: each shard gets {} at a time",
                options.stripe_count.saturating_mul(stripe_bytes),
                shards * unit * stripe_bytes,
                unit * stripe_bytes,
            )));
        }
        // Whole units, so that all of a shard is used.
        let of_shard = |stripes: u64| stripes.div_ceil(shards).next_multiple_of(unit);
        let (stripe_count, used_count) = (of_shard(options.stripe_count), of_shard(options.used_count));
        let spare_chunks = options.spare_chunks.div_ceil(shards);
        // Every update could be a log stripe of its own; frames of the journal come on top.
        let updates = spare_chunks.saturating_mul(u64::try_from(geometry.device_count())?);
        let room = Room {
            volume_bytes: stripe_count.saturating_mul(stripe_bytes),
            spare_chunks,
            log_blocks: updates.max(1024).saturating_mul(blocks * 5 / 4 + 1),
            sized_by: "--volume-size or --device-size",
        };
        let sized = size_shards(&options.kind, &room, options.spread.shards)?;
        let engine = options.engine();
        // Devices in memory are made resident, all of them.
        let device_bytes = match options.devices {
            DeviceKind::Memory => sized.sizes_bytes().into_iter().fold(0, u64::saturating_add),
            DeviceKind::Null => 0,
        };
        let less = "--volume-size or --device-size, or larger chunks, or --device null";
        fit::check_made(&sized.config, &engine, device_bytes, shards, less)?;
        Ok(Self {
            devices: options.devices,
            sized,
            engine,
            spread: options.spread,
            used_count,
            depth: options.depth,
            seed: options.seed,
            burst_requests: burst_requests(&sized.config, &engine.scheme, used_count, spare_chunks).max(1),
        })
    }

    /// The threads.
    pub fn spread(&self) -> Spread {
        self.spread
    }

    /// The shape of the first shard.
    pub fn config(&self) -> &ArrayConfig {
        &self.sized.config
    }

    /// Stripes of each shard that are in use.
    pub fn used_count(&self) -> u64 {
        self.used_count
    }

    /// Stripes of a thread that are in use: of the first, which has no fewer shards than any other.
    pub fn thread_stripes(&self) -> u64 {
        self.used_count * u64::from(self.spread.shards.div_ceil(self.spread.threads))
    }

    /// Requests that each thread has in flight.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Updates that fit into a shard between two commits, or until collection begins.
    pub fn burst_requests(&self) -> u64 {
        self.burst_requests
    }

    /// Random numbers of a thread, or of a shard: the first has those of the seed itself.
    pub fn seed_of(&self, number: u16) -> u64 {
        if number == 0 { self.seed } else { mix(self.seed ^ mix(number.into())) }
    }

    /// What an elastic scheme runs with; null for others.
    pub fn placement(&self) -> Value {
        json!(placement_info(&self.engine.scheme, &self.sized.config))
    }
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
        // They are drawn, so that some devices get more of them: a quarter is left.
        spare_chunks * geometry.device_count() as u64 * 3 / 4
    }
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

/// Bytes written to devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Written {
    ssd: u64,
    metadata: u64,
    log: u64,
}

/// What was counted up to a moment.
#[derive(Clone, Copy, Debug)]
pub struct Totals {
    gc: GcStats,
    stats: EngineStats,
    written: Written,
}

/// See the module's documentation.
pub struct Shard {
    array: LocalArray,
    main_bytes: u64,
    slots: Vec<Slot>,
    /// Slots of a place.
    stride: usize,
    used_bytes: u64,
    serial: u32,
    /// Null devices read as zeros, so zeros are written; the engine leaves anything in the buffers of a
    /// write.
    writes_zeros: bool,
    /// The tag of a commit that was asked for and is not answered.
    pub awaited: Option<u64>,
}

impl Shard {
    /// Makes the array of the shard with this number, of which nothing is written.
    pub fn new(plan: &Plan, number: u16, random: &mut SplitMix) -> Result<Self, Failure> {
        let sized = Sized { config: plan.sized.config.sibling(number), ..plan.sized };
        let mut engine = plan.engine;
        engine.scheme.tuning.seed = plan.seed_of(number);
        let mut array = build(plan.devices, &sized, engine)?;
        let (geometry, mut slots) = (sized.config.geometry, Vec::new());
        if !array.engine().take_slots(plan.depth * geometry.data_count(), &mut slots) {
            return Err(Failure::new(format!("queue depth {}: too many requests in flight", plan.depth)));
        }
        if plan.devices == DeviceKind::Memory {
            fill_buffers(array.engine().pool(), &slots, random);
        }
        let stripe_bytes = u64::try_from(geometry.data_count() * geometry.chunk_bytes())?;
        let mut shard = Self {
            array,
            main_bytes: sized.main_bytes,
            slots,
            stride: geometry.data_count(),
            used_bytes: plan.used_count * stripe_bytes,
            serial: 1000,
            writes_zeros: plan.devices == DeviceKind::Null,
            awaited: None,
        };
        shard.touch((0..).take(geometry.device_count() + usize::from(sized.config.log_count)));
        Ok(shard)
    }

    /// Makes memory devices resident.
    fn touch(&mut self, devices: impl Iterator<Item = u16>) {
        if let LocalSet::Memory(set) = self.array.devices().inner_mut() {
            devices.for_each(|dev| set.make_resident(DevIndex::new(dev)));
        }
    }

    /// The array.
    #[inline]
    pub fn array(&mut self) -> &mut LocalArray {
        &mut self.array
    }

    /// Whether pages of the table may be absent from memory.
    pub fn is_paged(&self) -> bool {
        self.array.engine_ref().store().table.is_paged()
    }

    /// Memory of the maps.
    pub fn memory(&self) -> Memory {
        status::memory(self.array.engine_ref())
    }

    /// Hands a request of `width` chunks to the engine.
    #[inline]
    pub fn send(&mut self, access: Access, place: usize, width: usize, (offset, length): (u64, u64)) {
        let slots: Range<usize> = place * self.stride..place * self.stride + width;
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

    /// Gives all that is used of the volume back, so that writes to it are new again.
    pub fn discard_all(&mut self) -> Result<(), Failure> {
        self.array.settle();
        let (length, edges) = (self.used_bytes, [self.slots[0], self.slots[0]]);
        self.array.run(|engine, tag| engine.zero(tag, 0, length, edges, Durability::Volatile))?;
        self.clean()?;
        // Discards of long runs give memory back.
        let config = self.array.engine_ref().store().config;
        self.touch((0..).take(config.geometry.device_count()));
        Ok(())
    }

    /// Commits what is dirty; how many stripes that were.
    pub fn commit(&mut self) -> Result<u64, Failure> {
        let before = self.array.engine().stats().stripes_committed;
        self.array.run(|engine, tag| engine.commit(tag))?;
        Ok(self.array.engine().stats().stripes_committed - before)
    }

    /// Starts a commit, which is awaited from then on.
    pub fn start_commit(&mut self) {
        let tag = self.array.own_tag();
        self.array.engine().commit(tag);
        self.awaited = Some(tag);
    }

    /// Loses the first `count` main devices and puts empty ones in their place.
    pub fn lose(&mut self, count: u16) -> Result<(), Failure> {
        self.clean()?;
        for dev in 0..count {
            self.array.engine().fail_device(DevIndex::new(dev));
        }
        self.array.settle();
        for dev in 0..count {
            self.array.devices().inner_mut().replace(DevIndex::new(dev), self.main_bytes)?;
        }
        self.touch(0..count);
        Ok(())
    }

    /// Rebuilds the first `count` main devices; how many bytes that were.
    pub fn rebuild(&mut self, count: u16, origin: Instant) -> Result<u64, Failure> {
        let devices: Vec<DevIndex> = (0..count).map(DevIndex::new).collect();
        let before: Vec<_> = devices.iter().map(|&dev| self.array.devices_ref().device(dev)).collect();
        rebuild_members(&mut self.array, &devices, self.serial + 1, |_| origin.elapsed().as_nanos() as u64)?;
        self.serial += u32::from(count);
        let written = devices.iter().zip(before).map(|(&dev, before)| {
            let bytes = self.array.devices_ref().device(dev).since(&before).write_bytes;
            bytes[Stream::Data.index()] + bytes[Stream::Parity.index()]
        });
        Ok(written.sum())
    }

    /// What was counted so far.
    pub fn totals(&self) -> Totals {
        let engine = self.array.engine_ref();
        Totals { gc: engine.scheme().gc_stats(), stats: engine.stats(), written: self.written() }
    }

    /// Puts into `counts` what was counted and written since `before`.
    pub fn account(&self, before: &Totals, counts: &mut Counts) {
        let (now, then) = (self.totals(), before);
        counts.gc = gc_since(now.gc, then.gc);
        counts.full_stripes = now.stats.full_stripes - then.stats.full_stripes;
        counts.short_stripes = now.stats.short_stripes - then.stats.short_stripes;
        counts.commits = now.stats.commits - then.stats.commits;
        counts.stripes_committed = now.stats.stripes_committed - then.stats.stripes_committed;
        counts.pages_read = now.stats.pages_read - then.stats.pages_read;
        counts.absorbed_chunks = now.stats.cache.absorbed - then.stats.cache.absorbed;
        counts.ssd_bytes = now.written.ssd - then.written.ssd;
        counts.metadata_bytes = now.written.metadata - then.written.metadata;
        counts.log_bytes = now.written.log - then.written.log;
    }

    /// Bytes that devices were given so far.
    fn written(&self) -> Written {
        let config = &self.array.engine_ref().store().config;
        let main = config.geometry.device_count();
        let mut written = Written::default();
        for index in (0u16..).take(main + usize::from(config.log_count)) {
            let device = self.array.devices_ref().device(DevIndex::new(index));
            if usize::from(index) < main {
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
}
