//! Which checkpoints there are, and which are wanted.

use crate::engine::request::Request;
use crate::image::{CheckpointPlace, Image};
use crate::table::Extent;
use block::Seq;
use block::slab::Key;
use format::{CheckpointKind, CheckpointNumbers};

/// See the module's documentation.
pub(in crate::engine) struct CheckpointBoard {
    /// Where the newest one is.
    pub place: CheckpointPlace,
    /// Records that it holds.
    pub through: Seq,
    /// When the last one was begun, in the engine's time.
    pub(super) begun_ns: u64,
    /// Room for the list of the next one.
    pub(super) list_room: Vec<u32>,
    /// Number of the one under way, if one is.
    pub(super) alone: Option<u64>,
    /// And of an incremental one beside a full one.
    pub(super) beside: Option<u64>,
    /// Full ones begun in this assembly, and how many of those have ended.
    pub(super) fulls: (u64, u64),
    pub(super) wanted: Option<Extent>,
    /// Pages that are not in their slots have all the room, and another one is to come.
    pub(super) room_wanted: bool,
    pub(super) waiting: Vec<Key<Request>>,
    /// Members that are being rebuilt are to get the copies of pages that they lack, with the next one.
    pub(super) copies_wanted: bool,
    /// Checkpoints begun in this assembly that are to leave every member with its copies of all pages.
    pub(super) completing_begun: u64,
    /// Number of the last one that is durable and did.
    pub(super) completing_sealed: u64,
}

impl CheckpointBoard {
    pub(in crate::engine) fn new(place: CheckpointPlace, through: Seq) -> Self {
        Self {
            place,
            through,
            begun_ns: 0,
            list_room: Vec::new(),
            alone: None,
            beside: None,
            fulls: (0, 0),
            wanted: None,
            room_wanted: false,
            waiting: Vec::new(),
            copies_wanted: false,
            completing_begun: 0,
            completing_sealed: 0,
        }
    }

    /// Whether one is under way or wanted.
    pub(in crate::engine) fn is_busy(&self) -> bool {
        self.is_under_way() || self.wanted.is_some() || self.room_wanted
    }

    /// A request waits for one of that kind.
    pub(in crate::engine) fn want(&mut self, request: Key<Request>, kind: CheckpointKind) {
        self.waiting.push(request);
        match kind {
            CheckpointKind::Full => self.request(Extent::Everything),
            CheckpointKind::Incremental => self.request(Extent::Changes),
        }
    }

    /// Checkpoints begun in this assembly that are to leave every member with its copies of all pages: what
    /// is asked for now, copies or everything, is in the next one.
    pub(in crate::engine) fn completing_begun(&self) -> u64 {
        self.completing_begun
    }

    /// Number of the last one of those that is durable and did.
    pub(in crate::engine) fn completing_sealed(&self) -> u64 {
        self.completing_sealed
    }

    /// With the next checkpoint, which holds at least `extent`, members that are being rebuilt get the copies
    /// of pages that they lack.
    pub(in crate::engine) fn request_copies(&mut self, extent: Extent) {
        self.copies_wanted = true;
        self.request(extent);
    }

    /// Whether one is under way.
    pub(in crate::engine) fn is_under_way(&self) -> bool {
        self.alone.or(self.beside).is_some()
    }

    /// Whether one of those under way has that number or a lower one.
    pub(in crate::engine) fn awaits(&self, number: u64) -> bool {
        self.alone.into_iter().chain(self.beside).any(|under_way| under_way <= number)
    }

    /// Number of the newest one, or of the newest under way.
    pub(in crate::engine) fn newest(&self) -> u64 {
        self.place.number.max(self.alone.unwrap_or(0)).max(self.beside.unwrap_or(0))
    }

    /// Number of the newest one of which everything is where it belongs: one that is newer than a full one
    /// under way was written beside that.
    pub(in crate::engine) fn settled(&self) -> u64 {
        self.alone.map_or(self.place.number, |number| self.place.number.min(number - 1))
    }

    /// Full ones that have ended in this assembly.
    pub(in crate::engine) fn fulls_ended(&self) -> u64 {
        self.fulls.1
    }

    /// How many will have when one has that was not begun yet.
    pub(in crate::engine) fn next_full(&self) -> u64 {
        self.fulls.0 + 1
    }

    /// What superblocks say of them.
    pub(in crate::engine) fn numbers(&self) -> CheckpointNumbers {
        CheckpointNumbers { durable: self.settled(), used: self.place.used }
    }

    /// Whether the newest checkpoint holds the records up to `seq`.
    pub(in crate::engine) fn holds(&self, seq: Seq) -> bool {
        self.through >= seq
    }

    /// Something waits for what such a checkpoint frees, or for its copies.
    pub(in crate::engine) fn request(&mut self, extent: Extent) {
        self.wanted = self.wanted.max(Some(extent));
    }

    /// A page waits for room that a full one makes.
    pub(in crate::engine) fn request_room(&mut self) {
        self.room_wanted = true;
    }

    /// One is begun at `now_ns`: its number is used.
    pub(super) fn begin(&mut self, image: &Image, now_ns: u64) {
        (self.place.used, self.begun_ns) = (image.number, now_ns);
        if image.kind == CheckpointKind::Full {
            self.fulls.0 += 1;
        }
    }
}
