//! Prints the byte tables of `docs/format.md` from the layouts that the encoders use.

use crate::layout::{Layout, common};
use crate::names::{
    CheckpointKind, CodeKind, CodeTable, Consistency, LayoutKind, MemberFate, MemberState, PageKind, Role,
};
use crate::scheme::SchemeKind;
use crate::{checkpoint, frame, list, patch, record, superblock};
use std::fmt::Write;

const LAYOUTS_BEFORE_RECORDS: &[&Layout] =
    &[&common::LAYOUT, &superblock::fields::LAYOUT, &superblock::member::LAYOUT, &frame::fields::LAYOUT];

const LAYOUTS_BEHIND_RECORDS: &[&Layout] = &[&checkpoint::header::LAYOUT, &checkpoint::page::LAYOUT];

const CODES: &[CodeTable] = &[
    SchemeKind::TABLE,
    CodeKind::TABLE,
    LayoutKind::TABLE,
    Consistency::TABLE,
    Role::TABLE,
    MemberState::TABLE,
    record::RECORD_KINDS,
    CheckpointKind::TABLE,
    PageKind::TABLE,
    list::ITEM_KINDS,
    MemberFate::TABLE,
];

/// The byte tables of every structure and the codes of every enumeration, in Markdown.
pub fn layout_tables() -> String {
    let mut text = String::new();
    let records = record::RECORD_LAYOUTS.iter().copied().flatten();
    for layout in LAYOUTS_BEFORE_RECORDS.iter().chain(records).chain(LAYOUTS_BEHIND_RECORDS) {
        section(
            &mut text,
            layout.title,
            Some(layout.size),
            "| offset | bytes | field | meaning |\n|---:|---:|---|---|\n",
        );
        for field in layout.fields {
            line(
                &mut text,
                format_args!(
                    "| {} | {} | {} | {} |",
                    field.offset,
                    field.size,
                    field.name.to_lowercase(),
                    field.meaning
                ),
            );
        }
    }
    for (title, rows) in list::ITEM_TABLES.iter().chain([&patch::PATCH_TABLE, &patch::PACKED_TABLE]) {
        section(&mut text, title, None, "| word | meaning |\n|---|---|\n");
        for (word, meaning) in *rows {
            line(&mut text, format_args!("| {word} | {meaning} |"));
        }
    }
    for (title, rows) in record::SHORT_TABLES {
        section(&mut text, title, None, "| bytes | meaning |\n|---|---|\n");
        for (bytes, meaning) in *rows {
            line(&mut text, format_args!("| {bytes} | {meaning} |"));
        }
    }
    for table in CODES {
        section(&mut text, table.title, None, "| byte | meaning |\n|---:|---|\n");
        for (code, name) in table.rows {
            line(&mut text, format_args!("| {code} | {name} |"));
        }
    }
    text
}

fn section(text: &mut String, title: &str, size: Option<usize>, head: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    let size = size.map(|bytes| format!(" ({bytes} bytes)")).unwrap_or_default();
    line(text, format_args!("### {}{size}\n", capitalised(title)));
    text.push_str(head);
}

fn capitalised(title: &str) -> String {
    let mut chars = title.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    writeln!(text, "{what}").expect("writing to a string cannot fail");
}
