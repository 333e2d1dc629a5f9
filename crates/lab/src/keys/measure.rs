//! Runs requests against a store, and counts.

use super::draw::{Request, Requests, Workload};
use super::{Arguments, Kept, Subject};
use crate::failure::Failure;
use crate::number::float;
use crate::subject::array::WAIT_NS;
use crate::subject::snapshot::{Snapshot, since};
use block::Stream;
use format::SchemeKind;
use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Longer latencies count as this: an hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// What a workload came to on one scheme.
pub struct Measured {
    pub scheme: SchemeKind,
    pub workload: Workload,
    pub requests: u64,
    /// Time, of the devices where they are simulated.
    pub ns: u64,
    /// Processor time of this thread.
    pub cpu_ns: u64,
    pub latency: Histogram<u64>,
    pub kept: Kept,
    /// Whether what devices did was counted; else it is 0 here.
    pub is_counted: bool,
    /// Bytes written to all devices.
    pub data_bytes: u64,
    pub parity_bytes: u64,
    pub log_bytes: u64,
    pub metadata_bytes: u64,
    /// Bytes read from all devices.
    pub read_bytes: u64,
    pub stripes_committed: u64,
    pub chunks_collected: u64,
}

fn since_kept(now: Kept, then: Kept) -> Kept {
    Kept {
        hits: now.hits - then.hits,
        misses: now.misses - then.misses,
        given_bytes: now.given_bytes - then.given_bytes,
        written_bytes: now.written_bytes - then.written_bytes,
        moved_bytes: now.moved_bytes - then.moved_bytes,
        ..now
    }
}

/// A share of a whole; none of nothing.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| float(part) / float(whole))
}

impl Measured {
    /// Requests per second.
    pub fn rate(&self) -> f64 {
        float(self.requests) * 1e9 / float(self.ns.max(1))
    }

    /// Requests per second of processor time.
    pub fn cpu_rate(&self) -> f64 {
        float(self.requests) * 1e9 / float(self.cpu_ns.max(1))
    }

    /// Share of the lookups that the cache answered.
    pub fn hit_rate(&self) -> Option<f64> {
        share(self.kept.hits, self.kept.hits + self.kept.misses)
    }

    /// Share of the records appended that compaction moved.
    pub fn compaction_share(&self) -> Option<f64> {
        let appended = self.kept.given_bytes + self.kept.moved_bytes;
        share(self.kept.moved_bytes, appended).filter(|_| self.kept.given_bytes > 0)
    }

    /// Bytes written per byte of users: data, parity, log, metadata.
    pub fn written_per_byte(&self) -> Option<[f64; 4]> {
        if !self.is_counted {
            return None;
        }
        let [data, parity, log, metadata] =
            [self.data_bytes, self.parity_bytes, self.log_bytes, self.metadata_bytes]
                .map(|bytes| share(bytes, self.kept.given_bytes));
        Some([data?, parity?, log?, metadata?])
    }

    /// Bytes that the store wrote to its volume, per byte of users.
    pub fn volume_per_byte(&self) -> Option<f64> {
        share(self.kept.written_bytes, self.kept.given_bytes)
    }

    /// A percentile of the latency in microseconds.
    pub fn micros(&self, percentile: f64) -> f64 {
        float(self.latency.value_at_quantile(percentile / 100.0)) / 1e3
    }

    /// What depends on the inputs alone, by name.
    pub fn figures(&self) -> Vec<(String, f64)> {
        let mut figures = vec![
            ("requests", float(self.requests)),
            ("virtual_seconds", float(self.ns) / 1e9),
            ("requests_per_second", self.rate()),
            ("latency_us_mean", self.latency.mean() / 1e3),
            ("latency_us_p99", self.micros(99.0)),
            ("data_bytes", float(self.data_bytes)),
            ("parity_bytes", float(self.parity_bytes)),
            ("log_bytes", float(self.log_bytes)),
            ("metadata_bytes", float(self.metadata_bytes)),
            ("read_bytes", float(self.read_bytes)),
            ("given_bytes", float(self.kept.given_bytes)),
            ("moved_bytes", float(self.kept.moved_bytes)),
            ("stripes_committed", float(self.stripes_committed)),
            ("chunks_collected", float(self.chunks_collected)),
        ];
        figures.extend(self.hit_rate().map(|rate| ("cache_hit_share", rate)));
        let ssd_bytes = self.data_bytes + self.parity_bytes + self.metadata_bytes;
        figures
            .extend(share(ssd_bytes, self.kept.given_bytes).map(|bytes| ("ssd_bytes_per_user_byte", bytes)));
        figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Bytes written to a device set by stream: data, parity, log, metadata; and bytes read.
fn bytes(of: &Snapshot) -> ([u64; 4], u64) {
    let mut written = [0; 4];
    let mut read = 0;
    for device in &of.devices {
        let streams = [Stream::Data, Stream::Parity, Stream::Log, Stream::Metadata];
        for (sum, stream) in written.iter_mut().zip(streams) {
            *sum += device.write_bytes[stream.index()];
        }
        read += device.read_bytes.iter().sum::<u64>();
    }
    (written, read)
}

/// Processor time of this thread so far.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let time = Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0));
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The time: of simulated devices, or since some moment.
struct Clock(Instant);

impl Clock {
    fn now_ns(&self, subject: &mut dyn Subject) -> u64 {
        let since = || u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX);
        subject.target().clock_ns().unwrap_or_else(since)
    }
}

/// Loads the keys.
pub fn load(
    arguments: &Arguments,
    scheme: SchemeKind,
    subject: &mut dyn Subject,
) -> Result<Measured, Failure> {
    let (keys, step) = (arguments.load.keys, subject.load_step());
    let mut from = 0;
    let mut measured = drive(arguments, (scheme, Workload::Set), subject, &mut |subject| {
        if from >= keys {
            return Ok(None);
        }
        let request = subject.load(from, keys);
        from += step;
        request
    })?;
    measured.requests = keys;
    Ok(measured)
}

/// Runs a workload.
pub fn run(
    arguments: &Arguments,
    scheme: SchemeKind,
    workload: Workload,
    subject: &mut dyn Subject,
) -> Result<Measured, Failure> {
    // Each workload draws from a seed of its own, so that none depends on what ran before it.
    let seed = block::mix(arguments.seed ^ block::mix(u64::from(u8::from(workload.inserts()))));
    let mut requests = Requests::new(workload, arguments.load.keys_by, arguments.load.keys, seed);
    let mut left = arguments.load.requests;
    drive(arguments, (scheme, workload), subject, &mut |_| {
        left = match left.checked_sub(1) {
            Some(left) => left,
            None => return Ok(None),
        };
        Ok(Some(requests.draw()))
    })
}

type Next<'a> = &'a mut dyn FnMut(&mut dyn Subject) -> Result<Option<Request>, Failure>;

/// Keeps the queue full of what `next` names until it names nothing; then makes it durable, which counts.
fn drive(
    arguments: &Arguments,
    (scheme, workload): (SchemeKind, Workload),
    subject: &mut dyn Subject,
    next: Next<'_>,
) -> Result<Measured, Failure> {
    let depth = arguments.places();
    let clock = Clock(Instant::now());
    let mut latency = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)?;
    let before = subject.target().snapshot();
    let is_counted = before.is_some();
    let before = before.unwrap_or_default();
    let (kept, cpu) = (subject.kept(), cpu_ns());
    let start = clock.now_ns(subject);
    let mut idle: Vec<usize> = (0..depth).rev().collect();
    let mut started_ns = vec![start; depth];
    let (mut now, mut open, mut count, mut done) = (start, true, 0, Vec::new());
    while open || idle.len() < depth {
        while open && let Some(place) = idle.pop() {
            match next(subject)? {
                Some(request) => {
                    started_ns[place] = now;
                    subject.start(place, request);
                }
                None => {
                    idle.push(place);
                    open = false;
                }
            }
        }
        if idle.len() == depth {
            break;
        }
        subject.turn(now, WAIT_NS, &mut done)?;
        now = clock.now_ns(subject);
        for place in done.drain(..) {
            latency.saturating_record((now - started_ns[place]).max(1));
            idle.push(place);
            count += 1;
        }
    }
    subject.settle()?;
    let end = clock.now_ns(subject);
    let cpu_ns = cpu_ns() - cpu;
    let counted = since(&subject.target().snapshot().unwrap_or_default(), &before);
    let ([data_bytes, parity_bytes, log_bytes, metadata_bytes], read_bytes) = bytes(&counted);
    Ok(Measured {
        scheme,
        workload,
        requests: count,
        ns: end - start,
        cpu_ns,
        latency,
        kept: since_kept(subject.kept(), kept),
        is_counted,
        data_bytes,
        parity_bytes,
        log_bytes,
        metadata_bytes,
        read_bytes,
        stripes_committed: counted.stats.stripes_committed,
        chunks_collected: counted.gc.chunks_rewritten,
    })
}
