//! What `trace info` says of a synthetic trace: that it is one, and target and reached figure side by side.

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};
use trace::{CALIBRATED_CHUNK_BYTES, Comparison, Label, TOLERANCE_PERCENT, Verdict};

/// One line on what a label says.
pub fn describe(label: &Label) -> String {
    let range = label.range_bytes.map_or(String::new(), |bytes| format!(", range {bytes} bytes"));
    format!(
        "{}: {}, {} requests, seed {}{range}",
        label.profile,
        label.profile.describe(),
        label.request_count,
        label.seed
    )
}

/// The labels and the comparison as text; empty if there is no label.
pub fn labels_text(labels: &[Label], comparisons: Option<&[Comparison]>) -> String {
    let mut text = String::new();
    for label in labels {
        text.push_str(&format!("synthetic      {}\n", describe(label)));
    }
    match (labels, comparisons) {
        ([], _) => {}
        (_, Some([])) => text.push_str("               no published figures to compare with\n"),
        (_, Some(comparisons)) => text.push_str(&table(comparisons)),
        ([_], None) => text.push_str(&format!(
            "               compared with the published figures if it is alone and counted with {CALIBRATED_CHUNK_BYTES}-byte chunks\n"
        )),
        (_, None) => text.push_str("               not compared, as several are joined\n"),
    }
    text
}

fn verdict(comparison: &Comparison) -> &'static str {
    match (comparison.verdict, comparison.target.note) {
        (Verdict::Reached, _) => "reached",
        (Verdict::Missed, Some(_)) => "off, see below",
        (Verdict::Missed, None) => "OFF",
        (Verdict::OtherLength, _) => "other length",
    }
}

fn table(comparisons: &[Comparison]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["figure", "target", "reached", "deviation", "", "printed in", "what is counted"]);
    let mut other_length = false;
    for comparison in comparisons {
        let statistic = comparison.target.statistic;
        let decimals = statistic.decimals();
        other_length |= comparison.verdict == Verdict::OtherLength;
        table.add_row([
            statistic.name().to_owned(),
            format!("{:.decimals$}", comparison.target.value),
            format!("{:.decimals$}", comparison.reached),
            format!("{:+.2} %", comparison.deviation_percent),
            verdict(comparison).to_owned(),
            comparison.target.source.name().to_owned(),
            statistic.definition().to_owned(),
        ]);
    }
    table
        .column_iter_mut()
        .skip(1)
        .take(3)
        .for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    let mut text = format!("{}\nreached: within {TOLERANCE_PERCENT} % of the target\n", table.trim_fmt());
    if other_length {
        text.push_str("other length: can be compared at the published number of requests only\n");
    }
    for Comparison { target, .. } in comparisons {
        if let Some(note) = target.note {
            text.push_str(&format!("{} ({}): {note}\n", target.statistic.name(), target.source.name()));
        }
    }
    text
}

/// The labels, each with the comparison if there is one; null if the trace is not synthetic.
pub fn labels_json(labels: &[Label], comparisons: Option<&[Comparison]>) -> Value {
    if labels.is_empty() {
        return Value::Null;
    }
    labels
        .iter()
        .map(|label| {
            json!({
                "profile": label.profile.to_string(),
                "stands_for": label.profile.describe(),
                "requests": label.request_count,
                "seed": label.seed,
                "range_bytes": label.range_bytes,
                "full_length": label.is_full_length(),
                "targets": comparisons.map(|all| all.iter().map(comparison_json).collect::<Vec<_>>()),
            })
        })
        .collect()
}

fn comparison_json(comparison: &Comparison) -> Value {
    let target = &comparison.target;
    json!({
        "figure": target.statistic.name(),
        "source": target.source.name(),
        "target": target.value,
        "reached": comparison.reached,
        "deviation_percent": comparison.deviation_percent,
        "verdict": match comparison.verdict {
            Verdict::Reached => "reached",
            Verdict::Missed => "missed",
            Verdict::OtherLength => "other-length",
        },
        "definition": target.statistic.definition(),
        "note": target.note,
    })
}
