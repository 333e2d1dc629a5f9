//! blkparse text in its default format: `maj,min cpu seq seconds pid action rwbs sector + sectors [process]`.
//!
//! Only one kind of event is a request (see [`BlkparseAction`]); the others, passthrough commands (`n
//! (bytes)`), and the summary at the end are passed over. RWBS: a leading F is a flush, alone or with no
//! data; D is a trim; N (no data) is passed over. The preflush of a write that carries one (`FWS` with data)
//! is not reported.

use crate::error::excerpt;
use crate::fields::{seconds_us, sectors, words};
use crate::format::{BlkparseAction, device_number};
use crate::{LineFault, Op, Request};

const SHAPE: &str = "maj,min cpu sequence seconds pid action rwbs sector + sectors [process]";

/// Which events have been chosen, once that is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    Open,
    Queue,
    Issue,
    /// Issue events, on the assumption that no queue event follows.
    AssumedIssue,
}

pub(crate) struct Parser {
    choice: Choice,
    in_summary: bool,
}

struct Event<'a> {
    device: (&'a [u8], &'a [u8]),
    time: &'a [u8],
    action: &'a [u8],
    rwbs: &'a [u8],
    /// What follows: sector, "+", sectors.
    extent: [&'a [u8]; 3],
}

fn event(line: &[u8]) -> Option<Event<'_>> {
    let mut words = words(line);
    let device = words.next()?;
    let comma = memchr::memchr(b',', device)?;
    let device = (&device[..comma], &device[comma + 1..]);
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if !digits(device.0) || !digits(device.1) {
        return None;
    }
    let [cpu, sequence, time, _pid, action] = [(); 5].map(|()| words.next().unwrap_or_default());
    if !digits(cpu) || !digits(sequence) || action.is_empty() {
        return None;
    }
    let rwbs = words.next().unwrap_or_default();
    let extent = [(); 3].map(|()| words.next().unwrap_or_default());
    Some(Event { device, time, action, rwbs, extent })
}

impl Parser {
    pub(crate) fn new(action: BlkparseAction) -> Self {
        let choice = match action {
            BlkparseAction::Auto => Choice::Open,
            BlkparseAction::Queue => Choice::Queue,
            BlkparseAction::Issue => Choice::Issue,
        };
        Self { choice, in_summary: false }
    }

    /// Decides by the beginning of the file, if the action is not given.
    pub(crate) fn look_ahead(&mut self, prefix: &[u8]) {
        let queued = prefix
            .split(|&byte| byte == b'\n')
            .filter_map(event)
            .any(|event| event.action == b"Q" && !event.rwbs.is_empty());
        if self.choice == Choice::Open && queued {
            self.choice = Choice::Queue;
        }
    }

    pub(crate) fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, LineFault> {
        let Some(event) = event(line) else {
            let first = words(line).next().unwrap_or_default();
            self.in_summary |= first.starts_with(b"CPU") || first == b"Total";
            let fault = LineFault::Shape { found: excerpt(line), expected: SHAPE };
            return if self.in_summary { Ok(None) } else { Err(fault) };
        };
        self.in_summary = false;
        if !self.wanted(event.action)? {
            return Ok(None);
        }
        request(line, &event)
    }

    fn wanted(&mut self, action: &[u8]) -> Result<bool, LineFault> {
        self.choice = match (self.choice, action) {
            (Choice::Open, b"Q") => Choice::Queue,
            (Choice::Open, b"D") => Choice::AssumedIssue,
            (Choice::AssumedIssue, b"Q") => return Err(LineFault::QueueAfterIssue),
            (choice, _) => choice,
        };
        Ok(match self.choice {
            Choice::Open => false,
            Choice::Queue => action == b"Q",
            Choice::Issue | Choice::AssumedIssue => action == b"D",
        })
    }
}

fn request(line: &[u8], event: &Event<'_>) -> Result<Option<Request>, LineFault> {
    let shape = || LineFault::Shape { found: excerpt(line), expected: SHAPE };
    let [sector, plus, count] = event.extent;
    let has_extent = plus == b"+";
    // "n (bytes) [process]" is a passthrough command; "[process]" alone an event without data.
    if !has_extent && !plus.starts_with(b"(") && !sector.starts_with(b"[") && !sector.is_empty() {
        return Err(shape());
    }
    let (preflush, rest) = match event.rwbs {
        [b'F', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let op = match rest.first() {
        _ if preflush && (!has_extent || count == b"0") => Op::Flush,
        Some(b'R') => Op::Read,
        Some(b'W') => Op::Write,
        Some(b'D') => Op::Trim,
        None | Some(b'F' | b'S') if preflush => Op::Flush,
        Some(b'N' | b'E') => return Ok(None),
        Some(_) | None => {
            return Err(LineFault::Op {
                found: excerpt(event.rwbs),
                expected: "RWBS flags with R, W, D or F",
            });
        }
    };
    if !has_extent && op != Op::Flush {
        return Ok(None);
    }
    let (offset_bytes, length_bytes) = match op {
        Op::Flush => (0, 0),
        Op::Read | Op::Write | Op::Trim => (sectors("sector", sector)?, sectors("sector count", count)?),
    };
    Ok(Some(Request {
        time_us: seconds_us("time", event.time)?,
        dev: device_number(event.device.0, event.device.1)?,
        op,
        offset_bytes,
        length_bytes,
    }))
}
