//! Members that work, and the devices that are to take their places.

use super::{Operator, Pending};
use crate::checks::View;
use crate::error::Error;
use crate::event::Event;
use crate::logbook::{Level, log_as};
use crate::open::open_options;
use crate::refusal::Refusal;
use crate::running::Running;
use crate::succeed::{Outcome, Replacement, Succeeding};
use block::DevIndex;
use device::{Access, Members};
use std::path::Path;

impl Operator {
    /// A member that works gets a successor.
    pub(super) fn succeed(&mut self, running: &mut Running, dev: DevIndex, path: &Path) -> Result<(), Error> {
        let lock = match self.lock_replacement(running, path)? {
            Some(lock) => lock,
            // The device of a member that has just failed, which is not closed yet.
            None => Members::open(&[Some(path.to_owned())], open_options(Access::Exclusive))?,
        };
        self.succeeding.push(Succeeding::begin(running, dev, path.to_owned(), lock)?);
        Ok(())
    }

    /// The rings can make one device the same as a member, not two.
    pub(super) fn check_one_at_a_time(&self, view: &View, dev: DevIndex) -> Result<(), Refusal> {
        let Some(other) = self.succeeding.first() else { return Ok(()) };
        let (name, path) = (view.name_of(dev), other.path().to_owned());
        Err(Refusal::OneAtATime { name, other: view.name_of(other.dev()), path })
    }

    /// The device that becomes what a member is does not take over.
    pub fn call_off(&mut self, running: &mut Running, dev: DevIndex) -> Result<(), Error> {
        let name = self.view(running).name_of(dev);
        match self.succeeding.iter_mut().find(|one| one.dev() == dev) {
            None => Err(Refusal::NotBeingReplaced { name }.into()),
            Some(one) if one.is_handing_over() => {
                Err(Refusal::TakesOver { name, path: one.path().to_owned() }.into())
            }
            Some(one) => one.call_off(running),
        }
    }

    /// What is to take the place of a member that works, and how far it is.
    pub fn replacement_of(&self, dev: DevIndex, now_ns: u64) -> Option<Replacement> {
        self.succeeding.iter().find(|one| one.dev() == dev).map(|one| one.status(now_ns))
    }

    /// Which member a device is becoming, and how far that is.
    pub fn copying(&self, running: &Running) -> Option<(String, Replacement)> {
        let one = self.succeeding.first()?;
        Some((self.view(running).name_of(one.dev()), one.status(running.now_ns())))
    }

    /// Whether the device at `path` is to take the place of a member that works.
    pub fn is_successor(&self, path: &Path) -> bool {
        self.succeeding.iter().any(|one| one.path() == path)
    }

    /// Whether a device is about to take over from a member: the array is not to be stopped now.
    pub fn is_handing_over(&self) -> bool {
        self.succeeding.iter().any(Succeeding::is_handing_over)
    }

    /// The array is to be stopped: no member gets a successor any more. Nothing remembers them, so that is
    /// said.
    pub fn let_successors_go(&mut self, running: &mut Running) -> Result<(), Error> {
        for one in &self.succeeding {
            let (path, name) = (one.path().display(), self.view(running).name_of(one.dev()));
            let stays = format!("{name} stays: `replace` again when the array is served");
            let text = format!(
                "{path} does not take the place of {name}: the array stops before it is whole; {stays}"
            );
            log_as(Level::Warning, &text);
        }
        self.succeeding.drain(..).try_for_each(|mut one| one.abandon(running))
    }

    /// Takes members' successors a step further.
    pub(super) fn go_on_succeeding(&mut self, running: &mut Running, events: &mut Vec<Event>) {
        for index in (0..self.succeeding.len()).rev() {
            let outcome = self.succeeding[index].go_on(running);
            if matches!(outcome, Ok(Outcome::Goes)) {
                continue;
            }
            let one = self.succeeding.swap_remove(index);
            let (dev, path, moved_bytes) = (one.dev(), one.path().to_owned(), one.moved_bytes());
            match outcome {
                Ok(Outcome::Goes) => {}
                Ok(Outcome::Succeeded) => {
                    let before = self.paths[dev.index()].replace(path.clone());
                    self.refilled.insert(dev);
                    events.push(Event::Succeeded { dev, path, before, moved_bytes });
                }
                // What was begun in its stead is done as for any member that failed.
                Ok(Outcome::MemberLeft) => match running.replacing(dev) {
                    Ok(replacing) => {
                        let lock = Some(one.into_lock());
                        self.pending.push(Pending::new(replacing, path, lock));
                    }
                    Err(_) => {
                        let why = "it went out of service meanwhile".to_owned();
                        events.push(Event::NotReplaced { dev, path, why });
                    }
                },
                Ok(Outcome::Failed(why)) => events.push(Event::NotReplaced { dev, path, why }),
                Ok(Outcome::CalledOff) => events.push(Event::CalledOff { dev, path }),
                Err(error) => events.push(Event::NotReplaced { dev, path, why: error.to_string() }),
            }
        }
    }
}
