//! The report: all headlines with their verdicts and all tables, as one page, as JSON and as CSV.
//!
//! It is a function of the cells alone, so that whoever ran them in whatever order gets the same bytes.

mod html;
mod machine;
mod picture;
mod tables;

use super::declare::{Experiment, Headline};
use super::results::Results;
use super::verdict::{Judged, Verdict, judge};
use crate::failure::Failure;
use crate::outfile::OutFile;
use std::path::{Path, PathBuf};
use tables::Tables;

/// See the module's documentation.
pub struct Report<'a> {
    results: &'a Results,
    experiments: &'a [&'static Experiment],
    judged: Vec<Judged>,
    tables: Tables,
}

impl<'a> Report<'a> {
    /// Judges all headlines.
    pub fn new(
        results: &'a Results,
        experiments: &'a [&'static Experiment],
        headlines: &[&'static Headline],
    ) -> Self {
        let grids = &results.grids;
        let judged = headlines.iter().map(|headline| judge(headline, grids, results)).collect();
        let tables = Tables::new(grids, results);
        Self { results, experiments, judged, tables }
    }

    /// How many headlines came out how.
    pub fn summary(&self) -> Vec<(Verdict, usize)> {
        let count = |verdict| self.judged.iter().filter(|judged| judged.verdict == verdict).count();
        Verdict::ALL
            .map(|verdict| (verdict, count(verdict)))
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// The summary in a line.
    pub fn line(&self) -> String {
        let counts: Vec<String> =
            self.summary().iter().map(|(verdict, count)| format!("{count} {}", verdict.text())).collect();
        format!("{} headlines: {}", self.judged.len(), counts.join(", "))
    }

    /// Writes its files into a folder; their names.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
        let json = self.json();
        let files = [
            ("report.html", self.html()?),
            ("report.json", format!("{json:#}\n")),
            ("headlines.csv", self.headlines_csv()),
            ("cells.csv", self.cells_csv()),
        ];
        let mut written = Vec::new();
        for (name, text) in files {
            let path = folder.join(name);
            OutFile::new("", &path)?.write_bytes(text.as_bytes())?;
            written.push(path);
        }
        Ok(written)
    }
}
