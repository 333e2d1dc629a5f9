//! Whether a write request goes on where the last one ended (W-08).

use block::Lba;

/// How a write request relates to the one before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sequence {
    /// Its addresses do not follow the last request's.
    Random,
    /// It starts where the last request ended.
    Continues,
}

/// Compares each write request with the one before it, by sectors.
#[derive(Clone, Copy, Debug, Default)]
pub struct SequenceDetector {
    end: Option<u64>,
}

impl SequenceDetector {
    /// A write of `sector_count` sectors from `first` on; requests are to be told in the order they arrive.
    pub fn request(&mut self, first: Lba, sector_count: u64) -> Sequence {
        let follows = self.end == Some(first.get());
        self.end = first.get().checked_add(sector_count);
        if follows { Sequence::Continues } else { Sequence::Random }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requirement W-08.
    #[test]
    fn only_the_very_next_sector_continues() {
        let mut detector = SequenceDetector::default();
        let mut request = |first, count| detector.request(Lba::new(first), count);
        assert_eq!(request(0, 8), Sequence::Random); // nothing came before
        assert_eq!(request(8, 16), Sequence::Continues);
        assert_eq!(request(24, 1), Sequence::Continues);
        assert_eq!(request(24, 1), Sequence::Random); // overlaps
        assert_eq!(request(26, 1), Sequence::Random); // skips one
        assert_eq!(request(8, 8), Sequence::Random); // goes back
        assert_eq!(request(u64::MAX, 8), Sequence::Random);
        assert_eq!(request(7, 8), Sequence::Random); // no wrapping around
    }
}
