//! Units of rows: how much of each is valid, which are free, and which are being filled.
//!
//! A unit's way: free, open (its rows are taken one after the other, by one class), full (all rows written),
//! a candidate for collection, empty, *pending* (its chunks wait until the record that freed them is
//! durable), free again. A unit that was open at a crash is *partial*: its rows are taken before those of
//! free units.

use crate::planted::{Planted, planted};
use crate::space::RowLease;
use crate::store::Store;
use block::{ChunkAddr, ChunkIndex, DevIndex};
use format::ArrayConfig;
use placement::{Class, GcThreshold, UnitId, UnitStamp, UnitState};
use std::collections::VecDeque;
use std::ops::Range;

/// Units that only garbage collection may take, besides one for each class.
const KEPT_BESIDES: usize = 1;

/// What collection has to do with a unit.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Fate {
    /// It may be chosen.
    #[default]
    Plain,
    /// Its valid chunks are on their way elsewhere, or about to be.
    Moving,
    /// A chunk of it cannot be read, and none was overwritten since.
    Stuck,
}

#[derive(Clone, Default)]
struct Unit {
    /// Chunks in it that are the newest version of something.
    valid: u32,
    /// Rows written.
    written: u32,
    /// Chunks of all devices that are not free.
    used: u32,
    /// First row, counted from the unit's first, that may be free.
    next: u32,
    class: u8,
    fate: Fate,
    created: u64,
    /// When its last row was taken.
    closed: u64,
    /// When what is in it was written by users, on the average.
    stamp: UnitStamp,
}

/// See the module's documentation.
pub struct Units {
    units: Vec<Unit>,
    unit_rows: u32,
    data_count: u32,
    device_count: u32,
    classes: usize,
    /// The unit being filled, for each class.
    open: Vec<Option<u32>>,
    free: VecDeque<u32>,
    partial: VecDeque<u32>,
    /// Units whose chunks were freed but are not released.
    pending: u32,
    /// Units whose valid chunks are all on their way elsewhere.
    moving: u32,
    /// Spare units: beyond what the volume needs.
    spare: u32,
    threshold: GcThreshold,
    /// Units that a write which is planned as a whole lacks, all that it takes together.
    wanted: usize,
    /// A unit may have come to qualify for collection since none did.
    may_qualify: bool,
}

impl Units {
    /// All units free.
    pub fn new(store: &Store) -> Self {
        let unit_rows = store.config.unit_rows;
        let count = store.config.chunks_per_device / unit_rows;
        let needed = store.config.stripe_count.div_ceil(unit_rows.into());
        Self {
            units: vec![Unit::default(); count as usize],
            unit_rows,
            data_count: store.config.geometry.data_count() as u32,
            device_count: store.config.geometry.device_count() as u32,
            classes: 1,
            open: vec![None],
            free: (0..count).collect(),
            partial: VecDeque::new(),
            pending: 0,
            moving: 0,
            spare: count.saturating_sub(u32::try_from(needed).unwrap_or(count)),
            threshold: GcThreshold::default(),
            wanted: 0,
            may_qualify: true,
        }
    }

    /// Whether some unit may qualify for collection; if not, it is of no use to look at all of them.
    pub fn may_qualify(&self) -> bool {
        self.may_qualify
    }

    /// All were looked at: none qualifies.
    pub fn note_none_qualifies(&mut self) {
        self.may_qualify = false;
    }

    pub fn set_classes(&mut self, classes: usize) {
        self.classes = classes;
        self.open.resize(classes, None);
    }

    pub fn set_threshold(&mut self, threshold: GcThreshold) {
        self.threshold = threshold;
    }

    pub fn class_count(&self) -> usize {
        self.classes
    }

    pub fn of_row(&self, row: u32) -> u32 {
        row / self.unit_rows
    }

    pub fn rows_of(&self, unit: u32) -> Range<u32> {
        unit * self.unit_rows..(unit + 1) * self.unit_rows
    }

    /// Rows of whole units.
    pub fn row_count(&self) -> u32 {
        self.units.len() as u32 * self.unit_rows
    }

    pub fn rows_per_unit(&self) -> u32 {
        self.unit_rows
    }

    pub fn stamp(&self, unit: u32) -> Option<u64> {
        self.units[unit as usize].stamp.time()
    }

    pub fn note_time(&mut self, unit: u32, time: u64) {
        self.units[unit as usize].stamp.add(time);
    }

    pub fn class(&self, unit: u32) -> Class {
        Class::new(self.units[unit as usize].class)
    }

    pub fn created(&self, unit: u32) -> u64 {
        self.units[unit as usize].created
    }

    /// A row of the unit was written, by that class.
    pub fn wrote(&mut self, unit: u32, class: u8) {
        let unit = &mut self.units[unit as usize];
        unit.written += 1;
        unit.class = class;
        self.may_qualify |= unit.written == self.unit_rows;
    }

    pub fn add_valid(&mut self, unit: u32) {
        self.units[unit as usize].valid += 1;
    }

    pub fn drop_valid(&mut self, unit: u32) {
        let unit = &mut self.units[unit as usize];
        unit.valid = unit.valid.checked_sub(1).expect("valid chunks are counted");
        if unit.fate == Fate::Stuck {
            // Perhaps it was the chunk that cannot be read.
            unit.fate = Fate::Plain;
            self.may_qualify = true;
        }
        self.may_qualify |= unit.valid == (self.unit_rows - 1) * self.data_count;
    }

    pub fn is_dead(&self, unit: u32) -> bool {
        let unit = &self.units[unit as usize];
        let early = planted(Planted::FreeUnitEarly) && unit.valid == 1;
        (unit.valid == 0 || early) && unit.written == self.unit_rows
    }

    /// The unit is empty; its rows are released one by one.
    pub fn free(&mut self, unit: u32) {
        let place = &mut self.units[unit as usize];
        self.moving -= u32::from(place.fate == Fate::Moving);
        *place = Unit { used: place.used, ..Unit::default() };
        // The last one that was filled is still the open one of its class.
        self.open.iter_mut().filter(|open| **open == Some(unit)).for_each(|open| *open = None);
        self.pending += 1;
    }

    /// Chunks of so many rows from `row` on may be used again on one device.
    pub fn released(&mut self, mut row: u32, count: u32) {
        let end = row + count;
        while row < end {
            let unit = self.of_row(row);
            let part = self.rows_of(unit).end.min(end) - row;
            let place = &mut self.units[unit as usize];
            place.used -= part;
            if place.used == 0 {
                self.pending -= 1;
                self.free.push_back(unit);
            }
            row += part;
        }
    }

    /// Whether collection should make room: fewer units are free than the threshold wants to be, or than
    /// half of the spare ones: where the volume takes nearly all there is, garbage must be left the other
    /// half to gather.
    pub fn wants_collection(&self) -> bool {
        let total = self.units.len() as u64;
        let coming = self.free.len() as u32 + self.pending + self.moving;
        if coming < (self.kept() + self.wanted.max(1)) as u32 {
            return true;
        }
        self.threshold.exceeded(total - u64::from(coming), total) && coming <= self.spare / 2
    }

    /// Units that users leave free for collection.
    fn kept(&self) -> usize {
        self.classes + KEPT_BESIDES
    }

    /// Whether users may take no row any more until collection has made room.
    pub fn is_short(&self) -> bool {
        self.free.len() < self.kept()
    }

    /// Whether units wait to be released and are needed: a flush would free them.
    pub fn wants_released(&self) -> bool {
        let low = self.kept() + self.wanted + (self.spare as usize / 8).min(8);
        self.pending > 0 && self.free.len() <= low
    }

    /// The unit's valid chunks are going to be moved.
    pub fn start_moving(&mut self, unit: u32) {
        self.units[unit as usize].fate = Fate::Moving;
        self.moving += 1;
    }

    pub fn is_moving(&self, unit: u32) -> bool {
        self.units[unit as usize].fate == Fate::Moving
    }

    /// A chunk of the unit cannot be moved.
    pub fn stick(&mut self, unit: u32) {
        if self.is_moving(unit) {
            self.moving -= 1;
            self.units[unit as usize].fate = Fate::Stuck;
        }
    }

    /// Whether users may take so many rows for each class, one class after the other. If not, so much is
    /// collected that they may.
    pub fn have_rows(&mut self, store: &Store, wanted: &[usize]) -> bool {
        self.wanted = 0;
        let unit_rows = usize::try_from(self.unit_rows).unwrap_or(usize::MAX);
        let left_of = |unit: &u32| self.free_rows(store, *unit);
        let total: usize = wanted.iter().sum();
        if self.is_short() {
            let can_gain = self.can_gain();
            let has = !can_gain && self.partial.iter().map(left_of).sum::<usize>() >= total;
            self.wanted = if can_gain { total.div_ceil(unit_rows) + self.classes } else { 0 };
            return has;
        }
        let (mut partial, mut units) = (self.partial.iter(), 0);
        for (class, &rows) in wanted.iter().enumerate().filter(|(_, rows)| **rows > 0) {
            let mut rows = rows.saturating_sub(self.open[class].as_ref().map_or(0, left_of));
            while rows > 0 {
                let Some(unit) = partial.next() else { break };
                rows = rows.saturating_sub(left_of(unit));
            }
            units += rows.div_ceil(unit_rows);
        }
        let has = self.free.len() >= self.kept() + units;
        self.wanted = if has { 0 } else { units };
        has
    }

    /// Whether users can take so many rows at once when all is collected. A full unit that collection gains
    /// no row from holds more than the data of one row less than it has, so where nothing may be gained, so
    /// many units are free, being filled, or partly written with a row left at least, as the volume leaves:
    /// [`UNITS_SPARE`] or more. Of these each class has one being filled, and one is kept free for it.
    ///
    /// [`UNITS_SPARE`]: format::UNITS_SPARE
    pub fn can_have_rows(&self, config: &ArrayConfig, rows: usize) -> bool {
        let full = config.stripe_count / u64::from(config.unit_rows - 1).max(1);
        let not_full = u64::from(config.chunks_per_device / config.unit_rows).saturating_sub(full);
        u64::try_from(rows + 2 * self.classes).is_ok_and(|units| units < not_full)
            || planted(Planted::PromiseRowsBeyond)
    }

    fn free_rows(&self, store: &Store, unit: u32) -> usize {
        let rows = self.rows_of(unit);
        (rows.start + self.units[unit as usize].next..rows.end).filter(|&row| is_free(store, row)).count()
    }

    /// Takes the next row for a class; users get none when few units are left.
    pub fn take_row(&mut self, store: &mut Store, class: usize, now: u64, is_user: bool) -> Option<RowLease> {
        self.find_row(store, class, now, is_user).map(RowLease::new)
    }

    fn find_row(&mut self, store: &mut Store, class: usize, now: u64, is_user: bool) -> Option<u32> {
        if is_user && self.is_short() {
            return if self.can_gain() { None } else { self.take_leftover(store, now) };
        }
        loop {
            if let Some(unit) = self.open[class] {
                if let Some(row) = self.take_from(store, unit) {
                    self.units[unit as usize].closed = now;
                    return Some(row);
                }
                self.open[class] = None;
            }
            let unit = match self.partial.pop_front() {
                Some(unit) => unit,
                None if is_user && self.free.len() <= self.kept() => return None,
                None => self.free.pop_front()?,
            };
            let place = &mut self.units[unit as usize];
            (place.created, place.class) = (now, class as u8);
            self.open[class] = Some(unit);
        }
    }

    /// Whether collection has rows to gain: they are on their way, or some unit may qualify.
    pub fn can_gain(&self) -> bool {
        self.moving > 0 || self.pending > 0 || self.may_qualify
    }

    /// A row of a unit that a crash left partly written. With many of them, and all other units full of valid
    /// chunks, nothing could be collected, so users take them although few units are free. As long as
    /// collection has something to gain it may need them itself: what it gives back because there is not
    /// enough yet lies here too.
    fn take_leftover(&mut self, store: &mut Store, now: u64) -> Option<u32> {
        while let Some(&unit) = self.partial.front() {
            let row = self.take_from(store, unit);
            // Only with a row left may it stay: written and empty it would be free, and here as well.
            if self.next_free(store, unit).is_none() {
                self.partial.pop_front();
            }
            if row.is_some() {
                self.units[unit as usize].closed = now;
                return row;
            }
        }
        None
    }

    fn next_free(&self, store: &Store, unit: u32) -> Option<u32> {
        let rows = self.rows_of(unit);
        (rows.start + self.units[unit as usize].next..rows.end).find(|&row| is_free(store, row))
    }

    fn take_from(&mut self, store: &mut Store, unit: u32) -> Option<u32> {
        let row = self.next_free(store, unit)?;
        let first = self.rows_of(unit).start;
        let place = &mut self.units[unit as usize];
        place.next = row - first + 1;
        place.used += self.device_count;
        let Store { spaces, table, .. } = store;
        for space in spaces {
            let was_free = space.claim(table, ChunkIndex::new(row + 1));
            assert!(was_free, "a row is taken and released as a whole");
        }
        Some(row)
    }

    /// A row that was taken was not written, and is free again.
    pub fn row_returned(&mut self, row: u32) {
        let unit = self.of_row(row);
        let first = unit * self.unit_rows;
        let place = &mut self.units[unit as usize];
        place.used -= self.device_count;
        place.next = place.next.min(row - first);
        if self.open.contains(&Some(unit)) || self.partial.contains(&unit) {
            return;
        }
        // Nothing of it can be freed before all its rows are written.
        self.partial.push_back(unit);
    }

    /// Loading: a row holds a stripe.
    pub fn note_row(&mut self, row: u32, class: u8) {
        let unit = self.of_row(row);
        self.wrote(unit, class);
    }

    /// After replay: what is free, what is partly written.
    pub fn settle(&mut self, is_live: impl Fn(u32) -> bool) {
        (self.pending, self.moving, self.may_qualify) = (0, 0, true);
        self.open.fill(None);
        self.free.clear();
        self.partial.clear();
        for unit in 0..self.units.len() as u32 {
            let live = self.rows_of(unit).filter(|&row| is_live(row)).count() as u32;
            let place = &mut self.units[unit as usize];
            (place.used, place.next, place.fate) = (live * self.device_count, 0, Fate::Plain);
            if live == 0 {
                self.free.push_back(unit);
            } else if live < self.unit_rows {
                self.partial.push_back(unit);
            }
        }
    }

    pub fn bytes_for(config: &ArrayConfig) -> u64 {
        u64::from(config.chunks_per_device / config.unit_rows.max(1)) * (size_of::<Unit>() as u64 + 4)
    }

    pub fn memory_bytes(&self) -> u64 {
        (self.units.len() * (size_of::<Unit>() + 4)) as u64
    }
}

fn is_free(store: &Store, row: u32) -> bool {
    !store.is_used(ChunkAddr::new(DevIndex::new(0), ChunkIndex::new(row + 1)))
}

impl placement::Units for Units {
    fn count(&self) -> u32 {
        self.units.len() as u32
    }

    fn capacity(&self) -> u32 {
        self.unit_rows * self.data_count
    }

    /// Units whose collection gains a row at least.
    fn state(&self, unit: UnitId) -> Option<UnitState> {
        let unit = self.units.get(unit.index())?;
        let gains = unit.valid <= (self.unit_rows - 1) * self.data_count;
        let full = unit.written == self.unit_rows && unit.fate == Fate::Plain;
        (full && gains).then_some(UnitState {
            valid: unit.valid,
            written: self.capacity(),
            closed: unit.closed,
            class: Class::new(unit.class),
        })
    }
    fn in_use(&self) -> u32 {
        let full = self.units.iter().filter(|unit| unit.written == self.unit_rows).count();
        u32::try_from(full).unwrap_or(u32::MAX)
    }

    fn live(&self) -> u64 {
        self.units.iter().map(|unit| u64::from(unit.valid)).sum()
    }
}
