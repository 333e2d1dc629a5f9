//! The example that embeds an array does what it says.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../examples/embed.rs"]
#[allow(dead_code, reason = "its `main` is for those who run it")]
mod embed;

use node::open::look_at;

#[test]
fn an_embedded_array_keeps_what_is_written_and_stops_in_order() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(embed::run(directory.path()).unwrap(), "kept on any two of three files");
    let member = look_at(&directory.path().join("b")).unwrap();
    assert!(member.superblock().unwrap().clean);
}
