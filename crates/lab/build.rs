//! Which commit the program is built from, so that it can say so: `elastripe --version`, and every result.
//!
//! Without git, or outside of a checkout, `ELASTRIPE_COMMIT` may say it, else it is unknown. This runs
//! again, and so this package is built again, when another commit is checked out, or a source of the
//! program changes, which builds it anyway.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=ELASTRIPE_COMMIT");
    let manifest =
        PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the package is"));
    let (commit, dirty) = match std::env::var("ELASTRIPE_COMMIT") {
        Ok(given) if !given.is_empty() => (given, false),
        Ok(_) | Err(_) => checked_out(&manifest).unwrap_or_default(),
    };
    let short: String = commit.chars().take(12).collect();
    let version = std::env::var("CARGO_PKG_VERSION").expect("cargo says the version");
    let said = match (commit.is_empty(), dirty) {
        (true, _) => "commit unknown".to_owned(),
        (false, false) => format!("commit {short}"),
        (false, true) => format!("commit {short}, changed since"),
    };
    println!("cargo::rustc-env=ELASTRIPE_VERSION={version} ({said})");
    println!("cargo::rustc-env=ELASTRIPE_COMMIT={commit}");
    println!("cargo::rustc-env=ELASTRIPE_DIRTY={dirty}");
}

/// Commit, and whether the sources that make up the program differ from it; `None` if this is no checkout
/// of them.
fn checked_out(manifest: &Path) -> Option<(String, bool)> {
    // A copy of the sources inside of another project's checkout is none of its files.
    git(manifest, &["ls-files", "--error-unmatch", "Cargo.toml"])?;
    let commit = git(manifest, &["rev-parse", "HEAD"])?;
    let branch = git(manifest, &["symbolic-ref", "-q", "HEAD"]).unwrap_or_default();
    for name in ["HEAD", "logs/HEAD", "packed-refs", &branch] {
        let path = git(manifest, &["rev-parse", "--git-path", name]).map(|path| manifest.join(path));
        // A file that is not there would have this run every time.
        if let Some(path) = path.filter(|path| !name.is_empty() && path.exists()) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let crates = manifest.parent()?;
    let mut watched = vec![manifest.join("build.rs"), manifest.join("fonts")];
    for entry in std::fs::read_dir(crates).ok()?.flatten() {
        watched.extend(["src", "Cargo.toml"].map(|name| entry.path().join(name)));
    }
    let root = crates.parent()?;
    watched.extend(["Cargo.toml", "Cargo.lock"].map(|name| root.join(name)));
    watched.retain(|path| path.exists());
    watched.iter().for_each(|path| println!("cargo::rerun-if-changed={}", path.display()));
    let mut status = vec!["status".to_owned(), "--porcelain".to_owned(), "--".to_owned()];
    status.extend(watched.iter().map(|path| path.display().to_string()));
    let changed = git(manifest, &status.iter().map(String::as_str).collect::<Vec<_>>())?;
    Some((commit, !changed.is_empty()))
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    // Reading the state must not write the index: others may be at work in the same checkout.
    let output =
        Command::new("git").arg("--no-optional-locks").args(arguments).current_dir(folder).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
