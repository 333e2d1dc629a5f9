//! Requests whose bytes lie in memory that the client shares: one after the other is cut into pieces, as
//! there is room for them.

use crate::desk::{ConnectionId, Context, Piece, Refusal, Request};
use crate::{Command, VolumeError, VolumeRequest};
use block::slab::Key;

/// A request that is being cut into pieces.
#[derive(Clone, Copy)]
struct Current {
    request: Key<Request>,
    next_bytes: u64,
    left_bytes: u32,
}

/// Whether there is room for more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Left,
    None,
}

/// Where a copy goes, as seen from the volume.
#[derive(Clone, Copy)]
pub(crate) enum Direction {
    In,
    Out,
}

/// What comes next.
pub(crate) enum Next {
    /// A piece with its slots: what is written is to be copied there, and then it is to be
    /// [started](Cutter::start).
    Piece(Key<Piece>),
    /// There is no room for one now.
    NoRoom,
    /// Nothing of this request is begun any more, since a piece of it has failed.
    Failed(Key<Request>),
}

/// See the module's documentation.
pub(crate) struct Cutter {
    id: ConnectionId,
    current: Option<Current>,
    slots_held: usize,
}

impl Cutter {
    /// Of this client, which has asked for nothing yet.
    pub fn new(id: ConnectionId) -> Self {
        Self { id, current: None, slots_held: 0 }
    }

    /// Begins with a read or write of this range, which is not empty.
    pub fn begin(&mut self, request: Key<Request>, (next_bytes, left_bytes): (u64, u32)) {
        debug_assert!(self.is_idle(), "one after the other");
        self.current = Some(Current { request, next_bytes, left_bytes });
    }

    /// Whether all that was begun is with the volume.
    pub fn is_idle(&self) -> bool {
        self.current.is_none()
    }

    /// Makes the next piece, if there are slots for it; `None` if there is no request.
    pub fn next(&mut self, cx: &mut Context<'_>) -> Option<Next> {
        let Current { request, next_bytes, left_bytes } = self.current?;
        if cx.desk.requests[request].error.is_some() {
            cx.desk.leave_queue(self.id);
            cx.desk.requests[request].all_started = true;
            self.current = None;
            return Some(Next::Failed(request));
        }
        let range = (next_bytes, cx.desk.piece_length(next_bytes, left_bytes));
        Some(match cx.desk.open_piece(cx.volume, request, &mut self.slots_held, range) {
            Ok(piece) => Next::Piece(piece),
            Err(Refusal::Queue) => Next::NoRoom,
            Err(Refusal::Share) => {
                cx.desk.leave_queue(self.id);
                Next::NoRoom
            }
        })
    }

    /// Hands the piece that was made last to the volume.
    pub fn start(&mut self, piece: Key<Piece>, cx: &mut Context<'_>) {
        let Piece { request, offset_bytes, length_bytes, .. } = cx.desk.pieces[piece];
        let left_bytes = self.current.map_or(0, |current| current.left_bytes) - length_bytes;
        let next_bytes = offset_bytes + u64::from(length_bytes);
        self.current = (left_bytes > 0).then_some(Current { request, next_bytes, left_bytes });
        let entry = &mut cx.desk.requests[request];
        entry.all_started = left_bytes == 0;
        let (length_bytes, durability) = (length_bytes.into(), entry.durability);
        let what = match entry.command {
            Some(Command::Write) => VolumeRequest::Write { offset_bytes, length_bytes, durability },
            _ => VolumeRequest::Read { offset_bytes, length_bytes },
        };
        cx.desk.start(cx.volume, piece, what);
    }

    /// Forgets a piece that the volume has finished or never got.
    pub fn drop_piece(&mut self, piece: Key<Piece>, cx: &mut Context<'_>) {
        cx.desk.drop_piece(cx.volume, piece, &mut self.slots_held);
    }

    /// Gives up what the volume has not got.
    pub fn abandon(&mut self, cx: &mut Context<'_>) {
        cx.desk.leave_queue(self.id);
        if let Some(Current { request, .. }) = self.current.take() {
            let entry = &mut cx.desk.requests[request];
            (entry.error, entry.all_started) = (Some(VolumeError::Shutdown), true);
            if entry.pieces_open == 0 {
                cx.desk.close_request(request);
            }
        }
    }
}
