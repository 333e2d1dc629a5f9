//! Bytes on disk: golden images, round trips, hostile bytes, the document. One binary for all of them: each
//! of its own would cost a link.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod document;
mod golden_images;
mod hostile_bytes;
mod round_trip;
mod samples;
