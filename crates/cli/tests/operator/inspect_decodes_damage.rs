//! `inspect` decodes what is there, says what is damaged, and goes on; `inspect layout` prints the format.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig, has, scribble};

#[test]
fn checkpoints_frames_and_records() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &["--commit-idle", "off"]);
    rig.qemu_io(&["write -P 1 0 64k", "write -P 2 8k 4k", "flush"]).ok();
    // Also while the array is being served.
    let live = rig.on("inspect", &MEMBERS, &["--records", "--json"]).ok().json();
    server.kill();
    let dead = rig.on("inspect", &MEMBERS, &["--records", "--json"]).ok().json();
    assert_eq!(live, dead);
    let members = dead.as_array().unwrap();
    let records = |kind: &str| -> u64 {
        members.iter().filter_map(|member| member["journal"]["records"][kind].as_u64()).sum()
    };
    // Shorter copies of a frame that has grown are found, too.
    assert!(records("full_stripe") >= 8 * 3, "64 KiB are 8 stripes, each recorded in three copies");
    assert!(records("log_stripe") >= 3);
    let checkpoints = members.iter().flat_map(|member| member["checkpoints"].as_array().unwrap());
    let good: Vec<_> = checkpoints.filter(|checkpoint| checkpoint["body_matches"] == true).collect();
    assert!(good.len() >= 3, "each checkpoint is there in three copies, found {}", good.len());
    assert!(good.iter().all(|checkpoint| checkpoint["packed"] == true), "{good:?}");
    let chain: Vec<_> = good.iter().filter(|checkpoint| checkpoint["kind"] == "incremental").collect();
    assert!(!chain.is_empty() && chain.iter().all(|one| one["behind"].as_u64() < one["number"].as_u64()));
    let text = rig.on("inspect", &MEMBERS, &[]).ok().out;
    assert!(text.contains("goes on from checkpoint "), "{text}");

    // Damage: a superblock, and the frames of one device.
    scribble(&rig.path("d1"), 0, &[0x5a; 100]);
    let text = rig.on("inspect", &["d1"], &[]).ok();
    assert!(text.out.contains("superblock 0: superblock: found "), "{text:?}");
    scribble(&rig.path("l0"), (1 << 20) + 100, &[0x5a; 1]);
    scribble(&rig.path("l1"), 0, &[0; 8192]);
    let text = rig.on("inspect", &["d0", "l0", "l1"], &[]).code(1);
    assert!(text.out.contains("superblock 1: superblock: found "), "{text:?}");
    assert!(text.out.contains("l0") && text.out.contains("log region"), "{text:?}");
}

#[test]
fn the_layout_is_the_documented_one() {
    let rig = Rig::new();
    let layout = rig.run(&["inspect", "layout"]).ok().out;
    let document =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format.md")).unwrap();
    assert!(layout.lines().filter(|line| line.starts_with("| ")).all(|line| document.contains(line)));
    assert!(layout.contains("ELSTSUPR"));
}
