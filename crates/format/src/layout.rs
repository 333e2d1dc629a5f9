//! Byte layouts as data: the encoder, the decoder and the tables of `docs/format.md` share one
//! list of fields.
//!
//! `layout!` takes fields with explicit offsets and checks at compile time that they follow one another
//! without gap or overlap and end at the size given.

use crate::{ArrayUuid, COUNTER_LIMIT, FORMAT_VERSION, FormatError, crc32c};
use block::META_BYTES;

/// A field at a fixed place.
pub(crate) struct Field {
    pub(crate) offset: usize,
    pub(crate) size: usize,
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
}

/// A structure of fixed size.
pub(crate) struct Layout {
    pub(crate) title: &'static str,
    pub(crate) size: usize,
    pub(crate) fields: &'static [Field],
}

macro_rules! layout {
    ($(#[$doc:meta])* $module:ident, $title:literal, $size:expr, {
        $($field:ident: $offset:expr, $bytes:expr, $meaning:literal;)+
    }) => {
        $(#[$doc])*
        pub(crate) mod $module {
            #[allow(unused_imports, reason = "a layout may need no constant of its module's parent")]
            use super::*;
            use $crate::layout::{Field, Layout};

            $(pub(crate) const $field: Field =
                Field { offset: $offset, size: $bytes, name: stringify!($field), meaning: $meaning };)+

            pub(crate) const LAYOUT: Layout = Layout { title: $title, size: $size, fields: &[$($field,)+] };

            const _: () = LAYOUT.check();
        }
    };
}
pub(crate) use layout;

impl Layout {
    /// Fails the build if fields leave gaps, overlap, or do not end at the structure's size.
    pub(crate) const fn check(&self) {
        let mut end = 0;
        let mut i = 0;
        while i < self.fields.len() {
            assert!(self.fields[i].offset == end, "a field does not start where the one before it ends");
            assert!(self.fields[i].size > 0, "a field is empty");
            end += self.fields[i].size;
            i += 1;
        }
        assert!(end == self.size, "the fields do not add up to the size of the structure");
    }
}

impl Field {
    #[inline]
    pub(crate) const fn end(&self) -> usize {
        self.offset + self.size
    }

    #[inline]
    pub(crate) fn put(&self, out: &mut [u8], bytes: &[u8]) {
        out[self.offset..self.end()].copy_from_slice(bytes);
    }

    #[inline]
    pub(crate) fn put_u8(&self, out: &mut [u8], value: u8) {
        self.put(out, &[value]);
    }

    #[inline]
    pub(crate) fn put_u16(&self, out: &mut [u8], value: u16) {
        self.put(out, &value.to_le_bytes());
    }

    #[inline]
    pub(crate) fn put_u32(&self, out: &mut [u8], value: u32) {
        self.put(out, &value.to_le_bytes());
    }

    /// Six bytes: chunk and stripe numbers, which stay below 2^48 (see [`crate::LCN_LIMIT`]).
    #[inline]
    pub(crate) fn put_u48(&self, out: &mut [u8], value: u64) {
        assert!(value < 1 << 48, "{} is {value}: numbers of chunks and stripes are below 2^48", self.name);
        self.put(out, &value.to_le_bytes()[..6]);
    }

    #[inline]
    pub(crate) fn put_u64(&self, out: &mut [u8], value: u64) {
        self.put(out, &value.to_le_bytes());
    }

    /// Counts one more; the counts of lists have one or two bytes.
    #[inline]
    pub(crate) fn increment(&self, bytes: &mut [u8]) {
        let full = "a list is not longer than its count can say";
        match self.size {
            1 => self.put_u8(bytes, self.get_u8(bytes).checked_add(1).expect(full)),
            _ => self.put_u16(bytes, self.get_u16(bytes).checked_add(1).expect(full)),
        }
    }

    /// The field's bytes. `bytes` holds at least the whole structure: callers check the length first.
    #[inline]
    pub(crate) fn get<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.offset..self.end()]
    }

    /// The field's bytes as an array of the field's size; a mismatch of sizes is a bug in this crate.
    #[inline]
    fn array<const N: usize>(&self, bytes: &[u8]) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(self.get(bytes));
        array
    }

    #[inline]
    pub(crate) fn get_u8(&self, bytes: &[u8]) -> u8 {
        u8::from_le_bytes(self.array(bytes))
    }

    #[inline]
    pub(crate) fn get_u16(&self, bytes: &[u8]) -> u16 {
        u16::from_le_bytes(self.array(bytes))
    }

    #[inline]
    pub(crate) fn get_u32(&self, bytes: &[u8]) -> u32 {
        u32::from_le_bytes(self.array(bytes))
    }

    #[inline]
    pub(crate) fn get_u48(&self, bytes: &[u8]) -> u64 {
        let [a, b, c, d, e, f] = self.array(bytes);
        u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
    }

    #[inline]
    pub(crate) fn get_u64(&self, bytes: &[u8]) -> u64 {
        u64::from_le_bytes(self.array(bytes))
    }

    pub(crate) fn get_uuid(&self, bytes: &[u8]) -> ArrayUuid {
        ArrayUuid::new(self.array(bytes))
    }
}

/// Where the checksum of every block is: its last four bytes, so that one call over what precedes them
/// computes it.
pub(crate) const CRC_OFFSET: usize = META_BYTES - 4;

layout!(
    /// The fields that every block has, at the same places.
    common, "every block", META_BYTES, {
        MAGIC: 0, 8, "what the block is";
        VERSION: 8, 2, "format version, 2";
        DEV: 10, 2, "own address: index of the member device";
        BLOCK: 12, 4, "own address: number of the block within its slot, ring or area";
        ARRAY: 16, 16, "UUID of the array";
        BODY: 32, CRC_OFFSET - 32, "see below";
        CRC: CRC_OFFSET, 4, "CRC-32C of bytes 0..4092";
    }
);

/// What tells one kind of block from the others.
pub(crate) struct BlockKind {
    pub(crate) what: &'static str,
    pub(crate) magic: [u8; 8],
}

impl BlockKind {
    /// Writes the common fields but the checksum.
    #[inline]
    pub(crate) fn begin(&self, out: &mut [u8], dev: u16, block: u32, array: &ArrayUuid) {
        assert!(
            out.len() == META_BYTES,
            "{} is encoded into {} bytes, not {META_BYTES}",
            self.what,
            out.len()
        );
        common::MAGIC.put(out, &self.magic);
        common::VERSION.put_u16(out, FORMAT_VERSION);
        common::DEV.put_u16(out, dev);
        common::BLOCK.put_u32(out, block);
        common::ARRAY.put(out, &array.bytes());
    }

    /// Writes the checksum over everything else and returns it.
    #[inline]
    pub(crate) fn finish(&self, out: &mut [u8]) -> u32 {
        let crc = crc32c(&out[..CRC_OFFSET]);
        common::CRC.put_u32(out, crc);
        crc
    }

    /// Checks size, magic, version and checksum; everything else may be read after that.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<u32, FormatError> {
        let what = self.what;
        if bytes.len() != META_BYTES {
            return Err(FormatError::Length { what, found: bytes.len(), expected: META_BYTES });
        }
        let found: [u8; 8] = common::MAGIC.array(bytes);
        if found != self.magic {
            return Err(FormatError::BadMagic { what, found, expected: self.magic });
        }
        let found = common::VERSION.get_u16(bytes);
        if found != FORMAT_VERSION {
            return Err(FormatError::Version { what, found, expected: FORMAT_VERSION });
        }
        let found = common::CRC.get_u32(bytes);
        let expected = crc32c(&bytes[..CRC_OFFSET]);
        if found != expected {
            return Err(FormatError::Checksum { what, found, expected });
        }
        Ok(found)
    }

    /// Checks that the block belongs to the array asked for.
    pub(crate) fn check_array(&self, bytes: &[u8], expected: ArrayUuid) -> Result<(), FormatError> {
        let found = common::ARRAY.get_uuid(bytes);
        if found == expected {
            Ok(())
        } else {
            Err(FormatError::OtherArray { what: self.what, found, expected })
        }
    }
}

/// Checks one part of a block's address.
pub(crate) fn check_place(
    what: &'static str,
    found: impl Into<u64>,
    expected: impl Into<u64>,
) -> Result<(), FormatError> {
    let (found, expected) = (found.into(), expected.into());
    if found == expected { Ok(()) } else { Err(FormatError::Misplaced { what, found, expected }) }
}

/// Checks that a counter leaves room to count on.
pub(crate) fn check_counter(what: &'static str, found: u64) -> Result<(), FormatError> {
    if found < COUNTER_LIMIT {
        Ok(())
    } else {
        Err(FormatError::Malformed { what, found, expected: "a counter below 2^63" })
    }
}

/// Checks that unused bytes are zero, so that what was decoded encodes to the same bytes again.
pub(crate) fn check_zero(what: &'static str, bytes: &[u8]) -> Result<(), FormatError> {
    // All bytes are looked at, since a search that may stop at each of them is many times as slow.
    if bytes.iter().fold(0, |all, byte| all | byte) == 0 {
        return Ok(());
    }
    let byte = bytes.iter().copied().find(|&byte| byte != 0).unwrap_or_default();
    Err(FormatError::Malformed { what, found: u64::from(byte), expected: "zeros in unused bytes" })
}
