//! Synthetic traces by profile (`trace generate`): the WAS paper's own Synthetic, Zipf and uniform writes,
//! and stand-ins for the papers' traces, which cannot be had whole.
//!
//! # What a stand-in is
//! A stand-in reaches every figure that the papers print of a trace, and nothing else of it. All parameters
//! follow from those figures when the generator is made (`solve.rs` has the equations); what is not published
//! is filled in by the assumption that says least, and listed here. A stand-in has no locality in time (each
//! request is drawn afresh), no daily rhythm, and two levels of popularity at most; results that depend on
//! such things are not results on the trace.
//!
//! | profile | figures from | solved | assumed |
//! |---|---|---|---|
//! | `was-synthetic` | WAS, Table I and section V-A | range of the addresses, from the unique chunks | see [`Profile::WasSynthetic`] |
//! | `was-synthetic-fifth` | WAS, Table I | nothing | a fifth of the range gets 80 %, uniform inside and outside; see `fifth.rs` |
//! | `fin` | EPLOG, Table 2, and WAS, Table I, at once | size mixes of reads and writes; extents; share of the hot ones | sizes seen in the trace's first 10,000 requests, tilted to the mean |
//! | `web`, `usr`, `mds` | EPLOG, Table 2 | size mix | sizes of whole chunks with the largest entropy; no reads; as many chunks written per segment as in `fin` |
//! | `online`, `webmail` | WAS, Table I | hot and cold blocks | whole chunks; places scattered |
//! | `online-webmail` | WAS, Table I | blocks that both write | both mixed evenly over the time |
//! | `zipf:THETA`, `uniform` | none | nothing | one-chunk writes at 4 KiB boundaries |
//! | `tpcc-like`, `ycsb-compaction` | none | nothing | see `warehouse.rs`, `compaction.rs` |
//!
//! # Definitions
//! Those of [`crate::Stats`], with chunks of 4096 bytes: a write touches every chunk between its start
//! rounded down and its end rounded up; it is random if it starts 64 KiB or more from the end of the write
//! before; the working set of EPLOG's Table 2 is the footprint in 1 MiB segments, its KB and GB are
//! 2^10 and 2^30 bytes; the unique chunks of WAS's Table I are those written. Times: 12 hours for `fin` and a
//! week for `web`, `usr`, `mds` as EPLOG says; a week for `online` and `webmail`, 1 ms between requests for
//! the others, which no paper says.

mod blocks;
mod compaction;
mod compare;
mod extents;
mod fifth;
mod generator;
mod label;
mod normal;
mod published;
mod solve;
mod warehouse;

pub use compare::{Comparison, TOLERANCE_PERCENT, Verdict, compare};
pub use generator::Generator;
pub use label::Label;
pub use published::{Scaling, Source, Statistic, Target};

use std::fmt;
use std::str::FromStr;

/// Chunk that the papers count with and that profiles are calibrated for.
pub const CALIBRATED_CHUNK_BYTES: u64 = 4096;
/// Range of `zipf` and `uniform` if none is given.
pub const RANGE_BYTES_DEFAULT: u64 = 1 << 30;
/// Requests of `zipf` and `uniform` if no number is given.
pub const REQUESTS_DEFAULT: u64 = 1_000_000;
const RANGE_BYTES_MAX: u64 = 1 << 50;
/// A week in microseconds.
const WEEK_US: f64 = 7.0 * 24.0 * 3600e6;
const ZIPF_EXPONENT_MAX: f64 = 5.0;

/// What kind of trace to generate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Profile {
    /// The WAS paper's Synthetic workload as X-15 derives it: 8 KiB writes at 512-byte boundaries, their
    /// addresses normally distributed with deviation 0.078 x range, so that the middle fifth of the range
    /// gets 80 % of the requests. The range is what makes the unique chunks come out.
    WasSynthetic,
    /// The same by Table I: 8 KiB writes at 512-byte boundaries, 80 % of them in a fifth of 160,400 chunks,
    /// uniform inside and outside of it.
    WasSyntheticFifth,
    /// Stand-in for Financial1 (SPC), EPLOG's FIN.
    Fin,
    /// Stand-in for MSR Cambridge `web_0`.
    Web,
    /// Stand-in for MSR Cambridge `usr_0`.
    Usr,
    /// Stand-in for MSR Cambridge `mds_0`.
    Mds,
    /// Stand-in for the Online trace.
    Online,
    /// Stand-in for the Webmail trace.
    Webmail,
    /// Stand-in for both merged into one address space.
    OnlineWebmail,
    /// Writes of one chunk, Zipf-distributed over the range.
    Zipf {
        /// Skew, 0 to 5; 0 is uniform.
        exponent: f64,
    },
    /// Writes of one chunk, uniformly distributed over the range.
    Uniform,
    /// Writes as a TPC-C run on a database with pages of 16 KiB leaves them (P-18).
    TpccLike,
    /// Writes as YCSB updates in a store with compaction leave them (P-19).
    YcsbCompaction,
}

/// A profile or an option of it cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProfileError {
    /// No profile has this name.
    #[error("profile \"{found}\", expected one of {}", Profile::NAMES.join(", "))]
    Unknown {
        /// What was given.
        found: String,
    },
    /// The skew is no number, or out of range.
    #[error("zipf exponent \"{found}\", expected a number from 0 to 5, such as zipf:0.99")]
    ZipfExponent {
        /// What was given after `zipf:`.
        found: String,
    },
    /// No request at all.
    #[error("number of requests is 0, expected at least 1")]
    NoRequests,
    /// The range of a calibrated profile is part of what is solved.
    #[error(
        "profile {profile} has the range that its published figures demand; only zipf, uniform, tpcc-like and ycsb-compaction take one"
    )]
    RangeIsSolved {
        /// The profile.
        profile: Profile,
    },
    /// The range has no room for what the profile keeps in it, or too much.
    #[error("range of {bytes} bytes, expected from 64MiB to 4TiB for profile {profile}")]
    RangeOfPages {
        /// The profile.
        profile: Profile,
        /// What was given.
        bytes: u64,
    },
    /// The range is no whole number of chunks, or too small or large.
    #[error("range of {bytes} bytes, expected a multiple of 4096 from 8192 to 2^50")]
    Range {
        /// What was given.
        bytes: u64,
    },
}

/// What to generate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GenerateOptions {
    /// The kind of trace.
    pub profile: Profile,
    /// How many requests; `None` for as many as published, [`REQUESTS_DEFAULT`] where nothing is.
    pub request_count: Option<u64>,
    /// Same seed, same trace.
    pub seed: u64,
    /// Bytes of the address range, for profiles that have none of their own; `None` for
    /// [`RANGE_BYTES_DEFAULT`].
    pub range_bytes: Option<u64>,
}

impl Profile {
    /// The names on command lines.
    pub const NAMES: [&'static str; 13] = [
        "was-synthetic",
        "was-synthetic-fifth",
        "fin",
        "web",
        "usr",
        "mds",
        "online",
        "webmail",
        "online-webmail",
        "zipf:THETA",
        "uniform",
        "tpcc-like",
        "ycsb-compaction",
    ];

    /// Requests at full length: the published number (EPLOG's Table 2 has writes only). `None` if
    /// nothing is published.
    pub fn published_request_count(self) -> Option<u64> {
        match self {
            Self::WasSynthetic | Self::WasSyntheticFifth => Some(published::WAS_SYNTHETIC.request_count),
            Self::Fin => Some(published::WAS_FINANCIAL1.request_count),
            Self::Web => Some(published::EPLOG_WEB.write_count),
            Self::Usr => Some(published::EPLOG_USR.write_count),
            Self::Mds => Some(published::EPLOG_MDS.write_count),
            Self::Online => Some(published::WAS_ONLINE.request_count),
            Self::Webmail => Some(published::WAS_WEBMAIL.request_count),
            Self::OnlineWebmail => Some(published::WAS_ONLINE_WEBMAIL.request_count),
            Self::Zipf { .. } | Self::Uniform | Self::TpccLike | Self::YcsbCompaction => None,
        }
    }

    /// What it stands for, in a few words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::WasSynthetic => "the WAS paper's Synthetic workload",
            Self::WasSyntheticFifth => "the WAS paper's Synthetic workload, by its Table I",
            Self::Fin => "stand-in for Financial1 (FIN)",
            Self::Web => "stand-in for MSR web_0 (WEB)",
            Self::Usr => "stand-in for MSR usr_0 (USR)",
            Self::Mds => "stand-in for MSR mds_0 (MDS)",
            Self::Online => "stand-in for Online",
            Self::Webmail => "stand-in for Webmail",
            Self::OnlineWebmail => "stand-in for Online+Webmail",
            Self::Zipf { .. } => "Zipf-distributed writes, no model of any trace",
            Self::Uniform => "uniform writes, no model of any trace",
            Self::TpccLike => "writes like TPC-C on a database, no model of any trace",
            Self::YcsbCompaction => "writes like YCSB updates with compaction, no model of any trace",
        }
    }

    fn takes_range(self) -> bool {
        self.published_request_count().is_none()
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WasSynthetic => "was-synthetic",
            Self::WasSyntheticFifth => "was-synthetic-fifth",
            Self::Fin => "fin",
            Self::Web => "web",
            Self::Usr => "usr",
            Self::Mds => "mds",
            Self::Online => "online",
            Self::Webmail => "webmail",
            Self::OnlineWebmail => "online-webmail",
            Self::Zipf { exponent } => return write!(f, "zipf:{exponent}"),
            Self::Uniform => "uniform",
            Self::TpccLike => "tpcc-like",
            Self::YcsbCompaction => "ycsb-compaction",
        })
    }
}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, ProfileError> {
        if let Some(number) = text.strip_prefix("zipf:") {
            let refused = || ProfileError::ZipfExponent { found: number.to_owned() };
            let exponent: f64 = number.parse().map_err(|_| refused())?;
            return if (0.0..=ZIPF_EXPONENT_MAX).contains(&exponent) {
                Ok(Self::Zipf { exponent })
            } else {
                Err(refused())
            };
        }
        Ok(match text {
            "was-synthetic" => Self::WasSynthetic,
            "was-synthetic-fifth" => Self::WasSyntheticFifth,
            "fin" => Self::Fin,
            "web" => Self::Web,
            "usr" => Self::Usr,
            "mds" => Self::Mds,
            "online" => Self::Online,
            "webmail" => Self::Webmail,
            "online-webmail" => Self::OnlineWebmail,
            "uniform" => Self::Uniform,
            "tpcc-like" => Self::TpccLike,
            "ycsb-compaction" => Self::YcsbCompaction,
            _ => return Err(ProfileError::Unknown { found: text.to_owned() }),
        })
    }
}

impl GenerateOptions {
    /// Fills in the defaults and checks.
    fn label(&self) -> Result<Label, ProfileError> {
        let profile = self.profile;
        let full = profile.published_request_count().unwrap_or(REQUESTS_DEFAULT);
        let request_count = self.request_count.unwrap_or(full);
        if request_count == 0 {
            return Err(ProfileError::NoRequests);
        }
        let range_bytes = match (profile.takes_range(), self.range_bytes) {
            (false, Some(_)) => return Err(ProfileError::RangeIsSolved { profile }),
            (false, None) => None,
            (true, given) => Some(given.unwrap_or(RANGE_BYTES_DEFAULT)),
        };
        if let Some(bytes) = range_bytes
            && (!bytes.is_multiple_of(CALIBRATED_CHUNK_BYTES) || !(8192..=RANGE_BYTES_MAX).contains(&bytes))
        {
            return Err(ProfileError::Range { bytes });
        }
        Ok(Label { profile, request_count, seed: self.seed, range_bytes })
    }
}
