//! A table that takes more memory than it may: pages come and go, and nothing else changes.

use crate::common::*;
use array::{Array, ArrayState, EngineError, EngineOptions, Event};
use block::{DevIndex, Durability};
use device::MemorySet;
use format::{CheckpointKind, Consistency, SchemeKind};
use std::collections::BTreeMap;

const CHUNK: u64 = 4096;
const K: usize = 3;
const M: usize = 2;
/// A page with its frame takes more than 4096 bytes.
const PAGE_BYTES: u64 = 4300;

/// With room for a few pages.
fn few_pages() -> EngineOptions {
    EngineOptions { table_bytes: 6 * PAGE_BYTES, batch_max: 16, ..options() }
}

struct Bench {
    array: Array<MemorySet>,
    members: usize,
    /// What was written to each chunk of the volume.
    expected: BTreeMap<u64, u8>,
    state: u64,
}

impl Bench {
    fn new(scheme: SchemeKind) -> Self {
        let create = array::CreateOptions {
            consistency: Consistency::Journal,
            layout: format::LayoutKind::Rotate,
            ..create_options(scheme, K, M)
        };
        let logs = if scheme.has_log() { M } else { 0 };
        let members = K + M + logs;
        let (array, _) = assemble(fresh(&create, 20, 16), members, few_pages());
        let pages = array.engine_ref().store().table.page_count();
        assert!(pages > 20, "{pages} pages, of which 6 may be in memory");
        Self { array, members, expected: BTreeMap::new(), state: 7 }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % below
    }

    fn chunks(&self) -> u64 {
        let config = &self.array.engine_ref().store().config;
        config.stripe_count * K as u64
    }

    /// Writes so many single chunks anywhere.
    fn write_anywhere(&mut self, count: u64) {
        for _ in 0..count {
            let (lcn, byte) = (self.random(self.chunks()), self.random(250) as u8 + 1);
            write(&mut self.array, lcn * CHUNK, &[byte; CHUNK as usize], Durability::Volatile).unwrap();
            self.expected.insert(lcn, byte);
        }
    }

    /// Everything that was written can be read.
    fn check(&mut self) {
        for (&lcn, &byte) in &self.expected {
            let found = read(&mut self.array, lcn * CHUNK, CHUNK).unwrap();
            assert!(found.iter().all(|&other| other == byte), "chunk {lcn}: {} for {byte}", found[0]);
        }
    }

    /// Pages that are clean, so that they can go.
    fn checkpoint(&mut self) {
        self.array.run(|e, tag| e.write_checkpoint(tag, CheckpointKind::Full)).unwrap();
    }

    fn restart(self, in_order: bool) -> Self {
        let Self { mut array, members, expected, state } = self;
        if in_order {
            array.stop().unwrap();
        } else {
            array.run(|e, tag| e.flush(tag)).unwrap();
        }
        let (array, _) = assemble(array.into_devices(), members, few_pages());
        Self { array, members, expected, state }
    }

    fn table_bytes(&self) -> u64 {
        self.array.engine_ref().store().table.memory_bytes()
    }
}

#[test]
fn what_is_written_is_read_again_and_memory_stays_bounded() {
    for scheme in [SchemeKind::Eplog, SchemeKind::Raid, SchemeKind::ParityLog] {
        let mut bench = Bench::new(scheme);
        for round in 0..4 {
            bench.write_anywhere(300);
            bench.array.run(|e, tag| e.commit(tag)).unwrap();
            bench.check();
            let stats = bench.array.engine_ref().stats();
            assert!(stats.pages_read > 100, "{scheme:?}: pages were read: {stats:?}");
            // Requests of this test come one by one, but a commit takes many stripes at once.
            let bytes = bench.table_bytes();
            assert!(bytes < 40 * PAGE_BYTES, "{scheme:?}: {bytes} bytes for the table");
            bench = bench.restart(round % 2 == 0);
            bench.check();
        }
    }
}

#[test]
fn an_array_that_fits_reads_no_page() {
    let create = create_options(SchemeKind::Eplog, K, M);
    let (mut array, _) = assemble(fresh(&create, 20, 16), K + 2 * M, options());
    assert!(!array.engine_ref().store().table.is_paged());
    for stripe in 0..array.engine_ref().store().config.stripe_count {
        write(&mut array, stripe * K as u64 * CHUNK, &[1; CHUNK as usize], Durability::Volatile).unwrap();
    }
    array.run(|e, tag| e.write_checkpoint(tag, CheckpointKind::Full)).unwrap();
    assert_eq!(array.engine_ref().stats().pages_read, 0);
}

#[test]
fn discards_scrub_and_rebuild_bring_in_what_they_need() {
    for scheme in [SchemeKind::Eplog, SchemeKind::Raid, SchemeKind::ParityLog] {
        let mut bench = Bench::new(scheme);
        bench.write_anywhere(400);
        bench.checkpoint();
        let (first, count) = (bench.chunks() / 4, bench.chunks() / 2);
        discard(&mut bench.array, first * CHUNK, count * CHUNK).unwrap();
        for (_, byte) in bench.expected.range_mut(first..first + count) {
            *byte = 0;
        }
        bench.check();
        bench.array.run(|e, tag| e.scrub(tag, 0)).unwrap();
        assert_eq!(bench.array.engine_ref().last_report().lost, 0);
        let dev = DevIndex::new(1);
        bench.array.engine().fail_device(dev);
        bench.array.settle();
        bench.write_anywhere(50);
        bench.array.devices().bytes_mut(dev).fill(0);
        bench.array.run(|e, tag| e.rebuild(tag, dev, 77)).unwrap();
        assert_eq!(bench.array.engine_ref().health().array_state(), ArrayState::Healthy);
        bench.check();
        bench.restart(true).check();
    }
}

/// Hurts a copy of a page of the table in the slot that counts.
fn hurt(array: &mut Array<MemorySet>, page: usize, copy: usize) -> DevIndex {
    let store = array.engine_ref().store();
    let slots = store.table.slots();
    let (dev, block) = slots.area().place(page, copy, slots.state(page).slot());
    let offset = store.config.page_offset(block) as usize;
    array.devices().bytes_mut(dev)[offset + 100] ^= 1;
    dev
}

/// A page that is not in memory, and a chunk of which it speaks.
fn absent(bench: &Bench) -> (usize, u64) {
    let store = bench.array.engine_ref().store();
    let mut lcns = bench.expected.keys().copied();
    let stripe_of = |lcn: u64| store.config.geometry.stripe_of(block::Lcn::new(lcn));
    let lcn = lcns.find(|&lcn| store.table.lacks(stripe_of(lcn))).expect("most are absent");
    (store.table.page_of(stripe_of(lcn)), lcn)
}

#[test]
fn a_bad_copy_of_a_page_is_read_past_and_written_anew() {
    let mut bench = Bench::new(SchemeKind::Eplog);
    bench.write_anywhere(400);
    bench.checkpoint();
    let (page, lcn) = absent(&bench);
    let hurt: Vec<DevIndex> = (0..M).map(|copy| hurt(&mut bench.array, page, copy)).collect();
    let byte = bench.expected[&lcn];
    assert_eq!(read(&mut bench.array, lcn * CHUNK, CHUNK).unwrap()[0], byte);
    for dev in hurt {
        let errors = bench.array.engine_ref().health().members()[dev.index()].errors;
        assert_eq!(errors.checksum, 1, "{dev}");
    }
    // The checkpoint that follows has every copy whole: the last m go, too.
    bench.array.settle();
    let (store, area) = (bench.array.engine_ref().store(), bench.array.engine_ref().store().table.slots());
    let state = area.state(page);
    let places: Vec<_> = (0..=M).map(|copy| area.area().place(page, copy, state.slot())).collect();
    let offsets = places.iter().map(|&(dev, block)| (dev, store.config.page_offset(block)));
    let copies: Vec<_> = offsets.collect();
    let array = bench.array.engine_ref().journal().array();
    for ((dev, offset), (_, block)) in copies.into_iter().zip(places) {
        let bytes = &bench.array.devices_ref().bytes(dev)[offset as usize..][..4096];
        let expect = format::PageExpect { array, dev, area: format::PAGE_AREA, block, number: None };
        let found = format::decode_page(bytes, &expect).unwrap();
        assert!(state.fits(found.number));
    }
}

#[test]
fn a_page_that_is_nowhere_whole_freezes_the_array_and_is_named() {
    let mut bench = Bench::new(SchemeKind::Eplog);
    bench.write_anywhere(400);
    bench.checkpoint();
    let (page, lcn) = absent(&bench);
    (0..=M).for_each(|copy| {
        hurt(&mut bench.array, page, copy);
    });
    let mut events = Vec::new();
    bench.array.engine().take_events(&mut events);
    let failed = read(&mut bench.array, lcn * CHUNK, CHUNK).unwrap_err();
    assert_eq!(failed, EngineError::Unreadable { lcn: block::Lcn::new(lcn) });
    assert_eq!(bench.array.engine_ref().health().array_state(), ArrayState::Failed);
    events.clear();
    bench.array.engine().take_events(&mut events);
    assert_eq!(events, [Event::PageLost { page }]);
    let refused = write(&mut bench.array, 0, &[1; CHUNK as usize], Durability::Volatile);
    assert_eq!(refused, Err(EngineError::ArrayFailed));
    // What other pages speak of can be read, and so it is after the next start, which does not look at all of
    // them.
    let store = bench.array.engine_ref().store();
    let page_of = |lcn: u64| store.table.page_of(store.config.geometry.stripe_of(block::Lcn::new(lcn)));
    let others: Vec<u64> = bench.expected.keys().copied().filter(|&lcn| page_of(lcn) != page).collect();
    for lcn in others {
        assert_eq!(read(&mut bench.array, lcn * CHUNK, CHUNK).unwrap()[0], bench.expected[&lcn]);
    }
    let mut devices = bench.array.into_devices();
    let found = superblocks(&mut devices, bench.members);
    let arrangement = array::arrange(&found).unwrap();
    let (mut again, _) = Array::assemble(devices, &arrangement, 4242, few_pages()).unwrap();
    assert_eq!(read(&mut again, lcn * CHUNK, CHUNK), Err(failed));
    assert_eq!(again.engine_ref().health().array_state(), ArrayState::Failed);
}

/// What a discard freed waits, when a start replays it, for pages that are absent, but no more of it than the
/// list of the checkpoint that ends the start has room for: there must be one, whatever else it has to say.
#[test]
fn what_replay_frees_waits_only_as_far_as_a_list_has_room() {
    for missing in [None, Some(1)] {
        let mut bench = Bench::new(SchemeKind::Eplog);
        for lcn in 0..bench.chunks() {
            write(&mut bench.array, lcn * CHUNK, &[7; CHUNK as usize], Durability::Volatile).unwrap();
        }
        bench.array.run(|e, tag| e.commit(tag)).unwrap();
        bench.checkpoint();
        // So little that no checkpoint is due for it before power fails.
        let discarded = bench.chunks() / 8;
        discard(&mut bench.array, 0, discarded * CHUNK).unwrap();
        bench.array.run(|e, tag| e.flush(tag)).unwrap();
        let (chunks, mut devices) = (bench.chunks(), bench.array.into_devices());
        let mut found = superblocks(&mut devices, bench.members);
        missing.map(|dev| found.remove(dev));
        let arrangement = array::arrange(&found).unwrap();
        let (mut again, report) = Array::assemble(devices, &arrangement, 4242, few_pages()).unwrap();
        assert!(report.replayed > 0, "the discard was replayed: {report:?}");
        let store = again.engine_ref().store();
        let room = u64::from(store.config.chunks_per_device) * 5 / 64 + 64;
        let waiting = store.table.later_count();
        assert!(waiting <= room, "{waiting} bits wait, room is for {room}");
        for lcn in 0..chunks {
            let expected = if lcn < discarded { 0 } else { 7 };
            assert_eq!(read(&mut again, lcn * CHUNK, CHUNK).unwrap()[0], expected, "chunk {lcn}");
        }
        again.run(|e, tag| e.scrub(tag, 0)).unwrap();
        assert_eq!(again.engine_ref().last_report().lost, 0);
    }
}

/// The newest full checkpoint cannot be read, and the one before it has to do: the table takes no more memory
/// than it may for that.
#[test]
fn a_checkpoint_that_has_to_do_leaves_the_bound_of_memory() {
    let mut bench = Bench::new(SchemeKind::Eplog);
    bench.write_anywhere(200);
    bench.array.run(|e, tag| e.flush(tag)).unwrap();
    bench.checkpoint();
    bench.checkpoint();
    let config = bench.array.engine_ref().store().config;
    let area = usize::from(bench.array.engine_ref().checkpoint_place().area);
    let Bench { array, members, expected, state } = bench;
    let mut devices = array.into_devices();
    for dev in (0..5).map(DevIndex::new) {
        devices.bytes_mut(dev)[config.full_offset(area, 1) as usize + 100] ^= 1;
    }
    let (array, _) = assemble(devices, members, few_pages());
    assert!(array.engine_ref().store().table.is_paged());
    Bench { array, members, expected, state }.check();
}
