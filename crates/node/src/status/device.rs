//! One member or spare at one moment.

use super::wear::{Asked, Wear};
use crate::faults::{FailedBecause, Fault};
use crate::open::{member_name, state_name};
use crate::succeed::Replacement;
use block::{DevIndex, Stream};
use device::DeviceCounters;
use format::MemberState;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::path::PathBuf;

/// What a device is for.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum DeviceRole {
    /// It holds data and parity.
    Main,
    /// It holds log chunks.
    Log,
    /// It takes the place of one that fails.
    Spare,
}

/// How a device is.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum DeviceState {
    /// A member in service.
    Healthy,
    /// Out of service since it failed.
    Failed,
    /// Out of service since the array was started without it.
    Absent,
    /// Being filled.
    Rebuilding,
    /// In service as far as is known, and not among the named paths.
    Missing,
    /// A spare.
    Spare,
    /// A spare that several arrays share, and that is none now: somebody has taken it, or something is on it.
    Taken,
    /// A spare that can take no place: it is too small, or not there any more.
    Unfit,
}

impl DeviceState {
    /// Whether it is a member out of service.
    pub fn is_out(self) -> bool {
        match self {
            Self::Failed | Self::Absent | Self::Missing => true,
            Self::Healthy | Self::Rebuilding | Self::Spare | Self::Taken | Self::Unfit => false,
        }
    }
}

impl From<MemberState> for DeviceState {
    fn from(state: MemberState) -> Self {
        match state {
            MemberState::Healthy => Self::Healthy,
            MemberState::Failed => Self::Failed,
            MemberState::Absent => Self::Absent,
            MemberState::Rebuilding => Self::Rebuilding,
        }
    }
}

impl fmt::Display for DeviceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Healthy => state_name(MemberState::Healthy),
            Self::Failed => state_name(MemberState::Failed),
            Self::Absent => state_name(MemberState::Absent),
            Self::Rebuilding => state_name(MemberState::Rebuilding),
            Self::Missing => "missing",
            Self::Spare => "spare",
            Self::Taken => "taken",
            Self::Unfit => "unfit",
        })
    }
}

/// One member.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct DeviceStatus {
    /// `data0`.., `log0`.., `spare0`..
    pub name: String,
    /// What it is for.
    pub role: DeviceRole,
    /// Index within its role.
    pub index: usize,
    /// How it is.
    pub state: DeviceState,
    /// Where it is, unless nobody has named it.
    #[serde(serialize_with = "write_path")]
    pub path: Option<PathBuf>,
    /// Counters since the array was assembled; `None` when it is not running.
    pub errors: Option<Errors>,
    /// Bytes moved since the array was assembled.
    pub traffic: Option<Traffic>,
    /// Age of the oldest request that the device has not answered, 0 if there is none; `None` when the
    /// array is not running.
    #[serde(default)]
    pub oldest_request_ms: Option<u64>,
    /// Writes wait because there is no room where it lies.
    #[serde(default)]
    pub lacks_room: bool,
    /// It has not answered for longer than it may, and the array cannot do without it.
    #[serde(default)]
    pub not_answering: bool,
    /// The last operation that the device did not carry out since the array was assembled or the device
    /// took its place.
    #[serde(default)]
    pub last_fault: Option<Fault>,
    /// Why it went out of service, if that was since the array was assembled.
    #[serde(default)]
    pub failed_because: Option<FailedBecause>,
    /// Of a spare: why it cannot take every place, if it cannot.
    #[serde(default)]
    pub lacks: Option<String>,
    /// The device that is to take its place, while it becomes the same.
    #[serde(default)]
    pub replacement: Option<Replacement>,
    /// Write streams of the device that keep contents apart; 0: it offers none, `None`: it is not open.
    #[serde(default)]
    pub write_streams: Option<u8>,
    /// What the drive below tells of its own age, if it does.
    #[serde(default)]
    pub wear: Option<Box<Wear>>,
    /// Why it does not; `None` also if it was not asked.
    #[serde(default)]
    pub wear_not_offered: Option<String>,
}

/// Error counters of a member: of requests what the device failed, of chunks and blocks what was wrong.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Errors {
    /// Requests to read that the device failed, of any length.
    pub read: u64,
    /// Requests to write or flush that the device failed.
    pub write: u64,
    /// Chunks and metadata blocks with a wrong checksum.
    pub checksum: u64,
    /// Chunks rewritten from their cover, and metadata blocks written anew.
    pub healed: u64,
    /// Since when these count, in seconds since 1970; 0 = since the array was made. Of the device, not of
    /// its place.
    #[serde(default)]
    pub since_unix_s: u64,
}

/// What went to and from the devices in a member's place since serving began.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes discarded; servers of earlier builds do not say.
    #[serde(default)]
    pub discarded_bytes: u64,
    /// What the written bytes were; servers of earlier builds do not say.
    #[serde(default)]
    pub written_by_kind: Option<Written>,
}

/// Bytes written to a member, by what they are for.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Data of users.
    pub data_bytes: u64,
    /// Parity of it.
    pub parity_bytes: u64,
    /// Log chunks.
    pub log_bytes: u64,
    /// Superblocks, journal, checkpoints.
    pub metadata_bytes: u64,
}

impl Written {
    /// From the driver's counters.
    pub fn of(counters: &DeviceCounters) -> Self {
        let of = |stream: Stream| counters.write_bytes[stream.index()];
        Self {
            data_bytes: of(Stream::Data),
            parity_bytes: of(Stream::Parity),
            log_bytes: of(Stream::Log),
            metadata_bytes: of(Stream::Metadata),
        }
    }
}

/// JSON has no room for names that are not UTF-8: they are written as they are shown.
fn write_path<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(to)
}

impl DeviceStatus {
    fn new(name: String, role: DeviceRole, index: usize, state: DeviceState, path: Option<PathBuf>) -> Self {
        Self {
            name,
            role,
            index,
            state,
            path,
            errors: None,
            traffic: None,
            oldest_request_ms: None,
            lacks_room: false,
            not_answering: false,
            last_fault: None,
            failed_because: None,
            lacks: None,
            replacement: None,
            write_streams: None,
            wear: None,
            wear_not_offered: None,
        }
    }

    /// A spare, by the first part of its name and its number.
    pub fn of_spare(kind: &str, index: usize, state: DeviceState, path: PathBuf) -> Self {
        Self::new(format!("{kind}{index}"), DeviceRole::Spare, index, state, Some(path))
    }

    /// What came of asking the drive below.
    pub fn set_wear(&mut self, asked: Asked) {
        (self.wear, self.wear_not_offered) = match asked {
            Asked::Told(wear) => (Some(wear), None),
            Asked::NotOffered(why) => (None, Some(why)),
        };
    }

    /// A member of an array with that many main devices, which come first; nothing is known of it but its
    /// state.
    pub fn of_member(main_count: usize, dev: DevIndex, state: DeviceState, path: Option<PathBuf>) -> Self {
        let name = member_name(main_count, dev);
        match dev.index().checked_sub(main_count) {
            Some(index) => Self::new(name, DeviceRole::Log, index, state, path),
            None => Self::new(name, DeviceRole::Main, dev.index(), state, path),
        }
    }
}
