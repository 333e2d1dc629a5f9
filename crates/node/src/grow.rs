//! An array takes the room of devices that have become larger.

use crate::driver::{DriverOptions, Parked};
use crate::error::Error;
use crate::fresh;
use crate::not_grown::NotGrown;
use crate::open::{Force, Incomplete, discover};
use crate::open::{Found, Locked, lock, member_name, name_of};
use array::{Arrangement, AssembleError, GrowError, grow, is_half_grown};
use block::DevIndex;
use device::probe;
use format::ArrayConfig;
use std::path::PathBuf;

/// What an array becomes, or has become.
#[derive(Clone, Debug)]
pub struct Growth {
    /// What the array is called.
    pub array: String,
    /// As it was.
    pub before: ArrayConfig,
    /// As it is then.
    pub after: ArrayConfig,
    /// The smallest data device, which decides.
    pub smallest: (String, PathBuf),
    /// Its size.
    pub smallest_bytes: u64,
}

/// What an array would become; nothing is written, and it may be in service.
pub fn plan_growth(paths: &[PathBuf]) -> Result<Growth, Error> {
    plan(&discover(paths)?)
}

/// Lets an array that nobody serves grow, and leaves it stopped in order. What was cut short before is
/// brought to its end first; then the array may grow further.
pub fn grow_array(paths: &[PathBuf]) -> Result<Growth, Error> {
    let (first, was_half_grown) = grow_once(paths)?;
    if !was_half_grown {
        return Ok(first);
    }
    match grow_once(paths) {
        Ok((further, _)) => Ok(Growth { before: first.before, ..further }),
        Err(Error::NotGrown(not_grown)) if is_all_there_is(&not_grown.source) => Ok(first),
        Err(error) => Err(error),
    }
}

/// Whether there is no room for more.
fn is_all_there_is(error: &GrowError) -> bool {
    matches!(error, GrowError::TooSmall { .. } | GrowError::Full { .. })
}

/// The same once; and whether an attempt had been cut short, so that this one has brought it to its end.
fn grow_once(paths: &[PathBuf]) -> Result<(Growth, bool), Error> {
    let Locked { found, members } = lock(paths, Force::Never, Incomplete::Refuse)?;
    let planned = plan(&found)?;
    let options = DriverOptions::default();
    let chunk_bytes = planned.before.geometry.chunk_bytes();
    let mut devices = Parked::new(members, Vec::new(), chunk_bytes, options).start()?;
    let nonced = found.arrangements().map(|shard| Ok((shard, fresh::number()?)));
    let shards: Vec<(&Arrangement, u64)> = nonced.collect::<Result<_, Error>>()?;
    let result = grow(&mut devices, &shards, &mut || Ok(()));
    match result {
        Ok((after, _)) => Ok((Growth { after, ..planned }, is_half_grown(&found.shapes()))),
        Err(GrowError::Assemble(AssembleError::MemberFull { dev })) => {
            let name = member_name(planned.before.geometry.device_count(), dev);
            let path = found.paths.get(dev.index()).cloned().flatten().unwrap_or_default();
            Err(Error::NoRoom { array: planned.array, name, path })
        }
        Err(error) => Err(not_grown(&found, error)),
    }
}

fn plan(found: &Found) -> Result<Growth, Error> {
    let shapes = found.shapes();
    let smallest = shapes.iter().min_by_key(|shape| shape.volume_bytes());
    let before = smallest.map_or(found.superblock().config, |shape| shape.sibling(0));
    let main_count = before.geometry.device_count();
    let mut sizes = Vec::new();
    for (dev, path) in (0u16..).map(DevIndex::new).zip(found.paths.iter().take(main_count)) {
        let Some(path) = path else {
            return Err(not_grown(found, GrowError::NotWhole { dev, what: "missing" }));
        };
        sizes.push((probe(path)?.size_bytes, (member_name(main_count, dev), path.clone())));
    }
    let bytes: Vec<u64> = sizes.iter().map(|(bytes, _)| *bytes).collect();
    let after = array::plan_growth(&shapes, &bytes).map_err(|error| not_grown(found, error))?;
    let (smallest_bytes, smallest) = sizes.into_iter().min_by_key(|(bytes, _)| *bytes).unwrap_or_default();
    Ok(Growth { array: name_of(found.superblock()), before, after, smallest, smallest_bytes })
}

fn not_grown(found: &Found, source: GrowError) -> Error {
    let dev = match source {
        GrowError::NotWhole { dev, .. }
        | GrowError::TooSmall { dev, .. }
        | GrowError::Shrunk { dev, .. }
        | GrowError::MemberFailed { dev } => Some(dev),
        GrowError::Shapes { .. } | GrowError::Resync | GrowError::Full { .. } | GrowError::Assemble(_) => {
            None
        }
    };
    let superblock = found.superblock();
    let main_count = superblock.config.geometry.device_count();
    let member =
        dev.map(|dev| (member_name(main_count, dev), found.paths.get(dev.index()).cloned().flatten()));
    Error::NotGrown(Box::new(NotGrown { array: name_of(superblock), member, source }))
}
