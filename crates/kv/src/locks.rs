//! Who works on which key: readers side by side, writers alone, all in the order in which they came.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes of keys are spread already.
#[derive(Default, Clone)]
pub(crate) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 ^= word;
    }

    fn write_u32(&mut self, word: u32) {
        self.0 ^= u64::from(word);
    }
}

/// A map by what is spread already.
pub(crate) type ByHash<K, V> = HashMap<K, V, BuildHasherDefault<AsItIs>>;

/// How somebody works on a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Read,
    Write,
}

#[derive(Default)]
struct Lock {
    readers: u32,
    writer: bool,
    waiting: VecDeque<(u32, Mode)>,
}

/// All keys that are worked on, by the hash of the key; two keys with one hash wait for each other in vain,
/// rarely.
#[derive(Default)]
pub(crate) struct Locks {
    held: ByHash<u64, Lock>,
}

impl Locks {
    /// Takes the key, or waits for it.
    pub(crate) fn take(&mut self, hash: u64, who: u32, mode: Mode) -> bool {
        let lock = self.held.entry(hash).or_default();
        let free = !lock.writer && lock.waiting.is_empty() && (mode == Mode::Read || lock.readers == 0);
        if !free {
            lock.waiting.push_back((who, mode));
            return false;
        }
        match mode {
            Mode::Read => lock.readers += 1,
            Mode::Write => lock.writer = true,
        }
        true
    }

    /// Whether somebody works on the key.
    pub(crate) fn is_held(&self, hash: u64) -> bool {
        self.held.contains_key(&hash)
    }

    /// Gives the key back; `next` gets those whose turn it is.
    pub(crate) fn give(&mut self, hash: u64, mode: Mode, next: &mut VecDeque<u32>) {
        let Some(lock) = self.held.get_mut(&hash) else { return };
        match mode {
            Mode::Read => lock.readers -= 1,
            Mode::Write => lock.writer = false,
        }
        while let Some(&(who, mode)) = lock.waiting.front() {
            if lock.writer || (mode == Mode::Write && lock.readers > 0) {
                return;
            }
            lock.waiting.pop_front();
            next.push_back(who);
            match mode {
                Mode::Read => lock.readers += 1,
                Mode::Write => lock.writer = true,
            }
        }
        if lock.readers == 0 && !lock.writer {
            self.held.remove(&hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_share_and_writers_wait_their_turn() {
        let (mut locks, mut next) = (Locks::default(), VecDeque::new());
        assert!(
            locks.take(5, 1, Mode::Read) && locks.take(5, 2, Mode::Read) && locks.take(6, 9, Mode::Write)
        );
        assert!(!locks.take(5, 3, Mode::Write) && !locks.take(5, 4, Mode::Read));
        locks.give(5, Mode::Read, &mut next);
        assert!(next.is_empty());
        locks.give(5, Mode::Read, &mut next);
        assert_eq!(next, [3]);
        locks.give(5, Mode::Write, &mut next);
        assert_eq!(next, [3, 4]);
        locks.give(5, Mode::Read, &mut next);
        assert!(locks.take(5, 5, Mode::Write));
    }
}
