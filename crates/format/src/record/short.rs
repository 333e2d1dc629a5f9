//! Short forms of the records that arrays with log stripes have most of: numbers as steps from those of the
//! record of that kind before. The first of a kind in a frame has its long form, and so does what has other
//! counts.
//!
//! They are forms of frames alone: whoever reads one gets the record that was put in.

use super::buf::RecordBuf;
use super::copied::{self, COPIES_MAX};
use super::items::{LogMember, StripeChunk};
use super::kind::Cursor;
use super::{Commit, FullStripe, LogStripe, RecordRef};
use crate::short::{ShortReader, ShortWriter};
use crate::{FormatError, LCN_LIMIT};
use block::planted::{Planted, planted};
use block::{ChunkIndex, Lcn, StripeId};

/// The bytes on disk that tell short forms from records and from each other.
const LOG_STRIPE: u8 = 10;
const COMMIT: u8 = 11;
const FULL_STRIPE: u8 = 12;

/// What the short forms are called.
pub(crate) const CODES: [(u8, &str); 4] = [
    (copied::CODE, copied::NAME),
    (LOG_STRIPE, "short log stripe"),
    (COMMIT, "short commit"),
    (FULL_STRIPE, "short full stripe"),
];

/// Member by member, what they are.
pub(crate) const TABLES: &[(&str, &[(&str, &str)])] = &[
    (
        "record: short log stripe",
        &[
            ("0", "record kind, 10"),
            (
                "number",
                "twice how far its log chunk is behind that of the log stripe before, plus 1 if it has one \
                 member, of which each of at most 15 log chunks is a copy",
            ),
            ("number, checksums", "if not: members; the checksum of the log chunk on each log device"),
            (
                "of each member: step, step, checksum",
                "logical chunk number, from that of the member before; chunk index of the new version, from \
                 the place that a record has taken before; checksum of the chunk",
            ),
        ],
    ),
    (
        "record: short commit",
        &[
            ("0", "record kind, 11"),
            ("step", "data stripe, from that of the commit or full stripe before"),
            ("of each data column: step", "chunk index, from that of the data column before"),
            (
                "of each parity column: step, checksum",
                "chunk index, from the place that a record has taken before; checksum of the chunk",
            ),
        ],
    ),
    (
        "record: short full stripe",
        &[
            ("0", "record kind, 12"),
            ("step", "data stripe, from that of the commit or full stripe before"),
            (
                "of each column: step, checksum",
                "chunk index, from the place that a record has taken before; checksum of the chunk",
            ),
        ],
    ),
];

/// What short forms of a frame build on.
#[derive(Clone, Copy)]
pub(crate) struct Packing {
    /// First log block of the last log stripe in the frame and its log devices, if it has one.
    log: Option<(u32, usize)>,
    /// Data and parity columns of the last commit.
    commit: Option<(usize, usize)>,
    /// Columns of the last full stripe.
    full: Option<usize>,
    steps: Steps,
}

/// What steps go on from.
#[derive(Clone, Copy)]
struct Steps {
    lcn: u64,
    /// A chunk that a record has taken.
    taken: u64,
    /// A data column of a commit.
    covered: u64,
    stripe: u64,
}

impl Packing {
    /// Nothing is in the frame yet.
    pub(crate) const NONE: Self = Self {
        log: None,
        commit: None,
        full: None,
        steps: Steps { lcn: 0, taken: 0, covered: 0, stripe: 0 },
    };

    /// First log block of the log stripe before, if there is one.
    pub(super) fn log_block(self) -> Option<u32> {
        self.log.map(|(block, _)| block)
    }

    /// Writes a record of its frame to the beginning of `out`; how many bytes it takes, if there is room.
    #[inline]
    pub(crate) fn pack(self, record: RecordRef<'_>, out: &mut [u8]) -> Option<usize> {
        let long = record.bytes();
        if let Some(short) = self.short(record, out).filter(|&short| short <= long.len()) {
            return Some(short);
        }
        out.get_mut(..long.len())?.copy_from_slice(long);
        Some(long.len())
    }

    /// The same of its short form, if it has one.
    #[inline]
    fn short(self, record: RecordRef<'_>, out: &mut [u8]) -> Option<usize> {
        let mut out = ShortWriter::new(out);
        match record {
            RecordRef::LogStripe(stripe) => self.log_stripe(stripe, &mut out)?,
            RecordRef::Commit(commit) => self.commit(commit, &mut out)?,
            RecordRef::FullStripe(stripe) => self.full_stripe(stripe, &mut out)?,
            RecordRef::Zero(_)
            | RecordRef::InPlace(_)
            | RecordRef::Delta(_)
            | RecordRef::Elastic(_)
            | RecordRef::OpenStripe(_) => return None,
        }
        out.finish()
    }

    #[inline]
    fn log_stripe(self, stripe: LogStripe<'_>, out: &mut ShortWriter<'_>) -> Option<()> {
        let ((before, log_count), Steps { mut lcn, mut taken, .. }) = (self.log?, self.steps);
        let (members, crcs) = (stripe.members(), stripe.log_crcs());
        let blocks = u64::from(stripe.log_block().get().checked_sub(before)?);
        if crcs.len() != log_count {
            return None;
        }
        let is_copied =
            members.len() == 1 && log_count <= COPIES_MAX && crcs.iter().all(|crc| crc == members.at(0).crc);
        out.bytes(&[LOG_STRIPE]);
        out.number(blocks << 1 | u64::from(is_copied));
        if !is_copied {
            out.count(members.len());
            crcs.iter().for_each(|crc| out.crc(crc));
        }
        for member in members.iter() {
            out.step(&mut lcn, member.lcn.get());
            out.step(&mut taken, member.chunk.get().into());
            out.crc(member.crc);
        }
        Some(())
    }

    #[inline]
    fn commit(self, commit: Commit<'_>, out: &mut ShortWriter<'_>) -> Option<()> {
        let Steps { mut taken, mut covered, mut stripe, .. } = self.steps;
        if self.commit? != (commit.data().len(), commit.parity().len()) {
            return None;
        }
        out.bytes(&[COMMIT]);
        out.step(&mut stripe, commit.stripe().get());
        commit.data().iter().for_each(|chunk| out.step(&mut covered, chunk.get().into()));
        for parity in commit.parity().iter() {
            out.step(&mut taken, parity.chunk.get().into());
            out.crc(parity.crc);
        }
        Some(())
    }

    #[inline]
    fn full_stripe(self, full: FullStripe<'_>, out: &mut ShortWriter<'_>) -> Option<()> {
        let Steps { mut taken, mut stripe, .. } = self.steps;
        if self.full? != full.chunks().len() {
            return None;
        }
        out.bytes(&[FULL_STRIPE]);
        out.step(&mut stripe, full.stripe().get());
        for column in full.chunks().iter() {
            out.step(&mut taken, column.chunk.get().into());
            out.crc(column.crc);
        }
        Some(())
    }

    /// A record has been put into the frame, or taken from it.
    #[inline]
    pub(crate) fn passed(&mut self, record: RecordRef<'_>) {
        let steps = &mut self.steps;
        match record {
            RecordRef::LogStripe(stripe) => {
                let members = stripe.members();
                self.log = Some((stripe.log_block().get(), stripe.log_crcs().len()));
                if let Some(last) = members.len().checked_sub(1).map(|last| members.at(last)) {
                    (steps.lcn, steps.taken) = (last.lcn.get(), last.chunk.get().into());
                }
            }
            RecordRef::Commit(commit) => {
                let (data, parity) = (commit.data(), commit.parity());
                self.commit = Some((data.len(), parity.len()));
                steps.stripe = commit.stripe().get();
                if let Some(last) = data.len().checked_sub(1) {
                    steps.covered = data.at(last).get().into();
                }
                if let Some(last) = parity.len().checked_sub(1) {
                    steps.taken = parity.at(last).chunk.get().into();
                }
            }
            RecordRef::FullStripe(full) => {
                let columns = full.chunks();
                (self.full, steps.stripe) = (Some(columns.len()), full.stripe().get());
                if let Some(last) = columns.len().checked_sub(1) {
                    steps.taken = columns.at(last).chunk.get().into();
                }
            }
            RecordRef::Zero(_)
            | RecordRef::InPlace(_)
            | RecordRef::Delta(_)
            | RecordRef::Elastic(_)
            | RecordRef::OpenStripe(_) => {}
        }
    }

    /// Takes a short form off the front of foreign bytes and adds what it stands for; whether it is one.
    pub(super) fn unpack(
        self,
        code: u8,
        cursor: &mut Cursor<'_>,
        records: &mut RecordBuf,
    ) -> Result<bool, FormatError> {
        if code == copied::CODE {
            return copied::unpack(self.log_block(), cursor, records).map(|()| true);
        }
        let mut bytes = ShortReader::new(cursor.rest().get(1..).unwrap_or_default());
        match code {
            LOG_STRIPE => self.take_log_stripe(&mut bytes, records)?,
            COMMIT => self.take_commit(&mut bytes, records)?,
            FULL_STRIPE => self.take_full_stripe(&mut bytes, records)?,
            _ => return Ok(false),
        }
        cursor.go_on(bytes.rest());
        Ok(true)
    }

    fn take_log_stripe(
        self,
        bytes: &mut ShortReader<'_>,
        records: &mut RecordBuf,
    ) -> Result<(), FormatError> {
        let (before, log_count) = self.log.ok_or(NONE_BEFORE)?;
        let Steps { mut lcn, mut taken, .. } = self.steps;
        let first = bytes.number()?;
        let block = u64::from(before).checked_add(first >> 1).and_then(|block| u32::try_from(block).ok());
        let block = block.ok_or(FormatError::Malformed {
            what: "blocks that a short log stripe is behind the one before",
            found: first >> 1,
            expected: "a block below 2^32",
        })?;
        let is_copied = first & 1 == 1;
        if is_copied && log_count > COPIES_MAX {
            return Err(FormatError::Malformed {
                what: "log devices of a short log stripe of one chunk",
                found: u64::try_from(log_count).unwrap_or(u64::MAX),
                expected: "at most 15",
            });
        }
        let count = match is_copied {
            true => 1,
            false => bytes.number_below("members of a short log stripe", MEMBERS_LIMIT)?,
        };
        let crcs = LogStripe::begin(records, ChunkIndex::new(block), log_count);
        if !is_copied {
            (0..log_count).try_for_each(|row| bytes.crc().map(|crc| records.set_crc(crcs.at(row), crc)))?;
        }
        for _ in 0..count {
            let number = bytes.step("logical chunk of a short log stripe", &mut lcn, LCN_LIMIT)?;
            let chunk = bytes.place("chunk of a short log stripe", &mut taken)?;
            let (lcn, chunk, crc) = (Lcn::new(number), ChunkIndex::new(chunk), bytes.crc()?);
            LogStripe::push(records, LogMember { lcn, chunk, crc });
            if is_copied {
                (0..log_count).for_each(|row| records.set_crc(crcs.at(row), crc));
            }
        }
        Ok(())
    }

    fn take_commit(self, bytes: &mut ShortReader<'_>, records: &mut RecordBuf) -> Result<(), FormatError> {
        let (data, parity) = self.commit.ok_or(NONE_BEFORE)?;
        let Steps { mut taken, mut covered, mut stripe, .. } = self.steps;
        Commit::begin(records, StripeId::new(bytes.step(STRIPE, &mut stripe, LCN_LIMIT)?));
        if planted(Planted::CommitBesideParity) {
            covered = taken;
        }
        for _ in 0..data {
            let chunk = bytes.place("data chunk of a short commit", &mut covered)?;
            Commit::push_data(records, ChunkIndex::new(chunk));
        }
        for _ in 0..parity {
            let chunk = ChunkIndex::new(bytes.place("parity chunk of a short commit", &mut taken)?);
            Commit::push_parity(records, StripeChunk { chunk, crc: bytes.crc()? });
        }
        Ok(())
    }

    fn take_full_stripe(
        self,
        bytes: &mut ShortReader<'_>,
        records: &mut RecordBuf,
    ) -> Result<(), FormatError> {
        let columns = self.full.ok_or(NONE_BEFORE)?;
        let Steps { mut taken, mut stripe, .. } = self.steps;
        FullStripe::begin(records, StripeId::new(bytes.step(STRIPE, &mut stripe, LCN_LIMIT)?));
        for _ in 0..columns {
            let chunk = ChunkIndex::new(bytes.place("chunk of a short full stripe", &mut taken)?);
            FullStripe::push(records, StripeChunk { chunk, crc: bytes.crc()? });
        }
        Ok(())
    }
}

/// More members than bytes of a frame are none that one has.
const MEMBERS_LIMIT: u64 = 4096;
const STRIPE: &str = "data stripe of a short record";
const NONE_BEFORE: FormatError = FormatError::Malformed {
    what: "records of its kind before a short one in a journal frame",
    found: 0,
    expected: "one, in its long form",
};
