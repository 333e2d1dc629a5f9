//! ublk: a disk of the kernel on this machine, without a network in between.
//!
//! A queue of the device is a client of the reactor (`Disk`): the kernel hands requests over in places of a
//! ring, each is carried out on the volume in pieces, and answered in its place. Payload is copied once,
//! between the pages that the kernel has for the request and the slots of the volume.
//!
//! # Invariants
//! - A request is answered once, or not at all: when its server is gone, the kernel gives it to the next one.
//! - All places of a queue are taken in at once; what waits for slots waits here, in order. So the kernel's
//!   ring never
//!   fills up, and a queue holds as many requests as it has places.
//! - What a disk without a volatile cache has answered is durable: its users go on when the server is killed
//!   and another one
//!   takes over, and count on everything that was answered.

mod disk;

pub(crate) use disk::Disk;

use block::Durability;
use device::ublk::Queue;
use std::io;

/// What answers of a disk promise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cache {
    /// What is answered is durable, and outlives the server as well.
    None,
    /// Writes are durable after a flush, or with FUA. They do not outlive a server that is killed.
    Volatile,
}

impl Cache {
    /// What a request that says nothing of it is promised.
    fn durability(self) -> Durability {
        match self {
            Self::None => Durability::Durable,
            Self::Volatile => Durability::Volatile,
        }
    }
}

/// A queue of a device, to be served.
pub struct Served {
    /// The queue.
    pub queue: Queue,
    /// What its answers promise.
    pub cache: Cache,
}

/// What the kernel did that it does not do.
#[derive(Debug, thiserror::Error)]
pub enum Violation {
    /// It takes no commands.
    #[error("the kernel takes no commands of queue {queue}: {source}")]
    Deaf {
        /// The queue.
        queue: u16,
        /// What it says.
        source: io::Error,
    },
    /// It refuses a command.
    #[error("the kernel refuses a command for place {tag} of queue {queue}: {source}")]
    Refused {
        /// The queue.
        queue: u16,
        /// The place.
        tag: u16,
        /// What it says.
        source: io::Error,
    },
}
