//! What a result of `simulate --json` says of erases and of the speed of a rebuild.

use super::values::whole;
use crate::failure::Failure;
use serde_json::Value;
use std::path::Path;

/// A run of `simulate`.
pub struct Simulated {
    /// The file's name without its folder and ending.
    pub name: String,
    /// How many SSDs there were.
    pub ssds: usize,
    /// Mean over the SSDs.
    pub erases_per_block: f64,
    /// Bytes that each showed its host.
    ssd_bytes: f64,
    /// Bytes that users wrote.
    written: f64,
    days: f64,
    /// If it rebuilt.
    pub rebuild_bytes_per_s: Option<f64>,
}

impl Simulated {
    /// Erases of a block per byte of users, of SSDs of so many bytes: larger ones share the same writes out
    /// over more blocks.
    pub fn erases_per_byte(&self, capacity: f64) -> f64 {
        self.erases_per_block / self.written * (self.ssd_bytes / capacity)
    }

    /// Erases of a block per day, of SSDs of so many bytes; users write so much a day, or as much as in the
    /// simulation.
    pub fn erases_per_day(&self, written_per_day: Option<f64>, capacity: f64) -> Result<f64, Failure> {
        let per_day = self.erases_per_byte(capacity) * written_per_day.unwrap_or(self.written / self.days);
        if per_day.is_finite() && per_day > 0.0 {
            return Ok(per_day);
        }
        Err(Failure::new(format!("{}: found {per_day} erases per day, expected some", self.name)))
    }
}

/// Reads one.
pub fn load(path: &Path) -> Result<Simulated, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| Failure::new(format!("{shown}: {error}")))?;
    let json: Value = serde_json::from_str(&text).map_err(|error| {
        Failure::new(format!("{shown}: found no JSON ({error}), expected a result of simulate --json"))
    })?;
    let number = |value: &Value, pointer: &str| {
        let found = value
            .pointer(pointer)
            .and_then(Value::as_f64)
            .filter(|number| number.is_finite() && *number >= 0.0);
        found.ok_or_else(|| {
            let hint =
                "expected the result of one run of simulate --json over SSDs (of a grid: DIR/CELL.json)";
            Failure::new(format!("{shown}: found no number {pointer}, {hint}"))
        })
    };
    let of_ssd = |key: &str| number(&json, &format!("/config/ssd/config/{key}"));
    let (blocks, ssd_bytes) = (of_ssd("blocks")?, of_ssd("logical_pages")? * of_ssd("page_bytes")?);
    let devices = json.pointer("/devices").and_then(Value::as_array).cloned().unwrap_or_default();
    let ssds: Vec<&Value> = devices.iter().filter(|device| device["role"] == "main").collect();
    let erases = ssds.iter().map(|device| number(device, "/erases")).sum::<Result<f64, _>>()?;
    let written = number(&json, "/user_chunks_written")? * number(&json, "/config/array/chunk_bytes")?;
    let count = whole(u64::try_from(ssds.len()).unwrap_or(u64::MAX));
    if written == 0.0 || blocks * count * ssd_bytes == 0.0 {
        return Err(Failure::new(format!(
            "{shown}: found nothing written to SSDs, expected a run that writes"
        )));
    }
    let name = path.file_stem().map_or_else(|| shown.to_string(), |stem| stem.to_string_lossy().into_owned());
    Ok(Simulated {
        name,
        ssds: ssds.len(),
        erases_per_block: erases / count / blocks,
        ssd_bytes,
        written,
        days: number(&json, "/virtual_seconds")? / 86_400.0,
        rebuild_bytes_per_s: number(&json, "/rebuild_bytes_per_s").ok().filter(|rate| *rate > 0.0),
    })
}
