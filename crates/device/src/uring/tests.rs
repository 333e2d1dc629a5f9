//! What cannot be seen from outside: how operations are merged, and what follows from results the kernel
//! seldom gives.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use super::*;
use crate::Membership as _;
use crate::member::{Access, Existing, OpenOptions, create_file};
use block::Stream;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const BLOCK: u64 = 4096;

struct Bench {
    set: UringSet,
    pool: Pool,
    _directory: tempfile::TempDir,
}

fn bench(queue_depth: u32) -> Bench {
    bench_of(1, queue_depth, Access::Exclusive)
}

fn bench_of(members: usize, queue_depth: u32, access: Access) -> Bench {
    let directory = tempfile::tempdir().unwrap();
    let paths = (0..members).map(|index| directory.path().join(format!("member{index}"))).map(Some);
    let paths: Vec<_> = paths.collect();
    paths.iter().flatten().for_each(|path| create_file(path, 1 << 20, Existing::Refuse).unwrap());
    let members = Members::open(&paths, OpenOptions { access, ..OpenOptions::default() }).unwrap();
    let options = UringOptions { queue_depth, ..UringOptions::default() };
    let mut set = UringSet::start(members, 4096, options).unwrap();
    // Wherever temporary files are on this machine.
    set.states.iter_mut().for_each(|state| state.in_memory = false);
    Bench { set, pool: Pool::new(4096, 256), _directory: directory }
}

fn op(tag: u64, kind: OpKind, block: u64, slot: Slot) -> DeviceOp {
    let dev = DevIndex::new(0);
    DeviceOp {
        tag,
        dev,
        kind,
        stream: Stream::Data,
        class: 0,
        offset_bytes: block * BLOCK,
        length_bytes: BLOCK,
        slot: Some(slot),
    }
}
use block::Slot;

impl Bench {
    fn ops(&mut self, kind: OpKind, blocks: impl IntoIterator<Item = u64>) -> Vec<DeviceOp> {
        blocks.into_iter().map(|block| op(block, kind, block, self.pool.alloc().unwrap())).collect()
    }

    /// Submits, and answers how many ring entries it took.
    fn submit(&mut self, ops: &[DeviceOp]) -> usize {
        self.set.submit(&mut self.pool, ops);
        self.set.table.in_flight()
    }

    /// Takes the one completion of the kernel and pretends that it said `result`.
    fn pretend(&mut self, result: i32) {
        while self.set.ring.completion().is_empty() {
            self.set.ring.submit_and_wait(1).unwrap();
        }
        let entry = self.set.ring.completion().next().unwrap();
        self.set.in_kernel -= 1;
        self.set.complete(u32::try_from(entry.user_data()).unwrap(), result, &mut self.pool);
    }

    fn results(&mut self, count: usize) -> Vec<(u64, Result<(), IoFault>)> {
        let mut completions = Vec::new();
        while completions.len() < count {
            self.set.wait(1_000_000_000);
            self.set.poll(&mut self.pool, &mut completions);
        }
        assert_eq!(self.set.pending_count(), 0);
        let mut results: Vec<_> = completions.iter().map(|c| (c.tag, c.result)).collect();
        results.sort_by_key(|(tag, _)| *tag);
        results
    }
}

#[test]
fn neighbours_are_merged_and_others_are_not() {
    for (blocks, entries) in [
        (vec![0, 1, 2, 3], 1),
        (vec![0, 2, 4], 3),
        (vec![1, 0], 2),
        (vec![5, 6, 9, 10, 11], 2),
        ((0..MERGE_PART_COUNT_MAX as u64 + 1).collect(), 2),
    ] {
        let mut bench = bench(128);
        let ops = bench.ops(OpKind::Write, blocks.clone());
        assert_eq!(bench.submit(&ops), entries, "{blocks:?}");
        assert!(bench.results(blocks.len()).iter().all(|(_, result)| result.is_ok()));
    }
    let mut bench = bench(128);
    let mut mixed = bench.ops(OpKind::Write, [0]);
    mixed.extend(bench.ops(OpKind::Read, [1]));
    assert_eq!(bench.submit(&mixed), 2, "reads and writes are never one transfer");
    bench.results(2);
}

#[test]
fn neighbours_on_a_member_are_merged_wherever_they_are_in_the_batch() {
    let mut bench = bench_of(3, 128, Access::Exclusive);
    let mut ops = bench.ops(OpKind::Write, (0..12).map(|i| i / 3));
    for (op, tag) in ops.iter_mut().zip(0u16..) {
        (op.tag, op.dev) = (tag.into(), DevIndex::new(tag % 3));
    }
    assert_eq!(bench.submit(&ops), 3);
    assert_eq!(bench.results(12).len(), 12);
}

#[test]
fn members_in_memory_need_no_ring() {
    let mut bench = bench_of(2, 4, Access::Exclusive);
    bench.set.states.iter_mut().for_each(|state| state.in_memory = true);
    let mut ops = bench.ops(OpKind::Write, (0..160).map(|i| i / 2));
    for (op, tag) in ops.iter_mut().zip(0u8..) {
        (op.tag, op.dev) = (tag.into(), DevIndex::new(u16::from(tag % 2)));
        bench.pool.bytes_mut(op.slot.unwrap()).fill(tag);
    }
    assert_eq!(bench.submit(&ops), 0);
    assert_eq!((bench.set.in_kernel, bench.set.pending_count()), (0, 0));
    assert!(bench.results(160).iter().all(|(_, result)| result.is_ok()));
    let reads: Vec<_> = ops.iter().map(|op| DeviceOp { kind: OpKind::Read, ..*op }).collect();
    ops.iter().for_each(|op| bench.pool.bytes_mut(op.slot.unwrap()).fill(255));
    let discard =
        DeviceOp { kind: OpKind::Discard, slot: None, tag: 200, offset_bytes: 100 * BLOCK, ..ops[0] };
    let flush = DeviceOp { kind: OpKind::Flush, slot: None, tag: 201, length_bytes: 0, ..ops[0] };
    bench.submit(&[&reads[..], &[discard, flush]].concat());
    assert!(bench.results(162).iter().all(|(_, result)| result.is_ok()));
    let right = |(op, tag): (&DeviceOp, u8)| *bench.pool.bytes(op.slot.unwrap()) == [tag; 4096];
    assert!(ops.iter().zip(0..).all(right));
}

#[test]
fn a_run_that_cannot_be_written_fails_one_by_one() {
    let mut bench = bench_of(1, 4, Access::ReadOnly);
    bench.set.states[0].in_memory = true;
    let ops = bench.ops(OpKind::Write, 0..3);
    bench.submit(&ops);
    let fault = Err(IoFault::Device { errno: libc::EBADF });
    assert_eq!(bench.results(3), [(0, fault), (1, fault), (2, fault)]);
}

#[test]
fn the_queue_depth_bounds_what_is_in_flight() {
    let mut bench = bench(3);
    let ops = bench.ops(OpKind::Write, (0..20).map(|i| i * 2));
    assert_eq!(bench.submit(&ops), 3);
    assert_eq!(bench.set.pending_count(), 20);
    assert_eq!(bench.results(20).len(), 20);
}

#[test]
fn a_merged_read_that_fails_is_read_one_by_one() {
    let mut bench = bench(16);
    bench.set.write_now(DevIndex::new(0), BLOCK, &[8; 4096]).unwrap();
    let ops = bench.ops(OpKind::Read, 0..4);
    assert_eq!(bench.submit(&ops), 1);
    bench.pretend(-libc::EIO);
    assert!(bench.set.ready.is_empty());
    bench.set.pump(&mut bench.pool);
    assert_eq!(bench.set.table.in_flight(), 4);
    bench.set.enter();
    bench.pretend(-libc::EIO);
    let results = bench.results(4);
    let bad: Vec<_> = results.iter().filter(|(_, result)| result.is_err()).collect();
    assert_eq!(bad.len(), 1, "{results:?}");
    assert_eq!(bad[0].1, Err(IoFault::Device { errno: libc::EIO }));
    if bad[0].0 != 1 {
        assert_eq!(bench.pool.bytes(ops[1].slot.unwrap())[0], 8);
    }
}

#[test]
fn a_merged_write_that_fails_fails_whole_and_is_not_repeated() {
    let mut bench = bench(16);
    let ops = bench.ops(OpKind::Write, 0..4);
    bench.submit(&ops);
    bench.pretend(-libc::EIO);
    assert!(bench.results(4).iter().all(|(_, result)| *result == Err(IoFault::Device { errno: libc::EIO })));
}

#[test]
fn a_write_without_room_is_no_device_error_but_a_flush_that_fails_so_is_one() {
    for errno in [libc::ENOSPC, libc::EDQUOT] {
        let mut bench = bench(16);
        let ops = bench.ops(OpKind::Write, 0..4);
        bench.submit(&ops);
        bench.pretend(-errno);
        assert!(bench.results(4).iter().all(|(_, result)| *result == Err(IoFault::NoSpace)));
        // What was accepted before and could not be written is lost, and the next flush would not
        // say so again.
        let flush = bench.ops(OpKind::Flush, 0..1);
        bench.submit(&flush);
        bench.pretend(-errno);
        assert_eq!(bench.results(1)[0].1, Err(IoFault::Device { errno }));
    }
}

#[test]
fn a_short_transfer_goes_on_where_it_ended() {
    for kind in [OpKind::Write, OpKind::Read] {
        let mut bench = bench(16);
        let old: Vec<u8> = (1..=4).flat_map(|value| [value; 4096]).collect();
        bench.set.write_now(DevIndex::new(0), 0, &old).unwrap();
        let ops = bench.ops(kind, 0..4);
        for op in &ops {
            bench.pool.bytes_mut(op.slot.unwrap()).fill(0x10 + op.tag as u8);
        }
        bench.submit(&ops);
        bench.pretend(4096 + 512);
        assert_eq!(bench.set.table.get(0).done_bytes, 4608);
        assert!(bench.results(4).iter().all(|(_, result)| result.is_ok()));
        let mut found = vec![0; 4 * 4096];
        bench.set.read_now(DevIndex::new(0), 0, &mut found).unwrap();
        let expected = |i: usize| if kind == OpKind::Write { 0x10 + i as u8 } else { i as u8 + 1 };
        assert!((0..4 * 4096).all(|at| found[at] == expected(at / 4096)));
        assert!(
            (0..4).all(|i| bench.pool.bytes(ops[i].slot.unwrap()).iter().all(|&byte| byte == expected(i)))
        );
    }
}

#[test]
fn no_progress_or_a_torn_sector_is_short_for_what_is_missing() {
    let short = Err(IoFault::Short);
    for (result, expected) in [(0, [short; 3]), (4096 + 100, [Ok(()), short, short])] {
        let mut bench = bench(16);
        let ops = bench.ops(OpKind::Write, 0..3);
        bench.submit(&ops);
        bench.pretend(result);
        assert_eq!(bench.results(3).iter().map(|(_, result)| *result).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_busy_kernel_is_asked_again_but_not_for_ever() {
    let mut bench = bench(4);
    let ops = bench.ops(OpKind::Write, [3]);
    bench.submit(&ops);
    bench.pretend(-libc::EAGAIN);
    assert_eq!(bench.results(1), [(3, Ok(()))]);
    bench.submit(&ops);
    for _ in 0..=RETRY_COUNT_MAX {
        bench.pretend(-libc::EAGAIN);
    }
    assert_eq!(bench.results(1), [(3, Err(IoFault::Device { errno: libc::EAGAIN }))]);
}

#[test]
fn an_unplugged_device_is_gone() {
    let mut bench = bench(4);
    let ops = bench.ops(OpKind::Write, [0]);
    bench.submit(&ops);
    bench.pretend(-libc::ENODEV);
    assert_eq!(bench.results(1), [(0, Err(IoFault::Gone))]);
}

#[test]
fn a_device_that_cannot_discard_is_asked_once() {
    let mut bench = bench(4);
    let discard = DeviceOp { kind: OpKind::Discard, slot: None, ..bench.ops(OpKind::Read, [0])[0] };
    assert_eq!(bench.submit(&[discard]), 1);
    bench.pretend(-libc::EOPNOTSUPP);
    assert_eq!(bench.results(1), [(0, Ok(()))]);
    assert_eq!(bench.submit(&[discard]), 0);
    assert_eq!(bench.results(1), [(0, Ok(()))]);
}

fn readable(set: &mut UringSet, timeout_s: i64) -> bool {
    let fd = set.wake_fd().unwrap();
    let timeout = Timespec { tv_sec: timeout_s, tv_nsec: 0 };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)).unwrap() == 1
}

#[test]
fn the_wake_event_announces_completions_until_they_are_polled() {
    let mut bench = bench(4);
    let mut completions = Vec::new();
    assert!(readable(&mut bench.set, 0), "registering announces what may have been missed");
    bench.set.poll(&mut bench.pool, &mut completions);
    assert!(!readable(&mut bench.set, 0));
    let ops = bench.ops(OpKind::Write, [0, 2, 4, 6, 8, 10, 12]);
    bench.submit(&ops);
    while completions.len() < ops.len() {
        assert!(readable(&mut bench.set, 10), "{} of {} completed", completions.len(), ops.len());
        bench.set.poll(&mut bench.pool, &mut completions);
    }
    let gone = DeviceOp { dev: DevIndex::new(9), ..ops[0] };
    bench.submit(&[gone]);
    assert!(readable(&mut bench.set, 0), "completions that never reached the kernel are announced as well");
    bench.set.poll(&mut bench.pool, &mut completions);
    assert!(!readable(&mut bench.set, 0));
    assert_eq!(completions.len(), ops.len() + 1);
}

#[test]
fn a_panic_of_a_bad_operation_does_not_hang_the_drop() {
    let mut bench = bench(4);
    let mut ops = bench.ops(OpKind::Write, [0, 2]);
    ops[1].slot = None;
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| bench.submit(&ops)));
    assert!(result.is_err());
    drop(bench);
}

#[test]
fn what_is_given_up_is_answered_at_once_and_left_to_the_kernel() {
    let mut bench = bench(4);
    let dev = DevIndex::new(0);
    let ops = bench.ops(OpKind::Write, (0..6).map(|i| i * 2));
    assert_eq!(bench.submit(&ops), 4);
    // As if the device did not answer: nothing is taken from the kernel.
    let queued = bench.set.queued.len();
    bench.set.give_up(dev);
    assert_eq!((bench.set.ready.len(), queued), (4, 2));
    assert_eq!((bench.set.table.in_flight(), bench.set.table.given_up()), (0, 4));
    assert!(bench.set.is_stuck(dev));
    assert_eq!(bench.set.buffers.free_count(), 4, "others take the place of what the kernel keeps");

    // Its place is taken while the kernel still has writes for it; it stays locked.
    let path = bench.set.members().get(dev).unwrap().path().to_owned();
    let other = path.with_file_name("other");
    create_file(&other, 1 << 20, Existing::Refuse).unwrap();
    bench.set.queued.clear();
    bench.set.ready.clear();
    bench.set.replace(dev, &other).unwrap();
    assert!(bench.set.lingering.len() == 1 && std::fs::File::open(&path).unwrap().try_lock().is_err());
    let ops = bench.ops(OpKind::Write, (20..24).map(|i| i * 2));
    bench.set.submit(&mut bench.pool, &ops);
    assert!(bench.results(4).iter().all(|(_, result)| result.is_ok()));
    while bench.set.table.given_up() > 0 {
        bench.set.ring.submit_and_wait(1).unwrap();
        bench.set.poll(&mut bench.pool, &mut Vec::new());
    }
    assert!(bench.set.lingering.is_empty() && std::fs::File::open(&path).unwrap().try_lock().is_ok());
    assert_eq!(bench.set.buffers.free_count(), 8);
}

#[test]
fn neighbours_of_other_streams_are_not_one_transfer() {
    let contents = [Stream::Data, Stream::Data, Stream::Parity, Stream::Log, Stream::Log, Stream::Metadata];
    for (offered, transfers) in [(0, 1), (2, 2), (8, 4)] {
        let mut bench = bench(16);
        bench.set.states[0].streams = WriteStreams::new(offered);
        let mut ops = bench.ops(OpKind::Write, 0..6);
        ops.iter_mut().zip(contents).for_each(|(op, content)| op.stream = content);
        assert_eq!(bench.submit(&ops), transfers, "{offered} streams");
        // A file takes them and does not mind.
        assert!(bench.results(6).iter().all(|(_, result)| result.is_ok()));
        assert_eq!(bench.set.states[0].streams.count(), offered);
    }
}

#[test]
fn a_drive_that_refuses_streams_is_written_to_without_them() {
    let mut bench = bench(16);
    bench.set.states[0].streams = WriteStreams::new(8);
    let ops = bench.ops(OpKind::Write, 0..3);
    assert_eq!(bench.submit(&ops), 1);
    bench.pretend(-libc::EINVAL);
    assert_eq!(bench.set.states[0].streams.count(), 0);
    bench.set.enter();
    assert_eq!(bench.results(3), [(0, Ok(())), (1, Ok(())), (2, Ok(()))]);
    // Without a stream it is the write that is refused.
    let ops = bench.ops(OpKind::Write, 4..5);
    bench.submit(&ops);
    bench.pretend(-libc::EINVAL);
    assert_eq!(bench.results(1), [(4, Err(IoFault::Device { errno: libc::EINVAL }))]);
}
