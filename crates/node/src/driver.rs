//! The driver that arrays run on, in one place: whoever has another one ([`device::Membership`]) changes it
//! here.

use device::{Counting, Members, RingError, UringOptions, UringSet};

/// The devices of a running array.
pub type Devices = Counting<UringSet>;

/// How the driver works.
pub type DriverOptions = UringOptions;

/// Why the driver cannot be started.
pub type DriverError = RingError;

/// Starts the driver on members that are open.
pub fn start(members: Members, slot_bytes: usize, options: DriverOptions) -> Result<Devices, DriverError> {
    Ok(Counting::new(UringSet::start(members, slot_bytes, options)?))
}
