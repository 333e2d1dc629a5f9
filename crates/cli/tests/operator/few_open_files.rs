//! A server lets itself open as many files as it may, and where that is too few says so before the array is
//! touched.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Ran, Rig};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// Serves the array for a moment in a shell that sets a limit first.
fn limited(rig: &Rig, limit: &str, serve: &str) -> Ran {
    let script = format!("ulimit {limit} && exec \"$0\" {serve}");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_elastripe")]).current_dir(rig.dir.path());
    command.env("ELASTRIPE_RUN_DIR", rig.path("run")).env("ELASTRIPE_CONFIG_DIR", rig.path("etc"));
    let output = command.output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_small_limit_is_raised_or_told_before_the_array_is_touched() {
    let rig = Rig::with_array();
    let members = MEMBERS.join(" ");
    let before = rig.fingerprint(&MEMBERS);
    let serve = format!("serve {members} --run true");
    let keys = format!("kv serve {members} --resp unix:keys --create --run true");
    for limit in 15..24 {
        for serve in [&serve, &keys] {
            let ran = limited(&rig, &format!("-n {limit}"), serve);
            ran.refused(&[&format!("may have {limit} files open"), "ulimit -n"]);
        }
        assert_eq!(rig.fingerprint(&MEMBERS), before, "{limit}");
    }
    limited(&rig, "-Sn 16", &serve).ok();
    assert_eq!(rig.status(&MEMBERS)["state"], "healthy");
    limited(&rig, "-n 64", &serve).ok();
}

/// More clients than files would leave some part of the server without one later.
#[test]
fn clients_are_as_many_as_there_may_be_files_and_those_beyond_are_told() {
    let rig = Rig::with_array();
    let serve = [&["serve"], &MEMBERS[..], &["--nbd", "unix:nbd"]].concat();
    let server = rig.serve_after("ulimit -n 70", &serve);
    let mut clients = Vec::new();
    let mut greeting = [0; 18];
    loop {
        let mut client = UnixStream::connect(rig.path("nbd")).unwrap();
        if client.read_exact(&mut greeting).is_err() {
            break; // closed at once
        }
        clients.push(client);
        assert!(clients.len() < 40);
    }
    assert!(clients.len() > 2, "{}", clients.len());
    assert_eq!(rig.status(&["d0"])["clients"], clients.len());
    drop(clients);
    let ran = server.stop().ok();
    assert!(ran.err.contains("this process may have 70 files open, so "), "{ran:?}");
    assert!(ran.err.contains("clients can be connected at a time, not 128; raise the limit"), "{ran:?}");

    let keys = [&["kv", "serve"], &MEMBERS[..], &["--resp", "unix:keys", "--create"]].concat();
    let server = rig.serve_after("ulimit -n 70", &keys);
    let mut clients = Vec::new();
    let mut answer = [0; 5];
    loop {
        let mut client = UnixStream::connect(rig.path("keys")).unwrap();
        let _ = client.write_all(b"PING\r\n"); // it may be closed already
        client.read_exact(&mut answer).unwrap();
        if &answer == b"-ERR " {
            break;
        }
        clients.push(client);
        assert!(clients.len() < 40);
    }
    assert!(clients.len() > 2, "{}", clients.len());
    rig.on("status", &["d0"], &[]).ok();
    drop(clients);
    let ran = server.stop().ok();
    assert!(ran.err.contains("clients can be connected at a time, not 1000"), "{ran:?}");
}

#[test]
fn commands_of_the_operator_have_the_limit_that_the_server_began_with() {
    let rig = Rig::with_array();
    let members = MEMBERS.join(" ");
    let tell = "--on-event 'ulimit -Sn >of-event'";
    let serve = format!(
        "serve {members} --run 'ulimit -Sn >of-run; elastripe fail tank --device data0; sleep 1' {tell}"
    );
    let serve = serve.replace("elastripe fail", &format!("{} fail", env!("CARGO_BIN_EXE_elastripe")));
    limited(&rig, "-Sn 200", &serve).ok();
    for name in ["of-run", "of-event"] {
        assert_eq!(std::fs::read_to_string(rig.path(name)).unwrap().trim(), "200", "{name}");
    }
}
