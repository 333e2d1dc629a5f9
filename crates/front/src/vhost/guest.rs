//! A client: takes requests out of its rings and puts the answers back.

use super::chain::Transfer;
use super::channel::{self, Channel, HEAD_BYTES};
use super::device::Device;
use super::violation::Violation;
use super::wire::{self, kind, narrow, status, wide};
use crate::command::Command;
use crate::cutter::{Cutter, Direction, Next, Room};
use crate::desk::{ConnectionId, Context, Piece, Request};
use crate::export::Export;
use crate::session::{Fault, spans};
use crate::{Punch, VolumeError, VolumeRequest};
use block::Durability;
use block::slab::{Key, Slab};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use vhost::vhost_user::{BackendReqHandler, Error};
use virtio_queue::{QueueOwnedT, QueueT};

/// Longest rest that the library takes.
const MESSAGE_REST_BYTES_MAX: u64 = 4096;
/// Messages that are looked at in one turn.
const MESSAGES_PER_TURN: usize = 32;

/// See the module's documentation.
pub(crate) struct Guest {
    id: ConnectionId,
    handler: BackendReqHandler<Mutex<Device>>,
    /// The handler's: what is `device` otherwise is in here while it works.
    lent: Arc<Mutex<Device>>,
    device: Device,
    channel: Channel,
    /// Of the volume, as its configuration says.
    size_bytes: u64,
    transfers: Slab<Transfer>,
    /// Taken out of rings, not begun.
    asked: VecDeque<Key<Transfer>>,
    cutter: Cutter,
    /// Requests that were taken out of rings and are not answered.
    open: usize,
    /// There was something in a ring when it was looked at last.
    took: bool,
    /// As many requests are open as may be: what is in the rings stays there until one ends.
    is_full: bool,
    /// A message waits until no request is open.
    message_waits: bool,
    /// Part of a message is there.
    hears_half: bool,
    has_spoken: bool,
    gone: bool,
    stopping: bool,
    violation: Option<Violation>,
}

impl Guest {
    /// A client on a socket that was accepted; what it rings by is watched there, under that name.
    pub fn new(
        id: ConnectionId,
        socket: &OwnedFd,
        export: &Export,
        epoll: Arc<OwnedFd>,
        token: u64,
    ) -> io::Result<Self> {
        let lent = Arc::new(Mutex::new(Device::default()));
        let stream = UnixStream::from(socket.try_clone()?);
        Ok(Self {
            id,
            handler: BackendReqHandler::from_stream(stream, Arc::clone(&lent)),
            lent,
            device: Device::new(export, epoll, token),
            channel: Channel::default(),
            size_bytes: export.size_bytes,
            transfers: Slab::default(),
            asked: VecDeque::new(),
            cutter: Cutter::new(id),
            open: 0,
            took: false,
            is_full: false,
            message_waits: false,
            hears_half: false,
            has_spoken: false,
            gone: false,
            stopping: false,
            violation: None,
        })
    }

    /// Its socket has something: a message, unless requests are open, or its end.
    pub fn hear(&mut self, socket: &OwnedFd, cx: &mut Context<'_>) -> Result<(), Fault> {
        self.notice_size(cx);
        self.message_waits = false;
        for _ in 0..MESSAGES_PER_TURN {
            let Some(head) = self.message(socket)? else { return Ok(()) };
            if self.open > 0 {
                self.message_waits = true;
                return Ok(());
            }
            if Channel::is_told(&head) && channel::rest_bytes(&head) <= MESSAGE_REST_BYTES_MAX {
                self.has_spoken = true;
                let taken = self.channel.take(socket, &head);
                taken.map_err(|error| Fault::of_protocol(Violation::Message(error.to_string())))?;
            } else {
                self.handle_message(socket)?;
            }
        }
        Ok(())
    }

    /// The head of a message that is there as a whole. The library waits for the rest of one without end.
    fn message(&mut self, socket: &OwnedFd) -> Result<Option<[u8; HEAD_BYTES]>, Fault> {
        self.hears_half = false;
        let mut head = [0; HEAD_BYTES];
        let here = rustix::io::ioctl_fionread(socket).map_err(|error| Fault::Socket(error.into()))?;
        let length = match rustix::net::recv(socket, &mut head, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, 0)) => {
                self.gone = true;
                return Ok(None);
            }
            Ok((_, length)) => length,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            // What a client leaves behind unread when it goes.
            Err(Errno::CONNRESET) => {
                self.gone = true;
                return Ok(None);
            }
            Err(error) => return Err(Fault::Socket(error.into())),
        };
        if length < HEAD_BYTES {
            // Nobody sees beyond a piece that comes with descriptors before that is taken.
            if here >= wide(HEAD_BYTES) {
                let why = "its descriptors came with a part of its head, expected with all of it";
                return Err(Fault::of_protocol(Violation::Message(why.to_owned())));
            }
            self.hears_half = true;
            return Ok(None);
        }
        let rest = channel::rest_bytes(&head);
        // More may have come since.
        let here = rustix::io::ioctl_fionread(socket).map_err(|error| Fault::Socket(error.into()))?;
        // One that is too long is refused by its head.
        let is_whole = rest > MESSAGE_REST_BYTES_MAX || here >= wide(HEAD_BYTES) + rest;
        self.hears_half = !is_whole;
        Ok(is_whole.then_some(head))
    }

    fn handle_message(&mut self, socket: &OwnedFd) -> Result<(), Fault> {
        let mut writable = [PollFd::new(socket, PollFlags::OUT)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ready = poll(&mut writable, Some(&now)).map_err(|error| Fault::Socket(error.into()))?;
        if ready == 0 {
            return Err(Fault::of_protocol(Violation::Deaf));
        }
        self.has_spoken = true;
        self.swap_device();
        let handled = self.handler.handle_request();
        self.swap_device();
        match handled {
            Ok(()) => Ok(()),
            Err(Error::Disconnected) => {
                self.gone = true;
                Ok(())
            }
            Err(error) => {
                let why = self.device.complaint.take().unwrap_or_else(|| error.to_string());
                Err(Fault::of_protocol(Violation::Message(why)))
            }
        }
    }

    fn swap_device(&mut self) {
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *lent, &mut self.device);
    }

    /// Takes requests out of the rings and begins them, as far as there is room; looks at messages that
    /// waited.
    pub fn pump(&mut self, socket: &OwnedFd, cx: &mut Context<'_>) -> Result<(), Fault> {
        if let Some(violation) = self.violation.take() {
            return Err(Fault::of_protocol(violation));
        }
        self.notice_size(cx);
        if self.carry_on(cx).map_err(Fault::of_protocol)? == Room::None {
            self.pass_over_rings();
            return Ok(());
        }
        if self.message_waits && self.open == 0 {
            self.hear(socket, cx)?;
        }
        if self.message_waits {
            self.pass_over_rings();
            return Ok(());
        }
        if self.stopping {
            return Ok(());
        }
        for index in 0..self.device.running.len() {
            let ring = self.device.running[index];
            self.take(ring, cx).and_then(|()| self.carry_on(cx)).map_err(Fault::of_protocol)?;
        }
        Ok(())
    }

    /// The rings are not looked into now, although the client may have told of something: so they are before
    /// this thread sleeps.
    fn pass_over_rings(&mut self) {
        let Device { rings, running, .. } = &mut self.device;
        running.iter().for_each(|&index| rings[index].armed = false);
    }

    /// The volume may have become larger.
    fn notice_size(&mut self, cx: &mut Context<'_>) {
        let size_bytes = cx.volume.size_bytes();
        if size_bytes != self.size_bytes {
            self.size_bytes = size_bytes;
            self.device.resize(&Export { size_bytes, ..cx.desk.export.clone() });
            self.channel.tell_change();
        }
    }

    /// Takes what is in a ring.
    fn take(&mut self, index: usize, cx: &mut Context<'_>) -> Result<(), Violation> {
        let room = cx.desk.limits.requests_in_flight_max.saturating_sub(self.open);
        let Device { memory, rings, .. } = &mut self.device;
        let (map, ring) = (memory.map(), &mut rings[index]);
        self.is_full = room == 0;
        if self.is_full {
            ring.armed = false; // what is in it stays there
            return Ok(());
        }
        let cannot =
            |error: virtio_queue::Error| Violation::Available { ring: index, why: error.to_string() };
        let before = self.open;
        for chain in ring.queue.iter(map).map_err(cannot)?.take(room) {
            let key = self.transfers.reuse(Transfer::default);
            self.transfers[key].take(index, chain, map)?;
            self.asked.push_back(key);
            self.open += 1;
        }
        if self.open > before {
            self.took = true;
            if std::mem::take(&mut ring.armed) {
                ring.queue.disable_notification(map).map_err(cannot)?;
            }
        }
        Ok(())
    }

    /// Goes on with the request that had no room, then with those behind it.
    fn carry_on(&mut self, cx: &mut Context<'_>) -> Result<Room, Violation> {
        loop {
            while let Some(next) = self.cutter.next(cx) {
                if self.go_on(next, cx)? == Room::None {
                    return Ok(Room::None);
                }
            }
            let Some(key) = self.asked.pop_front() else { return Ok(Room::Left) };
            self.begin(key, cx)?;
        }
    }

    /// Looks at what a request asks for, and begins it or answers it.
    fn begin(&mut self, key: Key<Transfer>, cx: &mut Context<'_>) -> Result<(), Violation> {
        let (what, sector) = wire::header(self.transfers[key].header);
        match what {
            kind::READ => self.begin_transfer(key, Command::Read, sector, cx),
            kind::WRITE => self.begin_transfer(key, Command::Write, sector, cx),
            kind::FLUSH => {
                let request = self.open_request(key, Command::Flush, (0, 0), cx);
                self.start(request, VolumeRequest::Flush, cx);
                cx.desk.requests[request].all_started = true;
                Ok(())
            }
            kind::DISCARD => self.begin_ranges(key, Command::Discard, cx),
            kind::WRITE_ZEROES => self.begin_ranges(key, Command::WriteZeroes, cx),
            kind::GET_ID => {
                let transfer = &self.transfers[key];
                let id = cx.desk.export.serial;
                let length = usize::try_from(transfer.room_bytes()).unwrap_or(usize::MAX).min(id.len());
                transfer.copy_out(0, &id[..length], self.device.memory.map())?;
                self.answer(key, status::OK, u32::try_from(length).expect("an id is short"))
            }
            _ => self.answer(key, status::UNSUPPORTED, 0),
        }
    }

    fn refuse(&mut self, key: Key<Transfer>, status: u8, cx: &mut Context<'_>) -> Result<(), Violation> {
        cx.desk.counters.errors += 1;
        self.answer(key, status, 0)
    }

    fn begin_transfer(
        &mut self,
        key: Key<Transfer>,
        command: Command,
        sector: u64,
        cx: &mut Context<'_>,
    ) -> Result<(), Violation> {
        let transfer = &self.transfers[key];
        let writes = command == Command::Write;
        let length = if writes { transfer.payload_bytes() } else { transfer.room_bytes() };
        let is_allowed = length <= wire::REQUEST_BYTES_MAX && !(writes && cx.desk.export.read_only);
        let range = is_allowed.then(|| whole_range(self.size_bytes, sector, length)).flatten();
        let Some((next_bytes, left_bytes)) = range else {
            return self.refuse(key, status::IO_ERROR, cx);
        };
        if left_bytes == 0 {
            return self.answer(key, status::OK, 0);
        }
        let request = self.open_request(key, command, (next_bytes, left_bytes), cx);
        self.cutter.begin(request, (next_bytes, left_bytes));
        Ok(())
    }

    /// Discards or zeroes the ranges that the payload names.
    fn begin_ranges(
        &mut self,
        key: Key<Transfer>,
        command: Command,
        cx: &mut Context<'_>,
    ) -> Result<(), Violation> {
        let transfer = &self.transfers[key];
        let bytes = transfer.payload_bytes();
        let count = usize::try_from(bytes / wide(wire::RANGE_BYTES)).unwrap_or(usize::MAX);
        let is_whole =
            bytes.is_multiple_of(wide(wire::RANGE_BYTES)) && (1..=wire::RANGES_MAX).contains(&count);
        if !is_whole || cx.desk.export.read_only {
            return self.refuse(key, status::IO_ERROR, cx);
        }
        let mut ranges = [(0, 0, false); wire::RANGES_MAX];
        let mut total = 0u32;
        for (index, place) in ranges[..count].iter_mut().enumerate() {
            let mut range = [0; wire::RANGE_BYTES];
            transfer.copy_payload(wide(index * wire::RANGE_BYTES), &mut range, self.device.memory.map())?;
            let (sector, sectors, flags) = wire::range(range);
            let allowed = if command == Command::WriteZeroes { wire::UNMAP } else { 0 };
            if flags & !allowed != 0 {
                return self.refuse(key, status::UNSUPPORTED, cx);
            }
            let length = u64::from(sectors) * wire::SECTOR_BYTES;
            let Some((offset_bytes, length_bytes)) = whole_range(self.size_bytes, sector, length) else {
                return self.refuse(key, status::IO_ERROR, cx);
            };
            total = total.saturating_add(length_bytes);
            *place = (offset_bytes, u64::from(length_bytes), flags & wire::UNMAP != 0);
        }
        let request = self.open_request(key, command, (ranges[0].0, total), cx);
        let durability = cx.desk.requests[request].durability;
        for &(offset_bytes, length_bytes, may_unmap) in ranges[..count].iter().filter(|range| range.1 > 0) {
            let punch = if may_unmap { Punch::Allowed } else { Punch::Forbidden };
            let what = match command {
                Command::WriteZeroes => {
                    VolumeRequest::WriteZeroes { offset_bytes, length_bytes, punch, durability }
                }
                Command::Discard
                | Command::Read
                | Command::Write
                | Command::Flush
                | Command::Cache
                | Command::Extents => VolumeRequest::Discard { offset_bytes, length_bytes, durability },
            };
            self.start(request, what, cx);
        }
        cx.desk.requests[request].all_started = true;
        self.finish_if_complete(request, cx)
    }

    fn open_request(
        &mut self,
        key: Key<Transfer>,
        command: Command,
        range: (u64, u32),
        cx: &mut Context<'_>,
    ) -> Key<Request> {
        // A client that has no word for a flush takes every answer for a promise.
        let durability = if self.device.flushes() { Durability::Volatile } else { Durability::Durable };
        cx.desk.open_request(Request {
            connection: self.id,
            cookie: key.index().into(),
            command: Some(command),
            durability,
            offset_bytes: range.0,
            length_bytes: range.1,
            ..Request::default()
        })
    }

    /// Hands the volume what needs no slots.
    fn start(&mut self, request: Key<Request>, what: VolumeRequest, cx: &mut Context<'_>) {
        let piece = cx.desk.open_slotless_piece(request, (0, 0));
        cx.desk.start(cx.volume, piece, what);
    }

    /// Makes and starts the next piece of a read or write, if there are slots.
    fn go_on(&mut self, next: Next, cx: &mut Context<'_>) -> Result<Room, Violation> {
        match next {
            Next::NoRoom => return Ok(Room::None),
            Next::Failed(request) => self.finish_if_complete(request, cx)?,
            Next::Piece(piece) => {
                let request = cx.desk.requests[cx.desk.pieces[piece].request];
                let is_write = request.command == Some(Command::Write);
                let copied = if is_write { self.copy(piece, &request, Direction::In, cx) } else { Ok(()) };
                if let Err(violation) = copied {
                    self.cutter.drop_piece(piece, cx);
                    return Err(violation);
                }
                self.cutter.start(piece, cx);
            }
        }
        Ok(Room::Left)
    }

    /// Copies a piece between its slots and the client's memory.
    fn copy(
        &self,
        piece: Key<Piece>,
        request: &Request,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Result<(), Violation> {
        let transfer = &self.transfers[key_of(request)];
        let (chunk_bytes, map) = (cx.desk.chunk_bytes(), self.device.memory.map());
        let piece = &cx.desk.pieces[piece];
        let mut at = piece.offset_bytes - request.offset_bytes;
        let first = cx.desk.within_chunk(piece.offset_bytes);
        let pool = cx.volume.pool();
        for (slot, start, length) in spans(first, narrow(piece.length_bytes), chunk_bytes) {
            let bytes = &mut pool.bytes_mut(piece.slots[slot])[start..start + length];
            match direction {
                Direction::In => transfer.copy_payload(at, bytes, map)?,
                Direction::Out => transfer.copy_out(at, bytes, map)?,
            }
            at += wide(length);
        }
        Ok(())
    }

    /// The volume has finished a piece.
    pub fn piece_done(&mut self, tag: u64, result: Result<(), VolumeError>, cx: &mut Context<'_>) {
        let piece = cx.desk.arrived(tag, result.err());
        let index = cx.desk.pieces[piece].request;
        let request = cx.desk.requests[index];
        let has_data = request.command == Some(Command::Read) && request.error.is_none();
        let copied = if has_data { self.copy(piece, &request, Direction::Out, cx) } else { Ok(()) };
        self.cutter.drop_piece(piece, cx);
        let answered = self.finish_if_complete(index, cx);
        if let Err(violation) = copied.and(answered) {
            self.violation.get_or_insert(violation);
        }
    }

    fn finish_if_complete(&mut self, index: Key<Request>, cx: &mut Context<'_>) -> Result<(), Violation> {
        let request = cx.desk.requests[index];
        if request.pieces_open > 0 || !request.all_started {
            return Ok(());
        }
        let (status, written) = match (request.error, request.command) {
            (Some(_), _) => (status::IO_ERROR, 0),
            (None, Some(Command::Read)) => (status::OK, request.length_bytes),
            (None, _) => (status::OK, 0),
        };
        cx.desk.count(&request, request.error);
        cx.desk.close_request(index);
        self.answer(key_of(&request), status, written)
    }

    /// Puts an answer into the ring.
    fn answer(&mut self, key: Key<Transfer>, status: u8, written_bytes: u32) -> Result<(), Violation> {
        self.transfers.release(key);
        self.open -= 1;
        self.is_full = false;
        let Device { memory, rings, .. } = &mut self.device;
        let transfer = &self.transfers[key];
        transfer.put_status(status, memory.map())?;
        let ring = &mut rings[transfer.ring];
        ring.answered = true;
        let put = ring.queue.add_used(memory.map(), transfer.head, written_bytes + 1);
        put.map_err(|error| Violation::Used { ring: transfer.ring, why: error.to_string() })
    }

    /// Tells the client of answers, where it wants to be told.
    pub fn tell(&mut self) -> Result<(), Fault> {
        let Device { memory, rings, running, .. } = &mut self.device;
        for &index in running.iter() {
            let ring = &mut rings[index];
            if std::mem::take(&mut ring.answered) {
                let wanted = ring.queue.needs_notification(memory.map());
                let cannot = |error: virtio_queue::Error| {
                    Fault::of_protocol(Violation::Used { ring: index, why: error.to_string() })
                };
                if wanted.map_err(cannot)? {
                    ring.call();
                }
            }
        }
        Ok(())
    }

    /// The thread is about to sleep: whether it must not, because there is something in a ring or was a
    /// moment ago. From then on the client tells of new requests.
    pub fn stays_awake(&mut self) -> bool {
        // The last request ended in this turn: the message that waited for that can be looked at.
        let is_free = self.message_waits && self.open == 0 && self.cutter.is_idle();
        if std::mem::take(&mut self.took) || self.violation.is_some() || is_free {
            return true;
        }
        let waits = self.message_waits || !self.cutter.is_idle() || self.is_full;
        if self.stopping || waits {
            return false; // it goes on when something ends
        }
        let Device { memory, rings, running, .. } = &mut self.device;
        let mut stays = false;
        for &index in running.iter() {
            let ring = &mut rings[index];
            if std::mem::replace(&mut ring.armed, true) {
                continue;
            }
            match ring.queue.enable_notification(memory.map()) {
                Ok(more) => stays |= more,
                Err(error) => {
                    self.violation = Some(Violation::Available { ring: index, why: error.to_string() });
                    stays = true;
                }
            }
        }
        stays
    }

    /// Whether messages are to be looked at.
    pub fn listens(&self) -> bool {
        !self.message_waits
    }

    /// Whether only what comes is news: what is there of a message is not enough.
    pub fn hears_half(&self) -> bool {
        self.hears_half
    }

    /// Whether it has not said a word yet.
    pub fn in_handshake(&self) -> bool {
        !self.has_spoken
    }

    /// Whether it is gone, or everything is answered after a stop.
    pub fn is_finished(&self) -> bool {
        self.gone || self.stopping && self.open == 0
    }

    /// It has closed its end.
    pub fn hang_up(&mut self) {
        self.gone = true;
    }

    /// Takes no more requests.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Gives up what the volume has not got.
    pub fn abandon(&mut self, cx: &mut Context<'_>) {
        self.asked.clear();
        self.cutter.abandon(cx);
    }
}

fn key_of(request: &Request) -> Key<Transfer> {
    Key::from_index(u32::try_from(request.cookie).expect("cookies are keys here"))
}

/// A range of whole sectors within a volume of that size, in bytes.
fn whole_range(size_bytes: u64, sector: u64, length_bytes: u64) -> Option<(u64, u32)> {
    let offset_bytes = sector.checked_mul(wire::SECTOR_BYTES)?;
    let end = offset_bytes.checked_add(length_bytes)?;
    let is_whole = length_bytes.is_multiple_of(wire::SECTOR_BYTES) && end <= size_bytes;
    is_whole.then(|| Some((offset_bytes, u32::try_from(length_bytes).ok()?))).flatten()
}
