//! On-disk bytes to types and back. The only crate that encodes or decodes metadata; it does no I/O.
//!
//! Format version 2: superblocks, journal frames, checkpoint headers and pages. Each is one block of
//! [`block::META_BYTES`] bytes, little-endian, with explicit offsets, and each carries a magic, the format
//! version, the array's UUID, its own address (device, block), a sequence of its kind and a CRC-32C over
//! everything before it. `docs/format.md` at the root of the repository explains how they are laid out on the
//! devices and why; its byte tables are printed by [`layout_tables`].
//!
//! Invariants:
//! - A decoder returns an error for bytes it does not accept; it never panics and never allocates more than a
//!   small multiple of the block it was given.
//! - Whatever a decoder accepts, the encoder reproduces bit for bit: unused bytes are zero and are checked to
//!   be zero. Records of a frame that have a short form come back in it.
//! - A block is handed out only after magic, version, checksum, array and address have been verified, so a
//!   block that was misdirected, or belongs to another array, is never mistaken for the one asked for.
//!
//! It is not a place for policy: which devices get a copy, when to flush, and what to replay is
//! the engine's business.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test"))]

mod checkpoint;
mod config;
mod error;
mod frame;
mod layout;
mod list;
mod names;
mod parse;
mod patch;
pub mod record;
mod scheme;
mod shard;
mod short;
mod superblock;
mod tables;
mod uuid;

pub use checkpoint::{
    Beside, BlockExpect, BodyCrc, CheckpointHeader, INCREMENTAL_AREA, PACKED, PAGE_AREA, PAGE_WORDS, Page,
    PageExpect, PageStamp, body_crc, decode_checkpoint_header, decode_page, encode_page,
};
pub use checksum::{chunk_checksum, crc32c};
pub use config::{
    ArrayConfig, CLASSES_MAX, DATA_ALIGN_BYTES, LCN_LIMIT, LOG_COUNT_MAX, LOG_START_BYTES,
    METADATA_START_BYTES, Moved, UNIT_ROWS_MAX, UNITS_SPARE,
};
pub use error::FormatError;
pub use frame::{FRAME_RECORD_BYTES, Frame, FrameBuilder, FrameExpect, FrameStamp, decode_frame};
pub use list::{
    Change, Changes, ChunkRange, Fates, ItemRef, List, ListItem, ListPacker, Members, MissedPoint, Numbers,
    OPEN_STRIPE_ITEM_WORDS, Ranges, Versions, decode_list, delta_item_words, fold_list, log_stripe_words,
    push_clean_stripes, push_ended_log_stripes, push_fates, push_log_stripe, push_updated_columns,
    unpack_list, updated_columns_words,
};
pub use names::{CheckpointKind, CodeKind, Consistency, LayoutKind, MemberFate, MemberState, PageKind, Role};
pub use parse::ParseError;
pub use patch::{
    GROUP_WORDS, GroupBits, PAGE_GROUPS, Patch, PatchHeads, decode_packed_patches, decode_patches,
};
pub use record::{Bond, ElasticMember, InPlacePiece, LogMember, RecordBuf, RecordRef, StripeChunk};
pub use scheme::{LogContent, NewVersions, SchemeFacts, SchemeKind, Waiting};
pub use shard::{SHARDS_MAX, Shard, UNIT_BYTES_MIN};
pub use superblock::{
    CheckpointNumbers, FaultRecord, LossRecord, MEMBERS_MAX, MemberEntry, NAME_BYTES_MAX, SUPERBLOCK_OFFSETS,
    ScrubRecord, Superblock, looks_like_member, looks_like_metadata, update_after,
};
pub use tables::layout_tables;
pub use uuid::ArrayUuid;

/// The format version that this code reads and writes; it reads no other.
pub const FORMAT_VERSION: u16 = 2;
/// Counters (sequence numbers, epochs, checkpoint numbers, updates of the superblocks) are below this on
/// disk, so that a reader of any device's bytes can count on from them without overflow.
pub const COUNTER_LIMIT: u64 = 1 << 63;
