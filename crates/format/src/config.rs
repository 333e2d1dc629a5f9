//! The shape of an array and the place of everything on its devices.
//!
//! ```text
//! main device   0        superblock, copy 0
//!               4096     superblock, copy 1
//!               8192     full-checkpoint area 0   full_blocks
//!                        full-checkpoint area 1   full_blocks
//!                        incremental area         incremental_blocks
//!                        journal ring             journal_blocks
//!                        payload ring             payload_blocks
//!                        page area                page_blocks
//!               data     chunks 1..=chunks_per_device, aligned to 1 MiB
//!                        (the other way round once the array has grown: see [`Moved`])
//!
//! log device    0, 4096  superblocks
//!               1 MiB    log region, blocks 1..=log_blocks
//! ```
//!
//! The order is that of EPLOG, section 3.5 (superblock, full-checkpoint area of two sub-areas, incremental
//! area), with the journal and payload rings behind it.

mod slices;

use crate::scheme::{LogContent, WITH_ANY_LOG, WITH_LOG, WITHOUT_LOG};
use crate::{CodeKind, Consistency, FormatError, LayoutKind, SchemeKind, Shard};
use block::{ChunkIndex, DevIndex, Geometry, META_BYTES};

/// Where the metadata regions of a main device start, behind the two superblocks.
pub const METADATA_START_BYTES: u64 = 8192;
/// Where the log region of a log device starts.
pub const LOG_START_BYTES: u64 = 1 << 20;
/// What the data region is aligned to, at least: erase blocks and partitions like it, and so does the reader.
pub const DATA_ALIGN_BYTES: u64 = 1 << 20;
/// Logical chunk numbers and stripe numbers are below this: they take six bytes on disk.
pub const LCN_LIMIT: u64 = 1 << 48;

/// Log devices at most.
pub const LOG_COUNT_MAX: u16 = 255;

const BLOCK_BYTES: u64 = META_BYTES as u64;

/// The shape of an array, or of one of its shards; equal on all members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayConfig {
    /// How parity is kept up to date.
    pub scheme: SchemeKind,
    /// The erasure code.
    pub code: CodeKind,
    /// How columns map to devices.
    pub layout: LayoutKind,
    /// What a scheme that writes in place does about the write hole; of no meaning to the others.
    pub consistency: Consistency,
    /// k, m and the chunk size.
    pub geometry: Geometry,
    /// Log devices. The first of them, one per parity, hold log chunks and frames; others frames alone.
    pub log_count: u16,
    /// Data stripes of the volume.
    pub stripe_count: u64,
    /// Chunks in the data region of each main device; valid chunk indices are 1..=`chunks_per_device`.
    pub chunks_per_device: u32,
    /// 4 KiB blocks in the log region of each log device, indices 1..=`log_blocks`.
    pub log_blocks: u32,
    /// 4 KiB blocks of one full-checkpoint area.
    pub full_blocks: u32,
    /// 4 KiB blocks of the incremental-checkpoint area.
    pub incremental_blocks: u32,
    /// 4 KiB blocks of the journal ring on each main device.
    pub journal_blocks: u32,
    /// 4 KiB blocks of the payload ring on each main device, indices 1..=`payload_blocks`; 0 unless the
    /// scheme writes in place with a journal.
    pub payload_blocks: u32,
    /// 4 KiB blocks of the page area on each main device, where the pages of the table have their slots.
    pub page_blocks: u32,
    /// Rows of a unit of garbage collection: chunks of each main device that are collected together (W-23,
    /// there the chunks of an erase block); 0 unless the scheme is elastic.
    pub unit_rows: u32,
    /// Which slice of every member all this is about: with several shards, everything above is of one.
    pub shard: Shard,
    /// Where the regions of a main device are if the array has grown since it was created.
    pub moved: Moved,
}

/// Where the regions of a main device are once an array has grown onto larger devices: the data region stays
/// where it began, so that every chunk stays where it is, and the metadata regions, which grow with it, are
/// in the new room behind it, in the same order.
///
/// ```text
/// main device   0, 4096    superblocks
///               8192       metadata regions of before (unused, after the first time)
///               data       chunks 1..=chunks_per_device
///               metadata   full-checkpoint areas, incremental area, journal, payload ring, page area
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moved {
    /// Byte at which the data region begins.
    pub data_start_bytes: u64,
    /// Byte at which the metadata regions begin.
    pub metadata_start_bytes: u64,
}

impl Moved {
    /// The array is as it was created: metadata in front, data behind.
    pub const NEVER: Self = Self { data_start_bytes: 0, metadata_start_bytes: 0 };
}

impl ArrayConfig {
    /// Byte offset of a block, 0..`full_blocks`, of full-checkpoint area 0 or 1 on a main device.
    pub fn full_offset(&self, which: usize, block: u32) -> u64 {
        assert!(which < 2, "there are two full-checkpoint areas, not an area {which}");
        assert!(block < self.full_blocks, "block {block} of a full-checkpoint area of {}", self.full_blocks);
        let area = if which == 0 { 0 } else { u64::from(self.full_blocks) };
        self.metadata_start() + (area + u64::from(block)) * BLOCK_BYTES
    }

    /// Byte offset of a block, 0..`incremental_blocks`, of the incremental area on a main device.
    pub fn incremental_offset(&self, block: u32) -> u64 {
        assert!(
            block < self.incremental_blocks,
            "block {block} of an incremental area of {}",
            self.incremental_blocks
        );
        self.incremental_start() + u64::from(block) * BLOCK_BYTES
    }

    /// Byte offset of a block, 0..`journal_blocks`, of the journal ring on a main device.
    pub fn journal_offset(&self, block: u32) -> u64 {
        assert!(block < self.journal_blocks, "block {block} of a journal ring of {}", self.journal_blocks);
        self.journal_start() + u64::from(block) * BLOCK_BYTES
    }

    /// Byte offset of a block, 1..=`payload_blocks`, of the payload ring on a main device.
    pub fn payload_offset(&self, block: u32) -> u64 {
        assert!(
            (1..=self.payload_blocks).contains(&block),
            "block {block} of a payload ring of 1..={}",
            self.payload_blocks
        );
        self.payload_start() + u64::from(block - 1) * BLOCK_BYTES
    }

    /// Byte offset of a block, 0..`page_blocks`, of the page area on a main device.
    pub fn page_offset(&self, block: u32) -> u64 {
        assert!(block < self.page_blocks, "block {block} of a page area of {}", self.page_blocks);
        self.page_start() + u64::from(block) * BLOCK_BYTES
    }

    /// Byte offset of a chunk, 1..=`chunks_per_device`, on a main device.
    pub fn chunk_offset(&self, chunk: ChunkIndex) -> u64 {
        self.chunk_offset_from(self.data_start(), chunk)
    }

    /// The same for whoever knows [`ArrayConfig::data_start`], which takes a division.
    #[inline]
    pub fn chunk_offset_from(&self, data_start: u64, chunk: ChunkIndex) -> u64 {
        assert!(
            (1..=self.chunks_per_device).contains(&chunk.get()),
            "chunk {chunk} of a device with 1..={}",
            self.chunks_per_device
        );
        data_start + u64::from(chunk.get() - 1) * self.chunk_bytes()
    }

    /// Byte offset of a 4 KiB block, 1..=`log_blocks`, of the log region on a log device.
    pub fn log_offset(&self, block: ChunkIndex) -> u64 {
        assert!(
            (1..=self.log_blocks).contains(&block.get()),
            "block {block} of a log region of 1..={}",
            self.log_blocks
        );
        LOG_START_BYTES + u64::from(block.get() - 1) * BLOCK_BYTES
    }

    /// Bytes that a main device must have.
    pub fn main_device_bytes(&self) -> u64 {
        if self.has_grown() { self.metadata_end() } else { self.data_end() }
    }

    /// Whether the array has grown since it was created.
    pub fn has_grown(&self) -> bool {
        self.moved != Moved::NEVER
    }

    /// Where the data region of a main device ends, in bytes.
    pub fn data_end(&self) -> u64 {
        self.data_start() + u64::from(self.chunks_per_device) * self.chunk_bytes()
    }

    /// Where the metadata regions of a main device start, in bytes.
    pub fn metadata_start(&self) -> u64 {
        if self.has_grown() { self.moved.metadata_start_bytes } else { METADATA_START_BYTES }
    }

    /// Where they end, in bytes.
    pub fn metadata_end(&self) -> u64 {
        self.page_start() + u64::from(self.page_blocks) * BLOCK_BYTES
    }

    /// Bytes that a log device must have.
    pub fn log_device_bytes(&self) -> u64 {
        LOG_START_BYTES + u64::from(self.log_blocks) * BLOCK_BYTES
    }

    /// Bytes of the exported volume.
    pub fn volume_bytes(&self) -> u64 {
        self.stripe_count.saturating_mul(self.geometry.data_count() as u64).saturating_mul(self.chunk_bytes())
    }

    /// Where the data region of a main device starts, in bytes.
    pub fn data_start(&self) -> u64 {
        if self.has_grown() {
            return self.moved.data_start_bytes;
        }
        self.metadata_end().next_multiple_of(DATA_ALIGN_BYTES.max(self.chunk_bytes()))
    }

    fn incremental_start(&self) -> u64 {
        self.metadata_start() + 2 * u64::from(self.full_blocks) * BLOCK_BYTES
    }

    fn journal_start(&self) -> u64 {
        self.incremental_start() + u64::from(self.incremental_blocks) * BLOCK_BYTES
    }

    fn payload_start(&self) -> u64 {
        self.journal_start() + u64::from(self.journal_blocks) * BLOCK_BYTES
    }

    fn page_start(&self) -> u64 {
        self.payload_start() + u64::from(self.payload_blocks) * BLOCK_BYTES
    }

    /// Log devices that hold log chunks: one per parity.
    fn chunk_logs(&self) -> usize {
        usize::from(self.log_count).min(self.geometry.parity_count())
    }

    /// Log devices that hold frames alone: those beyond one per parity, the last ones.
    pub fn frame_logs(&self) -> usize {
        usize::from(self.log_count) - self.chunk_logs()
    }

    /// Whether a member is a log device that holds log chunks.
    pub fn has_log_chunks(&self, dev: DevIndex) -> bool {
        let first = self.geometry.device_count();
        (first..first + self.chunk_logs()).contains(&dev.index())
    }

    /// The members with a ring of frames: the main devices, then the log devices that hold frames alone.
    pub fn ring_members(&self) -> impl Iterator<Item = DevIndex> + use<> {
        let config = *self;
        (0..self.geometry.device_count() + self.frame_logs()).map(move |index| config.ring_member(index))
    }

    /// The member with ring number `index`.
    pub fn ring_member(&self, index: usize) -> DevIndex {
        let passed_over = if index < self.geometry.device_count() { 0 } else { self.chunk_logs() };
        DevIndex::new(u16::try_from(index + passed_over).expect("there are at most 510 members"))
    }

    /// The number of a member's ring; `None` for a log device that holds log chunks.
    pub fn ring_index(&self, dev: DevIndex) -> Option<usize> {
        let passed_over = if dev.index() < self.geometry.device_count() { 0 } else { self.chunk_logs() };
        (!self.has_log_chunks(dev)).then(|| dev.index() - passed_over)
    }

    /// Blocks of a member's ring: on a log device the first ones of its log region, as many as all main
    /// devices have together.
    pub fn ring_blocks(&self, dev: DevIndex) -> u32 {
        let main_count = self.geometry.device_count();
        if dev.index() < main_count {
            self.journal_blocks
        } else {
            let mains = u32::try_from(main_count).expect("there are at most 255 main devices");
            self.journal_blocks.saturating_mul(mains).min(self.log_blocks)
        }
    }

    /// Bytes of a chunk.
    pub fn chunk_bytes(&self) -> u64 {
        self.geometry.chunk_bytes() as u64
    }

    /// Checks that everything fits together. Sizes cannot overflow once this has succeeded: at most 255 x
    /// 2^32 chunks of 1 MiB are 2^60 bytes.
    pub fn validate(&self) -> Result<(), FormatError> {
        let rule = |holds: bool, what: &'static str, found: u64, expected: &'static str| {
            if holds { Ok(()) } else { Err(FormatError::Config { what, found, expected }) }
        };
        let parity_count = self.geometry.parity_count() as u64;
        let log_count = u64::from(self.log_count);
        let chunks = u64::from(self.chunks_per_device);
        match self.code {
            CodeKind::Xor => {
                rule(parity_count == 1, "number of parity devices", parity_count, "1 with the code xor")?;
            }
            CodeKind::Rdp => {
                rule(parity_count == 2, "number of parity devices", parity_count, "2 with the code rdp")?;
            }
            CodeKind::Cauchy => {} // any k + m <= 255, which Geometry ensures
        }
        let (fits, expected) = match self.scheme.facts().log {
            LogContent::Nothing => (log_count == 0, WITHOUT_LOG),
            LogContent::OpenStripes => (self.log_count <= LOG_COUNT_MAX, WITH_ANY_LOG),
            LogContent::LogStripes | LogContent::Deltas => {
                ((1..=LOG_COUNT_MAX).contains(&self.log_count), WITH_LOG)
            }
        };
        rule(fits, "number of log devices", log_count, expected)?;
        rule(self.stripe_count >= 1, "number of stripes", self.stripe_count, "at least 1")?;
        rule(
            self.stripe_count <= chunks,
            "number of stripes",
            self.stripe_count,
            "at most the chunks of a device, of which each stripe takes one",
        )?;
        rule(
            (self.log_blocks > 0) == (log_count > 0),
            "blocks in the log region",
            u64::from(self.log_blocks),
            "more than 0 with log devices, 0 without",
        )?;
        rule(
            self.full_blocks >= 2,
            "blocks in a full-checkpoint area",
            u64::from(self.full_blocks),
            "at least 2: a header and a page",
        )?;
        rule(
            self.incremental_blocks >= 2,
            "blocks in the incremental area",
            u64::from(self.incremental_blocks),
            "at least 2: a header and a page",
        )?;
        rule(
            self.journal_blocks >= 2,
            "blocks in the journal ring",
            u64::from(self.journal_blocks),
            "at least 2",
        )?;
        rule(
            self.page_blocks >= 2,
            "blocks in the page area",
            u64::from(self.page_blocks),
            "at least 2: two slots of a page",
        )?;
        let has_payload = self.scheme.is_in_place() && self.consistency == Consistency::Journal;
        rule(
            (self.payload_blocks > 0) == has_payload,
            "blocks in the payload ring",
            u64::from(self.payload_blocks),
            "more than 0 for a scheme that writes in place with a journal, 0 otherwise",
        )?;
        self.validate_units()?;
        self.validate_moved()?;
        self.validate_shard()
    }

    /// Checks that the regions of an array that has grown do not overlap.
    fn validate_moved(&self) -> Result<(), FormatError> {
        let rule = |holds: bool, what: &'static str, found: u64, expected: &'static str| {
            if holds { Ok(()) } else { Err(FormatError::Config { what, found, expected }) }
        };
        if !self.has_grown() {
            return Ok(());
        }
        let Moved { data_start_bytes, metadata_start_bytes } = self.moved;
        let align = DATA_ALIGN_BYTES.max(self.chunk_bytes());
        rule(
            data_start_bytes > 0 && data_start_bytes.is_multiple_of(align) && data_start_bytes < 1 << 60,
            "start of the data region",
            data_start_bytes,
            "a multiple of 1 MiB behind the superblocks",
        )?;
        rule(
            metadata_start_bytes.is_multiple_of(BLOCK_BYTES)
                && metadata_start_bytes < 1 << 61
                && metadata_start_bytes >= self.data_end(),
            "start of the metadata regions",
            metadata_start_bytes,
            "a multiple of 4096, not before the end of the data region",
        )?;
        // Copies of chunks do not cross the end of a unit of the room that the shards share.
        let payload_start = self.payload_start();
        rule(
            !self.shard.is_one_of_several() || payload_start.is_multiple_of(self.payload_align_bytes()),
            "start of the payload ring",
            payload_start,
            "a multiple of the chunk size in an array of several shards that has grown",
        )
    }

    /// What the payload ring of a shard that has grown begins at a multiple of.
    fn payload_align_bytes(&self) -> u64 {
        if self.payload_blocks > 0 { self.chunk_bytes() } else { BLOCK_BYTES }
    }

    /// The same with the metadata regions somewhat later, if an array of several shards needs that: the
    /// payload ring begins at a multiple of the chunk size.
    #[must_use]
    pub fn with_aligned_payload(mut self) -> Self {
        if self.shard.is_one_of_several() {
            let start = self.payload_start();
            self.moved.metadata_start_bytes += start.next_multiple_of(self.payload_align_bytes()) - start;
        }
        self
    }

    fn validate_units(&self) -> Result<(), FormatError> {
        let rule = |holds: bool, what: &'static str, found: u64, expected: &'static str| {
            if holds { Ok(()) } else { Err(FormatError::Config { what, found, expected }) }
        };
        let (rows, unit) = (u64::from(self.chunks_per_device), u64::from(self.unit_rows));
        if !self.scheme.is_elastic() {
            return rule(unit == 0, "rows of a unit", unit, "0 unless the scheme is elastic or was");
        }
        rule((2..=UNIT_ROWS_MAX).contains(&unit), "rows of a unit", unit, "2 to 65536")?;
        rule(
            rows.saturating_mul(self.geometry.data_count() as u64) < u64::from(u32::MAX),
            "chunks per device",
            rows,
            "less than 2^32 data chunks in all with the schemes elastic and was",
        )?;
        rule(
            self.stripe_count <= self.stripes_max(),
            "number of stripes",
            self.stripe_count,
            "what leaves room for garbage collection with the schemes elastic and was",
        )
    }

    /// Stripes that a volume of elastic stripes may have at most: when users may no longer
    /// write, some units free and some not yet full, collecting the emptiest of the others must
    /// gain a row (docs/decisions/0011).
    pub fn stripes_max(&self) -> u64 {
        let units = u64::from(self.chunks_per_device / self.unit_rows.max(1));
        units.saturating_sub(UNITS_SPARE).saturating_mul(u64::from(self.unit_rows.saturating_sub(1)))
    }
}

/// Rows of a unit at most.
pub const UNIT_ROWS_MAX: u64 = 1 << 16;
/// Classes of chunks that an elastic scheme tells apart at most, those of garbage collection included.
pub const CLASSES_MAX: usize = 8;
/// Units besides those that hold data: one being filled for each class, as many and two more kept free for
/// garbage collection.
pub const UNITS_SPARE: u64 = 2 * CLASSES_MAX as u64 + 2;

#[cfg(test)]
mod tests;
