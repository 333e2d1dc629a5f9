//! `scripts/experiments/real-traces.sh`: every row is there, says what the replays counted, and its figures
//! follow from each other; traces that cause no garbage collection are named, not shown. And `glru.awk`.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Output};

const ROWS: [&str; 21] = [
    "elastic",
    "elastic-full",
    "elastic-unit",
    "elastic-own",
    "was-2",
    "sepbit",
    "midas",
    "midas-4",
    "elastic-cb",
    "elastic-own-cb",
    "was-2-cb",
    "sepbit-cb",
    "midas-cb",
    "midas-4-cb",
    "sepbit-root",
    "midas-root",
    "midas-4-root",
    "elastic-unit-age",
    "elastic-unit-windowed",
    "elastic-unit-choices",
    "sepbit-windowed",
];

fn run(arguments: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/experiments/real-traces.sh");
    Command::new(script).args(arguments).env("ELASTRIPE", env!("CARGO_BIN_EXE_elastripe")).output().unwrap()
}

/// A trace of Zipf writes to so many MiB.
fn zipf(folder: &Path, name: &str, mib: u32, requests: u32, seed: u32) {
    let output = Command::new(env!("CARGO_BIN_EXE_elastripe"))
        .args(["trace", "generate", "--profile", "zipf:0.99", "--range", &format!("{mib}MiB")])
        .args(["--requests", &requests.to_string(), "--seed", &seed.to_string()])
        .arg(folder.join(format!("{name}.csv.zst")))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// A line of results: what was counted under trace, geometry and row.
struct Line<'a> {
    name: [&'a str; 3],
    user: u64,
    absorbed: u64,
    rewritten: u64,
    units: u64,
    data: u64,
    parity: u64,
    full: u64,
    short: u64,
}

fn lines(csv: &str) -> Vec<Line<'_>> {
    let parse = |line| {
        let fields: Vec<&str> = str::split(line, ',').collect();
        let numbers: Vec<u64> = fields[3..].iter().map(|field| field.parse().unwrap()).collect();
        let [user, absorbed, rewritten, units, data, parity, full, short] = numbers[..] else {
            panic!("{line}");
        };
        let name = [fields[0], fields[1], fields[2]];
        Line { name, user, absorbed, rewritten, units, data, parity, full, short }
    };
    csv.lines().skip(1).map(parse).collect()
}

/// What the table shows of each row: its words.
fn shown(table: &str) -> HashMap<[&str; 3], Vec<&str>> {
    let words = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    words.filter(|words| words.len() > 12).map(|words| ([words[0], words[1], words[2]], words)).collect()
}

/// The counts of each line hold together, and the table says what follows from them.
fn check(csv: &str, table: &str) {
    let (lines, shown) = (lines(csv), shown(table));
    let rewritten: HashMap<_, _> = lines.iter().map(|line| (line.name, line.rewritten)).collect();
    for line in &lines {
        let [trace, geometry, row] = line.name;
        let (k, m) = geometry.split_once('+').unwrap();
        let (k, m): (u64, u64) = (k.parse().unwrap(), m.parse().unwrap());
        assert_eq!(line.data, line.user - line.absorbed + line.rewritten, "{row}: W-27");
        assert_eq!(line.parity, m * (line.full + line.short), "{row}: W-21");
        assert!(line.data <= k * (line.full + line.short), "{row}");
        assert!(line.rewritten < line.units * 64 * k || line.units == 0, "{row}: each unit gains a row");

        let words = &shown[&line.name];
        let counts = [line.user, line.absorbed, line.rewritten, line.units].map(|count| count.to_string());
        assert_eq!(words[3..7], counts, "{words:?}");
        let per_user = |chunks: u64| format!("{:.3}", chunks as f64 / line.user as f64);
        assert_eq!(words[9..11], [per_user(line.data), per_user(line.data + line.parity)], "{words:?}");
        let less = |base: &'static str| match rewritten[&[trace, geometry, base]] {
            0 => "-".to_owned(),
            base => format!("{:.1}%", 100.0 * (1.0 - line.rewritten as f64 / base as f64)),
        };
        let cost_benefit = row.ends_with("-cb");
        let base = if cost_benefit || row == "elastic" { None } else { Some("elastic-full") };
        assert_eq!(words[11], less(if cost_benefit { "elastic-cb" } else { "elastic" }), "{words:?}");
        assert_eq!(words[13], base.map_or("-".to_owned(), less), "{words:?}");
    }
}

#[test]
fn one_command_prints_the_table_and_keeps_what_it_is_made_of() {
    let folder = tempfile::tempdir().unwrap();
    let (real, out) = (folder.path().join("real"), folder.path().join("out"));
    std::fs::create_dir(&real).unwrap();
    zipf(&real, "skewed_precond", 112, 9000, 1);
    zipf(&real, "skewed_exec", 112, 9000, 2);
    zipf(&real, "short", 112, 3000, 3);
    zipf(&real, "tiny", 8, 9000, 4);
    let output = run(&[real.to_str().unwrap(), "--seed", "7", "--out", out.to_str().unwrap()]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(std::fs::read_to_string(out.join("table.txt")).unwrap(), table);
    let (shown, left_out) = table.split_once("left out:\n").unwrap();
    let csv = std::fs::read_to_string(out.join("real.csv")).unwrap();
    let lines = lines(&csv);
    assert!(lines.iter().map(|line| line.name).eq(ROWS.map(|row| ["skewed", "6+2", row])), "{csv}");
    assert!(lines.iter().all(|line| line.user == 18_000 && line.units >= 16 && line.rewritten > 0), "{csv}");
    check(&csv, shown);
    let left_out: Vec<&str> = left_out.lines().collect();
    assert_eq!(
        left_out,
        [
            "short: 0 units collected, of 97",
            "tiny: 8 MiB are 7 units of 64 rows; collection wants 88 of them to work"
        ]
    );
}

#[test]
fn a_wrong_option_makes_nothing() {
    let here = env!("CARGO_MANIFEST_DIR");
    for (arguments, message) in [
        (vec![], "usage: "),
        (vec!["/nowhere"], "real-traces.sh: /nowhere: no folder"),
        (vec![here, "--length", "3"], "usage: "),
    ] {
        let output = run(&arguments);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        assert!(String::from_utf8_lossy(&output.stderr).starts_with(message));
    }
}

/// `scripts/experiments/glru.awk`: of uniform writes it calls hot what its formula says; what is written
/// twice in a row it sees.
#[test]
fn what_glru_sees_of_a_trace_is_counted() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/experiments/glru.awk");
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.csv");
    let percents = || -> Vec<f64> {
        let output = Command::new("awk").arg("-f").arg(&script).arg(&trace).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        let before = |word: &&[&str]| word[1].starts_with('%');
        words.windows(2).filter(before).filter_map(|word| word[0].parse().ok()).collect()
    };
    let path = trace.to_str().unwrap();
    let options = ["trace", "generate", "--profile", "uniform", "--range", "256MiB", "--requests", "100000"];
    let output = Command::new(env!("CARGO_BIN_EXE_elastripe"))
        .args(options)
        .args(["--seed", "3", path])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let seen = percents();
    let [hot, chance] = seen[..2] else { panic!("{seen:?}") };
    // 1,024 of 65,536 chunks, and what 100,000 draws are uneven by.
    assert!((1.4..1.8).contains(&hot) && (chance - 2.6).abs() < 0.2, "{seen:?}");

    std::fs::write(
        &trace,
        "ts_us,dev,op,offset,len\n0,0,W,4096,4096\n1,0,W,4096,4096\n2,0,W,8192,8192\n3,0,R,0,4096\n",
    )
    .unwrap();
    // The second write is hot, the third continues it.
    let seen = percents();
    assert_eq!((seen[0], seen.last()), (75.0, Some(&50.0)), "{seen:?}");
}
