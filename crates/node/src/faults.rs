//! What a device did not do, and why a member went out of service: in a status, in its JSON, and in the
//! words of log and screen.

use crate::units::show_size;
use array::{FailCause, Finding, OpFault};
use block::{IoFault, OpKind, Stream};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;

/// What a device was to do.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Read bytes.
    Read,
    /// Write bytes.
    Write,
    /// Make what was written durable.
    Flush,
    /// Take note that bytes are not needed.
    Discard,
}

/// What the bytes were.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// User data.
    Data,
    /// Parity of data.
    Parity,
    /// Log chunks.
    Log,
    /// Superblocks, journal, checkpoints.
    Metadata,
}

/// How the operation ended.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// With an errno.
    Error,
    /// Before all bytes were moved.
    Short,
    /// The device is not there any more.
    Gone,
    /// There was no room where it lies.
    NoRoom,
}

/// An operation that a device did not carry out.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What it was to do.
    pub operation: Operation,
    /// With what; not known of operations while the array was being assembled.
    pub content: Option<Content>,
    /// Where on the device.
    pub offset_bytes: u64,
    /// How much; 0 for a flush.
    pub length_bytes: u64,
    /// How it ended.
    pub ending: Ending,
    /// The operating system's number, if it gave one.
    pub errno: Option<i32>,
    /// How long ago that was.
    pub seconds_ago: u64,
}

impl Fault {
    /// In the engine's words, at the engine's time `now_ns`.
    pub fn of_engine(fault: &OpFault, now_ns: u64) -> Self {
        let (ending, errno) = match fault.fault {
            IoFault::Device { errno } => (Ending::Error, Some(errno).filter(|&errno| errno != 0)),
            IoFault::Short => (Ending::Short, None),
            IoFault::Gone => (Ending::Gone, None),
            IoFault::NoSpace => (Ending::NoRoom, None),
        };
        Self {
            operation: match fault.kind {
                OpKind::Read => Operation::Read,
                OpKind::Write => Operation::Write,
                OpKind::Flush => Operation::Flush,
                OpKind::Discard => Operation::Discard,
            },
            content: fault.stream.map(|stream| match stream {
                Stream::Data => Content::Data,
                Stream::Parity => Content::Parity,
                Stream::Log => Content::Log,
                Stream::Metadata => Content::Metadata,
            }),
            offset_bytes: fault.offset_bytes,
            length_bytes: fault.length_bytes,
            ending,
            errno,
            seconds_ago: now_ns.saturating_sub(fault.at_ns) / 1_000_000_000,
        }
    }
}

/// `write of 4 KiB of metadata at byte 8192: Input/output error (errno 5)`.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = match self.operation {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Flush => "flush",
            Operation::Discard => "discard",
        };
        let content = match self.content {
            Some(Content::Data) => " of data",
            Some(Content::Parity) => " of parity",
            Some(Content::Log) => " of log chunks",
            Some(Content::Metadata) => " of metadata",
            None => "",
        };
        match self.operation {
            Operation::Flush => write!(f, "{operation}: ")?,
            Operation::Read | Operation::Write | Operation::Discard => {
                let size = show_size(self.length_bytes);
                write!(f, "{operation} of {size}{content} at byte {}: ", self.offset_bytes)?;
            }
        }
        match (self.errno, self.ending) {
            (Some(errno), _) => write!(f, "{} (errno {errno})", meaning_of(errno)),
            (None, Ending::Error) => write!(f, "the device reported an error"),
            (None, Ending::Short) => write!(f, "it ended early, as behind the end of the device"),
            (None, Ending::Gone) => write!(f, "the device is gone"),
            (None, Ending::NoRoom) => write!(f, "there is no room where the device lies"),
        }
    }
}

/// What the operating system says of an errno.
fn meaning_of(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Why a member went out of service.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum FailedBecause {
    /// Somebody asked for it.
    Asked,
    /// Its device did not carry out `last_fault`.
    Fault,
    /// It did not answer in time.
    Silent,
    /// It ends before its layout does.
    Truncated,
    /// It holds the superblocks of another member or array.
    Foreign,
    /// Its file was deleted, or its path leads to another device.
    Lost,
}

impl FailedBecause {
    /// In the engine's words.
    pub fn of_engine(cause: FailCause) -> Self {
        match cause {
            FailCause::Asked => Self::Asked,
            FailCause::Fault(_) => Self::Fault,
            FailCause::Silent { .. } => Self::Silent,
            FailCause::Unfit(Finding::Truncated) => Self::Truncated,
            FailCause::Unfit(Finding::Foreign) => Self::Foreign,
        }
    }
}

/// What the log adds to the news that a member failed.
pub fn describe_cause(cause: FailCause, now_ns: u64) -> String {
    match cause {
        FailCause::Asked => " (as asked)".to_owned(),
        // It has a line of its own.
        FailCause::Unfit(_) => String::new(),
        FailCause::Fault(fault) => format!(" ({})", Fault::of_engine(&fault, now_ns)),
        FailCause::Silent { .. } => " (it did not answer in time; see --device-timeout)".to_owned(),
    }
}
