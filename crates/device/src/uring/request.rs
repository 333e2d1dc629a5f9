//! What is in flight: each request is one ring entry and stands for one or several merged operations.

use super::buffers::{Buffer, Buffers};
use crate::operation::transfer_place;
use crate::streams::WriteStreams;
use block::{DevIndex, DeviceOp, OpKind, Pool, Slot};
use io_uring::{opcode, squeue, types};
use std::collections::HashSet;

/// One operation within a request.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) op: DeviceOp,
    /// What the caller's pool calls the bytes; `None` for flush and discard.
    pub(super) slot: Option<Slot>,
    /// What the kernel's memory calls them.
    pub(super) buffer: Option<Buffer>,
}

/// One ring entry's worth of work.
pub(super) struct Request {
    pub(super) kind: OpKind,
    pub(super) dev: DevIndex,
    pub(super) parts: Vec<Part>,
    pub(super) offset_bytes: u64,
    pub(super) length_bytes: u64,
    /// Transferred so far; the rest is asked for again.
    pub(super) done_bytes: u64,
    pub(super) retry_count: u32,
    /// The write stream it belongs to; 0 is none.
    write_stream: u8,
    /// Its operations were answered when their member went out of service; only the kernel still knows of it.
    pub(super) given_up: bool,
    iovecs: Vec<libc::iovec>,
}

impl Request {
    pub(super) fn new() -> Self {
        Self {
            kind: OpKind::Flush,
            dev: DevIndex::default(),
            parts: Vec::new(),
            offset_bytes: 0,
            length_bytes: 0,
            done_bytes: 0,
            retry_count: 0,
            write_stream: 0,
            given_up: false,
            iovecs: Vec::new(),
        }
    }

    /// Starts anew with one operation; the caller has seen to it that a buffer is free.
    pub(super) fn start(&mut self, op: DeviceOp, streams: &WriteStreams, pool: &Pool, buffers: &mut Buffers) {
        self.parts.clear();
        self.write_stream = streams.stream_of(op.stream, op.class);
        (self.kind, self.dev) = (op.kind, op.dev);
        (self.offset_bytes, self.length_bytes) = (op.offset_bytes, 0);
        (self.done_bytes, self.retry_count, self.given_up) = (0, 0, false);
        self.add(op, pool, buffers);
    }

    /// Adds an operation that continues where the request ends.
    pub(super) fn add(&mut self, op: DeviceOp, pool: &Pool, buffers: &mut Buffers) {
        let part = match op.kind {
            OpKind::Read | OpKind::Write => {
                let (slot, length) = transfer_place(&op, buffers.slot_bytes());
                let buffer = buffers.acquire(pool, slot).expect("the caller saw a free buffer");
                if op.kind == OpKind::Write {
                    buffers.fill(buffer, pool, slot, length);
                }
                Part { op, slot: Some(slot), buffer: Some(buffer) }
            }
            OpKind::Flush | OpKind::Discard => Part { op, slot: None, buffer: None },
        };
        self.parts.push(part);
        self.length_bytes += op.length_bytes;
    }

    /// A write in a stream is one in none from now on; whether it was in one.
    pub(super) fn forget_stream(&mut self) -> bool {
        self.kind == OpKind::Write && std::mem::take(&mut self.write_stream) > 0
    }

    /// Whether `op` continues where this request ends.
    pub(super) fn continues(&self, op: &DeviceOp, streams: &WriteStreams) -> bool {
        matches!(self.kind, OpKind::Read | OpKind::Write)
            && op.kind == self.kind
            && op.dev == self.dev
            && op.offset_bytes == self.offset_bytes + self.length_bytes
            && (self.kind == OpKind::Read || streams.stream_of(op.stream, op.class) == self.write_stream)
    }

    /// The ring entry for what is not done yet. It points into this request and into `buffers`: neither may
    /// be changed or dropped until its completion has been taken.
    pub(super) fn entry(&mut self, buffers: &mut Buffers) -> squeue::Entry {
        const PUNCH_HOLE: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let file = types::Fixed(u32::from(self.dev.get()));
        match self.kind {
            OpKind::Read | OpKind::Write => self.transfer_entry(buffers, file),
            OpKind::Flush => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
            OpKind::Discard => opcode::Fallocate::new(file, self.length_bytes)
                .offset(self.offset_bytes)
                .mode(PUNCH_HOLE)
                .build(),
        }
    }

    fn transfer_entry(&mut self, buffers: &mut Buffers, file: types::Fixed) -> squeue::Entry {
        let offset = self.offset_bytes + self.done_bytes;
        let stream = self.write_stream;
        self.gather(buffers);
        if let [one] = self.iovecs[..] {
            let (address, length) = (one.iov_base.cast::<u8>(), one.iov_len);
            let bytes = u32::try_from(length).expect("a request is at most MERGE_BYTES_MAX or one slot");
            return match (self.kind == OpKind::Read, buffers.fixed_index(address, length)) {
                (true, Some(index)) => {
                    opcode::ReadFixed::new(file, address, bytes, index).offset(offset).build()
                }
                (false, Some(index)) => opcode::WriteFixed::new(file, address, bytes, index)
                    .offset(offset)
                    .write_stream(stream)
                    .build(),
                (true, None) => opcode::Read::new(file, address, bytes).offset(offset).build(),
                (false, None) => {
                    opcode::Write::new(file, address, bytes).offset(offset).write_stream(stream).build()
                }
            };
        }
        let count = u32::try_from(self.iovecs.len()).expect("at most MERGE_PART_COUNT_MAX");
        if self.kind == OpKind::Read {
            opcode::Readv::new(file, self.iovecs.as_ptr(), count).offset(offset).build()
        } else {
            opcode::Writev::new(file, self.iovecs.as_ptr(), count).offset(offset).write_stream(stream).build()
        }
    }

    /// Lists the memory of what is not done yet; neighbours in memory become one entry.
    fn gather(&mut self, buffers: &mut Buffers) {
        self.iovecs.clear();
        let mut skip = self.done_bytes;
        for part in &self.parts {
            let length = part.op.length_bytes;
            if skip >= length {
                skip -= length;
                continue;
            }
            let buffer = part.buffer.expect("reads and writes have a buffer");
            let start = buffers.address(buffer).wrapping_add(skip as usize);
            let length = (length - skip) as usize;
            skip = 0;
            match self.iovecs.last_mut() {
                Some(last) if last.iov_base.cast::<u8>().wrapping_add(last.iov_len) == start => {
                    last.iov_len += length
                }
                Some(_) | None => self.iovecs.push(libc::iovec { iov_base: start.cast(), iov_len: length }),
            }
        }
    }
}

/// All requests, in use and free.
pub(super) struct Table {
    requests: Vec<Request>,
    free: Vec<u32>,
    /// Places of requests that were given up and that the kernel has given back since; they are beyond the
    /// table's size.
    surplus: Vec<u32>,
    given_up: usize,
}

impl Table {
    /// A table of `count` requests, the most that can be in flight.
    pub(super) fn new(count: u32) -> Self {
        Self {
            requests: (0..count).map(|_| Request::new()).collect(),
            free: (0..count).rev().collect(),
            surplus: Vec::new(),
            given_up: 0,
        }
    }

    /// Requests whose operations are not answered yet.
    pub(super) fn in_flight(&self) -> usize {
        self.requests.len() - self.free.len() - self.surplus.len() - self.given_up
    }

    /// Requests that only the kernel still knows of.
    pub(super) fn given_up(&self) -> usize {
        self.given_up
    }

    /// Places of the requests on a member that are in the kernel; given up already or not.
    pub(super) fn of_member(&self, dev: DevIndex, given_up: bool) -> Vec<u32> {
        let free: HashSet<&u32> = self.free.iter().chain(&self.surplus).collect();
        let taken = (0u32..).zip(&self.requests).filter(|(index, _)| !free.contains(index));
        taken.filter(|(_, r)| r.dev == dev && r.given_up == given_up).map(|(index, _)| index).collect()
    }

    /// The request is the kernel's alone from now on; another place is free in its stead.
    pub(super) fn give_up(&mut self, index: u32) {
        self.requests[index as usize].given_up = true;
        self.given_up += 1;
        let other = self.surplus.pop().unwrap_or_else(|| {
            self.requests.push(Request::new());
            u32::try_from(self.requests.len() - 1).expect("as many as devices can keep")
        });
        self.free.push(other);
    }

    /// The kernel has given a request back that was given up.
    pub(super) fn end_given_up(&mut self, index: u32) {
        self.given_up -= 1;
        self.surplus.push(index);
    }

    pub(super) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    pub(super) fn give_back(&mut self, index: u32) {
        self.free.push(index);
    }

    pub(super) fn get(&mut self, index: u32) -> &mut Request {
        &mut self.requests[index as usize]
    }
}
