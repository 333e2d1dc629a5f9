//! A shard whose thread stands still keeps its own requests waiting and nobody else's, whatever clients send
//! to it; once it goes on, all of them are answered.

use crate::common::{Running, TestClient, noise};
use block::{Durability, Interleave};
use front::memory::MemoryVolume;
use front::nbd::wire::Command;
use front::{Bell, Done, Landing, Limits, RemoteVolume, Shape, Size, Volume, VolumeRequest};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const CHUNK: usize = 4096;
const UNIT: u64 = 1 << 20;
const SHARD_BYTES: u64 = 32 << 20;

fn sleep_on(event: BorrowedFd<'_>, ms: i64) {
    let patience = Timespec { tv_sec: 0, tv_nsec: ms * 1_000_000 };
    poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&patience)).unwrap();
}

/// What the threads of the shards share with the test.
#[derive(Default)]
struct Control {
    /// The first shard works.
    goes_on: AtomicBool,
    stop: AtomicBool,
    /// Requests that each has answered.
    answered: [AtomicUsize; 2],
}

/// Carries out what is asked of a shard, in memory.
fn attend(shard: usize, mut landing: Landing, bell: &Bell, control: &Control) {
    let mut volume = MemoryVolume::new(usize::try_from(SHARD_BYTES).unwrap(), CHUNK, 512);
    while !control.stop.load(Ordering::Acquire) {
        let stands_still = shard == 0 && !control.goes_on.load(Ordering::Acquire);
        while let Some(ask) = if stands_still { None } else { landing.next_ask() } {
            landing.answer(volume.answer(ask));
            control.answered[shard].fetch_add(1, Ordering::AcqRel);
        }
        while let Some(ask) = if stands_still { None } else { landing.next_extents_ask() } {
            let mut extents = Vec::new();
            volume.allocated(ask.share.offset_bytes, ask.share.length_bytes, &mut extents);
            let _ = ask.answer.send(extents); // whoever asked may have lost patience
        }
        landing.tell();
        if stands_still {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        bell.doze();
        if !landing.has_asks() && !landing.is_full() {
            sleep_on(bell.as_fd(), 50);
        }
        bell.wake();
    }
}

/// A volume of two shards, each on a thread; the first stands still.
fn two_shards() -> (RemoteVolume, Arc<Control>, Vec<JoinHandle<()>>) {
    let map = Interleave::new(2, UNIT, SHARD_BYTES);
    let shape = Shape { map, chunk_bytes: CHUNK, untorn_bytes: 0, read_only: false };
    let mut remote = RemoteVolume::new(shape, Arc::new(Size::new(map.volume_bytes()))).unwrap();
    let control = Arc::new(Control::default());
    let threads = (0..2).map(|shard| {
        let bell = Arc::new(Bell::new().unwrap());
        let landing = remote.connect([shard], &bell);
        let control = Arc::clone(&control);
        std::thread::spawn(move || attend(shard, landing, &bell, &control))
    });
    let threads = threads.collect();
    (remote, control, threads)
}

fn stop(control: &Control, threads: Vec<JoinHandle<()>>) {
    control.stop.store(true, Ordering::Release);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Where block `number` of 64 KiB of a shard lies in the volume.
fn place(shard: u64, number: u64) -> u64 {
    let (unit, within) = (number / 16, number % 16);
    (unit * 2 + shard) * UNIT + within * (64 << 10)
}

#[test]
fn clients_of_other_shards_go_on() {
    const BLOCKS: u64 = 400;
    let (remote, control, threads) = two_shards();
    let server = Running::start(remote, Limits::default());
    // More than their share of buffers, so that both must wait in the end.
    let floods: Vec<_> = (0..2u64)
        .map(|flood| {
            let mut client = TestClient::connect(&server.socket);
            std::thread::spawn(move || {
                let mut writer = TestClient(client.0.try_clone().unwrap());
                let writes = std::thread::spawn(move || {
                    for number in (flood..BLOCKS).step_by(2) {
                        let data = noise(number, 64 << 10);
                        writer.send(Command::Write, number, place(0, number), 64 << 10, &data);
                    }
                });
                let replies = (flood..BLOCKS).step_by(2).map(|_| client.reply());
                let mut replies: Vec<_> = replies.collect();
                writes.join().unwrap();
                replies.sort_unstable();
                assert!(replies.into_iter().eq((flood..BLOCKS).step_by(2).map(|number| (0, number))));
            })
        })
        .collect();
    let mut other = TestClient::connect(&server.socket);
    other.0.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    for number in 0..BLOCKS {
        other.write(place(1, number), &noise(number + BLOCKS, 64 << 10));
    }
    for number in 0..BLOCKS {
        assert!(other.read(place(1, number), 64 << 10) == noise(number + BLOCKS, 64 << 10), "block {number}");
    }
    let answered = || [0, 1].map(|shard| control.answered[shard].load(Ordering::Acquire));
    assert_eq!(answered(), [0, 2 * usize::try_from(BLOCKS).unwrap()], "the first stood still all the time");
    control.goes_on.store(true, Ordering::Release);
    floods.into_iter().for_each(|flood| flood.join().unwrap());
    for number in 0..BLOCKS {
        assert!(other.read(place(0, number), 64 << 10) == noise(number, 64 << 10), "block {number}");
    }
    drop(other);
    server.stop();
    stop(&control, threads);
}

/// What takes no buffers, more of it than the queue has room for.
#[test]
fn a_full_queue_of_one_shard_is_not_in_the_way_of_another() {
    const DISCARDS: u64 = 10_000;
    let (mut remote, control, threads) = two_shards();
    let discard = |shard: u64| VolumeRequest::Discard {
        offset_bytes: shard * UNIT,
        length_bytes: 4096,
        durability: Durability::Volatile,
    };
    let mut done = Vec::new();
    let mut ended = |remote: &mut RemoteVolume, count: u64| {
        let mut tags = Vec::new();
        while (tags.len() as u64) < count {
            remote.drive(&mut done);
            let before = tags.len();
            tags.extend(done.drain(..).map(|Done { tag, result }| {
                assert_eq!(result, Ok(()));
                tag
            }));
            if tags.len() == before && remote.idle_for().is_none() {
                sleep_on(remote.wake_fd().unwrap(), 100);
            }
        }
        tags.sort_unstable();
        tags
    };
    (0..DISCARDS).for_each(|tag| remote.start(tag, discard(0), &[]));
    for tag in DISCARDS..2 * DISCARDS {
        remote.start(tag, discard(1), &[]);
        assert_eq!(ended(&mut remote, 1), [tag]);
    }
    // What it has is not known, and only the first who asks waits for that.
    let (asked, mut extents) = (Instant::now(), Vec::new());
    for _ in 0..30 {
        extents.clear();
        remote.allocated(0, 2 * UNIT, &mut extents);
        assert_eq!(extents, [(UNIT, false), (UNIT, true)], "data, and what the other shard says");
    }
    assert!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());
    control.goes_on.store(true, Ordering::Release);
    assert!(ended(&mut remote, DISCARDS).into_iter().eq(0..DISCARDS), "each is answered, once");
    stop(&control, threads);
}
