//! Patches: what changed on pages of the table, packed into pages of an incremental checkpoint.
//!
//! Words of a page of the table change in groups of two, place and checksum of a chunk. A patch says which
//! groups of a page changed, a bit each, and what they hold now. It lies on one page of the checkpoint, as
//! many after each other as fit.

use crate::{FormatError, PAGE_WORDS};
use block::set_bits;

mod packed;

pub(crate) use packed::PACKED_TABLE;
pub use packed::{PatchHeads, decode_packed_patches};

/// Words of a group.
pub const GROUP_WORDS: usize = 2;

/// Groups of a page of the table.
pub const PAGE_GROUPS: usize = PAGE_WORDS / GROUP_WORDS;

/// 32-bit words that a bit for each group takes.
const BIT_WORDS: usize = PAGE_GROUPS.div_ceil(32);
const _: () = assert!(BIT_WORDS.is_multiple_of(2));

/// Words of a patch before its bits: the index of the page, and which words of bits follow.
const HEAD_WORDS: usize = 2;

/// Word by word, what a patch is.
pub(crate) const PATCH_TABLE: (&str, &[(&str, &str)]) = (
    "patch",
    &[
        ("0", "index of the page in the table"),
        ("1", "bit i = word i of the bits below is there, and not 0; bits 16 to 31 are 0"),
        ("2 ...", "bit b of word i = words 64 i + 2 b and 64 i + 2 b + 1 of the page changed"),
        ("...", "the words that changed, as they are now, in order"),
    ],
);

/// Which groups of a page changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupBits([u32; BIT_WORDS]);

impl GroupBits {
    /// None.
    pub const NONE: Self = Self([0; BIT_WORDS]);

    /// All of a page.
    pub fn all() -> Self {
        let mut bits = Self([u32::MAX; BIT_WORDS]);
        bits.0[BIT_WORDS - 1] = u32::MAX >> (BIT_WORDS * 32 - PAGE_GROUPS);
        bits
    }

    /// The group of a word changed.
    #[inline]
    pub fn set_word(&mut self, word: usize) {
        let group = word / GROUP_WORDS;
        self.0[group / 32] |= 1 << (group % 32);
    }

    /// The groups that changed, in order.
    pub fn groups(&self) -> impl Iterator<Item = usize> {
        (0..)
            .zip(self.0)
            .flat_map(|(word, bits): (usize, u32)| set_bits(bits.into()).map(move |bit| word * 32 + bit))
    }

    /// How many changed.
    pub fn count(&self) -> usize {
        // Two words at a time: not every processor counts bits by itself.
        let pairs = self.0.as_chunks::<2>().0.iter();
        index(pairs.map(|&[low, high]| (u64::from(high) << 32 | u64::from(low)).count_ones()).sum())
    }

    /// The same without the last one.
    pub fn without_last(mut self) -> Self {
        if let Some(last) = self.groups().last() {
            self.0[last / 32] &= !(1 << (last % 32));
        }
        self
    }

    /// Words of a patch of these groups.
    pub fn patch_words(&self) -> usize {
        let bit_words = self.0.iter().filter(|&&bits| bits != 0).count();
        HEAD_WORDS + bit_words + self.count() * GROUP_WORDS
    }

    /// Writes the patch of a page to the beginning of `out`, which has room for it.
    pub fn encode_patch(&self, index: usize, page: &[u32; PAGE_WORDS], out: &mut [u32]) {
        let there = |i: usize| u32::from(self.0[i] != 0) << i;
        let index = u32::try_from(index).expect("a table has fewer pages than 2^32");
        let (head, words) = out[..self.patch_words()].split_at_mut(HEAD_WORDS);
        head.copy_from_slice(&[index, (0..BIT_WORDS).map(there).sum()]);
        let (bits, groups) = words.split_at_mut(words.len() - self.count() * GROUP_WORDS);
        let there = self.0.into_iter().filter(|&bits| bits != 0);
        bits.iter_mut().zip(there).for_each(|(out, bits)| *out = bits);
        for (out, group) in groups.chunks_exact_mut(GROUP_WORDS).zip(self.groups()) {
            out.copy_from_slice(&page[group * GROUP_WORDS..][..GROUP_WORDS]);
        }
    }
}

/// What changed on one page of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patch<'a> {
    /// Index of the page in the table.
    pub index: usize,
    /// Which groups changed.
    pub groups: GroupBits,
    /// What they hold now, one after the other.
    pub words: &'a [u32],
}

impl Patch<'_> {
    /// Changes a page to what it was when the checkpoint was taken.
    pub fn apply(&self, page: &mut [u32; PAGE_WORDS]) {
        for (group, words) in self.groups.groups().zip(self.words.chunks_exact(GROUP_WORDS)) {
            page[group * GROUP_WORDS..][..GROUP_WORDS].copy_from_slice(words);
        }
    }
}

/// A number of a group.
fn index(group: u32) -> usize {
    usize::try_from(group).expect("a page has few groups")
}

/// Reads the patches of a page of a checkpoint.
pub fn decode_patches(mut words: &[u32]) -> Result<Vec<Patch<'_>>, FormatError> {
    let mut patches = Vec::new();
    while !words.is_empty() {
        let head = take(&mut words, HEAD_WORDS)?;
        let (index, there) = (head[0] as usize, head[1]);
        if there == 0 || there >> BIT_WORDS != 0 {
            let what = "words of bits of a patch";
            return Err(FormatError::Malformed {
                what,
                found: there.into(),
                expected: "bits 0 to 15, not 0",
            });
        }
        let is_there = (0..BIT_WORDS).filter(|i| there >> i & 1 == 1);
        let mut bits = take(&mut words, is_there.clone().count())?.iter();
        let mut groups = GroupBits::NONE;
        is_there.zip(&mut bits).for_each(|(i, &bits)| groups.0[i] = bits);
        let outside = (groups.0.iter().zip(GroupBits::all().0)).find(|(bits, all)| **bits & !all != 0);
        let none = (0..BIT_WORDS).any(|i| there >> i & 1 == 1 && groups.0[i] == 0);
        if outside.is_some() || none {
            let found = outside.map_or(0, |(bits, _)| u64::from(*bits));
            let what = "groups of a patch";
            return Err(FormatError::Malformed { what, found, expected: "bits of groups 0 to 499, not 0" });
        }
        let count = groups.count() * GROUP_WORDS;
        patches.push(Patch { index, groups, words: take(&mut words, count)? });
    }
    Ok(patches)
}

fn take<'a>(words: &mut &'a [u32], count: usize) -> Result<&'a [u32], FormatError> {
    let (taken, rest) = words.split_at_checked(count).ok_or(FormatError::Malformed {
        what: "words left for a patch",
        found: words.len() as u64,
        expected: "as many as its bits announce",
    })?;
    *words = rest;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> [u32; PAGE_WORDS] {
        std::array::from_fn(|i| u32::try_from(7000 + i).unwrap())
    }

    fn bits(words: &[usize]) -> GroupBits {
        let mut bits = GroupBits::NONE;
        words.iter().for_each(|&word| bits.set_word(word));
        bits
    }

    fn encoded(index: usize, bits: GroupBits) -> Vec<u32> {
        let mut words = vec![0; bits.patch_words()];
        bits.encode_patch(index, &page(), &mut words);
        words
    }

    #[test]
    fn one_changed_chunk_takes_five_words() {
        assert_eq!(encoded(9, bits(&[67])), [9, 1 << 1, 1 << 1, 7066, 7067]);
    }

    #[test]
    fn patches_come_back_and_change_nothing_else() {
        let (one, two) = (bits(&[0, 1, 63, 64, 999]), GroupBits::all());
        let mut words = encoded(3, one);
        words.extend(encoded(4, bits(&[998])));
        let patches = decode_patches(&words).unwrap();
        assert_eq!(patches.iter().map(|patch| patch.index).collect::<Vec<_>>(), [3, 4]);
        let mut changed = [0; PAGE_WORDS];
        patches[0].apply(&mut changed);
        for (word, &found) in changed.iter().enumerate() {
            let is_changed = [0, 1, 62, 63, 64, 65, 998, 999].contains(&word);
            assert_eq!(found, if is_changed { page()[word] } else { 0 }, "word {word}");
        }
        assert_eq!((two.groups().count(), two.patch_words()), (PAGE_GROUPS, 2 + 16 + PAGE_WORDS));
        let whole = encoded(5, two);
        decode_patches(&whole).unwrap()[0].apply(&mut changed);
        assert_eq!(changed, page());
    }

    #[test]
    fn what_is_no_patch_is_refused() {
        let good = encoded(3, bits(&[5, 700]));
        assert!(decode_patches(&good).is_ok() && decode_patches(&[]).is_ok());
        for end in 1..good.len() {
            assert!(decode_patches(&good[..end]).is_err(), "{end} words");
        }
        for (at, wrong) in [(1, 0), (1, 1 << 16), (1, 1 << 15), (2, 0), (2, u32::MAX)] {
            let mut words = good.clone();
            words[at] = wrong;
            assert!(decode_patches(&words).is_err(), "word {at} = {wrong:#x}");
        }
        // Groups 480 to 499 are the last word's: bit 20 would be group 500.
        assert!(decode_patches(&[0, 1 << 15, 1 << 20, 1, 2]).is_err());
        assert!(decode_patches(&[0, 1 << 15, 1 << 19, 1, 2]).is_ok());
    }
}
