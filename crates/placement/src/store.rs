//! A log-structured store without devices, to try policies in: it counts what gc moves.
//!
//! It keeps one open group per class, writes full groups as units, and collects units while more of them are
//! in use than the threshold says, before a group is written (WAS, Algorithms 2 and 3). It knows no stripes
//! and no content: a unit is a list of chunks. It asks policies in the order that the engine does
//! ([`Placement`]) and leaves out what the engine adds: collection in steps, short stripes, waiting times.
//! So its counts are not the engine's.

use crate::error::within;
use crate::{
    Class, CollectedUnit, GcThreshold, GcWrite, OptionError, Placement, Sequence, UnitId, UnitStamp,
    UnitState, Units, UserWrite, VictimPolicy,
};
use block::Lcn;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

/// How the store knows when a version was written; see [`Placement`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Times {
    /// Each chunk has its time.
    #[default]
    Exact,
    /// A chunk in a unit has the unit's mean time, as in the engine ([`UnitStamp`]).
    Stamps,
    /// It does not.
    Unknown,
}

/// Sizes of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreOptions {
    /// Logical chunks of the volume, 1 to 2^32 - 1.
    pub chunk_count: u64,
    /// Chunks of a unit, 1 to 2^20.
    pub unit_chunks: u64,
    /// Units in all, 2 to 2^31.
    pub unit_count: u64,
    /// From which share of units in use on one is collected.
    pub gc_threshold: GcThreshold,
    /// What is known of times.
    pub times: Times,
}

/// Why a store cannot be made, or a write not be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreError {
    /// A size is out of its range.
    Option(OptionError),
    /// The maps do not fit into memory.
    Memory {
        /// What they would take.
        bytes: u64,
    },
    /// A write beyond the end of the volume.
    Chunk {
        /// The chunk.
        found: u64,
        /// Chunks that there are.
        count: u64,
    },
    /// The placement policy answered with a class that it does not have.
    Class {
        /// Its answer.
        found: u8,
        /// Classes that it has.
        classes: usize,
    },
    /// The victim policy chose a unit that cannot be collected, or whose collection would free nothing.
    Victim {
        /// Its answer.
        found: UnitId,
    },
    /// Nothing can be freed: all units are full of valid chunks, or the victim policy chooses none.
    Full {
        /// Units that there are.
        unit_count: u64,
        /// Chunks with a newest version in a unit.
        valid: u64,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(error) => error.fmt(f),
            Self::Memory { bytes } => write!(f, "the store's maps of {bytes} bytes cannot be had"),
            Self::Chunk { found, count } => {
                write!(f, "chunk {found} is written, expected one below {count}")
            }
            Self::Class { found, classes } => {
                write!(f, "the placement answered class {found}, expected one below {classes}")
            }
            Self::Victim { found } => {
                write!(f, "the victim policy chose unit {found}, whose collection would free nothing")
            }
            Self::Full { unit_count, valid } => write!(
                f,
                "no unit can be freed: {unit_count} units hold {valid} valid chunks; use more spare units"
            ),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<OptionError> for StoreError {
    fn from(error: OptionError) -> Self {
        Self::Option(error)
    }
}

/// What a store has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoreCounts {
    /// Chunks that users wrote.
    pub written: u64,
    /// Of those, replaced while they waited in an open group: they never came into a unit.
    pub absorbed: u64,
    /// Chunks that gc moved (W-27).
    pub rewritten: u64,
    /// Units collected.
    pub collected: u64,
    /// Units written.
    pub units_written: u64,
}

/// Where the newest version of a chunk is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    Open { class: u8, index: u32 },
    Unit(u32),
}

#[derive(Clone, Copy)]
struct Unit {
    class: Class,
    created: u64,
    closed: u64,
    valid: u32,
}

/// What victim policies see.
struct Table {
    units: Vec<Option<Unit>>,
    capacity: u32,
}

impl Units for Table {
    fn count(&self) -> u32 {
        u32::try_from(self.units.len()).expect("at most 2^31 units")
    }

    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn state(&self, unit: UnitId) -> Option<UnitState> {
        let unit = self.units.get(unit.index())?.as_ref()?;
        let Unit { class, closed, valid, .. } = *unit;
        Some(UnitState { valid, written: self.capacity, closed, class })
    }
}

/// Chunks of one class that wait to be written as a unit.
#[derive(Default)]
struct Group {
    chunks: Vec<u32>,
    created: u64,
}

/// See the module's documentation.
pub struct Store {
    placement: Box<dyn Placement>,
    victims: Box<dyn VictimPolicy>,
    threshold: GcThreshold,
    times: Times,
    table: Table,
    free: BinaryHeap<Reverse<u32>>,
    /// The chunks of all units, one unit after the other.
    chunks: Vec<u32>,
    groups: Vec<Group>,
    /// Buffer of the group that is written while gc runs.
    spare: Vec<u32>,
    /// Valid chunks of the unit that is collected.
    moving: Vec<u32>,
    places: Vec<Place>,
    /// When each chunk was written, as far as that is to be known; else empty.
    written: Vec<u64>,
    counts: StoreCounts,
}

impl Store {
    /// An empty store.
    pub fn new(
        options: &StoreOptions,
        placement: Box<dyn Placement>,
        victims: Box<dyn VictimPolicy>,
    ) -> Result<Self, StoreError> {
        let chunk_count = within("chunks", options.chunk_count, 1, u64::from(u32::MAX))?;
        let unit_chunks = within("chunks of a unit", options.unit_chunks, 1, 1 << 20)?;
        let unit_count = within("units", options.unit_count, 2, 1 << 31)?;
        let classes = within("classes of the placement", wide(placement.classes()), 1, 256)?;
        let timed = placement.needs_times() && options.times != Times::Unknown;
        let rooms = [chunk_count, unit_count, unit_count.saturating_mul(unit_chunks), classes]
            .map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let [chunks, units, room, classes] = rooms;
        let bytes = chunk_count
            .saturating_mul(if timed { 16 } else { 8 })
            .saturating_add(unit_count.saturating_mul(unit_chunks.saturating_mul(4).saturating_add(40)));
        let lacking = |_| StoreError::Memory { bytes };
        let capacity = u32::try_from(unit_chunks).expect("at most 2^20");
        let group = || -> Result<Vec<u32>, StoreError> { filled(0, 0).map_err(lacking) };
        let mut store = Self {
            placement,
            victims,
            threshold: options.gc_threshold,
            times: options.times,
            table: Table { units: filled(units, None).map_err(lacking)?, capacity },
            free: (0..u32::try_from(unit_count).expect("at most 2^31")).map(Reverse).collect(),
            chunks: filled(room, 0).map_err(lacking)?,
            groups: (0..classes).map(|_| Group::default()).collect(),
            spare: group()?,
            moving: group()?,
            places: filled(chunks, Place::Nowhere).map_err(lacking)?,
            written: filled(if timed { chunks } else { 0 }, 0).map_err(lacking)?,
            counts: StoreCounts::default(),
        };
        let waiting = store.groups.iter_mut().map(|group| &mut group.chunks);
        for buffer in waiting.chain([&mut store.spare, &mut store.moving]) {
            buffer.try_reserve_exact(at(capacity)).map_err(|_| StoreError::Memory { bytes })?;
        }
        Ok(store)
    }

    /// A user writes a chunk; `sequence` is that of its request.
    pub fn write(&mut self, lcn: Lcn, sequence: Sequence) -> Result<(), StoreError> {
        let beyond = || StoreError::Chunk { found: lcn.get(), count: wide(self.places.len()) };
        let chunk = u32::try_from(lcn.get()).map_err(|_| beyond())?;
        let place = *self.places.get(at(chunk)).ok_or_else(beyond)?;
        let now = self.counts.written;
        let previous = self.time_of(chunk, place);
        let class = self.placement.place_user(UserWrite { lcn, sequence, now, previous });
        self.check_class(class)?;
        if let Some(written) = self.written.get_mut(at(chunk)) {
            *written = now;
        }
        match place {
            // in place.
            Place::Open { class: old, .. } if old == class.get() => self.counts.absorbed += 1,
            Place::Open { class: old, index } => {
                self.counts.absorbed += 1;
                self.leave(old, index);
                self.join(chunk, class);
            }
            Place::Unit(unit) => {
                self.table.units[at(unit)].as_mut().expect("it holds the chunk").valid -= 1;
                self.join(chunk, class);
            }
            Place::Nowhere => self.join(chunk, class),
        }
        self.counts.written += 1;
        if self.is_full(class) { self.flush(class) } else { Ok(()) }
    }

    /// What it has done so far.
    pub fn counts(&self) -> StoreCounts {
        self.counts
    }

    /// Chunks that were ever written.
    pub fn unique(&self) -> u64 {
        wide(self.places.iter().filter(|&&place| place != Place::Nowhere).count())
    }

    /// The placement policy.
    pub fn placement(&self) -> &dyn Placement {
        &*self.placement
    }

    fn check_class(&self, class: Class) -> Result<(), StoreError> {
        let classes = self.groups.len();
        if class.index() < classes { Ok(()) } else { Err(StoreError::Class { found: class.get(), classes }) }
    }

    fn time_of(&self, chunk: u32, place: Place) -> Option<u64> {
        if place == Place::Nowhere { None } else { self.written.get(at(chunk)).copied() }
    }

    fn is_full(&self, class: Class) -> bool {
        self.groups[class.index()].chunks.len() == at(self.table.capacity)
    }

    fn join(&mut self, chunk: u32, class: Class) {
        let group = &mut self.groups[class.index()];
        if group.chunks.is_empty() {
            group.created = self.counts.written;
        }
        let index = u32::try_from(group.chunks.len()).expect("at most 2^20");
        self.places[at(chunk)] = Place::Open { class: class.get(), index };
        group.chunks.push(chunk);
    }

    /// The chunk at that place of a group is replaced in another one: the last one takes its place.
    fn leave(&mut self, class: u8, index: u32) {
        let group = &mut self.groups[usize::from(class)];
        group.chunks.swap_remove(at(index));
        if let Some(&moved) = group.chunks.get(at(index)) {
            self.places[at(moved)] = Place::Open { class, index };
        }
    }

    /// A group that users filled becomes a unit, when there is room.
    fn flush(&mut self, class: Class) -> Result<(), StoreError> {
        // What gc moves may join the same class meanwhile.
        let spare = std::mem::take(&mut self.spare);
        let (full, created) = {
            let group = &mut self.groups[class.index()];
            (std::mem::replace(&mut group.chunks, spare), group.created)
        };
        let done = self.collect_while_full().and_then(|()| self.close(class, created, &full));
        self.spare = full;
        self.spare.clear();
        done
    }

    fn close(&mut self, class: Class, created: u64, group: &[u32]) -> Result<(), StoreError> {
        let Reverse(unit) = self.free.pop().ok_or_else(|| self.full())?;
        let capacity = at(self.table.capacity);
        let first = at(unit) * capacity;
        self.chunks[first..first + group.len()].copy_from_slice(group);
        group.iter().for_each(|&chunk| self.places[at(chunk)] = Place::Unit(unit));
        if self.times == Times::Stamps && !self.written.is_empty() {
            let mut stamp = UnitStamp::default();
            group.iter().for_each(|&chunk| stamp.add(self.written[at(chunk)]));
            let time = stamp.time().expect("a full group has chunks");
            group.iter().for_each(|&chunk| self.written[at(chunk)] = time);
        }
        let valid = u32::try_from(group.len()).expect("at most 2^20");
        self.table.units[at(unit)] = Some(Unit { class, created, closed: self.counts.written, valid });
        self.counts.units_written += 1;
        Ok(())
    }

    /// W-22.
    fn collect_while_full(&mut self) -> Result<(), StoreError> {
        let total = wide(self.table.units.len());
        while self.threshold.exceeded(total - wide(self.free.len()), total) {
            let victim = self.victims.pick(&self.table, self.counts.written).ok_or_else(|| self.full())?;
            let frees = |state: UnitState| state.valid < self.table.capacity;
            if !self.table.state(victim).is_some_and(frees) {
                return Err(StoreError::Victim { found: victim });
            }
            self.collect(victim)?;
        }
        Ok(())
    }

    fn collect(&mut self, victim: UnitId) -> Result<(), StoreError> {
        let Unit { class, created, .. } = self.table.units[victim.index()].expect("it was looked at");
        let now = self.counts.written;
        self.placement.note_collected(CollectedUnit { class, created, now });
        let capacity = at(self.table.capacity);
        let first = victim.index() * capacity;
        let is_valid = |chunk: &&u32| self.places[at(**chunk)] == Place::Unit(victim.get());
        let mut moving = std::mem::take(&mut self.moving);
        moving.clear();
        moving.extend(self.chunks[first..first + capacity].iter().filter(is_valid));
        self.counts.collected += 1;
        self.counts.rewritten += wide(moving.len());
        let moved = moving.iter().try_for_each(|&chunk| self.move_one(chunk, class));
        self.moving = moving;
        moved?;
        self.table.units[victim.index()] = None;
        self.free.push(Reverse(victim.get()));
        Ok(())
    }

    fn move_one(&mut self, chunk: u32, class: Class) -> Result<(), StoreError> {
        let written = self.time_of(chunk, self.places[at(chunk)]);
        let write = GcWrite { lcn: Lcn::new(chunk.into()), class, written, now: self.counts.written };
        let target = self.placement.place_gc(write);
        self.check_class(target)?;
        self.join(chunk, target);
        if !self.is_full(target) {
            return Ok(());
        }
        let group = &mut self.groups[target.index()];
        let (full, created) = (std::mem::take(&mut group.chunks), group.created);
        let closed = self.close(target, created, &full);
        let group = &mut self.groups[target.index()];
        group.chunks = full;
        group.chunks.clear();
        closed
    }

    fn full(&self) -> StoreError {
        let valid = self.table.units.iter().flatten().map(|unit| u64::from(unit.valid)).sum();
        StoreError::Full { unit_count: wide(self.table.units.len()), valid }
    }
}

/// A table of `count` equal entries, if there is memory for it.
fn filled<T: Clone>(count: usize, value: T) -> Result<Vec<T>, std::collections::TryReserveError> {
    let mut table = Vec::new();
    table.try_reserve_exact(count)?;
    table.resize(count, value);
    Ok(table)
}

/// For indexing.
fn at(number: u32) -> usize {
    usize::try_from(number).expect("usize has 64 bits")
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).expect("usize has 64 bits")
}
