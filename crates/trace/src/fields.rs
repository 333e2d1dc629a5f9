//! Numbers and separators of trace lines, on bytes: a trace need not be valid UTF-8.

use crate::LineFault;
use crate::error::excerpt;

/// The fields asked for, and what follows the comma after them, if there is one.
type FieldsAndRest<'a, const N: usize> = ([&'a [u8]; N], Option<&'a [u8]>);

/// The first `N` comma-separated fields and whatever follows the comma after them; `None` if there are fewer.
#[inline]
pub(crate) fn first_fields<const N: usize>(line: &[u8]) -> Option<FieldsAndRest<'_, N>> {
    let mut rest = Some(line);
    let mut fields: [&[u8]; N] = [&[]; N];
    for field in &mut fields {
        let text = rest?;
        // Fields are short: a plain loop beats a vectorised search here.
        (*field, rest) = match text.iter().position(|&byte| byte == b',') {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
    }
    Some((fields, rest))
}

/// Exactly `N` comma-separated fields.
#[inline]
pub(crate) fn exact_fields<const N: usize>(line: &[u8]) -> Option<[&[u8]; N]> {
    first_fields(line).filter(|(_, rest)| rest.is_none()).map(|(fields, _)| fields)
}

/// Splits at runs of blanks and tabs; never yields an empty word.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty())
}

fn digits(text: &[u8]) -> Option<u64> {
    let (&first, rest) = text.split_first()?;
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    let mut value = digit(first)?;
    if rest.len() < 19 {
        // At most 19 digits: below 10^19, which fits.
        for &byte in rest {
            let next = byte.wrapping_sub(b'0');
            if next > 9 {
                return None;
            }
            value = value * 10 + u64::from(next);
        }
    } else {
        for &byte in rest {
            value = value.checked_mul(10)?.checked_add(digit(byte)?)?;
        }
    }
    Some(value)
}

/// A decimal number below 2^64.
pub(crate) fn number(field: &'static str, text: &[u8]) -> Result<u64, LineFault> {
    digits(text).or_else(|| digits(text.trim_ascii())).ok_or_else(|| LineFault::Number {
        field,
        found: excerpt(text),
        expected: "a decimal number below 2^64",
    })
}

/// A decimal number up to `max`.
pub(crate) fn small(
    field: &'static str,
    text: &[u8],
    max: u32,
    expected: &'static str,
) -> Result<u32, LineFault> {
    let value = number(field, text)?;
    u32::try_from(value).ok().filter(|&value| value <= max).ok_or_else(|| LineFault::Number {
        field,
        found: excerpt(text),
        expected,
    })
}

/// A number of 512-byte sectors, in bytes.
pub(crate) fn sectors(field: &'static str, text: &[u8]) -> Result<u64, LineFault> {
    number(field, text)?.checked_mul(block::SECTOR_BYTES).ok_or_else(|| LineFault::Number {
        field,
        found: excerpt(text),
        expected: "a sector below 2^55",
    })
}

/// Seconds with an optional decimal fraction, in whole microseconds (what is finer is cut off).
pub(crate) fn seconds_us(field: &'static str, text: &[u8]) -> Result<u64, LineFault> {
    let fault = || LineFault::Number { field, found: excerpt(text), expected: "seconds, such as 12.345678" };
    let text_trimmed = text.trim_ascii();
    let (whole, fraction) = match memchr::memchr(b'.', text_trimmed) {
        Some(at) => (&text_trimmed[..at], &text_trimmed[at + 1..]),
        None => (text_trimmed, &[][..]),
    };
    let whole = digits(whole).ok_or_else(fault)?;
    if !fraction.iter().all(u8::is_ascii_digit) {
        return Err(fault());
    }
    let mut fraction_us = 0u64;
    for place in 0..6 {
        fraction_us = fraction_us * 10 + fraction.get(place).map_or(0, |&byte| u64::from(byte - b'0'));
    }
    whole.checked_mul(1_000_000).and_then(|us| us.checked_add(fraction_us)).ok_or_else(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_that_fit() {
        let parse = |text: &str| number("n", text.as_bytes()).ok();
        assert_eq!(parse("0"), Some(0));
        assert_eq!(parse(" 42 "), Some(42));
        assert_eq!(parse("18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse("00000000000000000000000000000007"), Some(7));
        for bad in [
            "",
            " ",
            "-1",
            "+1",
            "1e3",
            "0x10",
            "1.5",
            "18446744073709551616",
            "99999999999999999999999",
            "1\0",
        ] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn seconds_keep_six_places() {
        let parse = |text: &str| seconds_us("t", text.as_bytes()).ok();
        assert_eq!(parse("0.026214"), Some(26_214));
        assert_eq!(parse("1.5"), Some(1_500_000));
        assert_eq!(parse("7"), Some(7_000_000));
        assert_eq!(parse("3."), Some(3_000_000));
        assert_eq!(parse("0.0000019"), Some(1));
        for bad in ["", ".5", "1.2.3", "1,5", "18446744073710.0", "-0.1", "1.x"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }
}
