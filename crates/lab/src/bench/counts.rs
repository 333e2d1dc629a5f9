//! What a slice of load came to: counted by shard, timed by thread, and put together.

use super::threads::Spread;
use array::GcStats;

/// What a shard did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Things done: requests, stripes committed or chunks rebuilt.
    pub done: u64,
    /// What garbage collection did.
    pub gc: GcStats,
    /// Stripes written whole.
    pub full_stripes: u64,
    /// Elastic stripes written with fewer chunks.
    pub short_stripes: u64,
    /// Runs of parity commit.
    pub commits: u64,
    /// Stripes whose parity they brought up to date.
    pub stripes_committed: u64,
    /// Chunks overwritten in memory and never written.
    pub absorbed_chunks: u64,
    /// Bytes written to the SSDs, metadata included.
    pub ssd_bytes: u64,
    /// Those of metadata.
    pub metadata_bytes: u64,
    /// Bytes written to log devices.
    pub log_bytes: u64,
    /// Pages of the table that were read because they were not in memory.
    pub pages_read: u64,
}

impl Counts {
    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.done += other.done;
        self.gc.units_collected += other.gc.units_collected;
        self.gc.chunks_rewritten += other.gc.chunks_rewritten;
        self.gc.chunks_read += other.gc.chunks_read;
        self.full_stripes += other.full_stripes;
        self.short_stripes += other.short_stripes;
        self.commits += other.commits;
        self.stripes_committed += other.stripes_committed;
        self.absorbed_chunks += other.absorbed_chunks;
        self.ssd_bytes += other.ssd_bytes;
        self.metadata_bytes += other.metadata_bytes;
        self.log_bytes += other.log_bytes;
        self.pages_read += other.pages_read;
    }

    /// All of some together.
    pub fn sum(all: &[Self]) -> Self {
        let mut sum = Self::default();
        all.iter().for_each(|counts| sum.add(counts));
        sum
    }
}

/// What a thread did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Slice {
    /// When it began; the clock is that of all threads.
    pub start_ns: u64,
    /// How long it took.
    pub ns: u64,
    /// Processor time that took: less than `ns` where other processes had the processor.
    pub cpu_ns: u64,
    /// Time during which a parity commit was under way in any of its shards.
    pub commit_ns: u64,
    /// Requests done while none was.
    pub requests_between: u64,
    /// What its shards did.
    pub shards: Vec<Counts>,
}

/// What all threads did side by side.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lap {
    /// From the moment at which the first began to that at which the last had ended.
    pub ns: u64,
    /// Processor time of all threads.
    pub cpu_ns: u64,
    /// Time during which a parity commit was under way, the mean of the threads.
    pub commit_ns: u64,
    /// Requests done while none was, of all threads.
    pub requests_between: u64,
    /// What the shards did, by number.
    pub shards: Vec<Counts>,
}

impl Lap {
    /// Puts together what each thread did.
    pub fn of(spread: Spread, slices: &[Slice]) -> Self {
        let start_ns = slices.iter().map(|slice| slice.start_ns).min().unwrap_or(0);
        let end_ns = slices.iter().map(|slice| slice.start_ns + slice.ns).max().unwrap_or(0);
        let mut shards = vec![Counts::default(); usize::from(spread.shards)];
        for (thread, slice) in (0..).zip(slices) {
            for (shard, counts) in spread.shards_of(thread).zip(&slice.shards) {
                shards[usize::from(shard)] = *counts;
            }
        }
        let sum = |of: fn(&Slice) -> u64| slices.iter().map(of).sum::<u64>();
        Self {
            ns: end_ns - start_ns,
            cpu_ns: sum(|slice| slice.cpu_ns),
            commit_ns: sum(|slice| slice.commit_ns) / u64::from(spread.threads),
            requests_between: sum(|slice| slice.requests_between),
            shards,
        }
    }

    /// Adds what was done afterwards.
    pub fn add(&mut self, other: &Self) {
        self.ns += other.ns;
        self.cpu_ns += other.cpu_ns;
        self.commit_ns += other.commit_ns;
        self.requests_between += other.requests_between;
        add_all(&mut self.shards, &other.shards);
    }

    /// Things done.
    pub fn done(&self) -> u64 {
        self.shards.iter().map(|counts| counts.done).sum()
    }

    /// Requests per second while no commit was under way; `None` if none was at all.
    pub fn rate_between(&self) -> Option<f64> {
        let between_ns = self.ns - self.commit_ns.min(self.ns);
        (self.commit_ns > 0 && between_ns > 0).then(|| self.requests_between as f64 * 1e9 / between_ns as f64)
    }
}

/// Adds what each shard did to what it did before.
pub fn add_all(all: &mut Vec<Counts>, others: &[Counts]) {
    all.resize(all.len().max(others.len()), Counts::default());
    all.iter_mut().zip(others).for_each(|(counts, other)| counts.add(other));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_side_by_side_take_as_long_as_from_the_first_start_to_the_last_end() {
        let done = |done| Counts { done, ..Counts::default() };
        let first = Slice {
            start_ns: 100,
            ns: 50,
            cpu_ns: 40,
            commit_ns: 20,
            shards: vec![done(1), done(4)],
            ..Slice::default()
        };
        let second = Slice { start_ns: 110, ns: 60, cpu_ns: 60, shards: vec![done(2)], ..Slice::default() };
        let spread = Spread { threads: 2, shards: 3 };
        let mut lap = Lap::of(spread, &[first, second]);
        assert_eq!((lap.ns, lap.cpu_ns, lap.commit_ns, lap.done()), (70, 100, 10, 7));
        // Shards 0 and 2 are the first thread's.
        assert_eq!(lap.shards, [done(1), done(2), done(4)]);
        lap.add(&lap.clone());
        assert_eq!((lap.ns, lap.shards[2].done), (140, 8));
    }
}
