//! Layers, sizes, bans, licences: rules that are executed, not remembered.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tidy::{LAYERS, OUTSIDE, crates, dependencies, files, layer_of, root};

#[test]
fn crates_depend_on_lower_layers_only() {
    for krate in LAYERS.concat() {
        let manifest = fs::read_to_string(root().join(format!("crates/{krate}/Cargo.toml"))).unwrap();
        for dependency in dependencies(&manifest) {
            if let Some(below) = layer_of(&dependency) {
                let own = layer_of(krate).unwrap();
                assert!(below < own, "{krate} (layer {own}) may not depend on {dependency} (layer {below})");
            }
        }
    }
}

#[test]
fn what_judges_from_outside_shares_nothing_with_the_product() {
    for krate in OUTSIDE {
        let manifest = fs::read_to_string(root().join(format!("crates/{krate}/Cargo.toml"))).unwrap();
        let shared: Vec<String> =
            dependencies(&manifest).into_iter().filter(|name| layer_of(name).is_some()).collect();
        assert!(shared.is_empty(), "{krate} may not depend on {shared:?}");
    }
}

#[test]
fn every_third_party_dependency_says_why_it_is_there() {
    for path in files(&root().join("crates"), &["Cargo.toml"]) {
        let text = fs::read_to_string(&path).unwrap();
        let mut inside = false;
        let mut comment_above = false;
        for line in text.lines() {
            if line.starts_with('[') {
                inside = line.contains("dependencies]");
            } else if inside
                && line.contains('=')
                && !line.starts_with('#')
                && !line.contains("workspace = true")
            {
                assert!(line.contains('#') || comment_above, "{}: no reason beside `{line}`", path.display());
            }
            comment_above = line.starts_with('#') || (comment_above && line.contains('='));
        }
    }
}

#[test]
fn files_say_what_they_are() {
    for path in files(&root().join("crates"), &[".rs"]) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("//!"), "{} does not open with `//!` saying what it is", path.display());
    }
}

#[test]
fn unsafe_code_is_where_it_may_be() {
    for (krate, dir) in crates() {
        let roots = ["lib.rs", "main.rs"].map(|name| dir.join("src").join(name));
        let root = roots.iter().find(|path| path.exists()).unwrap();
        let may_be = ["checksum", "prefetch", "erasure", "device"].contains(&krate.as_str());
        let wanted = if may_be { "deny" } else { "forbid" };
        let text = fs::read_to_string(root).unwrap();
        assert!(
            text.contains(&format!("#![{wanted}(unsafe_code)]")),
            "{krate} does not {wanted} unsafe code"
        );
    }
}

#[test]
fn nothing_is_left_undone_or_names_this_machine() {
    // The words are put together here so that this file does not contain them.
    let undone = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("X", "XX"),
        concat!("todo", "!("),
        concat!("unimpl", "emented!("),
    ];
    let places = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];
    for path in files(&root(), &[".rs", ".toml", ".md", ".sh", "Makefile"]) {
        let text = fs::read_to_string(&path).unwrap();
        // `mktemp` wants a run of six of that letter; it is no note.
        let text = text.replace(&"X".repeat(6), "");
        for word in undone.iter().chain(&places) {
            assert!(!text.contains(word), "{} contains `{word}`", path.display());
        }
    }
}

#[test]
fn licences_are_permissive() {
    const GOOD: [&str; 13] = [
        "MIT",
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "ISC",
        "Zlib",
        "0BSD",
        "Unicode-3.0",
        "Unlicense",
        "BSL-1.0",
        "CC0-1.0",
        "MIT-0",
    ];
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--offline",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 10);
    for package in packages {
        let licence = package["license"].as_str().unwrap_or("").replace('/', " OR ");
        // Every part of an AND must offer a good licence; one of an OR is enough.
        let fine = licence.split(" AND ").all(|part| {
            part.trim_matches(['(', ')'])
                .split(" OR ")
                .any(|one| GOOD.contains(&one.trim().trim_matches(['(', ')'])))
        });
        assert!(fine, "{} {}: licence `{licence}`", package["name"], package["version"]);
    }
}

/// The crates of the product that a manifest always asks for and `lock`'s entry of that crate does not name.
fn not_in_lock(krate: &str, manifest: &str, lock: &str) -> Vec<String> {
    let entry = format!("name = \"elastripe-{krate}\"\n");
    let Some((_, rest)) = lock.split_once(&entry) else { return Vec::new() };
    let listed = rest.split("[[package]]").next().unwrap();
    let always: Vec<&str> = manifest.lines().filter(|line| !line.contains("optional = true")).collect();
    let asked = dependencies(&always.join("\n")).into_iter().filter(|name| layer_of(name).is_some());
    asked.filter(|name| !listed.contains(&format!("\"elastripe-{name}\""))).collect()
}

#[test]
fn lock_files_of_workspaces_apart_are_up_to_date() {
    for path in ["fuzz/Cargo.lock", "python/Cargo.lock"] {
        let lock = fs::read_to_string(root().join(path)).unwrap();
        for krate in LAYERS.concat() {
            let manifest = fs::read_to_string(root().join(format!("crates/{krate}/Cargo.toml"))).unwrap();
            let missing = not_in_lock(krate, &manifest, &lock);
            assert!(
                missing.is_empty(),
                "{path}: {krate} lacks {missing:?}: run cargo there without --locked"
            );
        }
    }
}

#[test]
fn a_dependency_that_a_lock_file_lacks_is_found() {
    let manifest = "[dependencies]\nblock.workspace = true\nformat.workspace = true\nserde = \"1\" # read\n";
    let lock = "[[package]]\nname = \"elastripe-x\"\ndependencies = [\n \"elastripe-block\",\n]\n\n[[package]]\n\
                name = \"y\"\ndependencies = [\n \"elastripe-format\",\n]\n";
    assert_eq!(not_in_lock("x", manifest, lock), ["format"]);
    assert!(not_in_lock("z", manifest, lock).is_empty());
}

#[test]
fn documents_name_files_that_exist() {
    for path in files(&root().join("docs"), &[".md"])
        .into_iter()
        .chain(["README.md", "CONTRIBUTING.md"].map(|name| root().join(name)))
    {
        let text = fs::read_to_string(&path).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap();
            if !target.is_empty() && !target.contains("://") {
                let file = path.parent().unwrap().join(target);
                assert!(file.exists(), "{} links to {link}, which is not there", path.display());
            }
        }
    }
}

/// The files below `src` that no `mod` names: they are compiled by nobody.
fn orphans(src: &Path) -> Vec<PathBuf> {
    let names = |parent: &Path, name: &str| {
        let text = fs::read_to_string(parent).unwrap_or_default();
        text.lines().any(|line| line.trim().trim_start_matches("pub ").ends_with(&format!("mod {name};")))
    };
    let named = |path: &PathBuf| {
        let (dir, stem) = (path.parent().unwrap(), path.file_stem().unwrap().to_str().unwrap());
        let is_root = ["lib", "main"].contains(&stem) && dir == src || dir.ends_with("bin");
        let (dir, name) = match stem {
            "mod" => (dir.parent().unwrap(), dir.file_name().unwrap().to_str().unwrap()),
            _ => (dir, stem),
        };
        let parents = [dir.join("mod.rs"), dir.with_extension("rs"), dir.join("lib.rs"), dir.join("main.rs")];
        is_root || parents.iter().any(|parent| names(parent, name))
    };
    files(src, &[".rs"]).into_iter().filter(|path| !named(path)).collect()
}

#[test]
fn every_file_is_part_of_its_crate() {
    for (_, dir) in crates() {
        let found = orphans(&dir.join("src"));
        assert!(found.is_empty(), "named by no `mod`: {found:?}");
    }
}

#[test]
fn a_file_that_nobody_names_is_found() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [("lib.rs", "mod a;\n"), ("a.rs", "mod b;\n"), ("a/b.rs", ""), ("a/c.rs", "")] {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    assert_eq!(orphans(dir.path()), [dir.path().join("a/c.rs")]);
}
