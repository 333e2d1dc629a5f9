//! A member that works gets a successor: the device on the shelf becomes the same and takes its place.

use super::{Kind, Session};
use crate::disk::{BLOCK_BYTES, Image, blocks_of};
use crate::machine::SHARDS_MAX;
use crate::trap::Trap;
use crate::violation;
use crate::violation::Violation;
use array::{GivenUp, PairSeat, SucceedStep, Succession};
use block::{DevIndex, PairFault, PairPlan, Random as _, Slice};
use format::{MemberState, SUPERBLOCK_OFFSETS};

/// How long the partner may owe an answer, in the engine's time.
const PATIENCE_NS: u64 = 1_000_000;
/// Times that a succession is looked at and has to wait, at most.
const WAITS_MAX: u64 = 30_000;

/// A member and its partner.
pub(super) struct Successor {
    pub(super) succession: Succession,
    /// When so many bytes of the first shard are copied, some of the member cannot be read for a while.
    trap_at: Option<u64>,
    /// The partner has a fault, or is let go.
    may_fail: bool,
    /// It has come to nothing; the pairs end when nothing of them is under way.
    is_over: bool,
    waits: u64,
}

impl Session<'_> {
    /// A succession comes a step further, or not yet; or one begins.
    pub(super) fn succeed_on(&mut self) -> Result<(), Violation> {
        let Some(mut successor) = self.successor.take() else {
            self.begin_succession();
            return Ok(());
        };
        if self.blacked_out() || self.crashed() {
            self.successor = Some(successor);
            return Ok(());
        }
        self.watch_partner();
        self.trap_member(&mut successor);
        if successor.is_over {
            successor.waits += 1;
            self.fail_if_dumb(&successor);
            for at in 0..self.fleet.len() {
                if self.fleet.devices(at).end().is_some() {
                    self.fleet.shard(at);
                }
            }
            self.successor = Some(successor).filter(|_| self.fleet.has_pair());
            return Ok(());
        }
        // Rebuilds and scrubs may take as long as they like.
        let seats = self.pair_seats(successor.succession.dev());
        successor.waits += u64::from(!seats.iter().any(|seat| seat.is_maintained));
        let of = successor.succession.dev().get();
        let world = self.machine.world.look();
        let is_dumb = world.is_silent(of) || world.is_hung(of);
        drop(world);
        if successor.waits > WAITS_MAX && is_dumb {
            // Nothing but the copy asks anything of a member that does not answer.
            successor.waits = 0;
            self.abandon(&mut successor);
        } else if successor.waits > WAITS_MAX {
            return Err(violation!("a succession waits for ever: {:?}, {seats:?}", successor.succession));
        }
        let dev = successor.succession.dev();
        let step = successor.succession.next(&seats);
        if step != SucceedStep::Wait {
            successor.waits = 0;
            let failed = |engine: &array::Engine| engine.health().members()[dev.index()].failed;
            let causes: Vec<_> = self.fleet.engines().filter_map(failed).collect();
            self.machine.say(|| format!("successor of {dev}: {step:?}, member failed by {causes:?}"));
        }
        self.take_step(&mut successor, step)
    }

    fn take_step(&mut self, successor: &mut Successor, step: SucceedStep) -> Result<(), Violation> {
        let dev = successor.succession.dev();
        match step {
            SucceedStep::Wait => {}
            SucceedStep::Scrub => self.control(Kind::Scrub, |engine, tag| engine.scrub(tag, 0)),
            SucceedStep::CopyAgain => {
                (0..self.fleet.len()).for_each(|at| self.fleet.shard(at).devices().copy_again());
            }
            SucceedStep::HandOver { shard, serial } => {
                let array = self.fleet.shard(shard);
                array.devices().hand_over();
                if !array.engine().succeed(dev, serial) {
                    return Err(violation!("a member that works cannot be succeeded"));
                }
                if self.machine.rng.clone().fork().chance(1, 3) {
                    self.cut_within(40);
                }
            }
            SucceedStep::Tell { shard } => self.fleet.engine(shard).tell_of_successor(),
            SucceedStep::Hold => (0..self.fleet.len()).for_each(|at| self.fleet.shard(at).devices().hold()),
            SucceedStep::Install => {
                self.machine.install_shelf(dev.get(), true);
                if !(0..self.fleet.len()).all(|at| self.fleet.shard(at).devices().end().is_some()) {
                    return Err(violation!("a pair that is quiet does not end"));
                }
                self.machine.outcome.succeeded += 1;
                if successor.succession.next(&[]) == SucceedStep::Scrub {
                    self.control(Kind::Scrub, |engine, tag| engine.scrub(tag, 0));
                }
                return Ok(());
            }
            SucceedStep::GiveUp { why: GivenUp::CopyFailed(fault), with_member }
                if !self.may_give_up(successor, fault, with_member) =>
            {
                return Err(violation!("the partner of {dev}, which has no fault, was given up: {fault:?}"));
            }
            SucceedStep::GiveUp { with_member, .. } => {
                self.abandon(successor);
                if with_member {
                    // A patrol may have cleared it since its partner failed, which takes it along only now.
                    self.machine.suspects.insert(dev.get());
                    (0..self.fleet.len()).for_each(|at| self.fleet.engine(at).fail_device(dev));
                }
            }
            SucceedStep::Done => return Ok(()),
        }
        let Successor { trap_at, may_fail, is_over, waits, .. } = *successor;
        self.successor =
            Some(Successor { succession: successor.succession.clone(), trap_at, may_fail, is_over, waits });
        Ok(())
    }

    /// A partner may be given up that has a fault. Until all is copied, writes may also have waited too long
    /// for a range, of which one of the two devices still owes something.
    fn may_give_up(&self, successor: &Successor, fault: PairFault, with_member: bool) -> bool {
        let of = successor.succession.dev().get();
        let world = self.machine.world.look();
        let is_slow = fault == PairFault::CopyLate
            && [of, self.machine.member_count()].into_iter().any(|dev| world.owes(dev, u64::MAX));
        successor.may_fail || (!with_member && (self.machine.swarm.faults || is_slow))
    }

    /// A member that does not answer, while nothing but the copy has asked it anything, is taken out of
    /// service, as an operator does.
    fn fail_if_dumb(&mut self, successor: &Successor) {
        let dev = successor.succession.dev();
        let world = self.machine.world.look();
        let is_dumb = world.is_silent(dev.get()) || world.is_hung(dev.get());
        drop(world);
        if successor.waits == WAITS_MAX && is_dumb {
            self.fail_device(dev.get());
            (0..self.fleet.len()).for_each(|at| self.fleet.engine(at).fail_device(dev));
        }
    }

    fn abandon(&mut self, successor: &mut Successor) {
        (successor.is_over, successor.may_fail) = (true, true);
        (0..self.fleet.len()).for_each(|at| self.fleet.shard(at).devices().abandon());
    }

    /// Some of the member cannot be read, and a little later can; unless the member counts as whole again by
    /// then, and another one may be hurt in its place.
    fn trap_member(&mut self, successor: &mut Successor) {
        let copied = self.fleet.shard_ref(0).devices_ref().state().map_or(0, |pair| pair.copied_bytes);
        let dev = successor.succession.dev().get();
        let is_due = successor.trap_at.take_if(|at| copied >= *at).is_some();
        if is_due && self.machine.suspects.contains(&dev) {
            let count = u32::try_from(self.machine.rng.clone().fork().within(1, 12)).unwrap_or(1);
            self.machine.say(|| format!("trap: {count} reads of device {dev}"));
            self.machine.world.change().set_trap(Trap::Read { dev, count });
        }
    }

    /// The pairs are told the time and what need not be copied, and give up a partner that does not answer
    /// before the engine gives the member up for it.
    fn watch_partner(&mut self) {
        let now_ns = self.machine.now_ns;
        for at in 0..self.fleet.len() {
            let devices = self.fleet.devices(at);
            devices.allow(None, now_ns);
            let Some((dev, within)) = devices.state().map(|pair| pair.of).zip(devices.wants_map()) else {
                continue;
            };
            let (unused, known_to) = self.fleet.engine_ref(at).unused_on(dev, &within);
            self.fleet.devices(at).learn_unused(unused, known_to);
        }
    }

    fn pair_seats(&self, dev: DevIndex) -> Vec<PairSeat> {
        let seat = |at| {
            let shard = self.fleet.shard_ref(at);
            PairSeat::of(shard.engine_ref(), dev, shard.devices_ref().state())
        };
        (0..self.fleet.len()).map(seat).collect()
    }

    /// Now and then some member that works gets a partner; what decides that draws from no other's words.
    fn begin_succession(&mut self) {
        let mut aside = self.machine.rng.clone().fork();
        let wanted = self.machine.swarm.succeeds && !self.ends && aside.chance(1, 40);
        if !wanted || self.exchange.is_some() || self.machine.world.look().has_blackout() || self.crashed() {
            return;
        }
        let dev = aside.below(u64::from(self.machine.member_count())) as u16;
        if self.fleet.state(dev) != MemberState::Healthy || self.fleet.len() > SHARDS_MAX {
            return;
        }
        self.machine.say(|| format!("device {dev} gets a partner"));
        let fault = aside.chance(1, 4).then(|| aside.below(8));
        let may_fail = self.lay_out_shelf(dev, aside.below(4), fault);
        let trap_at = (may_fail && fault >= Some(6)).then(|| aside.below(1 << 21));
        let of = DevIndex::new(dev);
        let (shelf, now_ns) = (self.machine.member_count(), self.machine.now_ns);
        for at in 0..self.fleet.len() {
            let number = self.fleet.number(at);
            let config = self.machine.shape_of(number);
            let is_main = of.index() < config.geometry.device_count();
            let length_bytes = if is_main { config.main_device_bytes() } else { config.log_device_bytes() };
            let extents = config.slice_extents().get(of.index()).copied().into_iter().collect();
            let partner = Slice::new(self.machine.world.port_of(number, shelf), extents);
            let under_way = self.fleet.engine_ref(at).under_way(of);
            let plan = PairPlan::new(of, length_bytes, &SUPERBLOCK_OFFSETS, PATIENCE_NS)
                .unbroken(config.unbroken_bytes());
            self.fleet.shard(at).devices().begin(plan, partner, &under_way, now_ns);
        }
        self.machine.succeeded = Some(dev);
        let succession = Succession::begin(of);
        self.successor = Some(Successor { succession, trap_at, may_fail, is_over: false, waits: 0 });
    }

    /// What is on the device on the shelf: nothing, anything, what was there, or what the member has held
    /// before. Whether it has a fault.
    fn lay_out_shelf(&mut self, dev: u16, kind: u64, fault: Option<u64>) -> bool {
        let shelf = self.machine.member_count();
        let largest = self.machine.sizes().into_iter().max().unwrap_or(0);
        let blocks = usize::try_from(largest).unwrap_or(usize::MAX) / BLOCK_BYTES;
        let mut image: Image = match kind {
            0 => vec![None; blocks],
            1 => vec![Some(blocks_of(&[0xee; BLOCK_BYTES]).swap_remove(0)); blocks],
            2 => self.machine.world.look().disk(shelf).view().clone(),
            _ => self.machine.world.look().disk(dev).durable().clone(),
        };
        image.resize(blocks, None);
        self.forget_superblocks(dev, &mut image);
        self.machine.world.change().clear_traps(shelf);
        self.machine.world.change().replace(shelf, image);
        let bears = self.machine.suspects.contains(&dev)
            || (self.machine.suspects.len() < self.machine.budget() && !self.machine.is_split());
        let Some(fault) = fault.filter(|_| bears && self.machine.swarm.faults) else { return false };
        self.machine.suspects.insert(dev);
        self.machine.standing[usize::from(dev)].tainted = true;
        let mut world = self.machine.world.change();
        match fault {
            0 => world.set_trap(Trap::Write { dev: shelf }),
            1 => world.set_trap(Trap::Flush { dev: shelf }),
            2 => world.set_trap(Trap::Gone { dev: shelf }),
            3 => world.set_trap(Trap::Read { dev: shelf, count: 3 }),
            4 => world.hang(shelf, Some(400)),
            6 | 7 => {} // the member's, while it is copied
            _ => world.hang(shelf, None),
        }
        true
    }

    /// As whoever puts it there does: it is nobody's.
    fn forget_superblocks(&self, dev: u16, image: &mut Image) {
        for shard in self.machine.shards() {
            let config = self.machine.swarm.config.sibling(shard);
            let origin = config.slice_origin(DevIndex::new(dev));
            for offset in SUPERBLOCK_OFFSETS {
                let at = usize::try_from(origin + offset).unwrap_or(usize::MAX) / BLOCK_BYTES;
                if let Some(place) = image.get_mut(at) {
                    *place = None;
                }
            }
        }
    }

    /// Until no device has a partner: the one that there is takes its place, or is let go. `false` if power
    /// failed.
    pub(super) fn end_succession(&mut self) -> Result<bool, Violation> {
        if let Some(mut successor) = self.successor.take() {
            let is_over = successor.is_over || successor.succession.is_handing_over();
            if !is_over && self.machine.rng.clone().fork().chance(1, 2) {
                self.abandon(&mut successor);
            }
            self.successor = Some(successor);
        }
        let ends = std::mem::replace(&mut self.ends, true);
        while self.successor.is_some() && !self.crashed() && !self.blacked_out() {
            self.turn()?;
        }
        self.ends = ends;
        Ok(!self.crashed())
    }
}
