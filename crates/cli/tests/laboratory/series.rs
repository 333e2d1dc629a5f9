//! `--interval`: rows of a run that add up to its totals, as JSON and as a table that `plot` draws.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::replay_common::elastripe;
use serde_json::Value;
use std::path::Path;

/// Skewed writes to 16 MiB, and reads, a millisecond apart.
fn trace(folder: &Path) -> String {
    let path = folder.join("trace.csv");
    let mut text = String::from("ts_us,dev,op,offset,len\n");
    for index in 0..20_000_u64 {
        let place = (index * index * 7919 + index / 3) % 4096;
        let op = if index % 10 == 9 { "R" } else { "W" };
        text.push_str(&format!("{},0,{op},{},4096\n", index * 1000, place * place / 4096 * 4096));
    }
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[track_caller]
fn json(words: &[&str]) -> Value {
    let output = elastripe(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The sum of a figure over the rows.
fn sum(rows: &[Value], figure: &str) -> u64 {
    rows.iter().map(|row| row[figure].as_u64().unwrap_or_else(|| panic!("{figure}: {row}"))).sum()
}

const SMALL: [&str; 8] =
    ["--ssd", "was-ssd", "--ssd-size", "16MiB", "--prefill", "--fill", "--compact", "--gc-unit=4"];

#[test]
fn rows_of_a_simulation_add_up_to_its_totals() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path());
    for (scheme, commit) in [("elastic", None), ("eplog", Some("end"))] {
        let mut words =
            vec!["simulate", "--json", "--trace", &trace, "--scheme", scheme, "--interval", "3000"];
        words.extend(if scheme == "elastic" { &SMALL[..] } else { &SMALL[..7] });
        words.extend(commit.iter().flat_map(|when| ["--commit-every", when]));
        let run = json(&words);
        let rows = run["series"].as_array().unwrap();
        // A turn may end some requests at once, so rows may be longer, but not by more than the queue.
        assert!((6..=8).contains(&rows.len()), "{}", rows.len());
        assert!(
            rows[..rows.len() - 1]
                .iter()
                .all(|row| (3000..3032).contains(&row["requests"].as_u64().unwrap()))
        );
        for (figure, total) in [
            ("requests", &run["requests"]),
            ("user_chunks_written", &run["user_chunks_written"]),
            ("log_chunks_written", &run["log_chunks_written"]),
            ("metadata_bytes_written", &run["metadata_bytes_written"]),
            ("absorbed_chunks", &run["absorbed_chunks"]),
            ("gc_chunks_rewritten", &run["gc_chunks_rewritten"]),
            ("gc_units_collected", &run["gc"]["units_collected"]),
            ("stripes_committed", &run["stripes_committed"]),
            ("ssd_pages_written", &run["ssd_pages_written"]),
            ("flash_pages_written", &run["flash_pages_written"]),
            ("page_copies", &run["page_copies"]),
            ("erases", &run["erases"]),
        ] {
            assert_eq!(sum(rows, figure), total.as_u64().unwrap(), "{scheme}: {figure}");
        }
        let to_ssds = sum(rows, "data_chunks_written") + sum(rows, "parity_chunks_written");
        assert_eq!(to_ssds, run["ssd_chunks_written"].as_u64().unwrap(), "{scheme}");
        // Each row has what it says of its own time.
        let row = &rows[1];
        let chunks =
            row["data_chunks_written"].as_f64().unwrap() + row["parity_chunks_written"].as_f64().unwrap();
        let amplification = chunks / row["user_chunks_written"].as_f64().unwrap();
        assert!((row["write_amplification"].as_f64().unwrap() - amplification).abs() < 1e-9, "{row}");
        assert!(sum(rows, "erases") > 0 && row["latency_us_p99"].as_f64() > Some(0.0), "{row}");
        let longest = rows.iter().filter_map(|row| row["latency_us_max"].as_f64()).fold(0.0, f64::max);
        assert_eq!(Some(longest), run["latency_us_max"].as_f64(), "{scheme}");
        let ends: Vec<u64> = rows.iter().map(|row| row["requests_at_end"].as_u64().unwrap()).collect();
        assert!(ends.is_sorted() && ends.last() == run["requests"].as_u64().as_ref(), "{ends:?}");
    }
}

#[test]
fn rows_of_a_replay_end_at_times_of_the_trace_and_can_be_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path());
    let csv = folder.path().join("series.csv");
    let common = [
        "replay",
        "--json",
        "--trace",
        &trace,
        "--device",
        "null",
        "--scheme",
        "was",
        "--fill",
        "--gc-unit",
        "4",
    ];
    let run = json(&[&common[..], &["--interval", "5s", "--series", csv.to_str().unwrap()]].concat());
    let rows = run["series"].as_array().unwrap();
    // 20 seconds; what is left after the last row is one more, even if it is only what waited in memory.
    assert_eq!(rows.len(), 4, "{rows:#?}");
    let ends: Vec<f64> = rows.iter().map(|row| row["seconds_at_end"].as_f64().unwrap()).collect();
    assert!(ends[..3].iter().zip([5.0, 10.0, 15.0]).all(|(end, due)| (end - due).abs() < 0.05), "{ends:?}");
    for (figure, total) in [
        ("user_chunks_written", "user_chunks_written"),
        ("user_chunks_read", "user_chunks_read"),
        ("data_chunks_written", "data_chunks_written"),
        ("parity_chunks_written", "parity_chunks_written"),
    ] {
        assert_eq!(sum(rows, figure), run["totals"][total].as_u64().unwrap(), "{figure}");
    }
    assert_eq!(sum(rows, "gc_chunks_rewritten"), run["gc"]["chunks_rewritten"].as_u64().unwrap());
    // Null devices have no flash inside, and nothing is known of it.
    assert!(rows.iter().all(|row| row["erases"].is_null() && row["free_chunks"].is_u64()));

    let text = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(text.lines().count(), 5, "{text}");
    let svg = folder.path().join("series.svg");
    let words = ["plot", csv.to_str().unwrap(), "--x", "seconds_at_end", "--y", "write_amplification"];
    let output = elastripe(&[&words[..], &["--out", svg.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{output:?}");
    assert!(std::fs::read_to_string(&svg).unwrap().contains("<svg"));

    // Without the option there are none, and a file without rows is none.
    assert!(json(&common)["series"].is_null());
    let output = elastripe(&[&common[..], &["--series", csv.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn rows_of_one_ssd_add_up_to_its_counted_part() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, csv) = (trace(folder.path()), folder.path().join("series.csv"));
    let small = ["flash", "run", "--json", "--seed=1", "--warmup=1", "--drive-writes=2"];
    let untimed = ["--logical-size=16MiB", "--pages-per-block=16"];
    let timed = ["--preset=was-ssd", "--logical-size=16MiB", "--queue-depth=4"];
    for (workload, interval, ssd, counts) in [
        ("zipf:0.99", "3000", &untimed[..], 3..=3),
        ("uniform", "4096", &timed[..], 2..=2),
        ("uniform", "500ms", &timed[..], 3..=1000),
        (trace.as_str(), "3000", &timed[..], 3..=4),
    ] {
        let words = [&small[..], ssd, &["--workload", workload]].concat();
        let run = json(&[&words[..], &["--interval", interval, "--series", csv.to_str().unwrap()]].concat());
        let rows = run["series"].as_array().unwrap();
        assert!(counts.contains(&rows.len()), "{workload} {interval}: {} rows", rows.len());
        for (figure, total) in [
            ("ssd_pages_written", "host_pages_written"),
            ("user_chunks_written", "host_pages_written"),
            ("user_chunks_read", "host_pages_read"),
            ("flash_pages_written", "flash_pages_written"),
            ("page_copies", "page_copies"),
            ("erases", "erases"),
        ] {
            assert_eq!(sum(rows, figure), run[total].as_u64().unwrap(), "{workload} {interval}: {figure}");
        }
        let first = &rows[0];
        let each =
            first["flash_pages_written"].as_f64().unwrap() / first["ssd_pages_written"].as_f64().unwrap();
        assert!((first["write_amplification"].as_f64().unwrap() - each).abs() < 1e-9, "{first}");
        assert_eq!(first["latency_us_mean"].is_null(), ssd.len() == untimed.len(), "{first}");
        assert!(first["data_chunks_written"].is_null() && first["free_chunks"].is_null(), "{first}");
        assert_eq!(std::fs::read_to_string(&csv).unwrap().lines().count(), rows.len() + 1);
        // Looking on changes nothing.
        let plain = json(&words);
        assert!(plain["series"].is_null());
        for figure in ["host_pages_written", "page_copies", "erases", "virtual_seconds", "latency_us"] {
            assert_eq!(plain[figure], run[figure], "{workload} {interval}: {figure}");
        }
    }
    for (words, said) in [
        (&["--interval=1s"][..], "no service times"),
        (&["--interval=9", "--placement=single"], "found with --placement"),
    ] {
        let output = elastripe(&[&small[..], &untimed, &["--workload=uniform"], words].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && errors.contains(said), "{words:?}: {errors}");
    }
}

#[test]
fn rows_of_several_runs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path());
    for (words, said) in [
        (vec!["--interval", "0"], "expected requests such as 10000"),
        (vec!["--interval", "9", "--compare", "raid,eplog"], "--interval: found beside --compare"),
        (vec!["--interval", "9", "--series", "/nowhere/series.csv"], "--series"),
    ] {
        let output = elastripe(&[&["simulate", "--trace", &trace, "--ssd", "was-ssd"], &words[..]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(said), "{words:?}: {errors}");
    }
}

#[test]
fn no_output_takes_the_place_of_what_the_run_reads_or_writes() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path());
    let before = std::fs::read(&trace).unwrap();
    let link = folder.path().join("link.csv");
    std::os::unix::fs::symlink(&trace, &link).unwrap();
    let link = link.to_str().unwrap();
    let members: Vec<String> =
        (0..4).map(|member| folder.path().join(format!("m{member}")).to_str().unwrap().to_owned()).collect();
    let mut create = vec!["create", "--scheme", "raid", "--parity", "1", "--file-size", "64MiB", "--data"];
    create.extend(members.iter().map(String::as_str));
    let made = elastripe(&create);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let table = folder.path().join("both.csv");
    let (member, table) = (members[1].as_str(), table.to_str().unwrap());
    let (replay, simulate) =
        (["replay", "--trace", &trace], ["simulate", "--trace", &trace, "--ssd", "was-ssd"]);
    let on_members = ["replay", "--trace", &trace, &members[0], member, &members[2], &members[3]];
    let json_link = format!("--json={link}");
    let flash = ["flash", "run", "--workload", &trace, "--seed", "1", "--logical-size", "32MiB"];
    for (run, output, what) in [
        (&replay[..], &["--device", "null", "--interval", "10", "--series", &trace][..], "--trace"),
        (&replay, &["--device", "null", "--interval", "10", "--series", link], "--trace"),
        (&replay, &["--device", "null", &json_link], "--trace"),
        (&simulate, &["--interval", "10", "--series", &trace], "--trace"),
        (&flash, &["--interval", "10", "--series", &trace], "--workload"),
        (&on_members, &["--interval", "10", "--series", member], "member"),
        (&on_members, &[&format!("--json={member}")], "member"),
        (
            &replay,
            &["--device", "null", &format!("--json={table}"), "--interval", "10", "--series", table],
            "--series",
        ),
    ] {
        let words = [run, output].concat();
        let ended = elastripe(&words);
        let error = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success(), "{words:?}");
        assert!(error.contains(what) && error.contains("expected another"), "{words:?}: {error}");
        assert!(std::fs::read(&trace).unwrap() == before, "{words:?}: the trace is gone");
    }
    let examined = elastripe(&["examine", member]);
    assert!(examined.status.success(), "{}", String::from_utf8_lossy(&examined.stderr));
}
