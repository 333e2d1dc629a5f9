//! What is known of each slot of the volume: which segment is in it, and how much of that counts.

use crate::ends::Ends;
use crate::layout::{ENTRY_BYTES, Entry, Geometry, Kind};
use crate::numbers::wide;
use std::collections::VecDeque;

/// Slots that only compaction, which needs one to free others, and a clear may take.
const RESERVED: usize = 2;
/// Half of the time after which a segment that could not be read is tried again, and how often that doubles.
const RETRY_MS: u64 = 1000;
const RETRY_DOUBLINGS: u32 = 10;
/// Slots beyond those that records may fill.
const SPARE: u64 = 4;

/// What a slot is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// Free in the durable table.
    Free,
    /// Written to.
    Open,
    /// Full; its summary is not written yet.
    Closing,
    /// Full, with a summary.
    Closed,
    /// Nothing in it counts; it is free when a table says so.
    Emptied,
    /// Nothing in it can be read. It stays as it is.
    Lost,
}

/// A slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) used: Use,
    pub(crate) sequence: u64,
    /// Bytes of records that count, with their lines of the summary.
    pub(crate) live_bytes: u64,
    /// Bytes of tombstones among them.
    pub(crate) tombstone_bytes: u64,
    /// The lowest number of a record that has a value, whether it counts or not.
    pub(crate) oldest_seq: u64,
    /// It was found when the store was opened: no line of a summary says when a key ends.
    pub(crate) ends_unknown: bool,
    /// Something that counts in it could not be read, so it was not emptied.
    pub(crate) stuck: bool,
    /// How often that was so, and when it may be tried again.
    tries: u32,
    retry_ms: u64,
}

impl Slot {
    /// Whether compaction may take it.
    pub(crate) fn is_worth_a_try(&self, now_ms: u64) -> bool {
        self.used == Use::Closed && (!self.stuck || self.retry_ms <= now_ms)
    }

    /// Whether it was not emptied before.
    pub(crate) fn has_failed(&self) -> bool {
        self.tries > 0
    }
}

const FREE: Slot = Slot {
    used: Use::Free,
    sequence: 0,
    live_bytes: 0,
    tombstone_bytes: 0,
    oldest_seq: u64::MAX,
    ends_unknown: false,
    stuck: false,
    tries: 0,
    retry_ms: 0,
};

/// All slots.
pub(crate) struct Slots {
    all: Vec<Slot>,
    /// What ends when, of each.
    ends: Vec<Ends>,
    free: VecDeque<usize>,
    live_bytes: u64,
    tombstone_bytes: u64,
    payload_bytes: u64,
    emptied_count: usize,
    /// Slots that nothing more will be written to.
    useless_count: usize,
}

/// What a record costs: its bytes and its line of the summary.
pub(crate) fn cost(taken_bytes: u64) -> u64 {
    taken_bytes + wide(ENTRY_BYTES)
}

impl Slots {
    /// All free.
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self {
            all: vec![FREE; geometry.slots()],
            ends: vec![Ends::default(); geometry.slots()],
            free: (0..geometry.slots()).collect(),
            live_bytes: 0,
            tombstone_bytes: 0,
            payload_bytes: geometry.segment_payload_bytes(),
            emptied_count: 0,
            useless_count: 0,
        }
    }

    pub(crate) fn get(&self, slot: usize) -> &Slot {
        &self.all[slot]
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &Slot)> {
        self.all.iter().enumerate()
    }

    pub(crate) fn free_count(&self) -> usize {
        self.free.len()
    }

    /// Slots so few that compaction should work.
    pub(crate) fn low_water(&self) -> usize {
        (self.all.len() / 16).clamp(RESERVED + 2, 64)
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    pub(crate) fn tombstone_bytes(&self) -> u64 {
        self.tombstone_bytes
    }

    /// Bytes that records may take in all.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        let usable = wide(self.all.len() - self.useless_count).saturating_sub(SPARE);
        usable * (self.payload_bytes / 16 * 15)
    }

    /// Whether no slot is free, nor will be when what is under way has ended.
    pub(crate) fn none_becomes_free(&self) -> bool {
        // One that is free and being discarded is in no list.
        self.all.iter().all(|slot| !matches!(slot.used, Use::Free | Use::Emptied))
    }

    /// Takes a free slot for a segment.
    pub(crate) fn open(&mut self, sequence: u64, takes_reserve: bool) -> Option<usize> {
        if !takes_reserve && self.free.len() <= RESERVED {
            return None;
        }
        let slot = self.free.pop_front()?;
        self.all[slot] = Slot { used: Use::Open, sequence, ..FREE };
        self.ends[slot] = Ends::default();
        Some(slot)
    }

    /// What recovery found in a slot; `settle` follows when all is found.
    pub(crate) fn found(&mut self, slot: usize, used: Use, sequence: u64) {
        self.all[slot] = Slot { used, sequence, ends_unknown: true, ..FREE };
    }

    /// All that recovery found is said.
    pub(crate) fn settle(&mut self) {
        let all = &self.all;
        self.free.retain(|slot| all[*slot].used == Use::Free);
        self.recount();
    }

    fn recount(&mut self) {
        self.emptied_count = self.all.iter().filter(|slot| slot.used == Use::Emptied).count();
        self.useless_count = self.all.iter().filter(|slot| slot.stuck || slot.used == Use::Lost).count();
    }

    /// Slots that the next table will free.
    pub(crate) fn emptied_count(&self) -> usize {
        self.emptied_count
    }

    pub(crate) fn set(&mut self, slot: usize, used: Use) {
        let old = std::mem::replace(&mut self.all[slot].used, used);
        self.emptied_count -= usize::from(old == Use::Emptied);
        self.emptied_count += usize::from(used == Use::Emptied);
    }

    /// A segment cannot be emptied now. What could not be read may be read later, so it is tried again: after
    /// two seconds at first, at last every 17 minutes.
    pub(crate) fn stick(&mut self, slot: usize, now_ms: u64) {
        let slot = &mut self.all[slot];
        if !slot.stuck {
            slot.stuck = true;
            slot.tries += 1;
            slot.retry_ms = now_ms.saturating_add(RETRY_MS << slot.tries.min(RETRY_DOUBLINGS));
            self.useless_count += 1;
        }
    }

    /// A segment is tried again.
    pub(crate) fn unstick(&mut self, slot: usize) {
        self.useless_count -= usize::from(std::mem::take(&mut self.all[slot].stuck));
    }

    /// A slot that a durable table calls free.
    pub(crate) fn release(&mut self, slot: usize) {
        self.set(slot, Use::Free);
        let old = std::mem::replace(&mut self.all[slot], FREE);
        self.useless_count -= usize::from(old.stuck);
        debug_assert_eq!(old.live_bytes, 0, "nothing in it counts");
        self.free.push_back(slot);
    }

    /// A record is there, whether it counts or not.
    pub(crate) fn present(&mut self, slot: usize, kind: Kind, seq: u64) {
        if matches!(kind, Kind::Value | Kind::Large) {
            let oldest = &mut self.all[slot].oldest_seq;
            *oldest = seq.min(*oldest);
        }
    }

    /// A record counts from now on.
    pub(crate) fn lives(&mut self, slot: usize, kind: Kind, taken_bytes: u64) {
        self.all[slot].live_bytes += cost(taken_bytes);
        self.live_bytes += cost(taken_bytes);
        if kind == Kind::Tombstone {
            self.all[slot].tombstone_bytes += cost(taken_bytes);
            self.tombstone_bytes += cost(taken_bytes);
        }
    }

    /// A record counts no longer.
    pub(crate) fn dies(&mut self, slot: usize, kind: Kind, taken_bytes: u64) {
        self.all[slot].live_bytes -= cost(taken_bytes);
        self.live_bytes -= cost(taken_bytes);
        if kind == Kind::Tombstone {
            self.all[slot].tombstone_bytes -= cost(taken_bytes);
            self.tombstone_bytes -= cost(taken_bytes);
        }
    }

    /// The key of a record ends at a time, 0: never; that frees so many bytes.
    pub(crate) fn ends(&mut self, slot: usize, until_ms: u64, bytes: u64) {
        if until_ms > 0 {
            self.ends[slot].add(until_ms, bytes);
        }
    }

    /// The record counts no longer.
    pub(crate) fn ends_no_more(&mut self, slot: usize, until_ms: u64, bytes: u64) {
        if until_ms > 0 {
            self.ends[slot].remove(until_ms, bytes);
        }
    }

    /// Bytes that emptying a slot frees since their time is up, as far as is known; wherever they are.
    pub(crate) fn over_bytes(&self, slot: usize, now_ms: u64) -> u64 {
        self.ends[slot].over_bytes(now_ms)
    }

    /// The same of all that may be emptied.
    pub(crate) fn all_over_bytes(&self, now_ms: u64) -> u64 {
        let worth = self.all().filter(|(_, slot)| slot.is_worth_a_try(now_ms));
        worth.map(|(at, _)| self.over_bytes(at, now_ms)).sum()
    }

    /// Nothing counts any longer; closed segments are empty at once.
    pub(crate) fn clear(&mut self) {
        for slot in &mut self.all {
            slot.live_bytes = 0;
            slot.tombstone_bytes = 0;
            (slot.stuck, slot.tries) = (false, 0);
            if matches!(slot.used, Use::Closed | Use::Lost) {
                slot.used = Use::Emptied;
            }
        }
        self.ends.fill(Ends::default());
        self.live_bytes = 0;
        self.tombstone_bytes = 0;
        self.recount();
    }

    /// The lowest number of a record with a value that is on the volume anywhere but in this slot.
    pub(crate) fn oldest_seq_beside(&self, slot: usize) -> u64 {
        let others = self.all().filter(|(at, other)| *at != slot && other.used != Use::Free);
        // Of what is lost nobody knows how old it is.
        others
            .map(|(_, other)| if other.used == Use::Lost { 0 } else { other.oldest_seq })
            .min()
            .unwrap_or(u64::MAX)
    }

    /// What a summary names of a segment.
    pub(crate) fn present_all(&mut self, slot: usize, entries: &[Entry]) {
        for entry in entries {
            if let Some(kind) = entry.kind {
                self.present(slot, kind, entry.seq);
            }
        }
    }
}
