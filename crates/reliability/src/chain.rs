//! A Markov chain with losses, solved without a subtraction: LU factorisation loses all digits where repairs
//! are 10^4 times as fast as failures and several are borne; elimination by sums (Grassmann, Taksar, Heyman
//! 1985) keeps them, and so do squares of matrices without negative entries.

/// States, of which the first is where it begins, losses that end it, and gains that are summed up on the
/// way.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Rates from state to state.
    moves: Vec<Vec<f64>>,
    /// Rates from states to losses.
    losses: Vec<Vec<f64>>,
    /// What is gained per unit of time in a state.
    gains: Vec<Vec<f64>>,
}

impl Chain {
    /// A chain without moves.
    pub fn new(states: usize, losses: usize, gains: usize) -> Self {
        Self {
            moves: vec![vec![0.0; states]; states],
            losses: vec![vec![0.0; losses]; states],
            gains: vec![vec![0.0; gains]; states],
        }
    }

    /// Adds a rate from a state to another.
    pub fn add_move(&mut self, from: usize, to: usize, rate: f64) {
        if from != to {
            self.moves[from][to] += rate;
        }
    }

    /// Adds a rate from a state to a loss.
    pub fn add_loss(&mut self, from: usize, loss: usize, rate: f64) {
        self.losses[from][loss] += rate;
    }

    /// Adds a gain per unit of time.
    pub fn add_gain(&mut self, state: usize, gain: usize, amount: f64) {
        self.gains[state][gain] += amount;
    }

    /// The mean time until a loss; infinite if there is no way to one.
    pub fn mean_time_to_loss(&self) -> f64 {
        let mut moves = self.moves.clone();
        let mut lost: Vec<f64> = self.losses.iter().map(|rates| rates.iter().sum()).collect();
        let mut spent = vec![1.0; moves.len()];
        for last in (1..moves.len()).rev() {
            let (before, rest) = moves.split_at_mut(last);
            let row = &rest[0];
            let out: f64 = row[..last].iter().sum::<f64>() + lost[last];
            if out == 0.0 {
                continue; // nothing leads on from here; if nothing leads here either, it does not matter
            }
            for (state, rates) in before.iter_mut().enumerate() {
                let share = rates[last] / out;
                if share == 0.0 {
                    continue;
                }
                spent[state] += share * spent[last];
                lost[state] += share * lost[last];
                for (to, rate) in row[..last].iter().enumerate() {
                    if to != state {
                        rates[to] += share * rate;
                    }
                }
            }
        }
        spent[0] / lost[0]
    }

    /// After some time from the first state on: the probability of each loss, then the sum of each gain.
    pub fn after(&self, time: f64) -> Vec<f64> {
        let (states, losses) = (self.moves.len(), self.losses.first().map_or(0, Vec::len));
        let gains = self.gains.first().map_or(0, Vec::len);
        let out = |state: usize| -> f64 {
            self.moves[state].iter().sum::<f64>() + self.losses[state].iter().sum::<f64>()
        };
        let fastest = (0..states).map(out).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        // The step's product with the fastest rate is at most 1.
        let mut halvings = 0;
        let mut step = time;
        while step * fastest > 1.0 {
            step /= 2.0;
            halvings += 1;
        }
        let size = states + losses + gains;
        let mut jump = identity(size);
        for (state, row) in jump.iter_mut().enumerate().take(states) {
            for (to, rate) in self.moves[state].iter().enumerate() {
                row[to] = rate / fastest;
            }
            for (loss, rate) in self.losses[state].iter().enumerate() {
                row[states + loss] = rate / fastest;
            }
            for (gain, amount) in self.gains[state].iter().enumerate() {
                row[states + losses + gain] = amount / fastest;
            }
            row[state] = (1.0 - out(state) / fastest).max(0.0);
        }
        let mut reached = jumps(&jump, step * fastest);
        for _ in 0..halvings {
            reached = product(&reached, &reached);
            // What has ended stays so; rounding must not take a part of it away each time.
            (states..size).for_each(|end| reached[end][end] = 1.0);
        }
        reached.first().map_or_else(Vec::new, |row| row[states..].to_vec())
    }
}

fn identity(size: usize) -> Vec<Vec<f64>> {
    let mut matrix = vec![vec![0.0; size]; size];
    (0..size).for_each(|i| matrix[i][i] = 1.0);
    matrix
}

fn product(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut result = vec![vec![0.0; b.len()]; a.len()];
    for (row, into) in a.iter().zip(&mut result) {
        for (factor, other) in row.iter().zip(b).filter(|(factor, _)| **factor != 0.0) {
            into.iter_mut().zip(other).for_each(|(sum, value)| *sum += factor * value);
        }
    }
    result
}

/// The sum over all numbers of jumps, each with its probability when `mean` are expected (Jensen's method).
fn jumps(jump: &[Vec<f64>], mean: f64) -> Vec<Vec<f64>> {
    let size = jump.len();
    let mut sum = vec![vec![0.0; size]; size];
    let mut power = identity(size);
    let mut probability = (-mean).exp();
    for count in 1..=30_u32 {
        for (into, row) in sum.iter_mut().zip(&power) {
            into.iter_mut().zip(row).for_each(|(sum, value)| *sum += probability * value);
        }
        power = product(&power, jump);
        probability *= mean / f64::from(count);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Failures of n devices one by one, one repair at a time.
    fn birth_and_death(devices: u32, parity: u32, failure: f64, repair: f64) -> Chain {
        let states = usize::try_from(parity).expect("small") + 1;
        let mut chain = Chain::new(states, 1, 1);
        for failed in 0..states {
            let left = f64::from(devices) - f64::from(u32::try_from(failed).expect("small"));
            if failed + 1 < states {
                chain.add_move(failed, failed + 1, left * failure);
            } else {
                chain.add_loss(failed, 0, left * failure);
            }
            if failed > 0 {
                chain.add_move(failed, failed - 1, repair);
            }
            chain.add_gain(failed, 0, 1.0);
        }
        chain
    }

    /// Exact fractions, computed with whole numbers of any length: failures 1e-6, repairs 0.1 per hour.
    #[test]
    fn means_are_right_to_all_digits() {
        let wanted = [
            (5, 1, 5.000_45e9),
            (8, 2, 2.976_607_186_309_524e13),
            (11, 3, 1.262_866_195_711_341e17),
            (14, 4, 4.163_503_343_351_919e20),
        ];
        for (devices, parity, hours) in wanted {
            let found = birth_and_death(devices, parity, 1e-6, 0.1).mean_time_to_loss();
            assert!((found / hours - 1.0).abs() < 1e-13, "{devices} {parity}: {found:e} {hours:e}");
        }
    }

    /// The two-state chain has a closed form for every moment.
    #[test]
    fn probabilities_are_right_at_any_time() {
        let (n, failure, repair) = (8.0, 0.25, 1e4);
        let chain = birth_and_death(8, 1, failure, repair);
        // The roots of s^2 + (a + b + mu) s + a b, the small one without cancellation.
        let (a, b) = (n * failure, (n - 1.0) * failure);
        let sum: f64 = a + b + repair;
        let fast = -(sum + (sum * sum - 4.0 * a * b).sqrt()) / 2.0;
        let slow = a * b / fast;
        for time in [1e-5, 1e-3, 1.0, 10.0, 1e3, 1e5] {
            let (s, f): (f64, f64) = ((slow * time).exp_m1(), (fast * time).exp_m1());
            let wanted = -(fast * s - slow * f) / (fast - slow);
            let found = chain.after(time)[0];
            let allowed = if time < 1e-4 { 1e-3 } else { 1e-9 };
            assert!((found / wanted - 1.0).abs() < allowed, "{time}: {found:e} {wanted:e}");
        }
    }

    /// The time spent before a loss, summed up over a long time, is the mean time to loss.
    #[test]
    fn gains_are_integrals() {
        let chain = birth_and_death(6, 2, 1.0, 5.0);
        let mean = chain.mean_time_to_loss();
        assert!((chain.after(mean * 60.0)[1] / mean - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_cannot_be_lost_never_is() {
        let mut chain = Chain::new(2, 1, 0);
        chain.add_move(0, 1, 1.0);
        chain.add_move(1, 0, 1.0);
        assert!(chain.mean_time_to_loss().is_infinite());
        assert_eq!(chain.after(100.0), [0.0]);
    }
}
