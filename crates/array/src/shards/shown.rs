//! Which devices a start shows to which shard.
//!
//! Each shard judges its own slice of a device, and each may have given up other members than the rest: by
//! errors that hit one slice, and a stop or a power cut before the others were told. So a device that the
//! first shard refuses is shown to the others, which may be unable to do without it.
//!
//! A place has one device, the same for all shards. Where the first shard accepts one it is that. Else it is
//! the last that was the member, as the first shard's superblocks tell: what was there before was given up by
//! all shards before the other came ([`super::Replacing`]), and one that succeeds a member is known by the
//! slice of the first shard, which is told last ([`super::Succession`]).

use crate::planted::{Planted, planted};
use crate::recovery::Arrangement;
use format::Superblock;

/// Which of the devices, by the superblocks that the first shard was given, are shown to the other shards.
pub fn shown_to_others(first: &Arrangement, found: &[Superblock]) -> Vec<bool> {
    let last = |superblock: &Superblock| (superblock.serial, superblock.update());
    let is_last = |superblock: &Superblock| {
        let others = found.iter().filter(|other| other.dev == superblock.dev);
        others.map(last).max() == Some(last(superblock))
    };
    let is_shown = |(index, superblock): (usize, &Superblock)| match first.places.get(superblock.dev.index())
    {
        Some(Some(place)) => *place == index,
        Some(None) => is_last(superblock) && !planted(Planted::ShownAsFirstShardHasIt),
        None => false,
    };
    found.iter().enumerate().map(is_shown).collect()
}
