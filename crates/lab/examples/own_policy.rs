//! A placement policy of one's own in Rust: SepBIT (FAST 2022, section 3) written anew, beside the built-in
//! one. `python/examples/sepbit.py` is the same in Python.
//!
//! `cargo run --release -p elastripe-lab --example own_policy`

use block::{Lba, Lcn};
use placement::{
    Class, CollectedUnit, GcThreshold, GcWrite, Greedy, Placement, PlacementKind, PlacementOptions,
    SequenceDetector, Store, StoreCounts, StoreOptions, Times, UserWrite,
};
use std::error::Error;
use trace::{GenerateOptions, Generator, Profile};

const CHUNK_BYTES: u64 = 4096;
const UNITS_AVERAGED: u64 = 16;

/// Infers when a chunk will be overwritten: of a user's write from how long the version lived that it
/// replaces, of a chunk that gc moves from its age.
#[derive(Default)]
struct OwnSepBit {
    /// In chunks that users write; `None` is infinite.
    lifespan: Option<u64>,
    collected: u64,
    lifespan_sum: u64,
}

impl OwnSepBit {
    fn is_below(&self, time: u64, factor: u64) -> bool {
        self.lifespan.is_none_or(|lifespan| time < factor * lifespan)
    }
}

impl Placement for OwnSepBit {
    fn classes(&self) -> usize {
        6
    }

    fn needs_times(&self) -> bool {
        true
    }

    fn place_user(&mut self, write: UserWrite) -> Class {
        let soon = write.previous.is_some_and(|previous| self.is_below(write.now - previous, 1));
        Class::new(if soon { 0 } else { 1 })
    }

    fn place_gc(&mut self, write: GcWrite) -> Class {
        if write.class == Class::new(0) {
            return Class::new(2);
        }
        Class::new(match write.written.map(|written| write.now - written) {
            Some(age) if self.is_below(age, 4) => 3,
            Some(age) if self.is_below(age, 16) => 4,
            Some(_) | None => 5,
        })
    }

    fn note_collected(&mut self, unit: CollectedUnit) {
        if unit.class != Class::new(0) {
            return;
        }
        self.collected += 1;
        self.lifespan_sum += unit.now - unit.created;
        if self.collected == UNITS_AVERAGED {
            self.lifespan = Some(self.lifespan_sum / UNITS_AVERAGED);
            (self.collected, self.lifespan_sum) = (0, 0);
        }
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// The same trace through a store that places by this policy.
fn run(placement: Box<dyn Placement>) -> Result<StoreCounts, Box<dyn Error>> {
    let range_bytes = 64 << 20;
    let options = StoreOptions {
        chunk_count: range_bytes / CHUNK_BYTES,
        unit_chunks: 256,
        unit_count: 84,
        gc_threshold: GcThreshold::default(),
        times: Times::Exact,
    };
    let mut store = Store::new(&options, placement, Box::new(Greedy))?;
    let mut detector = SequenceDetector::default();
    let requests = Generator::new(&GenerateOptions {
        profile: Profile::Zipf { exponent: 0.99 },
        request_count: Some(400_000),
        seed: 1,
        range_bytes: Some(range_bytes),
    })?;
    for request in requests {
        let first = Lba::new(request.offset_bytes / 512);
        let sequence = detector.request(first, request.length_bytes / 512);
        for chunk in request.chunks(CHUNK_BYTES) {
            store.write(Lcn::new(chunk), sequence)?;
        }
    }
    Ok(store.counts())
}

/// Runs the policy beside the built-in one; fails if their counts differ.
pub fn main() -> Result<(), Box<dyn Error>> {
    let built_in = PlacementOptions::new(PlacementKind::SepBit, 1).build()?;
    let (own, ours) = (run(Box::new(OwnSepBit::default()))?, run(built_in)?);
    for (name, counts) in [("own", own), ("built-in", ours)] {
        println!("{name:>8}: {} of {} chunks moved", counts.rewritten, counts.written);
    }
    assert_eq!(own, ours, "the same policy comes to the same counts");
    Ok(())
}
