//! What each sector of the volume may hold, and the judgement of what was read. The rules are those of
//! `docs/crash-model.md`, written down anew.
//!
//! Requests in flight never overlap (the ledger refuses to begin one that would), so the versions of a sector
//! are in an order: the one that it certainly has had, its *base*, and those that came later. Of a running
//! array a read gives the newest that was answered before the read began, or one still in flight beside it.
//! After a kill a sector may hold its newest durable version or any later one. What was read after a start is
//! what the sector holds from then on.
//!
//! A sector names its version and its address, and the rest of its 512 bytes follows from both, so that
//! nothing but a version written to this very sector passes.

use crate::rng::mix;
use std::fmt;
use std::ops::Range;

/// Bytes in a sector.
pub const SECTOR: usize = 512;

/// What a request does to its sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Writes payloads.
    Data,
    /// Makes them zeros: TRIM and WRITE_ZEROES.
    Zeros,
}

/// A write or discard; an index into the ledger's list. The first one is the zeros of a new volume.
pub type Version = u32;

const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct Fact {
    change: Change,
    first: u64,
    count: u64,
    answered: u64,
    durable: bool,
}

#[derive(Clone, Debug)]
struct Sector {
    base: Version,
    later: Vec<Version>,
}

impl Sector {
    /// Its versions, oldest first.
    fn versions(&self) -> impl Iterator<Item = Version> + Clone {
        std::iter::once(self.base).chain(self.later.iter().copied())
    }
}

/// When a read was sent; what it may give is judged by it.
#[derive(Clone, Copy, Debug)]
pub struct Instant(u64);

/// What a start promises about what no flush covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Promise {
    /// Units of so many sectors are wholly old or wholly new.
    pub chunk_sectors: Option<u64>,
    /// Units of so many sectors have a change wholly or not at all.
    pub stripe_sectors: Option<u64>,
    /// All copies of the newest metadata may be gone without a trace: any version that was
    /// ever written passes.
    pub older: bool,
}

/// A sector held what it must not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// Bytes that were never written to this sector.
    Foreign {
        /// The sector.
        sector: u64,
        /// What they are.
        found: String,
    },
    /// A version that a later one has replaced for certain.
    Older {
        /// The sector.
        sector: u64,
        /// The version it held.
        found: Version,
        /// The oldest one that it could hold.
        oldest: Version,
    },
    /// A write is there in part, though its chunk (or stripe) is promised to be wholly old or wholly new.
    Torn {
        /// A sector that has it.
        with: u64,
        /// A sector of the same unit that lacks it.
        without: u64,
        /// The write.
        version: Version,
    },
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign { sector, found } => write!(f, "wrong data: sector {sector} holds {found}"),
            Self::Older { sector, found, oldest } => {
                write!(
                    f,
                    "older state: sector {sector} holds version {found}, the oldest possible is {oldest}"
                )
            }
            Self::Torn { with, without, version } => {
                write!(f, "torn: write {version} is in sector {with}, and not in sector {without}")
            }
        }
    }
}

/// See the module's documentation.
pub struct Ledger {
    salt: u64,
    facts: Vec<Fact>,
    sectors: Vec<Sector>,
    /// Ranges of requests in flight that change something.
    open: Vec<(Version, Range<u64>)>,
    clock: u64,
}

/// What a sector's bytes say they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Content {
    Zeros,
    Payload { version: Version, sector: u64 },
    Garbage,
}

impl Ledger {
    /// A new volume, which reads as zeros.
    pub fn new(seed: u64, sector_count: u64) -> Self {
        let zeros = Fact { change: Change::Zeros, first: 0, count: sector_count, answered: 0, durable: true };
        let sector = Sector { base: 0, later: Vec::new() };
        let count = usize::try_from(sector_count).expect("a volume of a round is small");
        Self { salt: mix(seed), facts: vec![zeros], sectors: vec![sector; count], open: Vec::new(), clock: 1 }
    }

    /// Sectors of the volume.
    pub fn sector_count(&self) -> u64 {
        self.sectors.len() as u64
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Begins a change of these sectors; `None` if one in flight overlaps.
    pub fn begin(&mut self, sectors: Range<u64>, change: Change) -> Option<Version> {
        if self.open.iter().any(|(_, open)| open.start < sectors.end && sectors.start < open.end) {
            return None;
        }
        let version = Version::try_from(self.facts.len()).expect("a round has few requests");
        self.facts.push(Fact {
            change,
            first: sectors.start,
            count: sectors.end - sectors.start,
            answered: NEVER,
            durable: false,
        });
        for sector in &mut self.sectors[span(&sectors)] {
            sector.later.push(version);
        }
        self.open.push((version, sectors));
        Some(version)
    }

    /// It was answered; `durable` if that alone promises that it survives.
    pub fn answered(&mut self, version: Version, durable: bool) {
        let now = self.tick();
        let fact = &mut self.facts[version as usize];
        fact.answered = now;
        fact.durable |= durable;
        self.open.retain(|(open, _)| *open != version);
    }

    /// It was answered with an error: it may have happened or not.
    pub fn refused(&mut self, version: Version) {
        self.open.retain(|(open, _)| *open != version);
    }

    /// Now. A flush or read is about to be sent.
    pub fn now(&mut self) -> Instant {
        Instant(self.tick())
    }

    /// A flush sent at this instant was answered: what had been answered before it was sent is durable.
    pub fn flushed(&mut self, sent: Instant) {
        for fact in &mut self.facts {
            fact.durable |= fact.answered < sent.0;
        }
    }

    /// The payload of a version's sectors.
    pub fn payload(&self, version: Version) -> Vec<u8> {
        let fact = self.facts[version as usize];
        let mut bytes = vec![0; usize::try_from(fact.count).expect("a small request") * SECTOR];
        for (sector, out) in (fact.first..).zip(bytes.chunks_exact_mut(SECTOR)) {
            fill(self.salt, version, sector, out);
        }
        bytes
    }

    /// Judges what a read of a running array gave.
    pub fn check_read(&self, first: u64, bytes: &[u8], sent: Instant) -> Result<(), Wrong> {
        for (sector, bytes) in (first..).zip(bytes.chunks_exact(SECTOR)) {
            let held = &self.sectors[index(sector)];
            let newest = |&version: &Version| self.facts[version as usize].answered < sent.0;
            let oldest = held.later.iter().copied().rev().find(newest).unwrap_or(held.base);
            self.judge(sector, bytes, oldest)?;
        }
        Ok(())
    }

    /// The versions from `oldest` on that fit these bytes.
    fn judge(&self, sector: u64, bytes: &[u8], oldest: Version) -> Result<Vec<Version>, Wrong> {
        let content = identify(self.salt, bytes);
        let fits = |version: Version| match content {
            Content::Zeros => self.facts[version as usize].change == Change::Zeros,
            Content::Payload { version: found, sector: of } => found == version && of == sector,
            Content::Garbage => false,
        };
        let held = &self.sectors[index(sector)];
        let matching: Vec<Version> = held
            .versions()
            .skip_while(|&version| version != oldest)
            .filter(|&version| fits(version))
            .collect();
        if !matching.is_empty() {
            return Ok(matching);
        }
        Err(match content {
            Content::Payload { version, sector: of }
                if of == sector && self.wrote(version, sector) && version < oldest =>
            {
                Wrong::Older { sector, found: version, oldest }
            }
            // Zeros were there once: at the latest before the first write.
            Content::Zeros => Wrong::Older { sector, found: 0, oldest },
            Content::Payload { .. } | Content::Garbage => {
                Wrong::Foreign { sector, found: describe(content, bytes) }
            }
        })
    }

    fn wrote(&self, version: Version, sector: u64) -> bool {
        self.facts.get(version as usize).is_some_and(|fact| {
            fact.change == Change::Data && (fact.first..fact.first + fact.count).contains(&sector)
        })
    }

    /// The server ended, in order (then what was answered is durable) or not. What is not durable may be
    /// there or not.
    pub fn ended(&mut self, orderly: bool) {
        if orderly {
            let now = self.now();
            self.flushed(now);
        }
        self.open.clear();
        for held in &mut self.sectors {
            let durable = held.later.iter().rposition(|&version| self.facts[version as usize].durable);
            if let Some(at) = durable {
                held.base = held.later[at];
                held.later.drain(..=at);
            }
        }
        // Those that are left may be there or not, whatever is answered from now on.
        for fact in &mut self.facts {
            if !fact.durable {
                fact.answered = NEVER;
            }
        }
    }

    /// Judges what the first read after a start gave, and holds the sectors to it.
    pub fn anchor(&mut self, first: u64, bytes: &[u8], promise: Promise) -> Result<(), Wrong> {
        let mut found = Vec::with_capacity(bytes.len() / SECTOR);
        for (sector, bytes) in (first..).zip(bytes.chunks_exact(SECTOR)) {
            let oldest = self.sectors[index(sector)].base;
            found.push(match self.judge(sector, bytes, oldest) {
                Err(Wrong::Older { found, .. }) if promise.older => vec![found],
                judged => judged?,
            });
        }
        if let Some(sectors) = promise.chunk_sectors {
            self.check_whole(first, &found, sectors)?;
        }
        if let Some(sectors) = promise.stripe_sectors {
            self.check_whole(first, &found, sectors)?;
        }
        for (sector, matching) in (first..).zip(found) {
            let held = &mut self.sectors[index(sector)];
            held.base = matching[matching.len() - 1];
            held.later.clear();
        }
        Ok(())
    }

    /// No change is there in one sector of a unit and lacking in another one.
    fn check_whole(&self, first: u64, found: &[Vec<Version>], unit_sectors: u64) -> Result<(), Wrong> {
        let units = (first..).zip(found).collect::<Vec<_>>();
        for unit in units.chunk_by(|(a, _), (b, _)| a / unit_sectors == b / unit_sectors) {
            // Zeros may be any of several versions; such a sector says nothing.
            let clear = unit.iter().filter_map(|(sector, matching)| match matching[..] {
                [version] => Some((*sector, version)),
                _ => None,
            });
            for (with, version) in clear.clone() {
                let lacks = |&(sector, other): &(u64, Version)| {
                    other < version && self.sectors[index(sector)].later.contains(&version)
                };
                if let Some((without, _)) = clear.clone().find(lacks) {
                    return Err(Wrong::Torn { with, without, version });
                }
            }
        }
        Ok(())
    }
}

fn index(sector: u64) -> usize {
    usize::try_from(sector).expect("a volume of a round is small")
}

fn span(sectors: &Range<u64>) -> Range<usize> {
    index(sectors.start)..index(sectors.end)
}

fn fill(salt: u64, version: Version, sector: u64, out: &mut [u8]) {
    let base = mix(salt ^ (u64::from(version) << 40) ^ sector);
    for (at, word) in (0u64..).zip(out.chunks_exact_mut(8)) {
        word.copy_from_slice(
            &base.wrapping_add(at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).rotate_left(17).to_le_bytes(),
        );
    }
    out[..8].copy_from_slice(&u64::from(version).to_le_bytes());
    out[8..16].copy_from_slice(&sector.to_le_bytes());
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn identify(salt: u64, bytes: &[u8]) -> Content {
    if bytes.iter().all(|&byte| byte == 0) {
        return Content::Zeros;
    }
    let Ok(version) = Version::try_from(word(bytes, 0)) else { return Content::Garbage };
    let sector = word(bytes, 8);
    let mut expected = [0; SECTOR];
    fill(salt, version, sector, &mut expected);
    if expected == bytes { Content::Payload { version, sector } } else { Content::Garbage }
}

fn describe(content: Content, bytes: &[u8]) -> String {
    match content {
        Content::Zeros => "zeros".into(),
        Content::Payload { version, sector } => format!("version {version} of sector {sector}"),
        Content::Garbage => {
            format!("bytes of no version ({:016x} {:016x} ...)", word(bytes, 0), word(bytes, 8))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use super::*;

    const NONE: Promise = Promise { chunk_sectors: None, stripe_sectors: None, older: false };

    fn whole(sectors: u64) -> Promise {
        Promise { chunk_sectors: Some(sectors), ..NONE }
    }

    fn write(ledger: &mut Ledger, sectors: Range<u64>, durable: bool) -> (Version, Vec<u8>) {
        let version = ledger.begin(sectors, Change::Data).unwrap();
        ledger.answered(version, durable);
        (version, ledger.payload(version))
    }

    #[test]
    fn a_read_gives_the_newest_answered_version_or_one_in_flight() {
        let mut ledger = Ledger::new(1, 16);
        let (_, old) = write(&mut ledger, 0..4, false);
        let sent = ledger.now();
        let (_, new) = write(&mut ledger, 0..4, false);
        assert!(ledger.check_read(0, &old, sent).is_ok() && ledger.check_read(0, &new, sent).is_ok());
        let later = ledger.now();
        assert!(matches!(ledger.check_read(0, &old, later), Err(Wrong::Older { sector: 0, .. })));
        assert!(matches!(ledger.check_read(1, &new, later), Err(Wrong::Foreign { sector: 1, .. })));
        assert!(ledger.begin(3..5, Change::Zeros).is_some());
        assert!(ledger.begin(4..8, Change::Data).is_none(), "requests in flight do not overlap");
    }

    #[test]
    fn after_a_kill_what_was_flushed_is_there_and_the_rest_may_be() {
        let mut ledger = Ledger::new(2, 16);
        let (_, flushed) = write(&mut ledger, 0..2, false);
        let sent = ledger.now();
        let (_, loose) = write(&mut ledger, 0..2, false);
        ledger.flushed(sent);
        ledger.ended(false);
        let zeros = vec![0; 2 * SECTOR];
        assert!(matches!(ledger.anchor(0, &zeros, NONE), Err(Wrong::Older { .. })));
        assert!(ledger.anchor(0, &loose, NONE).is_ok());
        assert!(ledger.anchor(0, &flushed, NONE).is_err(), "what was read once stays");
        let now = ledger.now();
        assert!(ledger.check_read(0, &loose, now).is_ok());
    }

    #[test]
    fn after_an_orderly_end_everything_answered_is_there() {
        let mut ledger = Ledger::new(3, 16);
        let (_, bytes) = write(&mut ledger, 0..2, false);
        let refused = ledger.begin(4..5, Change::Data).unwrap();
        let maybe = ledger.payload(refused);
        ledger.refused(refused);
        ledger.ended(true);
        assert!(ledger.anchor(0, &vec![0; 2 * SECTOR], NONE).is_err());
        assert!(ledger.anchor(0, &bytes, NONE).is_ok());
        assert!(ledger.anchor(4, &maybe, NONE).is_ok());
    }

    #[test]
    fn a_chunk_is_wholly_old_or_wholly_new() {
        let mut ledger = Ledger::new(4, 16);
        let (_, old) = write(&mut ledger, 0..8, true);
        let (_, new) = write(&mut ledger, 2..6, false);
        ledger.ended(false);
        let mut mixed = old.clone();
        mixed[2 * SECTOR..4 * SECTOR].copy_from_slice(&new[..2 * SECTOR]);
        assert!(matches!(ledger.anchor(0, &mixed, whole(8)), Err(Wrong::Torn { .. })));
        assert!(ledger.anchor(0, &mixed, whole(4)).is_ok(), "two chunks: one new, one old");
    }

    #[test]
    fn a_durable_discard_hides_what_was_there() {
        let mut ledger = Ledger::new(5, 8);
        let (_, old) = write(&mut ledger, 0..1, true);
        let zeros = ledger.begin(0..1, Change::Zeros).unwrap();
        ledger.answered(zeros, true);
        ledger.ended(false);
        assert!(matches!(ledger.anchor(0, &old, NONE), Err(Wrong::Older { .. })));
        assert!(ledger.anchor(0, &[0; SECTOR], NONE).is_ok());
    }
}
