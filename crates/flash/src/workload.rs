//! Random pages to write: uniform, or Zipf with the popular pages scattered.

use crate::error::{ConfigError, within};
use crate::random::Random;

/// How the host chooses the page to write.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pattern {
    /// All pages alike.
    Uniform,
    /// The page of rank r with a probability in proportion to r^-theta; ranks are scattered over the pages.
    Zipf(f64),
}

/// Pages drawn from a seed.
#[derive(Clone, Debug)]
pub struct Workload {
    pages: u32,
    random: Random,
    /// For Zipf: Walker's alias method. A draw takes a column at random, and in it either the column's own
    /// page or the other one.
    columns: Vec<Column>,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    /// In 1/2^32: below this the column's own page.
    own: u32,
    other: u32,
}

impl Workload {
    /// Draws from `pages` pages.
    pub fn new(pattern: Pattern, pages: u64, seed: u64) -> Result<Self, ConfigError> {
        within("pages of the workload", pages, 1, u64::from(u32::MAX))?;
        let pages = pages as u32; // just checked
        let mut random = Random::new(seed);
        let columns = match pattern {
            Pattern::Uniform => Vec::new(),
            Pattern::Zipf(theta) if (0.0..=5.0).contains(&theta) => {
                alias(scattered_weights(pages, theta, &mut random))
            }
            Pattern::Zipf(theta) => return Err(ConfigError::new("theta of zipf", theta, "0 to 5")),
        };
        Ok(Self { pages, random, columns })
    }

    /// The next page.
    #[inline]
    pub fn draw(&mut self) -> u32 {
        let bits = self.random.bits();
        let place = ((u128::from(bits) * u128::from(self.pages)) >> 64) as u32; // below pages
        if self.columns.is_empty() {
            return place;
        }
        // The low bits hardly influence the place.
        let Column { own, other } = self.columns[place as usize];
        if (bits as u32) < own { place } else { other }
    }
}

/// Probability of each page, times the number of pages.
fn scattered_weights(pages: u32, theta: f64, random: &mut Random) -> Vec<f64> {
    let mut weights: Vec<f64> = (1..=pages).map(|rank| f64::from(rank).powf(-theta)).collect();
    let scale = f64::from(pages) / weights.iter().sum::<f64>();
    weights.iter_mut().for_each(|weight| *weight *= scale);
    for place in (1..pages).rev() {
        weights.swap(place as usize, random.below(place + 1) as usize);
    }
    weights
}

/// Walker's columns (Vose, "A linear algorithm for generating random numbers with a
/// given distribution", 1991).
fn alias(mut weights: Vec<f64>) -> Vec<Column> {
    let count = weights.len() as u32;
    let mut columns: Vec<Column> = (0..count).map(|other| Column { own: u32::MAX, other }).collect();
    let (mut small, mut large): (Vec<u32>, Vec<u32>) = (0..count).partition(|&i| weights[i as usize] < 1.0);
    while let (Some(&little), Some(&much)) = (small.last(), large.last()) {
        small.pop();
        let own = weights[little as usize];
        columns[little as usize] = Column { own: (own * 4_294_967_296.0) as u32, other: much };
        weights[much as usize] -= 1.0 - own;
        if weights[much as usize] < 1.0 {
            large.pop();
            small.push(much);
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pattern: Pattern, pages: u64, draws: u32) -> Vec<f64> {
        let mut workload = Workload::new(pattern, pages, 5).expect("valid");
        let mut counts = vec![0.0; pages as usize];
        (0..draws).for_each(|_| counts[workload.draw() as usize] += 1.0);
        counts.sort_by(|a: &f64, b| b.total_cmp(a));
        counts
    }

    #[test]
    fn zipf_and_uniform_follow_their_laws() {
        let draws = 1_000_000;
        let norm: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-0.99)).sum();
        let zipf = counts(Pattern::Zipf(0.99), 1000, draws);
        for rank in [1u32, 2, 5, 20] {
            let expected = f64::from(draws) * f64::from(rank).powf(-0.99) / norm;
            let found = zipf[rank as usize - 1];
            assert!((found - expected).abs() < 5.0 * expected.sqrt(), "rank {rank}: {found}, not {expected}");
        }
        let uniform = counts(Pattern::Uniform, 10, draws);
        assert!(uniform.iter().all(|&count| (count - 1e5).abs() < 1500.0), "{uniform:?}");
        let flat = counts(Pattern::Zipf(0.0), 10, draws);
        assert!(flat.iter().all(|&count| (count - 1e5).abs() < 1500.0), "{flat:?}");
    }

    #[test]
    fn popular_pages_are_scattered() {
        let workload = Workload::new(Pattern::Zipf(1.0), 1 << 16, 9).expect("valid");
        let hottest = workload.columns.iter().filter(|column| column.own == u32::MAX).count();
        assert!(hottest > 0);
        assert!(Workload::new(Pattern::Zipf(f64::NAN), 10, 1).is_err());
        assert!(Workload::new(Pattern::Uniform, 0, 1).is_err());
    }
}
