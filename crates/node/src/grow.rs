//! An array takes the room of devices that have become larger.

use crate::driver::{DriverOptions, Parked};
use crate::error::Error;
use crate::fresh;
use crate::not_grown::NotGrown;
use crate::open::{Force, Incomplete, discover};
use crate::open::{Found, Locked, lock, member_name, name_of};
use array::{AssembleError, GrowError, grow, grown_config};
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

/// Lets an array that nobody serves grow, and leaves it stopped in order.
pub fn grow_array(paths: &[PathBuf]) -> Result<Growth, Error> {
    let Locked { found, members } = lock(paths, Force::Never, Incomplete::Refuse)?;
    let planned = plan(&found)?;
    let options = DriverOptions::default();
    let chunk_bytes = planned.before.geometry.chunk_bytes();
    let mut devices = Parked::new(members, Vec::new(), chunk_bytes, options).start()?;
    let result = grow(&mut devices, &found.arrangement, fresh::number()?, &mut || Ok(()));
    match result {
        Ok((after, _)) => Ok(Growth { after, ..planned }),
        Err(GrowError::Assemble(AssembleError::MemberFull { dev })) => {
            let name = member_name(planned.before.geometry.device_count(), dev);
            let path = found.paths.get(dev.index()).cloned().flatten().unwrap_or_default();
            Err(Error::NoRoom { array: planned.array, name, path })
        }
        Err(error) => Err(not_grown(&found, error)),
    }
}

fn plan(found: &Found) -> Result<Growth, Error> {
    let before = found.superblock().config;
    let main_count = before.geometry.device_count();
    if before.shard.is_one_of_several() {
        return Err(not_grown(found, GrowError::Shards { count: before.shard.count }));
    }
    let mut sizes = Vec::new();
    for (dev, path) in (0u16..).map(DevIndex::new).zip(found.paths.iter().take(main_count)) {
        let Some(path) = path else {
            return Err(not_grown(found, GrowError::NotWhole { dev, what: "missing" }));
        };
        sizes.push((probe(path)?.size_bytes, (member_name(main_count, dev), path.clone())));
    }
    let bytes: Vec<u64> = sizes.iter().map(|(bytes, _)| *bytes).collect();
    let after = grown_config(&before, &bytes).map_err(|error| not_grown(found, error))?;
    let (smallest_bytes, smallest) = sizes.into_iter().min_by_key(|(bytes, _)| *bytes).unwrap_or_default();
    Ok(Growth { array: name_of(found.superblock()), before, after, smallest, smallest_bytes })
}

fn not_grown(found: &Found, source: GrowError) -> Error {
    let dev = match source {
        GrowError::NotWhole { dev, .. }
        | GrowError::TooSmall { dev, .. }
        | GrowError::Shrunk { dev, .. }
        | GrowError::MemberFailed { dev } => Some(dev),
        GrowError::Shards { .. } | GrowError::Resync | GrowError::Full { .. } | GrowError::Assemble(_) => {
            None
        }
    };
    let superblock = found.superblock();
    let main_count = superblock.config.geometry.device_count();
    let member =
        dev.map(|dev| (member_name(main_count, dev), found.paths.get(dev.index()).cloned().flatten()));
    Error::NotGrown(Box::new(NotGrown { array: name_of(superblock), member, source }))
}
