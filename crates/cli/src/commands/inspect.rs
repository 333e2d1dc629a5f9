//! `inspect`: superblocks, checkpoints and frames on each named member, decoded. Never writes, takes no lock.

use super::Exit;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use lab::failure::{EXIT_FAILED, Failure};
use node::called::members;
use node::inspect::{Detail, inspect, text, to_json};
use node::output;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// No bar is shown of a search that is over sooner.
const QUIET: Duration = Duration::from_secs(2);

/// Options of `inspect`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Members, also damaged ones or ones of an array that is being served; its name or UUID; or the word
    /// `layout` for the tables of the on-disk format.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// Which shard's slices to look at, of an array that has several.
    #[arg(long, default_value = "0", value_name = "N")]
    shard: u16,
    /// Show every record of the journal.
    #[arg(long)]
    records: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs `inspect`. Exit code 1 if a path could not be read or is no member.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if arguments.paths == [Path::new("layout")] && !Path::new("layout").exists() {
        output::print(format::layout_tables());
        return Ok(0);
    }
    let detail = if arguments.records { Detail::Records } else { Detail::Summary };
    let mut exit = 0;
    let mut all = Vec::new();
    let mut secrets = Vec::new();
    let paths = members(&arguments.paths)?.paths;
    for path in &paths {
        let mut search = Search::start(path);
        match inspect(path, arguments.shard, &mut secrets, &mut |done, total| search.show(done, total)) {
            Ok(inspection) => {
                search.finish();
                if inspection.candidate.superblock().is_none() {
                    exit = EXIT_FAILED;
                }
                if arguments.json {
                    all.push(to_json(&inspection, detail));
                } else {
                    output::print(text(&inspection, detail));
                }
            }
            Err(failure) if paths.len() == 1 => return Err(failure.into()),
            Err(failure) => {
                // The others may still be worth a look.
                output::warn(format_args!("elastripe: {failure}"));
                exit = EXIT_FAILED;
            }
        }
    }
    if arguments.json {
        output::line(serde_json::to_string_pretty(&all)?);
    }
    Ok(exit)
}

/// The bar of a long search.
struct Search {
    started: Instant,
    what: String,
    bar: Option<ProgressBar>,
}

impl Search {
    fn start(path: &Path) -> Self {
        Self { started: Instant::now(), what: path.display().to_string(), bar: None }
    }

    fn show(&mut self, done: u64, total: u64) {
        if self.started.elapsed() < QUIET || !std::io::stderr().is_terminal() {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style =
                ProgressStyle::with_template("{prefix} {wide_bar} {percent:>3} %  {per_sec}, {eta} left");
            let bar =
                ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_prefix(self.what.clone());
            bar
        });
        bar.set_position(done);
    }

    fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
