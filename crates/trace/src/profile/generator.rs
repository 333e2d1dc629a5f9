//! The generator of any profile.

use super::blocks::Blocks;
use super::compaction::Compaction;
use super::extents::Extents;
use super::fifth::HotFifth;
use super::normal::Normal;
use super::published::{EPLOG_MDS, EPLOG_USR, EPLOG_WEB, WAS_ONLINE, WAS_WEBMAIL};
use super::warehouse::{PAGE_BYTES, PAGES_MIN, Warehouse};
use super::{GenerateOptions, Label, Profile, ProfileError, RANGE_BYTES_DEFAULT};
use crate::{Request, Synthetic, SyntheticOptions};

/// Generates the requests of a profile one at a time, in constant memory: an iterator.
///
/// The same options give the same requests on the same platform.
#[derive(Clone, Debug)]
pub struct Generator {
    label: Label,
    source: Requests,
}

#[derive(Clone, Debug)]
enum Requests {
    Normal(Normal),
    HotFifth(HotFifth),
    Extents(Box<Extents>),
    Blocks(Blocks),
    Plain(Box<Synthetic>),
    Warehouse(Box<Warehouse>),
    Compaction(Box<Compaction>),
}

impl Generator {
    /// Checks the options and solves the parameters (milliseconds).
    pub fn new(options: &GenerateOptions) -> Result<Self, ProfileError> {
        let label = options.label()?;
        let (count, seed) = (label.request_count, label.seed);
        let source = match label.profile {
            Profile::WasSynthetic => Requests::Normal(Normal::new(count, seed)),
            Profile::WasSyntheticFifth => Requests::HotFifth(HotFifth::new(count, seed)),
            Profile::Fin => Requests::Extents(Box::new(Extents::fin(count, seed))),
            Profile::Web => Requests::Extents(Box::new(Extents::of(&EPLOG_WEB, count, seed))),
            Profile::Usr => Requests::Extents(Box::new(Extents::of(&EPLOG_USR, count, seed))),
            Profile::Mds => Requests::Extents(Box::new(Extents::of(&EPLOG_MDS, count, seed))),
            Profile::Online => Requests::Blocks(Blocks::of(&WAS_ONLINE, count, seed)),
            Profile::Webmail => Requests::Blocks(Blocks::of(&WAS_WEBMAIL, count, seed)),
            Profile::OnlineWebmail => Requests::Blocks(Blocks::merged(count, seed)),
            Profile::Zipf { exponent } => plain(&label, exponent)?,
            Profile::Uniform => plain(&label, 0.0)?,
            Profile::TpccLike | Profile::YcsbCompaction => of_pages(&label)?,
        };
        Ok(Self { label, source })
    }

    /// What the trace is to say of itself.
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// The parameters that were solved, in words.
    pub fn solution(&self) -> String {
        match &self.source {
            Requests::Normal(normal) => normal.solution(),
            Requests::HotFifth(fifth) => fifth.solution(),
            Requests::Extents(extents) => extents.solution(),
            Requests::Blocks(blocks) => blocks.solution(),
            Requests::Warehouse(warehouse) => warehouse.solution(),
            Requests::Compaction(compaction) => compaction.solution(),
            Requests::Plain(_) => {
                format!("nothing to solve, range {} bytes", self.label.range_bytes.unwrap_or(0))
            }
        }
    }

    /// Chunks of the address range, where a published figure speaks of it.
    pub(super) fn range_chunks(&self) -> Option<u64> {
        match &self.source {
            Requests::Normal(normal) => Some(normal.range_chunks()),
            Requests::HotFifth(_)
            | Requests::Extents(_)
            | Requests::Blocks(_)
            | Requests::Plain(_)
            | Requests::Warehouse(_)
            | Requests::Compaction(_) => None,
        }
    }
}

fn plain(label: &Label, zipf_exponent: f64) -> Result<Requests, ProfileError> {
    let bytes = label.range_bytes.unwrap_or(RANGE_BYTES_DEFAULT);
    let options = SyntheticOptions {
        seed: label.seed,
        request_count: label.request_count,
        volume_bytes: bytes,
        read_percent: 0,
        sequential_percent: 0,
        zipf_exponent,
        sizes: vec![(4096, 1)],
        unaligned_percent: 0,
        interval_us_mean: 1000,
    };
    let source = Synthetic::new(options).map_err(|_| ProfileError::Range { bytes })?;
    Ok(Requests::Plain(Box::new(source)))
}

/// What an application with pages of 16 KiB writes into the range.
fn of_pages(label: &Label) -> Result<Requests, ProfileError> {
    let bytes = label.range_bytes.unwrap_or(RANGE_BYTES_DEFAULT);
    let (pages, count, seed) = (bytes / PAGE_BYTES, label.request_count, label.seed);
    let refused = || ProfileError::RangeOfPages { profile: label.profile, bytes };
    if !(PAGES_MIN..=1 << 28).contains(&pages) {
        return Err(refused());
    }
    if label.profile == Profile::TpccLike {
        return Ok(Requests::Warehouse(Box::new(Warehouse::new(pages, count, seed))));
    }
    Compaction::new(pages, count, seed)
        .map(|compaction| Requests::Compaction(Box::new(compaction)))
        .ok_or_else(refused)
}

impl Iterator for Generator {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        match &mut self.source {
            Requests::Normal(source) => source.next(),
            Requests::HotFifth(source) => source.next(),
            Requests::Extents(source) => source.next(),
            Requests::Blocks(source) => source.next(),
            Requests::Plain(source) => source.next(),
            Requests::Warehouse(source) => source.next(),
            Requests::Compaction(source) => source.next(),
        }
    }
}
