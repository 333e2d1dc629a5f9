//! `scripts/experiments/ssd-writes.sh`, shortened: every row is there and says what the replays counted, and
//! what eplog and parity-log write to the SSDs is the same (H-04).
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::{Command, Output};

const ROWS: [&str; 7] = ["fin,4+1", "fin,6+1", "fin,4+2", "fin,6+2", "web,6+2", "usr,6+2", "mds,6+2"];

fn run(arguments: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/experiments/ssd-writes.sh");
    Command::new(script).args(arguments).env("ELASTRIPE", env!("CARGO_BIN_EXE_elastripe")).output().unwrap()
}

#[test]
fn one_command_prints_the_table_and_keeps_what_it_is_made_of() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["--requests", "500", "--seed", "7", "--out", folder.path().to_str().unwrap()]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.starts_with("synthetic stand-ins, seed 7, 500 requests; "), "{table}");
    assert_eq!(std::fs::read_to_string(folder.path().join("table.txt")).unwrap(), table);

    for (plot, words) in
        [("ssd-writes.svg", "(% of those of raid)"), ("log-writes.svg", "(% of those of parity-log)")]
    {
        let svg = std::fs::read_to_string(folder.path().join(plot)).unwrap();
        assert!(svg.contains(words) && svg.contains("eplog in the paper"), "{plot}: {svg}");
    }
    let csv = std::fs::read_to_string(folder.path().join("results.csv")).unwrap();
    let counted: Vec<&str> = csv.lines().skip(1).collect();
    assert_eq!(counted.len(), ROWS.len());
    for (row, line) in ROWS.iter().zip(counted) {
        let numbers: Vec<u64> =
            line.strip_prefix(row).unwrap().split(',').skip(1).map(|n| n.parse().unwrap()).collect();
        let [raid, raid_parity, raid_log, logging, none, logged, eplog, nothing, elastic] = numbers[..]
        else {
            panic!("{line}");
        };
        assert!(raid > 0 && raid_parity > 0 && elastic > 0, "{line}");
        assert_eq!((raid_log, none, nothing), (0, 0, 0), "{line}");
        assert_eq!((raid, logging), (eplog, eplog), "the same data: {line}");
        // A parity chunk, or a log chunk, for each stripe touched.
        assert_eq!(raid_parity, logged, "{line}");
        assert!(elastic <= logged, "{line}");
        let (trace, geometry) = row.split_once(',').unwrap();
        let shown = table.lines().find(|shown| shown.starts_with(&format!("{trace:5} {geometry} "))).unwrap();
        let less = 100.0 * (1.0 - eplog as f64 / (raid + raid_parity) as f64);
        assert!(shown.contains(&format!(" equal   {less:.1}% ")), "{shown}");
        assert!(shown.contains(" at full length ") && !shown.contains("within"), "{shown}");
        let fewer = 100.0 * (1.0 - elastic as f64 / logged as f64);
        assert!(
            shown.contains(&format!(" {logged:>11} {elastic:>11} {:>6} ", format!("{fewer:.1}%"))),
            "{shown}"
        );
    }
}

#[test]
fn a_wrong_option_makes_nothing() {
    let output = run(&["--length", "3"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("usage: "));
}
