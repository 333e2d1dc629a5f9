//! Sessions of an array that is damaged beyond what the code tolerates: reads may fail, but must not lie.

use super::{Kind, Session};
use crate::oracle::SECTOR;
use crate::violation;
use crate::violation::Violation;
use array::EngineError;
use block::{Lcn, Random as _};
use format::CheckpointKind;

/// Stretches of lost chunks that are rewritten.
const REWRITTEN_MAX: usize = 8;

impl Session<'_> {
    /// A request failed, and may. What could not be read is listed as lost.
    pub(super) fn judge_ruined(&mut self, kind: Kind, error: EngineError) -> Result<(), Violation> {
        self.errors += 1;
        if let (Kind::Read { .. }, EngineError::Unreadable { lcn }) = (kind, error) {
            self.unreadable.insert(lcn.get());
            if !self.array.engine_ref().losses().chunks.contains(lcn) {
                return Err(violation!("chunk {lcn} could not be read, and is not listed as lost"));
            }
        }
        Ok(())
    }

    fn chunk_count(&self) -> u64 {
        let chunk = self.array.engine_ref().store().config.geometry.chunk_bytes() / SECTOR;
        (self.machine.oracle.sector_count() / chunk) as u64
    }

    fn is_listed(&self, lcn: u64) -> bool {
        self.array.engine_ref().losses().chunks.contains(Lcn::new(lcn))
    }

    /// Reads the whole volume, chunk by chunk; how many chunks could not be read. Those and no others are
    /// listed as lost then.
    pub fn read_ruined(&mut self) -> Result<u64, Violation> {
        self.unreadable.clear();
        let sectors = self.machine.oracle.sector_count() as u64;
        let chunk = self.array.engine_ref().store().config.geometry.chunk_bytes() as u64 / SECTOR as u64;
        let before = self.errors;
        let mut first = 0;
        while first < sectors {
            let count = chunk.min(sectors - first);
            if self.requests.len() < 16 && self.submit_read(first, count, false) {
                first += count;
            } else {
                self.turn()?;
            }
        }
        self.drain()?;
        let chunks = self.chunk_count();
        if let Some(lcn) = (0..chunks).find(|lcn| self.is_listed(*lcn) && !self.unreadable.contains(lcn)) {
            return Err(violation!("chunk {lcn} is listed as lost, and was read"));
        }
        Ok(self.errors - before)
    }

    /// Rewrites or discards some of what is listed as lost, in whole stripes; it is not lost any more then.
    pub fn rewrite_lost(&mut self) -> Result<(), Violation> {
        let geometry = self.array.engine_ref().store().config.geometry;
        let (width, chunk) = (geometry.data_count() as u64, geometry.chunk_bytes() as u64 / SECTOR as u64);
        let listed = self.array.engine_ref().losses();
        let stripes: Vec<u64> =
            listed.chunks.stretches().take(REWRITTEN_MAX).map(|(first, _)| first / width).collect();
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
        let chunks = self.chunk_count();
        let listed: Vec<u64> = (0..chunks).filter(|&lcn| self.is_listed(lcn)).collect();
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
        let report = self.array.engine_ref().last_report();
        Ok(self.errors == before && report.completed && report.lost == 0 && report.code_mismatches == 0)
    }

    /// Whether the last scrub came to its end.
    pub fn was_scrubbed(&self) -> bool {
        self.array.engine_ref().last_report().completed
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
