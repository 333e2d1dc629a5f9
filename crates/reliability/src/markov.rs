//! The model with constant rates as a Markov chain. A state is how many data devices and how many log devices
//! are out of service.

use crate::chain::Chain;
use crate::error::Error;
use crate::model::{CAUSES, Cause, Model, RepairOrder};

/// What the chain says.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// Mean time until data is lost, in years; infinite if nothing can be.
    pub mean_time_to_loss: f64,
    /// Probability of a loss within the time looked at.
    pub loss: f64,
    /// Probability that the first loss is of this cause.
    pub by_cause: [f64; 3],
    /// Bytes of users expected to be lost within the time, per usable byte. More than that cannot be: as if
    /// nothing of a failed device had been rebuilt yet.
    pub lost_share_at_most: f64,
}

/// Solves the model.
///
/// # Errors
/// The first parameter out of its range.
///
/// None if it is no Markov chain: devices that age or wear out, latent errors that are never scrubbed.
/// Repairs are taken as exponentially distributed with their mean.
pub fn solve(model: &Model) -> Result<Option<Answer>, Error> {
    model.check()?;
    if !model.device.is_constant() || (model.latent.rate > 0.0 && model.latent.scrub.is_none()) {
        return Ok(None);
    }
    let first = build(model, Partial::Ends);
    let by_cause: Vec<f64> = first.after(model.years);
    let by_cause = [0, 1, 2].map(|cause| by_cause.get(cause).copied().unwrap_or_default());
    let lost = build(model, Partial::GoesOn).after(model.years);
    let lost_bytes: f64 = lost.iter().skip(CAUSES.len()).sum();
    Ok(Some(Answer {
        mean_time_to_loss: first.mean_time_to_loss(),
        loss: by_cause.iter().sum::<f64>().min(1.0),
        by_cause,
        lost_share_at_most: lost_bytes / model.usable(),
    }))
}

/// Whether the array ends with a loss that is not of whole devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Partial {
    /// For the probability of any loss.
    Ends,
    /// For how much is lost.
    GoesOn,
}

struct Builder<'a> {
    model: &'a Model,
    partial: Partial,
    chain: Chain,
}

fn build(model: &Model, partial: Partial) -> Chain {
    let geometry = model.geometry;
    let states = place(model, geometry.parity, geometry.logs) + 1;
    let chain = Chain::new(states, CAUSES.len(), CAUSES.len());
    let mut builder = Builder { model, partial, chain };
    for failed in 0..=geometry.parity {
        for logs_failed in 0..=geometry.logs {
            builder.state(failed, logs_failed);
        }
    }
    builder.chain
}

/// The number of a state.
fn place(model: &Model, failed: u32, logs_failed: u32) -> usize {
    let number = failed * (model.geometry.logs + 1) + logs_failed;
    usize::try_from(number).expect("a few hundred states at most")
}

impl Builder<'_> {
    fn state(&mut self, failed: u32, logs_failed: u32) {
        let model = self.model;
        let (geometry, repair) = (model.geometry, &model.repair);
        let up = geometry.devices().saturating_sub(failed);
        let from = place(model, failed, logs_failed);
        let rate = f64::from(up) * model.device.rate * model.factor(failed);
        self.arrive((failed, logs_failed), (failed + 1, logs_failed), rate);
        let log_rate = f64::from(geometry.logs - logs_failed) * model.log_rate;
        if logs_failed < geometry.logs {
            self.arrive((failed, logs_failed), (failed, logs_failed + 1), log_rate);
        }
        if model.correlation.shock_rate > 0.0 {
            for hit in 1..=up {
                let rate = model.correlation.shock_rate * model.shock(up, hit);
                self.arrive((failed, logs_failed), (failed + hit, logs_failed), rate);
            }
        }
        let repairs = |count: u32, mean: f64| match repair.order {
            RepairOrder::OneByOne => 1.0 / mean,
            RepairOrder::AllAtOnce => f64::from(count) / mean,
        };
        if failed > 0 {
            self.chain.add_move(from, place(model, failed - 1, logs_failed), repairs(failed, repair.mean));
        }
        if logs_failed > 0 {
            let rate = repairs(logs_failed, repair.log_mean);
            self.chain.add_move(from, place(model, failed, logs_failed - 1), rate);
        }
        // What becomes unreadable while nothing is there to mend it with.
        if failed == geometry.parity {
            self.lose(from, Cause::Sectors, f64::from(up) * model.latent.rate, model.chunk);
        }
    }

    /// A move to a state with more out of service, and what may be lost on the way.
    fn arrive(&mut self, from: (u32, u32), to: (u32, u32), rate: f64) {
        let model = self.model;
        let state = place(model, from.0, from.1);
        if to.0 > model.geometry.parity {
            let lost = f64::from(to.0.min(model.geometry.devices())) * model.user_bytes_per_device();
            self.chain.add_loss(state, cause_index(Cause::Devices), rate);
            self.chain.add_gain(state, cause_index(Cause::Devices), rate * lost);
            return;
        }
        let mut rate_left = rate;
        if to.0 == model.geometry.parity && to.0 > from.0 {
            let (probability, count) = latent(model, model.geometry.devices() - to.0);
            self.part(state, Cause::Sectors, rate, rate_left * probability, count * model.chunk);
            rate_left = self.after(rate_left, probability);
        }
        if model.is_exposed(to.0, to.1) && !model.is_exposed(from.0, from.1) {
            let share = model.exposure.share;
            self.part(state, Cause::Uncommitted, rate, rate_left * share, share * model.exposure.bytes);
            rate_left = self.after(rate_left, share);
        }
        self.chain.add_move(state, place(model, to.0, to.1), rate_left);
    }

    /// What goes on where something was lost with this probability.
    fn after(&self, rate: f64, probability: f64) -> f64 {
        match self.partial {
            Partial::Ends => rate * (1.0 - probability),
            Partial::GoesOn => rate,
        }
    }

    /// A part of a move that is a loss; `bytes` are expected of every such move.
    fn part(&mut self, from: usize, cause: Cause, rate: f64, rate_of_losses: f64, bytes: f64) {
        match self.partial {
            Partial::Ends => self.chain.add_loss(from, cause_index(cause), rate_of_losses),
            Partial::GoesOn => self.chain.add_gain(from, cause_index(cause), rate * bytes),
        }
    }

    fn lose(&mut self, from: usize, cause: Cause, rate: f64, bytes: f64) {
        self.part(from, cause, rate, rate, bytes);
    }
}

/// The place of a cause in arrays.
pub(crate) fn cause_index(cause: Cause) -> usize {
    match cause {
        Cause::Devices => 0,
        Cause::Sectors => 1,
        Cause::Uncommitted => 2,
    }
}

/// The probability that so many devices have an unreadable place at any one moment between two scrubs, and
/// how many such places are expected. A scrub mends all devices at once.
fn latent(model: &Model, devices: u32) -> (f64, f64) {
    let devices = f64::from(devices);
    let grown = model.latent.scrub.map_or(0.0, |scrub| devices * model.latent.rate * scrub);
    let per_pass = devices * model.latent.per_pass;
    // None for an age that is anything up to the interval: (1 - exp(-x)) / x; by its series for small x.
    let some = if grown < 1e-3 {
        grown / 2.0 - grown * grown / 6.0 + grown * grown * grown / 24.0
    } else {
        1.0 + (-grown).exp_m1() / grown
    };
    let read = -(-per_pass).exp_m1();
    (some + read - some * read, grown / 2.0 + per_pass)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::closed;
    use crate::lifetime::Lifetime;
    use crate::model::{Correlation, Exposure, Geometry, Latent, Repair, RepairTime};

    fn model(data: u32, parity: u32, failure: f64, repair: f64) -> Model {
        Model {
            geometry: Geometry { data, parity, logs: 0 },
            device: Lifetime::constant(failure),
            log_rate: 0.0,
            repair: Repair {
                mean: 1.0 / repair,
                waiting: 0.0,
                log_mean: 1.0 / repair,
                time: RepairTime::Exponential,
                order: RepairOrder::OneByOne,
            },
            latent: Latent { rate: 0.0, scrub: None, per_pass: 0.0 },
            correlation: Correlation { after_failure: 1.0, shock_rate: 0.0, shock_share: 0.0 },
            exposure: Exposure { share: 0.0, bytes: 0.0 },
            capacity: 4e11,
            chunk: 4096.0,
            years: 10.0,
        }
    }

    fn answer(model: &Model) -> Answer {
        solve(model).expect("valid").expect("a chain")
    }

    fn near(found: f64, wanted: f64, allowed: f64) {
        assert!((found / wanted - 1.0).abs() < allowed, "found {found:e}, wanted {wanted:e}");
    }

    /// W-44 and W-45, with the paper's parameters and with others, to all digits.
    #[test]
    fn the_closed_forms_are_the_chain() {
        for (failure, repair) in [(0.25, 1e4), (0.0925, 1e4), (0.25, 986.175), (3.0, 1.0)] {
            near(
                answer(&model(7, 1, failure, repair)).mean_time_to_loss,
                closed::raid5(8, failure, repair),
                1e-12,
            );
            near(
                answer(&model(6, 2, failure, repair)).mean_time_to_loss,
                closed::raid6(8, failure, repair),
                1e-12,
            );
        }
    }

    /// P. Chen, E. Lee, G. Gibson, R. Katz, D. Patterson, "RAID: High-Performance, Reliable Secondary
    /// Storage", ACM Computing Surveys 26(2), 1994: 100 data disks of 5 GB in groups of 16, 200,000 h to a
    /// failure, each failure multiplies the rate of the next by 10, repair takes an hour, one bit in 10^14 is
    /// unreadable. Years are of 8,760 h there.
    #[test]
    fn a_published_table_of_raid_5_and_6() {
        let hours_per_year = 8760.0;
        let of = |parity: u32, per_pass: f64| {
            let mut group = model(16 - parity, parity, hours_per_year / 200_000.0, hours_per_year);
            group.correlation.after_failure = 10.0;
            group.latent.per_pass = per_pass;
            answer(&group).mean_time_to_loss / (100.0 / f64::from(16 - parity))
        };
        let per_pass = 5e9 * 8.0 / 1e14;
        near(of(1, 0.0), 285.0, 0.02);
        near(of(1, per_pass), 32.0, 0.02);
        near(of(2, 0.0), 38_000.0, 0.02);
        near(1.0 / (1.0 / of(2, per_pass) - 1.0 / of(2, 0.0)), 47_697.0, 0.02);
    }

    /// J. Elerath, M. Pecht, "Enhanced reliability modeling of RAID storage systems", DSN 2007: 7+1, 461,386
    /// h to a failure, 12 h to restore: 36,162 years. Years are of 8,760 h there.
    #[test]
    fn a_published_mean_of_seven_and_one() {
        let group = model(7, 1, 8760.0 / 461_386.0, 8760.0 / 12.0);
        near(answer(&group).mean_time_to_loss, 36_162.0, 0.02);
    }

    #[test]
    fn repairs_side_by_side_halve_the_time_at_two() {
        let one = model(6, 2, 0.25, 1e4);
        let mut all = one;
        all.repair.order = RepairOrder::AllAtOnce;
        near(answer(&all).mean_time_to_loss / answer(&one).mean_time_to_loss, 2.0, 0.01);
    }

    #[test]
    fn shocks_that_take_all_are_the_end() {
        let mut array = model(6, 2, 1e-6, 1e6);
        array.correlation = Correlation { shock_rate: 0.1, shock_share: 1.0, ..array.correlation };
        near(answer(&array).mean_time_to_loss, 10.0, 1e-3);
        near(answer(&array).loss, 1.0 - (-1.0_f64).exp(), 1e-3);
    }

    /// With as many log devices as parities, all exposed, of the same kind as the others and as soon
    /// repaired, m + 1 failures among all that begin or end with a data device are a loss.
    #[test]
    fn log_devices_are_units_of_their_own() {
        let plain = model(4, 1, 0.1, 1e4);
        let mut logged = plain;
        logged.geometry.logs = 1;
        logged.log_rate = 0.1;
        logged.exposure = Exposure { share: 1.0, bytes: 1e9 };
        // Pairs that lose: 5 x 4 of data devices; 5 x 1 and 1 x 5 of a data and a log device.
        near(answer(&logged).mean_time_to_loss / answer(&plain).mean_time_to_loss, 20.0 / 30.0, 1e-3);
        let answer = answer(&logged);
        near(answer.by_cause[2] / answer.loss, 1.0 / 3.0, 1e-3);
        logged.exposure.share = 0.0;
        near(
            super::solve(&logged).expect("valid").expect("chain").mean_time_to_loss,
            closed::raid5(5, 0.1, 1e4),
            1e-9,
        );
    }

    #[test]
    fn latent_errors_need_a_scrub_to_be_a_chain() {
        let mut array = model(7, 1, 0.25, 1e4);
        array.latent.rate = 1.0;
        assert_eq!(solve(&array), Ok(None));
        array.latent.scrub = Some(0.02);
        let with = answer(&array);
        assert!(with.by_cause[1] > with.by_cause[0]);
        array.latent.scrub = Some(0.01);
        assert!(answer(&array).loss < with.loss);
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let refused = |model: Model| solve(&model).expect_err("nonsense").to_string();
        let good = model(6, 2, 0.25, 1e4);
        assert!(refused(Model { years: f64::NAN, ..good }).starts_with("years: found NaN"));
        assert!(
            refused(Model { device: Lifetime::constant(0.0), ..good }).starts_with("failure rate: found 0")
        );
        assert!(
            refused(Model { geometry: Geometry { data: 0, parity: 1, logs: 0 }, ..good })
                .contains("data devices")
        );
        assert!(
            refused(Model { years: 1e6, repair: Repair { mean: 1e-9, ..good.repair }, ..good })
                .contains("repair")
        );
    }
}
