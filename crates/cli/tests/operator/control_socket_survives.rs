//! Nothing that is sent to the control socket harms the server; answers come in order, also to clients that
//! are slow.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

fn socket(rig: &Rig) -> std::path::PathBuf {
    let uuid = rig.status(&MEMBERS)["uuid"].as_str().unwrap().to_owned();
    rig.path("run").join(format!("{uuid}.sock"))
}

#[test]
fn garbage_is_answered_or_cut_off() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    let path = socket(&rig);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    let lines: [&[u8]; 6] = [
        b"\n",
        b"{}\n",
        b"\xff\xfe\x00\n",
        b"{\"op\":\"explode\"}\n",
        b"[[[[[[[[\n",
        b"{\"op\":\"fail\",\"device\":3}\n",
    ];
    let mut client = BufReader::new(UnixStream::connect(&path).unwrap());
    for line in lines {
        client.get_mut().write_all(line).unwrap();
        let mut answer = String::new();
        client.read_line(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert!(answer["error"].as_str().unwrap().contains("not a request"), "{answer}");
    }
    // A line without an end.
    let mut endless = UnixStream::connect(&path).unwrap();
    while endless.write_all(&[b'x'; 4096]).is_ok() {}
    // More connections than are kept: the first ones still work, the last ones are told.
    let crowd: Vec<_> = (0..100).map(|_| UnixStream::connect(&path).unwrap()).collect();
    let mut answer = String::new();
    BufReader::new(crowd.last().unwrap()).read_line(&mut answer).unwrap();
    assert!(answer.contains("32 commands are connected to this server already; try again"), "{answer}");
    client.get_mut().write_all(b"{\"op\":\"status\"}\n").unwrap();
    let mut answer = String::new();
    client.read_line(&mut answer).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&answer).unwrap()["status"]["state"], "healthy");
    // Those that are gone are in nobody's way.
    drop(crowd);
    rig.on("status", &["d0"], &[]).ok();
    drop(client);
    server.stop().ok();
}

#[test]
fn many_requests_at_once_are_answered_in_order() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    let mut client = UnixStream::connect(socket(&rig)).unwrap();
    let requests = ["status", "commit", "status", "checkpoint"].repeat(50);
    let mut sent = String::new();
    for op in &requests {
        let full = if *op == "checkpoint" { ",\"full\":false" } else { "" };
        sent.push_str(&format!("{{\"op\":\"{op}\"{full}}}\n"));
    }
    client.write_all(sent.as_bytes()).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut answers = String::new();
    client.read_to_string(&mut answers).unwrap();
    let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), requests.len());
    for (op, answer) in requests.iter().zip(&answers) {
        assert!(answer["error"].is_null(), "{op}: {answer}");
        assert_eq!(answer["status"].is_object(), *op == "status", "{op}: {answer}");
    }
    server.stop().ok();
}

/// What waits in a connection that its client does not read.
fn unread(client: &UnixStream) -> u64 {
    rustix::io::ioctl_fionread(client).unwrap()
}

#[test]
fn who_asks_for_a_stop_and_does_not_listen_keeps_nobody_waiting() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    let path = socket(&rig);
    // So many answers fit that nobody reads.
    let mut probe = UnixStream::connect(&path).unwrap();
    let (mut count, mut before) = (0, 0);
    loop {
        probe.write_all(b"{}\n").unwrap();
        let begun = Instant::now();
        while unread(&probe) == before && begun.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if unread(&probe) == before {
            break;
        }
        (count, before) = (count + 1, unread(&probe));
    }
    drop(probe);
    let mut deaf = UnixStream::connect(&path).unwrap();
    deaf.write_all("{}\n".repeat(count).as_bytes()).unwrap();
    deaf.write_all(b"{\"op\":\"stop\",\"force\":false}\n").unwrap();
    server.wait().ok();
    drop(deaf);
}

#[test]
fn the_document_names_every_key_of_the_status() {
    let document =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md")).unwrap();
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    let status = rig.status(&["d0"]);
    let mut objects = vec![&status, &status["devices"][0]];
    objects.extend(status.as_object().unwrap().values().filter(|value| value.is_object()));
    for key in objects.into_iter().flat_map(|object| object.as_object().unwrap().keys()) {
        assert!(document.contains(key.as_str()), "docs/cli.md does not name {key}");
    }
    server.stop().ok();
}
