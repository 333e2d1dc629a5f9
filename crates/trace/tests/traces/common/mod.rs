//! Shared by the tests: where the real traces lie, if they are here.

use std::io::Write;
use std::path::PathBuf;
use trace::{ReadOptions, Request, TraceReader};

/// A file of the collection of real traces, which is not part of the repository. Absent: says so on the
/// terminal, past the test harness's capture, and returns `None`.
pub fn shared_trace(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("ELASTRIPE_TRACES").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces")),
        PathBuf::from,
    );
    let path = root.join(name);
    if path.is_file() {
        return Some(path);
    }
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED: no {} (set ELASTRIPE_TRACES to the folder of real traces)",
        path.display()
    );
    None
}

/// The trace that is part of the repository: what is shown with real traces is shown with it too, wherever
/// the tests run.
pub fn bundled_trace() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/traces/synthetic.csv.zst"))
}

/// The requests of a text in a given or detected format, or the error's text.
pub fn read_text(text: impl Into<Vec<u8>>, options: &ReadOptions) -> Result<Vec<Request>, String> {
    TraceReader::from_reader("t", Box::new(std::io::Cursor::new(text.into())), options)
        .and_then(Iterator::collect)
        .map_err(|error| error.to_string())
}
