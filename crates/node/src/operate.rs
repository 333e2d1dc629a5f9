//! Work on the members of a running array: failing, replacing, spares. The same code for served arrays and
//! for arrays that a command assembles for itself.
//!
//! A replacement takes its place only when no operation on its predecessor is left ([`Engine::in_flight`]),
//! so a request to replace waits in [`Operator`] and is carried out by [`Operator::step`].
//!
//! [`Engine::in_flight`]: array::Engine::in_flight

mod errand;
mod growing;
mod names;
mod returning;
mod shared;
mod spares;
mod successors;

pub use shared::{SharedSpare, with_shared_members};

use crate::checks::{Caution, Consent, Manner, View, same_file};
use crate::driver::Devices;
use crate::error::Error;
use crate::event::{Event, work_name};
use crate::open::open_options;
use crate::refusal::Refusal;
use crate::running::Running;
use crate::succeed::Succeeding;
use crate::watch::{Watch, describe_finding};
use array::{Engine, HoldUp, MaintenanceReport, NotBack, ReplaceStep, Replacing, WorkKind, WorkOrigin};
use block::{DevIndex, DeviceSet, META_BYTES};
use device::{Access, Identity, Members, Membership as _, OpenError};
use errand::Errand;
use format::{MemberState, Superblock};
use growing::Growing;
use serde::{Deserialize, Serialize};
use shared::SharedSpares;
use spares::HeldSpare;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How long something waits that is about to end.
const WAIT_NS: u64 = 1_000_000;

/// What becomes of a scrub that is under way, or of parity commits.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Steering {
    /// It waits.
    Pause,
    /// It goes on.
    Resume,
    /// It ends, and is not continued.
    Stop,
}

struct Pending {
    /// Whose place it is to take, and how far that is.
    replacing: Replacing,
    path: PathBuf,
    /// Keeps others from using it, or from removing it. `None`: it is locked as a member that has just
    /// failed, or is in its place.
    lock: Option<Members>,
    /// It is in its place, if not in service yet in every shard.
    is_installed: bool,
    /// What it has to do before anything else is done.
    errand: Option<Errand>,
}

impl Pending {
    fn new(replacing: Replacing, path: PathBuf, lock: Option<Members>) -> Self {
        Self { replacing, path, lock, is_installed: false, errand: None }
    }
}

/// What shards report of a work that all of them do, until the last one has ended it.
#[derive(Clone, Copy)]
struct Tally {
    kind: WorkKind,
    found: Option<MaintenanceReport>,
    elapsed_ns: u64,
}

/// See the module's documentation.
#[derive(Default)]
pub struct Operator {
    spares: Vec<HeldSpare>,
    pending: Vec<Pending>,
    /// Members that work, and the devices that are to succeed them.
    succeeding: Vec<Succeeding>,
    /// Members that were in service but not named on the command line, so that they are out of service now.
    unnamed: Vec<DevIndex>,
    /// Where the members are, or were before they failed.
    paths: Vec<Option<PathBuf>>,
    /// What goes on after the restart and was not reported yet.
    resumed: Option<WorkKind>,
    /// What an engine told last.
    told: Vec<array::Event>,
    /// Work that has begun in some shard and has not ended in all.
    tallies: Vec<Tally>,
    /// Members whose failure was reported: the other shards follow the first one.
    known_failed: Vec<DevIndex>,
    watch: Watch,
    /// Members that were taken out of service as their devices will not be found again.
    lost: BTreeSet<DevIndex>,
    /// Whether a failed member still has requests in flight, and is to be closed then.
    is_letting_go: bool,
    /// Durable state that the array was started without.
    lost_state: Option<String>,
    /// Nothing is written to the members.
    is_read_only: bool,
    shared: SharedSpares,
    /// Failed members of which it was told that no spare can take their places.
    without_spare: BTreeSet<DevIndex>,
    /// Places that got another device since serving began.
    refilled: BTreeSet<DevIndex>,
    growing: Option<Growing>,
    /// Why serving cannot go on.
    failure: Option<Error>,
}

impl Operator {
    /// Looks after the members of an array, which are at `paths`. Of those that are nowhere, the ones in
    /// `unnamed` were in service when the array was last stopped.
    pub fn new(paths: Vec<Option<PathBuf>>, unnamed: Vec<DevIndex>) -> Self {
        let paths = paths.into_iter().map(|path| path.map(|path| absolute(&path))).collect();
        Self { paths, unnamed, ..Self::default() }
    }

    /// Nothing is written to the members, and nothing is done that would be forgotten at the end.
    pub fn keep_read_only(&mut self) {
        self.is_read_only = true;
    }

    /// Whether nothing is written to the members.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Continues what was under way when the array was last stopped.
    pub fn resume(&mut self, running: &mut Running) {
        running.level(&[]);
        let mut resumed = None;
        for shard in 0..running.shard_count() {
            let engine = running.engine(shard);
            let rebuilding = engine.health().members().iter().any(|m| m.state == MemberState::Rebuilding);
            let (noted, cursor) = (engine.losses().noted, engine.scrub_cursor());
            if rebuilding {
                running.control_one(shard, |engine, tag| engine.resume_rebuild(tag));
                resumed = Some(WorkKind::Rebuild);
            } else if noted > 0 || cursor > 0 {
                // Something was lost when the array was last in service; only a look at everything tells
                // what.
                let first = if noted > 0 { 0 } else { cursor };
                running.control_one(shard, |engine, tag| engine.scrub(tag, first));
                resumed = resumed.or(Some(WorkKind::Scrub));
            }
        }
        self.resumed = resumed;
    }

    /// The array was started without durable state that is lost; or nobody need be told of it any more.
    pub fn note_lost(&mut self, lost: Option<String>) {
        self.lost_state = lost;
    }

    /// Durable state that the array was started without.
    pub fn lost_state(&self) -> Option<&String> {
        self.lost_state.as_ref()
    }

    /// In how many nanoseconds from the last time on that is to be asked for again.
    pub fn errors_due_in_ns(&self) -> Option<u64> {
        self.watch.due_in_ns()
    }

    /// What the log is to be told of the members' errors, each with the member's name.
    pub fn error_lines(&mut self, running: &Running) -> Vec<(String, String)> {
        self.watch.errors(running)
    }

    /// Whether a member was in service when the array was last stopped, and is not any more for want of its
    /// path.
    pub fn was_left_out(&self, dev: DevIndex) -> bool {
        self.unnamed.contains(&dev)
    }

    /// The member that a device is a copy of, if its superblock says that it holds a place which another
    /// device has. A former member is none.
    pub fn original_of(
        &self,
        running: &Running,
        identity: Identity,
        dev: DevIndex,
        serial: u32,
    ) -> Option<String> {
        let members = running.open_members();
        let held = self.spares.iter().map(|held| &held.lock).chain([members]);
        if held.flat_map(Members::identities).any(|own| own == identity) {
            return None;
        }
        running.lead().health().members().get(dev.index()).filter(|place| place.serial == serial)?;
        let member = members.get(dev)?;
        let in_service = match running.member_state(dev) {
            MemberState::Healthy | MemberState::Rebuilding => true,
            MemberState::Failed | MemberState::Absent => false,
        };
        let name = self.view(running).name_of(dev);
        in_service.then(|| format!("{name} ({})", self.shown_path(dev).unwrap_or(member.path()).display()))
    }

    /// Whether a member was taken out of service as its device will not be found again.
    pub fn is_lost(&self, dev: DevIndex) -> bool {
        self.lost.contains(&dev)
    }

    fn shown_path(&self, dev: DevIndex) -> Option<&Path> {
        self.paths.get(dev.index())?.as_deref()
    }

    /// In how many nanoseconds something is to be looked at that waits: a replacement to take its place, a
    /// failed member to be closed.
    pub fn waits_ns(&self) -> Option<u64> {
        let waits = (!self.pending.is_empty() || self.is_letting_go).then_some(WAIT_NS);
        let others = self.succeeding.iter().map(Succeeding::due_in_ns).chain(self.shared.due_in_ns());
        let growing = self.is_growing().then_some(WAIT_NS);
        waits.into_iter().chain(others).chain(growing).min()
    }

    /// The array as the checks see it.
    pub fn view(&self, running: &Running) -> View {
        View::of_running(running, &self.paths)
    }

    /// Takes a member out of service.
    pub fn fail(
        &mut self,
        running: &mut Running,
        dev: DevIndex,
        caution: Caution,
        consent: Consent,
    ) -> Result<(), Error> {
        self.view(running).check_fail(dev, caution, consent)?;
        running.fail_device(dev);
        Ok(())
    }

    /// Puts `path` in the place of `dev`. If that works it stays in service until the other one holds the
    /// same, or is failed first. Whether it stays.
    pub fn replace(
        &mut self,
        running: &mut Running,
        dev: DevIndex,
        path: &Path,
        caution: Caution,
        (consent, manner): (Consent, Manner),
    ) -> Result<bool, Error> {
        let view = self.view(running);
        if self.is_being_replaced(dev) {
            return Err(Refusal::ReplacedAlready { name: view.name_of(dev) }.into());
        }
        view.check_replace(dev, path, caution, (consent, manner))?;
        if manner == Manner::InService && view.works(dev) {
            self.check_one_at_a_time(&view, dev)?;
            return self.succeed(running, dev, path).map(|()| true);
        }
        let replacing = running.replacing(dev).map_err(|shard| Refusal::NeededByShard {
            name: view.name_of(dev),
            shard,
            tolerated: running.lead().health().tolerated(),
        })?;
        let lock = self.lock_replacement(running, path)?;
        running.fail_device(dev);
        self.pending.push(Pending::new(replacing, path.to_owned(), lock));
        Ok(false)
    }

    /// Takes the device of a member that left back, which is at `path` or where it was. It gets what it
    /// missed; log devices are filled anew, and so are others with `full`.
    pub fn online(
        &mut self,
        running: &mut Running,
        dev: DevIndex,
        path: Option<PathBuf>,
        full: bool,
    ) -> Result<(), Error> {
        let view = self.view(running);
        let name = view.name_of(dev);
        if self.is_being_replaced(dev) {
            return Err(Refusal::ReplacedAlready { name }.into());
        }
        view.check_away(dev)?;
        let known = || self.shown_path(dev).map(Path::to_owned);
        let Some(path) = path.or_else(known) else { return Err(Refusal::NoPath { name }.into()) };
        let papers = view.check_online(dev, &path)?;
        let is_log = dev.index() >= running.lead().store().main_count();
        if full && running.replacing(dev).is_err() {
            return self.take_again(running, dev, &path);
        }
        if full || is_log {
            let manner = (Consent::Asked, Manner::FailFirst);
            return self.replace(running, dev, &path, Caution::Careful, manner).map(|_| ());
        }
        let replacing = running.coming_back(dev);
        for &shard in replacing.shards() {
            let why = match papers.iter().find(|papers| usize::from(papers.config.shard.index) == shard) {
                Some(papers) => running.engine(shard).why_not_online(dev, papers),
                None => Some(NotBack::Other),
            };
            if let Some(why) = why {
                return Err(not_back(name, path, why).into());
            }
        }
        Self::check_is_in_use(running, &view, dev, &path)?;
        // What other shards work on is locked.
        let lock = if running.is_in_service(dev) { None } else { self.lock_replacement(running, &path)? };
        self.pending.push(Pending::new(replacing, path, lock));
        Ok(())
    }

    /// Locks what is to take a place. A spare is locked already, and so is a member that has just failed.
    fn lock_replacement(&mut self, running: &Running, path: &Path) -> Result<Option<Members>, Error> {
        if let Some(lock) = self.take_spare(path) {
            return Ok(Some(lock));
        }
        self.check_is_no_spare(path)?;
        let members = running.open_members();
        let all = (0u16..).take(members.count()).filter_map(|index| members.get(DevIndex::new(index)));
        if all.into_iter().any(|member| same_file(member.path(), path)) {
            return Ok(None);
        }
        let lock = Members::open(&[Some(path.to_owned())], open_options(Access::Exclusive));
        Ok(Some(lock?))
    }

    /// Starts a scrub.
    pub fn scrub(running: &mut Running) -> Result<(), Error> {
        if let Some((kind, _, _)) = running.engines().find_map(Engine::maintenance) {
            return Err(Refusal::UnderWay { kind: work_name(kind) }.into());
        }
        running.control(|engine, tag| engine.scrub(tag, 0));
        Ok(())
    }

    /// Lets a scrub wait, go on, or end; what it does now.
    pub fn steer(running: &mut Running, steering: Steering) -> Result<&'static str, Error> {
        let steer = |engine: &mut Engine| match steering {
            Steering::Pause => engine.pause_scrub(),
            Steering::Resume => engine.resume_scrub(),
            Steering::Stop => engine.stop_scrub(),
        };
        // Every shard is told, whatever the ones before it answered.
        let done = running.engines_mut().map(steer).filter(|&done| done).count() > 0;
        let what = match steering {
            Steering::Pause => "waits until it is told to go on",
            Steering::Resume => "goes on",
            Steering::Stop => "is given up",
        };
        match (done, steering) {
            (true, _) => Ok(what),
            (false, Steering::Resume) => Err(Refusal::NoScrubPaused.into()),
            (false, Steering::Pause | Steering::Stop) => Err(Refusal::NoScrub.into()),
        }
    }

    /// Carries out what can be done now, and reports what has happened since the last call.
    pub fn step(&mut self, running: &mut Running, events: &mut Vec<Event>) {
        if self.is_growing() {
            // Everything else waits: members stay who they are meanwhile.
            self.notice(running, events);
            self.end_works(running, events);
            return self.go_on_growing(running, events);
        }
        let mut watch = std::mem::take(&mut self.watch);
        self.lost.extend(watch.look(running, events));
        self.watch = watch;
        self.notice(running, events);
        self.let_go(running);
        self.go_on_succeeding(running, events);
        self.call_spares(running);
        self.call_shared(running);
        for index in (0..self.pending.len()).rev() {
            let pending = &mut self.pending[index];
            match go_on(running, pending) {
                Ok(ReplaceStep::Done) => {
                    let Pending { replacing, path, .. } = self.pending.swap_remove(index);
                    self.note_replaced(&replacing, path, events);
                    self.level(running);
                }
                Ok(_) => {} // something has to end first
                Err(error) => {
                    let Pending { replacing, path, .. } = self.pending.swap_remove(index);
                    let (dev, why) = (replacing.dev(), error.to_string());
                    events.push(Event::NotReplaced { dev, path, why });
                    self.level(running);
                }
            }
        }
        self.end_works(running, events);
    }

    /// Passes on what the engines tell, of every shard's words those that are news of the array.
    fn notice(&mut self, running: &mut Running, events: &mut Vec<Event>) {
        let mut told = std::mem::take(&mut self.told);
        for shard in 0..running.shard_count() {
            running.engine_mut(shard).take_events(&mut told);
            for event in told.drain(..) {
                self.pass_on(running, event, events);
            }
        }
        self.told = told;
    }

    fn pass_on(&mut self, running: &mut Running, event: array::Event, events: &mut Vec<Event>) {
        match event {
            array::Event::MemberFailed { dev, cause } => {
                self.unnamed.retain(|&other| other != dev);
                if !self.known_failed.contains(&dev) {
                    self.known_failed.push(dev);
                    // What became of one that is lost has a line of its own.
                    let cause = Some(cause).filter(|_| !self.lost.contains(&dev));
                    events.push(Event::Failed { dev, cause });
                }
                self.give_up_replacing(dev, events);
                self.level(running);
            }
            array::Event::PageLost { page } => events.push(Event::PageLost(page)),
            array::Event::MemberUnfit { dev, found, failed } => {
                events.push(Event::Unfit { dev, why: describe_finding(found), failed });
            }
            array::Event::MemberRebuilt { dev } => {
                // Several shards may have ended since they were looked at last.
                let is_told = events.contains(&Event::Rebuilt(dev));
                if running.member_state(dev) == MemberState::Healthy && !is_told {
                    self.known_failed.retain(|&other| other != dev);
                    events.push(Event::Rebuilt(dev));
                }
                // The shard bears the loss of another member again.
                self.level(running);
            }
            array::Event::HeldUp { dev, why } => events.push(Event::HeldUp { dev, why }),
            array::Event::HoldUpEnded { dev, why } => {
                let trouble = running.trouble_of(dev);
                let holds = match why {
                    HoldUp::LacksRoom => trouble.lacks_room_since_ns.is_some(),
                    HoldUp::NotAnswering => trouble.not_answering,
                };
                if !holds {
                    events.push(Event::HoldUpEnded { dev, why });
                }
            }
            // What the engine tries again and again by itself is no news.
            array::Event::WorkBegan { origin: WorkOrigin::Retry, .. }
            | array::Event::WorkEnded { origin: WorkOrigin::Retry, .. } => {}
            array::Event::WorkBegan { kind, origin: WorkOrigin::Request } => {
                if self.tallies.iter().all(|tally| tally.kind != kind) {
                    self.tallies.push(Tally { kind, found: None, elapsed_ns: 0 });
                    let resumed = self.resumed.take_if(|resumed| *resumed == kind).is_some();
                    events.push(Event::WorkBegan { kind, resumed });
                }
            }
            array::Event::WorkEnded { kind, origin: WorkOrigin::Request, found, elapsed_ns } => {
                self.end_part(kind, found, elapsed_ns);
            }
        }
    }

    /// What one shard has given up all give up that bear it, but for members that are being replaced.
    fn level(&self, running: &mut Running) {
        let pending: Vec<DevIndex> = self.pending.iter().map(|one| one.replacing.dev()).collect();
        running.level(&pending);
    }

    /// What was put in a member's place failed there before it was in service in every shard.
    fn give_up_replacing(&mut self, dev: DevIndex, events: &mut Vec<Event>) {
        let is_it = |pending: &Pending| pending.replacing.dev() == dev && pending.is_installed;
        if let Some(at) = self.pending.iter().position(is_it) {
            let path = self.pending.swap_remove(at).path;
            events.push(Event::NotReplaced {
                dev,
                path,
                why: "it failed while it was put in place".to_owned(),
            });
        }
    }

    /// A shard has ended its part of a work.
    fn end_part(&mut self, kind: WorkKind, found: MaintenanceReport, elapsed_ns: u64) {
        let at = self.tallies.iter().position(|tally| tally.kind == kind).unwrap_or(self.tallies.len());
        if at == self.tallies.len() {
            self.tallies.push(Tally { kind, found: None, elapsed_ns: 0 });
        }
        let tally = &mut self.tallies[at];
        tally.found = Some(tally.found.map_or(found, |before| before.and(found)));
        tally.elapsed_ns = tally.elapsed_ns.max(elapsed_ns);
    }

    /// With the part of the last shard a work has ended. A device that is put in a place is so in one shard
    /// after the other: some may have filled theirs before others begin.
    fn end_works(&mut self, running: &Running, events: &mut Vec<Event>) {
        let is_installing = self.pending.iter().any(|pending| pending.is_installed);
        self.tallies.retain(|tally| {
            let is_at_it =
                |engine: &Engine| engine.maintenance().is_some_and(|(kind, _, _)| kind == tally.kind);
            let goes_on =
                running.engines().any(is_at_it) || (tally.kind == WorkKind::Rebuild && is_installing);
            let Some(found) = tally.found.filter(|_| !goes_on) else { return true };
            let (kind, seconds) = (tally.kind, tally.elapsed_ns / 1_000_000_000);
            events.push(Event::WorkEnded { kind, found, seconds });
            false
        });
    }

    /// Closes failed members, so that they can be pulled out, and come back.
    fn let_go(&mut self, running: &mut Running) {
        self.is_letting_go = false;
        for dev in running.members() {
            if self.pending.iter().any(|one| one.replacing.dev() == dev && one.is_installed) {
                continue;
            }
            for shard in 0..running.shard_count() {
                let engine = running.engine(shard);
                if engine.health().state(dev) != MemberState::Failed || !running.has_open(shard, dev) {
                    continue;
                }
                if engine.in_flight(dev) == 0 {
                    // A thread that is gone is noticed at the end of the visit.
                    let _ = running.with_devices(shard, move |devices| devices.remove(dev));
                } else {
                    self.is_letting_go = true;
                }
            }
        }
    }

    /// The same of the members and spares that are somewhere.
    pub fn all_paths(&self) -> Vec<PathBuf> {
        let spares = self.spares.iter().map(|held| &held.spare.path);
        self.paths.iter().flatten().chain(spares).cloned().collect()
    }

    /// Where the members are, or were before they failed.
    pub fn paths(&self) -> &[Option<PathBuf>] {
        &self.paths
    }

    fn is_being_replaced(&self, dev: DevIndex) -> bool {
        self.pending.iter().any(|pending| pending.replacing.dev() == dev)
            || self.succeeding.iter().any(|one| one.dev() == dev)
    }

    fn note_replaced(&mut self, replacing: &Replacing, path: PathBuf, events: &mut Vec<Event>) {
        let dev = replacing.dev();
        self.known_failed.retain(|&other| other != dev);
        self.lost.remove(&dev);
        self.unnamed.retain(|&other| other != dev);
        self.paths[dev.index()] = Some(path.clone());
        events.push(match replacing.is_back() || replacing.is_return() {
            true => Event::CameBack { dev, path },
            false => {
                self.refilled.insert(dev);
                Event::Replaced { dev, path }
            }
        });
    }
}

/// Why a device does not come back, in the operator's words.
fn not_back(name: String, path: PathBuf, why: NotBack) -> Refusal {
    Refusal::NotBack { path, name, why: why.to_string() }
}

/// A shard takes the device of a member that left back.
fn take_back(running: &mut Running, shard: usize, serial: u32, pending: &Pending) -> Result<(), Error> {
    let dev = pending.replacing.dev();
    let uuid = running.engine(shard).journal().array();
    let papers = running.with_devices(shard, move |devices| {
        Superblock::read_newest_of(uuid, |offset| {
            let mut bytes = [0u8; META_BYTES];
            devices.read_now(dev, offset, &mut bytes).ok()?;
            Some(bytes)
        })
    })?;
    let engine = running.engine(shard);
    let why = match &papers {
        Some(papers) => engine.why_not_online(dev, papers),
        None => Some(NotBack::Other),
    };
    match (papers, why) {
        (Some(papers), None) => {
            running.control_one(shard, |engine, tag| engine.online(tag, dev, serial, &papers));
            Ok(())
        }
        (_, why) => {
            let name = format!("member {dev}");
            Err(not_back(name, pending.path.clone(), why.unwrap_or(NotBack::Other)).into())
        }
    }
}

/// Takes the steps of a replacement that can be taken now; the last one looked at.
fn go_on(running: &mut Running, pending: &mut Pending) -> Result<ReplaceStep, Error> {
    let dev = pending.replacing.dev();
    let device_timeout_ns = running.lead().options().device_timeout_ns;
    loop {
        if pending.errand.as_ref().is_some_and(|errand| !errand.is_over(device_timeout_ns)) {
            return Ok(ReplaceStep::Wait);
        }
        if let Some(errand) = pending.errand.take() {
            errand.end(&pending.path)?;
        }
        let step = pending.replacing.next(&running.seats(dev));
        match step {
            ReplaceStep::Wait | ReplaceStep::Done => return Ok(step),
            ReplaceStep::Fail { shard } => running.engine_mut(shard).fail_device(dev),
            ReplaceStep::Install if running.is_in_service(dev) => {
                // What other shards work on stays open to them.
                for &shard in pending.replacing.shards() {
                    returning::reinstall(running, shard, dev)?;
                }
                pending.is_installed = true;
            }
            ReplaceStep::Install => {
                install_device(running, pending)?;
                pending.is_installed = true;
            }
            ReplaceStep::Wipe { shard } => {
                let config = running.engine(shard).store().config;
                let forget = move |devices: &mut Devices| array::forget(devices, dev, &config);
                pending.errand = Some(Errand::begin(running, shard, dev, forget)?);
            }
            ReplaceStep::Flush => {
                let flush = move |devices: &mut Devices| devices.flush_now(dev);
                pending.errand = Some(Errand::begin(running, 0, dev, flush)?);
            }
            ReplaceStep::Rebuild { shard, serial } if pending.replacing.is_back() => {
                take_back(running, shard, serial, pending)?;
            }
            ReplaceStep::Rebuild { shard, serial } => {
                if pending.replacing.is_return() {
                    returning::reinstall(running, shard, dev)?;
                    pending.is_installed = true;
                }
                running.control_one(shard, |engine, tag| engine.rebuild(tag, dev, serial));
            }
        }
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The replacement is opened, once for all shards.
fn install_device(running: &mut Running, pending: &mut Pending) -> Result<(), Error> {
    let dev = pending.replacing.dev();
    let mut opened = pending.lock.take().and_then(|mut lock| lock.take(DevIndex::new(0)));
    for shard in 0..running.shard_count() {
        let path = pending.path.clone();
        let installed = running.with_devices(shard, move |devices| {
            match opened {
                Some(member) => devices.install(dev, member)?,
                None => devices.replace(dev, &path)?,
            }
            Ok::<_, OpenError>(devices.members().get(dev).cloned())
        })?;
        opened = installed?;
    }
    Ok(())
}
