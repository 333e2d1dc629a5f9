//! What is on a member, structure by structure, with the same decoders that the engine uses. Reads without
//! locks, writes nothing, and goes on behind damage.

mod show;

pub use show::{Detail, text, to_json};

use crate::error::Error;
use crate::open::{Candidate, look_at, look_at_slice};
use block::{ChunkIndex, DevIndex, Epoch, META_BYTES};
use format::{
    ArrayConfig, ArrayUuid, BlockExpect, BodyCrc, Change, Changes, CheckpointHeader, FormatError, Frame,
    FrameExpect, INCREMENTAL_AREA, ItemRef, ListItem, Page, PageExpect, PageKind, Role, Superblock,
    decode_checkpoint_header, decode_frame, decode_list, decode_page, unpack_list,
};
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Blocks read at once when a ring or a log region is searched.
const BATCH_BLOCKS: usize = 256;

/// Everything found on one member.
pub struct Inspection {
    /// Superblocks, size, foreign content.
    pub candidate: Candidate,
    /// Checkpoints of areas 0, 1 and the incremental area, in this order.
    pub checkpoints: Vec<Checkpoint>,
    /// Journal ring of a main device, or log region of a log device.
    pub journal: Option<Journal>,
}

/// A checkpoint on one member, or what is in its place.
pub struct Checkpoint {
    /// Full-checkpoint area 0 or 1, or 2 = incremental.
    pub area: u8,
    /// Block of the header in its area.
    pub block: u32,
    /// The header.
    pub header: Result<CheckpointHeader, FormatError>,
    /// Pages of the table.
    pub table_pages: u32,
    /// Pages that say which slots of the page area count.
    pub root_pages: u32,
    /// Pages of patches of the table.
    pub patch_pages: u32,
    /// Pages of the list.
    pub list_pages: u32,
    /// Pages of changes of the list since the checkpoint before.
    pub change_pages: u32,
    /// Pages that are not what they should be, with the first reason.
    pub bad_pages: u32,
    /// The first reason.
    pub first_bad: Option<FormatError>,
    /// Whether the header's checksum over the pages fits them.
    pub body_matches: bool,
    /// What the list says, or the changes of it, when all of that is there.
    pub list: Option<ListSummary>,
}

/// The list of a checkpoint, or what changed of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ListSummary {
    /// Stripes whose parity is older than their data.
    pub dirty_stripes: u64,
    /// Log stripes in use.
    pub log_stripes: u64,
    /// Log chunks with changes of parity in use, on each log device.
    pub deltas: u64,
    /// Stripes that are dirty no more; in changes alone.
    pub clean_stripes: u64,
    /// Log stripes that are needed no more; in changes alone.
    pub ended_log_stripes: u64,
    /// Log stripes whose members have other fates; in changes alone.
    pub changed_log_stripes: u64,
}

/// The frames of a journal ring or log region.
#[derive(Default)]
pub struct Journal {
    /// Blocks looked at.
    pub blocks: u64,
    /// Frames of assemblies that the superblock or a checkpoint knows, in block order.
    pub frames: Vec<Frame>,
    /// Intact frames of earlier assemblies.
    pub old_frames: u64,
    /// Blocks that begin like a frame and are damaged, misplaced, or of another array; with the first reason.
    pub bad_frames: u64,
    /// The first reason.
    pub first_bad: Option<(u64, FormatError)>,
}

struct Source<'a> {
    file: File,
    array: ArrayUuid,
    dev: DevIndex,
    config: &'a ArrayConfig,
}

/// Assemblies of the array and their random numbers, which tell frames from user data.
pub type Secrets = Vec<(Epoch, u64)>;

/// Looks at everything on one member, or on the slice that one of several shards has of it; `progress` is
/// told how many blocks of how many were searched for frames. `secrets` are those that other members gave
/// away; this one's are added.
pub fn inspect(
    path: &Path,
    shard: u16,
    secrets: &mut Secrets,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Inspection, Error> {
    let candidate = if shard == 0 { look_at(path)? } else { look_at_slice(path, shard)? };
    let Some(superblock) = candidate.superblock().cloned() else {
        return Ok(Inspection { candidate, checkpoints: Vec::new(), journal: None });
    };
    let file = File::open(path)?;
    let source = Source { file, array: superblock.array, dev: superblock.dev, config: &superblock.config };
    let checkpoints = match superblock.role {
        Role::Main => source.checkpoints(),
        Role::Log | Role::Spare => Vec::new(),
    };
    let headers = checkpoints.iter().filter_map(|checkpoint| checkpoint.header.as_ref().ok());
    secrets.push((superblock.epoch, superblock.nonce));
    secrets.extend(headers.map(|header| (header.epoch, header.nonce)));
    secrets.sort_unstable();
    secrets.dedup();
    let journal = match superblock.role {
        Role::Main | Role::Log => Some(source.journal(&superblock, secrets, progress)),
        Role::Spare => None,
    };
    Ok(Inspection { candidate, checkpoints, journal })
}

/// Whether a member has the header of a full checkpoint that can be read.
pub fn has_checkpoint(path: &Path, superblock: &Superblock, dev: DevIndex) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let source = Source { file, array: superblock.array, dev, config: &superblock.config };
    [0, 1].into_iter().any(|area| {
        let mut bytes = [0; META_BYTES];
        source.read(source.config.full_offset(usize::from(area), 0), &mut bytes);
        let expect = BlockExpect { array: source.array, dev, area, block: 0 };
        decode_checkpoint_header(&bytes, &expect).is_ok()
    })
}

impl Source<'_> {
    /// Reads blocks; what lies behind the end or cannot be read is zeros, which no decoder takes for
    /// anything.
    fn read(&self, mut offset: u64, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let together = usize::try_from(self.config.blocks_together(offset)).unwrap_or(usize::MAX);
            let length = together.saturating_mul(META_BYTES).min(bytes.len());
            let (piece, behind) = std::mem::take(&mut bytes).split_at_mut(length);
            self.read_piece(self.config.place_on(self.dev, offset), piece);
            let length = u64::try_from(length).unwrap_or(u64::MAX);
            (offset, bytes) = (offset.saturating_add(length), behind);
        }
    }

    /// The same of what lies in one place.
    fn read_piece(&self, start: u64, bytes: &mut [u8]) {
        if self.file.read_exact_at(bytes, start).is_ok() {
            return;
        }
        for (at, block) in (0u64..).zip(bytes.chunks_mut(META_BYTES)) {
            if self.file.read_exact_at(block, start + at * META_BYTES as u64).is_err() {
                block.fill(0);
            }
        }
    }

    fn block_offset(&self, area: u8, block: u32) -> Option<u64> {
        match area {
            INCREMENTAL_AREA if block < self.config.incremental_blocks => {
                Some(self.config.incremental_offset(block))
            }
            0 | 1 if block < self.config.full_blocks => {
                Some(self.config.full_offset(usize::from(area), block))
            }
            _ => None,
        }
    }

    fn checkpoints(&self) -> Vec<Checkpoint> {
        let mut found: Vec<Checkpoint> =
            [0, 1].into_iter().filter_map(|area| self.checkpoint(area, 0)).collect();
        let headers = found.iter().filter_map(|checkpoint| checkpoint.header.as_ref().ok());
        let mut newest = headers.max_by_key(|header| header.number).copied();
        let mut block = newest.and_then(|full| full.beside).map_or(0, |beside| beside.block);
        let first = found.len();
        while let Some(checkpoint) = self.behind(newest.as_ref(), block) {
            if let Ok(header) = &checkpoint.header {
                newest = Some(*header);
                block = checkpoint.block.saturating_add(1 + header.page_count);
            }
            found.push(checkpoint);
        }
        if found.len() == first {
            // Whatever is there instead.
            found.extend(self.checkpoint(INCREMENTAL_AREA, block));
        }
        found
    }

    /// The incremental checkpoint of a higher number that goes on from the newest one, which ended before a
    /// block: there, or at the beginning of their ring.
    fn behind(&self, newest: Option<&CheckpointHeader>, block: u32) -> Option<Checkpoint> {
        let goes_on = |header: &CheckpointHeader| {
            newest.is_none_or(|newest| header.number > newest.number && header.goes_on_from(newest))
        };
        let is_next = |checkpoint: &Checkpoint| checkpoint.header.as_ref().is_ok_and(goes_on);
        let there = self.checkpoint(INCREMENTAL_AREA, block).filter(is_next);
        there.or_else(|| self.checkpoint(INCREMENTAL_AREA, 0).filter(is_next))
    }

    /// The checkpoint whose header is at a block; `None` behind the end of the area.
    fn checkpoint(&self, area: u8, block: u32) -> Option<Checkpoint> {
        let mut bytes = vec![0u8; META_BYTES];
        self.read(self.block_offset(area, block)?, &mut bytes);
        let expect = BlockExpect { array: self.array, dev: self.dev, area, block };
        let header = decode_checkpoint_header(&bytes, &expect);
        let mut checkpoint = Checkpoint {
            area,
            block,
            header,
            table_pages: 0,
            root_pages: 0,
            patch_pages: 0,
            list_pages: 0,
            change_pages: 0,
            bad_pages: 0,
            first_bad: None,
            body_matches: false,
            list: None,
        };
        if let Ok(header) = checkpoint.header.clone() {
            self.pages(&header, &mut checkpoint);
        }
        Some(checkpoint)
    }

    fn pages(&self, header: &CheckpointHeader, checkpoint: &mut Checkpoint) {
        let (mut body, mut list) = (BodyCrc::new(), Vec::new());
        let mut bytes = vec![0u8; META_BYTES];
        for index in 0..header.page_count {
            let block = header.block.saturating_add(1).saturating_add(index);
            let Some(offset) = self.block_offset(header.area, block) else {
                checkpoint.bad_pages += header.page_count - index;
                break;
            };
            self.read(offset, &mut bytes);
            let expect = PageExpect {
                array: self.array,
                dev: self.dev,
                area: header.area,
                block,
                number: Some(header.number),
            };
            match decode_page(&bytes, &expect) {
                Ok(Page { kind, words, crc, .. }) => {
                    body.push(crc);
                    match kind {
                        PageKind::Table => checkpoint.table_pages += 1,
                        PageKind::Directory | PageKind::Root => checkpoint.root_pages += 1,
                        PageKind::Patches | PageKind::PackedPatches => checkpoint.patch_pages += 1,
                        PageKind::List => {
                            checkpoint.list_pages += 1;
                            list.extend(words);
                        }
                        PageKind::Changes => {
                            checkpoint.change_pages += 1;
                            list.extend(words);
                        }
                    }
                }
                Err(error) => {
                    checkpoint.bad_pages += 1;
                    checkpoint.first_bad.get_or_insert(error);
                }
            }
        }
        checkpoint.body_matches = checkpoint.bad_pages == 0 && body.finish() == header.body_crc;
        if checkpoint.bad_pages == 0 && list.len() as u64 == header.list_words {
            let list = unpack_list(&list).ok();
            checkpoint.list = list.and_then(|list| match checkpoint.change_pages {
                0 => decode_list(&list).ok().map(|items| summarise(&items)),
                _ => Changes::read(&list).ok().map(summarise_changes),
            });
        }
    }

    fn journal(
        &self,
        superblock: &Superblock,
        secrets: &[(Epoch, u64)],
        progress: &mut dyn FnMut(u64, u64),
    ) -> Journal {
        let (first, count) = match superblock.role {
            Role::Main => (0, self.config.journal_blocks),
            Role::Log | Role::Spare => (1, self.config.log_blocks),
        };
        let mut journal = Journal { blocks: u64::from(count), ..Journal::default() };
        let mut bytes = vec![0u8; BATCH_BLOCKS * META_BYTES];
        let mut at = 0u32;
        while at < count {
            let batch = (count - at).min(BATCH_BLOCKS as u32);
            let bytes = &mut bytes[..batch as usize * META_BYTES];
            let offset = match superblock.role {
                Role::Main => self.config.journal_offset(at),
                Role::Log | Role::Spare => self.config.log_offset(ChunkIndex::new(first + at)),
            };
            self.read(offset, bytes);
            for (block, bytes) in (first + at..).zip(bytes.chunks(META_BYTES)) {
                self.frame(bytes, block, secrets, &mut journal);
            }
            at += batch;
            progress(u64::from(at), u64::from(count));
        }
        journal
    }

    fn frame(&self, bytes: &[u8], block: u32, secrets: &[(Epoch, u64)], journal: &mut Journal) {
        for &(epoch, nonce) in secrets {
            match decode_frame(bytes, &FrameExpect { array: self.array, epoch, nonce, dev: self.dev, block })
            {
                Ok(frame) => return journal.frames.push(frame),
                Err(FormatError::OtherEpoch { .. } | FormatError::OtherNonce { .. }) => {}
                Err(FormatError::BadMagic { .. }) => return,
                Err(
                    error @ (FormatError::Length { .. }
                    | FormatError::Version { .. }
                    | FormatError::Checksum { .. }
                    | FormatError::Misplaced { .. }
                    | FormatError::OtherArray { .. }
                    | FormatError::Malformed { .. }
                    | FormatError::Config { .. }),
                ) => {
                    journal.bad_frames += 1;
                    journal.first_bad.get_or_insert((u64::from(block), error));
                    return;
                }
            }
        }
        journal.old_frames += 1;
    }
}

fn summarise(items: &[ListItem]) -> ListSummary {
    let mut summary = ListSummary::default();
    let mut changed = HashSet::new();
    for item in items {
        match item {
            ListItem::DirtyStripe { .. } | ListItem::UpdatedColumns { .. } => summary.dirty_stripes += 1,
            ListItem::LogStripe { .. } | ListItem::OpenStripe { .. } => summary.log_stripes += 1,
            ListItem::Delta { stripe, .. } => {
                summary.deltas += 1;
                summary.dirty_stripes += u64::from(changed.insert(*stripe));
            }
            ListItem::Space { .. } | ListItem::Missed { .. } => {}
        }
    }
    summary
}

fn summarise_changes(changes: Changes<'_>) -> ListSummary {
    let mut summary = ListSummary::default();
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    for change in changes.iter() {
        match change {
            Change::Item(ItemRef::DirtyStripe { .. }, _) => summary.dirty_stripes += 1,
            Change::Item(ItemRef::LogStripe { .. } | ItemRef::OpenStripe { .. }, _) => {
                summary.log_stripes += 1
            }
            Change::Item(ItemRef::Delta { .. }, _) => summary.deltas += 1,
            Change::Item(ItemRef::Space { .. } | ItemRef::Missed { .. }, _) => {}
            Change::CleanStripes(stripes) => summary.clean_stripes += number(stripes.iter().len()),
            Change::EndedLogStripes(seqs) => summary.ended_log_stripes += number(seqs.iter().len()),
            Change::Fates { .. } => summary.changed_log_stripes += 1,
        }
    }
    summary
}
