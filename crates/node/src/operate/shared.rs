//! Spares that several arrays of this machine share. Nothing is written on one before it is needed: whoever
//! needs it locks it, sees under the lock that nothing is on it, and makes it a member, which is what the
//! others find on it then. So nobody has to agree with anybody, and a device that holds anything is left
//! alone.
//!
//! They are looked at and locked by threads, one for each ([`looker`]), and what came of it is heard by the
//! thread that serves: a device that hangs is none that will do, and holds up nobody.

mod looker;

use super::{Operator, Pending, absolute};
use crate::open::look_at;
use crate::running::Running;
use block::DevIndex;
use device::Members;
use looker::{Looker, Seen, news_event};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often they are looked at while a member has no device.
const LOOK_NS: u64 = 1_000_000_000;
/// For how long they are waited for before anybody is served.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// One of them.
pub struct SharedSpare {
    /// Where it is.
    pub path: PathBuf,
    /// Its size, if it is free; else what is in the way.
    pub found: Result<u64, String>,
    /// It is a block device, as far as is known.
    is_block: bool,
    looker: Looker,
    /// The member for which it is being locked.
    meant_for: Option<DevIndex>,
    /// It has been locked, and has this size.
    held: Option<(Members, u64)>,
}

impl SharedSpare {
    fn start(path: PathBuf, news: &Arc<OwnedFd>) -> io::Result<Self> {
        let looker = Looker::start(path.clone(), Arc::clone(news))?;
        let found = Err("it has not been looked at yet".to_owned());
        Ok(Self { path, found, is_block: false, looker, meant_for: None, held: None })
    }

    /// Takes note of what its thread has seen.
    fn hear(&mut self) {
        for seen in self.looker.take() {
            match seen {
                Seen::Looked(found, is_block) => (self.found, self.is_block) = (found, is_block),
                Seen::Claimed(claimed) => {
                    self.meant_for = None;
                    self.found = claimed.as_ref().map(|&(_, bytes)| bytes).map_err(String::clone);
                    self.held = claimed.ok();
                }
            }
        }
        if self.looker.is_silent() {
            self.found = Err("it does not answer".to_owned());
        }
    }

    /// Whether it is being locked for a member, and may be had for it soon.
    fn is_coming_for(&self, dev: DevIndex) -> bool {
        self.meant_for == Some(dev) && !self.looker.is_silent()
    }
}

/// All that the server was told of.
#[derive(Default)]
pub(super) struct SharedSpares {
    list: Vec<SharedSpare>,
    /// Readable when one of them has answered.
    news: Option<Arc<OwnedFd>>,
    /// A member lacks a device, and none of them will do now.
    is_wanted: bool,
}

impl SharedSpares {
    /// In how many nanoseconds they are to be looked at for a member that has no device.
    pub(super) fn due_in_ns(&self) -> Option<u64> {
        self.is_wanted.then_some(LOOK_NS)
    }

    /// Has them looked at again, if that was some time ago, and takes note of what was seen.
    fn look(&mut self) {
        for spare in &mut self.list {
            spare.looker.refresh();
            spare.hear();
        }
    }

    /// Whether one may be had for a member soon: it is being locked for it, or looked at.
    pub(super) fn may_come_for(&self, dev: DevIndex) -> bool {
        self.list.iter().any(|spare| spare.is_coming_for(dev) || spare.looker.is_asked())
    }

    /// One of at least so many bytes that has been locked. If there is none, the smallest that is large
    /// enough is locked for the member, unless that is under way.
    fn call(&mut self, dev: DevIndex, needed: u64) -> Option<(PathBuf, Members)> {
        for spare in &mut self.list {
            if let Some((lock, _)) = spare.held.take_if(|(_, bytes)| *bytes >= needed) {
                spare.found = Err("it takes a place here".to_owned());
                return Some((spare.path.clone(), lock));
            }
        }
        if !self.list.iter().any(|spare| spare.is_coming_for(dev)) {
            let fits = |spare: &&mut SharedSpare| {
                spare.meant_for.is_none() && spare.found.as_ref().is_ok_and(|&bytes| bytes >= needed)
            };
            let fitting = self.list.iter_mut().filter(fits);
            if let Some(spare) = fitting.min_by_key(|spare| spare.found.clone().unwrap_or(u64::MAX)) {
                spare.meant_for = Some(dev);
                spare.looker.claim();
            }
        }
        None
    }
}

impl Operator {
    /// Spares that this array has together with others, wherever they are.
    pub fn share_spares(&mut self, paths: &[PathBuf]) -> io::Result<()> {
        if paths.is_empty() {
            return Ok(());
        }
        let news = Arc::new(news_event()?);
        let start = |path: &PathBuf| SharedSpare::start(absolute(path), &news);
        self.shared.list = paths.iter().map(start).collect::<io::Result<_>>()?;
        let end = Instant::now() + FIRST_LOOK;
        for spare in &mut self.shared.list {
            spare.looker.wait_until(end);
            spare.hear();
        }
        self.shared.news = Some(news);
        Ok(())
    }

    /// Has them looked at again, if that was some time ago.
    pub fn look_at_shared(&mut self) {
        self.shared.look();
    }

    /// What is readable when one of them has answered.
    pub fn shared_news(&self) -> Option<BorrowedFd<'_>> {
        self.shared.news.as_ref().map(|news| news.as_fd())
    }

    /// Takes note that one has, if that is what is readable.
    pub fn take_shared_news(&self, fd: RawFd) -> bool {
        let Some(news) = self.shared.news.as_ref().filter(|news| news.as_raw_fd() == fd) else {
            return false;
        };
        // Nothing may have come.
        let _ = rustix::io::read(news, &mut [0; 8]);
        true
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
        if self.shared.list.is_empty() {
            return;
        }
        self.shared.list.iter_mut().for_each(SharedSpare::hear);
        if !self.is_read_only && running.accepts_writes() {
            self.fill_places(running);
        }
        // What was locked and nobody needs any more is the others' again.
        self.shared.list.iter_mut().for_each(|spare| spare.held = None);
    }

    fn fill_places(&mut self, running: &Running) {
        let view = self.view(running);
        for dev in running.members() {
            if self.is_being_replaced(dev) || !running.is_failed_everywhere(dev) {
                continue;
            }
            self.shared.look();
            let Ok(replacing) = running.replacing(dev) else { continue };
            match self.shared.call(dev, view.place_bytes(dev)) {
                Some((path, lock)) => {
                    self.pending.push(Pending::new(replacing, path, Some(lock)));
                }
                None => self.shared.is_wanted = true,
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
