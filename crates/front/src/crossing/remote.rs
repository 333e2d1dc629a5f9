//! The side of the sockets.

use super::{Answer, Ask, BUFFER_BYTES, Bell, Buffer, ExtentsAsk, Shape};
use crate::{Done, Volume, VolumeRequest};
use block::slab::{Key, Slab};
use block::{Pool, Slot};
use rtrb::{Consumer, Producer, PushError};
use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long the volume is waited for to say what lies behind a range; then it counts as data.
const EXTENTS_PATIENCE: Duration = Duration::from_secs(1);

/// A request under way.
#[derive(Default)]
struct Flight {
    tag: u64,
    slots: Vec<Slot>,
    /// Whether what comes back is to be copied to the slots.
    reads: bool,
    /// Reused.
    buffers: Vec<Buffer>,
}

/// A volume that another thread has; see the module's documentation.
pub struct RemoteVolume {
    shape: Shape,
    pool: Pool,
    asks: Producer<Ask>,
    answers: Consumer<Answer>,
    extents: mpsc::Sender<ExtentsAsk>,
    extents_asked: Arc<AtomicUsize>,
    flights: Slab<Flight>,
    /// Buffers that are not under way: one for each slot that is not.
    stock: Vec<Buffer>,
    /// Asks for which the queue had no room.
    overflow: VecDeque<Ask>,
    own: Arc<Bell>,
    far: Arc<Bell>,
    /// The other side has not been told of all asks.
    pushed: bool,
    dozed: Cell<bool>,
}

impl RemoteVolume {
    pub(super) fn new(
        shape: Shape,
        asks: Producer<Ask>,
        answers: Consumer<Answer>,
        (extents, extents_asked): (mpsc::Sender<ExtentsAsk>, Arc<AtomicUsize>),
        own: Arc<Bell>,
        far: Arc<Bell>,
    ) -> Self {
        let slot_count = BUFFER_BYTES / shape.chunk_bytes;
        let buffer = || vec![0; shape.chunk_bytes].into_boxed_slice();
        Self {
            shape,
            pool: Pool::new(shape.chunk_bytes, slot_count),
            asks,
            answers,
            extents,
            extents_asked,
            flights: Slab::default(),
            stock: std::iter::repeat_with(buffer).take(slot_count).collect(),
            overflow: VecDeque::new(),
            own,
            far,
            pushed: false,
            dozed: Cell::new(false),
        }
    }

    /// The bell that wakes this side.
    pub fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.own)
    }

    fn push(&mut self, ask: Ask) {
        self.pushed = true;
        if let Err(PushError::Full(ask)) = self.asks.push(ask) {
            self.overflow.push_back(ask);
        }
    }

    fn retry(&mut self) {
        while let Some(ask) = self.overflow.pop_front() {
            if let Err(PushError::Full(ask)) = self.asks.push(ask) {
                return self.overflow.push_front(ask);
            }
            self.pushed = true;
        }
    }

    fn land(&mut self, answer: Answer) -> Done {
        let Answer { tag, result, mut buffers } = answer;
        let key = Key::from_index(tag);
        let flight = &mut self.flights[key];
        if flight.reads && result.is_ok() {
            for (&slot, buffer) in flight.slots.iter().zip(&buffers) {
                self.pool.bytes_mut(slot).copy_from_slice(buffer);
            }
        }
        self.stock.append(&mut buffers);
        flight.buffers = buffers;
        let tag = flight.tag;
        self.flights.release(key);
        Done { tag, result }
    }
}

impl Volume for RemoteVolume {
    fn size_bytes(&self) -> u64 {
        self.shape.size_bytes
    }

    fn chunk_bytes(&self) -> usize {
        self.shape.chunk_bytes
    }

    fn untorn_bytes(&self) -> u64 {
        self.shape.untorn_bytes
    }

    fn unit_bytes(&self) -> Option<u64> {
        self.shape.unit_bytes
    }

    fn read_only(&self) -> bool {
        self.shape.read_only
    }

    fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    fn start(&mut self, tag: u64, request: VolumeRequest, slots: &[Slot]) {
        let key = self.flights.reuse(Flight::default);
        let flight = &mut self.flights[key];
        (flight.tag, flight.reads) = (tag, matches!(request, VolumeRequest::Read { .. }));
        flight.slots.clear();
        flight.slots.extend_from_slice(slots);
        let mut buffers = std::mem::take(&mut flight.buffers);
        for &slot in slots {
            let mut buffer = self.stock.pop().expect("there is a buffer for each slot");
            if !flight.reads {
                buffer.copy_from_slice(self.pool.bytes(slot));
            }
            buffers.push(buffer);
        }
        self.push(Ask { tag: key.index(), request, buffers });
    }

    fn drive(&mut self, done: &mut Vec<Done>) {
        if self.dozed.replace(false) {
            self.own.wake();
        }
        while let Ok(answer) = self.answers.pop() {
            let ended = self.land(answer);
            done.push(ended);
        }
        self.retry();
        if std::mem::take(&mut self.pushed) {
            self.far.ring();
        }
    }

    fn idle_for(&self) -> Option<u64> {
        if self.pushed {
            return Some(0);
        }
        self.dozed.set(true);
        self.own.doze();
        // Asks that found no room go on when answers come.
        (!self.answers.is_empty()).then_some(0)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.own.as_fd())
    }

    fn allocated(&self, offset_bytes: u64, length_bytes: u64, out: &mut Vec<(u64, bool)>) {
        let (answer, answered) = mpsc::sync_channel(1);
        let asked = self.extents.send(ExtentsAsk { offset_bytes, length_bytes, answer });
        self.extents_asked.fetch_add(1, Ordering::Relaxed);
        self.far.ring();
        match asked.ok().and_then(|()| answered.recv_timeout(EXTENTS_PATIENCE).ok()) {
            Some(mut extents) => out.append(&mut extents),
            None => out.push((length_bytes, false)),
        }
    }
}
