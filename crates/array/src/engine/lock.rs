//! Stripe locks: whole-chunk writes share a stripe, everything that must see it hold still has it alone.
//!
//! Waiters are granted in order of arrival; a sharer that comes after a waiter waits too, so nobody starves.
//!
//! Schemes that write in place change a stripe as a whole: all chunks of one request in one stripe are one
//! unit. Its first chunk takes the lock for all, the others are [`Mode::Joined`] and stay right behind it in
//! every queue. The same goes for the chunks of a write that must not be torn, whatever the scheme
//! (`untorn.rs`).
//!
//! The page of the table that speaks of a stripe is in memory as long as anybody holds the stripe or waits
//! for it. While it is being brought in, nobody gets the stripe: all wait for it as if somebody held it.

use super::Work;
use crate::hash::StripeMap;
use crate::scheme::ChunkWrite;
use block::StripeId;
use block::slab::{Key, Slab};
use std::collections::VecDeque;
use std::collections::hash_map::Entry;

/// Who waits for a stripe, the first one first.
type Waiters = VecDeque<Pending>;

/// Hardly ever does anybody wait, so that is kept elsewhere: every chunk write makes a lock and drops it.
#[derive(Clone, Copy, Default)]
struct Lock {
    shared: u32,
    exclusive: bool,
    /// Its page is not in memory yet.
    lacks_page: bool,
    /// `None`: nobody waits.
    waiters: Option<Key<Waiters>>,
}

/// How a stripe is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// Beside other sharers.
    Shared,
    /// Alone.
    Exclusive,
    /// Together with the exclusive holder that is the entry before this one in its queue.
    Joined,
}

/// Work that waits for a stripe, or has it and waits for its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pending {
    pub mode: Mode,
    /// Of the first of a bundle: how many stripes behind the bundle's first one the stripe is that it waits
    /// for, or was granted. It holds those before that.
    pub beyond: u16,
    pub work: Work,
}

impl Pending {
    pub(super) fn new(mode: Mode, work: Work) -> Self {
        Self { mode, beyond: 0, work }
    }

    pub(super) fn of_write(write: ChunkWrite, mode: Mode) -> Self {
        Self::new(mode, Work::Write(write))
    }

    /// Whether it is the first write of a bundle.
    #[inline]
    pub(super) fn leads_bundle(&self) -> bool {
        matches!(self.work, Work::Write(write) if write.order > 0) && self.mode != Mode::Joined
    }

    /// The chunk write, if it is one.
    pub(super) fn write(&self) -> Option<&ChunkWrite> {
        match &self.work {
            Work::Write(write) => Some(write),
            Work::Read { .. } | Work::Zero { .. } | Work::Commit(_) | Work::Maintain(_) => None,
        }
    }
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Locks {
    stripes: StripeMap<Lock>,
    waiters: Slab<Waiters>,
}

impl Locks {
    /// Grants the lock now, or not at all.
    #[inline]
    pub(super) fn try_lock(&mut self, stripe: StripeId, mode: Mode) -> bool {
        let lock = self.stripes.entry(stripe.get()).or_default();
        // A lock that was just made grants everything.
        lock.waiters.is_none() && lock.grant(mode)
    }

    /// Whether anybody holds a stripe.
    pub(super) fn is_held(&self, stripe: StripeId) -> bool {
        self.stripes.contains_key(&stripe.get())
    }

    /// Nobody gets a stripe that nobody holds before [`Locks::page_came`].
    pub(super) fn await_page(&mut self, stripe: StripeId) {
        let lock = self.stripes.entry(stripe.get()).or_default();
        debug_assert!(lock.is_idle(), "whoever holds a stripe has its page");
        lock.lacks_page = true;
    }

    /// The page of a stripe is in memory: waiters that may run now are moved to `granted`. `true` if there
    /// was nobody.
    pub(super) fn page_came(&mut self, stripe: StripeId, granted: &mut VecDeque<Pending>) -> bool {
        let Entry::Occupied(mut lock) = self.stripes.entry(stripe.get()) else {
            unreachable!("a stripe that lacks its page is in the table")
        };
        lock.get_mut().lacks_page = false;
        pass_on(lock.get_mut(), &mut self.waiters, granted);
        let is_idle = lock.get().is_idle();
        if is_idle {
            lock.remove();
        }
        is_idle
    }

    /// Queues work that [`Locks::try_lock`] did not grant.
    pub(super) fn wait(&mut self, stripe: StripeId, pending: Pending) {
        let lock = self.stripes.get_mut(&stripe.get()).expect("a lock that was refused is held");
        let waiters = *lock.waiters.get_or_insert_with(|| self.waiters.reuse(Waiters::new));
        self.waiters[waiters].push_back(pending);
    }

    /// Takes work out of the queue for a stripe that somebody holds.
    pub(super) fn forget(&mut self, stripe: StripeId, unwanted: impl Fn(&Pending) -> bool) {
        let Some(lock) = self.stripes.get_mut(&stripe.get()) else { return };
        let Some(waiters) = lock.waiters else { return };
        self.waiters[waiters].retain(|pending| !unwanted(pending));
        if self.waiters[waiters].is_empty() {
            lock.waiters = None;
            self.waiters.release(waiters);
        }
    }

    /// Whether nobody holds anything.
    pub(super) fn is_empty(&self) -> bool {
        self.stripes.is_empty()
    }

    /// Gives a lock back; waiters that may run now, their locks granted, are moved to `granted`. `true` if
    /// nobody has the stripe any more.
    #[inline]
    pub(super) fn unlock(&mut self, stripe: StripeId, mode: Mode, granted: &mut VecDeque<Pending>) -> bool {
        let Entry::Occupied(mut entry) = self.stripes.entry(stripe.get()) else {
            unreachable!("a held lock is in the table")
        };
        let lock = entry.get_mut();
        match mode {
            Mode::Shared => lock.shared = lock.shared.checked_sub(1).expect("sharers are counted"),
            Mode::Exclusive => assert!(std::mem::replace(&mut lock.exclusive, false), "held exclusively"),
            Mode::Joined => unreachable!("the first of a unit gives the lock back"),
        }
        if lock.waiters.is_some() {
            pass_on(lock, &mut self.waiters, granted);
        }
        let is_idle = lock.is_idle();
        if is_idle {
            entry.remove();
        }
        is_idle
    }
}

/// Grants a stripe to those who may have it next.
#[cold]
fn pass_on(lock: &mut Lock, queues: &mut Slab<Waiters>, granted: &mut VecDeque<Pending>) {
    let Some(key) = lock.waiters else { return };
    let waiters = &mut queues[key];
    while let Some(next) = waiters.front() {
        if !lock.grant(next.mode) {
            break;
        }
        granted.extend(waiters.pop_front());
        while waiters.front().is_some_and(|next| next.mode == Mode::Joined) {
            granted.extend(waiters.pop_front());
        }
    }
    if waiters.is_empty() {
        lock.waiters = None;
        queues.release(key);
    }
}

impl Lock {
    #[inline]
    fn grant(&mut self, mode: Mode) -> bool {
        match mode {
            Mode::Shared | Mode::Exclusive if self.lacks_page => return false,
            Mode::Shared if !self.exclusive => self.shared += 1,
            Mode::Exclusive if !self.exclusive && self.shared == 0 => self.exclusive = true,
            Mode::Shared | Mode::Exclusive => return false,
            Mode::Joined => unreachable!("only the first of a unit takes the lock"),
        }
        true
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.shared == 0 && !self.exclusive && !self.lacks_page && self.waiters.is_none()
    }
}
