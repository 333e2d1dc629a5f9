//! Block traces: reading the published formats, statistics, preparation for replay, writing, and
//! a small generator.
//!
//! - [`TraceReader`] streams [`Request`]s out of a trace file in bounded memory, plain or compressed, in any
//!   [`Format`], detected from its content; [`TraceSequence`] joins several files.
//! - [`StatsCollector`] counts what the papers print of a trace (requirements ).
//! - [`prepare()`] drops untouched segments and shifts the rest together, the preparation
//!   of every experiment.
//! - [`TraceWriter`] writes a trace in four formats; [`Synthetic`] makes a small one from a seed.
//! - [`Generator`] makes a trace by [`Profile`]: the papers' synthetic one, and stand-ins calibrated to the
//!   figures that they print of traces that cannot be had; [`compare`] holds one against those figures.
//!
//! Nothing a file contains makes this crate panic: a line that is not understood is an error that names the
//! file and the line, or is counted, as [`SkipPolicy`] says.
#![forbid(unsafe_code)]

mod clock;
mod error;
mod fields;
mod format;
mod layout;
mod limits;
mod options;
mod prepare;
mod profile;
mod random;
mod reader;
mod request;
mod source;
mod stats;
mod synthetic;
mod writer;

pub use error::{LineFault, TraceError};
pub use format::{BlkparseAction, Columns, ColumnsError, Format, UnknownFormatName};
pub use layout::Layout;
pub use limits::{MAX_END_BYTES, MAX_LINE_BYTES, MAX_TRANSFER_BYTES};
pub use options::{PrepareError, PrepareOptions, SEGMENT_BYTES, TouchedBy};
pub use prepare::{Fill, Prepared, prepare, prepare_slice};
pub use profile::{
    CALIBRATED_CHUNK_BYTES, Comparison, GenerateOptions, Generator, Label, Profile, ProfileError,
    RANGE_BYTES_DEFAULT, REQUESTS_DEFAULT, Scaling, Source, Statistic, TOLERANCE_PERCENT, Target, Verdict,
    compare,
};
pub use reader::{ReadOptions, SkipPolicy, TraceReader, TraceSequence};
pub use request::{DevMode, Op, Request};
pub use source::Progress;
pub use stats::{RANDOM_DISTANCE_BYTES, Stats, StatsCollector, StatsError, StatsOptions};
pub use synthetic::{Synthetic, SyntheticError, SyntheticOptions};
pub use writer::{Compression, OutputFormat, TraceWriter, WriteError, WriteSummary, convert};
