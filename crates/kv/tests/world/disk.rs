//! A disk that loses power: of every block of 4 KiB that no flush covers any version since the last flush may
//! be there, or a mixture of sectors; blocks rot, and some cannot be read.

use block::{Durability, Random, XoshiroStarStar};
use kv::blocks::{BLOCK_BYTES, Ended, Fault, Issued, Medium, Request};
use std::collections::{BTreeMap, BTreeSet};

struct Version {
    ended: u64,
    bytes: Vec<u8>,
}

pub struct Disk {
    /// What reads see.
    view: Vec<u8>,
    /// What a power cut leaves for certain.
    durable: Vec<u8>,
    versions: BTreeMap<usize, Vec<Version>>,
    pending: Vec<(Issued, u64)>,
    clock: u64,
    pub unreadable: BTreeSet<usize>,
    random: XoshiroStarStar,
    /// Writes and flushes fail from now on, until power fails.
    pub writes_fail: bool,
    /// Completes requests as they come.
    pub in_order: bool,
    /// So many requests are carried out, and then none, until power fails.
    pub carried_max: Option<u64>,
}

/// In place of the time of a request: power fails while it is carried out.
const CUT: u64 = u64::MAX;

fn narrow(number: u64) -> usize {
    usize::try_from(number).expect("small")
}

impl Disk {
    pub fn new(size_bytes: usize, random: XoshiroStarStar) -> Self {
        Self {
            view: vec![0; size_bytes],
            durable: vec![0; size_bytes],
            versions: BTreeMap::new(),
            pending: Vec::new(),
            clock: 0,
            unreadable: BTreeSet::new(),
            random,
            writes_fail: false,
            in_order: false,
            carried_max: None,
        }
    }

    pub fn submit(&mut self, issued: Issued) {
        self.pending.push((issued, self.clock));
    }

    /// The disk becomes larger; what is there then is nothing, or anything.
    pub fn grow(&mut self, size_bytes: usize) {
        let fill = if self.random.chance(1, 2) { 0 } else { 0x77 };
        self.view.resize(size_bytes, fill);
        self.durable.resize(size_bytes, fill);
    }

    /// Something else is written to the beginning; what is there in all.
    pub fn give_away(&mut self, size_bytes: usize) -> &[u8] {
        self.view[..size_bytes].fill(0x42);
        self.durable.copy_from_slice(&self.view);
        self.versions.clear();
        &self.durable
    }

    /// What is there after a power cut.
    pub fn durable(&self) -> &[u8] {
        &self.durable
    }

    pub fn busy(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Ends one of the requests.
    pub fn step(&mut self) -> Option<Ended> {
        if self.pending.is_empty() {
            return None;
        }
        let at = if self.in_order { 0 } else { self.random.index(self.pending.len()) };
        let (issued, begun) = self.pending.remove(at);
        Some(self.end(issued, begun))
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        self.clock += 1;
        for (at, block) in bytes.chunks(BLOCK_BYTES).enumerate() {
            let place = offset + at * BLOCK_BYTES;
            // A block that is written anew can be read again.
            self.unreadable.remove(&(place / BLOCK_BYTES));
            assert_eq!(block.len(), BLOCK_BYTES, "whole blocks");
            self.view[place..place + BLOCK_BYTES].copy_from_slice(block);
            let version = Version { ended: self.clock, bytes: block.to_vec() };
            self.versions.entry(place / BLOCK_BYTES).or_default().push(version);
        }
    }

    fn end(&mut self, issued: Issued, begun: u64) -> Ended {
        if begun != CUT {
            match &mut self.carried_max {
                Some(0) => return Ended { tag: issued.tag, buffer: None, result: Err(Fault::Io) },
                Some(left) => *left -= 1,
                None => {}
            }
        }
        if self.writes_fail && begun != CUT && !matches!(issued.request, Request::Read { .. }) {
            let tag = issued.tag;
            if matches!(issued.request, Request::Write { .. }) && self.random.chance(1, 2) {
                // A write that failed may have happened all the same.
                self.end(issued, CUT);
            }
            return Ended { tag, buffer: None, result: Err(Fault::Io) };
        }
        let (mut buffer, mut result) = (None, Ok(()));
        match issued.request {
            Request::Read { offset_bytes, buffer: mut into } => {
                let (at, length) = (narrow(offset_bytes), into.len());
                into.copy_from_slice(&self.view[at..at + length]);
                let blocks = at / BLOCK_BYTES..(at + length) / BLOCK_BYTES;
                if self.unreadable.range(blocks).next().is_some() {
                    into.fill(0x55);
                    result = Err(Fault::Io);
                }
                buffer = Some(into);
            }
            Request::Write { offset_bytes, buffer, durability } => {
                let at = narrow(offset_bytes);
                self.put(at, &buffer);
                if durability == Durability::Durable && begun != CUT {
                    self.durable[at..at + buffer.len()].copy_from_slice(&buffer);
                    for block in at / BLOCK_BYTES..(at + buffer.len()) / BLOCK_BYTES {
                        self.versions.remove(&block);
                    }
                }
            }
            Request::Flush => {
                let done = std::mem::take(&mut self.versions);
                for (block, mut versions) in done {
                    let covered = versions.iter().rposition(|version| version.ended <= begun);
                    if let Some(last) = covered {
                        let place = block * BLOCK_BYTES;
                        self.durable[place..place + BLOCK_BYTES].copy_from_slice(&versions[last].bytes);
                        versions.drain(..=last);
                    }
                    if !versions.is_empty() {
                        self.versions.insert(block, versions);
                    }
                }
            }
            Request::Discard { offset_bytes, length_bytes } => {
                if self.random.chance(1, 2) {
                    self.put(narrow(offset_bytes), &vec![0; narrow(length_bytes)]);
                }
            }
        }
        Ended { tag: issued.tag, buffer, result }
    }

    /// Power fails: what was under way may have happened, and what no flush covers may not have.
    pub fn cut(&mut self) {
        while !self.pending.is_empty() {
            let at = self.random.index(self.pending.len());
            let (issued, _) = self.pending.remove(at);
            if matches!(issued.request, Request::Write { .. } | Request::Discard { .. })
                && self.random.chance(1, 2)
            {
                self.end(issued, CUT);
            }
        }
        // Sometimes all is there, sometimes nothing, mostly some of it.
        let luck = self.random.below(5);
        for (block, versions) in std::mem::take(&mut self.versions) {
            let place = block * BLOCK_BYTES;
            let chosen = self.random.index(versions.len());
            let last = &versions[versions.len() - 1].bytes;
            let some = &versions[chosen].bytes;
            let durable = &mut self.durable[place..place + BLOCK_BYTES];
            match (luck, self.random.below(3)) {
                (0, _) => durable.copy_from_slice(last),
                (1, _) | (2.., 0) => {}
                (2.., 1) => durable.copy_from_slice(some),
                (2.., _) => {
                    for (sector, new) in durable.chunks_mut(512).zip(some.chunks(512)) {
                        if self.random.chance(1, 2) {
                            sector.copy_from_slice(new);
                        }
                    }
                }
            }
        }
        self.writes_fail = false;
        self.carried_max = None;
        self.view.copy_from_slice(&self.durable);
    }

    /// A block of what is durable changes by itself.
    pub fn rot(&mut self, block: usize) {
        if self.random.chance(1, 3) {
            self.unreadable.insert(block);
            return;
        }
        let place = block * BLOCK_BYTES;
        let whole = self.random.chance(1, 2);
        for byte in &mut self.durable[place..place + BLOCK_BYTES] {
            if whole || self.random.chance(1, 512) {
                *byte ^= 0x5a;
            }
        }
        let copy = self.durable[place..place + BLOCK_BYTES].to_vec();
        self.view[place..place + BLOCK_BYTES].copy_from_slice(&copy);
    }
}

impl Medium for Disk {
    fn carry(&mut self, requests: Vec<Issued>) -> Vec<Ended> {
        for request in requests {
            self.submit(request);
        }
        std::iter::from_fn(|| self.step()).collect()
    }
}
