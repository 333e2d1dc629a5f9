//! Writes a new array onto devices or files.

use crate::driver::{self, DriverOptions};
use crate::error::Error;
use crate::open::open_options;
use array::NewArray;
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
    let paths: Vec<Option<PathBuf>> = paths.iter().cloned().map(Some).collect();
    let members = Members::open(&paths, open_options(Access::Exclusive)).map_err(Error::Device)?;
    confirm()?;
    let mut devices = driver::start(members, config.geometry.chunk_bytes(), DriverOptions::default())
        .map_err(Error::Driver)?;
    Ok(array::create(&mut devices, config, array).map_err(Error::Create)?)
}
