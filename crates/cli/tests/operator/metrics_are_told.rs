//! Metrics over HTTP, as Prometheus reads them.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{Rig, has};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// An address that nobody listens at.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// What a client sends, and all that comes back.
fn say(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer); // who says nonsense may be cut off
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(address: &str, path: &str) -> String {
    say(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"))
}

/// The value of a series.
fn value(page: &str, series: &str) -> f64 {
    let line = page.lines().find(|line| line.rsplit_once(' ').is_some_and(|(name, _)| name == series));
    line.unwrap_or_else(|| panic!("{series} is not in\n{page}")).rsplit_once(' ').unwrap().1.parse().unwrap()
}

fn rig() -> (Rig, [&'static str; 4]) {
    let rig = Rig::new();
    let members = ["d0", "d1", "d2", "l0"];
    let shape = [
        "create",
        "--scheme",
        "eplog",
        "--parity",
        "1",
        "--shards",
        "2",
        "--file-size",
        "64MiB",
        "--name",
        "tank",
    ];
    rig.run(&[&shape[..], &["--data", "d0", "d1", "d2", "--log", "l0"]].concat()).ok();
    (rig, members)
}

#[test]
fn of_requests_devices_and_states() {
    if !has("qemu-io") {
        return;
    }
    for clients in ["0", "2"] {
        let ((rig, members), address) = (rig(), free_address());
        let server = rig.serve(&members, &["--metrics", &address, "--socket-threads", clients]);
        let fresh = get(&address, "/metrics");
        assert!(fresh.starts_with("HTTP/1.1 200"), "{fresh}");
        assert!(fresh.to_lowercase().contains("content-type: application/openmetrics-text; version=1.0.0"));
        assert!(fresh.contains("# EOF\n") && fresh.contains("name=\"tank\""), "{fresh}");
        assert_eq!(value(&fresh, "elastripe_state{state=\"healthy\"}"), 1.0);
        assert_eq!(value(&fresh, "elastripe_requests_total{kind=\"write\"}"), 0.0);
        assert!(!fresh.contains("write_amplification"), "nothing was written that it could be measured by");

        rig.qemu_io(&["write -P 7 0 3M", "write -P 8 1M 4k", "read -P 7 0 1M", "flush"]).ok();
        let page = get(&address, "/metrics");
        assert_eq!(value(&page, "elastripe_request_bytes_total{kind=\"write\"}"), 3_149_824.0);
        assert_eq!(value(&page, "elastripe_request_bytes_total{kind=\"read\"}"), 1_048_576.0);
        assert!(value(&page, "elastripe_requests_total{kind=\"flush\"}") >= 1.0, "{page}");
        for kind in ["read", "write", "flush", "discard"] {
            let count = value(&page, &format!("elastripe_requests_total{{kind=\"{kind}\"}}"));
            let name = "elastripe_request_duration_seconds";
            assert_eq!(
                value(&page, &format!("{name}_bucket{{le=\"+Inf\",kind=\"{kind}\"}}")),
                count,
                "{page}"
            );
            assert_eq!(value(&page, &format!("{name}_sum{{kind=\"{kind}\"}}")) > 0.0, count > 0.0, "{page}");
        }
        assert!(value(&page, "elastripe_write_amplification_ratios") >= 1.0, "{page}");
        let data = "elastripe_device_written_bytes_total{device=\"data1\",content=\"data\"}";
        assert!(value(&page, data) >= 1_048_576.0, "{page}");

        rig.on("fail", &["d0"], &["--device", "data0", "--yes"]).ok();
        let page = get(&address, "/metrics");
        assert_eq!(value(&page, "elastripe_state{state=\"healthy\"}"), 0.0);
        assert_eq!(value(&page, "elastripe_state{state=\"degraded\"}"), 1.0);
        assert_eq!(value(&page, "elastripe_failures_tolerated"), 0.0);
        assert_eq!(value(&page, "elastripe_devices{role=\"main\",state=\"failed\"}"), 1.0);

        // The same in `status`.
        let status = rig.status(&["d1"]);
        assert_eq!(status["requests"]["write"]["bytes"], 3_149_824, "{status:#}");
        assert!(status["requests"]["write"]["p999_us"].as_u64().is_some(), "{status:#}");
        server.stop().ok();
    }
}

#[test]
fn nobody_who_asks_can_harm_the_array() {
    if !has("qemu-io") {
        return;
    }
    let ((rig, members), address) = (rig(), free_address());
    let server = rig.serve(&members, &["--metrics", &address]);
    assert!(get(&address, "/").starts_with("HTTP/1.1 200"));
    assert!(get(&address, "/etc/passwd").starts_with("HTTP/1.1 404"));
    assert!(
        say(&address, "POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").contains(" 405 ")
    );
    say(&address, "\u{1}\u{2} nonsense\r\n\r\n");
    // More than there are places.
    let silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&address).unwrap()).collect();
    rig.qemu_io(&["write -P 9 0 1M", "read -P 9 0 1M"]).ok();
    assert_eq!(value(&get(&address, "/metrics"), "elastripe_state{state=\"healthy\"}"), 1.0);
    drop(silent);

    let (other, its) = self::rig();
    let before = other.fingerprint(&its);
    let port_in_use = ["--metrics", &address, "--run", "true"];
    other.on("serve", &its, &port_in_use).refused(&["--metrics", &address, "in use"]);
    other
        .on("serve", &its, &["--metrics", "nowhere", "--run", "true"])
        .refused(&["--metrics: found \"nowhere\", expected HOST:PORT"]);
    assert_eq!(other.fingerprint(&its), before, "nothing was touched in vain");
    server.stop().ok();
}
