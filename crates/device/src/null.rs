//! Members that move nothing: the engine's own cost, and write counts, without a device.
//!
//! Reads leave the slot as it is (or zero it, [`NullOptions::zero_reads`]); data, parity and log writes
//! vanish. With [`NullOptions::keep_metadata`] the blocks written by `write_now` and by writes of
//! [`Stream::Metadata`] are kept in a sparse map and read back, so that an array can be created and assembled
//! on null members.

use crate::mapping::{stream_copy, stream_end};
use crate::operation::{assert_grid, in_range, on_grid, range_fits, transfer_place};
use block::{Completion, DevIndex, DeviceOp, DeviceSet, IoFault, META_BYTES, OpKind, Pool, Stream};
use std::collections::BTreeMap;

const BLOCK_BYTES: u64 = META_BYTES as u64;
/// Blocks of a stretch of a member of which any is kept.
const STRETCH_LEN: usize = 256;
const STRETCH_BLOCKS: u64 = STRETCH_LEN as u64;

/// A block that is kept. It is seldom read soon, and is not to push out of the caches what the engine needs.
#[repr(align(64))]
struct Kept([u8; META_BYTES]);

/// What is kept of a stretch.
type Stretch = [Option<Box<Kept>>; STRETCH_LEN];

/// What a [`NullSet`] does beyond nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NullOptions {
    /// Reads fill the slot with zeros instead of leaving it alone.
    pub zero_reads: bool,
    /// Writes of [`Stream::Metadata`] are kept and read back; `write_now` always is.
    pub keep_metadata: bool,
}

#[derive(Clone, Copy)]
struct Member {
    size_bytes: u64,
    failed: bool,
}

/// A set of members that count for their size only.
pub struct NullSet {
    members: Vec<Member>,
    options: NullOptions,
    /// By member and number of the stretch. Nothing moves when there are more.
    kept: BTreeMap<(DevIndex, u64), Box<Stretch>>,
    done: Vec<Completion>,
    /// Whether [`stream_end`] is due.
    streamed: bool,
}

impl NullSet {
    /// One member for every size in bytes; a size of 0 makes an absent member.
    pub fn new(sizes_bytes: &[u64], options: NullOptions) -> Self {
        let members = sizes_bytes.iter().map(|&size_bytes| Member { size_bytes, failed: false }).collect();
        Self { members, options, kept: BTreeMap::new(), done: Vec::new(), streamed: false }
    }

    /// Breaks a member: what was kept of it is lost and all its operations end with [`IoFault::Gone`].
    pub fn fail(&mut self, dev: DevIndex) {
        if let Some(member) = self.members.get_mut(dev.index()) {
            member.failed = true;
            self.kept.retain(|&(kept_dev, _), _| kept_dev != dev);
        }
    }

    /// Puts a fresh member in the place of `dev`; an index past the end adds absent members up to it.
    pub fn replace(&mut self, dev: DevIndex, size_bytes: u64) {
        self.fail(dev);
        while self.members.len() <= dev.index() {
            self.members.push(Member { size_bytes: 0, failed: false });
        }
        self.members[dev.index()] = Member { size_bytes, failed: false };
    }

    /// How many 4 KiB blocks are kept.
    pub fn kept_block_count(&self) -> usize {
        self.kept.values().flat_map(|stretch| stretch.iter().flatten()).count()
    }

    fn size_present(&self, dev: DevIndex) -> Result<u64, IoFault> {
        match self.members.get(dev.index()) {
            Some(Member { failed: false, size_bytes }) if *size_bytes > 0 => Ok(*size_bytes),
            Some(_) | None => Err(IoFault::Gone),
        }
    }

    /// Carries out one operation at once, for sets that keep their metadata here and the rest elsewhere.
    pub fn execute(&mut self, pool: &mut Pool, op: &DeviceOp) -> Result<(), IoFault> {
        let result = self.carry_out(pool, op);
        self.end_stream();
        result
    }

    fn carry_out(&mut self, pool: &mut Pool, op: &DeviceOp) -> Result<(), IoFault> {
        if !in_range(op, self.size_present(op.dev)?) {
            return Err(IoFault::Short);
        }
        let kept = self.options.keep_metadata && op.stream == Stream::Metadata;
        match op.kind {
            OpKind::Read | OpKind::Write => {
                let (slot, length) = transfer_place(op, pool.slot_bytes());
                if op.kind == OpKind::Write {
                    if kept {
                        self.keep(op.dev, op.offset_bytes, &pool.bytes(slot)[..length]);
                    }
                } else if kept {
                    self.recall(op.dev, op.offset_bytes, &mut pool.bytes_mut(slot)[..length]);
                } else if self.options.zero_reads {
                    pool.bytes_mut(slot)[..length].fill(0);
                }
            }
            OpKind::Flush => {}
            OpKind::Discard => {
                assert!(on_grid(op), "discard at {}: expected multiples of 4096", op.offset_bytes);
                if kept {
                    self.forget(op.dev, op.offset_bytes, op.length_bytes);
                }
            }
        }
        Ok(())
    }

    fn end_stream(&mut self) {
        if std::mem::take(&mut self.streamed) {
            stream_end();
        }
    }

    fn keep(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) {
        self.streamed = true;
        let (blocks, _) = from.as_chunks::<META_BYTES>();
        for (index, block) in (offset_bytes / BLOCK_BYTES..).zip(blocks) {
            let stretch = self.kept.entry((dev, index / STRETCH_BLOCKS));
            let stretch = stretch.or_insert_with(|| Box::new([const { None }; STRETCH_LEN]));
            match &mut stretch[within(index)] {
                Some(kept) => stream_copy(&mut kept.0, block),
                kept @ None => *kept = Some(Box::new(Kept(*block))),
            }
        }
    }

    fn forget(&mut self, dev: DevIndex, offset_bytes: u64, length_bytes: u64) {
        let blocks = offset_bytes / BLOCK_BYTES..(offset_bytes + length_bytes) / BLOCK_BYTES;
        let stretches = (dev, blocks.start / STRETCH_BLOCKS)..(dev, blocks.end.div_ceil(STRETCH_BLOCKS));
        for (&(_, stretch), kept) in self.kept.range_mut(stretches) {
            for (block, kept) in (stretch * STRETCH_BLOCKS..).zip(kept.iter_mut()) {
                if blocks.contains(&block) {
                    *kept = None;
                }
            }
        }
    }

    fn recall(&self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) {
        let (blocks, _) = into.as_chunks_mut::<META_BYTES>();
        for (index, block) in (offset_bytes / BLOCK_BYTES..).zip(blocks) {
            let stretch = self.kept.get(&(dev, index / STRETCH_BLOCKS));
            match stretch.and_then(|stretch| stretch[within(index)].as_ref()) {
                Some(kept) => block.copy_from_slice(&kept.0),
                None => block.fill(0),
            }
        }
    }

    fn check_now(&self, dev: DevIndex, offset_bytes: u64, length: usize) -> Result<(), IoFault> {
        assert_grid(offset_bytes, length);
        if range_fits(offset_bytes, length as u64, self.size_present(dev)?) {
            Ok(())
        } else {
            Err(IoFault::Short)
        }
    }
}

/// Where in its stretch a block is.
fn within(block: u64) -> usize {
    usize::try_from(block % STRETCH_BLOCKS).expect("less than a stretch")
}

impl DeviceSet for NullSet {
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
        self.done.reserve(ops.len());
        for op in ops {
            let result = self.carry_out(pool, op);
            self.done.push(Completion { tag: op.tag, result });
        }
        self.end_stream();
    }

    fn poll(&mut self, _pool: &mut Pool, completions: &mut Vec<Completion>) {
        completions.append(&mut self.done);
    }

    fn wait(&mut self, _timeout_ns: u64) {}

    fn size_bytes(&self, dev: DevIndex) -> u64 {
        self.members.get(dev.index()).map_or(0, |member| member.size_bytes)
    }

    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        self.check_now(dev, offset_bytes, into.len())?;
        self.recall(dev, offset_bytes, into);
        Ok(())
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        self.check_now(dev, offset_bytes, from.len())?;
        self.keep(dev, offset_bytes, from);
        self.end_stream();
        Ok(())
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        self.size_present(dev).map(|_| ())
    }
}
