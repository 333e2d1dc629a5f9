//! When clients find the volume, and the disk of the kernel that it may be: that appears only when its
//! requests are answered, and is taken leave of while they are.

use super::Steward;
use crate::error::Error;
use crate::notify::notify;
use crate::ublk::{Attendant, News};
use front::Flow;
use std::time::Instant;

/// Is told where clients find the volume.
type Ready = Box<dyn FnOnce(&[String])>;

/// What is done as soon as clients find the volume.
pub struct Opening {
    /// Is told where they do.
    pub ready: Ready,
    /// A shell command with whose end serving ends.
    pub run: Option<String>,
}

/// The disk that the volume is, and what is done when it is there.
#[derive(Default)]
pub(super) struct Doors {
    pub disk: Option<Attendant>,
    /// Until when nobody is let in at the control socket.
    pub deaf_until: Option<Instant>,
    opening: Option<Opening>,
}

impl Steward {
    /// Clients find the volume from now on, or as soon as the disk is there that it is to be.
    pub fn open(&mut self, opening: Opening, disk: Option<Attendant>) -> Result<(), Error> {
        self.doors.opening = Some(opening);
        self.doors.disk = disk;
        if self.doors.disk.is_none() { self.open_now() } else { Ok(()) }
    }

    fn open_now(&mut self) -> Result<(), Error> {
        let Some(Opening { ready, run }) = self.doors.opening.take() else { return Ok(()) };
        ready(&self.uris);
        if let (Some(command), Some(uri)) = (run, self.uris.first()) {
            self.child.start(&command, uri)?;
        }
        notify(&format!("READY=1\nSTATUS=serving at {}", self.uris.join(" ")));
        Ok(())
    }

    /// Looks what became of the disk.
    pub(super) fn look_at_disk(&mut self) -> Flow {
        match self.doors.disk.as_mut().and_then(Attendant::look) {
            Some(News::Here) => {
                if let Err(error) = self.open_now() {
                    self.give_up(error);
                }
                self.flow()
            }
            Some(News::Lost(error)) => {
                self.give_up(error);
                self.flow()
            }
            Some(News::Left) => Flow::Stop,
            None => Flow::Continue,
        }
    }

    /// Ends serving, after taking leave of the disk, unless something is wrong or somebody is in a hurry and
    /// says so twice.
    pub(super) fn stop(&mut self) -> Flow {
        let is_in_order = self.failure.is_none();
        match &mut self.doors.disk {
            Some(disk) if is_in_order => match disk.leave() {
                true => Flow::Stop,
                false => Flow::Continue,
            },
            Some(_) | None => Flow::Stop,
        }
    }
}

/// Why the server is not stopped while its disk is in use.
pub(super) fn still_used(user: &str) -> String {
    format!(
        "{user}; unmount it first, or --force to stop all the same: it waits then until the array is served again"
    )
}
