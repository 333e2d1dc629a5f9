//! Sessions of an array that is damaged beyond what the code tolerates: reads may fail, but must not lie.

use super::{Kind, Session};
use crate::machine::Violation;
use crate::oracle::SECTOR;
use format::CheckpointKind;

impl Session<'_> {
    /// Reads the whole volume, chunk by chunk; how many chunks could not be read.
    pub fn read_ruined(&mut self) -> Result<u64, Violation> {
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
        Ok(self.errors - before)
    }

    /// Scrubs; whether it came to its end and found nothing lost.
    pub fn scrub_ruined(&mut self) -> Result<bool, Violation> {
        let before = self.errors;
        self.control(Kind::Scrub, |engine, tag| engine.scrub(tag, 0));
        self.drain()?;
        let report = self.array.engine_ref().last_report();
        Ok(self.errors == before && report.completed && report.lost == 0 && report.code_mismatches == 0)
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
