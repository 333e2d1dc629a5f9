//! Block traces: reading the published formats, statistics, preparation for replay, writing, and a small generator.
//!
//! - [`TraceReader`] streams [`Request`]s out of a trace file in bounded memory, plain or compressed, in any
//!   [`Format`], detected from its content; [`TraceSequence`] joins several files.
//! - [`StatsCollector`] counts what the papers print of a trace (requirements ).
//! - [`prepare()`] drops untouched segments and shifts the rest together, the preparation of every experiment.
//! - [`TraceWriter`] writes a trace in four formats; [`Synthetic`] makes one from a seed.
//!
//! Nothing a file contains makes this crate panic: a line that is not understood is an error that names the file
//! and the line, or is counted, as [`SkipPolicy`] says.
#![forbid(unsafe_code)]

mod error;
mod fields;
mod format;
mod layout;
mod prepare;
mod reader;
mod request;
mod source;
mod stats;
mod synthetic;
mod writer;

pub use error::{LineFault, TraceError};
pub use format::{BlkparseAction, Format, UnknownFormatName};
pub use layout::Layout;
pub use prepare::{
    Fill, PrepareError, PrepareOptions, Prepared, SEGMENT_BYTES, TouchedBy, prepare, prepare_slice,
};
pub use reader::{ReadOptions, SkipPolicy, TraceReader, TraceSequence};
pub use request::{DevMode, MAX_END_BYTES, MAX_TRANSFER_BYTES, Op, Request};
pub use source::{MAX_LINE_BYTES, Progress};
pub use stats::{RANDOM_DISTANCE_BYTES, Stats, StatsCollector, StatsError, StatsOptions};
pub use synthetic::{Synthetic, SyntheticError, SyntheticOptions};
pub use writer::{Compression, OutputFormat, TraceWriter, WriteError, WriteSummary, convert};
