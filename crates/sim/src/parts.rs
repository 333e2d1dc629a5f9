//! How a world goes through its parts, see `course`.

use crate::course::{Item, Mode, Moment, Part};
use crate::machine::Machine;
use crate::simpler::Setting;

impl Machine {
    /// A part begins; whether it happens.
    pub fn enter(&mut self, part: Part) -> bool {
        let item = Item { session: self.course.session, part };
        match &self.course.mode {
            Mode::Drawn => true,
            Mode::Noted(tape) => {
                let world = self.world.look();
                let (rng, world_rng) = (self.rng.clone(), world.rng.clone());
                let moment = Moment { rng, world_rng, events: world.events() };
                tape.borrow_mut().moments.insert(item, moment);
                true
            }
            Mode::Reduced(tape, reduction) => {
                if let Some(moment) = tape.moments.get(&item) {
                    self.rng = moment.rng.clone();
                    self.world.change().rng = moment.world_rng.clone();
                }
                if let Some(events) = reduction.cut_at(tape, item) {
                    self.world.change().postpone_cut(events);
                }
                reduction.kept.contains(&item)
            }
        }
    }

    /// Whether a part of this session happens that has no beginning of its own.
    pub fn keeps(&self, part: Part) -> bool {
        match &self.course.mode {
            Mode::Drawn | Mode::Noted(_) => true,
            Mode::Reduced(_, reduction) => {
                reduction.kept.contains(&Item { session: self.course.session, part })
            }
        }
    }

    /// The sessions that take place.
    pub fn sessions(&self) -> Vec<u64> {
        let all = 0..self.swarm.sessions;
        match &self.course.mode {
            Mode::Drawn | Mode::Noted(_) => all.collect(),
            // Damage at the end is for an array that was used.
            Mode::Reduced(_, reduction) => all
                .filter(|&session| {
                    let last = session + 1 == self.swarm.sessions;
                    reduction.has_session(session) || (last && self.swarm.ruin)
                })
                .collect(),
        }
    }

    /// Whether a step that is left out takes no time.
    pub fn is_hurried(&self) -> bool {
        match &self.course.mode {
            Mode::Drawn | Mode::Noted(_) => false,
            Mode::Reduced(_, reduction) => reduction.settings.iter().any(Setting::is_hurry),
        }
    }

    /// Power will fail after so many operations.
    pub fn note_cut(&mut self, events: u64) {
        if let Mode::Noted(tape) = &self.course.mode {
            let at = self.world.look().events() + events;
            tape.borrow_mut().cuts.insert(self.course.session, at);
        }
    }

    /// Power fails so many operations from now on, whatever was planned of it for the session. Where parts
    /// are left out it is planned already.
    pub fn plan_cut_anew(&mut self, events: u64) {
        if matches!(self.course.mode, Mode::Drawn | Mode::Noted(_)) {
            self.plan_cut(events, None);
        }
    }

    /// Power fails after so many operations of a session, or devices stop answering. Where parts are left out
    /// that is no number of operations since the session began, but since the part in which it happened
    /// began.
    pub fn plan_cut(&mut self, events: u64, devices: Option<Vec<u16>>) {
        match &self.course.mode {
            Mode::Drawn | Mode::Noted(_) => self.note_cut(events),
            Mode::Reduced(..) => {
                match devices {
                    Some(devices) if self.keeps(Part::Cut) => {
                        self.world.change().blackout_after(u64::MAX / 2, devices);
                    }
                    Some(_) => {}
                    // It takes the place of one that was planned for the assembly and has not come.
                    None => self.world.change().crash_never(),
                }
                return;
            }
        }
        match devices {
            Some(devices) => self.world.change().blackout_after(events, devices),
            None => self.world.change().crash_after(events),
        }
    }
}
