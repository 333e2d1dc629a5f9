//! Placement beyond WAS's paper: ours beside public simulators, and how large WAS's table has to be.

use super::super::declare::{Axis, Engine, Grid, Point, Quantity, Scaled, column, point};
use super::super::view::{Key, View, percent};
use super::points::WAS_SHAPES;
use super::{quantities, stock};

use Quantity::{By, Figure};

const WITH_FILL: &str = "write_amplification_with_fill";

/// The volume of SepBIT's simulator, by share of garbage.
macro_rules! volume {
    ($rest:literal) => {
        concat!(
            "--logical-size 1GiB --pages-per-block 1024 --garbage 15% --times exact --drive-writes {volume-writes} ",
            $rest
        )
    };
}

/// The SSD of MiDAS's simulator: 1 GiB of flash for 10^9 bytes.
macro_rules! ssd {
    ($rest:literal) => {
        concat!(
            "--logical-size 976560KiB --pages-per-block 512 --blocks 512 --gc-free 4 --times exact --drive-writes {ssd-writes} ",
            $rest
        )
    };
}

/// Names say policy, victim and load; z is Zipf 1.0 with a hottest fifth that is shuffled, s the same
/// standing still, u uniform.
const CONFIGURATIONS: &[Point] = &[
    point(
        "nosep-cb-z",
        volume!("--placement single --victim cost-benefit-root --workload zipf:1 --hot-moves 20%:1%"),
    ),
    point("nosep-greedy-z", volume!("--placement single --workload zipf:1 --hot-moves 20%:1%")),
    point(
        "sepgc-cb-z",
        volume!(
            "--placement single --gc-group own --victim cost-benefit-root --workload zipf:1 --hot-moves 20%:1%"
        ),
    ),
    point(
        "sepgc-greedy-z",
        volume!("--placement single --gc-group own --workload zipf:1 --hot-moves 20%:1%"),
    ),
    point(
        "sepbit-cb-z",
        volume!("--placement sepbit --victim cost-benefit-root --workload zipf:1 --hot-moves 20%:1%"),
    ),
    point("sepbit-greedy-z", volume!("--placement sepbit --workload zipf:1 --hot-moves 20%:1%")),
    point("nosep-greedy-u", volume!("--placement single --workload uniform")),
    point("sepgc-greedy-u", volume!("--placement single --gc-group own --workload uniform")),
    point("sepbit-greedy-u", volume!("--placement sepbit --workload uniform")),
    point("nosep-greedy-on-ssd-z", ssd!("--placement single --workload zipf:1 --hot-moves 20%:1%")),
    point("midas-cb-s", ssd!("--placement midas --victim cost-benefit-root --workload zipf:1")),
    point(
        "midas-cb-z",
        ssd!("--placement midas --victim cost-benefit-root --workload zipf:1 --hot-moves 20%:1%"),
    ),
    point("sepbit-on-ssd-s", ssd!("--placement sepbit --victim cost-benefit-root --workload zipf:1")),
    point(
        "sepbit-on-ssd-z",
        ssd!("--placement sepbit --victim cost-benefit-root --workload zipf:1 --hot-moves 20%:1%"),
    ),
];

/// What the public simulators print for them, the fill included (SepBIT's at commit 1e4b664, MiDAS's at
/// a226265, run on such loads); none where theirs has no such policy.
const THEIRS: &[(&str, f64)] = &[
    ("nosep-cb-z", 4.176),
    ("nosep-greedy-z", 4.218),
    ("sepgc-cb-z", 2.690),
    ("sepgc-greedy-z", 3.256),
    ("sepbit-cb-z", 2.328),
    ("sepbit-greedy-z", 2.705),
    ("nosep-greedy-u", 3.259),
    ("sepgc-greedy-u", 3.261),
    ("sepbit-greedy-u", 3.258),
    ("nosep-greedy-on-ssd-z", 10.86),
    ("midas-cb-s", 4.55),
    ("midas-cb-z", 5.56),
];

fn theirs(_: &View, key: &Key) -> Option<f64> {
    let own = key.label("configuration");
    THEIRS.iter().find(|(name, _)| *name == own).map(|&(_, value)| value)
}

fn deviation(view: &View, key: &Key) -> Option<f64> {
    let (ours, theirs) = (view.get(key, WITH_FILL)?, theirs(view, key)?);
    percent(ours - theirs, theirs)
}

/// Ours beside public simulators.
pub static PUBLIC_SIMULATORS: Grid = Grid {
    name: "public-simulators",
    engine: Engine::Flash,
    loads: &[],
    words: "--warmup 0",
    axes: &[Axis { name: "configuration", points: CONFIGURATIONS }],
    without: &[],
    scaled: &[
        Scaled { name: "volume-writes", full: 10, least: 2 },
        Scaled { name: "ssd-writes", full: 59, least: 2 },
    ],
    columns: &[
        column("theirs", 3, By(theirs)),
        column("ours", 3, Figure(WITH_FILL)),
        column("deviation, %", 1, By(deviation)),
        column("pages copied", 0, Figure("page_copies")),
        column("memory of the policy, bytes", 0, Figure("placement_memory_bytes")),
    ],
};

/// Lists of eight, as many as the table of the paper has and more.
const TABLES: &[Point] = &[
    point("elastic", "--scheme elastic"),
    point("128", "--scheme was"),
    point("512", "--scheme was --glru-lists 512"),
    point("2048", "--scheme was --glru-lists 2048"),
    point("4096", "--scheme was --glru-lists 4096"),
    point("8192", "--scheme was --glru-lists 8192"),
    point("16384", "--scheme was --glru-lists 16384"),
    point("65536", "--scheme was --glru-lists 65536"),
];

/// What WAS's table saves by its size.
pub static TABLE_SIZES: Grid = Grid {
    name: "glru-sizes",
    engine: Engine::Replay,
    loads: stock::WAS_SYNTHETICS,
    words: "--device null --compact --writes-only --queue-depth 1 --gc-unit 64 --device-size 256MiB",
    axes: &[WAS_SHAPES, Axis { name: "row", points: TABLES }],
    without: &[],
    scaled: &[],
    columns: &[
        column("rewritten by GC", 0, Figure("gc.chunks_rewritten")),
        column("less than elastic, %", 1, By(quantities::rewritten_less)),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_theirs_print_belongs_to_a_configuration() {
        for (name, _) in THEIRS {
            assert!(CONFIGURATIONS.iter().any(|point| point.label == *name), "{name}");
        }
    }
}
