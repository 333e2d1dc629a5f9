//! The table of segments: which slots are in use. Two copies, in two places in turn.
//!
//! A slot that is in use in the newest durable table is not written anew; so the table says of each slot what
//! must be there.

use super::{Durable, Fields, Malformed, STREAMS};
use crate::blocks::BLOCK_BYTES;
use crate::numbers::{narrow, wide};

const MAGIC: &[u8; 8] = b"kvtable1";
const HEAD_BYTES: usize = 160;

/// Bytes of one copy.
pub(crate) fn table_bytes(slot_count: u64) -> u64 {
    (wide(HEAD_BYTES) + slot_count.saturating_mul(8)).next_multiple_of(wide(BLOCK_BYTES))
}

/// What a table says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Table {
    pub(crate) epoch: u64,
    /// What was durable when it was written.
    pub(crate) durable: Durable,
    /// A segment with this sequence or a higher one may be in any slot that is free here.
    pub(crate) next_sequence: u64,
    /// Records to come have this number or a higher one.
    pub(crate) next_record: u64,
    /// Large values to come have this number or a higher one.
    pub(crate) next_value: u64,
    /// Records with a lower number are deleted.
    pub(crate) floor: u64,
    /// Records with a lower number may have been overwritten by some that are lost; 0: no.
    pub(crate) doubt_below: u64,
    /// The sequence of the segment in each slot; 0: free.
    pub(crate) slots: Vec<u64>,
}

impl Table {
    pub(crate) fn encode(&self, owner: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(narrow(table_bytes(wide(self.slots.len()))));
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[0; 8]);
        let [first, second] = self.durable.reached;
        for number in [
            owner,
            self.epoch,
            self.durable.number,
            self.durable.sequences,
            first.0,
            first.1.into(),
            second.0,
            second.1.into(),
            self.durable.epoch,
            self.next_sequence,
            self.next_record,
            self.next_value,
            self.floor,
            self.doubt_below,
            wide(self.slots.len()),
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.resize(HEAD_BYTES, 0);
        for slot in &self.slots {
            out.extend_from_slice(&slot.to_le_bytes());
        }
        out.resize(narrow(table_bytes(wide(self.slots.len()))), 0);
        let crc = format::crc32c(&out[16..]);
        out[8..12].copy_from_slice(&crc.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8], owner: u64, slot_count: u64) -> Result<Self, Malformed> {
        if wide(bytes.len()) != table_bytes(slot_count) || &bytes[..8] != MAGIC {
            return Err(Malformed::Magic);
        }
        if format::crc32c(&bytes[16..]) != bytes.u32_at(8) {
            return Err(Malformed::Checksum);
        }
        let word = |index: usize| bytes.u64_at(16 + 8 * index);
        if word(0) != owner || word(14) != slot_count {
            return Err(Malformed::Elsewhere);
        }
        let blocks = |index| {
            let found = word(index);
            u32::try_from(found).map_err(|_| Malformed::Range { field: "blocks of a segment", found })
        };
        let reached: [(u64, u32); STREAMS] = [(word(4), blocks(5)?), (word(6), blocks(7)?)];
        for (field, found) in [("number of a record", word(10)), ("number of a floor", word(12))] {
            if found >> 48 != 0 {
                return Err(Malformed::Range { field, found });
            }
        }
        let durable = Durable { number: word(2), sequences: word(3), reached, epoch: word(8) };
        let slots = bytes[HEAD_BYTES..].chunks_exact(8).take(narrow(slot_count));
        Ok(Self {
            epoch: word(1),
            durable,
            next_sequence: word(9),
            next_record: word(10),
            next_value: word(11),
            floor: word(12),
            doubt_below: word(13),
            slots: slots.map(|slot| slot.u64_at(0)).collect(),
        })
    }
}
