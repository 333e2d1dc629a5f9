//! `docs/format.md` says what the code does: its byte tables are printed by the code.
//!
//! `UPDATE_GOLDEN=1 cargo test -p elastripe-format --test bytes document` writes the tables anew.

use std::fs;
use std::path::PathBuf;

const BEGIN: &str = "<!-- printed by format::layout_tables: begin -->\n";
const END: &str = "<!-- printed by format::layout_tables: end -->\n";

#[test]
fn the_tables_of_the_document_are_those_of_the_code() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/format.md");
    let document = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (before, rest) = document.split_once(BEGIN).expect("the document marks where the tables begin");
    let (tables, after) = rest.split_once(END).expect("the document marks where the tables end");
    let today = format::layout_tables();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{today}{END}{after}")).unwrap();
        return;
    }
    for (number, (found, expected)) in tables.lines().zip(today.lines()).enumerate() {
        assert_eq!(found, expected, "line {number} of the tables in docs/format.md");
    }
    assert_eq!(tables.len(), today.len(), "docs/format.md has more or fewer tables than the code");
}
