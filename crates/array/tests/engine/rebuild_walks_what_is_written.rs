//! Rebuild and scrub look at what was written, and at nothing else.

use crate::common::{assemble, create_options, discard, fresh, options, read, write};
use array::{Array, Progress};
use block::{DevIndex, Durability};
use device::MemorySet;
use format::{Consistency, SchemeKind};

const CHUNK: u64 = 4096;
const K: u64 = 4;

fn array_of(scheme: SchemeKind, unit_stripes: usize) -> Array<MemorySet> {
    let mut create = create_options(scheme, K as usize, 2);
    create.consistency = Consistency::Journal;
    let devices = fresh(&create, 40, 24);
    let count = 6 + if scheme.has_log() { 2 } else { 0 };
    let mut options = options();
    (options.unit_stripes, options.units_in_flight) = (unit_stripes, 1);
    assemble(devices, count, options).0
}

/// Writes `stripes` stripes with different content, from stripe `first` on.
fn fill(array: &mut Array<MemorySet>, first: u64, stripes: u64) {
    for stripe in first..first + stripes {
        let bytes = vec![stripe as u8 | 1; (K * CHUNK) as usize];
        write(array, stripe * K * CHUNK, &bytes, Durability::Volatile).unwrap();
    }
}

fn check(array: &mut Array<MemorySet>, first: u64, stripes: u64) {
    for stripe in first..first + stripes {
        let bytes = read(array, stripe * K * CHUNK, K * CHUNK).unwrap();
        assert!(bytes.iter().all(|&byte| byte == stripe as u8 | 1), "stripe {stripe}");
    }
}

/// Turns until the work that began with `start` has ended; what it said of itself meanwhile.
fn watch(
    array: &mut Array<MemorySet>,
    mut each: impl FnMut(&mut Array<MemorySet>, Progress),
    start: impl FnOnce(&mut Array<MemorySet>, u64),
) -> Vec<Progress> {
    let tag = array.own_tag();
    start(array, tag);
    let (mut seen, mut answers) = (Vec::new(), Vec::new());
    loop {
        array.turn();
        if let Some((_, progress, _)) = array.engine().maintenance() {
            seen.push(progress);
            each(array, progress);
        }
        array.take_answers(&mut answers);
        if let Some(done) = answers.iter().find(|done| done.tag == tag) {
            assert_eq!(done.result, Ok(()));
            return seen;
        }
    }
}

#[test]
fn what_was_never_written_is_not_walked() {
    for scheme in [SchemeKind::Eplog, SchemeKind::Raid, SchemeKind::ParityLog, SchemeKind::Elastic] {
        let mut array = array_of(scheme, 7);
        fill(&mut array, 0, 60);
        fill(&mut array, 1000, 40);
        // Written once, and given back.
        fill(&mut array, 500, 10);
        discard(&mut array, 500 * K * CHUNK, 10 * K * CHUNK).unwrap();
        array.run(|engine, tag| engine.commit(tag)).unwrap();
        array.run(|engine, tag| engine.flush(tag)).unwrap();
        array.engine().fail_device(DevIndex::new(2));
        array.settle();
        let seen =
            watch(&mut array, |_, _| (), |array, tag| array.engine().rebuild(tag, DevIndex::new(2), 9));
        let last = seen.last().unwrap();
        assert!((100..=120).contains(&last.total), "{scheme}: {last:?}");
        assert!(last.done <= last.total && last.done >= last.total - 10, "{scheme}: {last:?}");
        assert!(last.rebuilt_bytes <= 120 * CHUNK, "{scheme}: {last:?}");
        let seen = watch(&mut array, |_, _| (), |array, tag| array.engine().scrub(tag, 0));
        let last = seen.last().unwrap();
        assert!((100..=120).contains(&last.total), "{scheme}: scrub {last:?}");
        // The rebuilt device is needed now.
        array.engine().fail_device(DevIndex::new(0));
        array.engine().fail_device(DevIndex::new(5));
        check(&mut array, 0, 60);
        check(&mut array, 1000, 40);
    }
}

#[test]
fn a_second_replacement_does_not_begin_everything_anew() {
    for scheme in [SchemeKind::Eplog, SchemeKind::Raid, SchemeKind::Elastic] {
        let mut array = array_of(scheme, 4);
        fill(&mut array, 0, 400);
        array.run(|engine, tag| engine.commit(tag)).unwrap();
        array.run(|engine, tag| engine.flush(tag)).unwrap();
        let (one, other) = (DevIndex::new(1), DevIndex::new(4));
        array.engine().fail_device(one);
        array.settle();
        let mut second = None;
        let seen = watch(
            &mut array,
            |array, progress| {
                if second.is_none() && progress.done > 280 {
                    array.engine().fail_device(other);
                }
                // Another device may take the place when nothing is under way on the old one any more.
                if second.is_none() && progress.done > 280 && array.engine().in_flight(other) == 0 {
                    let tag = array.own_tag();
                    array.engine().rebuild(tag, other, 10);
                    second = Some(progress.done);
                }
            },
            |array, tag| array.engine().rebuild(tag, one, 9),
        );
        let second = second.unwrap();
        assert!(seen.windows(2).all(|pair| pair[0].done <= pair[1].done), "{scheme}: it went back");
        let last = seen.last().unwrap();
        assert_eq!(array.engine().health().missing_count(), 0, "{scheme}");
        assert!((second + 400..=second + 440).contains(&last.total), "{scheme}: {second}, {last:?}");
        // 400 chunks for each, and not those of the first that were there already.
        assert!(last.rebuilt_bytes <= 830 * CHUNK, "{scheme}: {last:?}");
        array.engine().fail_device(DevIndex::new(0));
        array.engine().fail_device(DevIndex::new(2));
        check(&mut array, 0, 400);
    }
}
