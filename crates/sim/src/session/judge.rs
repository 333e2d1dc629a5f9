//! Every answer judged.

use super::{Kind, Request, Session};
use crate::machine::Hurt;
use crate::oracle::{SECTOR, Version, Written};
use crate::violation;
use crate::violation::Violation;
use array::EngineError;
use format::{Consistency, MemberState};
use std::collections::BTreeSet;
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
                Kind::Rebuild { dev },
                Err(error @ (EngineError::MemberInService { .. } | EngineError::MemberNotFree { .. })),
            ) if self.fleet.is_several() => {
                Err(violation!("device {dev} was put in place too early: {error}"))
            }
            (
                Kind::Scrub | Kind::Rebuild { .. },
                Err(
                    EngineError::Preempted
                    | EngineError::GivenUp
                    | EngineError::Stopping
                    | EngineError::Busy
                    | EngineError::MemberInService { .. }
                    | EngineError::MemberNotFree { .. }
                    | EngineError::NotBack { .. },
                ),
            ) => {
                self.errors += 1;
                Ok(())
            }
            (Kind::Scrub, Ok(())) => {
                self.machine.scrubbed(&self.fleet, &request.patients);
                Ok(())
            }
            (Kind::Commit | Kind::Checkpoint | Kind::Clean, Ok(())) => Ok(()),
            (Kind::Commit, Err(EngineError::GivenUp | EngineError::Stopping)) if self.steered.commits => {
                Ok(())
            }
            (_, Err(error)) if self.machine.ruined => self.judge_ruined(request, error),
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

    /// Every member that is healthy now and was not hurt again is above suspicion; but for one whose own
    /// rebuild is still to be answered: a shard may not have told the others that it is healthy, while this
    /// answer is to the rebuild of the device that had its place before.
    fn rebuilt(&mut self, dev: u16) {
        self.machine.say(|| format!("rebuild answered ({dev})"));
        let open = self.requests.values().filter_map(|request| {
            let Kind::Rebuild { dev } = request.kind else { return None };
            Some(dev)
        });
        let open: BTreeSet<u16> = open.collect();
        for dev in (0..self.machine.member_count()).filter(|dev| !open.contains(dev)) {
            let standing = self.machine.standing[usize::from(dev)];
            let healthy = self.fleet.state(dev) == MemberState::Healthy;
            self.machine.standing[usize::from(dev)].replacement &= !healthy;
            if healthy && std::mem::take(&mut self.machine.standing[usize::from(dev)].returned) {
                self.machine.outcome.returned += 1;
            }
            if healthy && !standing.tainted && !standing.lost {
                self.machine.suspects.remove(&dev);
                self.machine.standing[usize::from(dev)].excluded = 0;
                if standing.replacement {
                    self.machine.standing[usize::from(dev)].hurt = Hurt::Nothing;
                }
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
        let chunk = self.fleet.chunk_sectors();
        let config = self.machine.swarm.config;
        let guessed = config.scheme.is_in_place() && config.consistency == Consistency::Resync;
        let mut parts = request.parts.iter();
        let mut part = parts.next();
        for lba in first..first + count {
            while part.is_some_and(|part| lba >= part.first + part.count) {
                part = parts.next();
            }
            let Some(part) = part else { return Err(violation!("sector {lba} was not read")) };
            let (slot, within) = part.slot_of(lba, chunk);
            let bytes = &self.fleet.pool(part.at).bytes(slot)[within..][..SECTOR];
            let result = if self.machine.ruined {
                self.machine.oracle.check_ruined(lba, bytes, self.machine.forced, guessed)
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
                violation!("{when}, {wrong} (chunk {})", lba / chunk)
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
        let sectors = config.geometry.data_count() * config.geometry.chunk_bytes() / SECTOR;
        let stripe = u64::try_from(sectors).unwrap_or(u64::MAX);
        torn(self.machine.oracle.torn(|written| stripes_of(written, stripe)), "stripe")
    }

    /// Aligned blocks of a write are there as a whole or not at all, up to the size that the array told.
    /// Schemes that write in place promise it of requests that are such a block.
    pub(super) fn check_torn(&mut self) -> Result<(), Violation> {
        self.check_torn_stripes()?;
        let config = self.machine.swarm.config;
        let is_whole = config.scheme.is_in_place();
        let chunk = u64::try_from(config.geometry.chunk_bytes() / SECTOR).unwrap_or(u64::MAX);
        let (count, here) = self.machine.oracle.tearable(chunk, |written| blocks_of(written, is_whole));
        self.machine.outcome.tearable += count;
        self.machine.outcome.untorn += here;
        torn(self.machine.oracle.torn(|written| blocks_of(written, is_whole)), "block")
    }
}

/// What a request covers of each stripe.
fn stripes_of(written: Written, stripe: u64) -> impl Iterator<Item = Range<u64>> {
    let Range { start, end } = written.sectors;
    (start / stripe..end.div_ceil(stripe)).map(move |i| start.max(i * stripe)..end.min((i + 1) * stripe))
}

/// The largest aligned blocks of a write that are not larger than what was promised; with `is_whole`, all of
/// it or nothing.
fn blocks_of(written: Written, is_whole: bool) -> impl Iterator<Item = Range<u64>> {
    let Written { zero, sectors, untorn, .. } = written;
    let all = sectors.end - sectors.start;
    let mut at = if zero || untorn == 0 { sectors.end } else { sectors.start };
    let blocks = std::iter::from_fn(move || {
        let left = sectors.end.checked_sub(at).filter(|&left| left > 0)?;
        let size = untorn.min(1 << left.ilog2()).min(1 << at.trailing_zeros().min(62));
        at += size;
        Some(at - size..at)
    });
    blocks.filter(move |block| !is_whole || block.end - block.start == all)
}

fn torn(found: Option<(Version, u64, u64)>, what: &str) -> Result<(), Violation> {
    found.map_or(Ok(()), |(version, is, is_not)| {
        Err(violation!(
            "version {version} survived in sector {is} and not in sector {is_not} of the same {what}"
        ))
    })
}
