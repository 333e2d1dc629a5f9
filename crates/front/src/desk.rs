//! The front desk: requests that were taken in and are being carried out, of all connections together, and
//! the slots they hold.
//!
//! A *request* is what a client sent; a *piece* is a part of it that went to the volume under its own tag.
//! Entries are reused together with their vectors, so a running server allocates nothing per request.

use crate::command::Command;
use crate::export::Export;
use crate::meter::Meter;
use crate::{Limits, Volume, VolumeError, VolumeRequest};
use block::slab::{Key, Slab};
use block::{Durability, Slot};
use std::collections::VecDeque;
use std::sync::Arc;

/// Names a connection; never reused while the server runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default, PartialOrd, Ord)]
pub struct ConnectionId {
    /// Where its owner keeps it.
    pub index: u32,
    /// Tells it from others that were kept there before.
    pub generation: u32,
}

/// What went through the desk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Requests answered, by [`Command::index`].
    pub requests: [u64; Command::COUNT],
    /// Requests answered with an error, whatever the reason.
    pub errors: u64,
    /// Bytes of reads handed to clients.
    pub read_bytes: u64,
    /// Bytes of writes handed to the volume.
    pub written_bytes: u64,
}

impl Counters {
    /// With those of another desk.
    pub fn and(self, other: Self) -> Self {
        Self {
            requests: std::array::from_fn(|index| self.requests[index] + other.requests[index]),
            errors: self.errors + other.errors,
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
        }
    }
}

/// How a read is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum ReplyStyle {
    /// Simple reply: one header, one run of data.
    #[default]
    Simple,
    /// Structured reply, each piece in a chunk of its own, in any order.
    Chunks,
    /// Structured reply of one chunk (DF).
    OneChunk,
}

/// What a client sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Request {
    pub connection: ConnectionId,
    pub cookie: u64,
    pub command: Option<Command>,
    pub durability: Durability,
    pub offset_bytes: u64,
    pub length_bytes: u32,
    pub style: ReplyStyle,
    /// Pieces at the volume.
    pub pieces_open: u32,
    /// Whether no further piece will be started.
    pub all_started: bool,
    /// Whether the head of a reply that comes in several parts is on its way.
    pub head_sent: bool,
    pub error: Option<VolumeError>,
    /// When it came, in the desk's time.
    pub came_ns: u64,
}

/// A part of a request.
#[derive(Debug)]
pub(crate) struct Piece {
    pub request: Key<Request>,
    pub offset_bytes: u64,
    pub length_bytes: u32,
    pub slots: Vec<Slot>,
    pub in_flight: bool,
}

/// Why no slots were given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// None are free, or others wait for them: now this connection waits, too.
    Queue,
    /// The connection must first give back some of its own.
    Share,
}

/// Requests, pieces, and who waits for slots.
pub struct Desk {
    /// What is exported.
    pub(crate) export: Export,
    pub(crate) limits: Limits,
    pub(crate) requests: Slab<Request>,
    pub(crate) pieces: Slab<Piece>,
    pub(crate) counters: Counters,
    /// For whoever watches.
    pub(crate) meter: Arc<Meter>,
    /// The time, kept by the reactor.
    pub(crate) now_ns: u64,
    /// Turns of all clients so far.
    pub(crate) turn: u64,
    /// Reused by block status.
    pub(crate) extents: Vec<(u64, bool)>,
    pub(crate) extents_short: Vec<(u32, bool)>,
    /// Whether the volume got work after it was last driven; kept by the reactor.
    pub(crate) started_since_drive: bool,
    chunk_bytes: usize,
    /// No piece crosses a multiple of it.
    unit_bytes: Option<u64>,
    /// Requests are cut at multiples of it, so that no block that must not be torn is; 1 if none must not.
    cut_bytes: u64,
    slots_held: usize,
    /// Slots given back so far.
    slots_freed: u64,
    slot_budget: usize,
    piece_slots_max: usize,
    waiting: VecDeque<ConnectionId>,
}

/// What a connection works with.
pub struct Context<'a> {
    /// The storage.
    pub volume: &'a mut dyn Volume,
    /// Shared by all connections.
    pub desk: &'a mut Desk,
}

impl Desk {
    /// A desk before `volume`.
    pub fn new(export: Export, limits: Limits, volume: &mut dyn Volume) -> Self {
        let chunk_bytes = volume.chunk_bytes();
        let budget = limits.slot_budget(volume.pool().slot_count());
        let cut_bytes = volume.untorn_bytes().max(1);
        // However few buffers there are, such a block is one piece.
        let block_slots = usize::try_from(cut_bytes).unwrap_or(usize::MAX).div_ceil(chunk_bytes);
        let piece_slots_max = limits.piece_slots_max(budget, chunk_bytes).max(block_slots);
        Self {
            export,
            limits,
            requests: Slab::default(),
            pieces: Slab::default(),
            counters: Counters::default(),
            meter: Arc::default(),
            now_ns: 0,
            turn: 0,
            extents: Vec::new(),
            extents_short: Vec::new(),
            started_since_drive: false,
            chunk_bytes,
            unit_bytes: volume.unit_bytes(),
            cut_bytes,
            slots_held: 0,
            slots_freed: 0,
            slot_budget: budget,
            piece_slots_max,
            waiting: VecDeque::new(),
        }
    }

    /// All clients have had their turn.
    pub fn begin_turn(&mut self) {
        self.turn += 1;
    }

    /// What went through so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Pieces that are being filled or that the volume has not finished.
    pub fn pieces_in_flight(&self) -> usize {
        self.pieces.len()
    }

    /// Slots that are with connections or, on their behalf, with the volume.
    pub fn slots_held(&self) -> usize {
        self.slots_held
    }

    /// Slots that were given back so far: when there are more, who waits may have them.
    pub fn slots_freed(&self) -> u64 {
        self.slots_freed
    }

    /// Requests that are not answered yet.
    pub fn requests_open(&self) -> usize {
        self.requests.len()
    }

    /// Who is next to get slots.
    pub fn next_waiting(&self) -> Option<ConnectionId> {
        self.waiting.front().copied()
    }

    /// The connection whose piece has this tag.
    pub fn connection_of(&self, tag: u64) -> ConnectionId {
        self.requests[self.pieces[self.piece_of(tag)].request].connection
    }

    pub(crate) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// How much of `[offset, offset + length)` goes into the first piece.
    pub(crate) fn piece_length(&self, offset_bytes: u64, length_bytes: u32) -> u32 {
        let room = self.piece_slots_max * self.chunk_bytes - self.within_chunk(offset_bytes);
        let room = u64::try_from(room).unwrap_or(u64::MAX);
        let to_unit_end = self.unit_bytes.map_or(u64::MAX, |unit| unit - offset_bytes % unit);
        let fits = u64::from(length_bytes).min(to_unit_end);
        // What is cut for want of room is cut between blocks that must not be torn.
        let beyond = (offset_bytes + room) % self.cut_bytes;
        let taken = if fits <= room { fits } else { room - if beyond < room { beyond } else { 0 } };
        u32::try_from(taken).expect("not more than the length")
    }

    /// Where in its chunk an offset lies.
    pub(crate) fn within_chunk(&self, offset_bytes: u64) -> usize {
        usize::try_from(offset_bytes % self.chunk_bytes as u64).expect("a chunk fits into memory")
    }

    /// Takes a request in.
    pub(crate) fn open_request(&mut self, request: Request) -> Key<Request> {
        self.requests.insert(Request { came_ns: self.now_ns, ..request })
    }

    /// Makes a piece with its slots, all at once: nobody waits for slots while sitting on half a piece, so
    /// no two connections can wait for each other. The first piece of a request finds its slots under the
    /// same rule.
    pub(crate) fn open_piece(
        &mut self,
        volume: &mut dyn Volume,
        request: Key<Request>,
        held: &mut usize,
        range: (u64, u32),
    ) -> Result<Key<Piece>, Refusal> {
        let (offset_bytes, length_bytes) = range;
        let bytes = self.within_chunk(offset_bytes) + length_bytes as usize;
        let count = if length_bytes == 0 { 0 } else { bytes.div_ceil(self.chunk_bytes) };
        let connection = self.requests[request].connection;
        // At most as many as stay free (the dynamic thresholds of Choudhury and Hahne): one connection has
        // half of the budget, and however many slow readers hold what they have got, there is room for more.
        if *held > 0 && *held + count > self.slot_budget.saturating_sub(self.slots_held) {
            return Err(Refusal::Share);
        }
        let first = self.waiting.front().is_none_or(|&head| head == connection);
        let pool = volume.pool();
        let room = self.slots_held == 0 || self.slots_held + count <= self.slot_budget;
        if count > 0 && !(first && room && pool.free_count() >= count) {
            if !self.waiting.contains(&connection) {
                self.waiting.push_back(connection);
            }
            return Err(Refusal::Queue);
        }
        if first && !self.waiting.is_empty() {
            self.waiting.pop_front();
        }
        let index = self.open_slotless_piece(request, range);
        let slots = &mut self.pieces[index].slots;
        slots.extend((0..count).map(|_| pool.alloc().expect("the pool has as many free slots as it says")));
        self.slots_held += count;
        *held += count;
        Ok(index)
    }

    /// Makes a piece that needs no slots.
    pub(crate) fn open_slotless_piece(&mut self, request: Key<Request>, range: (u64, u32)) -> Key<Piece> {
        let (offset_bytes, length_bytes) = range;
        let fresh = Piece { request, offset_bytes, length_bytes, slots: Vec::new(), in_flight: false };
        let key = self.pieces.reuse(|| fresh);
        let piece = &mut self.pieces[key];
        (piece.request, piece.offset_bytes, piece.length_bytes) = (request, offset_bytes, length_bytes);
        key
    }

    /// Hands a piece to the volume.
    pub(crate) fn start(&mut self, volume: &mut dyn Volume, index: Key<Piece>, what: VolumeRequest) {
        let piece = &mut self.pieces[index];
        piece.in_flight = true;
        self.started_since_drive = true;
        self.requests[piece.request].pieces_open += 1;
        volume.start(u64::from(index.index()), what, &piece.slots);
    }

    fn piece_of(&self, tag: u64) -> Key<Piece> {
        let index = Key::from_index(u32::try_from(tag).expect("the volume finishes only what was started"));
        assert!(self.pieces[index].in_flight, "the volume finished request {tag} twice");
        index
    }

    /// Takes note that the volume has finished a piece.
    pub(crate) fn arrived(&mut self, tag: u64, error: Option<VolumeError>) -> Key<Piece> {
        let index = self.piece_of(tag);
        self.pieces[index].in_flight = false;
        let request = &mut self.requests[self.pieces[index].request];
        request.pieces_open -= 1;
        request.error = request.error.or(error);
        index
    }

    /// Forgets a piece that holds no slots any more.
    pub(crate) fn close_piece(&mut self, index: Key<Piece>) {
        debug_assert!(self.pieces[index].slots.is_empty());
        self.pieces.release(index);
    }

    /// Forgets a piece and frees its slots.
    pub(crate) fn drop_piece(&mut self, volume: &mut dyn Volume, index: Key<Piece>, held: &mut usize) {
        let pool = volume.pool();
        let slots = &mut self.pieces[index].slots;
        self.slots_held -= slots.len();
        self.slots_freed += slots.len() as u64;
        *held -= slots.len();
        slots.drain(..).for_each(|slot| pool.free(slot));
        self.pieces.release(index);
    }

    /// Frees one slot.
    pub(crate) fn free_slot(&mut self, volume: &mut dyn Volume, slot: Slot) {
        volume.pool().free(slot);
        self.slots_held -= 1;
        self.slots_freed += 1;
    }

    /// Forgets a request without an answer or after it.
    pub(crate) fn close_request(&mut self, index: Key<Request>) {
        self.requests.release(index);
    }

    /// The volume has finished a piece whose connection is gone.
    pub fn orphan_done(&mut self, volume: &mut dyn Volume, tag: u64) {
        let piece = self.arrived(tag, None);
        let request = self.pieces[piece].request;
        let mut held = self.pieces[piece].slots.len();
        self.drop_piece(volume, piece, &mut held);
        if self.requests[request].all_started && self.requests[request].pieces_open == 0 {
            self.close_request(request);
        }
    }

    /// The connection no longer waits for slots.
    pub(crate) fn leave_queue(&mut self, connection: ConnectionId) {
        self.waiting.retain(|&other| other != connection);
    }

    /// Counts an answer.
    pub(crate) fn count(&mut self, request: &Request, error: Option<VolumeError>) {
        let Some(command) = request.command else { return };
        self.counters.requests[command.index()] += 1;
        let wait_ns = if request.came_ns > 0 { self.now_ns.saturating_sub(request.came_ns) } else { 0 };
        self.meter.count(command, request.length_bytes.into(), error.is_some(), wait_ns);
        if error.is_some() {
            self.counters.errors += 1;
        } else if command == Command::Read {
            self.counters.read_bytes += u64::from(request.length_bytes);
        } else if command == Command::Write {
            self.counters.written_bytes += u64::from(request.length_bytes);
        }
    }
}
