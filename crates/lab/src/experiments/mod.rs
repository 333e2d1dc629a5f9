//! `lab`: every experiment of the papers, declared once as data, run by one command, reported beside what the
//! papers print.
//!
//! `catalogue` declares experiments and headlines in the words of `declare`. `cells` multiplies grids out:
//! a cell is a pure function of its words, load, scale and seed, and `engine` runs it by the library's own
//! commands. `folder` keeps what cells came to, a file each; `results` finds the declared cells in a folder,
//! `verdict` judges headlines by them, `report` writes it all down.

mod catalogue;
mod cells;
mod declare;
mod engine;
mod executor;
mod folder;
mod loads;
mod parity_cache;
mod recorded;
mod report;
mod results;
mod scale;
mod traces;
mod verdict;
mod view;
mod work;

#[cfg(test)]
mod tests;

use crate::Exit;
use crate::failure::{EXIT_FAILED, EXIT_MISUSED, Failure};
use crate::simulate::Shard;
use cells::{Cell, cells, grids_over};
use clap::{Args, Subcommand, ValueEnum};
use comfy_table::{CellAlignment, Table, presets};
use declare::Experiment;
use folder::{Folder, Merging};
use node::output;
use report::Report;
use scale::Scale;
use std::path::PathBuf;
use traces::Traces;

/// Options of `lab`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand, Debug)]
enum LabCommand {
    /// List the experiments, or the cells of some of them.
    List(ListArguments),
    /// Run the cells of experiments that the folder does not have from this build.
    Run(RunArguments),
    /// Take the cells of other folders over, such as those of shards.
    Merge(MergeArguments),
    /// Write the report of a folder: report.html, report.json, headlines.csv, cells.csv.
    Report(ReportArguments),
}

#[derive(Args, Debug)]
struct ListArguments {
    /// Experiments whose cells are listed, such as X-05.
    #[arg(value_name = "EXPERIMENT")]
    experiments: Vec<String>,
    #[command(flatten)]
    length: Length,
}

/// How long loads are, how often they are drawn, and which traces there are beside them.
#[derive(Args, Debug)]
struct Length {
    /// Share of the papers' length; below 1 there are no verdicts.
    #[arg(long, default_value = "1", value_name = "SHARE")]
    scale: Scale,
    /// Seeds, such as 3, 1..5 or 1,4; verdicts are by the mean.
    #[arg(long, default_value = "1", value_parser = parse_seeds, value_name = "SEEDS")]
    seed: Seeds,
    /// Folder of traces that somebody has, for the grids that replay these: a trace is a file, or a folder
    /// of files that are read in the order of their names.
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
}

/// Seeds, ascending.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Seeds(Vec<u64>);

/// More repetitions tell nothing new.
const SEEDS_MAX: u64 = 1000;

fn parse_seeds(text: &str) -> Result<Seeds, String> {
    let expected = || {
        format!(
            "found {text:?}, expected a seed, a range such as 1..5 or a list such as 1,4, {SEEDS_MAX} at most"
        )
    };
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| expected());
    let mut seeds = match text.split_once("..") {
        Some((first, last)) => {
            let (first, last) = (number(first)?, number(last.trim_start_matches('='))?);
            if last < first || last - first >= SEEDS_MAX {
                return Err(expected());
            }
            (first..=last).collect()
        }
        None => text.split(',').map(number).collect::<Result<Vec<_>, _>>()?,
    };
    seeds.sort_unstable();
    seeds.dedup();
    if u64::try_from(seeds.len()).is_ok_and(|count| count <= SEEDS_MAX) {
        Ok(Seeds(seeds))
    } else {
        Err(expected())
    }
}

#[derive(Args, Debug)]
struct RunArguments {
    /// Experiments, such as X-05 X-08, or all.
    #[arg(required = true, value_name = "EXPERIMENT|all")]
    experiments: Vec<String>,
    #[command(flatten)]
    length: Length,
    /// Folder of the results; cells that are there from this build are not run again.
    #[arg(long, default_value = "lab-results", value_name = "DIR")]
    out: PathBuf,
    /// Run only cells with one of these labels on an axis, such as trace=fin,usr, or of these grids, such as
    /// grid=nvme; may be given several times.
    #[arg(long = "where", value_parser = parse_where, value_name = "AXIS=LABEL,...")]
    filters: Vec<Filter>,
    /// Run a part of the cells only, such as 1/4, 2/4 and so on on four machines.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Cells that run side by side [all processors].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024), value_name = "N")]
    jobs: Option<u32>,
    /// Who runs the cells: this process, or the workers of a HyperQueue server, which see the same folder.
    #[arg(long, value_enum, default_value = "local", conflicts_with = "shard", value_name = "WHO")]
    executor: Executor,
    /// Directory of the HyperQueue server, if it is not the usual one.
    #[arg(long, value_name = "DIR")]
    hq_server: Option<PathBuf>,
    /// Python that has the package hyperqueue.
    #[arg(long, default_value = "python3", value_name = "PROGRAM")]
    python: PathBuf,
}

/// Who runs cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Executor {
    /// This process.
    Local,
    /// Workers of a HyperQueue server.
    Hq,
}

/// Cells that are wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Filter {
    axis: String,
    labels: Vec<String>,
}

fn parse_where(text: &str) -> Result<Filter, String> {
    match text.split_once('=') {
        Some((axis, labels)) if !axis.is_empty() && !labels.is_empty() => {
            Ok(Filter { axis: axis.to_owned(), labels: labels.split(',').map(str::to_owned).collect() })
        }
        Some(_) | None => Err(format!("found {text:?}, expected an axis and labels such as trace=fin,usr")),
    }
}

impl Filter {
    /// Whether a cell has one of the labels; one without the axis has none.
    fn keeps(&self, cell: &Cell) -> bool {
        let found = if self.axis == "grid" { cell.key.grid } else { cell.key.label(&self.axis) };
        self.labels.iter().any(|label| found == label)
    }
}

#[derive(Args, Debug)]
struct MergeArguments {
    /// Folders that `lab run` filled.
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Folder that takes their cells.
    #[arg(long, default_value = "lab-results", value_name = "DIR")]
    out: PathBuf,
}

#[derive(Args, Debug)]
struct ReportArguments {
    /// Folder of the results, which takes the report too.
    #[arg(long, default_value = "lab-results", value_name = "DIR")]
    out: PathBuf,
    /// Cells of this scale, if there are several.
    #[arg(long, value_name = "SHARE")]
    scale: Option<Scale>,
    /// Take cells that other builds of the program left where this one has none; the report says which
    /// builds.
    #[arg(long)]
    all_builds: bool,
}

/// Runs `lab`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.command {
        LabCommand::List(arguments) => list(arguments),
        LabCommand::Run(arguments) => run_cells(arguments),
        LabCommand::Merge(arguments) => merge(arguments),
        LabCommand::Report(arguments) => report(arguments),
    }
}

/// The experiments of these names, in the order of the catalogue.
fn named(names: &[String]) -> Result<Vec<&'static Experiment>, Failure> {
    let all = catalogue::experiments();
    let known = |name: &str| all.iter().any(|experiment| experiment.id.eq_ignore_ascii_case(name));
    if let Some(unknown) = names.iter().find(|name| !name.eq_ignore_ascii_case("all") && !known(name)) {
        let ids: Vec<&str> = all.iter().map(|experiment| experiment.id).collect();
        return Err(Failure::new(format!("found {unknown:?}, expected all or one of {}", ids.join(", ")))
            .with_exit(EXIT_MISUSED));
    }
    let wanted =
        |id: &str| names.iter().any(|name| name.eq_ignore_ascii_case("all") || name.eq_ignore_ascii_case(id));
    Ok(all.into_iter().filter(|experiment| wanted(experiment.id)).collect())
}

/// Their cells, each once.
fn cells_of(experiments: &[&'static Experiment], length: &Length) -> Result<Vec<Cell>, Failure> {
    let traces = match &length.traces {
        Some(folder) => Some(Traces::of(folder, length.scale)?),
        None => None,
    };
    for left_out in traces.iter().flat_map(|traces| &traces.left_out) {
        output::warn(format_args!("left out: {left_out}"));
    }
    let loads = traces.map_or_else(Vec::new, |traces| traces.loads);
    let mut all = Vec::new();
    for grid in grids_over(experiments.iter().copied(), &loads) {
        all.extend(cells(grid, length.scale, &length.seed.0)?);
    }
    Ok(all)
}

fn list(arguments: &ListArguments) -> Result<Exit, Failure> {
    if !arguments.experiments.is_empty() {
        for cell in cells_of(&named(&arguments.experiments)?, &arguments.length)? {
            output::line(format_args!("{}: {}", folder::key_text(&cell), cell.inputs()));
        }
        return Ok(0);
    }
    let headlines = catalogue::headlines();
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["", "what", "from", "cells", "headlines"]);
    for experiment in catalogue::experiments() {
        let rows = headlines.iter().filter(|headline| headline.experiment == experiment.id);
        table.add_row([
            experiment.id.to_owned(),
            experiment.title.to_owned(),
            experiment.source.to_owned(),
            cells_of(&[experiment], &arguments.length)?.len().to_string(),
            rows.count().to_string(),
        ]);
    }
    table.column_iter_mut().skip(3).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    output::line(table.trim_fmt());
    Ok(0)
}

fn run_cells(arguments: &RunArguments) -> Result<Exit, Failure> {
    let mut cells = cells_of(&named(&arguments.experiments)?, &arguments.length)?;
    cells.retain(|cell| arguments.filters.iter().all(|filter| filter.keeps(cell)));
    if cells.is_empty() && !arguments.filters.is_empty() {
        return Err(Failure::new(
            "--where: found no such cell; `elastripe lab list X-05` names axes and labels",
        ));
    }
    if let Some(shard) = arguments.shard {
        let mut index = 0;
        cells.retain(|_| {
            index += 1;
            shard.has(index - 1)
        });
    }
    let folder = Folder::make(&arguments.out)?;
    if arguments.executor == Executor::Hq {
        let done = executor::run(arguments, &cells, &folder)?;
        output::line(format_args!(
            "{} cells run, {} were there, {} failed: {}",
            done.run,
            done.found,
            done.failed,
            arguments.out.display()
        ));
        return Ok(if done.failed == 0 { 0 } else { EXIT_FAILED });
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.map_or(Ok(processors), usize::try_from)?;
    let done = work::run(&cells, &folder, jobs)?;
    output::line(format_args!(
        "{} cells run, {} were there, {} failed: {}",
        done.run,
        done.found,
        done.failed.len(),
        arguments.out.display()
    ));
    Ok(if done.failed.is_empty() { 0 } else { EXIT_FAILED })
}

fn merge(arguments: &MergeArguments) -> Result<Exit, Failure> {
    let sources = arguments.folders.iter().map(|path| Folder::open(path)).collect::<Result<Vec<_>, _>>()?;
    // All are compared before one is copied: a refusal leaves the folder as it was.
    let mut merging = Merging::into(&arguments.out);
    for source in &sources {
        for (path, found) in source.all()? {
            merging.add(path, found)?;
        }
    }
    let (taken, known) = merging.copy()?;
    output::line(format_args!("{taken} cells taken over, {known} were there: {}", arguments.out.display()));
    Ok(0)
}

fn report(arguments: &ReportArguments) -> Result<Exit, Failure> {
    let folder = Folder::open(&arguments.out)?;
    let experiments = catalogue::experiments();
    let builds = if arguments.all_builds { results::Builds::All } else { results::Builds::One };
    let results = results::load(&folder, arguments.scale, &experiments, builds)?;
    let headlines = catalogue::headlines();
    let report = Report::new(&results, &experiments, &headlines);
    for path in report.write(folder.path())? {
        output::line(path.display());
    }
    output::line(report.line());
    if !results.scale.is_full() {
        output::line(format_args!(
            "scale {}: shorter than the papers, so there are no verdicts",
            results.scale
        ));
    }
    Ok(0)
}
