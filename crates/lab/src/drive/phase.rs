//! One phase of a run: its requests, what they came to, and what they did to the devices.

use super::driver::{Driver, Outcome, Pace};
use super::progress::Progress;
use crate::failure::Failure;
use crate::number::float;
use crate::subject::choices::CommitEvery;
use crate::subject::snapshot::{Snapshot, since};
use crate::subject::target::Target;
use format::CheckpointKind;
use trace::{Op, Request};

/// Chunks that a fill or the final reading back moves at once, at least.
const BULK_BYTES: u64 = 1 << 20;

/// What a phase (the fill, or the replay) came to.
pub struct Phase {
    /// What the queue did.
    pub outcome: Outcome,
    /// What devices and engine did, where that is known.
    pub counted: Option<Snapshot>,
    /// The checkpoint behind it: its kind, and the bytes of metadata it wrote to each device; no part of
    /// `counted`.
    pub checkpoint: Option<(CheckpointKind, Snapshot)>,
    /// The commit at the end: its time and what it did; part of `counted`.
    pub commit: Option<(f64, Snapshot)>,
    /// Counters when it began.
    begun: Option<Snapshot>,
}

/// One phase, with what it did to the devices.
pub fn phase(
    driver: &mut Driver<'_>,
    requests: impl IntoIterator<Item = Request>,
    pace: Pace,
    commit: CommitEvery,
    progress: &mut Progress<'_>,
) -> Result<Phase, Failure> {
    // Counted from here: what was written before, such as a fill, brings no commit nearer.
    driver.target().commit_every(commit.writes());
    let before = driver.target().snapshot();
    let outcome = driver.run(requests, pace, progress)?;
    let commit = if commit == CommitEvery::End {
        let (start_ns, before) = (driver.now_ns(), driver.target().snapshot());
        driver.target().commit()?;
        let seconds = (driver.now_ns() - start_ns) as f64 / 1e9;
        difference(driver, before.as_ref()).map(|counted| (seconds, counted))
    } else {
        None
    };
    let counted = difference(driver, before.as_ref());
    Ok(Phase { outcome, counted, checkpoint: None, commit, begun: before })
}

/// Has something done behind a phase that is part of it, and of which the last is a commit if it says so.
pub fn extend(
    driver: &mut Driver<'_>,
    phase: &mut Phase,
    more: impl FnOnce(&mut dyn Target) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let (start_ns, before) = (driver.now_ns(), driver.target().snapshot());
    if more(driver.target())? {
        let seconds = float(driver.now_ns() - start_ns) / 1e9;
        phase.commit = difference(driver, before.as_ref()).map(|counted| (seconds, counted));
    }
    phase.counted = difference(driver, phase.begun.as_ref());
    Ok(())
}

/// Has a checkpoint written behind a phase.
pub fn checkpoint(driver: &mut Driver<'_>, phase: &mut Phase, kind: CheckpointKind) -> Result<(), Failure> {
    let before = driver.target().snapshot();
    driver.target().checkpoint(kind)?;
    phase.checkpoint = difference(driver, before.as_ref()).map(|counted| (kind, counted));
    Ok(())
}

fn difference(driver: &mut Driver<'_>, before: Option<&Snapshot>) -> Option<Snapshot> {
    Some(since(&driver.target().snapshot()?, before?))
}

/// What the volume must hold for the fill to be whole stripes.
pub fn fill_bytes(target: &dyn Target, footprint_bytes: u64) -> u64 {
    let stripe = target
        .config()
        .map_or(1, |config| (config.geometry.data_count() * config.geometry.chunk_bytes()) as u64);
    footprint_bytes.next_multiple_of(stripe).min(target.volume_bytes())
}

/// Bytes of a request of the fill: whole stripes, if the stripe is known, or what is whole stripes in most
/// arrays.
pub fn bulk_bytes(target: &dyn Target, chunk_bytes: u64) -> u64 {
    let columns = target.config().map_or(12, |config| config.geometry.data_count()) as u64;
    (columns * chunk_bytes).max(BULK_BYTES / (columns * chunk_bytes) * (columns * chunk_bytes))
}

/// The writes of a fill.
pub fn fill_requests(covered: u64, bulk: u64) -> Result<impl Iterator<Item = Request>, Failure> {
    Ok((0..covered).step_by(usize::try_from(bulk)?).map(move |offset_bytes| Request {
        time_us: 0,
        dev: 0,
        op: Op::Write,
        offset_bytes,
        length_bytes: bulk.min(covered - offset_bytes),
    }))
}
