//! What the table says after loading it, and after replay.

use super::Elastic;
use super::rows::RowWord;
use crate::scheme::Contradiction;
use crate::space::ChunkBits;
use crate::store::Store;
use block::{ChunkAddr, ChunkIndex, DevIndex, Lcn};
use format::CLASSES_MAX;

impl Elastic {
    /// Makes owners and valid counts from a loaded table; an error if it contradicts itself.
    pub(super) fn load_table(&mut self, store: &Store) -> Result<(), Contradiction> {
        let k = store.config.geometry.data_count();
        for row in 0..self.units.row_count() {
            let word = RowWord::read(store, row);
            if word.is_damaged() || word.width() > k || usize::from(word.class()) >= CLASSES_MAX {
                return Err(Contradiction::Row(row));
            }
            if word.is_live() && !word.is_open() {
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
                return Err(Contradiction::Chunk { what: "the place", lcn });
            }
            self.rows.own(place, lcn);
            self.units.add_valid(self.units.of_row(row));
        }
        // What is written and holds nothing valid would have been freed.
        let dead = (0..self.units.row_count()).find(|&row| self.units.is_dead(self.units.of_row(row)));
        dead.map_or(Ok(()), |row| Err(Contradiction::Row(row)))
    }

    /// Claims the rows that hold a stripe, on every device.
    pub(super) fn claim_rows(&self, store: &Store, claimed: &mut [ChunkBits]) -> Result<(), Contradiction> {
        for row in 0..self.units.row_count() {
            if !RowWord::read(store, row).is_live() {
                continue;
            }
            for (dev, bits) in (0..).map(DevIndex::new).zip(&mut *claimed) {
                let chunk = ChunkIndex::new(row + 1);
                if !bits.claim(chunk) {
                    return Err(Contradiction::Owners(ChunkAddr::new(dev, chunk)));
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
