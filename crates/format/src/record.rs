//! Journal records: each is one change of the array's metadata, together with the checksums of the chunks it names.
//!
//! A record says what became true, not what to do, so replaying it twice does no harm. Together they are the metadata of
//! EPLOG, section 3.5: data-stripe records (stripe and chunk locations) and log-stripe records (members and log
//! chunks). Records have no padding and no length field of their own: their head determines it.

use crate::config::LCN_LIMIT;
use crate::layout::layout;
use crate::{FormatError, names::CodeTable};
use block::{ChunkIndex, Lcn, StripeId};

/// A data chunk of a log stripe: which logical chunk, where its new version lies on its own device, and its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogMember {
    /// The logical chunk, below [`LCN_LIMIT`].
    pub lcn: Lcn,
    /// Where the new version is, on the device that the layout assigns to the logical chunk.
    pub chunk: ChunkIndex,
    /// Checksum of the chunk.
    pub crc: u32,
}

/// A chunk that was written in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InPlacePiece {
    /// 0..k data, k.. parity.
    pub column: u16,
    /// Checksum of the chunk.
    pub crc: u32,
    /// First block of a copy in the payload ring of the column's device; 0 if there is none.
    pub payload_block: u32,
}

/// A data chunk of an elastic stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElasticMember {
    /// The logical chunk, below 2^32: an array of elastic stripes has no more.
    pub lcn: Lcn,
    /// What it is a copy of: 0 for a new version; otherwise the place, counted as the map does, that garbage collection moved
    /// it from. The move counts only if the newest version is still there.
    pub from: u32,
}

/// One record, borrowing its lists: what the engine appends.
///
/// A list holds at most 255 entries (columns of a codeword, pieces) but for the members of a log stripe, of which there
/// may be as many as a frame holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordRef<'a> {
    /// New versions of chunks, out of place, protected by one log chunk on each log device.
    LogStripe {
        /// First 4 KiB block of the log chunk, at the same position on every log device.
        log_block: ChunkIndex,
        /// CRC-32C of the log chunk on each log device.
        log_crcs: &'a [u32],
        /// The data chunks.
        members: &'a [LogMember],
    },
    /// All chunks of a data stripe were written anew.
    FullStripe {
        /// The stripe.
        stripe: StripeId,
        /// k data, then m parity.
        chunks: &'a [ChunkIndex],
        /// Checksum of each, as many as `chunks`.
        crcs: &'a [u32],
    },
    /// Parity commit: the parity of a data stripe now covers these versions of its data.
    Commit {
        /// The stripe.
        stripe: StripeId,
        /// The k data chunks that the parity covers; [`ChunkIndex::NONE`] = a column of zeros.
        data: &'a [ChunkIndex],
        /// The m parity chunks; all `NONE` when every column is zero.
        parity: &'a [ChunkIndex],
        /// Checksum of each, as many as `parity`.
        parity_crcs: &'a [u32],
    },
    /// Logical chunks now read as zeros.
    Zero {
        /// The first of them.
        first: Lcn,
        /// How many.
        count: u64,
    },
    /// Chunks of a data stripe were written in place, among them all parities: these are current now, and what log
    /// chunks said of them is void.
    InPlace {
        /// The stripe.
        stripe: StripeId,
        /// The chunks.
        pieces: &'a [InPlacePiece],
    },
    /// Data chunks of a stripe were written in place, and the change of each parity went to a log device (`parity-log`).
    Delta {
        /// The stripe.
        stripe: StripeId,
        /// The log chunk is the parity itself: the one on the main device and earlier log chunks no longer count.
        whole: bool,
        /// First 4 KiB block of the log chunk, at the same position on every log device.
        log_block: ChunkIndex,
        /// CRC-32C of the log chunk on each log device.
        log_crcs: &'a [u32],
        /// The data chunks.
        pieces: &'a [InPlacePiece],
    },
    /// An elastic stripe was written: data in the first columns of a row, the others zeros, and its parity.
    Elastic {
        /// The row: chunk `row + 1` of every main device.
        row: u32,
        /// The class of chunks that were written together.
        class: u8,
        /// Its data chunks, from column 0 on.
        members: &'a [ElasticMember],
        /// Checksum of each data chunk, then of each of the m parity chunks.
        crcs: &'a [u32],
    },
}

/// One record, owning its lists: what recovery replays. See [`RecordRef`] for the fields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// See [`RecordRef::LogStripe`].
    LogStripe {
        /// First 4 KiB block of the log chunk.
        log_block: ChunkIndex,
        /// CRC-32C of the log chunk on each log device.
        log_crcs: Vec<u32>,
        /// The data chunks.
        members: Vec<LogMember>,
    },
    /// See [`RecordRef::FullStripe`].
    FullStripe {
        /// The stripe.
        stripe: StripeId,
        /// k data, then m parity.
        chunks: Vec<ChunkIndex>,
        /// Checksum of each.
        crcs: Vec<u32>,
    },
    /// See [`RecordRef::Commit`].
    Commit {
        /// The stripe.
        stripe: StripeId,
        /// The k data chunks.
        data: Vec<ChunkIndex>,
        /// The m parity chunks.
        parity: Vec<ChunkIndex>,
        /// Checksum of each parity chunk.
        parity_crcs: Vec<u32>,
    },
    /// See [`RecordRef::Zero`].
    Zero {
        /// The first logical chunk.
        first: Lcn,
        /// How many.
        count: u64,
    },
    /// See [`RecordRef::InPlace`].
    InPlace {
        /// The stripe.
        stripe: StripeId,
        /// The chunks.
        pieces: Vec<InPlacePiece>,
    },
    /// See [`RecordRef::Delta`].
    Delta {
        /// The stripe.
        stripe: StripeId,
        /// The log chunk is the parity itself.
        whole: bool,
        /// First 4 KiB block of the log chunk.
        log_block: ChunkIndex,
        /// CRC-32C of the log chunk on each log device.
        log_crcs: Vec<u32>,
        /// The data chunks.
        pieces: Vec<InPlacePiece>,
    },
    /// See [`RecordRef::Elastic`].
    Elastic {
        /// The row.
        row: u32,
        /// The class of chunks.
        class: u8,
        /// Its data chunks.
        members: Vec<ElasticMember>,
        /// Checksums of data, then parity.
        crcs: Vec<u32>,
    },
}

impl Record {
    /// Borrows the record.
    pub fn as_ref(&self) -> RecordRef<'_> {
        match self {
            Self::LogStripe { log_block, log_crcs, members } => {
                RecordRef::LogStripe { log_block: *log_block, log_crcs, members }
            }
            Self::FullStripe { stripe, chunks, crcs } => {
                RecordRef::FullStripe { stripe: *stripe, chunks, crcs }
            }
            Self::Commit { stripe, data, parity, parity_crcs } => {
                RecordRef::Commit { stripe: *stripe, data, parity, parity_crcs }
            }
            Self::Zero { first, count } => RecordRef::Zero { first: *first, count: *count },
            Self::InPlace { stripe, pieces } => RecordRef::InPlace { stripe: *stripe, pieces },
            Self::Delta { stripe, whole, log_block, log_crcs, pieces } => {
                RecordRef::Delta { stripe: *stripe, whole: *whole, log_block: *log_block, log_crcs, pieces }
            }
            Self::Elastic { row, class, members, crcs } => {
                RecordRef::Elastic { row: *row, class: *class, members, crcs }
            }
        }
    }
}

const LOG_STRIPE: u8 = 1;
const FULL_STRIPE: u8 = 2;
const COMMIT: u8 = 3;
const ZERO: u8 = 4;
const IN_PLACE: u8 = 5;
const DELTA: u8 = 6;
const ELASTIC: u8 = 7;

pub(crate) const RECORD_KINDS: CodeTable = CodeTable {
    title: "record kind",
    rows: &[
        (LOG_STRIPE, "log stripe"),
        (FULL_STRIPE, "full stripe"),
        (COMMIT, "commit"),
        (ZERO, "zero"),
        (IN_PLACE, "in place"),
        (DELTA, "delta"),
        (ELASTIC, "elastic stripe"),
    ],
};

layout!(
    /// Head of a log-stripe record.
    log_stripe, "record: log stripe", 8, {
        KIND: 0, 1, "record kind, 1";
        LOG_CRC_COUNT: 1, 1, "log devices";
        MEMBER_COUNT: 2, 2, "members";
        LOG_BLOCK: 4, 4, "first block of the log chunk, on every log device";
    }
);
layout!(
    /// A checksum of a list of checksums.
    crc_item, "item: checksum", 4, {
        CRC: 0, 4, "checksum of the chunk";
    }
);
layout!(
    /// A member of a log stripe.
    log_member, "item: log-stripe member", 14, {
        LCN: 0, 6, "logical chunk number";
        CHUNK: 6, 4, "chunk index of the new version";
        CRC: 10, 4, "checksum of the chunk";
    }
);
layout!(
    /// Head of a full-stripe record.
    full_stripe, "record: full stripe", 8, {
        KIND: 0, 1, "record kind, 2";
        COLUMN_COUNT: 1, 1, "columns, data then parity";
        STRIPE: 2, 6, "data stripe";
    }
);
layout!(
    /// A chunk with its checksum.
    chunk_item, "item: chunk with checksum", 8, {
        CHUNK: 0, 4, "chunk index";
        CRC: 4, 4, "checksum of the chunk";
    }
);
layout!(
    /// Head of a commit record.
    commit, "record: commit", 9, {
        KIND: 0, 1, "record kind, 3";
        DATA_COUNT: 1, 1, "data columns";
        PARITY_COUNT: 2, 1, "parity columns";
        STRIPE: 3, 6, "data stripe";
    }
);
layout!(
    /// A chunk without a checksum.
    place_item, "item: chunk", 4, {
        CHUNK: 0, 4, "chunk index; 0 = a column of zeros";
    }
);
layout!(
    /// A zero record.
    zero, "record: zero", 15, {
        KIND: 0, 1, "record kind, 4";
        FIRST: 1, 6, "first logical chunk number";
        COUNT: 7, 8, "how many logical chunks";
    }
);
layout!(
    /// Head of an in-place record.
    in_place, "record: in place", 8, {
        KIND: 0, 1, "record kind, 5";
        PIECE_COUNT: 1, 1, "pieces";
        STRIPE: 2, 6, "data stripe";
    }
);
layout!(
    /// Head of a delta record.
    delta, "record: delta", 14, {
        KIND: 0, 1, "record kind, 6";
        PIECE_COUNT: 1, 1, "pieces";
        LOG_CRC_COUNT: 2, 1, "log devices";
        WHOLE: 3, 1, "1 = the log chunk is the parity itself, 0 = a change of it";
        STRIPE: 4, 6, "data stripe";
        LOG_BLOCK: 10, 4, "first block of the log chunk, on every log device";
    }
);
layout!(
    /// Head of an elastic-stripe record.
    elastic, "record: elastic stripe", 8, {
        KIND: 0, 1, "record kind, 7";
        MEMBER_COUNT: 1, 1, "members";
        PARITY_COUNT: 2, 1, "parity columns";
        CLASS: 3, 1, "class of chunks written together";
        ROW: 4, 4, "row: chunk row + 1 of every main device";
    }
);
layout!(
    /// A member of an elastic stripe.
    elastic_member, "item: elastic-stripe member", 12, {
        LCN: 0, 4, "logical chunk number";
        FROM: 4, 4, "0 = a new version, else the place it was moved from: row x k + column + 1";
        CRC: 8, 4, "checksum of the chunk";
    }
);
layout!(
    /// A piece of an in-place or delta record.
    piece_item, "item: piece", 10, {
        COLUMN: 0, 2, "column, data then parity";
        CRC: 2, 4, "checksum of the chunk";
        PAYLOAD_BLOCK: 6, 4, "first block of the copy in the payload ring; 0 = none";
    }
);

impl RecordRef<'_> {
    /// Bytes on disk, or `None` if a list is longer than its count can say.
    #[inline]
    pub(crate) fn encoded_len(&self) -> Option<usize> {
        let (longest, bytes) = match self {
            Self::LogStripe { log_crcs, members, .. } => (
                log_crcs.len().max(members.len() / 0x100),
                log_stripe::LAYOUT.size
                    + log_crcs.len() * crc_item::LAYOUT.size
                    + members.len() * log_member::LAYOUT.size,
            ),
            Self::FullStripe { chunks, .. } => {
                (chunks.len(), full_stripe::LAYOUT.size + chunks.len() * chunk_item::LAYOUT.size)
            }
            Self::Commit { data, parity, .. } => (
                data.len().max(parity.len()),
                commit::LAYOUT.size
                    + data.len() * place_item::LAYOUT.size
                    + parity.len() * chunk_item::LAYOUT.size,
            ),
            Self::Zero { .. } => (0, zero::LAYOUT.size),
            Self::InPlace { pieces, .. } => {
                (pieces.len(), in_place::LAYOUT.size + pieces.len() * piece_item::LAYOUT.size)
            }
            Self::Delta { log_crcs, pieces, .. } => (
                log_crcs.len().max(pieces.len()),
                delta::LAYOUT.size
                    + log_crcs.len() * crc_item::LAYOUT.size
                    + pieces.len() * piece_item::LAYOUT.size,
            ),
            Self::Elastic { members, crcs, .. } => {
                let parities = crcs.len().checked_sub(members.len())?;
                (
                    members.len().max(parities),
                    elastic::LAYOUT.size
                        + members.len() * elastic_member::LAYOUT.size
                        + parities * crc_item::LAYOUT.size,
                )
            }
        };
        (longest <= 0xff).then_some(bytes)
    }

    /// Writes exactly [`RecordRef::encoded_len`] bytes.
    #[inline]
    pub(crate) fn encode(&self, out: &mut [u8]) {
        match *self {
            Self::LogStripe { log_block, log_crcs, members } => {
                encode_log_stripe(log_block, log_crcs, members, out);
            }
            Self::FullStripe { stripe, chunks, crcs } => {
                let (head, items) = out.split_at_mut(full_stripe::LAYOUT.size);
                full_stripe::KIND.put_u8(head, FULL_STRIPE);
                full_stripe::COLUMN_COUNT.put_u8(head, count(chunks));
                full_stripe::STRIPE.put_u48(head, stripe.get());
                encode_chunks(chunks, crcs, items);
            }
            Self::Commit { stripe, data, parity, parity_crcs } => {
                let (head, items) = out.split_at_mut(commit::LAYOUT.size);
                commit::KIND.put_u8(head, COMMIT);
                commit::DATA_COUNT.put_u8(head, count(data));
                commit::PARITY_COUNT.put_u8(head, count(parity));
                commit::STRIPE.put_u48(head, stripe.get());
                let (places, items) = items.split_at_mut(data.len() * place_item::LAYOUT.size);
                for (out, chunk) in places.chunks_exact_mut(place_item::LAYOUT.size).zip(data) {
                    place_item::CHUNK.put_u32(out, chunk.get());
                }
                encode_chunks(parity, parity_crcs, items);
            }
            Self::Zero { first, count } => {
                assert!(
                    first.get() <= LCN_LIMIT && count <= LCN_LIMIT - first.get(),
                    "{count} zero chunks from {first:?}: logical chunk numbers are below 2^48"
                );
                zero::KIND.put_u8(out, ZERO);
                zero::FIRST.put_u48(out, first.get());
                zero::COUNT.put_u64(out, count);
            }
            Self::InPlace { stripe, pieces } => {
                let (head, items) = out.split_at_mut(in_place::LAYOUT.size);
                in_place::KIND.put_u8(head, IN_PLACE);
                in_place::PIECE_COUNT.put_u8(head, count(pieces));
                in_place::STRIPE.put_u48(head, stripe.get());
                encode_pieces(pieces, items);
            }
            Self::Delta { stripe, whole, log_block, log_crcs, pieces } => {
                let (head, items) = out.split_at_mut(delta::LAYOUT.size);
                delta::KIND.put_u8(head, DELTA);
                delta::PIECE_COUNT.put_u8(head, count(pieces));
                delta::LOG_CRC_COUNT.put_u8(head, count(log_crcs));
                delta::WHOLE.put_u8(head, u8::from(whole));
                delta::STRIPE.put_u48(head, stripe.get());
                delta::LOG_BLOCK.put_u32(head, log_block.get());
                let (crcs, items) = items.split_at_mut(log_crcs.len() * crc_item::LAYOUT.size);
                encode_crcs(log_crcs, crcs);
                encode_pieces(pieces, items);
            }
            Self::Elastic { row, class, members, crcs } => encode_elastic(row, class, members, crcs, out),
        }
    }
}

#[inline]
fn encode_elastic(row: u32, class: u8, members: &[ElasticMember], crcs: &[u32], out: &mut [u8]) {
    let (head, items) = out.split_at_mut(elastic::LAYOUT.size);
    let (data_crcs, parity_crcs) = crcs.split_at(members.len());
    elastic::KIND.put_u8(head, ELASTIC);
    elastic::MEMBER_COUNT.put_u8(head, count(members));
    elastic::PARITY_COUNT.put_u8(head, count(parity_crcs));
    elastic::CLASS.put_u8(head, class);
    elastic::ROW.put_u32(head, row);
    let (items, parities) = items.split_at_mut(members.len() * elastic_member::LAYOUT.size);
    for ((out, member), &crc) in
        items.chunks_exact_mut(elastic_member::LAYOUT.size).zip(members).zip(data_crcs)
    {
        let lcn = u32::try_from(member.lcn.get()).expect("elastic stripes hold chunks below 2^32");
        elastic_member::LCN.put_u32(out, lcn);
        elastic_member::FROM.put_u32(out, member.from);
        elastic_member::CRC.put_u32(out, crc);
    }
    encode_crcs(parity_crcs, parities);
}

#[inline]
fn encode_log_stripe(log_block: ChunkIndex, log_crcs: &[u32], members: &[LogMember], out: &mut [u8]) {
    let (head, items) = out.split_at_mut(log_stripe::LAYOUT.size);
    log_stripe::KIND.put_u8(head, LOG_STRIPE);
    log_stripe::LOG_CRC_COUNT.put_u8(head, count(log_crcs));
    let member_count = u16::try_from(members.len()).expect("encoded_len: the members fit into a block");
    log_stripe::MEMBER_COUNT.put_u16(head, member_count);
    log_stripe::LOG_BLOCK.put_u32(head, log_block.get());
    let (crcs, items) = items.split_at_mut(log_crcs.len() * crc_item::LAYOUT.size);
    encode_crcs(log_crcs, crcs);
    for (out, member) in items.chunks_exact_mut(log_member::LAYOUT.size).zip(members) {
        log_member::LCN.put_u48(out, member.lcn.get());
        log_member::CHUNK.put_u32(out, member.chunk.get());
        log_member::CRC.put_u32(out, member.crc);
    }
}

#[inline]
fn encode_crcs(crcs: &[u32], out: &mut [u8]) {
    for (out, crc) in out.chunks_exact_mut(crc_item::LAYOUT.size).zip(crcs) {
        crc_item::CRC.put_u32(out, *crc);
    }
}

#[inline]
fn encode_pieces(pieces: &[InPlacePiece], out: &mut [u8]) {
    for (out, piece) in out.chunks_exact_mut(piece_item::LAYOUT.size).zip(pieces) {
        piece_item::COLUMN.put_u16(out, piece.column);
        piece_item::CRC.put_u32(out, piece.crc);
        piece_item::PAYLOAD_BLOCK.put_u32(out, piece.payload_block);
    }
}

#[inline]
fn encode_chunks(chunks: &[ChunkIndex], crcs: &[u32], out: &mut [u8]) {
    assert!(chunks.len() == crcs.len(), "{} chunks with {} checksums", chunks.len(), crcs.len());
    for ((out, chunk), crc) in out.chunks_exact_mut(chunk_item::LAYOUT.size).zip(chunks).zip(crcs) {
        chunk_item::CHUNK.put_u32(out, chunk.get());
        chunk_item::CRC.put_u32(out, *crc);
    }
}

#[inline]
fn count<T>(list: &[T]) -> u8 {
    u8::try_from(list.len()).expect("encoded_len: at most 255 entries")
}

/// Takes records off the front of a frame's record area.
pub(crate) struct RecordReader<'a> {
    bytes: &'a [u8],
}

impl<'a> RecordReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn take(&mut self, count: usize, size: usize) -> Result<&'a [u8], FormatError> {
        let (taken, rest) = self.bytes.split_at_checked(count * size).ok_or(FormatError::Malformed {
            what: "bytes left for a record of a journal frame",
            found: self.bytes.len() as u64,
            expected: "as many as its head announces",
        })?;
        self.bytes = rest;
        Ok(taken)
    }

    fn chunks(&mut self, count: u8) -> Result<(Vec<ChunkIndex>, Vec<u32>), FormatError> {
        let items = self.take(count.into(), chunk_item::LAYOUT.size)?;
        Ok(items
            .chunks_exact(chunk_item::LAYOUT.size)
            .map(|item| (ChunkIndex::new(chunk_item::CHUNK.get_u32(item)), chunk_item::CRC.get_u32(item)))
            .unzip())
    }

    /// The next record; the lists it allocates are bounded by the bytes that are left.
    pub(crate) fn next(&mut self) -> Result<Record, FormatError> {
        match self.bytes.first() {
            Some(&LOG_STRIPE) => self.log_stripe(),
            Some(&FULL_STRIPE) => {
                let head = self.take(1, full_stripe::LAYOUT.size)?;
                let (chunks, crcs) = self.chunks(full_stripe::COLUMN_COUNT.get_u8(head))?;
                Ok(Record::FullStripe {
                    stripe: StripeId::new(full_stripe::STRIPE.get_u48(head)),
                    chunks,
                    crcs,
                })
            }
            Some(&COMMIT) => self.commit(),
            Some(&ZERO) => {
                let head = self.take(1, zero::LAYOUT.size)?;
                let (first, count) = (zero::FIRST.get_u48(head), zero::COUNT.get_u64(head));
                if count > LCN_LIMIT - first {
                    return Err(FormatError::Malformed {
                        what: "chunks of a zero record",
                        found: count,
                        expected: "an end at or below 2^48",
                    });
                }
                Ok(Record::Zero { first: Lcn::new(first), count })
            }
            Some(&IN_PLACE) => self.in_place(),
            Some(&DELTA) => self.delta(),
            Some(&ELASTIC) => self.elastic(),
            found => Err(FormatError::Malformed {
                what: "record kind",
                found: found.map_or(0, |&kind| u64::from(kind)),
                expected: "1 to 7",
            }),
        }
    }

    fn log_stripe(&mut self) -> Result<Record, FormatError> {
        let head = self.take(1, log_stripe::LAYOUT.size)?;
        let log_crcs = self.crcs(log_stripe::LOG_CRC_COUNT.get_u8(head))?;
        let members = self.take(log_stripe::MEMBER_COUNT.get_u16(head).into(), log_member::LAYOUT.size)?;
        Ok(Record::LogStripe {
            log_block: ChunkIndex::new(log_stripe::LOG_BLOCK.get_u32(head)),
            log_crcs,
            members: members
                .chunks_exact(log_member::LAYOUT.size)
                .map(|item| LogMember {
                    lcn: Lcn::new(log_member::LCN.get_u48(item)),
                    chunk: ChunkIndex::new(log_member::CHUNK.get_u32(item)),
                    crc: log_member::CRC.get_u32(item),
                })
                .collect(),
        })
    }

    fn commit(&mut self) -> Result<Record, FormatError> {
        let head = self.take(1, commit::LAYOUT.size)?;
        let data = self.take(commit::DATA_COUNT.get_u8(head).into(), place_item::LAYOUT.size)?;
        let (parity, parity_crcs) = self.chunks(commit::PARITY_COUNT.get_u8(head))?;
        let data = data.chunks_exact(place_item::LAYOUT.size);
        Ok(Record::Commit {
            stripe: StripeId::new(commit::STRIPE.get_u48(head)),
            data: data.map(|item| ChunkIndex::new(place_item::CHUNK.get_u32(item))).collect(),
            parity,
            parity_crcs,
        })
    }

    fn in_place(&mut self) -> Result<Record, FormatError> {
        let head = self.take(1, in_place::LAYOUT.size)?;
        let pieces = self.pieces(in_place::PIECE_COUNT.get_u8(head))?;
        Ok(Record::InPlace { stripe: StripeId::new(in_place::STRIPE.get_u48(head)), pieces })
    }

    fn delta(&mut self) -> Result<Record, FormatError> {
        let head = self.take(1, delta::LAYOUT.size)?;
        let whole = match delta::WHOLE.get_u8(head) {
            0 => false,
            1 => true,
            found => {
                return Err(FormatError::Malformed {
                    what: "mark of a delta record",
                    found: u64::from(found),
                    expected: "0 or 1",
                });
            }
        };
        let log_crcs = self.crcs(delta::LOG_CRC_COUNT.get_u8(head))?;
        let pieces = self.pieces(delta::PIECE_COUNT.get_u8(head))?;
        let log_block = ChunkIndex::new(delta::LOG_BLOCK.get_u32(head));
        Ok(Record::Delta {
            stripe: StripeId::new(delta::STRIPE.get_u48(head)),
            whole,
            log_block,
            log_crcs,
            pieces,
        })
    }

    fn elastic(&mut self) -> Result<Record, FormatError> {
        let head = self.take(1, elastic::LAYOUT.size)?;
        let items = self.take(elastic::MEMBER_COUNT.get_u8(head).into(), elastic_member::LAYOUT.size)?;
        let items = items.chunks_exact(elastic_member::LAYOUT.size);
        let member = |item: &[u8]| ElasticMember {
            lcn: Lcn::new(elastic_member::LCN.get_u32(item).into()),
            from: elastic_member::FROM.get_u32(item),
        };
        let members = items.clone().map(member).collect();
        let mut crcs: Vec<u32> = items.map(|item| elastic_member::CRC.get_u32(item)).collect();
        crcs.extend(self.crcs(elastic::PARITY_COUNT.get_u8(head))?);
        let (row, class) = (elastic::ROW.get_u32(head), elastic::CLASS.get_u8(head));
        Ok(Record::Elastic { row, class, members, crcs })
    }

    fn crcs(&mut self, count: u8) -> Result<Vec<u32>, FormatError> {
        let items = self.take(count.into(), crc_item::LAYOUT.size)?;
        Ok(items.chunks_exact(crc_item::LAYOUT.size).map(|item| crc_item::CRC.get_u32(item)).collect())
    }

    fn pieces(&mut self, count: u8) -> Result<Vec<InPlacePiece>, FormatError> {
        let items = self.take(count.into(), piece_item::LAYOUT.size)?;
        let piece = |item: &[u8]| InPlacePiece {
            column: piece_item::COLUMN.get_u16(item),
            crc: piece_item::CRC.get_u32(item),
            payload_block: piece_item::PAYLOAD_BLOCK.get_u32(item),
        };
        Ok(items.chunks_exact(piece_item::LAYOUT.size).map(piece).collect())
    }
}
