//! Writes a new array onto devices or files.

use crate::driver::{DriverOptions, Parked};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::interruptible::Interruptible;
use crate::open::open_options;
use array::NewArray;
use block::DeviceSet;
use device::{Access, Members};
use format::ArrayConfig;
use std::path::PathBuf;

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
