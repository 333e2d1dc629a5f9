//! Arrays on memory and null devices, made for one run and sized to fit it.
//!
//! Null devices keep metadata and give zeros for everything else, so whoever writes to them writes zeros:
//! then every checksum holds and reads, commits and rebuilds run as they would on real devices.

use crate::failure::Failure;
use array::{
    Array, CreateError, CreateOptions, EngineOptions, NewArray, Policies, arrange, create, plan_config,
    plan_shards, unit_rows_for,
};
use block::{
    Completion, DevIndex, DeviceOp, DeviceSet, FlushNow, Geometry, IoFault, META_BYTES, Pool, ReadNow,
    WriteNow,
};
use clap::ValueEnum;
use device::{Counting, MemoryError, MemorySet, NullOptions, NullSet};
use format::{
    ArrayConfig, ArrayUuid, CodeKind, Consistency, DATA_ALIGN_BYTES, LayoutKind, SchemeKind, Superblock,
    UNITS_SPARE,
};
use std::fmt;
use std::str::FromStr;

/// Devices that need no hardware.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DeviceKind {
    /// Anonymous memory.
    Memory,
    /// Counts only: what is written is forgotten.
    Null,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Memory => "memory",
            Self::Null => "null",
        })
    }
}

/// `6+2`: data and parity devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Columns {
    /// k.
    pub data_count: usize,
    /// m.
    pub parity_count: usize,
}

impl FromStr for Columns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("found {text:?}, expected data and parity devices such as 6+2");
        let (data, parity) = text.split_once('+').ok_or_else(expected)?;
        let number = |part: &str| part.parse::<usize>().map_err(|_| expected());
        Ok(Self { data_count: number(data)?, parity_count: number(parity)? })
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.data_count, self.parity_count)
    }
}

/// `auto`, or the name of a code.
pub fn parse_code(text: &str) -> Result<Option<CodeKind>, String> {
    if text == "auto" { Ok(None) } else { text.parse().map(Some).map_err(|error| format!("{error}")) }
}

/// The code that `auto` stands for.
pub fn code_or_default(code: Option<CodeKind>, parity_count: usize) -> CodeKind {
    code.unwrap_or(if parity_count == 1 { CodeKind::Xor } else { CodeKind::Cauchy })
}

/// What an array must have room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// The volume holds at least so much.
    pub volume_bytes: u64,
    /// Chunks of each main device for old versions, at least.
    pub spare_chunks: u64,
    /// 4 KiB blocks of each log device, at least.
    pub log_blocks: u64,
    /// What to make smaller if it is too much.
    pub sized_by: &'static str,
}

/// Sizes found for an array.
#[derive(Clone, Copy, Debug)]
pub struct Sized {
    /// The array.
    pub config: ArrayConfig,
    /// Bytes of each main device.
    pub main_bytes: u64,
    /// Bytes of each log device.
    pub log_bytes: u64,
}

impl Sized {
    /// Bytes of every device, main devices first.
    pub fn sizes_bytes(&self) -> Vec<u64> {
        let (main_count, logs) = (self.config.geometry.device_count(), usize::from(self.config.log_count));
        (0..main_count + logs)
            .map(|i| if i < main_count { self.main_bytes } else { self.log_bytes })
            .collect()
    }
}

/// Share of a main device that can be kept for old versions at most, in thousandths.
const SHARE_MAX: u64 = 900;
/// No array of this program is larger: the table of its chunks would not fit into memory.
const MAIN_CHUNKS_MAX: u64 = 1 << 31;

/// Log devices that a scheme needs.
pub fn log_count(scheme: SchemeKind, parity_count: usize) -> usize {
    if scheme.has_log() { parity_count } else { 0 }
}

/// The chosen options, with the share for old versions left open.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Update scheme.
    pub scheme: SchemeKind,
    /// Erasure code.
    pub code: CodeKind,
    /// What a scheme that writes in place does about the write hole.
    pub consistency: Consistency,
    /// Which device holds which column.
    pub layout: LayoutKind,
    /// k, m, chunk size.
    pub geometry: Geometry,
    /// Log devices.
    pub log_count: usize,
    /// Rows of a unit of garbage collection, of elastic schemes.
    pub unit_rows: Option<u32>,
}

impl Kind {
    /// Chunks of a device from which on there is room for data.
    fn chunks_min(&self) -> u64 {
        if self.scheme.is_elastic() {
            (UNITS_SPARE + 2) * u64::from(self.unit_rows.unwrap_or(unit_rows_for(0)))
        } else {
            0
        }
    }

    fn create_options(&self, reserve_permille: u32) -> CreateOptions {
        CreateOptions {
            scheme: self.scheme,
            code: self.code,
            layout: self.layout,
            consistency: self.consistency,
            geometry: self.geometry,
            reserve_permille,
            unit_rows: self.unit_rows,
        }
    }
}

/// Devices that have the room asked for, and hardly more.
pub fn size(kind: &Kind, room: &Room) -> Result<Sized, Failure> {
    let (sized, _) = fitted(kind, room)?;
    Ok(Sized { main_bytes: sized.config.main_device_bytes().max(1 << 20), ..sized })
}

/// Slices of devices such that each of so many shards has the room asked for: the first of them. Sizes are
/// those of the slices.
pub fn size_shards(kind: &Kind, room: &Room, count: u16) -> Result<Sized, Failure> {
    if count == 1 {
        return size(kind, room);
    }
    let (one, options) = fitted(kind, room)?;
    let [main_bytes, log_bytes] =
        [one.main_bytes, one.log_bytes].map(|bytes| bytes.next_multiple_of(DATA_ALIGN_BYTES));
    let whole = |bytes: u64| bytes.saturating_mul(count.into());
    let config = plan_shards(&options, whole(main_bytes), whole(log_bytes), kind.log_count, count)?;
    Ok(Sized { config, main_bytes: config.main_device_bytes().max(1 << 20), log_bytes })
}

/// Devices that have the room, not yet cut to what is used of them, and the options that they are made by.
fn fitted(kind: &Kind, room: &Room) -> Result<(Sized, CreateOptions), Failure> {
    let stripe_bytes = (kind.geometry.data_count() * kind.geometry.chunk_bytes()) as u64;
    let stripes = room.volume_bytes.div_ceil(stripe_bytes).max(1);
    let too_large = || {
        Failure::new(format!(
            "the array would need more than {MAIN_CHUNKS_MAX} chunks per device; use a larger --chunk-size, or a smaller {}",
            room.sized_by
        ))
    };
    if stripes.saturating_add(room.spare_chunks) >= MAIN_CHUNKS_MAX {
        return Err(too_large());
    }
    let spare = if kind.scheme.is_in_place() { 0 } else { room.spare_chunks };
    let (chunks, permille) = share_for(stripes, spare);
    let chunks = chunks.max(kind.chunks_min());
    if chunks >= MAIN_CHUNKS_MAX {
        return Err(too_large());
    }
    let options = kind.create_options(permille);
    let log_bytes = (room.log_blocks.min(u64::from(u32::MAX) - 2) + 4096) * META_BYTES as u64 + (1 << 20);
    let mut main_bytes = chunks * kind.geometry.chunk_bytes() as u64 + (2 << 20);
    loop {
        let config = match plan_config(&options, main_bytes, log_bytes, kind.log_count) {
            // The metadata of a few chunks takes more than was guessed.
            Err(CreateError::TooSmall { found_bytes, expected_bytes, .. })
                if found_bytes == main_bytes && expected_bytes > main_bytes =>
            {
                main_bytes = expected_bytes;
                continue;
            }
            config => config?,
        };
        let spare_found = u64::from(config.chunks_per_device) - config.stripe_count;
        if config.stripe_count >= stripes && spare_found >= spare {
            return Ok((Sized { config, main_bytes, log_bytes }, options));
        }
        main_bytes += main_bytes / 64;
    }
}

/// Devices of an elastic scheme with room for exactly `chunks` chunks each, of which
/// `reserve_permille` thousandths are left for garbage.
pub fn size_exactly(kind: &Kind, chunks: u64, reserve_permille: u32) -> Result<Sized, Failure> {
    let options = kind.create_options(reserve_permille);
    // Larger devices never have fewer chunks, but their metadata grows in steps: what has room for so many
    // is looked for.
    let enough = |main_bytes| match plan_config(&options, main_bytes, 0, 0) {
        Ok(config) => Ok(Some(config).filter(|config| u64::from(config.chunks_per_device) >= chunks)),
        Err(CreateError::TooSmall { .. }) => Ok(None),
        Err(error) => Err(Failure::from(error)),
    };
    let mut low = chunks.saturating_mul(kind.geometry.chunk_bytes() as u64);
    let mut high = low.saturating_add(2 << 20);
    let mut config = loop {
        match enough(high)? {
            Some(config) => break config,
            None => high = high.saturating_add(high / 64),
        }
    };
    while low < high {
        let middle = low + (high - low) / 2;
        match enough(middle)? {
            Some(found) => (config, high) = (found, middle),
            None => low = middle + 1,
        }
    }
    if u64::from(config.chunks_per_device) != chunks {
        return Err(Failure::new(format!(
            "no layout has exactly {chunks} chunks on each device; use another --device-size"
        )));
    }
    Ok(Sized { config, main_bytes: config.main_device_bytes().max(1 << 20), log_bytes: 0 })
}

/// Chunks per device and the share of them, in thousandths, that make `stripes` stripes and `spare` spare
/// chunks.
fn share_for(stripes: u64, spare: u64) -> (u64, u32) {
    let mut chunks = stripes + spare;
    loop {
        let permille = (spare * 1000).div_ceil(chunks).min(SHARE_MAX);
        let kept = chunks * permille / 1000;
        let lacking = (stripes + kept).saturating_sub(chunks).max(spare.saturating_sub(kept));
        if lacking == 0 {
            // The ceiling keeps the share below one thousand.
            return (chunks, u32::try_from(permille).unwrap_or(SHARE_MAX as u32));
        }
        chunks += lacking;
    }
}

/// Memory or null devices.
pub enum LocalSet {
    /// In memory.
    Memory(MemorySet),
    /// Counting only.
    Null(NullSet),
}

impl LocalSet {
    /// Devices of the given sizes.
    pub fn new(kind: DeviceKind, sizes_bytes: &[u64]) -> Result<Self, MemoryError> {
        Ok(match kind {
            DeviceKind::Memory => Self::Memory(MemorySet::new(sizes_bytes)?),
            DeviceKind::Null => {
                let options = NullOptions { zero_reads: true, keep_metadata: true };
                Self::Null(NullSet::new(sizes_bytes, options))
            }
        })
    }

    /// Puts an empty device in the place of `dev`.
    pub fn replace(&mut self, dev: DevIndex, size_bytes: u64) -> Result<(), MemoryError> {
        match self {
            Self::Memory(set) => set.replace(dev, size_bytes),
            Self::Null(set) => {
                set.replace(dev, size_bytes);
                Ok(())
            }
        }
    }
}

macro_rules! each {
    ($self:ident, $set:ident => $call:expr) => {
        match $self {
            LocalSet::Memory($set) => $call,
            LocalSet::Null($set) => $call,
        }
    };
}

impl DeviceSet for LocalSet {
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
        each!(self, set => set.submit(pool, ops));
    }

    fn poll(&mut self, pool: &mut Pool, completions: &mut Vec<Completion>) {
        each!(self, set => set.poll(pool, completions));
    }

    fn wait(&mut self, timeout_ns: u64) {
        each!(self, set => set.wait(timeout_ns));
    }

    fn give_up(&mut self, dev: DevIndex) {
        each!(self, set => set.give_up(dev));
    }

    fn size_bytes(&self, dev: DevIndex) -> u64 {
        each!(self, set => set.size_bytes(dev))
    }

    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        each!(self, set => set.read_now(dev, offset_bytes, into))
    }

    fn read_all_now(&mut self, reads: &mut [ReadNow<'_>]) {
        each!(self, set => set.read_all_now(reads))
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        each!(self, set => set.write_now(dev, offset_bytes, from))
    }

    fn read_all_beside(&mut self, reads: &mut [ReadNow<'_>], work: &mut dyn FnMut()) {
        each!(self, set => set.read_all_beside(reads, work))
    }

    fn write_all_now(&mut self, writes: &mut [WriteNow<'_>]) {
        each!(self, set => set.write_all_now(writes))
    }

    fn write_all_beside(&mut self, writes: &mut [WriteNow<'_>], work: &mut dyn FnMut()) {
        each!(self, set => set.write_all_beside(writes, work))
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        each!(self, set => set.flush_now(dev))
    }

    fn flush_all_now(&mut self, flushes: &mut [FlushNow]) {
        each!(self, set => set.flush_all_now(flushes))
    }
}

/// An array on devices that need no hardware.
pub type LocalArray = Array<Counting<LocalSet>>;

/// Makes and assembles an array.
pub fn build(devices: DeviceKind, sized: &Sized, options: EngineOptions) -> Result<LocalArray, Failure> {
    let set = LocalSet::new(devices, &sized.sizes_bytes())?;
    build_on(set, sized, devices.to_string(), options)
}

/// Makes and assembles an array on empty devices of [`Sized::sizes_bytes`].
pub fn build_on<D: DeviceSet>(
    set: D,
    sized: &Sized,
    name: String,
    options: EngineOptions,
) -> Result<Array<Counting<D>>, Failure> {
    build_with(set, sized, name, options, Policies::default())
}

/// The same with policies of somebody else.
pub fn build_with<D: DeviceSet>(
    mut set: D,
    sized: &Sized,
    name: String,
    options: EngineOptions,
    policies: Policies,
) -> Result<Array<Counting<D>>, Failure> {
    // Nothing outlives the process, so nobody can mistake these for anything else.
    let uuid = ArrayUuid::new([1; 16]).of_shard(sized.config.shard.index);
    let new = NewArray { uuid, name, nonce: 1, created_unix_s: 0 };
    create(&mut set, sized.config, &new)?;
    let superblocks = (0..sized.sizes_bytes().len())
        .map(|index| superblock(&mut set, index))
        .collect::<Result<Vec<_>, _>>()?;
    let arrangement = arrange(&superblocks)?;
    let (array, _) = Array::assemble_with(Counting::new(set), &arrangement, 2, options, policies)?;
    Ok(array)
}

fn superblock(set: &mut impl DeviceSet, index: usize) -> Result<Superblock, Failure> {
    let dev = DevIndex::new(u16::try_from(index)?);
    let newest = Superblock::read_newest(|offset| {
        let mut bytes = [0u8; META_BYTES];
        set.read_now(dev, offset, &mut bytes).ok().map(|()| bytes)
    });
    newest.ok_or_else(|| Failure::new(format!("device {index} of the array just made has no superblock")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_leave_room_for_both() {
        for stripes in [1, 7, 1000, 999_983] {
            for spare in [0, 1, 128, 5000, 40_000_000] {
                let (chunks, permille) = share_for(stripes, spare);
                let kept = chunks * u64::from(permille) / 1000;
                assert!(kept >= spare && chunks - kept >= stripes, "{stripes} {spare}: {chunks} {permille}");
            }
        }
    }

    #[test]
    fn columns_need_two_numbers() {
        assert_eq!("6+2".parse(), Ok(Columns { data_count: 6, parity_count: 2 }));
        for bad in ["", "6", "+", "6+", "+2", "6+2+1", "-1+2", "six+2"] {
            assert!(bad.parse::<Columns>().is_err(), "{bad}");
        }
    }
}
