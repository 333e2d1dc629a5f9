//! What an array in this process has counted, at one moment and between two.

use crate::subject::gc::gc_since;
use array::{EngineStats, GcStats};
use block::Stream;
use device::DeviceCounters;

/// Counters at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Of each member, main devices first.
    pub devices: Vec<DeviceCounters>,
    /// Of the engine.
    pub stats: EngineStats,
    /// Of garbage collection.
    pub gc: GcStats,
}

/// The difference of two snapshots.
pub fn since(now: &Snapshot, then: &Snapshot) -> Snapshot {
    let devices = now.devices.iter().zip(&then.devices).map(|(now, then)| now.since(then)).collect();
    let (a, b) = (now.stats, then.stats);
    let mut stats = a;
    stats.user_chunks_written -= b.user_chunks_written;
    stats.user_chunks_read -= b.user_chunks_read;
    stats.requests -= b.requests;
    stats.log_stripes -= b.log_stripes;
    stats.log_members -= b.log_members;
    stats.full_stripes -= b.full_stripes;
    stats.replaced_stripes -= b.replaced_stripes;
    stats.short_stripes -= b.short_stripes;
    stats.stripes_committed -= b.stripes_committed;
    stats.commits -= b.commits;
    stats.log_commits -= b.log_commits;
    stats.checkpoints -= b.checkpoints;
    stats.flushes -= b.flushes;
    stats.covers -= b.covers;
    stats.lost -= b.lost;
    stats.cache.hits -= b.cache.hits;
    stats.cache.absorbed -= b.cache.absorbed;
    stats.cache.stripes_found -= b.cache.stripes_found;
    stats.cache.stripes_not_found -= b.cache.stripes_not_found;
    Snapshot { devices, stats, gc: gc_since(now.gc, then.gc) }
}

/// The copies that a scheme with a journal writes to the main devices are metadata: log chunks are what log
/// devices hold.
pub fn copies_as_metadata(mut snapshot: Snapshot, main_count: usize) -> Snapshot {
    let (log, metadata) = (Stream::Log.index(), Stream::Metadata.index());
    for device in snapshot.devices.iter_mut().take(main_count) {
        for counts in
            [&mut device.read_ops, &mut device.read_bytes, &mut device.write_ops, &mut device.write_bytes]
        {
            counts[metadata] += std::mem::take(&mut counts[log]);
        }
    }
    snapshot
}
