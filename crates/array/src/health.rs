//! The state of the members, and what the array promises in that state.

mod missed;

use crate::away::Away;
use crate::fault::{FailCause, OpFault};
use crate::planted::{Planted, planted};
use block::{ChunkAddr, ChunkIndex, DevIndex};
use format::{ArrayConfig, FaultRecord, MemberEntry, MemberState};

/// Errors of one member since assembly.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemberErrors {
    /// Reads the device failed.
    pub read: u64,
    /// Writes and flushes the device failed; each failed the device.
    pub write: u64,
    /// Chunks and metadata blocks whose content did not match its checksum.
    pub checksum: u64,
    /// Chunks rewritten from their cover, and metadata blocks written anew.
    pub healed: u64,
}

impl MemberErrors {
    /// With those that another shard of the array met on the same member.
    pub fn and(self, other: Self) -> Self {
        Self {
            read: self.read + other.read,
            write: self.write + other.write,
            checksum: self.checksum + other.checksum,
            healed: self.healed + other.healed,
        }
    }
}

/// One member.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its state, as the superblocks say.
    pub state: MemberState,
    /// Changes with every replacement.
    pub serial: u32,
    /// What went wrong on the device that holds the place now.
    pub errors: MemberErrors,
    /// Since when that counts, in seconds since 1970-01-01 UTC; 0 = since the array was created.
    pub counted_since_unix_s: u32,
    /// The last operation that the device did not carry out, since assembly began or since it took the place.
    pub last_fault: Option<OpFault>,
    /// Why it went out of service, if that was since assembly began.
    pub failed: Option<FailCause>,
    /// While rebuilding: which chunks hold what they should (a bit each).
    fresh: Vec<u64>,
    /// While rebuilding: code words, from the first on, of which it durably holds its part.
    rebuilt: u64,
    /// What it has missed, if that is known of a member out of service; or missed before it came back.
    away: Option<Away>,
}

/// What the array as a whole can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArrayState {
    /// Every member works.
    Healthy,
    /// Members are missing or being rebuilt; nothing is lost.
    Degraded,
    /// More members are missing than the code tolerates, or part of the table cannot be had: no writes, and
    /// only what is readable can be read.
    Failed,
}

/// All members.
pub struct Health {
    members: Vec<Member>,
    /// Members that hold nothing usable, or not everything yet: asked in every turn, changed almost never.
    missing: usize,
    main_count: usize,
    parity_count: usize,
    /// A page of the table cannot be had.
    page_lost: bool,
    /// Grows with every change; the superblock with the highest one is right.
    pub config_seq: u64,
}

impl Health {
    /// The members as a superblock lists them.
    pub fn new(config: &ArrayConfig, entries: &[MemberEntry], config_seq: u64) -> Self {
        let members = entries
            .iter()
            .map(|e| Member {
                state: e.state,
                serial: e.serial,
                errors: MemberErrors::default(),
                counted_since_unix_s: 0,
                last_fault: None,
                failed: None,
                fresh: Vec::new(),
                rebuilt: 0,
                away: None,
            })
            .collect();
        let mut health = Self {
            members,
            missing: 0,
            main_count: config.geometry.device_count(),
            parity_count: config.geometry.parity_count(),
            page_lost: false,
            config_seq,
        };
        for index in 0..health.members.len() {
            if health.members[index].state == MemberState::Rebuilding {
                health.start_rebuild(DevIndex::new(index as u16), config);
            }
        }
        health.count_missing();
        health
    }

    /// With what the devices' own superblocks remember of their errors.
    pub fn remembering(mut self, faults: &[FaultRecord]) -> Self {
        for (member, faults) in self.members.iter_mut().zip(faults) {
            member.errors = MemberErrors {
                read: faults.unread.into(),
                write: 0,
                checksum: faults.wrong.into(),
                healed: faults.repaired.into(),
            };
            member.counted_since_unix_s = faults.since_unix_s;
        }
        self
    }

    /// With how far the rebuilds of members were when the array was last in service, as their own superblocks
    /// say.
    pub fn resuming(mut self, rebuilt: &[u64]) -> Self {
        for (member, &rebuilt) in self.members.iter_mut().zip(rebuilt).take(self.main_count) {
            if member.state == MemberState::Rebuilding {
                member.rebuilt = rebuilt;
            }
        }
        self
    }

    /// Rebuilds begin with the first code word after all; `false` if they would have.
    pub fn forget_rebuilt(&mut self) -> bool {
        let any = self.members.iter().any(|member| member.rebuilt > 0);
        self.members.iter_mut().for_each(|member| member.rebuilt = 0);
        any
    }

    /// Of so many code words, from the first on, a member being rebuilt durably holds its part.
    pub fn rebuilt(&self, dev: DevIndex) -> u64 {
        self.members[dev.index()].rebuilt
    }

    /// A member being rebuilt durably holds its part of all code words before `end`.
    pub fn note_rebuilt(&mut self, dev: DevIndex, end: u64) {
        self.members[dev.index()].rebuilt = end;
    }

    /// Whether a member being rebuilt held its part of a code word when that was last noted.
    pub fn holds_word(&self, index: u64) -> bool {
        self.missing > 0 && self.members.iter().any(|member| member.rebuilt > index)
    }

    /// What a member's superblock is to remember of its errors.
    pub fn fault_record(&self, dev: DevIndex) -> FaultRecord {
        let Member { errors, counted_since_unix_s, .. } = self.members[dev.index()];
        let least = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        FaultRecord {
            wrong: least(errors.checksum),
            repaired: least(errors.healed),
            unread: least(errors.read),
            since_unix_s: counted_since_unix_s,
        }
    }

    /// Counts a member's errors from now on.
    pub fn clear_errors(&mut self, dev: DevIndex, now_unix_s: u32) {
        let member = &mut self.members[dev.index()];
        (member.errors, member.counted_since_unix_s) = (MemberErrors::default(), now_unix_s);
    }

    /// All members: the main devices, then the log devices.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The entries for a superblock.
    pub fn entries(&self) -> Vec<MemberEntry> {
        self.members.iter().map(|m| MemberEntry { serial: m.serial, state: m.state }).collect()
    }

    /// Counters of a member.
    pub fn errors_mut(&mut self, dev: DevIndex) -> &mut MemberErrors {
        &mut self.members[dev.index()].errors
    }

    /// The state of a member.
    pub fn state(&self, dev: DevIndex) -> MemberState {
        self.members[dev.index()].state
    }

    /// Whether writes go to the member.
    pub fn is_writable(&self, dev: DevIndex) -> bool {
        match self.state(dev) {
            MemberState::Healthy | MemberState::Rebuilding => true,
            MemberState::Failed | MemberState::Absent => false,
        }
    }

    /// Whether a chunk can be read from its device.
    pub fn is_readable(&self, addr: ChunkAddr) -> bool {
        let member = &self.members[addr.dev.index()];
        let is_fresh = || {
            let chunk = addr.chunk.get() as usize;
            member.fresh.get(chunk / 64).is_some_and(|bits| bits >> (chunk % 64) & 1 == 1)
        };
        // What is asked of each read is mostly this.
        member.state == MemberState::Healthy
            || member.state == MemberState::Rebuilding && (planted(Planted::TrustReplacement) || is_fresh())
    }

    /// A chunk of a rebuilding member now holds what it should.
    pub fn mark_fresh(&mut self, addr: ChunkAddr) {
        let member = &mut self.members[addr.dev.index()];
        if member.state == MemberState::Rebuilding {
            member.fresh[addr.chunk.get() as usize / 64] |= 1 << (addr.chunk.get() % 64);
        }
    }

    /// Whether `dev` is being rebuilt.
    pub fn is_rebuilding(&self, dev: DevIndex) -> bool {
        self.state(dev) == MemberState::Rebuilding
    }

    /// The member's device did not carry out an operation.
    pub fn note_fault(&mut self, dev: DevIndex, fault: OpFault) {
        self.members[dev.index()].last_fault = Some(fault);
    }

    /// The last operation that the member's device did not carry out.
    pub fn last_fault(&self, dev: DevIndex) -> Option<OpFault> {
        self.members[dev.index()].last_fault
    }

    /// The member failed; `false` if that was known.
    pub fn fail(&mut self, dev: DevIndex, cause: FailCause) -> bool {
        if !self.is_writable(dev) {
            return false;
        }
        let member = &mut self.members[dev.index()];
        member.state = MemberState::Failed;
        member.failed = Some(cause);
        (member.fresh, member.away) = (Vec::new(), None);
        if !planted(Planted::ReplacementGoesOn) {
            member.rebuilt = 0;
        }
        self.count_missing();
        self.config_seq += 1;
        true
    }

    /// A replacement took the member's place: nothing on it is valid yet.
    pub fn start_rebuild(&mut self, dev: DevIndex, config: &ArrayConfig) {
        let chunks = if dev.index() < self.main_count { config.chunks_per_device } else { config.log_blocks };
        let member = &mut self.members[dev.index()];
        member.state = MemberState::Rebuilding;
        member.fresh = vec![0; (chunks as usize + 1).div_ceil(64)];
        member.away = None;
        self.count_missing();
    }

    /// Gives a replaced member its new serial.
    pub fn renew(&mut self, dev: DevIndex, serial: u32) {
        let member = &mut self.members[dev.index()];
        (member.serial, member.last_fault, member.failed) = (serial, None, None);
        self.config_seq += 1;
    }

    /// No device holds the place any more, and none gets the number that it has now; it is above `before`.
    pub fn disown(&mut self, dev: DevIndex, before: u32) {
        let highest = self.members.iter().map(|member| member.serial).fold(before, u32::max);
        self.members[dev.index()].serial = highest.saturating_add(1);
    }

    /// The rebuild is complete.
    pub fn finish_rebuild(&mut self, dev: DevIndex) {
        let member = &mut self.members[dev.index()];
        member.state = MemberState::Healthy;
        (member.fresh, member.rebuilt, member.away) = (Vec::new(), 0, None);
        self.count_missing();
        self.config_seq += 1;
    }

    /// Members that hold nothing usable, or not everything yet.
    pub fn missing_count(&self) -> usize {
        self.missing
    }

    /// The state of a member has changed.
    fn count_missing(&mut self) {
        self.missing = self.members.iter().filter(|m| m.state != MemberState::Healthy).count();
    }

    /// Members that may be missing without loss.
    pub fn tolerated(&self) -> usize {
        self.parity_count
    }

    /// Members lost altogether.
    pub fn failed_count(&self) -> usize {
        let failed = |m: &&Member| matches!(m.state, MemberState::Failed | MemberState::Absent);
        self.members.iter().filter(failed).count()
    }

    /// Part of the table cannot be had: the array takes no writes. `false` if that was known.
    pub fn lose_page(&mut self) -> bool {
        !std::mem::replace(&mut self.page_lost, true)
    }

    /// What the array can do now.
    pub fn array_state(&self) -> ArrayState {
        match self.missing_count() {
            _ if self.page_lost => ArrayState::Failed,
            0 => ArrayState::Healthy,
            missing if missing <= self.parity_count => ArrayState::Degraded,
            _ => ArrayState::Failed,
        }
    }

    /// Members that take writes, main devices first.
    pub fn writable(&self) -> impl Iterator<Item = DevIndex> + '_ {
        (0..self.members.len() as u16).map(DevIndex::new).filter(|&dev| self.is_writable(dev))
    }

    /// Main devices that take writes.
    pub fn writable_main(&self) -> impl Iterator<Item = DevIndex> + '_ {
        self.writable().filter(|dev| dev.index() < self.main_count)
    }

    /// Main devices that are being rebuilt.
    pub fn rebuilding_main(&self) -> impl Iterator<Item = DevIndex> + '_ {
        self.writable_main().filter(|&dev| self.is_rebuilding(dev))
    }

    /// Log devices that take writes.
    pub fn writable_logs(&self) -> impl Iterator<Item = DevIndex> + '_ {
        self.writable().filter(|dev| dev.index() >= self.main_count)
    }

    /// A log block range is fresh.
    pub fn mark_fresh_blocks(&mut self, dev: DevIndex, first: ChunkIndex, count: u32) {
        if self.is_rebuilding(dev) {
            (0..count).for_each(|i| self.mark_fresh(ChunkAddr::new(dev, ChunkIndex::new(first.get() + i))));
        }
    }
}
