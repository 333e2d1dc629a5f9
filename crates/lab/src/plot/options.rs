//! The options of commands that draw a table of their own.

use super::Width;
use super::file::Target;
use crate::failure::Failure;
use clap::Args;
use std::path::PathBuf;

/// Whether and how a command draws its table.
#[derive(Args, Debug, Clone, Default)]
pub struct PlotOptions {
    /// Draw the table; the file's name ends in .svg or .png.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Draw this figure of the table, by its name in JSON and CSV.
    #[arg(long, requires = "plot", value_name = "KEY")]
    plot_value: Option<String>,
    /// Width in print: a column (3.5 in) or the page (7.16 in).
    #[arg(long, requires = "plot", value_enum, default_value = "column")]
    plot_width: Width,
}

impl PlotOptions {
    /// Whether a plot is asked for.
    pub fn wanted(&self) -> bool {
        self.plot.is_some()
    }

    /// The file, if a plot is asked for; checked before the run.
    pub fn target(&self) -> Result<Option<Target>, Failure> {
        self.plot.as_deref().map(|path| Target::new("--plot", path)).transpose()
    }

    /// The figure asked for, which must be one of `known`.
    pub fn value(&self, known: &[&str]) -> Result<Option<&str>, Failure> {
        match self.plot_value.as_deref() {
            Some(key) if !known.contains(&key) => Err(Failure::new(format!(
                "--plot-value: found {key:?}, expected one of {}",
                known.join(", ")
            ))),
            value => Ok(value),
        }
    }

    /// How wide it is printed.
    pub fn width(&self) -> Width {
        self.plot_width
    }
}
