//! `lab run --traces DIR`: the traces of a folder become cells, whose counts hold together; what cannot be
//! replayed is named; the report finds the traces in the cells, and tells two of one name apart.
#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const GRIDS: &str = "grid=real-traces,real-traces-ssd,real-traces-hotness";

fn elastripe(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_elastripe")).args(words).output().unwrap()
}

/// A trace of one-chunk writes to so many MiB.
fn trace(path: &Path, profile: &str, mib: u32, requests: u32, seed: u32) {
    let (range, requests, seed) = (format!("{mib}MiB"), requests.to_string(), seed.to_string());
    let words = ["trace", "generate", "--profile", profile, "--range", &range, "--requests", &requests];
    let output = elastripe(&[&words[..], &["--seed", &seed, "--force", path.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{output:?}");
}

fn run(traces: &Path, out: &Path, more: &[&str]) -> Output {
    let (traces, out) = (traces.to_str().unwrap(), out.to_str().unwrap());
    let words = ["lab", "run", "X-16", "--where", GRIDS, "--traces", traces, "--out", out];
    elastripe(&[&words[..], more].concat())
}

/// Figures of all cells: by grid and labels.
fn figures(out: &Path) -> BTreeMap<String, Value> {
    let cells = fs::read_dir(out.join("cells")).unwrap().map(|entry| {
        let cell: Value = serde_json::from_str(&fs::read_to_string(entry.unwrap().path()).unwrap()).unwrap();
        (cell["cell"].as_str().unwrap().to_owned(), cell["figures"].clone())
    });
    cells.collect()
}

#[test]
fn the_traces_of_a_folder_become_cells_and_rows_of_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let (traces, out) = (folder.path().join("traces"), folder.path().join("out"));
    fs::create_dir_all(traces.join("joined")).unwrap();
    trace(&traces.join("joined/1.csv.zst"), "zipf:0.99", 32, 8000, 1);
    trace(&traces.join("joined/2.csv"), "zipf:0.99", 32, 8000, 2);
    trace(&traces.join("tiny.csv.zst"), "uniform", 8, 9000, 4);
    fs::write(traces.join("README.md"), "Where they are from.\n").unwrap();
    let output = run(&traces, &out, &[]);
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && said.starts_with("26 cells run, 0 were there, 0 failed"),
        "{said}{errors}"
    );
    assert!(
        errors.contains("left out: tiny: found writes to ") && errors.contains("left out: README"),
        "{errors}"
    );

    let figures = figures(&out);
    let mut collected = 0;
    for (name, cell) in &figures {
        assert!(name.contains("trace=joined"), "{name}");
        let get = |figure: &str| cell[figure].as_f64().unwrap_or_else(|| panic!("{name}: {figure}: {cell}"));
        if name.starts_with("real-traces: ") {
            let kept = get("totals.user_chunks_written") - get("cache.absorbed_chunks");
            assert_eq!(get("totals.data_chunks_written"), kept + get("gc.chunks_rewritten"), "{name}");
            let stripes = get("stripes.full") + get("stripes.short");
            assert_eq!(get("totals.parity_chunks_written"), 2.0 * stripes, "{name}");
            assert!(get("gc.units_collected") >= 16.0, "{name}");
            collected += 1;
        } else if name.starts_with("real-traces-ssd: ") {
            let amplification = 1.0 + get("page_copies") / get("host_pages_written");
            assert!(
                (get("write_amplification") - amplification).abs() < 1e-9 && amplification > 1.0,
                "{name}"
            );
        } else {
            assert_eq!(get("chunk_writes"), 16_000.0, "{name}");
        }
    }
    assert_eq!((collected, figures.len()), (16, 26));

    // The report needs no folder of traces, and its tables have the columns of these.
    let report = |out: &Path| elastripe(&["lab", "report", "--out", out.to_str().unwrap()]);
    assert!(report(&out).status.success());
    let json: Value = serde_json::from_str(&fs::read_to_string(out.join("report.json")).unwrap()).unwrap();
    let grid = json["grids"].as_array().unwrap().iter().find(|grid| grid["name"] == "real-traces").unwrap();
    assert_eq!((grid["rows"].as_array().unwrap().len(), &grid["missing_cells"]), (16, &0.into()));
    let again = run(&traces, &out, &[]);
    assert!(String::from_utf8_lossy(&again.stdout).starts_with("0 cells run, 26 were there"));

    // Another trace of that name has cells of its own, and a report cannot mean both.
    trace(&traces.join("joined/2.csv"), "zipf:0.99", 32, 8000, 3);
    let other = run(&traces, &out, &["--where", "grid=real-traces-hotness"]);
    assert!(String::from_utf8_lossy(&other.stdout).starts_with("1 cells run, 0 were there"));
    let output = report(&out);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && errors.contains("two traces called joined"), "{errors}");
}

#[test]
fn a_folder_that_has_no_trace_is_refused_and_one_that_is_not_named_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    for (traces, said) in [
        (folder.path().join("nowhere"), "--traces "),
        (folder.path().to_path_buf(), "found no trace that can be replayed"),
    ] {
        let output = run(&traces, &out, &[]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && errors.contains(said), "{errors}");
        assert!(!out.exists());
    }
    let words = ["lab", "run", "X-19", "--scale", "0.01", "--out", out.to_str().unwrap()];
    assert!(elastripe(&words).status.success());
    assert!(elastripe(&["lab", "report", "--out", out.to_str().unwrap()]).status.success());
    let html = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(html.contains("<summary>real-traces (") && html.contains("those of a folder that somebody has"));
}

/// Of uniform writes WAS's table calls hot what its formula says.
#[test]
fn what_was_sees_of_uniform_writes_is_what_chance_finds() {
    let folder = tempfile::tempdir().unwrap();
    let (traces, out) = (folder.path().join("traces"), folder.path().join("out"));
    fs::create_dir(&traces).unwrap();
    trace(&traces.join("even.csv.zst"), "uniform", 256, 100_000, 3);
    let output = run(&traces, &out, &["--where", "grid=real-traces-hotness"]);
    assert!(output.status.success(), "{output:?}");
    let figures = figures(&out);
    let cell = &figures["real-traces-hotness: trace=even"];
    let (hot, chance) = (cell["hot_percent"].as_f64().unwrap(), cell["by_chance_percent"].as_f64().unwrap());
    // 1,024 of 65,536 chunks, and what 100,000 draws are uneven by.
    assert!((1.4..1.8).contains(&hot) && (chance - 2.6).abs() < 0.2, "{cell}");
}
