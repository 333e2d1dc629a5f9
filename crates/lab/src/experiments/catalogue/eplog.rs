//! The EPLOG papers' experiments, X-01 to X-12.

use super::super::declare::{
    Axis, Column, Engine, Experiment, Grid, Plot, Quantity, Scaled, Workload, column, point,
};
use super::points::{COMMITS, EPLOG_SHAPES, FIN_ALONE, SCHEMES};
use super::{beyond, quantities, reckoned, stock};

use Quantity::{By, Figure, Less, More};

const GC: &str = "gc_operations_mean_with_fill";
const RAID: &[(&str, &str)] = &[("scheme", "raid")];
const PARITY_LOG: &[(&str, &str)] = &[("scheme", "parity-log")];

static DRIVES: Grid = Grid {
    name: "drives",
    engine: Engine::Reckoned(reckoned::drive),
    loads: &[],
    words: "",
    axes: &[
        Axis { name: "drive", points: &[point("SSD", "plextor-m5pro"), point("HDD", "seagate-st1000dm003")] },
        Axis {
            name: "pattern",
            points: &[
                point("sequential write", "sequential-write {mib}"),
                point("random write", "random-write {mib}"),
                point("sequential read", "sequential-read {mib}"),
                point("random read", "random-read {mib}"),
            ],
        },
    ],
    without: &[],
    scaled: &[Scaled { name: "mib", full: 2048, least: 64 }],
    columns: &[column("MB/s", 1, Figure("mb_per_s"))],
};

const STATISTICS: &[Column] = &[
    column("chunk writes", 0, Figure("chunk_writes")),
    column("unique chunks", 0, Figure("unique_chunks")),
    column("on the top 20 % of them, %", 2, Figure("top_fifth_percent")),
    column("largest deviation from what is printed, %", 2, Figure("largest deviation")),
];

/// The figures of loads beside those printed.
const fn statistics(name: &'static str, loads: &'static [&'static Workload]) -> Grid {
    Grid {
        name,
        engine: Engine::Statistics,
        loads,
        words: "",
        axes: &[],
        without: &[],
        scaled: &[],
        columns: STATISTICS,
    }
}

static LOADS: Grid = statistics("loads", stock::EPLOG);

/// Those of WAS.
pub static WAS_LOADS: Grid = statistics("was-loads", stock::CALIBRATED_WAS);

static SSD_WRITES: Grid = Grid {
    name: "ssd-writes",
    engine: Engine::Replay,
    loads: stock::EPLOG,
    words: "--device null --compact --fill --writes-only --queue-depth 1",
    axes: &[EPLOG_SHAPES, SCHEMES],
    without: &[FIN_ALONE],
    scaled: &[],
    columns: &[
        column("chunks to SSDs", 0, By(quantities::ssd_chunks)),
        column("less than raid, %", 1, By(quantities::ssd_saved)),
        column("predicted by the mean size, %", 1, By(quantities::ssd_saved_by_form)),
        column("log chunks", 0, Figure("totals.log_chunks_written")),
        column("fewer than parity-log, %", 1, Less("totals.log_chunks_written", PARITY_LOG)),
        column("metadata, bytes", 0, Figure("totals.metadata_bytes_written")),
    ],
};

const GC_WORDS: &str =
    "--ssd eplog-disksim --prefill --fill --compact --writes-only --queue-depth 1 --untimed";

static SSD_GC: Grid = Grid {
    name: "ssd-gc",
    engine: Engine::Simulate,
    loads: stock::EPLOG,
    words: GC_WORDS,
    axes: &[EPLOG_SHAPES, SCHEMES],
    without: &[FIN_ALONE],
    scaled: &[],
    columns: &[
        column("chunks to SSDs", 0, Figure("ssd_chunks_written")),
        column("of them less than raid, %", 1, Less("ssd_chunks_written", RAID)),
        column("GC operations per SSD", 1, Figure(GC)),
        column("GC less than raid, %", 1, Less(GC, RAID)),
        column("GC less than parity-log, %", 1, Less(GC, PARITY_LOG)),
        column("if GC copies nothing", 1, By(quantities::gc_without_copies)),
        column("pages copied", 0, Figure("page_copies")),
    ],
};

static SSD_GC_COMMITS: Grid = Grid {
    name: "ssd-gc-commits",
    engine: Engine::Simulate,
    loads: stock::EPLOG,
    words: "--scheme eplog --rewrites log --geometry 6+2 --ssd eplog-disksim --prefill --fill --compact --writes-only --queue-depth 1 --untimed",
    axes: &[COMMITS],
    without: &[],
    scaled: &[],
    columns: &[
        column("chunks to SSDs", 0, Figure("ssd_chunks_written")),
        column("more than without commits, %", 1, By(quantities::more_than_never)),
        column("of them less than raid, %", 1, By(quantities::committed_less_than_raid)),
        column("GC operations per SSD", 1, Figure(GC)),
        column("GC less than raid, %", 1, By(quantities::committed_gc_less_than_raid)),
        column("stripes committed", 0, Figure("stripes_committed")),
    ],
};

static COMMIT_STRIPES: Grid = Grid {
    name: "commit-stripes",
    engine: Engine::Stripes,
    loads: stock::EPLOG,
    words: "6",
    axes: &[Axis { name: "commit", points: &[point("10000", "10000"), point("1000", "1000")] }],
    without: &[],
    scaled: &[],
    columns: &[
        column("distinct stripes", 0, Figure("stripes")),
        column("intervals", 0, Figure("intervals")),
        column("chunks of commits beyond two for each, %", 1, By(quantities::commits_beyond_stripes)),
    ],
};

/// How fast, beside the two that the paper compares with.
const BESIDE_MD_AND_PL: &[Column] = &[
    column("requests/s", 0, Figure("requests_per_second")),
    column("more than raid, %", 1, More("requests_per_second", RAID)),
    column("more than parity-log, %", 1, More("requests_per_second", PARITY_LOG)),
    column("mean, us", 1, Figure("latency_us_mean")),
];

static THROUGHPUT: Grid = Grid {
    name: "throughput",
    engine: Engine::Simulate,
    loads: stock::EPLOG,
    words: "--ssd plextor-m5pro --fill --compact --writes-only --queue-depth 32",
    axes: &[EPLOG_SHAPES, SCHEMES],
    without: &[FIN_ALONE],
    scaled: &[],
    columns: BESIDE_MD_AND_PL,
};

/// What table 1 may mean of the SSD.
const READINGS: Axis = Axis {
    name: "drive",
    points: &[
        point("32 at once", "--ssd plextor-m5pro"),
        point("one at a time", "--ssd plextor-m5pro-serial"),
        point("queue reads 4 x", "--ssd plextor-m5pro-queued"),
    ],
};

/// What H-12 to H-15 owe to that.
static THROUGHPUT_READINGS: Grid = Grid {
    name: "throughput-readings",
    engine: Engine::Simulate,
    loads: &[&stock::FIN],
    words: "--geometry 6+2 --fill --compact --writes-only --queue-depth 32",
    axes: &[READINGS, SCHEMES],
    without: &[],
    scaled: &[],
    columns: BESIDE_MD_AND_PL,
};

/// What H-21 to H-24 owe to that.
static RECOVERY_READINGS: Grid = Grid {
    name: "recovery-readings",
    engine: Engine::Simulate,
    loads: &[&stock::FIN],
    words: "--compact --fill --writes-only --rewrites log --geometry 6+2 --rebuild 2 --prefetch 1",
    axes: &[READINGS, WHEN, BATCH],
    without: &[],
    scaled: &[WRITES],
    columns: &[
        column("MB/s recovered", 1, By(quantities::recovered)),
        column("more than batch 100, %", 1, More("rebuild_bytes_per_s", &[("batch", "100")])),
    ],
};

static THROUGHPUT_COMMITS: Grid = Grid {
    name: "throughput-commits",
    engine: Engine::Simulate,
    loads: stock::EPLOG,
    words: "--scheme eplog --rewrites log --geometry 6+2 --ssd plextor-m5pro --fill --compact --writes-only --queue-depth 32",
    axes: &[COMMITS],
    without: &[],
    scaled: &[],
    columns: &[
        column("requests/s", 0, Figure("requests_per_second")),
        column("less than without commits, %", 1, By(quantities::slower_than_never)),
        column("more than raid, %", 1, By(quantities::committed_faster_than_raid)),
    ],
};

static DEGRADED: Grid = Grid {
    name: "degraded",
    engine: Engine::Simulate,
    loads: stock::EPLOG,
    words: "--scheme eplog --rewrites log --geometry 6+2 --ssd plextor-m5pro --fill --compact --writes-only --queue-depth 32",
    axes: &[
        Axis { name: "commit", points: &[point("end", ""), point("10000 and end", "--commit-every 10000")] },
        Axis { name: "failed", points: &[point("0", "--fail 0"), point("2", "--fail 2")] },
    ],
    without: &[],
    scaled: &[],
    columns: &[
        column("requests/s", 0, Figure("requests_per_second")),
        column("less than without failures, %", 2, Less("requests_per_second", &[("failed", "0")])),
    ],
};

const WHEN: Axis = Axis {
    name: "when",
    points: &[point("before the replay", "--head 1"), point("after it", "--head {writes}")],
};

const BATCH: Axis = Axis {
    name: "batch",
    points: &[
        point("1", "--batch 1"),
        point("10", "--batch 10"),
        point("100", "--batch 100"),
        point("1000", "--batch 1000"),
    ],
};

const WRITES: Scaled = Scaled { name: "writes", full: 100_000, least: 300 };

static RECOVERY: Grid = Grid {
    name: "recovery",
    engine: Engine::Simulate,
    loads: &[&stock::FIN],
    words: "--ssd plextor-m5pro --compact --fill --writes-only --rewrites log --geometry 6+2 --rebuild 2",
    axes: &[
        WHEN,
        BATCH,
        Axis {
            name: "prefetch",
            points: &[point("1", "--prefetch 1"), point("2", "--prefetch 2"), point("4", "--prefetch 4")],
        },
    ],
    without: &[],
    scaled: &[WRITES],
    columns: &[
        column("MB/s recovered", 1, By(quantities::recovered)),
        column("more than without prefetch, %", 1, More("rebuild_bytes_per_s", &[("prefetch", "1")])),
        column("more than batch 100, %", 1, More("rebuild_bytes_per_s", &[("batch", "100")])),
    ],
};

static METADATA: Grid = Grid {
    name: "metadata",
    engine: Engine::Replay,
    loads: &[&stock::IOZONE],
    words: "--device null --geometry 6+2 --scheme eplog --rewrites log --compact --fill --writes-only --queue-depth 1",
    axes: &[Axis {
        name: "checkpoint",
        points: &[
            point("none", ""),
            point("incremental", "--checkpoint incremental"),
            point("full", "--checkpoint full"),
        ],
    }],
    without: &[],
    scaled: &[],
    columns: &[
        column("stripes, MiB", 1, By(quantities::created_mib)),
        column("metadata of stripes, %", 2, By(quantities::created_metadata)),
        column("updates, MiB", 1, By(quantities::updated_mib)),
        column("metadata of updates, %", 2, By(quantities::updated_metadata)),
    ],
};

static WRITE_CACHE: Grid = Grid {
    name: "write-cache",
    engine: Engine::Replay,
    loads: stock::EPLOG,
    words: "--device null --compact --fill --writes-only --queue-depth 1 --geometry 6+2 --scheme eplog --rewrites log",
    axes: &[Axis {
        name: "chunks per SSD",
        points: &[
            point("0", ""),
            point("4", "--cache-slots 4"),
            point("16", "--cache-slots 16"),
            point("64", "--cache-slots 64"),
        ],
    }],
    without: &[],
    scaled: &[],
    columns: &[
        column("chunks to SSDs", 0, By(quantities::ssd_chunks)),
        column("log chunks", 0, Figure("totals.log_chunks_written")),
        column("fewer than without, %", 1, Less("totals.log_chunks_written", &[("chunks per SSD", "0")])),
        column("absorbed", 0, Figure("cache.absorbed_chunks")),
    ],
};

static LOG_DRIVES: Grid = Grid {
    name: "log-drives",
    engine: Engine::Simulate,
    loads: &[&stock::FIN],
    words: "--ssd plextor-m5pro --fill --compact --writes-only --geometry 6+2",
    axes: &[
        Axis {
            name: "scheme",
            points: &[
                point("parity-log", "--scheme parity-log"),
                point("eplog", "--scheme eplog --rewrites log"),
            ],
        },
        Axis {
            name: "log",
            points: &[
                point("HDD", "--log-device seagate-st1000dm003"),
                point("SSD", "--log-device plextor-m5pro"),
            ],
        },
        Axis { name: "answers", points: &[point("volatile", ""), point("durable", "--sync")] },
        Axis { name: "depth", points: &[point("1", "--queue-depth 1"), point("32", "--queue-depth 32")] },
    ],
    without: &[],
    scaled: &[],
    columns: &[
        column("requests/s", 0, Figure("requests_per_second")),
        column("more than with HDD logs, %", 1, More("requests_per_second", &[("log", "HDD")])),
        column("chunks to SSDs", 0, Figure("ssd_chunks_written")),
    ],
};

const PER_SSD: &[Column] = &[
    column("SSD 0, pages", 0, Figure("ssd0_pages")),
    column("SSD 1", 0, Figure("ssd1_pages")),
    column("SSD 2", 0, Figure("ssd2_pages")),
    column("SSD 3", 0, Figure("ssd3_pages")),
    column("SSD 4", 0, Figure("ssd4_pages")),
    column("SSD 5", 0, Figure("ssd5_pages")),
    column("SSD 6", 0, Figure("ssd6_pages")),
    column("SSD 7", 0, Figure("ssd7_pages")),
];

static PER_SSD_WRITES: Grid = Grid {
    name: "per-ssd-writes",
    engine: Engine::Simulate,
    loads: &[&stock::FIN],
    words: "--ssd eplog-disksim --fill --compact --writes-only --queue-depth 1 --untimed --geometry 6+2",
    axes: &[SCHEMES],
    without: &[],
    scaled: &[],
    columns: PER_SSD,
};

///
pub static EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "X-01",
        title: "EPLOG's set-up",
        source: "EPLOG, section 5.1",
        setup: "RAID-5 (4+1), (6+1) and RAID-6 (4+2), (6+2), 4 KiB chunks, one or two log devices. Here on null devices where only chunks \
                are counted, and on simulated drives with the printed bandwidths where time is: X-05 to X-09 run it. raid stands for \
                the Linux md that the paper measured: it has md's cache of the last 256 stripes (md's default), which saves reads and \
                changes no write.",
        grids: &[],
        plots: &[],
        missing: &[],
        evidence: "docs/flash.md",
    },
    Experiment {
        id: "X-02",
        title: "Drives alone",
        source: "EPLOG, table 1",
        setup: "4 KiB requests over 2 GB, 32 of them under way, on the presets that stand for the paper's SSD and hard disk. The presets \
                are made from this very table, so this checks that they were, and nothing else.",
        grids: &[&DRIVES],
        plots: &[],
        missing: &[],
        evidence: "docs/flash.md",
    },
    Experiment {
        id: "X-03",
        title: "EPLOG's traces",
        source: "EPLOG, table 2",
        setup: "The traces cannot be had here. Stand-ins are made from a seed so that they meet what is printed of them.",
        grids: &[&LOADS],
        plots: &[],
        missing: &[],
        evidence: "docs/measurements.md#synthetic-traces",
    },
    Experiment {
        id: "X-04",
        title: "Preparation of the traces",
        source: "EPLOG, section 5.1",
        setup: "1 MiB segments that nothing touches are dropped, the footprint is written first, every write is an update, sizes are rounded \
                up to chunks: --compact --fill --writes-only of X-05 to X-09.",
        grids: &[],
        plots: &[],
        missing: &[],
        evidence: "docs/replay.md",
    },
    Experiment {
        id: "X-05",
        title: "Writes to SSDs",
        source: "EPLOG, experiment 1",
        setup: "All four loads at (6+2), FIN at the four geometries, on null devices; no cache, no commit, one request at a time, every \
                update logged. Data and parity chunks count, metadata is beside. Besides, what it costs that an address says to which SSD \
                a new chunk goes (E-15, E-24), where the paper lets it go to any: the new chunks of the loads alone, with and without a \
                buffer of stripes, and one commit at the end, beside a count of free placement.",
        grids: &[&SSD_WRITES, &beyond::NEW_WRITES, &beyond::FREE_PLACEMENT],
        plots: &[
            Plot {
                title: "SSD writes saved beside raid",
                grid: "ssd-writes",
                pick: &[("scheme", &["parity-log", "eplog"])],
                x: &["trace", "geometry"],
                series: &["scheme"],
                what: By(quantities::ssd_saved),
                label: "SSD writes saved (%)",
                bands: &[("paper, k+2", 45.6, 57.0), ("paper, k+1", 38.6, 39.9)],
            },
            Plot {
                title: "Log chunks saved beside parity-log",
                grid: "ssd-writes",
                pick: &[("scheme", &["eplog"])],
                x: &["trace", "geometry"],
                series: &["scheme"],
                what: Less("totals.log_chunks_written", PARITY_LOG),
                label: "log chunks saved (%)",
                bands: &[("paper, FIN", 8.0, 15.0)],
            },
        ],
        missing: &[],
        evidence: "docs/measurements.md#writes-to-the-ssds-and-the-log-devices-eplog-experiments-1-and-4a",
    },
    Experiment {
        id: "X-06",
        title: "GC operations of the SSDs",
        source: "EPLOG, experiment 2",
        setup: "As X-05 over simulated SSDs of 20 GB that are full before the array is made; GC of the fill counts, as in the paper.",
        grids: &[&SSD_GC],
        plots: &[Plot {
            title: "GC operations per SSD",
            grid: "ssd-gc",
            pick: &[("geometry", &["6+2"])],
            x: &["trace"],
            series: &["scheme"],
            what: Figure(GC),
            label: "GC operations per SSD",
            bands: &[],
        }],
        missing: &[],
        evidence: "docs/measurements.md#the-ssds-own-gc-under-the-schemes",
    },
    Experiment {
        id: "X-07",
        title: "Parity commits",
        source: "EPLOG, experiment 3",
        setup: "As X-06 at (6+2), with commits at the end, every 10,000 and every 1,000 writes; beside X-06's runs without them. What \
                commits must cost is counted on the loads too, without an engine: distinct stripes per interval.",
        grids: &[&SSD_GC, &SSD_GC_COMMITS, &COMMIT_STRIPES],
        plots: &[
            Plot {
                title: "SSD writes beyond those without commits",
                grid: "ssd-gc-commits",
                pick: &[],
                x: &["trace"],
                series: &["commit"],
                what: By(quantities::more_than_never),
                label: "SSD writes more (%)",
                bands: &[("paper, every 1,000", 0.0, 24.9)],
            },
            Plot {
                title: "GC operations saved beside raid",
                grid: "ssd-gc-commits",
                pick: &[],
                x: &["trace"],
                series: &["commit"],
                what: By(quantities::committed_gc_less_than_raid),
                label: "GC operations saved (%)",
                bands: &[],
            },
        ],
        missing: &[],
        evidence: "docs/measurements.md#what-parity-commits-cost-the-ssds",
    },
    Experiment {
        id: "X-08",
        title: "Throughput",
        source: "EPLOG, experiment 4",
        setup: "In virtual time, 32 requests in flight, SSDs and hard disks of the printed bandwidths; raid with md's cache of 256 stripes. Of the SSD nothing but bandwidths is \
                known: it serves 32 requests at once, each as slow as the bandwidth then demands; beside it two other readings, one \
                request at a time, and a queue that reads four times as fast. Degraded: two SSDs fail behind the last write, before the last \
                commit, whose time counts. Beyond the paper the same on NVMe drives, of which the inside is simulated (L-21).",
        grids: &[&THROUGHPUT, &THROUGHPUT_READINGS, &THROUGHPUT_COMMITS, &DEGRADED, &beyond::NVME],
        plots: &[
            Plot {
                title: "Throughput on NVMe drives by what the log devices are",
                grid: "nvme",
                pick: &[("ssd", &["TLC"])],
                x: &["depth"],
                series: &["row"],
                what: Figure("requests_per_second"),
                label: "requests/s",
                bands: &[],
            },
            Plot {
                title: "Throughput at full speed",
                grid: "throughput",
                pick: &[],
                x: &["trace", "geometry"],
                series: &["scheme"],
                what: Figure("requests_per_second"),
                label: "requests/s",
                bands: &[],
            },
        ],
        missing: &[],
        evidence: "docs/measurements.md#hard-disks-as-log-devices",
    },
    Experiment {
        id: "X-09",
        title: "Recovery",
        source: "EPLOG, experiment 5",
        setup: "FIN at (6+2): two SSDs are lost after a parity commit and rebuilt in place, in virtual time, before and after 100,000 writes of \
                the load, by stripes per batch and batches under way (1 = no prefetch).",
        grids: &[&RECOVERY, &RECOVERY_READINGS],
        plots: &[
            Plot {
                title: "Recovery before the replay",
                grid: "recovery",
                pick: &[("when", &["before the replay"])],
                x: &["batch"],
                series: &["prefetch"],
                what: By(quantities::recovered),
                label: "MB/s recovered",
                bands: &[],
            },
            Plot {
                title: "Recovery after it",
                grid: "recovery",
                pick: &[("when", &["after it"])],
                x: &["batch"],
                series: &["prefetch"],
                what: By(quantities::recovered),
                label: "MB/s recovered",
                bands: &[],
            },
        ],
        missing: &[],
        evidence: "docs/measurements.md#rebuild-in-batches-with-prefetch-x-09",
    },
    Experiment {
        id: "X-10",
        title: "Key-value store",
        source: "EPLOG, experiment 6",
        setup: super::pairs::SETUP,
        grids: &[&super::pairs::IN_PLACE, &super::pairs::OURS, &super::pairs::LOG],
        plots: super::pairs::PLOTS,
        missing: &[],
        evidence: "docs/measurements.md#the-papers-key-value-experiment-x-10",
    },
    Experiment {
        id: "X-11",
        title: "Metadata",
        source: "EPLOG at DSN 2016, experiment 6",
        setup: "Whole stripes over 8 GiB, then uniform updates of 4 KiB; chunks and metadata on the SSDs. Journal frames and automatic \
                checkpoints count as metadata; the checkpoint behind the stripes is full wherever one is asked for.",
        grids: &[&METADATA],
        plots: &[],
        missing: &[],
        evidence: "docs/measurements.md#metadata-of-incremental-checkpoints-x-11s-shape",
    },
    Experiment {
        id: "X-12",
        title: "The supplement",
        source: "EPLOG, supplement (named in the paper, its figures are not at hand)",
        setup: "Size of the write cache; SSDs instead of hard disks as log devices, with volatile and durable answers; what each SSD is given; \
                basic I/O, 2 GiB of requests of 4 KiB on what was written whole before. Beside them parity caching (L-16), counted without an engine: \
                data is written at once, the parity of so many stripes waits in memory and is written when its stripe makes room, or at the end. \
                Behind each user write those stripes are at risk: a power cut leaves their parity wrong, and with a device lost at the same \
                time everything that it had of them is gone, old data too; chunks and writes without parity are those newer than it. So \
                no array that is served does it. MTTDL is X-19, the object cache of the key-value store X-10.",
        grids: &[&WRITE_CACHE, &LOG_DRIVES, &PER_SSD_WRITES, &beyond::BASIC, &beyond::PARITY_CACHE],
        plots: &[Plot {
            title: "Log chunks by the size of the write cache",
            grid: "write-cache",
            pick: &[],
            x: &["chunks per SSD"],
            series: &["trace"],
            what: Figure("totals.log_chunks_written"),
            label: "log chunks",
            bands: &[],
        }],
        missing: &[],
        evidence: "docs/measurements.md#counts-exact-do-not-depend-on-the-machine",
    },
];
