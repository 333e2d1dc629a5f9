//! Which devices are told what a write is, so that they keep contents apart.

use crate::status::{DeviceStatus, Status};
use std::fmt::Write;

/// A line on write streams: which devices have some, and how many.
pub fn list(text: &mut String, status: &Status) {
    let open = || status.devices.iter().filter_map(|device| Some((device, device.write_streams?)));
    if open().next().is_none() {
        return;
    }
    let with: Vec<(&DeviceStatus, u8)> = open().filter(|&(_, count)| count > 0).collect();
    let said = if with.is_empty() {
        "none offered by any device or its kernel (FDP, Linux 6.16)".to_owned()
    } else {
        let each = with.iter().map(|(device, count)| format!("{} {count}", device.name));
        let without: Vec<&str> =
            open().filter(|&(_, count)| count == 0).map(|(device, _)| device.name.as_str()).collect();
        let rest = if without.is_empty() {
            String::new()
        } else {
            format!("; none offered by {}", without.join(", "))
        };
        format!(
            "{}{rest}; data, parity, log and metadata go to different ones",
            each.collect::<Vec<_>>().join(", ")
        )
    };
    writeln!(text, "\n  write streams: {said}").expect("writing to a string cannot fail");
}
