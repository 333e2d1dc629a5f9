//! How long versions live: the update interval distribution, and what a chain of groups costs under it.
//!
//! Intervals are counted in classes of equal ratio, [`PER_OCTAVE`] to a doubling, so that the table has one
//! size whatever the volume, and the error of a class is a twentieth of the interval.

/// Classes for each doubling.
const PER_OCTAVE: usize = 16;
/// Intervals up to 2^40 user chunk writes: 4 PiB of them.
const OCTAVES: usize = 40;
/// Classes; the first `PER_OCTAVE` have one interval each.
const CLASSES: usize = PER_OCTAVE * OCTAVES;
/// Passes through the last group that are summed one by one; what lives for longer is summed as an integral.
const PASSES: u32 = 48;
/// The time of a pass is looked for in steps of this ratio, and then halved so often.
const SHORTER: f64 = 0.75;
const REFINED: u32 = 8;

/// Intervals of an epoch.
#[derive(Clone, Debug)]
pub struct Intervals {
    counts: Box<[u32; CLASSES]>,
    /// Writes that replaced nothing known.
    unknown: u64,
}

/// The class of an interval.
fn class_of(interval: u64) -> usize {
    let octave = usize::try_from(interval.checked_ilog2().unwrap_or(0)).unwrap_or(0);
    // 2^4 = PER_OCTAVE: below it a class is one interval.
    let class = match octave.checked_sub(4) {
        None => usize::try_from(interval).unwrap_or(0),
        Some(shift) => (shift + 1) * PER_OCTAVE + usize::try_from((interval >> shift) & 15).unwrap_or(0),
    };
    class.min(CLASSES - 1)
}

/// The least interval of a class; that of one more than there are is the end of the last.
fn start_of(class: usize) -> f64 {
    let (octave, part) = (class / PER_OCTAVE, class % PER_OCTAVE);
    let part = f64::from(u32::try_from(part).unwrap_or(0));
    match octave.checked_sub(1) {
        None => part,
        Some(shift) => (16.0 + part) * 2f64.powi(i32::try_from(shift).unwrap_or(0)),
    }
}

/// The class that an age lies in.
fn class_at(age: f64) -> usize {
    if age < 16.0 {
        return (1..PER_OCTAVE).rev().find(|&class| start_of(class) <= age).unwrap_or(0);
    }
    // Exponent and first four digits behind the point, as the number is stored.
    let digits = usize::try_from(age.to_bits() >> 48).unwrap_or(usize::MAX);
    let exponent = (digits >> 4) - 1023;
    ((exponent - 3) * PER_OCTAVE + (digits & 15)).min(CLASSES - 1)
}

impl Intervals {
    /// None yet.
    pub fn new() -> Self {
        Self { counts: Box::new([0; CLASSES]), unknown: 0 }
    }

    /// A version lived so long.
    pub fn note(&mut self, interval: u64) {
        let count = &mut self.counts[class_of(interval)];
        *count = count.saturating_add(1);
    }

    /// A user wrote a chunk of which no version is known.
    pub fn note_new(&mut self) {
        self.unknown += 1;
    }

    /// Forgets chunks that were new: those of the first fill say nothing of what is to come.
    pub fn forget_new(&mut self) {
        self.unknown = 0;
    }

    /// Keeps half of what was counted: the epoch before counts half as much as the one that begins.
    pub fn fade(&mut self) {
        self.counts.iter_mut().for_each(|count| *count /= 2);
        self.unknown /= 2;
    }

    /// Versions that were counted.
    pub fn counted(&self) -> f64 {
        let known: f64 = self.counts.iter().map(|&count| f64::from(count)).sum();
        known + f64::from(u32::try_from(self.unknown).unwrap_or(u32::MAX))
    }

    /// What was counted, as shares of `all` versions.
    pub fn survival(&self, all: f64, out: &mut Survival) {
        // Chunks of which nothing is known live for longer than anything that was seen.
        out.floor = f64::from(u32::try_from(self.unknown).unwrap_or(u32::MAX)) / all.max(1.0);
        out.longest = 0.0;
        let (mut left, mut sum) = (self.counted() / all.max(1.0), 0.0);
        for class in 0..CLASSES {
            (out.left[class], out.lived[class]) = (left, sum);
            let next = (left - f64::from(self.counts[class]) / all.max(1.0)).max(out.floor);
            sum += (start_of(class + 1) - start_of(class)) * (left + next) / 2.0;
            left = next;
            if self.counts[class] > 0 {
                out.longest = start_of(class + 1);
            }
        }
        (out.left[CLASSES], out.lived[CLASSES]) = (left, sum);
    }

    /// Bytes of its table and of the one reckoned from it.
    pub const fn bytes() -> usize {
        CLASSES * 4 + (CLASSES + 1) * 16
    }
}

/// The share of versions that live for longer than an interval, and the integral of that.
#[derive(Clone, Debug)]
pub struct Survival {
    left: Box<[f64; CLASSES + 1]>,
    lived: Box<[f64; CLASSES + 1]>,
    /// No known version lived longer.
    longest: f64,
    /// The share that outlives everything seen.
    floor: f64,
}

impl Survival {
    /// Of nothing.
    pub fn new() -> Self {
        Self {
            left: Box::new([1.0; CLASSES + 1]),
            lived: Box::new([0.0; CLASSES + 1]),
            longest: 0.0,
            floor: 0.0,
        }
    }

    fn at(&self, table: &[f64; CLASSES + 1], age: f64) -> f64 {
        let class = class_at(age);
        let (from, to) = (start_of(class), start_of(class + 1));
        let part = ((age - from) / (to - from)).clamp(0.0, 1.0);
        table[class] + (table[class + 1] - table[class]) * part
    }

    /// The share of versions that are still valid at this age, in user chunk writes.
    pub fn share(&self, age: f64) -> f64 {
        if age >= self.longest { self.floor } else { self.at(&self.left, age) }
    }

    /// Chunks that are valid at ages below this one, per user chunk write and time: the integral of the
    /// share.
    pub fn live(&self, age: f64) -> f64 {
        self.at(&self.lived, age.min(self.longest))
    }
}

impl Survival {
    /// Chunks that are valid and of versions that will be overwritten at an age that was seen.
    fn moving(&self) -> f64 {
        self.live(self.longest) - self.floor * self.longest
    }
}

/// How long versions live that were taken for cold, and for hot; shares of all versions.
#[derive(Clone, Debug)]
pub struct Lives {
    /// Of those that joined the first group.
    pub cold: Survival,
    /// Of those that joined the group of hot chunks.
    pub hot: Survival,
}

/// A chain of groups: the sizes of all but the last, in units.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Chain {
    /// Size of the group of hot chunks; 0 for none.
    pub hot: f64,
    /// Age at which versions leave that group, in user chunk writes.
    pub hot_age: f64,
    /// Sizes of the groups that follow each other, before the last one.
    pub sizes: [f64; Chain::SIZES],
    /// How many of them there are.
    pub count: usize,
    /// Copies per user chunk write that are to be expected.
    pub copies: f64,
    /// Share of valid chunks that is to be expected in a unit of each that is collected.
    pub valid: [f64; Chain::SIZES],
}

impl Chain {
    /// Groups before the last one, at most.
    pub const SIZES: usize = 7;
}

/// What there is to share out.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Chunks of a unit.
    pub unit_chunks: f64,
    /// Units, those that are being filled included.
    pub units: f64,
    /// Chunks that are valid.
    pub live: f64,
    /// Those of them in units without a single invalid one: they lie still and cost nothing.
    pub still: f64,
}

/// What the last group is reckoned from.
struct Last {
    /// Age at which hot versions enter the chain.
    hot_age: f64,
    /// How long versions are in the chain before they enter the last group.
    time: f64,
    /// Chunks older than any version that was overwritten.
    older: f64,
}

impl Lives {
    /// The share of versions that are valid after so long in the chain behind the hot group, which hot ones
    /// enter at an age.
    fn share(&self, hot_age: f64, time: f64) -> f64 {
        self.cold.share(time) + self.hot.share(hot_age + time)
    }

    /// No version that was overwritten was in the chain for longer.
    fn longest(&self, hot_age: f64) -> f64 {
        self.cold.longest.max(self.hot.longest - hot_age)
    }

    /// Fills in what a chain of these sizes costs and how full its victims are; `None` if it does not fit.
    ///
    /// Versions that enter a group of `size` chunks at a rate `r` per user chunk write leave it `size / r`
    /// later, if they are valid still. That is the Markov chain of the paper, whose states are groups, with
    /// each of its steps reckoned from the distribution.
    pub fn reckon(&self, room: &Room, chain: &Chain) -> Option<Chain> {
        let mut done = *chain;
        let chunks = |units: f64| units * room.unit_chunks;
        let open = f64::from(u32::try_from(chain.count + 1).unwrap_or(u32::MAX));
        let (mut left, mut copies) = (room.units - open, 0.0);
        let hot_rate = self.hot.share(0.0);
        if hot_rate > 0.0 {
            done.hot_age = chunks(chain.hot) / hot_rate;
            // One more unit is being filled.
            left -= chain.hot + 1.0;
            copies += self.hot.share(done.hot_age);
        }
        let (mut time, mut rate) = (0.0, self.share(done.hot_age, 0.0));
        for (&size, valid) in chain.sizes[..chain.count].iter().zip(&mut done.valid) {
            if rate <= 0.0 {
                return None;
            }
            time += chunks(size) / rate;
            left -= size;
            let next = self.share(done.hot_age, time);
            *valid = next / rate;
            rate = next;
            copies += rate;
        }
        // Chunks that were not overwritten for as long as anything was seen to live are in the last group.
        let moving = self.cold.moving() + self.hot.moving();
        let older = (room.live - moving - room.still).max(0.0);
        let last = Last { hot_age: done.hot_age, time, older };
        done.copies = copies + self.last_copies(&last, chunks(left) - room.still)?;
        Some(done)
    }

    /// Copies per user chunk write of a last group of `size` chunks, which versions enter after `time` and
    /// which is collected in order of age: a version is copied once for every pass that it outlives. `None`
    /// if what lives does not fit.
    fn last_copies(&self, last: &Last, size: f64) -> Option<f64> {
        // The space that versions take until their unit is collected grows with the time of a pass, if not
        // evenly: the longest pass that has room is wanted.
        let space = |pass: f64| pass * self.passes(last, pass).0;
        let mut long = self.longest(last.hot_age).max(2.0);
        let mut short = long;
        while space(short) > size {
            long = short;
            short *= SHORTER;
            if short < 1.0 {
                return None;
            }
        }
        for _ in 0..REFINED {
            let middle = (short * long).sqrt();
            if space(middle) > size { long = middle } else { short = middle }
        }
        Some(self.passes(last, short).1)
    }

    /// Passes that a version begins and outlives, on the average over user writes.
    fn passes(&self, last: &Last, pass: f64) -> (f64, f64) {
        let &Last { hot_age, time, older } = last;
        let longest = self.longest(hot_age);
        let floor = self.cold.floor + self.hot.floor;
        // Each of the older ones begins every pass.
        let (mut begun, mut outlived, mut at) = (older / pass, older / pass, time);
        for step in 0..PASSES {
            let share = self.share(hot_age, at) - floor;
            if at >= longest || share <= 0.0 {
                return (begun, outlived);
            }
            begun += share;
            outlived += if step > 0 { share } else { 0.0 };
            at += pass;
        }
        let live = |survival: &Survival, from: f64| {
            let left = survival.live(survival.longest) - survival.live(from);
            left - survival.floor * (survival.longest - from).max(0.0)
        };
        let rest = (live(&self.cold, at) + live(&self.hot, hot_age + at)).max(0.0) / pass;
        (begun + rest, outlived + rest)
    }

    /// The best chain of at most `groups_max` groups that follow each other, the last included.
    pub fn best_chain(&self, room: &Room, groups_max: usize) -> Option<Chain> {
        let has_hot = self.hot.share(0.0) > 0.0;
        let hot = if has_hot { 1.0 } else { 0.0 };
        let mut best = self.reckon(room, &Chain { hot, ..Chain::default() })?;
        for count in 1..groups_max.min(Chain::SIZES + 1) {
            let base = best;
            for size in steps(room.units / 2.0) {
                let mut chain = Chain { count, ..base };
                chain.sizes[count - 1] = size;
                best = self.better(room, best, &chain);
            }
            if best.count < count {
                break;
            }
        }
        for _ in 0..2 {
            let base = best;
            for hot in steps(room.units / 8.0).filter(|_| has_hot) {
                best = self.better(room, best, &Chain { hot, ..base });
            }
            for group in 0..best.count {
                let base = best;
                for size in steps(room.units / 2.0) {
                    let mut chain = base;
                    chain.sizes[group] = size;
                    best = self.better(room, best, &chain);
                }
            }
        }
        Some(best)
    }

    fn better(&self, room: &Room, best: Chain, chain: &Chain) -> Chain {
        self.reckon(room, chain).filter(|other| other.copies < best.copies).unwrap_or(best)
    }
}

/// Sizes to try, in units: one by one, then in steps of about a twelfth.
fn steps(most: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(1.0_f64), |size| Some(size + (size / 12.0).floor().max(1.0)))
        .take_while(move |&size| size <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lives(cold: &Intervals, hot: &Intervals) -> Lives {
        let all = cold.counted() + hot.counted();
        let mut lives = Lives { cold: Survival::new(), hot: Survival::new() };
        cold.survival(all, &mut lives.cold);
        hot.survival(all, &mut lives.hot);
        lives
    }

    fn cold(intervals: &Intervals) -> Lives {
        lives(intervals, &Intervals::new())
    }

    #[test]
    fn classes_follow_each_other_without_gaps() {
        for class in 0..CLASSES {
            assert_eq!(class_at(start_of(class)), class);
            assert_eq!(class_at(start_of(class) + 0.5), class);
        }
        for interval in (0..100_000).chain([1 << 30, (1 << 39) + 12_345]) {
            let float = f64::from(u32::try_from(interval >> 10).unwrap_or(0)) * 1024.0
                + f64::from(u32::try_from(interval & 1023).unwrap_or(0));
            assert_eq!(class_of(interval), class_at(float), "{interval}");
        }
        assert_eq!(class_at(1e300), CLASSES - 1);
        assert_eq!(class_of(u64::MAX), CLASSES - 1);
    }

    /// Half of the versions live for 16, the others for 1,024: by hand.
    #[test]
    fn shares_and_integrals_by_hand() {
        let mut intervals = Intervals::new();
        for _ in 0..50 {
            intervals.note(16);
            intervals.note(1024);
        }
        let survival = cold(&intervals).cold;
        assert_eq!(survival.share(10.0), 1.0);
        assert_eq!(survival.share(20.0), 0.5);
        assert_eq!(survival.share(2000.0), 0.0);
        // 16 to 17 and 1,024 to 1,088 are the classes; within them they die evenly.
        assert_eq!(survival.live(16.0), 16.0);
        assert_eq!(survival.live(1024.0), 16.75 + 0.5 * (1024.0 - 17.0));
    }

    /// 100 chunks in turn: each lives for 100 writes.
    #[test]
    fn writing_in_turn_costs_nothing_once_the_space_holds_a_turn() {
        let mut intervals = Intervals::new();
        (0..1000).for_each(|_| intervals.note(100));
        let survival = cold(&intervals);
        let room = |units| Room { unit_chunks: 10.0, units, live: 100.0, still: 0.0 };
        let copies = |units| survival.reckon(&room(units), &Chain::default()).map(|chain| chain.copies);
        // One unit is being filled; the others hold a turn.
        assert!(copies(12.0).is_some_and(|copies| copies < 1e-9), "{:?}", copies(12.0));
        // 102 chunks hold one only in two passes of 51.
        assert!(copies(11.2).is_some_and(|copies| copies > 0.4), "{:?}", copies(11.2));
        assert_eq!(copies(1.0), None);
    }

    /// Requirement L-12. Nine of ten writes go to chunks that live for 64, the others to some that live for
    /// 6,400.
    #[test]
    fn a_group_for_the_young_pays() {
        let mut intervals = Intervals::new();
        for write in 0..1000 {
            intervals.note(if write % 10 == 0 { 6400 } else { 64 });
        }
        let survival = cold(&intervals);
        let room = Room { unit_chunks: 16.0, units: 50.0, live: 0.9 * 66.0 + 0.1 * 6528.0, still: 0.0 };
        let alone = survival.reckon(&room, &Chain::default()).expect("it fits");
        // A first group of five units holds versions for 80 writes: the short-lived die in it, the tenth that
        // does not is copied once.
        let sizes = [5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let two = survival.reckon(&room, &Chain { sizes, count: 1, ..Chain::default() }).expect("it fits");
        assert!((two.valid[0] - 0.1).abs() < 1e-9, "{two:?}");
        assert!(two.copies < alone.copies, "{two:?} {alone:?}");
        let best = survival.best_chain(&room, 5).expect("it fits");
        assert!(best.copies <= two.copies && best.count >= 1, "{best:?}");
        // Taken for hot, the short-lived never join the others.
        let (mut young, mut old) = (Intervals::new(), Intervals::new());
        (0..900).for_each(|_| young.note(64));
        (0..100).for_each(|_| old.note(6400));
        let hot = lives(&old, &young).best_chain(&room, 5).expect("it fits");
        assert!(hot.copies < best.copies + 1e-9 && hot.hot > 0.0, "{hot:?}");
        // Five units of them hold 80 / 0.9 writes: nothing of it is left.
        assert!((hot.hot_age - hot.hot * 16.0 / 0.9).abs() < 1e-9, "{hot:?}");
    }

    #[test]
    fn nothing_known_is_no_chain_worth_having() {
        let survival = cold(&Intervals::new());
        let room = Room { unit_chunks: 16.0, units: 50.0, live: 700.0, still: 0.0 };
        assert_eq!(survival.best_chain(&room, 5).map(|chain| chain.count), Some(0));
    }
}
