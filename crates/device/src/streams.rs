//! Write streams: what a drive with flexible data placement (NVMe FDP) is told of each write, so that it puts
//! together what will be overwritten together. Linux has them for block devices since 6.16.
//!
//! The kernel says how many a device has, from 1 on; 0 is a write that belongs to none.

use crate::kernel::queue_attribute;
use block::Stream;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// How many streams a device offers, and which content goes where. Clones are of the same device.
#[derive(Clone, Debug, Default)]
pub struct WriteStreams(Arc<AtomicU8>);

impl WriteStreams {
    /// What the kernel offers of a block device.
    pub(crate) fn of_device(file: &File) -> Self {
        let number = file.metadata().ok().map(|found| found.rdev());
        let offered = number.and_then(|device| queue_attribute(device, "max_write_streams"));
        let offered = offered.and_then(|text| text.parse::<u64>().ok());
        Self::new(u8::try_from(offered.unwrap_or(0)).unwrap_or(u8::MAX))
    }

    /// So many.
    pub(crate) fn new(offered: u8) -> Self {
        Self(Arc::new(AtomicU8::new(offered)))
    }

    /// How many are in use; 0 if the device offers none, or too few to keep anything apart.
    pub fn count(&self) -> u8 {
        match self.0.load(Ordering::Relaxed) {
            0 | 1 => 0,
            count => count,
        }
    }

    /// The device does not take them after all.
    pub(crate) fn give_up(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Where content goes. Parity is apart from data, as it is written far more often; with more streams what
    /// lives shortly, the log, and metadata have their own, then classes of data that schemes tell apart.
    pub fn stream_of(&self, content: Stream, class: u8) -> u8 {
        let count = self.count();
        match (count, content) {
            (0 | 1, _) => 0,
            (5.., Stream::Data) if class > 0 => 4 + class.min(count - 4),
            (_, Stream::Data) => 1,
            (_, Stream::Parity) => 2,
            (_, Stream::Log) => count.min(3),
            (_, Stream::Metadata) => count.min(4),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn content_is_kept_apart_as_far_as_streams_go() {
        let places = |count| {
            let streams = WriteStreams::new(count);
            Stream::ALL.map(|content| streams.stream_of(content, 0))
        };
        assert_eq!(places(0), [0; 4]);
        assert_eq!(places(1), [0; 4], "one stream keeps nothing apart");
        assert_eq!(places(2), [1, 2, 2, 2]);
        assert_eq!(places(3), [1, 2, 3, 3]);
        assert_eq!(places(4), [1, 2, 3, 4]);
        assert_eq!(places(200), [1, 2, 3, 4]);
    }

    #[test]
    fn classes_of_data_have_what_is_left() {
        let places =
            |count| [0, 1, 2, 3, 9].map(|class| WriteStreams::new(count).stream_of(Stream::Data, class));
        assert_eq!(places(4), [1; 5]);
        assert_eq!(places(6), [1, 5, 6, 6, 6]);
        assert_eq!(places(255), [1, 5, 6, 7, 13]);
        for (count, class) in (0..=255).flat_map(|count| [0, 1, 7, 255].map(|class| (count, class))) {
            for content in Stream::ALL {
                let stream = WriteStreams::new(count).stream_of(content, class);
                assert!(stream <= count, "{count} streams, class {class} of {content:?}: {stream}");
            }
        }
    }

    #[test]
    fn what_was_given_up_is_given_up_for_all_who_have_the_device() {
        let streams = WriteStreams::new(8);
        let same = streams.clone();
        streams.give_up();
        assert_eq!((same.count(), same.stream_of(Stream::Parity, 0)), (0, 0));
    }
}
