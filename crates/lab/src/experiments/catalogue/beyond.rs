//! Grids beyond the papers' own, which stand beside those of their experiments: other drives, both papers'
//! ideas together, and what a reading of ours costs.

use super::super::declare::{Axis, Engine, Grid, Quantity, Scaled, column, point};
use super::points::{MD, SCHEMES};
use super::{quantities, stock};

use Quantity::{By, Figure, Less, More};

/// Basic I/O by scheme.
pub static BASIC: Grid = Grid {
    name: "basic-io",
    engine: Engine::Simulate,
    loads: stock::PLAIN,
    words: "--ssd plextor-m5pro --geometry 6+2 --fill --queue-depth 32",
    axes: &[SCHEMES],
    without: &[],
    scaled: &[],
    columns: &[
        column("requests/s", 0, Figure("requests_per_second")),
        column("more than raid, %", 1, More("requests_per_second", &[("scheme", "raid")])),
        column("mean, us", 1, Figure("latency_us_mean")),
        column("chunks to SSDs", 0, Figure("ssd_chunks_written")),
        column("log chunks", 0, Figure("log_chunks_written")),
    ],
};

/// Parity in memory until its stripe makes room (L-16), counted: what it saves, and what is at risk.
pub static PARITY_CACHE: Grid = Grid {
    name: "parity-cache",
    engine: Engine::ParityCache,
    loads: stock::EPLOG,
    words: "6 2",
    axes: &[Axis {
        name: "stripes kept",
        points: &[
            point("0", "0"),
            point("16", "16"),
            point("64", "64"),
            point("256", "256"),
            point("1024", "1024"),
            point("4096", "4096"),
        ],
    }],
    without: &[],
    scaled: &[],
    columns: &[
        column("parity chunks", 0, Figure("parity_chunks")),
        column("fewer than at once, %", 1, Less("parity_chunks", AT_ONCE)),
        column("chunks to SSDs fewer, %", 1, Less("ssd_chunks", AT_ONCE)),
        column("stripes at risk, mean", 1, Figure("stripes_mean")),
        column("stripes, most", 0, Figure("stripes_max")),
        column("chunks without parity, mean", 1, Figure("chunks_mean")),
        column("chunks, most", 0, Figure("chunks_max")),
        column("writes without parity, mean", 1, Figure("writes_mean")),
        column("writes, most", 0, Figure("writes_max")),
    ],
};

const AT_ONCE: &[(&str, &str)] = &[("stripes kept", "0")];

/// NVMe drives, and where hard disks as log devices become the limit (L-21).
pub static NVME: Grid = Grid {
    name: "nvme",
    engine: Engine::Simulate,
    loads: &[&stock::FIN],
    words: "--ssd-size 8GiB --geometry 6+2 --fill --compact --writes-only --head {writes}",
    axes: &[
        Axis { name: "ssd", points: &[point("TLC", "--ssd nvme-tlc"), point("QLC", "--ssd nvme-qlc")] },
        Axis {
            name: "row",
            points: &[
                MD,
                point("eplog, HDD logs", "--scheme eplog --rewrites log"),
                point("eplog, NVMe logs", "--scheme eplog --rewrites log --log-device nvme-tlc"),
            ],
        },
        Axis {
            name: "depth",
            points: &[
                point("1", "--queue-depth 1"),
                point("8", "--queue-depth 8"),
                point("32", "--queue-depth 32"),
                point("256", "--queue-depth 256"),
            ],
        },
    ],
    without: &[],
    scaled: &[Scaled { name: "writes", full: 100_000, least: 300 }],
    columns: &[
        column("requests/s", 0, Figure("requests_per_second")),
        column("more than raid, %", 1, More("requests_per_second", &[("row", "raid")])),
        column("less than with NVMe logs, %", 1, Less("requests_per_second", &[("row", "eplog, NVMe logs")])),
        column("MB/s to a log device", 1, By(quantities::log_rate)),
        column("mean, us", 1, Figure("latency_us_mean")),
    ],
};

/// What new chunks cost where their addresses say which SSD they go to (E-15, E-24): the engine.
pub static NEW_WRITES: Grid = Grid {
    name: "new-writes",
    engine: Engine::Replay,
    loads: stock::FRESH,
    words: "--device null --geometry 6+2 --scheme eplog --compact --writes-only --queue-depth 1 --commit-every end",
    axes: &[Axis {
        name: "buffered stripes",
        points: &[point("0", ""), point("64", "--cache-stripes 64"), point("512", "--cache-stripes 512")],
    }],
    without: &[],
    scaled: &[],
    columns: &[
        column("new chunks", 0, Figure("totals.user_chunks_written")),
        column("log chunks", 0, Figure("totals.log_chunks_written")),
        column("placed freely", 0, By(quantities::log_chunks_free)),
        column("parity chunks", 0, Figure("totals.parity_chunks_written")),
        column("parity placed freely", 0, By(quantities::parity_chunks_free)),
        column("parity and log more than placed freely, %", 1, By(quantities::beyond_free)),
    ],
};

/// The same if each may go to any SSD, counted.
pub static FREE_PLACEMENT: Grid = Grid {
    name: "free-placement",
    engine: Engine::FreePlacement,
    loads: stock::FRESH,
    words: "6 2",
    axes: &[],
    without: &[],
    scaled: &[],
    columns: &[
        column("new chunks", 0, Figure("chunks")),
        column("log chunks", 0, Figure("log_chunks")),
        column("parity chunks", 0, Figure("parity_chunks")),
    ],
};

const SMALL_SSDS: &str = "--geometry 6+1 --chunk-size 16KiB --ssd ps-vnand --ssd-size {ssd-mib}MiB --fill --writes-only --queue-depth 4 --check";

const fn with_small_ssds(
    name: &'static str,
    words: &'static str,
    axes: &'static [Axis],
    columns: &'static [super::super::declare::Column],
) -> Grid {
    Grid {
        name,
        engine: Engine::Simulate,
        loads: stock::HALF_FULL,
        words,
        axes,
        without: &[],
        scaled: &[],
        columns,
    }
}

/// EPLOG's commits as a parity stream of their own, in SLC mode too (L-19).
pub static EPLOG_STREAMS: Grid = with_small_ssds(
    "eplog-streams",
    SMALL_SSDS,
    &[
        Axis {
            name: "row",
            points: &[
                point("raid", "--scheme raid"),
                point("eplog, commits every 10000", "--scheme eplog --rewrites log --commit-every 10000"),
                point("eplog, commits every 1000", "--scheme eplog --rewrites log --commit-every 1000"),
            ],
        },
        Axis {
            name: "streams",
            points: &[
                point("base", "--streams none"),
                point("parity", "--streams parity"),
                point("cap 1", "--streams parity --slc-cap 1"),
            ],
        },
    ],
    &[
        column("pages to SSDs", 0, Figure("ssd_pages_written")),
        column("of them less than raid, %", 1, Less("ssd_pages_written", &[("row", "raid")])),
        column("pages copied", 0, Figure("page_copies")),
        column("pages in SLC mode", 0, Figure("flash_pages_written_slc")),
        column("lifespan longer than raid, one stream, %", 1, By(quantities::lifespan_beyond_raid)),
        column("writes/s", 0, Figure("requests_per_second")),
    ],
);

/// With a part of the mapping table in memory (P-04, A-42): 65,536 entries of 8 bytes. Shorter runs have
/// SSDs as large, as smaller ones have no blocks for translation pages.
pub static MAPPING: Grid = with_small_ssds(
    "mapping-cache",
    "--scheme raid --geometry 6+1 --chunk-size 16KiB --ssd ps-vnand --ssd-size 1GiB --fill --writes-only --queue-depth 4 --check",
    &[
        Axis {
            name: "table in memory",
            points: &[
                point("whole", ""),
                point("half", "--mapping-cache 256KiB"),
                point("a quarter", "--mapping-cache 128KiB"),
                point("a sixteenth", "--mapping-cache 32KiB"),
            ],
        },
        Axis {
            name: "streams",
            points: &[point("base", "--streams none"), point("parity", "--streams parity")],
        },
    ],
    &[
        column("pages copied", 0, Figure("page_copies")),
        column("pages programmed", 0, Figure("flash_pages_written")),
        column(
            "more than with a whole table, %",
            1,
            More("flash_pages_written", &[("table in memory", "whole")]),
        ),
        column("writes/s", 0, Figure("requests_per_second")),
        column(
            "less than with a whole table, %",
            1,
            Less("requests_per_second", &[("table in memory", "whole")]),
        ),
    ],
);
