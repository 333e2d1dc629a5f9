//! Who is told what happens to the array: the log, whoever looks later, and with `--on-event` a command of
//! the operator's.

use crate::happened::{Happened, Lately};
use crate::logbook::{Level, log_as};
use crate::shell::shell;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Commands at a time. Where events come faster than they are dealt with, the log has them all.
const RUNNING_MAX: usize = 16;

/// The log is told of events that the command is not told of at most this often, and when there is room
/// again.
const TELL_LEFT_OUT: Duration = Duration::from_secs(60);

/// A command that runs.
struct Running {
    child: Child,
    /// What it was told of.
    event: String,
}

/// See the module's documentation.
pub struct Reactions {
    command: Option<String>,
    /// UUID and name of the array.
    array: (String, String),
    running: Vec<Running>,
    /// Events that the command was not told of since the log was last told how many.
    left_out: u64,
    /// When that was.
    told_left_out: Option<Instant>,
    lately: Lately,
    /// What became of the last work that took long.
    ended: Option<Happened>,
}

impl Reactions {
    /// Tells `command`, if there is one, of an array with this UUID and name.
    pub fn new(command: Option<String>, uuid: String, name: String) -> Self {
        let (running, lately) = (Vec::new(), Lately::default());
        Self { command, array: (uuid, name), running, left_out: 0, told_left_out: None, lately, ended: None }
    }

    /// The array has another name.
    pub fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.array.1);
    }

    /// What happened lately, oldest first.
    pub fn lately(&self) -> Vec<Happened> {
        self.lately.all()
    }

    /// What became of the last work that took long, since serving began.
    pub fn last_ended(&self) -> Option<&Happened> {
        self.ended.as_ref()
    }

    /// Logs, and tells the command, what became of work that took long.
    pub fn tell_end(&mut self, level: Level, event: &str, device: &str, message: &str) {
        self.tell(level, event, device, message);
        self.ended = self.lately.newest().cloned();
    }

    /// What need not be logged.
    pub fn remember(&mut self, level: Level, event: &str, message: &str) {
        self.lately.remember(level, event, "", message);
    }

    /// Logs what happened; nobody need be woken for it.
    pub fn note(&mut self, level: Level, event: &str, device: &str, message: &str) {
        log_as(level, message);
        self.lately.remember(level, event, device, message);
    }

    /// Logs what happened, and tells the command, which runs beside the server.
    pub fn tell(&mut self, level: Level, event: &str, device: &str, message: &str) {
        self.note(level, event, device, message);
        let Some(command) = &self.command else { return };
        if self.running.len() >= RUNNING_MAX {
            self.left_out += 1;
            if self.told_left_out.is_none_or(|at| at.elapsed() >= TELL_LEFT_OUT) {
                self.tell_left_out();
            }
            return;
        }
        let child = shell(command)
            .env("ELASTRIPE_EVENT", event)
            .env("ELASTRIPE_UUID", &self.array.0)
            .env("ELASTRIPE_NAME", &self.array.1)
            .env("ELASTRIPE_DEVICE", device)
            .env("ELASTRIPE_MESSAGE", message)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        match child {
            Ok(child) => self.running.push(Running { child, event: event.to_owned() }),
            Err(error) => log_as(Level::Error, &format!("--on-event: sh: {error}")),
        }
    }

    /// Some child has ended.
    pub fn reap(&mut self) {
        self.running.retain_mut(|Running { child, event }| match child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) if status.success() => false,
            Ok(Some(status)) => {
                let pid = child.id();
                log_as(
                    Level::Warning,
                    &format!(
                        "--on-event: the command that was told of `{event}` (process {pid}) failed: {status}"
                    ),
                );
                false
            }
            Err(error) => {
                log_as(Level::Error, &format!("--on-event: process {}: {error}", child.id()));
                false
            }
        });
        if self.running.len() < RUNNING_MAX {
            self.tell_left_out();
        }
    }

    /// Says how many events the command was not told of, if there are any that the log does not know of.
    fn tell_left_out(&mut self) {
        if self.left_out == 0 {
            return;
        }
        let count = std::mem::take(&mut self.left_out);
        self.told_left_out = Some(Instant::now());
        let events = if count == 1 { "1 event".to_owned() } else { format!("{count} events") };
        log_as(
            Level::Warning,
            &format!(
                "--on-event: the command was not told of {events}, as {RUNNING_MAX} of it were running; expected is that it ends soon"
            ),
        );
    }
}

impl Drop for Reactions {
    fn drop(&mut self) {
        self.tell_left_out();
    }
}
