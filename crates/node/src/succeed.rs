//! A device that takes the place of a member that works: it becomes the same while the member stays in
//! service, then takes over, in all shards at once ([`array::Succession`]).

use crate::blank::wipe_slices;
use crate::error::Error;
use crate::pairing::{begin_pair, install_partner};
use crate::refusal::Refusal;
use crate::running::Running;
use array::{Engine, GivenUp, PairSeat, SucceedStep, Succession};
use block::{DevIndex, Extent, PairPlan, PairStage, PairState};
use device::Members;
use format::SUPERBLOCK_OFFSETS;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// How often a copy is looked at that has nothing else to wait for.
const LOOK_NS: u64 = 20_000_000;
/// The same of what is about to take over.
const SOON_NS: u64 = 1_000_000;
/// A partner may owe an answer for this share of what a member may: else the member would be given up for
/// it.
const PATIENCE_SHARE: u64 = 4;
/// The same where members are waited for as long as it takes.
const PATIENCE_NS: u64 = 30_000_000_000;

/// What has come of a succession.
pub enum Outcome {
    /// Nothing yet.
    Goes,
    /// The device is the member now.
    Succeeded,
    /// It is not, and the pair has ended; the member went out of service, so the device may take its place as
    /// any other does.
    MemberLeft,
    /// It is not, for this reason.
    Failed(String),
    /// It is not, as somebody asked for.
    CalledOff,
}

/// A device that is to take the place of a member that works.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Replacement {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes of the member that were looked at.
    pub done_bytes: u64,
    /// Bytes to look at in all.
    pub total_bytes: u64,
    /// Bytes written to the device since they differed.
    pub written_bytes: u64,
    /// Bytes of the member that hold nothing, and were passed over; part of those looked at.
    pub unused_bytes: u64,
    /// Bytes that could not be read from the member: a scrub rebuilds what of that is in use.
    pub unread_bytes: u64,
    /// Bytes read of the member per second since it began.
    pub bytes_per_s: u64,
    /// Seconds left at that rate.
    pub eta_s: Option<u64>,
}

/// A member and the device that is to succeed it.
pub struct Succeeding {
    succession: Succession,
    path: PathBuf,
    /// Keeps others from using it.
    lock: Members,
    /// Of each shard, as it was last seen.
    pairs: Vec<Option<PairState>>,
    /// Bytes read of the member, and written to the device, as long as there were pairs.
    moved_bytes: (u64, u64),
    /// Why it came to nothing; the pairs end when nothing of them is under way.
    given_up: Option<GivenUp>,
    /// That was somebody's wish.
    is_called_off: bool,
    began_ns: u64,
    looked_ns: u64,
}

impl Succeeding {
    /// The device at `path`, locked by `lock`, begins to become what member `dev` is.
    pub fn begin(
        running: &mut Running,
        dev: DevIndex,
        path: PathBuf,
        mut lock: Members,
    ) -> Result<Self, Error> {
        let config = running.lead().store().config;
        wipe_slices(&mut lock, &path, &config, dev)?;
        let now_ns = running.now_ns();
        for shard in 0..running.shard_count() {
            let own = running.engine(shard).store().config;
            let is_main = dev.index() < own.geometry.device_count();
            let length_bytes = if is_main { own.main_device_bytes() } else { own.log_device_bytes() };
            let extent = own.slice_extents().get(dev.index()).copied().unwrap_or(Extent::WHOLE);
            let limit_ns = running.lead().options().device_timeout_ns;
            let patience_ns = limit_ns.map_or(PATIENCE_NS, |limit_ns| limit_ns / PATIENCE_SHARE);
            let plan = PairPlan::new(dev, length_bytes, &SUPERBLOCK_OFFSETS, patience_ns)
                .unbroken(own.unbroken_bytes());
            let (partner, slot_bytes) = (lock.share(), running.engine_mut(shard).pool().slot_bytes());
            let under_way = running.engine(shard).under_way(dev);
            running.with_devices(shard, move |devices| {
                begin_pair(devices, partner, (plan, extent), slot_bytes, (&under_way, now_ns))
            })??;
        }
        let pairs = vec![None; running.shard_count()];
        let succession = Succession::begin(dev);
        let (given_up, is_called_off, moved_bytes) = (None, false, (0, 0));
        let (began_ns, looked_ns) = (now_ns, now_ns);
        let mut one =
            Self { succession, path, lock, pairs, moved_bytes, given_up, is_called_off, began_ns, looked_ns };
        one.look(running)?;
        Ok(one)
    }

    /// The member.
    pub fn dev(&self) -> DevIndex {
        self.succession.dev()
    }

    /// Where the device is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the device may be the member already, and the array must not be stopped before that is over.
    pub fn is_handing_over(&self) -> bool {
        self.given_up.is_none() && self.succession.is_handing_over()
    }

    /// Bytes read of the member, and of those the bytes written to the device since they differed.
    pub fn moved_bytes(&self) -> (u64, u64) {
        self.moved_bytes
    }

    /// The device, when it is let go.
    pub fn into_lock(self) -> Members {
        self.lock
    }

    /// In how many nanoseconds it is to be looked at again.
    pub fn due_in_ns(&self) -> u64 {
        if self.succession.is_handing_over() { SOON_NS } else { LOOK_NS }
    }

    /// How far it is.
    pub fn status(&self, now_ns: u64) -> Replacement {
        let sum = |figure: fn(&PairState) -> u64| self.pairs.iter().flatten().map(figure).sum::<u64>();
        let (done_bytes, total_bytes) = (sum(|pair| pair.copied_bytes), sum(|pair| pair.length_bytes));
        let elapsed_ns = u128::from(now_ns.saturating_sub(self.began_ns).max(1));
        let unused_bytes = sum(|pair| pair.unused_bytes);
        let rate = |bytes: u64| u64::try_from(u128::from(bytes) * 1_000_000_000 / elapsed_ns);
        let passed_per_s = rate(done_bytes).unwrap_or(u64::MAX);
        Replacement {
            path: self.path.clone(),
            done_bytes,
            total_bytes,
            written_bytes: sum(|pair| pair.written_bytes),
            unused_bytes,
            unread_bytes: sum(|pair| pair.unread_bytes),
            bytes_per_s: rate(done_bytes.saturating_sub(unused_bytes)).unwrap_or(u64::MAX),
            eta_s: (passed_per_s > 0).then(|| (total_bytes - done_bytes.min(total_bytes)) / passed_per_s),
        }
    }

    /// The array is to be stopped, or somebody wants it: the device does not take over, unless it is doing so
    /// at this moment.
    pub fn abandon(&mut self, running: &mut Running) -> Result<(), Error> {
        for shard in 0..running.shard_count() {
            running.with_devices(shard, |devices| devices.abandon())?;
        }
        Ok(())
    }

    /// Somebody does not want it any more, before the device has begun to take over.
    pub fn call_off(&mut self, running: &mut Running) -> Result<(), Error> {
        self.is_called_off = true;
        self.abandon(running)
    }

    /// Takes the steps that can be taken now.
    pub fn go_on(&mut self, running: &mut Running) -> Result<Outcome, Error> {
        self.look(running)?;
        if let Some(why) = self.given_up {
            return self.end(running, why);
        }
        loop {
            let step = self.succession.next(&self.seats(running));
            match step {
                SucceedStep::Wait => return Ok(Outcome::Goes),
                SucceedStep::Done => return Ok(Outcome::Succeeded),
                SucceedStep::GiveUp { why, with_member } => {
                    self.abandon(running)?;
                    if with_member {
                        running.fail_device(self.dev());
                    }
                    self.given_up = Some(why);
                    return Ok(Outcome::Goes);
                }
                SucceedStep::Scrub
                | SucceedStep::CopyAgain
                | SucceedStep::HandOver { .. }
                | SucceedStep::Tell { .. }
                | SucceedStep::Hold
                | SucceedStep::Install => self.take(running, step)?,
            }
            self.look(running)?;
        }
    }

    fn take(&mut self, running: &mut Running, step: SucceedStep) -> Result<(), Error> {
        let dev = self.dev();
        match step {
            SucceedStep::Scrub => {
                running.control(|engine, tag| engine.scrub(tag, 0));
            }
            SucceedStep::CopyAgain => {
                for shard in 0..running.shard_count() {
                    running.with_devices(shard, |devices| devices.copy_again())?;
                }
            }
            SucceedStep::HandOver { shard, serial } => {
                // What the engine wants written goes to the devices later.
                if running.engine_mut(shard).succeed(dev, serial) {
                    running.with_devices(shard, |devices| devices.hand_over())?;
                } else {
                    self.abandon(running)?;
                }
            }
            SucceedStep::Tell { shard } => running.engine_mut(shard).tell_of_successor(),
            SucceedStep::Hold => {
                for shard in 0..running.shard_count() {
                    running.with_devices(shard, |devices| devices.hold())?;
                }
            }
            SucceedStep::Install => {
                for shard in 0..running.shard_count() {
                    running.with_devices(shard, move |devices| install_partner(devices, dev))??;
                }
            }
            SucceedStep::Wait | SucceedStep::GiveUp { .. } | SucceedStep::Done => {}
        }
        Ok(())
    }

    /// Looks at all shards, tells them what need not be copied, and lets them copy as much as they may until
    /// the next time.
    fn look(&mut self, running: &mut Running) -> Result<(), Error> {
        let now_ns = running.now_ns();
        let elapsed_ns = now_ns.saturating_sub(self.looked_ns);
        self.looked_ns = now_ns;
        for shard in 0..running.shard_count() {
            let share = |rate: u64| u128::from(rate) * u128::from(elapsed_ns) / 1_000_000_000;
            let rate = running.engine(shard).rebuild_rate();
            let may = rate.map(|rate| u64::try_from(share(rate)).unwrap_or(u64::MAX));
            if let Some(within) = running.with_devices(shard, |devices| devices.wants_map())? {
                let (unused, known_to) = running.engine(shard).unused_on(self.dev(), &within);
                running.with_devices(shard, move |devices| devices.learn_unused(unused, known_to))?;
            }
            self.pairs[shard] = running.with_devices(shard, move |devices| {
                devices.allow(may, now_ns);
                devices.state()
            })?;
        }
        let sum = |figure: fn(&PairState) -> u64| self.pairs.iter().flatten().map(figure).sum::<u64>();
        if self.pairs.iter().all(Option::is_some) {
            let read = |pair: &PairState| pair.copied_bytes.saturating_sub(pair.unused_bytes);
            self.moved_bytes = (sum(read), sum(|pair| pair.written_bytes));
        }
        Ok(())
    }

    fn seats(&self, running: &Running) -> Vec<PairSeat> {
        let dev = self.dev();
        let seat = |(engine, pair): (&Engine, &Option<PairState>)| PairSeat::of(engine, dev, *pair);
        running.engines().zip(&self.pairs).map(seat).collect()
    }

    /// The pairs end, once nothing of them is under way.
    fn end(&mut self, running: &mut Running, why: GivenUp) -> Result<Outcome, Error> {
        for shard in 0..running.shard_count() {
            let stage = running.with_devices(shard, |devices| {
                devices.end();
                devices.state().map(|pair| pair.stage)
            })?;
            if stage.is_some() {
                debug_assert_eq!(stage, Some(PairStage::Over));
                return Ok(Outcome::Goes);
            }
        }
        Ok(match why {
            GivenUp::MemberLeft => Outcome::MemberLeft,
            GivenUp::CopyFailed(_) if self.is_called_off => Outcome::CalledOff,
            GivenUp::CopyFailed(fault) => {
                Outcome::Failed(Refusal::Copy { path: self.path.clone(), fault }.to_string())
            }
        })
    }
}
