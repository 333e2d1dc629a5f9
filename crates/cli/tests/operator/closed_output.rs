//! What is printed into a pipe that nobody reads any more, as by `elastripe trace info FILE | head -1`, or
//! onto a full disk; and into one that is full.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig, until};
use rustix::pipe::fcntl_setpipe_size;
use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

const TRACE: &str = "ts_us,dev,op,offset,len\n0,0,W,0,4096\n10,0,W,8192,4096\n20,0,R,0,4096\n";

/// One run of every command that ends by itself and prints, in an order in which each finds what it needs.
const RUNS: [&[&str]; 23] = [
    &["--version"],
    &["--help"],
    &["status", "--help"],
    &["help", "replay"],
    &["create", "--scheme=was", "--parity=1", "--file-size=32MiB", "--data", "w0", "w1", "w2"],
    &["status", "w0", "w1", "w2"],
    &["status", "w0", "w1", "w2", "--json"],
    &["inspect", "w0", "w1", "w2"],
    &["examine", "w0"],
    &["trace", "info", "trace.csv"],
    &["trace", "info", "trace.csv", "--json"],
    &["trace", "convert", "trace.csv", "converted.csv"],
    &["trace", "generate", "--profile=uniform", "--requests=100", "--range=1MiB", "--seed=1", "made.csv"],
    &["replay", "--device=memory", "--trace=trace.csv"],
    &["replay", "--device=memory", "--trace=trace.csv", "--json"],
    &["replay", "--device=memory", "--trace=trace.csv", "--json=report.json"],
    &["bench", "--requests=1000", "--schemes=elastic", "--workload=randwrite", "--volume-size=16MiB"],
    &["flash", "presets"],
    &["simulate", "--trace=trace.csv", "--scheme=elastic", "--ssd-size=64MiB", "--geometry=2+1"],
    &["serve", "w0", "w1", "w2", "--nbd=unix:nbd", "--run=true"],
    &["trace", "convert", "trace.csv", "-"],
    &["lab", "list"],
    &["completions", "bash"],
];

/// Runs a command with its standard output elsewhere: its exit code, and what it says on standard error.
fn run_into(rig: &Rig, args: &[&str], out: Stdio) -> (Option<i32>, String) {
    let ended = rig.command(args).stdout(out).stderr(Stdio::piped()).output().unwrap();
    (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
}

#[test]
fn nobody_reads_and_nothing_panics() {
    let rig = Rig::new();
    std::fs::write(rig.path("trace.csv"), TRACE).unwrap();
    for args in RUNS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (code, said) = run_into(&rig, args, writer.into());
        assert!(code == Some(0) && !said.contains("panicked"), "{args:?}: {code:?} {said}");
    }
}

/// Results that are not there must not pass for results.
#[test]
fn a_full_disk_is_a_failure() {
    let rig = Rig::new();
    std::fs::write(rig.path("trace.csv"), TRACE).unwrap();
    for args in RUNS {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (code, said) = run_into(&rig, args, full.into());
        // These print what is nothing but a remark.
        if args == ["serve", "w0", "w1", "w2", "--nbd=unix:nbd", "--run=true"] {
            continue;
        }
        let expected = if args[0] == "status" && args.len() > 2 { 4 } else { 1 };
        assert_eq!(code, Some(expected), "{args:?}: {said}");
        let said = said.lines().last().unwrap_or_default();
        assert!(
            said.starts_with("elastripe: ") && said.ends_with("No space left on device (os error 28)"),
            "{args:?}: {said}"
        );
    }
}

/// A terminal that is held, or a pipe that nobody empties, holds up whoever writes into it; not the array
/// whose log that is.
#[test]
fn a_log_that_nobody_reads_holds_up_nobody() {
    let rig = Rig::with_array();
    let (mut reader, writer) = std::io::pipe().unwrap();
    fcntl_setpipe_size(&writer, 4096).unwrap();
    let mut serve = rig.command(&[&["serve", "--nbd", "unix:nbd"][..], &MEMBERS].concat());
    let mut server = serve.stdout(Stdio::null()).stderr(writer).spawn().unwrap();
    drop(serve);
    until("it serves", || rig.path("nbd").exists());
    let pid = server.id().to_string();
    for _ in 0..100 {
        assert!(Command::new("kill").args(["-s", "USR1", &pid]).status().unwrap().success());
        assert_eq!(rig.status(&["d0"])["state"], "healthy");
    }
    rig.on("stop", &["d0"], &[]).ok();
    assert!(server.wait().unwrap().success());
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    assert!(said.contains("SIGUSR1 means nothing here") && said.len() <= 8192, "{said}");
}
