//! Writes a new array onto devices or files.

use crate::driver::{DriverOptions, Parked};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::interruptible::Interruptible;
use crate::made::directory_of;
use crate::open::open_options;
use crate::read_back::ReadBack;
use array::NewArray;
use block::{DevIndex, DeviceSet, META_BYTES};
use device::{Access, Members, is_rotational};
use format::{ArrayConfig, SUPERBLOCK_OFFSETS, Superblock};
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
    let created = write(&mut devices, paths, &config, array);
    if created.is_err() {
        take_back(&mut devices, paths, &config, array);
    }
    Ok(created?)
}

/// The same, unless a signal comes before everything is written: then there is no array.
pub fn create_unless<E: From<Error>>(
    interrupt: &Interrupt,
    paths: &[PathBuf],
    config: ArrayConfig,
    array: &NewArray,
    confirm: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let mut devices = start(paths, &config, confirm)?;
    let created = write(Interruptible::new(&mut devices, interrupt), paths, &config, array);
    if created.is_err() {
        take_back(&mut devices, paths, &config, array);
        interrupt.check_creation()?;
    }
    Ok(created?)
}

/// Writes everything, and reads it again: an array that lacks a member, or whose member keeps nothing, is
/// none that anybody wants.
fn write(
    devices: impl DeviceSet,
    paths: &[PathBuf],
    config: &ArrayConfig,
    array: &NewArray,
) -> Result<(), Error> {
    let mut devices = ReadBack::new(devices);
    let created = array::create_shards(&mut devices, config, array);
    // Which device is the matter says more than what came of it.
    let checked = if created.is_ok() { devices.check() } else { devices.refused().map_or(Ok(()), Err) };
    let path = |dev: DevIndex| paths.get(dev.index()).cloned().unwrap_or_default();
    checked.map_err(|(dev, why)| Error::NotKept { path: path(dev), why })?;
    created.map_err(Error::Create)
}

/// Erases the superblocks of an array that has not come to be, while nobody else can open its devices, or
/// they would be members of it for whoever looks. What cannot be erased stays.
fn take_back(devices: &mut impl DeviceSet, paths: &[PathBuf], config: &ArrayConfig, array: &NewArray) {
    // As when they are wiped: that by which a device is known comes last.
    let shards = (0..config.shard.count.max(1)).rev();
    for dev in (0u16..).take(paths.len()).map(DevIndex::new) {
        for shard in shards.clone() {
            let origin = config.sibling(shard).slice_origin(dev);
            for (slot, offset) in SUPERBLOCK_OFFSETS.into_iter().enumerate() {
                let (mut block, at) = ([0; META_BYTES], origin + offset);
                let found = devices.read_now(dev, at, &mut block).map(|()| Superblock::decode(&block, slot));
                if matches!(found, Ok(Ok(found)) if found.array == array.uuid.of_shard(shard)) {
                    let _ = devices.write_now(dev, at, &[0; META_BYTES]);
                }
            }
        }
        let _ = devices.flush_now(dev);
    }
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
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::{shards_on, take_back, write};
    use array::{CreateOptions, NewArray, plan_shards};
    use block::{Completion, DevIndex, DeviceOp, DeviceSet, Geometry, IoFault, META_BYTES, Pool};
    use device::MemorySet;
    use format::{
        ArrayConfig, ArrayUuid, CodeKind, Consistency, LayoutKind, SUPERBLOCK_OFFSETS, SchemeKind,
        looks_like_member,
    };
    use std::path::PathBuf;

    const DEVICE_BYTES: u64 = 32 << 20;

    /// What the third device does with writes.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Fault {
        None,
        Forgets,
        ForgetsFrom(u64),
        Misplaces,
        Refuses,
    }

    struct Faulty {
        inner: MemorySet,
        fault: Fault,
    }

    impl DeviceSet for Faulty {
        fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
            self.inner.submit(pool, ops);
        }

        fn poll(&mut self, pool: &mut Pool, completions: &mut Vec<Completion>) {
            self.inner.poll(pool, completions);
        }

        fn wait(&mut self, timeout_ns: u64) {
            self.inner.wait(timeout_ns);
        }

        fn size_bytes(&self, dev: DevIndex) -> u64 {
            self.inner.size_bytes(dev)
        }

        fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
            self.inner.read_now(dev, offset_bytes, into)
        }

        fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
            match self.fault {
                _ if dev != DevIndex::new(2) => self.inner.write_now(dev, offset_bytes, from),
                Fault::ForgetsFrom(first) if offset_bytes < first => {
                    self.inner.write_now(dev, offset_bytes, from)
                }
                Fault::None => self.inner.write_now(dev, offset_bytes, from),
                Fault::Forgets | Fault::ForgetsFrom(_) => Ok(()),
                Fault::Misplaces => self.inner.write_now(DevIndex::new(1), offset_bytes, from),
                Fault::Refuses => Err(IoFault::Device { errno: 5 }),
            }
        }

        fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
            self.inner.flush_now(dev)
        }
    }

    /// Superblocks of all shards on four devices.
    fn members_among(devices: &mut Faulty, config: &ArrayConfig) -> usize {
        let mut looks = 0;
        for dev in (0..4).map(DevIndex::new) {
            for shard in 0..config.shard.count {
                for offset in SUPERBLOCK_OFFSETS {
                    let at = config.sibling(shard).slice_origin(dev) + offset;
                    let mut block = [0; META_BYTES];
                    devices.read_now(dev, at, &mut block).unwrap();
                    looks += usize::from(looks_like_member(&block));
                }
            }
        }
        looks
    }

    #[test]
    fn a_device_that_does_not_keep_what_is_written_is_named() {
        let options = CreateOptions {
            scheme: SchemeKind::Raid,
            code: CodeKind::Cauchy,
            layout: LayoutKind::Spread,
            consistency: Consistency::Journal,
            geometry: Geometry::new(2, 2, 4096).unwrap(),
            reserve_permille: 100,
            unit_rows: None,
        };
        let config = plan_shards(&options, DEVICE_BYTES, 0, 0, 2).unwrap();
        let paths: Vec<PathBuf> = ["a", "b", "c", "d"].map(PathBuf::from).to_vec();
        let array = NewArray { uuid: ArrayUuid::new([7; 16]), name: "a".into(), nonce: 3, created_unix_s: 1 };
        let made = |fault| {
            let mut devices = Faulty { inner: MemorySet::new(&[DEVICE_BYTES; 4]).unwrap(), fault };
            let made = write(&mut devices, &paths, &config, &array).map_err(|error| error.to_string());
            assert!(members_among(&mut devices, &config) > 8, "{fault:?}");
            if made.is_err() {
                take_back(&mut devices, &paths, &config, &array);
                assert_eq!(
                    members_among(&mut devices, &config),
                    0,
                    "{fault:?}: nothing is a member of no array"
                );
            }
            made
        };
        made(Fault::None).unwrap();
        // Beyond the superblocks of the first shard: its checkpoint, or another shard.
        let rest = Fault::ForgetsFrom(DEVICE_BYTES / 2);
        for (fault, words) in [
            (Fault::Forgets, "is not there"),
            (rest, "is not there"),
            (Fault::Misplaces, "is not there"),
            (Fault::Refuses, "takes no writes: device error (errno 5)"),
        ] {
            let why = made(fault).unwrap_err();
            assert!(why.contains(words), "{fault:?}: {why}");
            assert!(why.starts_with("c: ") || fault == Fault::Misplaces, "{fault:?}: {why}");
        }
    }

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
