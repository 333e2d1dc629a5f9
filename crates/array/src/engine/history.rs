//! What the superblocks remember for the operator: the array's name, the last scrub, and what each device did
//! wrong. No decision depends on it.

use super::report::MaintenanceReport;
use super::{Core, EngineError};
use crate::planted::{Planted, planted};
use block::DevIndex;
use format::ScrubRecord;

/// How a scrub ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ScrubEnd {
    /// Everything was looked at.
    Completed,
    /// A rebuild or a stop came first.
    GivenUp,
}

impl Core {
    /// Tells the engine what the wall clock shows now, in seconds since 1970-01-01 UTC.
    pub(super) fn set_unix_time(&mut self, unix_s: u64) {
        self.board.members.unix_base_s = unix_s.saturating_sub(self.now_ns / 1_000_000_000);
    }

    /// What the wall clock shows, or 0 if the engine was never told.
    pub(super) fn unix_s(&self) -> u64 {
        if self.board.members.unix_base_s == 0 {
            0
        } else {
            self.board.members.unix_base_s + self.now_ns / 1_000_000_000
        }
    }

    /// When the array was created, in seconds since 1970-01-01 UTC.
    pub(super) fn created_unix_s(&self) -> u64 {
        self.board.members.superblock.created_unix_s
    }

    /// What the last scrub found, if there ever was one.
    pub(super) fn last_scrub(&self) -> Option<ScrubRecord> {
        Some(self.board.members.superblock.scrub).filter(|record| record.ended_unix_s > 0)
    }

    /// Notes how a scrub that began at `started_ns` ended. It is on disk with the superblocks that are
    /// written next; after a whole scrub that is at once.
    pub(super) fn record_scrub(&mut self, end: ScrubEnd, found: &MaintenanceReport, started_ns: u64) {
        let ended_unix_s = self.unix_s();
        if ended_unix_s == 0 || planted(Planted::ScrubUnflushed) {
            return;
        }
        let least = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        self.board.members.superblock.scrub = ScrubRecord {
            ended_unix_s,
            seconds: least(self.now_ns.saturating_sub(started_ns) / 1_000_000_000),
            metadata_repaired: least(found.metadata_repaired),
            chunks_repaired: found.chunks_repaired,
            errors_left: least(found.errors_left()),
            completed: u32::from(end == ScrubEnd::Completed),
        };
        if end == ScrubEnd::Completed {
            self.publish_history();
        }
    }

    /// Forgets what one member, or every one, did wrong so far, and with all of them that the array was
    /// started by force; answered when that is on disk.
    pub(super) fn clear_errors(&mut self, tag: u64, dev: Option<DevIndex>) {
        let now = u32::try_from(self.unix_s()).unwrap_or(u32::MAX);
        for index in 0..self.health.members().len() {
            let member = DevIndex::new(u16::try_from(index).expect("a member has an index"));
            if dev.is_none_or(|dev| dev == member) {
                self.health.clear_errors(member, now);
            }
        }
        let losses = &mut self.board.members.superblock.losses;
        let before = *losses;
        losses.forced = before.forced.filter(|_| dev.is_some());
        let result = if self.publish_history() { Ok(()) } else { Err(EngineError::ArrayFailed) };
        if result.is_err() {
            self.board.members.superblock.losses = before;
        }
        self.finish(super::Done { tag, result });
    }

    /// Gives the array another name; answered when it is on every working member. A power cut meanwhile
    /// leaves the old name or the new one: the superblock that was written last counts.
    pub(super) fn rename(&mut self, tag: u64, name: &str) {
        let before = std::mem::replace(&mut self.board.members.superblock.name, name.to_owned());
        let result = if self.publish_history() { Ok(()) } else { Err(EngineError::ArrayFailed) };
        if result.is_err() {
            self.board.members.superblock.name = before;
        }
        self.finish(super::Done { tag, result });
    }

    /// Writes the superblocks for what they remember alone; `false` if the array writes nothing any more.
    /// Answers wait for it.
    fn publish_history(&mut self) -> bool {
        let writes = self.accepts_writes();
        if writes {
            self.health.config_seq += 1;
            self.publish_members();
        }
        writes
    }
}
