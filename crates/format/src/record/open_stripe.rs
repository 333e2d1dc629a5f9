//! An elastic stripe has grown: chunks were added behind those that it had, and the parity of all of them is
//! in the log, or, if the stripe is closed by it, in its row.

use super::buf::{CrcOffset, CrcOffsets, RecordBuf};
use super::items::{ElasticMember, List, crc_item, elastic_member};
use super::kind::{CodeIndex, Cursor, Evidence, Home, NewChunk, Part, RecordKind, Tally, lcn_count};
use crate::layout::{Field, Layout, layout};
use crate::{ArrayConfig, CLASSES_MAX, FormatError};
use block::{ChunkIndex, Geometry, Lcn, StripeId};

layout!(
    /// Head of an open-stripe record.
    open_stripe, "record: open stripe", 13, {
        KIND: 0, 1, "record kind, 8";
        BEFORE_COUNT: 1, 1, "chunks that the stripe had before";
        PARITY_COUNT: 2, 1, "parities";
        MEMBER_COUNT: 3, 1, "chunks added behind them";
        CLASS: 4, 1, "class of chunks written together";
        ROW: 5, 4, "row: chunk row + 1 of every main device";
        LOG_BLOCK: 9, 4, "first block of the parity so far, on every log device; 0 = the parity is in the row: the stripe is closed";
    }
);

/// See the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OpenStripe<'a>(pub(super) &'a [u8]);

impl<'a> OpenStripe<'a> {
    /// Begins such a record of a stripe that has chunks with these checksums; those that are added follow
    /// with [`OpenStripe::push`]. No log block means that the stripe is closed. Returns where the checksums
    /// of the parities are.
    #[inline]
    pub fn begin(
        records: &mut RecordBuf,
        (row, class): (u32, u8),
        log_block: ChunkIndex,
        before: impl Iterator<Item = u32>,
        parity_count: usize,
    ) -> CrcOffsets {
        let head = records.begin(Self::CODE, &open_stripe::LAYOUT);
        open_stripe::CLASS.put_u8(head, class);
        open_stripe::ROW.put_u32(head, row);
        open_stripe::LOG_BLOCK.put_u32(head, log_block.get());
        for crc in before {
            records.append(Self::CODE, &open_stripe::BEFORE_COUNT, crc);
        }
        records.append_crcs(Self::CODE, &open_stripe::PARITY_COUNT, parity_count)
    }

    /// Adds the data chunk of the next column to the record just begun; returns where its checksum is.
    #[inline]
    pub fn push(records: &mut RecordBuf, member: ElasticMember) -> CrcOffset {
        records.append_crc(Self::CODE, &open_stripe::MEMBER_COUNT, member, &elastic_member::CRC)
    }

    /// The row: chunk `row + 1` of every main device.
    #[inline]
    pub fn row(self) -> u32 {
        open_stripe::ROW.get_u32(self.0)
    }

    /// The class of chunks that are written together.
    #[inline]
    pub fn class(self) -> u8 {
        open_stripe::CLASS.get_u8(self.0)
    }

    /// First 4 KiB block of the parity so far, at the same position on every log device; none if the stripe
    /// is closed.
    #[inline]
    pub fn log_block(self) -> ChunkIndex {
        ChunkIndex::new(open_stripe::LOG_BLOCK.get_u32(self.0))
    }

    #[inline]
    fn lists(self) -> (&'a [u8], &'a [u8], &'a [u8]) {
        let before = usize::from(open_stripe::BEFORE_COUNT.get_u8(self.0)) * crc_item::LAYOUT.size;
        let parities = usize::from(open_stripe::PARITY_COUNT.get_u8(self.0)) * crc_item::LAYOUT.size;
        let (before, rest) = self.0[open_stripe::LAYOUT.size..].split_at(before);
        let (parities, members) = rest.split_at(parities);
        (before, parities, members)
    }

    /// Checksum of each chunk that the stripe had before, from column 0 on.
    #[inline]
    pub fn before_crcs(self) -> List<'a, u32> {
        List::new(self.lists().0)
    }

    /// Checksum of each of the m parities.
    #[inline]
    pub fn parity_crcs(self) -> List<'a, u32> {
        List::new(self.lists().1)
    }

    /// The chunks that are added, from the first column behind those on.
    #[inline]
    pub fn members(self) -> List<'a, ElasticMember> {
        List::new(self.lists().2)
    }

    /// Data chunks that the stripe has now.
    #[inline]
    pub fn width(self) -> usize {
        self.before_crcs().len() + self.members().len()
    }
}

impl<'a> RecordKind<'a> for OpenStripe<'a> {
    const CODE: u8 = 8;
    const NAME: &'static str = "open stripe";
    const LAYOUTS: &'static [&'static Layout] = &[&open_stripe::LAYOUT];
    const LOG_BLOCK: Option<Field> = Some(open_stripe::LOG_BLOCK);

    fn walk(cursor: &mut Cursor<'_>) -> Result<(), FormatError> {
        let head = cursor.head(&open_stripe::LAYOUT)?;
        cursor.list::<u32>(open_stripe::BEFORE_COUNT.get_u8(head).into())?;
        cursor.list::<u32>(open_stripe::PARITY_COUNT.get_u8(head).into())?;
        cursor.list::<ElasticMember>(open_stripe::MEMBER_COUNT.get_u8(head).into())
    }

    fn fits(self, config: &ArrayConfig) -> bool {
        usize::from(self.class()) < CLASSES_MAX
            && (1..=config.geometry.data_count()).contains(&self.width())
            && self.log_block().get() <= config.log_blocks
            && self.parity_crcs().len() == config.geometry.parity_count()
            && self.members().iter().all(|member| member.lcn.get() < lcn_count(config) && member.from == 0)
    }

    fn evidence(self) -> Evidence {
        Evidence::CodeWord
    }

    /// The first such record of a row takes it on every device.
    fn new_chunks(self, geometry: &Geometry, mut visit: impl FnMut(NewChunk)) {
        let (stripe, chunk) =
            (StripeId::new(self.row().into()), ChunkIndex::new(self.row().saturating_add(1)));
        let is_new = self.before_crcs().is_empty();
        let home = |column| match is_new {
            true => Home::OfColumn(stripe, column),
            false => Home::InTakenRow(stripe, column),
        };
        let data = self.before_crcs().iter().chain(self.members().iter().map(|member| member.crc));
        for (column, crc) in data.enumerate() {
            visit(NewChunk { home: home(column), chunk, content: Some((CodeIndex::Data(column), crc)) });
        }
        if is_new {
            for column in self.width()..geometry.data_count() {
                visit(NewChunk { home: home(column), chunk, content: None });
            }
        }
        for (parity, crc) in self.parity_crcs().iter().enumerate() {
            let content = Some((CodeIndex::Parity(parity), crc));
            let (in_row, block) = (home(geometry.data_count() + parity), self.log_block());
            if block.is_none() {
                visit(NewChunk { home: in_row, chunk, content });
                continue;
            }
            if is_new {
                visit(NewChunk { home: in_row, chunk, content: None });
            }
            visit(NewChunk { home: Home::OfLog(parity), chunk: block, content });
        }
    }

    fn written(self, _geometry: &Geometry, visit: impl FnMut(Lcn)) {
        self.members().iter().map(|member| member.lcn).for_each(visit);
    }

    #[inline]
    fn tally(self, geometry: &Geometry) -> Tally {
        let (is_closed, is_full) = (self.log_block().is_none(), self.width() == geometry.data_count());
        Tally {
            short_stripes: u64::from(is_closed && !is_full),
            full_stripes: u64::from(is_closed && is_full),
            log_stripes: u64::from(!is_closed),
            log_members: if is_closed { 0 } else { open_stripe::MEMBER_COUNT.get_u8(self.0).into() },
            ..Tally::default()
        }
    }

    fn summary(self) -> String {
        let lcns: Vec<u64> = self.members().iter().map(|member| member.lcn.get()).collect();
        let closed = if self.log_block().is_none() { ", closed" } else { "" };
        format!(
            "open stripe {} from column {} on: chunks {lcns:?}{closed}",
            self.row(),
            self.before_crcs().len()
        )
    }

    fn text(self) -> String {
        let lcns: Vec<String> = self.members().iter().map(|member| format!("lcn {}", member.lcn)).collect();
        let parity = match self.log_block() {
            block if block.is_none() => "closed".to_owned(),
            block => format!("parity at log block {block}"),
        };
        let before = self.before_crcs().len();
        let (row, class, added) = (self.row(), self.class(), lcns.join(", "));
        format!("open stripe in row {row}, class {class}, {parity}: {before} chunks, and {added}")
    }

    fn parts(self) -> Vec<(&'static str, Part)> {
        let members = self.members().iter();
        let members = members.map(|member| vec![("lcn", member.lcn.get()), ("crc", member.crc.into())]);
        vec![
            ("row", Part::Number(self.row().into())),
            ("class", Part::Number(self.class().into())),
            ("log_block", Part::Number(self.log_block().get().into())),
            ("before_crcs", Part::numbers(self.before_crcs(), u64::from)),
            ("members", Part::Items(members.collect())),
            ("parity_crcs", Part::numbers(self.parity_crcs(), u64::from)),
        ]
    }
}
