//! A thread's shards under load: a loop that keeps requests in flight and does nothing else.
//!
//! Every place in the queue owns its buffers for good, so a request costs the loop a few stores and one
//! entry in the histogram. The clock is read once per turn. A thread with several shards draws its requests
//! over all of their addresses, which go to them in turn as those of the whole volume do.

use super::counts::{Counts, Slice};
use super::shard::{Access, Plan, Shard};
use crate::failure::Failure;
use crate::subject::array::WAIT_NS;
use array::Done;
use block::{DeviceSet as _, Interleave, Random as _, SplitMix};
use hdrhistogram::Histogram;
use node::status::Memory;
use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;

/// Longer latencies count as this: an hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// How often a volume is overwritten before garbage collection is measured.
pub const AGE_PASSES: u64 = 2;

/// A fresh histogram of nanoseconds.
pub fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("these bounds are valid")
}

fn since_ns(origin: Instant) -> u64 {
    origin.elapsed().as_nanos() as u64
}

/// Processor time of this thread so far.
pub fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Neither is negative, and the sum lasts for 584 years.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The part of `all` that falls to one of `count`, which have nearly as much each.
pub fn share(all: u64, count: u64, index: u64) -> u64 {
    all / count + u64::from(index < all % count)
}

/// When a slice of load ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// After so much time or so many requests, whichever comes first.
    Spent {
        /// Time.
        ns: u64,
        /// Requests.
        requests: u64,
    },
    /// When the commits that were started are answered.
    Committed,
}

/// Where the latencies of a slice go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// With those of the requests that are measured.
    Measured,
    /// With those of requests while a commit runs.
    InCommit,
    /// Nowhere.
    Nowhere,
}

/// Latencies of requests.
pub struct Latencies {
    /// Of those that are measured.
    pub measured: Histogram<u64>,
    /// Of updates while a commit runs.
    pub in_commit: Histogram<u64>,
    rest: Histogram<u64>,
}

impl Latencies {
    /// None so far.
    pub fn new() -> Self {
        let [measured, in_commit, rest] = [(); 3].map(|()| latency_histogram());
        Self { measured, in_commit, rest }
    }

    fn of(&mut self, note: Note) -> &mut Histogram<u64> {
        match note {
            Note::Measured => &mut self.measured,
            Note::InCommit => &mut self.in_commit,
            Note::Nowhere => &mut self.rest,
        }
    }
}

/// See the module's documentation.
pub struct Rig {
    /// Its thread, of how many.
    thread: (u16, u16),
    shards: Vec<Shard>,
    map: Interleave,
    /// The clock of all threads begins here.
    origin: Instant,
    /// When the next slice is to begin; `None` is when it does.
    start: Option<Instant>,
    started_ns: Vec<u64>,
    idle: Vec<usize>,
    done: Vec<Done>,
    random: SplitMix,
    latencies: Latencies,
    data_count: u64,
    chunk_bytes: u64,
    is_elastic: bool,
    /// Whether so much was overwritten that garbage collection runs all the time.
    aged: bool,
    /// Updates that fit between two commits, or until collection begins.
    pub burst_requests: u64,
}

impl Rig {
    /// Makes the shards of a thread and writes what is used of their volumes once.
    pub fn new(plan: &Plan, thread: u16, origin: Instant) -> Result<Self, Failure> {
        let config = plan.config();
        let (geometry, is_elastic) = (config.geometry, config.scheme.is_elastic());
        let mut random = SplitMix::new(plan.seed_of(thread));
        let shards = plan.spread().shards_of(thread);
        let shards: Vec<Shard> =
            shards.map(|number| Shard::new(plan, number, &mut random)).collect::<Result<_, Failure>>()?;
        let (data_count, count) = (u64::try_from(geometry.data_count())?, u16::try_from(shards.len())?);
        let chunk_bytes = u64::try_from(geometry.chunk_bytes())?;
        let used_bytes = plan.used_count() * data_count * chunk_bytes;
        let mut rig = Self {
            thread: (thread, plan.spread().threads),
            shards,
            map: Interleave::new(count, config.shard.unit_bytes, used_bytes),
            origin,
            start: None,
            started_ns: vec![0; plan.depth()],
            idle: (0..plan.depth()).collect(),
            done: Vec::new(),
            random,
            latencies: Latencies::new(),
            data_count,
            chunk_bytes,
            is_elastic,
            aged: !is_elastic,
            burst_requests: plan.burst_requests() * u64::from(count),
        };
        rig.fill()?;
        Ok(rig)
    }

    /// The part of the requests of all threads that this one makes.
    pub fn share_of(&self, requests: u64) -> u64 {
        let (index, count) = self.thread;
        share(requests, count.into(), index.into())
    }

    /// Stripes in use.
    pub fn stripe_count(&self) -> u64 {
        self.map.volume_bytes() / self.stripe_bytes()
    }

    /// Bytes of a stripe's data.
    fn stripe_bytes(&self) -> u64 {
        self.data_count * self.chunk_bytes
    }

    /// The next slice begins at this moment, if one is given.
    pub fn begin_at(&mut self, start: Option<Instant>) {
        self.start = start;
    }

    /// When a slice begins.
    fn start_ns(&mut self) -> u64 {
        let given = self.start.take().map(|start| start.saturating_duration_since(self.origin));
        given.map_or_else(|| since_ns(self.origin), |since| since.as_nanos() as u64)
    }

    /// Whether pages of the table may be absent from memory.
    pub fn is_paged(&self) -> bool {
        self.shards.iter().any(Shard::is_paged)
    }

    /// Memory of the maps of each shard.
    pub fn memory(&self) -> Vec<Memory> {
        self.shards.iter().map(Shard::memory).collect()
    }

    /// The latencies so far; from here on there are none.
    pub fn take_latencies(&mut self) -> Latencies {
        std::mem::replace(&mut self.latencies, Latencies::new())
    }

    /// Elastic schemes: overwrites the volume at random so often that it is full of garbage, which is
    /// collected all the time from then on.
    pub fn age(&mut self) -> Result<(), Failure> {
        if !std::mem::replace(&mut self.aged, true) {
            let requests = AGE_PASSES * self.stripe_count() * self.data_count;
            self.random(Access::Write, Until::Spent { ns: u64::MAX, requests }, Note::Nowhere)?;
        }
        Ok(())
    }

    /// Room for a burst of updates: by a commit, or by a volume that is written anew.
    pub fn free_space(&mut self) -> Result<(), Failure> {
        if self.is_elastic { self.refill() } else { self.clean() }
    }

    /// Whether the scheme collects garbage.
    pub fn is_elastic(&self) -> bool {
        self.is_elastic
    }

    /// Waits until nothing is in flight.
    pub fn settle(&mut self) {
        self.shards.iter_mut().for_each(|shard| shard.array().settle());
    }

    /// Writes every stripe of the volume, in order.
    fn fill(&mut self) -> Result<(), Failure> {
        let until = Until::Spent { ns: u64::MAX, requests: self.stripe_count() };
        self.sequential(Access::Write, until, Note::Nowhere)?;
        self.settle();
        Ok(())
    }

    /// Single-chunk requests at random addresses.
    pub fn random(&mut self, access: Access, until: Until, note: Note) -> Result<Slice, Failure> {
        let (chunks, chunk_bytes) = (self.map.volume_bytes() / self.chunk_bytes, self.chunk_bytes);
        self.drive(access, 1, until, note, |random| random.below(chunks) * chunk_bytes)
    }

    /// Requests of a whole stripe, in order, from the start of the volume.
    pub fn sequential(&mut self, access: Access, until: Until, note: Note) -> Result<Slice, Failure> {
        let (mut stripe, count, bytes) = (0, self.stripe_count(), self.stripe_bytes());
        self.drive(access, self.data_count, until, note, |_| {
            let at = stripe;
            stripe = (stripe + 1) % count;
            at * bytes
        })
    }

    /// Updates one chunk of every stripe.
    pub fn dirty_all(&mut self) -> Result<(), Failure> {
        let (mut stripe, bytes) = (0, self.stripe_bytes());
        let (chunk, columns) = (self.chunk_bytes, self.data_count);
        let until = Until::Spent { ns: u64::MAX, requests: self.stripe_count() };
        self.drive(Access::Write, 1, until, Note::Nowhere, |random| {
            stripe += 1;
            (stripe - 1) * bytes + random.below(columns) * chunk
        })?;
        Ok(())
    }

    /// Commits, and makes what that frees usable.
    pub fn clean(&mut self) -> Result<(), Failure> {
        self.shards.iter_mut().try_for_each(Shard::clean)
    }

    /// Gives the whole volume back, so that writes to it are new again.
    pub fn discard_all(&mut self) -> Result<(), Failure> {
        self.shards.iter_mut().try_for_each(Shard::discard_all)
    }

    /// Writes the whole volume anew.
    pub fn refill(&mut self) -> Result<(), Failure> {
        self.discard_all()?;
        self.aged = !self.is_elastic;
        self.fill()
    }

    /// Commits what is dirty, one shard after the other.
    pub fn time_commit(&mut self) -> Result<Slice, Failure> {
        self.time(Shard::commit)
    }

    /// Starts a commit of every shard.
    pub fn start_commit(&mut self) {
        self.shards.iter_mut().for_each(Shard::start_commit);
    }

    /// Loses the first `count` main devices and puts empty ones in their place.
    pub fn lose(&mut self, count: u16) -> Result<(), Failure> {
        self.shards.iter_mut().try_for_each(|shard| shard.lose(count))
    }

    /// Rebuilds them, one shard after the other; what is counted are chunks.
    pub fn rebuild(&mut self, count: u16) -> Result<Slice, Failure> {
        let (origin, chunk_bytes) = (self.origin, self.chunk_bytes);
        self.time(|shard| Ok(shard.rebuild(count, origin)? / chunk_bytes))
    }

    /// Has every shard do something of which it says how much it was.
    fn time(&mut self, work: impl Fn(&mut Shard) -> Result<u64, Failure>) -> Result<Slice, Failure> {
        let (start_ns, cpu_start) = (self.start_ns(), cpu_ns());
        let done = self.shards.iter_mut().map(work).collect::<Result<Vec<u64>, Failure>>()?;
        Ok(Slice {
            start_ns,
            ns: since_ns(self.origin) - start_ns,
            cpu_ns: cpu_ns() - cpu_start,
            shards: done.into_iter().map(|done| Counts { done, ..Counts::default() }).collect(),
            ..Slice::default()
        })
    }

    /// Keeps the queue full of requests of `width` chunks at the offsets that `next` names.
    fn drive(
        &mut self,
        access: Access,
        width: u64,
        until: Until,
        note: Note,
        mut next: impl FnMut(&mut SplitMix) -> u64,
    ) -> Result<Slice, Failure> {
        let (length, width) = (width * self.chunk_bytes, usize::try_from(width)?);
        let (depth, origin) = (self.started_ns.len(), self.origin);
        let (start, cpu_start) = (self.start_ns(), cpu_ns());
        let (deadline, limit) = match until {
            Until::Spent { ns, requests } => (start.saturating_add(ns), requests),
            Until::Committed => (u64::MAX, u64::MAX),
        };
        let totals: Vec<_> = self.shards.iter().map(Shard::totals).collect();
        let mut slice = Slice { start_ns: start, ..Slice::default() };
        slice.shards.resize(self.shards.len(), Counts::default());
        let mut awaited = self.shards.iter().filter(|shard| shard.awaited.is_some()).count();
        let latency = self.latencies.of(note);
        let (mut now, mut issued, mut open) = (start, 0, limit > 0);
        self.shards.iter_mut().for_each(|shard| shard.array().engine().set_now(now));
        while open || self.idle.len() < depth {
            while open && let Some(place) = self.idle.pop() {
                self.started_ns[place] = now;
                let at = self.map.place(next(&mut self.random));
                self.shards[usize::from(at.shard)].send(access, place, width, (at.offset_bytes, length));
                issued += 1;
                open = issued < limit;
            }
            let (before, mut progress, mut committing) = (now, false, false);
            for shard in &mut self.shards {
                progress |= shard.array().turn();
                committing |= shard.array().engine().is_committing();
            }
            now = since_ns(origin);
            slice.commit_ns += if committing { now - before } else { 0 };
            for (shard, counts) in self.shards.iter_mut().zip(&mut slice.shards) {
                shard.array().engine().set_now(now);
                shard.array().take_answers(&mut self.done);
                for done in self.done.drain(..) {
                    done.result?;
                    if shard.awaited.is_some_and(|tag| tag == done.tag) {
                        (shard.awaited, awaited) = (None, awaited - 1);
                        open &= awaited > 0;
                        continue;
                    }
                    let place = done.tag as usize;
                    latency.saturating_record(now - self.started_ns[place]);
                    self.idle.push(place);
                    counts.done += 1;
                    slice.requests_between += u64::from(!committing);
                }
            }
            open &= now < deadline;
            if !progress {
                self.shards.iter_mut().for_each(|shard| shard.array().devices().wait(WAIT_NS));
            }
        }
        slice.ns = since_ns(origin) - start;
        slice.cpu_ns = cpu_ns() - cpu_start;
        for ((shard, before), counts) in self.shards.iter().zip(&totals).zip(&mut slice.shards) {
            shard.account(before, counts);
        }
        Ok(slice)
    }
}
