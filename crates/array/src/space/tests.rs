//! Tests of free space: bits in memory and bits in the table.

use super::*;
use block::Geometry;
use format::{ArrayConfig, CodeKind, Consistency, LayoutKind, SchemeKind};

/// The bits in memory, and in the table of an array of two devices.
fn benches(chunks: u32, set_aside: u32) -> [(Space, Table); 2] {
    let config = ArrayConfig {
        scheme: SchemeKind::Eplog,
        code: CodeKind::Xor,
        layout: LayoutKind::Rotate,
        consistency: Consistency::Resync,
        geometry: Geometry::new(1, 1, 4096).expect("valid"),
        log_count: 1,
        stripe_count: 10,
        chunks_per_device: chunks,
        log_blocks: 600,
        full_blocks: 100,
        incremental_blocks: 64,
        journal_blocks: 128,
        payload_blocks: 0,
        page_blocks: 100,
        unit_rows: 0,
        shard: format::Shard::SINGLE,
        moved: format::Moved::NEVER,
    };
    let table = || Table::new(&config);
    [
        (Space::new(chunks, set_aside), table()),
        (Space::in_table(DevIndex::new(1), chunks, set_aside), table()),
    ]
}

fn used(space: &Space, table: &Table) -> (Vec<bool>, u32) {
    let used = (0..=space.chunk_count() + 1).map(|chunk| space.is_used(table, ChunkIndex::new(chunk)));
    (used.collect(), space.free_count())
}

fn run(first: u32, end: u32) -> (ChunkIndex, ChunkIndex) {
    (ChunkIndex::new(first), ChunkIndex::new(end))
}

const RUNS: [(u32, u32); 9] =
    [(1, 2), (1, 32), (1, 33), (31, 33), (32, 64), (63, 200), (2, 301), (300, 301), (7, 7)];

#[test]
fn a_run_is_claimed_and_released_like_its_chunks_one_by_one() {
    for (first, end) in RUNS {
        for ((mut one, mut in_one), (mut other, mut in_other)) in
            benches(300, 0).into_iter().zip(benches(300, 0))
        {
            (first..end).for_each(|chunk| assert!(one.claim(&mut in_one, ChunkIndex::new(chunk))));
            let (from, to) = run(first, end);
            assert_eq!(other.claim_run(&mut in_other, from, to), Ok(()));
            assert_eq!(used(&one, &in_one), used(&other, &in_other), "{first}..{end}");
            (first..end).for_each(|chunk| one.release(&mut in_one, ChunkIndex::new(chunk)));
            other.release_run(&mut in_other, from, to);
            assert_eq!(used(&one, &in_one), used(&other, &in_other), "{first}..{end}");
            assert_eq!(one.free_count(), 300);
        }
    }
    for (mut space, mut table) in benches(300, 0) {
        assert!(space.claim(&mut table, ChunkIndex::new(130)));
        let mut claim = |first, end| {
            let (from, to) = run(first, end);
            space.claim_run(&mut table, from, to)
        };
        assert_eq!(claim(1, 300), Err(ChunkIndex::new(130)));
        assert_eq!(claim(140, 900), Err(ChunkIndex::new(301)));
        assert!(space.is_used(&table, ChunkIndex::new(129)) && space.is_used(&table, ChunkIndex::new(300)));
        assert_eq!(space.free_count(), 9, "131 to 139");
    }
}

#[test]
fn a_stretch_is_free_when_all_of_its_chunks_are() {
    for count in [1, 8, 32, 64, 128] {
        for (mut space, mut table) in benches(300, 0) {
            let free = |space: &Space, table: &Table| {
                (0..512).filter(|&at| space.is_stretch_free(table, at, count)).count()
            };
            let whole = (1..300 / count).count() + usize::from(300 % count == count - 1);
            let expected = if count == 1 { 300 } else { whole };
            assert_eq!(free(&space, &table), expected, "stretches of {count}");
            assert!(space.claim(&mut table, ChunkIndex::new(140)));
            assert!(!space.is_stretch_free(&table, 140 / count, count));
            // Whoever has no neighbours in its word may have some in another.
            let may_be_free = |chunk: u32| !space.has_neighbours(&table, ChunkIndex::new(chunk), count);
            for chunk in (1..=300).filter(|&chunk| chunk != 140) {
                let is_free = space.is_stretch_free(&table, chunk / count, count);
                assert!(may_be_free(chunk) || !is_free, "chunk {chunk}, stretches of {count}");
            }
            let in_word = |chunk: u32| chunk / 32 == 140 / 32 && chunk / count == 140 / count;
            assert!((1..=300).filter(|&chunk| in_word(chunk)).all(|chunk| !may_be_free(chunk)));
            assert_eq!(free(&space, &table), expected - 1, "stretches of {count}");
        }
    }
}

#[test]
fn allocates_every_chunk_once_in_order_and_keeps_some_for_reclaim() {
    for (mut space, mut table) in benches(130, 10) {
        let mut leases = Leases::default();
        let mut all = |space: &mut Space, table: &mut Table, demand| -> Vec<u32> {
            let leased = std::iter::from_fn(|| space.alloc(table, demand));
            leased.map(|lease| leases.hold(DevIndex::new(0), lease).get()).collect()
        };
        let user = all(&mut space, &mut table, Demand::User);
        assert_eq!(user, (1..=120).collect::<Vec<_>>());
        let reclaim = all(&mut space, &mut table, Demand::Reclaim);
        assert_eq!(reclaim, (121..=130).collect::<Vec<_>>());
        for chunk in [5, 64, 130] {
            space.release(&mut table, ChunkIndex::new(chunk));
        }
        let again = all(&mut space, &mut table, Demand::Reclaim);
        assert_eq!(again, [5, 64, 130]);
        for chunk in [5, 0, 131].map(ChunkIndex::new) {
            assert!(!space.claim(&mut table, chunk));
        }
    }
}

#[test]
fn bits_that_differ_from_what_is_claimed_are_found() {
    let [_, (mut space, mut table)] = benches(100_000, 0);
    let mut claimed = ChunkBits::new(100_000);
    for chunk in [1, 31, 32, 31_999, 32_000, 99_999, 100_000].map(ChunkIndex::new) {
        assert!(space.claim(&mut table, chunk) && claimed.claim(chunk) && !claimed.claim(chunk));
    }
    assert_eq!(space.adopt(&table, claimed.clone()), Ok(()));
    let chunk = ChunkIndex::new(40_000);
    assert!(space.claim(&mut table, chunk));
    assert_eq!(space.adopt(&table, claimed.clone()), Err(chunk), "it leaked");
    space.release(&mut table, chunk);
    assert!(claimed.claim(chunk));
    assert_eq!(space.adopt(&table, claimed), Err(chunk), "it is free and somebody has it");
}
