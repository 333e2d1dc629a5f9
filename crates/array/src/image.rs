//! The content of one checkpoint, the state at one instant, and how its blocks are laid out on a device.

use crate::health::Health;
use crate::journal::Journal;
use crate::planted::{Planted, planted};
use crate::scheme::{self, Scheme};
use crate::store::Store;
use crate::table::{Extent, Table};
use block::{DevIndex, META_BYTES, Seq};
use format::{
    ArrayConfig, BodyCrc, CheckpointHeader, CheckpointKind, CheckpointNumbers, GroupBits, INCREMENTAL_AREA,
    PAGE_AREA, PAGE_WORDS, PageKind, PageStamp, encode_page,
};

/// Where the newest checkpoint is, and where the next goes.
#[derive(Clone, Debug)]
pub struct CheckpointPlace {
    /// Number of the newest checkpoint; 0 = none yet.
    pub number: u64,
    /// Up to this numbers may have been used, by that one or by one that was given up.
    pub used: u64,
    /// Number of the full one it builds on.
    pub base: u64,
    /// Area of that full one.
    pub area: u8,
    /// First free block of the incremental area.
    pub incremental_next: u32,
    /// The main devices that hold it.
    pub devices: Vec<DevIndex>,
    /// Position in the log region from which replay starts.
    pub log_head: u64,
}

impl CheckpointPlace {
    /// Number of the next one.
    pub fn next(&self) -> u64 {
        self.used + 1
    }

    /// What superblocks say of them when none is under way.
    pub fn numbers(&self) -> CheckpointNumbers {
        CheckpointNumbers { durable: self.number, used: self.used }
    }

    /// Takes the next checkpoint: an incremental one if no more is wanted, all members that hold the newest
    /// still work, and there is room; else a full one, in the other area of the members that follow.
    pub fn choose(
        &self,
        wanted: Extent,
        store: &mut Store,
        scheme: &mut dyn Scheme,
        journal: &Journal,
        health: &Health,
        through: Seq,
    ) -> Image {
        let (copies, n) = (store.config.geometry.parity_count() + 1, store.main_count());
        let mut rest = Vec::new();
        store.save_space(&mut rest);
        let list_max = (store.config.full_blocks as usize)
            .saturating_sub(1 + store.table.slots().root_words().div_ceil(PAGE_WORDS));
        let ended = |mut words: Vec<u32>| {
            words.extend_from_slice(&rest);
            health.save_away((list_max * PAGE_WORDS).saturating_sub(words.len()), &mut words);
            words
        };
        let same = self.devices.len() == copies && self.devices.iter().all(|&dev| health.is_writable(dev));
        let room = u64::from(store.config.incremental_blocks.saturating_sub(self.incremental_next));
        let of_changes = (same && wanted == Extent::Changes)
            .then(|| {
                let list = ListWords::changed(store, scheme);
                let list = ListWords { words: ended(list.words), ..list };
                (TableBlocks::changed(&store.table), list)
            })
            .filter(|(table, list)| {
                (1 + table.count() + list.words.len().div_ceil(PAGE_WORDS)) as u64 <= room
            });
        let (extent, devices, table, list) = if let Some((table, list)) = of_changes {
            (Extent::Changes, self.devices.clone(), table, list)
        } else {
            let first = (self.number as usize + 1) % n;
            let ring = (0..n).map(|i| DevIndex::new(((first + i) % n) as u16));
            let devices = ring.filter(|&dev| health.is_writable(dev)).take(copies).collect();
            let list = ListWords::whole(store, scheme);
            let list = ListWords { words: ended(list.words), ..list };
            (wanted.max(Extent::Unsaved), devices, TableBlocks::default(), list)
        };
        let mut image = Image::take(store, list, journal, extent, self, devices, through);
        image.table = table;
        assert!(
            image.kind == CheckpointKind::Incremental
                || image.block_count() <= u64::from(store.config.full_blocks),
            "the full-checkpoint area is laid out for the largest state"
        );
        image
    }
}

/// The list of a checkpoint.
struct ListWords {
    words: Vec<u32>,
    /// Whether these are changes of the list before.
    are_changes: bool,
}

impl ListWords {
    /// What the next list is to have of the scheme, which from now on builds on it.
    fn whole(store: &Store, scheme: &mut dyn Scheme) -> Self {
        let mut words = Vec::new();
        scheme.save(store, &mut words);
        scheme.list_is_saved();
        Self { words, are_changes: false }
    }

    /// What it is to have if the list before is to be had, too.
    fn changed(store: &Store, scheme: &mut dyn Scheme) -> Self {
        let mut words = Vec::new();
        if scheme.save_changes(&mut words) {
            return Self { words, are_changes: true };
        }
        Self::whole(store, scheme)
    }

    fn kind(&self) -> PageKind {
        if self.are_changes { PageKind::Changes } else { PageKind::List }
    }
}

/// The blocks of a checkpoint that hold the table: whole pages, then patches, as many to a block as fit.
#[derive(Default)]
struct TableBlocks {
    whole: Vec<usize>,
    patched: Vec<usize>,
    /// Of each block of patches the first, as a place in `patched`.
    starts: Vec<usize>,
}

impl TableBlocks {
    /// What changed since the last checkpoint. A page whose patch would fill a block goes as it is: so there
    /// are never more blocks than pages that changed.
    fn changed(table: &Table) -> Self {
        let (mut blocks, mut left) = (Self::default(), 0);
        let forgotten = usize::from(planted(Planted::ForgetChangedPage));
        for page in table.changed_pages().skip(forgotten) {
            let words = patched(table.changed_groups(page)).patch_words();
            if words >= PAGE_WORDS {
                blocks.whole.push(page);
                continue;
            }
            if words > left {
                blocks.starts.push(blocks.patched.len());
                left = PAGE_WORDS;
            }
            left -= words;
            blocks.patched.push(page);
        }
        blocks
    }

    fn count(&self) -> usize {
        self.whole.len() + self.starts.len()
    }

    /// The pages that a block holds, whole or patches of them.
    fn pages(&self, index: usize) -> &[usize] {
        if let Some(page) = self.whole.get(index..=index) {
            return page;
        }
        let block = index - self.whole.len();
        let Some(&first) = self.starts.get(block) else { return &[] };
        let end = self.starts.get(block + 1).copied().unwrap_or(self.patched.len());
        &self.patched[first..end]
    }
}

/// What a patch holds of what changed on a page.
fn patched(groups: GroupBits) -> GroupBits {
    if planted(Planted::PatchForgetsGroup) && groups.groups().count() > 1 {
        return groups.without_last();
    }
    groups
}

/// See the module's documentation.
pub struct Image {
    /// Full or incremental.
    pub kind: CheckpointKind,
    /// Its number.
    pub number: u64,
    /// The full one it builds on.
    pub base: u64,
    /// Where it goes.
    pub area: u8,
    /// Block of the header within the area; the pages follow.
    pub first_block: u32,
    /// Records up to this are contained.
    pub through: Seq,
    /// Position in the log region from which replay starts.
    pub log_head: u64,
    /// The main devices it goes to.
    pub devices: Vec<DevIndex>,
    /// Update of the superblocks that every working member has; 0 until it is said.
    pub config_seq: u64,
    /// What of the table is in it, or in its slots as it was when the snapshot was taken.
    pub extent: Extent,
    /// Pages of the table that go to their slots, as they were when the snapshot was taken, and then those of
    /// the directory.
    saved: Vec<usize>,
    /// What it holds of the table itself, as that was then.
    table: TableBlocks,
    /// Which slot of each directory page counts; its pages follow those of the table.
    root: Vec<u32>,
    /// Its pages come last.
    list: ListWords,
    table_words: u64,
    log_head_block: u32,
    log_tail_block: u32,
}

/// A page that follows the header: what it is, which one of its kind, and its words.
pub type BodyPage<'a> = (PageKind, usize, &'a [u32]);

/// Bytes of memory of the largest checkpoint: pages that change before they are written are kept as they
/// were, and the scheme's list.
pub fn bytes_max(config: &ArrayConfig) -> u64 {
    (Table::word_count(config) + scheme::list_words_live(config)) * 4
}

/// A number of pages or blocks of a checkpoint, as it is stored.
fn stored(count: usize) -> u32 {
    u32::try_from(count).expect("validated: an area has fewer blocks than 2^32")
}

impl Image {
    /// Takes the state as it is: all records up to `through` applied. The pages of the table stay in it, as
    /// its snapshot.
    fn take(
        store: &mut Store,
        list: ListWords,
        journal: &Journal,
        extent: Extent,
        place: &CheckpointPlace,
        devices: Vec<DevIndex>,
        through: Seq,
    ) -> Self {
        let number = place.next();
        let mut saved = store.table.take_snapshot(extent);
        store.table.hide_taken(&store.taken);
        store.taken.clear();
        let (kind, area, first_block, base) = if extent == Extent::Changes {
            (CheckpointKind::Incremental, INCREMENTAL_AREA, place.incremental_next, place.base)
        } else {
            (CheckpointKind::Full, place.area ^ 1, 0, number)
        };
        let root = match kind {
            CheckpointKind::Full => {
                saved.append(&mut store.table.take_directories(&saved));
                store.table.slots().root(|page| store.table.next_state(page, number))
            }
            CheckpointKind::Incremental => {
                saved.clear();
                Vec::new()
            }
        };
        let log_head = journal.log_head_for(through, store);
        Self {
            kind,
            number,
            base,
            area,
            first_block,
            through,
            log_head,
            devices,
            config_seq: 0,
            table_words: (store.table.page_count() * PAGE_WORDS) as u64,
            extent,
            saved,
            table: TableBlocks::default(),
            root,
            list,
            log_head_block: store.log.block_at(log_head).get(),
            log_tail_block: store.log.block_at(store.log.tail()).get(),
        }
    }

    /// Pages after the header.
    fn page_count(&self) -> usize {
        let [root, list] = [&self.root, &self.list.words].map(|words| words.len().div_ceil(PAGE_WORDS));
        self.table.count() + root + list
    }

    /// Pages that are written before the header: those that go to their slots, then those that follow the
    /// header.
    pub fn unit_count(&self) -> usize {
        self.saved.len() + self.page_count()
    }

    /// The pages of the table that unit `unit` holds, whole or patches of them; none for those of the
    /// directory, the root and the list.
    pub fn table_pages(&self, store: &Store, unit: usize) -> &[usize] {
        let Some(index) = unit.checked_sub(self.saved.len()) else {
            let page = &self.saved[unit..=unit];
            return if page[0] < store.table.page_count() { page } else { &[] };
        };
        self.table.pages(index)
    }

    /// Whether a unit goes to the slots of its page.
    pub fn is_saved(&self, unit: usize) -> bool {
        unit < self.saved.len()
    }

    /// Copies of a unit.
    pub fn copies(&self, store: &Store, unit: usize) -> usize {
        let area = store.table.slots().area();
        match self.is_saved(unit) {
            true if planted(Planted::SaveOneCopy) => 1,
            true => area.copies(),
            false => self.devices.len(),
        }
    }

    /// The device that copy `copy` of a unit goes to, and its byte offset there.
    pub fn target(&self, store: &Store, unit: usize, copy: usize) -> (DevIndex, u64) {
        match unit.checked_sub(self.saved.len()) {
            Some(index) => (self.devices[copy], self.offset(store, index + 1)),
            None => {
                let (dev, block) = self.slot_of(store, unit, copy);
                (dev, store.config.page_offset(block))
            }
        }
    }

    /// Where a copy of a page goes in the page area.
    fn slot_of(&self, store: &Store, unit: usize, copy: usize) -> (DevIndex, u32) {
        let page = self.saved[unit];
        let state = match planted(Planted::SaveInPlace) {
            true => store.table.slots().state(page),
            false => store.table.next_state(page, self.number),
        };
        store.table.slots().area().place(page, copy, state.slot())
    }

    /// Blocks of the whole checkpoint.
    pub fn block_count(&self) -> u64 {
        self.page_count() as u64 + 1
    }

    /// Byte offset on a main device of block `index`: 0 is the header, the pages follow.
    pub fn offset(&self, store: &Store, index: usize) -> u64 {
        let block = self.first_block + stored(index);
        match self.kind {
            CheckpointKind::Full => store.config.full_offset(usize::from(self.area), block),
            CheckpointKind::Incremental => store.config.incremental_offset(block),
        }
    }

    /// Writes copy `copy` of a unit into `out`; what follows the header is added to the body checksum of its
    /// device.
    pub fn encode_unit(
        &self,
        (store, journal): (&Store, &Journal),
        (unit, copy): (usize, usize),
        bodies: &mut [BodyCrc],
        out: &mut [u8],
    ) {
        let out = &mut out[..META_BYTES];
        let (array, number) = (journal.array(), self.number);
        if self.is_saved(unit) {
            let (dev, block) = self.slot_of(store, unit, copy);
            let (kind, index) = store.table.slots().name(self.saved[unit]);
            let stamp = PageStamp { array, dev, area: PAGE_AREA, block, number, kind, index };
            self.encode_saved(store, unit, &stamp, out);
            return;
        }
        let mut patches = [0; PAGE_WORDS];
        let page = self.body_page(store, unit, &mut patches);
        self.encode_body(journal, (unit, copy), page, bodies, out);
    }

    /// The same of a unit that follows the header, which is this page.
    pub fn encode_body(
        &self,
        journal: &Journal,
        (unit, copy): (usize, usize),
        (kind, page, words): BodyPage<'_>,
        bodies: &mut [BodyCrc],
        out: &mut [u8],
    ) {
        let (array, number) = (journal.array(), self.number);
        let (dev, block) = (self.devices[copy], self.first_block + 1 + stored(unit - self.saved.len()));
        let stamp = PageStamp { array, dev, area: self.area, block, number, kind, index: stored(page) };
        bodies[copy].push(encode_page(&stamp, words, &mut out[..META_BYTES]));
    }

    /// The units that go to the slots of their pages; those that follow the header come after them.
    pub fn saved_units(&self) -> std::ops::Range<usize> {
        0..self.saved.len()
    }

    /// Pages that go to their slots and are not in memory.
    pub fn absent_pages(&self, table: &Table) -> impl Iterator<Item = usize> {
        let of_table = self.saved.iter().copied().filter(|&page| page < table.page_count());
        of_table.filter(|&page| table.is_paged() && table.must_read(page))
    }

    /// Writes a page that goes to its slot.
    fn encode_saved(&self, store: &Store, unit: usize, stamp: &PageStamp, out: &mut [u8]) {
        let page = self.saved[unit];
        match stamp.kind {
            PageKind::Directory => {
                let states = |page| store.table.next_state(page, self.number);
                encode_page(stamp, &store.table.slots().directory(page, states), out)
            }
            PageKind::Table | PageKind::Patches | PageKind::Root | PageKind::List | PageKind::Changes => {
                encode_page(stamp, store.table.snapshot_page(page), out)
            }
        };
    }

    /// What unit `unit` is, which follows the header; `patches` is room for some.
    pub fn body_page<'a>(
        &'a self,
        store: &'a Store,
        unit: usize,
        patches: &'a mut [u32; PAGE_WORDS],
    ) -> BodyPage<'a> {
        let index = unit - self.saved.len();
        match self.table.pages(index) {
            [] => {}
            &[page, ..] if index < self.table.whole.len() => {
                return (PageKind::Table, page, store.table.snapshot_page(page));
            }
            pages => {
                let used = encode_patches(store, pages, patches);
                return (PageKind::Patches, index - self.table.whole.len(), &patches[..used]);
            }
        }
        let index = index - self.table.count();
        let roots = self.root.len().div_ceil(PAGE_WORDS);
        let (kind, page, words) = match index.checked_sub(roots) {
            None => (PageKind::Root, index, &self.root),
            Some(page) => (self.list.kind(), page, &self.list.words),
        };
        let rest = &words[page * PAGE_WORDS..];
        (kind, page, &rest[..rest.len().min(PAGE_WORDS)])
    }

    /// Writes the header for one device: the last block to be written, it makes the checkpoint valid.
    pub fn encode_header(&self, journal: &Journal, dev: DevIndex, body: &BodyCrc, out: &mut [u8]) {
        let header = CheckpointHeader {
            array: journal.array(),
            epoch: journal.epoch(),
            nonce: journal.nonce(),
            dev,
            block: self.first_block,
            area: self.area,
            number: self.number,
            kind: self.kind,
            base: self.base,
            through: self.through,
            table_words: self.table_words,
            list_words: self.list.words.len() as u64,
            page_count: stored(self.page_count()),
            log_head: self.log_head_block,
            log_tail: self.log_tail_block,
            body_crc: body.finish(),
            config_seq: self.config_seq,
        };
        header.encode(&mut out[..META_BYTES]);
    }

    /// Where things are once this checkpoint is durable.
    pub fn place(&self, before: &CheckpointPlace) -> CheckpointPlace {
        let (area, incremental_next) = match self.kind {
            CheckpointKind::Full => (self.area, 0),
            CheckpointKind::Incremental => (before.area, self.first_block + self.block_count() as u32),
        };
        CheckpointPlace {
            number: self.number,
            used: self.number,
            base: self.base,
            area,
            incremental_next,
            devices: self.devices.clone(),
            log_head: self.log_head,
        }
    }
}

/// Writes the patches of pages of the snapshot one after the other; how many words that is.
fn encode_patches(store: &Store, pages: &[usize], out: &mut [u32; PAGE_WORDS]) -> usize {
    let mut used = 0;
    for &page in pages {
        let groups = patched(store.table.snapshot_groups(page));
        groups.encode_patch(page, store.table.snapshot_page(page), &mut out[used..]);
        used += groups.patch_words();
    }
    used
}
