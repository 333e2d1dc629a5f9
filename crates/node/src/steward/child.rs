//! The command of `--run`: the array is served for as long as it runs.

use crate::error::Error;
use crate::shell::shell;
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, ExitStatus};

/// See the module's documentation.
#[derive(Default)]
pub(super) struct RunCommand {
    child: Option<Child>,
    exit: Option<ExitStatus>,
}

impl RunCommand {
    /// Begins it, with the address of the volume in its environment.
    pub fn start(&mut self, command: &str, uri: &str) -> Result<(), Error> {
        let child = shell(command).env("ELASTRIPE_URI", uri).spawn();
        self.child = Some(child.map_err(Error::Child)?);
        Ok(())
    }

    /// Whether it has ended since that was asked last.
    pub fn has_ended(&mut self) -> bool {
        let exit = self.child.as_mut().and_then(|child| child.try_wait().ok()).flatten();
        if exit.is_some() {
            (self.child, self.exit) = (None, exit);
        }
        exit.is_some()
    }

    /// How it ended, if there was one; asks it to, and waits, if it runs still.
    pub fn finish(&mut self) -> Option<ExitStatus> {
        if let Some(mut child) = self.child.take() {
            if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                // It may have ended by itself already.
                let _ = kill_process(pid, Signal::TERM);
            }
            self.exit = child.wait().ok();
        }
        self.exit
    }
}
