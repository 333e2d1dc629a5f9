//! `stop` does not take the volume away from under its clients, unless told to; SIGTERM does.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig};
use std::io::Read;
use std::os::unix::net::UnixStream;

/// A client that has got as far as the server's greeting.
fn client(rig: &Rig) -> UnixStream {
    let mut stream = UnixStream::connect(rig.path("nbd")).unwrap();
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).unwrap();
    stream
}

#[test]
fn stop_is_refused_while_clients_are_connected() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    assert_eq!(rig.status(&["d0"])["clients"], 0);
    let first = client(&rig);
    rig.on("stop", &["d0"], &[]).refused(&["1 client is connected", "--force"]);
    let second = client(&rig);
    rig.on("stop", &["d0"], &[]).refused(&["2 clients are connected", "--force"]);
    assert_eq!(rig.status(&["d0"])["clients"], 2);
    // Who has gone is not counted, even if the server has not had time to notice.
    drop((first, second));
    rig.on("stop", &["d0"], &[]).ok();
    server.wait().ok();

    let server = rig.serve(&MEMBERS, &[]);
    let held = client(&rig);
    rig.on("stop", &["d0"], &["--force"]).ok();
    server.wait().ok();
    drop(held);

    let server = rig.serve(&MEMBERS, &[]);
    let held = client(&rig);
    server.stop().ok();
    drop(held);
    assert_eq!(rig.status(&MEMBERS)["clean"], true);
}
