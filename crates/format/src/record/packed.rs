//! The short form of the most frequent record: a log stripe of one chunk whose log chunks have the checksum
//! of that chunk, being copies of it, and lie a little behind those of the log stripe before.
//!
//! It is a form of frames alone: whoever reads one gets the record that was put in.

use super::buf::RecordBuf;
use super::items::{Item, LogMember, log_member};
use super::kind::Cursor;
use super::{LogStripe, RecordRef};
use crate::FormatError;
use crate::layout::layout;
use block::ChunkIndex;

layout!(
    /// Head of a copied chunk.
    copied_chunk, "record: copied chunk", 4, {
        KIND: 0, 1, "record kind, 9";
        LOG_CRC_COUNT: 1, 1, "log devices; the log chunk on each has the checksum of the member that follows";
        LOG_BLOCKS: 2, 2, "how far its log chunk is behind that of the log stripe before in the frame";
    }
);

/// The byte on disk that tells it from records, which have others.
pub(crate) const CODE: u8 = 9;
/// What it is called.
pub(crate) const NAME: &str = "copied chunk";
/// Its length.
pub(crate) const BYTES: usize = copied_chunk::LAYOUT.size + log_member::LAYOUT.size;

/// Log chunks, copies of a chunk, that a short form speaks of: so what it stands for is at most six times as
/// long in a list, and six in a frame.
pub(crate) const COPIES_MAX: usize = 15;

/// What short forms of a frame build on.
#[derive(Clone, Copy)]
pub(crate) struct Packing {
    /// First log block of the last log stripe in the frame, if it has one.
    log_block: Option<u32>,
}

impl Packing {
    /// Nothing is in the frame yet.
    pub(crate) const NONE: Self = Self { log_block: None };

    /// The bytes of a record in its frame; `short` is room for them.
    #[inline]
    pub(crate) fn pack<'a>(self, record: RecordRef<'a>, short: &'a mut [u8; BYTES]) -> &'a [u8] {
        let RecordRef::LogStripe(stripe) = record else { return record.bytes() };
        let (members, crcs) = (stripe.members(), stripe.log_crcs());
        let blocks = self.log_block.and_then(|before| stripe.log_block().get().checked_sub(before));
        let Some(blocks) = blocks.and_then(|blocks| u16::try_from(blocks).ok()) else {
            return record.bytes();
        };
        if members.len() != 1 || crcs.len() > COPIES_MAX || crcs.iter().any(|crc| crc != members.at(0).crc) {
            return record.bytes();
        }
        let (head, member) = short.split_at_mut(copied_chunk::LAYOUT.size);
        copied_chunk::KIND.put_u8(head, CODE);
        copied_chunk::LOG_CRC_COUNT.put_u8(head, u8::try_from(crcs.len()).expect("its count has a byte"));
        copied_chunk::LOG_BLOCKS.put_u16(head, blocks);
        members.at(0).put(member);
        short
    }

    /// A record has been put into the frame, or taken from it.
    #[inline]
    pub(crate) fn passed(&mut self, record: RecordRef<'_>) {
        if let RecordRef::LogStripe(stripe) = record {
            self.log_block = Some(stripe.log_block().get());
        }
    }

    /// Takes a short form off the front of foreign bytes and adds what it stands for.
    pub(super) fn unpack(self, cursor: &mut Cursor<'_>, records: &mut RecordBuf) -> Result<(), FormatError> {
        let head = cursor.head(&copied_chunk::LAYOUT)?;
        let member = LogMember::get(cursor.rest().get(..LogMember::BYTES).unwrap_or(&[0; LogMember::BYTES]));
        cursor.list::<LogMember>(1)?;
        let blocks = copied_chunk::LOG_BLOCKS.get_u16(head);
        let log_block = self.log_block.and_then(|before| before.checked_add(blocks.into()));
        let log_block = log_block.ok_or(FormatError::Malformed {
            what: "blocks behind the log stripe before a copied chunk in a journal frame",
            found: blocks.into(),
            expected: "such a log stripe in the frame, and a block below 2^32",
        })?;
        let log_count = usize::from(copied_chunk::LOG_CRC_COUNT.get_u8(head));
        if log_count > COPIES_MAX {
            return Err(FormatError::Malformed {
                what: "log devices of a copied chunk in a journal frame",
                found: copied_chunk::LOG_CRC_COUNT.get_u8(head).into(),
                expected: "at most 15",
            });
        }
        let crcs = LogStripe::begin(records, ChunkIndex::new(log_block), log_count);
        (0..log_count).for_each(|row| records.set_crc(crcs.at(row), member.crc));
        LogStripe::push(records, member);
        Ok(())
    }
}
