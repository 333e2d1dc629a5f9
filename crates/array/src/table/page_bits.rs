//! A bit per page of the table.

use block::set_bits;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct PageBits {
    words: Vec<u64>,
    /// A bit for each of these; not set: none of its bits is. So whoever looks for bits that are set goes
    /// through few words, however large the table is.
    touched: Vec<u64>,
    /// Bits that are set.
    count: usize,
}

impl PageBits {
    pub fn new(pages: usize) -> Self {
        let words = pages.div_ceil(64);
        Self { words: vec![0; words], touched: vec![0; words.div_ceil(64)], count: 0 }
    }

    #[inline]
    pub fn has(&self, page: usize) -> bool {
        self.words[page / 64] >> (page % 64) & 1 == 1
    }

    #[inline]
    pub fn set(&mut self, page: usize) {
        let (word, bit) = (page / 64, 1 << (page % 64));
        let bits = &mut self.words[word];
        // Most that change have changed before, and nothing is written then.
        if *bits & bit == 0 {
            *bits |= bit;
            self.count += 1;
            self.touched[word / 64] |= 1 << (word % 64);
        }
    }

    pub fn clear(&mut self, page: usize) {
        self.count -= usize::from(self.has(page));
        self.words[page / 64] &= !(1 << (page % 64));
    }

    pub fn clear_all(&mut self) {
        let Self { words, touched, count } = self;
        *count = 0;
        for (group, bits) in touched.iter_mut().enumerate() {
            set_bits(std::mem::take(bits)).for_each(|bit| words[group * 64 + bit] = 0);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Words that may have bits that are set, in order.
    fn touched(&self) -> impl Iterator<Item = usize> + Clone {
        let groups = self.touched.iter().enumerate();
        groups.flat_map(|(group, &bits)| set_bits(bits).map(move |bit| group * 64 + bit))
    }

    /// The pages whose bit is set, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + Clone {
        self.touched().flat_map(|word| set_bits(self.words[word]).map(move |bit| word * 64 + bit))
    }

    pub fn memory_bytes(&self) -> u64 {
        (self.words.len() + self.touched.len()) as u64 * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::{Random as _, SplitMix};
    use std::collections::BTreeSet;

    #[test]
    fn they_are_those_that_were_set_and_not_cleared() {
        for pages in [1, 64, 65, 4096, 4097, 100_000] {
            let (mut bits, mut model, mut random) = (PageBits::new(pages), BTreeSet::new(), SplitMix::new(1));
            for step in 0..2000 {
                let page = usize::try_from(random.below(pages as u64)).expect("few pages");
                match step % 5 {
                    0..=2 => {
                        bits.set(page);
                        model.insert(page);
                    }
                    3 => {
                        bits.clear(page);
                        model.remove(&page);
                    }
                    _ if step % 500 == 4 => {
                        bits.clear_all();
                        model.clear();
                    }
                    _ => assert_eq!(bits.has(page), model.contains(&page)),
                }
            }
            assert_eq!(bits.iter().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
            assert_eq!((bits.count(), bits.is_empty()), (model.len(), model.is_empty()));
        }
        assert!(PageBits::new(0).is_empty() && PageBits::default().iter().next().is_none());
    }
}
