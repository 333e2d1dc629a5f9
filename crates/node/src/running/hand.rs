//! A thread that runs shards, and how to deal with it from another.
//!
//! It runs them in a [`Room`], and sleeps while there is nothing to do. On demand it lends them; the devices
//! stay, as a ring belongs to its thread, and what is to be done with them meanwhile is sent here. It may
//! serve clients as well.

use super::Shard;
use super::room::Room;
use crate::driver::{Devices, Idle};
use crate::error::Error;
use crate::logbook::log;
use crate::volume::{Clock, ServedShard, Use};
use device::{DeviceCounters, Membership as _};
use front::{Bell, Landing};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Instant;

/// What is to be done with the devices of a thread's shards while these are lent.
type Errand = Box<dyn FnOnce(&mut [Devices]) + Send>;

/// What a thread does beside its shards, which it attends to meanwhile.
pub type WorkerTask = Box<dyn FnOnce(&mut Worker) -> Result<(), Error> + Send>;

/// What a thread is told.
enum Call {
    /// Answer what is asked here, too.
    Open(Landing),
    /// Do this, and attend to the shards and to what is told meanwhile.
    Serve(WorkerTask),
    /// Lend the shards.
    Lend,
    /// Do something with their devices.
    Do(Errand),
    /// The shards are back.
    Return(Vec<ServedShard<()>>),
    /// Stop the shards in order, and end.
    Stop,
    /// Stand still until told.
    #[cfg(test)]
    Stand(mpsc::Receiver<()>),
}

/// Shards on loan, and what passed to their devices and from them.
pub struct Loan {
    pub shards: Vec<ServedShard<()>>,
    pub counters: Vec<Vec<DeviceCounters>>,
}

/// Where a thread and whoever looks after the array leave word for each other.
struct Board {
    /// Calls that were not taken.
    calls: AtomicUsize,
    /// There is something to see in one of the shards, or the thread has ended.
    news: AtomicBool,
    /// Of who looks after the array.
    far: Arc<Bell>,
}

impl Board {
    fn tell(&self) {
        if !self.news.swap(true, Ordering::AcqRel) {
            self.far.ring();
        }
    }
}

/// One of the threads.
pub struct Hand {
    calls: mpsc::Sender<Call>,
    loans: mpsc::Receiver<Loan>,
    board: Arc<Board>,
    bell: Arc<Bell>,
    thread: JoinHandle<Result<(), Error>>,
}

/// What a thread's shards are like, beside what they are.
#[derive(Clone, Copy)]
pub struct Terms {
    pub clock: Clock,
    pub usage: Use,
    /// The number of the first, and how many lie between two.
    pub numbers: (usize, usize),
}

impl Hand {
    /// Starts a thread for shards; `far` is rung when there is something to see.
    pub fn start(shards: Vec<Idle>, terms: Terms, far: Arc<Bell>) -> Result<Self, Error> {
        let bell = Arc::new(Bell::new()?);
        let (calls, called) = mpsc::channel();
        let (lend, loans) = mpsc::channel();
        let board = Arc::new(Board { calls: AtomicUsize::new(0), news: AtomicBool::new(true), far });
        let (ready, begun) = mpsc::channel();
        let (own_bell, own_board) = (Arc::clone(&bell), Arc::clone(&board));
        let work = move || {
            let _end = Farewell(Arc::clone(&own_board));
            match furnish(shards, terms, own_bell) {
                Ok(room) => {
                    let _ = ready.send(None);
                    Worker { room, calls: called, loans: lend, board: own_board, pulse: 0, end: None }.run()
                }
                Err(error) => {
                    let _ = ready.send(Some(error));
                    Ok(())
                }
            }
        };
        let name = format!("shards {}", terms.numbers.0);
        let thread = std::thread::Builder::new().name(name).spawn(work)?;
        match begun.recv() {
            Ok(None) => Ok(Self { calls, loans, board, bell, thread }),
            Ok(Some(error)) => Err(error),
            Err(_) => Err(Error::ShardThread),
        }
    }

    /// What wakes the thread.
    pub fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// Has it answer what is asked there.
    pub fn open(&self, landing: Landing) -> Result<(), Error> {
        self.call(Call::Open(landing))
    }

    /// Has it do something beside its shards, until that is over.
    pub fn serve(&self, task: WorkerTask) -> Result<(), Error> {
        self.call(Call::Serve(task))
    }

    /// What there was to see is being looked at.
    pub fn clear_news(&self) {
        self.board.news.store(false, Ordering::Relaxed);
    }

    /// Whether there is something to see.
    pub fn has_news(&self) -> bool {
        self.board.news.load(Ordering::Relaxed)
    }

    /// Asks for its shards.
    pub fn ask_loan(&self) -> Result<(), Error> {
        self.call(Call::Lend)
    }

    /// Waits for them until then, or for as long as it takes; `None` if they have not come.
    pub fn take_loan(&self, until: Option<Instant>) -> Result<Option<Loan>, Error> {
        let Some(until) = until else { return self.loans.recv().map(Some).map_err(|_| Error::ShardThread) };
        match self.loans.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(loan) => Ok(Some(loan)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Error::ShardThread),
        }
    }

    /// Has it stand still until what is given back is dropped.
    #[cfg(test)]
    pub fn stand_still(&self) -> mpsc::Sender<()> {
        let (go_on, until) = mpsc::channel();
        self.call(Call::Stand(until)).expect("the thread is there");
        go_on
    }

    /// Gives them back.
    pub fn give_back(&self, shards: Vec<ServedShard<()>>) -> Result<(), Error> {
        self.call(Call::Return(shards))
    }

    /// Has it do something with the devices of its shards, which are on loan.
    pub fn have_done<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut [Devices]) -> R + Send + 'static,
    ) -> Result<R, Error> {
        let (answer, answered) = mpsc::channel();
        self.call(Call::Do(Box::new(move |devices| {
            let _ = answer.send(work(devices));
        })))?;
        answered.recv().map_err(|_| Error::ShardThread)
    }

    /// Tells it to stop its shards.
    pub fn ask_stop(&self) -> Result<(), Error> {
        self.call(Call::Stop)
    }

    /// Waits until it has.
    pub fn finish(self) -> Result<(), Error> {
        self.thread.join().map_err(|_| Error::ShardThread)?
    }

    fn call(&self, call: Call) -> Result<(), Error> {
        // Counted first, so that it never counts less than there are.
        self.board.calls.fetch_add(1, Ordering::AcqRel);
        self.calls.send(call).map_err(|_| Error::ShardThread)?;
        self.bell.ring();
        Ok(())
    }
}

/// Tells that a thread has ended, however it did.
struct Farewell(Arc<Board>);

impl Drop for Farewell {
    fn drop(&mut self) {
        self.0.tell();
    }
}

/// Starts the drivers, on this thread.
fn furnish(shards: Vec<Idle>, terms: Terms, bell: Arc<Bell>) -> Result<Room, Error> {
    let shards = shards.into_iter().map(|idle| awake(idle, terms.clock, terms.usage));
    Ok(Room::new(shards.collect::<Result<_, _>>()?, terms.numbers, bell)?)
}

/// A shard whose devices wake the thread that this runs on.
pub fn awake(idle: Idle, clock: Clock, usage: Use) -> Result<Shard, Error> {
    let mut array = idle.start()?;
    let wake: OwnedFd = array.devices().wake_fd()?.try_clone_to_owned()?;
    Ok(ServedShard::new(array, clock, Some(wake), usage))
}

/// The thread's side.
pub struct Worker {
    /// Its shards.
    pub room: Room,
    calls: mpsc::Receiver<Call>,
    loans: mpsc::Sender<Loan>,
    board: Arc<Board>,
    /// What there was to see last.
    pulse: u64,
    /// Why the thread ends, if it does: an error, or because it was told to.
    end: Option<Result<(), Error>>,
}

impl Worker {
    fn run(mut self) -> Result<(), Error> {
        loop {
            self.room.drive();
            while self.end.is_none()
                && let Some(call) = self.next_call()
            {
                self.heed(call);
            }
            if let Some(end) = self.end.take() {
                return end.and_then(|()| self.room.stop());
            }
            self.tell_news();
            let idle = self.room.idle_for();
            // A call that came before it said that it goes to sleep has not rung.
            if idle != Some(0) && !self.is_called() {
                self.room.sleep(idle)?;
            }
        }
    }

    /// Heeds what it is told during a task, and says what is new; `false` if the task is to end.
    pub fn attend(&mut self) -> bool {
        while self.end.is_none()
            && let Some(call) = self.next_call()
        {
            if let Call::Serve(_) = call {
                self.end = Some(Err(Error::ShardThread));
            } else {
                self.heed(call);
            }
        }
        self.tell_news();
        self.end.is_none()
    }

    fn heed(&mut self, call: Call) {
        let heeded = match call {
            Call::Open(landing) => {
                self.room.open(landing);
                Ok(())
            }
            Call::Serve(task) => {
                // The shards go on without it.
                if let Err(error) = task(self) {
                    log(&format!("a thread of shards serves no clients: {error}"));
                }
                Ok(())
            }
            Call::Lend => self.lend(),
            Call::Stop => {
                self.end = Some(Ok(()));
                Ok(())
            }
            #[cfg(test)]
            Call::Stand(until) => {
                let _ = until.recv();
                Ok(())
            }
            // Nothing is on loan.
            Call::Do(_) | Call::Return(_) => Err(Error::ShardThread),
        };
        if heeded.is_err() {
            self.end = Some(heeded);
        }
    }

    /// Whether there is something that it is told.
    pub fn is_called(&self) -> bool {
        self.end.is_none() && self.board.calls.load(Ordering::Acquire) != 0
    }

    fn next_call(&self) -> Option<Call> {
        if !self.is_called() {
            return None;
        }
        let call = self.calls.try_recv().ok()?;
        self.board.calls.fetch_sub(1, Ordering::Relaxed);
        Some(call)
    }

    /// Says so if there is something new to see.
    fn tell_news(&mut self) {
        let shards = self.room.shards();
        let pulse = shards.iter().map(|shard| shard.engine_ref().pulse()).sum();
        let has_changed = std::mem::replace(&mut self.pulse, pulse) != pulse;
        if has_changed || shards.iter().any(ServedShard::has_news) {
            self.board.tell();
        }
    }

    /// Lends the shards, and does what is asked with their devices until they are back.
    fn lend(&mut self) -> Result<(), Error> {
        let (shards, mut devices) = self.room.lend();
        let counters = devices.iter().map(|devices| devices.inner().devices().to_vec()).collect();
        self.loans.send(Loan { shards, counters }).map_err(|_| Error::ShardThread)?;
        loop {
            let call = self.calls.recv().map_err(|_| Error::ShardThread)?;
            self.board.calls.fetch_sub(1, Ordering::Relaxed);
            match call {
                Call::Do(errand) => errand(&mut devices),
                Call::Open(landing) => self.room.open(landing),
                Call::Return(shards) => {
                    self.room.take_back(shards, devices);
                    return Ok(());
                }
                Call::Serve(_) | Call::Lend | Call::Stop => return Err(Error::ShardThread),
                #[cfg(test)]
                Call::Stand(_) => return Err(Error::ShardThread),
            }
        }
    }
}
