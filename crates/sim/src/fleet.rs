//! The shards of a volume side by side: which of them has what of a request, whose turn it is, and what
//! several answer as one.

use crate::port::{Port, Shard};
use array::{Done, Engine, EngineError, Health};
use block::{DevIndex, Fan, Interleave, Paired, Place, Pool, Run, SECTOR_BYTES, Share, Slice, Slot};
use format::{ArrayConfig, MemberState};

/// See the module's documentation. After damage beyond the promise a single shard of several may be looked at
/// by itself.
pub(crate) struct Fleet {
    shards: Vec<Shard>,
    map: Interleave,
    pub fan: Fan<EngineError>,
    /// Shards that are to be pumped whether anything of theirs ends or not.
    awake: Vec<bool>,
    /// Shards that have had nothing to do at some time since that was asked last.
    settled: Vec<bool>,
    /// Shards that have had nothing to do, but for what is paused, since they were asked for anything.
    rested: Vec<bool>,
    answers: Vec<Done>,
}

/// What one shard has of a request.
pub(crate) struct Portion {
    /// Place of the shard in the fleet.
    pub at: usize,
    /// The first sector, in the volume.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// Where it begins in the shard's own volume, in bytes.
    pub offset_bytes: u64,
    /// Buffers of the shard's.
    pub slots: Vec<Slot>,
}

impl Portion {
    /// The slot that has a sector, and where in it that is, in bytes.
    pub fn slot_of(&self, lba: u64, chunk_sectors: u64) -> (Slot, usize) {
        let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let slot = self.slots[index(lba / chunk_sectors - self.first / chunk_sectors)];
        (slot, index(lba % chunk_sectors * SECTOR_BYTES))
    }
}

impl Fleet {
    pub fn new(shards: Vec<Shard>) -> Self {
        // Some may have grown already, and others not.
        let shapes = shards.iter().map(|shard| &shard.engine_ref().store().config);
        let map = ArrayConfig::interleave_of(shapes).unwrap_or(Interleave::new(1, 0, 0));
        let [settled, rested] = [(); 2].map(|()| vec![false; shards.len()]);
        let (awake, fan, answers) = (vec![true; shards.len()], Fan::default(), Vec::new());
        Self { shards, map, fan, awake, settled, rested, answers }
    }

    /// Shards that run.
    pub fn len(&self) -> usize {
        self.shards.len()
    }

    /// Whether more than one runs.
    pub fn is_several(&self) -> bool {
        self.shards.len() > 1
    }

    pub fn shard(&mut self, at: usize) -> &mut Shard {
        (self.awake[at], self.settled[at], self.rested[at]) = (true, false, false);
        &mut self.shards[at]
    }

    pub fn shard_ref(&self, at: usize) -> &Shard {
        &self.shards[at]
    }

    /// The devices of a shard: it is not woken.
    pub fn devices(&mut self, at: usize) -> &mut Paired<Slice<Port>> {
        self.shards[at].devices()
    }

    /// Whether a member of any shard has a partner.
    pub fn has_pair(&self) -> bool {
        self.shards.iter().any(|shard| shard.devices_ref().state().is_some())
    }

    /// The engine of a shard: whoever asks it for anything wakes it.
    pub fn engine(&mut self, at: usize) -> &mut Engine {
        self.shard(at).engine()
    }

    /// The buffers of a shard.
    pub fn pool(&mut self, at: usize) -> &mut Pool {
        self.shards[at].engine().pool()
    }

    pub fn engine_ref(&self, at: usize) -> &Engine {
        self.shards[at].engine_ref()
    }

    pub fn engines(&self) -> impl Iterator<Item = &Engine> {
        self.shards.iter().map(Shard::engine_ref)
    }

    pub fn healths(&self) -> Vec<&Health> {
        self.engines().map(Engine::health).collect()
    }

    /// The number of a shard in the array.
    pub fn number(&self, at: usize) -> u16 {
        self.engine_ref(at).store().config.shard.index
    }

    /// The worst that any shard sees in a member.
    pub fn state(&self, dev: u16) -> MemberState {
        let badness = |state: &MemberState| match state {
            MemberState::Healthy => 0,
            MemberState::Rebuilding => 1,
            MemberState::Failed | MemberState::Absent => 2,
        };
        let states = self.engines().map(|engine| engine.health().state(DevIndex::new(dev)));
        states.max_by_key(badness).unwrap_or(MemberState::Absent)
    }

    /// A member's serial number in each shard.
    pub fn serials(&self, dev: u16) -> Vec<u32> {
        self.engines().map(|engine| engine.health().members()[usize::from(dev)].serial).collect()
    }

    /// Whether a shard has a member out of service.
    pub fn is_out(&self, at: usize, dev: u16) -> bool {
        !self.engine_ref(at).health().is_writable(DevIndex::new(dev))
    }

    /// Sectors of a chunk.
    pub fn chunk_sectors(&self) -> u64 {
        self.engine_ref(0).store().config.geometry.chunk_bytes() as u64 / SECTOR_BYTES
    }

    /// Slots that one request to a shard can ever get.
    pub fn slots_max(&self) -> usize {
        self.engines().map(Engine::slots_per_request_max).min().unwrap_or(0)
    }

    fn place_of(&self, shard: u16) -> Option<usize> {
        (0..self.len()).find(|&at| self.number(at) == shard)
    }

    /// The shard that has a sector, if it runs, and where in its volume that is, in bytes.
    pub fn find(&self, lba: u64) -> Option<(usize, u64)> {
        let Place { shard, offset_bytes } = self.map.place(lba * SECTOR_BYTES);
        self.place_of(shard).map(|at| (at, offset_bytes))
    }

    /// The sector of the volume that is at `offset_bytes` of a shard.
    pub fn sector(&self, at: usize, offset_bytes: u64) -> u64 {
        self.map.address(Place { shard: self.number(at), offset_bytes }) / SECTOR_BYTES
    }

    /// What each shard has of a read or a write, with buffers; none if one of them has none.
    pub fn cut(&mut self, first: u64, count: u64) -> Option<Vec<Portion>> {
        let chunk = self.chunk_sectors();
        let mut parts = Vec::new();
        for Run { address_bytes, place, length_bytes } in
            self.map.runs(first * SECTOR_BYTES, count * SECTOR_BYTES)
        {
            let (first, count) = (address_bytes / SECTOR_BYTES, length_bytes / SECTOR_BYTES);
            let chunks = (first + count).div_ceil(chunk) - first / chunk;
            let Place { shard, offset_bytes } = place;
            let at = self.place_of(shard).expect("only what runs is asked");
            let part = Portion { at, first, count, offset_bytes, slots: Vec::new() };
            self.furnish(&mut parts, part, usize::try_from(chunks).unwrap_or(usize::MAX))?;
        }
        Some(parts)
    }

    /// What each shard has of a discard, with buffers for its edges.
    pub fn share_out(&mut self, first: u64, count: u64) -> Option<Vec<Portion>> {
        let mut parts = Vec::new();
        for Share { shard, offset_bytes, length_bytes } in
            self.map.shares(first * SECTOR_BYTES, count * SECTOR_BYTES)
        {
            let at = self.place_of(shard).expect("only what runs is asked");
            let (first, count) = (self.sector(at, offset_bytes), length_bytes / SECTOR_BYTES);
            let part = Portion { at, first, count, offset_bytes, slots: Vec::new() };
            self.furnish(&mut parts, part, 2)?;
        }
        Some(parts)
    }

    fn furnish(&mut self, parts: &mut Vec<Portion>, mut part: Portion, slots: usize) -> Option<()> {
        let has = self.shards[part.at].engine().take_slots(slots, &mut part.slots);
        if has {
            parts.push(part);
            return Some(());
        }
        parts.drain(..).for_each(|part| self.give_back(part));
        None
    }

    /// Buffers go back to the shards that they are of.
    pub fn give_back(&mut self, part: Portion) {
        let pool = self.pool(part.at);
        part.slots.into_iter().for_each(|slot| pool.free(slot));
    }

    /// Whether there is something to do for a shard at this time: it asked for it, or a deadline has come.
    pub fn is_ready(&self, at: usize, now_ns: u64) -> bool {
        self.awake[at] || self.engine_ref(at).next_deadline_ns().is_some_and(|at_ns| at_ns <= now_ns)
    }

    /// One turn of a shard.
    pub fn turn(&mut self, at: usize, now_ns: u64) -> bool {
        self.shards[at].engine().set_now(now_ns);
        let more = self.shards[at].turn();
        let stranded = self.engine_ref(at).stranded().filter(|_| !more);
        assert_eq!(stranded, None, "shard {at} would wait for ever");
        self.awake[at] = more;
        more
    }

    /// From now on it counts whether shards have nothing to do.
    pub fn unsettle(&mut self) {
        self.settled.fill(false);
    }

    /// A shard has nothing to do.
    pub fn settle(&mut self, at: usize) {
        self.settled[at] = true;
    }

    /// A shard has nothing to do but what is paused, if anything is.
    pub fn rest(&mut self, at: usize) {
        self.rested[at] = true;
    }

    /// Whether each has had nothing else to do since it was asked for anything; rounds of the patrol do not
    /// count, as above.
    pub fn is_rested(&self) -> bool {
        self.rested.iter().all(|&rested| rested)
    }

    /// Whether each has had nothing to do since. Rounds of the patrol begin again and again, in each at times
    /// of its own.
    pub fn is_settled(&self) -> bool {
        self.settled.iter().all(|&settled| settled)
    }

    /// Moves the answers of a shard to the end of `out`; what several shards carry out is answered once.
    pub fn take_answers(&mut self, at: usize, out: &mut Vec<Done>) {
        self.shards[at].take_answers(&mut self.answers);
        out.extend(self.answers.drain(..).filter_map(|done| with_last_part(&mut self.fan, done)));
    }

    /// The answer to a request one part of which, or all of it, has ended, if it has with that.
    pub fn end(&mut self, done: Done) -> Option<Done> {
        with_last_part(&mut self.fan, done)
    }
}

/// What is answered with an answer: that to a part is kept until the last part's.
fn with_last_part(fan: &mut Fan<EngineError>, done: Done) -> Option<Done> {
    if !Fan::<EngineError>::is_part(done.tag) {
        return Some(done);
    }
    fan.end(done.tag, done.result).map(|(tag, result)| Done { tag, result })
}
