//! A member that works is replaced without the array being a member short at any moment.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig, device, every_scheme, has, until};

/// Members of an array with two data devices, a parity, and so many shards.
fn array(rig: &Rig, scheme: &str, has_log: bool, shards: &str) -> (Vec<&'static str>, &'static str) {
    let size = if scheme == "elastic" || scheme == "was" { "96MiB" } else { "36MiB" };
    let mut create = vec!["create", "--scheme", scheme, "--parity", "1", "--shards", shards];
    create.extend(["--file-size", size, "--data", "d0", "d1", "d2"]);
    let mut members = vec!["d0", "d1", "d2"];
    if has_log {
        create.extend(["--log", "l0"]);
        members.push("l0");
    }
    rig.run(&create).ok();
    (members, size)
}

#[test]
fn a_member_that_works_stays_until_its_successor_is_whole() {
    if !has("qemu-io") {
        return;
    }
    for ((scheme, has_log), shards) in every_scheme().into_iter().zip(["1", "3", "1", "3", "1"]) {
        let rig = Rig::new();
        let (members, size) = array(&rig, scheme, has_log, shards);
        let server = rig.serve(&members, &["--rebuild-rate", "8MiB/s"]);
        rig.qemu_io(&["write -P 1 0 12M", "flush"]).ok();
        let replaced =
            rig.on("replace", &["d0"], &["--device", "data1", "--with", "new", "--file-size", size]).ok();
        assert!(replaced.out.contains("stays in service until then"), "{scheme}: {replaced:?}");
        let status = rig.status(&["d0"]);
        let member = device(&status, "data1");
        assert_eq!((&status["state"], &member["state"]), (&"healthy".into(), &"healthy".into()), "{scheme}");
        assert!(member["path"].as_str().unwrap().ends_with("d1"), "{scheme}: {member:#}");
        let copied = &member["replacement"];
        assert!(copied["path"].as_str().unwrap().ends_with("new"), "{scheme}: {member:#}");
        assert!(copied["done_bytes"].as_u64() < copied["total_bytes"].as_u64(), "{scheme}: {member:#}");
        rig.qemu_io(&["write -P 2 4M 128k", "write -P 3 9M 4k", "flush"]).ok();
        rig.on("rate", &["d0"], &["--rate", "off"]).ok();
        until("the successor is whole", || {
            let status = rig.status(&["d0"]);
            assert_eq!(status["state"], "healthy", "{scheme}: {status:#}");
            device(&status, "data1")["path"].as_str().unwrap().ends_with("new")
        });
        rig.qemu_io(&["write -P 4 1M 64k", "flush"]).ok();
        server.kill();
        // Whatever else is lost now, it has all that it ought to have.
        let mut left: Vec<&str> = members.iter().copied().filter(|name| *name != "d0").collect();
        left.iter_mut().for_each(|name| *name = if *name == "d1" { "new" } else { name });
        let server = rig.serve(&left, &["--degraded"]);
        let reads = [
            "read -P 1 0 1M",
            "read -P 4 1M 64k",
            "read -P 2 4M 128k",
            "read -P 3 9M 4k",
            "read -P 1 9220k 3068k",
        ];
        let ran = rig.qemu_io(&reads).ok();
        assert!(!ran.out.contains("failed"), "{scheme}: {ran:?}");
        server.stop().ok();
        // The one before it is nobody's, and is not mistaken for a member.
        let status = rig.status(&["d1", "new", "d2"]);
        assert!(device(&status, "data1")["path"].as_str().unwrap().ends_with("new"), "{scheme}: {status:#}");
    }
}

#[test]
fn a_replacement_that_is_cut_short_changes_nothing() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &["--rebuild-rate", "1MiB/s"]);
    rig.qemu_io(&["write -P 1 0 16M", "flush"]).ok();
    rig.on("replace", &["d0"], &["--device", "data2", "--with", "new", "--file-size", "64MiB"]).ok();
    rig.on("replace", &["d0"], &["--device", "data2", "--with", "other", "--file-size", "64MiB"])
        .refused(&["data2", "being replaced"]);
    server.kill();
    let server = rig.serve(&MEMBERS, &["--rebuild-rate", "1MiB/s"]);
    assert_eq!(rig.status(&["d0"])["state"], "healthy");
    // Nor does a stop.
    rig.on("replace", &["d0"], &["--device", "data2", "--with", "new"]).ok();
    server.stop().ok();
    let server = rig.serve(&MEMBERS, &[]);
    assert_eq!(rig.status(&["d0"])["state"], "healthy");
    let whole = rig.on("replace", &["d0"], &["--device", "data2", "--with", "new", "--wait"]).ok();
    assert!(whole.out.contains("in service until then"), "{whole:?}");
    assert!(device(&rig.status(&["d0"]), "data2")["path"].as_str().unwrap().ends_with("new"));
    rig.qemu_io(&["read -P 1 0 16M"]).ok();
    server.stop().ok();
    // The same of an array that nobody serves; the old device may be the new one.
    let members = ["d0", "d1", "new", "d3", "l0", "l1"];
    rig.on("replace", &members, &["--device", "data2", "--with", "d2"]).ok();
    let scrub = rig.on("scrub", &MEMBERS, &[]).ok();
    assert!(scrub.out.contains("0 chunks healed, 0 code words lost"), "{scrub:?}");
}

#[test]
fn a_member_that_fails_while_it_is_replaced_is_rebuilt_onto_the_new_device() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &["--rebuild-rate", "1MiB/s"]);
    rig.qemu_io(&["write -P 1 0 16M", "flush"]).ok();
    rig.on("replace", &["d0"], &["--device", "data2", "--with", "new", "--file-size", "64MiB"]).ok();
    rig.on("fail", &["d0"], &["--device", "data2"]).ok();
    rig.on("rate", &["d0"], &["--rate", "off"]).ok();
    until("the new device is rebuilt", || {
        let status = rig.status(&["d0"]);
        status["state"] == "healthy" && device(&status, "data2")["path"].as_str().unwrap().ends_with("new")
    });
    rig.qemu_io(&["read -P 1 0 16M"]).ok();
    server.stop().ok();
}

/// The server says how much it read of the member: 2 GiB hold 16 MiB of data, and metadata.
#[test]
fn what_holds_nothing_is_not_copied() {
    if !has("qemu-io") {
        return;
    }
    for scheme in ["eplog", "elastic"] {
        let rig = Rig::new();
        let mut create = vec!["create", "--scheme", scheme, "--parity", "1", "--file-size", "2GiB"];
        create.extend(["--data", "d0", "d1", "d2"]);
        let mut members = vec!["d0", "d1", "d2"];
        if scheme == "eplog" {
            create.extend(["--log", "l0"]);
            members.push("l0");
        }
        rig.run(&create).ok();
        let server = rig.serve(&members, &[]);
        rig.qemu_io(&["write -P 1 0 16M", "write -P 2 3G 16M", "flush"]).ok();
        rig.on("replace", &["d0"], &["--device", "data1", "--with", "new", "--file-size", "2GiB", "--wait"])
            .ok();
        let ran = server.stop();
        let said = ran.err.lines().find(|line| line.contains("has taken the place of data1"));
        let moved = said.and_then(|line| line.split("is free; ").nth(1)).unwrap_or_default();
        let mib = moved.split(" MiB read").next().and_then(|number| number.parse::<f64>().ok());
        assert!(mib.is_some_and(|mib| (16.0..512.0).contains(&mib)), "{scheme}: {moved:?} in {ran:?}");
        members.retain(|member| *member != "d0");
        members[0] = "new";
        let server = rig.serve(&members, &["--degraded"]);
        let ran = rig.qemu_io(&["read -P 1 0 16M", "read -P 2 3G 16M", "read -P 0 1G 16M"]).ok();
        assert!(!ran.out.contains("failed"), "{scheme}: {ran:?}");
        server.stop().ok();
    }
}
