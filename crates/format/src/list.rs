//! The list of a checkpoint: what it holds besides the flat per-chunk table.
//!
//! Items are runs of 32-bit words, one after another; an item may cross from one list page to the next. The
//! first word has the item's kind in its highest byte and its counts below.

use crate::layout::check_counter;
use crate::names::{CodeTable, MemberFate};
use crate::{FormatError, LCN_LIMIT, LogMember, StripeChunk};
use block::{ChunkIndex, DevIndex, Lcn, Seq, StripeId};

const DIRTY_STRIPE: u32 = 1;
const LOG_STRIPE: u32 = 2;
const DELTA: u32 = 3;
const SPACE: u32 = 4;
const OPEN_STRIPE: u32 = 5;

pub(crate) const ITEM_KINDS: CodeTable = CodeTable {
    title: "list item kind",
    rows: &[(1, "dirty stripe"), (2, "log stripe"), (3, "delta"), (4, "space"), (5, "open stripe")],
};

/// Word by word, what the items are.
pub(crate) const ITEM_TABLES: &[(&str, &[(&str, &str)])] = &[
    (
        "list item: dirty stripe",
        &[
            ("0", "1 << 24, plus the number of columns in the low 16 bits"),
            ("1, 2", "data stripe, low word first"),
            (
                "3 ...",
                "two words per column: `0xffffffff` = same as current, 0 = a column of zeros, else the chunk; its checksum",
            ),
        ],
    ),
    (
        "list item: log stripe",
        &[
            ("0", "2 << 24, plus the number of log devices << 16, plus the number of members"),
            ("1, 2", "sequence number of its record, low word first"),
            ("3", "first block of the log chunk, on every log device"),
            ("4 ...", "one word per log device: checksum of its log chunk"),
            (
                "...",
                "four words per member: logical chunk number, low word first, with its fate in the highest byte; chunk index; checksum",
            ),
        ],
    ),
    (
        "list item: delta",
        &[
            ("0", "3 << 24, plus the number of log devices << 16"),
            ("1, 2", "data stripe, low word first"),
            ("3", "first block of the log chunk, on every log device"),
            ("4 ...", "one word per log device: checksum of its log chunk"),
        ],
    ),
    (
        "list item: space",
        &[
            ("0", "4 << 24, plus the main device"),
            ("1", "chunks of it that are in use"),
            ("2", "chunk at which the search for a free one goes on"),
            ("3", "number of chunks that follow"),
            ("4 ...", "one word each: chunks that are free, although their bits in the page area are set"),
        ],
    ),
    (
        "list item: open stripe",
        &[
            ("0", "5 << 24"),
            ("1, 2", "sequence number of its newest record, low word first"),
            ("3", "row"),
            ("4", "first block of the parity so far, on every log device"),
        ],
    ),
];

/// Words of an open stripe in the list.
pub const OPEN_STRIPE_ITEM_WORDS: usize = 5;

/// Words of a delta in the list, with `log_count` log devices.
pub const fn delta_item_words(log_count: usize) -> usize {
    4 + log_count
}

const MEMBER_WORDS: usize = 4;
/// Where a member's fate is in the high word of its logical chunk number, which leaves 16 bits of it.
const FATE_SHIFT: u32 = 24;
const COLUMN_WORDS: usize = 2;

/// An entry of the list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ListItem {
    /// A data stripe whose parity does not cover its current data.
    DirtyStripe {
        /// The stripe.
        stripe: StripeId,
        /// For each data column what the parity covers; chunk `u32::MAX` = the current one, 0 = a column of
        /// zeros.
        committed: Vec<StripeChunk>,
    },
    /// A log stripe that is still needed.
    LogStripe {
        /// Sequence number of its record.
        first_seq: Seq,
        /// First 4 KiB block of the log chunk, on every log device.
        log_block: ChunkIndex,
        /// CRC-32C of the log chunk on each log device.
        log_crcs: Vec<u32>,
        /// The data chunks, and what each is to its data stripe.
        members: Vec<(LogMember, MemberFate)>,
    },
    /// A log chunk that counts for the parity of a stripe. The list has them in the order of the log.
    Delta {
        /// The stripe.
        stripe: StripeId,
        /// First 4 KiB block of the log chunk, on every log device.
        log_block: ChunkIndex,
        /// CRC-32C of the log chunk on each log device.
        log_crcs: Vec<u32>,
    },
    /// What is in use of a main device whose chunks come free one by one.
    Space {
        /// The device.
        dev: DevIndex,
        /// Chunks of it that are in use.
        used_count: u32,
        /// Where the search for a free one goes on.
        frontier: u32,
        /// Chunks that are free, although their bits in the page area are set.
        freed: Vec<ChunkIndex>,
    },
    /// An elastic stripe whose parity is in the log. Its checksums are those of the row.
    OpenStripe {
        /// Sequence number of its newest record.
        seq: Seq,
        /// The row.
        row: u32,
        /// First 4 KiB block of the parity so far, on every log device.
        log_block: ChunkIndex,
    },
}

impl ListItem {
    /// Checks what a reader will check of the numbers.
    fn check(&self) -> Result<(), FormatError> {
        let below = |what: &'static str, found: u64| {
            if found < LCN_LIMIT {
                Ok(())
            } else {
                Err(FormatError::Malformed { what, found, expected: "a number below 2^48" })
            }
        };
        match self {
            Self::DirtyStripe { stripe, .. } | Self::Delta { stripe, .. } => {
                below("stripe of a checkpoint list", stripe.get())
            }
            Self::LogStripe { first_seq, members, .. } => {
                check_counter("sequence number of a log stripe in a checkpoint list", first_seq.get())?;
                members.iter().try_for_each(|(m, _)| below("logical chunk of a checkpoint list", m.lcn.get()))
            }
            Self::OpenStripe { seq, .. } => {
                check_counter("sequence number of an open stripe in a checkpoint list", seq.get())
            }
            Self::Space { .. } => Ok(()),
        }
    }

    /// Appends the item's words. At most 65535 columns or members and 255 log devices, stripe and logical
    /// chunk numbers below [`LCN_LIMIT`]; more is a bug.
    pub fn encode(&self, words: &mut Vec<u32>) {
        if let Err(error) = self.check() {
            panic!("a list item that cannot be read back must not be written: {error}");
        }
        match self {
            Self::DirtyStripe { stripe, committed } => {
                let count = u16::try_from(committed.len()).expect("a stripe has at most 255 columns");
                words.push(DIRTY_STRIPE << 24 | u32::from(count));
                words.extend(split(stripe.get()));
                words.extend(committed.iter().flat_map(|version| [version.chunk.get(), version.crc]));
            }
            Self::LogStripe { first_seq, log_block, log_crcs, members } => {
                let log_count = u8::try_from(log_crcs.len()).expect("there are at most 255 log devices");
                let count = u16::try_from(members.len()).expect("a log stripe comes from one frame");
                words.push(LOG_STRIPE << 24 | u32::from(log_count) << 16 | u32::from(count));
                words.extend(split(first_seq.get()));
                words.push(log_block.get());
                words.extend_from_slice(log_crcs);
                for (member, fate) in members {
                    let [low, high] = split(member.lcn.get());
                    let high = high | u32::from(fate.code()) << FATE_SHIFT;
                    words.extend([low, high, member.chunk.get(), member.crc]);
                }
            }
            Self::Delta { stripe, log_block, log_crcs } => {
                let log_count = u8::try_from(log_crcs.len()).expect("there are at most 255 log devices");
                words.push(DELTA << 24 | u32::from(log_count) << 16);
                words.extend(split(stripe.get()));
                words.push(log_block.get());
                words.extend_from_slice(log_crcs);
            }
            Self::Space { dev, used_count, frontier, freed } => {
                let count = u32::try_from(freed.len()).expect("a device has fewer chunks than 2^32");
                words.extend([SPACE << 24 | u32::from(dev.get()), *used_count, *frontier, count]);
                words.extend(freed.iter().map(|chunk| chunk.get()));
            }
            Self::OpenStripe { seq, row, log_block } => {
                words.push(OPEN_STRIPE << 24);
                words.extend(split(seq.get()));
                words.extend([*row, log_block.get()]);
            }
        }
    }
}

/// Reads all items of a list: the words of its pages, in order.
pub fn decode_list(words: &[u32]) -> Result<Vec<ListItem>, FormatError> {
    let mut reader = Reader { words };
    let mut items = Vec::new();
    while !reader.words.is_empty() {
        items.push(reader.item()?);
    }
    Ok(items)
}

struct Reader<'a> {
    words: &'a [u32],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u32], FormatError> {
        let (taken, rest) = self.words.split_at_checked(count).ok_or(FormatError::Malformed {
            what: "words left for an item of a checkpoint list",
            found: self.words.len() as u64,
            expected: "as many as its first word announces",
        })?;
        self.words = rest;
        Ok(taken)
    }

    fn take_u32(&mut self) -> Result<u32, FormatError> {
        Ok(self.take(1)?[0])
    }

    fn take_u64(&mut self) -> Result<u64, FormatError> {
        Ok(join(self.take(2)?))
    }

    fn item(&mut self) -> Result<ListItem, FormatError> {
        let [counts_low, counts_high, log_count, kind] = self.take_u32()?.to_le_bytes();
        let count = usize::from(u16::from_le_bytes([counts_low, counts_high]));
        let item = match u32::from(kind) {
            DIRTY_STRIPE if log_count == 0 => ListItem::DirtyStripe {
                stripe: StripeId::new(self.take_u64()?),
                committed: self
                    .take(count * COLUMN_WORDS)?
                    .chunks_exact(COLUMN_WORDS)
                    .map(|version| StripeChunk { chunk: ChunkIndex::new(version[0]), crc: version[1] })
                    .collect(),
            },
            DIRTY_STRIPE => {
                return Err(FormatError::Malformed {
                    what: "log devices of a dirty stripe in a checkpoint list",
                    found: u64::from(log_count),
                    expected: "0",
                });
            }
            LOG_STRIPE => ListItem::LogStripe {
                first_seq: Seq::new(self.take_u64()?),
                log_block: ChunkIndex::new(self.take_u32()?),
                log_crcs: self.take(log_count.into())?.to_vec(),
                members: self
                    .take(count * MEMBER_WORDS)?
                    .chunks_exact(MEMBER_WORDS)
                    .map(member)
                    .collect::<Result<_, _>>()?,
            },
            DELTA if count == 0 => ListItem::Delta {
                stripe: StripeId::new(self.take_u64()?),
                log_block: ChunkIndex::new(self.take_u32()?),
                log_crcs: self.take(log_count.into())?.to_vec(),
            },
            DELTA => {
                return Err(FormatError::Malformed {
                    what: "members of a delta in a checkpoint list",
                    found: count as u64,
                    expected: "0",
                });
            }
            SPACE if log_count == 0 => {
                let dev = DevIndex::new(u16::from_le_bytes([counts_low, counts_high]));
                let (used_count, frontier) = (self.take_u32()?, self.take_u32()?);
                let count = usize::try_from(self.take_u32()?).unwrap_or(usize::MAX);
                let freed = self.take(count)?.iter().map(|&chunk| ChunkIndex::new(chunk)).collect();
                ListItem::Space { dev, used_count, frontier, freed }
            }
            OPEN_STRIPE if count == 0 && log_count == 0 => ListItem::OpenStripe {
                seq: Seq::new(self.take_u64()?),
                row: self.take_u32()?,
                log_block: ChunkIndex::new(self.take_u32()?),
            },
            found => {
                return Err(FormatError::Malformed {
                    what: "kind of an item of a checkpoint list",
                    found: u64::from(found),
                    expected: "1 to 5",
                });
            }
        };
        item.check()?;
        Ok(item)
    }
}

/// A member of a log stripe from its words.
fn member(words: &[u32]) -> Result<(LogMember, MemberFate), FormatError> {
    let fate = MemberFate::from_code(words[1].to_be_bytes()[0])?;
    let high = words[1] & !(u32::from(u8::MAX) << FATE_SHIFT);
    let lcn = Lcn::new(join(&[words[0], high]));
    Ok((LogMember { lcn, chunk: ChunkIndex::new(words[2]), crc: words[3] }, fate))
}

/// A 64-bit number as two words, low word first.
fn split(value: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
    [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])]
}

/// The number whose two words come first in `words`.
fn join(words: &[u32]) -> u64 {
    u64::from(words[1]) << 32 | u64::from(words[0])
}

#[cfg(test)]
mod tests;
