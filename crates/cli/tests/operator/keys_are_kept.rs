//! `kv serve`: keys that clients set through a real socket are there when the server is back, however it
//! ended.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Ran, Rig, every_scheme, has};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The least of a client.
pub struct Client(BufReader<UnixStream>);

impl Client {
    pub fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        Self(BufReader::new(stream))
    }

    fn send(&mut self, words: &[&[u8]]) {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        self.0.get_mut().write_all(&bytes).unwrap();
    }

    /// The next answer; `None`: nothing was there.
    fn answer(&mut self) -> Option<Vec<u8>> {
        let mut line = String::new();
        assert!(self.0.read_line(&mut line).unwrap() > 0, "the server has gone");
        let line = line.trim_end();
        match line.split_at(1) {
            ("$", "-1") => None,
            ("$", length) => {
                let mut bytes = vec![0; length.parse::<usize>().unwrap() + 2];
                self.0.read_exact(&mut bytes).unwrap();
                bytes.truncate(bytes.len() - 2);
                Some(bytes)
            }
            _ => Some(line.as_bytes().to_vec()),
        }
    }

    fn ask(&mut self, words: &[&[u8]]) -> Option<Vec<u8>> {
        self.send(words);
        self.answer()
    }

    pub fn says(&mut self, words: &str) -> String {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        self.ask(&words).map_or("nothing".to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn key(number: u32) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

/// A value that tells its number and how often it was set; of any length up to 20 KB.
fn value(number: u32, time: u32) -> Vec<u8> {
    let length = usize::try_from((number * 7919 + time * 104_729) % 20_000).unwrap();
    let text = format!("{number}/{time};");
    text.as_bytes().iter().copied().cycle().take(length + text.len()).collect()
}

const KEYS: u32 = 300;

/// Sets all keys, some once more, and deletes some, in a pipeline; everything is acknowledged.
fn set_all(client: &mut Client, time: u32) {
    for number in 0..KEYS {
        client.send(&[b"SET", &key(number), &value(number, time)]);
    }
    (0..KEYS).for_each(|_| assert_eq!(client.answer().unwrap(), b"+OK"));
    for number in (0..KEYS).step_by(3) {
        assert_eq!(client.ask(&[b"SET", &key(number), &value(number, time + 1)]).unwrap(), b"+OK");
    }
    for number in (0..KEYS).step_by(7) {
        assert_eq!(client.ask(&[b"DEL", &key(number)]).unwrap(), b":1");
    }
}

fn check_all(client: &mut Client, time: u32, when: &str) {
    for number in 0..KEYS {
        let expected = match (number % 7, number % 3) {
            (0, _) => None,
            (_, 0) => Some(value(number, time + 1)),
            (_, _) => Some(value(number, time)),
        };
        let found = client.ask(&[b"GET", &key(number)]);
        assert!(found == expected, "{when}: key {number} is {:?}", found.map(|bytes| bytes.len()));
    }
    let expected = (0..KEYS).filter(|number| number % 7 != 0).count();
    assert_eq!(client.says("DBSIZE"), format!(":{expected}"), "{when}");
}

#[test]
fn keys_of_every_scheme_outlive_a_kill_the_loss_of_a_member_and_a_stop() {
    for (scheme, logs) in every_scheme() {
        let rig = Rig::new();
        let mut members = vec!["d0", "d1", "d2", "d3"];
        let mut create = vec!["create", "--scheme", scheme, "--parity", "1", "--file-size", "48MiB"];
        create.extend(["--data", "d0", "d1", "d2", "d3"]);
        if logs {
            create.extend(["--log", "l0"]);
            members.push("l0");
        }
        if scheme == "raid" {
            create.extend(["--consistency", "journal"]);
        }
        rig.run(&create).ok();
        let server = rig.serve_keys(&members, &["--create"]);
        let socket = rig.path("keys");
        let mut client = Client::connect(&socket);
        set_all(&mut client, 0);
        check_all(&mut client, 0, scheme);
        server.kill();

        let server = rig.serve_keys(&members, &[]);
        let mut client = Client::connect(&socket);
        check_all(&mut client, 0, &format!("{scheme} after a kill"));
        rig.on("fail", &["d2"], &["--device", "data1", "--yes"]).ok();
        check_all(&mut client, 0, &format!("{scheme} without a member"));
        set_all(&mut client, 5);
        server.kill();

        let server = rig.serve_keys(&members, &["--degraded"]);
        let mut client = Client::connect(&socket);
        check_all(&mut client, 5, &format!("{scheme} after a kill without a member"));
        drop(client);
        let ran = server.stop().ok();
        assert!(ran.out.contains("stopped in order"), "{scheme}: {ran:#?}");
        let server = rig.serve_keys(&members, &["--degraded", "--sync", "flush"]);
        let mut client = Client::connect(&socket);
        check_all(&mut client, 5, &format!("{scheme} after a stop"));
        assert_eq!(client.says("SET last word"), "+OK");
        assert_eq!(client.says("SAVE"), "+OK");
        server.kill();
        let _server = rig.serve_keys(&members, &["--degraded"]);
        assert_eq!(Client::connect(&socket).says("GET last"), "word", "{scheme}: it was saved");
    }
}

/// It failed with these words, after what it said of the array.
#[track_caller]
fn refuses(ran: &Ran, words: &[&str]) {
    assert!(ran.code == 1 && words.iter().all(|word| ran.err.contains(word)), "expected {words:?}: {ran:#?}");
}

#[test]
fn a_store_is_made_where_nothing_is_and_only_when_that_is_wanted() {
    let rig = Rig::with_array();
    let serve = |options: &[&str]| {
        let run = ["--resp", "unix:keys", "--run", "true"];
        rig.run(&[&["kv", "serve"][..], &MEMBERS, &run, options].concat())
    };
    refuses(&serve(&[]), &["no store", "--create"]);
    assert!(serve(&["--create"]).ok().err.contains("0 keys"));
    serve(&[]).ok();
    serve(&["--create"]).ok();
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    rig.qemu_io(&["write -P 7 512k 4k", "flush"]).ok();
    server.stop().ok();
    let serve = |options: &[&str]| {
        let run = ["--resp", "unix:keys", "--run", "true"];
        rig.run(&[&["kv", "serve"][..], &MEMBERS, &run, options].concat())
    };
    refuses(&serve(&["--create"]), &["not empty", "524288", "0x07", "--overwrite"]);
    serve(&["--overwrite"]).ok();
    serve(&[]).ok();
}

#[test]
fn a_second_server_hears_of_the_first_and_a_small_array_what_a_store_needs() {
    let rig = Rig::with_array();
    let _server = rig.serve_keys(&MEMBERS, &["--create"]);
    let second = ["--resp", "unix:other", "--run", "true"];
    let ran = rig.run(&[&["kv", "serve"][..], &MEMBERS, &second].concat());
    ran.refused(&["is being served already, by process", "keys", "elastripe status"]);
    let rig = Rig::new();
    let create = ["create", "--scheme", "raid", "--parity", "1", "--file-size", "4MiB"];
    rig.run(&[&create[..], &["--data", "a", "b", "c"]].concat()).ok();
    let ran = rig.run(&["kv", "serve", "a", "b", "c", "--create", "--resp", "unix:keys", "--run", "true"]);
    refuses(&ran, &["no store can be made", "a store needs at least 12611584"]);
    // An allocation that fails would end the process with a trace.
    let much = ["--run", "true", "--memory", "1000TiB", "--cache-records", "100TiB"];
    let ran = rig.run(&[&["kv", "serve", "a", "b", "c", "--resp", "unix:keys"][..], &much].concat());
    ran.refused(&["--cache-records 100 TiB: this machine has", "--memory"]).code(1);
    for option in ["--idle-timeout", "--command-timeout"] {
        let ran = rig.run(&["kv", "serve", "a", "--resp", "unix:keys", option, "0s"]).code(2);
        ran.refused(&[option, "0s", "or off"]);
    }
}

#[test]
fn who_lacks_the_password_stays_outside_and_bad_files_are_refused() {
    let rig = Rig::with_array();
    std::fs::write(rig.path("word"), "sesame\nignored").unwrap();
    std::fs::write(rig.path("empty"), "\n").unwrap();
    let bad = |file: &str| {
        let options = ["--resp", "unix:keys", "--password-file", file];
        rig.run(&[&["kv", "serve"][..], &MEMBERS, &options].concat())
    };
    bad("none").refused(&["none"]);
    bad("empty").refused(&["empty", "expected a password"]);
    rig.run(&[&["kv", "serve"][..], &MEMBERS].concat()).code(2);
    let server = rig.serve_keys(&MEMBERS, &["--create", "--password-file", "word"]);
    let mut client = Client::connect(&rig.path("keys"));
    assert!(client.says("GET a").starts_with("-NOAUTH"));
    assert!(client.says("AUTH simsim").starts_with("-WRONGPASS"));
    assert_eq!(client.says("AUTH sesame"), "+OK");
    assert_eq!(client.says("SET a 1"), "+OK");
    let status = rig.status(&["d0"]);
    assert!(status["uris"][0].as_str().unwrap().starts_with("redis+unix://"), "{status}");
    let store = &status["store"];
    assert!(store["keys"] == 1 && store["given_bytes"].as_u64().unwrap() >= 2, "{status}");
    assert!(store["live_bytes"].as_u64() < store["capacity_bytes"].as_u64(), "{status}");
    rig.on("stop", &["d1"], &["--force"]).ok();
    server.wait().ok();
    assert_eq!(rig.status(&MEMBERS)["clean"], true);
}

#[test]
fn redis_cli_speaks_to_it_encrypted() {
    if !has("openssl") || !has("redis-cli") {
        return;
    }
    let rig = Rig::with_array();
    let script = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -subj /CN=localhost -days 2 \
                  -addext subjectAltName=DNS:localhost,IP:127.0.0.1";
    let made = Command::new("sh").args(["-c", script]).current_dir(rig.dir.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let script = "head -c 3000000 /dev/urandom > data; cli() { redis-cli --tls --cacert cert.pem -h localhost -p ${ELASTRIPE_URI##*:} \"$@\"; }; \
                  cli -x set big < data && cli get big | head -c 3000000 | cmp - data && echo same; cli ping; \
                  timeout 5 redis-cli -p ${ELASTRIPE_URI##*:} ping || echo refused";
    let options = ["--resp", "tcp:127.0.0.1:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem", "--create"];
    let ran = rig.run(&[&["kv", "serve"][..], &MEMBERS, &options, &["--run", script]].concat());
    assert!(["OK", "same", "PONG"].iter().all(|word| ran.out.contains(word)), "{ran:#?}");
    assert!(!ran.out.contains("PONG\nPONG"), "{ran:#?}");
}

/// The store is not tied to an array in its process: any export carries it.
#[test]
fn the_store_is_measured_over_any_nbd_export() {
    let rig = Rig::new();
    rig.create(&[]).ok();
    let server = rig.serve(&MEMBERS, &[]);
    let bench = ["kv", "bench", "--nbd", "unix:nbd", "--workload", "set,update,get,e", "--requests", "3000"];
    assert!(rig.run(&bench).err.contains("--overwrite"));
    let keys = |number: &str| rig.run(&[&bench[..], &["--overwrite", "--keys", number]].concat());
    keys("1000000").refused(&["--keys", "the export has"]);
    let ran = keys("4000").ok();
    for word in ["set     nbd", "update  nbd", "get     nbd", "e       nbd", "by devices: not seen"] {
        assert!(ran.out.contains(word), "{word}: {ran:#?}");
    }
    server.stop().ok();
    // What it wrote is a store like any other.
    let server = rig.serve_keys(&MEMBERS, &[]);
    let mut client = Client::connect(&rig.path("keys"));
    assert!(client.says("DBSIZE")[1..].parse::<u32>().unwrap() >= 4000);
    server.stop().ok();
}

#[test]
fn a_store_is_not_served_as_a_disk_by_mistake() {
    let rig = Rig::with_array();
    let run = ["--run", "true"];
    rig.run(&[&["kv", "serve"][..], &MEMBERS, &["--create", "--resp", "unix:keys"], &run].concat()).ok();
    let serve =
        |more: &[&str]| rig.run(&[&["serve"][..], &MEMBERS, &["--nbd", "unix:nbd"], &run, more].concat());
    for more in [&[][..], &["--socket-threads", "2"]] {
        let refused = serve(more).code(1);
        let words = ["holds a store of keys", "kv serve", "--read-only", "--store-as-disk"];
        assert!(words.iter().all(|word| refused.err.contains(word)), "{refused:?}");
        assert_eq!(rig.status(&MEMBERS)["clean"], true, "stopped in order");
        serve(&[&["--read-only"][..], more].concat()).ok();
        serve(&[&["--store-as-disk"][..], more].concat()).ok();
    }
    let keys = |more: &[&str]| {
        rig.run(&[&["kv", "serve"][..], &MEMBERS, &["--resp", "unix:keys"], &run, more].concat())
    };
    keys(&[]).ok();
    if !has("qemu-io") {
        return;
    }
    // Without its tables it is of no use any more, and makes room for another only if that is wanted.
    let spoil = "qemu-io -f raw \"$ELASTRIPE_URI\" -c 'write -P 0 8k 40k'";
    let options = ["--nbd", "unix:nbd", "--store-as-disk", "--run", spoil];
    rig.run(&[&["serve"][..], &MEMBERS, &options].concat()).ok();
    for more in [&["--create"][..], &[]] {
        let refused = keys(more).code(1);
        assert!(refused.err.contains("table of segments"), "{refused:?}");
    }
    keys(&["--overwrite"]).ok();
    keys(&[]).ok();
}
