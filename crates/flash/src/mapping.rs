//! DFTL's cached mapping table (Gupta, Kim, Urgaonkar, "DFTL: a flash translation layer employing
//! demand-based selective caching of page-level address mappings", ASPLOS 2009; P-04, A-42).
//!
//! The map lies in *translation pages* on flash; single entries of it are cached. A miss reads a translation
//! page; an evicted entry that was changed has its page read and written, and all other changed entries of
//! that page go along (batch update, section 3.3). Differences: entries are replaced by CLOCK, whose hand
//! goes over the logical pages in order, instead of a segmented LRU, which takes one byte per logical page;
//! where the translation pages lie is always in memory, as there.

use crate::error::{ConfigError, within};

/// How large the cache is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MappingOptions {
    /// Memory for entries, all domains together.
    pub cache_bytes: u64,
    /// Bytes of an entry, cached as on flash.
    pub entry_bytes: u32,
}

impl MappingOptions {
    /// Mapping entries of a translation page.
    pub(crate) fn entries_per_page(&self, page_bytes: u32) -> u32 {
        (page_bytes / self.entry_bytes.max(1)).max(1)
    }

    pub(crate) fn check(&self, page_bytes: u32) -> Result<(), ConfigError> {
        within("bytes of a mapping entry", u64::from(self.entry_bytes), 4, u64::from(page_bytes.min(64)))?;
        let least = u64::from(self.entry_bytes) * 64;
        within("size of the mapping cache in bytes", self.cache_bytes, least, 1 << 40)?;
        Ok(())
    }
}

const CACHED: u8 = 1;
const DIRTY: u8 = 2;
const REFERENCED: u8 = 4;

/// What a lookup costs in translation pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lookup {
    /// Nothing.
    Hit,
    /// The entry's own page must be read; before that, the page of an evicted entry read and written.
    Miss {
        /// Translation page to update.
        write_back: Option<u32>,
    },
}

/// The cache of a domain.
#[derive(Clone, Debug)]
pub(crate) struct MappingCache {
    flags: Vec<u8>,
    /// How many entries are cached.
    cached: usize,
    hand: usize,
    capacity: usize,
    entries_per_page: u32,
    /// Translation pages that GC has changed.
    changed_pages: Vec<u32>,
}

impl MappingCache {
    pub(crate) fn new(logical_pages: u32, capacity: usize, entries_per_page: u32) -> Self {
        let capacity = capacity.clamp(1, logical_pages as usize);
        Self {
            flags: vec![0; logical_pages as usize],
            cached: 0,
            hand: 0,
            capacity,
            entries_per_page,
            changed_pages: Vec::new(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.flags.len()
    }

    /// The translation page that has a logical page's entry.
    #[inline]
    pub(crate) fn page_of(&self, lpn: u32) -> u32 {
        lpn / self.entries_per_page
    }

    /// The host uses an entry, and changes it or not.
    #[inline]
    pub(crate) fn look_up(&mut self, lpn: u32, change: Change) -> Lookup {
        let flags = &mut self.flags[lpn as usize];
        if *flags & CACHED != 0 {
            *flags |= REFERENCED | change.flag();
            return Lookup::Hit;
        }
        self.load(lpn, change)
    }

    fn load(&mut self, lpn: u32, change: Change) -> Lookup {
        let mut write_back = None;
        // GC may have made the cache too large. It shrinks again by one entry per miss; entries that were not
        // changed go for nothing.
        for _ in 0..2 {
            if self.cached >= self.capacity && write_back.is_none() {
                write_back = self.evict();
            }
        }
        self.cached += 1;
        self.flags[lpn as usize] = CACHED | REFERENCED | change.flag();
        Lookup::Miss { write_back }
    }

    /// Finds the next entry that was not used since the hand last passed. One at least is cached.
    fn find_victim(&mut self) -> usize {
        const WORD: usize = 8;
        loop {
            let left = &mut self.flags[self.hand..];
            // Whole words in which nothing is cached are passed over at once.
            let empty = left.chunks_exact(WORD).take_while(|word| **word == [0; WORD]).count() * WORD;
            let found = left[empty..].iter_mut().position(|flags| {
                let is_victim = *flags & (CACHED | REFERENCED) == CACHED;
                *flags &= !REFERENCED;
                is_victim
            });
            match found {
                Some(place) => {
                    self.hand += empty + place;
                    return self.hand;
                }
                None => self.hand = 0,
            }
        }
    }

    /// Throws an entry out. Answers its translation page if that must be updated, and takes that as done.
    fn evict(&mut self) -> Option<u32> {
        let place = self.find_victim();
        let flags = self.flags[place];
        let page = self.page_of(place as u32); // there are fewer than 2^32
        if flags & DIRTY != 0 {
            self.clean(page);
        }
        self.flags[place] = 0;
        self.cached -= 1;
        (flags & DIRTY != 0).then_some(page)
    }

    /// A translation page is written: none of its entries is changed any more.
    fn clean(&mut self, page: u32) {
        let first = (page * self.entries_per_page) as usize;
        let end = (first + self.entries_per_page as usize).min(self.flags.len());
        for flags in &mut self.flags[first..end] {
            *flags &= !DIRTY;
        }
    }

    /// GC has moved these pages. Changes cached entries; the others' translation pages are to be updated,
    /// each once, and are given out by [`Self::take_changed_page`].
    pub(crate) fn moved(&mut self, lpns: &[u32]) {
        for &lpn in lpns {
            let Some(flags) = self.flags.get_mut(lpn as usize) else { continue }; // a translation page itself
            if *flags & CACHED != 0 {
                *flags |= DIRTY;
            } else {
                self.changed_pages.push(lpn / self.entries_per_page);
            }
        }
        self.changed_pages.sort_unstable();
        self.changed_pages.dedup();
    }

    /// GC has moved these pages, and there is no room to write translation pages: all entries become cached
    /// ones, beyond the capacity if need be.
    pub(crate) fn moved_and_pinned(&mut self, lpns: &[u32]) {
        for &lpn in lpns {
            let Some(flags) = self.flags.get_mut(lpn as usize) else { continue };
            self.cached += usize::from(*flags & CACHED == 0);
            *flags |= CACHED | DIRTY;
        }
    }

    pub(crate) fn take_changed_page(&mut self) -> Option<u32> {
        let page = self.changed_pages.pop()?;
        self.clean(page);
        Some(page)
    }
}

/// Whether an entry is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    No,
    Yes,
}

impl Change {
    fn flag(self) -> u8 {
        match self {
            Self::No => 0,
            Self::Yes => DIRTY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISS: Lookup = Lookup::Miss { write_back: None };

    #[test]
    fn clock_gives_used_entries_a_second_chance_and_writes_changed_ones_back_in_batches() {
        let mut cache = MappingCache::new(40, 3, 10);
        assert_eq!(cache.look_up(0, Change::Yes), MISS);
        assert_eq!(cache.look_up(1, Change::Yes), MISS);
        assert_eq!(cache.look_up(25, Change::No), MISS);
        // All have been used once; after a turn of the hand 0 goes; its page 0 is written, with the change of
        // entry 1.
        assert_eq!(cache.look_up(30, Change::No), Lookup::Miss { write_back: Some(0) });
        assert_eq!(cache.look_up(1, Change::No), Lookup::Hit);
        // 1 was used since, so 25 goes, which was not changed.
        assert_eq!(cache.look_up(31, Change::No), MISS);
        assert_eq!(cache.look_up(1, Change::No), Lookup::Hit);
        assert_eq!(cache.look_up(25, Change::No), MISS);
        // 1 is clean by now.
        assert!((32..40).all(|lpn| cache.look_up(lpn, Change::No) == MISS));
        assert_eq!(cache.cached, 3);
    }

    #[test]
    fn moves_of_uncached_pages_touch_each_translation_page_once() {
        let mut cache = MappingCache::new(40, 4, 10);
        assert_eq!(cache.look_up(11, Change::No), MISS);
        cache.moved(&[11, 12, 3, 13, 4, 44]); // 44 is a translation page
        let mut pages = Vec::new();
        while let Some(page) = cache.take_changed_page() {
            pages.push(page);
        }
        assert_eq!(pages, [1, 0]);
        cache.moved_and_pinned(&[20, 21, 22, 23, 24]);
        assert_eq!(cache.cached, 6);
        let mut written = Vec::new();
        for lpn in 30..36 {
            if let Lookup::Miss { write_back: Some(page) } = cache.look_up(lpn, Change::No) {
                written.push(page);
            }
        }
        assert_eq!(written, [2], "one batch");
        assert_eq!(cache.cached, 4, "back at its size");
    }
}
