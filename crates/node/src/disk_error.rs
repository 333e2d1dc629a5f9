//! Why an array cannot be a disk of the kernel.

use crate::units::show_size;
use device::ublk::{Error as DriverError, State};
use std::time::Duration;

/// How long the kernel may take to clear up after a server that was killed.
pub const CLEARING: Duration = Duration::from_secs(30);

/// Why the array cannot be a disk. Whoever reads it must learn what to do.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The driver says so.
    #[error("--ublk: {0}")]
    Driver(#[from] DriverError),
    /// It has a number already.
    #[error(
        "--ublk {wanted}: the array is /dev/ublkb{number} already, left by a server that ended, and may be in use: give --ublk {number}"
    )]
    Elsewhere {
        /// What it has.
        number: u32,
        /// What was asked for.
        wanted: u32,
    },
    /// Its server is not gone.
    #[error("--ublk: /dev/ublkb{number} is still with process {process}, which served the array before, after {} s", CLEARING.as_secs())]
    StillServed {
        /// Its number.
        number: u32,
        /// Its server.
        process: i32,
    },
    /// It is in a state that leads nowhere.
    #[error(
        "--ublk: /dev/ublkb{number}, left by a server of this array, is {state:?} and cannot be taken over"
    )]
    Lost {
        /// Its number.
        number: u32,
        /// How it is.
        state: State,
    },
    /// The volume has become smaller than the disk.
    #[error(
        "--ublk: /dev/ublkb{number}, left by a server of this array, has {}, the volume {}: is it the same array?",
        show_size(*disk_bytes), show_size(*volume_bytes)
    )]
    Shrunk {
        /// Its number.
        number: u32,
        /// Its size.
        disk_bytes: u64,
        /// That of the volume.
        volume_bytes: u64,
    },
    /// Its users expect to write.
    #[error(
        "--ublk: /dev/ublkb{number}, left by a server of this array, can be written to, and its users would get errors with --read-only"
    )]
    Writable {
        /// Its number.
        number: u32,
    },
}
