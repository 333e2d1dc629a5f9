//! Whatever the engine may want to write comes back as it was.

use crate::samples::write;
use block::{ChunkIndex, DevIndex, Epoch, Geometry, Lcn, Seq, StripeId};
use format::record::Zero;
use format::{
    ArrayConfig, ArrayUuid, Beside, BlockExpect, Bond, COUNTER_LIMIT, CheckpointHeader, CheckpointKind,
    CheckpointNumbers, CodeKind, Consistency, ElasticMember, FaultRecord, FrameBuilder, FrameExpect,
    FrameStamp, InPlacePiece, LCN_LIMIT, LayoutKind, ListItem, ListPacker, LogMember, LossRecord,
    MemberEntry, MemberFate, MemberState, Moved, PACKED, PAGE_WORDS, PageExpect, PageKind, PageStamp,
    RecordBuf, Role, SHARDS_MAX, SchemeKind, ScrubRecord, Shard, StripeChunk, Superblock, UNIT_ROWS_MAX,
    decode_checkpoint_header, decode_frame, decode_list, decode_page, encode_page, unpack_list,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn uuid() -> impl Strategy<Value = ArrayUuid> {
    any::<[u8; 16]>().prop_map(ArrayUuid::new)
}

fn dev() -> impl Strategy<Value = DevIndex> {
    any::<u16>().prop_map(DevIndex::new)
}

fn chunk() -> impl Strategy<Value = ChunkIndex> {
    any::<u32>().prop_map(ChunkIndex::new)
}

fn lcn() -> impl Strategy<Value = Lcn> {
    (0..LCN_LIMIT).prop_map(Lcn::new)
}

fn stripe() -> impl Strategy<Value = StripeId> {
    (0..LCN_LIMIT).prop_map(StripeId::new)
}

fn seq() -> impl Strategy<Value = Seq> {
    (0..COUNTER_LIMIT).prop_map(Seq::new)
}

fn epoch() -> impl Strategy<Value = Epoch> {
    (0..COUNTER_LIMIT).prop_map(Epoch::new)
}

fn log_member() -> impl Strategy<Value = LogMember> {
    (lcn(), chunk(), any::<u32>()).prop_map(|(lcn, chunk, crc)| LogMember { lcn, chunk, crc })
}

fn record() -> impl Strategy<Value = RecordBuf> {
    let piece = (any::<u16>(), any::<u32>(), any::<u32>())
        .prop_map(|(column, crc, payload_block)| InPlacePiece { column, crc, payload_block });
    prop_oneof![
        (chunk(), vec(any::<u32>(), 0..5), vec(log_member(), 0..40)).prop_map(|(block, crcs, members)| {
            one(|records| write::log_stripe(records, block, &crcs, &members))
        }),
        // Copied chunks, near enough to each other for a short form.
        (0..0x2_0000u32, 0..4usize, log_member()).prop_map(|(block, log_count, member)| {
            let log_crcs = vec![member.crc; log_count];
            one(|records| write::log_stripe(records, ChunkIndex::new(block), &log_crcs, &[member]))
        }),
        (stripe(), vec(stripe_chunk(), 0..256))
            .prop_map(|(stripe, chunks)| one(|records| write::full_stripe(records, stripe, &chunks))),
        (stripe(), vec(chunk(), 0..30), vec(stripe_chunk(), 0..10)).prop_map(|(stripe, data, parity)| {
            one(|records| write::commit(records, stripe, &data, &parity))
        }),
        (0..LCN_LIMIT, 0..LCN_LIMIT)
            .prop_map(|(a, b)| { one(|records| Zero::push(records, Lcn::new(a.min(b)), a.abs_diff(b))) }),
        (stripe(), vec(piece.clone(), 0..30))
            .prop_map(|(stripe, pieces)| one(|records| write::in_place(records, stripe, &pieces))),
        (stripe(), any::<bool>(), chunk(), vec(any::<u32>(), 0..5), vec(piece, 0..30)).prop_map(
            |(stripe, whole, block, crcs, pieces)| {
                one(|records| write::delta(records, (stripe, whole), (block, &crcs), &pieces))
            }
        ),
        elastic(),
        open_stripe(),
    ]
}

fn one(write: impl FnOnce(&mut RecordBuf)) -> RecordBuf {
    let mut records = RecordBuf::default();
    write(&mut records);
    records
}

fn stripe_chunk() -> impl Strategy<Value = StripeChunk> {
    (chunk(), any::<u32>()).prop_map(|(chunk, crc)| StripeChunk { chunk, crc })
}

/// Any width, a whole stripe of the widest array included.
fn elastic() -> impl Strategy<Value = RecordBuf> {
    let member = (any::<u32>(), any::<u32>(), any::<u32>()).prop_map(|(lcn, from, crc)| ElasticMember {
        lcn: Lcn::new(lcn.into()),
        from,
        crc,
    });
    (any::<u32>(), any::<u8>(), vec(member, 0..=255), vec(any::<u32>(), 0..10)).prop_map(
        |(row, class, members, parity_crcs)| {
            one(|records| write::elastic(records, (row, class), &members, &parity_crcs))
        },
    )
}

fn open_stripe() -> impl Strategy<Value = RecordBuf> {
    let member = (any::<u32>(), any::<u32>());
    let member = member.prop_map(|(lcn, crc)| ElasticMember { lcn: Lcn::new(lcn.into()), from: 0, crc });
    let log = (chunk(), vec(any::<u32>(), 0..10));
    (any::<u32>(), any::<u8>(), log, vec(any::<u32>(), 0..=100), vec(member, 0..=100)).prop_map(
        |(row, class, (block, parities), before, members)| {
            let log = (block, parities.as_slice());
            one(|records| write::open_stripe(records, (row, class), log, &before, &members))
        },
    )
}

/// As many units as there is room for with 32 bits for a chunk, at least those that collection needs and one
/// of data.
fn with_units(config: ArrayConfig, stripes: u64, unit_rows: u32) -> ArrayConfig {
    let chunks_max = (u32::MAX - 1) / u32::try_from(config.geometry.data_count()).unwrap();
    let chunks_per_device = config.chunks_per_device.clamp(unit_rows * 19, chunks_max);
    let config = ArrayConfig { chunks_per_device, unit_rows, ..config };
    ArrayConfig { stripe_count: stripes.min(config.stripes_max()), ..config }
}

/// One of some shards, if there is room for a unit of interleaving.
fn one_of(
    config: ArrayConfig,
    (count, index, unit): (u16, prop::sample::Index, prop::sample::Index),
) -> ArrayConfig {
    let units = usize::try_from((config.volume_bytes() >> 20).min(1 << 20)).unwrap();
    if count == 1 || units == 0 {
        return config;
    }
    let shard = Shard {
        index: u16::try_from(index.index(usize::from(count))).unwrap(),
        count,
        unit_bytes: (unit.index(units) as u64 + 1) << 20,
        main_stride_bytes: config.main_device_bytes().next_multiple_of(1 << 20),
        log_stride_bytes: match config.log_count {
            0 => 0,
            _ => config.log_device_bytes().next_multiple_of(1 << 20),
        },
    };
    ArrayConfig { shard, ..config }
}

/// With its metadata behind its data, and some room between them.
fn grown_by(config: ArrayConfig, (data_mib, gap_blocks): (u64, u64)) -> ArrayConfig {
    let moved = Moved { data_start_bytes: data_mib << 20, metadata_start_bytes: u64::MAX };
    let data_end = ArrayConfig { moved, ..config }.data_end();
    let moved = Moved { metadata_start_bytes: data_end + gap_blocks * 4096, ..moved };
    ArrayConfig { moved, ..config }
}

/// Regions small and large, of every scheme.
fn config() -> impl Strategy<Value = ArrayConfig> {
    let geometry = (1usize..20, 1usize..5, 12u32..=20)
        .prop_map(|(k, m, chunk_bits)| Geometry::new(k, m, 1 << chunk_bits).unwrap());
    let unit_rows = 2..=u32::try_from(UNIT_ROWS_MAX).unwrap();
    let regions = (any::<u32>(), 2..=u32::MAX, 2..=u32::MAX, 2..=u32::MAX, (1..=u32::MAX, 2..=u32::MAX));
    let choice = (select(SchemeKind::ALL), select(LayoutKind::ALL), select(Consistency::ALL));
    let shard = (1..=SHARDS_MAX, any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let grown = prop::option::of((1u64..1 << 20, 0u64..1 << 30));
    let place = (any::<prop::sample::Index>(), regions, unit_rows, (shard, grown));
    (geometry, choice, 1..=u32::MAX, place).prop_map(
        |(
            geometry,
            (scheme, layout, consistency),
            chunks_per_device,
            (stripes, regions, unit_rows, (shard, grown)),
        )| {
            let (log_blocks, full_blocks, incremental_blocks, journal_blocks, others) = regions;
            let (payload_blocks, page_blocks) = others;
            let m = u16::try_from(geometry.parity_count()).unwrap();
            let (log_count, log_blocks) = if scheme.has_log() { (m, log_blocks.max(1)) } else { (0, 0) };
            let journaled = scheme.is_in_place() && consistency == Consistency::Journal;
            let stripes = stripes.index(usize::try_from(chunks_per_device).unwrap()) + 1;
            let config = ArrayConfig {
                scheme,
                code: if m == 1 { CodeKind::Xor } else { CodeKind::Cauchy },
                layout,
                consistency,
                geometry,
                log_count,
                stripe_count: stripes as u64,
                chunks_per_device,
                log_blocks,
                full_blocks,
                incremental_blocks,
                journal_blocks,
                payload_blocks: if journaled { payload_blocks } else { 0 },
                page_blocks,
                unit_rows: 0,
                shard: Shard::SINGLE,
                moved: Moved::NEVER,
            };
            let config =
                if scheme.is_elastic() { with_units(config, stripes as u64, unit_rows) } else { config };
            match grown {
                Some(grown) => grown_by(config, grown),
                None => one_of(config, shard),
            }
        },
    )
}

fn superblock() -> impl Strategy<Value = Superblock> {
    let entry =
        (any::<u32>(), select(MemberState::ALL)).prop_map(|(serial, state)| MemberEntry { serial, state });
    let newest = (0..COUNTER_LIMIT, seq(), 0..COUNTER_LIMIT);
    let numbers = (any::<u32>(), 0..COUNTER_LIMIT, epoch(), any::<u64>(), any::<bool>(), newest);
    let cursors = (any::<u64>(), any::<u64>(), any::<u64>(), (any::<(u64, u64, u64)>(), any::<[u32; 8]>()));
    (
        config(),
        uuid(),
        "[a-z\u{e9}\u{1f600} ]{0,16}",
        vec(entry, 40..600),
        any::<prop::sample::Index>(),
        numbers,
        cursors,
    )
        .prop_map(|(config, array, name, members, place, numbers, cursors)| {
            let (serial, config_seq, epoch, nonce, clean, (checkpoint, durable_through, rebuilt)) = numbers;
            let (
                created_unix_s,
                scrub_cursor,
                resync_cursor,
                ((ended_unix_s, chunks_repaired, lost_chunks), rest),
            ) = cursors;
            let [seconds, metadata_repaired, errors_left, completed, wrong, repaired, unread, since_unix_s] =
                rest;
            let place = place.index(members.len());
            let log_start = config.geometry.device_count();
            let spare_start = log_start + usize::from(config.log_count);
            let role = match place {
                place if place < log_start => Role::Main,
                place if place < spare_start => Role::Log,
                _ => Role::Spare,
            };
            Superblock {
                array,
                name,
                dev: DevIndex::new(u16::try_from(place).unwrap()),
                role,
                serial,
                config_seq,
                epoch,
                nonce,
                clean,
                checkpoints: CheckpointNumbers { durable: checkpoint, used: nonce >> 1 },
                durable_through,
                config,
                members,
                created_unix_s,
                scrub_cursor,
                resync_cursor,
                scrub: ScrubRecord {
                    ended_unix_s,
                    seconds,
                    metadata_repaired,
                    chunks_repaired,
                    errors_left,
                    completed,
                },
                faults: FaultRecord { wrong, repaired, unread, since_unix_s },
                losses: LossRecord {
                    chunks: lost_chunks,
                    forced: Some(scrub_cursor >> 1).filter(|epoch| *epoch > 0).map(Epoch::new),
                },
                rebuilt,
            }
        })
}

fn header() -> impl Strategy<Value = CheckpointHeader> {
    let identity = (uuid(), epoch(), any::<u64>(), dev(), any::<u32>());
    let numbers = (
        2..COUNTER_LIMIT,
        any::<prop::sample::Index>(),
        seq(),
        any::<[u64; 2]>(),
        any::<[u32; 4]>(),
        (
            0..COUNTER_LIMIT,
            proptest::option::of(any::<(prop::sample::Index, u32)>()),
            any::<prop::sample::Index>(),
            0..=PACKED,
        ),
    );
    (identity, select(CheckpointKind::ALL), 0u8..2, numbers).prop_map(|(identity, kind, area, numbers)| {
        let (array, epoch, nonce, dev, block) = identity;
        let (number, base, through, words, blocks, (config_seq, beside, behind, packed)) = numbers;
        let ([table_words, list_words], [page_count, log_head, log_tail, body_crc]) = (words, blocks);
        let below = |index: prop::sample::Index| index.index(usize::try_from(number - 1).unwrap()) as u64 + 1;
        let base = below(base);
        let beside = beside.filter(|_| kind == CheckpointKind::Full && number > 1);
        let beside = beside.map(|(base, block)| Beside { base: below(base), block });
        let (area, base, behind) = match kind {
            CheckpointKind::Full => (area, number, 0),
            CheckpointKind::Incremental => (2, base, below(behind) - 1),
        };
        CheckpointHeader {
            array,
            epoch,
            nonce,
            dev,
            block,
            area,
            number,
            kind,
            base,
            through,
            table_words,
            list_words,
            page_count,
            log_head,
            log_tail,
            body_crc,
            config_seq,
            beside,
            behind,
            packed,
        }
    })
}

fn fate() -> impl Strategy<Value = MemberFate> {
    (0..MemberFate::ALL.len()).prop_map(|index| MemberFate::ALL[index])
}

fn list_item() -> impl Strategy<Value = ListItem> {
    prop_oneof![
        (stripe(), vec(stripe_chunk(), 0..20))
            .prop_map(|(stripe, committed)| ListItem::DirtyStripe { stripe, committed }),
        (stripe(), vec(proptest::option::of(stripe_chunk()), 0..70)).prop_map(|(stripe, versions)| {
            let columns = u16::try_from(versions.len()).unwrap();
            let is_one = |version: &StripeChunk| version.chunk.get() != u32::MAX;
            let committed = (0..columns).zip(versions);
            let committed = committed.filter_map(|(column, version)| Some((column, version.filter(is_one)?)));
            ListItem::UpdatedColumns { stripe, columns, committed: committed.collect() }
        }),
        (seq(), chunk(), vec(any::<u32>(), 0..5), vec((log_member(), fate()), 0..20)).prop_map(
            |(first_seq, log_block, log_crcs, members)| ListItem::LogStripe {
                first_seq,
                log_block,
                log_crcs,
                members,
            }
        ),
        // What runs have, near enough to each other or not.
        (0..12_000u64, 0..12_000u32, 0..17usize, log_member(), 0..1u64 << 41, fate()).prop_map(
            |(seq, block, log_count, member, lcn, fate)| ListItem::LogStripe {
                first_seq: Seq::new(seq),
                log_block: ChunkIndex::new(block),
                log_crcs: vec![member.crc; log_count],
                members: vec![(LogMember { lcn: Lcn::new(lcn), ..member }, fate)],
            }
        ),
        (stripe(), chunk(), vec(any::<u32>(), 0..5))
            .prop_map(|(stripe, log_block, log_crcs)| ListItem::Delta { stripe, log_block, log_crcs }),
        (seq(), any::<u32>(), chunk()).prop_map(|(seq, row, log_block)| ListItem::OpenStripe {
            seq,
            row,
            log_block
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn superblocks(superblock in superblock(), slot in 0usize..2) {
        let mut block = [0xff; 4096];
        superblock.encode(slot, &mut block);
        prop_assert_eq!(Superblock::decode(&block, slot), Ok(superblock));
    }

    /// As many of the records as fit, in order, and the same frame for another device.
    #[test]
    fn frames(
        records in vec(record(), 0..30),
        ids in (uuid(), epoch(), any::<u64>(), dev(), any::<u32>()),
        first in 0..COUNTER_LIMIT - 100,
        flushed_through in seq(),
    ) {
        let (array, epoch, nonce, dev, block) = ids;
        let mut builder = FrameBuilder::new();
        let mut next_seq = Seq::new(first);
        let mut pushed = RecordBuf::default();
        for record in records {
            let record = record.get(0);
            prop_assert!(FrameBuilder::new().try_push(next_seq, record, Bond::None));
            if builder.try_push(next_seq, record, Bond::None) {
                pushed.push(record);
                next_seq = next_seq.next();
            }
        }
        let stamp = FrameStamp { array, epoch, nonce, flushed_through, next_seq, dev, block };
        for stamp in [stamp, FrameStamp { dev: DevIndex::new(3), block: 0, ..stamp }] {
            let mut bytes = [0xff; 4096];
            builder.seal_into(&stamp, &mut bytes);
            let expect = FrameExpect { array, epoch, nonce, dev: stamp.dev, block: stamp.block };
            let frame = decode_frame(&bytes, &expect);
            prop_assert!(frame.is_ok(), "{:?}", frame);
            let frame = frame.unwrap();
            prop_assert_eq!((frame.first_seq, frame.flushed_through), (Seq::new(first), flushed_through));
            prop_assert_eq!(&frame.records, &pushed);
        }
    }

    #[test]
    fn checkpoint_headers(header in header()) {
        let mut block = [0xff; 4096];
        header.encode(&mut block);
        let CheckpointHeader { array, dev, area, block: number, .. } = header;
        let expect = BlockExpect { array, dev, area, block: number };
        prop_assert_eq!(decode_checkpoint_header(&block, &expect), Ok(header));
    }

    #[test]
    fn checkpoint_pages(
        words in vec(any::<u32>(), 0..=PAGE_WORDS),
        ids in (uuid(), dev(), 0u8..4, any::<u32>(), any::<u64>(), any::<u32>()),
        kind in select(PageKind::ALL),
    ) {
        let (array, dev, area, block, number, index) = ids;
        let mut bytes = [0xff; 4096];
        let stamp = PageStamp { array, dev, area, block, number, kind, index };
        let crc = encode_page(&stamp, &words, &mut bytes);
        for expected in [Some(number), None] {
            let expect = PageExpect { array, dev, area, block, number: expected };
            let page = decode_page(&bytes, &expect).unwrap();
            prop_assert_eq!((page.number, page.kind, page.index), (number, kind, index));
            prop_assert_eq!((&page.words, page.crc), (&words, crc));
        }
    }

    #[test]
    fn lists(items in vec(list_item(), 0..20)) {
        let mut words = Vec::new();
        items.iter().for_each(|item| item.encode(&mut words));
        prop_assert_eq!(decode_list(&words), Ok(items));
    }

    #[test]
    fn packed_lists(items in vec(list_item(), 0..20)) {
        let mut words = Vec::new();
        items.iter().for_each(|item| item.encode(&mut words));
        let mut packed = Vec::new();
        ListPacker::default().pack(&words, &mut packed);
        prop_assert!(packed.len() <= words.len());
        prop_assert_eq!(unpack_list(&packed), Ok(words));
    }

    /// No two regions of a device overlap, whatever their sizes, and all lie within the device.
    #[test]
    fn regions_are_disjoint_and_within_the_device(config in config()) {
        prop_assert_eq!(config.validate(), Ok(()));
        let chunk_bytes = config.geometry.chunk_bytes() as u64;
        let block = 4096;
        let mut regions = vec![
            (0, 8192),
            (config.full_offset(0, 0), config.full_offset(0, config.full_blocks - 1) + block),
            (config.full_offset(1, 0), config.full_offset(1, config.full_blocks - 1) + block),
            (config.incremental_offset(0), config.incremental_offset(config.incremental_blocks - 1) + block),
            (config.journal_offset(0), config.journal_offset(config.journal_blocks - 1) + block),
        ];
        if config.payload_blocks > 0 {
            regions.push((config.payload_offset(1), config.payload_offset(config.payload_blocks) + block));
        }
        regions.push((config.page_offset(0), config.page_offset(config.page_blocks - 1) + block));
        let last_chunk = ChunkIndex::new(config.chunks_per_device);
        let chunks_end = config.chunk_offset(last_chunk) + chunk_bytes;
        regions.push((config.chunk_offset(ChunkIndex::new(1)), chunks_end));
        regions.sort_unstable();
        for pair in regions.windows(2) {
            prop_assert!(pair[0].1 <= pair[1].0, "{:?} overlaps or follows {:?}", pair[0], pair[1]);
        }
        prop_assert_eq!(regions.last().unwrap().1, config.main_device_bytes());
        prop_assert!(config.chunk_offset(last_chunk).is_multiple_of(chunk_bytes));
        prop_assert!(config.data_start().is_multiple_of(1 << 20));
        if config.log_count > 0 {
            let last = config.log_offset(ChunkIndex::new(config.log_blocks));
            prop_assert_eq!(last + block, config.log_device_bytes());
        }
    }
}
