//! Traces on made arrays with the schemes elastic and was: the clock of the trace, sizes, options, figures.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::replay_common::{elastripe, number, refused, replay};
use serde_json::Value;
use std::fmt::Write as _;
use tempfile::TempDir;

fn written(text: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    std::fs::write(&path, format!("ts_us,dev,op,offset,len\n{text}")).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

/// Three chunks, a pause that is longer than `P_wait`, and seven.
fn with_a_pause() -> (TempDir, String) {
    let times = [0, 50, 100, 1000, 1001, 1002, 1003, 1004, 1005, 1006];
    let mut text = String::new();
    for (chunk, ms) in times.iter().enumerate() {
        writeln!(text, "{},0,W,{},4096", ms * 1000, chunk * 4096).unwrap();
    }
    written(&text)
}

/// Skewed writes that overwrite 8 MiB several times.
fn skewed(requests: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zipf.csv").to_str().unwrap().to_owned();
    let options = ["trace", "generate", "--profile", "zipf:0.99", "--range", "8MiB", "--seed", "5"];
    let output = elastripe(&[&options[..], &["--requests", requests, &path]].concat());
    assert!(output.status.success(), "{output:?}");
    (folder, path)
}

/// a chunk waits by the clock of the trace, however fast it is replayed.
#[test]
fn chunks_wait_by_the_times_of_the_trace() {
    let (_folder, trace) = with_a_pause();
    let stripes = |scheme: &str, more: &[&str]| {
        let common = ["--trace", &trace, "--device", "null", "--scheme", scheme, "--geometry", "6+2"];
        let result = replay(&[&common, more].concat());
        assert_eq!(number(&result, "/totals/data_chunks_written"), 10);
        assert_eq!(result["config"]["clock"], "trace");
        let (full, short) = (number(&result, "/stripes/full"), number(&result, "/stripes/short"));
        assert_eq!(number(&result, "/totals/parity_chunks_written"), 2 * (full + short));
        (full, short)
    };
    // The first three leave after 200 ms; six make a stripe; the last one leaves with the flush at the end.
    assert_eq!(stripes("elastic", &[]), (1, 2));
    assert_eq!(stripes("elastic", &["--queue-depth", "1"]), (1, 2));
    assert_eq!(stripes("elastic", &["--p-wait", "40ms"]), (1, 4));
    assert_eq!(stripes("elastic", &["--p-wait", "0ms"]), (0, 10));
    assert_eq!(stripes("elastic", &["--p-wait", "never"]), (1, 1));
    assert_eq!(stripes("was", &[]), (1, 1));
    assert_eq!(stripes("was", &["--p-wait", "200ms"]), (1, 2));
    assert_eq!(stripes("elastic", &["--group-chunks", "12", "--p-wait", "900ms"]), (1, 2));
}

/// a chunk that has waited for long enough was written when its next version comes; before that
/// the version replaces it, and the wait counts from the older one.
#[test]
fn what_has_waited_is_written_before_it_is_overwritten() {
    let text = |times_ms: &[u64]| {
        times_ms.iter().fold(String::new(), |mut text, ms| {
            writeln!(text, "{},0,W,0,4096", ms * 1000).unwrap();
            text
        })
    };
    let run = |times_ms: &[u64], more: &[&str]| {
        let (_folder, trace) = written(&text(times_ms));
        let common = ["--trace", &trace, "--device", "null", "--scheme", "elastic", "--geometry", "6+2"];
        let result = replay(&[&common, more].concat());
        let parity = number(&result, "/totals/parity_chunks_written");
        assert_eq!(parity, 2 * number(&result, "/stripes/short"), "{result:#}");
        (number(&result, "/totals/data_chunks_written"), number(&result, "/cache/absorbed_chunks"))
    };
    for more in [&[][..], &["--queue-depth", "1"], &["--fill"]] {
        assert_eq!(run(&[0, 1000, 2000], more), (3, 0), "{more:?}");
        assert_eq!(run(&[0, 150, 250], more), (2, 1), "{more:?}: the wait began with the first one");
        assert_eq!(run(&[0, 100, 1000, 1199, 1200], more), (3, 2), "{more:?}");
        // Times that go back change nothing.
        assert_eq!(run(&[1000, 0, 1100, 1300], more), (2, 2), "{more:?}");
    }
    assert_eq!(run(&[0, 1000, 2000], &["--p-wait", "never"]), (1, 2));
}

/// Others do not share the stripe of what has waited for long enough either.
#[test]
fn what_comes_later_is_no_part_of_a_stripe_that_was_due() {
    let (_folder, trace) = written("0,0,W,0,4096\n100000,0,W,4096,4096\n900000,0,W,8192,4096\n");
    let common = ["--trace", &trace, "--device", "null", "--scheme", "elastic", "--geometry", "2+1"];
    let result = replay(&[&common[..], &["--group-chunks", "8"]].concat());
    assert_eq!((number(&result, "/stripes/full"), number(&result, "/stripes/short")), (1, 1), "{result:#}");
}

#[test]
fn a_trace_without_times_stands_still() {
    let text: String = (0..10).map(|chunk| format!("0,0,W,{},4096\n", chunk * 4096)).collect();
    let (_folder, trace) = written(&text);
    let run = ["--trace", &trace, "--device", "null", "--geometry", "6+2"];
    let result = replay(&[&run[..], &["--scheme", "elastic", "--queue-depth", "1"]].concat());
    assert_eq!(result["config"]["clock"], "still");
    assert_eq!((number(&result, "/stripes/full"), number(&result, "/stripes/short")), (1, 1));
    assert_eq!(replay(&run)["config"]["clock"], "wall", "eplog");
}

/// What a run takes is the only thing that differs.
#[test]
fn a_run_is_repeatable() {
    let (_folder, trace) = skewed("20000");
    let run = |more: &[&str]| {
        let common =
            ["--trace", &trace, "--device", "null", "--geometry", "6+2", "--code", "rdp", "--gc-unit", "4"];
        let mut result = replay(&[&common, more].concat());
        let map = result.as_object_mut().unwrap();
        for key in ["provenance", "seconds", "requests_per_second", "latency_us", "config"] {
            assert!(map.remove(key).is_some(), "{key}");
        }
        if let Some(fill) = map.get_mut("fill").and_then(Value::as_object_mut) {
            for key in ["seconds", "requests_per_second", "latency_us"] {
                assert!(fill.remove(key).is_some(), "{key}");
            }
        }
        result
    };
    for options in [
        &["--scheme", "elastic"][..],
        &["--scheme", "was", "--fill"],
        &["--scheme", "was", "--groups", "3", "--gc-group", "own", "--gc", "cost-benefit"],
        &["--scheme", "elastic", "--placement", "sepbit", "--p-wait", "3ms"],
        &["--scheme", "was", "--hotness", "hca"],
    ] {
        let (one, two) = (run(options), run(options));
        assert_eq!(one, two, "{options:?}");
        assert!(number(&one, "/gc/units_collected") > 0, "{options:?}: {one:#}");
        assert_eq!(number(&one, "/gc/chunks_read"), number(&one, "/totals/data_chunks_read"), "{options:?}");
    }
}

/// W-27: what is written is what users wrote, less what was overwritten while it waited, and
/// what was collected.
#[test]
fn every_chunk_written_is_accounted_for() {
    let (_folder, trace) = skewed("20000");
    for (scheme, more) in [("elastic", &[][..]), ("was", &["--groups", "4"][..])] {
        let common =
            ["--trace", &trace, "--device", "memory", "--scheme", scheme, "--gc-unit", "4", "--verify"];
        let result = replay(&[&common, more].concat());
        let total = |key: &str| number(&result, &format!("/totals/{key}"));
        let written = total("user_chunks_written") - number(&result, "/cache/absorbed_chunks");
        assert_eq!(
            total("data_chunks_written"),
            written + number(&result, "/gc/chunks_rewritten"),
            "{scheme}"
        );
        let stripes = number(&result, "/stripes/full") + number(&result, "/stripes/short");
        assert_eq!(total("parity_chunks_written"), 2 * stripes, "{scheme}");
        assert_eq!(total("parity_chunks_read") + total("log_chunks_written"), 0, "{scheme}: W-21");
        assert_eq!(number(&result, "/commit/stripes"), 0, "{scheme}");
        assert_eq!(number(&result, "/verify/mismatches"), 0, "{scheme}");
    }
}

/// the working area of each SSD is given, the volume is what garbage leaves of it.
#[test]
fn devices_have_the_size_asked_for() {
    let (_folder, trace) = with_a_pause();
    let common = ["--trace", &trace, "--device", "null", "--scheme", "was"];
    let sized = |more: &[&str]| {
        let result = replay(&[&common, more].concat());
        assert!(number(&result, "/memory/bytes_per_chunk_hundredths") <= 1200, "{more:?}: {result:#}");
        (number(&result, "/config/array/chunks_per_device"), number(&result, "/config/array/stripes"))
    };
    assert_eq!(sized(&["--device-size", "256MiB", "--geometry", "7+1"]), (65_536, 65_536 - 13_107));
    assert_eq!(sized(&["--device-size", "256MiB", "--gc-threshold", "80"]), (65_536, 65_536 - 26_214));
    assert_eq!(sized(&["--device-size", "24MiB", "--gc-unit", "16"]).0, 6144);
    // Where the metadata of slightly smaller devices is a step smaller.
    assert_eq!(sized(&["--device-size", "2191872KiB", "--gc-unit", "64"]).0, 547_968);
    // A trace that needs more than that gets it, as far as collection can still work; its footprint
    // is whole MiB.
    let far = |stripe: u64| written(&format!("0,0,W,0,4096\n1,0,W,{},4096\n", (stripe * 6 - 1) * 4096));
    let run = |trace: &str, more: &[&str]| {
        let more = [&["--device-size", "256MiB", "--geometry", "6+2"], more].concat();
        [&["replay", "--json", "--device", "null", "--scheme", "elastic", "--trace", trace], &more[..]]
            .concat()
            .join("\n")
    };
    let (_most, most) = far(63_360);
    let output = elastripe(&run(&most, &[]).split('\n').collect::<Vec<_>>());
    assert!(output.status.success(), "{output:?}");
    let (_more, more) = far(63_361);
    refused(&run(&more, &[]).split('\n').collect::<Vec<_>>(), "--device-size 256 MiB");
}

#[test]
fn the_result_names_what_was_used() {
    let (_folder, trace) = with_a_pause();
    let common = ["--trace", &trace, "--device", "null"];
    let placement = |more: &[&str]| replay(&[&common, more].concat())["placement"].clone();
    let elastic = placement(&["--scheme", "elastic"]);
    assert_eq!((&elastic["policy"], &elastic["group_chunks"]), (&"single".into(), &6.into()));
    assert_eq!((&elastic["p_wait_ms"], &elastic["groups"]), (&200.0.into(), &Value::Null));
    let was = placement(&["--scheme", "was", "--gc-unit", "32", "--seed", "9"]);
    let expected = serde_json::json!({
        "policy": "was", "classes": 2, "hotness": "glru", "groups": 2, "gc": "greedy",
        "gc_threshold_percent": 90, "gc_group": "coldest", "group_chunks": 192, "p_wait_ms": null, "unit_rows": 32,
        "recent_entries": null, "midas_groups": null,
        "glru": { "lists": 128, "items": 8, "insert_percent": 50, "thresholds": [2] }, "seed": 9,
    });
    assert_eq!(was, expected);
    let sepbit = placement(&["--scheme", "was", "--placement", "sepbit", "--gc", "cost-benefit"]);
    assert_eq!((&sepbit["policy"], &sepbit["gc"]), (&"sepbit".into(), &"cost-benefit".into()));
    assert_eq!(placement(&["--scheme", "raid"]), Value::Null);
    let text = elastripe(&[&["replay"], &common[..], &["--scheme", "was"]].concat());
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("was, 2 groups by glru; 384 chunks wait") && text.contains("full stripes"),
        "{text}"
    );
}

#[test]
fn options_of_other_schemes_are_refused() {
    let (_folder, trace) = with_a_pause();
    let run = |scheme: &str, options: &[&str], what: &str| {
        let common = ["replay", "--trace", &trace, "--device", "null", "--scheme", scheme];
        refused(&[&common, options].concat(), what);
    };
    for scheme in ["raid", "parity-log", "eplog"] {
        for option in [
            ["--placement", "was"],
            ["--groups", "2"],
            ["--hotness", "hca"],
            ["--gc", "greedy"],
            ["--gc-threshold", "90%"],
            ["--gc-group", "own"],
            ["--group-chunks", "64"],
            ["--p-wait", "0ms"],
            ["--gc-unit", "64"],
        ] {
            run(scheme, &option, &format!("{} {}: scheme {scheme}", option[0], option[1]));
        }
    }
    run("elastic", &["--cache-stripes", "1"], "--group-chunks");
    run("was", &["--cache-slots", "1"], "--group-chunks");
    run("elastic", &["--hotness", "hca"], "--hotness hca: scheme elastic is to place chunks by single");
    run("was", &["--placement", "sepbit", "--gc-group", "own"], "classes of its own");
    run("was", &["--log-devices", "1"], "takes 0, or 2 or more");
    run("was", &["--p-wait", "soon"], "200ms");
    run("was", &["--gc-threshold", "0"], "1 to 99");
    let nbd = ["replay", "--trace", &trace, "--nbd", "unix:/nowhere", "--gc", "greedy"];
    refused(&nbd, "the server's affair");
}

#[test]
fn bench_measures_all_schemes_side_by_side() {
    let common = [
        "bench",
        "--json",
        "--device",
        "null",
        "--geometry",
        "4+2",
        "--volume-size",
        "8MiB",
        "--rounds",
        "2",
    ];
    let options =
        ["--schemes", "raid,parity-log,eplog,elastic,was", "--workload", "burst,randwrite,seqwrite,rebuild"];
    let output = elastripe(
        &[&common, &options[..], &["--gc-unit", "8", "--requests", "8000", "--groups", "3"]].concat(),
    );
    assert!(output.status.success(), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = json["results"].as_array().unwrap();
    assert_eq!(rows.len(), 20);
    for row in rows {
        let scheme = row["scheme"].as_str().unwrap();
        let is_elastic = ["elastic", "was"].contains(&scheme);
        assert_eq!(row["over_eplog"].is_null(), scheme == "eplog", "{row:#}");
        assert_eq!(row["placement"].is_null(), !is_elastic, "{row:#}");
        let collects = is_elastic && row["workload"] == "randwrite";
        assert_eq!(number(row, "/gc/units_collected") > 0, collects, "{row:#}");
        if is_elastic && row["workload"] == "seqwrite" {
            // The last ones were answered and not yet recorded.
            let (full, count) = (number(row, "/stripes/full"), number(row, "/count"));
            assert!(full <= count && count - full < 100, "{row:#}");
            // A write that must not be torn is planned at once, of whatever classes its chunks are.
            let short = number(row, "/stripes/short");
            assert!(if scheme == "was" { short * 100 < full } else { short == 0 }, "{row:#}");
        }
    }
    let none = ["bench", "--schemes", "raid,eplog"];
    refused(&[&none[..], &["--gc", "greedy"]].concat(), "--gc greedy");
    refused(&[&none[..], &["--gc-unit", "8"]].concat(), "--gc-unit 8");
    refused(&["bench", "--schemes", "raid,elastic", "--groups", "3"], "--groups 3");
    refused(
        &["bench", "--volume-size", "8MiB", "--device-size", "1MiB"],
        "--device-size: found 1048576 bytes",
    );
    let sized = [
        "--schemes",
        "was",
        "--workload",
        "burst",
        "--gc-unit",
        "8",
        "--requests",
        "100",
        "--device-size",
        "4MiB",
    ];
    let output = elastripe(&[&common, &sized[..]].concat());
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&json["config"]["device_bytes"], &json["config"]["spare_percent"]),
        (&(4 << 20).into(), &Value::Null)
    );
}

/// A volume whose table would not fit into this machine, 128 MiB of which are used: with room for few pages
/// they are read again and again, with room for all none is.
#[test]
fn bench_uses_a_part_of_a_volume_of_any_size() {
    let bench = |table_memory: &str| {
        let output = elastripe(&[
            "bench",
            "--json",
            "--device=null",
            "--schemes=eplog",
            "--workload=sustained",
            "--volume-size=1TiB",
            "--working-set=128MiB",
            "--requests=20000",
            "--table-memory",
            table_memory,
        ]);
        assert!(output.status.success(), "{output:?}");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["config"]["working_set_bytes"], 128 << 20, "{json:#}");
        json["results"][0].clone()
    };
    let (small, large) = (bench("1MiB"), bench("1GiB"));
    let reads = |row: &Value| row["table_pages_read_per_request"].as_f64().unwrap();
    assert!(reads(&small) > 0.1 && reads(&large) == 0.0, "{small:#} {large:#}");
    let metadata = |row: &Value| row["metadata_bytes_per_user_byte"].as_f64().unwrap();
    assert!(metadata(&small) > metadata(&large), "{small:#} {large:#}");
    assert!(number(&large, "/memory/fixed_bytes") < 64 << 20, "{large:#}");
}
