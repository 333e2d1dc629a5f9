//! Arrays of several shards: each is an array of its own on its slices, and none touches another's.

use crate::common::{create_options, options};
use array::{Array, AssembleError, CreateError, NewArray, arrange, create_shards, plan_shards};
use block::{DevIndex, DeviceSet, Durability, Slice, Slot};
use device::MemorySet;
use format::{ArrayConfig, ArrayUuid, SUPERBLOCK_OFFSETS, SchemeKind, Superblock};

const UUID: ArrayUuid = ArrayUuid::new([7; 16]);
const SHARDS: u16 = 3;

/// An empty array of three shards, 4+2 with two log devices.
fn fresh() -> (MemorySet, ArrayConfig) {
    let options = create_options(SchemeKind::Eplog, 4, 2);
    let sizes = [[48u64 << 20; 6].as_slice(), &[36 << 20; 2]].concat();
    let config = plan_shards(&options, sizes[0], sizes[7], 2, SHARDS).unwrap();
    let mut devices = MemorySet::new(&sizes).unwrap();
    let new = NewArray { uuid: UUID, name: "test".into(), nonce: 99, created_unix_s: 0 };
    create_shards(&mut devices, &config, &new).unwrap();
    (devices, config)
}

fn slice_of<D: DeviceSet>(devices: D, config: &ArrayConfig, shard: u16) -> Slice<D> {
    Slice::new(devices, config.sibling(shard).slice_extents())
}

fn superblocks(slice: &mut dyn DeviceSet) -> Vec<Superblock> {
    let read = |index: u16| {
        Superblock::read_newest(|offset| {
            let mut block = vec![0; 4096];
            slice.read_now(DevIndex::new(index), offset, &mut block).ok().map(|()| block)
        })
    };
    (0..8).filter_map(read).collect()
}

/// Runs one shard, and stops it in order.
fn with_shard(
    devices: &mut MemorySet,
    config: &ArrayConfig,
    shard: u16,
    work: impl FnOnce(&mut Array<Slice<&mut MemorySet>>),
) {
    let mut slice = slice_of(devices, config, shard);
    let arrangement = arrange(&superblocks(&mut slice)).unwrap();
    assert_eq!(arrangement.newest.array, UUID.of_shard(shard));
    assert_eq!(arrangement.newest.config.shard, config.shard.sibling(shard));
    let (mut array, _) = Array::assemble(slice, &arrangement, 5, options()).unwrap();
    work(&mut array);
    array.stop().unwrap();
}

/// What a chunk of a shard is filled with.
fn mark(shard: u16, chunk: u64) -> u8 {
    u8::try_from(u64::from(shard) * 50 + chunk % 50 + 1).unwrap()
}

fn slot_for<D: DeviceSet>(array: &mut Array<D>) -> Slot {
    let mut slots = Vec::new();
    assert!(array.engine().take_slots(1, &mut slots));
    slots[0]
}

fn fill<D: DeviceSet>(array: &mut Array<D>, chunk: u64, byte: u8) {
    let slot = slot_for(array);
    array.engine().pool().bytes_mut(slot).fill(byte);
    array.run(|engine, tag| engine.write(tag, chunk * 4096, 4096, &[slot], Durability::Durable)).unwrap();
    array.engine().pool().free(slot);
}

fn byte_at<D: DeviceSet>(array: &mut Array<D>, chunk: u64) -> u8 {
    let slot = slot_for(array);
    array.run(|engine, tag| engine.read(tag, chunk * 4096, 4096, &[slot])).unwrap();
    let bytes = array.engine().pool().bytes(slot);
    assert!(bytes.iter().all(|&byte| byte == bytes[0]));
    let byte = bytes[0];
    array.engine().pool().free(slot);
    byte
}

#[test]
fn shards_keep_to_their_slices() {
    let (mut devices, config) = fresh();
    let chunks = config.volume_bytes() / 4096;
    for shard in 0..SHARDS {
        with_shard(&mut devices, &config, shard, |array| {
            (0..chunks).step_by(7).for_each(|chunk| fill(array, chunk, mark(shard, chunk)));
            array.run(|engine, tag| engine.commit(tag)).unwrap();
        });
    }
    for shard in (0..SHARDS).rev() {
        with_shard(&mut devices, &config, shard, |array| {
            for chunk in 0..chunks {
                let expected = if chunk % 7 == 0 { mark(shard, chunk) } else { 0 };
                assert_eq!(byte_at(array, chunk), expected, "chunk {chunk} of shard {shard}");
            }
        });
    }
}

#[test]
fn one_shards_blocks_are_not_anothers() {
    let (mut devices, config) = fresh();
    let (from, to) = (config.sibling(1), config.sibling(2));
    for index in 0..8 {
        let dev = DevIndex::new(index);
        for offset in SUPERBLOCK_OFFSETS {
            let mut block = vec![0; 4096];
            devices.read_now(dev, from.slice_origin(dev) + offset, &mut block).unwrap();
            if index == 3 {
                devices.write_now(dev, to.slice_origin(dev) + offset, &block).unwrap();
            }
        }
    }
    let found = superblocks(&mut slice_of(&mut devices, &config, 2));
    assert!(matches!(arrange(&found), Err(AssembleError::OtherArray { index: 3, .. })));
}

/// A device that writes the superblock of one shard into the slice of another hurts itself, not the array.
#[test]
fn a_superblock_led_astray_does_not_count() {
    let (mut devices, config) = fresh();
    // Shard 1 has been started and stopped: its superblock is newer than that of shard 2.
    with_shard(&mut devices, &config, 1, |array| fill(array, 0, 1));
    let dev = DevIndex::new(3);
    let (from, to) = (config.sibling(1).slice_origin(dev), config.sibling(2).slice_origin(dev));
    let newest = superblocks(&mut slice_of(&mut devices, &config, 1))[dev.index()].config_seq;
    let offset = SUPERBLOCK_OFFSETS[usize::try_from(newest % 2).unwrap()];
    let mut block = vec![0; 4096];
    devices.read_now(dev, from + offset, &mut block).unwrap();
    devices.write_now(dev, to + offset, &block).unwrap();
    let mut slice = slice_of(&mut devices, &config, 2);
    let found = superblocks(&mut slice);
    assert_eq!(found[dev.index()].array, UUID.of_shard(1), "the newest of what is there is not its own");
    assert!(matches!(arrange(&found), Err(AssembleError::OtherArray { index: 3, .. })));
    let own = |index: u16| {
        Superblock::read_newest_of(UUID.of_shard(2), |offset| {
            let mut block = vec![0; 4096];
            slice.read_now(DevIndex::new(index), offset, &mut block).ok().map(|()| block)
        })
    };
    let found: Vec<Superblock> = (0..8).filter_map(own).collect();
    assert_eq!(found.len(), 8, "the other copy is there");
    assert!(arrange(&found).is_ok_and(|arrangement| arrangement.places.iter().all(Option::is_some)));
}

#[test]
fn what_cannot_be_cut_up_is_refused() {
    let options = create_options(SchemeKind::Eplog, 4, 2);
    let plan = |main_mib: u64, count| plan_shards(&options, main_mib << 20, 36 << 20, 2, count);
    assert!(matches!(plan(48, 0), Err(CreateError::ShardCount { found: 0 })));
    assert!(matches!(plan(48, 65), Err(CreateError::ShardCount { found: 65 })));
    assert!(matches!(plan(48, 30), Err(CreateError::TooSmall { .. })));
    assert!(plan(48, 1).is_ok_and(|config| !config.shard.is_one_of_several()));
}
