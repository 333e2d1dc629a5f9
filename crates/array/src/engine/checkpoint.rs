//! Writing checkpoints beside foreground work (M-06 to M-08): pages, flush, header, flush.
//!
//! A checkpoint is the state at one instant: pages of the table that change before they are written are kept
//! as they were (`table`), and a long list of the scheme is said piece by piece, a piece in a turn, an item
//! that is to change before its turn being said as it was (`Scheme::begin_list`). The header, written when
//! everything it speaks of is durable, makes the checkpoint valid. Only then are the frames before it given
//! up.
//!
//! A member that missed pages of it must not pass for a good one after a crash, since its slots hold what
//! some other checkpoint wrote: headers are written only when the superblocks say who is out of service.
//!
//! With one that a rebuild waits for, members that are being rebuilt get the copies of pages that they lack
//! (`copies`).
//!
//! What goes to the slots of pages (`slots`) goes to the members that a page has its copies on; what follows
//! the header goes to the members that hold the checkpoint.
//!
//! While a full one is written, incremental ones may go on beside it (`image/place.rs`): so what a start has
//! to replay is bounded, however long the full one takes.

mod board;
mod writer;

pub(super) use board::CheckpointBoard;

use super::copies::PageCopies;
use super::wake::{Marked, count};
use super::{Activity, Core, Deadline, EngineError};
use crate::image::{CheckpointPlace, Image, Now};
use crate::table::Extent;
use block::{DevIndex, IoFault, Slot};
use format::{CheckpointKind, PAGE_WORDS};
use writer::{Stage, Writer, Written};

/// See the module's documentation.
pub(super) struct Checkpointer {
    /// Writes all but the incremental ones of the other.
    alone: Writer,
    /// Writes an incremental one at the instant of a full one, and those beside it.
    beside: Writer,
}

impl Default for Checkpointer {
    fn default() -> Self {
        Self { alone: Writer::new(false), beside: Writer::new(true) }
    }
}

impl Core {
    /// The state of which a checkpoint would be now, and where the newest one is.
    fn checkpoint_now(&mut self) -> (&CheckpointPlace, Now<'_>) {
        let Self { store, scheme, journal, health, jobs, board, .. } = self;
        let (through, CheckpointBoard { place, list_room: room, .. }) = (jobs.retired, &mut board.checkpoint);
        (place, Now { store, scheme: &mut **scheme, journal, health, through, room })
    }
}

impl Checkpointer {
    /// Nothing is written any more: whoever waits for a checkpoint is told.
    fn refuse(&mut self, core: &mut Core) {
        (core.board.checkpoint.wanted, core.board.checkpoint.room_wanted) = (None, false);
        let waiting = std::mem::take(&mut core.board.checkpoint.waiting);
        for request in waiting {
            core.chunk_done(request, Some(EngineError::ArrayFailed));
        }
    }

    /// Whoever has waited for a checkpoint for too long is told why; it is written when that can be.
    pub(super) fn refuse_late(&mut self, core: &mut Core, error: EngineError) {
        let mut waiting = std::mem::take(&mut core.board.checkpoint.waiting);
        core.refuse_late(&mut waiting, error);
        core.board.checkpoint.waiting = waiting;
        core.refuse_late(self.alone.answering_mut(), error);
        core.refuse_late(self.beside.answering_mut(), error);
    }

    fn is_idle(&self) -> bool {
        self.alone.stage() == Stage::Idle && self.beside.stage() == Stage::Idle
    }

    /// Begins what is due while nothing is under way.
    fn start(&mut self, core: &mut Core) {
        let Some(wanted) = due(core) else { return };
        if !core.note_taken() {
            return match wanted.extent {
                Some(extent) => core.board.checkpoint.request(extent),
                None => core.board.checkpoint.request_room(),
            };
        }
        let may_go_beside = may_go_beside(core, &wanted);
        let goes_beside = may_go_beside && is_little(core);
        let comes_before = may_go_beside && !goes_beside;
        let board = &mut core.board.checkpoint;
        (board.wanted, board.room_wanted) = (None, board.room_wanted && comes_before);
        if goes_beside {
            let (place, mut now) = core.checkpoint_now();
            if let Some((incremental, full)) = place.choose_both(&mut now) {
                return self.take_both(core, incremental, full);
            }
        }
        // If there was no room for both, what changed of the list counts as said, by one that there is not.
        let is_full = !comes_before && (wanted.room || goes_beside);
        let extent = wanted.extent.max(is_full.then_some(Extent::Unsaved)).unwrap_or(Extent::Changes);
        let (place, mut now) = core.checkpoint_now();
        let image = place.choose(extent, &mut now);
        self.take_alone(core, image);
    }

    fn take_alone(&mut self, core: &mut Core, mut image: Image) {
        image.config_seq = core.board.members.published();
        let saves_all = image.extent == Extent::Everything;
        let copies_wanted = std::mem::take(&mut core.board.checkpoint.copies_wanted);
        let copies = (copies_wanted && !saves_all).then(|| PageCopies::new(core));
        let board = &mut core.board.checkpoint;
        board.completing_begun += u64::from(saves_all || copies_wanted);
        board.begin(&image, core.now_ns);
        board.alone = Some(image.number);
        self.alone.take(image, copies, &mut board.waiting);
        self.alone.begin(core);
    }

    /// The full one is begun when the incremental one, on which those beside it build, is durable.
    fn take_both(&mut self, core: &mut Core, incremental: Image, full: Image) {
        let board = &mut core.board.checkpoint;
        board.begin(&incremental, core.now_ns);
        board.begin(&full, core.now_ns);
        (board.beside, board.alone) = (Some(incremental.number), Some(full.number));
        self.beside.take(incremental, None, &mut board.waiting);
        self.alone.take(full, None, &mut Vec::new());
        self.beside.begin(core);
    }

    /// Begins an incremental one beside a full one, if one is due.
    fn start_beside(&mut self, core: &mut Core) {
        let Some(full) = self.alone.image().filter(|image| image.beside.is_some()) else { return };
        let is_open = self.alone.stage() != Stage::Behind && self.alone.is_whole();
        let is_asked = match core.board.checkpoint.wanted {
            None => false,
            Some(Extent::Changes) => true,
            // One that has come back does not hold the chain; or more is wanted for some other reason.
            Some(Extent::Unsaved | Extent::Everything) => return,
        };
        let is_due = is_asked || are_changes_due(core, Pace::Copied);
        if !is_open || !is_due || core.board.checkpoint.copies_wanted || core.board.frozen {
            return;
        }
        let place = &core.board.checkpoint.place;
        let are_there = full.devices.iter().all(|&dev| core.health.is_writable(dev));
        if !are_there || !place.is_held(&core.health, &core.store) || !core.note_taken() {
            return;
        }
        let (place, mut now) = core.checkpoint_now();
        let Some(image) = place.choose_beside(&mut now, &full.devices) else {
            // What changed of the list counts as said now, by one that there is not.
            return core.board.checkpoint.request(Extent::Unsaved);
        };
        let board = &mut core.board.checkpoint;
        board.begin(&image, core.now_ns);
        board.beside = Some(image.number);
        let waiting = if is_asked { &mut board.waiting } else { &mut Vec::new() };
        self.beside.take(image, None, waiting);
        board.wanted = None;
        self.beside.begin(core);
    }

    /// A page was read from a member, or written to it.
    pub(super) fn page_copied(
        &mut self,
        core: &mut Core,
        dev: DevIndex,
        copied: (usize, Slot, bool),
        result: Result<(), IoFault>,
    ) {
        self.alone.page_copied(core, dev, copied, result);
    }

    /// A block of a checkpoint was written.
    pub(super) fn block_done(
        &mut self,
        core: &mut Core,
        dev: DevIndex,
        (slot, is_beside): (Slot, bool),
        result: Result<(), IoFault>,
    ) {
        let writer = if is_beside { &mut self.beside } else { &mut self.alone };
        writer.block_done(core, dev, slot, result);
        self.end_sealed(core);
    }

    /// What is durable as a whole counts.
    fn end_sealed(&mut self, core: &mut Core) {
        if let Some(written) = self.beside.take_sealed() {
            core.board.checkpoint.beside = None;
            end(core, written);
            if self.alone.stage() == Stage::Behind {
                self.alone.begin(core);
            }
        }
        if let Some(written) = self.alone.take_sealed() {
            core.board.checkpoint.alone = None;
            core.board.checkpoint.fulls.1 += u64::from(written.image.kind == CheckpointKind::Full);
            core.release_checkpoint_pages(|_| true);
            if core.board.frozen {
                // Nothing of it was written for certain.
                core.store.table.abandon_snapshot();
            } else {
                core.store.table.end_snapshot(written.image.number);
            }
            end(core, written);
        }
    }
}

/// A checkpoint is durable, but for members that failed meanwhile.
fn end(core: &mut Core, written: Written) {
    let Written { image, copies, mut answering, failed } = written;
    core.stats.checkpoints_beside += u64::from(image.is_copied());
    let board = &mut core.board.checkpoint;
    let lost = failed || image.devices.iter().any(|&dev| !core.health.is_writable(dev));
    let after = board.place.after(&image);
    if lost {
        // A device of the set failed: what it held is too few copies.
        board.place = CheckpointPlace { log_head: board.place.log_head, ..after };
        board.waiting.append(&mut answering);
        board.copies_wanted |= copies.is_some();
        return board.request(image.extent.max(Extent::Unsaved));
    }
    board.place = after;
    board.through = board.through.max(image.through);
    let through = board.through;
    core.journal.trim(through);
    core.board.flush.checkpointed(through);
    core.stats.checkpoints += 1;
    core.note_log_tail(core.jobs.retired);
    for request in answering {
        core.chunk_done(request, None);
    }
    let board = &mut core.board.checkpoint;
    if copies.as_ref().is_some_and(|copies| copies.fell_short) {
        board.request(Extent::Everything);
    } else if copies.is_some() || image.extent == Extent::Everything {
        board.completing_sealed = board.completing_begun;
    }
    board.list_room = image.into_room();
}

/// What a checkpoint is due for.
struct Due {
    /// What it is to hold at least, for somebody who waits for it or as there is much that none holds.
    extent: Option<Extent>,
    /// It is to make room for pages of the table.
    room: bool,
}

fn due(core: &Core) -> Option<Due> {
    let board = &core.board.checkpoint;
    let pace = if is_ring_short(core) { Pace::Copied } else { Pace::Kept };
    let extent = board.wanted.max(are_changes_due(core, pace).then_some(Extent::Changes));
    let room = board.room_wanted || core.store.table.is_mostly_unsaved();
    (room || extent.is_some()).then_some(Due { extent, room })
}

/// Whether there is so much that no checkpoint holds that the log, the journal or a start has too much of it.
fn are_changes_due(core: &Core, pace: Pace) -> bool {
    let log_held = core.scheme.log_tail(&core.store).saturating_sub(core.board.checkpoint.place.log_head);
    let log_full = log_held > u64::from(core.store.log.block_count()) / 4;
    log_full || core.journal.is_due() || has_many_records(core, pace)
}

/// Whether a full checkpoint is to be begun beside which others can go on: if pages may be absent, where the
/// chain of the newest one can be continued, and there is no other reason for a full one than room.
fn may_go_beside(core: &Core, due: &Due) -> bool {
    let (store, board) = (&core.store, &core.board.checkpoint);
    store.table.is_paged()
        && due.extent.is_none_or(|extent| extent == Extent::Changes)
        && (due.room || is_ring_short(core))
        && !board.copies_wanted
        && board.place.is_held(&core.health, store)
}

/// Whether the incremental one of the instant of a full one has little, all of which is copied at once. If it
/// has much and there is room for that, it is written before, alone.
fn is_little(core: &Core) -> bool {
    records_behind(core) <= 2 * records_max(core) || ring_left(core) < ring_len(core) / 8
}

/// Blocks of the ring of incremental checkpoints.
fn ring_len(core: &Core) -> u64 {
    core.store.config.incremental_blocks.into()
}

fn ring_left(core: &Core) -> u64 {
    core.board.checkpoint.place.chain.left(core.store.config.incremental_blocks)
}

/// Whether it is time for a full one, or for few records in the one before it: a quarter is left, or not so
/// much more than what changed may take that this can be said piece by piece wherever the ring ends.
fn is_ring_short(core: &Core) -> bool {
    let (left, len) = (ring_left(core), ring_len(core));
    let list_blocks = count(core.scheme.changes_max() / PAGE_WORDS);
    left < len / 4 || (core.store.table.is_paged() && !has_room(left, list_blocks))
}

/// Whether a checkpoint with a list of at most so many blocks finds room where so many are left. A rule of
/// thumb: patches usually take less than the list of the same changes, and one that goes to the beginning of
/// the ring leaves as much unused as it takes at most.
fn has_room(left: u64, list_blocks: u64) -> bool {
    const LISTS_LEFT: u64 = 3;
    left >= LISTS_LEFT * list_blocks
}

/// Records behind a checkpoint after which another is due, if pages may be absent: a start reads a page for
/// each. In small arrays fewer, so that it comes about in the simulator, too.
const RECORDS_MAX: std::ops::RangeInclusive<u64> = 64..=2048;
const CHUNKS_PER_RECORD: u64 = 64;
/// Words of what each checkpoint says as a whole for each of these.
const LATER_PER_RECORD: u64 = 8;
/// Members that took more records than one in this time read their pages about as fast. So no checkpoint is
/// begun before the last one is as old as so many records would be, unless there are very many.
const NS_PER_RECORD: u64 = 120_000;
const BURST: u64 = 32;
/// So much older if there are fewer pages that changed than records: a start reads each but once.
const FEW_PAGES: u64 = 2;

/// How soon many records make a checkpoint due.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// When a start would take long for them.
    Kept,
    /// As soon as there are as many: what changed is copied at once.
    Copied,
}

fn records_max(core: &Core) -> u64 {
    let of_size = u64::from(core.store.config.chunks_per_device) / CHUNKS_PER_RECORD;
    let most = of_size.clamp(*RECORDS_MAX.start(), *RECORDS_MAX.end());
    most.max(core.store.table.later_count() / LATER_PER_RECORD)
}

/// Records that the newest checkpoint does not hold.
fn records_behind(core: &Core) -> u64 {
    core.jobs.retired.get().saturating_sub(core.board.checkpoint.through.get())
}

/// When so many records are long enough ago that the next checkpoint is due for them; `None` if they are few,
/// or all pages are in memory.
fn records_due_ns(core: &Core, pace: Pace) -> Option<u64> {
    let (most, behind) = (records_max(core), records_behind(core));
    if !core.store.table.is_paged() || behind <= most {
        return None;
    }
    let waits = pace == Pace::Kept && behind <= most.saturating_mul(BURST);
    let wait_ns = if waits { age_due_ns(most, behind, count(core.store.table.changed_count())) } else { 0 };
    Some(core.board.checkpoint.begun_ns.saturating_add(wait_ns))
}

/// How old the last checkpoint is when the next one is due for records, of which there are enough from `most`
/// on, and that changed so many pages.
fn age_due_ns(most: u64, records: u64, pages: u64) -> u64 {
    let times = if pages < records { FEW_PAGES } else { 1 };
    most.saturating_mul(NS_PER_RECORD * times)
}

/// Whether so many records came since the last checkpoint that a start would read many pages for them.
fn has_many_records(core: &Core, pace: Pace) -> bool {
    records_due_ns(core, pace).is_some_and(|due_ns| due_ns <= core.now_ns)
}

impl Activity for Checkpointer {
    fn drive(&mut self, core: &mut Core) {
        self.beside.drive(core);
        self.alone.drive(core);
        if self.is_idle() {
            self.start(core);
        } else if self.beside.stage() == Stage::Idle {
            self.start_beside(core);
        }
    }

    /// What is under way ends, and is of no use; nothing is begun.
    fn drive_frozen(&mut self, core: &mut Core) {
        self.beside.drive(core);
        self.alone.drive(core);
        if self.is_idle() {
            self.refuse(core);
        }
    }

    fn flushed(&mut self, core: &mut Core, number: u64) {
        self.beside.flushed(core, number);
        self.alone.flushed(core, number);
        self.end_sealed(core);
    }

    fn is_busy(&self, core: &Core) -> bool {
        core.board.checkpoint.is_busy()
    }

    fn deadline(&self, core: &Core) -> Option<Deadline> {
        let due_ns = records_due_ns(core, Pace::Kept).filter(|&due_ns| due_ns > core.now_ns);
        due_ns.filter(|_| self.is_idle() && !core.board.frozen).map(Deadline::Room)
    }

    fn waits_for_buffers(&self, core: &Core) -> bool {
        core.board.checkpoint.is_busy()
    }

    fn left_undone(&self, core: &Core) -> Option<&'static str> {
        let is_open = self.is_busy(core) || (!core.board.frozen && due(core).is_some());
        is_open.then_some("a checkpoint")
    }
}

impl Marked for Checkpointer {
    type Mark = [u64; 9];

    fn mark(&self, core: &Core) -> Self::Mark {
        let ([stage, copy, unit], beside) = (self.alone.mark(), self.beside.mark());
        let CheckpointBoard { wanted, room_wanted, waiting, through, .. } = &core.board.checkpoint;
        let wanted = u64::from(wanted.is_some()) + 2 * u64::from(*room_wanted);
        let [beside_stage, beside_copy, beside_unit] = beside;
        let waiting = count(waiting.len());
        [stage, copy, unit, beside_stage, beside_copy, beside_unit, wanted, waiting, through.get()]
    }
}

#[cfg(test)]
mod tests {
    use super::{age_due_ns, has_room};
    use crate::image::Chain;

    #[test]
    fn where_each_record_changed_a_page_a_checkpoint_is_due_after_half_the_time() {
        let quarter = 2048 * 120_000;
        assert_eq!(age_due_ns(2048, 5000, 5000), quarter);
        assert_eq!(age_due_ns(2048, 5000, 40_000), quarter);
        assert_eq!(age_due_ns(2048, 5000, 4999), 2 * quarter);
    }

    #[test]
    fn where_there_is_room_for_lists_a_checkpoint_goes_wherever_the_ring_ends() {
        const RING: u32 = 100;
        let mut refused = 0;
        let cases = (0..100u32).flat_map(|start| (0..100u64).map(move |used| (start, used)));
        for (start, used) in cases {
            let (chain, list) = (Chain::from(start).with(start.into(), used), 4 + used % 30);
            // With a header, and half as much of patches.
            let place = chain.place(1 + list + list / 2 - 1, 0, RING);
            match has_room(chain.left(RING), list) {
                true => assert!(place.is_some(), "{chain:?}, {list} blocks"),
                false => refused += usize::from(place.is_none()),
            }
        }
        assert!(refused > 1000, "{refused}");
    }
}
