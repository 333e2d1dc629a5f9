//! Tags of device operations: what a completion is for.

use block::DevIndex;

/// What a device operation was issued for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Read `step` of the plan of job `id`.
    JobRead,
    /// Write `step` of the plan of job `id`.
    JobWrite,
    /// The copy in the payload ring of write `step` of the plan of job `id`.
    Payload,
    /// A healthy user read, by its place.
    Read,
    /// Piece `step` of cover `id`.
    CoverRead,
    /// A repaired chunk written back.
    Heal,
    /// A copy of frame `id`.
    Frame,
    /// A device flush of the running flush.
    Flush,
    /// A superblock.
    Superblock,
    /// A block of the running checkpoint.
    Checkpoint,
    /// The discard of a freed run.
    Trim,
    /// Metadata that nobody asked for.
    Patrol,
}

const PURPOSES: [Purpose; 12] = [
    Purpose::JobRead,
    Purpose::JobWrite,
    Purpose::Payload,
    Purpose::Read,
    Purpose::CoverRead,
    Purpose::Heal,
    Purpose::Frame,
    Purpose::Flush,
    Purpose::Superblock,
    Purpose::Checkpoint,
    Purpose::Trim,
    Purpose::Patrol,
];

/// A decoded tag: purpose (4 bits), device (12 bits), id (24 bits), step (24 bits).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag {
    /// What for.
    pub purpose: Purpose,
    /// The member the operation is on.
    pub dev: DevIndex,
    /// Place in the table that the purpose names.
    pub id: u32,
    /// Step within it.
    pub step: u32,
}

impl Tag {
    /// The tag as a number.
    pub fn encode(self) -> u64 {
        debug_assert!(self.id < 1 << 24 && self.step < 1 << 24 && self.dev.get() < 1 << 12);
        (self.purpose as u64) << 60
            | u64::from(self.dev.get()) << 48
            | u64::from(self.id) << 24
            | u64::from(self.step)
    }

    /// The number as a tag; the engine only ever sees numbers it made.
    pub fn decode(raw: u64) -> Self {
        Self {
            purpose: PURPOSES[(raw >> 60) as usize],
            dev: DevIndex::new((raw >> 48 & 0xfff) as u16),
            id: (raw >> 24 & 0xff_ffff) as u32,
            step: (raw & 0xff_ffff) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_survive_the_round_trip() {
        for purpose in PURPOSES {
            let tag = Tag { purpose, dev: DevIndex::new(511), id: 0xab_cdef, step: 0x12_3456 };
            assert_eq!(Tag::decode(tag.encode()), tag);
        }
    }
}
