//! A world that fails is shrunk to a few steps, and what is left fails in the same way whenever it is
//! replayed.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use array::{Planted, plant};
use format::SchemeKind;
use sim::{Pinned, Reduction, Setting, run_caught, run_reduced, shrink};

/// Worlds among which the planted bug makes one fail: what is drawn may change.
const SEEDS: std::ops::Range<u64> = 0..300;

#[test]
fn a_world_that_fails_shrinks_to_a_few_steps_that_fail_in_the_same_way() {
    let pinned = Pinned { scheme: Some(SchemeKind::Eplog), ..Pinned::default() };
    plant(Some(Planted::AnswerBeforeFlush));
    let seed = SEEDS.into_iter().find(|&seed| run_caught(seed, pinned, false).is_err());
    let seed = seed.expect("the bug makes some world fail");
    let shrunk = shrink(seed, pinned).unwrap();
    // As it is printed, and read from the command line again.
    let kept: Reduction = shrunk.reduction.to_string().parse().unwrap();
    let settings = shrunk.reduction.settings.iter().map(|setting| setting.to_string().parse().unwrap());
    let printed = Reduction { settings: settings.collect::<Vec<Setting>>(), ..kept };
    assert_eq!(printed, shrunk.reduction);
    let again = run_reduced(seed, pinned, &printed, false).unwrap_err();
    plant(None);
    println!("{} -> {}, {} worlds: {again}", shrunk.before, shrunk.after, shrunk.runs);
    assert!(again.is_like(&shrunk.violation), "{again}, not {}", shrunk.violation);
    assert!(shrunk.after.steps <= 5 && shrunk.after.steps < shrunk.before.steps, "{}", shrunk.after);
    assert!(run_caught(seed, pinned, false).is_ok(), "without a planted bug nothing is wrong with it");
}

#[test]
fn a_world_that_does_not_fail_is_left_alone() {
    let outcome = run_caught(SEEDS.start, Pinned::default(), false).unwrap();
    assert_eq!(shrink(SEEDS.start, Pinned::default()).unwrap_err(), Box::new(outcome));
}
