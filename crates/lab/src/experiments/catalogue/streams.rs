//! The experiments of the parity-stream paper, X-22 to X-25.

use super::super::declare::{
    Axis, Column, Engine, Experiment, Grid, Plot, Point, Quantity, Scaled, column, point,
};
use super::{beyond, quantities, stock};

use Quantity::{By, Figure};

const ENGINE_WORDS: &str = "--scheme raid --geometry 6+1 --chunk-size 16KiB --ssd ps-vnand --ssd-size {ssd-mib}MiB --fill --writes-only \
                            --queue-depth 4 --check {prefill}";

/// The whole run, and the same without the part that counts.
const PARTS: Axis =
    Axis { name: "part", points: &[point("all", "--head {all}"), point("before", "--head {before}")] };

const STREAMS: &[Point] = &[
    point("base", "--streams none"),
    point("parity", "--streams parity"),
    point("cap 0.2", "--streams parity --slc-cap 0.2"),
    point("cap 0.4", "--streams parity --slc-cap 0.4"),
    point("cap 0.6", "--streams parity --slc-cap 0.6"),
    point("cap 0.8", "--streams parity --slc-cap 0.8"),
    point("cap 1", "--streams parity --slc-cap 1"),
    point("1 class", "--streams class --parity-classes 1"),
    point("2 classes", "--streams class --parity-classes 2"),
    point("4 classes", "--streams class --parity-classes 4"),
];

const PER_STREAM: &[Column] = &[
    column("copies per page", 4, By(quantities::copies_per_page)),
    column("copies saved, %", 1, By(quantities::copies_saved)),
    column("lifespan longer, %, R = 1.5", 1, By(quantities::lifespan_15)),
    column("R = 2.5", 1, By(quantities::lifespan_25)),
    column("R = 3.5", 1, By(quantities::lifespan_35)),
    column("writes/s", 0, By(quantities::writes_per_second)),
    column("more than base, %", 1, By(quantities::faster_than_base)),
];

static PARITY_STREAMS: Grid = Grid {
    name: "parity-streams",
    engine: Engine::Simulate,
    loads: stock::FIO,
    words: ENGINE_WORDS,
    axes: &[Axis { name: "streams", points: STREAMS }, PARTS],
    without: &[&[
        ("trace", &["10", "20", "40", "60", "80"]),
        ("streams", &["cap 0.2", "cap 0.4", "cap 0.6", "cap 0.8", "1 class", "2 classes", "4 classes"]),
    ]],
    scaled: &[],
    columns: PER_STREAM,
};

static APPLICATION_STREAMS: Grid = Grid {
    name: "application-streams",
    engine: Engine::Simulate,
    loads: stock::APPLICATIONS,
    words: ENGINE_WORDS,
    axes: &[
        Axis {
            name: "streams",
            points: &[
                point("base", "--streams none"),
                point("parity", "--streams parity"),
                point("cap 1", "--streams parity --slc-cap 1"),
            ],
        },
        PARTS,
    ],
    without: &[],
    scaled: &[],
    columns: PER_STREAM,
};

static DYNAMIC_IN_ARRAY: Grid = Grid {
    name: "dynamic-in-array",
    engine: Engine::Simulate,
    loads: stock::FIO_LONG,
    words: "--scheme raid --geometry 6+1 --chunk-size 16KiB --ssd ps-vnand --ssd-size {ssd-mib}MiB --fill --writes-only --queue-depth 4 \
            --check --streams parity",
    axes: &[
        Axis {
            name: "cap",
            points: &[
                point("0", "--slc-cap 0"),
                point("dynamic", "--slc-cap dynamic"),
                point("dynamic:inf", "--slc-cap dynamic:inf"),
            ],
        },
        PARTS,
    ],
    without: &[],
    scaled: &[],
    columns: &[
        column("writes more than streams alone, %", 2, By(quantities::amplification_beyond_streams)),
        column("lifespan longer, %", 1, By(quantities::lifespan_beyond_streams)),
    ],
};

static FIXED_PARITY: Grid = Grid {
    name: "fixed-parity",
    engine: Engine::Disks,
    loads: &[&stock::U50],
    words: "6 16384",
    axes: &[],
    without: &[],
    scaled: &[],
    columns: &[
        column("disk 0, pages of data", 0, Figure("data0_pages")),
        column("disk 1", 0, Figure("data1_pages")),
        column("disk 2", 0, Figure("data2_pages")),
        column("disk 3", 0, Figure("data3_pages")),
        column("disk 4", 0, Figure("data4_pages")),
        column("disk 5", 0, Figure("data5_pages")),
        column("parity disk", 0, Figure("parity_pages")),
        column("times the mean of data disks", 2, Figure("parity_times_mean")),
    ],
};

static ROTATING_PARITY: Grid = Grid {
    name: "rotating-parity",
    engine: Engine::Simulate,
    loads: &[&stock::U50],
    words: "--scheme raid --geometry 6+1 --chunk-size 16KiB --ssd ps-vnand --ssd-size {ssd-mib}MiB --fill --writes-only --queue-depth 4 \
            --untimed",
    axes: &[],
    without: &[],
    scaled: &[],
    columns: &[
        column("SSD 0, pages", 0, Figure("ssd0_pages")),
        column("SSD 0, parity", 0, Figure("ssd0_parity_pages")),
        column("SSD 1, pages", 0, Figure("ssd1_pages")),
        column("SSD 1, parity", 0, Figure("ssd1_parity_pages")),
        column("SSD 2, pages", 0, Figure("ssd2_pages")),
        column("SSD 2, parity", 0, Figure("ssd2_parity_pages")),
        column("SSD 3, pages", 0, Figure("ssd3_pages")),
        column("SSD 3, parity", 0, Figure("ssd3_parity_pages")),
        column("SSD 4, pages", 0, Figure("ssd4_pages")),
        column("SSD 4, parity", 0, Figure("ssd4_parity_pages")),
        column("SSD 5, pages", 0, Figure("ssd5_pages")),
        column("SSD 5, parity", 0, Figure("ssd5_parity_pages")),
        column("SSD 6, pages", 0, Figure("ssd6_pages")),
        column("SSD 6, parity", 0, Figure("ssd6_parity_pages")),
    ],
};

static PARITY_DISK: Grid = Grid {
    name: "parity-disk",
    words: "--scheme raid --layout fixed --geometry 6+1 --chunk-size 16KiB --ssd ps-vnand --ssd-size {ssd-mib}MiB --fill --writes-only \
            --queue-depth 4 --untimed",
    ..ROTATING_PARITY
};

const CAPS: &[Point] = &[
    point("none", "--streams none"),
    point("0", "--streams parity"),
    point("0.1", "--streams parity --slc-cap 0.1"),
    point("0.2", "--streams parity --slc-cap 0.2"),
    point("0.3", "--streams parity --slc-cap 0.3"),
    point("0.4", "--streams parity --slc-cap 0.4"),
    point("0.5", "--streams parity --slc-cap 0.5"),
    point("0.6", "--streams parity --slc-cap 0.6"),
    point("0.7", "--streams parity --slc-cap 0.7"),
    point("0.8", "--streams parity --slc-cap 0.8"),
    point("0.9", "--streams parity --slc-cap 0.9"),
    point("1", "--streams parity --slc-cap 1"),
    point("dynamic", "--streams parity --slc-cap dynamic"),
    point("dynamic:inf", "--streams parity --slc-cap dynamic:inf"),
];

const USED: Axis = Axis {
    name: "used",
    points: &[
        point("30", "--utilization 0.3"),
        point("50", "--utilization 0.5"),
        point("70", "--utilization 0.7"),
        point("90", "--utilization 0.9"),
        point("100", "--utilization 1"),
    ],
};

const PER_CAP: &[Column] = &[
    column("write amplification", 4, Figure("write_amplification")),
    column("wear per page of the host", 4, Figure("wear_per_host_page")),
    column("lifespan longer than with one stream, %", 1, By(quantities::ssd_lifespan)),
    column("wear beyond the best fixed cap within 5 %, %", 2, By(quantities::wear_beyond_best_fixed)),
    column("pages/s", 0, Figure("host_pages_written_per_virtual_second")),
];

static ONE_SSD: Grid = Grid {
    name: "one-ssd",
    engine: Engine::Flash,
    loads: &[],
    words: "--workload zipf:0.99 --preset ps-vnand --logical-size {mib}MiB --parity-writes 0.5 --check --warmup {warmup} --drive-writes {drives}",
    axes: &[USED, Axis { name: "cap", points: CAPS }],
    without: &[],
    scaled: &[
        Scaled { name: "mib", full: 6400, least: 256 },
        Scaled { name: "warmup", full: 60, least: 1 },
        Scaled { name: "drives", full: 10, least: 1 },
    ],
    columns: PER_CAP,
};

static DYNAMIC_CAP: Grid = Grid {
    name: "dynamic-cap",
    engine: Engine::Flash,
    loads: &[],
    words: "--blocks 1024 --logical-size 200MiB --gc-free 10% --parity-writes 0.5 --check --warmup {warmup} --drive-writes {drives}",
    axes: &[
        Axis {
            name: "load",
            points: &[point("uniform", "--workload uniform"), point("zipf", "--workload zipf:0.99")],
        },
        USED,
        Axis { name: "cap", points: CAPS },
    ],
    without: &[],
    scaled: &[Scaled { name: "warmup", full: 60, least: 1 }, Scaled { name: "drives", full: 40, least: 1 }],
    columns: PER_CAP,
};

///
pub static EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "X-22",
        title: "Writes by disk",
        source: "parity streams, figure 1",
        setup: "Random writes of a page. What each SSD is given with parity on one of them (`--layout fixed`, RAID-4) and with parity that \
                rotates; and the former counted on the load, without the engine.",
        grids: &[&PARITY_DISK, &ROTATING_PARITY, &FIXED_PARITY],
        plots: &[],
        missing: &[],
        evidence: "docs/measurements.md#parity-streams-in-the-array-x-22-to-x-25",
    },
    Experiment {
        id: "X-23",
        title: "Copies and lifespan with a parity stream",
        source: "parity streams, figures 4 and 5",
        setup: "RAID-5 (6+1) over seven SSDs of the paper's kind, cut to 1 GiB; 16 KiB writes, Zipf 0.99, four at a time. A load is named by the \
                percentage of the space that it writes to. The fill, then ten drive writes, of which the last four count. `base` is one \
                stream, `parity` a parity stream (PS), `cap 1` SLC mode without a cap but that of the space (PS+CP); classes sort parity by \
                how long it lives. What stands for TPC-C and YCSB (P-18, P-19) is generated: their traces cannot be had, and how full the \
                paper's SSDs were is not said. Beyond the paper: EPLOG's commits as a parity stream (L-19), and a part of the mapping table in memory \
                (P-04).",
        grids: &[&PARITY_STREAMS, &APPLICATION_STREAMS, &beyond::EPLOG_STREAMS, &beyond::MAPPING],
        plots: &[
            Plot {
                title: "Copies saved beside one stream",
                grid: "parity-streams",
                pick: &[("part", &["all"]), ("streams", &["parity", "cap 1"])],
                x: &["trace"],
                series: &["streams"],
                what: By(quantities::copies_saved),
                label: "copies saved (%)",
                bands: &[],
            },
            Plot {
                title: "Lifespan at R = 2.5",
                grid: "parity-streams",
                pick: &[("part", &["all"]), ("streams", &["parity", "cap 1"])],
                x: &["trace"],
                series: &["streams"],
                what: By(quantities::lifespan_25),
                label: "lifespan longer (%)",
                bands: &[],
            },
        ],
        missing: &[],
        evidence: "docs/measurements.md#parity-streams-in-the-array-x-22-to-x-25",
    },
    Experiment {
        id: "X-24",
        title: "Throughput and lifespan by the space in use",
        source: "parity streams, figure 6",
        setup: "The cells of X-23.",
        grids: &[&PARITY_STREAMS],
        plots: &[Plot {
            title: "Throughput",
            grid: "parity-streams",
            pick: &[("part", &["all"]), ("streams", &["base", "parity", "cap 1"])],
            x: &["trace"],
            series: &["streams"],
            what: By(quantities::writes_per_second),
            label: "writes/s",
            bands: &[],
        }],
        missing: &[],
        evidence: "docs/measurements.md#parity-streams-in-the-array-x-22-to-x-25",
    },
    Experiment {
        id: "X-25",
        title: "The cap of SLC blocks",
        source: "parity streams, figure 7, and its future work",
        setup: "R = 2.5, in the array (X-23's cells), on one SSD of the paper's kind, and on a small one; and the cap that is chosen online, beside \
                the fixed ones.",
        grids: &[&PARITY_STREAMS, &DYNAMIC_IN_ARRAY, &ONE_SSD, &DYNAMIC_CAP],
        plots: &[
            Plot {
                title: "Lifespan by cap, in the array",
                grid: "parity-streams",
                pick: &[
                    ("part", &["all"]),
                    ("streams", &["parity", "cap 0.2", "cap 0.4", "cap 0.6", "cap 0.8", "cap 1"]),
                    ("trace", &["30", "50", "70", "90", "100"]),
                ],
                x: &["streams"],
                series: &["trace"],
                what: By(quantities::lifespan_25),
                label: "lifespan longer (%)",
                bands: &[],
            },
            Plot {
                title: "Lifespan by the space in use, one SSD",
                grid: "one-ssd",
                pick: &[("cap", &["0", "0.3", "1", "dynamic", "dynamic:inf"])],
                x: &["used"],
                series: &["cap"],
                what: By(quantities::ssd_lifespan),
                label: "lifespan longer (%)",
                bands: &[],
            },
        ],
        missing: &[],
        evidence: "docs/measurements.md#the-dynamic-cap-of-slc-blocks-l-17",
    },
];
