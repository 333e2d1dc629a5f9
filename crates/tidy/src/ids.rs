//! Requirement ids: which ones a text cites, and which ones `docs/requirements.md` has a row for.

/// The letters that begin an id; each is a section of `docs/requirements.md`.
const AREAS: &str = "ABCEHKLMPRWX";

/// The ids that a text cites, each with its line (from 1), in order: a letter, a hyphen and exactly two digits.
pub fn cited(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for (hyphen, _) in line.match_indices('-') {
            found.extend(id_around(line, hyphen).map(|id| (number + 1, id)));
        }
    }
    found
}

/// The ids that a page of requirements has rows for.
pub fn declared(page: &str) -> Vec<String> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"))
        .filter(|(id, _)| cited(id).len() == 1)
        .map(|(id, _)| id.to_owned())
        .collect()
}

fn id_around(line: &str, hyphen: usize) -> Option<String> {
    let (before, after) = (&line[..hyphen], &line[hyphen + 1..]);
    let mut left = before.chars().rev();
    let area = left.next().filter(|letter| AREAS.contains(*letter))?;
    let begins = left.next().is_none_or(|c| !c.is_alphanumeric() && !"-_".contains(c));
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    let ends = after[digits.len()..].chars().next().is_none_or(|c| !c.is_alphanumeric() && !"-_".contains(c));
    (begins && ends && digits.len() == 2).then(|| format!("{area}-{digits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<String> {
        cited(text).into_iter().map(|(_, id)| id).collect()
    }

    #[test]
    fn an_id_is_a_letter_a_hyphen_and_two_digits() {
        assert_eq!(ids("as read (W-25, A-17), M-06 to M-08."), ["W-25", "A-17", "M-06", "M-08"]);
    }

    #[test]
    fn codes_numbers_and_paths_are_no_ids() {
        assert_eq!(ids("CRC-64, UTF-8, M-2.4, H-4, X-100, A-12b, Z-01, RAID-10, x86-64"), [""; 0]);
    }

    #[test]
    fn rows_declare_and_prose_does_not() {
        assert_eq!(declared("| E-01 | text (A-02) | here |\n|---|\nE-03 is no row\n| id | E-04 |"), ["E-01"]);
    }
}
