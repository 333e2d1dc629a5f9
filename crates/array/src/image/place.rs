//! Where the newest checkpoint is, and what the next one is going to be.
//!
//! Usually one is written at a time. If pages of the table may be absent, a full one takes long, and records
//! that come meanwhile would all be replayed by a start. So incremental ones go on *beside* it: at the
//! instant of which the full one is, an incremental one is taken, too; what changes from then on is in those
//! that follow. They lie behind each other in one chain, which can be read behind the full checkpoint before,
//! and, from that instant on, behind the new one. So whichever of the two a start finds, it has all of them.

use super::chain::{Chain, block_of};
use super::{Image, ListWords, TableBlocks};
use crate::health::Health;
use crate::journal::Journal;
use crate::planted::{Planted, planted};
use crate::scheme::Scheme;
use crate::store::Store;
use crate::table::Extent;
use block::{DevIndex, Seq};
use format::{Beside, CheckpointKind, CheckpointNumbers, PAGE_WORDS};

/// Where the newest checkpoint is, and where the next goes.
#[derive(Clone, Debug)]
pub struct CheckpointPlace {
    /// Number of the newest checkpoint; 0 = none yet.
    pub number: u64,
    /// Up to this numbers may have been used, by that one or by one that was given up, or is under way.
    pub used: u64,
    /// Number of the newest full one, on which it builds.
    pub base: u64,
    /// Area of that full one.
    pub area: u8,
    /// Where in the incremental area those are that build on it.
    pub chain: Chain,
    /// If some of these were written beside it, number of the full one on which those build; else 0.
    pub before: u64,
    /// The main devices that hold it.
    pub devices: Vec<DevIndex>,
    /// Position in the log region from which replay starts.
    pub log_head: u64,
}

/// Where pages may be absent, this part of the ring is left behind each incremental checkpoint, as long as
/// there is as much, for the one that ends the next start: so that it need not write all pages that changed.
const SPARE_FOR_START: u64 = 16;

/// Where the next incremental checkpoint may be in their ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Where {
    /// Behind the last one.
    Next,
    /// There, or at the ring's beginning.
    Anywhere,
}

/// The state of which a checkpoint is to be: all records up to `through` are applied.
pub struct Now<'a> {
    pub store: &'a mut Store,
    pub scheme: &'a mut dyn Scheme,
    pub journal: &'a Journal,
    pub health: &'a Health,
    pub through: Seq,
    /// Room for its list: that of a checkpoint before.
    pub room: &'a mut Vec<u32>,
}

impl Now<'_> {
    /// All of the list.
    fn list(&mut self) -> ListWords {
        let mut space = Vec::new();
        self.store.save_space(&mut space);
        let list = ListWords::whole(self.store, self.scheme, std::mem::take(self.room));
        self.ended(list, space)
    }

    /// What changed of it; `space` is what is said of that as a whole.
    fn changes(&mut self, at_once: bool, space: Vec<u32>) -> ListWords {
        let list = ListWords::changed(self.store, self.scheme, std::mem::take(self.room), at_once);
        self.ended(list, space)
    }

    fn ended(&mut self, mut list: ListWords, space: Vec<u32>) -> ListWords {
        let root_pages = self.store.table.slots().root_words().div_ceil(PAGE_WORDS);
        let list_max = (self.store.config.full_blocks as usize).saturating_sub(1 + root_pages) * PAGE_WORDS;
        list.end_with(space, self.health, list_max);
        list
    }
}

impl CheckpointPlace {
    /// Number of the next one.
    pub fn next(&self) -> u64 {
        self.used + 1
    }

    /// Number of the last one of the chain, which is the newest of all, or of the one that the chain goes on
    /// from: the full one, or, if others go on beside it, that of the same instant, which has the number
    /// before.
    fn last(&self) -> u64 {
        let is_empty = self.chain.next == self.chain.start;
        if is_empty { self.base - u64::from(self.before > 0) } else { self.number }
    }

    /// What superblocks say of them when none is under way.
    pub fn numbers(&self) -> CheckpointNumbers {
        CheckpointNumbers { durable: self.number, used: self.used }
    }

    /// Takes the next checkpoint: an incremental one if no more is wanted, all members that hold the newest
    /// still work, and there is room; else a full one, in the other area of the members that follow.
    pub fn choose(&self, wanted: Extent, now: &mut Now<'_>) -> Image {
        self.choose_where(wanted, now, Where::Anywhere)
    }

    /// The same of the first one of an assembly, with what has changed. A member that is away, or a block
    /// that could not be read, may have the header of one of the assembly before, of which nothing is known,
    /// behind the last one: so the next one is there and nowhere else, where the later assembly counts.
    pub fn choose_first(&self, now: &mut Now<'_>) -> Image {
        self.choose_where(Extent::Changes, now, Where::Next)
    }

    fn choose_where(&self, wanted: Extent, now: &mut Now<'_>, place: Where) -> Image {
        let incremental = (wanted == Extent::Changes && self.is_held(now.health, now.store))
            .then(|| self.incremental(now, self.devices.clone(), (false, place)))
            .flatten();
        incremental.unwrap_or_else(|| self.full(wanted.max(Extent::Unsaved), now, self.next()))
    }

    /// Takes an incremental checkpoint and a full one of the same instant, beside which others can go on once
    /// the incremental one is durable; none if there is no room for that.
    pub fn choose_both(&self, now: &mut Now<'_>) -> Option<(Image, Image)> {
        let incremental = self.incremental(now, self.devices.clone(), (true, Where::Anywhere))?;
        let mut full = self.full(Extent::Unsaved, now, incremental.number + 1);
        let start = self.after(&incremental).chain.next;
        let block = block_of(start, now.store.config.incremental_blocks);
        full.position = start;
        full.beside = Some(Beside { base: self.base, block });
        Some((incremental, full))
    }

    /// Takes an incremental checkpoint beside a full one that is being written to `devices`; none if there is
    /// no room.
    pub fn choose_beside(&self, now: &mut Now<'_>, devices: &[DevIndex]) -> Option<Image> {
        let mut all = self.devices.clone();
        if planted(Planted::BesideOnNewMembers) {
            all.clear();
        }
        all.extend(devices.iter().filter(|dev| !self.devices.contains(dev)));
        let image = self.incremental(now, all, (true, Where::Anywhere))?;
        now.store.table.mark_taken(&now.store.taken);
        now.store.taken.clear();
        Some(image)
    }

    /// Whether as many members as ought to hold the newest checkpoint, and all of these work.
    pub fn is_held(&self, health: &Health, store: &Store) -> bool {
        let copies = store.config.geometry.parity_count() + 1;
        self.devices.len() == copies && self.devices.iter().all(|&dev| health.is_writable(dev))
    }

    /// Whether an incremental one with that base is of the chain.
    pub fn is_base(&self, base: u64) -> bool {
        base == self.base || (base == self.before && self.before > 0)
    }

    /// An incremental one, if there is room. If not, what changed of the list counts as said all the same: a
    /// full one must follow.
    fn incremental(
        &self,
        now: &mut Now<'_>,
        devices: Vec<DevIndex>,
        (is_copied, place): (bool, Where),
    ) -> Option<Image> {
        let (ring, is_paged) = (now.store.config.incremental_blocks, now.store.table.is_paged());
        let spare = u64::from(ring) / SPARE_FOR_START;
        let place_of = |table_blocks: usize, list_words: usize| {
            let blocks = (1 + table_blocks + list_words.div_ceil(PAGE_WORDS)) as u64;
            let place_with = |spare| self.chain.place(blocks, spare, ring);
            match place {
                Where::Next => place_with(0).filter(|&position| position == self.chain.next),
                Where::Anywhere if is_paged => place_with(spare).or_else(|| place_with(0)),
                Where::Anywhere => place_with(0),
            }
        };
        let mut space = Vec::new();
        now.store.save_space(&mut space);
        let mut table = TableBlocks::changed(&now.store.table);
        if planted(Planted::InstantForgotten) && is_copied && devices == self.devices {
            table = TableBlocks::default();
        }
        // At once beside a full one, of which another list is being said, before there are requests, and
        // where there is room only for what it takes, not for what it may take.
        let is_tight = is_paged && place_of(table.count(), now.scheme.changes_max() + space.len()).is_none();
        let list = now.changes(is_copied || place == Where::Next || is_tight, space);
        let position = place_of(table.count(), list.words_max())?;
        if is_copied {
            table.copy(now.store);
        }
        let mut image = Image::incremental(now, list, table, (self.next(), self.base, devices));
        (image.position, image.first_block) = (position, block_of(position, ring));
        image.behind = self.last();
        Some(image)
    }

    fn full(&self, extent: Extent, now: &mut Now<'_>, number: u64) -> Image {
        let (copies, n) = (now.store.config.geometry.parity_count() + 1, now.store.main_count());
        let first = (self.number as usize + 1) % n;
        let ring = (0..n).map(|i| DevIndex::new(((first + i) % n) as u16));
        let devices = ring.filter(|&dev| now.health.is_writable(dev)).take(copies).collect();
        let list = now.list();
        Image::full(now, list, extent, (number, self.area ^ 1, devices))
    }

    /// Where things are once this checkpoint, too, is durable.
    pub fn after(&self, image: &Image) -> Self {
        let (number, used) = (self.number.max(image.number), self.used.max(image.number));
        let is_newest = image.number > self.number;
        let log_head = if is_newest { image.log_head } else { self.log_head };
        match image.kind {
            CheckpointKind::Full => {
                let before = image.beside.map_or(0, |beside| beside.base);
                let mut chain = self.chain.since(image.position);
                if planted(Planted::BesideForgotten) {
                    chain.next = chain.start;
                }
                let chain = if before > 0 { chain } else { Chain::default() };
                let (base, area, devices) = (image.base, image.area, image.devices.clone());
                Self { number, used, base, area, chain, before, devices, log_head }
            }
            CheckpointKind::Incremental => {
                let chain = self.chain.with(image.position, image.block_count());
                Self { number, used, chain, log_head, devices: self.devices.clone(), ..*self }
            }
        }
    }
}
