//! The driver that arrays run on, in one place: whoever has another one ([`device::Membership`]) changes it
//! here.

use block::{Extent, Slice};
use device::{Counting, Members, RingError, UringOptions, UringSet};

/// The devices of a shard of a running array: its slices of the members.
pub type Devices = Counting<Slice<UringSet>>;

/// How the driver works.
pub type DriverOptions = UringOptions;

/// Why the driver cannot be started.
pub type DriverError = RingError;

/// Starts the driver on slices of members that are open.
pub fn start(
    members: Members,
    slices: Vec<Extent>,
    slot_bytes: usize,
    options: DriverOptions,
) -> Result<Devices, DriverError> {
    Ok(Counting::new(Slice::new(UringSet::start(members, slot_bytes, options)?, slices)))
}
