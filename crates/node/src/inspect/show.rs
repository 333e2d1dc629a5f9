//! An inspection as text and as JSON.

use super::{Checkpoint, Inspection, Journal};
use crate::describe::{shape, superblock_json};
use crate::open::member_name;
use crate::units::show_size;
use format::record::Part;
use format::{FormatError, Frame, RecordRef, Role};
use serde_json::{Value, json};
use std::fmt::Write;

/// Whether each record is shown, or only how many there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// How many of each kind.
    Summary,
    /// Every record.
    Records,
}

/// The inspection as text.
pub fn text(inspection: &Inspection, detail: Detail) -> String {
    let mut out = String::new();
    let candidate = &inspection.candidate;
    line(&mut out, format_args!("{}: {}", candidate.path.display(), show_size(candidate.size_bytes)));
    for (slot, copy) in candidate.copies.iter().enumerate() {
        match copy {
            Ok(s) => line(
                &mut out,
                format_args!(
                    "  superblock {slot}: update {}, epoch {}, {}, checkpoint {}, durable through {}, {}",
                    s.config_seq,
                    s.epoch,
                    if s.clean { "clean" } else { "not clean" },
                    s.checkpoints.durable,
                    s.durable_through,
                    match s.role {
                        Role::Main | Role::Log => member_name(s.config.geometry.device_count(), s.dev),
                        Role::Spare => "spare".to_owned(),
                    }
                ),
            ),
            Err(error) => line(&mut out, format_args!("  superblock {slot}: {error}")),
        }
    }
    if let Some(s) = candidate.superblock() {
        let name = if s.name.is_empty() { "-" } else { &s.name };
        line(&mut out, format_args!("  array {name} {}: {}", s.array, shape(&s.config)));
    }
    for checkpoint in &inspection.checkpoints {
        checkpoint_text(&mut out, checkpoint);
    }
    if let Some(journal) = &inspection.journal {
        let main = candidate.superblock().is_some_and(|s| s.role == Role::Main);
        journal_text(&mut out, journal, if main { "journal ring" } else { "log region" }, detail);
    }
    out
}

fn line(out: &mut String, content: std::fmt::Arguments<'_>) {
    out.write_fmt(content).expect("writing to a string cannot fail");
    out.push('\n');
}

fn area_name(area: u8) -> String {
    if area < 2 { format!("full-checkpoint area {area}") } else { "incremental area".to_owned() }
}

fn checkpoint_text(out: &mut String, checkpoint: &Checkpoint) {
    let place = format!("{}, block {}", area_name(checkpoint.area), checkpoint.block);
    let header = match &checkpoint.header {
        Ok(header) => header,
        Err(FormatError::BadMagic { found: [0, 0, 0, 0, 0, 0, 0, 0], .. }) => {
            return line(out, format_args!("  {place}: empty"));
        }
        Err(error) => return line(out, format_args!("  {place}: {error}")),
    };
    line(
        out,
        format_args!(
            "  {place}: {} checkpoint {} on {}, epoch {}, records up to {}, {} pages (table {}, patches {}, root {}, list {}, changes of the list {})",
            header.kind,
            header.number,
            header.base,
            header.epoch,
            header.through,
            header.page_count,
            checkpoint.table_pages,
            checkpoint.patch_pages,
            checkpoint.root_pages,
            checkpoint.list_pages,
            checkpoint.change_pages
        ),
    );
    let others = [
        (header.behind > 0).then(|| format!("goes on from checkpoint {}", header.behind)),
        header.beside.map(|beside| format!("others went on beside it, on checkpoint {}", beside.base)),
    ];
    others.iter().flatten().for_each(|other| line(out, format_args!("      {other}")));
    if let Some(list) = checkpoint.list {
        line(
            out,
            format_args!(
                "      {} dirty stripes, {} log stripes, {} deltas",
                list.dirty_stripes, list.log_stripes, list.deltas
            ),
        );
    }
    if let Some(list) = checkpoint.list.filter(|_| checkpoint.change_pages > 0) {
        line(
            out,
            format_args!(
                "      since the checkpoint before {} stripes clean, {} log stripes ended, {} changed",
                list.clean_stripes, list.ended_log_stripes, list.changed_log_stripes
            ),
        );
    }
    if let Some(error) = &checkpoint.first_bad {
        line(out, format_args!("      DAMAGED: {} bad pages, the first: {error}", checkpoint.bad_pages));
    } else if !checkpoint.body_matches {
        line(out, format_args!("      DAMAGED: the pages are not those that the header was written for"));
    }
}

fn journal_text(out: &mut String, journal: &Journal, what: &str, detail: Detail) {
    line(
        out,
        format_args!(
            "  {what} of {} blocks: frames {}, of unknown assemblies {}, damaged {}",
            journal.blocks,
            journal.frames.len(),
            journal.old_frames,
            journal.bad_frames
        ),
    );
    if let Some((block, error)) = &journal.first_bad {
        line(out, format_args!("      the first damaged one is block {block}: {error}"));
    }
    let counts = record_counts(journal);
    if !counts.is_empty() {
        let kinds: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
        let seqs = journal.frames.iter().filter(|frame| !frame.records.is_empty());
        let first = seqs.clone().map(|frame| frame.first_seq.get()).min().unwrap_or(0);
        let last = seqs.map(last_seq).max().unwrap_or(0);
        line(out, format_args!("      records {first} to {last}: {}", kinds.join(", ")));
    }
    if detail == Detail::Records {
        let mut frames: Vec<&Frame> = journal.frames.iter().collect();
        frames.sort_by_key(|frame| (frame.epoch, frame.first_seq));
        for frame in frames {
            line(
                out,
                format_args!(
                    "      frame in block {}: epoch {}, from {}, durable up to {}, {} records",
                    frame.block,
                    frame.epoch,
                    frame.first_seq,
                    frame.flushed_through,
                    frame.records.len()
                ),
            );
            for (seq, record) in (frame.first_seq.get()..).zip(frame.records.iter()) {
                line(out, format_args!("        {seq}: {}", record.text()));
            }
        }
    }
}

fn last_seq(frame: &Frame) -> u64 {
    frame.first_seq.get() + (frame.records.len() as u64).saturating_sub(1)
}

fn record_counts(journal: &Journal) -> Vec<(&'static str, u64)> {
    let mut counts: Vec<(&'static str, u64)> = Vec::new();
    for record in journal.frames.iter().flat_map(|frame| frame.records.iter()) {
        let name = record.name();
        match counts.iter_mut().find(|(other, _)| *other == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts
}

/// The inspection as JSON.
pub fn to_json(inspection: &Inspection, detail: Detail) -> Value {
    let candidate = &inspection.candidate;
    let copies: Vec<Value> = candidate
        .copies
        .iter()
        .map(|copy| match copy {
            Ok(superblock) => superblock_json(superblock),
            Err(error) => json!({ "error": error.to_string() }),
        })
        .collect();
    json!({
        "path": candidate.path.to_string_lossy(),
        "size_bytes": candidate.size_bytes,
        "foreign_signature": candidate.signature,
        "superblocks": copies,
        "checkpoints": inspection.checkpoints.iter().map(checkpoint_json).collect::<Vec<_>>(),
        "journal": inspection.journal.as_ref().map(|journal| journal_json(journal, detail)),
    })
}

fn checkpoint_json(checkpoint: &Checkpoint) -> Value {
    let place = json!({ "area": checkpoint.area, "block": checkpoint.block });
    match &checkpoint.header {
        Err(error) => json!({ "place": place, "error": error.to_string() }),
        Ok(header) => json!({
            "place": place,
            "kind": header.kind.to_string(),
            "number": header.number,
            "base": header.base,
            "behind": (header.behind > 0).then_some(header.behind),
            "beside": header.beside.map(|beside| json!({ "base": beside.base, "block": beside.block })),
            "packed": header.packed > 0,
            "epoch": header.epoch.get(),
            "through": header.through.get(),
            "table_words": header.table_words,
            "list_words": header.list_words,
            "page_count": header.page_count,
            "table_pages": checkpoint.table_pages,
            "patch_pages": checkpoint.patch_pages,
            "root_pages": checkpoint.root_pages,
            "list_pages": checkpoint.list_pages,
            "change_pages": checkpoint.change_pages,
            "bad_pages": checkpoint.bad_pages,
            "first_bad": checkpoint.first_bad.as_ref().map(ToString::to_string),
            "body_matches": checkpoint.body_matches,
            "dirty_stripes": checkpoint.list.map(|list| list.dirty_stripes),
            "log_stripes": checkpoint.list.map(|list| list.log_stripes),
            "deltas": checkpoint.list.map(|list| list.deltas),
            "clean_stripes": checkpoint.list.map(|list| list.clean_stripes),
            "ended_log_stripes": checkpoint.list.map(|list| list.ended_log_stripes),
            "changed_log_stripes": checkpoint.list.map(|list| list.changed_log_stripes),
            "log_head": header.log_head,
            "log_tail": header.log_tail,
        }),
    }
}

fn journal_json(journal: &Journal, detail: Detail) -> Value {
    let records: serde_json::Map<String, Value> =
        record_counts(journal).into_iter().map(|(name, count)| (json_name(name), json!(count))).collect();
    let frames: Vec<Value> = match detail {
        Detail::Summary => Vec::new(),
        Detail::Records => journal.frames.iter().map(frame_json).collect(),
    };
    json!({
        "blocks": journal.blocks,
        "frame_count": journal.frames.len(),
        "old_frames": journal.old_frames,
        "bad_frames": journal.bad_frames,
        "first_bad": journal.first_bad.as_ref().map(|(block, error)| json!({ "block": block, "error": error.to_string() })),
        "records": records,
        "frames": if detail == Detail::Records { json!(frames) } else { Value::Null },
    })
}

fn frame_json(frame: &Frame) -> Value {
    json!({
        "block": frame.block,
        "epoch": frame.epoch.get(),
        "first_seq": frame.first_seq.get(),
        "flushed_through": frame.flushed_through.get(),
        "records": frame.records.iter().map(record_json).collect::<Vec<_>>(),
    })
}

fn record_json(record: RecordRef<'_>) -> Value {
    let numbers = |item: Vec<(&str, u64)>| -> Value {
        item.into_iter().map(|(name, number)| (name.to_owned(), json!(number))).collect()
    };
    let value = |part: Part| match part {
        Part::Number(number) => json!(number),
        Part::Flag(flag) => json!(flag),
        Part::Numbers(list) => json!(list),
        Part::Items(items) => items.into_iter().map(numbers).collect(),
    };
    let kind = ("kind".to_owned(), json!(json_name(record.name())));
    let parts = record.parts().into_iter().map(|(name, part)| (name.to_owned(), value(part)));
    std::iter::once(kind).chain(parts).collect()
}

/// A record's kind as a key or a value of JSON.
fn json_name(name: &str) -> String {
    name.replace(' ', "_")
}
