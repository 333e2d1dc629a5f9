//! What clients of a store ask for: keys by their popularity, and the mixes of YCSB's core workloads (Cooper
//! and others, SoCC 2010).
//!
//! Keys are numbered from 0 in the order in which they are inserted. The same seed gives the same requests on
//! every machine.

use crate::number::float;
use block::{Random as _, XoshiroPlusPlus};
use clap::ValueEnum;
use std::fmt;

/// YCSB's skew.
pub const THETA: f64 = 0.99;
/// Keys that a scan of workload E asks for at most.
pub const SCAN_KEYS_MAX: u32 = 100;

/// Ranks that are drawn with a probability proportional to 1 / (rank + 1)^theta, rank 0 most often (Gray and
/// others, SIGMOD 1994). The first two are exact, all others follow a closed form.
#[derive(Clone, Debug)]
pub struct Zipf {
    items: u64,
    zeta: f64,
    zeta_of_two: f64,
    eta: f64,
}

impl Zipf {
    /// Over so many ranks, at least one.
    pub fn new(items: u64) -> Self {
        let items = items.max(1);
        let term = |rank: u64| float(rank).powf(-THETA);
        let zeta = (1..=items).map(term).sum();
        let zeta_of_two = 1.0 + term(2);
        let eta = (1.0 - (2.0 / float(items)).powf(1.0 - THETA)) / (1.0 - zeta_of_two / zeta);
        Self { items, zeta, zeta_of_two, eta }
    }

    /// The rank for a number that is uniform in 0..1.
    pub fn rank(&self, uniform: f64) -> u64 {
        let scaled = uniform * self.zeta;
        if scaled < 1.0 || self.items == 1 {
            return 0;
        }
        if scaled < self.zeta_of_two || self.items == 2 {
            return 1;
        }
        let spread = (self.eta * uniform - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        whole(float(self.items) * spread).min(self.items - 1)
    }

    /// How probable a rank is.
    #[cfg(test)]
    fn probability(&self, rank: u64) -> f64 {
        float(rank + 1).powf(-THETA) / self.zeta
    }
}

/// The whole part of a number that is not negative and below 2^53.
fn whole(number: f64) -> u64 {
    // Bits of a number between 2^52 and 2^53 are those of its whole part.
    const BIAS: f64 = 4_503_599_627_370_496.0;
    let shifted = number + BIAS;
    let rounded = shifted.to_bits() & ((1 << 52) - 1);
    if float(rounded) > number { rounded - 1 } else { rounded }
}

/// Which keys are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Popularity {
    /// Zipf 0.99, the popular keys spread over all.
    Zipf,
    /// All alike.
    Uniform,
    /// Zipf 0.99 by age: the newest key most often.
    Latest,
}

/// Draws keys.
struct Keys {
    popularity: Popularity,
    zipf: Zipf,
    /// Keys that were there at the beginning.
    first: u64,
    /// Keys that are there.
    count: u64,
    /// Has no factor in common with `first`, so that ranks and keys correspond one to one.
    stride: u64,
}

fn common_factor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Keys {
    fn new(popularity: Popularity, first: u64) -> Self {
        // Near the golden section, so that ranks next to each other are far apart.
        let mut stride = (u128::from(first) * 618_034 / 1_000_000).try_into().unwrap_or(1_u64).max(1);
        while common_factor(stride, first) != 1 {
            stride += 1;
        }
        Self { popularity, zipf: Zipf::new(first), first, count: first, stride }
    }

    fn draw(&self, random: &mut XoshiroPlusPlus) -> u64 {
        match self.popularity {
            Popularity::Uniform => random.below(self.count),
            Popularity::Latest => self.count - 1 - self.zipf.rank(random.unit()).min(self.count - 1),
            Popularity::Zipf => {
                let rank = self.zipf.rank(random.unit());
                let at = u128::from(rank) * u128::from(self.stride) % u128::from(self.first);
                u64::try_from(at).unwrap_or(0)
            }
        }
    }
}

/// What is asked of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// GET.
    Get(u64),
    /// Another value of a key that is there.
    Update(u64),
    /// A new key.
    Insert(u64),
    /// So many keys from where this one would be, with their values.
    Scan(u64, u32),
    /// GET, then UPDATE.
    ReadModifyWrite(u64),
}

/// What a workload asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Workload {
    /// New keys only, as when a store is filled; the first of all in any case.
    Set,
    /// GET only.
    Get,
    /// UPDATE only: the paper's first workload.
    Update,
    /// Half UPDATE, half GET: the paper's hybrid workload.
    Mixed,
    /// YCSB A: half GET, half UPDATE.
    A,
    /// YCSB B: 95 % GET, 5 % UPDATE.
    B,
    /// YCSB C: GET only.
    C,
    /// YCSB D: 95 % GET of the latest keys, 5 % new keys.
    D,
    /// YCSB E: 95 % scans of up to 100 keys with their values, 5 % new keys.
    E,
    /// YCSB F: half GET, half GET and UPDATE of the same key.
    F,
}

impl Workload {
    /// Percent of GET, UPDATE, new keys, scans, and GET with UPDATE.
    fn shares(self) -> [u64; 5] {
        match self {
            Self::Set => [0, 0, 100, 0, 0],
            Self::Get | Self::C => [100, 0, 0, 0, 0],
            Self::Update => [0, 100, 0, 0, 0],
            Self::Mixed | Self::A => [50, 50, 0, 0, 0],
            Self::B => [95, 5, 0, 0, 0],
            Self::D => [95, 0, 5, 0, 0],
            Self::E => [0, 0, 5, 95, 0],
            Self::F => [50, 0, 0, 0, 50],
        }
    }

    /// Whether keys are added.
    pub fn inserts(self) -> bool {
        self.shares()[2] > 0
    }

    /// Whether it scans.
    pub fn scans(self) -> bool {
        self.shares()[3] > 0
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        f.pad(name.as_ref().map_or("", |value| value.get_name()))
    }
}

/// The requests of a workload, without end.
pub struct Requests {
    workload: Workload,
    keys: Keys,
    random: XoshiroPlusPlus,
}

impl Requests {
    /// Over `keys` keys that are there, at least one; YCSB D asks for the latest whatever is chosen.
    pub fn new(workload: Workload, popularity: Popularity, keys: u64, seed: u64) -> Self {
        let popularity = if workload == Workload::D { Popularity::Latest } else { popularity };
        Self { workload, keys: Keys::new(popularity, keys.max(1)), random: XoshiroPlusPlus::new(seed) }
    }

    /// The next one.
    pub fn draw(&mut self) -> Request {
        let [get, update, insert, scan, _] = self.workload.shares();
        let one = self.random.below(100);
        if one < get {
            return Request::Get(self.keys.draw(&mut self.random));
        }
        if one < get + update {
            return Request::Update(self.keys.draw(&mut self.random));
        }
        if one < get + update + insert {
            self.keys.count += 1;
            return Request::Insert(self.keys.count - 1);
        }
        let key = self.keys.draw(&mut self.random);
        if one < get + update + insert + scan {
            return Request::Scan(key, 1 + self.random.below_u32(SCAN_KEYS_MAX));
        }
        Request::ReadModifyWrite(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 400_000;

    fn counts(popularity: Popularity, keys: u64) -> Vec<f64> {
        let mut counts = vec![0_u32; usize::try_from(keys).expect("small")];
        let mut requests = Requests::new(Workload::Get, popularity, keys, 7);
        for _ in 0..DRAWS {
            let Request::Get(key) = requests.draw() else { panic!("this workload only reads") };
            counts[usize::try_from(key).expect("small")] += 1;
        }
        counts.into_iter().map(f64::from).collect()
    }

    /// Pearson's statistic of some counts against probabilities; its mean is one less than there are of them.
    fn chi_square(counts: &[f64], probabilities: &[f64]) -> f64 {
        let expected = |probability: f64| probability * f64::from(DRAWS);
        let pairs = counts.iter().zip(probabilities);
        pairs.map(|(count, p)| (count - expected(*p)).powi(2) / expected(*p)).sum()
    }

    #[test]
    fn uniform_keys_are_all_alike() {
        let counts = counts(Popularity::Uniform, 1000);
        let statistic = chi_square(&counts, &vec![0.001; 1000]);
        // 999 degrees of freedom: a mean of 999, a deviation of 44.7.
        assert!((999.0 - 180.0..999.0 + 180.0).contains(&statistic), "{statistic}");
    }

    #[test]
    fn popular_keys_are_as_popular_as_zipf_says_and_spread() {
        let (keys, zipf) = (1000, Zipf::new(1000));
        let mut sorted = counts(Popularity::Zipf, keys);
        let hottest: Vec<usize> = {
            let mut order: Vec<usize> = (0..sorted.len()).collect();
            order.sort_by(|a, b| sorted[*b].total_cmp(&sorted[*a]));
            order[..4].to_vec()
        };
        let apart = hottest.windows(2).all(|pair| pair[0].abs_diff(pair[1]) > 100);
        assert!(apart, "the hottest keys lie apart: {hottest:?}");
        sorted.sort_by(|a, b| b.total_cmp(a));
        // The two most popular ones are exact.
        for (rank, &count) in (0..2).zip(&sorted) {
            let expected = zipf.probability(rank) * f64::from(DRAWS);
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{rank}: {count}, {expected}");
        }
        // The closed form follows the sum of the others within 3 % of all.
        for head in [10, 100, 500] {
            let drawn: f64 = sorted.iter().take(head).sum::<f64>() / f64::from(DRAWS);
            let wanted: f64 = (0..).take(head).map(|rank| zipf.probability(rank)).sum();
            assert!((drawn - wanted).abs() < 0.03, "{head}: {drawn} {wanted}");
        }
    }

    #[test]
    fn every_rank_is_a_key_of_its_own() {
        for keys in [1, 2, 3, 10, 97, 1000, 1024, 6180] {
            let drawn = Keys::new(Popularity::Zipf, keys);
            let all = (0..keys).map(|rank| rank * drawn.stride % keys);
            assert_eq!(
                all.collect::<std::collections::HashSet<_>>().len(),
                usize::try_from(keys).unwrap_or(0)
            );
        }
    }

    #[test]
    fn the_latest_key_is_asked_for_most_also_when_others_come() {
        let mut requests = Requests::new(Workload::D, Popularity::Uniform, 1000, 3);
        let (mut newest, mut inserted, mut of_newest, mut reads) = (999, 0_u32, 0_u32, 0_u32);
        for _ in 0..DRAWS {
            match requests.draw() {
                Request::Insert(key) => {
                    assert_eq!(key, newest + 1);
                    (newest, inserted) = (key, inserted + 1);
                }
                Request::Get(key) => {
                    assert!(key <= newest);
                    (reads, of_newest) = (reads + 1, of_newest + u32::from(key == newest));
                }
                other @ (Request::Update(_) | Request::Scan(..) | Request::ReadModifyWrite(_)) => {
                    panic!("{other:?} is no part of D")
                }
            }
        }
        assert!((0.048..0.052).contains(&(f64::from(inserted) / f64::from(DRAWS))), "{inserted}");
        let wanted = Zipf::new(1000).probability(0);
        let found = f64::from(of_newest) / f64::from(reads);
        assert!((found - wanted).abs() < 0.01, "{found} {wanted}");
    }

    #[test]
    fn mixes_have_the_shares_that_ycsb_publishes() {
        for workload in Workload::value_variants() {
            let mut requests = Requests::new(*workload, Popularity::Zipf, 500, 11);
            let mut found = [0_u32; 5];
            let mut scanned = 0_u32;
            for _ in 0..100_000 {
                let kind = match requests.draw() {
                    Request::Get(_) => 0,
                    Request::Update(_) => 1,
                    Request::Insert(_) => 2,
                    Request::Scan(_, keys) => {
                        assert!((1..=SCAN_KEYS_MAX).contains(&keys));
                        scanned += keys;
                        3
                    }
                    Request::ReadModifyWrite(_) => 4,
                };
                found[kind] += 1;
            }
            assert_eq!(workload.shares().iter().sum::<u64>(), 100);
            for (count, share) in found.iter().zip(workload.shares()) {
                let off = f64::from(*count) / 1000.0 - float(share);
                assert!(off.abs() < 0.7, "{workload}: {found:?}");
            }
            if workload.scans() {
                let mean = f64::from(scanned) / f64::from(found[3]);
                assert!((49.5..51.5).contains(&mean), "{mean}");
            }
        }
    }

    /// Published figures depend on what a seed draws.
    #[test]
    fn a_seed_draws_what_it_always_drew() {
        let mut requests = Requests::new(Workload::A, Popularity::Zipf, 1000, 1);
        let drawn: Vec<Request> = (0..6).map(|_| requests.draw()).collect();
        let again: Vec<Request> = {
            let mut requests = Requests::new(Workload::A, Popularity::Zipf, 1000, 1);
            (0..6).map(|_| requests.draw()).collect()
        };
        assert_eq!(drawn, again);
        assert_eq!(drawn, FIRST_OF_SEED_1, "{drawn:?}");
    }

    const FIRST_OF_SEED_1: [Request; 6] = [
        Request::Update(612),
        Request::Get(993),
        Request::Get(236),
        Request::Update(94),
        Request::Get(619),
        Request::Update(714),
    ];

    #[test]
    fn whole_parts_are_exact() {
        for number in [0.0, 0.49, 0.5, 0.999, 1.0, 1.5, 2.5, 1e6 - 0.25, 1e15] {
            assert_eq!(float(whole(number)), number.floor(), "{number}");
        }
    }
}
