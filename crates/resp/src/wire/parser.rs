//! Requests: arrays of bulk strings, or a line of words.
//!
//! The parser borrows: arguments that lie in the input as a whole are not copied. What does not fit there is
//! taken out of it piece by piece: a large argument in parts of at most 1 MiB each, so that no value needs an
//! allocation of its own size.
//!
//! # Invariants
//! - No byte is looked at twice, however the input was cut.
//! - What it holds is bounded by [`Limits`](crate::Limits), and counted in the [`Budget`] of all clients. A
//!   command that finds no room there is read to its end and dropped, so that the connection lives on.

use super::budget::Budget;
use super::inline;
use crate::Limits;
use kv::decimal::{decimal, number};
use std::ops::Range;

/// From here on an argument is taken in parts. Below, it is copied once more at most.
pub const LARGE_BYTES: usize = 64 << 10;
/// Largest part.
pub const PART_BYTES: usize = 1 << 20;
/// Longest line that announces something: its mark and a number.
const HEADER_BYTES_MAX: usize = 32;
/// Arguments that lie in the input are copied out of it when it is as full as this, so that it has room.
const SPILL_BYTES: usize = 64 << 10;

/// How a client broke the protocol; it is told, and its connection closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Violation {
    /// The number of arguments is none, or too large.
    #[error("Protocol error: invalid multibulk length")]
    ArgumentCount,
    /// The length of an argument is none, or too large.
    #[error("Protocol error: invalid bulk length")]
    BulkLength,
    /// Too many arguments of somebody who has not said who he is.
    #[error("Protocol error: unauthenticated multibulk length")]
    StrangersArgumentCount,
    /// Too long an argument of such a one.
    #[error("Protocol error: unauthenticated bulk length")]
    StrangersBulkLength,
    /// An argument began with something else.
    #[error("Protocol error: expected '$', got '{}'", found.escape_ascii())]
    NoBulk {
        /// With what.
        found: u8,
    },
    /// A line that announces something does not end.
    #[error("Protocol error: too big count string")]
    EndlessCount,
    /// Something else than an end of line where one must be.
    #[error("Protocol error: expected the end of a line")]
    NoLineEnd,
    /// A line of words is too long.
    #[error("Protocol error: too big inline request")]
    EndlessLine,
    /// The quotes of a line do not match.
    #[error("Protocol error: unbalanced quotes in request")]
    Quotes,
    /// A command is larger than what one client may have waiting.
    #[error("Protocol error: the command exceeds the limit of {max_bytes} bytes for one client")]
    TooLarge {
        /// The limit.
        max_bytes: usize,
    },
}

/// Whether a client has said who it is; of others little is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trust {
    /// It has, or needs not.
    Known,
    /// It has not.
    Stranger,
}

/// How far the parser came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// So many bytes of the input are done with.
    pub consumed: usize,
    /// Whether they end a command, which [`Parser::arguments`] shows before they are thrown away.
    pub complete: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Command,
    Header,
    Bulk { length: usize },
    Large { missing: usize },
    LargeEnd,
    Complete,
}

/// Where an argument is.
#[derive(Debug)]
enum Place {
    /// In the input, counted from where the command begins there.
    Input(Range<usize>),
    /// In what was taken out of it.
    Kept(Range<usize>),
    /// In parts.
    Large(Vec<Box<[u8]>>),
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Parser {
    next: Next,
    /// How much of the input was looked at.
    at: usize,
    arguments_left: usize,
    places: Vec<Place>,
    kept: Vec<u8>,
    part: Vec<u8>,
    /// What is held outside the input.
    held_bytes: usize,
    /// The command found no room; what comes of it is dropped.
    refused: bool,
    words: Vec<Range<usize>>,
}

impl Default for Parser {
    fn default() -> Self {
        Self {
            next: Next::Command,
            at: 0,
            arguments_left: 0,
            places: Vec::new(),
            kept: Vec::new(),
            part: Vec::new(),
            held_bytes: 0,
            refused: false,
            words: Vec::new(),
        }
    }
}

impl Parser {
    /// Goes on with the input, which begins where the last step's consumed bytes ended. After a complete
    /// command, [`Parser::reset`] comes first.
    pub fn step(
        &mut self,
        input: &[u8],
        limits: &Limits,
        trust: Trust,
        budget: &mut Budget,
    ) -> Result<Step, Violation> {
        loop {
            let went_on = match self.next {
                Next::Command => self.command(input, limits, trust, budget)?,
                Next::Header => self.header(input, limits, trust, budget)?,
                Next::Bulk { length } => self.bulk(input, length)?,
                Next::Large { missing } => self.large(input, missing, limits, budget)?,
                Next::LargeEnd => self.large_end(input)?,
                Next::Complete => return Ok(Step { consumed: self.at, complete: true }),
            };
            if !went_on {
                break;
            }
        }
        if self.at >= SPILL_BYTES || matches!(self.next, Next::Large { .. } | Next::LargeEnd) {
            self.spill(input, limits, budget)?;
        }
        let consumed = if self.places.iter().any(|place| matches!(place, Place::Input(_))) {
            0
        } else {
            std::mem::take(&mut self.at)
        };
        Ok(Step { consumed, complete: false })
    }

    /// The command that is complete; `input` is the one of the step that said so.
    pub fn arguments<'a>(&'a mut self, input: &'a [u8]) -> Arguments<'a> {
        debug_assert_eq!(self.next, Next::Complete, "a command is complete before it is looked at");
        Arguments { places: &mut self.places, kept: &self.kept, input, refused: self.refused }
    }

    /// Forgets the command. What it held outside the input, in bytes, is the caller's now: to give back to
    /// the budget when it is gone.
    #[must_use]
    pub fn reset(&mut self) -> usize {
        self.next = Next::Command;
        self.at = 0;
        self.places.clear();
        self.kept.clear();
        if self.kept.capacity() > SPILL_BYTES {
            self.kept = Vec::new();
        }
        self.part = Vec::new();
        self.refused = false;
        std::mem::take(&mut self.held_bytes)
    }

    /// What it holds is counted by somebody else from here on; how much.
    pub fn hand_over(&mut self) -> usize {
        std::mem::take(&mut self.held_bytes)
    }

    /// It is its own again.
    pub fn take_back(&mut self, held_bytes: usize) {
        self.held_bytes += held_bytes;
    }

    /// How much it holds outside the input.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Whether a command has begun and not ended.
    pub fn is_within_command(&self) -> bool {
        self.next != Next::Command || self.at > 0
    }

    fn command(
        &mut self,
        input: &[u8],
        limits: &Limits,
        trust: Trust,
        budget: &mut Budget,
    ) -> Result<bool, Violation> {
        match input.get(self.at) {
            None => Ok(false),
            Some(b'*') => {
                let Some(line) = self.announcement(input)? else { return Ok(false) };
                let count = number(&input[line]).ok_or(Violation::ArgumentCount)?;
                if count <= 0 {
                    return Ok(true); // Redis takes no offence at a command of nothing
                }
                let count = usize::try_from(count).map_err(|_| Violation::ArgumentCount)?;
                if count > limits.arguments_max {
                    return Err(Violation::ArgumentCount);
                }
                if trust == Trust::Stranger && count > limits.strangers_arguments_max {
                    return Err(Violation::StrangersArgumentCount);
                }
                self.arguments_left = count;
                self.next = Next::Header;
                Ok(true)
            }
            Some(_) => self.line(input, limits, trust, budget),
        }
    }

    /// A line of words.
    fn line(
        &mut self,
        input: &[u8],
        limits: &Limits,
        trust: Trust,
        budget: &mut Budget,
    ) -> Result<bool, Violation> {
        let rest = &input[self.at..];
        let max_bytes = match trust {
            Trust::Known => limits.line_bytes_max,
            Trust::Stranger => limits.line_bytes_max.min(limits.strangers_bulk_bytes_max),
        };
        let Some(end) = rest.iter().take(max_bytes).position(|&byte| byte == b'\n') else {
            return if rest.len() >= max_bytes { Err(Violation::EndlessLine) } else { Ok(false) };
        };
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        self.at += end + 1;
        self.words.clear();
        if !inline::split(line, &mut self.kept, &mut self.words) {
            return Err(Violation::Quotes);
        }
        if self.words.is_empty() {
            return Ok(true);
        }
        self.hold(self.kept.len(), limits, budget)?;
        self.places.extend(self.words.drain(..).map(Place::Kept));
        self.next = Next::Complete;
        Ok(true)
    }

    /// The number of a line that announces something, without its mark and end, once it is there.
    fn announcement(&mut self, input: &[u8]) -> Result<Option<Range<usize>>, Violation> {
        let rest = &input[self.at..];
        let Some(end) = rest.iter().take(HEADER_BYTES_MAX).position(|&byte| byte == b'\r') else {
            return if rest.len() >= HEADER_BYTES_MAX { Err(Violation::EndlessCount) } else { Ok(None) };
        };
        match rest.get(end + 1) {
            None => Ok(None),
            Some(b'\n') => {
                let line = self.at + 1..self.at + end;
                self.at += end + 2;
                Ok(Some(line))
            }
            Some(_) => Err(Violation::NoLineEnd),
        }
    }

    /// What announces the next argument.
    fn header(
        &mut self,
        input: &[u8],
        limits: &Limits,
        trust: Trust,
        budget: &mut Budget,
    ) -> Result<bool, Violation> {
        match input.get(self.at) {
            None => return Ok(false),
            Some(b'$') => {}
            Some(&found) => return Err(Violation::NoBulk { found }),
        }
        let Some(line) = self.announcement(input)? else { return Ok(false) };
        let length = decimal(&input[line]).and_then(|length| usize::try_from(length).ok());
        let length = length.filter(|&length| length <= limits.bulk_bytes_max);
        let length = length.ok_or(Violation::BulkLength)?;
        if trust == Trust::Stranger && length > limits.strangers_bulk_bytes_max {
            return Err(Violation::StrangersBulkLength);
        }
        if length < LARGE_BYTES {
            self.next = Next::Bulk { length };
            return Ok(true);
        }
        self.spill(input, limits, budget)?;
        let max_bytes = limits.client_bytes_max;
        if length > max_bytes.saturating_sub(self.held_bytes) {
            return Err(Violation::TooLarge { max_bytes });
        }
        self.places.push(Place::Large(Vec::new()));
        self.next = Next::Large { missing: length };
        Ok(true)
    }

    fn bulk(&mut self, input: &[u8], length: usize) -> Result<bool, Violation> {
        let (from, to) = (self.at, self.at + length);
        match input.get(to..to + 2) {
            None => return Ok(false),
            Some(b"\r\n") => {}
            Some(_) => return Err(Violation::NoLineEnd),
        }
        self.at = to + 2;
        if !self.refused {
            self.places.push(Place::Input(from..to));
        }
        self.argument_ends();
        Ok(true)
    }

    /// Takes what there is of a large argument; whether that was the end of it.
    fn large(
        &mut self,
        input: &[u8],
        mut missing: usize,
        limits: &Limits,
        budget: &mut Budget,
    ) -> Result<bool, Violation> {
        while missing > 0 && self.at < input.len() {
            if self.part.is_empty() {
                let room = missing.min(PART_BYTES);
                self.hold(room, limits, budget)?;
                self.part.reserve_exact(if self.refused { 0 } else { room });
            }
            let count = missing.min(input.len() - self.at);
            let count = if self.refused { count } else { count.min(PART_BYTES - self.part.len()) };
            if !self.refused {
                self.part.extend_from_slice(&input[self.at..self.at + count]);
            }
            self.at += count;
            missing -= count;
            if self.part.len() == PART_BYTES || (missing == 0 && !self.part.is_empty()) {
                let part = std::mem::take(&mut self.part).into_boxed_slice();
                if let Some(Place::Large(parts)) = self.places.last_mut() {
                    parts.push(part);
                }
            }
        }
        self.next = if missing == 0 { Next::LargeEnd } else { Next::Large { missing } };
        Ok(missing == 0)
    }

    fn large_end(&mut self, input: &[u8]) -> Result<bool, Violation> {
        match input.get(self.at..self.at + 2) {
            None => return Ok(false),
            Some(b"\r\n") => {}
            Some(_) => return Err(Violation::NoLineEnd),
        }
        self.at += 2;
        self.argument_ends();
        Ok(true)
    }

    fn argument_ends(&mut self) {
        self.arguments_left -= 1;
        self.next = if self.arguments_left == 0 { Next::Complete } else { Next::Header };
    }

    /// Copies what lies in the input, so that it can be consumed.
    fn spill(&mut self, input: &[u8], limits: &Limits, budget: &mut Budget) -> Result<(), Violation> {
        let bytes = self.places.iter().map(|place| match place {
            Place::Input(range) => range.len() + size_of::<Place>(),
            Place::Kept(_) | Place::Large(_) => 0,
        });
        self.hold(bytes.sum(), limits, budget)?;
        for place in &mut self.places {
            if let Place::Input(range) = place {
                let start = self.kept.len();
                self.kept.extend_from_slice(&input[range.clone()]);
                *place = Place::Kept(start..self.kept.len());
            }
        }
        Ok(())
    }

    /// Counts so many bytes more; where there is no room for them the command is dropped as it comes.
    fn hold(&mut self, bytes: usize, limits: &Limits, budget: &mut Budget) -> Result<(), Violation> {
        let max_bytes = limits.client_bytes_max;
        if self.refused {
            return Ok(());
        }
        if bytes > max_bytes.saturating_sub(self.held_bytes) {
            return Err(Violation::TooLarge { max_bytes });
        }
        if budget.take(bytes) {
            self.held_bytes += bytes;
            return Ok(());
        }
        budget.give(std::mem::take(&mut self.held_bytes));
        self.refused = true;
        self.places.clear();
        (self.kept, self.part) = (Vec::new(), Vec::new());
        Ok(())
    }
}

/// A command's arguments, its name first.
#[derive(Debug)]
pub struct Arguments<'a> {
    places: &'a mut Vec<Place>,
    kept: &'a [u8],
    input: &'a [u8],
    refused: bool,
}

impl<'a> Arguments<'a> {
    /// How many, with the name.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Whether the command found no room; then there are none.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// One of them, if it is no large one.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        match self.places.get(index)? {
            Place::Input(range) => Some(&self.input[range.clone()]),
            Place::Kept(range) => Some(&self.kept[range.clone()]),
            Place::Large(_) => None,
        }
    }

    /// How long one is.
    pub fn length(&self, index: usize) -> usize {
        match self.places.get(index) {
            None => 0,
            Some(Place::Input(range) | Place::Kept(range)) => range.len(),
            Some(Place::Large(parts)) => parts.iter().map(|part| part.len()).sum(),
        }
    }

    /// One of them to keep, in parts; what was large is no longer there.
    pub fn take(&mut self, index: usize) -> Vec<Box<[u8]>> {
        match self.places.get_mut(index) {
            None => Vec::new(),
            Some(Place::Input(range)) => parts_of(&self.input[range.clone()]),
            Some(Place::Kept(range)) => parts_of(&self.kept[range.clone()]),
            Some(Place::Large(parts)) => std::mem::take(parts),
        }
    }
}

fn parts_of(bytes: &[u8]) -> Vec<Box<[u8]>> {
    bytes.chunks(PART_BYTES).map(Box::from).collect()
}
