//! What drives tell of their own age.

use crate::status::{DeviceStatus, Status, Wear};
use crate::units::{show_count, show_size, show_time};
use std::fmt::Write;

/// Lines on drives that warn or are nearly used up.
pub fn list_complaints(text: &mut String, status: &Status) {
    for device in &status.devices {
        if let Some((wear, complaint)) = device.wear.as_ref().and_then(|wear| Some((wear, wear.complaint()?)))
        {
            writeln!(text, "  {}: its drive {} {complaint}", device.name, wear.drive.display())
                .expect("writing to a string cannot fail");
        }
    }
}

/// What to do about the first of them, if nothing is more urgent.
pub fn action(status: &Status) -> Option<String> {
    let complains =
        |device: &&DeviceStatus| device.wear.as_ref().is_some_and(|wear| wear.complaint().is_some());
    let name = &status.devices.iter().find(complains)?.name;
    if name.starts_with("spare") {
        return Some(format!("replace the spare {name}: its drive complains"));
    }
    let whom = super::whom(status);
    Some(format!(
        "replace {name} before it fails (elastripe replace {whom} --device {name} --with NEWPATH); it stays in service meanwhile"
    ))
}

/// A table of what all drives say.
pub fn list(text: &mut String, status: &Status) {
    if status.devices.iter().all(|device| device.wear.is_none() && device.wear_not_offered.is_none()) {
        return; // nobody was asked
    }
    let mut line = |of_line: std::fmt::Arguments<'_>| {
        writeln!(text, "{of_line}").expect("writing to a string cannot fail");
    };
    line(format_args!(
        "\n  {:<8} {:>6} {:>11} {:>6} {:>6} {:>6} {:>8}  {:<16} DRIVE, ASKED AT",
        "WEAR", "USED", "WRITTEN", "MEDIA", "SPARE", "TEMP", "HOURS", "WARNINGS"
    ));
    for device in &status.devices {
        match (&device.wear, &device.wear_not_offered) {
            (Some(wear), _) => line(format_args!("  {:<8} {}", device.name, of_drive(wear))),
            (None, Some(why)) => line(format_args!("  {:<8} not offered: {why}", device.name)),
            (None, None) => line(format_args!("  {:<8} not offered: nobody knows where it is", device.name)),
        }
    }
}

fn of_drive(wear: &Wear) -> String {
    let or_dash = |shown: Option<String>| shown.unwrap_or_else(|| "-".to_owned());
    let percent = |value: Option<u8>| or_dash(value.map(|value| format!("{value} %")));
    let warnings = if wear.warnings.is_empty() { "none".to_owned() } else { wear.warnings.join(",") };
    format!(
        "{:>6} {:>11} {:>6} {:>6} {:>6} {:>8}  {warnings:<16} {}, {}",
        percent(wear.used_percent),
        or_dash(wear.written_bytes.map(show_size)),
        or_dash(wear.media_errors.map(show_count)),
        percent(wear.spare_percent),
        or_dash(wear.temperature_c.map(|celsius| format!("{celsius} C"))),
        or_dash(wear.power_on_hours.map(show_count)),
        wear.drive.display(),
        show_time(wear.asked_unix_s)
    )
}
