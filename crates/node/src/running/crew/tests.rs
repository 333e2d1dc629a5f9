//! A thread that stands still while others work.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::error::Error;
use crate::running::{Clients, Manner, Plant, Running};
use crate::volume::Use;
use crate::{assemble, create, fresh};
use array::{CreateOptions, EngineOptions, NewArray, RESERVE_PERMILLE_DEFAULT, plan_shards};
use block::{Durability, Geometry};
use device::{Existing, create_file};
use format::{CodeKind, Consistency, LayoutKind, SchemeKind};
use front::{Volume as _, VolumeRequest};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const CHUNK: u64 = 4096;
const FILE_BYTES: u64 = 64 << 20;

/// An array of two shards, each on a thread.
fn plant(directory: &Path) -> Plant {
    plant_with(directory, Clients::Here)
}

/// The same, with its clients there.
pub fn plant_with(directory: &Path, clients: Clients) -> Plant {
    let paths: Vec<PathBuf> = ["a", "b", "c"].map(|name| directory.join(name)).into();
    for path in &paths {
        create_file(path, FILE_BYTES, Existing::Refuse).unwrap();
    }
    let options = CreateOptions {
        scheme: SchemeKind::Raid,
        code: CodeKind::Xor,
        layout: LayoutKind::Spread,
        consistency: Consistency::Journal,
        geometry: Geometry::new(2, 1, CHUNK).unwrap(),
        reserve_permille: RESERVE_PERMILLE_DEFAULT,
        unit_rows: None,
    };
    let config = plan_shards(&options, FILE_BYTES, 0, 0, 2).unwrap();
    let (uuid, nonce) = (fresh::uuid().unwrap(), fresh::number().unwrap());
    let new = NewArray { uuid, name: String::new(), nonce, created_unix_s: 0 };
    create::create(&paths, config, &new, || Ok::<_, Error>(())).unwrap();
    let shards = assemble::assemble(&paths, EngineOptions::default()).unwrap().shards;
    Plant::new(shards, Manner { usage: Use::ReadWrite, clients, threads: 2 }).unwrap()
}

/// Starts a write to the first unit of a shard.
fn begin(plant: &mut Plant, shard: u64) {
    let offset_bytes = shard * plant.unit_bytes().unwrap();
    let slot = plant.pool().alloc().unwrap();
    let durability = Durability::Durable;
    plant.start(shard, VolumeRequest::Write { offset_bytes, length_bytes: CHUNK, durability }, &[slot]);
}

/// The shards of which requests end within a time, until so many have.
fn ended(plant: &mut Plant, count: usize, within: Duration) -> Vec<u64> {
    let (mut done, until) = (Vec::new(), Instant::now() + within);
    while done.len() < count && Instant::now() < until {
        plant.drive(&mut done);
        std::thread::yield_now();
    }
    assert!(done.iter().all(|done| done.result.is_ok()), "{done:?}");
    done.into_iter().map(|done| done.tag).collect()
}

fn shard_count(running: &mut Running) -> usize {
    running.engines().count()
}

#[test]
fn others_are_served_and_the_array_is_looked_at_when_it_goes_on() {
    const LONG: Duration = Duration::from_secs(20);
    let directory = tempfile::tempdir().unwrap();
    let mut plant = plant(directory.path());
    let stand = plant.crew().unwrap().hands[1].stand_still();
    // Whoever wants to look is told that it cannot be, again and again; that costs the others a moment, once.
    assert_eq!(plant.try_visit(shard_count).unwrap(), None);
    assert_eq!(plant.stands_still(), Some(1));
    begin(&mut plant, 1);
    let begun = Instant::now();
    for _ in 0..50 {
        assert_eq!(plant.try_visit(shard_count).unwrap(), None);
        begin(&mut plant, 0);
        assert_eq!(ended(&mut plant, 1, LONG), [0], "the other shard is served");
    }
    assert!(begun.elapsed() < 50 * super::PATIENCE, "nobody waits for it every time");
    assert!(!plant.has_news(), "which cannot be looked at");
    drop(stand);
    let until = Instant::now() + LONG;
    let looked = loop {
        let looked = plant.try_visit(shard_count).unwrap();
        if looked.is_some() || Instant::now() >= until {
            break looked;
        }
    };
    assert_eq!((looked, plant.stands_still()), (Some(2), None), "it has lent its shards");
    assert_eq!(ended(&mut plant, 1, LONG), [1], "and what was asked of it is done");
    plant.stop().unwrap();
}

/// Whoever cannot wait is not left alone with what was lent too late.
#[test]
fn a_thread_that_stood_still_is_visited_and_stopped_like_others() {
    for visits in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let mut plant = plant(directory.path());
        let stands = [0, 1].map(|hand| plant.crew().unwrap().hands[hand].stand_still());
        assert_eq!(plant.try_visit(shard_count).unwrap(), None);
        drop(stands);
        if visits {
            assert_eq!(plant.visit(shard_count).unwrap(), 2);
            assert_eq!(plant.visit(shard_count).unwrap(), 2);
        }
        plant.stop().unwrap();
    }
}
