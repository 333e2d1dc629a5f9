//! All chunks of a data stripe were written anew.

use super::buf::{CrcOffset, RecordBuf};
use super::items::{List, StripeChunk, chunk_item};
use super::kind::{CodeIndex, Cursor, Evidence, Home, NewChunk, Part, RecordKind, Tally, is_chunk, spaced};
use crate::layout::{Layout, layout};
use crate::{ArrayConfig, FormatError};
use block::{Geometry, Lcn, StripeId};

layout!(
    /// Head of a full-stripe record.
    full_stripe, "record: full stripe", 8, {
        KIND: 0, 1, "record kind, 2";
        COLUMN_COUNT: 1, 1, "columns, data then parity";
        STRIPE: 2, 6, "data stripe";
    }
);

/// See the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FullStripe<'a>(pub(super) &'a [u8]);

impl<'a> FullStripe<'a> {
    /// Begins such a record; its chunks follow with [`FullStripe::push`].
    #[inline]
    pub fn begin(records: &mut RecordBuf, stripe: StripeId) {
        full_stripe::STRIPE.put_u48(records.begin(Self::CODE, &full_stripe::LAYOUT), stripe.get());
    }

    /// Adds the chunk of the next column, data then parity, to the record just begun; returns where
    /// its checksum is.
    #[inline]
    pub fn push(records: &mut RecordBuf, chunk: StripeChunk) -> CrcOffset {
        records.append_crc(Self::CODE, &full_stripe::COLUMN_COUNT, chunk, &chunk_item::CRC)
    }

    /// The stripe.
    #[inline]
    pub fn stripe(self) -> StripeId {
        StripeId::new(full_stripe::STRIPE.get_u48(self.0))
    }

    /// k data, then m parity.
    #[inline]
    pub fn chunks(self) -> List<'a, StripeChunk> {
        List::new(&self.0[full_stripe::LAYOUT.size..])
    }
}

impl<'a> RecordKind<'a> for FullStripe<'a> {
    const CODE: u8 = 2;
    const NAME: &'static str = "full stripe";
    const LAYOUTS: &'static [&'static Layout] = &[&full_stripe::LAYOUT, &chunk_item::LAYOUT];

    fn walk(cursor: &mut Cursor<'_>) -> Result<(), FormatError> {
        let head = cursor.head(&full_stripe::LAYOUT)?;
        cursor.list::<StripeChunk>(full_stripe::COLUMN_COUNT.get_u8(head).into())
    }

    fn fits(self, config: &ArrayConfig) -> bool {
        self.stripe().get() < config.stripe_count
            && self.chunks().len() == config.geometry.device_count()
            && self.chunks().iter().all(|c| !c.chunk.is_none() && is_chunk(config, c.chunk))
    }

    fn evidence(self) -> Evidence {
        Evidence::CodeWord
    }

    fn new_chunks(self, geometry: &Geometry, mut visit: impl FnMut(NewChunk)) {
        let columns = self.chunks().iter().take(geometry.device_count());
        for (column, StripeChunk { chunk, crc }) in columns.enumerate() {
            let index = match column.checked_sub(geometry.data_count()) {
                None => CodeIndex::Data(column),
                Some(row) => CodeIndex::Parity(row),
            };
            let home = Home::OfColumn(self.stripe(), column);
            visit(NewChunk { home, chunk, content: Some((index, crc)) });
        }
    }

    fn written(self, geometry: &Geometry, visit: impl FnMut(Lcn)) {
        (0..geometry.data_count()).map(|column| geometry.lcn_at(self.stripe(), column)).for_each(visit);
    }

    #[inline]
    fn tally(self, _geometry: &Geometry) -> Tally {
        Tally { full_stripes: 1, ..Tally::default() }
    }

    fn summary(self) -> String {
        format!("full stripe {}", self.stripe())
    }

    fn text(self) -> String {
        let chunks = spaced(self.chunks().iter().map(|column| column.chunk));
        format!("full stripe {}: chunks {chunks}", self.stripe())
    }

    fn parts(self) -> Vec<(&'static str, Part)> {
        vec![
            ("stripe", Part::Number(self.stripe().get())),
            ("chunks", Part::numbers(self.chunks(), |column| column.chunk.get().into())),
            ("crcs", Part::numbers(self.chunks(), |column| column.crc.into())),
        ]
    }
}
