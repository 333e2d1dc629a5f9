//! How much of a segment ends when, so that compaction knows what it gains from keys whose time is up.
//!
//! Few spans of time are kept for each segment. Those that are put together stay so: a record that counts no
//! longer is always found in the span that it was added to.

/// Spans of one segment.
const SPANS_MAX: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Span {
    first_ms: u64,
    last_ms: u64,
    bytes: u64,
}

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    /// In order, none within another.
    spans: Vec<Span>,
}

impl Ends {
    /// Bytes end at a time.
    pub(crate) fn add(&mut self, until_ms: u64, bytes: u64) {
        let at = self.spans.partition_point(|span| span.last_ms < until_ms);
        match self.spans.get_mut(at) {
            Some(span) if span.first_ms <= until_ms => span.bytes += bytes,
            Some(_) | None => {
                self.spans.insert(at, Span { first_ms: until_ms, last_ms: until_ms, bytes });
                if self.spans.len() > SPANS_MAX {
                    self.put_together();
                }
            }
        }
    }

    /// Bytes that were to end at a time count no longer. Of what was not added nothing is taken.
    pub(crate) fn remove(&mut self, until_ms: u64, bytes: u64) {
        let at = self.spans.partition_point(|span| span.last_ms < until_ms);
        if let Some(span) = self.spans.get_mut(at).filter(|span| span.first_ms <= until_ms) {
            span.bytes = span.bytes.saturating_sub(bytes);
            if span.bytes == 0 {
                self.spans.remove(at);
            }
        }
    }

    /// Bytes whose time is up, at least.
    pub(crate) fn over_bytes(&self, now_ms: u64) -> u64 {
        self.spans.iter().take_while(|span| span.last_ms <= now_ms).map(|span| span.bytes).sum()
    }

    /// Makes one of the two neighbours that are shortest together.
    fn put_together(&mut self) {
        let length = |at: &usize| self.spans[at + 1].last_ms - self.spans[*at].first_ms;
        if let Some(at) = (0..self.spans.len() - 1).min_by_key(length) {
            let second = self.spans.remove(at + 1);
            let first = &mut self.spans[at];
            (first.last_ms, first.bytes) = (second.last_ms, first.bytes + second.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::{Random, SplitMix};

    #[test]
    fn what_is_added_is_removed_and_never_over_too_soon() {
        let mut random = SplitMix::new(3);
        for spread in [1, 10, 1_000_000] {
            let (mut ends, mut model) = (Ends::default(), Vec::new());
            for _ in 0..5000 {
                if random.chance(1, 2) || model.is_empty() {
                    let (until_ms, bytes) = (1 + random.below(spread), 1 + random.below(100));
                    ends.add(until_ms, bytes);
                    model.push((until_ms, bytes));
                } else {
                    let (until_ms, bytes) = model.swap_remove(random.index(model.len()));
                    ends.remove(until_ms, bytes);
                }
                let now_ms = random.below(spread + 2);
                let over: u64 =
                    model.iter().filter(|(until, _)| *until <= now_ms).map(|(_, bytes)| bytes).sum();
                let all: u64 = model.iter().map(|(_, bytes)| bytes).sum();
                assert!(ends.over_bytes(now_ms) <= over && ends.spans.len() <= SPANS_MAX);
                assert_eq!(ends.over_bytes(spread), all);
            }
        }
    }
}
