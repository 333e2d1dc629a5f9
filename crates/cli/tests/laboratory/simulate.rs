//! `simulate` on the command line: counts that agree between engine and devices, times that a pencil gives,
//! grids that go on where they were interrupted.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::replay_common::{elastripe, number, refused};
use serde_json::Value;
use std::fmt::Write as _;
use tempfile::TempDir;

/// Page program and read of the preset was-ssd with its transfer over the channel, in microseconds.
const WRITE_US: f64 = 200.0 + 102.4;
const READ_US: f64 = 25.0 + 102.4;

#[track_caller]
fn simulate(arguments: &[&str]) -> Value {
    let output = elastripe(&[&["simulate", "--json", "--check"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn float(json: &Value, pointer: &str) -> f64 {
    json.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number {pointer}: {json:#}"))
}

fn written(text: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    std::fs::write(&path, format!("ts_us,dev,op,offset,len\n{text}")).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

/// Skewed writes that overwrite 16 MiB several times.
fn skewed() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zipf.csv").to_str().unwrap().to_owned();
    let options = ["trace", "generate", "--profile", "zipf:0.99", "--range", "16MiB", "--seed", "5"];
    let output = elastripe(&[&options[..], &["--requests", "20000", &path]].concat());
    assert!(output.status.success(), "{output:?}");
    (folder, path)
}

/// Small SSDs, full before the array is made, so that their GC runs.
const SMALL: [&str; 8] =
    ["--ssd", "was-ssd", "--ssd-size", "16MiB", "--prefill", "--fill", "--compact", "--gc-unit=4"];
const SCHEMES: [&str; 5] = ["raid", "parity-log", "eplog", "elastic", "was"];

fn small(scheme: &str) -> Vec<&'static str> {
    let elastic = ["elastic", "was"].contains(&scheme);
    if elastic { SMALL.to_vec() } else { SMALL[..7].to_vec() }
}

#[test]
fn the_same_seed_gives_the_same_json() {
    let (_folder, trace) = skewed();
    for scheme in SCHEMES {
        let run = || {
            let common = ["--trace", &trace, "--scheme", scheme, "--seed", "9"];
            let mut json = simulate(&[&common, &small(scheme)[..]].concat());
            for differs in ["cpu", "provenance"] {
                assert!(json.as_object_mut().unwrap().remove(differs).is_some());
            }
            json
        };
        let (one, two) = (run(), run());
        assert_eq!(one, two, "{scheme}");
        assert!(number(&one, "/gc_operations") > 0, "{scheme}: {one:#}");
        assert_eq!(one["config"]["trace"]["requests"], 20_000);
    }
}

/// What the engine writes arrives at the devices, and what they program is that and their copies.
#[test]
fn writes_are_conserved_from_user_to_flash() {
    let (_folder, trace) = skewed();
    for scheme in SCHEMES {
        for streams in ["none", "all"] {
            // Two streams: SSDs this small have no blocks for more.
            let limit: &[&str] = if streams == "all" { &["--stream-limit", "2"] } else { &[] };
            let common = ["--trace", &trace, "--scheme", scheme, "--streams", streams];
            let json = simulate(&[&common, limit, &small(scheme)[..]].concat());
            let (mut host, mut flash, mut copies, mut gc) = (0, 0, 0, 0);
            let devices = json["devices"].as_array().unwrap();
            for device in devices {
                assert_eq!(
                    number(device, "/bytes_written"),
                    4096 * number(device, "/host_pages_written"),
                    "{device:#}"
                );
                if device["role"] == "main" {
                    host += number(device, "/host_pages_written");
                    flash += number(device, "/flash_pages_written");
                    copies += number(device, "/page_copies");
                    gc += number(device, "/gc_operations");
                }
            }
            let logs = devices.iter().filter(|device| device["role"] == "log").count();
            assert_eq!(logs, if ["eplog", "parity-log"].contains(&scheme) { 2 } else { 0 });
            assert_eq!(flash, host + copies, "{scheme}");
            assert_eq!((number(&json, "/ssd_pages_written"), number(&json, "/gc_operations")), (host, gc));
            assert_eq!(number(&json, "/erases"), gc, "{scheme}");
            let product =
                float(&json, "/raid_write_amplification") * float(&json, "/device_write_amplification");
            assert!((product - float(&json, "/write_amplification")).abs() < 1e-9);
        }
    }
}

/// Hotness reaches the SSDs as streams: with `class` they do something else than with `parity`, if the scheme
/// has classes.
#[test]
fn classes_of_placement_are_streams_of_the_ssds() {
    let (_folder, trace) = skewed();
    let run = |scheme, placement, streams| {
        let common = ["--trace", &trace, "--ssd", "was-ssd", "--ssd-size", "64MiB", "--prefill", "--fill"];
        let cell = ["--scheme", scheme, "--placement", placement, "--streams", streams, "--gc-unit", "4"];
        let json = simulate(&[&common[..], &cell].concat());
        assert!(number(&json, "/page_copies") > 0, "{json:#}");
        json["devices"].clone()
    };
    assert_eq!(run("elastic", "single", "class"), run("elastic", "single", "parity"));
    for placement in ["was", "sepbit"] {
        assert_ne!(run("was", placement, "class"), run("was", placement, "parity"), "{placement}");
    }
}

/// One request at a time: a full stripe takes one program, all devices side by side; a chunk's update in
/// place reads the old chunk and parities, then writes them, again side by side.
#[test]
fn virtual_times_are_those_of_the_closed_form() {
    let text = |requests: u64, length: u64, stride: u64| {
        (0..requests).fold(String::new(), |mut text, i| {
            writeln!(text, "0,0,W,{},{length}", i * stride).unwrap();
            text
        })
    };
    let stripe = 6 * 4096;
    let (_folder, full) = written(&text(100, stripe, stripe));
    let common = ["--ssd", "was-ssd", "--queue-depth", "1", "--scheme", "raid"];
    let json = simulate(&[&common[..], &["--trace", &full]].concat());
    assert_eq!(number(&json, "/metadata_bytes_written"), 0, "{json:#}");
    assert!((float(&json, "/virtual_seconds") * 1e6 - 100.0 * WRITE_US).abs() < 1e-3, "{json:#}");
    let (_folder, single) = written(&text(100, 4096, stripe));
    let json = simulate(&[&common[..], &["--trace", &single, "--fill"]].concat());
    let seconds = float(&json, "/virtual_seconds");
    assert!((seconds * 1e6 - 100.0 * (READ_US + WRITE_US)).abs() < 1e-3, "{json:#}");
    assert!((float(&json, "/latency_us_mean") / (READ_US + WRITE_US) - 1.0).abs() < 1e-3);
    assert!((float(&json, "/requests_per_second") * seconds - 100.0).abs() < 1e-6);
}

/// A log device is one ascending stream: a hard disk, whose arm never moves then, does as well as an SSD as
/// long as its bandwidth suffices.
#[test]
fn hard_disks_as_log_devices_keep_up_with_ssds() {
    let text = (0_u64..4000).fold(String::new(), |mut text, number| {
        let chunk = (number.wrapping_mul(6_364_136_223_846_793_005) >> 40) % 16_384;
        writeln!(text, "0,0,W,{},4096", chunk * 4096).unwrap();
        text
    });
    let (_folder, trace) = written(&text);
    for (scheme, sync, depth) in [
        ("eplog", "", "32"),
        ("eplog", "", "1"),
        ("eplog", "--sync", "32"),
        ("eplog", "--sync", "1"),
        ("parity-log", "", "32"),
        ("parity-log", "", "1"),
        ("parity-log", "--sync", "1"),
    ] {
        let run = |log: &str| {
            let common = ["--trace", &trace, "--ssd", "plextor-m5pro", "--fill", "--log-device", log];
            let cell = ["--scheme", scheme, "--queue-depth", depth, sync];
            let given = cell.into_iter().filter(|option| !option.is_empty());
            simulate(&common.into_iter().chain(given).collect::<Vec<_>>())
        };
        let (disks, ssds) = (run("seagate-st1000dm003"), run("plextor-m5pro"));
        let ratio = float(&disks, "/requests_per_second") / float(&ssds, "/requests_per_second");
        assert!(ratio >= 0.95, "{scheme} {sync}, depth {depth}: {ratio}");
        for device in [8, 9] {
            let moves = number(&disks, &format!("/devices/{device}/repositionings"));
            assert_eq!(moves, 0, "{scheme} {sync}, depth {depth}: {:#}", disks["devices"][device]);
        }
    }
}

/// Open loop: requests come at the times of the trace, and chunks wait by that clock (as in replay).
#[test]
fn requests_come_and_chunks_wait_by_the_virtual_clock() {
    let times_ms = [0, 50, 100, 1000, 1001, 1002, 1003, 1004, 1005, 1006];
    let text = times_ms.iter().enumerate().fold(String::new(), |mut text, (chunk, ms)| {
        writeln!(text, "{},0,W,{},4096", ms * 1000, chunk * 4096).unwrap();
        text
    });
    let (_folder, trace) = written(&text);
    let common = ["--trace", &trace, "--ssd", "was-ssd", "--scheme", "elastic", "--timed"];
    let json = simulate(&common);
    assert_eq!((number(&json, "/stripes/full"), number(&json, "/stripes/short")), (1, 2), "{json:#}");
    let seconds = float(&json, "/virtual_seconds");
    assert!((1.006..1.3).contains(&seconds), "{seconds}");
    let fast = simulate(&[&common[..], &["--speed", "100"]].concat());
    assert_eq!(number(&fast, "/stripes/full"), 1);
    assert!(float(&fast, "/virtual_seconds") < 0.1);
}

/// A chunk that waits in memory is answered at once: not when the next request comes, nor when a wait of the
/// queue ends.
#[test]
fn answers_from_memory_take_no_time() {
    let text = (0..100).fold(String::new(), |mut text, chunk| {
        writeln!(text, "{},0,W,{},4096", chunk * 1000, chunk * 4096).unwrap();
        text
    });
    let (_folder, trace) = written(&text);
    for pace in [["--queue-depth", "1"], ["--timed", "--speed=1"]] {
        // A group is larger than the trace.
        let json =
            simulate(&[&["--trace", &trace, "--ssd", "was-ssd", "--scheme", "was"], &pace[..]].concat());
        assert_eq!(number(&json, "/requests"), 100);
        assert!(float(&json, "/latency_us_max") < 0.01, "{pace:?}: {json:#}");
        let sent_s = if pace[0] == "--timed" { 0.099 } else { 0.0 };
        let seconds = float(&json, "/virtual_seconds");
        assert!((sent_s..sent_s + 0.02).contains(&seconds), "{pace:?}: {seconds}");
    }
}

#[test]
fn without_service_times_no_time_passes() {
    let (_folder, trace) = skewed();
    let json = simulate(&["--trace", &trace, "--ssd", "was-ssd", "--scheme", "raid", "--untimed"]);
    assert_eq!(float(&json, "/virtual_seconds"), 0.0);
    assert!(number(&json, "/user_chunks_written") >= 20_000);
}

#[test]
fn a_sweep_goes_on_where_it_was_interrupted() {
    let (folder, trace) = skewed();
    let out = folder.path().join("out");
    let run = |jobs: &str| {
        let all = [
            "simulate",
            "--trace",
            &trace,
            "--ssd",
            "was-ssd",
            "--head",
            "2000",
            "--json",
            "--jobs",
            jobs,
            "--out",
            out.to_str().unwrap(),
            "--sweep",
            "queue-depth=1,4",
            "--compare",
            "raid,eplog",
        ];
        let output = elastripe(&all);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        let mut json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(json.as_object_mut().unwrap().remove("provenance").is_some());
        (json, errors.lines().count())
    };
    let (first, ran) = run("2");
    assert_eq!((first["cells"].as_array().unwrap().len(), ran), (4, 4));
    assert_eq!(first["cells"][1]["scheme"], "eplog");
    assert!((float(&first, "/cells/0/lifespan") - 1.0).abs() < 1e-12);
    assert!(float(&first, "/cells/1/lifespan") > 1.0);
    let csv = out.join("results.csv");
    let whole = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(whole.lines().count(), 5);
    let (again, ran) = run("1");
    assert_eq!((&again, ran), (&first, 0), "nothing is run twice");
    std::fs::write(&csv, &whole[..whole.len() - 20]).unwrap();
    let (again, ran) = run("1");
    assert_eq!((&again, ran), (&first, 1), "the line cut short is made again");
    // Only when it was made, and by which command, differs.
    let figures = |text: &str| -> Vec<String> {
        let columns = text.lines().next().unwrap().split(',').position(|name| name == "requests").unwrap();
        text.lines()
            .map(|line| line.split(',').skip(columns).take(36).collect::<Vec<_>>().join(","))
            .collect()
    };
    assert_eq!(figures(&std::fs::read_to_string(&csv).unwrap()), figures(&whole));
    std::fs::write(&csv, "cell,other\n").unwrap();
    let out = out.to_str().unwrap();
    refused(&["simulate", "--trace", &trace, "--out", out], "columns of another sweep");
}

#[test]
fn nonsense_is_refused_with_a_line_that_names_it() {
    let (_folder, trace) = written("0,0,W,0,4096\n");
    let with = |more: &[&str], what: &str| refused(&[&["simulate", "--trace", &trace], more].concat(), what);
    with(&["--ssd", "floppy"], "--ssd: found \"floppy\"");
    with(&["--log-device", "tape"], "--log-device: found \"tape\"");
    with(&["--ssd", "ps-vnand"], "--chunk-size: found 4096 bytes");
    with(&["--ssd", "plextor-m5pro", "--streams", "all"], "only bandwidths are known");
    with(&["--prefill", "--utilization", "1.5"], "--utilization: found 1.5");
    with(&["--sweep", "queue-depth"], "queue-depth");
    with(&["--sweep", "depth=1,2"], "--depth");
    with(&["--compare", "raid,raid7"], "raid7");
    with(&["--scheme", "raid", "--gc", "greedy"], "--gc greedy");
    with(&["--compare", "raid,eplog", "--gc", "greedy"], "--gc greedy");
    let (_folder, large) = written("0,0,W,0,4096\n1,0,W,1000000000000,4096\n");
    refused(&["simulate", "--trace", &large, "--scheme", "raid"], "SSDs of");
}

/// There are buffers for every write, however few are asked for, and that is told.
#[test]
fn buffers_are_told_as_they_are() {
    let (_folder, trace) = skewed();
    let told = |scheme: &str, more: &[&str]| {
        let json = simulate(&[&["--trace", &trace, "--ssd", "was-ssd", "--scheme", scheme], more].concat());
        number(&json, "/config/buffer_bytes")
    };
    for (scheme, usual) in [("eplog", 1 << 30), ("was", 64 << 20)] {
        assert_eq!(told(scheme, &[]), usual);
        assert_eq!(
            told(
                scheme,
                &["--buffers", "8MiB", "--cache-stripes", "4"][..if scheme == "was" { 2 } else { 4 }]
            ),
            8 << 20
        );
        let least = told(scheme, &["--buffers", "1B"]);
        assert!((8 * 4096..8 << 20).contains(&least), "{scheme}: {least}");
        assert_eq!(told(scheme, &["--buffers", &format!("{least}B")]), least);
    }
}

/// Experiment 5 of the EPLOG paper: batches and prefetch make a rebuild faster.
#[test]
fn lost_ssds_are_rebuilt_in_batches_and_with_prefetch() {
    let (_folder, trace) = skewed();
    let rebuilt = |more: &[&str]| {
        let common = ["--trace", &trace, "--ssd", "was-ssd", "--ssd-size", "32MiB", "--fill", "--compact"];
        let json = simulate(&[&common[..], &["--rewrites", "log", "--rebuild", "2"], more].concat());
        let (bytes, rate) = (number(&json, "/rebuild/bytes"), float(&json, "/rebuild/bytes_per_s"));
        // 16 MiB on six data SSDs; those that are lost hold a quarter of the data and parity.
        let stripes = (16u64 << 20).div_ceil(6 * 4096);
        assert_eq!(bytes, 2 * stripes * 4096, "{json:#}");
        assert!(number(&json, "/rebuild/bytes_read") >= 6 * stripes * 4096, "{json:#}");
        assert_eq!(float(&json, "/rebuild_bytes_per_s"), rate);
        rate
    };
    let singly = rebuilt(&["--batch", "1", "--prefetch", "1"]);
    let batched = rebuilt(&["--batch", "100", "--prefetch", "1"]);
    let ahead = rebuilt(&["--batch", "100", "--prefetch", "4"]);
    assert!(batched > 2.0 * singly, "{batched} and {singly} bytes a second");
    assert!(ahead > 1.2 * batched, "{ahead} and {batched} bytes a second");
    let common = ["simulate", "--trace", &trace, "--ssd", "was-ssd"];
    refused(&[&common[..], &["--rebuild", "3"]].concat(), "--rebuild: found 3, expected at most the 2 SSDs");
}

/// Experiment 4 (c) of the EPLOG paper: SSDs that fail before the last commit make that slower, and its time
/// counts.
#[test]
fn a_commit_without_some_ssds_counts_and_takes_longer() {
    let (_folder, trace) = skewed();
    let common = ["--trace", &trace, "--ssd", "was-ssd", "--ssd-size", "32MiB", "--fill", "--compact"];
    let seconds = |more: &[&str]| {
        let json = simulate(&[&common[..], &["--rewrites", "log"], more].concat());
        float(&json, "/virtual_seconds")
    };
    let (never, whole) = (seconds(&[]), seconds(&["--fail", "0"]));
    let (one, two) = (seconds(&["--fail", "1"]), seconds(&["--fail", "2"]));
    assert!(never < whole && whole < one && one < two, "{never} {whole} {one} {two}");
    let refuse = |more: &[&str], what: &str| {
        let simulate = ["simulate", "--trace", &trace, "--ssd", "was-ssd"];
        refused(&[&simulate[..], more].concat(), what);
    };
    refuse(&["--fail", "3"], "--fail: found 3, expected at most the 2 SSDs");
    refuse(&["--fail", "1", "--rebuild", "1"], "--fail: found beside --rebuild");
    refuse(&["--fail", "1", "--scheme", "raid"], "--fail 1: scheme raid");
    refuse(&["--fail-at", "9"], "--fail");
    refuse(&["--fail", "1", "--fail-at", "99999999"], "--fail-at: found 99999999, expected at most the");
}

/// What the failure and the commit without some SSDs write and read is in every counter, as its time is: the
/// engine's, those of the devices, and the rows of a series.
#[test]
fn a_failure_counts_everywhere_or_nowhere() {
    let (_folder, trace) = skewed();
    let common = ["--trace", &trace, "--ssd", "was-ssd", "--ssd-size", "32MiB", "--fill", "--compact"];
    for more in [&["--fail", "0"][..], &["--fail", "2"], &["--fail", "2", "--fail-at", "10000"]] {
        let json = simulate(&[&common[..], &["--rewrites", "log", "--interval", "5000"], more].concat());
        for device in json["devices"].as_array().unwrap() {
            let pages = |key: &str| 4096 * number(device, &format!("/host_pages_{key}"));
            assert_eq!(number(device, "/bytes_written"), pages("written"), "{more:?}: {device:#}");
            assert_eq!(number(device, "/bytes_read"), pages("read"), "{more:?}: {device:#}");
        }
        let at_end = number(&json, "/commit_at_end/stripes");
        assert!(at_end > 0 && at_end <= number(&json, "/stripes_committed"), "{more:?}: {json:#}");
        let rows = json["series"].as_array().unwrap();
        for (sum, whole) in [
            ("ssd_pages_written", "/ssd_pages_written"),
            ("stripes_committed", "/stripes_committed"),
            ("metadata_bytes_written", "/metadata_bytes_written"),
        ] {
            let of_rows: u64 = rows.iter().map(|row| number(row, &format!("/{sum}"))).sum();
            assert_eq!(of_rows, number(&json, whole), "{more:?} {sum}");
        }
    }
}

/// SSDs that fail on the way: what follows is written without them, so the earlier the less, and under every
/// scheme.
#[test]
fn ssds_that_fail_on_the_way_are_written_no_more() {
    let (_folder, trace) = skewed();
    let common = ["--trace", &trace, "--ssd", "was-ssd", "--ssd-size", "32MiB", "--fill", "--compact"];
    for scheme in ["raid", "parity-log", "eplog"] {
        let chunks = |more: &[&str]| {
            let json = simulate(&[&common[..], &["--scheme", scheme], more].concat());
            float(&json, "/ssd_pages_written")
        };
        let [all, late, early] = [
            chunks(&[]),
            chunks(&["--fail", "2", "--fail-at", "15000"]),
            chunks(&["--fail", "2", "--fail-at", "1000"]),
        ];
        assert!(early < late && late < all, "{scheme}: {early} {late} {all}");
    }
}

/// Erases that a block is rated for, at the rate of the trace's own times.
#[test]
fn years_follow_from_rated_erases_and_the_times_of_the_trace() {
    let (_folder, trace) = skewed();
    let words = [&["--trace", &trace, "--scheme", "raid", "--geometry", "4+1"], &SMALL[..7]].concat();
    let json = simulate(&words);
    let (erases, seconds) = (float(&json, "/lifetime/erases_per_block"), float(&json, "/lifetime/seconds"));
    assert!(erases > 0.0 && json["lifetime"]["is_of_trace"] == true);
    let years = 3000.0 / erases * seconds / (365.25 * 86_400.0);
    assert!((float(&json, "/lifetime/years") / years - 1.0).abs() < 1e-9);
    let more = simulate(&[&words[..], &["--endurance", "6000"]].concat());
    assert!((float(&more, "/lifetime/years") / years - 2.0).abs() < 1e-9);
    let black_box = ["--trace", &trace, "--ssd", "plextor-m5pro", "--endurance", "10"];
    refused(&[&["simulate"], &black_box[..]].concat(), "only bandwidths are known");
}

/// P-04: a part of the mapping table costs reads and writes of translation pages, a whole one none.
#[test]
fn a_mapping_table_that_is_cached_costs_pages() {
    let (_folder, trace) = skewed();
    // Smaller SSDs have no blocks for translation pages.
    let words = [
        "--trace",
        &trace,
        "--scheme",
        "raid",
        "--geometry",
        "4+1",
        "--ssd",
        "was-ssd",
        "--ssd-size",
        "64MiB",
    ];
    let translations = |json: &Value| -> u64 {
        (0..5).map(|ssd| number(json, &format!("/devices/{ssd}/translation_writes"))).sum()
    };
    assert_eq!(translations(&simulate(&words)), 0);
    let cached = simulate(&[&words[..], &["--mapping-cache", "1KiB"]].concat());
    assert!(translations(&cached) > 0);
}

/// RAID-4: the last device takes all parity, whatever the scheme writes, and everything reads back.
#[test]
fn fixed_parity_stays_on_the_last_devices() {
    let (_folder, trace) = skewed();
    for scheme in ["raid", "parity-log", "eplog"] {
        let words =
            ["replay", "--trace", &trace, "--device", "memory", "--verify", "--scheme", scheme, "--json"];
        let more = ["--geometry", "3+2", "--layout", "fixed", "--head", "3000", "--compact"];
        let commit: &[&str] = if scheme == "raid" { &[] } else { &["--commit-every", "1000"] };
        let output = elastripe(&[&words[..], &more, commit].concat());
        assert!(output.status.success(), "{scheme}: {}", String::from_utf8_lossy(&output.stderr));
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let chunks = |dev: usize, of: &str| number(&json, &format!("/devices/{dev}/{of}_chunks_written"));
        for dev in 0..3 {
            assert!(chunks(dev, "parity") == 0 && chunks(dev, "data") > 0, "{scheme} {dev}");
        }
        for dev in 3..5 {
            assert!(chunks(dev, "parity") > 0 && chunks(dev, "data") == 0, "{scheme} {dev}");
        }
    }
    let elastic = ["simulate", "--trace", &trace, "--scheme", "elastic", "--layout", "fixed"];
    refused(&elastic, "always rotates parity");
}

#[test]
fn idle_times_of_a_trace_take_no_time() {
    // Thirty years, of which nobody waits for a day.
    let (_folder, trace) = written("0,0,W,4096,4096\n1000000000000000,0,W,0,4096\n");
    let common = ["--trace", &trace, "--ssd", "was-ssd", "--ssd-size", "16MiB", "--timed"];
    let json = simulate(&[&common[..], &["--interval", "3600s"]].concat());
    assert!(float(&json, "/virtual_seconds") >= 1e9, "{json:#}");
    assert!(float(&json, "/cpu/seconds") < 10.0, "{}", json["cpu"]);
    let rows = json["series"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(number(&rows[0], "/requests_at_end"), 1);
    assert!(float(&rows[0], "/seconds_at_end") < 3601.0, "the row ends when it is due: {rows:?}");
}

#[test]
fn a_request_at_the_end_of_time_is_carried_out() {
    let (_folder, trace) = written("0,0,W,4096,4096\n18446744073709551615,0,W,0,4096\n");
    for pace in ["--timed", "--queue-depth=1"] {
        let json = simulate(&["--trace", &trace, "--ssd", "was-ssd", "--ssd-size", "16MiB", pace]);
        assert_eq!(number(&json, "/requests"), 2, "{pace}: {json:#}");
    }
}

#[test]
fn latencies_beyond_an_hour_are_what_they_were() {
    // All at once, to disks of some 90 MB/s.
    let text = "0,0,W,0,1073741824\n".repeat(900);
    let (_folder, trace) = written(&text);
    let common = ["--trace", &trace, "--ssd", "seagate-st1000dm003", "--scheme", "raid", "--geometry", "2+1"];
    let json = simulate(&[&common[..], &["--chunk-size", "1MiB", "--timed"]].concat());
    let (last, seconds) = (float(&json, "/latency_us_max") / 1e6, float(&json, "/virtual_seconds"));
    assert!(seconds > 4000.0 && last > 0.99 * seconds, "{last} of {seconds}");
}

#[test]
fn a_time_that_lies_before_others_is_no_latency() {
    let (_folder, trace) = written("0,0,W,0,4096\n60000000,0,W,4096,4096\n30000000,0,W,8192,4096\n");
    let json = simulate(&["--trace", &trace, "--ssd", "was-ssd", "--ssd-size", "16MiB", "--timed"]);
    assert!(float(&json, "/latency_us_max") < 1e6, "half a minute is nobody's latency: {json:#}");
}

#[test]
fn what_was_not_measured_has_no_figure() {
    let (_folder, reads) = written("0,0,R,0,4096\n10,0,R,8192,4096\n");
    let common = ["--trace", &reads, "--ssd", "was-ssd", "--ssd-size", "16MiB"];
    let json = simulate(&common);
    for figure in [
        "write_amplification",
        "raid_write_amplification",
        "device_write_amplification",
        "metadata_write_amplification",
        "log_write_amplification",
        "absorbed_share",
    ] {
        assert!(json[figure].is_null(), "{figure} of no writes: {}", json[figure]);
    }
    let text = elastripe(&[&["simulate"], &common[..]].concat());
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("per byte of users n/a: RAID n/a"), "{text}");
    // Without service times no time passes; at the times of the trace it does.
    let (_folder, trace) = skewed();
    let untimed = ["--trace", &trace, "--ssd", "was-ssd", "--ssd-size", "32MiB", "--untimed"];
    let json = simulate(&untimed);
    let timings = ["requests_per_second", "latency_us_mean", "latency_us_p50", "latency_us_max"];
    for figure in timings {
        assert!(json[figure].is_null(), "{figure} without service times: {}", json[figure]);
    }
    assert!(float(&json, "/write_amplification") > 0.9, "{json:#}");
    let open = simulate(&[&untimed[..], &["--timed"]].concat());
    assert!(float(&open, "/requests_per_second") < 2000.0, "{open:#}");
    // In tables and results, too, and what is known already is not run again.
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").to_str().unwrap().to_owned();
    let sweep = ["simulate", "--compare", "raid,eplog", "--out", &out];
    for round in 0..2 {
        let output = elastripe(&[&sweep, &untimed[..]].concat());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.matches("n/a").count() == 8, "{text}");
        assert_eq!(output.stderr.is_empty(), round == 1, "{}", String::from_utf8_lossy(&output.stderr));
    }
    let results = std::fs::read_to_string(folder.path().join("out/results.csv")).unwrap();
    assert!(!results.contains("NaN"), "{results}");
}

#[test]
fn columns_say_whether_the_fill_counts() {
    let (_folder, trace) = skewed();
    let words = ["simulate", "--trace", &trace, "--compare", "raid,eplog"];
    let output = elastripe(&[&words[..], &small("raid")].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("  GC ops/SSD with fill  erases/SSD  "), "{text}");
}
