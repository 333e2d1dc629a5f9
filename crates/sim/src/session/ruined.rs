//! Sessions of an array that is damaged beyond what the code tolerates: reads may fail, but must not lie.

use super::{Kind, Request, Session};
use crate::violation;
use crate::violation::Violation;
use array::{Engine, EngineError};
use block::{Lcn, Random as _, SECTOR_BYTES};
use format::CheckpointKind;

/// Stretches of lost chunks that are rewritten.
const REWRITTEN_MAX: usize = 8;

impl Session<'_> {
    /// A request failed, and may. What could not be read is listed as lost.
    pub(super) fn judge_ruined(&mut self, request: &Request, error: EngineError) -> Result<(), Violation> {
        self.errors += 1;
        if let (Kind::Read { .. }, EngineError::Unreadable { lcn }, [part]) =
            (request.kind, error, &request.parts[..])
        {
            self.unreadable.insert(self.chunk_at(part.at, lcn));
            if !self.fleet.engine_ref(part.at).losses().chunks.contains(lcn) {
                return Err(violation!("chunk {lcn} could not be read, and is not listed as lost"));
            }
        }
        Ok(())
    }

    /// The number in the volume of a shard's chunk.
    fn chunk_at(&self, at: usize, lcn: Lcn) -> u64 {
        let chunk = self.fleet.chunk_sectors();
        self.fleet.sector(at, lcn.get() * chunk * SECTOR_BYTES) / chunk
    }

    /// Chunks of the volume of which the shard runs.
    fn chunks(&self) -> impl Iterator<Item = u64> + use<'_> {
        let chunk = self.fleet.chunk_sectors();
        let count = self.machine.oracle.sector_count() as u64 / chunk;
        (0..count).filter(move |lcn| self.fleet.find(lcn * chunk).is_some())
    }

    fn is_listed(&self, lcn: u64) -> bool {
        let chunk = self.fleet.chunk_sectors();
        self.fleet.find(lcn * chunk).is_some_and(|(at, offset_bytes)| {
            let lcn = Lcn::new(offset_bytes / (chunk * SECTOR_BYTES));
            self.fleet.engine_ref(at).losses().chunks.contains(lcn)
        })
    }

    /// Reads the whole volume, chunk by chunk; how many chunks could not be read. Those and no others are
    /// listed as lost then.
    pub fn read_ruined(&mut self) -> Result<u64, Violation> {
        self.unreadable.clear();
        let chunk = self.fleet.chunk_sectors();
        let before = self.errors;
        let chunks: Vec<u64> = self.chunks().collect();
        for &lcn in &chunks {
            while self.requests.len() >= 16 || !self.submit_read(lcn * chunk, chunk, false) {
                self.turn()?;
            }
        }
        self.drain()?;
        let listed = |lcn: &&u64| self.is_listed(**lcn) && !self.unreadable.contains(lcn);
        if let Some(lcn) = chunks.iter().find(listed) {
            return Err(violation!("chunk {lcn} is listed as lost, and was read"));
        }
        Ok(self.errors - before)
    }

    /// Rewrites or discards some of what is listed as lost, in whole stripes; it is not lost any more then.
    pub fn rewrite_lost(&mut self) -> Result<(), Violation> {
        let geometry = self.machine.swarm.config.geometry;
        let (width, chunk) = (geometry.data_count() as u64, self.fleet.chunk_sectors());
        let count = self.machine.oracle.sector_count() as u64 / chunk;
        let mut stripes: Vec<u64> = Vec::new();
        for at in 0..self.fleet.len() {
            let listed = self.fleet.engine_ref(at).losses().chunks.stretches();
            let firsts =
                listed.map(|(first, _)| self.chunk_at(at, Lcn::new(first))).filter(|&lcn| lcn < count);
            stripes.extend(firsts.take(REWRITTEN_MAX).map(|lcn| lcn / width));
        }
        let before = self.errors;
        let mut left = stripes.clone();
        while let Some(&stripe) = left.last() {
            let (first, count) = (stripe * width * chunk, width * chunk);
            let write = self.machine.rng.chance(1, 2);
            let room = self.requests.len() < 16;
            if room && (if write { self.submit_write(first, count) } else { self.submit_zero(first, count) })
            {
                left.pop();
            } else {
                self.turn()?;
            }
        }
        self.drain()?;
        self.control(Kind::Flush, |engine, tag| engine.flush(tag));
        self.drain()?;
        let mut lcns = stripes.iter().flat_map(|stripe| stripe * width..(stripe + 1) * width);
        match lcns.find(|&lcn| self.is_listed(lcn)) {
            Some(lcn) if self.errors == before => {
                Err(violation!("chunk {lcn} was rewritten, and is listed as lost still"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// What a scrub that has come to its end did not list can be read.
    pub fn expect_listed(&mut self) -> Result<(), Violation> {
        let listed: Vec<u64> = self.chunks().filter(|&lcn| self.is_listed(lcn)).collect();
        self.read_ruined()?;
        match self.unreadable.iter().find(|lcn| listed.binary_search(lcn).is_err()) {
            Some(lcn) => Err(violation!("a scrub did not list chunk {lcn}, which cannot be read")),
            None => Ok(()),
        }
    }

    /// Scrubs; whether it came to its end and found nothing lost.
    pub fn scrub_ruined(&mut self) -> Result<bool, Violation> {
        let before = self.errors;
        self.control(Kind::Scrub, |engine, tag| engine.scrub(tag, 0));
        self.drain()?;
        let whole = self
            .fleet
            .engines()
            .map(Engine::last_report)
            .all(|report| report.completed && report.lost == 0 && report.code_mismatches == 0);
        Ok(self.errors == before && whole)
    }

    /// Whether the last scrub came to its end.
    pub fn was_scrubbed(&self) -> bool {
        self.fleet.engines().all(|engine| engine.last_report().completed)
    }

    /// Stops in order, if the array can.
    pub fn stop_ruined(&mut self) -> Result<bool, Violation> {
        let before = self.errors;
        self.control(Kind::Flush, |engine, tag| engine.flush(tag));
        self.drain()?;
        self.settle()?;
        self.control(Kind::Checkpoint, |engine, tag| {
            engine.write_checkpoint(tag, CheckpointKind::Incremental)
        });
        self.drain()?;
        self.control(Kind::Clean, |engine, tag| engine.publish_clean(tag));
        self.drain()?;
        Ok(self.errors == before)
    }
}
