//! What each sector of the volume may hold, kept as plainly as possible: a list of candidate writes per
//! sector.
//!
//! Every write, and every discard, is a *version* with three facts: when it was submitted, when it was
//! answered, and whether it is known durable. Version 0 is the zeros of a new volume. Two rules:
//!
//! - A read may give any version but those that another version has certainly replaced: one that was
//!   submitted after the first was answered, and was itself answered before the read was submitted.
//! - After a power cut a sector may hold any version but those that a durable version has certainly replaced.
//!
//! A sector that was read after a restart holds what was read: from then on nothing else is allowed.
//!
//! Payloads name themselves: every sector starts with its version and its address, and the rest follows from
//! both. It ends with its own CRC-32C, as users' data often does, so that all versions of a chunk have the
//! same CRC-32C.

use block::mix;
use format::ArrayConfig;
use std::fmt;
use std::ops::Range;

/// Bytes in a sector.
pub const SECTOR: usize = 512;

/// Names a version; 0 is the zeros of a new volume.
pub type Version = u32;

#[derive(Clone, Copy)]
struct Fact {
    zero: bool,
    first: u64,
    count: u64,
    untorn: u64,
    submitted: u64,
    answered: u64,
    /// When it was certainly over: answered, or read after the power cut that left it unanswered.
    settled: u64,
    durable: bool,
    /// When the first flush that covers it was answered.
    flushed: u64,
    /// A flush that began after that was answered: devices say that it is durable.
    confirmed: bool,
}

/// See the module's documentation.
pub struct Oracle {
    facts: Vec<Fact>,
    sectors: Vec<Vec<Version>>,
    /// Answered, but not known durable.
    volatile: Vec<Version>,
    /// Answered, but not confirmed.
    unconfirmed: Vec<Version>,
    /// Versions from here on may be unsettled.
    unsettled_from: usize,
    /// Sectors of the largest block that the array promises not to tear.
    pub untorn: u64,
    /// The shapes of the shards. They differ only while some have grown and others have not; the array's own
    /// is that of the smallest.
    pub shapes: Vec<ArrayConfig>,
    /// What shards may have become when power failed while they were growing, besides what they were.
    pub growing: Vec<ArrayConfig>,
    clock: u64,
}

/// What a request wrote or discarded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// Whether it was a discard.
    pub zero: bool,
    /// What it covers.
    pub sectors: Range<u64>,
    /// Sectors of the largest block that the array promised not to tear then.
    pub untorn: u64,
    submitted: u64,
}

/// Whether a sector has a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Survival {
    Here,
    /// It has an older one.
    Not,
    /// Another one may have replaced it.
    Replaced,
}

/// A sector held what it must not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// The sector.
    pub lba: u64,
    /// What it held.
    pub found: Content,
    /// What it might have held.
    pub allowed: Vec<Version>,
}

/// What a sector's bytes say they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// All zeros.
    Zeros,
    /// The payload of this version of this sector.
    Payload {
        /// The version.
        version: Version,
        /// The sector it was written for.
        lba: u64,
    },
    /// Nothing that was ever written.
    Garbage,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sector {}: found {:?}, allowed versions {:?}", self.lba, self.found, self.allowed)
    }
}

/// Fills a sector with its payload.
pub fn fill(version: Version, lba: u64, out: &mut [u8]) {
    let base = mix(u64::from(version) << 40 ^ lba);
    for (i, word) in out.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&(base ^ (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes());
    }
    out[..8].copy_from_slice(&u64::from(version).to_le_bytes());
    out[8..16].copy_from_slice(&lba.to_le_bytes());
    let end = out.len() - 4;
    let own = format::crc32c(&out[..end]);
    out[end..].copy_from_slice(&own.to_le_bytes());
}

/// Reads a payload back.
pub fn identify(bytes: &[u8]) -> Content {
    if bytes == [0; SECTOR] {
        return Content::Zeros;
    }
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let (version, lba) = (word(0), word(8));
    let Ok(version) = Version::try_from(version) else { return Content::Garbage };
    let mut expected = [0; SECTOR];
    fill(version, lba, &mut expected);
    if expected == bytes { Content::Payload { version, lba } } else { Content::Garbage }
}

impl Oracle {
    /// A new volume of `sector_count` sectors.
    pub fn new(sector_count: usize) -> Self {
        let count = sector_count as u64;
        let zero = Fact {
            zero: true,
            first: 0,
            count,
            untorn: 0,
            submitted: 0,
            answered: 0,
            settled: 0,
            durable: true,
            flushed: 0,
            confirmed: true,
        };
        Self {
            facts: vec![zero],
            sectors: vec![vec![0]; sector_count],
            volatile: Vec::new(),
            unconfirmed: Vec::new(),
            unsettled_from: 1,
            untorn: 0,
            shapes: Vec::new(),
            growing: Vec::new(),
            clock: 1,
        }
    }

    /// Now; every call is a later instant.
    pub fn now(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The volume is larger from now on: what is new holds zeros.
    pub fn enlarge(&mut self, sector_count: usize) {
        let more = sector_count.saturating_sub(self.sectors.len());
        self.sectors.resize(self.sectors.len() + more, vec![0]);
        self.facts[0].count += u64::try_from(more).expect("a volume that can be simulated");
    }

    /// Sectors of the volume.
    pub fn sector_count(&self) -> usize {
        self.sectors.len()
    }

    /// A write (or, with `zero`, a discard) of some sectors is submitted.
    pub fn submit(&mut self, first: u64, count: u64, zero: bool, oldest_read: u64) -> Version {
        let submitted = self.now();
        let version = Version::try_from(self.facts.len()).expect("a world has few requests");
        self.facts.push(Fact {
            zero,
            first,
            count,
            untorn: self.untorn,
            submitted,
            answered: u64::MAX,
            settled: u64::MAX,
            durable: false,
            flushed: u64::MAX,
            confirmed: false,
        });
        for lba in first..first + count {
            let mut list = std::mem::take(&mut self.sectors[lba as usize]);
            if list.len() > 6 {
                let newest = list.iter().map(|&v| self.facts[v as usize]);
                let replaced =
                    newest.filter(|f| f.confirmed && f.answered < oldest_read).map(|f| f.submitted).max();
                list.retain(|&v| self.facts[v as usize].answered >= replaced.unwrap_or(0));
            }
            list.push(version);
            self.sectors[lba as usize] = list;
        }
        version
    }

    /// A write was answered.
    pub fn answered(&mut self, version: Version, durable: bool) {
        let now = self.now();
        let fact = &mut self.facts[version as usize];
        (fact.answered, fact.settled) = (now, now);
        fact.durable = durable;
        if !durable {
            self.volatile.push(version);
        }
        self.unconfirmed.push(version);
    }

    /// A flush that was submitted at `submitted` was answered.
    pub fn flushed(&mut self, submitted: u64) {
        let facts = &mut self.facts;
        self.volatile.retain(|&version| {
            let fact = &mut facts[version as usize];
            fact.durable |= fact.answered < submitted;
            !fact.durable
        });
        let now = self.now();
        let facts = &mut self.facts;
        self.unconfirmed.retain(|&version| {
            let fact = &mut facts[version as usize];
            fact.confirmed |= fact.flushed < submitted;
            if fact.answered < submitted {
                fact.flushed = fact.flushed.min(now);
            }
            !fact.confirmed
        });
    }

    fn allowed(&self, lba: u64, replaced_before: impl Fn(&Fact) -> bool) -> Vec<Version> {
        let list = &self.sectors[lba as usize];
        let replacer = list.iter().map(|&v| &self.facts[v as usize]).filter(|f| replaced_before(f));
        let newest = replacer.map(|f| f.submitted).max().unwrap_or(0);
        list.iter().copied().filter(|&v| self.facts[v as usize].answered >= newest).collect()
    }

    fn judge(&self, lba: u64, bytes: &[u8], allowed: Vec<Version>) -> Result<Vec<Version>, Wrong> {
        let found = identify(bytes);
        let fits = |&v: &Version| match found {
            Content::Zeros => self.facts[v as usize].zero,
            Content::Payload { version, lba: of } => {
                version == v && of == lba && !self.facts[v as usize].zero
            }
            Content::Garbage => false,
        };
        let matching: Vec<Version> = allowed.iter().copied().filter(fits).collect();
        if matching.is_empty() { Err(Wrong { lba, found, allowed }) } else { Ok(matching) }
    }

    /// A read that was submitted at `submitted` gave `bytes` for a sector.
    pub fn check_read(&self, lba: u64, bytes: &[u8], submitted: u64) -> Result<(), Wrong> {
        let allowed = self.allowed(lba, |f| f.answered < submitted);
        self.judge(lba, bytes, allowed).map(|_| ())
    }

    /// A read of an array that is damaged beyond the promise gave `bytes` for a sector. `forced`: the
    /// operator has accepted anything older. `guessed`: what was written is not known, so chunks that nobody
    /// wrote, of which no checksum tells, may be read as they are, and they may have rotted.
    pub fn check_ruined(&self, lba: u64, bytes: &[u8], forced: bool, guessed: bool) -> Result<(), Wrong> {
        let versions = &self.sectors[lba as usize];
        let nobody_wrote = self.judge(lba, &[0; SECTOR], versions.clone()).is_ok();
        if guessed && nobody_wrote && identify(bytes) == Content::Garbage {
            return Ok(());
        }
        if !forced {
            return self.judge(lba, bytes, versions.clone()).map(|_| ());
        }
        match identify(bytes) {
            Content::Zeros => Ok(()),
            Content::Payload { lba: of, .. } if of == lba => Ok(()),
            found @ (Content::Payload { .. } | Content::Garbage) => {
                Err(Wrong { lba, found, allowed: Vec::new() })
            }
        }
    }

    /// Power was lost: nothing more will be answered, and what no durable version has replaced may have
    /// survived.
    pub fn crashed(&mut self) {
        self.survive(|fact| fact.durable);
    }

    /// The same, and then comes damage beyond the promise: what no confirmed version has replaced may have
    /// survived.
    pub fn crashed_before_ruin(&mut self) {
        self.survive(|fact| fact.confirmed);
    }

    fn survive(&mut self, replaces: impl Fn(&Fact) -> bool) {
        self.volatile.clear();
        self.unconfirmed.clear();
        let now = self.now();
        for lba in 0..self.sectors.len() {
            let allowed = self.allowed(lba as u64, &replaces);
            self.sectors[lba] = allowed;
        }
        for list in &self.sectors {
            for &version in list {
                // Whichever survived, it is what any later write replaces; none of them replaces another any
                // more.
                self.facts[version as usize].answered = now;
            }
        }
    }

    /// After a restart a sector was read: it is one of the survivors, and from now on nothing else.
    pub fn anchor(&mut self, lba: u64, bytes: &[u8]) -> Result<(), Wrong> {
        let list = self.sectors[lba as usize].clone();
        let matching = self.judge(lba, bytes, list)?;
        self.sectors[lba as usize] = matching;
        Ok(())
    }

    /// After everything was anchored: a version of which one sector of a block certainly survived and
    /// another certainly did not, with those sectors. Another version that was under way together with it
    /// explains a sector, whatever it holds. `blocks_of` a request are there as a whole or not at all.
    pub fn torn<Blocks: Iterator<Item = Range<u64>>>(
        &self,
        blocks_of: impl Fn(Written) -> Blocks,
    ) -> Option<(Version, u64, u64)> {
        self.unsettled().find_map(|(version, written)| {
            let submitted = written.submitted;
            blocks_of(written).find_map(|block| {
                let first =
                    |survival| block.clone().find(|&lba| self.survival(version, submitted, lba) == survival);
                Some((version, first(Survival::Here)?, first(Survival::Not)?))
            })
        })
    }

    /// How many blocks of more than `chunk_sectors` the power cut could have torn, and of how many of them
    /// something is there.
    pub fn tearable<Blocks: Iterator<Item = Range<u64>>>(
        &self,
        chunk_sectors: u64,
        blocks_of: impl Fn(Written) -> Blocks,
    ) -> (u64, u64) {
        let mut counts = (0, 0);
        for (version, written) in self.unsettled() {
            let submitted = written.submitted;
            for mut block in blocks_of(written).filter(|block| block.end - block.start > chunk_sectors) {
                counts.0 += 1;
                counts.1 +=
                    u64::from(block.any(|lba| self.survival(version, submitted, lba) == Survival::Here));
            }
        }
        counts
    }

    /// Requests that were not answered, or not durable, before the last power cut.
    fn unsettled(&self) -> impl Iterator<Item = (Version, Written)> {
        let facts = (0..).zip(&self.facts).skip(self.unsettled_from);
        facts.map(|(version, &Fact { zero, first, count, untorn, submitted, .. })| {
            (version, Written { zero, sectors: first..first + count, untorn, submitted })
        })
    }

    fn survival(&self, version: Version, submitted: u64, lba: u64) -> Survival {
        let list = &self.sectors[lba as usize];
        if list.iter().all(|&v| v == version) {
            Survival::Here
        } else if list.iter().all(|&v| self.facts[v as usize].settled < submitted) {
            Survival::Not
        } else {
            Survival::Replaced
        }
    }

    /// Every sector that was anchored is durable: the restart made it so.
    pub fn anchored(&mut self) {
        let now = self.now();
        for fact in &mut self.facts[self.unsettled_from..] {
            fact.settled = fact.settled.min(now);
        }
        self.unsettled_from = self.facts.len();
        for list in &self.sectors {
            for &version in list {
                let fact = &mut self.facts[version as usize];
                (fact.durable, fact.confirmed) = (true, true);
            }
        }
    }
}
