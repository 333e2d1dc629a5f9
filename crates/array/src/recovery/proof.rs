//! Whether what was found is the newest durable state, or something durable is missing.
//!
//! Nothing is written before this is decided. What is known to have existed, and who says so, is in
//! docs/crash-model.md ("How recovery knows that nothing is missing"): superblocks name an assembly only when
//! its first checkpoint is durable, and what was durable when they were written; frames name the last durable
//! record (`flushed_through`); a checkpoint names the update of the superblocks that it came after; and in an
//! array that was stopped in order everything is durable.

use super::load::Loaded;
use super::membership::Arrangement;
use super::scan::Found;
use crate::health::Health;
use crate::older::{Missing, OlderState, StateLost, member_name};
use crate::planted::{Planted, planted};
use crate::restart::{AssembleError, is_present};
use block::{DevIndex, Epoch, Seq};
use format::{Consistency, Superblock};

/// What recovery goes by.
pub(super) struct Proven {
    /// Records up to here are known durable.
    pub flushed: Seq,
    /// What the operator does without.
    pub lost: Option<Box<StateLost>>,
}

/// Proves that the newest durable state was found. If it was not, this is an error, unless the operator
/// accepts it.
pub(super) fn prove(
    arrangement: &Arrangement,
    health: &Health,
    loaded: &Loaded,
    found: &Found,
) -> Result<Proven, AssembleError> {
    let newest = &arrangement.newest;
    let flushed = known_durable(newest, loaded, found);
    let end = found.end(loaded.through);
    let Some(missing) = missing(newest, loaded, found.newest_epoch, (flushed, end)) else {
        return Ok(Proven { flushed, lost: None });
    };
    let names = |present: bool| {
        let members = (0u16..).map(DevIndex::new).take(health.members().len());
        let chosen = members.filter(move |&dev| is_present(health, dev) == present);
        chosen.map(|dev| member_name(&newest.config, dev)).collect()
    };
    let lost = Box::new(StateLost {
        missing,
        checkpoint: loaded.place.number,
        epoch: loaded.epoch,
        through: end,
        searched: names(true),
        absent: names(false),
    });
    match arrangement.older_state {
        OlderState::Refuse => Err(AssembleError::StateLost(lost)),
        OlderState::Accept => Ok(Proven { flushed, lost: Some(lost) }),
    }
}

/// The last record that anything says was durable.
fn known_durable(newest: &Superblock, loaded: &Loaded, found: &Found) -> Seq {
    let said = found.flushed.max(loaded.seen_through).max(newest.durable_through);
    // An orderly stop ends with a flush: whatever there is was durable.
    let stopped = newest.clean && loaded.is_of(newest);
    if planted(Planted::DropAfterStop) {
        found.flushed
    } else if stopped {
        said.max(found.last_seq)
    } else {
        said
    }
}

fn missing(
    newest: &Superblock,
    loaded: &Loaded,
    frames_of: Epoch,
    (flushed, end): (Seq, Seq),
) -> Option<Missing> {
    let same = loaded.is_of(newest);
    // An assembly that was cut short has a checkpoint, but no superblock yet.
    if !same && loaded.epoch <= newest.epoch && !planted(Planted::OlderEpoch) {
        return Some(Missing::Assembly { epoch: newest.epoch, checkpoint: newest.checkpoints.durable });
    }
    if frames_of > loaded.epoch && !planted(Planted::OlderEpoch) {
        return Some(Missing::Assembly { epoch: frames_of, checkpoint: 0 });
    }
    if end < flushed && !planted(Planted::IgnoreGap) {
        return Some(Missing::Records { first: end.next(), last: flushed });
    }
    // Without records only the checkpoint tells which chunks were written. After an unclean stop all of them
    // are read.
    let unrecorded = newest.config.scheme.is_in_place()
        && newest.config.consistency == Consistency::Resync
        && newest.clean;
    if same
        && unrecorded
        && loaded.place.number < newest.checkpoints.durable
        && !planted(Planted::ForgetStopCheckpoint)
    {
        return Some(Missing::Checkpoint { number: newest.checkpoints.durable });
    }
    (loaded.known_seq > newest.config_seq)
        .then_some(Missing::Superblocks { wanted: loaded.known_seq, found: newest.config_seq })
}
