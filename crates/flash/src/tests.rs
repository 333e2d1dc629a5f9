//! What needs a look inside: streams in blocks of their own, modes of blocks, wear levelling.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use crate::ftl::{NONE, State};
use crate::*;

fn small(spare: f64) -> SsdConfig {
    SsdConfig::counting(200 * 32, spare, 32, 4096).unwrap()
}

/// Writes with a tag that belongs to the page, so that a block's tags can be told from its pages.
fn write_all(ssd: &mut Ssd, tags: &[Tag], rounds: u64) {
    let mut random = Random::new(3);
    let pages = ssd.logical_pages();
    for _ in 0..rounds * pages {
        let page = u64::from(random.below(pages as u32));
        ssd.write(page, 1, tags[page as usize % tags.len()], 0).unwrap();
    }
    ssd.check().unwrap();
}

/// Requirements P-02 and P-05.
#[test]
fn pages_of_different_streams_never_share_a_block_not_even_after_gc() {
    let tags = [Tag::Data(0), Tag::Parity(0), Tag::Log, Tag::Metadata, Tag::Parity(1)];
    for frontier in [GcFrontier::Shared, GcFrontier::Separate] {
        let mut config = small(1.2);
        config.streams = StreamOptions { separation: Separation::All, ..StreamOptions::default() };
        config.gc_frontier = frontier;
        config.wear_levelling = WearLevelling { dynamic: FreeOrder::LeastWorn, static_spread: Some(3) };
        config.geometry.blocks_per_plane += 20;
        let mut ssd = Ssd::new(config).unwrap();
        write_all(&mut ssd, &tags, 12);
        assert_eq!(ssd.streams_in_use(), 5);
        let ftl = &ssd.domains[0];
        let mut kinds = vec![None; ftl.blocks.len()];
        for (lpn, &page) in ftl.map.iter().enumerate().filter(|&(_, &page)| page != NONE) {
            let kind = kinds[ftl.block_of(page) as usize].get_or_insert(lpn % tags.len());
            assert_eq!(*kind, lpn % tags.len(), "{frontier:?}");
        }
    }
}

#[test]
fn separate_streams_copy_less_and_do_not_help_uniform_data() {
    // Parity, a seventh of the pages, takes half of the writes.
    let run = |separation| {
        let mut config = small(1.5);
        config.streams = StreamOptions { separation, ..StreamOptions::default() };
        let mut ssd = Ssd::new(config).unwrap();
        let options = RunOptions { parity_writes: 0.5, parity_space: 1.0 / 7.0, ..RunOptions::default() };
        Run::new(&options, ssd.logical_pages()).unwrap().finish(&mut ssd).unwrap();
        ssd.counters().page_copies as f64
    };
    let (together, apart) = (run(Separation::None), run(Separation::Parity));
    assert!(apart < 0.9 * together, "{together} {apart}");
}

/// Requirement L-18.
#[test]
fn the_device_sorts_parity_by_how_long_it_lives() {
    let run = |parity_classes| {
        let mut config = small(1.3);
        config.streams = StreamOptions { separation: Separation::Class, limit: 8, parity_classes };
        let mut ssd = Ssd::new(config).unwrap();
        let mut random = Random::new(8);
        // A tenth of the parity takes nine tenths of its writes.
        let pages = ssd.logical_pages() as u32;
        for round in 0..2 {
            for _ in 0..20 * pages {
                let hot = random.below(10) > 0;
                let page = if hot { random.below(pages / 10) } else { random.below(pages) };
                ssd.write(u64::from(page), 1, Tag::Parity(0), 0).unwrap();
            }
            if round == 0 {
                ssd.reset_counters();
            }
        }
        ssd.check().unwrap();
        ssd.counters().page_copies as f64
    };
    let (one, two) = (run(1), run(2));
    assert!(two < 0.9 * one, "{one} {two}");
}

/// Requirements P-06 to P-11.
#[test]
fn parity_blocks_are_in_slc_mode_up_to_the_cap() {
    for share in [0.0, 0.3, 1.0] {
        let mut config = small(1.5);
        config.streams = StreamOptions { separation: Separation::Parity, ..StreamOptions::default() };
        config.slc = Some(SlcOptions { cap: SlcCap::Share(share), pages_per_block: 16, stress_ratio: 2.5 });
        let mut ssd = Ssd::new(config).unwrap();
        let (_, cap) = ssd.slc_blocks();
        // Twice the over-provisioned blocks: 103 of 303.
        assert_eq!(cap, (share * 2.0 * 103.0) as u64);
        write_all(&mut ssd, &[Tag::Data(0), Tag::Data(0), Tag::Data(0), Tag::Parity(0)], 6);
        let ftl = &ssd.domains[0];
        let in_use = |info: &&ftl::BlockInfo| info.state != State::Free && info.mode == Mode::Slc;
        let slc: Vec<_> = ftl.blocks.iter().filter(in_use).collect();
        assert!(slc.iter().all(|info| ftl.slots.is_parity(info.slot) && info.valid <= 16));
        // One more while a victim's pages go into a new block.
        assert!(slc.len() as u64 <= cap + 1, "{} of {cap}", slc.len());
        assert_eq!(share > 0.0, ssd.counters().programs_slc > 0);
    }
}

/// Requirement A-24.
#[test]
fn the_cap_of_the_paper_is_896_blocks() {
    let mut config = presets::ps_vnand();
    config.streams.separation = Separation::Parity;
    config.slc = Some(presets::ps_vnand_slc(SlcCap::Share(1.0), 2.5));
    assert_eq!(Ssd::new(config).unwrap().slc_blocks().1, 896);
}

#[test]
fn wear_levelling_narrows_the_spread_of_erases() {
    let run = |wear_levelling| {
        let mut ssd = Ssd::new(SsdConfig { wear_levelling, ..small(1.2) }).unwrap();
        let pages = ssd.logical_pages();
        let mut random = Random::new(1);
        ssd.write(0, pages, Tag::Data(0), 0).unwrap();
        // Half of the pages are never written again.
        for _ in 0..60 * pages {
            ssd.write(u64::from(random.below(pages as u32 / 2)), 1, Tag::Data(0), 0).unwrap();
        }
        ssd.check().unwrap();
        ssd.wear()
    };
    let none = run(WearLevelling::default());
    let both = run(WearLevelling { dynamic: FreeOrder::LeastWorn, static_spread: Some(8) });
    assert!(none.max - none.min > 60, "{none:?}");
    assert!(both.max - both.min < 30 && both.deviation < none.deviation / 3.0, "{both:?} {none:?}");
}

#[test]
fn dftl_reads_and_writes_translation_pages_only_as_far_as_the_map_is_not_cached() {
    let run = |cache_bytes| {
        let mut config = small(1.3);
        config.mapping = Some(MappingOptions { cache_bytes, entry_bytes: 8 });
        config.geometry.blocks_per_plane += 20;
        let mut ssd = Ssd::new(config).unwrap();
        write_all(&mut ssd, &[Tag::Data(0)], 5);
        ssd.counters()
    };
    let [little, half, all] = [1024, 25_600, 51_200].map(run);
    assert!(little.translation_writes > half.translation_writes && half.translation_writes > 0);
    assert_eq!((all.translation_reads, all.translation_writes), (0, 0));
    assert!(little.write_amplification() > half.write_amplification());
}

const TIMING: Timing = Timing {
    read_ns: [35_000, 20_000],
    program_ns: [390_000, 180_000],
    erase_ns: 4_000_000,
    transfer_ns: 10_000,
    link_ns: 2_000,
    command_ns: 5_000,
    buffering: Buffering::None,
};

fn timed(dies: u32, buffering: Buffering) -> Ssd {
    let mut config = small(1.5);
    config.geometry.channels = dies;
    config.geometry.blocks_per_plane = config.geometry.blocks_per_plane.div_ceil(dies);
    config.ways = dies;
    config.timing = Some(Timing { buffering, ..TIMING });
    Ssd::new(config).unwrap()
}

#[test]
fn service_times_add_up_and_dies_work_side_by_side() {
    let mut one = timed(1, Buffering::None);
    // Command, link, channel, program.
    assert_eq!(one.write(0, 1, Tag::Data(0), 0), Ok(5_000 + 2_000 + 10_000 + 390_000));
    // The next page crosses the link and the channel while the first is programmed.
    assert_eq!(one.write(1, 1, Tag::Data(0), 0), Ok(407_000 + 390_000));
    // Command, sensing, channel, link; the plane is free by then.
    assert_eq!(one.read(0, 1, 1_000_000), Ok(1_000_000 + 5_000 + 35_000 + 10_000 + 2_000));
    assert_eq!(one.read(9, 1, 2_000_000), Ok(2_005_000), "never written: nothing to read");
    assert_eq!(one.flush(3_000_000), 3_005_000);
    let mut four = timed(4, Buffering::None);
    // Four pages on four channels: one link after the other, then all at once.
    assert_eq!(four.write(0, 4, Tag::Data(0), 0), Ok(5_000 + 4 * 2_000 + 10_000 + 390_000));
}

#[test]
fn a_buffer_answers_early_until_it_is_full_and_a_flush_waits_if_it_is_volatile() {
    let mut volatile = timed(1, Buffering::Volatile(2));
    assert_eq!(volatile.write(0, 2, Tag::Data(0), 0), Ok(9_000));
    // Full: waits for the first page to be programmed.
    assert_eq!(volatile.write(2, 1, Tag::Data(0), 10_000), Ok(407_000));
    assert_eq!(volatile.flush(20_000), 407_000 + 2 * 390_000);
    let mut protected = timed(1, Buffering::Protected(2));
    protected.write(0, 2, Tag::Data(0), 0).unwrap();
    assert_eq!(protected.flush(20_000), 25_000);
}

#[test]
fn gc_delays_what_comes_after_it() {
    let mut ssd = timed(1, Buffering::None);
    let mut latencies = Vec::new();
    let mut run = Run::new(&RunOptions::default(), ssd.logical_pages()).unwrap();
    let mut queue = Queue::new(1);
    while run.step(&mut ssd, u64::MAX, &mut queue, |latency| latencies.push(latency)).unwrap() {}
    latencies.sort_unstable();
    assert_eq!(latencies[0], 407_000, "a write with nothing before it");
    let worst = latencies[latencies.len() - 1];
    assert!(worst > 4_407_000, "an erase at least, and copies: {worst}");
    // Time is conserved: one plane, so no more than its programs, reads and erases, and what
    // overlaps with nothing.
    let counters = ssd.counters();
    let busy = counters.flash_pages_written() * 390_000
        + counters.page_copies * 35_000
        + counters.erases * 4_000_000;
    let spent: u64 = latencies.iter().sum();
    assert!(spent > busy && spent < busy + busy / 5, "{spent} {busy}");
}
