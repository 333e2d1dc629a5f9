//! Damaged devices: bits flipped, blocks zeroed, torn, swapped, or as they were earlier (lost writes), in
//! superblocks, checkpoints, journal, log and data.
//!
//! - On at most m devices, all that was flushed must be there, before and after another restart.
//! - On more, the array refuses to assemble, or says of a chunk that it cannot be read, or says how many
//!   records it dropped, or gives the right bytes; it never panics and never gives wrong ones in silence,
//!   unless all that spoke of the last writes is gone.
//! - With checksums made to match (which no accident does) anything may come out, but nothing may panic.
//!
//! `SEED=n cargo test -p elastripe-array --test engine mutated` runs one seed of each, `SEEDS=n` the
//! first n; the seed of a failure is printed.

use crate::common::*;
use array::{Array, EngineError, RecoveryReport, arrange};
use block::{ChunkIndex, DevIndex, DeviceSet, Durability, Lcn, Random as _, Seq, SplitMix};
use device::MemorySet;
use format::record::LogStripe;
use format::{
    ArrayConfig, Bond, CheckpointKind, Consistency, FrameBuilder, FrameStamp, LOG_START_BYTES, LogMember,
    RecordBuf, SchemeKind, Superblock, crc32c,
};
use std::collections::BTreeMap;

const BLOCK: usize = 4096;
const MAIN_MIB: u64 = 4;
const LOG_MIB: u64 = 4;

/// An array at rest, and what must be on it.
struct Sample {
    config: ArrayConfig,
    images: Vec<Vec<u8>>,
    /// The same devices some time before.
    older: Vec<Vec<u8>>,
    content: Vec<u8>,
    /// Number of the record that would have come next.
    next_seq: Seq,
}

/// How the array was left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Left {
    Running,
    Stopped,
}

impl Sample {
    fn make(seed: u64, scheme: SchemeKind, k: usize, m: usize, left: Left) -> Self {
        let mut options = create_options(scheme, k, m);
        options.consistency = Consistency::Journal;
        options.unit_rows = scheme.is_elastic().then_some(8);
        // Whatever can make use of log devices has some.
        let logs = if scheme.takes_log() { m } else { 0 };
        let (count, devices) = (k + m + logs, fresh_with_logs(&options, MAIN_MIB, LOG_MIB, logs));
        let (mut array, _) = assemble(devices, count, self::options());
        let mut content = vec![0u8; array.engine().volume_bytes() as usize];
        let mut rng = SplitMix::new(seed);
        let mut older = Vec::new();
        for step in 0..240u64 {
            change(&mut array, &mut content, &mut rng, step);
            if step == 160 {
                array.run(|e, tag| e.flush(tag)).unwrap();
                array.settle();
                older = images(&mut array, count);
            }
        }
        match left {
            Left::Running => array.run(|e, tag| e.flush(tag)).unwrap(),
            Left::Stopped => array.stop().unwrap(),
        }
        array.settle();
        let (config, next_seq) = (array.engine().store().config, array.engine().journal().next_seq());
        Self { config, images: images(&mut array, count), older, content, next_seq }
    }

    fn count(&self) -> usize {
        self.images.len()
    }

    fn parity_count(&self) -> usize {
        self.config.geometry.parity_count()
    }

    /// Where metadata ends on a member, in blocks.
    fn metadata_blocks(&self, dev: usize) -> u64 {
        let main = dev < self.config.geometry.device_count();
        (if main { self.config.data_start() } else { LOG_START_BYTES }) / BLOCK as u64
    }

    /// A block of the member: of the superblocks, of the metadata, of the rest.
    fn pick(&self, rng: &mut SplitMix, dev: usize) -> usize {
        let (metadata, all) = (self.metadata_blocks(dev), (self.images[dev].len() / BLOCK) as u64);
        let block = match rng.below(8) {
            0 => rng.below(2),
            1..5 => 2 + rng.below(metadata - 2),
            _ => metadata + rng.below(all - metadata),
        };
        block as usize * BLOCK
    }
}

fn images(array: &mut Array<MemorySet>, count: usize) -> Vec<Vec<u8>> {
    (0..count as u16).map(|dev| array.devices().bytes(DevIndex::new(dev)).to_vec()).collect()
}

/// One random change of the array and of what it must hold.
fn change(array: &mut Array<MemorySet>, content: &mut [u8], rng: &mut SplitMix, step: u64) {
    let size = content.len() as u64;
    let offset = rng.below(size / 512) * 512;
    let len = ((rng.below(60) + 1) * 512).min(size - offset);
    let range = offset as usize..(offset + len) as usize;
    match rng.below(100) {
        0..78 => {
            let salt = rng.below(251);
            let bytes: Vec<u8> = (0..len).map(|i| (step + i * 13 + salt) as u8).collect();
            write(array, offset, &bytes, Durability::Volatile).unwrap();
            content[range].copy_from_slice(&bytes);
        }
        78..84 => {
            discard(array, offset, len).unwrap();
            content[range].fill(0);
        }
        84..92 => array.run(|e, tag| e.flush(tag)).unwrap(),
        92..96 => array.run(|e, tag| e.commit(tag)).unwrap(),
        96..99 => array.run(|e, tag| e.write_checkpoint(tag, CheckpointKind::Incremental)).unwrap(),
        _ => array.run(|e, tag| e.write_checkpoint(tag, CheckpointKind::Full)).unwrap(),
    }
}

/// Damages one member in some way; at times all of a region of it.
fn damage(sample: &Sample, images: &mut [Vec<u8>], dev: usize, rng: &mut SplitMix) {
    let metadata = sample.metadata_blocks(dev) as usize * BLOCK;
    match rng.below(12) {
        0 => return images[dev].fill(0),
        1 => return images[dev][..2 * BLOCK].fill(0xff),
        2 => return images[dev][2 * BLOCK..metadata].fill(0),
        3 => return images[dev][metadata..].fill(0x5a),
        4 => return images[dev].copy_from_slice(&sample.older[dev]),
        _ => {}
    }
    for _ in 0..1 + rng.below(60) {
        let at = sample.pick(rng, dev);
        let bytes = &mut images[dev];
        match rng.below(6) {
            0 | 1 => bytes[at + rng.below(BLOCK as u64) as usize] ^= 1 << rng.below(8),
            2 => bytes[at..at + BLOCK].fill(0),
            3 => bytes[at + rng.below(7) as usize * 512..at + BLOCK].fill(rng.below(256) as u8),
            4 => {
                let other = sample.pick(rng, dev);
                let block = bytes[other..other + BLOCK].to_vec();
                bytes.copy_within(at..at + BLOCK, other);
                bytes[at..at + BLOCK].copy_from_slice(&block);
            }
            _ => bytes[at..at + BLOCK].copy_from_slice(&sample.older[dev][at..at + BLOCK]),
        }
    }
}

/// `count` different members.
fn victims(rng: &mut SplitMix, members: usize, count: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..members).collect();
    (0..count).map(|_| all.swap_remove(rng.below(all.len() as u64) as usize)).collect()
}

fn load(images: &[Vec<u8>]) -> MemorySet {
    let sizes: Vec<u64> = images.iter().map(|image| image.len() as u64).collect();
    let mut devices = MemorySet::new(&sizes).unwrap();
    for (dev, image) in (0u16..).map(DevIndex::new).zip(images) {
        devices.bytes_mut(dev).copy_from_slice(image);
    }
    devices
}

/// An array, or why there is none.
fn try_assemble(mut devices: MemorySet, count: usize) -> Result<(Array<MemorySet>, RecoveryReport), String> {
    let found = superblocks(&mut devices, count);
    // Everything a device claims to hold must fit on it: what opens members checks that.
    let fits = |s: &&format::Superblock| {
        s.config.main_device_bytes() <= MAIN_MIB << 20 && s.config.log_device_bytes() <= LOG_MIB << 20
    };
    let found: Vec<_> = found.iter().filter(fits).cloned().collect();
    let arrangement = arrange(&found).map_err(|e| e.to_string())?;
    let members = arrangement.members.len();
    if members != count {
        return Err("another number of members".into());
    }
    for dev in (0..count as u16).map(DevIndex::new) {
        if devices.size_bytes(dev) == 0 {
            return Err("absent".into());
        }
    }
    Array::assemble(devices, &arrangement, 777, options()).map_err(|e| e.to_string())
}

/// How many chunks are not as they should be.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Compared {
    unreadable: u64,
    other: u64,
}

/// Compares all content.
fn compare(array: &mut Array<MemorySet>, content: &[u8], what: &str) -> Compared {
    let mut compared = Compared::default();
    for (at, expected) in (0..).step_by(BLOCK).zip(content.chunks(BLOCK)) {
        match read(array, at, expected.len() as u64) {
            Ok(found) => compared.other += u64::from(found != expected),
            Err(EngineError::Unreadable { .. }) => compared.unreadable += 1,
            Err(other) => panic!("{what}: {other}"),
        }
    }
    compared
}

fn seeds(count: u64) -> std::ops::Range<u64> {
    match std::env::var("SEED") {
        Ok(text) => {
            let seed: u64 = text.parse().unwrap();
            seed..seed + 1
        }
        Err(_) => 0..std::env::var("SEEDS").map_or(count, |text| text.parse().unwrap()),
    }
}

/// Shapes that the seeds go through.
fn sample_of(seed: u64) -> Sample {
    let left = if seed.is_multiple_of(2) { Left::Running } else { Left::Stopped };
    match seed / 2 % 6 {
        0 => Sample::make(seed, SchemeKind::Eplog, 3, 2, left),
        1 => Sample::make(seed, SchemeKind::Eplog, 3, 1, left),
        2 => Sample::make(seed, SchemeKind::Raid, 3, 2, left),
        3 => Sample::make(seed, SchemeKind::ParityLog, 3, 2, left),
        4 => Sample::make(seed, SchemeKind::Eplog, 2, 3, left),
        _ => Sample::make(seed, SchemeKind::Elastic, 3, 2, left),
    }
}

#[test]
fn damage_on_up_to_m_devices_loses_nothing() {
    for seed in seeds(12) {
        let sample = sample_of(seed);
        let mut rng = SplitMix::new(seed ^ 0xda3a6e);
        for round in 0..8 {
            let what = format!("seed {seed} round {round}");
            let mut images = sample.images.clone();
            let count = 1 + rng.below(sample.parity_count() as u64) as usize;
            let hit = victims(&mut rng, sample.count(), count);
            for &dev in &hit {
                damage(&sample, &mut images, dev, &mut rng);
            }
            let array = try_assemble(load(&images), sample.count());
            let (mut array, _) = array.unwrap_or_else(|e| panic!("{what}, devices {hit:?}: {e}"));
            assert_eq!(
                compare(&mut array, &sample.content, &what),
                Compared::default(),
                "{what}, devices {hit:?}"
            );
            let mut content = sample.content.clone();
            for step in 0..30 {
                change(&mut array, &mut content, &mut rng, step);
            }
            array.run(|e, tag| e.flush(tag)).unwrap();
            array.settle();
            let again = try_assemble(array.into_devices(), sample.count());
            let (mut array, _) = again.unwrap_or_else(|e| panic!("{what}, again: {e}"));
            assert_eq!(
                compare(&mut array, &content, &what),
                Compared::default(),
                "{what}, devices {hit:?}, again"
            );
        }
    }
}

#[test]
fn damage_on_more_devices_never_gives_wrong_content() {
    let mut outcomes: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in seeds(12) {
        let sample = sample_of(seed);
        let mut rng = SplitMix::new(seed ^ 0x3017e);
        for round in 0..8 {
            let mut images = sample.images.clone();
            let more = sample.parity_count()
                + 1
                + rng.below((sample.count() - sample.parity_count()) as u64) as usize;
            for dev in victims(&mut rng, sample.count(), more) {
                damage(&sample, &mut images, dev, &mut rng);
            }
            let what = format!("seed {seed} round {round}");
            let outcome = match try_assemble(load(&images), sample.count()) {
                Err(_) => "refused",
                Ok((mut array, report)) => match compare(&mut array, &sample.content, &what) {
                    Compared { unreadable: 0, other: 0 } => "right",
                    Compared { other: 0, .. } => "some chunks unreadable",
                    // Records of the last flush are not known to have been durable: recovery drops, and
                    // counts, those whose chunks or frames are not there.
                    _ if report.dropped > 0 => "last writes dropped, and counted",
                    // Of the last frames no copy is left, and nothing that speaks of them.
                    _ if array.engine().journal().next_seq() < sample.next_seq => "last frames gone",
                    compared => panic!("{what}: wrong content that nobody was told of: {compared:?}"),
                },
            };
            *outcomes.entry(outcome).or_default() += 1;
        }
    }
    println!("{outcomes:?}");
}

/// A few bytes of a metadata block changed, mostly near its front, and its checksum made to match.
fn forge(block: &mut [u8], rng: &mut SplitMix) {
    for _ in 0..1 + rng.below(3) {
        let end = if rng.below(3) == 0 { BLOCK - 4 } else { 300 };
        let at = 32 + rng.below(end as u64 - 32) as usize;
        match rng.below(4) {
            0 => block[at] ^= 1 << rng.below(8),
            1 => block[at] = rng.below(256) as u8,
            2 => block[at] = block[at].wrapping_add(1),
            _ => block[at..(at + 4).min(BLOCK - 4)].fill([0, 0xff][rng.below(2) as usize]),
        }
    }
    let crc = crc32c(&block[..BLOCK - 4]);
    block[BLOCK - 4..].copy_from_slice(&crc.to_le_bytes());
}

/// Every metadata block of the members: member and offset.
fn metadata_blocks(sample: &Sample) -> Vec<(usize, usize)> {
    let blocks = |(dev, image): (usize, &Vec<u8>)| {
        let found = image.chunks(BLOCK).enumerate().filter(|(_, block)| block.starts_with(b"ELST"));
        found.map(|(index, _)| (dev, index * BLOCK)).collect::<Vec<_>>()
    };
    sample.images.iter().enumerate().flat_map(blocks).collect()
}

#[test]
fn forged_metadata_panics_nowhere() {
    let mut outcomes: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in seeds(12) {
        let sample = sample_of(seed);
        let blocks = metadata_blocks(&sample);
        let mut rng = SplitMix::new(seed ^ 0xf0296e);
        for round in 0..30 {
            println!("seed {seed} round {round}");
            let mut images = sample.images.clone();
            let most = [12, 200][rng.below(2) as usize];
            for _ in 0..1 + rng.below(most) {
                let (dev, at) = blocks[rng.below(blocks.len() as u64) as usize];
                forge(&mut images[dev][at..at + BLOCK], &mut rng);
            }
            let outcome = match try_assemble(load(&images), sample.count()) {
                Err(_) => "refused",
                Ok((mut array, _)) => {
                    use_it(&mut array, &mut rng);
                    "assembled"
                }
            };
            *outcomes.entry(outcome).or_default() += 1;
        }
    }
    println!("{outcomes:?}");
}

/// A record with every checksum right that names log devices which the array does not have: nobody looks for
/// them, and the record is dropped.
#[test]
fn a_record_of_devices_that_do_not_exist_is_dropped() {
    let mut sample = Sample::make(3, SchemeKind::Eplog, 3, 2, Left::Running);
    let config = sample.config;
    let newest = format::SUPERBLOCK_OFFSETS.iter().enumerate().filter_map(|(slot, &offset)| {
        Superblock::decode(&sample.images[0][offset as usize..][..BLOCK], slot).ok()
    });
    let newest = newest.max_by_key(|superblock| superblock.config_seq).unwrap();
    let mut records = RecordBuf::default();
    LogStripe::begin(&mut records, ChunkIndex::new(1), 8);
    LogStripe::push(&mut records, LogMember { lcn: Lcn::new(0), chunk: ChunkIndex::new(1), crc: 1 });
    let mut builder = FrameBuilder::new();
    assert!(builder.try_push(sample.next_seq, records.get(0), Bond::None));
    // The last block of the first stretch, which is read whatever is there.
    let (dev, block) = (DevIndex::new(0), config.journal_blocks / 8 - 1);
    let stamp = FrameStamp {
        array: newest.array,
        epoch: newest.epoch,
        nonce: newest.nonce,
        flushed_through: Seq::new(sample.next_seq.get() - 1),
        next_seq: sample.next_seq.next(),
        dev,
        block,
    };
    let offset = config.journal_offset(block) as usize;
    builder.seal_into(&stamp, &mut sample.images[0][offset..][..BLOCK]);
    let (mut array, report) = try_assemble(load(&sample.images), sample.count()).unwrap();
    assert_eq!((report.verified, report.dropped), (1, 1), "{report:?}");
    assert_eq!(compare(&mut array, &sample.content, "forged"), Compared::default());
}

/// Everything may fail, nothing may panic.
fn use_it(array: &mut Array<MemorySet>, rng: &mut SplitMix) {
    let size = array.engine().volume_bytes();
    for at in (0..size).step_by(64 << 10) {
        let _ = read(array, at, (64 << 10).min(size - at));
    }
    for _ in 0..20 {
        let offset = rng.below(size / 512) * 512;
        let _ = write(
            array,
            offset,
            &vec![1; ((rng.below(60) + 1) * 512).min(size - offset) as usize],
            Durability::Volatile,
        );
    }
    let _ = array.run(|e, tag| e.commit(tag));
    let _ = array.run(|e, tag| e.scrub(tag, 0));
    let _ = array.stop();
}
