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

/// The digits in front of the point, as a number, and the first `places` behind it; what is finer is cut off.
fn decimal(text: &[u8], places: usize) -> Option<(u64, u64)> {
    let text = text.trim_ascii();
    let (whole, fraction) = match memchr::memchr(b'.', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[][..]),
    };
    let whole = digits(whole)?;
    if !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |place: usize| fraction.get(place).map_or(0, |&byte| u64::from(byte - b'0'));
    Some((whole, (0..places).fold(0, |parts, place| parts * 10 + digit(place))))
}

/// Seconds with an optional decimal fraction, in whole microseconds (what is finer is cut off).
pub(crate) fn seconds_us(field: &'static str, text: &[u8]) -> Result<u64, LineFault> {
    let fault = || LineFault::Number { field, found: excerpt(text), expected: "seconds, such as 12.345678" };
    let (whole, parts) = decimal(text, 6).ok_or_else(fault)?;
    whole.checked_mul(1_000_000).and_then(|us| us.checked_add(parts)).ok_or_else(fault)
}

/// A count of a unit of at most a second, with an optional decimal fraction, in whole nanoseconds. Seconds
/// since 1970 fit.
pub(crate) fn units_ns(field: &'static str, text: &[u8], unit_ns: u64) -> Result<u64, LineFault> {
    let fault = || LineFault::Number { field, found: excerpt(text), expected: "a time below 2^64 ns" };
    let (whole, parts) = decimal(text, 9).ok_or_else(fault)?;
    let parts_ns = parts.checked_mul(unit_ns).ok_or_else(fault)? / 1_000_000_000;
    whole.checked_mul(unit_ns).and_then(|ns| ns.checked_add(parts_ns)).ok_or_else(fault)
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
        let of_unit = |text: &str, unit_ns| units_ns("t", text.as_bytes(), unit_ns).ok();
        assert_eq!(of_unit("1700000000.123456789", 1_000_000_000), Some(1_700_000_000_123_456_789));
        assert_eq!(of_unit("1700000000123.25", 1_000_000), Some(1_700_000_000_123_250_000));
        assert_eq!(of_unit("1700000000123456.7", 1000), Some(1_700_000_000_123_456_700));
        assert_eq!((of_unit("18446744074", 1_000_000_000), of_unit("1.x", 1000)), (None, None));
        for bad in ["", ".5", "1.2.3", "1,5", "18446744073710.0", "-0.1", "1.x"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }
}
