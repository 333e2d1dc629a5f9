//! The haggling, byte for byte.

use super::super::wire::{self, info, option, reply};
use super::harness::{CHUNK, World, context_query, info_query};
use crate::Limits;
use crate::memory::MemoryVolume;

const GREETING_BYTES: usize = 18;

fn world() -> World {
    World::new(7, MemoryVolume::new(1 << 20, CHUNK, 64), Limits::default(), 1)
}

/// Option, type, data.
type OptionReply = (u32, u32, Vec<u8>);

/// Sends client flags and options; returns the replies, and the fault if there was one.
fn haggle(options: &[(u32, Vec<u8>)]) -> (Vec<OptionReply>, Option<String>) {
    let mut world = world();
    let mut input = 3u32.to_be_bytes().to_vec();
    options.iter().for_each(|(option, data)| wire::put_option(&mut input, *option, data));
    world.peers[0].input = input;
    world.settle();
    let output = &world.peers[0].output;
    assert_eq!(&output[..8], b"NBDMAGIC");
    assert_eq!(&output[8..18], b"IHAVEOPT\x00\x03");
    let mut found = Vec::new();
    let mut rest = &output[GREETING_BYTES..];
    while let Some((head, tail)) = rest.split_first_chunk::<20>() {
        assert_eq!(head[..8], wire::OPTION_REPLY_MAGIC.to_be_bytes());
        let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        let (data, tail) = tail.split_at(number(16) as usize);
        found.push((number(8), number(12), data.to_vec()));
        rest = tail;
    }
    assert!(rest.is_empty());
    let fault = world.peers[0].fault.clone();
    world.close();
    (found, fault)
}

fn kinds(options: &[(u32, Vec<u8>)]) -> Vec<u32> {
    haggle(options).0.iter().map(|(_, kind, _)| *kind).collect()
}

#[test]
fn go_tells_size_flags_block_sizes_and_what_was_asked_for() {
    let query = info_query("vol", &[info::NAME, info::DESCRIPTION]);
    let (found, fault) = haggle(&[(option::GO, query)]);
    assert_eq!(fault, None);
    let data: Vec<_> = found.iter().map(|(_, kind, data)| (*kind, data.as_slice())).collect();
    let size_and_flags =
        [&[0, 0][..], &(1u64 << 20).to_be_bytes(), &0b101_0110_1101u16.to_be_bytes()].concat();
    let sizes = [&[0, 3][..], &[0, 0, 2, 0], &[0, 0, 16, 0], &[2, 0, 0, 0]].concat();
    assert_eq!(
        data,
        [
            (reply::INFO, size_and_flags.as_slice()),
            (reply::INFO, &sizes),
            (reply::INFO, b"\x00\x01vol"),
            (reply::INFO, b"\x00\x02a test"),
            (reply::ACK, b""),
        ]
    );
}

#[test]
fn unknown_exports_options_and_tls_are_refused_and_haggling_goes_on() {
    let options = [
        (option::INFO, info_query("other", &[])),
        (99, b"whatever".to_vec()),
        (option::STARTTLS, Vec::new()),
        (option::GO, b"\xff\xff\xff\xff".to_vec()),
        (option::INFO, info_query(&"x".repeat(4097), &[])),
        (option::LIST, b"x".to_vec()),
        (option::LIST, Vec::new()),
        (option::ABORT, Vec::new()),
    ];
    assert_eq!(
        kinds(&options),
        [
            reply::ERR_UNKNOWN,
            reply::ERR_UNSUP,
            reply::ERR_POLICY,
            reply::ERR_INVALID,
            reply::ERR_INVALID,
            reply::ERR_INVALID,
            reply::SERVER,
            reply::ACK,
            reply::ACK
        ]
    );
}

#[test]
fn contexts_need_structured_replies_and_match_by_name() {
    let set = |queries: &[&str]| (option::SET_META_CONTEXT, context_query("", queries));
    let list = |queries: &[&str]| (option::LIST_META_CONTEXT, context_query("", queries));
    assert_eq!(kinds(&[set(&["base:allocation"])]), [reply::ERR_INVALID]);
    let structured = (option::STRUCTURED_REPLY, Vec::new());
    let cases = [
        (set(&["base:allocation"]), true),
        (set(&["qemu:dirty-bitmap:x", "base:allocation"]), true),
        (set(&["base:"]), false),
        (set(&[]), false),
        (list(&[]), true),
        (list(&["base:"]), true),
        (list(&["other:"]), false),
    ];
    for (query, found) in cases {
        let expected = if found { vec![reply::META_CONTEXT, reply::ACK] } else { vec![reply::ACK] };
        assert_eq!(kinds(&[structured.clone(), query.clone()])[1..], expected, "{query:?}");
    }
    let mut huge = context_query("", &["a"]);
    huge[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
    assert_eq!(kinds(&[structured, (option::SET_META_CONTEXT, huge)])[1..], [reply::ERR_INVALID]);
}

#[test]
fn limits_of_the_handshake_close_the_connection() {
    let fault = |input: Vec<u8>| {
        let mut world = world();
        world.peers[0].input = input;
        world.settle();
        let fault = world.peers[0].fault.clone();
        world.close();
        fault.unwrap_or_default()
    };
    let flags = 3u32.to_be_bytes().to_vec();
    assert_eq!(fault(vec![0, 0, 0, 4]), "client flags 0x4, expected a subset of 0x3");
    assert_eq!(
        fault([&flags[..], b"GET / HTTP/1.1\r\n"].concat()),
        "magic number 0x474554202f204854, expected 0x49484156454f5054"
    );
    let mut long = flags.clone();
    wire::put_option(&mut long, 99, &[]);
    long[16..20].copy_from_slice(&(65_537u32).to_be_bytes());
    assert_eq!(fault(long), "option 99 with 65537 bytes of data, expected at most 65536");
    let mut many = flags.clone();
    (0..129).for_each(|_| wire::put_option(&mut many, option::LIST, &[]));
    assert_eq!(fault(many), "more than 128 options");
    let mut unknown = flags;
    wire::put_option(&mut unknown, option::EXPORT_NAME, b"nope");
    assert_eq!(fault(unknown), "unknown export name of 4 bytes");
}

#[test]
fn export_name_is_answered_with_or_without_zeros() {
    for (flags, length) in [(1u32, 134), (3, 10)] {
        let mut world = world();
        let mut input = flags.to_be_bytes().to_vec();
        wire::put_option(&mut input, option::EXPORT_NAME, b"");
        world.peers[0].input = input;
        world.settle();
        assert_eq!(world.peers[0].output.len(), GREETING_BYTES + length);
        assert_eq!(world.peers[0].output[GREETING_BYTES..][..8], (1u64 << 20).to_be_bytes());
        world.close();
    }
}
