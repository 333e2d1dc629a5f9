//! Asks the processor to bring memory near that is soon to be looked at, and the kernel for memory that is
//! quickly looked at. Nothing waits for it, and nothing comes of it but time.
//!
//! A look by a load would do the same, but a processor has room for some hundred instructions behind a load
//! that waits; a request for a line is out of the way at once, so that many are under way together.
#![deny(unsafe_code)]

mod large_pages;

pub use large_pages::{bring_in, large_room};

/// Asks for the line of the cache in which a value begins. On processors of other kinds than x86-64 and ARM's
/// nothing is done.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code, reason = "an intrinsic")]
    // SAFETY: the address is that of a reference, and all that is asked for is a line of the cache.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(target_arch = "aarch64")]
    #[allow(unsafe_code, reason = "an instruction without an intrinsic in this language")]
    // SAFETY: the same; no register or memory is changed.
    unsafe {
        let place = std::ptr::from_ref(value);
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = value;
}

/// So many things ahead of where it is a loop asks for memory: about as many lines as a processor can wait
/// for at once.
const AHEAD: usize = 16;

/// Things to be looked at in turn, each with a later one, if there is one, whose memory is to be asked for.
pub fn with_later<I: Iterator + Clone>(things: I) -> impl Iterator<Item = (I::Item, Option<I::Item>)> {
    let mut later = things.clone().skip(AHEAD);
    things.map(move |thing| (thing, later.next()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_but_the_first_are_asked_for_once_before_their_turn() {
        for count in [0, 1, super::AHEAD, super::AHEAD + 1, 100] {
            let (things, later): (Vec<_>, Vec<_>) = super::with_later(0..count).unzip();
            assert!(things.into_iter().eq(0..count));
            assert!(later.iter().flatten().copied().eq(super::AHEAD.min(count)..count));
            assert!(
                later
                    .iter()
                    .zip(0..)
                    .all(|(&later, at)| later.is_none_or(|later| later == at + super::AHEAD))
            );
        }
    }

    #[test]
    fn what_is_asked_for_stays_as_it_is() {
        let words: Vec<u64> = (0..10_000).collect();
        words.iter().for_each(super::prefetch);
        super::prefetch::<[u8; 0]>(&[]);
        assert!(words.iter().zip(0..).all(|(&word, at)| word == at));
    }
}
