//! Requirement ids: which ones a text cites, and which ones `docs/requirements.md` has a row for.

/// The letters that begin an id; each is a section of `docs/requirements.md`.
const AREAS: &str = "ABCEHKLMPRWX";

/// The ids that a text cites, each with its line (from 1), in order: a letter, a hyphen and
/// exactly two digits.
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

/// The functions of a source whose name begins with an id (`m10_..`), each with its line (from 1).
pub fn named_by_an_id(source: &str) -> Vec<(usize, String)> {
    let begins_so = |name: &str| {
        let mut letters = name.chars();
        letters.next().is_some_and(|c| AREAS.contains(c.to_ascii_uppercase()))
            && letters.by_ref().take(2).filter(char::is_ascii_digit).count() == 2
            && letters.next() == Some('_')
    };
    let name = |line: &str| {
        line.trim_start().strip_prefix("fn ").map(|rest| rest.split('(').next().unwrap_or("").to_owned())
    };
    let names = source.lines().enumerate().filter_map(|(number, line)| Some((number + 1, name(line)?)));
    names.filter(|(_, name)| begins_so(name)).collect()
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
    fn names_that_begin_with_an_id_are_found() {
        let source =
            "fn m10_layout() {}\n    fn w01_w02_lists() {}\nfn u32_at() {}\nfn m1_x() {}\nfn all() {}";
        let names = [(1, "m10_layout".to_owned()), (2, "w01_w02_lists".to_owned())];
        assert_eq!(named_by_an_id(source), names);
    }

    #[test]
    fn rows_declare_and_prose_does_not() {
        assert_eq!(declared("| E-01 | text (A-02) | here |\n|---|\nE-03 is no row\n| id | E-04 |"), ["E-01"]);
    }
}
