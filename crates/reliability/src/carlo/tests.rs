//! Monte Carlo against the chain, against itself without weights, and by its own laws.

use super::*;
use crate::lifetime::{Lifetime, Wear};
use crate::model::{Correlation, Exposure, Geometry, Latent, Repair};
use crate::solve;

const PLAN: Plan = Plan { trials: 20_000, seed: 1, confidence: 0.99 };

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

/// All that a chain knows, one by one and together, rare and frequent.
fn configurations() -> Vec<Model> {
    let logs = |mut model: Model, share: f64| {
        model.geometry.logs = model.geometry.parity;
        (model.log_rate, model.exposure) = (0.05, Exposure { share, bytes: 1e9 });
        model
    };
    let latent = |mut model: Model, rate: f64, per_pass: f64| {
        model.latent = Latent { rate, scrub: Some(7.0 / 365.25), per_pass };
        model
    };
    let shocks = |mut model: Model, shock_rate: f64, shock_share: f64| {
        model.correlation = Correlation { after_failure: 1.0, shock_rate, shock_share };
        model
    };
    let after = |mut model: Model, after_failure: f64| {
        model.correlation.after_failure = after_failure;
        model
    };
    let at_once = |mut model: Model| {
        model.repair.order = RepairOrder::AllAtOnce;
        model
    };
    let short = |model: Model| Model { years: 2.0, ..model };
    vec![
        model(7, 1, 0.25, 1e4),
        model(6, 2, 0.25, 1e4),
        model(7, 1, 0.0925, 986.175),
        model(6, 2, 0.0925, 986.175),
        short(model(4, 1, 2.0, 10.0)),
        short(model(4, 2, 2.0, 10.0)),
        short(model(9, 3, 0.5, 50.0)),
        model(17, 3, 0.01, 200.0),
        model(3, 0, 0.02, 100.0),
        at_once(model(6, 2, 0.25, 1e3)),
        short(at_once(model(8, 4, 1.0, 20.0))),
        after(model(14, 2, 0.05, 1e3), 10.0),
        latent(model(7, 1, 0.05, 1e3), 0.5, 0.0),
        latent(model(6, 2, 0.05, 1e3), 0.5, 1e-3),
        shocks(model(6, 2, 0.02, 500.0), 0.1, 0.02),
        shocks(model(6, 2, 0.02, 500.0), 0.02, 0.5),
        logs(model(6, 2, 0.05, 1e3), 1.0),
        logs(model(7, 1, 0.25, 1e3), 0.3),
        logs(at_once(shocks(model(6, 2, 0.1, 100.0), 0.05, 0.1)), 0.5),
        latent(after(shocks(logs(model(6, 2, 0.1, 200.0), 0.5), 0.05, 0.05), 3.0), 0.2, 1e-4),
    ]
}

#[test]
fn its_interval_holds_what_the_chain_says_in_twenty_configurations() {
    let configurations = configurations();
    assert_eq!(configurations.len(), 20);
    for (number, model) in configurations.iter().enumerate() {
        let chain = solve(model).expect("valid").expect("a chain");
        let found = simulate(model, &PLAN).expect("valid");
        let Estimate { low, high, mean } = found.loss;
        // Without parity nothing is left to chance, and the interval is as narrow as rounding.
        assert!(
            (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(&chain.loss),
            "configuration {number}: chain {:e}, Monte Carlo {mean:e} ({low:e} to {high:e})",
            chain.loss
        );
        assert!(found.loss.precision().expect("a loss") < 0.1, "configuration {number}: {:?}", found.loss);
        // Rebuilds half done can only make it less.
        assert!(
            found.lost_share.low <= chain.lost_share_at_most * (1.0 + 1e-9),
            "configuration {number}: {:?} {:e}",
            found.lost_share,
            chain.lost_share_at_most
        );
    }
}

/// Other seeds: with 99 % confidence, one of a hundred may be outside. A wrong weight would show here.
#[test]
fn intervals_are_as_often_right_as_they_say() {
    let mut outside = 0;
    for (seed, model) in (100..).zip(configurations().iter().cycle().take(100)) {
        let chain = solve(model).expect("valid").expect("a chain");
        let found = simulate(model, &Plan { trials: 4_000, seed, ..PLAN }).expect("valid").loss;
        let rounded = found.low * (1.0 - 1e-9)..=found.high * (1.0 + 1e-9);
        outside += u32::from(!rounded.contains(&chain.loss));
    }
    assert!(outside <= 5, "{outside} of 100 intervals miss the chain's value");
}

#[test]
fn one_in_a_thousand_million_is_known_to_a_tenth() {
    let rare = Model { years: 1.0, ..model(6, 2, 0.05, 5e3) };
    let exact = solve(&rare).expect("valid").expect("a chain").loss;
    assert!((1e-10..1e-8).contains(&exact), "{exact:e}");
    let found = simulate(&rare, &PLAN).expect("valid").loss;
    assert!((found.mean / exact - 1.0).abs() < 0.05 && found.precision().expect("some") < 0.1, "{found:?}");
}

/// Lives without weights, another program: each device has its moment of failure, drawn at birth.
fn plain(model: &Model, trials: u32, seed: u64) -> f64 {
    let mut random = XoshiroPlusPlus::new(seed);
    let mut life = move || {
        // Inverse of the two summed hazards by halving.
        let wanted = -(1.0 - random.unit()).ln();
        let hazard = model.device.hazard();
        let (mut low, mut high) = (0.0, 1e4);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if hazard.over(0.0, middle) < wanted { low = middle } else { high = middle }
        }
        low
    };
    let parity = usize::try_from(model.geometry.parity).expect("small");
    let mut lost = 0;
    for _ in 0..trials {
        let mut fails: Vec<f64> = (0..model.geometry.devices()).map(|_| life()).collect();
        loop {
            // The next moment at which more than parity are out, or the first repair.
            fails.sort_by(f64::total_cmp);
            let (first, last) = (fails[0], fails[parity]);
            if first > model.years {
                break;
            }
            if last < first + model.repair.mean {
                lost += u32::from(last <= model.years);
                break;
            }
            fails[0] = first + model.repair.mean + life();
        }
    }
    f64::from(lost) / f64::from(trials)
}

/// Age, wear and repairs of fixed length, against lives without weights.
#[test]
fn ageing_devices_are_lost_as_often_as_plain_counting_says() {
    let wear = Some(Wear { endurance: 6.0, shape: 5.0 });
    for (number, device) in [
        Lifetime { rate: 0.3, shape: 1.0, wear: None, age: 0.0 },
        Lifetime { rate: 0.3, shape: 2.5, wear: None, age: 0.0 },
        Lifetime { rate: 0.2, shape: 0.7, wear: None, age: 0.0 },
        Lifetime { rate: 0.1, shape: 1.2, wear, age: 0.0 },
    ]
    .into_iter()
    .enumerate()
    {
        let mut array = Model { device, years: 6.0, ..model(5, 1, 0.3, 20.0) };
        (array.repair.time, array.repair.order) = (RepairTime::Fixed, RepairOrder::AllAtOnce);
        let trials = 40_000;
        let counted = plain(&array, trials, 7);
        let found = simulate(&array, &PLAN).expect("valid").loss;
        let deviation = (counted * (1.0 - counted) / f64::from(trials)).sqrt();
        let allowed = 3.0 * deviation + (found.high - found.mean);
        assert!((counted - found.mean).abs() < allowed, "{number}: counted {counted}, found {found:?}");
    }
}

/// A device of some age that has worked so far is not a new one.
#[test]
fn age_counts() {
    let device = Lifetime { rate: 0.1, shape: 3.0, wear: None, age: 0.0 };
    let young = Model { device, years: 1.0, ..model(6, 2, 0.1, 100.0) };
    let old = Model { device: Lifetime { age: 8.0, ..device }, ..young };
    let of = |model: &Model| simulate(model, &PLAN).expect("valid").loss.mean;
    assert!(of(&old) > 1000.0 * of(&young), "{:e} {:e}", of(&old), of(&young));
}

#[test]
fn the_same_seed_is_the_same_result() {
    let array = configurations().pop().expect("twenty");
    let of = |seed| simulate(&array, &Plan { trials: 1000, seed, ..PLAN }).expect("valid");
    assert_eq!(of(3), of(3));
    assert_ne!(of(3), of(4));
}

/// Without parity, whole devices are lost one by one: the magnitude is known.
#[test]
fn what_is_lost_is_in_proportion() {
    let array = Model { years: 1.0, ..model(4, 0, 0.01, 1e3) };
    let found = simulate(&array, &PLAN).expect("valid");
    // The first failure ends it: a quarter of the data with that probability.
    let wanted = (1.0 - (-0.04_f64).exp()) / 4.0;
    assert!((found.lost_share.mean / wanted - 1.0).abs() < 0.01, "{found:?}");
}

/// Two parities, repairs of fixed length one by one: the second and the third failure are anywhere within the
/// first repair, in order, so on average two thirds of the first device are rebuilt, and 3 x 1/3 devices are
/// lost.
#[test]
fn what_is_rebuilt_is_not_lost() {
    let mut array = model(6, 2, 0.25, 1e4);
    array.repair.time = RepairTime::Fixed;
    let found = simulate(&array, &PLAN).expect("valid");
    let wanted = found.loss.mean / 8.0;
    assert!((found.lost_share.mean / wanted - 1.0).abs() < 0.03, "{found:?}");
    // Nothing is rebuilt while nobody has replaced it.
    array.repair.waiting = 1.0;
    let found = simulate(&array, &PLAN).expect("valid");
    assert!((found.lost_share.mean / (found.loss.mean * 3.0 / 8.0) - 1.0).abs() < 1e-6, "{found:?}");
}

#[test]
fn quantiles_are_those_of_tables() {
    for (probability, wanted) in [(0.975, 1.959_964), (0.995, 2.575_829), (0.75, 0.674_490)] {
        assert!((normal_quantile(probability) - wanted).abs() < 1e-6, "{probability}");
    }
}

#[test]
fn too_little_work_is_refused() {
    let array = model(6, 2, 0.25, 1e4);
    assert!(simulate(&array, &Plan { trials: 5, ..PLAN }).is_err());
    assert!(simulate(&array, &Plan { confidence: 1.0, ..PLAN }).is_err());
}
