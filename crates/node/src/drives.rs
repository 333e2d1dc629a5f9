//! Asks the drives below members and spares how worn they are, on a thread of its own: a drive answers when
//! it likes, or never, and nobody waits for that. What was answered last stays until it answers again.

use crate::status::{Asked, Status};
pub use device::wear::Warning;
use device::wear::{Drive, NotOffered, wear_of};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often drives are asked, unless somebody wants to know.
const EVERY: Duration = Duration::from_secs(600);
/// Who wants to know has them asked again when they were not within this time.
const FRESH: Duration = Duration::from_secs(60);

/// What the thread and its owner share.
#[derive(Default)]
struct Shared {
    /// Devices to ask of.
    wanted: Vec<PathBuf>,
    /// What came of it.
    answers: BTreeMap<PathBuf, Asked>,
    /// When they were last asked; `None`: at once.
    asked_at: Option<Instant>,
    is_over: bool,
}

/// See the module's documentation.
pub struct Drives {
    shared: Arc<(Mutex<Shared>, Condvar)>,
    /// Readable when there are answers.
    event: Arc<OwnedFd>,
}

/// A thread that ended in a bug has left nothing half done.
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drives {
    /// Asks nobody yet.
    pub fn start() -> io::Result<Self> {
        Self::start_with(wear_of)
    }

    /// The same with something else that answers for drives.
    fn start_with(ask: impl Fn(&Path) -> Result<Drive, NotOffered> + Send + 'static) -> io::Result<Self> {
        let event = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let shared = Arc::new((Mutex::new(Shared::default()), Condvar::new()));
        let (own, signal) = (Arc::clone(&shared), Arc::clone(&event));
        let work = move || ask_again_and_again(&own, &signal, ask);
        std::thread::Builder::new().name("drives".to_owned()).spawn(work)?;
        Ok(Self { shared, event })
    }

    /// These are the devices from now on. New ones are asked at once.
    pub fn want(&self, wanted: Vec<PathBuf>) {
        let mut shared = lock(&self.shared.0);
        if shared.wanted != wanted {
            shared.answers.retain(|path, _| wanted.contains(path));
            (shared.wanted, shared.asked_at) = (wanted, None);
            self.shared.1.notify_one();
        }
    }

    /// Somebody wants to know: has them asked again, if that was some time ago.
    pub fn refresh(&self) {
        let mut shared = lock(&self.shared.0);
        if shared.asked_at.is_some_and(|at| at.elapsed() > FRESH) {
            shared.asked_at = None;
            self.shared.1.notify_one();
        }
    }

    /// What is readable when there are answers.
    pub fn news_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Takes note that there are.
    pub fn take_news(&self) {
        // Nothing may have come.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
    }

    /// All answers.
    pub fn answers(&self) -> BTreeMap<PathBuf, Asked> {
        lock(&self.shared.0).answers.clone()
    }

    /// Puts into a status what the drives said last.
    pub fn tell(&self, status: &mut Status) {
        let shared = lock(&self.shared.0);
        for device in &mut status.devices {
            let Some(path) = device.path.as_ref() else { continue };
            let answer = match shared.answers.get(path) {
                Some(answer) => answer.clone(),
                None if shared.wanted.contains(path) => {
                    Asked::NotOffered("it was asked and has not answered yet".to_owned())
                }
                // Files are in nobody's hands alone, and nobody asks a device that is out of service.
                None if device.errors.is_some() && device.state.is_out() => {
                    Asked::NotOffered("it is out of service".to_owned())
                }
                None => Asked::NotOffered(NotOffered::File.to_string()),
            };
            device.set_wear(answer);
        }
    }
}

impl Drop for Drives {
    fn drop(&mut self) {
        // The thread is not waited for: a drive may never answer it.
        lock(&self.shared.0).is_over = true;
        self.shared.1.notify_one();
    }
}

fn ask_again_and_again(
    (shared, poked): &(Mutex<Shared>, Condvar),
    event: &OwnedFd,
    ask: impl Fn(&Path) -> Result<Drive, NotOffered>,
) {
    loop {
        let wanted = {
            let mut state = lock(shared);
            loop {
                if state.is_over {
                    return;
                }
                let left = state.asked_at.map_or(Duration::ZERO, |at| EVERY.saturating_sub(at.elapsed()));
                if left.is_zero() && !state.wanted.is_empty() {
                    break;
                }
                let nothing_to_do = if state.wanted.is_empty() { EVERY } else { left };
                let woken = poked.wait_timeout(state, nothing_to_do);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
            state.asked_at = Some(Instant::now());
            state.wanted.clone()
        };
        for path in wanted {
            let answer = Asked::of(ask(&path), now_unix_s());
            let mut state = lock(shared);
            if state.is_over {
                return;
            }
            if state.wanted.contains(&path) {
                state.answers.insert(path, answer);
            }
        }
        // It can only be full, and then it is readable.
        let _ = rustix::io::write(event, &1u64.to_ne_bytes());
    }
}

/// Asks the drives below the devices of an array that nobody serves, and waits for the answers.
pub fn ask_now(status: &mut Status) {
    for device in &mut status.devices {
        if let Some(path) = device.path.clone() {
            device.set_wear(Asked::of(wear_of(&path), now_unix_s()));
        }
    }
}

fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use device::wear::Wear;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::sync::mpsc::channel;

    fn wait_for_news(drives: &Drives) {
        let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
        let news = drives.news_fd();
        assert_eq!(poll(&mut [PollFd::new(&news, PollFlags::IN)], Some(&limit)), Ok(1), "no news");
        drives.take_news();
    }

    fn drive(used: u8) -> Drive {
        let wear = Wear { used_percent: Some(used), warnings: vec![Warning::SpareLow], ..Wear::default() };
        Drive { path: PathBuf::from("/dev/nvme0n1"), wear }
    }

    #[test]
    fn answers_come_by_the_event_and_stay_while_the_device_is_wanted() {
        let answer = |path: &Path| match path.to_str() {
            Some("/dev/a") => Ok(drive(12)),
            _ => Err(NotOffered::NoDrive { what: "loop1".to_owned() }),
        };
        let drives = Drives::start_with(answer).unwrap();
        drives.want(vec![PathBuf::from("/dev/a"), PathBuf::from("/dev/b")]);
        wait_for_news(&drives);
        let answers = drives.answers();
        let Asked::Told(wear) = &answers[Path::new("/dev/a")] else { panic!("{answers:?}") };
        assert_eq!((wear.used_percent, wear.warnings.as_slice()), (Some(12), &["spare-low".to_owned()][..]));
        let why = "loop1 is not a drive that can be asked: NVMe and SATA can".to_owned();
        assert_eq!(answers[Path::new("/dev/b")], Asked::NotOffered(why));
        drives.want(vec![PathBuf::from("/dev/b")]);
        wait_for_news(&drives);
        assert!(!drives.answers().contains_key(Path::new("/dev/a")));
    }

    #[test]
    fn a_drive_that_never_answers_holds_up_nobody() {
        let (sender, receiver) = channel::<()>();
        let (asked, is_asked) = channel();
        let answer = move |_: &Path| {
            asked.send(()).unwrap();
            let _ = receiver.recv();
            Ok(drive(1))
        };
        let drives = Drives::start_with(answer).unwrap();
        drives.want(vec![PathBuf::from("/dev/a")]);
        is_asked.recv().unwrap();
        assert!(drives.answers().is_empty());
        drives.refresh();
        drop(drives);
        drop(sender);
    }
}
