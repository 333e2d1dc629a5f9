//! Reads that fail once and succeed later: nothing older than what was acknowledged comes back.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod rig;

use kv::ask::{Answer, Ask, Keys, Old, Refused};
use rig::{Rig, STORED, bytes, narrow, set};
use std::collections::BTreeSet;

/// Without a cache, so that each look at a key reads its record.
fn rig() -> Rig {
    let mut rig = Rig::new(2 << 20, 64 << 10);
    rig.options.cache_keys = 0;
    rig.reopen();
    rig
}

/// Keys beside the one that is looked at.
const OTHERS: u64 = 150;

/// Sets other keys, all of them at first and then some anew, in no order: what came before is in memory no
/// longer, and compaction finds something that counts wherever it looks.
fn others(rig: &mut Rig, count: u64) {
    for number in 0..count {
        let key = if number < OTHERS { number } else { block::mix(number) % OTHERS };
        assert_eq!(rig.set(&format!("other {key}"), &[1; 5000]), STORED);
    }
}

/// The key is set, and set anew while what was there cannot be read.
fn set_anew_unread(rig: &mut Rig, old: &[u8]) {
    assert_eq!(rig.set("key", old), STORED);
    others(rig, OTHERS);
    rig.memory.unreadable = rig.memory.bytes.windows(3).position(|found| found == b"key");
    assert!(rig.memory.unreadable.is_some());
    assert_eq!(rig.set("key", b"new"), STORED);
    rig.memory.unreadable = None;
}

fn delete(rig: &mut Rig, key: &str) -> Result<Answer, Refused> {
    rig.ask(Ask::Delete { key: bytes(key), old: Old::Ignored })
}

fn all_keys(rig: &mut Rig) -> BTreeSet<Box<[u8]>> {
    let (mut all, mut cursor) = (BTreeSet::new(), 0);
    loop {
        let told = rig.ask(Ask::Scan { cursor, count: 100 });
        let Ok(Answer::Scanned { cursor: next, keys }) = told else { panic!("{told:?}") };
        all.extend(keys);
        cursor = next;
        if cursor == 0 {
            return all;
        }
    }
}

#[test]
fn an_old_value_does_not_come_back_when_it_can_be_read_again() {
    for old in [&b"old"[..], &[7; 30_000]] {
        let mut rig = rig();
        set_anew_unread(&mut rig, old);
        assert_eq!(rig.get("key").as_deref(), Some(&b"new"[..]));
        // Compaction meets both.
        others(&mut rig, 2000);
        assert_eq!(rig.get("key").as_deref(), Some(&b"new"[..]));
        assert_eq!(rig.ask(Ask::Count), Ok(Answer::Count(OTHERS + 1)));
        rig.reopen();
        assert_eq!(rig.get("key").as_deref(), Some(&b"new"[..]));
        assert_eq!(rig.ask(Ask::Count), Ok(Answer::Count(OTHERS + 1)));
    }
}

#[test]
fn a_deleted_key_does_not_come_back_from_what_could_not_be_read() {
    for old in [&b"old"[..], &[7; 30_000]] {
        let mut rig = rig();
        set_anew_unread(&mut rig, old);
        let gone = Ok(Answer::Deleted { was_there: true, old: None });
        assert_eq!(delete(&mut rig, "key"), gone);
        assert_eq!(rig.get("key"), None);
        assert!(!all_keys(&mut rig).contains(&bytes("key")));
        assert_eq!(delete(&mut rig, "key"), Ok(Answer::Deleted { was_there: false, old: None }));
        others(&mut rig, 2000);
        assert_eq!(rig.get("key"), None);
        rig.reopen();
        assert_eq!(rig.get("key"), None);
        assert_eq!(rig.ask(Ask::Count), Ok(Answer::Count(OTHERS)));
    }
}

/// Records that stay unreadable do not keep their keys from being used.
#[test]
fn a_key_that_was_set_anew_is_used_although_the_old_record_stays_unreadable() {
    let mut rig = rig();
    assert_eq!(rig.set("key", b"old"), STORED);
    others(&mut rig, OTHERS);
    rig.memory.unreadable = rig.memory.bytes.windows(3).position(|found| found == b"key");
    assert!(matches!(delete(&mut rig, "key"), Err(Refused::Damaged { .. })));
    for round in 0..3 {
        assert_eq!(rig.set("key", &[round; 10]), STORED);
        assert_eq!(rig.get("key"), Some(vec![round; 10]));
    }
    assert_eq!(delete(&mut rig, "key"), Ok(Answer::Deleted { was_there: true, old: None }));
    assert_eq!(rig.get("key"), None);
}

/// The record that could not be read moves while the new value waits for its parts.
#[test]
fn what_moves_while_a_large_value_is_written_does_not_come_back() {
    let mut rig = Rig::new(4 << 20, 64 << 10);
    rig.options.cache_keys = 0;
    assert_eq!(rig.set("key", b"old"), STORED);
    others(&mut rig, 900);
    let large = vec![9; 200_000];
    for fault in 0..10 {
        rig.reopen();
        let asks = (0..40).map(|number| set(&format!("other {number}"), &[2; 5000]));
        rig.memory.reads_before_fault = Some(fault);
        let mut told = rig.ask_all(std::iter::once(set("key", &large)).chain(asks).collect());
        rig.memory.reads_before_fault = None;
        assert_eq!(told.remove(0), STORED, "{fault}: {:?}", rig.store.figures());
        assert_eq!(rig.get("key").as_ref(), Some(&large), "{fault}");
        assert_eq!(rig.set("key", b"old"), STORED);
        assert_eq!(rig.get("key").as_deref(), Some(&b"old"[..]), "{fault}");
        others(&mut rig, 60);
    }
    rig.reopen();
    assert_eq!(rig.get("key").as_deref(), Some(&b"old"[..]));
}

/// Whichever read fails while a store is opened: it says so, or is what it was.
#[test]
fn a_read_that_fails_while_a_store_is_opened_takes_nothing_back() {
    let mut rig = rig();
    others(&mut rig, 600);
    assert_eq!(rig.set("key", b"old"), STORED);
    assert_eq!(rig.set("gone", b"old"), STORED);
    others(&mut rig, 50);
    assert_eq!(rig.set("key", b"new"), STORED);
    assert_eq!(delete(&mut rig, "gone"), Ok(Answer::Deleted { was_there: true, old: None }));
    let good = rig.memory.bytes.clone();
    let before = rig.memory.read_count;
    rig.reopen();
    for fault in 0..rig.memory.read_count - before {
        rig.memory.bytes.copy_from_slice(&good);
        rig.memory.reads_before_fault = Some(fault);
        let volume = u64::try_from(good.len()).unwrap();
        let Ok(store) = kv::open(&mut rig.memory, volume, rig.options) else { continue };
        rig.store = store;
        rig.memory.reads_before_fault = None;
        assert!(!rig.store.is_in_doubt(), "{fault}");
        assert_eq!(rig.get("key").as_deref(), Some(&b"new"[..]), "{fault}");
        assert_eq!(rig.get("gone"), None, "{fault}");
        assert_eq!(rig.store.figures().key_count, OTHERS + 1, "{fault}");
    }
}

/// A segment that compaction could not read counts as useless until it can.
#[test]
fn a_segment_that_could_not_be_read_is_emptied_later() {
    let mut rig = rig();
    rig.options.cache_keys = 1000;
    rig.reopen();
    others(&mut rig, 2 * OTHERS);
    let capacity = rig.store.figures().capacity_bytes;
    rig.memory.reads_fail = true;
    for number in 0.. {
        assert_eq!(rig.set(&format!("other {}", number % OTHERS), &[3; 5000]), STORED);
        if rig.store.figures().capacity_bytes < capacity {
            break;
        }
    }
    rig.memory.reads_fail = false;
    rig.now_ms += 3_600_000;
    others(&mut rig, 4 * OTHERS);
    assert_eq!(rig.store.figures().capacity_bytes, capacity);
}

/// Nothing can be compacted, and all slots that clients may take are taken.
#[test]
fn a_store_without_any_room_is_cleared() {
    let mut rig = rig();
    rig.options.cache_keys = 1000;
    rig.reopen();
    others(&mut rig, 2 * OTHERS);
    rig.memory.reads_fail = true;
    let refused = (0..10_000)
        .map(|number| rig.set(&format!("other {}", number % OTHERS), &[3; 5000]))
        .find(|told| *told != STORED);
    assert!(matches!(refused, Some(Err(Refused::NoSpace { .. }))), "{refused:?}");
    assert_eq!(rig.ask(Ask::Clear), Ok(Answer::Done));
    assert_eq!(rig.ask(Ask::Count), Ok(Answer::Count(0)));
    assert_eq!(rig.set("key", b"new"), STORED);
    rig.memory.reads_fail = false;
    rig.reopen();
    assert_eq!(rig.get("key").as_deref(), Some(&b"new"[..]));
    assert_eq!(rig.ask(Ask::Count), Ok(Answer::Count(1)));
    others(&mut rig, 2 * OTHERS);
}

/// What is moved out of segments that keep a damaged record each may take all slots: compaction does not wait
/// for one that nothing will free, nor does whoever waits for it.
#[test]
fn damage_in_every_segment_leaves_nobody_waiting() {
    let mut damaged_count = 0;
    for seed in 0..60 {
        let mut rig = Rig::new(4 << 20, 64 << 10);
        rig.options.cache_keys = 1000;
        rig.reopen();
        let kept = 280 + block::mix(seed) % 30;
        let place = |segment: usize| (segment << 16) + 10_000 + narrow(block::mix(seed) % 40_000);
        for number in 0..kept {
            assert_eq!(rig.set(&format!("other {number}"), &[1; 5000]), STORED);
        }
        (0..64).for_each(|segment| rig.memory.bytes[place(segment)] ^= 1);
        for number in 0..500 {
            rig.set(&format!("other {}", block::mix(number) % kept), &[2; 5000]).ok();
            rig.rest();
        }
        damaged_count += rig.store.figures().damaged_count;
        match rig.ask(Ask::Clear) {
            Ok(Answer::Done) => assert_eq!(rig.set("key", b"new"), STORED, "{seed}"),
            told => assert!(matches!(told, Err(Refused::NoSpace { .. })), "{seed}: {told:?}"),
        }
    }
    assert!(damaged_count > 0);
}
