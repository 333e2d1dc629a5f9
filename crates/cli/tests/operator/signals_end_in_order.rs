//! No signal but SIGKILL ends `serve` without the array being stopped in order: a terminal that is closed
//! stops it, SIGHUP alone has it read again what may change, SIGUSR1 and the like do nothing.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig, until};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Whether this process was started with SIGHUP ignored, as its children then are.
pub fn is_hup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1
}

#[test]
fn what_would_kill_a_server_is_logged_or_stops_it() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    for signal in ["HUP", "USR1", "USR2", "ALRM", "VTALRM", "PROF", "POLL", "XFSZ", "RTMIN"] {
        server.signal(signal);
        assert_eq!(rig.status(&["d0"])["source"], "served", "SIG{signal}");
    }
    let ran = server.stop().ok();
    // Whoever runs this under `nohup` has the server ignore SIGHUP.
    let read_again = ran.err.contains("SIGHUP: certificates, --allow and --rebuild-rate were read again");
    assert!(read_again || is_hup_ignored(), "{ran:?}");
    let others = ["SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGIO", "SIGXFSZ", "signal 34"];
    for name in others {
        assert!(ran.err.contains(&format!("{name} means nothing here")), "{name}: {ran:?}");
    }
    for signal in ["QUIT", "XCPU"] {
        let server = rig.serve(&MEMBERS, &[]);
        server.signal(signal);
        server.wait().ok();
        assert_eq!(rig.status(&MEMBERS)["clean"], true, "SIG{signal}");
    }
}

#[test]
fn a_terminal_that_is_closed_stops_the_server_in_order() {
    let rig = Rig::with_array();
    let serve =
        format!("exec '{}' serve {} --nbd unix:nbd", env!("CARGO_BIN_EXE_elastripe"), MEMBERS.join(" "));
    // `script` gives it a terminal, which is gone when `script` is.
    let mut terminal = Command::new("env")
        .args(["--default-signal=HUP", "script", "-qfc", &serve, "/dev/null"])
        .current_dir(rig.dir.path())
        .env("ELASTRIPE_RUN_DIR", rig.path("run"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = BufReader::new(terminal.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("serving at") {
        line.clear();
        assert!(shown.read_line(&mut line).unwrap() > 0, "the server did not start");
    }
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    until("the server ends with its terminal", || {
        // One that is about to end may hang up on who asks.
        let seen = rig.on("status", &MEMBERS, &["--json"]);
        seen.code == 0 && seen.json()["source"] == "stopped"
    });
    assert_eq!(rig.status(&MEMBERS)["clean"], true);
    assert_eq!(std::fs::read_dir(rig.path("run")).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn nohup_keeps_its_meaning() {
    let rig = Rig::with_array();
    let binary = env!("CARGO_BIN_EXE_elastripe");
    let mut args = vec!["-c", "trap '' HUP; exec \"$@\"", "sh", binary, "serve"];
    args.extend(MEMBERS);
    args.extend(["--run", "kill -HUP $PPID"]);
    let ran = Command::new("sh")
        .args(&args)
        .current_dir(rig.dir.path())
        .env("ELASTRIPE_RUN_DIR", rig.path("run"))
        .output()
        .unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(ran.status.success() && !said.contains("SIGHUP"), "{said}");
}

#[test]
fn what_may_change_in_service_is_read_again_from_the_array_s_file() {
    if is_hup_ignored() {
        return;
    }
    let rig = Rig::with_array();
    rig.run(&["scan", ".", "--write"]).ok();
    let file = rig.path("etc/tank.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    let mut server = rig.serve(&["tank"], &[]);
    let mut tell = |options: &str, heard: &str| {
        std::fs::write(&file, format!("{before}{options}")).unwrap();
        server.signal("HUP");
        server.await_log(heard);
    };
    let limit = || rig.status(&MEMBERS)["rate_limit_bytes_per_s"].as_u64();
    assert_eq!(limit(), None);
    tell("rebuild-rate = \"7MiB/s\"\ncommit-rate = \"9MiB/s\"\n", "at the next start: --commit-rate");
    until("the limit is there", || limit() == Some(7 << 20));
    tell("rebuild-rate = \"seven\"\n", "everything stays as it was");
    assert_eq!(limit(), Some(7 << 20));
    tell("", "were read again");
    until("the limit is gone", || limit().is_none());
    server.stop().ok();
}

/// A list that is taken out of the file opens the door; the log says so.
#[test]
fn a_guard_that_turns_nobody_away_any_more_is_warned_of() {
    if is_hup_ignored() {
        return;
    }
    let rig = Rig::with_array();
    rig.run(&["scan", ".", "--write"]).ok();
    let file = rig.path("etc/tank.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{before}allow = [\"10.0.0.0/8\"]\n")).unwrap();
    let mut server = rig.serve_at("tcp:127.0.0.1:0", &["tank"], &[]);
    std::fs::write(&file, before).unwrap();
    server.signal("HUP");
    server.await_log("nobody who comes by TCP is turned away");
    server.stop().ok();
}
