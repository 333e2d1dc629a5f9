//! Members that leave, and that come back: what they have missed is in `away`.

use super::job::Job;
use super::maintain::Maintenance;
use super::report::WorkKind;
use super::{Core, EngineError};
use crate::away::{self, Away, NotBack};
use crate::planted::{Planted, planted};
use crate::table::Extent;
use crate::written::each_written;
use block::slab::Key;
use block::{ChunkAddr, DevIndex};
use format::Superblock;

impl Core {
    /// A member has just gone out of service; `before` is what it lacked when its rebuild began.
    pub(super) fn note_left(&mut self, dev: DevIndex, before: Option<Away>) {
        let published = self.board.members.published();
        let left = away::point(self.journal.epoch(), self.journal.nonce(), published);
        let unsure = self.board.flush.unsure();
        self.health.note_left(dev, (left, before), &self.store.config, |missed| unsure.mark(dev, missed));
        self.health.note_pages_of(dev, self.board.checkpoint.settled());
    }

    /// A record of a job was applied: who is out of service does not have what it names.
    #[inline]
    pub(super) fn note_missed(&mut self, key: Key<Job>, record: usize) {
        if self.health.is_any_away() {
            let record = self.jobs.table[key].plan.records.get(record);
            let Self { health, store, .. } = self;
            each_written(store, record, |addr| health.miss(addr));
        }
    }

    /// Why a device cannot come back as member `dev` by what it missed.
    pub(super) fn why_not_back(&self, dev: DevIndex, superblock: &Superblock) -> Option<NotBack> {
        let config = &self.store.config;
        let is_ours = superblock.array == self.journal.array()
            && superblock.dev == dev
            && superblock.config.shard == config.shard;
        if !is_ours {
            return Some(NotBack::Other);
        }
        self.health.check_back(dev, superblock).err()
    }

    /// What a checkpoint must hold so that members that were rebuilt have their share of the metadata, beside
    /// the copies of pages that they lack. One that did not come back may be blank: it cannot go on with the
    /// checkpoints before. One that did holds none of them: [`Core::fail_member`] asks for a full one.
    pub(super) fn extent_for_rebuilt(&self) -> Extent {
        let mut rebuilt = self.health.rebuilding_main();
        if rebuilt.any(|dev| self.health.away(dev).is_none()) { Extent::Unsaved } else { Extent::Changes }
    }

    /// What jobs under way were planned to write they may not write: the member was out of service.
    fn distrust_what_is_planned(&mut self, dev: DevIndex) {
        let mut planned: Vec<ChunkAddr> = Vec::new();
        for job in self.jobs.table.iter() {
            planned.extend(job.plan.writes.iter().map(|write| write.addr));
            for record in job.plan.records.iter() {
                each_written(&self.store, record, |addr| planned.push(addr));
            }
        }
        planned.retain(|addr| addr.dev == dev);
        planned.into_iter().for_each(|addr| self.health.distrust(addr));
    }
}

impl Maintenance {
    /// The device of a member that left is there again, with this superblock, and gets a new serial number:
    /// rebuild what it has missed. Answered when the array is whole again.
    pub(super) fn online(
        &mut self,
        core: &mut Core,
        tag: u64,
        (dev, serial): (DevIndex, u32),
        superblock: &Superblock,
    ) {
        let why_not = core.why_not_back(dev, superblock);
        let why_not = why_not.map(|why| EngineError::NotBack { dev, why });
        if let Some(error) = core.why_not_rebuild(dev).or(why_not) {
            core.note_work_refused(WorkKind::Rebuild);
            return core.finish(super::Done { tag, result: Err(error) });
        }
        core.forget_trouble(dev);
        core.health.take_back(dev, (serial, superblock.checkpoints.durable), &core.store.config);
        if !planted(Planted::ReturnForgetsPlanned) {
            core.distrust_what_is_planned(dev);
        }
        core.publish_members();
        // What it lacks under its new serial number: without that a restart would begin the rebuild anew.
        core.board.checkpoint.request(Extent::Changes);
        let request = core.open_control(tag);
        self.start_run(core, WorkKind::Rebuild, Some(request));
    }
}
