//! Two arrays on one machine share a spare: the first that needs it takes it, the other one leaves it alone.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{Rig, device, has, until};

const SHARED: [&str; 4] = ["--shared-spare", "spare", "--shared-spare", "small"];

fn make(rig: &Rig, name: &str, members: &[&str]) {
    let create =
        ["create", "--scheme", "raid", "--parity", "1", "--file-size", "32MiB", "--name", name, "--data"];
    rig.run(&[&create[..], members].concat()).ok();
}

fn notes(status: &serde_json::Value) -> String {
    status["notes"].to_string()
}

#[test]
fn one_array_takes_it_and_the_other_says_that_it_is_gone() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::new();
    let (one, two) = (["a0", "a1", "a2"], ["b0", "b1", "b2"]);
    make(&rig, "one", &one);
    make(&rig, "two", &two);
    std::fs::File::create(rig.path("spare")).unwrap().set_len(32 << 20).unwrap();
    std::fs::File::create(rig.path("small")).unwrap().set_len(1 << 20).unwrap();

    let mut first = rig.serve(&one, &SHARED);
    rig.qemu_io(&["write -P 1 0 8M", "flush"]).ok();
    let second = rig.serve_at("unix:other", &two, &["--shared-spare", "spare"]);
    for member in ["a0", "b0"] {
        let status = rig.status(&[member]);
        assert_eq!(device(&status, "shared0")["state"], "spare", "{status:#}");
        assert_eq!(status["state"], "healthy");
    }
    let before = std::fs::read(rig.path("spare")).unwrap();
    assert!(before.iter().all(|&byte| byte == 0), "nothing is written on it before it is needed");

    rig.on("fail", &["a0"], &["--device", "data1", "--yes"]).ok();
    first.await_log("data1 is rebuilt");
    let status = rig.status(&["a0"]);
    assert_eq!(status["state"], "healthy", "{status:#}");
    assert!(device(&status, "data1")["path"].as_str().unwrap().ends_with("/spare"), "{status:#}");
    assert!(status["devices"].as_array().unwrap().iter().all(|one| one["name"] != "shared0"), "{status:#}");
    assert!(notes(&status).contains("bytes read and written of data1: since serving began"), "{status:#}");
    let shown = rig.on("status", &["a0"], &["--verbose"]).ok().out;
    assert!(
        shown.contains("HEALED: chunks and metadata blocks") && shown.contains("BYTES: of the place"),
        "{shown}"
    );
    rig.qemu_io(&["read -P 1 0 8M", "write -P 2 1M 1M", "flush"]).ok();

    until("the other server sees that it is gone", || {
        device(&rig.status(&["b0"]), "shared0")["state"] == "taken"
    });
    rig.on("fail", &["b0"], &["--device", "data1", "--yes"]).ok();
    let status = rig.status(&["b0"]);
    assert_eq!(status["state"], "degraded", "{status:#}");
    assert!(notes(&status).contains("is no spare now: it is of array one ("), "{status:#}");
    second.stop().ok();

    // Who took it has it after a restart with the same command line, whether it was stopped or killed.
    first.kill();
    let first = rig.serve(&["a0", "a2"], &SHARED);
    assert_eq!(rig.status(&["a0"])["state"], "healthy");
    rig.qemu_io(&["read -P 1 0 1M", "read -P 2 1M 1M", "read -P 1 2M 6M"]).ok();
    rig.on("scrub", &["a0"], &["--wait"]).ok();
    first.stop().ok();
    rig.on("status", &["a0", "spare", "a2"], &[]).ok();

    // Nobody has it open now, and it is left alone all the same.
    let fingerprint = rig.fingerprint(&["spare"]);
    let second = rig.serve(&two, &["--shared-spare", "spare"]);
    assert!(notes(&rig.status(&["b0"])).contains("is no spare now: it is of array one ("));
    assert_eq!(rig.status(&["b0"])["state"], "degraded");
    second.stop().ok();
    assert_eq!(rig.fingerprint(&["spare"]), fingerprint);

    // The other one gets its device when there is another spare.
    let mut second = rig.serve(&["b0", "b1", "b2"], &["--shared-spare", "new"]);
    assert_eq!(device(&rig.status(&["b0"]), "shared0")["state"], "taken", "it is not there yet");
    std::fs::File::create(rig.path("new")).unwrap().set_len(32 << 20).unwrap();
    second.await_log("data1 is rebuilt");
    second.stop().ok();
    rig.on("status", &["b0", "new", "b2"], &[]).ok();
}

#[test]
fn what_holds_anything_is_no_spare() {
    let rig = Rig::new();
    let members = ["a0", "a1", "a2"];
    make(&rig, "one", &members);
    make(&rig, "other", &["c0", "c1", "c2"]);
    let mut server =
        rig.serve(&members, &["--shared-spare", "c0", "--shared-spare", "ext4", "--shared-spare", "nowhere"]);
    // What a file system begins with.
    let mut content = vec![0u8; 32 << 20];
    content[1080..1082].copy_from_slice(&[0x53, 0xef]);
    std::fs::write(rig.path("ext4"), &content).unwrap();
    let fingerprint = rig.fingerprint(&["c0", "ext4"]);
    rig.on("fail", &["a0"], &["--device", "data2", "--yes"]).ok();
    until("it was looked at", || notes(&rig.status(&["a0"])).contains("is on it"));
    let status = rig.status(&["a0"]);
    for (name, why) in
        [("shared0", "it is of array other ("), ("shared1", "is on it"), ("shared2", "nowhere")]
    {
        assert_eq!(device(&status, name)["state"], "taken", "{status:#}");
        assert!(notes(&status).contains(why), "{status:#}");
    }
    assert_eq!(rig.fingerprint(&["c0", "ext4"]), fingerprint, "left alone");
    // It is free when somebody has said so.
    std::fs::write(rig.path("nowhere"), []).unwrap();
    std::fs::File::options().write(true).open(rig.path("nowhere")).unwrap().set_len(32 << 20).unwrap();
    server.await_log("data2 is rebuilt");
    assert_eq!(rig.fingerprint(&["c0", "ext4"]), fingerprint, "left alone");
    server.stop().ok();
}

#[test]
fn what_holds_something_of_unknown_kind_is_no_spare() {
    let rig = Rig::new();
    let members = ["a0", "a1", "a2"];
    make(&rig, "one", &members);
    // Nobody knows what these are: one begins with something, the other one ends with it.
    let (mut beginning, mut end) = (vec![0u8; 32 << 20], vec![0u8; 32 << 20]);
    beginning[..4].copy_from_slice(b"text");
    end[(32 << 20) - 1] = 1;
    std::fs::write(rig.path("beginning"), &beginning).unwrap();
    std::fs::write(rig.path("end"), &end).unwrap();
    std::fs::File::create(rig.path("late")).unwrap().set_len(32 << 20).unwrap();
    let shared = ["--shared-spare", "beginning", "--shared-spare", "end", "--shared-spare", "late"];
    let mut server = rig.serve(&members, &shared);
    let status = rig.status(&["a0"]);
    for (name, state) in [("shared0", "taken"), ("shared1", "taken"), ("shared2", "spare")] {
        assert_eq!(device(&status, name)["state"], state, "{status:#}");
    }
    assert!(notes(&status).contains("holds something of unknown kind: the byte at offset 0"), "{status:#}");
    assert!(notes(&status).contains("the byte at offset 33554431"), "{status:#}");

    // What was free when it was looked at is looked at again when it is needed.
    crate::common::scribble(&rig.path("late"), 16 << 20, b"text");
    let fingerprint = rig.fingerprint(&["beginning", "end", "late"]);
    rig.on("fail", &["a0"], &["--device", "data1", "--yes"]).ok();
    until("it was looked at", || device(&rig.status(&["a0"]), "shared2")["state"] == "taken");
    assert_eq!(rig.status(&["a0"])["state"], "degraded");
    assert_eq!(rig.fingerprint(&["beginning", "end", "late"]), fingerprint, "left alone");

    // What was wiped keeps all but its superblocks, and may be used.
    make(&rig, "two", &["b0", "b1", "b2"]);
    rig.run(&["wipe", "b0", "--yes"]).ok();
    std::fs::rename(rig.path("b0"), rig.path("late")).unwrap();
    server.await_log("data1 is rebuilt");
    assert_eq!(rig.fingerprint(&["beginning", "end"]), fingerprint[..2], "left alone");
    server.stop().ok();
}
