//! Superblocks of one round that say different things were durable: the one that says most counts, in
//! whatever order members are found. Found by world 211 of `--scheme eplog --shards 1 --returns`, in which a
//! round was written again and reached some members only; recovery then took an older state for the newest.

use crate::common::{create_options, fresh, superblocks};
use array::arrange;
use block::{DevIndex, Seq};
use format::{MemberState, SchemeKind};

#[test]
fn of_superblocks_of_one_round_the_one_that_knows_most_counts() {
    let mut devices = fresh(&create_options(SchemeKind::Eplog, 4, 1), 12, 64);
    let found = superblocks(&mut devices, 6);
    for knows in 0..found.len() {
        let mut found = found.clone();
        found[knows].durable_through = Seq::new(43);
        for _ in 0..found.len() {
            found.rotate_left(1);
            let newest = arrange(&found).unwrap().newest;
            assert_eq!(newest.durable_through, Seq::new(43), "member {knows} says so");
        }
    }
}

/// Member 0 was missing from a start that power failed in when it had told member 1 alone; then member 1 was
/// missing from a start that told all others, and went on.
#[test]
fn of_two_updates_of_one_number_the_one_that_is_everywhere_counts() {
    let mut devices = fresh(&create_options(SchemeKind::Eplog, 4, 1), 12, 64);
    let mut found = superblocks(&mut devices, 6);
    for (index, superblock) in found.iter_mut().enumerate() {
        superblock.config_seq += 3;
        let missing = usize::from(index != 1);
        superblock.members[missing].state = MemberState::Failed;
    }
    for _ in 0..found.len() {
        found.rotate_left(1);
        let arrangement = arrange(&found).unwrap();
        assert_eq!(arrangement.members[1].state, MemberState::Failed);
        assert_eq!(arrangement.members[0].state, MemberState::Healthy);
        assert!(arrangement.places[0].is_some() && arrangement.places[1].is_none());
    }
}

/// One that was told alone is two updates ahead of the others, whose other copy was torn by the update after
/// that: the newest is not written over the only copy that they have. Found by world 607569775.
#[test]
fn the_newest_is_written_only_where_it_leaves_a_copy() {
    let mut devices = fresh(&create_options(SchemeKind::Eplog, 4, 1), 12, 64);
    let mut found = superblocks(&mut devices, 6);
    found[2].config_seq += 2;
    found[4].config_seq += 1;
    for _ in 0..found.len() {
        found.rotate_left(1);
        let arrangement = arrange(&found).unwrap();
        assert!(arrangement.places.iter().all(Option::is_some));
        assert_eq!(arrangement.lagging, [DevIndex::new(4)]);
    }
}
