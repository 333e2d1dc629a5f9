//! An array that was stopped and assembled anew goes on for the same callers: their slots, its figures.

use crate::common::*;
use array::{Array, EngineOptions};
use block::{Durability, Slot};
use device::MemorySet;
use format::{Consistency, SchemeKind};

const CHUNK: u64 = 4096;
const SCHEMES: [SchemeKind; 5] =
    [SchemeKind::Raid, SchemeKind::Eplog, SchemeKind::ParityLog, SchemeKind::Elastic, SchemeKind::Was];

/// Slots that somebody has.
fn taken(array: &mut Array<MemorySet>) -> usize {
    let pool = array.engine().pool();
    pool.slot_count() - pool.free_count()
}

fn write_some(array: &mut Array<MemorySet>, mark: u8) {
    for chunk in 0..200 {
        let bytes = vec![mark.wrapping_add((chunk % 97) as u8); CHUNK as usize];
        write(array, chunk * 3 % 200 * CHUNK, &bytes, Durability::Volatile).unwrap();
    }
}

fn check(array: &mut Array<MemorySet>, mark: u8) {
    for chunk in 0..200 {
        let bytes = read(array, chunk * 3 % 200 * CHUNK, CHUNK).unwrap();
        assert!(bytes.iter().all(|&byte| byte == mark.wrapping_add((chunk % 97) as u8)), "chunk {chunk}");
    }
}

/// The array as it is after a start with other options.
fn renewed(array: Array<MemorySet>, members: usize, options: EngineOptions) -> (Array<MemorySet>, usize) {
    let (before, devices) = array.with_devices(());
    let (mut next, _) = assemble(devices, members, options);
    let own = taken(&mut next);
    let (next, devices) = next.with_devices(());
    let (mut array, ()) = before.with_devices(devices);
    array.go_on_as(next);
    (array, own)
}

#[test]
fn callers_keep_their_slots_and_the_figures_go_on() {
    for scheme in SCHEMES {
        let create = array::CreateOptions {
            consistency: Consistency::Journal,
            layout: format::LayoutKind::Rotate,
            ..create_options(scheme, 3, 1)
        };
        let members = 4 + usize::from(scheme.has_log());
        let mut few = EngineOptions { table_bytes: 6 * 4300, ..options() };
        if scheme == SchemeKind::Raid {
            few.scheme.stripe_cache = 16;
        }
        if scheme == SchemeKind::Eplog {
            (few.cache_stripes, few.cache_slots) = (4, 4);
        }
        let (mut array, _) = assemble(fresh(&create, 20, 16), members, few);
        write_some(&mut array, 1);
        let mut lent: Vec<Slot> = Vec::new();
        assert!(array.engine().take_slots(40, &mut lent));
        lent.iter().zip(100..).for_each(|(&slot, mark)| array.engine().pool().bytes_mut(slot).fill(mark));
        array.stop().unwrap();
        let before = array.engine_ref().stats();
        // Twice: with more buffers, and with fewer again, which takes none away.
        for pool_mib in [24, 16] {
            let (next, own) = renewed(array, members, EngineOptions { pool_bytes: pool_mib << 20, ..few });
            array = next;
            let pool = array.engine().pool();
            assert!(pool.slot_count() as u64 * CHUNK >= 24 << 20, "{scheme}");
            for (&slot, mark) in lent.iter().zip(100..) {
                assert!(pool.bytes(slot).iter().all(|&byte| byte == mark), "{scheme}: {slot:?}");
            }
            assert_eq!(taken(&mut array), own + lent.len(), "{scheme}: nothing is lost of the pool");
            check(&mut array, 1);
            array.stop().unwrap();
        }
        let (next, own) = renewed(array, members, few);
        array = next;
        assert_eq!(array.engine_ref().stats().user_chunks_written, before.user_chunks_written, "{scheme}");
        assert!(array.engine_ref().stats().requests > before.requests, "{scheme}: it counts on");
        write_some(&mut array, 2);
        check(&mut array, 2);
        lent.iter().for_each(|&slot| array.engine().pool().free(slot));
        array.stop().unwrap();
        let (mut array, _) = renewed(array, members, few);
        assert_eq!(taken(&mut array), own, "{scheme}");
        check(&mut array, 2);
    }
}
