//! The EPLOG paper's experiment on its key-value store, X-10.

use super::super::declare::{Axis, Engine, Grid, Plot, Point, Quantity, Scaled, column, point};

use Quantity::{Figure, More};

type Pick = &'static [(&'static str, &'static [&'static str])];

/// What is run.
pub const SETUP: &str = "(6+2), simulated SSDs and log disks with the printed bandwidths, 1 million pairs loaded, then 3 million requests, Zipf \
                         0.99, keys of 24 bytes, no parity commit. The paper's store overwrites pairs in place; the product's is a log with \
                         compaction, which writes long stripes and hardly any update. So the paper is judged by a store like its own \
                         (store-in-place): pairs of one size, each at a place of its own, an UPDATE is one write, a key that the cache does \
                         not know is read first, then a GET reads the pair. Its table is the product's, whose tags leave one candidate. 32 \
                         requests are under way, as in X-08; the paper does not say how many it has. An SSD serves one request at a time, \
                         as if the printed bandwidths (32.8 and 93.1 MB/s) were those of one: served 32 at once (X-08) a read takes 4 ms, \
                         and all waits for the most popular stripe. raid has md's cache of 256 stripes. elastic and was (store-ours) \
                         answer from 64 MiB of memory. The product's store is beside it (store-log) at a tenth of the pairs, filled to 75 %, \
                         with commits and collection as they come.";

/// Why ours differs.
pub const WHY: &str = "of the SSD only bandwidths are known, and it is taken to serve one request at a time; how many requests the paper's store \
                       has under way is not printed, nor how many candidates of its table without tags it reads";
/// The rule of H-27.
pub const UP_TO: &str = "the rule for `up to` is that one size of the cache reaches what is printed and none goes more than half beyond it. A \
                         hybrid load reads, and the SSD's random reads (32.8 MB/s) are slower than its writes (93.1); otherwise as H-25";
/// The rule of H-29.
pub const SOME: &str = "the paper says so of some cases, which it does not name; the rule is every size of the cache. Otherwise as H-25";
/// The rule of H-30.
pub const TENTH: &str = "the rule is 10 % around what is printed; otherwise as H-25";

const RATE: &str = "requests_per_second";
const RAID: &[(&str, &str)] = &[("scheme", "raid")];
const PARITY_LOG: &[(&str, &str)] = &[("scheme", "parity-log")];

/// EPLOG, 4 KB, updates only, every cache.
pub const EPLOG_UPDATE: Pick = &[("pair", &["4 KB"]), ("scheme", &["eplog"]), ("workload", &["update"])];
/// The same of 8 KB.
pub const EPLOG_UPDATE_8: Pick = &[("pair", &["8 KB"]), ("scheme", &["eplog"]), ("workload", &["update"])];
/// Half of the requests are GET.
pub const EPLOG_MIXED: Pick = &[("pair", &["4 KB"]), ("scheme", &["eplog"]), ("workload", &["mixed"])];
/// The other schemes, hybrid, all sizes.
pub const OTHERS_MIXED: Pick = &[("scheme", &["raid", "parity-log"]), ("workload", &["mixed"])];
/// Parity logging, 4 KB, updates only.
pub const LOGGING_UPDATE: Pick =
    &[("pair", &["4 KB"]), ("scheme", &["parity-log"]), ("workload", &["update"])];
/// The same, hybrid.
pub const LOGGING_MIXED: Pick = &[("pair", &["4 KB"]), ("scheme", &["parity-log"]), ("workload", &["mixed"])];
/// EPLOG with a whole cache, updates only.
pub const CACHED_UPDATE: Pick =
    &[("pair", &["4 KB"]), ("scheme", &["eplog"]), ("workload", &["update"]), ("cache", &["100"])];
/// The same, hybrid.
pub const CACHED_MIXED: Pick =
    &[("pair", &["4 KB"]), ("scheme", &["eplog"]), ("workload", &["mixed"]), ("cache", &["100"])];

const SIZES: Axis =
    Axis { name: "pair", points: &[point("4 KB", "--pair-size 4KiB"), point("8 KB", "--pair-size 8KiB")] };
const WORKLOADS: Axis = Axis {
    name: "workload",
    points: &[point("update", "--workload update"), point("mixed", "--workload mixed")],
};
const CACHES: Axis = Axis {
    name: "cache",
    points: &[
        point("0", "--cache 0"),
        point("25", "--cache 25"),
        point("50", "--cache 50"),
        point("75", "--cache 75"),
        point("100", "--cache 100"),
    ],
};
const RAID_WORDS: Point = point("raid", "--schemes raid --stripe-cache 256");
const LOGGING_WORDS: Point = point("parity-log", "--schemes parity-log");
const OUR_WORDS: [Point; 2] = [point("elastic", "--schemes elastic"), point("was", "--schemes was")];

const LENGTHS: &[Scaled] = &[
    Scaled { name: "keys", full: 1_000_000, least: 3000 },
    Scaled { name: "requests", full: 3_000_000, least: 9000 },
];

const COLUMNS: &[super::super::declare::Column] = &[
    column("requests/s", 0, Figure(RATE)),
    column("more than raid, %", 1, More(RATE, RAID)),
    column("more than parity-log, %", 1, More(RATE, PARITY_LOG)),
    column("more than updates only, %", 1, More(RATE, &[("workload", "update")])),
    column("more than without cache, %", 1, More(RATE, &[("cache", "0")])),
    column("share of lookups that the cache answers", 3, Figure("cache_hit_share")),
    column("bytes to SSDs per byte of users", 3, Figure("ssd_bytes_per_user_byte")),
];

const IN_PLACE_WORDS: &str = "--device simulated --ssd plextor-m5pro-serial --layout in-place --no-commits --queue-depth 32 --keys {keys} --requests {requests}";

/// The paper's store on the paper's schemes.
pub static IN_PLACE: Grid = Grid {
    name: "store-in-place",
    engine: Engine::Store,
    loads: &[],
    words: IN_PLACE_WORDS,
    axes: &[
        SIZES,
        WORKLOADS,
        CACHES,
        Axis {
            name: "scheme",
            points: &[RAID_WORDS, LOGGING_WORDS, point("eplog", "--schemes eplog --rewrites log")],
        },
    ],
    without: &[],
    scaled: LENGTHS,
    columns: COLUMNS,
};

/// The same on elastic stripes.
pub static OURS: Grid = Grid {
    name: "store-ours",
    engine: Engine::Store,
    loads: &[],
    words: IN_PLACE_WORDS,
    axes: &[SIZES, WORKLOADS, CACHES, Axis { name: "scheme", points: &OUR_WORDS }],
    without: &[],
    scaled: LENGTHS,
    columns: &[
        column("requests/s", 0, Figure(RATE)),
        column("more than without cache, %", 1, More(RATE, &[("cache", "0")])),
        column("bytes to SSDs per byte of users", 3, Figure("ssd_bytes_per_user_byte")),
    ],
};

/// The product's store.
pub static LOG: Grid = Grid {
    name: "store-log",
    engine: Engine::Store,
    loads: &[],
    words: "--device simulated --ssd plextor-m5pro-serial --layout log --queue-depth 32 --keys {keys} --requests {requests}",
    axes: &[
        SIZES,
        WORKLOADS,
        Axis { name: "cache", points: &[point("0", "--cache 0"), point("100", "--cache 100")] },
        Axis {
            name: "scheme",
            points: &[
                RAID_WORDS,
                LOGGING_WORDS,
                point("eplog", "--schemes eplog"),
                OUR_WORDS[0],
                OUR_WORDS[1],
            ],
        },
    ],
    without: &[],
    scaled: &[
        Scaled { name: "keys", full: 100_000, least: 3000 },
        Scaled { name: "requests", full: 300_000, least: 9000 },
    ],
    columns: COLUMNS,
};

/// Requests per second by cache.
pub static PLOTS: &[Plot] = &[Plot {
    title: "Requests per second of the paper's store, 4 KB, updates only",
    grid: "store-in-place",
    pick: &[("pair", &["4 KB"]), ("workload", &["update"])],
    x: &["cache"],
    series: &["scheme"],
    what: Figure(RATE),
    label: "requests/s",
    bands: &[],
}];
