//! Streaming readers: one file, or several as one trace.

use crate::clock::Clock;
use crate::error::excerpt;
use crate::format::Parser;
use crate::source::{Lines, Span, file_size};
use crate::{BlkparseAction, Columns, Format, Label, LineFault, Progress, Request, TraceError};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to do with a line that is not understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SkipPolicy {
    /// It ends the trace with an error.
    #[default]
    Fail,
    /// It is counted and passed over, up to `limit` of them.
    Skip {
        /// How many may be passed over; one more is an error.
        limit: u64,
    },
}

/// How to read a trace.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The format; `None` detects it from the first lines.
    pub format: Option<Format>,
    /// What to do with bad lines.
    pub skip_bad_lines: SkipPolicy,
    /// Which events of a blkparse text are the requests.
    pub blkparse_action: BlkparseAction,
    /// Names of the columns of a text that is in none of the formats; then `format` does not count.
    pub columns: Option<Columns>,
}

/// Reads requests from one trace, in bounded memory. After an error it yields nothing more.
pub struct TraceReader {
    file: Arc<str>,
    lines: Lines,
    parser: Parser,
    format: Format,
    policy: SkipPolicy,
    progress: Progress,
    skipped_count: u64,
    first_skipped: Option<TraceError>,
    labels: Vec<Label>,
    /// Of a file alone whose clock counts from 1970, or another moment that says nothing.
    clock: Option<Clock>,
    done: bool,
}

impl TraceReader {
    /// Opens a trace file, plain, gzip, zstd or xz.
    pub fn open(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self, TraceError> {
        let path = path.as_ref();
        let name: Arc<str> = path.display().to_string().into();
        let file = File::open(path).map_err(|source| TraceError::Open { file: Arc::clone(&name), source })?;
        let total_bytes = file_size(&file);
        Self::start(name, Box::new(file), Progress::new(total_bytes), options)
    }

    /// Reads a trace from anywhere; `name` stands for the file in errors.
    pub fn from_reader(
        name: &str,
        content: Box<dyn Read + Send>,
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        Self::start(name.into(), content, Progress::new(None), options)
    }

    fn start(
        file: Arc<str>,
        content: Box<dyn Read + Send>,
        progress: Progress,
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        let failed = |source: io::Error| TraceError::Read { file: Arc::clone(&file), line: 0, source };
        let mut lines = Lines::new(content, &progress).map_err(failed)?;
        let (prefix, whole) = lines.peek().map_err(failed)?;
        let chosen = options.columns.as_ref().map_or(options.format, |_| Some(Format::Columns));
        let format = match chosen {
            Some(format) => format,
            None if whole && prefix.trim_ascii().is_empty() => {
                return Err(TraceError::Empty { file: Arc::clone(&file) });
            }
            None => Format::detect(prefix, whole).ok_or_else(|| match packed(prefix) {
                Some((packed, unpack)) => TraceError::Packed { file: Arc::clone(&file), packed, unpack },
                None => TraceError::UnknownFormat {
                    file: Arc::clone(&file),
                    known: &Format::NAMES,
                    begin: excerpt(prefix.split(|&byte| byte == b'\n').next().unwrap_or_default()),
                },
            })?,
        };
        let mut parser = Parser::new(format, options.blkparse_action, options.columns.as_ref());
        parser.look_ahead(prefix);
        let labels = if format == Format::Common { labels(prefix) } else { Vec::new() };
        Ok(Self {
            file,
            lines,
            parser,
            format,
            policy: options.skip_bad_lines,
            progress,
            skipped_count: 0,
            first_skipped: None,
            labels,
            clock: format.has_clock_time().then(Clock::default),
            done: false,
        })
    }

    /// The format read, detected or given.
    pub fn format(&self) -> Format {
        self.format
    }

    /// What the file says of itself if it is synthetic, or made of such: the labels at its beginning,
    /// at most 64.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// How far it has come; the handle stays valid while the reader is used.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Lines read so far.
    pub fn line_count(&self) -> u64 {
        self.lines.line_number()
    }

    /// Bad lines passed over so far.
    pub fn skipped_count(&self) -> u64 {
        self.skipped_count
    }

    /// The first bad line passed over.
    pub fn first_skipped(&self) -> Option<&TraceError> {
        self.first_skipped.as_ref()
    }

    fn step(&mut self) -> Result<Option<Request>, TraceError> {
        loop {
            let span = self.lines.next_span().map_err(|source| TraceError::Read {
                file: Arc::clone(&self.file),
                line: self.lines.line_number(),
                source,
            })?;
            let fault = match span {
                None => return Ok(None),
                Some(Span::TooLong) => LineFault::TooLong,
                Some(Span::Text(span)) => {
                    let line = self.lines.text(span);
                    if line.trim_ascii().is_empty() {
                        continue;
                    }
                    match self.parser.parse(line) {
                        Ok(Some(request)) => return Ok(Some(request)),
                        Ok(None) => continue,
                        Err(fault) => fault,
                    }
                }
            };
            self.bad_line(fault)?;
        }
    }

    #[cold]
    fn bad_line(&mut self, what: LineFault) -> Result<(), TraceError> {
        let (file, line) = (Arc::clone(&self.file), self.lines.line_number());
        match self.policy {
            SkipPolicy::Fail => Err(TraceError::Line { file, line, what }),
            SkipPolicy::Skip { limit } if self.skipped_count >= limit => {
                Err(TraceError::TooManyBadLines { file, line, limit, what })
            }
            SkipPolicy::Skip { .. } => {
                self.skipped_count += 1;
                self.first_skipped.get_or_insert(TraceError::Line { file, line, what });
                Ok(())
            }
        }
    }
}

/// What a file is packed with that cannot be unpacked here, and what can.
fn packed(prefix: &[u8]) -> Option<(&'static str, &'static str)> {
    const KNOWN: [(&[u8], &str, &str); 4] = [
        (b"BZh", "bzip2", "bzip2 -dc"),
        (b"PK\x03\x04", "a zip archive", "unzip -p"),
        (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "7z x -so"),
    ];
    let found = KNOWN.iter().find(|(magic, ..)| prefix.starts_with(magic));
    found.map(|(_, packed, unpack)| (*packed, *unpack))
}

/// The labels among the comments that a common trace begins with.
fn labels(prefix: &[u8]) -> Vec<Label> {
    const COMMENTS: usize = 64;
    let comments =
        prefix.split(|&byte| byte == b'\n').take(COMMENTS).take_while(|line| line.starts_with(b"#"));
    comments.filter_map(Label::parse).collect()
}

impl Iterator for TraceReader {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let mut item = self.step().transpose();
        self.done = !matches!(item, Some(Ok(_)));
        if let (Some(Ok(request)), Some(clock)) = (&mut item, &mut self.clock) {
            request.time_us = clock.time_us(request.time_us);
        }
        item
    }
}

/// Reads several files, one after the other, as one trace.
///
/// Times count from the first request. A file that begins where the one before ended goes on by the same
/// clock, another one begins when that ends.
pub struct TraceSequence {
    current: Option<TraceReader>,
    waiting: VecDeque<PathBuf>,
    options: ReadOptions,
    progress: Progress,
    clock: Clock,
    skipped_count: u64,
    /// Of the first file.
    format: Option<Format>,
    /// Of the files opened so far.
    labels: Vec<Label>,
}

impl TraceSequence {
    /// Opens the first file; the others are opened when their turn comes, but must exist now.
    pub fn open(paths: &[PathBuf], options: &ReadOptions) -> Result<Self, TraceError> {
        let mut total_bytes = Some(0u64);
        for path in paths {
            let meta = std::fs::metadata(path)
                .map_err(|source| TraceError::Open { file: path.display().to_string().into(), source })?;
            let size = meta.is_file().then_some(meta.len());
            total_bytes = total_bytes.zip(size).map(|(total, size)| total.saturating_add(size));
        }
        let mut sequence = Self {
            current: None,
            waiting: paths.iter().cloned().collect(),
            options: options.clone(),
            progress: Progress::new(total_bytes),
            clock: Clock::default(),
            skipped_count: 0,
            format: None,
            labels: Vec::new(),
        };
        sequence.open_next()?;
        Ok(sequence)
    }

    /// How far it has come over all files.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Bad lines passed over so far; the limit of [`SkipPolicy::Skip`] holds for each file.
    pub fn skipped_count(&self) -> u64 {
        self.skipped_count + self.current.as_ref().map_or(0, TraceReader::skipped_count)
    }

    /// The format of the first file, detected or given.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// What the files that were opened so far say of themselves if they are synthetic, in their order: all of
    /// them when the last request was read, also of what can be opened once only.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    fn open_next(&mut self) -> Result<bool, TraceError> {
        self.skipped_count += self.current.take().map_or(0, |reader| reader.skipped_count());
        let Some(path) = self.waiting.pop_front() else {
            return Ok(false);
        };
        let name: Arc<str> = path.display().to_string().into();
        let file =
            File::open(&path).map_err(|source| TraceError::Open { file: Arc::clone(&name), source })?;
        let progress = self.progress.with_total(file_size(&file));
        let reader = TraceReader::start(name, Box::new(file), progress, &self.options)?;
        self.format.get_or_insert(reader.format());
        self.labels.extend_from_slice(reader.labels());
        self.current = Some(TraceReader { clock: None, ..reader });
        self.clock.next_file();
        Ok(true)
    }

    fn step(&mut self) -> Result<Option<Request>, TraceError> {
        loop {
            if let Some(item) = self.current.as_mut().and_then(Iterator::next) {
                let mut request = item?;
                request.time_us = self.clock.time_us(request.time_us);
                return Ok(Some(request));
            }
            if !self.open_next()? {
                return Ok(None);
            }
        }
    }
}

impl Iterator for TraceSequence {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.step().transpose();
        if matches!(item, Some(Err(_))) {
            self.waiting.clear();
        }
        item
    }
}
