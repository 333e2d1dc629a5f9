//! Cells on the workers of a HyperQueue server: a task is this program, run for one cell into the shared
//! folder.
//!
//! Which worker runs what is HyperQueue's business. A cell is there or not, whoever died when; so what is
//! missing after a round is submitted again.

use super::cells::Cell;
use super::folder::Folder;
use super::{Length, RunArguments};
use crate::failure::Failure;
use node::output;
use serde_json::json;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What speaks with the server, by HyperQueue's Python package.
const DRIVER: &str = include_str!("hq.py");
/// A cell that is lost with its worker so often has another reason.
const ROUNDS: usize = 3;

/// What came of it: cells run, cells that were there, cells that failed.
pub struct Done {
    pub run: usize,
    pub found: usize,
    pub failed: usize,
}

/// Runs the cells that the folder does not have.
pub fn run(arguments: &RunArguments, cells: &[Cell], folder: &Folder) -> Result<Done, Failure> {
    let missing = || -> Vec<usize> {
        cells.iter().enumerate().filter(|(_, cell)| !folder.has(cell)).map(|(index, _)| index).collect()
    };
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("--executor hq: cannot name this program: {error}")))?;
    let out = folder
        .path()
        .canonicalize()
        .map_err(|error| Failure::new(format!("--out {}: {error}", folder.path().display())))?;
    let before = missing();
    let mut left = before.clone();
    for _ in 0..ROUNDS {
        if left.is_empty() {
            break;
        }
        let commands: Vec<Vec<String>> =
            left.iter().map(|index| command(&program, arguments, &out, *index, cells.len())).collect();
        submit(arguments, &commands)?;
        let still = missing();
        if still.len() == left.len() {
            // Nothing came of a whole round.
            break;
        }
        left = still;
    }
    let failed = missing();
    for index in &failed {
        let cell = cells.get(*index).map(super::folder::key_text).unwrap_or_default();
        output::warn(format_args!("cell is missing: {cell}"));
    }
    Ok(Done { run: before.len() - failed.len(), found: cells.len() - before.len(), failed: failed.len() })
}

/// The command of one cell.
fn command(program: &Path, arguments: &RunArguments, out: &Path, index: usize, count: usize) -> Vec<String> {
    let Length { scale, seed, traces } = &arguments.length;
    let seeds: Vec<String> = seed.0.iter().map(u64::to_string).collect();
    let mut words = vec![program.display().to_string(), "lab".to_owned(), "run".to_owned()];
    words.extend(arguments.experiments.iter().cloned());
    words.extend(["--scale".to_owned(), scale.to_string(), "--seed".to_owned(), seeds.join(",")]);
    if let Some(folder) = traces {
        // Workers have directories of their own.
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        words.extend(["--traces".to_owned(), folder.display().to_string()]);
    }
    for filter in &arguments.filters {
        words.extend(["--where".to_owned(), format!("{}={}", filter.axis, filter.labels.join(","))]);
    }
    words.extend(["--jobs".to_owned(), "1".to_owned(), "--out".to_owned(), out.display().to_string()]);
    words.extend(["--shard".to_owned(), format!("{}/{count}", index + 1)]);
    words
}

/// Submits tasks and waits for them.
fn submit(arguments: &RunArguments, commands: &[Vec<String>]) -> Result<(), Failure> {
    let named = |error: std::io::Error| {
        Failure::new(format!("--executor hq: cannot run {}: {error}", arguments.python.display()))
    };
    let mut child =
        Command::new(&arguments.python).args(["-c", DRIVER]).stdin(Stdio::piped()).spawn().map_err(named)?;
    let asked = json!({ "directory": arguments.hq_server, "commands": commands });
    if let Some(mut input) = child.stdin.take() {
        // A driver that ended early says why below.
        let _ = input.write_all(asked.to_string().as_bytes());
    }
    let status = child.wait().map_err(named)?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "--executor hq: {} with the driver of HyperQueue: {status}",
        arguments.python.display()
    )))
}
