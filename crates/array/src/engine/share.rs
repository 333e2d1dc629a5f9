//! One set of reads for a unit of background work. What its plan cannot read, because a device is out of
//! service, is decoded: all that one code word lacks at once, from pieces that the plan reads anyway where
//! there are such, and each piece is read once, whatever it serves.
//!
//! What is read for this is a read of the plan like any other: if it turns out bad, its own cover takes its
//! place, and it is healed. A code word that has sums, or that there are no buffers for, is left to covers,
//! one for each chunk.

use super::job::Job;
use super::{Core, Jobs};
use crate::hash::StripeMap;
use crate::health::Health;
use crate::plan::{Codeword, Decoding, Piece, Plan, PlanRead, Word};
use crate::scheme::Scheme;
use crate::store::Store;
use block::slab::Key;
use block::{ChunkAddr, Pool, Slot};
use std::ops::Range;

/// Room to work in, kept from unit to unit.
#[derive(Default)]
pub(super) struct Sharing {
    /// What the plan reads, and into which slot.
    slots: StripeMap<Slot>,
    missing: Vec<PlanRead>,
    /// By device: which chunk of it a read of a plan is, and which read.
    order: Vec<Vec<u64>>,
    sorted: Vec<PlanRead>,
    word: Codeword,
    /// Pieces to decode from.
    chosen: Vec<Piece>,
}

/// What is needed to plan.
struct Place<'a> {
    scheme: &'a dyn Scheme,
    store: &'a Store,
    health: &'a Health,
    pool: &'a mut Pool,
}

fn key_of(addr: ChunkAddr) -> u64 {
    (addr.dev.index() as u64) << 32 | u64::from(addr.chunk.get())
}

impl Core {
    /// Puts the reads of a unit in order: what cannot be read is decoded, and neighbours come one after the
    /// other.
    pub(super) fn arrange_reads(&mut self, key: Key<Job>) {
        let Jobs { table, sharing, .. } = &mut self.jobs;
        let plan = &mut table[key].plan;
        if self.health.missing_count() > 0 {
            let (scheme, store, health) = (&*self.scheme, &self.store, &self.health);
            sharing.share(plan, &mut Place { scheme, store, health, pool: &mut self.pool });
        }
        if self.options.sort_units {
            sharing.sort(&mut plan.reads);
        }
    }

    /// How many reads of a plan, from a place on, cannot be carried out.
    pub(super) fn missing_reads(&self, key: Key<Job>, from: usize) -> usize {
        if self.health.missing_count() == 0 {
            return 0;
        }
        let reads = &self.jobs.table[key].plan.reads[from..];
        reads.iter().filter(|read| !self.health.is_readable(read.addr)).count()
    }

    /// Whether there are buffers for a stripe more, beside what is to be read in place of so many reads of
    /// the plan that cannot be carried out.
    pub(super) fn has_room_to_decode(&self, missing: usize) -> bool {
        let geometry = self.store.config.geometry;
        let of_next = if self.health.missing_count() == 0 { 0 } else { geometry.parity_count() + 3 };
        self.pool.free_count() >= self.store.slots_kept() + (missing + of_next) * geometry.device_count()
    }
}

impl Sharing {
    /// Sorts reads by their addresses: what is moved about is their numbers, and they once.
    fn sort(&mut self, reads: &mut Vec<PlanRead>) {
        for (read, number) in reads.iter().zip(0u32..) {
            let dev = read.addr.dev.index();
            if dev >= self.order.len() {
                self.order.resize_with(dev + 1, Vec::new);
            }
            self.order[dev].push(u64::from(read.addr.chunk.get()) << 32 | u64::from(number));
        }
        self.sorted.clear();
        for of_device in &mut self.order {
            of_device.sort_unstable();
            self.sorted.extend(of_device.drain(..).map(|key| reads[(key & u64::from(u32::MAX)) as usize]));
        }
        std::mem::swap(&mut self.sorted, reads);
    }

    fn share(&mut self, plan: &mut Plan, place: &mut Place<'_>) {
        self.missing.clear();
        let health = place.health;
        self.missing.extend(plan.reads.extract_if(.., |read| !health.is_readable(read.addr)));
        if self.missing.is_empty() {
            return;
        }
        self.missing.sort_unstable_by_key(|read| (read.word, read.addr));
        self.slots.clear();
        self.slots.extend(plan.reads.iter().map(|read| (key_of(read.addr), read.slot)));
        let missing = std::mem::take(&mut self.missing);
        for group in missing.chunk_by(|one, other| one.word == other.word) {
            if !self.decode(group, plan, place) {
                plan.reads.extend_from_slice(group);
            }
        }
        self.missing = missing;
    }

    /// Plans the decoding of some chunks of one code word; `false` if it is left to covers.
    fn decode(&mut self, missing: &[PlanRead], plan: &mut Plan, place: &mut Place<'_>) -> bool {
        let word = missing[0].word;
        place.scheme.codeword(place.store, word, &mut self.word);
        let twice = missing.windows(2).any(|pair| pair[0].index == pair[1].index);
        if twice || self.word.has_sums() || !self.choose(place) {
            return false;
        }
        let columns = plan.columns.len();
        plan.columns.extend(self.word.pieces[..self.word.data_count].iter().map(|piece| piece.index));
        let indices = plan.columns.len();
        plan.columns.extend(self.chosen.iter().map(|piece| piece.index));
        let (columns, indices) = (columns..indices, indices..plan.columns.len());
        let slots = self.read_chosen(word, plan, place);
        let wanted = plan.missing.len();
        plan.missing.extend_from_slice(missing);
        plan.decodings.push(Decoding { columns, indices, slots, wanted: wanted..plan.missing.len() });
        true
    }

    /// Chooses as many pieces as the code word has data: first what is read already, then parity and log
    /// chunks, since log devices have nothing else to read. `false` if there are not as many, or no buffers
    /// for what is not read yet.
    fn choose(&mut self, place: &Place<'_>) -> bool {
        let (needed, slots) = (self.word.data_count, &self.slots);
        let pieces = self.word.pieces.iter().filter(|piece| place.health.is_readable(piece.addr));
        let at_hand = |piece: &&Piece| slots.contains_key(&key_of(piece.addr));
        self.chosen.clear();
        self.chosen.extend(pieces.clone().filter(at_hand).take(needed));
        let more = needed - self.chosen.len();
        self.chosen.extend(pieces.rev().filter(|piece| !at_hand(piece)).take(more));
        self.chosen.len() == needed && place.pool.free_count() >= more + place.store.slots_kept()
    }

    /// Has the plan read what was chosen and is not read yet; where the slots of all of it are.
    fn read_chosen(&mut self, word: Word, plan: &mut Plan, place: &mut Place<'_>) -> Range<usize> {
        let first = plan.slots.len();
        for piece in &self.chosen {
            let key = key_of(piece.addr);
            let slot = match self.slots.get(&key) {
                Some(&slot) => slot,
                None => plan.read_piece(place.store, place.pool, word, piece),
            };
            self.slots.insert(key, slot);
            plan.slots.push(slot);
        }
        first..plan.slots.len()
    }
}
