//! What the parser of command lines says is wrong, in a line: for the command line itself, and for words that
//! come from a file, a grid or another program.

use clap::Error;
use clap::error::{ContextKind, ErrorKind};
use std::error::Error as _;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

/// The line. Where the parser knows only what it could not read, it says what is expected.
pub fn in_a_line(error: &Error) -> String {
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let line = first.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    number_expected(error).unwrap_or(line)
}

/// The last number of a range without an end, as the parser prints it.
const UNBOUNDED: &str = "18446744073709551615";

/// Of a value that is no number, or none that may be.
fn number_expected(error: &Error) -> Option<String> {
    let source = (error.kind() == ErrorKind::ValueValidation).then(|| error.source())??;
    let reason = source.to_string();
    let expected = if let Some(error) = source.downcast_ref::<ParseIntError>() {
        let is_too_large = *error.kind() == IntErrorKind::PosOverflow;
        if is_too_large { "a smaller whole number" } else { "a whole number such as 8" }.to_owned()
    } else if source.is::<ParseFloatError>() {
        "a number such as 2 or 0.5".to_owned()
    } else {
        let (_, range) = reason.split_once(" is not in ")?;
        match range.split_once("..") {
            Some((first, last)) => match last.trim_start_matches('=') {
                "" | UNBOUNDED => format!("a whole number, {first} or more"),
                last => format!("a whole number from {first} to {last}"),
            },
            None => return None,
        }
    };
    let (option, found) = (error.get(ContextKind::InvalidArg)?, error.get(ContextKind::InvalidValue)?);
    Some(format!("invalid value '{found}' for '{option}': expected {expected}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::in_a_line;
    use clap::{Arg, Command, value_parser};

    fn said(word: &str) -> String {
        let command = Command::new("t")
            .no_binary_name(true)
            .arg(Arg::new("count").long("count").value_parser(value_parser!(u64)))
            .arg(Arg::new("depth").long("depth").value_parser(value_parser!(u32).range(1..=64)))
            .arg(Arg::new("times").long("times").value_parser(value_parser!(u64).range(1..)))
            .arg(Arg::new("share").long("share").value_parser(value_parser!(f64)))
            .arg(Arg::new("lines").long("lines").value_parser(value_parser!(usize)));
        in_a_line(&command.try_get_matches_from([word]).unwrap_err())
    }

    #[test]
    fn a_number_that_is_none_is_named_with_what_is_expected() {
        for (word, expected) in [
            ("--count=x", "invalid value 'x' for '--count <count>': expected a whole number such as 8"),
            ("--count=", "expected a whole number such as 8"),
            ("--count=1.5", "expected a whole number such as 8"),
            ("--lines=1k", "expected a whole number such as 8"),
            ("--count=18446744073709551616", "expected a smaller whole number"),
            ("--depth=0", "invalid value '0' for '--depth <depth>': expected a whole number from 1 to 64"),
            ("--times=0", "expected a whole number, 1 or more"),
            (
                "--share=half",
                "invalid value 'half' for '--share <share>': expected a number such as 2 or 0.5",
            ),
            ("--nothing", "unexpected argument '--nothing' found"),
        ] {
            let said = said(word);
            assert!(said.contains(expected) && !said.contains('\n'), "{word}: {said}");
        }
    }
}
