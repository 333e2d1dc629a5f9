//! Small plans with a power cut at every operation: not a sample of what may happen, but all of it.

use crate::Rng;
use crate::course::Mode;
use crate::disk::{TEARS, Tear};
use crate::machine::Machine;
use crate::rot::Area;
use crate::session::{Session, Step};
use crate::swarm::{Mix, Odds, Swarm};
use crate::violation;
use crate::violation::Violation;
use crate::world::Pace;
use array::{CommitPolicy, CreateOptions, EngineOptions, SchemeOptions, plan_config};
use block::Geometry;
use block::mix;
use format::{CheckpointKind, CodeKind, Consistency, LayoutKind, SchemeKind, UNITS_SPARE};
use placement::GcThreshold;
use std::ops::Range;

/// An array and what is asked of it. Steps of one group run side by side; the next group waits for their
/// answers.
#[derive(Clone, Debug)]
pub struct Script {
    /// The array.
    pub scheme: SchemeKind,
    /// Data columns.
    pub data_count: usize,
    /// Parity columns.
    pub parity_count: usize,
    /// Spare chunks of each device; `None` as many as creation reserves.
    pub reserve: Option<u32>,
    /// Stripes of the volume.
    pub stripes: u32,
    /// What is asked of it.
    pub groups: Vec<Vec<Step>>,
}

/// Where power fails, and what that does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// After this many starts or ends of operations; never if there are not so many.
    pub after: u64,
    /// And again after this many of the assembly that follows.
    pub again: Option<u64>,
    /// A device that is not there in that assembly, and is in the next.
    pub without: Option<u16>,
    /// What becomes of unflushed writes.
    pub tear: Tear,
    /// A device that is lost at the same instant.
    pub lost: Option<u16>,
}

impl Cut {
    /// None while the script runs; then nothing that was not flushed is left.
    pub(crate) const NONE: Self =
        Self { after: u64::MAX / 2, again: None, without: None, tear: Tear::LoseAll, lost: None };
}

/// Records of single chunks that fill more than a frame of 4 KiB.
const RECORDS_OF_FRAMES: u64 = 520;

/// Flushes after which every ring has frames far behind its first stretch.
const FLUSHES_OF_RINGS: u64 = 90;

/// Chunks of 4 KiB, in sectors.
const CHUNK: u64 = 8;

impl Script {
    /// Partial, whole and full-stripe writes, overwriting, a discard, commit and both kinds of checkpoint.
    pub fn everyday(scheme: SchemeKind, parity_count: usize) -> Self {
        let write = |first, count| Step::Write { first, count, durable: false };
        let groups = vec![
            vec![write(0, 2 * CHUNK), write(2 * CHUNK, CHUNK)],
            vec![write(0, CHUNK), Step::Write { first: 3 * CHUNK + 3, count: 2, durable: true }],
            vec![Step::Flush, write(CHUNK, CHUNK)],
            vec![Step::Commit, write(4 * CHUNK + 1, 9)],
            vec![Step::Discard { first: 0, count: CHUNK }, Step::Checkpoint(CheckpointKind::Incremental)],
            vec![write(0, CHUNK), write(5 * CHUNK, CHUNK), Step::Checkpoint(CheckpointKind::Full)],
            vec![write(0, CHUNK), Step::Flush],
        ];
        Self { scheme, data_count: 2, parity_count, reserve: None, stripes: 4, groups }
    }

    /// A member fails and is replaced while writes go on.
    pub fn replacement(scheme: SchemeKind, parity_count: usize) -> Self {
        let write = |first, count| Step::Write { first, count, durable: false };
        let groups = vec![
            vec![write(0, 2 * CHUNK), write(2 * CHUNK, CHUNK)],
            vec![Step::Flush],
            vec![Step::Fail(0), write(0, CHUNK)],
            vec![Step::Replace, write(CHUNK, CHUNK)],
            vec![write(0, CHUNK), Step::Flush],
        ];
        Self { scheme, data_count: 2, parity_count, reserve: None, stripes: 4, groups }
    }

    /// An area of a main device rots, and is mended by a scrub. Before that there are more records than one
    /// frame holds: the last one is written anew by the flush of the scrub.
    pub fn mending(scheme: SchemeKind, dev: u16, area: Area) -> Self {
        let write = |chunk| Step::Write { first: chunk * CHUNK, count: CHUNK, durable: false };
        let mut groups: Vec<_> = (0..RECORDS_OF_FRAMES / 4).map(|_| (0..4).map(write).collect()).collect();
        groups.extend([vec![Step::Flush], vec![Step::Rot(dev, area)], vec![Step::Scrub]]);
        Self { scheme, data_count: 2, parity_count: 1, reserve: None, stripes: 4, groups }
    }

    /// A member is replaced when the rings of frames have been in use for long, so that frames on the new
    /// device begin far behind its first block; then so many more flushes.
    pub fn replaced_late(scheme: SchemeKind, flushes: u64) -> Self {
        let write = |chunk| Step::Write { first: chunk % 4 * CHUNK, count: CHUNK, durable: false };
        let flushed = |chunk| [vec![write(chunk)], vec![Step::Flush]];
        let mut groups: Vec<_> = (0..FLUSHES_OF_RINGS).flat_map(flushed).collect();
        groups.extend([vec![Step::Fail(0), write(0)], vec![Step::Flush], vec![Step::Replace]]);
        groups.extend((0..flushes).flat_map(flushed));
        Self { scheme, data_count: 2, parity_count: 1, reserve: None, stripes: 4, groups }
    }

    /// A member is replaced and rebuilt in many steps, each of which superblocks tell of.
    pub fn rebuilt_in_steps(scheme: SchemeKind, stripes: u32) -> Self {
        let write = |first, count| Step::Write { first, count, durable: false };
        let mut groups: Vec<_> =
            (0..stripes.into()).map(|stripe| vec![write(stripe * 2 * CHUNK, 2 * CHUNK)]).collect();
        groups.extend([vec![Step::Flush], vec![Step::Fail(0), write(0, CHUNK)], vec![Step::Replace]]);
        Self { scheme, data_count: 2, parity_count: 1, reserve: None, stripes, groups }
    }

    /// A log stripe whose members but one are superseded and committed at once, so that its chunks are free;
    /// then a flush and whole stripes, until everything free was written to.
    pub fn reuse() -> Self {
        const STRIPE: u64 = 4 * CHUNK;
        let write = |first, count| Step::Write { first, count, durable: false };
        let mut groups = vec![
            (0..4).map(|stripe| write(stripe * STRIPE, STRIPE)).collect(),
            vec![Step::Flush],
            vec![Step::Checkpoint(CheckpointKind::Full)],
            vec![write(0, 2 * CHUNK), write(STRIPE + 3 * CHUNK, CHUNK)],
            vec![Step::Commit],
            vec![write(0, 2 * CHUNK)],
            vec![Step::Commit],
            vec![Step::Flush],
        ];
        groups.extend((0..14).map(|i| vec![write((2 + i % 2) * STRIPE, STRIPE)]));
        Self {
            scheme: SchemeKind::Eplog,
            data_count: 4,
            parity_count: 1,
            reserve: Some(48),
            stripes: 4,
            groups,
        }
    }

    /// Elastic stripes of one chunk each, of every unit of which one is overwritten at once and the other
    /// stays valid, until the valid ones must be moved; then a flush, and writes to what that freed, among
    /// them to chunks that were moved.
    pub fn collecting(scheme: SchemeKind) -> Self {
        const STRIPES: u32 = 9;
        let write = |chunk: u64| Step::Write { first: chunk * CHUNK, count: CHUNK, durable: false };
        let last = 2 * u64::from(STRIPES) - 1;
        let mut groups: Vec<Vec<Step>> =
            (0..last).flat_map(|chunk| [vec![write(chunk)], vec![write(last)]]).collect();
        groups.push(vec![Step::Flush]);
        groups.extend([0, 1, 5].map(|chunk| vec![write(chunk), Step::Flush]));
        groups.push(vec![Step::Checkpoint(CheckpointKind::Incremental), write(2)]);
        groups.push(vec![Step::Discard { first: 3 * CHUNK, count: 2 * CHUNK }, write(6)]);
        Self { scheme, data_count: 2, parity_count: 1, reserve: None, stripes: STRIPES, groups }
    }

    /// An array of two shards, a unit of the volume each, of which nothing is asked but to grow.
    pub fn growing(scheme: SchemeKind) -> Self {
        Self { scheme, data_count: 2, parity_count: 1, reserve: None, stripes: 128, groups: Vec::new() }
    }

    pub(crate) fn swarm(&self, tear: Tear) -> Swarm {
        let geometry = Geometry::new(self.data_count, self.parity_count, 4096).expect("valid");
        let options = CreateOptions {
            scheme: self.scheme,
            code: CodeKind::Cauchy,
            layout: LayoutKind::Rotate,
            consistency: Consistency::Journal,
            geometry,
            reserve_permille: 100,
            unit_rows: Some(2),
        };
        let logs = if self.scheme.has_log() { self.parity_count } else { 0 };
        let mut config = plan_config(&options, 4 << 20, 4 << 20, logs).expect("sizes fit");
        let reserve = config.chunks_per_device - config.stripe_count as u32;
        config.chunks_per_device = self.reserve.unwrap_or(reserve) + self.stripes;
        config.stripe_count = self.stripes.into();
        if self.scheme.is_elastic() {
            // No more units than garbage collection needs.
            config.chunks_per_device =
                (self.stripes + u32::try_from(UNITS_SPARE).expect("few")) * config.unit_rows;
        }
        let none = Mix {
            write: 0,
            whole: 0,
            stripe: 0,
            read: 0,
            flush: 0,
            discard: 0,
            commit: 0,
            checkpoint: 0,
            scrub: 0,
            fail: 0,
            replace: 0,
            trap: 0,
        };
        Swarm {
            config,
            options: EngineOptions {
                commit: CommitPolicy { every_requests: None, idle_ns: None, bytes_per_s: None },
                pool_bytes: 0,
                // Superblocks tell of every step of a rebuild.
                rebuild_save_bytes: 1,
                unit_stripes: 1,
                units_in_flight: 1,
                // Chunks that come alone are written alone, and garbage is collected as soon as may be.
                scheme: SchemeOptions {
                    p_wait_ns: Some(0),
                    gc_threshold: GcThreshold::new(1).expect("within its limits"),
                    ..SchemeOptions::default()
                },
                ..EngineOptions::default()
            },
            pace: Pace { delay_max: 0, slow: None },
            depth: 8,
            requests: 0,
            sessions: 1,
            mix: none,
            odds: Odds::default(),
            hot_sectors: 1,
            chunks_max: 1,
            tear,
            faults: false,
            crashes: true,
            rotting: false,
            blackouts: false,
            ruin: false,
            returns: false,
            kills: false,
            succeeds: false,
            hangs: false,
        }
    }

    /// Members of the array.
    pub fn member_count(&self) -> u16 {
        let logs = if self.scheme.has_log() { self.parity_count } else { 0 };
        (self.data_count + self.parity_count + logs) as u16
    }

    /// Runs the script with a power cut, starts the array again and checks everything. How many operations
    /// began or ended, without assembly.
    pub fn run(&self, cut: Cut) -> Result<u64, Violation> {
        self.run_counting(cut).map(|(events, _)| events)
    }

    /// The same; and how many units garbage collection chose before power failed.
    fn run_counting(&self, cut: Cut) -> Result<(u64, u64), Violation> {
        let (mut machine, events, collected) = self.stopped_by(cut)?;
        if let Some(again) = cut.again {
            machine.cut_assembly(again, cut.without)?;
        }
        if cut.without.is_some() {
            make_whole(&mut machine, Step::Resume)?;
        }
        machine.finale()?;
        Ok((events, collected))
    }

    /// Runs the script until power has failed, and a device is lost with it: the machine then, the operations
    /// that began or ended, and the units that garbage collection chose.
    pub(crate) fn stopped_by(&self, cut: Cut) -> Result<(Machine, u64, u64), Violation> {
        // Scripts of different lengths differ in what they draw, too.
        let length = u64::try_from(self.groups.len()).unwrap_or(0) << 52;
        let lost = u64::from(cut.lost.unwrap_or(999)) << 40;
        // In all starts without a device it was cut short in the same world.
        let again = cut.again.filter(|_| cut.without.is_none());
        let seed = mix(cut.after ^ mix(again.unwrap_or(u64::MAX)) ^ lost ^ length);
        let mut machine = Machine::of(self.swarm(cut.tear), Rng::new(seed), false, Mode::Drawn)?;
        let shards = machine.power_on()?;
        let before = machine.world.look().events();
        machine.world.change().crash_after(cut.after);
        let mut session = Session::new(&mut machine, shards);
        for group in &self.groups {
            for &step in group {
                session.play(step);
            }
            if !session.drain()? {
                break;
            }
        }
        let collected = session.units_collected();
        drop(session);
        let events = machine.world.look().events() - before;
        machine.power_off();
        if let Some(dev) =
            cut.lost.filter(|dev| machine.suspects.is_empty() || machine.suspects.contains(dev))
        {
            machine.lose(dev);
        }
        Ok((machine, events, collected))
    }

    /// How many units garbage collection chooses if power does not fail.
    pub fn units_collected(&self) -> Result<u64, Violation> {
        self.run_counting(Cut::NONE).map(|(_, collected)| collected)
    }

    /// Power fails at every operation, in every way, alone and with every device. How many worlds that were.
    pub fn every_cut(&self) -> Result<u64, Violation> {
        let events = self.run(Cut::NONE)?;
        let mut worlds = 1;
        for after in 0..=events {
            for (i, tear) in (0..).zip(TEARS) {
                // Every device in turn, none, or one together with a second power cut during recovery.
                let choices = u64::from(self.member_count()) + 1;
                let lost = (after * 7 + i) % choices;
                let lost = u16::try_from(lost).ok().filter(|&dev| dev < self.member_count());
                for (lost, again) in [(None, None), (lost, None), (lost, Some((after * 13 + i * 5) % 160))] {
                    let cut = Cut { after, again, tear, lost, ..Cut::NONE };
                    self.run(cut).map_err(|what| violation!("{cut:?}: {what}"))?;
                    worlds += 1;
                }
            }
        }
        Ok(worlds)
    }

    /// Power fails when all has been answered, in every way, alone and with every device. How many worlds
    /// that were.
    pub fn every_loss_at_the_end(&self) -> Result<u64, Violation> {
        let mut worlds = 0;
        for tear in TEARS {
            for lost in (0..self.member_count()).map(Some).chain([None]) {
                let cut = Cut { tear, lost, ..Cut::NONE };
                self.run(cut).map_err(|what| violation!("{cut:?}: {what}"))?;
                worlds += 1;
            }
        }
        Ok(worlds)
    }

    /// Power fails at every operation and again in an assembly without a device, early in it and late; then
    /// the device is there again. How many worlds that were.
    pub fn every_start_without(&self, dev: u16) -> Result<u64, Violation> {
        let events = self.run(Cut::NONE)?;
        let mut worlds = 0;
        for after in 0..=events {
            for again in START_EVENTS.filter(|again| (after + again).is_multiple_of(STARTS_TRIED)) {
                let cut =
                    Cut { after, again: Some(again), without: Some(dev), tear: Tear::KeepAll, lost: None };
                self.run(cut).map_err(|what| violation!("{cut:?}: {what}"))?;
                worlds += 1;
            }
        }
        Ok(worlds)
    }

    /// Power fails at every operation; the device is away in the next start, in which another one takes its
    /// place, and is there again in the one after that. How many worlds that were.
    pub fn every_start_that_replaces(&self, dev: u16) -> Result<u64, Violation> {
        let events = self.run(Cut::NONE)?;
        for after in 0..=events {
            let cut = Cut { after, tear: Tear::KeepAll, ..Cut::NONE };
            let (mut machine, ..) = self.stopped_by(cut)?;
            machine.lose(dev);
            make_whole(&mut machine, Step::Replace)
                .and_then(|()| machine.finale())
                .map_err(|what| violation!("{cut:?}, {dev} replaced: {what}"))?;
        }
        Ok(events)
    }

    /// The array is started once more behind the script, and goes on; then one device is what it was before
    /// that, each in turn. How many worlds that were.
    pub fn every_copy_put_back(&self) -> Result<u64, Violation> {
        for dev in 0..self.member_count() {
            let (mut machine, ..) = self.stopped_by(Cut::NONE)?;
            let before = machine.world.look().disk(dev).durable().clone();
            make_whole(&mut machine, Step::Write { first: 0, count: CHUNK, durable: true })?;
            machine.put_back(dev, before);
            machine.finale().map_err(|what| violation!("a copy of {dev} put back: {what}"))?;
        }
        Ok(self.member_count().into())
    }

    /// A member is replaced by a device that once was it, and has gone on with the others of that time: in
    /// more starts than this array has had, with another content. Each in turn. How many worlds that were.
    pub fn every_device_of_another_course(&self) -> Result<u64, Violation> {
        let write = |first| Step::Write { first, count: CHUNK, durable: true };
        let checkpoint = Step::Checkpoint(CheckpointKind::Full);
        for dev in 0..self.member_count() {
            let (mut other, ..) = self.stopped_by(Cut::NONE)?;
            for first in [0, CHUNK, 2 * CHUNK, 0] {
                make_whole_by(&mut other, &[write(first), checkpoint, write(CHUNK)])?;
            }
            let (mut machine, ..) = self.stopped_by(Cut::NONE)?;
            machine.expect_stranger(dev, other.world.look().disk(dev).durable().clone());
            let steps = [write(CHUNK), Step::Fail(dev), write(0), Step::Replace, write(2 * CHUNK)];
            make_whole_by(&mut machine, &steps)
                .and_then(|()| machine.finale())
                .map_err(|what| violation!("{dev} replaced by one of another course: {what}"))?;
        }
        Ok(self.member_count().into())
    }

    /// Power fails at one operation, and again at every operation of the assembly that follows.
    pub fn every_cut_of_recovery(&self, after: u64, tear: Tear, lost: Option<u16>) -> Result<u64, Violation> {
        let mut worlds = 0;
        for again in 0..RECOVERY_EVENTS_MAX {
            let cut = Cut { after, again: Some(again), tear, lost, ..Cut::NONE };
            self.run(cut).map_err(|what| violation!("{cut:?}: {what}"))?;
            worlds += 1;
        }
        Ok(worlds)
    }
}

/// The array starts, and is made whole in one way or another.
pub(crate) fn make_whole(machine: &mut Machine, step: Step) -> Result<(), Violation> {
    make_whole_by(machine, &[step])
}

/// The same in several steps, one after the other.
fn make_whole_by(machine: &mut Machine, steps: &[Step]) -> Result<(), Violation> {
    let shards = machine.power_on()?;
    let mut session = Session::new(machine, shards);
    for &step in steps {
        session.play(step);
        session.drain()?;
    }
    session.rest()?;
    drop(session);
    machine.power_off();
    Ok(())
}

/// Operations into a start of these arrays, if all is known durable: from the superblocks that say who is
/// there to those that name the new assembly. Power fails at every third or so.
const START_EVENTS: Range<u64> = 24..48;
const STARTS_TRIED: u64 = 3;

/// More operations than recovery of these arrays takes.
const RECOVERY_EVENTS_MAX: u64 = 160;
