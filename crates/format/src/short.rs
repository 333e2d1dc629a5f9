//! What short forms are made of: numbers in as many bytes as they need, and steps from one number to the
//! next.
//!
//! A *number* has seven bits a byte, the lowest first; the highest bit of a byte says that another follows. A
//! *step* is a number: twice the difference, if it is not negative, else one less than twice what is missing.

use crate::FormatError;

const MORE: u8 = 0x80;

/// Writes a short form, as far as there is room.
pub(crate) struct ShortWriter<'a> {
    out: &'a mut [u8],
    used: usize,
    fits: bool,
}

impl<'a> ShortWriter<'a> {
    /// Writes to the beginning of `out`.
    #[inline]
    pub(crate) fn new(out: &'a mut [u8]) -> Self {
        Self { out, used: 0, fits: true }
    }

    /// Bytes as they are.
    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        match self.out.get_mut(self.used..self.used + bytes.len()) {
            Some(out) => {
                out.copy_from_slice(bytes);
                self.used += bytes.len();
            }
            None => self.fits = false,
        }
    }

    /// A number.
    #[inline]
    pub(crate) fn number(&mut self, mut value: u64) {
        // Byte by byte: nearly all numbers take one or two, less than a call that copies them.
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            let Some(byte) = self.out.get_mut(self.used) else {
                self.fits = false;
                return;
            };
            *byte = low & !MORE | if value > 0 { MORE } else { 0 };
            self.used += 1;
            if value == 0 {
                return;
            }
        }
    }

    /// How many there are of something.
    #[inline]
    pub(crate) fn count(&mut self, count: usize) {
        self.number(u64::try_from(count).expect("a count has 64 bits"));
    }

    /// How far `now` is from `before`, which becomes it.
    #[inline]
    pub(crate) fn step(&mut self, before: &mut u64, now: u64) {
        self.number(step(*before, now));
        *before = now;
    }

    /// A checksum, as it is.
    #[inline]
    pub(crate) fn crc(&mut self, crc: u32) {
        self.bytes(&crc.to_le_bytes());
    }

    /// How many bytes were written, if all fitted.
    #[inline]
    pub(crate) fn finish(self) -> Option<usize> {
        self.fits.then_some(self.used)
    }
}

/// The number that says how far `now` is from `before`.
#[inline]
pub(crate) fn step(before: u64, now: u64) -> u64 {
    let difference = now.wrapping_sub(before);
    if difference >> 63 == 0 { difference << 1 } else { !(difference << 1) }
}

/// Where a step leads.
#[inline]
pub(crate) fn after(before: u64, step: u64) -> u64 {
    before.wrapping_add(if step & 1 == 0 { step >> 1 } else { !(step >> 1) })
}

/// Appends bytes, four a word, the first in the lowest bits; then zeros.
pub(crate) fn push_bytes(bytes: &[u8], out: &mut Vec<u32>) {
    let (words, rest) = bytes.as_chunks();
    out.extend(words.iter().map(|&word| u32::from_le_bytes(word)));
    if !rest.is_empty() {
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        out.push(u32::from_le_bytes(last));
    }
}

/// The first `len` bytes of words that hold as many, and those behind them, which ought to be zeros; `room`
/// is overwritten.
pub(crate) fn bytes_of<'a>(words: &[u32], len: usize, room: &'a mut Vec<u8>) -> (&'a [u8], &'a [u8]) {
    room.clear();
    room.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    room.split_at(len)
}

/// Reads short forms off the front of foreign bytes.
pub(crate) struct ShortReader<'a> {
    rest: &'a [u8],
}

impl<'a> ShortReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What follows what was read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// So many bytes as they are.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(FormatError::Malformed {
            what: "bytes left for a short form",
            found: u64::try_from(self.rest.len()).unwrap_or(u64::MAX),
            expected: "as many as it announces",
        })?;
        self.rest = rest;
        Ok(*taken)
    }

    /// A number, in no more bytes than it needs.
    pub(crate) fn number(&mut self) -> Result<u64, FormatError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & !MORE);
            let is_good = (bits << shift) >> shift == bits && (shift == 0 || byte != 0);
            if !is_good {
                break;
            }
            value |= bits << shift;
            if byte & MORE == 0 {
                return Ok(value);
            }
        }
        let what = "last byte of a number of a short form";
        Err(FormatError::Malformed { what, found: value, expected: "bits of a number below 2^64, not 0" })
    }

    /// A number below `limit`.
    pub(crate) fn number_below(&mut self, what: &'static str, limit: u64) -> Result<u64, FormatError> {
        below(what, self.number()?, limit)
    }

    /// Where a step leads, which is below `limit`; `before` becomes that.
    pub(crate) fn step(
        &mut self,
        what: &'static str,
        before: &mut u64,
        limit: u64,
    ) -> Result<u64, FormatError> {
        *before = below(what, after(*before, self.number()?), limit)?;
        Ok(*before)
    }

    /// The same of a chunk or block of a device.
    pub(crate) fn place(&mut self, what: &'static str, before: &mut u64) -> Result<u32, FormatError> {
        let place = self.step(what, before, PLACE_LIMIT)?;
        Ok(u32::try_from(place).unwrap_or(u32::MAX))
    }

    /// A checksum.
    pub(crate) fn crc(&mut self) -> Result<u32, FormatError> {
        Ok(u32::from_le_bytes(self.array()?))
    }
}

/// Chunks and blocks of a device are below this.
const PLACE_LIMIT: u64 = 1 << 32;

fn below(what: &'static str, found: u64, limit: u64) -> Result<u64, FormatError> {
    if found < limit {
        return Ok(found);
    }
    let expected = match limit {
        PLACE_LIMIT => "a number below 2^32",
        crate::LCN_LIMIT => "a number below 2^48",
        crate::COUNTER_LIMIT => "a number below 2^63",
        _ => "a lower number",
    };
    Err(FormatError::Malformed { what, found, expected })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl Fn(&mut ShortWriter<'_>)) -> Vec<u8> {
        let mut out = [0xee; 64];
        let mut writer = ShortWriter::new(&mut out);
        write(&mut writer);
        let len = writer.finish().unwrap();
        out[..len].to_vec()
    }

    const VALUES: [u64; 12] =
        [0, 1, 63, 64, 127, 128, 16_383, 16_384, u32::MAX as u64, 1 << 48, u64::MAX >> 1, u64::MAX];

    #[test]
    fn numbers_come_back_and_take_as_many_bytes_as_they_need() {
        for value in VALUES {
            let bytes = written(|out| out.number(value));
            let bits = (64 - value.leading_zeros() as usize).max(1);
            assert_eq!(bytes.len(), bits.div_ceil(7), "{value}");
            let mut reader = ShortReader::new(&bytes);
            assert_eq!((reader.number(), reader.rest()), (Ok(value), &[][..]));
            for end in 0..bytes.len() {
                assert!(ShortReader::new(&bytes[..end]).number().is_err(), "{end} bytes of {value}");
            }
        }
    }

    #[test]
    fn steps_lead_from_any_number_to_any_other() {
        for from in VALUES {
            for to in VALUES {
                assert_eq!(after(from, step(from, to)), to, "{from} to {to}");
            }
        }
        assert_eq!([step(5, 5), step(5, 6), step(5, 4), step(4, 68), step(68, 4)], [0, 2, 1, 128, 127]);
    }

    #[test]
    fn a_number_of_more_bytes_than_it_needs_or_beyond_64_bits_is_refused() {
        for bytes in [&[0x80, 0][..], &[0xff, 0x80, 0], &[0xff; 11]] {
            assert!(ShortReader::new(bytes).number().is_err(), "{bytes:?}");
        }
        let mut last = [0xff; 10];
        for (byte, is_good) in [(1, true), (2, false), (0x7f, false), (0x81, false)] {
            last[9] = byte;
            assert_eq!(ShortReader::new(&last).number().is_ok(), is_good, "{byte:#x}");
        }
    }

    #[test]
    fn what_has_no_room_is_told() {
        let mut out = [0; 5];
        let mut writer = ShortWriter::new(&mut out);
        writer.number(200);
        writer.bytes(&[1, 2, 3, 4]);
        assert_eq!(writer.finish(), None);
        let mut writer = ShortWriter::new(&mut out);
        writer.number(1);
        writer.crc(7);
        assert_eq!(writer.finish(), Some(5));
        assert_eq!(out, [1, 7, 0, 0, 0]);
    }
}
