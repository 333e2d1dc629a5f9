//! A hard disk as a log device: one arm, sequential and random requests.
//!
//! A request that begins where the one before ended takes its transfer alone; any other also takes a move of
//! the arm and half a turn. Reads and writes have their own positioning time, fitted to measured bandwidth,
//! since a disk's write cache sorts writes. No zones, no cache hits.

use crate::error::{ConfigError, OutOfRange, within};

/// Bandwidths as fio prints them for one page size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HddOptions {
    /// Pages of the disk.
    pub pages: u64,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Sequential, in bytes per second: reads, writes.
    pub sequential: [f64; 2],
    /// Random requests of one page, in bytes per second: reads, writes.
    pub random: [f64; 2],
}

impl HddOptions {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        within("pages of the disk", self.pages, 1, 1 << 48)?;
        within("page size in bytes", u64::from(self.page_bytes), 512, 1 << 20)?;
        for rate in self.sequential.into_iter().chain(self.random) {
            if !(1.0..=1e12).contains(&rate) {
                return Err(ConfigError::new("bandwidth in bytes per second", rate, "1 to 1e12"));
            }
        }
        Ok(())
    }

    /// Time of a page that follows the one before.
    pub(crate) fn transfer_ns(&self, direction: usize) -> f64 {
        f64::from(self.page_bytes) / self.sequential[direction] * 1e9
    }

    /// What is added when it does not: positioning, or a drive's own cost of random requests.
    pub(crate) fn positioning_ns(&self, direction: usize) -> f64 {
        (f64::from(self.page_bytes) / self.random[direction] * 1e9 - self.transfer_ns(direction)).max(0.0)
    }
}

/// What a mechanical disk has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Pages read.
    pub pages_read: u64,
    /// Pages written.
    pub pages_written: u64,
    /// Requests that did not follow the one before.
    pub repositionings: u64,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Hdd {
    options: HddOptions,
    free_ns: u64,
    position: u64,
    traffic: Traffic,
}

const READ: usize = 0;
const WRITE: usize = 1;

impl Hdd {
    /// A disk with its arm at page 0.
    pub fn new(options: HddOptions) -> Result<Self, ConfigError> {
        options.check()?;
        Ok(Self { options, free_ns: 0, position: 0, traffic: Traffic::default() })
    }

    /// What it was made from.
    pub fn options(&self) -> &HddOptions {
        &self.options
    }

    /// What it has done.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Reads pages; when they are there.
    pub fn read(&mut self, page: u64, count: u64, now_ns: u64) -> Result<u64, OutOfRange> {
        OutOfRange::check(page, count, self.options.pages)?;
        self.traffic.pages_read += count;
        Ok(self.serve(page, count, READ, now_ns))
    }

    /// Writes pages; when they are on the disk.
    pub fn write(&mut self, page: u64, count: u64, now_ns: u64) -> Result<u64, OutOfRange> {
        OutOfRange::check(page, count, self.options.pages)?;
        self.traffic.pages_written += count;
        Ok(self.serve(page, count, WRITE, now_ns))
    }

    /// When all that was asked before is done.
    pub fn flush(&self, now_ns: u64) -> u64 {
        self.free_ns.max(now_ns)
    }

    fn serve(&mut self, page: u64, count: u64, direction: usize, now_ns: u64) -> u64 {
        let mut time = self.options.transfer_ns(direction) * count as f64;
        if page != self.position {
            self.traffic.repositionings += 1;
            time += self.options.positioning_ns(direction);
        }
        self.position = page + count;
        self.free_ns = self.free_ns.max(now_ns) + time.round() as u64;
        self.free_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    fn rate(ns: u64, pages: u64) -> f64 {
        (pages * 4096) as f64 / (ns as f64 / 1e9) / 1e6
    }

    /// Requirement X-02.
    #[test]
    fn the_seagate_reaches_the_bandwidths_that_the_paper_measured() {
        let options = presets::seagate_st1000dm003();
        let mut disk = Hdd::new(options).expect("valid");
        let (mut now, mut place) = (0, 0);
        for _ in 0..1000 {
            now = disk.write(place, 1, now).expect("in range");
            place += 1;
        }
        assert!((rate(now, 1000) - 91.6).abs() < 0.1, "{}", rate(now, 1000));
        let from = now;
        for _ in 0..100 {
            place = (place + 7919) % options.pages;
            now = disk.write(place, 1, now).expect("in range");
        }
        assert!((rate(now - from, 100) - 1.1).abs() < 0.01);
        let from = now;
        for _ in 0..100 {
            place = (place + 7919) % options.pages;
            now = disk.read(place, 1, now).expect("in range");
        }
        assert!((rate(now - from, 100) - 0.6).abs() < 0.01);
        assert_eq!(disk.traffic(), Traffic { pages_read: 100, pages_written: 1100, repositionings: 200 });
        assert!(disk.read(options.pages, 1, now).is_err());
        assert_eq!(disk.flush(0), now);
    }
}
