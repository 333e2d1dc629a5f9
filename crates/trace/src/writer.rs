//! Writing a trace.
//!
//! | format | what is lost |
//! |---|---|
//! | `csv` | offset and length of flushes, which mean nothing |
//! | `spc` | flushes and trims; offsets must be whole 512-byte sectors |
//! | `msr` | flushes and trims; the time before the first request (file times count from the first line) |
//! | `fio` (version 2) | times are rounded down to the last wait, less than 100 us off (fio ignores shorter waits); times that go back stay at the latest; offset and length of flushes |

use crate::format::{fio_header, header};
use crate::{Label, MAX_END_BYTES, Op, Request, TraceError, UnknownFormatName};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::str::FromStr;

/// fio passes over waits shorter than this.
const FIO_WAIT_US_MIN: u64 = 100;
/// Preset of xz: a third of the memory of the usual 6 and twice as fast, for files a few percent larger.
const XZ_PRESET: u32 = 3;
/// Files that name these endings are packed in a way that is not written.
const NOT_WRITTEN: [&str; 10] = ["7z", "br", "bz2", "lz", "lz4", "lzma", "lzo", "tgz", "z", "zip"];
/// 1 January 2007 as a Windows file time, in 100 ns; MSR Cambridge traces were taken that year.
const MSR_EPOCH_TICKS: u64 = 128_120_832_000_000_000;

/// The formats that can be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum OutputFormat {
    /// The common CSV form.
    Common,
    /// SPC.
    Spc,
    /// MSR Cambridge CSV.
    Msr,
    /// fio iolog version 2, files named `dev` + number.
    Fio,
}

impl OutputFormat {
    /// The names on command lines.
    pub const NAMES: [&'static str; 4] = ["csv", "spc", "msr", "fio"];
}

impl FromStr for OutputFormat {
    type Err = UnknownFormatName;

    fn from_str(text: &str) -> Result<Self, UnknownFormatName> {
        Ok(match text {
            "csv" => Self::Common,
            "spc" => Self::Spc,
            "msr" => Self::Msr,
            "fio" => Self::Fio,
            other => {
                return Err(UnknownFormatName { found: other.to_owned(), expected: Self::NAMES.join(", ") });
            }
        })
    }
}

/// How a written trace is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Compression {
    /// Not at all.
    None,
    /// zstd.
    Zstd,
    /// gzip.
    Gzip,
    /// xz.
    Xz,
}

impl Compression {
    /// zstd for `.zst`, gzip for `.gz`, xz for `.xz`, in either case; else none.
    ///
    /// # Errors
    /// The name says that the file is packed in another way.
    pub fn of_path(path: &Path) -> Result<Self, WriteError> {
        let ending = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match ending.to_ascii_lowercase().as_str() {
            "zst" | "zstd" => Ok(Self::Zstd),
            "gz" | "gzip" => Ok(Self::Gzip),
            "xz" => Ok(Self::Xz),
            lower if NOT_WRITTEN.contains(&lower) => {
                Err(WriteError::Packing { file: path.display().to_string(), ending: ending.to_owned() })
            }
            _ => Ok(Self::None),
        }
    }
}

/// Why a trace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file could not be made.
    #[error("{file}: cannot create: {source}")]
    Create {
        /// The file.
        file: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The name says that it is packed in a way that is not written.
    #[error("{file}: found the ending .{ending}, expected .zst, .gz or .xz, or none of a packed file")]
    Packing {
        /// The file.
        file: String,
        /// What its name ends in.
        ending: String,
    },
    /// Writing failed.
    #[error("{file}: cannot write: {source}")]
    Write {
        /// The file.
        file: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The format has no way to say this.
    #[error("{file}: request {number} ({request:?}) cannot be written: {reason}")]
    NotExpressible {
        /// The file.
        file: String,
        /// Which request, counted from 1.
        number: u64,
        /// The request.
        request: Request,
        /// What the format lacks.
        reason: &'static str,
    },
    /// The trace to convert could not be read.
    #[error(transparent)]
    Read(#[from] TraceError),
}

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WriteSummary {
    /// Requests written.
    pub written_count: u64,
    /// Flushes and trims left out because the format has none.
    pub left_out_count: u64,
}

enum Sink {
    Plain(BufWriter<Box<dyn Write + Send>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<Box<dyn Write + Send>>>),
    Gzip(flate2::write::GzEncoder<BufWriter<Box<dyn Write + Send>>>),
    Xz(Box<lzma_rust2::XzWriter<BufWriter<Box<dyn Write + Send>>>>),
}

impl Sink {
    fn new(output: Box<dyn Write + Send>, compression: Compression) -> io::Result<Self> {
        let output = BufWriter::with_capacity(64 << 10, output);
        Ok(match compression {
            Compression::None => Self::Plain(output),
            Compression::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(output, 3)?),
            Compression::Gzip => {
                Self::Gzip(flate2::write::GzEncoder::new(output, flate2::Compression::default()))
            }
            Compression::Xz => {
                let options = lzma_rust2::XzOptions::with_preset(XZ_PRESET);
                Self::Xz(Box::new(lzma_rust2::XzWriter::new(output, options)?))
            }
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(output) => output.write_all(bytes),
            Self::Zstd(output) => output.write_all(bytes),
            Self::Gzip(output) => output.write_all(bytes),
            Self::Xz(output) => output.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(output) => output,
            Self::Zstd(output) => output.finish()?,
            Self::Gzip(output) => output.finish()?,
            Self::Xz(output) => output.finish()?,
        }
        .flush()
    }
}

/// Writes requests one at a time. Only [`TraceWriter::finish`] makes the file complete.
pub struct TraceWriter {
    file: String,
    sink: Sink,
    format: OutputFormat,
    /// Text not yet given to the sink.
    text: Vec<u8>,
    summary: WriteSummary,
    fio_devices: BTreeSet<u32>,
    fio_time_us: u64,
}

impl TraceWriter {
    /// Makes a trace file, compressed as its name says.
    pub fn create(path: impl AsRef<Path>, format: OutputFormat) -> Result<Self, WriteError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let compression = Compression::of_path(path)?;
        let file = File::create(path).map_err(|source| WriteError::Create { file: name.clone(), source })?;
        Self::new(&name, Box::new(file), format, compression)
    }

    /// Writes a trace anywhere; `name` stands for the file in errors.
    pub fn new(
        name: &str,
        output: Box<dyn Write + Send>,
        format: OutputFormat,
        compression: Compression,
    ) -> Result<Self, WriteError> {
        let sink = Sink::new(output, compression)
            .map_err(|source| WriteError::Create { file: name.to_owned(), source })?;
        let mut text = Vec::new();
        match format {
            OutputFormat::Common => text.extend_from_slice(header()),
            OutputFormat::Fio => text.extend_from_slice(fio_header()),
            OutputFormat::Spc | OutputFormat::Msr => {}
        }
        if !text.is_empty() {
            text.push(b'\n');
        }
        let (file, summary) = (name.to_owned(), WriteSummary::default());
        Ok(Self { file, sink, format, text, summary, fio_devices: BTreeSet::new(), fio_time_us: 0 })
    }

    /// Puts a label in front of the header, before any request is written; `details`, one line, follows it.
    /// Only the common form has room for one: `false` if the format has none, or requests came before.
    pub fn label(&mut self, label: &Label, details: &str) -> bool {
        let begun = self.summary != WriteSummary::default();
        if self.format != OutputFormat::Common || begun {
            return false;
        }
        let mut text = Vec::new();
        line(&mut text, format_args!("{label}"));
        if !details.is_empty() {
            // Without commas: programs that take the first line for the names of columns see one column, and
            // say so.
            let details = details.replace(", ", "; ").replace(',', ";").replace(['\n', '\r'], " ");
            line(&mut text, format_args!("# {details}"));
        }
        // The header's line is still here. Labels stay in order, each in front of it.
        let header_at = self.text.len() - header().len() - 1;
        self.text.splice(header_at..header_at, text);
        true
    }

    /// Writes one request.
    pub fn write(&mut self, request: &Request) -> Result<(), WriteError> {
        let outcome = match self.format {
            OutputFormat::Common => self.common(request),
            OutputFormat::Spc => self.spc(request),
            OutputFormat::Msr => self.msr(request),
            OutputFormat::Fio => self.fio(request),
        };
        match outcome {
            Ok(true) => self.summary.written_count += 1,
            Ok(false) => self.summary.left_out_count += 1,
            Err(reason) => {
                return Err(WriteError::NotExpressible {
                    file: self.file.clone(),
                    number: self.summary.written_count + self.summary.left_out_count + 1,
                    request: *request,
                    reason,
                });
            }
        }
        if self.text.len() >= 32 << 10 { self.drain() } else { Ok(()) }
    }

    /// Ends the file and says what is in it.
    pub fn finish(mut self) -> Result<WriteSummary, WriteError> {
        if self.format == OutputFormat::Fio {
            for &dev in &self.fio_devices {
                line(&mut self.text, format_args!("dev{dev} close"));
            }
        }
        self.drain()?;
        let file = self.file;
        self.sink.finish().map_err(|source| WriteError::Write { file, source })?;
        Ok(self.summary)
    }

    fn drain(&mut self) -> Result<(), WriteError> {
        self.sink
            .write_all(&self.text)
            .map_err(|source| WriteError::Write { file: self.file.clone(), source })?;
        self.text.clear();
        Ok(())
    }

    fn common(&mut self, request: &Request) -> Result<bool, &'static str> {
        let Request { time_us, dev, offset_bytes, length_bytes, .. } = request;
        let op = match request.op {
            Op::Read => 'R',
            Op::Write => 'W',
            Op::Trim => 'T',
            Op::Flush => {
                line(&mut self.text, format_args!("{time_us},{dev},F,0,0"));
                return Ok(true);
            }
        };
        line(&mut self.text, format_args!("{time_us},{dev},{op},{offset_bytes},{length_bytes}"));
        Ok(true)
    }

    fn spc(&mut self, request: &Request) -> Result<bool, &'static str> {
        let op = match request.op {
            Op::Read => 'r',
            Op::Write => 'w',
            Op::Flush | Op::Trim => return Ok(false),
        };
        if !request.offset_bytes.is_multiple_of(block::SECTOR_BYTES) {
            return Err("its offset is not a multiple of 512 bytes");
        }
        let (lba, seconds) = (request.offset_bytes / block::SECTOR_BYTES, request.time_us / 1_000_000);
        let Request { time_us, dev, length_bytes, .. } = request;
        let fraction = time_us % 1_000_000;
        line(&mut self.text, format_args!("{dev},{lba},{length_bytes},{op},{seconds}.{fraction:06}"));
        Ok(true)
    }

    fn msr(&mut self, request: &Request) -> Result<bool, &'static str> {
        let op = match request.op {
            Op::Read => "Read",
            Op::Write => "Write",
            Op::Flush | Op::Trim => return Ok(false),
        };
        if request.dev >= 1 << 31 {
            return Err("its device is 2^31 or more");
        }
        let ticks = request
            .time_us
            .checked_mul(10)
            .and_then(|ticks| ticks.checked_add(MSR_EPOCH_TICKS))
            .ok_or("its time is beyond the year 58,000")?;
        let Request { dev, offset_bytes, length_bytes, .. } = request;
        line(&mut self.text, format_args!("{ticks},trace,{dev},{op},{offset_bytes},{length_bytes},0"));
        Ok(true)
    }

    fn fio(&mut self, request: &Request) -> Result<bool, &'static str> {
        let Request { time_us, dev, offset_bytes, length_bytes, .. } = request;
        if request.op != Op::Flush && request.end_bytes() > MAX_END_BYTES {
            return Err("it ends beyond byte 2^63 - 1");
        }
        if self.fio_devices.insert(*dev) {
            line(&mut self.text, format_args!("dev{dev} add"));
            line(&mut self.text, format_args!("dev{dev} open"));
        }
        let wait_us = time_us.saturating_sub(self.fio_time_us);
        if wait_us >= FIO_WAIT_US_MIN {
            line(&mut self.text, format_args!("dev{dev} wait {wait_us} 0"));
            self.fio_time_us = *time_us;
        }
        let action = match request.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::Flush => {
                line(&mut self.text, format_args!("dev{dev} sync 0 0"));
                return Ok(true);
            }
        };
        line(&mut self.text, format_args!("dev{dev} {action} {offset_bytes} {length_bytes}"));
        Ok(true)
    }
}

fn line(text: &mut Vec<u8>, content: std::fmt::Arguments<'_>) {
    text.write_fmt(content).expect("writing to memory cannot fail");
    text.push(b'\n');
}

/// Writes every request of a trace.
pub fn convert(
    requests: impl IntoIterator<Item = Result<Request, TraceError>>,
    mut writer: TraceWriter,
) -> Result<WriteSummary, WriteError> {
    for request in requests {
        writer.write(&request?)?;
    }
    writer.finish()
}
