//! What a kind of record says about itself, so that nobody but the scheme that writes it must know the kind.

use super::items::{Item, List};
use crate::layout::{Field, Layout};
use crate::{ArrayConfig, FormatError};
use block::{ChunkIndex, Geometry, Lcn, StripeId};

/// Whether recovery takes a record together with the one that follows, be it in the same frame or in the
/// next, or neither.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Bond {
    /// It stands for itself, or is the last of those that belong together.
    #[default]
    None,
    /// The next one belongs to it.
    Next,
}

/// Bit of a record's kind: the next record belongs to this one.
pub(crate) const BOND_BIT: u8 = 0x80;

/// On which device a chunk is; the layout of the array knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    /// That of a logical chunk, wherever on it there was room.
    OfChunk(Lcn),
    /// That of a column of a stripe: data, then parity.
    OfColumn(StripeId, usize),
    /// The same, in a row that an earlier record has taken on all devices.
    InTakenRow(StripeId, usize),
    /// The log device of a parity.
    OfLog(usize),
}

/// What the code word of a record has at an index of the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CodeIndex {
    /// Data.
    Data(usize),
    /// Parity, or a log chunk.
    Parity(usize),
}

/// A chunk that a record takes and, unless it leaves it empty, has written out of place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewChunk {
    /// Its device.
    pub home: Home,
    /// Where it is there; on a log device, its first 4 KiB block.
    pub chunk: ChunkIndex,
    /// Its index in the record's code word, and its checksum; `None` if nothing was written to it.
    pub content: Option<(CodeIndex, u32)>,
}

/// What shows, after a crash, that all that a record speaks of has arrived on the devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evidence {
    /// The record itself: it speaks of no chunks.
    Record,
    /// Its new chunks. They make up a code word, so that those that did not arrive can be computed
    /// from the others.
    CodeWord,
    /// Each of its new chunks by itself.
    EachChunk,
    /// The scheme can tell: chunks were overwritten.
    Overwritten,
}

/// What a record adds to the statistics of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Stripes written to the log devices.
    pub log_stripes: u64,
    /// Their data chunks.
    pub log_members: u64,
    /// Data stripes written whole.
    pub full_stripes: u64,
    /// Elastic stripes with less than k data chunks.
    pub short_stripes: u64,
    /// Parity commits.
    pub stripes_committed: u64,
}

/// A part of a record, for programs that print all of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// A number.
    Number(u64),
    /// Whether something is so.
    Flag(bool),
    /// A list of numbers.
    Numbers(Vec<u64>),
    /// A list of items, each of named numbers.
    Items(Vec<Vec<(&'static str, u64)>>),
}

impl Part {
    pub(super) fn numbers<T: Item>(list: List<'_, T>, number: impl Fn(T) -> u64) -> Self {
        Self::Numbers(list.iter().map(number).collect())
    }
}

/// A kind of record, as its file declares it; `records!` makes [`RecordRef`](super::RecordRef) of
/// all kinds. What a method says by default is what most kinds say.
pub(super) trait RecordKind<'a>: Copy {
    /// The byte on disk that tells the kind from others, never 0.
    const CODE: u8;
    /// What such a record is called.
    const NAME: &'static str;
    /// Its head, then the items that no kind before it has.
    const LAYOUTS: &'static [&'static Layout];
    /// Where it says at which block of every log device its log chunks begin, if it has any.
    const LOG_BLOCK: Option<Field> = None;

    /// Takes a record off the front of foreign bytes and checks what the type cannot express.
    fn walk(cursor: &mut Cursor<'_>) -> Result<(), FormatError>;

    /// Whether its numbers are within what an array of this configuration has.
    fn fits(self, config: &ArrayConfig) -> bool;

    /// What shows that it arrived.
    fn evidence(self) -> Evidence;

    /// The chunks that it takes: those of its code word in the order of the code.
    fn new_chunks(self, _geometry: &Geometry, _visit: impl FnMut(NewChunk)) {}

    /// Logical chunks that read as zeros from now on: the first, and how many.
    fn discarded(self) -> Option<(Lcn, u64)> {
        None
    }

    /// The chunks that a user has written, perhaps in part: then the rest is what they held before.
    fn written(self, _geometry: &Geometry, _visit: impl FnMut(Lcn)) {}

    /// The stripe of which it overwrites chunks.
    fn overwrites(self) -> Option<StripeId> {
        None
    }

    /// The stripes that it says something of, some perhaps more than once.
    fn stripes(self, geometry: &Geometry, mut visit: impl FnMut(StripeId)) {
        self.new_chunks(geometry, |new| match new.home {
            Home::OfChunk(lcn) => visit(geometry.stripe_of(lcn)),
            Home::OfColumn(stripe, _) | Home::InTakenRow(stripe, _) => visit(stripe),
            Home::OfLog(_) => {}
        });
        self.overwrites().into_iter().for_each(&mut visit);
        if let Some((first, count @ 1..)) = self.discarded() {
            let last = Lcn::new(first.get() + count - 1);
            let [first, last] = [first, last].map(|lcn| geometry.stripe_of(lcn).get());
            (first..=last).map(StripeId::new).for_each(visit);
        }
    }

    /// What it adds to the statistics.
    fn tally(self, _geometry: &Geometry) -> Tally {
        Tally::default()
    }

    /// What it says, in short.
    fn summary(self) -> String;

    /// What it says, with the places of all chunks.
    fn text(self) -> String;

    /// All of it, part by part.
    fn parts(self) -> Vec<(&'static str, Part)>;
}

/// Goes over the records of a frame.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// What comes before `rest` has been taken.
    pub(super) fn go_on(&mut self, rest: &'a [u8]) {
        self.rest = rest;
    }

    /// Takes the head of a record.
    pub(super) fn head(&mut self, layout: &Layout) -> Result<&'a [u8], FormatError> {
        self.take(1, layout.size)
    }

    /// Takes a list of `count` items.
    pub(super) fn list<T: Item>(&mut self, count: usize) -> Result<(), FormatError> {
        self.take(count, T::BYTES).map(drop)
    }

    fn take(&mut self, count: usize, size: usize) -> Result<&'a [u8], FormatError> {
        let (taken, rest) = self.rest.split_at_checked(count * size).ok_or(FormatError::Malformed {
            what: "bytes left for a record of a journal frame",
            found: self.rest.len() as u64,
            expected: "as many as its head announces",
        })?;
        self.rest = rest;
        Ok(taken)
    }
}

/// The numbers of a list as text, with blanks between them.
pub(super) fn spaced(numbers: impl Iterator<Item = impl ToString>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}

/// Whether a chunk index is one that a main device of the array has, or none.
pub(super) fn is_chunk(config: &ArrayConfig, chunk: ChunkIndex) -> bool {
    chunk.get() <= config.chunks_per_device
}

/// Logical chunks of the volume.
pub(super) fn lcn_count(config: &ArrayConfig) -> u64 {
    config.stripe_count * config.geometry.data_count() as u64
}
