//! `scan` and `serve --scan` find the members of an array among strangers, by directory, name or UUID.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig};

/// The usual array, another one, a text and a blank file.
fn rig() -> Rig {
    let rig = Rig::with_array();
    let other = ["create", "--parity", "1", "--data", "e0", "e1", "--file-size", "32MiB", "--name", "lake"];
    rig.run(&other).ok();
    std::fs::write(rig.path("text"), "nothing of the kind\n").unwrap();
    std::fs::File::create(rig.path("blank")).unwrap().set_len(32 << 20).unwrap();
    rig
}

#[test]
fn scan_lists_arrays_and_nothing_else() {
    let rig = rig();
    let found = rig.run(&["scan", ".", "--json"]).ok().json();
    let found = found.as_array().unwrap();
    assert_eq!(found.len(), 2, "{found:#?}");
    let tank = found.iter().find(|array| array["name"] == "tank").unwrap();
    assert_eq!((&tank["state"], &tank["source"]), (&"healthy".into(), &"stopped".into()));
    assert_eq!(tank["devices"].as_array().unwrap().len(), 6);
    let text = rig.run(&["scan", "d0", "e0", "e1"]).ok().out;
    assert!(text.contains("tank") && text.contains("incomplete") && text.contains("lake"), "{text}");
    rig.run(&["scan", "blank", "text"]).code(1);
    rig.run(&["scan", "nowhere"]).code(1);
    let server = rig.serve(&["e0", "e1"], &[]);
    assert!(rig.run(&["scan", "e0"]).ok().out.contains("in use"));
    server.stop().ok();
}

#[test]
fn serve_takes_what_belongs_and_ignores_the_rest() {
    let rig = rig();
    let uuid = rig.status(&MEMBERS)["uuid"].as_str().unwrap().to_owned();
    rig.run(&["serve", "--array", "tank", ".", "--run", "true"]).ok();
    rig.run(&["serve", "--array", &uuid, ".", "--run", "true"]).ok();
    // By a glob, as it were: each path named, strangers mentioned.
    let named = [&["e0", "text", "blank", "nowhere"][..], &MEMBERS].concat();
    let ran = rig.on("serve", &named, &["--array", "tank", "--run", "true"]).ok();
    for stranger in ["e0: belongs to array lake", "text: ", "blank: not a member", "nowhere: "] {
        assert!(ran.err.contains(&format!("ignored: {stranger}")), "{stranger}: {ran:?}");
    }
    rig.on("serve", &["e0", "blank", "e1"], &["--scan", "--run", "true"]).ok();
    rig.run(&["serve", "--scan", ".", "--run", "true"]).refused(&[
        "several arrays",
        "tank",
        "lake",
        "--array",
    ]);
    rig.run(&["serve", "--array", "sea", ".", "--run", "true"]).refused(&[
        "sea",
        "not found",
        "tank",
        "lake",
    ]);
    rig.run(&["serve", "--scan", "blank", "--run", "true"]).refused(&["no member"]);
    // A member that is missing is not made up for in silence.
    std::fs::remove_file(rig.path("d1")).unwrap();
    rig.run(&["serve", "--array", "tank", ".", "--run", "true"]).refused(&["data1", "--degraded"]);
    rig.run(&["serve", "--array", "tank", ".", "--run", "true", "--degraded"]).ok();
}

/// Makes a file shorter.
fn cut(rig: &Rig, name: &str) {
    std::fs::File::options().write(true).open(rig.path(name)).unwrap().set_len(16 << 20).unwrap();
}

#[test]
fn scan_says_what_it_leaves_out() {
    let rig = rig();
    let ran = rig.on("scan", &[&MEMBERS[..], &["blank", "text"]].concat(), &[]).ok();
    for words in ["blank: not a member of an array", "text: holds 20 bytes"] {
        assert!(ran.err.contains(words), "{words}: {ran:?}");
    }
    assert!(rig.run(&["scan", "."]).ok().err.is_empty(), "files beside members are nobody's business");
    // Both superblocks of a member.
    let mut bytes = std::fs::read(rig.path("e1")).unwrap();
    let blocks = bytes.chunks_mut(4096);
    blocks.filter(|block| block.starts_with(b"ELSTSUPR")).for_each(|block| block[200] ^= 1);
    std::fs::write(rig.path("e1"), bytes).unwrap();
    for places in [&["."][..], &["e0", "e1"]] {
        let ran = rig.on("scan", places, &[]).code(1);
        assert!(ran.err.contains("e1: both superblocks are damaged") && ran.out.contains("lake"), "{ran:?}");
    }
    let ran = rig.on("serve", &["--scan", ".", "--array", "lake"], &["--run", "true"]).code(1);
    assert!(ran.err.contains("ignored: ") && ran.err.contains("data1: not among"), "{ran:?}");
}

#[test]
fn members_that_lost_their_ends_are_called_so() {
    let rig = rig();
    cut(&rig, "d1");
    let ran = rig.on("scan", &MEMBERS, &[]).ok();
    assert!(ran.out.contains("degraded") && ran.out.contains("d1 (TRUNCATED: it holds 16777216"), "{ran:?}");
    ["d0", "d2"].iter().for_each(|name| cut(&rig, name));
    let ran = rig.on("scan", &MEMBERS, &[]).ok();
    assert!(ran.out.contains("failed, not in use"), "three members are too many: {ran:?}");
    let found = rig.on("scan", &MEMBERS, &["--json"]).ok().json();
    let is_cut = |device: &serde_json::Value| device["truncated"] == true;
    assert_eq!(found[0]["devices"].as_array().unwrap().iter().filter(|one| is_cut(one)).count(), 3);
}
