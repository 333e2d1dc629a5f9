//! The cells of a grid: the command line again, with other values of some options.

use super::Arguments;
use crate::failure::Failure;
use crate::misuse::in_a_line;
use clap::parser::ValueSource;
use clap::{Args as _, Command, FromArgMatches as _};
use format::SchemeKind;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

/// An option and the values it takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    /// Its name, without dashes.
    pub option: String,
    /// The values.
    pub values: Vec<String>,
}

/// Most cells of a grid.
const CELLS_MAX: usize = 100_000;
/// Options that say how cells are run, not what a cell is.
const NOT_CELLS: [&str; 13] = [
    "sweep",
    "compare",
    "baseline",
    "own-terms",
    "out",
    "shard",
    "jobs",
    "json",
    "plot",
    "plot-value",
    "plot-width",
    "interval",
    "series",
];

/// `option=a,b,c`.
pub fn parse_axis(text: &str) -> Result<Axis, String> {
    let expected = || format!("found {text:?}, expected an option and values such as queue-depth=1,8,32");
    let (option, values) = text.split_once('=').ok_or_else(expected)?;
    let option = option.trim_start_matches("--").to_owned();
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    let named = !option.is_empty() && option.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    if !named || values.iter().any(String::is_empty) {
        return Err(expected());
    }
    if NOT_CELLS.contains(&option.as_str()) {
        return Err(format!("found {option}, which is the same for all cells"));
    }
    Ok(Axis { option, values })
}

/// One cell.
pub struct Cell {
    /// Its arguments.
    pub arguments: Arguments,
    /// The value of each axis.
    pub values: Vec<String>,
}

/// The axes of the arguments: those swept, and the schemes compared.
pub fn axes(arguments: &Arguments) -> Vec<Axis> {
    let mut axes = arguments.cells.sweep.clone();
    if !arguments.cells.compare.is_empty() {
        let values = arguments.cells.compare.iter().map(ToString::to_string).collect();
        axes.push(Axis { option: "scheme".to_owned(), values });
    }
    axes
}

/// Every combination, the last axis fastest. `line` is the command line behind `simulate`.
pub fn cells(axes: &[Axis], line: &[OsString]) -> Result<Vec<Cell>, Failure> {
    for (index, axis) in axes.iter().enumerate() {
        if axes[..index].iter().any(|other| other.option == axis.option) {
            return Err(Failure::new(format!(
                "--sweep: found {} twice (--compare sweeps the scheme), expected each option once",
                axis.option
            )));
        }
    }
    for axis in axes {
        let mut seen = BTreeSet::new();
        if let Some(value) = axis.values.iter().find(|value| !seen.insert(*value)) {
            return Err(Failure::new(format!(
                "--sweep, --compare: found {} {value} twice, expected each value once",
                axis.option
            )));
        }
    }
    let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.values.len()));
    let Some(count) = count.filter(|&count| count <= CELLS_MAX) else {
        return Err(Failure::new(format!("--sweep: more than {CELLS_MAX} cells; leave some values out")));
    };
    let flags = axes.iter().map(is_flag).collect::<Result<Vec<_>, _>>()?;
    (0..count).map(|index| cell(axes, &flags, line, index)).collect()
}

/// Refuses a scheme of the command line beside those that are swept or compared: no cell would have it.
pub fn refuse_scheme(axes: &[Axis], line: &[OsString]) -> Result<(), Failure> {
    if !axes.iter().any(|axis| axis.option == "scheme") {
        return Ok(());
    }
    let command = Arguments::augment_args(Command::new("simulate")).no_binary_name(true);
    let matches = command.args_override_self(true).try_get_matches_from(line);
    let matches = matches.map_err(|error| Failure::new(in_a_line(&error)))?;
    match matches.get_one::<SchemeKind>("scheme") {
        Some(scheme) if matches.value_source("scheme") == Some(ValueSource::CommandLine) => {
            Err(Failure::new(format!(
                "--scheme {scheme}: found beside the schemes of --compare or --sweep, which are run instead; leave it out"
            )))
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether an axis is of a flag, which is on or off; other options take their values as they are.
fn is_flag(axis: &Axis) -> Result<bool, Failure> {
    let command = Arguments::augment_args(Command::new("simulate"));
    let known = command.get_arguments().find(|known| known.get_long() == Some(axis.option.as_str()));
    let Some(known) = known else {
        return Err(Failure::new(format!(
            "--sweep: found --{}, expected an option of simulate such as --queue-depth",
            axis.option
        )));
    };
    let is_flag = !known.get_action().takes_values();
    match axis.values.iter().find(|value| is_flag && !["on", "off"].contains(&value.as_str())) {
        Some(value) => Err(Failure::new(format!(
            "--sweep: found {}={value}, expected on or off, as --{} takes no value",
            axis.option, axis.option
        ))),
        None => Ok(is_flag),
    }
}

fn cell(axes: &[Axis], flags: &[bool], line: &[OsString], index: usize) -> Result<Cell, Failure> {
    let (mut rest, mut values) = (index, vec![String::new(); axes.len()]);
    for (value, axis) in values.iter_mut().zip(axes).rev() {
        value.clone_from(&axis.values[rest % axis.values.len()]);
        rest /= axis.values.len();
    }
    let mut words = vec![OsString::from("simulate")];
    words.extend_from_slice(line);
    for ((axis, value), is_flag) in axes.iter().zip(&values).zip(flags) {
        let option = OsString::from(format!("--{}", axis.option));
        if axis.option == "trace" {
            // Given again, it would be one more file of the same trace.
        } else if *is_flag {
            // Also where it is on for all others.
            words.retain(|word| *word != option);
            words.extend((value == "on").then_some(option));
        } else {
            words.push(format!("--{}={value}", axis.option).into());
        }
    }
    let command = Arguments::augment_args(Command::new("simulate")).args_override_self(true);
    let mut arguments = command
        .try_get_matches_from(words)
        .and_then(|matches| Arguments::from_arg_matches(&matches))
        .map_err(|error| Failure::new(format!("--sweep: {}", in_a_line(&error))))?;
    if let Some(at) = axes.iter().position(|axis| axis.option == "trace") {
        arguments.trace.traces = vec![PathBuf::from(&values[at])];
    }
    arguments.name_traces();
    Ok(Cell { arguments, values })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn line(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn a_grid_has_every_combination() {
        let line = line("--trace t.csv --queue-depth 7 --sweep queue-depth=1,8 --compare raid,eplog --fill");
        let axes = vec![parse_axis("queue-depth=1,8").unwrap(), parse_axis("--scheme=raid,eplog").unwrap()];
        let cells = cells(&axes, &line).unwrap();
        let found: Vec<_> = cells
            .iter()
            .map(|cell| (cell.arguments.depth(), cell.arguments.array.scheme.name(), cell.arguments.fill))
            .collect();
        let wanted = [(1, "raid", true), (1, "eplog", true), (8, "raid", true), (8, "eplog", true)];
        assert_eq!(found, wanted);
        assert_eq!(cells[1].values, ["1", "eplog"]);
        assert_eq!(cells[0].arguments.trace.traces.len(), 1);
    }

    #[test]
    fn flags_are_on_or_off_and_nonsense_is_refused() {
        let line = line("--trace t.csv");
        let run = |axis: &str| cells(&[parse_axis(axis).unwrap()], &line);
        let fills: Vec<bool> = run("fill=off,on").unwrap().iter().map(|cell| cell.arguments.fill).collect();
        assert_eq!(fills, [false, true]);
        // Whatever the line says.
        let given = ["--fill --trace t.csv", "--trace t.csv --fill --fill"].map(self::line);
        for line in given {
            let found = cells(&[parse_axis("fill=on,off").unwrap()], &line).unwrap();
            assert_eq!([found[0].arguments.fill, found[1].arguments.fill], [true, false]);
        }
        let refused = |axis| run(axis).err().unwrap().to_string();
        for unknown in ["depth=1", "depth=off", "depth=on,off"] {
            assert!(refused(unknown).contains("found --depth"), "{}", refused(unknown));
        }
        assert!(refused("fill=yes").contains("found fill=yes, expected on or off"));
        // Of an option that takes a value these are values.
        assert!(refused("p-wait=off").contains("off") && refused("queue-depth=on").contains("on"));
        assert!(refused("scheme=raid5").contains("raid5"));
        for bad in [
            "",
            "=1",
            "scheme",
            "scheme=",
            "scheme=a,,b",
            "out=a,b",
            "shard=1/2",
            "own-terms=on,off",
            "interval=5",
        ] {
            assert!(parse_axis(bad).is_err(), "{bad}");
        }
        let twice = [parse_axis("scheme=raid").unwrap(), parse_axis("scheme=eplog").unwrap()];
        assert!(cells(&twice, &line).err().unwrap().to_string().contains("twice"));
    }
}
