//! What is chosen for room, and the order that is left.

use super::*;

const OLD: StripeChunk = StripeChunk { chunk: ChunkIndex::new(7), crc: 7 };

/// Makes stripes dirty, of which so many columns are updated.
fn update(dirty: &mut DirtyStripes, stripes: Range<u64>, columns: usize) {
    for stripe in stripes.map(StripeId::new) {
        (0..columns).for_each(|column| _ = dirty.update(stripe, column, OLD, NO_OWNER));
    }
}

fn chosen(dirty: &mut DirtyStripes) -> Vec<u64> {
    let mut out = Vec::new();
    dirty.most_updated(&[], &mut out);
    dirty.put_first(&out);
    out.into_iter().map(StripeId::get).collect()
}

#[test]
fn those_that_have_half_of_the_updated_columns_are_chosen_the_first_of_many() {
    let mut dirty = DirtyStripes::new(100_000, 4, 0);
    update(&mut dirty, 0..300, 1);
    update(&mut dirty, 1000..1100, 4);
    assert_eq!(chosen(&mut dirty), (1000..1100).collect::<Vec<_>>());
    assert_eq!(chosen(&mut dirty), (1000..1100).collect::<Vec<_>>(), "nothing has left the queue");
    update(&mut dirty, 2000..3000, 1);
    assert_eq!(chosen(&mut dirty), (1000..1100).chain(0..300).chain(2000..2112).collect::<Vec<_>>());
    (0..300).for_each(|stripe| dirty.clean(StripeId::new(stripe)));
    let left: Vec<u64> = (1000..1100).chain(2000..2412).collect();
    assert_eq!(chosen(&mut dirty), left, "1,000 columns of stripes with one, 400 of those with four");
    let mut all = Vec::new();
    dirty.take(2000, &mut all);
    assert_eq!(all.len(), 1100, "those passed over are still there");
}

#[test]
fn if_the_fullest_are_too_far_behind_the_fullest_of_those_in_front_are_chosen() {
    let mut dirty = DirtyStripes::new(100_000, 4, 0);
    update(&mut dirty, 0..40_000, 1);
    update(&mut dirty, 40_000..60_000, 4);
    assert_eq!(chosen(&mut dirty), (0..512).collect::<Vec<_>>());
    (0..512).for_each(|stripe| dirty.clean(StripeId::new(stripe)));
    let behind: Vec<u64> = (40_000..40_512).collect();
    assert_eq!(chosen(&mut dirty), behind, "those in front were looked at");
    let (mut out, mut all, unwanted) = (vec![], vec![], (40_000..40_512).map(StripeId::new));
    dirty.most_updated(&unwanted.collect::<Vec<_>>(), &mut out);
    assert_eq!(out.first(), Some(&StripeId::new(40_512)), "the next but those unwanted");
    dirty.take(60_000, &mut all);
    assert_eq!(all.len(), 60_000 - 512, "which are still there");
}

#[test]
fn what_was_chosen_last_alone_is_there_twice_or_clean() {
    let (mut dirty, mut random, mut longest) = (DirtyStripes::new(10_000, 6, 0), 1u64, 0);
    for _ in 0..400_000 {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let (stripe, column) = (StripeId::new((random >> 33) % 10_000), (random >> 20) % 6);
        dirty.update(stripe, usize::try_from(column).expect("a column"), OLD, NO_OWNER);
        if dirty.updated_total() > 40_000 {
            longest = longest.max(number(dirty.queue.iter().count()) - dirty.count());
            let mut first = vec![];
            dirty.most_updated(&[], &mut first);
            dirty.put_first(&first);
            let mut taken = vec![];
            dirty.take(first.len(), &mut taken);
            assert_eq!(taken, first, "what was chosen is taken");
            taken.iter().for_each(|&stripe| dirty.clean(stripe));
        }
    }
    assert_eq!(longest, number(CHOSEN_MAX), "those chosen last");
}
