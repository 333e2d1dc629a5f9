//! Conversions between sizes in memory and on the volume, which have 64 bits; this crate runs where memory
//! has too.

/// A size in memory as one on the volume.
#[inline]
pub(crate) fn wide(size: usize) -> u64 {
    u64::try_from(size).expect("memory has at most 64 bits")
}

/// A size on the volume as one in memory.
#[inline]
pub(crate) fn narrow(size: u64) -> usize {
    usize::try_from(size).expect("memory has 64 bits")
}

/// A small number as an index.
#[inline]
pub(crate) fn small(number: u32) -> usize {
    usize::try_from(number).expect("memory has at least 32 bits")
}

/// A size that a caller has bounded, in 32 bits.
#[inline]
pub(crate) fn short(size: usize) -> u32 {
    u32::try_from(size).expect("the caller bounds it")
}

/// The low 32 bits.
#[inline]
pub(crate) fn low(word: u64) -> u32 {
    u32::try_from(word & 0xffff_ffff).expect("32 bits")
}
