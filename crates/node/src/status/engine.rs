//! What the engine of a running array says of itself.

use crate::happened::Happened;
use crate::open::member_name;
use crate::placement::{PlacementInfo, placement_info, rewrites_name};
use crate::running::Running;
use array::{CommitRun, Engine, MaintenanceReport, Progress, WorkKind};
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
    /// How much of each data device rebuild and scrub look at per second at most, whether one is under way or
    /// not; `None` = no limit.
    #[serde(default)]
    pub rate_limit_bytes_per_s: Option<u64>,
    /// What the last rebuild or scrub since assembly found.
    pub last_work: Option<LastWork>,
    /// What became of the last rebuild, replacement or growth since serving began.
    #[serde(default)]
    pub last_ended: Option<Happened>,
    /// Why the last parity commit that somebody asked for did not come to its end.
    #[serde(default)]
    pub last_commit_failed: Option<String>,
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
    /// How far it is.
    #[serde(default)]
    pub run: Option<CommitWork>,
    /// Whether one that somebody asked for has not ended.
    #[serde(default)]
    pub asked: bool,
    /// Whether commits wait to be told to go on, but for what the array needs.
    #[serde(default)]
    pub paused: bool,
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

/// A parity commit under way.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommitWork {
    /// Stripes that it has to look at.
    pub total: u64,
    /// Those that it is done with.
    pub done: u64,
    /// Stripes per second since it began, or went on.
    pub stripes_per_s: u64,
    /// Seconds left at that rate.
    pub eta_s: Option<u64>,
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
    /// Chunks that a rebuild wrote to members that lacked them.
    #[serde(default)]
    pub chunks_rebuilt: u64,
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
            chunks_rebuilt: found.chunks_rebuilt,
            chunks_left: found.chunks_left,
            metadata_repaired: found.metadata_repaired,
            metadata_left: found.metadata_left,
        }
    }
}

impl EngineStatus {
    /// Of a running array at this moment of its time: of all shards together.
    pub fn of(running: &Running) -> Self {
        let engine = running.lead();
        let place = engine.checkpoint_place();
        let written = running.engines().map(|engine| engine.stats().checkpoints).sum();
        // A shard that had nothing to do so far has nothing to say.
        let nothing = MaintenanceReport::default();
        let reports = running.engines().map(Engine::last_report).filter(|report| *report != nothing);
        let report = reports.reduce(MaintenanceReport::and).unwrap_or(nothing);
        Self {
            space: running.engines().map(space).reduce(Space::and),
            untorn_bytes: running.engines().map(Engine::untorn_bytes).min(),
            commit: running.engines().map(|engine| commit(engine, running.now_ns())).reduce(Commit::and),
            rewrites: rewrites_name(&engine.options().scheme, &engine.store().config).map(str::to_owned),
            placement: placement_info(&engine.options().scheme, &engine.store().config),
            gc: running.engines().filter_map(gc).reduce(Gc::and),
            checkpoints: Some(Checkpoints { number: place.number, full_number: place.base, written }),
            memory: memory_of_all(running),
            work: work(running),
            rate_limit_bytes_per_s: rate_limit(running),
            last_work: Some(LastWork::of_report(&report)),
            last_ended: None,
            last_commit_failed: None,
        }
    }
}

impl Space {
    fn and(self, other: Self) -> Self {
        Self {
            chunk_count: self.chunk_count + other.chunk_count,
            chunks_free: self.chunks_free + other.chunks_free,
            chunks_reserved: self.chunks_reserved + other.chunks_reserved,
            log_blocks: self.log_blocks + other.log_blocks,
            log_blocks_used: self.log_blocks_used + other.log_blocks_used,
        }
    }
}

impl Commit {
    fn and(self, other: Self) -> Self {
        Self {
            dirty_stripes: self.dirty_stripes + other.dirty_stripes,
            log_stripes: self.log_stripes + other.log_stripes,
            running: self.running || other.running,
            run: self.run.into_iter().chain(other.run).reduce(CommitWork::and),
            asked: self.asked || other.asked,
            paused: self.paused || other.paused,
            stuck_stripes: self.stuck_stripes + other.stuck_stripes,
            commits: self.commits + other.commits,
            log_commits: self.log_commits + other.log_commits,
            stripes_committed: self.stripes_committed + other.stripes_committed,
            full_stripes_written: self.full_stripes_written + other.full_stripes_written,
            stripes_replaced: self.stripes_replaced + other.stripes_replaced,
            log_stripes_written: self.log_stripes_written + other.log_stripes_written,
        }
    }
}

impl CommitWork {
    fn of(run: CommitRun, now_ns: u64) -> Self {
        let elapsed_ns = u128::from(now_ns.saturating_sub(run.started_ns).max(1));
        let per_s = u128::from(run.done) * 1_000_000_000 / elapsed_ns;
        Self::at(run.total, run.done, u64::try_from(per_s).unwrap_or(u64::MAX))
    }

    fn at(total: u64, done: u64, stripes_per_s: u64) -> Self {
        let eta_s = (stripes_per_s > 0).then(|| total.saturating_sub(done) / stripes_per_s);
        Self { total, done, stripes_per_s, eta_s }
    }

    /// With that of another shard.
    fn and(self, other: Self) -> Self {
        let per_s = self.stripes_per_s.saturating_add(other.stripes_per_s);
        Self::at(self.total + other.total, self.done + other.done, per_s)
    }
}

impl Gc {
    fn and(self, other: Self) -> Self {
        Self {
            units: self.units + other.units,
            rows_free: self.rows_free + other.rows_free,
            units_collected: self.units_collected + other.units_collected,
            chunks_rewritten: self.chunks_rewritten + other.chunks_rewritten,
            chunks_read: self.chunks_read + other.chunks_read,
            full_stripes: self.full_stripes + other.full_stripes,
            short_stripes: self.short_stripes + other.short_stripes,
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

fn commit(engine: &Engine, now_ns: u64) -> Commit {
    let pressure = engine.scheme().pressure(engine.store());
    let stats = engine.stats();
    Commit {
        dirty_stripes: pressure.dirty_stripes,
        log_stripes: pressure.log_stripes,
        running: engine.is_committing(),
        run: engine.commit_run().map(|run| CommitWork::of(run, now_ns)),
        asked: false,
        paused: engine.are_commits_paused(),
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

/// Memory of the maps of an engine.
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

/// That of all shards.
fn memory_of_all(running: &Running) -> Option<Memory> {
    let shards = u64::from(running.interleave().count());
    running.engines().map(memory).reduce(Memory::and).map(|sum| Memory {
        // Shards have as many chunks as each other.
        bytes_per_chunk_hundredths: sum.bytes_per_chunk_hundredths / shards,
        ..sum
    })
}

impl Memory {
    fn and(self, other: Self) -> Self {
        Self {
            fixed_bytes: self.fixed_bytes + other.fixed_bytes,
            dynamic_bytes: self.dynamic_bytes + other.dynamic_bytes,
            pages_read: self.pages_read + other.pages_read,
            bytes_per_chunk_hundredths: self.bytes_per_chunk_hundredths + other.bytes_per_chunk_hundredths,
            placement_bytes: self.placement_bytes + other.placement_bytes,
        }
    }
}

/// Rebuild or scrub under way, with its rate: the sum over the shards that are at it.
pub fn work(running: &Running) -> Option<Work> {
    let at_it = || running.engines().filter_map(Engine::maintenance);
    let (kind, _, _) = at_it().next()?;
    let parts = || at_it().filter(|&(of, _, _)| of == kind);
    let config = &running.lead().store().config;
    let now_ns = running.now_ns();
    let stripe_bytes = config.geometry.chunk_bytes() as u64 * config.geometry.device_count() as u64;
    let started_ns = parts().map(|(_, progress, _)| progress.started_ns).min().unwrap_or(now_ns);
    let elapsed_ns = u128::from(now_ns.saturating_sub(started_ns).max(1));
    let per_s =
        |count: u64| u64::try_from(u128::from(count) * 1_000_000_000 / elapsed_ns).unwrap_or(u64::MAX);
    // A shard that has ended its part has done all of it.
    let over = parts().fold(u64::from(running.interleave().count()), |left, _| left - 1);
    let sum = |figure: fn(&Progress) -> u64| parts().map(|(_, progress, _)| figure(&progress)).sum::<u64>();
    let ended = over * parts().map(|(_, progress, _)| progress.total).max().unwrap_or(0);
    let (total, at) = (sum(|part| part.total) + ended, sum(|part| part.done) + ended);
    // What was done before a restart says nothing of how fast the work is.
    let done = at.saturating_sub(sum(|part| part.kept));
    let stripes_per_s = per_s(done);
    let left = total.saturating_sub(at);
    let main_count = running.lead().store().main_count();
    let rebuilding = running.members().filter(|&dev| running.member_state(dev) == MemberState::Rebuilding);
    let names = rebuilding.map(|dev| member_name(main_count, dev));
    Some(Work {
        kind,
        devices: if kind == WorkKind::Rebuild { names.collect() } else { Vec::new() },
        done: at.min(total),
        total,
        bytes_per_s: per_s(done.saturating_mul(stripe_bytes)),
        device_bytes_per_s: per_s(done.saturating_mul(config.geometry.chunk_bytes() as u64)),
        limit_bytes_per_s: rate_limit(running),
        paused: running.engines().any(Engine::is_scrub_paused),
        held_up_by: running.members().find_map(|dev| held_up(running, dev)),
        eta_s: (stripes_per_s > 0).then(|| left / stripes_per_s),
        lost: parts().map(|(_, _, report)| report.lost).sum(),
        mismatches: parts().map(|(_, _, report)| report.code_mismatches).sum(),
    })
}

/// What holds up work that needs a member.
fn held_up(running: &Running, dev: DevIndex) -> Option<String> {
    let (trouble, name) = (running.trouble_of(dev), member_name(running.lead().store().main_count(), dev));
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

/// The limit of rebuild and scrub, over all shards.
fn rate_limit(running: &Running) -> Option<u64> {
    running.engines().map(Engine::rebuild_rate).sum()
}
