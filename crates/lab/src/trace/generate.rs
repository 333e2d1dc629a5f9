//! `trace generate`: synthetic traces by profile.

use super::write_whole;
use crate::Exit;
use crate::failure::Failure;
use clap::Args;
use node::units::parse_size;
use std::path::PathBuf;
use trace::{GenerateOptions, Generator, OutputFormat, Profile};

/// Options of `trace generate`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// What to generate: was-synthetic, was-synthetic-fifth, fin, web, usr, mds, online, webmail,
    /// online-webmail, zipf:THETA, uniform, tpcc-like or ycsb-compaction.
    #[arg(long)]
    profile: Profile,
    /// Number of requests; as many as published if not given, 1,000,000 where nothing is.
    #[arg(long, value_name = "N")]
    requests: Option<u64>,
    /// Same seed, same trace.
    #[arg(long, value_name = "N")]
    seed: u64,
    /// Address range of zipf, uniform, tpcc-like and ycsb-compaction; 1GiB if not given.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    range: Option<u64>,
    /// Overwrite the output.
    #[arg(long)]
    force: bool,
    /// File to write, in the common form; `.zst`, `.gz` and `.xz` are compressed, `-` is standard output.
    out: PathBuf,
}

/// Runs `trace generate`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut generator = Generator::new(&GenerateOptions {
        profile: arguments.profile,
        request_count: arguments.requests,
        seed: arguments.seed,
        range_bytes: arguments.range,
    })?;
    let label = *generator.label();
    let solution = generator.solution();
    let out = arguments.out.display();
    let written = write_whole(&arguments.out, OutputFormat::Common, arguments.force, |mut writer| {
        writer.label(&label, &solution);
        for request in &mut generator {
            writer.write(&request)?;
        }
        Ok(writer.finish()?)
    })?;
    let Some((summary, said)) = written else { return Ok(0) };
    said.line(format_args!(
        "{out}: {} synthetic requests written: {}, seed {}",
        summary.written_count,
        label.profile.describe(),
        label.seed
    ));
    said.line(format_args!("solved: {solution}"));
    if let Some(full) = label.profile.published_request_count().filter(|_| !label.is_full_length()) {
        said.line(format_args!(
            "not the published length of {full} requests: counts are that part of the published ones; working set, unique \
             chunks and top 20 % are comparable at full length only"
        ));
    }
    Ok(0)
}
