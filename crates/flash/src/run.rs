//! One SSD alone under a random workload, as the papers ran DiskSim and FlashSim.

use crate::error::{ConfigError, OutOfRange};
use crate::ssd::Ssd;
use crate::stream::Tag;
use crate::workload::{Pattern, Workload};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Writes drawn at once.
const BATCH: usize = 256;

/// How much is written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RunOptions {
    /// Which pages.
    pub pattern: Pattern,
    /// Share of the logical pages that is used at all; the others are never written.
    pub utilization: f64,
    /// Drive writes (of the pages used) before counting, after a sequential fill.
    pub warmup: f64,
    /// Drive writes counted.
    pub drive_writes: f64,
    /// Share of the writes that is parity, uniform over the first `parity_space` of the pages used;
    /// 0 for none.
    pub parity_writes: f64,
    /// See `parity_writes`.
    pub parity_space: f64,
    /// For the workload.
    pub seed: u64,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            pattern: Pattern::Uniform,
            utilization: 1.0,
            warmup: 3.0,
            drive_writes: 3.0,
            parity_writes: 0.0,
            parity_space: 0.0,
            seed: 1,
        }
    }
}

/// A run, in slices, so that a caller can show progress.
#[derive(Debug)]
pub struct Run {
    data: Workload,
    parity: Option<Workload>,
    first_data: u64,
    parity_writes: f64,
    pages: u64,
    /// Pages still to be written: filling, warm-up, counted.
    left: [u64; 3],
    total: u64,
    random: crate::Random,
}

impl Run {
    /// For an SSD of so many logical pages.
    pub fn new(options: &RunOptions, logical_pages: u64) -> Result<Self, ConfigError> {
        for (field, value, min, max) in [
            ("utilization", options.utilization, 0.0, 1.0),
            ("warm-up in drive writes", options.warmup, 0.0, 1e6),
            ("drive writes", options.drive_writes, 0.0, 1e6),
            ("parity's share of the writes", options.parity_writes, 0.0, 1.0),
            ("parity's share of the pages", options.parity_space, 0.0, 1.0),
        ] {
            if !(min..=max).contains(&value) {
                return Err(ConfigError::new(field, value, format_args!("{min} to {max}")));
            }
        }
        // The product is neither negative nor above `of` x 1e6.
        let share = |part: f64, of: u64| (part * of as f64).round() as u64;
        let pages = share(options.utilization, logical_pages).max(1);
        let first_data = if options.parity_writes > 0.0 { share(options.parity_space, pages) } else { 0 };
        if options.parity_writes > 0.0 && (first_data == 0 || first_data == pages) {
            let expected = "a share that leaves pages for data and for parity";
            return Err(ConfigError::new("parity's share of the pages", options.parity_space, expected));
        }
        let parity = (first_data > 0)
            .then(|| Workload::new(Pattern::Uniform, first_data, options.seed.wrapping_add(1)))
            .transpose()?;
        let left = [pages, share(options.warmup, pages), share(options.drive_writes, pages)];
        Ok(Self {
            data: Workload::new(options.pattern, pages - first_data, options.seed)?,
            parity,
            first_data,
            parity_writes: options.parity_writes,
            pages,
            left,
            total: left.iter().sum(),
            random: crate::Random::new(options.seed.wrapping_add(2)),
        })
    }

    /// Pages written so far and in all.
    pub fn progress(&self) -> (u64, u64) {
        (self.total - self.left.iter().sum::<u64>(), self.total)
    }

    /// Whether the next write is counted.
    pub fn is_counting(&self) -> bool {
        self.left[0] == 0 && self.left[1] == 0
    }

    /// The page that the next write goes to, and what it is; `done` pages after the last step.
    #[inline]
    fn draw(&mut self, phase: usize, done: u64) -> (u64, Tag) {
        if phase == 0 {
            let page = self.pages - self.left[0] + done;
            return (page, if page < self.first_data { Tag::Parity(0) } else { Tag::Data(0) });
        }
        match &mut self.parity {
            Some(parity) if self.random.unit() < self.parity_writes => {
                (u64::from(parity.draw()), Tag::Parity(0))
            }
            Some(_) | None => (self.first_data + u64::from(self.data.draw()), Tag::Data(0)),
        }
    }

    /// Writes at most `pages` pages through the queue; false at the end. The SSD's counters are reset when
    /// counting begins. `note` hears of the latency in nanoseconds of each write that counts, if the SSD has
    /// service times.
    pub fn step(
        &mut self,
        ssd: &mut Ssd,
        pages: u64,
        queue: &mut Queue,
        mut note: impl FnMut(u64),
    ) -> Result<bool, OutOfRange> {
        let Some(phase) = self.left.iter().position(|&left| left > 0) else { return Ok(false) };
        let count = pages.min(self.left[phase]);
        if ssd.config().timing.is_some() {
            for done in 0..count {
                let (page, tag) = self.draw(phase, done);
                let now_ns = queue.enter();
                let end_ns = ssd.write(page, 1, tag, now_ns)?;
                queue.leave(end_ns);
                if phase == 2 {
                    note(end_ns - now_ns);
                }
            }
        } else {
            let mut batch = [(0, Tag::Data(0)); BATCH];
            for first in (0..count).step_by(BATCH) {
                let length = (count - first).min(BATCH as u64);
                let batch = &mut batch[..length as usize];
                batch.iter_mut().zip(first..).for_each(|(write, done)| *write = self.draw(phase, done));
                ssd.write_scattered(batch, 0)?;
            }
        }
        self.left[phase] -= count;
        if phase < 2 && self.left[phase] == 0 && self.is_counting() {
            ssd.reset_counters();
        }
        Ok(self.left.iter().any(|&left| left > 0))
    }

    /// Runs all of it, one write at a time.
    pub fn finish(&mut self, ssd: &mut Ssd) -> Result<(), OutOfRange> {
        let mut queue = Queue::new(1);
        while self.step(ssd, u64::MAX, &mut queue, |_| ())? {}
        Ok(())
    }
}

/// A closed loop: so many requests under way, the next one sent when one completes.
#[derive(Clone, Debug)]
pub struct Queue {
    depth: usize,
    ends_ns: BinaryHeap<Reverse<u64>>,
    now_ns: u64,
}

impl Queue {
    /// With this depth; 0 counts as 1.
    pub fn new(depth: u32) -> Self {
        Self { depth: depth.max(1) as usize, ends_ns: BinaryHeap::new(), now_ns: 0 }
    }

    /// When the next request can be sent.
    pub fn enter(&mut self) -> u64 {
        if self.ends_ns.len() >= self.depth
            && let Some(Reverse(end_ns)) = self.ends_ns.pop()
        {
            self.now_ns = self.now_ns.max(end_ns);
        }
        self.now_ns
    }

    /// It completes then.
    pub fn leave(&mut self, end_ns: u64) {
        self.ends_ns.push(Reverse(end_ns));
    }

    /// When the last request was sent.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// When all requests are complete.
    pub fn end_ns(&self) -> u64 {
        self.ends_ns.iter().map(|&Reverse(end_ns)| end_ns).max().unwrap_or(self.now_ns).max(self.now_ns)
    }
}
