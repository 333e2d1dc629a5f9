//! What a server says of itself: to the service manager, to the log, to a command of the operator's; and the
//! files in `contrib` that build on it.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::nbd::Nbd;
use crate::common::{MEMBERS, Rig, has};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn contrib(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(name);
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_unit_starts_an_array_that_says_when_it_is_ready_and_when_it_stops() {
    let rig = Rig::with_array();
    let unit = contrib("systemd/elastripe@.service");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/elastripe ")).unwrap();
    let line = start.replace("%I", "tank").replace("$OPTIONS", ".");
    let manager = UnixDatagram::bind(rig.path("notify")).unwrap();
    let args: Vec<&str> = line.split_whitespace().collect();
    let mut server = rig.command(&args);
    server.env("NOTIFY_SOCKET", rig.path("notify")).stdout(Stdio::null()).stderr(Stdio::null());
    server.env("WATCHDOG_USEC", "200000");
    let mut server = server.spawn().unwrap();
    let heard = || {
        let mut bytes = [0; 4096];
        let length = manager.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };
    let ready = heard();
    assert!(ready.starts_with("READY=1\n") && ready.contains("nbd+unix"), "{ready}");
    assert!(rig.path("run/tank.nbd").exists());
    // Idle, and yet it says that it is not stuck.
    let begun = Instant::now();
    for _ in 0..5 {
        assert_eq!(heard(), "WATCHDOG=1");
    }
    let took = begun.elapsed();
    assert!(took > Duration::from_millis(300) && took < Duration::from_secs(5), "{took:?}");
    rig.on("stop", &["d0"], &[]).ok();
    let stopping = std::iter::repeat_with(heard).find(|heard| heard != "WATCHDOG=1").unwrap();
    assert!(stopping.starts_with("STOPPING=1"), "{stopping}");
    assert!(server.wait().unwrap().success());
    assert!(unit.contains("Type=notify") && unit.contains("RuntimeDirectoryPreserve=yes"), "{unit}");
}

/// By systemd's own count: 0 is out of reach of everything, 10 may do anything.
#[test]
fn the_unit_is_well_formed_and_may_do_little_that_it_does_not_need() {
    if !has("systemd-analyze") {
        return;
    }
    let rig = Rig::new();
    // What it starts must be there for `verify`.
    let unit =
        contrib("systemd/elastripe@.service").replace("/usr/bin/elastripe", env!("CARGO_BIN_EXE_elastripe"));
    std::fs::write(rig.path("elastripe@tank.service"), unit).unwrap();
    let analyze = |args: &[&str]| {
        let file = "./elastripe@tank.service";
        let ran = Command::new("systemd-analyze")
            .args(args)
            .arg(file)
            .current_dir(rig.dir.path())
            .output()
            .unwrap();
        (ran.status.success(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned())
    };
    let (_, said) = analyze(&["verify", "--man=no"]);
    assert!(!said.contains("elastripe"), "{said}");
    let (is_safe, said) = analyze(&["security", "--offline=yes", "--threshold=40"]);
    assert!(is_safe, "{said}");
    assert!(contrib("systemd/elastripe@.service").contains("ExecReload=/bin/kill -HUP $MAINPID"));
}

#[test]
fn the_rule_for_udev_asks_a_question_that_is_answered() {
    let rig = Rig::with_array();
    let rule = contrib("udev/63-elastripe.rules");
    let program = rule.split("IMPORT{program}=\"/usr/bin/elastripe ").nth(1).unwrap();
    let program = program.split('"').next().unwrap();
    let ask = |device: &str| {
        let args: Vec<&str> =
            program.split_whitespace().map(|word| if word == "$devnode" { device } else { word }).collect();
        rig.run(&args)
    };
    let said = ask("d1").ok().out;
    let uuid = rig.status(&MEMBERS)["uuid"].as_str().unwrap().to_owned();
    for line in
        ["ID_FS_TYPE=elastripe_member", "ID_FS_USAGE=raid", "ID_FS_LABEL=tank", "ELASTRIPE_MEMBER=data1"]
    {
        assert!(said.lines().any(|other| other == line), "{line}: {said}");
    }
    assert!(said.contains(&format!("ID_FS_UUID={uuid}\n")), "{said}");
    assert!(rule.contains("ENV{ID_FS_TYPE}==\"elastripe_member\""));
    std::fs::File::create(rig.path("blank")).unwrap().set_len(1 << 20).unwrap();
    assert_eq!(ask("blank").code(1).out, "");
}

#[test]
fn lines_of_the_log_have_a_time_and_a_level() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    rig.on("fail", &["d0"], &["--device", "data1"]).ok();
    let ran = server.stop().ok();
    let line = ran.err.lines().find(|line| line.contains("data1 failed")).unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    let pattern: String = words[1].chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!((words[0], pattern.as_str()), ("elastripe:", "0000-00-00T00:00:00.000Z"), "{line}");
    assert_eq!(words[2], "warning:", "{line}");

    let server = rig.serve(&MEMBERS, &["--log-time", "never"]);
    rig.on("fail", &["d0"], &["--device", "data2", "--yes"]).ok();
    let ran = server.stop().ok();
    assert!(
        ran.err.lines().any(|line| line.starts_with("elastripe: data2 failed (as asked); 2 out of")),
        "{ran:?}"
    );

    // To the journal, which has the time, only the level.
    let mut server =
        rig.command(&[&["serve"], &MEMBERS[..], &["--run", "kill -USR1 $PPID; sleep 0.2"]].concat());
    let ran = server.env("JOURNAL_STREAM", "8:1").output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.lines().any(|line| line.starts_with("<6>elastripe: SIGUSR1")), "{said}");
}

#[test]
fn a_command_of_the_operators_is_told() {
    let rig = Rig::with_array();
    let tell = "echo \"$ELASTRIPE_EVENT $ELASTRIPE_NAME $ELASTRIPE_DEVICE: $ELASTRIPE_MESSAGE\" >> told; mv told heard";
    let server = rig.serve(&MEMBERS, &["--on-event", tell]);
    rig.on("fail", &["d0"], &["--device", "data1"]).ok();
    let heard = loop {
        match std::fs::read_to_string(rig.path("heard")) {
            Ok(heard) => break heard,
            Err(_) => drop(rig.status(&["d0"])),
        }
    };
    assert_eq!(heard, "failed tank data1: data1 failed (as asked); 1 out of service, the array bears 2\n");
    server.stop().ok();
}

#[test]
fn an_address_that_others_can_reach_is_warned_of() {
    let rig = Rig::with_array();
    let ran = rig.on("serve", &MEMBERS, &["--nbd", "tcp:0.0.0.0:0", "--run", "echo $ELASTRIPE_URI"]).ok();
    assert!(ran.err.contains("can read and write the volume"), "{ran:?}");
    assert!(ran.out.starts_with("nbd://127.0.0.1:"), "nobody can connect to 0.0.0.0: {ran:?}");
    let ran = rig.on("serve", &MEMBERS, &["--nbd", "tcp:127.0.0.1:0", "--run", "true"]).ok();
    assert!(!ran.err.contains("can read and write the volume"), "{ran:?}");
}

#[test]
fn sockets_of_the_service_manager_are_served_and_left_to_it() {
    let rig = Rig::with_array();
    let listener = UnixListener::bind(rig.path("passed")).unwrap();
    let start = |options: &str| {
        let serve = format!("exec \"$0\" serve {} {options}", MEMBERS.join(" "));
        let script = format!("exec 3<&0 </dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; {serve}");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_elastripe")]).current_dir(rig.dir.path());
        shell.env("ELASTRIPE_RUN_DIR", rig.path("run")).env("ELASTRIPE_CONFIG_DIR", rig.path("etc"));
        shell
    };
    // A client who comes before the server waits for it.
    let mut server = start("").stdin(OwnedFd::from(listener.try_clone().unwrap())).spawn().unwrap();
    let mut client = Nbd::connect(&rig.path("passed"), Duration::from_secs(20));
    assert_eq!(client.read(0, 4096), vec![0; 4096]);
    client.leave();
    let status = rig.status(&["d0"]);
    let uri = status["uris"][0].as_str().unwrap();
    assert!(uri.ends_with("/passed") && status["uris"].as_array().unwrap().len() == 1, "{uri}");
    rig.on("stop", &["d0"], &["--force"]).ok();
    assert!(server.wait().unwrap().success());
    assert!(rig.path("passed").exists(), "it is not ours");

    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap();
    let ran = start("--run 'echo $ELASTRIPE_URI'").stdin(OwnedFd::from(tcp)).output().unwrap();
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), format!("nbd://{address}\n"));

    let file = std::fs::File::open(rig.path("d0")).unwrap();
    let ran = start("--run true").stdin(OwnedFd::from(file)).output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(!ran.status.success() && said.contains("LISTEN_FDS: descriptor 3"), "{said}");
}

#[test]
fn a_command_that_fails_or_hangs_is_in_the_log() {
    let rig = Rig::with_array();
    std::fs::write(rig.path("hangs"), "").unwrap();
    let command = "test $ELASTRIPE_EVENT = scrub || exit 7; while test -e hangs; do sleep 0.1; done";
    let mut server = rig.serve(&MEMBERS, &["--on-event", command]);
    rig.on("fail", &["d0"], &["--device", "data0"]).ok();
    server.await_log("exit status: 7");
    // More than may run at a time.
    for _ in 0..18 {
        rig.on("scrub", &["d0"], &["--wait"]);
    }
    server.await_log("not told of 1 event");
    std::fs::remove_file(rig.path("hangs")).unwrap();
    server.await_log("--on-event: the command was not told of ");
    server.stop().ok();
}
