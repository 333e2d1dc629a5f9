//! Walking through a segment without a summary: batch by batch, and past what is broken.

use super::reading::read_all;
use crate::blocks::{BLOCK_BYTES, Medium};
use crate::hash::KeyHash;
use crate::layout::{
    BATCH_BYTES, Batch, Durable, Entry, HEAD_BYTES, Head, Header, Kind, Manifest, Place, UNIT_BYTES,
};
use crate::numbers::{narrow, short, wide};

/// Which segment may be in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    /// This one.
    Is(u64),
    /// One with this sequence or a higher one, or none.
    From(u64),
}

impl Wanted {
    pub(super) fn fits(self, sequence: u64) -> bool {
        match self {
            Self::Is(wanted) => sequence == wanted,
            Self::From(first) => sequence >= first,
        }
    }
}

/// What a walk found.
pub(super) struct Walk {
    pub(super) slot: usize,
    /// The segment that is there.
    pub(super) sequence: Option<u64>,
    pub(super) entries: Vec<Entry>,
    /// Blocks from the beginning without a gap.
    pub(super) whole_blocks: u32,
    /// Blocks up to the end of the last batch found.
    pub(super) end_blocks: u32,
    /// Whether the last batch of the segment was found.
    pub(super) saw_last: bool,
    /// The most that batches say was durable.
    pub(super) durable: Durable,
    pub(super) highest_batch: u64,
    /// All records have lower numbers.
    pub(super) record_limit: u64,
}

/// The records of one batch. `whole` is cleared if it ends in something else.
fn records(header: &Header, batch: &Batch, bytes: &[u8], start: u64, entries: &mut Vec<Entry>) -> bool {
    let mut at = BATCH_BYTES;
    let used = narrow(u64::from(batch.used_bytes)).min(bytes.len());
    while at + HEAD_BYTES <= used {
        let place = Place { sequence: batch.sequence, address: batch.address + wide(at) };
        let rest = &bytes[at..used];
        let Ok((head, key)) = Head::decode(rest, place) else { return false };
        let Ok(value) = head.value(rest) else {
            // The head says how long it is, so what follows is found; what it was is lost.
            return false;
        };
        let hash = match (head.kind, key.first_chunk::<12>()) {
            (Kind::Part, Some(part)) => {
                let [a, b, c, d, e, f, g, h, i, j, k, l] = *part;
                let main = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
                KeyHash { main, more: u32::from_le_bytes([i, j, k, l]) }
            }
            (Kind::Clear, _) => KeyHash { main: 0, more: 0 },
            (Kind::Part | Kind::Value | Kind::Large | Kind::Tombstone, _) => KeyHash::of(header.secret, key),
        };
        let units = |bytes: u64| short(narrow(bytes / UNIT_BYTES));
        let Ok(taken_units) = u16::try_from(head.taken_bytes() / UNIT_BYTES) else { return false };
        let offset_units = units(place.address - start);
        let entry = Entry { hash, seq: head.seq, offset_units, units: taken_units, kind: Some(head.kind) };
        entries.push(entry);
        if head.kind == Kind::Large
            && let Ok(manifest) = Manifest::decode(value)
        {
            entries.push(Entry { hash: KeyHash { main: manifest.id, more: 0 }, kind: None, ..entry });
        }
        at += narrow(head.taken_bytes());
    }
    at == used
}

/// Walks through the segment in a slot.
pub(super) fn walk(medium: &mut dyn Medium, header: &Header, slot: usize, wanted: Wanted) -> Walk {
    let geometry = &header.geometry;
    let (start, size, block) = (geometry.slot_start(slot), geometry.segment_bytes, wide(BLOCK_BYTES));
    let mut found = Walk {
        slot,
        sequence: None,
        entries: Vec::new(),
        whole_blocks: 0,
        end_blocks: 0,
        saw_last: false,
        durable: Durable::default(),
        highest_batch: 0,
        record_limit: 0,
    };
    let bytes = read_segment(medium, start, size);
    let mut at = 0;
    let mut whole = true;
    while at < size && !found.saw_last {
        let rest = &bytes[narrow(at)..];
        let batch = Batch::decode(rest, header.owner(), start + at, size - at).ok();
        let fits = |batch: &Batch| {
            found.sequence.map_or(wanted.fits(batch.sequence), |sequence| sequence == batch.sequence)
        };
        let Some(batch) = batch.filter(fits) else {
            whole = false;
            at += block;
            continue;
        };
        found.sequence = Some(batch.sequence);
        whole &= records(header, &batch, rest, start, &mut found.entries);
        at += batch.taken_bytes();
        found.end_blocks = short(narrow(at / block));
        if whole {
            found.whole_blocks = found.end_blocks;
        }
        found.saw_last = batch.last;
        found.highest_batch = found.highest_batch.max(batch.number);
        found.record_limit = found.record_limit.max(batch.record_limit);
        // Later batches say more.
        found.durable = batch.durable;
    }
    found
}

/// The bytes of a segment; blocks that cannot be read are zeros.
fn read_segment(medium: &mut dyn Medium, start: u64, size: u64) -> Vec<u8> {
    let piece = wide(64 * BLOCK_BYTES).min(size);
    let places: Vec<(u64, u64)> = (0..size).step_by(narrow(piece)).map(|at| (start + at, piece)).collect();
    let mut bytes = Vec::with_capacity(narrow(size));
    for ((place, length), found) in places.iter().zip(read_all(medium, &places)) {
        match found {
            Some(buffer) => bytes.extend_from_slice(&buffer),
            None => {
                // One bad block hides no others.
                let block = wide(BLOCK_BYTES);
                let blocks: Vec<(u64, u64)> =
                    (*place..place + length).step_by(BLOCK_BYTES).map(|at| (at, block)).collect();
                for found in read_all(medium, &blocks) {
                    match found {
                        Some(buffer) => bytes.extend_from_slice(&buffer),
                        None => bytes.resize(bytes.len() + BLOCK_BYTES, 0),
                    }
                }
            }
        }
    }
    bytes
}
