//! Units of rebuild and scrub: the plans for some stripes or log stripes, and what becomes of them.

use super::{Maintenance, WorkKind};
use crate::engine::job::Job;
use crate::engine::lock::{Mode, Pending};
use crate::engine::{Core, JobOwner, Work};
use crate::plan::{Codeword, Compute, CrcAt, Piece, Plan, PlanRead, PlanWrite, Word};
use crate::planted::{Planted, planted};
use crate::scheme::{Located, implied_zero};
use block::slab::Key;
use block::{Slot, Stream, StripeId};

/// Pages that are asked for ahead of the stripes being looked at.
const PAGES_AHEAD: u64 = 8;

impl Core {
    /// Whether there are buffers for one more stripe, whatever has to be read for it.
    fn has_room_for_stripe(&self) -> bool {
        self.pool.free_count() >= crate::store::unit_slots(self.store.config.geometry)
    }

    /// Whether a piece is to be on a replacement and is not there yet.
    pub(super) fn lacks(&self, piece: &Piece) -> bool {
        self.health.is_rebuilding(piece.addr.dev) && !self.health.is_readable(piece.addr)
    }

    /// Writes zeros where the replacement must hold some although no code word says so.
    fn plan_implied_zeros(&self, stripe: StripeId, plan: &mut Plan) {
        for column in 0..self.store.main_count() {
            let dev = self.store.layout.device(stripe, column);
            if self.health.is_rebuilding(dev)
                && let Some(addr) = implied_zero(&self.store, stripe, column)
                && !self.health.is_readable(addr)
                && plan.writes.iter().all(|write| write.addr != addr)
            {
                let (slot, stream) = (self.set_aside.zero_slot, Stream::Data);
                plan.writes.push(PlanWrite { addr, slot, stream, crc_at: CrcAt::Nowhere });
            }
        }
    }

    /// Reads every piece that can be read and compares the parity with what the code says.
    fn plan_scrub(&mut self, word: Word, pieces: &Codeword, plan: &mut Plan) {
        let first = plan.reads.len();
        // Addends of a sum are not compared: see `plan_settling`.
        let whole = |piece: &Piece| !pieces.is_sum(piece.index);
        for piece in &pieces.pieces {
            if self.health.is_readable(piece.addr) && whole(piece) {
                plan.read_piece(&self.store, &mut self.pool, word, piece);
            }
        }
        let reads = &plan.reads[first..];
        let width = self.store.code.width_max();
        let whole = reads.iter().filter(|read| read.index < width).count() == pieces.data_count;
        let parities: Vec<(usize, Slot)> = reads
            .iter()
            .filter(|read| read.index >= width)
            .map(|read| (read.index - width, read.slot))
            .collect();
        if !whole || parities.is_empty() {
            return;
        }
        let (columns, inputs) = (plan.columns.len(), plan.slots.len());
        for read in reads.iter().filter(|read| read.index < width) {
            plan.columns.push(read.index);
            plan.slots.push(read.slot);
        }
        let (columns, inputs) = (columns..plan.columns.len(), inputs..plan.slots.len());
        let outputs = plan.slots.len();
        for _ in 0..self.store.config.geometry.parity_count() {
            let slot = plan.own_slot(&mut self.pool);
            plan.slots.push(slot);
        }
        plan.compares.extend(parities.iter().map(|&(row, slot)| (plan.slots[outputs + row], slot)));
        plan.computes.push(Compute::Encode { columns, inputs, outputs: outputs..plan.slots.len() });
    }
}

impl Maintenance {
    /// Starts the next unit of the present phase; `false` if there is none or it cannot start now.
    pub(super) fn start_unit(&mut self, core: &mut Core) -> bool {
        let kind = self.run_mut().kind;
        let key = core.take_job(JobOwner::Maintenance);
        let mut plan = core.lend_plan(key);
        let mut looked_at = 0;
        for _ in 0..core.options.unit_stripes {
            if self.awaits_page(core) {
                break;
            }
            let full = plan.records.len() as u64 >= core.store.in_place_stripes_max();
            if full || !core.has_room_for_stripe() {
                break;
            }
            match self.next_target(core) {
                Some(Word::Stripe(stripe)) if !self.plan_stripe_unit(core, kind, stripe, &mut plan) => break,
                Some(Word::Stripe(_)) => {}
                Some(word @ (Word::Log(_) | Word::Row(_))) => {
                    self.take_over(core, kind, word);
                    self.plan_word_unit(core, kind, word, &mut plan)
                }
                None => break,
            }
            looked_at += 1;
            if !self.run_mut().again.is_empty() || self.run_mut().is_draining() {
                break;
            }
        }
        self.run_mut().progress.done += looked_at;
        let started = self.start_planned_unit(core, key, plan);
        if !started {
            self.passed += looked_at;
            self.pace.pass(looked_at);
        }
        started || looked_at > 0
    }

    /// Whether a stripe waits for its page. The next ones most likely lack the same: they come together, when
    /// it is there.
    fn awaits_page(&mut self, core: &Core) -> bool {
        self.run_mut().awaited.iter().any(|&stripe| core.store.table.lacks(stripe))
    }

    /// Starts a unit's job, or gives it back if there is nothing to do in it.
    fn start_planned_unit(&mut self, core: &mut Core, key: Key<Job>, mut plan: Plan) -> bool {
        if plan.reads.is_empty() && plan.writes.is_empty() {
            core.return_plan(key, plan);
            core.give_job(key);
            return false;
        }
        if core.options.sort_units {
            plan.reads.sort_unstable_by_key(|read| read.addr);
            plan.writes.sort_unstable_by_key(|write| write.addr);
        }
        let chunk = core.store.config.geometry.chunk_bytes() as u64;
        let run = self.run_mut();
        run.progress.rebuilt_bytes += plan.writes.len() as u64 * chunk;
        run.units += 1;
        core.return_plan(key, plan);
        core.start_job(key);
        while let Some(key) = core.take_ended(JobOwner::Maintenance) {
            self.job_ended(core, key);
        }
        true
    }

    /// `false` if the stripe is busy: it is looked at later, not again and again in this turn.
    fn plan_stripe_unit(
        &mut self,
        core: &mut Core,
        kind: WorkKind,
        stripe: StripeId,
        plan: &mut Plan,
    ) -> bool {
        if !core.try_lock(stripe, Mode::Exclusive) {
            core.locks.wait(stripe, Pending::new(Mode::Exclusive, Work::Maintain(stripe)));
            self.run_mut().awaited.push(stripe);
            read_ahead(core, stripe);
            return false;
        }
        self.plan_locked_stripe(core, kind, stripe, plan);
        true
    }

    fn plan_locked_stripe(&mut self, core: &mut Core, kind: WorkKind, stripe: StripeId, plan: &mut Plan) {
        let (reads, writes) = (plan.reads.len(), plan.writes.len());
        self.take_over(core, kind, Word::Stripe(stripe));
        if !self.plan_settling(core, kind, stripe, plan) {
            self.plan_word_unit(core, kind, Word::Stripe(stripe), plan);
        }
        if kind == WorkKind::Rebuild {
            core.plan_implied_zeros(stripe, plan);
        }
        // Not left to the pass over log stripes: a commit in between would dissolve them, and this stripe is
        // done then. Scrub can leave it: a commit reads and verifies what it dissolves.
        if kind == WorkKind::Rebuild && core.scheme.is_dirty(stripe) {
            self.plan_log_words_of(core, stripe, plan);
        }
        if plan.reads.len() == reads && plan.writes.len() == writes {
            core.unlock(stripe, Mode::Exclusive);
        } else {
            plan.stripes.push(stripe);
        }
    }

    /// What a restart left of a rebuild is not rebuilt.
    fn take_over(&mut self, core: &mut Core, kind: WorkKind, word: Word) {
        let took = kind == WorkKind::Rebuild && core.take_over(word, &mut self.word);
        self.run_mut().progress.kept += u64::from(took);
    }

    /// A dirty stripe whose parity is in sums is committed on the way, by scrub, and by rebuild if it lacks
    /// anything: with all its data read, nothing of it is left to look at. `false` if the stripe is to be
    /// looked at as it is.
    fn plan_settling(&mut self, core: &mut Core, kind: WorkKind, stripe: StripeId, plan: &mut Plan) -> bool {
        if !core.scheme.is_dirty(stripe) || !core.accepts_writes() {
            return false;
        }
        let mut word = std::mem::take(&mut self.word);
        core.scheme.codeword(&core.store, Word::Stripe(stripe), &mut word);
        let wanted = match kind {
            WorkKind::Scrub => true,
            WorkKind::Rebuild => word.pieces.iter().any(|piece| core.lacks(piece)),
        };
        self.word = word;
        let first = plan.reads.len();
        let Some(commits) = core.scheme.commits_mut().filter(|_| wanted) else { return false };
        if !commits.plan_settle(&mut core.store, &mut core.pool, stripe, plan) {
            return false;
        }
        for index in first..plan.reads.len() {
            let PlanRead { addr, crc, index, slot, stream, .. } = plan.reads[index];
            if core.lacks(&Piece { index, addr, crc }) {
                plan.writes.push(PlanWrite { addr, slot, stream, crc_at: CrcAt::Known(crc) });
            }
        }
        true
    }

    /// The log stripes that hold the newest versions of a dirty stripe's lost columns, each once in a unit.
    fn plan_log_words_of(&mut self, core: &mut Core, stripe: StripeId, plan: &mut Plan) {
        let geometry = core.store.config.geometry;
        for column in 0..geometry.data_count() {
            if let Located::At { piece, word: word @ Word::Log(_) } =
                core.scheme.locate(&core.store, geometry.lcn_at(stripe, column))
                && !core.health.is_readable(piece.addr)
                && !plan.reads.iter().any(|read| read.word == word)
            {
                self.plan_word_unit(core, WorkKind::Rebuild, word, plan);
            }
        }
    }

    fn plan_word_unit(&mut self, core: &mut Core, kind: WorkKind, word: Word, plan: &mut Plan) {
        let mut pieces = std::mem::take(&mut self.word);
        core.scheme.codeword(&core.store, word, &mut pieces);
        let skip =
            planted(Planted::RebuildSkipsLog) && kind == WorkKind::Rebuild && matches!(word, Word::Log(_));
        if pieces.data_count > 0 && !skip {
            match word {
                Word::Stripe(_) => {}
                Word::Log(_) | Word::Row(_) => plan.log_words.push((word, pieces.clone())),
            }
            match kind {
                WorkKind::Rebuild => self.plan_rebuild(core, word, &pieces, plan),
                WorkKind::Scrub => core.plan_scrub(word, &pieces, plan),
            }
        }
        self.word = pieces;
    }

    /// Reads as many pieces as the word has data, rebuilds the missing ones at once and writes them.
    fn plan_rebuild(&mut self, core: &mut Core, word: Word, pieces: &Codeword, plan: &mut Plan) {
        if !pieces.pieces.iter().any(|piece| core.lacks(piece)) {
            return;
        }
        if pieces.has_sums() {
            // Only while the array takes no writes; the rebuild does not end then.
            return self.note_lost_word(core, word);
        }
        let readable = pieces.pieces.iter().filter(|piece| core.health.is_readable(piece.addr)).count();
        if readable < pieces.data_count {
            return self.note_lost_word(core, word);
        }
        let columns = plan.columns.len();
        plan.columns.extend(pieces.pieces[..pieces.data_count].iter().map(|piece| piece.index));
        let columns = columns..plan.columns.len();
        align(plan, core.set_aside.zero_slot);
        let present = plan.slots.len();
        let chosen =
            pieces.pieces.iter().filter(|piece| core.health.is_readable(piece.addr)).take(pieces.data_count);
        for piece in chosen {
            let slot = plan.read_piece(&core.store, &mut core.pool, word, piece);
            plan.columns.push(piece.index);
            plan.slots.push(slot);
        }
        let wanted = plan.slots.len();
        for piece in &pieces.pieces {
            if core.lacks(piece) {
                let slot = plan.own_slot(&mut core.pool);
                plan.columns.push(piece.index);
                plan.slots.push(slot);
                let stream = core.store.stream_of(piece.index, piece.addr.dev);
                plan.writes.push(PlanWrite {
                    addr: piece.addr,
                    slot,
                    stream,
                    crc_at: CrcAt::Known(piece.crc),
                });
            }
        }
        let end = plan.slots.len();
        plan.computes.push(Compute::Rebuild { columns, present: present..wanted, wanted: wanted..end });
    }

    /// A stripe that was busy is maintenance's now.
    pub(in crate::engine) fn granted(&mut self, core: &mut Core, stripe: StripeId) {
        let Some(run) = &mut self.run else { return core.unlock(stripe, Mode::Exclusive) };
        // A run that began anew may wait for a stripe twice, and is granted it twice.
        let waiting = run.awaited.iter().position(|&other| other == stripe);
        run.awaited.swap_remove(waiting.expect("only what is waited for is granted"));
        let kind = run.kind;
        if !core.has_room_for_stripe() {
            self.run_mut().again.push_back(Word::Stripe(stripe));
            return core.unlock(stripe, Mode::Exclusive);
        }
        self.run_mut().progress.done += 1;
        let key = core.take_job(JobOwner::Maintenance);
        let mut plan = core.lend_plan(key);
        self.plan_locked_stripe(core, kind, stripe, &mut plan);
        self.start_planned_unit(core, key, plan);
    }

    /// A unit has ended. If something in it was lost, its code words are looked at one by one: the others
    /// must not suffer.
    pub(in crate::engine) fn job_ended(&mut self, core: &mut Core, key: Key<Job>) {
        if let Some(run) = &mut self.run {
            let job = &core.jobs.table[key];
            run.units -= 1;
            run.report.code_mismatches += job.mismatches;
            if job.lost {
                self.look_again(core, key);
            } else {
                run.report.chunks_left += job.unhealed;
            }
        }
        core.give_job(key);
    }

    /// Something in a unit is lost.
    fn look_again(&mut self, core: &mut Core, key: Key<Job>) {
        let run = self.run_mut();
        let plan = &core.jobs.table[key].plan;
        // With the stripes, the log stripes of their newest versions are looked at again.
        let words = if plan.stripes.is_empty() { plan.log_words.as_slice() } else { &[] };
        let stripes = plan.stripes.iter().map(|&stripe| Word::Stripe(stripe));
        let mut words = stripes.chain(words.iter().map(|&(word, _)| word));
        match (words.next(), words.next()) {
            (None, _) => run.report.lost += 1,
            (Some(word), None) => self.note_lost_word(core, word),
            (Some(first), Some(second)) => run.again.extend([first, second].into_iter().chain(words)),
        }
    }

    /// Too much of a code word is lost.
    fn note_lost_word(&mut self, core: &mut Core, word: Word) {
        let is_needed = core.suspect_word(word);
        self.run_mut().save.note_hole();
        self.run_mut().report.lost += u64::from(is_needed);
    }
}

/// Asks for the pages of the stripes behind one that waits for its own.
fn read_ahead(core: &mut Core, stripe: StripeId) {
    if !core.store.table.lacks(stripe) {
        return;
    }
    let (count, per_page) = (core.store.config.stripe_count, core.store.table.stripes_per_page());
    let next = (1..=PAGES_AHEAD).map(|page| stripe.get() + page * per_page);
    for next in next.take_while(|&next| next < count) {
        core.read_page_ahead(StripeId::new(next));
    }
}

/// Makes columns and slots equally long, so that one range names a run of both.
fn align(plan: &mut Plan, filler: Slot) {
    let len = plan.columns.len().max(plan.slots.len());
    plan.columns.resize(len, 0);
    plan.slots.resize(len, filler);
}
