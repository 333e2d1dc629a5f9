//! What stands for disks of the kernel in a build without them: there never is one.

use crate::disk_wish::DiskWish;
use crate::error::Error;
use crate::running::Plant;
use format::ArrayUuid;
use front::Server;
use std::convert::Infallible;
use std::os::fd::BorrowedFd;

/// A disk of the kernel.
pub struct Disk(Infallible);

impl Disk {
    /// Says that this build has none.
    pub fn reserve(_array: ArrayUuid, _wish: DiskWish) -> Result<Self, Error> {
        Err(Error::NotBuilt(
            "--ublk: this build has no block devices; build the package elastripe with its feature `ublk`",
        ))
    }

    /// Where it is.
    pub fn path(&self) -> String {
        match self.0 {}
    }

    /// Has a server serve it.
    pub fn equip(self, _server: &mut Server, _plant: &mut Plant) -> Result<Attendant, Error> {
        match self.0 {}
    }
}

/// Where the disk is that a server of this array has left: this build cannot tell.
pub fn left_by(_array: ArrayUuid) -> Option<String> {
    None
}

/// Removes the disk that a server of this array has left: this build cannot.
pub fn remove_left(_array: ArrayUuid) -> Result<Option<String>, Error> {
    Ok(None)
}

/// Who looks after it.
pub struct Attendant(Infallible);

/// What became of it.
pub enum News {
    /// It is there.
    Here,
    /// It is not to be had.
    Lost(Error),
    /// The server may end.
    Left,
}

impl Attendant {
    /// What is readable when there is news.
    pub fn news_fd(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }

    /// What has happened.
    pub fn look(&mut self) -> Option<News> {
        match self.0 {}
    }

    /// Takes leave of it, if that has not begun; whether it had.
    pub fn leave(&mut self) -> bool {
        match self.0 {}
    }

    /// Who uses it, in words.
    pub fn user(&self) -> Option<String> {
        match self.0 {}
    }
}
