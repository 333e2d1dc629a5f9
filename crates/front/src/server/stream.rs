//! A protocol of bytes on a socket: receiving and sending without blocking, with as few system calls as
//! possible.

use crate::desk::{Context, Desk};
use crate::session::{Fault, Session, Wants, spans};
use crate::tls::{Secured, Tls};
use block::Parts;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::fd::OwnedFd;

/// A session with what was received for it.
pub(super) struct Stream {
    pub session: Box<dyn Session>,
    pub wants: Wants,
    input: InputBuffer,
    input_ended: bool,
    /// How the connection is to be encrypted, and what does it.
    tls: Option<Tls>,
    secured: Option<Box<Secured>>,
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

impl InputBuffer {
    /// Where more can be received, behind what is there.
    fn room(&mut self) -> &mut [u8] {
        let Self { bytes, filled } = self;
        bytes.copy_within(filled.clone(), 0);
        *filled = 0..filled.len();
        &mut bytes[filled.end..]
    }
}

impl Stream {
    pub(super) fn new(session: Box<dyn Session>, tls: Option<Tls>) -> Self {
        let input = InputBuffer { bytes: vec![0; INPUT_BYTES], filled: 0..0 };
        Self { session, wants: Wants::Bytes, input, input_ended: false, tls, secured: None }
    }

    /// Receives once, if the connection wants bytes; how many came.
    pub(super) fn fill(&mut self, socket: &OwnedFd, cx: &mut Context<'_>) -> Result<usize, Fault> {
        if self.wants != Wants::Bytes || self.input_ended {
            return Ok(0);
        }
        if let Some(secured) = &mut self.secured {
            let (count, ended) = secured.receive(socket, self.input.room())?;
            self.input.filled.end += count;
            self.input_ended = ended;
            return Ok(count);
        }
        let direct = self.input.filled.is_empty()
            && self.session.payload_target(cx.desk).is_some_and(|t| t.length_bytes >= DIRECT_BYTES_MIN);
        let received = if direct { self.receive_direct(socket, cx) } else { self.receive_buffered(socket) };
        match received {
            Ok(count) => {
                self.input_ended = count == 0;
                Ok(count)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => Err(Fault::Socket(error.into())),
        }
    }

    fn receive_buffered(&mut self, socket: &OwnedFd) -> Result<usize, Errno> {
        let (_, count) = rustix::net::recv(socket, self.input.room(), RecvFlags::empty())?;
        self.input.filled.end += count;
        Ok(count)
    }

    /// Receives payload into its slots, and what follows it into the buffer.
    fn receive_direct(&mut self, socket: &OwnedFd, cx: &mut Context<'_>) -> Result<usize, Errno> {
        let Some(target) = self.session.payload_target(cx.desk) else { return Ok(0) };
        let parts = spans(target.start_bytes, target.length_bytes, cx.desk.chunk_bytes())
            .map(|(index, start, length)| (target.slots[index], start..start + length));
        let Parts { pieces, used, bytes } = cx.volume.pool().parts_mut::<RECEIVE_SLICES>(parts);
        let mut slices = pieces.map(IoSliceMut::new);
        let mut count = used;
        if used < RECEIVE_SLICES && bytes == target.length_bytes {
            slices[used] = IoSliceMut::new(&mut self.input.bytes);
            count += 1;
        }
        let count = rustix::io::readv(socket, &mut slices[..count])?;
        self.input.filled = 0..count.saturating_sub(bytes);
        self.session.payload_received(count.min(bytes), cx);
        Ok(count)
    }

    /// Lets the connection look at what was received.
    pub(super) fn pump(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        loop {
            let InputBuffer { bytes, filled } = &mut self.input;
            let (used, wants) = self.session.receive(&bytes[filled.clone()], cx)?;
            filled.start += used;
            self.wants = wants;
            // No event would tell of what was received and found no room.
            let Some(secured) = self.secured.as_mut().filter(|_| wants == Wants::Bytes) else { break };
            let (count, ended) = secured.take(self.input.room())?;
            self.input.filled.end += count;
            self.input_ended |= ended;
            if count == 0 {
                break;
            }
        }
        let wants = self.wants;
        if self.input_ended && wants == Wants::Bytes {
            self.session.input_ended(cx);
            self.wants = Wants::Nothing;
        }
        Ok(())
    }

    /// Sends what waits, as far as the socket takes it. Returns how much was sent.
    pub(super) fn flush(&mut self, socket: &OwnedFd, cx: &mut Context<'_>) -> Result<usize, Fault> {
        if self.secured.is_some() {
            return self.flush_secured(socket, cx);
        }
        let mut total = 0;
        for _ in 0..SENDS_PER_TURN {
            if self.session.output().is_empty() {
                break;
            }
            let mut slices = [IoSlice::new(&[]); SEND_SLICES];
            let count = self.session.output().gather(cx.volume.pool(), &mut slices);
            let flags = SendFlags::NOSIGNAL;
            let none = &mut SendAncillaryBuffer::default();
            match rustix::net::sendmsg(socket, &slices[..count], none, flags) {
                Ok(sent) => {
                    self.session.sent(sent, cx);
                    total += sent;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(Fault::Socket(error.into())),
            }
        }
        if self.wants == Wants::Encryption && self.session.output().is_empty() {
            self.encrypt()?;
        }
        Ok(total)
    }

    /// Everything that is not to be encrypted is said.
    fn encrypt(&mut self) -> Result<(), Fault> {
        let tls = self.tls.as_ref().expect("a session asks for what there is");
        let left_over = &self.input.bytes[self.input.filled.clone()];
        self.secured = Some(Box::new(Secured::begin(tls, left_over)?));
        self.session.encrypted();
        self.wants = Wants::Bytes;
        Ok(())
    }

    /// The same over an encrypted connection.
    fn flush_secured(&mut self, socket: &OwnedFd, cx: &mut Context<'_>) -> Result<usize, Fault> {
        let Some(secured) = &mut self.secured else { return Ok(0) };
        let mut total = 0;
        for _ in 0..SENDS_PER_TURN {
            let mut slices = [IoSlice::new(&[]); SEND_SLICES];
            let count = self.session.output().gather(cx.volume.pool(), &mut slices);
            let taken = secured.put(&slices[..count])?;
            self.session.sent(taken, cx);
            if self.session.is_finished() {
                secured.say_goodbye();
            }
            total += secured.send(socket)?;
            if secured.wants_to_send() || self.session.output().is_empty() {
                break;
            }
        }
        Ok(total)
    }

    /// Whether the session is over and everything is sent.
    pub(super) fn is_finished(&self) -> bool {
        let has_sent = self.secured.as_ref().is_none_or(|secured| !secured.wants_to_send());
        self.session.is_finished() && has_sent
    }

    /// What epoll should watch now.
    pub(super) fn interest_wanted(&self) -> EventFlags {
        let mut flags = EventFlags::empty();
        if self.wants == Wants::Bytes && !self.input_ended {
            flags |= EventFlags::IN;
        }
        let sends = self.secured.as_ref().is_some_and(|secured| secured.wants_to_send());
        if sends || !self.session.output().is_empty() {
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
