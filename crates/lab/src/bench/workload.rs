//! The workloads: what is prepared, what is measured.

use super::rig::{Access, Rig, Slice, Until, latency_histogram};
use crate::failure::Failure;
use format::SchemeKind;
use hdrhistogram::Histogram;
use node::status::Memory;
use serde_json::Value;

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
    /// Requests of each.
    pub requests: u64,
}

/// What a scheme did.
pub struct Measured {
    /// The scheme.
    pub scheme: SchemeKind,
    /// Of each slice: things done (requests, or stripes committed) per second.
    pub rates: Vec<f64>,
    /// Things done.
    pub count: u64,
    /// User bytes moved, or bytes rebuilt.
    pub bytes: u64,
    /// Time measured.
    pub ns: u64,
    /// Processor time of that.
    pub cpu_ns: u64,
    /// Time during which a commit was under way.
    pub commit_ns: u64,
    /// Requests per second while none was.
    pub rate_between: Option<f64>,
    /// Of the requests; empty for rebuild.
    pub latency: Histogram<u64>,
    /// Of updates while a commit runs; empty unless that is measured.
    pub latency_in_commit: Histogram<u64>,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// What was written and collected.
    pub slices: Slice,
    /// What an elastic scheme ran with; null for others.
    pub placement: Value,
    /// Memory of the maps at the end.
    pub memory: Memory,
    /// Whether pages of the table may be absent from it.
    pub is_paged: bool,
}

impl Measured {
    fn new(scheme: SchemeKind, rig: &Rig) -> Self {
        Self {
            scheme,
            rates: Vec::new(),
            count: 0,
            bytes: 0,
            ns: 0,
            cpu_ns: 0,
            commit_ns: 0,
            rate_between: None,
            latency: latency_histogram(),
            latency_in_commit: latency_histogram(),
            chunk_bytes: rig.chunk_bytes(),
            slices: Slice::default(),
            placement: rig.placement(),
            memory: rig.memory(),
            is_paged: rig.is_paged(),
        }
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

    fn add(&mut self, count: u64, bytes: u64, ns: u64, cpu_ns: u64) {
        self.count += count;
        self.cpu_ns += cpu_ns;
        self.bytes += bytes;
        self.ns += ns;
        self.rates.push(count as f64 * 1e9 / ns.max(1) as f64);
    }
}

/// Runs a workload on all rigs it applies to, a slice each in turn.
pub fn measure(
    workload: Workload,
    rigs: &mut [(SchemeKind, Rig)],
    budget: &Budget,
) -> Result<Vec<Measured>, Failure> {
    let mut all: Vec<Measured> = rigs.iter().map(|(scheme, rig)| Measured::new(*scheme, rig)).collect();
    for _ in 0..budget.rounds {
        for ((scheme, rig), measured) in rigs.iter_mut().zip(&mut all) {
            if workload.applies_to(*scheme) {
                round(workload, rig, budget, measured)?;
                measured.memory = rig.memory();
            }
        }
    }
    all.retain(|measured| !measured.rates.is_empty());
    Ok(all)
}

fn round(workload: Workload, rig: &mut Rig, budget: &Budget, measured: &mut Measured) -> Result<(), Failure> {
    let until = |limit: u64| Until::Spent { ns: budget.ns, requests: budget.requests.min(limit) };
    let chunk = |rig: &mut Rig| rig.array().engine().store().config.geometry.chunk_bytes() as u64;
    match workload {
        Workload::Burst => {
            rig.free_space()?;
            let slice = rig.random(Access::Write, until(rig.burst_requests), &mut measured.latency)?;
            note(measured, &slice, chunk(rig));
        }
        Workload::RandWrite => {
            rig.age()?;
            rig.clean()?;
            // Of a log-structured scheme nothing is put off: collection is part of what it costs.
            let limit = if rig.is_elastic() { u64::MAX } else { rig.burst_requests };
            let slice = rig.random(Access::Write, until(limit), &mut measured.latency)?;
            note(measured, &slice, chunk(rig));
        }
        Workload::Sustained => {
            rig.age()?;
            let slice = rig.random(Access::Write, until(u64::MAX), &mut measured.latency)?;
            note(measured, &slice, chunk(rig));
        }
        Workload::RandRead => {
            let slice = rig.random(Access::Read, until(u64::MAX), &mut measured.latency)?;
            note(measured, &slice, chunk(rig));
        }
        Workload::SeqRead => {
            let slice = rig.sequential(Access::Read, until(u64::MAX), &mut measured.latency)?;
            note(measured, &slice, rig.stripe_bytes());
        }
        Workload::SeqWrite => seq_write(rig, budget, measured)?,
        Workload::Commit => commit(rig, budget, measured)?,
        Workload::Rebuild => {
            let parities = rig.array().engine().store().config.geometry.parity_count();
            let (bytes, ns, cpu_ns) = rig.rebuild(parities)?;
            measured.add(bytes / chunk(rig), bytes, ns, cpu_ns);
        }
    }
    Ok(())
}

fn note(measured: &mut Measured, slice: &Slice, request_bytes: u64) {
    measured.add(slice.requests, slice.requests * request_bytes, slice.ns, slice.cpu_ns);
    measured.slices.add(slice);
    measured.commit_ns += slice.commit_ns;
    let between_ns = slice.ns - slice.commit_ns.min(slice.ns);
    if slice.commit_ns > 0 && between_ns > 0 {
        measured.rate_between = Some(slice.requests_between as f64 * 1e9 / between_ns as f64);
    }
}

/// Passes over the volume, which is given back in between; that does not count.
fn seq_write(rig: &mut Rig, budget: &Budget, measured: &mut Measured) -> Result<(), Failure> {
    let (mut ns_left, mut requests_left) = (budget.ns, budget.requests);
    let mut total = Slice::default();
    while ns_left > 0 && requests_left > 0 {
        rig.discard_all()?;
        let until = Until::Spent { ns: ns_left, requests: requests_left.min(rig.stripe_count()) };
        let slice = rig.sequential(Access::Write, until, &mut measured.latency)?;
        ns_left = ns_left.saturating_sub(slice.ns);
        requests_left = requests_left.saturating_sub(slice.requests);
        total.add(&slice);
    }
    note(measured, &total, rig.stripe_bytes());
    // What a later workload reads or rebuilds must be there.
    rig.refill()
}

/// A commit of every stripe alone; then updates without a commit, and updates while one runs.
fn commit(rig: &mut Rig, budget: &Budget, measured: &mut Measured) -> Result<(), Failure> {
    rig.clean()?;
    rig.dirty_all()?;
    rig.array().settle();
    let before = rig.array().engine().stats().stripes_committed;
    let (ns, cpu_ns) = rig.time_commit()?;
    let stripes = rig.array().engine().stats().stripes_committed - before;
    measured.add(stripes, stripes * rig.stripe_bytes(), ns, cpu_ns);
    rig.clean()?;
    let until = Until::Spent { ns: budget.ns, requests: budget.requests.min(rig.burst_requests) };
    rig.random(Access::Write, until, &mut measured.latency)?;
    rig.clean()?;
    rig.dirty_all()?;
    let tag = rig.start_commit();
    rig.random(Access::Write, Until::Answered { tag }, &mut measured.latency_in_commit)?;
    rig.clean()
}
