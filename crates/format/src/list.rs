//! The list of a checkpoint: what it holds besides the flat per-chunk table.
//!
//! Items are runs of 32-bit words, one after another; an item may cross from one list page to the next. The
//! first word has the item's kind in its highest byte and its counts below.

use crate::layout::check_counter;
use crate::names::MemberFate;
use crate::{FormatError, LCN_LIMIT, LogMember, StripeChunk};
use block::{ChunkIndex, DevIndex, Epoch, Lcn, Seq, StripeId};
use std::num::NonZeroU64;

mod changes;
mod items;
mod older;
mod packed;

pub(crate) use items::{ITEM_KINDS, ITEM_TABLES};

pub use changes::{
    Change, Changes, Fates, Numbers, fold_list, push_clean_stripes, push_ended_log_stripes, push_fates,
};
pub use packed::{ListPacker, unpack_list};

const DIRTY_STRIPE: u32 = 1;
const LOG_STRIPE: u32 = 2;
const DELTA: u32 = 3;
const SPACE: u32 = 4;
const OPEN_STRIPE: u32 = 5;
const MISSED: u32 = 6;
const UPDATED_COLUMNS: u32 = 7;

/// Words of an open stripe in the list.
pub const OPEN_STRIPE_ITEM_WORDS: usize = 5;

/// Words of a delta in the list, with `log_count` log devices.
pub const fn delta_item_words(log_count: usize) -> usize {
    4 + log_count
}

/// Words of a log stripe before its checksums.
const LOG_STRIPE_HEAD_WORDS: usize = 4;
const MEMBER_WORDS: usize = 4;
/// Where a member's fate is in the high word of its logical chunk number, which leaves 16 bits of it.
const FATE_SHIFT: u32 = 24;
const COLUMN_WORDS: usize = 2;
const RANGE_WORDS: usize = 2;
const COLUMNS_PER_WORD: usize = 32;
/// As a version in [`ListItem::DirtyStripe`]: the column was not updated.
const SAME: StripeChunk = StripeChunk { chunk: ChunkIndex::new(u32::MAX), crc: 0 };

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
    /// The same, where most columns are not updated.
    UpdatedColumns {
        /// The stripe.
        stripe: StripeId,
        /// How many data columns it has.
        columns: u16,
        /// Those that were updated, in order, each with what the parity covers; 0 = a column of zeros.
        committed: Vec<(u16, StripeChunk)>,
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
    /// What a main device that is out of service has missed, or lacked when its rebuild began.
    Missed {
        /// The device.
        dev: DevIndex,
        /// The member's serial number.
        serial: u32,
        /// Where it left; `None` while it is being rebuilt.
        left: Option<MissedPoint>,
        /// Chunks that it may lack, in order.
        ranges: Vec<ChunkRange>,
    },
}

/// Where a member left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MissedPoint {
    /// The assembly of the array.
    pub epoch: Epoch,
    /// Its nonce.
    pub nonce: u64,
    /// The last update of the superblocks that the member certainly had.
    pub config_seq: NonZeroU64,
    /// It was not being rebuilt.
    pub was_whole: bool,
}

/// Chunks of one device that lie next to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkRange {
    /// The first.
    pub first: ChunkIndex,
    /// How many.
    pub count: u32,
}

impl ListItem {
    /// Checks what a reader will check of the numbers.
    fn check(&self) -> Result<(), FormatError> {
        match self {
            Self::DirtyStripe { stripe, .. }
            | Self::UpdatedColumns { stripe, .. }
            | Self::Delta { stripe, .. } => check_stripe(*stripe),
            Self::LogStripe { first_seq, members, .. } => {
                check_log_stripe(*first_seq)?;
                members.iter().try_for_each(|(member, _)| check_member(member))
            }
            Self::OpenStripe { seq, .. } => check_open_stripe(*seq),
            Self::Missed { left, .. } => check_point(*left),
            Self::Space { .. } => Ok(()),
        }
    }

    /// Appends the item's words. At most 65535 columns or members and 255 log devices, stripe and logical
    /// chunk numbers below [`LCN_LIMIT`]; more is a bug.
    pub fn encode(&self, words: &mut Vec<u32>) {
        assert_readable(self.check());
        match self {
            Self::DirtyStripe { stripe, committed } => {
                push_dirty_stripe(words, *stripe, committed.iter().copied());
            }
            Self::UpdatedColumns { stripe, columns, committed } => {
                let mut left = committed.iter().copied().peekable();
                let version = |column| left.next_if(|&(next, _)| next == column).map(|(_, version)| version);
                push_updated_columns(words, *stripe, (0..*columns).map(version));
                assert!(left.next().is_none(), "updated columns are in order");
            }
            Self::LogStripe { first_seq, log_block, log_crcs, members } => {
                push_log_stripe(words, (*first_seq, *log_block), log_crcs, members.iter().copied());
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
            Self::Missed { dev, serial, left, ranges } => {
                let count = u32::try_from(ranges.len()).expect("a device has fewer chunks than 2^32");
                let was_whole = left.is_some_and(|at| at.was_whole);
                let left = left.map_or([0; 3], |at| [at.epoch.get(), at.nonce, at.config_seq.get()]);
                words.extend([MISSED << 24 | u32::from(was_whole) << 16 | u32::from(dev.get()), *serial]);
                left.into_iter().for_each(|number| words.extend(split(number)));
                words.push(count);
                words.extend(ranges.iter().flat_map(|range| [range.first.get(), range.count]));
            }
        }
    }
}

/// Appends the words of [`ListItem::UpdatedColumns`], of which there are many: of each column what the parity
/// covers, if it was updated.
pub fn push_updated_columns(
    words: &mut Vec<u32>,
    stripe: StripeId,
    committed: impl ExactSizeIterator<Item = Option<StripeChunk>>,
) {
    assert_readable(check_stripe(stripe));
    let count = u16::try_from(committed.len()).expect("a stripe has at most 255 columns");
    let bit_words = bit_words(count);
    let [low, high] = split(stripe.get());
    let bits_count = u32::from(u8::try_from(bit_words).expect("a stripe has at most 255 columns"));
    words.extend([UPDATED_COLUMNS << 24 | bits_count << 16 | u32::from(count), low, high]);
    let bits = words.len();
    words.resize(bits + bit_words, 0);
    for (column, version) in committed.enumerate() {
        let Some(StripeChunk { chunk, crc }) = version else { continue };
        words[bits + column / COLUMNS_PER_WORD] |= 1 << (column % COLUMNS_PER_WORD);
        words.extend([chunk.get(), crc]);
    }
}

/// Words of [`ListItem::UpdatedColumns`] with so many columns, of which so many were updated.
pub const fn updated_columns_words(columns: u64, updated: u64) -> u64 {
    3 + columns.div_ceil(32) + 2 * updated
}

/// Words of [`ListItem::LogStripe`] with so many members, on so many log devices.
pub const fn log_stripe_words(members: u64, log_count: u64) -> u64 {
    4 + log_count + 4 * members
}

/// Words that have a bit for each column.
fn bit_words(columns: u16) -> usize {
    usize::from(columns).div_ceil(COLUMNS_PER_WORD)
}

/// Appends the words of [`ListItem::DirtyStripe`].
fn push_dirty_stripe(
    words: &mut Vec<u32>,
    stripe: StripeId,
    committed: impl ExactSizeIterator<Item = StripeChunk>,
) {
    assert_readable(check_stripe(stripe));
    let count = u16::try_from(committed.len()).expect("a stripe has at most 255 columns");
    let [low, high] = split(stripe.get());
    words.extend([DIRTY_STRIPE << 24 | u32::from(count), low, high]);
    words.reserve(committed.len() * COLUMN_WORDS);
    committed.for_each(|version| words.extend([version.chunk.get(), version.crc]));
}

/// Appends the words of [`ListItem::LogStripe`], of which there are many; `place` is the sequence number of
/// its record, and its first block on every log device.
pub fn push_log_stripe(
    words: &mut Vec<u32>,
    place: (Seq, ChunkIndex),
    log_crcs: &[u32],
    members: impl ExactSizeIterator<Item = (LogMember, MemberFate)>,
) {
    assert_readable(check_log_stripe(place.0));
    let log_count = u8::try_from(log_crcs.len()).expect("there are at most 255 log devices");
    let count = u16::try_from(members.len()).expect("a log stripe comes from one frame");
    push_log_stripe_head(words, place, log_count, count);
    words.extend_from_slice(log_crcs);
    words.reserve(members.len() * MEMBER_WORDS);
    for (member, fate) in members {
        assert_readable(check_member(&member));
        push_member(words, member, fate);
    }
}

/// The words of a log stripe before its checksums, which the members follow.
fn push_log_stripe_head(words: &mut Vec<u32>, (seq, block): (Seq, ChunkIndex), log_count: u8, members: u16) {
    let [low, high] = split(seq.get());
    words.extend([LOG_STRIPE << 24 | u32::from(log_count) << 16 | u32::from(members), low, high]);
    words.push(block.get());
}

fn push_member(words: &mut Vec<u32>, member: LogMember, fate: MemberFate) {
    let [low, high] = split(member.lcn.get());
    words.extend([low, high | u32::from(fate.code()) << FATE_SHIFT, member.chunk.get(), member.crc]);
}

fn assert_readable(checked: Result<(), FormatError>) {
    if let Err(error) = checked {
        panic!("a list item that cannot be read back must not be written: {error}");
    }
}

fn check_stripe(stripe: StripeId) -> Result<(), FormatError> {
    check_below("stripe of a checkpoint list", stripe.get())
}

fn check_log_stripe(first_seq: Seq) -> Result<(), FormatError> {
    check_counter("sequence number of a log stripe in a checkpoint list", first_seq.get())
}

fn check_open_stripe(seq: Seq) -> Result<(), FormatError> {
    check_counter("sequence number of an open stripe in a checkpoint list", seq.get())
}

fn check_point(left: Option<MissedPoint>) -> Result<(), FormatError> {
    let Some(MissedPoint { epoch, config_seq, .. }) = left else { return Ok(()) };
    check_counter("epoch of what a member missed in a checkpoint list", epoch.get())?;
    check_counter("update of what a member missed in a checkpoint list", config_seq.get())
}

fn check_member(member: &LogMember) -> Result<(), FormatError> {
    check_below("logical chunk of a checkpoint list", member.lcn.get())
}

fn check_below(what: &'static str, found: u64) -> Result<(), FormatError> {
    check(found < LCN_LIMIT, what, found, "a number below 2^48")
}

fn check(
    holds: bool,
    what: &'static str,
    found: impl Into<u64>,
    expected: &'static str,
) -> Result<(), FormatError> {
    if holds { Ok(()) } else { Err(FormatError::Malformed { what, found: found.into(), expected }) }
}

/// The words of a list that can be read, all of it.
#[derive(Clone, Copy, Debug)]
pub struct List<'a> {
    words: &'a [u32],
    /// Those from the first item on that speaks of a member, and from the first log stripe on.
    of_members: &'a [u32],
    log_stripes: &'a [u32],
    dirty_stripes: usize,
}

/// A [`ListItem`] as it lies in its list.
#[derive(Clone, Copy, Debug)]
pub enum ItemRef<'a> {
    /// See [`ListItem::DirtyStripe`] and [`ListItem::UpdatedColumns`].
    DirtyStripe {
        /// The stripe.
        stripe: StripeId,
        /// What the parity covers.
        committed: Versions<'a>,
    },
    /// See [`ListItem::LogStripe`].
    LogStripe {
        /// Sequence number of its record.
        first_seq: Seq,
        /// First block of the log chunk.
        log_block: ChunkIndex,
        /// Checksum of the log chunk on each log device.
        log_crcs: &'a [u32],
        /// The data chunks.
        members: Members<'a>,
    },
    /// See [`ListItem::Delta`].
    Delta {
        /// The stripe.
        stripe: StripeId,
        /// First block of the log chunk.
        log_block: ChunkIndex,
        /// Checksum of the log chunk on each log device.
        log_crcs: &'a [u32],
    },
    /// See [`ListItem::Space`].
    Space {
        /// The device.
        dev: DevIndex,
        /// Chunks of it that are in use.
        used_count: u32,
        /// Where the search for a free one goes on.
        frontier: u32,
        /// Chunks that are free, one word each.
        freed: &'a [u32],
    },
    /// See [`ListItem::OpenStripe`].
    OpenStripe {
        /// Sequence number of its newest record.
        seq: Seq,
        /// The row.
        row: u32,
        /// First block of the parity so far.
        log_block: ChunkIndex,
    },
    /// See [`ListItem::Missed`].
    Missed {
        /// The device.
        dev: DevIndex,
        /// The member's serial number.
        serial: u32,
        /// Where it left.
        left: Option<MissedPoint>,
        /// Chunks that it may lack.
        ranges: Ranges<'a>,
    },
}

/// Ranges of chunks, as they lie in a list.
#[derive(Clone, Copy, Debug)]
pub struct Ranges<'a>(&'a [u32]);

impl<'a> Ranges<'a> {
    /// Each of them.
    pub fn iter(self) -> impl ExactSizeIterator<Item = ChunkRange> + Clone + use<'a> {
        let range = |words: &[u32]| ChunkRange { first: ChunkIndex::new(words[0]), count: words[1] };
        self.0.chunks_exact(RANGE_WORDS).map(range)
    }
}

/// Versions of columns, as they lie in a list.
#[derive(Clone, Copy, Debug)]
pub struct Versions<'a> {
    columns: u16,
    /// Bits of those that follow, if not all do.
    bits: Option<&'a [u32]>,
    words: &'a [u32],
}

impl<'a> Versions<'a> {
    /// One for each column; chunk `u32::MAX` = it was not updated.
    pub fn iter(self) -> impl ExactSizeIterator<Item = StripeChunk> + Clone + use<'a> {
        let Self { columns, bits, words } = self;
        let mut left = words.chunks_exact(COLUMN_WORDS);
        let there = move |column: usize| {
            bits.is_none_or(|bits| bits[column / COLUMNS_PER_WORD] >> (column % COLUMNS_PER_WORD) & 1 == 1)
        };
        (0..usize::from(columns)).map(move |column| match there(column).then(|| left.next()).flatten() {
            Some(words) => StripeChunk { chunk: ChunkIndex::new(words[0]), crc: words[1] },
            None => SAME,
        })
    }

    fn check(self) -> Result<(), FormatError> {
        let Some(bits) = self.bits else { return Ok(()) };
        let spare = bits.len() * COLUMNS_PER_WORD - usize::from(self.columns);
        let last = bits.last().copied().unwrap_or_default();
        let is_within = u64::from(last) >> (COLUMNS_PER_WORD - spare) == 0;
        check(is_within, "bits of columns in a checkpoint list", last, "none behind the last column")?;
        let is_chunk = self.words.chunks_exact(COLUMN_WORDS).all(|words| words[0] != u32::MAX);
        check(is_chunk, "chunk of a column in a checkpoint list", u32::MAX, "one that is")
    }

    fn to_item(self, stripe: StripeId) -> ListItem {
        if self.bits.is_none() {
            return ListItem::DirtyStripe { stripe, committed: self.iter().collect() };
        }
        let updated = (0..self.columns).zip(self.iter()).filter(|&(_, version)| version != SAME);
        ListItem::UpdatedColumns { stripe, columns: self.columns, committed: updated.collect() }
    }
}

/// Members of a log stripe, as they lie in a list.
#[derive(Clone, Copy, Debug)]
pub struct Members<'a>(&'a [u32]);

impl<'a> Members<'a> {
    /// Each with its fate.
    pub fn iter(self) -> impl ExactSizeIterator<Item = (LogMember, MemberFate)> + Clone + use<'a> {
        self.0.chunks_exact(MEMBER_WORDS).map(|words| member(words).expect("looked at when it was read"))
    }
}

impl<'a> List<'a> {
    /// Looks at all items of a list: the words of its pages, in order.
    pub fn read(words: &'a [u32]) -> Result<Self, FormatError> {
        let (mut reader, mut dirty_stripes) = (Reader { words }, 0);
        let (mut of_members, mut log_stripes) = (None, None);
        while !reader.words.is_empty() {
            let (left, item) = (reader.words, reader.item()?);
            item.check()?;
            match item {
                ItemRef::DirtyStripe { .. } => dirty_stripes += 1,
                ItemRef::Space { .. } | ItemRef::Missed { .. } => _ = of_members.get_or_insert(left),
                ItemRef::LogStripe { .. } => _ = log_stripes.get_or_insert(left),
                ItemRef::Delta { .. } | ItemRef::OpenStripe { .. } => {}
            }
        }
        let [of_members, log_stripes] = [of_members, log_stripes].map(Option::unwrap_or_default);
        Ok(Self { words, of_members, log_stripes, dirty_stripes })
    }

    /// How many dirty stripes it has.
    pub fn dirty_stripe_count(self) -> usize {
        self.dirty_stripes
    }

    /// Its items from the first log stripe on, in order.
    pub fn items_from_log_stripes(self) -> impl Iterator<Item = ItemRef<'a>> + Clone + use<'a> {
        Self { words: self.log_stripes, ..self }.items()
    }

    /// Its items that speak of a member, in order: [`ItemRef::Space`] and [`ItemRef::Missed`].
    pub fn items_of_members(self) -> impl Iterator<Item = ItemRef<'a>> + Clone + use<'a> {
        let items = Self { words: self.of_members, ..self }.items();
        items.filter(|item| matches!(item, ItemRef::Space { .. } | ItemRef::Missed { .. }))
    }

    /// Its items, in order, but for what members have missed, which lists of all schemes may have.
    pub fn items_of_scheme(self) -> impl Iterator<Item = ItemRef<'a>> + Clone + use<'a> {
        self.items().filter(|item| !matches!(item, ItemRef::Missed { .. }))
    }

    /// Its items, in order.
    pub fn items(self) -> impl Iterator<Item = ItemRef<'a>> + Clone + use<'a> {
        let mut reader = Reader { words: self.words };
        std::iter::from_fn(move || {
            let is_left = !reader.words.is_empty();
            is_left.then(|| reader.item().expect("looked at when it was read"))
        })
    }
}

impl ItemRef<'_> {
    /// Checks what [`ListItem::encode`] checks.
    fn check(&self) -> Result<(), FormatError> {
        match *self {
            Self::DirtyStripe { stripe, committed } => check_stripe(stripe).and(committed.check()),
            Self::Delta { stripe, .. } => check_stripe(stripe),
            Self::LogStripe { first_seq, members, .. } => {
                let mut members = members.0.chunks_exact(MEMBER_WORDS).map(member);
                members.try_for_each(|read| read.map(|_| ()))?;
                check_log_stripe(first_seq)?;
                self.check_members()
            }
            Self::OpenStripe { seq, .. } => check_open_stripe(seq),
            Self::Missed { left, .. } => check_point(left),
            Self::Space { .. } => Ok(()),
        }
    }

    fn check_members(&self) -> Result<(), FormatError> {
        let &Self::LogStripe { members, .. } = self else { return Ok(()) };
        members.iter().try_for_each(|(member, _)| check_member(&member))
    }

    /// The same as a value of its own.
    fn to_item(self) -> ListItem {
        match self {
            Self::DirtyStripe { stripe, committed } => committed.to_item(stripe),
            Self::LogStripe { first_seq, log_block, log_crcs, members } => ListItem::LogStripe {
                first_seq,
                log_block,
                log_crcs: log_crcs.to_vec(),
                members: members.iter().collect(),
            },
            Self::Delta { stripe, log_block, log_crcs } => {
                ListItem::Delta { stripe, log_block, log_crcs: log_crcs.to_vec() }
            }
            Self::Space { dev, used_count, frontier, freed } => {
                let freed = freed.iter().map(|&chunk| ChunkIndex::new(chunk)).collect();
                ListItem::Space { dev, used_count, frontier, freed }
            }
            Self::OpenStripe { seq, row, log_block } => ListItem::OpenStripe { seq, row, log_block },
            Self::Missed { dev, serial, left, ranges } => {
                ListItem::Missed { dev, serial, left, ranges: ranges.iter().collect() }
            }
        }
    }
}

/// Reads all items of a list: the words of its pages, in order.
pub fn decode_list(words: &[u32]) -> Result<Vec<ListItem>, FormatError> {
    Ok(List::read(words)?.items().map(ItemRef::to_item).collect())
}

#[derive(Clone)]
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

    fn item(&mut self) -> Result<ItemRef<'a>, FormatError> {
        let [counts_low, counts_high, log_count, kind] = self.take_u32()?.to_le_bytes();
        let count = usize::from(u16::from_le_bytes([counts_low, counts_high]));
        let refused = |what: &'static str, found: u64, expected: &'static str| {
            Err(FormatError::Malformed { what, found, expected })
        };
        Ok(match u32::from(kind) {
            DIRTY_STRIPE if log_count == 0 => ItemRef::DirtyStripe {
                stripe: StripeId::new(self.take_u64()?),
                committed: Versions {
                    columns: u16::from_le_bytes([counts_low, counts_high]),
                    bits: None,
                    words: self.take(count * COLUMN_WORDS)?,
                },
            },
            DIRTY_STRIPE => {
                return refused("log devices of a dirty stripe in a checkpoint list", log_count.into(), "0");
            }
            LOG_STRIPE => ItemRef::LogStripe {
                first_seq: Seq::new(self.take_u64()?),
                log_block: ChunkIndex::new(self.take_u32()?),
                log_crcs: self.take(log_count.into())?,
                members: Members(self.take(count * MEMBER_WORDS)?),
            },
            DELTA if count == 0 => ItemRef::Delta {
                stripe: StripeId::new(self.take_u64()?),
                log_block: ChunkIndex::new(self.take_u32()?),
                log_crcs: self.take(log_count.into())?,
            },
            DELTA => return refused("members of a delta in a checkpoint list", count as u64, "0"),
            SPACE if log_count == 0 => {
                let dev = DevIndex::new(u16::from_le_bytes([counts_low, counts_high]));
                let (used_count, frontier) = (self.take_u32()?, self.take_u32()?);
                let count = usize::try_from(self.take_u32()?).unwrap_or(usize::MAX);
                ItemRef::Space { dev, used_count, frontier, freed: self.take(count)? }
            }
            OPEN_STRIPE if count == 0 && log_count == 0 => ItemRef::OpenStripe {
                seq: Seq::new(self.take_u64()?),
                row: self.take_u32()?,
                log_block: ChunkIndex::new(self.take_u32()?),
            },
            MISSED if log_count <= 1 => {
                let dev = DevIndex::new(u16::from_le_bytes([counts_low, counts_high]));
                let (serial, left) = (self.take_u32()?, self.point(log_count == 1)?);
                let count = usize::try_from(self.take_u32()?).unwrap_or(usize::MAX);
                let ranges = Ranges(self.take(count.saturating_mul(RANGE_WORDS))?);
                ItemRef::Missed { dev, serial, left, ranges }
            }
            UPDATED_COLUMNS => {
                let columns = u16::from_le_bytes([counts_low, counts_high]);
                if usize::from(log_count) != bit_words(columns) {
                    let what = "words of bits of a dirty stripe in a checkpoint list";
                    return refused(what, log_count.into(), "a bit for each column");
                }
                let stripe = StripeId::new(self.take_u64()?);
                let bits = self.take(log_count.into())?;
                let updated = bits.iter().map(|bits| bits.count_ones()).sum::<u32>();
                let updated = usize::try_from(updated).unwrap_or(usize::MAX / COLUMN_WORDS);
                let words = self.take(updated * COLUMN_WORDS)?;
                ItemRef::DirtyStripe { stripe, committed: Versions { columns, bits: Some(bits), words } }
            }
            found => return refused("kind of an item of a checkpoint list", found.into(), "1 to 7"),
        })
    }

    fn point(&mut self, was_whole: bool) -> Result<Option<MissedPoint>, FormatError> {
        let [epoch, nonce, config_seq] = [self.take_u64()?, self.take_u64()?, self.take_u64()?];
        match NonZeroU64::new(config_seq) {
            Some(config_seq) => {
                Ok(Some(MissedPoint { epoch: Epoch::new(epoch), nonce, config_seq, was_whole }))
            }
            None if epoch == 0 && nonce == 0 && !was_whole => Ok(None),
            None => Err(FormatError::Malformed {
                what: "epoch of a member that is being rebuilt in a checkpoint list",
                found: epoch,
                expected: "0, and no nonce",
            }),
        }
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
