//! Making a new array: its layout from the sizes of its devices, and its first bytes.

use crate::bounds::Bounds;
use crate::health::Health;
use crate::image::{Chain, CheckpointPlace};
use crate::journal::Journal;
use crate::memory::MemoryNeed;
use crate::recovery::{Parts, write_checkpoint, write_superblocks};
use crate::restart::AssembleError;
use crate::scheme;
use crate::shape::{RESERVE_CHUNKS_MIN, RESERVE_PERMILLE_MAX, chunks_max, with_regions};
use crate::store::Store;
use block::{DevIndex, DeviceSet, Epoch, Geometry, META_BYTES, Seq};
use format::{
    ArrayConfig, ArrayUuid, CheckpointNumbers, CodeKind, Consistency, FaultRecord, LOG_COUNT_MAX, LayoutKind,
    LossRecord, MemberEntry, MemberState, Moved, Role, SHARDS_MAX, SchemeKind, ScrubRecord, Shard,
    Superblock, UNIT_ROWS_MAX,
};

/// Column placement of new arrays: every device gets as much data and parity as any other, so that all wear
/// alike, which [`LayoutKind::Spread`] does not (`docs/decisions/0080-left-symmetric.md`).
pub const LAYOUT_OF_NEW: LayoutKind = LayoutKind::LeftSymmetric;

/// What the operator chooses.
#[derive(Clone, Copy, Debug)]
pub struct CreateOptions {
    /// Update scheme.
    pub scheme: SchemeKind,
    /// Erasure code.
    pub code: CodeKind,
    /// Column placement.
    pub layout: LayoutKind,
    /// Write-hole mode of in-place schemes.
    pub consistency: Consistency,
    /// k, m, chunk size.
    pub geometry: Geometry,
    /// Share of each main device kept free for old versions, in thousandths.
    pub reserve_permille: u32,
    /// Rows of a unit of garbage collection, for elastic schemes; `None` = [`unit_rows_for`] the size
    /// of the devices.
    pub unit_rows: Option<u32>,
}

/// Rows of a unit by default: the 64 pages of an erase block in the papers (W-17); as many more on large
/// devices as keep the number of units, all of which are looked at to choose one, below 2^15.
pub fn unit_rows_for(chunks_per_device: u32) -> u32 {
    (chunks_per_device >> 14).next_power_of_two().max(64)
}

/// Why an array cannot be created.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CreateError {
    /// Schemes with a log need one log device per parity and can use more, elastic ones can do with and
    /// without, others take none.
    #[error("scheme {scheme}: {found} log devices given, expected {expected}")]
    LogCount {
        /// The scheme.
        scheme: SchemeKind,
        /// One for each parity or more, or none.
        expected: String,
        /// Log devices given.
        found: usize,
    },
    /// A device is too small.
    #[error("{what} of {found_bytes} bytes is too small: at least {expected_bytes} are needed")]
    TooSmall {
        /// Which kind of device.
        what: &'static str,
        /// The smallest given.
        found_bytes: u64,
        /// What is needed.
        expected_bytes: u64,
    },
    /// A device has more chunks than an index can name.
    #[error("a device of {bytes} bytes has more than {chunks_max} chunks: use a larger chunk size")]
    TooLarge {
        /// Size of the smallest device.
        bytes: u64,
        /// What an index can name, or with elastic schemes a place.
        chunks_max: u64,
    },
    /// The code does not fit the geometry.
    #[error("code {code} does not fit {data_count}+{parity_count} devices")]
    Code {
        /// The code.
        code: CodeKind,
        /// k.
        data_count: usize,
        /// m.
        parity_count: usize,
    },
    /// A unit of garbage collection has some rows, and not too many.
    #[error("a unit of {found} rows: expected 2 to {UNIT_ROWS_MAX}")]
    UnitRows {
        /// What was asked for.
        found: u32,
    },
    /// The reserve must leave room for data.
    #[error("a reserve of {permille} thousandths: expected at most {RESERVE_PERMILLE_MAX}")]
    Reserve {
        /// What was asked for.
        permille: u32,
    },
    /// There are at least one and not too many.
    #[error("{found} shards: expected 1 to {SHARDS_MAX}")]
    ShardCount {
        /// What was asked for.
        found: u16,
    },
    /// A shard has less room than is given to each at a time.
    #[error(
        "{count} shards would have volumes of {found_bytes} bytes each, less than the {unit_bytes} bytes that each gets at a time: use fewer shards"
    )]
    ShardTooSmall {
        /// What was asked for.
        count: u16,
        /// The volume of one.
        found_bytes: u64,
        /// The unit of interleaving.
        unit_bytes: u64,
    },
    /// Writing the first metadata failed.
    #[error("writing the first metadata failed: {0}")]
    Write(#[from] AssembleError),
}

/// Blocks of the log region at least: frames, and some log stripes of any chunk size.
fn log_blocks_min(geometry: Geometry) -> u32 {
    512 + 32 * (geometry.chunk_bytes() / META_BYTES) as u32
}

/// Lays an array out on main devices of at least `main_bytes` and log devices of at least `log_bytes`.
pub fn plan_config(
    options: &CreateOptions,
    main_bytes: u64,
    log_bytes: u64,
    log_count: usize,
) -> Result<ArrayConfig, CreateError> {
    let geometry = options.geometry;
    let (k, m) = (geometry.data_count(), geometry.parity_count());
    let scheme = options.scheme;
    if !scheme.fits_log_count(log_count, m) || log_count > usize::from(LOG_COUNT_MAX) {
        let some = format!("{m} (one per parity) to {LOG_COUNT_MAX}");
        let expected = match (scheme.has_log(), scheme.takes_log()) {
            (true, _) => some,
            (false, true) => format!("0, or {some}"),
            (false, false) => "0".to_owned(),
        };
        return Err(CreateError::LogCount { scheme: options.scheme, expected, found: log_count });
    }
    let fits = match options.code {
        CodeKind::Xor => m == 1,
        CodeKind::Rdp => m == 2,
        CodeKind::Cauchy => true,
    };
    if !fits {
        return Err(CreateError::Code { code: options.code, data_count: k, parity_count: m });
    }
    if options.reserve_permille > RESERVE_PERMILLE_MAX {
        return Err(CreateError::Reserve { permille: options.reserve_permille });
    }
    if let Some(found) = options.unit_rows
        && !(2..=UNIT_ROWS_MAX).contains(&u64::from(found))
    {
        return Err(CreateError::UnitRows { found });
    }
    let log_blocks = if log_count > 0 { log_blocks(geometry, log_bytes)? } else { 0 };
    let chunk = geometry.chunk_bytes() as u64;
    let chunks_max = chunks_max(options.scheme, geometry);
    if main_bytes / chunk > chunks_max {
        return Err(CreateError::TooLarge { bytes: main_bytes, chunks_max });
    }
    // Metadata and data share the device: the largest number of chunks that fits, by bisection.
    let fits = |chunks: u32| config_for(options, chunks, log_count as u16, log_blocks);
    let (mut low, mut high) = (0u32, (main_bytes / chunk) as u32);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        // So few that there is no room for data are not too many.
        let too_many = fits(middle).is_some_and(|config| config.main_device_bytes() > main_bytes);
        if too_many { high = middle - 1 } else { low = middle }
    }
    fits(low).filter(|config| config.main_device_bytes() <= main_bytes).ok_or_else(|| {
        let needed =
            (1..u32::MAX).find_map(|chunks| config_for(options, chunks, log_count as u16, log_blocks));
        CreateError::TooSmall {
            what: "a data device",
            found_bytes: main_bytes,
            expected_bytes: needed.map_or(0, |config| config.main_device_bytes()),
        }
    })
}

fn log_blocks(geometry: Geometry, log_bytes: u64) -> Result<u32, CreateError> {
    const LOG_START_BYTES: u64 = 1 << 20;
    let blocks = log_bytes.saturating_sub(LOG_START_BYTES) / META_BYTES as u64;
    let blocks = u32::try_from(blocks).unwrap_or(u32::MAX - 1);
    if blocks < log_blocks_min(geometry) {
        let expected_bytes = LOG_START_BYTES + u64::from(log_blocks_min(geometry)) * META_BYTES as u64;
        return Err(CreateError::TooSmall { what: "a log device", found_bytes: log_bytes, expected_bytes });
    }
    Ok(blocks)
}

/// The configuration with `chunks` chunks per main device; `None` if that leaves no room for data.
fn config_for(options: &CreateOptions, chunks: u32, log_count: u16, log_blocks: u32) -> Option<ArrayConfig> {
    let geometry = options.geometry;
    let reserve = if !options.scheme.is_in_place() {
        let share = u64::from(chunks) * u64::from(options.reserve_permille) / 1000;
        u32::try_from(share).ok()?.max(RESERVE_CHUNKS_MIN)
    } else {
        0
    };
    let stripes = u64::from(chunks.checked_sub(reserve)?);
    let unit_rows = match options.scheme.is_elastic() {
        true => options.unit_rows.unwrap_or_else(|| unit_rows_for(chunks)),
        false => 0,
    };
    let mut config = ArrayConfig {
        scheme: options.scheme,
        code: options.code,
        // Elastic stripes know no collisions, and want parity on all devices alike (W-20).
        layout: if options.scheme.is_elastic() { LayoutKind::Rotate } else { options.layout },
        consistency: options.consistency,
        geometry,
        log_count,
        stripe_count: stripes,
        chunks_per_device: chunks,
        log_blocks,
        full_blocks: 2,
        incremental_blocks: 2,
        journal_blocks: 2,
        payload_blocks: 0,
        page_blocks: 2,
        unit_rows,
        shard: Shard::SINGLE,
        moved: Moved::NEVER,
    };
    if options.scheme.is_elastic() {
        config.stripe_count = config.stripe_count.min(config.stripes_max());
    }
    config = with_regions(config)?;
    config.validate().ok()?;
    Some(config)
}

/// Identity of a new array.
#[derive(Clone, Debug)]
pub struct NewArray {
    /// Its UUID.
    pub uuid: ArrayUuid,
    /// Its name, at most 64 bytes.
    pub name: String,
    /// A fresh random number.
    pub nonce: u64,
    /// Now, in seconds since 1970.
    pub created_unix_s: u64,
}

/// Writes an empty array onto the devices: an empty checkpoint and the superblocks.
pub fn create(devices: &mut dyn DeviceSet, config: ArrayConfig, array: &NewArray) -> Result<(), CreateError> {
    let geometry = config.geometry;
    let code_error = CreateError::Code {
        code: config.code,
        data_count: geometry.data_count(),
        parity_count: geometry.parity_count(),
    };
    MemoryNeed::of_new(&config).check_granted()?;
    let store = Store::new(config).map_err(|_| code_error)?;
    let count = geometry.device_count() + usize::from(config.log_count);
    let members: Vec<MemberEntry> =
        (1..=count as u32).map(|serial| MemberEntry { serial, state: MemberState::Healthy }).collect();
    let superblock = Superblock {
        array: array.uuid,
        name: array.name.clone(),
        dev: DevIndex::new(0),
        role: Role::Main,
        serial: 1,
        config_seq: 0,
        epoch: Epoch::new(1),
        nonce: array.nonce,
        clean: true,
        checkpoints: CheckpointNumbers { durable: 1, used: 1 },
        durable_through: Seq::new(0),
        config,
        members: members.clone(),
        created_unix_s: array.created_unix_s,
        scrub_cursor: 0,
        resync_cursor: 0,
        scrub: ScrubRecord::default(),
        faults: FaultRecord::default(),
        losses: LossRecord::default(),
        rebuilt: 0,
    };
    let mut parts = Parts {
        scheme: scheme::new(&store, Bounds::LEAST.list_bytes),
        health: Health::new(&config, &members, 1),
        journal: Journal::new(array.uuid, Epoch::new(1), array.nonce, Seq::new(1), &store),
        store,
        checkpoint: CheckpointPlace {
            number: 0,
            used: 0,
            base: 0,
            area: 1,
            chain: Chain::default(),
            before: 0,
            devices: Vec::new(),
            log_head: 0,
        },
        superblock,
    };
    write_checkpoint(devices, &mut parts, Seq::new(0), None)?;
    // The other copy, too: a leftover of an older array there must not count.
    write_superblocks(devices, &mut parts.health, &mut parts.superblock)?;
    Ok(())
}
