//! The machine of a world: its members, what became of those that are none any more, power on and off.

use crate::Rng;
use crate::course::{Course, Mode, Part};
use crate::disk::Image;
use crate::oracle::Oracle;
use crate::swarm::{Pinned, Swarm};
use crate::violation;
use crate::violation::Violation;
use crate::world::{Shared, Trap, World, superblock_of};
use array::{Array, AssembleError, NewArray, RecoveryReport, arrange, create};
use block::DevIndex;
use block::{Random as _, mix};
use format::{ArrayUuid, MemberState, Superblock};
use std::collections::BTreeSet;

/// What a world did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// A digest of every operation and its result: the same for the same seed.
    pub hash: u64,
    /// Device operations begun or ended.
    pub events: u64,
    /// Power cuts.
    pub crashes: u64,
    /// Whole stripes that replaced what had been written to them before, under eplog.
    pub replaced: u64,
    /// Copies of pages of the table read because the page was not in memory.
    pub pages_read: u64,
    /// Requests answered.
    pub requests: u64,
    /// Records replayed by recoveries.
    pub replayed: u64,
    /// Records that recoveries dropped.
    pub dropped: u64,
    /// Aligned blocks of several chunks that a power cut might have torn.
    pub tearable: u64,
    /// Those of them that were there afterwards.
    pub untorn: u64,
    /// Arrays that started in spite of damage beyond what the code tolerates.
    pub ruined: u64,
    /// Arrays that were refused because of it.
    pub refused: u64,
    /// Code words that a rebuild found done by one before a restart.
    pub kept: u64,
    /// Devices that a scrub or the patrol made whole.
    pub healed: u64,
}

/// What the wall clock of every world shows.
const NOW_UNIX_S: u64 = 1_700_000_000;

/// What became of a device that is no member any more.
#[derive(Clone)]
pub(crate) struct Retired {
    pub image: Image,
    /// Whether the array has gone on without it, so that it must be refused.
    pub excluded: bool,
}

/// How much was hurt since a device was last whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Hurt {
    /// Nothing.
    #[default]
    Nothing,
    /// Superblocks, checkpoints or journal frames; in this session when so many rounds of the patrol had
    /// begun.
    Metadata { round: u64 },
    /// Anything.
    Anything,
}

/// Devices that may be hurt, failed, or missing: never more than the code tolerates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Standing {
    /// It has lost content since it was last put in place whole: only a replacement clears it.
    pub tainted: bool,
    /// What of it was hurt, and which of all damage in this world that was.
    pub hurt: Hurt,
    pub hurt_at: u64,
    /// It took the place of another device, and its rebuild was not answered yet.
    pub replacement: bool,
    /// It is not there any more.
    pub lost: bool,
    /// The array has gone on without what is on it.
    pub excluded: bool,
}

/// See the module's documentation.
pub(crate) struct Machine {
    pub swarm: Swarm,
    pub rng: Rng,
    /// Which parts of the world happen.
    pub course: Course,
    pub world: Shared,
    pub oracle: Oracle,
    pub suspects: BTreeSet<u16>,
    /// Damage done so far.
    pub hurts: u64,
    /// The next power cut comes because this device was made whole.
    pub mended: Option<u16>,
    pub standing: Vec<Standing>,
    pub retired: Vec<Option<Retired>>,
    pub serial: u32,
    pub outcome: Outcome,
    pub verbose: bool,
    pub now_ns: u64,
    /// Whether the volume may hold any of several survivors that nobody has read yet.
    pub unread: bool,
    /// The next power cut is followed by damage beyond the promise.
    pub last_cut: bool,
    /// Damage is beyond the promise now: requests may fail.
    pub ruined: bool,
    /// And the operator has insisted on a start.
    pub forced: bool,
}

impl Machine {
    pub(crate) fn new(seed: u64, pinned: Pinned, verbose: bool, mode: Mode) -> Result<Self, Violation> {
        let mut rng = Rng::new(seed);
        let mut swarm = Swarm::draw(&mut rng, pinned);
        match &mode {
            Mode::Drawn | Mode::Noted(_) if verbose => eprintln!("{swarm:#?}"),
            Mode::Drawn | Mode::Noted(_) => {}
            Mode::Reduced(_, reduction) => {
                for setting in &reduction.settings {
                    setting.turn(&mut swarm);
                }
                if verbose {
                    eprintln!("{}", swarm.summary());
                }
            }
        }
        Self::of(swarm, rng, verbose, mode)
    }

    /// A machine with a new, empty array.
    pub fn of(swarm: Swarm, mut rng: Rng, verbose: bool, mode: Mode) -> Result<Self, Violation> {
        let sizes = swarm.sizes();
        let mut world = World::new(&sizes, swarm.pace, rng.fork());
        let uuid = ArrayUuid::new(*b"simulated array.");
        let new = NewArray { uuid, name: "sim".into(), nonce: mix(1), created_unix_s: 0 };
        create(&mut world, swarm.config, &new).map_err(|e| violation!("creation failed: {e}"))?;
        let n = swarm.config.geometry.device_count();
        let data = swarm.config.chunk_offset(block::ChunkIndex::new(1));
        world.set_data_start(
            (0..sizes.len()).map(|i| if i < n { data } else { format::LOG_START_BYTES }).collect(),
            n,
        );
        let sectors = swarm.config.volume_bytes() / block::SECTOR_BYTES;
        Ok(Self {
            oracle: Oracle::new(sectors as usize),
            world: Shared::new(world),
            suspects: BTreeSet::new(),
            hurts: 0,
            mended: None,
            standing: vec![Standing::default(); sizes.len()],
            retired: vec![None; sizes.len()],
            serial: 1000,
            outcome: Outcome::default(),
            now_ns: 0,
            unread: false,
            last_cut: false,
            ruined: false,
            forced: false,
            course: Course { session: 0, mode },
            swarm,
            rng,
            verbose,
        })
    }

    pub fn say(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            eprintln!("[{:>6}] {}", self.world.look().events(), what());
        }
    }

    /// Devices that the code tolerates.
    pub fn budget(&self) -> usize {
        self.swarm.config.geometry.parity_count()
    }

    pub fn member_count(&self) -> u16 {
        self.standing.len() as u16
    }

    /// A device that may be hurt now: one that is anyway, or another while there is room for it.
    pub fn draw_victim(&mut self) -> Option<u16> {
        if !self.swarm.faults || self.world.look().has_blackout() {
            return None;
        }
        if self.suspects.len() < self.budget() && self.rng.chance(2, 3) {
            return Some(self.rng.below(u64::from(self.member_count())) as u16);
        }
        let suspects: Vec<u16> = self.suspects.iter().copied().collect();
        (!suspects.is_empty()).then(|| self.rng.pick(&suspects))
    }

    /// More devices than the code tolerates stop answering for a while.
    pub(crate) fn plan_blackout(&mut self) {
        let mut devices: Vec<u16> = (0..self.member_count()).collect();
        self.rng.shuffle(&mut devices);
        let count = self.rng.within(self.budget() as u64 + 1, u64::from(self.member_count()));
        devices.truncate(count as usize);
        let events = self.rng.below(self.swarm.requests * 24 + 100);
        if self.keeps(Part::Cut) {
            self.say(|| format!("devices {devices:?} will stop answering after {events} operations"));
        }
        self.plan_cut(events, Some(devices));
    }

    /// After a blackout: whom did the array take out of service for good? No more than the code tolerates.
    pub(crate) fn note_excluded(&mut self) -> Result<(), Violation> {
        let found: Vec<Superblock> = (0..self.member_count())
            .filter_map(|dev| superblock_of(self.world.look().disk(dev).durable()))
            .collect();
        let Some(newest) = found.iter().max_by_key(|s| (s.epoch, s.config_seq)) else {
            return Err(violation!("no superblock is left after a blackout"));
        };
        let copies =
            found.iter().filter(|s| (s.epoch, s.config_seq) == (newest.epoch, newest.config_seq)).count();
        for (dev, entry) in (0..self.member_count()).zip(&newest.members) {
            if entry.state == MemberState::Failed {
                self.say(|| format!("device {dev} was taken out of service in the blackout"));
                self.suspects.insert(dev);
                // With fewer copies the loss of devices can make it undone; nobody was told.
                self.standing[usize::from(dev)].excluded = copies > self.budget();
                self.standing[usize::from(dev)].tainted = true;
            }
        }
        if self.suspects.len() > self.budget() {
            return Err(violation!(
                "more members out of service than the code tolerates: {:?}",
                self.suspects
            ));
        }
        Ok(())
    }

    pub(crate) fn cut_power(&mut self) {
        let tear = self.swarm.tear;
        self.say(|| format!("power off, {tear:?}"));
        self.world.change().power_cycle(tear);
        // Superblocks that name all there is stand in for the frame that would have come next.
        if self.last_cut && !self.is_confirmed() {
            self.oracle.crashed_before_ruin();
        } else {
            self.oracle.crashed();
        }
        self.unread = true;
        self.outcome.crashes += 1;
    }

    /// Power is cut, and may take devices with it.
    pub fn power_off(&mut self) {
        self.cut_power();
        if let Some(dev) = self.mended.take() {
            return self.lose_others(dev);
        }
        if !self.swarm.faults || !self.rng.chance(self.swarm.odds.loss, 1000) || !self.keeps(Part::Loss) {
            return;
        }
        for _ in 0..self.rng.within(1, self.budget() as u64) {
            if let Some(dev) = self.draw_victim() {
                self.lose(dev);
            }
        }
    }

    pub fn lose(&mut self, dev: u16) {
        self.say(|| format!("device {dev} is lost"));
        self.suspects.insert(dev);
        self.standing[usize::from(dev)].lost = true;
        self.standing[usize::from(dev)].tainted = true;
    }

    /// Assembles the array, power cuts during that included.
    pub fn power_on(&mut self) -> Result<Array<Shared>, Violation> {
        let trouble = self.keeps(Part::Trouble);
        loop {
            let recrash = self.swarm.crashes && self.rng.chance(self.swarm.odds.recrash, 1000) && trouble;
            // An assembly that ends for want of room is like one that a power cut ends.
            if self.swarm.faults && self.swarm.crashes && self.rng.chance(1, 16) && trouble {
                self.fill_up();
            }
            if let Some((array, report)) = self.assemble(recrash)? {
                self.outcome.replayed += report.replayed;
                self.outcome.dropped += report.dropped;
                return Ok(array);
            }
            self.power_off();
        }
    }

    /// One attempt; `None` if power failed meanwhile.
    pub(crate) fn assemble(
        &mut self,
        recrash: bool,
    ) -> Result<Option<(Array<Shared>, RecoveryReport)>, Violation> {
        let arrangement = self.attach()?;
        if recrash {
            let events = self.rng.below(400);
            self.say(|| format!("power will fail {events} operations into assembly"));
            self.world.change().crash_after(events);
        }
        let trouble = self.keeps(Part::Trouble);
        if self.swarm.faults && self.rng.chance(1, 8) && trouble {
            self.trap_assembly();
        }
        let nonce = mix(self.rng.word());
        if self.swarm.config.scheme.is_elastic() && self.rng.chance(1, 4) && trouble {
            // Other classes than those that the units on the devices were filled by.
            self.swarm.options.scheme = crate::swarm::draw_scheme_options(&mut self.rng);
        }
        let result = Array::assemble(self.world.clone(), &arrangement, nonce, self.swarm.options);
        if self.world.look().is_crashed() {
            return Ok(None);
        }
        self.forget_rounds();
        if let Err(AssembleError::MemberFull { .. }) = result
            && self.world.look().lacked_room()
        {
            return Ok(None);
        }
        let (mut array, report) = result.map_err(|e| violation!("assembly failed: {e}"))?;
        array.engine().set_unix_time(NOW_UNIX_S);
        for dev in 0..self.member_count() {
            // From here on the superblocks of the others say that this one is out.
            if !array.engine_ref().health().is_writable(DevIndex::new(dev)) {
                self.standing[usize::from(dev)].excluded = true;
            }
        }
        self.say(|| {
            let engine = array.engine_ref();
            let states: Vec<MemberState> =
                (0..self.member_count()).map(|dev| Self::state_of(&array, dev)).collect();
            let (place, next) = (engine.checkpoint_place(), engine.journal().next_seq());
            format!("assembled: {report:?}, {place:?}, next record {next:?}, members {states:?}")
        });
        Ok(Some((array, report)))
    }

    /// Power fails `events` operations into assembly, or right after it.
    pub fn cut_assembly(&mut self, events: u64) -> Result<(), Violation> {
        let arrangement = self.attach()?;
        self.world.change().crash_after(events);
        let nonce = mix(self.rng.word());
        let result = Array::assemble(self.world.clone(), &arrangement, nonce, self.swarm.options);
        if !self.world.look().is_crashed() {
            result.map_err(|e| violation!("assembly failed: {e}"))?;
        }
        self.power_off();
        Ok(())
    }

    /// There is no room where a device lies, for a while. Nothing is wrong with it, so it can be any one.
    pub fn fill_up(&mut self) {
        let dev = self.rng.below(u64::from(self.member_count())) as u16;
        let trap = Trap::NoRoom { dev, count: self.rng.pick(&[1, 5, 40, 400]) };
        self.say(|| format!("trap: {trap:?}"));
        self.world.change().set_trap(trap);
    }

    fn trap_assembly(&mut self) {
        let Some(dev) = self.draw_victim() else { return };
        let trap = match self.rng.below(4) {
            0 => Trap::Read { dev, count: self.rng.within(1, 50) as u32 },
            1 => Trap::Write { dev },
            2 => Trap::Flush { dev },
            _ => Trap::Gone { dev },
        };
        self.say(|| format!("trap during assembly: {trap:?}"));
        self.hurt(dev, Hurt::Anything);
        self.world.change().set_trap(trap);
    }

    /// Which disks are there, and what the array makes of their superblocks, in any order.
    fn attach(&mut self) -> Result<array::Arrangement, Violation> {
        let mut found: Vec<(u16, bool, Superblock)> = Vec::new();
        for dev in 0..self.member_count() {
            let standing = self.standing[usize::from(dev)];
            let absent = standing.lost || (self.suspects.contains(&dev) && self.rng.chance(1, 6));
            if !absent && let Some(superblock) = superblock_of(self.world.look().disk(dev).durable()) {
                found.push((dev, standing.excluded, superblock));
            }
            // A disk that left the array earlier is plugged in again, perhaps in addition.
            if let Some(Retired { image, excluded: true }) = &self.retired[usize::from(dev)]
                && self.rng.chance(1, 3)
                && let Some(superblock) = superblock_of(image)
            {
                found.push((dev, true, superblock));
            }
            // So is a lost one, whose absence the array has meanwhile noted.
            if standing.lost
                && standing.excluded
                && self.rng.chance(1, 2)
                && let Some(superblock) = superblock_of(self.world.look().disk(dev).durable())
            {
                found.push((dev, true, superblock));
            }
        }
        self.say(|| {
            let one = |(dev, old, s): &(u16, bool, Superblock)| {
                format!(
                    "{dev}{} serial {} epoch {} number {}",
                    if *old { " (stale)" } else { "" },
                    s.serial,
                    s.epoch,
                    s.config_seq
                )
            };
            format!("found {}", found.iter().map(one).collect::<Vec<_>>().join("; "))
        });
        self.rng.shuffle(&mut found);
        let superblocks: Vec<Superblock> =
            found.iter().map(|(_, _, superblock)| superblock.clone()).collect();
        let arrangement =
            arrange(&superblocks).map_err(|e| violation!("the members cannot be arranged: {e}"))?;
        for dev in 0..self.member_count() {
            let place = arrangement.places[usize::from(dev)];
            match place.map(|place| &found[place]) {
                Some((of, _, _)) if *of != dev => {
                    return Err(violation!("device {of} was put in the place of {dev}"));
                }
                Some((_, true, superblock)) => {
                    return Err(violation!(
                        "a stale device was accepted as device {dev}: its superblock has number {}, the newest {}",
                        superblock.config_seq,
                        arrangement.newest.config_seq
                    ));
                }
                Some(_) => self.world.change().set_present(dev, true),
                None if self.suspects.contains(&dev) => self.world.change().set_present(dev, false),
                None => return Err(violation!("device {dev} has no fault, and was refused")),
            }
        }
        Ok(arrangement)
    }

    /// A member as the array sees it.
    pub fn state_of(array: &Array<Shared>, dev: u16) -> MemberState {
        array.engine_ref().health().state(DevIndex::new(dev))
    }
}
