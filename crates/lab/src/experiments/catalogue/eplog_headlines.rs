//! What the EPLOG papers put forward, H-01 to H-38.

use super::super::declare::{Check, Headline, Over, Paper, Part, Quantity};
use super::pairs;
use super::quantities;

use Check::{Measured, NotPossible};
use Paper::{AtLeast, AtMost, Between};
use Quantity::{By, Figure, Less, More};

const GC: &str = "gc_operations_mean_with_fill";
const RAID: &[(&str, &str)] = &[("scheme", "raid")];
const PARITY_LOG: &[(&str, &str)] = &[("scheme", "parity-log")];

type Pick = &'static [(&'static str, &'static [&'static str])];

const EPLOG_6_2: Pick = &[("geometry", &["6+2"]), ("scheme", &["eplog"])];
const FIN_EPLOG: Pick = &[("trace", &["fin"]), ("scheme", &["eplog"])];
const FIN_RAID5: Pick = &[("trace", &["fin"]), ("geometry", &["4+1", "6+1"]), ("scheme", &["eplog"])];
const FIN_RAID6: Pick = &[("trace", &["fin"]), ("geometry", &["4+2", "6+2"]), ("scheme", &["eplog"])];

const RATE: &str = "requests_per_second";
const MIXED: &[(&str, &str)] = &[("workload", "mixed")];
const UPDATE: &[(&str, &str)] = &[("workload", "update")];
const NO_CACHE: &[(&str, &str)] = &[("cache", "0")];

const PERCENT: &str = "%";

const fn part(grid: &'static str, pick: Pick, what: Quantity, paper: Paper) -> Part {
    Part { grid, pick, what, unit: PERCENT, paper, over: Over::Each }
}

const DISTINCT: &str = "a commit writes m chunks for each stripe that is dirty, and the stand-ins touch 6,900 to 10,300 different stripes in \
                        10,000 writes, as each request is drawn afresh; the counts are those that this predicts within 0.7 %. The traces' \
                        locality in time is not printed";
const LENGTHS: &str = "the lengths of FIN's writes are not printed, only their mean; 2.2 % of the stand-in's are too long for one log stripe. \
                       Lengths of one and two chunks with the same mean give 9.4 to 14.8 %";
const BLACK_BOX: &str = "of the SSD only bandwidths are printed, not with how many requests under way; here it serves 32 at once and has them \
                         then, so what reads before it writes, as raid and parity-log do, waits long. Table throughput-readings has two other \
                         readings: with one request at a time the gain is larger still, with a queue that makes reads four times as fast FIN's \
                         gain over MD is within what H-12 says";

pub static HEADLINES: &[Headline] = &[
    Headline {
        id: "H-01",
        says: "SSD writes 45.6 to 54.9 % less than MD at (6+2), four traces",
        experiment: "X-05",
        check: Measured {
            parts: &[part("ssd-writes", EPLOG_6_2, By(quantities::ssd_saved), Between(45.6, 54.9))],
            why: "what the mean request size predicts (m s / (c + m s), s = 1 + (c - 1) / k) is 55.8 % for FIN and 55.7 % for MDS, 0.8 points above \
                  what is printed",
        },
    },
    Headline {
        id: "H-02",
        says: "38.6 to 39.9 % less for FIN, RAID-5",
        experiment: "X-05",
        check: Measured {
            parts: &[part("ssd-writes", FIN_RAID5, By(quantities::ssd_saved), Between(38.6, 39.9))],
            why: "the mean request size predicts 40.0 % at (4+1), which is what is counted",
        },
    },
    Headline {
        id: "H-03",
        says: "49.3 to 57.0 % less for FIN, RAID-6",
        experiment: "X-05",
        check: Measured {
            parts: &[part("ssd-writes", FIN_RAID6, By(quantities::ssd_saved), Between(49.3, 57.0))],
            why: "the mean request size predicts 57.2 % at (4+2), which is what is counted; the lower end is not explained by it",
        },
    },
    Headline {
        id: "H-04",
        says: "EPLOG writes as much to SSDs as PL",
        experiment: "X-05",
        check: Measured {
            parts: &[Part {
                grid: "ssd-writes",
                pick: &[("scheme", &["eplog"])],
                what: By(quantities::ssd_beyond_parity_log),
                unit: "chunks more",
                paper: Between(0.0, 0.0),
                over: Over::Each,
            }],
            why: "they must be the same to the chunk",
        },
    },
    Headline {
        id: "H-05",
        says: "GC requests 77.1 to 97.6 % less than MD at (6+2) (MDS has none, FIN is H-08)",
        experiment: "X-06",
        check: Measured {
            parts: &[part(
                "ssd-gc",
                &[("trace", &["web", "usr"]), ("geometry", &["6+2"]), ("scheme", &["eplog"])],
                Less(GC, RAID),
                Between(77.1, 97.6),
            )],
            why: "GC copies nothing in any of these runs, so the operations follow from the pages written alone; WEB's footprint takes 1.21 of the \
                  2 GiB of slack under every scheme. For more the paper's MD must have copied pages, ours overwrites in place, evenly",
        },
    },
    Headline {
        id: "H-06",
        says: "at least 8.1 % fewer GC requests than PL, every trace",
        experiment: "X-06",
        check: Measured {
            parts: &[part("ssd-gc", EPLOG_6_2, Less(GC, PARITY_LOG), AtLeast(8.1))],
            why: "both write the same chunks, and with nothing copied there is nothing by which eplog could be better; what it has more is its \
                  metadata, which goes to the SSDs and counts here",
        },
    },
    Headline {
        id: "H-07",
        says: "no GC at all under MDS at (6+2)",
        experiment: "X-06",
        check: Measured {
            parts: &[Part {
                grid: "ssd-gc",
                pick: &[("trace", &["mds"]), ("scheme", &["eplog"])],
                what: Figure(GC),
                unit: "operations per SSD",
                paper: Between(0.0, 0.0),
                over: Over::Each,
            }],
            why: "it must be none",
        },
    },
    Headline {
        id: "H-08",
        says: "GC 59.6 to 77.1 % less for FIN, all settings",
        experiment: "X-06",
        check: Measured {
            parts: &[part("ssd-gc", FIN_EPLOG, Less(GC, RAID), Between(59.6, 77.1))],
            why: "GC copies nothing, so the operations follow from the pages written and the slack of 2 GiB per SSD; with fewer parities raid \
                  writes less",
        },
    },
    Headline {
        id: "H-09",
        says: "commits cost at most 4.3 % (end), 17.4 % (every 10,000), 24.9 % (every 1,000) of the SSD writes",
        experiment: "X-07",
        check: Measured {
            parts: &[
                part("ssd-gc-commits", &[("commit", &["end"])], By(quantities::more_than_never), AtMost(4.3)),
                part(
                    "ssd-gc-commits",
                    &[("commit", &["10000"])],
                    By(quantities::more_than_never),
                    AtMost(17.4),
                ),
                part(
                    "ssd-gc-commits",
                    &[("commit", &["1000"])],
                    By(quantities::more_than_never),
                    AtMost(24.9),
                ),
            ],
            why: DISTINCT,
        },
    },
    Headline {
        id: "H-10",
        says: "with commits still more than 40 % less than MD in some cases",
        experiment: "X-07",
        check: Measured {
            parts: &[Part {
                grid: "ssd-gc-commits",
                pick: &[],
                what: By(quantities::committed_less_than_raid),
                unit: PERCENT,
                paper: AtLeast(40.0),
                over: Over::Any,
            }],
            why: DISTINCT,
        },
    },
    Headline {
        id: "H-11",
        says: "GC less than MD by 74.8 to 97.1 % (end), 68.1 to 93.0 % (every 10,000), 67.8 to 88.2 % (every 1,000)",
        experiment: "X-07",
        check: Measured {
            parts: &[
                part(
                    "ssd-gc-commits",
                    &[("commit", &["end"])],
                    By(quantities::committed_gc_less_than_raid),
                    Between(74.8, 97.1),
                ),
                part(
                    "ssd-gc-commits",
                    &[("commit", &["10000"])],
                    By(quantities::committed_gc_less_than_raid),
                    Between(68.1, 93.0),
                ),
                part(
                    "ssd-gc-commits",
                    &[("commit", &["1000"])],
                    By(quantities::committed_gc_less_than_raid),
                    Between(67.8, 88.2),
                ),
            ],
            why: DISTINCT,
        },
    },
    Headline {
        id: "H-12",
        says: "throughput 119.2 to 197.3 % above MD, FIN, four settings",
        experiment: "X-08",
        check: Measured {
            parts: &[part("throughput", FIN_EPLOG, More("requests_per_second", RAID), Between(119.2, 197.3))],
            why: BLACK_BOX,
        },
    },
    Headline {
        id: "H-13",
        says: "295.7 to 366.1 % above PL, FIN, four settings",
        experiment: "X-08",
        check: Measured {
            parts: &[part(
                "throughput",
                FIN_EPLOG,
                More("requests_per_second", PARITY_LOG),
                Between(295.7, 366.1),
            )],
            why: BLACK_BOX,
        },
    },
    Headline {
        id: "H-14",
        says: "30.1 to 119.2 % above MD, four traces, (6+2), no commit",
        experiment: "X-08",
        check: Measured {
            parts: &[part("throughput", EPLOG_6_2, More("requests_per_second", RAID), Between(30.1, 119.2))],
            why: BLACK_BOX,
        },
    },
    Headline {
        id: "H-15",
        says: "186.9 to 305.5 % above PL, four traces, (6+2), no commit",
        experiment: "X-08",
        check: Measured {
            parts: &[part(
                "throughput",
                EPLOG_6_2,
                More("requests_per_second", PARITY_LOG),
                Between(186.9, 305.5),
            )],
            why: BLACK_BOX,
        },
    },
    Headline {
        id: "H-16",
        says: "8 to 15 % fewer log chunks than PL, FIN",
        experiment: "X-08",
        check: Measured {
            parts: &[part(
                "ssd-writes",
                FIN_EPLOG,
                Less("totals.log_chunks_written", PARITY_LOG),
                Between(8.0, 15.0),
            )],
            why: LENGTHS,
        },
    },
    Headline {
        id: "H-17",
        says: "a commit at the end costs at most 4.79 % of the throughput",
        experiment: "X-08",
        check: Measured {
            parts: &[part(
                "throughput-commits",
                &[("commit", &["end"])],
                By(quantities::slower_than_never),
                AtMost(4.79),
            )],
            why: "the time of the commit counts. The stand-ins' writes are spread over their whole footprint, so nearly every stripe is dirty at \
                  the end",
        },
    },
    Headline {
        id: "H-18",
        says: "commits every 10,000 cost 23.8 % of the throughput on average, still 37.2 % above MD on average",
        experiment: "X-08",
        check: Measured {
            parts: &[
                Part {
                    grid: "throughput-commits",
                    pick: &[("commit", &["10000"])],
                    what: By(quantities::slower_than_never),
                    unit: PERCENT,
                    paper: Between(21.8, 25.8),
                    over: Over::Mean,
                },
                Part {
                    grid: "throughput-commits",
                    pick: &[("commit", &["10000"])],
                    what: By(quantities::committed_faster_than_raid),
                    unit: PERCENT,
                    paper: Between(35.2, 39.2),
                    over: Over::Mean,
                },
            ],
            why: "the rule is two points around what is printed. A commit here costs what the different stripes of 10,000 writes cost (H-09)",
        },
    },
    Headline {
        id: "H-19",
        says: "degraded mode costs at most 3.03 % with commits every 10,000",
        experiment: "X-08",
        check: Measured {
            parts: &[part(
                "degraded",
                &[("commit", &["10000 and end"]), ("failed", &["2"])],
                Less("requests_per_second", &[("failed", "0")]),
                AtMost(3.03),
            )],
            why: DEGRADED,
        },
    },
    Headline {
        id: "H-20",
        says: "degraded mode costs at most 64.8 % with one commit at the end",
        experiment: "X-08",
        check: Measured {
            parts: &[part(
                "degraded",
                &[("commit", &["end"]), ("failed", &["2"])],
                Less("requests_per_second", &[("failed", "0")]),
                AtMost(64.8),
            )],
            why: DEGRADED,
        },
    },
    Headline {
        id: "H-21",
        says: "recovery before the replay 60.3 MB/s with batches of 1, 182.9 MB/s with 100",
        experiment: "X-09",
        check: Measured {
            parts: &[
                recovered(
                    &[("when", &["before the replay"]), ("batch", &["1"]), ("prefetch", &["1"])],
                    54.3,
                    66.3,
                ),
                recovered(
                    &[("when", &["before the replay"]), ("batch", &["100"]), ("prefetch", &["1"])],
                    164.6,
                    201.2,
                ),
            ],
            why: RECOVERY,
        },
    },
    Headline {
        id: "H-22",
        says: "after the replay 35.0 and 62.9 MB/s",
        experiment: "X-09",
        check: Measured {
            parts: &[
                recovered(&[("when", &["after it"]), ("batch", &["1"]), ("prefetch", &["1"])], 31.5, 38.5),
                recovered(&[("when", &["after it"]), ("batch", &["100"]), ("prefetch", &["1"])], 56.6, 69.2),
            ],
            why: RECOVERY,
        },
    },
    Headline {
        id: "H-23",
        says: "prefetch adds at least 43.9 % after the replay",
        experiment: "X-09",
        check: Measured {
            parts: &[part(
                "recovery",
                &[("when", &["after it"]), ("prefetch", &["2"])],
                More("rebuild_bytes_per_s", &[("prefetch", "1")]),
                AtLeast(43.9),
            )],
            why: "with a whole array in one batch there is nothing left to fetch ahead",
        },
    },
    Headline {
        id: "H-24",
        says: "no faster beyond batches of 100",
        experiment: "X-09",
        check: Measured {
            parts: &[part(
                "recovery",
                &[("batch", &["1000"]), ("prefetch", &["1"])],
                More("rebuild_bytes_per_s", &[("batch", "100")]),
                AtMost(5.0),
            )],
            why: "the rule is 5 %. Between two batches all drives wait for the last one, which larger batches make rarer; with batches under way \
                  side by side little is left of it",
        },
    },
    Headline {
        id: "H-25",
        says: "KV, 4 KB, updates only: 70.7 to 395.5 % above MD, 17.6 to 279.3 % above PL",
        experiment: "X-10",
        check: Measured {
            parts: &[
                part("store-in-place", pairs::EPLOG_UPDATE, More(RATE, RAID), Between(70.7, 395.5)),
                part("store-in-place", pairs::EPLOG_UPDATE, More(RATE, PARITY_LOG), Between(17.6, 279.3)),
            ],
            why: pairs::WHY,
        },
    },
    Headline {
        id: "H-26",
        says: "KV, 4 KB, hybrid: 28.8 to 92.2 % above MD, 6.4 to 71.2 % above PL",
        experiment: "X-10",
        check: Measured {
            parts: &[
                part("store-in-place", pairs::EPLOG_MIXED, More(RATE, RAID), Between(28.8, 92.2)),
                part("store-in-place", pairs::EPLOG_MIXED, More(RATE, PARITY_LOG), Between(6.4, 71.2)),
            ],
            why: pairs::WHY,
        },
    },
    Headline {
        id: "H-27",
        says: "KV: EPLOG with updates only up to 86.9 % (4 KB) and 123.8 % (8 KB) above hybrid",
        experiment: "X-10",
        check: Measured {
            parts: &[
                Part {
                    over: Over::Any,
                    ..part("store-in-place", pairs::EPLOG_UPDATE, More(RATE, MIXED), AtLeast(86.9))
                },
                part("store-in-place", pairs::EPLOG_UPDATE, More(RATE, MIXED), AtMost(130.0)),
                Part {
                    over: Over::Any,
                    ..part("store-in-place", pairs::EPLOG_UPDATE_8, More(RATE, MIXED), AtLeast(123.8))
                },
                part("store-in-place", pairs::EPLOG_UPDATE_8, More(RATE, MIXED), AtMost(186.0)),
            ],
            why: pairs::UP_TO,
        },
    },
    Headline {
        id: "H-28",
        says: "KV: MD and PL are faster with hybrid loads than with updates only",
        experiment: "X-10",
        check: Measured {
            parts: &[part("store-in-place", pairs::OTHERS_MIXED, More(RATE, UPDATE), AtLeast(0.0))],
            why: pairs::WHY,
        },
    },
    Headline {
        id: "H-29",
        says: "KV, 4 KB: PL 30.6 to 45.2 % (updates only), 12.3 to 21.1 % (hybrid) above MD",
        experiment: "X-10",
        check: Measured {
            parts: &[
                part("store-in-place", pairs::LOGGING_UPDATE, More(RATE, RAID), Between(30.6, 45.2)),
                part("store-in-place", pairs::LOGGING_MIXED, More(RATE, RAID), Between(12.3, 21.1)),
            ],
            why: pairs::SOME,
        },
    },
    Headline {
        id: "H-30",
        says: "KV, 4 KB: from no cache to a whole one EPLOG gains 420.9 % (updates only), 153.4 % (hybrid)",
        experiment: "X-10",
        check: Measured {
            parts: &[
                part("store-in-place", pairs::CACHED_UPDATE, More(RATE, NO_CACHE), Between(378.8, 463.0)),
                part("store-in-place", pairs::CACHED_MIXED, More(RATE, NO_CACHE), Between(138.1, 168.7)),
            ],
            why: pairs::TENTH,
        },
    },
    Headline {
        id: "H-31",
        says: "creating whole stripes over 8 GiB writes 10.922 GB without checkpoints",
        experiment: "X-11",
        check: Measured {
            parts: &[Part {
                grid: "metadata",
                pick: &[("checkpoint", &["none"])],
                what: By(quantities::created_mib),
                unit: "MiB",
                paper: Between(10_922.0, 10_923.0),
                over: Over::Each,
            }],
            why: "8,192 MiB x 8 / 6",
        },
    },
    Headline {
        id: "H-32",
        says: "10.961 GB with a full checkpoint (+0.36 %)",
        experiment: "X-11",
        check: Measured {
            parts: &[part(
                "metadata",
                &[("checkpoint", &["full"])],
                By(quantities::created_metadata),
                AtMost(0.36),
            )],
            why: METADATA,
        },
    },
    Headline {
        id: "H-33",
        says: "updating writes 8.147 GB without checkpoints",
        experiment: "X-11",
        check: Measured {
            parts: &[Part {
                grid: "metadata",
                pick: &[("checkpoint", &["none"])],
                what: By(quantities::updated_mib),
                unit: "MiB",
                paper: Between(8_146.5, 8_147.5),
                over: Over::Each,
            }],
            why: "the updates themselves have 8,147 MiB, as their number is taken from that (A-28). What is beyond is parity: the engine commits by \
                  itself when the list of what no commit has covered reaches 32 MiB, some 500,000 updates",
        },
    },
    Headline {
        id: "H-34",
        says: "8.294 GB with an incremental checkpoint (+1.81 %)",
        experiment: "X-11",
        check: Measured {
            parts: &[part(
                "metadata",
                &[("checkpoint", &["incremental"])],
                By(quantities::updated_metadata),
                AtMost(1.81),
            )],
            why: METADATA,
        },
    },
    Headline {
        id: "H-35",
        says: "8.331 GB with a full checkpoint (+2.25 %)",
        experiment: "X-11",
        check: Measured {
            parts: &[part(
                "metadata",
                &[("checkpoint", &["full"])],
                By(quantities::updated_metadata),
                AtMost(2.25),
            )],
            why: METADATA,
        },
    },
    Headline {
        id: "H-36",
        says: "slides: about 50 % fewer writes, 77 % fewer GC operations, 30 to 120 % above MD, 190 to 300 % above PL",
        experiment: "X-08",
        check: Measured {
            parts: &[
                Part {
                    grid: "ssd-writes",
                    pick: EPLOG_6_2,
                    what: By(quantities::ssd_saved),
                    unit: PERCENT,
                    paper: Between(45.0, 55.0),
                    over: Over::Mean,
                },
                part(
                    "ssd-gc",
                    &[("trace", &["fin"]), ("geometry", &["6+2"]), ("scheme", &["eplog"])],
                    Less(GC, RAID),
                    Between(74.0, 80.0),
                ),
                part("throughput", EPLOG_6_2, More("requests_per_second", RAID), Between(30.0, 120.0)),
                part("throughput", EPLOG_6_2, More("requests_per_second", PARITY_LOG), Between(190.0, 300.0)),
            ],
            why: "a summary of H-01, H-08, H-14 and H-15, where its parts are explained",
        },
    },
    Headline {
        id: "H-37",
        says: "the prototype has about 7,300 lines of C++, the key-value store about 500",
        experiment: "X-01",
        check: NotPossible(
            "it describes their program; lines of another one neither confirm nor contradict it",
        ),
    },
    Headline {
        id: "H-38",
        says: "sequential writes of the hard disk are only 1.6 % below random writes of the SSD",
        experiment: "X-02",
        check: Measured {
            parts: &[part(
                "drives",
                &[("drive", &["HDD"]), ("pattern", &["sequential write"])],
                Less("mb_per_s", &[("drive", "SSD"), ("pattern", "random write")]),
                Between(1.5, 1.7),
            )],
            why: "the presets have the printed bandwidths, so anything else is a mistake of the model",
        },
    },
];

const METADATA: &str = "the rule is that no more metadata than printed goes to the SSDs; frames of the journal and automatic checkpoints count, which \
                        the paper's prototype does not have. Pages of the table, with a checksum for each chunk, and the list of what no commit \
                        has covered have three copies";
const DEGRADED: &str = "two SSDs fail behind the last write, and the commit without them counts: each stripe that is dirty is decoded. The \
                        stand-ins have more dirty stripes than the traces had (H-09)";
const RECOVERY: &str = "the rule is 10 % around what is printed. Of the SSD only bandwidths are known, and it is taken to serve 32 requests at once \
                        (table recovery-readings has other readings): stripe by stripe all but one of its 32 lanes are idle. What batches gain is larger here than in the paper for that \
                        reason, and after the replay all is slower than before, as in the paper";

const fn recovered(pick: Pick, low: f64, high: f64) -> Part {
    Part {
        grid: "recovery",
        pick,
        what: By(quantities::recovered),
        unit: "MB/s",
        paper: Between(low, high),
        over: Over::Each,
    }
}
