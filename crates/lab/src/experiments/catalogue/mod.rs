//! The experiments of the papers, each declared once; and what the papers put forward.

mod beyond;
mod eplog;
mod eplog_headlines;
mod pairs;
mod placement;
mod points;
mod quantities;
mod real;
mod reckoned;
mod stock;
mod streams;
mod streams_headlines;
mod was;
mod was_headlines;

use super::declare::{Experiment, Headline};

/// All experiments, by their rows.
pub fn experiments() -> Vec<&'static Experiment> {
    [eplog::EXPERIMENTS, was::EXPERIMENTS, streams::EXPERIMENTS].into_iter().flatten().collect()
}

/// All headlines, by their rows.
pub fn headlines() -> Vec<&'static Headline> {
    [eplog_headlines::HEADLINES, was_headlines::HEADLINES, streams_headlines::HEADLINES]
        .into_iter()
        .flatten()
        .collect()
}
