//! Requests cross and come back, whoever sleeps when.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use crate::memory::MemoryVolume;
use crate::{Done, Volume, VolumeRequest};
use block::{Durability, Interleave, Slot};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const CHUNK: usize = 4096;

/// Waits for an event, ten seconds at most.
fn sleep_on(event: BorrowedFd<'_>) {
    let patience = Timespec { tv_sec: 10, tv_nsec: 0 };
    let events = poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&patience)).unwrap();
    assert_eq!(events, 1, "nobody rang for ten seconds");
}

/// Serves shards in memory, of a volume of so many, to landings until told to stop.
fn attend(
    mut shards: Vec<MemoryVolume>,
    count: usize,
    mut landings: Vec<Landing>,
    bell: &Bell,
    stop: &AtomicBool,
) {
    while !stop.load(Ordering::Acquire) {
        for landing in &mut landings {
            while let Some(ask) = landing.next_ask() {
                let volume = &mut shards[usize::from(ask.shard) % count];
                landing.answer(volume.answer(ask));
            }
            while let Some(ask) = landing.next_extents_ask() {
                let (mut extents, share) = (Vec::new(), ask.share);
                let volume = &shards[usize::from(share.shard) % count];
                volume.allocated(share.offset_bytes, share.length_bytes, &mut extents);
                ask.answer.send(extents).unwrap();
            }
            landing.tell();
        }
        bell.doze();
        if !landings.iter().any(|landing| landing.has_asks() || landing.is_full()) {
            sleep_on(bell.as_fd());
        }
        bell.wake();
    }
}

/// Drives the remote side until something has ended.
fn ended(remote: &mut RemoteVolume) -> Vec<Done> {
    let mut done = Vec::new();
    loop {
        remote.drive(&mut done);
        if !done.is_empty() {
            return done;
        }
        if remote.idle_for().is_none() {
            sleep_on(remote.wake_fd().unwrap());
        }
    }
}

/// Writes and reads back chunks of its own with `depth` requests in flight.
fn use_it(remote: &mut RemoteVolume, first_chunk: u64, chunks: u64, depth: usize) {
    let mark = |chunk: u64| u8::try_from(chunk % 251).unwrap();
    for write in [true, false] {
        let (mut next, mut open) = (0, Vec::<(u64, Slot)>::new());
        while next < chunks || !open.is_empty() {
            while open.len() < depth && next < chunks {
                let slot = remote.pool().alloc().unwrap();
                let (chunk, length_bytes) = (first_chunk + next, CHUNK as u64);
                let offset_bytes = chunk * length_bytes;
                remote.pool().bytes_mut(slot).fill(if write { mark(chunk) } else { 0xff });
                let request = match write {
                    true => {
                        VolumeRequest::Write { offset_bytes, length_bytes, durability: Durability::Volatile }
                    }
                    false => VolumeRequest::Read { offset_bytes, length_bytes },
                };
                remote.start(chunk, request, &[slot]);
                open.push((chunk, slot));
                next += 1;
            }
            for Done { tag, result } in ended(remote) {
                assert_eq!(result, Ok(()));
                let at = open.iter().position(|&(chunk, _)| chunk == tag).unwrap();
                let (chunk, slot) = open.swap_remove(at);
                assert!(remote.pool().bytes(slot).iter().all(|&byte| byte == mark(chunk)));
                remote.pool().free(slot);
            }
        }
    }
    remote.start(0, VolumeRequest::Flush, &[]);
    assert_eq!(ended(remote), [Done { tag: 0, result: Ok(()) }]);
}

/// Threads of sockets, each of which uses a part of a volume; its shards take turns on so many threads.
fn two_users(shard_count: u16, thread_count: usize) {
    let (unit_bytes, shard_bytes) = (1 << 20, 16u64.div_ceil(shard_count.into()) << 20);
    let map = Interleave::new(shard_count, unit_bytes, shard_bytes);
    let shape = Shape { map, chunk_bytes: CHUNK, untorn_bytes: 0, read_only: false };
    let size = Arc::new(Size::new(map.volume_bytes()));
    let bells: Vec<_> = (0..thread_count).map(|_| Arc::new(Bell::new().unwrap())).collect();
    let mut landings: Vec<Vec<Landing>> = (0..thread_count).map(|_| Vec::new()).collect();
    let mut remotes: Vec<RemoteVolume> =
        (0..2).map(|_| RemoteVolume::new(shape, Arc::clone(&size)).unwrap()).collect();
    for remote in &mut remotes {
        for (thread, (bell, landings)) in bells.iter().zip(&mut landings).enumerate() {
            let own = (thread..shard_count.into()).step_by(thread_count);
            landings.push(remote.connect(own, bell));
        }
    }
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        for (bell, landings) in bells.iter().zip(landings) {
            // Each thread has room for all shards: which of them are its own is the map's business.
            let shard = || MemoryVolume::new(usize::try_from(shard_bytes).unwrap(), CHUNK, 64);
            let shards = (0..shard_count).map(|_| shard()).collect();
            scope.spawn(move || attend(shards, shard_count.into(), landings, bell, stop));
        }
        let clients: Vec<_> = remotes
            .iter_mut()
            .zip(0..)
            .map(|(remote, number)| {
                scope.spawn(move || {
                    // Alone, everybody sleeps all the time; in a crowd hardly anybody does.
                    use_it(remote, number * 2048, 300, 1);
                    use_it(remote, number * 2048, 1500, 37);
                    let mut extents = Vec::new();
                    remote.allocated(number * 2048 * CHUNK as u64, 2048 * CHUNK as u64, &mut extents);
                    assert_eq!(extents, [(1500 * CHUNK as u64, false), (548 * CHUNK as u64, true)]);
                    // Two units and a half: all shards have a share, and answer once.
                    let (offset_bytes, length_bytes) = (number * 2048 * CHUNK as u64, 640 * CHUNK as u64);
                    let discard = VolumeRequest::Discard {
                        offset_bytes,
                        length_bytes,
                        durability: Durability::Volatile,
                    };
                    remote.start(7, discard, &[]);
                    assert_eq!(ended(remote), [Done { tag: 7, result: Ok(()) }]);
                    extents.clear();
                    remote.allocated(offset_bytes, 1500 * CHUNK as u64, &mut extents);
                    assert_eq!(extents, [(640 * CHUNK as u64, true), (860 * CHUNK as u64, false)]);
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        stop.store(true, Ordering::Release);
        bells.iter().for_each(|bell| bell.ring_anyway());
    });
}

#[test]
fn two_threads_of_sockets_use_one_volume() {
    two_users(1, 1);
}

#[test]
fn shards_of_a_volume_are_on_several_threads() {
    two_users(2, 2);
    two_users(4, 2);
    two_users(3, 1);
}

/// Nobody sleeps here, so that it runs under Miri, too (`scripts/race-detector.sh`).
#[test]
fn what_crosses_is_whole_and_comes_back() {
    const COUNT: u8 = 40;
    let [far, own] = [(); 2].map(|()| Arc::new(Bell::new().unwrap()));
    let (mut lane, mut landing) = lane::Lane::new(far, own);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut answered = 0;
            while !landing.tell() || answered < COUNT {
                while let Some(Ask { tag, mut buffers, .. }) = landing.next_ask() {
                    assert_eq!((tag, &*buffers[0]), (answered.into(), &[answered; 16][..]));
                    buffers[0].fill(answered + 100);
                    landing.answer(Answer { tag, result: Ok(()), buffers });
                    answered += 1;
                }
                thread::yield_now();
            }
        });
        for tag in 0..COUNT {
            let mut buffer = Buffer::new(16);
            buffer.fill(tag);
            let buffers = vec![buffer];
            lane.push(Ask { tag: tag.into(), shard: 0, request: VolumeRequest::Flush, buffers });
        }
        let mut found = 0;
        while found < COUNT {
            while let Some(Answer { tag, buffers, .. }) = lane.next_answer() {
                assert_eq!((tag, &*buffers[0]), (found.into(), &[found + 100; 16][..]));
                found += 1;
            }
            lane.tell();
            thread::yield_now();
        }
    });
}

#[test]
fn who_is_awake_is_not_rung() {
    let bell = Bell::new().unwrap();
    bell.ring();
    assert_eq!(rustix::io::read(&bell, &mut [0; 8]), Err(rustix::io::Errno::AGAIN));
    bell.doze();
    bell.ring();
    bell.ring();
    sleep_on(bell.as_fd());
    bell.wake();
    assert_eq!(rustix::io::read(&bell, &mut [0; 8]), Err(rustix::io::Errno::AGAIN), "it is silent again");
}

#[test]
fn a_bell_that_nobody_rang_is_not_read() {
    let bell = Bell::new().unwrap();
    let is_silent = || rustix::io::read(&bell, &mut [0; 8]) == Err(rustix::io::Errno::AGAIN);
    // Whatever reads the event would take this out of it.
    rustix::io::write(&bell, &1u64.to_ne_bytes()).unwrap();
    bell.doze();
    bell.wake();
    assert!(!is_silent(), "it was read, though nobody rang");
    bell.doze();
    bell.ring();
    bell.ring_anyway();
    bell.wake();
    assert!(is_silent(), "both rings were taken");
    // Nor afterwards.
    rustix::io::write(&bell, &1u64.to_ne_bytes()).unwrap();
    bell.wake();
    assert!(!is_silent(), "what was taken is not waited for");
}
