//! What is said of the memory that an array takes, against what it takes.

use super::*;
use crate::create::{CreateOptions, plan_config};
use crate::store::Store;
use block::Geometry;
use format::{CodeKind, Consistency, LayoutKind, PAGE_WORDS, SchemeKind};

fn config(scheme: SchemeKind, data_count: usize, main_bytes: u64, log_bytes: u64) -> ArrayConfig {
    let options = CreateOptions {
        scheme,
        code: CodeKind::Cauchy,
        layout: LayoutKind::Rotate,
        consistency: Consistency::Journal,
        geometry: Geometry::new(data_count, 2, 4096).expect("a sound geometry"),
        reserve_permille: 200,
        unit_rows: None,
    };
    let logs = if scheme.has_log() { 2 } else { 0 };
    plan_config(&options, main_bytes, log_bytes, logs).expect("devices with room")
}

const SCHEMES: [SchemeKind; 5] =
    [SchemeKind::Eplog, SchemeKind::Raid, SchemeKind::ParityLog, SchemeKind::Elastic, SchemeKind::Was];

#[test]
fn what_is_computed_of_the_tables_is_what_they_take() {
    for scheme in SCHEMES {
        for (data_count, main_bytes) in [(2, 40 << 20), (6, 100 << 20), (13, 33 << 20)] {
            let mut store =
                Store::new(config(scheme, data_count, main_bytes, 64 << 20)).expect("a known code");
            // Every page is written.
            let words = [1; PAGE_WORDS];
            assert!((0..store.table.page_count()).all(|page| store.table.load_page(page, &words)));
            let spaces: u64 = store.spaces.iter().map(|space| space.memory_bytes()).sum();
            let taken =
                store.table.memory_bytes() + spaces + scheme::new(&store, u64::MAX).memory().fixed_bytes;
            let need = MemoryNeed::of_shape(&store.config);
            assert_eq!(need.tables_bytes, taken, "{scheme} {data_count}+2");
        }
    }
}

#[test]
fn no_size_of_devices_overflows_and_more_chunks_take_more() {
    for scheme in SCHEMES {
        // Elastic places are 32 bits wide.
        let small = config(scheme, 4, 1 << 30, 1 << 30);
        let large = config(scheme, 4, 3 << 40, 16 << 40);
        let (small, large) = (MemoryNeed::of_shape(&small), MemoryNeed::of_shape(&large));
        assert!(large.tables_bytes > 3000 * small.tables_bytes, "{scheme}");
        assert!(large.total_bytes() > large.tables_bytes + large.checkpoint_bytes);
        assert!(large.total_bytes() < 1 << 40, "{scheme}: {large:?}");
    }
}

#[test]
fn memory_that_cannot_be_had_is_an_error() {
    let need = MemoryNeed { tables_bytes: 1 << 62, ..MemoryNeed::default() };
    assert_eq!(need.check_granted(), Err(AssembleError::Memory { bytes: 1 << 62 }));
    let need = MemoryNeed { tables_bytes: u64::MAX, buffers_bytes: 7, ..MemoryNeed::default() };
    assert_eq!(need.check_granted(), Err(AssembleError::Memory { bytes: u64::MAX }));
    assert_eq!(MemoryNeed::default().check_granted(), Ok(()));
}

/// What may wait for a commit follows what the table may take, from 32 MiB of a list on.
#[test]
fn more_memory_for_the_table_lets_more_updates_wait() {
    let config = config(SchemeKind::Eplog, 6, 64 << 30, 64 << 30);
    let waiting = |table_bytes: u64| {
        let options = EngineOptions { table_bytes, ..EngineOptions::default() };
        MemoryNeed::of(&config, &options).expect("memory can be had").uncommitted_bytes
    };
    assert_eq!(waiting(0), waiting(512 << 20));
    assert!(waiting(1 << 30) > waiting(512 << 20) * 3 / 2);
    assert!(waiting(2 << 30) > waiting(1 << 30) * 3 / 2);
    assert_eq!(waiting(4 << 30), waiting(u64::MAX), "there is no more room on the devices");
}
