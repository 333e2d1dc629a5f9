//! Memory in large pages, of which a processor need translate fewer addresses.

/// Asks the kernel to give the room of a vector, of which nothing was touched yet, as pages of 2 MiB: whoever
/// looks into it here and there waits for the translation of an address less often. Each is cleared as a
/// whole when it is first touched, a quarter of a millisecond. Kernels that have none, or are told to give
/// none, give what they always do.
pub fn prefer_large_pages<T>(room: &mut Vec<T>) {
    const LARGE_BYTES: usize = 2 << 20;
    let start = room.as_mut_ptr().addr();
    let end = start + room.capacity() * size_of::<T>();
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

#[cfg(test)]
mod tests {
    use super::prefer_large_pages;

    #[test]
    fn what_lies_in_it_stays_and_small_rooms_are_left_alone() {
        for numbers in [0, 1, 1000, 1 << 20] {
            let mut room: Vec<usize> = Vec::with_capacity(numbers);
            room.extend(0..numbers / 2);
            prefer_large_pages(&mut room);
            room.extend(numbers / 2..numbers);
            prefer_large_pages(&mut room);
            assert!(room.iter().copied().eq(0..numbers));
        }
        prefer_large_pages::<()>(&mut Vec::with_capacity(7));
    }
}
