//! Journal records: each is one change of the array's metadata, together with the checksums of the
//! chunks it names.
//!
//! A record says what became true, not what to do, so replaying it twice does no harm. Together
//! they are the metadata of EPLOG, section 3.5: data-stripe records (stripe and chunk locations)
//! and log-stripe records (members and log chunks). Records have no padding and no length field of
//! their own: their head determines it.
//!
//! A record is owned as the bytes that are on disk ([`RecordBuf`]), and read through a view of its
//! kind, which decodes a field when it is asked for. A kind is declared in one file here: its
//! layout, its view, how it is written, and the facts that replay, journal, statistics and the
//! printing programs go by (`kind.rs`). The list of kinds is below.

mod buf;
mod commit;
mod copied;
mod delta;
mod elastic;
mod full_stripe;
mod in_place;
mod items;
mod kind;
mod log_stripe;
mod open_stripe;
mod pieces;
mod short;
mod zero;

pub use buf::{CrcOffset, CrcOffsets, PieceOffset, RecordBuf};
pub use commit::Commit;
pub(crate) use copied::COPIES_MAX;
pub use delta::Delta;
pub use elastic::Elastic;
pub use full_stripe::FullStripe;
pub use in_place::InPlace;
pub use items::{ElasticMember, InPlacePiece, Item, List, LogMember, StripeChunk};
pub(crate) use kind::BOND_BIT;
pub use kind::{Bond, CodeIndex, Evidence, Home, NewChunk, Part, Tally};
pub use log_stripe::LogStripe;
pub use open_stripe::OpenStripe;
pub(crate) use short::{Packing, TABLES as SHORT_TABLES};
pub use zero::Zero;

use crate::layout::Layout;
use crate::names::CodeTable;
use crate::{ArrayConfig, FormatError};
use block::planted::{Planted, planted};
use block::{ChunkIndex, Geometry, Lcn, StripeId};
use kind::{Cursor, RecordKind};
use std::fmt;

/// Makes [`RecordRef`] and the tables of the kinds from their list.
macro_rules! records {
    ($($kind:ident,)+) => {
        /// One record, of one kind; `docs/format.md` says what each kind means.
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the type of each view says what it is")]
        pub enum RecordRef<'a> {
            $($kind($kind<'a>),)+
        }

        /// Evaluates an expression with the view of a record's kind.
        macro_rules! with_view {
            ($record:expr, $view:ident => $what:expr) => {
                match $record {
                    $(RecordRef::$kind($view) => $what,)+
                }
            };
        }

        /// Evaluates an expression with the type of the kind that a byte stands for.
        macro_rules! with_kind {
            ($code:expr, $type:ident => $what:expr, else $other:expr) => {
                match $code {
                    $($kind::CODE => {
                        type $type<'a> = $kind<'a>;
                        $what
                    })+
                    _ => $other,
                }
            };
        }

        pub(crate) const RECORD_KINDS: CodeTable =
            CodeTable {
            title: "record kind",
            rows: &{
                let [copied, log_stripe, commit, full_stripe] = short::CODES;
                [$(($kind::CODE, $kind::NAME),)+ copied, log_stripe, commit, full_stripe]
            },
        };

        /// The layouts of all kinds, kind by kind.
        pub(crate) const RECORD_LAYOUTS: &[&[&Layout]] = &[$($kind::LAYOUTS,)+ &[&copied::copied_chunk::LAYOUT]];

        impl<'a> RecordRef<'a> {
            /// The record in bytes that are known to be one.
            #[inline]
            fn new(bytes: &'a [u8]) -> Self {
                match bytes[0] {
                    $($kind::CODE => Self::$kind($kind(bytes)),)+
                    code => unreachable!("no record of kind {code} was encoded or accepted"),
                }
            }
        }
    };
}

records! {
    LogStripe,
    FullStripe,
    Commit,
    Zero,
    InPlace,
    Delta,
    Elastic,
    OpenStripe,
}

const _: () = assert!(RECORD_KINDS.rows.len() == 12, "an error message below says 1 to 12");

impl<'a> RecordRef<'a> {
    /// What its kind is called.
    pub fn name(self) -> &'static str {
        with_kind!(self.bytes()[0], Kind => Kind::NAME, else "")
    }

    /// The bytes on disk.
    #[inline]
    pub(crate) fn bytes(self) -> &'a [u8] {
        with_view!(self, view => view.0)
    }

    /// Whether its numbers are within what an array of this configuration has. A scheme accepts no
    /// other record.
    pub fn fits(self, config: &ArrayConfig) -> bool {
        with_view!(self, view => view.fits(config))
    }

    /// What shows, after a crash, that all that it speaks of has arrived.
    pub fn evidence(self) -> Evidence {
        with_view!(self, view => view.evidence())
    }

    /// The chunks that it takes, out of place: those of its code word in the order of the code.
    pub fn new_chunks(self, geometry: &Geometry, visit: impl FnMut(NewChunk)) {
        with_view!(self, view => view.new_chunks(geometry, visit));
    }

    /// First block of its log chunks, at the same position on every log device, if it has any.
    #[inline]
    pub fn log_block(self) -> Option<ChunkIndex> {
        let field = with_kind!(self.bytes()[0], Kind => Kind::LOG_BLOCK, else None)?;
        Some(ChunkIndex::new(field.get_u32(self.bytes()))).filter(|block| !block.is_none())
    }

    /// Logical chunks that read as zeros from now on: the first, and how many.
    #[inline]
    pub fn discarded(self) -> Option<(Lcn, u64)> {
        with_view!(self, view => view.discarded())
    }

    /// The chunks that a user has written out of place, perhaps in part: then the rest is what they held
    /// before.
    pub fn written(self, geometry: &Geometry, visit: impl FnMut(Lcn)) {
        with_view!(self, view => view.written(geometry, visit));
    }

    /// The stripe of which it overwrites chunks.
    pub fn overwrites(self) -> Option<StripeId> {
        with_view!(self, view => view.overwrites())
    }

    /// The stripes that it says something of, some perhaps more than once.
    pub fn stripes(self, geometry: &Geometry, visit: impl FnMut(StripeId)) {
        with_view!(self, view => view.stripes(geometry, visit));
    }

    /// What it adds to the statistics.
    #[inline]
    pub fn tally(self, geometry: &Geometry) -> Tally {
        with_view!(self, view => view.tally(geometry))
    }

    /// What it says, in short.
    pub fn summary(self) -> String {
        with_view!(self, view => view.summary())
    }

    /// What it says, with the places of all chunks.
    pub fn text(self) -> String {
        with_view!(self, view => view.text())
    }

    /// All of it, part by part.
    pub fn parts(self) -> Vec<(&'static str, Part)> {
        with_view!(self, view => view.parts())
    }
}

impl fmt::Debug for RecordRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name(), self.parts())
    }
}

impl RecordBuf {
    /// One record.
    #[inline]
    pub fn get(&self, index: usize) -> RecordRef<'_> {
        RecordRef::new(self.record(index))
    }

    /// All records, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = RecordRef<'_>> + Clone {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Adds a copy of a record.
    pub fn push(&mut self, record: RecordRef<'_>) {
        self.append_record(record.bytes());
    }

    /// The log chunks of a record have found their place.
    pub fn set_log_block(&mut self, index: usize, block: ChunkIndex) {
        let bytes = self.record_mut(index);
        let field = with_kind!(bytes[0], Kind => Kind::LOG_BLOCK, else None);
        field.expect("such a record has log chunks").put_u32(bytes, block.get());
    }

    /// Takes the records of a frame from its bytes, and whether the next one belongs to each; what it
    /// allocates is bounded by those.
    pub(crate) fn decode(bytes: &[u8], record_count: u16) -> Result<(Self, Vec<Bond>), FormatError> {
        let (mut records, mut bonds, mut packing) = (Self::default(), Vec::new(), Packing::NONE);
        let mut cursor = Cursor::new(bytes);
        for _ in 0..record_count {
            let rest = cursor.rest();
            let kind = rest.first().copied().unwrap_or(0);
            let (code, bond) = (kind & !BOND_BIT, kind & BOND_BIT);
            let is_short = packing.unpack(code, &mut cursor, &mut records)?;
            if !is_short {
                with_kind!(code, Kind => Kind::walk(&mut cursor), else Err(FormatError::Malformed {
                    what: "record kind",
                    found: kind.into(),
                    expected: "1 to 12, or 129 to 140",
                }))?;
                records.append_record(&rest[..rest.len() - cursor.rest().len()]);
                records.record_mut(records.len() - 1)[0] = code;
            }
            if !is_short || !planted(Planted::CopiedBesideLong) {
                packing.passed(records.get(records.len() - 1));
            }
            bonds.push(if bond == 0 { Bond::None } else { Bond::Next });
        }
        match cursor.rest().len() {
            0 => Ok((records, bonds)),
            left => Err(FormatError::Malformed {
                what: "bytes behind the last record of a journal frame",
                found: left as u64,
                expected: "none",
            }),
        }
    }
}

impl fmt::Debug for RecordBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
