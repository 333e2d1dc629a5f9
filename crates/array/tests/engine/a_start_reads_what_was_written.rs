//! What a start reads follows what was written since the checkpoint, not the size of the journal.

use crate::common::{Layer, Layered, create_options, fresh, options, read, superblocks, write};
use array::{Array, arrange};
use block::{DevIndex, Durability};
use device::MemorySet;
use format::{Consistency, SchemeKind};
use std::ops::Range;

const MAIN_MIB: u64 = 96;
const CHUNK: u64 = 4096;

/// Counts bytes that are read of the rings of frames.
struct Reading {
    rings: Range<u64>,
    mains: usize,
    bytes: u64,
}

impl Layer<MemorySet> for Reading {
    fn reads_now(&mut self, dev: DevIndex, offset_bytes: u64, length: usize) {
        if dev.index() < self.mains && self.rings.contains(&offset_bytes) {
            self.bytes += length as u64;
        }
    }
}

/// Starts the array, and stops it in order if it `stops`; the members, how many bytes were read of all rings
/// together, and how many blocks each ring has.
fn start(mut devices: MemorySet, scheme: SchemeKind, stops: bool) -> (MemorySet, u64, u64) {
    let found = superblocks(&mut devices, members(scheme));
    let arrangement = arrange(&found).unwrap();
    let config = arrangement.newest.config;
    let blocks = u64::from(config.journal_blocks);
    let rings = config.journal_offset(0)..config.journal_offset(0) + blocks * 4096;
    let layer = Reading { rings, mains: config.geometry.device_count(), bytes: 0 };
    let layered = Layered { inner: devices, layer };
    let (mut array, _) = Array::assemble(layered, &arrangement, 77, options()).unwrap();
    if stops {
        array.stop().unwrap();
    }
    let Layered { inner, layer } = array.into_devices();
    (inner, layer.bytes, blocks)
}

fn members(scheme: SchemeKind) -> usize {
    if scheme.has_log() { 5 } else { 4 }
}

fn written(scheme: SchemeKind, flushes: u64) -> Array<MemorySet> {
    let mut create = create_options(scheme, 3, 1);
    create.consistency = Consistency::Journal;
    let (mut array, _) =
        crate::common::assemble(fresh(&create, MAIN_MIB, MAIN_MIB), members(scheme), options());
    for at in 0..flushes {
        write(&mut array, at * 7 % 300 * CHUNK, &[at as u8; CHUNK as usize], Durability::Durable).unwrap();
    }
    array
}

#[test]
fn a_start_reads_no_further_than_there_are_frames() {
    for scheme in [SchemeKind::Eplog, SchemeKind::Raid, SchemeKind::Elastic] {
        let (few, few_bytes, blocks) = start(written(scheme, 4).into_devices(), scheme, true);
        let (_, many_bytes, _) = start(written(scheme, 220).into_devices(), scheme, true);
        assert!(blocks >= 128, "{scheme}: {blocks} blocks");
        let all = 4 * blocks * 4096;
        assert!(
            few_bytes < all / 2 && few_bytes < many_bytes,
            "{scheme}: {few_bytes}, {many_bytes} of {all}"
        );
        let (_, clean_bytes, _) = start(few, scheme, true);
        assert!(clean_bytes <= all / 8, "{scheme}: the first stretch of each, not {clean_bytes} of {all}");
    }
}

#[test]
fn what_was_written_last_is_there_after_each_kind_of_start() {
    for scheme in [SchemeKind::Eplog, SchemeKind::Raid, SchemeKind::Elastic, SchemeKind::ParityLog] {
        for flushes in [1, 3, 17, 64, 131, 400] {
            let mut devices = written(scheme, flushes).into_devices();
            // A start that is cut off behind its last superblock, one after a kill, and one after a stop.
            for stops in [false, true, true] {
                (devices, ..) = start(devices, scheme, stops);
            }
            let (mut array, _) = crate::common::assemble(devices, members(scheme), options());
            for at in flushes.saturating_sub(40)..flushes {
                let found = read(&mut array, at * 7 % 300 * CHUNK, CHUNK).unwrap();
                assert_eq!(found, vec![at as u8; CHUNK as usize], "{scheme}, {flushes} flushes, write {at}");
            }
        }
    }
}
