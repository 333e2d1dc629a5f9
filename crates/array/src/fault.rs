//! What a device did not do, and why a member is out of service.

use block::{DevIndex, DeviceOp, IoFault, OpKind, Stream};
use std::fmt;

/// An operation that a device did not carry out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpFault {
    /// What it was to do.
    pub kind: OpKind,
    /// What the bytes were; not known of operations during assembly.
    pub stream: Option<Stream>,
    /// Where on the device.
    pub offset_bytes: u64,
    /// How much; 0 for a flush.
    pub length_bytes: u64,
    /// How it ended.
    pub fault: IoFault,
    /// When it ended, in the engine's time; 0 during assembly.
    pub at_ns: u64,
}

impl OpFault {
    /// Of an operation of the engine.
    pub(crate) fn new(op: &DeviceOp, fault: IoFault, at_ns: u64) -> Self {
        let DeviceOp { kind, stream, offset_bytes, length_bytes, .. } = *op;
        Self { kind, stream: Some(stream), offset_bytes, length_bytes, fault, at_ns }
    }

    /// Of an operation during assembly.
    pub(crate) fn at_assembly(kind: OpKind, offset_bytes: u64, length_bytes: u64, fault: IoFault) -> Self {
        Self { kind, stream: None, offset_bytes, length_bytes, fault, at_ns: 0 }
    }
}

impl fmt::Display for OpFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset_bytes, length_bytes, fault, .. } = self;
        match self.kind {
            OpKind::Read => write!(f, "read of {length_bytes} bytes at {offset_bytes}: {fault}"),
            OpKind::Write => write!(f, "write of {length_bytes} bytes at {offset_bytes}: {fault}"),
            OpKind::Flush => write!(f, "flush: {fault}"),
            OpKind::Discard => write!(f, "discard of {length_bytes} bytes at {offset_bytes}: {fault}"),
        }
    }
}

/// Why a member went out of service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailCause {
    /// Somebody asked for it: [`Engine::fail_device`](crate::Engine::fail_device).
    Asked,
    /// It did not carry out an operation that it had to.
    Fault(OpFault),
    /// It did not answer within the limit.
    Silent {
        /// Age of its oldest operation.
        age_ns: u64,
    },
    /// It is useless as the member it is.
    Unfit(Finding),
}

/// What makes a device useless as the member it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finding {
    /// It ends before its layout does.
    Truncated,
    /// Its superblocks are those of another member or array.
    Foreign,
}

/// Members that went out of service during assembly, each for an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssemblyFaults(pub Vec<(DevIndex, OpFault)>);

impl fmt::Display for AssemblyFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (dev, fault)) in self.0.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}device {dev} ({fault})")?;
        }
        Ok(())
    }
}
