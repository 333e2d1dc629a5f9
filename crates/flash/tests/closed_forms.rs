//! Write amplification of the simulator beside closed forms and public simulators, at sizes that take a
//! second; the full-length figures are in docs/measurements.md, by `elastripe flash run`.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use flash::{GcFrontier, GcPolicy, Pattern, Run, RunOptions, Ssd, SsdConfig, theory};

/// The counters' write amplification, laws checked.
fn amplification(config: SsdConfig, options: RunOptions) -> f64 {
    let mut ssd = Ssd::new(config).unwrap();
    Run::new(&options, ssd.logical_pages()).unwrap().finish(&mut ssd).unwrap();
    ssd.check().unwrap();
    ssd.counters().write_amplification()
}

#[track_caller]
fn near(found: f64, expected: f64, percent: f64) {
    let deviation = (found / expected - 1.0) * 100.0;
    assert!(
        deviation.abs() <= percent,
        "found {found}, expected {expected} within {percent} %, deviation {deviation:.3} %"
    );
}

fn uniform(blocks: u64, spare: f64) -> SsdConfig {
    SsdConfig::counting(blocks * 64, spare, 64, 4096).unwrap()
}

#[test]
fn greedy_and_uniform_against_the_mean_field() {
    let long = RunOptions { drive_writes: 6.0, ..RunOptions::default() };
    for spare in [1.07, 1.15, 1.28] {
        // 4,096 blocks: what finiteness costs is in the tolerance; at 16,384 it is 0.1 %.
        let found = amplification(uniform(4096, spare), long);
        near(found, theory::greedy(64, spare), 0.5);
    }
}

#[test]
fn greedy_on_tiny_ssds_against_the_exact_chain() {
    for (blocks, np, logical) in [(6u32, 2u8, 9u32), (5, 3, 11), (6, 4, 18), (8, 4, 27), (12, 2, 21)] {
        let exact = theory::greedy_finite(blocks, np, logical).unwrap();
        let mut config = uniform(64, 1.2);
        config.geometry = flash::Geometry::single_die(blocks + 1, u32::from(np), 4096);
        config.logical_pages = u64::from(logical);
        config.free_blocks_min = 1;
        let options =
            RunOptions { warmup: 1000.0, drive_writes: 3e6 / f64::from(logical), ..RunOptions::default() };
        near(amplification(config, options), exact, 0.25);
    }
}

#[test]
fn other_policies_against_their_mean_fields() {
    let with = |gc| SsdConfig { gc, ..uniform(2048, 1.15) };
    let long = RunOptions { drive_writes: 6.0, warmup: 5.0, ..RunOptions::default() };
    near(amplification(with(GcPolicy::Fifo), long), theory::fifo(1.15), 0.5);
    for choices in [1, 2, 10] {
        let found = amplification(with(GcPolicy::DChoices(choices)), long);
        near(found, theory::d_choices(64, 1.15, choices), 0.7);
    }
    // Under uniform writes age says nothing, so heeding it costs something.
    let found = amplification(with(GcPolicy::CostBenefit), long);
    assert!((theory::greedy(64, 1.15)..theory::d_choices(64, 1.15, 2)).contains(&found), "{found}");
}

#[test]
fn skew_hurts_unseparated_greedy_and_fifo_follows_its_closed_form() {
    let zipf =
        RunOptions { pattern: Pattern::Zipf(0.99), warmup: 6.0, drive_writes: 4.0, ..RunOptions::default() };
    // ftlsim's figures at 4,096 blocks.
    for (spare, expected) in [(1.07, 10.02), (1.15, 5.58), (1.28, 3.52)] {
        near(amplification(uniform(4096, spare), zipf), expected, 1.0);
    }
    let pages = 2048 * 64;
    let weights: Vec<f64> = (1..=pages).map(|rank| f64::from(rank).powf(-0.99)).collect();
    let sum: f64 = weights.iter().sum();
    let space = 1.0 / f64::from(pages);
    let temperatures: Vec<theory::Temperature> =
        weights.iter().map(|weight| theory::Temperature { space, writes: weight / sum }).collect();
    let fifo = SsdConfig { gc: GcPolicy::Fifo, ..uniform(2048, 1.15) };
    near(amplification(fifo, zipf), theory::fifo_mixed(1.15, &temperatures), 0.7);
}

#[test]
fn the_papers_simulators_with_their_quirks() {
    // FlashSim of the parity-stream paper: 1,024 blocks, over-provisioning 28 % of nameplate, GC at 90 % of
    // blocks used.
    let mut lim = uniform(1, 1.5);
    lim.geometry = flash::Geometry::single_die(1024, 64, 4096);
    lim.logical_pages = 1024 * 64 * 100 / 128;
    lim.free_blocks_min = 1024 / 10;
    near(amplification(lim, RunOptions { drive_writes: 20.0, ..RunOptions::default() }), 3.7605, 1.5);
    // DiskSim with the SSD add-on: 2,048 blocks, reserve 15 %, GC below 5 % free, one of 64 pages a summary;
    // 400,000 random writes counted from the first, mapped from the start.
    let mut disksim = uniform(1, 1.5);
    disksim.geometry = flash::Geometry::single_die(2048, 63, 4096);
    disksim.geometry.summary_pages_per_block = 1;
    // The reserve is cut to whole blocks in each of 8 planes: 38 of 256.
    disksim.logical_pages = 8 * (256 - 38) * 63;
    disksim.free_blocks_min = 2048 / 20;
    near(theory::greedy(63, disksim.spare()), 4.671, 0.3);
    let drive_writes = 400_000.0 / disksim.logical_pages as f64;
    near(
        amplification(disksim, RunOptions { warmup: 0.0, drive_writes, ..RunOptions::default() }),
        4.613,
        1.5,
    );
}

#[test]
fn a_frontier_for_gc_alone_is_no_matter_under_uniform_writes() {
    let config = SsdConfig { gc_frontier: GcFrontier::Separate, ..uniform(4096, 1.15) };
    near(amplification(config, RunOptions::default()), theory::greedy(64, 1.15), 0.7);
}
