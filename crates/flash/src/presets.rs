//! Named devices, each with the source of its figures. The table in docs/flash.md says what is published,
//! what derived and what assumed.

use crate::config::{GcFrontier, SsdConfig};
use crate::device::{BlackBoxOptions, DeviceConfig};
use crate::geometry::Geometry;
use crate::hdd::HddOptions;
use crate::slc::{SlcCap, SlcOptions};
use crate::stream::StreamOptions;
use crate::timing::{Buffering, Timing};
use crate::victims::GcPolicy;
use crate::wear::WearLevelling;

/// All names.
pub const NAMES: [&str; 9] = [
    "eplog-disksim",
    "was-ssd",
    "ps-vnand",
    "nvme-tlc",
    "nvme-qlc",
    "plextor-m5pro",
    "plextor-m5pro-serial",
    "plextor-m5pro-queued",
    "seagate-st1000dm003",
];

/// Erases that a block of the SSD of this name is rated for; none where it is no SSD that is known from
/// inside. Data sheets print drive writes instead, so these are the usual figures of the kind of flash:
/// SLC as in DiskSim's table 100,000, MLC and TLC with 3D cells 3,000, QLC 1,000.
pub fn rated_erases(name: &str) -> Option<u32> {
    match name {
        "eplog-disksim" => Some(100_000),
        "was-ssd" | "ps-vnand" | "nvme-tlc" => Some(3_000),
        "nvme-qlc" => Some(1_000),
        _ => None,
    }
}

/// The device of this name.
pub fn by_name(name: &str) -> Option<DeviceConfig> {
    let ssd = |config| Some(DeviceConfig::Ssd(Box::new(config)));
    match name {
        "eplog-disksim" => ssd(eplog_disksim()),
        "was-ssd" => ssd(was_ssd()),
        "ps-vnand" => ssd(ps_vnand()),
        "nvme-tlc" => ssd(nvme_tlc()),
        "nvme-qlc" => ssd(nvme_qlc()),
        "plextor-m5pro" => Some(DeviceConfig::BlackBox(plextor_m5pro())),
        "plextor-m5pro-serial" => {
            Some(DeviceConfig::BlackBox(BlackBoxOptions { parallel: 1, ..plextor_m5pro() }))
        }
        "plextor-m5pro-queued" => Some(DeviceConfig::BlackBox(plextor_m5pro_queued())),
        "seagate-st1000dm003" => Some(DeviceConfig::Hdd(seagate_st1000dm003())),
        _ => None,
    }
}

fn plain(geometry: Geometry, logical_pages: u64, free_blocks_min: u32, timing: Timing) -> SsdConfig {
    SsdConfig {
        geometry,
        logical_pages,
        free_blocks_min,
        domains: 1,
        ways: 1,
        gc: GcPolicy::Greedy,
        gc_frontier: GcFrontier::Shared,
        streams: StreamOptions::default(),
        mapping: None,
        wear_levelling: WearLevelling::default(),
        slc: None,
        timing: Some(timing),
        seed: 0,
    }
}

/// DiskSim's SSD extension as DiskSim ships it, with 4 KiB pages: read 25 us, program 200 us, erase 1.5 ms,
/// 25 ns per byte on the bus (Agrawal and others, "Design Tradeoffs for SSD Performance", USENIX ATC 2008,
/// table 3).
const DISKSIM_TIMING: Timing = Timing {
    read_ns: [25_000, 25_000],
    program_ns: [200_000, 200_000],
    erase_ns: 1_500_000,
    transfer_ns: 102_400,
    link_ns: 0,
    command_ns: 0,
    buffering: Buffering::None,
};

/// The SSD of EPLOG's GC experiment: 20 GiB raw, 5 elements of 16,384 blocks of 64 pages of 4
/// KiB, 15 % over-provisioning of raw, GC below 5 % free blocks, greedy, no wear levelling.
pub fn eplog_disksim() -> SsdConfig {
    let geometry = Geometry {
        channels: 5,
        dies_per_channel: 1,
        planes_per_die: 8,
        blocks_per_plane: 2048,
        ..Geometry::single_die(1, 64, 4096)
    };
    let blocks = geometry.blocks();
    let config = plain(geometry, geometry.data_pages() * 85 / 100, blocks / 20, DISKSIM_TIMING);
    SsdConfig { domains: 5, ..config }
}

/// The SSD of the WAS paper's experiments: 64-page blocks, 4 KiB pages, a working area of 256 MiB. The
/// paper says no more; over-provisioning and GC threshold as in [`eplog_disksim`].
pub fn was_ssd() -> SsdConfig {
    let geometry = Geometry {
        channels: 4,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 302,
        ..Geometry::single_die(1, 64, 4096)
    };
    let blocks = geometry.blocks();
    SsdConfig { ways: 4, ..plain(geometry, (256 << 20) / 4096, blocks / 20, DISKSIM_TIMING) }
}

/// The SSD of the parity-stream paper (P-14, P-15, A-24): 2,048 blocks of 256 pages of 16 KiB (128 in SLC
/// mode), over-provisioning 28 % of nameplate.
pub fn ps_vnand() -> SsdConfig {
    let geometry = Geometry::single_die(2048, 256, 16_384);
    let timing = Timing {
        read_ns: [35_000, 20_000],
        program_ns: [390_000, 180_000],
        erase_ns: 4_000_000,
        transfer_ns: 0,
        link_ns: 0,
        command_ns: 0,
        buffering: Buffering::None,
    };
    plain(geometry, 2048 * 256 * 100 / 128, 3, timing)
}

/// Convertible programming as in the parity-stream paper, for [`ps_vnand`].
pub fn ps_vnand_slc(cap: SlcCap, stress_ratio: f64) -> SlcOptions {
    SlcOptions { cap, pages_per_block: 128, stress_ratio }
}

/// An NVMe drive with TLC flash, 64 GB of it: latencies of FEMU's TLC table (from SimpleSSD), averaged over
/// the three page types, and one program for a word line's three pages.
pub fn nvme_tlc() -> SsdConfig {
    let timing = Timing {
        read_ns: [80_000, 40_000],
        program_ns: [975_500, 200_000],
        erase_ns: 3_000_000,
        transfer_ns: 5_120,
        link_ns: 585,
        command_ns: 8_000,
        buffering: Buffering::Protected(4096),
    };
    nvme(384, 128, timing)
}

/// An NVMe drive with QLC flash: latencies measured by Chen and others ("PACA", ICCD 2022) on 96-layer QLC,
/// as FEMU has them, averaged over the four page types.
pub fn nvme_qlc() -> SsdConfig {
    let timing = Timing {
        read_ns: [121_700, 40_000],
        program_ns: [1_860_000, 200_000],
        erase_ns: 6_340_000,
        transfer_ns: 5_120,
        link_ns: 585,
        command_ns: 8_000,
        buffering: Buffering::Protected(4096),
    };
    nvme(512, 128, timing)
}

/// 8 channels of 4 dies of 4 planes, mapped in 4 KiB; 7 % of nameplate over-provisioned.
fn nvme(pages_per_block: u32, blocks_per_plane: u32, timing: Timing) -> SsdConfig {
    let geometry = Geometry {
        channels: 8,
        dies_per_channel: 4,
        planes_per_die: 4,
        blocks_per_plane,
        ..Geometry::single_die(1, pages_per_block * 4, 4096)
    };
    let logical_pages = geometry.data_pages() * 100 / 107;
    // A page of the flash has four of the map's pages, which are programmed together.
    let quarter = |times: [u64; 2]| times.map(|time| time / 4);
    let timing = Timing { program_ns: quarter(timing.program_ns), ..timing };
    let streams = StreamOptions { limit: 8, ..StreamOptions::default() };
    SsdConfig { ways: 16, streams, ..plain(geometry, logical_pages, 32, timing) }
}

/// EPLOG's SSDs by their bandwidths: sequential and random writes 93.4 and 93.1 MB/s, reads 99.23 and
/// 32.8 MB/s, of 4 KiB direct; 128 GB.
pub fn plextor_m5pro() -> BlackBoxOptions {
    let rates = HddOptions {
        pages: 128_000_000_000 / 4096,
        page_bytes: 4096,
        sequential: [99.23e6, 93.4e6],
        random: [32.8e6, 93.1e6],
    };
    BlackBoxOptions { rates, parallel: 32 }
}

/// The same if table 1 was measured with one request under way and a drive with a queue reads four times as
/// much; written pages wait in its cache either way. An assumption, with nothing printed behind it.
pub fn plextor_m5pro_queued() -> BlackBoxOptions {
    const READS_AT_ONCE: f64 = 4.0;
    let drive = plextor_m5pro();
    let [random_read, random_write] = drive.rates.random;
    let [read, write] = drive.rates.sequential;
    let random = [random_read * READS_AT_ONCE, random_write];
    let rates = HddOptions { random, sequential: [read.max(random[0]), write], ..drive.rates };
    BlackBoxOptions { rates, parallel: 1 }
}

/// EPLOG's log disks by their bandwidths: sequential and random writes 91.6 and 1.1 MB/s, reads 94.2
/// and 0.6 MB/s; 1 TB.
pub fn seagate_st1000dm003() -> HddOptions {
    HddOptions {
        pages: 1_000_000_000_000 / 4096,
        page_bytes: 4096,
        sequential: [94.2e6, 91.6e6],
        random: [0.6e6, 1.1e6],
    }
}
