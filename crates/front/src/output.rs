//! What waits to be sent to a client: protocol bytes and slots of payload, in order.

use block::{Pool, Slot};
use std::collections::VecDeque;
use std::io::IoSlice;

#[derive(Clone, Copy, Debug)]
enum Segment {
    Bytes { length: usize },
    Slot { slot: Slot, start: usize, length: usize },
}

/// Bytes and slots in the order in which they are sent. Slots in here belong to the connection.
#[derive(Default, Debug)]
pub struct OutputQueue {
    bytes: Vec<u8>,
    bytes_sent: usize,
    segments: VecDeque<Segment>,
    length_bytes: usize,
}

/// Sent protocol bytes are forgotten at the latest when there are this many.
const COMPACT_BYTES: usize = 64 << 10;

impl OutputQueue {
    /// Whether everything is sent.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// How much waits, in bytes.
    pub fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// How many protocol bytes (not payload) are kept.
    pub fn protocol_bytes(&self) -> usize {
        self.bytes.len() - self.bytes_sent
    }

    /// Queues what `write` appends.
    pub fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.bytes.len();
        write(&mut self.bytes);
        let added = self.bytes.len() - before;
        self.length_bytes += added;
        match self.segments.back_mut() {
            Some(Segment::Bytes { length }) => *length += added,
            Some(Segment::Slot { .. }) | None if added > 0 => {
                self.segments.push_back(Segment::Bytes { length: added });
            }
            Some(Segment::Slot { .. }) | None => {}
        }
    }

    /// Queues `length` bytes of a slot from `start` on; the slot comes back from [`OutputQueue::sent`].
    pub fn put_slot(&mut self, slot: Slot, start: usize, length: usize) {
        self.length_bytes += length;
        self.segments.push_back(Segment::Slot { slot, start, length });
    }

    /// Fills `slices` with what comes first; returns how many were filled.
    pub fn gather<'a>(&'a self, pool: &'a Pool, slices: &mut [IoSlice<'a>]) -> usize {
        let mut from = self.bytes_sent;
        let mut count = 0;
        for (segment, slice) in self.segments.iter().zip(slices) {
            *slice = IoSlice::new(match *segment {
                Segment::Bytes { length } => {
                    from += length;
                    &self.bytes[from - length..from]
                }
                Segment::Slot { slot, start, length } => &pool.bytes(slot)[start..start + length],
            });
            count += 1;
        }
        count
    }

    /// Takes away the first `count_bytes`, which were sent; hands out the slots that are no longer needed.
    pub fn sent(&mut self, mut count_bytes: usize, mut freed: impl FnMut(Slot)) {
        self.length_bytes -= count_bytes;
        while count_bytes > 0 {
            let segment = self.segments.front_mut().expect("no more is sent than was queued");
            match segment {
                Segment::Bytes { length } => {
                    let step = count_bytes.min(*length);
                    (self.bytes_sent, *length, count_bytes) =
                        (self.bytes_sent + step, *length - step, count_bytes - step);
                    if *length > 0 {
                        break;
                    }
                }
                Segment::Slot { slot, start, length } => {
                    let step = count_bytes.min(*length);
                    (*start, *length, count_bytes) = (*start + step, *length - step, count_bytes - step);
                    if *length > 0 {
                        break;
                    }
                    freed(*slot);
                }
            }
            self.segments.pop_front();
        }
        if self.bytes_sent == self.bytes.len() {
            self.bytes.clear();
            self.bytes_sent = 0;
        } else if self.bytes_sent > COMPACT_BYTES {
            self.bytes.drain(..self.bytes_sent);
            self.bytes_sent = 0;
        }
    }

    /// Forgets everything; hands out the slots.
    pub fn clear(&mut self, mut freed: impl FnMut(Slot)) {
        for segment in self.segments.drain(..) {
            match segment {
                Segment::Bytes { .. } => {}
                Segment::Slot { slot, .. } => freed(slot),
            }
        }
        self.bytes.clear();
        (self.bytes_sent, self.length_bytes) = (0, 0);
    }
}
