//! Tests of the device layout and of what a configuration may be.

use super::*;
use crate::{CodeKind, Consistency, LayoutKind, SchemeKind};

fn raid() -> ArrayConfig {
    ArrayConfig {
        scheme: SchemeKind::Raid,
        code: CodeKind::Cauchy,
        layout: LayoutKind::Rotate,
        consistency: Consistency::Journal,
        geometry: Geometry::new(4, 2, 65536).unwrap(),
        log_count: 0,
        stripe_count: 1000,
        chunks_per_device: 1000,
        log_blocks: 0,
        full_blocks: 10,
        incremental_blocks: 20,
        journal_blocks: 30,
        payload_blocks: 40,
        page_blocks: 50,
        unit_rows: 0,
        shard: Shard::SINGLE,
        moved: Moved::NEVER,
    }
}

fn eplog() -> ArrayConfig {
    ArrayConfig {
        scheme: SchemeKind::Eplog,
        log_count: 2,
        log_blocks: 5000,
        chunks_per_device: 1200,
        payload_blocks: 0,
        page_blocks: 50,
        ..raid()
    }
}

/// 20 units of 64 rows, of which two may hold data.
fn elastic() -> ArrayConfig {
    ArrayConfig {
        scheme: SchemeKind::Elastic,
        stripe_count: 126,
        chunks_per_device: 1280,
        payload_blocks: 0,
        page_blocks: 50,
        unit_rows: 64,
        shard: Shard::SINGLE,
        moved: Moved::NEVER,
        ..raid()
    }
}

/// M-09, M-10, M-11: superblocks, two full areas, incremental area, rings, page area, data; nothing overlaps.
#[test]
fn regions_of_a_main_device_follow_one_another() {
    let config = raid();
    let blocks = |count: u64| count * 4096;
    assert_eq!(config.full_offset(0, 0), 8192);
    assert_eq!(config.full_offset(0, 9), 8192 + blocks(9));
    assert_eq!(config.full_offset(1, 0), 8192 + blocks(10));
    assert_eq!(config.incremental_offset(0), 8192 + blocks(20));
    assert_eq!(config.journal_offset(0), 8192 + blocks(40));
    assert_eq!(config.payload_offset(1), 8192 + blocks(70));
    assert_eq!(config.payload_offset(40), 8192 + blocks(109));
    assert_eq!(config.page_offset(0), 8192 + blocks(110));
    assert_eq!(config.page_offset(49), 8192 + blocks(159));
    assert_eq!(config.data_start(), 1 << 20);
    assert_eq!(config.chunk_offset(ChunkIndex::new(1)), 1 << 20);
    assert_eq!(config.chunk_offset(ChunkIndex::new(1000)), (1 << 20) + 999 * 65536);
    assert_eq!(config.main_device_bytes(), (1 << 20) + 1000 * 65536);
    assert_eq!(config.volume_bytes(), 4000 * 65536);
}

#[test]
fn data_starts_at_the_first_mebibyte_behind_the_metadata() {
    let exact = ArrayConfig { payload_blocks: 256 - 2 - 70 - 50, ..raid() };
    assert_eq!(exact.data_start(), 1 << 20);
    let one_more = ArrayConfig { page_blocks: exact.page_blocks + 1, ..exact };
    assert_eq!(one_more.data_start(), 2 << 20);
}

#[test]
fn log_region_starts_at_one_mebibyte() {
    let config = eplog();
    assert_eq!(config.log_offset(ChunkIndex::new(1)), 1 << 20);
    assert_eq!(config.log_offset(ChunkIndex::new(5000)), (1 << 20) + 4999 * 4096);
    assert_eq!(config.log_device_bytes(), (1 << 20) + 5000 * 4096);
}

#[test]
#[should_panic(expected = "chunk 0 of a device with 1..=1000")]
fn chunk_zero_has_no_place() {
    raid().chunk_offset(ChunkIndex::NONE);
}

#[test]
#[should_panic(expected = "block 30 of a journal ring of 30")]
fn a_block_behind_the_ring_has_no_place() {
    raid().journal_offset(30);
}

#[test]
fn largest_configuration_does_not_overflow() {
    let config = ArrayConfig {
        geometry: Geometry::new(253, 2, 1 << 20).unwrap(),
        stripe_count: u32::MAX.into(),
        chunks_per_device: u32::MAX,
        log_blocks: u32::MAX,
        full_blocks: u32::MAX,
        incremental_blocks: u32::MAX,
        journal_blocks: u32::MAX,
        page_blocks: u32::MAX,
        ..eplog()
    };
    assert_eq!(config.validate(), Ok(()));
    assert_eq!(config.volume_bytes(), (u64::from(u32::MAX) * 253) << 20);
    assert!(config.main_device_bytes() > config.chunk_offset(ChunkIndex::new(u32::MAX)));
    let chunk_count = config.volume_bytes() >> 20;
    assert!(chunk_count < LCN_LIMIT, "logical chunk numbers of every valid configuration fit into six bytes");
}

/// The data region stays, and what takes its place in front is behind it.
#[test]
fn metadata_of_an_array_that_has_grown_is_behind_its_data() {
    let before = eplog();
    let start = before.data_start();
    let chunks_per_device = before.chunks_per_device + 1000;
    let end = start + u64::from(chunks_per_device) * before.geometry.chunk_bytes() as u64;
    let moved = Moved { data_start_bytes: start, metadata_start_bytes: end };
    let after = ArrayConfig { chunks_per_device, moved, ..before };
    assert_eq!(after.validate(), Ok(()));
    let first = ChunkIndex::new(1);
    assert_eq!(after.chunk_offset(first), before.chunk_offset(first));
    assert_eq!((after.data_end(), after.full_offset(0, 0)), (end, end));
    let metadata_bytes = before.metadata_end() - before.metadata_start();
    assert_eq!(after.main_device_bytes(), end + metadata_bytes);
    let refused = |moved: Moved| ArrayConfig { moved, ..after }.validate().unwrap_err().to_string();
    let early = refused(Moved { metadata_start_bytes: end - 4096, ..moved });
    assert!(early.contains("start of the metadata regions"), "{early}");
    let odd = refused(Moved { data_start_bytes: start + 4096, ..moved });
    assert!(odd.contains("start of the data region"), "{odd}");
    let none = refused(Moved { data_start_bytes: 0, ..moved });
    assert!(none.contains("start of the data region"), "{none}");
}

#[test]
fn good_configurations_pass() {
    assert_eq!(raid().validate(), Ok(()));
    assert_eq!(eplog().validate(), Ok(()));
    let resync = ArrayConfig { consistency: Consistency::Resync, payload_blocks: 0, ..raid() };
    assert_eq!(resync.validate(), Ok(()));
    let xor = ArrayConfig {
        code: CodeKind::Xor,
        geometry: Geometry::new(4, 1, 4096).unwrap(),
        log_count: 1,
        ..eplog()
    };
    assert_eq!(xor.validate(), Ok(()));
    assert_eq!(ArrayConfig { code: CodeKind::Rdp, ..raid() }.validate(), Ok(()));
    assert_eq!(ArrayConfig { code: CodeKind::Rdp, ..eplog() }.validate(), Ok(()));
    for scheme in [SchemeKind::Elastic, SchemeKind::Was] {
        assert_eq!(ArrayConfig { scheme, ..elastic() }.validate(), Ok(()));
        assert_eq!(ArrayConfig { scheme, code: CodeKind::Rdp, ..elastic() }.validate(), Ok(()));
        assert_eq!(ArrayConfig { scheme, log_count: 2, log_blocks: 9, ..elastic() }.validate(), Ok(()));
    }
}

/// W-23: what is left over of a device behind its last whole unit counts for nothing; of each unit a row may
/// be lost to garbage, and 18 units are kept to fill and to collect into.
#[test]
fn a_volume_of_elastic_stripes_leaves_room_for_garbage_collection() {
    assert_eq!(elastic().stripes_max(), (20 - 18) * 63);
    assert_eq!(ArrayConfig { chunks_per_device: 1343, ..elastic() }.stripes_max(), 2 * 63);
    assert_eq!(ArrayConfig { chunks_per_device: 1344, ..elastic() }.stripes_max(), 3 * 63);
    assert_eq!(ArrayConfig { chunks_per_device: 63, ..elastic() }.stripes_max(), 0);
    assert_eq!(ArrayConfig { unit_rows: 2, ..elastic() }.stripes_max(), 640 - 18);
}

#[test]
fn contradictions_of_units_are_refused_by_name() {
    let refused = |config: ArrayConfig| match config.validate() {
        Err(FormatError::Config { what, found, .. }) => (what, found),
        other => panic!("expected a configuration error, got {other:?} for {config:?}"),
    };
    let units = "rows of a unit";
    for scheme in [SchemeKind::Elastic, SchemeKind::Was] {
        let config = ArrayConfig { scheme, ..elastic() };
        assert_eq!(refused(ArrayConfig { unit_rows: 0, ..config }), (units, 0));
        assert_eq!(refused(ArrayConfig { unit_rows: 1, ..config }), (units, 1));
        assert_eq!(refused(ArrayConfig { unit_rows: 65_537, ..config }), (units, 65_537));
        assert_eq!(refused(ArrayConfig { log_count: 2, ..config }), ("blocks in the log region", 0));
        assert_eq!(refused(ArrayConfig { log_count: 256, ..config }), ("number of log devices", 256));
        assert_eq!(refused(ArrayConfig { payload_blocks: 1, ..config }), ("blocks in the payload ring", 1));
        assert_eq!(refused(ArrayConfig { stripe_count: 127, ..config }), ("number of stripes", 127));
        assert_eq!(refused(ArrayConfig { unit_rows: 72, ..config }), ("number of stripes", 126));
    }
    assert_eq!(refused(ArrayConfig { unit_rows: 64, ..raid() }), (units, 64));
    assert_eq!(refused(ArrayConfig { unit_rows: 64, ..eplog() }), (units, 64));
}

/// Logical chunks and places take 32 bits, and 0 means none.
#[test]
fn data_chunks_of_elastic_stripes_are_below_two_to_the_32() {
    let config = ArrayConfig { chunks_per_device: (1 << 30) - 1, unit_rows: 1 << 16, ..elastic() };
    assert_eq!(config.validate(), Ok(()));
    let one_more = ArrayConfig { chunks_per_device: 1 << 30, ..config };
    let error = one_more.validate().unwrap_err();
    assert!(
        matches!(error, FormatError::Config { what: "chunks per device", found: 0x4000_0000, .. }),
        "{error}"
    );
}

#[test]
fn each_contradiction_is_refused_by_name() {
    let refused = |config: ArrayConfig| match config.validate() {
        Err(FormatError::Config { what, found, .. }) => (what, found),
        other => panic!("expected a configuration error, got {other:?} for {config:?}"),
    };
    assert_eq!(refused(ArrayConfig { code: CodeKind::Xor, ..raid() }), ("number of parity devices", 2));
    for m in [1, 3] {
        let rdp = ArrayConfig { code: CodeKind::Rdp, geometry: Geometry::new(4, m, 4096).unwrap(), ..raid() };
        assert_eq!(refused(rdp), ("number of parity devices", m as u64));
    }
    assert_eq!(refused(ArrayConfig { log_count: 1, ..raid() }), ("number of log devices", 1));
    assert_eq!(refused(ArrayConfig { log_count: 0, ..eplog() }), ("number of log devices", 0));
    assert_eq!(ArrayConfig { log_count: LOG_COUNT_MAX, ..eplog() }.validate(), Ok(()));
    let too_many = ArrayConfig { log_count: LOG_COUNT_MAX + 1, ..eplog() };
    assert_eq!(refused(too_many), ("number of log devices", u64::from(LOG_COUNT_MAX) + 1));
    assert_eq!(refused(ArrayConfig { stripe_count: 0, ..raid() }), ("number of stripes", 0));
    assert_eq!(refused(ArrayConfig { stripe_count: u64::MAX, ..raid() }), ("number of stripes", u64::MAX));
    assert_eq!(refused(ArrayConfig { log_blocks: 0, ..eplog() }), ("blocks in the log region", 0));
    assert_eq!(refused(ArrayConfig { log_blocks: 1, ..raid() }), ("blocks in the log region", 1));
    assert_eq!(refused(ArrayConfig { full_blocks: 1, ..raid() }), ("blocks in a full-checkpoint area", 1));
    assert_eq!(
        refused(ArrayConfig { incremental_blocks: 1, ..raid() }),
        ("blocks in the incremental area", 1)
    );
    assert_eq!(refused(ArrayConfig { journal_blocks: 0, ..raid() }), ("blocks in the journal ring", 0));
    assert_eq!(refused(ArrayConfig { payload_blocks: 0, ..raid() }), ("blocks in the payload ring", 0));
    assert_eq!(refused(ArrayConfig { payload_blocks: 9, ..eplog() }), ("blocks in the payload ring", 9));
}
