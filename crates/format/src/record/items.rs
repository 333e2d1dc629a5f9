//! The items of the lists in records, and lists of them that are decoded as they are read.

use crate::layout::layout;
use block::{ChunkIndex, Lcn};
use std::fmt;
use std::marker::PhantomData;

layout!(
    /// A checksum of a list of checksums.
    crc_item, "item: checksum", 4, {
        CRC: 0, 4, "checksum of the chunk";
    }
);
layout!(
    /// A member of a log stripe.
    log_member, "item: log-stripe member", 14, {
        LCN: 0, 6, "logical chunk number";
        CHUNK: 6, 4, "chunk index of the new version";
        CRC: 10, 4, "checksum of the chunk";
    }
);
layout!(
    /// A chunk with its checksum.
    chunk_item, "item: chunk with checksum", 8, {
        CHUNK: 0, 4, "chunk index";
        CRC: 4, 4, "checksum of the chunk";
    }
);
layout!(
    /// A chunk without a checksum.
    place_item, "item: chunk", 4, {
        CHUNK: 0, 4, "chunk index; 0 = a column of zeros";
    }
);
layout!(
    /// A member of an elastic stripe.
    elastic_member, "item: elastic-stripe member", 12, {
        LCN: 0, 4, "logical chunk number";
        FROM: 4, 4, "0 = a new version, else the place it was moved from: row x k + column + 1";
        CRC: 8, 4, "checksum of the chunk";
    }
);
layout!(
    /// A piece of an in-place or delta record.
    piece_item, "item: piece", 10, {
        COLUMN: 0, 2, "column, data then parity";
        CRC: 2, 4, "checksum of the chunk";
        PAYLOAD_BLOCK: 6, 4, "first block of the copy in the payload ring; 0 = none";
    }
);

/// A data chunk of a log stripe: which logical chunk, where its new version lies on its own device,
/// and its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogMember {
    /// The logical chunk, below [`crate::LCN_LIMIT`].
    pub lcn: Lcn,
    /// Where the new version is, on the device that the layout assigns to the logical chunk.
    pub chunk: ChunkIndex,
    /// Checksum of the chunk.
    pub crc: u32,
}

/// A chunk of a stripe that was written out of place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StripeChunk {
    /// Where it is, on the device that the layout assigns to its column.
    pub chunk: ChunkIndex,
    /// Checksum of the chunk.
    pub crc: u32,
}

impl StripeChunk {
    /// No chunk: the column is zeros, or the stripe has no parity.
    pub const NONE: Self = Self { chunk: ChunkIndex::NONE, crc: 0 };
}

/// A chunk that was written in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InPlacePiece {
    /// 0..k data, k.. parity.
    pub column: u16,
    /// Checksum of the chunk.
    pub crc: u32,
    /// First block of a copy in the payload ring of the column's device; 0 if there is none.
    pub payload_block: u32,
}

/// A data chunk of an elastic stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElasticMember {
    /// The logical chunk, below 2^32: an array of elastic stripes has no more.
    pub lcn: Lcn,
    /// What it is a copy of: 0 for a new version; otherwise the place, counted as the map does,
    /// that garbage collection moved it from. The move counts only if the newest version is still
    /// there.
    pub from: u32,
    /// Checksum of the chunk.
    pub crc: u32,
}

/// What a list in a record consists of.
pub trait Item: Copy {
    /// Bytes of one item.
    const BYTES: usize;

    /// Reads one item.
    fn get(bytes: &[u8]) -> Self;

    /// Writes one item.
    fn put(self, out: &mut [u8]);
}

/// A checksum.
impl Item for u32 {
    const BYTES: usize = crc_item::LAYOUT.size;

    #[inline]
    fn get(bytes: &[u8]) -> Self {
        crc_item::CRC.get_u32(bytes)
    }

    #[inline]
    fn put(self, out: &mut [u8]) {
        crc_item::CRC.put_u32(out, self);
    }
}

impl Item for LogMember {
    const BYTES: usize = log_member::LAYOUT.size;

    #[inline]
    fn get(bytes: &[u8]) -> Self {
        Self {
            lcn: Lcn::new(log_member::LCN.get_u48(bytes)),
            chunk: ChunkIndex::new(log_member::CHUNK.get_u32(bytes)),
            crc: log_member::CRC.get_u32(bytes),
        }
    }

    #[inline]
    fn put(self, out: &mut [u8]) {
        log_member::LCN.put_u48(out, self.lcn.get());
        log_member::CHUNK.put_u32(out, self.chunk.get());
        log_member::CRC.put_u32(out, self.crc);
    }
}

impl Item for StripeChunk {
    const BYTES: usize = chunk_item::LAYOUT.size;

    #[inline]
    fn get(bytes: &[u8]) -> Self {
        Self { chunk: ChunkIndex::new(chunk_item::CHUNK.get_u32(bytes)), crc: chunk_item::CRC.get_u32(bytes) }
    }

    #[inline]
    fn put(self, out: &mut [u8]) {
        chunk_item::CHUNK.put_u32(out, self.chunk.get());
        chunk_item::CRC.put_u32(out, self.crc);
    }
}

/// A chunk whose checksum is known already.
impl Item for ChunkIndex {
    const BYTES: usize = place_item::LAYOUT.size;

    #[inline]
    fn get(bytes: &[u8]) -> Self {
        Self::new(place_item::CHUNK.get_u32(bytes))
    }

    #[inline]
    fn put(self, out: &mut [u8]) {
        place_item::CHUNK.put_u32(out, ChunkIndex::get(self));
    }
}

impl Item for InPlacePiece {
    const BYTES: usize = piece_item::LAYOUT.size;

    #[inline]
    fn get(bytes: &[u8]) -> Self {
        Self {
            column: piece_item::COLUMN.get_u16(bytes),
            crc: piece_item::CRC.get_u32(bytes),
            payload_block: piece_item::PAYLOAD_BLOCK.get_u32(bytes),
        }
    }

    #[inline]
    fn put(self, out: &mut [u8]) {
        piece_item::COLUMN.put_u16(out, self.column);
        piece_item::CRC.put_u32(out, self.crc);
        piece_item::PAYLOAD_BLOCK.put_u32(out, self.payload_block);
    }
}

impl Item for ElasticMember {
    const BYTES: usize = elastic_member::LAYOUT.size;

    #[inline]
    fn get(bytes: &[u8]) -> Self {
        Self {
            lcn: Lcn::new(elastic_member::LCN.get_u32(bytes).into()),
            from: elastic_member::FROM.get_u32(bytes),
            crc: elastic_member::CRC.get_u32(bytes),
        }
    }

    #[inline]
    fn put(self, out: &mut [u8]) {
        let lcn = u32::try_from(self.lcn.get()).expect("elastic stripes hold chunks below 2^32");
        elastic_member::LCN.put_u32(out, lcn);
        elastic_member::FROM.put_u32(out, self.from);
        elastic_member::CRC.put_u32(out, self.crc);
    }
}

/// A list of a record: the bytes of its items, each decoded when it is asked for.
pub struct List<'a, T> {
    bytes: &'a [u8],
    items: PhantomData<T>,
}

impl<'a, T: Item> List<'a, T> {
    /// The items that the bytes hold, which are whole ones.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, items: PhantomData }
    }

    /// How many items.
    #[inline]
    pub fn len(self) -> usize {
        self.bytes.len() / T::BYTES
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// One item, which must be there.
    #[inline]
    pub fn at(self, index: usize) -> T {
        T::get(&self.bytes[index * T::BYTES..][..T::BYTES])
    }

    /// All items, in order.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = T> + Clone + use<'a, T> {
        self.bytes.chunks_exact(T::BYTES).map(T::get)
    }
}

impl<T> Clone for List<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<'_, T> {}

impl<T: Item + fmt::Debug> fmt::Debug for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
