//! The spares in a status, and why those cannot take a place that cannot.

use super::{DeviceState, DeviceStatus, Status};
use crate::checks::View;
use crate::open::{Found, Spare};
use crate::operate::Operator;
use crate::running::Running;
use std::path::Path;

/// Adds the spares of a running array, its own and then those that other arrays may take, too.
pub(super) fn list(status: &mut Status, operator: &Operator, served: &Running) {
    let view = operator.view(served);
    for (index, (Spare { path, size_bytes }, gone)) in operator.spares().into_iter().enumerate() {
        let gone = gone.map(|why| (DeviceState::Unfit, why.to_owned()));
        add(status, ("spare", index), &path, gone.or_else(|| lacking(&view, size_bytes)));
    }
    for (index, spare) in operator.shared_spares() {
        let trouble = match &spare.found {
            Ok(bytes) => lacking(&view, *bytes),
            Err(why) => Some((DeviceState::Taken, why.clone())),
        };
        add(status, ("shared", index), &spare.path, trouble);
    }
}

/// Adds those of an array that does not run.
pub(super) fn list_found(status: &mut Status, found: &Found) {
    let view = View::of_found(found);
    for (index, spare) in found.spares.iter().enumerate() {
        add(status, ("spare", index), &spare.path, lacking(&view, spare.size_bytes));
    }
}

/// What a spare of so many bytes is, and why, if it cannot take every place.
fn lacking(view: &View, bytes: u64) -> Option<(DeviceState, String)> {
    let state = |is_total| if is_total { DeviceState::Unfit } else { DeviceState::Spare };
    view.shortage(bytes).map(|shortage| (state(shortage.is_total), shortage.why))
}

fn add(
    status: &mut Status,
    (kind, index): (&str, usize),
    path: &Path,
    trouble: Option<(DeviceState, String)>,
) {
    let (state, why) = match trouble {
        Some((state, why)) => (state, Some(why)),
        None => (DeviceState::Spare, None),
    };
    let mut device = DeviceStatus::of_spare(kind, index, state, path.to_owned());
    device.lacks.clone_from(&why);
    if let Some(why) = why {
        let what = if state == DeviceState::Spare { "cannot take every place" } else { "is no spare now" };
        status.notes.push(format!("{} ({}) {what}: {why}", device.name, path.display()));
    }
    status.devices.push(device);
}
