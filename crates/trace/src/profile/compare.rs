//! A generated trace held against the figures that it was calibrated to.

use super::{CALIBRATED_CHUNK_BYTES, GenerateOptions, Generator, Label, Scaling, Target};
use crate::{Stats, StatsCollector};

/// A figure is reached if it is off by no more than this part of it.
pub const TOLERANCE_PERCENT: f64 = 2.0;

/// How a target was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within [`TOLERANCE_PERCENT`].
    Reached,
    /// Off by more.
    Missed,
    /// The trace has another length than the published one, with which this figure changes.
    OtherLength,
}

/// A target beside what was reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The published figure; of [`Scaling::Proportional`] ones that part which the length calls for.
    pub target: Target,
    /// The trace's.
    pub reached: f64,
    /// Reached less target, in percent of the target.
    pub deviation_percent: f64,
    /// How the target was met.
    pub verdict: Verdict,
}

/// Holds counted figures against the targets of the label's profile. `None` if they were counted with chunks
/// of another size than the papers'. `collector` is the one that `stats` come from.
pub fn compare(label: &Label, collector: StatsCollector) -> (Stats, Option<Vec<Comparison>>) {
    let options =
        GenerateOptions { profile: label.profile, request_count: Some(1), seed: 0, range_bytes: None };
    let range_chunks = Generator::new(&options).ok().and_then(|generator| generator.range_chunks());
    let range_fifth = range_chunks.map_or(0, |chunks| collector.hottest_write_count(chunks.div_ceil(5)));
    let stats = collector.finish();
    if stats.chunk_bytes != CALIBRATED_CHUNK_BYTES {
        return (stats, None);
    }
    let full_count = label.profile.published_request_count().unwrap_or(label.request_count);
    let comparisons = label
        .profile
        .targets()
        .into_iter()
        .map(|target| {
            let part = match target.statistic.scaling() {
                Scaling::Proportional => label.request_count as f64 / full_count as f64,
                Scaling::Constant | Scaling::FullLengthOnly => 1.0,
            };
            let target = Target { value: target.value * part, ..target };
            let reached = target.statistic.of(&stats, range_fifth);
            let deviation_percent = 100.0 * (reached / target.value - 1.0);
            let other_length =
                target.statistic.scaling() == Scaling::FullLengthOnly && !label.is_full_length();
            let verdict = if other_length {
                Verdict::OtherLength
            } else if deviation_percent.abs() <= TOLERANCE_PERCENT {
                Verdict::Reached
            } else {
                Verdict::Missed
            };
            Comparison { target, reached, deviation_percent, verdict }
        })
        .collect();
    (stats, Some(comparisons))
}
