//! What every scheme works on: configuration, layout, code, the flat table, free space, and the log ring.

use crate::layout::Layout;
use crate::lost::LostChunks;
use crate::older::Contradiction;
use crate::planted::{Planted, planted};
use crate::space::{ChunkBits, ChunkLease, Demand, Space};
use crate::table::{Table, WORD_CHUNKS, bit_of, later_max};
use block::{ChunkAddr, ChunkIndex, DevIndex, Geometry, META_BYTES, Stream};
use erasure::{Code, CodeError};
use format::{ArrayConfig, CLASSES_MAX, CodeKind, ItemRef, List, ListItem};

/// Chunks per device that only parity commit and rebuild may take, so that they can always make space.
pub const SET_ASIDE_CHUNKS: u32 = 32;

/// See the module's documentation.
pub struct Store {
    /// The array's configuration.
    pub config: ArrayConfig,
    /// Column to device.
    pub layout: Layout,
    /// The erasure code, as wide as the widest log stripe.
    pub code: Code,
    /// Places and checksums.
    pub table: Table,
    /// Free chunks of each main device.
    pub spaces: Vec<Space>,
    /// The append-only log region, the same on every log device.
    pub log: LogRing,
    /// Chunks freed by `apply` since the engine last took them.
    pub freed: Vec<ChunkRun>,
    /// Chunks that are leased, or freed and not released, when a checkpoint is taken.
    pub taken: Vec<ChunkAddr>,
    /// Chunks of the volume that are known to be lost.
    pub lost: LostChunks,
    /// Where chunks begin on a main device.
    data_start: u64,
}

/// Chunks that lie next to each other on one device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct ChunkRun {
    /// The first.
    pub first: ChunkAddr,
    /// How many.
    pub count: u32,
}

impl ChunkRun {
    /// The chunk behind the last one.
    pub fn end(self) -> ChunkIndex {
        ChunkIndex::new(self.first.chunk.get() + self.count)
    }
}

/// The widest code word of an array, on which the bytes of row-diagonal parity depend (docs/format.md): a log
/// stripe has at most one member per main device.
pub fn code_width(config: &ArrayConfig) -> usize {
    let (k, n, m) =
        (config.geometry.data_count(), config.geometry.device_count(), config.geometry.parity_count());
    let widest = if config.scheme.has_log_stripes() { n.min(LOG_STRIPE_WIDTH_MAX) } else { k };
    widest.max(k).min(255 - m)
}

/// Members of a log stripe at most: its record must fit a journal frame.
pub const LOG_STRIPE_WIDTH_MAX: usize = 128;

/// Stripes that so many chunks that follow each other lie in at most.
pub fn stripes_touched(geometry: Geometry, chunks: u64) -> u64 {
    let data_count = u64::try_from(geometry.data_count()).unwrap_or(u64::MAX);
    chunks.saturating_sub(1).div_ceil(data_count) + 1
}

impl Store {
    /// An empty store.
    pub fn new(config: ArrayConfig) -> Result<Self, CodeError> {
        let m = config.geometry.parity_count();
        let kind = match config.code {
            CodeKind::Xor => erasure::CodeKind::Xor,
            CodeKind::Cauchy => erasure::CodeKind::Cauchy,
            CodeKind::Rdp => erasure::CodeKind::Rdp,
        };
        let code = Code::new(kind, code_width(&config), m)?;
        code.check_length(config.geometry.chunk_bytes())?;
        Ok(Self {
            layout: Layout::new(config.layout, config.geometry),
            code,
            table: Table::new(&config),
            spaces: spaces(&config),
            log: LogRing::new(config.log_blocks, (config.geometry.chunk_bytes() / META_BYTES) as u32),
            freed: Vec::new(),
            taken: Vec::new(),
            lost: LostChunks::default(),
            data_start: config.data_start(),
            config,
        })
    }

    /// Devices of the main array.
    pub fn main_count(&self) -> usize {
        self.config.geometry.device_count()
    }

    /// The log device that holds log chunk `row`.
    pub fn log_device(&self, row: usize) -> DevIndex {
        DevIndex::new((self.main_count() + row) as u16)
    }

    /// Whether a member is a log device.
    pub fn is_log(&self, dev: DevIndex) -> bool {
        dev.index() >= self.main_count()
    }

    /// What the code has at an index, on a member, for the devices: data, parity, or on a log device log.
    pub fn stream_of(&self, index: usize, dev: DevIndex) -> Stream {
        if self.is_log(dev) {
            Stream::Log
        } else if index >= self.code.width_max() {
            Stream::Parity
        } else {
            Stream::Data
        }
    }

    /// Byte offset of a chunk (main device) or block (log device).
    #[inline]
    pub fn offset_of(&self, addr: ChunkAddr) -> u64 {
        if self.is_log(addr.dev) {
            self.config.log_offset(addr.chunk)
        } else {
            self.config.chunk_offset_from(self.data_start, addr.chunk)
        }
    }

    /// 4 KiB blocks of a chunk: what a log chunk takes of the log region.
    pub fn chunk_blocks(&self) -> u32 {
        (self.config.geometry.chunk_bytes() / META_BYTES) as u32
    }

    /// Chunks that the payload ring of a main device holds.
    pub fn payload_chunks(&self) -> u64 {
        u64::from(self.config.payload_blocks / self.chunk_blocks())
    }

    /// Stripes that one plan may write to in place: each takes a chunk of the payload ring of a device.
    pub fn in_place_stripes_max(&self) -> u64 {
        if self.config.payload_blocks == 0 { u64::MAX } else { self.payload_chunks() }
    }

    /// Buffers that plans leave free, for the covers of failed reads: a plan that has started must be
    /// able to end.
    pub fn slots_kept(&self) -> usize {
        4 * self.main_count() + 16
    }

    /// Buffers that user writes leave: besides those, what one step of garbage collection takes at least, or
    /// writes that wait for space would hold what makes it.
    pub fn slots_kept_by_writes(&self) -> usize {
        if !self.config.scheme.is_elastic() {
            return self.slots_kept();
        }
        self.slots_kept() + CLASSES_MAX * self.config.geometry.parity_count() + self.main_count()
    }

    /// Buffers that are left when a write is copied or completed: besides those, the parity of what is to be
    /// written next.
    pub fn slots_kept_by_copies(&self) -> usize {
        self.slots_kept_by_writes() + self.main_count()
    }

    /// Takes a free chunk of a device; none if there is none, or what says which is not in memory.
    pub fn alloc(&mut self, dev: DevIndex, demand: Demand) -> Option<ChunkLease> {
        self.spaces[dev.index()].alloc(&mut self.table, demand)
    }

    /// Takes so many chunks of a device that [`Store::has_ready`] has promised.
    pub fn alloc_ready(&mut self, dev: DevIndex, count: u32, out: &mut Vec<Option<ChunkLease>>) {
        self.spaces[dev.index()].alloc_ready(&mut self.table, count, out);
    }

    /// Makes chunks free again.
    pub fn release_run(&mut self, run: ChunkRun) {
        self.spaces[run.first.dev.index()].release_run(&mut self.table, run.first.chunk, run.end());
    }

    /// The same of those that are in use, or of which that is not known; while an array is being assembled.
    pub fn release_used(&mut self, run: ChunkRun) {
        let Self { spaces, table, .. } = self;
        let space = &mut spaces[run.first.dev.index()];
        for chunk in (run.first.chunk.get()..run.end().get()).map(ChunkIndex::new) {
            if space.is_used(table, chunk) {
                space.release(table, chunk);
            }
        }
    }

    /// The parts of a run whose bits are on one page of the table each, and that page.
    pub fn by_space_page(&self, run: ChunkRun) -> impl Iterator<Item = (usize, ChunkRun)> {
        let (dev, mut left) = (run.first.dev, run.first.chunk.get()..run.end().get());
        std::iter::from_fn(move || {
            let first = ChunkAddr::new(dev, ChunkIndex::new(left.start));
            let next = self.table.next_space_page(bit_of(first.chunk).0).saturating_mul(WORD_CHUNKS);
            let count = left.end.min(next).checked_sub(left.start).filter(|&count| count > 0)?;
            left.start += count;
            Some((self.table.space_page_of(first), ChunkRun { first, count }))
        })
    }

    /// Marks a chunk as in use; `false` if it already was, or is none.
    pub fn claim(&mut self, addr: ChunkAddr) -> bool {
        self.spaces[addr.dev.index()].claim(&mut self.table, addr.chunk)
    }

    /// Whether a chunk is in use, or is none, or that is not known.
    pub fn is_used(&self, addr: ChunkAddr) -> bool {
        self.spaces[addr.dev.index()].is_used(&self.table, addr.chunk)
    }

    /// Whether user writes may take so many chunks of a device, and it is known which.
    pub fn has_ready(&mut self, dev: DevIndex, count: u32) -> bool {
        self.spaces[dev.index()].has_ready(&self.table, count)
    }

    /// Takes the chunks that are in use as they are claimed, or compares them with what is there.
    pub fn adopt(&mut self, claimed: Vec<ChunkBits>) -> Result<(), Contradiction> {
        let Self { spaces, table, .. } = self;
        for (dev, (space, bits)) in (0..).map(DevIndex::new).zip(spaces.iter_mut().zip(claimed)) {
            space.adopt(table, bits).map_err(|chunk| Contradiction::Unclaimed(ChunkAddr::new(dev, chunk)))?;
        }
        Ok(())
    }

    /// A checkpoint is about to be begun: appends what its list says of the space, that of `taken` aside.
    pub fn save_space(&mut self, words: &mut Vec<u32>) {
        let mut absent = Vec::new();
        self.table.note_taken(&self.taken, &mut absent);
        if planted(Planted::ListForgetsFreed) {
            absent.clear();
        }
        let Self { spaces, table, taken, .. } = &*self;
        let of_dev = |addr: &&ChunkAddr, dev: DevIndex| addr.dev == dev;
        for (dev, space) in (0..).map(DevIndex::new).zip(spaces).filter(|(_, space)| space.is_in_table()) {
            let taken_count = taken.iter().filter(|addr| of_dev(addr, dev)).map(|_| 1u32).sum::<u32>();
            let used_count = space.chunk_count() - space.free_count() - taken_count;
            let mut freed: Vec<ChunkIndex> = table.later_chunks(dev).collect();
            freed.extend(absent.iter().filter(|addr| of_dev(addr, dev)).map(|addr| addr.chunk));
            ListItem::Space { dev, used_count, frontier: space.frontier(), freed }.encode(words);
        }
    }

    /// Takes what a list says of the space; the pages of the table that are in memory are loaded already.
    /// What that changes on them is in no checkpoint.
    pub fn load_space(&mut self, list: List<'_>) -> Result<(), Contradiction> {
        let Self { spaces, table, .. } = self;
        let mut missing = spaces.iter().filter(|space| space.is_in_table()).count();
        for item in list.items_of_members() {
            let ItemRef::Space { dev, used_count, frontier, freed } = item else { continue };
            let space = spaces.get_mut(dev.index()).filter(|space| space.is_in_table());
            let Some(space) = space else { return Err(Contradiction::Other("the space of a device")) };
            for chunk in freed.iter().copied().map(ChunkIndex::new) {
                // A bit that is clear, or that of no chunk, was freed before.
                let is_chunk = !chunk.is_none() && chunk.get() <= space.chunk_count();
                if is_chunk && space.is_used(table, chunk) {
                    space.release(table, chunk);
                }
            }
            if !space.load(used_count, frontier) {
                return Err(Contradiction::Other("the number of chunks in use"));
            }
            missing = missing.wrapping_sub(1);
        }
        if missing == 0 { Ok(()) } else { Err(Contradiction::Other("what the list says of the space")) }
    }

    /// No chunk of any main device is claimed.
    pub fn nothing_claimed(&self) -> Vec<ChunkBits> {
        vec![ChunkBits::new(self.config.chunks_per_device); self.main_count()]
    }

    /// Frees a chunk; the engine lets it be reused once that is safe.
    pub fn free(&mut self, dev: DevIndex, chunk: ChunkIndex) {
        if !chunk.is_none() {
            self.free_run(ChunkRun { first: ChunkAddr::new(dev, chunk), count: 1 });
        }
    }

    /// The same of chunks that lie next to each other.
    pub fn free_run(&mut self, run: ChunkRun) {
        self.freed.push(run);
    }
}

/// Buffers that rebuild or scrub of one stripe takes at most: its own code word and a log stripe for each
/// column on a member being rebuilt, of which there are m, each with its parity computed; and what covers of
/// failed reads take.
pub(crate) fn unit_slots(geometry: Geometry) -> usize {
    let (n, m) = (geometry.device_count(), geometry.parity_count());
    (m + 1) * (n + m) + 4 * n + 16
}

/// Words that the list of a checkpoint takes for the space at most.
pub(crate) fn space_words_max(config: &ArrayConfig) -> u64 {
    const ITEM_WORDS: u64 = 4;
    ITEM_WORDS * config.geometry.device_count() as u64 + later_max(config)
}

fn spaces(config: &ArrayConfig) -> Vec<Space> {
    let chunks = config.chunks_per_device;
    let space = |dev| match (config.scheme.is_in_place(), config.scheme.has_log_stripes()) {
        (true, _) => Space::in_place(chunks),
        (false, true) => Space::in_table(DevIndex::new(dev), chunks, SET_ASIDE_CHUNKS),
        (false, false) => Space::new(chunks, 0),
    };
    (0u16..).take(config.geometry.device_count()).map(space).collect()
}

/// Room in the log that is promised to the log chunks of one record.
#[must_use = "room that no plan holds is promised for ever"]
pub struct LogLease(());

/// The log region as a ring of 4 KiB blocks, used in append order. Positions count blocks since creation and
/// never wrap; block numbers on the device run from 1.
pub struct LogRing {
    block_count: u32,
    /// Blocks of a log chunk.
    chunk_blocks: u32,
    head: u64,
    /// Where the lap of the head began.
    lap: u64,
    tail: u64,
    /// Blocks promised to log chunks that have no place yet.
    reserved: u64,
    /// Nothing before here is to be discarded any more.
    discarded: u64,
    /// The devices are discarding from `discarded` up to here: nothing is appended to these blocks meanwhile.
    discarding: Option<u64>,
}

impl LogRing {
    /// An empty ring.
    pub fn new(block_count: u32, chunk_blocks: u32) -> Self {
        let (discarded, discarding) = (0, None);
        Self { block_count, chunk_blocks, head: 0, lap: 0, tail: 0, reserved: 0, discarded, discarding }
    }

    /// Where the next append goes.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// The oldest position still needed.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Blocks in the ring.
    pub fn block_count(&self) -> u32 {
        self.block_count
    }

    /// Blocks between tail and head.
    pub fn used(&self) -> u64 {
        self.head - self.tail
    }

    /// Blocks that can be appended.
    pub fn room(&self) -> u64 {
        let floor = self.discarding.map_or(self.tail, |_| self.discarded);
        u64::from(self.block_count) - (self.head - floor)
    }

    /// The block number at a position.
    pub fn block_at(&self, position: u64) -> ChunkIndex {
        ChunkIndex::new((position % u64::from(self.block_count.max(1))) as u32 + 1)
    }

    /// The last position before the head that lies on a block: a ring holds each block once.
    pub fn position_of(&self, block: ChunkIndex) -> u64 {
        let position = self.lap + u64::from(block.get() - 1);
        if position < self.head { position } else { position - u64::from(self.block_count) }
    }

    /// Whether so many log chunks can be promised room, and `keep` blocks besides.
    pub fn has_room_for_chunks(&self, count: usize, keep: u64) -> bool {
        let blocks = u64::from(self.chunk_blocks);
        let chunks = u64::try_from(count).unwrap_or(u64::MAX);
        self.room() >= chunks.saturating_add(1).saturating_mul(blocks).saturating_add(self.reserved + keep)
    }

    /// Promises room to a log chunk, and leaves `keep` blocks besides; `None` if there is not as much.
    pub fn reserve_chunk(&mut self, keep: u64) -> Option<LogLease> {
        let blocks = u64::from(self.chunk_blocks);
        // What is skipped at the end of the ring is less than a log chunk.
        let fits = self.room() >= self.reserved + 2 * blocks + keep;
        self.reserved += if fits { blocks } else { 0 };
        fits.then_some(LogLease(()))
    }

    /// Takes the promise to a log chunk back.
    pub fn forget_chunk(&mut self) {
        self.reserved -= u64::from(self.chunk_blocks);
    }

    /// Appends a log chunk that was promised room.
    pub fn append_reserved(&mut self) -> (u64, ChunkIndex) {
        self.forget_chunk();
        self.place(self.chunk_blocks, 0).expect("room for the log chunk was promised")
    }

    /// Appends `count` blocks that do not wrap around the end; `None` if there is no room but
    /// what is promised.
    pub fn append(&mut self, count: u32) -> Option<(u64, ChunkIndex)> {
        let promised = if self.reserved > 0 { self.reserved + u64::from(self.chunk_blocks) } else { 0 };
        self.place(count, promised)
    }

    fn place(&mut self, count: u32, promised: u64) -> Option<(u64, ChunkIndex)> {
        if self.block_count < count {
            return None;
        }
        let at = (self.head - self.lap) as u32;
        let skip = if at + count > self.block_count { self.block_count - at } else { 0 };
        if u64::from(skip) + u64::from(count) + promised > self.room() {
            return None;
        }
        let position = self.head + u64::from(skip);
        self.move_head(position + u64::from(count));
        Some((position, self.block_at(position)))
    }

    /// Gives up everything before `position`.
    pub fn trim(&mut self, position: u64) {
        assert!(position >= self.tail && position <= self.head, "the tail moves forward, up to the head");
        self.tail = position;
    }

    /// Takes dead blocks that were neither discarded nor appended to since, `most` of them, if there are at
    /// least `least` and none are being discarded: from where, and how many. Nothing is appended to them
    /// until [`LogRing::end_discard`]. The blocks that come next, half of the ring and what is promised, are
    /// left alone: so no append waits for a device, and what is about to be written is not discarded.
    pub fn begin_discard(&mut self, least: u64, most: u64) -> Option<(u64, u64)> {
        if self.discarding.is_some() {
            return None;
        }
        let blocks = u64::from(self.block_count);
        let next = (blocks / 2).max(self.reserved + 2 * u64::from(self.chunk_blocks)).min(blocks);
        let first = self.discarded.max((self.head + next).saturating_sub(blocks));
        let count = self.tail.saturating_sub(first).min(most);
        if count < least.max(1) {
            return None;
        }
        self.discarded = first;
        self.discarding = Some(first + count);
        Some((first, count))
    }

    /// The devices have discarded what [`LogRing::begin_discard`] gave.
    pub fn end_discard(&mut self) {
        self.discarded = self.discarding.take().unwrap_or(self.discarded);
    }

    /// Continues a ring found on disk: `head` blocks appended, `tail` still needed.
    pub fn restore(&mut self, head: u64, tail: u64) {
        assert!(
            tail <= head && head - tail <= u64::from(self.block_count),
            "a ring never holds more than its blocks"
        );
        self.move_head(head);
        self.tail = tail;
        // What was dead before is left alone: nobody knows what of it is discarded.
        self.discarded = tail;
    }

    fn move_head(&mut self, head: u64) {
        self.head = head;
        self.lap = head - head % u64::from(self.block_count.max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::LogRing;
    use block::{Random as _, SplitMix};

    /// Whatever is appended and given up: devices discard no block that lives or is written meanwhile, each
    /// dead one at most once, and half of what is not live stays room.
    #[test]
    fn discards_keep_out_of_the_way_of_appends() {
        const BLOCKS: u64 = 100;
        let (mut ring, mut rng) = (LogRing::new(BLOCKS as u32, 1), SplitMix::new(4));
        let (mut under_way, mut reached, mut count) = (None::<(u64, u64)>, 0, 0);
        for _ in 0..20_000 {
            match rng.below(4) {
                0 | 1 => {
                    if let Some((position, _)) = ring.append(1 + rng.below(3) as u32) {
                        let (from, blocks) = under_way.unwrap_or((ring.head(), 0));
                        let overwrites = (position..ring.head()).any(|at| {
                            let before = at.checked_sub(BLOCKS);
                            before.is_some_and(|before| (from..from + blocks).contains(&before))
                        });
                        assert!(!overwrites, "{from}+{blocks} are being discarded");
                    }
                }
                2 => ring.trim(ring.tail() + rng.below(ring.used() + 1)),
                _ if under_way.is_some() => {
                    ring.end_discard();
                    under_way = None;
                }
                _ => {
                    let before = ring.room();
                    let Some((from, blocks)) = ring.begin_discard(5, 30) else { continue };
                    assert!((5..=30).contains(&blocks) && from >= reached && from + blocks <= ring.tail());
                    assert!(from + BLOCKS >= ring.head(), "what was there was written over");
                    assert!(ring.room() >= (BLOCKS / 2).min(before), "{} of {before} left", ring.room());
                    (under_way, reached, count) = (Some((from, blocks)), from + blocks, count + 1);
                }
            }
        }
        assert!(count > 500, "{count} discards");
    }
}
