//! The hash of a key: SipHash-1-3 with 128 bits of result and a secret of the store, so that nobody who
//! chooses keys can choose where they collide.

use crate::numbers::{low, narrow, wide};

/// The secret with which a store hashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Secret(pub [u64; 2]);

/// The hash of a key: 64 bits place it in the index, all 96 tell keys apart where a key itself is not at
/// hand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct KeyHash {
    pub(crate) main: u64,
    pub(crate) more: u32,
}

struct State([u64; 4]);

impl State {
    #[inline]
    fn round(&mut self) {
        let [a, b, c, d] = &mut self.0;
        *a = a.wrapping_add(*b);
        *c = c.wrapping_add(*d);
        *b = b.rotate_left(13) ^ *a;
        *d = d.rotate_left(16) ^ *c;
        *a = a.rotate_left(32);
        *c = c.wrapping_add(*b);
        *a = a.wrapping_add(*d);
        *b = b.rotate_left(17) ^ *c;
        *d = d.rotate_left(21) ^ *a;
        *c = c.rotate_left(32);
    }

    #[inline]
    fn take(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.0[0] ^= word;
    }

    fn finish(&mut self) -> u64 {
        for _ in 0..3 {
            self.round();
        }
        self.0.iter().fold(0, |all, word| all ^ word)
    }
}

/// Both halves of SipHash-1-3 with 128 bits (Aumasson, Bernstein 2012).
fn sip128(secret: Secret, bytes: &[u8]) -> [u64; 2] {
    let [k0, k1] = secret.0;
    let mut state = State([
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d ^ 0xee,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ]);
    let mut words = bytes.chunks_exact(8);
    for word in words.by_ref() {
        state.take(u64::from_le_bytes(word.try_into().expect("eight bytes")));
    }
    let mut last = [0; 8];
    let rest = words.remainder();
    last[..rest.len()].copy_from_slice(rest);
    last[7] = u8::try_from(narrow(wide(bytes.len()) & 0xff)).expect("eight bits");
    state.take(u64::from_le_bytes(last));
    state.0[2] ^= 0xee;
    let first = state.finish();
    state.0[1] ^= 0xdd;
    [first, state.finish()]
}

impl KeyHash {
    /// The hash of a key.
    #[inline]
    pub(crate) fn of(secret: Secret, key: &[u8]) -> Self {
        let [main, more] = sip128(secret, key);
        Self { main, more: low(more) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same state machine with two rounds for each word and four at the end, as the authors publish
    /// vectors for.
    fn sip24(bytes: &[u8]) -> u64 {
        let (k0, k1) = (0x0706_0504_0302_0100_u64, 0x0f0e_0d0c_0b0a_0908_u64);
        let mut state = State([
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ]);
        let mut last = [0; 8];
        last[..bytes.len()].copy_from_slice(bytes);
        last[7] = u8::try_from(bytes.len()).expect("short");
        let word = u64::from_le_bytes(last);
        state.0[3] ^= word;
        state.round();
        state.round();
        state.0[0] ^= word;
        state.0[2] ^= 0xff;
        state.round();
        state.finish()
    }

    #[test]
    fn the_round_is_that_of_the_authors() {
        assert_eq!(sip24(&[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(sip24(&[0]), 0x74f8_39c5_93dc_67fd);
    }

    #[test]
    fn keys_secrets_and_lengths_give_other_hashes() {
        let secret = Secret([1, 2]);
        let mut seen = std::collections::HashSet::new();
        for length in 0..=64 {
            for byte in 0..8 {
                assert!(seen.insert(sip128(secret, &vec![byte; length])) || length == 0);
            }
        }
        assert_ne!(KeyHash::of(secret, b"key"), KeyHash::of(Secret([1, 3]), b"key"));
    }
}
