//! What the table says after loading it, and after replay.

use super::Elastic;
use super::rows::RowWord;
use crate::scheme::Rejected;
use crate::store::Store;
use block::{ChunkIndex, Lcn};
use format::CLASSES_MAX;

impl Elastic {
    /// Makes owners and valid counts from a loaded table; `Rejected` if it contradicts itself.
    pub(super) fn load_table(&mut self, store: &Store) -> Result<(), Rejected> {
        let k = store.config.geometry.data_count();
        for row in 0..self.units.row_count() {
            let word = RowWord::read(store, row);
            if word.is_damaged() || word.width() > k || usize::from(word.class()) >= CLASSES_MAX {
                return Err(Rejected);
            }
            if word.is_live() {
                self.units.note_row(row, word.class());
            }
        }
        for lcn in (0..store.config.stripe_count * k as u64).map(Lcn::new) {
            let place = store.table.place(lcn);
            if place == 0 {
                continue;
            }
            let (row, column) = (self.rows.row_of(place), self.rows.column_of(place));
            let fits = row < self.units.row_count() && {
                let word = RowWord::read(store, row);
                word.is_live() && column < word.width()
            };
            if !fits || self.rows.owner(place).is_some() {
                return Err(Rejected);
            }
            self.rows.own(place, lcn);
            self.units.add_valid(self.units.of_row(row));
        }
        // What is written and holds nothing valid would have been freed.
        let dead = (0..self.units.row_count()).any(|row| self.units.is_dead(self.units.of_row(row)));
        if dead { Err(Rejected) } else { Ok(()) }
    }

    /// Claims the rows that hold a stripe, on every device.
    pub(super) fn claim_rows(&self, store: &mut Store) -> Result<(), Rejected> {
        for row in 0..self.units.row_count() {
            if !RowWord::read(store, row).is_live() {
                continue;
            }
            for space in &mut store.spaces {
                if !space.claim(ChunkIndex::new(row + 1)) {
                    return Err(Rejected);
                }
            }
        }
        Ok(())
    }

    /// After replay: which units are free, which partly written.
    pub(super) fn settle_units(&mut self, store: &Store) {
        self.units.settle(|row| RowWord::read(store, row).is_live());
    }
}
