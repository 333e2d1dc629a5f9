//! Signals to a command that runs an array by itself: the work is given up, and the array is stopped in
//! order.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{Rig, device, has, qemu_script, until};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// An array that must not be left as by a crash: in place, without a journal, and a member has failed.
fn degraded() -> Rig {
    let rig = Rig::new();
    rig.run(&[
        "create",
        "--scheme",
        "raid",
        "--consistency",
        "resync",
        "--parity",
        "1",
        "--file-size",
        "64MiB",
        "--name",
        "tank",
        "--data",
        "d0",
        "d1",
        "d2",
    ])
    .ok();
    rig.serve_run(&["d0", "d1", "d2"], &qemu_script(&["write -P 3 0 16M", "flush"]), &[]).ok();
    rig.on("fail", &["d0", "d1", "d2"], &["--device", "data0", "--yes"]).ok();
    rig
}

/// Runs a command, and signals it as soon as it runs the array. Its exit code.
fn interrupt(rig: &Rig, args: &[&str], signal: &str) -> i32 {
    interrupt_when(rig, args, signal, || true)
}

/// The same when that is so, too.
fn interrupt_when(rig: &Rig, args: &[&str], signal: &str, is: impl FnMut() -> bool) -> i32 {
    // Whoever runs the tests may ignore some of them, as nohup does.
    let command = rig.command(args);
    let mut child = Command::new("env")
        .arg("--default-signal=HUP,QUIT,INT,USR1")
        .arg(command.get_program())
        .args(command.get_args())
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(command.get_current_dir().unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("this command runs it") {
        line.clear();
        assert!(err.read_line(&mut line).unwrap() > 0, "{args:?} ended early");
    }
    until("it has come so far", is);
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
    std::io::copy(&mut err, &mut std::io::sink()).unwrap();
    child.wait().unwrap().code().unwrap_or(-1)
}

#[test]
fn whatever_the_command() {
    if !has("qemu-io") {
        return;
    }
    let rig = degraded();
    let left = ["d1", "d2"];
    let read = qemu_script(&["read -P 3 0 16M"]);
    let scrub = ["scrub", "d1", "d2", "--rate", "1MiB/s"];
    let replace = [
        "replace",
        "d1",
        "d2",
        "--device",
        "data0",
        "--with",
        "new",
        "--file-size",
        "64MiB",
        "--rate",
        "1MiB/s",
    ];
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        assert_eq!(interrupt(&rig, &scrub, signal), code);
        assert_eq!(rig.status(&left)["clean"], true, "scrub, {signal}");
        for command in ["commit", "checkpoint"] {
            let ended = interrupt(&rig, &[command, "d1", "d2"], signal);
            assert!(ended == code || ended == 0, "{command} may have come to its end: {ended}");
            assert_eq!(rig.status(&left)["clean"], true, "{command}, {signal}");
        }
        rig.serve_run(&left, &read, &[]).ok();
    }
    for (signal, code) in [("HUP", 129), ("QUIT", 131), ("USR1", 138)] {
        assert_eq!(interrupt(&rig, &scrub, signal), code);
        assert_eq!(rig.status(&left)["clean"], true, "scrub, {signal}");
    }
    // A rebuild that is given up goes on with the next start; the new member is one.
    let all = ["new", "d1", "d2"];
    let is_rebuilding = || rig.on("status", &all, &["--json"]).out.contains("\"rebuilding\"");
    assert_eq!(interrupt_when(&rig, &replace, "INT", is_rebuilding), 130);
    assert_eq!(rig.status(&all)["clean"], true);
    assert_eq!(device(&rig.status(&all), "data0")["state"], "rebuilding");
    rig.serve_run(&all, &read, &[]).ok();
}
