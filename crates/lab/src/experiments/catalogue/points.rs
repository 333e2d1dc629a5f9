//! Axes that experiments share.

use super::super::declare::{Axis, Point, point};

/// EPLOG's four arrays.
pub const EPLOG_SHAPES: Axis = Axis {
    name: "geometry",
    points: &[
        point("4+1", "--geometry 4+1"),
        point("6+1", "--geometry 6+1"),
        point("4+2", "--geometry 4+2"),
        point("6+2", "--geometry 6+2"),
    ],
};

/// Linux md, which the paper compares with: scheme `raid` with md's cache of stripes at its default size.
pub const MD: Point = point("raid", "--scheme raid --stripe-cache 256");

/// Its three schemes; the paper logs every update (section 3.2).
pub const SCHEMES: Axis = Axis {
    name: "scheme",
    points: &[
        MD,
        point("parity-log", "--scheme parity-log"),
        point("eplog", "--scheme eplog --rewrites log"),
    ],
};

/// Only FIN is run on all four arrays.
pub const FIN_ALONE: &[(&str, &[&str])] =
    &[("trace", &["web", "usr", "mds"]), ("geometry", &["4+1", "6+1", "4+2"])];

/// When parity is committed.
pub const COMMITS: Axis = Axis {
    name: "commit",
    points: &[
        point("end", "--commit-every end"),
        point("10000", "--commit-every 10000"),
        point("1000", "--commit-every 1000"),
    ],
};

/// WAS's two arrays, and the chunks of a unit of 64 rows.
pub const WAS_SHAPES: Axis = Axis {
    name: "geometry",
    points: &[
        Point { label: "7+1", words: "--geometry 7+1 --code xor", sets: &[("unit", "448")] },
        Point { label: "6+2", words: "--geometry 6+2 --code rdp", sets: &[("unit", "384")] },
    ],
};
