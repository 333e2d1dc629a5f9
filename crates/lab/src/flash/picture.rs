//! A run of one SSD as curves: how unevenly its blocks wear, how many requests take how long.

use crate::failure::Failure;
use crate::plot::options::PlotOptions;
use crate::plot::{Axis, Body, Figure, Lines, Marks, Panel, Scale, Series, Value, Width};
use crate::provenance;
use flash::{Ssd, SsdConfig};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// What can be shown.
const PARTS: [&str; 2] = ["erases_per_block", "latency_us"];

/// Which panels are asked for; latencies only where service times are simulated.
pub fn parts<'a>(options: &'a PlotOptions, config: &SsdConfig) -> Result<Vec<&'a str>, Failure> {
    match (options.value(&PARTS)?, config.timing.is_some()) {
        (Some("latency_us"), false) => Err(Failure::new(
            "--plot-value latency_us: found an SSD without service times, expected a preset that has them",
        )),
        (Some(part), _) => Ok(vec![part]),
        (None, true) => Ok(PARTS.to_vec()),
        (None, false) => Ok(vec![PARTS[0]]),
    }
}

/// The figure of a run.
pub fn figure(parts: &[&str], ssd: &Ssd, latencies: &Histogram<u64>, width: Width) -> Figure {
    let panel = |part: &&str| if *part == PARTS[0] { wear(ssd) } else { latency(latencies) };
    let about = provenance::of_picture();
    Figure { title: None, legend: None, about, width, panels: parts.iter().map(panel).collect() }
}

fn axis(label: &str, unit: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), unit: Some(unit.to_owned()), scale }
}

fn curve(x: Axis, y: Axis, points: Vec<(f64, f64)>) -> Panel {
    let values = points.into_iter().map(|(x, y)| (x, Value::of(y))).collect();
    let series = vec![Series { name: String::new(), values }];
    let body = Body::Lines(Lines { x, ticks: Vec::new(), marks: Marks::Nothing, series });
    Panel { heading: None, y, body, bands: Vec::new() }
}

/// Blocks erased at most so often, as steps.
fn wear(ssd: &Ssd) -> Panel {
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    ssd.block_erases().for_each(|erases| *counts.entry(erases).or_default() += 1);
    let all: u64 = counts.values().sum();
    let (mut points, mut below) = (Vec::new(), 0);
    for (erases, count) in counts {
        let share = |blocks: u64| 100.0 * blocks as f64 / all as f64;
        points.push((f64::from(erases), share(below)));
        below += count;
        points.push((f64::from(erases), share(below)));
    }
    let y = axis("blocks, cumulative", "%", Scale::Linear);
    curve(axis("erases", "per block, whole life", Scale::Linear), y, points)
}

/// Requests that take longer than so long. Percentiles are taken ever closer to the longest request.
fn latency(latencies: &Histogram<u64>) -> Panel {
    let count = latencies.len().max(1);
    let (unit, ns) = if latencies.max() >= 10_000_000 { ("ms", 1e6) } else { ("\u{b5}s", 1e3) };
    let mut points = Vec::new();
    let mut above = 100.0;
    while above * count as f64 >= 100.0 {
        points.push((latencies.value_at_percentile(100.0 - above) as f64 / ns, above));
        // Thirty points in each decade.
        above /= 10f64.powf(1.0 / 30.0);
    }
    let y = axis("slower requests", "%", Scale::Log);
    curve(axis("response time", unit, Scale::Log), y, points)
}
