//! The engine on memory devices, scheme by scheme and fault by fault. One binary for all of them: each of
//! its own would cost a link.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod a_pair_ends_without_room;
mod a_shelf_comes_back;
mod a_start_reads_what_was_written;
mod an_older_copy_is_no_member;
mod beside_a_full_checkpoint;
mod codes;
mod collection;
mod commits_end;
mod commits_strand_nothing;
mod common;
mod content;
mod copies_of_pages;
mod covers_share_buffers;
mod degraded_commit;
mod discards_wait_for_commits;
mod engines_hand_over;
mod events;
mod few_hold_the_checkpoint;
mod foreign_policies;
mod groups;
mod in_place_content;
mod large_bundles;
mod lost;
mod mutated;
mod naming_holds_nothing_back;
mod open_stripes;
mod order;
mod paged;
mod patches;
mod patrol_of_a_rebuild;
mod plans;
mod raid_counts;
mod rebuild_goes_on;
mod rebuild_walks_what_is_written;
mod rewrites;
mod rounds_written_again;
mod scrub_says_what_it_left;
mod shards;
mod sizes;
mod stripe_cache;
mod sync_writes;
mod the_list_is_bounded;
mod who_missed_pages_is_known;
