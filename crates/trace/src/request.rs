//! One request of a trace.

use crate::{LineFault, MAX_END_BYTES, MAX_TRANSFER_BYTES};

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Op {
    /// Reads the range.
    Read,
    /// Writes the range.
    Write,
    /// Makes earlier writes durable; offset and length are 0.
    Flush,
    /// Declares the range unused.
    Trim,
}

/// One request, in the order in which the trace issued it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Request {
    /// Microseconds since the start of the trace.
    pub time_us: u64,
    /// The device (disk, ASU, file) that the trace names; what it means depends on the format.
    pub dev: u32,
    /// What it does.
    pub op: Op,
    /// First byte.
    pub offset_bytes: u64,
    /// Number of bytes; 0 is possible.
    pub length_bytes: u64,
}

impl Request {
    /// The byte after the last one.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes.saturating_add(self.length_bytes)
    }

    /// Whether data is transferred, that is, whether it is a read or a write.
    pub fn is_transfer(&self) -> bool {
        match self.op {
            Op::Read | Op::Write => true,
            Op::Flush | Op::Trim => false,
        }
    }

    /// The chunks it touches, first to one past the last: start rounded down, end rounded up. A
    /// request of length 0 touches none.
    pub fn chunks(&self, chunk_bytes: u64) -> std::ops::Range<u64> {
        let first = self.offset_bytes / chunk_bytes;
        if self.length_bytes == 0 { first..first } else { first..self.end_bytes().div_ceil(chunk_bytes) }
    }

    /// Holds a parsed request against the bounds that the rest of the crate relies on.
    ///
    /// # Errors
    /// It ends beyond any device, or transfers more than any real request.
    pub fn checked(self) -> Result<Self, LineFault> {
        let end = self.offset_bytes.checked_add(self.length_bytes);
        if end.is_none_or(|end| end > MAX_END_BYTES) {
            return Err(LineFault::Range {
                offset_bytes: self.offset_bytes,
                length_bytes: self.length_bytes,
            });
        }
        if self.is_transfer() && self.length_bytes > MAX_TRANSFER_BYTES {
            return Err(LineFault::TransferTooLong { length_bytes: self.length_bytes });
        }
        Ok(self)
    }
}

/// What to make of several devices in one trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum DevMode {
    /// Devices have address spaces of their own, laid end to end in the order of their numbers (as in the
    /// EPLOG papers).
    #[default]
    Concatenate,
    /// The device is ignored, all share one address space (as in the WAS paper).
    Ignore,
}

impl DevMode {
    /// The address space that device `dev` belongs to.
    pub(crate) fn space_of(self, dev: u32) -> u32 {
        match self {
            Self::Concatenate => dev,
            Self::Ignore => 0,
        }
    }
}
