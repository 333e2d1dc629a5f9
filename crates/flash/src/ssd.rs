//! One SSD in virtual time.

use crate::config::SsdConfig;
use crate::counters::Counters;
use crate::dynamic::Planner;
use crate::error::{BrokenLaw, ConfigError, OutOfRange};
use crate::ftl::Ftl;
use crate::stream::Tag;
use crate::timing::{Clock, Untimed};
use crate::wear::WearSpread;

/// Pages whose mapping is brought into the caches at once: enough to hide memory's latency, few enough to
/// stay there.
const WARM_PAGES: usize = 32;

/// A simulated SSD: no content, only what happens to its flash, and when.
///
/// Requests are given in the order in which the device takes them, each with its time; answers are completion
/// times. Times may not go back. Without [`SsdConfig::timing`] everything completes at once.
#[derive(Clone, Debug)]
pub struct Ssd {
    config: SsdConfig,
    pub(crate) domains: Vec<Ftl>,
    clock: Option<Clock>,
    erases_before_reset: u64,
}

impl Ssd {
    /// An empty SSD.
    pub fn new(config: SsdConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let domains =
            (0..config.domains).map(|domain| Ftl::new(&config, domain, Planner::of(&config))).collect();
        let clock = config.timing.map(|timing| Clock::new(timing, &config.geometry, config.domains));
        Ok(Self { config, domains, clock, erases_before_reset: 0 })
    }

    /// What it was made from.
    pub fn config(&self) -> &SsdConfig {
        &self.config
    }

    /// Pages the host sees.
    pub fn logical_pages(&self) -> u64 {
        self.config.logical_pages
    }

    /// Writes pages; the time when they are acknowledged.
    #[inline]
    pub fn write(&mut self, page: u64, count: u64, tag: Tag, now_ns: u64) -> Result<u64, OutOfRange> {
        OutOfRange::check(page, count, self.config.logical_pages)?;
        let Self { domains, clock, .. } = self;
        Ok(match clock {
            None => {
                each(domains, page, count, |ftl, lpn, _| ftl.write(lpn, tag, &mut Untimed));
                now_ns
            }
            Some(clock) => {
                clock.start(now_ns);
                each(domains, page, count, |ftl, lpn, domain| {
                    clock.enter(domain);
                    ftl.write(lpn, tag, clock);
                });
                clock.finish()
            }
        })
    }

    /// Writes single pages, in this order, as one request; the time when all are acknowledged. For many pages
    /// this is faster than one write for each.
    pub fn write_scattered(&mut self, pages: &[(u64, Tag)], now_ns: u64) -> Result<u64, OutOfRange> {
        for &(page, _) in pages {
            OutOfRange::check(page, 1, self.config.logical_pages)?;
        }
        let mut end_ns = now_ns;
        for part in pages.chunks(WARM_PAGES) {
            if let [ftl] = &self.domains[..] {
                // The loads must not be optimised away.
                std::hint::black_box(ftl.warm(part.iter().map(|&(page, _)| page as u32)));
            }
            for &(page, tag) in part {
                end_ns = end_ns.max(self.write(page, 1, tag, now_ns)?);
            }
        }
        Ok(end_ns)
    }

    /// Reads pages; the time when they are there. Pages never written cost no flash read.
    pub fn read(&mut self, page: u64, count: u64, now_ns: u64) -> Result<u64, OutOfRange> {
        OutOfRange::check(page, count, self.config.logical_pages)?;
        let Self { domains, clock, .. } = self;
        Ok(match clock {
            None => {
                each(domains, page, count, |ftl, lpn, _| {
                    ftl.read(lpn, &mut Untimed);
                });
                now_ns
            }
            Some(clock) => {
                clock.start(now_ns);
                each(domains, page, count, |ftl, lpn, domain| {
                    clock.enter(domain);
                    ftl.read(lpn, clock);
                });
                clock.finish()
            }
        })
    }

    /// Declares pages unused.
    pub fn trim(&mut self, page: u64, count: u64, now_ns: u64) -> Result<u64, OutOfRange> {
        OutOfRange::check(page, count, self.config.logical_pages)?;
        let Self { domains, clock, .. } = self;
        Ok(match clock {
            None => {
                each(domains, page, count, |ftl, lpn, _| ftl.trim(lpn, &mut Untimed));
                now_ns
            }
            Some(clock) => {
                clock.start(now_ns);
                each(domains, page, count, |ftl, lpn, domain| {
                    clock.enter(domain);
                    ftl.trim(lpn, clock);
                });
                clock.finish()
            }
        })
    }

    /// Makes everything acknowledged durable; the time when it is.
    pub fn flush(&mut self, now_ns: u64) -> u64 {
        self.clock.as_mut().map_or(now_ns, |clock| clock.flush(now_ns))
    }

    /// What it has done since it was made or the counters were reset.
    pub fn counters(&self) -> Counters {
        self.domains.iter().fold(Counters::default(), |sum, ftl| sum.sum(&ftl.counters))
    }

    /// Counts from zero again, for what comes after a warm-up; wear per block stays.
    pub fn reset_counters(&mut self) {
        for ftl in &mut self.domains {
            ftl.programmed.before_reset += ftl.counters.flash_pages_written();
            self.erases_before_reset += ftl.counters.erases;
            ftl.counters = Counters::default();
            ftl.slc.seen = Counters::default();
        }
    }

    /// Erases per block, over its whole life.
    pub fn wear(&self) -> WearSpread {
        WearSpread::of(self.block_erases())
    }

    /// Erases of each block so far.
    pub fn block_erases(&self) -> impl Iterator<Item = u32> + Clone {
        self.domains.iter().flat_map(|ftl| ftl.wear.erases.iter().copied())
    }

    /// Mapped pages.
    pub fn mapped_pages(&self) -> u64 {
        self.domains.iter().map(|ftl| u64::from(ftl.mapped)).sum()
    }

    /// Free blocks.
    pub fn free_blocks(&self) -> u64 {
        self.domains.iter().map(|ftl| u64::from(ftl.free.count())).sum()
    }

    /// Blocks in use in SLC mode, and the most there may be at the moment.
    pub fn slc_blocks(&self) -> (u64, u64) {
        let add =
            |sum: (u64, u64), ftl: &Ftl| (sum.0 + u64::from(ftl.slc.in_use), sum.1 + u64::from(ftl.slc.cap));
        self.domains.iter().fold((0, 0), add)
    }

    /// Streams that have blocks of their own, translation pages apart.
    pub fn streams_in_use(&self) -> u8 {
        self.domains.iter().map(|ftl| ftl.slots.used()).max().unwrap_or(0)
    }

    /// Bytes of memory that grow with the flash.
    pub fn memory_bytes(&self) -> usize {
        self.domains.iter().map(Ftl::bytes).sum()
    }

    /// Recounts everything from the arrays: valid + invalid + free pages are all pages, host pages and copies
    /// are the pages programmed, wear is the erases. Takes time in proportion to the flash.
    pub fn check(&self) -> Result<(), BrokenLaw> {
        self.domains.iter().try_for_each(Ftl::check)?;
        let worn =
            self.domains.iter().flat_map(|ftl| &ftl.wear.erases).map(|&erases| u64::from(erases)).sum();
        let expected = self.erases_before_reset + self.counters().erases;
        if worn == expected { Ok(()) } else { Err(BrokenLaw { law: "wear = erases", found: worn, expected }) }
    }
}

/// Calls `act` with the domain and the page number there of each page of a checked range.
#[inline]
fn each(domains: &mut [Ftl], page: u64, count: u64, mut act: impl FnMut(&mut Ftl, u32, u32)) {
    // Page numbers have 32 bits: the configuration was checked.
    if let [ftl] = domains {
        for lpn in page..page + count {
            act(ftl, lpn as u32, 0);
        }
    } else {
        let parts = domains.len() as u64;
        for lpn in page..page + count {
            let part = (lpn % parts) as u32;
            act(&mut domains[part as usize], (lpn / parts) as u32, part);
        }
    }
}
