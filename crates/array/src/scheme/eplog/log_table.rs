//! Live log stripes (M-03): their members, checksums, and place in the log.
//!
//! A log stripe knows what became of each of its members, so that nobody looks into the stripes of the others
//! when one of them is written or committed.

use crate::hash::StripeMap;
use crate::scheme::SchemeMemory;
use crate::store::LogRing;
use block::{ChunkAddr, ChunkIndex, Lcn, Seq};
use format::{LogMember, MemberFate};
use std::collections::VecDeque;

#[derive(Clone, Copy, Default)]
struct Entry {
    seq: Seq,
    block: ChunkIndex,
    members: u16,
    live: u16,
}

/// Bytes of an entry of the map from covered versions to their log stripes.
const OWNER_BYTES: u64 = 17;

/// A chunk as a key of the map.
fn key(addr: ChunkAddr) -> u64 {
    u64::from(addr.chunk.get()) << 16 | u64::from(addr.dev.get())
}

/// See the module's documentation.
pub struct LogTable {
    width_max: usize,
    parity_count: usize,
    /// The log stripe that a version is a member of which a parity covers.
    covered: StripeMap<u32>,
    entries: Vec<Entry>,
    /// `width_max` per entry.
    members: Vec<(LogMember, MemberFate)>,
    /// m per entry.
    crcs: Vec<u32>,
    free: Vec<u32>,
    /// In log order, for the tail; dead ones are dropped when they reach the front.
    order: VecDeque<(Seq, u32)>,
    live_count: u64,
    member_total: u64,
}

impl LogTable {
    /// No log stripe yet, never more than `stripes_max`: the tables are reserved (not touched) at once, so
    /// that they never move.
    pub fn new(width_max: usize, parity_count: usize, stripes_max: usize) -> Self {
        Self {
            width_max,
            parity_count,
            covered: StripeMap::default(),
            entries: Vec::with_capacity(stripes_max),
            members: Vec::with_capacity(stripes_max * width_max),
            crcs: Vec::with_capacity(stripes_max * parity_count),
            free: Vec::new(),
            order: VecDeque::new(),
            live_count: 0,
            member_total: 0,
        }
    }

    /// Bytes of such a table with as many log stripes, so many members of which a parity covers. The map of
    /// these may be twice as large as what is in it.
    pub fn bytes_for(width_max: u64, parity_count: u64, stripes: u64, covered: u64) -> SchemeMemory {
        let entry = (size_of::<Entry>() + size_of::<(Seq, u32)>()) as u64;
        let of_members = width_max * size_of::<(LogMember, MemberFate)>() as u64;
        SchemeMemory {
            fixed_bytes: 0,
            dynamic_bytes: stripes * (entry + of_members + parity_count * 4) + covered * 2 * OWNER_BYTES,
            placement_bytes: 0,
        }
    }

    /// Adds a log stripe without members.
    pub fn insert(&mut self, seq: Seq, block: ChunkIndex, crcs: impl Iterator<Item = u32>) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            let id = u32::try_from(self.entries.len()).expect("fewer log stripes than log blocks");
            self.entries.push(Entry::default());
            let none =
                (LogMember { lcn: Lcn::new(0), chunk: ChunkIndex::NONE, crc: 0 }, MemberFate::Superseded);
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

    /// Adds a member at `addr`; `false` if it is covered and another log stripe says that of its chunk, too.
    pub fn push_member(&mut self, id: u32, member: LogMember, addr: ChunkAddr, fate: MemberFate) -> bool {
        let entry = &mut self.entries[id as usize];
        let at = id as usize * self.width_max + usize::from(entry.members);
        self.members[at] = (member, fate);
        entry.members += 1;
        self.member_total += 1;
        entry.live += u16::from(fate == MemberFate::Newest);
        fate != MemberFate::Covered || self.covered.insert(key(addr), id).is_none()
    }

    /// What was the newest version of its chunk is something else now; returns its log stripe if nothing is
    /// the newest version in that any more.
    pub fn leave(&mut self, id: u32, addr: ChunkAddr, lcn: Lcn, fate: MemberFate) -> Option<u32> {
        self.settle(id, lcn, addr, fate);
        let entry = &mut self.entries[id as usize];
        entry.live = entry.live.checked_sub(1).expect("live members are counted");
        if entry.live == 0 {
            return Some(id);
        }
        if fate == MemberFate::Covered {
            self.covered.insert(key(addr), id);
        }
        None
    }

    /// No parity covers a version any more; `false` if no log stripe needs it, either. Which members are
    /// covered may be what a list said that nothing could be compared with.
    pub fn uncover(&mut self, addr: ChunkAddr, lcn: Lcn) -> bool {
        let id = self.covered.get(&key(addr)).copied();
        let Some(at) = id.and_then(|id| self.find(id, lcn, addr.chunk, MemberFate::Covered)) else {
            return false;
        };
        self.covered.remove(&key(addr));
        self.members[at].1 = MemberFate::Superseded;
        true
    }

    /// Where in `members` a version is, as a member of that fate.
    fn find(&self, id: u32, lcn: Lcn, chunk: ChunkIndex, fate: MemberFate) -> Option<usize> {
        let first = self.place(id, 0);
        let members = self.members[first..][..self.member_count(id)].iter();
        let mut at = (first..).zip(members);
        at.find(|(_, (m, known))| m.lcn == lcn && m.chunk == chunk && *known == fate).map(|(at, _)| at)
    }

    /// Whether a log stripe has a version as the newest one of its chunk.
    pub fn has_newest(&self, id: u32, lcn: Lcn, chunk: ChunkIndex) -> bool {
        self.find(id, lcn, chunk, MemberFate::Newest).is_some()
    }

    fn place(&self, id: u32, index: usize) -> usize {
        id as usize * self.width_max + index
    }

    fn settle(&mut self, id: u32, lcn: Lcn, addr: ChunkAddr, fate: MemberFate) {
        let index = self.index_of(id, lcn, addr.chunk);
        let at = self.place(id, index);
        self.members[at].1 = fate;
    }

    /// Live members.
    pub fn live_members(&self, id: u32) -> u16 {
        self.entries[id as usize].live
    }

    /// A covered version is no member of a log stripe any more.
    pub fn disown(&mut self, id: u32, addr: ChunkAddr) {
        if self.covered.get(&key(addr)) == Some(&id) {
            self.covered.remove(&key(addr));
        }
    }

    /// Ends a log stripe whose members were disowned.
    pub fn release(&mut self, id: u32) {
        let members = std::mem::take(&mut self.entries[id as usize].members);
        self.member_total -= u64::from(members);
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
        self.members[self.place(id, index)].0
    }

    /// What a member is to its data stripe.
    pub fn fate(&self, id: u32, index: usize) -> MemberFate {
        self.members[self.place(id, index)].1
    }

    /// Which member a version of a chunk is.
    pub fn index_of(&self, id: u32, lcn: Lcn, chunk: ChunkIndex) -> usize {
        let members = &self.members[self.place(id, 0)..][..self.member_count(id)];
        members
            .iter()
            .position(|(m, _)| m.lcn == lcn && m.chunk == chunk)
            .expect("the owner lists its members")
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

    /// The chunks whose newest versions are in live log stripes before a position of the log.
    pub fn newest_before(&self, ring: &LogRing, before: u64) -> impl Iterator<Item = Lcn> {
        let ids = self.live_ids().take_while(move |&id| ring.position_of(self.block(id)) < before);
        ids.flat_map(move |id| {
            let newest = (0..self.member_count(id)).filter(move |&i| self.fate(id, i) == MemberFate::Newest);
            newest.map(move |i| self.member(id, i).lcn)
        })
    }

    /// How many log stripes live.
    pub fn live_count(&self) -> u64 {
        self.live_count
    }

    /// Members of all live log stripes.
    pub fn member_total(&self) -> u64 {
        self.member_total
    }

    /// The position of the oldest live log stripe, or the head if there is none.
    pub fn oldest_position(&self, ring: &LogRing) -> u64 {
        let Some(&(_, id)) = self.order.front() else { return ring.head() };
        ring.position_of(self.block(id))
    }

    /// Bytes that grow with what is uncommitted.
    pub fn dynamic_bytes(&self) -> u64 {
        (self.members.len() * size_of::<(LogMember, MemberFate)>()
            + self.crcs.len() * 4
            + self.entries.len() * size_of::<Entry>()
            + self.order.len() * size_of::<(Seq, u32)>()) as u64
            + self.covered.capacity() as u64 * OWNER_BYTES
    }
}
