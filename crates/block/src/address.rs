//! Addresses and identifiers, each a newtype of its own, and the geometry that relates them.

use crate::Divisor;
use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name($inner);

        impl $name {
            /// Wraps a raw number.
            pub const fn new(raw: $inner) -> Self {
                Self(raw)
            }

            /// The raw number.
            pub const fn get(self) -> $inner {
                self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

number!(
    /// A 512-byte sector of the exported volume.
    Lba(u64),
    "lba"
);
number!(
    /// Logical chunk number: which chunk of the exported volume.
    Lcn(u64),
    "lcn"
);
number!(
    /// A chunk (main array) or a 4 KiB block (log device) on one device. 0 means "nowhere".
    ChunkIndex(u32),
    "c"
);
number!(
    /// A member: 0..n are the devices of the main array, n..n+l the log devices.
    DevIndex(u16),
    "d"
);
number!(
    /// A data stripe.
    StripeId(u64),
    "s"
);
number!(
    /// One assembly of the array; journal frames of other epochs are not replayed.
    Epoch(u64),
    "e"
);
number!(
    /// Position of a record in the array's history; never reused within an epoch.
    Seq(u64),
    "q"
);

impl ChunkIndex {
    /// The index that no chunk has.
    pub const NONE: Self = Self(0);

    /// Whether this is [`ChunkIndex::NONE`].
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl Seq {
    /// The sequence number that follows.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl DevIndex {
    /// For indexing in-memory tables by device.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a chunk lies: a device and a chunk on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ChunkAddr {
    /// The member device.
    pub dev: DevIndex,
    /// The chunk on it.
    pub chunk: ChunkIndex,
}

impl ChunkAddr {
    /// A chunk address.
    pub const fn new(dev: DevIndex, chunk: ChunkIndex) -> Self {
        Self { dev, chunk }
    }
}

impl fmt::Debug for ChunkAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}:{}", self.dev, self.chunk)
    }
}

/// The shape of an array: k data and m parity columns over k + m devices, and the chunk size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    data_count: u16,
    parity_count: u16,
    chunk_bytes: u32,
    by_data_count: Divisor,
}

/// Why a geometry was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GeometryError {
    /// k and m must both be at least 1 and sum to at most 255.
    Columns {
        /// Data columns asked for.
        data_count: usize,
        /// Parity columns asked for.
        parity_count: usize,
    },
    /// The chunk size must be a power of two from 4 KiB to 1 MiB.
    ChunkSize {
        /// Chunk size asked for.
        bytes: u64,
    },
}

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Columns { data_count, parity_count } => write!(
                f,
                "{data_count} data and {parity_count} parity devices: expected at least 1 of each and at most 255 in all"
            ),
            Self::ChunkSize { bytes } => {
                write!(f, "chunk size of {bytes} bytes: expected a power of two from 4 KiB to 1 MiB")
            }
        }
    }
}

impl std::error::Error for GeometryError {}

impl Geometry {
    /// Checks and builds a geometry of `data_count` + `parity_count` devices.
    pub fn new(data_count: usize, parity_count: usize, chunk_bytes: u64) -> Result<Self, GeometryError> {
        let columns = GeometryError::Columns { data_count, parity_count };
        if data_count == 0 || parity_count == 0 || data_count.saturating_add(parity_count) > 255 {
            return Err(columns);
        }
        if !chunk_bytes.is_power_of_two() || !(4096..=1 << 20).contains(&chunk_bytes) {
            return Err(GeometryError::ChunkSize { bytes: chunk_bytes });
        }
        Ok(Self {
            data_count: u16::try_from(data_count).map_err(|_| columns)?,
            parity_count: u16::try_from(parity_count).map_err(|_| columns)?,
            chunk_bytes: u32::try_from(chunk_bytes)
                .map_err(|_| GeometryError::ChunkSize { bytes: chunk_bytes })?,
            by_data_count: Divisor::new(u64::try_from(data_count).map_err(|_| columns)?),
        })
    }

    /// k: data columns of a data stripe.
    #[inline]
    pub const fn data_count(&self) -> usize {
        self.data_count as usize
    }

    /// m: parity columns of a data stripe, and log devices that complete protection needs.
    #[inline]
    pub const fn parity_count(&self) -> usize {
        self.parity_count as usize
    }

    /// n = k + m: devices of the main array.
    #[inline]
    pub const fn device_count(&self) -> usize {
        self.data_count as usize + self.parity_count as usize
    }

    /// Bytes in a chunk.
    #[inline]
    pub const fn chunk_bytes(&self) -> usize {
        self.chunk_bytes as usize
    }

    /// The chunk that holds the byte at `offset_bytes` of the volume.
    #[inline]
    pub const fn lcn_of_offset(&self, offset_bytes: u64) -> Lcn {
        // A power of two: no division.
        Lcn(offset_bytes >> self.chunk_bytes.trailing_zeros())
    }

    /// The chunk that holds a sector of the volume.
    pub const fn lcn_of(&self, lba: Lba) -> Lcn {
        self.lcn_of_offset(lba.0 * super::SECTOR_BYTES)
    }

    /// The data stripe that a logical chunk belongs to.
    #[inline]
    pub fn stripe_of(&self, lcn: Lcn) -> StripeId {
        StripeId(self.by_data_count.quotient(lcn.0))
    }

    /// The data column of a logical chunk within its stripe, 0..k.
    #[inline]
    pub fn column_of(&self, lcn: Lcn) -> usize {
        self.by_data_count.remainder(lcn.0) as usize
    }

    /// The logical chunk in data column `column` of `stripe`.
    #[inline]
    pub const fn lcn_at(&self, stripe: StripeId, column: usize) -> Lcn {
        Lcn(stripe.0 * self.data_count as u64 + column as u64)
    }
}
