//! Slices lie side by side, and what does not fit is refused by name.

use super::*;
use crate::{ArrayUuid, CodeKind, Consistency, LayoutKind, Moved, SchemeKind};
use block::Geometry;

fn config(shard: Shard) -> ArrayConfig {
    ArrayConfig {
        scheme: SchemeKind::Eplog,
        code: CodeKind::Cauchy,
        layout: LayoutKind::Spread,
        consistency: Consistency::Journal,
        geometry: Geometry::new(4, 2, 4096).unwrap(),
        log_count: 2,
        stripe_count: 900,
        chunks_per_device: 1000,
        log_blocks: 700,
        full_blocks: 6,
        incremental_blocks: 64,
        journal_blocks: 128,
        payload_blocks: 0,
        page_blocks: 32,
        unit_rows: 0,
        shard,
        moved: Moved::NEVER,
    }
}

fn second_of_four() -> Shard {
    Shard { index: 1, count: 4, unit_bytes: 1 << 20, main_stride_bytes: 6 << 20, log_stride_bytes: 4 << 20 }
}

fn refused(change: impl FnOnce(&mut Shard)) -> &'static str {
    let mut shard = second_of_four();
    change(&mut shard);
    match config(shard).validate() {
        Err(FormatError::Config { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn slices_lie_side_by_side() {
    let second = config(second_of_four());
    assert_eq!(second.validate(), Ok(()));
    assert!(second.main_device_bytes() <= 6 << 20 && second.log_device_bytes() <= 4 << 20);
    let (main, log) = (DevIndex::new(5), DevIndex::new(6));
    assert_eq!((second.slice_origin(main), second.slice_origin(log)), (6 << 20, 4 << 20));
    assert_eq!(second.sibling(3).slice_origin(main), 18 << 20);
    assert_eq!(second.whole_main_bytes(), (18 << 20) + second.main_device_bytes());
    assert_eq!(second.whole_log_bytes(), (12 << 20) + second.log_device_bytes());
    let extents = second.slice_extents();
    assert_eq!(extents.len(), 8);
    assert_eq!(extents[7], Extent { origin_bytes: 4 << 20, length_bytes: 4 << 20, turns: None });
    // 900 stripes of 16 KiB are 14 units and a rest that nobody uses.
    assert_eq!(second.whole_volume_bytes(), 56 << 20);
    let single = config(Shard::SINGLE);
    assert_eq!(single.whole_volume_bytes(), single.volume_bytes());
    assert_eq!(single.whole_main_bytes(), single.main_device_bytes());
    assert!(single.slice_extents().is_empty());
}

/// Every byte of a device that is large enough is at one place of one shard's slice; what is behind the
/// slices is as many bytes of each shard.
#[test]
fn room_behind_the_slices_goes_to_the_shards_in_turn() {
    let second = config(second_of_four());
    let (main, unit) = (DevIndex::new(0), 1 << 20);
    assert_eq!(second.room_unit_bytes(), unit);
    let mut seen = std::collections::BTreeSet::new();
    for index in 0..4 {
        let extent = second.sibling(index).roomy_extents()[main.index()];
        for at in (0..9 << 20).step_by(1 << 20) {
            assert!(seen.insert(extent.place(at).0), "{at} of shard {index}");
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), (0..36 << 20).step_by(1 << 20).collect::<Vec<_>>());
    for (device, each) in [(24, 6), (27, 6), (28, 7), (31, 7), (32, 8), (36, 9)] {
        assert_eq!(second.room_of(device << 20), each << 20, "{device} MiB");
        assert!(second.main_bytes_for(each << 20) <= device << 20);
    }
    assert_eq!(second.main_bytes_for(9 << 20), 36 << 20);
    // Logs do not go on, and nothing does before the array has grown.
    assert_eq!(second.roomy_extents()[6].turns, None);
    assert_eq!(second.slice_extents()[0].turns, None);
    let units = [(1 << 30, 1 << 20), (3 << 30, 2 << 20), (1 << 40, 64 << 20)];
    for (main_stride_bytes, unit_bytes) in units {
        let shard = Shard { main_stride_bytes, ..second_of_four() };
        assert_eq!(config(shard).room_unit_bytes(), unit_bytes, "{main_stride_bytes}");
    }
}

#[test]
fn a_shard_that_has_grown_is_a_shape() {
    let before = config(second_of_four());
    let data_start_bytes = before.data_start();
    let metadata_start_bytes = data_start_bytes + 2000 * 4096;
    let moved = Moved { data_start_bytes, metadata_start_bytes };
    let after = ArrayConfig { chunks_per_device: 2000, stripe_count: 1800, moved, ..before };
    assert_eq!(after.validate(), Ok(()));
    assert!(after.main_device_bytes() > 6 << 20);
    let chunk = block::ChunkIndex::new(1);
    let dev = DevIndex::new(0);
    assert_eq!(
        after.place_on(dev, after.chunk_offset(chunk)),
        before.place_on(dev, before.chunk_offset(chunk))
    );
    let last = after.sibling(3);
    let end = after.whole_main_bytes();
    assert_eq!(last.place_on(dev, last.main_device_bytes() - 1), end - 1);
    assert_eq!(after.room_of(end).max(after.main_device_bytes()), after.main_device_bytes());
    let volumes = [before, after.sibling(0)];
    let map = ArrayConfig::interleave_of(volumes.iter()).unwrap();
    assert_eq!(map, before.interleave());
    // A copy of a chunk is in one piece.
    let in_place = ArrayConfig {
        scheme: SchemeKind::Raid,
        geometry: Geometry::new(4, 2, 8192).unwrap(),
        log_count: 0,
        log_blocks: 0,
        payload_blocks: 64,
        moved: Moved { metadata_start_bytes: data_start_bytes + 2000 * 8192 + 4096, ..moved },
        shard: Shard { log_stride_bytes: 0, main_stride_bytes: 24 << 20, ..second_of_four() },
        ..after
    };
    let error = in_place.validate().unwrap_err().to_string();
    assert!(error.contains("start of the payload ring"), "{error}");
    assert_eq!(in_place.with_aligned_payload().validate(), Ok(()));
}

#[test]
fn what_does_not_fit_is_refused() {
    assert_eq!(refused(|shard| shard.count = 65), "number of shards");
    assert_eq!(refused(|shard| shard.count = 0), "number of shards");
    assert_eq!(refused(|shard| shard.index = 4), "number of the shard");
    for unit in [0, 4096, (1 << 20) + 4096, 15 << 20] {
        assert_eq!(refused(|shard| shard.unit_bytes = unit), "unit of the shards");
    }
    for stride in [0, 4 << 20, (6 << 20) + 4096] {
        assert_eq!(refused(|shard| shard.main_stride_bytes = stride), "stride of main devices");
    }
    for stride in [0, 3 << 20, (4 << 20) + 4096] {
        assert_eq!(refused(|shard| shard.log_stride_bytes = stride), "stride of log devices");
    }
    assert_eq!(
        refused(|shard| *shard = Shard { count: 1, ..Shard::SINGLE.sibling(1) }),
        "number of the shard"
    );
    assert_eq!(
        refused(|shard| *shard = Shard { unit_bytes: 1 << 20, ..Shard::SINGLE }),
        "unit of the shards"
    );
}

#[test]
fn no_two_shards_have_one_uuid() {
    let array = ArrayUuid::new(*b"0123456789abcdef");
    let mut seen: Vec<ArrayUuid> = (0..SHARDS_MAX).map(|index| array.of_shard(index)).collect();
    assert_eq!(seen[0], array);
    assert!((0..SHARDS_MAX).all(|index| seen[usize::from(index)].of_shard(index) == array));
    seen.sort_unstable_by_key(ArrayUuid::bytes);
    seen.dedup();
    assert_eq!(seen.len(), usize::from(SHARDS_MAX));
}
