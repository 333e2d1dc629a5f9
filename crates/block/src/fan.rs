//! Requests that several shards carry out together, answered once.

use crate::planted::{Planted, planted};
use crate::slab::{Key, Slab};

/// Requests that several shards carry out together: flushes, discards, orders to the whole array. Each part
/// has the same tag in each of the shards.
pub struct Fan<E> {
    open: Slab<Open<E>>,
}

#[derive(Clone, Copy)]
struct Open<E> {
    tag: u64,
    /// Parts that have not ended.
    parts: usize,
    ended: usize,
    result: Result<(), E>,
}

/// Tags of parts have this bit, and not the one of the runner's own tags.
const PART_TAGS: u64 = 1 << 62;

impl<E> Default for Fan<E> {
    fn default() -> Self {
        Self { open: Slab::default() }
    }
}

impl<E: Copy> Fan<E> {
    /// A request of so many parts, at least one; the tag of each of them.
    pub fn begin(&mut self, tag: u64, parts: usize) -> u64 {
        assert!(parts > 0, "a request without parts would never end");
        let key = self.open.insert(Open { tag, parts, ended: 0, result: Ok(()) });
        PART_TAGS | u64::from(key.index())
    }

    /// Whether an answer is one to a part.
    #[inline]
    pub fn is_part(tag: u64) -> bool {
        tag & (PART_TAGS | PART_TAGS << 1) == PART_TAGS
    }

    /// A part has ended; with the last one the request has: its tag, and the first error that there was.
    pub fn end(&mut self, part: u64, part_result: Result<(), E>) -> Option<(u64, Result<(), E>)> {
        let index = u32::try_from(part & !PART_TAGS).expect("tags of parts are made here");
        let key = Key::from_index(index);
        let open = &mut self.open[key];
        open.parts -= 1;
        open.ended += 1;
        let forgets = planted(Planted::FanForgetsError);
        open.result = if forgets { part_result } else { open.result.and(part_result) };
        let Open { tag, parts, ended, result } = *open;
        if parts == 0 {
            self.open.remove(key);
        }
        let is_last = if planted(Planted::FanAnswersFirst) { ended == 1 } else { parts == 0 };
        is_last.then_some((tag, result))
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_ends_with_its_last_part_and_its_first_error() {
        let mut fan = Fan::<u8>::default();
        let (flush, zero) = (fan.begin(17, 3), fan.begin(18, 1));
        assert!(Fan::<u8>::is_part(flush) && !Fan::<u8>::is_part(17) && !Fan::<u8>::is_part(1 << 63 | 1));
        assert_eq!(fan.end(flush, Ok(())), None);
        assert_eq!(fan.end(zero, Ok(())), Some((18, Ok(()))));
        assert_eq!(fan.end(flush, Err(1)), None);
        assert_eq!(fan.end(flush, Err(2)), Some((17, Err(1))));
        assert!(fan.is_empty());
    }
}
