//! The content of one checkpoint, taken at one instant, and how its blocks are laid out on a device.

use crate::health::Health;
use crate::journal::Journal;
use crate::planted::{Planted, planted};
use crate::scheme::{self, Scheme};
use crate::store::Store;
use crate::table::Table;
use block::{DevIndex, META_BYTES, Seq};
use format::{
    ArrayConfig, BodyCrc, CheckpointHeader, CheckpointKind, INCREMENTAL_AREA, PAGE_WORDS, PageKind,
    PageStamp, encode_page,
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
        store: &Store,
        scheme: &dyn Scheme,
        journal: &Journal,
        health: &Health,
        through: Seq,
    ) -> Image {
        let (copies, n) = (store.config.geometry.parity_count() + 1, store.main_count());
        let same = self.devices.len() == copies && self.devices.iter().all(|&dev| health.is_writable(dev));
        let room = u64::from(store.config.incremental_blocks.saturating_sub(self.incremental_next));
        let take = |kind, devices| Image::take(store, scheme, journal, kind, self, devices, through);
        // What is too large is let go before the full one is taken: each is a copy of much of the table.
        let small = (same && wanted == CheckpointKind::Incremental)
            .then(|| take(CheckpointKind::Incremental, self.devices.clone()))
            .filter(|image| image.block_count() <= room);
        small.unwrap_or_else(|| {
            let first = (self.number as usize + 1) % n;
            let ring = (0..n).map(|i| DevIndex::new(((first + i) % n) as u16));
            let devices = ring.filter(|&dev| health.is_writable(dev)).take(copies).collect();
            let image = take(CheckpointKind::Full, devices);
            assert!(
                image.block_count() <= u64::from(store.config.full_blocks),
                "the full-checkpoint area is laid out for the largest state"
            );
            image
        })
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
    /// Records up to this are contained.
    pub through: Seq,
    /// Position in the log region from which replay starts.
    pub log_head: u64,
    /// The main devices it goes to.
    pub devices: Vec<DevIndex>,
    /// Update of the superblocks that every working member has; 0 until it is said.
    pub config_seq: u64,
    pages: Vec<(PageKind, u32, u32)>,
    words: Vec<u32>,
    table_words: u64,
    list_words: u64,
    log_head_block: u32,
    log_tail_block: u32,
}

/// Bytes of memory of the largest checkpoint: a copy of the table, and the scheme's list, which is there
/// twice while it is taken.
pub fn bytes_max(config: &ArrayConfig) -> u64 {
    let list = scheme::list_words_live(config);
    (Table::word_count(config) + 2 * list) * 4
}

impl Image {
    /// Takes the state as it is: all records up to `through` applied.
    fn take(
        store: &Store,
        scheme: &dyn Scheme,
        journal: &Journal,
        kind: CheckpointKind,
        place: &CheckpointPlace,
        devices: Vec<DevIndex>,
        through: Seq,
    ) -> Self {
        let mut list = Vec::new();
        scheme.save(store, &mut list);
        let (mut pages, mut words) = (Vec::new(), Vec::new());
        let mut push = |kind, index: usize, content: &[u32]| {
            pages.push((kind, index as u32, content.len() as u32));
            words.extend_from_slice(content);
            words.resize(pages.len() * PAGE_WORDS, 0);
        };
        match kind {
            CheckpointKind::Full => (0..store.table.page_count())
                .filter(|&index| store.table.page(index).iter().any(|&word| word != 0))
                .for_each(|index| push(PageKind::Table, index, store.table.page(index))),
            CheckpointKind::Incremental => {
                store
                    .table
                    .changed_pages()
                    .skip(usize::from(planted(Planted::ForgetChangedPage)))
                    .for_each(|index| push(PageKind::Table, index, store.table.page(index)));
            }
        }
        list.chunks(PAGE_WORDS).enumerate().for_each(|(index, content)| push(PageKind::List, index, content));
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
            pages,
            words,
            table_words: store.table.words().len() as u64,
            list_words: list.len() as u64,
            log_head_block: store.log.block_at(log_head).get(),
            log_tail_block: store.log.block_at(store.log.tail()).get(),
        }
    }

    /// Pages after the header.
    pub fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// Blocks of the whole checkpoint.
    pub fn block_count(&self) -> u64 {
        self.pages.len() as u64 + 1
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
        journal: &Journal,
        dev: DevIndex,
        index: usize,
        body: &mut BodyCrc,
        out: &mut [u8],
    ) {
        let (kind, page, len) = self.pages[index];
        let stamp = PageStamp {
            array: journal.array(),
            dev,
            area: self.area,
            block: self.first_block + 1 + index as u32,
            number: self.number,
            kind,
            index: page,
        };
        let words = &self.words[index * PAGE_WORDS..][..len as usize];
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
            list_words: self.list_words,
            page_count: self.pages.len() as u32,
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
