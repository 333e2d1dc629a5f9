//! Text in columns that the caller names, for forms that no reader of ours knows.
//!
//! Fields are separated by commas, semicolons or tabs if the first line has one, else by blanks. Lines in
//! front of the first request that have a name wherever a number is due are headings and are passed over.

use crate::error::excerpt;
use crate::fields::{number, small, units_ns};
use crate::{LineFault, Op, Request};
use std::fmt;
use std::str::FromStr;

/// Fields of a line at most.
const FIELDS_MAX: usize = 64;

/// What a column has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
enum Column {
    /// A time; what a count of it is in nanoseconds.
    Time(u64),
    /// Read or write, by the first letter, or flush or trim (or discard).
    Op,
    /// The first byte, in such units.
    Start(u64),
    /// Bytes, in such units.
    Length(u64),
    /// The number of the device.
    Dev,
    /// Anything else.
    Ignored,
}

/// The columns of a text, such as `ts,op,lba,sectors`.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Columns {
    names: String,
    list: Vec<Column>,
}

/// Columns that are none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnsError {
    /// No column has this name.
    #[error("column \"{0}\", expected one of {names}, or - for what is passed over", names = NAMES)]
    Unknown(String),
    /// Something is there twice or not at all.
    #[error(
        "columns \"{found}\", expected one of each of op, an address and a length, and a time or a dev at most once"
    )]
    Missing {
        /// What was given.
        found: String,
    },
}

const NAMES: &str = "ts (seconds), ts_ms, ts_us, ts_ns, ts_100ns, op, lba (sectors of 512 bytes), offset (bytes), block (4 KiB), len \
                     (bytes), sectors, blocks (4 KiB), dev";

impl FromStr for Columns {
    type Err = ColumnsError;

    fn from_str(text: &str) -> Result<Self, ColumnsError> {
        let column = |name: &str| {
            Ok(match name {
                "ts" | "ts_s" => Column::Time(1_000_000_000),
                "ts_ms" => Column::Time(1_000_000),
                "ts_us" => Column::Time(1000),
                "ts_100ns" => Column::Time(100),
                "ts_ns" => Column::Time(1),
                "op" => Column::Op,
                "lba" => Column::Start(512),
                "offset" => Column::Start(1),
                "block" => Column::Start(4096),
                "len" => Column::Length(1),
                "sectors" => Column::Length(512),
                "blocks" => Column::Length(4096),
                "dev" => Column::Dev,
                "-" => Column::Ignored,
                other => return Err(ColumnsError::Unknown(other.to_owned())),
            })
        };
        let list = text.split(',').map(str::trim).map(column).collect::<Result<Vec<_>, _>>()?;
        let count = |is: fn(&Column) -> bool| list.iter().filter(|column| is(column)).count();
        let once = [
            count(|column| matches!(column, Column::Op)),
            count(|column| matches!(column, Column::Start(_))),
            count(|column| matches!(column, Column::Length(_))),
        ];
        let most = [
            count(|column| matches!(column, Column::Time(_))),
            count(|column| matches!(column, Column::Dev)),
        ];
        if once != [1, 1, 1] || most.iter().any(|&count| count > 1) || list.len() > FIELDS_MAX {
            return Err(ColumnsError::Missing { found: text.to_owned() });
        }
        Ok(Self { names: text.to_owned(), list })
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names)
    }
}

/// The state of reading one file.
pub(crate) struct Parser {
    columns: Columns,
    separator: Option<u8>,
    is_past_headings: bool,
    /// What the first time has beyond whole microseconds: these are counted from there.
    part_ns: Option<u64>,
}

impl Parser {
    pub(crate) fn new(columns: Columns) -> Self {
        Self { columns, separator: None, is_past_headings: false, part_ns: None }
    }

    pub(crate) fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, LineFault> {
        if !self.is_past_headings && line.starts_with(b"#") {
            return Ok(None);
        }
        let separator = *self.separator.get_or_insert_with(|| {
            [b',', b';', b'\t'].into_iter().find(|separator| line.contains(separator)).unwrap_or(b' ')
        });
        match self.request(line, separator) {
            Ok(request) => {
                self.is_past_headings = true;
                Ok(Some(request))
            }
            Err(LineFault::Number { .. } | LineFault::Op { .. })
                if !self.is_past_headings && self.is_heading(line, separator) =>
            {
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    /// A name wherever a number is due.
    fn is_heading(&self, line: &[u8], separator: u8) -> bool {
        let is_name = |field: &[u8]| {
            // A byte order mark is none of it, nor what a name stands in.
            let first = field.iter().find(|byte| byte.is_ascii() && !b"\"'#( [%".contains(byte));
            first.is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        };
        self.columns.list.iter().zip(fields(line, separator)).all(|(column, field)| match column {
            Column::Time(_) | Column::Start(_) | Column::Length(_) | Column::Dev => is_name(field),
            Column::Op | Column::Ignored => true,
        })
    }

    /// Its time is that of the file's clock.
    fn request(&mut self, line: &[u8], separator: u8) -> Result<Request, LineFault> {
        let mut request = Request { time_us: 0, dev: 0, op: Op::Read, offset_bytes: 0, length_bytes: 0 };
        let (mut offset, mut length, mut ns) = (Ok(0), Ok(0), 0);
        let mut fields = fields(line, separator);
        for column in &self.columns.list {
            let field = fields.next().ok_or_else(|| LineFault::Shape {
                found: excerpt(line),
                expected: "a field for each of --columns",
            })?;
            match *column {
                Column::Time(unit_ns) => ns = time_ns(field, unit_ns)?,
                Column::Op => request.op = op(field)?,
                Column::Start(unit) => offset = scaled("address", field, unit),
                Column::Length(unit) => length = scaled("length", field, unit),
                Column::Dev => request.dev = small("dev", field, u32::MAX, "a number below 2^32")?,
                Column::Ignored => {}
            }
        }
        // Of a flush neither counts, whatever stands there.
        if request.op != Op::Flush {
            (request.offset_bytes, request.length_bytes) = (offset?, length?);
        }
        let part_ns = *self.part_ns.get_or_insert(ns % 1000);
        request.time_us = ns.saturating_sub(part_ns) / 1000;
        Ok(request)
    }
}

fn fields(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    line.split(move |&byte| byte == separator)
        .filter(move |field| separator != b' ' || !field.is_empty())
        .map(<[u8]>::trim_ascii)
}

/// A count of a unit, with decimals where it is a second or a part of one that has some.
fn time_ns(field: &[u8], unit_ns: u64) -> Result<u64, LineFault> {
    if unit_ns >= 1000 {
        return units_ns("time", field, unit_ns);
    }
    number("time", field)?.checked_mul(unit_ns).ok_or_else(|| LineFault::Number {
        field: "time",
        found: excerpt(field),
        expected: "a time below 2^64 ns",
    })
}

fn scaled(name: &'static str, field: &[u8], unit: u64) -> Result<u64, LineFault> {
    number(name, field)?.checked_mul(unit).ok_or_else(|| LineFault::Number {
        field: name,
        found: excerpt(field),
        expected: "bytes below 2^64",
    })
}

fn op(field: &[u8]) -> Result<Op, LineFault> {
    match field.first().map(u8::to_ascii_uppercase) {
        Some(b'R') => Ok(Op::Read),
        Some(b'W') => Ok(Op::Write),
        Some(b'F') => Ok(Op::Flush),
        Some(b'T' | b'D') => Ok(Op::Trim),
        Some(_) | None => Err(LineFault::Op {
            found: excerpt(field),
            expected: "what begins with R(ead), W(rite), F(lush), T(rim) or D(iscard)",
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::{Columns, Parser};
    use crate::{Op, ReadOptions, Request, TraceReader};

    fn try_read(columns: &str, lines: &[&str]) -> Result<Vec<Request>, String> {
        let options = ReadOptions { columns: Some(columns.parse().unwrap()), ..ReadOptions::default() };
        let text = std::io::Cursor::new(lines.join("\n"));
        let reader = TraceReader::from_reader("t", Box::new(text), &options);
        reader.and_then(Iterator::collect).map_err(|error| error.to_string())
    }

    fn read(columns: &str, lines: &[&str]) -> Vec<Request> {
        try_read(columns, lines).unwrap()
    }

    #[test]
    fn columns_are_read_in_their_order_and_units() {
        let write = |time_us, dev, offset_bytes, length_bytes| Request {
            time_us,
            dev,
            op: Op::Write,
            offset_bytes,
            length_bytes,
        };
        assert_eq!(
            read("ts,op,lba,sectors", &["time,op,lba,size", "5.5,Write,8,16", "6,w,9,1"]),
            [write(0, 0, 4096, 8192), write(500_000, 0, 4608, 512)]
        );
        assert_eq!(
            read("dev,op,offset,len,ts_us", &["3,W,4096,512,1000", "3,W,0,512,1007"]),
            [write(0, 3, 4096, 512), write(7, 3, 0, 512)]
        );
        assert_eq!(read("-,op,block,blocks,ts_100ns", &["x  W  2 1   70"]), [write(0, 0, 8192, 4096)]);
        assert_eq!(
            read("ts_ms,op,block,blocks", &["1.25;W;0;1", "2.5;W;0;1"]),
            [write(0, 0, 0, 4096), write(1250, 0, 0, 4096)]
        );
        let flush = Request { op: Op::Flush, ..write(0, 0, 0, 0) };
        assert_eq!(read("op,lba,sectors", &["F,,", "flush,-1,99999999999999999999"]), [flush, flush]);
    }

    /// Seconds since 1970 with what follows the point, and the same in smaller units; a time that lies before
    /// the first one counts as that.
    #[test]
    fn times_since_1970_count_from_the_first_one() {
        let times = |unit: &str, lines: [&str; 4]| -> Vec<u64> {
            let lines = lines.map(|time| format!("{time},W,0,8"));
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            read(&format!("{unit},op,lba,sectors"), &lines).iter().map(|request| request.time_us).collect()
        };
        for (unit, lines) in [
            ("ts", ["1700000000.5000009", "1700000001.25", "1699999999.0", "1700000000.5000018"]),
            ("ts_ms", ["1700000000500.0009", "1700000001250.0", "1699999999000", "1700000000500.0018"]),
            ("ts_us", ["1700000000500000.9", "1700000001250000", "1699999999000000", "1700000000500001.8"]),
            (
                "ts_ns",
                ["1700000000500000900", "1700000001250000000", "1699999999000000000", "1700000000500001800"],
            ),
        ] {
            assert_eq!(times(unit, lines), [0, 749_999, 0, 0], "{unit}");
        }
        let ticks = ["133445018005000009", "133445018012500000", "133445017990000000", "133445018005000018"];
        assert_eq!(times("ts_100ns", ticks), [0, 749_999, 0, 0]);
    }

    /// A first line with something wrong in it is no heading: it is named, as any other.
    #[test]
    fn bad_data_in_the_first_line_is_no_heading() {
        for (columns, bad) in [
            ("op,lba,sectors", "W,12x,8"),
            ("op,lba,sectors", "X,12,8"),
            ("op,lba,sectors", "W,-1,8"),
            ("op,lba,sectors", "W,1O,8"),
            ("op,lba,sectors", "W,x,8"),
            ("op,lba,sectors", "W,,8"),
            ("op,lba,sectors", "\"W\",\"1\",\"8\""),
            ("ts,op,lba,sectors", "nan,W,0,8"),
        ] {
            let error = try_read(columns, &[bad, "W,0,8"]).unwrap_err();
            assert!(error.starts_with("t:1: "), "{bad}: {error}");
        }
        for heading in [
            "op,lba,sectors",
            "Type,LBA_512,\"size 1\"",
            "rw,_lba,n",
            "# W,1",
            "W,lba,len",
            "\u{feff}x,(lba),%n",
        ] {
            assert_eq!(read("op,lba,sectors", &[heading, "W,0,8"]).len(), 1, "{heading}");
        }
    }

    #[test]
    fn what_is_no_request_is_an_error_behind_the_headings() {
        for bad in
            ["", "op,lba", "op,lba,len,len", "ts,op,lba,size", "op,lba,offset,len", "ts,ts_us,op,lba,len"]
        {
            assert!(bad.parse::<Columns>().is_err(), "{bad}");
        }
        let mut parser = Parser::new("op,lba,len".parse().unwrap());
        assert!(parser.parse(b"W,1,2").unwrap().is_some());
        for bad in
            ["op,lba,len", "W,1", "X,1,2", "W,-1,2", "W,1,99999999999999999999", "W,36893488147419103,1"]
        {
            assert!(parser.parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
