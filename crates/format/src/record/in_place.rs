//! Chunks of a data stripe were written in place, among them all parities: these are current now,
//! and what log chunks said of them is void.

use super::buf::{PieceOffset, RecordBuf};
use super::items::{InPlacePiece, List};
use super::kind::{Cursor, Evidence, Part, RecordKind, Tally};
use super::pieces::{are_pieces, columns, pieces_part};
use crate::layout::{Layout, layout};
use crate::{ArrayConfig, FormatError};
use block::{Geometry, StripeId};

layout!(
    /// Head of an in-place record.
    in_place, "record: in place", 8, {
        KIND: 0, 1, "record kind, 5";
        PIECE_COUNT: 1, 1, "pieces";
        STRIPE: 2, 6, "data stripe";
    }
);

/// See the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InPlace<'a>(pub(super) &'a [u8]);

impl<'a> InPlace<'a> {
    /// Begins such a record; its chunks follow with [`InPlace::push`].
    #[inline]
    pub fn begin(records: &mut RecordBuf, stripe: StripeId) {
        in_place::STRIPE.put_u48(records.begin(Self::CODE, &in_place::LAYOUT), stripe.get());
    }

    /// Adds a chunk to the record just begun, in the order of columns; returns where it is.
    #[inline]
    pub fn push(records: &mut RecordBuf, piece: InPlacePiece) -> PieceOffset {
        records.append_piece(Self::CODE, &in_place::PIECE_COUNT, piece)
    }

    /// The stripe.
    #[inline]
    pub fn stripe(self) -> StripeId {
        StripeId::new(in_place::STRIPE.get_u48(self.0))
    }

    /// The chunks.
    #[inline]
    pub fn pieces(self) -> List<'a, InPlacePiece> {
        List::new(&self.0[in_place::LAYOUT.size..])
    }
}

impl<'a> RecordKind<'a> for InPlace<'a> {
    const CODE: u8 = 5;
    const NAME: &'static str = "in place";
    const LAYOUTS: &'static [&'static Layout] = &[&in_place::LAYOUT];

    fn walk(cursor: &mut Cursor<'_>) -> Result<(), FormatError> {
        let head = cursor.head(&in_place::LAYOUT)?;
        cursor.list::<InPlacePiece>(in_place::PIECE_COUNT.get_u8(head).into())
    }

    fn fits(self, config: &ArrayConfig) -> bool {
        let (k, m) = (config.geometry.data_count(), config.geometry.parity_count());
        are_pieces(config, self.stripe(), self.pieces(), k + m)
            && self.pieces().iter().filter(|piece| usize::from(piece.column) >= k).count() == m
    }

    fn evidence(self) -> Evidence {
        Evidence::Overwritten
    }

    fn overwrites(self) -> Option<StripeId> {
        Some(self.stripe())
    }

    #[inline]
    fn tally(self, geometry: &Geometry) -> Tally {
        let pieces = self.pieces().len();
        Tally {
            full_stripes: u64::from(pieces == geometry.device_count()),
            stripes_committed: u64::from(pieces == geometry.parity_count()),
            ..Tally::default()
        }
    }

    fn summary(self) -> String {
        let columns: Vec<u16> = self.pieces().iter().map(|piece| piece.column).collect();
        format!("stripe {} columns {columns:?} in place", self.stripe())
    }

    fn text(self) -> String {
        format!("in place: stripe {}, columns {}", self.stripe(), columns(self.pieces()))
    }

    fn parts(self) -> Vec<(&'static str, Part)> {
        vec![("stripe", Part::Number(self.stripe().get())), ("pieces", pieces_part(self.pieces()))]
    }
}
