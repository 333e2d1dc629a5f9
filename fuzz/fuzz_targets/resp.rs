//! Anything a client may say to the server of keys.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::resp::run(data));
