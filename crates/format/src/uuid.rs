//! The identity of an array, carried by each of its blocks.

use crate::ParseError;
use std::fmt;
use std::str::FromStr;

/// 128 random bits that tell one array's blocks from another's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrayUuid([u8; 16]);

impl ArrayUuid {
    /// Wraps 16 bytes, in the order in which they are stored and printed.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes.
    pub const fn bytes(&self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for ArrayUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ArrayUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ArrayUuid {
    type Err = ParseError;

    /// Reads 8-4-4-4-12 hexadecimal digits, of either case.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refuse = || ParseError::Uuid { found: text.to_owned() };
        if text.len() != 36 {
            return Err(refuse());
        }
        let mut bytes = [0u8; 16];
        let mut digit_count = 0;
        for (i, c) in text.bytes().enumerate() {
            if matches!(i, 8 | 13 | 18 | 23) {
                if c != b'-' {
                    return Err(refuse());
                }
                continue;
            }
            let digit = char::from(c).to_digit(16).and_then(|d| u8::try_from(d).ok()).ok_or_else(refuse)?;
            bytes[digit_count / 2] = bytes[digit_count / 2] << 4 | digit;
            digit_count += 1;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips_and_refuses_everything_else() {
        let text = "00112233-4455-6677-8899-aabbccddeeff";
        let uuid: ArrayUuid = text.parse().unwrap();
        assert_eq!(uuid.bytes()[..3], [0x00, 0x11, 0x22]);
        assert_eq!(uuid.to_string(), text);
        assert_eq!(text.to_uppercase().parse(), Ok(uuid));
        for bad in [
            "",
            "00112233445566778899aabbccddeeff",
            "00112233-4455-6677-8899-aabbccddeef",
            "00112233-4455-6677-8899-aabbccddeefg",
            "0011223--4455-6677-8899-aabbccddeeff",
            "00112233-4455-6677-8899-aabbccddeef\u{e9}",
            "001122334-455-6677-8899-aabbccddeeff",
        ] {
            assert_eq!(bad.parse::<ArrayUuid>(), Err(ParseError::Uuid { found: bad.to_owned() }));
        }
    }
}
