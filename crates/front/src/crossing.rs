//! A volume on one thread whose clients are served on others.
//!
//! A [`RemoteVolume`] is the volume as a thread of sockets sees it; its requests go through a bounded queue
//! with one producer and one consumer to a [`Landing`] on the thread of the volume, and answers come back
//! through another. Nothing is locked, and nothing is allocated once as many buffers as ever wait were made:
//! buffers travel with the requests and come back with the answers, so that each belongs to one thread at a
//! time. Who finds nothing to do says that it goes to sleep, looks once more, and sleeps until the other
//! side's bell rings ([`Bell`]).

mod bell;
mod flag;
mod landing;
mod remote;

pub use bell::Bell;
pub use landing::Landing;
pub use remote::RemoteVolume;

use crate::{Volume, VolumeError, VolumeRequest};
use rtrb::RingBuffer;
use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, mpsc};

/// What [`flag`] stands on.
mod atomics {
    pub(super) use std::sync::atomic::{AtomicBool, Ordering, fence};
}

/// Requests under way between two threads at most; more wait on the side of the sockets.
const QUEUE_LENGTH: usize = 4096;
/// Bytes of buffers of a thread of sockets.
const BUFFER_BYTES: usize = 32 << 20;

/// A buffer on its way; as long as a chunk.
pub type Buffer = Box<[u8]>;

/// A request on its way to the volume. Reads and writes have a buffer for each chunk that they touch, with
/// the bytes where they are in the chunk.
pub struct Ask {
    /// Names it among those of the same [`RemoteVolume`].
    pub tag: u32,
    /// What is wanted.
    pub request: VolumeRequest,
    /// What is written, or room for what is read.
    pub buffers: Vec<Buffer>,
}

/// The end of a request on its way back.
pub struct Answer {
    /// That of the [`Ask`].
    pub tag: u32,
    /// How it ended.
    pub result: Result<(), VolumeError>,
    /// What was read; the buffers of the [`Ask`] in any case.
    pub buffers: Vec<Buffer>,
}

/// Asks what lies behind a range; see [`Volume::allocated`].
pub struct ExtentsAsk {
    /// Start of the range.
    pub offset_bytes: u64,
    /// Its length.
    pub length_bytes: u64,
    /// Where the answer goes.
    pub answer: mpsc::SyncSender<Vec<(u64, bool)>>,
}

/// What a volume is like; it does not change while it is served.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    size_bytes: u64,
    chunk_bytes: usize,
    untorn_bytes: u64,
    unit_bytes: Option<u64>,
    read_only: bool,
}

/// Both sides of a crossing to `volume`, whose thread wakes up when `bell` rings.
pub fn crossing(volume: &impl Volume, bell: &Arc<Bell>) -> io::Result<(RemoteVolume, Landing)> {
    let shape = Shape {
        size_bytes: volume.size_bytes(),
        chunk_bytes: volume.chunk_bytes(),
        untorn_bytes: volume.untorn_bytes(),
        unit_bytes: volume.unit_bytes(),
        read_only: volume.read_only(),
    };
    let (ask, asked) = RingBuffer::new(QUEUE_LENGTH);
    let (answer, answered) = RingBuffer::new(QUEUE_LENGTH);
    let (extents, extents_asked) = mpsc::channel();
    let own = Arc::new(Bell::new()?);
    let under_way = Arc::new(AtomicUsize::new(0));
    let questions = (extents, Arc::clone(&under_way));
    let remote = RemoteVolume::new(shape, ask, answered, questions, Arc::clone(&own), Arc::clone(bell));
    Ok((remote, Landing::new(asked, answer, extents_asked, under_way, own)))
}

#[cfg(test)]
mod tests;
