//! Parity kept in memory until its stripe must make room (L-16): what that saves, and what it puts at risk,
//! counted on a load without an engine.
//!
//! Data is written at once, in place. The parity of the stripes written last is in memory only, of so many
//! stripes at most; the one not written to for longest makes room, and what is left is written at the end.
//! Until then a stripe's parity on its devices is not that of its data: after a power cut it is wrong, and
//! should a device be lost with the power, whatever that device had of the stripe is lost, be it ever so old.
//! Nothing that is served does this.

use super::view::Figures;
use crate::number::float;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A stripe whose parity is in memory only.
#[derive(Default)]
struct Open {
    /// When it was written to last: its place in the order.
    used: u64,
    /// Chunks written since its parity was.
    chunks: HashSet<u64>,
    /// The user writes that wrote them.
    writes: HashSet<u64>,
}

/// Mean over the user's writes, and the most behind any of them.
#[derive(Default)]
struct Gauge {
    sum: u64,
    most: u64,
}

impl Gauge {
    fn note(&mut self, value: usize) {
        let value = u64::try_from(value).unwrap_or(u64::MAX);
        self.sum += value;
        self.most = self.most.max(value);
    }
}

/// See the module's documentation.
pub struct ParityCache {
    columns: u64,
    parities: u64,
    room: usize,
    open: HashMap<u64, Open>,
    order: BTreeMap<u64, u64>,
    /// Of each user write whose parity is in memory only, in part or whole, how many stripes hold it.
    waiting: HashMap<u64, u64>,
    open_chunks: usize,
    touches: u64,
    writes: u64,
    data_chunks: u64,
    parity_chunks: u64,
    at_risk: [Gauge; 3],
}

impl ParityCache {
    /// Room for the parity of so many stripes of `columns` data and `parities` parity chunks.
    pub fn new(columns: u64, parities: u64, room: usize) -> Self {
        Self {
            columns,
            parities,
            room,
            open: HashMap::new(),
            order: BTreeMap::new(),
            waiting: HashMap::new(),
            open_chunks: 0,
            touches: 0,
            writes: 0,
            data_chunks: 0,
            parity_chunks: 0,
            at_risk: Default::default(),
        }
    }

    /// A user writes some chunks that follow each other.
    pub fn write(&mut self, chunks: std::ops::Range<u64>) {
        let write = self.writes;
        self.writes += 1;
        for chunk in chunks {
            let stripe = chunk / self.columns;
            let open = self.open.entry(stripe).or_default();
            self.data_chunks += 1;
            self.open_chunks += usize::from(open.chunks.insert(chunk));
            if open.writes.insert(write) {
                *self.waiting.entry(write).or_default() += 1;
                self.touches += 1;
                self.order.remove(&open.used);
                open.used = self.touches;
                self.order.insert(self.touches, stripe);
            }
        }
        while self.open.len() > self.room {
            self.write_oldest();
        }
        let [stripes, chunks, writes] = &mut self.at_risk;
        stripes.note(self.open.len());
        chunks.note(self.open_chunks);
        writes.note(self.waiting.len());
    }

    /// The parity of the stripe not written to for longest is written.
    fn write_oldest(&mut self) {
        let Some((_, stripe)) = self.order.pop_first() else { return };
        let Some(open) = self.open.remove(&stripe) else { return };
        self.parity_chunks += self.parities;
        self.open_chunks -= open.chunks.len();
        for write in open.writes {
            if let Some(stripes) = self.waiting.get_mut(&write) {
                *stripes -= 1;
                if *stripes == 0 {
                    self.waiting.remove(&write);
                }
            }
        }
    }

    /// What is left is written; the figures.
    pub fn end(mut self) -> Figures {
        while !self.open.is_empty() {
            self.write_oldest();
        }
        let mut figures: Figures = [
            ("data_chunks".to_owned(), float(self.data_chunks)),
            ("ssd_chunks".to_owned(), float(self.data_chunks + self.parity_chunks)),
            ("parity_chunks".to_owned(), float(self.parity_chunks)),
            ("parity_chunks_at_once".to_owned(), float(self.touches * self.parities)),
        ]
        .into();
        for (name, gauge) in ["stripes", "chunks", "writes"].iter().zip(&self.at_risk) {
            figures.insert(format!("{name}_mean"), float(gauge.sum) / float(self.writes.max(1)));
            figures.insert(format!("{name}_max"), float(gauge.most));
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(room: usize, writes: &[std::ops::Range<u64>]) -> Vec<f64> {
        let mut cache = ParityCache::new(4, 2, room);
        writes.iter().for_each(|chunks| cache.write(chunks.clone()));
        let figures = cache.end();
        let names = [
            "data_chunks",
            "parity_chunks",
            "parity_chunks_at_once",
            "stripes_mean",
            "stripes_max",
            "chunks_mean",
            "chunks_max",
            "writes_mean",
            "writes_max",
        ];
        names.iter().map(|&name| figures[name]).collect()
    }

    #[test]
    fn without_room_all_parity_is_written_at_once_and_nothing_is_at_risk() {
        let writes = [0..1, 1..2, 3..5, 0..1];
        assert_eq!(figures(0, &writes), [5.0, 10.0, 10.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn parity_is_written_once_for_all_that_a_stripe_got_meanwhile() {
        // Stripes 0, 0, 0 and 1, 0: with room for one, 0 makes room for 1, and 1 for 0.
        let writes = [0..1, 1..2, 3..5, 0..1];
        // Behind the writes: one stripe each; 1, 2, 1, 1 chunks; 1, 2, 1, 1 writes.
        assert_eq!(figures(1, &writes), [5.0, 6.0, 10.0, 1.0, 1.0, 1.25, 2.0, 1.25, 2.0]);
        // With room for both: chunks 1, 2, 4, 4; writes 1, 2, 3, 4; stripes 1, 1, 2, 2.
        assert_eq!(figures(2, &writes), [5.0, 4.0, 10.0, 1.5, 2.0, 2.75, 4.0, 2.5, 4.0]);
    }
}
