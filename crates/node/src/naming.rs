//! Names of arrays: what they may be, and how an array gets another one.

use crate::error::Error;
use crate::registry::{Trace, traces};
use format::{ArrayUuid, NAME_BYTES_MAX};

/// What is wrong with a name, if anything. Paths and units are made of names, and whoever looks for an array
/// gives its name or its UUID.
pub fn check_name(name: &str) -> Result<(), String> {
    let found = |what: &str| Err(format!("found {name:?}, expected {what}"));
    if name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return found(&format!("at most {NAME_BYTES_MAX} bytes without control characters"));
    }
    if name.contains('/') || name.starts_with(['.', '-']) {
        return found("a name without a slash that begins neither with a dot nor with a hyphen");
    }
    if name.parse::<ArrayUuid>().is_ok() {
        return found("a name that is not a UUID");
    }
    Ok(())
}

/// Refuses a new name that is none, or that another array has that is served here.
pub fn check_new_name(array: ArrayUuid, name: &str) -> Result<(), Error> {
    check_name(name).map_err(Error::Name)?;
    if name.is_empty() {
        return Ok(());
    }
    let others = traces().into_iter().filter(|(other, _)| *other != array);
    for (other, trace) in others {
        let has_it = match trace {
            Trace::Live(mut client) => client.status().is_ok_and(|status| status.name == name),
            Trace::Dead(record) => record.name == name,
            Trace::Passing | Trace::Unreachable(_) => false,
        };
        if has_it {
            return Err(Error::Name(format!("found {name:?}, which array {other} is called already")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_name;

    #[test]
    fn names_that_lead_elsewhere_are_none() {
        for good in ["", "tank", "tank 2", "größe", &"n".repeat(64)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        let long = "n".repeat(65);
        for bad in ["a/b", "..", ".hidden", "-x", "a\nb", &long, "00112233-4455-6677-8899-aabbccddeeff"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
