//! The options of the write cache and of the cache of stripes, the same wherever an array is run.

use crate::failure::Failure;
use array::{EngineOptions, SchemeOptions};
use clap::Args;
use format::{SchemeKind, Waiting};

/// Sizes of the write cache, both 0 is none, and of the cache of stripes.
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
    /// Keep the last N stripes written in memory, so that writing to them again takes fewer reads, as Linux md
    /// does with 256 (k+m chunks of memory for each; nothing waits in it; scheme raid).
    #[arg(long, default_value = "0", value_parser = clap::value_parser!(u32).range(..=1 << 20), value_name = "N")]
    pub stripe_cache: u32,
}

impl CacheSizes {
    /// Refuses a cache for a scheme that has none.
    pub fn check(self, scheme: SchemeKind) -> Result<(), Failure> {
        self.check_write_cache(scheme)?;
        self.check_stripe_cache(scheme)
    }

    /// Refuses a cache of stripes for a scheme that has none.
    pub fn check_stripe_cache(self, scheme: SchemeKind) -> Result<(), Failure> {
        if self.stripe_cache == 0 || scheme == SchemeKind::Raid {
            return Ok(());
        }
        Err(Failure::new(format!(
            "--stripe-cache {}: scheme {scheme} has no cache of stripes; expected --scheme raid",
            self.stripe_cache
        )))
    }

    /// Refuses a write cache for a scheme that has none.
    pub fn check_write_cache(self, scheme: SchemeKind) -> Result<(), Failure> {
        match scheme.facts().waiting {
            Waiting::Cache => Ok(()),
            Waiting::Nowhere | Waiting::Stripe | Waiting::Unit if !self.has_write_cache() => Ok(()),
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

    /// Whether writes are to wait in memory.
    pub fn has_write_cache(self) -> bool {
        (self.cache_stripes, self.cache_slots) != (0, 0)
    }

    /// What of it the scheme has: so several can be compared.
    pub fn fitting(self, scheme: SchemeKind) -> Self {
        let written = self.check_write_cache(scheme).is_ok();
        Self {
            cache_stripes: if written { self.cache_stripes } else { 0 },
            cache_slots: if written { self.cache_slots } else { 0 },
            stripe_cache: if self.check_stripe_cache(scheme).is_ok() { self.stripe_cache } else { 0 },
        }
    }

    /// The same options with this cache.
    pub fn apply(self, options: EngineOptions) -> EngineOptions {
        EngineOptions {
            scheme: SchemeOptions { stripe_cache: self.stripe_cache, ..options.scheme },
            cache_stripes: self.cache_stripes as usize,
            cache_slots: self.cache_slots as usize,
            ..options
        }
    }
}
