//! Widths, lengths, fields, casts and circles: within their limits, or within `ratchet.txt` where they are
//! not yet.

use std::fs;
use std::path::Path;
use tidy::circles::{Crate, Module};
use tidy::ratchet::Ratchet;
use tidy::sizes::{FIELDS_MAX, FILE_LINES_MAX, casts, structs, wide_lines};
use tidy::{crates, files, product_files, root};

/// Fails if crates have more of what `measure` counts than the ratchet allows.
fn hold(measure: &str, found: &[(String, String)]) {
    let ratchet =
        Ratchet::parse(&fs::read_to_string(root().join("crates/tidy/ratchet.txt")).unwrap()).unwrap();
    if let Err(over) = ratchet.check(measure, found) {
        panic!("{over}");
    }
}

/// What `count` finds in the product's files of all crates: pairs of a crate and a place in it.
fn in_products(count: impl Fn(&str) -> Vec<String>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (krate, dir) in crates() {
        for path in product_files(&dir) {
            let text = fs::read_to_string(dir.join("src").join(&path)).unwrap();
            let places = count(&text).into_iter();
            found.extend(
                places
                    .map(|place| (krate.clone(), format!("crates/{krate}/src/{}: {place}", path.display()))),
            );
        }
    }
    found
}

/// What `count` finds in all files of all crates, tests and examples included.
fn in_all_files(count: impl Fn(&str) -> Vec<String>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (krate, dir) in crates() {
        for path in files(&dir, &[".rs"]) {
            let places = count(&fs::read_to_string(&path).unwrap()).into_iter();
            let name = path.strip_prefix(&dir).unwrap().display().to_string();
            found.extend(places.map(|place| (krate.clone(), format!("crates/{krate}/{name}: {place}"))));
        }
    }
    found
}

fn lines(numbers: Vec<usize>) -> Vec<String> {
    numbers.into_iter().map(|number| format!("line {number}")).collect()
}

#[test]
fn lines_are_narrow() {
    hold("wide-lines", &in_all_files(|text| lines(wide_lines(text))));
}

#[test]
fn files_are_short() {
    let long = |text: &str| match text.lines().count() {
        count if count > FILE_LINES_MAX => vec![format!("{count} lines")],
        _ => Vec::new(),
    };
    hold("long-files", &in_all_files(long));
}

#[test]
fn structs_have_few_fields() {
    let large = |text: &str| -> Vec<String> {
        let large = structs(text).into_iter().filter(|(_, fields)| *fields > FIELDS_MAX);
        large.map(|(name, fields)| format!("{name} has {fields} fields")).collect()
    };
    hold("large-structs", &in_products(large));
}

#[test]
fn casts_become_fewer() {
    hold("casts", &in_products(|text| lines(casts(text))));
}

#[test]
fn modules_do_not_need_each_other_in_circles() {
    let mut found = Vec::new();
    for (krate, dir) in crates() {
        let texts: Vec<(Module, String)> = product_files(&dir)
            .into_iter()
            .filter_map(|path| {
                Some((module_of(&path)?, fs::read_to_string(dir.join("src").join(&path)).unwrap()))
            })
            .collect();
        let sources = texts.iter().map(|(module, text)| (module.clone(), text.as_str()));
        let modules = Crate::new(sources);
        let shown = |module: &Module| format!("{krate}::{}", module.join("::"));
        found.extend(modules.in_circles().iter().map(|module| {
            let around: Vec<String> = modules.around(module).iter().map(shown).collect();
            (krate.clone(), format!("{} needs and is needed by {}", shown(module), around.join(", ")))
        }));
    }
    hold("modules-in-circles", &found);
}

/// The module that a file below `src` is; none for binaries, which are crates of their own.
fn module_of(path: &Path) -> Option<Module> {
    let mut names: Module =
        path.with_extension("").iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names[0] == "bin" || names == ["main"] && path.with_file_name("lib.rs").exists() {
        return None;
    }
    if names == ["lib"] || names == ["main"] || names.last().is_some_and(|name| name == "mod") {
        names.pop();
    }
    Some(names)
}
