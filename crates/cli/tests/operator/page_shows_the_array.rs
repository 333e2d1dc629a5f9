//! The page of `serve --metrics`: what it is made of, and what it is told while things happen.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{Rig, until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Pages that may watch at a time.
const WATCHERS_MAX: usize = 32;

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// A request that has been sent.
fn ask(address: &str, path: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    BufReader::new(stream)
}

/// Head and body of an answer that ends.
fn get(address: &str, path: &str) -> (String, String) {
    let mut answer = String::new();
    ask(address, path).read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

/// A page that is being watched.
struct Watcher(BufReader<TcpStream>);

impl Watcher {
    fn begin(address: &str) -> Self {
        let mut answer = ask(address, "/events");
        let mut line = String::new();
        answer.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        Self(answer)
    }

    /// The next thing that it is told.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            if let Some(told) = line.strip_prefix("data: ") {
                return serde_json::from_str(told).unwrap();
            }
        }
    }

    /// What it is told when something is so.
    fn next_when(&mut self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let told = self.next();
            if is(&told) {
                return told;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{what}: {told:#}");
        }
    }
}

fn rig() -> (Rig, [&'static str; 4]) {
    let rig = Rig::new();
    let shape = ["create", "--scheme", "eplog", "--parity", "1", "--shards", "2", "--file-size", "64MiB"];
    let members = ["--name", "tank", "--data", "d0", "d1", "d2", "--log", "l0"];
    rig.run(&[&shape[..], &members].concat()).ok();
    (rig, ["d0", "d1", "d2", "l0"])
}

/// What a file of the page leads to: links of HTML, imports of scripts.
fn leads_to(body: &str) -> Vec<String> {
    let after = |mark: &str| -> Vec<String> {
        body.split(mark).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    [after("href=\""), after("src=\""), after("from \"")].concat()
}

#[test]
fn it_is_small_and_asks_nobody_else() {
    let ((rig, members), address) = (rig(), free_address());
    let server = rig.serve(&members, &["--metrics", &address]);
    let (mut to_see, mut seen, mut weight) = (vec![String::new()], BTreeSet::new(), 0);
    while let Some(name) = to_see.pop() {
        let name = name.trim_start_matches("./").to_owned();
        // A place on the page, and what is not part of it.
        if name.starts_with('#') || name == "metrics" || !seen.insert(name.clone()) {
            continue;
        }
        let (head, body) = get(&address, &format!("/{name}"));
        assert!(head.starts_with("http/1.1 200"), "{name}: {head}");
        let policy = head.lines().find_map(|line| line.strip_prefix("content-security-policy: ")).unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"), "{policy}");
        for line in ["x-content-type-options: nosniff", "referrer-policy: no-referrer"] {
            assert!(head.contains(line), "{name}: {head}");
        }
        let foreign = body.replace("http://www.w3.org/2000/svg", "").contains("://");
        assert!(!foreign, "{name} names another host");
        let scripted =
            [" style=", " onclick=", "<style", "javascript:"].iter().any(|mark| body.contains(mark));
        assert!(!(name.is_empty() && scripted), "the policy forbids that");
        to_see.extend(leads_to(&body));
        weight += body.len();
    }
    assert!(seen.len() >= 8 && weight <= 150_000, "{weight} bytes: {seen:?}");
    let (_, page) = get(&address, "/");
    assert!(page.contains("<html lang=\"en\">") && page.contains("aria-live=\"polite\""));
    server.stop().ok();
}

#[test]
fn it_is_told_of_a_failure_and_a_rebuild_in_the_words_of_status() {
    let ((rig, members), address) = (rig(), free_address());
    let server = rig.serve(&members, &["--metrics", &address, "--rebuild-rate", "16MiB/s"]);
    let mut watcher = Watcher::begin(&address);
    let first = watcher.next();
    assert_eq!((&first["status"]["state"], &first["status"]["name"]), (&"healthy".into(), &"tank".into()));
    assert!(first["lately"][0]["message"].as_str().unwrap().contains("serving began"), "{first:#}");

    rig.on("fail", &["d0"], &["--device", "data1", "--yes"]).ok();
    let told = watcher.next_when("it is degraded", |told| told["status"]["state"] == "degraded");
    let last = told["lately"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["event"], &last["device"]), (&"failed".into(), &"data1".into()), "{last:#}");
    let said = rig.run(&["status", "d0"]).code(1).out;
    for row in told["rows"].as_array().unwrap() {
        let (label, text) = (row[0].as_str().unwrap(), row[1].as_str().unwrap());
        // Figures that grow meanwhile.
        if !["activity", "checkpoint", "memory", "space", "commit"].contains(&label) {
            assert!(said.contains(&format!("{label:>10}: {text}\n")), "{label}: {text}: {said}");
        }
    }

    let with = ["--device", "data1", "--with", "new", "--file-size", "64MiB", "--wait"];
    rig.on("replace", &["d0"], &with).ok();
    let whole = watcher.next_when("it is healthy again", |told| told["status"]["state"] == "healthy");
    let lately = whole["lately"].as_array().unwrap();
    let place = |event: &str| lately.iter().position(|one| one["event"] == event);
    let places = ["served", "failed", "replaced", "rebuilt"].map(place);
    assert!(places[0].is_some() && places.is_sorted(), "{lately:#?}");
    let times: Vec<u64> = lately.iter().map(|one| one["unix_ms"].as_u64().unwrap()).collect();
    assert!(times.is_sorted() && times[0] > 1_700_000_000_000, "{times:?}");
    server.stop().ok();
}

#[test]
fn only_so_many_watch_and_nothing_is_asked_for_nobody() {
    let ((rig, members), address) = (rig(), free_address());
    let server = rig.serve(&members, &["--metrics", &address]);
    let mut watchers: Vec<Watcher> = (0..WATCHERS_MAX).map(|_| Watcher::begin(&address)).collect();
    let (head, body) = get(&address, "/events");
    assert!(head.starts_with("http/1.1 503") && head.contains("retry-after"), "{head}");
    assert!(body.contains("32 pages"), "{body}");
    for watcher in &mut watchers {
        watcher.next();
    }
    // Those who do not read are no burden either, and who goes makes room.
    watchers.pop();
    until("a seat is free again", || {
        let mut answer = ask(&address, "/events");
        let mut line = String::new();
        answer.read_line(&mut line).unwrap();
        line.starts_with("HTTP/1.1 200")
    });
    drop(watchers);

    // While nobody watches the threads of the page sleep.
    let switches = || -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap().flatten();
        let of_page = |path: &std::path::Path| {
            std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.starts_with("metrics"))
        };
        let count = |path: std::path::PathBuf| {
            let text = std::fs::read_to_string(path.join("status")).unwrap_or_default();
            let lines = text.lines().filter_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            lines.filter_map(|count| count.trim().parse::<u64>().ok()).sum::<u64>()
        };
        tasks.map(|task| task.path()).filter(|path| of_page(path)).map(count).sum()
    };
    let mut before = switches();
    until("they come to rest", || {
        std::thread::sleep(Duration::from_millis(2500));
        let now = switches();
        std::mem::replace(&mut before, now) == now
    });
    let mut again = Watcher::begin(&address);
    assert_eq!(again.next()["status"]["state"], "healthy");
    assert!(switches() > before, "that cannot be measured in this way");
    server.stop().ok();
}
