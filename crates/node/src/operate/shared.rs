//! Spares that several arrays of this machine share. Nothing is written on one before it is needed: whoever
//! needs it locks it, sees under the lock that nothing is on it, and makes it a member, which is what the
//! others find on it then. So nobody has to agree with anybody, and a device that holds anything is left
//! alone.

use super::{Operator, Pending, absolute};
use crate::open::{Candidate, array_name, is_locked, look_at, open_options};
use crate::running::Running;
use device::{Access, Members, OpenError};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// How often they are looked at: when somebody wants to know, and while a member has no device.
const LOOK_NS: u64 = 1_000_000_000;

/// One of them.
pub struct SharedSpare {
    /// Where it is.
    pub path: PathBuf,
    /// Its size, if it is free; else what is in the way.
    pub found: Result<u64, String>,
    /// It is a block device, as far as is known.
    is_block: bool,
}

/// All that the server was told of.
#[derive(Default)]
pub(super) struct SharedSpares {
    list: Vec<SharedSpare>,
    /// When they were last looked at.
    looked_ns: u64,
    /// A member lacks a device, and none of them will do now.
    is_wanted: bool,
}

impl SharedSpares {
    /// In how many nanoseconds they are to be looked at for a member that has no device.
    pub(super) fn due_in_ns(&self) -> Option<u64> {
        self.is_wanted.then_some(LOOK_NS)
    }
}

/// The size of a device that nothing is on, or what is on it.
fn blank_bytes(candidate: &Candidate) -> Result<u64, String> {
    match (candidate.superblock(), candidate.signature) {
        (Some(superblock), _) => Err(format!("it is of array {}", array_name(superblock))),
        (None, Some(signature)) => Err(format!("{signature} is on it")),
        (None, None) if candidate.looks_like_member => {
            Err("it holds a superblock that cannot be read; `wipe` it if nobody needs it".to_owned())
        }
        (None, None) => Ok(candidate.size_bytes),
    }
}

fn look(path: &Path) -> Result<u64, String> {
    let candidate = look_at(path).map_err(|error| error.to_string())?;
    let bytes = blank_bytes(&candidate)?;
    if is_locked(&candidate) { Err("another process has it open".to_owned()) } else { Ok(bytes) }
}

fn is_block(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.file_type().is_block_device())
}

/// Locks a device if nothing is on it; its lock and size, or what is in the way.
fn claim(path: &Path) -> Result<(Members, u64), String> {
    let lock = Members::open(&[Some(path.to_owned())], open_options(Access::Exclusive));
    let lock = lock.map_err(|error| {
        let in_use = matches!(error, OpenError::InUse { .. });
        if in_use { "another process has it open".to_owned() } else { error.to_string() }
    })?;
    // Whoever had it locked a moment ago may have made it a member.
    let candidate = look_at(path).map_err(|error| error.to_string())?;
    Ok((lock, blank_bytes(&candidate)?))
}

impl Operator {
    /// Spares that this array has together with others, wherever they are.
    pub fn share_spares(&mut self, paths: &[PathBuf]) {
        let shared = |path: &PathBuf| {
            let path = absolute(path);
            SharedSpare { found: look(&path), is_block: is_block(&path), path }
        };
        self.shared.list = paths.iter().map(shared).collect();
    }

    /// Looks at them again, if that was some time ago.
    pub fn look_at_shared(&mut self, running: &Running) {
        let now_ns = running.now_ns();
        if self.shared.list.is_empty() || now_ns < self.shared.looked_ns.saturating_add(LOOK_NS) {
            return;
        }
        self.shared.looked_ns = now_ns;
        for spare in &mut self.shared.list {
            if self.paths.iter().flatten().all(|path| *path != spare.path) {
                (spare.found, spare.is_block) = (look(&spare.path), is_block(&spare.path));
            }
        }
    }

    /// How they are, but for those that are members here, each with its number.
    pub fn shared_spares(&self) -> impl Iterator<Item = (usize, &SharedSpare)> {
        let is_own = |spare: &SharedSpare| {
            let coming = self.pending.iter().any(|pending| pending.path == spare.path);
            coming || self.paths.iter().flatten().any(|path| *path == spare.path)
        };
        self.shared.list.iter().enumerate().filter(move |(_, spare)| !is_own(spare))
    }

    /// Where those are that are block devices.
    pub(super) fn shared_devices(&self) -> impl Iterator<Item = &Path> {
        self.shared_spares().filter(|(_, spare)| spare.is_block).map(|(_, spare)| spare.path.as_path())
    }

    /// Lets shared spares take the places of failed members for which there is none of the array's own.
    pub(super) fn call_shared(&mut self, running: &Running) {
        self.shared.is_wanted = false;
        if self.shared.list.is_empty() || self.is_read_only || !running.accepts_writes() {
            return;
        }
        let view = self.view(running);
        for dev in running.members() {
            if self.is_being_replaced(dev) || !running.is_failed_everywhere(dev) {
                continue;
            }
            self.shared.is_wanted = true;
            self.look_at_shared(running);
            let needed = view.place_bytes(dev);
            let fits = |spare: &&mut SharedSpare| spare.found.as_ref().is_ok_and(|&bytes| bytes >= needed);
            let mut fitting: Vec<&mut SharedSpare> = self.shared.list.iter_mut().filter(fits).collect();
            fitting.sort_by_key(|spare| spare.found.clone().unwrap_or(u64::MAX));
            for spare in fitting {
                let Ok(replacing) = running.replacing(dev) else { break };
                match claim(&spare.path) {
                    Ok((lock, bytes)) if bytes >= needed => {
                        let (path, lock) = (spare.path.clone(), Some(lock));
                        spare.found = Err("it takes a place here".to_owned());
                        self.pending.push(Pending { replacing, path, lock, is_installed: false });
                        self.shared.is_wanted = false;
                        break;
                    }
                    Ok((_, bytes)) => spare.found = Ok(bytes),
                    Err(why) => spare.found = Err(why),
                }
            }
        }
    }
}

/// Paths of members, and of those shared spares that are members of the same array by now.
pub fn with_shared_members(paths: Vec<PathBuf>, shared: &[PathBuf]) -> Vec<PathBuf> {
    let array_of = |path: &PathBuf| look_at(path).ok()?.superblock().map(|superblock| superblock.array);
    if shared.is_empty() {
        return paths;
    }
    let Some(array) = paths.iter().find_map(array_of) else { return paths };
    let known = |path: &PathBuf| paths.iter().any(|one| crate::checks::same_file(one, path));
    let more: Vec<PathBuf> =
        shared.iter().filter(|path| array_of(path) == Some(array) && !known(path)).cloned().collect();
    paths.into_iter().chain(more).collect()
}
