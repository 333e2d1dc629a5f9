//! An engine goes on where another one of the same array stopped, for the same callers: the array has grown
//! meanwhile, or was assembled anew.
//!
//! What is on the members it knows from there. What it inherits is the rest: the time, figures, events that
//! nobody has taken, and the pool, since callers hold slots of it, with what they have put in.

use super::{Engine, SetAside};

impl Engine {
    /// Goes on where `before` stopped, which is at rest ([`Engine::is_idle`]) and stopped in order or given
    /// up. This one was assembled afterwards and has done nothing yet. Slots that callers have taken of the
    /// pool of `before` are theirs still, and are given back here.
    pub(crate) fn inherit(&mut self, mut before: Engine) {
        before.give_buffers();
        let own = self.core.pool.slot_count() - self.core.pool.free_count();
        self.give_buffers();
        let wanted = self.core.pool.slot_count();
        std::mem::swap(&mut self.core.pool, &mut before.core.pool);
        let lent = self.core.pool.slot_count() - self.core.pool.free_count();
        self.core.pool.enlarge(wanted.max(lent + own));
        self.take_buffers();
        self.set_now(before.core.now_ns);
        let (core, old) = (&mut self.core, before.core);
        core.stats = old.stats;
        core.board.members.unix_base_s = old.board.members.unix_base_s;
        core.board.members.told_ns = old.board.members.told_ns;
        core.board.commit.is_paused = old.board.commit.is_paused;
        core.board.last_request_ns = old.board.last_request_ns;
        core.answers.events.come_after(old.answers.events);
        core.answers.done.splice(..0, old.answers.done);
        self.activities.patrol.inherit(&before.activities.patrol);
        self.activities.maintenance.inherit(&before.activities.maintenance);
    }

    /// Gives back all buffers that are its own. It is at rest, and does nothing until it has taken them
    /// again.
    fn give_buffers(&mut self) {
        assert!(self.is_idle() && self.core.cache.is_empty(), "what is under way has buffers");
        let Self { core, activities, .. } = self;
        core.set_aside.give_back(&mut core.pool);
        core.scheme.give_buffers(&mut core.pool);
        core.give_page_buffers();
        activities.patrol.give_buffers(&mut core.pool);
    }

    fn take_buffers(&mut self) {
        let Self { core, activities, .. } = self;
        core.set_aside = SetAside::new(core.set_aside.slots_max, &mut core.pool);
        core.scheme.take_buffers(&core.store, &mut core.pool);
        core.set_aside.fill(&mut core.pool);
        core.prepare_pages();
        activities.patrol.take_buffers(&mut core.pool);
    }
}
