//! What the WAS paper puts forward, H-39 to H-52.

use super::super::declare::{Check, Headline, Over, Paper, Part, Quantity};
use super::quantities;

use Check::Measured;
use Paper::{AtLeast, AtMost, Between};
use Quantity::{By, Figure, Less};

const REWRITTEN: &str = "gc.chunks_rewritten";
const RESPONSE: &str = "latency_us_mean";
const ELASTIC: &[(&str, &str)] = &[("row", "elastic")];
const PERCENT: &str = "%";

type Pick = &'static [(&'static str, &'static [&'static str])];

const fn part(grid: &'static str, pick: Pick, what: Quantity, paper: Paper) -> Part {
    Part { grid, pick, what, unit: PERCENT, paper, over: Over::Each }
}

/// The response time of Synthetic beside the slowest other one, with 32 requests in flight.
const fn slowest(row: Pick) -> Part {
    Part {
        grid: "was-ssds",
        pick: row,
        what: By(quantities::slower_than_all_others),
        unit: "times the slowest other",
        paper: AtLeast(1.05),
        over: Over::Each,
    }
}

const TABLE: &str = "GLRU sees only what comes again soon: with writes that know nothing of each other 1,024 x sum p(i)^2 of them are called hot, 1 \
                     to 6 % of those of the stand-ins, which is what is counted. The traces' locality in time is not among what is printed. \
                     What is inside or above is so because elastic writes short stripes after 200 ms of the trace; against full stripes \
                     (elastic-full) 1 to 8 % are saved everywhere. Of Synthetic both readings count: the one by table I has a hot fifth that is easier to \
                     see, and no more locality";
const LOOPS: &str = "the paper does not say how it sent requests. At the times of the trace writes are answered from memory and nothing waits, so \
                     nothing could be shortened; with 32 requests in flight, as judged here, the SSDs are the limit and the mean is 32 requests \
                     by their throughput";

pub static HEADLINES: &[Headline] = &[
    Headline {
        id: "H-39",
        says: "two groups: 70.6 % fewer GC rewrites, Financial1, RAID-5",
        experiment: "X-16",
        check: Measured {
            parts: &[part(
                "placement",
                &[("trace", &["fin"]), ("geometry", &["7+1"]), ("row", &["was-2"])],
                Less(REWRITTEN, ELASTIC),
                Between(70.6, 70.6),
            )],
            why: TABLE,
        },
    },
    Headline {
        id: "H-40",
        says: "30.0 to 43.2 % fewer, the other four, RAID-5",
        experiment: "X-16",
        check: Measured {
            parts: &[part(
                "placement",
                &[
                    (
                        "trace",
                        &["was-synthetic", "was-synthetic-fifth", "online", "webmail", "online-webmail"],
                    ),
                    ("geometry", &["7+1"]),
                    ("row", &["was-2"]),
                ],
                Less(REWRITTEN, ELASTIC),
                Between(30.0, 43.2),
            )],
            why: TABLE,
        },
    },
    Headline {
        id: "H-41",
        says: "23.9 to 63.2 % fewer, RAID-6",
        experiment: "X-16",
        check: Measured {
            parts: &[part(
                "placement",
                &[("geometry", &["6+2"]), ("row", &["was-2"])],
                Less(REWRITTEN, ELASTIC),
                Between(23.9, 63.2),
            )],
            why: TABLE,
        },
    },
    Headline {
        id: "H-42",
        says: "more than two groups: hardly more",
        experiment: "X-16",
        check: Measured {
            parts: &[part(
                "placement",
                &[("row", &["was-3", "was-4"])],
                Less(REWRITTEN, &[("row", "was-2")]),
                Between(-2.0, 2.0),
            )],
            why: "the rule is 2 % either way",
        },
    },
    Headline {
        id: "H-43",
        says: "response time 60.9 to 79.3 % less, RAID-5",
        experiment: "X-17",
        check: Measured {
            parts: &[part(
                "was-ssds",
                &[("geometry", &["7+1"]), ("row", &["was-2"]), ("loop", &["closed"])],
                Less(RESPONSE, ELASTIC),
                Between(60.9, 79.3),
            )],
            why: LOOPS,
        },
    },
    Headline {
        id: "H-44",
        says: "56.8 to 80.9 % less, RAID-6",
        experiment: "X-17",
        check: Measured {
            parts: &[part(
                "was-ssds",
                &[("geometry", &["6+2"]), ("row", &["was-2"]), ("loop", &["closed"])],
                Less(RESPONSE, ELASTIC),
                Between(56.8, 80.9),
            )],
            why: LOOPS,
        },
    },
    Headline {
        id: "H-45",
        says: "Synthetic has much longer response times than the others, under both",
        experiment: "X-17",
        check: Measured {
            parts: &[slowest(&[
                ("trace", &["was-synthetic"]),
                ("row", &["elastic", "was-2"]),
                ("loop", &["closed"]),
            ])],
            why: "with 32 requests in flight; at the times of the trace it has no times between its requests",
        },
    },
    Headline {
        id: "H-46",
        says: "erases 22.9 to 63.2 % less, RAID-5",
        experiment: "X-18",
        check: Measured {
            parts: &[part(
                "was-ssds",
                &[("geometry", &["7+1"]), ("row", &["was-2"]), ("loop", &["open"])],
                Less("erases", ELASTIC),
                Between(22.9, 63.2),
            )],
            why: TABLE,
        },
    },
    Headline {
        id: "H-47",
        says: "erases 23.0 to 61.8 % less, RAID-6",
        experiment: "X-18",
        check: Measured {
            parts: &[part(
                "was-ssds",
                &[("geometry", &["6+2"]), ("row", &["was-2"]), ("loop", &["open"])],
                Less("erases", ELASTIC),
                Between(23.0, 61.8),
            )],
            why: TABLE,
        },
    },
    Headline {
        id: "H-48",
        says: "erases are balanced over the SSDs, Online, RAID-5",
        experiment: "X-18",
        check: Measured {
            parts: &[part(
                "was-ssds",
                &[
                    ("trace", &["online"]),
                    ("geometry", &["7+1"]),
                    ("row", &["elastic", "was-2", "was-3", "was-4"]),
                    ("loop", &["open"]),
                ],
                By(quantities::spread),
                AtMost(10.0),
            )],
            why: "the rule is that least and most are 10 % of the mean apart",
        },
    },
    Headline {
        id: "H-49",
        says: "mean time to data loss 2 to 20 times that of eSAP",
        experiment: "X-19",
        check: Measured {
            parts: &[Part {
                grid: "mttdl",
                pick: &[("repairs per year", &["10,000 as printed"])],
                what: Figure("times"),
                unit: "times",
                paper: Between(1.55, 20.45),
                over: Over::Each,
            }],
            why: "1.69 to 19.7 times, which round to what is printed",
        },
    },
    Headline {
        id: "H-50",
        says: "GLRU costs up to 16.7 % less GC than HCA",
        experiment: "X-21",
        check: Measured {
            parts: &[part(
                "placement",
                &[("row", &["was-2"])],
                Less(REWRITTEN, &[("row", "was-2-hca")]),
                Between(0.0, 16.7),
            )],
            why: "HCA knows every chunk and does better than GLRU everywhere. On all but the synthetic load its counts are those of one group with \
                  collected chunks in units of their own: what it gains is that these are apart",
        },
    },
    Headline {
        id: "H-51",
        says: "GLRU takes about 5 KB, HCA about 2.5 MB for a GB",
        experiment: "X-13",
        check: Measured {
            parts: &[
                Part {
                    grid: "hotness-memory",
                    pick: &[("identifier", &["GLRU"])],
                    what: Figure("kib"),
                    unit: "KiB",
                    paper: Between(4.5, 5.5),
                    over: Over::Each,
                },
                Part {
                    grid: "hotness-memory",
                    pick: &[("identifier", &["HCA"])],
                    what: Figure("kib"),
                    unit: "KiB for a GiB",
                    paper: Between(2300.0, 2900.0),
                    over: Over::Each,
                },
            ],
            why: "10 % or so around what is printed: HCA has 11 bytes a chunk here, 10 in the paper",
        },
    },
    Headline {
        id: "H-52",
        says: "16 SSDs with blocks of 128 pages: a group has 7.5 MB",
        experiment: "X-13",
        check: Measured {
            parts: &[Part {
                grid: "group-size",
                pick: &[],
                what: Figure("placement.group_chunks"),
                unit: "chunks of 4 KiB",
                paper: Between(1920.0, 1920.0),
                over: Over::Each,
            }],
            why: "15 x 128 chunks; a group is a unit, or an equal part of it where that is large",
        },
    },
];
