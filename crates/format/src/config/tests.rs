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
    }
}

fn eplog() -> ArrayConfig {
    ArrayConfig {
        scheme: SchemeKind::Eplog,
        log_count: 2,
        log_blocks: 5000,
        chunks_per_device: 1200,
        payload_blocks: 0,
        ..raid()
    }
}

/// M-09, M-10, M-11: superblocks, two full areas, incremental area, rings, data; nothing overlaps.
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
    assert_eq!(config.data_start(), 1 << 20);
    assert_eq!(config.chunk_offset(ChunkIndex::new(1)), 1 << 20);
    assert_eq!(config.chunk_offset(ChunkIndex::new(1000)), (1 << 20) + 999 * 65536);
    assert_eq!(config.main_device_bytes(), (1 << 20) + 1000 * 65536);
    assert_eq!(config.volume_bytes(), 4000 * 65536);
}

#[test]
fn data_starts_at_the_first_mebibyte_behind_the_metadata() {
    let exact = ArrayConfig { payload_blocks: 256 - 2 - 70, ..raid() };
    assert_eq!(exact.data_start(), 1 << 20);
    let one_more = ArrayConfig { payload_blocks: exact.payload_blocks + 1, ..exact };
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
        ..eplog()
    };
    assert_eq!(config.validate(), Ok(()));
    assert_eq!(config.volume_bytes(), (u64::from(u32::MAX) * 253) << 20);
    assert!(config.main_device_bytes() > config.chunk_offset(ChunkIndex::new(u32::MAX)));
    let chunk_count = config.volume_bytes() >> 20;
    assert!(chunk_count < LCN_LIMIT, "logical chunk numbers of every valid configuration fit into six bytes");
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
    assert_eq!(refused(ArrayConfig { log_count: 3, ..eplog() }), ("number of log devices", 3));
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
