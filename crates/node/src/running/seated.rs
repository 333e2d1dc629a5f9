//! A thread of shards that serves clients as well: the volume as these see it.
//!
//! Their requests take the same queues as those of clients elsewhere, also to the shards of this thread; the
//! thread sleeps once for all that it does, and whoever looks after the array finds it as he finds others. If
//! it stands still at a shard, its clients wait, those of other threads do not.

use super::hand::{Worker, WorkerTask};
use block::{Pool, Share, Slot};
use front::{Done, RemoteVolume, Volume, VolumeRequest, weave_extents};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Serves clients of a volume until it is over.
pub type Work = Box<dyn FnOnce(&mut Seated<'_>) + Send>;

/// See the module's documentation.
pub struct Seated<'a> {
    worker: &'a mut Worker,
    remote: RemoteVolume,
    stop: Arc<AtomicBool>,
    /// Readable when the thread has something to do.
    wake: OwnedFd,
}

/// Has a worker serve clients by `work`, which ends when `stop` is set, and that is set when the worker is
/// told to end. Their requests go to `remote`, whose bell is the worker's.
pub fn serving(remote: RemoteVolume, stop: Arc<AtomicBool>, work: Work) -> WorkerTask {
    Box::new(move |worker| {
        let wake = worker.room.wake_fd().try_clone_to_owned()?;
        work(&mut Seated { worker, remote, stop, wake });
        Ok(())
    })
}

impl Volume for Seated<'_> {
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
        self.worker.room.drive();
        self.remote.drive(done);
        if !self.worker.attend() {
            self.stop.store(true, Ordering::Release);
        }
    }

    fn idle_for(&self) -> Option<u64> {
        let idle = self.worker.room.idle_for().into_iter().chain(self.remote.idle_for()).min();
        // A call that came before it said that it goes to sleep has not rung.
        if self.worker.is_called() { Some(0) } else { idle }
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wake.as_fd())
    }

    fn allocated(&self, offset_bytes: u64, length_bytes: u64, out: &mut Vec<(u64, bool)>) {
        let ask = |share: Share| {
            if self.worker.room.has(share.shard) {
                return self.worker.room.extents(share);
            }
            // Another such thread may be asking this one.
            self.remote.extents(share, || {
                self.worker.room.tell_extents();
                !self.worker.is_called()
            })
        };
        weave_extents(self.remote.map(), offset_bytes, length_bytes, ask, out);
    }
}
