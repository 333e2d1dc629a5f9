//! Threads that serve clients of an array, which another thread runs.

use crate::error::Error;
use crate::logbook::log;
use crate::running::Plant;
use front::{Bell, Fault, Flow, Hooks, Meter, RemoteVolume, Server, ServerError, Summary, Volume as _};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a thread leaves a new client to one that has fewer.
const COURTESY: Duration = Duration::from_millis(2);

/// Clients of each thread, for all to see.
pub struct Census {
    counts: Vec<AtomicUsize>,
    /// Whether a thread has ended that was not to end.
    lost: AtomicBool,
    /// Of each thread that has begun.
    bells: Mutex<Vec<Arc<Bell>>>,
}

impl Census {
    /// Of all threads together.
    pub fn total(&self) -> usize {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Whether a thread ended in a bug.
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

    fn has_fewer_than(&self, thread: usize) -> bool {
        let own = self.counts[thread].load(Ordering::Relaxed);
        self.counts.iter().any(|count| count.load(Ordering::Relaxed) < own)
    }
}

/// See the module's documentation.
pub struct Sockets {
    threads: Vec<JoinHandle<Result<Summary, ServerError>>>,
    meters: Vec<Arc<Meter>>,
    census: Arc<Census>,
    stop: Arc<AtomicBool>,
}

struct SocketHooks {
    thread: usize,
    census: Arc<Census>,
    stop: Arc<AtomicBool>,
    stopping: bool,
    /// Since when a new client is left to others.
    polite_since: Option<Instant>,
}

impl Hooks<RemoteVolume> for SocketHooks {
    fn on_turn(&mut self, _volume: &mut RemoteVolume) -> Flow {
        if !self.stopping && self.stop.load(Ordering::Acquire) {
            self.stopping = true;
            return Flow::Stop;
        }
        Flow::Continue
    }

    fn may_accept(&mut self) -> bool {
        if !self.census.has_fewer_than(self.thread) {
            return true;
        }
        let over = self.polite_since.get_or_insert_with(Instant::now).elapsed() > COURTESY;
        if over {
            self.polite_since = None;
        }
        over
    }

    fn on_clients(&mut self, count: usize) {
        self.polite_since = None;
        self.census.counts[self.thread].store(count, Ordering::Relaxed);
    }

    fn on_fault(&mut self, peer: &str, fault: &Fault) {
        log(&format!("client {peer}: {fault}"));
    }
}

/// Wakes whoever looks after the array if a thread of sockets panics.
struct Alarm {
    census: Arc<Census>,
    bell: Arc<Bell>,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.census.lost.store(true, Ordering::Relaxed);
            self.bell.ring_anyway();
        }
    }
}

impl Sockets {
    /// Starts so many threads, all of which listen where `server` does.
    pub fn start(count: usize, server: &mut Server, plant: &mut Plant) -> Result<Self, Error> {
        let counts = (0..count).map(|_| AtomicUsize::new(0)).collect();
        let census = Census { counts, lost: AtomicBool::new(false), bells: Mutex::default() };
        let mut sockets = Self {
            threads: Vec::new(),
            meters: Vec::new(),
            census: Arc::new(census),
            stop: Arc::new(AtomicBool::new(false)),
        };
        match (0..count).try_for_each(|thread| sockets.add(thread, server.share_for(thread, count)?, plant)) {
            Ok(()) => Ok(sockets),
            Err(error) => {
                sockets.stop(plant)?;
                Err(error)
            }
        }
    }

    fn add(&mut self, thread: usize, mut server: Server, plant: &mut Plant) -> Result<(), Error> {
        let mut volume = plant.connect()?;
        self.meters.push(server.meter());
        let bell = volume.bell();
        let mut hooks = SocketHooks {
            thread,
            census: Arc::clone(&self.census),
            stop: Arc::clone(&self.stop),
            stopping: false,
            polite_since: None,
        };
        let alarm = Alarm { census: Arc::clone(&self.census), bell: plant.bell() };
        let work = move || {
            let _alarm = alarm;
            server.run(&mut volume, &mut hooks)
        };
        let name = format!("sockets {thread}");
        self.threads.push(std::thread::Builder::new().name(name).spawn(work)?);
        self.census.bells().push(bell);
        Ok(())
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
    pub fn stop(self, plant: &mut Plant) -> Result<Summary, Error> {
        self.stop.store(true, Ordering::Release);
        self.census.wake();
        let mut done = Vec::new();
        while !self.threads.iter().all(JoinHandle::is_finished) {
            plant.drive(&mut done);
            done.clear(); // nobody asks on this thread
            if plant.idle_for() != Some(0) {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        let mut whole = Summary::default();
        for thread in self.threads {
            let summary = thread.join().map_err(|_| Error::SocketThread)??;
            whole = whole.and(summary);
        }
        Ok(whole)
    }
}
