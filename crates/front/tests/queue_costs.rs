//! What a request costs on its way between the thread of its client and that of its shard, counted: entries
//! of queues, lines of the cache that these take, bells rung, heap allocations (docs/decisions/0032).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod counting;

use block::{Durability, Interleave};
use counting::allocations;
use front::{Answer, Ask, Bell, Landing, RemoteVolume, Shape, Size, Volume, VolumeRequest};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

const CHUNK: u64 = 4096;

/// How often a bell was rung since it was asked last.
fn rung(event: BorrowedFd<'_>) -> u64 {
    let mut count = [0; 8];
    match rustix::io::read(event, &mut count) {
        Ok(_) => u64::from_ne_bytes(count),
        Err(error) => {
            assert_eq!(error, Errno::AGAIN);
            0
        }
    }
}

/// Takes what was asked and answers it, as a shard that has nothing to do; how many entries there were.
fn answer_all(landing: &mut Landing) -> usize {
    let mut entries = 0;
    while let Some(Ask { tag, buffers, .. }) = landing.next_ask() {
        landing.answer(Answer { tag, result: Ok(()), buffers });
        entries += 1;
    }
    assert!(landing.tell(), "the queue has room");
    entries
}

#[test]
fn an_entry_each_way_a_bell_for_a_batch_and_no_allocation() {
    const BATCH: u64 = 32;
    let map = Interleave::new(2, 1 << 20, 16 << 20);
    let shape = Shape { map, chunk_bytes: 4096, untorn_bytes: 0, read_only: false };
    let mut remote = RemoteVolume::new(shape, Arc::new(Size::new(map.volume_bytes()))).unwrap();
    let bells = [0, 1].map(|_| Arc::new(Bell::new().unwrap()));
    let mut landings = [0, 1].map(|shard| remote.connect([shard], &bells[shard]));
    let (mut slots, mut done) = (Vec::new(), Vec::new());
    let mut found = Vec::with_capacity(16);
    for round in 0..8 {
        let before = allocations();
        // Writes of one chunk, all to the first shard.
        slots.extend((0..BATCH).map(|_| remote.pool().alloc().unwrap()));
        bells[0].doze();
        for (&slot, tag) in slots.iter().zip(0..) {
            let offset_bytes = tag * CHUNK;
            let write =
                VolumeRequest::Write { offset_bytes, length_bytes: CHUNK, durability: Durability::Volatile };
            remote.start(tag, write, &[slot]);
        }
        remote.drive(&mut done);
        let there = rung(bells[0].as_fd());
        bells[0].wake();
        assert_eq!(remote.idle_for(), None, "it sleeps");
        let writes = answer_all(&mut landings[0]);
        let back = rung(remote.wake_fd().unwrap());
        remote.drive(&mut done);
        assert_eq!((done.len() as u64, done.iter().all(|done| done.result.is_ok())), (BATCH, true));
        done.clear();
        slots.drain(..).for_each(|slot| remote.pool().free(slot));
        // A flush, to shards that are awake.
        remote.start(99, VolumeRequest::Flush, &[]);
        remote.drive(&mut done);
        let flushes = [answer_all(&mut landings[0]), answer_all(&mut landings[1])];
        remote.drive(&mut done);
        assert_eq!(done.drain(..).map(|done| done.tag).collect::<Vec<_>>().as_slice(), [99]);
        let silent = rung(bells[0].as_fd()) + rung(bells[1].as_fd()) + rung(remote.wake_fd().unwrap());
        // One allocation is this test's own, of the tags above.
        found.push((writes, there, back, flushes, silent, allocations() - before - 1));
        if round >= 3 {
            assert_eq!(found[round], (32, 1, 1, [1, 1], 0, 0), "round {round}");
        }
    }
}

/// What an entry takes of the cache: a line, or two as it lies.
#[test]
fn entries_are_small() {
    assert_eq!((size_of::<Ask>(), size_of::<Answer>()), (64, 40));
}
