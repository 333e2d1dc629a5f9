//! One device of the world: what survives a power cut, what a read sees, and what lies between.
//!
//! Blocks of 4 KiB are shared by count: a write is copied once, a flush moves pointers, a copy of a disk is
//! cheap.

use crate::Rng;
use block::Random as _;
use std::rc::Rc;

/// Bytes in a block of a disk.
pub const BLOCK_BYTES: usize = 4096;
/// Bytes that a power cut leaves whole or untouched.
pub const SECTOR_BYTES: usize = 512;

/// A block's content.
pub type Block = Rc<[u8; BLOCK_BYTES]>;

/// The content of a disk; `None` is a block of zeros.
pub type Image = Vec<Option<Block>>;

/// What a power cut does to writes that no flush has covered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tear {
    /// Each sector of each write by itself.
    Sectors,
    /// Each write as a whole.
    Writes,
    /// None arrives.
    LoseAll,
    /// All arrive.
    KeepAll,
    /// Some devices lose all, others keep all.
    PerDevice,
}

/// Every way.
pub const TEARS: [Tear; 5] = [Tear::Sectors, Tear::Writes, Tear::LoseAll, Tear::KeepAll, Tear::PerDevice];

struct Cached {
    stamp: u64,
    first: usize,
    blocks: Vec<Block>,
}

/// See the module's documentation.
pub struct Disk {
    durable: Image,
    view: Image,
    cached: Vec<Cached>,
    writes: u64,
}

/// The bytes of a block.
pub fn bytes_of(block: &Option<Block>) -> &[u8; BLOCK_BYTES] {
    static ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];
    block.as_ref().map_or(&ZEROS, |block| block)
}

/// Cuts bytes into blocks.
pub fn blocks_of(bytes: &[u8]) -> Vec<Block> {
    bytes
        .chunks_exact(BLOCK_BYTES)
        .map(|b| Rc::new(<[u8; BLOCK_BYTES]>::try_from(b).expect("chunks of a block")))
        .collect()
}

impl Disk {
    /// A disk of zeros.
    pub fn new(size_bytes: u64) -> Self {
        Self::from_image(vec![None; size_bytes as usize / BLOCK_BYTES])
    }

    /// A disk that holds `image`, all of it durable.
    pub fn from_image(image: Image) -> Self {
        Self { view: image.clone(), durable: image, cached: Vec::new(), writes: 0 }
    }

    /// It is larger from now on; what is new reads as zeros.
    pub fn enlarge(&mut self, more_bytes: u64) {
        let more = usize::try_from(more_bytes).map_or(0, |bytes| bytes / BLOCK_BYTES);
        let blocks = self.durable.len() + more;
        self.durable.resize(blocks, None);
        self.view.resize(blocks, None);
    }

    /// Its size.
    pub fn size_bytes(&self) -> u64 {
        (self.durable.len() * BLOCK_BYTES) as u64
    }

    /// What survives a power cut at this moment for certain.
    pub fn durable(&self) -> &Image {
        &self.durable
    }

    /// Whether nothing of it is volatile.
    pub fn is_durable(&self) -> bool {
        self.cached.is_empty()
    }

    /// What a read sees.
    pub fn view(&self) -> &Image {
        &self.view
    }

    /// Fills `into` from `offset_bytes` on; `false` past the end.
    pub fn read(&self, offset_bytes: u64, into: &mut [u8]) -> bool {
        let first = offset_bytes as usize / BLOCK_BYTES;
        let Some(blocks) = self.view.get(first..first + into.len() / BLOCK_BYTES) else { return false };
        for (out, block) in into.chunks_exact_mut(BLOCK_BYTES).zip(blocks) {
            out.copy_from_slice(bytes_of(block));
        }
        true
    }

    /// A write that has completed: visible, but volatile. `false` past the end.
    pub fn write(&mut self, offset_bytes: u64, blocks: &[Block]) -> bool {
        let first = offset_bytes as usize / BLOCK_BYTES;
        let Some(view) = self.view.get_mut(first..first + blocks.len()) else { return false };
        for (place, block) in view.iter_mut().zip(blocks) {
            *place = Some(Rc::clone(block));
        }
        self.writes += 1;
        self.cached.push(Cached { stamp: self.writes, first, blocks: blocks.to_vec() });
        true
    }

    /// The newest completed write: what a flush that begins now covers.
    pub fn stamp(&self) -> u64 {
        self.writes
    }

    /// Writes up to `stamp` are durable from now on.
    pub fn flush(&mut self, stamp: u64) {
        let covered = self.cached.iter().take_while(|cached| cached.stamp <= stamp).count();
        for cached in self.cached.drain(..covered) {
            for (i, block) in cached.blocks.into_iter().enumerate() {
                self.durable[cached.first + i] = Some(block);
            }
        }
    }

    /// Power is lost: of the cached writes and of `in_flight` (block number and blocks) some parts arrive.
    pub fn power_cut(&mut self, in_flight: Vec<(usize, Vec<Block>)>, tear: Tear, rng: &mut Rng) {
        let tear = match tear {
            Tear::PerDevice => rng.pick(&[Tear::LoseAll, Tear::KeepAll, Tear::Sectors]),
            Tear::Sectors | Tear::Writes | Tear::LoseAll | Tear::KeepAll => tear,
        };
        let cached = std::mem::take(&mut self.cached);
        let mut all: Vec<(usize, Vec<Block>)> = cached.into_iter().map(|c| (c.first, c.blocks)).collect();
        match tear {
            Tear::LoseAll => all.clear(),
            Tear::KeepAll => all.extend(in_flight),
            Tear::Sectors | Tear::Writes | Tear::PerDevice => {
                all.extend(in_flight);
                rng.shuffle(&mut all);
            }
        }
        let keep_permille = rng.pick(&[100, 500, 900]);
        for (first, blocks) in all {
            if tear == Tear::Writes && !rng.chance(keep_permille, 1000) {
                continue;
            }
            // Most torn writes are torn somewhere; some arrive or vanish whole.
            let sectors = if tear == Tear::Sectors { rng.pick(&[0, 500, 500, 1000]) } else { 1000 };
            for (i, block) in blocks.into_iter().enumerate() {
                self.keep_sectors(first + i, block, sectors, rng);
            }
        }
        self.view.clone_from(&self.durable);
    }

    fn keep_sectors(&mut self, at: usize, block: Block, permille: u64, rng: &mut Rng) {
        let Some(place) = self.durable.get_mut(at) else { return };
        if permille == 1000 {
            *place = Some(block);
            return;
        }
        let mut mixed = *bytes_of(place);
        for (old, new) in mixed.chunks_exact_mut(SECTOR_BYTES).zip(block.chunks_exact(SECTOR_BYTES)) {
            if rng.chance(permille, 1000) {
                old.copy_from_slice(new);
            }
        }
        *place = Some(Rc::new(mixed));
    }

    /// What is stored from a block on is gone, cached or not, and reads as zeros.
    pub fn cut_short(&mut self, end: usize) {
        for image in [&mut self.durable, &mut self.view] {
            image.iter_mut().skip(end).for_each(|place| *place = None);
        }
        for cached in &mut self.cached {
            cached.blocks.truncate(end.saturating_sub(cached.first));
        }
    }

    /// Flips one bit of what is stored (bit rot, or a misdirected write's damage).
    pub fn flip(&mut self, offset_bytes: u64, bit: u32) {
        let at = offset_bytes as usize / BLOCK_BYTES;
        for image in [&mut self.durable, &mut self.view] {
            if let Some(place) = image.get_mut(at) {
                let mut bytes = *bytes_of(place);
                bytes[offset_bytes as usize % BLOCK_BYTES] ^= 1 << (bit % 8);
                *place = Some(Rc::new(bytes));
            }
        }
    }
}
