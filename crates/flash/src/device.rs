//! Any simulated device behind one interface: flash, hard disk, or a drive of which only
//! bandwidths are known.

use crate::config::SsdConfig;
use crate::counters::Counters;
use crate::error::{ConfigError, OutOfRange, within};
use crate::hdd::{Hdd, HddOptions};
use crate::ssd::Ssd;
use crate::stream::Tag;

/// A drive seen from outside: bandwidths for sequential and random requests, and how many requests it serves
/// at once.
///
/// Bandwidths are for `parallel` requests under way. A request takes one of that many lanes; it takes
/// `parallel` times as long as its share of the bandwidth, and all lanes together reach the bandwidth.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BlackBoxOptions {
    /// Pages and bandwidths.
    pub rates: HddOptions,
    /// Requests served at once.
    pub parallel: u32,
}

/// See [`BlackBoxOptions`].
#[derive(Clone, Debug)]
pub struct BlackBox {
    options: BlackBoxOptions,
    lanes_ns: Vec<u64>,
    position: [u64; 2],
    pages_read: u64,
    pages_written: u64,
}

impl BlackBox {
    /// An idle drive.
    pub fn new(options: BlackBoxOptions) -> Result<Self, ConfigError> {
        options.rates.check()?;
        within("requests served at once", u64::from(options.parallel), 1, 4096)?;
        let lanes_ns = vec![0; options.parallel as usize];
        Ok(Self { options, lanes_ns, position: [0; 2], pages_read: 0, pages_written: 0 })
    }

    fn serve(&mut self, page: u64, count: u64, direction: usize, now_ns: u64) -> Result<u64, OutOfRange> {
        let rates = &self.options.rates;
        OutOfRange::check(page, count, rates.pages)?;
        let mut time = rates.transfer_ns(direction) * count as f64;
        if page != self.position[direction] {
            time += rates.positioning_ns(direction);
        }
        self.position[direction] = page + count;
        let time_ns = (time * f64::from(self.options.parallel)).round() as u64;
        let lane = self.lanes_ns.iter_mut().min().expect("there is a lane");
        *lane = (*lane).max(now_ns) + time_ns;
        Ok(*lane)
    }
}

/// What kind of device to make.
#[derive(Clone, PartialEq, Debug)]
pub enum DeviceConfig {
    /// An SSD down to its flash.
    Ssd(Box<SsdConfig>),
    /// A hard disk.
    Hdd(HddOptions),
    /// A drive of which only bandwidths are known.
    BlackBox(BlackBoxOptions),
}

/// A simulated device. Requests come in order of their times; answers are completion times in nanoseconds.
#[derive(Clone, Debug)]
pub enum Device {
    /// An SSD down to its flash.
    Ssd(Box<Ssd>),
    /// A hard disk.
    Hdd(Hdd),
    /// A drive of which only bandwidths are known.
    BlackBox(BlackBox),
}

impl Device {
    /// As configured.
    pub fn new(config: DeviceConfig) -> Result<Self, ConfigError> {
        Ok(match config {
            DeviceConfig::Ssd(config) => Self::Ssd(Box::new(Ssd::new(*config)?)),
            DeviceConfig::Hdd(options) => Self::Hdd(Hdd::new(options)?),
            DeviceConfig::BlackBox(options) => Self::BlackBox(BlackBox::new(options)?),
        })
    }

    /// Pages it has.
    pub fn pages(&self) -> u64 {
        match self {
            Self::Ssd(ssd) => ssd.logical_pages(),
            Self::Hdd(disk) => disk.options().pages,
            Self::BlackBox(drive) => drive.options.rates.pages,
        }
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u32 {
        match self {
            Self::Ssd(ssd) => ssd.config().geometry.page_bytes,
            Self::Hdd(disk) => disk.options().page_bytes,
            Self::BlackBox(drive) => drive.options.rates.page_bytes,
        }
    }

    /// Writes pages.
    pub fn write(&mut self, page: u64, count: u64, tag: Tag, now_ns: u64) -> Result<u64, OutOfRange> {
        match self {
            Self::Ssd(ssd) => ssd.write(page, count, tag, now_ns),
            Self::Hdd(disk) => disk.write(page, count, now_ns),
            Self::BlackBox(drive) => {
                let end_ns = drive.serve(page, count, 1, now_ns)?;
                drive.pages_written += count;
                Ok(end_ns)
            }
        }
    }

    /// Reads pages.
    pub fn read(&mut self, page: u64, count: u64, now_ns: u64) -> Result<u64, OutOfRange> {
        match self {
            Self::Ssd(ssd) => ssd.read(page, count, now_ns),
            Self::Hdd(disk) => disk.read(page, count, now_ns),
            Self::BlackBox(drive) => {
                let end_ns = drive.serve(page, count, 0, now_ns)?;
                drive.pages_read += count;
                Ok(end_ns)
            }
        }
    }

    /// Declares pages unused; disks and drives of unknown inside take no notice.
    pub fn trim(&mut self, page: u64, count: u64, now_ns: u64) -> Result<u64, OutOfRange> {
        match self {
            Self::Ssd(ssd) => ssd.trim(page, count, now_ns),
            Self::Hdd(_) | Self::BlackBox(_) => {
                OutOfRange::check(page, count, self.pages())?;
                Ok(now_ns)
            }
        }
    }

    /// Makes everything acknowledged durable.
    pub fn flush(&mut self, now_ns: u64) -> u64 {
        match self {
            Self::Ssd(ssd) => ssd.flush(now_ns),
            Self::Hdd(disk) => disk.flush(now_ns),
            Self::BlackBox(drive) => drive.lanes_ns.iter().copied().max().unwrap_or(0).max(now_ns),
        }
    }

    /// Counters; of other devices than SSDs the host's pages only, taken as programmed once.
    pub fn counters(&self) -> Counters {
        let of = |written, read| Counters {
            host_pages_written: written,
            programs_mlc: written,
            host_pages_read: read,
            ..Counters::default()
        };
        match self {
            Self::Ssd(ssd) => ssd.counters(),
            Self::Hdd(disk) => of(disk.traffic().pages_written, disk.traffic().pages_read),
            Self::BlackBox(drive) => of(drive.pages_written, drive.pages_read),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    /// Requirement X-02.
    #[test]
    fn the_plextor_as_a_black_box() {
        let config = DeviceConfig::BlackBox(presets::plextor_m5pro());
        let mut drive = Device::new(config).expect("valid");
        let megabytes_per_s = |ns: u64, pages: u64| (pages * 4096) as f64 / (ns as f64 / 1e9) / 1e6;
        let mut end = 0;
        for page in 0..3200 {
            end = drive.write(page, 1, Tag::Log, 0).expect("in range").max(end);
        }
        assert!((megabytes_per_s(end, 3200) - 93.4).abs() < 0.5);
        let from = end;
        for i in 0..3200 {
            end = drive.read(i * 7 % 10_000 + 1, 1, from).expect("in range").max(end);
        }
        assert!((megabytes_per_s(end - from, 3200) - 32.8).abs() < 0.3);
        assert_eq!(drive.flush(0), end);
        let counters = drive.counters();
        assert_eq!((counters.host_pages_written, counters.host_pages_read), (3200, 3200));
        assert!(drive.trim(0, u64::MAX, 0).is_err());
        assert_eq!(drive.trim(0, 1, 9), Ok(9));
    }

    #[test]
    fn every_preset_can_be_made() {
        for name in presets::NAMES {
            let config = presets::by_name(name).expect("it is on the list");
            // The large ones take gigabytes: checked, not made.
            let checked = match &config {
                DeviceConfig::Ssd(ssd) => ssd.check(),
                DeviceConfig::Hdd(_) | DeviceConfig::BlackBox(_) => Device::new(config).map(|_| ()),
            };
            assert_eq!(checked, Ok(()), "{name}");
        }
        assert_eq!(presets::by_name("floppy"), None);
    }
}
