//! Worlds of a store: seeded, each a number. `KV_WORLD=n` repeats one, `KV_FROM` and `KV_WORLDS` run a range.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod world;

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not `{text}`")))
}

#[test]
fn every_key_is_what_it_may_be() {
    let (from, count) = match number("KV_WORLD") {
        Some(world) => (world, 1),
        None => (number("KV_FROM").unwrap_or(0), number("KV_WORLDS").unwrap_or(300)),
    };
    for number in from..from + count {
        world::World::new(number).run();
    }
}

/// Each of these was the first of its kind to fail: the first two for the oracle's sake, the third since a
/// segment was freed while a table still asked for it.
#[test]
fn worlds_that_once_failed_go_well() {
    for number in [1_004_327, 1_037_689, 1_081_939] {
        world::World::new(number).run();
    }
}
