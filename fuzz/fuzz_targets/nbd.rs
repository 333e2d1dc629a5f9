//! Anything a client may say to the NBD server.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::nbd::run(data));
