//! Data chunks of a stripe were written in place, and the change of each parity went to a log
//! device (`parity-log`).

use super::buf::{CrcOffsets, PieceOffset, RecordBuf};
use super::items::{InPlacePiece, List, crc_item, piece_item};
use super::kind::{Cursor, Evidence, Part, RecordKind, Tally};
use super::pieces::{are_pieces, chunk_blocks, columns, pieces_part};
use crate::layout::{Field, Layout, layout};
use crate::{ArrayConfig, FormatError};
use block::{ChunkIndex, Geometry, StripeId};

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

/// See the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Delta<'a>(pub(super) &'a [u8]);

impl<'a> Delta<'a> {
    /// Begins such a record, with room for a checksum on each of `log_count` log devices; the data
    /// chunks follow with [`Delta::push`], and the log chunks get their place later. Returns where
    /// those checksums are.
    #[inline]
    pub fn begin(records: &mut RecordBuf, stripe: StripeId, whole: bool, log_count: usize) -> CrcOffsets {
        let head = records.begin(Self::CODE, &delta::LAYOUT);
        delta::WHOLE.put_u8(head, u8::from(whole));
        delta::STRIPE.put_u48(head, stripe.get());
        records.append_crcs(Self::CODE, &delta::LOG_CRC_COUNT, log_count)
    }

    /// Adds a data chunk to the record just begun, in the order of columns; returns where it is.
    #[inline]
    pub fn push(records: &mut RecordBuf, piece: InPlacePiece) -> PieceOffset {
        records.append_piece(Self::CODE, &delta::PIECE_COUNT, piece)
    }

    /// The stripe.
    #[inline]
    pub fn stripe(self) -> StripeId {
        StripeId::new(delta::STRIPE.get_u48(self.0))
    }

    /// Whether the log chunk is the parity itself: the one on the main device and earlier log
    /// chunks no longer count.
    #[inline]
    pub fn whole(self) -> bool {
        delta::WHOLE.get_u8(self.0) != 0
    }

    /// First 4 KiB block of the log chunk, at the same position on every log device.
    #[inline]
    pub fn log_block(self) -> ChunkIndex {
        ChunkIndex::new(delta::LOG_BLOCK.get_u32(self.0))
    }

    #[inline]
    fn lists(self) -> (&'a [u8], &'a [u8]) {
        let crcs = usize::from(delta::LOG_CRC_COUNT.get_u8(self.0)) * crc_item::LAYOUT.size;
        self.0[delta::LAYOUT.size..].split_at(crcs)
    }

    /// Checksum of the log chunk on each log device.
    #[inline]
    pub fn log_crcs(self) -> List<'a, u32> {
        List::new(self.lists().0)
    }

    /// The data chunks.
    #[inline]
    pub fn pieces(self) -> List<'a, InPlacePiece> {
        List::new(self.lists().1)
    }
}

impl<'a> RecordKind<'a> for Delta<'a> {
    const CODE: u8 = 6;
    const NAME: &'static str = "delta";
    const LAYOUTS: &'static [&'static Layout] = &[&delta::LAYOUT, &piece_item::LAYOUT];
    const LOG_BLOCK: Option<Field> = Some(delta::LOG_BLOCK);

    fn walk(cursor: &mut Cursor<'_>) -> Result<(), FormatError> {
        let head = cursor.head(&delta::LAYOUT)?;
        let found = delta::WHOLE.get_u8(head);
        if found > 1 {
            return Err(FormatError::Malformed {
                what: "mark of a delta record",
                found: found.into(),
                expected: "0 or 1",
            });
        }
        cursor.list::<u32>(delta::LOG_CRC_COUNT.get_u8(head).into())?;
        cursor.list::<InPlacePiece>(delta::PIECE_COUNT.get_u8(head).into())
    }

    fn fits(self, config: &ArrayConfig) -> bool {
        let block = self.log_block();
        !self.pieces().is_empty()
            && are_pieces(config, self.stripe(), self.pieces(), config.geometry.data_count())
            && self.log_crcs().len() == config.geometry.parity_count()
            && !block.is_none()
            && u64::from(block.get()) + u64::from(chunk_blocks(config)) <= u64::from(config.log_blocks) + 1
    }

    fn evidence(self) -> Evidence {
        Evidence::Overwritten
    }

    fn overwrites(self) -> Option<StripeId> {
        Some(self.stripe())
    }

    #[inline]
    fn tally(self, _geometry: &Geometry) -> Tally {
        Tally { log_stripes: 1, log_members: self.pieces().len() as u64, ..Tally::default() }
    }

    fn summary(self) -> String {
        let columns: Vec<u16> = self.pieces().iter().map(|piece| piece.column).collect();
        let logged = if self.whole() { "its parity" } else { "the change of its parity" };
        format!("stripe {} columns {columns:?} in place, {logged} logged", self.stripe())
    }

    fn text(self) -> String {
        let logged = if self.whole() { "parity" } else { "change of parity" };
        format!(
            "delta: stripe {}, columns {} in place, {logged} at log block {}",
            self.stripe(),
            columns(self.pieces()),
            self.log_block()
        )
    }

    fn parts(self) -> Vec<(&'static str, Part)> {
        vec![
            ("stripe", Part::Number(self.stripe().get())),
            ("whole", Part::Flag(self.whole())),
            ("log_block", Part::Number(self.log_block().get().into())),
            ("log_crcs", Part::numbers(self.log_crcs(), u64::from)),
            ("pieces", pieces_part(self.pieces())),
        ]
    }
}
