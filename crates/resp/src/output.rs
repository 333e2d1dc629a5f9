//! What waits to be sent to a client, in order: bytes of the protocol, and parts of values that are not
//! copied.

use crate::wire::{Reply, Version};
use kv::ask::{Bytes, Value};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Parts that are smaller than this are copied: a segment of its own costs more.
const COPY_BYTES: usize = 16 << 10;
/// Sent bytes are forgotten at the latest when there are so many.
const COMPACT_BYTES: usize = 64 << 10;

#[derive(Debug)]
enum Segment {
    Bytes { length: usize },
    Part { part: Bytes, start: usize },
}

/// See the module's documentation.
#[derive(Default, Debug)]
pub struct Output {
    bytes: Vec<u8>,
    bytes_sent: usize,
    segments: VecDeque<Segment>,
    length_bytes: usize,
}

impl Output {
    /// Whether everything is sent.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// How much waits.
    pub fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// Queues what `write` says.
    pub fn put(&mut self, version: Version, write: impl FnOnce(&mut Reply<'_>)) {
        let before = self.bytes.len();
        write(&mut Reply::new(&mut self.bytes, version));
        let added = self.bytes.len() - before;
        self.length_bytes += added;
        match self.segments.back_mut() {
            Some(Segment::Bytes { length }) => *length += added,
            Some(Segment::Part { .. }) | None if added > 0 => {
                self.segments.push_back(Segment::Bytes { length: added });
            }
            Some(Segment::Part { .. }) | None => {}
        }
    }

    /// Queues a value as a string of bytes.
    pub fn put_value(&mut self, version: Version, value: &Value) {
        let length = value.parts().iter().map(|part| part.len()).sum();
        self.put(version, |reply| reply.bulk_head(length));
        for part in value.parts() {
            if part.len() < COPY_BYTES {
                self.put(version, |reply| reply.raw(part));
            } else {
                self.length_bytes += part.len();
                self.segments.push_back(Segment::Part { part: part.clone(), start: 0 });
            }
        }
        self.put(version, |reply| reply.bulk_end());
    }

    /// Fills `slices` with what comes first; returns how many were filled.
    pub fn gather<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut from = self.bytes_sent;
        let mut count = 0;
        for (segment, slice) in self.segments.iter().zip(slices) {
            *slice = IoSlice::new(match segment {
                Segment::Bytes { length } => {
                    from += length;
                    &self.bytes[from - length..from]
                }
                Segment::Part { part, start } => &part[*start..],
            });
            count += 1;
        }
        count
    }

    /// The first `count_bytes` were sent.
    pub fn sent(&mut self, mut count_bytes: usize) {
        self.length_bytes -= count_bytes;
        while count_bytes > 0 {
            let segment = self.segments.front_mut().expect("no more is sent than was queued");
            let left = match segment {
                Segment::Bytes { length } => {
                    let step = count_bytes.min(*length);
                    self.bytes_sent += step;
                    *length -= step;
                    count_bytes -= step;
                    *length
                }
                Segment::Part { part, start } => {
                    let step = count_bytes.min(part.len() - *start);
                    *start += step;
                    count_bytes -= step;
                    part.len() - *start
                }
            };
            if left > 0 {
                break;
            }
            self.segments.pop_front();
        }
        if self.bytes_sent == self.bytes.len() {
            self.bytes.clear();
            self.bytes_sent = 0;
            if self.bytes.capacity() > 16 * COMPACT_BYTES {
                self.bytes = Vec::new();
            }
        } else if self.bytes_sent > COMPACT_BYTES && self.bytes_sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.bytes_sent);
            self.bytes_sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_put_is_sent_in_order(
            lengths in proptest::collection::vec(0..50_000_usize, 1..12),
            steps in proptest::collection::vec(1..40_000_usize, 1..9),
        ) {
            let mut output = Output::default();
            let mut expected = Vec::new();
            for (&length, byte) in lengths.iter().zip(0_u8..) {
                expected.extend_from_slice(format!("${length}\r\n").as_bytes());
                expected.extend(std::iter::repeat_n(byte, length));
                expected.extend_from_slice(b"\r\n");
                output.put_value(Version::Two, &Value::new(&vec![byte; length]));
            }
            prop_assert_eq!(output.length_bytes(), expected.len());
            let mut taken = Vec::new();
            for step in steps.iter().cycle() {
                let mut slices = [IoSlice::new(&[]); 3];
                let count = output.gather(&mut slices);
                let whole: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect();
                let step = (*step).min(whole.len());
                taken.extend_from_slice(&whole[..step]);
                output.sent(step);
                if output.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(output.length_bytes(), 0);
            prop_assert!(taken == expected);
        }
    }
}
