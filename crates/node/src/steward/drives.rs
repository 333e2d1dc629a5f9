//! The drives below the members: asked by a thread, and what they complain of is told once.

use super::Steward;
use crate::control::Reply;
use crate::drives::Drives;
use crate::logbook::Level;
use crate::running::Running;
use crate::status::Asked;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The thread, and what was told.
#[derive(Default)]
pub(super) struct Physician {
    pub drives: Option<Drives>,
    /// Other devices may be there since the thread was last told which are.
    pub is_stale: bool,
    /// Of each device that was complained of, the complaint.
    told: BTreeMap<PathBuf, String>,
}

impl Steward {
    /// Has the drives below the members asked from now on.
    pub fn ask_drives(&mut self, drives: Drives) {
        self.physician.drives = Some(drives);
        self.physician.is_stale = true;
    }

    /// The status for somebody who asks once: the next one finds drives that were asked anew.
    pub(super) fn asked_status(&mut self, running: &Running) -> Reply {
        self.operator.look_at_shared();
        self.operator.measure_spares();
        self.physician.drives.iter().for_each(Drives::refresh);
        self.status(running)
    }

    /// Tells the thread which devices there are.
    pub(super) fn name_drives(&mut self, running: &Running) {
        if !std::mem::take(&mut self.physician.is_stale) {
            return;
        }
        if let Some(drives) = &self.physician.drives {
            drives.want(self.operator.block_devices(running));
        }
    }

    /// Drives have answered: tells what they complain of, once.
    pub(super) fn hear_drives(&mut self, running: &Running) {
        let Some(drives) = &self.physician.drives else { return };
        drives.take_news();
        for (path, answer) in drives.answers() {
            let complaint = match &answer {
                Asked::Told(wear) => wear.complaint(),
                Asked::NotOffered(_) => continue, // it has taken nothing back
            };
            let name = self.operator.name_of_device(running, &path);
            let told = self.physician.told.get(&path).cloned();
            match complaint {
                Some(new) if told.as_ref() != Some(&new) => {
                    let text = format!("{name} ({}): its drive {new}", path.display());
                    self.reactions.tell(Level::Warning, "drive-warning", &name, &text);
                    self.physician.told.insert(path, new);
                }
                None if told.is_some() => {
                    let text = format!("{name} ({}): its drive complains no more", path.display());
                    self.reactions.tell(Level::Info, "drive-well", &name, &text);
                    self.physician.told.remove(&path);
                }
                Some(_) | None => {}
            }
        }
    }

    /// Whether the drives' thread has something to say here.
    pub(super) fn is_of_drives(&self, fd: std::os::fd::RawFd) -> bool {
        use std::os::fd::AsRawFd as _;
        self.physician.drives.as_ref().is_some_and(|drives| drives.news_fd().as_raw_fd() == fd)
    }
}
