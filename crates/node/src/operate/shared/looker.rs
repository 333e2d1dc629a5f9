//! Looks at one shared spare, and locks it, on a thread of its own: a device answers when it likes, or never,
//! and nobody waits for that.

use crate::blank::unknown_content;
use crate::open::{Candidate, array_name, is_locked, look_at, open_options};
use device::{Access, Identity, Members, OpenError};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How often it is looked at if nobody asks.
const EVERY: Duration = Duration::from_secs(10);
/// Who asks has it looked at again when it was not within this time.
const FRESH: Duration = Duration::from_secs(1);
/// A device that has not answered for so long counts as none that will do.
const SILENT: Duration = Duration::from_secs(3);

/// What is wanted of a spare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wish {
    /// What is on it.
    Look,
    /// To have it, if nothing is on it.
    Claim,
}

/// What came of a wish.
pub(super) enum Seen {
    /// Its size if it is free, else what is in the way; and whether it is a block device.
    Looked(Result<u64, String>, bool),
    /// Its lock and size, or what is in the way.
    Claimed(Result<(Members, u64), String>),
}

/// What the thread and its owner share.
#[derive(Default)]
struct State {
    wish: Option<Wish>,
    /// Since when something is wanted of it that it has not answered.
    waits_since: Option<Instant>,
    /// When it answered last.
    answered_at: Option<Instant>,
    /// What the owner has not taken yet, the oldest first. It is one of each kind at most.
    seen: Vec<Seen>,
    is_over: bool,
}

/// See the module's documentation.
pub(super) struct Looker {
    shared: Arc<(Mutex<State>, Condvar)>,
}

/// What is readable when a spare has answered.
pub(super) fn news_event() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)
}

/// A thread that ended in a bug has left nothing half done.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Looker {
    /// Looks at what is at a path, at once and from then on.
    pub fn start(path: PathBuf, news: Arc<OwnedFd>) -> io::Result<Self> {
        let mut known = None;
        Self::start_with(news, move |wish| match wish {
            Wish::Look => Seen::Looked(look(&path, &mut known), is_block(&path)),
            Wish::Claim => {
                known = None;
                Seen::Claimed(claim(&path))
            }
        })
    }

    /// The same with something else that answers for the device.
    fn start_with(news: Arc<OwnedFd>, ask: impl FnMut(Wish) -> Seen + Send + 'static) -> io::Result<Self> {
        let first = State { wish: Some(Wish::Look), waits_since: Some(Instant::now()), ..State::default() };
        let shared = Arc::new((Mutex::new(first), Condvar::new()));
        let own = Arc::clone(&shared);
        let work = move || ask_again_and_again(&own, &news, ask);
        std::thread::Builder::new().name("spare".to_owned()).spawn(work)?;
        Ok(Self { shared })
    }

    /// Waits until it has answered, or for so long.
    pub fn wait_until(&self, end: Instant) {
        let mut state = lock(&self.shared.0);
        while state.waits_since.is_some() && Instant::now() < end {
            let left = end.saturating_duration_since(Instant::now());
            state = self.shared.1.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Has it looked at again, if that was some time ago.
    pub fn refresh(&self) {
        if lock(&self.shared.0).answered_at.is_none_or(|at| at.elapsed() > FRESH) {
            self.wish(Wish::Look);
        }
    }

    /// Has it locked.
    pub fn claim(&self) {
        self.wish(Wish::Claim);
    }

    fn wish(&self, wish: Wish) {
        let mut state = lock(&self.shared.0);
        if state.wish != Some(Wish::Claim) {
            state.wish = Some(wish);
        }
        state.waits_since.get_or_insert_with(Instant::now);
        self.shared.1.notify_all();
    }

    /// Takes what came since the last time.
    pub fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut lock(&self.shared.0).seen)
    }

    /// Whether it was asked and will answer, or has answered and nobody has heard it.
    pub fn is_asked(&self) -> bool {
        let state = lock(&self.shared.0);
        let waits = state.waits_since.is_some_and(|since| since.elapsed() <= SILENT);
        waits || !state.seen.is_empty()
    }

    /// Whether it was asked and does not answer.
    pub fn is_silent(&self) -> bool {
        lock(&self.shared.0).waits_since.is_some_and(|since| since.elapsed() > SILENT)
    }
}

impl Drop for Looker {
    fn drop(&mut self) {
        // The thread is not waited for: the device may never answer it.
        lock(&self.shared.0).is_over = true;
        self.shared.1.notify_all();
    }
}

fn ask_again_and_again(
    (shared, poked): &(Mutex<State>, Condvar),
    news: &OwnedFd,
    mut ask: impl FnMut(Wish) -> Seen,
) {
    let mut state = lock(shared);
    loop {
        let wish = loop {
            if state.is_over {
                return;
            }
            let left = state.answered_at.map_or(EVERY, |at| EVERY.saturating_sub(at.elapsed()));
            match state.wish.take() {
                Some(wish) => break wish,
                None if left.is_zero() => break Wish::Look,
                None => state = poked.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            }
        };
        state.waits_since.get_or_insert_with(Instant::now);
        drop(state);
        let seen = ask(wish);
        state = lock(shared);
        state.answered_at = Some(Instant::now());
        // What was wished meanwhile is answered next.
        state.waits_since = state.wish.map(|_| Instant::now());
        let is_claim = |seen: &Seen| matches!(seen, Seen::Claimed(_));
        state.seen.retain(|old| is_claim(old) != is_claim(&seen));
        state.seen.push(seen);
        poked.notify_all();
        // It can only be full, and then it is readable.
        let _ = rustix::io::write(news, &1u64.to_ne_bytes());
    }
}

/// Which device or file it was, and how, when all that is looked at was blank: who reads that every time
/// keeps a disk busy that nobody uses.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Blank {
    identity: Identity,
    size_bytes: u64,
    changed_at: Option<SystemTime>,
}

impl Blank {
    fn of(candidate: &Candidate) -> Option<Self> {
        let identity = device::identity(&candidate.path).ok()?;
        let changed_at = candidate.path.metadata().and_then(|found| found.modified()).ok();
        Some(Self { identity, size_bytes: candidate.size_bytes, changed_at })
    }
}

/// What its superblocks and its beginning say is on a device, if anything. Nobody confirms that it is taken,
/// so of block devices, too, whatever is on them counts.
fn known_content(candidate: &Candidate) -> Result<(), String> {
    match (candidate.superblock(), candidate.signature) {
        (Some(superblock), _) => Err(format!("it is of array {}", array_name(superblock))),
        (None, Some(signature)) => Err(format!("{signature} is on it")),
        (None, None) if candidate.looks_like_member => {
            Err("it holds a superblock that cannot be read; `wipe` it if nobody needs it".to_owned())
        }
        (None, None) => Ok(()),
    }
}

/// The size of a device that nothing is on, or what is on it.
fn blank_bytes(candidate: &Candidate) -> Result<u64, String> {
    known_content(candidate)?;
    match unknown_content(&candidate.path).map_err(|error| error.to_string())? {
        Some(what) => Err(format!("it {what}")),
        None => Ok(candidate.size_bytes),
    }
}

/// The same, without reading all of it again of a device that was blank and is the one that it was.
fn look(path: &Path, known: &mut Option<Blank>) -> Result<u64, String> {
    let candidate = look_at(path).map_err(|error| error.to_string())?;
    let now = Blank::of(&candidate);
    let is_known = now.is_some() && now == *known;
    *known = None;
    let bytes = if is_known {
        known_content(&candidate)?;
        candidate.size_bytes
    } else {
        blank_bytes(&candidate)?
    };
    *known = now;
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt as _;
    use std::sync::mpsc::channel;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    fn news() -> Arc<OwnedFd> {
        Arc::new(news_event().unwrap())
    }

    #[test]
    fn it_is_looked_at_at_once_and_locked_when_that_is_wished() {
        let free = |wish| match wish {
            Wish::Look => Seen::Looked(Ok(7), true),
            Wish::Claim => Seen::Claimed(Err("somebody has it".to_owned())),
        };
        let event = news();
        let looker = Looker::start_with(Arc::clone(&event), free).unwrap();
        looker.wait_until(soon());
        assert!(matches!(looker.take()[..], [Seen::Looked(Ok(7), true)]));
        assert!(looker.take().is_empty(), "it was taken");
        assert_eq!(rustix::io::read(&event, &mut [0; 8]), Ok(8));
        looker.refresh();
        looker.wait_until(soon());
        assert!(looker.take().is_empty(), "that was just now");
        looker.claim();
        looker.wait_until(soon());
        assert!(matches!(looker.take()[..], [Seen::Claimed(Err(_))]));
    }

    #[test]
    fn what_was_blank_is_read_again_when_it_has_changed_or_its_superblock_says_more() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(8 << 20).unwrap();
        let mut known = None;
        assert_eq!(look(file.path(), &mut known), Ok(8 << 20));
        let was = known;
        assert!(was.is_some());
        assert_eq!(look(file.path(), &mut known), Ok(8 << 20));
        assert!(known == was);
        file.as_file().write_all_at(b"something", 8 << 19).unwrap();
        // A clock of the file system may be coarse.
        file.as_file().set_modified(SystemTime::now() + Duration::from_secs(1)).unwrap();
        assert!(look(file.path(), &mut known).unwrap_err().contains("unknown kind"));
        assert!(known.is_none(), "it is read until it is blank");
        // Before it is taken, all of it is looked at, whatever is known.
        assert!(claim(file.path()).map(|_| ()).unwrap_err().contains("unknown kind"));
    }

    #[test]
    fn a_device_that_never_answers_holds_up_nobody() {
        let (sender, receiver) = channel::<()>();
        let (asked, is_asked) = channel();
        let silent = move |_| {
            asked.send(()).unwrap();
            let _ = receiver.recv();
            Seen::Looked(Ok(7), false)
        };
        let looker = Looker::start_with(news(), silent).unwrap();
        is_asked.recv().unwrap();
        looker.wait_until(Instant::now() + Duration::from_millis(1));
        looker.refresh();
        looker.claim();
        assert!(looker.take().is_empty());
        assert!(!looker.is_silent(), "it has some time");
        lock(&looker.shared.0).waits_since = Instant::now().checked_sub(2 * SILENT);
        assert!(looker.is_silent());
        drop(looker);
        drop(sender);
    }
}
