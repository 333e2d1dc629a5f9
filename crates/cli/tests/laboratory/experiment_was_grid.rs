//! `scripts/experiments/was-grid.sh`, shortened: every row is there, shows what the cells counted, and is not
//! run twice.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::{Command, Output};

const TRACES: [&str; 5] = ["was-synthetic", "fin", "online", "webmail", "online-webmail"];
const OPEN: [&str; 7] = ["elastic", "was-2", "was-3", "was-4", "was-2-str", "was-2-hca", "sepbit"];
const CLOSED: [&str; 4] = ["elastic", "was-2", "was-3", "was-4"];

fn run(arguments: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/experiments/was-grid.sh");
    Command::new(script).args(arguments).env("ELASTRIPE", env!("CARGO_BIN_EXE_elastripe")).output().unwrap()
}

#[test]
fn one_command_prints_the_grid_and_goes_on_where_it_was_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let once = || {
        let output = run(&["--requests", "300", "--seed", "7", "--out", out]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let table = once();
    assert!(table.starts_with("synthetic stand-ins, seed 7, 300 requests; "), "{table}");
    assert_eq!(std::fs::read_to_string(folder.path().join("table.txt")).unwrap(), table);
    let csv = std::fs::read_to_string(folder.path().join("results.csv")).unwrap();
    for trace in TRACES {
        for geometry in ["7+1", "6+2"] {
            let cells = OPEN.map(|row| (row, "open")).into_iter().chain(CLOSED.map(|row| (row, "closed")));
            for (row, mode) in cells {
                let name = format!("{trace},{geometry},{row},{mode},");
                let line =
                    csv.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or_else(|| panic!("{name}"));
                let numbers: Vec<f64> = line.split(',').map(|number| number.parse().unwrap()).collect();
                let (user, ssd, metadata, pages) = (numbers[0], numbers[1], numbers[3], numbers[4]);
                assert!(user > 0.0 && ssd > user / 2.0, "{line}");
                assert!((pages - ssd - metadata / 4096.0).abs() < 0.5, "{line}");
            }
        }
    }
    assert_eq!(csv.lines().count(), 1 + TRACES.len() * 2 * (OPEN.len() + CLOSED.len()));
    assert_eq!(table.lines().filter(|line| line.starts_with("mean response time, ")).count(), 8, "{table}");
    // A thousandth of the paper's length says nothing for or against it, and words say what is compared.
    assert!(table.contains("time (fig. 8) 60.9 to 79.3 less at full length"), "{table}");
    for word in ["inside", "outside", "as the paper", "H-4"] {
        assert!(!table.contains(word), "{word}: {table}");
    }
    // So few requests make no SSD erase anything: no plot of zeros.
    assert!(table.contains("no plot erases-7+1.svg: erases is 0 in every row"), "{table}");
    assert!(!folder.path().join("erases-7+1.svg").exists());
    assert!(folder.path().join("response-7+1.svg").exists());
    let written = || {
        let cells = std::fs::read_dir(folder.path().join("fin-7+1-was-300")).unwrap();
        let cells = cells.map(|cell| cell.unwrap().path()).filter(|path| path.extension().unwrap() == "json");
        let mut times: Vec<_> =
            cells.map(|path| (path.clone(), path.metadata().unwrap().modified().unwrap())).collect();
        times.sort();
        times
    };
    let before = written();
    assert_eq!(before.len(), 6, "two to four groups, in two ways");
    assert_eq!(once(), table);
    assert_eq!(written(), before, "no cell is run twice");
}

#[test]
fn a_wrong_option_makes_nothing() {
    let output = run(&["--length", "3"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("usage: "));
}
