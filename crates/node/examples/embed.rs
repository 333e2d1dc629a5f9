//! An array within a program of one's own: made of three files, written, flushed, read back, stopped in
//! order.
//!
//! `cargo run -p elastripe-node --example embed -- DIRECTORY`, where the files are made.

use array::{CreateOptions, EngineOptions, LAYOUT_OF_NEW, NewArray, RESERVE_PERMILLE_DEFAULT, plan_config};
use block::{Durability, Geometry};
use device::{Existing, create_file};
use format::{CodeKind, Consistency, SchemeKind};
use node::{assemble, create, fresh};
use std::error::Error;
use std::path::{Path, PathBuf};

const FILE_BYTES: u64 = 64 << 20;
const TEXT: &[u8] = b"kept on any two of three files";

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: embed DIRECTORY")?);
    println!("{}", run(&directory)?);
    Ok(())
}

/// Gives back what the array kept.
pub fn run(directory: &Path) -> Result<String, Box<dyn Error>> {
    let paths: Vec<PathBuf> = ["a", "b", "c"].map(|name| directory.join(name)).into();
    for path in &paths {
        create_file(path, FILE_BYTES, Existing::Refuse)?;
    }
    let options = CreateOptions {
        scheme: SchemeKind::Raid,
        code: CodeKind::Xor,
        layout: LAYOUT_OF_NEW,
        consistency: Consistency::Journal,
        geometry: Geometry::new(2, 1, 4096)?,
        reserve_permille: RESERVE_PERMILLE_DEFAULT,
        unit_rows: None,
    };
    let config = plan_config(&options, FILE_BYTES, 0, 0)?;
    let (uuid, nonce) = (fresh::uuid()?, fresh::number()?);
    let new = NewArray { uuid, name: "mine".into(), nonce, created_unix_s: 0 };
    create::create(&paths, config, &new, || Ok::<_, node::error::Error>(()))?;

    let mut array = assemble::assemble(&paths, EngineOptions::default())?.shards.remove(0).start()?;
    let mut slots = Vec::new(); // one for each chunk that a request touches
    assert!(array.engine().take_slots(1, &mut slots), "nobody else has any");
    array.engine().pool().bytes_mut(slots[0])[..TEXT.len()].copy_from_slice(TEXT);
    array.run(|engine, tag| engine.write(tag, 0, 4096, &slots, Durability::Volatile))?;
    array.run(|engine, tag| engine.flush(tag))?; // durable from here on
    array.run(|engine, tag| engine.read(tag, 0, 4096, &slots))?;
    let found = String::from_utf8_lossy(&array.engine().pool().bytes(slots[0])[..TEXT.len()]).into_owned();
    slots.drain(..).for_each(|slot| array.engine().pool().free(slot));
    array.stop()?;
    Ok(found)
}
