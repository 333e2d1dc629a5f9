//! Anonymous memory of one in-memory device: page-aligned, zero, resident only where it was touched.
//!
//! Also the home of [`stream_copy`], the copy that does not pull its destination into the cache.
#![allow(unsafe_code, reason = "mapped memory, and stores that bypass the cache")]

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::io;
use std::ptr::NonNull;

const PAGE_BYTES: usize = 4096;

/// An anonymous mapping, dropped with the value.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping is private memory owned by this value alone, as a `Box<[u8]>` would be.
// JUSTIFICATION: the raw pointer takes the automatic implementations away.
unsafe impl Send for Mapping {}
// SAFETY: as above; shared access hands out shared slices only.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `length` zero bytes; fails where the address space or the overcommit limit says no.
    ///
    /// JUSTIFICATION: `vec![0; length]` aborts the process when memory is refused, and cannot
    /// give pages back.
    pub(crate) fn new(length: usize) -> io::Result<Self> {
        if length == 0 {
            return Ok(Self { start: NonNull::dangling(), length });
        }
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        let start = NonNull::new(start.cast::<u8>()).expect("mmap never returns the null page");
        Ok(Self { start, length })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `start..start + length` is mapped readable until drop, and zero bytes are valid `u8`s; for
        // length 0 a dangling pointer is allowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, mapped writable, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }

    /// Makes all of it resident, what was not touched yet in large pages where the kernel has such.
    pub(crate) fn make_resident(&mut self) {
        if self.length > 0 {
            // SAFETY: advice about private memory of its own changes nothing in it; a refusal leaves it as it
            // is.
            // JUSTIFICATION: there is no safe call for memory that is mapped. Chunks are read here and there,
            // and asking for what is read soon waits for the translation of its address: in small pages
            // random reads were 1.0 to 1.2 times as fast for that instead of 1.3.
            let _ = unsafe { madvise(self.start.as_ptr().cast(), self.length, Advice::LinuxHugepage) };
        }
        for page in self.bytes_mut().chunks_mut(PAGE_BYTES) {
            // Writing back what is there makes the page resident.
            page[0] = std::hint::black_box(page[0]);
        }
    }

    /// Gives the pages that lie wholly within `offset..offset + length` back; they read as zeros afterwards.
    pub(crate) fn release(&mut self, offset: usize, length: usize) {
        let first = offset.next_multiple_of(PAGE_BYTES);
        let end = offset.saturating_add(length).min(self.length) / PAGE_BYTES * PAGE_BYTES;
        if first >= end {
            return;
        }
        let start = self.bytes_mut()[first..end].as_mut_ptr();
        // SAFETY: the range lies within this private anonymous mapping, exclusively borrowed; its pages
        // become zero, which is as if `fill(0)` had been called. A failure (larger pages, locked memory)
        // leaves the content: the caller asked for a hint.
        let _ = unsafe { madvise(start.cast(), end - first, Advice::LinuxDontNeed) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: mapped by `new` with this start and length, and no slice of it outlives `self`.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
        }
    }
}

/// Copies `from` to `to` (equal lengths) with stores that bypass the cache where the processor has them.
///
/// A plain copy first reads every destination line from memory; a block written to a device is
/// seldom read soon. This thread sees what it stored; [`stream_end`] comes before any other may look.
#[cfg(target_arch = "x86_64")]
pub(crate) fn stream_copy(to: &mut [u8], from: &[u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    const LINE_BYTES: usize = 64;
    assert_eq!(to.len(), from.len(), "a copy has one length");
    if !to.as_ptr().addr().is_multiple_of(LINE_BYTES) || !to.len().is_multiple_of(LINE_BYTES) {
        to.copy_from_slice(from);
        return;
    }
    let lines = to.chunks_exact_mut(LINE_BYTES).zip(from.chunks_exact(LINE_BYTES));
    for (to, from) in lines {
        let (to, from) = (to.as_mut_ptr().cast::<__m128i>(), from.as_ptr().cast::<__m128i>());
        // SAFETY: both pointers cover 64 bytes (four vectors); `to` is 64-byte aligned, as streaming stores
        // need, since the slice starts aligned and the step is 64. SSE2 belongs to the x86-64 baseline.
        // JUSTIFICATION: there is no safe streaming store; random 4 KiB writes took 390 ns against
        // 444 ns with a plain copy, sequential ones 159 ns against 205 ns (device_bench, best of
        // four interleaved rounds).
        unsafe {
            let line = [
                _mm_loadu_si128(from),
                _mm_loadu_si128(from.add(1)),
                _mm_loadu_si128(from.add(2)),
                _mm_loadu_si128(from.add(3)),
            ];
            _mm_stream_si128(to, line[0]);
            _mm_stream_si128(to.add(1), line[1]);
            _mm_stream_si128(to.add(2), line[2]);
            _mm_stream_si128(to.add(3), line[3]);
        }
    }
}

/// Orders all [`stream_copy`]s so far before whatever follows. It waits until memory has taken them: after
/// each 4 KiB that cost a third of the copy.
#[cfg(target_arch = "x86_64")]
pub(crate) fn stream_end() {
    // SAFETY: a fence has no precondition.
    unsafe { std::arch::x86_64::_mm_sfence() };
}

/// Has the processor begin to fetch what is read soon, from the start of `bytes`: into its second level. For
/// the first it has room for so few requests at once that it would wait for each of them here, and what was
/// gained were lost (`bench --device memory`, random reads, parity commit: 0.95 times instead of 1.2 to 1.3).
#[cfg(target_arch = "x86_64")]
pub(crate) fn fetch_ahead(bytes: &[u8]) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
    /// As many as belong to the smallest chunk: the processor, which goes on by itself when it has seen some
    /// in order, seldom goes further than a page, and is late with each of its lines.
    const LINES: usize = 64;
    for line in bytes.chunks(64).take(LINES) {
        // SAFETY: a hint about an address never faults, and this one is that of a slice.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
}

/// Other processors are left to find out.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn fetch_ahead(_bytes: &[u8]) {}

/// Plain copies need no end.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn stream_end() {}

/// Copies `from` to `to` (equal lengths).
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn stream_copy(to: &mut [u8], from: &[u8]) {
    to.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_zero_and_released_pages_are_zero_again() {
        let mut mapping = Mapping::new(1 << 20).expect("1 MiB");
        assert!(mapping.bytes().iter().all(|&byte| byte == 0));
        mapping.bytes_mut().fill(7);
        mapping.release(1, 3 * 4096);
        let bytes = mapping.bytes();
        assert!(bytes[..4096].iter().all(|&byte| byte == 7), "a page that is only partly released stays");
        assert!(bytes[4096..3 * 4096].iter().all(|&byte| byte == 0));
        assert!(bytes[3 * 4096..].iter().all(|&byte| byte == 7));
    }

    #[test]
    fn what_is_made_resident_stays_as_it_is_and_can_be_released() {
        const LARGE_BYTES: usize = 2 << 20;
        let mut mapping = Mapping::new(3 * LARGE_BYTES + 5).expect("6 MiB");
        mapping.bytes_mut()[LARGE_BYTES..][..4096].fill(7);
        mapping.make_resident();
        assert!(mapping.bytes()[LARGE_BYTES..][..4096].iter().all(|&byte| byte == 7));
        assert_eq!(mapping.bytes().iter().filter(|&&byte| byte != 0).count(), 4096);
        mapping.bytes_mut().fill(9);
        mapping.release(LARGE_BYTES / 2, 2 * LARGE_BYTES);
        assert_eq!(mapping.bytes().iter().filter(|&&byte| byte == 0).count(), 2 * LARGE_BYTES);
        Mapping::new(0).expect("empty").make_resident();
    }

    #[test]
    fn refuses_what_cannot_be_mapped() {
        assert!(Mapping::new(usize::MAX / 2).is_err());
        assert!(Mapping::new(0).expect("empty").bytes().is_empty());
    }

    #[test]
    fn stream_copy_copies_aligned_and_odd_ranges() {
        let from: Vec<u8> = (0..8192u32).map(|i| (i * 7 % 251) as u8).collect();
        let mut mapping = Mapping::new(16384).expect("16 KiB");
        for (start, length) in [(0, 4096), (64, 128), (4096, 8192), (1, 4096), (64, 100), (0, 0)] {
            let to = &mut mapping.bytes_mut()[start..start + length];
            to.fill(0);
            stream_copy(to, &from[..length]);
            stream_end();
            assert_eq!(to, &from[..length], "{length} bytes to {start}");
        }
    }
}
