//! A thread of shards that serves clients as well: the volume as these see it.
//!
//! Their requests take the same queues as those of clients elsewhere, also to the shards of this thread; the
//! thread sleeps once for all that it does, and whoever looks after the array finds it as he finds others. If
//! it stands still at a shard, its clients wait, those of other threads do not.

use super::hand::{Worker, WorkerTask};
use super::room::Room;
use block::{DeviceSet, Pool, Share, Slot};
use front::{Done, RemoteVolume, Volume, VolumeRequest, weave_extents};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long other threads' shards are waited for, all together, to say what lies behind a range.
const EXTENTS_PATIENCE: Duration = Duration::from_millis(100);

/// Serves clients of a volume until it is over.
pub type Work = Box<dyn FnOnce(&mut Seated<'_, Worker>) + Send>;

/// What a thread runs beside its clients.
pub trait Shards {
    /// Does everything that can be done now; `false` if serving clients is to end.
    fn drive(&mut self) -> bool;

    /// See [`Room::idle_for`].
    fn idle_for(&self) -> Option<u64>;

    /// Readable when they are to be driven.
    fn wake_fd(&self) -> BorrowedFd<'_>;

    /// What lies behind a share of a range, if its shard is here.
    fn extents(&self, share: Share) -> Option<Vec<(u64, bool)>>;

    /// Answers whoever asks that of the shards here; `false` if somebody waits for the thread.
    fn tell_extents(&self) -> bool;
}

impl<D: DeviceSet> Shards for Room<D> {
    fn drive(&mut self) -> bool {
        Self::drive(self);
        true
    }

    fn idle_for(&self) -> Option<u64> {
        Self::idle_for(self)
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        Self::wake_fd(self)
    }

    fn extents(&self, share: Share) -> Option<Vec<(u64, bool)>> {
        self.has(share.shard).then(|| Self::extents(self, share))
    }

    fn tell_extents(&self) -> bool {
        Self::tell_extents(self);
        true
    }
}

impl Shards for Worker {
    fn drive(&mut self) -> bool {
        self.room.drive();
        self.attend()
    }

    fn idle_for(&self) -> Option<u64> {
        let idle = self.room.idle_for();
        // A call that came before it said that it goes to sleep has not rung.
        if self.is_called() { Some(0) } else { idle }
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.room.wake_fd()
    }

    fn extents(&self, share: Share) -> Option<Vec<(u64, bool)>> {
        Shards::extents(&self.room, share)
    }

    fn tell_extents(&self) -> bool {
        self.room.tell_extents();
        !self.is_called()
    }
}

/// See the module's documentation.
pub struct Seated<'a, S> {
    shards: &'a mut S,
    remote: RemoteVolume,
    stop: Arc<AtomicBool>,
    /// Readable when the thread has something to do.
    wake: OwnedFd,
}

/// Has a worker serve clients by `work`, which ends when `stop` is set, and that is set when the worker is
/// told to end. Their requests go to `remote`, whose bell is the worker's.
pub fn serving(remote: RemoteVolume, stop: Arc<AtomicBool>, work: Work) -> WorkerTask {
    Box::new(move |worker| {
        work(&mut Seated::new(worker, remote, stop)?);
        Ok(())
    })
}

impl<'a, S: Shards> Seated<'a, S> {
    /// The volume of which `shards` are here, and which all are reached through `remote`; `stop` is set when
    /// serving clients is to end. The bell of `remote` is that by which `shards` are woken.
    pub fn new(shards: &'a mut S, remote: RemoteVolume, stop: Arc<AtomicBool>) -> io::Result<Self> {
        let wake = shards.wake_fd().try_clone_to_owned()?;
        Ok(Self { shards, remote, stop, wake })
    }
}

impl<S: Shards> Volume for Seated<'_, S> {
    fn size_bytes(&self) -> u64 {
        self.remote.size_bytes()
    }

    fn chunk_bytes(&self) -> usize {
        self.remote.chunk_bytes()
    }

    fn untorn_bytes(&self) -> u64 {
        self.remote.untorn_bytes()
    }

    fn unit_bytes(&self) -> Option<u64> {
        self.remote.unit_bytes()
    }

    fn read_only(&self) -> bool {
        self.remote.read_only()
    }

    fn pool(&mut self) -> &mut Pool {
        self.remote.pool()
    }

    fn start(&mut self, tag: u64, request: VolumeRequest, slots: &[Slot]) {
        self.remote.start(tag, request, slots);
    }

    fn drive(&mut self, done: &mut Vec<Done>) {
        // What is asked reaches the shards here in the same turn, and so does their answer.
        self.remote.drive(done);
        if !self.shards.drive() {
            self.stop.store(true, Ordering::Release);
        }
        self.remote.drive(done);
    }

    fn idle_for(&self) -> Option<u64> {
        self.shards.idle_for().into_iter().chain(self.remote.idle_for()).min()
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wake.as_fd())
    }

    fn allocated(&self, offset_bytes: u64, length_bytes: u64, out: &mut Vec<(u64, bool)>) {
        // Another such thread may be asking this one meanwhile, and the shards here stand still.
        let until = Instant::now() + EXTENTS_PATIENCE;
        let goes_on = || self.shards.tell_extents() && Instant::now() < until;
        let elsewhere = |share| self.remote.extents(share, goes_on);
        let ask = |share| self.shards.extents(share).unwrap_or_else(|| elsewhere(share));
        weave_extents(self.remote.map(), offset_bytes, length_bytes, ask, out);
    }
}

#[cfg(test)]
mod tests;
