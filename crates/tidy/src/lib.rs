//! Rules of the house that no compiler checks, as functions on the source tree; `tests/rules/` runs them.
#![forbid(unsafe_code)]

pub mod circles;
pub mod ids;
pub mod mask;
pub mod ratchet;
pub mod sizes;

use std::fs;
use std::path::{Path, PathBuf};

/// The crates, lowest layer first: a crate may depend on crates of lower layers only.
pub const LAYERS: [&[&str]; 9] = [
    &["block", "checksum", "prefetch"],
    &["erasure", "flash", "format", "placement", "reliability", "trace"],
    &["array", "kv"],
    &["device", "sim"],
    &["front"],
    &["resp"],
    &["node"],
    &["lab", "monitor"],
    &["cli"],
];

/// Crates that judge the product from outside. They use none of its crates: a mistake that both share
/// is not found.
pub const OUTSIDE: [&str; 1] = ["ordeal"];

/// The layer of a crate; `None` for tools outside the product.
pub fn layer_of(krate: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&krate))
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below `dir` with one of the endings, build output left out.
pub fn files(dir: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(dir) else { return found };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            if !["target", ".git", "corpus", "artifacts"].contains(&name.as_str()) {
                found.extend(files(&path, endings));
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The directories of all crates with their names, sorted.
pub fn crates() -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(root().join("crates")).into_iter().flatten().flatten();
    let mut found: Vec<(String, PathBuf)> = entries
        .filter(|entry| entry.path().join("Cargo.toml").exists())
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .collect();
    found.sort();
    found
}

/// The source files of a crate's product, relative to its `src`: tests that have files of their own
/// are left out.
pub fn product_files(krate: &Path) -> Vec<PathBuf> {
    let src = krate.join("src");
    let is_test = |path: &Path| {
        path.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs")))
    };
    files(&src, &[".rs"])
        .into_iter()
        .filter_map(|path| Some(path.strip_prefix(&src).ok()?.to_owned()))
        .filter(|path| !is_test(path))
        .collect()
}

/// The elastripe crates that a crate's manifest names as ordinary (not test) dependencies.
pub fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.trim() == "[dependencies]";
        } else if inside && let Some((name, _)) = line.split_once(['.', ' ', '=']) {
            found.push(name.trim().to_owned());
        }
    }
    found
}
