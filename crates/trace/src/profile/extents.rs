//! Stand-ins for EPLOG's traces: one extent of written chunks in every 1 MiB segment of the footprint.
//!
//! A random write draws an extent and a place in it; a near one continues where the write before ended, or,
//! if it does not fit there, lies anywhere in the same extent that is near. So segments give the working set,
//! extents the unique chunks, the extents of a hot fifth their share of the chunk writes, and counters the
//! share of random writes. Reads are like random writes.

use super::published::{EPLOG_FIN, EplogRow, WAS_FINANCIAL1};
use super::solve::SizeMix;
use super::{CALIBRATED_CHUNK_BYTES, WEEK_US};
use crate::random::{Clock, SplitMix, scatter, scatter_stride};
use crate::{Op, RANDOM_DISTANCE_BYTES, Request, SEGMENT_BYTES};

const SECTOR_BYTES: u64 = 512;
const SECTORS_PER_CHUNK: f64 = 8.0;
const CHUNK_KIB: f64 = 4.0;
const SEGMENTS_PER_GIB: f64 = 1024.0;
/// A write no longer than this stays near the one before anywhere at an extent's end.
const CHUNKS_PER_WRITE_MAX: u32 = 15;
const HOUR_US: f64 = 3600e6;
/// Draws of a random place before one that happens to be near is taken; a draw is near with odds below
/// 1 in 1,000.
const DRAWS_MAX: u32 = 100;

/// Write lengths in sectors among the first 10,000 requests of Financial1, and how often; those seen 60 times
/// or more.
const FIN_HEAD_WRITES: [(u32, f64); 13] = [
    (1, 772.0),
    (2, 1019.0),
    (3, 192.0),
    (4, 94.0),
    (5, 253.0),
    (6, 1760.0),
    (7, 756.0),
    (8, 98.0),
    (13, 83.0),
    (15, 65.0),
    (16, 272.0),
    (24, 84.0),
    (96, 220.0),
];
/// The same of its reads.
const FIN_HEAD_READS: [(u32, f64); 4] = [(1, 609.0), (2, 192.0), (6, 236.0), (16, 2903.0)];

/// What is solved for a trace.
#[derive(Clone, Debug)]
struct Plan {
    /// Starts and lengths are multiples of this.
    unit_bytes: u64,
    write_units: SizeMix,
    read_units: Option<SizeMix>,
    write_share: f64,
    random_share: f64,
    segment_count: u64,
    /// Chunks in all extents together.
    chunk_count: u64,
    /// Extents with a share of their own; 0 if none is published.
    hot_count: u64,
    hot_share: f64,
    interval_us_mean: f64,
}

/// Segments of a working set in GiB.
fn segments(row: &EplogRow) -> u64 {
    (row.working_set_gib * SEGMENTS_PER_GIB).round() as u64
}

/// FIN satisfies both papers at once. Of a write of s sectors at any sector, (s + 7) / 8 chunks are touched
/// on average, so the chunk writes give the mean write; the mean of all requests gives the mean read.
fn plan_fin() -> Plan {
    let was = &WAS_FINANCIAL1;
    let write_count = was.request_count as f64 * was.write_share;
    let chunks_mean = was.chunk_write_count as f64 / write_count;
    let write_mean = SECTORS_PER_CHUNK * chunks_mean - (SECTORS_PER_CHUNK - 1.0);
    let all_mean = was.request_bytes_mean / SECTOR_BYTES as f64;
    let read_mean = (all_mean - was.write_share * write_mean) / (1.0 - was.write_share);
    let segment_count = segments(&EPLOG_FIN);
    Plan {
        unit_bytes: SECTOR_BYTES,
        write_units: SizeMix::tilted(&FIN_HEAD_WRITES, write_mean),
        read_units: Some(SizeMix::tilted(&FIN_HEAD_READS, read_mean)),
        write_share: was.write_share,
        random_share: EPLOG_FIN.random_percent / 100.0,
        segment_count,
        chunk_count: was.unique_chunk_count,
        hot_count: segment_count.div_ceil(5),
        hot_share: was.top_fifth_percent / 100.0,
        interval_us_mean: 12.0 * HOUR_US / was.request_count as f64,
    }
}

/// Of the others only the mean of whole chunks is published: lengths of 1 to 15 chunks, as even as the mean
/// allows. How much of a segment is written is not: as much as in FIN, the one trace of which both figures
/// are known.
fn plan_of(row: &EplogRow) -> Plan {
    let even: Vec<_> = (1..=CHUNKS_PER_WRITE_MAX).map(|chunks| (chunks, 1.0)).collect();
    let segment_count = segments(row);
    let density = WAS_FINANCIAL1.unique_chunk_count as f64 / segments(&EPLOG_FIN) as f64;
    Plan {
        unit_bytes: CALIBRATED_CHUNK_BYTES,
        write_units: SizeMix::tilted(&even, row.write_kib_mean / CHUNK_KIB),
        read_units: None,
        write_share: 1.0,
        random_share: row.random_percent / 100.0,
        segment_count,
        chunk_count: (density * segment_count as f64).round() as u64,
        hot_count: 0,
        hot_share: 0.0,
        interval_us_mean: WEEK_US / row.write_count as f64,
    }
}

/// The part of a segment that is written.
#[derive(Clone, Copy, Debug)]
struct Extent {
    start_bytes: u64,
    units: u64,
}

/// The generator; see the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Extents {
    plan: Plan,
    random: SplitMix,
    clock: Clock,
    seed: u64,
    stride: u64,
    left: u64,
    writes_left: u64,
    random_writes_left: u64,
    /// Where the write before lay, and its end.
    previous: Option<(Extent, u64)>,
}

impl Extents {
    pub(super) fn fin(request_count: u64, seed: u64) -> Self {
        Self::new(plan_fin(), request_count, seed)
    }

    pub(super) fn of(row: &EplogRow, request_count: u64, seed: u64) -> Self {
        Self::new(plan_of(row), request_count, seed)
    }

    fn new(plan: Plan, request_count: u64, seed: u64) -> Self {
        let writes_left = part(request_count, plan.write_share);
        Self {
            random: SplitMix(seed),
            clock: Clock::new(plan.interval_us_mean),
            seed,
            stride: scatter_stride(plan.segment_count),
            left: request_count,
            writes_left,
            random_writes_left: part(writes_left, plan.random_share),
            previous: None,
            plan,
        }
    }

    /// Extents differ by one chunk at most, and lie anywhere in their segment.
    fn extent(&self, segment: u64) -> Extent {
        let Plan { segment_count, chunk_count, unit_bytes, .. } = self.plan;
        let chunks = (segment + 1) * chunk_count / segment_count - segment * chunk_count / segment_count;
        let spare = SEGMENT_BYTES / CALIBRATED_CHUNK_BYTES - chunks;
        // A stream of its own: the place does not depend on what was drawn before.
        let place = SplitMix(self.seed ^ segment.wrapping_mul(0xd1b5_4a32_d192_ed03)).below(spare + 1);
        Extent {
            start_bytes: segment * SEGMENT_BYTES + place * CALIBRATED_CHUNK_BYTES,
            units: chunks * CALIBRATED_CHUNK_BYTES / unit_bytes,
        }
    }

    fn draw_extent(&mut self) -> Extent {
        let Plan { segment_count, hot_count, hot_share, .. } = self.plan;
        let hot = hot_count > 0 && self.random.chance(hot_share);
        let rank = if hot {
            self.random.below(hot_count)
        } else {
            hot_count + self.random.below(segment_count - hot_count)
        };
        self.extent(scatter(rank, self.stride, segment_count))
    }

    /// A place for `units` in the extent, from its unit `first` on; all sectors of a chunk are
    /// equally likely starts.
    fn place(&mut self, extent: Extent, first: u64, units: u64) -> u64 {
        let chunk_units = CALIBRATED_CHUNK_BYTES / self.plan.unit_bytes;
        // Longest lengths are a third of an extent, so there is room.
        let room = extent.units.saturating_sub(first + units) + 1;
        let whole_chunks = room - room % chunk_units;
        let room = if whole_chunks > 0 { whole_chunks } else { room };
        extent.start_bytes + (first + self.random.below(room)) * self.plan.unit_bytes
    }

    fn far_place(&mut self, units: u64) -> (Extent, u64) {
        let mut found = self.draw_extent();
        let mut start = self.place(found, 0, units);
        for _ in 1..DRAWS_MAX {
            let near = self.previous.is_some_and(|(_, end)| start.abs_diff(end) < RANDOM_DISTANCE_BYTES);
            if !near {
                break;
            }
            found = self.draw_extent();
            start = self.place(found, 0, units);
        }
        (found, start)
    }

    fn near_place(&mut self, extent: Extent, end_bytes: u64, units: u64) -> (Extent, u64) {
        let unit_bytes = self.plan.unit_bytes;
        let end_unit = (end_bytes - extent.start_bytes) / unit_bytes;
        if end_unit + units <= extent.units {
            return (extent, end_bytes);
        }
        // Less than the distance back from the end; the longest write is shorter, so one fits behind that.
        let first = (end_unit + 1).saturating_sub(RANDOM_DISTANCE_BYTES / unit_bytes);
        (extent, self.place(extent, first, units))
    }

    fn write(&mut self) -> (u64, u64) {
        let units = self.plan.write_units.sample(&mut self.random);
        let far = self.random.of_the_rest(self.random_writes_left, self.writes_left);
        let (extent, start) = match self.previous {
            Some((extent, end)) if !far => self.near_place(extent, end, units),
            Some(_) | None => {
                self.random_writes_left = self.random_writes_left.saturating_sub(1);
                self.far_place(units)
            }
        };
        self.writes_left -= 1;
        let length_bytes = units * self.plan.unit_bytes;
        self.previous = Some((extent, start + length_bytes));
        (start, length_bytes)
    }

    fn read(&mut self) -> (u64, u64) {
        let units = self.plan.read_units.as_ref().map_or(1, |sizes| sizes.sample(&mut self.random));
        let extent = self.draw_extent();
        (self.place(extent, 0, units), units * self.plan.unit_bytes)
    }

    /// What was solved, for the file and for people.
    pub(super) fn solution(&self) -> String {
        let Plan { segment_count, chunk_count, hot_count, hot_share, .. } = self.plan;
        let hot = match hot_count {
            0 => String::new(),
            count => format!(", {count} of them with {:.2} % of the writes", 100.0 * hot_share),
        };
        format!("{segment_count} extents of together {chunk_count} chunks, one per 1 MiB segment{hot}")
    }
}

impl Iterator for Extents {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let write = self.left > 0 && self.random.of_the_rest(self.writes_left, self.left);
        self.left = self.left.checked_sub(1)?;
        let time_us = self.clock.tick(&mut self.random);
        let (op, (offset_bytes, length_bytes)) =
            if write { (Op::Write, self.write()) } else { (Op::Read, self.read()) };
        Some(Request { time_us, dev: 0, op, offset_bytes, length_bytes })
    }
}

/// A share of a number, to the nearest.
pub(super) fn part(count: u64, share: f64) -> u64 {
    ((count as f64 * share).round() as u64).min(count)
}
