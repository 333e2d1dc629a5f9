//! What a store does, one behaviour each; power cuts and damage are the worlds' affair.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod rig;

use kv::ask::{Answer, Ask, Description, Keys, Lifetime, Old, Range, Refused, Told, Value, When};
use kv::blocks::Request;
use kv::{Create, OpenError, Options, Secret, Sync, VolumeShape, create, open};
use rig::{Memory, Rig, STORED, bytes, narrow, set};

/// K-08, and what the paper's store lacked: deletion, values of any size, a restart.
#[test]
fn what_is_set_updated_and_deleted_is_so_after_a_restart() {
    let mut rig = Rig::new(4 << 20, 64 << 10);
    assert_eq!(rig.set("a", b"one"), STORED);
    assert_eq!(rig.set("b", b"two"), STORED);
    assert_eq!(rig.set("a", &[9; 5000]), STORED);
    let delete = Ask::Delete { key: bytes("b"), old: Old::Wanted };
    let gone = Ok(Answer::Deleted { was_there: true, old: Some(Value::new(b"two")) });
    assert_eq!(rig.ask(delete.clone()), gone);
    assert_eq!(rig.ask(delete), Ok(Answer::Deleted { was_there: false, old: None }));
    rig.reopen();
    assert_eq!((rig.get("a"), rig.get("b")), (Some(vec![9; 5000]), None));
    assert_eq!(rig.ask(Ask::Count), Ok(Answer::Count(1)));
}

/// K-04, K-06: without a cache a key is known only by reading it at its address; with one nothing is read.
#[test]
fn a_key_is_read_at_its_address_unless_the_cache_knows_it() {
    let mut rig = Rig::new(4 << 20, 64 << 10);
    assert_eq!(rig.set("there", &[5; 100]), STORED);
    // Beyond what is still in memory.
    for number in 0..40 {
        rig.set(&format!("other {number}"), &[1; 5000]).unwrap();
    }
    let describe = |key: &str| Ask::Describe { key: bytes(key) };
    let known = Ok(Answer::Described(Some(Description { value_bytes: 100, until_ms: None })));
    for (cache_keys, reads) in [(0, true), (100, false)] {
        rig.options.cache_keys = cache_keys;
        rig.reopen();
        // The first look fills a cache that there is.
        assert_eq!(rig.ask(describe("there")), known);
        let before = rig.store.figures().read_bytes;
        assert_eq!(rig.ask(describe("there")), known);
        assert_eq!(rig.store.figures().read_bytes > before, reads, "{cache_keys}");
        assert_eq!(rig.ask(describe("not there")), Ok(Answer::Described(None)));
    }
    // The same address with another key in it is no answer: that record is damaged, not the key's.
    rig.options.cache_keys = 0;
    rig.reopen();
    let at = rig.memory.bytes.windows(5).position(|found| found == b"there").unwrap();
    rig.memory.bytes[at..at + 5].copy_from_slice(b"THERE");
    assert!(matches!(rig.ask(describe("there")), Err(Refused::Damaged { .. })));
}

#[test]
fn asks_for_one_key_happen_in_their_order() {
    let mut rig = Rig::new(4 << 20, 64 << 10);
    let get = || Ask::Get { key: bytes("k"), range: Range::Whole, lifetime: None };
    let told = rig.ask_all(vec![get(), set("k", b"1"), get(), set("k", b"2"), get()]);
    let value = |text: &[u8]| Ok(Answer::Value(Some(Value::new(text))));
    assert_eq!(told, [Ok(Answer::Value(None)), STORED, value(b"1"), STORED, value(b"2")]);
}

/// What reads and writes a key is one step: what is asked behind it finds it done, what came before is.
#[test]
fn what_is_added_and_appended_is_one_step() {
    let mut rig = Rig::new(4 << 20, 64 << 10);
    let add = |by| Ask::Add { key: bytes("k"), by };
    let append = |tail: &[u8]| Ask::Append { key: bytes("k"), tail: Value::new(tail) };
    let get = || Ask::Get { key: bytes("k"), range: Range::Whole, lifetime: None };
    let delete = || Ask::Delete { key: bytes("k"), old: Old::Ignored };
    let asks = vec![add(5), add(-7), delete(), append(b"1"), append(b"2"), add(1), Ask::Clear, get(), add(2)];
    let told: Vec<Answer> = rig.ask_all(asks).into_iter().map(Result::unwrap).collect();
    let deleted = Answer::Deleted { was_there: true, old: None };
    let counted = [Answer::Sum(5), Answer::Sum(-2), deleted, Answer::Length(1), Answer::Length(2)];
    assert_eq!(told[..5], counted);
    assert_eq!(told[5..], [Answer::Sum(13), Answer::Done, Answer::Value(None), Answer::Sum(2)]);
    rig.reopen();
    assert_eq!(rig.get("k").as_deref(), Some(&b"2"[..]));
    // What is no number, and what would be none.
    for (value, refused) in [
        (&b""[..], Refused::NotANumber),
        (b"1x", Refused::NotANumber),
        (&[b'1'; 30_000], Refused::NotANumber),
        (i64::MAX.to_string().as_bytes(), Refused::Overflow),
    ] {
        assert_eq!(rig.set("k", value), STORED);
        assert_eq!(rig.ask(add(1)), Err(refused));
        assert_eq!(rig.get("k").as_deref(), Some(value));
    }
    let large = vec![7; 30_000];
    assert_eq!(rig.set("k", &large), STORED);
    assert_eq!(rig.ask(append(&[7; 20_000])), Ok(Answer::Length(50_000)));
    rig.reopen();
    assert_eq!(rig.get("k"), Some(vec![7; 50_000]));
}

#[test]
fn what_is_added_to_lives_as_long_and_conditions_are_looked_at_in_the_same_step() {
    use kv::ask::Condition::{IfLater, IfNone, IfSome, IfSooner};
    let mut rig = Rig::new(4 << 20, 64 << 10);
    let add = || Ask::Add { key: bytes("k"), by: 1 };
    let live = |until_ms, conditions: &[_]| {
        let conditions = conditions.to_vec();
        Ask::LiveIf { key: bytes("k"), until_ms, conditions }
    };
    let whether = |stored| Ok(Answer::Set { stored, old: None });
    let describe = || Ask::Describe { key: bytes("k") };
    let until = |value_bytes, until_ms| Ok(Answer::Described(Some(Description { value_bytes, until_ms })));
    assert_eq!(rig.ask(live(2000, &[IfNone])), whether(false), "there is no key");
    assert_eq!(rig.set("k", b"9"), STORED);
    assert_eq!(rig.ask(live(2000, &[IfSome])), whether(false));
    assert_eq!(rig.ask(live(2000, &[IfNone])), whether(true));
    assert_eq!(rig.ask(add()), Ok(Answer::Sum(10)));
    assert_eq!(rig.ask(describe()), until(2, Some(2000)));
    assert_eq!(rig.ask(live(1500, &[IfSome, IfLater])), whether(false));
    assert_eq!(rig.ask(live(1500, &[IfSome, IfSooner])), whether(true));
    assert_eq!(rig.ask(describe()), until(2, Some(1500)));
    rig.now_ms = 1500;
    assert_eq!(rig.ask(add()), Ok(Answer::Sum(1)));
    assert_eq!(rig.ask(describe()), until(1, None));
    assert_eq!(rig.ask(live(1400, &[IfNone])), whether(true));
    assert_eq!((rig.get("k"), rig.ask(Ask::Count)), (None, Ok(Answer::Count(0))));
}

/// What ends while it is read is gone: nothing is added to it, put behind it, or said of it.
#[test]
fn a_value_whose_time_is_up_while_it_is_read_does_not_come_back() {
    let lock = |old| {
        let (value, lifetime) = (Value::new(b"mine"), Lifetime::Forever);
        Ask::Set { key: bytes("k"), value, when: When::IfAbsent, lifetime, old }
    };
    let tail = Value::new(b"c");
    for (ask, told, left) in [
        (Ask::Add { key: bytes("k"), by: 1 }, Answer::Sum(1), &b"1"[..]),
        (Ask::Append { key: bytes("k"), tail }, Answer::Length(1), b"c"),
        (lock(Old::Wanted), Answer::Set { stored: true, old: None }, b"mine"),
    ] {
        let mut rig = Rig::new(4 << 20, 64 << 10);
        assert_eq!(rig.set("k", b"5"), STORED);
        rig.ask(Ask::Live { key: bytes("k"), lifetime: Lifetime::UntilMs(1001) }).unwrap();
        rig.ask(Ask::Flush).unwrap();
        rig.reopen();
        // Where it is, is known from now on, and its value is not.
        rig.ask(Ask::Describe { key: bytes("k") }).unwrap();
        rig.passes_ms = 1;
        assert_eq!(rig.ask(ask), Ok(told));
        assert!(rig.now_ms > 1000, "it was read");
        rig.passes_ms = 0;
        assert_eq!(rig.get("k").as_deref(), Some(left));
    }
}

#[test]
fn a_large_value_is_read_in_pieces_and_whole() {
    let mut rig = Rig::new(64 << 20, 1 << 20);
    let value: Vec<u8> = (0..5_000_000_u32).flat_map(|n| n.to_le_bytes()).collect();
    assert_eq!(rig.set("large", &value), STORED);
    assert_eq!(rig.get("large").as_deref(), Some(&value[..]));
    let range = Range::Between { first: 1_234_567, last: 2_345_678 };
    let told = rig.ask(Ask::Get { key: bytes("large"), range, lifetime: None });
    assert_eq!(told, Ok(Answer::Value(Some(Value::new(&value[1_234_567..=2_345_678])))));
    rig.reopen();
    assert_eq!(rig.get("large").as_deref(), Some(&value[..]));
}

/// However many large values are asked for at once, few are in memory at a time; none is forgotten, also if
/// one is larger than all that may be.
#[test]
fn large_values_are_read_in_turns() {
    let mut rig = Rig::new(64 << 20, 1 << 20);
    rig.options.loading_bytes_max = 1 << 20;
    let value = |number: u8| vec![number; (700 << 10) + (usize::from(number % 2) << 19)];
    for number in 0..6u8 {
        assert_eq!(rig.set(&format!("large {number}"), &value(number)), STORED);
    }
    rig.set("small", b"there").unwrap();
    rig.reopen();
    let get = |key: &str| Ask::Get { key: bytes(key), range: Range::Whole, lifetime: None };
    for round in 0..30u8 {
        rig.store.start(round.into(), get(&format!("large {}", round % 6)));
    }
    rig.store.start(30, get("small"));
    let (mut told, mut unread, mut most) = (Vec::new(), 0, 0);
    for _ in 0..100_000 {
        let before = told.len();
        rig.store.drive(rig.now_ms, &mut told);
        unread -= told[before..].iter().map(|told: &Told| length_of(told)).sum::<usize>().min(unread);
        if told.len() == 31 {
            break;
        }
        let issued = rig.store.next_request().expect("somebody has its turn");
        if let Request::Read { buffer, .. } = &issued.request {
            unread += buffer.len();
        }
        most = most.max(unread);
        let ended = rig.memory.end(issued);
        rig.store.ended(ended);
    }
    told.sort_by_key(|told| told.tag);
    assert_eq!(told.len(), 31);
    for told in &told[..30] {
        let expected = value(u8::try_from(told.tag % 6).unwrap());
        assert!(matches!(&told.answer, Ok(Answer::Value(Some(found))) if found.to_vec() == expected));
    }
    assert!(most < 4 << 20, "{most} bytes were read and not yet told");
}

/// What a client asked for that has left is not read on; what it wrote is written.
#[test]
fn what_nobody_wants_to_know_any_more_is_not_read() {
    let mut rig = Rig::new(64 << 20, 1 << 20);
    rig.options.loading_bytes_max = 1 << 20;
    let value = vec![3; 8 << 20];
    assert_eq!(rig.set("large", &value), STORED);
    rig.reopen();
    let get = || Ask::Get { key: bytes("large"), range: Range::Whole, lifetime: None };
    (0..10).for_each(|tag| rig.store.start(tag, get()));
    rig.store.start(10, set("other", b"written"));
    rig.store.start(11, get());
    let (mut told, mut drives) = (Vec::new(), 0);
    while told.len() < 12 {
        rig.store.drive(rig.now_ms, &mut told);
        drives += 1;
        if drives == 3 {
            rig.store.forget(&(0..11).collect::<Vec<u64>>());
        }
        while let Some(issued) = rig.store.next_request() {
            let ended = rig.memory.end(issued);
            rig.store.ended(ended);
        }
    }
    told.sort_by_key(|told: &Told| told.tag);
    assert!(told[..10].iter().all(|told| told.answer == Err(Refused::Forgotten)), "{told:?}");
    assert_eq!(told[10].answer, STORED);
    assert_eq!(told[11].answer, Ok(Answer::Value(Some(Value::new(&value)))));
    let read_bytes = rig.store.figures().read_bytes;
    assert!(read_bytes < 11 << 20, "{read_bytes} bytes were read");
    // A tag that is used again is another ask.
    rig.store.start(0, get());
    told.clear();
    while told.is_empty() {
        rig.store.drive(rig.now_ms, &mut told);
        while let Some(issued) = rig.store.next_request() {
            let ended = rig.memory.end(issued);
            rig.store.ended(ended);
        }
    }
    assert_eq!(told[0].answer, Ok(Answer::Value(Some(Value::new(&value)))));
}

fn length_of(told: &Told) -> usize {
    match &told.answer {
        Ok(Answer::Value(Some(value))) => value.to_vec().len(),
        _ => 0,
    }
}

#[test]
fn lifetimes_end_and_change() {
    let mut rig = Rig::new(4 << 20, 64 << 10);
    rig.set("k", b"value").unwrap();
    let live = |lifetime| Ask::Live { key: bytes("k"), lifetime };
    let described = |until_ms| Ok(Answer::Described(Some(Description { value_bytes: 5, until_ms })));
    assert_eq!(rig.ask(live(Lifetime::UntilMs(2000))), described(None));
    assert_eq!(rig.ask(live(Lifetime::Forever)), described(Some(2000)));
    let read = Ask::Get { key: bytes("k"), range: Range::Whole, lifetime: Some(Lifetime::UntilMs(3000)) };
    assert_eq!(rig.ask(read), Ok(Answer::Value(Some(Value::new(b"value")))));
    rig.reopen();
    assert_eq!(rig.ask(Ask::Describe { key: bytes("k") }), described(Some(3000)));
    rig.now_ms = 3000;
    assert_eq!(rig.get("k"), None);
    assert_eq!(rig.ask(live(Lifetime::Forever)), Ok(Answer::Described(None)));
}

/// A hundred bytes take no block: keys, values, heads and lines of the summary, and little more.
#[test]
fn small_pairs_are_packed() {
    let mut rig = Rig::new(16 << 20, 1 << 20);
    let asks = (0..20_000).map(|n| set(&format!("user{n:020}"), &[1; 100])).collect();
    assert!(rig.ask_all(asks).iter().all(|told| *told == STORED));
    let figures = rig.store.figures();
    assert_eq!(figures.live_bytes, 20_000 * (160 + 24));
    assert!(figures.written_bytes < 20_000 * 200, "{}", figures.written_bytes);
}

#[test]
fn a_full_store_refuses_keeps_everything_and_lets_delete() {
    let mut rig = Rig::new(2 << 20, 64 << 10);
    let mut kept = 0;
    while rig.set(&format!("key{kept}"), &[3; 2000]) == STORED {
        kept += 1;
    }
    let figures = rig.store.figures();
    assert!(figures.live_bytes > figures.capacity_bytes / 10 * 9, "{figures:?}");
    assert!(matches!(rig.set("one more", &[3; 4000]), Err(Refused::NoSpace { .. })));
    // Updates of the same size need no more space, however often they come.
    for n in 0..5 * kept {
        assert_eq!(rig.set(&format!("key{}", n % kept), &[4; 2000]), STORED);
    }
    assert!((0..kept).all(|n| rig.get(&format!("key{n}")) == Some(vec![4; 2000])));
    for n in 0..kept {
        let told = rig.ask(Ask::Delete { key: bytes(&format!("key{n}")), old: Old::Ignored });
        assert_eq!(told, Ok(Answer::Deleted { was_there: true, old: None }));
    }
    // Tombstones go in the end: as much fits as before, twice over.
    for round in 0..2 {
        for n in 0..kept / 2 {
            assert_eq!(rig.set(&format!("new{round}-{n}"), &[5; 2000]), STORED, "{:?}", rig.store.figures());
            let told = rig.ask(Ask::Delete { key: bytes(&format!("new{round}-{n}")), old: Old::Ignored });
            assert_eq!(told, Ok(Answer::Deleted { was_there: true, old: None }));
        }
    }
}

fn set_until(key: &str, value: &[u8], until_ms: u64) -> Ask {
    let (key, value, lifetime) = (bytes(key), Value::new(value), Lifetime::UntilMs(until_ms));
    Ask::Set { key, value, when: When::Always, lifetime, old: Old::Ignored }
}

/// Many times what fits, little of it at a time: values in records and values in parts.
#[test]
fn keys_whose_time_is_up_give_their_room_back() {
    for size in [100, 1000, 30_000] {
        let mut rig = Rig::new(2 << 20, 64 << 10);
        assert_eq!(rig.set("stays", &[9; 1000]), STORED);
        for number in 0..(20 << 20) / (size + 100) {
            rig.now_ms += u64::try_from(size).unwrap() / 100;
            let until_ms = rig.now_ms + 1000;
            let told = rig.ask(set_until(&format!("key {number}"), &vec![1; size], until_ms));
            assert_eq!(told, STORED, "{number} of {size} bytes: {:?}", rig.store.figures());
        }
        assert_eq!(rig.get("stays"), Some(vec![9; 1000]));
        rig.reopen();
        assert_eq!(rig.get("stays"), Some(vec![9; 1000]));
    }
}

/// A store that was opened does not know when keys end, and finds out when it needs their room.
#[test]
fn keys_whose_time_was_up_before_a_start_give_their_room_back() {
    let mut rig = Rig::new(2 << 20, 64 << 10);
    let mut kept = 0;
    while rig.ask(set_until(&format!("key{kept}"), &[3; 2000], 5000)) == STORED {
        kept += 1;
    }
    rig.reopen();
    assert!(matches!(rig.set("other", &[4; 9000]), Err(Refused::NoSpace { .. })));
    rig.reopen();
    rig.now_ms = 5000;
    for number in 0..kept / 10 * 9 {
        assert_eq!(rig.set(&format!("other{number}"), &[4; 2000]), STORED, "{:?}", rig.store.figures());
    }
}

/// Who finds no room waits until segments are emptied; what gives room does not wait behind.
#[test]
fn deletions_pass_who_waits_for_room() {
    let mut rig = Rig::new(2 << 20, 64 << 10);
    let kept = 8000;
    let all = rig.ask_all((0..kept).map(|number| set(&format!("key{number}"), &[3; 20])).collect());
    assert!(all.iter().all(|told| *told == STORED));
    // Nobody knows of a store that was opened whether there are keys whose time is up.
    rig.reopen();
    let delete = |number| Ask::Delete { key: bytes(&format!("key{number}")), old: Old::Ignored };
    let deletions = kept / 4 * 3;
    rig.store.start(0, set("large", &vec![4; 1_300_000]));
    (1..=deletions).for_each(|number| rig.store.start(number, delete(number - 1)));
    let told = rig.all_told(deletions + 1);
    let refused = told.iter().position(|told| told.tag == 0).unwrap();
    assert!(matches!(told[refused].answer, Err(Refused::NoSpace { .. })));
    assert_eq!(refused, narrow(deletions), "a deletion waited for who found no room");
    assert_eq!(rig.set("key", &[5; 20_000]), STORED);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let mut rig = Rig::new(4 << 20, 64 << 10);
    assert_eq!(rig.set("", b"v"), Err(Refused::Key { key_bytes: 0 }));
    assert_eq!(rig.set(&"k".repeat(256), b"v"), Err(Refused::Key { key_bytes: 256 }));
    assert_eq!(rig.set(&"k".repeat(255), b"v"), STORED);
    rig.store.stop();
    assert_eq!(rig.set("late", b"v"), Err(Refused::Shutdown));
}

#[test]
fn after_a_failed_write_the_store_only_reads() {
    let mut rig = Rig::new(4 << 20, 64 << 10);
    rig.set("k", b"before").unwrap();
    rig.memory.writes_fail = true;
    assert_eq!(rig.set("k", b"after"), Err(Refused::ReadOnly));
    assert_eq!(rig.set("other", b"v"), Err(Refused::ReadOnly));
    assert_eq!(rig.ask(Ask::Flush), Err(Refused::ReadOnly));
    assert!(rig.store.figures().only_reads);
    rig.memory.writes_fail = false;
    rig.reopen();
    assert!(!rig.store.figures().only_reads);
    assert_eq!(rig.get("k").as_deref(), Some(&b"before"[..]));
}

/// All of a segment is lost: what may be older than it is refused, what is written anew is not, and the loss
/// can be accepted.
#[test]
fn a_lost_segment_puts_in_doubt_what_is_older() {
    let mut rig = Rig::new(4 << 20, 64 << 10);
    for n in 0..100 {
        rig.set(&format!("key{n}"), &[6; 2000]).unwrap();
    }
    rig.store.stop();
    for _ in 0..1000 {
        rig.store.drive(1000, &mut Vec::new());
        while let Some(issued) = rig.store.next_request() {
            let ended = rig.memory.end(issued);
            rig.store.ended(ended);
        }
    }
    assert!(rig.store.is_stopped());
    let place = rig.memory.bytes.windows(4).position(|four| four == b"KVB1").unwrap();
    rig.memory.bytes[place..place + (64 << 10)].fill(0x77);
    rig.reopen();
    assert!(rig.store.is_in_doubt());
    for n in [0, 99] {
        let get = Ask::Get { key: bytes(&format!("key{n}")), range: Range::Whole, lifetime: None };
        assert!(matches!(rig.ask(get), Err(Refused::Damaged { .. })));
    }
    assert_eq!(rig.set("key0", b"anew"), STORED);
    assert_eq!(rig.get("key0").as_deref(), Some(&b"anew"[..]));
    rig.reopen();
    assert!(rig.store.is_in_doubt(), "a restart does not forget it");
    rig.options.accept_loss = true;
    rig.reopen();
    assert_eq!(rig.get("key99"), Some(vec![6; 2000]));
    rig.options.accept_loss = false;
    rig.reopen();
    assert!(!rig.store.is_in_doubt());
}

#[test]
fn what_is_no_store_is_not_opened() {
    let mut memory = Memory::new(1 << 20);
    let opened = open(&mut memory, 1 << 20, Options::default());
    assert!(matches!(opened.err(), Some(OpenError::Header(_))));
    assert!(matches!(open(&mut memory, 0, Options::default()).err(), Some(OpenError::Header(_))));
    let mut rig = Rig::new(4 << 20, 64 << 10);
    let half = open(&mut rig.memory, 2 << 20, Options::default());
    assert_eq!(half.err(), Some(OpenError::Shrunk { found_bytes: 2 << 20, expected_bytes: 4 << 20 }));
    let shape = VolumeShape { volume_bytes: 100_000, segment_bytes: None };
    let made = create(&mut rig.memory, &Create { shape, uuid: [7; 16], secret: Secret([1, 2]) });
    let expected_bytes = (12 << 20) + 7 * 4096;
    assert_eq!(made, Err(OpenError::TooSmall { found_bytes: 100_000, expected_bytes }));
    // With so many it is one, and with a block less it is not.
    for (volume_bytes, fits) in [(expected_bytes, true), (expected_bytes - 4096, false)] {
        let mut memory = Memory::new(usize::try_from(volume_bytes).unwrap());
        let shape = VolumeShape { volume_bytes, segment_bytes: None };
        let made = create(&mut memory, &Create { shape, uuid: [1; 16], secret: Secret([1, 2]) });
        assert_eq!(made.is_ok(), fits, "{volume_bytes}");
    }
}

#[test]
fn every_second_and_on_flush_answer_before_they_flush() {
    for sync in [Sync::EverySecond, Sync::OnFlush] {
        let mut rig = Rig::new(4 << 20, 64 << 10);
        rig.options.sync = sync;
        rig.reopen();
        rig.now_ms = 0;
        assert_eq!(rig.set("k", b"v"), STORED);
        assert_eq!(rig.store.figures().written_bytes, 0);
        assert_eq!(rig.get("k").as_deref(), Some(&b"v"[..]));
        assert_eq!(rig.ask(Ask::Flush), Ok(Answer::Done));
        assert_eq!(rig.store.figures().written_bytes, 4096);
        rig.reopen();
        assert_eq!(rig.get("k").as_deref(), Some(&b"v"[..]));
    }
}

/// Whatever blocks are damaged, header and tables included: no panic, and no value that was not set.
#[test]
fn damage_anywhere_is_refused_or_borne() {
    use block::{Random, SplitMix};
    let mut rig = Rig::new(1 << 20, 64 << 10);
    for round in 0..3_u8 {
        for n in 0..60 {
            rig.set(&format!("key{n}"), &[round; 900]).unwrap();
        }
    }
    rig.set("large", &[8; 30_000]).unwrap();
    rig.reopen();
    let good = rig.memory.bytes.clone();
    let mut random = SplitMix::new(11);
    let (mut opened, mut refused) = (0, 0);
    for _ in 0..300 {
        rig.memory.bytes.copy_from_slice(&good);
        for _ in 0..1 + random.below(40) {
            // The front, where header and tables are, as often as all the rest.
            let blocks = if random.chance(1, 2) { 12 } else { 256 };
            let at = narrow(random.below(blocks)) * 4096 + narrow(random.below(300));
            rig.memory.bytes[at] ^= u8::try_from(1 + random.below(255)).unwrap();
        }
        match open(&mut rig.memory, 1 << 20, rig.options) {
            Ok(store) => rig.store = store,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
                continue;
            }
        }
        opened += 1;
        for n in 0..60 {
            let get = Ask::Get { key: bytes(&format!("key{n}")), range: Range::Whole, lifetime: None };
            match rig.ask(get) {
                Ok(Answer::Value(Some(value))) => assert_eq!(value.to_vec(), [2; 900]),
                Err(Refused::Damaged { .. }) => {}
                other => panic!("key{n}: {other:?}"),
            }
        }
        let _ = rig.ask(Ask::Scan { cursor: random.word(), count: 100 });
        let _ = rig.set("key1", &[2; 900]);
    }
    assert!(opened > 30 && refused > 30, "{opened} opened, {refused} refused");
}

/// Blocks that hold a copy of this table.
fn table_blocks(bytes: &[u8], epoch: u64) -> Vec<usize> {
    let is_one = |block: &[u8]| block.starts_with(b"kvtable1") && block[24..32] == epoch.to_le_bytes();
    bytes.chunks(4096).enumerate().filter(|(_, block)| is_one(block)).map(|(at, _)| at * 4096).collect()
}

fn newest_table(bytes: &[u8]) -> u64 {
    (1..1000).rev().find(|&epoch| !table_blocks(bytes, epoch).is_empty()).unwrap()
}

#[test]
fn a_store_takes_the_room_that_its_volume_has_gained() {
    let mut rig = Rig::new(4 << 20, 64 << 10);
    assert_eq!(rig.set("a", &[1; 9000]), STORED);
    let mut capacity = rig.store.figures().capacity_bytes;
    for volume in [5 << 20, 9 << 20, 40 << 20] {
        let gained = volume - rig.memory.bytes.len();
        rig.memory.bytes.resize(volume, 0x33);
        rig.reopen();
        assert_eq!(rig.store.gained_bytes(), u64::try_from(gained).unwrap());
        let larger = rig.store.figures().capacity_bytes;
        assert!(larger > capacity + u64::try_from(gained / 2).unwrap());
        capacity = larger;
        assert_eq!(rig.get("a"), Some(vec![1; 9000]));
        rig.reopen();
        assert_eq!((rig.store.gained_bytes(), rig.store.figures().capacity_bytes), (0, capacity));
    }
    // All of it can be used, and stays.
    for number in 0..2000 {
        assert_eq!(rig.set(&format!("key {number}"), &[7; 9000]), STORED);
    }
    rig.reopen();
    assert_eq!((rig.get("a"), rig.get("key 1999")), (Some(vec![1; 9000]), Some(vec![7; 9000])));
}

/// What a volume was given to is not written over because of what the store before it left at its end.
#[test]
fn a_volume_that_is_something_else_s_is_left_as_it_is() {
    for grows in [false, true] {
        let mut rig = Rig::new(4 << 20, 64 << 10);
        if grows {
            rig.memory.bytes.resize(9 << 20, 0);
            rig.reopen();
        }
        rig.memory.bytes[..1 << 20].fill(0x42);
        let before = rig.memory.bytes.clone();
        let volume = u64::try_from(before.len()).unwrap();
        let refused = open(&mut rig.memory, volume, rig.options);
        assert!(matches!(refused.err(), Some(OpenError::Header(_))), "grown {grows}");
        assert!(rig.memory.bytes == before, "grown {grows}: something was written");
    }
}

/// Of a header any two copies may be damaged, unless both in front are something else's.
#[test]
fn headers_are_mended_and_what_cannot_be_opened_is_not_touched() {
    let mut rig = Rig::new(4 << 20, 64 << 10);
    assert_eq!(rig.set("a", b"one"), STORED);
    let last = rig.memory.bytes.len() - 4096;
    for copies in [[0, 4096], [0, last], [4096, last]] {
        // The magic stays, as most damage leaves something.
        copies.into_iter().for_each(|at| rig.memory.bytes[at + 50] ^= 1);
        rig.reopen();
        assert_eq!(rig.get("a"), Some(b"one".to_vec()));
        assert!(
            [0, 4096, last].into_iter().all(|at| rig.memory.bytes[at..at + 96] == rig.memory.bytes[..96])
        );
    }
    // The newest table is lost, and the volume has become larger.
    rig.reopen();
    assert_eq!(rig.set("b", b"two"), STORED);
    let newest = newest_table(&rig.memory.bytes);
    for at in table_blocks(&rig.memory.bytes, newest) {
        rig.memory.bytes[at + 100] ^= 1;
    }
    for volume in [4 << 20, 9 << 20] {
        rig.memory.bytes.resize(volume, 0);
        rig.memory.bytes[50] ^= 1;
        let before = rig.memory.bytes.clone();
        let refused = open(&mut rig.memory, u64::try_from(volume).unwrap(), rig.options).err();
        let expected = OpenError::Table { found_epoch: newest - 1, expected_epoch: newest };
        assert_eq!(refused, Some(expected));
        assert!(rig.memory.bytes == before, "something was written");
        rig.memory.bytes[50] ^= 1;
    }
}
