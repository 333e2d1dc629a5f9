//! An elastic stripe was written: data in the first columns of a row, the others zeros, and its parity.

use super::buf::{CrcOffset, RecordBuf};
use super::items::{ElasticMember, List, elastic_member};
use super::kind::{CodeIndex, Cursor, Evidence, Home, NewChunk, Part, RecordKind, Tally, lcn_count};
use crate::layout::{Layout, layout};
use crate::{ArrayConfig, CLASSES_MAX, FormatError};
use block::{ChunkIndex, Geometry, Lcn, StripeId};

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

/// See the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Elastic<'a>(pub(super) &'a [u8]);

impl<'a> Elastic<'a> {
    /// Begins such a record; its data chunks follow with [`Elastic::push`], then its parities with
    /// [`Elastic::push_parity`].
    #[inline]
    pub fn begin(records: &mut RecordBuf, row: u32, class: u8) {
        let head = records.begin(Self::CODE, &elastic::LAYOUT);
        elastic::CLASS.put_u8(head, class);
        elastic::ROW.put_u32(head, row);
    }

    /// Adds the data chunk of the next column to the record just begun; returns where its checksum is.
    #[inline]
    pub fn push(records: &mut RecordBuf, member: ElasticMember) -> CrcOffset {
        records.append_crc(Self::CODE, &elastic::MEMBER_COUNT, member, &elastic_member::CRC)
    }

    /// Adds the next parity chunk to the record just begun; returns where its checksum is.
    #[inline]
    pub fn push_parity(records: &mut RecordBuf) -> CrcOffset {
        records.append_crcs(Self::CODE, &elastic::PARITY_COUNT, 1).at(0)
    }

    /// The row: chunk `row + 1` of every main device.
    #[inline]
    pub fn row(self) -> u32 {
        elastic::ROW.get_u32(self.0)
    }

    /// The class of chunks that were written together.
    #[inline]
    pub fn class(self) -> u8 {
        elastic::CLASS.get_u8(self.0)
    }

    #[inline]
    fn lists(self) -> (&'a [u8], &'a [u8]) {
        let members = usize::from(elastic::MEMBER_COUNT.get_u8(self.0)) * elastic_member::LAYOUT.size;
        self.0[elastic::LAYOUT.size..].split_at(members)
    }

    /// Its data chunks, from column 0 on.
    #[inline]
    pub fn members(self) -> List<'a, ElasticMember> {
        List::new(self.lists().0)
    }

    /// Checksum of each of the m parity chunks.
    #[inline]
    pub fn parity_crcs(self) -> List<'a, u32> {
        List::new(self.lists().1)
    }
}

impl<'a> RecordKind<'a> for Elastic<'a> {
    const CODE: u8 = 7;
    const NAME: &'static str = "elastic stripe";
    const LAYOUTS: &'static [&'static Layout] = &[&elastic::LAYOUT, &elastic_member::LAYOUT];

    fn walk(cursor: &mut Cursor<'_>) -> Result<(), FormatError> {
        let head = cursor.head(&elastic::LAYOUT)?;
        cursor.list::<ElasticMember>(elastic::MEMBER_COUNT.get_u8(head).into())?;
        cursor.list::<u32>(elastic::PARITY_COUNT.get_u8(head).into())
    }

    fn fits(self, config: &ArrayConfig) -> bool {
        usize::from(self.class()) < CLASSES_MAX
            && (1..=config.geometry.data_count()).contains(&self.members().len())
            && self.parity_crcs().len() == config.geometry.parity_count()
            && self.members().iter().all(|member| member.lcn.get() < lcn_count(config))
    }

    fn evidence(self) -> Evidence {
        Evidence::CodeWord
    }

    /// A short stripe, too, takes the row on every device.
    fn new_chunks(self, geometry: &Geometry, mut visit: impl FnMut(NewChunk)) {
        let (stripe, chunk) =
            (StripeId::new(self.row().into()), ChunkIndex::new(self.row().saturating_add(1)));
        let mut members = self.members().iter();
        let mut parities = self.parity_crcs().iter();
        for column in 0..geometry.device_count() {
            let content = match column.checked_sub(geometry.data_count()) {
                None => members.next().map(|member| (CodeIndex::Data(column), member.crc)),
                Some(parity) => parities.next().map(|crc| (CodeIndex::Parity(parity), crc)),
            };
            visit(NewChunk { home: Home::OfColumn(stripe, column), chunk, content });
        }
    }

    /// What was moved is what it was.
    fn written(self, _geometry: &Geometry, visit: impl FnMut(Lcn)) {
        self.members().iter().filter(|member| member.from == 0).map(|member| member.lcn).for_each(visit);
    }

    #[inline]
    fn tally(self, geometry: &Geometry) -> Tally {
        let is_short = self.members().len() < geometry.data_count();
        Tally { short_stripes: u64::from(is_short), full_stripes: u64::from(!is_short), ..Tally::default() }
    }

    fn summary(self) -> String {
        let lcns: Vec<u64> = self.members().iter().map(|member| member.lcn.get()).collect();
        let moved = if self.members().iter().any(|member| member.from != 0) { ", moved" } else { "" };
        format!("elastic stripe {} of chunks {lcns:?}{moved}", self.row())
    }

    fn text(self) -> String {
        let member = |member: ElasticMember| match member.from {
            0 => format!("lcn {}", member.lcn),
            from => format!("lcn {} moved from place {from}", member.lcn),
        };
        let members: Vec<String> = self.members().iter().map(member).collect();
        format!("elastic stripe in row {}, class {}: {}", self.row(), self.class(), members.join(", "))
    }

    fn parts(self) -> Vec<(&'static str, Part)> {
        let members = self.members().iter();
        let crcs = members.clone().map(|member| member.crc).chain(self.parity_crcs().iter());
        let crcs = crcs.map(u64::from).collect();
        let members = members.map(|member| vec![("lcn", member.lcn.get()), ("from", member.from.into())]);
        vec![
            ("row", Part::Number(self.row().into())),
            ("class", Part::Number(self.class().into())),
            ("members", Part::Items(members.collect())),
            ("crcs", Part::Numbers(crcs)),
        ]
    }
}
