//! Results say which program made them, where, when and by which command.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::Rig;
use serde_json::Value;
use std::fs;
use std::process::Command;

const TRACE: &str = "ts_us,dev,op,offset,len\n0,0,W,0,4096\n10,0,W,8192,4096\n20,0,R,0,4096\n";

fn rig() -> Rig {
    let rig = Rig::new();
    fs::write(rig.path("trace.csv"), TRACE).unwrap();
    rig
}

/// The commit that is checked out, if this is a checkout.
fn head() -> Option<String> {
    let run = |arguments: &[&str]| {
        let output =
            Command::new("git").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    };
    run(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    run(&["rev-parse", "HEAD"])
}

#[test]
fn the_version_has_the_commit() {
    let said = rig().run(&["--version"]).ok().out;
    match head() {
        Some(commit) => assert!(said.contains(&format!("(commit {}", &commit[..12])), "{said} {commit}"),
        None => assert!(said.contains("(commit unknown)"), "{said}"),
    }
}

/// Every command that prints results as JSON.
const RUNS: [&[&str]; 5] = [
    &["simulate", "--trace=trace.csv", "--ssd=was-ssd", "--json"],
    &["simulate", "--trace=trace.csv", "--ssd=was-ssd", "--compare=raid,eplog", "--json"],
    &["replay", "--trace=trace.csv", "--device=null", "--geometry=2+1", "--json"],
    &["bench", "--device=null", "--requests=10", "--workload=randread", "--volume-size=1MiB", "--json"],
    &["flash", "run", "--workload=uniform", "--logical-size=16MiB", "--seed=1", "--json"],
];

#[test]
fn json_says_where_it_comes_from() {
    let rig = rig();
    for run in RUNS {
        let json = rig.run(run).ok().json();
        let found = &json["provenance"];
        let text = |key: &str| found[key].as_str().unwrap_or_else(|| panic!("{key}: {found}")).to_owned();
        assert_eq!(text("command"), format!("elastripe {}", run.join(" ")));
        assert_eq!(text("build").len(), 16);
        assert!(text("date").ends_with(" UTC") && !text("host").is_empty(), "{found}");
        match head() {
            Some(commit) => assert!(text("commit").starts_with(&commit), "{found} {commit}"),
            None => assert_eq!(found["commit"], Value::Null),
        }
    }
}

#[test]
fn tables_say_it_in_a_line() {
    let rig = rig();
    for run in RUNS {
        let words: Vec<&str> = run.iter().copied().filter(|word| *word != "--json").collect();
        let said = rig.run(&words).ok().out;
        let line = said.lines().find(|line| line.contains(&format!(": elastripe {}", words.join(" "))));
        assert!(
            line.is_some_and(|line| line.contains("(commit") && line.contains(" UTC")),
            "{words:?}: {said}"
        );
    }
}

/// In pictures too, but for time and place: the same command gives the same bytes.
#[test]
fn pictures_say_which_command_drew_them() {
    let rig = rig();
    let run = ["simulate", "--trace=trace.csv", "--ssd=was-ssd", "--compare=raid,eplog"];
    for name in ["p.svg", "p.png"] {
        let plot = format!("--plot={name}");
        let words = [&run[..], &[&plot]].concat();
        rig.run(&words).ok();
        let bytes = fs::read(rig.path(name)).unwrap();
        let wanted = format!(": elastripe {}", words.join(" "));
        assert!(bytes.windows(wanted.len()).any(|found| found == wanted.as_bytes()), "{name}");
        rig.run(&words).ok();
        assert_eq!(fs::read(rig.path(name)).unwrap(), bytes, "{name}");
    }
}

/// Another build has other results: those of this one may not pass for them.
#[test]
fn stored_results_do_not_survive_another_build() {
    let rig = rig();
    let run =
        ["simulate", "--trace=trace.csv", "--ssd=was-ssd", "--compare=raid,eplog", "--out=out", "--json"];
    assert_eq!(rig.run(&run).ok().err.lines().count(), 2, "two cells are run");
    assert_eq!(rig.run(&run).ok().err, "", "none is run again");
    // The same program with one byte more is another build. Another process writes it: as long as a command
    // that some test starts has not closed what it got from here, a file that this one wrote cannot be run.
    let other = rig.path("other");
    let copy = ["-c", "cp \"$0\" \"$1\" && printf x >>\"$1\"", env!("CARGO_BIN_EXE_elastripe")];
    assert!(Command::new("sh").args(copy).arg(&other).status().unwrap().success());
    let output = Command::new(&other).args(run).current_dir(rig.dir.path()).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && errors.contains("2 cells of another build"), "{errors}");
    assert_eq!(errors.lines().count(), 3, "both are run again: {errors}");
    let lines = |name: &str| fs::read_to_string(rig.path(name)).unwrap().lines().count();
    assert_eq!((lines("out/results.csv"), lines("out/results.old.csv")), (3, 3));
}
