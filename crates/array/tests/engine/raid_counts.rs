//! What conventional RAID costs, against closed forms (B-01, A-12; `docs/requirements.md`, "Closed forms"):
//! every request writes its chunks and the m parities of each stripe it touches, and reads what the cheaper
//! of the two ways needs.

use crate::common::*;
use array::{Array, Done, arrange};
use block::{Durability, Random as _, Slot, SplitMix, Stream};
use device::{Counting, DeviceCounters, MemorySet};
use format::{Consistency, SchemeKind};

const SECTORS_PER_CHUNK: u64 = 8;

/// Chunks read and written by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Cost {
    data_read: u64,
    parity_read: u64,
    data_written: u64,
    parity_written: u64,
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.data_read += other.data_read;
        self.parity_read += other.parity_read;
        self.data_written += other.data_written;
        self.parity_written += other.parity_written;
    }
}

/// What md would do on an array all of whose chunks are written, from the rule alone: for one stripe of which
/// `whole` chunks are overwritten and `partial` ones in part.
fn stripe_cost(k: u64, m: u64, whole: u64, partial: u64) -> Cost {
    let modify = whole + partial + m;
    let reconstruct = k - whole;
    let written = Cost { data_written: whole + partial, parity_written: m, ..Cost::default() };
    if modify < reconstruct {
        Cost { data_read: whole + partial, parity_read: m, ..written }
    } else {
        Cost { data_read: reconstruct, ..written }
    }
}

/// The cost of one request of `sectors` from `first`, stripe by stripe.
fn request_cost(k: u64, m: u64, first: u64, sectors: u64) -> Cost {
    let mut cost = Cost::default();
    let (stripe_sectors, end) = (k * SECTORS_PER_CHUNK, first + sectors);
    for stripe in first / stripe_sectors..=(end - 1) / stripe_sectors {
        let covered = |chunk: u64| {
            let start = (stripe * k + chunk) * SECTORS_PER_CHUNK;
            end.min(start + SECTORS_PER_CHUNK).saturating_sub(first.max(start))
        };
        let whole = (0..k).filter(|&chunk| covered(chunk) == SECTORS_PER_CHUNK).count() as u64;
        let touched = (0..k).filter(|&chunk| covered(chunk) > 0).count() as u64;
        cost += stripe_cost(k, m, whole, touched - whole);
    }
    cost
}

type Counted = Array<Counting<MemorySet>>;

/// An array all of whose chunks are written.
fn prefilled(k: usize, m: usize, consistency: Consistency) -> Counted {
    let mut create = create_options(SchemeKind::Raid, k, m);
    create.consistency = consistency;
    let mut devices = fresh(&create, 6, 0);
    let arrangement = arrange(&superblocks(&mut devices, k + m)).unwrap();
    let (mut array, _) = Array::assemble(Counting::new(devices), &arrangement, 9, options()).unwrap();
    let sectors = array.engine().volume_bytes() / 512;
    let stripe = k as u64 * SECTORS_PER_CHUNK;
    for first in (0..sectors).step_by(stripe as usize) {
        run(&mut array, &[(first, stripe)]);
    }
    assert_eq!(array.engine().stats().full_stripes, sectors / stripe);
    array.devices().reset();
    array
}

/// Submits writes side by side and waits for all of them.
fn run(array: &mut Counted, requests: &[(u64, u64)]) {
    let mut slots: Vec<Vec<Slot>> = Vec::new();
    for &(first, sectors) in requests {
        let chunks = (first + sectors).div_ceil(SECTORS_PER_CHUNK) - first / SECTORS_PER_CHUNK;
        let mut taken = Vec::new();
        assert!(array.engine().take_slots(chunks as usize, &mut taken));
        let tag = slots.len() as u64;
        array.engine().write(tag, first * 512, sectors * 512, &taken, Durability::Volatile);
        slots.push(taken);
    }
    let mut answers: Vec<Done> = Vec::new();
    while answers.len() < requests.len() {
        array.turn();
        array.take_answers(&mut answers);
    }
    assert!(answers.iter().all(|done| done.result.is_ok()));
    slots.into_iter().flatten().for_each(|slot| array.engine().pool().free(slot));
}

fn chunks(ops: &[u64; 4], stream: Stream) -> u64 {
    ops[stream.index()]
}

fn cost_of(total: &DeviceCounters) -> Cost {
    Cost {
        data_read: chunks(&total.read_ops, Stream::Data),
        parity_read: chunks(&total.read_ops, Stream::Parity),
        data_written: chunks(&total.write_ops, Stream::Data),
        parity_written: chunks(&total.write_ops, Stream::Parity),
    }
}

#[test]
fn contiguous_updates_cost_what_the_rule_says_and_nothing_else_is_written_without_a_journal() {
    for (k, m) in [(6, 2), (4, 2), (6, 1), (4, 1), (3, 3), (1, 1), (10, 2)] {
        let mut array = prefilled(k, m, Consistency::Resync);
        let mut rng = SplitMix::new(41);
        let volume = array.engine().volume_bytes() / 4096;
        let (mut expected, mut stripes, mut updated) = (Cost::default(), 0, 0);
        for _ in 0..300 {
            let count = rng.below(3 * k as u64) + 1;
            let first = rng.below(volume - count);
            expected +=
                request_cost(k as u64, m as u64, first * SECTORS_PER_CHUNK, count * SECTORS_PER_CHUNK);
            stripes += (first + count - 1) / k as u64 - first / k as u64 + 1;
            updated += count;
            run(&mut array, &[(first * SECTORS_PER_CHUNK, count * SECTORS_PER_CHUNK)]);
        }
        let total = array.devices().total();
        assert_eq!(cost_of(&total), expected, "{k}+{m}");
        assert_eq!(
            (expected.data_written, expected.parity_written),
            (updated, m as u64 * stripes),
            "{k}+{m}"
        );
        assert_eq!(total.write_ops_all(), updated + m as u64 * stripes, "{k}+{m}: no metadata");
        assert_eq!(total.flushes, 0, "{k}+{m}");
    }
}

#[test]
fn the_mean_number_of_stripes_touched_is_the_closed_form() {
    let (k, m) = (6u64, 2u64);
    for count in [1, 2, 3, 7, 13] {
        // Every alignment once: k times the mean of m * s, with s = 1 + (c - 1) / k.
        let cost = |first| request_cost(k, m, first * SECTORS_PER_CHUNK, count * SECTORS_PER_CHUNK);
        let total: u64 = (0..k).map(|first| cost(first).parity_written).sum();
        assert_eq!(total, m * (k + count - 1), "{count} chunks");
    }
}

#[test]
fn requests_off_the_chunk_grid_read_each_old_version_once() {
    for (k, m) in [(6, 2), (4, 1), (2, 1)] {
        let mut array = prefilled(k, m, Consistency::Resync);
        let mut rng = SplitMix::new(42);
        let sectors = array.engine().volume_bytes() / 512;
        let mut expected = Cost::default();
        for _ in 0..300 {
            let count = rng.below(2 * k as u64 * SECTORS_PER_CHUNK) + 1;
            let first = rng.below(sectors - count);
            expected += request_cost(k as u64, m as u64, first, count);
            run(&mut array, &[(first, count)]);
        }
        assert_eq!(cost_of(&array.devices().total()), expected, "{k}+{m}");
    }
}

#[test]
fn requests_side_by_side_cost_the_same_as_one_after_the_other() {
    let (k, m) = (6, 2);
    let mut array = prefilled(k, m, Consistency::Resync);
    let mut rng = SplitMix::new(43);
    let sectors = array.engine().volume_bytes() / 512;
    let mut expected = Cost::default();
    for _ in 0..20 {
        // Some meet in one stripe: each is planned by itself (A-12: no merging).
        let requests: Vec<(u64, u64)> = (0..40)
            .map(|_| {
                let count = rng.below(3 * k as u64 * SECTORS_PER_CHUNK) + 1;
                (rng.below((sectors - count).min(4000)), count)
            })
            .collect();
        requests
            .iter()
            .for_each(|&(first, count)| expected += request_cost(k as u64, m as u64, first, count));
        run(&mut array, &requests);
    }
    assert_eq!(cost_of(&array.devices().total()), expected);
}

#[test]
fn a_journal_doubles_the_chunks_written_and_adds_frames() {
    let (k, m) = (6, 2);
    let mut array = prefilled(k, m, Consistency::Journal);
    let mut rng = SplitMix::new(44);
    let volume = array.engine().volume_bytes() / 4096;
    let mut expected = Cost::default();
    for _ in 0..50 {
        let requests: Vec<(u64, u64)> = (0..8)
            .map(|_| {
                let count = rng.below(2 * k as u64) + 1;
                (rng.below(volume - count) * SECTORS_PER_CHUNK, count * SECTORS_PER_CHUNK)
            })
            .collect();
        requests
            .iter()
            .for_each(|&(first, count)| expected += request_cost(k as u64, m as u64, first, count));
        run(&mut array, &requests);
    }
    let total = array.devices().total();
    assert_eq!(cost_of(&total), expected);
    assert_eq!(chunks(&total.write_ops, Stream::Log), expected.data_written + expected.parity_written);
    // One frame in m + 1 copies for each batch of requests, not for each request.
    let frames = chunks(&total.write_ops, Stream::Metadata);
    assert!((3 * 50..3 * 150).contains(&frames), "{frames} frame copies for 50 batches of 8 requests");
}
