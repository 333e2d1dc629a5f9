//! Compaction: what counts of a segment is copied to the back stream, and the segment is empty.
//!
//! It works in steps, whenever the store is driven and few slots are free, and never holds a key: an
//! operation that finds its record moved searches again. What is copied gets a new number, so that old
//! segments hold old numbers; a tombstone keeps its own, and goes when no other segment holds a value with a
//! lower one.

use super::find::{class_of, payload};
use super::{Course, Flight, Store};
use crate::blocks::{BLOCK_BYTES, Buffer};
use crate::layout::{Entry, Footer, Head, Kind, Manifest, Place, record_bytes, summary_bytes};
use crate::log::{BACK, New, Wait};
use crate::numbers::{narrow, small, wide};
use crate::planted::{Planted, planted};
use crate::slots::{Slot, Use, cost};

/// Bytes that are read of a victim at a time, at least; a record that begins in them is read whole.
const WINDOW_BYTES: u64 = 256 << 10;
/// Lines of a summary that the first read of it holds.
const LINES_AT_FIRST: usize = 2600;
/// Records that one step moves.
const MOVES_A_STEP: usize = 512;

/// A segment that is being emptied.
struct Victim {
    slot: usize,
    /// Its records that may count, by their place.
    entries: Vec<Entry>,
    at: usize,
    /// Where what was read begins.
    start: u64,
    bytes: Buffer,
    /// Tombstones with a lower number may go.
    oldest_seq: u64,
}

enum State {
    Idle,
    /// The summary is read: the slot, and the address from which on.
    Summary {
        slot: usize,
        address: u64,
    },
    Moving(Victim),
    /// More of the victim is read from this address on.
    Reading(Victim, u64),
}

/// What compaction does.
pub(super) struct Compaction {
    state: State,
    victim_count: u64,
    /// Bytes of such keys, and when it is looked again.
    over_bytes: u64,
    look_at_ms: u64,
    /// What was to be moved last found no slot, and none was to become free: segments that keep a damaged
    /// record each are not emptied by moving the others.
    cornered: bool,
}

/// How often it is looked for keys whose time is up.
const LOOK_EVERY_MS: u64 = 1000;

impl Compaction {
    pub(super) fn new() -> Self {
        Self { state: State::Idle, victim_count: 0, over_bytes: 0, look_at_ms: 0, cornered: false }
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Whether it has read what it needs to go on.
    pub(super) fn is_moving(&self) -> bool {
        matches!(self.state, State::Moving(_))
    }

    /// How many victims there were.
    pub(super) fn victim_count(&self) -> u64 {
        self.victim_count
    }

    /// Gives up what it was at.
    pub(super) fn give_up(&mut self) {
        self.state = State::Idle;
    }
}

impl Store {
    /// Does a step of compaction, if some is wanted.
    pub(super) fn step_compaction(&mut self) {
        let at_work = match self.course {
            Course::Running => true,
            // What waits for room still needs it.
            Course::Stopping => self.work.count > 0,
            Course::Stopped | Course::Failed => false,
        };
        if !at_work {
            return;
        }
        match std::mem::replace(&mut self.compaction.state, State::Idle) {
            State::Idle => {
                if self.marks.now_ms >= self.compaction.look_at_ms {
                    self.look_for_over();
                }
                if let Some(slot) = self.choose_victim() {
                    self.compaction.victim_count += 1;
                    self.slots.unstick(slot);
                    self.read_summary(slot, summary_bytes(LINES_AT_FIRST));
                }
            }
            State::Moving(victim) => self.move_some(victim),
            state @ (State::Summary { .. } | State::Reading(..)) => self.compaction.state = state,
        }
    }

    /// Looks how much there is of keys whose time is up.
    pub(super) fn look_for_over(&mut self) {
        self.compaction.over_bytes = self.slots.all_over_bytes(self.marks.now_ms);
        self.compaction.look_at_ms = self.marks.now_ms + LOOK_EVERY_MS;
    }

    /// Whether emptying segments may gain something of keys whose time is up, for who wants so many victims
    /// in all.
    pub(super) fn may_gain(&self, wanted_count: u64) -> bool {
        self.compaction.over_bytes > 0 || self.choose_unknown(wanted_count).is_some()
    }

    /// Victims up to this count are wanted by who finds no room, if keys are there whose time may be up.
    fn wanted_count(&self) -> u64 {
        let waiting = self.work.unpromised.iter().filter_map(|id| self.work.operation(*id));
        waiting.map(|operation| operation.waits_until).max().unwrap_or(0)
    }

    /// A segment of which nobody knows what of it is over, if somebody finds no room.
    fn choose_unknown(&self, wanted_count: u64) -> Option<usize> {
        let may = self.compaction.victim_count < wanted_count && self.slots.free_count() > 1;
        let unknown = |slot: &Slot| slot.ends_unknown && slot.is_worth_a_try(self.marks.now_ms);
        let all = self.slots.all().filter(|(_, slot)| may && unknown(slot));
        all.min_by_key(|(_, slot)| slot.sequence).map(|(at, _)| at)
    }

    /// The segment that is worth most to be emptied, if slots are wanted.
    pub(super) fn choose_victim(&self) -> Option<usize> {
        let emptied = self.slots.emptied_count();
        let short_of_slots = self.slots.free_count() + emptied <= self.slots.low_water();
        let many_tombstones = self.slots.tombstone_bytes() > self.slots.capacity_bytes() / 16;
        let over = self.compaction.over_bytes;
        let wanted_count = self.wanted_count();
        let is_asked = self.compaction.victim_count < wanted_count;
        let much_over = over > self.slots.capacity_bytes() / 16 || over > 0 && is_asked;
        if !short_of_slots && !many_tombstones && !much_over {
            return self.choose_unknown(wanted_count);
        }
        let cornered = self.compaction.cornered && self.slots.none_becomes_free();
        let may = |slot: &Slot| slot.is_worth_a_try(self.marks.now_ms) && !(cornered && slot.live_bytes > 0);
        let closed = || self.slots.all().filter(|(_, slot)| may(slot));
        if many_tombstones && self.slots.free_count() > 1 {
            // In turn: values that keep tombstones from going, and those that hold most tombstones.
            let victim = match self.compaction.victim_count % 3 {
                0 => closed()
                    .filter(|(_, slot)| slot.oldest_seq < u64::MAX)
                    .min_by_key(|(_, slot)| slot.oldest_seq),
                1 => closed().max_by_key(|(_, slot)| slot.tombstone_bytes),
                _ => None,
            };
            if let Some((slot, _)) = victim {
                return Some(slot);
            }
        }
        let size = self.geometry().segment_bytes;
        let now = self.log.next().sequence;
        // Benefit by cost (Rosenblum, Ousterhout 1992), but reading wears nothing, so the cost is what is
        // written; and the root of the age, as measured. When slots are very few, what costs least.
        let hurry = self.slots.free_count() + emptied <= 2;
        let worth = |live: u64, sequence: u64| {
            let age = if hurry { 1 } else { u128::from(now - sequence + 1).isqrt() };
            u128::from(size - live.min(size)) * age * 1000 / u128::from(live + 1)
        };
        // A key whose time is up counts until it is buried.
        let stays = |at: usize, slot: &Slot| {
            slot.live_bytes.saturating_sub(self.slots.over_bytes(at, self.marks.now_ms))
        };
        let best = closed().max_by_key(|(at, slot)| worth(stays(*at, slot), slot.sequence));
        best.filter(|(at, slot)| stays(*at, slot) < self.geometry().segment_payload_bytes())
            .map(|(slot, _)| slot)
            .or_else(|| self.choose_unknown(wanted_count))
    }

    fn read_summary(&mut self, slot: usize, bytes: u64) {
        let size = self.geometry().segment_bytes;
        let address = self.geometry().slot_start(slot) + size - bytes.min(size / 4);
        let length = bytes.min(size / 4);
        self.traffic.read(Flight::Victim { address }, address, length);
        self.compaction.state = State::Summary { slot, address };
    }

    /// What was read of the victim has come; without bytes it failed.
    pub(super) fn victim_read(&mut self, address: u64, read: Option<Buffer>) {
        match std::mem::replace(&mut self.compaction.state, State::Idle) {
            State::Summary { slot, address: wanted } if wanted == address => self.begin_moving(slot, read),
            State::Reading(mut victim, wanted) if wanted == address => match read {
                Some(bytes) => {
                    (victim.start, victim.bytes) = (address, bytes);
                    self.compaction.state = State::Moving(victim);
                }
                None => self.give_up_victim(victim.slot),
            },
            // It was given up meanwhile.
            state @ (State::Idle | State::Moving(_) | State::Summary { .. } | State::Reading(..)) => {
                self.compaction.state = state;
            }
        }
    }

    /// A segment that cannot be read as a whole stays as it is, for now.
    fn give_up_victim(&mut self, slot: usize) {
        self.figures.damaged_count += u64::from(!self.slots.get(slot).has_failed());
        self.slots.stick(slot, self.marks.now_ms);
        self.compaction.look_at_ms = 0;
        self.compaction.give_up();
    }

    fn begin_moving(&mut self, slot: usize, read: Option<Buffer>) {
        let size = self.geometry().segment_bytes;
        let start = self.geometry().slot_start(slot);
        let found = read.and_then(|bytes| {
            let footer = Footer::decode(&bytes, self.header.owner(), start, size).ok()?;
            (footer.sequence == self.slots.get(slot).sequence).then_some((bytes, footer))
        });
        let Some((bytes, footer)) = found else { return self.give_up_victim(slot) };
        if footer.taken_bytes() > wide(bytes.len()) {
            let address = start + size - footer.taken_bytes();
            self.traffic.read(Flight::Victim { address }, address, footer.taken_bytes());
            self.compaction.state = State::Summary { slot, address };
            return;
        }
        let Ok(mut entries) = footer.entries(&bytes, size) else { return self.give_up_victim(slot) };
        entries.retain(|entry| entry.kind.is_some_and(|kind| kind != Kind::Clear));
        entries.sort_unstable_by_key(|entry| entry.offset_units);
        let oldest_seq = self.slots.oldest_seq_beside(slot);
        let bytes = bytes.of_length(0);
        let victim = Victim { slot, entries, at: 0, start, bytes, oldest_seq };
        self.move_some(victim);
    }

    /// Whether the index names the record of a line.
    fn counts(&self, entry: &Entry, address: u64) -> bool {
        if planted(Planted::DeadMoved) {
            return entry.kind != Some(Kind::Part);
        }
        match entry.kind {
            Some(Kind::Value | Kind::Large | Kind::Tombstone) => {
                self.index.contains(entry.hash.main, payload(address))
            }
            Some(Kind::Part) => {
                let parts = self.parts.get(&entry.hash.main);
                parts.and_then(|parts| parts.get(small(entry.hash.more))) == Some(&address)
            }
            Some(Kind::Clear) | None => false,
        }
    }

    fn move_some(&mut self, mut victim: Victim) {
        let slot_start = self.geometry().slot_start(victim.slot);
        let mut moved = 0;
        while let Some(entry) = victim.entries.get(victim.at).copied() {
            let address = slot_start + entry.offset_bytes();
            if !self.counts(&entry, address) || self.let_go_unread(victim.slot, &entry, address) {
                victim.at += 1;
                continue;
            }
            if address < victim.start
                || address + entry.taken_bytes() > victim.start + wide(victim.bytes.len())
            {
                return self.read_more(victim, address);
            }
            if moved == MOVES_A_STEP {
                self.compaction.state = State::Moving(victim);
                return;
            }
            let at = narrow(address - victim.start);
            let record = &victim.bytes[at..at + narrow(entry.taken_bytes())];
            match self.move_record(&victim, &entry, address, record) {
                Ok(()) => {
                    victim.at += 1;
                    moved += 1;
                }
                Err(wait) => {
                    self.compaction.cornered = wait == Wait::Segments && self.slots.none_becomes_free();
                    if !self.compaction.cornered {
                        self.compaction.state = State::Moving(victim);
                    }
                    return;
                }
            }
        }
        self.compaction.look_at_ms = 0;
        let slot = self.slots.get(victim.slot);
        if slot.stuck || slot.live_bytes > 0 {
            self.slots.stick(victim.slot, self.marks.now_ms);
        } else if planted(Planted::ReuseBeforeTable) {
            self.slots.release(victim.slot);
        } else {
            self.slots.set(victim.slot, Use::Emptied);
        }
    }

    /// Reads on from a record that counts, as far as there are others near it.
    fn read_more(&mut self, mut victim: Victim, address: u64) {
        let slot_start = self.geometry().slot_start(victim.slot);
        let block = wide(BLOCK_BYTES);
        let limit = address + WINDOW_BYTES.max(record_bytes(255, narrow(self.geometry().part_bytes())));
        let mut end = address;
        for entry in &victim.entries[victim.at..] {
            let place = slot_start + entry.offset_bytes();
            if place + entry.taken_bytes() > limit {
                break;
            }
            if self.counts(entry, place) && !self.goes_unread(entry, place) {
                end = place + entry.taken_bytes();
            }
        }
        if end == address {
            // The line says more than a record can have.
            self.slots.stick(victim.slot, self.marks.now_ms);
            victim.at += 1;
            self.compaction.state = State::Moving(victim);
            return;
        }
        let start = address / block * block;
        let memory = std::mem::take(&mut victim.bytes);
        self.traffic.read_into(Flight::Victim { address: start }, start, end - start, memory);
        self.compaction.state = State::Reading(victim, start);
    }

    /// Copies one record that counts, or lets go of it.
    fn move_record(
        &mut self,
        victim: &Victim,
        entry: &Entry,
        address: u64,
        record: &[u8],
    ) -> Result<(), Wait> {
        let place = Place { sequence: self.slots.get(victim.slot).sequence, address };
        let verified = Head::decode(record, place)
            .and_then(|(head, key)| Ok((head, key, head.value(record)?)))
            .ok()
            .filter(|(head, _, _)| {
                Some(head.kind) == entry.kind && head.taken_bytes() == entry.taken_bytes()
            });
        let Some((head, key, value)) = verified else {
            self.figures.damaged_count += u64::from(!self.slots.get(victim.slot).has_failed());
            self.slots.stick(victim.slot, self.marks.now_ms);
            return Ok(());
        };
        if self.is_outlived(entry, address) {
            let owned = if head.kind == Kind::Large { Manifest::decode(value).ok() } else { None };
            self.let_go(victim.slot, entry, address, head.kind);
            if let Some(manifest) = owned {
                self.drop_parts(manifest.id, manifest.value_bytes);
            }
            return Ok(());
        }
        let over = head.until_ms != 0 && head.until_ms <= self.marks.now_ms;
        if over && matches!(head.kind, Kind::Value | Kind::Large) {
            return self.bury(victim, entry, address, &head, key, value);
        }
        if head.kind == Kind::Tombstone
            && (head.seq < victim.oldest_seq || planted(Planted::TombstonesDropped))
        {
            self.index.remove(entry.hash.main, payload(address));
            self.slots.dies(victim.slot, head.kind, head.taken_bytes());
            self.cache.remove(entry.hash.main, key);
            return Ok(());
        }
        let keeps = head.kind == Kind::Tombstone || head.seq < self.marks.doubt_below;
        let owns = if head.kind == Kind::Large { Manifest::decode(value).ok().map(|m| m.id) } else { None };
        let new = New {
            kind: head.kind,
            hash: entry.hash,
            seq: keeps.then_some(head.seq),
            until_ms: head.until_ms,
            key,
            value,
            owns,
        };
        self.copy(victim.slot, entry, address, &new)
    }

    /// Whether the record of a line is out of date although the index names it.
    fn is_outlived(&self, entry: &Entry, address: u64) -> bool {
        self.outlived.has(Place { sequence: self.sequence_at(address), address }, entry.hash)
    }

    /// Whether a record that is out of date need not be read: it is not known to own parts.
    fn goes_unread(&self, entry: &Entry, address: u64) -> bool {
        matches!(entry.kind, Some(Kind::Value | Kind::Tombstone)) && self.is_outlived(entry, address)
    }

    /// Lets go of a record that is out of date and need not be read. False: it is none.
    fn let_go_unread(&mut self, slot: usize, entry: &Entry, address: u64) -> bool {
        let Some(kind) = entry.kind.filter(|_| self.goes_unread(entry, address)) else { return false };
        self.let_go(slot, entry, address, kind);
        true
    }

    /// A record that is out of date leaves the index. What is known of its key is of the newer one.
    fn let_go(&mut self, slot: usize, entry: &Entry, address: u64, kind: Kind) {
        self.index.remove(entry.hash.main, payload(address));
        self.slots.dies(slot, kind, entry.taken_bytes());
        self.marks.key_count -= u64::from(kind != Kind::Tombstone);
    }

    /// Appends the copy of a record and makes it the one that counts.
    fn copy(&mut self, slot: usize, entry: &Entry, address: u64, new: &New<'_>) -> Result<(), Wait> {
        let (to, seq) = self.log.append(BACK, &mut self.slots, new)?;
        let taken = record_bytes(new.key.len(), new.value.len());
        self.figures.moved_bytes += taken;
        let old_kind = entry.kind.unwrap_or(new.kind);
        if new.kind == Kind::Part {
            let parts = self.parts.get_mut(&entry.hash.main);
            if let Some(part) = parts.and_then(|parts| parts.get_mut(small(entry.hash.more))) {
                *part = to;
            }
        } else {
            let class = class_of(to, taken);
            if !self.index.replace(entry.hash.main, payload(address), payload(to), class) {
                return Ok(());
            }
            if new.kind == Kind::Value {
                self.keep_instead(address, to, taken);
            }
            if new.kind == old_kind {
                self.cache.moved(entry.hash.main, new.key, to, seq);
            } else {
                self.cache.remove(entry.hash.main, new.key);
            }
        }
        self.slots.dies(slot, old_kind, entry.taken_bytes());
        let to_slot = self.geometry().slot_of(to);
        self.slots.lives(to_slot, new.kind, taken);
        let parts_bytes = match new.kind {
            Kind::Large => Manifest::decode(new.value).map_or(0, |manifest| manifest.value_bytes),
            Kind::Value | Kind::Tombstone | Kind::Part | Kind::Clear => 0,
        };
        self.slots.ends(to_slot, new.until_ms, cost(taken) + parts_bytes);
        Ok(())
    }

    /// A key whose time is up: a tombstone is left of it, if something older is there that it hides.
    fn bury(
        &mut self,
        victim: &Victim,
        entry: &Entry,
        address: u64,
        head: &Head,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Wait> {
        let owned = if head.kind == Kind::Large { Manifest::decode(value).ok() } else { None };
        if head.seq < victim.oldest_seq || planted(Planted::ExpiredForgotten) {
            self.index.remove(entry.hash.main, payload(address));
            self.slots.dies(victim.slot, head.kind, head.taken_bytes());
            self.cache.remove(entry.hash.main, key);
        } else {
            let tombstone = New {
                kind: Kind::Tombstone,
                hash: entry.hash,
                seq: Some(head.seq),
                until_ms: 0,
                key,
                value: &[],
                owns: None,
            };
            self.copy(victim.slot, entry, address, &tombstone)?;
        }
        self.marks.key_count -= 1;
        if let Some(manifest) = owned {
            self.drop_parts(manifest.id, manifest.value_bytes);
        }
        Ok(())
    }
}
