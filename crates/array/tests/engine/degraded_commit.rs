//! A parity commit without some of the members: what it reads, and that what it writes is right.

use crate::common::{Layer, Layered, create_options, fresh, options, superblocks};
use array::{Array, EngineOptions, arrange};
use block::{
    Completion, DevIndex, DeviceOp, DeviceSet, Durability, OpKind, Pool, Random as _, Slot, SplitMix,
};
use device::{Counting, MemorySet};
use format::{CodeKind, LayoutKind, SchemeKind};

const CHUNK: u64 = 4096;
const K: usize = 6;

/// Notes where chunks are read.
#[derive(Default)]
struct Recorder {
    reads: Vec<(DevIndex, u64)>,
    /// While set, reads are kept back.
    holds: bool,
    held: Vec<DeviceOp>,
}

impl<D: DeviceSet> Layer<D> for Recorder {
    fn submit(&mut self, inner: &mut D, pool: &mut Pool, ops: &[DeviceOp]) {
        let reads = ops.iter().filter(|op| op.kind == OpKind::Read);
        self.reads.extend(reads.map(|op| (op.dev, op.offset_bytes)));
        for op in ops {
            if self.holds && op.kind == OpKind::Read {
                self.held.push(*op);
            } else {
                inner.submit(pool, std::slice::from_ref(op));
            }
        }
    }

    fn poll(&mut self, inner: &mut D, pool: &mut Pool, completions: &mut Vec<Completion>) {
        if !self.holds {
            inner.submit(pool, &std::mem::take(&mut self.held));
        }
        inner.poll(pool, completions);
    }
}

type Recorded = Array<Counting<Layered<MemorySet, Recorder>>>;

/// An array with its content.
struct Bench {
    array: Recorded,
    model: Vec<u64>,
    rng: SplitMix,
}

/// Every chunk is full of one word.
fn fill(array: &mut Recorded, slot: Slot, word: u64) {
    let (words, _) = array.engine().pool().bytes_mut(slot).as_chunks_mut::<8>();
    words.iter_mut().zip(0..).for_each(|(bytes, at)| *bytes = (word + at).to_le_bytes());
}

impl Bench {
    fn new(scheme: SchemeKind, code: CodeKind, m: usize, engine: EngineOptions) -> Self {
        let mut create = create_options(scheme, K, m);
        (create.code, create.layout, create.reserve_permille) = (code, LayoutKind::Rotate, 400);
        let mut devices = fresh(&create, 10, 64);
        let logs = if scheme.has_log() { m } else { 0 };
        let arrangement = arrange(&superblocks(&mut devices, K + m + logs)).unwrap();
        let (array, _) = Array::assemble(
            Counting::new(Layered { inner: devices, layer: Recorder::default() }),
            &arrangement,
            9,
            engine,
        )
        .unwrap();
        let mut bench = Self { array, model: Vec::new(), rng: SplitMix::new(1) };
        let chunks = bench.array.engine().volume_bytes() / CHUNK;
        bench.model = vec![0; chunks as usize];
        for stripe in 0..chunks / K as u64 {
            let first = stripe * K as u64;
            bench.write(&(first..first + K as u64).collect::<Vec<u64>>());
        }
        bench
    }

    /// Writes chunks next to each other as one request.
    fn write(&mut self, lcns: &[u64]) {
        let mut slots = Vec::new();
        assert!(self.array.engine().take_slots(lcns.len(), &mut slots));
        for (&lcn, &slot) in lcns.iter().zip(&slots) {
            self.model[lcn as usize] = self.rng.word();
            fill(&mut self.array, slot, self.model[lcn as usize]);
        }
        let (at, length) = (lcns[0] * CHUNK, lcns.len() as u64 * CHUNK);
        self.array.run(|e, tag| e.write(tag, at, length, &slots, Durability::Volatile)).unwrap();
        slots.into_iter().for_each(|slot| self.array.engine().pool().free(slot));
    }

    /// Updates that many random chunks, 32 at a time.
    fn update(&mut self, count: usize) {
        for _ in 0..count / 32 {
            let mut under_way: Vec<(u64, Slot)> = Vec::new();
            while under_way.len() < 32 {
                let lcn = self.rng.below(self.model.len() as u64);
                if under_way.iter().all(|&(other, _)| other != lcn) {
                    let mut slots = Vec::new();
                    assert!(self.array.engine().take_slots(1, &mut slots));
                    self.model[lcn as usize] = self.rng.word();
                    fill(&mut self.array, slots[0], self.model[lcn as usize]);
                    self.array.engine().write(lcn, lcn * CHUNK, CHUNK, &slots, Durability::Volatile);
                    under_way.push((lcn, slots[0]));
                }
            }
            self.array.settle();
            let mut answers = Vec::new();
            self.array.take_answers(&mut answers);
            assert!(answers.len() == 32 && answers.iter().all(|done| done.result.is_ok()));
            under_way.into_iter().for_each(|(_, slot)| self.array.engine().pool().free(slot));
        }
    }

    fn fail(&mut self, devices: &[u16]) {
        devices.iter().for_each(|&dev| self.array.engine().fail_device(DevIndex::new(dev)));
        self.array.settle();
    }

    /// Commits; reads of the main and of the log devices for it.
    fn commit(&mut self) -> (u64, u64) {
        self.array.devices().reset();
        self.array.run(|e, tag| e.commit(tag)).unwrap();
        let main = self.array.engine().store().main_count();
        let all = main + self.array.engine().store().config.log_count as usize;
        let read = |bench: &mut Self, index: usize| {
            bench.array.devices().device(DevIndex::new(index as u16)).read_ops_all()
        };
        ((0..main).map(|i| read(self, i)).sum(), (main..all).map(|i| read(self, i)).sum())
    }

    fn rebuild(&mut self, devices: &[u16]) {
        for &dev in devices {
            self.array.devices().inner_mut().inner.bytes_mut(DevIndex::new(dev)).fill(0xee);
            self.array.run(|e, tag| e.rebuild(tag, DevIndex::new(dev), 90 + u32::from(dev))).unwrap();
        }
    }

    fn check(&mut self) {
        for lcn in 0..self.model.len() as u64 {
            let mut slots = Vec::new();
            assert!(self.array.engine().take_slots(1, &mut slots));
            self.array.run(|e, tag| e.read(tag, lcn * CHUNK, CHUNK, &slots)).unwrap();
            let (words, _) = self.array.engine().pool().bytes(slots[0]).as_chunks::<8>();
            let right =
                words.iter().zip(0..).all(|(b, at)| u64::from_le_bytes(*b) == self.model[lcn as usize] + at);
            assert!(right, "chunk {lcn}");
            self.array.engine().pool().free(slots[0]);
        }
    }

    /// Nothing is committed that was not right: the parity must do without any other two members.
    fn check_parity(&mut self, lost: &[u16]) {
        self.check();
        self.rebuild(lost);
        self.array.run(|e, tag| e.scrub(tag, 0)).unwrap();
        let report = self.array.engine().last_report();
        assert_eq!((report.code_mismatches, report.lost, report.chunks_repaired), (0, 0, 0));
        self.fail(&[1, 6]);
        self.check();
    }
}

/// Updates, then a commit without some members; what it read.
fn degraded(scheme: SchemeKind, code: CodeKind, lost: &[u16], updates: usize) -> (Bench, (u64, u64)) {
    let mut bench = Bench::new(scheme, code, 2, options());
    bench.update(updates);
    bench.fail(lost);
    let reads = bench.commit();
    (bench, reads)
}

#[test]
fn it_reads_hardly_more_than_with_all_members() {
    for updates in [320, 1600] {
        let (_, (healthy, logs)) = degraded(SchemeKind::Eplog, CodeKind::Cauchy, &[], updates);
        assert_eq!(logs, 0);
        for lost in [vec![2], vec![2, 3], vec![0, 4]] {
            let (mut bench, (main, logs)) = degraded(SchemeKind::Eplog, CodeKind::Cauchy, &lost, updates);
            println!("{updates}, {lost:?}: {main} reads and {logs} of log devices, {healthy} with all");
            assert!(main * 4 <= healthy * 5, "{main} reads without {lost:?}, {healthy} with all");
            bench.check_parity(&lost);
        }
    }
}

#[test]
fn every_scheme_and_code_commits_what_is_right() {
    let rows = [(SchemeKind::Eplog, CodeKind::Rdp), (SchemeKind::ParityLog, CodeKind::Cauchy)];
    for (scheme, code) in rows {
        for lost in [[2, 3], [6, 7]] {
            let (mut bench, _) = degraded(scheme, code, &lost, 640);
            bench.check_parity(&lost);
        }
    }
}

#[test]
fn no_chunk_is_read_twice_in_a_unit() {
    let engine = EngineOptions { unit_stripes: 100_000, pool_bytes: 256 << 20, ..options() };
    let mut bench = Bench::new(SchemeKind::Eplog, CodeKind::Cauchy, 2, engine);
    bench.update(1600);
    bench.fail(&[2, 3]);
    bench.array.devices().inner_mut().layer.reads.clear();
    bench.commit();
    let reads = &mut bench.array.devices().inner_mut().layer.reads;
    let count = reads.len();
    assert!(reads.windows(2).all(|pair| pair[0] < pair[1]), "in the order of the devices, each chunk once");
    assert!(count > 1000, "{count} reads");
}

#[test]
fn a_bad_piece_is_replaced_and_healed() {
    for step in [3, 4, 5] {
        let mut bench = Bench::new(SchemeKind::Eplog, CodeKind::Cauchy, 2, options());
        bench.update(640);
        bench.fail(&[2]);
        // One device of the others gives back garbage for every so many chunks: every code word can bear it.
        let content = bench.array.devices().inner_mut().inner.bytes_mut(DevIndex::new(5));
        let chunks = content.chunks_exact_mut(CHUNK as usize).skip(1 << 8);
        chunks
            .step_by(step)
            .filter(|chunk| chunk.iter().any(|&byte| byte != 0))
            .for_each(|chunk| chunk[9] ^= 1);
        bench.commit();
        assert!(bench.array.engine().stats().healed > 20);
        assert_eq!(bench.array.engine().stats().lost, 0);
        bench.check();
        bench.array.run(|e, tag| e.scrub(tag, 0)).unwrap();
        bench.check_parity(&[2]);
    }
}

/// What the parity on a lost device changes by is known, and not what it is: that must not be written to a
/// replacement that comes while the commit is reading.
#[test]
fn a_replacement_that_comes_meanwhile_gets_no_half_of_a_sum() {
    let mut bench = Bench::new(SchemeKind::Eplog, CodeKind::Cauchy, 2, options());
    bench.update(320);
    let lost = DevIndex::new(2);
    bench.fail(&[2]);
    bench.array.devices().inner_mut().layer.holds = true;
    let tag = bench.array.own_tag();
    bench.array.engine().commit(tag);
    (0..10).for_each(|_| _ = bench.array.turn());
    assert!(bench.array.devices().inner_mut().layer.held.len() > 100);
    bench.array.devices().inner_mut().inner.bytes_mut(lost).fill(0xee);
    let tag = bench.array.own_tag();
    bench.array.engine().rebuild(tag, lost, 91);
    (0..10).for_each(|_| _ = bench.array.turn());
    bench.array.devices().inner_mut().layer.holds = false;
    bench.array.settle();
    assert_eq!(bench.array.engine().health().missing_count(), 0);
    assert_eq!(bench.array.engine().stats().healed, 0);
    bench.check_parity(&[]);
}
