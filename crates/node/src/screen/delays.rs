//! What is said of members that hold up requests: they lack room, or do not answer.

use crate::status::{DeviceStatus, Status};
use crate::units::show_seconds;
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;

/// Operations older than this are worth a line.
const OLD_MS: u64 = 1_000;

fn lacking(status: &Status) -> Option<&DeviceStatus> {
    status.devices.iter().find(|device| device.lacks_room)
}

fn silent(status: &Status) -> Option<&DeviceStatus> {
    status.devices.iter().find(|device| device.not_answering)
}

/// What it means for clients.
pub fn meaning(status: &Status) -> String {
    match (silent(status), lacking(status)) {
        (Some(device), _) => format!(
            "{} has not answered for {}, and the array cannot do without it: requests that need it wait",
            device.name,
            show_seconds(device.oldest_request_ms.unwrap_or(0) / 1000)
        ),
        (None, Some(device)) => format!(
            "there is no room where {} lies (a full file system, quota or pool): writes wait, new ones are refused; reads go on",
            device.name
        ),
        (None, None) => "requests wait".to_owned(),
    }
}

/// What to do.
pub fn action(status: &Status) -> Option<String> {
    let place = |device: &DeviceStatus| {
        device.path.as_ref().map_or_else(|| device.name.clone(), |path| path.display().to_string())
    };
    match (silent(status), lacking(status)) {
        (Some(device), _) => {
            Some(format!("see to {}; when it answers, requests go on by themselves", place(device)))
        }
        (None, Some(device)) => {
            let make = format!("make room where {} lies, writes then go on by themselves", place(device));
            // Without it the next one on the same file system would be the one that lacks room.
            let alone = !status.devices.iter().any(|other| shares_room(device, other));
            let fail = alone
                .then(|| format!("; or elastripe fail {} --device {}", super::whom(status), device.name));
            Some(make + &fail.unwrap_or_default())
        }
        (None, None) => None,
    }
}

/// Whether two members are files of one file system.
fn shares_room(one: &DeviceStatus, other: &DeviceStatus) -> bool {
    let file_system = |device: &DeviceStatus| {
        let data = device.path.as_ref()?.metadata().ok()?;
        data.is_file().then(|| data.dev())
    };
    one.name != other.name && file_system(one).is_some_and(|found| file_system(other) == Some(found))
}

/// Lines on members whose requests are old.
pub fn list_old(text: &mut String, status: &Status) {
    for device in &status.devices {
        if let Some(ms) = device.oldest_request_ms.filter(|&ms| ms >= OLD_MS) {
            let age = show_seconds(ms / 1000);
            writeln!(text, "  {}: its oldest request is {age} old", device.name)
                .expect("writing to a string cannot fail");
        }
    }
}
