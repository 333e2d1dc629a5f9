//! The shipped binary, run as an operator would run it: every command has an end within its time, no command
//! panics, and what it said is kept beside the members.

use crate::nbd::Deadline;
use crate::verdict::{Check, Verdict};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How often a process that is waited for is looked at.
const POLL: Duration = Duration::from_millis(2);

/// The binary, and which options of later versions it has.
#[derive(Clone, Debug)]
pub struct Binary {
    /// Where it is.
    pub path: PathBuf,
    /// What `fail` needs to take out the last member that can be spared.
    pub fail_yes: Option<&'static str>,
    /// The same of `replace`.
    pub replace_yes: Option<&'static str>,
    /// What `stop` needs while clients are connected.
    pub stop_force: Option<&'static str>,
    /// How often `serve` looks at its metadata unasked.
    pub patrol: Option<&'static str>,
    /// Whether members that left can come back.
    pub online: bool,
    /// Whether a member that works stays in service while it is replaced.
    pub succeeds: bool,
}

impl Binary {
    /// Asks the binary for its options.
    pub fn probe(path: &Path) -> io::Result<Self> {
        let has = |command: &str, option: &'static str| -> io::Result<Option<&'static str>> {
            let output = Command::new(path).args([command, "--help"]).stdin(Stdio::null()).output()?;
            Ok(String::from_utf8_lossy(&output.stdout).contains(option).then_some(option))
        };
        Ok(Self {
            path: fs::canonicalize(path)?,
            fail_yes: has("fail", "--yes")?,
            replace_yes: has("replace", "--yes")?,
            stop_force: has("stop", "--force")?,
            patrol: has("serve", "--patrol")?,
            online: has("online", "--device")?.is_some(),
            succeeds: has("replace", "--fail-first")?.is_some(),
        })
    }
}

/// How a command ended.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its exit code; 128 and the signal if one ended it.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// Standard error in a line.
    pub fn reason(&self) -> String {
        let text = if self.err.trim().is_empty() { &self.out } else { &self.err };
        text.trim().lines().last().unwrap_or("nothing was said").to_owned()
    }
}

impl Ran {
    /// What it came to, in a line.
    pub fn gist(&self) -> String {
        let Ok(value) = serde_json::from_str::<serde_json::Value>(&self.out) else { return self.reason() };
        let list = value["devices"].as_array().cloned().unwrap_or_default();
        let devices =
            list.iter().filter_map(|device| Some((device["name"].as_str()?, device["state"].as_str()?)));
        let bad: Vec<String> = devices
            .filter(|(_, state)| *state != "healthy")
            .map(|(name, state)| format!("{name} {state}"))
            .collect();
        format!("{} {}", value["state"].as_str().unwrap_or("made"), bad.join(", "))
    }
}

/// A command under way.
pub struct Running {
    child: Child,
    what: String,
    out: PathBuf,
    err: PathBuf,
}

fn code_of(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

/// Codes of a process that panicked (101), aborted (134) or was ended by a fault (132, 135, 136, 139).
const CODES_OF_A_CRASH: [i32; 6] = [101, 132, 134, 135, 136, 139];

impl Running {
    /// Starts the binary in `dir`. `number` names the files that hold what it says.
    pub fn start(binary: &Binary, dir: &Path, number: usize, args: &[String]) -> io::Result<Self> {
        let name = args.first().map_or("nothing", String::as_str);
        let (out, err) =
            (dir.join(format!("{number:03}-{name}.out")), dir.join(format!("{number:03}-{name}.err")));
        let child = Command::new(&binary.path)
            .args(args)
            .current_dir(dir)
            .env("ELASTRIPE_RUN_DIR", dir.join("run"))
            .env("RUST_BACKTRACE", "1")
            .stdin(Stdio::null())
            .stdout(File::create(&out)?)
            .stderr(File::create(&err)?)
            .spawn()?;
        Ok(Self { child, what: args.join(" "), out, err })
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// What it has said so far: standard output, then standard error.
    pub fn said(&self) -> (String, String) {
        let read = |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        (read(&self.out).unwrap_or_default(), read(&self.err).unwrap_or_default())
    }

    /// Asks it to stop.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends it as a power cut would.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal); // it may have ended by itself
        }
    }

    /// Waits for its end. Too long is a hang, and a panic is a panic.
    pub fn wait(mut self, patience: Duration) -> Result<Ran, Verdict> {
        let deadline = Deadline::after(patience);
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if deadline.has_passed() => {
                    return Err(Verdict::new(
                        Check::Hang,
                        format!("`{}` did not end within {} s", self.what, patience.as_secs()),
                    ));
                }
                Ok(None) => std::thread::sleep(POLL),
                Err(error) => return Err(Verdict::harness(format!("waiting for `{}`: {error}", self.what))),
            }
        };
        let (out, err) = self.said();
        let ran = Ran { code: code_of(status), out, err };
        judge_end(&self.what, &ran)?;
        Ok(ran)
    }
}

/// No command panics, aborts or dies of a fault.
pub fn judge_end(what: &str, ran: &Ran) -> Result<(), Verdict> {
    if ran.err.contains("panicked") || ran.out.contains("panicked") || CODES_OF_A_CRASH.contains(&ran.code) {
        let first = ran.err.lines().find(|line| line.contains("panicked") || line.contains("abort"));
        return Err(Verdict::new(
            Check::Panic,
            format!("`{what}` ended with code {}: {}", ran.code, first.unwrap_or_default()),
        ));
    }
    Ok(())
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = self.child.kill(); // nothing of a round outlives it
            let _ = self.child.wait();
        }
    }
}
