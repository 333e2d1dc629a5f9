//! Laws of conservation, determinism and memory, over all kinds of configurations.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use block::{Random as _, XoshiroPlusPlus};
use flash::{
    Buffering, DynamicCap, FreeOrder, GcFrontier, GcPolicy, Geometry, MappingOptions, Separation, SlcCap,
    SlcOptions, Ssd, SsdConfig, StreamOptions, Tag, Timing, WearLevelling,
};

const TIMING: Timing = Timing {
    read_ns: [35_000, 20_000],
    program_ns: [390_000, 180_000],
    erase_ns: 4_000_000,
    transfer_ns: 10_000,
    link_ns: 2_000,
    command_ns: 5_000,
    buffering: Buffering::Volatile(32),
};

/// A configuration drawn from a seed, and made valid by adding blocks.
fn draw(random: &mut XoshiroPlusPlus) -> SsdConfig {
    let pick = |random: &mut XoshiroPlusPlus, of: &[u32]| of[random.index(of.len())];
    let pages_per_block = pick(random, &[4, 12, 16, 60, 64]);
    let dies = pick(random, &[1, 2, 4]);
    let geometry = Geometry {
        channels: if dies > 1 { 2 } else { 1 },
        dies_per_channel: if dies > 1 { dies / 2 } else { 1 },
        planes_per_die: pick(random, &[1, 2]),
        blocks_per_plane: 1,
        pages_per_block,
        summary_pages_per_block: 0,
        page_bytes: 4096,
    };
    let gc = match random.below_u32(4) {
        0 => GcPolicy::Greedy,
        1 => GcPolicy::CostBenefit,
        2 => GcPolicy::Fifo,
        _ => GcPolicy::DChoices(1 + random.below_u32(5)),
    };
    let separation = [Separation::None, Separation::Parity, Separation::Class, Separation::All];
    let separation = separation[random.below_u32(4) as usize];
    let apart = matches!(separation, Separation::Class | Separation::All);
    let cap = match random.below_u32(4) {
        0 => SlcCap::Dynamic(DynamicCap { slack: 0.05 }),
        1 => SlcCap::Dynamic(DynamicCap { slack: f64::INFINITY }),
        _ => SlcCap::Share(random.unit()),
    };
    let slc = SlcOptions { cap, pages_per_block: pages_per_block / 2, stress_ratio: 2.5 };
    let mapping =
        MappingOptions { cache_bytes: 16 * u64::from(64 + random.below_u32(2000)), entry_bytes: 16 };
    let mut config = SsdConfig {
        geometry,
        logical_pages: u64::from(500 + random.below_u32(4000)),
        free_blocks_min: 1 + random.below_u32(6),
        domains: if random.below_u32(4) == 0 { dies } else { 1 },
        ways: 1,
        gc,
        gc_frontier: if random.below_u32(2) == 0 { GcFrontier::Shared } else { GcFrontier::Separate },
        streams: StreamOptions {
            separation,
            limit: 1 + random.below_u32(6) as u8,
            parity_classes: if apart { 1 + random.below_u32(4) as u8 } else { 1 },
        },
        mapping: (random.below_u32(2) == 0).then_some(mapping),
        wear_levelling: WearLevelling {
            dynamic: if random.below_u32(2) == 0 { FreeOrder::Fifo } else { FreeOrder::LeastWorn },
            static_spread: (random.below_u32(3) == 0).then_some(5),
        },
        slc: (random.below_u32(2) == 0).then_some(slc),
        timing: (random.below_u32(2) == 0).then_some(TIMING),
        seed: random.word(),
    };
    config.ways = 1 + random.below_u32(geometry.planes() / config.domains);
    while let Err(error) = config.check() {
        assert_eq!(error.field, "blocks of the flash", "{error}");
        config.geometry.blocks_per_plane += 1;
    }
    config
}

/// Random requests; checks the laws now and then, and against a plain model which pages are mapped.
fn exercise(config: &SsdConfig, seed: u64) -> Ssd {
    let mut ssd = Ssd::new(config.clone()).unwrap();
    let mut random = XoshiroPlusPlus::new(seed);
    let pages = config.logical_pages as u32;
    let mut mapped = vec![false; pages as usize];
    let mut now = 0;
    let full = random.below_u32(2) == 0;
    for round in 0..6u32 {
        for _ in 0..pages {
            let hot = pages / 5;
            let page = if random.below_u32(3) > 0 { random.below_u32(hot) } else { random.below_u32(pages) };
            let count = (1 + random.below_u32(4)).min(pages - page);
            let tag = match random.below_u32(8) {
                0..3 => Tag::Data(random.below_u32(3) as u8),
                3..6 => Tag::Parity(random.below_u32(3) as u8),
                6 => Tag::Log,
                _ => Tag::Metadata,
            };
            let touched = &mut mapped[page as usize..(page + count) as usize];
            let end = match random.below_u32(if full { 18 } else { 20 }) {
                0..16 => {
                    touched.fill(true);
                    ssd.write(u64::from(page), u64::from(count), tag, now).unwrap()
                }
                16 => ssd.read(u64::from(page), u64::from(count), now).unwrap(),
                17 => ssd.flush(now),
                _ => {
                    touched.fill(false);
                    ssd.trim(u64::from(page), u64::from(count), now).unwrap()
                }
            };
            assert!(end >= now);
            now += u64::from(random.below_u32(200_000));
        }
        if full && round == 0 {
            // 100 % utilization from here on.
            mapped.fill(true);
            ssd.write(0, u64::from(pages), Tag::Parity(0), now).unwrap();
        }
        ssd.check().unwrap_or_else(|broken| panic!("{broken}: {config:?}"));
        assert_eq!(ssd.mapped_pages(), mapped.iter().filter(|&&is| is).count() as u64);
        if round == 2 {
            ssd.reset_counters();
        }
    }
    ssd
}

#[test]
fn laws_hold_for_every_kind_of_ssd_also_when_it_is_full() {
    let first = 7_000;
    for seed in first..first + 150 {
        let config = draw(&mut XoshiroPlusPlus::new(seed));
        println!("seed {seed}");
        exercise(&config, seed);
    }
}

#[test]
fn the_same_seed_gives_the_same_counts_and_times() {
    for seed in 100..110 {
        let config = draw(&mut XoshiroPlusPlus::new(seed));
        let (mut a, mut b) = (exercise(&config, seed), exercise(&config, seed));
        assert_eq!(a.counters(), b.counters());
        assert_eq!(a.wear(), b.wear());
        assert_eq!(a.read(0, 100, u64::MAX / 2), b.read(0, 100, u64::MAX / 2));
    }
}

#[test]
fn ten_bytes_of_memory_per_flash_page_are_enough() {
    let mut config = SsdConfig::counting(1 << 18, 1.07, 64, 4096).unwrap();
    config.slc = Some(SlcOptions { cap: SlcCap::Share(0.3), pages_per_block: 32, stress_ratio: 2.5 });
    config.streams = StreamOptions { separation: Separation::All, ..StreamOptions::default() };
    let plain = Ssd::new(config.clone()).unwrap();
    let per_page = |ssd: &Ssd| ssd.memory_bytes() as f64 / ssd.config().geometry.raw_pages() as f64;
    assert!(per_page(&plain) < 9.0, "{}", per_page(&plain));
    // DFTL with a tenth of the map cached.
    config.mapping = Some(MappingOptions { cache_bytes: (1 << 18) * 8 / 10, entry_bytes: 8 });
    let cached = Ssd::new(config).unwrap();
    assert!(per_page(&cached) <= 10.0, "{}", per_page(&cached));
}

#[test]
fn bad_configurations_and_requests_are_named() {
    let good = SsdConfig::counting(64_000, 1.1, 64, 4096).unwrap();
    let said = |config: SsdConfig| Ssd::new(config).unwrap_err().to_string();
    assert_eq!(said(SsdConfig { domains: 3, ..good.clone() }), "domains: found 3, expected 1 to 1");
    let tight = said(SsdConfig { logical_pages: 1100 * 64, ..good.clone() });
    assert!(tight.starts_with("blocks of the flash: found 1103, expected at least 1105"), "{tight}");
    assert!(said(SsdConfig { gc: GcPolicy::DChoices(0), ..good.clone() }).contains("d-choices"));
    let zero = Timing { read_ns: [0, 1], ..TIMING };
    assert!(said(SsdConfig { timing: Some(zero), ..good.clone() }).contains("read and program times"));
    assert!(SsdConfig::counting(64_000, f64::NAN, 64, 4096).is_err());
    assert!(SsdConfig::counting(u64::MAX, 1.1, 64, 4096).is_err());
    assert!(SsdConfig::counting(64, 1.1, 0, 4096).is_err());
    let mut ssd = Ssd::new(good).unwrap();
    for (page, count) in [(64_000, 1), (63_999, 2), (u64::MAX, 1), (1, u64::MAX)] {
        let error = ssd.write(page, count, Tag::Data(0), 0).unwrap_err();
        assert_eq!(error, ssd.read(page, count, 0).unwrap_err());
        assert_eq!(error, ssd.trim(page, count, 0).unwrap_err());
        assert!(error.to_string().contains("expected them below page 64000"), "{error}");
    }
    assert_eq!(ssd.write(64_000, 0, Tag::Data(0), 5), Ok(5));
    ssd.check().unwrap();
}
