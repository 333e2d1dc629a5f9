//! Memory in large pages, of which a processor need translate fewer addresses.

/// Asks the kernel to give the room that the next `items` of a vector take, of which nothing was touched yet,
/// as pages of 2 MiB: whoever looks into it here and there waits for the translation of an address less
/// often, and whoever fills it for the kernel. Each is cleared as a whole when it is first touched, a quarter
/// of a millisecond. Kernels that have none, or are told to give none, give what they always do.
pub fn prefer_large_pages<T>(room: &mut Vec<T>, items: usize) {
    const LARGE_BYTES: usize = 2 << 20;
    let items = items.min(room.capacity() - room.len());
    let start = room.as_mut_ptr().addr() + room.len() * size_of::<T>();
    let end = start + items * size_of::<T>();
    let (first, end) = (start.next_multiple_of(LARGE_BYTES), end / LARGE_BYTES * LARGE_BYTES);
    #[cfg(target_os = "linux")]
    if first < end {
        use rustix::mm::{Advice, madvise};
        let first_page = room.as_mut_ptr().with_addr(first).cast();
        #[allow(unsafe_code, reason = "a call of the kernel on memory")]
        // SAFETY: the stretch lies within the room of a vector that is borrowed alone, and what is asked for
        // changes nothing in it. A refusal leaves it as it is.
        // JUSTIFICATION: there is no safe call for memory that a vector has already.
        let _ = unsafe { madvise(first_page, end - first, Advice::LinuxHugepage) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (first, end);
}

/// An empty vector with room for so many, for which large pages are asked.
pub fn large_room<T>(capacity: usize) -> Vec<T> {
    let mut room = Vec::with_capacity(capacity);
    prefer_large_pages(&mut room, capacity);
    room
}

#[cfg(test)]
mod tests {
    use super::{large_room, prefer_large_pages};

    #[test]
    fn what_lies_in_it_stays_and_small_rooms_are_left_alone() {
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
    }
}
