//! The short form of a log stripe of one chunk that frames had before there were steps (decision 0072): it is
//! read, and written no more.

use super::LogStripe;
use super::buf::RecordBuf;
use super::items::{Item, LogMember};
use super::kind::Cursor;
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
/// Log chunks, copies of a chunk, that a short form speaks of: so what it stands for is at most some ten
/// times as long.
pub(crate) const COPIES_MAX: usize = 15;
/// What it is called.
pub(crate) const NAME: &str = "copied chunk";

/// Takes one off the front of foreign bytes and adds what it stands for; the log stripe before begins at
/// `log_block`.
pub(super) fn unpack(
    log_block: Option<u32>,
    cursor: &mut Cursor<'_>,
    records: &mut RecordBuf,
) -> Result<(), FormatError> {
    let head = cursor.head(&copied_chunk::LAYOUT)?;
    let member = LogMember::get(cursor.rest().get(..LogMember::BYTES).unwrap_or(&[0; LogMember::BYTES]));
    cursor.list::<LogMember>(1)?;
    let blocks = copied_chunk::LOG_BLOCKS.get_u16(head);
    let log_block = log_block.and_then(|before| before.checked_add(blocks.into()));
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
