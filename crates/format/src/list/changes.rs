//! What changed of a checkpoint's list since the checkpoint before.
//!
//! Stripes that are dirty no more and log stripes that are needed no more are named, dirty stripes that
//! changed and new log stripes are there as a whole, of other log stripes that changed the fates of their
//! members. Items of all other kinds are said again: those of lists before count no longer.

use super::{ItemRef, Reader, assert_readable, check_log_stripe, check_stripe, join, split};
use crate::FormatError;
use crate::names::MemberFate;
use block::{Seq, StripeId};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

const CLEAN_STRIPES: u32 = 8;
const ENDED_LOG_STRIPES: u32 = 9;
const FATES: u32 = 10;

/// Words of a number of a stripe or a record.
const NUMBER_WORDS: usize = 2;
const FATE_BITS: usize = 2;
const FATES_PER_WORD: usize = 32 / FATE_BITS;

/// The words of changes that can be read, all of them.
#[derive(Clone, Copy, Debug)]
pub struct Changes<'a>(&'a [u32]);

/// A change as it lies in its list.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// An item as it is now, and its words.
    Item(ItemRef<'a>, &'a [u32]),
    /// Stripes that are not dirty any more, if nothing behind says otherwise.
    CleanStripes(Numbers<'a>),
    /// Log stripes that are not needed any more.
    EndedLogStripes(Numbers<'a>),
    /// What became of the members of a log stripe that was there before.
    Fates {
        /// Sequence number of its record.
        first_seq: Seq,
        /// One of each member.
        fates: Fates<'a>,
    },
}

/// Numbers of stripes or records, as they lie in a list.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a>(&'a [u32]);

impl<'a> Numbers<'a> {
    /// Each of them.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u64> + Clone + use<'a> {
        self.0.chunks_exact(NUMBER_WORDS).map(join)
    }
}

/// Fates of the members of a log stripe, as they lie in a list.
#[derive(Clone, Copy, Debug)]
pub struct Fates<'a> {
    count: usize,
    words: &'a [u32],
}

impl<'a> Fates<'a> {
    /// One of each member.
    pub fn iter(self) -> impl ExactSizeIterator<Item = MemberFate> + Clone + use<'a> {
        (0..self.count).map(move |index| self.fate(index).expect("looked at when it was read"))
    }

    fn fate(self, index: usize) -> Result<MemberFate, FormatError> {
        let bits = self.words[index / FATES_PER_WORD] >> (index % FATES_PER_WORD * FATE_BITS);
        let [code, ..] = (bits & ((1 << FATE_BITS) - 1)).to_le_bytes();
        MemberFate::from_code(code)
    }

    fn check(self) -> Result<(), FormatError> {
        (0..self.count).try_for_each(|index| self.fate(index).map(|_| ()))?;
        let used = self.count % FATES_PER_WORD * FATE_BITS;
        match self.words.last() {
            Some(&last) if used > 0 && last >> used != 0 => Err(FormatError::Malformed {
                what: "fates of a log stripe in a checkpoint list",
                found: last.into(),
                expected: "none behind the last member",
            }),
            Some(_) | None => Ok(()),
        }
    }
}

impl<'a> Changes<'a> {
    /// Looks at all changes: the words of their pages, in order.
    pub fn read(words: &'a [u32]) -> Result<Self, FormatError> {
        let mut reader = Reader { words };
        while !reader.words.is_empty() {
            match reader.change()? {
                Change::Item(item, _) => item.check()?,
                Change::CleanStripes(stripes) => {
                    stripes.iter().try_for_each(|stripe| check_stripe(StripeId::new(stripe)))?;
                }
                Change::EndedLogStripes(seqs) => {
                    seqs.iter().try_for_each(|seq| check_log_stripe(Seq::new(seq)))?;
                }
                Change::Fates { first_seq, fates } => {
                    check_log_stripe(first_seq)?;
                    fates.check()?;
                }
            }
        }
        Ok(Self(words))
    }

    /// Each of them, in order.
    pub fn iter(self) -> impl Iterator<Item = Change<'a>> + Clone + use<'a> {
        let mut reader = Reader { words: self.0 };
        std::iter::from_fn(move || {
            let is_left = !reader.words.is_empty();
            is_left.then(|| reader.change().expect("looked at when it was read"))
        })
    }
}

impl<'a> Reader<'a> {
    pub(super) fn change(&mut self) -> Result<Change<'a>, FormatError> {
        let words = self.words;
        let first = words.first().copied().unwrap_or_default();
        let [counts_low, counts_high, rest, kind] = first.to_le_bytes();
        let (kind, count) = (u32::from(kind), u16::from_le_bytes([counts_low, counts_high]));
        if !(CLEAN_STRIPES..=FATES).contains(&kind) {
            let item = self.item()?;
            return Ok(Change::Item(item, &words[..words.len() - self.words.len()]));
        }
        self.take_u32()?;
        if rest != 0 || (kind != FATES && count != 0) {
            return Err(FormatError::Malformed {
                what: "first word of a change of a checkpoint list",
                found: first.into(),
                expected: "its kind, and of fates how many",
            });
        }
        if kind == FATES {
            let (first_seq, count) = (Seq::new(self.take_u64()?), usize::from(count));
            let fates = Fates { count, words: self.take(count.div_ceil(FATES_PER_WORD))? };
            return Ok(Change::Fates { first_seq, fates });
        }
        let count = usize::try_from(self.take_u32()?).unwrap_or(usize::MAX);
        let numbers = Numbers(self.take(count.saturating_mul(NUMBER_WORDS))?);
        Ok(if kind == CLEAN_STRIPES {
            Change::CleanStripes(numbers)
        } else {
            Change::EndedLogStripes(numbers)
        })
    }
}

/// Appends the words of [`Change::CleanStripes`]; nothing if there is none.
pub fn push_clean_stripes(words: &mut Vec<u32>, stripes: impl ExactSizeIterator<Item = StripeId>) {
    let stripes = stripes.map(|stripe| {
        assert_readable(check_stripe(stripe));
        stripe.get()
    });
    push_numbers(words, CLEAN_STRIPES, stripes);
}

/// Appends the words of [`Change::EndedLogStripes`]; nothing if there is none.
pub fn push_ended_log_stripes(words: &mut Vec<u32>, seqs: impl ExactSizeIterator<Item = Seq>) {
    let seqs = seqs.map(|seq| {
        assert_readable(check_log_stripe(seq));
        seq.get()
    });
    push_numbers(words, ENDED_LOG_STRIPES, seqs);
}

fn push_numbers(words: &mut Vec<u32>, kind: u32, numbers: impl ExactSizeIterator<Item = u64>) {
    if numbers.len() > 0 {
        let count = u32::try_from(numbers.len()).expect("a list has fewer items than 2^32");
        words.extend([kind << 24, count]);
        words.extend(numbers.flat_map(split));
    }
}

/// Appends the words of [`Change::Fates`].
pub fn push_fates(words: &mut Vec<u32>, first_seq: Seq, fates: impl ExactSizeIterator<Item = MemberFate>) {
    assert_readable(check_log_stripe(first_seq));
    let count = u16::try_from(fates.len()).expect("a log stripe comes from one frame");
    let [low, high] = split(first_seq.get());
    words.extend([FATES << 24 | u32::from(count), low, high]);
    let start = words.len();
    words.resize(start + usize::from(count).div_ceil(FATES_PER_WORD), 0);
    for (index, fate) in fates.enumerate() {
        let shift = index % FATES_PER_WORD * FATE_BITS;
        words[start + index / FATES_PER_WORD] |= u32::from(fate.code()) << shift;
    }
}

/// What changes say of a log stripe.
#[derive(Clone, Copy, Default)]
struct LogStripeNow<'a> {
    /// Its words, if it came since.
    whole: Option<&'a [u32]>,
    is_ended: bool,
    fates: Option<Fates<'a>>,
}

/// A hash of numbers of stripes and records, which are spread by it well enough.
#[derive(Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

type ByNumber<T> = HashMap<u64, T, BuildHasherDefault<NumberHasher>>;

/// What a list and changes say together, the newest last.
#[derive(Default)]
struct Folded<'a> {
    /// Dirty stripes of which changes speak: none if one is clean now.
    stripes: ByNumber<Option<&'a [u32]>>,
    log_stripes: ByNumber<LogStripeNow<'a>>,
    /// Those that came since, in the order in which they did; more than once if they went meanwhile.
    new_stripes: Vec<u64>,
    new_log_stripes: Vec<u64>,
    /// Items of all other kinds, of the newest that says something.
    others: Vec<&'a [u32]>,
}

impl<'a> Folded<'a> {
    fn take(&mut self, changes: Changes<'a>) {
        self.others.clear();
        for change in changes.iter() {
            match change {
                Change::CleanStripes(stripes) => {
                    stripes.iter().for_each(|stripe| _ = self.stripes.insert(stripe, None));
                }
                Change::EndedLogStripes(seqs) => {
                    let ended = LogStripeNow { is_ended: true, ..LogStripeNow::default() };
                    seqs.iter().for_each(|seq| _ = self.log_stripes.insert(seq, ended));
                }
                Change::Fates { first_seq, fates } => {
                    self.log_stripes.entry(first_seq.get()).or_default().fates = Some(fates);
                }
                Change::Item(ItemRef::DirtyStripe { stripe, .. }, words) => {
                    self.stripes.insert(stripe.get(), Some(words));
                    self.new_stripes.push(stripe.get());
                }
                Change::Item(ItemRef::LogStripe { first_seq, .. }, words) => {
                    let whole = LogStripeNow { whole: Some(words), ..LogStripeNow::default() };
                    self.log_stripes.insert(first_seq.get(), whole);
                    self.new_log_stripes.push(first_seq.get());
                }
                Change::Item(
                    ItemRef::Delta { .. }
                    | ItemRef::Space { .. }
                    | ItemRef::OpenStripe { .. }
                    | ItemRef::Missed { .. },
                    words,
                ) => self.others.push(words),
            }
        }
    }

    /// Whether an item that was there before the changes is what it was.
    fn keeps(&self, item: ItemRef<'_>) -> bool {
        match item {
            ItemRef::DirtyStripe { stripe, .. } => !self.stripes.contains_key(&stripe.get()),
            ItemRef::LogStripe { first_seq, .. } => !self.log_stripes.contains_key(&first_seq.get()),
            ItemRef::Delta { .. }
            | ItemRef::Space { .. }
            | ItemRef::OpenStripe { .. }
            | ItemRef::Missed { .. } => false,
        }
    }

    /// An item that was there before the changes, if it is not kept; appends what it is now.
    fn settle(&mut self, item: ItemRef<'_>, words: &[u32], out: &mut Vec<u32>) -> Result<(), FormatError> {
        match item {
            ItemRef::DirtyStripe { stripe, .. } => {
                out.extend_from_slice(self.stripes.remove(&stripe.get()).flatten().unwrap_or_default());
            }
            ItemRef::LogStripe { first_seq, .. } => {
                if let Some(now) = self.log_stripes.remove(&first_seq.get()) {
                    push_settled(now, words, out)?;
                }
            }
            ItemRef::Delta { .. }
            | ItemRef::Space { .. }
            | ItemRef::OpenStripe { .. }
            | ItemRef::Missed { .. } => {}
        }
        Ok(())
    }
}

/// Appends a log stripe as it is now, which was there with these words.
fn push_settled(now: LogStripeNow<'_>, words: &[u32], out: &mut Vec<u32>) -> Result<(), FormatError> {
    if now.is_ended {
        return if now.fates.is_none() { Ok(()) } else { Err(unknown(now)) };
    }
    let start = out.len();
    out.extend_from_slice(now.whole.unwrap_or(words));
    let Some(fates) = now.fates else { return Ok(()) };
    let [low, high, ..] = out.get(start).copied().unwrap_or_default().to_le_bytes();
    if usize::from(u16::from_le_bytes([low, high])) != fates.count {
        return Err(unknown(now));
    }
    let first = out.len() - fates.count * super::MEMBER_WORDS;
    for (member, fate) in out[first..].chunks_exact_mut(super::MEMBER_WORDS).zip(fates.iter()) {
        let lcn_high = member[1] & !(u32::from(u8::MAX) << super::FATE_SHIFT);
        member[1] = lcn_high | u32::from(fate.code()) << super::FATE_SHIFT;
    }
    Ok(())
}

fn unknown(now: LogStripeNow<'_>) -> FormatError {
    FormatError::Malformed {
        what: "members of a log stripe whose fates changed in a checkpoint list",
        found: now.fates.map_or(0, |fates| u64::try_from(fates.count).unwrap_or(u64::MAX)),
        expected: "as many as it has, in a list before",
    }
}

/// The words of a list after changes, the oldest first. Dirty stripes and log stripes that came since are
/// behind those that were there, in the order in which they came.
pub fn fold_list<'a>(
    list: &'a [u32],
    changes: impl Iterator<Item = &'a [u32]>,
) -> Result<Vec<u32>, FormatError> {
    let (mut folded, mut before) = (Folded::default(), Reader { words: list });
    let mut is_changed = false;
    for words in changes {
        folded.take(Changes::read(words)?);
        is_changed = true;
    }
    if !is_changed {
        return Ok(list.to_vec());
    }
    let (mut out, mut kept_from) = (Vec::with_capacity(list.len()), 0);
    while !before.words.is_empty() {
        let start = list.len() - before.words.len();
        let item = before.item()?;
        if !folded.keeps(item) {
            let end = list.len() - before.words.len();
            out.extend_from_slice(&list[kept_from..start]);
            folded.settle(item, &list[start..end], &mut out)?;
            kept_from = end;
        }
    }
    out.extend_from_slice(&list[kept_from..]);
    for stripe in &folded.new_stripes {
        out.extend_from_slice(folded.stripes.remove(stripe).flatten().unwrap_or_default());
    }
    for seq in &folded.new_log_stripes {
        let Some(now) = folded.log_stripes.remove(seq) else { continue };
        push_settled(now, &[], &mut out)?;
    }
    if let Some(left) = folded.log_stripes.into_values().find(|now| !now.is_ended || now.fates.is_some()) {
        return Err(unknown(left));
    }
    folded.others.iter().for_each(|words| out.extend_from_slice(words));
    Ok(out)
}

#[cfg(test)]
mod tests;
