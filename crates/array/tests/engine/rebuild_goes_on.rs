//! A rebuild that a restart interrupts goes on where it was, and what it had done is there.

use crate::common::{assemble, create_options, fresh, options, read, superblocks, write};
use array::{Array, Codeword, EngineOptions, Progress, Word};
use block::{DevIndex, Durability, StripeId};
use device::MemorySet;
use format::{Consistency, MemberState, SchemeKind};

const CHUNK: u64 = 4096;
const K: u64 = 4;
const STRIPES: u64 = 400;
const LOST: DevIndex = DevIndex::new(2);

fn members(scheme: SchemeKind) -> usize {
    6 + if scheme.has_log() { 2 } else { 0 }
}

fn small_units() -> EngineOptions {
    let mut options = options();
    (options.unit_stripes, options.units_in_flight) = (4, 2);
    options.rebuild_save_bytes = 16 * CHUNK;
    options
}

/// An array with an empty device in the place of member 2.
fn degraded(scheme: SchemeKind) -> Array<MemorySet> {
    let mut create = create_options(scheme, K as usize, 2);
    create.consistency = Consistency::Journal;
    let mut array = assemble(fresh(&create, 40, 24), members(scheme), small_units()).0;
    for stripe in 0..STRIPES {
        write_stripe(&mut array, stripe, 0);
    }
    array.run(|engine, tag| engine.commit(tag)).unwrap();
    array.run(|engine, tag| engine.flush(tag)).unwrap();
    array.engine().fail_device(LOST);
    array.settle();
    array.devices().bytes_mut(LOST).fill(0xee);
    array
}

fn byte(stripe: u64, round: u8) -> u8 {
    (stripe as u8 | 1).wrapping_add(round.wrapping_mul(2))
}

fn write_stripe(array: &mut Array<MemorySet>, stripe: u64, round: u8) {
    let bytes = vec![byte(stripe, round); (K * CHUNK) as usize];
    write(array, stripe * K * CHUNK, &bytes, Durability::Volatile).unwrap();
}

/// Turns until the rebuild is that far, or has ended; what it said of itself last.
fn turn_until(array: &mut Array<MemorySet>, done: u64) -> Progress {
    let mut last = Progress::default();
    for _ in 0..1_000_000 {
        array.turn();
        match array.engine().maintenance() {
            Some((_, progress, _)) => last = progress,
            None => return last,
        }
        if last.done >= done {
            return last;
        }
    }
    panic!("the rebuild does not end: {last:?}");
}

/// Starts again without an orderly stop, and lets the rebuild go on to its end.
fn restarted(devices: MemorySet, scheme: SchemeKind) -> (Array<MemorySet>, Progress) {
    let mut array = assemble(devices, members(scheme), small_units()).0;
    assert_eq!(array.engine().health().state(LOST), MemberState::Rebuilding);
    let tag = array.own_tag();
    array.engine().resume_rebuild(tag);
    let last = turn_until(&mut array, u64::MAX);
    assert_eq!(array.engine().health().missing_count(), 0, "{scheme}");
    (array, last)
}

/// Any two members may be lost besides.
fn survives(mut array: Array<MemorySet>, expected: impl Fn(u64) -> u8) {
    for dev in [0, 5] {
        array.engine().fail_device(DevIndex::new(dev));
    }
    for stripe in 0..STRIPES {
        let bytes = read(&mut array, stripe * K * CHUNK, K * CHUNK).unwrap();
        assert!(bytes.iter().all(|&byte| byte == expected(stripe)), "stripe {stripe}");
    }
    assert_eq!(array.engine().stats().lost, 0);
}

#[test]
fn after_a_restart_about_the_rest_is_rebuilt() {
    for scheme in [SchemeKind::Eplog, SchemeKind::Elastic] {
        let mut array = degraded(scheme);
        let tag = array.own_tag();
        array.engine().rebuild(tag, LOST, 9);
        let first = turn_until(&mut array, STRIPES / 2);
        assert!((STRIPES / 2..STRIPES * 3 / 4).contains(&first.done), "{scheme}: {first:?}");
        assert!(array.engine().rebuilt_percent() > 0, "{scheme}");
        let (array, last) = restarted(array.into_devices(), scheme);
        let all = STRIPES * CHUNK;
        assert!(last.kept >= STRIPES / 3, "{scheme}: {last:?}");
        assert!(last.rebuilt_bytes <= all - last.kept * CHUNK * 5 / 6, "{scheme}: {last:?}");
        survives(array, |stripe| byte(stripe, 0));
    }
}

/// What is written while the member is rebuilt, before and after the restart, on both sides of the position.
#[test]
fn what_is_written_meanwhile_is_there_as_well() {
    for scheme in [SchemeKind::Eplog, SchemeKind::Elastic] {
        let mut array = degraded(scheme);
        let tag = array.own_tag();
        array.engine().rebuild(tag, LOST, 9);
        turn_until(&mut array, STRIPES / 2);
        array.engine().set_rebuild_rate(Some(1));
        for stripe in (0..STRIPES).step_by(3) {
            write_stripe(&mut array, stripe, 1);
        }
        array.run(|engine, tag| engine.flush(tag)).unwrap();
        let devices = array.into_devices();
        let mut array = assemble(devices, members(scheme), small_units()).0;
        for stripe in (0..STRIPES).step_by(5) {
            // A part of a stripe, so that a commit is due of it.
            write(&mut array, stripe * K * CHUNK, &[byte(stripe, 2); CHUNK as usize], Durability::Volatile)
                .unwrap();
        }
        array.run(|engine, tag| engine.commit(tag)).unwrap();
        for stripe in (0..STRIPES).step_by(5) {
            write_stripe(&mut array, stripe, 2);
        }
        array.run(|engine, tag| engine.flush(tag)).unwrap();
        let (array, last) = restarted(array.into_devices(), scheme);
        assert!(last.kept > 0, "{scheme}: {last:?}");
        survives(array, |stripe| match stripe {
            _ if stripe % 5 == 0 => byte(stripe, 2),
            _ if stripe % 3 == 0 => byte(stripe, 1),
            _ => byte(stripe, 0),
        });
    }
}

#[test]
fn an_orderly_stop_notes_how_far_the_rebuild_is() {
    let mut array = degraded(SchemeKind::Eplog);
    let mut options = small_units();
    options.rebuild_save_bytes = u64::MAX;
    array = assemble(array.into_devices(), 8, options).0;
    let tag = array.own_tag();
    array.engine().rebuild(tag, LOST, 9);
    turn_until(&mut array, STRIPES / 2);
    assert_eq!(array.engine().health().rebuilt(LOST), 0);
    array.engine().halt_maintenance();
    array.stop().unwrap();
    let (array, last) = restarted(array.into_devices(), SchemeKind::Eplog);
    assert!(last.kept >= STRIPES / 2 - 8 && last.rebuilt_bytes <= (STRIPES / 2 + 8) * CHUNK, "{last:?}");
    survives(array, |stripe| byte(stripe, 0));
}

/// The parity that a commit wrote to the member did not arrive, and nobody knows the commit to be durable.
#[test]
fn a_commit_whose_parity_is_not_on_the_member_did_not_happen() {
    let mut array = degraded(SchemeKind::Eplog);
    let tag = array.own_tag();
    array.engine().rebuild(tag, LOST, 9);
    turn_until(&mut array, STRIPES / 2);
    array.engine().set_rebuild_rate(Some(1));
    for stripe in 0..12 {
        let bytes = [byte(stripe, 1); CHUNK as usize];
        write(&mut array, stripe * K * CHUNK, &bytes, Durability::Volatile).unwrap();
    }
    array.run(|engine, tag| engine.flush(tag)).unwrap();
    array.run(|engine, tag| engine.flush(tag)).unwrap();
    array.run(|engine, tag| engine.commit(tag)).unwrap();
    array.run(|engine, tag| engine.flush(tag)).unwrap();
    let mut word = Codeword::default();
    let mut parities = Vec::new();
    for stripe in 0..12 {
        let engine = array.engine_ref();
        engine.scheme().codeword(engine.store(), Word::Stripe(StripeId::new(stripe)), &mut word);
        let parity = word.pieces.iter().skip(word.data_count).find(|piece| piece.addr.dev == LOST);
        parities.extend(parity.map(|piece| engine.store().offset_of(piece.addr) as usize));
    }
    assert!(parities.len() > 2, "{parities:?}");
    let mut devices = array.into_devices();
    for at in &parities {
        devices.bytes_mut(LOST)[*at..*at + CHUNK as usize].fill(0xee);
    }
    let (array, report) = assemble(devices, 8, small_units());
    assert!(report.dropped as usize >= parities.len(), "{report:?}");
    let (mut array, last) = restarted(array.into_devices(), SchemeKind::Eplog);
    assert!(last.kept > 0, "{last:?}");
    for dev in [0, 5] {
        array.engine().fail_device(DevIndex::new(dev));
    }
    for stripe in 0..STRIPES {
        let bytes = read(&mut array, stripe * K * CHUNK, K * CHUNK).unwrap();
        let first = byte(stripe, u8::from(stripe < 12));
        assert!(bytes[..CHUNK as usize].iter().all(|&found| found == first), "stripe {stripe}");
        assert!(bytes[CHUNK as usize..].iter().all(|&found| found == byte(stripe, 0)), "stripe {stripe}");
    }
    assert_eq!(array.engine().stats().lost, 0);
}

/// It was away while the array went on: it takes its place as a new member, from the beginning.
#[test]
fn a_member_that_was_away_begins_anew() {
    let mut array = degraded(SchemeKind::Eplog);
    let tag = array.own_tag();
    array.engine().rebuild(tag, LOST, 9);
    turn_until(&mut array, STRIPES / 2);
    let mut devices = array.into_devices();
    let mut found = superblocks(&mut devices, 8);
    assert!(found[2].rebuilt > 0 && found.iter().all(|s| s.dev == LOST || s.rebuilt == 0));
    found.remove(2);
    let arrangement = array::arrange(&found).unwrap();
    let mut array = Array::assemble(devices, &arrangement, 4243, small_units()).unwrap().0;
    write_stripe(&mut array, 0, 1);
    array.run(|engine, tag| engine.flush(tag)).unwrap();
    let mut array = assemble(array.into_devices(), 8, small_units()).0;
    assert_eq!(array.engine().health().state(LOST), MemberState::Failed);
    let tag = array.own_tag();
    array.engine().rebuild(tag, LOST, 10);
    let last = turn_until(&mut array, u64::MAX);
    assert!(last.kept == 0 && last.rebuilt_bytes >= STRIPES * CHUNK, "{last:?}");
    survives(array, |stripe| byte(stripe, u8::from(stripe == 0)));
}

/// Recovery of schemes that write in place may leave out a member that is not whole.
#[test]
fn schemes_that_write_in_place_begin_anew() {
    for scheme in [SchemeKind::Raid, SchemeKind::ParityLog] {
        let mut array = degraded(scheme);
        let tag = array.own_tag();
        array.engine().rebuild(tag, LOST, 9);
        turn_until(&mut array, STRIPES / 2);
        let (array, last) = restarted(array.into_devices(), scheme);
        assert!(last.kept == 0 && last.rebuilt_bytes >= STRIPES * CHUNK, "{scheme}: {last:?}");
        survives(array, |stripe| byte(stripe, 0));
    }
}

/// A unit fails on a stripe of which too much is lost while the others are waited for, so that a position
/// can be noted: its stripes are looked at one by one all the same, wherever it is.
#[test]
fn what_a_unit_failed_on_does_not_hold_up_the_position() {
    for bad in 0..24 {
        let mut array = degraded(SchemeKind::Eplog);
        let mut word = Codeword::default();
        let engine = array.engine_ref();
        engine.scheme().codeword(engine.store(), Word::Stripe(StripeId::new(bad)), &mut word);
        let others = word.pieces.iter().filter(|piece| piece.addr.dev != LOST).take(2);
        let places: Vec<_> =
            others.map(|piece| (piece.addr.dev, engine.store().offset_of(piece.addr) as usize)).collect();
        for (dev, at) in places {
            array.devices().bytes_mut(dev)[at..at + CHUNK as usize].fill(0xee);
        }
        let tag = array.own_tag();
        array.engine().rebuild(tag, LOST, 9);
        let last = turn_until(&mut array, u64::MAX);
        assert!(last.rebuilt_bytes >= (STRIPES - 1) * CHUNK, "stripe {bad}: {last:?}");
        assert_eq!(array.engine().health().state(LOST), MemberState::Rebuilding, "stripe {bad}");
        let bytes = read(&mut array, (bad + 1) * K * CHUNK, K * CHUNK).unwrap();
        assert!(bytes.iter().all(|&found| found == byte(bad + 1, 0)), "stripe {bad}");
    }
}
