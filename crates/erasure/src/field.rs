//! GF(2^8) with polynomial 0x11D and generator 2; every table is built at compile time.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "shuffle and affine tables serve x86-64"))]

/// x^8 + x^4 + x^3 + x^2 + 1.
const POLYNOMIAL: u16 = 0x11D;

/// Powers of 2, twice over so that the sum of two logarithms needs no reduction; then zeros, where every sum
/// with the logarithm of 0 ends up.
static EXP: [u8; 2 * LOG_OF_ZERO + 1] = build_exp();
/// Logarithm to base 2.
static LOG: [u16; 256] = build_log();
/// Stands for the logarithm of 0: beyond every sum of two true logarithms, so that a product needs no branch.
const LOG_OF_ZERO: usize = 510;
/// For each factor, the 8x8 bit matrix that multiplies by it, as GF2P8AFFINEQB wants it: the mask of the
/// input bits that make up output bit `i` is byte `7 - i`.
pub(crate) static AFFINE: [u64; 256] = build_affine();
/// For each factor, its products with 0..16 and with 0, 16, 32, ... 240, for byte shuffles.
pub(crate) static NIBBLES: [[u8; 32]; 256] = build_nibbles();

const fn build_exp() -> [u8; 2 * LOG_OF_ZERO + 1] {
    let mut table = [0; 2 * LOG_OF_ZERO + 1];
    let mut power = 1u16;
    let mut i = 0;
    while i < LOG_OF_ZERO {
        table[i] = power as u8;
        power <<= 1;
        if power & 0x100 != 0 {
            power ^= POLYNOMIAL;
        }
        i += 1;
    }
    table
}

const fn build_log() -> [u16; 256] {
    let exp = build_exp();
    let mut table = [LOG_OF_ZERO as u16; 256];
    let mut i = 0;
    while i < 255 {
        table[exp[i] as usize] = i as u16;
        i += 1;
    }
    table
}

/// Product by shift and add, for building tables.
const fn slow_multiply(a: u8, b: u8) -> u8 {
    let (mut a, mut b, mut product) = (a as u16, b, 0u16);
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        a <<= 1;
        if a & 0x100 != 0 {
            a ^= POLYNOMIAL;
        }
        b >>= 1;
    }
    product as u8
}

const fn build_affine() -> [u64; 256] {
    let mut table = [0; 256];
    let mut factor = 0;
    while factor < 256 {
        let mut input_bit = 0;
        while input_bit < 8 {
            let product = slow_multiply(factor as u8, 1 << input_bit);
            let mut output_bit = 0;
            while output_bit < 8 {
                let set = (product >> output_bit) as u64 & 1;
                table[factor] |= set << ((7 - output_bit) * 8 + input_bit);
                output_bit += 1;
            }
            input_bit += 1;
        }
        factor += 1;
    }
    table
}

const fn build_nibbles() -> [[u8; 32]; 256] {
    let mut table = [[0; 32]; 256];
    let mut factor = 0;
    while factor < 256 {
        let mut i = 0;
        while i < 16 {
            table[factor][i] = slow_multiply(factor as u8, i as u8);
            table[factor][16 + i] = slow_multiply(factor as u8, (i as u8) << 4);
            i += 1;
        }
        factor += 1;
    }
    table
}

/// The product of two elements.
pub(crate) fn multiply(a: u8, b: u8) -> u8 {
    EXP[usize::from(LOG[usize::from(a)]) + usize::from(LOG[usize::from(b)])]
}

/// What times `a` is 1; `a` is not 0.
pub(crate) fn inverse(a: u8) -> u8 {
    assert!(a != 0, "0 has no inverse in GF(2^8)");
    EXP[255 - usize::from(LOG[usize::from(a)])]
}

/// 2 to the power of `exponent`.
pub(crate) fn power_of_two(exponent: usize) -> u8 {
    EXP[exponent % 255]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_agree_with_shift_and_add() {
        for a in 0..=255u8 {
            for b in 0..=255u8 {
                let product = slow_multiply(a, b);
                assert_eq!(multiply(a, b), product, "{a} * {b}");
                let nibbles = &NIBBLES[usize::from(a)];
                assert_eq!(
                    nibbles[usize::from(b & 15)] ^ nibbles[16 + usize::from(b >> 4)],
                    product,
                    "{a} * {b}"
                );
                let rows = AFFINE[usize::from(a)].to_be_bytes();
                let affine = (0..8).fold(0, |sum, i| sum | ((rows[i] & b).count_ones() as u8 & 1) << i);
                assert_eq!(affine, product, "{a} * {b}");
            }
        }
    }

    #[test]
    fn every_element_but_zero_has_an_inverse_and_is_a_power_of_two() {
        for a in 1..=255u8 {
            assert_eq!(multiply(a, inverse(a)), 1);
        }
        let powers: std::collections::BTreeSet<_> = (0..255).map(power_of_two).collect();
        assert_eq!(powers.len(), 255);
        assert_eq!(power_of_two(8), 0x1D);
    }
}
