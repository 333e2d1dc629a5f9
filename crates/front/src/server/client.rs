//! A client as the reactor sees it, whatever it speaks.

use super::stream::Stream;
use crate::VolumeError;
use crate::desk::{ConnectionId, Context, Desk};
use crate::session::{Fault, Wants};
#[cfg(feature = "ublk")]
use crate::ublk::Disk;
#[cfg(feature = "vhost-user")]
use crate::vhost::Guest;
use rustix::event::epoll::EventFlags;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a client speaks.
pub(super) enum Line {
    /// A protocol of bytes on its socket.
    Stream(Stream),
    /// Rings in memory that it shares.
    #[cfg(feature = "vhost-user")]
    Rings(Box<Guest>),
    /// A queue of a disk of the kernel.
    #[cfg(feature = "ublk")]
    Disk(Box<Disk>),
}

/// The place of a client where there is one for one only; free again when dropped.
pub(super) struct Berth(Arc<AtomicBool>);

impl Berth {
    /// The place, if it is free.
    pub(super) fn take(taken: &Arc<AtomicBool>) -> Option<Self> {
        (!taken.swap(true, Ordering::AcqRel)).then(|| Self(Arc::clone(taken)))
    }
}

impl Drop for Berth {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// So many bytes are progress: who sends them one by one keeps others waiting as who sends none.
const PROGRESS_BYTES: usize = 64 << 10;

/// A client of the server.
pub(super) struct Client {
    pub id: ConnectionId,
    pub socket: OwnedFd,
    pub peer: String,
    pub line: Line,
    /// What epoll watches.
    pub interest: EventFlags,
    /// In the reactor's list of clients to look after this turn.
    pub touched: bool,
    pub opened_ns: u64,
    /// When enough bytes were last moved, or a request finished.
    pub progress_ns: u64,
    /// Bytes moved since.
    pub moved_bytes: usize,
    /// Where it has a place for itself.
    pub _berth: Option<Berth>,
}

impl Client {
    /// It has got on.
    pub(super) fn note_progress(&mut self, now_ns: u64) {
        (self.progress_ns, self.moved_bytes) = (now_ns, 0);
    }

    /// Bytes have been moved.
    pub(super) fn note_moved(&mut self, count_bytes: usize, now_ns: u64) {
        self.moved_bytes += count_bytes;
        if self.moved_bytes >= PROGRESS_BYTES {
            self.note_progress(now_ns);
        }
    }

    /// Its socket is ready for something.
    pub(super) fn socket_ready(&mut self, flags: EventFlags, cx: &mut Context<'_>) -> Result<(), Fault> {
        let now_ns = cx.desk.now_ns;
        if !self.blocks_slots(cx.desk) {
            self.note_progress(now_ns);
        }
        let gone = flags.intersects(EventFlags::HUP | EventFlags::ERR);
        match &mut self.line {
            Line::Stream(stream) => {
                if gone && stream.wants != Wants::Bytes {
                    // Nobody is left to read answers, and epoll would report this for ever.
                    return Err(Fault::Socket(std::io::ErrorKind::BrokenPipe.into()));
                }
                if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                    let count = stream.fill(&self.socket, cx)?;
                    stream.pump(cx)?;
                    self.note_moved(count, now_ns);
                }
                Ok(())
            }
            #[cfg(feature = "vhost-user")]
            Line::Rings(guest) => {
                if gone {
                    guest.hang_up();
                    return Ok(());
                }
                guest.hear(&self.socket, cx)
            }
            #[cfg(feature = "ublk")]
            Line::Disk(_) => Ok(()),
        }
    }

    /// Goes on with what waited for room.
    pub(super) fn pump(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        match &mut self.line {
            Line::Stream(stream) => stream.pump(cx),
            #[cfg(feature = "vhost-user")]
            Line::Rings(guest) => guest.pump(&self.socket, cx),
            #[cfg(feature = "ublk")]
            Line::Disk(disk) => disk.pump(cx),
        }
    }

    /// Sends answers, and goes on with what waited for their being sent.
    pub(super) fn settle(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        match &mut self.line {
            Line::Stream(stream) => {
                let moved = stream.flush(&self.socket, cx)?;
                if stream.wants == Wants::Room {
                    stream.pump(cx)?;
                }
                self.note_moved(moved, cx.desk.now_ns);
                Ok(())
            }
            #[cfg(feature = "vhost-user")]
            Line::Rings(guest) => guest.tell(),
            #[cfg(feature = "ublk")]
            Line::Disk(disk) => disk.tell(),
        }
    }

    /// Whether it has more to do, and gave others their turn.
    pub(super) fn wants_turn(&self) -> bool {
        match &self.line {
            Line::Stream(stream) => stream.wants == Wants::Turn,
            #[cfg(feature = "vhost-user")]
            Line::Rings(_) => false,
            #[cfg(feature = "ublk")]
            Line::Disk(_) => false,
        }
    }

    /// The volume has finished a piece of it.
    pub(super) fn piece_done(&mut self, tag: u64, result: Result<(), VolumeError>, cx: &mut Context<'_>) {
        match &mut self.line {
            Line::Stream(stream) => stream.session.piece_done(tag, result, cx),
            #[cfg(feature = "vhost-user")]
            Line::Rings(guest) => guest.piece_done(tag, result, cx),
            #[cfg(feature = "ublk")]
            Line::Disk(disk) => disk.piece_done(tag, result, cx),
        }
    }

    /// Takes no more requests; those under way are answered.
    pub(super) fn stop(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        match &mut self.line {
            Line::Stream(stream) => {
                stream.session.stop(cx);
                stream.pump(cx)
            }
            #[cfg(feature = "vhost-user")]
            Line::Rings(guest) => {
                guest.stop();
                Ok(())
            }
            #[cfg(feature = "ublk")]
            Line::Disk(disk) => {
                disk.stop();
                Ok(())
            }
        }
    }

    /// Gives everything back.
    pub(super) fn abandon(&mut self, cx: &mut Context<'_>) {
        match &mut self.line {
            Line::Stream(stream) => stream.session.abandon(cx),
            #[cfg(feature = "vhost-user")]
            Line::Rings(guest) => guest.abandon(cx),
            #[cfg(feature = "ublk")]
            Line::Disk(disk) => disk.abandon(cx),
        }
    }

    /// Whether it may leave without waiting for our last words.
    pub(super) fn has_said_goodbye(&self) -> bool {
        match &self.line {
            Line::Stream(stream) => stream.wants == Wants::Nothing,
            #[cfg(feature = "vhost-user")]
            Line::Rings(_) => false,
            #[cfg(feature = "ublk")]
            Line::Disk(_) => false,
        }
    }

    /// Whether it is still haggling.
    pub(super) fn in_handshake(&self) -> bool {
        match &self.line {
            Line::Stream(stream) => stream.session.in_handshake(),
            #[cfg(feature = "vhost-user")]
            Line::Rings(guest) => guest.in_handshake(),
            #[cfg(feature = "ublk")]
            Line::Disk(_) => false,
        }
    }

    /// Whether it can be closed: everything is answered and sent.
    pub(super) fn is_finished(&self) -> bool {
        match &self.line {
            Line::Stream(stream) => stream.is_finished(),
            #[cfg(feature = "vhost-user")]
            Line::Rings(guest) => guest.is_finished(),
            #[cfg(feature = "ublk")]
            Line::Disk(disk) => disk.is_finished(),
        }
    }

    /// What epoll should watch now.
    pub(super) fn interest_wanted(&self) -> EventFlags {
        match &self.line {
            Line::Stream(stream) => stream.interest_wanted(),
            #[cfg(feature = "vhost-user")]
            Line::Rings(guest) => {
                match (guest.listens(), guest.hears_half()) {
                    (true, false) => EventFlags::IN,
                    // It would be told of again and again.
                    (true, true) => EventFlags::IN | EventFlags::ET,
                    (false, _) => EventFlags::empty(),
                }
            }
            #[cfg(feature = "ublk")]
            Line::Disk(_) => EventFlags::IN,
        }
    }

    /// Whether it holds slots and it is the client's turn to move bytes.
    pub(super) fn blocks_slots(&self, desk: &Desk) -> bool {
        match &self.line {
            Line::Stream(stream) => stream.blocks_slots(desk),
            // What it reads and writes is copied at once.
            #[cfg(feature = "vhost-user")]
            Line::Rings(_) => false,
            #[cfg(feature = "ublk")]
            Line::Disk(_) => false,
        }
    }

    /// The thread is about to sleep: whether this client has something for it.
    pub(super) fn stays_awake(&mut self) -> bool {
        match &mut self.line {
            Line::Stream(_) => false,
            #[cfg(feature = "vhost-user")]
            Line::Rings(guest) => guest.stays_awake(),
            #[cfg(feature = "ublk")]
            Line::Disk(disk) => disk.stays_awake(),
        }
    }

    /// Whether requests come without an event of the socket.
    pub(super) fn has_rings(&self) -> bool {
        match &self.line {
            Line::Stream(_) => false,
            #[cfg(feature = "vhost-user")]
            Line::Rings(_) => true,
            #[cfg(feature = "ublk")]
            Line::Disk(_) => true,
        }
    }

    /// Whether it is a disk of this server's own, not somebody who has come.
    pub(super) fn is_own(&self) -> bool {
        match &self.line {
            Line::Stream(_) => false,
            #[cfg(feature = "vhost-user")]
            Line::Rings(_) => false,
            #[cfg(feature = "ublk")]
            Line::Disk(_) => true,
        }
    }
}
