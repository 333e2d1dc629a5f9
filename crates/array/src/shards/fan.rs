//! Requests that several shards carry out together, answered once.

use crate::engine::{Done, EngineError};
use crate::planted::{Planted, planted};
use block::slab::{Key, Slab};

/// Requests that several shards carry out together: flushes, discards, orders to the whole array. Each part
/// has the same tag in each of the shards.
#[derive(Default)]
pub struct Fan {
    open: Slab<Open>,
}

#[derive(Clone, Copy)]
struct Open {
    tag: u64,
    /// Parts that have not ended.
    parts: usize,
    ended: usize,
    result: Result<(), EngineError>,
}

/// Tags of parts have this bit, and not the one of the runner's own tags.
const PART_TAGS: u64 = 1 << 62;

impl Fan {
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

    /// A part has ended; with the last one the request has, with the first error that there was.
    pub fn end(&mut self, part: Done) -> Option<Done> {
        let index = u32::try_from(part.tag & !PART_TAGS).expect("tags of parts are made here");
        let key = Key::from_index(index);
        let open = &mut self.open[key];
        open.parts -= 1;
        open.ended += 1;
        let forgets = planted(Planted::FanForgetsError);
        open.result = if forgets { part.result } else { open.result.and(part.result) };
        let Open { tag, parts, ended, result } = *open;
        if parts == 0 {
            self.open.remove(key);
        }
        let is_last = if planted(Planted::FanAnswersFirst) { ended == 1 } else { parts == 0 };
        is_last.then_some(Done { tag, result })
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
        let mut fan = Fan::default();
        let (flush, zero) = (fan.begin(17, 3), fan.begin(18, 1));
        assert!(Fan::is_part(flush) && !Fan::is_part(17) && !Fan::is_part(1 << 63 | 1));
        let ok = |tag| Done { tag, result: Ok(()) };
        assert_eq!(fan.end(ok(flush)), None);
        assert_eq!(fan.end(ok(zero)), Some(ok(18)));
        assert_eq!(fan.end(Done { tag: flush, result: Err(EngineError::ArrayFailed) }), None);
        let ended = Done { tag: 17, result: Err(EngineError::ArrayFailed) };
        assert_eq!(fan.end(Done { tag: flush, result: Err(EngineError::NoSpace) }), Some(ended));
        assert!(fan.is_empty());
    }
}
