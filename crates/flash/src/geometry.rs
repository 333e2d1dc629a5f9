//! How many channels, dies, planes, blocks and pages an SSD has.

use crate::error::{ConfigError, within};

/// Most pages of an SSD: page numbers have 32 bits, and the largest one means *none*.
const PAGES_MAX: u64 = u32::MAX as u64 - 1;

/// The shape of the flash memory.
///
/// Blocks are numbered round-robin over the planes: block `b` lies on plane `b % planes`, and plane `p` on
/// channel `p % channels`, so that neighbours can work side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Buses between controller and flash.
    pub channels: u32,
    /// Chips that work on their own, on each channel.
    pub dies_per_channel: u32,
    /// Planes of a die, which work side by side.
    pub planes_per_die: u32,
    /// Erase blocks of a plane.
    pub blocks_per_plane: u32,
    /// Pages of a block that take data; with convertible programming, in the mode with more bits per cell.
    pub pages_per_block: u32,
    /// Pages of a block beside those, for the device's own summary. They count as pages of the flash, never
    /// hold data.
    pub summary_pages_per_block: u32,
    /// Bytes of a page.
    pub page_bytes: u32,
}

impl Geometry {
    /// One die with so many blocks.
    pub fn single_die(blocks: u32, pages_per_block: u32, page_bytes: u32) -> Self {
        Self {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: blocks,
            pages_per_block,
            summary_pages_per_block: 0,
            page_bytes,
        }
    }

    /// Dies of all channels.
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Planes of all dies.
    pub fn planes(&self) -> u32 {
        self.dies() * self.planes_per_die
    }

    /// Blocks of all planes.
    pub fn blocks(&self) -> u32 {
        self.planes() * self.blocks_per_plane
    }

    /// Pages that take data, all blocks together.
    pub fn data_pages(&self) -> u64 {
        u64::from(self.blocks()) * u64::from(self.pages_per_block)
    }

    /// All pages, those for summaries included.
    pub fn raw_pages(&self) -> u64 {
        u64::from(self.blocks()) * u64::from(self.pages_per_block + self.summary_pages_per_block)
    }

    /// Holds every field, and the number of pages, against what this crate can address.
    pub fn check(&self) -> Result<(), ConfigError> {
        within("channels", u64::from(self.channels), 1, 256)?;
        within("dies per channel", u64::from(self.dies_per_channel), 1, 256)?;
        within("planes per die", u64::from(self.planes_per_die), 1, 16)?;
        within("blocks per plane", u64::from(self.blocks_per_plane), 1, 1 << 26)?;
        within("pages per block", u64::from(self.pages_per_block), 1, u64::from(u16::MAX))?;
        within("summary pages per block", u64::from(self.summary_pages_per_block), 0, 1024)?;
        within("page size in bytes", u64::from(self.page_bytes), 512, 1 << 20)?;
        let pages = u128::from(self.planes())
            * u128::from(self.blocks_per_plane)
            * u128::from(self.pages_per_block + self.summary_pages_per_block);
        if pages > u128::from(PAGES_MAX) {
            return Err(ConfigError::new("pages of the flash", pages, format_args!("at most {PAGES_MAX}")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geometry_counts_its_pages_and_refuses_what_it_cannot_address() {
        // 5 elements of 8 planes of 2,048 blocks of 64 pages of 4 KiB are 20 GiB.
        let disksim = Geometry {
            channels: 1,
            dies_per_channel: 5,
            planes_per_die: 8,
            blocks_per_plane: 2048,
            ..Geometry::single_die(1, 64, 4096)
        };
        assert_eq!(disksim.check(), Ok(()));
        assert_eq!(disksim.raw_pages() * 4096, 20 << 30);
        assert_eq!(disksim.blocks(), 5 * 16_384);
        let error = Geometry { channels: 0, ..disksim }.check();
        assert_eq!(error.map_err(|e| e.to_string()), Err("channels: found 0, expected 1 to 256".to_owned()));
        let huge = Geometry { blocks_per_plane: 1 << 26, pages_per_block: 65_535, ..disksim };
        assert!(huge.check().is_err_and(|e| e.field == "pages of the flash"));
    }
}
