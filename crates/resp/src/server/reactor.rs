//! The loop: one thread, one epoll, one turn after the other.
//!
//! A turn: wait; receive from every readable client, once each; begin its commands; let the store work;
//! queue and send the answers; give clients that waited for room another go. Fairness comes from the single
//! receive per turn.

use super::client::Client;
use super::{Driven, Hooks, Summary};
use crate::desk::{ClientId, Desk};
use crate::fault::Fault;
use crate::session::{Context, Wants};
use front::watching::{add, create_epoll, is_shortage, watch_caller, watch_listening};
use front::{Arrival, Flow, Listening, ServerError};
use kv::ask::Told;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

const TOKEN_WAKE: u64 = u64::MAX;
const TOKEN_EXTRA: u64 = u64::MAX - 1;
/// Listening socket `i` has token `TOKEN_LISTENER - i`; clients have the numbers they are told, from 1, with
/// their places in the upper bits.
const TOKEN_LISTENER: u64 = u64::MAX - 2;
/// Bits of a token that hold a client's number; it takes years to use them up.
const NUMBER_BITS: u32 = 44;

/// Events taken per turn.
const EVENTS_MAX: usize = 256;
/// Connections accepted per listening socket and turn.
const ACCEPTS_PER_TURN: usize = 16;
/// What an answer brings is asked at once, so often, before sockets are looked at again: a command in several
/// steps, and those that wait for its key.
const ROUNDS_PER_TURN: usize = 8;
/// How often time limits are looked at while there is anything they apply to.
const TICK_NS: u64 = 100_000_000;
/// How long two sides may take to agree on encryption.
const HANDSHAKE_NS: u64 = 10_000_000_000;

struct Reactor<'a, K, H> {
    epoll: OwnedFd,
    /// The caller's descriptors have an epoll of their own, watched by ours, so that they can be replaced
    /// as a whole; none while this process may open no more.
    extra: Option<OwnedFd>,
    listening: Vec<Listening>,
    accept_paused_until_ns: Option<u64>,
    seats: Vec<Option<Box<Client>>>,
    seats_free: Vec<u32>,
    touched: Vec<u32>,
    desk: Desk,
    keys: &'a mut K,
    hooks: &'a mut H,
    events: Vec<epoll::Event>,
    told: Vec<Told>,
    started: Instant,
    next_tick_ns: u64,
    /// Set once a stop was asked for.
    stop_by_ns: Option<u64>,
}

/// The time in milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Serves until stopped.
pub(super) fn run<K: Driven, H: Hooks<K>>(
    listening: Vec<Listening>,
    desk: Desk,
    keys: &mut K,
    hooks: &mut H,
) -> Result<Summary, ServerError> {
    let epoll = create_epoll()?;
    if let Some(fd) = keys.wake_fd() {
        add(&epoll, fd, TOKEN_WAKE, epoll::EventFlags::IN)?;
    }
    let mut reactor = Reactor {
        epoll,
        extra: None,
        listening,
        accept_paused_until_ns: None,
        seats: Vec::new(),
        seats_free: Vec::new(),
        touched: Vec::new(),
        desk,
        keys,
        hooks,
        events: Vec::with_capacity(EVENTS_MAX),
        told: Vec::new(),
        started: Instant::now(),
        next_tick_ns: TICK_NS,
        stop_by_ns: None,
    };
    reactor.watch_listening()?;
    reactor.rewatch()?;
    while !reactor.is_over() {
        reactor.turn()?;
    }
    Ok(reactor.finish())
}

fn token_of(id: ClientId) -> u64 {
    u64::from(id.index) << NUMBER_BITS | (id.number & ((1 << NUMBER_BITS) - 1))
}

fn place(index: u32) -> usize {
    usize::try_from(index).expect("places fit memory")
}

impl<K: Driven, H: Hooks<K>> Reactor<'_, K, H> {
    fn turn(&mut self) -> io::Result<()> {
        self.wait()?;
        self.look_at_clock();
        let events = std::mem::take(&mut self.events);
        for event in &events {
            self.handle(event.data.u64(), event.flags)?;
        }
        self.events = events;
        for _ in 0..ROUNDS_PER_TURN {
            self.drive();
            self.settle();
            if !self.desk.started {
                break;
            }
        }
        let flow = self.hooks.on_turn(self.keys, &self.desk);
        self.follow(flow)?;
        if self.desk.stop_asked {
            self.stop();
        }
        if self.desk.now_ns >= self.next_tick_ns {
            self.tick()?;
        }
        Ok(())
    }

    fn look_at_clock(&mut self) {
        self.desk.now_ns = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.desk.now_ms = now_ms();
    }

    fn wait(&mut self) -> io::Result<()> {
        let timeout = self.timeout_ns().map(|ns| Timespec {
            tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
        });
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn timeout_ns(&self) -> Option<u64> {
        if self.desk.started || !self.touched.is_empty() {
            return Some(0);
        }
        let limits = &self.desk.limits;
        let timed =
            self.stop_by_ns.is_some()
                || self.accept_paused_until_ns.is_some()
                || self.extra.is_none()
                || (limits.idle_timeout_ns.is_some() && self.desk.client_count() > 0)
                || self.seats.iter().flatten().any(|client| {
                    client.is_handshaking() || client.interest.intersects(epoll::EventFlags::OUT)
                });
        let tick = timed.then(|| self.next_tick_ns.saturating_sub(self.desk.now_ns).min(TICK_NS));
        [tick, self.keys.idle_for(), self.hooks.idle_for()].into_iter().flatten().min()
    }

    fn handle(&mut self, token: u64, flags: epoll::EventFlags) -> io::Result<()> {
        match token {
            TOKEN_WAKE => {} // the store is driven every turn
            TOKEN_EXTRA => self.handle_extra()?,
            _ => {
                let index = usize::try_from(TOKEN_LISTENER - token).ok();
                match index.filter(|&index| index < self.listening.len()) {
                    Some(index) => self.accept(index)?,
                    None => self.handle_client(token, flags),
                }
            }
        }
        Ok(())
    }

    fn handle_extra(&mut self) -> io::Result<()> {
        let mut ready = [const { None }; 16];
        let mut events = Vec::with_capacity(ready.len());
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let Some(extra) = &self.extra else { return Ok(()) };
        match epoll::wait(extra, spare_capacity(&mut events), Some(&now)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for (place, event) in ready.iter_mut().zip(&events) {
            *place = RawFd::try_from(event.data.u64()).ok();
        }
        for fd in ready.into_iter().flatten() {
            let flow = self.hooks.on_ready(fd, self.keys);
            self.follow(flow)?;
            if flow == Flow::Rewatch {
                break; // what else was ready is reported again
            }
        }
        Ok(())
    }

    fn follow(&mut self, flow: Flow) -> io::Result<()> {
        match flow {
            Flow::Continue => Ok(()),
            Flow::Rewatch => self.rewatch(),
            Flow::Stop => {
                self.stop();
                Ok(())
            }
        }
    }

    /// Watches the caller's descriptors anew. If that cannot be now, clients are served all the same, and it
    /// is tried again.
    fn rewatch(&mut self) -> io::Result<()> {
        self.extra = None; // closing the old one takes it out of ours
        let mut fds = Vec::new();
        self.hooks.extra_fds(&mut fds);
        self.extra = watch_caller(&self.epoll, TOKEN_EXTRA, fds)?;
        Ok(())
    }

    fn watch_listening(&self) -> io::Result<()> {
        watch_listening(&self.epoll, &self.listening, TOKEN_LISTENER)
    }

    fn unwatch_listening(&self) -> io::Result<()> {
        self.listening.iter().try_for_each(|listening| Ok(epoll::delete(&self.epoll, listening)?))
    }

    fn accept(&mut self, index: usize) -> io::Result<()> {
        if self.accept_paused_until_ns.is_some() {
            return Ok(());
        }
        for _ in 0..ACCEPTS_PER_TURN {
            match self.listening[index].accept() {
                Ok(Arrival { peer, allowed: false, .. }) => self.turn_away(&peer, &Fault::NotAllowed),
                Ok(Arrival { socket, peer, .. }) => self.seat(socket, peer, index),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    // Out of descriptors or memory: the backlog must wait, or we would spin.
                    self.accept_paused_until_ns = Some(self.desk.now_ns.saturating_add(TICK_NS));
                    return self.unwatch_listening();
                }
            }
        }
        Ok(())
    }

    fn turn_away(&mut self, peer: &str, fault: &Fault) {
        self.desk.statistics.faults += 1;
        self.hooks.on_fault(peer, fault);
    }

    fn seat(&mut self, socket: OwnedFd, peer: String, listening: usize) {
        let tls = self.listening[listening].tls();
        let max = self.desk.limits.clients_max;
        if self.desk.client_count() >= max {
            if tls.is_none() {
                // As Redis says it; if it does not fit, the end of the connection says enough.
                let _ = rustix::net::send(
                    &socket,
                    b"-ERR max number of clients reached\r\n",
                    SendFlags::NOSIGNAL,
                );
            }
            return self.turn_away(&peer, &Fault::TooManyClients { max }); // dropping the socket closes it
        }
        let index = self.seats_free.pop().unwrap_or_else(|| {
            self.seats.push(None);
            u32::try_from(self.seats.len() - 1).expect("clients are bounded")
        });
        let id = self.desk.welcome(index, peer.clone());
        let client = Client::new(id, socket, peer.clone(), tls.as_ref(), self.desk.now_ns);
        let watched = client.and_then(|client| {
            let added = add(&self.epoll, &client.socket, token_of(id), client.interest);
            added.map(|()| client).map_err(Fault::Socket)
        });
        match watched {
            Ok(client) => {
                self.seats[place(index)] = Some(Box::new(client));
                self.hooks.on_clients(self.desk.client_count());
            }
            Err(fault) => {
                self.desk.farewell(id);
                self.seats_free.push(index);
                self.turn_away(&peer, &fault);
            }
        }
    }

    fn touch(&mut self, index: u32) {
        if let Some(Some(client)) = self.seats.get_mut(place(index))
            && !client.touched
        {
            client.touched = true;
            self.touched.push(index);
        }
    }

    /// Runs `work` with a client; a fault in it closes the client.
    fn with_client(
        &mut self,
        id: ClientId,
        work: impl FnOnce(&mut Client, &mut Context<'_>) -> Result<(), Fault>,
    ) {
        let Some(Some(client)) = self.seats.get_mut(place(id.index)) else { return };
        if client.id != id {
            return;
        }
        let mut cx = Context { desk: &mut self.desk, keys: &mut *self.keys };
        if let Err(fault) = work(client, &mut cx) {
            // Who has said goodbye may leave without waiting for our last words.
            let said_goodbye = client.has_said_goodbye() && matches!(fault, Fault::Socket(_));
            self.close(id, (!said_goodbye).then_some(fault));
        }
    }

    fn close(&mut self, id: ClientId, fault: Option<Fault>) {
        let Some(mut client) = self.seats[place(id.index)].take() else { return };
        let mut cx = Context { desk: &mut self.desk, keys: &mut *self.keys };
        let fault = fault.or_else(|| client.session.take_fault());
        client.session.abandon(&mut cx);
        self.seats_free.push(id.index);
        self.hooks.on_clients(self.desk.client_count());
        if let Some(fault) = fault {
            self.turn_away(&client.peer, &fault);
        }
    }

    fn handle_client(&mut self, token: u64, flags: epoll::EventFlags) {
        let Ok(index) = u32::try_from(token >> NUMBER_BITS) else { return };
        let Some(Some(client)) = self.seats.get(place(index)) else { return };
        let id = client.id;
        if token_of(id) != token {
            return; // somebody who has left
        }
        self.with_client(id, |client, cx| client.ready(flags, cx));
        self.touch(index);
    }

    fn drive(&mut self) {
        self.desk.started = false;
        let mut told = std::mem::take(&mut self.told);
        self.keys.drive(self.desk.now_ms, &mut told);
        if !told.is_empty() {
            self.look_at_clock(); // what was asked in this turn took time, too
        }
        for Told { tag, answer } in told.drain(..) {
            let asked = self.desk.told(tag);
            match asked.client {
                Some(id) => {
                    self.with_client(id, |client, cx| client.session.told(asked, answer, cx));
                    self.touch(id.index);
                }
                // Nobody waits for a save in the background, but it is known when it was.
                None if answer.is_ok() => self.desk.saved_ms = self.desk.now_ms,
                None => {}
            }
        }
        self.told = told;
    }

    /// Sends answers, resumes clients that had no room, closes those that are through.
    fn settle(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        for index in touched.drain(..) {
            self.settle_one(index);
        }
        touched.append(&mut self.touched);
        self.touched = touched;
    }

    fn settle_one(&mut self, index: u32) {
        let Some(Some(client)) = self.seats.get_mut(place(index)) else { return };
        client.touched = false;
        let id = client.id;
        let mut finished = false;
        self.with_client(id, |client, cx| {
            client.settle(cx)?;
            finished = client.is_finished();
            Ok(())
        });
        if finished {
            self.close(id, None);
        } else {
            self.update_interest(id);
        }
    }

    fn update_interest(&mut self, id: ClientId) {
        let Some(Some(client)) = self.seats.get_mut(place(id.index)) else { return };
        let wanted = client.interest_wanted();
        if wanted != client.interest {
            client.interest = wanted;
            let data = epoll::EventData::new_u64(token_of(id));
            if let Err(error) = epoll::modify(&self.epoll, &client.socket, data, wanted) {
                self.close(id, Some(Fault::Socket(error.into())));
            }
        }
    }

    /// Looks at the time limits.
    fn tick(&mut self) -> io::Result<()> {
        let now_ns = self.desk.now_ns;
        self.next_tick_ns = now_ns.saturating_add(TICK_NS);
        if self.accept_paused_until_ns.is_some_and(|until_ns| now_ns >= until_ns) {
            self.accept_paused_until_ns = match self.watch_listening() {
                Ok(()) => None,
                Err(error) if is_shortage(&error) => Some(self.next_tick_ns),
                Err(error) => return Err(error),
            };
        }
        if self.extra.is_none() {
            self.rewatch()?;
        }
        let limits = self.desk.limits;
        for index in 0..self.seats.len() {
            let Some(client) = &self.seats[index] else { continue };
            let still_ns = now_ns.saturating_sub(client.taken_ns);
            let silent_ns = now_ns.saturating_sub(client.heard_ns.max(client.taken_ns));
            let is_idle = client.wants == Wants::Bytes && !client.session.is_busy();
            let fault = if client.is_handshaking() && now_ns.saturating_sub(client.opened_ns) > HANDSHAKE_NS {
                Fault::Stalled { seconds: HANDSHAKE_NS / 1_000_000_000 }
            } else if !client.session.output().is_empty() && still_ns > limits.stall_timeout_ns {
                Fault::Stalled { seconds: still_ns / 1_000_000_000 }
            } else if is_idle && limits.idle_timeout_ns.is_some_and(|max_ns| silent_ns > max_ns) {
                Fault::Idle { seconds: silent_ns / 1_000_000_000 }
            } else {
                continue;
            };
            self.close(client.id, Some(fault));
        }
        Ok(())
    }

    fn stop(&mut self) {
        if self.stop_by_ns.is_some() {
            return;
        }
        self.stop_by_ns = Some(self.desk.now_ns.saturating_add(self.desk.limits.stop_timeout_ns));
        if self.accept_paused_until_ns.take().is_none() {
            // Closing them is not enough where others share them. One that cannot be taken out is reported in
            // vain until the server ends.
            let _ = self.unwatch_listening();
        }
        self.listening.clear();
        for index in 0..self.seats.len() {
            let Some(client) = &self.seats[index] else { continue };
            let id = client.id;
            self.with_client(id, |client, cx| {
                client.session.end();
                client.pump(cx)
            });
            self.touch(id.index);
        }
    }

    fn is_over(&self) -> bool {
        self.stop_by_ns.is_some_and(|by_ns| {
            let quiet = self.desk.client_count() == 0 && self.desk.asked_count() == 0;
            quiet || self.desk.now_ns >= by_ns
        })
    }

    fn finish(mut self) -> Summary {
        for index in 0..self.seats.len() {
            if let Some(client) = &self.seats[index] {
                self.close(client.id, None);
            }
        }
        let statistics = &self.desk.statistics;
        Summary {
            connections: statistics.connections,
            faults: statistics.faults,
            commands: statistics.commands(),
            errors: statistics.errors(),
            abandoned: self.desk.asked_count(),
        }
    }
}
