//! What is known of an array: gathered from a running engine or from superblocks, shown as text or JSON.

mod clients;
mod condition;
mod device;
mod engine;
mod spares;
mod wear;

pub use crate::succeed::Replacement;
pub use clients::{Clientele, Kind, Requests, StoreStatus};
pub use condition::Condition;
pub use device::{DeviceRole, DeviceState, DeviceStatus, Errors, Traffic, Written};
pub use engine::{
    Checkpoints, Commit, CommitWork, EngineStatus, Gc, LastWork, Memory, Space, Work, memory, work,
};
pub use wear::{Asked, Wear};

use crate::faults::{FailedBecause, Fault};
use crate::inspect::has_checkpoint;
use crate::losses::{self, Lost, describe_forced};
use crate::open::Found;
use crate::operate::Operator;
use crate::running::Running;
use crate::units::{show_count, show_seconds};
use array::{Arrangement, ArrayState, Engine, EngineStats, MaintenanceReport, is_half_grown};
use block::DevIndex;
use format::{ArrayConfig, MemberState, ScrubRecord, Superblock};
use serde::{Deserialize, Serialize, Serializer};
use std::path::{Path, PathBuf};

/// JSON has no room for names that are not UTF-8: they are written as they are shown.
fn write_paths<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

/// Where the figures come from.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The process that serves the array.
    Served,
    /// The superblocks of an array that nobody has open.
    Stopped,
    /// The superblocks of an array that some process has open, whose control socket was not found.
    InUse,
    /// The superblocks of an array whose server is gone without having stopped.
    Dead,
}

/// The last scrub, as the superblocks remember it.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastScrub {
    /// When it ended, in seconds since 1970.
    pub ended_unix_s: u64,
    /// How long it took.
    pub seconds: u64,
    /// Chunks that it wrote anew.
    pub chunks_repaired: u64,
    /// Metadata blocks that it wrote anew.
    pub metadata_repaired: u64,
    /// What it found wrong and could not mend.
    pub errors_left: u64,
    /// Whether it came to its end.
    pub completed: bool,
}

impl LastScrub {
    /// Of what the superblocks of all shards remember.
    fn of_shards(records: impl Iterator<Item = ScrubRecord>) -> Option<Self> {
        let one_more = |whole: Option<Self>, one: Option<Self>| match (whole, one) {
            (Some(whole), Some(one)) => Some(Self {
                ended_unix_s: whole.ended_unix_s.max(one.ended_unix_s),
                seconds: whole.seconds.max(one.seconds),
                chunks_repaired: whole.chunks_repaired + one.chunks_repaired,
                metadata_repaired: whole.metadata_repaired + one.metadata_repaired,
                errors_left: whole.errors_left + one.errors_left,
                completed: whole.completed && one.completed,
            }),
            // A shard that was never looked at says that the scrub was not one of everything.
            (Some(some), None) | (None, Some(some)) => Some(Self { completed: false, ..some }),
            (None, None) => None,
        };
        records.map(|record| Self::of_record(&record)).reduce(one_more).flatten()
    }

    fn of_record(record: &ScrubRecord) -> Option<Self> {
        (record.ended_unix_s > 0).then(|| Self {
            ended_unix_s: record.ended_unix_s,
            seconds: record.seconds.into(),
            chunks_repaired: record.chunks_repaired,
            metadata_repaired: record.metadata_repaired.into(),
            errors_left: record.errors_left.into(),
            completed: record.completed > 0,
        })
    }

    /// One that has just ended.
    pub fn of_report(found: &MaintenanceReport, seconds: u64, completed: bool) -> Self {
        Self {
            ended_unix_s: 0,
            seconds,
            chunks_repaired: found.chunks_repaired,
            metadata_repaired: found.metadata_repaired,
            errors_left: found.errors_left(),
            completed,
        }
    }

    /// `scrub repaired 12 chunks and 2 metadata blocks in 33 s with 0 errors left`.
    pub fn line(&self) -> String {
        let given_up = if self.completed { "" } else { " before it was given up" };
        format!(
            "scrub repaired {} chunks and {} metadata blocks in {}{given_up} with {} errors left",
            show_count(self.chunks_repaired),
            show_count(self.metadata_repaired),
            show_seconds(self.seconds),
            show_count(self.errors_left)
        )
    }
}

/// Requests of clients since serving began.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Activity {
    /// Seconds since then.
    pub seconds: u64,
    /// Requests completed.
    pub requests: u64,
    /// Chunks read.
    pub chunks_read: u64,
    /// Chunks written.
    pub chunks_written: u64,
    /// Chunks computed from their cover because their device could not give them.
    pub covered_reads: u64,
    /// Chunks lost altogether.
    pub lost: u64,
}

/// How an array is laid out.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Scheme.
    pub scheme: String,
    /// Code.
    pub code: String,
    /// Write-hole mode of schemes that write in place; others have none.
    pub consistency: Option<String>,
    /// k.
    pub data_count: usize,
    /// m.
    pub parity_count: usize,
    /// Log devices.
    pub log_count: usize,
    /// Chunk size.
    pub chunk_bytes: u64,
    /// Size of the volume.
    pub volume_bytes: u64,
    /// Share of each data device kept free for new versions, in thousandths.
    pub reserve_permille: u64,
    /// Rows of a unit of garbage collection; 0 unless the scheme is elastic.
    #[serde(default)]
    pub unit_rows: u32,
    /// Shards, each with an engine of its own.
    #[serde(default)]
    pub shard_count: u16,
}

/// How old an array is.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Age {
    /// Creation, seconds since 1970.
    pub created_unix_s: u64,
    /// Assemblies so far.
    pub epoch: u64,
}

/// How an array that does not run was left.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ending {
    /// Whether it was last stopped in order; `None` while it runs.
    pub clean: Option<bool>,
    /// It has members enough, but does not start without those that are missing unless the operator accepts
    /// that data may be wrong ([`Arrangement::is_dirty_degraded`]).
    #[serde(skip)]
    pub needs_force: bool,
}

/// An array at one moment. The keys are stable.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Status {
    /// UUID.
    pub uuid: String,
    /// Name, may be empty.
    pub name: String,
    /// What it can do.
    pub state: Condition,
    /// Where this comes from.
    pub source: Source,
    /// How it was left.
    #[serde(flatten)]
    pub ending: Ending,
    /// How it is laid out.
    #[serde(flatten)]
    pub shape: Shape,
    /// How old it is.
    #[serde(flatten)]
    pub age: Age,
    /// Where clients find it.
    pub uris: Vec<String>,
    /// Members and spares.
    pub devices: Vec<DeviceStatus>,
    /// Devices that were members once.
    #[serde(serialize_with = "write_paths")]
    pub stale: Vec<PathBuf>,
    /// Named paths that are no members, and why.
    pub ignored: Vec<String>,
    /// What else the operator should know, in sentences.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Who uses the volume.
    #[serde(flatten)]
    pub clientele: Clientele,
    /// What the engine says of itself while it runs.
    #[serde(flatten)]
    pub engine: EngineStatus,
    /// The last scrub; `None` if there never was one. Also of arrays that do not run.
    #[serde(default)]
    pub last_scrub: Option<LastScrub>,
    /// Members that returned wrong data or failed reads since their errors were last counted anew.
    #[serde(default)]
    pub troubled: Vec<String>,
    /// What clients did.
    pub activity: Option<Activity>,
    /// What of the volume is lost; null if nothing.
    #[serde(default)]
    pub lost: Option<Lost>,
    /// First stripe an interrupted scrub has not looked at; 0 = none.
    pub scrub_cursor: u64,
    /// Durable state that is lost and that the array was started without, by `--force`; until it is stopped
    /// or the operator has taken note of it (`clear`).
    pub lost_state: Option<String>,
}

fn shape(config: &ArrayConfig) -> Shape {
    let geometry = config.geometry;
    let spare_chunks = u64::from(config.chunks_per_device).saturating_sub(config.stripe_count);
    Shape {
        scheme: config.scheme.to_string(),
        code: config.code.to_string(),
        consistency: config.scheme.is_in_place().then(|| config.consistency.to_string()),
        data_count: geometry.data_count(),
        parity_count: geometry.parity_count(),
        log_count: usize::from(config.log_count),
        chunk_bytes: geometry.chunk_bytes() as u64,
        volume_bytes: config.whole_volume_bytes(),
        reserve_permille: spare_chunks * 1000 / u64::from(config.chunks_per_device).max(1),
        unit_rows: config.unit_rows,
        shard_count: config.shard.count,
    }
}

impl Status {
    /// What the last scrub could not mend, if anything.
    pub fn errors_left(&self) -> u64 {
        self.last_scrub.map_or(0, |scrub| scrub.errors_left)
    }

    /// Its condition when what the last scrub left is counted in: all members work, and yet some of what is
    /// on them lacks redundancy.
    fn doubted(&self) -> Condition {
        let hides = self.state == Condition::Healthy && self.errors_left() > 0;
        if hides { Condition::Degraded } else { self.state }
    }
}

/// Everything that does not depend on whether the array runs.
fn outline(superblock: &Superblock, state: Condition, source: Source) -> Status {
    let config = &superblock.config;
    Status {
        uuid: superblock.array.to_string(),
        name: superblock.name.clone(),
        state,
        source,
        ending: Ending::default(),
        shape: shape(config),
        age: Age { created_unix_s: superblock.created_unix_s, epoch: superblock.epoch.get() },
        uris: Vec::new(),
        devices: Vec::new(),
        stale: Vec::new(),
        ignored: Vec::new(),
        notes: Vec::new(),
        clientele: Clientele::default(),
        engine: EngineStatus::default(),
        last_scrub: None,
        troubled: Vec::new(),
        activity: None,
        lost: None,
        scrub_cursor: superblock.scrub_cursor,
        lost_state: None,
    }
}

/// The volume is as large as the smallest shard allows, until all have grown.
fn tell_size(status: &mut Status, shapes: &[ArrayConfig]) {
    let map = ArrayConfig::interleave_of(shapes.iter());
    status.shape.volume_bytes = map.map_or(status.shape.volume_bytes, |map| map.volume_bytes());
    if is_half_grown(shapes) {
        let largest = shapes.iter().map(|shape| shape.chunks_per_device).max();
        let grown = shapes.iter().filter(|shape| Some(shape.chunks_per_device) == largest).count();
        status.notes.push(format!(
            "`grow` was cut short: {grown} of {} shards have grown, and the volume is as large as before until the others have; \
             `stop` the array if it is served, and give `grow` again",
            shapes.len()
        ));
    }
}

/// An array that is not running, from its superblocks. At `in_vain` more paths members were looked for and
/// not found.
pub fn of_superblocks(found: &Found, source: Source, in_vain: usize) -> Status {
    let newest = &found.arrangement.newest;
    let states: Vec<MemberState> = (0..found.paths.len()).map(|index| found.member_state(index)).collect();
    // What counts is how many each shard lacks: they may have lost different ones.
    let lacks = |shard: &Arrangement| {
        shard.members.iter().filter(|entry| entry.state != MemberState::Healthy).count()
    };
    let missing = found.arrangements().map(lacks).max().unwrap_or(0);
    // Members that nobody has looked at may be there.
    let out = missing.saturating_sub(found.unnamed().len().saturating_sub(in_vain));
    let bears = newest.config.geometry.parity_count();
    let condition = match (missing, out) {
        (0, _) => Condition::Healthy,
        (some, _) if some <= bears => Condition::Degraded,
        (_, out) if out <= bears => Condition::Incomplete,
        (_, _) => Condition::Failed,
    };
    let lost = losses::of_superblocks(found.arrangements().map(|arrangement| &arrangement.newest));
    let shadowed = matches!(condition, Condition::Failed | Condition::Incomplete);
    let forced = found.arrangements().filter_map(|one| one.newest.losses.forced).min();
    let is_lost = (lost.is_some() || forced.is_some()) && !shadowed;
    let condition = if is_lost { Condition::Lost } else { condition };
    let mut status = outline(newest, condition, source);
    status.lost_state = forced.map(describe_forced);
    tell_size(&mut status, &found.shapes());
    status.state = status.doubted();
    status.lost = lost;
    let running = matches!(source, Source::Served | Source::InUse);
    let clean = found.arrangements().all(|arrangement| arrangement.newest.clean);
    status.ending.clean = (!running).then_some(clean);
    status.last_scrub = LastScrub::of_shards(found.arrangements().map(|one| one.newest.scrub));
    let main_count = newest.config.geometry.device_count();
    for (index, (state, path)) in (0u16..).zip(states.into_iter().zip(&found.paths)) {
        let unseen = path.is_none()
            && newest.members.get(usize::from(index)).is_some_and(|e| e.state == MemberState::Healthy);
        let state = if unseen { DeviceState::Missing } else { state.into() };
        status.devices.push(DeviceStatus::of_member(main_count, DevIndex::new(index), state, path.clone()));
    }
    spares::list_found(&mut status, found);
    status.stale.clone_from(&found.stale);
    status.notes.extend(found.diverged.iter().map(|path| describe_diverged(path)));
    let shadowed = running || matches!(condition, Condition::Failed | Condition::Incomplete);
    if !shadowed && found.arrangements().any(Arrangement::is_dirty_degraded) {
        status.ending.needs_force = out > 0;
        status.state = if out > 0 { Condition::Failed } else { Condition::Incomplete };
    }
    if !running && condition != Condition::Incomplete && !can_start(found) {
        status.state = Condition::Failed;
    }
    status
}

/// What is said of a device that was in service in another course of an array.
pub fn describe_diverged(path: &Path) -> String {
    format!(
        "{}: went on apart from the others, and may hold what they do not: a copy of the array was started by itself, or this part \
         of it without them; leave it out and look at it by itself before anything is written over it",
        path.display()
    )
}

/// Superblocks alone do not make an array: without a checkpoint on any member it cannot be started. Members
/// that were not named may have one.
fn can_start(found: &Found) -> bool {
    let superblock = found.superblock();
    let main_count = superblock.config.geometry.device_count();
    let mut main = (0u16..).map(DevIndex::new).zip(&found.paths).take(main_count);
    let has = |(dev, path): (DevIndex, &Option<PathBuf>)| {
        path.as_ref().is_some_and(|path| has_checkpoint(path, superblock, dev))
    };
    !found.unnamed().is_empty() || main.any(has)
}

/// A running array.
pub fn of_running(served: &Running, operator: &Operator, stale: &[PathBuf]) -> Status {
    let lead = served.lead();
    let condition = match served.array_state() {
        ArrayState::Healthy => Condition::Healthy,
        ArrayState::Degraded => Condition::Degraded,
        ArrayState::Failed => Condition::Failed,
    };
    let mut status = outline(&lead.superblock_of(DevIndex::new(0)), condition, Source::Served);
    tell_size(&mut status, &served.engines().map(|engine| engine.store().config).collect::<Vec<_>>());
    let scrubs = served.engines().map(|engine| engine.superblock_of(DevIndex::new(0)).scrub);
    status.last_scrub = LastScrub::of_shards(scrubs);
    status.lost_state = operator.lost_state().cloned();
    status.clientele.read_only = operator.is_read_only();
    if operator.is_read_only() {
        status.notes.push("served read-only: nothing is written to its members".to_owned());
    }
    status.notes.extend(operator.whose_bytes(served));
    let main_count = lead.store().main_count();
    for (dev, path) in served.members().zip(operator.paths()) {
        let state = served.member_state(dev).into();
        let mut device = DeviceStatus::of_member(main_count, dev, state, path.clone());
        let errors = served.errors_of(dev);
        device.errors = Some(Errors {
            read: errors.read,
            write: errors.write,
            checksum: errors.checksum,
            healed: errors.healed,
            since_unix_s: lead.health().members()[dev.index()].counted_since_unix_s.into(),
        });
        if errors.checksum + errors.read > 0 {
            status.troubled.push(device.name.clone());
        }
        let counters = served.traffic_of(dev);
        device.traffic = Some(Traffic {
            read_bytes: counters.read_bytes_all(),
            written_bytes: counters.write_bytes_all(),
            discarded_bytes: counters.discard_bytes,
            written_by_kind: Some(Written::of(&counters)),
        });
        describe_trouble(served, dev, &mut device);
        if operator.is_lost(dev) && device.failed_because.is_some() {
            device.failed_because = Some(FailedBecause::Lost);
        }
        device.replacement = operator.replacement_of(dev, served.now_ns());
        let open = served.open_members().get(dev);
        device.write_streams = open.map(|member| member.write_streams().count());
        status.devices.push(device);
    }
    status.state = status.doubted();
    let holds_up = |device: &DeviceStatus| device.lacks_room || device.not_answering;
    if status.devices.iter().any(holds_up) && status.state != Condition::Failed {
        status.state = Condition::Suspended;
    }
    status.lost = losses::of_running(served);
    if (status.lost.is_some() || status.lost_state.is_some()) && status.state != Condition::Failed {
        status.state = Condition::Lost;
    }
    spares::list(&mut status, operator, served);
    status.stale = stale.to_vec();
    status.engine = EngineStatus::of(served);
    let sum = |figure: fn(&EngineStats) -> u64| served.engines().map(|engine| figure(&engine.stats())).sum();
    status.activity = Some(Activity {
        seconds: served.now_ns() / 1_000_000_000,
        requests: sum(|stats| stats.requests),
        chunks_read: sum(|stats| stats.user_chunks_read),
        chunks_written: sum(|stats| stats.user_chunks_written),
        covered_reads: sum(|stats| stats.covers),
        lost: sum(|stats| stats.lost),
    });
    status.scrub_cursor = served.engines().map(Engine::scrub_cursor).max().unwrap_or(0);
    status
}

/// Puts into a member's status what holds it up, and what its device did not do.
fn describe_trouble(served: &Running, dev: DevIndex, device: &mut DeviceStatus) {
    let trouble = served.trouble_of(dev);
    device.last_fault = trouble.last_fault.map(|fault| Fault::of_engine(&fault, served.now_ns()));
    device.failed_because = trouble.failed.map(FailedBecause::of_engine);
    device.oldest_request_ms = Some(trouble.oldest_ns.unwrap_or(0) / 1_000_000);
    device.lacks_room = trouble.lacks_room_since_ns.is_some();
    device.not_answering = trouble.not_answering;
}
