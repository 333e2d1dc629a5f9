//! By hand, and beside what others print.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use super::*;
use crate::{Greedy, PlacementKind, PlacementOptions, SingleGroup, VictimKind};
use block::{Random as _, XoshiroPlusPlus};

/// Four chunks in units of two, six units of which one is kept free: by hand.
#[test]
fn a_few_writes_by_hand() {
    let shape = ModelOptions {
        chunks: 4,
        unit_chunks: 2,
        space: Space::Units { count: 6, free: 1 },
        times: Times::Exact,
    };
    let mut model = Model::new(&shape, Box::new(SingleGroup), Box::new(Greedy)).unwrap();
    let mut write = |chunks: &[u32]| {
        chunks.iter().for_each(|&chunk| model.write(chunk, Sequence::Random).unwrap());
        assert!(model.is_sound());
        (model.counts().written, model.counts().copied, model.counts().collected)
    };
    // 01 23 02 02 1.: five units are in use, one is free.
    assert_eq!(write(&[0, 1, 2, 3, 0, 2, 0, 2, 1]), (9, 0, 0));
    // 13: no unit has to be opened. Then another has to: the first has nothing valid any more, and goes.
    assert_eq!(write(&[3]), (10, 0, 0));
    assert_eq!(write(&[0]), (11, 0, 1));
}

#[test]
fn shapes_without_room_are_refused() {
    let shape = |count| ModelOptions {
        chunks: 100,
        unit_chunks: 10,
        space: Space::Units { count, free: 3 },
        times: Times::Stamps,
    };
    let model = |shape: &ModelOptions| Model::new(shape, Box::new(SingleGroup), Box::new(Greedy)).map(|_| ());
    assert_eq!(model(&shape(14)).unwrap_err().to_string(), "units: found 14, expected 15 to 429496729");
    assert_eq!(model(&shape(15)), Ok(()));
    let garbage = ModelOptions { space: Space::Garbage { percent: 0 }, ..shape(0) };
    assert!(model(&garbage).is_err());
}

/// Of volumes by share of garbage, with uniform writes; theory of greedy and of order of age meets there.
/// The public simulator of SepBIT has 3.259 and 3.261 with the fill included.
#[test]
fn a_volume_under_uniform_writes_costs_what_sepbits_simulator_says() {
    for (kind, expected) in [(VictimKind::Greedy, 3.259), (VictimKind::CostBenefitRoot, 3.261)] {
        let shape = ModelOptions {
            chunks: 1 << 18,
            unit_chunks: 1 << 10,
            space: Space::Garbage { percent: 15 },
            times: Times::Exact,
        };
        let placement = PlacementOptions::new(PlacementKind::Single, 1 << 18).build().unwrap();
        let mut model = Model::new(&shape, placement, kind.build()).unwrap();
        let mut random = XoshiroPlusPlus::new(1);
        (0..1 << 18).for_each(|chunk| model.write(chunk, Sequence::Random).unwrap());
        for _ in 0..10 << 18 {
            model.write(random.below_u32(1 << 18), Sequence::Random).unwrap();
        }
        assert!(model.is_sound());
        let counts = model.counts();
        let float = |count: u64| f64::from(u32::try_from(count).unwrap());
        let amplification = 1.0 + float(counts.copied) / float(counts.written);
        assert!((amplification / expected - 1.0).abs() < 0.005, "{kind}: {amplification}, not {expected}");
    }
}
