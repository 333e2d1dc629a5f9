//! The laboratory's commands for a program that holds it: words in, JSON out, progress and an end on request
//! through a [`crate::watch::Watch`].
//!
//! Words are those of the command line, so options, defaults, units and messages are the same. What only a
//! command line has use for is left out: files to write, pictures, output as text.

use crate::failure::{EXIT_MISUSED, Failure};
use crate::given::Given;
use crate::misuse::in_a_line;
use crate::{flash, placing, provenance, reliability, replay, simulate};
use clap::{ArgAction, Args, Command as Parser, FromArgMatches};
use serde_json::{Value, json};
use std::ffi::OsString;

pub use crate::drive::load::Memory;
pub use node::units::parse_size;

/// Options that say where output goes, and how it is drawn.
const NOT_EMBEDDED: [&str; 8] =
    ["json", "plot", "plot-value", "plot-width", "out", "shard", "help", "version"];

/// What is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// `simulate`.
    Simulate,
    /// `replay`.
    Replay,
    /// `flash run`.
    Flash,
    /// `reliability`.
    Reliability,
    /// Placement alone, in a store without devices.
    Place,
}

impl Command {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Simulate, Self::Replay, Self::Flash, Self::Reliability, Self::Place];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simulate => "simulate",
            Self::Replay => "replay",
            Self::Flash => "flash",
            Self::Reliability => "reliability",
            Self::Place => "place",
        }
    }

    /// The command of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.name() == name)
    }

    fn parser(self) -> Parser {
        let parser = Parser::new(self.name()).no_binary_name(true);
        match self {
            Self::Simulate => simulate::Arguments::augment_args(parser),
            Self::Replay => replay::Arguments::augment_args(parser),
            Self::Flash => flash::RunArguments::augment_args(parser),
            Self::Reliability => reliability::Arguments::augment_args(parser),
            Self::Place => placing::Arguments::augment_args(parser),
        }
    }

    /// What a shell would be told.
    fn line(self, words: &[OsString]) -> String {
        let verb = if self == Self::Flash { "flash run" } else { self.name() };
        let words = words.iter().map(|word| provenance::quoted(&word.to_string_lossy()));
        ["elastripe".to_owned(), verb.to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// An option of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptionInfo {
    /// Its name, without dashes; members of arrays, which have no dashes, are `members`.
    pub name: String,
    /// What its value is called, such as SIZE; none of a flag.
    pub value: Option<String>,
    /// Whether several values may be given.
    pub takes_several: bool,
    /// Whether several are one word with commas between them.
    pub joined: bool,
    /// Its default, as on the command line.
    pub default: Option<String>,
    /// The values there are, if they are few.
    pub values: Vec<String>,
    /// What it does.
    pub help: String,
}

/// The options of a command.
pub fn options(command: Command) -> Vec<OptionInfo> {
    let mut parser = command.parser();
    parser.build();
    let is_meant = |argument: &&clap::Arg| {
        !NOT_EMBEDDED.contains(&argument.get_id().as_str().replace('_', "-").as_str())
    };
    parser.get_arguments().filter(is_meant).map(info).collect()
}

fn info(argument: &clap::Arg) -> OptionInfo {
    let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let name = argument.get_long().unwrap_or(argument.get_id().as_str()).to_owned();
    let values = argument.get_possible_values();
    let text = |value: Option<&clap::builder::StyledStr>| value.map(ToString::to_string).unwrap_or_default();
    let help = argument.get_long_help().or(argument.get_help());
    let default: Vec<String> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    let value_name = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    OptionInfo {
        value: takes_value.then(|| value_name.unwrap_or_else(|| name.to_uppercase())),
        takes_several: matches!(argument.get_action(), ArgAction::Append)
            || argument.get_value_delimiter().is_some(),
        joined: argument.get_value_delimiter().is_some(),
        default: (takes_value && !default.is_empty()).then(|| default.join(",")),
        values: if takes_value {
            values.iter().map(|value| value.get_name().to_owned()).collect()
        } else {
            Vec::new()
        },
        help: text(help),
        name,
    }
}

/// Runs a command, as the words behind it say; its result.
pub fn run(command: Command, words: &[OsString], given: Given<'_>) -> Result<Value, Failure> {
    let named = given.memory.as_ref().map(|memory| memory.name.clone());
    let mut found = match command {
        Command::Simulate => simulate::embedded(&mut parse(command, words)?, words, given)?,
        Command::Replay => replay::embedded(&parse(command, words)?, &given)?,
        Command::Flash => flash::embedded(&parse(command, words)?, &given)?,
        Command::Reliability => reliability::embedded(&parse(command, words)?, given.shown)?,
        Command::Place => placing::embedded(&parse(command, words)?, given)?,
    };
    if let Some(origin) = found.get_mut("provenance").and_then(Value::as_object_mut) {
        // The process has been started as something else.
        origin.insert("command".to_owned(), command.line(words).into());
        origin.insert("trace_in_memory".to_owned(), json!(named));
    }
    Ok(found)
}

fn parse<A: Args + FromArgMatches>(command: Command, words: &[OsString]) -> Result<A, Failure> {
    let wrong = |error: clap::Error| Failure::new(in_a_line(&error)).with_exit(EXIT_MISUSED);
    let matches = command.parser().try_get_matches_from(words).map_err(wrong)?;
    A::from_arg_matches(&matches).map_err(wrong)
}
