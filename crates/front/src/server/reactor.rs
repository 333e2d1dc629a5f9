//! The reactor: one thread, one epoll, one turn after the other.
//!
//! A turn: wait; receive from every readable client, once each; start their requests; let the volume work;
//! queue and send the answers, one send per client; give clients that waited for room or slots another go.
//! Fairness comes from the single receive per turn and from the desk's queue for slots.

mod arrivals;

use super::client::Client;
use super::listener::Listener;
use super::watching::{Ready, Watch};
use super::{Flow, Hooks, ServerError, Summary};
use crate::desk::{ConnectionId, Context, Desk};
use crate::meter::Meter;
use crate::session::Fault;
#[cfg(feature = "ublk")]
use crate::ublk::Served;
use crate::{Done, Export, Limits, Volume};
use rustix::event::epoll;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Set in the tokens of what clients with rings ring by; those of all others have it clear.
const TOKEN_RING: u64 = 1 << 62;

/// A place for a client.
#[derive(Default)]
struct Seat {
    generation: u32,
    client: Option<Box<Client>>,
}

/// Who is seated.
#[derive(Default)]
struct Headcount {
    all: usize,
    /// Those of them that are disks of this server's own.
    own: usize,
}

/// Somebody who wants a place that is taken.
struct Waiting {
    socket: OwnedFd,
    peer: String,
    listener: usize,
    until_ns: u64,
}

/// Who is to be looked after.
#[derive(Default)]
struct Agenda {
    /// Seats of clients to which something has happened in this turn.
    touched: Vec<u32>,
    /// Clients that have more to do, and gave others their turn.
    turns: Vec<ConnectionId>,
}

struct Reactor<'a, V, H> {
    watch: Watch<Listener>,
    waiting: Option<Waiting>,
    seats: Vec<Seat>,
    seats_free: Vec<u32>,
    clients: Headcount,
    /// Seats of clients whose requests come without an event.
    ringing: Vec<ConnectionId>,
    agenda: Agenda,
    desk: Desk,
    volume: &'a mut V,
    hooks: &'a mut H,
    done: Vec<Done>,
    summary: Summary,
}

/// What is served, and how.
pub(super) struct Work {
    pub listeners: Vec<Listener>,
    #[cfg(feature = "ublk")]
    pub disks: Vec<Served>,
    pub export: Export,
    pub limits: Limits,
    pub meter: Arc<Meter>,
}

/// Serves until stopped.
pub(super) fn run<V: Volume, H: Hooks<V>>(
    work: Work,
    volume: &mut V,
    hooks: &mut H,
) -> Result<Summary, ServerError> {
    let Work { listeners, export, limits, meter, .. } = work;
    let mut desk = Desk::new(export, limits, volume);
    desk.meter = meter;
    let mut reactor = Reactor {
        watch: Watch::new(listeners, volume.wake_fd())?,
        waiting: None,
        seats: Vec::new(),
        seats_free: Vec::new(),
        clients: Headcount::default(),
        ringing: Vec::new(),
        agenda: Agenda::default(),
        desk,
        volume,
        hooks,
        done: Vec::new(),
        summary: Summary::default(),
    };
    reactor.rewatch()?;
    #[cfg(feature = "ublk")]
    for disk in work.disks {
        reactor.seat_disk(disk)?;
    }
    while !reactor.is_over() {
        reactor.turn()?;
    }
    Ok(reactor.finish())
}

fn token_of(id: ConnectionId) -> u64 {
    u64::from(id.generation) << 32 | u64::from(id.index)
}

impl<V: Volume, H: Hooks<V>> Reactor<'_, V, H> {
    fn turn(&mut self) -> io::Result<()> {
        self.wait()?;
        while let Some(ready) = self.watch.next_ready() {
            self.handle(ready)?;
        }
        self.give_turns();
        self.look_into_rings();
        self.drive();
        self.settle();
        self.serve_waiting();
        self.admit_waiting()?;
        let flow = self.hooks.on_turn(self.volume);
        self.follow(flow)?;
        if self.watch.is_tick_due() {
            self.tick()?;
        }
        Ok(())
    }

    fn look_at_clock(&mut self) {
        self.desk.now_ns = self.watch.look_at_clock();
    }

    /// Those who gave others their turn have theirs.
    fn give_turns(&mut self) {
        self.desk.begin_turn();
        for id in std::mem::take(&mut self.agenda.turns) {
            self.with_client(id, |client, cx| client.pump(cx));
            self.touch(id.index);
        }
    }

    fn wait(&mut self) -> io::Result<()> {
        let mut timeout_ns = self.timeout_ns();
        if timeout_ns != Some(0) && self.rings_stay_awake() {
            timeout_ns = Some(0);
        }
        self.watch.wait(timeout_ns)?;
        self.desk.now_ns = self.watch.now_ns();
        Ok(())
    }

    fn timeout_ns(&self) -> Option<u64> {
        if self.desk.started_since_drive || !self.agenda.turns.is_empty() {
            return Some(0);
        }
        let of_clients = self.waiting.is_some()
            || self.desk.next_waiting().is_some()
            || self.seats.iter().flat_map(|seat| &seat.client).any(|client| client.in_handshake());
        let tick = self.watch.until_tick_ns(of_clients);
        [tick, self.volume.idle_for(), self.hooks.idle_for()].into_iter().flatten().min()
    }

    fn handle(&mut self, ready: Ready) -> io::Result<()> {
        match ready {
            Ready::Wake => {} // the volume is driven every turn
            Ready::Caller => self.handle_caller()?,
            Ready::Arrivals(listener) => self.accept(listener)?,
            Ready::Client(token, flags) => self.handle_client(token, flags),
        }
        Ok(())
    }

    fn handle_caller(&mut self) -> io::Result<()> {
        for fd in self.watch.caller_ready()? {
            let flow = self.hooks.on_ready(fd, self.volume);
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

    /// Those who have come from outside.
    fn visitors(&self) -> usize {
        self.clients.all - self.clients.own
    }

    fn touch(&mut self, index: u32) {
        if let Some(client) = &mut self.seats[index as usize].client
            && !client.touched
        {
            client.touched = true;
            self.agenda.touched.push(index);
        }
    }

    /// Runs `work` with a client; a fault in it closes the client.
    fn with_client(
        &mut self,
        id: ConnectionId,
        work: impl FnOnce(&mut Client, &mut Context<'_>) -> Result<(), Fault>,
    ) {
        let Some(seat) = self.seats.get_mut(id.index as usize) else { return };
        let Some(client) = seat.client.as_mut().filter(|client| client.id == id) else { return };
        let mut cx = Context { volume: &mut *self.volume, desk: &mut self.desk };
        if let Err(fault) = work(client, &mut cx) {
            // Who has said goodbye may leave without waiting for our last words.
            let said_goodbye = client.has_said_goodbye() && matches!(fault, Fault::Socket(_));
            self.close(id, (!said_goodbye).then_some(&fault));
        }
    }

    fn close(&mut self, id: ConnectionId, fault: Option<&Fault>) {
        let seat = &mut self.seats[id.index as usize];
        let Some(mut client) = seat.client.take() else { return };
        let mut cx = Context { volume: &mut *self.volume, desk: &mut self.desk };
        client.abandon(&mut cx);
        self.seats_free.push(id.index);
        self.clients.all -= 1;
        self.clients.own -= usize::from(client.is_own());
        self.ringing.retain(|&other| other != id);
        self.hooks.on_clients(self.visitors());
        if let Some(fault) = fault {
            self.summary.faults += 1;
            self.hooks.on_fault(&client.peer, fault);
        }
    }

    fn handle_client(&mut self, token: u64, flags: epoll::EventFlags) {
        let is_ring = token & TOKEN_RING != 0;
        let token = token & !TOKEN_RING;
        let halves = (u32::try_from(token & u64::from(u32::MAX)), u32::try_from(token >> 32));
        let (Ok(index), Ok(generation)) = halves else { return };
        if is_ring {
            return; // rings are looked into anyway
        }
        let id = ConnectionId { index, generation };
        self.with_client(id, |client, cx| client.socket_ready(flags, cx));
        if self.seats.get(index as usize).is_some() {
            self.touch(index);
        }
    }

    /// Begins what clients with rings have put there.
    fn look_into_rings(&mut self) {
        for index in (0..self.ringing.len()).rev() {
            let Some(&id) = self.ringing.get(index) else { continue };
            self.with_client(id, |client, cx| client.pump(cx));
            self.touch(id.index);
        }
    }

    /// Whether clients with rings have something for this thread, which is about to sleep.
    fn rings_stay_awake(&mut self) -> bool {
        let Self { ringing, seats, .. } = self;
        ringing.iter().fold(false, |stays, id| {
            let client = seats[id.index as usize].client.as_mut();
            client.is_some_and(|client| client.stays_awake()) || stays
        })
    }

    /// Gives slots to those who wait, and sends what that brought; again if answers that were sent gave
    /// slots back: no event would tell of those.
    fn serve_waiting(&mut self) {
        loop {
            let freed = self.desk.slots_freed();
            self.hand_out_slots();
            self.settle();
            if self.desk.next_waiting().is_none() || self.desk.slots_freed() == freed {
                return;
            }
        }
    }

    /// Gives slots to those who wait, in their order, until the next one has to go on waiting.
    fn hand_out_slots(&mut self) {
        while let Some(id) = self.desk.next_waiting() {
            self.with_client(id, |client, cx| {
                if !client.blocks_slots(cx.desk) {
                    client.note_progress(cx.desk.now_ns); // it has waited for others
                }
                client.pump(cx)
            });
            self.touch(id.index);
            if self.desk.next_waiting() == Some(id) {
                break;
            }
        }
    }

    fn drive(&mut self) {
        self.desk.started_since_drive = false;
        let mut done = std::mem::take(&mut self.done);
        self.volume.drive(&mut done);
        if !done.is_empty() {
            self.look_at_clock(); // what was asked in this turn took time, too
        }
        for Done { tag, result } in done.drain(..) {
            let id = self.desk.connection_of(tag);
            let seat = &mut self.seats[id.index as usize];
            let mut cx = Context { volume: &mut *self.volume, desk: &mut self.desk };
            match seat.client.as_mut().filter(|client| client.id == id) {
                Some(client) => {
                    client.piece_done(tag, result, &mut cx);
                    client.note_progress(self.watch.now_ns());
                    self.touch(id.index);
                }
                None => self.desk.orphan_done(self.volume, tag),
            }
        }
        self.done = done;
    }

    /// Sends answers, resumes clients that had no room, closes those that are through.
    fn settle(&mut self) {
        let mut touched = std::mem::take(&mut self.agenda.touched);
        for index in touched.drain(..) {
            let Some(client) = &mut self.seats[index as usize].client else { continue };
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
                self.note_turn(id);
            }
        }
        self.agenda.touched = touched;
    }

    fn note_turn(&mut self, id: ConnectionId) {
        let seat = usize::try_from(id.index).ok().and_then(|index| self.seats.get(index));
        let client = seat.and_then(|seat| seat.client.as_ref());
        if client.is_some_and(|client| client.wants_turn()) && !self.agenda.turns.contains(&id) {
            self.agenda.turns.push(id);
        }
    }

    fn update_interest(&mut self, id: ConnectionId) {
        let mut failed = None;
        if let Some(client) = &mut self.seats[id.index as usize].client {
            let wanted = client.interest_wanted();
            if wanted != client.interest {
                client.interest = wanted;
                failed = self.watch.change(&client.socket, token_of(id), wanted).err();
            }
        }
        if let Some(error) = failed {
            self.close(id, Some(&Fault::Socket(error)));
        }
    }

    /// Looks at the time limits.
    fn tick(&mut self) -> io::Result<()> {
        if self.watch.tick()? {
            self.rewatch()?;
        }
        let now_ns = self.watch.now_ns();
        let limits = self.desk.limits;
        let slots_wanted = self.desk.next_waiting().is_some();
        for index in 0..self.seats.len() {
            let Some(client) = &self.seats[index].client else { continue };
            let age_ns = now_ns.saturating_sub(client.opened_ns);
            let still_ns = now_ns.saturating_sub(client.progress_ns);
            let stalls = slots_wanted && still_ns > limits.stall_timeout_ns;
            let fault = if client.in_handshake() && age_ns > limits.handshake_timeout_ns {
                Fault::HandshakeTimeout
            } else if stalls && client.blocks_slots(&self.desk) {
                Fault::Stalled
            } else {
                continue;
            };
            self.close(client.id, Some(&fault));
        }
        Ok(())
    }

    fn stop(&mut self) {
        if !self.watch.stop(self.desk.limits.stop_timeout_ns) {
            return;
        }
        self.waiting = None;
        for index in 0..self.seats.len() {
            let Some(client) = &self.seats[index].client else { continue };
            let id = client.id;
            self.with_client(id, |client, cx| client.stop(cx));
            self.touch(id.index);
        }
    }

    fn is_over(&self) -> bool {
        self.watch.is_over(|| self.clients.all == 0 && self.desk.pieces_in_flight() == 0)
    }

    fn finish(mut self) -> Summary {
        for index in 0..self.seats.len() {
            if let Some(client) = &self.seats[index].client {
                self.close(client.id, None);
            }
        }
        self.summary.counters = self.desk.counters();
        self.summary.abandoned = self.desk.pieces_in_flight();
        self.summary
    }
}
