//! `serve --vhost-user-blk`: a virtio disk over shared memory, driven by a client of its own.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::disk::{Disk, Wish};
use crate::common::{MEMBERS, Rig, Server, has, until};
use std::sync::mpsc;
use std::time::Duration;

const EIO: i32 = -5;

fn serve(rig: &Rig, options: &[&str]) -> Server {
    rig.serve(&MEMBERS, &[&["--vhost-user-blk", "disk"], options].concat())
}

fn disk(rig: &Rig) -> Disk {
    Disk::connect(&rig.path("disk"), 1).unwrap()
}

/// Bytes that no two places have in common.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut step = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    (0..length).map(|_| step()).collect()
}

#[test]
fn what_is_written_is_read_also_over_nbd_and_after_a_kill() {
    let rig = Rig::with_array();
    let server = serve(&rig, &[]);
    let mut one = disk(&rig);
    assert_eq!(one.blkio.get_u64("capacity").unwrap(), rig.status(&["d0"])["volume_bytes"].as_u64().unwrap());
    let (small, large, odd) = (noise(1, 4096), noise(2, 3 << 20), noise(3, 1536));
    one.write(8192, &small);
    one.write(1 << 20, &large);
    one.write(512, &odd);
    assert_eq!(one.have(Wish::Flush), 0);
    assert!(
        one.read(8192, 4096) == small && one.read(1 << 20, 3 << 20) == large && one.read(512, 1536) == odd
    );
    assert_eq!(one.read(2048, 512), vec![0; 512]);
    if has("qemu-io") {
        rig.qemu_io(&["write -P 0x5a 16k 4k", "flush"]).ok();
        assert_eq!(one.read(16 << 10, 4096), vec![0x5a; 4096]);
    }
    server.kill();
    let server = serve(&rig, &[]);
    let mut one = disk(&rig);
    assert!(
        one.read(8192, 4096) == small && one.read(1 << 20, 3 << 20) == large && one.read(512, 1536) == odd
    );
    drop(one);
    server.stop().ok();
    assert_eq!(rig.status(&MEMBERS)["clean"], true);
}

#[test]
fn many_requests_of_several_rings_are_under_way() {
    for options in [&[][..], &["--socket-threads", "2"]] {
        let rig = Rig::with_array();
        let server = serve(&rig, options);
        let mut one = Disk::connect(&rig.path("disk"), 3).unwrap();
        let block = |ring: usize, index: usize| (ring * 100 + index) as u64 * 4096;
        for ring in 0..3 {
            for index in 0..100 {
                let at = (ring * 100 + index) * 4096;
                one.put(at, &noise(block(ring, index), 4096));
                one.ask(ring, index, Wish::Write { offset: block(ring, index), length: 4096, at });
            }
        }
        let finish = |one: &mut Disk, ring: usize, count: usize| {
            let mut seen = Vec::new();
            while seen.len() < count {
                let ends = one.ends(ring, 1);
                assert!(!ends.is_empty() && ends.iter().all(|end| end.1 == 0), "{ends:?}");
                seen.extend(ends.into_iter().map(|end| end.0));
            }
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..count));
        };
        (0..3).for_each(|ring| finish(&mut one, ring, 100));
        one.put(0, &vec![0; 300 * 4096]);
        for ring in 0..3 {
            for index in 0..100 {
                let at = (ring * 100 + index) * 4096;
                one.ask((ring + 1) % 3, index, Wish::Read { offset: block(ring, index), length: 4096, at });
            }
        }
        (0..3).for_each(|ring| finish(&mut one, ring, 100));
        for place in 0..300 {
            assert!(one.get(place * 4096, 4096) == noise(place as u64 * 4096, 4096), "block {place}");
        }
        let status = rig.status(&["d0"]);
        assert_eq!((&status["clients"], &status["requests"]["write"]["requests"]), (&1.into(), &300.into()));
        drop(one);
        server.stop().ok();
    }
}

/// Several shards, some on threads of their own, and two ways in that are used at once.
#[test]
fn a_disk_and_nbd_are_one_volume_of_several_shards() {
    if !has("qemu-io") {
        return;
    }
    // Apart enough that the blocks of a ring are in all shards.
    const APART: u64 = 40 << 10;
    let block = |ring: usize, index: usize| (ring * 100 + index) as u64 * APART;
    let apart = ["0", "2"].map(|count| ["--threads", "2", "--socket-threads", count]);
    let threads = [&[][..], &["--threads", "2"], &apart[0], &apart[1]];
    for options in threads {
        let rig = Rig::new();
        let create =
            ["create", "--scheme", "eplog", "--parity", "1", "--shards", "3", "--file-size", "36MiB"];
        rig.run(&[&create[..], &["--data", "d0", "d1", "d2", "--log", "l0"]].concat()).ok();
        let members = ["d0", "d1", "d2", "l0"];
        let start = || rig.serve(&members, &[&["--vhost-user-blk", "disk"], options].concat());
        let server = start();
        let mut nbd =
            rig.qemu_io_child(&["write -P 0x21 16M 12M", "flush", "write -P 0x22 17M 64k"].repeat(4));
        let mut one = Disk::connect(&rig.path("disk"), 3).unwrap();
        for (ring, index) in (0..3).flat_map(|ring| (0..100).map(move |index| (ring, index))) {
            let at = (ring * 100 + index) * 4096;
            one.put(at, &[u8::try_from(ring).unwrap() + 1; 4096]);
            one.ask(ring, index, Wish::Write { offset: block(ring, index), length: 4096, at });
        }
        for ring in 0..3 {
            let mut left = 100;
            while left > 0 {
                let ends = one.ends(ring, 1);
                assert!(!ends.is_empty() && ends.iter().all(|end| end.1 == 0), "{ends:?}");
                left -= ends.len();
            }
        }
        assert_eq!(one.have(Wish::Flush), 0);
        assert!(nbd.wait().unwrap().success());
        let looks: Vec<String> = (0..3)
            .flat_map(|ring| (0..100).step_by(7).map(move |index| (ring, index)))
            .map(|(ring, index)| format!("read -P {} {} 4k", ring + 1, block(ring, index)))
            .collect();
        let looks: Vec<&str> = looks.iter().map(String::as_str).collect();
        let of_nbd = |one: &mut Disk| {
            one.read(16 << 20, 1 << 20) == [0x21; 1 << 20] && one.read(17 << 20, 64 << 10) == [0x22; 64 << 10]
        };
        rig.qemu_io(&looks).ok();
        assert!(of_nbd(&mut one), "{options:?}");
        server.kill();
        let server = start();
        rig.qemu_io(&looks).ok();
        let mut one = disk(&rig);
        rig.qemu_io(&["write -P 0x23 20M 1M"]).ok();
        assert!(of_nbd(&mut one) && one.read(20 << 20, 1 << 20) == [0x23; 1 << 20], "{options:?}");
        drop(one);
        server.stop().ok();
        assert_eq!(rig.status(&members)["clean"], true);
    }
}

#[test]
fn questions_under_load_are_answered_when_it_ends() {
    for options in [&[][..], &["--socket-threads", "2"]] {
        let rig = Rig::with_array();
        let server = serve(&rig, options);
        let (said, heard) = mpsc::channel();
        let path = rig.path("disk");
        // A thread of its own, as such a question waits without end.
        let asks = std::thread::spawn(move || {
            let mut one = Disk::connect(&path, 1).unwrap();
            one.write(0, &noise(6, 1 << 20));
            assert_eq!(one.have(Wish::Flush), 0);
            for _ in 0..100 {
                one.ask(0, 1, Wish::Read { offset: 0, length: 1 << 20, at: 0 });
                // The first may be answered before the request is seen.
                (0..3).for_each(|_| assert!(one.blkio.get_u64("capacity").unwrap() > 0));
                assert_eq!(one.ends(0, 1), [(1, 0)]);
                said.send(()).unwrap();
            }
        });
        for question in 0..100 {
            let answer = heard.recv_timeout(Duration::from_secs(20));
            assert!(answer.is_ok(), "question {question}, {options:?}: {answer:?}");
        }
        asks.join().unwrap();
        server.stop().ok();
    }
}

#[test]
fn discards_and_zeroes_read_as_zeros_and_bad_requests_as_errors() {
    let rig = Rig::with_array();
    let server = serve(&rig, &[]);
    let mut one = disk(&rig);
    let bytes = noise(4, 1 << 20);
    one.write(0, &bytes);
    assert_eq!(one.have(Wish::Discard { offset: 64 << 10, length: 64 << 10 }), 0);
    assert_eq!(one.have(Wish::Zero { offset: 256 << 10, length: 1 << 10 }), 0);
    let mut expected = bytes;
    expected[64 << 10..128 << 10].fill(0);
    expected[256 << 10..(256 << 10) + 1024].fill(0);
    assert!(one.read(0, 1 << 20) == expected);
    let size = one.blkio.get_u64("capacity").unwrap();
    for wish in [
        Wish::Write { offset: size, length: 4096, at: 0 },
        Wish::Write { offset: size - 2048, length: 4096, at: 0 },
        Wish::Read { offset: size - 512, length: 1024, at: 0 },
        Wish::Read { offset: u64::MAX - 511, length: 512, at: 0 },
        Wish::Discard { offset: size - 512, length: 1024 },
        Wish::Zero { offset: size, length: 512 },
    ] {
        assert_eq!(one.have(wish), EIO, "{wish:?}");
    }
    assert!(one.read(0, 1 << 20) == expected);
    drop(one);
    server.stop().ok();
}

#[test]
fn a_read_only_disk_is_read_only() {
    let rig = Rig::with_array();
    let server = serve(&rig, &["--read-only"]);
    let mut one = Disk::connect_as(&rig.path("disk"), 1, "read-only").unwrap();
    assert_eq!(one.read(0, 4096), vec![0; 4096]);
    assert_ne!(one.have(Wish::Write { offset: 0, length: 4096, at: 0 }), 0);
    drop(one);
    server.stop().ok();
}

#[test]
fn a_socket_serves_one_client_at_a_time_and_stop_minds_it() {
    let rig = Rig::with_array();
    let mut server = serve(&rig, &["--vhost-user-blk", "other"]);
    let mut one = disk(&rig);
    one.write(0, &noise(5, 4096));
    assert!(Disk::connect(&rig.path("disk"), 1).is_none());
    server.await_log("another client is being served at this socket");
    let two = Disk::connect(&rig.path("other"), 1).unwrap();
    rig.on("stop", &["d0"], &[]).refused(&["2 clients are connected", "--force"]);
    // With requests under way, and at once again.
    (0..50).for_each(|tag| one.ask(0, tag, Wish::Read { offset: 0, length: 4096, at: 0 }));
    drop((one, two));
    for _ in 0..5 {
        let mut again = disk(&rig);
        assert!(again.read(0, 4096) == noise(5, 4096));
    }
    until("nobody is left", || rig.status(&["d0"])["clients"] == 0);
    let held = disk(&rig);
    rig.on("stop", &["d0"], &["--force"]).ok();
    server.wait().ok();
    drop(held);
    assert!(!rig.path("disk").exists());
    assert_eq!(rig.status(&MEMBERS)["clean"], true);
}
