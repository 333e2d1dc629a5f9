//! Words whose bits stand for things.

/// Which bits of a word are set, from 0, in order.
#[inline]
pub fn set_bits(bits: u64) -> impl Iterator<Item = usize> + Clone {
    let without_first = |bits: &u64| Some(bits & bits.wrapping_sub(1));
    let left = std::iter::successors(Some(bits), without_first).take_while(|&bits| bits != 0);
    left.map(|bits| usize::try_from(bits.trailing_zeros()).expect("63 at most"))
}

#[cfg(test)]
mod tests {
    use super::set_bits;

    #[test]
    fn they_come_in_order() {
        for (bits, places) in [(0, vec![]), (1, vec![0]), (1 << 63 | 0b1010, vec![1, 3, 63])] {
            assert_eq!(set_bits(bits).collect::<Vec<_>>(), places);
        }
        assert!(set_bits(u64::MAX).eq(0..64));
    }
}
