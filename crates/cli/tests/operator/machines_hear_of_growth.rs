//! A virtual machine monitor is told that the disk has grown, on the channel that it has named, reads the new
//! size, and uses the room.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::arrays_grow::enlarge;
use crate::common::disk::{Disk, Wish};
use crate::common::{MEMBERS, Rig};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Messages of the protocol (vhost-user specification, "Front-end message types").
const GET_FEATURES: u32 = 1;
const SET_FEATURES: u32 = 2;
const GET_PROTOCOL_FEATURES: u32 = 15;
const SET_PROTOCOL_FEATURES: u32 = 16;
const SET_BACKEND_REQ_FD: u32 = 21;
const GET_CONFIG: u32 = 24;
/// The back end's: the configuration has changed.
const CONFIG_CHANGE: u32 = 2;
/// Flags: an answer is wanted; it is one.
const WANTS_ANSWER: u8 = 1 << 3;
const IS_ANSWER: u8 = 1 << 2;
/// Protocol features: answers where they are wanted, a channel of the back end, and a configuration.
const ANSWERS: u64 = 1 << 3;
const CHANNEL: u64 = 1 << 5;
const CONFIG: u64 = 1 << 9;

struct Monitor(UnixStream);

fn message(code: u32, body: &[u8]) -> Vec<u8> {
    let head = [code, 1, u32::try_from(body.len()).unwrap()];
    head.into_iter().flat_map(u32::to_le_bytes).chain(body.iter().copied()).collect()
}

impl Monitor {
    fn connect(rig: &Rig) -> Self {
        let socket = UnixStream::connect(rig.path("disk")).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(socket)
    }

    fn say(&mut self, code: u32, body: &[u8]) {
        self.0.write_all(&message(code, body)).unwrap();
    }

    fn ask(&mut self, code: u32, body: &[u8]) -> Vec<u8> {
        self.say(code, body);
        let mut head = [0; 12];
        self.0.read_exact(&mut head).unwrap();
        let length = u32::from_le_bytes(head[8..].try_into().unwrap());
        let mut answer = vec![0; usize::try_from(length).unwrap()];
        self.0.read_exact(&mut answer).unwrap();
        answer
    }

    fn ask_number(&mut self, code: u32) -> u64 {
        u64::from_le_bytes(self.ask(code, &[]).try_into().unwrap())
    }

    /// Names the channel, of which it keeps the other end, with a flag or none; takes the answer if it
    /// wants one, as QEMU does.
    fn channel(&mut self, flag: u8) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = [theirs.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        let mut bytes = message(SET_BACKEND_REQ_FD, &[]);
        bytes[4] |= flag;
        let sent = sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut control, SendFlags::empty()).unwrap();
        assert_eq!(sent, bytes.len());
        if flag == WANTS_ANSWER {
            let mut expected = message(SET_BACKEND_REQ_FD, &[0; 8]);
            expected[4] |= IS_ANSWER;
            let mut answer = vec![0; expected.len()];
            self.0.read_exact(&mut answer).unwrap();
            assert_eq!(answer, expected);
        }
        ours.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        ours
    }

    /// Bytes of the disk, as its configuration says.
    fn size_bytes(&mut self) -> u64 {
        let asked: Vec<u8> = [0u32, 8, 0].into_iter().flat_map(u32::to_le_bytes).chain([0; 8]).collect();
        let answer = self.ask(GET_CONFIG, &asked);
        u64::from_le_bytes(answer[12..20].try_into().unwrap()) * 512
    }
}

#[test]
fn a_monitor_is_told_that_the_disk_has_grown() {
    for (options, flag) in [
        (&["--vhost-user-blk", "disk"][..], 0),
        (&["--vhost-user-blk", "disk", "--socket-threads", "2"], WANTS_ANSWER),
    ] {
        let rig = Rig::new();
        rig.run(&[
            "create",
            "--parity",
            "1",
            "--scheme",
            "raid",
            "--file-size",
            "64MiB",
            "--data",
            "d0",
            "d1",
            "d2",
        ])
        .ok();
        let members = ["d0", "d1", "d2"];
        let server = rig.serve(&members, options);
        let volume = || rig.status(&members)["volume_bytes"].as_u64().unwrap();
        let mut monitor = Monitor::connect(&rig);
        let features = monitor.ask_number(GET_FEATURES);
        monitor.say(SET_FEATURES, &features.to_le_bytes());
        let offered = monitor.ask_number(GET_PROTOCOL_FEATURES);
        let wanted = ANSWERS | CHANNEL | CONFIG;
        assert_eq!(offered & wanted, wanted);
        monitor.say(SET_PROTOCOL_FEATURES, &wanted.to_le_bytes());
        let mut channel = monitor.channel(flag);
        assert_eq!(monitor.size_bytes(), volume());
        let before = volume();
        for _ in 0..2 {
            enlarge(&rig, &members, 32 << 20);
            rig.on("grow", &members, &[]).ok();
            let mut told = [0; 12];
            channel.read_exact(&mut told).unwrap();
            assert_eq!(told.to_vec(), message(CONFIG_CHANGE, &[]));
            assert_eq!(monitor.size_bytes(), volume());
        }
        assert!(volume() > before);
        // One who does not listen any more is served on.
        drop(channel);
        enlarge(&rig, &members, 32 << 20);
        rig.on("grow", &members, &[]).ok();
        assert_eq!(monitor.size_bytes(), volume());
        drop(monitor);
        server.stop().ok();
    }
}

#[test]
fn who_stays_connected_may_use_the_new_room() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &["--vhost-user-blk", "disk"]);
    let mut one = Disk::connect(&rig.path("disk"), 1).unwrap();
    let before = one.blkio.get_u64("capacity").unwrap();
    let past = Wish::Write { offset: before, length: 4096, at: 0 };
    assert_ne!(one.have(past), 0);
    enlarge(&rig, &MEMBERS, 32 << 20);
    rig.on("grow", &MEMBERS, &[]).ok();
    one.put(0, &[7; 4096]);
    assert_eq!(one.have(past), 0);
    assert_eq!(one.read(before, 4096), vec![7; 4096]);
    assert_eq!(one.have(Wish::Discard { offset: before, length: 4096 }), 0);
    assert_eq!(one.read(before, 4096), vec![0; 4096]);
    drop(one);
    server.stop().ok();
}

#[test]
fn a_channel_without_a_descriptor_ends_the_connection() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &["--vhost-user-blk", "disk"]);
    let mut monitor = Monitor::connect(&rig);
    monitor.say(SET_BACKEND_REQ_FD, &[]);
    assert!(matches!(monitor.0.read(&mut [0; 1]), Ok(0) | Err(_)));
    let mut other = Monitor::connect(&rig);
    assert!(other.ask_number(GET_FEATURES) > 0);
    drop(other);
    server.stop().ok();
}
