//! One SSD in virtual time: page-mapped flash with garbage collection, streams, wear and service times.
//!
//! The product's engine can run over any number of these; one can also be run alone, as the papers ran
//! DiskSim and FlashSim. There are no globals, no I/O, no content, no clock and no randomness but from a
//! seed: the same calls give the same counts and times.
//!
//! # Words
//! | word | meaning |
//! |---|---|
//! | *page* | unit of mapping, reading and programming |
//! | *block* | unit of erasing |
//! | *logical page*, *lpn* | page number the host sees |
//! | *spare factor* | pages of the flash per logical page, without the free blocks that GC keeps |
//! | *frontier* | open blocks that take a kind of writes |
//! | *slot* | stream of the device: a frontier of its own |
//! | *translation page* | page of the mapping table on flash |
//! | *ghost* | small copy of the FTL that simulates a sample of the writes while the SSD works |
//! | *mode* | how many bits per cell a block is programmed with: MLC (all) or SLC (one) |
//! | *write amplification* | pages programmed per page the host wrote |
#![forbid(unsafe_code)]

mod check;
mod config;
mod counters;
mod device;
mod dynamic;
mod error;
mod free;
mod ftl;
mod gc;
mod geometry;
mod ghost;
mod hdd;
mod mapping;
pub mod presets;
mod random;
mod run;
mod slc;
mod ssd;
mod stream;
#[cfg(test)]
mod tests;
pub mod theory;
mod timing;
mod victims;
mod wear;
mod workload;

pub use config::{GcFrontier, SsdConfig};
pub use counters::Counters;
pub use device::{BlackBox, BlackBoxOptions, Device, DeviceConfig};
pub use error::{BrokenLaw, ConfigError, OutOfRange};
pub use geometry::Geometry;
pub use hdd::{Hdd, HddOptions};
pub use mapping::MappingOptions;
pub use random::Random;
pub use run::{Queue, Run, RunOptions};
pub use slc::{DynamicCap, Mode, SlcCap, SlcOptions};
pub use ssd::Ssd;
pub use stream::{CLASSES, Separation, StreamOptions, Tag};
pub use timing::{Buffering, Timing};
pub use victims::GcPolicy;
pub use wear::{FreeOrder, WearLevelling, WearSpread};
pub use workload::{Pattern, Workload};
