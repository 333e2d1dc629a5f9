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
use front::watching::{Ready, Watch};
use front::{Arrival, Flow, Listening, ServerError};
use kv::ask::Told;
use rustix::event::epoll;
use rustix::net::SendFlags;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bits of a client's token that hold the number it is told, from 1; above them is its place. It takes years
/// to use them up.
const NUMBER_BITS: u32 = 44;

/// Connections accepted per listening socket and turn.
const ACCEPTS_PER_TURN: usize = 16;
/// What an answer brings is asked at once, so often, before sockets are looked at again: a command in several
/// steps, and those that wait for its key.
const ROUNDS_PER_TURN: usize = 8;
/// How long two sides may take to agree on encryption.
const HANDSHAKE_NS: u64 = 10_000_000_000;

struct Reactor<'a, K, H> {
    watch: Watch<Listening>,
    seats: Vec<Option<Box<Client>>>,
    seats_free: Vec<u32>,
    touched: Vec<u32>,
    desk: Desk,
    keys: &'a mut K,
    hooks: &'a mut H,
    told: Vec<Told>,
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
    let mut reactor = Reactor {
        watch: Watch::new(listening, keys.wake_fd())?,
        seats: Vec::new(),
        seats_free: Vec::new(),
        touched: Vec::new(),
        desk,
        keys,
        hooks,
        told: Vec::new(),
    };
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
        self.watch.wait(self.timeout_ns())?;
        self.note_time(self.watch.now_ns());
        while let Some(ready) = self.watch.next_ready() {
            self.handle(ready)?;
        }
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
        if self.watch.is_tick_due() {
            self.tick()?;
        }
        Ok(())
    }

    fn note_time(&mut self, now_ns: u64) {
        self.desk.now_ns = now_ns;
        self.desk.now_ms = now_ms();
    }

    fn timeout_ns(&self) -> Option<u64> {
        if self.desk.started || !self.touched.is_empty() {
            return Some(0);
        }
        let limits = &self.desk.limits;
        let of_clients = (limits.idle_timeout_ns.is_some() && self.desk.client_count() > 0)
            || self.seats.iter().flatten().any(|client| {
                let half_said = limits.command_timeout_ns.and(client.still_ns(self.desk.now_ns));
                let sends = client.interest.intersects(epoll::EventFlags::OUT);
                client.is_handshaking() || sends || half_said.is_some()
            });
        let tick = self.watch.until_tick_ns(of_clients);
        [tick, self.keys.idle_for(), self.hooks.idle_for()].into_iter().flatten().min()
    }

    fn handle(&mut self, ready: Ready) -> io::Result<()> {
        match ready {
            Ready::Wake => {} // the store is driven every turn
            Ready::Caller => self.handle_caller()?,
            Ready::Arrivals(index) => self.accept(index)?,
            Ready::Client(token, flags) => self.handle_client(token, flags),
        }
        Ok(())
    }

    fn handle_caller(&mut self) -> io::Result<()> {
        for fd in self.watch.caller_ready()? {
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
        let mut fds = Vec::new();
        self.hooks.extra_fds(&mut fds);
        self.watch.watch_caller(fds)
    }

    fn accept(&mut self, index: usize) -> io::Result<()> {
        for _ in 0..ACCEPTS_PER_TURN {
            match self.watch.next_arrival(index)? {
                Some(Arrival { peer, allowed: false, .. }) => self.turn_away(&peer, &Fault::NotAllowed),
                Some(Arrival { socket, peer, .. }) => self.seat(socket, peer, index),
                None => break,
            }
        }
        Ok(())
    }

    fn turn_away(&mut self, peer: &str, fault: &Fault) {
        self.desk.statistics.faults += 1;
        self.hooks.on_fault(peer, fault);
    }

    fn seat(&mut self, socket: OwnedFd, peer: String, listening: usize) {
        let tls = self.watch.listening()[listening].tls();
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
            let added = self.watch.add(&client.socket, token_of(id), client.interest);
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
            let now_ns = self.watch.look_at_clock();
            self.note_time(now_ns); // what was asked in this turn took time, too
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
            if let Err(error) = self.watch.change(&client.socket, token_of(id), wanted) {
                self.close(id, Some(Fault::Socket(error)));
            }
        }
    }

    /// Looks at the time limits.
    fn tick(&mut self) -> io::Result<()> {
        if self.watch.tick()? {
            self.rewatch()?;
        }
        let now_ns = self.watch.now_ns();
        let limits = self.desk.limits;
        for index in 0..self.seats.len() {
            let Some(client) = &self.seats[index] else { continue };
            let still_ns = now_ns.saturating_sub(client.taken_ns);
            let silent_ns = now_ns.saturating_sub(client.heard_ns.max(client.taken_ns));
            let half_said_ns = client.still_ns(now_ns).unwrap_or(0);
            let is_idle = client.wants == Wants::Bytes && !client.session.is_busy();
            let fault = if client.is_handshaking() && now_ns.saturating_sub(client.opened_ns) > HANDSHAKE_NS {
                Fault::Stalled { seconds: HANDSHAKE_NS / 1_000_000_000 }
            } else if !client.session.output().is_empty() && still_ns > limits.stall_timeout_ns {
                Fault::Stalled { seconds: still_ns / 1_000_000_000 }
            } else if limits.command_timeout_ns.is_some_and(|max_ns| half_said_ns > max_ns) {
                Fault::HalfSaid { seconds: half_said_ns / 1_000_000_000 }
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
        if !self.watch.stop(self.desk.limits.stop_timeout_ns) {
            return;
        }
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
        self.watch.is_over(|| self.desk.client_count() == 0 && self.desk.asked_count() == 0)
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
