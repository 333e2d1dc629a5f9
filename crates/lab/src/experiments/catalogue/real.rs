//! Placement on traces that somebody has (`lab run X-16 --traces DIR`): in an array and on one SSD with the
//! same share of the space in use, and what WAS's table sees of the traces.

use super::super::declare::{Axis, Engine, Grid, Point, Quantity, column, point};
use super::{quantities, stock};

use Quantity::{By, Figure, Less};

const REWRITTEN: &str = "gc.chunks_rewritten";
const ONE_GROUP: &[(&str, &str)] = &[("row", "elastic-unit")];
const ONE_FRONTIER: &[(&str, &str)] = &[("row", "single")];

/// The names are those of X-16's own rows. `elastic` is the default, which is eSAP's way; what has
/// `-unit` or groups has a unit's buffer for each group; `-stripe` has as much for each group as the default
/// has for its one; `-sync` has every write durable when it is acknowledged.
const ROWS: &[Point] = &[
    point("elastic", "--scheme elastic"),
    point("elastic-cb", "--scheme elastic --gc cost-benefit"),
    point("elastic-unit", "--scheme elastic --p-wait never --group-chunks {unit}"),
    point(
        "elastic-unit-root",
        "--scheme elastic --p-wait never --group-chunks {unit} --gc cost-benefit-root",
    ),
    point("elastic-own", "--scheme elastic --p-wait never --group-chunks {unit} --gc-group own"),
    point("was-2", "--scheme was"),
    point("was-2-root", "--scheme was --gc cost-benefit-root"),
    point("sepbit", "--scheme was --placement sepbit"),
    point("sepbit-root", "--scheme was --placement sepbit --gc cost-benefit-root"),
    point("midas", "--scheme was --placement midas"),
    point("midas-root", "--scheme was --placement midas --gc cost-benefit-root"),
    point("sepbit-stripe", "--scheme was --placement sepbit --group-chunks 6 --p-wait 200ms"),
    point("midas-stripe", "--scheme was --placement midas --group-chunks 6 --p-wait 200ms"),
    point("elastic-sync", "--scheme elastic --sync"),
    point("sepbit-sync", "--scheme was --placement sepbit --sync"),
    point("midas-sync", "--scheme was --placement midas --sync"),
];

/// In the array.
pub static ARRAY: Grid = Grid {
    name: "real-traces",
    engine: Engine::Replay,
    loads: stock::OF_FOLDER,
    words: "--device null --geometry 6+2 --code rdp --queue-depth 1 --fill --gc-unit {unit-rows} --device-size {device-kib}KiB",
    axes: &[Axis { name: "row", points: ROWS }],
    without: &[],
    scaled: &[],
    columns: &[
        column("chunks of users", 0, Figure("totals.user_chunks_written")),
        column("absorbed", 0, Figure("cache.absorbed_chunks")),
        column("rewritten by GC", 0, Figure(REWRITTEN)),
        column("less than elastic, %", 1, By(quantities::rewritten_less)),
        column("less than one group with a unit's buffer, %", 1, Less(REWRITTEN, ONE_GROUP)),
        column("units", 0, Figure("gc.units_collected")),
        column("short stripes", 0, Figure("stripes.short")),
        column("data chunks per chunk of users", 3, By(quantities::data_amplification)),
        column("with parity", 3, By(quantities::whole_amplification)),
    ],
};

const POLICIES: &[Point] = &[
    point("single", "--placement single"),
    point("single-root", "--placement single --victim cost-benefit-root"),
    point("single-own", "--placement single --gc-group own"),
    point("was-2", "--placement was"),
    point("was-2-root", "--placement was --victim cost-benefit-root"),
    point("sepbit", "--placement sepbit"),
    point("sepbit-root", "--placement sepbit --victim cost-benefit-root"),
    point("midas", "--placement midas"),
    point("midas-root", "--placement midas --victim cost-benefit-root"),
];

/// On one SSD, which is written once before it counts.
pub static SSD: Grid = Grid {
    name: "real-traces-ssd",
    engine: Engine::Flash,
    loads: stock::OF_FOLDER,
    words: "--workload {trace} --logical-size {logical-kib}KiB --spare 1.39 --pages-per-block {block-pages} --warmup 1 --drive-writes 3",
    axes: &[Axis { name: "row", points: POLICIES }],
    without: &[],
    scaled: &[],
    columns: &[
        column("write amplification", 3, Figure("write_amplification")),
        column("pages copied", 0, Figure("page_copies")),
        column("less than one frontier, %", 1, Less("page_copies", ONE_FRONTIER)),
    ],
};

/// What WAS's table of hot chunks sees.
pub static HOTNESS: Grid = Grid {
    name: "real-traces-hotness",
    engine: Engine::Hotness,
    loads: stock::OF_FOLDER,
    words: "{pass}",
    axes: &[],
    without: &[],
    scaled: &[],
    columns: &[
        column("chunk writes", 0, Figure("chunk_writes")),
        column("called hot, %", 2, Figure("hot_percent")),
        column("by chance, %", 2, Figure("by_chance_percent")),
        column("of the hot ones in the top fifth, %", 1, Figure("hot_in_top_fifth_percent")),
        column("of the top fifth called hot, %", 1, Figure("top_fifth_called_hot_percent")),
    ],
};
