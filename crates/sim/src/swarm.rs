//! What one world looks like: every choice drawn from the seed, so that unusual combinations come up (swarm
//! testing).

mod mix;

pub use mix::{Chosen, Mix, Unit};

use crate::Rng;
use crate::disk::Tear;
use crate::world::Pace;
use array::{
    CommitPolicy, CreateOptions, DiscardPolicy, EngineOptions, LAYOUT_OF_NEW, PatrolPolicy, Rewrites,
    SchemeOptions, SyncPolicy, plan_config, unit_bytes,
};
use block::{Geometry, Random as _};
use format::{
    ArrayConfig, CodeKind, Consistency, DATA_ALIGN_BYTES, LayoutKind, LogContent, NewVersions, SchemeKind,
    Shard,
};
use placement::{GcGroup, GcThreshold, HotnessKind, PlacementKind, Tuning, VictimKind};

/// How often things happen that need not, in thousandths.
#[derive(Clone, Copy, Default, Debug)]
pub struct Odds {
    /// A write is durable.
    pub durable: u64,
    /// A request goes to the hot part of the volume.
    pub hot: u64,
    /// A session ends with a power cut at any operation.
    pub crash: u64,
    /// Power is cut again while the array is being assembled.
    pub recrash: u64,
    /// A write of whole chunks is an aligned block of a power of two of them.
    pub aligned: u64,
    /// A power cut takes devices with it.
    pub loss: u64,
    /// Nobody asks for anything until the engine has nothing to do any more.
    pub pause: u64,
    /// Before a session the devices become larger, and the array grows.
    pub grow: u64,
    /// Before a start a device loses its end.
    pub cut_short: u64,
    /// Instead of asking for a commit somebody pauses commits, lets them go on, or gives one up.
    pub steer: u64,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Swarm {
    /// The array.
    pub config: ArrayConfig,
    /// How it is run.
    pub options: EngineOptions,
    /// Speed of the devices.
    pub pace: Pace,
    /// Requests under way at most.
    pub depth: usize,
    /// Requests of one session.
    pub requests: u64,
    /// Sessions.
    pub sessions: u64,
    /// Requests by kind.
    pub mix: Mix,
    /// Sectors that most requests go to.
    pub hot_sectors: u64,
    /// Chunks in a request at most.
    pub chunks_max: u64,
    /// What a power cut does to caches.
    pub tear: Tear,
    /// How often things happen that need not.
    pub odds: Odds,
    /// Whether devices may fail or misbehave at all.
    pub faults: bool,
    /// Whether power may fail; if not, every session ends with an orderly stop.
    pub crashes: bool,
    /// Whether most damage is done to metadata, and scrubs are many.
    pub rotting: bool,
    /// Whether a session that begins with a whole array ends with more devices gone than the code tolerates,
    /// for a while.
    pub blackouts: bool,
    /// Whether the world ends with damage beyond what the code tolerates.
    pub ruin: bool,
    /// Whether members that left come back, more often than not, instead of being replaced.
    pub returns: bool,
    /// Whether the server is killed as often as power is cut.
    pub kills: bool,
    /// Whether members that work get successors.
    pub succeeds: bool,
    /// Whether most faults are devices that do not answer, or late.
    pub hangs: bool,
}

/// What the command line pins.
#[derive(Clone, Copy, Default, Debug)]
pub struct Pinned {
    /// The scheme.
    pub scheme: Option<SchemeKind>,
    /// What is scarce.
    pub scarce: Option<Scarce>,
    /// Whether more devices than the code tolerates stop answering in every session that begins with a whole
    /// array.
    pub blackouts: bool,
    /// Whether every world ends with damage beyond what the code tolerates.
    pub ruin: bool,
    /// Whether most damage is done to metadata, and scrubs are many.
    pub rot: bool,
    /// How many shards the array has.
    pub shards: Option<u16>,
    /// Whether members that left come back, and the like of it happens often.
    pub returns: bool,
    /// Whether members that work get successors, over and over.
    pub succeeds: bool,
    /// Whether most faults are devices that do not answer, or late, and there are many.
    pub hangs: bool,
    /// Whether the devices become larger before nearly every session.
    pub grows: bool,
    /// Whether a device loses its end before every other start.
    pub maims: bool,
}

/// What a world has hardly any of, so that it is reused as soon as it may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scarce {
    /// Spare chunks.
    Space,
    /// Spare chunks, in few stripes that are written and committed over and over.
    Stripes,
    /// Blocks of the journal.
    Journal,
}

impl Scarce {
    /// Every one, with its name on the command line.
    pub const ALL: [(&'static str, Self); 3] =
        [("space", Self::Space), ("stripes", Self::Stripes), ("journal", Self::Journal)];
}

/// Whether something happens that does in one world of three: from a generator of its own, of which other
/// draws have used the first words.
fn draw_aside(word: u32, rng: &mut Rng) -> bool {
    (1..word).for_each(|_| _ = rng.word());
    rng.chance(1, 3)
}

/// How often the array grows before a session, in thousandths; from a generator of its own.
fn draw_growth(pinned: Pinned, shards: u16, mut own: Rng) -> u64 {
    // Fewer of those with several shards, which were drawn before those could grow.
    let grows = draw_aside(4, &mut own) && (shards == 1 || draw_aside(1, &mut own));
    let often = if grows { 300 } else { 0 };
    if pinned.grows { 700 } else { often }
}

/// How often a device loses its end before a start, in thousandths; from a generator of its own.
fn draw_cut_short(pinned: Pinned, mut own: Rng) -> u64 {
    // One world of nine: those were others before this was drawn.
    let drawn = draw_aside(4, &mut own) && draw_aside(1, &mut own);
    let often = if drawn { 200 } else { 0 };
    if pinned.maims { 500 } else { often }
}

impl Swarm {
    /// Draws a world.
    pub fn draw(rng: &mut Rng, pinned: Pinned) -> Self {
        // From a generator of its own: worlds with one shard stay what they were before this was drawn.
        let mut own = rng.clone().fork();
        let drawn = own.pick(&[1, 1, 1, 2, 3, 4]);
        let shards = pinned.shards.unwrap_or(drawn);
        let config = draw_config(rng, pinned.scheme, Cut { shards, rng: own });
        let sectors = config.whole_volume_bytes() / block::SECTOR_BYTES;
        let faults = rng.chance(3, 4) || pinned.blackouts || pinned.returns || pinned.hangs || pinned.maims;
        // Without a journal an in-place scheme promises only what Linux md does: no power cut while a device
        // is hurt.
        let crashes = !(faults && is_resync(&config));
        // Drawn in this order, on which published seeds depend.
        let mut options = draw_options(rng, &config);
        // Worlds stay what they were before this was drawn. Most replace stripes that are written again.
        let picked = rng.clone().fork().pick(&[Rewrites::Auto, Rewrites::Replace, Rewrites::Log]);
        options.scheme.rewrites = picked;
        let pace = draw_pace(rng, &config);
        let depth = rng.pick(&[1, 2, 4, 8, 16, 32]);
        let requests = rng.pick(&[10, 30, 60, 120, 250]);
        let sessions = rng.within(1, 4);
        let mix = draw_mix(rng);
        let durable = rng.pick(&[0, 50, 300, 1000]);
        let hot_sectors = rng.within(1, sectors).min(rng.pick(&[64, 256, sectors]));
        let hot = rng.pick(&[0, 500, 900]);
        let chunks_max = rng.pick(&[1, 2, 4, 12]);
        let tear = rng.pick(&crate::disk::TEARS);
        // Worlds stay what they were before this was drawn.
        let aligned = rng.clone().fork().pick(&[0, 300, 300, 800]);
        let odds = Odds {
            aligned,
            durable,
            hot,
            crash: rng.pick(&[300, 700, 1000]),
            recrash: rng.pick(&[0, 200, 500]),
            loss: rng.pick(&[0, 300, 700]),
            pause: rng.pick(&[0, 20, 200]),
            grow: draw_growth(pinned, shards, rng.clone().fork()),
            cut_short: draw_cut_short(pinned, rng.clone().fork().fork()),
            steer: if draw_aside(1, &mut rng.clone().fork().fork().fork()) { 500 } else { 0 },
        };
        // From a generator of its own: worlds stay what they were before this was drawn.
        let ruin = pinned.ruin || rng.clone().fork().chance(1, 5);
        let blackouts = crashes && (pinned.blackouts || (faults && rng.chance(1, 8)));
        let swarm = Self {
            config,
            options,
            pace,
            depth,
            requests,
            sessions,
            mix,
            odds,
            hot_sectors,
            chunks_max,
            tear,
            faults,
            crashes,
            rotting: false,
            blackouts,
            ruin,
            returns: false,
            kills: crashes && draw_aside(2, &mut rng.clone().fork()),
            succeeds: pinned.succeeds || draw_aside(3, &mut rng.clone().fork()),
            hangs: false,
        };
        // Worlds stay what they were before this was drawn.
        let mut aside = rng.clone();
        let swarm =
            if pinned.rot || (faults && aside.chance(1, 10)) { swarm.rotting(&mut aside) } else { swarm };
        let mends = aside.chance(1, 6) && !swarm.rotting && swarm.crashes && !swarm.blackouts;
        let swarm = if mends { swarm.mending(&mut aside) } else { swarm };
        let swarm = swarm.returning(pinned.returns, &mut aside).hanging(pinned.hangs, &mut aside);
        let drawn = match rng.below(12) {
            0 => Some(Scarce::Space),
            1 => Some(Scarce::Stripes),
            2 => Some(Scarce::Journal),
            _ => None,
        };
        swarm.scarce(pinned.scarce.or(drawn), rng)
    }

    /// The same with hardly any of something.
    fn scarce(self, what: Option<Scarce>, rng: &mut Rng) -> Self {
        match what {
            Some(Scarce::Space) => self.short_of_space(rng),
            Some(Scarce::Stripes) => self.rewriting(rng),
            Some(Scarce::Journal) => self.short_of_journal(rng),
            None => self,
        }
    }

    /// The same with metadata that rots, and scrubs or a patrol that mend it; then other devices are lost at
    /// once.
    fn rotting(mut self, rng: &mut Rng) -> Self {
        (self.rotting, self.faults, self.blackouts) = (true, true, false);
        self.crashes = !is_resync(&self.config);
        self.mix = Mix { scrub: rng.pick(&[4, 20]), trap: 15, fail: rng.pick(&[0, 2]), ..self.mix };
        self.mix = Mix { replace: 10, checkpoint: rng.pick(&[2, 20]), ..self.mix };
        (self.requests, self.sessions) = (rng.pick(&[30, 60, 120]), 4);
        // Without a journal no device may be lost while the array is not stopped in order.
        (self.odds.crash, self.odds.loss) = if self.crashes { (1000, 1000) } else { (0, 0) };
        let interval_ns = rng.pick(&[20_000, 200_000]);
        let patrol = PatrolPolicy { interval_ns, bytes_per_s: rng.pick(&[1 << 30, 1 << 40]) };
        self.options.patrol = rng.pick(&[None, Some(patrol)]);
        self
    }

    /// The same with members that come back, perhaps over and over. Worlds in which nobody does stay what
    /// they were before this was drawn.
    fn returning(mut self, often: bool, rng: &mut Rng) -> Self {
        self.returns = often || (self.faults && rng.chance(1, 4));
        if often && self.crashes && !self.blackouts { self.mending(rng) } else { self }
    }

    /// The same with devices that do not answer, or late. Worlds in which all answer stay what they were
    /// before this was drawn.
    fn hanging(mut self, often: bool, rng: &mut Rng) -> Self {
        self.hangs = often || (self.faults && rng.chance(1, 6));
        if self.hangs {
            self.options.device_timeout_ns = Some(5_000_000);
            self.mix.trap = self.mix.trap.max(if often { 20 } else { 5 });
            self.mix.replace = self.mix.replace.max(10);
        }
        self
    }

    /// The same with members that fail and are replaced over and over, and restarts in the middle of their
    /// rebuilds.
    fn mending(mut self, rng: &mut Rng) -> Self {
        self.mix = Mix { fail: rng.pick(&[20, 60]), replace: 200, trap: rng.pick(&[0, 5]), ..self.mix };
        (self.requests, self.sessions) = (rng.pick(&[60, 120]), 4);
        (self.odds.crash, self.odds.loss) = (rng.pick(&[300, 1000]), rng.pick(&[0, 0, 200]));
        self.options.unit_stripes = rng.pick(&[1, 1, 3]);
        self.options.rebuild_save_bytes = rng.pick(&[1, 1, 1 << 15]);
        self
    }

    /// The same with hardly any spare chunks and few flushes: space is reused as soon as it may be, and a
    /// power cut leaves much of what the caches hold.
    fn short_of_space(mut self, rng: &mut Rng) -> Self {
        let stripes = self.config.stripe_count.min(rng.pick(&[4, 8])) as u32;
        if self.config.scheme.facts().new_versions == NewVersions::SameDevice {
            if !self.config.shard.is_one_of_several() {
                self.config.stripe_count = u64::from(stripes);
            }
            self.config.chunks_per_device = u32::try_from(self.config.stripe_count).unwrap_or(stripes) + 48;
            self.config = lay_out(self.config);
        }
        self.mix = Mix {
            write: rng.pick(&[0, 20]),
            whole: 300,
            stripe: 50,
            flush: rng.pick(&[0, 5, 15]),
            discard: 10,
            ..self.mix
        };
        (self.depth, self.chunks_max) = (rng.pick(&[1, 4, 32]), rng.pick(&[4, 12]));
        self.options.commit.every_requests = rng.pick(&[None, Some(4), Some(20)]);
        self.unflushed(rng)
    }

    /// The same with few stripes that are written and committed over and over: what one write made is freed
    /// by a later one before either is durable, and reused as soon as both are.
    fn rewriting(mut self, rng: &mut Rng) -> Self {
        self = self.short_of_space(rng);
        self.mix = Mix { write: 0, stripe: 0, discard: 0, commit: rng.pick(&[0, 50]), ..self.mix };
        self.mix = Mix { flush: rng.pick(&[0, 3]), checkpoint: rng.pick(&[0, 30]), scrub: 0, ..self.mix };
        self.options.commit.every_requests = rng.pick(&[Some(2), Some(4), Some(8)]);
        (self.depth, self.requests, self.sessions) = (rng.pick(&[4, 16, 32]), 60, 8);
        self
    }

    /// The same with the smallest journal, many records and few flushes: what a checkpoint frees is
    /// overwritten at once.
    fn short_of_journal(mut self, rng: &mut Rng) -> Self {
        self.config.journal_blocks = 40;
        self.config = lay_out(self.config);
        self.mix = Mix { write: 100, whole: 300, flush: rng.pick(&[0, 2]), discard: 0, ..self.mix };
        self.mix = Mix { stripe: 0, checkpoint: rng.pick(&[0, 5]), ..self.mix };
        (self.depth, self.chunks_max) = (rng.pick(&[4, 32]), 12);
        self.options.batch_max = 1;
        self.unflushed(rng)
    }

    /// Long sessions without a flush, cut while the caches hold much.
    fn unflushed(mut self, rng: &mut Rng) -> Self {
        (self.requests, self.odds.durable) = (250, 0);
        self.options.sync = SyncPolicy::OnFlush;
        (self.odds.hot, self.odds.crash) = (0, 1000);
        self.tear = rng.pick(&[Tear::KeepAll, Tear::KeepAll, Tear::Writes]);
        self
    }

    /// The array in one line.
    pub fn summary(&self) -> String {
        let geometry = self.config.geometry;
        format!(
            "{}, {} shards of {} + {} devices, {} log devices, {} stripes, chunks of {} bytes, {:?}, {} requests at a time",
            self.config.scheme,
            self.config.shard.count,
            geometry.data_count(),
            geometry.parity_count(),
            self.config.log_count,
            self.config.stripe_count,
            geometry.chunk_bytes(),
            self.tear,
            self.depth,
        )
    }

    /// Bytes of each device, main devices first.
    pub fn sizes(&self) -> Vec<u64> {
        Self::sizes_of(&self.config)
    }

    /// The same of an array of this shape.
    pub fn sizes_of(config: &ArrayConfig) -> Vec<u64> {
        let (n, logs) = (config.geometry.device_count(), usize::from(config.log_count));
        let mut sizes = vec![config.whole_main_bytes(); n];
        sizes.resize(n + logs, config.whole_log_bytes());
        sizes
    }
}

/// Shards, and what is drawn for the sake of them.
struct Cut {
    shards: u16,
    rng: Rng,
}

impl Cut {
    /// Data columns: most units are small if their number is a power of two.
    fn columns(&mut self, k: usize) -> usize {
        if self.shards > 1 { self.rng.pick(&[k, 1, 2, 2, 4, 4, 8]) } else { k }
    }

    /// Stripes of a shard that gets a unit, or some, and perhaps a part of one that is not used.
    fn stripes(&mut self, geometry: Geometry, few: u32) -> u32 {
        if self.shards == 1 {
            return few;
        }
        let stripe_bytes = geometry.chunk_bytes() as u64 * geometry.data_count() as u64;
        let unit = array::unit_of(stripe_bytes) / stripe_bytes;
        let units = if unit > 64 { 1 } else { self.rng.pick(&[1, 2, 3]) };
        u32::try_from(unit * units + self.rng.pick(&[0, 0, 3])).expect("a unit has few stripes")
    }
}

/// The same with slices side by side, as close as may be.
pub(crate) fn lay_out(config: ArrayConfig) -> ArrayConfig {
    let Shard { index, count, .. } = config.shard;
    if count == 1 {
        return ArrayConfig { shard: Shard::SINGLE, ..config };
    }
    let log_bytes = if config.log_count > 0 { config.log_device_bytes() } else { 0 };
    let shard = Shard {
        index,
        count,
        unit_bytes: unit_bytes(&config),
        main_stride_bytes: config.main_device_bytes().next_multiple_of(DATA_ALIGN_BYTES),
        log_stride_bytes: log_bytes.next_multiple_of(DATA_ALIGN_BYTES),
    };
    ArrayConfig { shard, ..config }
}

/// A layout that shares parity out evenly: mostly that of new arrays. It is not drawn, so that worlds have
/// what else they had before there were two.
fn balanced(chunk_bytes: u64) -> LayoutKind {
    if chunk_bytes == 4096 { LAYOUT_OF_NEW } else { LayoutKind::Rotate }
}

fn draw_config(rng: &mut Rng, scheme: Option<SchemeKind>, mut cut: Cut) -> ArrayConfig {
    let drawn = rng.pick(&[
        SchemeKind::Eplog,
        SchemeKind::Eplog,
        SchemeKind::Raid,
        SchemeKind::ParityLog,
        SchemeKind::Elastic,
        SchemeKind::Was,
    ]);
    let scheme = scheme.unwrap_or(drawn);
    let k = cut.columns(rng.pick(&[1, 2, 2, 3, 4, 4, 5, 6, 8]));
    let m = rng.pick(&[1, 1, 1, 2, 2, 3]);
    let chunk_bytes = rng.pick(&[4096, 4096, 4096, 8192, 16384]);
    let geometry = Geometry::new(k, m, chunk_bytes).expect("drawn within its limits");
    let options = CreateOptions {
        scheme,
        code: match m {
            1 if rng.chance(1, 2) => CodeKind::Xor,
            2 if rng.chance(1, 2) => CodeKind::Rdp,
            _ => CodeKind::Cauchy,
        },
        layout: if k + m <= 7 && rng.chance(1, 2) { LayoutKind::Spread } else { balanced(chunk_bytes) },
        consistency: rng.pick(&[Consistency::Resync, Consistency::Journal, Consistency::Journal]),
        geometry,
        reserve_permille: 100,
        unit_rows: Some(rng.pick(&[2, 3, 4, 8])),
    };
    // Worlds stay what they were before more log devices than parities were drawn, in a third of them.
    let mut own = rng.clone().fork();
    let more = own.pick(&[0, 0, 0, 0, 1, 2]);
    let has_logs = scheme.has_log() || (scheme.takes_log() && own.chance(1, 2));
    let logs = if has_logs { m + more } else { 0 };
    // Creation reserves 128 chunks at least; a few more become stripes.
    let few = rng.pick(&[4, 8, 16, 32, 64]);
    // Four of ten of those whose table need not be in memory as a whole have one of several pages.
    let many = rng.clone().fork().pick(&[0, 0, 0, 0, 0, 0, 200, 400, 400, 800]);
    let stripes = if scheme.is_elastic() || chunk_bytes > 4096 { few } else { few.max(many) };
    let stripes = cut.stripes(geometry, stripes);
    let main_bytes = (4 << 20) + (400 + u64::from(stripes)) * chunk_bytes;
    let log_bytes = (1 << 20) + (512 + 32 * (chunk_bytes / 4096) + rng.pick(&[0, 64, 512])) * 4096;
    let mut config = plan_config(&options, main_bytes, log_bytes, logs).expect("sizes fit");
    let mut reserve = config.chunks_per_device - config.stripe_count as u32;
    if reserve > 0 {
        // Fewer spare chunks than creation allows: they are reused, and run out, all the sooner.
        reserve = rng.pick(&[48, 56, 64, reserve]);
    }
    config.chunks_per_device = stripes + reserve;
    config.stripe_count = u64::from(stripes);
    if scheme.is_elastic() {
        draw_units(rng, &mut config);
    }
    if rng.chance(1, 2) {
        config.journal_blocks = rng.pick(&[40, 64, 128]);
    }
    if rng.chance(1, 2) {
        config.incremental_blocks = config.incremental_blocks.min(rng.pick(&[6, 12, 24]));
    }
    if config.scheme.facts().log == LogContent::Deltas && rng.chance(1, 2) {
        // Checkpoints have room for one log chunk a stripe, and hardly more.
        config.full_blocks = array::full_blocks_min(&config);
    }
    if config.log_blocks > 0 && rng.chance(1, 2) {
        config.log_blocks = 192 + 32 * (chunk_bytes / 4096) as u32;
    }
    if config.payload_blocks > 0 && rng.chance(1, 2) {
        let chunk_blocks = (chunk_bytes / 4096) as u32;
        config.payload_blocks = rng.pick(&[24, 64]) * chunk_blocks;
    }
    config.shard.count = cut.shards;
    let config = lay_out(config);
    config.validate().expect("drawn within its limits");
    config
}

/// As few units as garbage collection needs, or some more.
fn draw_units(rng: &mut Rng, config: &mut ArrayConfig) {
    config.chunks_per_device = 0;
    while config.stripes_max() < config.stripe_count {
        config.chunks_per_device += config.unit_rows;
    }
    config.chunks_per_device += rng.pick(&[0, 0, 1, 9, 30]);
    // With more of them larger writes are not torn. Worlds that get none stay what they were.
    let more = rng.clone().fork().fork().pick(&[0, 0, 0, 0, 12, 24]);
    config.chunks_per_device += more * config.unit_rows;
}

/// Any options that elastic schemes may be run with.
pub fn draw_scheme_options(rng: &mut Rng) -> SchemeOptions {
    let placement = rng.pick(&[None, None, Some(PlacementKind::SepBit), Some(PlacementKind::Was)]);
    let hotness = rng.pick(&[HotnessKind::Glru, HotnessKind::Glru, HotnessKind::Hca]);
    let groups = rng.within(2, 4);
    let gc_group = rng.pick(&[GcGroup::Coldest, GcGroup::Own]);
    // Worlds stay what they were before this was drawn.
    let untorn_bytes =
        rng.clone().fork().pick(&[64 << 10, 64 << 10, 64 << 10, 0, 16 << 10, 256 << 10, 1 << 20]);
    // So do those that draw none of these.
    let mut later = rng.clone().fork().fork();
    let placement = later.pick(&[placement, placement, placement, Some(PlacementKind::Midas)]);
    // What elastic is served with (decision 0052) is what about half of its worlds have.
    let is_served = rng.clone().fork().fork().fork().fork().chance(2, 5);
    let placement = if is_served { Some(PlacementKind::SepBit) } else { placement };
    let gc = rng.pick(&[VictimKind::Greedy, VictimKind::CostBenefit]);
    let others = [VictimKind::CostBenefitRoot, VictimKind::Age, VictimKind::Windowed, VictimKind::DChoices];
    let gc = if later.chance(1, 3) { later.pick(&others) } else { gc };
    SchemeOptions {
        untorn_bytes,
        rewrites: Rewrites::default(),
        list_bytes: None,
        stripe_cache: rng.clone().fork().fork().fork().pick(&[0, 0, 8, 20, 64]),
        placement,
        gc,
        gc_threshold: GcThreshold::new(rng.pick(&[10, 50, 90, 99])).expect("within its limits"),
        group_chunks: rng.pick(&[None, Some(1), Some(3), Some(40)]),
        p_wait_ns: rng.pick(&[None, Some(0), Some(5_000), Some(u64::MAX)]),
        tuning: Tuning {
            hotness,
            groups,
            gc_group,
            recent_entries: rng.pick(&[0, 16]),
            midas_groups: later.pick(&[2, 3, 5, 8]),
            glru_lists: later.pick(&[128, 1, 7]),
            seed: rng.below(1 << 32),
            ..Tuning::default()
        },
    }
}

/// Whether a power cut may leave parity that does not belong to its data.
pub fn is_resync(config: &ArrayConfig) -> bool {
    config.scheme.is_in_place() && config.consistency == Consistency::Resync
}

pub(crate) fn draw_options(rng: &mut Rng, config: &ArrayConfig) -> EngineOptions {
    let mut commit = CommitPolicy {
        every_requests: rng.pick(&[None, None, Some(5), Some(20), Some(100)]),
        idle_ns: rng.pick(&[None, None, Some(20_000), Some(1_000_000)]),
        bytes_per_s: None,
    };
    let cached = rng.chance(1, 3);
    // Worlds stay what they were before these were drawn.
    let mut aside = rng.clone();
    let mut later = rng.clone().fork();
    commit.bytes_per_s = later.clone().fork().pick(&[None, None, None, Some(10_000_000), Some(200_000_000)]);
    let old_space = DiscardPolicy {
        old_bytes: later.pick(&[None, Some(0), Some(1 << 15)]),
        log_bytes: later.pick(&[None, Some(0), Some(1 << 16)]),
        ..DiscardPolicy::default()
    };
    let mut options = EngineOptions {
        commit,
        sync: rng.pick(&[SyncPolicy::OnFlush, SyncPolicy::OnFlush, SyncPolicy::OnFlush, SyncPolicy::Always]),
        pool_bytes: rng.pick(&[0, 2 << 20]) * (config.geometry.chunk_bytes() as u64 / 4096),
        cache_stripes: if cached { rng.pick(&[0, 1, 4]) } else { 0 },
        cache_slots: if cached { rng.pick(&[0, 1, 3, 16]) } else { 0 },
        batch_max: rng.pick(&[1, 3, 16, 256]),
        unit_stripes: rng.pick(&[1, 2, 7, 100]),
        units_in_flight: rng.pick(&[1, 2, 4]),
        rebuild_bytes_per_s: aside.pick(&[None, None, None, Some(16 << 20)]),
        rebuild_save_bytes: later.pick(&[1, 1, 1 << 15, u64::MAX]),
        sort_units: rng.chance(1, 2),
        scheme: draw_scheme_options(rng),
        discard: DiscardPolicy {
            run_chunks: aside.pick(&[None, Some(1), Some(8)]),
            unit_bytes: aside.pick(&[None, Some(0), Some(0)]),
            ..old_space
        },
        patrol: aside.pick(&[None, None, Some(PatrolPolicy { interval_ns: 500_000, bytes_per_s: 1 << 32 })]),
        device_timeout_ns: aside.pick(&[None, Some(5_000_000)]),
        room_wait_ns: aside.pick(&[0, 1_000_000, 20_000_000]),
        confirm_idle_ns: aside.pick(&[None, Some(20_000), Some(400_000)]),
        checkpoint_blocks: aside.pick(&[1, 3, 64]),
        table_bytes: aside.pick(&[u64::MAX, 0, 0, 9_000, 18_000]),
        ..EngineOptions::default()
    };
    options.scheme.list_bytes = aside.pick(&[None, None, None, Some(1_500), Some(6_000)]);
    options
}

pub(crate) fn draw_pace(rng: &mut Rng, config: &ArrayConfig) -> Pace {
    let members = config.geometry.device_count() as u64 + u64::from(config.log_count);
    let slow = rng.chance(1, 4).then(|| (rng.below(members) as u16, rng.within(2, 10)));
    Pace { delay_max: rng.pick(&[0, 1, 3, 10]), slow }
}

fn draw_mix(rng: &mut Rng) -> Mix {
    let mut weight = |choices: &[u64]| rng.pick(choices);
    Mix {
        write: weight(&[0, 100, 300]),
        whole: weight(&[20, 100, 300]),
        stripe: weight(&[0, 20, 200]),
        read: weight(&[0, 50, 200]),
        flush: weight(&[0, 10, 50]),
        discard: weight(&[0, 10, 60]),
        commit: weight(&[0, 2, 20]),
        checkpoint: weight(&[0, 2, 20]),
        scrub: weight(&[0, 0, 4]),
        fail: weight(&[0, 3, 10]),
        replace: weight(&[0, 5, 20]),
        trap: weight(&[0, 5, 15]),
    }
}
