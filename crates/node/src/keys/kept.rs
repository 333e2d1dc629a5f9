//! A store on a volume, as one thing that is driven.

use super::ferry::Ferry;
use front::Volume;
use kv::Store;
use kv::ask::{Ask, Figures, Keys, Told};
use kv::blocks::Ended;
use resp::Driven;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Rounds between store and volume in one go, so that sockets get their share while a memory-fast volume
/// always has news.
const ROUNDS_MAX: usize = 32;

/// See the module's documentation.
pub struct KeptKeys<V> {
    store: Store,
    ferry: Ferry<V>,
    ended: Vec<Ended>,
    now_ms: u64,
}

/// The time in milliseconds since 1970.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl<V: Volume> KeptKeys<V> {
    /// A store that was opened on a volume.
    pub fn new(store: Store, ferry: Ferry<V>) -> Self {
        Self { store, ferry, ended: Vec::new(), now_ms: now_ms() }
    }

    /// The volume, to be looked after.
    pub fn volume_mut(&mut self) -> &mut V {
        self.ferry.volume_mut()
    }

    /// Stops the store in order, for so long at most; the volume, and whether it came to that.
    pub fn stop(mut self, patience: Duration) -> (V, bool) {
        self.store.stop();
        let until = Instant::now() + patience;
        let mut nobody = Vec::new();
        loop {
            self.drive(now_ms(), &mut nobody);
            if self.store.is_stopped() && self.ferry.orders_open() == 0 {
                return (self.ferry.into_volume(), true);
            }
            if Instant::now() >= until {
                return (self.ferry.into_volume(), false);
            }
            if self.idle_for() != Some(0) {
                self.ferry.sleep();
            }
        }
    }
}

impl<V: Volume> Keys for KeptKeys<V> {
    fn start(&mut self, tag: u64, ask: Ask) {
        self.store.start(tag, ask);
    }

    fn forget(&mut self, tags: &[u64]) {
        self.store.forget(tags);
    }

    fn drive(&mut self, now_ms: u64, told: &mut Vec<Told>) {
        self.now_ms = now_ms;
        for _ in 0..ROUNDS_MAX {
            self.store.drive(now_ms, told);
            while let Some(issued) = self.store.next_request() {
                self.ferry.start(issued);
            }
            self.ferry.drive(&mut self.ended);
            if self.ended.is_empty() && !self.store.wants_drive() {
                break;
            }
            self.ended.drain(..).for_each(|ended| self.store.ended(ended));
        }
    }

    fn figures(&self) -> Figures {
        self.store.figures()
    }
}

impl<V: Volume> Driven for KeptKeys<V> {
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.ferry.volume().wake_fd()
    }

    fn idle_for(&self) -> Option<u64> {
        if self.store.wants_drive() {
            return Some(0);
        }
        let due_ms = self.store.deadline_ms().map(|at_ms| at_ms.saturating_sub(self.now_ms));
        let due_ns = due_ms.map(|ms| ms.saturating_mul(1_000_000));
        due_ns.into_iter().chain(self.ferry.idle_for()).min()
    }
}
