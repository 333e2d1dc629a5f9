//! Who comes, and gets a place or is turned away.

#[cfg(feature = "vhost-user")]
use super::TOKEN_RING;
use super::{ConnectionId, Hooks, Reactor, Seat, Waiting, token_of};
use crate::Volume;
use crate::nbd::{Connection, Encryption};
use crate::server::client::{Berth, Client, Line};
use crate::server::stream::Stream;
use crate::server::{Arrival, Protocol};
use crate::session::Fault;
#[cfg(feature = "ublk")]
use crate::ublk::{Disk, Served};
#[cfg(feature = "vhost-user")]
use crate::vhost::Guest;
use rustix::event::epoll;
use std::io;
use std::os::fd::OwnedFd;
#[cfg(feature = "vhost-user")]
use std::sync::Arc;

/// Connections accepted per listener and turn.
const ACCEPTS_PER_TURN: usize = 16;
/// How long who comes to a place that is taken waits for it.
const PATIENCE_NS: u64 = 1_000_000_000;

impl<V: Volume, H: Hooks<V>> Reactor<'_, V, H> {
    pub(super) fn accept(&mut self, index: usize) -> io::Result<()> {
        for _ in 0..ACCEPTS_PER_TURN {
            if !self.hooks.may_accept() {
                break;
            }
            match self.watch.next_arrival(index)? {
                Some(Arrival { peer, allowed: false, .. }) => self.turn_away(&peer, &Fault::NotAllowed),
                Some(Arrival { socket, peer, .. }) => self.admit(socket, peer, index)?,
                None => break,
            }
        }
        Ok(())
    }

    /// Seats a client, or has it wait for a moment if its place is taken: who connects again may be faster
    /// than the end of the connection before.
    fn admit(&mut self, socket: OwnedFd, peer: String, listener: usize) -> io::Result<()> {
        let berth = match &self.watch.listening()[listener].taken {
            None => None,
            Some(taken) => match Berth::take(taken) {
                Some(berth) => Some(berth),
                None if self.waiting.is_none() => {
                    let until_ns = self.watch.now_ns().saturating_add(PATIENCE_NS);
                    self.waiting = Some(Waiting { socket, peer, listener, until_ns });
                    return Ok(());
                }
                None => {
                    self.turn_away(&peer, &Fault::Occupied);
                    return Ok(());
                }
            },
        };
        self.seat(socket, peer, listener, berth)
    }

    /// Seats who waits, if the place is free now, or turns him away.
    pub(super) fn admit_waiting(&mut self) -> io::Result<()> {
        let Some(waiting) = self.waiting.take() else { return Ok(()) };
        let taken = self.watch.listening().get(waiting.listener).and_then(|listener| listener.taken.as_ref());
        let Some(taken) = taken else { return Ok(()) }; // the server stops
        match Berth::take(taken) {
            Some(berth) => {
                self.seat(waiting.socket, waiting.peer, waiting.listener, Some(berth))?;
            }
            None if self.watch.now_ns() < waiting.until_ns => self.waiting = Some(waiting),
            None => self.turn_away(&waiting.peer, &Fault::Occupied),
        }
        Ok(())
    }

    fn turn_away(&mut self, peer: &str, fault: &Fault) {
        self.summary.faults += 1;
        self.hooks.on_fault(peer, fault);
    }

    fn seat(
        &mut self,
        socket: OwnedFd,
        peer: String,
        listener: usize,
        berth: Option<Berth>,
    ) -> io::Result<()> {
        let max = self.desk.limits.connections_max;
        if self.visitors() >= max {
            self.turn_away(&peer, &Fault::TooManyConnections { max });
            return Ok(()); // dropping the socket closes it
        }
        // It may have become larger since the last one came.
        self.desk.export.size_bytes = self.volume.size_bytes();
        let id = self.free_seat();
        let line = self.line(id, &socket, listener);
        let seated = line.and_then(|line| self.sit_down(id, socket, peer.clone(), line, berth));
        match seated {
            Ok(()) => self.summary.connections += 1,
            Err(error) => {
                // The others stay.
                self.seats_free.push(id.index);
                self.turn_away(&peer, &Fault::Socket(error));
            }
        }
        Ok(())
    }

    /// What is spoken with who has come.
    #[cfg_attr(
        not(feature = "vhost-user"),
        expect(unused_variables, reason = "NBD needs no socket for that")
    )]
    fn line(&self, id: ConnectionId, socket: &OwnedFd, listener: usize) -> io::Result<Line> {
        let listener = &self.watch.listening()[listener];
        Ok(match listener.protocol {
            Protocol::Nbd => {
                let tls = listener.tls();
                let encryption = if tls.is_some() { Encryption::Required } else { Encryption::Unavailable };
                Line::Stream(Stream::new(Box::new(Connection::new(id, encryption)), tls))
            }
            #[cfg(feature = "vhost-user")]
            Protocol::VhostUserBlk => {
                let (epoll, token) = (Arc::clone(self.watch.epoll()), token_of(id) | TOKEN_RING);
                Line::Rings(Box::new(Guest::new(id, socket, &self.desk.export, epoll, token)?))
            }
        })
    }

    /// Seats a queue of a disk, and has the kernel give its requests.
    #[cfg(feature = "ublk")]
    pub(super) fn seat_disk(&mut self, served: Served) -> io::Result<()> {
        let (id, socket) = (self.free_seat(), served.queue.descriptor()?);
        let peer = format!("/dev/ublkb{}, queue {}", served.queue.number(), served.queue.index());
        let disk = Disk::begin(id, served).map_err(io::Error::other)?;
        self.sit_down(id, socket, peer, Line::Disk(Box::new(disk)), None)
    }

    /// A place that nobody has, and who is going to have it.
    fn free_seat(&mut self) -> ConnectionId {
        let index = self.seats_free.pop().unwrap_or_else(|| {
            self.seats.push(Seat::default());
            u32::try_from(self.seats.len() - 1).expect("connections are bounded")
        });
        let seat = &mut self.seats[index as usize];
        // Tokens of clients stay below the others.
        seat.generation = seat.generation.wrapping_add(1) & (u32::MAX >> 2);
        ConnectionId { index, generation: seat.generation }
    }

    fn sit_down(
        &mut self,
        id: ConnectionId,
        socket: OwnedFd,
        peer: String,
        line: Line,
        berth: Option<Berth>,
    ) -> io::Result<()> {
        let interest = epoll::EventFlags::IN;
        self.watch.add(&socket, token_of(id), interest)?;
        let (opened_ns, progress_ns) = (self.watch.now_ns(), self.watch.now_ns());
        let client = Client {
            id,
            socket,
            peer,
            line,
            interest,
            touched: false,
            opened_ns,
            progress_ns,
            moved_bytes: 0,
            _berth: berth,
        };
        if client.has_rings() {
            self.ringing.push(id);
        }
        self.clients.own += usize::from(client.is_own());
        let seat = usize::try_from(id.index).expect("connections are bounded");
        self.seats[seat].client = Some(Box::new(client));
        self.clients.all += 1;
        self.hooks.on_clients(self.visitors());
        self.touch(id.index);
        Ok(())
    }
}
