//! The trace formats, each a parser of one line.
//!
//! | format | line | time | device |
//! |---|---|---|---|
//! | `csv` | `ts_us,dev,op,offset,len`, op one of R W F(lush) T(rim), header optional, `#` comments before it | us | as given |
//! | `spc` | `ASU,LBA,size,opcode,seconds[,...]`, LBA in 512-byte sectors, size in bytes (UMass) | cut to us | ASU |
//! | `msr` | `filetime,host,disk,Read or Write,offset,size,response` (MSR Cambridge) | 100 ns ticks, counted from the first line, cut to us | disk; see below |
//! | `fiu` | `ns pid process lba sectors W or R major minor md5` | cut to us | major, minor |
//! | `blkparse` | blkparse's default text | cut to us | major, minor |
//! | `fio` | fio iolog version 2 or 3 | us; version 2 from its waits | file name; see below |
//!
//! MSR: in a file with several hosts the disks of the later hosts are numbered from 2^31 in order of
//! appearance. fio: a file named `dev` + number has that number, others are numbered from 0 in order of
//! appearance. A major and a minor number make the device number as in Linux: major x 2^20 + minor.

mod blkparse;
mod columns;
mod common;
mod fio;
mod fiu;
mod msr;
mod spc;

pub use columns::{Columns, ColumnsError};

use crate::{LineFault, Request};
use std::fmt;
use std::str::FromStr;

/// Which events of a blkparse text are the requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum BlkparseAction {
    /// Queue events if the beginning of the file has one, else issue events. A file whose first queue event
    /// comes later than that, after issue events, is an error rather than a mixture.
    #[default]
    Auto,
    /// Q: what the file system or application asked for.
    Queue,
    /// D: what the device was given.
    Issue,
}

/// A trace format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Format {
    /// The common CSV form.
    Common,
    /// Storage Performance Council, as published by UMass.
    Spc,
    /// MSR Cambridge CSV.
    Msr,
    /// Florida International University text.
    Fiu,
    /// blkparse text output, default format.
    Blkparse,
    /// fio iolog, version 2 or 3 as its first line says.
    Fio,
    /// Columns that the caller names.
    Columns,
}

/// A format's name was not one of [`Format::NAMES`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("trace format \"{found}\", expected one of {expected}")]
pub struct UnknownFormatName {
    /// What was given.
    pub found: String,
    /// The names possible.
    pub expected: String,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 6] = [Self::Common, Self::Spc, Self::Msr, Self::Fiu, Self::Blkparse, Self::Fio];
    /// Their names, in the same order.
    pub const NAMES: [&'static str; 6] = ["csv", "spc", "msr", "fiu", "blkparse", "fio"];

    /// The name on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Common => "csv",
            Self::Spc => "spc",
            Self::Msr => "msr",
            Self::Fiu => "fiu",
            Self::Blkparse => "blkparse",
            Self::Fio => "fio",
            Self::Columns => "columns",
        }
    }

    /// Whether a file alone counts time from its first request on: its clock shows a date.
    pub(crate) fn has_clock_time(self) -> bool {
        match self {
            Self::Msr | Self::Columns => true,
            Self::Common | Self::Spc | Self::Fiu | Self::Blkparse | Self::Fio => false,
        }
    }

    /// The format that most of the first lines are in; `None` if no line is in any.
    ///
    /// `prefix` is the beginning of the content; its last line counts only if it is `whole`.
    pub(crate) fn detect(prefix: &[u8], whole: bool) -> Option<Self> {
        const LINES: usize = 64;
        let mut best = (0, None);
        for format in Self::ALL {
            let mut parser = Parser::new(format, BlkparseAction::Auto, None);
            let hits = first_lines(prefix, whole)
                .take(LINES)
                .filter(|line| match parser.parse(line) {
                    Ok(Some(_)) => true,
                    // These two know their own lines that are not requests; the others pass
                    // over headers only.
                    Ok(None) => matches!(format, Self::Blkparse | Self::Fio),
                    Err(_) => false,
                })
                .count();
            if hits > best.0 {
                best = (hits, Some(format));
            }
        }
        // A common trace without a good line: empty, or its first line is what is wrong.
        best.1.or_else(|| {
            let mut lines = first_lines(prefix, whole).map(<[u8]>::trim_ascii);
            let first = lines.find(|line| !line.starts_with(b"#"));
            (first == Some(common::HEADER)).then_some(Self::Common)
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormatName;

    fn from_str(text: &str) -> Result<Self, UnknownFormatName> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == text)
            .ok_or_else(|| UnknownFormatName { found: text.to_owned(), expected: Self::NAMES.join(", ") })
    }
}

fn first_lines(prefix: &[u8], whole: bool) -> impl Iterator<Item = &[u8]> {
    let complete = match memchr::memrchr(b'\n', prefix) {
        Some(last) if !whole => &prefix[..last],
        Some(_) | None => prefix,
    };
    let complete = complete.strip_prefix(b"\xef\xbb\xbf").unwrap_or(complete);
    complete
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.trim_ascii().is_empty())
}

/// The state of reading one file in one format. `Ok(None)` is a line that is no request: a header, an event
/// of another kind, a summary.
pub(crate) enum Parser {
    Common(common::Parser),
    Spc,
    Msr(msr::Parser),
    Fiu,
    Blkparse(blkparse::Parser),
    Fio(fio::Parser),
    Columns(columns::Parser),
}

impl Parser {
    pub(crate) fn new(format: Format, action: BlkparseAction, columns: Option<&Columns>) -> Self {
        if let Some(columns) = columns {
            return Self::Columns(columns::Parser::new(columns.clone()));
        }
        match format {
            // Nobody asks for columns without their names.
            Format::Columns => Self::Common(common::Parser::default()),
            Format::Common => Self::Common(common::Parser::default()),
            Format::Spc => Self::Spc,
            Format::Msr => Self::Msr(msr::Parser::default()),
            Format::Fiu => Self::Fiu,
            Format::Blkparse => Self::Blkparse(blkparse::Parser::new(action)),
            Format::Fio => Self::Fio(fio::Parser::default()),
        }
    }

    /// Lets a parser that has to know more than one line look ahead.
    pub(crate) fn look_ahead(&mut self, prefix: &[u8]) {
        match self {
            Self::Blkparse(parser) => parser.look_ahead(prefix),
            Self::Common(_) | Self::Spc | Self::Msr(_) | Self::Fiu | Self::Fio(_) | Self::Columns(_) => {}
        }
    }

    /// Reads one line, which is not blank.
    #[inline]
    pub(crate) fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, LineFault> {
        let request = match self {
            Self::Common(parser) => parser.parse(line)?,
            Self::Spc => Some(spc::parse(line)?),
            Self::Msr(parser) => parser.parse(line)?,
            Self::Fiu => Some(fiu::parse(line)?),
            Self::Blkparse(parser) => parser.parse(line)?,
            Self::Fio(parser) => parser.parse(line)?,
            Self::Columns(parser) => parser.parse(line)?,
        };
        request.map(Request::checked).transpose()
    }
}

/// First line of the common CSV form.
pub(crate) fn header() -> &'static [u8] {
    common::HEADER
}

/// First line of a fio iolog of version 2.
pub(crate) fn fio_header() -> &'static [u8] {
    fio::HEADER_2
}

/// Device number of a major and a minor number, as in Linux.
fn device_number(major: &[u8], minor: &[u8]) -> Result<u32, LineFault> {
    let major = crate::fields::small("major number", major, 2047, "a number below 2048")?;
    let minor = crate::fields::small("minor number", minor, (1 << 20) - 1, "a number below 2^20")?;
    Ok((major << 20) | minor)
}
