//! Worlds from fixed seeds, and from fresh ones; the seed is printed. `ELASTRIPE_SIM_SECONDS` lengthens the
//! exploration of fresh ones, `ELASTRIPE_SIM_SEED` says where it starts.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use format::SchemeKind;
use sim::{Pinned, Until, explore, replay_command, run_caught};
use std::time::Duration;

fn check(first_seed: u64, until: Until, pinned: Pinned) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let seen = explore(first_seed, until, pinned, threads, 3);
    let rate = seen.worlds as f64 / seen.seconds;
    println!("{} worlds from seed {first_seed}, {rate:.0} worlds/s", seen.worlds);
    let lines: Vec<String> = seen
        .failures
        .iter()
        .map(|f| format!("seed {}: {}\n  replay: {}", f.seed, f.what, replay_command(f.seed, pinned)))
        .collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
    assert!(seen.total.crashes > 0 && seen.total.replayed > 0, "worlds without power cuts prove nothing");
    if pinned.scheme == Some(SchemeKind::Eplog) {
        // Whole stripes written over what was there, clean or dirty, of whole and of hurt arrays.
        let replaced = seen.total.replaced;
        println!("{replaced} stripes replaced");
        assert!(replaced > 8 * seen.worlds, "{replaced} stripes replaced in {} worlds", seen.worlds);
    }
}

#[test]
fn fixed_seeds() {
    check(0, Until::Worlds(400), Pinned { scheme: Some(SchemeKind::Eplog), ..Pinned::default() });
    check(0, Until::Worlds(200), Pinned { scheme: Some(SchemeKind::Raid), ..Pinned::default() });
    check(0, Until::Worlds(200), Pinned { scheme: Some(SchemeKind::ParityLog), ..Pinned::default() });
}

#[test]
fn fresh_seeds() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    // Without a seed the address of a local, which the system places at random, stands in for one.
    let local = 0u8;
    let seed = number("ELASTRIPE_SIM_SEED").unwrap_or_else(|| (&raw const local).addr() as u64 / 16);
    let seconds = number("ELASTRIPE_SIM_SECONDS").unwrap_or(10);
    check(seed, Until::Time(Duration::from_secs(seconds)), Pinned::default());
}

/// Worlds that once failed, and why. They guard for as long as they are the same worlds; what was mended has
/// tests of its own where that could be.
const FAILED: [(u64, &str); 20] = [
    (95_600_133_770, "a block of 1 MiB waited for buffers for its copies, which writes behind it had"),
    (86_500_012_277, "a member's place was given away while a shard could not tell that it had given it up"),
    (
        86_800_034_215,
        "a commit was given up where there was none, and the next one for want of requests did not come",
    ),
    (
        87_500_050_446,
        "the simulator had a member that was whole again fail to read while another one was hurt",
    ),
    (86_500_088_600, "the simulator was at rest with a member given up by one shard in its very last flush"),
    (607_569_775, "a start wrote the newest superblock over the only one of a member that had missed two"),
    (81_000_002_702, "the judge expected zeros of a rotten chunk that nobody had written, in mode resync"),
    (12_000_001_363, "a commit dissolved the log stripe that alone gave a chunk"),
    (20_000_002_170, "recovery went by a checkpoint that one member held, and wrote over the one before"),
    (14_000_028_269, "two devices had one serial number, as power failed when the first alone knew of it"),
    (13_000_025_017, "a commit waited for pages that had come in the turn in which it asked for them"),
    (
        11_306,
        "a member told of its rebuild alone passed for whole, as a start without it had told the others",
    ),
    (
        34_000_004_053,
        "a start in which a member failed wrote over the only good superblocks, and was cut short",
    ),
    (37_000_003_433, "a round of superblocks was written again over the only copy of its number"),
    (32_000_027_532, "the same, as a device was replaced"),
    (
        88_000_003_040,
        "the simulator replaced a failed member whose succession had not ended, which is refused",
    ),
    (20_000_028_871, "nobody let a paused scrub of several shards go on, whose patrols never rested at once"),
    (72_000_044_234, "the judge took a device for whole in all shards that was scrubbed in one of them"),
    (4_240_759_229, "a partner was given up for the time that the member took to be read"),
    (75_000_017_787, "the judge took a disk that was to be wiped for one that knows who is out of service"),
];

#[test]
fn worlds_that_failed() {
    for (seed, why) in FAILED {
        if let Err(violation) = run_caught(seed, Pinned::default(), false) {
            panic!("once {why}; now {violation}; replay: {}", replay_command(seed, Pinned::default()));
        }
    }
}

#[test]
fn one_seed_is_one_world() {
    for seed in [3, 8, 27] {
        let (one, other) =
            (run_caught(seed, Pinned::default(), false), run_caught(seed, Pinned::default(), false));
        assert_eq!(one.unwrap(), other.unwrap(), "seed {seed}");
    }
}
