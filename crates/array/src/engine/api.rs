//! What drivers, front ends and operators ask of the engine; the turn itself is in the module above.

use super::commit::{CommitRun, Commits};
use super::{
    Core, Done, Engine, EngineOptions, EngineStats, Event, Losses, MaintenanceReport, MemberTrouble,
    Progress, WorkKind,
};
use crate::fault::FailCause;
use crate::health::Health;
use crate::image::CheckpointPlace;
use crate::journal::Journal;
use crate::scheme::Scheme;
use crate::store::Store;
use block::{DevIndex, DeviceOp, Durability, Epoch, Pool, Seq, Slot, StripeId};
use format::{CheckpointKind, MemberState, ScrubRecord, Superblock};

/// Requests. Each has a tag of the caller's, and one [`Done`] with that tag is its answer.
impl Engine {
    /// Writes `length_bytes` at `offset_bytes`. `slots` holds one slot per chunk touched, the payload at the
    /// place it has within its chunk. The slots are the engine's until the request is done, and hold whatever
    /// it left in them then. With `durable` it is answered only when it would survive a power cut.
    pub fn write(
        &mut self,
        tag: u64,
        offset_bytes: u64,
        length_bytes: u64,
        slots: &[Slot],
        durable: Durability,
    ) {
        self.core.write(tag, offset_bytes, length_bytes, slots, durable);
    }

    /// Reads `length_bytes` at `offset_bytes` into `slots`, one per chunk touched; whole chunks are filled
    /// in.
    pub fn read(&mut self, tag: u64, offset_bytes: u64, length_bytes: u64, slots: &[Slot]) {
        self.core.read(tag, offset_bytes, length_bytes, slots);
    }

    /// Makes every write answered so far durable.
    pub fn flush(&mut self, tag: u64) {
        self.core.flush(tag);
    }

    /// Makes a range read as zeros and frees its space. Edges that cover a chunk in part are written as
    /// zeros, for which `slots` must hold two different slots; the engine takes the rest of the range without
    /// buffers.
    pub fn zero(
        &mut self,
        tag: u64,
        offset_bytes: u64,
        length_bytes: u64,
        slots: [Slot; 2],
        durable: Durability,
    ) {
        self.core.zero(tag, offset_bytes, length_bytes, slots, durable);
    }

    /// Commits every stripe that is dirty now (C-03); answered when done.
    pub fn commit(&mut self, tag: u64) {
        self.core.commit(tag);
    }

    /// Writes a checkpoint (M-08); answered when it is durable.
    pub fn write_checkpoint(&mut self, tag: u64, kind: CheckpointKind) {
        let request = self.core.open_control(tag);
        self.core.board.checkpoint.want(request, kind);
    }

    /// The array is about to be stopped: commits that nobody waits for end with what is under way. What is
    /// dirty then is committed after the next start. Whoever waits for one that is paused is told.
    pub fn prepare_stop(&mut self) {
        self.activities.commits.prepare_stop(&mut self.core);
    }

    /// Writes superblocks that say the array was stopped in order; answered when they are durable. From now
    /// on nothing is begun that changes what the devices hold.
    pub fn publish_clean(&mut self, tag: u64) {
        self.core.publish_clean(tag);
    }

    /// Forgets what one member, or every one, did wrong so far; answered when that is on disk.
    pub fn clear_errors(&mut self, tag: u64, dev: Option<DevIndex>) {
        self.core.clear_errors(tag, dev);
    }

    /// Gives the array another name, which must be one that a superblock has room for; answered when that is
    /// on disk.
    pub fn rename(&mut self, tag: u64, name: &str) {
        self.core.rename(tag, name);
    }

    /// A replacement has taken the place of a failed member: rebuild onto it. Answered when the array is
    /// whole again.
    pub fn rebuild(&mut self, tag: u64, dev: DevIndex, serial: u32) {
        self.activities.maintenance.rebuild(&mut self.core, tag, dev, serial);
    }

    /// Operations on a member that the driver has, or is about to get, as it knows them: what a pair of
    /// devices is to know when it begins ([`block::Paired::begin`]).
    pub fn under_way(&self, dev: DevIndex) -> Vec<block::DeviceOp> {
        self.core.ops.flights.on(dev).collect()
    }

    /// Another device holds what member `dev` holds, and takes its place under a new serial number: it alone
    /// is told, before anything more is answered. `false`, and nothing happens, if the member is not healthy
    /// or superblocks are being written. See [`Succession`](crate::Succession) for what comes before and
    /// after.
    pub fn succeed(&mut self, dev: DevIndex, serial: u32) -> bool {
        self.core.succeed(dev, serial)
    }

    /// All members are told of the successor.
    pub fn tell_of_successor(&mut self) {
        self.core.tell_of_successor();
    }

    /// The device of a member that left is there again, with this superblock, and gets a new serial number:
    /// what it has missed is rebuilt. Answered when the array is whole again.
    pub fn online(&mut self, tag: u64, dev: DevIndex, serial: u32, superblock: &Superblock) {
        self.activities.maintenance.online(&mut self.core, tag, (dev, serial), superblock);
    }

    /// Why [`Engine::online`] would refuse a device, but for what has not ended on it.
    pub fn why_not_online(&self, dev: DevIndex, superblock: &Superblock) -> Option<crate::NotBack> {
        self.core.why_not_back(dev, superblock)
    }

    /// The assembly, its epoch and nonce, in which a member left that is away, if that is known.
    pub fn left_in(&self, dev: DevIndex) -> Option<(Epoch, u64)> {
        self.core.health.away(dev)?.left.map(|point| (point.epoch, point.nonce))
    }

    /// Continues the rebuild of members that were being rebuilt when the array was last stopped.
    pub fn resume_rebuild(&mut self, tag: u64) {
        self.activities.maintenance.resume_rebuild(&mut self.core, tag);
    }

    /// Checks everything, from `first_stripe` on (0 = all).
    pub fn scrub(&mut self, tag: u64, first_stripe: u64) {
        self.activities.maintenance.scrub(&mut self.core, tag, first_stripe);
    }
}

/// What it promises.
impl Engine {
    /// How large the aligned blocks are that a power cut never tears if one request writes them; 0 if there
    /// are none.
    pub fn untorn_bytes(&self) -> u64 {
        self.core.untorn_bytes()
    }
}

/// Orders that are carried out at once.
impl Engine {
    /// The time as the driver loop sees it, in nanoseconds from any fixed point; never goes back.
    pub fn set_now(&mut self, now_ns: u64) {
        self.core.now_ns = self.core.now_ns.max(now_ns);
        self.core.ops.flights.set_now(self.core.now_ns);
    }

    /// Tells the engine what the wall clock shows now, in seconds since 1970-01-01 UTC.
    pub fn set_unix_time(&mut self, unix_s: u64) {
        self.core.set_unix_time(unix_s);
    }

    /// The buffers: callers take the slots of their requests here and give them back when those are done.
    pub fn pool(&mut self) -> &mut Pool {
        &mut self.core.pool
    }

    /// Takes `count` slots for a request, or none.
    pub fn take_slots(&mut self, count: usize, out: &mut Vec<Slot>) -> bool {
        if !self.has_slots(count) {
            return false;
        }
        out.extend((0..count).map_while(|_| self.core.pool.alloc()));
        true
    }

    /// Operations to carry out, in order; the caller empties the vector.
    pub fn take_ops(&mut self) -> (&mut Vec<DeviceOp>, &mut Pool) {
        self.core.take_ops()
    }

    /// The next member whose operations the driver is to give up.
    pub fn take_given_up(&mut self) -> Option<DevIndex> {
        self.core.ops.flights.take_given_up()
    }

    /// Finished requests; the caller empties the vector.
    pub fn take_done(&mut self) -> &mut Vec<Done> {
        &mut self.core.answers.done
    }

    /// Moves what has happened since the last call to the end of `out`.
    pub fn take_events(&mut self, out: &mut Vec<Event>) {
        self.core.answers.events.take(out);
    }

    /// Whether there are any.
    pub fn has_events(&self) -> bool {
        !self.core.answers.events.is_empty()
    }

    /// Answered when the other members know of every change of the members so far.
    pub fn announce(&mut self, tag: u64) {
        self.core.finish(Done { tag, result: Ok(()) });
    }

    /// Takes a member out of service because somebody wants it; what it held is read through its cover from
    /// now on. If that is more than the code tolerates, the array freezes.
    pub fn fail_device(&mut self, dev: DevIndex) {
        self.core.fail_member(dev, FailCause::Asked);
    }

    /// From now on commits after so many write requests, counted from now.
    pub fn commit_every(&mut self, every_requests: Option<u64>) {
        self.core.options.commit.every_requests = every_requests;
        self.core.board.commit.writes = 0;
    }

    /// Gives up what maintenance is under way, before a stop: no unit is started any more, and whoever waits
    /// for the end is told. A rebuild starts again at the next assembly; the superblocks remember how far a
    /// scrub was.
    pub fn halt_maintenance(&mut self) {
        self.activities.maintenance.halt(&mut self.core);
    }

    /// Changes the limit of rebuild and scrub, also while they run: what went before does not count against
    /// it.
    pub fn set_rebuild_rate(&mut self, bytes_per_s: Option<u64>) {
        self.activities.maintenance.set_rebuild_rate(&mut self.core, bytes_per_s);
    }

    /// Lets a scrub wait; `false` if there is none.
    pub fn pause_scrub(&mut self) -> bool {
        self.activities.maintenance.pause_scrub()
    }

    /// Lets it go on; `false` if none waits.
    pub fn resume_scrub(&mut self) -> bool {
        self.activities.maintenance.resume_scrub(&mut self.core)
    }

    /// Lets parity commits wait but for those that make room or that a rebuild needs; `false` if the scheme
    /// has none.
    pub fn pause_commits(&mut self) -> bool {
        self.activities.commits.pause(&mut self.core)
    }

    /// Lets them go on; `false` if they were not paused.
    pub fn resume_commits(&mut self) -> bool {
        Commits::resume(&mut self.core)
    }

    /// Gives up the commit that is under way, asked for or paused; `false` if there is none but one that the
    /// array needs. Whoever waits is told at once; what is dirty is committed when there is another reason.
    pub fn stop_commit(&mut self) -> bool {
        self.activities.commits.give_up(&mut self.core)
    }

    /// Gives a scrub up for good; `false` if there is none. It ends when what is in flight has ended.
    pub fn stop_scrub(&mut self) -> bool {
        self.activities.maintenance.stop_scrub()
    }
}

/// Looks, which change nothing.
impl Engine {
    /// Whether there are slots for a request; some are always left for the engine's own work.
    pub fn has_slots(&self, count: usize) -> bool {
        self.core.has_slots(count)
    }

    /// The most slots one request can ever get.
    pub fn slots_per_request_max(&self) -> usize {
        self.core.slots_per_request_max()
    }

    /// The configuration and state that schemes work on.
    pub fn store(&self) -> &Store {
        &self.core.store
    }

    /// The scheme.
    pub fn scheme(&self) -> &dyn Scheme {
        &*self.core.scheme
    }

    /// What it runs with.
    pub fn options(&self) -> &EngineOptions {
        &self.core.options
    }

    /// The members.
    pub fn health(&self) -> &Health {
        &self.core.health
    }

    /// The journal.
    pub fn journal(&self) -> &Journal {
        &self.core.journal
    }

    /// Figures since assembly.
    pub fn stats(&self) -> EngineStats {
        self.core.stats
    }

    /// Bytes of the exported volume.
    pub fn volume_bytes(&self) -> u64 {
        self.core.store.config.volume_bytes()
    }

    /// Whether writes are accepted.
    pub fn accepts_writes(&self) -> bool {
        self.core.accepts_writes()
    }

    /// What is durable.
    pub fn durable_through(&self) -> Seq {
        self.core.board.flush.durable()
    }

    /// Where the newest checkpoint is.
    pub fn checkpoint_place(&self) -> &CheckpointPlace {
        &self.core.board.checkpoint.place
    }

    /// Stripes that could not be committed because their data is lost.
    pub fn stuck_stripes(&self) -> &[StripeId] {
        &self.core.board.commit.stuck
    }

    /// Whether a commit run is under way.
    pub fn is_committing(&self) -> bool {
        self.core.board.commit.is_running()
    }

    /// The commit run under way.
    pub fn commit_run(&self) -> Option<CommitRun> {
        self.core.commit_run()
    }

    /// Whether commits are paused.
    pub fn are_commits_paused(&self) -> bool {
        self.core.board.commit.is_paused
    }

    /// What is lost, as far as known.
    pub fn losses(&self) -> Losses<'_> {
        self.core.losses()
    }

    /// What maintenance is under way, and how far it is.
    pub fn maintenance(&self) -> Option<(WorkKind, Progress, MaintenanceReport)> {
        self.activities.maintenance.under_way(&self.core)
    }

    /// Of so many percent of the code words every member being rebuilt is known to hold its part: a rebuild
    /// goes on there after a restart.
    pub fn rebuilt_percent(&self) -> u64 {
        let Core { health, store, scheme, .. } = &self.core;
        let members = (0u16..).map(DevIndex::new).zip(health.members());
        let rebuilding = members.filter(|(_, member)| member.state == MemberState::Rebuilding);
        let least = rebuilding.map(|(dev, _)| health.rebuilt(dev)).min().unwrap_or(0);
        let percent = u128::from(least) * 100 / u128::from(scheme.word_count(store).max(1));
        u64::try_from(percent.min(100)).unwrap_or(100)
    }

    /// What the last rebuild or scrub found.
    pub fn last_report(&self) -> MaintenanceReport {
        self.activities.maintenance.last_report()
    }

    /// First stripe that an interrupted scrub has not looked at; 0 if there is none to be continued.
    pub fn scrub_cursor(&self) -> u64 {
        self.core.board.members.superblock.scrub_cursor
    }

    /// What the last scrub found, if there ever was one.
    pub fn last_scrub(&self) -> Option<ScrubRecord> {
        self.core.last_scrub()
    }

    /// The limit of rebuild and scrub, in bytes per second of each main device.
    pub fn rebuild_rate(&self) -> Option<u64> {
        self.core.options.rebuild_bytes_per_s
    }

    /// Whether a scrub waits to be told to go on.
    pub fn is_scrub_paused(&self) -> bool {
        self.activities.maintenance.is_scrub_paused()
    }

    /// Rounds of the patrol begun since assembly, and how many of those had begun when the last one that left
    /// nothing bad did.
    pub fn patrol_rounds(&self) -> (u64, u64) {
        self.activities.patrol.rounds()
    }

    /// Another number whenever a round over the metadata has begun or a member has made an error: whoever
    /// looks after the members may want to look.
    pub fn pulse(&self) -> u64 {
        let errors = |errors: crate::MemberErrors| errors.checksum.wrapping_add(errors.read);
        let members = self.health().members().iter();
        members.map(|member| errors(member.errors)).fold(self.patrol_rounds().0, u64::wrapping_add)
    }

    /// When the array was created, in seconds since 1970-01-01 UTC.
    pub fn created_unix_s(&self) -> u64 {
        self.core.created_unix_s()
    }

    /// The superblock of one member as it would be written now.
    pub fn superblock_of(&self, dev: DevIndex) -> Superblock {
        self.core.superblock_of(dev)
    }

    /// Operations on a member that have not ended. Another device may take its place only when there are
    /// none: the end of an old write must not pass for one on the new device.
    pub fn in_flight(&self, dev: DevIndex) -> u32 {
        self.core.in_flight(dev)
    }

    /// What is wrong with a member.
    pub fn member_trouble(&self, dev: DevIndex) -> MemberTrouble {
        self.core.member_trouble(dev)
    }

    /// Whether a member in service lacks room or does not answer.
    pub fn is_held_up(&self) -> bool {
        self.core.is_held_up()
    }

    /// The member that lacks room for longest, if one does: writes wait for it.
    pub fn lacks_room(&self) -> Option<DevIndex> {
        self.core.lacks_room()
    }

    /// Whether superblocks are being written, so that not all members know yet who is in service.
    pub fn is_publishing(&self) -> bool {
        self.core.board.members.is_publishing()
    }

    /// Whether there is something to tell the members that waits until they are told of a successor
    /// ([`Engine::tell_of_successor`]).
    pub fn waits_to_tell(&self) -> bool {
        self.core.board.members.waits_for_untold()
    }

    /// Whether a member is absent or failed, so that it may be replaced.
    pub fn is_replaceable(&self, dev: DevIndex) -> bool {
        self.core.is_replaceable(dev)
    }
}
