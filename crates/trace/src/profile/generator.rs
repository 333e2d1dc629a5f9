//! The generator of any profile.

use super::blocks::Blocks;
use super::extents::Extents;
use super::fifth::HotFifth;
use super::normal::Normal;
use super::published::{EPLOG_MDS, EPLOG_USR, EPLOG_WEB, WAS_ONLINE, WAS_WEBMAIL};
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
            Requests::Plain(_) => {
                format!("nothing to solve, range {} bytes", self.label.range_bytes.unwrap_or(0))
            }
        }
    }

    /// Chunks of the address range, where a published figure speaks of it.
    pub(super) fn range_chunks(&self) -> Option<u64> {
        match &self.source {
            Requests::Normal(normal) => Some(normal.range_chunks()),
            Requests::HotFifth(_) | Requests::Extents(_) | Requests::Blocks(_) | Requests::Plain(_) => None,
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

impl Iterator for Generator {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        match &mut self.source {
            Requests::Normal(source) => source.next(),
            Requests::HotFifth(source) => source.next(),
            Requests::Extents(source) => source.next(),
            Requests::Blocks(source) => source.next(),
            Requests::Plain(source) => source.next(),
        }
    }
}
