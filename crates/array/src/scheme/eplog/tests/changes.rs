//! A list with the changes of it that came after is the list as it is then.

use super::Bench;
use crate::scheme::Scheme;
use format::{ListItem, decode_list, fold_list};

const STRIPES: u64 = 12;
const K: u64 = 4;

/// Does something: single chunks, several, whole stripes, commits, discards.
fn step(bench: &mut Bench, random: &mut impl FnMut(u64) -> u64) {
    let stripe = random(STRIPES);
    match random(12) {
        0..6 => _ = bench.write(&[random(STRIPES * K)]),
        6..8 => {
            let mut lcns: Vec<u64> = (0..1 + random(5)).map(|_| random(STRIPES * K)).collect();
            lcns.sort_unstable();
            lcns.dedup();
            bench.write(&lcns);
        }
        8 => _ = bench.write(&(stripe * K..(stripe + 1) * K).collect::<Vec<u64>>()),
        9 => bench.discard(random(STRIPES * K - K), 1 + random(K)),
        _ if bench.is_dirty(stripe) => _ = bench.commit(stripe),
        _ => {}
    }
}

/// What a list says, whatever the order of dirty stripes; log stripes are in the order of the log.
fn said(words: &[u32]) -> (Vec<String>, Vec<ListItem>) {
    let (mut dirty, mut log) = (Vec::new(), Vec::new());
    for item in decode_list(words).expect("it can be read") {
        if matches!(item, ListItem::LogStripe { .. }) {
            log.push(item)
        } else {
            dirty.push(format!("{item:?}"))
        }
    }
    dirty.sort_unstable();
    (dirty, log)
}

/// Numbers below what is asked for, the same for each seed.
fn random_of(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

#[test]
fn a_list_said_piece_by_piece_is_that_of_when_it_was_begun() {
    let (mut pieces, mut open) = (0, 0);
    for seed in 0..200 {
        let mut random = random_of(seed);
        let mut bench = Bench::new(4, 2, STRIPES);
        for list in 0..6 {
            (0..random(40)).for_each(|_| step(&mut bench, &mut random));
            let (mut whole, mut words) = (Vec::new(), Vec::new());
            bench.scheme.save(&bench.store, &mut whole);
            let most = bench.scheme.begin_list().expect("it is said piece by piece");
            let often = 1 + random(6);
            while bench.scheme.say_more(&mut words, 1 + random(4) as usize) {
                pieces += 1;
                if random(often) == 0 {
                    (0..1 + random(3)).for_each(|_| step(&mut bench, &mut random));
                    open += u64::from(words.len() < whole.len());
                }
            }
            assert_eq!(said(&words), said(&whole), "seed {seed}, list {list}");
            assert_eq!(words.len(), most, "seed {seed}, list {list}");
            assert!(!bench.scheme.say_more(&mut words, 1), "seed {seed}: there is no more");
        }
    }
    assert!(
        pieces > 10_000 && open > 1_000,
        "{pieces} pieces, {open} times something changed before the end"
    );
}

#[test]
fn a_list_and_its_changes_say_what_a_whole_list_would() {
    for seed in 0..60 {
        let mut random = random_of(seed);
        let mut bench = Bench::new(4, 2, STRIPES);
        let mut base = Vec::new();
        bench.scheme.save(&bench.store, &mut base);
        bench.scheme.list_is_saved();
        let mut all = Vec::new();
        for _ in 0..8 {
            (0..random(25)).for_each(|_| step(&mut bench, &mut random));
            let (mut changes, mut whole) = (Vec::new(), Vec::new());
            assert!(bench.scheme.save_changes(&mut changes));
            all.push(changes);
            bench.scheme.save(&bench.store, &mut whole);
            assert_eq!(whole.len() as u64, bench.scheme.list_size().words, "seed {seed}: what is counted");
            let folded = fold_list(&base, all.iter().map(Vec::as_slice)).expect("they can be read");
            assert_eq!(said(&folded), said(&whole), "seed {seed}");
            if random(4) == 0 {
                bench.scheme.list_is_saved();
                (base, all) = (whole, Vec::new());
            }
        }
        let mut nothing = Vec::new();
        bench.scheme.save_changes(&mut nothing);
        assert!(nothing.is_empty(), "seed {seed}: what a list says is not said again");
    }
}

/// Changes that are said piece by piece, with others between, are those of when they were begun; those that
/// come later are in the next ones, be these said at once, piece by piece, or not at all.
#[test]
fn changes_said_piece_by_piece_are_those_of_when_they_were_begun() {
    let (mut open, mut lists) = (0, [0; 3]);
    for seed in 0..300 {
        let mut random = random_of(seed);
        let mut bench = Bench::new(4, 2, STRIPES);
        let (mut base, mut all) = (Vec::new(), Vec::new());
        bench.scheme.save(&bench.store, &mut base);
        bench.scheme.list_is_saved();
        for list in 0..12 {
            (0..random(30)).for_each(|_| step(&mut bench, &mut random));
            let (mut whole, mut words) = (Vec::new(), Vec::new());
            bench.scheme.save(&bench.store, &mut whole);
            let way = random(6).min(2) as usize;
            lists[way] += 1;
            if way == 0 {
                assert!(bench.scheme.save_changes(&mut words));
            } else {
                let mut most = bench.scheme.begin_changes().expect("they are said piece by piece");
                if way == 1 {
                    // There is no room for them: a whole list follows.
                    most = bench.scheme.begin_list().expect("it is said piece by piece");
                }
                let often = 1 + random(6);
                while bench.scheme.say_more(&mut words, 1 + random(4) as usize) {
                    if random(often) == 0 {
                        (0..1 + random(3)).for_each(|_| step(&mut bench, &mut random));
                        open += 1;
                    }
                }
                assert!(words.len() <= most, "seed {seed}, list {list}");
                assert!(!bench.scheme.say_more(&mut words, 1), "seed {seed}: there is no more");
            }
            if way == 1 {
                (base, all) = (words, Vec::new());
            } else {
                all.push(words);
            }
            let folded = fold_list(&base, all.iter().map(Vec::as_slice)).expect("they can be read");
            assert_eq!(said(&folded), said(&whole), "seed {seed}, list {list}");
        }
    }
    assert!(open > 1_000 && lists.iter().all(|&count| count > 300), "{open} times between, {lists:?}");
}
