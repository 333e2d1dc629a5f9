//! No bytes from a client may panic, leak a slot or leave anybody stuck. Proptest prints the failing input.

use super::super::wire::{self, Command, ContextQuery, InfoQuery, option};
use super::harness::{CHUNK, World, context_query, header, hello, info_query, replies};
use crate::Limits;
use crate::memory::MemoryVolume;
use proptest::prelude::*;
use std::collections::HashMap;

fn limits() -> Limits {
    Limits { piece_bytes_max: 4 * CHUNK, requests_in_flight_max: 5, ..Limits::default() }
}

/// `PROPTEST_CASES`, or enough for a second.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(4000)
}

/// Bits of a conversation: right, nearly right, and nonsense.
fn bit() -> impl Strategy<Value = Vec<u8>> {
    let code = prop_oneof![Just(1u16), Just(0), 0u16..9, any::<u16>()];
    let length = prop_oneof![4 => (0u32..80).prop_map(|n| n * 512), 1 => 0u32..100_000, 1 => any::<u32>()];
    let offset = prop_oneof![6 => (0u64..120).prop_map(|n| n * 512), 1 => any::<u64>()];
    let flags = prop_oneof![4 => Just(0u16), 2 => 0u16..16, 1 => any::<u16>()];
    let request = (code, flags, offset, length, any::<u64>(), any::<bool>()).prop_map(
        |(code, flags, offset_bytes, length_bytes, cookie, honest)| {
            let mut out = Vec::new();
            wire::put_request(
                &mut out,
                &wire::RequestHeader { flags, code, cookie, offset_bytes, length_bytes },
            );
            if honest && code == Command::Write.code() {
                out.resize(out.len() + (length_bytes as usize).min(100_000), 0x77);
            }
            out
        },
    );
    let data = prop_oneof![
        Just(info_query("vol", &[0, 1, 2, 3])),
        Just(context_query("", &["base:allocation"])),
        prop::collection::vec(any::<u8>(), 0..40),
        Just(Vec::new()),
    ];
    let option = (prop_oneof![Just(option::GO), 0u32..12, any::<u32>()], data).prop_map(|(option, data)| {
        let mut out = Vec::new();
        wire::put_option(&mut out, option, &data);
        out
    });
    prop_oneof![8 => request, 2 => option, 1 => prop::collection::vec(any::<u8>(), 0..64)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decoders_take_anything(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = wire::client_flags(&bytes);
        let _ = wire::option_header(&bytes);
        let _ = wire::request_header(&bytes);
        if let Some(query) = InfoQuery::parse(&bytes) {
            let _ = query.asks_for(1);
        }
        if let Some(query) = ContextQuery::parse(&bytes) {
            let mut count = 0;
            query.any(|_| { count += 1; false });
            prop_assert_eq!(count, query.count);
        }
    }

    #[test]
    fn request_headers_survive_the_wire(
        flags in any::<u16>(), code in any::<u16>(), cookie in any::<u64>(),
        offset_bytes in any::<u64>(), length_bytes in any::<u32>(),
    ) {
        let header = wire::RequestHeader { flags, code, cookie, offset_bytes, length_bytes };
        let mut out = Vec::new();
        wire::put_request(&mut out, &header);
        prop_assert_eq!(wire::request_header(&out), Ok(Some(header)));
        prop_assert_eq!(wire::request_header(&out[..27]), Ok(None));
    }

    #[test]
    fn pure_noise_is_survived(seed in any::<u64>(), noise in prop::collection::vec(any::<u8>(), 0..3000)) {
        let mut world = World::new(seed, MemoryVolume::new(1 << 16, CHUNK, 32), limits(), 1);
        world.peers[0].input = noise;
        world.settle();
        world.close();
    }

    #[test]
    fn any_conversation_leaves_nothing_behind_and_harms_nobody(
        seed in any::<u64>(),
        structured in any::<bool>(),
        greeted in prop::bool::weighted(0.9),
        fail_percent in prop_oneof![Just(0usize), Just(20)],
        slot_count in 2usize..40,
        bad in prop::collection::vec(bit(), 0..20),
        flip in prop::option::of((any::<prop::sample::Index>(), 0u32..8)),
    ) {
        let mut world = World::new(seed, MemoryVolume::new(1 << 16, CHUNK, slot_count), limits(), 3);
        world.volume.fail_percent = fail_percent;
        for index in 0..2 {
            let mut input = if greeted || index == 0 { hello(structured) } else { Vec::new() };
            input.extend(bad.concat());
            if let (Some((at, bit)), false) = (flip, input.is_empty()) {
                let at = at.index(input.len());
                input[at] ^= 1 << bit;
            }
            world.peers[index].input = input;
        }
        world.peers[2].input = hello(true);
        for cookie in 0..6 {
            let write = header(Command::Write, 0, cookie, cookie * 8192, 7168);
            wire::put_request(&mut world.peers[2].input, &write);
            world.peers[2].input.extend([9; 7168]);
            wire::put_request(&mut world.peers[2].input, &header(Command::Read, 0, cookie + 10, 0, 60 << 10));
        }
        world.settle();
        prop_assert_eq!(&world.peers[2].fault, &None);
        let start = world.peers[2].output.windows(4).position(|four| {
            four == wire::SIMPLE_REPLY_MAGIC.to_be_bytes() || four == wire::STRUCTURED_REPLY_MAGIC.to_be_bytes()
        });
        let answers = replies(&world.peers[2].output[start.unwrap()..], &HashMap::new());
        prop_assert_eq!(answers.values().filter(|reply| reply.done).count(), 12);
        world.close();
    }
}
