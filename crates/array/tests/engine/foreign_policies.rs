//! Policies that are no part of the product take the place of its own when an array is assembled.

use crate::common::{create_options, fresh, options, superblocks, write};
use array::{Array, AssembleError, EngineOptions, Policies, SchemeOptions, arrange};
use block::{Durability, Random as _, SplitMix};
use device::MemorySet;
use format::SchemeKind;
use placement::{
    Class, CollectedUnit, GcWrite, OptionError, Placement, PlacementKind, PlacementOptions, UnitId, Units,
    UserWrite, VictimKind, VictimPolicy,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const CHUNK: u64 = 4096;

/// Hands on what it is asked, and counts it.
struct Counted<P> {
    policy: P,
    classes: usize,
    calls: Arc<[AtomicU64; 4]>,
}

impl<P> Counted<P> {
    fn count(&self, which: usize) {
        self.calls[which].fetch_add(1, Ordering::Relaxed);
    }
}

impl<P: Placement> Placement for Counted<P> {
    fn classes(&self) -> usize {
        self.classes
    }

    fn needs_times(&self) -> bool {
        self.policy.needs_times()
    }

    fn place_user(&mut self, write: UserWrite) -> Class {
        self.count(0);
        self.policy.place_user(write)
    }

    fn place_gc(&mut self, write: GcWrite) -> Class {
        self.count(1);
        self.policy.place_gc(write)
    }

    fn note_collected(&mut self, unit: CollectedUnit) {
        self.count(2);
        self.policy.note_collected(unit);
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

impl<P: VictimPolicy> VictimPolicy for Counted<P> {
    fn pick(&mut self, units: &dyn Units, now: u64) -> Option<UnitId> {
        self.count(3);
        self.policy.pick(units, now)
    }
}

fn elastic(scheme_options: SchemeOptions, policies: Policies) -> Result<Array<MemorySet>, AssembleError> {
    let mut devices = fresh(&create_options(SchemeKind::Elastic, 3, 1), 16, 0);
    let arrangement = arrange(&superblocks(&mut devices, 4)).unwrap();
    let options = EngineOptions { scheme: scheme_options, ..options() };
    Array::assemble_with(devices, &arrangement, 4242, options, policies).map(|(array, _)| array)
}

/// Overwrites chunks, most of them of a few, until much was collected; what collection did.
fn run(mut array: Array<MemorySet>) -> (u64, u64) {
    let chunks = array.engine_ref().store().config.volume_bytes() / CHUNK;
    let mut random = SplitMix::new(5);
    for write_count in 0..6 * chunks {
        let hot = random.below(5) < 4;
        let lcn = random.below(if hot { chunks / 5 } else { chunks });
        let bytes = [write_count as u8; CHUNK as usize];
        write(&mut array, lcn * CHUNK, &bytes, Durability::Volatile).unwrap();
    }
    array.settle();
    let stats = array.engine_ref().scheme().collects().unwrap().gc_stats();
    (stats.units_collected, stats.chunks_rewritten)
}

#[test]
fn a_policy_that_does_as_ours_does_comes_to_the_same_counts() {
    let own = SchemeOptions { placement: Some(PlacementKind::SepBit), ..SchemeOptions::default() };
    let expected = run(elastic(own, Policies::default()).unwrap());
    let calls: Arc<[AtomicU64; 4]> = Arc::default();
    let policies = Policies {
        placement: Some(Box::new(Counted {
            policy: PlacementOptions::new(PlacementKind::SepBit, 1).build().unwrap(),
            classes: 6,
            calls: Arc::clone(&calls),
        })),
        victims: Some(Box::new(Counted { policy: placement::Greedy, classes: 0, calls: Arc::clone(&calls) })),
    };
    let array = elastic(SchemeOptions { gc: VictimKind::CostBenefit, ..SchemeOptions::default() }, policies);
    assert_eq!(run(array.unwrap()), expected);
    let [user, gc, collected, picked] = [0, 1, 2, 3].map(|which: usize| calls[which].load(Ordering::Relaxed));
    assert!(expected.0 > 100 && collected == expected.0 && picked >= collected, "{expected:?} {calls:?}");
    assert!(user > 1000 && gc >= expected.1, "{expected:?} {calls:?}");
}

#[test]
fn a_policy_has_as_many_classes_as_records_can_name() {
    for (classes, fits) in [(0, false), (1, true), (8, true), (9, false)] {
        let policy = Counted { policy: placement::SingleGroup, classes, calls: Arc::default() };
        let policies = Policies { placement: Some(Box::new(policy)), victims: None };
        let found = elastic(SchemeOptions::default(), policies).map(drop);
        let range =
            OptionError::Range { option: "classes of the placement", found: classes as u64, min: 1, max: 8 };
        assert_eq!(found, if fits { Ok(()) } else { Err(AssembleError::Option(range)) });
    }
}
