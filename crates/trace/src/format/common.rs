//! The common CSV form: `ts_us,dev,op,offset,len`, with or without that header. Lines that begin with `#` are
//! comments if they come before the header and the first request; a synthetic trace is labelled there. What
//! stands behind the op of a flush is not looked at, and need not be there.

use crate::error::excerpt;
use crate::fields::{exact_fields, first_fields, number, small};
use crate::{LineFault, Op, Request};

/// The header line.
pub(crate) const HEADER: &[u8] = b"ts_us,dev,op,offset,len";

#[derive(Default)]
pub(crate) struct Parser {
    past_header: bool,
}

impl Parser {
    #[inline]
    pub(crate) fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, LineFault> {
        if !self.past_header && line.starts_with(b"#") {
            return Ok(None);
        }
        if !std::mem::replace(&mut self.past_header, true) && line.trim_ascii() == HEADER {
            return Ok(None);
        }
        let fields = exact_fields(line).or_else(|| short_flush(line));
        let [time, dev, op, offset, length] = fields.ok_or_else(|| LineFault::Shape {
            found: excerpt(line),
            expected: "five fields: ts_us,dev,op,offset,len",
        })?;
        let op = match op {
            b"R" | b"r" => Op::Read,
            b"W" | b"w" => Op::Write,
            b"F" | b"f" => Op::Flush,
            b"T" | b"t" => Op::Trim,
            other => return Err(LineFault::Op { found: excerpt(other), expected: "R, W, F or T" }),
        };
        let time_us = number("ts_us", time)?;
        let dev = small("dev", dev, u32::MAX, "a number below 2^32")?;
        let (offset_bytes, length_bytes) = match op {
            Op::Flush => (0, 0),
            Op::Read | Op::Write | Op::Trim => (number("offset", offset)?, number("len", length)?),
        };
        Ok(Some(Request { time_us, dev, op, offset_bytes, length_bytes }))
    }
}

/// A flush that ends behind its op or its offset.
#[cold]
fn short_flush(line: &[u8]) -> Option<[&[u8]; 5]> {
    let ([time, dev, op], rest) = first_fields(line)?;
    let is_short = rest.is_none_or(|rest| !rest.contains(&b','));
    (matches!(op, b"F" | b"f") && is_short).then_some([time, dev, op, b"", b""])
}
