//! The store's requests, carried to an array and back, in this process.
//!
//! Devices that keep no content, null and simulated ones, get a shadow: what is written to the volume is kept
//! here, and reads are answered from it when the array has carried them out.

use crate::failure::Failure;
use crate::subject::array::WAIT_NS;
use crate::subject::target::{Finished, Part, Target};
use block::Durability;
use kv::blocks::{Buffer, Ended, Fault, Issued, Medium, Request};
use std::collections::VecDeque;
use std::sync::Arc;

/// Parts of requests that are with the array at most; more would only wait there.
const PARTS_MAX: usize = 1024;
/// The longest part, so that a large request does not take all buffers.
const PART_BYTES_MAX: u64 = 1 << 20;
/// Pieces of the shadow; each comes when it is written to.
const PIECE_BYTES: usize = 16 << 20;

fn narrow(size: u64) -> usize {
    usize::try_from(size).expect("memory has 64 bits")
}

fn wide(size: usize) -> u64 {
    u64::try_from(size).expect("memory has at most 64 bits")
}

/// What a volume holds.
pub struct Shadow {
    pieces: Vec<Vec<u8>>,
}

impl Shadow {
    /// Zeros.
    pub fn new(volume_bytes: u64) -> Self {
        Self { pieces: vec![Vec::new(); narrow(volume_bytes).div_ceil(PIECE_BYTES)] }
    }

    fn each(offset: u64, length: usize, mut each: impl FnMut(usize, usize, std::ops::Range<usize>)) {
        let (offset, mut done) = (narrow(offset), 0);
        while done < length {
            let (piece, at) = ((offset + done) / PIECE_BYTES, (offset + done) % PIECE_BYTES);
            let some = (length - done).min(PIECE_BYTES - at);
            each(piece, at, done..done + some);
            done += some;
        }
    }

    /// Keeps these bytes.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        Self::each(offset, bytes.len(), |piece, at, range| {
            let piece = &mut self.pieces[piece];
            if piece.is_empty() {
                *piece = vec![0; PIECE_BYTES];
            }
            piece[at..at + range.len()].copy_from_slice(&bytes[range]);
        });
    }

    /// Gives them back.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) {
        Self::each(offset, bytes.len(), |piece, at, range| {
            match self.pieces[piece].get(at..at + range.len()) {
                Some(kept) => bytes[range].copy_from_slice(kept),
                None => bytes[range].fill(0),
            }
        });
    }
}

enum Cargo {
    In(Buffer),
    Out(Arc<Buffer>, Durability),
    None,
}

struct Order {
    tag: u64,
    offset_bytes: u64,
    cargo: Cargo,
    open: usize,
    result: Result<(), Fault>,
}

#[derive(Clone, Copy)]
enum What {
    Read,
    Write,
    Flush,
    Discard,
}

#[derive(Clone, Copy)]
struct Piece {
    order: usize,
    what: What,
    offset_bytes: u64,
    length_bytes: u64,
}

/// See the module's documentation.
pub struct Carrier {
    target: Box<dyn Target>,
    shadow: Option<Shadow>,
    orders: Vec<Option<Order>>,
    free_orders: Vec<usize>,
    /// What each tag of the array carries.
    pieces: Vec<Option<Piece>>,
    free_pieces: Vec<usize>,
    waiting: VecDeque<Piece>,
    part_bytes_max: u64,
    finished: Vec<Finished>,
    ended: Vec<Ended>,
}

impl Carrier {
    /// To and from the volume of this array.
    pub fn new(mut target: Box<dyn Target>, shadow: Option<Shadow>) -> Self {
        target.prepare(PARTS_MAX);
        Self {
            part_bytes_max: target.part_bytes_max().min(PART_BYTES_MAX),
            target,
            shadow,
            orders: Vec::new(),
            free_orders: Vec::new(),
            pieces: vec![None; PARTS_MAX],
            free_pieces: (0..PARTS_MAX).rev().collect(),
            waiting: VecDeque::new(),
            finished: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// The array.
    pub fn target(&mut self) -> &mut dyn Target {
        &mut *self.target
    }

    /// Takes a request.
    pub fn start(&mut self, issued: Issued) {
        let (what, offset_bytes, length_bytes, cargo) = match issued.request {
            Request::Read { offset_bytes, buffer } => {
                (What::Read, offset_bytes, wide(buffer.len()), Cargo::In(buffer))
            }
            Request::Write { offset_bytes, buffer, durability } => {
                (What::Write, offset_bytes, wide(buffer.len()), Cargo::Out(buffer, durability))
            }
            Request::Flush => (What::Flush, 0, 0, Cargo::None),
            Request::Discard { offset_bytes, length_bytes } => {
                (What::Discard, offset_bytes, length_bytes, Cargo::None)
            }
        };
        let order = Order { tag: issued.tag, offset_bytes, cargo, open: 0, result: Ok(()) };
        let at = self.free_orders.pop().unwrap_or_else(|| {
            self.orders.push(None);
            self.orders.len() - 1
        });
        let mut open = 0;
        let most = match what {
            What::Read | What::Write => self.part_bytes_max,
            What::Flush | What::Discard => u64::MAX,
        };
        let end = offset_bytes + length_bytes;
        let mut from = offset_bytes;
        while from < end || open == 0 {
            // Cut at multiples, as the trait wants it.
            let to = (from / most).saturating_add(1).saturating_mul(most).min(end);
            self.waiting.push_back(Piece { order: at, what, offset_bytes: from, length_bytes: to - from });
            (from, open) = (to, open + 1);
        }
        self.orders[at] = Some(Order { open, ..order });
        self.pump();
    }

    fn pump(&mut self) {
        while let (Some(&piece), Some(&tag)) = (self.waiting.front(), self.free_pieces.last()) {
            let Some(order) = &self.orders[piece.order] else { return };
            let part = Part { tag, offset_bytes: piece.offset_bytes, length_bytes: piece.length_bytes };
            let started = match (piece.what, &order.cargo) {
                (What::Read, _) => self.target.start_read(part),
                (What::Write, Cargo::Out(buffer, _)) => {
                    let first = order.offset_bytes;
                    if let Some(shadow) = &mut self.shadow {
                        let at = narrow(piece.offset_bytes - first);
                        shadow.write(piece.offset_bytes, &buffer[at..at + narrow(piece.length_bytes)]);
                    }
                    self.target.start_write(part, &mut |offset, bytes| {
                        let at = narrow(offset - first);
                        bytes.copy_from_slice(&buffer[at..at + bytes.len()]);
                    })
                }
                (What::Flush, _) => self.target.start_flush(tag),
                (What::Discard, _) => self.target.start_trim(part),
                (What::Write, Cargo::In(_) | Cargo::None) => unreachable!("a write has something to write"),
            };
            if !started {
                return;
            }
            self.waiting.pop_front();
            self.free_pieces.pop();
            self.pieces[tag] = Some(piece);
        }
    }

    /// Has the array work; waits for `wait_ns` at most if there is nothing to do. Appends what has ended.
    pub fn turn(&mut self, now_ns: u64, wait_ns: u64, ended: &mut Vec<Ended>) -> Result<(), Failure> {
        let wait_ns = if self.ended.is_empty() { wait_ns } else { 0 };
        self.target.turn(now_ns, wait_ns)?;
        let mut finished = std::mem::take(&mut self.finished);
        self.target.take_finished(&mut finished);
        for Finished { tag, result } in finished.drain(..) {
            self.piece_ended(tag, result);
        }
        self.finished = finished;
        self.pump();
        ended.append(&mut self.ended);
        Ok(())
    }

    fn piece_ended(&mut self, tag: usize, result: Result<(), String>) {
        let Some(piece) = self.pieces[tag].take() else { return };
        if let Some(order) = &mut self.orders[piece.order] {
            order.open -= 1;
            match (&result, &mut order.cargo) {
                (Err(_), _) => order.result = Err(Fault::Io),
                (Ok(()), Cargo::In(buffer)) if self.shadow.is_none() => {
                    let first = order.offset_bytes;
                    self.target.content(tag, &mut |offset, bytes| {
                        let at = narrow(offset - first);
                        buffer[at..at + bytes.len()].copy_from_slice(bytes);
                    });
                }
                (Ok(()), Cargo::In(_) | Cargo::Out(..) | Cargo::None) => {}
            }
        }
        self.target.release(tag);
        self.free_pieces.push(tag);
        if self.orders[piece.order].as_ref().is_some_and(|order| order.open == 0) {
            self.order_ended(piece.order);
        }
    }

    fn order_ended(&mut self, at: usize) {
        let Some(mut order) = self.orders[at].take() else { return };
        if matches!(order.cargo, Cargo::Out(_, Durability::Durable)) && order.result.is_ok() {
            // The array was told of a volatile write; the flush behind it makes it what was asked for.
            order.cargo = Cargo::None;
            order.open = 1;
            self.orders[at] = Some(order);
            self.waiting.push_back(Piece { order: at, what: What::Flush, offset_bytes: 0, length_bytes: 0 });
            return;
        }
        self.free_orders.push(at);
        let buffer = match order.cargo {
            Cargo::In(mut buffer) => {
                if let Some(shadow) = &self.shadow {
                    shadow.read(order.offset_bytes, &mut buffer);
                }
                Some(buffer)
            }
            Cargo::Out(..) | Cargo::None => None,
        };
        self.ended.push(Ended { tag: order.tag, buffer, result: order.result });
    }
}

impl Medium for Carrier {
    fn carry(&mut self, requests: Vec<Issued>) -> Vec<Ended> {
        let count = requests.len();
        let mut ended = Vec::new();
        requests.into_iter().for_each(|issued| self.start(issued));
        while ended.len() < count {
            let now_ns = self.target.clock_ns().unwrap_or(0);
            if self.turn(now_ns, WAIT_NS, &mut ended).is_err() {
                break;
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::Shadow;

    #[test]
    fn a_shadow_gives_back_what_was_written_across_its_pieces() {
        let mut shadow = Shadow::new(64 << 20);
        let written: Vec<u8> = (0..=255).cycle().take(8192).collect();
        let at = (16 << 20) - 4096;
        shadow.write(at, &written);
        let mut read = vec![1; 16384];
        shadow.read(at - 4096, &mut read);
        assert_eq!(read[..4096], [0; 4096]);
        assert_eq!(read[4096..12288], written);
        assert_eq!(read[12288..], [0; 4096]);
    }
}
