//! Traces: read, generated, counted, written.

use crate::requests::{decode, encode};
use crate::work::Work;
use lab::trace::held::{self, Held};
use lab::watch::Shown;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;
use std::sync::Arc;
use trace::DevMode;

/// Bytes of requests, and what is known of the trace.
type Found<'py> = (Bound<'py, PyBytes>, Bound<'py, PyDict>);

fn found(py: Python<'_>, held: (Vec<u8>, Held)) -> PyResult<Found<'_>> {
    let (bytes, held) = held;
    let known = PyDict::new(py);
    known.set_item("labels", held.labels)?;
    known.set_item("synthetic", held.described)?;
    known.set_item("format", held.format)?;
    known.set_item("bad_lines", held.bad_lines)?;
    known.set_item("solution", held.solution)?;
    Ok((PyBytes::new(py, &bytes), known))
}

fn encoded(mut held: Held) -> (Vec<u8>, Held) {
    let bytes = encode(&std::mem::take(&mut held.requests));
    (bytes, held)
}

/// Reads files as one trace.
#[pyfunction]
pub fn read(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    format: Option<String>,
    skip_bad_lines: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Found<'_>> {
    let held = Arc::new(Work::default()).run(py, progress.as_ref(), |watch| {
        held::read(&paths, format.as_deref(), skip_bad_lines, Shown::Watched(watch)).map(encoded)
    })?;
    found(py, held)
}

/// Generates a trace.
#[pyfunction]
pub fn generate(
    py: Python<'_>,
    profile: String,
    requests: Option<u64>,
    seed: u64,
    range_bytes: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Found<'_>> {
    let held = Arc::new(Work::default()).run(py, progress.as_ref(), |watch| {
        held::generate(&profile, requests, seed, range_bytes, Shown::Watched(watch)).map(encoded)
    })?;
    found(py, held)
}

/// Writes a trace: requests written, and left out because the format has none such.
#[pyfunction]
pub fn write(
    py: Python<'_>,
    path: PathBuf,
    requests: &[u8],
    format: String,
    labels: Vec<String>,
    force: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(u64, u64)> {
    let summary = Arc::new(Work::default()).run(py, progress.as_ref(), |watch| {
        held::write(&path, &decode(requests)?, &format, &labels, force, Shown::Watched(watch))
    })?;
    Ok((summary.written_count, summary.left_out_count))
}

/// What the papers print of a trace, as JSON.
#[pyfunction]
pub fn statistics(
    py: Python<'_>,
    requests: &[u8],
    chunk_bytes: u64,
    ignore_devices: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let mode = if ignore_devices { DevMode::Ignore } else { DevMode::Concatenate };
    let figures = Arc::new(Work::default()).run(py, progress.as_ref(), |watch| {
        held::statistics(&decode(requests)?, chunk_bytes, mode, Shown::Watched(watch))
    })?;
    Ok(serde_json::Value::Object(figures).to_string())
}
