//! The options of the write cache and of the cache of stripes, the same wherever an array is run.

use crate::failure::Failure;
use array::{EngineOptions, SchemeOptions};
use clap::Args;
use format::{SchemeKind, Waiting};

/// Size of the cache of stripes of scheme `raid`.
#[derive(Args, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StripeCache {
    /// Keep the last N stripes written in memory, so that writing to them again takes fewer reads, as Linux
    /// md does with 256 (k+m chunks of memory for each; nothing waits in it; scheme raid).
    #[arg(long, default_value = "0", value_parser = clap::value_parser!(u32).range(..=1 << 20), value_name = "N")]
    pub stripe_cache: u32,
}

impl StripeCache {
    /// Refuses it if none of some schemes has one.
    pub fn check_any(self, schemes: &[SchemeKind]) -> Result<(), Failure> {
        match (self.stripe_cache, schemes) {
            (0, _) | (_, []) => Ok(()),
            (_, schemes) if schemes.contains(&SchemeKind::Raid) => Ok(()),
            (given, [first, ..]) => Err(Failure::new(format!(
                "--stripe-cache {given}: scheme {first} has no cache of stripes; expected --scheme raid"
            ))),
        }
    }

    /// The same options with it, if the scheme has one.
    pub fn apply(self, options: EngineOptions, scheme: SchemeKind) -> EngineOptions {
        let stripe_cache = if self.check_any(&[scheme]).is_ok() { self.stripe_cache } else { 0 };
        EngineOptions { scheme: SchemeOptions { stripe_cache, ..options.scheme }, ..options }
    }
}

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
    /// The cache of stripes.
    #[command(flatten)]
    pub stripes: StripeCache,
}

impl CacheSizes {
    /// Refuses a cache for a scheme that has none.
    pub fn check(self, scheme: SchemeKind) -> Result<(), Failure> {
        self.check_write_cache(scheme)?;
        self.stripes.check_any(&[scheme])
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

    /// The same options with what of it the scheme has: so several can be compared.
    pub fn apply_fitting(self, options: EngineOptions, scheme: SchemeKind) -> EngineOptions {
        let options = self.stripes.apply(options, scheme);
        if self.check_write_cache(scheme).is_ok() { self.apply(options) } else { options }
    }

    /// The same options with this cache, which the scheme has.
    pub fn apply(self, options: EngineOptions) -> EngineOptions {
        EngineOptions {
            scheme: SchemeOptions { stripe_cache: self.stripes.stripe_cache, ..options.scheme },
            cache_stripes: self.cache_stripes as usize,
            cache_slots: self.cache_slots as usize,
            ..options
        }
    }
}
