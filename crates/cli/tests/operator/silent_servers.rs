//! Whoever does not answer at a control socket is not waited for for ever: a server that is suspended, or
//! somebody else's program. What others serve is shown all the same.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig};
use std::process::{Child, Output, Stdio};

fn start(rig: &Rig, args: &[&str]) -> Child {
    rig.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn commands_end_although_the_server_does_not_answer() {
    let rig = Rig::with_array();
    let other = ["create", "--parity", "1", "--data", "e0", "e1", "--file-size", "32MiB", "--name", "lake"];
    rig.run(&other).ok();
    let server = rig.serve(&MEMBERS, &[]);
    let lake = rig.serve_at("unix:nbd2", &["e0", "e1"], &[]);
    let uuid = rig.status(&["tank"])["uuid"].as_str().unwrap().to_owned();
    server.signal("STOP");
    let commands: [&[&str]; 7] = [
        &["status"],
        &["status", "d0"],
        &["status", "tank", "--json"],
        &["stop", "tank"],
        &["commit", "d0"],
        &["grow", "tank"],
        &["wait", "tank"],
    ];
    // Side by side: each has its patience.
    let running: Vec<Child> = commands.iter().map(|args| start(&rig, args)).collect();
    let ended: Vec<Output> = running.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    for (args, ended) in commands.iter().zip(&ended) {
        let said = String::from_utf8_lossy(&ended.stderr);
        let code = if args[0] == "status" { 4 } else { 1 };
        assert_eq!(ended.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(&format!("{uuid}.sock: no answer within 30 s")), "{args:?}: {said}");
        assert!(said.contains("is suspended (state T)"), "{args:?}: {said}");
    }
    let shown = String::from_utf8_lossy(&ended[0].stdout);
    assert!(shown.contains("lake") && !shown.contains("tank"), "{shown}");
    lake.stop().ok();
    server.signal("CONT");
    server.stop().ok();
}
