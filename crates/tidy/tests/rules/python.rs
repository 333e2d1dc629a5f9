//! The Python package, which is tested with Python only: what can be seen of it without.

use std::fs;
use tidy::{files, root};

fn text(path: &str) -> String {
    fs::read_to_string(root().join("python").join(path)).unwrap()
}

/// The words of what follows each `before`, up to `after`.
fn listed(text: &str, before: &str, after: &str) -> Vec<String> {
    let parts = text.split(before).skip(1).filter_map(|part| part.split(after).next());
    let words = parts.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[test]
fn the_compiled_part_says_what_it_is_and_has_no_unsafe_code() {
    let sources = files(&root().join("python/src"), &[".rs"]);
    assert!(sources.len() > 3);
    for path in sources {
        let source = fs::read_to_string(&path).unwrap();
        assert!(source.starts_with("//!"), "{} does not open with `//!`", path.display());
        let long = source.lines().position(|line| line.chars().count() > 110);
        assert_eq!(long, None, "{}: a line (from 0) is wider than 110", path.display());
    }
    assert!(text("src/lib.rs").contains("#![forbid(unsafe_code)]"));
}

#[test]
fn the_stub_names_what_the_compiled_part_exports() {
    let (source, stub) = (text("src/lib.rs"), text("elastripe/_native.pyi"));
    let exported: Vec<String> = listed(&source, "#[pymodule_export]\n    use super::", ";")
        .into_iter()
        .filter(|word| {
            // The modules in front of the braces.
            !source.contains(&format!("mod {word};"))
        })
        .collect();
    assert!(exported.len() > 10, "{exported:?}");
    for name in &exported {
        let is_there = [format!("def {name}("), format!("class {name}("), format!("class {name}:")]
            .iter()
            .any(|line| stub.contains(line));
        assert!(is_there, "{name} is not in _native.pyi");
    }
}

#[test]
fn what_the_package_exports_is_documented() {
    let package = text("elastripe/__init__.py");
    let document = fs::read_to_string(root().join("docs/python.md")).unwrap();
    let exported = listed(&package, "__all__ = [", "]");
    assert!(exported.len() > 15, "{exported:?}");
    for name in exported.iter().filter(|name| !name.starts_with('_')) {
        assert!(document.contains(name.as_str()), "docs/python.md does not name {name}");
    }
}
