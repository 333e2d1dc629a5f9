//! A second device in the place of a member, on the thread that has the member's ring.

use crate::driver::{Devices, DriverOptions};
use crate::error::Error;
use block::{DevIndex, DeviceOp, Extent, PairPlan, Slice};
use device::{Counting, Members, Membership as _, Sheltered, UringSet};

/// Gives a member a partner: the only one of `partner`, whose slice is `extent`. What completes on it wakes
/// whoever sleeps on the members.
pub fn begin_pair(
    devices: &mut Devices,
    partner: Members,
    (plan, extent): (PairPlan, Extent),
    slot_bytes: usize,
    (under_way, now_ns): (&[DeviceOp], u64),
) -> Result<(), Error> {
    let mut ring = UringSet::start(partner, slot_bytes, DriverOptions::default())?;
    ring.announce_by(devices.wake_fd()?.try_clone_to_owned()?)?;
    let set = Counting::from_counters(Slice::new(Sheltered::new(ring), vec![extent]), Vec::new());
    devices.begin(plan, set, under_way, now_ns);
    Ok(())
}

/// Puts the partner of a member in its place, in this shard, and ends the pair.
pub fn install_partner(devices: &mut Devices, dev: DevIndex) -> Result<(), Error> {
    let partner = devices.partner_mut().and_then(|set| set.members().get(DevIndex::new(0)).cloned());
    if let Some(member) = partner {
        devices.install(dev, member)?;
    }
    devices.end();
    Ok(())
}
