//! The shape of the result, verification, and bad input, on traces made by the test.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::replay_common::{elastripe, number, refused, replay};
use front::memory::MemoryVolume;
use front::{Flow, Hooks, Interest, Protocol, Server, ServerOptions};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use trace::{Op, Synthetic, SyntheticOptions};

const TOTALS: [&str; 10] = [
    "requests",
    "user_chunks_written",
    "user_chunks_read",
    "data_chunks_written",
    "parity_chunks_written",
    "log_chunks_written",
    "data_chunks_read",
    "parity_chunks_read",
    "log_chunks_read",
    "metadata_bytes_written",
];

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    /// A mix of reads, writes, flushes and trims, off chunk boundaries too.
    fn synthetic(&self, requests: u64, seed: u64) -> String {
        let options = SyntheticOptions {
            seed,
            request_count: requests,
            volume_bytes: 24 << 20,
            unaligned_percent: 30,
            interval_us_mean: 10,
            ..SyntheticOptions::default()
        };
        let mut text = "ts_us,dev,op,offset,len\n".to_owned();
        for (request, number) in Synthetic::new(options).unwrap().zip(0u64..) {
            let op = match request.op {
                Op::Read => "R",
                Op::Write | Op::Flush | Op::Trim => "W",
            };
            let (time, offset, length) = (request.time_us, request.offset_bytes, request.length_bytes);
            writeln!(text, "{time},0,{op},{offset},{length}").unwrap();
            if number % 50 == 7 {
                writeln!(text, "{time},0,F,0,0").unwrap();
            }
            if number % 50 == 31 {
                writeln!(text, "{time},0,T,{offset},{}", 3 * length).unwrap();
            }
        }
        self.write("synthetic.csv", &text)
    }
}

#[track_caller]
fn has_phase_keys(phase: &Value) {
    for key in TOTALS {
        assert!(phase["totals"][key].is_u64(), "totals.{key} in {phase:#}");
    }
    for key in ["seconds", "requests_per_second", "write_amplification", "write_amplification_all"] {
        assert!(phase[key].is_number(), "{key} in {phase:#}");
    }
    for key in ["mean", "p50", "p99", "p999", "max"] {
        assert!(phase["latency_us"][key].is_number(), "latency_us.{key}");
    }
    assert!(phase["log_stripes"]["count"].is_u64() && phase["commit"]["count"].is_u64());
    assert!(phase["commit"]["stripes"].is_u64());
    let devices = phase["devices"].as_array().unwrap();
    for key in &TOTALS[3..] {
        let sum: u64 = devices.iter().map(|device| device[key].as_u64().unwrap()).sum();
        assert_eq!(sum, number(phase, &format!("/totals/{key}")), "{key}");
    }
}

#[test]
fn json_has_the_documented_keys() {
    let scratch = Scratch::new();
    let trace = scratch.synthetic(500, 3);
    let result =
        replay(&["--trace", &trace, "--device", "memory", "--geometry", "4+2", "--fill", "--seed", "9"]);
    has_phase_keys(&result);
    has_phase_keys(&result["fill"]);
    assert!(result["config"].is_object() && result["version"].is_string());
    assert_eq!(result["seed"], 9);
    let roles: Vec<_> =
        result["devices"].as_array().unwrap().iter().map(|d| d["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["main", "main", "main", "main", "main", "main", "log", "log"]);
    let documented =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/replay.md")).unwrap();
    for key in result.as_object().unwrap().keys().chain(result["totals"].as_object().unwrap().keys()) {
        assert!(documented.contains(&format!("`{key}`")), "docs/replay.md does not explain {key}");
    }
    let file = scratch.path("result.json");
    let arguments = format!("--json={}", file.display());
    let output = elastripe(&["replay", "--trace", &trace, "--device", "null", &arguments]);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("requests/s"));
    let written: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    has_phase_keys(&written);
    assert!(written["fill"].is_null());
}

/// what a checkpoint takes is counted apart from the phase before it.
#[test]
fn checkpoints_behind_the_phases_are_counted_apart() {
    let scratch = Scratch::new();
    let trace = scratch.synthetic(500, 3);
    let common = ["--trace", &trace, "--device", "null", "--geometry", "4+2", "--fill", "--queue-depth", "1"];
    let with = |more: &[&str]| replay(&[&common[..], more].concat());
    let (none, full) = (with(&[]), with(&["--checkpoint", "full"]));
    let incremental = with(&["--checkpoint", "incremental"]);
    assert!(none["checkpoint_at_end"].is_null() && none["fill"]["checkpoint_at_end"].is_null());
    assert_eq!(none["totals"]["data_chunks_written"], full["totals"]["data_chunks_written"]);
    for (result, kind) in [(&full, "full"), (&incremental, "incremental")] {
        assert_eq!(result["fill"]["checkpoint_at_end"]["kind"], "full");
        assert_eq!(result["checkpoint_at_end"]["kind"], kind);
        let (main, all) = (
            number(result, "/checkpoint_at_end/main_bytes_written"),
            number(result, "/checkpoint_at_end/metadata_bytes_written"),
        );
        assert!(main > 0 && main <= all, "{result:#}");
    }
}

#[test]
fn content_is_verified_under_every_scheme_and_depth() {
    let scratch = Scratch::new();
    let trace = scratch.synthetic(3000, 5);
    for scheme in ["eplog", "raid", "parity-log"] {
        for (depth, more) in [
            ("1", &["--fill", "--compact"][..]),
            ("32", &["--sectors"]),
            ("7", &["--sync", "--commit-every", "100"]),
        ] {
            let common = [
                "--trace",
                &trace,
                "--device",
                "memory",
                "--scheme",
                scheme,
                "--verify",
                "--queue-depth",
                depth,
            ];
            // raid has nothing to commit.
            let more = if scheme == "raid" && depth == "7" { &more[..1] } else { more };
            let result = replay(&[&common, more].concat());
            assert!(number(&result, "/verify/sectors_checked") > 10_000, "{scheme} {depth}");
            assert_eq!(number(&result, "/verify/mismatches"), 0, "{scheme} {depth}");
        }
    }
    // Little space: commits come by themselves, content stays right.
    let small = ["--trace", &trace, "--device", "memory", "--device-size", "5MiB", "--verify", "--fill"];
    let result = replay(&small);
    assert!(number(&result, "/commit/count") > 0);
    assert_eq!(number(&result, "/verify/mismatches"), 0);
}

#[test]
fn timed_replay_takes_the_time_of_the_trace() {
    let scratch = Scratch::new();
    let trace = scratch.write("t.csv", "ts_us,dev,op,offset,len\n0,0,W,0,4096\n40000,0,W,4096,4096\n");
    let result = replay(&["--trace", &trace, "--device", "memory", "--timed", "--speed", "2"]);
    assert!(result["seconds"].as_f64().unwrap() >= 0.02);
}

struct StopWhenAsked(UnixStream);

impl Hooks<MemoryVolume> for StopWhenAsked {
    fn extra_fds<'a>(&'a self, out: &mut Vec<(BorrowedFd<'a>, Interest)>) {
        out.push((self.0.as_fd(), Interest::Read));
    }

    fn on_ready(&mut self, _: RawFd, _: &mut MemoryVolume) -> Flow {
        self.0.read_exact(&mut [0]).unwrap();
        Flow::Stop
    }
}

#[test]
fn the_automatic_size_holds_all_log_chunks_and_frames_of_durable_writes() {
    let scratch = Scratch::new();
    let mut text = "ts_us,dev,op,offset,len\n".to_owned();
    // No two of them in one log stripe: each is alone on its way.
    for number in 0..20_000_u64 {
        let chunk = (number.wrapping_mul(6_364_136_223_846_793_005) >> 40) % 4096;
        writeln!(text, "{number},0,W,{},4096", chunk * 4096).unwrap();
    }
    let trace = scratch.write("updates.csv", &text);
    for scheme in ["eplog", "parity-log"] {
        let json = replay(&[
            "--trace",
            &trace,
            "--device",
            "null",
            "--geometry",
            "4+1",
            "--scheme",
            scheme,
            "--commit-every",
            "never",
            "--queue-depth",
            "1",
            "--sync",
        ]);
        assert_eq!(number(&json, "/commit/count"), 0, "{scheme}: {:#}", json["commit"]);
        assert_eq!(number(&json, "/totals/log_chunks_written"), 20_000, "{scheme}");
        assert_eq!(number(&json, "/devices/5/repositionings"), 0, "{scheme}: {:#}", json["devices"][5]);
    }
}

/// Runs `client` against a server of plain memory.
fn with_server(socket: &Path, size_bytes: usize, client: impl FnOnce()) {
    let mut server = Server::new(ServerOptions { export_name: "vol".to_owned(), ..ServerOptions::default() });
    server.listen_unix(Protocol::Nbd, socket).unwrap();
    let (mut stop, stopped) = UnixStream::pair().unwrap();
    std::thread::scope(|scope| {
        let running = scope.spawn(move || {
            server.run(&mut MemoryVolume::new(size_bytes, 4096, 4096), &mut StopWhenAsked(stopped)).unwrap();
        });
        client();
        stop.write_all(&[1]).unwrap();
        running.join().unwrap();
    });
}

#[test]
fn over_nbd() {
    let scratch = Scratch::new();
    let (trace, socket) = (scratch.synthetic(2000, 8), scratch.path("s"));
    with_server(&socket, 32 << 20, || {
        for uri in
            [format!("nbd+unix:///vol?socket={}", socket.display()), format!("unix:{}", socket.display())]
        {
            let result = replay(&[
                "--trace",
                &trace,
                "--nbd",
                &uri,
                "--overwrite",
                "--verify",
                "--fill",
                "--sectors",
                "--queue-depth",
                "16",
            ]);
            assert_eq!(number(&result, "/verify/mismatches"), 0);
            assert!(number(&result, "/verify/sectors_checked") > 10_000);
            assert!(
                result["totals"]["data_chunks_written"].is_null()
                    && result["devices"].as_array().unwrap().is_empty()
            );
        }
        let other = format!("nbd+unix:///other?socket={}", socket.display());
        refused(&["replay", "--trace", &trace, "--nbd", &other, "--overwrite"], "other");
        let big = scratch.write("big.csv", "ts_us,dev,op,offset,len\n0,0,W,999999488,512\n");
        let vol = format!("unix:{}", socket.display());
        refused(&["replay", "--trace", &big, "--nbd", &vol, "--overwrite"], "--compact");
        refused(&["replay", "--trace", &trace, "--nbd", &vol], "--overwrite");
        for option in
            [["--scheme", "raid"], ["--geometry", "3+1"], ["--device-size", "1GiB"], ["--layout", "fixed"]]
        {
            refused(
                &[&["replay", "--trace", &trace, "--nbd", &vol, "--overwrite"], &option[..]].concat(),
                option[0],
            );
        }
    });
    let gone = format!("unix:{}", socket.display());
    refused(&["replay", "--trace", &trace, "--nbd", &gone, "--overwrite"], "s:");
}

#[test]
fn bad_input_is_named() {
    let scratch = Scratch::new();
    let good = scratch.write("good.csv", "ts_us,dev,op,offset,len\n0,0,W,0,4096\n");
    let bad = scratch.write("bad.csv", "ts_us,dev,op,offset,len\n0,0,W,0,4096\n1,0,X,0,512\n2,0,W,0,512\n");
    let empty = scratch.write("empty.csv", "ts_us,dev,op,offset,len\n");
    let garbage = scratch.write("garbage", "\u{0}\u{1}not a trace at all\n");
    let null = ["--device", "null"];
    let run = |trace: &str, more: &[&str], what: &str| {
        refused(&[&["replay", "--trace", trace], more].concat(), what)
    };
    run("/does/not/exist", &null, "/does/not/exist");
    run(&bad, &null, "bad.csv:3");
    run(&garbage, &null, "garbage");
    run(&empty, &null, "empty.csv");
    run(&good, &[], "--device");
    run(&good, &["--device", "null", "--verify"], "memory");
    run(&good, &["--device", "null", "--geometry", "6"], "6+2");
    run(&good, &["--device", "null", "--geometry", "300+2"], "255");
    run(&good, &["--device", "null", "--chunk-size", "5KiB"], "power of two");
    run(&good, &["--device", "null", "--code", "xor"], "xor");
    run(&good, &["--device", "null", "--log-devices", "1"], "takes 2");
    run(&good, &["--device", "null", "--commit-every", "0"], "end or never");
    run(&good, &["--device", "null", "--device-size", "4KiB"], "--device-size");
    run(&good, &["--nbd", "ftp://x"], "nbd+unix");
    run(&good, &["/dev/null"], "/dev/null");
    let huge = scratch.write("huge.csv", "ts_us,dev,op,offset,len\n0,0,W,9000000000000000000,512\n");
    run(&huge, &null, "--compact");
    let skipped = replay(&["--trace", &bad, "--device", "null", "--skip-bad-lines"]);
    assert_eq!((number(&skipped, "/totals/requests"), number(&skipped, "/bad_lines_skipped")), (2, 1));
    let twice = replay(&["--trace", &good, "--trace", &good, "--device", "null"]);
    assert_eq!(number(&twice, "/totals/requests"), 2);
}
