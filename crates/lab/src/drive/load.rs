//! Which trace, how it is read and prepared; the same for `replay` and `simulate`.

use crate::failure::{EXIT_MISUSED, Failure};
use crate::trace::{Reading, labels, named, synthetic::describe};
use crate::watch::{Shown, Watch};
use clap::Args;
use node::units::show_size;
use serde_json::{Value, json};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use trace::{Op, PrepareOptions, Request, TraceError, TraceSequence, prepare, prepare_slice};

/// Trace and preparation.
#[derive(Args, Debug)]
pub struct TraceOptions {
    /// Trace file, - for the standard input; given several times, the files are one trace in that order.
    #[arg(long = "trace", value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Drop the 1 MiB segments that the trace does not touch and move the others together.
    #[arg(long)]
    pub compact: bool,
    /// Replay up to so many writes.
    #[arg(long, value_name = "WRITES")]
    pub head: Option<u64>,
    /// Leave out what is no write.
    #[arg(long)]
    pub writes_only: bool,
    /// Round requests to 512-byte sectors instead of chunks.
    #[arg(long)]
    pub sectors: bool,
}

/// A trace in memory instead of files, from a program that holds the laboratory.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Its requests, as a reader gives them.
    pub requests: Vec<Request>,
    /// What it is called.
    pub name: String,
    /// What it says of itself if it is synthetic.
    pub synthetic: Option<String>,
}

/// A prepared trace.
pub struct Loaded {
    /// Its requests.
    pub requests: Vec<Request>,
    /// The volume that they need.
    pub footprint_bytes: u64,
    /// Lines passed over.
    pub bad_lines: u64,
    /// What the files say of themselves if they are synthetic.
    pub synthetic: Vec<String>,
}

/// A trace whose bad lines can still be counted when somebody else has taken it.
struct Tallied<'a> {
    sequence: TraceSequence,
    bad_lines: Rc<Cell<u64>>,
    watch: Option<&'a Watch>,
}

impl Iterator for Tallied<'_> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Cut short, which is noticed behind it.
        if self.watch.is_some_and(Watch::is_stopped) {
            return None;
        }
        let item = self.sequence.next();
        self.bad_lines.set(self.sequence.skipped_count());
        item
    }
}

impl TraceOptions {
    /// Reads and prepares the trace for chunks of this size.
    pub fn load(&self, chunk_bytes: u64) -> Result<Loaded, Failure> {
        self.load_watched(chunk_bytes, Shown::Nothing)
    }

    /// The trace in memory, if there is one, else that of the files.
    pub fn load_or(
        &self,
        memory: Option<&Memory>,
        chunk_bytes: u64,
        shown: Shown<'_>,
    ) -> Result<Loaded, Failure> {
        let Some(memory) = memory else { return self.load_watched(chunk_bytes, shown) };
        if let Some(file) = self.traces.first() {
            let (name, file) = (&memory.name, file.display());
            return Err(Failure::new(format!(
                "--trace: found the file {file} beside {name} in memory, expected one of them"
            )));
        }
        let loaded = self.prepare(&memory.requests, memory.name.clone(), chunk_bytes)?;
        Ok(Loaded { synthetic: memory.synthetic.iter().cloned().collect(), ..loaded })
    }

    fn load_watched(&self, chunk_bytes: u64, shown: Shown<'_>) -> Result<Loaded, Failure> {
        shown.begin("read", 0)?;
        if self.traces.is_empty() {
            return Err(Failure::new("no trace is named; expected --trace FILE").with_exit(EXIT_MISUSED));
        }
        let traces = named(&self.traces);
        let options = self.preparation(chunk_bytes);
        if !traces.iter().all(|path| path.is_file()) {
            return self.load_once(&traces, chunk_bytes);
        }
        let bad_lines = Rc::new(Cell::new(0));
        let open = || {
            let sequence = TraceSequence::open(&traces, &self.reading.options())?;
            Ok(Tallied { sequence, bad_lines: Rc::clone(&bad_lines), watch: shown.watch() })
        };
        let mut prepared = prepare(open, &options)?;
        let footprint_bytes = prepared.footprint_bytes();
        let requests = prepared.by_ref().collect::<Result<Vec<_>, _>>()?;
        shown.check()?;
        if requests.is_empty() {
            return Err(Failure::new(format!("{}: no requests to replay", self.traces[0].display())));
        }
        let synthetic = labels(&traces, &self.reading.options())?.iter().map(describe).collect();
        Ok(Loaded { requests, footprint_bytes, bad_lines: bad_lines.get(), synthetic })
    }

    /// The same of what can be read once only, as a pipe: all of it into memory first.
    fn load_once(&self, traces: &[PathBuf], chunk_bytes: u64) -> Result<Loaded, Failure> {
        let mut sequence = TraceSequence::open(traces, &self.reading.options())?;
        let requests = sequence.by_ref().collect::<Result<Vec<_>, _>>()?;
        let mut loaded = self.prepare(&requests, self.traces[0].display().to_string(), chunk_bytes)?;
        loaded.bad_lines = sequence.skipped_count();
        loaded.synthetic = sequence.labels().iter().map(describe).collect();
        Ok(loaded)
    }

    /// Prepares requests that lie in memory; `said` is what they are.
    pub fn prepare(&self, requests: &[Request], said: String, chunk_bytes: u64) -> Result<Loaded, Failure> {
        let mut prepared = prepare_slice(requests, &self.preparation(chunk_bytes))?;
        let footprint_bytes = prepared.footprint_bytes();
        let requests = prepared.by_ref().collect::<Result<Vec<_>, _>>()?;
        if requests.is_empty() {
            return Err(Failure::new(format!("{said}: no requests to replay")));
        }
        Ok(Loaded { requests, footprint_bytes, bad_lines: 0, synthetic: vec![said] })
    }

    /// The files that it is read from, and what names them.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &Path)> {
        fn named(path: &Path) -> &Path {
            if path.as_os_str() == "-" { Path::new("/dev/stdin") } else { path }
        }
        self.traces.iter().map(|path| ("--trace", named(path)))
    }

    fn preparation(&self, chunk_bytes: u64) -> PrepareOptions {
        PrepareOptions {
            compact: self.compact,
            dev_mode: self.reading.dev_mode(),
            chunk_bytes: if self.sectors { 512 } else { chunk_bytes },
            writes_only: self.writes_only,
            write_limit: self.head,
            ..PrepareOptions::default()
        }
    }
}

impl Loaded {
    /// Refuses a volume that is too small.
    pub fn check_footprint(&self, volume_bytes: u64) -> Result<(), Failure> {
        if self.footprint_bytes <= volume_bytes {
            return Ok(());
        }
        Err(Failure::new(format!(
            "the trace needs a volume of {}, this one has {}; use --compact, or a larger array",
            show_size(self.footprint_bytes),
            show_size(volume_bytes)
        )))
    }

    /// What was read, and how it was prepared.
    pub fn json(&self, options: &TraceOptions) -> Value {
        json!({
            "files": options.traces,
            "hash": format!("fnv1a64:{:016x}", self.hash()),
            "requests": self.requests.len(),
            "footprint_bytes": self.footprint_bytes,
            "bad_lines_skipped": self.bad_lines,
            "synthetic": self.synthetic,
            "compact": options.compact,
            "head_writes": options.head,
            "writes_only": options.writes_only,
            "sectors": options.sectors,
        })
    }

    /// A hash of the prepared requests, for provenance.
    pub fn hash(&self) -> u64 {
        hash(&self.requests)
    }
}

/// A hash of requests: FNV-1a, 64 bits.
pub fn hash(requests: &[Request]) -> u64 {
    let op = |op| match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Flush => 2,
        Op::Trim => 3,
    };
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for request in requests {
        for word in [request.time_us, op(request.op), request.offset_bytes, request.length_bytes] {
            for byte in word.to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    hash
}
