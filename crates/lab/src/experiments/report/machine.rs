//! The report for programs: JSON, and CSV.

use super::super::verdict::{Finding, Judged, Reading};
use super::Report;
use super::tables::{Table, named};
use crate::plot::table::quoted;
use serde_json::{Map, Value, json};

impl Report<'_> {
    /// All of it.
    pub fn json(&self) -> Value {
        let results = self.results;
        json!({
            "version": results.build.version,
            "build": results.build.hash,
            "other_builds": results.other_builds.iter().map(|build| json!({
                "version": build.version, "build": build.hash,
            })).collect::<Vec<_>>(),
            "hosts": results.hosts,
            "scale_millionths": results.scale.millionths(),
            "seeds": results.seeds,
            "cells": results.cells.0,
            "cells_declared": results.cells.1,
            "headlines": self.judged.iter().map(headline).collect::<Vec<_>>(),
            "experiments": self.experiments.iter().map(|experiment| json!({
                "id": experiment.id,
                "title": experiment.title,
                "source": experiment.source,
                "setup": experiment.setup,
                "evidence": experiment.evidence,
                "missing": experiment.missing,
                "grids": experiment.grids.iter().map(|grid| grid.name).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "grids": self.tables.iter().map(grid).collect::<Vec<_>>(),
        })
    }

    /// A line per headline.
    pub fn headlines_csv(&self) -> String {
        let mut text = String::from("id,experiment,says,verdict,paper,ours,why\n");
        for judged in &self.judged {
            let join = |each: &dyn Fn(&Finding) -> String| {
                judged.findings.iter().map(each).collect::<Vec<_>>().join("; ")
            };
            let cells = [
                judged.headline.id.to_owned(),
                judged.headline.experiment.to_owned(),
                judged.headline.says.to_owned(),
                judged.verdict.text().to_owned(),
                join(&|finding| finding.paper.clone()),
                join(&|finding| self.ours(finding)),
                judged.why.to_owned(),
            ];
            line(&mut text, &cells);
        }
        text
    }

    /// What cells have, and under which seeds where these are not all of the report.
    pub fn ours(&self, finding: &Finding) -> String {
        let of = |reading: &Reading| reading.values.keys().copied().collect::<Vec<_>>();
        let fewest = finding.readings.iter().map(of).min_by_key(Vec::len);
        match fewest.filter(|seeds| seeds.len() < self.results.seeds.len()) {
            Some(seeds) if seeds.len() == 1 => format!("{} (seed {} alone)", finding.text(), named(&seeds)),
            Some(seeds) => format!("{} (seeds {})", finding.text(), named(&seeds)),
            None => finding.text(),
        }
    }

    /// A line per figure, cell and seed.
    pub fn cells_csv(&self) -> String {
        let mut text = String::from("grid,cell,seed,figure,value\n");
        for table in self.tables.iter() {
            for row in &table.rows {
                let labels: Vec<String> =
                    row.key.labels.iter().map(|(axis, label)| format!("{axis}={label}")).collect();
                for (seed, view) in self.results.by_seed() {
                    for (figure, value) in view.figures(&row.key).into_iter().flatten() {
                        let cells = [
                            table.grid.name.to_owned(),
                            labels.join(" "),
                            seed.to_string(),
                            figure.clone(),
                            format!("{value}"),
                        ];
                        line(&mut text, &cells);
                    }
                }
            }
        }
        text
    }
}

fn line(text: &mut String, cells: &[String]) {
    let cells: Vec<String> = cells.iter().map(|cell| quoted(&cell.replace('\n', " "))).collect();
    text.push_str(&cells.join(","));
    text.push('\n');
}

impl Finding {
    /// The readings in a line: each, if they are few, else from least to most.
    pub fn text(&self) -> String {
        /// More are shown by their ends.
        const FEW: usize = 8;
        let show = |reading: &Reading| {
            let half = reading.interval().filter(|half| *half > 0.0);
            let half = half.map_or_else(String::new, |half| format!(" \u{b1} {}", short(half)));
            format!("{}{half} {}", short(reading.mean()), self.unit)
        };
        if self.readings.is_empty() {
            return if self.holds.is_some() { "nothing to compare with".to_owned() } else { "-".to_owned() };
        }
        if self.readings.len() <= FEW {
            let each = self.readings.iter().map(|reading| format!("{}: {}", reading.cell, show(reading)));
            return each.collect::<Vec<_>>().join(", ");
        }
        let by_mean = |one: &&Reading, other: &&Reading| one.mean().total_cmp(&other.mean());
        let ends = self.readings.iter().min_by(by_mean).zip(self.readings.iter().max_by(by_mean));
        ends.map_or_else(String::new, |(least, most)| {
            format!(
                "{} ({}) to {} ({}), {} cells",
                show(least),
                least.cell,
                show(most),
                most.cell,
                self.readings.len()
            )
        })
    }
}

/// Four digits, or all in front of the point.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn headline(judged: &Judged) -> Value {
    let reading = |reading: &Reading| {
        json!({
            "cell": reading.cell, "mean": reading.mean(), "interval_95": reading.interval(),
            "seeds": reading.values.keys().collect::<Vec<_>>(),
            "values": reading.values.values().collect::<Vec<_>>(), "holds": reading.holds,
        })
    };
    let findings = judged.findings.iter().map(|finding| {
        json!({
            "paper": finding.paper, "unit": finding.unit, "holds": finding.holds,
            "readings": finding.readings.iter().map(reading).collect::<Vec<_>>(),
        })
    });
    json!({
        "id": judged.headline.id,
        "experiment": judged.headline.experiment,
        "says": judged.headline.says,
        "verdict": judged.verdict.text(),
        "why": judged.why,
        "findings": findings.collect::<Vec<_>>(),
    })
}

fn grid(table: &Table) -> Value {
    let rows = table.rows.iter().map(|row| {
        let mut map = Map::new();
        for (axis, label) in &row.key.labels {
            map.insert((*axis).to_owned(), (*label).into());
        }
        map.insert("seeds".to_owned(), json!(row.seeds));
        for (column, values) in table.grid.columns.iter().zip(&row.values) {
            map.insert(column.name.to_owned(), json!(values));
        }
        Value::Object(map)
    });
    json!({ "name": table.grid.name, "missing_cells": table.missing, "rows": rows.collect::<Vec<_>>() })
}
