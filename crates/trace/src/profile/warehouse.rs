//! Writes as a TPC-C run on a database with pages leaves them at a volume (P-18): no model of any trace.
//!
//! What the specification of TPC-C gives is taken from it (revision 5.11, sections 1.2, 1.3, 2.1.6, 5.2.3):
//! 40 warehouses; rows of 306 bytes of stock, 655 of a customer, 54 of an order line; items and customers
//! drawn by NURand; of 100 transactions 45 new orders of ten lines and 43 payments and 4 deliveries of ten
//! orders. So of 537 pages that these make dirty 450 are stock, 83 customers, and 4 lie at the end of what
//! grows.
//!
//! What a database makes of it is assumed, after what the manual of MySQL 5.7 says of InnoDB: pages of 16 KiB
//! are flushed in batches of 128 different ones, first into a doublewrite area of 2 MiB, then to their
//! places in the order of addresses, neighbours together; the redo log goes round in a fortieth of the range,
//! 1 KiB for each page flushed. Requests have 512 KiB at most, as the kernel's buffers write them.

use crate::random::Clock;
use crate::{Op, Request};
use block::{Random as _, SplitMix};
use std::collections::{BTreeSet, VecDeque};

/// Bytes of a page.
pub(super) const PAGE_BYTES: u64 = 16 << 10;
/// Pages of the smallest range.
pub(super) const PAGES_MIN: u64 = 4096;
/// Pages of the longest request.
const REQUEST_PAGES_MAX: u64 = 32;
/// Pages of a batch, and of the doublewrite area.
const BATCH_PAGES: u64 = 128;
/// Pages of redo log for a batch.
const LOG_PAGES_PER_BATCH: u64 = 8;
const INTERVAL_US_MEAN: f64 = 1000.0;

const WAREHOUSES: u64 = 40;
const DISTRICTS: u64 = 10;
const ITEMS: u64 = 100_000;
const CUSTOMERS: u64 = 3000;

/// Where things lie, in pages.
#[derive(Clone, Copy, Debug)]
struct Places {
    log: u64,
    stock: u64,
    customers: u64,
    growing: u64,
}

/// The generator; see the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Warehouse {
    random: SplitMix,
    clock: Clock,
    left: u64,
    places: Places,
    log_next: u64,
    grown: u64,
    /// NURand's constants, which a run draws once.
    constants: [u64; 2],
    waiting: VecDeque<(u64, u64)>,
}

impl Warehouse {
    /// `range_pages` are at least `PAGES_MIN`.
    pub(super) fn new(range_pages: u64, request_count: u64, seed: u64) -> Self {
        let mut random = SplitMix::new(seed);
        let log = (range_pages / 40).max(64);
        let tables = range_pages - log - BATCH_PAGES;
        // By rows and their lengths: 30.6 MB of stock, 19.7 MB of customers, 18.3 MB of what grows.
        let (stock, customers) = (tables * 446 / 1000, tables * 287 / 1000);
        let places = Places { log, stock, customers, growing: tables - stock - customers };
        let constants = [random.below(8192), random.below(1024)];
        Self {
            random,
            clock: Clock::new(INTERVAL_US_MEAN),
            left: request_count,
            places,
            log_next: 0,
            grown: 0,
            constants,
            waiting: VecDeque::new(),
        }
    }

    /// What it is made of, for the file and for people.
    pub(super) fn solution(&self) -> String {
        let Places { log, stock, customers, growing } = self.places;
        format!(
            "pages of 16 KiB: redo log {log}, doublewrite {BATCH_PAGES}, stock {stock}, customers {customers}, growing {growing}"
        )
    }

    /// NURand(A, 1, count) less 1, with the run's constant.
    fn uneven(&mut self, mask: u64, constant: u64, count: u64) -> u64 {
        let (low, all) = (self.random.below(mask + 1), 1 + self.random.below(count));
        ((low | all) + constant) % count
    }

    /// A page that a transaction made dirty.
    fn page(&mut self) -> u64 {
        let Places { log, stock, customers, growing } = self.places;
        let first = log + BATCH_PAGES;
        let warehouse = self.random.below(WAREHOUSES);
        match self.random.below(537) {
            0..450 => {
                let row = warehouse * ITEMS + self.uneven(8191, self.constants[0], ITEMS);
                first + row * stock / (WAREHOUSES * ITEMS)
            }
            450..533 => {
                let district = warehouse * DISTRICTS + self.random.below(DISTRICTS);
                let row = district * CUSTOMERS + self.uneven(1023, self.constants[1], CUSTOMERS);
                first + stock + row * customers / (WAREHOUSES * DISTRICTS * CUSTOMERS)
            }
            _ => {
                self.grown += 1;
                first + stock + customers + self.grown % growing
            }
        }
    }

    fn batch(&mut self) {
        let mut pages = BTreeSet::new();
        while pages.len() < usize::try_from(BATCH_PAGES).unwrap_or(usize::MAX) {
            let page = self.page();
            pages.insert(page);
        }
        let log = self.log_next.min(self.places.log - LOG_PAGES_PER_BATCH);
        self.waiting.push_back((log, LOG_PAGES_PER_BATCH));
        self.log_next = (log + LOG_PAGES_PER_BATCH) % self.places.log;
        for part in (0..BATCH_PAGES).step_by(32) {
            self.waiting.push_back((self.places.log + part, REQUEST_PAGES_MAX));
        }
        let mut run: Option<(u64, u64)> = None;
        for page in pages {
            run = match run {
                Some((first, count)) if first + count == page && count < REQUEST_PAGES_MAX => {
                    Some((first, count + 1))
                }
                before => {
                    self.waiting.extend(before);
                    Some((page, 1))
                }
            };
        }
        self.waiting.extend(run);
    }
}

impl Iterator for Warehouse {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.left = self.left.checked_sub(1)?;
        if self.waiting.is_empty() {
            self.batch();
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
