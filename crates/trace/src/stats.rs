//! What the papers print of a trace.
//!
//! Both papers count every chunk that a write touches: starts rounded down, ends rounded up. The WAS
//! paper's figures ignore the device ([`DevMode::Ignore`]), the EPLOG paper's working set is the
//! segment footprint.

use crate::{DevMode, Op, Request, SEGMENT_BYTES};
use std::collections::HashMap;
use std::fmt;

/// A write is random if it starts at least this far from the end of the write before it, on
/// either side.
pub const RANDOM_DISTANCE_BYTES: u64 = 64 << 10;

const KIB: f64 = 1024.0;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
/// Chunks whose counters lie together, so that most requests look up one table entry.
const REGION_CHUNKS: usize = 64;
/// About 4.5 GB of counters; 4 TiB of written 4 KiB chunks if they lie together.
const REGIONS_MAX: usize = 1 << 24;
const SEGMENTS_MAX: usize = 1 << 27;

/// What to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatsOptions {
    /// Bytes in a chunk: a power of two from 512 bytes to 1 MiB.
    pub chunk_bytes: u64,
    /// What to make of several devices. If they are kept apart, a write to another device than the one before
    /// it is random.
    pub dev_mode: DevMode,
}

impl Default for StatsOptions {
    fn default() -> Self {
        Self { chunk_bytes: 4096, dev_mode: DevMode::default() }
    }
}

/// Why a trace could not be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatsError {
    /// The chunk size cannot be used.
    #[error("chunk of {bytes} bytes, expected a power of two from 512 to 1048576")]
    Chunk {
        /// Chunk size asked for.
        bytes: u64,
    },
    /// The trace touches more than there are counters for.
    #[error("the trace touches too many places to count; use larger chunks")]
    TooLarge,
}

/// Counts requests one at a time. Memory: about 4 bytes per chunk written where writes lie together, up to
/// 280 bytes where they do not, and 30 bytes per segment touched.
pub struct StatsCollector {
    options: StatsOptions,
    stats: Stats,
    regions: HashMap<(u32, u64), usize>,
    counts: Vec<[u32; REGION_CHUNKS]>,
    /// Whether a touched segment was written.
    segments: HashMap<(u32, u64), bool>,
    previous_write: Option<(u32, u64)>,
    time_us_first: Option<u64>,
    time_us_last: u64,
}

/// The figures of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes in the chunk that was counted with.
    pub chunk_bytes: u64,
    /// All requests.
    pub request_count: u64,
    /// Reads.
    pub read_count: u64,
    /// Writes.
    pub write_count: u64,
    /// Flushes.
    pub flush_count: u64,
    /// Trims.
    pub trim_count: u64,
    /// Bytes read, as the trace says, without rounding.
    pub read_bytes: u64,
    /// Bytes written, without rounding.
    pub write_bytes: u64,
    /// Chunks touched by writes, each time: the host's chunk writes.
    pub chunk_write_count: u64,
    /// Different chunks written.
    pub unique_chunk_count: u64,
    /// Chunk writes that went to the fifth of the unique chunks that is written most.
    pub top_fifth_write_count: u64,
    /// Writes that start [`RANDOM_DISTANCE_BYTES`] or more from the end of the one before; the first one
    /// counts too.
    pub random_write_count: u64,
    /// Segments of 1 MiB touched by writes.
    pub segment_written_count: u64,
    /// Segments of 1 MiB touched by reads or writes: the footprint that a compacted replay fills.
    pub segment_touched_count: u64,
    /// From the earliest to the latest request.
    pub duration_us: u64,
}

impl StatsCollector {
    /// Starts counting.
    pub fn new(options: StatsOptions) -> Result<Self, StatsError> {
        let bytes = options.chunk_bytes;
        if !bytes.is_power_of_two() || !(512..=SEGMENT_BYTES).contains(&bytes) {
            return Err(StatsError::Chunk { bytes });
        }
        Ok(Self {
            options,
            stats: Stats { chunk_bytes: bytes, ..Stats::default() },
            regions: HashMap::new(),
            counts: Vec::new(),
            segments: HashMap::new(),
            previous_write: None,
            time_us_first: None,
            time_us_last: 0,
        })
    }

    /// Counts one request.
    pub fn add(&mut self, request: &Request) -> Result<(), StatsError> {
        let stats = &mut self.stats;
        stats.request_count += 1;
        self.time_us_first =
            Some(self.time_us_first.map_or(request.time_us, |first| first.min(request.time_us)));
        self.time_us_last = self.time_us_last.max(request.time_us);
        let space = self.options.dev_mode.space_of(request.dev);
        match request.op {
            Op::Read => {
                stats.read_count += 1;
                stats.read_bytes = stats.read_bytes.saturating_add(request.length_bytes);
                self.touch_segments(space, request)
            }
            Op::Write => {
                stats.write_count += 1;
                stats.write_bytes = stats.write_bytes.saturating_add(request.length_bytes);
                let near = self.previous_write.is_some_and(|(dev, end)| {
                    dev == space && request.offset_bytes.abs_diff(end) < RANDOM_DISTANCE_BYTES
                });
                stats.random_write_count += u64::from(!near);
                self.previous_write = Some((space, request.end_bytes()));
                self.touch_segments(space, request)?;
                self.count_chunks(space, request)
            }
            Op::Flush => {
                stats.flush_count += 1;
                Ok(())
            }
            Op::Trim => {
                stats.trim_count += 1;
                Ok(())
            }
        }
    }

    fn touch_segments(&mut self, space: u32, request: &Request) -> Result<(), StatsError> {
        for segment in request.chunks(SEGMENT_BYTES) {
            *self.segments.entry((space, segment)).or_default() |= request.op == Op::Write;
        }
        if self.segments.len() > SEGMENTS_MAX { Err(StatsError::TooLarge) } else { Ok(()) }
    }

    fn count_chunks(&mut self, space: u32, request: &Request) -> Result<(), StatsError> {
        let chunks = request.chunks(self.options.chunk_bytes);
        self.stats.chunk_write_count += chunks.end - chunks.start;
        let region_chunks = REGION_CHUNKS as u64;
        let mut chunk = chunks.start;
        while chunk < chunks.end {
            let region = chunk / region_chunks;
            let end = chunks.end.min((region + 1) * region_chunks);
            let index = *self.regions.entry((space, region)).or_insert(self.counts.len());
            if index == self.counts.len() {
                if index == REGIONS_MAX {
                    return Err(StatsError::TooLarge);
                }
                self.counts.push([0; REGION_CHUNKS]);
            }
            let first = (chunk % region_chunks) as usize;
            for count in &mut self.counts[index][first..first + (end - chunk) as usize] {
                *count = count.saturating_add(1);
            }
            chunk = end;
        }
        Ok(())
    }

    /// Writes per chunk, most first, and how many chunks have so many.
    fn chunks_by_count(&self) -> Vec<(u32, u64)> {
        let mut chunks_by_count: HashMap<u32, u64> = HashMap::new();
        for &count in self.counts.iter().flatten().filter(|&&count| count > 0) {
            *chunks_by_count.entry(count).or_default() += 1;
        }
        let mut chunks_by_count: Vec<_> = chunks_by_count.into_iter().collect();
        chunks_by_count.sort_unstable_by_key(|&(count, _)| std::cmp::Reverse(count));
        chunks_by_count
    }

    /// Chunk writes that went to the `chunk_count` chunks written most.
    pub fn hottest_write_count(&self, chunk_count: u64) -> u64 {
        hottest(&self.chunks_by_count(), chunk_count)
    }

    /// The figures.
    pub fn finish(self) -> Stats {
        let chunks_by_count = self.chunks_by_count();
        let mut stats = self.stats;
        stats.unique_chunk_count = chunks_by_count.iter().map(|&(_, chunks)| chunks).sum();
        stats.top_fifth_write_count = hottest(&chunks_by_count, stats.unique_chunk_count.div_ceil(5));
        stats.segment_touched_count = self.segments.len() as u64;
        stats.segment_written_count = self.segments.values().map(|&written| u64::from(written)).sum();
        stats.duration_us = self.time_us_last - self.time_us_first.unwrap_or(self.time_us_last);
        stats
    }
}

fn hottest(chunks_by_count: &[(u32, u64)], chunk_count: u64) -> u64 {
    let mut left = chunk_count;
    let mut writes = 0;
    for &(count, chunks) in chunks_by_count {
        let taken = chunks.min(left);
        writes += taken * u64::from(count);
        left -= taken;
    }
    writes
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Stats {
    /// Writes among all requests, in percent.
    pub fn write_percent(&self) -> f64 {
        100.0 * ratio(self.write_count, self.request_count)
    }

    /// Mean size of a write, rounded out to chunks, in KiB.
    pub fn write_kib_mean(&self) -> f64 {
        ratio(self.chunk_write_count, self.write_count) * self.chunk_bytes as f64 / KIB
    }

    /// Mean size of a read or write in bytes, without rounding.
    pub fn transfer_bytes_mean(&self) -> f64 {
        ratio(self.read_bytes.saturating_add(self.write_bytes), self.read_count + self.write_count)
    }

    /// Random writes among the writes, in percent.
    pub fn random_percent(&self) -> f64 {
        100.0 * ratio(self.random_write_count, self.write_count)
    }

    /// Unique chunks written, in GiB.
    pub fn working_set_gib(&self) -> f64 {
        self.unique_chunk_count as f64 * self.chunk_bytes as f64 / GIB
    }

    /// Segments touched by reads or writes, in GiB.
    pub fn footprint_gib(&self) -> f64 {
        self.segment_touched_count as f64 * SEGMENT_BYTES as f64 / GIB
    }

    /// Chunk writes per unique chunk.
    pub fn update_ratio(&self) -> f64 {
        ratio(self.chunk_write_count, self.unique_chunk_count)
    }

    /// Share of the chunk writes that the most written fifth of the unique chunks gets, in percent.
    pub fn top_fifth_percent(&self) -> f64 {
        100.0 * ratio(self.top_fifth_write_count, self.chunk_write_count)
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "requests       {} ({} reads, {} writes, {} flushes, {} trims)",
            self.request_count, self.read_count, self.write_count, self.flush_count, self.trim_count
        )?;
        // Shares and means of nothing are none.
        let of = |count: u64, figure: f64, unit: &str| {
            if count > 0 { format!("{figure:.2}{unit}") } else { "n/a".to_owned() }
        };
        writeln!(f, "writes         {}", of(self.request_count, self.write_percent(), " %"))?;
        let mean = of(self.write_count, self.write_kib_mean(), " KiB in whole chunks");
        writeln!(f, "mean write     {mean}")?;
        writeln!(f, "random writes  {}", of(self.write_count, self.random_percent(), " %"))?;
        writeln!(
            f,
            "chunk writes   {} to {} chunks of {} bytes",
            self.chunk_write_count, self.unique_chunk_count, self.chunk_bytes
        )?;
        writeln!(f, "update ratio   {}", of(self.unique_chunk_count, self.update_ratio(), ""))?;
        let top = of(self.chunk_write_count, self.top_fifth_percent(), " % of the chunk writes");
        writeln!(f, "top 20 %       {top}")?;
        writeln!(f, "working set    {:.3} GiB written", self.working_set_gib())?;
        writeln!(f, "footprint      {:.3} GiB in 1 MiB segments", self.footprint_gib())?;
        write!(f, "duration       {:.3} s", self.duration_us as f64 / 1e6)
    }
}
