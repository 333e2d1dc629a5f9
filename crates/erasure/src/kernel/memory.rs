//! Where the pieces of a job lie: in one region, each for itself, or in slices of their own.

use block::Buffer;
use std::marker::PhantomData;

/// Turns the names of pieces into pointers.
///
/// # Safety
/// While the value lives, a pointer from [`Memory::source`] is readable, and one from [`Memory::target`]
/// readable and writable, for [`Memory::len`] bytes, which is the same all the time.
#[expect(clippy::len_without_is_empty, reason = "pieces without a byte are no special case")]
pub unsafe trait Memory {
    /// Names that differ by less are of pieces that overlap.
    fn distance(&self) -> usize;
    /// Bytes in every piece.
    fn len(&self) -> usize;
    /// The piece `name`, to be read.
    fn source(&self, name: usize) -> *const u8;
    /// The piece `name`, to be changed.
    fn target(&mut self, name: usize) -> *mut u8;
}

/// Pieces of one region, named by byte offset.
pub struct Region<'a> {
    base: *mut u8,
    size: usize,
    len: usize,
    lifetime: PhantomData<&'a mut [u8]>,
}

impl<'a> Region<'a> {
    /// Pieces of `len` bytes in `region`.
    pub fn new(region: &'a mut [u8], len: usize) -> Self {
        Self { base: region.as_mut_ptr(), size: region.len(), len, lifetime: PhantomData }
    }

    fn at(&self, offset: usize) -> *mut u8 {
        let end = offset.checked_add(self.len);
        assert!(
            end.is_some_and(|end| end <= self.size),
            "a piece of {} bytes at offset {offset} reaches beyond the region of {} bytes",
            self.len,
            self.size
        );
        // JUSTIFICATION: sources and targets are pieces of the same region; one slice each
        // would need allocation.
        // SAFETY: just checked to lie within the region.
        unsafe { self.base.add(offset) }
    }
}

// SAFETY: `at` checks each piece against the region, which is borrowed mutably for the lifetime of the value.
unsafe impl Memory for Region<'_> {
    fn distance(&self) -> usize {
        self.len
    }

    fn len(&self) -> usize {
        self.len
    }

    fn source(&self, name: usize) -> *const u8 {
        self.at(name)
    }

    fn target(&mut self, name: usize) -> *mut u8 {
        self.at(name)
    }
}

/// Pieces that have memory of their own, named by their position among all that there are.
pub struct Apart<'a> {
    pieces: &'a mut [Buffer],
    len: usize,
}

impl<'a> Apart<'a> {
    /// Pieces of `len` bytes; those of another length are not to be named.
    pub fn new(pieces: &'a mut [Buffer], len: usize) -> Self {
        Self { pieces, len }
    }

    fn check(&self, name: usize) {
        let found = self.pieces[name].len();
        assert_eq!(found, self.len, "the bytes of piece {name}");
    }
}

// SAFETY: `check` compares the length of each piece that is named; all are borrowed mutably for the lifetime
// of the value, and the memory of a buffer neither moves nor changes its length.
unsafe impl Memory for Apart<'_> {
    fn distance(&self) -> usize {
        1
    }

    fn len(&self) -> usize {
        self.len
    }

    fn source(&self, name: usize) -> *const u8 {
        self.check(name);
        self.pieces[name].as_ptr()
    }

    fn target(&mut self, name: usize) -> *mut u8 {
        self.check(name);
        self.pieces[name].as_mut_ptr()
    }
}

/// Pieces in slices of their own, named by position.
pub(crate) struct Slices<'a, 'b> {
    sources: &'a [&'a [u8]],
    targets: &'a mut [&'b mut [u8]],
    len: usize,
}

impl<'a, 'b> Slices<'a, 'b> {
    /// Takes all slices, which must be equally long.
    pub(crate) fn new(sources: &'a [&'a [u8]], targets: &'a mut [&'b mut [u8]]) -> Self {
        let len = targets.first().map(|slice| slice.len());
        let len = len.or(sources.first().map(|slice| slice.len())).unwrap_or(0);
        let equal =
            sources.iter().all(|slice| slice.len() == len) && targets.iter().all(|slice| slice.len() == len);
        assert!(equal, "all pieces of a codeword have the same length");
        Self { sources, targets, len }
    }
}

// SAFETY: `new` checked that every slice has `len` bytes; the borrows last as long as the value.
unsafe impl Memory for Slices<'_, '_> {
    fn distance(&self) -> usize {
        1
    }

    fn len(&self) -> usize {
        self.len
    }

    fn source(&self, name: usize) -> *const u8 {
        self.sources[name].as_ptr()
    }

    fn target(&mut self, name: usize) -> *mut u8 {
        self.targets[name].as_mut_ptr()
    }
}

/// Panics if an output overlaps an input or another output: their names differ by less than `distance`.
pub(crate) fn assert_disjoint(distance: usize, inputs: impl Iterator<Item = usize>, outputs: &[usize]) {
    for (i, &output) in outputs.iter().enumerate() {
        let clear = outputs[..i].iter().all(|&other| output.abs_diff(other) >= distance);
        assert!(clear, "the output at {output} overlaps another output");
    }
    for input in inputs {
        let clear = outputs.iter().all(|&output| output.abs_diff(input) >= distance);
        assert!(clear, "the input at {input} overlaps an output");
    }
}
