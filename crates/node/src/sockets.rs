//! Threads that serve clients of an array: threads of their own, or those that run its shards.

use crate::error::Error;
use crate::logbook::log;
use crate::running::Plant;
use front::{Bell, Fault, Flow, Hooks, Meter, Places, Server, ServerError, Summary, Usher, Volume};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Clients of each thread, for all to see.
pub struct Census {
    places: Arc<Places>,
    /// Whether a thread has ended that was not to end.
    lost: AtomicBool,
    /// Of each thread that has begun.
    bells: Mutex<Vec<Arc<Bell>>>,
}

impl Census {
    /// Of all threads together.
    pub fn total(&self) -> usize {
        self.places.total()
    }

    /// Whether a thread ended by itself: in a bug, or as it could not go on.
    pub fn has_lost_a_thread(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    fn bells(&self) -> MutexGuard<'_, Vec<Arc<Bell>>> {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all threads: something has changed that they tell clients of, or they are to stop.
    pub fn wake(&self) {
        self.bells().iter().for_each(|bell| bell.ring_anyway());
    }
}

/// Which threads serve clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientThreads {
    /// The one that looks after the array.
    Steward,
    /// So many of their own.
    Own(usize),
    /// Those that run the shards.
    OfShards,
}

impl ClientThreads {
    /// How many they are, of an array that so many threads run.
    pub fn count(self, threads: usize) -> usize {
        match self {
            Self::Steward => 1,
            Self::Own(count) => count,
            Self::OfShards => threads,
        }
    }

    /// How many of them are there for nothing else.
    pub fn own_count(self) -> usize {
        match self {
            Self::Steward | Self::OfShards => 0,
            Self::Own(count) => count,
        }
    }
}

/// What a thread did, when it is over; an error if it ended in a bug.
struct Ending {
    told: Receiver<Result<Summary, ServerError>>,
    found: Option<Result<Summary, Error>>,
}

impl Ending {
    /// Whether the thread serves nobody any more.
    fn has_come(&mut self) -> bool {
        if self.found.is_none() {
            self.found = match self.told.try_recv() {
                Ok(summary) => Some(summary.map_err(Error::from)),
                Err(TryRecvError::Disconnected) => Some(Err(Error::SocketThread)),
                Err(TryRecvError::Empty) => None,
            };
        }
        self.found.is_some()
    }
}

/// See the module's documentation.
pub struct Sockets {
    threads: Vec<Ending>,
    meters: Vec<Arc<Meter>>,
    census: Arc<Census>,
    stop: Arc<AtomicBool>,
}

struct SocketHooks {
    usher: Usher,
    stop: Arc<AtomicBool>,
    stopping: bool,
}

impl<V: Volume> Hooks<V> for SocketHooks {
    fn on_turn(&mut self, _volume: &mut V) -> Flow {
        if !self.stopping && self.stop.load(Ordering::Acquire) {
            self.stopping = true;
            return Flow::Stop;
        }
        Flow::Continue
    }

    fn may_accept(&mut self) -> bool {
        self.usher.may_accept()
    }

    fn on_clients(&mut self, count: usize) {
        self.usher.note(count);
    }

    fn on_fault(&mut self, peer: &str, fault: &Fault) {
        log(&format!("client {peer}: {fault}"));
    }
}

/// Wakes whoever looks after the array if a thread serves its clients no more.
struct Alarm {
    census: Arc<Census>,
    bell: Arc<Bell>,
}

impl Alarm {
    fn raise(&self) {
        self.census.lost.store(true, Ordering::Relaxed);
        self.bell.ring_anyway();
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.raise();
        }
    }
}

/// What a thread that serves clients takes with it.
struct Post {
    server: Server,
    hooks: SocketHooks,
    alarm: Alarm,
    ended: Sender<Result<Summary, ServerError>>,
}

impl Post {
    /// Serves clients until it is over, and says what was done when the sockets are closed.
    fn hold(self, volume: &mut impl Volume) {
        let Self { mut server, mut hooks, alarm, ended } = self;
        let ended_well = |error| match error {
            // There are fewer queues of a disk than threads.
            ServerError::NoListener => Ok(Summary::default()),
            error @ (ServerError::Busy { .. }
            | ServerError::NotASocket { .. }
            | ServerError::Listen { .. }
            | ServerError::ChunkSize { .. }
            | ServerError::Events(_)) => Err(error),
        };
        let summary = server.run(volume, &mut hooks).or_else(ended_well);
        drop(server);
        let is_lost = summary.is_err();
        let _ = ended.send(summary); // whoever asked may be gone
        if is_lost {
            alarm.raise();
        }
    }
}

impl Sockets {
    /// Starts serving on these threads, all of which listen where `server` does.
    pub fn start(threads: ClientThreads, server: &mut Server, plant: &mut Plant) -> Result<Self, Error> {
        let count = threads.count(plant.thread_count());
        let places = Arc::new(Places::new(count));
        let census = Census { places, lost: AtomicBool::new(false), bells: Mutex::default() };
        let mut sockets = Self {
            threads: Vec::new(),
            meters: Vec::new(),
            census: Arc::new(census),
            stop: Arc::new(AtomicBool::new(false)),
        };
        let mut add = |thread| {
            let post = sockets.post(thread, server.share_for(thread, count)?, plant);
            let bell = match threads {
                ClientThreads::Steward | ClientThreads::Own(_) => spawn(thread, plant, post)?,
                ClientThreads::OfShards => {
                    let stop = Arc::clone(&sockets.stop);
                    plant.serve_on(thread, stop, Box::new(move |volume| post.hold(volume)))?
                }
            };
            sockets.census.bells().push(bell);
            Ok(())
        };
        match (0..count).try_for_each(&mut add) {
            Ok(()) => Ok(sockets),
            Err(error) => {
                // What led to it is told, not what came of that.
                let _ = sockets.stop(plant);
                Err(error)
            }
        }
    }

    fn post(&mut self, thread: usize, server: Server, plant: &Plant) -> Post {
        self.meters.push(server.meter());
        let hooks = SocketHooks {
            usher: Usher::new(Arc::clone(&self.census.places), thread),
            stop: Arc::clone(&self.stop),
            stopping: false,
        };
        let alarm = Alarm { census: Arc::clone(&self.census), bell: plant.bell() };
        let (ended, told) = channel();
        self.threads.push(Ending { told, found: None });
        Post { server, hooks, alarm, ended }
    }

    /// What clients ask for, of each thread.
    pub fn meters(&self) -> Vec<Arc<Meter>> {
        self.meters.clone()
    }

    /// How many clients there are.
    pub fn census(&self) -> Arc<Census> {
        Arc::clone(&self.census)
    }

    /// Stops all threads in order, while the array goes on working for them; what they did together.
    pub fn stop(mut self, plant: &mut Plant) -> Result<Summary, Error> {
        self.stop.store(true, Ordering::Release);
        self.census.wake();
        let mut done = Vec::new();
        while !self.threads.iter_mut().all(Ending::has_come) {
            plant.drive(&mut done);
            done.clear(); // nobody asks on this thread
            // A thread that has lent its shards too late to be waited for needs them back to go on.
            if plant.stands_still().is_some() || (plant.thread_count() > 0 && plant.has_news()) {
                plant.try_visit(|_| ())?;
            }
            if plant.thread_count() > 0 || plant.idle_for() != Some(0) {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        let mut whole = Summary::default();
        for summary in self.threads.into_iter().filter_map(|ending| ending.found) {
            whole = whole.and(summary?);
        }
        Ok(whole)
    }
}

/// Serves clients on a thread of their own; what wakes it.
fn spawn(thread: usize, plant: &mut Plant, post: Post) -> Result<Arc<Bell>, Error> {
    let mut volume = plant.connect()?;
    let bell = volume.bell();
    std::thread::Builder::new().name(format!("sockets {thread}")).spawn(move || post.hold(&mut volume))?;
    Ok(bell)
}
