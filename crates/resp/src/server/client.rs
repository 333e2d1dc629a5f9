//! A client's socket: receiving and sending without blocking, encrypted or not.

use super::progress::Progress;
use crate::desk::ClientId;
use crate::fault::Fault;
use crate::session::{Context, Session, Wants};
use front::{Secured, Tls};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use std::io::IoSlice;
use std::ops::Range;
use std::os::fd::OwnedFd;

/// More than a parser leaves of any command, twice over: its arguments leave the input at 64 KiB, and one of
/// them is shorter than that. Untouched pages cost nothing.
const INPUT_BYTES: usize = 256 << 10;
/// Segments that one send can take.
const SEND_SLICES: usize = 128;
/// Sends per turn and client, so that a fast reader of large answers does not keep the others waiting.
const SENDS_PER_TURN: usize = 8;

/// A client of the server.
pub(super) struct Client {
    pub id: ClientId,
    pub socket: OwnedFd,
    pub peer: String,
    pub session: Session,
    pub wants: Wants,
    /// What epoll watches.
    pub interest: EventFlags,
    /// In the loop's list of clients to look after this turn.
    pub touched: bool,
    pub opened_ns: u64,
    /// When it last sent something.
    pub heard_ns: u64,
    /// When it last took something, or had nothing to take.
    pub taken_ns: u64,
    progress: Progress,
    input: Vec<u8>,
    filled: Range<usize>,
    input_ended: bool,
    secured: Option<Box<Secured>>,
}

impl Client {
    pub(super) fn new(
        id: ClientId,
        socket: OwnedFd,
        peer: String,
        tls: Option<&Tls>,
        now_ns: u64,
    ) -> Result<Self, Fault> {
        let secured =
            tls.map(|tls| Secured::begin(tls, &[]).map(Box::new)).transpose().map_err(Fault::Tls)?;
        Ok(Self {
            id,
            socket,
            peer,
            session: Session::new(id),
            wants: Wants::Bytes,
            interest: EventFlags::IN,
            touched: false,
            opened_ns: now_ns,
            heard_ns: now_ns,
            taken_ns: now_ns,
            progress: Progress::new(now_ns),
            input: vec![0; INPUT_BYTES],
            filled: 0..0,
            input_ended: false,
            secured,
        })
    }

    /// Its socket is ready for something.
    pub(super) fn ready(&mut self, flags: EventFlags, cx: &mut Context<'_>) -> Result<(), Fault> {
        let gone = flags.intersects(EventFlags::HUP | EventFlags::ERR);
        if gone && self.wants != Wants::Bytes {
            // Nobody is left to read answers, and epoll would report this for ever.
            return Err(Fault::Socket(std::io::ErrorKind::BrokenPipe.into()));
        }
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            self.fill(cx)?;
            self.pump(cx)?;
        }
        Ok(())
    }

    /// Where more can be received, behind what is there.
    fn room(&mut self) -> Range<usize> {
        self.input.copy_within(self.filled.clone(), 0);
        self.filled = 0..self.filled.len();
        self.filled.end..self.input.len()
    }

    /// Receives once, if bytes are wanted.
    fn fill(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        if self.wants != Wants::Bytes || self.input_ended {
            return Ok(());
        }
        let room = self.room();
        let received = match &mut self.secured {
            Some(secured) => {
                let (count, ended) =
                    secured.receive(&self.socket, &mut self.input[room]).map_err(Fault::Tls)?;
                self.input_ended = ended;
                count
            }
            None => match rustix::net::recv(&self.socket, &mut self.input[room], RecvFlags::empty()) {
                Ok((_, 0)) => {
                    self.input_ended = true;
                    0
                }
                Ok((_, count)) => count,
                Err(Errno::AGAIN | Errno::INTR) => 0,
                Err(error) => return Err(Fault::Socket(error.into())),
            },
        };
        self.filled.end += received;
        if received > 0 {
            self.heard_ns = cx.desk.now_ns;
            cx.desk.statistics.received_bytes += u64::try_from(received).unwrap_or(0);
        }
        Ok(())
    }

    /// Lets the session look at what was received.
    pub(super) fn pump(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        let now_ns = cx.desk.now_ns;
        if !self.owes_more() {
            self.progress.waits(now_ns);
        }
        loop {
            let (used, wants) = self.session.receive(&self.input[self.filled.clone()], cx)?;
            self.filled.start += used;
            self.wants = wants;
            self.progress.came(used, self.session.begun_count(), now_ns);
            // No event would tell of what was decrypted and found no room.
            if self.secured.is_none() || wants != Wants::Bytes {
                break;
            }
            let room = self.room();
            let Some(secured) = &mut self.secured else { break };
            let (count, ended) = secured.take(&mut self.input[room]).map_err(Fault::Tls)?;
            self.filled.end += count;
            self.input_ended |= ended;
            if count == 0 {
                break;
            }
        }
        if self.input_ended && self.wants == Wants::Bytes {
            self.session.end();
            self.wants = Wants::Nothing;
        }
        Ok(())
    }

    /// Sends what there is, goes on with what waited for that, and sends what that brought.
    pub(super) fn settle(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        self.flush(cx)?;
        if self.wants == Wants::Room {
            self.pump(cx)?;
            self.flush(cx)?;
        }
        if self.session.output().is_empty() {
            self.taken_ns = cx.desk.now_ns;
        }
        Ok(())
    }

    fn flush(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        for _ in 0..SENDS_PER_TURN {
            let mut slices = [IoSlice::new(&[]); SEND_SLICES];
            let count = self.session.output().gather(&mut slices);
            let slices = &slices[..count];
            let (taken, goes_on) = match &mut self.secured {
                Some(secured) => send_secured(secured, &self.socket, slices, self.session.is_finished())?,
                None if count == 0 => break,
                None => match rustix::net::sendmsg(
                    &self.socket,
                    slices,
                    &mut SendAncillaryBuffer::default(),
                    SendFlags::NOSIGNAL,
                ) {
                    Ok(sent) => (sent, true),
                    Err(Errno::INTR) => (0, true),
                    Err(Errno::AGAIN) => (0, false),
                    Err(error) => return Err(Fault::Socket(error.into())),
                },
            };
            if taken > 0 {
                self.taken_ns = cx.desk.now_ns;
                self.session.sent(taken, cx);
            }
            if !goes_on || self.session.output().is_empty() && !self.wants_to_say_goodbye() {
                break;
            }
        }
        Ok(())
    }

    /// Whether an encrypted connection is at its end and has not said so.
    fn wants_to_say_goodbye(&self) -> bool {
        self.secured.as_ref().is_some_and(|secured| !secured.has_said_goodbye()) && self.session.is_finished()
    }

    /// Whether the two sides have not agreed on encryption.
    pub(super) fn is_handshaking(&self) -> bool {
        self.secured.as_ref().is_some_and(|secured| secured.is_handshaking())
    }

    /// Whether the session is over and everything is sent.
    pub(super) fn is_finished(&self) -> bool {
        let has_sent = self.secured.as_ref().is_none_or(|secured| !secured.wants_to_send());
        self.session.is_finished() && has_sent
    }

    /// Whether it could leave without waiting for our last words.
    pub(super) fn has_said_goodbye(&self) -> bool {
        self.wants == Wants::Nothing || self.input_ended
    }

    /// Whether it has begun a command, and the rest is awaited.
    fn owes_more(&self) -> bool {
        self.wants == Wants::Bytes && self.session.is_within_command()
    }

    /// For how long it has not gone on with a command that it has begun.
    pub(super) fn still_ns(&self, now_ns: u64) -> Option<u64> {
        self.owes_more().then(|| self.progress.still_ns(now_ns))
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
}

/// Encrypts and sends; how much was taken, and whether more may be.
fn send_secured(
    secured: &mut Secured,
    socket: &OwnedFd,
    slices: &[IoSlice<'_>],
    ends: bool,
) -> Result<(usize, bool), Fault> {
    let taken = if slices.is_empty() { 0 } else { secured.put(slices).map_err(Fault::Tls)? };
    if ends {
        secured.say_goodbye();
    }
    secured.send(socket).map_err(Fault::Tls)?;
    Ok((taken, !secured.wants_to_send()))
}
