//! Devices that do not answer, or answer late, and what they do with what nobody waits for any more.
//!
//! What is held back ends when the silence does, or after the device's patience. What was given up meanwhile
//! takes effect later, or never; so may what was held back when power failed.

use super::{FOR_EVER, Flight, World};
use crate::disk::{BLOCK_BYTES, Block, Image};
use block::{DeviceOp, OpKind, Random as _};

/// Which operations a device does not answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mute {
    /// All.
    Everything,
    /// Reads.
    Reads,
    /// Whatever changes what is stored.
    Changes,
    /// Flushes.
    Flushes,
    /// Some of all kinds.
    Some,
}

/// Every way.
pub const MUTES: [Mute; 5] = [Mute::Everything, Mute::Reads, Mute::Changes, Mute::Flushes, Mute::Some];

/// How a device does not answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Silence {
    /// What it does not answer.
    pub mute: Mute,
    /// When it ends; `None` for never.
    pub until_ns: Option<u64>,
    /// Each operation is answered after so long at most: late, but in time.
    pub patience_ns: Option<u64>,
    /// What is held back when power fails may take effect after it.
    pub is_wild: bool,
}

/// A write that takes effect when those who asked for it are long gone.
pub(super) struct Ghost {
    dev: u16,
    /// After so many operations.
    at: u64,
    offset_bytes: u64,
    blocks: Vec<Block>,
}

impl Ghost {
    /// The device that it will be on.
    pub(super) fn dev(&self) -> u16 {
        self.dev
    }
}

impl World {
    /// The time, and what it brings to an end.
    pub fn set_now(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        for member in &mut self.members {
            let is_over = |silence: &Silence| silence.until_ns.is_some_and(|until_ns| until_ns <= now_ns);
            member.silence = member.silence.filter(|silence| !is_over(silence));
        }
        self.release();
    }

    /// The process was stopped for a while: operations waited, and nobody for them.
    pub fn sleep(&mut self, slept_ns: u64) {
        self.flights.iter_mut().for_each(|flight| flight.since_ns += slept_ns);
    }

    /// A device does not answer from now on; nor what is under way on it.
    pub fn silence(&mut self, dev: u16, silence: Silence) {
        self.members[usize::from(dev)].silence = Some(silence);
        for at in 0..self.flights.len() {
            if self.flights[at].op.dev.get() == dev && self.holds(&{ self.flights[at].op }) {
                (self.flights[at].held, self.flights[at].due) = (true, FOR_EVER);
            }
        }
    }

    /// A device answers again.
    pub fn end_silence(&mut self, dev: u16) {
        self.members[usize::from(dev)].silence = None;
        self.release();
    }

    /// The device answers again, also what was under way on it.
    pub fn stop_hanging(&mut self, dev: u16) {
        self.members[usize::from(dev)].hung_until = 0;
        let tick = self.tick;
        let ends = |flight: &&mut Flight| flight.op.dev.get() == dev && !flight.held;
        for flight in self.flights.iter_mut().filter(ends) {
            flight.due = flight.due.min(tick);
        }
    }

    /// Whether a device is silent, or has not yet answered what it held back.
    pub fn is_silent(&self, dev: u16) -> bool {
        self.members[usize::from(dev)].silence.is_some()
            || self.flights.iter().any(|flight| flight.held && flight.op.dev.get() == dev)
    }

    /// Whether a device has been told not to answer for ever, or for a while.
    pub fn is_hung(&self, dev: u16) -> bool {
        self.members[usize::from(dev)].hung_until > self.tick
    }

    /// Whether a device has not answered something that was begun before a time, and is waited for.
    pub fn owes(&self, dev: u16, before_ns: u64) -> bool {
        let owed = |flight: &Flight| flight.op.dev.get() == dev && !flight.given_up;
        self.flights.iter().any(|flight| owed(flight) && flight.since_ns <= before_ns)
    }

    /// Whether an operation that begins now is held back.
    pub(super) fn holds(&mut self, op: &DeviceOp) -> bool {
        let Some(silence) = self.members[op.dev.index()].silence else { return false };
        match silence.mute {
            Mute::Everything => true,
            Mute::Reads => op.kind == OpKind::Read,
            Mute::Changes => matches!(op.kind, OpKind::Write | OpKind::Discard),
            Mute::Flushes => op.kind == OpKind::Flush,
            Mute::Some => self.rng.chance(1, 2),
        }
    }

    /// What is held back no longer ends soon; of what was given up some never does, and some much later.
    fn release(&mut self) {
        let Self { flights, members, rng, pace, tick, now_ns, .. } = self;
        flights.retain_mut(|flight| {
            let free = match members[flight.op.dev.index()].silence {
                _ if !flight.held => return true,
                None => true,
                Some(silence) => {
                    let is_over = |patience_ns| flight.since_ns.saturating_add(patience_ns) <= *now_ns;
                    !flight.given_up && silence.patience_ns.is_some_and(is_over)
                }
            };
            if !free {
                return true;
            }
            let delay = if flight.given_up { rng.pick(&[1, 30, 300]) } else { pace.delay_max };
            (flight.held, flight.due) = (false, *tick + rng.below(delay + 1));
            !flight.given_up || rng.chance(3, 4)
        });
    }

    /// When something that is held back will be answered, if nobody gives it up before.
    pub fn release_ns(&self) -> Option<u64> {
        let held = self.flights.iter().filter(|flight| flight.held && !flight.given_up);
        let ends = held.filter_map(|flight| {
            let silence = self.members[flight.op.dev.index()].silence?;
            let patience = silence.patience_ns.map(|ns| flight.since_ns.saturating_add(ns));
            silence.until_ns.into_iter().chain(patience).min()
        });
        ends.min()
    }

    /// Operations that have been held back for so long, and that somebody waits for: shard, device and age.
    pub fn held_for(&self, age_ns: u64) -> impl Iterator<Item = (u16, u16, u64)> {
        // What is copied to a member's successor is no request of the engine's.
        let asked = |flight: &&Flight| flight.held && !flight.given_up && flight.op.tag < block::COPY_TAGS;
        let held = self.flights.iter().filter(asked);
        let aged = held.map(|flight| (flight, self.now_ns.saturating_sub(flight.since_ns)));
        aged.filter(move |(_, age)| *age >= age_ns)
            .map(|(flight, age)| (flight.shard, flight.op.dev.get(), age))
    }

    /// Power fails: of the writes that a device holds back some are left to take effect later.
    pub(super) fn leave_ghosts(&mut self) {
        let Self { flights, members, rng, ghosts, events, .. } = self;
        flights.retain(|flight| {
            let is_wild = members[flight.op.dev.index()].silence.is_some_and(|silence| silence.is_wild);
            let stays = flight.held && is_wild && flight.fault.is_none() && flight.op.kind == OpKind::Write;
            if stays && rng.chance(1, 3) {
                let at = *events + rng.below(rng.clone().pick(&[20, 200, 2_000]));
                let (dev, offset_bytes) = (flight.op.dev.get(), flight.offset_bytes);
                ghosts.push(Ghost { dev, at, offset_bytes, blocks: flight.blocks.clone() });
                return false;
            }
            true
        });
        self.members.iter_mut().for_each(|member| member.silence = None);
    }

    /// Devices on which a write from before a power cut may still take effect.
    pub fn haunted(&self) -> Vec<u16> {
        self.ghosts.iter().map(|ghost| ghost.dev).collect()
    }

    /// Nothing from before a power cut takes effect any more.
    pub fn lay_ghosts(&mut self) {
        self.ghosts.clear();
    }

    /// Writes from before a power cut take effect when their time has come.
    pub(super) fn haunt(&mut self) {
        let Self { ghosts, members, events, .. } = self;
        ghosts.retain(|ghost| {
            let is_due = ghost.at <= *events;
            if is_due {
                members[usize::from(ghost.dev)].disk.write(ghost.offset_bytes, &ghost.blocks);
            }
            !is_due
        });
    }

    /// A disk is taken out: what was given up on it, or is left from before, takes effect on it alone.
    pub(super) fn take_out(&mut self, dev: u16, image: &mut Image) {
        let Self { flights, ghosts, rng, .. } = self;
        let mut land = |offset_bytes: u64, blocks: &[Block]| {
            let first = usize::try_from(offset_bytes).unwrap_or(usize::MAX) / BLOCK_BYTES;
            if let Some(places) = image.get_mut(first..first + blocks.len())
                && rng.chance(1, 2)
            {
                places.iter_mut().zip(blocks).for_each(|(place, block)| *place = Some(Block::clone(block)));
            }
        };
        let changes = |flight: &Flight| {
            matches!(flight.op.kind, OpKind::Write | OpKind::Discard) && flight.fault.is_none()
        };
        flights.retain(|flight| {
            let is_left = flight.op.dev.get() == dev && flight.given_up;
            if is_left && changes(flight) {
                land(flight.offset_bytes, &flight.blocks);
            }
            !is_left
        });
        ghosts.retain(|ghost| {
            if ghost.dev == dev {
                land(ghost.offset_bytes, &ghost.blocks);
            }
            ghost.dev != dev
        });
    }
}
