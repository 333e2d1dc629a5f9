//! fio iolog, versions 2 and 3.
//!
//! ```text
//! fio version 2 iolog          fio version 3 iolog
//! dev0 add                     0 dev0 add
//! dev0 open                    0 dev0 open
//! dev0 wait 1500 0             1500 dev0 write 4096 8192
//! dev0 write 4096 8192         9000 dev0 close
//! dev0 close
//! ```
//! Version 3 begins each line with microseconds since the start. Version 2 has waits in microseconds; the
//! time is their sum. A file named `dev` + number has that device number, other names are numbered from 0 in
//! order of appearance; two names with one number are an error.

use crate::error::excerpt;
use crate::fields::{number, words};
use crate::{LineFault, Op, Request};
use std::collections::{HashMap, HashSet};

/// First line of version 2, the one also written.
pub(crate) const HEADER_2: &[u8] = b"fio version 2 iolog";
const HEADER_3: &[u8] = b"fio version 3 iolog";
const FILES_MAX: usize = 1 << 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

#[derive(Default)]
pub(crate) struct Parser {
    version: Option<Version>,
    time_us: u64,
    devices: HashMap<Box<[u8]>, u32>,
    taken: HashSet<u32>,
    /// No number below this is free.
    free_from: u32,
    /// The name used last, which is most often the next one too.
    latest: Option<(Box<[u8]>, u32)>,
}

impl Parser {
    pub(crate) fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, LineFault> {
        let Some(version) = self.version else {
            return self.header(line);
        };
        let mut words = words(line);
        let shape = || LineFault::Shape {
            found: excerpt(line),
            expected: match version {
                Version::Two => "file action, or file action offset length",
                Version::Three => "time file action, or time file action offset length",
            },
        };
        let time_us = match version {
            Version::Two => self.time_us,
            Version::Three => number("time", words.next().unwrap_or_default())?,
        };
        let (Some(name), Some(action)) = (words.next(), words.next()) else {
            return Err(shape());
        };
        let (offset, length) = (words.next(), words.next());
        let op = match action {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Trim,
            b"sync" | b"datasync" | b"sync_file_range" => Op::Flush,
            b"add" | b"open" | b"close" => {
                self.device(name)?;
                return Ok(None);
            }
            b"wait" if version == Version::Two => {
                let wait_us = number("wait", offset.ok_or_else(shape)?)?;
                self.time_us = self.time_us.saturating_add(wait_us);
                return Ok(None);
            }
            other => {
                return Err(LineFault::Op {
                    found: excerpt(other),
                    expected: "add, open, close, read, write, trim, sync, datasync, or wait in version 2",
                });
            }
        };
        let (offset_bytes, length_bytes) = if op == Op::Flush {
            (0, 0)
        } else {
            (number("offset", offset.ok_or_else(shape)?)?, number("length", length.ok_or_else(shape)?)?)
        };
        Ok(Some(Request { time_us, dev: self.device(name)?, op, offset_bytes, length_bytes }))
    }

    fn header(&mut self, line: &[u8]) -> Result<Option<Request>, LineFault> {
        let line = line.trim_ascii();
        self.version = if line == HEADER_2 {
            Some(Version::Two)
        } else if line == HEADER_3 {
            Some(Version::Three)
        } else {
            return Err(LineFault::Shape {
                found: excerpt(line),
                expected: "first line \"fio version 2 iolog\" or \"fio version 3 iolog\"",
            });
        };
        Ok(None)
    }

    fn device(&mut self, name: &[u8]) -> Result<u32, LineFault> {
        if let Some((latest, dev)) = &self.latest
            && **latest == *name
        {
            return Ok(*dev);
        }
        let dev = match self.devices.get(name) {
            Some(&dev) => dev,
            None => self.new_device(name)?,
        };
        self.latest = Some((name.into(), dev));
        Ok(dev)
    }

    fn new_device(&mut self, name: &[u8]) -> Result<u32, LineFault> {
        if self.devices.len() >= FILES_MAX {
            return Err(LineFault::TooManyDevices { limit: FILES_MAX });
        }
        let own_number = name
            .strip_prefix(b"dev")
            .and_then(|digits| number("file", digits).ok())
            .and_then(|number| u32::try_from(number).ok());
        while self.taken.contains(&self.free_from) {
            self.free_from += 1;
        }
        let dev = own_number.unwrap_or(self.free_from);
        if !self.taken.insert(dev) {
            return Err(LineFault::DeviceClash { found: excerpt(name), number: dev });
        }
        self.devices.insert(name.into(), dev);
        Ok(dev)
    }
}
