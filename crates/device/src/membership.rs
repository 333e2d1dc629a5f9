//! Sets whose members come and go while an array runs.

use crate::member::{Member, Members, Note, OpenError};
use block::{DevIndex, DeviceSet, Paired, Slice};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// What a driver must do beside moving bytes, for an array to be served and repaired on it.
pub trait Membership: DeviceSet {
    /// The members as they were opened.
    fn members(&self) -> &Members;

    /// What is worth telling the operator.
    fn notes(&self) -> &[Note];

    /// Closes and unlocks a member, which is absent from now on; what is in flight on it still ends in its
    /// own way.
    fn remove(&mut self, dev: DevIndex);

    /// Opens `path` in the place of an existing (absent, failed or present) member. What is in flight on the
    /// old one ends there.
    fn replace(&mut self, dev: DevIndex, path: &Path) -> Result<(), OpenError>;

    /// The same with a member that was opened before, and keeps its lock.
    fn install(&mut self, dev: DevIndex, member: Member) -> Result<(), OpenError>;

    /// Looks which members have become larger since they were opened: their room is there from now on.
    fn measure(&mut self);

    /// An event that becomes readable when operations complete, for an epoll loop to sleep on;
    /// [`DeviceSet::poll`] makes it unreadable again.
    fn wake_fd(&mut self) -> io::Result<BorrowedFd<'_>>;
}

impl<D: Membership> Membership for Slice<D> {
    fn members(&self) -> &Members {
        self.inner().members()
    }

    fn notes(&self) -> &[Note] {
        self.inner().notes()
    }

    fn remove(&mut self, dev: DevIndex) {
        self.inner_mut().remove(dev);
    }

    fn replace(&mut self, dev: DevIndex, path: &Path) -> Result<(), OpenError> {
        self.inner_mut().replace(dev, path)
    }

    fn install(&mut self, dev: DevIndex, member: Member) -> Result<(), OpenError> {
        self.inner_mut().install(dev, member)
    }

    fn measure(&mut self) {
        self.inner_mut().measure();
    }

    fn wake_fd(&mut self) -> io::Result<BorrowedFd<'_>> {
        self.inner_mut().wake_fd()
    }
}

impl<D: Membership> Membership for Paired<D> {
    fn members(&self) -> &Members {
        self.inner().members()
    }

    fn notes(&self) -> &[Note] {
        self.inner().notes()
    }

    fn remove(&mut self, dev: DevIndex) {
        self.inner_mut().remove(dev);
    }

    fn replace(&mut self, dev: DevIndex, path: &Path) -> Result<(), OpenError> {
        self.inner_mut().replace(dev, path)
    }

    fn install(&mut self, dev: DevIndex, member: Member) -> Result<(), OpenError> {
        self.inner_mut().install(dev, member)
    }

    fn measure(&mut self) {
        self.inner_mut().measure();
    }

    fn wake_fd(&mut self) -> io::Result<BorrowedFd<'_>> {
        self.inner_mut().wake_fd()
    }
}
