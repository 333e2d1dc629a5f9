//! Members that come and go while the ring runs.

use super::UringSet;
use crate::member::{Member, Members, Note, OpenError};
use crate::membership::Membership;
use block::DevIndex;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

impl UringSet {
    /// What completes here makes the wake event of another set readable ([`Membership::wake_fd`]); that one
    /// makes it unreadable again, before this one is polled.
    pub fn announce_by(&mut self, event: OwnedFd) -> io::Result<()> {
        self.ring.submitter().register_eventfd(event.as_raw_fd())?;
        self.bell = Some(event);
        self.announce();
        Ok(())
    }
}

impl Membership for UringSet {
    fn members(&self) -> &Members {
        &self.members
    }

    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn remove(&mut self, dev: DevIndex) {
        if self.members.get(dev).is_none() {
            return;
        }
        self.let_go(dev);
        // A slot that cannot be emptied keeps the file open for as long as the ring; nothing reaches it any
        // more.
        let _ = self.ring.submitter().register_files_update(u32::from(dev.get()), &[-1]);
    }

    fn replace(&mut self, dev: DevIndex, path: &Path) -> Result<(), OpenError> {
        self.check_place(dev, path)?;
        self.make_way(dev);
        self.members.replace(dev, path)?;
        self.admit(dev, path)
    }

    fn install(&mut self, dev: DevIndex, member: Member) -> Result<(), OpenError> {
        let path = member.path().to_owned();
        self.check_place(dev, &path)?;
        self.make_way(dev);
        self.members.put(dev, member);
        self.admit(dev, &path)
    }

    fn measure(&mut self) {
        self.members.measure();
    }

    fn wake_fd(&mut self) -> io::Result<BorrowedFd<'_>> {
        if self.wake.is_none() {
            let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
            self.ring.submitter().register_eventfd(event.as_raw_fd())?;
            self.wake = Some(event);
            // What completed before the registration would never be announced.
            self.announce();
        }
        Ok(self.wake.as_ref().expect("set above").as_fd())
    }
}
