//! What is written to the SSD: a random pattern, or a block trace.

use super::{Measured, Rows, RunArguments, cpu_seconds};
use crate::failure::Failure;
use crate::watch::Shown;
use flash::{Pattern, Queue, Ssd, Tag};
use std::path::{Path, PathBuf};
use trace::{Op, ReadOptions, Request, TraceError, TraceSequence};

/// What `--workload` names.
#[derive(Clone, PartialEq, Debug)]
pub enum Source {
    /// Random pages.
    Pattern(Pattern),
    /// A trace file.
    Trace(PathBuf),
}

/// `uniform`, `zipf:THETA`, or else a file.
pub fn parse_source(text: &str) -> Result<Source, String> {
    if text == "uniform" {
        return Ok(Source::Pattern(Pattern::Uniform));
    }
    if let Some(theta) = text.strip_prefix("zipf:") {
        let theta: f64 = theta
            .parse()
            .map_err(|_| format!("found theta {theta:?}, expected a number such as in zipf:0.99"))?;
        return Ok(Source::Pattern(Pattern::Zipf(theta)));
    }
    Ok(Source::Trace(PathBuf::from(text)))
}

/// A trace, in pages of the SSD.
pub struct Replayed {
    requests: Vec<(Op, u64, u64)>,
    pages_written: u64,
}

impl Replayed {
    /// Reads a whole trace. Requests are rounded out to pages.
    pub fn load(path: &Path, ssd: &Ssd) -> Result<Self, Failure> {
        Self::of(TraceSequence::open(&[path.to_path_buf()], &ReadOptions::default())?, path, ssd)
    }

    /// The same of requests that somebody gives; `path` is what they are called.
    pub fn of(
        given: impl Iterator<Item = Result<Request, TraceError>>,
        path: &Path,
        ssd: &Ssd,
    ) -> Result<Self, Failure> {
        let (page_bytes, pages) = (u64::from(ssd.config().geometry.page_bytes), ssd.logical_pages());
        let mut requests = Vec::new();
        let mut pages_written = 0;
        for request in given {
            let request = request?;
            let touched = request.chunks(page_bytes);
            if touched.end > pages {
                return Err(Failure::new(format!(
                    "{}: found a request that ends at byte {}, expected all below {} (see --logical-size)",
                    path.display(),
                    request.end_bytes(),
                    pages * page_bytes
                )));
            }
            if request.op == Op::Write {
                pages_written += touched.end - touched.start;
            }
            requests.push((request.op, touched.start, touched.end - touched.start));
        }
        if pages_written == 0 {
            return Err(Failure::new(format!("{}: found no writes, expected some", path.display())));
        }
        Ok(Self { requests, pages_written })
    }

    /// Fills the SSD, replays the trace as often as the warm-up takes, and then as often as the count
    /// takes; each at least to the end of the request that reaches it.
    pub fn run(
        &self,
        arguments: &RunArguments,
        ssd: &mut Ssd,
        queue: &mut Queue,
        note: &mut impl FnMut(u64),
        shown: Shown<'_>,
    ) -> Result<Measured, Failure> {
        let pages = ssd.logical_pages();
        let RunArguments { warmup, drive_writes, .. } = *arguments;
        for (name, value) in [("--warmup", warmup), ("--drive-writes", drive_writes)] {
            if !(0.0..=1e6).contains(&value) {
                return Err(Failure::new(format!("{name}: found {value}, expected 0 to 1000000")));
            }
        }
        // Neither negative nor beyond 2^64.
        let share = |part: f64| (part * pages as f64).round() as u64;
        let total = pages.saturating_add(share(warmup)).saturating_add(share(drive_writes));
        shown.begin("flash", total)?;
        for page in 0..pages {
            shown.show(page)?;
            let now_ns = queue.enter();
            queue.leave(ssd.write(page, 1, Tag::Data(0), now_ns)?);
        }
        let mut place = self.replay((0, share(warmup)), ssd, queue, &mut |_, _, _| Ok(()), (shown, pages))?;
        ssd.reset_counters();
        let (cpu_before, time_before) = (cpu_seconds(), queue.now_ns());
        let before = pages.saturating_add(share(warmup));
        let (mut rows, mut requests) = (Rows::begin(arguments.rows.interval, ssd, time_before)?, 0);
        let mut ended = |latency_ns: u64, ssd: &Ssd, now_ns: u64| {
            note(latency_ns);
            rows.note(latency_ns);
            requests += 1;
            rows.look(requests, ssd, now_ns)
        };
        place = self.replay((place, share(drive_writes)), ssd, queue, &mut ended, (shown, before))?;
        debug_assert!(place < self.requests.len());
        Ok(Measured {
            cpu_seconds: cpu_seconds() - cpu_before,
            virtual_ns: queue.end_ns().saturating_sub(time_before),
            rows: rows.finish(requests, ssd, queue.end_ns())?,
        })
    }

    /// Replays from request `place` on until so many pages are written; where it stopped. `ended` is told of
    /// each request its latency, and how the SSD and the clock are then.
    fn replay(
        &self,
        (mut place, pages): (usize, u64),
        ssd: &mut Ssd,
        queue: &mut Queue,
        ended: &mut impl FnMut(u64, &Ssd, u64) -> Result<(), Failure>,
        (shown, before): (Shown<'_>, u64),
    ) -> Result<usize, Failure> {
        let mut written = 0;
        while written < pages {
            shown.show(before.saturating_add(written))?;
            let (op, page, count) = self.requests[place];
            let now_ns = queue.enter();
            let end_ns = match op {
                Op::Write => {
                    written += count;
                    ssd.write(page, count, Tag::Data(0), now_ns)?
                }
                Op::Read => ssd.read(page, count, now_ns)?,
                Op::Trim => ssd.trim(page, count, now_ns)?,
                Op::Flush => ssd.flush(now_ns),
            };
            queue.leave(end_ns);
            ended(end_ns - now_ns, ssd, queue.now_ns())?;
            place = (place + 1) % self.requests.len();
        }
        debug_assert!(self.pages_written > 0, "else it would not end");
        Ok(place)
    }
}
