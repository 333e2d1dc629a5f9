//! The packed form of a list or of changes of it, which is what checkpoints hold: runs of the two items of
//! which there are many, as bytes, whose numbers are steps from those of the entry before. Who unpacks it
//! gets what was packed.
//!
//! - A run of *log stripes* has them in the order of their records.
//! - A run of *updated columns* is one of dirty stripes with so many columns.

use super::older::{COPIED_CHUNKS, UPDATED_STRIPES};
use super::{
    COLUMN_WORDS, Change, ItemRef, LOG_STRIPE_HEAD_WORDS, MEMBER_WORDS, Members, Reader, UPDATED_COLUMNS,
    Versions, check, check_log_stripe, join, push_log_stripe_head, push_member, split,
};
use crate::names::MemberFate;
use crate::short::{ShortReader, ShortWriter, after, bytes_of, push_bytes, step};
use crate::{FormatError, LCN_LIMIT, LogMember};
use block::planted::{Planted, planted};
use block::{ChunkIndex, Lcn, Seq};

pub(super) const LOG_STRIPES: u32 = 13;
pub(super) const UPDATED: u32 = 14;

/// Words of the head of a run, before its bytes: what it is, the words that it stands for, how many bytes;
/// of log stripes also the number of the first record.
const HEAD_WORDS: usize = 3;
const SEQ_WORDS: usize = 2;
/// Bytes of a run at most.
const RUN_BYTES: usize = 1 << 15;
/// Log chunks, copies of a chunk, that an entry speaks of without their checksums.
const COPIES_MAX: usize = 4;
/// A byte of a run stands for so many words at most: a log stripe that is copied to 4 log devices takes 12,
/// and at least 7 bytes.
const WORDS_PER_BYTE: usize = 2;
/// The columns of an entry are the bits of a word.
const COLUMNS_MAX: u16 = 32;
const FATE_BITS: u32 = 2;

/// How an entry of log stripes begins: twice twice how far its record is behind that of the entry before,
/// plus these.
const IS_COPIED: u64 = 1;
const IS_IN_STEP: u64 = 2;
const FLAG_BITS: u32 = 2;

/// What a run says once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunKind {
    LogStripes { log_count: u8 },
    Updated { columns: u8 },
}

impl RunKind {
    fn head_words(self) -> usize {
        match self {
            Self::LogStripes { .. } => HEAD_WORDS + SEQ_WORDS,
            Self::Updated { .. } => HEAD_WORDS,
        }
    }

    fn first_word(self, entries: u16) -> u32 {
        let (kind, of_all) = match self {
            Self::LogStripes { log_count } => (LOG_STRIPES, log_count),
            Self::Updated { columns } => (UPDATED, columns),
        };
        kind << 24 | u32::from(of_all) << 16 | u32::from(entries)
    }
}

/// An item that runs may have.
enum Entry<'a> {
    LogStripe { seq: u64, block: u32, crcs: &'a [u32], members: Members<'a> },
    Updated { stripe: u64, bits: u32, committed: Versions<'a> },
}

impl<'a> Entry<'a> {
    /// The item at the front of `reader`, if runs may have it.
    fn next(reader: &mut Reader<'a>) -> Option<(RunKind, Self)> {
        match reader.change().expect("what is packed was encoded here") {
            Change::Item(ItemRef::LogStripe { first_seq, log_block, log_crcs, members }, _) => {
                let log_count = u8::try_from(log_crcs.len()).ok()?;
                let (seq, block) = (first_seq.get(), log_block.get());
                Some((
                    RunKind::LogStripes { log_count },
                    Self::LogStripe { seq, block, crcs: log_crcs, members },
                ))
            }
            Change::Item(ItemRef::DirtyStripe { stripe, committed }, _) => {
                let columns = u8::try_from(committed.columns).ok()?;
                let &[bits] = committed.bits? else { return None };
                Some((RunKind::Updated { columns }, Self::Updated { stripe: stripe.get(), bits, committed }))
            }
            Change::Item(..)
            | Change::CleanStripes(_)
            | Change::EndedLogStripes(_)
            | Change::Fates { .. } => None,
        }
    }
}

/// What the steps of a run go on from.
#[derive(Clone, Copy, Default)]
struct Steps {
    seq: u64,
    block: u64,
    lcn: u64,
    chunk: u64,
    stripe: u64,
}

impl Steps {
    fn write(&mut self, entry: &Entry<'_>, out: &mut ShortWriter<'_>) -> Option<()> {
        match *entry {
            Entry::LogStripe { seq, block, crcs, members } => {
                self.log_stripe((seq, block), crcs, members, out)
            }
            Entry::Updated { stripe, bits, committed } => {
                let stretch = stripe.wrapping_sub(self.stripe);
                out.step(&mut self.stripe, stripe);
                out.number(bits.into());
                // Stripes that were written one after the other have their chunks so, too.
                self.chunk = self.chunk.wrapping_add(stretch);
                for version in committed.words.chunks_exact(COLUMN_WORDS) {
                    out.step(&mut self.chunk, version[0].into());
                    out.crc(version[1]);
                }
                Some(())
            }
        }
    }

    /// `None` if it is before the one before.
    fn log_stripe(
        &mut self,
        (seq, block): (u64, u32),
        crcs: &[u32],
        members: Members<'_>,
        out: &mut ShortWriter<'_>,
    ) -> Option<()> {
        let seqs = seq.checked_sub(self.seq).filter(|seqs| seqs >> (64 - FLAG_BITS) == 0)?;
        let is_in_step = u64::from(block) == self.block.wrapping_add(seqs);
        let mut only = members.iter();
        let is_copied = (1..=COPIES_MAX).contains(&crcs.len())
            && only.len() == 1
            && only.all(|(member, fate)| {
                fate == MemberFate::Newest && crcs.iter().all(|&crc| crc == member.crc)
            });
        let flags = if is_copied { IS_COPIED } else { 0 } | if is_in_step { IS_IN_STEP } else { 0 };
        out.number(seqs << FLAG_BITS | flags);
        if !is_in_step {
            out.number(step(self.block, block.into()));
        }
        (self.seq, self.block) = (seq, block.into());
        if !is_copied {
            out.count(members.iter().len());
            crcs.iter().for_each(|&crc| out.crc(crc));
        }
        for (LogMember { lcn, chunk, crc }, fate) in members.iter() {
            let lcn_step = step(self.lcn, lcn.get());
            out.number(if is_copied { lcn_step } else { lcn_step << FATE_BITS | u64::from(fate.code()) });
            self.lcn = lcn.get();
            out.step(&mut self.chunk, chunk.get().into());
            out.crc(crc);
        }
        Some(())
    }
}

/// Packs lists, or changes of them, piece by piece, in room that is kept.
pub struct ListPacker {
    /// Room for the bytes of a run.
    bytes: Vec<u8>,
}

impl Default for ListPacker {
    fn default() -> Self {
        Self { bytes: vec![0; RUN_BYTES] }
    }
}

impl ListPacker {
    /// Appends the packed form of the words of a list, or of a piece of one, which is not longer.
    pub fn pack(&mut self, words: &[u32], out: &mut Vec<u32>) {
        let mut reader = Reader { words };
        while !reader.words.is_empty() {
            pack_run(&mut reader, &mut self.bytes, out);
        }
    }
}

/// Packs as many items as one run has, or one that none has.
fn pack_run(reader: &mut Reader<'_>, bytes: &mut [u8], out: &mut Vec<u32>) {
    let words = reader.words;
    let (mut run, mut first, mut entries, mut used) = (None, 0, 0u16, 0);
    let mut steps = Steps::default();
    while !reader.words.is_empty() && entries < u16::MAX {
        let (before, mut next) = (reader.words, steps);
        let written = Entry::next(reader).and_then(|(kind, entry)| {
            if *run.get_or_insert(kind) != kind {
                return None;
            }
            if let (0, Entry::LogStripe { seq, .. }) = (entries, &entry) {
                (first, next.seq) = (*seq, *seq);
            }
            let mut writer = ShortWriter::new(&mut bytes[used..]);
            next.write(&entry, &mut writer)?;
            writer.finish()
        });
        let Some(written) = written else {
            if entries > 0 {
                reader.words = before;
            }
            break;
        };
        (used, entries, steps) = (used + written, entries + 1, next);
    }
    let taken = &words[..words.len() - reader.words.len()];
    let is_shorter = |run: &RunKind| entries > 0 && run.head_words() + used.div_ceil(4) < taken.len();
    let packed = run.filter(is_shorter);
    let Some(kind) = packed else { return out.extend_from_slice(taken) };
    let stored = |count: usize| u32::try_from(count).expect("a run is short");
    out.extend([kind.first_word(entries), stored(taken.len()), stored(used)]);
    if let RunKind::LogStripes { .. } = kind {
        out.extend(split(first));
    }
    push_bytes(&bytes[..used], out);
}

/// The words of a list, or of changes of it, from their packed form.
pub fn unpack_list(words: &[u32]) -> Result<Vec<u32>, FormatError> {
    let (count, mut out) = (unpacked_words(words)?, Vec::new());
    let has_room = out.try_reserve_exact(count).is_ok();
    let what = "words of a checkpoint list that is unpacked";
    let expected = "as many as there is memory for";
    if !has_room {
        return Err(FormatError::Malformed {
            what,
            found: u64::try_from(count).unwrap_or(u64::MAX),
            expected,
        });
    }
    let (mut reader, mut bytes) = (Reader { words }, Vec::new());
    while let Some(&first) = reader.words.first() {
        match first >> 24 {
            LOG_STRIPES | UPDATED => reader.run()?.unpack(&mut bytes, &mut out)?,
            COPIED_CHUNKS => reader.unpack_copied(&mut out)?,
            UPDATED_STRIPES => reader.unpack_updated(&mut out)?,
            _ => {
                let before = reader.words;
                reader.change()?;
                out.extend_from_slice(&before[..before.len() - reader.words.len()]);
            }
        }
    }
    Ok(out)
}

/// How many there will be, if all can be unpacked.
fn unpacked_words(words: &[u32]) -> Result<usize, FormatError> {
    let (mut reader, mut count) = (Reader { words }, 0);
    while let Some(&first) = reader.words.first() {
        count += match first >> 24 {
            LOG_STRIPES | UPDATED => reader.run()?.unpacked,
            COPIED_CHUNKS | UPDATED_STRIPES => reader.unpacked_older(first)?,
            _ => {
                let before = reader.words.len();
                reader.change()?;
                before - reader.words.len()
            }
        };
    }
    Ok(count)
}

/// A run of foreign bytes.
struct Run<'a> {
    kind: RunKind,
    entries: u16,
    /// Words that it stands for.
    unpacked: usize,
    /// Number of the first record of log stripes.
    first: u64,
    /// Its bytes, four a word, the last of which may have zeros behind them.
    words: &'a [u32],
    used: usize,
}

impl<'a> Reader<'a> {
    fn run(&mut self) -> Result<Run<'a>, FormatError> {
        let head = self.take(HEAD_WORDS)?;
        let [low, high, of_all, kind] = head[0].to_le_bytes();
        let kind = match u32::from(kind) {
            LOG_STRIPES => RunKind::LogStripes { log_count: of_all },
            _ => RunKind::Updated { columns: of_all },
        };
        let first = match kind {
            RunKind::LogStripes { .. } => join(self.take(SEQ_WORDS)?),
            RunKind::Updated { .. } => 0,
        };
        let [unpacked, used] = [head[1], head[2]].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let words = self.take(used.div_ceil(4))?;
        let (what, found) = ("words that a run of a checkpoint list stands for", head[1]);
        check(unpacked <= used * WORDS_PER_BYTE, what, found, "at most two for each byte")?;
        Ok(Run { kind, entries: u16::from_le_bytes([low, high]), unpacked, first, words, used })
    }
}

impl Run<'_> {
    /// Adds the items that it stands for; `bytes` is room.
    fn unpack(&self, bytes: &mut Vec<u8>, out: &mut Vec<u32>) -> Result<(), FormatError> {
        let (used, spare) = bytes_of(self.words, self.used, bytes);
        let steps = Steps { seq: self.first, ..Steps::default() };
        check_log_stripe(Seq::new(self.first))?;
        let mut reader = RunReader { bytes: ShortReader::new(used), steps, left: self.unpacked, out };
        for _ in 0..self.entries {
            match self.kind {
                RunKind::LogStripes { log_count } => reader.log_stripe(log_count)?,
                RunKind::Updated { columns } => reader.updated(columns)?,
            }
        }
        let behind = reader.bytes.rest().len();
        let is_all = reader.left == 0 && behind == 0 && spare.iter().all(|&byte| byte == 0);
        let what = "bytes behind the entries of a run of a checkpoint list";
        let found = u32::try_from(behind).unwrap_or(u32::MAX);
        check(is_all, what, found, "none, and as many words as its head announces")
    }
}

/// Unpacks the entries of a run.
struct RunReader<'a> {
    bytes: ShortReader<'a>,
    steps: Steps,
    /// Words that the run stands for and that are not there yet: for so many there is memory.
    left: usize,
    out: &'a mut Vec<u32>,
}

impl RunReader<'_> {
    /// So many words are added now.
    fn take(&mut self, words: usize) -> Result<(), FormatError> {
        let (what, found) = ("words that a run of a checkpoint list stands for", self.left);
        let found = u32::try_from(found).unwrap_or(u32::MAX);
        check(words <= self.left, what, found, "as many as its entries have")?;
        self.left -= words;
        Ok(())
    }

    fn log_stripe(&mut self, log_count: u8) -> Result<(), FormatError> {
        let Self { bytes, steps, .. } = self;
        let first = bytes.number()?;
        let seqs = first >> FLAG_BITS;
        steps.seq = steps.seq.saturating_add(seqs);
        check_log_stripe(Seq::new(steps.seq))?;
        let block = match first & IS_IN_STEP {
            0 => after(steps.block, bytes.number()?),
            _ => steps.block.wrapping_add(seqs),
        };
        let what = "log block of a log stripe in a run of a checkpoint list";
        check(u32::try_from(block).is_ok(), what, block, "one below 2^32")?;
        if steps.block == 0 || !planted(Planted::CopiedWhereFirstIs) {
            steps.block = block;
        }
        let block = ChunkIndex::new(u32::try_from(steps.block).unwrap_or_default());
        let place = (Seq::new(steps.seq), block);
        if first & IS_COPIED == 0 {
            return self.members(place, log_count);
        }
        let what = "log devices of copied chunks in a checkpoint list";
        check((1..=COPIES_MAX).contains(&log_count.into()), what, log_count, "1 to 4")?;
        let lcn = bytes.step(LCN, &mut steps.lcn, LCN_LIMIT)?;
        let member = self.member(lcn)?;
        self.take(LOG_STRIPE_HEAD_WORDS + usize::from(log_count) + MEMBER_WORDS)?;
        push_log_stripe_head(self.out, place, log_count, 1);
        self.out.extend((0..log_count).map(|_| member.crc));
        push_member(self.out, member, MemberFate::Newest);
        Ok(())
    }

    /// The rest of a log stripe that is not copied.
    fn members(&mut self, place: (Seq, ChunkIndex), log_count: u8) -> Result<(), FormatError> {
        let what = "members of a log stripe in a checkpoint list";
        let count = self.bytes.number_below(what, MEMBERS_LIMIT)?;
        let count = u16::try_from(count).unwrap_or_default();
        self.take(LOG_STRIPE_HEAD_WORDS + usize::from(log_count) + usize::from(count) * MEMBER_WORDS)?;
        push_log_stripe_head(self.out, place, log_count, count);
        for _ in 0..log_count {
            self.out.push(self.bytes.crc()?);
        }
        for _ in 0..count {
            let number = self.bytes.number()?;
            let [low, ..] = number.to_le_bytes();
            let fate = MemberFate::from_code(low & ((1 << FATE_BITS) - 1))?;
            let lcn = after(self.steps.lcn, number >> FATE_BITS);
            check(lcn < LCN_LIMIT, LCN, lcn, "a number below 2^48")?;
            self.steps.lcn = lcn;
            let member = self.member(lcn)?;
            push_member(self.out, member, fate);
        }
        Ok(())
    }

    fn member(&mut self, lcn: u64) -> Result<LogMember, FormatError> {
        let what = "chunk of a log stripe in a checkpoint list";
        let chunk = self.bytes.place(what, &mut self.steps.chunk)?;
        Ok(LogMember { lcn: Lcn::new(lcn), chunk: ChunkIndex::new(chunk), crc: self.bytes.crc()? })
    }

    fn updated(&mut self, columns: u8) -> Result<(), FormatError> {
        let is_good = (1..=COLUMNS_MAX).contains(&columns.into());
        check(is_good, "columns of updated stripes in a checkpoint list", columns, "1 to 32")?;
        let before = self.steps.stripe;
        let what = "stripe of a checkpoint list";
        let stripe = self.bytes.step(what, &mut self.steps.stripe, LCN_LIMIT)?;
        let what = "bits of columns in a checkpoint list";
        let bits = u32::try_from(self.bytes.number_below(what, 1 << COLUMNS_MAX)?).unwrap_or_default();
        let [low, high] = split(stripe);
        let versions = usize::try_from(bits.count_ones()).unwrap_or_default();
        self.take(4 + versions * COLUMN_WORDS)?;
        self.out.extend([UPDATED_COLUMNS << 24 | 1 << 16 | u32::from(columns), low, high, bits]);
        self.steps.chunk = self.steps.chunk.wrapping_add(stripe.wrapping_sub(before));
        for _ in 0..versions {
            let what = "chunk of a column in a checkpoint list";
            let chunk = self.bytes.place(what, &mut self.steps.chunk)?;
            self.out.extend([chunk, self.bytes.crc()?]);
        }
        Ok(())
    }
}

/// A log stripe comes from one frame, which has fewer members.
const MEMBERS_LIMIT: u64 = 1 << 16;
const LCN: &str = "logical chunk of a checkpoint list";

#[cfg(test)]
mod tests;
