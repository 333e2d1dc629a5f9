//! Live log stripes (M-03): their members, checksums, and place in the log.
//!
//! A log stripe knows what became of each of its members, so that nobody looks into the stripes of the others
//! when one of them is written or committed.

use super::covered::CoveredPlaces;
use super::listed::ListNumber;
use super::log_member::{Member, index};
use crate::planted::{Planted, planted};
use crate::scheme::SchemeMemory;
use crate::scheme::dirty_queue::number;
use crate::store::LogRing;
use block::{ChunkIndex, Divisor, Lcn, Seq};
use format::{LogMember, MemberFate, log_stripe_words, push_ended_log_stripes, push_fates, push_log_stripe};
use prefetch::prefetch;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::vec::IntoIter;

#[derive(Clone, Copy, Default)]
struct Entry {
    seq: Seq,
    block: ChunkIndex,
    members: u8,
    live: u8,
    saved: Saved,
    /// The number of the list that said it last, piece by piece.
    said: u8,
}

const _: () = assert!(size_of::<Entry>() == 16, "a log stripe's entry is in one line of the cache");

/// A list that is said piece by piece, in log order: of all, or of what changed.
struct Listing {
    /// Of all that ever were in the order: the next to have its turn, and the first that came later.
    next: u64,
    end: u64,
    /// Of what changed: what ended since the list before, which is said first, and, last, those among which
    /// are the ones with other fates.
    changed: Option<(IntoIter<Seq>, IntoIter<u32>)>,
    /// Those that had to be said before their turn: their records, and where their words are.
    early: BinaryHeap<Early>,
    words: Vec<u32>,
}

/// The first is said first.
type Early = Reverse<(Seq, u32, u32)>;

/// Words of a log stripe that ended in a list of what changed, if each is said by itself.
const ENDED_WORDS: u64 = 4;

/// So many of the order ahead memory is asked for.
const LISTED_AHEAD: usize = 16;

/// What the last list of a checkpoint says of a log stripe.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Saved {
    /// Nothing; it stands among those that changed if it lives.
    #[default]
    No,
    /// What is known of it.
    Yes,
    /// Other fates; it stands among those that changed.
    Changed,
}

/// Log stripes of which the last list says something else.
pub struct ChangedLogStripes {
    /// Of those that it has and that are needed no more, the records.
    pub ended: Vec<Seq>,
    /// Those that it does not have, in log order.
    pub new: Vec<u32>,
    /// Those to whose members it gives other fates.
    pub others: Vec<u32>,
}

/// Places of members that may live, or that a list may ask for: what a journal adds to a list stays far below
/// 2^32, which is [`super::dirty::NO_OWNER`].
pub const PLACES_MAX: u64 = 1 << 31;

/// Members that the processor keeps at hand.
const NEAR_MEMBERS: u64 = 1 << 15;

/// A place as it is kept elsewhere.
#[inline]
fn place(at: usize) -> u32 {
    u32::try_from(at).expect("log stripes are bounded by their places, and the list by its area")
}

/// See the module's documentation.
pub struct LogTable {
    width_max: usize,
    by_width: Divisor,
    parity_count: usize,
    /// Where the members are that a parity covers.
    covered: CoveredPlaces,
    entries: Vec<Entry>,
    /// `width_max` per entry. A *place* is a number of one of them.
    members: Vec<Member>,
    /// m per entry.
    crcs: Vec<u32>,
    free: Vec<u32>,
    /// In log order, for the tail; dead ones are dropped when they reach the front.
    order: VecDeque<(Seq, u32)>,
    /// How many went from the front of it.
    left_order: u64,
    /// How many had been in it when the last list was begun: that has none of those behind.
    listed_order: u64,
    list_number: ListNumber,
    listing: Option<Listing>,
    /// Those that the last list does not have as they are; some may have ended, or be others by now.
    changed: Vec<u32>,
    /// Members of these, at most.
    changed_members: u64,
    /// Of those that it has and that are needed no more, the records.
    ended: Vec<Seq>,
    live_count: u64,
    member_total: u64,
}

impl LogTable {
    /// No log stripe yet, never more than `stripes_max`: the tables are reserved (not touched) at once, so
    /// that they never move.
    pub fn new(width_max: usize, parity_count: usize, stripes_max: usize) -> Self {
        Self {
            width_max,
            by_width: Divisor::new(width_max as u64),
            parity_count,
            covered: CoveredPlaces::default(),
            entries: Vec::with_capacity(stripes_max),
            members: Vec::with_capacity(stripes_max * width_max),
            crcs: Vec::with_capacity(stripes_max * parity_count),
            free: Vec::new(),
            order: VecDeque::new(),
            left_order: 0,
            listed_order: 0,
            list_number: ListNumber::default(),
            listing: None,
            changed: Vec::new(),
            changed_members: 0,
            ended: Vec::new(),
            live_count: 0,
            member_total: 0,
        }
    }

    /// Bytes of such a table with as many log stripes, so many members of which a parity covers. What is
    /// said before its turn may be twice as large as what is in it.
    pub fn bytes_for(width_max: u64, parity_count: u64, stripes: u64, covered: u64) -> SchemeMemory {
        // A list of them may be said while others change.
        let of_changes = 2 * (size_of::<u32>() + size_of::<Seq>());
        let of_list = 2 * size_of::<Early>();
        let entry = (size_of::<Entry>() + size_of::<(Seq, u32)>() + of_changes + of_list) as u64;
        let of_members = width_max * size_of::<Member>() as u64;
        SchemeMemory {
            fixed_bytes: 0,
            dynamic_bytes: stripes * (entry + of_members + parity_count * 4)
                + CoveredPlaces::bytes_for(covered),
            placement_bytes: 0,
        }
    }

    /// Adds a log stripe without members.
    pub fn insert(&mut self, seq: Seq, block: ChunkIndex, crcs: impl Iterator<Item = u32>) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            let id = u32::try_from(self.entries.len()).expect("fewer log stripes than log blocks");
            self.entries.push(Entry::default());
            self.members.resize(self.members.len() + self.width_max, Member::NONE);
            self.crcs.resize(self.crcs.len() + self.parity_count, 0);
            id
        });
        self.entries[index(id)] =
            Entry { seq, block, members: 0, live: 0, saved: Saved::No, said: self.list_number.mark() };
        self.changed.push(id);
        let own = &mut self.crcs[index(id) * self.parity_count..][..self.parity_count];
        own.iter_mut().zip(crcs).for_each(|(own, crc)| *own = crc);
        self.order.push_back((seq, id));
        self.live_count += 1;
        id
    }

    /// Adds the newest version of a chunk as a member.
    #[inline(always)]
    pub fn push_newest(&mut self, id: u32, member: LogMember) {
        self.push(id, Member::new(member, MemberFate::Newest));
        self.entries[index(id)].live += 1;
    }

    /// Adds a member; `false` if it is covered and another log stripe says that of the same version, too.
    pub fn push_member(&mut self, id: u32, member: LogMember, fate: MemberFate) -> bool {
        if fate == MemberFate::Newest {
            self.push_newest(id, member);
            return true;
        }
        let at = self.push(id, Member::new(member, fate));
        fate != MemberFate::Covered || self.covered.insert(&self.members, place(at))
    }

    /// Part of whoever adds one: a member that is handed over in memory would be waited for.
    #[inline(always)]
    fn push(&mut self, id: u32, member: Member) -> usize {
        let entry = &mut self.entries[index(id)];
        let at = index(id) * self.width_max + usize::from(entry.members);
        self.members[at] = member;
        entry.members += 1;
        self.member_total += 1;
        // It is one of those that changed, as it is new.
        self.changed_members += 1;
        at
    }

    /// Whether there are no more places.
    pub fn is_full(&self) -> bool {
        self.free.is_empty() && (self.entries.len() as u64 + 1) * self.by_width.get() > PLACES_MAX
    }

    /// What was the newest version of its chunk is something else now; returns its log stripe if nothing is
    /// the newest version in that any more.
    #[inline]
    pub fn leave(&mut self, place: u32, fate: MemberFate) -> Option<u32> {
        let (id, _) = self.member_at(place);
        self.say_before_change(id);
        let member = &mut self.members[index(place)];
        debug_assert!(member.fate() == MemberFate::Newest, "it was the newest version");
        member.set_fate(fate);
        let entry = &mut self.entries[index(id)];
        entry.live = entry.live.checked_sub(1).expect("live members are counted");
        if entry.live == 0 {
            return Some(id);
        }
        self.mark_changed(id);
        if fate == MemberFate::Covered {
            self.covered.insert(&self.members, place);
        }
        None
    }

    /// No parity covers a version any more; `false` if no log stripe needs it, either.
    pub fn uncover(&mut self, lcn: Lcn, chunk: ChunkIndex) -> bool {
        let Some(place) = self.covered.take(&self.members, (lcn, chunk)) else { return false };
        debug_assert!(self.members[index(place)].is(lcn, chunk, MemberFate::Covered), "only those are found");
        let (id, _) = self.member_at(place);
        self.say_before_change(id);
        self.members[index(place)].set_fate(MemberFate::Superseded);
        if !planted(Planted::ChangesForgetFate) {
            self.mark_changed(id);
        }
        true
    }

    /// A member of a log stripe has another fate.
    #[inline]
    fn mark_changed(&mut self, id: u32) {
        let entry = &mut self.entries[index(id)];
        if entry.saved == Saved::Yes {
            entry.saved = Saved::Changed;
            self.changed_members += u64::from(entry.members);
            self.changed.push(id);
        }
    }

    /// Log stripes of which the last list says something else: the next one has them as they are.
    pub fn take_changes(&mut self) -> ChangedLogStripes {
        debug_assert!(self.listing.as_ref().is_none_or(|listing| listing.changed.is_none()));
        let Self { entries, changed, ended, .. } = self;
        let (mut new, mut others) = (Vec::new(), Vec::new());
        for id in changed.drain(..) {
            let entry = &mut entries[index(id)];
            if entry.members > 0 {
                match std::mem::replace(&mut entry.saved, Saved::Yes) {
                    Saved::No => new.push(id),
                    Saved::Changed => others.push(id),
                    Saved::Yes => {}
                }
            }
        }
        new.sort_unstable_by_key(|&id| entries[index(id)].seq);
        let ended = std::mem::take(ended);
        self.changed_members = 0;
        self.listed_order = self.end_of_order();
        ChangedLogStripes { ended, new, others }
    }

    /// How many ever were in the order.
    fn end_of_order(&self) -> u64 {
        self.left_order + number(self.order.len())
    }

    /// The last list has everything as it is.
    pub fn all_saved(&mut self) {
        self.ended.clear();
        self.changed_members = 0;
        for id in self.changed.drain(..) {
            let entry = &mut self.entries[index(id)];
            if entry.members > 0 {
                entry.saved = Saved::Yes;
            }
        }
        self.listed_order = self.end_of_order();
    }

    /// How much there is of what changed since the last list.
    pub fn change_count(&self) -> usize {
        self.changed.len() + self.ended.len()
    }

    /// Words that those of which the last list says something else take at most in a list of what changed.
    pub fn changed_words(&self) -> u64 {
        let heads = number(self.changed.len()) * log_stripe_words(0, number(self.parity_count));
        heads + self.changed_members * (log_stripe_words(1, 0) - log_stripe_words(0, 0))
    }

    /// Words that what ended since the last list takes at most in a list of what changed.
    pub fn ended_words(&self) -> u64 {
        number(self.ended.len()) * ENDED_WORDS
    }

    /// A list of them is said from now on piece by piece, as they are now; the next changes are those since.
    /// One of what changed that was begun comes to nothing.
    pub fn begin_list(&mut self) {
        debug_assert!(self.listing.as_ref().is_none_or(|listing| listing.changed.is_some()));
        (self.changed, self.changed_members, self.ended) = (Vec::new(), 0, Vec::new());
        self.list(self.left_order, None);
    }

    /// The same of what changed since the last list.
    pub fn begin_changes(&mut self) {
        debug_assert!(self.listing.is_none(), "one list is said at a time");
        let (ended, changed) = (std::mem::take(&mut self.ended), std::mem::take(&mut self.changed));
        self.changed_members = 0;
        self.list(self.listed_order, Some((ended.into_iter(), changed.into_iter())));
    }

    fn list(&mut self, next: u64, changed: Option<(IntoIter<Seq>, IntoIter<u32>)>) {
        self.list_number.advance(self.entries.iter_mut().map(|entry| &mut entry.said));
        let end = self.end_of_order();
        self.listed_order = end;
        self.listing = Some(Listing { next, end, changed, early: BinaryHeap::new(), words: Vec::new() });
    }

    /// Says about `count` more; `false` if these were the last.
    pub fn say_more(&mut self, words: &mut Vec<u32>, count: usize) -> bool {
        let Some(mut listing) = self.listing.take() else { return false };
        if let Some((ended, _)) = &mut listing.changed
            && ended.len() > 0
        {
            let some: Vec<Seq> = ended.take(count).collect();
            push_ended_log_stripes(words, some.into_iter());
            self.listing = Some(listing);
            return true;
        }
        let is_of_changes = listing.changed.is_some();
        for _ in 0..count {
            let here = self.listed_at(&mut listing);
            let is_due = |&Reverse((early, ..)): &Early| here.is_none_or(|(seq, _)| early < seq);
            if listing.early.peek().is_some_and(is_due)
                && let Some(Reverse((_, start, end))) = listing.early.pop()
            {
                if let Some(&Reverse((_, next, end))) = listing.early.peek() {
                    prefetch(&listing.words[index(next)]);
                    prefetch(&listing.words[index(end) - 1]);
                }
                words.extend_from_slice(&listing.words[index(start)..index(end)]);
                continue;
            }
            if let Some((seq, id)) = here {
                listing.next += 1;
                if self.entries[index(id)].seq == seq {
                    self.say(id, is_of_changes, words);
                }
                continue;
            }
            let other = listing.changed.as_mut().and_then(|(_, changed)| changed.next());
            let Some(other) = other else { return false };
            self.say(other, is_of_changes, words);
        }
        self.listing = Some(listing);
        true
    }

    /// The log stripe whose turn it is, if there is one: it may have ended, and been said, since.
    fn listed_at(&self, listing: &mut Listing) -> Option<(Seq, u32)> {
        listing.next = listing.next.max(self.left_order);
        let at = usize::try_from(listing.next - self.left_order).expect("a place of what is in memory");
        if let Some(&(_, later)) = self.order.get(at + LISTED_AHEAD) {
            prefetch(&self.entries[index(later)]);
            prefetch(&self.members[index(later) * self.width_max]);
        }
        self.order.get(at).copied().filter(|_| listing.next < listing.end)
    }

    /// Says a log stripe, or of what changed what did of it, unless it was said, or is none that the list
    /// has.
    fn say(&mut self, id: u32, is_of_changes: bool, words: &mut Vec<u32>) {
        let entry = &mut self.entries[index(id)];
        if entry.members == 0 || !self.list_number.say(&mut entry.said) {
            return;
        }
        match std::mem::replace(&mut entry.saved, Saved::Yes) {
            Saved::Changed if is_of_changes => self.push_fates(words, id),
            Saved::Yes if is_of_changes => {}
            Saved::No | Saved::Changed | Saved::Yes => self.push_item(words, id),
        }
    }

    /// Appends what became of the members of a log stripe.
    pub fn push_fates(&self, words: &mut Vec<u32>, id: u32) {
        let fates = (0..self.member_count(id)).map(|i| self.saved_fate(id, i));
        push_fates(words, self.seq(id), fates);
    }

    /// A log stripe is going to change: a list that has still to say it says it as it was.
    #[inline]
    fn say_before_change(&mut self, id: u32) {
        if self.listing.is_some() && self.entries[index(id)].said != self.list_number.mark() {
            self.say_early(id);
        }
    }

    #[cold]
    fn say_early(&mut self, id: u32) {
        if planted(Planted::ListSaysFatesLater) {
            return;
        }
        let Some(mut listing) = self.listing.take() else { return };
        let start = listing.words.len();
        self.say(id, listing.changed.is_some(), &mut listing.words);
        if listing.words.len() > start {
            listing.early.push(Reverse((self.seq(id), place(start), place(listing.words.len()))));
        }
        self.listing = Some(listing);
    }

    /// Appends a log stripe as a list has it, with the fates of its members: so whoever loads it need not
    /// look into the table for these.
    pub fn push_item(&self, words: &mut Vec<u32>, id: u32) {
        let members = (0..self.member_count(id)).map(|i| (self.member(id, i), self.saved_fate(id, i)));
        push_log_stripe(words, (self.seq(id), self.block(id)), self.crcs(id), members);
    }

    /// The fate of a member as a list has it.
    pub fn saved_fate(&self, id: u32, index: usize) -> MemberFate {
        match self.fate(id, index) {
            MemberFate::Superseded if planted(Planted::SaveSupersededCovered) => MemberFate::Covered,
            fate @ (MemberFate::Newest | MemberFate::Covered | MemberFate::Superseded) => fate,
        }
    }

    /// Whether the member at a place is a version that is the newest one of its chunk.
    pub fn has_newest(&self, place: u32, lcn: Lcn, chunk: ChunkIndex) -> bool {
        self.members[index(place)].is(lcn, chunk, MemberFate::Newest)
    }

    /// Whether there are so many members that the processor keeps few of them at hand.
    pub fn is_far(&self) -> bool {
        self.member_total > NEAR_MEMBERS
    }

    /// Asks for the member at a place, and for its log stripe.
    #[inline]
    pub fn prefetch(&self, place: u32) {
        let (id, _) = self.member_at(place);
        prefetch(&self.members[index(place)]);
        prefetch(&self.entries[index(id)]);
    }

    /// The place of a member.
    #[inline]
    pub fn place(&self, id: u32, index: usize) -> u32 {
        place(self.at(id, index))
    }

    /// The log stripe of the member at a place, and which of its members that is.
    #[inline]
    pub fn member_at(&self, place: u32) -> (u32, usize) {
        let id = self.by_width.quotient(place.into());
        let index = self.by_width.remainder(place.into());
        (u32::try_from(id).expect("not more than places"), usize::try_from(index).expect("a member"))
    }

    #[inline]
    fn at(&self, id: u32, nth: usize) -> usize {
        index(id) * self.width_max + nth
    }

    /// Live members.
    pub fn live_members(&self, id: u32) -> u8 {
        self.entries[index(id)].live
    }

    /// A covered version is no member of a log stripe any more.
    pub fn disown(&mut self, id: u32, index: usize) {
        let place = self.place(id, index);
        self.covered.remove(&self.members, place);
    }

    /// Ends a log stripe whose members were disowned.
    pub fn release(&mut self, id: u32) {
        self.say_before_change(id);
        let entry = &mut self.entries[index(id)];
        let members = std::mem::take(&mut entry.members);
        if std::mem::take(&mut entry.saved) != Saved::No && !planted(Planted::ChangesKeepEnded) {
            self.ended.push(entry.seq);
        }
        self.member_total -= u64::from(members);
        self.free.push(id);
        self.live_count -= 1;
        while let Some(&(seq, id)) = self.order.front() {
            let entry = &self.entries[index(id)];
            if entry.seq == seq && entry.members > 0 {
                break;
            }
            self.order.pop_front();
            self.left_order += u64::from(!planted(Planted::ListSkipsLogStripes));
        }
    }

    /// Members, live or not.
    pub fn member_count(&self, id: u32) -> usize {
        usize::from(self.entries[index(id)].members)
    }

    /// One member (its `crc` is what was recorded).
    pub fn member(&self, id: u32, index: usize) -> LogMember {
        let member = self.members[self.at(id, index)];
        LogMember { lcn: member.lcn(), chunk: member.chunk, crc: member.crc }
    }

    /// What a member is to its data stripe.
    pub fn fate(&self, id: u32, index: usize) -> MemberFate {
        self.members[self.at(id, index)].fate()
    }

    /// Checksums of the log chunks.
    pub fn crcs(&self, id: u32) -> &[u32] {
        &self.crcs[index(id) * self.parity_count..][..self.parity_count]
    }

    /// First block of the log chunks.
    pub fn block(&self, id: u32) -> ChunkIndex {
        self.entries[index(id)].block
    }

    /// The record that made the log stripe.
    pub fn seq(&self, id: u32) -> Seq {
        self.entries[index(id)].seq
    }

    /// Live log stripes, in log order.
    pub fn live_ids(&self) -> impl Iterator<Item = u32> {
        self.order
            .iter()
            .filter(|&&(seq, id)| self.entries[index(id)].seq == seq && self.member_count(id) > 0)
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
        (self.members.len() * size_of::<Member>()
            + self.crcs.len() * 4
            + self.entries.len() * size_of::<Entry>()
            + self.order.len() * size_of::<(Seq, u32)>()
            + self.changed.capacity() * size_of::<u32>()
            + self.ended.capacity() * size_of::<Seq>()) as u64
            + self.covered.memory_bytes()
            + self.listing.as_ref().map_or(0, Listing::memory_bytes)
    }
}

impl Listing {
    fn memory_bytes(&self) -> u64 {
        let of_changes = self
            .changed
            .as_ref()
            .map_or(0, |(ended, changed)| ended.len() * size_of::<Seq>() + changed.len() * size_of::<u32>());
        let of_early = self.words.capacity() * size_of::<u32>() + self.early.capacity() * size_of::<Early>();
        number(of_changes + of_early)
    }
}
