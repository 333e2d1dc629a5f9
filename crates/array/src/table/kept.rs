//! Pages of a snapshot that changed before they were written, as they were.

use super::frames::{Frames, PageWords};
use format::GroupBits;
use std::collections::BTreeMap;

/// A page as it was, and what had changed on it since the checkpoint before.
pub struct KeptPage {
    /// Its words.
    pub words: PageWords,
    /// What had changed.
    pub changed: GroupBits,
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
}

/// Rooms that a table of so many pages at most keeps for the next ones: new ones cost more than what is
/// copied into them.
fn spare_max(frames_max: usize) -> usize {
    const SPARE_MAX: usize = 256;
    const FRAMES_PER_SPARE: usize = 64;
    SPARE_MAX.min(frames_max / FRAMES_PER_SPARE)
}

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

    /// That page, if it is kept.
    pub fn get(&self, index: usize) -> Option<&KeptPage> {
        self.pages.get(&index).map(|kept| &**kept)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut KeptPage> {
        self.pages.get_mut(&index).map(|kept| &mut **kept)
    }

    /// A page is kept no longer; whether it was. The table may have so many pages in memory.
    pub fn remove(&mut self, index: usize, frames_max: usize) -> bool {
        let kept = self.pages.remove(&index);
        let was_kept = kept.is_some();
        self.spare.extend(kept.filter(|_| self.spare.len() < spare_max(frames_max)));
        was_kept
    }

    /// None is kept any longer.
    pub fn clear(&mut self) {
        self.pages.clear();
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Bytes of them, and of rooms for others.
    pub fn memory_bytes(&self) -> u64 {
        (self.pages.len() + self.spare.len()) as u64 * Frames::CONTENT_BYTES as u64
    }
}
