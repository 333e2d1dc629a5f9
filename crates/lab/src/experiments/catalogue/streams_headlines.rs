//! What the parity-stream paper puts forward, H-53 to H-62.

use super::super::declare::{Check, Headline, Over, Paper, Part, Quantity};
use super::quantities;

use Check::Measured;
use Paper::{AtLeast, AtMost, Between};
use Quantity::By;

const PERCENT: &str = "%";

type Pick = &'static [(&'static str, &'static [&'static str])];

const fn part(
    pick: Pick,
    what: fn(&super::super::view::View, &super::super::view::Key) -> Option<f64>,
    paper: Paper,
) -> Part {
    Part { grid: "parity-streams", pick, what: By(what), unit: PERCENT, paper, over: Over::Each }
}

/// A statement on what stands for TPC-C or YCSB.
const fn of_application(
    pick: Pick,
    what: fn(&super::super::view::View, &super::super::view::Key) -> Option<f64>,
    paper: Paper,
    over: Over,
) -> Part {
    Part { grid: "application-streams", pick, what: By(what), unit: PERCENT, paper, over }
}

const TPC_C: Pick =
    &[("trace", &["tpcc 50", "tpcc 70", "tpcc 90"]), ("streams", &["cap 1"]), ("part", &["all"])];
const TPC_C_SEPARATE: Pick =
    &[("trace", &["tpcc 50", "tpcc 70", "tpcc 90"]), ("streams", &["parity"]), ("part", &["all"])];
const YCSB: Pick = &[("trace", &["ycsb 100"]), ("streams", &["cap 1"]), ("part", &["all"])];
const YCSB_SEPARATE: Pick = &[("trace", &["ycsb 100"]), ("streams", &["parity"]), ("part", &["all"])];

const FULL: &str = "the load is a stand-in (H-54). It writes long requests over all of the space, so that only a sixth or so of the pages is parity, and \
                    GC has little to copy; in SLC mode that parity takes spare space that a full SSD needs, and the copies that come of it are \
                    more stress than SLC mode saves";
const STAND_IN: &str = "the load is a stand-in that has nothing of the paper's trace: what the specification of the benchmark says, and what \
                        such stores are known to do; chunks of 16 KiB, where the paper's array has 512 KiB";
const SPACE: &str = "parity in SLC mode takes another seventh of the space in use, which is half of the spare space at 100 %; the rerun of the \
                     authors' simulator did so too";

pub static HEADLINES: &[Headline] = &[
    Headline {
        id: "H-53",
        says: "a parity stream: 58 % fewer page copies, FIO",
        experiment: "X-23",
        check: Measured {
            parts: &[Part {
                grid: "parity-streams",
                pick: &[("streams", &["parity"]), ("part", &["all"])],
                what: By(quantities::copies_saved),
                unit: PERCENT,
                paper: AtLeast(58.0),
                over: Over::Any,
            }],
            why: "the paper does not say how full its SSDs were, so the rule is that some utilization reaches it: up to 10 % does. With Zipf, \
                  temperatures differ within each stream more than between the two",
        },
    },
    Headline {
        id: "H-54",
        says: "TPC-C: a smaller gain",
        experiment: "X-23",
        check: Measured {
            parts: &[
                // FIO with as much of the space in use, which it is compared with.
                part(
                    &[("trace", &["50", "70", "90"]), ("streams", &["parity"]), ("part", &["all"])],
                    quantities::copies_saved,
                    AtLeast(0.0),
                ),
                of_application(TPC_C_SEPARATE, quantities::copies_saved_beyond_fio, AtMost(0.0), Over::Each),
            ],
            why: STAND_IN,
        },
    },
    Headline {
        id: "H-55",
        says: "YCSB: streams gain nothing, and with SLC mode copies rise",
        experiment: "X-23",
        check: Measured {
            parts: &[
                of_application(YCSB_SEPARATE, quantities::copies_saved, Between(-10.0, 10.0), Over::Each),
                of_application(YCSB, quantities::copies_saved, AtMost(-0.1), Over::Each),
            ],
            why: STAND_IN,
        },
    },
    Headline {
        id: "H-56",
        says: "lifespan 54 % longer, TPC-C, R = 3.5",
        experiment: "X-23",
        check: Measured {
            parts: &[of_application(TPC_C, quantities::lifespan_35, AtLeast(54.0), Over::Any)],
            why: STAND_IN,
        },
    },
    Headline {
        id: "H-57",
        says: "YCSB: about 10 % longer in spite of more copies",
        experiment: "X-23",
        check: Measured {
            parts: &[of_application(YCSB, quantities::lifespan_25, Between(5.0, 15.0), Over::Each)],
            why: FULL,
        },
    },
    Headline {
        id: "H-58",
        says: "a parity stream alone hardly changes the lifespan",
        experiment: "X-23",
        check: Measured {
            parts: &[part(
                &[("streams", &["parity"]), ("part", &["all"])],
                quantities::lifespan_25,
                AtMost(10.0),
            )],
            why: "the rule is 10 %: so it is up to 80 % of the space in use. Above, copies are most of the wear",
        },
    },
    Headline {
        id: "H-59",
        says: "SLC mode lengthens the lifespan in all cases",
        experiment: "X-23",
        check: Measured {
            parts: &[
                part(&[("streams", &["cap 1"]), ("part", &["all"])], quantities::lifespan_15, AtLeast(0.1)),
                part(&[("streams", &["cap 1"]), ("part", &["all"])], quantities::lifespan_25, AtLeast(0.1)),
                part(&[("streams", &["cap 1"]), ("part", &["all"])], quantities::lifespan_35, AtLeast(0.1)),
            ],
            why: SPACE,
        },
    },
    Headline {
        id: "H-60",
        says: "throughput falls with the space in use, below base above 50 %",
        experiment: "X-24",
        check: Measured {
            parts: &[
                part(
                    &[("streams", &["cap 1"]), ("part", &["all"])],
                    quantities::faster_than_emptier,
                    AtMost(0.0),
                ),
                part(
                    &[
                        ("trace", &["60", "70", "80", "90", "100"]),
                        ("streams", &["cap 1"]),
                        ("part", &["all"]),
                    ],
                    quantities::faster_than_base,
                    AtMost(0.0),
                ),
            ],
            why: "the authors' FTL lets data into parity blocks through GC: at 70 % and cap 1 its write amplification is 2.238, ours 1.789; and a \
                  copy in SLC mode takes half the time",
        },
    },
    Headline {
        id: "H-61",
        says: "the lifespan gained remains at 90 % of the space, R = 2.5",
        experiment: "X-24",
        check: Measured {
            parts: &[part(
                &[("trace", &["90"]), ("streams", &["cap 1"]), ("part", &["all"])],
                quantities::lifespan_25,
                AtLeast(0.1),
            )],
            why: SPACE,
        },
    },
    Headline {
        id: "H-62",
        says: "the more SLC blocks, the longer the lifespan at any utilization; throughput lower when more than 50 % is in use",
        experiment: "X-25",
        check: Measured {
            parts: &[
                part(
                    &[
                        ("trace", &["30", "50", "70", "90", "100"]),
                        ("streams", &["cap 0.2", "cap 0.4", "cap 0.6", "cap 0.8", "cap 1"]),
                        ("part", &["all"]),
                    ],
                    quantities::lifespan_beyond_smaller_cap,
                    AtLeast(-0.5),
                ),
                part(
                    &[("trace", &["70", "90", "100"]), ("streams", &["cap 1"]), ("part", &["all"])],
                    quantities::faster_than_base,
                    AtMost(0.0),
                ),
            ],
            why: SPACE,
        },
    },
];
