//! Clients on the threads of the shards, while the array is looked after, and until it stops.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::{Seated, Worker};
use crate::running::crew::tests::plant_with;
use crate::running::{Clients, Plant, Running};
use crate::sockets::{ClientThreads, Sockets};
use block::{Durability, Slot};
use front::{Protocol, Server, ServerOptions, Volume, VolumeRequest};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const CHUNK: u64 = 4096;
const LONG: Duration = Duration::from_secs(60);

/// Carries out one request; the thread goes on with its shards meanwhile.
fn carry_out(volume: &mut impl Volume, request: VolumeRequest, slot: Slot) {
    let (mut done, until) = (Vec::new(), Instant::now() + LONG);
    volume.start(7, request, &[slot]);
    while done.is_empty() {
        volume.drive(&mut done);
        assert!(Instant::now() < until, "nobody answers {request:?}");
        std::thread::yield_now();
    }
    assert_eq!((done.len(), done[0].tag, done[0].result), (1, 7, Ok(())));
}

/// Writes a chunk of its own to each shard and reads it again, so many times.
fn write_and_read(volume: &mut impl Volume, thread: u64, rounds: u8) {
    let unit_bytes = volume.unit_bytes().unwrap();
    let slot = volume.pool().alloc().unwrap();
    for round in 0..rounds {
        for shard in 0..2 {
            let (offset_bytes, length_bytes) = (shard * unit_bytes + thread * CHUNK, CHUNK);
            volume.pool().bytes_mut(slot).fill(round ^ 0x5a);
            let durability = Durability::Durable;
            carry_out(volume, VolumeRequest::Write { offset_bytes, length_bytes, durability }, slot);
            volume.pool().bytes_mut(slot).fill(0);
            carry_out(volume, VolumeRequest::Read { offset_bytes, length_bytes }, slot);
            assert!(volume.pool().bytes(slot).iter().all(|&byte| byte == round ^ 0x5a));
        }
    }
    volume.pool().free(slot);
}

/// Has both threads do something with the volume and go on serving until told to stop; where each says that
/// it did it, and then that it has stopped.
fn seat(plant: &mut Plant, work: fn(&mut Seated<'_, Worker>, u64)) -> Vec<Receiver<&'static str>> {
    let seat = |thread: usize| {
        let stop = Arc::new(AtomicBool::new(false));
        let (own_stop, (told, seen)) = (Arc::clone(&stop), channel());
        let serve = move |volume: &mut Seated<'_, Worker>| {
            work(volume, thread as u64);
            told.send("worked").unwrap();
            let mut done = Vec::new();
            while !own_stop.load(Ordering::Acquire) {
                volume.drive(&mut done);
                std::thread::yield_now();
            }
            told.send("stopped").unwrap();
        };
        plant.serve_on(thread, stop, Box::new(serve)).unwrap();
        seen
    };
    (0..2).map(seat).collect()
}

fn shard_count(running: &mut Running) -> usize {
    running.engines().count()
}

#[test]
fn they_reach_all_shards_while_the_array_is_looked_at_and_end_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut plant = plant_with(directory.path(), Clients::Elsewhere);
    let seen = seat(&mut plant, |volume, thread| write_and_read(volume, thread, 12));
    let (mut visits, until) = (0, Instant::now() + LONG);
    let mut working = seen.len();
    while working > 0 {
        assert_eq!(plant.visit(shard_count).unwrap(), 2);
        visits += 1;
        std::thread::sleep(Duration::from_millis(1));
        working -= seen.iter().filter(|seen| seen.try_recv() == Ok("worked")).count();
        assert!(Instant::now() < until, "{working} threads are not done after {visits} visits");
    }
    assert!(visits > 1);
    plant.stop().unwrap();
    assert!(seen.iter().all(|seen| seen.recv_timeout(LONG) == Ok("stopped")), "who serves is told to stop");
}

/// A thread that lends its shards too late, when whoever looks after the array has given up waiting, and then
/// all are to stop: it gets them back, and answers what it has begun.
#[test]
fn a_thread_that_stood_still_stops_serving_like_others() {
    let directory = tempfile::tempdir().unwrap();
    let mut plant = plant_with(directory.path(), Clients::Elsewhere);
    let mut server = Server::new(ServerOptions::default());
    server.listen_unix(Protocol::Nbd, &directory.path().join("socket")).unwrap();
    let sockets = Sockets::start(ClientThreads::OfShards, &mut server, &mut plant).unwrap();
    let stand = plant.crew().unwrap().hands[1].stand_still();
    assert_eq!(plant.try_visit(shard_count).unwrap(), None);
    drop(stand);
    sockets.stop(&mut plant).unwrap();
    plant.stop().unwrap();
}

/// Each asks what lies behind ranges of the other's shard at the same time; neither waits for the other in
/// vain, which would make data of what is a hole.
#[test]
fn they_tell_each_other_what_is_a_hole() {
    static READY: AtomicUsize = AtomicUsize::new(0);
    let directory = tempfile::tempdir().unwrap();
    let mut plant = plant_with(directory.path(), Clients::Elsewhere);
    let seen = seat(&mut plant, |volume, thread| {
        write_and_read(volume, thread, 1);
        READY.fetch_add(1, Ordering::AcqRel);
        // The other may still need what this thread has.
        while READY.load(Ordering::Acquire) < 2 {
            volume.drive(&mut Vec::new());
            std::thread::yield_now();
        }
        let unit_bytes = volume.unit_bytes().unwrap();
        for _ in 0..200 {
            let mut extents = Vec::new();
            volume.allocated(0, 2 * unit_bytes, &mut extents);
            let half = [(2 * CHUNK, false), (unit_bytes - 2 * CHUNK, true)];
            assert_eq!(extents, [half, half].concat());
        }
    });
    assert!(seen.iter().all(|seen| seen.recv_timeout(LONG) == Ok("worked")));
    plant.stop().unwrap();
}
