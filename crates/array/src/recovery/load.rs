//! Reading the newest checkpoint back.

use super::chain::{AHEAD_BLOCKS, ChainAhead, Run};
use super::partial::Partial;
use crate::health::Health;
use crate::image::{Chain, CheckpointPlace};
use crate::older::{Contradiction, Inconsistency};
use crate::planted::{Planted, planted};
use crate::restart::{AssembleError, is_present};
use crate::saved::SavedPages;
use crate::scheme::Scheme;
use crate::store::Store;
use crate::table::{Table, WORDS};
use block::{DevIndex, DeviceSet, Epoch, META_BYTES, Pool, ReadNow, Seq};
use format::{
    ArrayConfig, ArrayUuid, BlockExpect, CheckpointHeader, CheckpointKind, FormatError, GroupBits,
    INCREMENTAL_AREA, List, PAGE_WORDS, Page, PageExpect, PageKind, Patch, Superblock,
    decode_checkpoint_header, decode_packed_patches, decode_page, decode_patches, fold_list, unpack_list,
};
use std::collections::HashMap;
use std::mem;

/// Blocks read at once.
const READ_BLOCKS: usize = 512;
/// Words of a list that are worth a thread of their own.
const WORTH_A_THREAD: usize = 1 << 16;

/// Whether two headers are of one checkpoint.
fn is_copy(one: &CheckpointHeader, other: &CheckpointHeader) -> bool {
    (one.number, one.epoch, one.nonce) == (other.number, other.epoch, other.nonce)
}

/// A full checkpoint and the incremental ones behind it, as far as they were looked at.
#[derive(Clone, Copy)]
struct Series {
    full: CheckpointHeader,
    newest: CheckpointHeader,
    chain: Chain,
    /// The last update of the superblocks that was durable when one of them was written.
    config_seq: u64,
}

impl Series {
    fn new(full: CheckpointHeader) -> Self {
        let chain = full.beside.map_or_else(Chain::default, |beside| Chain::from(beside.block));
        Self { full, newest: full, chain, config_seq: full.config_seq }
    }

    /// Whether an incremental checkpoint may be the next one. Numbers between are those of checkpoints that
    /// were given up, or of the full one beside which it was written; where it goes on from tells those from
    /// checkpoints whose headers cannot be read, and one behind these is not to be had.
    fn is_next(&self, header: &CheckpointHeader) -> bool {
        let Self { full, newest, .. } = self;
        // Those beside a full one are of its assembly, and end when it is durable.
        let is_first = newest.number == full.number || newest.base != full.number;
        let is_beside = full.beside.is_some_and(|beside| beside.base == header.base)
            && (header.epoch, header.nonce) == (full.epoch, full.nonce);
        (header.goes_on_from(newest) || planted(Planted::ChainOverGap))
            && (header.base == full.number || (is_beside && is_first))
            && header.number > newest.number
            && header.epoch >= newest.epoch
    }

    /// Goes on to the next one.
    fn push(&mut self, header: &CheckpointHeader, ring: u32) {
        self.chain = self.chain.behind(header.block, 1 + u64::from(header.page_count), ring);
        self.newest = *header;
        self.config_seq = self.config_seq.max(header.config_seq);
    }
}

/// A loaded checkpoint.
pub(super) struct Loaded {
    pub place: CheckpointPlace,
    /// Where the pages of the table are that are not in memory.
    pub saved: SavedPages,
    pub through: Seq,
    pub epoch: Epoch,
    pub nonce: u64,
    /// Block of the log region from which replay starts.
    pub log_head: u32,
    /// Records that are in a checkpoint of the same assembly whose header is there, but not its pages.
    pub seen_through: Seq,
    /// Update of the superblocks that was durable when it was written.
    pub config_seq: u64,
    /// The last update that was durable when it, or one that it builds on, was written.
    pub known_seq: u64,
    /// The full one, if too few members hold it.
    pub partial: Option<Partial>,
}

impl Loaded {
    /// Whether the checkpoint was written by the assembly that the superblock names.
    pub fn is_of(&self, newest: &Superblock) -> bool {
        (self.epoch, self.nonce) == (newest.epoch, newest.nonce)
    }
}

/// The list of a full checkpoint, or of an incremental one that has it as a whole, and changes of it, these
/// packed.
pub(super) struct Lists {
    whole: Result<Vec<u32>, FormatError>,
    /// The list is packed still.
    is_packed: bool,
    changes: Vec<Vec<u32>>,
}

impl Lists {
    fn new(packed: Vec<u32>) -> Self {
        Self { whole: Ok(packed), is_packed: true, changes: Vec::new() }
    }

    /// The list of the next checkpoint of the chain.
    fn push(&mut self, list: Vec<u32>, are_changes: bool) {
        if !are_changes {
            *self = Self::new(list);
            return;
        }
        if planted(Planted::NewestChangesOnly) {
            self.changes.clear();
        }
        self.changes.push(list);
    }

    /// Unpacks the list, but not the changes. What is packed goes as soon as it is unpacked.
    fn unpack(&mut self) {
        if mem::take(&mut self.is_packed) {
            self.whole = mem::replace(&mut self.whole, Ok(Vec::new())).and_then(|words| unpack_list(&words));
        }
    }

    /// The same on a thread of its own, on which the scheme makes room for it, too, if that is worth it; the
    /// caller's does `work` meanwhile.
    fn unpack_beside<T>(
        &mut self,
        config: &ArrayConfig,
        scheme: &mut dyn Scheme,
        work: impl FnOnce() -> T,
    ) -> T {
        let is_worth_it = self.whole.as_ref().is_ok_and(|words| words.len() >= WORTH_A_THREAD);
        let unpack = || {
            self.unpack();
            let list = self.whole.as_ref().ok().and_then(|words| List::read(words).ok());
            list.into_iter().for_each(|list| scheme.foresee_list(config, list));
        };
        std::thread::scope(|scope| {
            if is_worth_it {
                // Without another thread it is unpacked later.
                let _ = std::thread::Builder::new().spawn_scoped(scope, unpack);
            }
            work()
        })
    }

    /// All of it together, which is the list of checkpoint `checkpoint`; to be had once.
    pub fn fold(&mut self, checkpoint: u64) -> Result<Vec<u32>, Inconsistency> {
        self.unpack();
        let whole = mem::replace(&mut self.whole, Ok(Vec::new()));
        let changes = mem::take(&mut self.changes);
        let folded = whole.and_then(|whole| {
            if changes.is_empty() {
                return Ok(whole);
            }
            let unpack = |words: Vec<u32>| unpack_list(&words);
            let changes: Vec<Vec<u32>> = changes.into_iter().map(unpack).collect::<Result<_, _>>()?;
            fold_list(&whole, changes.iter().map(Vec::as_slice))
        });
        folded.map_err(|cause| Inconsistency::List { checkpoint, cause })
    }
}

/// What the table was before a checkpoint was loaded.
#[derive(Default)]
struct Replaced {
    /// Patches that change pages back, the last first.
    patches: Vec<u32>,
    /// Pages that a patch waits for.
    waited_for: Vec<usize>,
}

impl Replaced {
    fn undo(&self, table: &mut Table) {
        let patches = decode_patches(&self.patches).expect("patches of ours can be read");
        patches.iter().rev().for_each(|patch| table.apply_patch(patch));
        self.waited_for.iter().for_each(|&page| table.wait_no_more(page));
    }
}

struct Source<'a> {
    devices: &'a mut dyn DeviceSet,
    present: Vec<DevIndex>,
    /// Those of them that hold every copy of a page that they ought to.
    complete: Vec<DevIndex>,
    array: ArrayUuid,
    config: ArrayConfig,
    /// What the newest superblock says of the assembly that wrote it.
    assembly: (Epoch, u64),
    /// Headers that were looked for, by area and block: chains of two full checkpoints may have the same
    /// ones, and are followed twice.
    headers: HashMap<(u8, u32), Vec<CheckpointHeader>>,
    /// Checkpoints whose pages are on no member whole.
    pageless: Vec<CheckpointHeader>,
    /// Where a header of each is read to.
    heads: Pool,
    /// Where stretches are read to.
    room: Option<Pool>,
    ahead: ChainAhead,
}

/// Loads the table of the newest full checkpoint and of the incremental ones that build on it into `store`;
/// the other value is their lists, for [`take_list`].
pub(super) fn load(
    devices: &mut dyn DeviceSet,
    health: &Health,
    superblock: &Superblock,
    store: &mut Store,
    scheme: &mut dyn Scheme,
) -> Result<(Loaded, Lists), AssembleError> {
    let mut source = Source::new(devices, health, superblock, store.config);
    let mut fulls: Vec<CheckpointHeader> = Vec::new();
    for area in 0..2 {
        fulls.extend(source.headers(area, 0));
    }
    for header in source.newest_first(&fulls) {
        let copies: Vec<CheckpointHeader> = fulls.iter().filter(|h| is_copy(h, &header)).copied().collect();
        let (mut root, mut list) = (Vec::new(), Vec::new());
        let mut devices: Vec<DevIndex> = copies.iter().map(|h| h.dev).collect();
        let whole = source.load_pages(&copies, store, (&mut root, &mut list), &mut devices, None);
        let partial = whole.and_then(|_| Partial::of(header, (&root, &list), &devices, health));
        let mut lists = Lists::new(list);
        let config = store.config;
        let load_rest = || {
            source.load_saved(&header, &root, &mut store.table)?;
            store.table.clear_unsaved();
            Some(source.load_incrementals(header, store, &mut devices))
        };
        let rest = whole.and_then(|_| lists.unpack_beside(&config, scheme, load_rest));
        let Some((series, later)) = rest else {
            source.pageless.push(header);
            // Pages of zeros are left out of a checkpoint: none of this one may show through the next.
            store.table = store.table.emptied(&store.config);
            continue;
        };
        later.into_iter().for_each(|(list, are_changes)| lists.push(list, are_changes));
        let Series { newest, chain, config_seq: known_seq, .. } = series;
        let saved = source.saved(header.number);
        let place = CheckpointPlace {
            number: newest.number,
            used: newest.number,
            base: header.number,
            area: header.area,
            chain,
            before: header.beside.map_or(0, |beside| beside.base),
            devices,
            log_head: 0,
        };
        let (through, epoch, nonce) = (newest.through, newest.epoch, newest.nonce);
        let same = source.pageless.iter().filter(|seen| (seen.epoch, seen.nonce) == (epoch, nonce));
        let seen_through = same.map(|seen| seen.through).max().unwrap_or(through);
        let (log_head, config_seq) = (newest.log_head, newest.config_seq);
        let loaded = Loaded {
            place,
            saved,
            through,
            epoch,
            nonce,
            log_head,
            seen_through,
            config_seq,
            known_seq,
            partial,
        };
        return Ok((loaded, lists));
    }
    Err(AssembleError::NoCheckpoint)
}

/// Takes the words of a loaded checkpoint's list, and compares them with its table; returns what it says.
pub(super) fn take_list<'a>(
    list: &'a [u32],
    checkpoint: u64,
    store: &mut Store,
    scheme: &mut dyn Scheme,
) -> Result<List<'a>, Inconsistency> {
    if !store.table.is_sane(&store.config) {
        return Err(Inconsistency::Table { checkpoint });
    }
    let list = List::read(list).map_err(|cause| Inconsistency::List { checkpoint, cause })?;
    scheme.load(store, list).map_err(|cause| Inconsistency::State { checkpoint, cause })?;
    scheme.list_is_saved();
    store.table.clear_changed();
    store.load_space(list).map_err(|cause| Inconsistency::State { checkpoint, cause })?;
    settle_space(scheme, store).map_err(|cause| Inconsistency::State { checkpoint, cause })?;
    Ok(list)
}

/// Finds out, or makes sure of, which chunks are in use. Where the table is not in memory as a whole that is
/// not looked at: whoever wants to know has the array checked.
fn settle_space(scheme: &dyn Scheme, store: &mut Store) -> Result<(), Contradiction> {
    if store.table.is_paged() {
        return Ok(());
    }
    let mut claimed = store.nothing_claimed();
    scheme.claim_space(store, &mut claimed)?;
    store.adopt(claimed)
}

/// Whether a header can be one of such an array.
fn is_sane(config: &ArrayConfig, header: &CheckpointHeader) -> bool {
    let blocks = match header.kind {
        CheckpointKind::Full => config.full_blocks,
        CheckpointKind::Incremental => config.incremental_blocks,
    };
    header.table_words == crate::table::Table::word_count(config)
        && u64::from(header.block) + 1 + u64::from(header.page_count) <= u64::from(blocks)
        && header.list_words <= u64::from(header.page_count) * WORDS
}

/// Patches of pages of the table, of which each exists: what these blocks of a checkpoint change. `None` if
/// they have not the shape that they must have.
fn patches_of<'a>(blocks: &'a [Page], table: &Table) -> Option<Vec<Patch<'a>>> {
    let mut patches = Vec::new();
    for Page { kind, index, words, .. } in blocks {
        match kind {
            PageKind::Table if words.len() == PAGE_WORDS => {
                patches.push(Patch { index: *index as usize, groups: GroupBits::all(), words });
            }
            PageKind::Patches => patches.append(&mut decode_patches(words).ok()?),
            PageKind::PackedPatches => patches.append(&mut decode_packed_patches(words).ok()?),
            PageKind::Root | PageKind::List | PageKind::Changes => {}
            PageKind::Table | PageKind::Directory => return None,
        }
    }
    patches.iter().all(|patch| patch.index < table.page_count()).then_some(patches)
}

impl<'a> Source<'a> {
    fn new(
        devices: &'a mut dyn DeviceSet,
        health: &Health,
        superblock: &Superblock,
        config: ArrayConfig,
    ) -> Self {
        let main = (0..config.geometry.device_count() as u16).map(DevIndex::new);
        let present: Vec<DevIndex> = main.filter(|&dev| is_present(health, dev)).collect();
        Self {
            devices,
            complete: present.iter().copied().filter(|&dev| !health.is_rebuilding(dev)).collect(),
            array: superblock.array,
            config,
            assembly: (superblock.epoch, superblock.nonce),
            headers: HashMap::new(),
            pageless: Vec::new(),
            heads: Pool::new(META_BYTES, present.len()),
            room: None,
            ahead: ChainAhead::default(),
            present,
        }
    }

    /// Valid headers at one block of an area, from all devices.
    fn headers(&mut self, area: u8, block: u32) -> Vec<CheckpointHeader> {
        if let Some(known) = self.headers.get(&(area, block)) {
            return known.clone();
        }
        let found = self.read_headers(area, block);
        self.headers.insert((area, block), found.clone());
        found
    }

    fn read_headers(&mut self, area: u8, block: u32) -> Vec<CheckpointHeader> {
        let offset = match area {
            INCREMENTAL_AREA if block >= self.config.incremental_blocks => return Vec::new(),
            INCREMENTAL_AREA => self.config.incremental_offset(block),
            full => self.config.full_offset(usize::from(full), block),
        };
        let &mut Self { ref mut devices, ref mut heads, ref present, array, config, .. } = self;
        let blocks = heads.region_mut().chunks_exact_mut(META_BYTES).zip(present).enumerate();
        let mut reads: Vec<ReadNow<'_>> = blocks
            .map(|(tag, (into, &dev))| ReadNow { tag, dev, offset_bytes: offset, into, result: Ok(()) })
            .collect();
        devices.read_all_now(&mut reads);
        let header = |read: &ReadNow<'_>| {
            let expect = BlockExpect { array, dev: read.dev, area, block };
            decode_checkpoint_header(read.into, &expect).ok().filter(|header| is_sane(&config, header))
        };
        reads.iter().filter(|read| read.result.is_ok()).filter_map(header).collect()
    }

    /// Full checkpoints in the order in which they count. An assembly that could not read some device may
    /// have gone on from an older checkpoint than that device holds and used a number again: the later
    /// assembly is right. Of two of the same assembly behind which there are the same incremental ones the
    /// later is right: slots of the other may be written again.
    fn newest_first(&mut self, fulls: &[CheckpointHeader]) -> Vec<CheckpointHeader> {
        let mut all: Vec<Series> = Vec::new();
        for &full in fulls {
            if all.iter().all(|known| !is_copy(&known.full, &full)) {
                let mut series = Series::new(full);
                for copies in self.chain(full) {
                    series.push(&copies[0], self.config.incremental_blocks);
                }
                all.push(series);
            }
        }
        let among_equals = |number: u64| if planted(Planted::OlderOfTwo) { !number } else { number };
        let rank = |series: &Series| (self.rank(&series.newest), among_equals(series.full.number));
        all.sort_by_key(|series| std::cmp::Reverse(rank(series)));
        all.into_iter().map(|series| series.full).collect()
    }

    fn rank(&self, header: &CheckpointHeader) -> (Epoch, bool, u64) {
        (header.epoch, (header.epoch, header.nonce) == self.assembly, header.number)
    }

    /// The copies of each of the incremental checkpoints that follow a full one, as far as there are headers;
    /// first are those of another member each time.
    fn chain(&mut self, full: CheckpointHeader) -> Vec<Vec<CheckpointHeader>> {
        let (mut series, mut chain) = (Series::new(full), Vec::new());
        loop {
            let mut copies = self.next_in_chain(&series);
            let Some(header) = copies.first() else { return chain };
            series.push(header, self.config.incremental_blocks);
            let turn = chain.len() % copies.len();
            copies.rotate_left(turn);
            chain.push(copies);
        }
    }

    /// The copies of the incremental checkpoint that follows.
    fn next_in_chain(&mut self, series: &Series) -> Vec<CheckpointHeader> {
        let mut copies = Vec::new();
        for block in series.chain.candidates(self.config.incremental_blocks) {
            if copies.is_empty() && !(planted(Planted::ForgetTurn) && block == 0 && series.chain.next > 0) {
                copies = self.headers(INCREMENTAL_AREA, block);
                copies.retain(|header| series.is_next(header));
            }
        }
        if let Some(best) = copies.iter().max_by_key(|h| self.rank(h)).copied() {
            copies.retain(|h| is_copy(h, &best));
        }
        copies
    }

    /// Loads the pages of one checkpoint, each from any copy that has it whole; `None` if one is nowhere
    /// whole. A device whose copy has a bad page is taken off `devices`. What changes the table back goes to
    /// `replaced`. Returns whether its list is one of changes.
    fn load_pages(
        &mut self,
        copies: &[CheckpointHeader],
        store: &mut Store,
        (root, list): (&mut Vec<u32>, &mut Vec<u32>),
        devices: &mut Vec<DevIndex>,
        mut replaced: Option<&mut Replaced>,
    ) -> Option<bool> {
        let header = copies.first()?;
        let list_words = usize::try_from(header.list_words).ok()?;
        list.clear();
        list.try_reserve_exact(list_words).ok()?;
        list.resize(list_words, 0);
        root.clear();
        if header.kind == CheckpointKind::Full {
            root.resize(store.table.slots().root_words(), 0);
        }
        let (mut page, mut are_changes) = (0, false);
        while page < header.page_count {
            let mut whole = self.read_stretches(copies, page, devices);
            let count = whole.len() as u32;
            for copy in copies {
                let is_incremental = header.kind == CheckpointKind::Incremental;
                if whole.iter().all(Option::is_some) || (is_incremental && planted(Planted::ChainAheadIsAll))
                {
                    break;
                }
                if !self.read_pages(copy, page, &mut whole) {
                    devices.retain(|&dev| dev != copy.dev);
                }
            }
            let whole: Vec<Page> = whole.into_iter().collect::<Option<_>>()?;
            let patches = patches_of(&whole, &store.table)?;
            if !patches.is_empty() {
                self.apply_patches(&mut store.table, &patches, replaced.as_mut()?);
            }
            for Page { kind, index, words, .. } in &whole {
                let into = match kind {
                    PageKind::Root => &mut *root,
                    PageKind::List => &mut *list,
                    PageKind::Changes if header.kind == CheckpointKind::Incremental => {
                        are_changes = true;
                        &mut *list
                    }
                    PageKind::Changes => return None,
                    PageKind::Table | PageKind::Patches | PageKind::PackedPatches | PageKind::Directory => {
                        continue;
                    }
                };
                let start = *index as usize * PAGE_WORDS;
                into.get_mut(start..start + words.len())?.copy_from_slice(words);
            }
            page += count;
        }
        Some(are_changes)
    }

    /// Changes pages of the table, or lets what changes wait where a page is not in memory; notes what there
    /// was before.
    fn apply_patches(&mut self, table: &mut Table, patches: &[Patch<'_>], replaced: &mut Replaced) {
        for patch in patches {
            if table.is_paged() && !table.has_frame(patch.index) {
                table.wait_for_page(patch);
                replaced.waited_for.push(patch.index);
                continue;
            }
            let patches = &mut replaced.patches;
            let start = patches.len();
            patches.resize(start + patch.groups.patch_words(), 0);
            patch.groups.encode_patch(patch.index, table.page(patch.index), &mut patches[start..]);
            table.apply_patch(patch);
        }
    }

    /// Where a page of a copy is.
    fn page_offset(&self, header: &CheckpointHeader, page: u32) -> u64 {
        let block = header.block + 1 + page;
        match header.kind {
            CheckpointKind::Full => self.config.full_offset(usize::from(header.area), block),
            CheckpointKind::Incremental => self.config.incremental_offset(block),
        }
    }

    /// Reads pages from `first` on, a stretch from each copy, side by side: what one copy has is not read
    /// from the others, which scrub and patrol look at. A device whose copy has a bad page is taken off
    /// `devices`.
    fn read_stretches(
        &mut self,
        copies: &[CheckpointHeader],
        first: u32,
        devices: &mut Vec<DevIndex>,
    ) -> Vec<Option<Page>> {
        let left = copies.first().map_or(0, |header| header.page_count - first) as usize;
        let count = left.min(READ_BLOCKS * copies.len());
        if let Some(whole) = self.read_before(copies, first, count, devices) {
            return whole;
        }
        let is_enough = |room: &Pool| room.slot_count() >= count;
        let mut room = self.room.take().filter(is_enough).unwrap_or_else(|| Pool::new(META_BYTES, count));
        let bytes = &mut room.region_mut()[..count * META_BYTES];
        let places: Vec<_> = copies.iter().zip((first..).step_by(READ_BLOCKS)).collect();
        let mut reads: Vec<ReadNow<'_>> =
            (bytes.chunks_mut(READ_BLOCKS * META_BYTES).zip(&places).enumerate())
                .map(|(tag, (into, &(copy, page)))| {
                    let offset_bytes = self.page_offset(copy, page);
                    ReadNow { tag, dev: copy.dev, offset_bytes, into, result: Ok(()) }
                })
                .collect();
        self.devices.read_all_now(&mut reads);
        let mut whole: Vec<Option<Page>> = (0..count).map(|_| None).collect();
        for read in &reads {
            let start = read.tag * READ_BLOCKS;
            let into = &mut whole[start..(start + READ_BLOCKS).min(count)];
            let (copy, page) = places[read.tag];
            if read.result.is_err() || !self.decode_pages(copy, page, read.into, into) {
                devices.retain(|&dev| dev != copy.dev);
            }
        }
        self.room = Some(room);
        whole
    }

    /// At most so many pages from `first` on that were read ahead, if any were. A device whose copy has a bad
    /// page is taken off `devices`.
    fn read_before(
        &self,
        copies: &[CheckpointHeader],
        first: u32,
        count: usize,
        devices: &mut Vec<DevIndex>,
    ) -> Option<Vec<Option<Page>>> {
        let copy = copies.first()?;
        let bytes = self.ahead.from(copy.dev, self.page_offset(copy, first))?;
        let mut whole: Vec<Option<Page>> = (0..count.min(bytes.len() / META_BYTES)).map(|_| None).collect();
        if !self.decode_pages(copy, first, bytes, &mut whole) {
            devices.retain(|&dev| dev != copy.dev);
        }
        Some(whole)
    }

    /// Reads pages of the first of these checkpoints ahead; returns how many checkpoints may be looked at
    /// before the next ones are read ahead.
    fn read_ahead(&mut self, chain: &[Vec<CheckpointHeader>]) -> usize {
        let (mut runs, mut left, mut count) = (Vec::new(), AHEAD_BLOCKS, 0);
        for copy in chain.iter().filter_map(|copies| copies.first()) {
            let blocks = copy.page_count as usize;
            if blocks > left {
                break;
            }
            (left, count) = (left - blocks, count + 1);
            // Behind a header without pages there may be nothing, not even a block.
            if blocks > 0 {
                runs.push(Run { dev: copy.dev, offset: self.page_offset(copy, 0), blocks });
            }
        }
        self.ahead.read(self.devices, &runs);
        // One that is too large is read as it is looked at.
        count.max(1)
    }

    /// Reads a stretch of one copy; what is missing in `whole` is filled in. `false` if a page of the copy is
    /// bad.
    fn read_pages(&mut self, header: &CheckpointHeader, first: u32, whole: &mut [Option<Page>]) -> bool {
        let mut bytes = vec![0u8; whole.len() * META_BYTES];
        let offset = self.page_offset(header, first);
        self.devices.read_now(header.dev, offset, &mut bytes).is_ok()
            && self.decode_pages(header, first, &bytes, whole)
    }

    /// Decodes a stretch of one copy into `whole`; `false` if a page of it is bad.
    fn decode_pages(
        &self,
        header: &CheckpointHeader,
        first: u32,
        bytes: &[u8],
        whole: &mut [Option<Page>],
    ) -> bool {
        let mut all = true;
        for (block, (content, bytes)) in
            (header.block + 1 + first..).zip(whole.iter_mut().zip(bytes.chunks(META_BYTES)))
        {
            let Source { array, .. } = *self;
            let (dev, area, number) = (header.dev, header.area, header.number);
            match decode_page(bytes, &PageExpect { array, dev, area, block, number: Some(number) }) {
                Ok(page) => *content = Some(page),
                Err(_) => all = false,
            }
        }
        all
    }

    /// Where the pages of the table are that full checkpoint `number` wrote, or those before it.
    fn saved(&self, number: u64) -> SavedPages {
        SavedPages::new(self.array, self.config, self.complete.clone(), number)
    }

    /// Loads where the pages of the table are, as full checkpoint `header` has it, whose root it is; the
    /// pages too if none is to be absent. `None` if a page is nowhere whole.
    fn load_saved(&mut self, header: &CheckpointHeader, root: &[u32], table: &mut Table) -> Option<()> {
        let (saved, table_pages) = (self.saved(header.number), table.page_count());
        table.slots_mut().load_root(root).then_some(())?;
        let directories = table_pages..table.slots().page_count();
        let take =
            &mut |table: &mut Table, page, words: &[u32]| table.slots_mut().load_directory(page, words);
        saved.read(self.devices, table, directories, take).ok()?;
        if table.is_paged() {
            return Some(());
        }
        saved
            .read(self.devices, table, 0..table_pages, &mut |table, page, words| table.load_page(page, words))
            .ok()
    }

    /// Follows the chain of incremental checkpoints as far as they can be read; returns that and their lists,
    /// with whether each is one of changes.
    /// Leaves those of `devices` that hold the whole chain: after a crash one may end earlier on some,
    /// and must not be continued.
    fn load_incrementals(
        &mut self,
        full: CheckpointHeader,
        store: &mut Store,
        devices: &mut Vec<DevIndex>,
    ) -> (Series, Vec<(Vec<u32>, bool)>) {
        let (mut series, mut lists) = (Series::new(full), Vec::new());
        let chain = self.chain(full);
        let mut left = &chain[..];
        while !left.is_empty() {
            let (now, later) = left.split_at(self.read_ahead(left));
            left = later;
            for copies in now {
                let (mut root, mut its_list) = (Vec::new(), Vec::new());
                let mut replaced = Replaced::default();
                let into = (&mut root, &mut its_list);
                let loaded = self.load_pages(copies, store, into, devices, Some(&mut replaced));
                let Some(are_changes) = loaded else {
                    // A header is written only after its pages are durable: m + 1 copies of a page are all
                    // bad.
                    replaced.undo(&mut store.table);
                    self.pageless.push(copies[0]);
                    return (series, lists);
                };
                devices.retain(|&dev| copies.iter().any(|copy| copy.dev == dev));
                lists.push((its_list, are_changes));
                series.push(&copies[0], self.config.incremental_blocks);
            }
        }
        (series, lists)
    }
}
