//! What was in the way of somebody who had only the README and `--help`.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig, device, until};

/// Something to copy and to look at, so that it does not end at once.
const SLOWLY: [&str; 2] = ["--rebuild-rate", "1MiB/s"];

#[test]
fn every_command_takes_the_name_of_an_array_that_is_served() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    let uuid = rig.status(&["tank"])["uuid"].as_str().unwrap().to_owned();
    assert_eq!(rig.status(&[&uuid])["name"], "tank");
    rig.on("scrub", &["tank"], &["--wait"]).ok();
    rig.on("rate", &["tank"], &["--rate", "off"]).ok();
    rig.on("commit", &["tank"], &[]).ok();
    rig.on("checkpoint", &["tank"], &[]).ok();
    rig.on("clear", &["tank"], &[]).ok();
    rig.on("wait", &["tank"], &[]).ok();
    rig.on("fail", &["tank"], &["--device", "data1"]).ok();
    rig.on("online", &["tank"], &["--device", "data1", "--wait"]).ok();
    rig.on("add", &["tank"], &["--spare", "s0", "--file-size", "32MiB"]).ok();
    rig.on("remove", &["tank"], &["--spare", "s0"]).ok();
    let new = ["--device", "data1", "--with", "n1", "--file-size", "32MiB", "--wait"];
    rig.on("replace", &["tank"], &new).ok();
    rig.on("rename", &[&uuid], &["--name", "lake"]).ok();
    // What is there is a path, whatever arrays are called.
    std::fs::write(rig.path("lake"), "water").unwrap();
    rig.on("status", &["lake"], &[]).code(4);
    std::fs::remove_file(rig.path("lake")).unwrap();
    rig.on("status", &["tank"], &[]).code(4).refused(&["tank", "no array of this name", "scan"]);
    rig.on("status", &["./tank"], &[]).code(4).refused(&["No such file"]);
    rig.on("stop", &["lake"], &[]).ok();
    server.wait().ok();
}

#[test]
fn every_command_takes_the_name_of_an_array_that_is_kept() {
    let rig = Rig::with_array();
    rig.run(&["scan", ".", "--write"]).ok();
    assert_eq!(rig.status(&["tank"])["state"], "healthy");
    rig.on("scrub", &["tank"], &[]).ok();
    rig.on("stop", &["tank"], &[]).refused(&["not being served"]);
    let new = ["--device", "data0", "--with", "n0", "--file-size", "32MiB"];
    rig.on("replace", &["tank"], &new).ok();
    // The one before it is told from the one that has its place.
    let found = rig.run(&["scan", "."]).ok();
    assert!(
        found.out.contains("./d0 (was, and is no member any more: another device has its place)\n"),
        "{found:?}"
    );
    assert!(found.out.contains("./n0\n"), "{found:?}");
    // One that left has its place still.
    rig.on("fail", &["tank"], &["--device", "data1", "--yes"]).ok();
    let found = rig.run(&["scan", "."]).ok();
    assert!(
        found.out.contains("(out of service; it may come back: `online --device data1 --with ./d1`)"),
        "{found:?}"
    );
    rig.on("online", &["tank"], &["--device", "data1", "--with", "./d1"]).ok();
    let found = rig.run(&["scan", "."]).ok();
    assert!(found.out.contains("./d1\n"), "{found:?}");
    let renamed = rig.on("rename", &["tank"], &["--name", "lake"]).ok();
    assert!(renamed.err.contains("tank.toml still has the old name"), "{renamed:?}");
    assert_eq!(rig.status(&["tank"])["name"], "lake", "by the name of the file");
}

#[test]
fn an_array_whose_server_was_killed_is_down_whoever_names_it() {
    let rig = Rig::with_array();
    rig.serve(&MEMBERS, &[]).kill();
    for named in [&[][..], &["tank"], &["d0"], &MEMBERS] {
        let down = rig.on("status", named, &[]).code(2);
        assert!(down.out.contains("DOWN") && down.out.contains("elastripe serve"), "{named:?}: {down:?}");
    }
    assert_eq!(rig.status(&["d3"])["source"], "dead");
    rig.on("stop", &["tank"], &[]).refused(&["ended without being stopped"]);
    assert_eq!(rig.status(&MEMBERS)["state"], "healthy");
}

#[test]
fn members_that_work_are_replaced_one_at_a_time() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &SLOWLY);
    let replace = |device, with| {
        rig.on("replace", &["tank"], &["--device", device, "--with", with, "--file-size", "32MiB"])
    };
    replace("data0", "n0").ok();
    replace("data1", "n1").refused(&["data1", "not yet", "data0", "one member", "elastripe wait"]);
    assert!(!rig.path("n1").exists(), "what a command made that failed");
    let stop = |device| rig.on("replace", &["tank"], &["--device", device, "--stop"]);
    stop("data1").refused(&["nothing to stop"]);
    assert!(stop("data0").ok().out.contains("data0 stays"));
    until("it is called off", || device(&rig.status(&["tank"]), "data0")["replacement"].is_null());
    assert_eq!(rig.status(&["tank"])["state"], "healthy");
    // Both are free now.
    replace("data1", "n0").ok();
    let mut wait = rig.command(&["wait", "tank"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(wait.try_wait().unwrap().is_none(), "it is waited for");
    rig.on("rate", &["tank"], &["--rate", "off"]).ok();
    let waited = wait.wait_with_output().unwrap();
    assert!(waited.status.success() && String::from_utf8(waited.stdout).unwrap().contains("has taken"));
    assert!(device(&rig.status(&["tank"]), "data1")["path"].as_str().unwrap().ends_with("n0"));
    server.stop().ok();
}

#[test]
fn who_waits_for_a_replacement_that_is_called_off_learns_of_it() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &SLOWLY);
    // A rebuild that was completed before is another matter.
    rig.on("rate", &["tank"], &["--rate", "off"]).ok();
    rig.on("fail", &["tank"], &["--device", "data2"]).ok();
    rig.on("online", &["tank"], &["--device", "data2", "--full", "--wait"]).ok();
    rig.on("rate", &["tank"], &["--rate", "1MiB/s"]).ok();
    let new = ["replace", "tank", "--device", "data2", "--with", "n2", "--file-size", "32MiB", "--wait"];
    let waiting = rig.command(&new).stderr(std::process::Stdio::piped()).spawn().unwrap();
    until("it is being replaced", || !device(&rig.status(&["tank"]), "data2")["replacement"].is_null());
    rig.on("replace", &["tank"], &["--device", "data2", "--stop"]).ok();
    let ended = waiting.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(String::from_utf8(ended.stderr).unwrap().contains("did not take the place"));
    server.stop().ok();
}

#[test]
fn a_member_out_of_service_comes_with_the_commands_that_help() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    rig.on("fail", &["tank"], &["--device", "data1"]).ok();
    let status = rig.on("status", &["tank"], &[]).code(1);
    assert!(status.out.contains("elastripe online tank --device data1,"), "{status:?}");
    assert!(status.out.contains("elastripe replace tank --device data1 --with"), "{status:?}");
    rig.on("fail", &["tank"], &["--device", "data1"]).refused(&["out of service already", "online"]);
    rig.on("online", &["tank"], &["--device", "data1", "--wait"]).ok();
    // What is gone cannot come back.
    std::fs::remove_file(rig.path("d1")).unwrap();
    rig.on("fail", &["tank"], &["--device", "data1"]).ok();
    let status = rig.on("status", &["tank"], &[]).code(1);
    assert!(!status.out.contains("elastripe online"), "{status:?}");
    server.stop().ok();
}

#[test]
fn create_says_how_to_go_on_and_what_is_not_used() {
    let rig = Rig::new();
    rig.run(&["create", "d0", "d1"]).code(2).refused(&["--data"]);
    rig.run(&["create", "--level=5", "--data", "d0", "d1"]).code(2).refused(&["--parity 1"]);
    for (name, mib) in [("d0", 64), ("d 1", 48), ("d2", 64)] {
        std::fs::File::create(rig.path(name)).unwrap().set_len(mib << 20).unwrap();
    }
    let made = rig.run(&["create", "--parity", "1", "--data", "d0", "d 1", "d2"]).ok();
    assert!(made.out.contains("next: elastripe serve d0 'd 1' d2 --nbd unix:"), "{made:?}");
    assert!(made.out.contains("note: d 1 has only 48 MiB, so 32 MiB of the others"), "{made:?}");
    rig.serve_run(&["d0", "d0", "d2"], "true", &[]).refused(&["d0: named twice"]);
    rig.serve_run(&["d0", "./d0", "d2"], "true", &[]).refused(&["named twice, also as ./d0"]);
    rig.run(&["add", "d0", "d 1", "d2", "--spare", "s0", "--file-size", "16MiB"])
        .refused(&["s0: holds 16 MiB (16777216 bytes), expected at least 4"]);
}

#[test]
fn a_replay_asks_before_it_overwrites_what_somebody_wrote() {
    let rig = Rig::with_array();
    rig.run(&[
        "trace",
        "generate",
        "--profile",
        "uniform",
        "--requests",
        "50",
        "--range",
        "1MiB",
        "--seed",
        "1",
        "t.csv",
    ])
    .ok();
    let replay = |more: &[&str]| rig.on("replay", &MEMBERS, &[&["--trace", "t.csv"], more].concat());
    replay(&[]).ok();
    let before = rig.fingerprint(&MEMBERS);
    replay(&[]).refused(&["was written to before", "--overwrite", "--device memory"]);
    assert_eq!(rig.fingerprint(&MEMBERS), before);
    replay(&["--overwrite"]).ok();
    replay(&["--overwrite", "--scheme", "raid"]).code(2);
}

#[test]
fn an_array_that_is_served_without_all_members_says_so_at_once() {
    let rig = Rig::with_array();
    rig.on("fail", &MEMBERS, &["--device", "data1"]).ok();
    let script = "echo \"$ELASTRIPE_EVENT: $ELASTRIPE_MESSAGE\" >> heard";
    let mut server = rig.serve(&MEMBERS, &["--on-event", script]);
    server.await_log("data1 out of service; it bears 1 more losses");
    until("the event is heard", || {
        std::fs::read_to_string(rig.path("heard")).is_ok_and(|heard| heard.starts_with("degraded: "))
    });
    // What a scrub could not look at is not passed over in silence.
    let scrub = rig.on("scrub", &["tank"], &["--wait"]).code(1);
    assert!(scrub.out.contains("NOT CHECKED, as not in service: data1"), "{scrub:?}");
    rig.on("online", &["tank"], &["--device", "data1", "--with", "d1", "--wait"]).ok();
    let scrub = rig.on("scrub", &["tank"], &["--wait"]).ok();
    assert!(!scrub.out.contains("NOT CHECKED"), "{scrub:?}");
    server.stop().ok();
}

#[test]
fn a_limit_is_shown_as_long_as_it_holds() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    assert!(rig.status(&["tank"])["rate_limit_bytes_per_s"].is_null());
    rig.on("rate", &["tank"], &["--rate", "1MiB/s"]).ok();
    assert_eq!(rig.status(&["tank"])["rate_limit_bytes_per_s"], 1 << 20);
    let shown = rig.on("status", &["tank"], &[]).ok();
    assert!(shown.out.contains("limited to 1 MiB/s of each device"), "{shown:?}");
    rig.on("rate", &["tank"], &["--rate", "off"]).ok();
    assert!(rig.status(&["tank"])["rate_limit_bytes_per_s"].is_null());
    server.stop().ok();
}

#[test]
fn a_stop_tells_of_a_replacement_that_it_ends() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &SLOWLY);
    let new = ["--device", "data0", "--with", "n0", "--file-size", "32MiB"];
    rig.on("replace", &["tank"], &new).ok();
    let ran = server.stop().ok();
    assert!(ran.err.contains("n0 does not take the place of data0"), "{ran:?}");
}

#[test]
fn a_member_that_somebody_wrote_over_is_not_called_a_stranger() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    crate::common::scribble(&rig.path("d1"), 0, &[0; 64 << 10]);
    let status = rig.on("status", &MEMBERS, &[]);
    assert!(status.out.contains("d1: is served as data1, and its superblock is not there"), "{status:?}");
    assert!(!status.out.contains("name another path"), "{status:?}");
    rig.on("scrub", &["tank"], &["--wait"]).code(0);
    server.stop().ok();
}

#[test]
fn what_would_be_refused_is_refused_in_a_dry_run() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    rig.run(&[
        "create",
        "--dry-run",
        "--force",
        "--data",
        "d0",
        "--data",
        "d1",
        "--data",
        "d2",
        "--parity",
        "1",
    ])
    .refused(&["d0", "in use"]);
    server.stop().ok();
    std::fs::write(rig.path("small"), "hello").unwrap();
    let small = ["create", "--dry-run", "--data", "d9", "--data", "d8", "--data", "small", "--parity", "1"];
    rig.run(&[&small[..], &["--file-size", "32MiB"]].concat()).refused(&["small", "5 bytes", "data device"]);
    let shown = rig.run(&["examine", "small"]).code(1);
    assert!(shown.out.contains("no room for one") && !shown.out.contains("zeros"), "{shown:?}");
    rig.run(&["scan", "nowhere"]).refused(&["nowhere", "nothing is there"]);
    rig.run(&["statsu"]).refused(&["statsu", "similar", "'status'"]);
    rig.run(&["trace", "generate", "t.csv"]).refused(&["--seed", "elastripe help trace generate"]);
}
