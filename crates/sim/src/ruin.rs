//! Damage beyond what the code tolerates, at the end of a world: m + 1 members and more, in data and
//! metadata, with a power cut and the loss of members, before and in the middle of recovery.
//!
//! What may come of it is little: the array is refused; or a read fails; or it gives what a read may give.
//! What it must not be is wrong, older than what is known on disk to have been durable, or called whole when
//! it is not.
//!
//! What is known on disk is the oracle's *confirmed* content: durable, with a flush after that, so that a
//! frame says so; or all that is durable, if the superblocks name it. And one frame that says so must be
//! left; of the very last one nothing else can tell. So must one of the members that were in service.
//!
//! Shards know nothing of each other: each is damaged, started and looked at by itself.

use crate::course::Part;
use crate::disk::{BLOCK_BYTES, Block, bytes_of};
use crate::machine::{Hurt, Machine, Standing};
use crate::port::{Shard, superblock_of};
use crate::session::Session;
use crate::swarm::is_resync;
use crate::violation;
use crate::violation::Violation;
use array::{Arrangement, Array, AssembleError, DirtyDegraded, OlderState, RecoveryReport, arrange};
use block::{ChunkIndex, DevIndex, Seq};
use block::{Paired, Random as _, mix};
use format::{
    BlockExpect, CheckpointHeader, CheckpointKind, FormatError, FrameExpect, Superblock,
    decode_checkpoint_header, decode_frame,
};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// What is damaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Harm {
    /// The header of the newest checkpoint.
    NewestCheckpoint,
    /// The header of the first incremental checkpoint with the newest base, if others lie behind it.
    Chain,
    /// Any blocks of the checkpoint areas.
    Checkpoints,
    /// The newer copy of the superblock.
    NewestSuperblock,
    /// Both copies.
    Superblocks,
    /// Frames, wherever they are, but for the witness.
    Frames,
    /// Chunks.
    Chunks,
}

/// Who is left to tell what was durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Spared {
    /// A frame, see [`Machine::witness`].
    Witness,
    /// The superblocks of an orderly stop.
    Superblocks,
}

const HARMS: [Harm; 8] = [
    Harm::NewestCheckpoint,
    Harm::NewestCheckpoint,
    Harm::Checkpoints,
    Harm::NewestSuperblock,
    Harm::Superblocks,
    Harm::Frames,
    Harm::Frames,
    Harm::Chunks,
];

/// Starts that are tried, power cuts in between.
const ATTEMPTS_MAX: u64 = 4;

/// Kinds of damage before one of them.
const HARMS_MAX: u64 = 3;
/// Steps of one attempt, as they are counted: its harms, and the start.
const STEPS_OF_ATTEMPT: u64 = 10;

/// A frame: device and block of the shard's slice of it.
type Place = (u16, usize);

impl Machine {
    /// See the module's documentation.
    pub fn ruin(&mut self) -> Result<(), Violation> {
        // Who is a member is decided before anything is damaged.
        self.swarm.succeeds = false;
        if self.succeeded.is_some() {
            self.attach()?;
        }
        self.ruined = true;
        for shard in 0..self.shard_count() {
            self.forced = false;
            self.ruin_shard(shard)?;
            self.world.change().power_cycle(crate::disk::Tear::LoseAll);
        }
        Ok(())
    }

    fn ruin_shard(&mut self, shard: u16) -> Result<(), Violation> {
        let mut lost = BTreeSet::new();
        if self.rng.chance(1, 2) && self.keeps(Part::Loss) {
            // As many as the code tolerates, besides those that are gone anyway; now and then one more.
            let most = self.budget() as u64 + u64::from(self.rng.chance(1, 8));
            for _ in 0..self.rng.within(1, most) {
                lost.insert(self.rng.below(u64::from(self.member_count())) as u16);
            }
        }
        self.keep_who_knows(shard, &mut lost);
        // After an orderly stop the superblocks tell as much as the last frame does: one of the two is
        // spared. Those that only name what was flushed last tell more.
        let stopped = self.newest_superblock(shard).is_some_and(|newest| newest.clean);
        // What they told when power failed counts, whoever was lost with it.
        let told = if stopped { self.rng.chance(2, 3) } else { self.told || self.is_confirmed(shard) };
        let spared = if told { Spared::Superblocks } else { Spared::Witness };
        self.say(|| format!("beyond the promise: devices {lost:?} are lost, {spared:?} spared"));
        if spared == Spared::Superblocks && self.rng.chance(1, 2) {
            // Nothing but them is left to tell.
            let all: Vec<u16> = (0..self.member_count()).collect();
            self.damage(shard, Harm::NewestCheckpoint, &all, 1000, &[]);
            self.damage(shard, Harm::Frames, &all, 1000, &[]);
        }
        let first = u64::from(shard) * ATTEMPTS_MAX * STEPS_OF_ATTEMPT;
        for attempt in 0..ATTEMPTS_MAX {
            let last = attempt + 1 == ATTEMPTS_MAX;
            for harm in 0..self.rng.within(u64::from(attempt == 0), HARMS_MAX) {
                if self.enter(Part::Step(first + attempt * STEPS_OF_ATTEMPT + harm)) {
                    self.harm(shard, spared, &lost);
                }
            }
            self.enter(Part::Step(first + attempt * STEPS_OF_ATTEMPT + HARMS_MAX));
            // Without a journal a power cut beside damage is not promised to be noticed.
            let recrash = !last && !is_resync(&self.swarm.config) && self.rng.chance(1, 3);
            let recrash = recrash && self.keeps(Part::Trouble);
            match self.start_ruined(shard, &lost, recrash, OlderState::Refuse)? {
                Start::Crashed => {
                    self.say(|| "power failed during recovery".into());
                    self.world.change().power_cycle(self.swarm.tear);
                }
                Start::Refused { for_state } => return self.force(shard, &lost, for_state),
                Start::Running(array, _) => return self.look_ruined(shard, *array, &lost),
            }
        }
        Ok(())
    }

    /// One must be left who holds a copy of the last frame, and one whose superblock is the newest: a member
    /// that was taken out of service does not know of it, and what came after is on the others alone.
    fn keep_who_knows(&self, shard: u16, lost: &mut BTreeSet<u16>) {
        let newest = self.newest_superblock(shard).map(|superblock| superblock.update());
        let told: Vec<u16> = (0..self.member_count())
            .filter(|&dev| {
                let superblock = self.superblock_on(dev, shard);
                superblock.map(|superblock| superblock.update()) == newest
            })
            .collect();
        let witnesses: Vec<u16> = self.witness(shard).into_iter().map(|(dev, _)| dev).collect();
        for holders in [told, witnesses] {
            let standing: Vec<u16> =
                holders.into_iter().filter(|&dev| !self.standing[usize::from(dev)].lost).collect();
            if let Some(first) = standing.first().filter(|_| standing.iter().all(|dev| lost.contains(dev))) {
                lost.remove(first);
            }
        }
    }

    /// Damages some members in one way.
    fn harm(&mut self, shard: u16, spared: Spared, lost: &BTreeSet<u16>) {
        let mut harm = self.rng.pick(&HARMS);
        // From a generator of its own: worlds stay what they were before this was drawn.
        if harm == Harm::NewestCheckpoint && self.rng.clone().fork().chance(1, 3) {
            harm = Harm::Chain;
        }
        if harm == Harm::Chunks && is_resync(&self.swarm.config) {
            harm = Harm::Checkpoints; // chunks that differ are what counts after an unclean stop
        }
        if is_resync(&self.swarm.config)
            && matches!(harm, Harm::NewestSuperblock | Harm::Superblocks)
            && self.suspects.iter().any(|&dev| self.standing[usize::from(dev)].hurt == Hurt::Anything)
        {
            harm = Harm::Checkpoints; // so do those that had rotted, if the orderly stop is forgotten
        }
        if spared == Spared::Superblocks && matches!(harm, Harm::NewestSuperblock | Harm::Superblocks) {
            harm = Harm::Frames;
        }
        let mut victims: Vec<u16> = (0..self.member_count()).collect();
        self.rng.shuffle(&mut victims);
        victims.truncate(self.rng.within(1, u64::from(self.member_count())) as usize);
        if spared == Spared::Witness && matches!(harm, Harm::NewestSuperblock | Harm::Superblocks) {
            let keeper = self.keeper(shard, lost);
            victims.retain(|&dev| {
                Some(dev) != keeper || (harm == Harm::NewestSuperblock && self.has_both(shard, dev))
            });
        }
        let mut permille = self.rng.pick(&[1000, 1000, 500, 50]);
        if harm == Harm::Chain {
            (victims, permille) = ((0..self.member_count()).collect(), 1000); // a copy that is left tells
        }
        self.say(|| format!("harm: {harm:?} on {victims:?}, {permille} in 1000"));
        let witness = if spared == Spared::Witness { self.witness(shard) } else { Vec::new() };
        self.damage(shard, harm, &victims, permille, &witness);
    }

    /// The member that is left with a copy of the last frame: it must be known as a member, or it tells
    /// nobody.
    fn keeper(&self, shard: u16, lost: &BTreeSet<u16>) -> Option<u16> {
        let holders = self.witness(shard).into_iter().map(|(dev, _)| dev);
        holders.into_iter().find(|dev| !lost.contains(dev) && !self.standing[usize::from(*dev)].lost)
    }

    /// Whether both copies of a member's superblock can be read.
    fn has_both(&self, shard: u16, dev: u16) -> bool {
        let world = self.world.look();
        let slice = self.slice(world.disk(dev).durable(), dev, shard);
        (0..2).all(|copy| Superblock::decode(bytes_of(&slice[copy]), copy).is_ok())
    }

    /// Flips a bit in a share of the blocks that a kind of harm may hit, but for `spared`.
    fn damage(&mut self, shard: u16, harm: Harm, victims: &[u16], permille: u64, spared: &[Place]) {
        for &dev in victims {
            let (shape, of) = (self.shape_of(shard), DevIndex::new(dev));
            for block in self.targets(shard, harm, dev) {
                let spare = spared.contains(&(dev, block)) || !self.rng.chance(permille, 1000);
                if !spare {
                    let bit = self.rng.below(8) as u32;
                    let offset = (block * BLOCK_BYTES) as u64 + self.rng.below(BLOCK_BYTES as u64);
                    self.world.change().disk_mut(dev).flip(shape.place_on(of, offset), bit);
                }
            }
        }
    }

    /// Blocks of a shard's slice of a device that a kind of harm may hit.
    fn targets(&self, shard: u16, harm: Harm, dev: u16) -> Vec<usize> {
        let config = self.shape_of(shard);
        let is_main = usize::from(dev) < config.geometry.device_count();
        let block = |offset: u64| offset as usize / BLOCK_BYTES;
        let range = |first: u64, count: u32| block(first)..block(first) + count as usize;
        let world = self.world.look();
        let image = &*self.slice(world.disk(dev).durable(), dev, shard);
        match harm {
            Harm::NewestSuperblock => {
                let newest =
                    superblock_of(image, self.uuid_of(shard)).map_or(0, |superblock| superblock.config_seq);
                vec![(newest % 2) as usize]
            }
            Harm::Superblocks => vec![0, 1],
            Harm::NewestCheckpoint | Harm::Chain | Harm::Checkpoints | Harm::Chunks if !is_main => {
                let chunks = range(config.log_offset(ChunkIndex::new(1)), config.log_blocks);
                if harm == Harm::Chunks { chunks.collect() } else { Vec::new() }
            }
            Harm::NewestCheckpoint => headers(image, dev, &config, self.uuid_of(shard))
                .into_iter()
                .max_by_key(|(_, header)| (header.epoch, header.number))
                .map(|(at, _)| at)
                .into_iter()
                .collect(),
            Harm::Chain => {
                let mut chain = headers(image, dev, &config, self.uuid_of(shard));
                chain.retain(|(_, header)| header.kind == CheckpointKind::Incremental);
                chain.sort_by_key(|(_, header)| (header.epoch, header.number));
                let newest = chain.pop().map(|(_, header)| header.base);
                chain
                    .into_iter()
                    .find(|(_, header)| Some(header.base) == newest)
                    .map(|(at, _)| at)
                    .into_iter()
                    .collect()
            }
            Harm::Checkpoints => {
                let areas = (0..2).flat_map(|area| range(config.full_offset(area, 0), config.full_blocks));
                let areas = areas.chain(range(config.incremental_offset(0), config.incremental_blocks));
                areas.chain(range(config.page_offset(0), config.page_blocks)).collect()
            }
            Harm::Frames if is_main => range(config.journal_offset(0), config.journal_blocks).collect(),
            Harm::Frames => {
                let region = range(config.log_offset(ChunkIndex::new(1)), config.log_blocks);
                region.filter(|&at| bytes_of(&image[at]).starts_with(b"ELSTFRAM")).collect()
            }
            Harm::Chunks => {
                let chunk_blocks = config.geometry.chunk_bytes() / BLOCK_BYTES;
                let first = block(config.chunk_offset(ChunkIndex::new(1)));
                (first..first + config.chunks_per_device as usize * chunk_blocks).collect()
            }
        }
    }

    fn newest_superblock(&self, shard: u16) -> Option<Superblock> {
        let there = (0..self.member_count()).filter(|&dev| !self.standing[usize::from(dev)].lost);
        let each = there.filter_map(|dev| self.superblock_on(dev, shard));
        each.max_by_key(|superblock| superblock.update())
    }

    /// The copies of a frame that says most of what is durable, of those that are not lost anyway: one of
    /// them must be left, or nothing can tell.
    fn witness(&self, shard: u16) -> Vec<Place> {
        let Some(newest) = self.newest_superblock(shard) else { return Vec::new() };
        let world = self.world.look();
        let slice = |dev| self.slice(world.disk(dev).durable(), dev, shard);
        let images: Vec<Cow<'_, [Option<Block>]>> = (0..self.member_count()).map(slice).collect();
        let mut frames: Vec<((Seq, Seq), Place)> = Vec::new();
        let there = |&(dev, _): &(u16, &Cow<'_, [Option<Block>]>)| !self.standing[usize::from(dev)].lost;
        for (dev, image) in (0u16..).zip(&images).filter(there) {
            for at in self.targets(shard, Harm::Frames, dev) {
                if let Some(frame) = self.frame_at(&newest, dev, at, bytes_of(&image[at])) {
                    frames.push((frame, (dev, at)));
                }
            }
        }
        let most = frames.iter().map(|(frame, _)| *frame).max();
        frames.into_iter().filter(|(frame, _)| Some(*frame) == most).map(|(_, place)| place).collect()
    }

    /// Whether the superblocks name all that any frame holds: the array was idle after the last flush. More
    /// members say so than may be lost now: the round of superblocks may have been cut short, and what it was
    /// begun on may be gone in the same instant.
    pub fn is_confirmed(&self, shard: u16) -> bool {
        let Some(newest) = self.newest_superblock(shard).filter(|_| !is_resync(&self.swarm.config)) else {
            return false;
        };
        let world = self.world.look();
        let last_on = |dev: u16| {
            let image = self.slice(world.disk(dev).durable(), dev, shard);
            let frames = self.targets(shard, Harm::Frames, dev).into_iter();
            frames.filter_map(|at| self.last_of_frame(&newest, dev, at, bytes_of(&image[at]))).max()
        };
        let last = (0..self.member_count()).filter_map(last_on).max();
        let says_so = |dev: &u16| {
            let standing = self.standing[usize::from(*dev)];
            let superblock = self.superblock_on(*dev, shard);
            let names_all = superblock.is_some_and(|found| {
                found.epoch == newest.epoch && last.is_none_or(|last| last <= found.durable_through)
            });
            !standing.lost && !standing.replacement && names_all
        };
        (0..self.member_count()).filter(says_so).count() > self.budget()
    }

    /// What a frame says is durable, and its first record.
    fn frame_at(&self, newest: &Superblock, dev: u16, at: usize, bytes: &[u8]) -> Option<(Seq, Seq)> {
        self.decode_frame_at(newest, dev, at, bytes).map(|frame| (frame.flushed_through, frame.first_seq))
    }

    fn last_of_frame(&self, newest: &Superblock, dev: u16, at: usize, bytes: &[u8]) -> Option<Seq> {
        let frame = self.decode_frame_at(newest, dev, at, bytes)?;
        Some(Seq::new((frame.first_seq.get() + frame.records.len() as u64).saturating_sub(1)))
    }

    fn decode_frame_at(
        &self,
        newest: &Superblock,
        dev: u16,
        at: usize,
        bytes: &[u8],
    ) -> Option<format::Frame> {
        let config = newest.config;
        let is_main = usize::from(dev) < config.geometry.device_count();
        let first = if is_main { config.journal_offset(0) } else { config.log_offset(ChunkIndex::new(1)) };
        let block = (at - first as usize / BLOCK_BYTES) as u32 + u32::from(!is_main);
        let (array, epoch, nonce) = (newest.array, newest.epoch, newest.nonce);
        let expect = FrameExpect { array, epoch, nonce, dev: DevIndex::new(dev), block };
        decode_frame(bytes, &expect).ok()
    }

    /// One attempt at a start. Refusals are right, whatever they say. Members that were out of service know
    /// nothing of what came later, nor does a disk that was one once and is being put in a place: without any
    /// other nobody can tell.
    fn start_ruined(
        &mut self,
        shard: u16,
        lost: &BTreeSet<u16>,
        recrash: bool,
        older_state: OlderState,
    ) -> Result<Start, Violation> {
        let knows = |standing: &Standing| !standing.is_excluded(shard) && !standing.replacement;
        let found = self.found(shard, lost);
        if !found.iter().any(|(dev, _)| knows(&self.standing[usize::from(*dev)])) {
            return Ok(Start::Refused { for_state: false });
        }
        self.start_with(shard, lost, recrash, older_state)
    }

    /// The same by whoever is left.
    fn start_with(
        &mut self,
        shard: u16,
        lost: &BTreeSet<u16>,
        recrash: bool,
        older_state: OlderState,
    ) -> Result<Start, Violation> {
        let Some(arrangement) = self.attach_ruined(shard, lost, older_state) else {
            return Ok(Start::Refused { for_state: false });
        };
        if recrash {
            let events = self.rng.below(400);
            self.world.change().crash_after(events);
        }
        let nonce = mix(self.rng.word());
        let result =
            Array::assemble(Paired::new(self.devices_of(shard)), &arrangement, nonce, self.swarm.options);
        if self.world.look().is_crashed() {
            return Ok(Start::Crashed);
        }
        // A cut that did not come must not come later.
        self.world.change().crash_never();
        match result {
            Ok((array, report)) => {
                self.say(|| format!("assembled: {report:?}"));
                Ok(Start::Running(Box::new(array), Box::new(report)))
            }
            Err(error) => {
                self.say(|| format!("refused: {error}"));
                let for_state = matches!(error, AssembleError::StateLost(_) | AssembleError::DirtyDegraded);
                Ok(Start::Refused { for_state })
            }
        }
    }

    /// The superblocks of the members that are left.
    fn found(&self, shard: u16, lost: &BTreeSet<u16>) -> Vec<(u16, Superblock)> {
        let left = |&dev: &u16| !lost.contains(&dev) && !self.standing[usize::from(dev)].lost;
        let left = (0..self.member_count()).filter(left);
        left.filter_map(|dev| self.superblock_on(dev, shard).map(|superblock| (dev, superblock))).collect()
    }

    fn attach_ruined(
        &mut self,
        shard: u16,
        lost: &BTreeSet<u16>,
        older_state: OlderState,
    ) -> Option<Arrangement> {
        let superblocks: Vec<Superblock> =
            self.found(shard, lost).into_iter().map(|(_, superblock)| superblock).collect();
        let mut arrangement =
            arrange(&superblocks).inspect_err(|error| self.say(|| format!("not arranged: {error}"))).ok()?;
        for dev in 0..self.member_count() {
            self.world.change().set_present(dev, arrangement.places[usize::from(dev)].is_some());
            self.world.change().set_hidden(dev, shard, false);
        }
        arrangement.older_state = older_state;
        if older_state == OlderState::Accept {
            arrangement.dirty_degraded = DirtyDegraded::Accept;
        }
        Some(arrangement)
    }

    /// The array runs: every read gives what it may give, or fails; and what a scrub calls whole can be read.
    fn look_ruined(&mut self, number: u16, shard: Shard, lost: &BTreeSet<u16>) -> Result<(), Violation> {
        self.outcome.ruined += 1;
        let read_first = self.rng.chance(1, 2);
        let mut session = Session::new(self, vec![shard]);
        if read_first {
            session.read_ruined()?;
        }
        if session.scrub_ruined()? {
            let failed = session.read_ruined()?;
            if failed > 0 {
                return Err(violation!("a scrub found everything whole, but {failed} chunks cannot be read"));
            }
        } else if session.was_scrubbed() {
            session.settle()?;
            session.expect_listed()?;
        }
        session.rewrite_lost()?;
        if !session.stop_ruined()? {
            return Ok(());
        }
        drop(session);
        self.world.change().power_cycle(crate::disk::Tear::LoseAll);
        // Those it ran on know of it, whatever they were before.
        match self.start_with(number, lost, false, OlderState::Refuse)? {
            Start::Running(shard, report) => {
                if report.lost.is_some() || !report.was_clean || report.dropped > 0 {
                    return Err(violation!("after an orderly stop: {report:?}"));
                }
                Session::new(self, vec![*shard]).read_ruined().map(|_| ())
            }
            Start::Crashed => Err(violation!("power failed by itself")),
            Start::Refused { .. } => {
                Err(violation!("an array that was stopped in order does not start again"))
            }
        }
    }

    /// The operator insists: what is given may be old, but it is something that was once written there.
    fn force(&mut self, shard: u16, lost: &BTreeSet<u16>, for_state: bool) -> Result<(), Violation> {
        self.outcome.refused += 1;
        self.forced = true;
        // From a generator of its own: worlds stay what they were before this was drawn.
        let may_cut = self.swarm.crashes && !is_resync(&self.swarm.config);
        let cut = may_cut && self.rng.clone().fork().chance(1, 2) && self.keeps(Part::Trouble);
        match self.start_ruined(shard, lost, cut, OlderState::Accept)? {
            Start::Running(_, report) if report.forced.is_none() && report.lost.is_some() => {
                Err(violation!("nobody is told that the start gave up {:?}", report.lost))
            }
            // Parity that does not match gives anything: the operator was told.
            Start::Running(..) if is_resync(&self.swarm.config) => Ok(()),
            Start::Running(shard, _) => Session::new(self, vec![*shard]).read_ruined().map(|_| ()),
            Start::Crashed if cut => self.start_after_force(shard, lost, for_state),
            Start::Crashed => Err(violation!("power failed by itself")),
            Start::Refused { .. } => Ok(()),
        }
    }

    /// Power failed in the middle of a forced start. What was refused before it is refused still, or it is
    /// known that somebody insisted; unless it was refused for something that nobody can insist on, such as
    /// a page that this start wanted and the next one may not.
    fn start_after_force(
        &mut self,
        shard: u16,
        lost: &BTreeSet<u16>,
        for_state: bool,
    ) -> Result<(), Violation> {
        self.say(|| "power failed during a forced start".into());
        self.world.change().power_cycle(self.swarm.tear);
        match self.start_ruined(shard, lost, false, OlderState::Refuse)? {
            Start::Running(_, report) if for_state && report.forced.is_none() => Err(violation!(
                "an array was refused, started by force, and now nobody knows of it: {report:?}"
            )),
            Start::Running(shard, _) => Session::new(self, vec![*shard]).read_ruined().map(|_| ()),
            Start::Crashed => Err(violation!("power failed by itself")),
            Start::Refused { .. } => Ok(()),
        }
    }
}

enum Start {
    Crashed,
    /// Whether it is for what the operator may do without, if he insists.
    Refused {
        for_state: bool,
    },
    Running(Box<Shard>, Box<RecoveryReport>),
}

/// The checkpoint headers on a main device: block of the device, and content.
fn headers(
    image: &[Option<Block>],
    dev: u16,
    config: &format::ArrayConfig,
    array: format::ArrayUuid,
) -> Vec<(usize, CheckpointHeader)> {
    let decode = |offset: u64, area: u8, block: u32| {
        let at = offset as usize / BLOCK_BYTES;
        let bytes = bytes_of(&image[at]);
        let expect = BlockExpect { array, dev: DevIndex::new(dev), area, block };
        let header: Result<CheckpointHeader, FormatError> = decode_checkpoint_header(bytes, &expect);
        header.ok().map(|header| (at, header))
    };
    let fulls = (0..2u8).filter_map(|area| decode(config.full_offset(usize::from(area), 0), area, 0));
    let incrementals =
        (0..config.incremental_blocks).filter_map(|block| decode(config.incremental_offset(block), 2, block));
    fulls.chain(incrementals).collect()
}
