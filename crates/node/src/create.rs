//! Writes a new array onto devices or files.

use crate::driver::{DriverOptions, Parked};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::interruptible::Interruptible;
use crate::made::directory_of;
use crate::open::open_options;
use array::NewArray;
use block::DeviceSet;
use device::{Access, Members, is_rotational};
use format::ArrayConfig;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread::available_parallelism;

/// Shards of an array whose number nobody chose: a shard for each of these.
const BYTES_PER_SHARD: u64 = 256 << 30;
/// The most of them.
const SHARDS_BY_ITSELF_MAX: u16 = 16;

/// How many shards an array gets whose smallest data device has `data_bytes`, with these log devices (those
/// that are not there are files to be made): as many as its size is worth and half of this machine's
/// processors can run, as the other half is its clients'. One if a log device is a hard disk, as each shard
/// writes a stream of its own to it.
pub fn shards_for(data_bytes: u64, logs: &[PathBuf]) -> u16 {
    let logs_turn = logs.iter().any(|path| {
        let lies_at = if path.exists() { path } else { directory_of(path) };
        is_rotational(lies_at) == Some(true)
    });
    shards_on(data_bytes, available_parallelism().map_or(1, NonZero::get), logs_turn)
}

fn shards_on(data_bytes: u64, processors: usize, logs_turn: bool) -> u16 {
    if logs_turn {
        return 1;
    }
    let worth = u16::try_from(data_bytes / BYTES_PER_SHARD).unwrap_or(u16::MAX);
    let run = u16::try_from(processors / 2).unwrap_or(u16::MAX);
    worth.min(run).clamp(1, SHARDS_BY_ITSELF_MAX)
}

/// Makes an array of the devices at `paths`, in the order of the members, whatever they hold; unless
/// `confirm`, which is called when nobody else can open them any more, has something against it.
pub fn create<E: From<Error>>(
    paths: &[PathBuf],
    config: ArrayConfig,
    array: &NewArray,
    confirm: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let mut devices = start(paths, &config, confirm)?;
    Ok(array::create_shards(&mut devices, &config, array).map_err(Error::Create)?)
}

/// The same, unless a signal comes before everything is written: then there is no array.
pub fn create_unless<E: From<Error>>(
    interrupt: &Interrupt,
    paths: &[PathBuf],
    config: ArrayConfig,
    array: &NewArray,
    confirm: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let devices = start(paths, &config, confirm)?;
    let created = array::create_shards(&mut Interruptible::new(devices, interrupt), &config, array);
    if created.is_err() {
        interrupt.check_creation()?;
    }
    Ok(created.map_err(Error::Create)?)
}

fn start<E: From<Error>>(
    paths: &[PathBuf],
    config: &ArrayConfig,
    confirm: impl FnOnce() -> Result<(), E>,
) -> Result<impl DeviceSet, E> {
    let paths: Vec<Option<PathBuf>> = paths.iter().cloned().map(Some).collect();
    let members = Members::open(&paths, open_options(Access::Exclusive)).map_err(Error::Device)?;
    confirm()?;
    let options = DriverOptions::default();
    Ok(Parked::new(members, Vec::new(), config.geometry.chunk_bytes(), options)
        .start()
        .map_err(Error::Driver)?)
}

#[cfg(test)]
mod tests {
    use super::shards_on;

    #[test]
    fn shards_follow_size_and_processors() {
        let tib = 1 << 40;
        assert_eq!(shards_on(tib, 2, false), 1, "the other processor is the clients'");
        assert_eq!(shards_on(tib, 16, false), 4);
        assert_eq!(shards_on(4 * tib, 16, false), 8);
        assert_eq!(shards_on(64 * tib, 256, false), 16);
        assert_eq!(shards_on(100 << 30, 64, false), 1, "too small to be worth it");
        assert_eq!(shards_on(0, 0, false), 1);
        assert_eq!(shards_on(4 * tib, 16, true), 1, "a hard disk would have to seek");
    }
}
