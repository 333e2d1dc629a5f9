//! The loads that experiments share.

use super::super::declare::{Kept, Source, Workload};
use trace::Profile;

const fn profile(name: &'static str, profile: Profile) -> Workload {
    Workload { name, source: Source::Profile(profile) }
}

const fn pages(name: &'static str, percent: u64, drives: u64) -> Workload {
    Workload { name, source: Source::Pages { percent, drives, counted: 4 } }
}

/// EPLOG's traces.
pub static FIN: Workload = profile("fin", Profile::Fin);
pub static WEB: Workload = profile("web", Profile::Web);
pub static USR: Workload = profile("usr", Profile::Usr);
pub static MDS: Workload = profile("mds", Profile::Mds);
pub static EPLOG: &[&Workload] = &[&FIN, &WEB, &USR, &MDS];

/// WAS's. Segments of 1 MiB of FIN are far apart and would not fit the array; the paper's tree of chunks does
/// not see that.
pub static WAS_SYNTHETIC: Workload = profile("was-synthetic", Profile::WasSynthetic);
/// Its other reading, by which every column of table I holds.
pub static WAS_SYNTHETIC_FIFTH: Workload = profile("was-synthetic-fifth", Profile::WasSyntheticFifth);
pub static FIN_WRITES: Workload = Workload { name: "fin", source: Source::Dense(Profile::Fin, Kept::Writes) };
pub static FIN_ALL: Workload = Workload { name: "fin", source: Source::Dense(Profile::Fin, Kept::ReadsToo) };
pub static ONLINE: Workload = profile("online", Profile::Online);
pub static WEBMAIL: Workload = profile("webmail", Profile::Webmail);
pub static ONLINE_WEBMAIL: Workload = profile("online-webmail", Profile::OnlineWebmail);
pub static WAS_WRITES: &[&Workload] =
    &[&WAS_SYNTHETIC, &WAS_SYNTHETIC_FIFTH, &FIN_WRITES, &ONLINE, &WEBMAIL, &ONLINE_WEBMAIL];
/// Both readings of WAS's synthetic load.
pub static WAS_SYNTHETICS: &[&Workload] = &[&WAS_SYNTHETIC, &WAS_SYNTHETIC_FIFTH];
pub static WAS_ALL: &[&Workload] =
    &[&WAS_SYNTHETIC, &WAS_SYNTHETIC_FIFTH, &FIN_ALL, &ONLINE, &WEBMAIL, &ONLINE_WEBMAIL];
pub static WAS_REAL: &[&Workload] = &[&FIN_WRITES, &ONLINE, &WEBMAIL, &ONLINE_WEBMAIL];

/// All of WAS whose figures are printed.
pub static CALIBRATED_WAS: &[&Workload] =
    &[&WAS_SYNTHETIC, &WAS_SYNTHETIC_FIFTH, &FIN, &ONLINE, &WEBMAIL, &ONLINE_WEBMAIL];

/// The shape of the IOzone run: uniform updates of 4 KiB over 8 GiB, as many as make the printed volume
///
pub static IOZONE: Workload = Workload {
    name: "iozone",
    source: Source::Random { profile: Profile::Uniform, range_bytes: 8 << 30, count: 2_085_632 },
};

/// The FIO run of the parity-stream paper, by the percentage of the space that it writes to.
pub static U10: Workload = pages("10", 10, 10);
pub static U20: Workload = pages("20", 20, 10);
pub static U30: Workload = pages("30", 30, 10);
pub static U40: Workload = pages("40", 40, 10);
pub static U50: Workload = pages("50", 50, 10);
pub static U60: Workload = pages("60", 60, 10);
pub static U70: Workload = pages("70", 70, 10);
pub static U80: Workload = pages("80", 80, 10);
pub static U90: Workload = pages("90", 90, 10);
pub static U100: Workload = pages("100", 100, 10);
pub static FIO: &[&Workload] = &[&U10, &U20, &U30, &U40, &U50, &U60, &U70, &U80, &U90, &U100];
pub static U50_LONG: Workload = pages("50", 50, 50);
pub static U70_LONG: Workload = pages("70", 70, 50);
pub static FIO_LONG: &[&Workload] = &[&U50_LONG, &U70_LONG];

const fn application(name: &'static str, profile: Profile, percent: u64) -> Workload {
    Workload { name, source: Source::Application { profile, percent, drives: 10, counted: 4 } }
}

/// What stands for TPC-C on MySQL and for YCSB on Cassandra, by the percentage of the space.
pub static TPCC_50: Workload = application("tpcc 50", Profile::TpccLike, 50);
pub static TPCC_70: Workload = application("tpcc 70", Profile::TpccLike, 70);
pub static TPCC_90: Workload = application("tpcc 90", Profile::TpccLike, 90);
pub static YCSB_100: Workload = application("ycsb 100", Profile::YcsbCompaction, 100);
pub static APPLICATIONS: &[&Workload] = &[&TPCC_50, &TPCC_70, &TPCC_90, &YCSB_100];

const fn fresh(name: &'static str, profile: Profile) -> Workload {
    Workload { name, source: Source::Fresh(profile) }
}

/// The new writes of EPLOG's traces, without their updates.
pub static FRESH: &[&Workload] = &[
    &fresh("fin", Profile::Fin),
    &fresh("web", Profile::Web),
    &fresh("usr", Profile::Usr),
    &fresh("mds", Profile::Mds),
];

const fn plain(name: &'static str, is_write: bool, is_sequential: bool) -> Workload {
    Workload { name, source: Source::Plain { is_write, is_sequential, count: 524_288 } }
}

/// Basic I/O: 2 GiB of requests of 4 KiB.
pub static PLAIN: &[&Workload] = &[
    &plain("sequential write", true, true),
    &plain("random write", true, false),
    &plain("sequential read", false, true),
    &plain("random read", false, false),
];

/// FIO on half of the space.
pub static HALF_FULL: &[&Workload] = &[&U50];

/// The traces of a folder that somebody has.
pub static OF_FOLDER: &[&Workload] = &[&Workload { name: "traces", source: Source::Folder }];
