//! How large an array's metadata regions are, and how much of its devices is kept spare.

use crate::scheme;
use crate::slots::{PageArea, root_pages};
use crate::store::{SET_ASIDE_CHUNKS, code_width, space_words_max};
use crate::table::{Table, WORDS};
use block::{Geometry, META_BYTES};
use format::{ArrayConfig, Consistency, SchemeKind};

/// Default share of each main device that `eplog` keeps for old versions: 10 %.
pub const RESERVE_PERMILLE_DEFAULT: u32 = 100;
/// Default share of each main device that elastic schemes keep for garbage: 20 %.
pub const RESERVE_PERMILLE_ELASTIC: u32 = 200;
/// The largest share: something must be left for data.
pub const RESERVE_PERMILLE_MAX: u32 = 900;

/// Spare chunks per device at least: what must be free for parity commit to make progress, and as much again.
pub const RESERVE_CHUNKS_MIN: u32 = 4 * SET_ASIDE_CHUNKS;

/// Blocks of the incremental area at most: 64 MiB, which a start reads.
const INCREMENTAL_BLOCKS_MAX: u64 = 1 << 14;

/// Chunks of a main device that an index can name, or with elastic schemes a place.
pub fn chunks_max(scheme: SchemeKind, geometry: Geometry) -> u64 {
    if scheme.is_elastic() { (1 << 32) / geometry.data_count() as u64 - 1 } else { 1 << 31 }
}

/// The same with metadata regions for so many chunks; `None` if they would be larger than can be numbered.
pub fn with_regions(mut config: ArrayConfig) -> Option<ArrayConfig> {
    let (geometry, chunks) = (config.geometry, config.chunks_per_device);
    let list_words =
        scheme::list_words_max(&config) + 2 * code_width(&config) as u64 + space_words_max(&config);
    let table_pages = Table::page_count_for(&config);
    let list_pages = list_words.div_ceil(WORDS);
    config.full_blocks = u32::try_from(root_pages(table_pages) + list_pages + 2).ok()?;
    config.page_blocks = u32::try_from(PageArea::blocks_for(geometry, table_pages)).ok()?;
    let changes = (table_pages + list_pages + 2).clamp(64, INCREMENTAL_BLOCKS_MAX);
    config.incremental_blocks = u32::try_from(changes).ok()?;
    config.journal_blocks = (chunks / 256).clamp(128, 4096);
    if config.scheme.is_in_place() && config.consistency == Consistency::Journal {
        config.payload_blocks = payload_blocks(geometry, chunks);
    }
    Some(config)
}

/// The payload ring of in-place schemes with a journal: 1 % of the device, at least 256 chunks, at most 64
/// MiB or 256 chunks.
fn payload_blocks(geometry: Geometry, chunks: u32) -> u32 {
    let chunk_blocks = (geometry.chunk_bytes() / META_BYTES) as u32;
    let most = ((64u32 << 20) / geometry.chunk_bytes() as u32).max(256);
    (chunks / 100).clamp(256, most) * chunk_blocks
}
