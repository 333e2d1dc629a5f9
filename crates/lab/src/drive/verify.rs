//! What every sector must hold: payload that says where it belongs and which write it is of, and the map to
//! check it by.
//!
//! A sector's 512 bytes are its offset, the number of the write, the seed, and numbers that follow from
//! these. The map is deliberately simple: the number of the latest write of each sector.

use block::SECTOR_BYTES;

/// Words of a sector.
const WORDS: usize = SECTOR_BYTES as usize / 8;
/// Nothing is known of the sector.
const UNKNOWN: u32 = 0;
/// The sector reads as zeros.
const ZEROS: u32 = u32::MAX;

/// What a volume holds before the first write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Initially {
    /// Zeros: the array is new.
    Zeros,
    /// Anything.
    Unknown,
}

/// A sector that does not hold what it should.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// Where.
    pub offset_bytes: u64,
    /// The number of the write that it should be of; `None` for zeros.
    pub expected: Option<u64>,
    /// The offset that the sector's content names.
    pub found_offset: u64,
    /// The number of the write that it names.
    pub found: u64,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "byte {}: expected ", self.offset_bytes)?;
        match self.expected {
            Some(version) => write!(f, "write {version}")?,
            None => write!(f, "zeros")?,
        }
        write!(f, ", found a sector that names byte {} and write {}", self.found_offset, self.found)
    }
}

/// Counts of what was checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checked {
    /// Sectors compared.
    pub sectors: u64,
    /// Sectors read of which nothing is known.
    pub unknown: u64,
    /// Sectors that differed.
    pub mismatches: u64,
    /// The first of them.
    pub first: Option<Mismatch>,
}

/// See the module's documentation.
pub struct Verifier {
    seed: u64,
    versions: Vec<u32>,
    latest: u32,
    checked: Checked,
}

impl Verifier {
    /// For the first `volume_bytes` of a volume.
    pub fn new(volume_bytes: u64, seed: u64, initially: Initially) -> Self {
        let version = match initially {
            Initially::Zeros => ZEROS,
            Initially::Unknown => UNKNOWN,
        };
        let sectors = usize::try_from(volume_bytes / SECTOR_BYTES).unwrap_or(usize::MAX);
        Self { seed, versions: vec![version; sectors], latest: 0, checked: Checked::default() }
    }

    fn sectors(&mut self, offset_bytes: u64, length_bytes: u64) -> &mut [u32] {
        // Ranges lie within the volume that the map was made for.
        let first = (offset_bytes / SECTOR_BYTES) as usize;
        &mut self.versions[first..first + (length_bytes / SECTOR_BYTES) as usize]
    }

    /// A write of this range begins: its number.
    pub fn begin_write(&mut self, offset_bytes: u64, length_bytes: u64) -> u32 {
        // Numbers start again before they would mean something else; by then every old one is long
        // overwritten or the check of it is the weaker by one chance in four billion.
        self.latest = if self.latest == ZEROS - 1 { 1 } else { self.latest + 1 };
        let version = self.latest;
        self.sectors(offset_bytes, length_bytes).fill(version);
        version
    }

    /// The range is given back. It reads as zeros from now on, if the target promises that.
    pub fn trim(&mut self, offset_bytes: u64, length_bytes: u64, promised: Initially) {
        let version = match promised {
            Initially::Zeros => ZEROS,
            Initially::Unknown => UNKNOWN,
        };
        self.sectors(offset_bytes, length_bytes).fill(version);
    }

    /// Writes the payload of `bytes` at `offset_bytes`.
    pub fn payload(seed: u64, version: u32, offset_bytes: u64, bytes: &mut [u8]) {
        let (sectors, _) = bytes.as_chunks_mut::<{ SECTOR_BYTES as usize }>();
        for (sector, index) in sectors.iter_mut().zip(offset_bytes / SECTOR_BYTES..) {
            for (word, value) in sector.as_chunks_mut::<8>().0.iter_mut().zip(words(seed, version, index)) {
                *word = value.to_le_bytes();
            }
        }
    }

    /// The seed of the payload.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Compares what was read.
    pub fn check(&mut self, offset_bytes: u64, bytes: &[u8]) {
        let (sectors, _) = bytes.as_chunks::<{ SECTOR_BYTES as usize }>();
        for (sector, index) in sectors.iter().zip(offset_bytes / SECTOR_BYTES..) {
            let version = self.versions[index as usize];
            let (words_found, _) = sector.as_chunks::<8>();
            let good = match version {
                UNKNOWN => {
                    self.checked.unknown += 1;
                    continue;
                }
                ZEROS => sector.iter().all(|&byte| byte == 0),
                version => words_found
                    .iter()
                    .zip(words(self.seed, version, index))
                    .all(|(f, w)| *f == w.to_le_bytes()),
            };
            self.checked.sectors += 1;
            if !good {
                self.checked.mismatches += 1;
                self.checked.first = self.checked.first.or(Some(Mismatch {
                    offset_bytes: index * SECTOR_BYTES,
                    expected: (version != ZEROS).then_some(u64::from(version)),
                    found_offset: u64::from_le_bytes(words_found[0]),
                    found: u64::from_le_bytes(words_found[1]),
                }));
            }
        }
    }

    /// Whether something is known of any sector of the range.
    pub fn knows(&mut self, offset_bytes: u64, length_bytes: u64) -> bool {
        self.sectors(offset_bytes, length_bytes).iter().any(|&version| version != UNKNOWN)
    }

    /// What was checked so far.
    pub fn checked(&self) -> Checked {
        self.checked
    }

    /// Bytes that the map covers.
    pub fn covered_bytes(&self) -> u64 {
        self.versions.len() as u64 * SECTOR_BYTES
    }
}

/// The words of a sector.
fn words(seed: u64, version: u32, sector: u64) -> impl Iterator<Item = u64> {
    let head = [sector * SECTOR_BYTES, u64::from(version), seed];
    let mut state = head.iter().fold(0x9e37_79b9_7f4a_7c15u64, |state, &word| {
        (state ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(29)
    });
    let tail = std::iter::repeat_with(move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state
    });
    head.into_iter().chain(tail).take(WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(seed: u64, version: u32, offset: u64) -> Vec<u8> {
        let mut bytes = vec![0; 1024];
        Verifier::payload(seed, version, offset, &mut bytes);
        bytes
    }

    #[test]
    fn every_wrong_sector_is_seen() {
        let mut verifier = Verifier::new(1 << 20, 7, Initially::Zeros);
        verifier.check(0, &[0; 4096]);
        assert_eq!((verifier.checked().sectors, verifier.checked().mismatches), (8, 0));
        let version = verifier.begin_write(8192, 1024);
        assert_eq!(version, 1);
        verifier.check(8192, &written(7, 1, 8192));
        assert_eq!((verifier.checked().sectors, verifier.checked().mismatches), (10, 0));
        // Another write, another place, another run, zeros, one flipped bit.
        let mut flipped = written(7, 1, 8192);
        flipped[1023] ^= 1;
        let wrong = [written(7, 2, 8192), written(7, 1, 4096), written(8, 1, 8192), vec![0; 1024], flipped];
        for (bytes, expected) in wrong.iter().zip([2, 2, 2, 2, 1]) {
            let before = verifier.checked().mismatches;
            verifier.check(8192, bytes);
            assert_eq!(verifier.checked().mismatches - before, expected);
        }
        let first = verifier.checked().first.expect("there were mismatches");
        assert_eq!((first.offset_bytes, first.expected, first.found), (8192, Some(1), 2));
    }

    #[test]
    fn what_is_unknown_is_not_compared() {
        let mut verifier = Verifier::new(8192, 1, Initially::Unknown);
        verifier.check(0, &[9; 4096]);
        assert_eq!(verifier.checked(), Checked { unknown: 8, ..Checked::default() });
        assert!(!verifier.knows(0, 8192));
        verifier.trim(0, 512, Initially::Zeros);
        assert!(verifier.knows(0, 8192));
        verifier.check(0, &[9; 512]);
        assert_eq!(verifier.checked().mismatches, 1);
    }
}
