//! The crate's store against the slow and obvious one that the policies were validated in.
#![allow(clippy::unwrap_used, dead_code, reason = "tests may panic, and use a part of the module store")]

mod store;

use block::{Lba, Lcn};
use placement::{
    Class, GcWrite, Placement, PlacementKind, PlacementOptions, Sequence, SequenceDetector, SingleGroup,
    StoreCounts, StoreError, StoreOptions, Times, Tuning, UnitId, Units, UserWrite, VictimKind, VictimPolicy,
};
use store::{Random, Shape, Store, Times as SlowTimes};

const CHUNKS: usize = 6_000;
const UNITS: usize = 64;
const UNIT_CHUNKS: u32 = 128;

fn options(times: Times) -> StoreOptions {
    StoreOptions {
        chunk_count: CHUNKS as u64,
        unit_chunks: UNIT_CHUNKS.into(),
        unit_count: UNITS as u64,
        gc_threshold: placement::GcThreshold::default(),
        times,
    }
}

/// Skewed writes of one to four chunks, some of which go on where the one before ended.
fn workload(seed: u64, mut write: impl FnMut(u64, Sequence)) {
    let (mut random, mut detector, mut end) = (Random(seed), SequenceDetector::default(), 0);
    for _ in 0..40_000 {
        let hot = random.below(10) < 8;
        let fresh = if hot { random.below(CHUNKS / 5 - 4) } else { random.below(CHUNKS - 4) };
        let first = if random.below(5) == 0 && end + 4 < CHUNKS { end } else { fresh };
        let count = 1 + random.below(4);
        let sequence = detector.request(Lba::new(first as u64 * 8), count as u64 * 8);
        (first..first + count).for_each(|chunk| write(chunk as u64, sequence));
        end = first + count;
    }
}

#[test]
fn both_stores_count_alike() {
    let times = [(Times::Exact, SlowTimes::Exact), (Times::Stamps, SlowTimes::Stamps)];
    for &kind in PlacementKind::ALL {
        for &victims in VictimKind::ALL {
            for (fast, slow) in times.into_iter().chain([(Times::Unknown, SlowTimes::Unknown)]) {
                let tuning = Tuning { recent_entries: 512, ..Tuning::default() };
                let policy = || {
                    PlacementOptions { tuning, ..PlacementOptions::new(kind, CHUNKS as u64) }.build().unwrap()
                };
                let shape = Shape { units: UNITS, group_chunks: UNIT_CHUNKS, chunks: CHUNKS };
                let mut one = Store::new(policy(), victims, slow, shape);
                let mut other = placement::Store::new(&options(fast), policy(), victims.build()).unwrap();
                workload(7, |chunk, sequence| {
                    one.write(usize::try_from(chunk).unwrap(), sequence);
                    other.write(Lcn::new(chunk), sequence).unwrap();
                });
                one.check();
                let StoreCounts { written, rewritten, collected, .. } = other.counts();
                assert_eq!(
                    (written, rewritten, collected),
                    (one.now, one.rewritten, one.collected),
                    "{kind}"
                );
                assert_eq!(other.unique(), one.unique() as u64);
                assert!(rewritten > 10_000, "{rewritten}: hardly anything was collected");
            }
        }
    }
}

#[test]
fn chunks_are_in_a_unit_in_a_group_or_absorbed() {
    let policy = PlacementOptions::new(PlacementKind::SepBit, CHUNKS as u64).build().unwrap();
    let mut store =
        placement::Store::new(&options(Times::Exact), policy, VictimKind::Greedy.build()).unwrap();
    workload(3, |chunk, sequence| store.write(Lcn::new(chunk), sequence).unwrap());
    let counts = store.counts();
    let in_units = counts.units_written * u64::from(UNIT_CHUNKS);
    let arrived = counts.written - counts.absorbed + counts.rewritten;
    assert!(counts.absorbed > 0);
    // What is in neither waits in one of the six groups.
    assert!((in_units..in_units + 6 * u64::from(UNIT_CHUNKS)).contains(&arrived), "{counts:?}");
}

/// Answers what it was made with.
struct Fixed(u8);

impl Placement for Fixed {
    fn classes(&self) -> usize {
        2
    }

    fn place_user(&mut self, _write: UserWrite) -> Class {
        Class::new(self.0)
    }

    fn place_gc(&mut self, _write: GcWrite) -> Class {
        Class::new(9)
    }

    fn memory_bytes(&self) -> usize {
        1
    }
}

struct First;

impl VictimPolicy for First {
    fn pick(&mut self, _units: &dyn Units, _now: u64) -> Option<UnitId> {
        Some(UnitId::new(0))
    }
}

/// The first error of the workload, each chunk moved up by `by`.
fn run(store: &mut placement::Store, by: u64) -> Result<(), StoreError> {
    let mut result = Ok(());
    workload(5, |chunk, sequence| {
        if result.is_ok() && chunk + by < CHUNKS as u64 {
            result = store.write(Lcn::new(chunk + by), sequence);
        }
    });
    result
}

#[test]
fn wrong_answers_and_full_stores_are_errors() {
    let greedy = || VictimKind::Greedy.build();
    let made =
        |placement, victims| placement::Store::new(&options(Times::Exact), placement, victims).unwrap();
    let mut store = made(Box::new(Fixed(2)), greedy());
    let error = run(&mut store, 0).unwrap_err();
    assert_eq!(error, StoreError::Class { found: 2, classes: 2 });
    // What is moved by gc gets a wrong class.
    let mut store = made(Box::new(Fixed(0)), greedy());
    let error = run(&mut store, 0).unwrap_err();
    assert_eq!(error, StoreError::Class { found: 9, classes: 2 });
    // The first unit is full of what is never written again.
    let mut store = made(Box::new(SingleGroup), Box::new(First));
    (0..128).for_each(|chunk| store.write(Lcn::new(chunk), Sequence::Random).unwrap());
    let error = run(&mut store, 128).unwrap_err();
    assert_eq!(error, StoreError::Victim { found: UnitId::new(0) });
    let full = StoreOptions { unit_count: 47, ..options(Times::Exact) };
    let mut store = placement::Store::new(&full, Box::new(SingleGroup), greedy()).unwrap();
    let error = run(&mut store, 0).unwrap_err();
    assert!(error.to_string().contains("use more spare units"), "{error}");
    let error = store.write(Lcn::new(CHUNKS as u64), Sequence::Random).unwrap_err();
    assert_eq!(error.to_string(), "chunk 6000 is written, expected one below 6000");
    let huge = StoreOptions { unit_count: 1 << 31, unit_chunks: 1 << 20, ..options(Times::Exact) };
    let error = placement::Store::new(&huge, Box::new(SingleGroup), greedy()).err().unwrap();
    assert!(error.to_string().contains("cannot be had"), "{error}");
    let none = StoreOptions { chunk_count: 0, ..options(Times::Exact) };
    let error = placement::Store::new(&none, Box::new(SingleGroup), greedy()).err().unwrap();
    assert_eq!(error.to_string(), "chunks: found 0, expected 1 to 4294967295");
}
