//! SPC trace format, revision 1.0.1, as published by UMass: `ASU,LBA,size,opcode,seconds[,optional fields]`.

use crate::error::excerpt;
use crate::fields::{first_fields, number, seconds_us, sectors, small};
use crate::{LineFault, Op, Request};

pub(crate) fn parse(line: &[u8]) -> Result<Request, LineFault> {
    let ([asu, lba, size, opcode, time], _optional) = first_fields(line).ok_or_else(|| LineFault::Shape {
        found: excerpt(line),
        expected: "at least five fields: ASU,LBA,size,opcode,seconds",
    })?;
    let op = match opcode.trim_ascii() {
        b"R" | b"r" => Op::Read,
        b"W" | b"w" => Op::Write,
        other => return Err(LineFault::Op { found: excerpt(other), expected: "R or W" }),
    };
    Ok(Request {
        time_us: seconds_us("time", time)?,
        dev: small("ASU", asu, u32::MAX, "a number below 2^32")?,
        op,
        offset_bytes: sectors("LBA", lba)?,
        length_bytes: number("size", size)?,
    })
}
