//! The checksums of what a plan writes, of which some follow from others.
//!
//! Checksums are linear: that of an exclusive or of chunks follows from theirs and that of a chunk of zeros.
//! The first parity of every code is such a sum, and so is that of a log stripe and every change of it. Of
//! what was read the checksum is known, since it was compared; that of data is computed once. So the first
//! parity is not looked at again, and should the code not give what it should, or the memory not keep it, the
//! chunk differs from its checksum instead of being believed.

use crate::checksum::chunk_checksum;
use crate::plan::{Compute, Plan};
use block::{Pool, Slot};

/// What is known of a slot.
#[derive(Clone, Copy, Default)]
struct Known {
    /// In this run.
    run: u32,
    /// Its checksum, less that of zeros.
    sum: u32,
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Sums {
    /// By slot.
    known: Vec<Known>,
    run: u32,
    /// The checksum of a chunk of zeros.
    zeros: u32,
}

impl Sums {
    /// A plan's computations have been carried out, on reads that were compared with their checksums. `zeros`
    /// is a chunk of them.
    pub fn follow(&mut self, plan: &Plan, pool: &Pool, zeros: Slot) {
        if self.known.is_empty() {
            self.known.resize(pool.slot_count(), Known::default());
            self.zeros = chunk_checksum(pool.bytes(zeros));
        }
        self.begin_run();
        for read in plan.reads.iter().chain(&plan.held.reads).chain(&plan.missing) {
            self.set(read.slot, read.crc ^ self.zeros);
        }
        for compute in &plan.computes {
            match compute {
                Compute::Fill { new, .. } => self.forget(*new),
                Compute::Clear(slot) => self.set(*slot, 0),
                Compute::Encode { inputs, outputs, .. } => {
                    let sum = self.total(&plan.slots[inputs.clone()], pool);
                    self.set_first(&plan.slots[outputs.clone()], Some(sum));
                }
                Compute::Delta { old, new, parities, .. } => {
                    let parities = &plan.slots[parities.clone()];
                    let change = self.maybe(*old, pool) ^ self.maybe(*new, pool);
                    let before = parities.first().and_then(|&first| self.get(first));
                    self.set_first(parities, before.map(|before| before ^ change));
                }
                Compute::Sum { parts, total } => {
                    let sum = self.total(&plan.slots[parts.clone()], pool);
                    self.set(*total, sum);
                }
                Compute::Rebuild { wanted, .. } => self.set_first(&plan.slots[wanted.clone()], None),
            }
        }
    }

    /// The checksum of what is in a slot of that plan.
    pub fn checksum(&mut self, slot: Slot, pool: &Pool) -> u32 {
        self.sum(slot, pool) ^ self.zeros
    }

    /// By how much a change, which is in a slot of that plan, changes a checksum.
    pub fn change(&mut self, slot: Slot, pool: &Pool) -> u32 {
        self.sum(slot, pool)
    }

    /// Nothing is known.
    fn begin_run(&mut self) {
        self.run = self.run.wrapping_add(1);
        if self.run == 0 {
            self.known.fill(Known::default());
            self.run = 1;
        }
    }

    fn get(&self, slot: Slot) -> Option<u32> {
        let Known { run, sum } = self.known[slot.index()];
        (run == self.run).then_some(sum)
    }

    fn set(&mut self, slot: Slot, sum: u32) {
        self.known[slot.index()] = Known { run: self.run, sum };
    }

    fn forget(&mut self, slot: Slot) {
        self.known[slot.index()].run = 0;
    }

    /// Of some pieces that were computed that of the first is known, or not; the others are not sums.
    fn set_first(&mut self, slots: &[Slot], first: Option<u32>) {
        slots.iter().for_each(|&slot| self.forget(slot));
        if let (Some(&slot), Some(sum)) = (slots.first(), first) {
            self.set(slot, sum);
        }
    }

    fn sum(&mut self, slot: Slot, pool: &Pool) -> u32 {
        self.get(slot).unwrap_or_else(|| {
            let sum = chunk_checksum(pool.bytes(slot)) ^ self.zeros;
            self.set(slot, sum);
            sum
        })
    }

    /// The same; `None` stands for zeros.
    fn maybe(&mut self, slot: Option<Slot>, pool: &Pool) -> u32 {
        slot.map_or(0, |slot| self.sum(slot, pool))
    }

    fn total(&mut self, slots: &[Slot], pool: &Pool) -> u32 {
        slots.iter().fold(0, |total, &slot| total ^ self.sum(slot, pool))
    }
}
