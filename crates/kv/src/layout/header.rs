//! The header of the volume, in three copies, and the geometry it tells.

use super::{Fields, Malformed, table_bytes};
use crate::blocks::BLOCK_BYTES;
use crate::hash::Secret;
use crate::numbers::{narrow, wide};
use crate::planted::{Planted, planted};

const MAGIC: &[u8; 16] = b"elastripe-kv\0\0\0\0";
/// What is written of a store that has never grown, and of one that has.
const VERSIONS: [u32; 2] = [1, 2];
const USED_BYTES: usize = 96;
/// The largest part of a value that is one record.
const PART_BYTES_MAX: u64 = 256 << 10;
/// The largest volume: addresses have 40 bits and count units of 16 bytes.
const VOLUME_BYTES_MAX: u64 = 16 << 40;
/// Fewer segments than this cannot be compacted.
const SLOTS_MIN: u64 = 12;

/// How a volume is cut up; what a caller may choose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VolumeShape {
    /// Size of the volume, rounded down to whole blocks.
    pub volume_bytes: u64,
    /// Bytes of a segment, a power of two from 64 KiB to 8 MiB; none: by the volume's size.
    pub segment_bytes: Option<u64>,
}

/// Where everything is on a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Geometry {
    pub(crate) volume_bytes: u64,
    pub(crate) segment_bytes: u64,
    pub(crate) slot_count: u64,
    pub(crate) first_slot: u64,
    /// How often the store has grown. Then its tables are at the end of the volume, where there is room for
    /// more of them.
    pub(crate) growths: u32,
}

/// Copies of tables: two of each, of two that are written in turn.
const TABLE_COPIES: u64 = 4;

/// Where the copies of the header lie: the first two blocks; the third copy is the volume's last block.
pub(crate) const HEADER_PLACES: [u64; 2] = [0, 4096];

impl Geometry {
    pub(crate) fn new(shape: VolumeShape) -> Result<Self, Malformed> {
        let volume_bytes = shape.volume_bytes / wide(BLOCK_BYTES) * wide(BLOCK_BYTES);
        let range = |field, found| Err(Malformed::Range { field, found });
        if volume_bytes > VOLUME_BYTES_MAX {
            return range("size of the volume", volume_bytes);
        }
        let segment_bytes = Self::segment_of(shape);
        if !Self::may_be_segment(segment_bytes) {
            return range("size of a segment", segment_bytes);
        }
        let mut slot_count = volume_bytes / segment_bytes;
        loop {
            let geometry = Self::of(volume_bytes, segment_bytes, slot_count);
            match geometry.check() {
                Err(Malformed::Range { field: "number of segments", .. }) if slot_count > SLOTS_MIN => {
                    slot_count -= 1;
                }
                Err(error) => return Err(error),
                Ok(()) => return Ok(geometry),
            }
        }
    }

    fn segment_of(shape: VolumeShape) -> u64 {
        let by_size = (shape.volume_bytes / 1024).next_power_of_two().clamp(1 << 20, 8 << 20);
        shape.segment_bytes.unwrap_or(by_size)
    }

    /// What a volume must have at least for segments of this shape, whose size is possible.
    pub(crate) fn least_bytes(shape: VolumeShape) -> u64 {
        let least = Self::of(0, Self::segment_of(shape), SLOTS_MIN);
        least.first_slot + SLOTS_MIN * least.segment_bytes + least.behind_bytes()
    }

    fn of(volume_bytes: u64, segment_bytes: u64, slot_count: u64) -> Self {
        let front = wide(2 * BLOCK_BYTES) + TABLE_COPIES * table_bytes(slot_count);
        // Segments of large volumes begin at multiples of their size, as stripes do.
        let align = if slot_count > 256 { segment_bytes } else { wide(BLOCK_BYTES) };
        let first_slot = front.next_multiple_of(align);
        Self { volume_bytes, segment_bytes, slot_count, first_slot, growths: 0 }
    }

    /// The same on a volume that has become larger: all segments stay where they are, and others follow. None
    /// if there is no room for more, beside new tables that lie behind all that the store has used so far, or
    /// if segments are so small that tables of more would be too large a part of what is written.
    pub(crate) fn grown(&self, volume_bytes: u64) -> Option<Self> {
        let block = wide(BLOCK_BYTES);
        let volume_bytes = volume_bytes.min(VOLUME_BYTES_MAX) / block * block;
        let growths = self.growths.checked_add(1)?;
        let room = volume_bytes.checked_sub(self.first_slot)? / self.segment_bytes;
        // Two tables of eight bytes a slot for each 64 slots that are freed are a sixteenth of these then.
        let most = room.min(self.segment_bytes / 4);
        let of = |slot_count| Self { volume_bytes, slot_count, growths, ..*self };
        let grown = (self.slot_count + 1..=most).rev().map(of).find(|grown| grown.check().is_ok())?;
        (grown.tables_start() >= self.volume_bytes).then_some(grown)
    }

    fn may_be_segment(bytes: u64) -> bool {
        bytes.is_power_of_two() && (64 << 10..=8 << 20).contains(&bytes)
    }

    fn check(&self) -> Result<(), Malformed> {
        let range = |field, found| Err(Malformed::Range { field, found });
        if self.volume_bytes > VOLUME_BYTES_MAX {
            return range("size of the volume", self.volume_bytes);
        }
        if !Self::may_be_segment(self.segment_bytes) {
            return range("size of a segment", self.segment_bytes);
        }
        let slots = self.slot_count.checked_mul(self.segment_bytes).filter(|_| self.slot_count >= SLOTS_MIN);
        let behind = |bytes: u64| bytes.checked_add(self.first_slot)?.checked_add(self.behind_bytes());
        let end = slots.and_then(behind);
        if end.is_none_or(|end| end > self.volume_bytes) {
            return range("number of segments", self.slot_count);
        }
        Ok(())
    }

    /// Bytes of a value that are one record; a longer value is stored in parts of this size.
    pub(crate) fn part_bytes(&self) -> u64 {
        (self.segment_bytes / 16).min(PART_BYTES_MAX)
    }

    /// Bytes that one write of the log has at most.
    pub(crate) fn batch_bytes_max(&self) -> u64 {
        (self.segment_bytes / 4).min(512 << 10)
    }

    pub(crate) fn slot_start(&self, slot: usize) -> u64 {
        self.first_slot + wide(slot) * self.segment_bytes
    }

    /// The slot in which an address lies.
    pub(crate) fn slot_of(&self, address: u64) -> usize {
        narrow(address.saturating_sub(self.first_slot) / self.segment_bytes)
    }

    pub(crate) fn slots(&self) -> usize {
        narrow(self.slot_count)
    }

    /// What lies behind the segments: tables, if the store has grown, and a copy of the header.
    fn behind_bytes(&self) -> u64 {
        let tables = if self.growths > 0 { TABLE_COPIES * table_bytes(self.slot_count) } else { 0 };
        tables + wide(BLOCK_BYTES)
    }

    fn tables_start(&self) -> u64 {
        if self.growths > 0 { self.volume_bytes - self.behind_bytes() } else { wide(2 * BLOCK_BYTES) }
    }

    /// Where a copy of a table lies.
    pub(crate) fn table_place(&self, epoch: u64, copy: u64) -> u64 {
        let start =
            if planted(Planted::TablesWhereTheyWere) { wide(2 * BLOCK_BYTES) } else { self.tables_start() };
        start + (epoch % 2 * 2 + copy) * table_bytes(self.slot_count)
    }

    /// Where the copies of the header lie.
    pub(crate) fn header_places(&self) -> [u64; 3] {
        [HEADER_PLACES[0], HEADER_PLACES[1], self.volume_bytes - wide(BLOCK_BYTES)]
    }

    /// What records may take in one segment, whatever is left over at its end and in its batches.
    pub(crate) fn segment_payload_bytes(&self) -> u64 {
        let block = wide(BLOCK_BYTES);
        let batches = self.segment_bytes / self.batch_bytes_max() + 1;
        self.segment_bytes - 2 * block - (self.part_bytes() + block) - batches * block / 2
    }
}

/// What the header says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) uuid: [u8; 16],
    pub(crate) secret: Secret,
    pub(crate) geometry: Geometry,
}

impl Header {
    /// What every other block of the store names as its owner.
    pub(crate) fn owner(&self) -> u64 {
        self.uuid[..].u64_at(0) ^ self.uuid[..].u64_at(8).rotate_left(32) ^ self.secret.0[0]
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BLOCK_BYTES);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSIONS[usize::from(self.geometry.growths > 0)].to_le_bytes());
        out.extend_from_slice(&self.geometry.growths.to_le_bytes());
        out.extend_from_slice(&self.uuid);
        let geometry = &self.geometry;
        let numbers = [geometry.volume_bytes, geometry.segment_bytes, geometry.slot_count];
        for number in numbers.into_iter().chain([geometry.first_slot]).chain(self.secret.0) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.resize(USED_BYTES - 4, 0);
        let crc = format::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out.resize(BLOCK_BYTES, 0);
        out
    }

    /// Whether the first block of a volume begins as that of a store does, intact or not.
    pub(crate) fn begins(block: &[u8]) -> bool {
        block.starts_with(MAGIC)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() < USED_BYTES || &bytes[..16] != MAGIC {
            return Err(Malformed::Magic);
        }
        if format::crc32c(&bytes[..USED_BYTES - 4]) != bytes.u32_at(USED_BYTES - 4) {
            return Err(Malformed::Checksum);
        }
        let growths = bytes.u32_at(20);
        if !VERSIONS.contains(&bytes.u32_at(16)) {
            return Err(Malformed::Version { found: bytes.u32_at(16) });
        }
        if bytes.u32_at(16) != VERSIONS[usize::from(growths > 0)] {
            return Err(Malformed::Range { field: "number of growths", found: growths.into() });
        }
        let geometry = Geometry {
            volume_bytes: bytes.u64_at(40),
            segment_bytes: bytes.u64_at(48),
            slot_count: bytes.u64_at(56),
            first_slot: bytes.u64_at(64),
            growths,
        };
        geometry.check()?;
        let new = Geometry::of(geometry.volume_bytes, geometry.segment_bytes, geometry.slot_count);
        let fits = match growths {
            0 => geometry.first_slot == new.first_slot,
            // It had as much room in front as a smaller store needed.
            1.. => {
                geometry.first_slot.is_multiple_of(wide(BLOCK_BYTES)) && geometry.first_slot <= new.first_slot
            }
        };
        if !fits {
            return Err(Malformed::Range { field: "first segment", found: geometry.first_slot });
        }
        let uuid = bytes[24..40].try_into().expect("sixteen bytes");
        Ok(Self { uuid, secret: Secret([bytes.u64_at(72), bytes.u64_at(80)]), geometry })
    }
}
