//! `--plot` and `plot` on the command line: figures that say what the table says, mistakes found before the
//! run, nothing left half written.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::replay_common::{elastripe, refused};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn trace() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zipf.csv").to_str().unwrap().to_owned();
    let options = ["trace", "generate", "--profile", "zipf:0.99", "--range", "4MiB", "--seed", "5"];
    let output = elastripe(&[&options[..], &["--requests", "2000", &path]].concat());
    assert!(output.status.success(), "{output:?}");
    (folder, path)
}

#[track_caller]
fn run(arguments: &[&str]) -> String {
    let output = elastripe(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The parts of each bar add up to what the table says, in whatever order cells end.
#[test]
fn schemes_side_by_side_are_drawn_from_the_table() {
    let (folder, trace) = trace();
    let plot = folder.path().join("schemes.svg");
    let common =
        ["simulate", "--trace", &trace, "--ssd", "was-ssd", "--fill", "--json", "--compare", "raid,eplog"];
    let draw = || {
        let json = run(&[&common[..], &["--plot", plot.to_str().unwrap()]].concat());
        (serde_json::from_str::<serde_json::Value>(&json).unwrap(), fs::read_to_string(&plot).unwrap())
    };
    let (json, svg) = draw();
    for cell in json["cells"].as_array().unwrap() {
        let value = cell["write_amplification"].as_f64().unwrap();
        let shown = format!("{value:.2}");
        let shown = shown.trim_end_matches('0').trim_end_matches('.');
        assert!(svg.contains(&format!(">{shown}<")), "{shown}: {svg}");
    }
    for text in ["raid", "eplog", "user data", "RAID", "write amplification", "(flash bytes per user byte)"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    assert!(!svg.contains("GC of the SSDs"), "what is nowhere is not in the legend: {svg}");
    assert_eq!(draw().1, svg, "the same picture again");
    assert_eq!(names(folder.path()), ["schemes.svg", "zipf.csv"]);
}

#[test]
fn what_a_sweep_leaves_can_be_drawn_later() {
    let (folder, trace) = trace();
    let (out, plot) = (folder.path().join("out"), folder.path().join("p.svg"));
    let (out, plot) = (out.to_str().unwrap(), plot.to_str().unwrap());
    let sweep = ["--compare", "raid,eplog", "--sweep", "queue-depth=1,16,64", "--sweep", "seed=1,2"];
    let common = ["simulate", "--trace", &trace, "--ssd", "was-ssd", "--out", out, "--plot", plot];
    run(&[&common[..], &sweep, &["--plot-value", "latency_us_mean"]].concat());
    let svg = fs::read_to_string(plot).unwrap();
    for text in ["mean response time (", "queue depth (requests, log scale)", ">raid<", ">eplog<", ">64<"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    let csv = format!("{out}/results.csv");
    let again = folder.path().join("again.svg");
    let options =
        ["--y", "latency_us_mean", "--series", "scheme", "--over", "seed", "--out", again.to_str().unwrap()];
    run(&[&["plot", &csv, "--x", "queue-depth"][..], &options].concat());
    let again = fs::read_to_string(again).unwrap();
    // The same axes and lines; only what made it is said in other words.
    let body = |svg: &str| svg.split("<defs>").nth(1).unwrap().to_owned();
    assert_eq!(body(&again), body(&svg));
}

#[test]
fn mistakes_are_found_before_the_run() {
    let (folder, trace) = trace();
    let inside = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (svg, csv) = (inside("p.svg"), inside("t.csv"));
    let simulate = |more: &[&str], what: &str| {
        refused(&[&["simulate", "--trace", &trace, "--compare", "raid,eplog"], more].concat(), what);
    };
    simulate(&["--plot", &inside("p.gif")], "expected a name that ends in .svg or .png");
    simulate(&["--plot", &inside("none/p.svg")], "cannot write there");
    simulate(&["--plot", folder.path().to_str().unwrap()], "expected a name that ends in");
    simulate(
        &["--plot", &svg, "--plot-value", "speed"],
        "--plot-value: found \"speed\", expected one of requests,",
    );
    simulate(&["--plot-value", "erases"], "--plot");
    refused(&["simulate", "--trace", &trace, "--plot", &svg], "--plot: found one run alone");
    refused(&["simulate", "--trace", &trace, "--sweep", "plot=a.svg,b.svg"], "the same for all cells");
    let flash =
        ["flash", "run", "--workload", "uniform", "--logical-size", "16MiB", "--seed", "1", "--plot", &svg];
    refused(&[&flash[..], &["--plot-value", "latency_us"]].concat(), "found an SSD without service times");
    refused(&["bench", "--plot", &svg, "--plot-value", "erases"], "--plot-value: found \"erases\"");

    fs::write(&csv, "scheme,y_us\nraid,1\neplog,-2\n").unwrap();
    let plot = |more: &[&str], what: &str| refused(&[&["plot", &csv, "--out", &svg], more].concat(), what);
    plot(&["--x", "scheme", "--y", "z"], "--y: found no column \"z\", expected one of scheme, y_us");
    plot(&["--x", "scheme", "--y", "scheme"], "row 2, column scheme: found \"raid\", expected a number");
    plot(&["--x", "scheme", "--y", "y_us", "--log-y"], "found -2, expected 1e-30");
    plot(
        &["--x", "scheme", "--y", "y_us", "--where", "scheme=was"],
        "--where: found no row whose scheme is was",
    );
    plot(&["--x", "scheme", "--y", "y_us", "--where", "was"], "expected a column and values");
    plot(&["--x", "scheme", "--y", "y_us", "--band", "5:1"], "expected a range such as");
    plot(&["--x", "scheme", "--y", "y_us", "--band", "0:inf"], "expected a range such as");
    fs::write(&csv, [0xff, 0xfe, 0]).unwrap();
    plot(&["--x", "a", "--y", "b"], "expected text");
    refused(&["plot", &inside("none.csv"), "--x", "a", "--y", "b", "--out", &svg], "none.csv");
    assert_eq!(names(folder.path()), ["t.csv", "zipf.csv"], "nothing is left behind");
}

/// A picture that is there stays as it is if the new one cannot be drawn.
#[test]
fn an_error_destroys_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let inside = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (svg, csv) = (inside("p.svg"), inside("t.csv"));
    fs::write(&csv, "scheme,y_us\nraid,1\neplog,2\n").unwrap();
    let plot = ["plot", &csv, "--x", "scheme", "--y", "y_us", "--out", &svg];
    run(&plot);
    let before = fs::read_to_string(&svg).unwrap();
    fs::write(&csv, "scheme,y_us\nraid,1\nraid,2\n").unwrap();
    refused(&plot, "found rows 2 and 3 for raid, expected one");
    assert_eq!(fs::read_to_string(&svg).unwrap(), before);
    assert_eq!(names(folder.path()), ["p.svg", "t.csv"]);
}
