//! Which device is which, and which of them count.

use crate::older::OlderState;
use crate::planted::{Planted, planted};
use crate::restart::{AssembleError, DirtyDegraded, Restart};
use crate::scheme;
use block::{DevIndex, Epoch};
use format::{FaultRecord, MemberEntry, MemberState, Superblock};

/// Updates that the last round of an assembly may be behind the first that names the next one: those that a
/// start skips once, and one for each member that fails meanwhile.
const UPDATES_BEHIND_MAX: u64 = super::UPDATES_SKIPPED + 1024;

/// The members in order.
#[derive(Clone, Debug)]
pub struct Arrangement {
    /// The superblock that counts.
    pub newest: Superblock,
    /// For each member which of the given superblocks it is.
    pub places: Vec<Option<usize>>,
    /// Given devices that are no members any more: replaced, failed while the array went on, or an older copy
    /// of what a member was.
    pub stale: Vec<usize>,
    /// Given devices that went on apart from the one that counts: what they hold nothing else may hold
    /// ([`went_on_apart`]).
    pub diverged: Vec<usize>,
    /// Members whose superblock is not the newest, and is where the next one goes: power failed while the
    /// newest was written to all of them.
    pub lagging: Vec<DevIndex>,
    /// What each member's own superblock remembers of its errors.
    pub faults: Vec<FaultRecord>,
    /// How far each member being rebuilt was, by its own superblock if that is the newest: an older copy of a
    /// member says so, too, but lacks what was written since.
    pub rebuilt: Vec<u64>,
    /// The members' states, absent ones marked as failed.
    pub members: Vec<MemberEntry>,
    /// Members left out whose devices were found to hold less than they did: what they missed says nothing of
    /// what they lack.
    pub maimed: Vec<DevIndex>,
    /// Whether an array is assembled of which that may corrupt data; refused unless the operator asks for it.
    pub dirty_degraded: DirtyDegraded,
    /// Whether an array is assembled of which newer durable state is missing; refused unless the operator
    /// asks for it.
    pub older_state: OlderState,
}

impl Arrangement {
    /// Whether it is assembled only if the operator accepts that data may be wrong: what was being written
    /// when the array was last in service is told by nothing, and members are not whole
    /// ([`AssembleError::DirtyDegraded`]).
    pub fn is_dirty_degraded(&self) -> bool {
        let restart = Restart { was_clean: self.newest.clean, dirty_degraded: self.dirty_degraded };
        let is_whole = self.members.iter().all(|member| member.state == MemberState::Healthy);
        !is_whole && scheme::forgets_writes(&self.newest.config, restart)
    }
}

/// Finds out which of the given superblocks is which member. Any order, any subset that the code can do with.
pub fn arrange(found: &[Superblock]) -> Result<Arrangement, AssembleError> {
    let arrangement = arrange_any(found)?;
    let Arrangement { newest, members, .. } = &arrangement;
    let missing: Vec<usize> =
        (0..members.len()).filter(|&i| members[i].state != MemberState::Healthy).collect();
    let tolerated = newest.config.geometry.parity_count();
    if missing.len() > tolerated {
        let n = newest.config.geometry.device_count();
        let name = |&i: &usize| if i < n { format!("data{i}") } else { format!("log{}", i - n) };
        let names = missing.iter().map(name).collect::<Vec<_>>().join(", ");
        return Err(AssembleError::TooManyMissing {
            missing: missing.len(),
            total: members.len(),
            tolerated,
            names,
        });
    }
    Ok(arrangement)
}

/// Whether a superblock names the device of a place as being in service.
fn is_in_service(entry: &MemberEntry) -> bool {
    matches!(entry.state, MemberState::Healthy | MemberState::Rebuilding)
}

/// Whether a device was in service in another course of the array than the one that is in this assembly, and
/// has these members: copies of an array were started one by one, or each half of a mirror was. Nobody knows
/// it of one that is an assembly behind, and says of no member that it failed.
///
/// `left`: where the member left in whose place it is, if that is away and it is known. The device that left
/// has been in no assembly since, and tells by that even if the others have been replaced.
pub fn went_on_apart(
    other: &Superblock,
    assembly: (Epoch, u64),
    members: &[MemberEntry],
    left: Option<(Epoch, u64)>,
) -> bool {
    let is_behind = |(epoch, nonce)| other.epoch > epoch || (other.epoch == epoch && other.nonce != nonce);
    let is_who_left = members.get(other.dev.index()).is_some_and(|entry| entry.serial == other.serial);
    // Who failed comes back under another serial number.
    let has_failed_there = |(own, its): (&MemberEntry, &MemberEntry)| {
        own.serial == its.serial && is_in_service(own) && its.state == MemberState::Failed
    };
    is_behind(assembly)
        || (is_who_left && left.is_some_and(is_behind))
        || members.iter().zip(&other.members).any(has_failed_there)
}

/// Of the superblocks of one device, the one by which it was in service last. The first one that a start
/// writes is far ahead of the other; before there is another one of that start nobody was promised anything,
/// so if power failed in between it tells of nothing that the device has and others do not.
pub fn last_served<'a>(copies: impl Iterator<Item = &'a Superblock> + Clone) -> Option<&'a Superblock> {
    let newest = Superblock::newest(copies.clone())?;
    let is_of_cut_start = |before: &&Superblock| {
        let is_same = (before.array, before.dev, before.serial) == (newest.array, newest.dev, newest.serial);
        is_same && newest.config_seq.saturating_sub(before.config_seq) >= super::UPDATES_SKIPPED
    };
    Some(copies.clone().find(is_of_cut_start).unwrap_or(newest))
}

/// Whether the update after the newest is written over this superblock, the newest of its device: the copies
/// are written in turn. If it is not, the newest itself would be written over it, and torn leave nothing:
/// what is in the other copy may have been torn before.
fn is_written_next(superblock: &Superblock, newest: &Superblock) -> bool {
    superblock.config_seq.abs_diff(newest.config_seq) % 2 == 1
}

/// Whether a member that is in service cannot have this superblock: whoever is, has every round but the last.
/// A power cut explains that one; only what was put back from a copy is a whole assembly behind. Of a copy
/// made in the same assembly, or in one that a build before this rule began, nobody knows.
fn is_older_copy(superblock: &Superblock, newest: &Superblock) -> bool {
    let behind = newest.config_seq.saturating_sub(superblock.config_seq);
    // What a serial number given twice would do, too, is not seen otherwise.
    let counts = planted(Planted::OlderCopyCounts) || planted(Planted::SerialGivenTwice);
    superblock.epoch < newest.epoch && behind > UPDATES_BEHIND_MAX && !counts
}

/// Whether all that this update names as being in service, and that are there, have it. Two starts that other
/// members were missing from may have made one each of the same number; whichever is not everywhere was cut
/// short before anything but superblocks was written.
fn is_everywhere(update: &Superblock, found: &[Superblock]) -> bool {
    let is_in_service = |other: &&Superblock| {
        let entry = update.members.get(other.dev.index());
        entry.is_some_and(|entry| entry.serial == other.serial && is_in_service(entry))
    };
    let agree = planted(Planted::UpdateUsedAgain);
    agree
        || found
            .iter()
            .filter(is_in_service)
            .all(|other| (other.update(), &other.members) == (update.update(), &update.members))
}

/// The same however many members are missing: for looking at an array that cannot be assembled.
pub fn arrange_any(found: &[Superblock]) -> Result<Arrangement, AssembleError> {
    let first = found.first().ok_or(AssembleError::NoMembers)?;
    for (index, other) in found.iter().enumerate() {
        if other.array != first.array {
            return Err(AssembleError::OtherArray { index, found: other.array, expected: first.array });
        }
    }
    // A round may have been written again, to some members only, when more was durable: that says more.
    let says =
        |s: &&Superblock| (s.update(), is_everywhere(s, found), s.durable_through, s.checkpoints.durable);
    let newest = found.iter().max_by_key(says).ok_or(AssembleError::NoMembers)?.clone();
    let count = newest.config.geometry.device_count() + usize::from(newest.config.log_count);
    let mut members = newest.members.clone();
    members.truncate(count);
    let mut places: Vec<Option<usize>> = vec![None; count];
    let (mut faults, mut rebuilt) = (vec![FaultRecord::default(); count], vec![0; count]);
    let (mut stale, mut lagging) = (Vec::new(), Vec::new());
    let assembly = (newest.epoch, newest.nonce);
    let is_apart = |index: &usize| went_on_apart(&found[*index], assembly, &newest.members, None);
    let diverged = (0..found.len()).filter(is_apart).collect();
    for (index, superblock) in found.iter().enumerate() {
        let dev = superblock.dev.index();
        let current = members.get(dev).is_some_and(|entry| {
            entry.serial == superblock.serial
                && !is_older_copy(superblock, &newest)
                && (is_in_service(entry) || planted(Planted::AcceptStale))
        });
        if planted(Planted::AcceptStale) && current {
            members[dev].state = MemberState::Healthy;
        }
        if !current {
            stale.push(index);
        } else if let Some(other) = places[dev].replace(index) {
            return Err(AssembleError::Duplicate { first: other, second: index, dev: superblock.dev });
        } else {
            faults[dev] = superblock.faults;
            if superblock.update() == newest.update() {
                rebuilt[dev] = superblock.rebuilt;
            } else if is_written_next(superblock, &newest) {
                lagging.push(superblock.dev);
            }
        }
    }
    for (entry, place) in members.iter_mut().zip(&places) {
        if place.is_none() && entry.state != MemberState::Absent {
            entry.state = MemberState::Failed;
        }
    }
    Ok(Arrangement {
        newest,
        places,
        stale,
        diverged,
        lagging,
        faults,
        rebuilt,
        members,
        maimed: Vec::new(),
        dirty_degraded: DirtyDegraded::Refuse,
        older_state: OlderState::Refuse,
    })
}
