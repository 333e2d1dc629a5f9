//! The content of one checkpoint, the state at one instant, and how its blocks are laid out on a device.

mod chain;
mod place;

pub use chain::{Chain, block_of};
pub use place::{CheckpointPlace, Now};

use crate::health::Health;
use crate::journal::Journal;
use crate::planted::{Planted, planted};
use crate::scheme::{self, Scheme};
use crate::store::Store;
use crate::table::{Extent, Table};
use block::{DevIndex, META_BYTES, Seq};
use format::{
    ArrayConfig, Beside, BodyCrc, CheckpointHeader, CheckpointKind, GroupBits, INCREMENTAL_AREA, ListPacker,
    PACKED, PAGE_AREA, PAGE_WORDS, PageKind, PageStamp, PatchHeads, encode_page,
};
use prefetch::with_later;

/// The list of a checkpoint: what the scheme says, and behind that what others do.
struct ListWords {
    words: Vec<u32>,
    /// Whether these are changes of the list before.
    are_changes: bool,
    /// If the scheme has not said all yet, the words that it says at most.
    open: Option<usize>,
    /// What others say, until the scheme has said all.
    rest: Vec<u32>,
    /// Pieces that it has said, and room for the next.
    pieces: usize,
    piece: Vec<u32>,
    packer: ListPacker,
    /// Words of these before they were packed.
    said: usize,
}

impl ListWords {
    /// An empty one, in the room of one before.
    fn new(mut words: Vec<u32>) -> Self {
        words.clear();
        let (rest, piece) = (Vec::new(), Vec::new());
        let packer = ListPacker::default();
        Self { words, are_changes: false, open: None, rest, pieces: 0, piece, packer, said: 0 }
    }

    /// What the next list is to have of the scheme, which from now on builds on it.
    fn whole(store: &Store, scheme: &mut dyn Scheme, room: Vec<u32>) -> Self {
        let mut list = Self::new(room);
        list.open = scheme.begin_list();
        if list.open.is_none() {
            scheme.save(store, &mut list.words);
            scheme.list_is_saved();
        }
        list
    }

    /// What it is to have if the list before is to be had, too; at once, or if that is much piece by piece.
    fn changed(store: &Store, scheme: &mut dyn Scheme, room: Vec<u32>, at_once: bool) -> Self {
        let mut list = Self::new(room);
        if !at_once && scheme.change_count() > items_at_once(&store.config, CheckpointKind::Incremental) {
            list.open = scheme.begin_changes();
            list.are_changes = list.open.is_some();
            if list.are_changes {
                return list;
            }
        }
        list.are_changes = scheme.save_changes(&mut list.words);
        if list.are_changes { list } else { Self::whole(store, scheme, list.words) }
    }

    /// Says the rest; of members that are away as much as the list has room for, which has so many words.
    fn end_with(&mut self, space: Vec<u32>, health: &Health, words_max: usize) {
        self.rest = space;
        let said = self.words.len() + self.open.unwrap_or_default() + self.rest.len();
        health.save_away(words_max.saturating_sub(said), &mut self.rest);
        if let Some(most) = self.open {
            return self.make_room(most + self.rest.len());
        }
        self.packer.pack(&std::mem::take(&mut self.words), &mut self.words);
        self.words.append(&mut self.rest);
    }

    /// There is room for so many words. Nothing of what was there before is moved.
    fn make_room(&mut self, words: usize) {
        if self.words.capacity() < words {
            self.words = Vec::with_capacity(words);
        }
    }

    /// The scheme says about so many more items, if it has not said all.
    fn say_more(&mut self, scheme: &mut dyn Scheme, items: usize) {
        if self.open.is_none() {
            return;
        }
        self.pieces += 1;
        self.piece.clear();
        let is_open = scheme.say_more(&mut self.piece, items);
        self.packer.pack(&self.piece, &mut self.words);
        self.said += self.piece.len();
        let is_announced = self.open.is_some_and(|most| self.said.max(self.words.len()) <= most);
        assert!(is_announced, "no more is said than was announced");
        if !is_open {
            self.words.append(&mut self.rest);
            (self.open, self.piece) = (None, Vec::new());
        }
    }

    /// Words that it has at most when all is said.
    fn words_max(&self) -> usize {
        self.words.len() + self.open.map_or(0, |most| most + self.rest.len())
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
    /// Of each block of patches the first, as a place in `patched`, and the heads of all of them.
    starts: Vec<usize>,
    heads: Vec<PatchHeads>,
    /// The words of all these blocks, if they were copied.
    copied: Option<Vec<Vec<u32>>>,
}

impl TableBlocks {
    /// What changed since the last checkpoint. A page whose patch would fill a block goes as it is: so there
    /// are never more blocks than pages that changed.
    fn changed(table: &Table) -> Self {
        let mut blocks = Self::default();
        let forgotten = usize::from(planted(Planted::ForgetChangedPage));
        for (page, later) in with_later(table.changed_pages().skip(forgotten)) {
            later.into_iter().for_each(|page| table.prefetch_groups(page));
            let groups = patched(table.changed_groups(page));
            if !blocks.heads.last_mut().is_some_and(|heads| heads.try_push(page, &groups)) {
                let mut heads = PatchHeads::default();
                if !heads.try_push(page, &groups) {
                    blocks.whole.push(page);
                    continue;
                }
                blocks.heads.push(heads);
                blocks.starts.push(blocks.patched.len());
            }
            blocks.patched.push(page);
        }
        blocks
    }

    fn count(&self) -> usize {
        self.whole.len() + self.starts.len()
    }

    /// Copies what changed, so that the table may change and be part of another snapshot: from now on what is
    /// there is what a checkpoint holds. Chunks that are taken are left out, as of a snapshot.
    fn copy(&mut self, store: &mut Store) {
        let (table, taken) = (&store.table, store.table.taken_bits(&store.taken));
        let patches_of = |index: usize| {
            let (mut words, pages) = (Vec::with_capacity(PAGE_WORDS), self.pages(index));
            pages.iter().for_each(|&page| table.prefetch_patch(page));
            let heads = &self.heads[index - self.whole.len()];
            push_patches(&mut words, heads, pages, |page, words| {
                patched(table.changed_groups(page)).push_words(&table.without(page, &taken), words);
            });
            words
        };
        let copies = (0..self.count()).map(|index| match self.whole.get(index) {
            Some(&page) => table.without(page, &taken).to_vec(),
            None => patches_of(index),
        });
        self.copied = Some(copies.collect());
        self.heads = Vec::new();
        store.table.clear_changed();
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

/// Adds the patches of pages to an empty block, as they were planned: their heads, then what the groups of
/// each hold, which `push` adds.
fn push_patches(
    words: &mut Vec<u32>,
    heads: &PatchHeads,
    pages: &[usize],
    push: impl Fn(usize, &mut Vec<u32>),
) {
    heads.encode(words);
    pages.iter().for_each(|&page| push(page, words));
    assert_eq!(words.len(), heads.page_words(), "what had changed is what was planned");
}

/// Room for the patches of one block: all copies of it have the same, which are put together once.
#[derive(Default)]
pub struct PatchRoom {
    /// The checkpoint and its unit whose patches are there.
    of: Option<(u64, usize)>,
    words: Vec<u32>,
}

impl PatchRoom {
    /// The patches of pages of the snapshot, which are this unit of this checkpoint and have these heads.
    fn patches(&mut self, of: (u64, usize), table: &Table, heads: &PatchHeads, pages: &[usize]) -> &[u32] {
        if self.of != Some(of) {
            self.of = Some(of);
            self.words.clear();
            pages.iter().for_each(|&page| table.prefetch_patch(page));
            push_patches(&mut self.words, heads, pages, |page, words| {
                table.push_snapshot_groups(page, &patched(table.snapshot_groups(page)), words);
            });
        }
        &self.words
    }
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
    /// Of an incremental one, its place in their chain; of a full one, where its chain begins.
    position: u64,
    /// Of a full one beside which incremental ones go on.
    pub beside: Option<Beside>,
    /// Of an incremental one, number of the checkpoint that it goes on from; else 0.
    behind: u64,
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

/// Items of a list that are said at once while requests go on: of an incremental checkpoint few, as blocks of
/// patches are put together in the same turn, of a full one, whose list is long, more. In small arrays fewer,
/// so that much happens between in the simulator, too.
pub fn items_at_once(config: &ArrayConfig, kind: CheckpointKind) -> usize {
    const CHUNKS_PER_ITEM: u32 = 64;
    let most = match kind {
        CheckpointKind::Incremental => 128,
        CheckpointKind::Full => 512,
    };
    let items = usize::try_from(config.chunks_per_device / CHUNKS_PER_ITEM);
    items.unwrap_or(most).clamp(1, most)
}

/// Bytes of memory of the largest checkpoint: pages that change before they are written are kept as they
/// were, and the scheme's list, of at most so many bytes.
pub fn bytes_max(config: &ArrayConfig, list_bytes: u64) -> u64 {
    (Table::word_count(config) + scheme::list_words_live(config, list_bytes)) * 4
}

/// A number of pages or blocks of a checkpoint, as it is stored.
fn stored(count: usize) -> u32 {
    u32::try_from(count).expect("validated: an area has fewer blocks than 2^32")
}

impl Image {
    /// A full checkpoint of the state as it is: all records up to `through` applied. The pages of the table
    /// stay in it, as its snapshot.
    fn full(
        now: &mut Now<'_>,
        list: ListWords,
        extent: Extent,
        (number, area, devices): (u64, u8, Vec<DevIndex>),
    ) -> Self {
        let mut image = Self::take(now, list, number, devices);
        let table = &mut now.store.table;
        (image.kind, image.base, image.area, image.extent) = (CheckpointKind::Full, number, area, extent);
        image.saved = table.take_snapshot(extent);
        table.hide_taken(&now.store.taken);
        image.saved.append(&mut table.take_directories(&image.saved));
        image.root = table.slots().root(|page| table.next_state(page, number));
        now.store.taken.clear();
        image.assert_room(now.store);
        image
    }

    /// An incremental one of what has changed. The pages of the table stay in it, as its snapshot, unless
    /// they are copied.
    fn incremental(
        now: &mut Now<'_>,
        list: ListWords,
        table: TableBlocks,
        (number, base, devices): (u64, u64, Vec<DevIndex>),
    ) -> Self {
        let mut image = Self::take(now, list, number, devices);
        (image.table, image.base) = (table, base);
        if image.is_copied() {
            return image;
        }
        now.store.table.take_snapshot(Extent::Changes);
        now.store.table.hide_taken(&now.store.taken);
        now.store.taken.clear();
        image
    }

    fn take(now: &Now<'_>, list: ListWords, number: u64, devices: Vec<DevIndex>) -> Self {
        let Now { store, journal, through, .. } = now;
        let log_head = journal.log_head_for(*through, store);
        Self {
            kind: CheckpointKind::Incremental,
            number,
            base: 0,
            area: INCREMENTAL_AREA,
            first_block: 0,
            position: 0,
            beside: None,
            behind: 0,
            through: *through,
            log_head,
            devices,
            config_seq: 0,
            table_words: (store.table.page_count() * PAGE_WORDS) as u64,
            extent: Extent::Changes,
            saved: Vec::new(),
            table: TableBlocks::default(),
            root: Vec::new(),
            list,
            log_head_block: store.log.block_at(log_head).get(),
            log_tail_block: store.log.block_at(store.log.tail()).get(),
        }
    }

    /// Whether nothing of it is in a snapshot of the table: it is the state of its instant whatever becomes
    /// of that, or another checkpoint is being written.
    pub fn is_copied(&self) -> bool {
        self.table.copied.is_some()
    }

    /// Whether all of its list is there. If not, there may be more of its units later.
    pub fn is_listed(&self) -> bool {
        self.list.open.is_none()
    }

    /// The room of its list, for that of the next; none if it is large.
    pub fn into_room(self) -> Vec<u32> {
        const WORDS_MAX: usize = 1 << 23;
        if self.list.words.capacity() <= WORDS_MAX { self.list.words } else { Vec::new() }
    }

    /// Pieces of its list that were said one by one.
    pub fn pieces_listed(&self) -> usize {
        self.list.pieces
    }

    /// The scheme says about so many more items of its list, if that is not all there.
    pub fn list_more(&mut self, store: &Store, scheme: &mut dyn Scheme, items: usize) {
        if !self.is_listed() {
            self.list.say_more(scheme, items);
            if self.kind == CheckpointKind::Full {
                self.assert_room(store);
            }
        }
    }

    /// A full one has room in its area.
    fn assert_room(&self, store: &Store) {
        assert!(
            self.block_count() <= u64::from(store.config.full_blocks),
            "the full-checkpoint area is laid out for the largest state"
        );
    }

    /// Units that are there as they will be: of a list that is not all there no page that is not full.
    pub fn settled_count(&self) -> usize {
        let is_last_full = self.list.words.len().is_multiple_of(PAGE_WORDS);
        self.unit_count() - usize::from(!self.is_listed() && !is_last_full)
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
        if self.is_copied() { &[] } else { self.table.pages(index) }
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

    /// Writes copy `copy` of a unit that goes to the slots of its page into `out`.
    pub fn encode_slot(
        &self,
        (store, journal): (&Store, &Journal),
        (unit, copy): (usize, usize),
        out: &mut [u8],
    ) {
        let (dev, block) = self.slot_of(store, unit, copy);
        let (kind, index) = store.table.slots().name(self.saved[unit]);
        let (array, number) = (journal.array(), self.number);
        let stamp = PageStamp { array, dev, area: PAGE_AREA, block, number, kind, index };
        self.encode_saved(store, unit, &stamp, &mut out[..META_BYTES]);
    }

    /// Writes copy `copy` of a unit that follows the header, which is this page, into `out`, and adds it to
    /// the body checksum of its device.
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
            PageKind::Table
            | PageKind::Patches
            | PageKind::PackedPatches
            | PageKind::Root
            | PageKind::List
            | PageKind::Changes => encode_page(stamp, store.table.snapshot_page(page), out),
        };
    }

    /// What unit `unit` is, which follows the header.
    pub fn body_page<'a>(&'a self, store: &'a Store, unit: usize, room: &'a mut PatchRoom) -> BodyPage<'a> {
        let index = unit - self.saved.len();
        if let Some(words) = self.table.copied.as_ref().and_then(|copied| copied.get(index)) {
            return match index.checked_sub(self.table.whole.len()) {
                None => (PageKind::Table, self.table.whole[index], words),
                Some(block) => (PageKind::PackedPatches, block, words),
            };
        }
        match self.table.pages(index) {
            [] => {}
            &[page, ..] if index < self.table.whole.len() => {
                return (PageKind::Table, page, store.table.snapshot_page(page));
            }
            pages => {
                let block = index - self.table.whole.len();
                let heads = &self.table.heads[block];
                let patches = room.patches((self.number, unit), &store.table, heads, pages);
                return (PageKind::PackedPatches, block, patches);
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
            beside: self.beside,
            behind: self.behind,
            packed: PACKED,
        };
        header.encode(&mut out[..META_BYTES]);
    }
}
