//! Examples of command lines, for `help COMMAND` and the pages of the manual; what they are stands in
//! `examples.txt`.

use clap::Command;

const EXAMPLES: &str = include_str!("examples.txt");

/// The same command line, with examples in the help of the commands that have some.
pub fn attach(line: Command) -> Command {
    let mut what = "";
    EXAMPLES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).fold(line, |line, text| {
        let Some(words) = text.strip_prefix("$ elastripe ") else {
            what = text;
            return line;
        };
        add(line, words.split(' '), &format!("  {what}\n    {text}\n"))
    })
}

/// Adds an example to the help of the command that the first of these words name.
fn add<'a>(line: Command, mut words: impl Iterator<Item = &'a str>, text: &str) -> Command {
    match words.next().filter(|word| line.find_subcommand(word).is_some()) {
        Some(name) => line.mut_subcommand(name, |inner| add(inner, words, text)),
        None => {
            let before = line.get_after_long_help().map_or("Examples:\n".to_owned(), |help| help.to_string());
            line.after_long_help(before + text)
        }
    }
}
