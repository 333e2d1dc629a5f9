//! The SSD that the options describe.

use crate::failure::Failure;
use clap::{Args, ValueEnum};
use flash::presets;
use flash::{
    ConfigError, DeviceConfig, DynamicCap, FreeOrder, GcFrontier, GcPolicy, Geometry, MappingOptions,
    Separation, SlcCap, SlcOptions, SsdConfig, StreamOptions, WearLevelling,
};
use node::units::{parse_permille, parse_size};

/// Bytes of a mapping entry: a physical page number with some flags.
const MAPPING_ENTRY_BYTES: u32 = 8;

/// The device.
#[derive(Args, Debug)]
pub struct DeviceOptions {
    /// A named SSD with its service times; `flash presets` lists them. The options below change it.
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Bytes the host sees (4GiB).
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    logical_size: Option<u64>,
    /// Pages of the flash per logical page, without the free blocks that GC keeps [1.07].
    #[arg(long, value_name = "FACTOR", conflicts_with = "blocks")]
    spare: Option<f64>,
    /// Number of blocks, instead of --spare.
    #[arg(long, value_name = "N")]
    blocks: Option<u32>,
    /// Pages of a block that take data (64).
    #[arg(long, value_name = "N")]
    pages_per_block: Option<u32>,
    /// Pages of a block beside those, for the device's own summary.
    #[arg(long, value_name = "N")]
    summary_pages: Option<u32>,
    /// Bytes of a page (4KiB).
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    page_size: Option<u64>,
    /// Victim of GC: greedy, cost-benefit, fifo or d-choices:D (greedy).
    #[arg(long, value_parser = parse_gc, value_name = "POLICY")]
    gc: Option<GcPolicy>,
    /// Where GC writes the pages it copies.
    #[arg(long, value_enum, value_name = "WHERE")]
    gc_frontier: Option<Frontier>,
    /// Free blocks that GC keeps: a number, or a share of all such as 5% (3).
    #[arg(long, value_parser = parse_kept, value_name = "N|SHARE")]
    gc_free: Option<Kept>,
    /// Which streams the SSD keeps apart.
    #[arg(long, value_enum, value_name = "WHICH")]
    streams: Option<Streams>,
    /// Streams the SSD has (8).
    #[arg(long, value_name = "N")]
    stream_limit: Option<u8>,
    /// Classes into which the SSD sorts parity by how long it lives (1).
    #[arg(long, value_name = "N")]
    parity_classes: Option<u8>,
    /// Memory for the mapping table (DFTL); the whole table if not given.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    mapping_cache: Option<u64>,
    /// Wear levelling.
    #[arg(long, value_enum, value_name = "KIND")]
    wear_levelling: Option<Levelling>,
    /// Write parity in SLC mode: the most of the over-provisioned space that may go into it, 0 to 1, or
    /// dynamic, or dynamic:SLACK with SLACK the write amplification it may add (0.05; inf for the least
    /// wear).
    #[arg(long, value_parser = parse_cap, value_name = "CAP")]
    slc_cap: Option<SlcCap>,
    /// Wear of a page in MLC mode in relation to one in SLC mode.
    #[arg(long, default_value_t = STRESS_RATIO, value_name = "R")]
    pub stress_ratio: f64,
}

/// Wear of a page in MLC mode in relation to one in SLC mode, unless that is said.
pub const STRESS_RATIO: f64 = 2.5;

/// Where GC writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Frontier {
    /// Into the same open blocks as the host.
    Shared,
    /// Into open blocks of its own.
    Separate,
}

/// Which streams are kept apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Streams {
    /// None.
    None,
    /// Parity from the rest.
    Parity,
    /// Classes of data and parity.
    Class,
    /// All there are.
    All,
}

/// Kinds of wear levelling.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Levelling {
    /// None.
    Off,
    /// The least worn free block is taken.
    Dynamic,
    /// And cold blocks are emptied when erase counts differ by more than 16.
    Static,
}

/// Free blocks to keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kept {
    Blocks(u32),
    Permille(u32),
}

fn parse_kept(text: &str) -> Result<Kept, String> {
    if text.ends_with('%') {
        return parse_permille(text).map(Kept::Permille);
    }
    let expected = |_| format!("found {text:?}, expected a number of blocks, or a share such as 5%");
    text.parse().map(Kept::Blocks).map_err(expected)
}

/// A policy of GC.
pub fn parse_gc(text: &str) -> Result<GcPolicy, String> {
    let expected = || format!("found {text:?}, expected greedy, cost-benefit, fifo or d-choices:D");
    match text {
        "greedy" => Ok(GcPolicy::Greedy),
        "cost-benefit" => Ok(GcPolicy::CostBenefit),
        "fifo" => Ok(GcPolicy::Fifo),
        other => {
            let choices = other.strip_prefix("d-choices:").ok_or_else(expected)?;
            choices.parse().map(GcPolicy::DChoices).map_err(|_| expected())
        }
    }
}

/// The same as text.
pub fn gc_name(policy: GcPolicy) -> String {
    match policy {
        GcPolicy::Greedy => "greedy".to_owned(),
        GcPolicy::CostBenefit => "cost-benefit".to_owned(),
        GcPolicy::Fifo => "fifo".to_owned(),
        GcPolicy::DChoices(choices) => format!("d-choices:{choices}"),
    }
}

/// As `--gc-frontier` takes it.
pub fn frontier_name(frontier: GcFrontier) -> &'static str {
    match frontier {
        GcFrontier::Shared => "shared",
        GcFrontier::Separate => "separate",
    }
}

/// As `--streams` takes it.
pub fn streams_name(separation: Separation) -> &'static str {
    match separation {
        Separation::None => "none",
        Separation::Parity => "parity",
        Separation::Class => "class",
        Separation::All => "all",
    }
}

/// As `--wear-levelling` takes it.
pub fn levelling_name(levelling: WearLevelling) -> &'static str {
    match (levelling.dynamic, levelling.static_spread) {
        (_, Some(_)) => "static",
        (FreeOrder::LeastWorn, None) => "dynamic",
        (_, None) => "off",
    }
}

/// A cap of blocks in SLC mode.
pub fn parse_cap(text: &str) -> Result<SlcCap, String> {
    let expected = || format!("found {text:?}, expected a share from 0 to 1, dynamic, or dynamic:SLACK");
    if text == "dynamic" {
        return Ok(SlcCap::Dynamic(DynamicCap { slack: 0.05 }));
    }
    match text.strip_prefix("dynamic:") {
        Some(slack) => {
            slack.parse().map(|slack| SlcCap::Dynamic(DynamicCap { slack })).map_err(|_| expected())
        }
        None => text.parse().map(SlcCap::Share).map_err(|_| expected()),
    }
}

/// What `simulate` lets one choose of its SSDs.
#[derive(Clone, Copy, Debug)]
pub struct Choices {
    /// Bytes the host sees.
    pub logical_size: Option<u64>,
    /// Victim of GC.
    pub gc: Option<GcPolicy>,
    /// Which streams are kept apart.
    pub streams: Option<Streams>,
    /// Memory for the mapping table; the whole table if not given.
    pub mapping_cache: Option<u64>,
    /// Streams the SSD has.
    pub stream_limit: Option<u8>,
    /// Classes into which the SSD sorts parity.
    pub parity_classes: Option<u8>,
    /// Convertible programming.
    pub slc_cap: Option<SlcCap>,
    /// Wear of a page in MLC mode in relation to one in SLC mode.
    pub stress_ratio: f64,
}

impl DeviceOptions {
    /// A preset with these choices.
    pub fn chosen(preset: &str, choices: &Choices) -> Self {
        Self {
            preset: Some(preset.to_owned()),
            logical_size: choices.logical_size,
            spare: None,
            blocks: None,
            pages_per_block: None,
            summary_pages: None,
            page_size: None,
            gc: choices.gc,
            gc_frontier: None,
            gc_free: None,
            streams: choices.streams,
            stream_limit: choices.stream_limit,
            parity_classes: choices.parity_classes,
            mapping_cache: choices.mapping_cache,
            wear_levelling: None,
            slc_cap: choices.slc_cap,
            stress_ratio: choices.stress_ratio,
        }
    }

    /// The configuration; whether it can be made shows when it is made.
    pub fn config(&self, seed: u64) -> Result<SsdConfig, Failure> {
        let mut config = match &self.preset {
            None => self.counting()?,
            Some(name) => self.changed_preset(name)?,
        };
        config.seed = seed;
        config.geometry.check()?; // a share of the blocks is taken next
        match self.gc_free {
            None => {}
            Some(Kept::Blocks(blocks)) => self.keep(&mut config, blocks),
            Some(Kept::Permille(permille)) => {
                let blocks = u64::from(config.geometry.blocks()) * u64::from(permille) / 1000;
                // A share of a 32-bit number, at most 2^32 thousandths of it.
                self.keep(&mut config, u32::try_from(blocks).unwrap_or(u32::MAX));
            }
        }
        self.policies(&mut config);
        self.refuse_meaningless(&config)?;
        Ok(config)
    }

    /// What would change nothing.
    fn refuse_meaningless(&self, config: &SsdConfig) -> Result<(), Failure> {
        if self.slc_cap.is_some() && config.streams.separation == Separation::None {
            return Err(Failure::new(
                "--slc-cap: found --streams none, with which an SSD does not tell parity from data and writes none in SLC \
                 mode; add --streams parity",
            ));
        }
        if self.slc_cap.is_none() && self.stress_ratio != STRESS_RATIO {
            return Err(Failure::new(format!(
                "--stress-ratio {}: found no --slc-cap, without which nothing is written in SLC mode; add it, or leave this out",
                self.stress_ratio
            )));
        }
        if let Some(limit) = self.stream_limit.filter(|_| config.streams.separation == Separation::None) {
            return Err(Failure::new(format!(
                "--stream-limit {limit}: found --streams none, with which an SSD keeps nothing apart; add --streams"
            )));
        }
        Ok(())
    }

    /// Keeps so many free blocks; with --spare they come on top.
    fn keep(&self, config: &mut SsdConfig, blocks: u32) {
        if self.preset.is_none() && self.blocks.is_none() {
            let before = config.free_blocks_min;
            config.geometry.blocks_per_plane =
                (config.geometry.blocks_per_plane - before).saturating_add(blocks);
        }
        config.free_blocks_min = blocks;
    }

    fn page_bytes(&self) -> Result<u32, Failure> {
        let bytes = self.page_size.unwrap_or(4096);
        u32::try_from(bytes)
            .ok()
            .filter(|bytes| (512..=1 << 20).contains(bytes))
            .ok_or_else(|| Failure::new(format!("--page-size: found {bytes} bytes, expected 512 to 1048576")))
    }

    fn logical_pages(&self, page_bytes: u32) -> Result<u64, Failure> {
        let bytes = self.logical_size.unwrap_or(4 << 30);
        if bytes == 0 || !bytes.is_multiple_of(u64::from(page_bytes)) {
            return Err(Failure::new(format!(
                "--logical-size: found {bytes} bytes, expected whole pages of {page_bytes} bytes"
            )));
        }
        Ok(bytes / u64::from(page_bytes))
    }

    fn counting(&self) -> Result<SsdConfig, Failure> {
        let page_bytes = self.page_bytes()?;
        let pages = self.logical_pages(page_bytes)?;
        let pages_per_block = self.pages_per_block.unwrap_or(64);
        let mut config = match self.blocks {
            None => SsdConfig::counting(pages, self.spare.unwrap_or(1.07), pages_per_block, page_bytes)?,
            Some(blocks) => {
                let config = SsdConfig::counting(pages, 1.0, pages_per_block, page_bytes)?;
                SsdConfig { geometry: Geometry::single_die(blocks, pages_per_block, page_bytes), ..config }
            }
        };
        config.geometry.summary_pages_per_block = self.summary_pages.unwrap_or(0);
        Ok(config)
    }

    /// A preset, made smaller or larger by its blocks per plane.
    fn changed_preset(&self, name: &str) -> Result<SsdConfig, Failure> {
        let mut config = match presets::by_name(name) {
            Some(DeviceConfig::Ssd(config)) => *config,
            Some(DeviceConfig::Hdd(_) | DeviceConfig::BlackBox(_)) => {
                return Err(Failure::new(format!(
                    "--preset: found {name}, which has no flash inside, expected an SSD (see `elastripe flash presets`)"
                )));
            }
            None => {
                let names = presets::NAMES.join(", ");
                return Err(Failure::new(format!("--preset: found {name:?}, expected one of {names}")));
            }
        };
        for (option, given) in [
            ("--page-size", self.page_size.is_some()),
            ("--pages-per-block", self.pages_per_block.is_some()),
            ("--summary-pages", self.summary_pages.is_some()),
            ("--blocks", self.blocks.is_some()),
        ] {
            if given {
                return Err(Failure::new(format!(
                    "{option}: found beside --preset, which says that already"
                )));
            }
        }
        if self.logical_size.is_some() || self.spare.is_some() {
            self.resize(&mut config)?;
        }
        Ok(config)
    }

    fn resize(&self, config: &mut SsdConfig) -> Result<(), Failure> {
        let spare = self.spare.unwrap_or_else(|| config.spare());
        if !(1.0..=64.0).contains(&spare) {
            return Err(ConfigError {
                field: "--spare",
                found: spare.to_string(),
                expected: "1 to 64".to_owned(),
            }
            .into());
        }
        let kept = f64::from(config.free_blocks_min) / f64::from(config.geometry.blocks());
        if self.logical_size.is_some() {
            config.logical_pages = self.logical_pages(config.geometry.page_bytes)?;
        }
        let pages = config.logical_pages as f64 * spare;
        let small_reserve = config.free_blocks_min <= config.geometry.planes();
        let blocks = pages / f64::from(config.geometry.pages_per_block);
        // A share of the blocks stays that share, a number stays that number.
        let blocks =
            if small_reserve { blocks + f64::from(config.free_blocks_min) } else { blocks / (1.0 - kept) };
        // Saturates; the check of the configuration refuses what is too large.
        config.geometry.blocks_per_plane = (blocks / f64::from(config.geometry.planes())).ceil() as u32;
        if !small_reserve && config.geometry.check().is_ok() {
            config.free_blocks_min = (kept * f64::from(config.geometry.blocks())) as u32;
        }
        Ok(())
    }

    fn policies(&self, config: &mut SsdConfig) {
        config.gc = self.gc.unwrap_or(config.gc);
        config.gc_frontier = match self.gc_frontier {
            None => config.gc_frontier,
            Some(Frontier::Shared) => GcFrontier::Shared,
            Some(Frontier::Separate) => GcFrontier::Separate,
        };
        let streams = config.streams;
        config.streams = StreamOptions {
            separation: match self.streams {
                None => streams.separation,
                Some(Streams::None) => Separation::None,
                Some(Streams::Parity) => Separation::Parity,
                Some(Streams::Class) => Separation::Class,
                Some(Streams::All) => Separation::All,
            },
            limit: self.stream_limit.unwrap_or(streams.limit),
            parity_classes: self.parity_classes.unwrap_or(streams.parity_classes),
        };
        if let Some(cache_bytes) = self.mapping_cache {
            config.mapping = Some(MappingOptions { cache_bytes, entry_bytes: MAPPING_ENTRY_BYTES });
        }
        config.wear_levelling = match self.wear_levelling {
            None => config.wear_levelling,
            Some(Levelling::Off) => WearLevelling::default(),
            Some(Levelling::Dynamic) => WearLevelling { dynamic: FreeOrder::LeastWorn, static_spread: None },
            Some(Levelling::Static) => {
                WearLevelling { dynamic: FreeOrder::LeastWorn, static_spread: Some(16) }
            }
        };
        if let Some(cap) = self.slc_cap {
            let pages_per_block = (config.geometry.pages_per_block / 2).max(1);
            config.slc = Some(SlcOptions { cap, pages_per_block, stress_ratio: self.stress_ratio });
        }
    }
}
