//! The harness from outside finds out each of its own lies, so none of its checks is blind.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use ordeal::round::Part;
use ordeal::{Binary, Canary, Options, run};
use std::path::Path;
use std::time::Duration;

fn options(dir: &Path, canary: Canary) -> Options {
    // A request that is never sent is waited for; nothing else in these rounds takes nearly as long.
    let patience = Duration::from_secs(if canary == Canary::LostRequest { 3 } else { 60 });
    Options {
        binary: Binary::probe(Path::new(env!("CARGO_BIN_EXE_elastripe"))).unwrap(),
        dir: dir.to_owned(),
        scheme: None,
        patience,
        canary: Some(canary),
        without: vec![Part::Discard, Part::Idle],
    }
}

#[test]
fn every_lie_of_the_harness_is_found_out() {
    let dir = tempfile::tempdir().unwrap();
    for (name, canary) in Canary::ALL {
        let options = options(dir.path(), canary);
        // Whether a lie matters in a round depends on what is drawn; one of a few must find it out.
        let mut found = Vec::new();
        let caught = (1..=8).find(|&seed| {
            let check = run(&options, seed).verdict.map(|verdict| verdict.check);
            found.push(check);
            check.is_some_and(|check| canary.check().contains(&check))
        });
        assert!(caught.is_some(), "{name}: expected {:?}, found {found:?}", canary.check());
    }
}
