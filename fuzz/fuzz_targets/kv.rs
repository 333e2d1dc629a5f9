//! Any bytes as every block of the key-value store.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kv::fuzzing::decode_each(data));
