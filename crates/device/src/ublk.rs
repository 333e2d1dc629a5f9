//! ublk: disks of the kernel whose requests this process carries out (Linux 6.5 and later, module
//! `ublk_drv`).
//!
//! ```text
//!   Control --- /dev/ublk-control --- add, set parameters, start, stop, delete, recover
//!   Node ------ /dev/ublkcN --------- opened by one process at a time
//!   Queue ----- a ring of commands -- "give me a request", "this one has ended thus, give me another"
//! ```
//!
//! A device has queues of equal depth; a request has a place (*tag*) in one of them from when the kernel
//! hands it over until it is answered. All commands of a queue come from one thread. Payload is copied by
//! reading from and writing to the node, so the kernel never gets an address of this process.
//!
//! A device outlives its server: with [`Recovery::Reissue`] its requests wait, those that were under way
//! included, until another server takes it over.
//!
//! This is not a front end: what requests mean is for others to say.

mod control;
mod queue;
mod wire;

pub use control::Control;
pub use queue::{Event, Node, Queue};
pub use wire::{Ask, Info, Operation, Parameters, Plan, Recovery, SECTOR_BYTES, State};

use std::io;

/// Why a block device cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The driver is not there.
    #[error(
        "/dev/ublk-control is not there: block devices need Linux 6.5 or later and its module ublk_drv (`modprobe ublk_drv`)"
    )]
    NoDriver,
    /// The driver is not for this user.
    #[error("{what}: {source}; block devices are made by root (CAP_SYS_ADMIN)")]
    NoPermission {
        /// What was tried.
        what: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
    /// The driver is older than what is needed.
    #[error("the kernel's ublk_drv does not know {lacks}: Linux 6.5 or later is needed")]
    TooOld {
        /// What it lacks.
        lacks: &'static str,
    },
    /// No ring.
    #[error("no io_uring for block devices: {0}")]
    Ring(io::Error),
    /// A command failed.
    #[error("/dev/ublkb{number}: {what}: {source}")]
    Command {
        /// The device's number.
        number: u32,
        /// What was tried.
        what: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
    /// No device could be added.
    #[error("a block device cannot be added: {0}")]
    Add(io::Error),
    /// The number is another's.
    #[error("/dev/ublkb{number} is there already, {whose}; choose another number, or none")]
    Taken {
        /// The number.
        number: u32,
        /// Whose it is, in words.
        whose: String,
    },
    /// The node of a device cannot be opened.
    #[error("/dev/ublkc{number}: {source}")]
    Node {
        /// The device's number.
        number: u32,
        /// What the system says.
        source: io::Error,
    },
}
