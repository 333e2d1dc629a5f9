//! Members in service that hold up requests: they lack room, or do not answer. What status and log say of them.

use crate::faults::{FailedBecause, Fault};
use crate::open::member_name;
use crate::operate::Running;
use crate::status::{DeviceStatus, Status};
use crate::steward::log;
use crate::units::show_seconds;
use array::{Engine, HoldUp};
use block::DevIndex;
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;

/// How long a device may take to answer, unless told otherwise.
pub const DEVICE_TIMEOUT_NS: u64 = 30_000_000_000;
/// How often the log looks.
const LOOK_NS: u64 = 1_000_000_000;
/// Operations older than this are worth a line.
const OLD_MS: u64 = 1_000;

/// Puts into a member's status what holds it up, and what its device did not do.
pub fn describe(engine: &Engine, dev: DevIndex, now_ns: u64, device: &mut DeviceStatus) {
    let trouble = engine.member_trouble(dev);
    device.last_fault = trouble.last_fault.map(|fault| Fault::of_engine(&fault, now_ns));
    device.failed_because = trouble.failed.map(FailedBecause::of_engine);
    device.oldest_request_ms = Some(trouble.oldest_ns.unwrap_or(0) / 1_000_000);
    device.lacks_room = trouble.lacks_room_since_ns.is_some();
    device.not_answering = trouble.not_answering;
}

fn lacking(status: &Status) -> Option<&DeviceStatus> {
    status.devices.iter().find(|device| device.lacks_room)
}

fn silent(status: &Status) -> Option<&DeviceStatus> {
    status.devices.iter().find(|device| device.not_answering)
}

/// Whether some member holds up requests.
pub fn holds_up(status: &Status) -> bool {
    lacking(status).is_some() || silent(status).is_some()
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
            let fail = alone.then(|| format!("; or elastripe fail MEMBERS --device {}", device.name));
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

/// What holds up requests at a member.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Held {
    lacks_room: bool,
    not_answering: bool,
}

/// Says in the log when trouble begins and ends.
#[derive(Default)]
pub struct TroubleLog {
    /// Of each member what the log knows, and what is so.
    members: Vec<(Held, Held)>,
    next_ns: u64,
}

impl TroubleLog {
    /// Whether something was said that has not ended, or is to be said: look again soon.
    pub fn is_waiting(&self) -> bool {
        self.members.iter().any(|&(told, now)| told != Held::default() || told != now)
    }

    /// Takes note of what the engine told.
    pub fn note(&mut self, dev: DevIndex, why: HoldUp, holds: bool) {
        let count = self.members.len().max(dev.index() + 1);
        self.members.resize(count, (Held::default(), Held::default()));
        let now = &mut self.members[dev.index()].1;
        match why {
            HoldUp::LacksRoom => now.lacks_room = holds,
            HoldUp::NotAnswering => now.not_answering = holds,
        }
    }

    /// Says what has changed, at most once a second: room comes and goes.
    pub fn look(&mut self, running: &Running) {
        let now_ns = running.now_ns();
        if !self.is_waiting() || now_ns < self.next_ns {
            return;
        }
        self.next_ns = now_ns.saturating_add(LOOK_NS);
        let main_count = running.engine_ref().store().main_count();
        for (index, (told, now)) in (0u16..).zip(&mut self.members) {
            let name = member_name(main_count, DevIndex::new(index));
            match (told.lacks_room, now.lacks_room) {
                (false, true) => log(&format!(
                    "{name}: there is no room where it lies; writes wait, and are refused when they have waited for long"
                )),
                (true, false) => {
                    log(&format!("{name}: there is room again, or it is out of service; writes go on"))
                }
                (true, true) | (false, false) => {}
            }
            match (told.not_answering, now.not_answering) {
                (false, true) => {
                    log(&format!(
                        "{name} does not answer, and the array cannot do without it: requests wait"
                    ));
                }
                (true, false) => log(&format!("{name} answers again, or is out of service")),
                (true, true) | (false, false) => {}
            }
            *told = *now;
        }
    }
}
