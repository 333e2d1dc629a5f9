//! An array with one log device more than parities: its data devices hold no journal, and any two members may
//! be lost with the server.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{Rig, has};
use serde_json::Value;

const ALL: [&str; 7] = ["d0", "d1", "d2", "d3", "l0", "l1", "l2"];

fn rig(scheme: &str) -> Rig {
    let rig = Rig::new();
    let create = ["create", "--scheme", scheme, "--parity", "2", "--file-size", "32MiB"];
    let members = ["--data", "d0", "d1", "d2", "d3", "--log", "l0", "l1", "l2", "--json"];
    let made = rig.run(&[&create[..], &members].concat()).ok().json();
    assert_eq!(made["log_count"], 3, "{made}");
    rig
}

/// Frames of the running assembly on each member.
fn frames(rig: &Rig) -> Vec<u64> {
    let seen: Value = rig.on("inspect", &ALL, &["--json"]).json();
    seen.as_array().unwrap().iter().map(|member| member["journal"]["frame_count"].as_u64().unwrap()).collect()
}

#[test]
fn what_was_durable_survives_the_loss_of_any_two_members_with_the_server() {
    if !has("qemu-io") {
        return;
    }
    let lost = [["l0", "l1"], ["l1", "l2"], ["d0", "l2"], ["d1", "d3"]];
    let cases = ["eplog", "elastic"].into_iter().flat_map(|scheme| lost.map(|lost| (scheme, lost)));
    for (scheme, lost) in cases {
        let rig = rig(scheme);
        let server = rig.serve(&ALL, &["--sync", "always"]);
        let writes: Vec<String> = (0..40).map(|i| format!("write -P {} {}k 4k", i + 1, i * 4)).collect();
        rig.qemu_io(&writes.iter().map(String::as_str).collect::<Vec<_>>()).ok();
        server.kill();
        let frames = frames(&rig);
        assert_eq!(frames[..4], [0; 4], "no frame is on a data device");
        assert!(frames[4..].iter().all(|&count| count > 0), "every log device has them: {frames:?}");
        let left: Vec<&str> = ALL.into_iter().filter(|member| !lost.contains(member)).collect();
        let server = rig.serve(&left, &["--degraded"]);
        let reads: Vec<String> = (0..40).map(|i| format!("read -P {} {}k 4k", i + 1, i * 4)).collect();
        rig.qemu_io(&reads.iter().map(String::as_str).collect::<Vec<_>>()).ok();
        server.stop().ok();
    }
}

#[test]
fn such_a_log_device_is_replaced_like_any_other() {
    let rig = rig("eplog");
    rig.on("fail", &ALL, &["--device", "log2"]).ok();
    let replace = ["--device", "log2", "--with", "new", "--file-size", "32MiB"];
    rig.on("replace", &ALL, &replace).ok();
    let members = ["d0", "d1", "d2", "d3", "l0", "l1", "new"];
    assert_eq!(rig.status(&members)["state"], "healthy");
    rig.on("scrub", &members, &[]).ok();
}
