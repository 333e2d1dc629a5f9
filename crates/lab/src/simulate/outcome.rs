//! What a run came to.

use super::rebuild::Rebuilt;
use crate::drive::phase::Phase;
use crate::drive::series::Row;
use flash::{Counters, WearSpread};
use format::SchemeKind;
use node::status::Memory;
use serde_json::Value;

/// One device over a stretch.
pub struct DeviceFigures {
    /// What it did.
    pub counters: Counters,
    /// Erases per block over its whole life, if it is an SSD.
    pub wear: Option<WearSpread>,
}

/// The fill, or the trace.
pub struct Stretch {
    /// What the queue and the engine did.
    pub phase: Phase,
    /// Main devices, then log devices.
    pub devices: Vec<DeviceFigures>,
    /// How long it took.
    pub virtual_ns: u64,
}

/// What years are reckoned from, beside erases.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rating {
    /// Erases that a block is rated for.
    pub erases: u32,
    /// Blocks of an SSD.
    pub blocks: u32,
    /// From the first to the last request of the trace; none if it has no times.
    pub trace_us: Option<u64>,
}

/// A whole run.
pub struct Outcome {
    /// Options and sizes, as JSON.
    pub config: Value,
    /// That writes are acknowledged from memory, if they are.
    pub terms: Option<String>,
    /// What an elastic scheme ran with; null for others.
    pub placement: Value,
    /// The same in a line.
    pub placement_line: Option<String>,
    /// The scheme.
    pub scheme: SchemeKind,
    /// Seed of placement and SSDs.
    pub seed: u64,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// Bytes of an SSD's page.
    pub page_bytes: u64,
    /// SSDs, in front of the log devices.
    pub main_count: usize,
    /// Wear of a page in MLC mode in relation to one in SLC mode.
    pub stress_ratio: f64,
    /// Whether operations take time.
    pub is_timed: bool,
    /// Whether requests came at the times of the trace.
    pub is_open_loop: bool,
    /// What their years are reckoned from, if they are rated.
    pub rating: Option<Rating>,
    /// Its rows, if they were asked for.
    pub series: Option<Vec<Row>>,
    /// The fill, if there was one.
    pub fill: Option<Stretch>,
    /// The trace.
    pub run: Stretch,
    /// The rebuild after it, if there was one.
    pub rebuilt: Option<Rebuilt>,
    /// Memory of the array's maps at the end.
    pub memory: Memory,
    /// Processor time of the trace.
    pub cpu_seconds: f64,
}
