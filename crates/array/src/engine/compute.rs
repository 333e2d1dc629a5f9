//! The computations of a plan, on the slots of the pool, which has memory of its own for each.

use crate::plan::{Compute, Decoding, Plan};
use block::{Pool, Slot};
use erasure::{Apart, Code};
use std::ops::Range;

/// Reused lists of where the inputs and outputs of one computation are.
#[derive(Default)]
pub(super) struct Computer {
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    present: Vec<(usize, usize)>,
    wanted: Vec<(usize, usize)>,
}

impl Computer {
    /// Decodes what a plan could not read.
    pub(super) fn decode(&mut self, plan: &Plan, pool: &mut Pool, code: &Code) {
        for Decoding { columns, indices, slots, wanted } in &plan.decodings {
            let pieces = plan.columns[indices.clone()].iter().zip(&plan.slots[slots.clone()]);
            self.present.clear();
            self.present.extend(pieces.map(|(&index, &slot)| (index, slot.index())));
            self.wanted.clear();
            let missing = &plan.missing[wanted.clone()];
            self.wanted.extend(missing.iter().map(|read| (read.index, read.slot.index())));
            let columns = &plan.columns[columns.clone()];
            code.rebuild_in(&mut memory_of(pool), columns, &self.present, &self.wanted)
                .expect("as much is read as the code word has data");
        }
    }

    /// Carries out all computations of a plan, in order.
    pub(super) fn run(&mut self, plan: &Plan, pool: &mut Pool, code: &Code) {
        for compute in &plan.computes {
            match compute {
                Compute::Fill { old, new, from, to } => fill(pool, *old, *new, *from as usize, *to as usize),
                Compute::Encode { columns, inputs, outputs } => {
                    names(&plan.slots[inputs.clone()], &mut self.inputs);
                    names(&plan.slots[outputs.clone()], &mut self.outputs);
                    let columns = &plan.columns[columns.clone()];
                    code.encode_in(&mut memory_of(pool), columns, &self.inputs, &self.outputs);
                }
                Compute::Delta { column, old, new, parities } => {
                    names(&plan.slots[parities.clone()], &mut self.outputs);
                    let (old, new) = (old.map(|slot| slot.index()), new.map(|slot| slot.index()));
                    code.update_in(&mut memory_of(pool), *column, old, new, &self.outputs);
                }
                Compute::Sum { parts, total } => {
                    names(&plan.slots[parts.clone()], &mut self.inputs);
                    let total = total.index();
                    erasure::xor_in(&mut memory_of(pool), &self.inputs, total);
                }
                Compute::Clear(slot) => pool.bytes_mut(*slot).fill(0),
                Compute::Rebuild { columns, present, wanted } => {
                    pieces(plan, present, &mut self.present);
                    pieces(plan, wanted, &mut self.wanted);
                    let columns = &plan.columns[columns.clone()];
                    code.rebuild_in(&mut memory_of(pool), columns, &self.present, &self.wanted)
                        .expect("the planner chose enough pieces");
                }
            }
        }
    }
}

/// All slots, for codes, which name them by [`Slot::index`].
pub(super) fn memory_of(pool: &mut Pool) -> Apart<'_> {
    let len = pool.slot_bytes();
    Apart::new(pool.pieces_mut(), len)
}

/// Completes a chunk of which only `from..to` is new with its old version, or with zeros.
pub(super) fn fill(pool: &mut Pool, old: Option<Slot>, new: Slot, from: usize, to: usize) {
    match old {
        Some(old) => {
            let (old, new) = pool.pair_mut(old, new);
            new[..from].copy_from_slice(&old[..from]);
            new[to..].copy_from_slice(&old[to..]);
        }
        None => {
            let new = pool.bytes_mut(new);
            new[..from].fill(0);
            new[to..].fill(0);
        }
    }
}

/// Adds `part` to `total`.
pub(super) fn add(pool: &mut Pool, total: Slot, part: Slot) {
    let (part, total) = pool.pair_mut(part, total);
    total.iter_mut().zip(part).for_each(|(sum, byte)| *sum ^= byte);
}

fn names(slots: &[Slot], out: &mut Vec<usize>) {
    out.clear();
    out.extend(slots.iter().map(|slot| slot.index()));
}

fn pieces(plan: &Plan, range: &Range<usize>, out: &mut Vec<(usize, usize)>) {
    out.clear();
    let indices = &plan.columns[range.clone()];
    out.extend(indices.iter().zip(&plan.slots[range.clone()]).map(|(&index, &slot)| (index, slot.index())));
}
