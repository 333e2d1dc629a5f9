//! The clients people use talk to the server: libnbd's tools, qemu's tools, fio.

use crate::common::{Running, have, noise, run, text};
use front::Limits;
use front::memory::MemoryVolume;

const SIZE: usize = 24 << 20;

/// Few slots, so that tools with large requests run into back-pressure.
fn start() -> Running<MemoryVolume> {
    Running::start(MemoryVolume::new(SIZE, 4096, 512), Limits::default())
}

#[test]
fn nbdinfo_sees_export_list_and_map() {
    if !have(&["nbdinfo"]) {
        return;
    }
    let server = start();
    for uri in [server.uri(), server.tcp_uri()] {
        let json = run("nbdinfo", &["--json", &uri]);
        for fact in [
            "\"protocol\": \"newstyle-fixed\"",
            "\"structured\": true",
            "\"export-name\": \"vol\"",
            "\"description\": \"under test\"",
            "\"export-size\": 25165824",
            "\"base:allocation\"",
            "\"can_multi_conn\": true",
            "\"can_fua\": true",
            "\"can_flush\": true",
            "\"can_trim\": true",
            "\"can_zero\": true",
            "\"can_cache\": true",
            "\"can_df\": true",
            "\"is_read_only\": false",
            "\"block_size_minimum\": 512",
            "\"block_size_preferred\": 4096",
            "\"block_size_maximum\": 33554432",
        ] {
            assert!(json.contains(fact), "{fact} is not in\n{json}");
        }
    }
    assert!(run("nbdinfo", &["--list", "--json", &server.uri()]).contains("\"export-name\": \"vol\""));
    let map: Vec<_> =
        run("nbdinfo", &["--map", &server.uri()]).split_whitespace().map(str::to_owned).collect();
    assert_eq!(map, ["0", "25165824", "3", "hole,zero"]);
    let (summary, _) = server.stop();
    assert_eq!(summary.faults, 0);
}

#[test]
fn nbdcopy_copies_there_and_back() {
    if !have(&["nbdcopy"]) {
        return;
    }
    let server = start();
    let data = noise(1, SIZE);
    let (from, to) = (server.file("from"), server.file("to"));
    std::fs::write(&from, &data).unwrap();
    run("nbdcopy", &["--flush", text(&from), &server.uri()]);
    run("nbdcopy", &[&server.uri(), text(&to)]);
    assert!(std::fs::read(&to).unwrap() == data, "over the unix socket");
    run("nbdcopy", &["--request-size=8388608", &server.tcp_uri(), text(&to)]);
    assert!(std::fs::read(&to).unwrap() == data, "over TCP, in large requests");
    let (summary, volume) = server.stop();
    assert!(volume.data() == data);
    assert_eq!(summary.faults, 0);
}

#[test]
fn nbdcopy_copies_from_one_server_to_another() {
    if !have(&["nbdcopy"]) {
        return;
    }
    let (one, two) = (start(), start());
    crate::common::TestClient::connect(&one.socket).write(5 << 20, &noise(4, 3 << 20));
    crate::common::TestClient::connect(&two.socket).write(0, &noise(5, 2 << 20));
    run("nbdcopy", &[&one.uri(), &two.uri()]);
    let ((_, one), (_, two)) = (one.stop(), two.stop());
    assert!(one.data() == two.data());
}

#[test]
fn qemu_img_informs_converts_and_compares() {
    if !have(&["qemu-img"]) {
        return;
    }
    let server = start();
    let raw = server.file("raw");
    let qcow = server.file("qcow");
    let mut data = noise(2, SIZE);
    data[1 << 20..9 << 20].fill(0);
    std::fs::write(&raw, &data).unwrap();
    let info = run("qemu-img", &["info", "-f", "raw", &server.uri()]);
    assert!(info.contains("24 MiB (25165824 bytes)"), "{info}");
    run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", text(&raw), &server.uri()]);
    run("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", &server.uri(), text(&qcow)]);
    run("qemu-img", &["compare", "-f", "raw", "-F", "qcow2", text(&raw), text(&qcow)]);
    let (summary, volume) = server.stop();
    assert!(volume.data() == data);
    assert_eq!(summary.faults, 0);
}

#[test]
fn qemu_io_patterns_hold() {
    if !have(&["qemu-io"]) {
        return;
    }
    let server = start();
    let commands = [
        "write -P 0x11 0 4M",
        "write -P 0x22 512 512",
        "write -f -P 0x33 4095k 8k",
        "read -P 0x11 0 512",
        "read -P 0x22 512 512",
        "read -P 0x11 1k 1k",
        "read -P 0x33 4095k 8k",
        "write -z 64k 100k",
        "read -P 0 64k 100k",
        "write -z -u 1M 1M",
        "read -P 0 1M 1M",
        "discard 2M 1M",
        "read -P 0 2M 1M",
        "flush",
        "aio_write -P 0x44 8M 16M",
        "aio_write -P 0x55 6M 1M",
        "aio_flush",
        "read -P 0x44 8M 16M",
        "read -P 0x55 6M 1M",
    ];
    let uri = server.uri();
    let mut arguments = vec!["-f", "raw", uri.as_str()];
    commands.iter().for_each(|command| arguments.extend(["-c", command]));
    run("qemu-io", &arguments);
    let beyond = crate::common::output("qemu-io", &["-f", "raw", &uri, "-c", "read 24M 512"]);
    assert!(!beyond.status.success() || String::from_utf8_lossy(&beyond.stdout).contains("rror"));
    server.stop();
}

#[test]
fn fio_verifies_what_several_jobs_wrote() {
    if !have(&["fio"]) {
        return;
    }
    if !run("fio", &["--enghelp"]).contains("nbd") {
        eprintln!("SKIPPED: this fio has no nbd engine");
        return;
    }
    let server = start();
    let uri = format!("--uri={}", server.uri());
    run(
        "fio",
        &[
            "--name=v",
            "--ioengine=nbd",
            &uri,
            "--rw=randrw",
            "--bsrange=512-256k",
            "--bs_unaligned=0",
            "--blockalign=512",
            "--iodepth=16",
            "--numjobs=3",
            "--size=8M",
            "--offset_increment=8M",
            "--verify=crc32c",
            "--verify_fatal=1",
            "--randseed=5",
            "--fsync=32",
        ],
    );
    server.stop();
}
