//! Arrays at rest in memory, whose metadata the fuzzer rewrites: assembly must refuse or give an array that
//! works or says why not, and never panic.

use crate::fix_crc;
use array::{Array, CreateOptions, EngineOptions, NewArray, arrange, create, plan_config};
use block::{
    Completion, DevIndex, DeviceOp, DeviceSet, Durability, Geometry, IoFault, META_BYTES, OpKind, Pool, Slot,
};
use format::{
    ArrayUuid, CheckpointKind, CodeKind, Consistency, LayoutKind, SUPERBLOCK_OFFSETS, SchemeKind, Superblock,
};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

const MAIN_BYTES: u64 = 4 << 20;
const LOG_BYTES: u64 = 4 << 20;

/// Devices of an array at rest, and where their metadata blocks are.
struct Sample {
    devices: Vec<Vec<u8>>,
    metadata: Vec<(usize, u64)>,
}

/// A sample with some blocks written over: cheap to make, as only those are copied.
struct Overlay {
    sample: Arc<Sample>,
    written: HashMap<(usize, u64), Box<[u8; META_BYTES]>>,
    done: Vec<Completion>,
}

impl Overlay {
    fn new(sample: Arc<Sample>) -> Self {
        Self { sample, written: HashMap::new(), done: Vec::new() }
    }

    fn block(&self, dev: usize, offset: u64) -> &[u8] {
        match self.written.get(&(dev, offset)) {
            Some(block) => &block[..],
            None => &self.sample.devices[dev][offset as usize..][..META_BYTES],
        }
    }

    fn block_mut(&mut self, dev: usize, offset: u64) -> &mut [u8; META_BYTES] {
        let (sample, written) = (&self.sample, &mut self.written);
        written.entry((dev, offset)).or_insert_with(|| {
            let block = &sample.devices[dev][offset as usize..][..META_BYTES];
            Box::new(block.try_into().expect("a block has its size"))
        })
    }

    fn fits(&self, dev: DevIndex, offset: u64, length: u64) -> Result<(), IoFault> {
        let size = self.size_bytes(dev);
        if size == 0 {
            return Err(IoFault::Gone);
        }
        if offset.checked_add(length).is_some_and(|end| end <= size) { Ok(()) } else { Err(IoFault::Short) }
    }
}

impl DeviceSet for Overlay {
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
        for op in ops {
            let length = op.length_bytes as usize;
            let result = match (op.kind, op.slot) {
                (OpKind::Read, Some(slot)) => {
                    self.read_now(op.dev, op.offset_bytes, &mut pool.bytes_mut(slot)[..length])
                }
                (OpKind::Write, Some(slot)) => {
                    self.write_now(op.dev, op.offset_bytes, &pool.bytes(slot)[..length])
                }
                (OpKind::Flush | OpKind::Discard, _) => Ok(()),
                (OpKind::Read | OpKind::Write, None) => panic!("a transfer without a slot"),
            };
            self.done.push(Completion { tag: op.tag, result });
        }
    }

    fn poll(&mut self, _pool: &mut Pool, completions: &mut Vec<Completion>) {
        completions.append(&mut self.done);
    }

    fn wait(&mut self, _timeout_ns: u64) {}

    fn size_bytes(&self, dev: DevIndex) -> u64 {
        self.sample.devices.get(dev.index()).map_or(0, |device| device.len() as u64)
    }

    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        self.fits(dev, offset_bytes, into.len() as u64)?;
        for (at, block) in (offset_bytes..).step_by(META_BYTES).zip(into.chunks_mut(META_BYTES)) {
            block.copy_from_slice(self.block(dev.index(), at));
        }
        Ok(())
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        self.fits(dev, offset_bytes, from.len() as u64)?;
        for (at, block) in (offset_bytes..).step_by(META_BYTES).zip(from.chunks(META_BYTES)) {
            self.block_mut(dev.index(), at).copy_from_slice(block);
        }
        Ok(())
    }

    fn flush_now(&mut self, _dev: DevIndex) -> Result<(), IoFault> {
        Ok(())
    }
}

fn options() -> EngineOptions {
    let mut options = EngineOptions::default();
    options.commit.idle_ns = None;
    options.pool_bytes = 1 << 20;
    options
}

fn superblocks(devices: &mut Overlay) -> Vec<Superblock> {
    let mut block = vec![0; META_BYTES];
    let mut found = Vec::new();
    for dev in 0..devices.sample.devices.len() as u16 {
        let copies = SUPERBLOCK_OFFSETS.into_iter().enumerate().filter_map(|(copy, offset)| {
            devices.read_now(DevIndex::new(dev), offset, &mut block).ok()?;
            Superblock::decode(&block, copy).ok()
        });
        found.extend(copies.max_by_key(|superblock| superblock.config_seq));
    }
    found
}

fn assemble(mut devices: Overlay) -> Option<Array<Overlay>> {
    let found = superblocks(&mut devices);
    let arrangement = arrange(&found).ok()?;
    Array::assemble(devices, &arrangement, 4242, options()).ok().map(|(array, _)| array)
}

/// One request of whole chunks; whatever its end.
fn transfer(array: &mut Array<Overlay>, chunk: u64, count: u64, write: bool) {
    let engine = array.engine();
    let bytes = engine.pool().slot_bytes() as u64;
    let first = chunk % (engine.volume_bytes() / bytes).max(1);
    let count = count.min((engine.volume_bytes() / bytes).saturating_sub(first));
    let mut slots: Vec<Slot> = Vec::new();
    if !engine.take_slots(count as usize, &mut slots) {
        return;
    }
    let (offset, length) = (first * bytes, count * bytes);
    let _ = if write {
        slots.iter().for_each(|&slot| engine.pool().bytes_mut(slot).fill(chunk as u8 | 1));
        array.run(|e, tag| e.write(tag, offset, length, &slots, Durability::Volatile))
    } else {
        array.run(|e, tag| e.read(tag, offset, length, &slots))
    };
    slots.into_iter().for_each(|slot| array.engine().pool().free(slot));
}

fn sample(scheme: SchemeKind, k: usize, m: usize, stopped: bool) -> Arc<Sample> {
    let create_options = CreateOptions {
        scheme,
        code: if m == 1 { CodeKind::Xor } else { CodeKind::Cauchy },
        layout: LayoutKind::Spread,
        consistency: Consistency::Journal,
        geometry: Geometry::new(k, m, 4096).expect("a good geometry"),
        reserve_permille: 300,
        unit_rows: Some(4),
    };
    let logs = if scheme.has_log() { m } else { 0 };
    let config =
        plan_config(&create_options, MAIN_BYTES, LOG_BYTES, logs).expect("the devices are large enough");
    let sizes = (0..k + m + logs).map(|dev| if dev < k + m { MAIN_BYTES } else { LOG_BYTES });
    let empty = Sample { devices: sizes.map(|size| vec![0; size as usize]).collect(), metadata: Vec::new() };
    let mut devices = Overlay::new(Arc::new(empty));
    let new = NewArray { uuid: ArrayUuid::new([7; 16]), name: String::new(), nonce: 99, created_unix_s: 0 };
    create(&mut devices, config, &new).expect("memory does not fail");
    let mut array = assemble(devices).expect("a new array");
    for step in 0..60 {
        transfer(&mut array, step * 7, 1 + step % 9, true);
        let _ = match step % 20 {
            3 | 9 | 19 => array.run(|e, tag| e.flush(tag)),
            6 => array.run(|e, tag| e.commit(tag)),
            12 => array.run(|e, tag| e.write_checkpoint(tag, CheckpointKind::Incremental)),
            _ => Ok(()),
        };
    }
    if stopped {
        array.stop().expect("memory does not fail");
    }
    array.settle();
    let overlay = array.into_devices();
    let mut devices = overlay.sample.devices.clone();
    for (&(dev, offset), block) in &overlay.written {
        devices[dev][offset as usize..][..META_BYTES].copy_from_slice(&block[..]);
    }
    let mut metadata = Vec::new();
    for (dev, bytes) in devices.iter().enumerate() {
        let blocks = (0..).step_by(META_BYTES).zip(bytes.chunks(META_BYTES));
        metadata.extend(blocks.filter(|(_, block)| block.starts_with(b"ELST")).map(|(at, _)| (dev, at)));
    }
    Arc::new(Sample { devices, metadata })
}

fn samples() -> &'static [Arc<Sample>] {
    static SAMPLES: OnceLock<Vec<Arc<Sample>>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        vec![
            sample(SchemeKind::Eplog, 2, 1, false),
            sample(SchemeKind::Eplog, 2, 2, true),
            sample(SchemeKind::Raid, 2, 1, false),
            sample(SchemeKind::Eplog, 3, 2, false),
            sample(SchemeKind::ParityLog, 2, 1, false),
            sample(SchemeKind::ParityLog, 3, 2, true),
            sample(SchemeKind::Elastic, 2, 1, false),
            sample(SchemeKind::Was, 3, 2, true),
        ]
    })
}

/// The first byte names a sample and what to do with it. Then edits of its metadata blocks: block (2 bytes),
/// offset (2), length (1), bytes. The highest bit of the offset leaves the checksum as it is.
pub fn run(data: &[u8]) {
    let Some((&which, mut edits)) = data.split_first() else { return };
    let sample = &samples()[usize::from(which & 0x0f) % samples().len()];
    let mut devices = Overlay::new(Arc::clone(sample));
    while let Some((&[b0, b1, o0, o1, length], rest)) = edits.split_first_chunk::<5>() {
        let (bytes, rest) = rest.split_at(rest.len().min(usize::from(length)));
        edits = rest;
        let (dev, at) = sample.metadata[usize::from(u16::from_le_bytes([b0, b1])) % sample.metadata.len()];
        let offset = u16::from_le_bytes([o0, o1]);
        let block = devices.block_mut(dev, at);
        let from = usize::from(offset & 0x7fff) % META_BYTES;
        let end = (from + bytes.len()).min(META_BYTES);
        block[from..end].copy_from_slice(&bytes[..end - from]);
        if offset & 0x8000 == 0 {
            fix_crc(block);
        }
    }
    let Some(mut array) = assemble(devices) else { return };
    if which & READ != 0 {
        let chunks = array.engine().volume_bytes() / array.engine().pool().slot_bytes() as u64;
        (0..chunks.min(1024)).step_by(16).for_each(|chunk| transfer(&mut array, chunk, 16, false));
    }
    if which & WRITE != 0 {
        (0..8).for_each(|step| transfer(&mut array, step * 37, 1 + step, true));
        let _ = array.run(|e, tag| e.commit(tag));
    }
    if which & SCRUB != 0 {
        let _ = array.run(|e, tag| e.scrub(tag, 0));
    }
    if which & STOP != 0 {
        let _ = array.stop();
    }
}

/// What is done with an array that could be assembled; all of it takes many times as long as assembly.
const READ: u8 = 0x10;
const WRITE: u8 = 0x20;
const SCRUB: u8 = 0x40;
const STOP: u8 = 0x80;
