//! From a world that fails to a much smaller one that fails in the same way: delta debugging (Zeller,
//! Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 2002) over the parts of its
//! sessions, and what is simpler about it tried one by one.
//!
//! It is deterministic and bounded: so many worlds are run at most, whatever comes of them.

use crate::course::{Item, Mode, Part, Reduction, Tape};
use crate::explore::caught;
use crate::life::run_as;
use crate::machine::Outcome;
use crate::simpler::Setting;
use crate::swarm::{Pinned, Swarm};
use crate::violation::Violation;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

/// Worlds that are run at most.
const RUNS_MAX: u64 = 3_000;

/// How large a world is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Sessions, each with an assembly of the array.
    pub sessions: usize,
    /// Requests and faults.
    pub steps: usize,
    /// Power cuts in the middle of a session.
    pub cuts: usize,
    /// Members of the array.
    pub members: usize,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sessions, steps, cuts, members } = self;
        write!(f, "{sessions} sessions, {steps} steps, {cuts} power cuts in sessions, {members} members")
    }
}

/// What came of shrinking a world.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// What goes wrong in the world of the seed.
    pub violation: Violation,
    /// What is left of it.
    pub reduction: Reduction,
    /// Its size.
    pub before: Size,
    /// And that of what is left.
    pub after: Size,
    /// Worlds that were run.
    pub runs: u64,
}

/// Runs what is left of the world of a seed.
pub fn run_reduced(
    seed: u64,
    pinned: Pinned,
    reduction: &Reduction,
    verbose: bool,
) -> Result<Outcome, Violation> {
    let (tape, _) = note(seed, pinned);
    run_noted(seed, pinned, &tape, reduction, verbose)
}

fn run_noted(
    seed: u64,
    pinned: Pinned,
    tape: &Rc<Tape>,
    reduction: &Reduction,
    verbose: bool,
) -> Result<Outcome, Violation> {
    caught(|| run_as(seed, pinned, verbose, Mode::Reduced(Rc::clone(tape), reduction.clone())))
}

/// Runs the world of a seed and notes how it went.
fn note(seed: u64, pinned: Pinned) -> (Rc<Tape>, Result<Outcome, Violation>) {
    let tape = Rc::new(RefCell::new(Tape::default()));
    let result = caught(|| run_as(seed, pinned, false, Mode::Noted(Rc::clone(&tape))));
    (Rc::new(tape.take()), result)
}

/// Shrinks the world of a seed; the other result is that nothing is wrong with it.
pub fn shrink(seed: u64, pinned: Pinned) -> Result<Shrunk, Box<Outcome>> {
    let (tape, result) = note(seed, pinned);
    let violation = match result {
        Ok(outcome) => return Err(Box::new(outcome)),
        Err(violation) => violation,
    };
    let best = Reduction { kept: tape.items(), ..Reduction::default() };
    let mut shrinker = Shrinker { seed, pinned, tape, violation, best, runs: 0 };
    let before = shrinker.size();
    shrinker.shrink();
    let after = shrinker.size();
    let Shrinker { violation, best: reduction, runs, .. } = shrinker;
    Ok(Shrunk { violation, reduction, before, after, runs })
}

struct Shrinker {
    seed: u64,
    pinned: Pinned,
    tape: Rc<Tape>,
    violation: Violation,
    best: Reduction,
    runs: u64,
}

impl Shrinker {
    fn size(&self) -> Size {
        let count = |wanted: fn(Part) -> bool| self.best.kept.iter().filter(|item| wanted(item.part)).count();
        let sessions: BTreeSet<u64> = self.best.kept.iter().map(|item| item.session).collect();
        let mut swarm = self.swarm();
        for setting in &self.best.settings {
            setting.turn(&mut swarm);
        }
        Size {
            sessions: sessions.len(),
            steps: count(|part| matches!(part, Part::Step(_))),
            cuts: count(|part| part == Part::Cut),
            members: swarm.sizes().len(),
        }
    }

    fn swarm(&self) -> Swarm {
        Swarm::draw(&mut crate::Rng::new(self.seed), self.pinned)
    }

    /// Takes a smaller world if it fails in the same way.
    fn take(&mut self, smaller: Reduction) -> bool {
        if self.runs == RUNS_MAX {
            return false;
        }
        self.runs += 1;
        let fails = match run_noted(self.seed, self.pinned, &self.tape, &smaller, false) {
            Ok(_) => false,
            Err(violation) => violation.is_like(&self.violation),
        };
        if fails {
            self.best = smaller;
        }
        fails
    }

    fn shrink(&mut self) {
        loop {
            let before = self.best.clone();
            self.drop_sessions();
            self.drop_items();
            self.simplify();
            self.hasten_cuts();
            if self.best == before || self.runs == RUNS_MAX {
                return;
            }
        }
    }

    fn drop_sessions(&mut self) {
        let sessions: BTreeSet<u64> = self.best.kept.iter().map(|item| item.session).collect();
        for session in sessions {
            self.take(self.best.without(|item| item.session == session));
        }
    }

    /// Leaves out half of the parts, a quarter, and so on to one by one.
    fn drop_items(&mut self) {
        let mut length = self.best.kept.len().div_ceil(2);
        while length > 0 {
            let items: Vec<Item> = self.best.kept.iter().copied().collect();
            // From the end: what comes late seldom matters to what comes before it.
            for some in items.rchunks(length) {
                self.take(self.best.without(|item| some.contains(item)));
            }
            length = if length == 1 { 0 } else { length.div_ceil(2) };
        }
    }

    fn simplify(&mut self) {
        let mut swarm = self.swarm();
        for values in Setting::all() {
            for setting in values {
                let known = self.best.settings.iter().find(|known| known.is_about(&setting));
                if known == Some(&setting) {
                    break; // it is as simple as that already
                }
                let mut simpler = self.best.clone();
                simpler.settings.retain(|known| !known.is_about(&setting));
                simpler.settings.push(setting);
                if setting.turn(&mut swarm.clone()) && self.take(simpler) {
                    setting.turn(&mut swarm);
                    break;
                }
            }
        }
    }

    /// Power fails sooner.
    fn hasten_cuts(&mut self) {
        let cuts = self.best.kept.iter().filter(|item| item.part == Part::Cut);
        let sessions: Vec<u64> = cuts.map(|item| item.session).collect();
        for session in sessions {
            while let Some(events) = self.best.cut_events(&self.tape, session).filter(|&events| events > 0) {
                let sooner = [0, events / 4, events / 2, events - 1];
                let taken = sooner.into_iter().any(|events| {
                    let mut smaller = self.best.clone();
                    smaller.cuts.insert(session, events);
                    self.take(smaller)
                });
                if !taken {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise the smaller worlds are smaller than another one.
    #[test]
    fn a_world_with_nothing_left_out_is_the_same_world() {
        let kinds = [
            Pinned::default(),
            Pinned { rot: true, ..Pinned::default() },
            Pinned { ruin: true, ..Pinned::default() },
        ];
        for (seed, pinned) in (0..15).flat_map(|seed| kinds.map(|pinned| (seed, pinned))) {
            let (tape, result) = note(seed, pinned);
            let all = Reduction { kept: tape.items(), ..Reduction::default() };
            let again = run_noted(seed, pinned, &tape, &all, false);
            assert_eq!(again.expect("sound"), result.expect("sound"), "seed {seed}, {pinned:?}");
        }
    }
}
