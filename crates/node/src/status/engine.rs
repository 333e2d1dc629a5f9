//! What the engine of a running array says of itself.

use crate::open::member_name;
use crate::placement::{PlacementInfo, placement_info, rewrites_name};
use array::{Engine, MaintenanceReport, WorkKind};
use block::DevIndex;
use format::MemberState;
use serde::{Deserialize, Serialize};

/// What is known of a running array only; all `None` of another.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
pub struct EngineStatus {
    /// Space.
    pub space: Option<Space>,
    /// Bytes of the aligned blocks that a power cut never tears if one request writes them; 0 = none.
    #[serde(default)]
    pub untorn_bytes: Option<u64>,
    /// Parity commit.
    pub commit: Option<Commit>,
    /// What becomes of whole stripes that are written again, `replace` or `log`; only of eplog.
    #[serde(default)]
    pub rewrites: Option<String>,
    /// What an elastic scheme runs with.
    #[serde(default)]
    pub placement: Option<PlacementInfo>,
    /// Garbage collection, of elastic schemes.
    pub gc: Option<Gc>,
    /// Checkpoints.
    pub checkpoints: Option<Checkpoints>,
    /// Memory.
    pub memory: Option<Memory>,
    /// Rebuild or scrub under way.
    pub work: Option<Work>,
    /// What the last rebuild or scrub since assembly found.
    pub last_work: Option<LastWork>,
}

/// Space of a running array.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Chunks on all data devices.
    pub chunk_count: u64,
    /// Chunks of all data devices that are free.
    pub chunks_free: u64,
    /// Chunks beyond those that a full volume needs: where new versions go.
    pub chunks_reserved: u64,
    /// Blocks of the log region, on each log device.
    pub log_blocks: u64,
    /// Of those in use.
    pub log_blocks_used: u64,
}

/// Parity commit of a running array.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Commit {
    /// Stripes whose parity on the data devices is older than their data (the log devices cover the
    /// difference).
    pub dirty_stripes: u64,
    /// Log stripes in use.
    pub log_stripes: u64,
    /// Whether a commit is under way.
    pub running: bool,
    /// Stripes that cannot be committed because what they need is lost.
    pub stuck_stripes: u64,
    /// Commits since assembly.
    pub commits: u64,
    /// Those of them that committed no more than what kept the log from being cut.
    #[serde(default)]
    pub log_commits: u64,
    /// Stripes committed since assembly.
    pub stripes_committed: u64,
    /// Stripes written whole, with their parity, since assembly.
    #[serde(default)]
    pub full_stripes_written: u64,
    /// Those of them that replaced what had been written to their stripe before.
    #[serde(default)]
    pub stripes_replaced: u64,
    /// Log stripes written since assembly.
    #[serde(default)]
    pub log_stripes_written: u64,
}

/// Garbage collection of a running array.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gc {
    /// Units in all.
    pub units: u64,
    /// Rows of all units that are free.
    pub rows_free: u64,
    /// Units collected since assembly.
    pub units_collected: u64,
    /// Chunks that were moved for that.
    pub chunks_rewritten: u64,
    /// Chunks read for that.
    pub chunks_read: u64,
    /// Stripes written since assembly with as many chunks as fit.
    pub full_stripes: u64,
    /// Stripes written since assembly with fewer.
    pub short_stripes: u64,
}

/// Checkpoints of a running array.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checkpoints {
    /// Number of the newest.
    pub number: u64,
    /// Number of the full one it builds on.
    pub full_number: u64,
    /// Written since assembly.
    pub written: u64,
}

/// Memory of a running array's maps.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Maps and checksums of what was written, and free space.
    pub fixed_bytes: u64,
    /// Grows with uncommitted updates.
    pub dynamic_bytes: u64,
    /// Copies of pages of the table that were read since the start because the page was not in memory.
    #[serde(default)]
    pub pages_read: u64,
    /// Fixed bytes per chunk of the data devices, times 100.
    pub bytes_per_chunk_hundredths: u64,
    /// What tells chunks of unlike lifetime apart, of a size of its own.
    #[serde(default)]
    pub placement_bytes: u64,
}

/// Rebuild or scrub.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Work {
    /// What it is.
    #[serde(with = "kind")]
    pub kind: WorkKind,
    /// Members being rebuilt.
    pub devices: Vec<String>,
    /// Stripes looked at.
    pub done: u64,
    /// Stripes to look at in all.
    pub total: u64,
    /// Bytes of stripes looked at per second, over all data devices.
    pub bytes_per_s: u64,
    /// The same of each data device.
    #[serde(default)]
    pub device_bytes_per_s: u64,
    /// The limit of that; `None` = none.
    #[serde(default)]
    pub limit_bytes_per_s: Option<u64>,
    /// Whether it waits to be told to go on.
    #[serde(default)]
    pub paused: bool,
    /// What may hold it up: a member that lacks room or does not answer.
    #[serde(default)]
    pub held_up_by: Option<String>,
    /// Seconds left at that rate.
    pub eta_s: Option<u64>,
    /// Code words that could not be read or rebuilt.
    pub lost: u64,
    /// Stripes whose parity did not match their data.
    pub mismatches: u64,
}

/// What the last rebuild or scrub found.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LastWork {
    /// Code words that could not be read or rebuilt.
    pub lost: u64,
    /// Stripes whose parity did not match their data although every checksum did.
    pub mismatches: u64,
    /// Whether it came to its end.
    pub completed: bool,
    /// Chunks written anew meanwhile.
    #[serde(default)]
    pub chunks_repaired: u64,
    /// Chunks that are bad still: there was no room to write them anew.
    #[serde(default)]
    pub chunks_left: u64,
    /// Metadata blocks written anew.
    #[serde(default)]
    pub metadata_repaired: u64,
    /// What is wrong with the metadata still.
    #[serde(default)]
    pub metadata_left: u64,
}

impl LastWork {
    /// What is wrong and could not be mended.
    pub fn errors_left(&self) -> u64 {
        self.lost + self.mismatches + self.chunks_left + self.metadata_left
    }

    /// From the engine's words.
    pub fn of_report(found: &MaintenanceReport) -> Self {
        Self {
            lost: found.lost,
            mismatches: found.code_mismatches,
            completed: found.completed,
            chunks_repaired: found.chunks_repaired,
            chunks_left: found.chunks_left,
            metadata_repaired: found.metadata_repaired,
            metadata_left: found.metadata_left,
        }
    }
}

impl EngineStatus {
    /// Of an engine, at this moment of its time.
    pub fn of(engine: &Engine, now_ns: u64) -> Self {
        let place = engine.checkpoint_place();
        let (number, full_number, written) = (place.number, place.base, engine.stats().checkpoints);
        Self {
            space: Some(space(engine)),
            untorn_bytes: Some(engine.untorn_bytes()),
            commit: Some(commit(engine)),
            rewrites: rewrites_name(&engine.options().scheme, &engine.store().config).map(str::to_owned),
            placement: placement_info(&engine.options().scheme, &engine.store().config),
            gc: gc(engine),
            checkpoints: Some(Checkpoints { number, full_number, written }),
            memory: Some(memory(engine)),
            work: work(engine, now_ns),
            last_work: Some(LastWork::of_report(&engine.last_report())),
        }
    }
}

fn space(engine: &Engine) -> Space {
    let store = engine.store();
    let n = store.main_count() as u64;
    let chunks = u64::from(store.config.chunks_per_device);
    Space {
        chunk_count: chunks * n,
        chunks_free: store.spaces.iter().map(|space| u64::from(space.free_count())).sum(),
        chunks_reserved: chunks.saturating_sub(store.config.stripe_count) * n,
        log_blocks: u64::from(store.log.block_count()),
        log_blocks_used: store.log.used(),
    }
}

fn commit(engine: &Engine) -> Commit {
    let pressure = engine.scheme().pressure(engine.store());
    let stats = engine.stats();
    Commit {
        dirty_stripes: pressure.dirty_stripes,
        log_stripes: pressure.log_stripes,
        running: engine.is_committing(),
        stuck_stripes: engine.stuck_stripes().len() as u64,
        commits: stats.commits,
        log_commits: stats.log_commits,
        stripes_committed: stats.stripes_committed,
        full_stripes_written: stats.full_stripes,
        stripes_replaced: stats.replaced_stripes,
        log_stripes_written: stats.log_stripes,
    }
}

fn gc(engine: &Engine) -> Option<Gc> {
    let store = engine.store();
    let unit_rows = store.config.unit_rows;
    let units = store.config.chunks_per_device.checked_div(unit_rows)?;
    let unused = store.config.chunks_per_device % unit_rows;
    let free = store.spaces.first().map_or(0, |space| space.free_count());
    let (gc, stats) = (engine.scheme().gc_stats(), engine.stats());
    Some(Gc {
        units: units.into(),
        rows_free: free.saturating_sub(unused).into(),
        units_collected: gc.units_collected,
        chunks_rewritten: gc.chunks_rewritten,
        chunks_read: gc.chunks_read,
        full_stripes: stats.full_stripes,
        short_stripes: stats.short_stripes,
    })
}

/// Memory of the maps.
pub fn memory(engine: &Engine) -> Memory {
    let store = engine.store();
    let scheme = engine.scheme().memory();
    let spaces: u64 = store.spaces.iter().map(|space| space.memory_bytes()).sum();
    let fixed_bytes = store.table.memory_bytes() + spaces + scheme.fixed_bytes;
    let chunks = u64::from(store.config.chunks_per_device) * store.main_count() as u64;
    Memory {
        fixed_bytes,
        dynamic_bytes: scheme.dynamic_bytes,
        pages_read: engine.stats().pages_read,
        bytes_per_chunk_hundredths: fixed_bytes * 100 / chunks.max(1),
        placement_bytes: scheme.placement_bytes,
    }
}

/// Rebuild or scrub under way, with its rate.
pub fn work(engine: &Engine, now_ns: u64) -> Option<Work> {
    let (kind, progress, report) = engine.maintenance()?;
    let config = &engine.store().config;
    let stripe_bytes = config.geometry.chunk_bytes() as u64 * config.geometry.device_count() as u64;
    let elapsed_ns = u128::from(now_ns.saturating_sub(progress.started_ns).max(1));
    let per_s =
        |count: u64| u64::try_from(u128::from(count) * 1_000_000_000 / elapsed_ns).unwrap_or(u64::MAX);
    // What was done before a restart says nothing of how fast the work is.
    let done = progress.done.saturating_sub(progress.kept);
    let stripes_per_s = per_s(done);
    let left = progress.total.saturating_sub(progress.done);
    let members = (0u16..).zip(engine.health().members());
    let rebuilding = members.filter(|(_, member)| member.state == MemberState::Rebuilding);
    let names = rebuilding.map(|(index, _)| member_name(engine.store().main_count(), DevIndex::new(index)));
    Some(Work {
        kind,
        devices: if kind == WorkKind::Rebuild { names.collect() } else { Vec::new() },
        done: progress.done.min(progress.total),
        total: progress.total,
        bytes_per_s: per_s(done.saturating_mul(stripe_bytes)),
        device_bytes_per_s: per_s(done.saturating_mul(config.geometry.chunk_bytes() as u64)),
        limit_bytes_per_s: engine.rebuild_rate(),
        paused: engine.is_scrub_paused(),
        held_up_by: (0u16..)
            .zip(engine.health().members())
            .find_map(|(index, _)| held_up(engine, DevIndex::new(index))),
        eta_s: (stripes_per_s > 0).then(|| left / stripes_per_s),
        lost: report.lost,
        mismatches: report.code_mismatches,
    })
}

/// What holds up work that needs a member.
fn held_up(engine: &Engine, dev: DevIndex) -> Option<String> {
    let (trouble, name) = (engine.member_trouble(dev), member_name(engine.store().main_count(), dev));
    match (trouble.lacks_room_since_ns, trouble.not_answering) {
        (Some(_), _) => Some(format!("there is no room where {name} lies")),
        (None, true) => Some(format!("{name} does not answer")),
        (None, false) => None,
    }
}

/// Kinds of work by their names.
mod kind {
    use crate::event::work_name;
    use array::WorkKind;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(kind: &WorkKind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(work_name(*kind))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<WorkKind, D::Error> {
        let name = String::deserialize(deserializer)?;
        let named = [WorkKind::Rebuild, WorkKind::Scrub].into_iter().find(|&kind| work_name(kind) == name);
        named.ok_or_else(|| de::Error::unknown_variant(&name, &["rebuild", "scrub"]))
    }
}
