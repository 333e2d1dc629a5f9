//! The machine of a world: its members, what became of those that are none any more, power on and off.

use crate::Rng;
use crate::course::{Course, Mode, Part};
use crate::disk::{BLOCK_BYTES, Block, Image};
use crate::oracle::Oracle;
use crate::port::{Shard, Shared, superblock_of};
use crate::swarm::{Pinned, Swarm};
use crate::trap::Trap;
use crate::violation;
use crate::violation::Violation;
use crate::world::World;
use array::{Arrangement, Array, AssembleError, Health, NewArray, RecoveryReport, create_shards};
use block::{DevIndex, Paired, Random as _, SECTOR_BYTES, Slice, mix};
use format::{ArrayConfig, ArrayUuid, MemberState, Superblock};
use std::borrow::Cow;
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
    /// Incremental checkpoints written beside full ones.
    pub beside: u64,
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
    /// Members that another device succeeded.
    pub succeeded: u64,
    /// Times that an array took the room of larger devices.
    pub grown: u64,
    /// Devices that a scrub or the patrol made whole.
    pub healed: u64,
    /// Devices that came back, and were rebuilt by what they had missed.
    pub returned: u64,
    /// Times that commits were paused, or one was given up.
    pub steered: u64,
}

/// The array's UUID, which is that of its first shard.
const UUID: ArrayUuid = ArrayUuid::new(*b"simulated array.");

/// Shards of a world at most.
pub(crate) const SHARDS_MAX: usize = 4;

/// What the wall clock of every world shows.
const NOW_UNIX_S: u64 = 1_700_000_000;

/// What became of a device that is no member any more.
#[derive(Clone)]
pub(crate) struct Retired {
    pub image: Image,
    /// Whether the array has gone on without it, so that it must be refused.
    pub excluded: bool,
    /// Whether anything on it was hurt: where it comes back, that does, too.
    pub is_hurt: bool,
}

/// How much was hurt since a device was last whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Hurt {
    /// Nothing.
    #[default]
    Nothing,
    /// Superblocks, checkpoints or journal frames; in this session when so many rounds of the patrol had
    /// begun, in each shard.
    Metadata { rounds: [u64; SHARDS_MAX] },
    /// Anything.
    Anything,
}

/// A device that was cut short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stump {
    /// It is too short still.
    pub is_short: bool,
    /// No start has tried the array since.
    pub is_unseen: bool,
    /// To all shards it was in service then, and only starts that saw it short can have changed that.
    pub was_in_service: bool,
    /// The array has started without it.
    pub is_told: bool,
}

/// Devices that may be hurt, failed, or missing: never more than the code tolerates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Standing {
    /// It came back, and its rebuild was not answered yet.
    pub returned: bool,
    /// It has lost content since it was last put in place whole: only a replacement clears it.
    pub tainted: bool,
    /// What of it was hurt, and which of all damage in this world that was.
    pub hurt: Hurt,
    pub hurt_at: u64,
    /// It took the place of another device, and its rebuild was not answered yet.
    pub replacement: bool,
    /// What is retired of it is what the next device in its place holds.
    pub stranger: bool,
    /// It is not there any more.
    pub lost: bool,
    /// Shards that have gone on without what is on it: a bit each.
    pub excluded: u64,
    /// It was cut short.
    pub stump: Option<Stump>,
}

impl Standing {
    /// Of a disk that takes a place, which may be one that was hurt when it was a member.
    pub fn replacing(is_hurt: bool) -> Self {
        let hurt = if is_hurt { Hurt::Anything } else { Hurt::Nothing };
        Self { replacement: true, hurt, ..Self::default() }
    }

    /// Whether anything on the disk was hurt.
    pub fn is_hurt(&self) -> bool {
        self.hurt != Hurt::Nothing
    }

    /// Whether a shard has gone on without it.
    pub fn is_excluded(&self, shard: u16) -> bool {
        self.excluded >> shard & 1 == 1
    }

    /// A shard takes it for a new one.
    pub fn readmit(&mut self, shard: u16) {
        self.excluded &= !(1 << shard);
    }

    /// A shard has gone on without it.
    pub fn exclude(&mut self, shard: u16) {
        self.excluded |= 1 << shard;
    }
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
    /// Devices that do not answer for a while, more than the code tolerates, and until when.
    pub shelf: Option<(Vec<u16>, u64)>,
    /// Damage done so far.
    pub hurts: u64,
    /// The next power cut comes because this device was made whole.
    pub mended: Option<u16>,
    pub standing: Vec<Standing>,
    pub retired: Vec<Option<Retired>>,
    /// The member that the device on the shelf may have succeeded.
    pub succeeded: Option<u16>,
    pub outcome: Outcome,
    pub verbose: bool,
    pub now_ns: u64,
    /// Whether the volume may hold any of several survivors that nobody has read yet.
    pub unread: bool,
    /// The next power cut is followed by damage beyond the promise.
    pub last_cut: bool,
    /// That cut came when the superblocks of every shard named all there was.
    pub told: bool,
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
        let world = Shared::new(World::new(&sizes, swarm.pace, rng.fork()));
        let n = swarm.config.geometry.device_count();
        let data = swarm.config.chunk_offset(block::ChunkIndex::new(1));
        let devs = (0u16..).take(sizes.len()).map(DevIndex::new);
        let strides: Vec<u64> = devs.map(|dev| swarm.config.stride_bytes(dev)).collect();
        let starts = (0..sizes.len()).map(|i| if i < n { data } else { format::LOG_START_BYTES }).collect();
        world.change().set_data_start(starts, n);
        world.change().set_strides(&strides);
        world.change().set_room(swarm.config.shard.count, swarm.config.room_unit_bytes());
        world.change().add_shelf(sizes.iter().copied().max().unwrap_or(0));
        let sectors = usize::try_from(swarm.config.whole_volume_bytes() / SECTOR_BYTES);
        let mut machine = Self {
            oracle: Oracle::new(sectors.map_err(|_| violation!("a volume too large to be simulated"))?),
            world,
            suspects: BTreeSet::new(),
            shelf: None,
            hurts: 0,
            mended: None,
            standing: vec![Standing::default(); sizes.len()],
            retired: vec![None; sizes.len()],
            succeeded: None,
            outcome: Outcome::default(),
            now_ns: 0,
            unread: false,
            last_cut: false,
            told: false,
            ruined: false,
            forced: false,
            course: Course { session: 0, mode },
            swarm,
            rng,
            verbose,
        };
        let shards = machine.shards().into_iter();
        machine.oracle.shapes = shards.map(|shard| machine.swarm.config.sibling(shard)).collect();
        machine.create()?;
        Ok(machine)
    }

    /// The shape of a shard.
    pub fn shape_of(&self, shard: u16) -> ArrayConfig {
        self.oracle.shapes[usize::from(shard)]
    }

    /// Bytes that each device must have for all shards, main devices first.
    pub fn sizes(&self) -> Vec<u64> {
        let of = |shape: &ArrayConfig| Swarm::sizes_of(shape);
        let larger =
            |one: Vec<u64>, other: Vec<u64>| one.into_iter().zip(other).map(|(a, b)| a.max(b)).collect();
        self.oracle.shapes.iter().map(of).reduce(larger).unwrap_or_default()
    }

    /// Shards of the array.
    pub fn shard_count(&self) -> u16 {
        self.swarm.config.shard.count
    }

    /// All of them.
    pub fn shards(&self) -> Vec<u16> {
        (0..self.shard_count()).collect()
    }

    /// All of them, as bits.
    pub fn all_shards(&self) -> u64 {
        (1 << self.shard_count()) - 1
    }

    /// The UUID of a shard.
    pub fn uuid_of(&self, shard: u16) -> ArrayUuid {
        UUID.of_shard(shard)
    }

    /// A shard's slice of what is on a device.
    pub fn slice<'a>(&self, image: &'a Image, dev: u16, shard: u16) -> Cow<'a, [Option<Block>]> {
        let (shape, of) = (self.shape_of(shard), DevIndex::new(dev));
        let extent = shape.slice_extents().get(of.index()).copied().filter(|extent| extent.turns.is_some());
        let Some(extent) = extent else { return Cow::Borrowed(self.head(image, dev, shard)) };
        let bytes = u64::try_from(image.len() * BLOCK_BYTES).unwrap_or(u64::MAX);
        let block = |place: u64| usize::try_from(place).map_or(usize::MAX, |place| place / BLOCK_BYTES);
        let at = |offset: u64| image.get(block(extent.place(offset).0)).cloned().flatten();
        Cow::Owned((0..extent.bytes_within(bytes)).step_by(BLOCK_BYTES).map(at).collect())
    }

    /// What of it is in one piece: all there is before the array has grown.
    fn head<'a>(&self, image: &'a Image, dev: u16, shard: u16) -> &'a [Option<Block>] {
        let config: ArrayConfig = self.swarm.config.sibling(shard);
        let blocks = |bytes: u64| usize::try_from(bytes).map_or(usize::MAX, |bytes| bytes / BLOCK_BYTES);
        let first = blocks(config.slice_origin(DevIndex::new(dev)));
        let stride = blocks(config.stride_bytes(DevIndex::new(dev)));
        let end = if stride == 0 { image.len() } else { image.len().min(first + stride) };
        &image[first..end]
    }

    /// The newest superblock in a shard's slice of what is on a device.
    pub fn superblock_in(&self, image: &Image, dev: u16, shard: u16) -> Option<Superblock> {
        superblock_of(self.head(image, dev, shard), self.uuid_of(shard))
    }

    /// The same of what would be left of a device after a power cut at this moment.
    pub fn superblock_on(&self, dev: u16, shard: u16) -> Option<Superblock> {
        self.superblock_in(self.world.look().disk(dev).durable(), dev, shard)
    }

    /// The same of what a server finds that starts now.
    pub fn superblock_seen(&self, dev: u16, shard: u16) -> Option<Superblock> {
        self.superblock_in(self.world.look().disk(dev).view(), dev, shard)
    }

    /// Writes an empty array. If there are several shards power may fail meanwhile: then there is none, or it
    /// has all its shards.
    fn create(&mut self) -> Result<(), Violation> {
        let new = NewArray { uuid: UUID, name: "sim".into(), nonce: mix(1), created_unix_s: 0 };
        let cut = self.shard_count() > 1 && self.swarm.crashes && self.rng.chance(1, 4);
        if cut {
            let events = self.rng.below(u64::from(self.member_count() * self.shard_count()) * 12);
            self.world.change().crash_after(events);
            let done = create_shards(&mut self.world.port(0), &self.swarm.config, &new);
            self.world.change().power_cycle(self.swarm.tear);
            if done.is_err() {
                self.say(|| format!("power failed {events} operations into the creation"));
            }
            self.check_created()?;
        }
        create_shards(&mut self.world.port(0), &self.swarm.config, &new)
            .map_err(|e| violation!("creation failed: {e}"))
    }

    /// If the devices are known as members, all shards are there.
    fn check_created(&mut self) -> Result<(), Violation> {
        let plugged = self.plug_in();
        if self.arrange_shard(&plugged, 0).is_err() {
            return Ok(());
        }
        for shard in 1..self.shard_count() {
            self.arrange_shard(&plugged, shard)
                .map_err(|e| violation!("half of an array was created: shard {shard}: {e}"))?;
        }
        Ok(())
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
        let waits = self.world.look().has_blackout() || self.shelf.is_some();
        if !self.swarm.faults || waits || self.is_split() {
            return None;
        }
        if self.suspects.len() < self.budget() && self.rng.chance(2, 3) {
            return Some(self.rng.below(u64::from(self.member_count())) as u16);
        }
        let suspects: Vec<u16> = self.suspects.iter().copied().collect();
        (!suspects.is_empty()).then(|| self.rng.pick(&suspects))
    }

    /// Whether shards have given up different members, together more than one of them bears.
    pub fn is_split(&self) -> bool {
        self.suspects.len() > self.budget()
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
        (0..self.shard_count()).try_for_each(|shard| self.note_excluded_from(shard))
    }

    /// Whom did a shard?
    fn note_excluded_from(&mut self, shard: u16) -> Result<(), Violation> {
        let found: Vec<Superblock> =
            (0..self.member_count()).filter_map(|dev| self.superblock_on(dev, shard)).collect();
        let mut out = 0;
        let Some(newest) = found.iter().max_by_key(|s| s.update()) else {
            return Err(violation!("no superblock is left after a blackout"));
        };
        let copies = found.iter().filter(|s| s.update() == newest.update()).count();
        for (dev, entry) in (0..self.member_count()).zip(&newest.members) {
            if entry.state == MemberState::Failed {
                self.say(|| {
                    format!("device {dev} was taken out of service in the blackout by shard {shard}")
                });
                self.suspects.insert(dev);
                out += 1;
                // With fewer copies the loss of devices can make it undone; nobody was told.
                if copies > self.budget() {
                    self.standing[usize::from(dev)].exclude(shard);
                }
                self.standing[usize::from(dev)].tainted = true;
            }
        }
        if out > self.budget() {
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
        if self.last_cut {
            self.world.change().lay_ghosts();
        }
        self.note_crash();
    }

    /// The server is killed: the devices keep their caches, for a power cut to come.
    fn kill(&mut self) {
        self.say(|| "killed".into());
        self.world.change().kill();
        self.note_crash();
    }

    fn note_crash(&mut self) {
        let haunted = self.world.look().haunted();
        haunted.into_iter().for_each(|dev| self.hurt(dev, Hurt::Anything));
        // Superblocks that name all there is stand in for the frame that would have come next.
        self.told = self.last_cut && (0..self.shard_count()).all(|shard| self.is_confirmed(shard));
        if self.last_cut && !self.told {
            self.oracle.crashed_before_ruin();
        } else {
            self.oracle.crashed();
        }
        self.unread = true;
        self.outcome.crashes += 1;
    }

    /// Power is cut, or the server is killed; that may take devices with it.
    pub fn power_off(&mut self) {
        // From a generator of its own: worlds in which nobody is killed stay what they were before.
        if self.swarm.kills && !self.last_cut && self.rng.clone().fork().chance(1, 2) {
            self.kill();
        } else {
            self.cut_power();
        }
        self.lose_shelf();
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

    /// The device on the shelf is lost: if it has succeeded a member, that is a loss like any other.
    fn lose_shelf(&mut self) {
        let Some(dev) = self.succeeded else { return };
        let bears = self.suspects.contains(&dev) || self.suspects.len() < self.budget();
        if self.swarm.faults && bears && !self.is_split() && self.rng.clone().fork().chance(1, 3) {
            self.say(|| "the device on the shelf is lost".into());
            self.suspects.insert(dev);
            self.standing[usize::from(dev)].tainted = true;
            let shelf = self.member_count();
            let blocks = self.world.look().disk(shelf).view().len();
            self.world.change().replace(shelf, vec![None; blocks]);
            self.succeeded = None;
        }
    }

    pub fn lose(&mut self, dev: u16) {
        self.say(|| format!("device {dev} is lost"));
        self.suspects.insert(dev);
        self.standing[usize::from(dev)].lost = true;
        self.standing[usize::from(dev)].tainted = true;
    }

    /// The next device that comes to this place holds this: it was a member at another time.
    pub fn expect_stranger(&mut self, dev: u16, image: Image) {
        self.retired[usize::from(dev)] = Some(Retired { image, excluded: false, is_hurt: false });
        self.standing[usize::from(dev)].stranger = true;
    }

    /// A device is what it was before the array went on: an older copy, of which nothing may count.
    pub fn put_back(&mut self, dev: u16, before: Image) {
        self.say(|| format!("device {dev} is an older copy of itself"));
        self.world.change().replace(dev, before);
        self.suspects.insert(dev);
        self.standing[usize::from(dev)].excluded = self.all_shards();
    }

    /// Assembles the array, power cuts during that included.
    pub fn power_on(&mut self) -> Result<Vec<Shard>, Violation> {
        let trouble = self.keeps(Part::Trouble);
        self.grow_up(trouble)?;
        loop {
            let recrash = self.swarm.crashes && self.rng.chance(self.swarm.odds.recrash, 1000) && trouble;
            // An assembly that ends for want of room is like one that a power cut ends.
            if self.swarm.faults && self.swarm.crashes && self.rng.chance(1, 16) && trouble {
                self.fill_up();
            }
            if let Some(started) = self.assemble(recrash)? {
                let (shards, reports): (Vec<Shard>, Vec<RecoveryReport>) = started.into_iter().unzip();
                for report in reports {
                    self.outcome.replayed += report.replayed;
                    self.outcome.dropped += report.dropped;
                }
                return Ok(shards);
            }
            self.power_off();
        }
    }

    /// One attempt; `None` if power failed meanwhile.
    pub(crate) fn assemble(
        &mut self,
        recrash: bool,
    ) -> Result<Option<Vec<(Shard, RecoveryReport)>>, Violation> {
        self.cut_short_or_mend();
        let arrangements = self.attach()?;
        if recrash {
            let events = self.rng.below(400 * u64::from(self.shard_count()));
            self.say(|| format!("power will fail {events} operations into assembly"));
            self.world.change().crash_after(events);
        }
        let trouble = self.keeps(Part::Trouble);
        if self.swarm.faults && self.rng.chance(1, 8) && trouble {
            self.trap_assembly();
        }
        let nonces: Vec<u64> = arrangements.iter().map(|_| mix(self.rng.word())).collect();
        if self.swarm.config.scheme.is_elastic() && self.rng.chance(1, 4) && trouble {
            // Other classes than those that the units on the devices were filled by.
            self.swarm.options.scheme = crate::swarm::draw_scheme_options(&mut self.rng);
        }
        // Some may have grown when power failed.
        self.find_sizes(&arrangements)?;
        let mut started = Vec::new();
        for ((shard, arrangement), nonce) in (0..).zip(&arrangements).zip(nonces) {
            let Some(one) = self.assemble_shard(shard, arrangement, nonce)? else { return Ok(None) };
            started.push(one);
        }
        self.note_started(&arrangements);
        self.forget_rounds();
        Ok(Some(started))
    }

    /// A shard is assembled: from here on the superblocks of the others say who is out.
    fn note_who_is_out(&mut self, shard: u16, health: &Health) {
        for dev in 0..self.member_count() {
            if !health.is_writable(DevIndex::new(dev)) {
                self.standing[usize::from(dev)].exclude(shard);
            }
        }
    }

    /// The devices as the slices of a shard.
    pub fn devices_of(&self, shard: u16) -> Slice<crate::port::Port> {
        Slice::new(self.world.port(shard), self.shape_of(shard).slice_extents())
    }

    /// One shard; `None` if power failed meanwhile, or there was no room.
    fn assemble_shard(
        &mut self,
        shard: u16,
        arrangement: &Arrangement,
        nonce: u64,
    ) -> Result<Option<(Shard, RecoveryReport)>, Violation> {
        let devices = Paired::new(self.devices_of(shard));
        let result = Array::assemble(devices, arrangement, nonce, self.swarm.options);
        if self.world.look().is_crashed() {
            return Ok(None);
        }
        if let Err(AssembleError::MemberFull { .. }) = result
            && self.world.look().lacked_room()
        {
            return Ok(None);
        }
        let (mut array, report) = result.map_err(|e| violation!("assembly failed: {e}"))?;
        if report.forced.is_some() {
            return Err(violation!("a start counts as forced: {report:?}"));
        }
        self.note_size(array.engine_ref().store().config)?;
        array.engine().set_unix_time(NOW_UNIX_S);
        self.note_who_is_out(shard, array.engine_ref().health());
        self.say(|| {
            let engine = array.engine_ref();
            let states: Vec<MemberState> =
                (0..self.member_count()).map(|dev| engine.health().state(DevIndex::new(dev))).collect();
            let (place, next) = (engine.checkpoint_place(), engine.journal().next_seq());
            let of = if self.shard_count() > 1 { format!(" shard {shard}") } else { String::new() };
            format!("assembled{of}: {report:?}, {place:?}, next record {next:?}, members {states:?}")
        });
        Ok(Some((array, report)))
    }

    /// Power fails `events` operations into assembly, or right after it; a device may be away meanwhile, if
    /// no other is hurt.
    pub fn cut_assembly(&mut self, events: u64, without: Option<u16>) -> Result<(), Violation> {
        let without = without.filter(|dev| self.suspects.iter().all(|suspect| suspect == dev));
        self.suspects.extend(without);
        without.into_iter().for_each(|dev| self.standing[usize::from(dev)].lost = true);
        let arrangements = self.attach()?;
        without.into_iter().for_each(|dev| self.standing[usize::from(dev)].lost = false);
        self.find_sizes(&arrangements)?;
        self.world.change().crash_after(events);
        for (shard, arrangement) in (0..).zip(&arrangements) {
            let nonce = mix(self.rng.word());
            let result = Array::assemble(self.devices_of(shard), arrangement, nonce, self.swarm.options);
            if !self.world.look().is_crashed() {
                let (mut array, _) = result.map_err(|e| violation!("assembly failed: {e}"))?;
                self.note_who_is_out(shard, array.engine().health());
            }
        }
        if !self.world.look().is_crashed() {
            self.note_started(&arrangements);
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

    pub(crate) fn trap_assembly(&mut self) {
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
}
