//! `scan`: which arrays there are.

use super::Exit;
use clap::Args;
use lab::failure::{EXIT_FAILED, Failure};
use node::describe::role_of;
use node::open::{arrange_any_candidates, is_locked, shape};
use node::output;
use node::scan::{Sighted, look_around};
use node::status::{Source, of_superblocks};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Options of `scan`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Devices, files, and directories to look into; without any, every block device.
    #[arg(value_name = "PATH")]
    places: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs `scan`. Exit code 1 if there is no array.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let sight = look_around(&arguments.places)?;
    for other in &sight.other_versions {
        output::warn(format_args!("elastripe: {other}"));
    }
    if arguments.json {
        let list: Vec<Value> = sight.arrays.iter().map(to_json).collect();
        output::line(format_args!("{:#}", Value::from(list)));
    } else if sight.arrays.is_empty() {
        output::line("no member of an array was found");
    } else {
        output::print(sight.arrays.iter().map(to_text).collect::<Vec<_>>().join("\n"));
    }
    Ok(if sight.arrays.is_empty() { EXIT_FAILED } else { 0 })
}

/// How the array is, as far as its devices tell.
fn state(found: &Sighted) -> (String, &'static str) {
    let locked = found.candidates.iter().any(is_locked);
    let (source, used) = if locked { (Source::InUse, "in-use") } else { (Source::Stopped, "stopped") };
    match arrange_any_candidates(&found.candidates) {
        Ok(arranged) => (of_superblocks(&arranged, source, 0).state.shown().to_lowercase(), used),
        Err(failure) => (failure.to_string(), used),
    }
}

fn to_json(found: &Sighted) -> Value {
    let (state, source) = state(found);
    let superblock = found.candidates.iter().find_map(|candidate| candidate.superblock());
    let devices: Vec<Value> = found
        .candidates
        .iter()
        .map(|candidate| json!({ "name": candidate.superblock().map(role_of), "path": candidate.path }))
        .collect();
    json!({
        "uuid": found.array.to_string(),
        "name": found.name,
        "state": state,
        "source": source,
        "scheme": superblock.map(|found| found.config.scheme.to_string()),
        "devices": devices,
    })
}

fn to_text(found: &Sighted) -> String {
    let name = if found.name.is_empty() { "(no name)" } else { &found.name };
    let (state, source) = state(found);
    let used = if source == "in-use" { "in use" } else { "not in use" };
    let mut text = format!("{name}  {}  {state}, {used}\n", found.array);
    if let Some(superblock) = found.candidates.iter().find_map(|candidate| candidate.superblock()) {
        text.push_str(&format!("  {}\n", shape(&superblock.config)));
    }
    for candidate in &found.candidates {
        let role = candidate.superblock().map(role_of).unwrap_or_default();
        text.push_str(&format!("  {role:<8} {}\n", candidate.path.display()));
    }
    text
}
