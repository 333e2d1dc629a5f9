//! Tickets: who holds one keeps what was freed since from being used again.

use std::collections::VecDeque;

/// Numbers handed out in order; knows the oldest that has not come back.
#[derive(Default)]
pub(super) struct Tickets {
    oldest: u64,
    done: VecDeque<bool>,
}

impl Tickets {
    /// The next number.
    pub(super) fn issue(&mut self) -> u64 {
        self.done.push_back(false);
        self.next() - 1
    }

    /// A number came back.
    pub(super) fn finish(&mut self, ticket: u64) {
        self.done[(ticket - self.oldest) as usize] = true;
        while self.done.front() == Some(&true) {
            self.done.pop_front();
            self.oldest += 1;
        }
    }

    /// All numbers below this have come back.
    pub(super) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// The number that will be issued next.
    pub(super) fn next(&self) -> u64 {
        self.oldest + self.done.len() as u64
    }
}
