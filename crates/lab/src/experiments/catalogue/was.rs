//! The experiments of the WAS paper, X-13 to X-21.

use super::super::declare::{Axis, Engine, Experiment, Grid, Plot, Point, Quantity, column, point};
use super::eplog::WAS_LOADS;
use super::placement::{PUBLIC_SIMULATORS, TABLE_SIZES};
use super::points::WAS_SHAPES;
use super::{quantities, real, reckoned, stock};

use Quantity::{By, Figure, Less};

const REWRITTEN: &str = "gc.chunks_rewritten";
const RESPONSE: &str = "latency_us_mean";
const ELASTIC: &[(&str, &str)] = &[("row", "elastic")];

/// `elastic` lets a stripe's chunks wait for 200 ms of the trace, `-full` until it is full, `-unit` until a
/// unit is, which is the buffer that `was` has for each group; `-own` gives what is collected units of its
/// own; `-cb` collects by cost-benefit, `-root` by that with the root of the age.
const PLACEMENTS: &[Point] = &[
    point("elastic", "--scheme elastic"),
    point("elastic-full", "--scheme elastic --p-wait never"),
    point("elastic-unit", "--scheme elastic --p-wait never --group-chunks {unit}"),
    point("elastic-own", "--scheme elastic --p-wait never --group-chunks {unit} --gc-group own"),
    point("was-2", "--scheme was --groups 2"),
    point("was-3", "--scheme was --groups 3"),
    point("was-4", "--scheme was --groups 4"),
    point("was-2-own", "--scheme was --gc-group own"),
    point("was-2-hca", "--scheme was --hotness hca"),
    point("was-2-hca-own", "--scheme was --hotness hca --gc-group own"),
    point("sepbit", "--scheme was --placement sepbit"),
    point("elastic-cb", "--scheme elastic --gc cost-benefit"),
    point("was-2-cb", "--scheme was --groups 2 --gc cost-benefit"),
    point("sepbit-cb", "--scheme was --placement sepbit --gc cost-benefit"),
    point("sepbit-root", "--scheme was --placement sepbit --gc cost-benefit-root"),
    point("midas", "--scheme was --placement midas"),
    point("midas-cb", "--scheme was --placement midas --gc cost-benefit"),
    point("midas-root", "--scheme was --placement midas --gc cost-benefit-root"),
    point("midas-4-root", "--scheme was --placement midas --midas-groups 4 --gc cost-benefit-root"),
    point("elastic-unit-age", "--scheme elastic --p-wait never --group-chunks {unit} --gc age"),
    point("elastic-unit-windowed", "--scheme elastic --p-wait never --group-chunks {unit} --gc windowed"),
    point("elastic-unit-d-choices", "--scheme elastic --p-wait never --group-chunks {unit} --gc d-choices"),
];

static PLACEMENT: Grid = Grid {
    name: "placement",
    engine: Engine::Replay,
    loads: stock::WAS_WRITES,
    words: "--device null --compact --writes-only --queue-depth 1 --gc-unit 64 --device-size 256MiB",
    axes: &[WAS_SHAPES, Axis { name: "row", points: PLACEMENTS }],
    without: &[],
    scaled: &[],
    columns: &[
        column("chunks of users", 0, Figure("totals.user_chunks_written")),
        column("absorbed", 0, Figure("cache.absorbed_chunks")),
        column("rewritten by GC", 0, Figure(REWRITTEN)),
        column("less than elastic, %", 1, By(quantities::rewritten_less)),
        column("less than elastic-full, %", 1, By(quantities::rewritten_less_than_full)),
        column("units", 0, Figure("gc.units_collected")),
        column("short stripes", 0, Figure("stripes.short")),
        column("data chunks per chunk of users", 3, By(quantities::data_amplification)),
        column("GC and parity", 0, By(quantities::elastic_overhead)),
        column("less than parity logging, %", 1, By(quantities::elastic_below_logging)),
    ],
};

const OPEN: Point = point("open", "--timed");
const CLOSED: Point = point("closed", "");

const OVER_SSDS: &[Point] = &[
    point("elastic", "--scheme elastic"),
    point("was-2", "--scheme was --groups 2"),
    point("was-3", "--scheme was --groups 3"),
    point("was-4", "--scheme was --groups 4"),
    point("was-2-str", "--scheme was --streams class"),
    point("was-2-hca", "--scheme was --hotness hca"),
    point("sepbit", "--scheme was --placement sepbit"),
];

static WAS_SSDS: Grid = Grid {
    name: "was-ssds",
    engine: Engine::Simulate,
    loads: stock::WAS_ALL,
    words: "--ssd was-ssd --ssd-size 272MiB --device-size 256MiB --gc-unit 64 --gc-threshold 90% --prefill --buffers 4MiB",
    axes: &[
        WAS_SHAPES,
        Axis { name: "row", points: OVER_SSDS },
        Axis { name: "loop", points: &[OPEN, CLOSED] },
    ],
    without: &[&[("loop", &["closed"]), ("row", &["was-2-str", "was-2-hca", "sepbit"])]],
    scaled: &[],
    columns: &[
        column("pages given", 0, Figure("ssd_pages_written")),
        column("rewritten by the array's GC", 0, Figure("gc_chunks_rewritten")),
        column("pages copied", 0, Figure("page_copies")),
        column("erases", 0, Figure("erases")),
        column("erases less than elastic, %", 1, Less("erases", ELASTIC)),
        column("spread over SSDs, %", 1, By(quantities::spread)),
        column("mean response, us", 1, Figure(RESPONSE)),
        column("response less than elastic, %", 1, Less(RESPONSE, ELASTIC)),
        column("p99, us", 1, Figure("latency_us_p99")),
        column("years at the trace's rate", 1, Figure("lifetime_years")),
    ],
};

static LOGGING_OVERHEAD: Grid = Grid {
    name: "logging-overhead",
    engine: Engine::Replay,
    loads: stock::WAS_REAL,
    words: "--device null --compact --writes-only --queue-depth 1 --scheme parity-log",
    axes: &[WAS_SHAPES],
    without: &[],
    scaled: &[],
    columns: &[
        column("log chunks", 0, Figure("totals.log_chunks_written")),
        column("old chunks read", 0, Figure("totals.data_chunks_read")),
        column("parity chunks", 0, Figure("totals.parity_chunks_written")),
        column("in all", 0, By(quantities::logging_overhead)),
    ],
};

static MTTDL: Grid = Grid {
    name: "mttdl",
    engine: Engine::Reckoned(reckoned::mean_time_to_loss),
    loads: &[],
    words: "",
    axes: &[
        Axis { name: "level", points: &[point("RAID-5", "raid5"), point("RAID-6", "raid6")] },
        Axis { name: "alpha", points: &[point("0.77", "0.77"), point("0.5", "0.5"), point("0.37", "0.37")] },
        Axis {
            name: "repairs per year",
            points: &[
                point("10,000 as printed", "10000"),
                point("7,889: 400 GB at 100 MB/s", "7889.4"),
                point("986: 400 GB at 100 Mb/s", "986.2"),
            ],
        },
    ],
    without: &[],
    scaled: &[],
    columns: &[
        column("years, elastic", 0, Figure("years_of_elastic")),
        column("years, was", 0, Figure("years")),
        column("times", 2, Figure("times")),
    ],
};

static COLLECTION_COST: Grid = Grid {
    name: "collection-cost",
    engine: Engine::Reckoned(reckoned::collection_cost),
    loads: &[],
    words: "",
    axes: &[Axis {
        name: "hot",
        points: &[
            point("0.2", "0.2"),
            point("0.4", "0.4"),
            point("0.6", "0.6"),
            point("0.8", "0.8"),
            point("0.9", "0.9"),
        ],
    }],
    without: &[],
    scaled: &[],
    columns: &[
        column("mixed, of a unit", 3, Figure("mixed")),
        column("separated, of a unit", 3, Figure("separated")),
        column("saved, %", 1, Figure("saved")),
    ],
};

static HOTNESS_MEMORY: Grid = Grid {
    name: "hotness-memory",
    engine: Engine::Reckoned(reckoned::hotness_memory),
    loads: &[],
    words: "",
    axes: &[Axis { name: "identifier", points: &[point("GLRU", "glru"), point("HCA", "hca")] }],
    without: &[],
    scaled: &[],
    columns: &[column("KiB for a volume of 1 GiB", 1, Figure("kib"))],
};

static GROUP_SIZE: Grid = Grid {
    name: "group-size",
    engine: Engine::Replay,
    loads: &[&stock::WAS_SYNTHETIC],
    words: "--device null --compact --writes-only --queue-depth 1 --geometry 15+1 --scheme was --gc-unit 128 --device-size 256MiB --head 300",
    axes: &[],
    without: &[],
    scaled: &[],
    columns: &[
        column("chunks of a group", 0, Figure("placement.group_chunks")),
        column("rows of a unit", 0, Figure("placement.unit_rows")),
    ],
};

///
pub static EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "X-13",
        title: "WAS's set-up",
        source: "WAS, section V-A",
        setup: "Eight SSDs with 256 MiB for chunks each, chunks of 4 KiB, units of 64 rows, collected from 90 % in use: X-16 to X-21 run it. \
                What hotness takes of memory, and how large a group is with 16 SSDs, stand here.",
        grids: &[&HOTNESS_MEMORY, &GROUP_SIZE],
        plots: &[],
        missing: &[],
        evidence: "docs/schemes.md",
    },
    Experiment {
        id: "X-14",
        title: "WAS's traces",
        source: "WAS, table I",
        setup: "Stand-ins, made from a seed so that they meet what is printed of the traces. `fin` serves EPLOG's table too, and follows WAS \
                where the two differ.",
        grids: &[&WAS_LOADS],
        plots: &[],
        missing: &[],
        evidence: "docs/measurements.md#synthetic-traces",
    },
    Experiment {
        id: "X-15",
        title: "WAS's synthetic workload",
        source: "WAS, section V-A",
        setup: "Normal addresses, 80 % of the requests on a fifth of the range, writes of 8 KiB; X-14 counts it beside table I. Its column of \
                the top 20 % of chunks cannot be met by normal addresses; `was-synthetic-fifth` is a second reading that meets every column, a \
                hot fifth of 160,400 chunks with uniform requests inside and outside of it.",
        grids: &[],
        plots: &[],
        missing: &[],
        evidence: "docs/measurements.md#synthetic-traces",
    },
    Experiment {
        id: "X-16",
        title: "Chunks rewritten by GC",
        source: "WAS, figure 7",
        setup: "WAS's array on null devices, one request at a time, at the times of the trace. Beside the paper's schemes the same with full \
                stripes, with collected chunks in units of their own, by HCA, by SepBIT, by MiDAS, and by cost-benefit. Beside it ours on the configurations of public simulators. The paper's model of what \
                collecting a unit costs (W-37) is beside. Traces of a folder (`--traces DIR`): their writes, a million chunks at most, over and over \
                until each chunk was written four times, on arrays and SSDs of which they take 72 %.",
        grids: &[&PLACEMENT, &COLLECTION_COST, &PUBLIC_SIMULATORS, &real::ARRAY, &real::SSD, &real::HOTNESS],
        plots: &[
            Plot {
                title: "Rewritten by GC, RAID-5 (7+1)",
                grid: "placement",
                pick: &[
                    ("geometry", &["7+1"]),
                    ("row", &["elastic", "elastic-full", "was-2", "was-2-own", "was-2-hca", "sepbit"]),
                ],
                x: &["trace"],
                series: &["row"],
                what: Figure(REWRITTEN),
                label: "chunks rewritten",
                bands: &[],
            },
            Plot {
                title: "Rewritten by GC, RAID-6 (6+2)",
                grid: "placement",
                pick: &[
                    ("geometry", &["6+2"]),
                    ("row", &["elastic", "elastic-full", "was-2", "was-2-own", "was-2-hca", "sepbit"]),
                ],
                x: &["trace"],
                series: &["row"],
                what: Figure(REWRITTEN),
                label: "chunks rewritten",
                bands: &[],
            },
        ],
        missing: &[],
        evidence: "docs/measurements.md#garbage-collection-of-elastic-stripes-was-figures-7-and-13-sepbit",
    },
    Experiment {
        id: "X-17",
        title: "Response time",
        source: "WAS, figure 8",
        setup: "WAS's array over simulated SSDs that were written whole before, reads included: at the times of the trace (open), and with 32 \
                requests in flight (closed). Beside the groups' own buffers there are 4 MiB for requests.",
        grids: &[&WAS_SSDS],
        plots: &[Plot {
            title: "Mean response time with 32 requests in flight, RAID-5 (7+1)",
            grid: "was-ssds",
            pick: &[("geometry", &["7+1"]), ("loop", &["closed"])],
            x: &["trace"],
            series: &["row"],
            what: Figure(RESPONSE),
            label: "mean response time (us)",
            bands: &[],
        }],
        missing: &[],
        evidence: "docs/measurements.md#response-times",
    },
    Experiment {
        id: "X-18",
        title: "Erases",
        source: "WAS, figures 9 and 10",
        setup: "The cells of X-17.",
        grids: &[&WAS_SSDS],
        plots: &[Plot {
            title: "Erases at the times of the trace, RAID-5 (7+1)",
            grid: "was-ssds",
            pick: &[("geometry", &["7+1"]), ("loop", &["open"])],
            x: &["trace"],
            series: &["row"],
            what: Figure("erases"),
            label: "erases",
            bands: &[],
        }],
        missing: &[],
        evidence: "docs/measurements.md#erases",
    },
    Experiment {
        id: "X-19",
        title: "Mean time to data loss",
        source: "WAS, figure 11",
        setup: "The paper's closed forms (W-44, W-45) with eight SSDs and 0.25 failures a year, with the rate of repair as printed and in both \
                readings of what it is derived from (A-21). `elastripe reliability` has models beyond these.",
        grids: &[&MTTDL],
        plots: &[Plot {
            title: "Mean time to data loss beside eSAP",
            grid: "mttdl",
            pick: &[("repairs per year", &["10,000 as printed"])],
            x: &["alpha"],
            series: &["level"],
            what: Figure("times"),
            label: "times that of eSAP",
            bands: &[("paper", 2.0, 20.0)],
        }],
        missing: &[],
        evidence: "docs/reliability.md",
    },
    Experiment {
        id: "X-20",
        title: "Overhead beside parity logging",
        source: "WAS, figure 12",
        setup: "What parity logging writes and reads beyond users' chunks (W-41: log chunks, old chunks, parity of full stripes; the log is \
                unlimited, nothing is committed), beside what elastic stripes write (W-42: moved chunks and parity, the last columns of \
                X-16's table).",
        grids: &[&LOGGING_OVERHEAD, &PLACEMENT],
        plots: &[Plot {
            title: "Less than parity logging, by elastic stripes",
            grid: "placement",
            pick: &[
                ("trace", &["fin", "online", "webmail", "online-webmail"]),
                ("row", &["elastic", "elastic-full", "was-2"]),
            ],
            x: &["trace", "geometry"],
            series: &["row"],
            what: By(quantities::elastic_below_logging),
            label: "I/O saved (%)",
            bands: &[],
        }],
        missing: &[],
        evidence: "",
    },
    Experiment {
        id: "X-21",
        title: "GLRU beside HCA",
        source: "WAS, figure 13",
        setup: "The rows of X-16 whose hot chunks GLRU or HCA tells. Table glru-sizes has GLRU with more lists of eight than the paper's 128, on both \
                readings of Synthetic: from which size on it saves what H-40 and H-41 print. Writes that know nothing of each other are seen to be hot only \
                if the table holds their chunk from one to the next, so the reading whose hot fifth is even needs the table to be about as large as that fifth.",
        grids: &[&PLACEMENT, &TABLE_SIZES],
        plots: &[Plot {
            title: "Rewritten by GC with GLRU and HCA",
            grid: "placement",
            pick: &[("row", &["was-2", "was-2-hca"])],
            x: &["trace", "geometry"],
            series: &["row"],
            what: Figure(REWRITTEN),
            label: "chunks rewritten",
            bands: &[],
        }],
        missing: &[],
        evidence: "docs/measurements.md#garbage-collection-of-elastic-stripes-was-figures-7-and-13-sepbit",
    },
];
