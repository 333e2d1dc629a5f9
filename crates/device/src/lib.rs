//! Drivers: what carries out the engine's device operations.
//!
//! | set | what it is | speed |
//! |---|---|---|
//! | [`UringSet`] | block devices and regular files through one io_uring, O_DIRECT | the device's |
//! | [`MemorySet`] | sparse anonymous memory, completes inside `submit` | a memcpy per operation |
//! | [`NullSet`] | nothing is moved; for pure engine cost and write counts | nanoseconds per operation |
//! | [`Counting`] | wraps any of them and counts operations and bytes per device and stream | two additions per operation |
//! | [`Sheltered`] | wraps any of them; writes to members that must not change stay in memory | a branch per batch, if they may |
//!
//! All obey the contract of [`block::DeviceSet`] and one more rule, the same for all: an operation that
//! reaches past the end of its member moves nothing and completes with [`block::IoFault::Short`]; one on an
//! absent or failed member completes with [`block::IoFault::Gone`]. An operation without a slot, longer than
//! its slot or off the 4096-byte grid is a bug of the caller and panics.
//!
//! [`Members`] opens, locks and describes the devices of an array and does synchronous I/O on them; [`probe`]
//! looks at a path without touching it, [`create_file`] makes a sparse file to serve as a device.
//!
//! [`wear`] is what drives tell of their own age.
//!
//! [`ublk`] is the other way round: a disk of the kernel whose requests come here.
#![deny(unsafe_code)]

mod counting;
mod kernel;
mod mapping;
mod member;
mod membership;
mod memory;
mod null;
mod operation;
mod shelter;
mod sheltered;
mod streams;
pub mod ublk;
mod uring;
pub mod wear;

pub use counting::{Counting, DeviceCounters};
pub use kernel::is_rotational;
pub use member::{
    Access, Content, DirectIo, Existing, Identity, Kind, Member, Members, Note, OpenError, OpenOptions,
    Probe, Whereabouts, allocate_file, create_file, first_content, identity, probe, share_bytes,
};
pub use membership::Membership;
pub use memory::{MemoryError, MemorySet};
pub use null::{NullOptions, NullSet};
pub use shelter::{SHELTER_BYTES_MAX, Shelter};
pub use sheltered::Sheltered;
pub use streams::WriteStreams;
pub use uring::{RingError, UringOptions, UringSet};
