//! Shared by the tests of `replay`: running the program, and where the real traces lie, if they are here.
#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Runs the program.
pub fn elastripe(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_elastripe")).args(arguments).output().unwrap()
}

/// Runs `replay` and takes its JSON.
#[track_caller]
pub fn replay(arguments: &[&str]) -> Value {
    let all = [&["replay", "--json"], arguments].concat();
    let output = elastripe(&all);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", arguments.join(" "));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs the program, which must fail with one line that names `what`.
#[track_caller]
pub fn refused(arguments: &[&str], what: &str) {
    let output = elastripe(arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{}: succeeded", arguments.join(" "));
    assert!(errors.contains(what), "{}: {errors:?} does not name {what:?}", arguments.join(" "));
    assert!(
        output.status.code().is_some_and(|code| code != 101),
        "{}: panicked: {errors}",
        arguments.join(" ")
    );
}

/// A number of the JSON object.
#[track_caller]
pub fn number(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} in {value:#}"))
}

/// The trace that is part of the repository: what is shown with real traces is shown with it too, wherever
/// the tests run.
pub fn bundled_trace() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/traces/synthetic.csv.zst"))
}

/// The collection of real traces, which is not part of the repository. Absent: says so past
/// the harness's capture.
pub fn traces() -> Option<PathBuf> {
    let root = std::env::var_os("ELASTRIPE_TRACES").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces")),
        PathBuf::from,
    );
    if root.is_dir() {
        return Some(root);
    }
    let _ = writeln!(
        std::io::stderr(),
        "no {} (set ELASTRIPE_TRACES to the folder of real traces): the bundled trace only",
        root.display()
    );
    None
}
