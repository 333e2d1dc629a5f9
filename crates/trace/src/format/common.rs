//! The common CSV form: `ts_us,dev,op,offset,len`, with or without that header. Lines that begin with `#` are
//! comments if they come before the header and the first request; a synthetic trace is labelled there.

use crate::error::excerpt;
use crate::fields::{exact_fields, number, small};
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
        let [time, dev, op, offset, length] = exact_fields(line).ok_or_else(|| LineFault::Shape {
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
        Ok(Some(Request {
            time_us: number("ts_us", time)?,
            dev: small("dev", dev, u32::MAX, "a number below 2^32")?,
            op,
            offset_bytes: number("offset", offset)?,
            length_bytes: number("len", length)?,
        }))
    }
}
