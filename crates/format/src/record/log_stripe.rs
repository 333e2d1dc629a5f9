//! New versions of chunks, out of place, protected by one log chunk on each log device.

use super::buf::{CrcOffset, CrcOffsets, RecordBuf};
use super::items::{List, LogMember, crc_item, log_member};
use super::kind::{
    CodeIndex, Cursor, Evidence, Home, NewChunk, Part, RecordKind, Tally, is_chunk, lcn_count,
};
use crate::layout::{Field, Layout, layout};
use crate::{ArrayConfig, FormatError};
use block::{ChunkIndex, Geometry, Lcn};

layout!(
    /// Head of a log-stripe record.
    log_stripe, "record: log stripe", 8, {
        KIND: 0, 1, "record kind, 1";
        LOG_CRC_COUNT: 1, 1, "log devices";
        MEMBER_COUNT: 2, 2, "members";
        LOG_BLOCK: 4, 4, "first block of the log chunk, on every log device";
    }
);

/// See the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LogStripe<'a>(pub(super) &'a [u8]);

impl<'a> LogStripe<'a> {
    /// Begins such a record, with room for a checksum on each of `log_count` log devices; members follow with
    /// [`LogStripe::push`]. Returns where those checksums are.
    #[inline]
    pub fn begin(records: &mut RecordBuf, log_block: ChunkIndex, log_count: usize) -> CrcOffsets {
        log_stripe::LOG_BLOCK.put_u32(records.begin(Self::CODE, &log_stripe::LAYOUT), log_block.get());
        records.append_crcs(Self::CODE, &log_stripe::LOG_CRC_COUNT, log_count)
    }

    /// Adds a data chunk to the record just begun; returns where its checksum is.
    #[inline]
    pub fn push(records: &mut RecordBuf, member: LogMember) -> CrcOffset {
        records.append_crc(Self::CODE, &log_stripe::MEMBER_COUNT, member, &log_member::CRC)
    }

    /// First 4 KiB block of the log chunk, at the same position on every log device.
    #[inline]
    pub fn log_block(self) -> ChunkIndex {
        ChunkIndex::new(log_stripe::LOG_BLOCK.get_u32(self.0))
    }

    #[inline]
    fn lists(self) -> (&'a [u8], &'a [u8]) {
        let crcs = usize::from(log_stripe::LOG_CRC_COUNT.get_u8(self.0)) * crc_item::LAYOUT.size;
        self.0[log_stripe::LAYOUT.size..].split_at(crcs)
    }

    /// Checksum of the log chunk on each log device.
    #[inline]
    pub fn log_crcs(self) -> List<'a, u32> {
        List::new(self.lists().0)
    }

    /// The data chunks.
    #[inline]
    pub fn members(self) -> List<'a, LogMember> {
        List::new(self.lists().1)
    }
}

impl<'a> RecordKind<'a> for LogStripe<'a> {
    const CODE: u8 = 1;
    const NAME: &'static str = "log stripe";
    const LAYOUTS: &'static [&'static Layout] =
        &[&log_stripe::LAYOUT, &crc_item::LAYOUT, &log_member::LAYOUT];
    const LOG_BLOCK: Option<Field> = Some(log_stripe::LOG_BLOCK);

    fn walk(cursor: &mut Cursor<'_>) -> Result<(), FormatError> {
        let head = cursor.head(&log_stripe::LAYOUT)?;
        cursor.list::<u32>(log_stripe::LOG_CRC_COUNT.get_u8(head).into())?;
        cursor.list::<LogMember>(log_stripe::MEMBER_COUNT.get_u16(head).into())
    }

    fn fits(self, config: &ArrayConfig) -> bool {
        let block = self.log_block();
        let whole =
            |m: LogMember| m.lcn.get() < lcn_count(config) && !m.chunk.is_none() && is_chunk(config, m.chunk);
        !block.is_none()
            && block.get() <= config.log_blocks
            && self.log_crcs().len() == config.geometry.parity_count()
            && !self.members().is_empty()
            && self.members().iter().all(whole)
    }

    fn evidence(self) -> Evidence {
        Evidence::CodeWord
    }

    fn new_chunks(self, _geometry: &Geometry, mut visit: impl FnMut(NewChunk)) {
        for (i, LogMember { lcn, chunk, crc }) in self.members().iter().enumerate() {
            visit(NewChunk { home: Home::OfChunk(lcn), chunk, content: Some((CodeIndex::Data(i), crc)) });
        }
        let chunk = self.log_block();
        for (row, crc) in self.log_crcs().iter().enumerate() {
            visit(NewChunk { home: Home::OfLog(row), chunk, content: Some((CodeIndex::Parity(row), crc)) });
        }
    }

    fn written(self, _geometry: &Geometry, visit: impl FnMut(Lcn)) {
        self.members().iter().map(|member| member.lcn).for_each(visit);
    }

    #[inline]
    fn tally(self, _geometry: &Geometry) -> Tally {
        Tally { log_stripes: 1, log_members: self.members().len() as u64, ..Tally::default() }
    }

    fn summary(self) -> String {
        let lcns: Vec<u64> = self.members().iter().map(|member| member.lcn.get()).collect();
        format!("log stripe of chunks {lcns:?}")
    }

    fn text(self) -> String {
        let members = self.members().iter();
        let members: Vec<String> =
            members.map(|member| format!("lcn {} at {}", member.lcn, member.chunk)).collect();
        format!("log stripe at log block {}: {}", self.log_block(), members.join(", "))
    }

    fn parts(self) -> Vec<(&'static str, Part)> {
        let members = self.members().iter();
        let members = members.map(|LogMember { lcn, chunk, crc }| {
            vec![("lcn", lcn.get()), ("chunk", chunk.get().into()), ("crc", crc.into())]
        });
        vec![
            ("log_block", Part::Number(self.log_block().get().into())),
            ("log_crcs", Part::numbers(self.log_crcs(), u64::from)),
            ("members", Part::Items(members.collect())),
        ]
    }
}
