//! Who looks after a disk while it is served: starts it and takes leave of it, on a thread of its own, as
//! both take requests that this process carries out meanwhile.

use super::{Disk, Origin, users};
use crate::disk_error::DiskError;
use crate::error::Error;
use crate::logbook::{Level, log, log_as};
use device::ublk::{Control, Error as DriverError};
use front::ublk::Cache;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{Mode, OFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

/// What became of the disk.
pub enum News {
    /// It is there.
    Here,
    /// It is not to be had.
    Lost(Error),
    /// The server may end.
    Left,
}

/// How far it is.
enum Stage {
    Starting(Receiver<(Control, Result<(), DriverError>)>),
    Here(Box<Control>),
    Leaving(Receiver<()>),
    /// It is gone, or waits for the next server.
    Left,
}

/// See the module's documentation.
pub struct Attendant {
    number: u32,
    cache: Cache,
    stage: Stage,
    /// Leave is to be taken as soon as it is there.
    is_to_leave: bool,
    /// Readable when a thread has ended.
    event: Arc<OwnedFd>,
}

/// Tells that a thread has ended, in whatever way.
struct Signal(Arc<OwnedFd>);

impl Drop for Signal {
    fn drop(&mut self) {
        // It can only be full, and then it is readable.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

/// What a thread of its own finds out. The event comes when that is there, or will never be.
fn spawn<T: Send + 'static>(
    event: &Arc<OwnedFd>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Receiver<T>, Error> {
    let (sender, receiver) = sync_channel(1);
    let signal = Signal(Arc::clone(event));
    let work = move || {
        let _signal = signal; // dropped after the sender
        let sender = sender;
        let _ = sender.send(work()); // who has lost interest is gone
    };
    std::thread::Builder::new().name("block device".to_owned()).spawn(work)?;
    Ok(receiver)
}

impl Attendant {
    /// Has the disk appear, or go on, as soon as its queues are served.
    pub(super) fn start(disk: Disk) -> Result<Self, Error> {
        let event =
            eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(std::io::Error::from)?;
        let event = Arc::new(event);
        let (number, cache, origin) = (disk.info.number, disk.cache, disk.origin);
        let mut control = disk.into_control();
        let work = move || {
            let started = match origin {
                Origin::New => control.start(number),
                Origin::Left => control.end_recovery(number),
            };
            (control, started)
        };
        let stage = Stage::Starting(spawn(&event, work)?);
        Ok(Self { number, cache, stage, is_to_leave: false, event })
    }

    /// What is readable when there is news.
    pub fn news_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// What has happened.
    pub fn look(&mut self) -> Option<News> {
        // Nothing may have happened.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
        match &self.stage {
            Stage::Starting(outcome) => match outcome.try_recv() {
                Ok((control, Ok(()))) => {
                    self.stage = Stage::Here(Box::new(control));
                    if self.is_to_leave {
                        self.begin_to_leave();
                    }
                    Some(News::Here)
                }
                Ok((_, Err(error))) => self.lose(DiskError::Driver(error).into()),
                Err(TryRecvError::Disconnected) => self.lose(Error::SocketThread),
                Err(TryRecvError::Empty) => None,
            },
            Stage::Leaving(end) => match end.try_recv() {
                Ok(()) => {
                    self.stage = Stage::Left;
                    Some(News::Left)
                }
                Err(TryRecvError::Disconnected) => self.lose(Error::SocketThread),
                Err(TryRecvError::Empty) => None,
            },
            Stage::Here(_) | Stage::Left => None,
        }
    }

    fn lose(&mut self, why: Error) -> Option<News> {
        self.stage = Stage::Left;
        Some(News::Lost(why))
    }

    /// Takes leave of it, if that has not begun; whether it had, or there is nothing to take leave of.
    pub fn leave(&mut self) -> bool {
        match self.stage {
            Stage::Starting(_) => std::mem::replace(&mut self.is_to_leave, true),
            Stage::Here(_) => {
                self.begin_to_leave();
                false
            }
            Stage::Leaving(_) | Stage::Left => true,
        }
    }

    fn begin_to_leave(&mut self) {
        let Stage::Here(control) = std::mem::replace(&mut self.stage, Stage::Left) else { return };
        let (number, cache) = (self.number, self.cache);
        match spawn(&self.event, move || take_leave(*control, number, cache)) {
            Ok(thread) => self.stage = Stage::Leaving(thread),
            // It waits for the next server then, as after a crash.
            Err(error) => log_as(Level::Warning, &format!("/dev/ublkb{number} is left as it is: {error}")),
        }
    }

    /// Who uses it, in words.
    pub fn user(&self) -> Option<String> {
        users::user_of(&format!("ublkb{}", self.number))
    }
}

/// Removes the disk, with everything written that its users had not written yet; one that is in use waits for
/// the next server, if it can.
fn take_leave(mut control: Control, number: u32, cache: Cache) {
    let path = format!("/dev/ublkb{number}");
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    // Nobody else can claim it while this is open.
    let opened = match rustix::fs::open(&path, flags | OFlags::EXCL, Mode::empty()) {
        Err(rustix::io::Errno::BUSY) if cache == Cache::None => {
            return log(&format!("{path} is in use and waits for the next server of the array"));
        }
        Err(rustix::io::Errno::BUSY) => {
            log_as(Level::Warning, &format!("{path} is in use, and ends with this server"));
            rustix::fs::open(&path, flags, Mode::empty())
        }
        opened => opened,
    };
    // The driver refuses what comes when it is being stopped.
    if let Ok(disk) = &opened
        && let Err(error) = rustix::fs::fsync(disk)
    {
        log_as(Level::Warning, &format!("{path}: not everything could be written before its end: {error}"));
    }
    let ended = control.stop(number).and_then(|()| control.delete(number));
    match ended {
        Ok(()) => log(&format!("{path} is removed")),
        Err(error) => log_as(Level::Warning, &error.to_string()),
    }
}
