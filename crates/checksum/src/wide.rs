//! A long message shortened to one of the same CRC-64/NVME, 256 bits at a time.
//!
//! A CRC is the remainder of a polynomial, so what stands `d` bits before the end may be multiplied by `x^d`,
//! reduced, and added behind (Gopal et al., "Fast CRC Computation for Generic Polynomials Using
//! PCLMULQDQ Instruction", Intel 2009). Four registers of two lanes each walk over the message like that,
//! 128 bytes at a time; what they hold in the end is a message of 128 bytes, and what is left of the long one
//! stands behind it as it was.

/// Bytes that are folded at a time, and what is left of them.
const SHORT: usize = 128;

/// A message that is short.
pub(crate) struct Short {
    bytes: [u8; 2 * SHORT],
    length: usize,
}

impl Short {
    /// What was folded, and the less than [`SHORT`] bytes behind it.
    #[cfg(target_arch = "x86_64")]
    fn new(folded: [u8; SHORT], rest: &[u8]) -> Self {
        let mut short = Self { bytes: [0; 2 * SHORT], length: SHORT + rest.len() };
        short.bytes[..SHORT].copy_from_slice(&folded);
        short.bytes[SHORT..short.length].copy_from_slice(rest);
        short
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Shorter ones are not worth it.
#[cfg(target_arch = "x86_64")]
const WORTH_IT: usize = 4 * SHORT;

/// A message of the same checksum, if this CPU makes that the faster way.
#[cfg(target_arch = "x86_64")]
pub(crate) fn shorten(bytes: &[u8]) -> Option<Short> {
    (bytes.len() >= WORTH_IT && x86::is_faster()).then(|| {
        let (pieces, rest) = bytes.as_chunks::<SHORT>();
        // JUSTIFICATION: carry-less products of 256 bits need intrinsics, and the library has those of 128
        // and of 512 bits.
        // SAFETY: `is_faster` has found the instructions.
        #[allow(unsafe_code, reason = "intrinsics that were looked for")]
        let folded = unsafe { x86::fold(pieces) };
        Short::new(folded, rest)
    })
}

/// A message of the same checksum, if this CPU makes that the faster way.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn shorten(_: &[u8]) -> Option<Short> {
    None
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::SHORT;
    use std::arch::is_x86_feature_detected as has;
    use std::arch::x86_64::{
        __m256i, _mm256_clmulepi64_epi128, _mm256_loadu_si256, _mm256_set_epi64x, _mm256_storeu_si256,
        _mm256_xor_si256,
    };

    const LANES: usize = SHORT / 32;
    const SHORT_BITS: u32 = 1024;
    const _: () = assert!(SHORT * 8 == 1024);

    /// The polynomial without its highest term, the bit of `x^63` last.
    const NVME: u64 = 0x9a6c_9329_ac4b_c9b5;

    /// `x^exponent` reduced, in the same order of bits.
    const fn power(exponent: u32) -> u64 {
        let mut value = 1 << 63;
        let mut i = 0;
        while i < exponent {
            value = (value >> 1) ^ if value & 1 == 1 { NVME } else { 0 };
            i += 1;
        }
        value
    }

    /// What both halves of a lane are multiplied by to stand 128 bytes later, the earlier half first. The
    /// product of two values in this order of bits comes out one bit too high.
    const FACTORS: [u64; 2] = [power(SHORT_BITS + 63), power(SHORT_BITS - 1)];

    /// Whether the library has narrower instructions only.
    pub(super) fn is_faster() -> bool {
        has!("vpclmulqdq") && has!("avx2") && !has!("avx512vl")
    }

    /// See the module's documentation. There is one piece at least.
    #[target_feature(enable = "avx2,vpclmulqdq")]
    pub(super) fn fold(pieces: &[[u8; SHORT]]) -> [u8; SHORT] {
        let factors = _mm256_set_epi64x(
            FACTORS[1].cast_signed(),
            FACTORS[0].cast_signed(),
            FACTORS[1].cast_signed(),
            FACTORS[0].cast_signed(),
        );
        // The register begins as ones, which is as if these were added to the first bytes. For the library it
        // will do so again.
        let ones = _mm256_set_epi64x(0, 0, 0, -1);
        let (first, rest) = pieces.split_first().expect("a message that is not empty");
        let mut state = load(first);
        state[0] = _mm256_xor_si256(state[0], ones);
        for piece in rest {
            for (held, next) in state.iter_mut().zip(load(piece)) {
                let early = _mm256_clmulepi64_epi128::<0x00>(*held, factors);
                let late = _mm256_clmulepi64_epi128::<0x11>(*held, factors);
                *held = _mm256_xor_si256(_mm256_xor_si256(early, late), next);
            }
        }
        state[0] = _mm256_xor_si256(state[0], ones);
        store(state)
    }

    #[target_feature(enable = "avx2")]
    #[allow(unsafe_code, reason = "loads into registers")]
    fn load(piece: &[u8; SHORT]) -> [__m256i; LANES] {
        let at = piece.as_ptr().cast::<__m256i>();
        // JUSTIFICATION: a load through a type of bytes would be left to the optimiser.
        // SAFETY: four times 32 bytes of the piece's 128; no alignment is needed.
        unsafe {
            [
                _mm256_loadu_si256(at),
                _mm256_loadu_si256(at.add(1)),
                _mm256_loadu_si256(at.add(2)),
                _mm256_loadu_si256(at.add(3)),
            ]
        }
    }

    #[target_feature(enable = "avx2")]
    #[allow(unsafe_code, reason = "stores from registers")]
    fn store(state: [__m256i; LANES]) -> [u8; SHORT] {
        let mut short = [0; SHORT];
        for (lane, value) in state.into_iter().enumerate() {
            // JUSTIFICATION: as above.
            // SAFETY: four times 32 bytes of 128; no alignment is needed.
            unsafe { _mm256_storeu_si256(short.as_mut_ptr().add(32 * lane).cast(), value) }
        }
        short
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::wide::Short;

        #[test]
        fn what_is_left_has_the_same_checksum() {
            if !(has!("vpclmulqdq") && has!("avx2")) {
                return eprintln!("not tested: this CPU has no 256-bit carry-less products");
            }
            let bytes: Vec<u8> = (0..65 * SHORT).map(|i| (i * i / 7 + i / 256) as u8).collect();
            for count in (1..=64).map(|pieces| pieces * SHORT) {
                for (from, more) in [(0, 0), (1, 0), (31, 1), (0, 17), (1, 96), (1, SHORT - 1)] {
                    let message = &bytes[from..][..count + more];
                    let (pieces, rest) = message.as_chunks::<SHORT>();
                    // SAFETY: the instructions were looked for.
                    #[allow(unsafe_code, reason = "intrinsics that were looked for")]
                    let short = Short::new(unsafe { fold(pieces) }, rest);
                    let (long, short) = (crc_fast::crc64_nvme(message), crc_fast::crc64_nvme(short.bytes()));
                    assert_eq!(short, long, "{count} and {more} bytes");
                }
            }
        }
    }
}
