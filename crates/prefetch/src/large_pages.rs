//! Memory in large pages, of which a processor need translate fewer addresses.

use std::ops::Range;

const LARGE_BYTES: usize = 2 << 20;
/// The largest that a page is which the kernel gives unasked.
const PAGE_BYTES: usize = 64 << 10;

/// Asks the kernel to give the room that the next `items` of a vector take, of which nothing was touched yet,
/// as pages of 2 MiB: whoever looks into it here and there waits for the translation of an address less
/// often, and whoever fills it for the kernel. Each is cleared as a whole when it is first touched, a quarter
/// of a millisecond. Kernels that have none, or are told to give none, give what they always do.
fn prefer_large_pages<T>(room: &mut Vec<T>, items: usize) {
    let items = items.min(room.capacity() - room.len());
    let start = room.as_mut_ptr().addr() + room.len() * size_of::<T>();
    let whole = whole_pages(start..start + items * size_of::<T>(), LARGE_BYTES);
    #[cfg(target_os = "linux")]
    if !whole.is_empty() {
        use rustix::mm::{Advice, madvise};
        let first_page = room.as_mut_ptr().with_addr(whole.start).cast();
        #[allow(unsafe_code, reason = "a call of the kernel on memory")]
        // SAFETY: the stretch lies within the room of a vector that is borrowed alone, and what is asked for
        // changes nothing in it. A refusal leaves it as it is.
        // JUSTIFICATION: there is no safe call for memory that a vector has already.
        let _ = unsafe { madvise(first_page, whole.len(), Advice::LinuxHugepage) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = whole;
}

/// Asks the kernel to bring all of this memory in at once, of which nothing was touched yet: whoever reads
/// here and there and then writes waits for each of its pages twice. Kernels before 5.14 do nothing.
pub fn bring_in<T>(memory: &mut [T]) {
    let start = memory.as_mut_ptr().addr();
    let whole = whole_pages(start..start + size_of_val(memory), PAGE_BYTES);
    #[cfg(target_os = "linux")]
    if !whole.is_empty() {
        use rustix::mm::{Advice, madvise};
        let first_page = memory.as_mut_ptr().with_addr(whole.start).cast();
        #[allow(unsafe_code, reason = "a call of the kernel on memory")]
        // SAFETY: the stretch lies within memory that is borrowed alone, and what is asked for changes
        // nothing in it. A refusal leaves it as it is.
        // JUSTIFICATION: there is no safe call for memory that a vector has already.
        let _ = unsafe { madvise(first_page, whole.len(), Advice::LinuxPopulateWrite) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = whole;
}

/// The pages of a size that lie within a stretch of addresses.
fn whole_pages(addresses: Range<usize>, bytes: usize) -> Range<usize> {
    addresses.start.next_multiple_of(bytes)..addresses.end / bytes * bytes
}

/// An empty vector with room for so many, for which large pages are asked.
pub fn large_room<T>(capacity: usize) -> Vec<T> {
    let mut room = Vec::with_capacity(capacity);
    prefer_large_pages(&mut room, capacity);
    room
}

#[cfg(test)]
mod tests {
    use super::{LARGE_BYTES, bring_in, large_room, prefer_large_pages, whole_pages};

    #[test]
    fn pages_that_lie_partly_outside_are_left_alone() {
        let large = LARGE_BYTES;
        assert_eq!(whole_pages(large..3 * large, large), large..3 * large);
        assert_eq!(whole_pages(large + 1..4 * large - 1, large), 2 * large..3 * large);
        for nothing in [7..7, 0..large - 1, large + 1..3 * large - 1, large - 1..large + 1] {
            assert!(whole_pages(nothing.clone(), large).is_empty(), "{nothing:?}");
        }
    }

    #[test]
    fn what_lies_in_it_stays() {
        for numbers in [0, 1, 1000, 1 << 20] {
            let mut room: Vec<usize> = large_room(numbers);
            assert!(room.is_empty() && room.capacity() >= numbers);
            room.extend(0..numbers / 2);
            prefer_large_pages(&mut room, usize::MAX);
            room.extend(numbers / 2..numbers);
            prefer_large_pages(&mut room, usize::MAX);
            assert!(room.iter().copied().eq(0..numbers));
        }
        prefer_large_pages::<()>(&mut Vec::with_capacity(7), 7);
        for numbers in [0, 1, 1000, 1 << 20] {
            let mut memory: Vec<usize> = (0..numbers).collect();
            bring_in(&mut memory);
            assert!(memory.iter().copied().eq(0..numbers));
            bring_in(&mut vec![(); numbers]);
        }
    }
}
