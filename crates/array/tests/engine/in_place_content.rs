//! Schemes that write in place keep their content: random writes, reads, discards, commits, device
//! losses, rebuilds, restarts with and without a stop in order, in both write-hole modes; compared with a
//! plain byte vector.

use crate::common::*;
use array::{Array, DirtyDegraded, EngineOptions, arrange};
use block::{DevIndex, Durability, Random as _, SplitMix};
use device::MemorySet;
use format::{Consistency, SchemeKind};

struct Scenario {
    array: Array<MemorySet>,
    model: Vec<u8>,
    rng: SplitMix,
    failed: Vec<u16>,
    count: usize,
    parity_count: usize,
    consistency: Consistency,
    options: EngineOptions,
}

impl Scenario {
    fn new(
        scheme: SchemeKind,
        seed: u64,
        (k, m): (usize, usize),
        consistency: Consistency,
        stripe_cache: u32,
    ) -> Self {
        println!("{scheme}, seed {seed}, {k}+{m}, {consistency:?}, {stripe_cache} stripes");
        let mut create = create_options(scheme, k, m);
        create.consistency = consistency;
        let count = k + m + if scheme.has_log() { m } else { 0 };
        let mut options = options();
        options.scheme.stripe_cache = stripe_cache;
        let (mut array, _) = assemble(fresh(&create, 8, 4), count, options);
        let model = vec![0u8; array.engine().volume_bytes() as usize];
        Self {
            array,
            model,
            rng: SplitMix::new(seed),
            failed: Vec::new(),
            count,
            parity_count: m,
            consistency,
            options,
        }
    }

    fn range(&mut self, sectors_max: u64) -> (u64, u64) {
        let size = self.model.len() as u64;
        let offset = self.rng.below(size / 512) * 512;
        (offset, ((self.rng.below(sectors_max) + 1) * 512).min(size - offset))
    }

    fn write(&mut self, step: u64) {
        let (offset, len) = self.range(120);
        let salt = self.rng.below(256);
        let bytes: Vec<u8> = (0..len).map(|i| (step + i * 7 + salt) as u8).collect();
        let durable = if self.rng.below(4) == 0 { Durability::Durable } else { Durability::Volatile };
        write(&mut self.array, offset, &bytes, durable).unwrap();
        self.model[offset as usize..(offset + len) as usize].copy_from_slice(&bytes);
    }

    fn read(&mut self, step: u64) {
        let (offset, len) = self.range(120);
        let got = read(&mut self.array, offset, len).unwrap();
        assert!(
            got == self.model[offset as usize..(offset + len) as usize],
            "step {step} offset {offset}+{len}"
        );
    }

    fn discard(&mut self) {
        let (offset, len) = self.range(1000);
        discard(&mut self.array, offset, len).unwrap();
        self.model[offset as usize..(offset + len) as usize].fill(0);
    }

    fn fail(&mut self) {
        let dev = self.rng.below(self.count as u64) as u16;
        if self.failed.len() < self.parity_count && !self.failed.contains(&dev) {
            self.failed.push(dev);
            self.array.engine().fail_device(DevIndex::new(dev));
        }
    }

    fn rebuild(&mut self, step: u64) {
        if let Some(dev) = self.failed.pop() {
            let dev = DevIndex::new(dev);
            self.array.settle();
            self.array.devices().bytes_mut(dev).fill(0xee);
            self.array.run(|e, tag| e.rebuild(tag, dev, 1000 + step as u32)).unwrap();
        }
    }

    /// Puts the array together again, after a stop in order or by just dropping it.
    fn restart(mut self) -> Self {
        self.array.settle();
        let degraded = !self.failed.is_empty();
        let clean = self.rng.below(2) == 0 || (degraded && self.consistency == Consistency::Resync);
        if clean {
            self.array.stop().unwrap();
        }
        let resync = !clean && self.consistency == Consistency::Resync;
        let stripes = self.array.engine().store().config.stripe_count;
        let (array, report) = assemble(self.array.into_devices(), self.count, self.options);
        assert_eq!(report.dropped, 0);
        assert_eq!(report.was_clean, clean);
        assert_eq!(report.resynced, if resync { stripes } else { 0 });
        Self { array, ..self }
    }

    fn scrub(&mut self) {
        self.array.run(|e, tag| e.scrub(tag, 0)).unwrap();
        let expected = array::MaintenanceReport { completed: true, ..array::MaintenanceReport::default() };
        assert_eq!(self.array.engine().last_report(), expected);
    }

    fn check_all(&mut self) {
        let mut at = 0;
        while at < self.model.len() {
            let len = (self.model.len() - at).min(256 << 10);
            let got = read(&mut self.array, at as u64, len as u64).unwrap();
            assert!(got == self.model[at..at + len], "content at {at}");
            at += len;
        }
        assert_eq!(self.array.engine().stats().lost, 0);
        assert_eq!(self.array.engine().stats().cache.stale, 0);
    }

    fn run(mut self, steps: u64) {
        for step in 0..steps {
            match self.rng.below(100) {
                0..60 => self.write(step),
                60..80 => self.read(step),
                80..85 => self.discard(),
                85..88 => self.array.run(|e, tag| e.flush(tag)).unwrap(),
                88..90 => self
                    .array
                    .run(|e, tag| e.write_checkpoint(tag, format::CheckpointKind::Incremental))
                    .unwrap(),
                90 => self.scrub(),
                91 => self.array.run(|e, tag| e.commit(tag)).unwrap(),
                92..94 => self.fail(),
                94..97 => self.rebuild(step),
                _ => self = self.restart(),
            }
        }
        self.check_all();
        self.scrub();
        self = self.restart();
        self.check_all();
    }
}

fn run_all(scheme: SchemeKind, consistency: Consistency) {
    for seed in 0..5 {
        for shape in [(6, 2), (4, 1), (3, 3), (1, 1)] {
            Scenario::new(scheme, seed, shape, consistency, 0).run(600);
        }
    }
}

#[test]
fn raid_with_a_cache_of_stripes_reads_back_like_a_byte_vector() {
    for (seed, stripes) in [(10, 8), (11, 20), (12, 1000)] {
        for shape in [(6, 2), (4, 1), (3, 3), (1, 1)] {
            Scenario::new(SchemeKind::Raid, seed, shape, Consistency::Resync, stripes).run(600);
            Scenario::new(SchemeKind::Raid, seed, shape, Consistency::Journal, stripes).run(600);
        }
    }
}

#[test]
fn raid_with_resync_reads_back_like_a_byte_vector() {
    run_all(SchemeKind::Raid, Consistency::Resync);
}

#[test]
fn raid_with_a_journal_reads_back_like_a_byte_vector() {
    run_all(SchemeKind::Raid, Consistency::Journal);
}

#[test]
fn parity_log_with_resync_reads_back_like_a_byte_vector() {
    run_all(SchemeKind::ParityLog, Consistency::Resync);
}

#[test]
fn parity_log_with_a_journal_reads_back_like_a_byte_vector() {
    run_all(SchemeKind::ParityLog, Consistency::Journal);
}

/// An array that was dropped while it ran, and then lost device 2; what was written to it.
fn dirty_and_degraded() -> (MemorySet, Vec<u8>) {
    let create = create_options(SchemeKind::Raid, 4, 2);
    let (mut array, _) = assemble(fresh(&create, 8, 0), 6, options());
    let bytes: Vec<u8> = (0..200 * 4096u32).map(|i| (i / 100) as u8).collect();
    write(&mut array, 0, &bytes, Durability::Durable).unwrap();
    array.settle();
    let mut devices = array.into_devices();
    devices.bytes_mut(DevIndex::new(2)).fill(0);
    (devices, bytes)
}

#[test]
fn without_a_journal_a_degraded_array_that_was_not_stopped_is_refused_unless_asked_for() {
    let (mut devices, _) = dirty_and_degraded();
    let arrangement = arrange(&superblocks(&mut devices, 6)).unwrap();
    let refused = Array::assemble(devices, &arrangement, 1, options()).err();
    assert_eq!(refused, Some(array::AssembleError::DirtyDegraded));

    let (mut devices, bytes) = dirty_and_degraded();
    let mut arrangement = arrange(&superblocks(&mut devices, 6)).unwrap();
    arrangement.dirty_degraded = DirtyDegraded::Accept;
    let (mut array, report) = Array::assemble(devices, &arrangement, 2, options()).unwrap();
    assert_eq!(report.resynced, array.engine().store().config.stripe_count);
    assert!(read(&mut array, 0, bytes.len() as u64).unwrap() == bytes);
    array.run(|e, tag| e.rebuild(tag, DevIndex::new(2), 77)).unwrap();
    array.engine().fail_device(DevIndex::new(0));
    array.engine().fail_device(DevIndex::new(1));
    assert!(read(&mut array, 0, bytes.len() as u64).unwrap() == bytes);
}

#[test]
fn that_a_start_was_forced_is_known_until_it_is_cleared() {
    let (mut devices, _) = dirty_and_degraded();
    let mut arrangement = arrange(&superblocks(&mut devices, 6)).unwrap();
    arrangement.dirty_degraded = DirtyDegraded::Accept;
    let (mut array, report) = Array::assemble(devices, &arrangement, 2, options()).unwrap();
    let epoch = array.engine_ref().journal().epoch();
    assert_eq!(report.forced, Some(epoch));
    array.run(|e, tag| e.clear_errors(tag, Some(DevIndex::new(0)))).unwrap();
    array.stop().unwrap();

    // Cleared for one member is not cleared, and the first forced start counts, whoever starts it later.
    let (mut array, report) = assemble(array.into_devices(), 6, options());
    assert_eq!((report.forced, report.was_clean), (Some(epoch), true));
    array.run(|e, tag| e.clear_errors(tag, None)).unwrap();
    array.stop().unwrap();
    let (mut array, report) = assemble(array.into_devices(), 6, options());
    assert_eq!(report.forced, None);
    array.stop().unwrap();
}
