//! The seam between workload-aware placement and the identification of hot data.

use crate::OptionError;
use crate::error::within;
use block::Lcn;

/// How hot a chunk is: 0 is the coldest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Tier(u8);

impl Tier {
    /// The verdict COLD of WAS, Algorithm 1.
    pub const COLD: Self = Self(0);

    /// Wraps a raw number.
    pub const fn new(raw: u8) -> Self {
        Self(raw)
    }

    /// The raw number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// Tells hot chunks from cold ones by the writes it sees.
pub trait Hotness: Send {
    /// How many tiers it tells apart, 2 to 4.
    fn tiers(&self) -> u8;

    /// A user writes `lcn`; `now` is the number of user chunk writes before this one. Answers how hot the
    /// chunk is.
    fn identify(&mut self, lcn: Lcn, now: u64) -> Tier;

    /// Memory held, in bytes, this value included.
    fn memory_bytes(&self) -> usize;
}

/// An identifier that is only known when the program runs.
impl<H: Hotness + ?Sized> Hotness for Box<H> {
    fn tiers(&self) -> u8 {
        (**self).tiers()
    }

    fn identify(&mut self, lcn: Lcn, now: u64) -> Tier {
        (**self).identify(lcn, now)
    }

    fn memory_bytes(&self) -> usize {
        (**self).memory_bytes()
    }
}

/// Write counts from which on a chunk belongs to the next hotter tier: one to three, ascending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thresholds {
    values: [u8; 3],
    count: u8,
}

impl Thresholds {
    /// The highest count that a 4-bit counter holds (W-02).
    pub const COUNT_MAX: u8 = 15;

    /// Checks the values: one to three, each 1 to 15, ascending.
    pub fn new(values: &[u8]) -> Result<Self, OptionError> {
        within("number of hotness thresholds", values.len() as u64, 1, 3)?;
        let mut stored = [u8::MAX; 3];
        for (slot, &value) in stored.iter_mut().zip(values) {
            within("hotness threshold", u64::from(value), 1, u64::from(Self::COUNT_MAX))?;
            *slot = value;
        }
        match values.windows(2).find(|pair| pair[0] >= pair[1]) {
            Some(pair) => Err(OptionError::NotAscending { lower: pair[0], upper: pair[1] }),
            None => Ok(Self { values: stored, count: u8::try_from(values.len()).expect("at most 3") }),
        }
    }

    /// 2 for two groups as WAS evaluates it (section V-B); 2/4 and 2/4/8 for three and four, which the paper
    /// leaves open.
    pub fn for_groups(groups: u64) -> Result<Self, OptionError> {
        let count = within("groups", groups, 2, 4)? - 1;
        Self::new(&[2, 4, 8][..usize::try_from(count).expect("at most 3")])
    }

    /// The values.
    pub fn values(&self) -> &[u8] {
        &self.values[..usize::from(self.count)]
    }

    /// Tiers told apart: one more than there are thresholds.
    pub fn tiers(&self) -> u8 {
        self.count + 1
    }

    /// The tier of a chunk that was written `count` times: the number of thresholds reached.
    pub fn tier_of(&self, count: u8) -> Tier {
        let reached = self.values().iter().filter(|&&value| count >= value).count();
        Tier(u8::try_from(reached).expect("at most 3"))
    }
}
