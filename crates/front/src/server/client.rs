//! A connection with its socket: receiving and sending without blocking, with as few system calls as
//! possible.

use crate::desk::{ConnectionId, Context, Desk};
use crate::session::{Fault, Session, Wants, spans};
use block::Pool;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::fd::OwnedFd;

/// A client of the server.
pub(super) struct Client {
    pub id: ConnectionId,
    pub socket: OwnedFd,
    pub peer: String,
    pub session: Box<dyn Session>,
    pub wants: Wants,
    /// What epoll watches.
    pub interest: EventFlags,
    /// In the reactor's list of clients to look after this turn.
    pub touched: bool,
    pub opened_ns: u64,
    /// When a byte was last moved or a request finished.
    pub progress_ns: u64,
    input: InputBuffer,
    input_ended: bool,
}

/// Received bytes that wait to be looked at. Holds many small writes at once: one system call for all of
/// them.
struct InputBuffer {
    bytes: Vec<u8>,
    filled: Range<usize>,
}

/// Larger than the longest option, and than 32 writes of 4 KiB; untouched pages cost nothing.
const INPUT_BYTES: usize = 256 << 10;
/// From here on payload is received into slots directly; below, copying is cheaper than a system call of
/// its own.
const DIRECT_BYTES_MIN: usize = 32 << 10;
/// Slots that one receive can fill.
const RECEIVE_SLICES: usize = 32;
/// Segments that one send can take.
const SEND_SLICES: usize = 128;
/// Sends per turn and client, so that a fast reader of large replies does not keep the others waiting.
const SENDS_PER_TURN: usize = 8;

impl Client {
    pub(super) fn new(
        id: ConnectionId,
        socket: OwnedFd,
        peer: String,
        session: Box<dyn Session>,
        now_ns: u64,
    ) -> Self {
        Self {
            id,
            socket,
            peer,
            session,
            wants: Wants::Bytes,
            interest: EventFlags::IN,
            touched: false,
            opened_ns: now_ns,
            progress_ns: now_ns,
            input: InputBuffer { bytes: vec![0; INPUT_BYTES], filled: 0..0 },
            input_ended: false,
        }
    }

    /// Receives once, if the connection wants bytes.
    pub(super) fn fill(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        if self.wants != Wants::Bytes || self.input_ended {
            return Ok(());
        }
        let direct = self.input.filled.is_empty()
            && self.session.payload_target(cx.desk).is_some_and(|t| t.length_bytes >= DIRECT_BYTES_MIN);
        let received = if direct { self.receive_direct(cx) } else { self.receive_buffered() };
        match received {
            Ok(0) => self.input_ended = true,
            Ok(_) => {}
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(Fault::Socket(error.into())),
        }
        Ok(())
    }

    fn receive_buffered(&mut self) -> Result<usize, Errno> {
        let InputBuffer { bytes, filled } = &mut self.input;
        bytes.copy_within(filled.clone(), 0);
        *filled = 0..filled.len();
        let (_, count) = rustix::net::recv(&self.socket, &mut bytes[filled.end..], RecvFlags::empty())?;
        filled.end += count;
        Ok(count)
    }

    /// Receives payload into its slots, and what follows it into the buffer.
    fn receive_direct(&mut self, cx: &mut Context<'_>) -> Result<usize, Errno> {
        let Some(target) = self.session.payload_target(cx.desk) else { return Ok(0) };
        let pool = cx.volume.pool();
        let mut ranges = [const { 0..0 }; RECEIVE_SLICES];
        let (mut used, mut window) = (0, 0);
        for (index, start, length) in spans(target.start_bytes, target.length_bytes, cx.desk.chunk_bytes()) {
            let from = pool.offset(target.slots[index]) + start;
            if used > 0 && ranges[used - 1].end == from {
                ranges[used - 1].end += length;
            } else if used < RECEIVE_SLICES {
                ranges[used] = from..from + length;
                used += 1;
            } else {
                break;
            }
            window += length;
        }
        let tail = if window == target.length_bytes { &mut self.input.bytes[..] } else { &mut [] };
        let count = receive_scattered(&self.socket, pool, ranges, used, tail)?;
        self.input.filled = 0..count.saturating_sub(window);
        self.session.payload_received(count.min(window), cx);
        Ok(count)
    }

    /// Lets the connection look at what was received.
    pub(super) fn pump(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        let InputBuffer { bytes, filled } = &mut self.input;
        let (used, wants) = self.session.receive(&bytes[filled.clone()], cx)?;
        filled.start += used;
        self.wants = wants;
        if self.input_ended && wants == Wants::Bytes {
            self.session.input_ended(cx);
            self.wants = Wants::Nothing;
        }
        Ok(())
    }

    /// Sends what waits, as far as the socket takes it. Returns how much was sent.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) -> Result<usize, Fault> {
        let mut total = 0;
        for _ in 0..SENDS_PER_TURN {
            if self.session.output().is_empty() {
                break;
            }
            let mut slices = [IoSlice::new(&[]); SEND_SLICES];
            let count = self.session.output().gather(cx.volume.pool(), &mut slices);
            let flags = SendFlags::NOSIGNAL;
            let none = &mut SendAncillaryBuffer::default();
            match rustix::net::sendmsg(&self.socket, &slices[..count], none, flags) {
                Ok(sent) => {
                    self.session.sent(sent, cx);
                    total += sent;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(Fault::Socket(error.into())),
            }
        }
        Ok(total)
    }

    /// What epoll should watch now.
    pub(super) fn interest_wanted(&self) -> EventFlags {
        let mut flags = EventFlags::empty();
        if self.wants == Wants::Bytes && !self.input_ended {
            flags |= EventFlags::IN;
        }
        if !self.session.output().is_empty() {
            flags |= EventFlags::OUT;
        }
        flags
    }

    /// Whether it holds slots and it is the client's turn to move bytes.
    pub(super) fn blocks_slots(&self, desk: &Desk) -> bool {
        let sends = self.session.slots_held() > 0 && !self.session.output().is_empty();
        sends || self.session.payload_target(desk).is_some()
    }
}

fn receive_scattered(
    socket: &OwnedFd,
    pool: &mut Pool,
    ranges: [Range<usize>; RECEIVE_SLICES],
    used: usize,
    tail: &mut [u8],
) -> Result<usize, Errno> {
    let slots =
        pool.region_mut().get_disjoint_mut(ranges).expect("slots do not overlap and lie in the region");
    let mut slices = slots.map(IoSliceMut::new);
    if used < RECEIVE_SLICES {
        slices[used] = IoSliceMut::new(tail);
        return rustix::io::readv(socket, &mut slices[..=used]);
    }
    rustix::io::readv(socket, &mut slices)
}
