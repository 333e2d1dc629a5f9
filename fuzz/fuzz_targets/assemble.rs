//! Arrays with rewritten metadata, checksums made to match.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::array::run(data));
