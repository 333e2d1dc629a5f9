//! Options that would change nothing are refused: of a run alone, and of a grid if they mean nothing to any
//! of its cells.

use super::Arguments;
use super::grid::Cell;
use crate::failure::Failure;
use crate::options::batches::Batches;
use format::SchemeKind;

/// Of a run alone.
pub fn check_alone(arguments: &Arguments) -> Result<(), Failure> {
    let cells = &arguments.cells;
    let of_grids = [
        cells.baseline.map(|scheme| format!("--baseline {scheme}")),
        cells.own_terms.then(|| "--own-terms".to_owned()),
        cells.jobs.map(|jobs| format!("--jobs {jobs}")),
    ];
    if let Some(given) = of_grids.into_iter().flatten().next() {
        return Err(Failure::new(format!(
            "{given}: found one run alone, expected several side by side; add --compare or --sweep"
        )));
    }
    arguments.array.check()?;
    arguments.recovery.check_scheme(arguments.array.scheme)?;
    check_devices(&[arguments])
}

/// Of a grid.
pub fn check_grid(arguments: &Arguments, cells: &[Cell]) -> Result<(), Failure> {
    let schemes: Vec<SchemeKind> = cells.iter().map(|cell| cell.arguments.array.scheme).collect();
    if let Some(scheme) = arguments.cells.baseline.filter(|scheme| !schemes.contains(scheme)) {
        return Err(Failure::new(format!(
            "--baseline {scheme}: found no run of that scheme, expected one of those side by side"
        )));
    }
    arguments.array.elastic.check_any(&schemes)?;
    arguments.array.consistency.check_any(&schemes)?;
    arguments.array.rewrites.check_any(&schemes)?;
    let any = |result: fn(&Arguments, SchemeKind) -> Result<(), Failure>| {
        let mut results = schemes.iter().map(|&scheme| result(arguments, scheme));
        let first = results.next().unwrap_or(Ok(()));
        if first.is_ok() || results.any(|result| result.is_ok()) { Ok(()) } else { first }
    };
    any(|arguments, scheme| arguments.array.commit_every.check(scheme))?;
    any(|arguments, scheme| arguments.array.check_logs(scheme))?;
    any(|arguments, scheme| arguments.array.check_layout(scheme))?;
    any(|arguments, scheme| arguments.array.cache.check_write_cache(scheme))?;
    arguments.array.cache.stripes.check_any(&schemes)?;
    any(|arguments, scheme| arguments.recovery.check_scheme(scheme))?;
    any(|arguments, scheme| arguments.array.unit.check(scheme))?;
    check_devices(&cells.iter().map(|cell| &cell.arguments).collect::<Vec<_>>())
}

/// What is said of log devices that no run has, of losses, and of work that none does.
fn check_devices(runs: &[&Arguments]) -> Result<(), Failure> {
    let named: Vec<&&Arguments> = runs.iter().filter(|run| run.log_device.is_some()).collect();
    if let Some(run) = named.first().filter(|_| named.iter().all(|run| run.array.log_count() == 0)) {
        return Err(Failure::new(format!(
            "--log-device {}: scheme {} has no log devices here; leave it out",
            run.log_preset(),
            run.array.scheme
        )));
    }
    let lossy: Vec<&&Arguments> = runs.iter().filter(|run| run.recovery.fail_at.is_some()).collect();
    if let Some(at) = lossy.first().and_then(|run| run.recovery.fail_at)
        && lossy.iter().all(|run| run.recovery.fail == Some(0))
    {
        return Err(Failure::new(format!(
            "--fail-at {at}: found --fail 0, with which no SSD is lost on the way; leave it out, or lose some"
        )));
    }
    let works = |run: &Arguments| run.recovery.rebuild > 0 || run.array.scheme.has_log();
    let sized: Vec<&&Arguments> =
        runs.iter().filter(|run| run.recovery.batches != Batches::default()).collect();
    if let Some(run) = sized.first().filter(|_| !sized.iter().any(|run| works(run))) {
        return Err(run.recovery.batches.without_effect(run.array.scheme));
    }
    Ok(())
}
