//! What can be wrong with a trace file and with a line of it.

use crate::{MAX_END_BYTES, MAX_LINE_BYTES, MAX_TRANSFER_BYTES};
use std::io;
use std::sync::Arc;

/// Why a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file could not be opened.
    #[error("{file}: cannot open: {source}")]
    Open {
        /// The file.
        file: Arc<str>,
        /// The system's answer.
        source: io::Error,
    },
    /// Reading or decompressing failed.
    #[error("{file}: cannot read beyond line {line}: {source}")]
    Read {
        /// The file.
        file: Arc<str>,
        /// The last line read whole, counted from 1; 0 if none was.
        line: u64,
        /// The system's or the decompressor's answer.
        source: io::Error,
    },
    /// The format was to be detected, and no line looks like one of those known.
    #[error(
        "{file}: unknown trace format; it begins with \"{begin}\"; name the format, one of {} (csv: lines of \
         ts_us,dev,op,offset,len with op R, W, F or T)",
        known.join(", ")
    )]
    UnknownFormat {
        /// The file.
        file: Arc<str>,
        /// The start of its first line.
        begin: String,
        /// The names of the formats there are.
        known: &'static [&'static str],
    },
    /// Nothing is in the file, whose format nobody named.
    #[error("{file}: found nothing in it, expected a trace")]
    Empty {
        /// The file.
        file: Arc<str>,
    },
    /// The file is compressed in a way that is not read.
    #[error("{file}: found {packed}, expected text, gzip, zstd or xz; unpack it first, as with `{unpack}`")]
    Packed {
        /// The file.
        file: Arc<str>,
        /// What it is.
        packed: &'static str,
        /// What unpacks it.
        unpack: &'static str,
    },
    /// A line was not understood.
    #[error("{file}:{line}: {what}")]
    Line {
        /// The file.
        file: Arc<str>,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        what: LineFault,
    },
    /// More lines were not understood than may be skipped.
    #[error("{file}:{line}: more than {limit} bad lines; this one: {what}")]
    TooManyBadLines {
        /// The file.
        file: Arc<str>,
        /// The line that was one too many, counted from 1.
        line: u64,
        /// How many may be skipped.
        limit: u64,
        /// What is wrong with that line.
        what: LineFault,
    },
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// The line does not end within the limit.
    #[error("line longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// The fields are not those of the format.
    #[error("found \"{found}\", expected {expected}")]
    Shape {
        /// The start of the line.
        found: String,
        /// What a line looks like.
        expected: &'static str,
    },
    /// A field is not a number, or one that does not fit.
    #[error("{field} is \"{found}\", expected {expected}")]
    Number {
        /// The field.
        field: &'static str,
        /// What it holds.
        found: String,
        /// Which numbers are possible.
        expected: &'static str,
    },
    /// The operation is not known.
    #[error("operation is \"{found}\", expected {expected}")]
    Op {
        /// What the field holds.
        found: String,
        /// Which operations are possible.
        expected: &'static str,
    },
    /// The request reaches beyond any device.
    #[error("offset {offset_bytes} and length {length_bytes} end beyond byte {MAX_END_BYTES}")]
    Range {
        /// First byte.
        offset_bytes: u64,
        /// Number of bytes.
        length_bytes: u64,
    },
    /// The read or write is longer than any real one.
    #[error("transfer of {length_bytes} bytes, expected at most {MAX_TRANSFER_BYTES}")]
    TransferTooLong {
        /// Number of bytes.
        length_bytes: u64,
    },
    /// blkparse: requests were taken from issue events (D) because none was queued (Q), and now one is.
    #[error("queue event (Q) after issue events (D) were taken as the requests; name the action to use")]
    QueueAfterIssue,
    /// More devices than the reader keeps apart.
    #[error("more than {limit} devices")]
    TooManyDevices {
        /// How many it keeps apart.
        limit: usize,
    },
    /// Two names stand for the same device number.
    #[error("device name \"{found}\" stands for number {number}, which another name has already")]
    DeviceClash {
        /// The later name.
        found: String,
        /// The number.
        number: u32,
    },
}

/// The first bytes of something unexpected, printable.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    const LIMIT: usize = 48;
    let mut text = bytes[..bytes.len().min(LIMIT)].escape_ascii().to_string();
    if bytes.len() > LIMIT {
        text.push_str("...");
    }
    text
}
