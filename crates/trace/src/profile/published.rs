//! What the papers print of their traces (requirements ), and what each figure means.

use super::Profile;
use crate::Stats;

/// A row of EPLOG's Table 2: writes only, sizes rounded out to chunks.
pub(super) struct EplogRow {
    pub(super) write_count: u64,
    pub(super) write_kib_mean: f64,
    pub(super) random_percent: f64,
    pub(super) working_set_gib: f64,
}

/// A row of WAS's Table I.
pub(super) struct WasRow {
    pub(super) request_count: u64,
    pub(super) request_bytes_mean: f64,
    pub(super) write_share: f64,
    pub(super) chunk_write_count: u64,
    pub(super) unique_chunk_count: u64,
    pub(super) top_fifth_percent: f64,
}

pub(super) const EPLOG_FIN: EplogRow =
    EplogRow { write_count: 4_110_563, write_kib_mean: 7.19, random_percent: 76.17, working_set_gib: 3.67 };
pub(super) const EPLOG_WEB: EplogRow =
    EplogRow { write_count: 1_431_628, write_kib_mean: 12.50, random_percent: 77.62, working_set_gib: 7.26 };
pub(super) const EPLOG_USR: EplogRow =
    EplogRow { write_count: 1_363_855, write_kib_mean: 10.05, random_percent: 76.19, working_set_gib: 2.44 };
pub(super) const EPLOG_MDS: EplogRow =
    EplogRow { write_count: 1_069_421, write_kib_mean: 7.22, random_percent: 82.99, working_set_gib: 3.09 };

pub(super) const WAS_FINANCIAL1: WasRow = WasRow {
    request_count: 5_334_987,
    request_bytes_mean: 3465.0,
    write_share: 0.768391,
    chunk_write_count: 7_384_396,
    unique_chunk_count: 135_147,
    top_fifth_percent: 50.96,
};
pub(super) const WAS_ONLINE: WasRow = WasRow {
    request_count: 5_700_499,
    request_bytes_mean: 4096.0,
    write_share: 0.738849,
    chunk_write_count: 4_211_806,
    unique_chunk_count: 69_142,
    top_fifth_percent: 86.39,
};
pub(super) const WAS_WEBMAIL: WasRow = WasRow {
    request_count: 7_795_815,
    request_bytes_mean: 4096.0,
    write_share: 0.818642,
    chunk_write_count: 6_381_985,
    unique_chunk_count: 218_969,
    top_fifth_percent: 91.26,
};
pub(super) const WAS_ONLINE_WEBMAIL: WasRow = WasRow {
    request_count: 13_496_314,
    request_bytes_mean: 4096.0,
    write_share: 0.784940,
    chunk_write_count: 10_593_791,
    unique_chunk_count: 249_026,
    top_fifth_percent: 80.88,
};
pub(super) const WAS_SYNTHETIC: WasRow = WasRow {
    request_count: 1_000_000,
    request_bytes_mean: 8192.0,
    write_share: 1.0,
    chunk_write_count: 2_875_039,
    unique_chunk_count: 160_282,
    top_fifth_percent: 80.0,
};

/// Where a figure was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The EPLOG paper, Table 2.
    EplogTable2,
    /// The WAS paper, Table I.
    WasTable1,
    /// The WAS paper, section V-A, in words.
    WasSection5A,
}

impl Source {
    /// The name printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::EplogTable2 => "EPLOG, Table 2",
            Self::WasTable1 => "WAS, Table I",
            Self::WasSection5A => "WAS, section V-A",
        }
    }
}

/// How a figure depends on the number of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// It grows with the number; a shorter trace has that part of it.
    Proportional,
    /// It is a mean or share and stays.
    Constant,
    /// It can be compared only between traces of the same length.
    FullLengthOnly,
}

/// A figure that the papers print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// All requests.
    Requests,
    /// Writes.
    Writes,
    /// Mean length of requests in bytes.
    RequestBytesMean,
    /// Writes among the requests, in percent.
    WritePercent,
    /// Mean length of writes in KiB, rounded out to chunks.
    WriteKibMean,
    /// Random writes among the writes, in percent.
    RandomPercent,
    /// Footprint in GiB.
    WorkingSetGib,
    /// Chunks written, each time.
    ChunkWrites,
    /// Different chunks written.
    UniqueChunks,
    /// Chunk writes to the most written fifth of the unique chunks, in percent.
    TopFifthPercent,
    /// Chunk writes to the most written fifth of the address range, in percent.
    RangeFifthPercent,
}

impl Statistic {
    /// The name printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Writes => "writes",
            Self::RequestBytesMean => "mean request, bytes",
            Self::WritePercent => "write share, %",
            Self::WriteKibMean => "mean write, KiB",
            Self::RandomPercent => "random writes, %",
            Self::WorkingSetGib => "working set, GiB",
            Self::ChunkWrites => "chunk writes",
            Self::UniqueChunks => "unique chunks",
            Self::TopFifthPercent => "top 20 % of chunks, %",
            Self::RangeFifthPercent => "top 20 % of range, %",
        }
    }

    /// What is counted, as printed.
    pub fn definition(self) -> &'static str {
        match self {
            Self::Requests => "reads and writes",
            Self::Writes => "write requests",
            Self::RequestBytesMean => "reads and writes, as issued, not rounded",
            Self::WritePercent => "writes among the requests",
            Self::WriteKibMean => "writes rounded out to whole 4 KiB chunks",
            Self::RandomPercent => "starts 64 KiB or more from the end of the write before",
            Self::WorkingSetGib => "1 MiB segments touched: what a compacted replay fills",
            Self::ChunkWrites => "every 4 KiB chunk that a write touches, each time",
            Self::UniqueChunks => "different 4 KiB chunks written",
            Self::TopFifthPercent => "chunk writes to the most written fifth of the unique chunks",
            Self::RangeFifthPercent => "chunk writes to the most written fifth of the address range",
        }
    }

    /// How it depends on the length of the trace.
    pub fn scaling(self) -> Scaling {
        match self {
            Self::Requests | Self::Writes | Self::ChunkWrites => Scaling::Proportional,
            Self::RequestBytesMean | Self::WritePercent | Self::WriteKibMean | Self::RandomPercent => {
                Scaling::Constant
            }
            Self::WorkingSetGib | Self::UniqueChunks | Self::TopFifthPercent | Self::RangeFifthPercent => {
                Scaling::FullLengthOnly
            }
        }
    }

    /// Digits after the point.
    pub fn decimals(self) -> usize {
        match self {
            Self::Requests | Self::Writes | Self::ChunkWrites | Self::UniqueChunks => 0,
            Self::RequestBytesMean => 1,
            Self::WriteKibMean
            | Self::RandomPercent
            | Self::WorkingSetGib
            | Self::TopFifthPercent
            | Self::RangeFifthPercent => 2,
            Self::WritePercent => 4,
        }
    }

    /// The figure of a trace; `range_fifth_write_count` is what only the range's owner knows.
    pub(super) fn of(self, stats: &Stats, range_fifth_write_count: u64) -> f64 {
        match self {
            Self::Requests => stats.request_count as f64,
            Self::Writes => stats.write_count as f64,
            Self::RequestBytesMean => stats.transfer_bytes_mean(),
            Self::WritePercent => stats.write_percent(),
            Self::WriteKibMean => stats.write_kib_mean(),
            Self::RandomPercent => stats.random_percent(),
            Self::WorkingSetGib => stats.footprint_gib(),
            Self::ChunkWrites => stats.chunk_write_count as f64,
            Self::UniqueChunks => stats.unique_chunk_count as f64,
            Self::TopFifthPercent => stats.top_fifth_percent(),
            Self::RangeFifthPercent => {
                100.0 * range_fifth_write_count as f64 / stats.chunk_write_count.max(1) as f64
            }
        }
    }
}

/// A published figure that a profile is to reach at full length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Which figure.
    pub statistic: Statistic,
    /// Where it was printed.
    pub source: Source,
    /// The figure.
    pub value: f64,
    /// Why a known deviation cannot be avoided.
    pub note: Option<&'static str>,
}

/// Why the two papers' numbers of Financial1's writes differ.
const NOTE_FIN_WRITES: &str =
    "the papers differ by 0.27 %: this one follows WAS, requests x write share (A-29)";
/// The column holds of unique chunks for the other workloads; for this one it cannot (tested in `normal.rs`).
const NOTE_TOP_OF_NORMAL: &str = "80 % go to a fifth of the address range (next row), as section V-A says, and cannot go to a fifth \
     of the unique chunks: of normal addresses with deviation 0.078 x 160,282 chunks, 1,000,000 requests touch some \
     78,000 chunks only";

fn eplog(row: &EplogRow, note_writes: Option<&'static str>) -> Vec<Target> {
    let target = |statistic, value, note| Target { statistic, source: Source::EplogTable2, value, note };
    vec![
        target(Statistic::Writes, row.write_count as f64, note_writes),
        target(Statistic::WriteKibMean, row.write_kib_mean, None),
        target(Statistic::RandomPercent, row.random_percent, None),
        target(Statistic::WorkingSetGib, row.working_set_gib, None),
    ]
}

fn was(row: &WasRow, note_top: Option<&'static str>) -> Vec<Target> {
    let target = |statistic, value, note| Target { statistic, source: Source::WasTable1, value, note };
    vec![
        target(Statistic::Requests, row.request_count as f64, None),
        target(Statistic::RequestBytesMean, row.request_bytes_mean, None),
        target(Statistic::WritePercent, 100.0 * row.write_share, None),
        target(Statistic::ChunkWrites, row.chunk_write_count as f64, None),
        target(Statistic::UniqueChunks, row.unique_chunk_count as f64, None),
        target(Statistic::TopFifthPercent, row.top_fifth_percent, note_top),
    ]
}

impl Profile {
    /// The published figures that the profile is calibrated to; none for `zipf` and `uniform`.
    pub fn targets(self) -> Vec<Target> {
        match self {
            Self::WasSynthetic => {
                let mut targets = was(&WAS_SYNTHETIC, Some(NOTE_TOP_OF_NORMAL));
                targets.push(Target {
                    statistic: Statistic::RangeFifthPercent,
                    source: Source::WasSection5A,
                    value: WAS_SYNTHETIC.top_fifth_percent,
                    note: None,
                });
                targets
            }
            Self::WasSyntheticFifth => was(&WAS_SYNTHETIC, None),
            Self::Fin => {
                let mut targets = eplog(&EPLOG_FIN, Some(NOTE_FIN_WRITES));
                targets.extend(was(&WAS_FINANCIAL1, None));
                targets
            }
            Self::Web => eplog(&EPLOG_WEB, None),
            Self::Usr => eplog(&EPLOG_USR, None),
            Self::Mds => eplog(&EPLOG_MDS, None),
            Self::Online => was(&WAS_ONLINE, None),
            Self::Webmail => was(&WAS_WEBMAIL, None),
            Self::OnlineWebmail => was(&WAS_ONLINE_WEBMAIL, None),
            Self::Zipf { .. } | Self::Uniform | Self::TpccLike | Self::YcsbCompaction => Vec::new(),
        }
    }
}
