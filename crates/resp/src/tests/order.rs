//! Many clients, pipelines, answers of the store in any order: what each is told is what it would have been
//! told one by one.

use super::harness::{Unordered, World, bulk};
use crate::{Fault, Limits, Settings, Wants};
use proptest::prelude::*;
use std::collections::HashMap;

/// A command, as a client of few keys sends it.
#[derive(Clone, Debug)]
enum Said {
    Set(u8, u16),
    Get(u8),
    Del(Vec<u8>),
    Mget(Vec<u8>),
    Mset(Vec<(u8, u16)>),
    Incr(u8),
    Append(u8, u16),
    Setnx(u8, u16),
    Getset(u8, u16),
    Dbsize,
    Clear,
    Ping,
}

fn said() -> impl Strategy<Value = Said> {
    let key = || 0..4_u8;
    let keys = || proptest::collection::vec(key(), 2..40);
    prop_oneof![
        4 => (key(), any::<u16>()).prop_map(|(key, value)| Said::Set(key, value)),
        4 => key().prop_map(Said::Get),
        1 => keys().prop_map(Said::Del),
        2 => keys().prop_map(Said::Mget),
        1 => proptest::collection::vec((key(), any::<u16>()), 1..20).prop_map(Said::Mset),
        3 => key().prop_map(Said::Incr),
        2 => (key(), any::<u16>()).prop_map(|(key, value)| Said::Append(key, value)),
        1 => (key(), any::<u16>()).prop_map(|(key, value)| Said::Setnx(key, value)),
        1 => (key(), any::<u16>()).prop_map(|(key, value)| Said::Getset(key, value)),
        1 => Just(Said::Dbsize),
        1 => Just(Said::Clear),
        1 => Just(Said::Ping),
    ]
}

impl Said {
    fn bytes(&self, owner: usize) -> Vec<u8> {
        let key = |key: &u8| format!("{owner}key{key}");
        let words: Vec<String> = match self {
            Self::Set(k, value) => vec!["SET".into(), key(k), value.to_string()],
            Self::Get(k) => vec!["GET".into(), key(k)],
            Self::Del(keys) => std::iter::once("DEL".into()).chain(keys.iter().map(key)).collect(),
            Self::Mget(keys) => std::iter::once("MGET".into()).chain(keys.iter().map(key)).collect(),
            Self::Mset(pairs) => {
                let pairs = pairs.iter().flat_map(|(k, value)| [key(k), value.to_string()]);
                std::iter::once("MSET".into()).chain(pairs).collect()
            }
            Self::Incr(k) => vec!["INCR".into(), key(k)],
            Self::Append(k, value) => vec!["APPEND".into(), key(k), value.to_string()],
            Self::Setnx(k, value) => vec!["SETNX".into(), key(k), value.to_string()],
            Self::Getset(k, value) => vec!["GETSET".into(), key(k), value.to_string()],
            Self::Dbsize => vec!["DBSIZE".into()],
            Self::Clear => vec!["FLUSHALL".into()],
            Self::Ping => vec!["PING".into()],
        };
        bulk(&words.iter().map(String::as_bytes).collect::<Vec<_>>())
    }

    /// What a store of the simplest kind answers.
    fn expected(&self, held: &mut HashMap<u8, String>) -> String {
        let or_null = |value: Option<String>| {
            value.map_or("$-1\r\n".to_owned(), |value| format!("${}\r\n{value}\r\n", value.len()))
        };
        match self {
            Self::Set(key, value) => {
                held.insert(*key, value.to_string());
                "+OK\r\n".into()
            }
            Self::Get(key) => or_null(held.get(key).cloned()),
            Self::Del(keys) => {
                format!(":{}\r\n", keys.iter().filter(|key| held.remove(key).is_some()).count())
            }
            Self::Mget(keys) => {
                let values: String = keys.iter().map(|key| or_null(held.get(key).cloned())).collect();
                format!("*{}\r\n{values}", keys.len())
            }
            Self::Mset(pairs) => {
                held.extend(pairs.iter().map(|(key, value)| (*key, value.to_string())));
                "+OK\r\n".into()
            }
            Self::Incr(key) => match held.get(key).map_or("0", String::as_str).parse::<i64>() {
                Ok(value)
                    if held.get(key).is_none_or(|text| value.to_string() == *text) && value < i64::MAX =>
                {
                    held.insert(*key, (value + 1).to_string());
                    format!(":{}\r\n", value + 1)
                }
                _ => "-ERR value is not an integer or out of range\r\n".into(),
            },
            Self::Append(key, value) => {
                let whole = held.entry(*key).or_default();
                whole.push_str(&value.to_string());
                format!(":{}\r\n", whole.len())
            }
            Self::Setnx(key, value) => {
                let free = !held.contains_key(key);
                if free {
                    held.insert(*key, value.to_string());
                }
                format!(":{}\r\n", u8::from(free))
            }
            Self::Getset(key, value) => or_null(held.insert(*key, value.to_string())),
            Self::Dbsize => format!(":{}\r\n", held.len()),
            Self::Clear => {
                held.clear();
                "+OK\r\n".into()
            }
            Self::Ping => "+PONG\r\n".into(),
        }
    }
}

proptest! {
    #[test]
    fn a_pipeline_is_answered_as_if_it_came_one_by_one(
        commands in proptest::collection::vec(said(), 0..60),
        per_turn in 0..5_usize,
        seed: u64,
        asks in 1..9_usize,
        cut in 1..400_usize,
    ) {
        let limits = Limits { asks_in_flight_max: asks, output_pause_bytes: 50 * asks, ..Limits::default() };
        let mut world = World::new(limits, Settings::default(), Unordered::new(per_turn, seed), 1);
        let mut held = HashMap::new();
        let bytes: Vec<u8> = commands.iter().flat_map(|said| said.bytes(0)).collect();
        let expected: String = commands.iter().map(|said| said.expected(&mut held)).collect();
        for part in bytes.chunks(cut) {
            world.send(0, part);
            world.turn();
        }
        world.settle();
        let told = String::from_utf8(world.clients[0].said.clone()).unwrap();
        prop_assert_eq!(told, expected);
        prop_assert_eq!(world.desk.budget.used_bytes(), 0);
        prop_assert!(!world.clients[0].session.is_busy());
    }

    #[test]
    fn clients_with_keys_of_their_own_do_not_notice_each_other(
        commands in proptest::collection::vec((0..3_usize, said()), 0..90),
        per_turn in 0..5_usize,
        seed: u64,
    ) {
        // What concerns all keys is everybody's.
        let own = |said: &Said| !matches!(said, Said::Dbsize | Said::Clear);
        let mut world = World::new(Limits::default(), Settings::default(), Unordered::new(per_turn, seed), 3);
        let mut expected = [const { String::new() }; 3];
        let mut held = [HashMap::new(), HashMap::new(), HashMap::new()];
        for (client, said) in commands.iter().filter(|(_, said)| own(said)) {
            world.send(*client, &said.bytes(*client));
            expected[*client] += &said.expected(&mut held[*client]);
        }
        world.settle();
        for (client, expected) in world.clients.iter().zip(expected) {
            prop_assert_eq!(String::from_utf8(client.said.clone()).unwrap(), expected);
        }
    }

    #[test]
    fn numbers_that_many_clients_add_to_lose_nothing(counts in proptest::collection::vec(0..50_usize, 3), seed: u64) {
        let mut world = World::new(Limits::default(), Settings::default(), Unordered::new(1, seed), 3);
        for round in 0..50 {
            for (client, count) in counts.iter().enumerate() {
                if round < *count {
                    world.send(client, b"INCR n\r\n");
                }
            }
        }
        world.settle();
        world.clients[0].said.clear();
        let sum: usize = counts.iter().sum();
        let expected = if sum == 0 { "$-1".into() } else { format!("${}|{sum}", sum.to_string().len()) };
        prop_assert_eq!(world.says("get n"), expected);
    }

    #[test]
    fn nothing_that_clients_send_breaks_the_server(
        parts in proptest::collection::vec((0..2_usize, "[*$0-9a-z\"\r\n ]{0,30}|(set|get|incr|mget|scan|keys|hello|config|client|command|info|expire) ?[a-z0-9* ]{0,20}\r\n"), 0..30),
        per_turn in 0..3_usize,
        seed: u64,
        leaves: bool,
    ) {
        let mut world = World::new(Limits::default(), Settings::default(), Unordered::new(per_turn, seed), 2);
        for (client, part) in &parts {
            world.send(*client, part.as_bytes());
            world.turn();
        }
        if leaves {
            let World { desk, keys, clients } = &mut world;
            if clients[0].fault.is_none() {
                clients[0].session.abandon(&mut crate::Context { desk, keys });
                clients[0].fault = Some(Fault::Http);
            }
        }
        world.settle();
    }
}

#[test]
fn who_does_not_read_is_paused_and_then_closed() {
    let limits = Limits { output_bytes_max: 1 << 20, output_pause_bytes: 1 << 16, ..Limits::default() };
    let mut world = World::new(limits, Settings::default(), Unordered::new(0, 1), 1);
    world.send(0, &bulk(&[b"SET", b"a", &[7; 50_000]]));
    world.settle();
    world.clients[0].reads = false;
    for _ in 0..1000 {
        world.send(0, b"GET a\r\n");
    }
    for _ in 0..100 {
        world.turn();
    }
    assert_eq!(world.clients[0].wants, Wants::Room);
    let waiting = world.clients[0].session.output().length_bytes();
    assert!((50_000..(1 << 20)).contains(&waiting) || world.clients[0].fault.is_some(), "{waiting}");
    // One that asks for much at once, before it has seen how much that is.
    let limits = Limits { output_bytes_max: 1 << 20, output_pause_bytes: 1 << 16, ..Limits::default() };
    let mut world = World::new(limits, Settings::default(), Unordered::new(0, 1), 1);
    world.send(0, &bulk(&[b"SET", b"a", &[7; 900_000]]));
    world.settle();
    world.clients[0].reads = false;
    world.send(0, &b"GET a\r\n".repeat(50));
    world.turn();
    assert!(matches!(world.clients[0].fault, Some(Fault::NotTaken { .. })), "{:?}", world.clients[0].fault);
    assert_eq!((world.desk.budget.used_bytes(), world.desk.client_count()), (0, 0));
}

/// A client sees in all keys what it did before, answered or not.
#[test]
fn what_concerns_all_keys_waits_for_what_came_before() {
    for all in ["SCAN 0", "KEYS *", "DBSIZE", "FLUSHALL", "SAVE"] {
        let mut world = World::plain();
        world.send(0, format!("SET a 1\r\nDEL b\r\n{all}\r\nGET a\r\n").as_bytes());
        assert!(world.keys.asked.keys().eq(["delete", "set"].iter()), "{all}: {:?}", world.keys.asked);
        world.settle();
        assert_eq!(world.keys.asked.values().sum::<usize>(), 4, "{all}");
    }
}

/// What others do between a client's question and its answer stays done.
#[test]
fn what_reads_and_writes_a_key_is_one_step() {
    for undone in ["FLUSHALL", "DEL n", "MSET m 1 n x"] {
        for change in ["INCR n", "DECRBY n 3", "APPEND n 7", "PEXPIRE n 100000 NX"] {
            let mut world = World::new(Limits::default(), Settings::default(), Unordered::new(1, 1), 2);
            assert_eq!(world.says("SET n 5"), "+OK");
            world.send(0, format!("{change}\r\n").as_bytes());
            world.send(1, format!("{undone}\r\n").as_bytes());
            world.settle();
            let expected = if undone.starts_with("MSET") { "$1|x" } else { "$-1" };
            assert_eq!(world.says("GET n"), expected, "{change} and then {undone}");
            assert_eq!(world.says("PTTL n"), if expected == "$-1" { ":-2" } else { ":-1" });
        }
    }
}

#[test]
fn the_store_is_told_what_a_client_that_left_had_asked_for() {
    let mut world = World::new(Limits::default(), Settings::default(), Unordered::new(1, 1), 2);
    world.send(0, b"MGET a b c\r\nGET d\r\n");
    world.send(1, b"GET e\r\n");
    let World { desk, keys, clients } = &mut world;
    clients[0].session.abandon(&mut crate::Context { desk, keys });
    clients[0].fault = Some(Fault::Http);
    assert_eq!(world.keys.forgotten, [0, 1, 2, 3]);
    world.settle();
    assert_eq!(world.clients[1].said, b"$-1\r\n");
}

/// A question takes more memory than a short key does.
#[test]
fn many_keys_count_against_the_memory_of_all_clients() {
    for name in [&b"MGET"[..], b"DEL", b"MSET"] {
        let limits = Limits { all_bytes_max: 1 << 20, ..Limits::default() };
        let mut world = World::new(limits, Settings::default(), Unordered::new(1, 1), 1);
        let mut words = vec![name];
        words.resize(20_001, b"k");
        world.send(0, &bulk(&words));
        world.turn();
        assert!(world.clients[0].said.starts_with(b"-OOM"), "{:?}", world.clients[0].said.get(..80));
        words.truncate(2001);
        world.clients[0].said.clear();
        world.send(0, &bulk(&words));
        let (used_bytes, said) = (world.desk.budget.used_bytes(), &world.clients[0].said);
        assert!(
            used_bytes > 1000 * 64,
            "{used_bytes} for {words:?}: {said:?} {:?}",
            world.clients[0].session
        );
        world.settle();
        assert!(!world.clients[0].said.starts_with(b"-"));
        assert_eq!(world.desk.budget.used_bytes(), 0);
    }
}
