//! An array gets another name, and is served by its name alone.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig, has, until};
use std::path::Path;

fn name_of(rig: &Rig) -> String {
    rig.status(&MEMBERS)["name"].as_str().unwrap().to_owned()
}

fn rename(rig: &Rig, paths: &[&str], name: &str) -> crate::common::Ran {
    rig.on("rename", paths, &["--name", name])
}

#[test]
fn a_name_is_on_all_members_served_or_not() {
    let rig = Rig::with_array();
    assert!(rename(&rig, &MEMBERS, "lake").ok().out.contains("is called lake"));
    for member in MEMBERS {
        assert!(rig.run(&["examine", member, "--json"]).ok().out.contains("\"name\": \"lake\""), "{member}");
    }
    let server = rig.serve(&MEMBERS, &[]);
    rename(&rig, &["d2"], "sea").ok();
    // What was promised is kept whatever happens then.
    server.kill();
    assert_eq!(name_of(&rig), "sea");
    let mut record = std::fs::read_dir(rig.path("run")).unwrap().flatten().map(|entry| entry.path());
    let record = record.find(|path| path.extension().is_some_and(|ext| ext == "server")).unwrap();
    assert!(std::fs::read_to_string(record).unwrap().contains("\"sea\""), "the traces of the server");
    rename(&rig, &MEMBERS, "").ok();
    assert_eq!(name_of(&rig), "");
    assert_eq!(rig.status(&MEMBERS)["state"], "healthy");
}

#[test]
fn names_that_are_none_or_anothers_are_refused() {
    let rig = Rig::with_array();
    let before = rig.fingerprint(&MEMBERS);
    let long = "n".repeat(65);
    for bad in ["a/b", ".hidden", "a\nb", &long, "00112233-4455-6677-8899-aabbccddeeff"] {
        rename(&rig, &MEMBERS, bad).refused(&["--name"]);
    }
    assert_eq!(rig.fingerprint(&MEMBERS), before, "nothing was touched");
    rig.on("rename", &MEMBERS, &["--name=-x"]).refused(&["hyphen"]);
    rig.run(&["create", "--parity", "1", "--data", "e0", "e1", "--file-size", "32MiB", "--name", "a/b"])
        .refused(&["--name", "slash"]);
    rig.run(&["create", "--parity", "1", "--data", "e0", "e1", "--file-size", "32MiB", "--name", "lake"])
        .ok();
    let lake = rig.serve(&["e0", "e1"], &[]);
    rename(&rig, &MEMBERS, "lake").refused(&["lake", "called already"]);
    rename(&rig, &["e0"], "lake").ok();
    lake.stop().ok();
    // Its request is checked by the server, too, whoever makes it.
    let server = rig.serve(&MEMBERS, &[]);
    let uuid = rig.status(&["d0"])["uuid"].as_str().unwrap().to_owned();
    let socket = rig.path("run").join(format!("{uuid}.sock"));
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    std::io::Write::write_all(&mut stream, b"{\"op\":\"rename\",\"name\":\"a/b\"}\n").unwrap();
    let mut answer = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stream), &mut answer).unwrap();
    assert!(answer.contains("error") && answer.contains("slash"), "{answer}");
    server.stop().ok();
}

#[test]
fn a_server_that_is_killed_while_it_renames_leaves_one_name_or_the_other() {
    let rig = Rig::with_array();
    let mut now = "tank".to_owned();
    for round in 0..6u64 {
        let server = rig.serve(&MEMBERS, &[]);
        let next = format!("name{round}");
        let mut child = rig.command(&["rename", "d0", "--name", &next]).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(3 + 2 * round));
        server.kill();
        let promised = child.wait().unwrap().success();
        let name = name_of(&rig);
        assert!(name == next || (name == now && !promised), "{name}, was {now}, promised {promised}");
        now = name;
    }
    rig.serve_run(&MEMBERS, "true", &[]).ok();
    assert_eq!(rig.status(&MEMBERS)["state"], "healthy");
    assert_eq!(name_of(&rig), now);
}

#[test]
fn a_member_that_was_away_does_not_bring_the_old_name_back() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    rig.on("fail", &["d1"], &["--device", "data0"]).ok();
    rename(&rig, &["d1"], "lake").ok();
    server.stop().ok();
    // d0 is looked at first, and has the old one.
    let found = rig.run(&["scan", "."]).ok().out;
    assert!(found.contains("lake") && !found.contains("tank"), "{found}");
    rig.run(&["serve", "--array", "lake", ".", "--run", "true", "--degraded"]).ok();
    rig.on("online", &MEMBERS, &["--device", "data0"]).ok();
    assert!(rig.run(&["examine", "d0", "--json"]).ok().out.contains("\"name\": \"lake\""));
}

/// A server by name, until it answers.
fn served(rig: &Rig, args: &[&str], socket: &Path) -> std::process::Child {
    let child = rig.command(&[&["serve"], args].concat()).spawn().unwrap();
    until("it serves", || socket.exists());
    child
}

#[test]
fn nothing_is_kept_by_which_the_array_would_not_be_found() {
    let rig = Rig::with_array();
    let file = rig.path("etc/tank.toml");
    for some in [&["d0"][..], &["d0", "d1", "d2", "d3", "l0"]] {
        let ran = rig.on("scan", some, &["--write"]).code(1);
        assert!(ran.err.contains("tank: not kept: ") && ran.err.contains("log1 not found"), "{ran:?}");
        assert!(!file.exists(), "a file is never written again");
    }
    rig.on("scan", &MEMBERS, &["--write"]).ok();
    rig.run(&["serve", "tank", "--run", "true"]).ok();
    // In a directory it may turn up.
    std::fs::remove_file(&file).unwrap();
    std::fs::rename(rig.path("l1"), rig.path("run/l1")).unwrap();
    rig.run(&["scan", ".", "--write"]).ok();
    assert!(file.exists());
}

#[test]
fn options_of_the_command_line_count_alone() {
    let rig = Rig::with_array();
    rig.run(&["scan", ".", "--write"]).ok();
    let file = rig.path("etc/tank.toml");
    let mut text = std::fs::read_to_string(&file).unwrap();
    text.push_str("nbd = \"tcp:127.0.0.1:0\"\nallow = [\"127.0.0.0/8\", \"::1\"]\nsync = \"flush\"\n");
    text.push_str("shared-spare = [\"one\", \"two\"]\ndegraded = true\nvhost-user-blk = \"kept\"\n");
    std::fs::write(&file, text).unwrap();
    if !has("nbdinfo") {
        return;
    }
    let look = "nbdinfo --size \"$ELASTRIPE_URI\"; test -e kept";
    rig.run(&["serve", "tank", "--run", look]).ok();
    // Whoever names a network lets nobody else in.
    let other = ["--allow", "10.0.0.0/8", "--run", "nbdinfo --size \"$ELASTRIPE_URI\" || exit 7"];
    rig.run(&[&["serve", "tank"], &other[..]].concat()).code(7);
    let look = format!("{} status tank --json; test ! -e kept", env!("CARGO_BIN_EXE_elastripe"));
    let given = ["--shared-spare", "three", "--vhost-user-blk", "disk", "--sync", "always", "--degraded"];
    let ran = rig.run(&[&["serve", "tank", "--run", &look], &given[..]].concat()).ok();
    assert!(ran.out.contains("/three") && !ran.out.contains("/one"), "{ran:?}");
}

#[test]
fn what_is_kept_of_an_array_serves_it_by_name() {
    let rig = Rig::with_array();
    rig.run(&["create", "--parity", "1", "--data", "e0", "e1", "--file-size", "32MiB", "--name", "lake"])
        .ok();
    let written = rig.run(&["scan", ".", "--write"]).ok();
    assert!(written.err.contains("tank.toml: written") && written.err.contains("lake.toml: written"));
    let file = rig.path("etc/tank.toml");
    let mut text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(&format!("places = [\n    \"{}\",\n]", rig.dir.path().display())), "{text}");
    assert!(rig.run(&["scan", ".", "--write"]).ok().err.contains("there already"));

    let socket = rig.path("run/tank.nbd");
    let mut server = served(&rig, &["tank"], &socket);
    let status = rig.status(&["d0"]);
    assert!(status["uris"][0].as_str().unwrap().ends_with("run/tank.nbd"), "{status:#}");
    rig.on("stop", &["d0"], &[]).ok();
    assert!(server.wait().unwrap().success());

    // Options of the file count, and those of the command line more.
    text.push_str("nbd = [\"unix:one\", \"unix:two\"]\nread-only = true\nlog-time = \"never\"\n");
    std::fs::write(&file, &text).unwrap();
    let mut server = served(&rig, &["tank"], &rig.path("two"));
    assert!(rig.path("one").exists() && !socket.exists());
    rig.on("stop", &["d0"], &[]).ok();
    assert!(server.wait().unwrap().success());
    let uuid = status["uuid"].as_str().unwrap();
    let args = [uuid, "--nbd", "unix:three", "--log-time", "always"];
    let mut server = served(&rig, &args, &rig.path("three"));
    assert!(!rig.path("two").exists());
    rig.on("stop", &["d0"], &[]).ok();
    assert!(server.wait().unwrap().success());
    rig.run(&["serve", "tank", "--run", "true"]).ok();

    // The file goes with the name.
    rename(&rig, &MEMBERS, "sea").ok();
    assert!(rig.run(&["scan", ".", "--write"]).ok().err.contains("sea.toml"));
    assert!(!file.exists());
    rig.run(&["serve", "sea", "--run", "true"]).ok();
    let lake = std::fs::read_to_string(rig.path("etc/lake.toml")).unwrap();
    std::fs::write(&file, &lake).unwrap();
    rename(&rig, &MEMBERS, "tank").ok();
    let ran = rig.run(&["scan", ".", "--write"]).code(1);
    assert!(ran.err.contains("tank.toml: is of array") && ran.err.contains("lake.toml: there"), "{ran:?}");
}

#[test]
fn a_name_leads_to_the_members_for_as_long_as_no_server_has_ended_in_order() {
    let rig = Rig::with_array();
    rig.serve(&MEMBERS, &[]).kill();
    for command in [&["commit", "tank"][..], &["scrub", "tank", "--wait"], &["status", "tank"]] {
        rig.run(command).ok();
        rig.run(command).ok();
    }
    rename(&rig, &["tank"], "lake").ok();
    rig.run(&["status", "tank"]).refused(&["tank", "no array of this name"]);
    std::fs::File::create(rig.path("new")).unwrap().set_len(64 << 20).unwrap();
    let replace = ["replace", "lake", "--device", "data1", "--with", "new", "--wait"];
    rig.run(&replace).ok();
    std::fs::remove_file(rig.path("d1")).unwrap();
    let status: serde_json::Value =
        serde_json::from_str(&rig.run(&["status", "lake", "--json"]).ok().out).unwrap();
    assert_eq!(status["state"], "healthy", "{status:#}");
    rig.run(&["serve", "lake", "--run", "true"]).ok();
    // In order: from then on it is known by what is kept of it, or not at all.
    rig.run(&["status", "lake"]).refused(&["lake", "no array of this name"]);
}

#[test]
fn a_file_that_makes_no_sense_is_named_and_nothing_is_touched() {
    let rig = Rig::with_array();
    rig.run(&["scan", ".", "--write"]).ok();
    let file = rig.path("etc/tank.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let before = rig.fingerprint(&MEMBERS);
    for (line, word) in [
        ("colour = \"red\"", "--colour"),
        ("threads = \"many\"", "many"),
        ("run = \"true\"", "serve.run"),
        ("nbd = [", "tank.toml"),
    ] {
        std::fs::write(&file, format!("{text}{line}\n")).unwrap();
        rig.run(&["serve", "tank", "--run", "true"]).refused(&["tank.toml", word]);
    }
    rig.run(&["serve", "nothing-of-this-name", "--run", "true"]).refused(&["nothing-of-this-name"]);
    assert_eq!(rig.fingerprint(&MEMBERS), before);
}

#[test]
fn a_name_reaches_the_server_when_no_member_is_where_it_was() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    let uuid = rig.status(&["tank"])["uuid"].as_str().unwrap().to_owned();
    // Another array stands where the first members were: it is not meant.
    MEMBERS.iter().for_each(|member| std::fs::remove_file(rig.path(member)).unwrap());
    let other = ["create", "--scheme", "raid", "--parity", "1", "--file-size", "32MiB", "--name", "other"];
    rig.run(&[&other[..], &["--data", "d0", "d1", "d2"]].concat()).ok();
    let before = rig.fingerprint(&["d0", "d1", "d2"]);
    for name in ["tank", &uuid] {
        assert_eq!(rig.status(&[name])["uuid"], uuid.as_str());
    }
    rig.on("rename", &["tank"], &["--name", "lake"]).ok();
    rig.on("fail", &["lake"], &["--device", "data0"]).ok();
    assert_eq!(rig.status(&[&uuid])["state"], "degraded");
    rig.on("stop", &["lake"], &[]).ok();
    server.wait();
    assert_eq!(rig.fingerprint(&["d0", "d1", "d2"]), before);
}

#[test]
fn what_a_killed_server_left_is_forgotten_when_its_members_are_gone() {
    for again in [false, true] {
        let rig = Rig::with_array();
        rig.serve(&MEMBERS, &[]).kill();
        if again {
            // The record stays as long as there are members.
            rig.on("stop", &["tank"], &[])
                .refused(&["ended without being stopped", "the next start recovers"]);
        }
        MEMBERS.iter().for_each(|member| std::fs::remove_file(rig.path(member)).unwrap());
        let nothing = rig.run(&["status", "tank"]).code(4).refused(&["no server answers"]);
        assert!(
            MEMBERS.iter().all(|member| nothing.err.contains(&format!("/{member}: No such"))),
            "{nothing:?}"
        );
        let other =
            ["create", "--scheme", "raid", "--parity", "1", "--file-size", "32MiB", "--name", "other"];
        rig.run(&[&other[..], &["--data", "d0", "d1", "d2"]].concat()).ok();
        let before = rig.fingerprint(&["d0", "d1", "d2"]);
        rig.on("fail", &["tank"], &["--device", "data0"]).refused(&[]);
        assert_eq!(rig.fingerprint(&["d0", "d1", "d2"]), before, "another array is not meant");
        rig.on("stop", &["tank"], &[]).refused(&["its members are not there any more", "is removed now"]);
        let left = std::fs::read_dir(rig.path("run")).unwrap().flatten().filter(|entry| {
            [".sock", ".server"].iter().any(|end| entry.file_name().to_str().unwrap().ends_with(end))
        });
        assert_eq!(left.count(), 0);
        assert!(rig.run(&["status"]).code(4).out.contains("no array is being served"));
    }
}
