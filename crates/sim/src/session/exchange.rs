//! A new disk takes the place of a failed one: at once if there is one shard, else step by step, with
//! anything between two steps.

use super::{Kind, Session};
use crate::disk::{BLOCK_BYTES, Image, blocks_of};
use crate::machine::{Hurt, Retired, Standing};
use crate::violation;
use crate::violation::Violation;
use array::{Done, EngineError, ReplaceStep, Replacing, Seat};
use block::{DevIndex, DeviceSet as _, IoFault, Random as _};
use format::SUPERBLOCK_OFFSETS;

/// Times that an exchange is looked at and has to wait, at most.
const WAITS_MAX: u64 = 100_000;

/// A device that is taking the place of another.
pub(super) struct Exchange {
    replacing: Replacing,
    /// It is the device that was there before.
    is_same: bool,
    /// The tag of the rebuilds.
    tag: u64,
    /// Shards that have not begun to rebuild.
    left: usize,
    waits: u64,
}

impl Session<'_> {
    /// A new disk takes the place of a failed one once nothing is under way on that.
    pub(in crate::session) fn replace(&mut self) {
        if self.fleet.is_several() {
            return self.exchange();
        }
        if self.wants_back() && self.bring_back() {
            return;
        }
        for dev in self.to_replace() {
            let index = DevIndex::new(dev);
            let engine = self.fleet.engine_ref(0);
            if !engine.is_replaceable(index) || engine.in_flight(index) > 0 {
                continue;
            }
            // What is drawn for a place of a single shard is blank, or noise: there is nothing to forget.
            let is_stranger = self.machine.standing[usize::from(dev)].stranger;
            self.put_in_place(dev);
            if is_stranger && self.wipe(0, index).is_err() {
                return;
            }
            let serial = self.new_serial(index);
            self.machine.say(|| format!("replace device {dev}, serial {serial}"));
            self.control(Kind::Rebuild { dev }, |engine, tag| engine.rebuild(tag, index, serial));
            self.cut_rebuild();
            return;
        }
    }

    /// Whose place may be given to a device. A succession that has not ended yet refuses, also once its
    /// member has failed.
    pub(super) fn to_replace(&self) -> Vec<u16> {
        let taken = self.successor.as_ref().map(|one| one.succession.dev().get());
        self.machine.suspects.iter().copied().filter(|&dev| Some(dev) != taken).collect()
    }

    /// The serial number of a device that takes a place, by the product's rule.
    pub(super) fn new_serial(&self, dev: DevIndex) -> u32 {
        Seat::of(self.fleet.engine_ref(0), dev).serial_max + 1
    }

    fn put_in_place(&mut self, dev: u16) {
        let (blank, comes_hurt) = self.draw_blank(dev);
        self.machine.world.change().clear_traps(dev);
        let image = self.machine.world.change().replace(dev, blank);
        let standing = self.machine.standing[usize::from(dev)];
        let (excluded, is_hurt) = (standing.excluded == self.machine.all_shards(), standing.is_hurt());
        // A disk that never was a member for long is forgotten; the one before it may still come back.
        // Of one that lost its end and that no start has told nobody knows that.
        let counts = standing.stump.is_none_or(|stump| stump.is_told);
        if counts && self.machine.superblock_in(&image, dev, 0).is_some() {
            self.machine.retired[usize::from(dev)] = Some(Retired { image, excluded, is_hurt });
        }
        // Until it is wiped it may yet come back as the member that it was.
        self.machine.standing[usize::from(dev)] = Standing::replacing(comes_hurt);
    }

    /// What is on a disk that comes: nothing, anything, or of several shards what was on it when it was a
    /// member; and whether that was hurt.
    fn draw_blank(&mut self, dev: u16) -> (Image, bool) {
        let standing = self.machine.standing[usize::from(dev)];
        if let Some(Retired { image, is_hurt, .. }) = &self.machine.retired[usize::from(dev)]
            && standing.stranger
        {
            return (image.clone(), *is_hurt);
        }
        let size = self.machine.sizes()[usize::from(dev)];
        let blocks = usize::try_from(size).unwrap_or(usize::MAX) / BLOCK_BYTES;
        let kinds = if self.fleet.is_several() { 4 } else { 2 };
        if standing.stump.is_some() && self.machine.rng.clone().fork().chance(1, 2) {
            return (self.whole_again(dev), standing.is_hurt());
        }
        match (self.machine.rng.below(kinds), &self.machine.retired[usize::from(dev)]) {
            (0, _) => (vec![None; blocks], false),
            (2, Some(Retired { image, is_hurt, .. })) => {
                // It left before the devices became larger, perhaps.
                let mut image = image.clone();
                image.resize(blocks.max(image.len()), None);
                (image, *is_hurt)
            }
            (3, _) => (self.machine.world.look().disk(dev).durable().clone(), standing.is_hurt()),
            _ => (vec![Some(blocks_of(&[0xee; BLOCK_BYTES]).swap_remove(0)); blocks], false),
        }
    }

    /// A device that was cut short has its length again, and is filled anew.
    fn whole_again(&mut self, dev: u16) -> Image {
        self.machine.say(|| format!("device {dev} is what was cut short, with its length again"));
        let mut image = self.machine.world.look().disk(dev).durable().clone();
        if !self.fleet.is_several() {
            // Of several shards each wipes its own.
            image.iter_mut().take(SUPERBLOCK_OFFSETS.len()).for_each(|block| *block = None);
        }
        image
    }

    /// A device that all shards can do without is to be replaced.
    fn exchange(&mut self) {
        if self.exchange.is_some() || self.blacked_out() {
            return;
        }
        for dev in self.to_replace() {
            let index = DevIndex::new(dev);
            if !self.fleet.engines().any(|engine| engine.is_replaceable(index)) {
                continue;
            }
            let healths = self.fleet.healths();
            let back = self.coming_back(dev);
            let replacing = back.map_or_else(|| Replacing::begin(index, &healths), Ok);
            let returns = replacing.is_err();
            let replacing = replacing.unwrap_or_else(|_| Replacing::again(index, &healths));
            let left = replacing.shards().len();
            if returns {
                self.take_back(dev, &replacing);
            }
            let what = match replacing.is_back() {
                true => "bring back",
                false if returns => "take back",
                false => "replace",
            };
            self.machine.say(|| format!("{what} device {dev}"));
            let tag = self.open(Kind::Rebuild { dev }, &[], Vec::new());
            let (tag, is_same) = (self.tag_of_parts(tag, left), returns || replacing.is_back());
            self.exchange = Some(Exchange { replacing, is_same, tag, left, waits: 0 });
            if self.machine.rng.chance(1, 3) {
                self.cut_within(60);
            }
            return;
        }
    }

    /// A device that some shards have given up and others cannot do without is there for all of them again.
    fn take_back(&mut self, dev: u16, replacing: &Replacing) {
        for &at in replacing.shards() {
            self.machine.world.change().set_hidden(dev, self.fleet.number(at), false);
        }
        let standing = self.machine.standing[usize::from(dev)];
        let Standing { excluded, stump, .. } = standing;
        self.machine.standing[usize::from(dev)] =
            Standing { replacement: true, excluded, stump, ..Standing::default() };
        // Shards that never gave it up go on with what is on it.
        if standing.is_hurt() || stump.is_some() || self.machine.world.look().haunted().contains(&dev) {
            self.machine.hurt(dev, Hurt::Anything);
        }
    }

    /// A device that is taking the place of another comes a step further, or not yet.
    pub(super) fn exchange_on(&mut self) -> Result<(), Violation> {
        let Some(mut exchange) = self.exchange.take() else { return Ok(()) };
        if self.blacked_out() {
            return self.give_up(&exchange);
        }
        if !self.machine.rng.chance(1, 3) {
            self.exchange = Some(exchange);
            return Ok(());
        }
        let dev = exchange.replacing.dev();
        if exchange.is_same && !self.is_let_go(dev.get()) {
            // The driver keeps the device until it has answered all that was given up on it.
            self.exchange = Some(exchange);
            return Ok(());
        }
        let seats: Vec<Seat> = self.fleet.engines().map(|engine| Seat::of(engine, dev)).collect();
        let step = exchange.replacing.next(&seats);
        let done = match step {
            ReplaceStep::Wait => {
                exchange.waits += 1;
                if exchange.waits > WAITS_MAX {
                    return Err(violation!("a replacement waits for ever: {seats:?}"));
                }
                Ok(())
            }
            ReplaceStep::Fail { shard } => {
                self.machine.standing[dev.index()].tainted = true;
                self.fleet.engine(shard).fail_device(dev);
                Ok(())
            }
            ReplaceStep::Install if exchange.replacing.is_back() => {
                self.plug_back(dev.get());
                Ok(())
            }
            ReplaceStep::Install => {
                // All of them have written that it is not theirs any more.
                self.machine.standing[dev.index()].excluded = self.machine.all_shards();
                self.put_in_place(dev.get());
                if self.machine.rng.chance(1, 4) {
                    self.cut_within(12);
                }
                Ok(())
            }
            ReplaceStep::Wipe { shard } => self.wipe(shard, dev),
            ReplaceStep::Flush => self.machine.world.port(0).flush_now(dev),
            ReplaceStep::Rebuild { shard, serial } => {
                let papers = self.machine.superblock_on(dev.get(), self.fleet.number(shard));
                // Its superblock has rotted since it was looked at first.
                if exchange.replacing.is_back() && papers.is_none() {
                    return self.give_up(&exchange);
                }
                exchange.left -= 1;
                // Until now the shard went on without it, as without the one before it.
                self.machine.standing[dev.index()].readmit(self.fleet.number(shard));
                match papers.filter(|_| exchange.replacing.is_back()) {
                    Some(papers) => self.fleet.engine(shard).online(exchange.tag, dev, serial, &papers),
                    None => self.fleet.engine(shard).rebuild(exchange.tag, dev, serial),
                }
                Ok(())
            }
            ReplaceStep::Done => {
                self.cut_rebuild();
                return Ok(());
            }
        };
        if step != ReplaceStep::Wait {
            self.machine.say(|| format!("device {dev}: {step:?}"));
        }
        if done.is_err() && !self.crashed() {
            return self.give_up(&exchange);
        }
        self.exchange = Some(exchange);
        Ok(())
    }

    fn wipe(&mut self, shard: usize, dev: DevIndex) -> Result<(), IoFault> {
        let config = self.fleet.engine(shard).store().config;
        array::forget(&mut self.machine.devices_of(self.fleet.number(shard)), dev, &config)
    }

    /// Nothing comes of it: shards that have not begun to rebuild do not.
    fn give_up(&mut self, exchange: &Exchange) -> Result<(), Violation> {
        self.machine.say(|| format!("device {} is not replaced after all", exchange.replacing.dev()));
        for _ in 0..exchange.left {
            let given_up = Done { tag: exchange.tag, result: Err(EngineError::GivenUp) };
            if let Some(done) = self.fleet.end(given_up) {
                self.answer(done)?;
            }
        }
        Ok(())
    }

    /// Often power fails in the middle of a rebuild: after the restart it goes on.
    pub(super) fn cut_rebuild(&mut self) {
        let machine = &mut *self.machine;
        let (cut, events) = (machine.rng.chance(1, 2), machine.rng.within(20, 800));
        if cut && machine.swarm.crashes && !machine.world.look().has_blackout() {
            machine.say(|| format!("power will fail {events} operations into the rebuild"));
            machine.plan_cut_anew(events);
        }
    }

    /// Power fails within so many operations.
    pub(super) fn cut_within(&mut self, most: u64) {
        let events = self.machine.rng.within(0, most);
        if self.machine.swarm.crashes && !self.machine.world.look().has_blackout() {
            self.machine.say(|| format!("power will fail {events} operations into the replacement"));
            self.machine.plan_cut_anew(events);
        }
    }
}
