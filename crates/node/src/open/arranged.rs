//! From what the given devices hold to who is which member of an array.

use super::{Candidate, Found, Spare};
use crate::error::Error;
use array::{Arrangement, AssembleError, arrange, arrange_any, shown_to_others, went_on_apart};
use block::DevIndex;
use format::{Role, Superblock};
use std::path::PathBuf;

/// Finds out which candidate is which member of an array that can be assembled.
pub fn arrange_candidates(candidates: &[Candidate]) -> Result<Found, Error> {
    arrange_with(&candidates.iter().collect::<Vec<_>>(), arrange)
}

/// The same however many members are missing, to look at the array. Members that lost their end count as
/// missing.
pub fn arrange_any_candidates(candidates: &[Candidate]) -> Result<Found, Error> {
    let whole = candidates.iter().filter(|candidate| candidate.truncation().is_none());
    let whole: Vec<&Candidate> = whole.collect();
    if whole.is_empty() {
        return arrange_with(&candidates.iter().collect::<Vec<_>>(), arrange_any);
    }
    arrange_with(&whole, arrange_any)
}

/// Two paths lead to one member: one device that was named twice, or a copy.
fn same_member(first: PathBuf, second: PathBuf, dev: DevIndex) -> Error {
    let is_one = device::share_bytes(&first, &second).unwrap_or(false);
    match is_one {
        true if first == second => Error::NamedTwice { path: first, also: String::new() },
        true => Error::NamedTwice { path: first, also: format!(", also as {}", second.display()) },
        false => Error::Copies { first, second, dev },
    }
}

fn arrange_with(
    candidates: &[&Candidate],
    arrange: fn(&[Superblock]) -> Result<Arrangement, AssembleError>,
) -> Result<Found, Error> {
    let superblocks =
        candidates.iter().map(|candidate| candidate.require_superblock()).collect::<Result<Vec<_>, _>>()?;
    let is_spare = |superblock: &Superblock| match superblock.role {
        Role::Spare => true,
        Role::Main | Role::Log => false,
    };
    let (mut members, mut given, mut spares) = (Vec::new(), Vec::new(), Vec::new());
    for (&candidate, &superblock) in candidates.iter().zip(&superblocks) {
        if is_spare(superblock) {
            spares.push((candidate, superblock));
        } else {
            members.push(superblock.clone());
            given.push(candidate);
        }
    }
    let arrangement = arrange(&members).map_err(|error| explain(error, &given))?;
    let array = arrangement.newest.array;
    for (candidate, superblock) in &spares {
        if superblock.array != array {
            return Err(Error::OthersSpare {
                path: candidate.path.clone(),
                found: superblock.array,
                expected: array,
            });
        }
    }
    let others = arrange_others(&arrangement, (&given, &members), arrange)?;
    // A shard may have in service what the first one has given up.
    let place = |index: usize| {
        std::iter::once(&arrangement).chain(&others).find_map(|shard| *shard.places.get(index)?)
    };
    let places: Vec<Option<usize>> = (0..arrangement.places.len()).map(place).collect();
    let path_of = |index: usize| given[index].path.clone();
    let newest = &arrangement.newest;
    let is_apart = |index: &usize| {
        let served = given[*index].last_served();
        served.is_some_and(|own| went_on_apart(own, (newest.epoch, newest.nonce), &newest.members, None))
    };
    let is_stale = |index: &usize| !places.contains(&Some(*index));
    let found = Found {
        paths: places.iter().map(|place| place.map(path_of)).collect(),
        stale: (0..given.len()).filter(is_stale).map(path_of).collect(),
        diverged: arrangement.diverged.iter().copied().filter(is_apart).map(path_of).collect(),
        spares: spares
            .iter()
            .map(|(candidate, _)| Spare { path: candidate.path.clone(), size_bytes: candidate.size_bytes })
            .collect(),
        arrangement,
        others,
    };
    check_sizes(&found, &given)?;
    Ok(found)
}

/// How the other shards see the members. Their places are numbers of the given devices, too.
fn arrange_others(
    first: &Arrangement,
    (given, members): (&[&Candidate], &[Superblock]),
    arrange: fn(&[Superblock]) -> Result<Arrangement, AssembleError>,
) -> Result<Vec<Arrangement>, Error> {
    let shown = shown_to_others(first, members);
    let of_shard = |index: u16| {
        let is_of = |superblock: &&Superblock| superblock.config.shard.index == index;
        let own = |at: usize| given[at].others.iter().find(is_of).map(|superblock| (at, superblock.clone()));
        let (at, superblocks): (Vec<usize>, Vec<Superblock>) =
            (0..given.len()).filter(|&at| shown[at]).filter_map(own).unzip();
        let path = |index: usize| given[at[index]].path.clone();
        let mut arrangement = arrange(&superblocks).map_err(|source| {
            if let AssembleError::Duplicate { first, second, dev } = source {
                return same_member(path(first), path(second), dev);
            }
            Error::Shard { index, source }
        })?;
        arrangement.places.iter_mut().flatten().for_each(|place| *place = at[*place]);
        let numbers = arrangement.stale.iter_mut().chain(&mut arrangement.diverged);
        numbers.for_each(|place| *place = at[*place]);
        Ok(arrangement)
    };
    (1..first.newest.config.shard.count).map(of_shard).collect()
}

/// Says which paths an arrangement error is about.
fn explain(error: AssembleError, given: &[&Candidate]) -> Error {
    let path = |index: usize| given.get(index).map_or_else(PathBuf::new, |found| found.path.clone());
    match error {
        AssembleError::OtherArray { index, found, expected } => {
            Error::OtherArray { path: path(index), found, first: path(0), expected }
        }
        AssembleError::Duplicate { first, second, dev } => same_member(path(first), path(second), dev),
        AssembleError::TooManyMissing { .. } => Error::TooManyMissing(error),
        AssembleError::Option(_)
        | AssembleError::Buffers { .. }
        | AssembleError::Memory { .. }
        | AssembleError::NoMembers
        | AssembleError::Truncated { .. }
        | AssembleError::NoCheckpoint
        | AssembleError::StateLost(_)
        | AssembleError::MemberFull { .. }
        | AssembleError::TooManyFaults(_)
        | AssembleError::Inconsistent(_)
        | AssembleError::Unsupported(_)
        | AssembleError::LogDevices { .. }
        | AssembleError::PageArea { .. }
        | AssembleError::PageLost { .. }
        | AssembleError::OtherShard
        | AssembleError::DirtyDegraded => Error::Arrange(error),
    }
}

/// A member that lost its end would be read as a failing device, chunk by chunk; better to say so at once.
fn check_sizes(found: &Found, given: &[&Candidate]) -> Result<(), Error> {
    let places = found.arrangements().flat_map(|shard| &shard.places).flatten();
    match places.filter_map(|&place| given.get(place)).find_map(|candidate| candidate.truncation()) {
        Some(truncation) => Err(Error::TruncatedMember(truncation)),
        None => Ok(()),
    }
}
