//! Logical chunks now read as zeros.

use super::buf::RecordBuf;
use super::kind::{Cursor, Evidence, Part, RecordKind, lcn_count};
use crate::layout::{Layout, layout};
use crate::{ArrayConfig, FormatError, LCN_LIMIT};
use block::Lcn;

layout!(
    /// A zero record.
    zero, "record: zero", 15, {
        KIND: 0, 1, "record kind, 4";
        FIRST: 1, 6, "first logical chunk number";
        COUNT: 7, 8, "how many logical chunks";
    }
);

/// See the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Zero<'a>(pub(super) &'a [u8]);

impl<'a> Zero<'a> {
    /// Adds such a record.
    #[inline]
    pub fn push(records: &mut RecordBuf, first: Lcn, count: u64) {
        assert!(
            first.get() <= LCN_LIMIT && count <= LCN_LIMIT - first.get(),
            "{count} zero chunks from {first:?}: logical chunk numbers are below 2^48"
        );
        let head = records.begin(Self::CODE, &zero::LAYOUT);
        zero::FIRST.put_u48(head, first.get());
        zero::COUNT.put_u64(head, count);
    }

    /// The first of them.
    #[inline]
    pub fn first(self) -> Lcn {
        Lcn::new(zero::FIRST.get_u48(self.0))
    }

    /// How many.
    #[inline]
    pub fn count(self) -> u64 {
        zero::COUNT.get_u64(self.0)
    }
}

impl<'a> RecordKind<'a> for Zero<'a> {
    const CODE: u8 = 4;
    const NAME: &'static str = "zero";
    const LAYOUTS: &'static [&'static Layout] = &[&zero::LAYOUT];

    fn walk(cursor: &mut Cursor<'_>) -> Result<(), FormatError> {
        let head = cursor.head(&zero::LAYOUT)?;
        let (first, count) = (zero::FIRST.get_u48(head), zero::COUNT.get_u64(head));
        if count > LCN_LIMIT - first {
            return Err(FormatError::Malformed {
                what: "chunks of a zero record",
                found: count,
                expected: "an end at or below 2^48",
            });
        }
        Ok(())
    }

    fn fits(self, config: &ArrayConfig) -> bool {
        self.first().get().checked_add(self.count()).is_some_and(|end| end <= lcn_count(config))
    }

    fn evidence(self) -> Evidence {
        Evidence::Record
    }

    #[inline]
    fn discarded(self) -> Option<(Lcn, u64)> {
        Some((self.first(), self.count()))
    }

    fn summary(self) -> String {
        format!("zeros {}+{}", self.first(), self.count())
    }

    fn text(self) -> String {
        format!("zero: {} chunks from lcn {}", self.count(), self.first())
    }

    fn parts(self) -> Vec<(&'static str, Part)> {
        vec![("first", Part::Number(self.first().get())), ("count", Part::Number(self.count()))]
    }
}
