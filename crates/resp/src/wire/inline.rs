//! Commands typed as a line of words: quotes and escapes as Redis understands them.

use std::ops::Range;

/// Appends the words of a line to `bytes`, their places to `words`; whether the quotes were balanced.
pub(super) fn split(line: &[u8], bytes: &mut Vec<u8>, words: &mut Vec<Range<usize>>) -> bool {
    let mut rest = line;
    loop {
        while let Some((first, after)) = rest.split_first()
            && is_space(*first)
        {
            rest = after;
        }
        if rest.is_empty() {
            return true;
        }
        let start = bytes.len();
        let Some(after) = word(rest, bytes) else { return false };
        words.push(start..bytes.len());
        rest = after;
    }
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b || byte == 0
}

/// One word from the start of `rest`; what follows it, `None` if its quotes are wrong.
fn word<'a>(mut rest: &'a [u8], bytes: &mut Vec<u8>) -> Option<&'a [u8]> {
    while let Some((&first, after)) = rest.split_first() {
        match first {
            b'"' => return closed(double_quoted(after, bytes)?),
            b'\'' => return closed(single_quoted(after, bytes)?),
            _ if is_space(first) => return Some(rest),
            _ => bytes.push(first),
        }
        rest = after;
    }
    Some(rest)
}

/// A quote that ends must be followed by a blank or by nothing.
fn closed(rest: &[u8]) -> Option<&[u8]> {
    rest.first().is_none_or(|&next| is_space(next)).then_some(rest)
}

fn double_quoted<'a>(mut rest: &'a [u8], bytes: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (&first, after) = rest.split_first()?;
        rest = match (first, after) {
            (b'"', _) => return Some(after),
            (b'\\', [b'x', high, low, more @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                bytes.push(digit(*high) << 4 | digit(*low));
                more
            }
            (b'\\', [escaped, more @ ..]) => {
                bytes.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                more
            }
            (_, _) => {
                bytes.push(first);
                after
            }
        };
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], bytes: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (&first, after) = rest.split_first()?;
        rest = match (first, after) {
            (b'\'', _) => return Some(after),
            (b'\\', [b'\'', more @ ..]) => {
                bytes.push(b'\'');
                more
            }
            (_, _) => {
                bytes.push(first);
                after
            }
        };
    }
}

fn digit(hex: u8) -> u8 {
    match hex {
        b'0'..=b'9' => hex - b'0',
        b'a'..=b'f' => hex - b'a' + 10,
        _ => hex.to_ascii_lowercase().saturating_sub(b'a') + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<String>> {
        let (mut bytes, mut places) = (Vec::new(), Vec::new());
        let balanced = split(line.as_bytes(), &mut bytes, &mut places);
        let text = |place| String::from_utf8_lossy(&bytes[place]).into_owned();
        balanced.then(|| places.into_iter().map(text).collect())
    }

    #[test]
    fn lines_are_split_into_words_as_redis_does() {
        for (line, expected) in [
            ("  get   a ", Some(vec!["get", "a"])),
            ("set a \"b c\"", Some(vec!["set", "a", "b c"])),
            ("set a \"\\x41\\n\\q\\\"\"", Some(vec!["set", "a", "A\nq\""])),
            ("set a 'b\\'c\\n'", Some(vec!["set", "a", "b'c\\n"])),
            ("echo \"\"", Some(vec!["echo", ""])),
            ("", Some(vec![])),
            ("echo \"a\"b", None),
            ("echo \"a", None),
            ("echo 'a", None),
            ("echo \"\\", None),
        ] {
            let expected = expected.map(|words| words.into_iter().map(str::to_owned).collect());
            assert_eq!(words(line), expected, "{line:?}");
        }
    }
}
