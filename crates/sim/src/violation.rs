//! What a world says when something is wrong.

use std::fmt;

/// Something that must never happen has happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    what: String,
    /// The line that noticed it.
    place: String,
}

impl Violation {
    /// Something that was noticed at a line of the sources.
    pub fn new(what: String, place: String) -> Self {
        Self { what, place }
    }

    /// Whether it is the same in another world: noticed at the same line, in the same words but for numbers
    /// and details.
    pub fn is_like(&self, other: &Self) -> bool {
        self.place == other.place && self.gist() == other.gist()
    }

    /// The first words, without numbers and what is in brackets.
    fn gist(&self) -> String {
        let mut depth = 0_usize;
        let outside = self.what.chars().filter(|c| {
            match c {
                '{' | '[' | '(' => depth += 1,
                '}' | ']' | ')' => depth = depth.saturating_sub(1),
                _ => return depth == 0 && !c.is_ascii_digit(),
            }
            false
        });
        let text: String = outside.collect();
        text.split_whitespace().take(GIST_WORDS).collect::<Vec<_>>().join(" ")
    }
}

/// Words of a violation that say what went wrong; those after them say where.
const GIST_WORDS: usize = 6;

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// Builds a [`Violation`] as `format!` builds a text.
#[macro_export]
macro_rules! violation {
    ($($part:tt)*) => {
        $crate::violation::Violation::new(format!($($part)*), concat!(file!(), ":", line!()).to_owned())
    };
}
