//! What of a world's course is noted, and what is left out of it.
//!
//! A world is a row of *parts*: in each session the start, the plan of its power cut, a first look at
//! everything, requests and faults one by one, the end, and power off. When a world is noted, the state of
//! both generators is kept at the beginning of each part. When it is run again with parts left out, each part
//! that is left begins with the generators it began with, so it draws what it drew, whatever is missing
//! before it. With nothing left out that is the same world.

use crate::Rng;
use crate::simpler::Setting;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;
use std::str::FromStr;

/// A part of a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Part {
    /// Assembly. A session of which anything is kept starts, whether this is kept or not.
    Start,
    /// Faults and power cuts during assembly.
    Trouble,
    /// A power cut in the middle, or devices that stop answering together.
    Cut,
    /// What comes before the first request: a rebuild goes on, everything is read.
    Open,
    /// A request or a fault; of the damage at the end of a world, one harm.
    Step(u64),
    /// Times in which nobody asks for anything.
    Pause,
    /// What comes after the last request: everything is checked, perhaps an orderly stop.
    Close,
    /// Devices that are lost when power goes off.
    Loss,
}

/// The parts with a name, and their names on the command line; steps are numbers.
const NAMES: [(&str, Part); 7] = [
    ("start", Part::Start),
    ("trouble", Part::Trouble),
    ("cut", Part::Cut),
    ("open", Part::Open),
    ("pause", Part::Pause),
    ("close", Part::Close),
    ("loss", Part::Loss),
];

/// A part of a world. What comes after the last session counts as one more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Item {
    /// The session.
    pub session: u64,
    /// The part of it.
    pub part: Part,
}

/// The generators when a part began, and how many operations had begun or ended.
pub(crate) struct Moment {
    pub rng: Rng,
    pub world_rng: Rng,
    pub events: u64,
}

/// Where a planned power cut comes: so many operations after a part has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Anchor {
    at: Item,
    events: u64,
}

/// A world as it went.
#[derive(Default)]
pub(crate) struct Tape {
    pub moments: BTreeMap<Item, Moment>,
    /// Of each session with a planned power cut: after which operation it comes.
    pub cuts: BTreeMap<u64, u64>,
}

impl Tape {
    /// Everything that can be left out.
    pub fn items(&self) -> BTreeSet<Item> {
        let mut items: BTreeSet<Item> = self.moments.keys().copied().collect();
        items.retain(|item| item.part != Part::Cut || self.cuts.contains_key(&item.session));
        let sessions: BTreeSet<u64> = items.iter().map(|item| item.session).collect();
        for session in sessions {
            // These happen without a moment of their own, or before it: power also goes off in an assembly.
            for part in [Part::Trouble, Part::Pause, Part::Loss] {
                items.insert(Item { session, part });
            }
        }
        items
    }

    /// Where the power cut of a session comes.
    pub fn anchor(&self, session: u64) -> Option<Anchor> {
        let planned = *self.cuts.get(&session)?;
        let within = Item { session, part: Part::Open }..=Item { session, part: Part::Close };
        let mut before = self.moments.range(within).filter(|(_, moment)| moment.events <= planned);
        before.next_back().map(|(&at, moment)| Anchor { at, events: planned - moment.events })
    }
}

/// What is left of a world.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reduction {
    /// The parts that happen.
    pub kept: BTreeSet<Item>,
    /// Of the power cuts of some sessions, how many operations they come after the part in which they came.
    pub cuts: BTreeMap<u64, u64>,
    /// What is simpler than drawn.
    pub settings: Vec<Setting>,
}

impl Reduction {
    /// Whether a session takes place.
    pub fn has_session(&self, session: u64) -> bool {
        self.kept.iter().any(|item| item.session == session)
    }

    /// The same world without some parts.
    pub fn without(&self, left_out: impl Fn(&Item) -> bool) -> Self {
        let mut less = self.clone();
        less.kept.retain(|item| !left_out(item));
        less
    }

    /// If the power cut of a session comes in a part that begins: after how many operations.
    pub(crate) fn cut_at(&self, tape: &Tape, item: Item) -> Option<u64> {
        let anchor = tape.anchor(item.session).filter(|anchor| anchor.at == item)?;
        let kept = self.kept.contains(&Item { part: Part::Cut, ..item });
        kept.then(|| self.cuts.get(&item.session).copied().unwrap_or(anchor.events))
    }

    /// How many operations after the part in which it came the power cut of a session comes.
    pub(crate) fn cut_events(&self, tape: &Tape, session: u64) -> Option<u64> {
        let anchor = tape.anchor(session)?;
        self.cut_at(tape, anchor.at)
    }
}

/// As it is given on the command line: `0.open,0.3-5,1.cut+12`.
impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        let mut steps: Option<(u64, u64, u64)> = None;
        let word = |(session, first, last): (u64, u64, u64)| {
            if first == last { format!("{session}.{first}") } else { format!("{session}.{first}-{last}") }
        };
        for &Item { session, part } in &self.kept {
            match (part, steps) {
                (Part::Step(step), Some((of, first, last))) if of == session && step == last + 1 => {
                    steps = Some((of, first, step));
                }
                (Part::Step(step), before) => {
                    words.extend(before.map(word));
                    steps = Some((session, step, step));
                }
                (part, before) => {
                    words.extend(before.map(word));
                    steps = None;
                    let name = NAMES.iter().find(|(_, named)| *named == part).map_or("", |(name, _)| name);
                    let cut = self.cuts.get(&session).filter(|_| part == Part::Cut);
                    let after = cut.map(|events| format!("+{events}")).unwrap_or_default();
                    words.push(format!("{session}.{name}{after}"));
                }
            }
        }
        words.extend(steps.map(word));
        f.write_str(&words.join(","))
    }
}

impl FromStr for Reduction {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut reduction = Self::default();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let wrong = || format!("{word}: expected session.part, as 0.open, 0.3-5 or 1.cut+12");
            let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
            let (session, part) = word.split_once('.').ok_or_else(wrong)?;
            let session = number(session)?;
            let (name, after) = part.split_once('+').map_or((part, None), |(name, n)| (name, Some(n)));
            if let Some((_, part)) = NAMES.iter().find(|(named, _)| *named == name) {
                reduction.kept.insert(Item { session, part: *part });
                if let Some(events) = after {
                    reduction.cuts.insert(session, number(events)?);
                }
                continue;
            }
            let (first, last) = name.split_once('-').unwrap_or((name, name));
            let steps = (number(first)?..=number(last)?).take(STEPS_MAX);
            reduction.kept.extend(steps.map(|step| Item { session, part: Part::Step(step) }));
        }
        Ok(reduction)
    }
}

/// More steps than a session has.
const STEPS_MAX: usize = 10_000;

/// How a world is run.
pub(crate) enum Mode {
    /// As its seed has it.
    Drawn,
    /// The same, and it is noted.
    Noted(Rc<RefCell<Tape>>),
    /// Some of it is left out.
    Reduced(Rc<Tape>, Reduction),
}

/// How a world is run, and how far it has come.
pub(crate) struct Course {
    pub session: u64,
    pub mode: Mode,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_printed_as_it_is_read() {
        for text in ["", "0.start,0.open,0.3-5,0.9,1.cut+12,1.0,4.trouble,4.close", "2.pause,2.loss"] {
            assert_eq!(text.parse::<Reduction>().expect("well formed").to_string(), text);
        }
        for text in ["0", "0.", "x.open", "0.ope", "0.3-", "1.cut+x"] {
            assert!(text.parse::<Reduction>().is_err(), "{text}");
        }
    }
}
