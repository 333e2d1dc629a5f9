//! The packed form of a list or of changes of it, which is what checkpoints hold: runs of the two items of
//! which there are many say once what is the same in all of them. Who unpacks it gets what was packed.
//!
//! - A run of *copied chunks* is one of log stripes of one chunk each, in the order of the log, whose log
//!   chunks have the checksum of that chunk, being copies of it. It is the newest version: else they were
//!   not needed.
//! - A run of *updated columns* is one of dirty stripes with so many columns.

use super::{
    Change, ItemRef, Reader, UPDATED_COLUMNS, check_log_stripe, check_stripe, join, log_stripe_words,
    push_log_stripe, split,
};
use crate::names::MemberFate;
use crate::record::COPIES_MAX;
use crate::{FormatError, LogMember};
use block::planted::{Planted, planted};
use block::{ChunkIndex, Lcn, Seq, StripeId};
use std::ops::Range;

pub(super) const COPIED_CHUNKS: u32 = 11;
pub(super) const UPDATED_STRIPES: u32 = 12;

/// Words of the head of a run, and those of one of its entries: of updated columns, two more for each.
const COPIED_HEAD_WORDS: usize = 4;
const COPIED_WORDS: usize = 4;
const UPDATED_WORDS: usize = 2;
/// The columns of an entry are the bits of half a word.
const COLUMNS_MAX: u16 = 16;
/// Bits of the first word of a copied chunk: how far its record and its log chunk are behind those of the
/// entry before, and the highest bits of its logical chunk number.
const STEP_BITS: u32 = 12;
const LCN_HIGH_BITS: u32 = 8;
const ENTRIES_MAX: u32 = 0xffff;

/// An item that runs may have.
#[derive(Clone, Copy)]
struct CopiedChunk {
    seq: u64,
    block: u32,
    log_count: usize,
    member: LogMember,
}

enum Entry {
    Copied(CopiedChunk),
    Updated {
        stripe: u64,
        columns: u16,
        bits: u32,
        /// Its versions, among the words of the list.
        versions: Range<usize>,
    },
}

/// A run that is being written: its head, and what the next entry is beside.
#[derive(Clone, Copy)]
enum Run {
    Copied { head: usize, last: CopiedChunk },
    Updated { head: usize, columns: u16 },
}

impl Entry {
    /// The item at the front of `words`, which lie at `at`, if runs may have it, and its length.
    fn at(words: &[u32], at: usize) -> (Option<Self>, usize) {
        let mut reader = Reader { words: &words[at..] };
        let change = reader.change().expect("what is packed was encoded here");
        let end = words.len() - reader.words.len();
        let entry = match change {
            Change::Item(ItemRef::LogStripe { first_seq, log_block, log_crcs, members }, _) => {
                let only = members.iter().next().filter(|_| members.iter().len() == 1);
                let may_be = only.filter(|&(member, fate)| {
                    fate == MemberFate::Newest
                        && (1..=COPIES_MAX).contains(&log_crcs.len())
                        && log_crcs.iter().all(|&crc| crc == member.crc)
                        && member.lcn.get() >> (32 + LCN_HIGH_BITS) == 0
                });
                may_be.map(|(member, _)| {
                    let (seq, block, log_count) = (first_seq.get(), log_block.get(), log_crcs.len());
                    Self::Copied(CopiedChunk { seq, block, log_count, member })
                })
            }
            Change::Item(ItemRef::DirtyStripe { stripe, committed }, _) => match committed.bits {
                Some(&[bits]) if (1..=COLUMNS_MAX).contains(&committed.columns) => {
                    let (columns, versions) = (committed.columns, end - committed.words.len()..end);
                    Some(Self::Updated { stripe: stripe.get(), columns, bits, versions })
                }
                Some(_) | None => None,
            },
            Change::Item(..)
            | Change::CleanStripes(_)
            | Change::EndedLogStripes(_)
            | Change::Fates { .. } => None,
        };
        (entry, end - at)
    }
}

impl CopiedChunk {
    /// How far its record and its log chunk are behind those of the entry before, if it may follow that.
    fn steps(&self, last: &Self) -> Option<[u32; 2]> {
        let seqs = u32::try_from(self.seq.checked_sub(last.seq)?).ok()?;
        let steps = [seqs, self.block.checked_sub(last.block)?];
        let fit = steps.iter().all(|step| step >> STEP_BITS == 0) && self.log_count == last.log_count;
        fit.then_some(steps)
    }

    fn words(&self, [seqs, blocks]: [u32; 2]) -> [u32; COPIED_WORDS] {
        let [low, high] = split(self.member.lcn.get());
        let first = seqs | blocks << STEP_BITS | high << (2 * STEP_BITS);
        [first, low, self.member.chunk.get(), self.member.crc]
    }
}

/// The words of a list, or of changes of it, become their packed form, which is not longer.
pub fn pack_list(words: &mut Vec<u32>) {
    let (mut run, mut at, mut out) = (None, 0, 0);
    while at < words.len() {
        let (entry, len) = Entry::at(words, at);
        (run, out) = match entry {
            Some(Entry::Copied(entry)) => pack_copied(words, out, run, entry),
            Some(Entry::Updated { stripe, columns, bits, versions }) => {
                pack_updated(words, out, run, (stripe, columns, bits, versions))
            }
            None => {
                words.copy_within(at..at + len, out);
                (None, out + len)
            }
        };
        at += len;
    }
    words.truncate(out);
}

/// Counts one more entry of a run, if there can be.
fn count(words: &mut [u32], head: usize) -> bool {
    let has_room = words[head] & ENTRIES_MAX < ENTRIES_MAX;
    words[head] += u32::from(has_room);
    has_room
}

/// Writes an entry at `out`, behind the run there or as the first of one; what is behind it.
fn pack_copied(
    words: &mut [u32],
    mut out: usize,
    run: Option<Run>,
    entry: CopiedChunk,
) -> (Option<Run>, usize) {
    let (head, steps) = match run {
        Some(Run::Copied { head, last }) => (head, entry.steps(&last).filter(|_| count(words, head))),
        Some(Run::Updated { .. }) | None => (out, None),
    };
    let (head, steps) = if let Some(steps) = steps {
        (head, steps)
    } else {
        let [low, high] = split(entry.seq);
        let log_count = u32::try_from(entry.log_count).expect("at most 15");
        let first = COPIED_CHUNKS << 24 | log_count << 16 | 1;
        words[out..out + COPIED_HEAD_WORDS].copy_from_slice(&[first, low, high, entry.block]);
        out += COPIED_HEAD_WORDS;
        (out - COPIED_HEAD_WORDS, [0; 2])
    };
    words[out..out + COPIED_WORDS].copy_from_slice(&entry.words(steps));
    (Some(Run::Copied { head, last: entry }), out + COPIED_WORDS)
}

/// The same of updated columns.
fn pack_updated(
    words: &mut [u32],
    mut out: usize,
    run: Option<Run>,
    (stripe, columns, bits, versions): (u64, u16, u32, Range<usize>),
) -> (Option<Run>, usize) {
    let head = match run {
        Some(Run::Updated { head, columns: of_run }) if of_run == columns && count(words, head) => head,
        Some(_) | None => {
            words[out] = UPDATED_STRIPES << 24 | u32::from(columns) << 16 | 1;
            out += 1;
            out - 1
        }
    };
    let [low, high] = split(stripe);
    words[out..out + UPDATED_WORDS].copy_from_slice(&[low, high << 16 | bits]);
    let (start, len) = (out + UPDATED_WORDS, versions.len());
    words.copy_within(versions, start);
    (Some(Run::Updated { head, columns }), start + len)
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
    let mut reader = Reader { words };
    while let Some(&first) = reader.words.first() {
        match first >> 24 {
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
        let [low, high, log_count, kind] = first.to_le_bytes();
        let entries = usize::from(u16::from_le_bytes([low, high]));
        let before = reader.words.len();
        match kind.into() {
            COPIED_CHUNKS => {
                reader.take(COPIED_HEAD_WORDS + entries * COPIED_WORDS)?;
                let words = log_stripe_words(1, log_count.into());
                count += entries * usize::try_from(words).unwrap_or(usize::MAX);
            }
            UPDATED_STRIPES => {
                reader.take_u32()?;
                (0..entries).try_for_each(|_| reader.take_updated().map(drop))?;
                // Without the head, and two words more for each.
                count += before - reader.words.len() - 1 + entries * 2;
            }
            _ => {
                reader.change()?;
                count += before - reader.words.len();
            }
        }
    }
    Ok(count)
}

impl<'a> Reader<'a> {
    /// An entry of updated columns: the stripe, a bit for each column, their versions.
    fn take_updated(&mut self) -> Result<(u64, u32, &'a [u32]), FormatError> {
        let [low, rest] = [self.take_u32()?, self.take_u32()?];
        let bits = rest & 0xffff;
        let updated = (0..COLUMNS_MAX).filter(|column| bits >> column & 1 == 1).count();
        Ok((join(&[low, rest >> 16]), bits, self.take(updated * super::COLUMN_WORDS)?))
    }

    fn unpack_copied(&mut self, out: &mut Vec<u32>) -> Result<(), FormatError> {
        let head = self.take(COPIED_HEAD_WORDS)?;
        let [low, high, log_count, _] = head[0].to_le_bytes();
        let log_count = usize::from(log_count);
        check(
            (1..=COPIES_MAX).contains(&log_count),
            "log devices of copied chunks in a checkpoint list",
            head[0],
            "1 to 15",
        )?;
        let (mut seq, mut block) = (join(&head[1..]), head[3]);
        for words in
            self.take(usize::from(u16::from_le_bytes([low, high])) * COPIED_WORDS)?.chunks_exact(COPIED_WORDS)
        {
            let steps = [words[0], words[0] >> STEP_BITS].map(|bits| bits & ((1 << STEP_BITS) - 1));
            seq = seq.saturating_add(steps[0].into());
            check_log_stripe(Seq::new(seq))?;
            let next = block.checked_add(steps[1]);
            check(
                next.is_some(),
                "log block of a copied chunk in a checkpoint list",
                block,
                "one below 2^32",
            )?;
            if !planted(Planted::CopiedWhereFirstIs) {
                block = next.unwrap_or_default();
            }
            let lcn = Lcn::new(join(&[words[1], words[0] >> (2 * STEP_BITS)]));
            let member = LogMember { lcn, chunk: ChunkIndex::new(words[2]), crc: words[3] };
            let crcs = &[member.crc; COPIES_MAX][..log_count];
            push_log_stripe(
                out,
                (Seq::new(seq), ChunkIndex::new(block)),
                crcs,
                [(member, MemberFate::Newest)].into_iter(),
            );
        }
        Ok(())
    }

    fn unpack_updated(&mut self, out: &mut Vec<u32>) -> Result<(), FormatError> {
        let first = self.take_u32()?;
        let [low, high, columns, _] = first.to_le_bytes();
        let is_good = (1..=COLUMNS_MAX).contains(&columns.into());
        check(is_good, "columns of updated stripes in a checkpoint list", first, "1 to 16")?;
        for _ in 0..u16::from_le_bytes([low, high]) {
            let (stripe, bits, versions) = self.take_updated()?;
            check_stripe(StripeId::new(stripe))?;
            let [low, high] = split(stripe);
            out.extend([UPDATED_COLUMNS << 24 | 1 << 16 | u32::from(columns), low, high, bits]);
            out.extend_from_slice(versions);
        }
        Ok(())
    }
}

fn check(holds: bool, what: &'static str, found: u32, expected: &'static str) -> Result<(), FormatError> {
    if holds { Ok(()) } else { Err(FormatError::Malformed { what, found: found.into(), expected }) }
}

#[cfg(test)]
mod tests;
