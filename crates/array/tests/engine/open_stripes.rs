//! Elastic stripes that are durable before they are full, with log devices: what a synchronous chunk costs
//! the SSDs, and that it is there after a power cut without any m members.

use crate::common::{copy_of, create_options, fresh_with_logs, options, read, superblocks, write};
use array::{Array, RecoveryReport, arrange};
use block::{DevIndex, Durability, Random as _, SplitMix};
use device::MemorySet;
use format::{CodeKind, SchemeKind};

const K: usize = 4;
const M: usize = 2;
const MEMBERS: usize = K + M + M;
const CHUNK: u64 = 4096;

fn elastic(code: CodeKind) -> Array<MemorySet> {
    let create = array::CreateOptions { code, ..create_options(SchemeKind::Elastic, K, M) };
    start(fresh_with_logs(&create, 12, 4, M), &[]).0
}

/// A start without some members.
fn start(mut devices: MemorySet, without: &[usize]) -> (Array<MemorySet>, RecoveryReport) {
    let mut found = superblocks(&mut devices, MEMBERS);
    found.retain(|superblock| !without.contains(&superblock.dev.index()));
    Array::assemble(devices, &arrange(&found).unwrap(), 4242, options()).unwrap()
}

fn write_chunk(array: &mut Array<MemorySet>, lcn: u64, byte: u8) {
    write(array, lcn * CHUNK, &[byte; CHUNK as usize], Durability::Durable).unwrap();
}

fn check_chunk(array: &mut Array<MemorySet>, lcn: u64, byte: u8) {
    let found = read(array, lcn * CHUNK, CHUNK).unwrap();
    assert!(found.iter().all(|&other| other == byte), "chunk {lcn}: {} for {byte}", found[0]);
}

/// SSD chunks, and log chunks, that have been written.
fn written(array: &mut Array<MemorySet>) -> (u64, u64) {
    let stats = array.engine().stats();
    (stats.full_stripes, stats.log_stripes)
}

#[test]
fn a_row_is_filled_by_synchronous_chunks_and_its_parity_written_once() {
    let mut array = elastic(CodeKind::Cauchy);
    for lcn in 0..40 {
        write_chunk(&mut array, lcn, lcn as u8 | 1);
    }
    // Three of four chunks of a row leave parity in the log, the fourth fills it.
    assert_eq!(written(&mut array), (10, 30));
    assert_eq!(array.engine().stats().short_stripes, 0);
    for lcn in 0..40 {
        check_chunk(&mut array, lcn, lcn as u8 | 1);
    }
}

#[test]
fn an_open_stripe_survives_a_power_cut_without_any_two_members() {
    for code in [CodeKind::Cauchy, CodeKind::Rdp] {
        for count in 1..=K as u64 + 1 {
            let mut array = elastic(code);
            for lcn in 0..count {
                write_chunk(&mut array, lcn, 7 + lcn as u8);
            }
            // An old version in the same stripe is as good as a new one.
            write_chunk(&mut array, 0, 99);
            for one in 0..MEMBERS {
                for other in one + 1..MEMBERS {
                    let (mut again, _) = start(copy_of(array.devices(), MEMBERS), &[one, other]);
                    for lcn in 0..count {
                        let byte = if lcn == 0 { 99 } else { 7 + lcn as u8 };
                        check_chunk(&mut again, lcn, byte);
                    }
                }
            }
        }
    }
}

#[test]
fn what_was_open_is_closed_after_the_start_and_frees_the_log() {
    let mut array = elastic(CodeKind::Cauchy);
    (0..2).for_each(|lcn| write_chunk(&mut array, lcn, 5));
    let (mut again, _) = start(copy_of(array.devices(), MEMBERS), &[]);
    again.settle();
    assert_eq!(again.engine().stats().short_stripes, 1, "its parity is beside its data now");
    // So the log devices are of no account for it.
    again.engine().fail_device(DevIndex::new(MEMBERS as u16 - 1));
    again.engine().fail_device(DevIndex::new(MEMBERS as u16 - 2));
    (0..2).for_each(|lcn| check_chunk(&mut again, lcn, 5));
}

#[test]
fn without_a_log_device_rows_are_short_and_lack_nothing() {
    let mut array = elastic(CodeKind::Cauchy);
    write_chunk(&mut array, 0, 3);
    array.engine().fail_device(DevIndex::new(MEMBERS as u16 - 1));
    array.settle();
    (1..9).for_each(|lcn| write_chunk(&mut array, lcn, 3));
    array.settle();
    let stats = array.engine().stats();
    assert_eq!((stats.log_stripes, stats.short_stripes), (1, 9), "the one that was open is closed as well");
    // With one member failed, another may be lost; that is not less than before.
    array.engine().fail_device(DevIndex::new(0));
    (0..9).for_each(|lcn| check_chunk(&mut array, lcn, 3));
}

#[test]
fn a_rebuilt_log_device_holds_the_parity_of_what_is_open() {
    let mut array = elastic(CodeKind::Cauchy);
    (0..3).for_each(|lcn| write_chunk(&mut array, lcn, 11 + lcn as u8));
    let log = DevIndex::new(MEMBERS as u16 - 1);
    array.engine().fail_device(log);
    array.settle();
    array.run(|engine, tag| engine.rebuild(tag, log, 9)).unwrap();
    (3..5).for_each(|lcn| write_chunk(&mut array, lcn, 11 + lcn as u8));
    array.engine().fail_device(DevIndex::new(0));
    array.engine().fail_device(DevIndex::new(1));
    (0..5).for_each(|lcn| check_chunk(&mut array, lcn, 11 + lcn as u8));
}

#[test]
fn the_log_goes_round_under_many_synchronous_chunks() {
    let create = create_options(SchemeKind::Elastic, K, M);
    // As small a log as there may be: it goes round ten times.
    let mut array = start(fresh_with_logs(&create, 12, 4, M), &[]).0;
    let (chunks, mut rng) = (200, SplitMix::new(3));
    let mut newest = vec![0u8; chunks as usize];
    for at in 0..9000u32 {
        let lcn = rng.below(chunks);
        newest[lcn as usize] = at as u8 | 1;
        write_chunk(&mut array, lcn, at as u8 | 1);
    }
    let stats = array.engine().stats();
    assert_eq!(stats.short_stripes, 0, "there was always room in the log");
    for (lcn, &byte) in (0..).zip(&newest) {
        check_chunk(&mut array, lcn, byte);
    }
}
