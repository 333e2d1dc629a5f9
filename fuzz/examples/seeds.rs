//! Writes the first inputs of every target to `seeds/`: `cargo run --example seeds` in this folder.

use front::nbd::wire::{self, Command, RequestHeader, option};
use fuzz::{HEAD_BYTES, samples};
use std::fs;
use std::path::Path;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let write = |target: &str, name: &str, bytes: &[u8]| {
        let folder = root.join("seeds").join(target);
        fs::create_dir_all(&folder).expect("the folder can be made");
        fs::write(folder.join(name), bytes).expect("the file can be written");
    };
    for sample in samples::all() {
        let target = match sample.place {
            samples::Place::Superblock { .. } => "superblock",
            samples::Place::Frame { .. } => "frame",
            samples::Place::Header { .. } | samples::Place::Page { .. } => "checkpoint",
        };
        write(target, sample.name, trimmed(&sample.block[HEAD_BYTES..sample.block.len() - 4]));
        if ["page-list", "page-list-runs", "page-changes"].contains(&sample.name) {
            // The words of a page start behind its head of 64 bytes.
            write("list", sample.name, trimmed_words(&sample.block[64..4064]));
        }
    }
    // Forms that are read, and written no more.
    let golden =
        |name: &str| fs::read(root.join("../crates/format/golden/v2").join(name)).expect("it is there");
    let copied = golden("frame-copied-chunks.bin");
    write("frame", "frame-copied-chunks", trimmed(&copied[HEAD_BYTES..copied.len() - 4]));
    write("list", "page-list-packed", trimmed_words(&golden("page-list-packed.bin")[64..4064]));
    let fixtures = root.join("../crates/trace/tests/fixtures");
    let which = [
        ("tiny.csv", 0),
        ("tiny.spc", 1),
        ("tiny_msr.csv", 2),
        ("tiny.fiu", 3),
        ("tiny.blkparse", 4),
        ("tiny.v2.iolog", 5),
        ("tiny.v3.iolog", 5),
    ];
    for (name, format) in which {
        let text = fs::read(fixtures.join(name)).expect("the fixture is there");
        let text = &text[..text.len().min(2000)];
        write("trace", name, &[&[format], text].concat());
        write("trace", &format!("{name}.detected"), &[&[7], text].concat());
    }
    for (name, structured) in [("simple", false), ("structured", true)] {
        write("nbd", name, &[&[20], &session(structured)[..]].concat());
        write("nbd", &format!("{name}-in-parts"), &[&[0x80 | 3], &session(structured)[..]].concat());
    }
    for sample in 0..8u8 {
        let edit = |block: u16, offset: u16, bytes: &[u8]| {
            let length = u8::try_from(bytes.len()).expect("short");
            [&block.to_le_bytes()[..], &offset.to_le_bytes()[..], &[length], bytes].concat()
        };
        let edits = [edit(2, 64, &[1]), edit(9, 100, &[0xff; 4]), edit(30, 0x8000 | 40, &[0; 8])].concat();
        write("assemble", &format!("sample-{sample}"), &[&[sample], &edits[..]].concat());
        for use_it in [0x10, 0x20, 0x40, 0x80] {
            write("assemble", &format!("sample-{sample}-untouched-{use_it:x}"), &[sample | use_it]);
        }
    }
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)]
}

fn trimmed_words(bytes: &[u8]) -> &[u8] {
    &bytes[..trimmed(bytes).len().next_multiple_of(4)]
}

/// Handshake, one request of each kind, goodbye.
fn session(structured: bool) -> Vec<u8> {
    let name = |name: &str| [&(name.len() as u32).to_be_bytes()[..], name.as_bytes()].concat();
    let mut out = 3u32.to_be_bytes().to_vec();
    wire::put_option(&mut out, option::LIST, &[]);
    if structured {
        wire::put_option(&mut out, option::STRUCTURED_REPLY, &[]);
        let query = [name("vol"), 1u32.to_be_bytes().to_vec(), name("base:allocation")].concat();
        wire::put_option(&mut out, option::SET_META_CONTEXT, &query);
    }
    wire::put_option(&mut out, option::GO, &[name("vol"), vec![0, 1, 0, 3]].concat());
    let mut request = |command: Command, flags, offset_bytes, length_bytes: u32| {
        let (code, cookie) = (command.code(), offset_bytes ^ 7);
        wire::put_request(&mut out, &RequestHeader { flags, code, cookie, offset_bytes, length_bytes });
        if command == Command::Write {
            out.resize(out.len() + length_bytes as usize, 0x5a);
        }
    };
    request(Command::Write, 1, 512, 1024);
    request(Command::Read, 0, 0, 4096);
    request(Command::Trim, 0, 0, 8192);
    request(Command::WriteZeroes, 2, 4096, 512);
    request(Command::Cache, 0, 0, 4096);
    if structured {
        request(Command::BlockStatus, 8, 0, 65536);
    }
    request(Command::Flush, 0, 0, 0);
    request(Command::Disconnect, 0, 0, 0);
    out
}
