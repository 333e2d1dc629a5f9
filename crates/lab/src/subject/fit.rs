//! How large the devices of an array must be for a trace.
//!
//! With room for every old version and every log chunk of the replay, parity is committed only when it is
//! asked for, as in the papers' experiments (B-06). Where memory does not hold that, there is less room and
//! commits come when it runs out.

use super::build::{DeviceKind, Kind, Room, Sized, size, size_exactly};
use crate::failure::Failure;
use array::{EngineOptions, Layout, MemoryNeed, SyncPolicy};
use block::{Lcn, META_BYTES};
use flash::SsdConfig;
use format::ArrayConfig;
use node::memory::available_bytes;
use node::units::show_size;
use placement::GcThreshold;
use trace::{Op, Request};

/// Share of the free memory that devices may take, in percent.
const MEMORY_PERCENT: u64 = 70;
/// What sizes an array for a trace.
const TRACE: &str = "trace (--compact, --head)";
/// Records of one chunk that a frame has room for at least, with the most parities that papers look at.
const RECORDS_PER_FRAME_MIN: u64 = 64;
/// With less room for old versions nothing but commits would happen.
const SPARE_CHUNKS_MIN: u64 = 64;

/// What the writes of a trace ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Demand {
    /// Chunk writes to the device that gets most.
    per_device: u64,
    /// All chunk writes.
    chunks: u64,
    /// Flushes, and with durable writes every write: each may end a frame of the journal.
    syncs: u64,
}

fn demand(kind: &Kind, requests: &[Request], sync: SyncPolicy) -> Demand {
    let layout = Layout::new(kind.layout, kind.geometry);
    let mut per_device = vec![0u64; kind.geometry.device_count()];
    let (mut chunks, mut syncs) = (0, 0);
    for request in requests {
        syncs += u64::from(match request.op {
            Op::Write => sync == SyncPolicy::Always,
            Op::Flush => true,
            Op::Read | Op::Trim => false,
        });
        if request.op != Op::Write {
            continue;
        }
        let range = request.chunks(kind.geometry.chunk_bytes() as u64);
        chunks += range.end - range.start;
        for lcn in range {
            per_device[layout.device_of(Lcn::new(lcn)).index()] += 1;
        }
    }
    Demand { per_device: per_device.into_iter().max().unwrap_or(0), chunks, syncs }
}

/// Devices for a trace of this footprint.
pub fn fit(
    kind: &Kind,
    devices: DeviceKind,
    requests: &[Request],
    sync: SyncPolicy,
    footprint_bytes: u64,
) -> Result<Sized, Failure> {
    if kind.scheme.is_elastic() {
        return fit_elastic(kind, devices, footprint_bytes);
    }
    let demand = demand(kind, requests, sync);
    let chunk_bytes = kind.geometry.chunk_bytes() as u64;
    let (k, n) = (kind.geometry.data_count() as u64, kind.geometry.device_count() as u64);
    let stripes = footprint_bytes.div_ceil(k * chunk_bytes);
    let mut room = room_for(kind, &demand, footprint_bytes);
    if devices == DeviceKind::Memory {
        let free = available_bytes() * MEMORY_PERCENT / 100;
        let volume = stripes * n * chunk_bytes;
        let logs = kind.geometry.parity_count() as u64;
        // What is written becomes resident, not what there is room for.
        let wanted = demand.chunks.saturating_mul((1 + logs) * chunk_bytes);
        check_memory(volume.saturating_mul(5) / 4, free)?;
        let left = free - volume;
        if wanted > left {
            let scale = |wished: u64| (u128::from(wished) * u128::from(left) / u128::from(wanted)) as u64;
            room.spare_chunks = scale(room.spare_chunks).max(1024);
            room.log_blocks = scale(room.log_blocks).max(16_384);
        }
    }
    size(kind, &room)
}

/// So much that `used` leaves more than the quarter at which a commit begins by itself.
fn with_unused(used: u64) -> u64 {
    used.saturating_mul(4).div_ceil(3) + 1
}

/// Room for every old version and every log chunk.
fn room_for(kind: &Kind, demand: &Demand, footprint_bytes: u64) -> Room {
    let chunk_bytes = kind.geometry.chunk_bytes() as u64;
    let stripes = footprint_bytes.div_ceil(kind.geometry.data_count() as u64 * chunk_bytes);
    let blocks = chunk_bytes / META_BYTES as u64;
    // A commit writes parity out of place before it frees anything: room for that, and as much again for
    // its pace.
    let spare_chunks = demand.per_device + stripes.min(demand.chunks) + 1024;
    // In the worst case each chunk is a log stripe of its own, with a record in a frame of the journal.
    let records = demand.chunks.div_ceil(RECORDS_PER_FRAME_MIN);
    let log_blocks = demand.chunks * blocks + records + demand.syncs + 16_384;
    Room {
        volume_bytes: footprint_bytes,
        spare_chunks: with_unused(spare_chunks),
        log_blocks: with_unused(log_blocks),
        sized_by: TRACE,
    }
}

/// The same, but main devices of at most `main_bytes_max`: with less room for old versions, commits come
/// when it runs out.
pub fn fit_within(
    kind: &Kind,
    requests: &[Request],
    sync: SyncPolicy,
    footprint_bytes: u64,
    main_bytes_max: u64,
) -> Result<Sized, Failure> {
    let chunk_bytes = kind.geometry.chunk_bytes() as u64;
    let mut room = if kind.scheme.is_elastic() {
        let stripes = footprint_bytes.div_ceil(kind.geometry.data_count() as u64 * chunk_bytes);
        Room {
            volume_bytes: footprint_bytes,
            spare_chunks: stripes.div_ceil(3),
            log_blocks: 0,
            sized_by: TRACE,
        }
    } else {
        room_for(kind, &demand(kind, requests, sync), footprint_bytes)
    };
    let wished = size(kind, &room)?;
    if wished.main_bytes <= main_bytes_max {
        return Ok(wished);
    }
    let in_place = kind.scheme.is_in_place();
    // Each old version takes room in the checkpoint areas, too: how many fit is found by trying.
    let (mut least, mut over) = (SPARE_CHUNKS_MIN, room.spare_chunks);
    let mut fits = None;
    room.spare_chunks = least;
    while !in_place && least < over {
        let sized = size(kind, &room)?;
        if sized.main_bytes <= main_bytes_max {
            (least, fits) = (room.spare_chunks, Some(sized));
        } else {
            over = room.spare_chunks;
        }
        if fits.is_none() || over - least <= over / 64 + 1 {
            break;
        }
        room.spare_chunks = least.midpoint(over);
    }
    fits.ok_or_else(|| {
        Failure::new(format!(
            "the trace needs devices of about {} under scheme {}, found SSDs of {}; use --compact, or a larger SSD",
            show_size(wished.main_bytes),
            kind.scheme,
            show_size(main_bytes_max)
        ))
    })
}

/// An elastic scheme takes all of its devices in turn; a quarter of them is left for garbage.
fn fit_elastic(kind: &Kind, devices: DeviceKind, footprint_bytes: u64) -> Result<Sized, Failure> {
    let chunk_bytes = kind.geometry.chunk_bytes() as u64;
    let stripes = footprint_bytes.div_ceil(kind.geometry.data_count() as u64 * chunk_bytes);
    let room = Room {
        volume_bytes: footprint_bytes,
        spare_chunks: stripes.div_ceil(3),
        log_blocks: 0,
        sized_by: TRACE,
    };
    let sized = size(kind, &room)?;
    if devices == DeviceKind::Memory {
        let needed = sized.main_bytes.saturating_mul(kind.geometry.device_count() as u64);
        check_memory(needed, available_bytes() * MEMORY_PERCENT / 100)?;
    }
    Ok(sized)
}

fn check_memory(needed: u64, free: u64) -> Result<(), Failure> {
    check_against(needed, free, "trace (--compact, --head), or --device null")
}

/// Refuses what would not fit in the memory that is free; `less` is what to make smaller.
pub fn check_free(needed: u64, less: &str) -> Result<(), Failure> {
    check_against(needed, available_bytes() / 100 * MEMORY_PERCENT, less)
}

/// The same of so many equal shards of an array that is made, each with as many bytes of devices in memory.
pub fn check_made(
    config: &ArrayConfig,
    options: &EngineOptions,
    device_bytes: u64,
    shards: u64,
    less: &str,
) -> Result<(), Failure> {
    let need = MemoryNeed::of(config, options)?;
    let parts = [device_bytes, need.tables_bytes, need.placement_bytes, need.buffers_bytes];
    check_free(parts.into_iter().fold(0, u64::saturating_add).saturating_mul(shards), less)
}

/// Bytes that a simulated SSD takes for each of its pages.
const FLASH_PAGE_BYTES: u64 = 10;

/// The same of simulated SSDs.
pub fn check_flash(config: &SsdConfig, count: usize, less: &str) -> Result<(), Failure> {
    check_free(
        (count as u64).saturating_mul(config.geometry.raw_pages()).saturating_mul(FLASH_PAGE_BYTES),
        less,
    )
}

fn check_against(needed: u64, free: u64, less: &str) -> Result<(), Failure> {
    if needed <= free {
        return Ok(());
    }
    Err(Failure::new(format!(
        "this takes {} of memory, of what is free {} may be used; use a smaller {less}",
        show_size(needed),
        show_size(free)
    )))
}

/// Elastic devices of exactly that size. The volume is what is left beside the spare space: twice
/// the share of the devices that the threshold of garbage collection leaves free, so that the threshold
/// decides when to collect, and not that space runs out; or less, if the trace needs more.
pub fn given_elastic(
    kind: &Kind,
    footprint_bytes: u64,
    device_bytes: u64,
    threshold: GcThreshold,
) -> Result<Sized, Failure> {
    let chunk_bytes = kind.geometry.chunk_bytes() as u64;
    let stripe_bytes = kind.geometry.data_count() as u64 * chunk_bytes;
    let (stripes, chunks) = (footprint_bytes.div_ceil(stripe_bytes), device_bytes / chunk_bytes);
    let left = chunks.saturating_sub(stripes) * 1000 / chunks.max(1);
    let wanted = (2 * 10 * (100 - threshold.percent())).min(900);
    // Both are below 1000.
    let sized = size_exactly(kind, chunks, wanted.min(left) as u32)?;
    if sized.config.stripe_count < stripes {
        return Err(Failure::new(format!(
            "--device-size {}: the trace needs a volume of {}, scheme {} makes one of at most {} of such devices; use \
             --compact, larger devices or a smaller --gc-unit",
            show_size(device_bytes),
            show_size(footprint_bytes),
            kind.scheme,
            show_size(sized.config.stripe_count * stripe_bytes)
        )));
    }
    Ok(sized)
}

/// Devices of a given size, log devices included.
pub fn given(kind: &Kind, footprint_bytes: u64, device_bytes: u64) -> Result<Sized, Failure> {
    let stripe_bytes = (kind.geometry.data_count() * kind.geometry.chunk_bytes()) as u64;
    let stripes = footprint_bytes.div_ceil(stripe_bytes);
    let chunks = device_bytes / kind.geometry.chunk_bytes() as u64;
    let Some(spare_chunks) = chunks.checked_sub(stripes) else {
        return Err(Failure::new(format!(
            "--device-size {}: the trace needs {} on each device; use --compact, or larger devices",
            show_size(device_bytes),
            show_size(stripes * kind.geometry.chunk_bytes() as u64)
        )));
    };
    let log_blocks = device_bytes / META_BYTES as u64;
    size(kind, &Room { volume_bytes: footprint_bytes, spare_chunks, log_blocks, sized_by: "--device-size" })
}
