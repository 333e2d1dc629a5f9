//! `trace`: what is in a block trace, other forms of it, and synthetic ones.

mod generate;
pub mod held;
pub mod published;
pub mod synthetic;

use crate::Exit;
use crate::failure::Failure;
use crate::outfile::OutFile;
use clap::{Args, Subcommand, ValueEnum};
use node::output;
use node::units::parse_size;
use serde_json::{Value, json};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use trace::{
    Columns, Compression, DevMode, Format, Label, OutputFormat, ReadOptions, SkipPolicy, Stats,
    StatsCollector, StatsOptions, TraceReader, TraceSequence, TraceWriter, WriteSummary, compare, convert,
};

/// Options of `trace`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Subcommand, Debug)]
enum TraceCommand {
    /// Count what the papers print of a trace: writes, sizes, randomness, working set, update ratio.
    Info(InfoArguments),
    /// Write a trace in another format; `.zst`, `.gz` and `.xz` are compressed, `-` is standard output.
    Convert(ConvertArguments),
    /// Write a synthetic trace: the WAS paper's own, a stand-in for one of the papers' traces, Zipf or
    /// uniform.
    Generate(generate::Arguments),
    /// List published collections and where they are; hold files against what is printed of one.
    Published(published::Arguments),
}

/// How trace files are read: shared with `replay`.
#[derive(Args, Debug, Clone)]
pub struct Reading {
    /// Format of the trace: csv, spc, msr, fiu, blkparse or fio; detected if not given.
    #[arg(long, value_parser = parse_format)]
    format: Option<Format>,
    /// Columns of a text in none of these, such as ts,op,lba,sectors; of ts (seconds), ts_ms, ts_us,
    /// ts_100ns, ts_ns, op, lba, offset, block, len, sectors, blocks, dev, and - for what is passed over.
    #[arg(long, value_name = "NAMES", conflicts_with = "format")]
    columns: Option<Columns>,
    /// Count lines that are not understood and pass over them, instead of stopping at the first.
    #[arg(long)]
    skip_bad_lines: bool,
    /// What to make of several devices in a trace.
    #[arg(long, value_enum, default_value = "concatenate")]
    dev_mode: DevModeName,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum DevModeName {
    /// One address space after the other.
    Concatenate,
    /// All share one address space.
    Ignore,
}

fn parse_format(text: &str) -> Result<Format, String> {
    match text {
        "common" => Ok(Format::Common),
        name => name.parse().map_err(|error| format!("{error}")),
    }
}

fn parse_output_format(text: &str) -> Result<OutputFormat, String> {
    match text {
        "common" => Ok(OutputFormat::Common),
        name => name.parse().map_err(|error| format!("{error}")),
    }
}

impl Reading {
    /// The reader's options.
    pub fn options(&self) -> ReadOptions {
        let skip_bad_lines =
            if self.skip_bad_lines { SkipPolicy::Skip { limit: u64::MAX } } else { SkipPolicy::Fail };
        ReadOptions {
            format: self.format,
            columns: self.columns.clone(),
            skip_bad_lines,
            ..ReadOptions::default()
        }
    }

    /// What to make of devices.
    pub fn dev_mode(&self) -> DevMode {
        match self.dev_mode {
            DevModeName::Concatenate => DevMode::Concatenate,
            DevModeName::Ignore => DevMode::Ignore,
        }
    }
}

#[derive(Args, Debug)]
struct InfoArguments {
    /// Trace files, read as one trace in this order.
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
    /// Bytes of the chunk to count with.
    #[arg(long, value_parser = parse_size, default_value = "4KiB", value_name = "SIZE")]
    chunk_size: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
struct ConvertArguments {
    /// Trace files, read as one trace in this order, and last the file to write.
    #[arg(required = true, num_args = 2.., value_names = ["TRACE", "OUT"])]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
    /// Format to write: common (or csv), spc, msr or fio.
    #[arg(long, value_parser = parse_output_format, default_value = "common")]
    to: OutputFormat,
    /// Overwrite the output.
    #[arg(long)]
    force: bool,
}

/// Runs `trace`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.command {
        TraceCommand::Info(info) => run_info(info),
        TraceCommand::Convert(convert) => run_convert(convert),
        TraceCommand::Generate(generate) => generate::run(generate),
        TraceCommand::Published(published) => published::run(published),
    }
}

fn run_info(arguments: &InfoArguments) -> Result<Exit, Failure> {
    let options = arguments.reading.options();
    let mut requests = TraceSequence::open(&named(&arguments.traces), &options)?;
    let dev_mode = arguments.reading.dev_mode();
    let mut collector = StatsCollector::new(StatsOptions { chunk_bytes: arguments.chunk_size, dev_mode })?;
    for request in &mut requests {
        collector.add(&request?)?;
    }
    let (format, labels) = (requests.format(), requests.labels());
    // Of several files joined no figures are published.
    let (stats, comparisons) = match labels {
        [label] if arguments.traces.len() == 1 => compare(label, collector),
        _ => (collector.finish(), None),
    };
    if arguments.json {
        let mut json = stats_json(arguments, format, requests.skipped_count(), &stats);
        json["synthetic"] = synthetic::labels_json(labels, comparisons.as_deref());
        output::line(format_args!("{json:#}"));
    } else {
        output::line(format_args!("format         {}", format.map_or("none", Format::name)));
        output::line(stats);
        if requests.skipped_count() > 0 {
            output::line(format_args!("bad lines      {} passed over", requests.skipped_count()));
        }
        output::print(synthetic::labels_text(labels, comparisons.as_deref()));
    }
    Ok(0)
}

/// Files as they are opened: `-` is the standard input.
pub fn named(traces: &[PathBuf]) -> Vec<PathBuf> {
    let named = |path: &PathBuf| {
        if path.as_os_str() == "-" { PathBuf::from("/dev/stdin") } else { path.clone() }
    };
    traces.iter().map(named).collect()
}

/// What the files say of themselves if they are synthetic. Pipes, which can be read once only, are not asked.
pub fn labels(traces: &[PathBuf], options: &ReadOptions) -> Result<Vec<Label>, Failure> {
    let mut labels = Vec::new();
    for path in traces.iter().filter(|path| path.is_file()) {
        labels.extend_from_slice(TraceReader::open(path, options)?.labels());
    }
    Ok(labels)
}

fn stats_json(arguments: &InfoArguments, format: Option<Format>, skipped: u64, stats: &Stats) -> Value {
    let mut json = json!({
        "files": arguments.traces,
        "format": format.map(Format::name),
        "bad_lines_skipped": skipped,
    });
    if let Value::Object(map) = &mut json {
        map.extend(held::figures(stats));
    }
    json
}

fn run_convert(arguments: &ConvertArguments) -> Result<Exit, Failure> {
    let Some((out, traces)) = arguments.paths.split_last() else {
        return Err(Failure::new("name the trace and the file to write"));
    };
    let options = arguments.reading.options();
    let traces = named(traces);
    let mut requests = TraceSequence::open(&traces, &options)?;
    // The first one is open, all others that are files can be opened twice.
    let mut labels = labels(traces.get(1..).unwrap_or_default(), &options)?;
    labels.splice(0..0, requests.labels().iter().copied());
    let mut labelled = true;
    let written = write_whole(out, arguments.to, arguments.force, |mut writer| {
        labelled = labels.iter().all(|label| writer.label(label, ""));
        Ok(convert(&mut requests, writer)?)
    })?;
    let Some((summary, said)) = written else { return Ok(0) };
    said.line(format_args!(
        "{}: {} requests written, {} left out",
        out.display(),
        summary.written_count,
        summary.left_out_count
    ));
    if requests.skipped_count() > 0 {
        said.line(format_args!("{} bad lines passed over", requests.skipped_count()));
    }
    if !labelled || requests.labels().len() > labels.len() {
        said.line("the requests are synthetic; this format has no room to say so");
    }
    Ok(0)
}

/// Writes a trace whole or not at all, or through a device, which standard output (`-`) counts as; what is
/// said of it goes where the trace does not. Nothing if nobody reads the rest of a pipe.
fn write_whole(
    out: &Path,
    format: OutputFormat,
    force: bool,
    write: impl FnOnce(TraceWriter) -> Result<WriteSummary, Failure>,
) -> Result<Option<(WriteSummary, Said)>, Failure> {
    let compression = Compression::of_path(out)?;
    let is_dash = out.as_os_str() == "-";
    let name = if is_dash { "standard output".to_owned() } else { out.display().to_string() };
    let is_closed = Arc::new(AtomicBool::new(false));
    let write = |file: File| {
        let output = Piped { file, is_closed: Arc::clone(&is_closed) };
        write(TraceWriter::new(&name, Box::new(output), format, compression)?)
    };
    let (said, result) = if is_dash {
        // The open file itself: others may go on behind what is written now.
        let stdout = io::stdout().as_fd().try_clone_to_owned()?;
        (Said::ToStandardError, write(stdout.into()))
    } else {
        let file = OutFile::new("", out)?;
        if file.overwrites() && !force {
            return Err(Failure::new(format!(
                "{}: exists; name another file, or overwrite it with --force",
                out.display()
            )));
        }
        let said = if file.is_stdout() { Said::ToStandardError } else { Said::ToStandardOutput };
        (said, file.write(write))
    };
    match result {
        Err(_) if said == Said::ToStandardError && is_closed.load(Ordering::Relaxed) => Ok(None),
        result => Ok(Some((result?, said))),
    }
}

/// A file that notes that it is a pipe which nobody reads any more.
struct Piped {
    file: File,
    is_closed: Arc<AtomicBool>,
}

impl Write for Piped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).inspect_err(|error| {
            if error.kind() == ErrorKind::BrokenPipe {
                self.is_closed.store(true, Ordering::Relaxed);
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Where lines about a trace go that was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Said {
    /// Where results go.
    ToStandardOutput,
    /// The trace is what goes to standard output.
    ToStandardError,
}

impl Said {
    fn line(self, text: impl Display) {
        match self {
            Self::ToStandardOutput => output::line(text),
            Self::ToStandardError => output::warn(text),
        }
    }
}
