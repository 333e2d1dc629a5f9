//! Fresh random numbers from the operating system.

use crate::error::Error;
use format::ArrayUuid;

/// A number nobody can guess.
pub fn number() -> Result<u64, Error> {
    getrandom::u64().map_err(Error::Random)
}

/// A random (version 4) UUID.
pub fn uuid() -> Result<ArrayUuid, Error> {
    let (high, low) = (number()?, number()?);
    let mut bytes = [0u8; 16];
    bytes[..8].copy_from_slice(&high.to_be_bytes());
    bytes[8..].copy_from_slice(&low.to_be_bytes());
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(ArrayUuid::new(bytes))
}
