//! Limits that are not kept everywhere yet: `ratchet.txt` says how much each crate may be over, and
//! may only shrink.

use std::collections::BTreeMap;

/// Who has no line of its own is counted together under this name.
const REST: &str = "*";

/// What is allowed, by measure and crate.
#[derive(Debug)]
pub struct Ratchet {
    allowed: BTreeMap<(String, String), usize>,
}

impl Ratchet {
    /// Reads lines of measure, crate and number; `#` begins a comment.
    ///
    /// # Errors
    /// The first line that is none of that.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut allowed = BTreeMap::new();
        for line in text.lines().map(|line| line.split('#').next().unwrap_or("").trim()) {
            if line.is_empty() {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let [measure, krate, count] = words[..] else { return Err(line.to_owned()) };
            let count = count.parse().map_err(|_| line.to_owned())?;
            allowed.insert((measure.to_owned(), krate.to_owned()), count);
        }
        Ok(Self { allowed })
    }

    /// Compares what was found, a crate and a place each, with what is allowed; names who is over, and where.
    ///
    /// # Errors
    /// A text for whoever made the number grow.
    pub fn check(&self, measure: &str, found: &[(String, String)]) -> Result<(), String> {
        let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (krate, place) in found {
            let own = self.allowed.contains_key(&(measure.to_owned(), krate.clone()));
            places.entry(if own { krate } else { REST }).or_default().push(place);
        }
        let mut over = String::new();
        for (krate, places) in places {
            let allowed = self.allowed.get(&(measure.to_owned(), krate.to_owned())).copied().unwrap_or(0);
            if places.len() > allowed {
                let found = places.len();
                over += &format!("{measure} in {krate}: {found}, allowed {allowed}, among these:\n  ");
                over += &places.join("\n  ");
                over.push('\n');
            }
        }
        if over.is_empty() { Ok(()) } else { Err(over) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(crates: &[&str]) -> Vec<(String, String)> {
        crates.iter().map(|krate| ((*krate).to_owned(), "somewhere".to_owned())).collect()
    }

    #[test]
    fn a_crate_may_not_exceed_its_line_nor_the_others_theirs() {
        let ratchet = Ratchet::parse("# comment\ncasts array 2  # why\ncasts * 1\n").expect("well-formed");
        assert_eq!(ratchet.check("casts", &found(&["array", "array", "sim"])), Ok(()));
        assert!(ratchet.check("casts", &found(&["array", "array", "array"])).is_err());
        assert!(ratchet.check("casts", &found(&["sim", "cli"])).is_err());
        assert!(ratchet.check("fields", &found(&["array"])).is_err());
    }

    #[test]
    fn a_line_that_says_nothing_is_an_error() {
        assert_eq!(Ratchet::parse("casts array many").map(|_| ()), Err("casts array many".to_owned()));
    }
}
