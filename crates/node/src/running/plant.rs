//! A running array as its front ends see it.

use super::room::watch_all;
use super::seated::{Work, serving};
use super::{Crew, Place, Running, map_of};
use crate::driver::Idle;
use crate::error::Error;
use crate::volume::Use;
use block::{Pool, Slot};
use front::{Bell, Done, RemoteVolume, Shape, Volume, VolumeRequest, weave_extents};
use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Where clients are served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clients {
    /// On the thread that looks after the array.
    Here,
    /// On threads of their own, see [`Plant::connect`], or on those of the shards, see [`Plant::serve_on`].
    Elsewhere,
}

/// How an array is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manner {
    /// What clients may do.
    pub usage: Use,
    /// Where they are.
    pub clients: Clients,
    /// Threads for the shards; with 1 they are on the thread that looks after the array.
    pub threads: usize,
}

/// How the clients of this thread get at the array.
enum Way {
    /// Directly: there is one shard, and it runs here.
    Direct,
    /// Through queues, as the clients of other threads do.
    Queues(Box<RemoteVolume>),
    /// There are none any more, since others have the queues; a pool that nobody uses.
    Nowhere(Pool),
}

/// A running array, and how its clients get at it.
pub struct Plant {
    running: Running,
    shape: Shape,
    way: Way,
    /// Readable when this thread has something to do.
    wake: OwnedFd,
    dozed: Cell<bool>,
}

impl Plant {
    /// Runs the array that consists of `shards`, in their order.
    pub fn new(shards: Vec<Idle>, manner: Manner) -> Result<Self, Error> {
        let Manner { usage, clients, threads } = manner;
        let engine = shards[0].array().engine_ref();
        let shape = Shape {
            map: map_of(&shards),
            chunk_bytes: engine.store().config.geometry.chunk_bytes(),
            untorn_bytes: shards.iter().map(|one| one.array().engine_ref().untorn_bytes()).min().unwrap_or(0),
            read_only: usage == Use::ReadOnly,
        };
        let threads = threads.min(shards.len());
        let is_direct = threads <= 1 && shards.len() == 1 && clients == Clients::Here;
        let mut running = match threads {
            0 | 1 => Running::here(shards, usage)?,
            count => Running::on_threads(shards, count, usage)?,
        };
        let way = match clients {
            Clients::Here if is_direct => Way::Direct,
            Clients::Here | Clients::Elsewhere => Way::Queues(Box::new(connect(&mut running, shape)?)),
        };
        let wake = wake_of(&running, &way)?;
        Ok(Self { running, shape, way, wake, dozed: Cell::new(false) })
    }

    /// The volume for another thread, which serves clients; only with [`Clients::Elsewhere`]. The first gets
    /// the queues through which this thread could look at the volume; it must not ask for anything then.
    pub fn connect(&mut self) -> Result<RemoteVolume, Error> {
        let Way::Queues(_) = self.way else { return connect(&mut self.running, self.shape) };
        let nowhere = Way::Nowhere(Pool::new(self.shape.chunk_bytes, 1));
        self.wake = wake_of(&self.running, &nowhere)?;
        match std::mem::replace(&mut self.way, nowhere) {
            Way::Queues(remote) => Ok(*remote),
            Way::Direct | Way::Nowhere(_) => unreachable!("it was queues"),
        }
    }

    /// Threads that run shards, beside the one that looks after the array.
    pub fn thread_count(&self) -> usize {
        self.crew().map_or(0, Crew::count)
    }

    /// Has a thread that runs shards serve clients as well, until `work` is over, which ends when `stop` is
    /// set; the answer wakes it. Only with [`Clients::Elsewhere`]. This thread must not ask for anything
    /// then.
    pub fn serve_on(&mut self, thread: usize, stop: Arc<AtomicBool>, work: Work) -> Result<Arc<Bell>, Error> {
        if let Way::Queues(_) = self.way {
            self.way = Way::Nowhere(Pool::new(self.shape.chunk_bytes, 1));
            self.wake = wake_of(&self.running, &self.way)?;
        }
        let crew = self.crew().ok_or(Error::ShardThread)?;
        let (size, bell) = (Arc::clone(&self.running.size), crew.bell_of(thread));
        let mut remote = RemoteVolume::beside_shards(self.shape, size, crew.count(), Arc::clone(bell));
        crew.connect(&mut remote)?;
        crew.serve(thread, serving(remote, stop, work))?;
        Ok(Arc::clone(bell))
    }

    /// Looks after the array: its shards are here, and nothing moves meanwhile on other threads.
    pub fn visit<R>(&mut self, look: impl FnOnce(&mut Running) -> R) -> Result<R, Error> {
        if let Place::Threads(crew) = &mut self.running.place {
            crew.borrow()?;
        }
        self.look_at(look)
    }

    /// The same, unless a thread stands still; then `None`, and clients of the others go on.
    pub fn try_visit<R>(&mut self, look: impl FnOnce(&mut Running) -> R) -> Result<Option<R>, Error> {
        if let Place::Threads(crew) = &mut self.running.place
            && !crew.try_borrow()?
        {
            return Ok(None);
        }
        self.look_at(look).map(Some)
    }

    /// The number of the first shard of a thread that stands still.
    pub fn stands_still(&self) -> Option<usize> {
        self.crew().and_then(Crew::stands_still)
    }

    /// Its shards are here.
    fn look_at<R>(&mut self, look: impl FnOnce(&mut Running) -> R) -> Result<R, Error> {
        let Place::Threads(_) = self.running.place else { return Ok(look(&mut self.running)) };
        self.running.gather_control_answers();
        let result = look(&mut self.running);
        match &mut self.running.place {
            Place::Threads(crew) => crew.give_back()?,
            Place::Here(_) => {}
        }
        Ok(result)
    }

    /// Whether there may be something to see for who looks after it. If the shards run here, always.
    pub fn has_news(&self) -> bool {
        match &self.running.place {
            Place::Here(_) => true,
            Place::Threads(crew) => crew.has_news(),
        }
    }

    /// What wakes this thread.
    pub fn bell(&self) -> Arc<Bell> {
        match &self.running.place {
            Place::Here(room) => Arc::clone(room.bell()),
            Place::Threads(crew) => Arc::clone(crew.bell()),
        }
    }

    /// Stops the array in order; its clients are gone.
    pub fn stop(self) -> Result<(), Error> {
        self.running.stop()
    }

    pub(super) fn crew(&self) -> Option<&Crew> {
        match &self.running.place {
            Place::Here(_) => None,
            Place::Threads(crew) => Some(crew),
        }
    }
}

/// A volume for clients, whose requests go to the shards through queues.
fn connect(running: &mut Running, shape: Shape) -> Result<RemoteVolume, Error> {
    let mut remote = RemoteVolume::new(shape, Arc::clone(&running.size))?;
    match &mut running.place {
        Place::Here(room) => {
            let bell = Arc::clone(room.bell());
            room.open(remote.connect(0..usize::from(shape.map.count()), &bell));
        }
        Place::Threads(crew) => crew.connect(&mut remote)?,
    }
    Ok(remote)
}

/// What is readable when the thread that looks after the array has something to do.
fn wake_of(running: &Running, way: &Way) -> Result<OwnedFd, Error> {
    let shards = match &running.place {
        Place::Here(room) => room.wake_fd(),
        Place::Threads(crew) => crew.bell().as_fd(),
    };
    match way {
        Way::Direct => Ok(running.only_shard().wake_fd().unwrap_or(shards).try_clone_to_owned()?),
        Way::Nowhere(_) => Ok(shards.try_clone_to_owned()?),
        Way::Queues(remote) => Ok(watch_all([shards].into_iter().chain(remote.wake_fd()))?),
    }
}

impl Volume for Plant {
    fn size_bytes(&self) -> u64 {
        self.running.map.volume_bytes()
    }

    fn chunk_bytes(&self) -> usize {
        self.shape.chunk_bytes
    }

    fn untorn_bytes(&self) -> u64 {
        self.shape.untorn_bytes
    }

    fn unit_bytes(&self) -> Option<u64> {
        match &self.way {
            Way::Queues(remote) => remote.unit_bytes(),
            Way::Direct | Way::Nowhere(_) => None,
        }
    }

    fn read_only(&self) -> bool {
        self.shape.read_only
    }

    fn pool(&mut self) -> &mut Pool {
        match &mut self.way {
            Way::Direct => self.running.only_shard_mut().pool(),
            Way::Queues(remote) => remote.pool(),
            Way::Nowhere(pool) => pool,
        }
    }

    fn start(&mut self, tag: u64, request: VolumeRequest, slots: &[Slot]) {
        match &mut self.way {
            Way::Direct => self.running.only_shard_mut().start(tag, request, slots),
            Way::Queues(remote) => remote.start(tag, request, slots),
            Way::Nowhere(_) => unreachable!("nobody asks on this thread"),
        }
    }

    fn drive(&mut self, done: &mut Vec<Done>) {
        if self.dozed.replace(false)
            && let Some(crew) = self.crew()
        {
            crew.bell().wake();
        }
        match &mut self.way {
            Way::Direct => self.running.drive_only(done),
            Way::Queues(remote) => {
                // What is asked reaches shards on this thread in the same turn, and so does their answer.
                remote.drive(done);
                self.running.drive();
                remote.drive(done);
            }
            Way::Nowhere(_) => self.running.drive(),
        }
    }

    fn idle_for(&self) -> Option<u64> {
        if let Some(crew) = self.crew() {
            self.dozed.set(true);
            crew.bell().doze();
            if crew.has_news() {
                return Some(0);
            }
        }
        let of_shards = match &self.way {
            Way::Direct => self.running.idle_only(),
            Way::Queues(_) | Way::Nowhere(_) => self.running.idle_for(),
        };
        let of_queues = match &self.way {
            Way::Queues(remote) => remote.idle_for(),
            Way::Direct | Way::Nowhere(_) => None,
        };
        of_shards.into_iter().chain(of_queues).min()
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wake.as_fd())
    }

    fn allocated(&self, offset_bytes: u64, length_bytes: u64, out: &mut Vec<(u64, bool)>) {
        match (&self.way, &self.running.place) {
            (Way::Queues(remote), Place::Threads(_)) => remote.allocated(offset_bytes, length_bytes, out),
            // The shards are here, and would not be asked before this turn is over.
            (_, Place::Here(room)) => {
                weave_extents(self.running.map, offset_bytes, length_bytes, |share| room.extents(share), out);
            }
            (_, Place::Threads(_)) => out.push((length_bytes, false)), // nobody asks on this thread
        }
    }
}
