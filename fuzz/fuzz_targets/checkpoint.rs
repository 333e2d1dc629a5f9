//! Any bytes as the header or a page of a checkpoint.
#![no_main]

use fuzz::{read_as_each, samples::Place};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    read_as_each(data, |place| matches!(place, Place::Header { .. } | Place::Page { .. }));
});
