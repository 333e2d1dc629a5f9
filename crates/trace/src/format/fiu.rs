//! FIU (SyLab) text: `ns pid process lba sectors R|W major minor md5...`, LBA in 512-byte sectors.
//!
//! A process name may contain blanks, so the operation is found as the first R or W with two numbers on
//! either side.

use crate::error::excerpt;
use crate::fields::{number, sectors, words};
use crate::format::device_number;
use crate::{LineFault, Op, Request};

const NS_PER_US: u64 = 1000;

fn all_digits(word: &[u8]) -> bool {
    word.iter().all(u8::is_ascii_digit)
}

pub(crate) fn parse(line: &[u8]) -> Result<Request, LineFault> {
    // Before the operation come time, pid and process.
    let mut ahead = words(line);
    let time = ahead.next();
    ahead.next();
    ahead.next();
    let mut window = ahead.clone();
    while window.clone().next().is_some() {
        let mut fields = window.clone();
        let fields = [(); 5].map(|()| fields.next().unwrap_or_default());
        let [lba, count, kind, major, minor] = fields;
        let op = match kind {
            b"W" | b"w" => Some(Op::Write),
            b"R" | b"r" => Some(Op::Read),
            _ => None,
        };
        let numeric = [lba, count, major, minor].into_iter().all(|word| !word.is_empty() && all_digits(word));
        if let (Some(time), Some(op), true) = (time, op, numeric) {
            return Ok(Request {
                time_us: number("time", time)? / NS_PER_US,
                dev: device_number(major, minor)?,
                op,
                offset_bytes: sectors("LBA", lba)?,
                length_bytes: sectors("sector count", count)?,
            });
        }
        window.next();
    }
    Err(LineFault::Shape {
        found: excerpt(line),
        expected: "ns pid process lba sectors R-or-W major minor md5",
    })
}
