//! The workloads: what is prepared, what is measured.

use super::counts::{Counts, Lap, Slice, add_all};
use super::crew::Crew;
use super::rig::{Note, Rig, Until, latency_histogram, share};
use super::shard::{Access, Plan};
use super::threads::Spread;
use crate::failure::Failure;
use format::SchemeKind;
use hdrhistogram::Histogram;
use node::status::Memory;
use serde_json::Value;
use std::time::Instant;

/// What to measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workload {
    /// Random updates into free space: neither commits nor collection.
    Burst,
    /// Random updates, commits between the slices.
    RandWrite,
    /// Random updates, commits as they come.
    Sustained,
    /// New full stripes.
    SeqWrite,
    /// Random reads.
    RandRead,
    /// Reads of whole stripes.
    SeqRead,
    /// Parity commit.
    Commit,
    /// Rebuild.
    Rebuild,
}

impl Workload {
    /// All of them, in the order in which they run.
    pub const ALL: [Self; 8] = [
        Self::Burst,
        Self::RandWrite,
        Self::Sustained,
        Self::RandRead,
        Self::SeqRead,
        Self::SeqWrite,
        Self::Commit,
        Self::Rebuild,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Burst => "burst",
            Self::RandWrite => "randwrite",
            Self::Sustained => "sustained",
            Self::SeqWrite => "seqwrite",
            Self::RandRead => "randread",
            Self::SeqRead => "seqread",
            Self::Commit => "commit",
            Self::Rebuild => "rebuild",
        }
    }

    fn applies_to(self, scheme: SchemeKind) -> bool {
        match self {
            Self::Commit => scheme.has_log(),
            Self::Burst
            | Self::RandWrite
            | Self::Sustained
            | Self::SeqWrite
            | Self::RandRead
            | Self::SeqRead
            | Self::Rebuild => true,
        }
    }
}

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Slices.
    pub rounds: u64,
    /// Time of each.
    pub ns: u64,
    /// Requests of all slices and threads together.
    pub requests: u64,
}

/// A scheme on some threads.
pub struct Lane {
    scheme: SchemeKind,
    plan: Plan,
    crew: Crew<Rig>,
}

impl Lane {
    /// Makes the array, each shard in the thread that runs it.
    pub fn new(scheme: SchemeKind, plan: Plan) -> Result<Self, Failure> {
        let (threads, origin) = (plan.spread().threads, Instant::now());
        let crew = Crew::new(threads, move |thread| Rig::new(&plan, thread, origin))?;
        Ok(Self { scheme, plan, crew })
    }

    /// Has every thread prepare something.
    fn each(
        &mut self,
        job: impl Fn(&mut Rig) -> Result<(), Failure> + Copy + Send + 'static,
    ) -> Result<(), Failure> {
        self.crew.each(job).map(drop)
    }

    /// Has all threads do something side by side, which is measured.
    fn lap(
        &mut self,
        job: impl Fn(&mut Rig) -> Result<Slice, Failure> + Copy + Send + 'static,
    ) -> Result<Lap, Failure> {
        let slices = self.crew.together(move |rig, start| {
            rig.begin_at(start);
            job(rig)
        })?;
        Ok(Lap::of(self.plan.spread(), &slices))
    }

    /// Bytes of a stripe's data.
    fn stripe_bytes(&self) -> u64 {
        let config = self.plan.config();
        config.volume_bytes() / config.stripe_count
    }

    /// Memory of the maps of all shards.
    fn memory(&mut self) -> Result<Memory, Failure> {
        let shards: Vec<Memory> = self.crew.each(|rig| Ok(rig.memory()))?.concat();
        let sum = |of: fn(&Memory) -> u64| shards.iter().map(of).sum::<u64>();
        let count = u64::from(self.plan.spread().shards);
        Ok(Memory {
            fixed_bytes: sum(|memory| memory.fixed_bytes),
            dynamic_bytes: sum(|memory| memory.dynamic_bytes),
            pages_read: sum(|memory| memory.pages_read),
            // Shards are of one size.
            bytes_per_chunk_hundredths: sum(|memory| memory.bytes_per_chunk_hundredths) / count,
            placement_bytes: sum(|memory| memory.placement_bytes),
        })
    }
}

/// What a scheme did.
pub struct Measured {
    /// The scheme.
    pub scheme: SchemeKind,
    /// Its threads.
    pub spread: Spread,
    /// Of each slice: things done (requests, or stripes committed) per second.
    pub rates: Vec<f64>,
    /// Things done.
    pub count: u64,
    /// User bytes moved, or bytes rebuilt.
    pub bytes: u64,
    /// Time measured.
    pub ns: u64,
    /// Processor time of that, of all threads.
    pub cpu_ns: u64,
    /// Time during which a commit was under way, the mean of the threads.
    pub commit_ns: u64,
    /// Requests per second while none was.
    pub rate_between: Option<f64>,
    /// Of the requests; empty for rebuild.
    pub latency: Histogram<u64>,
    /// Of updates while a commit runs; empty unless that is measured.
    pub latency_in_commit: Histogram<u64>,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// What was done, written and collected, by shard.
    pub shards: Vec<Counts>,
    /// What an elastic scheme ran with; null for others.
    pub placement: Value,
    /// Memory of the maps at the end.
    pub memory: Memory,
    /// Whether pages of the table may be absent from it.
    pub is_paged: bool,
}

impl Measured {
    fn new(lane: &mut Lane) -> Result<Self, Failure> {
        Ok(Self {
            scheme: lane.scheme,
            spread: lane.plan.spread(),
            rates: Vec::new(),
            count: 0,
            bytes: 0,
            ns: 0,
            cpu_ns: 0,
            commit_ns: 0,
            rate_between: None,
            latency: latency_histogram(),
            latency_in_commit: latency_histogram(),
            chunk_bytes: u64::try_from(lane.plan.config().geometry.chunk_bytes())?,
            shards: Vec::new(),
            placement: lane.plan.placement(),
            memory: lane.memory()?,
            is_paged: lane.crew.each(|rig| Ok(rig.is_paged()))?.contains(&true),
        })
    }

    /// Things done per second over all slices.
    pub fn rate(&self) -> f64 {
        self.count as f64 * 1e9 / self.ns.max(1) as f64
    }

    /// Things done per second of processor time: what the machine's other work takes away does not count.
    pub fn cpu_rate(&self) -> f64 {
        self.count as f64 * 1e9 / self.cpu_ns.max(1) as f64
    }

    /// Bytes per second over all slices.
    pub fn bytes_rate(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.ns.max(1) as f64
    }

    /// What all shards did.
    pub fn counts(&self) -> Counts {
        Counts::sum(&self.shards)
    }

    /// Adds a slice in which things of so many bytes were done.
    fn add(&mut self, lap: &Lap, thing_bytes: u64) {
        let done = lap.done();
        self.count += done;
        self.bytes += done * thing_bytes;
        self.ns += lap.ns;
        self.cpu_ns += lap.cpu_ns;
        self.commit_ns += lap.commit_ns;
        self.rate_between = lap.rate_between().or(self.rate_between);
        self.rates.push(done as f64 * 1e9 / lap.ns.max(1) as f64);
        add_all(&mut self.shards, &lap.shards);
    }
}

/// Runs a workload on all lanes it applies to, a slice each in turn.
pub fn measure(workload: Workload, lanes: &mut [Lane], budget: &Budget) -> Result<Vec<Measured>, Failure> {
    let mut all = lanes.iter_mut().map(Measured::new).collect::<Result<Vec<_>, Failure>>()?;
    for index in 0..budget.rounds {
        let slice = Budget { requests: share(budget.requests, budget.rounds, index), ..*budget };
        for (lane, measured) in lanes.iter_mut().zip(&mut all) {
            if workload.applies_to(lane.scheme) {
                round(workload, lane, &slice, measured)?;
                measured.memory = lane.memory()?;
            }
        }
    }
    for (lane, measured) in lanes.iter_mut().zip(&mut all) {
        for latencies in lane.crew.each(|rig| Ok(rig.take_latencies()))? {
            measured.latency.add(&latencies.measured)?;
            measured.latency_in_commit.add(&latencies.in_commit)?;
        }
    }
    all.retain(|measured| !measured.rates.is_empty());
    Ok(all)
}

fn round(
    workload: Workload,
    lane: &mut Lane,
    budget: &Budget,
    measured: &mut Measured,
) -> Result<(), Failure> {
    let Budget { ns, requests, .. } = *budget;
    let until = move |rig: &Rig, limit: u64| Until::Spent { ns, requests: rig.share_of(requests).min(limit) };
    let all = u64::MAX;
    let chunk_bytes = measured.chunk_bytes;
    match workload {
        Workload::Burst => {
            lane.each(Rig::free_space)?;
            let job = move |rig: &mut Rig| {
                rig.random(Access::Write, until(rig, rig.burst_requests), Note::Measured)
            };
            measured.add(&lane.lap(job)?, chunk_bytes);
        }
        Workload::RandWrite => {
            lane.each(Rig::age)?;
            lane.each(Rig::clean)?;
            let job = move |rig: &mut Rig| {
                // Of a log-structured scheme nothing is put off: collection is part of what it costs.
                let limit = if rig.is_elastic() { all } else { rig.burst_requests };
                rig.random(Access::Write, until(rig, limit), Note::Measured)
            };
            measured.add(&lane.lap(job)?, chunk_bytes);
        }
        Workload::Sustained => {
            lane.each(Rig::age)?;
            let job = move |rig: &mut Rig| rig.random(Access::Write, until(rig, all), Note::Measured);
            measured.add(&lane.lap(job)?, chunk_bytes);
        }
        Workload::RandRead => {
            let job = move |rig: &mut Rig| rig.random(Access::Read, until(rig, all), Note::Measured);
            measured.add(&lane.lap(job)?, chunk_bytes);
        }
        Workload::SeqRead => {
            let job = move |rig: &mut Rig| rig.sequential(Access::Read, until(rig, all), Note::Measured);
            measured.add(&lane.lap(job)?, lane.stripe_bytes());
        }
        Workload::SeqWrite => seq_write(lane, budget, measured)?,
        Workload::Commit => commit(lane, budget, measured)?,
        Workload::Rebuild => {
            let parities = u16::try_from(lane.plan.config().geometry.parity_count())?;
            lane.each(move |rig| rig.lose(parities))?;
            let lap = lane.lap(move |rig| rig.rebuild(parities))?;
            measured.add(&lap, chunk_bytes);
        }
    }
    Ok(())
}

/// Passes over the volume, which is given back in between; that does not count.
fn seq_write(lane: &mut Lane, budget: &Budget, measured: &mut Measured) -> Result<(), Failure> {
    let requests = budget.requests;
    // The first thread has as much as any.
    let most = share(requests, lane.plan.spread().threads.into(), 0);
    let (mut ns_left, mut passed) = (budget.ns, 0);
    let mut total = Lap::default();
    while ns_left > 0 && passed < most {
        lane.each(Rig::discard_all)?;
        let lap = lane.lap(move |rig| {
            let requests = rig.share_of(requests).saturating_sub(passed).min(rig.stripe_count());
            rig.sequential(Access::Write, Until::Spent { ns: ns_left, requests }, Note::Measured)
        })?;
        ns_left = ns_left.saturating_sub(lap.ns);
        passed += lane.plan.thread_stripes();
        total.add(&lap);
    }
    measured.add(&total, lane.stripe_bytes());
    // What a later workload reads or rebuilds must be there.
    lane.each(Rig::refill)
}

/// A commit of every stripe alone; then updates without a commit, and updates while one runs.
fn commit(lane: &mut Lane, budget: &Budget, measured: &mut Measured) -> Result<(), Failure> {
    let dirty = |rig: &mut Rig| {
        rig.clean()?;
        rig.dirty_all()
    };
    lane.each(dirty)?;
    lane.each(|rig| {
        rig.settle();
        Ok(())
    })?;
    let lap = lane.lap(Rig::time_commit)?;
    measured.add(&lap, lane.stripe_bytes());
    lane.each(Rig::clean)?;
    let Budget { ns, requests, .. } = *budget;
    lane.lap(move |rig| {
        let requests = rig.share_of(requests).min(rig.burst_requests);
        rig.random(Access::Write, Until::Spent { ns, requests }, Note::Measured)
    })?;
    lane.each(dirty)?;
    lane.lap(|rig| {
        rig.start_commit();
        rig.random(Access::Write, Until::Committed, Note::InCommit)
    })?;
    lane.each(Rig::clean)
}
