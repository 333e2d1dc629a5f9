//! What a loop that serves clients waits for, beside them, whatever is spoken with them: those who come, the
//! descriptors of its caller, its own wake-up; and the time as it saw it last.

use super::{Arrival, Interest, Listening};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

const TOKEN_WAKE: u64 = u64::MAX;
const TOKEN_CALLER: u64 = u64::MAX - 1;
/// Listening socket `i` has token `TOKEN_LISTENING - i`; those of clients are below all of them.
const TOKEN_LISTENING: u64 = u64::MAX - 2;

/// Events taken per turn.
const EVENTS_MAX: usize = 256;
/// The caller's descriptors that are told of at once.
const CALLER_READY_MAX: usize = 16;
/// How often time limits are looked at while there is anything they apply to.
const TICK_NS: u64 = 100_000_000;

/// Something that was waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ready {
    /// The loop was woken.
    Wake,
    /// Some of the caller's descriptors, see [`Watch::caller_ready`].
    Caller,
    /// Somebody has come to this one of the listening sockets.
    Arrivals(usize),
    /// What was added with this token.
    Client(u64, epoll::EventFlags),
}

/// See the module's documentation.
pub struct Watch<L> {
    epoll: Arc<OwnedFd>,
    /// The caller's descriptors have an epoll of their own, watched by ours, so that they can be replaced
    /// as a whole; none while this process may open no more.
    caller: Option<OwnedFd>,
    listening: Vec<L>,
    /// Nobody is let in before then.
    closed_until_ns: Option<u64>,
    events: Vec<epoll::Event>,
    events_taken: usize,
    started: Instant,
    now_ns: u64,
    next_tick_ns: u64,
    /// Set once a stop was asked for.
    stop_by_ns: Option<u64>,
}

impl<L: AsRef<Listening>> Watch<L> {
    /// Waits for those who come to these sockets, and for what wakes the loop. The caller's descriptors come
    /// with [`Watch::watch_caller`].
    pub fn new(listening: Vec<L>, wake: Option<BorrowedFd<'_>>) -> io::Result<Self> {
        let watch = Self {
            epoll: Arc::new(create_epoll()?),
            caller: None,
            listening,
            closed_until_ns: None,
            events: Vec::with_capacity(EVENTS_MAX),
            events_taken: 0,
            started: Instant::now(),
            now_ns: 0,
            next_tick_ns: TICK_NS,
            stop_by_ns: None,
        };
        if let Some(fd) = wake {
            watch.add(fd, TOKEN_WAKE, epoll::EventFlags::IN)?;
        }
        watch.open()?;
        Ok(watch)
    }

    /// Nanoseconds since the beginning, at the last look at the clock.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// What time it is.
    pub fn look_at_clock(&mut self) -> u64 {
        self.now_ns = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.now_ns
    }

    /// The sockets clients come to; none once a stop was asked for.
    pub fn listening(&self) -> &[L] {
        &self.listening
    }

    /// For whoever waits for more of a client than its socket.
    pub fn epoll(&self) -> &Arc<OwnedFd> {
        &self.epoll
    }

    /// Waits for a client, too; `token` tells which it is.
    pub fn add(&self, fd: impl AsFd, token: u64, flags: epoll::EventFlags) -> io::Result<()> {
        add(&self.epoll, fd, token, flags)
    }

    /// Waits for something else of a client.
    pub fn change(&self, fd: impl AsFd, token: u64, flags: epoll::EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(token), flags)?)
    }

    /// How long to sleep, at most, for the time limits there are now: the loop's own, and those of clients
    /// if there is one of these.
    pub fn until_tick_ns(&self, of_clients: bool) -> Option<u64> {
        let own = self.stop_by_ns.is_some() || self.closed_until_ns.is_some() || self.caller.is_none();
        (own || of_clients).then(|| self.next_tick_ns.saturating_sub(self.now_ns).min(TICK_NS))
    }

    /// Sleeps until something is ready, for so long at most, and looks at the clock.
    pub fn wait(&mut self, timeout_ns: Option<u64>) -> io::Result<()> {
        let timeout = timeout_ns.map(|ns| Timespec {
            tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
        });
        self.events.clear();
        self.events_taken = 0;
        wait(&self.epoll, &mut self.events, timeout.as_ref())?;
        self.look_at_clock();
        Ok(())
    }

    /// The next of what is ready.
    pub fn next_ready(&mut self) -> Option<Ready> {
        let event = self.events.get(self.events_taken)?;
        self.events_taken += 1;
        Some(match event.data.u64() {
            TOKEN_WAKE => Ready::Wake,
            TOKEN_CALLER => Ready::Caller,
            token => match usize::try_from(TOKEN_LISTENING - token) {
                Ok(index) if index < self.listening.len() => Ready::Arrivals(index),
                _ => Ready::Client(token, event.flags),
            },
        })
    }

    /// Those of the caller's descriptors that are ready; more of them, if there are, are told of again.
    pub fn caller_ready(&self) -> io::Result<impl Iterator<Item = RawFd> + use<L>> {
        let mut ready = [None; CALLER_READY_MAX];
        if let Some(caller) = &self.caller {
            let mut events = Vec::with_capacity(ready.len());
            wait(caller, &mut events, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
            for (place, event) in ready.iter_mut().zip(&events) {
                *place = RawFd::try_from(event.data.u64()).ok();
            }
        }
        Ok(ready.into_iter().flatten())
    }

    /// Waits for these of the caller's descriptors, and no others. If that cannot be now, there is none, and
    /// [`Watch::tick`] says so: clients are served all the same.
    pub fn watch_caller(&mut self, fds: Vec<(BorrowedFd<'_>, Interest)>) -> io::Result<()> {
        self.caller = None; // closing the old one takes it out of ours
        self.caller = match watch_caller(&self.epoll, fds) {
            Ok(caller) => Some(caller),
            Err(error) if is_shortage(&error) => None,
            Err(error) => return Err(error),
        };
        Ok(())
    }

    /// The next who has come to a socket, if there is one. While this process may open no more there is
    /// nobody: the backlog must wait, or we would spin.
    pub fn next_arrival(&mut self, index: usize) -> io::Result<Option<Arrival>> {
        while self.closed_until_ns.is_none() {
            match self.listening[index].as_ref().accept() {
                Ok(arrival) => return Ok(Some(arrival)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    self.closed_until_ns = Some(self.now_ns.saturating_add(TICK_NS));
                    self.close()?;
                }
            }
        }
        Ok(None)
    }

    /// Whether time limits are to be looked at.
    pub fn is_tick_due(&self) -> bool {
        self.now_ns >= self.next_tick_ns
    }

    /// Begins a look at the time limits: clients may come again, if they could not. Whether the caller's
    /// descriptors are to be watched anew.
    pub fn tick(&mut self) -> io::Result<bool> {
        self.next_tick_ns = self.now_ns.saturating_add(TICK_NS);
        if self.closed_until_ns.is_some_and(|until_ns| self.now_ns >= until_ns) {
            self.closed_until_ns = match self.open() {
                Ok(()) => None,
                Err(error) if is_shortage(&error) => Some(self.next_tick_ns),
                Err(error) => return Err(error),
            };
        }
        Ok(self.caller.is_none())
    }

    /// Lets nobody in any more, and has the loop end within so long. Whether that is new.
    pub fn stop(&mut self, within_ns: u64) -> bool {
        if self.stop_by_ns.is_some() {
            return false;
        }
        self.stop_by_ns = Some(self.now_ns.saturating_add(within_ns));
        if self.closed_until_ns.take().is_none() {
            // Closing them is not enough where others share them. One that cannot be taken out is reported in
            // vain until the server ends.
            let _ = self.close();
        }
        self.listening.clear();
        true
    }

    /// Whether the loop is to end: after a stop, when nothing is under way any more or its time is over.
    pub fn is_over(&self, is_quiet: impl FnOnce() -> bool) -> bool {
        self.stop_by_ns.is_some_and(|by_ns| is_quiet() || self.now_ns >= by_ns)
    }

    /// Waits for all listening sockets or, after an error, for none of them: who comes to some of them would
    /// be reported again and again, and not be accepted.
    fn open(&self) -> io::Result<()> {
        let watched = self.listening.iter().zip(0..).try_for_each(|(socket, index)| {
            match self.add(socket.as_ref(), TOKEN_LISTENING - index, epoll::EventFlags::IN) {
                // It is waited for still.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                added => added,
            }
        });
        if watched.is_err() {
            for socket in &self.listening {
                let _ = epoll::delete(&self.epoll, socket.as_ref());
            }
        }
        watched
    }

    fn close(&self) -> io::Result<()> {
        self.listening.iter().try_for_each(|socket| Ok(epoll::delete(&self.epoll, socket.as_ref())?))
    }
}

fn create_epoll() -> io::Result<OwnedFd> {
    Ok(epoll::create(epoll::CreateFlags::CLOEXEC)?)
}

fn add(epoll: &OwnedFd, fd: impl AsFd, token: u64, flags: epoll::EventFlags) -> io::Result<()> {
    Ok(epoll::add(epoll, fd, epoll::EventData::new_u64(token), flags)?)
}

fn wait(epoll: &OwnedFd, events: &mut Vec<epoll::Event>, timeout: Option<&Timespec>) -> io::Result<()> {
    match epoll::wait(epoll, spare_capacity(events), timeout) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether the system gives this process no more of something now, and may later.
fn is_shortage(error: &io::Error) -> bool {
    let found = Errno::from_io_error(error);
    found.is_some_and(|found| matches!(found, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOSPC))
}

fn watch_caller(epoll: &OwnedFd, fds: Vec<(BorrowedFd<'_>, Interest)>) -> io::Result<OwnedFd> {
    let caller = create_epoll()?;
    for (fd, interest) in fds {
        let flags = match interest {
            Interest::Read => epoll::EventFlags::IN,
            Interest::Write => epoll::EventFlags::OUT,
            Interest::ReadWrite => epoll::EventFlags::IN | epoll::EventFlags::OUT,
        };
        let its_token = u64::try_from(fd.as_raw_fd()).expect("file descriptors are not negative");
        add(&caller, fd, its_token, flags)?;
    }
    add(epoll, &caller, TOKEN_CALLER, epoll::EventFlags::IN)?;
    Ok(caller)
}
