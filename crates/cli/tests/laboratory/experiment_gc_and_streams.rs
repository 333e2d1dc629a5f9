//! `scripts/experiments/device-gc.sh` and `parity-streams.sh`, shortened: they run to their end, print every
//! row, and claim nothing about the papers, which ran longer.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::{Command, Output};

fn run(script: &str, arguments: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/experiments").join(script);
    Command::new(script).args(arguments).env("ELASTRIPE", env!("CARGO_BIN_EXE_elastripe")).output().unwrap()
}

#[track_caller]
fn table(script: &str, arguments: &[&str], folder: &Path) -> String {
    let output = run(script, &[arguments, &["--seed", "7", "--out", folder.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    for word in ["as the paper", "inside", "outside"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    text
}

#[test]
fn device_gc_in_short() {
    let folder = tempfile::tempdir().unwrap();
    let text = table("device-gc.sh", &["--requests", "300", "--trace", "mds"], folder.path());
    assert!(text.starts_with("synthetic stand-ins, seed 7, 300 requests; elastripe "), "{text}");
    for row in ["raid", "parity-log", "eplog", "never", "end", "10000", "1000"] {
        assert!(text.lines().any(|line| line.starts_with(&format!("  {row} "))), "{row}: {text}");
    }
    // No commit can be due: the writes of the fill do not count.
    for every in ["10000", "1000"] {
        let line = text.lines().find(|line| line.starts_with(&format!("  every {every}: "))).unwrap();
        assert_eq!(line, format!("  every {every}: 0 chunks more, 0 distinct stripes x 2 = 0"));
    }
    assert!(folder.path().join("commits.csv").is_file() && folder.path().join("schemes.csv").is_file());
    let again = table("device-gc.sh", &["--requests", "300", "--trace", "mds"], folder.path());
    assert_eq!(again, text, "no cell is run twice, and all say the same");
}

#[test]
fn parity_streams_in_short() {
    let folder = tempfile::tempdir().unwrap();
    let text = table("parity-streams.sh", &["--short", "yes"], folder.path());
    assert!(text.starts_with("synthetic workloads, seed 7, short; elastripe "), "{text}");
    for words in [
        "figure 1, writes per disk",
        "RAID-4, data disks:",
        "figures 4 to 6",
        "figure 7",
        "one ps-vnand",
        "1,024 blocks",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // Figures 4 to 6, figure 7, the cap chosen online, classes, one SSD.
    assert_eq!(text.lines().filter(|line| line.starts_with("   50 % |")).count(), 5, "{text}");
    for plot in ["engine-lifespan.svg", "engine-throughput.svg", "ssd-lifespan.svg", "dynamic-lifespan.svg"] {
        assert!(folder.path().join(plot).is_file(), "{plot}");
    }
}

#[test]
fn a_wrong_option_makes_nothing() {
    for script in ["device-gc.sh", "parity-streams.sh"] {
        for wrong in [["--length", "3"], ["--short", "no"], ["--trace", "web2"]] {
            let output = run(script, &wrong);
            assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{script} {wrong:?}");
        }
    }
}
