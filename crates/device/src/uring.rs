//! Block devices and files through one io_uring.
//!
//! - One ring per set, with registered files and registered buffers; entered at most once per
//!   `submit` and `poll`, or polled by a thread of the kernel's ([`UringOptions::kernel_polls`]).
//! - Neighbours in a batch (same member and kind, adjacent offsets, nothing of that member's between them)
//!   become one transfer; each operation still gets its own completion. When a merged read fails, its
//!   operations are read again one by one, so that only the bad ones fail. A failed write fails all it was
//!   merged with: the device is lost anyway.
//! - At most [`UringOptions::queue_depth`] transfers are in flight; what is beyond waits in a queue
//!   of the set.
//! - A transfer that ends early is continued; one that makes no progress ends with [`IoFault::Short`].
//! - Files in memory are read and written where they are asked for, past the ring (`member/direct.rs`).
//! - A write for which there is no room (ENOSPC, EDQUOT) ends with [`IoFault::NoSpace`].
//!
//! # Threads
//! The ring belongs to the thread that starts it (the kernel refuses others), so the set is not `Send`. Open
//! the [`Members`] anywhere, move them to the engine's thread and start the set there.
//!
//! # Buffers
//! [`UringSet::start`] is safe: the set has buffers of its own, and copies. [`UringSet::start_shared`] hands
//! the pool's memory to the kernel and copies nothing; it is `unsafe`, as the pool must outlive the set.
//! Dropping a set waits for all that is in flight.
//!
//! # Giving up
//! A device that does not answer holds its requests for as long as it likes, and the kernel holds their
//! memory. [`DeviceSet::give_up`] answers them; from then on a request is the kernel's alone: its buffers are
//! of the set's own and stay untouched, others take their place, its file stays locked, and its end, whenever
//! it comes, concerns nobody. A set with shared buffers cannot do that: what is in the kernel ends there.
#![allow(unsafe_code, reason = "the kernel reads and writes memory that it is given by address")]

mod buffers;
mod membership;
mod options;
mod request;
mod ring;
#[cfg(test)]
mod tests;

pub use options::{RingError, UringOptions};
pub(crate) use ring::is_transient;

use crate::member::{Kind, Member, Members, Note, OpenError, RUN_MAX, fault_of_errno};
use crate::operation::{in_range, on_grid};
use crate::streams::WriteStreams;
use block::{Completion, DevIndex, DeviceOp, DeviceSet, FlushNow, IoFault, OpKind, Pool, ReadNow, WriteNow};
use buffers::Buffers;
use io_uring::{IoUring, squeue, types};
use request::Table;
use ring::{build_ring, registered_fd, set_workers};
use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::{OwnedFd, RawFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// Most operations in one transfer: beyond this the cost per transfer is spread thinly enough.
const MERGE_PART_COUNT_MAX: usize = 64;
/// Most bytes in one merged transfer; larger ones are split by the kernel anyway.
const MERGE_BYTES_MAX: u64 = 1 << 20;
/// How often a transfer is repeated that the kernel did not carry out for want of memory or because
/// of a signal.
const RETRY_COUNT_MAX: u32 = 16;
/// How long dropping a set waits for requests that were given up. Their memory is left to the kernel then.
const GIVEN_UP_WAIT: Duration = Duration::from_millis(200);
/// Progress must be whole sectors for O_DIRECT to go on from there.
const SECTOR_BYTES: u64 = 512;

/// A waiting operation.
#[derive(Clone, Copy)]
struct Queued {
    op: DeviceOp,
    /// Not to be merged: it was part of a merged read that failed, or merging is off.
    alone: bool,
}

#[derive(Clone, Default)]
struct State {
    failed: bool,
    cannot_discard: bool,
    /// Transfers are started by a worker of the kernel's, not by the set's thread.
    by_worker: bool,
    /// Transfers are done at once, past the ring.
    in_memory: bool,
    /// What the drive is told of each write.
    streams: WriteStreams,
}

impl State {
    /// How a member begins.
    fn of(members: &Members, index: usize) -> Self {
        let member = u16::try_from(index).ok().and_then(|index| members.get(DevIndex::new(index)));
        Self {
            failed: false,
            cannot_discard: member.is_some_and(Member::is_allocated),
            by_worker: member.is_some_and(Member::may_block),
            in_memory: member.is_some_and(Member::in_memory),
            streams: member.map(|member| member.write_streams().clone()).unwrap_or_default(),
        }
    }
}

/// A set of members driven by io_uring.
pub struct UringSet {
    // Declared first, dropped first: the kernel is done with the memory below before it goes.
    ring: ManuallyDrop<IoUring>,
    members: Members,
    states: Vec<State>,
    /// Members that are none any more, kept open and locked while the kernel has requests on them that were
    /// given up.
    lingering: Vec<(DevIndex, Member)>,
    table: ManuallyDrop<Table>,
    /// Entries given to the kernel whose completions were not taken.
    in_kernel: usize,
    buffers: ManuallyDrop<Buffers>,
    queued: VecDeque<Queued>,
    /// Room to sort a batch in.
    order: Vec<(DevIndex, u32)>,
    merge: bool,
    ready: Vec<Completion>,
    wake: Option<OwnedFd>,
    /// The event of another set, which announces what completes here, too.
    bell: Option<OwnedFd>,
    notes: Vec<Note>,
    /// The ring belongs to one thread.
    not_send: PhantomData<*mut ()>,
}

impl UringSet {
    /// Starts a ring with buffers of its own for operations on pools of `slot_bytes` slots.
    ///
    /// Every transfer is copied once between these buffers (`queue_depth` slots) and the caller's pool.
    pub fn start(members: Members, slot_bytes: usize, options: UringOptions) -> Result<Self, RingError> {
        let depth = options.depth();
        Self::with_buffers(members, Buffers::own(slot_bytes, depth as usize), options)
    }

    /// Starts a ring that transfers straight from and to `pool`, which has a region ([`Pool::new`]).
    ///
    /// # Safety
    /// - `pool` must not be dropped, enlarged, nor replaced through a `&mut` (its memory freed), before the
    ///   set is dropped. Moving the `Pool` value itself is fine, its memory stays.
    /// - Between the submission of an operation and its completion, its slot is neither read nor written.
    ///
    /// That only this pool is used with the set is checked.
    pub unsafe fn start_shared(
        members: Members,
        pool: &mut Pool,
        options: UringOptions,
    ) -> Result<Self, RingError> {
        Self::with_buffers(members, Buffers::shared(pool), options)
    }

    fn with_buffers(
        members: Members,
        mut buffers: Buffers,
        options: UringOptions,
    ) -> Result<Self, RingError> {
        let depth = options.depth();
        let mut notes = members.notes();
        let ring = build_ring(depth, options, &mut notes)?;
        set_workers(&ring, 0);
        let count = members.count();
        let files: Vec<RawFd> = (0..count).map(|index| registered_fd(&members, index)).collect();
        if count > 0 {
            ring.submitter().register_files(&files).map_err(|source| RingError::Files { count, source })?;
        }
        notes.extend(buffers.register(&ring));
        Ok(Self {
            ring: ManuallyDrop::new(ring),
            states: (0..count).map(|index| State::of(&members, index)).collect(),
            members,
            lingering: Vec::new(),
            table: ManuallyDrop::new(Table::new(depth)),
            in_kernel: 0,
            buffers: ManuallyDrop::new(buffers),
            queued: VecDeque::new(),
            order: Vec::new(),
            merge: options.merge,
            ready: Vec::new(),
            wake: None,
            bell: None,
            notes,
            not_send: PhantomData,
        })
    }

    /// The smallest unit the member can write; 0 if it is absent.
    pub fn logical_block_bytes(&self, dev: DevIndex) -> u32 {
        self.members.get(dev).map_or(0, |member| member.logical_block_bytes())
    }

    /// Whether the member is a file or a block device; `None` if it is absent.
    pub fn kind(&self, dev: DevIndex) -> Option<Kind> {
        self.members.get(dev).map(|member| member.kind())
    }

    /// Operations that were submitted and have not completed.
    pub fn pending_count(&self) -> usize {
        self.table.in_flight() + self.queued.len()
    }

    /// Treats the member as gone from now on; what is in flight on it still ends in its own way.
    pub fn fail(&mut self, dev: DevIndex) {
        if let Some(state) = self.states.get_mut(dev.index()) {
            state.failed = true;
        }
    }

    /// Whether the kernel still has requests of a member's that were given up.
    pub fn is_stuck(&self, dev: DevIndex) -> bool {
        self.table.given_up() > 0 && !self.table.of_member(dev, true).is_empty()
    }

    /// Takes the member out of the list. It is closed and unlocked when the kernel has given back all that
    /// was given up on it: whoever opened it before could have his writes overwritten.
    fn let_go(&mut self, dev: DevIndex) {
        let old = self.members.take(dev);
        if self.is_stuck(dev) {
            self.lingering.extend(old.map(|member| (dev, member)));
        }
    }

    /// Answers what is under way on a member in the kernel, and leaves it to the kernel.
    fn abandon(&mut self, dev: DevIndex) {
        if !self.buffers.are_own() {
            return;
        }
        let mut kept = 0;
        for index in self.table.of_member(dev, false) {
            for part in &self.table.get(index).parts {
                self.ready.push(Completion { tag: part.op.tag, result: Err(IoFault::Gone) });
                kept += usize::from(part.buffer.is_some());
            }
            self.table.give_up(index);
        }
        self.buffers.add_spare(kept);
        set_workers(&self.ring, self.table.given_up());
    }

    /// A request that was given up has come back from the kernel.
    fn end_given_up(&mut self, index: u32) {
        let request = self.table.get(index);
        let dev = request.dev;
        for part in request.parts.drain(..) {
            if let Some(buffer) = part.buffer {
                self.buffers.release(buffer);
            }
        }
        self.table.end_given_up(index);
        if !self.is_stuck(dev) {
            self.lingering.retain(|(of, _)| *of != dev);
        }
    }

    /// What the kernel still works on is kept apart; its lock stays, and shuts out the same device
    /// under any name.
    fn make_way(&mut self, dev: DevIndex) {
        if self.is_stuck(dev) {
            self.let_go(dev);
        }
    }

    fn check_place(&self, dev: DevIndex, path: &Path) -> Result<(), OpenError> {
        if dev.index() < self.states.len() {
            return Ok(());
        }
        let source = io::Error::from(io::ErrorKind::InvalidInput);
        Err(OpenError::Io { path: path.to_owned(), source })
    }

    /// Lets the ring work with the file that has come to a place.
    fn admit(&mut self, dev: DevIndex, path: &Path) -> Result<(), OpenError> {
        let at_path = |source| OpenError::Io { path: path.to_owned(), source };
        let file = [registered_fd(&self.members, dev.index())];
        self.ring.submitter().register_files_update(u32::from(dev.get()), &file).map_err(at_path)?;
        self.states[dev.index()] = State::of(&self.members, dev.index());
        let buffered = Note::Buffered { path: path.to_owned() };
        if self.members.notes().contains(&buffered) {
            self.notes.push(buffered);
        }
        Ok(())
    }

    fn announce(&self) {
        if let Some(event) = self.wake.as_ref().or(self.bell.as_ref()) {
            // Fails only when the counter is full, and then it is readable.
            let _ = rustix::io::write(event, &1u64.to_ne_bytes());
        }
    }

    /// How an operation ends without reaching the kernel, if it does.
    fn immediate(&self, op: &DeviceOp) -> Option<Result<(), IoFault>> {
        let state = match self.states.get(op.dev.index()) {
            Some(state) if !state.failed && self.members.get(op.dev).is_some() => state,
            Some(_) | None => return Some(Err(IoFault::Gone)),
        };
        assert!(on_grid(op), "{:?} at {}: expected multiples of 4096", op.kind, op.offset_bytes);
        if !in_range(op, self.members.size_bytes(op.dev)) {
            return Some(Err(IoFault::Short));
        }
        let nothing = op.kind != OpKind::Flush && op.length_bytes == 0;
        (nothing || op.kind == OpKind::Discard && state.cannot_discard).then_some(Ok(()))
    }

    /// Appends a batch, member by member: stripes that lie side by side are neighbours on each of their
    /// members, not in the batch.
    fn enqueue(&mut self, ops: &[DeviceOp]) {
        let Self { order, queued, merge, .. } = self;
        order.clear();
        order.extend(ops.iter().zip(0u32..).map(|(op, index)| (op.dev, index)));
        if *merge {
            order.sort_unstable();
        }
        queued.extend(order.iter().map(|&(_, index)| Queued { op: ops[index as usize], alone: !*merge }));
    }

    /// Moves waiting operations into the ring while there is room.
    fn pump(&mut self, pool: &mut Pool) {
        while let Some(&Queued { op, alone }) = self.queued.front() {
            if let Some(result) = self.immediate(&op) {
                self.queued.pop_front();
                self.ready.push(Completion { tag: op.tag, result });
                continue;
            }
            if self.states[op.dev.index()].in_memory {
                self.carry_out(pool, op, alone);
                continue;
            }
            if self.buffers.free_count() == 0 {
                break;
            }
            let Some(index) = self.table.take() else { break };
            self.queued.pop_front();
            let request = self.table.get(index);
            let streams = &self.states[op.dev.index()].streams;
            request.start(op, streams, pool, &mut self.buffers);
            while let Some(next) = self.queued.front()
                && !alone
                && !next.alone
                && request.continues(&next.op, streams)
                && request.parts.len() < MERGE_PART_COUNT_MAX
                && request.length_bytes + next.op.length_bytes <= MERGE_BYTES_MAX
                && self.buffers.free_count() > 0
                && in_range(&next.op, self.members.size_bytes(next.op.dev))
            {
                request.add(next.op, pool, &mut self.buffers);
                self.queued.pop_front();
            }
            self.issue(index);
        }
    }

    /// Carries out the operation that waits longest, on a member in memory, and the writes that continue it.
    fn carry_out(&mut self, pool: &mut Pool, first: DeviceOp, alone: bool) {
        let mut end = first.offset_bytes;
        let size_bytes = self.members.size_bytes(first.dev);
        let run =
            self.queued.iter().take(if alone { 1 } else { RUN_MAX }).take_while(|Queued { op, .. }| {
                let continues = (op.kind, op.dev, op.offset_bytes) == (OpKind::Write, first.dev, end);
                end += op.length_bytes;
                continues && in_range(op, size_bytes)
            });
        let count = run.count().max(1);
        let ops = self.queued.iter().take(count).map(|queued| queued.op);
        let written = count > 1 && self.members.write_run(pool, ops);
        for Queued { op, .. } in self.queued.drain(..count) {
            let result = if written { Ok(()) } else { self.members.carry_out(pool, &op) };
            self.ready.push(Completion { tag: op.tag, result });
        }
    }

    /// Puts the rest of a request into the submission queue.
    fn issue(&mut self, index: u32) {
        let request = self.table.get(index);
        let by_worker = self.states[request.dev.index()].by_worker;
        let flags = if by_worker { squeue::Flags::ASYNC } else { squeue::Flags::empty() };
        let entry = request.entry(&mut self.buffers).user_data(u64::from(index)).flags(flags);
        // SAFETY: the entry names a registered file, memory within `buffers` and the request's own list of
        // it; the request stays untouched in the table, and the buffers allocated, until its completion was
        // taken: `complete` is the only place that frees them (a request given up is only marked), and `drop`
        // waits for all completions, or frees neither ring nor table nor buffers.
        // JUSTIFICATION: the kernel interface has no safe form.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the submission queue has an entry for every request of the table");
        self.in_kernel += 1;
    }

    /// Tells the kernel of new entries, and lets it deliver completions.
    fn enter(&mut self) {
        loop {
            let (waiting, deferred) = {
                let queue = self.ring.submission();
                (!queue.is_empty(), queue.taskrun() || queue.cq_overflow())
            };
            if !waiting && !deferred {
                return;
            }
            match self.ring.submit() {
                // The kernel's thread takes them when it comes to them.
                Ok(_) if self.ring.params().is_setup_sqpoll() => return,
                Ok(count) if waiting && count > 0 => {} // once more if the kernel stopped early
                Ok(_) => return,
                // Short of memory or of room for completions, or a signal: the next poll or wait tries again.
                Err(error) if is_transient(&error) => return,
                Err(error) => panic!("io_uring_enter on the set's own ring: {error}"),
            }
        }
    }

    /// Takes one completion of the kernel.
    fn complete(&mut self, index: u32, result: i32, pool: &mut Pool) {
        let request = self.table.get(index);
        if request.given_up {
            return self.end_given_up(index);
        }
        let fault = match u64::try_from(result) {
            Err(_) => match -result {
                errno @ (libc::EAGAIN | libc::EINTR | libc::ENOMEM)
                    if request.retry_count >= RETRY_COUNT_MAX =>
                {
                    Some(IoFault::Device { errno })
                }
                libc::EAGAIN | libc::EINTR | libc::ENOMEM => {
                    request.retry_count += 1;
                    return self.issue(index);
                }
                libc::EOPNOTSUPP | libc::ENOSYS if request.kind == OpKind::Discard => {
                    // A hint that the device or file system cannot take; it need not be asked again.
                    self.states[request.dev.index()].cannot_discard = true;
                    None
                }
                libc::EINVAL if request.forget_stream() => {
                    // Whatever the kernel said of the drive, it takes no streams; writes without are well.
                    self.states[request.dev.index()].streams.give_up();
                    return self.issue(index);
                }
                errno if request.kind == OpKind::Write => {
                    Some(self.members.fault_of_write(request.dev, errno))
                }
                errno => Some(fault_of_errno(errno)),
            },
            Ok(bytes) => match request.kind {
                OpKind::Flush | OpKind::Discard => None,
                OpKind::Read | OpKind::Write => {
                    request.done_bytes += bytes;
                    let finished = request.done_bytes >= request.length_bytes;
                    if !finished && bytes > 0 && bytes.is_multiple_of(SECTOR_BYTES) {
                        return self.issue(index);
                    }
                    (!finished).then_some(IoFault::Short)
                }
            },
        };
        self.finish(index, fault, pool);
    }

    /// Completes the operations of a request and frees it: those within the bytes done are good, the others
    /// end with `fault`.
    fn finish(&mut self, index: u32, fault: Option<IoFault>, pool: &mut Pool) {
        let request = self.table.get(index);
        let one_by_one = request.kind == OpKind::Read
            && request.parts.len() > 1
            && matches!(fault, Some(IoFault::Device { .. } | IoFault::Gone));
        let mut end_bytes = 0;
        for part in request.parts.drain(..) {
            end_bytes += part.op.length_bytes;
            let result = match fault {
                Some(fault) if end_bytes > request.done_bytes || part.buffer.is_none() => Err(fault),
                Some(_) | None => Ok(()),
            };
            if let (Some(slot), Some(buffer)) = (part.slot, part.buffer) {
                if result.is_ok() && request.kind == OpKind::Read {
                    self.buffers.drain(buffer, pool, slot, part.op.length_bytes as usize);
                }
                self.buffers.release(buffer);
            }
            if result.is_err() && one_by_one {
                self.queued.push_front(Queued { op: part.op, alone: true });
            } else {
                self.ready.push(Completion { tag: part.op.tag, result });
            }
        }
        self.table.give_back(index);
    }

    /// Takes all completions the kernel has delivered.
    fn reap(&mut self, pool: &mut Pool) {
        loop {
            let Some(entry) = self.ring.completion().next() else { return };
            self.in_kernel -= 1;
            let index = u32::try_from(entry.user_data()).expect("user data is an index of the table");
            self.complete(index, entry.result(), pool);
        }
    }

    /// Waits until the kernel holds nothing of ours; `false` if what was given up does not come back
    /// in good time.
    fn quiesce(&mut self) -> io::Result<bool> {
        let until = Instant::now() + GIVEN_UP_WAIT;
        // Counted apart from the table: after a panic halfway a request may be taken that never
        // reached the kernel.
        while self.in_kernel > 0 {
            let only_given_up = self.in_kernel <= self.table.given_up();
            let left = until.saturating_duration_since(Instant::now());
            if only_given_up && left.is_zero() {
                return Ok(false);
            }
            // Without a limit only for what devices in service owe us.
            let timeout = types::Timespec::from(if only_given_up { left } else { Duration::from_secs(1) });
            let args = types::SubmitArgs::new().timespec(&timeout);
            match self.ring.submitter().submit_with_args(1, &args) {
                Ok(_) => {}
                Err(error) if is_transient(&error) || error.raw_os_error() == Some(libc::ETIME) => {}
                Err(error) => return Err(error),
            }
            self.take_leftovers();
        }
        Ok(true)
    }

    /// Takes completions that nobody waits for any more.
    fn take_leftovers(&mut self) {
        loop {
            let Some(entry) = self.ring.completion().next() else { return };
            self.in_kernel -= 1;
            let index = u32::try_from(entry.user_data()).expect("user data is an index of the table");
            if self.table.get(index).given_up {
                self.end_given_up(index);
            }
        }
    }
}

impl Drop for UringSet {
    fn drop(&mut self) {
        match self.quiesce() {
            // SAFETY: each is dropped once, here, and not used afterwards; the kernel has none of the memory.
            // JUSTIFICATION: only what the kernel does not hold any more may be freed; a field would
            // be freed always.
            Ok(true) => unsafe {
                // The kernel takes a ring down some time after it was closed; the members are to be free at
                // once. Fails if there are none.
                let _ = self.ring.submitter().unregister_files();
                ManuallyDrop::drop(&mut self.ring);
                ManuallyDrop::drop(&mut self.table);
                ManuallyDrop::drop(&mut self.buffers);
            },
            // A device does not answer: ring, requests and memory are left to the kernel, and so are the
            // members that it works on, open and locked.
            Ok(false) => {
                let stuck = |dev| !self.table.of_member(dev, true).is_empty();
                let count = u16::try_from(self.members.count()).unwrap_or(u16::MAX);
                let devs: Vec<DevIndex> = (0..count).map(DevIndex::new).filter(|&dev| stuck(dev)).collect();
                devs.into_iter().for_each(|dev| std::mem::forget(self.members.take(dev)));
                std::mem::forget(std::mem::take(&mut self.lingering));
            }
            Err(error) => {
                // The kernel may still write to memory that is about to be freed; there is no way
                // on from here.
                eprintln!("elastripe: io_uring cannot be drained: {error}");
                std::process::abort();
            }
        }
    }
}

impl DeviceSet for UringSet {
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
        self.buffers.check(pool);
        self.enqueue(ops);
        self.pump(pool);
        self.enter();
        if !self.ready.is_empty() {
            self.announce();
        }
    }

    fn poll(&mut self, pool: &mut Pool, completions: &mut Vec<Completion>) {
        if let Some(event) = &self.wake {
            // Before the completions are taken: what arrives later announces itself again. EAGAIN: nothing
            // was announced.
            let _ = rustix::io::read(event, &mut [0; 8]);
        }
        self.buffers.check(pool);
        self.enter();
        self.reap(pool);
        self.pump(pool);
        self.enter();
        completions.append(&mut self.ready);
    }

    fn wait(&mut self, timeout_ns: u64) {
        let expected = self.in_kernel > self.table.given_up();
        if !self.ready.is_empty() || !expected || !self.ring.completion().is_empty() {
            return;
        }
        let timeout = types::Timespec::new()
            .sec(timeout_ns / 1_000_000_000)
            .nsec(u32::try_from(timeout_ns % 1_000_000_000).expect("less than a second"));
        let args = types::SubmitArgs::new().timespec(&timeout);
        // Timeout and signals end the wait; other errors come back at the next poll.
        let _ = self.ring.submitter().submit_with_args(1, &args);
    }

    fn give_up(&mut self, dev: DevIndex) {
        self.fail(dev);
        self.abandon(dev);
        self.announce();
    }

    fn size_bytes(&self, dev: DevIndex) -> u64 {
        self.members.size_bytes(dev)
    }

    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        self.present(dev)?.read_now(dev, offset_bytes, into)
    }

    fn read_all_now(&mut self, reads: &mut [ReadNow<'_>]) {
        let there = self.readable(reads);
        self.members.read_all_now(there);
    }

    fn read_all_beside(&mut self, reads: &mut [ReadNow<'_>], work: &mut dyn FnMut()) {
        let there = self.readable(reads);
        self.members.read_all_beside(there, work);
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        self.present(dev)?.write_now(dev, offset_bytes, from)
    }

    fn write_all_now(&mut self, writes: &mut [WriteNow<'_>]) {
        let there = self.writable(writes);
        self.members.write_all_now(there);
    }

    fn write_all_beside(&mut self, writes: &mut [WriteNow<'_>], work: &mut dyn FnMut()) {
        let there = self.writable(writes);
        self.members.write_all_beside(there, work);
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        self.present(dev)?.flush_now(dev)
    }

    fn flush_all_now(&mut self, flushes: &mut [FlushNow]) {
        let gone = |flush: &mut FlushNow| flush.result = Err(IoFault::Gone);
        let there = self.present_first(flushes, |flush| flush.dev, gone);
        self.members.flush_all_now(there);
    }
}

impl UringSet {
    /// Those of members that are there, of all that are `of` some member; the others are `gone`.
    fn present_first<'a, T>(
        &mut self,
        all: &'a mut [T],
        of: impl Fn(&T) -> DevIndex,
        gone: impl Fn(&mut T),
    ) -> &'a mut [T] {
        all.sort_unstable_by_key(|one| self.present(of(one)).is_err());
        let there = all.partition_point(|one| self.present(of(one)).is_ok());
        let (there, absent) = all.split_at_mut(there);
        absent.iter_mut().for_each(gone);
        there
    }

    fn readable<'a, 'b>(&mut self, reads: &'a mut [ReadNow<'b>]) -> &'a mut [ReadNow<'b>] {
        self.present_first(reads, |read| read.dev, |read| read.result = Err(IoFault::Gone))
    }

    fn writable<'a, 'b>(&mut self, writes: &'a mut [WriteNow<'b>]) -> &'a mut [WriteNow<'b>] {
        self.present_first(writes, |write| write.dev, |write| write.result = Err(IoFault::Gone))
    }

    fn present(&mut self, dev: DevIndex) -> Result<&mut Members, IoFault> {
        match self.states.get(dev.index()) {
            Some(State { failed: false, .. }) => Ok(&mut self.members),
            Some(_) | None => Err(IoFault::Gone),
        }
    }
}
