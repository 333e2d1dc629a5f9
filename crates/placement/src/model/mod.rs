//! A log-structured store in counts: chunks, units, and the policies of this crate at work on them.
//!
//! Two shapes. A fixed number of units, of which some are kept free: an SSD whose blocks are the units. Or
//! as many as it takes, collected by share of garbage: the volume of a log-structured cloud store, as
//! SepBIT's public simulator has it. Every class has an open unit of its own, filled in place; nothing waits
//! in memory. So public simulators can be held against ours, and a policy be tried in a second.

#[cfg(test)]
mod tests;

use crate::error::within;
use crate::{
    Class, CollectedUnit, GcWrite, OptionError, Placement, Sequence, UnitId, UnitStamp, UnitState, Units,
    UserWrite, VictimPolicy, choose_victim,
};
use block::Lcn;

/// No place, and no unit.
const NONE: u32 = u32::MAX;
/// Units collected for one write without room coming of it: then there is none.
const EFFORT_MAX: u32 = 10_000;

/// How a model knows when a version was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Times {
    /// By a time for each chunk.
    Exact,
    /// By the mean time of its unit ([`UnitStamp`]), as elastic arrays do.
    Stamps,
}

/// How much space there is, and when garbage is collected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    /// So many units; collection keeps `free` of them free.
    Units {
        /// All, open and free ones included.
        count: u32,
        /// Below so many free ones collection begins.
        free: u32,
    },
    /// As many units as it takes; after a user's write one is collected if more than so many percent of what
    /// is stored is garbage in closed units, and a unit only if as much of itself is garbage.
    Garbage {
        /// Percent.
        percent: u32,
    },
}

/// What a model is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModelOptions {
    /// Chunks of the volume.
    pub chunks: u32,
    /// Chunks of a unit.
    pub unit_chunks: u32,
    /// How much space there is.
    pub space: Space,
    /// How times are known.
    pub times: Times,
}

/// What was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Chunks that users wrote.
    pub written: u64,
    /// Valid chunks that collection moved.
    pub copied: u64,
    /// Units collected.
    pub collected: u64,
}

impl Counts {
    /// What was done since.
    pub fn since(self, before: Self) -> Self {
        Self {
            written: self.written - before.written,
            copied: self.copied - before.copied,
            collected: self.collected - before.collected,
        }
    }
}

/// There is no room for a chunk, and collection makes none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom;

impl std::fmt::Display for NoRoom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "no room: collection frees no unit, expected fewer classes, more spare units or smaller ones",
        )
    }
}

impl std::error::Error for NoRoom {}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Open,
    Closed,
}

#[derive(Clone, Copy)]
struct Unit {
    state: State,
    class: Class,
    created: u64,
    closed: u64,
    valid: u32,
    written: u32,
    stamp: UnitStamp,
}

const FREE: Unit = Unit {
    state: State::Free,
    class: Class::new(0),
    created: 0,
    closed: 0,
    valid: 0,
    written: 0,
    stamp: UnitStamp::NOTHING,
};

/// What policies see of it.
struct Table {
    unit_chunks: u32,
    space: Space,
    units: Vec<Unit>,
}

impl Units for Table {
    fn count(&self) -> u32 {
        u32::try_from(self.units.len()).expect("units are counted in 32 bits")
    }

    fn capacity(&self) -> u32 {
        self.unit_chunks
    }

    fn state(&self, unit: UnitId) -> Option<UnitState> {
        let unit = self.units.get(unit.index())?;
        let enough = match self.space {
            Space::Units { .. } => true,
            Space::Garbage { percent } => {
                u64::from(unit.written - unit.valid) * 100 >= u64::from(unit.written) * u64::from(percent)
            }
        };
        (unit.state == State::Closed && enough).then_some(UnitState {
            valid: unit.valid,
            written: unit.written,
            closed: unit.closed,
            class: unit.class,
        })
    }

    fn in_use(&self) -> u32 {
        let closed = self.units.iter().filter(|unit| unit.state == State::Closed).count();
        u32::try_from(closed).expect("units are counted in 32 bits")
    }

    fn live(&self) -> u64 {
        self.units.iter().map(|unit| u64::from(unit.valid)).sum()
    }
}

/// See the module's documentation.
pub struct Model {
    placement: Box<dyn Placement>,
    victims: Box<dyn VictimPolicy>,
    times: Times,
    table: Table,
    /// Place of each chunk: unit times the chunks of one, and the place in it.
    places: Vec<u32>,
    /// Chunk of each place.
    owners: Vec<u32>,
    /// When a user wrote each chunk; empty with stamps.
    written: Vec<u64>,
    open: Vec<u32>,
    free: Vec<u32>,
    /// Chunks stored, and those of them that are garbage in closed units.
    stored: u64,
    garbage: u64,
    now: u64,
    counts: Counts,
    needs_times: bool,
}

impl Model {
    /// An empty store.
    pub fn new(
        options: &ModelOptions,
        placement: Box<dyn Placement>,
        victims: Box<dyn VictimPolicy>,
    ) -> Result<Self, OptionError> {
        let unit_chunks = u64::from(options.unit_chunks);
        within("chunks of a unit", unit_chunks, 2, 1 << 20)?;
        within("chunks", u64::from(options.chunks), 1, 1 << 31)?;
        let count = match options.space {
            Space::Garbage { percent } => {
                within("share of garbage in percent", u64::from(percent), 1, 90)?;
                0
            }
            Space::Units { count, free } => {
                let classes = u64::try_from(placement.classes()).expect("few classes");
                let needed = u64::from(options.chunks).div_ceil(unit_chunks) + classes + u64::from(free) + 1;
                within("units", u64::from(count), needed, u64::from(u32::MAX - 1) / unit_chunks)?;
                count
            }
        };
        let length = |count: u64| usize::try_from(count).expect("at most 2^32");
        let needs_times = placement.needs_times();
        let has_own_times = needs_times && options.times == Times::Exact;
        Ok(Self {
            open: vec![NONE; placement.classes()],
            placement,
            victims,
            times: options.times,
            table: Table {
                unit_chunks: options.unit_chunks,
                space: options.space,
                units: vec![FREE; length(u64::from(count))],
            },
            places: vec![NONE; length(u64::from(options.chunks))],
            owners: vec![NONE; length(u64::from(count) * unit_chunks)],
            written: if has_own_times { vec![0; length(u64::from(options.chunks))] } else { Vec::new() },
            free: (0..count).rev().collect(),
            stored: 0,
            garbage: 0,
            now: 0,
            counts: Counts::default(),
            needs_times,
        })
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The placement policy.
    pub fn placement(&self) -> &dyn Placement {
        &*self.placement
    }

    /// A user writes a chunk.
    pub fn write(&mut self, chunk: u32, sequence: Sequence) -> Result<(), NoRoom> {
        let lcn = Lcn::new(u64::from(chunk));
        let previous = self.time_of(chunk);
        let class = self.placement.place_user(UserWrite { lcn, sequence, now: self.now, previous });
        self.invalidate(chunk);
        let time = self.now;
        self.now += 1;
        self.counts.written += 1;
        self.append(chunk, class, time)?;
        self.collect_as_needed()
    }

    /// Recounts everything; `false` if something is counted wrong.
    pub fn is_sound(&self) -> bool {
        let mut valid = vec![0; self.table.units.len()];
        for (chunk, &place) in self.places.iter().enumerate().filter(|(_, place)| **place != NONE) {
            if usize::try_from(self.owners[index(place)]) != Ok(chunk) {
                return false;
            }
            valid[index(place / self.table.unit_chunks)] += 1;
        }
        let units = &self.table.units;
        let garbage: u64 = units
            .iter()
            .filter(|unit| unit.state == State::Closed)
            .map(|unit| u64::from(unit.written - unit.valid))
            .sum();
        let stored: u64 = units.iter().map(|unit| u64::from(unit.written)).sum();
        units.iter().zip(valid).all(|(unit, valid)| unit.valid == valid)
            && (garbage, stored) == (self.garbage, self.stored)
    }

    fn time_of(&self, chunk: u32) -> Option<u64> {
        let place = self.places[index(chunk)];
        if !self.needs_times || place == NONE {
            return None;
        }
        match self.times {
            Times::Exact => Some(self.written[index(chunk)]),
            Times::Stamps => self.table.units[index(place / self.table.unit_chunks)].stamp.time(),
        }
    }

    fn invalidate(&mut self, chunk: u32) {
        let place = self.places[index(chunk)];
        if place == NONE {
            return;
        }
        let unit = &mut self.table.units[index(place / self.table.unit_chunks)];
        unit.valid -= 1;
        self.garbage += u64::from(unit.state == State::Closed);
    }

    /// Puts a chunk, written at `time` by a user, into the open unit of a class.
    fn append(&mut self, chunk: u32, class: Class, time: u64) -> Result<(), NoRoom> {
        let mut id = self.open[class.index()];
        if id == NONE {
            id = self.open_unit(class)?;
        }
        let unit = &mut self.table.units[index(id)];
        let place = id * self.table.unit_chunks + unit.written;
        unit.written += 1;
        unit.valid += 1;
        unit.stamp.add(time);
        self.places[index(chunk)] = place;
        self.owners[index(place)] = chunk;
        self.stored += 1;
        if let Some(written) = self.written.get_mut(index(chunk)) {
            *written = time;
        }
        if unit.written == self.table.unit_chunks {
            (unit.state, unit.closed) = (State::Closed, self.now);
            self.garbage += u64::from(unit.written - unit.valid);
            self.open[class.index()] = NONE;
        }
        Ok(())
    }

    fn open_unit(&mut self, class: Class) -> Result<u32, NoRoom> {
        let id = match (self.free.pop(), self.table.space) {
            (Some(id), _) => id,
            (None, Space::Units { .. }) => return Err(NoRoom),
            (None, Space::Garbage { .. }) => self.grow()?,
        };
        self.table.units[index(id)] = Unit { state: State::Open, class, created: self.now, ..FREE };
        self.open[class.index()] = id;
        Ok(id)
    }

    fn grow(&mut self) -> Result<u32, NoRoom> {
        let id = self.table.count();
        let places = u64::from(id + 1) * u64::from(self.table.unit_chunks);
        if places >= u64::from(NONE) {
            return Err(NoRoom);
        }
        self.table.units.push(FREE);
        self.owners.resize(usize::try_from(places).map_err(|_| NoRoom)?, NONE);
        Ok(id)
    }

    fn collect_as_needed(&mut self) -> Result<(), NoRoom> {
        match self.table.space {
            Space::Garbage { percent } => {
                if self.garbage * 100 > self.stored * u64::from(percent) {
                    self.collect()?;
                }
            }
            Space::Units { free, .. } => {
                let mut effort = 0;
                while self.free.len() < index(free) {
                    effort += 1;
                    if effort > EFFORT_MAX || !self.collect()? {
                        return Err(NoRoom);
                    }
                }
            }
        }
        Ok(())
    }

    /// Collects a unit; `false` if none would free anything.
    fn collect(&mut self) -> Result<bool, NoRoom> {
        let Self { placement, victims, table, .. } = self;
        let Some(victim) = choose_victim(&mut **placement, &mut **victims, table, self.now) else {
            return Ok(false);
        };
        let unit = self.table.units[victim.index()];
        self.placement.note_collected(CollectedUnit {
            class: unit.class,
            created: unit.created,
            now: self.now,
        });
        self.counts.collected += 1;
        let first = victim.get() * self.table.unit_chunks;
        for place in first..first + unit.written {
            let chunk = self.owners[index(place)];
            if self.places[index(chunk)] != place {
                continue;
            }
            let written = self.time_of(chunk);
            let move_of =
                GcWrite { lcn: Lcn::new(u64::from(chunk)), class: unit.class, written, now: self.now };
            let class = self.placement.place_gc(move_of);
            self.counts.copied += 1;
            self.append(chunk, class, written.unwrap_or(self.now))?;
        }
        self.garbage -= u64::from(unit.written - unit.valid);
        self.stored -= u64::from(unit.written);
        self.table.units[victim.index()] = FREE;
        self.free.push(victim.get());
        Ok(true)
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).expect("usize has 32 bits at least")
}
