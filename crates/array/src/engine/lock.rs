//! Stripe locks: whole-chunk writes share a stripe, everything that must see it hold still has it alone.
//!
//! Waiters are granted in order of arrival; a sharer that comes after a waiter waits too, so nobody starves.
//!
//! Schemes that write in place change a stripe as a whole: all chunks of one request in one stripe are one
//! unit. Its first chunk takes the lock for all, the others are [`Mode::Joined`] and stay right behind it in
//! every queue.
//!
//! The page of the table that speaks of a stripe is in memory as long as anybody holds the stripe or waits
//! for it. While it is being brought in, nobody gets the stripe: all wait for it as if somebody held it.

use super::Work;
use crate::hash::StripeMap;
use crate::scheme::ChunkWrite;
use block::StripeId;
use std::collections::VecDeque;

#[derive(Default)]
struct Lock {
    shared: u32,
    exclusive: bool,
    /// Its page is not in memory yet.
    lacks_page: bool,
    waiters: VecDeque<Pending>,
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
    pub work: Work,
}

impl Pending {
    pub(super) fn of_write(write: ChunkWrite, mode: Mode) -> Self {
        Self { mode, work: Work::Write(write) }
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
    spare: Vec<Lock>,
}

impl Locks {
    /// Grants the lock now, or not at all.
    pub(super) fn try_lock(&mut self, stripe: StripeId, mode: Mode) -> bool {
        let spare = &mut self.spare;
        let lock = self.stripes.entry(stripe.get()).or_insert_with(|| spare.pop().unwrap_or_default());
        let free = lock.waiters.is_empty() && lock.grant(mode);
        if !free && lock.is_idle() {
            self.stripes.remove(&stripe.get());
        }
        free
    }

    /// Whether anybody holds a stripe.
    pub(super) fn is_held(&self, stripe: StripeId) -> bool {
        self.stripes.contains_key(&stripe.get())
    }

    /// Nobody gets a stripe that nobody holds before [`Locks::page_came`].
    pub(super) fn await_page(&mut self, stripe: StripeId) {
        let spare = &mut self.spare;
        let lock = self.stripes.entry(stripe.get()).or_insert_with(|| spare.pop().unwrap_or_default());
        debug_assert!(lock.is_idle(), "whoever holds a stripe has its page");
        lock.lacks_page = true;
    }

    /// The page of a stripe is in memory: waiters that may run now are moved to `granted`. `true` if there
    /// was nobody.
    pub(super) fn page_came(&mut self, stripe: StripeId, granted: &mut VecDeque<Pending>) -> bool {
        let lock = self.stripes.get_mut(&stripe.get()).expect("a stripe that lacks its page is in the table");
        lock.lacks_page = false;
        self.pass_on(stripe, granted)
    }

    /// Queues work that [`Locks::try_lock`] did not grant.
    pub(super) fn wait(&mut self, stripe: StripeId, pending: Pending) {
        self.stripes
            .get_mut(&stripe.get())
            .expect("a lock that was refused is held")
            .waiters
            .push_back(pending);
    }

    /// Takes work out of the queue for a stripe that somebody holds.
    pub(super) fn forget(&mut self, stripe: StripeId, unwanted: impl Fn(&Pending) -> bool) {
        if let Some(lock) = self.stripes.get_mut(&stripe.get()) {
            lock.waiters.retain(|pending| !unwanted(pending));
        }
    }

    /// Whether nobody holds anything.
    pub(super) fn is_empty(&self) -> bool {
        self.stripes.is_empty()
    }

    /// Gives a lock back; waiters that may run now, their locks granted, are moved to `granted`. `true` if
    /// nobody has the stripe any more.
    pub(super) fn unlock(&mut self, stripe: StripeId, mode: Mode, granted: &mut VecDeque<Pending>) -> bool {
        let lock = self.stripes.get_mut(&stripe.get()).expect("a held lock is in the table");
        match mode {
            Mode::Shared => lock.shared = lock.shared.checked_sub(1).expect("sharers are counted"),
            Mode::Exclusive => assert!(std::mem::replace(&mut lock.exclusive, false), "held exclusively"),
            Mode::Joined => unreachable!("the first of a unit gives the lock back"),
        }
        self.pass_on(stripe, granted)
    }

    /// Grants a stripe to those who may have it next; `true` if there is nobody.
    fn pass_on(&mut self, stripe: StripeId, granted: &mut VecDeque<Pending>) -> bool {
        let lock = self.stripes.get_mut(&stripe.get()).expect("a held lock is in the table");
        while let Some(next) = lock.waiters.front() {
            let mode = next.mode;
            if !lock.grant(mode) {
                break;
            }
            granted.extend(lock.waiters.pop_front());
            while lock.waiters.front().is_some_and(|next| next.mode == Mode::Joined) {
                granted.extend(lock.waiters.pop_front());
            }
        }
        let is_idle = lock.is_idle();
        if is_idle {
            let lock = self.stripes.remove(&stripe.get()).expect("just looked up");
            self.spare.push(lock);
        }
        is_idle
    }
}

impl Lock {
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

    fn is_idle(&self) -> bool {
        self.shared == 0 && !self.exclusive && !self.lacks_page && self.waiters.is_empty()
    }
}
