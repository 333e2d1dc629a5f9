//! The computations of a plan, on the slots of the pool.

use crate::plan::{Compute, Decoding, Plan};
use block::{Pool, Slot};
use erasure::Code;
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
        let len = pool.slot_bytes();
        for Decoding { columns, indices, slots, wanted } in &plan.decodings {
            let pieces = plan.columns[indices.clone()].iter().zip(&plan.slots[slots.clone()]);
            self.present.clear();
            self.present.extend(pieces.map(|(&index, &slot)| (index, pool.offset(slot))));
            self.wanted.clear();
            let missing = &plan.missing[wanted.clone()];
            self.wanted.extend(missing.iter().map(|read| (read.index, pool.offset(read.slot))));
            let columns = &plan.columns[columns.clone()];
            code.rebuild_in(pool.region_mut(), len, columns, &self.present, &self.wanted)
                .expect("as much is read as the code word has data");
        }
    }

    /// Carries out all computations of a plan, in order.
    pub(super) fn run(&mut self, plan: &Plan, pool: &mut Pool, code: &Code) {
        let len = pool.slot_bytes();
        for compute in &plan.computes {
            match compute {
                Compute::Fill { old, new, from, to } => fill(pool, *old, *new, *from as usize, *to as usize),
                Compute::Encode { columns, inputs, outputs } => {
                    offsets(pool, &plan.slots[inputs.clone()], &mut self.inputs);
                    offsets(pool, &plan.slots[outputs.clone()], &mut self.outputs);
                    let columns = &plan.columns[columns.clone()];
                    code.encode_in(pool.region_mut(), len, columns, &self.inputs, &self.outputs);
                }
                Compute::Delta { column, old, new, parities } => {
                    offsets(pool, &plan.slots[parities.clone()], &mut self.outputs);
                    let (old, new) = (old.map(|slot| pool.offset(slot)), new.map(|slot| pool.offset(slot)));
                    code.update_in(pool.region_mut(), len, *column, old, new, &self.outputs);
                }
                Compute::Sum { parts, total } => {
                    offsets(pool, &plan.slots[parts.clone()], &mut self.inputs);
                    let total = pool.offset(*total);
                    erasure::xor_in(pool.region_mut(), len, &self.inputs, total);
                }
                Compute::Clear(slot) => pool.bytes_mut(*slot).fill(0),
                Compute::Rebuild { columns, present, wanted } => {
                    pieces(pool, plan, present, &mut self.present);
                    pieces(pool, plan, wanted, &mut self.wanted);
                    let columns = &plan.columns[columns.clone()];
                    code.rebuild_in(pool.region_mut(), len, columns, &self.present, &self.wanted)
                        .expect("the planner chose enough pieces");
                }
            }
        }
    }
}

/// Completes a chunk of which only `from..to` is new with its old version, or with zeros.
fn fill(pool: &mut Pool, old: Option<Slot>, new: Slot, from: usize, to: usize) {
    let (len, new, old) = (pool.slot_bytes(), pool.offset(new), old.map(|slot| pool.offset(slot)));
    let region = pool.region_mut();
    match old {
        Some(old) => {
            region.copy_within(old..old + from, new);
            region.copy_within(old + to..old + len, new + to);
        }
        None => {
            region[new..new + from].fill(0);
            region[new + to..new + len].fill(0);
        }
    }
}

/// Adds `part` to `total`.
pub(super) fn add(pool: &mut Pool, total: Slot, part: Slot) {
    let (len, total, part) = (pool.slot_bytes(), pool.offset(total), pool.offset(part));
    let (low, high) = pool.region_mut().split_at_mut(total.max(part));
    let (low, high) = (&mut low[total.min(part)..][..len], &mut high[..len]);
    let (total, part) = if total < part { (low, &*high) } else { (high, &*low) };
    total.iter_mut().zip(part).for_each(|(sum, byte)| *sum ^= byte);
}

fn offsets(pool: &Pool, slots: &[Slot], out: &mut Vec<usize>) {
    out.clear();
    out.extend(slots.iter().map(|&slot| pool.offset(slot)));
}

fn pieces(pool: &Pool, plan: &Plan, range: &Range<usize>, out: &mut Vec<(usize, usize)>) {
    out.clear();
    let indices = &plan.columns[range.clone()];
    out.extend(
        indices.iter().zip(&plan.slots[range.clone()]).map(|(&index, &slot)| (index, pool.offset(slot))),
    );
}
