//! How a world's store is opened: also cut short, on a disk that has grown, and what must be there then.

use super::under::Under;
use super::{State, World, bytes_of, key_of};
use block::Random;
use kv::ask::{Answer, Ask, Keys, Range, Refused};

impl<U: Under> World<U> {
    pub(super) fn open(&mut self) {
        let in_order = self.random.chance(1, 3);
        if let Some(disk) = self.under.disk() {
            disk.in_order = in_order;
        }
        if self.plan.grows && self.later.chance(1, 2) {
            self.grow();
        }
        self.open_cut_short();
        self.open_once();
        self.check_all();
        if self.random.chance(1, 8) {
            self.store = None;
            self.under.cut();
            self.open_once();
            self.check_all();
        }
    }

    fn open_once(&mut self) {
        let options = self.options();
        match kv::open(&mut self.under, self.volume, options) {
            Ok(store) => {
                if store.is_in_doubt() && !self.rotten {
                    self.fail("the store is in doubt although nothing rotted");
                }
                self.say(|| format!("open {:?}", store.figures()));
                self.store = Some(store);
            }
            Err(error) => self.fail(&format!("the store does not open: {error}")),
        }
    }

    /// Power fails while the store is opened, once or several times: what is there then is opened again.
    fn open_cut_short(&mut self) {
        let options = self.options();
        while self.later.chance(1, 4) {
            self.under.carry_at_most(self.later.below(60));
            match kv::open(&mut self.under, self.volume, options) {
                Ok(_) | Err(kv::OpenError::Volume(_)) => {}
                // What it could not read may be what it needed.
                Err(_) if self.under.is_carried_out() => {}
                Err(error) => self.fail(&format!("the store does not open: {error}")),
            }
            self.say(|| "0: power cut while it opens".to_owned());
            self.under.cut();
        }
    }

    /// The disk is given to something else that leaves its end alone: there is no store, and all stays.
    pub(super) fn give_away(&mut self) {
        self.store = None;
        let size = 4096 * self.later.pick(&[2, 12, 100]);
        let before = self.under.disk().expect("only disks are given away").give_away(size).to_vec();
        let options = self.options();
        match kv::open(&mut self.under, self.volume, options) {
            Err(kv::OpenError::Header(_)) => {}
            other => self.fail(&format!("a disk that was given away: {:?}", other.map(|_| "a store"))),
        }
        self.under.cut();
        if self.under.disk_ref().is_none_or(|disk| disk.durable() != before) {
            self.fail("a disk that was given away was written to");
        }
    }

    /// The disk has become larger: by a block, or by many segments.
    fn grow(&mut self) {
        self.volume += 4096 * self.later.pick(&[1, 5, 16, 23, 100, 321]);
        self.say(|| format!("0: the volume has {} bytes", self.volume));
        self.under.disk().expect("only disks grow").grow(usize::try_from(self.volume).expect("small"));
    }

    /// After a start every key is something that it may be, and stays so.
    fn check_all(&mut self) {
        for number in 0..self.models.len() {
            if self.models[number].unknown {
                continue;
            }
            let found = self.ask_alone(Ask::Get { key: key_of(number), range: Range::Whole, lifetime: None });
            let found = match found {
                Ok(Answer::Value(found)) => found,
                Err(Refused::Damaged { .. }) if self.rotten => {
                    self.set_anew(number);
                    continue;
                }
                other => self.fail(&format!("key {number} after a start: {other:?}")),
            };
            let now = self.now_ms;
            let fits = |state: &State| match (self.visible(*state), &found) {
                (None, None) => true,
                (Some(thing), Some(value)) => value.to_vec() == bytes_of(thing),
                (None, Some(_)) | (Some(_), None) => false,
            };
            let model = &self.models[number];
            let Some(at) = model.may_be.iter().rposition(|(_, state)| fits(state)) else {
                let what = found.map(|value| value.len());
                self.fail(&format!("key {number} is {what:?} at {now}, may be {:?}", model.may_be));
            };
            let state = model.may_be[at].1;
            // Several versions may look alike, empty ones above all; those that differ only in their lifetime
            // are told apart below.
            let described = self.ask_alone(Ask::Describe { key: key_of(number) });
            let state = match described {
                Ok(Answer::Described(Some(found))) => {
                    let fits = |may: &&(u64, State)| {
                        self.visible(may.1).is_some_and(|thing| {
                            thing.until == found.until_ms && Some(bytes_of(thing)) == state.map(bytes_of)
                        })
                    };
                    let Some(state) = self.models[number].may_be.iter().rev().find(fits) else {
                        self.fail(&format!("key {number} lives until {:?}", found.until_ms));
                    };
                    state.1
                }
                Ok(Answer::Described(None)) => None,
                Err(Refused::Damaged { .. }) if self.rotten => {
                    self.set_anew(number);
                    continue;
                }
                other => self.fail(&format!("key {number} is described as {other:?}")),
            };
            let model = &mut self.models[number];
            model.now = state;
            model.changing = None;
            // What was there and is over may be what the store has.
            let over = |may: &State| may.is_some_and(|thing| thing.until.is_some_and(|until| until <= now));
            model.may_be.retain(|(_, may)| state.is_none() && over(may));
            self.next_seed += 1;
            model.version = self.next_seed;
            model.may_be.push((model.version, state));
        }
    }
}
