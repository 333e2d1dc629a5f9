//! Data that is lost: how much, where, and what can be done. What status says of it.

use crate::status::Status;
use crate::units::{show_count, show_size};
use array::Engine;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Ranges that are listed at most.
const RANGES_MAX: usize = 1000;

/// A part of the volume.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// Where it begins.
    pub offset_bytes: u64,
    /// How long it is.
    pub length_bytes: u64,
}

/// What is lost, as far as known.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Lost {
    /// Chunks of the volume that cannot be read nor rebuilt.
    pub chunks: u64,
    /// The same in bytes.
    pub bytes: u64,
    /// Where they are, in order; at most a thousand.
    pub ranges: Vec<Range>,
    /// Ranges beyond those listed.
    pub ranges_omitted: u64,
    /// Whether all of the volume was looked at since the array was last in doubt. If not, there may be more, and what was lost
    /// before the last start may be found to be whole.
    pub is_complete: bool,
    /// A rebuild could not make everything whole; it is tried again when what is lost was rewritten or discarded.
    pub rebuild_waits: bool,
}

/// What a running array has lost; `None` if nothing.
pub fn of_engine(engine: &Engine) -> Option<Lost> {
    let losses = engine.losses();
    let known = losses.chunks.count();
    if known == 0 && losses.noted == 0 && !losses.unfinished {
        return None;
    }
    let chunk = engine.store().config.geometry.chunk_bytes() as u64;
    let range =
        |(first, count): (u64, u64)| Range { offset_bytes: first * chunk, length_bytes: count * chunk };
    let ranges: Vec<Range> = losses.chunks.stretches().take(RANGES_MAX).map(range).collect();
    let listed = losses.chunks.stretches().count();
    let chunks = known.max(losses.noted);
    Some(Lost {
        chunks,
        bytes: chunks.saturating_mul(chunk),
        ranges_omitted: (listed - ranges.len()) as u64,
        ranges,
        is_complete: losses.noted == 0 && losses.chunks.is_complete(),
        rebuild_waits: losses.unfinished,
    })
}

/// What the superblocks of an array that does not run say; `None` if nothing is lost.
pub fn of_superblock(superblock: &format::Superblock) -> Option<Lost> {
    let chunks = superblock.lost_chunks;
    let bytes = chunks.saturating_mul(superblock.config.geometry.chunk_bytes() as u64);
    let (ranges, ranges_omitted) = (Vec::new(), 0);
    let lost = Lost { chunks, bytes, ranges, ranges_omitted, is_complete: false, rebuild_waits: false };
    (chunks > 0).then_some(lost)
}

/// What it means for clients.
pub fn meaning(lost: &Lost) -> String {
    let part = if lost.rebuild_waits { "; a rebuild waits for that, and redundancy is reduced" } else { "" };
    if lost.chunks == 0 {
        return format!("old versions or parity are lost and no data as far as known{part}");
    }
    let amount = format!("{} chunks ({})", show_count(lost.chunks), show_size(lost.bytes));
    let known = if lost.is_complete {
        format!("{amount} of the volume are LOST")
    } else if lost.ranges.is_empty() {
        format!(
            "{amount} of the volume were LOST when the array was last in service; which is unknown until rebuild or scrub have looked"
        )
    } else {
        format!(
            "at least {amount} of the volume are LOST; more is unknown until rebuild or scrub have looked at everything"
        )
    };
    format!("{known}; they read as errors, everything else can be read and written{part}")
}

/// What to do.
pub fn action(lost: &Lost) -> String {
    match (lost.chunks, lost.ranges.is_empty()) {
        (0, _) => "elastripe commit MEMBERS; the rebuild is tried again by itself".to_owned(),
        (_, true) => "serve the array; the rebuild or scrub that begins by itself finds what is lost".to_owned(),
        (_, false) => {
            "restore what is listed by `status --verbose` by writing or discarding it; the rest heals by itself".to_owned()
        }
    }
}

/// The ranges, a line each.
pub fn list(text: &mut String, status: &Status) {
    let Some(lost) = status.lost.as_ref().filter(|lost| !lost.ranges.is_empty()) else { return };
    let mut line = |text_line: std::fmt::Arguments<'_>| {
        writeln!(text, "{text_line}").expect("writing to a string cannot fail");
    };
    line(format_args!("\n  LOST: offset and length in bytes, first sector and sectors of 512 bytes"));
    for Range { offset_bytes, length_bytes } in &lost.ranges {
        let (first, count) = (offset_bytes / 512, length_bytes / 512);
        line(format_args!("  {offset_bytes:>16} {length_bytes:>12} {first:>14} {count:>10}"));
    }
    if lost.ranges_omitted > 0 {
        line(format_args!("  and {} ranges more", show_count(lost.ranges_omitted)));
    }
    if !lost.is_complete {
        line(format_args!("  not everything was looked at since the start"));
    }
}
