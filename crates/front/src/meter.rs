//! What clients asked for and how long they waited for it, as whoever watches may read it at any time from
//! any thread. One thread counts; so nothing is locked, and no step of it needs a read-modify-write of the
//! processor's.

use crate::command::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// Classes of waiting time: up to 1 us, 2 us, 4 us, .. 2^23 us (8.4 s), and longer.
pub const CLASSES: usize = 25;

/// Requests of one kind.
#[derive(Default)]
struct Line {
    errors: AtomicU64,
    bytes: AtomicU64,
    waited_ns: AtomicU64,
    by_wait: [AtomicU64; CLASSES],
}

/// The same at one moment, or of several meters together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// Requests answered with an error.
    pub errors: u64,
    /// Bytes that were read or written, or that the range had, of those answered without.
    pub bytes: u64,
    /// Time from the request to its answer, all together.
    pub waited_ns: u64,
    /// Requests by the time they took: class i up to 2^i microseconds, the last one longer.
    pub by_wait: [u64; CLASSES],
}

impl Reading {
    /// Requests.
    pub fn count(&self) -> u64 {
        self.by_wait.iter().sum()
    }

    /// With those of another meter.
    pub fn and(self, other: Self) -> Self {
        Self {
            errors: self.errors + other.errors,
            bytes: self.bytes + other.bytes,
            waited_ns: self.waited_ns + other.waited_ns,
            by_wait: std::array::from_fn(|class| self.by_wait[class] + other.by_wait[class]),
        }
    }

    /// The longest time in microseconds that so many per mille of the requests took at most, to a power of
    /// two; `None` if there were none, or if it was longer than all classes.
    pub fn wait_us(&self, permille: u64) -> Option<u64> {
        let wanted = (u128::from(self.count()) * u128::from(permille)).div_ceil(1000);
        let mut seen = 0;
        let class = self.by_wait.iter().position(|&count| {
            seen += u128::from(count);
            seen >= wanted && seen > 0
        })?;
        (class + 1 < CLASSES).then(|| 1 << class)
    }
}

/// The class of a waiting time.
fn class_of(wait_ns: u64) -> usize {
    let us = wait_ns.div_ceil(1000);
    let class = us.checked_next_power_of_two().map_or(CLASSES, |us| us.trailing_zeros() as usize);
    class.min(CLASSES - 1)
}

/// See the module's documentation.
#[derive(Default)]
pub struct Meter {
    lines: [Line; Command::COUNT],
}

fn add(to: &AtomicU64, what: u64) {
    to.store(to.load(Ordering::Relaxed).wrapping_add(what), Ordering::Relaxed);
}

impl Meter {
    /// Counts an answer; to be called by one thread only.
    #[inline]
    pub fn count(&self, command: Command, bytes: u64, failed: bool, wait_ns: u64) {
        let line = &self.lines[command.index()];
        if failed {
            add(&line.errors, 1);
        } else {
            add(&line.bytes, bytes);
        }
        add(&line.waited_ns, wait_ns);
        add(&line.by_wait[class_of(wait_ns)], 1);
    }

    /// What was counted of one kind.
    pub fn read(&self, command: Command) -> Reading {
        let line = &self.lines[command.index()];
        let get = |value: &AtomicU64| value.load(Ordering::Relaxed);
        Reading {
            errors: get(&line.errors),
            bytes: get(&line.bytes),
            waited_ns: get(&line.waited_ns),
            by_wait: std::array::from_fn(|class| get(&line.by_wait[class])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_end_at_powers_of_two_microseconds() {
        let classes = [0, 1, 1_000, 1_001, 2_000, 4_000, 4_001, 8_388_608_000, 8_388_608_001, u64::MAX];
        assert_eq!(classes.map(class_of), [0, 0, 0, 1, 1, 2, 3, 23, 24, 24]);
    }

    #[test]
    fn what_was_counted_is_read_and_summed() {
        let (one, two) = (Meter::default(), Meter::default());
        (0..97).for_each(|_| one.count(Command::Read, 4096, false, 900));
        one.count(Command::Read, 4096, true, 3_500);
        one.count(Command::Write, 512, false, 10_000_000_000);
        (0..2).for_each(|_| two.count(Command::Read, 1 << 20, false, 100_000));
        let reads = one.read(Command::Read).and(two.read(Command::Read));
        assert_eq!((reads.count(), reads.errors, reads.bytes), (100, 1, 97 * 4096 + (2 << 20)));
        assert_eq!(reads.waited_ns, 97 * 900 + 3_500 + 200_000);
        assert_eq!(
            [500, 970, 980, 999, 1000].map(|share| reads.wait_us(share)),
            [1, 1, 4, 128, 128].map(Some)
        );
        assert_eq!(one.read(Command::Write).wait_us(500), None, "longer than can be said");
        assert_eq!(one.read(Command::Flush).wait_us(500), None, "there were none");
    }
}
