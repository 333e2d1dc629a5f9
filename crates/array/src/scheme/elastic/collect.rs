//! RAID-level garbage collection (W-22 to W-27): the valid chunks of a unit are read and written again as new
//! stripes; with the last of them the unit is free.
//!
//! A plan moves as many chunks of the victim as there are buffers for. The moves of one unit may be spread
//! over several plans, beside user writes: a chunk that a user overwrites meanwhile is not the newest version
//! when its move is applied, and the move does not count. If a chunk cannot be read, the chunks of its plan
//! are tried one by one, so that the others do not suffer, while there are rows to spare for that; its unit
//! is left alone then, until something of it is overwritten.
//!
//! What can be read of a row too much of which is lost has no redundancy any more: it is moved first of all.

use super::write::{Chunk, plan_stripe};
use super::{Elastic, rows};
use crate::plan::{Piece, Plan, Word};
use crate::scheme::{CollectOutcome, GcStats};
use crate::store::Store;
use block::{Lcn, Pool};
use format::RecordRef;
use placement::{CollectedUnit, GcWrite, Greedy, UnitId, VictimPolicy, choose_victim};
use std::collections::VecDeque;

/// Stripes that one step writes at most, for each class, of which the last one of a step may be short.
const STEP_STRIPES_MAX: usize = 16;

struct Victim {
    unit: u32,
    /// The first place that was not looked at.
    next: u32,
}

/// A valid chunk of the victim.
#[derive(Clone, Copy)]
struct Move {
    lcn: Lcn,
    from: u32,
    class: usize,
}

/// Progress of collection.
pub struct Collector {
    policy: Box<dyn VictimPolicy>,
    victim: Option<Victim>,
    /// Places whose chunks are to be moved one by one.
    singly: VecDeque<u32>,
    /// Places of rows too much of which is lost: what can be read of them is moved to where
    /// it has redundancy.
    rescued: VecDeque<u32>,
    /// How many of them the moves chosen last take, from the front.
    rescued_now: usize,
    stats: GcStats,
    moves: Vec<Move>,
    chunks: Vec<Chunk>,
    /// For each stripe of a plan the row, its class, and how many of `moves` it takes.
    stripes: Vec<(u32, usize, usize)>,
}

impl Default for Collector {
    fn default() -> Self {
        Self {
            policy: Box::new(Greedy),
            victim: None,
            singly: VecDeque::new(),
            rescued: VecDeque::new(),
            rescued_now: 0,
            stats: GcStats::default(),
            moves: Vec::new(),
            chunks: Vec::new(),
            stripes: Vec::new(),
        }
    }
}

impl Collector {
    pub fn set_policy(&mut self, policy: Box<dyn VictimPolicy>) {
        self.policy = policy;
    }

    /// Whether chunks of a unit that was chosen are still to be moved.
    pub fn is_busy(&self) -> bool {
        self.victim.is_some() || !self.singly.is_empty() || !self.rescued.is_empty()
    }

    pub fn stats(&self) -> GcStats {
        self.stats
    }
}

impl Elastic {
    /// Plans the next step of collection, if it is wanted.
    pub(super) fn plan_move(
        &mut self,
        store: &mut Store,
        pool: &mut Pool,
        plan: &mut Plan,
    ) -> CollectOutcome {
        let geometry = store.config.geometry;
        let (k, m) = (geometry.data_count(), geometry.parity_count());
        let spare = pool.free_count().saturating_sub(store.slots_kept() + m * self.units.class_count());
        let stripes_max = spare / (k + m);
        if stripes_max == 0 {
            return CollectOutcome::NoSpace;
        }
        // Half of the buffers are left to users, who wait no longer than a step takes.
        let stripes = (stripes_max / 2).clamp(1, STEP_STRIPES_MAX * self.units.class_count());
        if !self.choose_moves(store, stripes * k) {
            return CollectOutcome::Nothing;
        }
        if !self.take_rows(store, plan) {
            return CollectOutcome::NoSpace;
        }
        self.advance();
        let (moves, stripes) =
            (std::mem::take(&mut self.collector.moves), std::mem::take(&mut self.collector.stripes));
        let mut rest = moves.as_slice();
        for &(row, class, count) in &stripes {
            let (members, others) = rest.split_at(count);
            rest = others;
            self.plan_moved_stripe(store, pool, row, class, members, plan);
        }
        self.collector.stats.chunks_read += moves.len() as u64;
        self.collector.stats.chunks_rewritten += moves.len() as u64;
        (self.collector.moves, self.collector.stripes) = (moves, stripes);
        CollectOutcome::Planned
    }

    fn plan_moved_stripe(
        &mut self,
        store: &Store,
        pool: &mut Pool,
        row: u32,
        class: usize,
        members: &[Move],
        plan: &mut Plan,
    ) {
        let to = self.units.of_row(row);
        let mut read = |&Move { lcn, from, .. }: &Move| {
            let (row, column) = (self.rows.row_of(from), self.rows.column_of(from));
            let addr = rows::address(store, row, column);
            let crc = store.table.row_crc(row, column);
            let slot = plan.read_piece(store, pool, Word::Row(row), &Piece { index: column, addr, crc });
            if self.needs_times
                && let Some(time) = self.units.stamp(self.units.of_row(row))
            {
                self.units.note_time(to, time);
            }
            // What was read is compared with it, so it need not be computed again.
            Chunk { lcn, slot, from, crc: Some(crc) }
        };
        let mut chunks = std::mem::take(&mut self.collector.chunks);
        chunks.clear();
        chunks.extend(members.iter().map(&mut read));
        plan_stripe(store, pool, row, class, chunks.drain(..), plan);
        self.collector.chunks = chunks;
    }

    /// Fills `moves` with up to `chunks_max` chunks, those of a class together; `false` if nothing is
    /// to be moved.
    fn choose_moves(&mut self, store: &Store, chunks_max: usize) -> bool {
        let mut moves = std::mem::take(&mut self.collector.moves);
        moves.clear();
        self.choose_rescued(store, &mut moves);
        while moves.is_empty() && (self.choose_single(&mut moves) || self.choose_victim()) {
            self.gather(chunks_max, &mut moves);
        }
        for chunk in &mut moves {
            let unit = self.units.of_row(self.rows.row_of(chunk.from));
            let (class, written) = (self.units.class(unit), self.units.stamp(unit));
            let write = GcWrite { lcn: chunk.lcn, class, written, now: self.now };
            chunk.class = self.placement.place_gc(write).index();
        }
        moves.sort_by_key(|chunk| chunk.class);
        let any = !moves.is_empty();
        self.collector.moves = moves;
        any
    }

    /// Too much of a row is lost: what can be read of it is going to be moved.
    pub(super) fn rescue_row(&mut self, row: u32, data_count: usize) {
        self.collector.rescued.extend((0..data_count).map(|column| self.rows.place_at(row, column)));
    }

    /// Chunks to be rescued, one stripe of them.
    fn choose_rescued(&mut self, store: &Store, moves: &mut Vec<Move>) {
        let k = store.config.geometry.data_count();
        self.collector.rescued_now = 0;
        for &from in &self.collector.rescued {
            if moves.len() == k {
                break;
            }
            self.collector.rescued_now += 1;
            let lcn = self.rows.owner(from).filter(|&lcn| !store.lost.contains(lcn));
            moves.extend(lcn.map(|lcn| Move { lcn, from, class: 0 }));
        }
        if moves.is_empty() {
            self.collector.rescued.clear();
            self.collector.rescued_now = 0;
        }
    }

    /// A chunk that is moved alone.
    fn choose_single(&mut self, moves: &mut Vec<Move>) -> bool {
        while let Some(&place) = self.collector.singly.front() {
            let unit = self.units.of_row(self.rows.row_of(place));
            if self.units.is_short() {
                // Each takes a row: what is left is for units that give rows back.
                self.units.stick(unit);
            }
            if let Some(lcn) = self.rows.owner(place).filter(|_| self.units.is_moving(unit)) {
                moves.push(Move { lcn, from: place, class: 0 });
                return true;
            }
            self.collector.singly.pop_front();
        }
        false
    }

    /// Makes sure that there is a victim; `false` if none is wanted, or none would free anything.
    fn choose_victim(&mut self) -> bool {
        if self.collector.victim.as_ref().is_some_and(|victim| self.units.is_moving(victim.unit)) {
            return true;
        }
        self.collector.victim = None;
        if !self.units.wants_collection() || !self.units.may_qualify() {
            return false;
        }
        let policy = &mut *self.collector.policy;
        let victim = choose_victim(&mut *self.placement, policy, &self.units, self.now);
        let Some(unit) = victim.map(UnitId::get) else {
            self.units.note_none_qualifies();
            return false;
        };
        let collected =
            CollectedUnit { class: self.units.class(unit), created: self.units.created(unit), now: self.now };
        self.placement.note_collected(collected);
        self.units.start_moving(unit);
        self.collector.stats.units_collected += 1;
        let next = self.rows.place_at(self.units.rows_of(unit).start, 0);
        self.collector.victim = Some(Victim { unit, next });
        true
    }

    /// Valid chunks of the victim, from where the last plan stopped. When all were looked at, there is no
    /// victim any more.
    fn gather(&mut self, chunks_max: usize, moves: &mut Vec<Move>) {
        let Some(Victim { unit, next }) = self.collector.victim else { return };
        if !moves.is_empty() {
            return; // One that is moved alone.
        }
        let end = self.rows.place_at(self.units.rows_of(unit).end, 0);
        let valid = |from| self.rows.owner(from).map(|lcn| Move { lcn, from, class: 0 });
        moves.extend((next..end).filter_map(valid).take(chunks_max));
        if moves.is_empty() {
            self.collector.victim = None;
        }
    }

    /// What was chosen is planned: the next plan goes on behind it.
    fn advance(&mut self) {
        if self.collector.rescued_now > 0 {
            self.collector.rescued.drain(..self.collector.rescued_now);
            return;
        }
        let moves = &self.collector.moves;
        if self.collector.singly.front() == moves.first().map(|chunk| &chunk.from) {
            self.collector.singly.pop_front();
            return;
        }
        if let (Some(victim), Some(last)) =
            (&mut self.collector.victim, moves.iter().map(|chunk| chunk.from).max())
        {
            victim.next = last + 1;
        }
    }

    /// Takes the rows that the chosen moves need: none if there are not enough.
    fn take_rows(&mut self, store: &mut Store, plan: &mut Plan) -> bool {
        let k = store.config.geometry.data_count();
        let rows_of = |moves: &[Move]| -> usize {
            moves.chunk_by(|one, other| one.class == other.class).map(|part| part.len().div_ceil(k)).sum()
        };
        let together = self.collector.moves.len().div_ceil(k);
        let apart = rows_of(&self.collector.moves);
        // Separated they may take as many rows as they free, or more than are left: then they go together,
        // with the coldest.
        let apart_fits = apart < self.units.rows_per_unit() as usize && !self.units.is_short();
        if apart > together
            && !apart_fits
            && let Some(class) = self.collector.moves.last().map(|chunk| chunk.class)
        {
            self.collector.moves.iter_mut().for_each(|chunk| chunk.class = class);
        }
        let mut stripes = std::mem::take(&mut self.collector.stripes);
        stripes.clear();
        let before = plan.leases.mark();
        let mut enough = true;
        'all: for part in self.collector.moves.chunk_by(|one, other| one.class == other.class) {
            for members in part.chunks(k) {
                let class = members[0].class;
                let Some(lease) = self.units.take_row(store, class, self.now, false) else {
                    enough = false;
                    break 'all;
                };
                stripes.push((plan.leases.hold_row(lease), class, members.len()));
            }
        }
        if !enough {
            plan.leases
                .give_back(before, (&mut store.spaces, &mut store.table), |row| self.units.row_returned(row));
        }
        self.collector.stripes = stripes;
        enough
    }

    /// A plan of moves could not read a chunk, and wrote nothing: finds out which.
    pub(super) fn move_lost(&mut self, plan: &Plan) {
        let mut places = Vec::new();
        for record in plan.records.iter() {
            if let RecordRef::Elastic(record) = record {
                places.extend(record.members().iter().map(|member| member.from));
            }
        }
        if let &[place] = places.as_slice() {
            self.units.stick(self.units.of_row(self.rows.row_of(place)));
        } else {
            self.collector.singly.extend(places);
        }
    }
}
