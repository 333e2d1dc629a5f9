//! Shards on threads of their own: looked after from another, and what becomes of the array if one dies.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use array::{CreateOptions, EngineOptions, NewArray, RESERVE_PERMILLE_DEFAULT, plan_shards};
use block::{Durability, Geometry};
use device::{Existing, Membership as _, create_file};
use format::{CodeKind, Consistency, LayoutKind, SchemeKind};
use front::{Done, Volume, VolumeRequest};
use node::error::Error;
use node::running::{Clients, Manner, Plant};
use node::volume::Use;
use node::{assemble, create, fresh};
use std::path::{Path, PathBuf};

const CHUNK: usize = 4096;
const FILE_BYTES: u64 = 64 << 20;
const SHARDS: u16 = 3;

/// An array of three shards that two threads run.
fn plant(directory: &Path) -> Plant {
    let paths: Vec<PathBuf> = ["a", "b", "c"].map(|name| directory.join(name)).into();
    if !paths[0].exists() {
        for path in &paths {
            create_file(path, FILE_BYTES, Existing::Refuse).unwrap();
        }
        let options = CreateOptions {
            scheme: SchemeKind::Raid,
            code: CodeKind::Xor,
            layout: LayoutKind::Spread,
            consistency: Consistency::Journal,
            geometry: Geometry::new(2, 1, CHUNK as u64).unwrap(),
            reserve_permille: RESERVE_PERMILLE_DEFAULT,
            unit_rows: None,
        };
        let config = plan_shards(&options, FILE_BYTES, 0, 0, SHARDS).unwrap();
        let (uuid, nonce) = (fresh::uuid().unwrap(), fresh::number().unwrap());
        let new = NewArray { uuid, name: String::new(), nonce, created_unix_s: 0 };
        create::create(&paths, config, &new, || Ok::<_, Error>(())).unwrap();
    }
    let shards = assemble::assemble(&paths, EngineOptions::default()).unwrap().shards;
    let manner = Manner { usage: Use::ReadWrite, clients: Clients::Here, threads: 2 };
    Plant::new(shards, manner).unwrap()
}

/// Waits for the end of the only request under way.
fn ended(plant: &mut Plant) -> Done {
    let mut done = Vec::new();
    while done.is_empty() {
        plant.drive(&mut done);
        std::thread::yield_now();
    }
    done[0]
}

/// Writes a chunk of each of the first units, or finds it there.
fn each_unit(plant: &mut Plant, write: bool) {
    let unit_bytes = plant.unit_bytes().unwrap();
    for unit in 0..6u8 {
        let slot = plant.pool().alloc().unwrap();
        plant.pool().bytes_mut(slot).fill(if write { unit + 1 } else { 0 });
        let (offset_bytes, length_bytes) = (u64::from(unit) * unit_bytes, CHUNK as u64);
        let request = match write {
            true => VolumeRequest::Write { offset_bytes, length_bytes, durability: Durability::Durable },
            false => VolumeRequest::Read { offset_bytes, length_bytes },
        };
        plant.start(1, request, &[slot]);
        assert_eq!(ended(plant), Done { tag: 1, result: Ok(()) });
        assert!(plant.pool().bytes(slot).iter().all(|&byte| write || byte == unit + 1));
        plant.pool().free(slot);
    }
}

#[test]
fn they_are_looked_after_from_another_and_stop_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let mut plant = plant(directory.path());
    each_unit(&mut plant, true);
    let written = plant
        .visit(|running| {
            // The shards are here in their order, their devices where they were.
            let indices: Vec<u16> =
                running.engines().map(|engine| engine.store().config.shard.index).collect();
            assert_eq!(indices, [0, 1, 2]);
            for shard in 0..running.shard_count() {
                let names = running.with_devices(shard, move |devices| {
                    assert_eq!(devices.members().count(), 3);
                    std::thread::current().name().map(str::to_owned)
                });
                assert_eq!(names.unwrap().unwrap(), format!("shards {}", shard % 2));
            }
            running.members().map(|dev| running.traffic_of(dev).write_bytes_all()).sum::<u64>()
        })
        .unwrap();
    assert!(written >= 12 * CHUNK as u64, "six chunks and their parity: {written}");
    each_unit(&mut plant, false);
    plant.stop().unwrap();
    let mut again = self::plant(directory.path());
    each_unit(&mut again, false);
    again.stop().unwrap();
}

#[test]
fn one_that_dies_is_noticed_and_costs_nothing_that_was_durable() {
    let directory = tempfile::tempdir().unwrap();
    let mut plant = plant(directory.path());
    each_unit(&mut plant, true);
    plant.visit(|_| ()).unwrap();
    let visited = plant.visit(|running| {
        assert!(matches!(running.with_devices(1, |_| panic!("a bug, on purpose")), Err(Error::ShardThread)));
    });
    // Whoever looks after the array comes to look.
    while visited.is_ok() && !plant.has_news() {
        std::thread::yield_now();
    }
    assert!(matches!(plant.visit(|_| ()), Err(Error::ShardThread)));
    assert!(matches!(plant.stop(), Err(Error::ShardThread)));
    let mut again = self::plant(directory.path());
    each_unit(&mut again, false);
    again.stop().unwrap();
}
