//! What is said of data that is lost: what it means, what to do, where it is.

use crate::losses::{Lost, Range};
use crate::status::Status;
use crate::units::{show_count, show_size};
use std::fmt::Write;

/// What it means for clients that an array was started in an older state.
pub const GIVEN_UP: &str = "the array was started by --force although data that clients were told is durable is lost, or may be wrong; all of the volume \
                            can be read and written";

/// What to do then.
pub fn take_note(whom: &str) -> String {
    format!(
        "check what is on the volume, or restore it from a backup; `elastripe clear {whom}` when that is done"
    )
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
