//! Live log stripes (M-03): their members, checksums, and place in the log; and which log stripe
//! owns a chunk.

use crate::scheme::SchemeMemory;
use crate::store::LogRing;
use block::{ChunkAddr, ChunkIndex, Lcn, Seq};
use format::LogMember;
use std::collections::VecDeque;

#[derive(Clone, Copy, Default)]
struct Entry {
    seq: Seq,
    block: ChunkIndex,
    members: u16,
    live: u16,
}

/// See the module's documentation.
pub struct LogTable {
    width_max: usize,
    parity_count: usize,
    owner_stride: usize,
    /// Per chunk of the main array: 1 + the log stripe it is a member of, 0 if none.
    owner: Vec<u32>,
    entries: Vec<Entry>,
    /// `width_max` per entry.
    members: Vec<LogMember>,
    /// m per entry.
    crcs: Vec<u32>,
    free: Vec<u32>,
    /// In log order, for the tail; dead ones are dropped when they reach the front.
    order: VecDeque<(Seq, u32)>,
    live_count: u64,
}

impl LogTable {
    /// No log stripe yet, never more than `stripes_max`: the tables are reserved (not touched) at once, so
    /// that they never move.
    pub fn new(
        device_count: usize,
        chunks_per_device: u32,
        width_max: usize,
        parity_count: usize,
        stripes_max: usize,
    ) -> Self {
        let owner_stride = chunks_per_device as usize + 1;
        Self {
            width_max,
            parity_count,
            owner_stride,
            owner: vec![0; owner_stride * device_count],
            entries: Vec::with_capacity(stripes_max),
            members: Vec::with_capacity(stripes_max * width_max),
            crcs: Vec::with_capacity(stripes_max * parity_count),
            free: Vec::new(),
            order: VecDeque::new(),
            live_count: 0,
        }
    }

    /// Bytes of such a table with as many log stripes: those for every chunk, and those that grow.
    pub fn bytes_for(
        device_count: u64,
        chunks_per_device: u32,
        width_max: u64,
        parity_count: u64,
        stripes: u64,
    ) -> SchemeMemory {
        let entry = (size_of::<Entry>() + size_of::<(Seq, u32)>()) as u64;
        let of_members = width_max * size_of::<LogMember>() as u64;
        SchemeMemory {
            fixed_bytes: (u64::from(chunks_per_device) + 1) * device_count * 4,
            dynamic_bytes: stripes * (entry + of_members + parity_count * 4),
            placement_bytes: 0,
        }
    }

    /// Adds a log stripe without members.
    pub fn insert(&mut self, seq: Seq, block: ChunkIndex, crcs: impl Iterator<Item = u32>) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            let id = u32::try_from(self.entries.len()).expect("fewer log stripes than log blocks");
            self.entries.push(Entry::default());
            let none = LogMember { lcn: Lcn::new(0), chunk: ChunkIndex::NONE, crc: 0 };
            self.members.resize(self.members.len() + self.width_max, none);
            self.crcs.resize(self.crcs.len() + self.parity_count, 0);
            id
        });
        self.entries[id as usize] = Entry { seq, block, members: 0, live: 0 };
        let own = &mut self.crcs[id as usize * self.parity_count..][..self.parity_count];
        own.iter_mut().zip(crcs).for_each(|(own, crc)| *own = crc);
        self.order.push_back((seq, id));
        self.live_count += 1;
        id
    }

    /// Adds a live member at `addr`.
    pub fn push_member(&mut self, id: u32, member: LogMember, addr: ChunkAddr) {
        self.push_dead_member(id, member, addr);
        self.entries[id as usize].live += 1;
    }

    /// Adds a member that is not the newest version of its chunk (loading a checkpoint).
    pub fn push_dead_member(&mut self, id: u32, member: LogMember, addr: ChunkAddr) {
        let entry = &mut self.entries[id as usize];
        self.members[id as usize * self.width_max + usize::from(entry.members)] = member;
        entry.members += 1;
        let at = self.owner_at(addr);
        self.owner[at] = id + 1;
    }

    /// One live member less; `true` if that was the last.
    pub fn drop_live(&mut self, id: u32) -> bool {
        let entry = &mut self.entries[id as usize];
        entry.live = entry.live.checked_sub(1).expect("live members are counted");
        entry.live == 0
    }

    /// Live members.
    pub fn live_members(&self, id: u32) -> u16 {
        self.entries[id as usize].live
    }

    fn owner_at(&self, addr: ChunkAddr) -> usize {
        addr.dev.index() * self.owner_stride + addr.chunk.get() as usize
    }

    /// The live log stripe that a chunk is a member of.
    pub fn owner(&self, addr: ChunkAddr) -> Option<u32> {
        self.owner[self.owner_at(addr)].checked_sub(1)
    }

    /// The chunk is no member any more.
    pub fn disown(&mut self, addr: ChunkAddr) {
        let at = self.owner_at(addr);
        self.owner[at] = 0;
    }

    /// Ends a log stripe whose members were disowned.
    pub fn release(&mut self, id: u32) {
        self.entries[id as usize].members = 0;
        self.free.push(id);
        self.live_count -= 1;
        while let Some(&(seq, id)) = self.order.front() {
            let entry = &self.entries[id as usize];
            if entry.seq == seq && entry.members > 0 {
                break;
            }
            self.order.pop_front();
        }
    }

    /// Members, live or not.
    pub fn member_count(&self, id: u32) -> usize {
        usize::from(self.entries[id as usize].members)
    }

    /// One member (its `crc` is what was recorded).
    pub fn member(&self, id: u32, index: usize) -> LogMember {
        self.members[id as usize * self.width_max + index]
    }

    /// Which member a version of a chunk is.
    pub fn index_of(&self, id: u32, lcn: Lcn, chunk: ChunkIndex) -> usize {
        let members = &self.members[id as usize * self.width_max..][..self.member_count(id)];
        members.iter().position(|m| m.lcn == lcn && m.chunk == chunk).expect("the owner lists its members")
    }

    /// Checksums of the log chunks.
    pub fn crcs(&self, id: u32) -> &[u32] {
        &self.crcs[id as usize * self.parity_count..][..self.parity_count]
    }

    /// First block of the log chunks.
    pub fn block(&self, id: u32) -> ChunkIndex {
        self.entries[id as usize].block
    }

    /// The record that made the log stripe.
    pub fn seq(&self, id: u32) -> Seq {
        self.entries[id as usize].seq
    }

    /// Live log stripes, in log order.
    pub fn live_ids(&self) -> impl Iterator<Item = u32> {
        self.order
            .iter()
            .filter(|&&(seq, id)| self.entries[id as usize].seq == seq && self.member_count(id) > 0)
            .map(|&(_, id)| id)
    }

    /// How many log stripes live.
    pub fn live_count(&self) -> u64 {
        self.live_count
    }

    /// The position of the oldest live log stripe, or the head if there is none.
    pub fn oldest_position(&self, ring: &LogRing) -> u64 {
        let Some(&(_, id)) = self.order.front() else { return ring.head() };
        ring.position_of(self.block(id))
    }

    /// Bytes per chunk of the array.
    pub fn fixed_bytes(&self) -> u64 {
        self.owner.len() as u64 * 4
    }

    /// Bytes that grow with what is uncommitted.
    pub fn dynamic_bytes(&self) -> u64 {
        (self.members.len() * size_of::<LogMember>()
            + self.crcs.len() * 4
            + self.entries.len() * size_of::<Entry>()
            + self.order.len() * size_of::<(Seq, u32)>()) as u64
    }
}
