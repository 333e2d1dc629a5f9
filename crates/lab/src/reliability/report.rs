//! What `reliability` prints: a table for people, all of it as JSON.

use super::Row;
use super::cases::PAPER_CAPACITY;
use super::options::Arguments;
use super::values::{brief, show, show_bytes, show_span};
use crate::provenance;
use comfy_table::{CellAlignment, Table, presets};
use reliability::{CAUSES, Model, RepairOrder, RepairTime};
use serde_json::{Map, Value, json};

/// What the paper says of its figure 11: so many times as long (H-49).
const PAPER_GAINS: (f64, f64) = (2.0, 20.0);
const PAPER_ALPHAS: [f64; 3] = [0.37, 0.5, 0.77];
/// A terabyte, per which losses are normalised.
const TERABYTE: f64 = 1e12;

/// Everything a report is made of.
pub struct Report<'a> {
    pub arguments: &'a Arguments,
    pub rows: &'a [Row],
}

/// The paper's figure 11 and ours.
struct Verdict {
    least: f64,
    most: f64,
    inside: bool,
}

impl Report<'_> {
    /// Gains over all rows, if they are of the paper's parameters: its alphas, eight devices of its size,
    /// 0.25 failures a year.
    fn verdict(&self) -> Option<Verdict> {
        let all = PAPER_ALPHAS.iter().all(|alpha| self.arguments.wear.alpha.contains(alpha));
        let kinds = |parity: u32| self.rows.iter().any(|row| row.case.model.geometry.parity == parity);
        let like = |row: &&Row| {
            let model = &row.case.baseline;
            let papers = model.device.rate == 0.25 && model.capacity == PAPER_CAPACITY;
            model.geometry.devices() == 8 && papers && row.case.is_plain()
        };
        if !all || !kinds(1) || !kinds(2) || !self.rows.iter().all(|row| like(&row)) {
            return None;
        }
        let papers = self.rows.iter().filter(|row| PAPER_ALPHAS.contains(&row.case.alpha));
        let gains: Vec<f64> = papers.filter_map(|row| row.gain).collect();
        let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
        let most = gains.iter().copied().fold(0.0, f64::max);
        // The paper prints whole numbers.
        let inside = least.round() >= PAPER_GAINS.0 && most.round() <= PAPER_GAINS.1;
        Some(Verdict { least, most, inside })
    }

    /// The table and what must be known to read it.
    pub fn text(&self) -> String {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        let years = show_span(self.arguments.run.within);
        let columns = columns(self.rows, &years);
        table.set_header(columns.iter().map(|column| column.name.clone()));
        for row in self.rows {
            table.add_row(columns.iter().map(|column| (column.show)(row)));
        }
        table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        let mut lines = vec![table.trim_fmt(), String::new()];
        lines.extend(self.notes());
        if let Some(Verdict { least, most, inside }) = self.verdict() {
            let verdict = if inside { "inside" } else { "OUTSIDE" };
            lines.push(format!(
                "paper: WAS, figure 11: 2 to 20 times as long; here {least:.2} to {most:.2} times: {verdict} (whole numbers are printed there)"
            ));
        }
        lines.push(format!("made by: {}", provenance::text()));
        lines.join("\n")
    }

    fn notes(&self) -> Vec<String> {
        let run = &self.arguments.run;
        let mut notes = vec![
            "MTTDL: mean time to data loss, in years, of arrays that are kept so for ever: a rate, not a time that one array lives".to_owned(),
        ];
        if self.rows.iter().any(|row| row.gain.is_some() && row.case.alpha != 1.0) {
            notes.push("gain: that time in relation to the one with erases of 1".to_owned());
        }
        if run.trials > 0 {
            notes.push(format!(
                "Monte Carlo: {} lives each, seed {}; intervals hold the true value with {} % confidence; {:.1} s",
                run.trials,
                run.seed,
                brief(run.confidence * 100.0),
                self.rows.iter().map(|row| row.seconds).sum::<f64>()
            ));
            notes.push(
                "lost per TB: bytes of users lost within the time, on average, per usable TB (NOMDL); how many of the losses are of which cause: causes"
                    .to_owned(),
            );
        }
        if self.rows.iter().any(|row| row.chain.is_none()) {
            notes.push(
                "n/a: no Markov chain, as devices age or wear out, or latent errors are never scrubbed: Monte Carlo only"
                    .to_owned(),
            );
        } else if self.rows.iter().any(|row| row.case.model.repair.time == RepairTime::Fixed) {
            notes.push(
                "the chain takes repairs as exponentially distributed, Monte Carlo as fixed".to_owned(),
            );
        }
        if self.rows.iter().any(|row| row.case.model.exposure.share > 0.0) {
            notes.push("uncommitted: updates whose parity was on log devices only".to_owned());
        }
        notes
    }

    /// All of it.
    pub fn json(&self) -> Value {
        let verdict = self.verdict().map(|verdict| {
            json!({
                "figure": "WAS, figure 11 (H-49)",
                "paper": [PAPER_GAINS.0, PAPER_GAINS.1],
                "found": [verdict.least, verdict.most],
                "verdict": if verdict.inside { "inside" } else { "outside" },
            })
        });
        let run = &self.arguments.run;
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "provenance": provenance::json(),
            "trials": run.trials,
            "seed": run.seed,
            "confidence": run.confidence,
            "years": run.within,
            "rows": self.rows.iter().map(row_json).collect::<Vec<_>>(),
            "paper": verdict,
        })
    }
}

/// A column, and what it shows of a row.
struct Column {
    name: String,
    show: Box<dyn Fn(&Row) -> String>,
}

fn column(name: &str, show: impl Fn(&Row) -> String + 'static) -> Column {
    Column { name: name.to_owned(), show: Box::new(show) }
}

/// What differs or counts; what is the same in all rows and not asked for is left out.
fn columns(rows: &[Row], years: &str) -> Vec<Column> {
    let some = |value: Option<f64>| value.map_or_else(|| "n/a".to_owned(), show);
    let mut columns = vec![column("array", |row| {
        let logs = row.case.model.geometry.logs;
        let suffix = if logs > 0 { format!(", {logs} logs") } else { String::new() };
        format!("{}{suffix}", row.case.geometry)
    })];
    if rows.iter().any(|row| row.case.simulation.is_some()) {
        columns.push(column("simulation", |row| row.case.simulation.clone().unwrap_or_default()));
    }
    if rows.iter().any(|row| row.case.alpha != 1.0) {
        columns.push(column("erases", |row| brief(row.case.alpha)));
    }
    columns.push(column("failures/y", |row| brief(row.case.model.device.rate)));
    if rows.iter().any(|row| row.case.erases_per_day.is_some()) {
        columns.push(column("worn after y", move |row| {
            some(row.case.model.device.wear.map(|wear| wear.endurance))
        }));
    }
    columns.push(column("repairs/y", |row| show(1.0 / row.case.model.repair.mean)));
    columns.push(column("repair", |row| row.case.repair.clone()));
    if rows.iter().any(|row| row.closed.is_some()) {
        columns.push(column("closed form", move |row| some(row.closed)));
    }
    columns.push(column("MTTDL", move |row| some(row.chain.as_ref().map(|chain| chain.mean_time_to_loss))));
    if rows.iter().any(|row| row.gain.is_some() && row.case.alpha != 1.0) {
        columns.push(column("gain", move |row| some(row.gain)));
    }
    columns.push(column(&format!("loss in {years}"), move |row| {
        some(row.chain.as_ref().map(|chain| chain.loss))
    }));
    if rows.iter().any(|row| row.carlo.is_some()) {
        columns.push(column("Monte Carlo", |row| {
            let Some(carlo) = &row.carlo else { return String::new() };
            let precision = carlo.loss.precision();
            let within = precision.map_or_else(String::new, |within| format!(" +-{:.1} %", within * 100.0));
            format!("{}{within}", show(carlo.loss.mean))
        }));
        columns.push(column("lost per TB", |row| {
            row.carlo.as_ref().map_or_else(String::new, |carlo| show_bytes(carlo.lost_share.mean * TERABYTE))
        }));
    }
    let other = |row: &Row| causes(row).is_some_and(|causes| causes[1..].iter().any(|share| *share > 0.0));
    if rows.iter().any(other) {
        columns.push(column("causes", |row| {
            causes(row).map_or_else(String::new, |shares| causes_text(&shares))
        }));
    }
    columns
}

/// Probabilities by cause, of Monte Carlo if there is one.
fn causes(row: &Row) -> Option<[f64; 3]> {
    let carlo = row.carlo.as_ref().map(|carlo| carlo.by_cause);
    carlo.or_else(|| row.chain.as_ref().map(|chain| chain.by_cause))
}

fn causes_text(shares: &[f64; 3]) -> String {
    let sum: f64 = shares.iter().sum();
    let shown = CAUSES.iter().zip(shares).filter(|(_, share)| **share > 0.0);
    let texts: Vec<String> =
        shown.map(|(cause, share)| format!("{} {:.1} %", cause.name(), share / sum * 100.0)).collect();
    texts.join(", ")
}

fn by_cause(shares: &[f64; 3]) -> Value {
    Value::Object(
        CAUSES.iter().zip(shares).map(|(cause, share)| (cause.name().to_owned(), json!(share))).collect(),
    )
}

fn row_json(row: &Row) -> Value {
    let case = &row.case;
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| drop(map.insert(key.to_owned(), value));
    put("geometry", json!(case.geometry.to_string()));
    put("simulation", json!(case.simulation));
    put("alpha", json!(case.alpha));
    put("repair", json!(case.repair));
    put("erases_per_block_and_day", json!(case.erases_per_day));
    put("parameters", parameters(&case.model));
    put("mttdl_years_closed_form", json!(row.closed));
    let finite = |value: f64| value.is_finite().then_some(value);
    let chain = row.chain.as_ref().map(|chain| {
        json!({
            "mttdl_years": finite(chain.mean_time_to_loss),
            "loss_probability": chain.loss,
            "by_cause": by_cause(&chain.by_cause),
            "nomdl_bytes_per_tb_at_most": chain.lost_share_at_most * TERABYTE,
        })
    });
    put("chain", chain.into());
    put("gain", json!(row.gain));
    let carlo = row.carlo.as_ref().map(|carlo| {
        let interval = |low: f64, high: f64, unit: f64| json!([low * unit, high * unit]);
        json!({
            "loss_probability": carlo.loss.mean,
            "loss_probability_interval": interval(carlo.loss.low, carlo.loss.high, 1.0),
            "by_cause": by_cause(&carlo.by_cause),
            "nomdl_bytes_per_tb": carlo.lost_share.mean * TERABYTE,
            "nomdl_bytes_per_tb_interval": interval(carlo.lost_share.low, carlo.lost_share.high, TERABYTE),
            "device_failures": carlo.failures,
            "seconds": row.seconds,
        })
    });
    put("monte_carlo", carlo.into());
    Value::Object(map)
}

fn parameters(model: &Model) -> Value {
    let Model { geometry, device, repair, latent, correlation, exposure, .. } = model;
    json!({
        "data_devices": geometry.data,
        "parity": geometry.parity,
        "log_devices": geometry.logs,
        "failures_per_year": device.rate,
        "shape": device.shape,
        "age_years": device.age,
        "endurance_years": device.wear.map(|wear| wear.endurance),
        "wear_shape": device.wear.map(|wear| wear.shape),
        "repairs_per_year": 1.0 / repair.mean,
        "repair_hours": repair.mean * reliability::HOURS_PER_YEAR,
        "repair_share_waiting": repair.waiting,
        "repair_distribution": match repair.time { RepairTime::Exponential => "exponential", RepairTime::Fixed => "fixed" },
        "repairs": match repair.order { RepairOrder::OneByOne => "one-by-one", RepairOrder::AllAtOnce => "all-at-once" },
        "log_failures_per_year": (geometry.logs > 0).then_some(model.log_rate),
        "log_repair_hours": (geometry.logs > 0).then_some(repair.log_mean * reliability::HOURS_PER_YEAR),
        "latent_errors_per_year": latent.rate,
        "scrub_days": latent.scrub.filter(|_| latent.rate > 0.0).map(|years| years * 365.25),
        "unreadable_per_pass": latent.per_pass,
        "after_failure": correlation.after_failure,
        "shocks_per_year": correlation.shock_rate,
        "shock_share": correlation.shock_share,
        "uncommitted_share": exposure.share,
        "uncommitted_bytes": exposure.bytes,
        "capacity_bytes": model.capacity,
        "chunk_bytes": model.chunk,
        "usable_bytes": model.usable(),
        "years": model.years,
    })
}
