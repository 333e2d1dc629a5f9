//! An array takes the room of devices that have become larger.

use crate::driver::{DriverOptions, Parked};
use crate::error::Error;
use crate::fresh;
use crate::not_grown::NotGrown;
use crate::open::{Force, Incomplete, discover, look_again};
use crate::open::{Found, Locked, Spare, lock, member_name, name_of};
use crate::units::show_size;
use array::{Arrangement, AssembleError, EngineOptions, GrowError, check_whole, grow, is_half_grown};
use block::DevIndex;
use device::{Members, probe};
use format::{ArrayConfig, MemberState};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What an array becomes, or has become.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Growth {
    /// What the array is called.
    pub array: String,
    /// Bytes of the volume as it was.
    pub volume_bytes_before: u64,
    /// As it is then.
    pub volume_bytes: u64,
    /// Bytes used of each data device before.
    pub device_bytes_before: u64,
    /// And then.
    pub device_bytes: u64,
    /// The smallest data device, which decides.
    pub smallest: String,
    /// Where it is.
    pub smallest_path: PathBuf,
    /// Its size.
    pub smallest_bytes: u64,
    /// Spares that are too small for some place then, and why.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub small_spares: Vec<String>,
    /// How long clients waited, if the array was served meanwhile.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waited_ms: Option<u64>,
}

impl Growth {
    /// How long clients waited, in seconds, if the array was served meanwhile.
    pub fn show_wait(&self) -> Option<String> {
        self.waited_ms.map(|ms| format!("{}.{:03} s", ms / 1000, ms % 1000))
    }

    /// The array has become this.
    fn to(self, after: &ArrayConfig) -> Self {
        Self { volume_bytes: after.whole_volume_bytes(), device_bytes: after.whole_main_bytes(), ..self }
    }
}

/// What an array would become; nothing is written, and it may be in service.
pub fn plan_growth(paths: &[PathBuf]) -> Result<Growth, Error> {
    plan(&discover(paths)?).map(|(growth, _)| growth)
}

/// Lets an array that nobody serves grow, and leaves it stopped in order. What was cut short before is
/// brought to its end first; then the array may grow further.
pub fn grow_array(paths: &[PathBuf]) -> Result<Growth, Error> {
    grow_locked(&mut || lock(paths, Force::Never, Incomplete::Refuse))
}

/// The same, of an array whose members this process has open, where they are, and which was stopped in order.
pub fn grow_open(paths: &[PathBuf], members: &Members) -> Result<Growth, Error> {
    grow_locked(&mut || look_again(paths, members.share(), Incomplete::Refuse))
}

/// Whether an array that runs with these options, each shard with its own, and whose members are like that,
/// would grow, and run then.
pub fn check_growth(
    paths: &[PathBuf],
    options: &[EngineOptions],
    states: impl Iterator<Item = MemberState>,
) -> Result<Growth, Error> {
    let found = discover(paths)?;
    check_whole(states).map_err(|error| not_grown(&found, error))?;
    let (growth, after) = plan(&found)?;
    let runs = options.iter().zip(0..).try_for_each(|(options, shard)| options.check(&after.sibling(shard)));
    runs.map_err(|source| Error::Assemble { array: growth.array.clone(), source })?;
    Ok(growth)
}

fn grow_locked(lock: &mut dyn FnMut() -> Result<Locked, Error>) -> Result<Growth, Error> {
    let (first, was_half_grown) = grow_once(lock()?)?;
    if !was_half_grown {
        return Ok(first);
    }
    match lock().and_then(grow_once) {
        Ok((further, _)) => Ok(Growth {
            volume_bytes_before: first.volume_bytes_before,
            device_bytes_before: first.device_bytes_before,
            ..further
        }),
        Err(Error::NotGrown(not_grown)) if is_all_there_is(&not_grown.source) => Ok(first),
        Err(error) => Err(error),
    }
}

/// Whether there is no room for more.
fn is_all_there_is(error: &GrowError) -> bool {
    matches!(error, GrowError::TooSmall { .. } | GrowError::Full { .. })
}

/// The same once; and whether an attempt had been cut short, so that this one has brought it to its end.
fn grow_once(locked: Locked) -> Result<(Growth, bool), Error> {
    let Locked { found, members } = locked;
    let (planned, _) = plan(&found)?;
    let geometry = found.superblock().config.geometry;
    let mut devices =
        Parked::new(members, Vec::new(), geometry.chunk_bytes(), DriverOptions::default()).start()?;
    let nonced = found.arrangements().map(|shard| Ok((shard, fresh::number()?)));
    let shards: Vec<(&Arrangement, u64)> = nonced.collect::<Result<_, Error>>()?;
    match grow(&mut devices, &shards, &mut || Ok(())) {
        Ok((after, _)) => Ok((planned.to(&after), is_half_grown(&found.shapes()))),
        Err(GrowError::Assemble(AssembleError::MemberFull { dev })) => {
            let name = member_name(geometry.device_count(), dev);
            let path = found.paths.get(dev.index()).cloned().flatten().unwrap_or_default();
            Err(Error::NoRoom { array: planned.array, name, path })
        }
        Err(error) => Err(not_grown(&found, error)),
    }
}

/// What it becomes: in words, and the shape of its first shard.
fn plan(found: &Found) -> Result<(Growth, ArrayConfig), Error> {
    let shapes = found.shapes();
    let least = shapes.iter().min_by_key(|shape| shape.volume_bytes());
    let before = least.map_or(found.superblock().config, |shape| shape.sibling(0));
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
    let growth = Growth {
        array: name_of(found.superblock()),
        volume_bytes_before: before.whole_volume_bytes(),
        volume_bytes: 0,
        device_bytes_before: before.whole_main_bytes(),
        device_bytes: 0,
        smallest: smallest.0,
        smallest_path: smallest.1,
        smallest_bytes,
        small_spares: small_spares(found.spares.iter(), after.whole_main_bytes()),
        waited_ms: None,
    };
    Ok((growth.to(&after), after))
}

/// Those of some spares that are too small for a data device that has so many bytes, and that they are.
pub fn small_spares<'a>(spares: impl Iterator<Item = &'a Spare>, needed_bytes: u64) -> Vec<String> {
    let needed = show_size(needed_bytes);
    let small = spares.filter(|spare| spare.size_bytes < needed_bytes).map(|Spare { path, size_bytes }| {
        let bytes = show_size(*size_bytes);
        format!(
            "spare {} is too small for a data device now: it has {bytes}, and {needed} are needed",
            path.display()
        )
    });
    small.collect()
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
