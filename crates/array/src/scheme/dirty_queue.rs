//! The order in which dirty stripes are committed: oldest first.

use block::StripeId;
use std::collections::VecDeque;

/// Dirty stripes, oldest first. Stripes that became clean meanwhile stay in it until they are met.
#[derive(Default)]
pub struct DirtyQueue(VecDeque<StripeId>);

impl DirtyQueue {
    /// A stripe became dirty, or was taken and could not be committed.
    pub fn push(&mut self, stripe: StripeId) {
        self.0.push_back(stripe);
    }

    /// Takes up to `count` stripes that are dirty, oldest first, each once.
    pub fn take(&mut self, count: usize, is_dirty: impl Fn(StripeId) -> bool, out: &mut Vec<StripeId>) {
        let end = out.len() + count;
        while out.len() < end {
            let Some(stripe) = self.0.pop_front() else { break };
            if is_dirty(stripe) && !out.contains(&stripe) {
                out.push(stripe);
            }
        }
    }

    /// What is in it, clean stripes included.
    pub fn iter(&self) -> impl Iterator<Item = StripeId> {
        self.0.iter().copied()
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        (self.0.capacity() * size_of::<StripeId>()) as u64
    }
}
