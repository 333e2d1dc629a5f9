//! The array's own spares, which take the places of members that fail; and what is said if none can.

use super::{Operator, Pending, absolute};
use crate::blank::{wipe_spare, write_spare};
use crate::checks::{Caution, same_file, share_bytes};
use crate::error::Error;
use crate::grow::small_spares;
use crate::open::{Spare, look_at, open_options};
use crate::refusal::Refusal;
use crate::running::Running;
use crate::units::show_size;
use block::DevIndex;
use device::{Access, Members, Whereabouts};
use std::path::{Path, PathBuf};

/// A spare that waits, open.
pub(super) struct HeldSpare {
    pub spare: Spare,
    /// Keeps others from using it.
    pub lock: Members,
}

impl HeldSpare {
    /// Why the next start would not find what is written on it, if it would not.
    fn why_gone(&self) -> Option<&'static str> {
        match self.lock.whereabouts(DevIndex::new(0)) {
            Whereabouts::Here => None,
            Whereabouts::Deleted => Some("its file was deleted"),
            Whereabouts::Elsewhere => Some("its path leads to another device now"),
        }
    }

    /// Why it cannot take a place of that size, if it cannot.
    fn why_not(&self, needed_bytes: u64) -> Option<String> {
        match self.why_gone() {
            Some(why) => Some(why.to_owned()),
            None => too_small(self.spare.size_bytes, needed_bytes),
        }
    }
}

/// That a spare is too small, if it is.
fn too_small(bytes: u64, needed_bytes: u64) -> Option<String> {
    let text = || format!("it has {}, and {} are needed", show_size(bytes), show_size(needed_bytes));
    (bytes < needed_bytes).then(text)
}

impl Operator {
    /// Takes the spares among the given paths; those that cannot be had are reported.
    pub fn adopt_spares(&mut self, running: &mut Running, spares: &[Spare]) -> Vec<String> {
        let adopt = |spare: &Spare| {
            self.add_spare(running, &spare.path, Caution::Careful).err().map(|error| error.to_string())
        };
        spares.iter().filter_map(adopt).collect()
    }

    /// The spares that wait; and of those that can take no place any more, why.
    pub fn spares(&self) -> Vec<(Spare, Option<&'static str>)> {
        self.spares.iter().map(|held| (held.spare.clone(), held.why_gone())).collect()
    }

    /// Looks which spares have become larger.
    pub fn measure_spares(&mut self) {
        for held in &mut self.spares {
            held.lock.measure();
            held.spare.size_bytes = held.lock.size_bytes(DevIndex::new(0));
        }
    }

    /// Keeps a device at hand for the next failure. Writes a superblock that says so, unless it is one
    /// already.
    pub fn add_spare(&mut self, running: &mut Running, path: &Path, caution: Caution) -> Result<(), Error> {
        let candidate = look_at(path)?;
        let already = self.view(running).check_spare(&candidate, caution)?;
        self.forget_gone(path);
        self.check_is_no_spare(path)?;
        // Locking refuses members of this array, too: they are locked by us.
        let mut lock = Members::open(&[Some(path.to_owned())], open_options(Access::Exclusive))?;
        if !already {
            let superblock = running.lead().superblock_of(DevIndex::new(0));
            write_spare(&mut lock, path, superblock)?;
        }
        let spare = Spare { path: absolute(path), size_bytes: candidate.size_bytes };
        self.spares.push(HeldSpare { spare, lock });
        Ok(())
    }

    /// That a device shares no bytes with a spare.
    pub(super) fn check_is_no_spare(&self, path: &Path) -> Result<(), Refusal> {
        match self.spares.iter().any(|held| share_bytes(&held.spare.path, path)) {
            true => Err(Refusal::SpareAlready { path: path.to_owned() }),
            false => Ok(()),
        }
    }

    /// Lets go of a spare that is not at its path any more: what is there now is another one.
    fn forget_gone(&mut self, path: &Path) {
        self.spares.retain(|held| !same_file(&held.spare.path, path) || held.why_gone().is_none());
    }

    /// The lock of the device at `path`, if that is a spare, which it is no more then.
    pub(super) fn take_spare(&mut self, path: &Path) -> Option<Members> {
        self.forget_gone(path);
        let at = self.spares.iter().position(|held| same_file(&held.spare.path, path))?;
        Some(self.spares.remove(at).lock)
    }

    /// Lets go of a spare, by name or path, and erases its superblock; its path.
    pub fn remove_spare(&mut self, wanted: &Path) -> Result<PathBuf, Error> {
        let is_it = |(index, held): (usize, &HeldSpare)| {
            wanted == Path::new(&format!("spare{index}")) || same_file(&held.spare.path, wanted)
        };
        let at = self.spares.iter().enumerate().position(is_it).ok_or_else(|| {
            let paths = self.spares.iter().map(|held| held.spare.path.display().to_string());
            let known = paths.collect::<Vec<_>>().join(", ");
            let known =
                if known.is_empty() { "it has none".to_owned() } else { format!("these are {known}") };
            Refusal::NotASpare { wanted: wanted.to_owned(), known }
        })?;
        let path = self.spares[at].spare.path.clone();
        wipe_spare(&mut self.spares[at].lock, &path)?;
        self.spares.remove(at);
        Ok(path)
    }

    /// Lets spares take the places of failed members.
    pub(super) fn call_spares(&mut self, running: &Running) {
        if self.spares.is_empty() || !running.accepts_writes() {
            return;
        }
        let view = self.view(running);
        for dev in running.members() {
            if self.is_being_replaced(dev) || !running.is_failed_everywhere(dev) {
                continue;
            }
            self.measure_spares();
            let needed = view.place_bytes(dev);
            // The smallest that will do: a large one may be needed for a larger place.
            let best = (0..self.spares.len())
                .filter(|&at| self.spares[at].why_not(needed).is_none())
                .min_by_key(|&at| self.spares[at].spare.size_bytes);
            if let Some(at) = best {
                let Ok(replacing) = running.replacing(dev) else { continue };
                let HeldSpare { spare, lock } = self.spares.remove(at);
                let lock = Some(lock);
                self.pending.push(Pending::new(replacing, spare.path, lock));
            }
        }
    }

    /// What the log is to be told of members that have failed, once of each, with its name: why no spare
    /// takes its place although there are some.
    pub fn lines_of_unfit_spares(&mut self, running: &Running) -> Vec<(String, String)> {
        self.without_spare.retain(|&dev| running.is_failed_everywhere(dev));
        let mut lines = Vec::new();
        if self.is_read_only || self.is_growing() || !running.accepts_writes() {
            return lines;
        }
        let view = self.view(running);
        for dev in running.members().filter(|&dev| running.is_failed_everywhere(dev)) {
            let is_provided = self.is_being_replaced(dev) || self.shared.may_come_for(dev);
            if is_provided || self.without_spare.contains(&dev) || running.replacing(dev).is_err() {
                continue;
            }
            let why = self.why_no_spare(view.place_bytes(dev));
            if !why.is_empty() {
                self.without_spare.insert(dev);
                let name = view.name_of(dev);
                let text = format!("no spare can take the place of {name}: {}", why.join("; "));
                lines.push((name, text));
            }
        }
        lines
    }

    /// Those that are too small for a data device that has so many bytes, and that they are.
    pub(super) fn small_spares(&self, needed_bytes: u64) -> Vec<String> {
        let shared = self.shared_spares().filter_map(|(_, spare)| {
            Some(Spare { path: spare.path.clone(), size_bytes: *spare.found.as_ref().ok()? })
        });
        let all: Vec<Spare> = self.spares.iter().map(|held| held.spare.clone()).chain(shared).collect();
        small_spares(all.iter(), needed_bytes)
    }

    /// Why each of the spares cannot take a place of that size.
    fn why_no_spare(&self, needed_bytes: u64) -> Vec<String> {
        let own = self.spares.iter().enumerate().filter_map(|(index, held)| {
            Some(format!("spare{index} ({}): {}", held.spare.path.display(), held.why_not(needed_bytes)?))
        });
        let shared = self.shared_spares().filter_map(|(index, spare)| {
            let why = match &spare.found {
                Ok(bytes) => too_small(*bytes, needed_bytes)?,
                Err(why) => why.clone(),
            };
            Some(format!("shared{index} ({}): {why}", spare.path.display()))
        });
        own.chain(shared).collect()
    }
}
