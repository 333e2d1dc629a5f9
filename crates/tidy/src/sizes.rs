//! Sizes that keep code readable: width of lines, length of files, fields of structs; and casts, which hide
//! the size of numbers.

use crate::mask::{block_end, code, product_code};

/// Characters that a line of Rust may have, comments included; the formatter's `max_width` for code.
pub const WIDTH_MAX: usize = 110;
/// Lines that a file may have.
pub const FILE_LINES_MAX: usize = 700;
/// Fields that a struct of the product may have.
pub const FIELDS_MAX: usize = 20;

/// The lines (from 1) with a comment that are wider than they may be. Code is the formatter's affair, texts
/// in quotes and rows of tables cannot be broken.
pub fn wide_lines(source: &str) -> Vec<usize> {
    let masked = code(source);
    let lines = source.lines().zip(masked.lines()).enumerate();
    let wide = |line: &str, masked: &str| {
        let ends_in_comment = line.match_indices("//").any(|(at, _)| masked[at..].trim().is_empty());
        line.chars().count() > WIDTH_MAX && ends_in_comment && !line.trim_start().starts_with("//! |")
    };
    lines.filter(|(_, (line, masked))| wide(line, masked)).map(|(number, _)| number + 1).collect()
}

/// The lines (from 1) of the product that cast a number with `as`, once for each cast.
pub fn casts(source: &str) -> Vec<usize> {
    const NUMBERS: [&str; 14] = [
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64",
    ];
    let text = product_code(source);
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let words: Vec<&str> =
            line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).collect();
        let count = words.windows(2).filter(|pair| pair[0] == "as" && NUMBERS.contains(&pair[1])).count();
        found.extend(std::iter::repeat_n(number + 1, count));
    }
    found
}

/// The structs with named fields of a source, each with the number of its fields.
pub fn structs(source: &str) -> Vec<(String, usize)> {
    let text = product_code(source);
    let mut found = Vec::new();
    for (at, _) in text.match_indices("struct ") {
        if text[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &text[at + "struct ".len()..];
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let Some(opens) = rest.find(['{', ';', '(']).filter(|opens| rest[*opens..].starts_with('{')) else {
            continue;
        };
        let open = at + "struct ".len() + opens;
        found.push((name, fields(&text[open + 1..block_end(&text, open) - 1])));
    }
    found
}

/// The fields between a struct's braces: the colons that are in no bracket and belong to no path.
fn fields(body: &str) -> usize {
    let mut depth = 0_usize;
    let mut before = ' ';
    let mut count = 0;
    let mut characters = body.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '{' | '(' | '[' | '<' => depth += 1,
            '>' if before == '-' => {}
            '}' | ')' | ']' | '>' => depth = depth.saturating_sub(1),
            ':' if depth == 0 && before != ':' && characters.peek() != Some(&':') => count += 1,
            _ => {}
        }
        before = c;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_wide_by_the_characters_of_its_comment() {
        let [narrow, wide, letters] = [("a", 107), ("b", 108), ("é", 107)].map(|(c, n)| c.repeat(n));
        let text = format!(
            "// {narrow}\n// {wide}\n// {letters}\n//! | {wide} |\nprint(\"//{wide}\")\nx = 1; // {wide}"
        );
        assert_eq!(wide_lines(&text), [2, 6]);
    }

    #[test]
    fn casts_are_counted_in_the_products_code_only() {
        let text =
            "use a as b; // x as u8\nlet c = d as u32 + e as\tusize;\n#[cfg(test)]\nmod t { f as u64 }";
        assert_eq!(casts(text), [2, 2]);
    }

    #[test]
    fn fields_are_counted_at_the_outermost_level() {
        let text = "pub struct A<T> where T: B {\n /// c: d\n e: f::G<H, fn(i: u8) -> u8>,\n #[x(y)]\n pub j: k }\nstruct L(u8); struct M;";
        assert_eq!(structs(text), [("A".to_owned(), 2)]);
    }
}
