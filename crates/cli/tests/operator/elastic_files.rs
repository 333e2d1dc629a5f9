//! Arrays of files with the schemes elastic and was: made, written until garbage is collected, without a
//! device, with a new one, started again, and every byte compared all the way.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{Rig, device, has, qemu_script};
use serde_json::Value;

const SIZE: [&str; 2] = ["--file-size", "24MiB"];
/// Small units, so that there are many.
const UNIT: [&str; 2] = ["--gc-unit", "4"];

/// Creates data devices d0.. and writes a trace `t` that overwrites the volume several times.
fn with_array(scheme: &str, parity: usize, data_count: usize, options: &[&str]) -> (Rig, Vec<String>) {
    let rig = Rig::new();
    let members: Vec<String> = (0..data_count + parity).map(|index| format!("d{index}")).collect();
    let parity = parity.to_string();
    let mut args = vec!["create", "--scheme", scheme, "--parity", &parity, "--name", "tank"];
    args.extend(SIZE);
    args.extend(options);
    args.push("--data");
    args.extend(members.iter().map(String::as_str));
    rig.run(&args).ok();
    let trace = ["trace", "generate", "--profile", "uniform", "--range", "24MiB", "--seed", "3"];
    rig.run(&[&trace[..], &["--requests", "24000", "t.csv"]].concat()).ok();
    (rig, members)
}

fn names(members: &[String]) -> Vec<&str> {
    members.iter().map(String::as_str).collect()
}

#[track_caller]
fn replayed(rig: &Rig, members: &[&str], options: &[&str]) -> Value {
    let common = ["--trace", "t.csv", "--overwrite", "--verify", "--json"];
    let result = rig.on("replay", members, &[&common, options].concat()).ok().json();
    assert_eq!(result["verify"]["mismatches"], 0);
    assert!(result["verify"]["sectors_checked"].as_u64().unwrap() > 1000);
    result
}

/// Collects garbage, loses a device, writes without it, gets another, is scrubbed, and starts again.
fn live(scheme: &str, parity: usize, data_count: usize, options: &[&str], run: &[&str]) {
    let (rig, members) = with_array(scheme, parity, data_count, &[&UNIT[..], options].concat());
    let members = names(&members);
    let first = replayed(&rig, &members, run);
    assert!(first["gc"]["units_collected"].as_u64().unwrap() > 0, "{scheme} {options:?}: {first:#}");

    rig.on("fail", &members, &["--device", "data1", "--yes"]).ok();
    rig.on("status", &members, &[]).code(1);
    replayed(&rig, &members, run);
    rig.on("replace", &members, &[&["--device", "data1", "--with", "n1"], &SIZE[..]].concat()).ok();
    let mut now = members.clone();
    now[1] = "n1";
    let status = rig.on("status", &now, &["--json"]).ok().json();
    assert_eq!(device(&status, "data1")["state"], "healthy");
    let scrub = rig.on("scrub", &now, &[]).ok();
    assert!(scrub.out.contains("0 chunks healed, 0 code words lost, 0 stripes"), "{scrub:?}");
    // Another device may go now: the new one is needed to read.
    rig.on("fail", &now, &["--device", "data0", "--yes"]).ok();
    replayed(&rig, &now, &[run, &["--head", "3000"]].concat());
}

#[test]
fn elastic_with_xor() {
    live("elastic", 1, 3, &[], &[]);
}

#[test]
fn elastic_with_reed_solomon_and_cost_benefit_victims() {
    live("elastic", 2, 2, &[], &["--gc", "cost-benefit", "--gc-threshold", "80%", "--p-wait", "0ms"]);
}

#[test]
fn was_with_row_diagonal_parity() {
    live("was", 2, 3, &["--code", "rdp"], &["--groups", "3", "--gc-group", "own"]);
}

#[test]
fn was_with_xor_placed_by_lifespans() {
    live("was", 1, 2, &[], &["--placement", "sepbit", "--group-chunks", "8", "--p-wait", "never"]);
}

#[test]
fn was_with_three_parities() {
    live("was", 3, 2, &["--code", "cauchy", "--reserve", "40%"], &["--hotness", "hca", "--sync"]);
}

#[test]
fn what_the_commands_show_of_it() {
    let (rig, members) = with_array("was", 2, 2, &[]);
    let members = names(&members);
    replayed(&rig, &members, &[]);
    let stopped = rig.on("status", &members, &["--json"]).ok().json();
    assert_eq!(
        (&stopped["unit_rows"], &stopped["log_count"], &stopped["gc"]),
        (&64.into(), &0.into(), &Value::Null)
    );
    let reserve = stopped["reserve_permille"].as_u64().unwrap();
    assert!(
        (200..=230).contains(&reserve),
        "a fifth is left for garbage by default, and what is kept for collection, found {reserve}"
    );

    let binary = env!("CARGO_BIN_EXE_elastripe");
    let status = |more: &str| {
        let script = format!("{binary} status d0 {more}");
        rig.serve_run(&members, &script, &["--groups", "4", "--gc", "greedy"]).ok()
    };
    let text = status("").out;
    for part in [
        "shape: was 2+2, code cauchy, 4 KiB chunks, units of 64 rows;",
        "% of each data device left for garbage",
        "units free; since the start 0 units collected, 0 chunks moved; 0 full and 0 short stripes written",
        "placement 4.57 KiB",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(!text.contains("commit:"), "there is no parity commit: {text}");
    let served = status("--json").json();
    let (gc, memory) = (&served["gc"], &served["memory"]);
    assert!(gc["units"].as_u64().unwrap() > 80 && gc["units_collected"] == 0, "{gc}");
    assert!(gc["rows_free"].as_u64().unwrap() < 64 * gc["units"].as_u64().unwrap(), "{gc}");
    assert!(memory["bytes_per_chunk_hundredths"].as_u64().unwrap() <= 1200, "{memory}");
    assert!(
        (4600..5200).contains(&memory["placement_bytes"].as_u64().unwrap()),
        "W-06, about 5 KB: {memory}"
    );
}

/// Records of an array that was not stopped: what users wrote, and what garbage collection moved.
#[test]
fn inspect_shows_elastic_records() {
    let (rig, members) = with_array("elastic", 2, 2, &UNIT);
    let members = names(&members);
    replayed(&rig, &members, &[]);
    let mut moved = 0;
    let all = rig.on("inspect", &members, &["--records", "--json"]).ok().json();
    for member in all.as_array().unwrap() {
        assert_eq!(member["superblocks"][0]["unit_rows"], 4);
        for frame in member["journal"]["frames"].as_array().unwrap() {
            for record in frame["records"].as_array().unwrap() {
                let count = record["members"].as_array().unwrap().len();
                assert_eq!(record["kind"], "elastic_stripe");
                assert_eq!(record["crcs"].as_array().unwrap().len(), count + 2);
                moved += record["members"].as_array().unwrap().iter().filter(|one| one["from"] != 0).count();
            }
        }
    }
    assert!(moved > 0, "garbage collection leaves records");
    let text = rig.on("inspect", &members, &["--records"]).ok().out;
    assert!(text.contains("elastic stripe in row ") && text.contains(" moved from place "), "{text}");
    let summary = rig.on("inspect", &["d0"], &[]).ok().out;
    assert!(summary.contains(" elastic stripe"), "{summary}");
}

#[test]
fn a_server_is_told_what_does_not_concern_its_scheme() {
    let (rig, members) = with_array("elastic", 2, 2, &[]);
    let members = names(&members);
    let before = rig.fingerprint(&members);
    let refused = |options: &[&str], words: &[&str]| rig.serve_run(&members, "true", options).refused(words);
    refused(&["--cache-stripes", "4"], &["--cache-stripes 4", "--group-chunks"]);
    refused(&["--cache-slots", "4"], &["--cache-slots 4", "scheme elastic"]);
    refused(&["--groups", "3"], &["--groups 3", "--placement was"]);
    refused(&["--groups", "9"], &["9", "from 2 to 4"]);
    refused(&["--placement", "lru"], &["lru", "single, was, sepbit or midas"]);
    refused(&["--p-wait", "200"], &["200", "never"]);
    refused(&["--gc-threshold", "100%"], &["100", "1 to 99"]);
    rig.on("replay", &members, &["--trace", "t.csv", "--gc-unit", "8"]).refused(&["--gc-unit 8", "--device"]);
    assert_eq!(rig.fingerprint(&members), before);

    let rig = Rig::with_array();
    for options in
        [["--placement", "was"], ["--gc", "greedy"], ["--p-wait", "never"], ["--group-chunks", "9"]]
    {
        rig.serve_run(&crate::common::MEMBERS, "true", &options).refused(&[
            options[0],
            "scheme eplog",
            "only elastic",
        ]);
    }
}

#[test]
fn arrays_that_cannot_be_are_refused() {
    let rig = Rig::new();
    let create = |args: &[&str]| rig.run(&[&["create", "--file-size", "32MiB"], args].concat());
    let four = ["--parity", "2", "--data", "a", "b", "c", "d"];
    create(&[&["--scheme", "was"], &four[..], &["--log", "x"]].concat())
        .refused(&["scheme was", "1 log devices given, expected 0"]);
    create(&[&["--scheme", "eplog", "--gc-unit", "64"], &four[..]].concat()).refused(&[
        "--gc-unit 64",
        "scheme eplog",
        "elastic and was",
    ]);
    create(&[&["--scheme", "elastic", "--gc-unit", "1"], &four[..]].concat())
        .refused(&["1", "from 2 to 65536"]);
    create(&[&["--scheme", "elastic", "--gc-unit", "65537"], &four[..]].concat()).refused(&["65537"]);
    create(&[&["--scheme", "elastic", "--gc-unit", "1024"], &four[..]].concat()).refused(&["too small"]);
    create(&[&["--scheme", "elastic", "--code", "rdp"], &["--parity", "1", "--data", "a", "b"][..]].concat())
        .refused(&["rdp"]);
    assert_eq!(std::fs::read_dir(rig.dir.path()).unwrap().count(), 0, "no file was left behind");
}

/// What was flushed survives a kill together with the loss of two devices; what waited for its group was
/// flushed as well.
#[test]
fn a_killed_server_and_two_lost_devices() {
    if !has("qemu-io") {
        return;
    }
    for scheme in ["elastic", "was"] {
        let (rig, members) = with_array(scheme, 2, 3, &["--code", "rdp"]);
        let members = names(&members);
        let server = rig.serve(&members, &["--p-wait", "never"]);
        rig.qemu_io(&["write -P 1 0 8M", "write -P 2 4M 64k", "write -P 3 8M 4k", "flush"]).ok();
        rig.qemu_io(&["write -P 4 1M 4k", "write -P 5 1028k 512", "discard 2M 64k", "flush"]).ok();
        server.kill();
        let checks = [
            "read -P 1 0 1M",
            "read -P 2 4M 64k",
            "read -P 3 8M 4k",
            "read -P 4 1M 4k",
            "read -P 5 1028k 512",
        ];
        // 1053184 is the sector behind the one that was written alone.
        let script = qemu_script(&[&checks[..], &["read -P 1 1053184 512", "read -P 0 2M 64k"]].concat());
        let ran = rig.serve_run(&members[2..], &script, &["--degraded"]).ok();
        assert!(ran.err.contains("not stopped in order"), "{ran:?}");
        // The two were left behind; the array goes on with new ones.
        let left = &members[2..];
        for (device, new) in [("data0", "n0"), ("data1", "n1")] {
            let mut named = left.to_vec();
            named.extend(["n0"].into_iter().filter(|_| device == "data1"));
            rig.on("replace", &named, &[&["--device", device, "--with", new], &SIZE[..]].concat()).ok();
        }
        let now = [left, &["n0", "n1"]].concat();
        rig.on("status", &now, &[]).ok();
        rig.serve_run(&now, &script, &[]).ok();
    }
}

#[test]
fn status_says_what_a_running_array_places_and_collects_by() {
    let (rig, members) = with_array("was", 1, 2, &UNIT);
    let members = names(&members);
    let options =
        ["--placement", "sepbit", "--recent-entries", "100", "--gc", "cost-benefit", "--p-wait", "20ms"];
    let server = rig.serve(&members, &options);
    let status = rig.status(&members);
    let found = &status["placement"];
    assert_eq!((&found["policy"], &found["classes"]), (&"sepbit".into(), &6.into()), "{found}");
    assert_eq!((&found["gc"], &found["recent_entries"]), (&"cost-benefit".into(), &100.into()), "{found}");
    assert_eq!((&found["p_wait_ms"], &found["unit_rows"]), (&20.0.into(), &4.into()), "{found}");
    assert!(found["groups"].is_null() && found["gc_group"].is_null(), "{found}");
    let text = rig.on("status", &members, &[]).ok().out;
    let line = "groups: sepbit; 8 chunks wait for each other, 20ms at most; gc cost-benefit of units of 4 rows from 90 % in use";
    assert!(text.contains(line), "{text}");
    server.stop().ok();
    assert!(rig.status(&members)["placement"].is_null(), "nothing runs");
}
