//! Units that a crash left with a hole, where a record did not become durable. Full units may all be too
//! valid to be collected then, while more classes than before want a free unit each.

use super::{Bench, stripe_of};
use crate::plan::Plan;
use crate::scheme::{Scheme as _, SchemeOptions};
use placement::PlacementKind;

/// Such an array, with so many more units than there must be.
fn with_holes(more: u32) -> Bench {
    let mut bench = Bench::with_more((0, more), (2, 1), 4, 60, &SchemeOptions::default());
    for lcn in (0..120).step_by(2) {
        bench.write(&[lcn, lcn + 1]);
    }
    // One chunk is written over and over; the first record of each unit is lost.
    loop {
        let (plan, refused) = bench.plan(&[7]);
        if refused > 0 {
            break;
        }
        if !stripe_of(&plan, 0).row().is_multiple_of(4) {
            bench.carry_out(plan);
        }
    }
    bench.store.freed.clear();
    bench.scheme.settle_units(&bench.store);
    let mut claimed = bench.store.nothing_claimed();
    bench.scheme.claim_space(&bench.store, &mut claimed).expect("no row twice");
    bench.store.adopt(claimed).expect("they are in memory");
    let options = SchemeOptions { placement: Some(PlacementKind::SepBit), ..SchemeOptions::default() };
    bench.scheme.configure(&bench.store, &options);
    assert!(bench.scheme.units.is_short() && bench.collect().is_none(), "nothing gains a row");
    bench
}

/// Writes so many chunks from one on, as a whole or one by one, however much must be collected for that.
#[track_caller]
fn write_in_the_end(bench: &mut Bench, first: u64, count: u64) {
    let lcns: Vec<u64> = (first..first + count).collect();
    for steps in 0.. {
        assert!(steps < 200, "chunk {first}: collection gains nothing");
        let (plan, refused) = bench.plan_into(Plan { untorn: count > 1, ..Plan::default() }, &lcns);
        assert!(
            refused == 0 || count == 1 || refused == lcns.len(),
            "a part of what is not torn was planned"
        );
        bench.carry_out(plan);
        if refused == 0 {
            return;
        }
        match bench.collect() {
            Some(plan) => _ = bench.carry_out(plan),
            None => assert!(!bench.store.freed.is_empty(), "chunk {first}: stuck"),
        }
        bench.release();
    }
}

#[test]
fn they_are_filled_although_few_are_free() {
    let mut bench = with_holes(0);
    (0..400).for_each(|write| write_in_the_end(&mut bench, write * 17 % 120, 1));
}

/// What is promised of a size is promised of a volume in its worst state. More units than there must be let
/// larger writes be whole, which is what arrays have that keep a tenth of their devices free.
#[test]
fn the_largest_write_that_is_not_torn_finds_room_in_them() {
    for (more, largest) in [(0, 2), (9, 16), (20, 32)] {
        let bench = with_holes(more);
        let holds = |order: &u32| bench.scheme.holds_bundle(&bench.store, 1 << order);
        assert_eq!((0..=8).filter(holds).max(), Some(u32::ilog2(largest)), "{more} units more");
    }
    for (more, size) in [(0, 2), (9, 16), (20, 32)] {
        let mut bench = with_holes(more);
        // Wherever it begins and however chunks are classed.
        (0..400).for_each(|write| write_in_the_end(&mut bench, write * 17 % (120 / size) * size, size));
    }
}
