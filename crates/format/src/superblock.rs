//! The superblock: who the device is, what the array looks like, and how its members are.
//!
//! Every device has two copies, in its first two 4 KiB blocks. An update writes one copy, flushes,
//! writes the other and flushes again, so one of them is whole at every instant; the one with the
//! higher `config_seq` counts.

use crate::config::{ArrayConfig, Moved};
use crate::layout::{BlockKind, CRC_OFFSET, check_counter, check_place, check_zero, common, layout};
use crate::{
    ArrayUuid, CodeKind, Consistency, FormatError, LayoutKind, MemberState, Role, SchemeKind, Shard,
};
use block::planted::{Planted, planted};
use block::{DevIndex, Epoch, Geometry, META_BYTES, Seq};
use std::borrow::Borrow;

/// Byte offsets of the two copies on every device.
pub const SUPERBLOCK_OFFSETS: [u64; 2] = [0, META_BYTES as u64];
/// Members that fit: main devices, log devices and spares.
pub const MEMBERS_MAX: usize = 600;
/// Bytes of the array's name, in UTF-8.
pub const NAME_BYTES_MAX: usize = 64;

const KIND: BlockKind = BlockKind { what: "superblock", magic: *b"ELSTSUPR" };

const MEMBERS_OFFSET: usize = 256;
const MEMBERS_BYTES: usize = MEMBERS_MAX * member::LAYOUT.size;
const MEMBERS_END: usize = MEMBERS_OFFSET + MEMBERS_BYTES;

layout!(
    /// Fields of a superblock.
    fields, "superblock", META_BYTES, {
        MAGIC: 0, 8, "`ELSTSUPR`";
        VERSION: 8, 2, "format version, 2";
        DEV: 10, 2, "index of this member device";
        SLOT: 12, 4, "which of the two copies this is, 0 or 1";
        ARRAY: 16, 16, "UUID of the array";
        CONFIG_SEQ: 32, 8, "counts updates of the superblocks; the highest counts";
        EPOCH: 40, 8, "counts assemblies of the array";
        NONCE: 48, 8, "random number of the epoch, in every frame";
        SERIAL: 56, 4, "this device's serial; must equal its entry in the member table";
        ROLE: 60, 1, "role";
        CLEAN: 61, 1, "1 after an orderly stop, else 0";
        NAME_BYTES: 62, 1, "length of the name, 0 to 64";
        ZERO_1: 63, 1, "zero";
        NAME: 64, 64, "name of the array, UTF-8, padded with zeros";
        CREATED: 128, 8, "when the array was created, in seconds since 1970-01-01 UTC";
        SCRUB_CURSOR: 136, 8, "first stripe that the current scrub has not looked at";
        RESYNC_CURSOR: 144, 8, "first stripe that the current resync has not looked at";
        SCRUB_ENDED: 152, 8, "when the last scrub ended, in seconds since 1970-01-01 UTC; 0 = never scrubbed";
        SCRUB_SECONDS: 160, 4, "how long it took, in seconds";
        SCRUB_METADATA: 164, 4, "metadata blocks that it repaired";
        SCRUB_CHUNKS: 168, 8, "chunks that it repaired";
        SCRUB_LEFT: 176, 4, "errors that it found and could not repair";
        SCRUB_COMPLETED: 180, 4, "1 = it came to its end, 0 = it was given up";
        SCHEME: 184, 1, "scheme";
        CODE: 185, 1, "code";
        LAYOUT_KIND: 186, 1, "layout";
        CONSISTENCY: 187, 1, "consistency";
        DATA_COUNT: 188, 2, "k, data columns";
        PARITY_COUNT: 190, 2, "m, parity columns";
        CHUNK_BYTES: 192, 4, "chunk size in bytes";
        LOG_COUNT: 196, 2, "log devices";
        ZERO_2: 198, 2, "zero";
        STRIPE_COUNT: 200, 8, "data stripes of the volume";
        CHUNKS_PER_DEVICE: 208, 4, "chunks in the data region of a main device";
        LOG_BLOCKS: 212, 4, "blocks in the log region of a log device";
        FULL_BLOCKS: 216, 4, "blocks in one full-checkpoint area";
        INCREMENTAL_BLOCKS: 220, 4, "blocks in the incremental area";
        JOURNAL_BLOCKS: 224, 4, "blocks in the journal ring";
        PAYLOAD_BLOCKS: 228, 4, "blocks in the payload ring";
        MEMBER_COUNT: 232, 2, "entries in the member table, at most 600";
        ZERO_3: 234, 2, "zero";
        UNIT_ROWS: 236, 4, "rows of a unit of garbage collection";
        CHECKPOINT: 240, 8, "newest durable checkpoint when this was written; 0 = not said";
        DURABLE_THROUGH: 248, 8, "records up to this were durable when this was written; 0 = not said";
        MEMBERS: MEMBERS_OFFSET, MEMBERS_BYTES, "member table: main devices, log devices, spares";
        WRONG: MEMBERS_END, 4, "blocks and chunks that this device gave back wrong";
        REPAIRED: MEMBERS_END + 4, 4, "of those written anew";
        UNREAD: MEMBERS_END + 8, 4, "reads that this device failed";
        SINCE: MEMBERS_END + 12, 4, "since when these three count, in seconds since 1970-01-01 UTC; 0 = since creation";
        LOST_CHUNKS: MEMBERS_END + 16, 8, "chunks of the volume known to be lost, or 1 if only known that some are";
        PAGE_BLOCKS: MEMBERS_END + 24, 4, "blocks in the page area";
        REBUILT: MEMBERS_END + 28, 8, "while this device is being rebuilt: code words from the first on that it holds; 0 = none";
        SHARD: MEMBERS_END + 36, 2, "which shard of the array this is of";
        SHARD_COUNT: MEMBERS_END + 38, 2, "shards of the array, 2 to 64; 0 = one, which has all of every device";
        UNIT_BYTES: MEMBERS_END + 40, 8, "bytes of the volume that go to one shard before the next; 0 with one";
        MAIN_STRIDE: MEMBERS_END + 48, 8, "bytes from one slice of a main device to the next; 0 with one shard";
        LOG_STRIDE: MEMBERS_END + 56, 8, "the same of a log device; 0 with one shard, or without log devices";
        DATA_START: MEMBERS_END + 64, 8, "where the data region of a main device starts once the array has grown, in bytes; 0 = it never has";
        METADATA_START: MEMBERS_END + 72, 8, "where the metadata regions of a main device, all but the superblocks, start then; 0 = in front";
        CHECKPOINT_USED: MEMBERS_END + 80, 8, "numbers of checkpoints up to this may be on the members, whole or not; 0 = not said";
        FORCED: MEMBERS_END + 88, 8, "which assembly was started by --force although durable data was lost, or may be wrong, and nobody has cleared that; 0 = none";
        ZERO_4: MEMBERS_END + 96, CRC_OFFSET - MEMBERS_END - 96, "zero";
        CRC: CRC_OFFSET, 4, "CRC-32C of bytes 0..4092";
    }
);

layout!(
    /// An entry of the member table.
    member, "member table entry", 6, {
        SERIAL: 0, 4, "serial of the device that holds this place; 0 = none";
        STATE: 4, 1, "member state";
        ZERO: 5, 1, "zero";
    }
);

/// What the array knows about one of its places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberEntry {
    /// Which device holds the place; changes on every replacement. 0 = none.
    pub serial: u32,
    /// How it is.
    pub state: MemberState,
}

/// One device's view of the array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// Identity of the array.
    pub array: ArrayUuid,
    /// Name of the array, at most [`NAME_BYTES_MAX`] bytes, without NUL.
    pub name: String,
    /// Which place this device holds.
    pub dev: DevIndex,
    /// What the device is for.
    pub role: Role,
    /// This device's serial: a device whose serial is not that of its entry in the newest member
    /// table was replaced.
    pub serial: u32,
    /// Counts updates; of several superblocks of an array the highest counts.
    pub config_seq: u64,
    /// Counts assemblies.
    pub epoch: Epoch,
    /// Random number of the epoch, repeated in every frame.
    pub nonce: u64,
    /// Whether the array was stopped in order.
    pub clean: bool,
    /// Which checkpoints there are.
    pub checkpoints: CheckpointNumbers,
    /// Records up to this were durable when this was written; 0 says nothing.
    pub durable_through: Seq,
    /// Shape of the array.
    pub config: ArrayConfig,
    /// n + `log_count` entries, then spares; at most [`MEMBERS_MAX`].
    pub members: Vec<MemberEntry>,
    /// When the array was created, in seconds since 1970-01-01 UTC.
    pub created_unix_s: u64,
    /// First stripe that the current scrub has not looked at.
    pub scrub_cursor: u64,
    /// First stripe that the current resync has not looked at.
    pub resync_cursor: u64,
    /// What the last scrub found.
    pub scrub: ScrubRecord,
    /// What this device did wrong; of the device, not of its place.
    pub faults: FaultRecord,
    /// What was lost.
    pub losses: LossRecord,
    /// While this very device is being rebuilt: it holds what it should of so many code words from the first
    /// on, in the order in which a rebuild looks at them. 0 = a rebuild begins with the first.
    pub rebuilt: u64,
}

/// Numbers of checkpoints. 0 says nothing, as in superblocks that were written before a field had a meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CheckpointNumbers {
    /// The newest that was durable when this was written, of the assembly that the superblock names.
    pub durable: u64,
    /// Up to this they may be on the members, whole or not: what writes another one takes a later number, so
    /// that a page of one that was given up, and reaches its device late, is never taken for one of it.
    pub used: u64,
}

/// What was lost, for whoever asks later.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LossRecord {
    /// How many chunks of the volume were known to be lost when this was written, or 1 if it was only known
    /// that some are.
    pub chunks: u64,
    /// The first assembly that was started by force although durable data was lost, or may be wrong, of which
    /// nobody has taken note.
    pub forced: Option<Epoch>,
}

/// What the last scrub found, for whoever asks later.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScrubRecord {
    /// When it ended, in seconds since 1970-01-01 UTC; 0 = there was none.
    pub ended_unix_s: u64,
    /// How long it took.
    pub seconds: u32,
    /// Metadata blocks that it repaired.
    pub metadata_repaired: u32,
    /// Chunks that it repaired.
    pub chunks_repaired: u64,
    /// Errors that it found and could not repair.
    pub errors_left: u32,
    /// 1 if it came to its end, 0 if it was given up.
    pub completed: u32,
}

/// What a device did wrong. The figures stop at their limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultRecord {
    /// Blocks and chunks that it gave back wrong.
    pub wrong: u32,
    /// Of those written anew.
    pub repaired: u32,
    /// Reads that it failed.
    pub unread: u32,
    /// Since when these count, in seconds since 1970-01-01 UTC; 0 = since the array was created.
    pub since_unix_s: u32,
}

/// Whether the first bytes of a device are those of a superblock of any version, intact or not.
pub fn looks_like_member(bytes: &[u8]) -> bool {
    bytes.starts_with(&KIND.magic)
}

/// Whether these are the first bytes of a block of metadata of any kind and version, intact or not. A member
/// that was wiped keeps all but its superblocks.
pub fn looks_like_metadata(bytes: &[u8]) -> bool {
    bytes.starts_with(&KIND.magic[..4])
}

/// The number of an update of the superblocks that is at least `least`, if the one before had the number
/// `before`: a new one, and the other copy of every member is written, so that one torn everywhere leaves the
/// one before.
pub fn update_after(before: u64, least: u64) -> u64 {
    let next = least.max(before + 1);
    next + u64::from((next - before).is_multiple_of(2))
}

impl Superblock {
    /// Which update of the superblocks this is: of those of all members the highest counts.
    pub fn update(&self) -> (Epoch, u64) {
        (self.epoch, self.config_seq)
    }

    /// Checks everything that a reader will check. What comes from an operator (the name, sizes) must pass
    /// here before [`Superblock::encode`].
    pub fn check(&self) -> Result<(), FormatError> {
        let rule = |holds: bool, what: &'static str, found: usize, expected: &'static str| {
            if holds { Ok(()) } else { Err(FormatError::Malformed { what, found: found as u64, expected }) }
        };
        self.config.validate()?;
        check_counter("update counter of the superblock", self.config_seq)?;
        check_counter("epoch of the superblock", self.epoch.get())?;
        check_counter("checkpoint number of the superblock", self.checkpoints.durable)?;
        check_counter("last used checkpoint number of the superblock", self.checkpoints.used)?;
        check_counter("last durable record of the superblock", self.durable_through.get())?;
        check_counter("rebuilt code words of the superblock", self.rebuilt)?;
        check_counter("forced assembly of the superblock", self.losses.forced.map_or(0, Epoch::get))?;
        let main_count = self.config.geometry.device_count();
        let spare_start = main_count + usize::from(self.config.log_count);
        let (members, dev) = (self.members.len(), self.dev.index());
        rule(self.name.len() <= NAME_BYTES_MAX, "length of the name", self.name.len(), "at most 64 bytes")?;
        rule(!self.name.contains('\0'), "name", 0, "no NUL character")?;
        rule(members <= MEMBERS_MAX, "entries of the member table", members, "at most 600")?;
        rule(
            members >= spare_start,
            "entries of the member table",
            members,
            "one for each main and log device",
        )?;
        let places = match self.role {
            Role::Main => 0..main_count,
            Role::Log => main_count..spare_start,
            Role::Spare => spare_start..members,
        };
        rule(places.contains(&dev), "index of the device", dev, "a place in the member table for its role")
    }

    /// Writes copy `slot`, 0 or 1. The superblock must pass [`Superblock::check`]; one that does not
    /// is a bug.
    pub fn encode(&self, slot: usize, out: &mut [u8; META_BYTES]) {
        assert!(slot < 2, "there are two copies of a superblock, not a copy {slot}");
        if let Err(error) = self.check() {
            panic!("a superblock that cannot be read back must not be written: {error}");
        }
        let out = out.as_mut_slice();
        out.fill(0);
        KIND.begin(out, self.dev.get(), u32::from(slot == 1), &self.array);
        fields::CONFIG_SEQ.put_u64(out, self.config_seq);
        fields::EPOCH.put_u64(out, self.epoch.get());
        fields::NONCE.put_u64(out, self.nonce);
        fields::SERIAL.put_u32(out, self.serial);
        fields::ROLE.put_u8(out, self.role.code());
        fields::CLEAN.put_u8(out, u8::from(self.clean));
        fields::CHECKPOINT.put_u64(out, self.checkpoints.durable);
        fields::CHECKPOINT_USED.put_u64(out, self.checkpoints.used);
        fields::DURABLE_THROUGH.put_u64(out, self.durable_through.get());
        let name = self.name.as_bytes();
        fields::NAME_BYTES.put_u8(out, u8::try_from(name.len()).expect("checked: at most 64 bytes"));
        out[fields::NAME.offset..][..name.len()].copy_from_slice(name);
        fields::CREATED.put_u64(out, self.created_unix_s);
        fields::SCRUB_CURSOR.put_u64(out, self.scrub_cursor);
        fields::RESYNC_CURSOR.put_u64(out, self.resync_cursor);
        self.scrub.encode(out);
        self.faults.encode(out);
        fields::LOST_CHUNKS.put_u64(out, self.losses.chunks);
        fields::FORCED.put_u64(out, self.losses.forced.map_or(0, Epoch::get));
        fields::REBUILT.put_u64(out, self.rebuilt);
        encode_config(&self.config, out);
        fields::MEMBER_COUNT.put_u16(out, u16::try_from(self.members.len()).expect("checked: at most 600"));
        let table = &mut out[fields::MEMBERS.offset..fields::MEMBERS.end()];
        for (out, entry) in table.chunks_exact_mut(member::LAYOUT.size).zip(&self.members) {
            member::SERIAL.put_u32(out, entry.serial);
            member::STATE.put_u8(out, entry.state.code());
        }
        KIND.finish(out);
    }

    /// The copy that counts of those that could be read: the one written last.
    pub fn newest<S: Borrow<Self>>(copies: impl IntoIterator<Item = S>) -> Option<S> {
        copies.into_iter().max_by_key(|superblock| superblock.borrow().config_seq)
    }

    /// The same of a device of which `read` gives the block at an offset.
    pub fn read_newest<B: AsRef<[u8]>>(mut read: impl FnMut(u64) -> Option<B>) -> Option<Self> {
        let copies = SUPERBLOCK_OFFSETS.into_iter().enumerate();
        Self::newest(copies.filter_map(|(slot, offset)| Self::decode(read(offset)?.as_ref(), slot).ok()))
    }

    /// The same of a slice that belongs to the shard with the UUID `array`. What another shard's block, led
    /// astray by a device, says there does not count.
    pub fn read_newest_of<B: AsRef<[u8]>>(
        array: ArrayUuid,
        mut read: impl FnMut(u64) -> Option<B>,
    ) -> Option<Self> {
        let copies = SUPERBLOCK_OFFSETS.into_iter().enumerate();
        let found = copies.filter_map(|(slot, offset)| Self::decode(read(offset)?.as_ref(), slot).ok());
        let any = planted(Planted::AnyShardsSuperblock);
        Self::newest(found.filter(|superblock| superblock.array == array || any))
    }

    /// Reads copy `slot`, 0 or 1. Errors: everything but [`FormatError::OtherArray`],
    /// [`FormatError::OtherEpoch`] and [`FormatError::OtherNonce`], which only the caller can judge.
    pub fn decode(bytes: &[u8], slot: usize) -> Result<Self, FormatError> {
        KIND.check(bytes)?;
        check_place("copy of the superblock", fields::SLOT.get_u32(bytes), slot as u64)?;
        for unused in [&fields::ZERO_1, &fields::ZERO_2, &fields::ZERO_3, &fields::ZERO_4] {
            check_zero("superblock", unused.get(bytes))?;
        }
        let clean = match fields::CLEAN.get_u8(bytes) {
            0 => false,
            1 => true,
            found => return Err(malformed("clean flag of the superblock", u64::from(found), "0 or 1")),
        };
        let superblock = Self {
            array: common::ARRAY.get_uuid(bytes),
            name: decode_name(bytes)?,
            dev: DevIndex::new(fields::DEV.get_u16(bytes)),
            role: Role::from_code(fields::ROLE.get_u8(bytes))?,
            serial: fields::SERIAL.get_u32(bytes),
            config_seq: fields::CONFIG_SEQ.get_u64(bytes),
            epoch: Epoch::new(fields::EPOCH.get_u64(bytes)),
            nonce: fields::NONCE.get_u64(bytes),
            clean,
            checkpoints: CheckpointNumbers {
                durable: fields::CHECKPOINT.get_u64(bytes),
                used: fields::CHECKPOINT_USED.get_u64(bytes),
            },
            durable_through: Seq::new(fields::DURABLE_THROUGH.get_u64(bytes)),
            config: decode_config(bytes)?,
            members: decode_members(bytes)?,
            created_unix_s: fields::CREATED.get_u64(bytes),
            scrub_cursor: fields::SCRUB_CURSOR.get_u64(bytes),
            resync_cursor: fields::RESYNC_CURSOR.get_u64(bytes),
            scrub: ScrubRecord::decode(bytes),
            faults: FaultRecord::decode(bytes),
            losses: LossRecord {
                chunks: fields::LOST_CHUNKS.get_u64(bytes),
                forced: Some(fields::FORCED.get_u64(bytes)).filter(|epoch| *epoch > 0).map(Epoch::new),
            },
            rebuilt: fields::REBUILT.get_u64(bytes),
        };
        superblock.check()?;
        Ok(superblock)
    }
}

impl ScrubRecord {
    fn encode(&self, out: &mut [u8]) {
        fields::SCRUB_ENDED.put_u64(out, self.ended_unix_s);
        fields::SCRUB_SECONDS.put_u32(out, self.seconds);
        fields::SCRUB_METADATA.put_u32(out, self.metadata_repaired);
        fields::SCRUB_CHUNKS.put_u64(out, self.chunks_repaired);
        fields::SCRUB_LEFT.put_u32(out, self.errors_left);
        fields::SCRUB_COMPLETED.put_u32(out, self.completed);
    }

    fn decode(bytes: &[u8]) -> Self {
        Self {
            ended_unix_s: fields::SCRUB_ENDED.get_u64(bytes),
            seconds: fields::SCRUB_SECONDS.get_u32(bytes),
            metadata_repaired: fields::SCRUB_METADATA.get_u32(bytes),
            chunks_repaired: fields::SCRUB_CHUNKS.get_u64(bytes),
            errors_left: fields::SCRUB_LEFT.get_u32(bytes),
            completed: fields::SCRUB_COMPLETED.get_u32(bytes),
        }
    }
}

impl FaultRecord {
    fn encode(&self, out: &mut [u8]) {
        fields::WRONG.put_u32(out, self.wrong);
        fields::REPAIRED.put_u32(out, self.repaired);
        fields::UNREAD.put_u32(out, self.unread);
        fields::SINCE.put_u32(out, self.since_unix_s);
    }

    fn decode(bytes: &[u8]) -> Self {
        Self {
            wrong: fields::WRONG.get_u32(bytes),
            repaired: fields::REPAIRED.get_u32(bytes),
            unread: fields::UNREAD.get_u32(bytes),
            since_unix_s: fields::SINCE.get_u32(bytes),
        }
    }
}

fn malformed(what: &'static str, found: u64, expected: &'static str) -> FormatError {
    FormatError::Malformed { what, found, expected }
}

fn decode_name(bytes: &[u8]) -> Result<String, FormatError> {
    let length = usize::from(fields::NAME_BYTES.get_u8(bytes));
    let (name, padding) = fields::NAME
        .get(bytes)
        .split_at_checked(length)
        .ok_or_else(|| malformed("length of the name", length as u64, "at most 64 bytes"))?;
    check_zero("name of the array", padding)?;
    let name = std::str::from_utf8(name).map_err(|error| {
        malformed("name of the array, first wrong byte", error.valid_up_to() as u64, "UTF-8")
    })?;
    Ok(name.to_owned())
}

fn decode_members(bytes: &[u8]) -> Result<Vec<MemberEntry>, FormatError> {
    let count = usize::from(fields::MEMBER_COUNT.get_u16(bytes));
    let (used, unused) = fields::MEMBERS
        .get(bytes)
        .split_at_checked(count * member::LAYOUT.size)
        .ok_or_else(|| malformed("entries of the member table", count as u64, "at most 600"))?;
    check_zero("unused part of the member table", unused)?;
    used.chunks_exact(member::LAYOUT.size)
        .map(|entry| {
            check_zero("member table entry", member::ZERO.get(entry))?;
            Ok(MemberEntry {
                serial: member::SERIAL.get_u32(entry),
                state: MemberState::from_code(member::STATE.get_u8(entry))?,
            })
        })
        .collect()
}

fn encode_config(config: &ArrayConfig, out: &mut [u8]) {
    let count = |columns: usize| u16::try_from(columns).expect("a geometry has at most 255 columns");
    fields::SCHEME.put_u8(out, config.scheme.code());
    fields::CODE.put_u8(out, config.code.code());
    fields::LAYOUT_KIND.put_u8(out, config.layout.code());
    fields::CONSISTENCY.put_u8(out, config.consistency.code());
    fields::DATA_COUNT.put_u16(out, count(config.geometry.data_count()));
    fields::PARITY_COUNT.put_u16(out, count(config.geometry.parity_count()));
    let chunk_bytes = u32::try_from(config.geometry.chunk_bytes()).expect("a chunk has at most 1 MiB");
    fields::CHUNK_BYTES.put_u32(out, chunk_bytes);
    fields::LOG_COUNT.put_u16(out, config.log_count);
    fields::STRIPE_COUNT.put_u64(out, config.stripe_count);
    fields::CHUNKS_PER_DEVICE.put_u32(out, config.chunks_per_device);
    fields::LOG_BLOCKS.put_u32(out, config.log_blocks);
    fields::FULL_BLOCKS.put_u32(out, config.full_blocks);
    fields::INCREMENTAL_BLOCKS.put_u32(out, config.incremental_blocks);
    fields::JOURNAL_BLOCKS.put_u32(out, config.journal_blocks);
    fields::PAYLOAD_BLOCKS.put_u32(out, config.payload_blocks);
    fields::PAGE_BLOCKS.put_u32(out, config.page_blocks);
    fields::UNIT_ROWS.put_u32(out, config.unit_rows);
    fields::DATA_START.put_u64(out, config.moved.data_start_bytes);
    fields::METADATA_START.put_u64(out, config.moved.metadata_start_bytes);
    encode_shard(&config.shard, out);
}

fn encode_shard(shard: &Shard, out: &mut [u8]) {
    fields::SHARD.put_u16(out, shard.index);
    fields::SHARD_COUNT.put_u16(out, if shard.is_one_of_several() { shard.count } else { 0 });
    fields::UNIT_BYTES.put_u64(out, shard.unit_bytes);
    fields::MAIN_STRIDE.put_u64(out, shard.main_stride_bytes);
    fields::LOG_STRIDE.put_u64(out, shard.log_stride_bytes);
}

fn decode_shard(bytes: &[u8]) -> Result<Shard, FormatError> {
    let count = match fields::SHARD_COUNT.get_u16(bytes) {
        0 => 1,
        1 => return Err(malformed("number of shards", 1, "0 for one, or 2 to 64")),
        count => count,
    };
    Ok(Shard {
        index: fields::SHARD.get_u16(bytes),
        count,
        unit_bytes: fields::UNIT_BYTES.get_u64(bytes),
        main_stride_bytes: fields::MAIN_STRIDE.get_u64(bytes),
        log_stride_bytes: fields::LOG_STRIDE.get_u64(bytes),
    })
}

fn decode_config(bytes: &[u8]) -> Result<ArrayConfig, FormatError> {
    let (data_count, parity_count) = (fields::DATA_COUNT.get_u16(bytes), fields::PARITY_COUNT.get_u16(bytes));
    let chunk_bytes = u64::from(fields::CHUNK_BYTES.get_u32(bytes));
    let geometry = Geometry::new(data_count.into(), parity_count.into(), chunk_bytes).map_err(|error| {
        let (what, found, expected) = match error {
            block::GeometryError::Columns { data_count, parity_count } => (
                "number of data and parity devices",
                data_count.saturating_add(parity_count) as u64,
                "at least 1 of each and at most 255 in all",
            ),
            block::GeometryError::ChunkSize { bytes } => {
                ("chunk size in bytes", bytes, "a power of two from 4 KiB to 1 MiB")
            }
        };
        FormatError::Config { what, found, expected }
    })?;
    Ok(ArrayConfig {
        scheme: SchemeKind::from_code(fields::SCHEME.get_u8(bytes))?,
        code: CodeKind::from_code(fields::CODE.get_u8(bytes))?,
        layout: LayoutKind::from_code(fields::LAYOUT_KIND.get_u8(bytes))?,
        consistency: Consistency::from_code(fields::CONSISTENCY.get_u8(bytes))?,
        geometry,
        log_count: fields::LOG_COUNT.get_u16(bytes),
        stripe_count: fields::STRIPE_COUNT.get_u64(bytes),
        chunks_per_device: fields::CHUNKS_PER_DEVICE.get_u32(bytes),
        log_blocks: fields::LOG_BLOCKS.get_u32(bytes),
        full_blocks: fields::FULL_BLOCKS.get_u32(bytes),
        incremental_blocks: fields::INCREMENTAL_BLOCKS.get_u32(bytes),
        journal_blocks: fields::JOURNAL_BLOCKS.get_u32(bytes),
        payload_blocks: fields::PAYLOAD_BLOCKS.get_u32(bytes),
        page_blocks: fields::PAGE_BLOCKS.get_u32(bytes),
        unit_rows: fields::UNIT_ROWS.get_u32(bytes),
        shard: decode_shard(bytes)?,
        moved: Moved {
            data_start_bytes: fields::DATA_START.get_u64(bytes),
            metadata_start_bytes: fields::METADATA_START.get_u64(bytes),
        },
    })
}

#[cfg(test)]
mod tests;
