//! What `bench` measured as bars: schemes side by side by workload, a panel for each kind of device.

use super::report::{micros, spread};
use super::threads::Spread;
use super::workload::{Measured, Workload};
use crate::failure::Failure;
use crate::plot::options::PlotOptions;
use crate::plot::{Arrangement, Axis, Bars, Body, Figure, Panel, Scale, Series, Value};
use crate::provenance;
use crate::subject::build::DeviceKind;

/// What can be shown.
const KEYS: [&str; 8] = [
    "bytes_per_second",
    "per_second",
    "per_cpu_second",
    "latency_us_mean",
    "latency_us_p50",
    "latency_us_p99",
    "latency_us_p999",
    "latency_us_max",
];
/// What is shown if nothing is asked for.
const DEFAULT: [&str; 2] = ["bytes_per_second", "latency_us_p999"];
/// Latencies this far apart are shown on a logarithmic axis.
const LOG_RATIO: f64 = 30.0;

/// A workload on a kind of device, scheme by scheme.
type Results = (Workload, DeviceKind, Vec<Measured>);

/// Which panels are asked for.
pub fn keys(options: &PlotOptions) -> Result<Vec<&str>, Failure> {
    Ok(options.value(&KEYS)?.map_or_else(|| DEFAULT.to_vec(), |key| vec![key]))
}

/// The figure of all results.
pub fn figure(results: &[Results], keys: &[&str], options: &PlotOptions) -> Figure {
    let mut kinds: Vec<DeviceKind> = Vec::new();
    for (_, devices, _) in results {
        if !kinds.contains(devices) {
            kinds.push(*devices);
        }
    }
    let panels =
        kinds.iter().flat_map(|&devices| keys.iter().filter_map(move |key| panel(results, devices, key)));
    Figure {
        title: None,
        legend: None,
        about: provenance::of_picture(),
        width: options.width(),
        panels: panels.collect(),
    }
}

/// One figure on one kind of device; nothing if no workload has it.
fn panel(results: &[Results], devices: DeviceKind, key: &str) -> Option<Panel> {
    let shown: Vec<_> = results.iter().filter(|(_, kind, _)| *kind == devices).collect();
    let mut schemes: Vec<String> = Vec::new();
    for m in shown.iter().flat_map(|(_, _, measured)| measured) {
        let name = label_of(m);
        if !schemes.contains(&name) {
            schemes.push(name);
        }
    }
    let of = |name: &String| {
        let values = shown.iter().map(|(_, _, measured)| {
            let found = measured.iter().find(|m| label_of(m) == *name);
            found.map_or_else(Value::default, |m| value(m, key))
        });
        Series { name: name.clone(), values: values.collect() }
    };
    let series: Vec<Series<Value>> = schemes.iter().map(of).collect();
    let numbers: Vec<f64> = series.iter().flat_map(|s| &s.values).filter_map(|value| value.value).collect();
    let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let high = numbers.iter().copied().fold(0.0, f64::max);
    let wide = key.starts_with("latency") && low > 0.0 && high / low >= LOG_RATIO;
    let (label, unit) = label(key);
    let scale = if wide { Scale::Log } else { Scale::Linear };
    let body = Body::Bars(Bars {
        label: None,
        categories: shown.iter().map(|(workload, ..)| workload.name().to_owned()).collect(),
        arrangement: Arrangement::Grouped,
        series,
        beneath: None,
    });
    let y = Axis { label: label.to_owned(), unit: Some(unit.to_owned()), scale };
    let heading = Some(format!("{devices} devices"));
    (!numbers.is_empty()).then(|| Panel { heading, y, body, bands: Vec::new() }.in_short_times())
}

/// What bars are called: the scheme, and its threads if there may be several.
fn label_of(m: &Measured) -> String {
    if m.spread == Spread::SINGLE { m.scheme.to_string() } else { format!("{}, {}", m.scheme, m.spread) }
}

fn label(key: &str) -> (&'static str, &'static str) {
    match key {
        "bytes_per_second" => ("throughput", "GB/s"),
        "per_second" => ("throughput", "requests, stripes or chunks per s"),
        "per_cpu_second" => ("throughput of a core", "requests, stripes or chunks per s"),
        "latency_us_mean" => ("mean latency", "\u{b5}s"),
        "latency_us_p50" => ("median latency", "\u{b5}s"),
        "latency_us_p99" => ("p99 latency", "\u{b5}s"),
        "latency_us_p999" => ("p99.9 latency", "\u{b5}s"),
        _ => ("longest latency", "\u{b5}s"),
    }
}

fn value(m: &Measured, key: &str) -> Value {
    // Rates have a spread: the slowest and the fastest round.
    let rate = |value: f64, factor: f64| {
        let (low, high) = spread(&m.rates);
        let range = (m.rates.len() > 1).then_some((low * factor, high * factor));
        Value { value: Some(value), range }
    };
    let per_thing = if m.rate() > 0.0 { m.bytes_rate() / m.rate() } else { 0.0 };
    match key {
        "bytes_per_second" => rate(m.bytes_rate() / 1e9, per_thing / 1e9),
        "per_second" => rate(m.rate(), 1.0),
        "per_cpu_second" => Value::of(m.cpu_rate()),
        _ if m.latency.is_empty() => Value::default(),
        "latency_us_mean" => Value::of(m.latency.mean() / 1e3),
        "latency_us_p50" => Value::of(micros(&m.latency, 50.0)),
        "latency_us_p99" => Value::of(micros(&m.latency, 99.0)),
        "latency_us_p999" => Value::of(micros(&m.latency, 99.9)),
        _ => Value::of(m.latency.max() as f64 / 1e3),
    }
}
