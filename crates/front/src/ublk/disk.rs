//! A queue of a device as a client of the reactor.

use super::{Served, Violation};
use crate::command::Command;
use crate::cutter::{Cutter, Direction, Next, Room};
use crate::desk::{ConnectionId, Context, Piece, Request};
use crate::session::{Fault, spans};
use crate::{Punch, VolumeError, VolumeRequest};
use block::slab::Key;
use block::{Durability, Parts};
use device::ublk::{Ask, Event, Operation, Queue, SECTOR_BYTES};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};

/// Parts of a piece that are copied at once.
const COPY_SLICES: usize = 32;

/// See the module's documentation.
pub(crate) struct Disk {
    id: ConnectionId,
    queue: Queue,
    /// What a request that says nothing of it is promised.
    durability: Durability,
    /// Taken in, not begun.
    asked: VecDeque<(u16, Ask)>,
    cutter: Cutter,
    /// Requests that were begun and are not answered.
    open: usize,
    /// Places that the kernel will not use any more.
    over: u16,
    stopping: bool,
}

impl Disk {
    /// A disk that asks the kernel for requests; from now on all is done on this thread.
    pub fn begin(id: ConnectionId, served: Served) -> Result<Self, Violation> {
        let Served { mut queue, cache } = served;
        let index = queue.index();
        queue.fetch_all().map_err(|source| Violation::Deaf { queue: index, source })?;
        Ok(Self {
            id,
            queue,
            durability: cache.durability(),
            asked: VecDeque::new(),
            cutter: Cutter::new(id),
            open: 0,
            over: 0,
            stopping: false,
        })
    }

    /// Takes in what the kernel has, and begins it as far as there is room.
    pub fn pump(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        while let Some(event) = self.queue.next_event() {
            match event {
                Event::Asked(tag, ask) => self.asked.push_back((tag, ask)),
                Event::Over(_) => self.over += 1,
                Event::Refused(tag, source) => {
                    let queue = self.queue.index();
                    return Err(Fault::of_protocol(Violation::Refused { queue, tag, source }));
                }
            }
        }
        self.carry_on(cx);
        Ok(())
    }

    /// Goes on with the request that had no room, then with those behind it.
    fn carry_on(&mut self, cx: &mut Context<'_>) -> Room {
        loop {
            while let Some(next) = self.cutter.next(cx) {
                if self.go_on(next, cx) == Room::None {
                    return Room::None;
                }
            }
            if self.stopping {
                return Room::Left;
            }
            let Some((tag, ask)) = self.asked.pop_front() else { return Room::Left };
            self.begin_request(tag, ask, cx);
        }
    }

    /// Looks at what a request asks for, and begins it or answers it.
    fn begin_request(&mut self, tag: u16, ask: Ask, cx: &mut Context<'_>) {
        let command = match ask.operation {
            Operation::Read => Command::Read,
            Operation::Write => Command::Write,
            Operation::Flush => Command::Flush,
            Operation::Discard => Command::Discard,
            Operation::WriteZeroes => Command::WriteZeroes,
            Operation::Unknown(_) => return self.refuse(tag, Errno::OPNOTSUPP, cx),
        };
        let range = if command == Command::Flush { Some((0, 0)) } else { whole_range(&ask, cx) };
        let Some((offset_bytes, length_bytes)) = range else { return self.refuse(tag, Errno::IO, cx) };
        if cx.desk.export.read_only && !matches!(command, Command::Read | Command::Flush) {
            return self.refuse(tag, Errno::ROFS, cx);
        }
        let durability = if ask.durable { Durability::Durable } else { self.durability };
        self.open += 1;
        let request = cx.desk.open_request(Request {
            connection: self.id,
            cookie: tag.into(),
            command: Some(command),
            durability,
            offset_bytes,
            length_bytes,
            ..Request::default()
        });
        let (start, length) = (offset_bytes, u64::from(length_bytes));
        let punch = if ask.keep_space { Punch::Forbidden } else { Punch::Allowed };
        let what = match command {
            Command::Flush => VolumeRequest::Flush,
            Command::Discard => {
                VolumeRequest::Discard { offset_bytes: start, length_bytes: length, durability }
            }
            Command::WriteZeroes => {
                VolumeRequest::WriteZeroes { offset_bytes: start, length_bytes: length, punch, durability }
            }
            Command::Read | Command::Write | Command::Cache | Command::Extents => {
                self.cutter.begin(request, (start, length_bytes));
                return;
            }
        };
        let piece = cx.desk.open_slotless_piece(request, (0, 0));
        cx.desk.start(cx.volume, piece, what);
        cx.desk.requests[request].all_started = true;
    }

    fn refuse(&mut self, tag: u16, why: Errno, cx: &mut Context<'_>) {
        cx.desk.counters.errors += 1;
        self.queue.answer(tag, -why.raw_os_error());
    }

    /// Makes and starts the next piece of a read or write, if there are slots.
    fn go_on(&mut self, next: Next, cx: &mut Context<'_>) -> Room {
        match next {
            Next::NoRoom => return Room::None,
            Next::Failed(request) => self.finish_if_complete(request, cx),
            Next::Piece(piece) => {
                let index = cx.desk.pieces[piece].request;
                let request = cx.desk.requests[index];
                let is_write = request.command == Some(Command::Write);
                if is_write && self.copy(piece, &request, Direction::In, cx).is_err() {
                    self.cutter.drop_piece(piece, cx);
                    cx.desk.requests[index].error = Some(VolumeError::Io);
                    return Room::Left;
                }
                self.cutter.start(piece, cx);
            }
        }
        Room::Left
    }

    /// Copies a piece between its slots and the kernel's pages.
    fn copy(
        &self,
        piece: Key<Piece>,
        request: &Request,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> io::Result<()> {
        let chunk_bytes = cx.desk.chunk_bytes();
        let piece = &cx.desk.pieces[piece];
        let first = cx.desk.within_chunk(piece.offset_bytes);
        let length = usize::try_from(piece.length_bytes).expect("memory has 32 bits at least");
        let mut at =
            u32::try_from(piece.offset_bytes - request.offset_bytes).expect("it lies in the request");
        let (mut start, mut left) = (first, length);
        while left > 0 {
            let parts = spans(start, left, chunk_bytes)
                .map(|(slot, from, length)| (piece.slots[slot], from..from + length));
            let Parts { pieces, used, bytes } = cx.volume.pool().parts_mut::<COPY_SLICES>(parts);
            let tag = key_of(request);
            match direction {
                Direction::In => self.queue.take(tag, at, &mut pieces.map(IoSliceMut::new)[..used])?,
                Direction::Out => {
                    self.queue.give(tag, at, &pieces.map(|piece| IoSlice::new(piece))[..used])?
                }
            }
            (start, left) = (start + bytes, left - bytes);
            at += u32::try_from(bytes).expect("requests are shorter than 4 GiB");
        }
        Ok(())
    }

    /// The volume has finished a piece.
    pub fn piece_done(&mut self, tag: u64, result: Result<(), VolumeError>, cx: &mut Context<'_>) {
        let piece = cx.desk.arrived(tag, result.err());
        let index = cx.desk.pieces[piece].request;
        let request = cx.desk.requests[index];
        let has_data = request.command == Some(Command::Read) && request.error.is_none();
        if has_data && self.copy(piece, &request, Direction::Out, cx).is_err() {
            cx.desk.requests[index].error = Some(VolumeError::Io);
        }
        self.cutter.drop_piece(piece, cx);
        self.finish_if_complete(index, cx);
    }

    fn finish_if_complete(&mut self, index: Key<Request>, cx: &mut Context<'_>) {
        let request = cx.desk.requests[index];
        if request.pieces_open > 0 || !request.all_started {
            return;
        }
        let moved = matches!(request.command, Some(Command::Read | Command::Write));
        let result = match request.error {
            Some(error) => -errno_of(error).raw_os_error(),
            None if moved => i32::try_from(request.length_bytes).expect("transfers are shorter than 2 GiB"),
            None => 0,
        };
        cx.desk.count(&request, request.error);
        cx.desk.close_request(index);
        self.open -= 1;
        self.queue.answer(key_of(&request), result);
    }

    /// Tells the kernel of answers.
    pub fn tell(&mut self) -> Result<(), Fault> {
        let queue = self.queue.index();
        self.queue.submit().map_err(|source| Fault::of_protocol(Violation::Deaf { queue, source }))
    }

    /// The thread is about to sleep: whether it must not, because the kernel has not taken in all answers.
    pub fn stays_awake(&self) -> bool {
        self.queue.has_news()
    }

    /// Whether the device is gone, or everything that was begun is answered after a stop.
    pub fn is_finished(&self) -> bool {
        let is_told = self.open == 0 && !self.queue.has_news();
        is_told && (self.stopping || self.over == self.queue.depth())
    }

    /// Begins no more requests: they stay with the kernel.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Gives up what the volume has not got.
    pub fn abandon(&mut self, cx: &mut Context<'_>) {
        self.asked.clear();
        self.cutter.abandon(cx);
    }
}

/// The place of a request.
fn key_of(request: &Request) -> u16 {
    u16::try_from(request.cookie).expect("cookies are places here")
}

fn errno_of(error: VolumeError) -> Errno {
    match error {
        VolumeError::Io | VolumeError::Shutdown => Errno::IO,
        VolumeError::NoSpace => Errno::NOSPC,
        VolumeError::ReadOnly => Errno::ROFS,
    }
}

/// What a request is about, in bytes, if it lies in the volume and is not empty.
fn whole_range(ask: &Ask, cx: &Context<'_>) -> Option<(u64, u32)> {
    let offset_bytes = ask.sector.checked_mul(SECTOR_BYTES)?;
    let length_bytes = u64::from(ask.sectors) * SECTOR_BYTES;
    let end = offset_bytes.checked_add(length_bytes)?;
    let is_within = length_bytes > 0 && end <= cx.desk.export.size_bytes;
    is_within.then(|| Some((offset_bytes, u32::try_from(length_bytes).ok()?))).flatten()
}
