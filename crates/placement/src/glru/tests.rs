//! Algorithm 1 of WAS, worked by hand.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use super::*;

const HOT: Tier = Tier::new(1);

fn table(lists: u32, items_per_list: u32, insert_probability: u64) -> Glru {
    Glru::new(GlruOptions { lists, items_per_list, insert_probability, ..GlruOptions::default() }).unwrap()
}

fn touch(glru: &mut Glru, lcn: u64) -> Tier {
    glru.touch(Lcn::new(lcn))
}

fn list(glru: &Glru, index: u32) -> Vec<(u32, u8)> {
    glru.list(index).collect()
}

/// Requirement W-01.
#[test]
fn the_list_is_the_number_modulo_k() {
    let mut glru = table(4, 4, GlruOptions::CERTAIN);
    for lcn in [0, 5, 10, 15, 8] {
        touch(&mut glru, lcn);
    }
    assert_eq!(list(&glru, 0), [(8, 1), (0, 1)]);
    assert_eq!(list(&glru, 1), [(5, 1)]);
    assert_eq!(list(&glru, 2), [(10, 1)]);
    assert_eq!(list(&glru, 3), [(15, 1)]);
}

/// Requirement W-02.
#[test]
fn counters_saturate_at_15() {
    let mut glru = table(1, 3, 0);
    for written in 1..=40_u8 {
        touch(&mut glru, 7);
        assert_eq!(list(&glru, 0), [(7, written.min(15))]);
    }
    // The neighbours in the same byte are not touched by it.
    touch(&mut glru, 8);
    touch(&mut glru, 9);
    touch(&mut glru, 7);
    assert_eq!(list(&glru, 0), [(7, 15), (9, 1), (8, 1)]);
}

/// Requirement W-02.
#[test]
fn the_low_32_bits_are_known() {
    let mut glru = table(128, 8, 0);
    assert_eq!(touch(&mut glru, 5), Tier::COLD);
    assert_eq!(touch(&mut glru, (1 << 32) + 5), HOT);
    assert_eq!(list(&glru, 5), [(5, 2)]);
}

/// Requirements W-03 and W-04.
#[test]
fn hits_misses_and_evictions_by_hand() {
    // One list of three items; every eviction test passes.
    let mut glru = table(1, 3, GlruOptions::CERTAIN);
    assert_eq!(touch(&mut glru, 1), Tier::COLD); // miss, room
    assert_eq!(touch(&mut glru, 2), Tier::COLD);
    assert_eq!(touch(&mut glru, 3), Tier::COLD);
    assert_eq!(list(&glru, 0), [(3, 1), (2, 1), (1, 1)]);
    assert_eq!(touch(&mut glru, 2), HOT); // hit in the middle: 2 to the head
    assert_eq!(list(&glru, 0), [(2, 2), (3, 1), (1, 1)]);
    assert_eq!(touch(&mut glru, 1), HOT); // hit at the tail
    assert_eq!(list(&glru, 0), [(1, 2), (2, 2), (3, 1)]);
    assert_eq!(touch(&mut glru, 1), HOT); // hit at the head: nothing moves
    assert_eq!(list(&glru, 0), [(1, 3), (2, 2), (3, 1)]);
    assert_eq!(touch(&mut glru, 4), Tier::COLD); // miss: 3 is evicted, 4 enters with 1
    assert_eq!(list(&glru, 0), [(4, 1), (1, 3), (2, 2)]);
    assert_eq!(touch(&mut glru, 3), Tier::COLD); // 3 was forgotten, and evicts 2 although 2 is hot
    assert_eq!(list(&glru, 0), [(3, 1), (4, 1), (1, 3)]);
}

/// Requirement W-03.
#[test]
fn the_verdict_follows_the_threshold() {
    let thresholds = Thresholds::new(&[3]).unwrap();
    let mut glru = Glru::new(GlruOptions { thresholds, ..GlruOptions::default() }).unwrap();
    let verdicts: Vec<_> = (0..4).map(|_| touch(&mut glru, 1)).collect();
    assert_eq!(verdicts, [Tier::COLD, Tier::COLD, HOT, HOT]);
}

/// Requirement W-04.
#[test]
fn a_chance_not_taken_changes_nothing() {
    let mut glru = table(1, 2, 0);
    for lcn in [1, 2, 1] {
        touch(&mut glru, lcn);
    }
    let before = list(&glru, 0);
    for lcn in 3..100 {
        assert_eq!(touch(&mut glru, lcn), Tier::COLD);
    }
    assert_eq!(list(&glru, 0), before);
}

/// Requirement A-13.
#[test]
fn a_list_with_room_takes_everything() {
    let mut glru = table(2, 8, 0);
    for lcn in 0..100 {
        touch(&mut glru, lcn);
    }
    assert_eq!(list(&glru, 0), [14, 12, 10, 8, 6, 4, 2, 0].map(|lpn| (lpn, 1)));
}

/// Requirement W-04.
#[test]
fn half_of_the_chances_are_taken() {
    for (insert, expected) in [(GlruOptions::CERTAIN / 2, 5000), (GlruOptions::CERTAIN / 10, 1000)] {
        let mut glru = table(1, 1, insert);
        touch(&mut glru, 0);
        let passed = (1..=10_000)
            .filter(|&lcn| {
                touch(&mut glru, lcn);
                list(&glru, 0) == [(u32::try_from(lcn).unwrap(), 1)]
            })
            .count();
        // Four standard deviations of 10,000 coins (50 and 30).
        assert!(passed.abs_diff(expected) <= 200, "{passed} of 10000 passed, seed 1");
    }
}

/// Requirements W-01, W-02, W-03 and W-04.
#[test]
fn the_table_behaves_like_plain_lists_of_pairs() {
    // Odd and even lengths: counters share bytes. With p = 1 the plain lists need no coin.
    for (lists, items) in [(3, 5), (4, 8), (1, 1), (7, 2)] {
        let mut glru = table(lists, items, GlruOptions::CERTAIN);
        let mut plain = vec![Vec::<(u32, u8)>::new(); lists as usize];
        let mut random = SplitMix(u64::from(items));
        for _ in 0..20_000 {
            let lpn = u32::try_from(random.word() % 7 * (random.word() % 9)).unwrap();
            let list = &mut plain[(lpn % lists) as usize];
            let expected = match list.iter().position(|&(known, _)| known == lpn) {
                Some(at) => {
                    let (_, count) = list.remove(at);
                    list.insert(0, (lpn, (count + 1).min(15)));
                    u8::from(count + 1 >= 2)
                }
                None => {
                    list.truncate(items as usize - 1);
                    list.insert(0, (lpn, 1));
                    0
                }
            };
            assert_eq!(touch(&mut glru, lpn.into()).get(), expected);
        }
        let reached: Vec<_> = (0..lists).map(|index| self::list(&glru, index)).collect();
        assert_eq!(reached, plain);
    }
}

/// Requirement W-12.
#[test]
fn the_same_seed_gives_the_same_table() {
    let run = |seed| {
        let mut glru = Glru::new(GlruOptions { seed, ..GlruOptions::default() }).unwrap();
        let verdicts: Vec<_> = (0..20_000_u64).map(|i| touch(&mut glru, i * i % 7919)).collect();
        (verdicts, (0..128).map(|index| list(&glru, index)).collect::<Vec<_>>())
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

/// Requirements W-05 and W-06.
#[test]
fn memory_is_about_5_kb_whatever_was_written() {
    let mut glru = Glru::new(GlruOptions::default()).unwrap();
    assert_eq!(size_of_val(&*glru.lpns) + size_of_val(&*glru.counters), 4608); // 1,024 items of 36 bits
    assert!(glru.memory_bytes() <= 5000, "{}", glru.memory_bytes());
    let before = glru.memory_bytes();
    for lcn in 0..100_000 {
        touch(&mut glru, lcn);
    }
    assert_eq!(glru.memory_bytes(), before);
}

/// Requirements W-07 and A-14.
#[test]
fn two_to_four_tiers() {
    for (groups, values, by_write) in [
        (2, &[2][..], [0, 1, 1, 1, 1, 1, 1, 1, 1]),
        (3, &[2, 4], [0, 1, 1, 2, 2, 2, 2, 2, 2]),
        (4, &[2, 4, 8], [0, 1, 1, 2, 2, 2, 2, 3, 3]),
    ] {
        let thresholds = Thresholds::for_groups(groups).unwrap();
        assert_eq!(thresholds.values(), values);
        let mut glru = Glru::new(GlruOptions { thresholds, ..GlruOptions::default() }).unwrap();
        assert_eq!(u64::from(glru.tiers()), groups);
        assert_eq!(by_write.map(|_| touch(&mut glru, 9).get()), by_write);
    }
}

#[test]
fn shapes_and_thresholds_out_of_range_are_refused() {
    let refuse = |options| Glru::new(options).map(|_| ()).unwrap_err().to_string();
    assert_eq!(
        refuse(GlruOptions { lists: 0, ..GlruOptions::default() }),
        "GLRU lists: found 0, expected 1 to 65536"
    );
    assert_eq!(
        refuse(GlruOptions { items_per_list: 65, ..GlruOptions::default() }),
        "GLRU items per list: found 65, expected 1 to 64"
    );
    assert_eq!(
        refuse(GlruOptions { insert_probability: GlruOptions::CERTAIN + 1, ..GlruOptions::default() }),
        "GLRU insert probability in parts of 2^32: found 4294967297, expected 0 to 4294967296"
    );
    let refuse = |values: &[u8]| Thresholds::new(values).unwrap_err().to_string();
    assert_eq!(refuse(&[16]), "hotness threshold: found 16, expected 1 to 15");
    assert_eq!(refuse(&[]), "number of hotness thresholds: found 0, expected 1 to 3");
    assert_eq!(refuse(&[4, 4]), "hotness thresholds: found 4 before 4, expected ascending ones");
    assert_eq!(Thresholds::for_groups(5).unwrap_err().to_string(), "groups: found 5, expected 2 to 4");
}
