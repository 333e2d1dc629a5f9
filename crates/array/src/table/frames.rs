//! The pages of the table that are in memory.

use format::{GROUP_WORDS, GroupBits, PAGE_WORDS};
use prefetch::{large_room, prefetch};

pub(super) type PageWords = [u32; PAGE_WORDS];

/// What a page that was never written holds.
pub(super) static ZEROS: PageWords = [0; PAGE_WORDS];

/// A page and what changed on it since the last checkpoint, or, until it is written, before that.
pub(super) struct TablePage<'a> {
    pub words: &'a mut PageWords,
    pub changed: &'a mut GroupBits,
}

/// Pages whose frames are looked up together.
const GROUP: usize = 32;
/// The same, for sums of bytes.
pub const GROUP_PAGES: u64 = GROUP as u64;

/// Frames whose memory is taken together: 32 MiB, most of which lies on whole pages of 2 MiB.
const SLAB_FRAMES: usize = 8192;

/// A page's frame plus 1; 0 = it has none.
type FrameNumber = u32;

/// The words of a frame. A stripe of (6+2) lies in one line of the cache.
#[repr(align(64))]
struct FrameWords(PageWords);

/// What changed on the page of a frame, in one line of the cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Changed(GroupBits);

impl Changed {
    const NOTHING: Self = Self(GroupBits::NONE);
}

/// What is known of a frame besides its words.
#[derive(Clone, Copy, Default)]
struct Holder {
    page: u32,
    pins: u32,
    /// Since the hand last passed.
    is_used: bool,
}

/// The frames of neighbouring pages.
type Group = [FrameNumber; GROUP];

/// See the module's documentation.
pub(super) struct Frames {
    /// Number of each group that has a frame, plus 1.
    group_of: Vec<u32>,
    groups: Vec<Group>,
    groups_free: Vec<u32>,
    /// The words of the pages of so many frames each, which do not move when there are more.
    slabs: Vec<Vec<FrameWords>>,
    /// What changed on each, side by side: whoever asks many pages only for that, or changes a word of many,
    /// waits for memory once for each.
    changed: Vec<Changed>,
    holders: Vec<Holder>,
    free: Vec<u32>,
    hand: usize,
}

impl Frames {
    pub fn new(pages: usize) -> Self {
        Self {
            group_of: vec![0; pages.div_ceil(GROUP)],
            groups: Vec::new(),
            groups_free: Vec::new(),
            slabs: Vec::new(),
            changed: Vec::new(),
            holders: Vec::new(),
            free: Vec::new(),
            hand: 0,
        }
    }

    /// Bytes of memory besides the frames, without any, of so many pages.
    pub fn fixed_bytes(pages: u64) -> u64 {
        pages.div_ceil(GROUP_PAGES) * 4
    }

    /// Bytes that a frame takes.
    pub const FRAME_BYTES: u64 = (Self::CONTENT_BYTES + size_of::<Holder>()) as u64;
    /// Bytes of a page and of what is known to have changed on it.
    pub const CONTENT_BYTES: usize = size_of::<FrameWords>() + size_of::<Changed>();

    /// Bytes that a group takes.
    pub const GROUP_BYTES: u64 = size_of::<Group>() as u64;

    /// The frame that holds a page.
    #[inline]
    pub fn frame_of(&self, page: usize) -> Option<usize> {
        let group = self.group_of[page / GROUP].checked_sub(1)?;
        let frame = self.groups[place(group)][page % GROUP].checked_sub(1)?;
        Some(place(frame))
    }

    #[inline]
    fn words(&self, frame: usize) -> &PageWords {
        &self.slabs[frame / SLAB_FRAMES][frame % SLAB_FRAMES].0
    }

    /// What is in a frame.
    #[inline]
    pub fn in_frame(&mut self, frame: usize) -> TablePage<'_> {
        let words = &mut self.slabs[frame / SLAB_FRAMES][frame % SLAB_FRAMES].0;
        TablePage { words, changed: &mut self.changed[frame].0 }
    }

    #[inline]
    pub fn get(&self, page: usize) -> Option<&PageWords> {
        self.frame_of(page).map(|frame| self.words(frame))
    }

    /// What changed on a page that has a frame.
    #[inline]
    pub fn changed(&self, page: usize) -> Option<&GroupBits> {
        self.frame_of(page).map(|frame| &self.changed[frame].0)
    }

    #[inline]
    pub fn changed_mut(&mut self, page: usize) -> Option<&mut GroupBits> {
        self.frame_of(page).map(|frame| &mut self.changed[frame].0)
    }

    /// Asks for what is looked at when a word of a page is, or is changed.
    #[inline]
    pub fn prefetch(&self, page: usize, word: usize) {
        if let Some(frame) = self.frame_of(page) {
            prefetch(&self.words(frame)[word]);
            prefetch(&self.changed[frame]);
        }
    }

    /// Asks for what says whether a page has a frame.
    #[inline]
    pub fn prefetch_place(&self, page: usize) {
        prefetch(&self.group_of[page / GROUP]);
    }

    /// Asks for what [`Frames::pin`] changes.
    #[inline]
    pub fn prefetch_holder(&self, page: usize) {
        if let Some(frame) = self.frame_of(page) {
            prefetch(&self.holders[frame]);
        }
    }

    /// Frames that hold a page.
    pub fn len(&self) -> usize {
        self.holders.len() - self.free.len()
    }

    /// Asks for what [`Frames::changed`] gives.
    pub fn prefetch_groups(&self, page: usize) {
        if let Some(frame) = self.frame_of(page) {
            prefetch(&self.changed[frame]);
        }
    }

    /// Asks for the words of a page that changed.
    pub fn prefetch_patch(&self, page: usize) {
        if let Some(frame) = self.frame_of(page) {
            let words = self.words(frame);
            self.changed[frame].0.groups().for_each(|group| prefetch(&words[group * GROUP_WORDS]));
        }
    }

    /// Gives a page a frame that has none. Nothing changed on it.
    pub fn insert(&mut self, index: usize, words: &PageWords) -> TablePage<'_> {
        let holder = Holder { page: number(index), pins: 0, is_used: true };
        let frame = match self.free.pop() {
            Some(free) => {
                let frame = place(free);
                let page = self.in_frame(frame);
                (*page.words, *page.changed) = (*words, GroupBits::NONE);
                self.holders[frame] = holder;
                frame
            }
            None => {
                self.slab_with_room().push(FrameWords(*words));
                self.changed.push(Changed::NOTHING);
                self.holders.push(holder);
                self.holders.len() - 1
            }
        };
        let group = self.group(index / GROUP);
        self.groups[group][index % GROUP] = number(frame) + 1;
        self.in_frame(frame)
    }

    /// The slab of the next frame that is new.
    fn slab_with_room(&mut self) -> &mut Vec<FrameWords> {
        if self.holders.len() == self.slabs.len() * SLAB_FRAMES {
            self.slabs.push(large_room(SLAB_FRAMES.min(self.group_of.len() * GROUP)));
        }
        self.slabs.last_mut().expect("one was added if none had room")
    }

    /// The number of a group, which has one from now on.
    fn group(&mut self, index: usize) -> usize {
        if let Some(group) = self.group_of[index].checked_sub(1) {
            return place(group);
        }
        let group = match self.groups_free.pop() {
            Some(free) => place(free),
            None => {
                self.groups.push([0; GROUP]);
                self.groups.len() - 1
            }
        };
        self.group_of[index] = number(group) + 1;
        group
    }

    /// Whether the page stays in memory.
    pub fn pin(&mut self, page: usize) {
        let frame = self.frame_of(page).expect("a page is pinned that is in memory");
        self.holders[frame].pins += 1;
        self.holders[frame].is_used = true;
    }

    pub fn unpin(&mut self, page: usize) {
        let frame = self.frame_of(page).expect("a pinned page stays in memory");
        let pins = &mut self.holders[frame].pins;
        *pins = pins.checked_sub(1).expect("pins are counted");
    }

    /// Takes a frame from a page that is not pinned, may go as `may_go` tells, and has not been used for
    /// longest, more or less; `false` if there is none.
    pub fn evict(&mut self, may_go: impl Fn(usize) -> bool) -> bool {
        // Twice round: the first time all may have been used.
        for _ in 0..2 * self.holders.len() {
            let frame = self.hand;
            self.hand = if frame + 1 == self.holders.len() { 0 } else { frame + 1 };
            let Holder { page, pins, is_used } = self.holders[frame];
            let page = place(page);
            if pins > 0 || !may_go(page) || self.frame_of(page) != Some(frame) {
                continue;
            }
            if is_used {
                self.holders[frame].is_used = false;
                continue;
            }
            self.remove(page, frame);
            return true;
        }
        false
    }

    fn remove(&mut self, page: usize, frame: usize) {
        let number = self.group_of[page / GROUP] - 1;
        let group = &mut self.groups[place(number)];
        let taken = std::mem::take(&mut group[page % GROUP]);
        debug_assert_eq!(place(taken), frame + 1, "a page has the frame that it is removed from");
        if group.iter().all(|&frame| frame == 0) {
            self.group_of[page / GROUP] = 0;
            self.groups_free.push(number);
        }
        self.free.push(taken - 1);
    }

    /// Pages that have a frame, in order.
    pub fn pages(&self) -> impl Iterator<Item = usize> {
        let groups = self.group_of.iter().enumerate().filter(|&(_, &number)| number > 0);
        groups.flat_map(|(index, &number)| {
            let frames = self.groups[place(number) - 1];
            (0..GROUP).filter(move |&at| frames[at] > 0).map(move |at| index * GROUP + at)
        })
    }

    pub fn memory_bytes(&self) -> u64 {
        let [pages, groups, fixed] =
            [self.holders.len(), self.groups.len(), self.group_of.len()].map(|count| count as u64);
        pages * Self::FRAME_BYTES + groups * Self::GROUP_BYTES + fixed * 4
    }
}

/// Such a number, to look something up by.
#[inline]
fn place(number: u32) -> usize {
    number as usize
}

/// A number of a page, a frame or a group, as it is kept.
fn number(index: usize) -> u32 {
    u32::try_from(index).expect("validated: fewer pages than 2^32")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pinned_or_must_stay_is_not_evicted_and_what_was_used_goes_last() {
        let mut frames = Frames::new(1000);
        for page in [5, 40, 999, 6] {
            frames.insert(page, &[page as u32; PAGE_WORDS]);
        }
        assert_eq!(frames.pages().collect::<Vec<_>>(), [5, 6, 40, 999]);
        frames.pin(5);
        assert!(frames.evict(|page| page != 40), "all were used, so the second time round one goes");
        assert!(frames.get(5).is_some() && frames.get(40).is_some() && frames.get(999).is_none());
        assert!(frames.evict(|page| page != 40) && frames.get(6).is_none());
        assert!(!frames.evict(|page| page != 40), "one is pinned, the other must stay");
        frames.unpin(5);
        frames.insert(999, &[7; PAGE_WORDS]);
        assert_eq!((frames.len(), frames.holders.len()), (3, 4), "frames are used again");
        assert_eq!(frames.get(999), Some(&[7; PAGE_WORDS]));
        assert!(frames.changed_mut(5).is_some() && frames.evict(|page| page == 5) && frames.len() == 2);
    }
}
