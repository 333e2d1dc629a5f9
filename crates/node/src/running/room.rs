//! The shards that one thread runs, and what the threads of sockets ask of them.
//!
//! Each shard has buffers of its own. What clients send and get changes places with what is in those, without
//! a copy; a shard that stands still keeps only its own requests waiting.

use crate::driver::Devices;
use crate::error::Error;
use crate::volume::ServedShard;
use block::slab::{Key, Slab};
use block::{Buffer, DeviceSet, Share, Slot};
use front::{Answer, Ask, Bell, Done, Landing, Volume as _, VolumeRequest};
use rustix::event::{Timespec, epoll};
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Requests taken from one landing in one go.
const ASKS_MAX: usize = 1024;

/// A request on its way through a shard.
#[derive(Default)]
struct Transfer {
    landing: usize,
    tag: u64,
    /// Where the shard is among those of the room.
    seat: usize,
    /// Until the shard is asked.
    request: Option<VolumeRequest>,
    /// Whether what the shard has in its buffers at the end is what was asked for.
    reads: bool,
    buffers: Vec<Buffer>,
    /// The shard's; none while the request waits for them.
    inner: Vec<Slot>,
}

/// See the module's documentation.
pub struct Room<D = Devices> {
    shards: Vec<ServedShard<D>>,
    /// Their numbers, by the place of the first of them and how many shards lie between two.
    first: usize,
    stride: usize,
    transfers: Slab<Transfer>,
    /// Of each shard, transfers that wait for buffers.
    waiting: Vec<VecDeque<Key<Transfer>>>,
    /// What a shard has ended.
    ended: Vec<Done>,
    landings: Vec<Landing>,
    bell: Arc<Bell>,
    dozed: Cell<bool>,
    /// Readable when one of the shards' devices has news, or the bell rings.
    wake: OwnedFd,
}

impl<D: DeviceSet> Room<D> {
    /// A room of shards, every `stride`-th from `first` on, for which others ring `bell`.
    pub fn new(
        shards: Vec<ServedShard<D>>,
        (first, stride): (usize, usize),
        bell: Arc<Bell>,
    ) -> io::Result<Self> {
        let wakes = shards.iter().filter_map(|shard| shard.wake_fd());
        let wake = watch_all(wakes.chain([bell.as_fd()]))?;
        let waiting = shards.iter().map(|_| VecDeque::new()).collect();
        let (transfers, ended, landings) = (Slab::default(), Vec::new(), Vec::new());
        let dozed = Cell::new(false);
        Ok(Self { shards, first, stride, transfers, waiting, ended, landings, bell, dozed, wake })
    }

    /// The shards.
    pub fn shards(&self) -> &[ServedShard<D>] {
        &self.shards
    }

    /// The shards, to be changed.
    pub fn shards_mut(&mut self) -> &mut [ServedShard<D>] {
        &mut self.shards
    }

    /// The bell that wakes whoever drives them.
    pub fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// What is asked here is answered from now on.
    pub fn open(&mut self, landing: Landing) {
        self.landings.push(landing);
    }

    /// Stops every shard in order, also when one of them could not be.
    pub fn stop(mut self) -> Result<(), Error> {
        let stopped: Vec<_> = self.shards.iter_mut().map(ServedShard::stop).collect();
        stopped.into_iter().collect()
    }

    fn seat_of(&self, shard: u16) -> usize {
        (usize::from(shard) - self.first) / self.stride
    }

    /// Takes in what is asked.
    fn take_asks(&mut self) {
        for index in 0..self.landings.len() {
            for _ in 0..ASKS_MAX {
                let Some(ask) = self.landings[index].next_ask() else { break };
                self.begin(index, ask);
            }
        }
        self.tell_extents();
    }

    /// Answers whoever has asked what lies behind ranges.
    pub fn tell_extents(&self) {
        for landing in &self.landings {
            while let Some(ask) = landing.next_extents_ask() {
                let _ = ask.answer.send(self.extents(ask.share)); // whoever asked may have lost patience
            }
        }
    }

    /// Whether a shard is among those here.
    pub fn has(&self, shard: u16) -> bool {
        usize::from(shard) % self.stride == self.first
    }

    /// What lies behind a share of a range, of a shard that is here.
    pub fn extents(&self, share: Share) -> Vec<(u64, bool)> {
        let mut extents = Vec::new();
        self.shards[self.seat_of(share.shard)].allocated(
            share.offset_bytes,
            share.length_bytes,
            &mut extents,
        );
        extents
    }

    /// Takes a request in, and hands it to its shard if that has buffers for it.
    fn begin(&mut self, landing: usize, ask: Ask) {
        let Ask { tag, shard, request, buffers } = ask;
        let seat = self.seat_of(shard);
        let key = self.transfers.reuse(Transfer::default);
        let transfer = &mut self.transfers[key];
        (transfer.landing, transfer.tag, transfer.seat) = (landing, tag, seat);
        transfer.reads = matches!(request, VolumeRequest::Read { .. });
        (transfer.request, transfer.buffers) = (Some(request), buffers);
        if !self.waiting[seat].is_empty() || !self.hand_over(key) {
            self.waiting[seat].push_back(key);
        }
    }

    /// Hands a request to its shard; `false` if that has no buffers for it.
    fn hand_over(&mut self, key: Key<Transfer>) -> bool {
        let transfer = &mut self.transfers[key];
        let shard = &mut self.shards[transfer.seat];
        if !shard.engine().take_slots(transfer.buffers.len(), &mut transfer.inner) {
            return false;
        }
        let request = transfer.request.take().expect("it was not handed over yet");
        if !transfer.reads {
            let pool = shard.engine().pool();
            for (buffer, &inner) in transfer.buffers.iter_mut().zip(&transfer.inner) {
                pool.exchange(inner, buffer);
            }
        }
        shard.start(key.index().into(), request, &transfer.inner);
        true
    }

    fn retry_waiting(&mut self) {
        for seat in 0..self.shards.len() {
            while let Some(&key) = self.waiting[seat].front() {
                if !self.hand_over(key) {
                    break;
                }
                self.waiting[seat].pop_front();
            }
        }
    }

    /// A shard has ended something.
    fn end(&mut self, seat: usize, done: Done) {
        let Done { tag, result } = done;
        let key = Key::from_index(u32::try_from(tag).expect("tags of transfers are made here"));
        let transfer = &mut self.transfers[key];
        let pool = self.shards[seat].engine().pool();
        if transfer.reads && result.is_ok() {
            for (buffer, &inner) in transfer.buffers.iter_mut().zip(&transfer.inner) {
                pool.exchange(inner, buffer);
            }
        }
        transfer.inner.drain(..).for_each(|inner| pool.free(inner));
        let (landing, tag) = (transfer.landing, transfer.tag);
        let buffers = std::mem::take(&mut transfer.buffers);
        self.transfers.release(key);
        self.landings[landing].answer(Answer { tag, result, buffers });
    }

    /// Does everything that can be done now.
    pub fn drive(&mut self) {
        if self.dozed.replace(false) {
            self.bell.wake();
        }
        self.take_asks();
        self.retry_waiting();
        for seat in 0..self.shards.len() {
            let mut ended = std::mem::take(&mut self.ended);
            self.shards[seat].drive(&mut ended);
            ended.drain(..).for_each(|one| self.end(seat, one));
            self.ended = ended;
        }
        for landing in &mut self.landings {
            landing.tell();
        }
    }

    /// In how many nanoseconds it wants to be driven again by itself. To be asked at the moment of going to
    /// sleep: whoever brings work from then on rings.
    pub fn idle_for(&self) -> Option<u64> {
        let is_ready = |(queue, shard): (&VecDeque<Key<Transfer>>, &ServedShard<D>)| {
            queue.front().is_some_and(|&key| shard.engine_ref().has_slots(self.transfers[key].buffers.len()))
        };
        if self.waiting.iter().zip(&self.shards).any(is_ready) {
            return Some(0);
        }
        self.dozed.set(true);
        self.bell.doze();
        if self.landings.iter().any(|landing| landing.has_asks() || landing.is_full()) {
            return Some(0);
        }
        self.shards.iter().filter_map(|shard| shard.idle_for()).min()
    }

    /// Readable when it is to be driven.
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Sleeps until it is to be driven, so many nanoseconds at most.
    pub fn sleep(&self, timeout_ns: Option<u64>) -> io::Result<()> {
        // Longer than the clock can say is for ever.
        let timeout = timeout_ns.and_then(|ns| Timespec::try_from(Duration::from_nanos(ns)).ok());
        let mut events = [MaybeUninit::uninit()];
        match epoll::wait(&self.wake, &mut events, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Room {
    /// Lends the shards; their devices stay.
    pub fn lend(&mut self) -> (Vec<ServedShard<()>>, Vec<Devices>) {
        std::mem::take(&mut self.shards).into_iter().map(|shard| shard.with_devices(())).unzip()
    }

    /// They are back.
    pub fn take_back(&mut self, lent: Vec<ServedShard<()>>, devices: Vec<Devices>) {
        let pairs = lent.into_iter().zip(devices);
        self.shards.extend(pairs.map(|(shard, devices)| shard.with_devices(devices).0));
    }
}

/// An event that is readable while one of `events` is.
pub fn watch_all<'a>(events: impl Iterator<Item = BorrowedFd<'a>>) -> io::Result<OwnedFd> {
    let all = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for event in events {
        epoll::add(&all, event, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    Ok(all)
}
