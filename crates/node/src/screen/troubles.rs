//! Devices that returned wrong data or did not do what they had to, and the last scrub.

use crate::faults::FailedBecause;
use crate::status::{Condition, Status};
use crate::units::{show_seconds, show_time};
use crate::watch::{describe_errors, since};
use array::MemberErrors;
use std::fmt::Write;

/// What is added to the meaning of an array that works although devices made errors: redundancy made up for
/// them.
pub fn meaning(status: &Status) -> String {
    if status.state == Condition::Failed {
        return String::new();
    }
    let mut text = String::new();
    for device in status.devices.iter().filter(|device| status.troubled.contains(&device.name)) {
        let Some(errors) = device.errors else { continue };
        let counted = MemberErrors {
            read: errors.read,
            write: errors.write,
            checksum: errors.checksum,
            healed: errors.healed,
        };
        let since = since(errors.since_unix_s, status.age.created_unix_s);
        text.push_str(&format!("; {} {since}", describe_errors(&device.name, counted)));
    }
    text
}

/// What to do about them, if nothing is more urgent.
pub fn action(status: &Status) -> Option<String> {
    let name = status.troubled.first().filter(|_| status.state != Condition::Failed)?;
    let whom = super::whom(status);
    Some(format!(
        "scrub the array (elastripe scrub {whom}) unless that was done since; replace {name} if it goes on (elastripe replace {whom} --device {name} --with NEWPATH); `elastripe clear {whom}` counts anew"
    ))
}

/// The last scrub in a line.
pub fn last_scrub(status: &Status) -> String {
    status.last_scrub.map_or_else(
        || "never".to_owned(),
        |scrub| format!("{}, on {}", scrub.line(), show_time(scrub.ended_unix_s)),
    )
}

/// Lines on what devices did not do.
pub fn list_faults(text: &mut String, status: &Status) {
    for device in &status.devices {
        let Some(fault) = device.last_fault else { continue };
        let what = match device.failed_because {
            Some(FailedBecause::Fault) => "it failed",
            Some(_) | None => "its last error",
        };
        let ago = show_seconds(fault.seconds_ago);
        writeln!(text, "  {}: {what}, {ago} ago: {fault}", device.name)
            .expect("writing to a string cannot fail");
    }
}
