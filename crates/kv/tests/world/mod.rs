//! A world: a store on a simulated disk, random asks, power cuts, rot, and an oracle that knows what every
//! key may be.
//!
//! A world is its number. The oracle keeps of each key what it is, and what it may be after a power cut:
//! every version since the last one that was promised to be durable.

pub mod disk;
mod judge;
mod opening;
pub mod under;

use block::{Random, XoshiroStarStar};
use disk::Disk;
use kv::ask::{Answer, Ask, Keys, Lifetime, Old, Range, Refused, Told, Value, When};
use kv::{Create, Options, Secret, Store, Sync, VolumeShape};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use under::Under;

/// What a key is: a value by its seed and length, and when its time is up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Thing {
    seed: u64,
    length: usize,
    until: Option<u64>,
}

type State = Option<Thing>;

#[derive(Default)]
struct KeyModel {
    now: State,
    /// The number of the version that it is.
    version: u64,
    /// What it may be after a power cut, `now` included, by version.
    may_be: Vec<(u64, State)>,
    /// A change under way: what it becomes, and the version it makes.
    changing: Option<(State, u64)>,
    /// It is damaged and could not be set anew, so nobody knows what it is.
    unknown: bool,
}

enum Kind {
    Change {
        key: usize,
        before: State,
        after: State,
        wants_old: bool,
        is_delete: bool,
        stored: bool,
        version: u64,
    },
    Get {
        allowed: Vec<State>,
        range: Range,
        behind: Behind,
    },
    Describe {
        allowed: Vec<State>,
        behind: Behind,
    },
    Flush {
        versions: Vec<u64>,
    },
    Scan,
}

/// The change of the same key that was under way when something was asked, by the version it makes.
type Behind = Option<u64>;

struct Asked {
    kind: Kind,
}

/// What happens in a world.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    rot: bool,
    full: bool,
    sync: Sync,
    keys: usize,
    slots: u64,
    large: bool,
    lifetimes: bool,
    /// Writes fail at some time.
    faults: bool,
    cache: usize,
    /// Many short lives.
    hasty: bool,
    /// The disk becomes larger before some starts.
    grows: bool,
}

/// The keys that a scan has seen, and those that it must see.
type Scan = (BTreeSet<Box<[u8]>>, BTreeSet<usize>);

pub struct World<U = Disk> {
    number: u64,
    random: XoshiroStarStar,
    /// Draws what came to be part of worlds later, so that the others stay what they are.
    later: XoshiroStarStar,
    plan: Plan,
    under: U,
    store: Option<Store>,
    volume: u64,
    models: Vec<KeyModel>,
    asked: HashMap<u64, Asked>,
    next_tag: u64,
    next_seed: u64,
    now_ms: u64,
    rotten: bool,
    /// A scan under way while keys change: what it has seen, and what must be seen since it stays as it is.
    scan: Option<Scan>,
    pub trace: bool,
}

fn key_of(number: usize) -> Box<[u8]> {
    let mut key = format!("key-{number}-").into_bytes();
    key.resize(key.len() + number % 40, b'x');
    key.into()
}

fn bytes_of(thing: Thing) -> Vec<u8> {
    let mut words = block::SplitMix::new(thing.seed);
    let mut bytes = Vec::with_capacity(thing.length + 8);
    while bytes.len() < thing.length {
        bytes.extend_from_slice(&words.word().to_le_bytes());
    }
    bytes.truncate(thing.length);
    bytes
}

impl<U: Under> World<U> {
    /// The world of a number, on what `make` makes of a size in bytes.
    pub fn on(number: u64, make: impl FnOnce(usize, XoshiroStarStar) -> U) -> Self {
        let mut random = XoshiroStarStar::new(number);
        let mut later = XoshiroStarStar::new(number ^ 0x6c61_7465_7200);
        let mut plan = Plan {
            rot: random.chance(1, 4),
            full: random.chance(1, 4),
            sync: random.pick(&[Sync::Always, Sync::Always, Sync::EverySecond, Sync::OnFlush]),
            keys: random.pick(&[3, 20, 60, 200]),
            slots: random.pick(&[14, 16, 24, 40]),
            large: random.chance(1, 3),
            lifetimes: random.chance(1, 3),
            faults: random.chance(1, 8),
            cache: random.pick(&[0, 5, 50, 1000]),
            hasty: random.chance(1, 5),
            grows: later.chance(1, 4),
        };
        let volume = plan.slots * (64 << 10) + 12 * 4096;
        let size = usize::try_from(volume).expect("small");
        let mut under = make(size, random.fork());
        if under.disk().is_none() {
            (plan.rot, plan.faults, plan.grows) = (false, false, false);
        }
        let shape = VolumeShape { volume_bytes: volume, segment_bytes: Some(64 << 10) };
        let create = Create { shape, uuid: *b"a world of its o", secret: Secret([random.word(), number]) };
        kv::create(&mut under, &create).expect("a volume of this size holds a store");
        let models =
            (0..plan.keys).map(|_| KeyModel { may_be: vec![(0, None)], ..KeyModel::default() }).collect();
        Self {
            number,
            random,
            later,
            plan,
            under,
            store: None,
            volume,
            models,
            asked: HashMap::new(),
            next_tag: 1,
            next_seed: 1,
            now_ms: 1_000_000,
            rotten: false,
            scan: None,
            trace: std::env::var("KV_TRACE").is_ok(),
        }
    }

    fn options(&self) -> Options {
        Options {
            sync: self.plan.sync,
            cache_keys: self.plan.cache,
            kept_bytes: self.plan.cache * 700,
            // In every other world large values wait for each other.
            loading_bytes_max: if self.plan.cache.is_multiple_of(2) { 1 } else { 256 << 20 },
            ..Options::default()
        }
    }

    fn fail(&self, what: &str) -> ! {
        panic!("world {}: {what} ({:?}); again: KV_WORLD={}", self.number, self.plan, self.number)
    }

    pub fn run(&mut self) {
        let lives = if self.plan.hasty { 20 } else { 1 + self.random.below(6) };
        for _ in 0..lives {
            self.open();
            let steps = if self.plan.hasty { 60 } else { self.random.pick(&[50, 300, 1500]) };
            self.work(steps);
            if self.plan.full && !self.writes_fail() && self.later.chance(1, 3) {
                self.fill_and_delete();
            }
            match self.random.below(4) {
                _ if self.writes_fail() => self.cut(),
                0..3 if self.plan.hasty => self.cut(),
                0 => self.stop(),
                1 => {
                    self.settle();
                    self.check_scan();
                    self.cut();
                }
                _ => self.cut(),
            }
        }
        self.open();
        self.settle();
        self.check_scan();
        self.stop();
        if self.later.chance(1, 4) && self.under.disk().is_some() {
            self.give_away();
        }
    }

    fn writes_fail(&self) -> bool {
        self.under.disk_ref().is_some_and(|disk| disk.writes_fail)
    }

    fn say(&self, what: impl FnOnce() -> String) {
        if self.trace {
            println!("{}", what());
        }
    }

    /// What is damaged is known again when it is set anew.
    fn set_anew(&mut self, number: usize) {
        let thing = Thing { until: None, ..self.fresh() };
        if !self.set_alone(number, thing) {
            self.models[number].unknown = true;
        }
    }

    /// Sets a key while nothing else is asked; false if it has no room.
    fn set_alone(&mut self, number: usize, thing: Thing) -> bool {
        let told = self.ask_alone(Ask::Set {
            key: key_of(number),
            value: Value::new(&bytes_of(thing)),
            when: When::Always,
            lifetime: Lifetime::Forever,
            old: Old::Ignored,
        });
        match told {
            Ok(Answer::Set { stored: true, old: None }) => self.changed_alone(number, Some(thing)),
            Err(Refused::NoSpace { .. }) => return false,
            other => self.fail(&format!("key {number} is set alone: {other:?}")),
        }
        true
    }

    fn changed_alone(&mut self, number: usize, state: State) {
        let version = self.version();
        let model = &mut self.models[number];
        model.now = state;
        model.version = version;
        if self.plan.sync == Sync::Always {
            model.may_be.clear();
        }
        model.may_be.push((version, state));
    }

    /// Fills the store until hardly a byte more has room, and then deletes, which needs none.
    fn fill_and_delete(&mut self) {
        self.settle();
        self.scan = None;
        for step in [16_384, 2048, 256, 16] {
            for number in 0..self.models.len() {
                let model = &self.models[number];
                let length = model.now.map_or(0, |thing| thing.length) + step;
                if length < 40_000 && !model.unknown && self.visible(model.now) == model.now {
                    let thing = Thing { length, until: None, ..self.fresh() };
                    self.set_alone(number, thing);
                }
            }
        }
        for number in (0..self.models.len()).filter(|number| number % 3 > 0) {
            let was_there = self.visible(self.models[number].now).is_some();
            if self.models[number].unknown {
                continue;
            }
            match self.ask_alone(Ask::Delete { key: key_of(number), old: Old::Ignored }) {
                Ok(Answer::Deleted { was_there: found, old: None }) if found == was_there => {
                    self.changed_alone(number, None);
                }
                Err(Refused::Damaged { .. }) if self.rotten => self.models[number].unknown = true,
                other => self.fail(&format!("key {number}, there {was_there}, is deleted: {other:?}")),
            }
        }
    }

    fn visible(&self, state: State) -> State {
        state.filter(|thing| thing.until.is_none_or(|until| until > self.now_ms))
    }

    fn work(&mut self, steps: u64) {
        let fails_at = if self.plan.faults { self.random.below(steps * 2) } else { steps };
        for step in 0..steps {
            if step == fails_at {
                // Whatever comes then, the power cut after it leaves what may be.
                self.under.disk().expect("only disks fail").writes_fail = true;
                for _ in 0..200 {
                    if self.random.chance(1, 2) {
                        self.ask_something();
                    } else {
                        self.turn();
                    }
                }
                return;
            }
            match self.random.below(100) {
                0..45 => self.ask_something(),
                45..97 => self.turn(),
                97 if self.plan.rot && self.random.chance(1, 20) => self.rot(),
                98 if self.random.chance(1, 10) => {
                    self.settle();
                    self.now_ms += self.random.below(3000);
                    self.scan = None;
                }
                99 if self.random.chance(1, 20) => self.clear(),
                _ => {}
            }
        }
    }

    fn rot(&mut self) {
        self.settle();
        // What no later write of the log confirms is not known to have been durable; so confirm it.
        self.stop();
        self.rotten = true;
        // The header and tables have copies of their own; one of each may rot.
        let front = 12;
        // Those of a store that has grown are at the end.
        let behind = if self.plan.grows { 6 } else { 0 };
        let blocks = usize::try_from(self.volume / 4096).expect("small") - behind;
        for _ in 0..1 + self.random.below(4) {
            let block = front + self.random.index(blocks - front);
            self.under.disk().expect("only disks rot").rot(block);
            self.say(|| format!("0: rot of {block} at {}", block * 4096));
        }
        if self.random.chance(1, 4) {
            self.under.disk().expect("only disks rot").rot(0);
        }
        self.open();
    }

    fn clear(&mut self) {
        self.settle();
        let told = self.ask_alone(Ask::Clear);
        if told != Ok(Answer::Done) {
            self.fail(&format!("clear: {told:?}"));
        }
        let durable = self.plan.sync == Sync::Always;
        for model in &mut self.models {
            model.now = None;
            model.unknown = false;
            if durable {
                model.may_be.clear();
            }
            self.next_seed += 1;
            model.version = self.next_seed;
            model.may_be.push((model.version, None));
        }
    }

    fn version(&mut self) -> u64 {
        self.next_seed += 1;
        self.next_seed
    }

    fn fresh(&mut self) -> Thing {
        self.next_seed += 1;
        let most = match self.random.below(20) {
            0..14 => 300,
            14..18 => 4096,
            _ if self.plan.large => 40_000,
            _ => 9000,
        };
        let until = match self.random.below(3) {
            0 if self.plan.lifetimes => Some(self.now_ms + self.random.below(4000)),
            _ => None,
        };
        Thing { seed: self.next_seed * 7919 + self.number, length: self.random.index(most), until }
    }

    /// What may be found of a key that is asked for now, behind the change that is under way.
    fn allowed(&self, key: usize) -> Vec<State> {
        let now = self.visible(self.models[key].now);
        match self.models[key].changing.map(|(after, _)| self.visible(after)) {
            Some(after) if self.plan.full || self.rotten || self.plan.faults => vec![now, after],
            Some(after) => vec![after],
            None => vec![now],
        }
    }

    fn ask_something(&mut self) {
        if self.asked.len() > 40 {
            return;
        }
        let key = self.random.index(self.models.len());
        if self.models[key].unknown {
            return;
        }
        let change = self.models[key].changing;
        let behind = change.map(|(_, version)| version);
        let now = self.visible(self.models[key].now);
        let allowed = self.allowed(key);
        match self.random.below(20) {
            0..6 => {
                let range = match self.random.below(4) {
                    0 => Range::Between {
                        first: i64::try_from(self.random.below(10_000)).expect("small") - 5000,
                        last: i64::try_from(self.random.below(10_000)).expect("small") - 5000,
                    },
                    _ => Range::Whole,
                };
                let ask = Ask::Get { key: key_of(key), range, lifetime: None };
                self.start(ask, Kind::Get { allowed, range, behind });
            }
            6 if self.scan.is_none() && self.random.chance(1, 4) => {
                let stays = |number: &usize| {
                    let model = &self.models[*number];
                    model.changing.is_none() && self.visible(model.now).is_some()
                };
                let stays = (0..self.models.len()).filter(stays).collect();
                self.scan = Some((BTreeSet::new(), stays));
                self.start(Ask::Scan { cursor: 0, count: 7 }, Kind::Scan);
            }
            6 => self.start(Ask::Describe { key: key_of(key) }, Kind::Describe { allowed, behind }),
            7 => {
                let versions = self.models.iter().map(|model| model.version).collect();
                self.start(Ask::Flush, Kind::Flush { versions });
            }
            _ if change.is_some() => {}
            8..11 => {
                let wants_old = self.random.chance(1, 4);
                let old = if wants_old { Old::Wanted } else { Old::Ignored };
                let before = now;
                let version = self.version();
                self.models[key].changing = Some((None, version));
                let ask = Ask::Delete { key: key_of(key), old };
                let kind = Kind::Change {
                    key,
                    before,
                    after: None,
                    wants_old,
                    is_delete: true,
                    stored: before.is_some(),
                    version,
                };
                self.start(ask, kind);
            }
            11 if self.plan.lifetimes => self.ask_live(key, now),
            _ => {
                let tight = self.plan.full || self.random.chance(1, 2);
                if tight || self.store.as_ref().is_some_and(room) {
                    self.ask_set(key, now);
                }
            }
        }
    }

    fn ask_live(&mut self, key: usize, now: State) {
        let until = self.random.chance(1, 2).then(|| self.now_ms + 1 + self.random.below(4000));
        let lifetime = until.map_or(Lifetime::Forever, Lifetime::UntilMs);
        let after = now.map(|thing| Thing { until, ..thing });
        let version = self.version();
        self.models[key].changing = Some((after, version));
        let kind = Kind::Change {
            key,
            before: now,
            after,
            wants_old: false,
            is_delete: false,
            stored: now.is_some(),
            version,
        };
        self.start(Ask::Live { key: key_of(key), lifetime }, kind);
    }

    fn ask_set(&mut self, key: usize, now: State) {
        let mut thing = self.fresh();
        let when =
            self.random.pick(&[When::Always, When::Always, When::Always, When::IfAbsent, When::IfPresent]);
        let stored = match when {
            When::Always => true,
            When::IfAbsent => now.is_none(),
            When::IfPresent => now.is_some(),
        };
        let wants_old = self.random.chance(1, 6);
        let old = if wants_old { Old::Wanted } else { Old::Ignored };
        let mut lifetime = thing.until.map_or(Lifetime::Forever, Lifetime::UntilMs);
        if self.random.chance(1, 8) {
            lifetime = Lifetime::AsBefore;
            thing.until = now.and_then(|thing| thing.until);
        }
        let after = if stored { Some(thing) } else { now };
        let version = self.version();
        self.models[key].changing = Some((after, version));
        let value = Value::new(&bytes_of(thing));
        let ask = Ask::Set { key: key_of(key), value, when, lifetime, old };
        self.start(
            ask,
            Kind::Change { key, before: now, after, wants_old, is_delete: false, stored, version },
        );
    }

    fn start(&mut self, ask: Ask, kind: Kind) {
        let tag = self.next_tag;
        self.next_tag += 1;
        self.say(|| format!("{tag}: {ask:?}"));
        if let Kind::Change { key, after, version, .. } = &kind {
            self.models[*key].may_be.push((*version, *after));
            if let Some((_, stays)) = &mut self.scan {
                stays.remove(key);
            }
        }
        self.asked.insert(tag, Asked { kind });
        if let Some(store) = &mut self.store {
            store.start(tag, ask);
        }
    }

    /// One turn of the store, and some ends of requests.
    fn turn(&mut self) {
        let mut told = Vec::new();
        let Some(store) = &mut self.store else { return };
        store.drive(self.now_ms, &mut told);
        while let Some(issued) = store.next_request() {
            self.under.submit(issued);
        }
        for _ in 0..self.random.below(6) {
            if let Some(ended) = self.under.step() {
                store.ended(ended);
            }
        }
        for told in told {
            self.judge(told);
        }
    }

    fn settle(&mut self) {
        for _ in 0..200_000 {
            if self.asked.is_empty() && !self.under.busy() && self.store.as_ref().is_some_and(Store::is_idle)
            {
                return;
            }
            self.turn();
            let awake = self.under.busy() || self.store.as_ref().is_some_and(Store::wants_drive);
            if !awake && !self.asked.is_empty() {
                self.fail(&format!("the store sleeps over {} asks", self.asked.len()));
            }
        }
        let figures = self.store.as_ref().map(Store::figures);
        self.fail(&format!("the store does not come to rest: {} asks, {figures:?}", self.asked.len()));
    }

    fn ask_alone(&mut self, ask: Ask) -> Result<Answer, Refused> {
        let tag = self.next_tag;
        self.next_tag += 1;
        let Some(store) = &mut self.store else { self.fail("there is no store") };
        store.start(tag, ask);
        let mut told = Vec::new();
        for _ in 0..100_000 {
            store.drive(self.now_ms, &mut told);
            while let Some(issued) = store.next_request() {
                self.under.submit(issued);
            }
            if let Some(Told { answer, .. }) = told.pop() {
                return answer;
            }
            if let Some(ended) = self.under.step() {
                store.ended(ended);
            }
        }
        self.fail("no answer comes")
    }

    fn check_scan(&mut self) {
        let mut seen: BTreeMap<Box<[u8]>, u32> = BTreeMap::new();
        let mut cursor = 0;
        loop {
            let count = u32::try_from(1 + self.random.below(30)).expect("small");
            match self.ask_alone(Ask::Scan { cursor, count }) {
                Ok(Answer::Scanned { cursor: next, keys }) => {
                    for key in keys {
                        *seen.entry(key).or_default() += 1;
                    }
                    cursor = next;
                }
                other => self.fail(&format!("scan: {other:?}")),
            }
            if cursor == 0 {
                break;
            }
        }
        for number in 0..self.models.len() {
            let there = self.visible(self.models[number].now).is_some();
            let found = seen.remove(&key_of(number)).is_some();
            if there != found && !self.rotten {
                self.fail(&format!("key {number}: there {there}, found by a scan {found}"));
            }
        }
        if !seen.is_empty() {
            self.fail(&format!("a scan found {} keys that nobody set", seen.len()));
        }
    }

    fn cut(&mut self) {
        self.say(|| "0: power cut".to_owned());
        self.asked.clear();
        self.scan = None;
        self.store = None;
        self.under.cut();
        for model in &mut self.models {
            model.changing = None;
        }
    }

    /// An orderly stop, after which everything is as it was.
    fn stop(&mut self) {
        self.settle();
        let before = self.store.as_ref().map(Store::figures).unwrap_or_default();
        if let Some(store) = &mut self.store {
            store.stop();
        }
        for _ in 0..100_000 {
            if self.store.as_ref().is_some_and(Store::is_stopped) {
                break;
            }
            self.turn();
        }
        if !self.store.as_ref().is_some_and(Store::is_stopped) {
            self.fail("the store does not stop");
        }
        for model in &mut self.models {
            model.may_be = vec![(model.version, model.now)];
        }
        self.cut();
        let options = self.options();
        let after = match kv::open(&mut self.under, self.volume, options) {
            Ok(store) => store.figures(),
            Err(error) => self.fail(&format!("after a stop: {error}")),
        };
        // Tombstones that compaction has let go of may be there again, if their segment was not free yet.
        let same = after.live_bytes >= before.live_bytes && after.key_count == before.key_count;
        if !same && !self.rotten {
            self.fail(&format!("a stop changed what is there: {before:?}, {after:?}"));
        }
        self.under.cut();
    }
}

impl World {
    pub fn new(number: u64) -> Self {
        Self::on(number, Disk::new)
    }
}

fn room(store: &Store) -> bool {
    let figures = store.figures();
    figures.live_bytes < figures.capacity_bytes / 2
}
