//! Stand-ins for Online and Webmail: requests of one chunk, on hot and on cold blocks.
//!
//! The hot blocks are a fifth of the unique chunks and get the published share; the cold ones are as many as
//! it takes for the published number to be met by the writes left. Popularity has these two levels because
//! the papers' own figures ask for it: of a more uneven hot fifth, merging both traces would raise the top-20
//! % share above the 80.88 % printed for Online+Webmail.

use super::published::{WAS_ONLINE, WAS_ONLINE_WEBMAIL, WAS_WEBMAIL, WasRow};
use super::solve::places_for;
use super::{CALIBRATED_CHUNK_BYTES, WEEK_US, extents::part};
use crate::random::{Clock, SplitMix, scatter, scatter_stride};
use crate::{Op, Request};
use std::ops::Range;

/// What is solved for one trace.
#[derive(Clone, Copy, Debug)]
struct Level {
    hot_count: u64,
    hot_share: f64,
    /// Writes per cold block at full length.
    cold_writes_mean: f64,
    cold_count: u64,
}

impl Level {
    fn of(row: &WasRow) -> Self {
        let hot_count = row.unique_chunk_count.div_ceil(5);
        let hot_share = row.top_fifth_percent / 100.0;
        let cold_writes = row.chunk_write_count as f64 * (1.0 - hot_share);
        let cold_places = places_for((row.unique_chunk_count - hot_count) as f64, cold_writes);
        Self {
            hot_count,
            hot_share,
            cold_writes_mean: cold_writes / cold_places,
            cold_count: cold_places.round() as u64,
        }
    }

    /// The share of cold blocks that is written at all at full length.
    fn met(self) -> f64 {
        -(-self.cold_writes_mean).exp_m1()
    }
}

/// Cold blocks that both write, so that the merged trace has the published unique chunks: with a, b and c the
/// shares of blocks met that only the first, only the second, and both write, each shared block takes a + b -
/// c off the sum.
fn shared_count(first: Level, second: Level, row: &WasRow) -> u64 {
    let (a, b) = (first.met(), second.met());
    let c = -(-first.cold_writes_mean - second.cold_writes_mean).exp_m1();
    let sum = (first.hot_count + second.hot_count) as f64
        + first.cold_count as f64 * a
        + second.cold_count as f64 * b;
    let shared = (sum - row.unique_chunk_count as f64) / (a + b - c);
    (shared.round() as u64).min(first.cold_count).min(second.cold_count)
}

/// Requests of one trace.
#[derive(Clone, Debug)]
struct Stream {
    left: u64,
    writes_left: u64,
    hot: Range<u64>,
    cold: Range<u64>,
    hot_share: f64,
}

impl Stream {
    fn new(row: &WasRow, level: Level, request_count: u64, hot_from: u64, cold_from: u64) -> Self {
        Self {
            left: request_count,
            writes_left: part(request_count, row.write_share),
            hot: hot_from..hot_from + level.hot_count,
            cold: cold_from..cold_from + level.cold_count,
            hot_share: level.hot_share,
        }
    }

    fn next(&mut self, random: &mut SplitMix) -> (Op, u64) {
        let write = random.of_the_rest(self.writes_left, self.left);
        self.left -= 1;
        self.writes_left -= u64::from(write);
        let blocks = if random.chance(self.hot_share) { &self.hot } else { &self.cold };
        let block = blocks.start + random.below(blocks.end - blocks.start);
        (if write { Op::Write } else { Op::Read }, block)
    }
}

/// The generator; see the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    random: SplitMix,
    clock: Clock,
    streams: Vec<Stream>,
    block_count: u64,
    shared_count: u64,
    stride: u64,
}

impl Blocks {
    /// One trace.
    pub(super) fn of(row: &WasRow, request_count: u64, seed: u64) -> Self {
        let level = Level::of(row);
        let stream = Stream::new(row, level, request_count, 0, level.hot_count);
        Self::new(vec![stream], 0, WEEK_US / row.request_count as f64, seed)
    }

    /// Online and Webmail over the same week. Ranks: Online's hot and cold blocks, the last of which are the
    /// first of Webmail's cold ones, and Webmail's hot ones.
    pub(super) fn merged(request_count: u64, seed: u64) -> Self {
        let (online, webmail) = (Level::of(&WAS_ONLINE), Level::of(&WAS_WEBMAIL));
        let row = &WAS_ONLINE_WEBMAIL;
        let shared = shared_count(online, webmail, row);
        let share = WAS_ONLINE.request_count as f64 / row.request_count as f64;
        let online_requests = part(request_count, share);
        let first = Stream::new(&WAS_ONLINE, online, online_requests, 0, online.hot_count);
        let cold_from = first.cold.end - shared;
        let hot_from = cold_from + webmail.cold_count;
        let second = Stream::new(&WAS_WEBMAIL, webmail, request_count - online_requests, hot_from, cold_from);
        Self::new(vec![first, second], shared, WEEK_US / row.request_count as f64, seed)
    }

    fn new(streams: Vec<Stream>, shared_count: u64, interval_us_mean: f64, seed: u64) -> Self {
        let ends = streams.iter().flat_map(|stream| [stream.hot.end, stream.cold.end]);
        let block_count = ends.max().unwrap_or(1);
        Self {
            random: SplitMix(seed),
            clock: Clock::new(interval_us_mean),
            streams,
            block_count,
            shared_count,
            stride: scatter_stride(block_count),
        }
    }

    /// What was solved, for the file and for people.
    pub(super) fn solution(&self) -> String {
        let streams: Vec<_> = self
            .streams
            .iter()
            .map(|stream| {
                let (hot, cold) = (stream.hot.end - stream.hot.start, stream.cold.end - stream.cold.start);
                format!("{hot} hot blocks with {:.2} %, {cold} cold", 100.0 * stream.hot_share)
            })
            .collect();
        match self.shared_count {
            0 => streams.join("; "),
            shared => format!("{}; {shared} cold blocks in both", streams.join("; ")),
        }
    }
}

impl Iterator for Blocks {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let left: u64 = self.streams.iter().map(|stream| stream.left).sum();
        if left == 0 {
            return None;
        }
        let time_us = self.clock.tick(&mut self.random);
        let mut ticket = self.random.below(left);
        // The ticket is below the sum, so one of them holds it.
        let stream = self.streams.iter_mut().find(|stream| {
            let found = ticket < stream.left;
            if !found {
                ticket -= stream.left;
            }
            found
        })?;
        let (op, rank) = stream.next(&mut self.random);
        let offset_bytes = scatter(rank, self.stride, self.block_count) * CALIBRATED_CHUNK_BYTES;
        Some(Request { time_us, dev: 0, op, offset_bytes, length_bytes: CALIBRATED_CHUNK_BYTES })
    }
}
