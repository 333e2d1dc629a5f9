//! While a full checkpoint is written, incremental ones go on beside it: what a start has to replay does not
//! grow with the time that it takes.

use crate::common::*;
use array::{Array, CheckpointPlace, CreateOptions, EngineOptions, RecoveryReport, arrange};
use block::{Completion, DevIndex, DeviceOp, DeviceSet, Durability, OpKind, Pool, Random as _, SplitMix};
use device::MemorySet;
use format::{CheckpointKind, Consistency, LayoutKind, MemberState, SchemeKind};
use std::ops::Range;

const CHUNK: u64 = 4096;
const K: usize = 4;
const M: usize = 2;
/// Of a table of some 100 pages.
const PAGES: u64 = 32;

/// Pages of the table wait on their way to the main members.
#[derive(Default)]
struct Held {
    /// Where they go.
    area: Option<Range<u64>>,
    waiting: Vec<DeviceOp>,
    /// A member to which they never come.
    gone: Option<DevIndex>,
}

impl Layer<MemorySet> for Held {
    fn submit(&mut self, inner: &mut MemorySet, pool: &mut Pool, ops: &[DeviceOp]) {
        for &op in ops {
            let is_held = op.kind == OpKind::Write
                && op.dev.index() < K + M
                && self.area.as_ref().is_some_and(|area| area.contains(&op.offset_bytes));
            if is_held { self.waiting.push(op) } else { inner.submit(pool, &[op]) }
        }
    }

    fn poll(&mut self, inner: &mut MemorySet, pool: &mut Pool, completions: &mut Vec<Completion>) {
        if self.area.is_none() {
            let waiting = std::mem::take(&mut self.waiting).into_iter();
            let (lost, rest): (Vec<_>, Vec<_>) = waiting.partition(|op| Some(op.dev) == self.gone);
            completions.extend(lost.iter().map(|op| Completion { tag: op.tag, result: Err(EIO) }));
            inner.submit(pool, &rest);
        }
        inner.poll(pool, completions);
    }
}

type Slow = Array<Layered<MemorySet, Held>>;

fn few_pages() -> EngineOptions {
    EngineOptions { table_bytes: PAGES * 4300, ..options() }
}

fn started(mut inner: MemorySet, nonce: u64, members: usize) -> (Slow, RecoveryReport) {
    let arrangement = arrange(&superblocks(&mut inner, members)).unwrap();
    let devices = Layered { inner, layer: Held::default() };
    Array::assemble(devices, &arrangement, nonce, few_pages()).unwrap()
}

struct Bench {
    array: Slow,
    random: SplitMix,
    members: usize,
}

impl Bench {
    /// A full checkpoint is under way, and does not come to its end.
    fn held(scheme: SchemeKind) -> Self {
        let create = CreateOptions {
            layout: LayoutKind::Rotate,
            consistency: Consistency::Journal,
            ..create_options(scheme, K, M)
        };
        let members = if scheme.has_log() { K + 2 * M } else { K + M };
        let (array, _) = started(fresh(&create, 24, 16), 9, members);
        let mut bench = Self { array, random: SplitMix::new(5), members };
        bench.hold();
        while bench.array.devices().layer.waiting.is_empty() {
            bench.write(8);
        }
        bench
    }

    fn hold(&mut self) {
        let config = self.array.engine_ref().store().config;
        let end = config.page_offset(config.page_blocks - 1) + CHUNK;
        self.array.devices().layer.area = Some(config.page_offset(0)..end);
    }

    /// What was held arrives.
    fn let_go(&mut self) {
        self.array.devices().layer.area = None;
        self.array.settle();
    }

    /// Writes that all are durable when this returns, to the first third of the volume.
    fn write(&mut self, count: u64) {
        self.write_to(3, count);
    }

    /// The same to some other share of it.
    fn write_to(&mut self, share: u64, count: u64) {
        let chunks = self.array.engine_ref().volume_bytes() / CHUNK / share;
        let random = &mut self.random;
        write_many(&mut self.array, (count, 8), || (random.below(chunks) * CHUNK, Durability::Volatile));
        self.array.run(|e, tag| e.flush(tag)).unwrap();
    }

    fn place(&self) -> CheckpointPlace {
        self.array.engine_ref().checkpoint_place().clone()
    }

    /// What a start after a power cut finds, without these members.
    fn crashed(&mut self, lost: &[u16]) -> (Slow, RecoveryReport) {
        let mut image = copy_of(&self.array.devices().inner, self.members);
        for &dev in lost {
            image.bytes_mut(DevIndex::new(dev)).fill(0);
        }
        started(image, 77, self.members)
    }

    /// Where every chunk is, as a start says: the same as here.
    fn is_same(&mut self, other: &mut Slow) {
        self.array.bring_all_pages().unwrap();
        other.bring_all_pages().unwrap();
        let tables = [&self.array, other].map(|array| &array.engine_ref().store().table);
        assert!(tables[0].is_same(tables[1]), "the table is another one");
    }
}

/// Records that may come before the next checkpoint is due, and while that is being written.
const RECORDS: u64 = 400;

#[test]
fn a_start_replays_few_records_however_long_a_full_one_takes() {
    let mut bench = Bench::held(SchemeKind::Eplog);
    let before = bench.place();
    bench.write(3000);
    let (place, stats) = (bench.place(), bench.array.engine_ref().stats());
    assert_eq!(place.base, before.base, "the full one is under way still");
    assert!(stats.checkpoints_beside > 10, "{stats:?}");
    let (_, report) = bench.crashed(&[]);
    assert!(report.replayed < RECORDS, "{report:?}");
    assert!(report.checkpoint >= place.number);
}

#[test]
fn what_went_on_beside_it_is_behind_the_full_one_too() {
    let mut bench = Bench::held(SchemeKind::Eplog);
    bench.write(1000);
    let (before, number) = (bench.place().base, bench.place().number);
    bench.let_go();
    let place = bench.place();
    assert!(place.base > before && place.number >= number && place.before > 0, "{place:?}");
    // Whoever of those that hold it is lost, two of them at once.
    for lost in (0..(K + M) as u16).flat_map(|one| (one + 1..(K + M) as u16).map(move |other| [one, other])) {
        let (mut array, report) = bench.crashed(&lost);
        assert!(report.checkpoint >= place.number && report.replayed < RECORDS, "{lost:?}: {report:?}");
        bench.is_same(&mut array);
    }
}

#[test]
fn it_goes_on_after_a_restart_and_around_the_ring() {
    let mut bench = Bench::held(SchemeKind::Eplog);
    let ring = u64::from(bench.array.engine_ref().store().config.incremental_blocks);
    let (mut turns, mut beside) = (0, 0);
    for round in 0..24 {
        bench.write(500);
        if round % 3 != 2 {
            bench.let_go();
        }
        beside += bench.array.engine_ref().stats().checkpoints_beside;
        let place = bench.place();
        turns = turns.max(place.chain.next / ring);
        let (mut array, report) = bench.crashed(&[]);
        assert!(report.replayed < RECORDS && report.checkpoint >= place.number, "{report:?}");
        array.settle();
        bench.array = array;
        bench.hold();
    }
    assert!(beside > 20 && turns > 0, "{beside} beside full ones, {turns} turns");
}

#[test]
fn a_member_that_left_meanwhile_gets_what_it_has_not_got_of_the_full_one() {
    const BACK: DevIndex = DevIndex::new(1);
    let mut bench = Bench::held(SchemeKind::Raid);
    // Most pages that the full one writes do not change any more.
    bench.write_to(100, 500);
    assert!(bench.array.engine_ref().stats().checkpoints_beside > 1);
    bench.array.engine().fail_device(BACK);
    bench.array.devices().layer.gone = Some(BACK);
    bench.let_go();
    let superblock = superblocks(&mut bench.array.devices().inner, K + M).swap_remove(BACK.index());
    bench.array.run(|e, tag| e.online(tag, BACK, 78, &superblock)).unwrap();
    bench.array.settle();
    assert_eq!(bench.array.engine_ref().health().state(BACK), MemberState::Healthy);
    bench.array.run(|e, tag| e.write_checkpoint(tag, CheckpointKind::Incremental)).unwrap();
    // Its copies are all that is left of some pages.
    let (mut array, _) = bench.crashed(&[2, 3]);
    bench.is_same(&mut array);
    let errors = array.engine_ref().health().members()[BACK.index()].errors;
    assert_eq!(errors.checksum, 0, "all of its copies are good: {errors:?}");
}
