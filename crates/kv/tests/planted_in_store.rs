//! Every planted bug is found by the worlds.

mod world;

use kv::planted::{Planted, plant};

/// Worlds that may be needed to find a bug.
const WORLDS: u64 = 4000;

fn found_by(bug: Planted) -> Option<u64> {
    (0..WORLDS).find(|&number| {
        std::panic::catch_unwind(|| {
            plant(Some(bug));
            world::World::new(number).run();
        })
        .is_err()
    })
}

#[test]
fn every_planted_bug_is_found() {
    std::panic::set_hook(Box::new(|_| {}));
    let found: Vec<(Planted, Option<u64>)> = Planted::ALL.iter().map(|bug| (*bug, found_by(*bug))).collect();
    let _ = std::panic::take_hook();
    plant(None);
    for (bug, world) in &found {
        println!("{bug:?}: world {world:?}");
    }
    let missed: Vec<&Planted> =
        found.iter().filter(|(_, world)| world.is_none()).map(|(bug, _)| bug).collect();
    assert!(missed.is_empty(), "not found in {WORLDS} worlds: {missed:?}");
}
