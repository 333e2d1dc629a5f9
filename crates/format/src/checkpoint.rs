//! Checkpoints: a header block and the pages that follow it.
//!
//! A full checkpoint (EPLOG, section 3.5) fills one of two areas, which take turns, so that the previous one
//! stays whole until the new one is complete. An incremental checkpoint is appended to the incremental area.
//! The pages are written and flushed before the header, and the header carries a checksum over the checksums
//! of all pages, so a checkpoint exists entirely or not at all.
//!
//! The incremental area is a ring. The chain of a full checkpoint begins at its first block, or, if
//! incremental ones went on beside it, behind the one that was taken at the same instant; each begins where
//! the one before ends, or at the first block of the area.
//!
//! A full checkpoint does not hold the pages of the table: these have two slots each in the page area, and it
//! says which of them count.

use crate::layout::{BlockKind, CRC_OFFSET, check_counter, check_place, check_zero, common, layout};
use crate::{ArrayUuid, CheckpointKind, FormatError, PageKind};
use block::{DevIndex, Epoch, META_BYTES, Seq};
use checksum::Crc32c;

const HEADER: BlockKind = BlockKind { what: "checkpoint header", magic: *b"ELSTCKPT" };
const PAGE: BlockKind = BlockKind { what: "checkpoint page", magic: *b"ELSTPAGE" };

/// Words (32 bits each) that a page holds.
pub const PAGE_WORDS: usize = 1000;

const HEADER_USED: usize = 140;
const WORDS_OFFSET: usize = 64;
const WORDS_BYTES: usize = PAGE_WORDS * 4;
const WORDS_END: usize = WORDS_OFFSET + WORDS_BYTES;

layout!(
    /// Fields of a checkpoint header.
    header, "checkpoint header", META_BYTES, {
        MAGIC: 0, 8, "`ELSTCKPT`";
        VERSION: 8, 2, "format version, 2";
        DEV: 10, 2, "own address: index of the member device";
        BLOCK: 12, 4, "own address: block number within the area";
        ARRAY: 16, 16, "UUID of the array";
        EPOCH: 32, 8, "assembly of the array that wrote the checkpoint";
        NONCE: 40, 8, "random number of the epoch";
        NUMBER: 48, 8, "number of the checkpoint; grows over both kinds, and leaves some out";
        BASE: 56, 8, "number of the full checkpoint that this builds on; its own if full";
        THROUGH: 64, 8, "records up to this are contained";
        TABLE_WORDS: 72, 8, "words of the per-chunk table";
        LIST_WORDS: 80, 8, "words of the list";
        PAGE_COUNT: 88, 4, "pages that follow";
        LOG_HEAD: 92, 4, "log region: block from which on records behind `through` are looked for";
        LOG_TAIL: 96, 4, "log region: oldest block still needed";
        BODY_CRC: 100, 4, "CRC-32C over the CRC fields of the pages, in order";
        AREA: 104, 1, "own address: full-checkpoint area 0 or 1, or 2 = incremental area";
        KIND: 105, 1, "checkpoint kind";
        PACKED: 106, 1, "2 = the list and patches, and frames of this epoch, may have short forms; 1 = those of before there were steps";
        ZERO_1: 107, 5, "zero";
        CONFIG_SEQ: 112, 8, "update of the superblocks that was durable when this was written; 0 = not said";
        BESIDE: 120, 8, "of a full one, beside which incremental ones went on: what these build on; else 0";
        CHAIN: 128, 4, "of such a one, block of the incremental area behind which they are; else 0";
        BEHIND: 132, 8, "of an incremental one, the checkpoint it goes on from; 0 = not said, or full";
        ZERO_2: HEADER_USED, CRC_OFFSET - HEADER_USED, "zero";
        CRC: CRC_OFFSET, 4, "CRC-32C of bytes 0..4092";
    }
);

layout!(
    /// Fields of a checkpoint page.
    page, "checkpoint page", META_BYTES, {
        MAGIC: 0, 8, "`ELSTPAGE`";
        VERSION: 8, 2, "format version, 2";
        DEV: 10, 2, "own address: index of the member device";
        BLOCK: 12, 4, "own address: block number within the area";
        ARRAY: 16, 16, "UUID of the array";
        NUMBER: 32, 8, "number of the checkpoint";
        INDEX: 40, 4, "index of the page among those of its kind";
        WORD_COUNT: 44, 2, "words, at most 1000";
        KIND: 46, 1, "page kind";
        AREA: 47, 1, "own address: full-checkpoint area 0 or 1, 2 = incremental area, 3 = page area";
        ZERO_1: 48, WORDS_OFFSET - 48, "zero";
        WORDS: WORDS_OFFSET, WORDS_BYTES, "words of 4 bytes, then zeros";
        ZERO_2: WORDS_END, CRC_OFFSET - WORDS_END, "zero";
        CRC: CRC_OFFSET, 4, "CRC-32C of bytes 0..4092";
    }
);

/// The area number of the incremental area; full-checkpoint areas are 0 and 1.
pub const INCREMENTAL_AREA: u8 = 2;
/// That of the page area, which has pages but no headers.
pub const PAGE_AREA: u8 = 3;

/// The first block of a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckpointHeader {
    /// Identity of the array.
    pub array: ArrayUuid,
    /// The assembly that wrote it.
    pub epoch: Epoch,
    /// Random number of the epoch.
    pub nonce: u64,
    /// The device it is written to.
    pub dev: DevIndex,
    /// Its block number within its area.
    pub block: u32,
    /// Full-checkpoint area 0 or 1, or 2 = incremental area.
    pub area: u8,
    /// Grows over full and incremental checkpoints; those that were given up leave numbers out.
    pub number: u64,
    /// Full or incremental.
    pub kind: CheckpointKind,
    /// Number of the full checkpoint it builds on: itself if it is full.
    pub base: u64,
    /// Records up to this are contained.
    pub through: Seq,
    /// Words of the per-chunk table.
    pub table_words: u64,
    /// Words of the list.
    pub list_words: u64,
    /// Pages that follow the header.
    pub page_count: u32,
    /// Block of the log region from which on records behind `through` are looked for: the append position,
    /// unless frames with later records lie before it.
    pub log_head: u32,
    /// Oldest block of the log region that is still needed.
    pub log_tail: u32,
    /// [`body_crc`] of the pages.
    pub body_crc: u32,
    /// Update of the superblocks that every working member had when this was written; 0 says nothing, as in
    /// checkpoints that were written before the field had a meaning.
    pub config_seq: u64,
    /// Of a full one beside which incremental ones went on.
    pub beside: Option<Beside>,
    /// Of an incremental one, number of the one that it lies behind in their chain, or of the full one; 0
    /// says nothing, as in checkpoints that were written before the field had a meaning.
    pub behind: u64,
    /// Short forms that may be in its list, and in the frames of its epoch, up to [`PACKED`]: who does not
    /// know them must not take it, nor go on from it. 1 = those of decision 0072, 2 = also those of 0076.
    pub packed: u8,
}

/// All short forms that there are.
pub const PACKED: u8 = 2;

/// Where the incremental checkpoints are that went on beside a full one, which hold what changed since it was
/// taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beside {
    /// The full checkpoint that they build on, which was the newest then.
    pub base: u64,
    /// The block of the incremental area behind the last one before them.
    pub block: u32,
}

/// Which block of a checkpoint the caller asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockExpect {
    /// Identity of the array.
    pub array: ArrayUuid,
    /// The device that the block was read from.
    pub dev: DevIndex,
    /// Full-checkpoint area 0 or 1, or 2 = incremental area.
    pub area: u8,
    /// The block number, within the area, that was read.
    pub block: u32,
}

impl CheckpointHeader {
    /// Whether an incremental checkpoint goes on from `before`, the last one of its chain so far or the full
    /// one. Those beside a full one go on from the incremental one of the same instant, which has the number
    /// before. One that does not say from which it goes on may go on from any.
    pub fn goes_on_from(&self, before: &Self) -> bool {
        self.behind == 0 || self.behind == before.number - u64::from(before.beside.is_some())
    }

    /// Checks what a reader will check of how the fields fit together.
    fn check(&self) -> Result<(), FormatError> {
        let rule = |holds: bool, what: &'static str, found: u64, expected: &'static str| {
            if holds { Ok(()) } else { Err(FormatError::Malformed { what, found, expected }) }
        };
        let area = u64::from(self.area);
        check_counter("epoch of a checkpoint", self.epoch.get())?;
        check_counter("last sequence number of a checkpoint", self.through.get())?;
        check_counter("number of a checkpoint", self.number)?;
        check_counter("superblock update of a checkpoint", self.config_seq)?;
        let beside = self.beside.map_or(0, |beside| beside.base);
        rule(
            self.beside.is_none()
                || (self.kind == CheckpointKind::Full && (1..self.number).contains(&beside)),
            "base of incremental checkpoints beside this one",
            beside,
            "a number below that of the full checkpoint",
        )?;
        rule(self.number >= 1, "number of a checkpoint", self.number, "at least 1")?;
        match self.kind {
            CheckpointKind::Full => {
                rule(self.area < INCREMENTAL_AREA, "area of a full checkpoint", area, "0 or 1")?;
                rule(self.behind == 0, "checkpoint before a full checkpoint", self.behind, "0")?;
                rule(self.base == self.number, "base of a full checkpoint", self.base, "its own number")
            }
            CheckpointKind::Incremental => {
                rule(self.area == INCREMENTAL_AREA, "area of an incremental checkpoint", area, "2")?;
                let before = "checkpoint before an incremental checkpoint";
                rule(self.behind < self.number, before, self.behind, "a number below its own")?;
                rule(
                    (1..self.number).contains(&self.base),
                    "base of an incremental checkpoint",
                    self.base,
                    "a number from 1 to below its own",
                )
            }
        }
    }

    /// Writes the header to the 4096 bytes of `out`. Area, kind, number and base must fit together: area 0 or
    /// 1, `base == number` and `behind == 0` if full, area 2, `1 <= base < number`, `behind < number` and
    /// nothing beside it if incremental; anything else is a bug.
    pub fn encode(&self, out: &mut [u8]) {
        if let Err(error) = self.check() {
            panic!("a checkpoint header that cannot be read back must not be written: {error}");
        }
        HEADER.begin(out, self.dev.get(), self.block, &self.array);
        out[common::BODY.offset..common::BODY.end()].fill(0);
        header::EPOCH.put_u64(out, self.epoch.get());
        header::NONCE.put_u64(out, self.nonce);
        header::NUMBER.put_u64(out, self.number);
        header::BASE.put_u64(out, self.base);
        header::THROUGH.put_u64(out, self.through.get());
        header::TABLE_WORDS.put_u64(out, self.table_words);
        header::LIST_WORDS.put_u64(out, self.list_words);
        header::PAGE_COUNT.put_u32(out, self.page_count);
        header::LOG_HEAD.put_u32(out, self.log_head);
        header::LOG_TAIL.put_u32(out, self.log_tail);
        header::BODY_CRC.put_u32(out, self.body_crc);
        header::AREA.put_u8(out, self.area);
        header::KIND.put_u8(out, self.kind.code());
        header::CONFIG_SEQ.put_u64(out, self.config_seq);
        header::BESIDE.put_u64(out, self.beside.map_or(0, |beside| beside.base));
        header::CHAIN.put_u32(out, self.beside.map_or(0, |beside| beside.block));
        header::BEHIND.put_u64(out, self.behind);
        header::PACKED.put_u8(out, self.packed);
        HEADER.finish(out);
    }
}

/// Reads a checkpoint header. Epoch and nonce are reported, not checked: they tell the caller which frames
/// continue the checkpoint.
pub fn decode_checkpoint_header(bytes: &[u8], expect: &BlockExpect) -> Result<CheckpointHeader, FormatError> {
    HEADER.check(bytes)?;
    HEADER.check_array(bytes, expect.array)?;
    check_place("device of a checkpoint header", header::DEV.get_u16(bytes), expect.dev.get())?;
    check_place("area of a checkpoint header", header::AREA.get_u8(bytes), expect.area)?;
    check_place("block of a checkpoint header", header::BLOCK.get_u32(bytes), expect.block)?;
    check_zero("checkpoint header", header::ZERO_1.get(bytes))?;
    check_zero("checkpoint header", header::ZERO_2.get(bytes))?;
    let beside = Beside { base: header::BESIDE.get_u64(bytes), block: header::CHAIN.get_u32(bytes) };
    let packed = header::PACKED.get_u8(bytes);
    if packed > PACKED {
        let what = "short forms of a checkpoint header";
        return Err(FormatError::Malformed { what, found: packed.into(), expected: "0 to 2" });
    }
    if beside.base == 0 {
        check_zero("checkpoint header", header::CHAIN.get(bytes))?;
    }
    let decoded = CheckpointHeader {
        array: expect.array,
        epoch: Epoch::new(header::EPOCH.get_u64(bytes)),
        nonce: header::NONCE.get_u64(bytes),
        dev: expect.dev,
        block: expect.block,
        area: expect.area,
        number: header::NUMBER.get_u64(bytes),
        kind: CheckpointKind::from_code(header::KIND.get_u8(bytes))?,
        base: header::BASE.get_u64(bytes),
        through: Seq::new(header::THROUGH.get_u64(bytes)),
        table_words: header::TABLE_WORDS.get_u64(bytes),
        list_words: header::LIST_WORDS.get_u64(bytes),
        page_count: header::PAGE_COUNT.get_u32(bytes),
        log_head: header::LOG_HEAD.get_u32(bytes),
        log_tail: header::LOG_TAIL.get_u32(bytes),
        body_crc: header::BODY_CRC.get_u32(bytes),
        config_seq: header::CONFIG_SEQ.get_u64(bytes),
        beside: (beside.base > 0).then_some(beside),
        behind: header::BEHIND.get_u64(bytes),
        packed,
    };
    decoded.check()?;
    Ok(decoded)
}

/// What a page carries besides its words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageStamp {
    /// Identity of the array.
    pub array: ArrayUuid,
    /// The device it is written to.
    pub dev: DevIndex,
    /// Full-checkpoint area 0 or 1, 2 = incremental area, 3 = page area.
    pub area: u8,
    /// Its block number within the area.
    pub block: u32,
    /// Number of the checkpoint.
    pub number: u64,
    /// What its words are.
    pub kind: PageKind,
    /// Index of the page among those of its kind.
    pub index: u32,
}

/// Which page the caller asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageExpect {
    /// Identity of the array.
    pub array: ArrayUuid,
    /// The device that the block was read from.
    pub dev: DevIndex,
    /// Full-checkpoint area 0 or 1, or 2 = incremental area.
    pub area: u8,
    /// The block number, within the area, that was read.
    pub block: u32,
    /// Number of the checkpoint, if it is known.
    pub number: Option<u64>,
}

/// A verified page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// Number of the checkpoint that wrote it.
    pub number: u64,
    /// What its words are.
    pub kind: PageKind,
    /// Index of the page among those of its kind.
    pub index: u32,
    /// At most [`PAGE_WORDS`] words.
    pub words: Vec<u32>,
    /// The page's checksum, which goes into [`body_crc`].
    pub crc: u32,
}

/// Writes a page of at most [`PAGE_WORDS`] words to the 4096 bytes of `out` and returns its checksum.
///
/// The checksum covers the page's own address, so the copies of one checkpoint on different devices have
/// different ones.
pub fn encode_page(stamp: &PageStamp, words: &[u32], out: &mut [u8]) -> u32 {
    assert!(words.len() <= PAGE_WORDS, "{} words in a page of {PAGE_WORDS}", words.len());
    assert!(stamp.area <= PAGE_AREA, "there is no checkpoint area {}", stamp.area);
    PAGE.begin(out, stamp.dev.get(), stamp.block, &stamp.array);
    page::NUMBER.put_u64(out, stamp.number);
    page::INDEX.put_u32(out, stamp.index);
    page::WORD_COUNT.put_u16(out, u16::try_from(words.len()).expect("asserted: at most 1000"));
    page::KIND.put_u8(out, stamp.kind.code());
    page::AREA.put_u8(out, stamp.area);
    out[page::ZERO_1.offset..page::ZERO_1.end()].fill(0);
    let (used, unused) = out[page::WORDS.offset..CRC_OFFSET].split_at_mut(words.len() * 4);
    let (used, _) = used.as_chunks_mut();
    for (out, word) in used.iter_mut().zip(words) {
        *out = word.to_le_bytes();
    }
    unused.fill(0);
    PAGE.finish(out)
}

/// Reads a page.
pub fn decode_page(bytes: &[u8], expect: &PageExpect) -> Result<Page, FormatError> {
    let crc = PAGE.check(bytes)?;
    PAGE.check_array(bytes, expect.array)?;
    check_place("device of a checkpoint page", page::DEV.get_u16(bytes), expect.dev.get())?;
    check_place("area of a checkpoint page", page::AREA.get_u8(bytes), expect.area)?;
    check_place("block of a checkpoint page", page::BLOCK.get_u32(bytes), expect.block)?;
    let number = page::NUMBER.get_u64(bytes);
    check_place("checkpoint number of a checkpoint page", number, expect.number.unwrap_or(number))?;
    check_zero("checkpoint page", page::ZERO_1.get(bytes))?;
    check_zero("checkpoint page", page::ZERO_2.get(bytes))?;
    let count = usize::from(page::WORD_COUNT.get_u16(bytes));
    let (used, unused) =
        page::WORDS.get(bytes).split_at_checked(count * 4).ok_or(FormatError::Malformed {
            what: "words of a checkpoint page",
            found: count as u64,
            expected: "at most 1000",
        })?;
    check_zero("unused words of a checkpoint page", unused)?;
    Ok(Page {
        number,
        kind: PageKind::from_code(page::KIND.get_u8(bytes))?,
        index: page::INDEX.get_u32(bytes),
        words: used.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)).collect(),
        crc,
    })
}

/// The checksum over the checksums of a checkpoint's pages, as it goes into the header: CRC-32C of their
/// little-endian bytes, in page order.
pub fn body_crc(page_crcs: &[u32]) -> u32 {
    let mut body = BodyCrc::new();
    for &crc in page_crcs {
        body.push(crc);
    }
    body.finish()
}

/// [`body_crc`], one page at a time.
#[derive(Clone, Default)]
pub struct BodyCrc(Crc32c);

impl BodyCrc {
    /// Of no pages yet.
    pub fn new() -> Self {
        Self(Crc32c::new())
    }

    /// Adds the next page's checksum.
    pub fn push(&mut self, page_crc: u32) {
        self.0.update(&page_crc.to_le_bytes());
    }

    /// The checksum of the pages so far.
    pub fn finish(&self) -> u32 {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests;
