//! Every requirement id that is cited has a row in `docs/requirements.md`.

use std::collections::BTreeSet;
use std::fs;
use tidy::ids::{cited, declared, named_by_an_id};
use tidy::{files, root};

/// The citations without a row, as `file:line id`.
fn without_a_row(page: &str, sources: &[(String, String)]) -> Vec<String> {
    let rows: BTreeSet<String> = declared(page).into_iter().collect();
    let missing = |(name, text): &(String, String)| -> Vec<String> {
        let ids = cited(text).into_iter().filter(|(_, id)| !rows.contains(id));
        ids.map(|(line, id)| format!("{name}:{line} {id}")).collect()
    };
    sources.iter().flat_map(missing).collect()
}

fn page() -> String {
    fs::read_to_string(root().join("docs/requirements.md")).unwrap()
}

#[test]
fn every_cited_id_has_a_row() {
    // The checker's own tests make ids up.
    let own = root().join("crates/tidy");
    let sources: Vec<(String, String)> =
        files(&root(), &[".rs", ".md", ".toml", ".sh", ".awk", ".txt", "Makefile"])
            .into_iter()
            .filter(|path| !path.starts_with(&own))
            .map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap()))
            .collect();
    assert!(sources.iter().any(|(_, text)| !cited(text).is_empty()));
    let missing = without_a_row(&page(), &sources);
    assert!(missing.is_empty(), "no row in docs/requirements.md:\n{}", missing.join("\n"));
}

#[test]
fn tests_are_named_by_behaviour() {
    let mut named = Vec::new();
    for path in files(&root().join("crates"), &[".rs"]) {
        let names = named_by_an_id(&fs::read_to_string(&path).unwrap()).into_iter();
        named.extend(names.map(|(line, name)| format!("{}:{line} {name}", path.display())));
    }
    assert!(named.is_empty(), "ids belong into comments:\n{}", named.join("\n"));
}

#[test]
fn no_id_has_two_rows() {
    let ids = declared(&page());
    let unique: BTreeSet<&String> = ids.iter().collect();
    assert!(ids.len() > 100);
    assert_eq!(ids.len(), unique.len());
}

/// The planted mistake that the check must find: a row is taken away, a citation is added.
#[test]
fn an_id_without_a_row_is_found() {
    let page: String =
        page().lines().filter(|line| !line.starts_with("| M-10 ")).map(|line| format!("{line}\n")).collect();
    let sources = [("a.rs".to_owned(), "//! A layout (M-10,\n// M-11).\n// And W-99.".to_owned())];
    assert_eq!(without_a_row(&page, &sources), ["a.rs:1 M-10", "a.rs:3 W-99"]);
}
