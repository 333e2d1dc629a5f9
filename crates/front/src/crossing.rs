//! A volume whose shards run on other threads than those that serve its clients.
//!
//! A [`RemoteVolume`] is the volume as a thread of sockets sees it; its requests go through a bounded queue
//! with one producer and one consumer to a [`Landing`] on the thread that runs the shard concerned, and
//! answers come back through another. A request to several shards is answered when all of them have.
//! Nothing is locked, and nothing is allocated once as many buffers as ever wait were made: buffers travel
//! with the requests and come back with the answers, so that each belongs to one thread at a time. Who finds
//! nothing to do says that it goes to sleep, looks once more, and sleeps until the other side's bell rings
//! ([`Bell`]).

mod bell;
mod flag;
mod landing;
mod lane;
mod remote;
mod rings;

pub use bell::Bell;
pub use landing::Landing;
pub use remote::RemoteVolume;

use crate::{VolumeError, VolumeRequest};
use block::{Buffer, Interleave, Share};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

/// What [`flag`], [`lane`] and [`landing`] stand on, by names that a model checker can give to others.
mod atomics {
    pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
}

/// See [`atomics`].
mod queue {
    pub(super) use rtrb::{Consumer, Producer, PushError, RingBuffer};
}

/// Requests under way between two threads at most; more wait on the side of the sockets. Those are flushes,
/// discards and the like, as many as [`crate::Limits`] lets in: what reads and writes hold of a thread's
/// buffers is never more. Under Miri it is short, so that it is found full and goes round.
const QUEUE_LENGTH: usize = if cfg!(miri) { 4 } else { 4096 };
/// Bytes of buffers of a thread of sockets.
const BUFFER_BYTES: usize = 32 << 20;
/// What a thread of sockets takes for buffers, in bytes.
pub const SOCKET_BUFFERS_BYTES: u64 = BUFFER_BYTES as u64;
/// Bytes of buffers, at least, of a thread that runs shards and serves clients.
const BUFFER_BYTES_MIN: usize = 8 << 20;

/// Bytes of buffers of each of so many threads that run shards and serve clients.
const fn buffer_bytes_beside_shards(threads: usize) -> usize {
    let share = BUFFER_BYTES / threads;
    if share < BUFFER_BYTES_MIN { BUFFER_BYTES_MIN } else { share }
}

/// What so many threads that run shards and serve clients take for buffers, in bytes.
pub const fn buffers_bytes_beside_shards(threads: usize) -> u64 {
    (threads * buffer_bytes_beside_shards(threads)) as u64
}

/// A request on its way to a shard of the volume. Reads and writes have a buffer for each chunk that they
/// touch, with the bytes where they are in the chunk.
pub struct Ask {
    /// Names it among those of the same [`RemoteVolume`]; the parts of a request have the same.
    pub tag: u64,
    /// The shard.
    pub shard: u16,
    /// What is wanted, in the shard's own addresses.
    pub request: VolumeRequest,
    /// What is written, or room for what is read.
    pub buffers: Vec<Buffer>,
}

/// The end of a request, or of a shard's part of it, on its way back.
pub struct Answer {
    /// That of the [`Ask`].
    pub tag: u64,
    /// How it ended.
    pub result: Result<(), VolumeError>,
    /// What was read; in any case as many buffers, as long, as the [`Ask`] had. What is in others than those
    /// that were read is nobody's business: it may be another client's.
    pub buffers: Vec<Buffer>,
}

/// Asks what lies behind a range; see [`crate::Volume::allocated`].
pub struct ExtentsAsk {
    /// Of which shard, and what of it in its own addresses.
    pub share: Share,
    /// Where the answer goes.
    pub answer: mpsc::SyncSender<Vec<(u64, bool)>>,
}

/// How large a volume is, for all threads that serve it: it may become larger meanwhile.
#[derive(Debug)]
pub struct Size(AtomicU64);

impl Size {
    /// So many bytes.
    pub fn new(bytes: u64) -> Self {
        Self(AtomicU64::new(bytes))
    }

    /// How many it is now.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// It is so many from now on. The shards must have what is new already.
    pub fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Release);
    }
}

/// What a volume is like; but for its [`Size`] that does not change while it is served.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How its addresses go to shards, at first.
    pub map: Interleave,
    /// See [`crate::Volume::chunk_bytes`].
    pub chunk_bytes: usize,
    /// See [`crate::Volume::untorn_bytes`].
    pub untorn_bytes: u64,
    /// See [`crate::Volume::read_only`].
    pub read_only: bool,
}

#[cfg(test)]
mod tests;
