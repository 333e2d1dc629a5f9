//! Rust source without what is no code: comments, strings and tests become blanks, byte for byte, so that all
//! else stays where it is.
//!
//! This is no parser. It knows just enough of the language to count casts and fields and to find paths.

/// The source with comments, strings and character literals blanked.
pub fn code(source: &str) -> String {
    let mut rest = source;
    let mut out = String::with_capacity(source.len());
    while let Some(first) = rest.chars().next() {
        let skipped = opaque_length(rest, out.chars().next_back());
        if skipped == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            out.extend(rest[..skipped].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
            rest = &rest[skipped..];
        }
    }
    out
}

/// The code of the product: as `code`, and items under `#[cfg(test)]` are blanked too.
pub fn product_code(source: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut text = code(source);
    while let Some(start) = text.find(MARK) {
        let end = item_end(&text, start + MARK.len());
        let blank: String = text[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        text.replace_range(start..end, &blank);
    }
    text
}

/// Where the bracketed text that opens at `open` ends, its closing bracket included.
pub fn block_end(text: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text[open..].char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return open + at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// Where the item ends that begins at `from`: at its semicolon, or with its braces.
fn item_end(text: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(c) = text[at..].chars().next() {
        match c {
            ';' => return at + 1,
            '{' => return block_end(text, at),
            '(' | '[' => at = block_end(text, at),
            _ => at += c.len_utf8(),
        }
    }
    text.len()
}

/// How many bytes at the beginning of `rest` are a comment or literal; 0 if it begins with code.
fn opaque_length(rest: &str, before: Option<char>) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return comment_length(rest);
    }
    if rest.starts_with('"') {
        return string_length(rest);
    }
    if rest.starts_with('\'') {
        return character_length(rest);
    }
    let word_goes_on = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with('r') && !word_goes_on || rest.starts_with('r') && before == Some('b') {
        return raw_length(rest);
    }
    0
}

fn comment_length(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

fn string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A quote begins a character if it ends after one, or after an escape; else it is a lifetime.
fn character_length(rest: &str) -> usize {
    let mut inside = rest.char_indices().skip(1);
    match inside.next() {
        Some((_, '\\')) => rest[3..].find('\'').map_or(0, |end| end + 4),
        Some(_) => inside.next().filter(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

fn raw_length(rest: &str) -> usize {
    let hashes = rest[1..].chars().take_while(|c| *c == '#').count();
    if !rest[1 + hashes..].starts_with('"') {
        return 0;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let body = 2 + hashes;
    rest[body..].find(&close).map_or(rest.len(), |end| body + end + close.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_become_blanks_and_lifetimes_stay() {
        let source =
            "let a = \"x as u8\"; // y as u8\nfn f<'a>(c: &'a str) { '\\''; 'x'; r#\"as\"#; /* as */ b }\n";
        let masked = code(source);
        assert_eq!(masked.len(), source.len());
        assert!(!masked.contains("as u8") && !masked.contains("as\"") && !masked.contains("'x'"));
        assert!(masked.contains("fn f<'a>(c: &'a str)") && masked.contains(" b }"));
    }

    #[test]
    fn tests_are_not_the_product() {
        let masked = product_code(
            "fn a() {}\n#[cfg(test)]\n#[allow(x)]\nmod t {\n fn b() { {} }\n}\nfn c() {}\n#[cfg(test)]\nmod u;\n",
        );
        assert!(masked.contains("fn a()") && masked.contains("fn c()"));
        assert!(!masked.contains("fn b()") && !masked.contains("mod u"));
        assert_eq!(masked.lines().count(), 9);
    }
}
