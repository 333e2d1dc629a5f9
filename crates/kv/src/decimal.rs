//! Decimal numbers as clients write them, in the protocol and in values that are added to.

/// A number without sign, without zeros before it. `None` for anything else.
pub fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || (text.len() > 1 && text[0] == b'0') {
        return None;
    }
    text.iter().try_fold(0_u64, |value, &digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// A number with a sign where it is negative, as strict as Redis is: no blanks, no plus, no zeros before it.
pub fn number(text: &[u8]) -> Option<i64> {
    match text.split_first() {
        Some((b'-', digits)) => {
            let value = decimal(digits).filter(|&value| value > 0)?;
            0_i64.checked_sub_unsigned(value)
        }
        Some(_) | None => i64::try_from(decimal(text)?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_redis_reads_them() {
        for (text, value) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("", None),
            ("-", None),
            ("-0", None),
            ("01", None),
            ("+1", None),
            (" 1", None),
            ("1 ", None),
            ("1e3", None),
        ] {
            assert_eq!(number(text.as_bytes()), value, "{text:?}");
        }
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(decimal(b"18446744073709551616"), None);
    }
}
