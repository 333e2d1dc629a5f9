//! Requests cross and come back, whoever sleeps when.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use crate::memory::MemoryVolume;
use crate::{Done, Volume, VolumeRequest};
use block::{Durability, Slot};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const CHUNK: usize = 4096;

/// Waits for an event, ten seconds at most.
fn sleep_on(event: BorrowedFd<'_>) {
    let patience = Timespec { tv_sec: 10, tv_nsec: 0 };
    let events = poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&patience)).unwrap();
    assert_eq!(events, 1, "nobody rang for ten seconds");
}

/// Serves a volume in memory to landings until told to stop.
fn attend(
    mut volume: MemoryVolume,
    mut landings: Vec<Landing>,
    bell: &Bell,
    stop: &AtomicBool,
) -> MemoryVolume {
    let (mut done, mut slots) = (Vec::new(), Vec::new());
    while !stop.load(Ordering::Acquire) {
        for landing in &mut landings {
            while let Some(Ask { tag, request, mut buffers }) = landing.next_ask() {
                slots.extend(buffers.iter().map(|buffer| {
                    let slot = volume.pool().alloc().unwrap();
                    volume.pool().bytes_mut(slot).copy_from_slice(buffer);
                    slot
                }));
                volume.start(tag.into(), request, &slots);
                volume.drive(&mut done);
                for (buffer, slot) in buffers.iter_mut().zip(slots.drain(..)) {
                    buffer.copy_from_slice(volume.pool().bytes(slot));
                    volume.pool().free(slot);
                }
                landing.answer(tag, done.pop().unwrap().result, buffers);
            }
            while let Some(ask) = landing.next_extents_ask() {
                let mut extents = Vec::new();
                volume.allocated(ask.offset_bytes, ask.length_bytes, &mut extents);
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
    volume
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

#[test]
fn two_threads_of_sockets_use_one_volume() {
    let volume = MemoryVolume::new(4096 * CHUNK, CHUNK, 64);
    let bell = Arc::new(Bell::new().unwrap());
    let stop = AtomicBool::new(false);
    let (mut remotes, landings): (Vec<_>, Vec<_>) = (0..2).map(|_| crossing(&volume, &bell).unwrap()).unzip();
    thread::scope(|scope| {
        let served = scope.spawn(|| attend(volume, landings, &bell, &stop));
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
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        stop.store(true, Ordering::Release);
        bell.ring_anyway();
        served.join().unwrap();
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
