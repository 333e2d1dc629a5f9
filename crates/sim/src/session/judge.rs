//! Every answer judged.

use super::{Kind, Request, Session};
use crate::oracle::{SECTOR, Version, Written};
use crate::violation;
use crate::violation::Violation;
use array::EngineError;
use format::{Consistency, MemberState};
use std::ops::Range;

impl Session<'_> {
    pub(super) fn judge(
        &mut self,
        request: &Request,
        result: Result<(), EngineError>,
    ) -> Result<(), Violation> {
        match (request.kind, result) {
            (Kind::Write { version, durable }, Ok(())) => {
                let config = self.machine.swarm.config;
                let journaled = config.scheme.is_in_place() && config.consistency == Consistency::Journal;
                let durable =
                    durable || journaled || self.machine.swarm.options.sync == array::SyncPolicy::Always;
                self.machine.oracle.answered(version, durable);
                Ok(())
            }
            (Kind::Read { first, count, anchor }, Ok(())) => self.judge_read(request, first, count, anchor),
            (Kind::Flush, Ok(())) => {
                self.machine.oracle.flushed(request.submitted);
                Ok(())
            }
            (Kind::Rebuild { dev }, Ok(())) => {
                self.rebuilt(dev);
                Ok(())
            }
            (
                Kind::Scrub | Kind::Rebuild { .. },
                Err(
                    EngineError::Preempted
                    | EngineError::GivenUp
                    | EngineError::Stopping
                    | EngineError::Busy
                    | EngineError::MemberInService { .. }
                    | EngineError::MemberNotFree { .. },
                ),
            ) => {
                self.errors += 1;
                Ok(())
            }
            (Kind::Scrub, Ok(())) => {
                self.machine.scrubbed(&self.array, &request.patients);
                Ok(())
            }
            (Kind::Commit | Kind::Checkpoint | Kind::Clean, Ok(())) => Ok(()),
            (kind, Err(error)) if self.machine.ruined => self.judge_ruined(kind, error),
            (
                Kind::Write { .. } | Kind::Flush | Kind::Commit | Kind::Checkpoint,
                Err(EngineError::MemberFull { .. }),
            ) if self.machine.world.look().lacked_room() => Ok(()),
            (Kind::Scrub, Err(EngineError::Unhealed { .. })) if self.machine.world.look().lacked_room() => {
                Ok(())
            }
            (_, Err(_)) if self.machine.world.look().is_blacked_out() => Ok(()),
            (kind, Err(error)) => Err(violation!(
                "{kind:?} failed although no more devices are hurt than the code tolerates: {error}"
            )),
        }
    }

    /// Every member that is healthy now and was not hurt again is above suspicion.
    fn rebuilt(&mut self, dev: u16) {
        self.machine.say(|| format!("rebuild answered ({dev})"));
        for dev in 0..self.machine.member_count() {
            let standing = self.machine.standing[usize::from(dev)];
            let healthy = self.state(dev) == MemberState::Healthy;
            self.machine.standing[usize::from(dev)].replacement &= !healthy;
            if self.state(dev) == MemberState::Healthy && !standing.tainted && !standing.lost {
                self.machine.suspects.remove(&dev);
                self.machine.standing[usize::from(dev)].excluded = false;
                if let Some(retired) = &mut self.machine.retired[usize::from(dev)] {
                    retired.excluded = true;
                }
            }
        }
    }

    fn judge_read(
        &mut self,
        request: &Request,
        first: u64,
        count: u64,
        anchor: bool,
    ) -> Result<(), Violation> {
        let chunk = self.array.engine_ref().store().config.geometry.chunk_bytes() as u64;
        for lba in first..first + count {
            let at = lba * SECTOR as u64;
            let slot = request.slots[(at / chunk - first * SECTOR as u64 / chunk) as usize];
            let bytes = &self.array.engine().pool().bytes(slot)[(at % chunk) as usize..][..SECTOR];
            let result = if self.machine.ruined {
                self.machine.oracle.check_ruined(lba, bytes, self.machine.forced)
            } else if anchor {
                self.machine.oracle.anchor(lba, bytes)
            } else {
                self.machine.oracle.check_read(lba, bytes, request.submitted)
            };
            result.map_err(|wrong| {
                let when = match (self.machine.ruined, anchor) {
                    (true, _) => "after damage beyond the promise",
                    (false, true) => "after a restart",
                    (false, false) => "while running",
                };
                violation!("{when}, {wrong} (chunk {})", at / chunk)
            })?;
        }
        Ok(())
    }

    /// In-place schemes with a journal change a stripe at once: what one request does to it, be it a write or
    /// a discard, is there after a power cut or is not.
    fn check_torn_stripes(&self) -> Result<(), Violation> {
        let config = self.machine.swarm.config;
        if !config.scheme.is_in_place() || config.consistency != Consistency::Journal {
            return Ok(());
        }
        let stripe = (config.geometry.data_count() * config.geometry.chunk_bytes() / SECTOR) as u64;
        torn(self.machine.oracle.torn(|_, lba| Some(lba / stripe)), "stripe")
    }

    /// Aligned blocks of a write are there as a whole or not at all, up to the size that the array tells.
    /// Schemes that write in place promise it of requests that are such a block.
    pub(super) fn check_torn(&mut self) -> Result<(), Violation> {
        self.check_torn_stripes()?;
        let config = self.machine.swarm.config;
        let most = self.array.engine_ref().untorn_bytes() / SECTOR as u64;
        let is_whole = config.scheme.is_in_place();
        let block_of = |written: Written, lba: u64| match written {
            Written { zero: true, .. } => None,
            Written { first, count, .. } => block_of(first..first + count, lba, most, is_whole),
        };
        let chunk = (config.geometry.chunk_bytes() / SECTOR) as u64;
        let (count, here) = self.machine.oracle.tearable(chunk, block_of);
        self.machine.outcome.tearable += count;
        self.machine.outcome.untorn += here;
        torn(self.machine.oracle.torn(block_of), "block")
    }
}

/// The first sector of the largest aligned block of a request that a sector lies in, if that is no larger than
/// `most` sectors; with `is_whole`, if it is all of the request.
fn block_of(sectors: Range<u64>, lba: u64, most: u64, is_whole: bool) -> Option<u64> {
    let sizes = (0..u64::BITS).map(|order| 1u64 << order).take_while(|&size| size <= most);
    let blocks = sizes.map(|size| lba / size * size..lba / size * size + size);
    let inside = |block: &Range<u64>| block.start >= sectors.start && block.end <= sectors.end;
    let largest = blocks.filter(inside).last()?;
    (!is_whole || largest == sectors).then_some(largest.start)
}

fn torn(found: Option<(Version, u64, u64)>, what: &str) -> Result<(), Violation> {
    found.map_or(Ok(()), |(version, is, is_not)| {
        Err(violation!(
            "version {version} survived in sector {is} and not in sector {is_not} of the same {what}"
        ))
    })
}
