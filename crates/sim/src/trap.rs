//! Faults that wait for an operation.

/// A fault waiting for its operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trap {
    /// This many reads from now on fail.
    Read {
        /// The device.
        dev: u16,
        /// How many.
        count: u32,
    },
    /// The next write fails, and does nothing.
    Write {
        /// The device.
        dev: u16,
    },
    /// The next flush fails, and makes nothing durable.
    Flush {
        /// The device.
        dev: u16,
    },
    /// The next operation of any kind finds the device gone, for good.
    Gone {
        /// The device.
        dev: u16,
    },
    /// The next write of a chunk goes to another chunk of the same device.
    Misdirect {
        /// The device.
        dev: u16,
    },
    /// The next write of anything goes to the same place of another slice of the same device.
    Astray {
        /// The device.
        dev: u16,
        /// Only a superblock does.
        superblock: bool,
    },
    /// So many writes, if not all of a time, find no room and do nothing; then there is room again.
    NoRoom {
        /// The device.
        dev: u16,
        /// How many.
        count: u32,
    },
}

impl Trap {
    /// The device it is set on.
    pub fn dev(self) -> u16 {
        match self {
            Self::Read { dev, .. }
            | Self::Write { dev }
            | Self::Flush { dev }
            | Self::Gone { dev }
            | Self::Misdirect { dev }
            | Self::Astray { dev, .. }
            | Self::NoRoom { dev, .. } => dev,
        }
    }
}
