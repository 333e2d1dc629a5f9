//! The driver that arrays run on, in one place: whoever has another one ([`device::Membership`]) changes it
//! here.

use array::Array;
use block::{Extent, Paired, Slice};
use device::{
    Counting, DeviceCounters, Members, Membership as _, Note, RingError, Sheltered, UringOptions, UringSet,
};

/// The devices of a shard of a running array: its slices of the members.
pub type Devices = Paired<Fixed>;

/// The same where no member is replaced while it works.
pub type Fixed = Counting<Slice<Sheltered<UringSet>>>;

/// How the driver works.
pub type DriverOptions = UringOptions;

/// Why the driver cannot be started.
pub type DriverError = RingError;

/// Lets a driver that is at rest work on these slices, and on the room of members that have become larger.
pub fn extend(devices: &mut Devices, slices: Vec<Extent>) {
    devices.measure();
    devices.inner_mut().inner_mut().extend_to(slices);
}

/// What a driver is started from, on the thread that it is to run on.
pub struct Parked {
    members: Members,
    slices: Vec<Extent>,
    slot_bytes: usize,
    options: DriverOptions,
    counters: Vec<DeviceCounters>,
}

impl Parked {
    /// Slices of members that are open.
    pub fn new(members: Members, slices: Vec<Extent>, slot_bytes: usize, options: DriverOptions) -> Self {
        Self { members, slices, slot_bytes, options, counters: Vec::new() }
    }

    /// Starts the driver.
    pub fn start(self) -> Result<Devices, DriverError> {
        let Self { members, slices, slot_bytes, options, counters } = self;
        let ring = UringSet::start(members, slot_bytes, options)?;
        let set = Slice::new(Sheltered::new(ring), slices);
        Ok(Paired::new(Counting::from_counters(set, counters)))
    }

    /// The members.
    pub fn members(&self) -> &Members {
        &self.members
    }
}

/// A shard that was assembled, and may be moved to the thread that is to run it.
pub struct Idle {
    array: Array<()>,
    devices: Parked,
    notes: Vec<Note>,
}

impl Idle {
    /// Takes an array from its driver, with which nothing is in flight. It was started with `options`.
    pub fn new(
        array: Array<Devices>,
        slices: Vec<Extent>,
        slot_bytes: usize,
        options: DriverOptions,
    ) -> Self {
        let (array, devices) = array.with_devices(());
        let notes = devices.notes().to_vec();
        let counters = devices.inner().devices().to_vec();
        let members = devices.members().share();
        Self { array, devices: Parked { members, slices, slot_bytes, options, counters }, notes }
    }

    /// What is worth telling the operator.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The array, to look at.
    pub fn array(&self) -> &Array<()> {
        &self.array
    }

    /// The members.
    pub fn members(&self) -> &Members {
        self.devices.members()
    }

    /// The array alone, for devices that there are already.
    pub fn into_array(self) -> Array<()> {
        self.array
    }

    /// Starts the driver anew, on this thread.
    pub fn start(self) -> Result<Array<Devices>, DriverError> {
        let devices = self.devices.start()?;
        Ok(self.array.with_devices(devices).0)
    }

    /// The same for a run in which no member is replaced while it works.
    pub fn start_fixed(self) -> Result<Array<Fixed>, DriverError> {
        let devices = self.devices.start()?.into_inner();
        Ok(self.array.with_devices(devices).0)
    }
}
