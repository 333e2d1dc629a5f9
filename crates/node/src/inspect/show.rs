//! An inspection as text and as JSON.

use super::{Checkpoint, Inspection, Journal, record_name};
use crate::describe::superblock_json;
use crate::open::{member_name, shape};
use crate::units::show_size;
use format::{FormatError, Frame, Record, Role};
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
                    s.checkpoint,
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
            "  {place}: {} checkpoint {} on {}, epoch {}, records up to {}, {} pages (table {}, list {})",
            header.kind,
            header.number,
            header.base,
            header.epoch,
            header.through,
            header.page_count,
            checkpoint.table_pages,
            checkpoint.list_pages
        ),
    );
    if let Some(list) = checkpoint.list {
        line(
            out,
            format_args!(
                "      {} dirty stripes, {} log stripes, {} deltas",
                list.dirty_stripes, list.log_stripes, list.deltas
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
            for (seq, record) in (frame.first_seq.get()..).zip(&frame.records) {
                line(out, format_args!("        {seq}: {}", record_text(record)));
            }
        }
    }
}

fn last_seq(frame: &Frame) -> u64 {
    frame.first_seq.get() + (frame.records.len() as u64).saturating_sub(1)
}

fn record_counts(journal: &Journal) -> Vec<(&'static str, u64)> {
    let mut counts: Vec<(&'static str, u64)> = Vec::new();
    for record in journal.frames.iter().flat_map(|frame| &frame.records) {
        let name = record_name(record);
        match counts.iter_mut().find(|(other, _)| *other == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts
}

fn record_text(record: &Record) -> String {
    let numbers =
        |list: &[block::ChunkIndex]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let columns = |pieces: &[format::InPlacePiece]| {
        pieces.iter().map(|piece| piece.column.to_string()).collect::<Vec<_>>().join(" ")
    };
    match record {
        Record::LogStripe { log_block, members, .. } => {
            let members: Vec<String> =
                members.iter().map(|member| format!("lcn {} at {}", member.lcn, member.chunk)).collect();
            format!("log stripe at log block {log_block}: {}", members.join(", "))
        }
        Record::FullStripe { stripe, chunks, .. } => {
            format!("full stripe {stripe}: chunks {}", numbers(chunks))
        }
        Record::Commit { stripe, data, parity, .. } => {
            format!("commit of stripe {stripe}: data {}, parity {}", numbers(data), numbers(parity))
        }
        Record::Zero { first, count } => format!("zero: {count} chunks from lcn {first}"),
        Record::InPlace { stripe, pieces } => {
            format!("in place: stripe {stripe}, columns {}", columns(pieces))
        }
        Record::Delta { stripe, whole, log_block, pieces, .. } => {
            let logged = if *whole { "parity" } else { "change of parity" };
            format!(
                "delta: stripe {stripe}, columns {} in place, {logged} at log block {log_block}",
                columns(pieces)
            )
        }
        Record::Elastic { row, class, members, .. } => {
            let members: Vec<String> = members.iter().map(elastic_member_text).collect();
            format!("elastic stripe in row {row}, class {class}: {}", members.join(", "))
        }
    }
}

fn elastic_member_text(member: &format::ElasticMember) -> String {
    match member.from {
        0 => format!("lcn {}", member.lcn),
        from => format!("lcn {} moved from place {from}", member.lcn),
    }
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
        "path": candidate.path,
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
            "epoch": header.epoch.get(),
            "through": header.through.get(),
            "table_words": header.table_words,
            "list_words": header.list_words,
            "page_count": header.page_count,
            "table_pages": checkpoint.table_pages,
            "list_pages": checkpoint.list_pages,
            "bad_pages": checkpoint.bad_pages,
            "first_bad": checkpoint.first_bad.as_ref().map(ToString::to_string),
            "body_matches": checkpoint.body_matches,
            "dirty_stripes": checkpoint.list.map(|list| list.dirty_stripes),
            "log_stripes": checkpoint.list.map(|list| list.log_stripes),
            "deltas": checkpoint.list.map(|list| list.deltas),
            "log_head": header.log_head,
            "log_tail": header.log_tail,
        }),
    }
}

fn journal_json(journal: &Journal, detail: Detail) -> Value {
    let records: serde_json::Map<String, Value> = record_counts(journal)
        .into_iter()
        .map(|(name, count)| (name.replace(' ', "_"), json!(count)))
        .collect();
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

fn record_json(record: &Record) -> Value {
    let numbers = |list: &[block::ChunkIndex]| list.iter().map(|chunk| chunk.get()).collect::<Vec<_>>();
    match record {
        Record::LogStripe { log_block, log_crcs, members } => json!({
            "kind": "log_stripe",
            "log_block": log_block.get(),
            "log_crcs": log_crcs,
            "members": members.iter().map(|member| json!({
                "lcn": member.lcn.get(), "chunk": member.chunk.get(), "crc": member.crc,
            })).collect::<Vec<_>>(),
        }),
        Record::FullStripe { stripe, chunks, crcs } => json!({
            "kind": "full_stripe", "stripe": stripe.get(), "chunks": numbers(chunks), "crcs": crcs,
        }),
        Record::Commit { stripe, data, parity, parity_crcs } => json!({
            "kind": "commit",
            "stripe": stripe.get(),
            "data": numbers(data),
            "parity": numbers(parity),
            "parity_crcs": parity_crcs,
        }),
        Record::Zero { first, count } => json!({ "kind": "zero", "first": first.get(), "count": count }),
        Record::InPlace { stripe, pieces } => json!({
            "kind": "in_place",
            "stripe": stripe.get(),
            "pieces": pieces_json(pieces),
        }),
        Record::Delta { stripe, whole, log_block, log_crcs, pieces } => json!({
            "kind": "delta",
            "stripe": stripe.get(),
            "whole": whole,
            "log_block": log_block.get(),
            "log_crcs": log_crcs,
            "pieces": pieces_json(pieces),
        }),
        Record::Elastic { row, class, members, crcs } => json!({
            "kind": "elastic_stripe",
            "row": row,
            "class": class,
            "members": members.iter().map(|member| json!({
                "lcn": member.lcn.get(), "from": member.from,
            })).collect::<Vec<_>>(),
            "crcs": crcs,
        }),
    }
}

fn pieces_json(pieces: &[format::InPlacePiece]) -> Value {
    let piece = |piece: &format::InPlacePiece| {
        json!({
            "column": piece.column, "crc": piece.crc, "payload_block": piece.payload_block,
        })
    };
    pieces.iter().map(piece).collect()
}
