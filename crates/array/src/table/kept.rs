//! Pages of a snapshot that changed before they were written, as they were.

use super::frames::{Frames, PageWords};
use crate::hash::PageMap;
use format::{GROUP_WORDS, GroupBits};
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

/// A page as it was, and what had changed on it since the checkpoint before.
pub struct KeptPage {
    /// Its words.
    pub words: PageWords,
    /// What had changed.
    pub changed: GroupBits,
}

/// What had changed on a page of which only that is kept: the groups, and where what they held begins.
#[derive(Clone, Copy)]
struct KeptPatch {
    changed: GroupBits,
    first: usize,
}

/// See the module's documentation.
#[derive(Default)]
pub struct KeptPages {
    pages: BTreeMap<usize, Box<KeptPage>>,
    #[allow(
        clippy::vec_box,
        reason = "they come from the map and go back to it, and are not copied for that"
    )]
    spare: Vec<Box<KeptPage>>,
    patches: PageMap<KeptPatch>,
    /// What the groups of all these held.
    patch_words: Vec<u32>,
}

/// Rooms that a table of so many pages at most keeps for the next ones: new ones cost more than what is
/// copied into them.
fn spare_max(frames_max: usize) -> usize {
    const SPARE_MAX: usize = 256;
    const FRAMES_PER_SPARE: usize = 64;
    SPARE_MAX.min(frames_max / FRAMES_PER_SPARE)
}

/// Bytes of patches of which the memory is kept for the next ones.
const PATCHES_SPARE_BYTES: usize = 16 << 20;

impl KeptPages {
    /// Keeps a page.
    pub fn insert(&mut self, index: usize, words: &PageWords, changed: GroupBits) {
        let kept = match self.spare.pop() {
            Some(mut kept) => {
                kept.words.copy_from_slice(words);
                kept.changed = changed;
                kept
            }
            None => Box::new(KeptPage { words: *words, changed }),
        };
        self.pages.insert(index, kept);
    }

    /// Keeps of a page what had changed.
    pub fn insert_patch(&mut self, index: usize, words: &PageWords, changed: GroupBits) {
        let first = self.patch_words.len();
        changed.push_words(words, &mut self.patch_words);
        self.patches.insert(index, KeptPatch { changed, first });
    }

    /// That page, if it is kept as a whole.
    pub fn get(&self, index: usize) -> Option<&KeptPage> {
        self.pages.get(&index).map(|kept| &**kept)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut KeptPage> {
        self.pages.get_mut(&index).map(|kept| &mut **kept)
    }

    /// Whether a page, or what had changed on it, is kept.
    pub fn has(&self, index: usize) -> bool {
        self.pages.contains_key(&index) || self.patches.contains_key(&index)
    }

    /// What had changed on a page that is kept.
    pub fn changed(&self, index: usize) -> Option<GroupBits> {
        let whole = || self.get(index).map(|kept| kept.changed);
        self.patches.get(&index).map(|kept| kept.changed).or_else(whole)
    }

    /// What the groups that had changed on a page held, if only that is kept.
    pub fn patch(&self, index: usize) -> Option<&[u32]> {
        let KeptPatch { changed, first } = self.patches.get(&index)?;
        Some(&self.patch_words[*first..][..changed.count() * GROUP_WORDS])
    }

    /// A page is kept no longer; whether it was. The table may have so many pages in memory.
    pub fn remove(&mut self, index: usize, frames_max: usize) -> bool {
        if let Entry::Occupied(kept) = self.patches.entry(index) {
            kept.remove();
            if self.patches.is_empty() {
                self.clear_patches();
            }
            return true;
        }
        let kept = self.pages.remove(&index);
        let was_kept = kept.is_some();
        self.spare.extend(kept.filter(|_| self.spare.len() < spare_max(frames_max)));
        was_kept
    }

    /// None is kept any longer.
    pub fn clear(&mut self) {
        self.pages.clear();
        self.clear_patches();
    }

    fn clear_patches(&mut self) {
        self.patches.clear();
        self.patch_words.clear();
        if self.patch_bytes() > PATCHES_SPARE_BYTES {
            (self.patches, self.patch_words) = (PageMap::default(), Vec::new());
        }
    }

    /// Bytes that patches have room in: the map has a byte and an eighth more places than it takes.
    fn patch_bytes(&self) -> usize {
        let place_bytes = size_of::<(usize, KeptPatch)>() + 1;
        self.patches.capacity() * 8 / 7 * place_bytes + self.patch_words.capacity() * 4
    }

    /// As many pages as what is kept takes the memory of, rounded up.
    pub fn len(&self) -> usize {
        let patch_bytes = self.patches.len() * size_of::<KeptPatch>() + self.patch_words.len() * 4;
        self.pages.len() + patch_bytes.div_ceil(Frames::CONTENT_BYTES)
    }

    /// Bytes of them, and of rooms for others.
    pub fn memory_bytes(&self) -> u64 {
        ((self.pages.len() + self.spare.len()) * Frames::CONTENT_BYTES + self.patch_bytes()) as u64
    }
}
