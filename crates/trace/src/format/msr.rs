//! MSR Cambridge CSV: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Timestamps are Windows file times (100 ns); microseconds count from the first line. The device is the disk
//! number. In a file with several hosts the disks of the later hosts are numbered from 2^31 in order of
//! appearance, so that no two share a number.

use crate::error::excerpt;
use crate::fields::{exact_fields, number, small};
use crate::{LineFault, Op, Request};
use std::collections::HashMap;

const OTHER_HOSTS: u32 = 1 << 31;
const OTHER_DISKS_MAX: usize = 1 << 16;
const TICKS_PER_US: u64 = 10;

#[derive(Default)]
pub(crate) struct Parser {
    past_header: bool,
    first: Option<First>,
    others: HashMap<(Box<[u8]>, u32), u32>,
}

struct First {
    ticks: u64,
    host: Box<[u8]>,
}

impl Parser {
    pub(crate) fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, LineFault> {
        let past_header = std::mem::replace(&mut self.past_header, true);
        if !past_header && line.len() >= 10 && line[..10].eq_ignore_ascii_case(b"timestamp,") {
            return Ok(None);
        }
        let [time, host, disk, kind, offset, size, _response] =
            exact_fields(line).ok_or_else(|| LineFault::Shape {
                found: excerpt(line),
                expected: "seven fields: timestamp,host,disk,type,offset,size,response",
            })?;
        let op = match kind.trim_ascii() {
            kind if kind.eq_ignore_ascii_case(b"read") => Op::Read,
            kind if kind.eq_ignore_ascii_case(b"write") => Op::Write,
            other => return Err(LineFault::Op { found: excerpt(other), expected: "Read or Write" }),
        };
        let ticks = number("timestamp", time)?;
        let offset_bytes = number("offset", offset)?;
        let length_bytes = number("size", size)?;
        let disk = small("disk", disk, OTHER_HOSTS - 1, "a number below 2^31")?;
        let first = self.first.get_or_insert_with(|| First { ticks, host: host.into() });
        let time_us = ticks.saturating_sub(first.ticks % TICKS_PER_US) / TICKS_PER_US;
        let dev = if *first.host == *host { disk } else { self.other(host, disk)? };
        Ok(Some(Request { time_us, dev, op, offset_bytes, length_bytes }))
    }

    fn other(&mut self, host: &[u8], disk: u32) -> Result<u32, LineFault> {
        if let Some(&dev) = self.others.get(&(host.into(), disk)) {
            return Ok(dev);
        }
        let limit = LineFault::TooManyDevices { limit: OTHER_DISKS_MAX };
        if self.others.len() >= OTHER_DISKS_MAX {
            return Err(limit);
        }
        let dev = OTHER_HOSTS + u32::try_from(self.others.len()).map_err(|_| limit)?;
        self.others.insert((host.into(), disk), dev);
        Ok(dev)
    }
}
