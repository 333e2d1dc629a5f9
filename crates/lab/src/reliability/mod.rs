//! `reliability`: how likely arrays lose data, and how much, side by side.

mod cases;
mod options;
mod report;
mod simulated;
mod values;

use crate::Exit;
use crate::failure::Failure;
use cases::Case;
use node::output;
pub use options::Arguments;
use reliability::{Answer, Outcome, Plan, closed, simulate, solve};

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
    let cases = cases::of(arguments)?;
    let rows = cases.into_iter().map(|case| row(arguments, case)).collect::<Result<Vec<_>, _>>()?;
    let report = report::Report { arguments, rows: &rows };
    output::line(if arguments.json { format!("{:#}", report.json()) } else { report.text() });
    Ok(0)
}

fn row(arguments: &Arguments, case: Case) -> Result<Row, Failure> {
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
    let carlo = if run.trials == 0 { None } else { Some(simulate(model, &plan)?) };
    Ok(Row {
        closed,
        chain,
        gain: gain.filter(|gain| gain.is_finite()),
        carlo,
        seconds: begun.elapsed().as_secs_f64(),
        case,
    })
}
