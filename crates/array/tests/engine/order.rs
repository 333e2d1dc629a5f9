//! In which order operations reach the devices: log devices are appended to, and a rebuild writes its
//! replacements in runs.

use crate::common::{Layer, Layered, create_options, fresh, options, superblocks, write_many};
use array::{Array, CommitPolicy, DiscardPolicy, EngineOptions, SyncPolicy, arrange};
use block::{DevIndex, DeviceOp, DeviceSet, Durability, OpKind, Pool, Random as _, SplitMix};
use device::{Counting, MemorySet};
use format::{CheckpointKind, SchemeKind};

/// Notes the writes that are submitted, and whole batches.
#[derive(Default)]
struct Recorder {
    writes: Vec<(DevIndex, u64)>,
    batches: Vec<Vec<DeviceOp>>,
}

impl<D: DeviceSet> Layer<D> for Recorder {
    fn submit(&mut self, inner: &mut D, pool: &mut Pool, ops: &[DeviceOp]) {
        let writes = ops.iter().filter(|op| op.kind == OpKind::Write);
        self.writes.extend(writes.map(|op| (op.dev, op.offset_bytes)));
        self.batches.push(ops.to_vec());
        inner.submit(pool, ops);
    }
}

type Recorded = Array<Layered<Counting<MemorySet>, Recorder>>;

const CHUNK: u64 = 4096;

fn recorded(scheme: SchemeKind, k: usize, m: usize, options: EngineOptions) -> Recorded {
    let create = create_options(scheme, k, m);
    let count = k + m + if scheme.has_log() { m } else { 0 };
    let mut devices = fresh(&create, 12, 64);
    let arrangement = arrange(&superblocks(&mut devices, count)).unwrap();
    let inner = Counting::new(devices);
    let devices = Layered { inner, layer: Recorder::default() };
    let (mut array, _) = Array::assemble(devices, &arrangement, 9, options).unwrap();
    array.devices().inner.reset();
    array.devices().layer = Recorder::default();
    array
}

/// Writes single chunks anywhere, `depth` at a time; a few ask for durability.
fn write_anywhere(array: &mut Recorded, rng: &mut SplitMix, count: u64, depth: usize) {
    let chunks = array.engine().volume_bytes() / CHUNK;
    write_many(array, (count, depth), || {
        let durable = if rng.below(50) == 0 { Durability::Durable } else { Durability::Volatile };
        (rng.below(chunks) * CHUNK, durable)
    });
}

const LOG_SCHEMES: [SchemeKind; 2] = [SchemeKind::Eplog, SchemeKind::ParityLog];

fn log_devices(k: usize, m: usize) -> impl Iterator<Item = DevIndex> {
    (k + m..k + 2 * m).map(|index| DevIndex::new(index as u16))
}

#[test]
fn a_log_device_is_written_front_to_back() {
    for (scheme, sync) in
        LOG_SCHEMES.iter().flat_map(|&s| [(s, SyncPolicy::OnFlush), (s, SyncPolicy::Always)])
    {
        for depth in [1, 32] {
            let (k, m) = (4, 2);
            let mut array = recorded(scheme, k, m, EngineOptions { sync, ..options() });
            write_anywhere(&mut array, &mut SplitMix::new(depth as u64), 3000, depth);
            for log in log_devices(k, m) {
                let offsets: Vec<u64> = array
                    .devices()
                    .layer
                    .writes
                    .iter()
                    .filter(|(dev, _)| *dev == log)
                    .map(|&(_, at)| at)
                    .collect();
                assert!(offsets.len() > 300, "{scheme}: {} writes to a log device", offsets.len());
                let back = offsets.windows(2).find(|pair| pair[1] != pair[0] + CHUNK);
                assert_eq!(back, None, "{scheme}, depth {depth}: device {log} is not only appended to");
                let moves = array.devices().inner.device(log).repositionings;
                assert_eq!(moves, 0, "{scheme}, {sync:?}, depth {depth}: the arm of device {log} moved");
            }
        }
    }
}

/// Transfers that a driver makes of a batch's writes to a device if it merges neighbours.
fn transfers_of(batch: &[DeviceOp], dev: DevIndex) -> usize {
    let starts = |at: usize| {
        let (op, before) = (&batch[at], at.checked_sub(1).map(|before| &batch[before]));
        let end = before.map(|op| (op.dev, op.kind, op.offset_bytes + op.length_bytes));
        op.dev == dev && op.kind == OpKind::Write && end != Some((dev, op.kind, op.offset_bytes))
    };
    (0..batch.len()).filter(|&at| starts(at)).count()
}

#[test]
fn what_a_turn_writes_to_a_log_device_lies_side_by_side_in_its_batch() {
    for scheme in LOG_SCHEMES {
        let (k, m) = (4, 2);
        let mut array = recorded(scheme, k, m, options());
        write_anywhere(&mut array, &mut SplitMix::new(7), 3000, 32);
        let mut most = 0;
        for batch in &array.devices().layer.batches {
            for log in log_devices(k, m) {
                let writes = batch.iter().filter(|op| op.dev == log && op.kind == OpKind::Write).count();
                most = most.max(writes);
                assert!(transfers_of(batch, log) <= 1, "{scheme}: {writes} writes are not one transfer");
            }
        }
        assert!(most >= 8, "{scheme}: at most {most} writes of a turn to a log device");
    }
}

/// Discards of the devices that were submitted.
fn discards(array: &mut Recorded, mut of: impl FnMut(DevIndex) -> bool) -> Vec<DeviceOp> {
    let ops = array.devices().layer.batches.iter().flatten();
    ops.filter(|op| op.kind == OpKind::Discard && of(op.dev)).copied().collect()
}

/// Log space that a commit let die goes back to the log devices, in runs; it is written again afterwards.
/// Requirement L-05.
#[test]
fn dead_log_space_is_discarded_in_runs() {
    const LEAST: u64 = 256 * CHUNK;
    for (scheme, least) in LOG_SCHEMES.iter().flat_map(|&s| [(s, Some(LEAST)), (s, None)]) {
        let (k, m) = (4, 2);
        let discard = DiscardPolicy { log_bytes: least, ..DiscardPolicy::default() };
        let mut array = recorded(scheme, k, m, EngineOptions { discard, ..options() });
        let mut rng = SplitMix::new(3);
        // More than the log holds.
        for _ in 0..16 {
            write_anywhere(&mut array, &mut rng, 3000, 32);
            array.run(|engine, tag| engine.commit(tag)).unwrap();
            array.run(|engine, tag| engine.write_checkpoint(tag, CheckpointKind::Incremental)).unwrap();
            array.run(|engine, tag| engine.flush(tag)).unwrap();
            array.settle();
        }
        let log = &array.engine().store().log;
        let (laps, dead) = (log.head() / u64::from(log.block_count()), log.tail() * CHUNK);
        assert!(laps >= 1, "{scheme}: {laps} laps");
        let first = log_devices(k, m).next().unwrap();
        let [one, other] = [true, false].map(|is| {
            let of_log = |dev: DevIndex| dev.index() >= k + m && (dev == first) == is;
            let ops = discards(&mut array, of_log);
            ops.iter().map(|op| (op.offset_bytes, op.length_bytes)).collect::<Vec<_>>()
        });
        assert_eq!(one, other, "{scheme}: both log devices are told the same");
        let bytes: u64 = one.iter().map(|&(_, length)| length).sum();
        assert_eq!(array.devices().inner.device(first).discard_bytes, bytes);
        assert!(bytes <= dead, "{scheme}: {bytes} bytes discarded of {dead}");
        match least {
            Some(_) => assert!(bytes * 2 > dead, "{scheme}: {bytes} bytes discarded of {dead}"),
            None => assert_eq!(bytes, 0, "{scheme}"),
        }
        // A run that passes the end of the region is two.
        let short = one.iter().filter(|&&(_, length)| length < LEAST).count() as u64;
        assert!(short <= 2 * laps, "{scheme}: {short} short runs in {laps} laps");
    }
}

/// Old versions that commits free one by one are discarded when a stretch of them is free, and no chunk that
/// holds anything is. Requirement L-05.
#[test]
fn old_versions_are_discarded_in_stretches() {
    const STRETCH: u64 = 32;
    for least in [Some(STRETCH * CHUNK), None] {
        let (k, m) = (4, 2);
        let discard = DiscardPolicy { old_bytes: least, ..DiscardPolicy::default() };
        let mut array = recorded(SchemeKind::Eplog, k, m, EngineOptions { discard, ..options() });
        let volume = array.engine().volume_bytes() / CHUNK;
        let (hot, mut rng) = (volume / 8, SplitMix::new(5));
        let mut slots = Vec::new();
        assert!(array.engine().take_slots(1, &mut slots));
        let mut freed = 0;
        for _ in 0..6 {
            for _ in 0..hot {
                let offset = rng.below(hot) * CHUNK;
                array.run(|e, tag| e.write(tag, offset, CHUNK, &slots, Durability::Volatile)).unwrap();
            }
            freed += array.engine().store().log.used();
            array.run(|engine, tag| engine.commit(tag)).unwrap();
            array.run(|engine, tag| engine.flush(tag)).unwrap();
            array.run(|engine, tag| engine.flush(tag)).unwrap();
            array.settle();
        }
        let found = discards(&mut array, |dev| dev.index() < k + m);
        let bytes: u64 = found.iter().map(|op| op.length_bytes).sum();
        println!("{} discards of {} KiB; {freed} log blocks", found.len(), bytes / 1024);
        assert_eq!(!found.is_empty(), least.is_some(), "{least:?}");
        assert!(found.iter().all(|op| op.length_bytes % (STRETCH * CHUNK) == 0));
        assert!(found.iter().any(|op| op.length_bytes > STRETCH * CHUNK) || least.is_none());
        // Whatever was discarded is free, or was written since.
        let read = array.run(|e, tag| e.scrub(tag, 0));
        assert_eq!(read, Ok(()));
        assert_eq!(array.engine().last_report().chunks_repaired, 0, "nothing that is needed was discarded");
    }
}

#[test]
fn the_frame_of_a_synchronous_write_goes_out_with_its_log_chunk() {
    let (k, m) = (4, 2);
    let options = EngineOptions { sync: SyncPolicy::Always, ..options() };
    let mut array = recorded(SchemeKind::Eplog, k, m, options);
    write_anywhere(&mut array, &mut SplitMix::new(7), 500, 1);
    for log in log_devices(k, m) {
        let batches = &array.devices().layer.batches;
        let transfers: usize = batches.iter().map(|batch| transfers_of(batch, log)).sum();
        let writes = array.devices().layer.writes.iter().filter(|(dev, _)| *dev == log).count();
        assert!(writes >= 1000, "{writes} writes: a chunk and a frame for each request");
        assert!(transfers <= 502, "{transfers} transfers to device {log} for 500 requests");
    }
}

/// Transfers that a driver makes of writes to the replaced devices if it merges neighbours in the queue.
fn transfers(writes: &[(DevIndex, u64)], replaced: &[DevIndex]) -> (usize, usize) {
    let mut last = None;
    let (mut chunks, mut transfers) = (0, 0);
    for &(dev, offset) in writes.iter().filter(|(dev, _)| replaced.contains(dev)) {
        chunks += 1;
        transfers += usize::from(last != Some((dev, offset)));
        last = Some((dev, offset + CHUNK));
    }
    (chunks, transfers)
}

#[test]
fn a_rebuild_of_two_devices_writes_runs_to_each() {
    for scheme in [SchemeKind::Raid, SchemeKind::Eplog, SchemeKind::Elastic] {
        for replaced in [&[1][..], &[1, 3]] {
            let replaced: Vec<DevIndex> = replaced.iter().map(|&dev| DevIndex::new(dev)).collect();
            let mut array = recorded(scheme, 6, 2, options());
            let volume = array.engine().volume_bytes() / CHUNK;
            let mut slots = Vec::new();
            assert!(array.engine().take_slots(6, &mut slots));
            for stripe in 0..volume / 6 {
                array
                    .run(|e, tag| e.write(tag, stripe * 6 * CHUNK, 6 * CHUNK, &slots, Durability::Volatile))
                    .unwrap();
            }
            replaced.iter().for_each(|&dev| array.engine().fail_device(dev));
            array.settle();
            array.devices().layer.writes.clear();
            let (&last, others) = replaced.split_last().unwrap();
            for &dev in others {
                let own = array.own_tag();
                array.engine().rebuild(own, dev, 91);
            }
            array.run(|e, tag| e.rebuild(tag, last, 92)).unwrap();
            let (chunks, transfers) = transfers(&array.devices().layer.writes, &replaced);
            let mean = chunks as u64 * CHUNK / transfers as u64 / 1024;
            println!(
                "{scheme}, {} lost: {chunks} chunks in {transfers} transfers of {mean} KiB",
                replaced.len()
            );
            assert!(chunks > 1000, "{scheme}: {chunks} chunks rebuilt");
            assert!(mean >= 128, "{scheme}: {chunks} chunks in {transfers} transfers");
        }
    }
}

#[test]
fn a_commit_comes_after_every_so_many_writes_at_any_depth() {
    for depth in [1, 7, 32] {
        let commit = CommitPolicy { every_requests: Some(100), idle_ns: None, bytes_per_s: None };
        let mut array = recorded(SchemeKind::Eplog, 4, 2, EngineOptions { commit, ..options() });
        write_anywhere(&mut array, &mut SplitMix::new(1), 2000, depth);
        array.settle();
        assert_eq!(array.engine().stats().commits, 20, "depth {depth}");
    }
}

/// The log is full of dead log chunks behind those of a few stripes that were written once: these are
/// committed, and not the hot ones, whose log chunks are all young. Requirement L-01.
#[test]
fn only_stripes_that_hold_the_tail_of_the_log_are_committed_when_it_is_full() {
    const HOT: u64 = 400;
    const COLD: u64 = 40;
    const LAPS: u64 = 3;
    let (k, m) = (4, 2);
    let mut array = recorded(SchemeKind::Eplog, k, m, options());
    let blocks = u64::from(array.engine().store().log.block_count());
    let mut slots = Vec::new();
    assert!(array.engine().take_slots(1, &mut slots));
    // The hot stripes are dirty first. As often as the log holds log chunks, some others are written once.
    let cold = |lap: u64| (0..COLD).map(move |at| HOT + lap * COLD + at);
    let lap = |lap| (0..HOT).chain(cold(lap)).chain((0..blocks).map(|at| at % HOT));
    let mut used = 0;
    for (at, stripe) in (0..LAPS).flat_map(lap).enumerate() {
        let durable = if at % 16 == 0 { Durability::Durable } else { Durability::Volatile };
        let offset = stripe * k as u64 * CHUNK;
        array.run(|e, tag| e.write(tag, offset, CHUNK, &slots, durable)).unwrap();
        used = array.engine().store().log.used().max(used);
    }
    array.settle();
    assert_eq!(array.run(|e, tag| e.scrub(tag, 0)), Ok(()));
    let (stripes, runs) = (array.engine().stats().stripes_committed, array.engine().stats().log_commits);
    println!("{blocks} log blocks, {used} used at most; {stripes} stripes committed in {runs} log runs");
    assert!(stripes <= LAPS * COLD, "{stripes} stripes committed");
    assert!((1..=LAPS).contains(&runs), "{runs} runs");
    assert!(used < blocks / 8 * 7, "{used} of {blocks} blocks");
}

/// Chunks run short: the stripes whose commit frees most of them are committed, and those with one old
/// version wait. Requirement L-04.
#[test]
fn stripes_that_free_most_are_committed_when_chunks_are_short() {
    let (k, m) = (4u64, 2);
    let mut array = recorded(SchemeKind::Eplog, k as usize, m, options());
    let store = array.engine().store();
    let spare = store.config.chunks_per_device * 6 - store.config.stripe_count as u32 * 6;
    let (stripes, mut slots) = (store.config.stripe_count, Vec::new());
    assert!(array.engine().take_slots(1, &mut slots));
    let write = |array: &mut Recorded, stripe: u64, column: u64| {
        let offset = (stripe * k + column) * CHUNK;
        array.run(|e, tag| e.write(tag, offset, CHUNK, &slots, Durability::Durable)).unwrap();
    };
    (0..stripes).for_each(|stripe| (0..k).for_each(|column| write(&mut array, stripe, column)));
    array.run(|e, tag| e.commit(tag)).unwrap();
    array.settle();
    let before = array.engine().stats();
    // As many old versions in stripes that have one as in stripes that have four.
    let narrow = u64::from(spare) / 4;
    (0..narrow).for_each(|stripe| write(&mut array, stripe, 0));
    let mut wide = 0;
    while array.engine().stats().commits == before.commits {
        (0..k).for_each(|column| write(&mut array, narrow + wide, column));
        wide += 1;
    }
    array.settle();
    let committed = array.engine().stats().stripes_committed - before.stripes_committed;
    println!(
        "{spare} spare chunks; {narrow} stripes with one old version, {wide} with {k}; {committed} committed"
    );
    assert!((1..=wide).contains(&committed), "{committed} of {wide}");
    assert_eq!(array.run(|e, tag| e.scrub(tag, 0)), Ok(()));
}

/// A limit on commits holds up what nobody waits for, and nothing else. Requirement L-04.
#[test]
fn commits_that_nobody_waits_for_keep_to_their_limit() {
    const STRIPES: u64 = 300;
    const MS: u64 = 1_000_000;
    // A chunk of each device in a millisecond.
    let rate = CHUNK * 1000;
    let commit = CommitPolicy { every_requests: None, idle_ns: Some(MS), bytes_per_s: Some(rate) };
    let mut array =
        recorded(SchemeKind::Eplog, 4, 2, EngineOptions { commit, unit_stripes: 10, ..options() });
    let mut slots = Vec::new();
    assert!(array.engine().take_slots(1, &mut slots));
    (0..STRIPES).for_each(|stripe| {
        array.run(|e, tag| e.write(tag, stripe * 4 * CHUNK, CHUNK, &slots, Durability::Volatile)).unwrap();
    });
    array.settle();
    let committed = |array: &mut Recorded| array.engine().stats().stripes_committed;
    assert_eq!(committed(&mut array), 0);
    for now_ms in 1..=100 {
        array.engine().set_now(now_ms * MS);
        array.settle();
        let (least, most) = (now_ms.saturating_sub(11), now_ms + 10);
        let found = committed(&mut array);
        assert!((least..=most).contains(&found), "{found} stripes after {now_ms} ms");
    }
    let due = array.engine().next_deadline_ns();
    assert!(due.is_some_and(|at| (100 * MS..112 * MS).contains(&at)), "{due:?}");
    array.run(|e, tag| e.commit(tag)).unwrap();
    assert_eq!(committed(&mut array), STRIPES, "whoever asks is not held up");
}
