//! No signal but SIGKILL ends `serve` without the array being stopped in order: a terminal that is closed
//! stops it, SIGHUP and SIGUSR1 alone do nothing.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

#[test]
fn what_would_kill_a_server_is_logged_or_stops_it() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    for signal in ["HUP", "USR1", "USR2", "ALRM", "VTALRM", "PROF", "POLL", "XFSZ", "RTMIN"] {
        server.signal(signal);
        assert_eq!(rig.status(&["d0"])["source"], "served", "SIG{signal}");
    }
    let ran = server.stop().ok();
    for name in
        ["SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGIO", "SIGXFSZ", "signal 34"]
    {
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
    let mut terminal = Command::new("script")
        .args(["-qfc", &serve, "/dev/null"])
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
    while rig.on("status", &MEMBERS, &["--json"]).json()["source"] != "stopped" {}
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
