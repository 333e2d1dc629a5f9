//! Requests: validation, splitting into chunks, and answers.

use super::{Core, SyncPolicy};
use crate::away::NotBack;
use crate::planted::{Planted, planted};
use crate::scheme::{ChunkWrite, Journaling, Origin};
use block::slab::Key;
use block::{DevIndex, Durability, Lba, Lcn, SECTOR_BYTES, Slot};

/// Why a request failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EngineError {
    /// Offsets and lengths are multiples of 512.
    #[error("offset {offset_bytes} or length {length_bytes} is not a multiple of 512")]
    Unaligned {
        /// Offset asked for.
        offset_bytes: u64,
        /// Length asked for.
        length_bytes: u64,
    },
    /// The request reaches past the end of the volume.
    #[error("{offset_bytes}+{length_bytes} is past the end of the volume ({volume_bytes} bytes)")]
    OutOfRange {
        /// Offset asked for.
        offset_bytes: u64,
        /// Length asked for.
        length_bytes: u64,
        /// Size of the volume.
        volume_bytes: u64,
    },
    /// More members are missing than the code tolerates, or part of the table is lost: the array takes no
    /// writes.
    #[error(
        "more devices are missing than the array tolerates, or part of its table is lost: it takes no writes"
    )]
    ArrayFailed,
    /// The chunk and too much of its cover are lost.
    #[error("chunk {lcn} cannot be read nor rebuilt: too many of its pieces are lost")]
    Unreadable {
        /// Which chunk.
        lcn: Lcn,
    },
    /// The engine found no space although the volume's size promises it.
    #[error("no space could be reclaimed")]
    NoSpace,
    /// Writes need room on a member, and where that lies is none.
    #[error(
        "there is no room where member {dev} lies (a full file system, a quota): writes wait; make room, or take the member out of service"
    )]
    MemberFull {
        /// Which member.
        dev: DevIndex,
    },
    /// A rebuild or scrub met code words too much of which is lost.
    #[error(
        "too much of {count} code words is lost: rewrite or discard it (see `status --verbose`), the rest is done"
    )]
    Lost {
        /// How many.
        count: u64,
    },
    /// Stripes cannot be committed, since too much of what they need is lost.
    #[error(
        "too much of {count} stripes is lost to commit them: rewrite or discard it (see `status --verbose`), the rest is done"
    )]
    CommitStuck {
        /// How many.
        count: u64,
    },
    /// A scrub found metadata that is bad still, or members that are useless and cannot be spared.
    #[error(
        "{count} blocks of metadata are bad still, or members useless that cannot be spared; see `status`"
    )]
    BadMetadata {
        /// How many.
        count: u64,
    },
    /// A scrub found chunks that are bad still.
    #[error("there was no room to write {count} bad chunks anew; make room and scrub again")]
    Unhealed {
        /// How many.
        count: u64,
    },
    /// The array is being stopped: it takes no writes, and what works on all of it was given up.
    #[error("the array is being stopped")]
    Stopping,
    /// A scrub was given up because a rebuild goes first.
    #[error("given up before its end: a rebuild goes first")]
    Preempted,
    /// A scrub or a commit was given up because somebody asked for that.
    #[error("given up before its end, as was asked for")]
    GivenUp,
    /// A scrub while a rebuild is under way.
    #[error("a rebuild is under way; wait for its end")]
    Busy,
    /// The array has no such member.
    #[error("the array has no member {dev}")]
    UnknownMember {
        /// Which was asked for.
        dev: DevIndex,
    },
    /// A rebuild onto a member that is in service.
    #[error("member {dev} is in service: nothing can take its place")]
    MemberInService {
        /// Which.
        dev: DevIndex,
    },
    /// A device does not come back by what it has missed.
    #[error("the device of member {dev} does not come back by what it missed: {why}")]
    NotBack {
        /// Which.
        dev: DevIndex,
        /// Why.
        why: NotBack,
    },
    /// A rebuild onto a member that operations are under way on.
    #[error("member {dev} still has operations under way: nothing can take its place yet")]
    MemberNotFree {
        /// Which.
        dev: DevIndex,
    },
}

/// The end of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// The caller's tag.
    pub tag: u64,
    /// How it ended.
    pub result: Result<(), EngineError>,
}

/// A request in flight.
#[derive(Default)]
pub struct Request {
    pub(super) tag: u64,
    /// Chunks still to be done.
    pub(super) remaining: u32,
    pub(super) error: Option<EngineError>,
    /// Whether it must be durable before it is answered.
    pub(super) durable: bool,
    /// When it came.
    pub(super) since_ns: u64,
}

/// What happens when everything sent before has been written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum After {
    /// The request gets its flush.
    Flush(Key<Request>),
    /// The request gets its parity commit.
    Commit(Key<Request>),
}

impl After {
    /// The request that waits for it.
    pub fn request(self) -> Key<Request> {
        match self {
            Self::Flush(request) | Self::Commit(request) => request,
        }
    }
}

/// A chunk that a discard covers in part, with zeros at their place in a buffer of the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub lcn: Lcn,
    pub slot: Slot,
    pub from: u32,
    pub to: u32,
}

impl Core {
    fn check(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), EngineError> {
        if !offset_bytes.is_multiple_of(SECTOR_BYTES) || !length_bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(EngineError::Unaligned { offset_bytes, length_bytes });
        }
        let volume_bytes = self.store.config.volume_bytes();
        match offset_bytes.checked_add(length_bytes) {
            Some(end) if end <= volume_bytes => Ok(()),
            _ => Err(EngineError::OutOfRange { offset_bytes, length_bytes, volume_bytes }),
        }
    }

    /// The chunks that a range touches, each with the bytes of it that are covered.
    pub(super) fn chunks_of(
        &self,
        offset: u64,
        length: u64,
    ) -> impl Iterator<Item = (Lcn, u32, u32)> + use<> {
        let geometry = self.store.config.geometry;
        let (chunk, end) = (geometry.chunk_bytes() as u64, offset + length);
        let behind = geometry.lcn_of_offset(end + (chunk - 1));
        (geometry.lcn_of_offset(offset).get()..behind.get()).map(move |lcn| {
            let start = lcn * chunk;
            let from = offset.saturating_sub(start).min(chunk) as u32;
            let to = (end - start).min(chunk) as u32;
            (Lcn::new(lcn), from, to)
        })
    }

    fn open(&mut self, tag: u64, remaining: usize, durable: bool) -> Key<Request> {
        // Field by field: an error that is none is not copied.
        let key = self.requests.reuse(Request::default);
        let request = &mut self.requests[key];
        (request.tag, request.remaining, request.durable) = (tag, remaining as u32, durable);
        (request.error, request.since_ns) = (None, self.now_ns);
        key
    }

    /// Writes `length_bytes` at `offset_bytes`. `slots` holds one slot per chunk touched, the payload at the
    /// place it has within its chunk. The slots are the engine's until the request is done, and hold whatever
    /// it left in them then. With `durable` it is answered only when it would survive a power cut.
    pub(super) fn write(
        &mut self,
        tag: u64,
        offset_bytes: u64,
        length_bytes: u64,
        slots: &[Slot],
        durable: Durability,
    ) {
        if let Err(error) = self.check(offset_bytes, length_bytes).and_then(|()| self.check_writable()) {
            return self.finish(Done { tag, result: Err(error) });
        }
        let durable = durable == Durability::Durable || self.options.sync == SyncPolicy::Always;
        if slots.is_empty() {
            return self.finish(Done { tag, result: Ok(()) });
        }
        let request = self.open(tag, slots.len(), durable);
        self.note_write_request();
        let has_classes = self.has_classes();
        if has_classes {
            self.scheme.begin_write(Lba::new(offset_bytes / SECTOR_BYTES), length_bytes / SECTOR_BYTES);
        }
        // Where a block ends, all chunks of which have that order: looked for once in each.
        let (mut order, mut block_end) = (0, if slots.len() > 1 { 0 } else { u64::MAX });
        for ((lcn, from, to), &slot) in self.chunks_of(offset_bytes, length_bytes).zip(slots) {
            if lcn.get() >= block_end {
                order = self.order_of(lcn.get(), (offset_bytes, length_bytes), slots.len());
                block_end = ((lcn.get() >> order) + 1) << order;
            }
            let class = if has_classes { self.scheme.class_of_write(&self.store, lcn) } else { 0 };
            self.queue_write(ChunkWrite {
                origin: Origin::Request(request.index()),
                lcn,
                slot,
                from,
                to,
                class,
                order,
            });
        }
        self.stats.user_chunks_written += slots.len() as u64;
    }

    /// Reads `length_bytes` at `offset_bytes` into `slots`, one per chunk touched; whole chunks are filled
    /// in.
    pub(super) fn read(&mut self, tag: u64, offset_bytes: u64, length_bytes: u64, slots: &[Slot]) {
        if let Err(error) = self.check(offset_bytes, length_bytes) {
            return self.finish(Done { tag, result: Err(error) });
        }
        if slots.is_empty() {
            return self.finish(Done { tag, result: Ok(()) });
        }
        self.note_request();
        let request = self.open(tag, slots.len(), false);
        for ((lcn, _, _), &slot) in self.chunks_of(offset_bytes, length_bytes).zip(slots) {
            self.start_read(request, lcn, slot);
        }
        self.stats.user_chunks_read += slots.len() as u64;
    }

    /// Makes every write answered so far durable.
    pub(super) fn flush(&mut self, tag: u64) {
        let request = self.open(tag, 0, true);
        self.after_cache(After::Flush(request));
    }

    /// Makes a range read as zeros and frees its space. Edges that cover a chunk in part are written as
    /// zeros, for which `slots` must hold two different slots; the engine takes the rest of the range without
    /// buffers.
    pub(super) fn zero(
        &mut self,
        tag: u64,
        offset_bytes: u64,
        length_bytes: u64,
        slots: [Slot; 2],
        durable: Durability,
    ) {
        if let Err(error) = self.check(offset_bytes, length_bytes).and_then(|()| self.check_writable()) {
            return self.finish(Done { tag, result: Err(error) });
        }
        if length_bytes == 0 {
            return self.finish(Done { tag, result: Ok(()) });
        }
        let durable = durable == Durability::Durable || self.options.sync == SyncPolicy::Always;
        let chunk = self.store.config.geometry.chunk_bytes() as u64;
        let (first, last) = (offset_bytes / chunk, (offset_bytes + length_bytes).div_ceil(chunk) - 1);
        let cut = self.chunks_of(offset_bytes, length_bytes);
        let request = self.open(tag, 1, durable);
        self.note_write_request();
        self.scheme.begin_write(Lba::new(offset_bytes / SECTOR_BYTES), length_bytes / SECTOR_BYTES);
        let (mut whole_from, mut whole_to) = (first, last + 1);
        let partial = |&(lcn, from, to): &(Lcn, u32, u32)| {
            (lcn.get() == first || lcn.get() == last) && u64::from(to - from) < chunk
        };
        let mut edges = [None; 2];
        for (((lcn, from, to), slot), edge) in cut.filter(partial).take(2).zip(slots).zip(&mut edges) {
            self.pool.bytes_mut(slot)[from as usize..to as usize].fill(0);
            *edge = Some(Edge { lcn, slot, from, to });
            if lcn.get() == first {
                whole_from = first + 1;
            }
            if lcn.get() == last {
                whole_to = last;
            }
        }
        self.start_zero(request, whole_from, whole_to.max(whole_from), edges);
    }

    fn check_writable(&self) -> Result<(), EngineError> {
        self.refusal().or_else(|| self.room_error()).map_or(Ok(()), Err)
    }

    /// One chunk of a request is done.
    #[inline]
    pub(super) fn chunk_done(&mut self, key: Key<Request>, error: Option<EngineError>) {
        let request = &mut self.requests[key];
        request.remaining -= 1;
        if error.is_some() && request.error.is_none() {
            request.error = error;
        }
        if request.remaining > 0 {
            return;
        }
        let durable = request.durable;
        match request.error {
            // Payload and record were durable before anything was written in place.
            None if durable && self.jobs.journaling == Journaling::BeforeWrites => self.close(key, Ok(())),
            None if durable && !planted(Planted::AnswerBeforeFlush) => self.board.flush.want(key),
            None => self.close(key, Ok(())),
            Some(error) => self.close(key, Err(error)),
        }
    }

    /// Answers a request.
    #[inline]
    pub(super) fn close(&mut self, key: Key<Request>, result: Result<(), EngineError>) {
        let tag = self.requests[key].tag;
        self.requests.release(key);
        match result {
            Ok(()) => self.finish(Done { tag, result: Ok(()) }),
            Err(error) => self.finish_failed(tag, error),
        }
    }

    #[cold]
    fn finish_failed(&mut self, tag: u64, error: EngineError) {
        self.finish(Done { tag, result: Err(error) });
    }

    /// Whether a request has waited for room for longer than clients are to wait.
    pub(super) fn is_late(&self, key: Key<Request>) -> bool {
        self.requests[key].since_ns <= self.now_ns.saturating_sub(self.options.room_wait_ns)
    }

    /// Refuses those of some requests that have waited for room for too long.
    pub(super) fn refuse_late(&mut self, list: &mut Vec<Key<Request>>, error: EngineError) {
        list.retain(|&request| {
            let is_late = self.is_late(request);
            if is_late {
                self.close(request, Err(error));
            }
            !is_late
        });
    }

    /// Opens a request for maintenance work.
    pub(super) fn open_control(&mut self, tag: u64) -> Key<Request> {
        self.open(tag, 1, false)
    }
}
