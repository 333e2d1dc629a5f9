//! `reliability` on the command line.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::replay_common::{elastripe, refused};
use serde_json::Value;

#[track_caller]
fn said(arguments: &[&str]) -> String {
    let output = elastripe(&[&["reliability"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
    text
}

#[track_caller]
fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&said(&[&["--json"], arguments].concat())).unwrap()
}

#[track_caller]
fn float(value: &Value, pointer: &str) -> f64 {
    value.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number {pointer}: {value:#}"))
}

/// W-44 to W-47 with both readings of A-21: mu as printed, of 100 MB/s and of the 100 Mb/s printed beside it.
#[test]
fn the_papers_table_comes_out_in_both_readings() {
    let json = json(&["--alpha", "0.37,0.5,0.77", "--trials", "0"]);
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 4 * 3);
    let row = |geometry: &str, alpha: f64, repair: &str| {
        let mut found = rows
            .iter()
            .filter(|row| row["geometry"] == geometry && row["alpha"] == alpha && row["repair"] == repair);
        found.next().unwrap().clone()
    };
    // By hand from the formulas; the second figures for 7,889.4 and 986.175 repairs a year.
    for (geometry, alpha, repair, years, gain) in [
        ("7+1", 1.0, "as printed", 2858.214, 1.0),
        ("7+1", 1.0, "400 GB at 100 MB/s", 2255.186, 1.0),
        ("7+1", 1.0, "400 GB at 100 Mb/s", 282.836, 1.0),
        ("7+1", 0.37, "as printed", 20_873.0, 7.303),
        ("7+1", 0.5, "as printed", 11_430.7, 3.999),
        ("7+1", 0.77, "as printed", 4_820.0, 1.686),
        ("6+2", 1.0, "as printed", 19_054_287.45, 1.0),
        ("6+2", 1.0, "400 GB at 100 Mb/s", 185_904.5, 1.0),
        ("6+2", 0.37, "as printed", 3.761e8, 19.74),
        ("6+2", 0.5, "as printed", 1.524e8, 7.999),
        ("6+2", 0.77, "as printed", 4.173e7, 2.190),
    ] {
        let found = row(geometry, alpha, repair);
        for (pointer, wanted) in
            [("/mttdl_years_closed_form", years), ("/chain/mttdl_years", years), ("/gain", gain)]
        {
            let value = float(&found, pointer);
            assert!((value / wanted - 1.0).abs() < 3e-4, "{geometry} {alpha} {repair} {pointer}: {value}");
        }
    }
    assert_eq!(json["paper"]["verdict"], "inside");
    let text = said(&["--alpha", "0.37,0.5,0.77", "--trials", "0"]);
    for word in ["as printed", "400 GB at 100 Mb/s", "2858", "20873", "19.74", "2 to 20 times", ": inside"] {
        assert!(text.contains(word), "no {word}: {text}");
    }
    // Its repair rates are of its devices: others take as long as their size does.
    let larger = self::json(&["--alpha", "0.5", "--capacity", "4TB", "--geometry", "7+1", "--trials", "0"]);
    assert_eq!(larger["rows"].as_array().unwrap().len(), 2, "{larger:#}");
    assert_eq!((&larger["rows"][0]["repair"], &larger["paper"]), (&"100.0 MB/s".into(), &Value::Null));
    // 788.94 repairs a year.
    let years = float(&larger["rows"][0], "/mttdl_years_closed_form");
    assert!((years / ((788.94 + 15.0 * 0.25) / (8.0 * 7.0 * 0.0625)) - 1.0).abs() < 1e-3, "{years}");
    let all = ["--alpha", "0.37,0.5,0.77", "--capacity", "4TB", "--trials", "0"];
    assert!(!said(&all).contains("paper"));
    // Other parameters are not judged by the paper.
    assert!(!said(&["--alpha", "0.37,0.5,0.77", "--afr", "1%", "--trials", "0"]).contains("paper"));
}

#[test]
fn one_loss_in_a_thousand_million_is_estimated_soon() {
    let json =
        json(&["--geometry", "6+2", "--failure-rate", "0.05/y", "--repair-time", "105min", "--within", "1y"]);
    let row = &json["rows"][0];
    let (exact, found) = (float(row, "/chain/loss_probability"), float(row, "/monte_carlo/loss_probability"));
    assert!((5e-10..2e-9).contains(&exact), "{exact:e}");
    assert!((found / exact - 1.0).abs() < 0.1, "{found:e} {exact:e}");
    let interval = ["0", "1"].map(|at| float(row, &format!("/monte_carlo/loss_probability_interval/{at}")));
    assert!(interval[0] <= exact && exact <= interval[1] && interval[1] < found * 1.1, "{interval:?}");
}

#[test]
fn everything_at_once_has_causes_and_magnitudes() {
    let all: Vec<&str> = "--geometry 6+2,7+1 --afr 2% --shape 1.2 --age 1y --capacity 4TB --rebuild-rate \
        200MB/s,1GB/s --replace-after 4h --repair-distribution fixed --repairs all-at-once \
        --latent-rate 0.1/y --scrub-every 14d --uber 1e-17 --after-failure 2 --shock-rate \
        0.01/y --shock-share 10% --log-devices 2 --log-failure-rate 0.03/y --log-repair-time \
        2h --uncommitted-share 50% --uncommitted-size 8GiB --erases-per-day 1 --endurance \
        3000 --wear-shape 4 --within 10y --trials 2000 --seed 9"
        .split_whitespace()
        .collect();
    let first = json(&all);
    let rows = first["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!(row["chain"], Value::Null, "devices age");
        let loss = float(row, "/monte_carlo/loss_probability");
        assert!(loss > 0.0 && loss < 1.0, "{row}");
        for cause in ["devices", "sectors", "uncommitted"] {
            assert!(float(row, &format!("/monte_carlo/by_cause/{cause}")) > 0.0, "{cause}: {row}");
        }
        assert!(float(row, "/monte_carlo/nomdl_bytes_per_tb") > 0.0, "{row}");
    }
    let without_time = |mut value: Value| {
        value["provenance"] = Value::Null;
        for row in value["rows"].as_array_mut().unwrap() {
            row["monte_carlo"]["seconds"] = Value::Null;
        }
        value
    };
    assert_eq!(without_time(first), without_time(json(&all)), "the same seed");
    let text = said(&all);
    for word in ["n/a", "uncommitted", "sectors", "worn after", "lost per TB"] {
        assert!(text.contains(word), "no {word}: {text}");
    }
}

/// The more is erased, the sooner devices wear out; the same simulation twice is the same array twice.
#[test]
fn simulated_erases_and_rebuilds_are_taken_over() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let trace = path("t.csv");
    let made = [
        "trace",
        "generate",
        "--profile",
        "zipf:0.99",
        "--range",
        "16MiB",
        "--requests",
        "20000",
        "--seed",
        "1",
    ];
    assert!(elastripe(&[&made[..], &[&trace]].concat()).status.success());
    let mut files = Vec::new();
    for scheme in ["raid", "eplog"] {
        let mut run = vec![
            "simulate",
            "--trace",
            &trace,
            "--ssd",
            "was-ssd",
            "--ssd-size",
            "16MiB",
            "--prefill",
            "--fill",
        ];
        run.extend(["--scheme", scheme, "--rebuild", "1", "--json"]);
        let output = elastripe(&run);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        files.push(path(&format!("{scheme}.json")));
        std::fs::write(files.last().unwrap(), output.stdout).unwrap();
    }
    let both = files.join(",");
    let plain = json(&["--simulation", &both, "--geometry", "6+2", "--trials", "0"]);
    let (raid, eplog) = (&plain["rows"][0], &plain["rows"][1]);
    assert_eq!(float(raid, "/alpha"), 1.0);
    let alpha = float(eplog, "/alpha");
    assert!(alpha > 0.0 && alpha < 1.0, "EPLOG erases less: {alpha}");
    assert!((float(eplog, "/parameters/failures_per_year") / 0.25 / alpha - 1.0).abs() < 1e-9);
    assert!(raid["repair"].as_str().unwrap().starts_with("simulated "), "{raid}");
    let worn =
        ["--simulation", &both, "--geometry", "6+2", "--endurance", "3000", "--written-per-day", "1600GB"];
    let worn = json(&[&worn[..], &["--afr", "1%", "--trials", "2000"]].concat());
    let of = |row: usize| float(&worn["rows"][row], "/monte_carlo/loss_probability");
    assert!(of(0) > of(1), "{} {}", of(0), of(1));
    // A table of several runs is no result of one, and neither is a trace.
    refused(&["reliability", "--simulation", &trace], "found no JSON");
    std::fs::write(path("x.json"), "{}").unwrap();
    refused(&["reliability", "--simulation", &path("x.json")], "found no number /config/ssd/config/blocks");
    refused(&["reliability", "--simulation", &path("none.json")], "none.json");
}

/// SSDs twice as large are erased half as often per block by the same writes, in a simulation and in what is
/// asked for; and what one of eight is erased says nothing of one of five.
#[test]
fn erases_of_a_block_are_of_the_devices_asked_for() {
    let scratch = tempfile::tempdir().unwrap();
    let simulated = |name: &str, size: u64| {
        let device = serde_json::json!({ "role": "main", "erases": 5000 });
        let ssd =
            serde_json::json!({ "blocks": 1000 * size, "logical_pages": 50_000 * size, "page_bytes": 4096 });
        let result = serde_json::json!({
            "config": { "ssd": { "config": ssd }, "array": { "chunk_bytes": 4096 } },
            "devices": vec![device; 8], "user_chunks_written": 1_000_000, "virtual_seconds": 864.0,
        });
        let path = scratch.path().join(name);
        std::fs::write(&path, result.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let files = [simulated("one.json", 1), simulated("two.json", 2)].join(",");
    let run = |more: &[&str]| {
        json(&[&["--simulation", &files, "--geometry", "6+2", "--trials", "0"], more].concat())
    };
    let rows = run(&[]);
    assert!((float(&rows, "/rows/1/alpha") - 1.0).abs() < 1e-9, "{rows:#}");
    // 5 erases in a hundredth of a day, of blocks of the 204.8 MB simulated; of those of 400 GB fewer.
    let per_day = |more: &[&str]| {
        float(&run(&[&["--endurance", "3000"], more].concat()), "/rows/0/erases_per_block_and_day")
    };
    assert!((per_day(&["--capacity", "204800000B"]) / 500.0 - 1.0).abs() < 1e-9);
    assert!((per_day(&[]) / (500.0 * 2.048e8 / 4e11) - 1.0).abs() < 1e-9);
    // 4.096 GB were written.
    let written = ["--capacity", "204800000B", "--written-per-day", "8192000000B"];
    assert!((per_day(&written) / 10.0 - 1.0).abs() < 1e-9);
    let other = ["reliability", "--simulation", &files, "--geometry", "4+1"];
    refused(&other, "found 8 SSDs in one, expected the 5 of 4+1");
}

#[test]
fn nonsense_is_refused_by_name() {
    for (arguments, what) in [
        (&["--failure-rate", "0/y"][..], "failure rate: found 0"),
        (&["--failure-rate", "nan/y"], "nan/y"),
        (&["--failure-rate", "0.25"], "expected a rate"),
        (&["--failure-rate", "1/y", "--mttf", "1y"], "cannot be used with"),
        (&["--mttf", "0h"], "failure rate"),
        (&["--afr", "100%"], "failure rate"),
        (&["--geometry", "8"], "expected data and parity devices"),
        (&["--geometry", "0+2"], "data devices: found 0"),
        (&["--geometry", "6+17"], "parity: found 17"),
        (&["--geometry", "999999999999+1"], "devices: found"),
        (&["--repair-rate", "0/y"], "repair rate"),
        (&["--repair-time", "0h"], "repair rate"),
        (&["--rebuild-rate", "0MB/s"], "expected a rate"),
        (&["--rebuild-rate", "1MB/s", "--repair-time", "1h"], "cannot be used with"),
        (&["--capacity", "0B"], "found 0"),
        (&["--shape", "0"], "shape of the lifetime: found 0"),
        (&["--shape", "1e300"], "shape of the lifetime"),
        (&["--scrub-every", "7"], "expected a time"),
        (&["--latent-rate", "1/y", "--scrub-every", "0d"], "scrub interval: found 0"),
        (&["--uber", "inf"], "expected a number"),
        (&["--alpha", "0"], "--alpha: found 0"),
        (&["--shock-rate", "1/y"], "--shock-share"),
        (&["--log-failure-rate", "1/y"], "--log-devices"),
        (&["--endurance", "3000"], "--erases-per-day or --simulation"),
        (&["--endurance", "3000", "--erases-per-day", "0"], "years until the endurance is used"),
        (&["--within", "0y"], "years: found 0"),
        (&["--trials", "1"], "trials: found 1"),
        (&["--confidence", "100%"], "confidence: found 1"),
    ] {
        refused(&[&["reliability"], arguments].concat(), what);
    }
}
