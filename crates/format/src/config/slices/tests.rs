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
    assert_eq!(extents[7], Extent { origin_bytes: 4 << 20, length_bytes: 4 << 20 });
    // 900 stripes of 16 KiB are 14 units and a rest that nobody uses.
    assert_eq!(second.whole_volume_bytes(), 56 << 20);
    let single = config(Shard::SINGLE);
    assert_eq!(single.whole_volume_bytes(), single.volume_bytes());
    assert_eq!(single.whole_main_bytes(), single.main_device_bytes());
    assert!(single.slice_extents().is_empty());
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
