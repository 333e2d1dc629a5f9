//! The write cache's options, the same wherever an array is run.

use crate::failure::Failure;
use array::EngineOptions;
use clap::Args;
use format::{SchemeKind, Waiting};

/// Sizes of the write cache; both 0 is none.
#[derive(Args, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheSizes {
    /// Let up to so many data stripes of chunks not written before wait for the rest of their stripe
    /// (volatile until the next flush, like everything acknowledged; scheme eplog).
    #[arg(long, default_value = "0", value_parser = clap::value_parser!(u32).range(..=1 << 20), value_name = "N")]
    pub cache_stripes: u32,
    /// Let up to so many updated chunks wait for each data device, to be overwritten there or written in
    /// wide log stripes (scheme eplog).
    #[arg(long, default_value = "0", value_parser = clap::value_parser!(u32).range(..=1 << 20), value_name = "CHUNKS")]
    pub cache_slots: u32,
}

impl CacheSizes {
    /// Refuses a cache for a scheme that has none.
    pub fn check(self, scheme: SchemeKind) -> Result<(), Failure> {
        match scheme.facts().waiting {
            Waiting::Cache => Ok(()),
            Waiting::Nowhere | Waiting::Stripe | Waiting::Unit if self == Self::default() => Ok(()),
            Waiting::Nowhere => Err(Failure::new(format!(
                "--cache-stripes {}, --cache-slots {}: scheme {scheme} writes in place and has no write cache",
                self.cache_stripes, self.cache_slots
            ))),
            Waiting::Stripe | Waiting::Unit => Err(Failure::new(format!(
                "--cache-stripes {}, --cache-slots {}: scheme {scheme} has groups of its own; see --group-chunks and --p-wait",
                self.cache_stripes, self.cache_slots
            ))),
        }
    }

    /// The same options with this cache.
    pub fn apply(self, options: EngineOptions) -> EngineOptions {
        EngineOptions {
            cache_stripes: self.cache_stripes as usize,
            cache_slots: self.cache_slots as usize,
            ..options
        }
    }
}
