//! `lab`: the papers' experiments by one command. In short: everything runs, the report has every headline
//! and claims nothing, and it is the same whether a run was killed, or done in parts.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::replay_common::{elastripe, refused};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const SCALE: &str = "0.0001";
const FILES: [&str; 4] = ["report.html", "report.json", "headlines.csv", "cells.csv"];

fn lab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_elastripe")).arg("lab").args(arguments).output().unwrap()
}

#[track_caller]
fn done(arguments: &[&str]) -> String {
    let output = lab(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The cells' files, sorted.
fn cells(folder: &Path) -> Vec<PathBuf> {
    let mut cells: Vec<PathBuf> = fs::read_dir(folder.join("cells"))
        .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
        .unwrap_or_default();
    cells.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    cells.sort();
    cells
}

fn report(folder: &Path) -> [String; 4] {
    done(&["report", "--out", folder.to_str().unwrap()]);
    FILES.map(|file| fs::read_to_string(folder.join(file)).unwrap())
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Figures of all cells: by grid and labels.
fn figures(folder: &Path) -> BTreeMap<String, Value> {
    let cells = cells(folder).into_iter().map(|path| json(&path));
    cells.map(|cell| (cell["cell"].as_str().unwrap().to_owned(), cell["figures"].clone())).collect()
}

#[test]
fn all_experiments_run_in_short_and_every_headline_is_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let said = done(&["run", "all", "--scale", SCALE, "--out", out]);
    assert!(said.contains(" 0 were there, 0 failed"), "{said}");
    let [html, text, csv, _] = report(folder.path());
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["cells"], report["cells_declared"]);
    let headlines = report["headlines"].as_array().unwrap();
    let wanted: Vec<String> = (1..=62).map(|number| format!("H-{number:02}")).collect();
    let ids: Vec<&str> = headlines.iter().map(|headline| headline["id"].as_str().unwrap()).collect();
    assert_eq!(ids, wanted);
    for headline in headlines {
        // A short run is no evidence.
        let verdict = headline["verdict"].as_str().unwrap();
        let known = ["no verdict below full length", "not possible"];
        assert!(known.contains(&verdict), "{headline}");
    }
    for id in &wanted {
        assert!(html.contains(&format!("<tr id=\"{id}\">")) && csv.contains(&format!("\n{id},")), "{id}");
    }
    for number in 1..=25 {
        assert!(html.contains(&format!("<h2 id=\"X-{number:02}\">")), "{number}");
    }
    // One page that needs no other.
    for outside in ["src=", "href=\"http", "@import", "url(http", "<script", "<link"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.matches("<svg").count() > 15, "{}", html.matches("<svg").count());
    what_was_counted_holds_together(folder.path());
    // Nothing is run twice, and the report is a function of what is there.
    let again = done(&["run", "all", "--scale", SCALE, "--out", out]);
    assert!(again.starts_with("0 cells run, "), "{again}");
    assert_eq!(self::report(folder.path())[1], text);
}

/// Seeds may have different cells: each figure is over those that have its cell, and says which; a seed alone
/// that has not all of a grid judges nothing.
#[test]
fn figures_are_over_the_seeds_that_have_the_cell() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let run = |more: &[&str]| done(&[&["run", "X-05", "--scale", SCALE, "--out", out], more].concat());
    let grid = "grid=ssd-writes";
    run(&["--seed", "2", "--where", "trace=fin", "--where", grid]);
    let verdict = |report: &Value| headline(report, "H-01")["verdict"].as_str().unwrap().to_owned();
    let part: Value = serde_json::from_str(&report(folder.path())[1]).unwrap();
    assert_eq!(verdict(&part), "not run");
    run(&["--where", grid]);
    let [html, text, csv, _] = report(folder.path());
    let whole: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(verdict(&whole), "no verdict below full length");
    let readings = headline(&whole, "H-01")["findings"][0]["readings"].as_array().unwrap();
    for reading in readings {
        let seeds = if reading["cell"].as_str().unwrap().starts_with("fin") { vec![1, 2] } else { vec![1] };
        assert_eq!(reading["seeds"], serde_json::json!(seeds), "{reading}");
        assert_eq!(reading["values"].as_array().unwrap().len(), seeds.len());
        assert_eq!(reading["interval_95"].is_null(), seeds.len() == 1, "{reading}");
    }
    assert!(html.contains("(seed 1 alone)") && csv.contains("(seed 1 alone)"), "{csv}");
    assert!(html.contains("<td class=\"n\">1, 2</td>"), "no column of seeds");
    // What was replayed is known by its hash, and another seed is another load.
    let hash = |seed: u64| {
        let of = |cell: &Value| cell["seed"] == seed && cell["cell"].as_str().unwrap().contains("trace=fin");
        let cell = cells(folder.path()).iter().map(|path| json(path)).find(of).unwrap();
        cell["provenance"]["load_hash"].as_str().unwrap().to_owned()
    };
    assert_eq!(hash(1).len(), 16);
    assert_ne!(hash(1), hash(2));
}

fn headline<'a>(report: &'a Value, id: &str) -> &'a Value {
    report["headlines"].as_array().unwrap().iter().find(|headline| headline["id"] == id).unwrap()
}

/// Laws that hold whatever the length.
fn what_was_counted_holds_together(folder: &Path) {
    let figures = figures(folder);
    let number = |cell: &Value, name: &str| cell[name].as_f64().unwrap_or_else(|| panic!("{name}: {cell}"));
    let (mut ssd_writes, mut placements, mut ssds) = (0, 0, 0);
    parity_on_one_disk_is_what_is_counted_without_the_engine(&figures);
    for (name, cell) in &figures {
        let get = |figure: &str| number(cell, figure);
        if let Some(of_raid) = name.strip_suffix("scheme=eplog").filter(|_| name.starts_with("ssd-writes: "))
        {
            let other =
                |scheme: &str, figure: &str| number(&figures[&format!("{of_raid}scheme={scheme}")], figure);
            let (data, parity) = ("totals.data_chunks_written", "totals.parity_chunks_written");
            let log = "totals.log_chunks_written";
            assert_eq!(
                get(data) + get(parity),
                other("parity-log", data) + other("parity-log", parity),
                "{name}"
            );
            assert_eq!(get(data), other("raid", data), "{name}");
            // A parity chunk, or a log chunk, for each stripe touched.
            assert_eq!(other("raid", parity), other("parity-log", log), "{name}");
            assert!(get(log) > 0.0 && get(log) <= other("parity-log", log), "{name}");
            ssd_writes += 1;
        }
        if name.starts_with("placement: ") {
            let kept = get("totals.user_chunks_written") - get("cache.absorbed_chunks");
            assert_eq!(get("totals.data_chunks_written"), kept + get("gc.chunks_rewritten"), "{name}");
            let parities = if name.contains("6+2") { 2.0 } else { 1.0 };
            let stripes = get("stripes.full") + get("stripes.short");
            assert_eq!(get("totals.parity_chunks_written"), parities * stripes, "{name}");
            placements += 1;
        }
        if name.starts_with("was-ssds: ") {
            let written = get("ssd_chunks_written") + get("metadata_bytes_written") / 4096.0;
            assert_eq!(get("ssd_pages_written"), written, "{name}");
            ssds += 1;
        }
    }
    assert_eq!((ssd_writes, placements, ssds), (7, 264, 132));
}

/// the engine with parity fixed on the last SSD beside the same writes counted by hand.
fn parity_on_one_disk_is_what_is_counted_without_the_engine(figures: &BTreeMap<String, Value>) {
    let (engine, counted) = (&figures["parity-disk: trace=50"], &figures["fixed-parity: trace=50"]);
    assert_eq!(engine["ssd6_parity_pages"], counted["parity_pages"]);
    for ssd in 0..6 {
        assert_eq!(engine[format!("ssd{ssd}_parity_pages")], 0.0, "{ssd}");
        // Metadata is beside it.
        let (written, data) = (&engine[format!("ssd{ssd}_pages")], &counted[format!("data{ssd}_pages")]);
        assert!(written.as_f64() >= data.as_f64(), "{ssd}: {written} {data}");
    }
}

/// Experiments that need some seconds.
const SOME: [&str; 3] = ["X-05", "X-19", "X-22"];

#[test]
fn a_run_that_was_killed_goes_on_and_comes_to_the_same_report() {
    let (whole, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let line = |out: &Path| {
        let out = out.to_str().unwrap().to_owned();
        let words = ["run", "--scale", "0.0002", "--seed", "1..2", "--jobs", "1", "--out"];
        let words = words.iter().chain(&SOME).map(|word| (*word).to_owned());
        // The folder stands behind its option.
        let mut words: Vec<String> = words.collect();
        words.insert(8, out);
        words
    };
    let words = line(killed.path());
    let mut child = Command::new(env!("CARGO_BIN_EXE_elastripe"))
        .arg("lab")
        .args(&words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while cells(killed.path()).len() < 5 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let left = cells(killed.path()).len();
    let said = done(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(left >= 5 && said.contains(&format!(" {left} were there, 0 failed")), "{left}: {said}");
    done(&line(whole.path()).iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(cells(whole.path()).len(), cells(killed.path()).len());
    assert_eq!(report(whole.path()), report(killed.path()));
}

#[test]
fn shards_that_are_merged_equal_one_run() {
    let (whole, merged) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let run = |out: &Path, more: &[&str]| {
        let out = out.to_str().unwrap();
        done(&[&["run", "--scale", SCALE, "--out", out], &SOME[..], more].concat())
    };
    run(whole.path(), &[]);
    let shards: Vec<_> = (1..=3).map(|_| tempfile::tempdir().unwrap()).collect();
    for (index, shard) in shards.iter().enumerate() {
        run(shard.path(), &["--shard", &format!("{}/3", index + 1)]);
        assert!(cells(shard.path()).len() > 5);
    }
    let mut words = vec!["merge", "--out", merged.path().to_str().unwrap()];
    words.extend(shards.iter().map(|shard| shard.path().to_str().unwrap()));
    done(&words);
    let names = |folder: &Path| -> Vec<String> {
        cells(folder).iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(merged.path()), names(whole.path()));
    assert_eq!(report(merged.path()), report(whole.path()));

    // Other figures of the same inputs are no cells of one run.
    let file = &cells(shards[0].path())[0];
    let mut cell = json(file);
    let figures = cell["figures"].as_object_mut().unwrap();
    figures.values_mut().for_each(|figure| *figure = Value::from(figure.as_f64().unwrap() + 1.0));
    fs::write(file, cell.to_string()).unwrap();
    let output = lab(&words);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("found other figures than in"), "{error}");

    // Nothing was copied before all were compared: into a folder that lacks cells, and into a new one.
    let missing = merged.path().join("cells").join(cells(shards[1].path())[0].file_name().unwrap());
    fs::remove_file(&missing).unwrap();
    let (new, shard) = (merged.path().join("new"), |index: usize| shards[index].path().to_str().unwrap());
    for (out, sources) in
        [(merged.path(), [shard(1), shard(0)]), (&new, [whole.path().to_str().unwrap(), shard(0)])]
    {
        let output = lab(&[&["merge", "--out", out.to_str().unwrap()], &sources[..]].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(!missing.exists() && !new.exists());
    }
}

#[test]
fn cells_of_another_build_and_damaged_ones_are_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let run = || done(&["run", "X-19", "--scale", SCALE, "--out", out]);
    assert!(run().starts_with("18 cells run, 0 were there"));
    let files = cells(folder.path());
    // A file of another build has another name; one whose content is another's is run again.
    let mut other = json(&files[0]);
    other["inputs"] = "something else".into();
    fs::write(&files[0], other.to_string()).unwrap();
    fs::write(&files[1], "{").unwrap();
    let output = lab(&["report", "--out", out]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let name = files[1].file_name().unwrap().to_str().unwrap();
    assert!(
        output.status.code() == Some(1) && error.contains(name) && error.contains("expected a cell"),
        "{error}"
    );
    assert!(run().starts_with("2 cells run, 16 were there"));

    let mut old = json(&files[2]);
    old["build"] = "0123456789abcdef".into();
    fs::write(folder.path().join("cells/old.json"), old.to_string()).unwrap();
    let report = report(folder.path());
    assert!(!report[1].contains("0123456789abcdef"));
    // Asked for, it stands in where this build has none.
    fs::remove_file(&files[2]).unwrap();
    assert!(done(&["report", "--out", out]).contains("62 headlines"));
    let short = json(&folder.path().join("report.json"));
    assert_eq!((&short["cells"], &short["other_builds"]), (&17.into(), &serde_json::json!([])));
    done(&["report", "--all-builds", "--out", out]);
    let whole = json(&folder.path().join("report.json"));
    assert_eq!(
        (&whole["cells"], &whole["other_builds"][0]["build"]),
        (&18.into(), &"0123456789abcdef".into())
    );
    assert!(fs::read_to_string(folder.path().join("report.html")).unwrap().contains("of other builds"));
}

#[test]
fn nonsense_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let out = out.to_str().unwrap();
    for (words, code, said) in [
        (vec!["run", "X-5", "--out", out], 2, "X-5"),
        (vec!["run", "X-05", "--scale", "0", "--out", out], 2, "expected a share"),
        (vec!["run", "X-05", "--seed", "5..1", "--out", out], 2, "expected a seed"),
        (vec!["run", "X-05", "--shard", "3/2", "--out", out], 2, "3/2"),
        (vec!["run", "X-05", "--where", "trace=nobody", "--out", out], 1, "no such cell"),
        (vec!["run", "X-05", "--where", "grid=nobody", "--out", out], 1, "no such cell"),
        (vec!["report", "--out", out], 1, "expected what `elastripe lab run --out` leaves"),
        (vec!["merge", out, "--out", out], 1, "expected what `elastripe lab run --out` leaves"),
    ] {
        let output = lab(&words);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{words:?}: {error}");
        assert!(error.contains(said), "{words:?}: {error}");
        assert!(!Path::new(out).exists(), "{words:?}");
    }
}

#[test]
fn experiments_and_their_cells_are_listed() {
    let list = done(&["list"]);
    assert_eq!(list.lines().filter(|line| line.trim().starts_with("X-")).count(), 25, "{list}");
    let cells = done(&["list", "X-05", "--scale", "0.5"]);
    assert_eq!(cells.lines().count(), 37, "{cells}");
    assert!(cells.contains("replay --device null") && cells.contains("scale 0.5; seed 1"), "{cells}");
}

/// Without Python's package nothing is run, and the line says what is missing.
#[test]
fn a_python_without_hyperqueue_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for (python, said) in [("/nowhere/python3", "/nowhere/python3"), ("false", "driver of HyperQueue")] {
        let output =
            lab(&["run", "X-19", "--scale", SCALE, "--out", out, "--executor", "hq", "--python", python]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && error.contains(said), "{python}: {error}");
        assert_eq!(cells(folder.path()).len(), 0);
    }
    let output = lab(&["run", "X-19", "--out", out, "--executor", "hq", "--shard", "1/2"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_report_of_a_scale_that_was_not_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let run = elastripe(&["lab", "run", "X-19", "--scale", "0.001", "--out", out]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(elastripe(&["lab", "report", "--out", out]).status.success());
    let read = || std::fs::read(folder.path().join("report.json")).unwrap();
    let before = read();
    refused(
        &["lab", "report", "--out", out, "--scale", "0.5"],
        "found cells of the scale 0.001, expected some of 0.5",
    );
    assert!(read() == before, "the report of what there is stays");
}
