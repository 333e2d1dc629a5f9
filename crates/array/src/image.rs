//! The content of one checkpoint, the state at one instant, and how its blocks are laid out on a device.

use crate::health::Health;
use crate::journal::Journal;
use crate::planted::{Planted, planted};
use crate::scheme::{self, Scheme};
use crate::store::Store;
use crate::table::Table;
use block::{DevIndex, META_BYTES, Seq};
use format::{
    ArrayConfig, BodyCrc, CheckpointHeader, CheckpointKind, GroupBits, INCREMENTAL_AREA, PAGE_WORDS,
    PageKind, PageStamp, encode_page,
};

/// Where the newest checkpoint is, and where the next goes.
#[derive(Clone, Debug)]
pub struct CheckpointPlace {
    /// Number of the newest checkpoint; 0 = none yet.
    pub number: u64,
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
    /// Takes the next checkpoint: an incremental one if no more is wanted, all members that hold the newest
    /// still work, and there is room; else a full one, in the other area of the members that follow.
    pub fn choose(
        &self,
        wanted: CheckpointKind,
        store: &mut Store,
        scheme: &dyn Scheme,
        journal: &Journal,
        health: &Health,
        through: Seq,
    ) -> Image {
        let (copies, n) = (store.config.geometry.parity_count() + 1, store.main_count());
        let mut list = Vec::new();
        scheme.save(store, &mut list);
        let same = self.devices.len() == copies && self.devices.iter().all(|&dev| health.is_writable(dev));
        let room = u64::from(store.config.incremental_blocks.saturating_sub(self.incremental_next));
        let patches =
            (same && wanted == CheckpointKind::Incremental).then(|| TableBlocks::changed(&store.table));
        let list_blocks = list.len().div_ceil(PAGE_WORDS);
        let fits = |table: &TableBlocks| (1 + table.count() + list_blocks) as u64 <= room;
        let patches = patches.filter(fits);
        let (kind, devices) = if patches.is_some() {
            (CheckpointKind::Incremental, self.devices.clone())
        } else {
            let first = (self.number as usize + 1) % n;
            let ring = (0..n).map(|i| DevIndex::new(((first + i) % n) as u16));
            (CheckpointKind::Full, ring.filter(|&dev| health.is_writable(dev)).take(copies).collect())
        };
        let mut image = Image::take(store, list, journal, kind, self, devices, through);
        image.table = patches.unwrap_or(image.table);
        assert!(
            kind == CheckpointKind::Incremental || image.block_count() <= u64::from(store.config.full_blocks),
            "the full-checkpoint area is laid out for the largest state"
        );
        image
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
    /// What it holds of the table, as that was when the snapshot was taken.
    table: TableBlocks,
    /// The scheme's list; its pages follow those of the table.
    list: Vec<u32>,
    table_words: u64,
    log_head_block: u32,
    log_tail_block: u32,
}

/// Bytes of memory of the largest checkpoint: pages that change before they are written are kept as they
/// were, and the scheme's list.
pub fn bytes_max(config: &ArrayConfig) -> u64 {
    (Table::word_count(config) + scheme::list_words_live(config)) * 4
}

impl Image {
    /// Takes the state as it is: all records up to `through` applied. The pages of the table stay in it, as
    /// its snapshot.
    fn take(
        store: &mut Store,
        list: Vec<u32>,
        journal: &Journal,
        kind: CheckpointKind,
        place: &CheckpointPlace,
        devices: Vec<DevIndex>,
        through: Seq,
    ) -> Self {
        let whole = store.table.take_snapshot(kind);
        let number = place.number + 1;
        let (area, first_block, base) = match kind {
            CheckpointKind::Full => (place.area ^ 1, 0, number),
            CheckpointKind::Incremental => (INCREMENTAL_AREA, place.incremental_next, place.base),
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
            table: TableBlocks { whole, ..TableBlocks::default() },
            list,
            log_head_block: store.log.block_at(log_head).get(),
            log_tail_block: store.log.block_at(store.log.tail()).get(),
        }
    }

    /// Pages after the header.
    pub fn page_count(&self) -> usize {
        self.table.count() + self.list.len().div_ceil(PAGE_WORDS)
    }

    /// The pages of the table that page `index` holds, whole or patches of them; none for those of the list.
    pub fn table_pages(&self, index: usize) -> &[usize] {
        self.table.pages(index)
    }

    /// Blocks of the whole checkpoint.
    pub fn block_count(&self) -> u64 {
        self.page_count() as u64 + 1
    }

    /// Byte offset on a main device of block `index`: 0 is the header, the pages follow.
    pub fn offset(&self, store: &Store, index: usize) -> u64 {
        let block = self.first_block + index as u32;
        match self.kind {
            CheckpointKind::Full => store.config.full_offset(usize::from(self.area), block),
            CheckpointKind::Incremental => store.config.incremental_offset(block),
        }
    }

    /// Writes page `index` for one device into `out` and adds it to that device's body checksum.
    pub fn encode_page(
        &self,
        (store, journal): (&Store, &Journal),
        dev: DevIndex,
        index: usize,
        body: &mut BodyCrc,
        out: &mut [u8],
    ) {
        let mut patches = [0; PAGE_WORDS];
        let (kind, page, words) = match self.table_pages(index) {
            &[page, ..] if index < self.table.whole.len() => {
                (PageKind::Table, page, &store.table.snapshot_page(page)[..])
            }
            [] => {
                let page = index - self.table.count();
                let rest = &self.list[page * PAGE_WORDS..];
                (PageKind::List, page, &rest[..rest.len().min(PAGE_WORDS)])
            }
            pages => {
                let used = encode_patches(store, pages, &mut patches);
                (PageKind::Patches, index - self.table.whole.len(), &patches[..used])
            }
        };
        let stamp = PageStamp {
            array: journal.array(),
            dev,
            area: self.area,
            block: self.first_block + 1 + index as u32,
            number: self.number,
            kind,
            index: page as u32,
        };
        body.push(encode_page(&stamp, words, &mut out[..META_BYTES]));
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
            list_words: self.list.len() as u64,
            page_count: self.page_count() as u32,
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
