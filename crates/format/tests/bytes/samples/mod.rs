//! One block of every structure, always the same, and a way to read any block back and write it again.

pub mod write;

use block::{ChunkIndex, DevIndex, Epoch, Geometry, Lcn, Seq, StripeId};
use format::record::Zero;
use format::{
    ArrayConfig, ArrayUuid, BlockExpect, Bond, CheckpointHeader, CheckpointKind, CheckpointNumbers, CodeKind,
    Consistency, ElasticMember, FaultRecord, FormatError, FrameBuilder, FrameExpect, FrameStamp, GroupBits,
    InPlacePiece, LayoutKind, ListItem, ListPacker, LogMember, LossRecord, MemberEntry, MemberFate,
    MemberState, Moved, PAGE_AREA, PAGE_WORDS, PageExpect, PageKind, PageStamp, Patch, PatchHeads, RecordBuf,
    Role, SchemeKind, ScrubRecord, Shard, StripeChunk, Superblock, body_crc, decode_checkpoint_header,
    decode_frame, decode_packed_patches, decode_page, decode_patches, encode_page, push_clean_stripes,
    push_ended_log_stripes, push_fates,
};

pub const BLOCK_BYTES: usize = 4096;
pub const ARRAY: ArrayUuid = ArrayUuid::new(*b"elastripe golden");
pub const EPOCH: Epoch = Epoch::new(6);
pub const NONCE: u64 = 0x0123_4567_89ab_cdef;

/// What a block is and where it belongs, which is what a reader knows before reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Superblock { slot: usize },
    Frame { dev: u16, block: u32 },
    Header { dev: u16, area: u8, block: u32 },
    Page { dev: u16, area: u8, block: u32, number: u64 },
}

pub struct Sample {
    pub name: &'static str,
    pub place: Place,
    pub block: Vec<u8>,
}

/// Decodes `bytes` as the block of `place` and encodes what came out.
pub fn rewrite(place: Place, bytes: &[u8]) -> Result<Vec<u8>, FormatError> {
    let mut out = [0xee; BLOCK_BYTES];
    match place {
        Place::Superblock { slot } => Superblock::decode(bytes, slot)?.encode(slot, &mut out),
        Place::Frame { dev, block } => {
            let (dev, array, epoch, nonce) = (DevIndex::new(dev), ARRAY, EPOCH, NONCE);
            let frame = decode_frame(bytes, &FrameExpect { array, epoch, nonce, dev, block })?;
            let stamp = FrameStamp {
                array,
                epoch: frame.epoch,
                nonce,
                flushed_through: frame.flushed_through,
                next_seq: frame.first_seq,
                dev: frame.dev,
                block: frame.block,
            };
            let mut builder = FrameBuilder::new();
            for (seq, record, bond) in frame.numbered() {
                if !builder.try_push(seq, record, bond) {
                    // Short forms of before may be shorter than today's of the same records.
                    return Ok(bytes.to_vec());
                }
            }
            builder.seal_into(&stamp, &mut out);
        }
        Place::Header { dev, area, block } => {
            let expect = BlockExpect { array: ARRAY, dev: DevIndex::new(dev), area, block };
            decode_checkpoint_header(bytes, &expect)?.encode(&mut out);
        }
        Place::Page { dev, area, block, number } => {
            let dev = DevIndex::new(dev);
            let page =
                decode_page(bytes, &PageExpect { array: ARRAY, dev, area, block, number: Some(number) })?;
            let stamp =
                PageStamp { array: ARRAY, dev, area, block, number, kind: page.kind, index: page.index };
            assert_eq!(encode_page(&stamp, &page.words, &mut out), page.crc);
            if page.kind == PageKind::PackedPatches {
                let patches = decode_packed_patches(&page.words)?;
                // One may take more words than it needs, so that together they take more than a page.
                let again = patches_packed(&patches);
                let is_same = again.is_none_or(|words| decode_packed_patches(&words) == Ok(patches));
                assert!(is_same, "packed patches changed by reading and writing");
            }
            if page.kind == PageKind::Patches {
                assert!(patched_again(&page.words)? == page.words, "patches changed by reading and writing");
            }
        }
    }
    Ok(out.to_vec())
}

/// Whether a block that was read and written again is what it was: bit for bit, but for frames, in which a
/// record may be in its long form although it has a short one.
pub fn is_same(place: Place, written: &[u8], block: &[u8]) -> bool {
    let Place::Frame { dev, block: number } = place else { return written == block };
    let (dev, array, epoch, nonce) = (DevIndex::new(dev), ARRAY, EPOCH, NONCE);
    let read = |bytes| decode_frame(bytes, &FrameExpect { array, epoch, nonce, dev, block: number });
    read(written) == read(block)
}

/// Patches, read and written again.
pub fn patched_again(words: &[u32]) -> Result<Vec<u32>, FormatError> {
    let mut again = Vec::new();
    for patch in decode_patches(words)? {
        let (mut page, start) = ([0; PAGE_WORDS], again.len());
        patch.apply(&mut page);
        again.resize(start + patch.groups.patch_words(), 0);
        patch.groups.encode_patch(patch.index, &page, &mut again[start..]);
    }
    Ok(again)
}

/// The same of packed patches; `None` if they do not fit into a page.
fn patches_packed(patches: &[Patch<'_>]) -> Option<Vec<u32>> {
    let (mut heads, mut words) = (PatchHeads::default(), Vec::new());
    for patch in patches {
        if !heads.try_push(patch.index, &patch.groups) {
            return None;
        }
    }
    heads.encode(&mut words);
    patches.iter().for_each(|patch| words.extend_from_slice(patch.words));
    Some(words)
}

pub fn build(records: &RecordBuf, first_seq: Seq) -> FrameBuilder {
    let mut builder = FrameBuilder::new();
    let mut seq = first_seq;
    for record in records.iter() {
        assert!(builder.try_push(seq, record, Bond::None), "no room for {record:?}");
        seq = seq.next();
    }
    builder
}

/// One block of each structure and variant.
pub fn all() -> Vec<Sample> {
    let mut samples = vec![superblock("superblock-main", eplog(), 0), superblock("superblock-log", log(), 1)];
    samples.push(superblock("superblock-raid", raid(), 0));
    samples.push(superblock("superblock-parity-log", parity_log(), 1));
    samples.push(superblock("superblock-elastic", elastic(), 0));
    samples.push(superblock("superblock-stopped", stopped(), 0));
    samples.push(superblock("superblock-grown", grown(), 0));
    samples.push(superblock("superblock-numbers", begun(), 0));
    samples.push(superblock("superblock-forced", forced(), 1));
    samples.push(frame("frame", 6, 300, &records()));
    samples.push(frame("frame-delta", 1, 63, &deltas()));
    samples.push(frame("frame-elastic", 3, 17, &elastic_stripes()));
    samples.push(frame("frame-open-stripe", 2, 18, &open_stripes()));
    samples.push(frame("frame-short", 4, 20, &short_records()));
    samples.push(frame("frame-empty", 0, 2, &RecordBuf::default()));
    // States of pages: slot 0 and slot 1, each with the stamp of a checkpoint, and one never written.
    let states = [0x0100_aa2a];
    let (root, root_crc) = page("page-root", PageKind::Root, 1, &states);
    let (list, list_crc) = page("page-list", PageKind::List, 2, &list_words());
    samples.push(header("checkpoint-full", full(body_crc(&[root_crc, list_crc]))));
    samples.push(page("page-table", PageKind::Table, 7, &table_words()).0);
    samples.push(page("page-directory", PageKind::Directory, 9, &states).0);
    samples.push(header("checkpoint-incremental", incremental()));
    samples.push(header(
        "checkpoint-config-seq",
        CheckpointHeader { config_seq: 12, block: 56, ..incremental() },
    ));
    let behind =
        CheckpointHeader { config_seq: 12, block: 57, behind: incremental().number - 1, ..incremental() };
    samples.push(header("checkpoint-behind", behind));
    for (name, block, packed) in [("checkpoint-packed", 58, 1), ("checkpoint-packed-2", 59, 2)] {
        samples.push(header(name, CheckpointHeader { packed, block, ..behind }));
    }
    samples.extend([root, list]);
    samples.push(page("page-list-open-stripe", PageKind::List, 5, &open_stripe_words()).0);
    samples.push(page("page-list-delta", PageKind::List, 3, &delta_words()).0);
    samples.push(page("page-list-updated-columns", PageKind::List, 6, &updated_columns_words()).0);
    samples.push(page("page-changes", PageKind::Changes, 8, &change_words()).0);
    samples.push(page("page-list-runs", PageKind::List, 10, &packed(&runs_words())).0);
    samples.push(page("page-patches", PageKind::Patches, 4, &patch_words()).0);
    let packed = patches_packed(&decode_patches(&patch_words()).unwrap()).unwrap();
    samples.push(page("page-patches-packed", PageKind::PackedPatches, 11, &packed).0);
    samples
}

fn eplog() -> Superblock {
    let healthy = MemberEntry { serial: 100, state: MemberState::Healthy };
    Superblock {
        array: ARRAY,
        name: "tank-\u{3b1}".to_owned(),
        dev: DevIndex::new(1),
        role: Role::Main,
        serial: 101,
        config_seq: 12,
        epoch: EPOCH,
        nonce: NONCE,
        clean: false,
        checkpoints: CheckpointNumbers::default(),
        durable_through: Seq::new(0),
        config: ArrayConfig {
            scheme: SchemeKind::Eplog,
            code: CodeKind::Cauchy,
            layout: LayoutKind::Rotate,
            consistency: Consistency::Resync,
            geometry: Geometry::new(4, 2, 4096).expect("a good geometry"),
            log_count: 2,
            stripe_count: 10_000,
            chunks_per_device: 12_500,
            log_blocks: 4096,
            full_blocks: 70,
            incremental_blocks: 140,
            journal_blocks: 64,
            payload_blocks: 0,
            page_blocks: 240,
            unit_rows: 0,
            shard: Shard::SINGLE,
            moved: Moved::NEVER,
        },
        members: vec![
            healthy,
            MemberEntry { serial: 101, ..healthy },
            MemberEntry { serial: 102, state: MemberState::Failed },
            MemberEntry { serial: 103, state: MemberState::Rebuilding },
            MemberEntry { serial: 104, ..healthy },
            MemberEntry { serial: 105, ..healthy },
            MemberEntry { serial: 106, ..healthy },
            MemberEntry { serial: 0, state: MemberState::Absent },
            MemberEntry { serial: 108, ..healthy },
        ],
        created_unix_s: 1_700_000_000,
        scrub_cursor: 5000,
        resync_cursor: 10_000,
        // The bytes of four counters that the first images had here.
        scrub: ScrubRecord {
            ended_unix_s: 1,
            seconds: 2,
            metadata_repaired: 0,
            chunks_repaired: 3,
            errors_left: 4,
            completed: 0,
        },
        faults: FaultRecord::default(),
        losses: LossRecord::default(),
        rebuilt: 0,
    }
}

fn log() -> Superblock {
    Superblock { dev: DevIndex::new(6), role: Role::Log, serial: 106, clean: true, ..eplog() }
}

/// As an orderly stop leaves it, with the newest checkpoint and record.
fn stopped() -> Superblock {
    Superblock {
        clean: true,
        checkpoints: CheckpointNumbers { durable: 43, used: 0 },
        durable_through: Seq::new(9000),
        ..eplog()
    }
}

/// While a checkpoint is written that may come to nothing.
fn begun() -> Superblock {
    Superblock { checkpoints: CheckpointNumbers { durable: 43, used: 46 }, clean: false, ..stopped() }
}

/// Started by force although data is lost, and nobody has cleared that.
fn forced() -> Superblock {
    Superblock { losses: LossRecord { chunks: 5, forced: Some(EPOCH) }, ..begun() }
}

/// Onto devices of twice the size: its metadata is behind its data.
fn grown() -> Superblock {
    let before = eplog().config;
    let moved = Moved {
        data_start_bytes: before.data_start(),
        metadata_start_bytes: before.data_start() + 25_000 * 4096,
    };
    let config =
        ArrayConfig { chunks_per_device: 25_000, stripe_count: 20_000, page_blocks: 480, moved, ..before };
    Superblock { config, ..stopped() }
}

fn raid() -> Superblock {
    let config = ArrayConfig {
        scheme: SchemeKind::Raid,
        code: CodeKind::Xor,
        layout: LayoutKind::Spread,
        consistency: Consistency::Journal,
        geometry: Geometry::new(3, 1, 65536).expect("a good geometry"),
        log_count: 0,
        log_blocks: 0,
        payload_blocks: 512,
        ..eplog().config
    };
    let members = vec![MemberEntry { serial: 9, state: MemberState::Healthy }; 5];
    Superblock { name: String::new(), dev: DevIndex::new(4), role: Role::Spare, config, members, ..eplog() }
}

fn parity_log() -> Superblock {
    let config = ArrayConfig {
        scheme: SchemeKind::ParityLog,
        consistency: Consistency::Journal,
        payload_blocks: 256,
        ..eplog().config
    };
    Superblock { config, ..eplog() }
}

fn elastic() -> Superblock {
    let config = ArrayConfig {
        scheme: SchemeKind::Was,
        code: CodeKind::Rdp,
        log_count: 0,
        log_blocks: 0,
        unit_rows: 64,
        shard: Shard::SINGLE,
        moved: Moved::NEVER,
        ..eplog().config
    };
    Superblock { config, ..eplog() }
}

/// A whole stripe that users wrote, and a short one of what garbage collection moved.
pub fn elastic_stripes() -> RecordBuf {
    let member = |lcn, from, crc| ElasticMember { lcn: Lcn::new(lcn), from, crc };
    let mut records = RecordBuf::default();
    let whole = [member(39_999, 0, 1), member(0, 0, 2), member(0xffff_fffe, 0, 3), member(4, 0, 4)];
    write::elastic(&mut records, (12_479, 1), &whole, &[0xeeee_0001, 0xeeee_0002]);
    let short = [member(7, 49_917, 5), member(8, 1, 6)];
    write::elastic(&mut records, (0, 0), &short, &[0xeeee_0003, 0xeeee_0004]);
    records
}

/// A stripe that is opened, grows, and is closed.
pub fn open_stripes() -> RecordBuf {
    let member = |lcn, crc| ElasticMember { lcn: Lcn::new(lcn), from: 0, crc };
    let mut records = RecordBuf::default();
    let parities = [0xeeee_0005, 0xeeee_0006];
    let mut open = |block, before: &[u32], members: &[ElasticMember]| {
        let log = (ChunkIndex::new(block), parities.as_slice());
        write::open_stripe(&mut records, (12_478, 3), log, before, members);
    };
    open(77, &[], &[member(39_998, 1)]);
    open(78, &[1], &[member(5, 2), member(6, 3)]);
    open(0, &[1, 2, 3], &[]);
    records
}

/// Both kinds of delta records.
pub fn deltas() -> RecordBuf {
    let piece = |column| InPlacePiece { column, crc: 11 + u32::from(column), payload_block: 1 };
    let (mut records, stripe) = (RecordBuf::default(), StripeId::new(80));
    let mut delta = |whole, block, pieces: &[InPlacePiece]| {
        let log = (ChunkIndex::new(block), [0xaaaa_0003, 0xaaaa_0004]);
        write::delta(&mut records, (stripe, whole), (log.0, &log.1), pieces);
    };
    delta(false, 299, &[piece(1), piece(2)]);
    delta(true, 301, &[piece(3)]);
    records
}

/// A record of every kind that version 2 began with.
pub fn records() -> RecordBuf {
    let chunk = |(chunk, crc)| StripeChunk { chunk: ChunkIndex::new(chunk), crc };
    let mut records = RecordBuf::default();
    let members = [
        LogMember { lcn: Lcn::new(39_999), chunk: ChunkIndex::new(10_001), crc: 0xdddd_0001 },
        LogMember { lcn: Lcn::new((1 << 48) - 1), chunk: ChunkIndex::new(12_500), crc: 0xdddd_0002 },
    ];
    write::log_stripe(&mut records, ChunkIndex::new(298), &[0xaaaa_0001, 0xaaaa_0002], &members);
    let chunks = [(10, 1), (11, 2), (12, 3), (13, 4), (14, 5), (15, 6)].map(chunk);
    write::full_stripe(&mut records, StripeId::new(77), &chunks);
    let data = [0, 21, 22, 23].map(ChunkIndex::new);
    write::commit(&mut records, StripeId::new(78), &data, &[(24, 7), (25, 8)].map(chunk));
    Zero::push(&mut records, Lcn::new(100), 50);
    let pieces = [
        InPlacePiece { column: 0, crc: 9, payload_block: 33 },
        InPlacePiece { column: 3, crc: 10, payload_block: 0 },
    ];
    write::in_place(&mut records, StripeId::new(79), &pieces);
    records
}

/// Log stripes of one chunk: as written of before there were steps, the first as it is, short forms, and ones
/// that have none, being of other checksums, of two chunks, or too far behind.
pub fn copied_chunks() -> RecordBuf {
    let mut records = RecordBuf::default();
    let mut push = |block, log_crcs: &[u32], lcns: &[u64]| {
        let member = |lcn| LogMember { lcn: Lcn::new(lcn), chunk: ChunkIndex::new(10_002), crc: 0xdddd_0003 };
        let members: Vec<LogMember> = lcns.iter().copied().map(member).collect();
        write::log_stripe(&mut records, ChunkIndex::new(block), log_crcs, &members);
    };
    push(400, &[0xdddd_0003; 2], &[39_998]);
    push(401, &[0xdddd_0003; 2], &[(1 << 48) - 1]);
    push(403, &[0xdddd_0003, 1], &[7]);
    push(404, &[0xdddd_0003; 2], &[8, 9]);
    push(404 + 0xffff, &[0xdddd_0003; 2], &[10]);
    push(404 + 0x1_ffff, &[0xdddd_0003; 2], &[11]);
    push(17, &[0xdddd_0003], &[12]);
    push(18, &[0xdddd_0003], &[13]);
    records
}

/// Of each kind that has a short form some that have it, some where the counts differ, and one of which it
/// would be longer.
fn short_records() -> RecordBuf {
    let mut records = copied_chunks();
    let far = LogMember { lcn: Lcn::new((1 << 48) - 1), chunk: ChunkIndex::new(u32::MAX), crc: 1 };
    let near = LogMember { lcn: Lcn::new(1), chunk: ChunkIndex::new(1), crc: 2 };
    write::log_stripe(&mut records, ChunkIndex::new(u32::MAX), &[3], &[far, near, far, near]);
    let chunk = |(chunk, crc)| StripeChunk { chunk: ChunkIndex::new(chunk), crc };
    for stripe in [77, 78, 3, (1 << 48) - 1] {
        let columns = [1000, 1000, 1001, 1002].map(|at| chunk((at + stripe as u32 % 100, 9)));
        write::full_stripe(&mut records, StripeId::new(stripe), &columns);
        let data = [0, 7000, 50, 51].map(ChunkIndex::new);
        write::commit(&mut records, StripeId::new((stripe + 1) & ((1 << 48) - 1)), &data, &columns[..2]);
    }
    let columns = [1, 2, 3].map(|at| chunk((at, 5)));
    write::full_stripe(&mut records, StripeId::new(5), &columns);
    write::commit(&mut records, StripeId::new(5), &[], &columns);
    records
}

fn full(body_crc: u32) -> CheckpointHeader {
    CheckpointHeader {
        array: ARRAY,
        epoch: EPOCH,
        nonce: NONCE,
        dev: DevIndex::new(2),
        block: 0,
        area: 1,
        number: 41,
        kind: CheckpointKind::Full,
        base: 41,
        through: Seq::new(9000),
        table_words: table_words().len() as u64,
        list_words: list_words().len() as u64,
        page_count: 2,
        log_head: 301,
        log_tail: 17,
        body_crc,
        config_seq: 0,
        beside: None,
        behind: 0,
        packed: 0,
    }
}

fn incremental() -> CheckpointHeader {
    CheckpointHeader {
        dev: DevIndex::new(0),
        block: 55,
        area: 2,
        number: 43,
        kind: CheckpointKind::Incremental,
        page_count: 0,
        ..full(body_crc(&[]))
    }
}

fn table_words() -> Vec<u32> {
    (0..1000).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect()
}

pub fn list_words() -> Vec<u32> {
    let mut words = Vec::new();
    let version = |chunk, crc| StripeChunk { chunk: ChunkIndex::new(chunk), crc };
    let member =
        |lcn, chunk| LogMember { lcn: Lcn::new(lcn), chunk: ChunkIndex::new(chunk), crc: 0xdddd_0001 };
    let versions = [version(u32::MAX, 0), StripeChunk::NONE, version(31, 0xcccc_0031), version(u32::MAX, 0)];
    ListItem::DirtyStripe { stripe: StripeId::new(80), committed: versions.to_vec() }.encode(&mut words);
    ListItem::LogStripe {
        first_seq: Seq::new(8999),
        log_block: ChunkIndex::new(298),
        log_crcs: vec![0xaaaa_0001, 0xaaaa_0002],
        members: vec![
            (member(39_999, 10_001), MemberFate::Newest),
            (member(39_996, 10_002), MemberFate::Covered),
            (member(40_007, 10_003), MemberFate::Superseded),
        ],
    }
    .encode(&mut words);
    words
}

fn updated_columns_words() -> Vec<u32> {
    let mut words = Vec::new();
    let version = |chunk, crc| StripeChunk { chunk: ChunkIndex::new(chunk), crc };
    let committed = vec![(0, version(41, 0xcccc_0041)), (39, StripeChunk::NONE)];
    ListItem::UpdatedColumns { stripe: StripeId::new(81), columns: 40, committed }.encode(&mut words);
    words
}

/// Items of two runs, of which each has an entry that goes on, behind an item that none has; as
/// `page-list-packed` has them in the form of before.
pub fn unpacked_words() -> Vec<u32> {
    let mut words = open_stripe_words();
    for (stripe, columns) in [(82, vec![3]), ((1 << 48) - 1, vec![0, 2])] {
        let version = StripeChunk { chunk: ChunkIndex::new(41), crc: 0xcccc_0041 };
        let committed = columns.into_iter().map(|column| (column, version)).collect();
        ListItem::UpdatedColumns { stripe: StripeId::new(stripe), columns: 4, committed }.encode(&mut words);
    }
    for (seq, block, lcn, fate) in
        [(9000, 300, 39_998, MemberFate::Newest), (9001, 302, (1 << 40) - 1, MemberFate::Newest)]
    {
        let member = LogMember { lcn: Lcn::new(lcn), chunk: ChunkIndex::new(10_002), crc: 0xdddd_0003 };
        ListItem::LogStripe {
            first_seq: Seq::new(seq),
            log_block: ChunkIndex::new(block),
            log_crcs: vec![member.crc; 2],
            members: vec![(member, fate)],
        }
        .encode(&mut words);
    }
    words
}

/// The same with log stripes of several chunks, and enough entries that runs are shorter.
fn runs_words() -> Vec<u32> {
    let mut words = unpacked_words();
    for at in 0..6 {
        let member = |lcn, fate| {
            (LogMember { lcn: Lcn::new(lcn), chunk: ChunkIndex::new(500 + at), crc: 0xdddd_0005 }, fate)
        };
        let members = vec![member(at.into(), MemberFate::Covered), member(1 << 47, MemberFate::Superseded)];
        ListItem::LogStripe {
            first_seq: Seq::new(9010 + 2 * u64::from(at)),
            log_block: ChunkIndex::new(310 + 2 * at),
            log_crcs: vec![1, 2],
            members: if at < 3 { members } else { vec![member(7, MemberFate::Newest)] },
        }
        .encode(&mut words);
    }
    words
}

fn packed(words: &[u32]) -> Vec<u32> {
    let mut packed = Vec::new();
    ListPacker::default().pack(words, &mut packed);
    packed
}

/// Of [`list_words`].
fn change_words() -> Vec<u32> {
    let mut words = Vec::new();
    push_clean_stripes(&mut words, [80, 1 << 40].into_iter().map(StripeId::new));
    push_ended_log_stripes(&mut words, [7000, 8000].into_iter().map(Seq::new));
    words.extend(updated_columns_words());
    let fates = [MemberFate::Covered, MemberFate::Superseded, MemberFate::Newest];
    push_fates(&mut words, Seq::new(8999), fates.into_iter());
    words
}

fn open_stripe_words() -> Vec<u32> {
    let mut words = Vec::new();
    let item = ListItem::OpenStripe { seq: Seq::new(9001), row: 12_478, log_block: ChunkIndex::new(78) };
    item.encode(&mut words);
    words
}

fn delta_words() -> Vec<u32> {
    let mut words = Vec::new();
    for block in [299, 301] {
        let (stripe, log_block) = (StripeId::new(80), ChunkIndex::new(block));
        ListItem::Delta { stripe, log_block, log_crcs: vec![0xaaaa_0003, 0xaaaa_0004] }.encode(&mut words);
    }
    words
}

/// Two patches: of a chunk, and of some far apart.
fn patch_words() -> Vec<u32> {
    let page: [u32; PAGE_WORDS] = table_words().try_into().unwrap();
    let mut words = Vec::new();
    for (index, changed) in [(7, &[62][..]), (1_000_003, &[0, 64, 500, 999])] {
        let mut bits = GroupBits::NONE;
        changed.iter().for_each(|&word| bits.set_word(word));
        let start = words.len();
        words.resize(start + bits.patch_words(), 0);
        bits.encode_patch(index, &page, &mut words[start..]);
    }
    words
}

fn superblock(name: &'static str, superblock: Superblock, slot: usize) -> Sample {
    let mut block = [0; BLOCK_BYTES];
    superblock.encode(slot, &mut block);
    Sample { name, place: Place::Superblock { slot }, block: block.to_vec() }
}

fn frame(name: &'static str, dev: u16, block_number: u32, records: &RecordBuf) -> Sample {
    let stamp = FrameStamp {
        array: ARRAY,
        epoch: EPOCH,
        nonce: NONCE,
        flushed_through: Seq::new(8990),
        next_seq: Seq::new(9000),
        dev: DevIndex::new(dev),
        block: block_number,
    };
    let mut block = vec![0; BLOCK_BYTES];
    build(records, Seq::new(9000)).seal_into(&stamp, &mut block);
    Sample { name, place: Place::Frame { dev, block: block_number }, block }
}

fn header(name: &'static str, header: CheckpointHeader) -> Sample {
    let mut block = vec![0; BLOCK_BYTES];
    header.encode(&mut block);
    let place = Place::Header { dev: header.dev.get(), area: header.area, block: header.block };
    Sample { name, place, block }
}

fn page(name: &'static str, kind: PageKind, number_of_block: u32, words: &[u32]) -> (Sample, u32) {
    let area = if kind == PageKind::Table || kind == PageKind::Directory { PAGE_AREA } else { 1 };
    let (dev, number) = (2, 41);
    let stamp = PageStamp {
        array: ARRAY,
        dev: DevIndex::new(dev),
        area,
        block: number_of_block,
        number,
        kind,
        index: 0,
    };
    let mut block = vec![0; BLOCK_BYTES];
    let crc = encode_page(&stamp, words, &mut block);
    (Sample { name, place: Place::Page { dev, area, block: number_of_block, number }, block }, crc)
}
