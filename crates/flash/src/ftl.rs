//! The flash translation layer of one domain: page map, open blocks, invalidation.
//!
//! # Arrays
//! `map` has the physical page of each logical page, `owners` the logical page last written to each physical
//! page. A physical page is valid if the map says so: `map[owners[p]] == p`. So invalidating a page costs one
//! counter of its block, and there is no bitmap. Behind the host's logical pages the map has the translation
//! pages (DFTL), and one entry that is never mapped, the owner of pages that were never written. That is 4
//! bytes per logical and 4 per physical page; per block there are 20 bytes and some more.
//!
//! # Frontiers
//! A *frontier* is a set of open blocks, one per way, for one slot, one mode and one purpose. Blocks are
//! opened when their frontier has no room, and closed when full.

use crate::config::{GcFrontier, SsdConfig};
use crate::counters::Counters;
use crate::free::FreeBlocks;
use crate::mapping::{Change, Lookup, MappingCache};
use crate::slc::{CapChooser, Mode, SlcOptions};
use crate::stream::{SlotTable, Tag};
use crate::timing::Media;
use crate::victims::Victims;

/// Stands for no physical page, and for no block.
pub(crate) const NONE: u32 = u32::MAX;
/// The slot of translation pages. It lies beyond all slots that hosts can have.
const TRANSLATION_SLOT: u8 = 18;
/// How many slots there may be.
pub(crate) const SLOTS: usize = TRANSLATION_SLOT as usize + 1;

/// What a block is used for now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Free,
    Open,
    Closed,
}

/// What is known of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockInfo {
    pub valid: u16,
    pub slot: u8,
    pub state: State,
    /// How it is programmed; a free block has the mode it had.
    pub mode: Mode,
}

/// What a frontier is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// It takes the host's writes, and GC's with [`GcFrontier::Shared`].
    Host,
    /// It takes GC's writes with [`GcFrontier::Separate`].
    Gc,
    /// It takes what static wear levelling moves.
    Levelling,
}

/// An open block: the next page to write, and the one after its last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub next: u32,
    pub end: u32,
    pub block: u32,
}

impl Open {
    const NOTHING: Self = Self { next: 0, end: 0, block: NONE };

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.next == self.end
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Ftl {
    pub(crate) map: Vec<u32>,
    pub(crate) owners: Vec<u32>,
    pub(crate) blocks: Vec<BlockInfo>,
    pub(crate) open: Vec<Open>,
    pub(crate) free: FreeBlocks,
    pub(crate) victims: Victims,
    pub(crate) slots: SlotTable,
    pub(crate) cache: Option<MappingCache>,
    pub(crate) counters: Counters,
    /// Counts the host's page writes and trims so far; it is never reset.
    pub(crate) clock: u64,
    /// Pages of the host that are mapped.
    pub(crate) mapped: u32,
    pub(crate) logical_pages: u32,
    pub(crate) pages_per_block: u32,
    /// Turns page numbers into block numbers by a multiplication.
    reciprocal: u64,
    pub(crate) ways: Ways,
    pub(crate) slc: Slc,
    parity: ParityClasses,
    pub(crate) wear: Wear,
    pub(crate) gc: GcState,
    pub(crate) programmed: Programmed,
}

/// Ways take turns.
#[derive(Clone, Debug)]
pub(crate) struct Ways {
    pub count: u32,
    /// The next one of each slot.
    pub next: [u32; SLOTS],
}

/// Classes of parity that the device itself tells apart.
#[derive(Clone, Debug)]
struct ParityClasses {
    count: u8,
    /// Host page writes when each block was opened.
    opened: Vec<u64>,
    /// Mean time between writes of a parity page, in host page writes.
    life: f64,
}

/// Erases, and static wear levelling.
#[derive(Clone, Debug)]
pub(crate) struct Wear {
    /// The erases of each block.
    pub erases: Vec<u32>,
    /// Cold blocks are moved from this difference of erases on; `None` is never.
    pub spread: Option<u32>,
    /// Erases since levelling looked for cold blocks.
    pub erases_since: u32,
}

/// What GC is told, and works with.
#[derive(Clone, Debug)]
pub(crate) struct GcState {
    /// Free blocks below which it makes room.
    pub free_min: u32,
    /// Where its copies go.
    pub frontier: GcFrontier,
    /// A copy of the victim's owners, and then the pages that were moved.
    pub scratch: Vec<u32>,
    /// Victims collected for the room that is being made.
    pub effort: u32,
}

/// Programs that the counters do not have. The laws that `check.rs` tests need them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Programmed {
    /// Pages programmed before their blocks were last erased, and pages of open blocks not programmed yet.
    pub before_erase: u64,
    /// The counters' base: programs before they were last reset.
    pub before_reset: u64,
}

/// Blocks in SLC mode.
#[derive(Clone, Debug)]
pub(crate) struct Slc {
    /// `None` if there is no SLC mode.
    pub options: Option<SlcOptions>,
    /// Chooses the dynamic cap.
    pub chooser: Option<Box<dyn CapChooser>>,
    /// So many may be in use.
    pub cap: u32,
    /// So many there are, free ones included.
    pub blocks: u32,
    /// So many are open or closed.
    pub in_use: u32,
    /// Whether no space for one more was found since the last erase.
    pub denied: bool,
    /// The counters when the cap was last chosen.
    pub seen: Counters,
}

impl Ftl {
    /// Makes a domain, the first or any other, of a checked configuration; `chooser` is what chooses a
    /// dynamic cap.
    pub(crate) fn new(config: &SsdConfig, domain: u32, chooser: Option<Box<dyn CapChooser>>) -> Self {
        let domains = u64::from(config.domains);
        let own =
            config.logical_pages / domains + u64::from(u64::from(domain) < config.logical_pages % domains);
        // The configuration was checked: all of these fit.
        let (logical_pages, blocks) = (own as u32, config.geometry.blocks() / config.domains);
        let pages_per_block = config.geometry.pages_per_block;
        let translation_pages = config.translation_pages() as u32;
        let physical_pages = blocks as usize * pages_per_block as usize;
        let nobody = logical_pages + translation_pages;
        let mut free = FreeBlocks::new(config.ways, config.wear_levelling.dynamic);
        (0..blocks).for_each(|block| free.push(block, Mode::Mlc, 0));
        let info = BlockInfo { valid: 0, slot: 0, state: State::Free, mode: Mode::Mlc };
        let cache = config.mapping.and_then(|mapping| {
            let entries = mapping.cache_bytes / u64::from(mapping.entry_bytes) / domains;
            let per_page = mapping.entries_per_page(config.geometry.page_bytes);
            // A cache for the whole map never reads or writes any of it.
            (entries < own).then(|| MappingCache::new(logical_pages, entries as usize, per_page))
        });
        let mut ftl = Self {
            map: vec![NONE; nobody as usize + 1],
            owners: vec![nobody; physical_pages],
            blocks: vec![info; blocks as usize],
            open: vec![Open::NOTHING; 3 * SLOTS * 2 * config.ways as usize],
            free,
            victims: Victims::new(config.gc, blocks, pages_per_block, config.seed ^ u64::from(domain)),
            slots: SlotTable::new(config.streams),
            cache,
            counters: Counters::default(),
            clock: 0,
            mapped: 0,
            logical_pages,
            pages_per_block,
            // Of blocks of one page there is none, and nobody asks.
            reciprocal: (u64::MAX / u64::from(pages_per_block)).wrapping_add(1),
            ways: Ways { count: config.ways, next: [0; SLOTS] },
            slc: Slc {
                options: config.slc,
                chooser,
                cap: 0,
                blocks: 0,
                in_use: 0,
                denied: false,
                seen: Counters::default(),
            },
            parity: ParityClasses {
                count: config.streams.parity_classes,
                opened: vec![0; blocks as usize],
                life: 0.0,
            },
            wear: Wear {
                erases: vec![0; blocks as usize],
                spread: config.wear_levelling.static_spread,
                erases_since: 0,
            },
            gc: GcState {
                free_min: config.domain_free_blocks_min(),
                frontier: config.gc_frontier,
                scratch: vec![0; pages_per_block as usize],
                effort: 0,
            },
            programmed: Programmed::default(),
        };
        ftl.start_slc();
        ftl
    }

    /// The block a physical page lies in.
    #[inline]
    pub(crate) fn block_of(&self, page: u32) -> u32 {
        if self.pages_per_block == 1 {
            return page;
        }
        // Exact for 32-bit numbers (Lemire, Kaser, Kurz, "Faster remainder by direct computation", 2019).
        ((u128::from(page) * u128::from(self.reciprocal)) >> 64) as u32
    }

    /// The space its valid pages take, in pages of a block in MLC mode.
    #[inline]
    pub(crate) fn key_of(&self, info: BlockInfo) -> u32 {
        match (info.mode, &self.slc.options) {
            (Mode::Slc, Some(slc)) => u32::from(info.valid) * (self.pages_per_block / slc.pages_per_block),
            (Mode::Slc, None) | (Mode::Mlc, _) => u32::from(info.valid),
        }
    }

    /// Pages of a block in this mode.
    pub(crate) fn capacity(&self, mode: Mode) -> u32 {
        match (mode, &self.slc.options) {
            (Mode::Slc, Some(slc)) => slc.pages_per_block,
            (Mode::Slc, None) | (Mode::Mlc, _) => self.pages_per_block,
        }
    }

    #[inline]
    pub(crate) fn frontier(&self, purpose: Purpose, slot: u8, mode: Mode, way: u32) -> usize {
        let place = (purpose as usize * SLOTS + usize::from(slot)) * 2 + mode.index();
        place * self.ways.count as usize + way as usize
    }

    #[inline]
    pub(crate) fn turn(&mut self, slot: u8) -> u32 {
        if self.ways.count == 1 {
            return 0;
        }
        let way = self.ways.next[usize::from(slot)];
        self.ways.next[usize::from(slot)] = if way + 1 == self.ways.count { 0 } else { way + 1 };
        way
    }

    /// The host writes a page.
    #[inline]
    pub(crate) fn write<M: Media>(&mut self, lpn: u32, tag: Tag, media: &mut M) {
        self.clock += 1;
        self.counters.host_pages_written += 1;
        let mut slot = self.slots.slot_of(tag);
        if tag.is_parity() {
            self.counters.parity_pages_written += 1;
            if self.parity.count > 1 && tag == Tag::Parity(0) {
                slot = self.classify_parity(lpn);
            }
        }
        if let Some(chooser) = &mut self.slc.chooser {
            chooser.written(lpn, tag);
        }
        if self.cache.is_some() {
            self.look_up(lpn, Change::Yes, media);
        }
        let frontier = self.host_frontier(slot, media);
        let (block, mode) = self.put(lpn, frontier, 1);
        media.program(block, mode);
    }

    /// Loads what writing these pages will need, so that the caches have it. The number
    /// answered means nothing.
    ///
    /// Memory takes a hundred times as long as an instruction, and writes depend on what they load, one after
    /// the other. These loads depend on nothing, so a processor has them under way together.
    pub(crate) fn warm(&self, lpns: impl Iterator<Item = u32> + Clone) -> u32 {
        const LINE_PAGES: usize = 16;
        let mut sum = lpns.clone().fold(0u32, |sum, lpn| sum ^ self.map[lpn as usize]);
        for block in self.victims.next_ones() {
            let first = (block * self.pages_per_block) as usize;
            let owners = &self.owners[first..first + self.pages_per_block as usize];
            sum = owners.iter().step_by(LINE_PAGES).fold(sum, |sum, owner| sum ^ owner);
        }
        for lpn in lpns {
            let block = self.block_of(self.map[lpn as usize]);
            // A page that is not mapped has no block.
            let Some(info) = self.blocks.get(block as usize) else { continue };
            sum ^= u32::from(info.valid) ^ self.victims.warm(block);
        }
        sum
    }

    /// Loads the map's entries of these pages. The number answered means nothing.
    #[inline]
    pub(crate) fn warm_map(&self, lpns: &[u32]) -> u32 {
        lpns.iter().fold(0, |sum, &lpn| sum ^ self.map[lpn as usize])
    }

    /// Finds or makes a frontier with room for a page of the host.
    #[inline]
    fn host_frontier<M: Media>(&mut self, slot: u8, media: &mut M) -> usize {
        let way = self.turn(slot);
        if self.free.count() >= self.gc.free_min {
            if self.slc.options.is_some() && self.slots.is_parity(slot) {
                let slc = self.frontier(Purpose::Host, slot, Mode::Slc, way);
                if !self.open[slc].is_full() {
                    return slc;
                }
                if self.slc.in_use < self.slc.cap && !self.slc.denied {
                    return self.make_room(slot, way, media);
                }
            }
            let mlc = self.frontier(Purpose::Host, slot, Mode::Mlc, way);
            if !self.open[mlc].is_full() {
                return mlc;
            }
        }
        self.make_room(slot, way, media)
    }

    /// Puts a page on a frontier with room, in place of its old version.
    #[inline]
    fn put(&mut self, lpn: u32, frontier: usize, is_host_page: u32) -> (u32, Mode) {
        let open = &mut self.open[frontier];
        let (page, block) = (open.next, open.block);
        open.next += 1;
        let old = std::mem::replace(&mut self.map[lpn as usize], page);
        self.owners[page as usize] = lpn;
        if old != NONE {
            self.invalidate(old);
        } else {
            self.mapped += is_host_page;
        }
        let info = &mut self.blocks[block as usize];
        info.valid += 1;
        let mode = info.mode;
        match mode {
            Mode::Mlc => self.counters.programs_mlc += 1,
            Mode::Slc => self.counters.programs_slc += 1,
        }
        (block, mode)
    }

    #[inline]
    fn invalidate(&mut self, page: u32) {
        let block = self.block_of(page);
        let info = &mut self.blocks[block as usize];
        info.valid -= 1;
        let info = *info;
        if info.state == State::Closed {
            let key = self.key_of(info);
            self.victims.lower(block, key, self.clock);
        }
    }

    /// The host reads a page. Answers whether the page is mapped.
    pub(crate) fn read<M: Media>(&mut self, lpn: u32, media: &mut M) -> bool {
        self.counters.host_pages_read += 1;
        if self.cache.is_some() {
            self.look_up(lpn, Change::No, media);
        }
        let page = self.map[lpn as usize];
        if page == NONE {
            return false;
        }
        let block = self.block_of(page);
        media.read(block, self.blocks[block as usize].mode);
        true
    }

    /// The host declares a page unused.
    pub(crate) fn trim<M: Media>(&mut self, lpn: u32, media: &mut M) {
        if self.map[lpn as usize] == NONE {
            return;
        }
        self.clock += 1;
        if let Some(chooser) = &mut self.slc.chooser {
            chooser.trimmed(lpn);
        }
        if self.cache.is_some() {
            self.look_up(lpn, Change::Yes, media);
        }
        let old = std::mem::replace(&mut self.map[lpn as usize], NONE);
        self.invalidate(old);
        self.mapped -= 1;
        self.counters.host_pages_trimmed += 1;
    }

    /// Brings an entry of the map into the cache.
    fn look_up<M: Media>(&mut self, lpn: u32, change: Change, media: &mut M) {
        let Some(cache) = &mut self.cache else { return };
        let Lookup::Miss { write_back } = cache.look_up(lpn, change) else { return };
        let own = cache.page_of(lpn);
        if let Some(page) = write_back {
            self.keep_free(media);
            self.read_translation(page, media);
            self.write_translation(page, media);
        }
        self.read_translation(own, media);
    }

    pub(crate) fn read_translation<M: Media>(&mut self, page: u32, media: &mut M) {
        let physical = self.map[(self.logical_pages + page) as usize];
        if physical != NONE {
            let block = self.block_of(physical);
            self.counters.translation_reads += 1;
            media.map_read(block, self.blocks[block as usize].mode);
        }
    }

    /// Writes a translation page. It takes a free block if need be; the caller has made sure that
    /// there is one.
    pub(crate) fn write_translation<M: Media>(&mut self, page: u32, media: &mut M) {
        // One open block at a time, so that a victim's translation pages take few free blocks; the next on
        // another way.
        let frontier = self.frontier(Purpose::Host, TRANSLATION_SLOT, Mode::Mlc, 0);
        if self.open[frontier].is_full() {
            let way = self.turn(TRANSLATION_SLOT);
            self.renew(frontier, TRANSLATION_SLOT, Mode::Mlc, way);
        }
        self.counters.translation_writes += 1;
        let (block, mode) = self.put(self.logical_pages + page, frontier, 0);
        media.map_program(block, mode);
    }

    /// Chooses the slot of a parity page by how long its last version lived: short-lived parity goes to low
    /// classes. The boundaries are the mean life and powers of four of it, as those of ages in SepBIT.
    fn classify_parity(&mut self, lpn: u32) -> u8 {
        let page = self.map[lpn as usize];
        let last = self.parity.count - 1;
        if page == NONE {
            return self.slots.slot_of(Tag::Parity(last));
        }
        let life = (self.clock - self.parity.opened[self.block_of(page) as usize]) as f64;
        if self.parity.life == 0.0 {
            self.parity.life = life;
        }
        self.parity.life += (life - self.parity.life) / 4096.0;
        let mut class = 0;
        let mut limit = self.parity.life;
        while class < last && life > limit {
            class += 1;
            limit *= 4.0;
        }
        self.slots.slot_of(Tag::Parity(class))
    }

    /// Closes what is open on a frontier and opens a free block there. There must be a free block.
    pub(crate) fn renew(&mut self, frontier: usize, slot: u8, mode: Mode, way: u32) {
        self.close(frontier);
        let block = self.take_free(mode, way);
        self.open_block(frontier, block, slot, mode);
    }

    pub(crate) fn close(&mut self, frontier: usize) {
        let block = std::mem::replace(&mut self.open[frontier], Open::NOTHING).block;
        if block != NONE {
            self.blocks[block as usize].state = State::Closed;
            let key = self.key_of(self.blocks[block as usize]);
            self.victims.insert(block, key, self.clock);
        }
    }

    pub(crate) fn open_block(&mut self, frontier: usize, block: u32, slot: u8, mode: Mode) {
        self.blocks[block as usize] = BlockInfo { valid: 0, slot, state: State::Open, mode };
        self.parity.opened[block as usize] = self.clock;
        if mode == Mode::Slc {
            self.slc.in_use += 1;
        }
        let next = block * self.pages_per_block;
        self.open[frontier] = Open { next, end: next + self.capacity(mode), block };
    }

    /// Takes a free block to be programmed in this mode (P-07: one that was in this mode already, else a
    /// converted one).
    fn take_free(&mut self, mode: Mode, way: u32) -> u32 {
        if let Some(block) = self.free.take(way, mode) {
            return block;
        }
        match mode {
            Mode::Mlc => {
                let block = self.free.take(way, Mode::Slc).expect("the caller has seen a free block");
                self.note_mode(Mode::Slc, Mode::Mlc);
                block
            }
            Mode::Slc => {
                let block = self.free.take(way, Mode::Mlc).expect("the caller has seen a free block");
                self.note_mode(Mode::Mlc, Mode::Slc);
                block
            }
        }
    }

    /// Counts a block whose mode changes.
    pub(crate) fn note_mode(&mut self, from: Mode, to: Mode) {
        match (from, to) {
            (Mode::Mlc, Mode::Slc) => {
                self.slc.blocks += 1;
                self.counters.slc_conversions += 1;
            }
            (Mode::Slc, Mode::Mlc) => {
                self.slc.blocks -= 1;
                self.counters.mlc_conversions += 1;
            }
            (Mode::Mlc, Mode::Mlc) | (Mode::Slc, Mode::Slc) => {}
        }
    }

    /// Bytes of memory that grow with the flash.
    pub(crate) fn bytes(&self) -> usize {
        (self.map.len() + self.owners.len() + self.wear.erases.len()) * 4
            + self.blocks.len() * (size_of::<BlockInfo>() + 8)
            + self.victims.bytes()
            + self.cache.as_ref().map_or(0, MappingCache::bytes)
            + self.slc.chooser.as_ref().map_or(0, |chooser| chooser.bytes())
    }
}
