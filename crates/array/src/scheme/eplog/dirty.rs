//! Stripes whose parity is out of date, and the versions of their columns that the parity
//! still covers (M-02).

use super::listed::ListNumber;
use super::places::StripePlaces;
use crate::hash::StripeSet;
use crate::planted::{Planted, planted};
use crate::scheme::SchemeMemory;
use crate::scheme::dirty_queue::{DirtyQueue, number};
use block::{ChunkIndex, StripeId};
use format::{StripeChunk, push_clean_stripes, push_updated_columns, updated_columns_words};
use prefetch::{bring_in, prefetch, with_later};
use std::ops::Range;
use std::vec::IntoIter;

const UPDATED_BYTES: u64 = size_of::<Updated>() as u64;
const STRIPE_BYTES: u64 = size_of::<StripeId>() as u64;
/// Bytes of what lists say of a stripe, and of its place among those that changed, and among those of which
/// a list is being said.
const CHANGE_BYTES: u64 = MARKS_BYTES + 2 * PLACE_NUMBER_BYTES;
/// Both are compared with the types below.
const MARKS_BYTES: u64 = 4;
const PLACE_NUMBER_BYTES: u64 = 4;
/// Dirty stripes that are looked at for what to commit first, and of which are chosen, at most: nothing else
/// happens meanwhile.
const LOOKED_MAX: usize = 1 << 15;
const CHOSEN_MAX: usize = 1 << 9;
/// Places of dirty stripes that are looked up together.
const FOUND_AT_ONCE: usize = 64;
/// How far from where a stripe of a log stripe of a list is expected it is looked for: writes that were under
/// way together may have ended in any order.
const GUESS_AROUND: usize = 32;
/// As a committed version: the column was not updated since the last commit.
pub const SAME: StripeChunk = StripeChunk { chunk: ChunkIndex::new(u32::MAX), crc: 0 };

/// A column that was updated since the last commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Updated {
    /// The version that the stripe's parity covers (`NONE`: the column was zeros).
    pub committed: StripeChunk,
    /// Where the newest version is among the members of log stripes; [`NO_OWNER`] if the column is zeros now.
    pub owner: u32,
}

const _: () = assert!(size_of::<Marks>() == 4 && size_of::<u32>() == 4, "as CHANGE_BYTES counts");

/// What the last list of a checkpoint says of a dirty stripe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Saved {
    /// Nothing, and it stands among those that changed if it is there.
    No,
    /// What is known of it.
    Yes,
    /// Something else; it stands among those that changed.
    Changed,
}

/// What is known of a dirty stripe as a whole.
#[derive(Clone, Copy)]
struct Marks {
    /// How many of its columns were updated.
    updated: u16,
    saved: Saved,
    /// The number of the list that said it last, piece by piece.
    said: u8,
}

/// Places that are swept for what a list that is said piece by piece has not said, for each item.
const SWEPT_PER_ITEM: usize = 64;

/// A list that is said piece by piece: of all, or of what changed.
#[derive(Default)]
struct Listing {
    /// Of all: where in the queue it goes on, and where what came later begins.
    queued: Range<i64>,
    /// Places that are swept behind that, for those that are not in the queue, or not where they were.
    places: Range<usize>,
    /// Of what changed: what is clean since the list before, which is said first, and the places of those of
    /// which that says something else.
    changed: Option<(IntoIter<StripeId>, IntoIter<u32>)>,
    /// What had to be said before its turn.
    early: Vec<u32>,
}

/// Words of a clean stripe in a list of what changed, if each is said by itself.
const CLEANED_WORDS: u64 = 4;

/// What is no place of a member.
pub const NO_OWNER: u32 = u32::MAX;

/// In place of the stripe where there is none.
const NO_STRIPE: StripeId = StripeId::new(u64::MAX);

const UNCHANGED: Updated = Updated { committed: SAME, owner: NO_OWNER };

/// A place, to look something up by.
#[inline]
fn index(place: u32) -> usize {
    place as usize
}

/// See the module's documentation.
pub struct DirtyStripes {
    data_count: usize,
    /// Where in `stripes` a dirty stripe is. Its bits alone answer for clean ones, the common case of a read.
    places: StripePlaces,
    /// By place; [`NO_STRIPE`] at those that are free.
    stripes: Vec<StripeId>,
    /// k entries per place.
    columns: Vec<Updated>,
    /// By place.
    marks: Vec<Marks>,
    /// Places of those that the last list does not have as they are; some may be free or taken again.
    changed: Vec<u32>,
    /// Updated columns of these, at most.
    changed_columns: u64,
    /// What the last list has that is clean since; it may be dirty again.
    cleaned: Vec<StripeId>,
    free: Vec<u32>,
    queue: DirtyQueue,
    list_number: ListNumber,
    listing: Option<Listing>,
    count: u64,
    /// How many dirty stripes there are of which so many columns were updated.
    with_updated: Vec<u64>,
    /// Columns of all dirty stripes that were updated.
    updated_total: u64,
}

impl DirtyStripes {
    /// All stripes clean. Room for what is known of `dirty_max` is reserved (not touched) at once: it does
    /// not move as long as there are no more.
    pub fn new(stripe_count: u64, data_count: usize, dirty_max: usize) -> Self {
        let mut dirty = Self {
            data_count,
            places: StripePlaces::new(stripe_count),
            stripes: Vec::new(),
            columns: Vec::new(),
            marks: Vec::new(),
            changed: Vec::new(),
            changed_columns: 0,
            cleaned: Vec::new(),
            free: Vec::new(),
            queue: DirtyQueue::default(),
            list_number: ListNumber::default(),
            listing: None,
            count: 0,
            with_updated: vec![0; data_count + 1],
            updated_total: 0,
        };
        dirty.reserve(dirty_max);
        dirty
    }

    /// Bytes of such a table with as many stripes dirty: those for every stripe, and those that grow. The
    /// queue may be twice as large as what is in it.
    pub fn bytes_for(stripe_count: u64, data_count: u64, dirty: u64) -> SchemeMemory {
        let (fixed_bytes, places_bytes) = StripePlaces::bytes_for(stripe_count, dirty);
        SchemeMemory {
            fixed_bytes,
            dynamic_bytes: places_bytes
                + dirty * (data_count * UPDATED_BYTES + 5 * STRIPE_BYTES + CHANGE_BYTES),
            placement_bytes: 0,
        }
    }

    /// Asks for where a stripe's place is.
    #[inline]
    pub fn prefetch_place(&self, stripe: StripeId) {
        self.places.prefetch(stripe);
    }

    /// Asks for what is known of the first and the last of a stretch of columns of a stripe, between which
    /// there is hardly more.
    #[inline]
    pub fn prefetch(&self, stripe: StripeId, columns: Range<usize>) {
        if let Some(place) = self.place_of(stripe) {
            let first = place * self.data_count;
            prefetch(&self.columns[first + columns.start]);
            prefetch(&self.columns[first + columns.end - 1]);
            prefetch(&self.marks[place]);
        }
    }

    #[inline]
    fn place_of(&self, stripe: StripeId) -> Option<usize> {
        self.places.get(stripe).map(index)
    }

    /// The same for stripes that are nearly always dirty, and mostly in the order of their places: `guess` is
    /// where the next one is looked for first, no further from it than `around`.
    fn place_from(&self, guess: &mut usize, around: usize, stripe: StripeId) -> Option<usize> {
        let is_at = |place: &usize| self.stripes.get(*place) == Some(&stripe);
        let sides = (1..=around).flat_map(|by| [guess.checked_add(by), guess.checked_sub(by)]);
        let place = match std::iter::once(Some(*guess)).chain(sides).flatten().find(is_at) {
            Some(place) => place,
            None => self.place_of(stripe)?,
        };
        *guess = place + 1;
        Some(place)
    }

    fn entry(&self, stripe: StripeId, column: usize) -> Option<usize> {
        self.place_of(stripe).map(|place| place * self.data_count + column)
    }

    /// What is known of a column if it was updated since the last commit.
    pub fn updated(&self, stripe: StripeId, column: usize) -> Option<Updated> {
        self.entry(stripe, column).map(|at| self.columns[at]).filter(|updated| updated.committed != SAME)
    }

    /// What is known of the columns of a dirty stripe (committed [`SAME`]: not updated).
    pub fn columns(&self, stripe: StripeId) -> Option<&[Updated]> {
        self.place_of(stripe).map(|place| &self.columns[place * self.data_count..][..self.data_count])
    }

    /// A column is updated, and the newest version has an owner. The version before was `old`: if the parity
    /// covers that, it is the committed one from now on and the stripe dirty; otherwise returns who owned it.
    #[inline]
    pub fn update(&mut self, stripe: StripeId, column: usize, old: StripeChunk, owner: u32) -> Option<u32> {
        let place = match self.place_of(stripe) {
            Some(place) => place,
            None => self.begin(stripe),
        };
        let at = place * self.data_count + column;
        if self.columns[at].committed == SAME {
            self.say_before_change(place);
            self.columns[at] = Updated { committed: old, owner };
            self.updated_total += 1;
            let updated = &mut self.marks[place].updated;
            self.with_updated[usize::from(*updated)] -= 1;
            *updated += 1;
            self.with_updated[usize::from(*updated)] += 1;
            match self.marks[place].saved {
                Saved::Yes => self.mark_changed(place, Saved::Changed),
                Saved::No | Saved::Changed if planted(Planted::AnnouncesTooLittle) => {}
                Saved::No | Saved::Changed => self.changed_columns += 1,
            }
            return None;
        }
        Some(std::mem::replace(&mut self.columns[at].owner, owner))
    }

    fn mark_changed(&mut self, place: usize, saved: Saved) {
        if planted(Planted::ChangesForgetColumn) && saved == Saved::Changed {
            return;
        }
        self.marks[place].saved = saved;
        self.changed_columns += u64::from(self.marks[place].updated);
        self.changed.push(u32::try_from(place).expect("fewer dirty stripes than chunk indices"));
    }

    /// What the last list has that is clean since.
    pub fn take_cleaned(&mut self) -> Vec<StripeId> {
        std::mem::take(&mut self.cleaned)
    }

    /// Looks at the dirty stripes of which the last list says something else, each once: the next one has
    /// them.
    pub fn take_changed(&mut self, mut look: impl FnMut(StripeId, &[Updated])) {
        debug_assert!(self.listing.as_ref().is_none_or(|listing| listing.changed.is_none()));
        let mut changed = std::mem::take(&mut self.changed);
        for (place, later) in with_later(changed.iter().map(|&place| index(place))) {
            if let Some(later) = later {
                prefetch(&self.stripes[later]);
                prefetch(&self.columns[later * self.data_count]);
            }
            let stripe = self.stripes[place];
            if stripe != NO_STRIPE && self.marks[place].saved != Saved::Yes {
                self.marks[place].saved = Saved::Yes;
                look(stripe, &self.columns[place * self.data_count..][..self.data_count]);
            }
        }
        changed.clear();
        (self.changed, self.changed_columns) = (changed, 0);
    }

    /// The last list has everything as it is.
    pub fn all_saved(&mut self) {
        self.cleaned.clear();
        for (place, later) in with_later(self.changed.iter().map(|&place| index(place))) {
            later.into_iter().for_each(|later| prefetch(&self.marks[later]));
            if self.stripes[place] != NO_STRIPE {
                self.marks[place].saved = Saved::Yes;
            }
        }
        self.changed.clear();
        self.changed_columns = 0;
    }

    /// How much there is of what changed since the last list.
    pub fn change_count(&self) -> usize {
        self.changed.len() + self.cleaned.len()
    }

    /// Words that those of which the last list says something else take at most in a list of what changed.
    pub fn changed_words(&self) -> u64 {
        let columns = number(self.data_count);
        let heads = number(self.changed.len()) * updated_columns_words(columns, 0);
        heads + self.changed_columns * (updated_columns_words(0, 1) - updated_columns_words(0, 0))
    }

    /// Words that what is clean since the last list takes at most in a list of what changed.
    pub fn cleaned_words(&self) -> u64 {
        number(self.cleaned.len()) * CLEANED_WORDS
    }

    /// A list of them is said from now on piece by piece, as they are now; the next changes are those since.
    /// One of what changed that was begun comes to nothing.
    pub fn begin_list(&mut self) {
        debug_assert!(self.listing.as_ref().is_none_or(|listing| listing.changed.is_some()));
        (self.changed, self.changed_columns, self.cleaned) = (Vec::new(), 0, Vec::new());
        let (queued, places) = (self.queue.places(), 0..self.stripes.len());
        self.list(Listing { queued, places, ..Listing::default() });
    }

    /// The same of what changed since the last list.
    pub fn begin_changes(&mut self) {
        debug_assert!(self.listing.is_none(), "one list is said at a time");
        let (cleaned, changed) = (self.take_cleaned(), std::mem::take(&mut self.changed));
        self.changed_columns = 0;
        let cleaned = if planted(Planted::ChangesKeepClean) { Vec::new() } else { cleaned };
        let changed = Some((cleaned.into_iter(), changed.into_iter()));
        self.list(Listing { changed, ..Listing::default() });
    }

    fn list(&mut self, listing: Listing) {
        self.list_number.advance(self.marks.iter_mut().map(|marks| &mut marks.said));
        self.listing = Some(listing);
    }

    /// Says about `count` more; `false` if these were the last.
    pub fn say_more(&mut self, words: &mut Vec<u32>, count: usize) -> bool {
        let Some(mut listing) = self.listing.take() else { return false };
        if planted(Planted::EarlyBeforeClean) {
            words.append(&mut listing.early);
        }
        if let Some((cleaned, _)) = &mut listing.changed
            && cleaned.len() > 0
        {
            // Before all others: a stripe may be dirty anew.
            let some: Vec<StripeId> = cleaned.take(count).collect();
            push_clean_stripes(words, some.into_iter());
            self.listing = Some(listing);
            return true;
        }
        words.append(&mut listing.early);
        if let Some((_, changed)) = &mut listing.changed {
            let some: Vec<usize> = changed.take(count).map(index).collect();
            let is_over = changed.len() == 0;
            for (place, later) in with_later(some.into_iter()) {
                if let Some(later) = later {
                    prefetch(&self.stripes[later]);
                    prefetch(&self.columns[later * self.data_count]);
                }
                self.say(place, true, words);
            }
            self.listing = (!is_over).then_some(listing);
            return !is_over;
        }
        let some = self.queue.next_of(&mut listing.queued, count);
        let found: Vec<usize> = self.places_of(some).collect();
        found.into_iter().for_each(|place| _ = self.say(place, false, words));
        if listing.queued.is_empty() {
            let mut swept = listing.places.by_ref().take(count.saturating_mul(SWEPT_PER_ITEM));
            // Those passed over since are not where they were: nearly all may be said here.
            (0..count).for_each(|_| _ = swept.find(|&place| self.say(place, false, words)));
        }
        let is_over = listing.queued.is_empty() && listing.places.is_empty();
        self.listing = (!is_over).then_some(listing);
        !is_over
    }

    /// Says what is at a place, of what changed only if the last list says something else; `false` if it was
    /// said, or is none that the list has.
    fn say(&mut self, place: usize, is_of_changes: bool, words: &mut Vec<u32>) -> bool {
        let (stripe, marks) = (self.stripes[place], &mut self.marks[place]);
        if stripe == NO_STRIPE || !self.list_number.say(&mut marks.said) {
            return false;
        }
        let saved = std::mem::replace(&mut marks.saved, Saved::Yes);
        if !is_of_changes || saved != Saved::Yes {
            push_item(words, stripe, &self.columns[place * self.data_count..][..self.data_count]);
        }
        true
    }

    /// What is at a place is going to change: a list that has still to say it says it as it was.
    #[inline]
    fn say_before_change(&mut self, place: usize) {
        if self.listing.is_some() && self.marks[place].said != self.list_number.mark() {
            self.say_early(place);
        }
    }

    #[cold]
    fn say_early(&mut self, place: usize) {
        if planted(Planted::ListSaysLater) {
            return;
        }
        let Some(mut listing) = self.listing.take() else { return };
        self.say(place, listing.changed.is_some(), &mut listing.early);
        self.listing = Some(listing);
    }

    /// Columns of all dirty stripes that were updated.
    pub fn updated_total(&self) -> u64 {
        self.updated_total
    }

    /// The same, to say at assembly whose the newest version is. `guess` says where the stripe may be; begin
    /// with 0.
    pub fn updated_mut(
        &mut self,
        guess: &mut usize,
        stripe: StripeId,
        column: usize,
    ) -> Option<&mut Updated> {
        let at = self.place_from(guess, GUESS_AROUND, stripe)? * self.data_count + column;
        Some(&mut self.columns[at]).filter(|updated| updated.committed != SAME)
    }

    /// Makes room for so many dirty stripes.
    pub fn reserve(&mut self, stripes: usize) {
        self.places.reserve(stripes);
        self.stripes.reserve(stripes);
        self.columns.reserve(stripes * self.data_count);
        self.marks.reserve(stripes);
    }

    /// So many stripes become dirty at once; none is yet.
    pub fn expect(&mut self, stripes: usize) {
        self.reserve(stripes);
        self.places.expect(stripes);
        bring_in(self.stripes.spare_capacity_mut().get_mut(..stripes).unwrap_or_default());
        bring_in(self.columns.spare_capacity_mut().get_mut(..stripes * self.data_count).unwrap_or_default());
        bring_in(self.marks.spare_capacity_mut().get_mut(..stripes).unwrap_or_default());
    }

    /// A stripe becomes dirty and is given a place.
    fn begin(&mut self, stripe: StripeId) -> usize {
        let number = self.free.pop().unwrap_or_else(|| {
            self.stripes.push(stripe);
            self.columns.resize(self.columns.len() + self.data_count, UNCHANGED);
            self.marks.push(Marks { updated: 0, saved: Saved::No, said: 0 });
            u32::try_from(self.stripes.len() - 1).expect("fewer dirty stripes than chunk indices")
        });
        self.places.insert(stripe, number);
        let place = index(number);
        self.stripes[place] = stripe;
        self.columns[place * self.data_count..][..self.data_count].fill(UNCHANGED);
        (self.marks[place].said, self.marks[place].updated) = (self.list_number.mark(), 0);
        self.mark_changed(place, Saved::No);
        self.with_updated[0] += 1;
        self.count += 1;
        self.queue.push(stripe);
        let places = &self.places;
        self.queue.tidy(self.count, |stripe| places.has(stripe));
        place
    }

    /// The stripe's parity is up to date.
    pub fn clean(&mut self, stripe: StripeId) {
        if let Some(place) = self.places.remove(stripe) {
            let at = index(place);
            self.say_before_change(at);
            self.stripes[at] = NO_STRIPE;
            if std::mem::replace(&mut self.marks[at].saved, Saved::No) != Saved::No {
                self.cleaned.push(stripe);
            }
            let updated = self.marks[at].updated;
            self.with_updated[usize::from(updated)] -= 1;
            self.updated_total -= u64::from(updated);
            self.free.push(place);
            self.count -= 1;
        }
    }

    /// Whether the stripe's parity is out of date.
    pub fn is_dirty(&self, stripe: StripeId) -> bool {
        self.places.has(stripe)
    }

    /// The dirty stripes of a stretch, in order.
    pub fn dirty_in(&self, stripes: Range<u64>) -> impl Iterator<Item = StripeId> {
        self.places.set_in(stripes)
    }

    /// How many stripes are dirty.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes up to `count` dirty stripes, in their order.
    pub fn take(&mut self, count: usize, out: &mut Vec<StripeId>) {
        let places = &self.places;
        self.queue.take(count, |stripe| places.has(stripe), out);
    }

    /// Puts a stripe back for a later [`DirtyStripes::take`].
    pub fn put_back(&mut self, stripe: StripeId) {
        self.queue.push(stripe);
    }

    /// Puts stripes before all others for the next [`DirtyStripes::take`].
    pub fn put_first(&mut self, stripes: &[StripeId]) {
        self.queue.push_first(stripes);
    }

    /// All dirty stripes, in their order, with what is known of their columns (committed [`SAME`]: not
    /// updated).
    pub fn entries(&self) -> impl Iterator<Item = (StripeId, &[Updated])> {
        let mut seen = vec![false; self.stripes.len()];
        let places = self.places().filter(move |&place| !std::mem::replace(&mut seen[place], true));
        let each = places
            .map(|place| (self.stripes[place], &self.columns[place * self.data_count..][..self.data_count]));
        // Nearly always all of them are in the queue.
        each.take(usize::try_from(self.count).unwrap_or(usize::MAX))
    }

    /// The places of all dirty stripes, some more than once, in their order.
    fn places(&self) -> impl Iterator<Item = usize> {
        let there = self.stripes.iter().copied().filter(|&stripe| stripe != NO_STRIPE);
        self.places_of(self.queue.iter().chain(there))
    }

    /// The places of those of these stripes that are dirty. They are looked up some at a time: what is at the
    /// places that are found comes from memory meanwhile, side by side.
    fn places_of(&self, mut stripes: impl Iterator<Item = StripeId>) -> impl Iterator<Item = usize> {
        let (mut some, mut next, mut guess) = (Vec::with_capacity(FOUND_AT_ONCE), 0, 0);
        std::iter::from_fn(move || {
            if next == some.len() {
                some.clear();
                next = 0;
                let found = stripes.by_ref().filter_map(|stripe| self.place_from(&mut guess, 0, stripe));
                for place in found.take(FOUND_AT_ONCE) {
                    prefetch(&self.columns[place * self.data_count]);
                    some.push(place);
                }
            }
            next += 1;
            some.get(next - 1).copied()
        })
    }

    /// Those with the most updated columns, which have half of the updated columns of all, or the first some
    /// hundred of them: a commit costs hardly more where it frees many committed versions than where it frees
    /// one. If few of those looked at are among these, those that have half of theirs. The caller puts them
    /// first; those passed over and those `unwanted` are looked at again behind all others.
    pub fn most_updated(&mut self, unwanted: &[StripeId], out: &mut Vec<StripeId>) {
        let least = least_of_half(&self.with_updated);
        let unwanted: StripeSet = unwanted.iter().copied().collect();
        let (mut some, mut seen, mut looked) = (Vec::new(), StripeSet::default(), Vec::new());
        let (mut queue, mut enough) = (std::mem::take(&mut self.queue), 0);
        let mut with_updated = vec![0; self.with_updated.len()];
        while looked.len() < LOOKED_MAX && enough < CHOSEN_MAX {
            some.clear();
            queue.take_unseen(FOUND_AT_ONCE, |stripe| self.places.has(stripe), &mut seen, &mut some);
            if some.is_empty() {
                break;
            }
            for place in self.places_of(some.iter().copied()) {
                let (stripe, count) = (self.stripes[place], usize::from(self.marks[place].updated));
                let count = if unwanted.contains(&stripe) { 0 } else { count };
                enough += usize::from(count >= least);
                with_updated[count] += 1;
                looked.push((stripe, count));
            }
        }
        let least = if enough < CHOSEN_MAX { least_of_half(&with_updated) } else { least };
        let first = out.len();
        for (stripe, count) in looked {
            let is_chosen = count >= least && out.len() < first + CHOSEN_MAX;
            if is_chosen {
                out.push(stripe);
            } else if !planted(Planted::PassedOverForgotten) {
                queue.push(stripe);
            }
        }
        queue.push_again(&out[first..]);
        self.queue = queue;
    }

    /// Bytes per stripe of the array.
    pub fn fixed_bytes(&self) -> u64 {
        self.places.fixed_bytes()
    }

    /// Bytes that grow with what is uncommitted.
    pub fn dynamic_bytes(&self) -> u64 {
        self.places.dynamic_bytes()
            + self.columns.len() as u64 * UPDATED_BYTES
            + self.stripes.len() as u64 * (STRIPE_BYTES + MARKS_BYTES)
            + number(self.changed.capacity()) * PLACE_NUMBER_BYTES
            + number(self.cleaned.capacity()) * STRIPE_BYTES
            + self.queue.memory_bytes()
            + self.listing.as_ref().map_or(0, Listing::memory_bytes)
    }
}

/// Of stripes of which so many have so many updated columns: those with at least how many have half of them.
fn least_of_half(with_updated: &[u64]) -> usize {
    let updated = |count: usize| number(count) * with_updated[count];
    let all: u64 = (0..with_updated.len()).map(updated).sum();
    let (mut least, mut held) = (with_updated.len() - 1, 0);
    while least > 1 {
        held += updated(least);
        if 2 * held >= all {
            break;
        }
        least -= 1;
    }
    least
}

impl Listing {
    fn memory_bytes(&self) -> u64 {
        let of_changes = self.changed.as_ref().map_or(0, |(cleaned, changed)| {
            number(cleaned.len()) * STRIPE_BYTES + number(changed.len()) * PLACE_NUMBER_BYTES
        });
        of_changes + number(self.early.capacity()) * 4
    }
}

/// Appends a dirty stripe with what is known of its columns, as a list has it.
pub fn push_item(words: &mut Vec<u32>, stripe: StripeId, columns: &[Updated]) {
    let committed = columns.iter().map(|column| Some(column.committed).filter(|&version| version != SAME));
    push_updated_columns(words, stripe, committed);
}

#[cfg(test)]
mod tests;
