//! Parity commit: the parity of a data stripe now covers these versions of its data.

use super::buf::{CrcOffset, RecordBuf};
use super::items::{List, StripeChunk, chunk_item, place_item};
use super::kind::{CodeIndex, Cursor, Evidence, Home, NewChunk, Part, RecordKind, Tally, is_chunk, spaced};
use crate::layout::{Layout, layout};
use crate::{ArrayConfig, FormatError};
use block::{ChunkIndex, Geometry, StripeId};

layout!(
    /// Head of a commit record.
    commit, "record: commit", 9, {
        KIND: 0, 1, "record kind, 3";
        DATA_COUNT: 1, 1, "data columns";
        PARITY_COUNT: 2, 1, "parity columns";
        STRIPE: 3, 6, "data stripe";
    }
);

/// See the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Commit<'a>(pub(super) &'a [u8]);

impl<'a> Commit<'a> {
    /// Begins such a record; its data chunks follow with [`Commit::push_data`], then its parities with
    /// [`Commit::push_parity`].
    #[inline]
    pub fn begin(records: &mut RecordBuf, stripe: StripeId) {
        commit::STRIPE.put_u48(records.begin(Self::CODE, &commit::LAYOUT), stripe.get());
    }

    /// Adds the next data chunk that the parity covers, [`ChunkIndex::NONE`] for a column of zeros.
    #[inline]
    pub fn push_data(records: &mut RecordBuf, chunk: ChunkIndex) {
        records.append(Self::CODE, &commit::DATA_COUNT, chunk);
    }

    /// Adds the next parity chunk, `NONE` when every column is zero; returns where its checksum is.
    #[inline]
    pub fn push_parity(records: &mut RecordBuf, chunk: StripeChunk) -> CrcOffset {
        records.append_crc(Self::CODE, &commit::PARITY_COUNT, chunk, &chunk_item::CRC)
    }

    /// The stripe.
    #[inline]
    pub fn stripe(self) -> StripeId {
        StripeId::new(commit::STRIPE.get_u48(self.0))
    }

    #[inline]
    fn lists(self) -> (&'a [u8], &'a [u8]) {
        let data = usize::from(commit::DATA_COUNT.get_u8(self.0)) * place_item::LAYOUT.size;
        self.0[commit::LAYOUT.size..].split_at(data)
    }

    /// The k data chunks that the parity covers; [`ChunkIndex::NONE`] = a column of zeros.
    #[inline]
    pub fn data(self) -> List<'a, ChunkIndex> {
        List::new(self.lists().0)
    }

    /// The m parity chunks; all `NONE` when every column is zero.
    #[inline]
    pub fn parity(self) -> List<'a, StripeChunk> {
        List::new(self.lists().1)
    }
}

impl<'a> RecordKind<'a> for Commit<'a> {
    const CODE: u8 = 3;
    const NAME: &'static str = "commit";
    const LAYOUTS: &'static [&'static Layout] = &[&commit::LAYOUT, &place_item::LAYOUT];

    fn walk(cursor: &mut Cursor<'_>) -> Result<(), FormatError> {
        let head = cursor.head(&commit::LAYOUT)?;
        cursor.list::<ChunkIndex>(commit::DATA_COUNT.get_u8(head).into())?;
        cursor.list::<StripeChunk>(commit::PARITY_COUNT.get_u8(head).into())
    }

    fn fits(self, config: &ArrayConfig) -> bool {
        self.stripe().get() < config.stripe_count
            && self.data().len() == config.geometry.data_count()
            && self.parity().len() == config.geometry.parity_count()
            && self.parity().iter().all(|parity| is_chunk(config, parity.chunk))
    }

    /// Its data is older than the record, so the new parities are all that may not have arrived.
    fn evidence(self) -> Evidence {
        Evidence::EachChunk
    }

    fn new_chunks(self, geometry: &Geometry, mut visit: impl FnMut(NewChunk)) {
        let rows = self.parity().iter().take(geometry.parity_count()).enumerate();
        for (row, StripeChunk { chunk, crc }) in rows.filter(|(_, parity)| !parity.chunk.is_none()) {
            let home = Home::OfColumn(self.stripe(), geometry.data_count() + row);
            visit(NewChunk { home, chunk, content: Some((CodeIndex::Parity(row), crc)) });
        }
    }

    fn stripes(self, _geometry: &Geometry, mut visit: impl FnMut(StripeId)) {
        visit(self.stripe());
    }

    #[inline]
    fn tally(self, _geometry: &Geometry) -> Tally {
        Tally { stripes_committed: 1, ..Tally::default() }
    }

    fn summary(self) -> String {
        format!("commit of stripe {}", self.stripe())
    }

    fn text(self) -> String {
        let (data, parity) = (spaced(self.data().iter()), spaced(self.parity().iter().map(|row| row.chunk)));
        format!("commit of stripe {}: data {data}, parity {parity}", self.stripe())
    }

    fn parts(self) -> Vec<(&'static str, Part)> {
        vec![
            ("stripe", Part::Number(self.stripe().get())),
            ("data", Part::numbers(self.data(), |chunk| chunk.get().into())),
            ("parity", Part::numbers(self.parity(), |row| row.chunk.get().into())),
            ("parity_crcs", Part::numbers(self.parity(), |row| row.crc.into())),
        ]
    }
}
