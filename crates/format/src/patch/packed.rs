//! A page of packed patches: first which groups of which pages changed, as bytes, then what they hold now.

use super::{BIT_WORDS, GROUP_WORDS, GroupBits, PAGE_GROUPS, Patch, take};
use crate::short::{ShortReader, ShortWriter, bytes_of, push_bytes};
use crate::{FormatError, PAGE_WORDS};
use block::planted::{Planted, planted};

/// Bytes of a bit for each group.
const BIT_BYTES: usize = PAGE_GROUPS.div_ceil(8);
/// Bytes of the longest head: its numbers, and the bits of all groups.
const HEAD_BYTES_MAX: usize = 10 + 2 + BIT_BYTES + 3;
/// Pages of the table are below this.
const INDEX_LIMIT: u64 = 1 << 32;

/// Word by word, what a page of them is.
pub(crate) const PACKED_TABLE: (&str, &[(&str, &str)]) = (
    "packed patches",
    &[
        ("0", "number of patches, plus the bytes of their heads << 16"),
        (
            "1 ...",
            "heads, four bytes a word, the first in the lowest bits; then zeros. A head: step from the page of \
             the patch before to its own, an index in the table; number, twice how many groups of two words \
             changed, plus 1 if 63 bytes follow that have a bit for each group, as where more than 63 did; else of each the number of \
             groups between the one before and it, of the first those before it",
        ),
        ("...", "the words that changed, as they are now, patch by patch, in order"),
    ],
);

/// The patches that a page of a checkpoint has room for, without what their groups hold.
#[derive(Default)]
pub struct PatchHeads {
    bytes: Vec<u8>,
    count: u16,
    last: u64,
    /// Words of the groups.
    words: usize,
}

impl PatchHeads {
    /// Adds the patch of these groups, of which there is at least one, of a page; `false`, without effect, if
    /// the page of patches has no room for it.
    pub fn try_push(&mut self, index: usize, groups: &GroupBits) -> bool {
        let mut last = self.last;
        let mut head = [0; HEAD_BYTES_MAX];
        let index = u64::try_from(index).unwrap_or(INDEX_LIMIT);
        assert!(index < INDEX_LIMIT, "a table has fewer pages than 2^32");
        let (len, count) = put_head(&mut head, &mut last, index, groups);
        let words = self.words + count * GROUP_WORDS;
        let fits = 1 + (self.bytes.len() + len).div_ceil(4) + words <= PAGE_WORDS;
        if fits {
            self.bytes.extend_from_slice(&head[..len]);
            (self.count, self.last, self.words) = (self.count + 1, last, words);
        }
        fits
    }

    /// Words of the page with what its groups hold.
    pub fn page_words(&self) -> usize {
        1 + self.bytes.len().div_ceil(4) + self.words
    }

    /// Appends the words before those of the groups.
    pub fn encode(&self, out: &mut Vec<u32>) {
        let len = u32::try_from(self.bytes.len()).expect("heads fit into a page");
        out.push(u32::from(self.count) | len << 16);
        push_bytes(&self.bytes, out);
    }
}

impl GroupBits {
    /// Whether they are so few that a page of patches has room for them whatever they are: such a patch is
    /// never a whole page.
    pub fn are_few(&self) -> bool {
        const _: () = assert!(1 + HEAD_BYTES_MAX.div_ceil(4) + BIT_BYTES * GROUP_WORDS <= PAGE_WORDS);
        self.count() <= BIT_BYTES
    }

    /// Appends what the groups of a page hold.
    pub fn push_words(&self, page: &[u32; PAGE_WORDS], out: &mut Vec<u32>) {
        self.groups().for_each(|group| out.extend_from_slice(&page[group * GROUP_WORDS..][..GROUP_WORDS]));
    }
}

/// Writes a head; how long it is, and of how many groups.
fn put_head(
    out: &mut [u8; HEAD_BYTES_MAX],
    last: &mut u64,
    index: u64,
    groups: &GroupBits,
) -> (usize, usize) {
    let (mut gaps, mut count, mut next) = ([0; BIT_BYTES], 0, 0);
    for group in groups.groups() {
        if let Some(gap) = gaps.get_mut(count) {
            *gap = group - next;
        }
        (count, next) = (count + 1, group + 1);
    }
    let mut head = ShortWriter::new(out);
    head.step(last, index);
    if count <= BIT_BYTES {
        head.count(count << 1);
        gaps[..count].iter().for_each(|&gap| head.count(gap));
        let len = head.finish().expect("63 groups of 500 have three gaps of two bytes at most");
        return (len, count);
    }
    head.count(count << 1 | 1);
    groups.0.iter().flat_map(|bits| bits.to_le_bytes()).take(BIT_BYTES).for_each(|byte| head.bytes(&[byte]));
    (head.finish().expect("a head has room for a bit for each group"), count)
}

/// Reads a page of packed patches of a checkpoint.
pub fn decode_packed_patches(mut words: &[u32]) -> Result<Vec<Patch<'_>>, FormatError> {
    let [low, high, len_low, len_high] = take(&mut words, 1)?[0].to_le_bytes();
    let len = usize::from(u16::from_le_bytes([len_low, len_high]));
    let mut room = Vec::new();
    let (bytes, spare) = bytes_of(take(&mut words, len.div_ceil(4))?, len, &mut room);
    let (mut reader, mut patches, mut last) = (ShortReader::new(bytes), Vec::new(), 0);
    for _ in 0..u16::from_le_bytes([low, high]) {
        let before = last;
        let index = reader.step("page of a packed patch", &mut last, INDEX_LIMIT)?;
        if planted(Planted::PatchBesideFirst) && !patches.is_empty() {
            last = before;
        }
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let groups = take_groups(&mut reader)?;
        patches.push(Patch { index, groups, words: take(&mut words, groups.count() * GROUP_WORDS)? });
    }
    let behind = reader.rest().len() + words.len();
    if behind > 0 || spare.iter().any(|&byte| byte != 0) {
        let what = "bytes and words behind packed patches";
        let found = u64::try_from(behind).unwrap_or(u64::MAX);
        return Err(FormatError::Malformed { what, found, expected: "none, but zeros" });
    }
    Ok(patches)
}

fn take_groups(reader: &mut ShortReader<'_>) -> Result<GroupBits, FormatError> {
    let what = "groups of a packed patch";
    let refused =
        FormatError::Malformed { what, found: 0, expected: "1 to 500, as many as are counted, below 500" };
    let first = usize::try_from(reader.number()?).unwrap_or(usize::MAX);
    let (count, mut groups) = (first >> 1, GroupBits::NONE);
    if !(1..=PAGE_GROUPS).contains(&count) {
        return Err(refused);
    }
    if first & 1 == 1 {
        let mut bytes = [0; BIT_WORDS * 4];
        bytes[..BIT_BYTES].copy_from_slice(&reader.array::<BIT_BYTES>()?);
        for (bits, bytes) in groups.0.iter_mut().zip(bytes.as_chunks().0) {
            *bits = u32::from_le_bytes(*bytes);
        }
        let spare = groups.0[BIT_WORDS - 1] & !GroupBits::all().0[BIT_WORDS - 1];
        return if groups.count() == count && spare == 0 { Ok(groups) } else { Err(refused) };
    }
    let mut next = 0;
    for _ in 0..count {
        let gap = usize::try_from(reader.number()?).unwrap_or(PAGE_GROUPS);
        let group = next + gap.min(PAGE_GROUPS);
        if group >= PAGE_GROUPS {
            return Err(refused);
        }
        groups.set_word(group * GROUP_WORDS);
        next = group + 1;
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode_patches;

    fn page(seed: u32) -> [u32; PAGE_WORDS] {
        std::array::from_fn(|i| seed + u32::try_from(i).unwrap())
    }

    fn bits(groups: impl Iterator<Item = usize>) -> GroupBits {
        let mut bits = GroupBits::NONE;
        groups.for_each(|group| bits.set_word(group * GROUP_WORDS));
        bits
    }

    fn encoded(patches: &[(usize, GroupBits)]) -> Vec<u32> {
        let (mut heads, mut words) = (PatchHeads::default(), Vec::new());
        patches.iter().for_each(|(index, groups)| assert!(heads.try_push(*index, groups), "page {index}"));
        heads.encode(&mut words);
        patches.iter().for_each(|(_, groups)| groups.push_words(&page(9000), &mut words));
        words
    }

    #[test]
    fn one_changed_chunk_of_a_page_takes_three_words_and_took_five() {
        let one = |index| (index, bits([70].into_iter()));
        assert_eq!(encoded(&[one(7)]), [1 | 3 << 16, 70 << 16 | 2 << 8 | 14, 9140, 9141]);
        assert_eq!(encoded(&[one(7), one(9), one(8), one(70)]).len(), 1 + 3 + 4 * 2);
    }

    #[test]
    fn patches_come_back_whatever_groups_they_are_of() {
        let some = [
            (3, bits([0, 1, 31, 32, 250, 499].into_iter())),
            (4, bits((0..70).map(|at| at * 7))),
            (1_000_003, bits(0..63)),
            (5, bits([499].into_iter())),
            (0, bits((0..140).map(|at| 2 * at))),
        ];
        let words = encoded(&some);
        let patches = decode_packed_patches(&words).unwrap();
        let expected: Vec<(usize, GroupBits, Vec<u32>)> = some
            .iter()
            .map(|(index, groups)| {
                let mut words = Vec::new();
                groups.push_words(&page(9000), &mut words);
                (*index, *groups, words)
            })
            .collect();
        let found: Vec<_> = patches.iter().map(|p| (p.index, p.groups, p.words.to_vec())).collect();
        assert_eq!(found, expected);
        // Where there are many, a bit for each is shorter.
        assert_eq!(encoded(&some[3..]).len(), 1 + (1 + 1 + 2 + 1 + 2 + 63usize).div_ceil(4) + 2 * 141);
        for (at, (index, groups)) in some.iter().enumerate() {
            let mut before = vec![0; groups.patch_words()];
            groups.encode_patch(*index, &page(9000), &mut before);
            assert_eq!(decode_patches(&before).unwrap(), [patches[at]]);
        }
    }

    #[test]
    fn a_page_has_as_many_as_fit() {
        let (mut heads, mut count) = (PatchHeads::default(), 0);
        while heads.try_push(count * 3, &bits([count % 100].into_iter())) {
            count += 1;
        }
        let mut words = Vec::new();
        heads.encode(&mut words);
        // Each has a head of three bytes and two words; but where one is far from the page before.
        assert_eq!((count, words.len() + 2 * count), (363, 1000));
        assert!(!heads.try_push(5, &GroupBits::all()));
        heads = PatchHeads::default();
        assert!(!heads.try_push(5, &GroupBits::all()), "it is longer than the page itself");
        assert!(heads.try_push(5, &bits(0..490)));
    }

    #[test]
    fn what_is_no_packed_patch_is_refused() {
        let good = encoded(&[(3, bits([5, 350].into_iter())), (900, bits((0..100).map(|at| at * 5)))]);
        assert_eq!(decode_packed_patches(&good).unwrap().len(), 2);
        for end in 0..good.len() {
            assert!(decode_packed_patches(&good[..end]).is_err(), "{end} words");
        }
        let head = |bytes: &[u8], words: usize| {
            let mut out = vec![1 | (bytes.len() as u32) << 16];
            push_bytes(bytes, &mut out);
            out.extend(vec![7; words]);
            decode_packed_patches(&out).map(|patches| patches.len())
        };
        assert_eq!(head(&[0, 2, 0], 2), Ok(1));
        // No group, too many, one beyond the last, words that are missing or too many, bytes behind.
        assert!(head(&[0, 0], 0).is_err());
        assert!(head(&[0, 0xea, 7], 2).is_err());
        assert!(head(&[0, 2, 0xf4, 3], 2).is_err());
        assert!(head(&[0, 4, 0xf3, 3, 0], 4).is_err());
        assert!(head(&[0, 2, 0], 1).is_err() && head(&[0, 2, 0], 3).is_err());
        assert!(head(&[0, 2, 0, 0], 2).is_err());
        assert!(head(&[1, 2, 0], 2).is_err(), "a page before the first");
        let mut bitmap = vec![0, 3];
        bitmap.extend([0; 62]);
        bitmap.push(8);
        assert_eq!(head(&bitmap, 2), Ok(1));
        bitmap[64] = 16;
        assert!(head(&bitmap, 2).is_err(), "group 500");
        bitmap[64] = 12;
        assert!(head(&bitmap, 4).is_err(), "one more than is counted");
        let mut behind = good.clone();
        behind.push(0);
        assert!(decode_packed_patches(&behind).is_err());
    }
}
