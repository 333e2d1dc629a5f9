//! The packed form that lists had before there were steps (decision 0072): it is read, and written no more.

use super::{
    Reader, UPDATED_COLUMNS, check, check_log_stripe, check_stripe, join, log_stripe_words, push_log_stripe,
    split,
};
use crate::names::MemberFate;
use crate::record::COPIES_MAX;
use crate::{FormatError, LogMember};
use block::{ChunkIndex, Lcn, Seq, StripeId};

pub(super) const COPIED_CHUNKS: u32 = 11;
pub(super) const UPDATED_STRIPES: u32 = 12;

/// Words of the head of a run, and those of one of its entries: of updated columns, two more for each.
const COPIED_HEAD_WORDS: usize = 4;
const COPIED_WORDS: usize = 4;
/// The columns of an entry are the bits of half a word.
const COLUMNS_MAX: u16 = 16;
/// Bits of the first word of a copied chunk: how far its record and its log chunk are behind those of the
/// entry before, and the highest bits of its logical chunk number.
const STEP_BITS: u32 = 12;

impl<'a> Reader<'a> {
    /// How many words a run stands for, which begins with this one.
    pub(super) fn unpacked_older(&mut self, first: u32) -> Result<usize, FormatError> {
        let [low, high, log_count, kind] = first.to_le_bytes();
        let (entries, before) = (usize::from(u16::from_le_bytes([low, high])), self.words.len());
        if u32::from(kind) == COPIED_CHUNKS {
            self.take(COPIED_HEAD_WORDS + entries * COPIED_WORDS)?;
            let words = log_stripe_words(1, log_count.into());
            return Ok(entries * usize::try_from(words).unwrap_or(usize::MAX));
        }
        self.take_u32()?;
        (0..entries).try_for_each(|_| self.take_updated().map(drop))?;
        // Without the head, and two words more for each.
        Ok(before - self.words.len() - 1 + entries * 2)
    }

    /// An entry of updated columns: the stripe, a bit for each column, their versions.
    fn take_updated(&mut self) -> Result<(u64, u32, &'a [u32]), FormatError> {
        let [low, rest] = [self.take_u32()?, self.take_u32()?];
        let bits = rest & 0xffff;
        let updated = (0..COLUMNS_MAX).filter(|column| bits >> column & 1 == 1).count();
        Ok((join(&[low, rest >> 16]), bits, self.take(updated * super::COLUMN_WORDS)?))
    }

    pub(super) fn unpack_copied(&mut self, out: &mut Vec<u32>) -> Result<(), FormatError> {
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
            block = next.unwrap_or_default();
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

    pub(super) fn unpack_updated(&mut self, out: &mut Vec<u32>) -> Result<(), FormatError> {
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
