//! `reliability`: how likely arrays lose data, and how much, side by side.

mod cases;
mod options;
mod report;
mod simulated;
mod values;

use crate::Exit;
use crate::failure::Failure;
use crate::watch::Shown;
use cases::Case;
use node::output;
pub use options::Arguments;
use options::{CONFIDENCE, DistributionName, SEED};
use reliability::{Answer, Outcome, Plan, closed, simulate_while, solve};
use serde_json::Value;

/// What is known of a case.
struct Row {
    case: Case,
    /// By W-44 or W-45, where they cover the model.
    closed: Option<f64>,
    /// None where the model is no Markov chain.
    chain: Option<Answer>,
    /// The chain's mean time to loss in relation to that with alpha 1.
    gain: Option<f64>,
    /// None without trials.
    carlo: Option<Outcome>,
    seconds: f64,
}

/// Runs `reliability`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let rows = rows(arguments, Shown::Nothing)?;
    let report = report::Report { arguments, rows: &rows };
    output::line(if arguments.json { format!("{:#}", report.json()) } else { report.text() });
    Ok(0)
}

/// Runs what the words of `reliability` say, in another program; what came of it, as JSON.
pub(crate) fn embedded(arguments: &Arguments, shown: Shown<'_>) -> Result<Value, Failure> {
    let rows = rows(arguments, shown)?;
    Ok(report::Report { arguments, rows: &rows }.json())
}

fn rows(arguments: &Arguments, shown: Shown<'_>) -> Result<Vec<Row>, Failure> {
    refuse_meaningless(arguments)?;
    let cases = cases::of(arguments)?;
    let trials = u64::from(arguments.run.trials);
    shown.begin("lives", trials.saturating_mul(u64::try_from(cases.len())?))?;
    let mut before = 0;
    let mut row = |case| {
        let found = row(arguments, case, &mut |lives| shown.show(before + u64::from(lives)).is_ok());
        before += trials;
        found
    };
    cases.into_iter().map(&mut row).collect()
}

/// Refuses what is about Monte Carlo where there is none.
fn refuse_meaningless(arguments: &Arguments) -> Result<(), Failure> {
    let run = &arguments.run;
    if run.trials > 0 {
        return Ok(());
    }
    let given = [
        (run.seed != SEED).then_some("--seed"),
        (run.confidence != CONFIDENCE).then_some("--confidence"),
        (arguments.repair.repair_distribution == DistributionName::Fixed).then_some("--repair-distribution"),
    ];
    match given.into_iter().flatten().next() {
        Some(option) => Err(Failure::new(format!(
            "{option}: found --trials 0, with which no lives are followed; leave one of them out"
        ))),
        None => Ok(()),
    }
}

fn row(arguments: &Arguments, case: Case, goes_on: &mut dyn FnMut(u32) -> bool) -> Result<Row, Failure> {
    let model = &case.model;
    let geometry = model.geometry;
    let closed = case
        .is_plain()
        .then(|| {
            closed::mean_time_to_loss(
                geometry.data,
                geometry.parity,
                model.device.rate,
                1.0 / model.repair.mean,
            )
        })
        .flatten();
    let chain = solve(model)?;
    let before = solve(&case.baseline)?;
    let gain =
        chain.as_ref().zip(before).map(|(now, before)| now.mean_time_to_loss / before.mean_time_to_loss);
    let run = &arguments.run;
    let plan = Plan { trials: run.trials, seed: run.seed, confidence: run.confidence };
    let begun = std::time::Instant::now();
    let carlo = match run.trials {
        0 => None,
        _ => {
            let stopped = || Failure::new("stopped on request");
            Some(simulate_while(model, &plan, goes_on)?.ok_or_else(stopped)?)
        }
    };
    Ok(Row {
        closed,
        chain,
        gain: gain.filter(|gain| gain.is_finite()),
        carlo,
        seconds: begun.elapsed().as_secs_f64(),
        case,
    })
}
