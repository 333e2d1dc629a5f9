//! Who is told what happens to the array: the log, whoever looks later, and with `--on-event` a command of
//! the operator's.

use crate::happened::{Happened, Lately};
use crate::logbook::{Level, log_as};
use crate::shell::shell;
use std::process::{Child, Stdio};

/// Commands at a time. Where events come faster than they are dealt with, the log has them all.
const RUNNING_MAX: usize = 16;

/// See the module's documentation.
pub struct Reactions {
    command: Option<String>,
    /// UUID and name of the array.
    array: (String, String),
    running: Vec<Child>,
    lately: Lately,
}

impl Reactions {
    /// Tells `command`, if there is one, of an array with this UUID and name.
    pub fn new(command: Option<String>, uuid: String, name: String) -> Self {
        Self { command, array: (uuid, name), running: Vec::new(), lately: Lately::default() }
    }

    /// The array has another name.
    pub fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.array.1);
    }

    /// What happened lately, oldest first.
    pub fn lately(&self) -> Vec<Happened> {
        self.lately.all()
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
            log_as(Level::Warning, "--on-event: 16 commands are running already; this one is left out");
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
            Ok(child) => self.running.push(child),
            Err(error) => log_as(Level::Error, &format!("--on-event: sh: {error}")),
        }
    }

    /// Some child has ended.
    pub fn reap(&mut self) {
        self.running.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}
