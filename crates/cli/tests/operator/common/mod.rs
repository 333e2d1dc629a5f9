//! A directory with an array of files in it, and the shipped binary.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[cfg(feature = "vhost-user")]
pub mod disk;
pub mod nbd;
pub mod watched;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How a run of the binary ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// It must have succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:#?}");
        self
    }

    /// It must have ended with this code.
    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// It must have failed with a single line that contains these words.
    #[track_caller]
    pub fn refused(self, words: &[&str]) -> Self {
        assert!(self.code > 0, "{self:#?}");
        assert!(self.err.starts_with("elastripe: ") && self.err.trim_end().lines().count() == 1, "{self:#?}");
        assert!(words.iter().all(|word| self.err.contains(word)), "expected {words:?}: {self:#?}");
        self
    }

    /// Its standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// A directory with member files.
pub struct Rig {
    pub dir: TempDir,
}

/// All schemes, each with the options that name members for its smallest array with that many data devices
/// and one parity.
pub fn every_scheme() -> [(&'static str, bool); 5] {
    [("eplog", true), ("parity-log", true), ("raid", false), ("elastic", false), ("was", false)]
}

/// Members of the usual array: four data files and two log files.
pub const MEMBERS: [&str; 6] = ["d0", "d1", "d2", "d3", "l0", "l1"];

impl Rig {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// With the usual 2+2 array and two log devices.
    pub fn with_array() -> Self {
        let rig = Self::new();
        rig.create(&[]).ok();
        rig
    }

    /// Makes the usual array.
    pub fn create(&self, options: &[&str]) -> Ran {
        let mut args =
            vec!["create", "--scheme", "eplog", "--parity", "2", "--file-size", "32MiB", "--name", "tank"];
        args.extend(["--data", "d0", "d1", "d2", "d3", "--log", "l0", "l1"]);
        args.extend(options);
        self.run(&args)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_elastripe"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env("ELASTRIPE_RUN_DIR", self.path("run"))
            .env("ELASTRIPE_CONFIG_DIR", self.path("etc"))
            .stdin(Stdio::null());
        command
    }

    /// Runs the binary to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// Runs a command with members between its name and its options.
    pub fn on(&self, command: &str, members: &[&str], options: &[&str]) -> Ran {
        let mut args = vec![command];
        args.extend(members);
        args.extend(options);
        self.run(&args)
    }

    /// Serves members while a shell command runs.
    pub fn serve_run(&self, members: &[&str], script: &str, options: &[&str]) -> Ran {
        self.on("serve", members, &[&["--run", script], options].concat())
    }

    /// Serves the members until told to stop.
    pub fn serve(&self, members: &[&str], options: &[&str]) -> Server {
        self.serve_at("unix:nbd", members, options)
    }

    /// The same of another array, whose clients connect elsewhere.
    pub fn serve_at(&self, address: &str, members: &[&str], options: &[&str]) -> Server {
        let mut args = vec!["serve"];
        args.extend(members);
        args.extend(["--nbd", address]);
        args.extend(options);
        let child = self.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut server = Server { child: Some(child) };
        server.await_ready();
        server
    }

    /// Runs `serve` or the like in a shell that does something first, until told to stop.
    pub fn serve_after(&self, first: &str, args: &[&str]) -> Server {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{first} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_elastripe")]);
        command.args(args).current_dir(self.dir.path());
        command.env("ELASTRIPE_RUN_DIR", self.path("run")).env("ELASTRIPE_CONFIG_DIR", self.path("etc"));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut server = Server { child: Some(child) };
        server.await_ready();
        server
    }

    /// Serves the keys on members until told to stop.
    pub fn serve_keys(&self, members: &[&str], options: &[&str]) -> Server {
        let mut args = vec!["kv", "serve"];
        args.extend(members);
        args.extend(["--resp", "unix:keys"]);
        args.extend(options);
        let child = self.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut server = Server { child: Some(child) };
        server.await_ready();
        server
    }

    /// Changes whenever a file does. (A CRC would not: it is blind to blocks that end in their own CRC.)
    pub fn fingerprint(&self, names: &[&str]) -> Vec<u64> {
        let mix = |hash: u64, word: &[u8; 8]| {
            (hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        };
        let one = |name: &&str| {
            let bytes = std::fs::read(self.path(name)).unwrap_or_default();
            let (words, rest) = bytes.as_chunks::<8>();
            rest.iter().fold(words.iter().fold(1, mix), |hash, &byte| mix(hash, &[byte; 8]))
        };
        names.iter().map(one).collect()
    }

    pub fn status(&self, members: &[&str]) -> Value {
        self.on("status", members, &["--json"]).json()
    }

    /// `qemu-io` commands against the served array.
    pub fn qemu_io(&self, commands: &[&str]) -> Ran {
        let uri = format!("nbd+unix:///?socket={}", self.path("nbd").display());
        Ran::of(qemu_io(&uri, commands).output().unwrap())
    }
}

impl Rig {
    /// `qemu-io` commands against the served array, not waited for.
    pub fn qemu_io_child(&self, commands: &[&str]) -> Child {
        let uri = format!("nbd+unix:///?socket={}", self.path("nbd").display());
        qemu_io(&uri, commands).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }
}

fn qemu_io(uri: &str, commands: &[&str]) -> Command {
    let mut command = Command::new("qemu-io");
    command.args(["-f", "raw"]);
    for text in commands {
        command.args(["-c", text]);
    }
    command.arg(uri);
    command
}

/// A shell line that runs `qemu-io` commands against `$ELASTRIPE_URI`, and fails if one of them does.
pub fn qemu_script(commands: &[&str]) -> String {
    let commands: String = commands.iter().map(|text| format!(" -c '{text}'")).collect();
    // It exits with 0 when a pattern does not match.
    format!(
        "out=$(qemu-io -f raw{commands} \"$ELASTRIPE_URI\" 2>&1) || exit 1; case \"$out\" in *rror*|*fail*) echo \"$out\"; exit 1;; esac"
    )
}

/// A running server; stopped when dropped.
pub struct Server {
    child: Option<Child>,
}

impl Server {
    fn await_ready(&mut self) {
        let child = self.child.as_mut().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("serving at") {
            line.clear();
            if out.read_line(&mut line).unwrap() == 0 {
                let mut err = String::new();
                child.stderr.as_mut().unwrap().read_to_string(&mut err).unwrap();
                panic!("the server did not start: {err}");
            }
        }
        child.stdout = Some(out.into_inner());
    }

    /// Waits until a line of the log has these words, asking nobody.
    pub fn await_log(&mut self, words: &str) {
        let child = self.child.as_mut().unwrap();
        let mut err = BufReader::with_capacity(1, child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            assert!(err.read_line(&mut line).unwrap() > 0, "the server ended without saying {words:?}");
        }
        child.stderr = Some(err.into_inner());
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Waits for its end, and returns what it said from when it was ready.
    pub fn wait(mut self) -> Ran {
        Ran::of(self.child.take().unwrap().wait_with_output().unwrap())
    }

    /// Stops it by SIGTERM.
    pub fn stop(self) -> Ran {
        self.signal("TERM");
        self.wait()
    }

    /// Kills it.
    pub fn kill(self) {
        self.signal("KILL");
        self.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Whether a client tool is there; says so loudly if not.
pub fn has(tool: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(tool).is_file()));
    if !found {
        eprintln!("SKIPPED: {tool} is not installed, so this test has shown nothing");
    }
    found
}

/// Overwrites a part of a file.
pub fn scribble(path: &Path, offset: u64, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    std::fs::File::options().write(true).open(path).unwrap().write_all_at(bytes, offset).unwrap();
}

/// The member of a status by name.
pub fn device<'a>(status: &'a Value, name: &str) -> &'a Value {
    status["devices"].as_array().unwrap().iter().find(|device| device["name"] == name).unwrap()
}

/// Waits until something is so, for half a minute at most.
#[track_caller]
pub fn until(what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
