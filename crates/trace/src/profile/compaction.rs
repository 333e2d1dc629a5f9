//! Writes as updates of records in a log-structured merge store leave them at a volume, such as YCSB on
//! Cassandra (P-19): no model of any trace.
//!
//! A quarter of the range is what the records take, 1 KiB each; updates are Zipf-distributed with exponent
//! 0.99. An update goes to a commit log that goes round in a twentieth of the range; after updates of an
//! eighth of the records' space the memory table becomes a file. Where four files are of one size (0.5 to
//! 1.5 of their mean, Cassandra's size-tiered compaction), they become one, of as many records as so many
//! updates make different on average, and the old ones are deleted. Files take free pages from where the
//! last one ended, round the range, so that without TRIM every page is in use sooner or later (P-22). Where
//! a file finds no room, all become one, whose parts are deleted before it is written. Requests have 512
//! KiB at most; log and files are written side by side.

use super::warehouse::PAGE_BYTES;
use crate::random::Clock;
use crate::{Op, Request};
use block::SplitMix;
use std::collections::{BTreeMap, VecDeque};

/// Pages of the longest request.
const REQUEST_PAGES_MAX: u64 = 32;
const RECORDS_PER_PAGE: u32 = 16;
/// Files that become one.
const FILES_MERGED: usize = 4;
const ZIPF_EXPONENT: f64 = 0.99;
const INTERVAL_US_MEAN: f64 = 1000.0;

/// A file: the updates that it stands for, and its runs of pages.
#[derive(Clone, Debug)]
struct Table {
    updates: u32,
    runs: Vec<(usize, usize)>,
    pages: u32,
}

/// The generator; see the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Compaction {
    random: SplitMix,
    clock: Clock,
    left: u64,
    log_pages: u64,
    log_next: u64,
    records: u32,
    /// Pages of the files' area that are in use.
    used: Vec<bool>,
    free: u32,
    cursor: usize,
    tables: Vec<Table>,
    /// Pages of a file by updates.
    sizes: BTreeMap<u32, u32>,
    waiting: VecDeque<(u64, u64)>,
}

impl Compaction {
    /// `range_pages` are at least `warehouse::PAGES_MIN`; none above 2^28 pages, of which a bitmap would be
    /// large.
    pub(super) fn new(range_pages: u64, request_count: u64, seed: u64) -> Option<Self> {
        let pages = u32::try_from(range_pages).ok().filter(|&pages| pages <= 1 << 28)?;
        let log_pages = u64::from(pages / 20);
        let area = pages - pages / 20;
        Some(Self {
            random: SplitMix::new(seed),
            clock: Clock::new(INTERVAL_US_MEAN),
            left: request_count,
            log_pages,
            log_next: 0,
            records: pages / 4 * RECORDS_PER_PAGE,
            used: vec![false; usize::try_from(area).ok()?],
            free: area,
            cursor: 0,
            tables: Vec::new(),
            sizes: BTreeMap::new(),
            waiting: VecDeque::new(),
        })
    }

    /// What it is made of, for the file and for people.
    pub(super) fn solution(&self) -> String {
        format!("{} records of 1 KiB, commit log of {} pages of 16 KiB", self.records, self.log_pages)
    }

    /// Pages that the different records of so many updates take on average.
    fn size(&mut self, updates: u32) -> u32 {
        let records = self.records;
        *self.sizes.entry(updates).or_insert_with(|| {
            let different = different(records, updates);
            // The largest whole number below it.
            let (mut low, mut high) = (0, records);
            while low < high {
                let middle = low + (high - low).div_ceil(2);
                if f64::from(middle) <= different { low = middle } else { high = middle - 1 }
            }
            low.div_ceil(RECORDS_PER_PAGE).max(1)
        })
    }

    /// Takes free pages for a file and queues its requests.
    fn write(&mut self, updates: u32) {
        let pages = self.size(updates).min(self.free);
        let (mut runs, mut left): (Vec<(usize, usize)>, _) = (Vec::new(), pages);
        while left > 0 {
            let page = self.cursor;
            self.cursor = (page + 1) % self.used.len();
            if std::mem::replace(&mut self.used[page], true) {
                continue;
            }
            left -= 1;
            match runs.last_mut() {
                Some((first, count)) if *first + *count == page => *count += 1,
                Some(_) | None => runs.push((page, 1)),
            }
        }
        self.free -= pages;
        for &(first, count) in &runs {
            for at in (first..first + count).step_by(32) {
                let length = (first + count - at).min(32);
                let pages = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
                self.waiting.push_back((self.log_pages + pages(at), pages(length)));
            }
        }
        self.tables.push(Table { updates, runs, pages });
    }

    /// Deletes files; the updates that they stand for.
    fn delete(&mut self, indices: &[usize]) -> u32 {
        let mut updates: u32 = 0;
        for &index in indices.iter().rev() {
            let table = self.tables.remove(index);
            // Beyond 64 updates of each record nothing new comes.
            updates = updates.saturating_add(table.updates).min(self.records.saturating_mul(64));
            self.free += table.pages;
            for (first, count) in table.runs {
                self.used[first..first + count].fill(false);
            }
        }
        updates
    }

    /// Files of one size, if there are enough, by their places in ascending order.
    fn bucket(&self) -> Option<Vec<usize>> {
        let mut by_size: Vec<usize> = (0..self.tables.len()).collect();
        by_size.sort_by_key(|&index| self.tables[index].pages);
        by_size.windows(FILES_MERGED).find_map(|window| {
            let sum: u64 = window.iter().map(|&index| u64::from(self.tables[index].pages)).sum();
            let is_near = |&index: &usize| {
                let four = 4 * u64::from(self.tables[index].pages);
                (sum / 2..=sum + sum / 2).contains(&four)
            };
            let mut found = window.to_vec();
            found.sort_unstable();
            window.iter().all(is_near).then_some(found)
        })
    }

    /// The memory table becomes a file, and files one.
    fn cycle(&mut self) {
        let updates = (self.records / 8).max(1);
        if self.size(updates) >= self.free {
            self.merge_all();
        }
        self.write(updates);
        while let Some(merged) = self.bucket() {
            let sum = merged.iter().map(|&index| self.tables[index].updates).fold(0, u32::saturating_add);
            if self.size(sum.min(self.records.saturating_mul(64))) >= self.free {
                self.merge_all();
                break;
            }
            // The new file is written before the old ones are deleted.
            self.write(sum.min(self.records.saturating_mul(64)));
            self.delete(&merged);
        }
        // The log of the next updates, side by side with the files.
        let log_pages = u64::from(self.records / RECORDS_PER_PAGE / 8).max(1);
        let mut requests = VecDeque::new();
        let mut logged = 0;
        let share = log_pages.div_ceil(u64::try_from(self.waiting.len()).unwrap_or(1).max(1));
        while logged < log_pages || !self.waiting.is_empty() {
            requests.extend(self.waiting.pop_front());
            let until = (logged + share).min(log_pages);
            while logged < until {
                let count = (until - logged).min(REQUEST_PAGES_MAX).min(self.log_pages - self.log_next);
                requests.push_back((self.log_next, count));
                self.log_next = (self.log_next + count) % self.log_pages;
                logged += count;
            }
        }
        self.waiting = requests;
    }

    fn merge_all(&mut self) {
        let all: Vec<usize> = (0..self.tables.len()).collect();
        let updates = self.delete(&all);
        if updates > 0 {
            self.write(updates);
        }
    }
}

impl Iterator for Compaction {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.left = self.left.checked_sub(1)?;
        if self.waiting.is_empty() {
            self.cycle();
        }
        let (page, count) = self.waiting.pop_front()?;
        Some(Request {
            time_us: self.clock.tick(&mut self.random),
            dev: 0,
            op: Op::Write,
            offset_bytes: page * PAGE_BYTES,
            length_bytes: count * PAGE_BYTES,
        })
    }
}

/// Expected number of different records among so many updates. Ranks are taken together where they are close.
fn different(records: u32, updates: u32) -> f64 {
    let weight = |rank: f64| rank.powf(-ZIPF_EXPONENT);
    let groups = || {
        let mut first = 1_u32;
        std::iter::from_fn(move || {
            (first <= records).then(|| {
                let last = (first + first / 512).min(records);
                let (count, middle) =
                    (f64::from(last - first + 1), (f64::from(first) + f64::from(last)) / 2.0);
                first = last + 1;
                (count, middle)
            })
        })
    };
    let sum: f64 = groups().map(|(count, rank)| count * weight(rank)).sum();
    groups().map(|(count, rank)| count * -(f64::from(updates) * (-weight(rank) / sum).ln_1p()).exp_m1()).sum()
}

#[cfg(test)]
mod tests {
    use super::{Compaction, different};
    use block::{Random as _, SplitMix};
    use std::collections::HashSet;

    #[test]
    fn different_records_are_those_that_are_drawn() {
        let (records, updates) = (10_000, 20_000);
        let zipf = crate::random::Zipf::new(u64::from(records), 0.99);
        let mut random = SplitMix::new(3);
        let drawn: HashSet<u64> = (0..updates).map(|_| zipf.sample(&mut random)).collect();
        let (drawn, reckoned) =
            (f64::from(u32::try_from(drawn.len()).unwrap_or(0)), different(records, updates));
        assert!((drawn / reckoned - 1.0).abs() < 0.02, "{drawn} {reckoned}");
        assert!(random.below(2) < 2);
    }

    #[test]
    fn files_take_no_page_twice_and_every_page_sooner_or_later() {
        let mut store = Compaction::new(8192, u64::MAX, 1).expect("a range of 128 MiB");
        let mut touched = HashSet::new();
        for _ in 0..20_000 {
            let request = store.next().expect("it goes on");
            let first = request.offset_bytes / super::PAGE_BYTES;
            touched.extend(first..first + request.length_bytes / super::PAGE_BYTES);
            let held: u32 = store.tables.iter().map(|table| table.pages).sum();
            let used = store.used.iter().filter(|used| **used).count();
            assert_eq!(usize::try_from(held).ok(), Some(used));
        }
        assert_eq!(touched.len(), 8192);
    }
}
