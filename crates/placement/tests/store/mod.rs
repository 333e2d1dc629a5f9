//! A small log-structured store to validate policies in, and what is written to it.
//!
//! The store keeps one open group per class in memory, writes full groups as units, and collects units above
//! 90 % of space in use, as WAS does (Algorithms 2 and 3). It knows no stripes and no devices: a unit is a
//! list of chunks.

use block::{Lba, Lcn};
use placement::*;

/// How the store knows when a version was written (see the module `policy`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Times {
    Exact,
    Stamps,
    Unknown,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Nowhere,
    Open { class: usize, index: usize },
    Unit(usize),
}

/// Sizes of a store.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Units in all.
    pub units: usize,
    /// Data chunks of a unit.
    pub group_chunks: u32,
    /// Logical chunks of the volume.
    pub chunks: usize,
}

struct Unit {
    class: Class,
    created: u64,
    closed: u64,
    valid: u32,
    chunks: Vec<usize>,
}

pub struct Store {
    pub policy: Box<dyn Placement>,
    victims: Box<dyn VictimPolicy>,
    times: Times,
    capacity: u32,
    units: Vec<Option<Unit>>,
    open: Vec<Vec<usize>>,
    created: Vec<u64>,
    place: Vec<Place>,
    /// What is known of when each chunk was written.
    written: Vec<u64>,
    pub now: u64,
    /// Valid chunks moved by gc (W-27).
    pub rewritten: u64,
    /// Units collected.
    pub collected: u64,
}

impl Units for Store {
    fn count(&self) -> u32 {
        u32::try_from(self.units.len()).unwrap()
    }

    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn state(&self, unit: UnitId) -> Option<UnitState> {
        let unit = self.units[unit.index()].as_ref()?;
        let written = u32::try_from(unit.chunks.len()).unwrap();
        Some(UnitState { valid: unit.valid, written, closed: unit.closed, class: unit.class })
    }
}

impl Store {
    pub fn new(policy: Box<dyn Placement>, victims: VictimKind, times: Times, shape: Shape) -> Self {
        let classes = policy.classes();
        Self {
            policy,
            victims: victims.build(),
            times,
            capacity: shape.group_chunks,
            units: (0..shape.units).map(|_| None).collect(),
            open: vec![Vec::new(); classes],
            created: vec![0; classes],
            place: vec![Place::Nowhere; shape.chunks],
            written: vec![0; shape.chunks],
            now: 0,
            rewritten: 0,
            collected: 0,
        }
    }

    /// Chunks that were ever written.
    pub fn unique(&self) -> usize {
        self.place.iter().filter(|&&place| place != Place::Nowhere).count()
    }

    fn time_of(&self, chunk: usize) -> Option<u64> {
        let known = self.times != Times::Unknown && self.place[chunk] != Place::Nowhere;
        known.then_some(self.written[chunk])
    }

    pub fn write(&mut self, chunk: usize, sequence: Sequence) {
        let lcn = Lcn::new(chunk as u64);
        let previous = self.time_of(chunk);
        let class = self.policy.place_user(UserWrite { lcn, sequence, now: self.now, previous }).index();
        self.written[chunk] = self.now;
        match self.place[chunk] {
            Place::Open { class: old, .. } if old == class => {} // in place
            Place::Open { class: old, index } => {
                self.open[old].swap_remove(index);
                if let Some(&moved) = self.open[old].get(index) {
                    self.place[moved] = Place::Open { class: old, index };
                }
                self.join(chunk, class);
            }
            Place::Unit(unit) => {
                self.units[unit].as_mut().unwrap().valid -= 1;
                self.join(chunk, class);
            }
            Place::Nowhere => self.join(chunk, class),
        }
        self.now += 1;
        if self.open[class].len() == self.capacity as usize {
            let group = std::mem::take(&mut self.open[class]);
            let created = self.created[class];
            self.collect_while_full();
            self.close(class, created, group);
        }
    }

    fn join(&mut self, chunk: usize, class: usize) {
        if self.open[class].is_empty() {
            self.created[class] = self.now;
        }
        self.place[chunk] = Place::Open { class, index: self.open[class].len() };
        self.open[class].push(chunk);
    }

    fn close(&mut self, class: usize, created: u64, chunks: Vec<usize>) {
        let unit = self.units.iter().position(Option::is_none).expect("gc leaves free units");
        let mut stamp = UnitStamp::default();
        for &chunk in &chunks {
            self.place[chunk] = Place::Unit(unit);
            stamp.add(self.written[chunk]);
        }
        if self.times == Times::Stamps {
            chunks.iter().for_each(|&chunk| self.written[chunk] = stamp.time().unwrap());
        }
        let (class, closed, valid) = (Class::new(u8::try_from(class).unwrap()), self.now, self.capacity);
        self.units[unit] = Some(Unit { class, created, closed, valid, chunks });
    }

    fn used(&self) -> u64 {
        self.units.iter().flatten().count() as u64
    }

    /// W-22.
    fn collect_while_full(&mut self) {
        while GcThreshold::default().exceeded(self.used(), self.units.len() as u64) {
            let mut victims = std::mem::replace(&mut self.victims, Box::new(Greedy));
            let victim = victims.pick(self, self.now).expect("some unit has invalid chunks").index();
            self.victims = victims;
            self.collect(victim);
        }
    }

    fn collect(&mut self, victim: usize) {
        let Unit { class, created, ref chunks, .. } = *self.units[victim].as_ref().unwrap();
        let valid: Vec<_> =
            chunks.iter().copied().filter(|&chunk| self.place[chunk] == Place::Unit(victim)).collect();
        let now = self.now;
        self.policy.note_collected(CollectedUnit { class, created, now });
        self.collected += 1;
        self.rewritten += valid.len() as u64;
        for chunk in valid {
            let (lcn, written) = (Lcn::new(chunk as u64), self.time_of(chunk));
            let target = self.policy.place_gc(GcWrite { lcn, class, written, now }).index();
            self.join(chunk, target);
            if self.open[target].len() == self.capacity as usize {
                let group = std::mem::take(&mut self.open[target]);
                self.close(target, self.created[target], group);
            }
        }
        self.units[victim] = None;
    }

    /// Every chunk is in exactly one place, and units count their valid chunks right.
    pub fn check(&self) {
        for (class, group) in self.open.iter().enumerate() {
            let right = |(index, &chunk)| self.place[chunk] == Place::Open { class, index };
            assert!(group.iter().enumerate().all(right));
        }
        let mut valid = vec![0; self.units.len()];
        for place in &self.place {
            if let Place::Unit(unit) = place {
                valid[*unit] += 1;
            }
        }
        for (unit, valid) in self.units.iter().zip(valid) {
            assert_eq!(unit.as_ref().map_or(0, |unit| unit.valid), valid);
        }
    }
}

/// xorshift64*, and not one of [`block`]: the tables of docs/measurements.md were made with it.
pub struct Random(pub u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.word()) * limit as u128) >> 64) as usize
    }

    /// Normal with deviation 1, as the sum of twelve uniforms: no platform's `ln` is involved.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| (self.word() >> 11) as f64 / (1_u64 << 53) as f64).sum::<f64>() - 6.0
    }
}

pub const SEED: u64 = 20_260_101;

/// WAS Synthetic: 8 KiB requests at 512-byte offsets, normal, 20 % of the addresses get 80 %.
pub fn was_synthetic(store: &mut Store, requests: usize) {
    let chunks = store.place.len();
    for_was_synthetic(chunks, requests, 0.0, |chunk, sequence| store.write(chunk, sequence));
}

/// Calls `write` for each chunk of WAS Synthetic. With probability `again` a request repeats one of the 256
/// before it: the distribution over addresses stays, temporal locality comes in.
pub fn for_was_synthetic(chunks: usize, requests: usize, again: f64, mut write: impl FnMut(usize, Sequence)) {
    let (mut random, mut detector) = (Random(SEED), SequenceDetector::default());
    let sectors = chunks as f64 * 8.0;
    let mut recent: Vec<u64> = Vec::new();
    for request in 0..requests {
        let first = if again > 0.0 && recent.len() == 256 && random.below(1000) < (again * 1000.0) as usize {
            recent[random.below(256)]
        } else {
            let first = sectors * (0.5 + 0.078 * random.normal());
            first.clamp(0.0, sectors - 16.0) as u64
        };
        if recent.len() < 256 {
            recent.push(first)
        } else {
            recent[request % 256] = first
        }
        let sequence = detector.request(Lba::new(first), 16);
        for chunk in first / 8..=(first + 15) / 8 {
            write(usize::try_from(chunk).unwrap(), sequence);
        }
    }
}

/// 20 % of the chunks, every fifth, get 80 % of the writes (W-37); all were written once before,
/// in random order.
pub fn eighty_twenty(store: &mut Store, writes: usize) {
    let mut random = Random(SEED);
    let chunks = store.place.len();
    let stride = 7919; // prime
    assert!(!chunks.is_multiple_of(stride));
    (0..chunks).for_each(|i| store.write(i * stride % chunks, Sequence::Random));
    for _ in 0..writes {
        let fifth = random.below(chunks / 5) * 5;
        let chunk = if random.below(5) < 4 { fifth } else { fifth + 1 + random.below(4) };
        store.write(chunk, Sequence::Random);
    }
}

/// Knows which chunks are hot: what W-37 calls perfect separation.
pub struct Oracle(pub Box<dyn Fn(usize) -> bool + Send>);

impl Placement for Oracle {
    fn classes(&self) -> usize {
        2
    }

    fn place_user(&mut self, write: UserWrite) -> Class {
        Class::new(u8::from(!self.0(usize::try_from(write.lcn.get()).unwrap())))
    }

    fn place_gc(&mut self, write: GcWrite) -> Class {
        write.class
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}
