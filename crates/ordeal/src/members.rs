//! The files of an array, where each structure lies in them (read from the superblock by the tables of
//! `docs/format.md`), and how they are damaged.
//!
//! Damage goes past the page cache, as the server's own writes do: the kernel calls it an I/O error if
//! buffered and direct writes of one file meet.

use crate::rng::Rng;
use rustix::fs::OFlags;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of a metadata block.
pub const BLOCK: u64 = 4096;

/// What lies in a stretch of a member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Area {
    /// One of the two copies of the superblock.
    Superblock,
    /// A checkpoint area.
    Checkpoint,
    /// The journal ring.
    Journal,
    /// Copies of what is being written in place.
    Payload,
    /// The log region of a log device.
    Log,
    /// Chunks.
    Data,
}

impl Area {
    /// Whether the newest records are here: with all copies of them gone, nothing tells that they existed.
    pub fn holds_records(self) -> bool {
        matches!(self, Self::Journal | Self::Payload | Self::Log)
    }
}

/// Where the structures of a member lie.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Areas in the order in which they lie.
    pub areas: Vec<(Area, Range<u64>)>,
    /// Bytes of the member.
    pub size_bytes: u64,
}

impl Layout {
    /// From the superblock of a member that was just made.
    pub fn read(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let size_bytes = file.metadata()?.len();
        let mut block = [0; 4096];
        file.read_exact_at(&mut block, 0)?;
        if &block[..8] != b"ELSTSUPR" {
            return Err(io::Error::other(format!("{}: no superblock in front", path.display())));
        }
        let word =
            |at: usize| u64::from(u32::from_le_bytes(block[at..at + 4].try_into().expect("four bytes")));
        let mut areas = vec![(Area::Superblock, 0..BLOCK), (Area::Superblock, BLOCK..2 * BLOCK)];
        // Main devices have the role 0 or 1 by their index: those behind the columns are log devices.
        let dev = u64::from(u16::from_le_bytes([block[10], block[11]]));
        let half = |at: usize| u64::from(u16::from_le_bytes([block[at], block[at + 1]]));
        if dev >= half(188) + half(190) {
            areas.push((Area::Log, 1 << 20..(1 << 20) + word(212) * BLOCK));
        } else {
            let mut at = 2 * BLOCK;
            let rings = [
                (Area::Checkpoint, word(216)),
                (Area::Checkpoint, word(216)),
                (Area::Checkpoint, word(220)),
                (Area::Journal, word(224)),
                (Area::Payload, word(228)),
            ];
            for (area, blocks) in rings {
                areas.push((area, at..at + blocks * BLOCK));
                at += blocks * BLOCK;
            }
            let start = at.next_multiple_of(1 << 20);
            areas.push((Area::Data, start..(start + word(208) * word(192)).min(size_bytes)));
        }
        areas.retain(|(_, range)| !range.is_empty());
        Ok(Self { areas, size_bytes })
    }
}

/// A place of the array and the file that holds it.
#[derive(Clone, Debug)]
pub struct Member {
    /// As the program calls it: `data0`, `log1`.
    pub name: String,
    /// The file's name within the directory of the round.
    pub file: String,
    /// Where things lie in it.
    pub layout: Layout,
    /// An older copy of the file, if one was kept.
    pub older: Option<PathBuf>,
    /// How often it was replaced.
    pub generation: u32,
}

/// A member file, read and written in whole blocks past the page cache.
struct Blocks {
    file: File,
}

impl Blocks {
    fn open(path: &Path) -> io::Result<Self> {
        let direct = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
        let open = |flags| File::options().read(true).write(true).custom_flags(flags).open(path);
        // Some file systems have no direct I/O, nor the trouble that it avoids.
        Ok(Self { file: open(direct).or_else(|_| open(0))? })
    }

    /// The blocks of a range as far as the file goes.
    fn read(&self, range: &Range<u64>) -> io::Result<Vec<u8>> {
        let end = self.file.metadata()?.len() / BLOCK * BLOCK;
        let length = usize::try_from(range.end.min(end).saturating_sub(range.start)).unwrap_or(0);
        let mut space = vec![0; length + 4096];
        let shift = space.as_ptr().align_offset(4096);
        let bytes = &mut space[shift..shift + length];
        let mut filled = 0;
        while filled < length {
            match self.file.read_at(&mut bytes[filled..], range.start + filled as u64)? {
                0 => break, // it was cut short meanwhile
                count => filled += count,
            }
        }
        Ok(bytes.to_vec())
    }

    /// Writes whole blocks as far as the file goes: a member that was cut short stays so.
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let end = self.file.metadata()?.len() / BLOCK * BLOCK;
        let length = usize::try_from(end.saturating_sub(at)).unwrap_or(0).min(bytes.len());
        let mut space = vec![0; length + 4096];
        let shift = space.as_ptr().align_offset(4096);
        space[shift..shift + length].copy_from_slice(&bytes[..length]);
        self.file.write_all_at(&space[shift..shift + length], at)
    }
}

/// Stretches of zeros hold nothing yet; what is damaged should matter.
fn used_blocks(blocks: &Blocks, range: &Range<u64>) -> io::Result<Vec<u64>> {
    let bytes = blocks.read(range)?;
    let each = (range.start..).step_by(4096).zip(bytes.chunks(4096));
    Ok(each.filter(|(_, block)| block.iter().any(|&byte| byte != 0)).map(|(at, _)| at).collect())
}

/// Damages an area of a member in some way; the answer says how.
pub fn damage(path: &Path, layout: &Layout, area: Area, rng: &mut Rng) -> io::Result<String> {
    let blocks = Blocks::open(path)?;
    let ranges: Vec<_> =
        layout.areas.iter().filter(|(kind, _)| *kind == area).map(|(_, range)| range).collect();
    let range = (*rng.pick(&ranges)).clone();
    let used = used_blocks(&blocks, &range)?;
    let target = if used.is_empty() || rng.percent(10) {
        range.start + rng.below((range.end - range.start).div_ceil(BLOCK)) * BLOCK
    } else {
        *rng.pick(&used)
    };
    let some = target..(target + BLOCK * rng.between(1, 8)).min(range.end);
    let how = match rng.below(10) {
        0..3 => flip(&blocks, target, rng)?,
        3..5 => overwrite(&blocks, some, None)?,
        5..6 => overwrite(&blocks, some, Some(rng))?,
        6..8 => {
            let noise = if rng.percent(50) { Some(rng) } else { None };
            overwrite(&blocks, range, noise)?
        }
        _ => misplace(&blocks, target, &used, &range, rng)?,
    };
    Ok(format!("{area:?}: {how}"))
}

fn flip(blocks: &Blocks, at: u64, rng: &mut Rng) -> io::Result<String> {
    let mut block = blocks.read(&(at..at + BLOCK))?;
    let count = rng.between(1, 3);
    for _ in 0..count.min(block.len() as u64) {
        let byte = rng.index(block.len());
        block[byte] ^= 1 << rng.below(8);
    }
    blocks.write(at, &block)?;
    Ok(format!("{count} bits flipped in the block at {at}"))
}

fn overwrite(blocks: &Blocks, range: Range<u64>, noise: Option<&mut Rng>) -> io::Result<String> {
    let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap_or(0)];
    let with = if noise.is_some() { "noise" } else { "zeros" };
    if let Some(rng) = noise {
        for word in bytes.chunks_mut(8) {
            let noise = rng.draw().to_le_bytes();
            word.copy_from_slice(&noise[..word.len()]);
        }
    }
    blocks.write(range.start, &bytes)?;
    Ok(format!("{with} over {} bytes at {}", range.end - range.start, range.start))
}

/// Copies a block to where it does not belong.
fn misplace(
    blocks: &Blocks,
    target: u64,
    used: &[u64],
    range: &Range<u64>,
    rng: &mut Rng,
) -> io::Result<String> {
    let other: Vec<u64> = used.iter().copied().filter(|&at| at != target).collect();
    let from = if other.is_empty() { range.start } else { *rng.pick(&other) };
    let block = blocks.read(&(from..from + BLOCK))?;
    blocks.write(target, &block)?;
    Ok(format!("the block at {from} copied to {target}"))
}

/// Whether a file carries a superblock.
pub fn has_superblock(path: &Path) -> bool {
    let mut magic = [0; 8];
    let read =
        |at: u64, magic: &mut [u8]| File::open(path).and_then(|file| file.read_exact_at(magic, at)).is_ok();
    [0, BLOCK].iter().any(|&at| read(at, &mut magic) && &magic == b"ELSTSUPR")
}

/// Zeros over an area.
pub fn blank(path: &Path, layout: &Layout, area: Area) -> io::Result<()> {
    let blocks = Blocks::open(path)?;
    for (_, range) in layout.areas.iter().filter(|(kind, _)| *kind == area) {
        overwrite(&blocks, range.clone(), None)?;
    }
    Ok(())
}

/// Copies a file; stretches of zeros become holes.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let source = File::open(from)?;
    let target = File::options().write(true).create(true).truncate(true).open(to)?;
    let size_bytes = source.metadata()?.len();
    target.set_len(size_bytes)?;
    let mut piece = vec![0; 64 << 10];
    let mut at = 0;
    while at < size_bytes {
        let count = source.read_at(&mut piece, at)?;
        if count == 0 {
            break; // it was cut short meanwhile
        }
        if piece[..count].iter().any(|&byte| byte != 0) {
            target.write_all_at(&piece[..count], at)?;
        }
        at += count as u64;
    }
    // Nothing of it waits in the page cache when a server reads past it.
    target.sync_data()
}

/// Cuts a member short.
pub fn truncate(path: &Path, size_bytes: u64) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    file.set_len(size_bytes)?;
    file.sync_all()
}

/// Swaps the names of two files.
pub fn swap(dir: &Path, a: &str, b: &str) -> io::Result<()> {
    let between = dir.join("between");
    fs::rename(dir.join(a), &between)?;
    fs::rename(dir.join(b), dir.join(a))?;
    fs::rename(between, dir.join(b))
}
