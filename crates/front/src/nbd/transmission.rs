//! The transmission phase: checks requests, cuts them into pieces, answers them.

use super::connection::{AfterDrain, Connection, Phase, Step, Violation, errno_of};
use super::wire::{self, Errno, RequestHeader, chunk, command_flag};
use crate::desk::{Context, Piece, Refusal, ReplyStyle, Request};
use crate::session::{Session as _, Wants, spans};
use crate::{Command, Punch, VolumeRequest};
use block::Durability;
use block::slab::Key;

type Range = (u64, u32);

/// Chunks that are looked at for one answer about extents: a millisecond or so, in which no other client is
/// served.
const EXTENT_CHUNKS_MAX: u64 = 1 << 16;

impl Connection {
    pub(super) fn step_header(&mut self, input: &[u8], cx: &mut Context<'_>) -> Result<Step, Violation> {
        if self.stopping {
            self.phase = Phase::Finishing;
            return Ok(Step::Stop(Wants::Nothing));
        }
        if self.requests_open >= cx.desk.limits.requests_in_flight_max {
            return Ok(Step::Stop(Wants::Room));
        }
        let Some(header) = wire::request_header(input)? else { return Ok(Step::Stop(Wants::Bytes)) };
        let command = wire::Command::from_code(header.code);
        if command == Some(wire::Command::BlockStatus) && self.looked_in == Some(cx.desk.turn) {
            return Ok(Step::Stop(Wants::Turn));
        }
        match command
            .ok_or(Errno::Inval)
            .and_then(|command| self.check(command, &header, cx).map(|()| command))
        {
            Ok(command) => self.accept(command, &header, cx),
            Err(error) => self.reject(command, &header, error, cx),
        }
        Ok(Step::Used(wire::REQUEST_HEADER_BYTES))
    }

    /// Whether a request makes sense (`doc/proto.md`, "Request types" and "Error values").
    fn check(&self, command: wire::Command, header: &RequestHeader, cx: &Context<'_>) -> Result<(), Errno> {
        let export = &cx.desk.export;
        let (changes, has_range) = match command {
            wire::Command::Disconnect => return Ok(()),
            wire::Command::Flush => (false, false),
            wire::Command::Write | wire::Command::Trim | wire::Command::WriteZeroes => (true, true),
            wire::Command::Read | wire::Command::Cache | wire::Command::BlockStatus => (false, true),
        };
        if header.flags & !command.flags_allowed() != 0 {
            return Err(Errno::Inval);
        }
        if !has_range {
            return if header.offset_bytes == 0 && header.length_bytes == 0 {
                Ok(())
            } else {
                Err(Errno::Inval)
            };
        }
        if changes && export.read_only {
            return Err(Errno::Perm);
        }
        let sector = u64::from(wire::BLOCK_BYTES_MIN);
        let length = u64::from(header.length_bytes);
        if !header.offset_bytes.is_multiple_of(sector) || !length.is_multiple_of(sector) {
            return Err(Errno::Inval);
        }
        if header.offset_bytes.checked_add(length).is_none_or(|end| end > export.size_bytes) {
            let stores = matches!(command, wire::Command::Write | wire::Command::WriteZeroes);
            return Err(if stores { Errno::NoSpc } else { Errno::Inval });
        }
        let refused = match command {
            wire::Command::Read => {
                header.length_bytes > wire::REQUEST_BYTES_MAX
                    || header.flags & command_flag::DF != 0 && !self.structured_replies
            }
            wire::Command::Write => header.length_bytes > wire::REQUEST_BYTES_MAX,
            wire::Command::BlockStatus => !self.block_status || header.length_bytes == 0,
            wire::Command::Disconnect
            | wire::Command::Flush
            | wire::Command::Trim
            | wire::Command::Cache
            | wire::Command::WriteZeroes => false,
        };
        if refused { Err(Errno::Inval) } else { Ok(()) }
    }

    fn reject(
        &mut self,
        command: Option<wire::Command>,
        header: &RequestHeader,
        error: Errno,
        cx: &mut Context<'_>,
    ) {
        cx.desk.counters.errors += 1;
        let cookie = header.cookie;
        if command == Some(wire::Command::Write) && header.length_bytes > 0 {
            let then = AfterDrain::Reject { cookie, error };
            self.phase = Phase::Drain { left_bytes: header.length_bytes, then };
        } else {
            self.answer_plainly(command.and_then(wire::Command::asks), cookie, Some(error));
        }
    }

    /// An answer without data. With structured replies, reads and block status must not get simple ones.
    fn answer_plainly(&mut self, command: Option<Command>, cookie: u64, error: Option<Errno>) {
        let chunked = matches!(command, Some(Command::Read | Command::Extents));
        self.output.put(|out| {
            if chunked && self.structured_replies {
                wire::put_last_chunk(out, cookie, error);
            } else {
                wire::put_simple_reply(out, cookie, error);
            }
        });
    }

    fn accept(&mut self, command: wire::Command, header: &RequestHeader, cx: &mut Context<'_>) {
        let (offset_bytes, length_bytes) = (header.offset_bytes, header.length_bytes);
        let Some(command) = command.asks() else {
            self.phase = Phase::Finishing;
            return;
        };
        let durability = durability(header.flags);
        let request = Request {
            connection: self.id,
            cookie: header.cookie,
            command: Some(command),
            durability,
            offset_bytes,
            length_bytes,
            ..Request::default()
        };
        if length_bytes == 0 && command != Command::Flush {
            cx.desk.count(&request, None);
            return self.answer_plainly(Some(command), header.cookie, None);
        }
        if command == Command::Extents {
            let one_is_enough = header.flags & command_flag::REQ_ONE != 0;
            return self.extents(&request, if one_is_enough { 1 } else { wire::EXTENT_COUNT_MAX }, cx);
        }
        let index = cx.desk.open_request(request);
        self.requests_open += 1;
        let (next_bytes, left_bytes) = (offset_bytes, length_bytes);
        let length_bytes = u64::from(length_bytes);
        let what = match command {
            Command::Write => {
                self.phase = Phase::NextPayload { request: index, next_bytes, left_bytes };
                return;
            }
            Command::Read => return self.accept_read(index, header, cx),
            Command::Flush => VolumeRequest::Flush,
            Command::Discard => VolumeRequest::Discard { offset_bytes, length_bytes, durability },
            Command::WriteZeroes => {
                let keep = header.flags & command_flag::NO_HOLE != 0;
                let punch = if keep { Punch::Forbidden } else { Punch::Allowed };
                VolumeRequest::WriteZeroes { offset_bytes, length_bytes, punch, durability }
            }
            // Extents were dealt with above.
            Command::Cache | Command::Extents => VolumeRequest::Cache { offset_bytes, length_bytes },
        };
        let piece = cx.desk.open_slotless_piece(index, (0, 0));
        cx.desk.requests[index].all_started = true;
        cx.desk.start(cx.volume, piece, what);
    }

    fn accept_read(&mut self, request: Key<Request>, header: &RequestHeader, cx: &mut Context<'_>) {
        let (next_bytes, left_bytes) = (header.offset_bytes, header.length_bytes);
        let in_one_piece = cx.desk.piece_length(next_bytes, left_bytes) == left_bytes;
        let style = match (self.structured_replies, header.flags & command_flag::DF != 0) {
            (false, _) => ReplyStyle::Simple,
            (true, false) => ReplyStyle::Chunks,
            (true, true) => ReplyStyle::OneChunk,
        };
        cx.desk.requests[request].style = style;
        self.phase = if in_one_piece || style == ReplyStyle::Chunks {
            Phase::Read { request, next_bytes, left_bytes }
        } else {
            Phase::SerialRead { request, next_bytes, left_bytes }
        };
    }

    /// Makes the next piece of a request, if there are slots.
    fn open_piece(
        &mut self,
        request: Key<Request>,
        range: Range,
        cx: &mut Context<'_>,
    ) -> Result<(Key<Piece>, u32), Step> {
        let length_bytes = cx.desk.piece_length(range.0, range.1);
        match cx.desk.open_piece(cx.volume, request, &mut self.slots_held, (range.0, length_bytes)) {
            Ok(piece) => Ok((piece, length_bytes)),
            Err(Refusal::Queue) => Err(Step::Stop(Wants::Slots)),
            Err(Refusal::Share) => Err(Step::Stop(Wants::Room)),
        }
    }

    pub(super) fn step_read(&mut self, request: Key<Request>, range: Range, cx: &mut Context<'_>) -> Step {
        let (piece, length_bytes) = match self.open_piece(request, range, cx) {
            Ok(opened) => opened,
            Err(step) => return step,
        };
        let (next_bytes, left_bytes) = (range.0 + u64::from(length_bytes), range.1 - length_bytes);
        cx.desk.requests[request].all_started = left_bytes == 0;
        self.phase =
            if left_bytes == 0 { Phase::Header } else { Phase::Read { request, next_bytes, left_bytes } };
        let what = VolumeRequest::Read { offset_bytes: range.0, length_bytes: length_bytes.into() };
        cx.desk.start(cx.volume, piece, what);
        Step::Used(0)
    }

    pub(super) fn step_serial_read(
        &mut self,
        request: Key<Request>,
        range: Range,
        cx: &mut Context<'_>,
    ) -> Step {
        if self.requests_open > 1 || cx.desk.requests[request].pieces_open > 0 {
            return Step::Stop(Wants::Room); // alone, so that no other answer gets into the middle of this one
        }
        let (piece, length_bytes) = match self.open_piece(request, range, cx) {
            Ok(opened) => opened,
            Err(step) => return step,
        };
        let (next_bytes, left_bytes) = (range.0 + u64::from(length_bytes), range.1 - length_bytes);
        cx.desk.requests[request].all_started = left_bytes == 0;
        self.phase = Phase::SerialRead { request, next_bytes, left_bytes };
        let what = VolumeRequest::Read { offset_bytes: range.0, length_bytes: length_bytes.into() };
        cx.desk.start(cx.volume, piece, what);
        Step::Used(0)
    }

    pub(super) fn step_next_payload(
        &mut self,
        request: Key<Request>,
        range: Range,
        cx: &mut Context<'_>,
    ) -> Step {
        if cx.desk.requests[request].error.is_some() {
            let then = AfterDrain::Finish { request };
            self.phase = Phase::Drain { left_bytes: range.1, then };
            return Step::Used(0);
        }
        match self.open_piece(request, range, cx) {
            Ok((piece, length_bytes)) => {
                let left_bytes = range.1 - length_bytes;
                self.phase = Phase::Payload { request, piece, received_bytes: 0, left_bytes };
                Step::Used(0)
            }
            Err(step) => step,
        }
    }

    pub(super) fn step_payload(&mut self, input: &[u8], cx: &mut Context<'_>) -> Step {
        let Some(target) = self.payload_target(cx.desk) else { return Step::Used(0) };
        let count = target.length_bytes.min(input.len());
        if count == 0 {
            return Step::Stop(Wants::Bytes);
        }
        let pool = cx.volume.pool();
        let mut rest = &input[..count];
        for (index, start, length) in spans(target.start_bytes, count, cx.desk.chunk_bytes()) {
            let (part, tail) = rest.split_at(length);
            pool.bytes_mut(target.slots[index])[start..start + length].copy_from_slice(part);
            rest = tail;
        }
        self.payload_received(count, cx);
        Step::Used(count)
    }

    pub(super) fn advance_payload(&mut self, count_bytes: u32, cx: &mut Context<'_>) {
        let Phase::Payload { request, piece, received_bytes, left_bytes } = &mut self.phase else { return };
        *received_bytes += count_bytes;
        let (request, piece, left_bytes) = (*request, *piece, *left_bytes);
        let (offset_bytes, length_bytes) =
            (cx.desk.pieces[piece].offset_bytes, cx.desk.pieces[piece].length_bytes);
        if *received_bytes < length_bytes {
            return;
        }
        let entry = &mut cx.desk.requests[request];
        entry.all_started = left_bytes == 0;
        let durability = entry.durability;
        self.phase = if left_bytes == 0 {
            Phase::Header
        } else {
            let next_bytes = offset_bytes + u64::from(length_bytes);
            Phase::NextPayload { request, next_bytes, left_bytes }
        };
        let what = VolumeRequest::Write { offset_bytes, length_bytes: length_bytes.into(), durability };
        cx.desk.start(cx.volume, piece, what);
    }

    pub(super) fn step_drain(
        &mut self,
        available: usize,
        left_bytes: u32,
        then: AfterDrain,
        cx: &mut Context<'_>,
    ) -> Step {
        let step = u32::try_from(available).map_or(left_bytes, |available| available.min(left_bytes));
        let left_bytes = left_bytes - step;
        if left_bytes > 0 {
            self.phase = Phase::Drain { left_bytes, then };
            return if step == 0 { Step::Stop(Wants::Bytes) } else { Step::Used(step as usize) };
        }
        self.phase = Phase::Header;
        match then {
            AfterDrain::Reject { cookie, error } => {
                self.answer_plainly(Some(Command::Write), cookie, Some(error));
            }
            AfterDrain::Finish { request } => {
                cx.desk.requests[request].all_started = true;
                self.finish_if_complete(request, cx);
            }
        }
        Step::Used(step as usize)
    }

    fn extents(&mut self, request: &Request, count_max: usize, cx: &mut Context<'_>) {
        self.looked_in = Some(cx.desk.turn);
        let chunk_bytes = cx.desk.chunk_bytes();
        let (extents, short) = (&mut cx.desk.extents, &mut cx.desk.extents_short);
        extents.clear();
        short.clear();
        // The client asks again for what it is not told of.
        let chunk_bytes = u64::try_from(chunk_bytes).unwrap_or(u64::MAX);
        let end = request.offset_bytes / chunk_bytes * chunk_bytes + EXTENT_CHUNKS_MAX * chunk_bytes;
        let told = u64::from(request.length_bytes).min(end - request.offset_bytes);
        cx.volume.allocated(request.offset_bytes, told, extents);
        let mut left = u32::try_from(told).expect("not more than the length");
        for &(length, hole) in extents.iter() {
            let length = u32::try_from(length).unwrap_or(left).min(left);
            left -= length;
            match short.last_mut() {
                Some((last, same)) if *same == hole => *last += length,
                Some(_) | None if length > 0 => short.push((length, hole)),
                Some(_) | None => {}
            }
        }
        if short.is_empty() {
            short.push((request.length_bytes, false)); // not known: say that it is stored
        }
        short.truncate(count_max);
        self.output.put(|out| wire::put_block_status(out, request.cookie, short));
        cx.desk.count(request, None);
    }

    /// Queues a piece of a read; `false` if the answer has become an error already.
    pub(super) fn send_data(&mut self, piece: Key<Piece>, index: Key<Request>, cx: &mut Context<'_>) -> bool {
        let chunk_bytes = cx.desk.chunk_bytes();
        let request = &mut cx.desk.requests[index];
        let (cookie, error) = (request.cookie, request.error);
        let last = request.all_started && request.pieces_open == 0;
        let first = !std::mem::replace(&mut request.head_sent, true);
        let (offset_bytes, length_bytes) = (request.offset_bytes, request.length_bytes);
        let piece = &mut cx.desk.pieces[piece];
        match request.style {
            ReplyStyle::Simple | ReplyStyle::OneChunk if error.is_some() => return false,
            ReplyStyle::Simple if first => self.output.put(|out| wire::put_simple_reply(out, cookie, None)),
            ReplyStyle::OneChunk if first => self.output.put(|out| {
                wire::put_data_chunk(out, chunk::FLAG_DONE, cookie, offset_bytes, length_bytes);
            }),
            ReplyStyle::Simple | ReplyStyle::OneChunk => {}
            ReplyStyle::Chunks => {
                let flags = if last && error.is_none() { chunk::FLAG_DONE } else { 0 };
                let (offset_bytes, length_bytes) = (piece.offset_bytes, piece.length_bytes);
                self.output.put(|out| wire::put_data_chunk(out, flags, cookie, offset_bytes, length_bytes));
            }
        }
        let start =
            usize::try_from(piece.offset_bytes % chunk_bytes as u64).expect("a chunk fits into memory");
        for (slot, start, length) in spans(start, piece.length_bytes as usize, chunk_bytes) {
            self.output.put_slot(piece.slots[slot], start, length);
        }
        piece.slots.clear();
        true
    }

    /// Answers a request whose last piece is done (reads without error are answered by their data).
    pub(super) fn finish_if_complete(&mut self, index: Key<Request>, cx: &mut Context<'_>) {
        let request = cx.desk.requests[index];
        if request.pieces_open > 0 || !request.all_started {
            return;
        }
        let answered_by_data = request.command == Some(Command::Read) && request.error.is_none();
        let cut_short = request.head_sent && request.style != ReplyStyle::Chunks;
        if !answered_by_data && !cut_short {
            self.answer_plainly(request.command, request.cookie, request.error.map(errno_of));
        }
        cx.desk.count(&request, request.error);
        cx.desk.close_request(index);
        self.requests_open -= 1;
    }
}

fn durability(flags: u16) -> Durability {
    if flags & command_flag::FUA != 0 { Durability::Durable } else { Durability::Volatile }
}
