//! The cells of a grid: the command line again, with other values of some options.

use super::Arguments;
use crate::failure::Failure;
use crate::misuse::in_a_line;
use clap::{Args as _, Command, FromArgMatches as _};
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
const NOT_CELLS: [&str; 10] =
    ["sweep", "compare", "baseline", "out", "shard", "jobs", "json", "plot", "plot-value", "plot-width"];

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
    let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.values.len()));
    let Some(count) = count.filter(|&count| count <= CELLS_MAX) else {
        return Err(Failure::new(format!("--sweep: more than {CELLS_MAX} cells; leave some values out")));
    };
    (0..count).map(|index| cell(axes, line, index)).collect()
}

fn cell(axes: &[Axis], line: &[OsString], index: usize) -> Result<Cell, Failure> {
    let (mut rest, mut values) = (index, vec![String::new(); axes.len()]);
    for (value, axis) in values.iter_mut().zip(axes).rev() {
        value.clone_from(&axis.values[rest % axis.values.len()]);
        rest /= axis.values.len();
    }
    let mut words = vec![OsString::from("simulate")];
    words.extend_from_slice(line);
    for (axis, value) in axes.iter().zip(&values) {
        // Flags take no value: they are on or off.
        match value.as_str() {
            // Given again, it would be one more file of the same trace.
            _ if axis.option == "trace" => {}
            "on" => words.push(format!("--{}", axis.option).into()),
            "off" => {}
            value => words.push(format!("--{}={value}", axis.option).into()),
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
        let refused = |axis| run(axis).err().unwrap().to_string();
        assert!(refused("depth=1").contains("--depth"), "{}", refused("depth=1"));
        assert!(refused("scheme=raid5").contains("raid5"));
        for bad in ["", "=1", "scheme", "scheme=", "scheme=a,,b", "out=a,b", "shard=1/2"] {
            assert!(parse_axis(bad).is_err(), "{bad}");
        }
        let twice = [parse_axis("scheme=raid").unwrap(), parse_axis("scheme=eplog").unwrap()];
        assert!(cells(&twice, &line).err().unwrap().to_string().contains("twice"));
    }
}
