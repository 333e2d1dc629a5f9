//! Miniature simulations of the SSD itself, from which the dynamic cap is chosen (L-17).
//!
//! A *ghost* is a small FTL with the GC and the streams of the real one, that sees a sample of the host's
//! pages: of every `stride` neighbouring pages one, which one a hash decides. So parity and data, used and
//! unused space, hot and cold pages are all there in proportion. (Sampling the addresses to simulate a cache
//! in miniature is due to Waldspurger and others, "Cache Modeling and Optimization using Miniature
//! Simulations", USENIX ATC 2017.) One ghost has no block in SLC mode, the last one as many as there is
//! parity for, those between them some: what they find is a curve of write amplification and wear over the
//! cap, for the workload as it is. All see the same sample, so what differs between them is the cap alone.
//!
//! # Size
//! One page in 16 is sampled, or more on SSDs so small that this would be fewer than [`PAGES_MIN`], or
//! fewer on large ones, down to [`PAGES`] pages: so memory and time hardly depend on the size of the SSD.
//! Blocks are smaller than the real ones, so that there are about [`BLOCKS`] of them. Both make a ghost's
//! write amplification differ from the SSD's by some hundredths; see [`crate::DynamicCap`] for what is
//! done about it.

use crate::config::SsdConfig;
use crate::counters::Counters;
use crate::ftl::Ftl;
use crate::geometry::Geometry;
use crate::slc::{SlcCap, SlcOptions};
use crate::stream::Tag;
use crate::timing::Untimed;
use crate::wear::WearLevelling;

/// How many ghosts there are.
pub(crate) const KNOTS: usize = 4;
/// The caps of the ghosts, as shares of the blocks that the last one has in SLC mode. The curve of write
/// amplification bends most where the cap is low.
const SHARES: [f64; KNOTS] = [0.0, 1.0 / 9.0, 4.0 / 9.0, 1.0];
/// A ghost has at least so many logical pages, if one page in 16 suffices for that;
const PAGES_MIN: u64 = 2048;
/// on larger SSDs it has so many.
const PAGES: u64 = 8192;
/// A ghost has about so many blocks.
const BLOCKS: u64 = 256;
/// A figure is averaged over so many intervals at most.
const AVERAGED: f64 = 16.0;

/// What a ghost found with its cap.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Knot {
    /// The cap, as a share of the blocks that would be in SLC mode without one.
    pub share: f64,
    /// Write amplification.
    pub amplification: f64,
    /// Wear per page the host writes.
    pub wear: f64,
}

/// The ghosts of one domain: see the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Ghosts {
    ftls: Vec<Ftl>,
    stride_bits: u32,
    seen: [Counters; KNOTS],
    stress_ratio: f64,
    intervals: f64,
    curve: [Knot; KNOTS],
    /// Blocks in SLC mode without a cap, as a share of all.
    slc_share: f64,
}

impl Ghosts {
    /// Makes the ghosts of a domain of a checked configuration.
    pub(crate) fn new(config: &SsdConfig, slc: &SlcOptions) -> Self {
        let own = config.domain_pages();
        let bits = |least: u64| (own / least).checked_ilog2().unwrap_or(0);
        let stride_bits = bits(PAGES).max(bits(PAGES_MIN).min(4));
        let small = miniature(config, slc, stride_bits);
        let mut curve = [Knot::default(); KNOTS];
        curve.iter_mut().zip(SHARES).for_each(|(knot, share)| knot.share = share);
        Self {
            ftls: vec![Ftl::new(&small, 0, None); KNOTS],
            stride_bits,
            seen: [Counters::default(); KNOTS],
            stress_ratio: slc.stress_ratio,
            intervals: 0.0,
            curve,
            slc_share: 0.0,
        }
    }

    /// Answers the ghosts' number of a page, if the page is in the sample.
    #[inline]
    fn sampled(&self, lpn: u32) -> Option<u32> {
        let group = lpn >> self.stride_bits;
        let mask = (1u32 << self.stride_bits) - 1;
        // The high bits of the product depend on all bits of the group's number.
        let chosen = group.wrapping_mul(0x9e37_79b9) >> 13;
        (lpn & mask == chosen & mask).then_some(group)
    }

    /// The host writes a page.
    #[inline]
    pub(crate) fn write(&mut self, lpn: u32, tag: Tag) {
        if let Some(own) = self.sampled(lpn) {
            self.ftls.iter_mut().for_each(|ftl| ftl.write(own, tag, &mut Untimed));
        }
    }

    /// The host declares a page unused.
    pub(crate) fn trim(&mut self, lpn: u32) {
        if let Some(own) = self.sampled(lpn) {
            self.ftls.iter_mut().for_each(|ftl| ftl.trim(own, &mut Untimed));
        }
    }

    /// Ends an interval: what came in it counts with the others. Sets the ghosts' own caps.
    pub(crate) fn end_interval(&mut self) {
        self.intervals = (self.intervals + 1.0).min(AVERAGED);
        let weight = 1.0 / self.intervals;
        for ((ftl, seen), knot) in self.ftls.iter().zip(&mut self.seen).zip(&mut self.curve) {
            let recent = ftl.counters.since(seen);
            *seen = ftl.counters;
            if recent.host_pages_written == 0 {
                continue;
            }
            let wear = recent.wear(self.stress_ratio) / recent.host_pages_written as f64;
            knot.amplification += weight * (recent.write_amplification() - knot.amplification);
            knot.wear += weight * (wear - knot.wear);
        }
        let most = &self.ftls[KNOTS - 1];
        let share = f64::from(most.slc.in_use) / most.blocks.len() as f64;
        self.slc_share += weight * (share - self.slc_share);
        self.set_caps();
    }

    fn set_caps(&mut self) {
        let Some((last, others)) = self.ftls.split_last_mut() else { return };
        last.slc.cap = last.blocks.len() as u32;
        for (ftl, share) in others.iter_mut().zip(SHARES) {
            // Neither negative nor more than there are blocks.
            ftl.slc.cap = (share * self.slc_share * ftl.blocks.len() as f64).round() as u32;
        }
    }

    /// Lets all averages begin anew.
    pub(crate) fn forget(&mut self) {
        self.intervals = 0.0;
    }

    /// Answers what was found, by rising share.
    pub(crate) fn curve(&self) -> &[Knot; KNOTS] {
        &self.curve
    }

    /// Blocks of the real SSD that would be in SLC mode without a cap, as a share of all.
    pub(crate) fn slc_share(&self) -> f64 {
        self.slc_share
    }

    /// Relative changes of write amplification up to this may be chance: the inverse root of
    /// the pages sampled.
    pub(crate) fn chance(&self) -> f64 {
        1.0 / f64::from(self.ftls[0].logical_pages).sqrt()
    }

    /// Bytes of memory that grow with the flash.
    pub(crate) fn bytes(&self) -> usize {
        self.ftls.iter().map(Ftl::bytes).sum()
    }
}

/// The configuration of the ghosts of a domain: 2^`stride_bits` times fewer pages.
fn miniature(config: &SsdConfig, slc: &SlcOptions, stride_bits: u32) -> SsdConfig {
    let factor = config.geometry.pages_per_block / slc.pages_per_block;
    let blocks = u64::from(config.geometry.blocks() / config.domains);
    let pages_per_block = u64::from(config.geometry.pages_per_block);
    let kept = u64::from(config.domain_free_blocks_min()) * pages_per_block + config.translation_pages();
    let usable = (blocks * pages_per_block - kept) >> stride_bits;
    // A block is at most as large as the real ones, and not so small that its fate is that of one page.
    let slc_pages = (usable / BLOCKS / u64::from(factor)).clamp(4, 1 << 15) as u32;
    let slc_pages = slc_pages.min(slc.pages_per_block);
    let small_block = slc_pages * factor;
    let mut small = SsdConfig {
        geometry: Geometry::single_die(1, small_block, config.geometry.page_bytes),
        logical_pages: ((config.domain_pages() - 1) >> stride_bits) + 1,
        free_blocks_min: config.domain_free_blocks_min().min(3),
        domains: 1,
        ways: 1,
        mapping: None,
        wear_levelling: WearLevelling::default(),
        slc: Some(SlcOptions { cap: SlcCap::Share(0.0), pages_per_block: slc_pages, ..*slc }),
        timing: None,
        ..config.clone()
    };
    let scaled = usable.div_ceil(u64::from(small_block)) + u64::from(small.free_blocks_min);
    // There are fewer than the real one has, or some more than its logical pages need: a 32-bit number.
    small.geometry.blocks_per_plane = scaled.max(small.blocks_needed()) as u32;
    small
}
