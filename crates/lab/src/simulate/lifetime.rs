//! How long the SSDs last at the rate of a trace: rated erases by those of a run.

use super::outcome::Outcome;
use crate::number::float;
use serde_json::{Value, json};

const YEAR_SECONDS: f64 = 365.25 * 86_400.0;

/// Years of the most worn SSD.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Lifetime {
    /// Erases of its mean block in the run, as wear levelling would have it.
    pub erases_per_block: f64,
    /// The time that these take: of the trace, or virtual if it has no times.
    pub seconds: f64,
    /// None if nothing was erased.
    pub years: Option<f64>,
}

impl Outcome {
    /// Years at the trace's rate, if the SSDs are rated.
    pub fn lifetime(&self) -> Option<Lifetime> {
        let rating = self.rating?;
        let most = self.spread(&self.run, |counters| counters.erases).max;
        let erases_per_block = most / f64::from(rating.blocks.max(1));
        let seconds = rating.trace_us.map_or(float(self.run.virtual_ns) / 1e9, |us| float(us) / 1e6);
        let years = (erases_per_block > 0.0)
            .then(|| f64::from(rating.erases) / erases_per_block * seconds / YEAR_SECONDS);
        Some(Lifetime { erases_per_block, seconds, years })
    }

    /// As JSON; `docs/simulate.md` lists the keys.
    pub fn lifetime_json(&self) -> Value {
        self.lifetime().zip(self.rating).map_or(Value::Null, |(lifetime, rating)| {
            json!({
                "rated_erases": rating.erases,
                "erases_per_block": lifetime.erases_per_block,
                "seconds": lifetime.seconds,
                "is_of_trace": rating.trace_us.is_some(),
                "years": lifetime.years,
            })
        })
    }

    /// A line for people; empty if there is nothing to say.
    pub fn lifetime_line(&self) -> String {
        let Some((lifetime, rating)) = self.lifetime().zip(self.rating) else {
            return String::new();
        };
        lifetime.years.map_or(String::new(), |years| {
            format!(
                "lifetime   {years:.2} years at this rate, with {} erases per block ({:.4} in {:.0} s)\n",
                rating.erases, lifetime.erases_per_block, lifetime.seconds
            )
        })
    }
}
