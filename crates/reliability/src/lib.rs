//! How likely an array loses data, and how much: closed forms, a Markov chain and Monte Carlo of one model.
//!
//! - [`Model`] says what fails, how often, and what repairs it. Times are in years, sizes in bytes.
//! - [`closed`] has the WAS paper's closed forms (W-44, W-45), exact for what they cover.
//! - [`Chain`] is the model with constant rates, solved without subtraction, so that small probabilities keep
//!   all their digits.
//! - [`simulate`] also knows ageing, wear, repairs that take a fixed time, and how far a rebuild was. It
//!   follows what is rare on purpose and weighs it, so that 10^-9 costs no more than 10^-2.
//!
//! Nothing here knows the engine: what is wrong there cannot hide itself here.
#![forbid(unsafe_code)]

mod carlo;
mod chain;
pub mod closed;
mod error;
mod lifetime;
mod markov;
mod model;

pub use carlo::{Estimate, Outcome, Plan, simulate, simulate_while};
pub use chain::Chain;
pub use error::Error;
pub use lifetime::{Lifetime, Wear};
pub use markov::{Answer, solve};
pub use model::{
    CAUSES, Cause, Correlation, Exposure, Geometry, Latent, Model, Repair, RepairOrder, RepairTime,
};

/// Hours of a year of 365.25 days.
pub const HOURS_PER_YEAR: f64 = 8766.0;
