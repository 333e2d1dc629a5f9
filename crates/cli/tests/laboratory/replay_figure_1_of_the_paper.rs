//! B-05: the worked example of the paper's Figure 1. Two stripes A, B, C + parity on four SSDs hold
//! data; {B0, C0} and {A1} are updated, which lie on three SSDs. EPLOG reads nothing and writes four
//! chunks: the three, and one log chunk. Original parity logging: three reads and five writes, two of
//! them to the log device.
#![allow(clippy::unwrap_used, reason = "tests")]

use array::{Array, CreateOptions, EngineOptions, NewArray, arrange, create, plan_config};
use block::{DevIndex, DeviceSet, Durability, Geometry, Lcn, Stream, StripeId};
use device::{Counting, DeviceCounters, MemorySet};
use format::{ArrayUuid, CodeKind, Consistency, LayoutKind, SUPERBLOCK_OFFSETS, SchemeKind, Superblock};

const CHUNK: u64 = 4096;
const SSDS: u16 = 4;

fn new_array(scheme: SchemeKind, logs: usize) -> Array<Counting<MemorySet>> {
    let options = CreateOptions {
        scheme,
        code: CodeKind::Xor,
        layout: LayoutKind::Spread,
        consistency: Consistency::Resync,
        geometry: Geometry::new(3, 1, CHUNK).unwrap(),
        reserve_permille: 100,
        unit_rows: None,
    };
    let bytes = 32 << 20;
    let config = plan_config(&options, bytes, bytes, logs).unwrap();
    let mut devices = MemorySet::new(&vec![bytes; usize::from(SSDS) + logs]).unwrap();
    let new = NewArray { uuid: ArrayUuid::new([1; 16]), name: String::new(), nonce: 1, created_unix_s: 0 };
    create(&mut devices, config, &new).unwrap();
    let superblocks: Vec<Superblock> = (0..SSDS + logs as u16)
        .map(|dev| {
            let mut block = [0; 4096];
            devices.read_now(DevIndex::new(dev), SUPERBLOCK_OFFSETS[0], &mut block).unwrap();
            Superblock::decode(&block, 0).unwrap()
        })
        .collect();
    let mut engine = EngineOptions::default();
    engine.commit.idle_ns = None;
    Array::assemble(Counting::new(devices), &arrange(&superblocks).unwrap(), 2, engine).unwrap().0
}

/// Writes runs of chunks, all queued at the same moment, and waits.
fn write(array: &mut Array<Counting<MemorySet>>, runs: &[(u64, u64)], byte: u8) {
    let mut all = Vec::new();
    for (&(first, count), tag) in runs.iter().zip(0..) {
        let mut slots = Vec::new();
        assert!(array.engine().take_slots(usize::try_from(count).unwrap(), &mut slots));
        slots.iter().for_each(|&slot| array.engine().pool().bytes_mut(slot).fill(byte));
        array.engine().write(tag, first * CHUNK, count * CHUNK, &slots, Durability::Volatile);
        all.extend(slots);
    }
    array.settle();
    let mut done = Vec::new();
    array.take_answers(&mut done);
    assert_eq!(done.len(), runs.len());
    assert!(done.iter().all(|done| done.result.is_ok()));
    all.into_iter().for_each(|slot| array.engine().pool().free(slot));
}

/// A second stripe whose column A lies on another SSD than B and C of stripe 0.
fn second_stripe(array: &Array<Counting<MemorySet>>) -> u64 {
    let layout = &array.engine_ref().store().layout;
    let taken = [1, 2].map(|lcn| layout.device_of(Lcn::new(lcn)));
    (1..100).find(|&stripe| !taken.contains(&layout.device(StripeId::new(stripe), 0))).unwrap()
}

fn update(scheme: SchemeKind, logs: usize) -> DeviceCounters {
    let mut array = new_array(scheme, logs);
    let other = second_stripe(&array);
    write(&mut array, &[(0, 3)], 1);
    write(&mut array, &[(3 * other, 3)], 1);
    array.devices().reset();
    write(&mut array, &[(1, 2), (3 * other, 1)], 2);
    array.devices_ref().total()
}

fn chunks(bytes: [u64; 4], stream: Stream) -> u64 {
    bytes[stream.index()] / CHUNK
}

#[test]
fn eplog_reads_nothing_and_writes_four_chunks() {
    let counted = update(SchemeKind::Eplog, 1);
    assert_eq!(counted.read_ops_all(), 0);
    assert_eq!(chunks(counted.write_bytes, Stream::Data), 3);
    assert_eq!(chunks(counted.write_bytes, Stream::Log), 1);
    assert_eq!(chunks(counted.write_bytes, Stream::Parity), 0);
    assert_eq!(counted.write_ops[Stream::Data.index()] + counted.write_ops[Stream::Log.index()], 4);
}

/// Conventional RAID on the same example: {B0, C0} is cheapest as a reconstruct-write (reads A0), {A1} as
/// either way with two reads; one parity write each.
#[test]
fn raid_reads_three_and_writes_five() {
    let counted = update(SchemeKind::Raid, 0);
    let reads = chunks(counted.read_bytes, Stream::Data) + chunks(counted.read_bytes, Stream::Parity);
    assert_eq!(reads, 3);
    assert_eq!(chunks(counted.write_bytes, Stream::Data), 3);
    assert_eq!(chunks(counted.write_bytes, Stream::Parity), 2);
}

/// Original parity logging reads the old version of the three chunks and logs a chunk for each of
/// the two stripes.
#[test]
fn parity_log_reads_three_and_writes_five() {
    let counted = update(SchemeKind::ParityLog, 1);
    assert_eq!(chunks(counted.read_bytes, Stream::Data), 3);
    assert_eq!(chunks(counted.read_bytes, Stream::Parity) + chunks(counted.read_bytes, Stream::Log), 0);
    assert_eq!(chunks(counted.write_bytes, Stream::Data), 3);
    assert_eq!(chunks(counted.write_bytes, Stream::Log), 2);
    assert_eq!(chunks(counted.write_bytes, Stream::Parity), 0);
}
