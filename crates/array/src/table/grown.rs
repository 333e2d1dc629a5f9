//! The table of an array that grows: what was there is where the larger table has it.

use super::{Table, word_count};
use crate::planted::{Planted, planted};
use block::DevIndex;

impl Table {
    /// Takes everything over from the table of the same array when it was smaller, which is in memory as a
    /// whole. Pages of stripes, of rows and of the map hold as many entries as before, so they go as they
    /// are, to where those of their kind begin now; bits of chunks are laid out anew.
    pub fn take_over(&mut self, smaller: &Self) {
        assert!(!smaller.is_paged(), "pages that are not in memory cannot be taken over");
        for page in (0..smaller.space.first_page).filter(|&page| smaller.has_frame(page)) {
            let is_entry = page >= smaller.stripes.first_page;
            let moved = if is_entry && !planted(Planted::GrowLeavesRows) {
                page - smaller.stripes.first_page + self.stripes.first_page
            } else {
                page
            };
            self.load_page(moved, smaller.page(page));
        }
        if self.space.windows() == 0 {
            return;
        }
        for dev in (0u16..).map(DevIndex::new).take(self.geometry.device_count()) {
            for word in 0..word_count(smaller.chunks_per_device) {
                let bits = smaller.space_word(dev, word).unwrap_or_default();
                if bits != 0 {
                    *self.space_word_mut(dev, word) = bits;
                }
            }
        }
    }
}
