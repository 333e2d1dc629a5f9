//! Flushes, one at a time for all who want one; the table of segments; an orderly stop.
//!
//! A *cycle* seals the open batches, waits until every write issued so far has ended, and flushes. What was
//! appended before it began is durable when it ends. Whoever asks meanwhile gets the next cycle.

use super::{Course, Flight, Store, Sync};
use crate::ask::{Answer, Refused};
use crate::blocks::{Buffer, Request};
use crate::layout::Table;
use crate::log::{BACK, FRONT};
use crate::numbers::wide;
use crate::planted::{Planted, planted};
use crate::slots::Use;
use block::Durability;
use std::collections::VecDeque;
use std::sync::Arc;

/// How long acknowledged changes may stay volatile with [`Sync::EverySecond`].
const SECOND_MS: u64 = 1000;

/// What a cycle is to seal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Scope {
    /// What clients wrote.
    Front,
    /// That and what compaction moved; and it flushes whether or not something was written to the log.
    All,
}

/// What makes a cycle durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    /// A flush, when the writes have ended.
    Flush,
    /// A flush that is under way.
    Flushing,
    /// Its only write, which is durable itself: a synchronous client that is alone waits for no flush.
    Write,
}

struct Running {
    id: u64,
    target: u64,
    by: By,
}

/// How far a new table is.
enum TableStep {
    Idle,
    /// What it relies on becomes durable.
    Before {
        cycle: u64,
        table: Table,
        freed: Vec<usize>,
    },
    Writing {
        left: usize,
        epoch: u64,
        freed: Vec<usize>,
    },
    /// It becomes durable.
    After {
        cycle: u64,
        epoch: u64,
        freed: Vec<usize>,
    },
}

/// What has to do with flushes.
pub(super) struct Cycles {
    /// The cycle that takes what happens now.
    open: u64,
    wanted: Option<Scope>,
    running: Option<Running>,
    done: u64,
    waiting: VecDeque<(u64, u64, Answer)>,
    operations: VecDeque<(u64, u32)>,
    last_ms: u64,
    table: TableStep,
    /// The table that is under way is the last one before the stop.
    last_table: bool,
}

impl Cycles {
    pub(super) fn new() -> Self {
        Self {
            open: 1,
            wanted: None,
            running: None,
            done: 0,
            waiting: VecDeque::new(),
            operations: VecDeque::new(),
            last_ms: 0,
            table: TableStep::Idle,
            last_table: false,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.wanted.is_none() && self.running.is_none() && matches!(self.table, TableStep::Idle)
    }

    pub(super) fn due_ms(&self) -> u64 {
        self.last_ms + SECOND_MS
    }

    fn want(&mut self, scope: Scope) -> u64 {
        self.wanted = self.wanted.max(Some(scope));
        self.open
    }

    /// A cycle that makes durable what clients wrote so far.
    pub(super) fn want_front(&mut self) -> u64 {
        self.want(Scope::Front)
    }

    /// An operation goes on when a cycle is done.
    pub(super) fn wake_operation(&mut self, cycle: u64, id: u32) {
        self.operations.push_back((cycle, id));
    }

    /// Nothing will be durable any more: the tags of those who wait.
    pub(super) fn give_up(&mut self) -> Vec<u64> {
        self.wanted = None;
        self.running = None;
        self.table = TableStep::Idle;
        self.waiting.drain(..).map(|(_, tag, _)| tag).collect()
    }

    /// The operations that waited for a cycle, when none will come.
    pub(super) fn stranded(&mut self) -> Vec<u32> {
        self.operations.drain(..).map(|(_, id)| id).collect()
    }
}

impl Store {
    /// Answers when everything so far is durable.
    pub(super) fn answer_when_durable(&mut self, tag: u64, answer: Answer) {
        if self.course == Course::Failed {
            return self.tell(tag, Err(Refused::ReadOnly));
        }
        if !self.log.is_dirty() {
            return self.tell(tag, Ok(answer));
        }
        let cycle = self.cycles.want_front();
        self.cycles.waiting.push_back((cycle, tag, answer));
    }

    /// Begins a cycle or carries it on.
    pub(super) fn step_cycle(&mut self) {
        if matches!(self.course, Course::Failed | Course::Stopped) {
            let stranded = self.cycles.stranded();
            self.work.ready.extend(stranded);
            return;
        }
        if self.cycles.running.is_none() {
            let due = self.options.sync == Sync::EverySecond && self.marks.now_ms >= self.cycles.due_ms();
            if due && self.log.is_dirty() || self.log.wants_flush() {
                self.cycles.want(Scope::Front);
            }
            let Some(scope) = self.cycles.wanted.filter(|_| self.log.may_seal()) else { return };
            self.log.seal(FRONT, false);
            if scope == Scope::All {
                self.log.seal(BACK, false);
            }
            let target = self.log.next().batch - 1;
            self.cycles.wanted = None;
            let alone = scope == Scope::Front && self.log.last_is_durable();
            let by = if alone { By::Write } else { By::Flush };
            self.cycles.running = Some(Running { id: self.cycles.open, target, by });
            self.cycles.open += 1;
            if scope == Scope::Front && target <= self.log.durable().number {
                return self.flushed();
            }
        }
        let ended_through = self.log.ended_through();
        let Some(running) = self.cycles.running.as_mut().filter(|running| ended_through >= running.target)
        else {
            return;
        };
        match running.by {
            By::Flushing => {}
            By::Flush => {
                running.by = By::Flushing;
                self.figures.flush_count += 1;
                self.traffic.issue(Flight::Flush, Request::Flush);
            }
            By::Write => self.flushed(),
        }
    }

    /// The cycle that ran is done.
    pub(super) fn flushed(&mut self) {
        let Some(running) = self.cycles.running.take() else { return };
        self.log.made_durable(running.target);
        self.cycles.done = running.id;
        self.cycles.last_ms = self.marks.now_ms;
        while self.cycles.waiting.front().is_some_and(|(cycle, _, _)| *cycle <= running.id) {
            if let Some((_, tag, answer)) = self.cycles.waiting.pop_front() {
                self.tell(tag, Ok(answer));
            }
        }
        while self.cycles.operations.front().is_some_and(|(cycle, _)| *cycle <= running.id) {
            if let Some((_, id)) = self.cycles.operations.pop_front() {
                self.work.ready.push_back(id);
            }
        }
    }

    /// Begins a table when segments are to be freed, or carries it on.
    pub(super) fn step_table(&mut self) {
        if matches!(self.course, Course::Failed | Course::Stopped) {
            return;
        }
        match std::mem::replace(&mut self.cycles.table, TableStep::Idle) {
            TableStep::Idle => self.begin_table(),
            TableStep::Before { cycle, table, freed } => {
                if self.cycles.done >= cycle || planted(Planted::TableBeforeFlush) {
                    self.write_table(&table, freed);
                } else {
                    self.cycles.table = TableStep::Before { cycle, table, freed };
                }
            }
            step @ TableStep::Writing { .. } => self.cycles.table = step,
            TableStep::After { cycle, epoch, freed } => {
                if self.cycles.done >= cycle {
                    self.table_durable(epoch, freed);
                } else {
                    self.cycles.table = TableStep::After { cycle, epoch, freed };
                }
            }
        }
    }

    fn begin_table(&mut self) {
        let stopping =
            self.course == Course::Stopping && self.work.count == 0 && self.work.held_back.is_empty();
        if stopping && (self.log.is_dirty() || self.log.is_writing()) {
            self.cycles.want(Scope::All);
            return;
        }
        let emptied = self.slots.emptied_count();
        let few = self.slots.free_count() <= self.slots.low_water() || emptied >= self.slots.low_water();
        if !stopping && (emptied == 0 || !few) {
            return;
        }
        // From the oldest segment without a durable beginning on, segments are missed by their sequences when
        // the store is opened: none of them may be gone. The other stream may have left it so for long.
        let begun = self.log.durable().sequences;
        if self.slots.all().any(|(_, slot)| slot.used == Use::Emptied && slot.sequence >= begun) {
            self.cycles.want(Scope::All);
            return;
        }
        let freed =
            self.slots.all().filter(|(_, slot)| slot.used == Use::Emptied).map(|(at, _)| at).collect();
        self.cycles.last_table = stopping;
        let table = self.table(self.marks.epoch + 1);
        let cycle = self.cycles.want(Scope::All);
        self.cycles.table = TableStep::Before { cycle, table, freed };
    }

    /// What a table says now: segments without a durable beginning are found by their sequence.
    pub(super) fn table(&self, epoch: u64) -> Table {
        let durable = self.log.durable();
        let slots = self.slots.all().map(|(_, slot)| match slot.used {
            Use::Free | Use::Emptied => 0,
            Use::Open | Use::Closing | Use::Closed | Use::Lost if slot.sequence >= durable.sequences => 0,
            Use::Open | Use::Closing | Use::Closed | Use::Lost => slot.sequence,
        });
        Table {
            epoch,
            durable,
            next_sequence: durable.sequences,
            next_record: self.log.next().record,
            next_value: self.marks.next_value,
            floor: self.marks.floor,
            doubt_below: self.marks.doubt_below,
            slots: slots.collect(),
        }
    }

    fn write_table(&mut self, table: &Table, freed: Vec<usize>) {
        let bytes = table.encode(self.header.owner());
        let mut left = 0;
        for copy in 0..2 {
            let mut place = self.geometry().table_place(table.epoch, copy);
            for piece in bytes.chunks(crate::ask::PART_BYTES_MAX) {
                self.figures.written_bytes += wide(piece.len());
                let write = Request::Write {
                    offset_bytes: place,
                    buffer: Arc::new(Buffer::of(piece)),
                    durability: Durability::Volatile,
                };
                self.traffic.issue(Flight::Table, write);
                place += wide(piece.len());
                left += 1;
            }
        }
        self.cycles.table = TableStep::Writing { left, epoch: table.epoch, freed };
    }

    pub(super) fn table_written(&mut self) {
        if let TableStep::Writing { left, epoch, freed } = &mut self.cycles.table {
            *left -= 1;
            if *left == 0 {
                let (epoch, freed) = (*epoch, std::mem::take(freed));
                let cycle = self.cycles.want(Scope::All);
                self.cycles.table = TableStep::After { cycle, epoch, freed };
            }
        }
    }

    fn table_durable(&mut self, epoch: u64, freed: Vec<usize>) {
        self.marks.epoch = epoch;
        self.log.set_epoch(epoch);
        for slot in freed {
            if self.options.discard {
                // Free, but not to be taken until the discard has ended.
                self.slots.set(slot, Use::Free);
                let (offset_bytes, length_bytes) =
                    (self.geometry().slot_start(slot), self.geometry().segment_bytes);
                let discard = Request::Discard { offset_bytes, length_bytes };
                self.traffic.issue(Flight::Discard { slot }, discard);
            } else {
                self.slots.release(slot);
            }
        }
        let (slots, geometry) = (&self.slots, &self.header.geometry);
        self.outlived.retain(|place| slots.get(geometry.slot_of(place.address)).sequence == place.sequence);
        if self.cycles.last_table {
            self.course = Course::Stopped;
        }
    }
}
