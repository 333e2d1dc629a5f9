//! Patterns of names as `SCAN MATCH` and `KEYS` have them: `*`, `?`, `[a-c]`, `[^a]`, `\` before what
//! stands for itself.
//!
//! A star that does not fit is tried further on, but never two of them: what the last one leaves open, an
//! earlier one cannot mend. So the time is the pattern's length times the name's at most, where Redis's own
//! matcher once took exponential time.

/// Whether a name matches a pattern.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut index) = (0, 0);
    // Where the last star was, and how far it reached.
    let mut star: Option<(usize, usize)> = None;
    while index < name.len() {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            star = Some((at, index));
            continue;
        }
        match one(&pattern[at..], name[index]) {
            Some(length) => (at, index) = (at + length, index + 1),
            None => match &mut star {
                None => return false,
                Some((after, reach)) => {
                    *reach += 1;
                    (at, index) = (*after, *reach);
                }
            },
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

/// How much of a pattern that does not begin with a star stands for this byte; `None` if it does not.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'[', class @ ..] => {
            let (holds, length) = class_holds(class, byte);
            holds.then_some(length + 1)
        }
        [b'\\', literal, ..] => (*literal == byte).then_some(2),
        [literal, ..] => (*literal == byte).then_some(1),
    }
}

/// Whether a class, which begins behind its bracket, holds a byte, and how long it is. One that does not end
/// goes to the end of the pattern, as with Redis.
fn class_holds(class: &[u8], byte: u8) -> (bool, usize) {
    let negated = class.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut found = false;
    loop {
        at += match &class[at..] {
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', literal, ..] => {
                found |= *literal == byte;
                2
            }
            [first, b'-', last, ..] => {
                found |= (first.min(last)..=first.max(last)).contains(&&byte);
                3
            }
            [literal, ..] => {
                found |= *literal == byte;
                1
            }
        };
    }
    (found != negated, at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_mean_what_they_mean_to_redis() {
        for (pattern, name) in [
            ("*", ""),
            ("*", "anything"),
            ("a*c", "abbc"),
            ("a*b*c", "aXbYbZc"),
            ("h?llo", "hello"),
            ("h[ae]llo", "hallo"),
            ("h[^e]llo", "hallo"),
            ("h[a-b]llo", "hbllo"),
            ("h[b-a]llo", "hallo"),
            ("h\\*llo", "h*llo"),
            ("[\\]]", "]"),
            ("[a", "a"),
            ("a**", "a"),
            ("\\", "\\"),
            ("[]", ""),
        ] {
            let expected = pattern != "[]";
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
        for (pattern, name) in [
            ("", "a"),
            ("a", ""),
            ("h?llo", "hllo"),
            ("h[^e]llo", "hello"),
            ("a*b", "ac"),
            ("[^a]", "a"),
            ("*b", "a"),
        ] {
            assert!(!matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern = "a*".repeat(60) + "b";
        assert!(!matches(pattern.as_bytes(), "a".repeat(5000).as_bytes()));
    }

    /// The definition: slow and obvious.
    fn slowly(pattern: &[u8], name: &[u8]) -> bool {
        match pattern {
            [] => name.is_empty(),
            [b'*', rest @ ..] => (0..=name.len()).any(|skip| slowly(rest, &name[skip..])),
            _ => name.split_first().is_some_and(|(&first, after)| {
                one(pattern, first).is_some_and(|length| slowly(&pattern[length..], after))
            }),
        }
    }

    proptest! {
        #[test]
        fn the_quick_way_agrees_with_the_slow_one(pattern in "[ab*?\\[\\]^\\\\-]{0,8}", name in "[ab\\-\\]]{0,8}") {
            prop_assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), slowly(pattern.as_bytes(), name.as_bytes()));
        }

        #[test]
        fn no_pattern_panics(pattern: Vec<u8>, name: Vec<u8>) {
            let _ = matches(&pattern, &name);
        }
    }
}
