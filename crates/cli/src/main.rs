//! `elastripe`: one binary to make, run, look at and measure arrays. See `elastripe help`.
#![forbid(unsafe_code)]
#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "they panic when nobody reads: see `node::output`"
)]

mod commands;
mod memory;
mod progress;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser};
use lab::failure::{EXIT_CANNOT_LOOK, EXIT_FAILED, EXIT_MISUSED};
use lab::misuse::in_a_line;
use lab::provenance;
use node::output;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

/// Elastic-parity RAID for SSD arrays, in user space.
#[derive(Parser, Debug)]
#[command(name = "elastripe", version = provenance::VERSION, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: commands::Command,
}

/// The whole command line, as it is parsed and shown.
fn definition() -> clap::Command {
    commands::examples::attach(CommandLine::command())
}

fn main() -> ExitCode {
    let parsed = definition().try_get_matches();
    let line = match parsed.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        Ok(line) => line,
        Err(error) => return misused(&error),
    };
    // `status` uses 1 for an array that is degraded.
    let looks = matches!(line.command, commands::Command::Status(_));
    match line.command.run() {
        Ok(exit) => printed(exit, if looks { EXIT_CANNOT_LOOK } else { EXIT_FAILED }),
        Err(failure) => {
            output::warn(format_args!("elastripe: {failure}"));
            ExitCode::from(failure.exit())
        }
    }
}

/// How a command ended that has printed its results: not well if they did not all arrive.
fn printed(exit: u8, failed: u8) -> ExitCode {
    let Some(error) = output::cut_short() else { return ExitCode::from(exit) };
    output::warn(format_args!("elastripe: standard output: cannot write all of it: {error}"));
    ExitCode::from(if exit == 0 { failed } else { exit })
}

/// Help, the version, or one line about what is wrong with the command line.
fn misused(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        output::note(error.print().and_then(|()| std::io::stdout().flush()));
        return printed(u8::from(error.use_stderr()) * EXIT_MISUSED, EXIT_FAILED);
    }
    let (text, mut words) = (error.to_string(), in_a_line(error));
    if let Some(place) = empty_word(error) {
        words = words.replace("but none was supplied", &format!("but {place} is empty"));
    }
    let given = std::env::args_os().nth(1).and_then(|name| name.into_string().ok()).unwrap_or_default();
    let topic = topic();
    let known = !topic.is_empty();
    let hint = hint(&given).filter(|_| !known).map(|verb| format!(" (here it is `elastripe {verb}`)"));
    let hint = hint.or_else(|| bare_device(&given, &words)).or_else(|| similar(&text)).unwrap_or_default();
    output::warn(format_args!("elastripe: {words}{hint}; see `elastripe help{topic}`"));
    // `status` uses 2 for an array that has failed.
    let looking = given == "status";
    ExitCode::from(if looking { EXIT_CANNOT_LOOK } else { EXIT_MISUSED })
}

/// What is not possible, why, and what to do instead.
const NOT_BY_ADDED_DEVICES: &str = commands::grow::NOT_BY_ADDED_DEVICES;

/// The words of the command line that are commands, and commands of these, each with a space in front.
fn topic() -> String {
    let (mut command, mut topic) = (definition(), String::new());
    for word in std::env::args_os().skip(1) {
        let Some(inner) = word.to_str().and_then(|word| command.find_subcommand(word)) else { break };
        topic.push_str(&format!(" {}", inner.get_name()));
        command = inner.clone();
    }
    topic
}

/// Where a word is that is empty, as one from a variable that is not set, if that is what the parser minds.
fn empty_word(error: &clap::Error) -> Option<String> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let lacks_value =
        |words: &[OsString]| definition().try_get_matches_from(words).is_err_and(|found| is_empty(&found));
    // With any other word in its place the parser minds it no more.
    let with_another = |at: usize| [&words[..at], &[OsString::from("x")]].concat();
    let is_culprit =
        |&at: &usize| words[at].is_empty() && lacks_value(&words[..=at]) && !lacks_value(&with_another(at));
    let at = (1..words.len()).filter(|_| is_empty(error)).find(is_culprit)?;
    Some(format!("the word after '{}'", words[at - 1].display()))
}

/// Whether a value is empty, or there is none.
fn is_empty(error: &clap::Error) -> bool {
    error.kind() == ErrorKind::InvalidValue
        && matches!(error.get(ContextKind::InvalidValue), Some(ContextValue::String(value)) if value.is_empty())
}

/// What the parser takes a misspelt word for.
fn similar(text: &str) -> Option<String> {
    let tips = text.split("\n\n").filter_map(|paragraph| paragraph.trim().strip_prefix("tip: "));
    let tip = tips.filter_map(|tip| tip.lines().next()).find(|tip| tip.contains("similar"))?;
    Some(format!(" ({tip})"))
}

/// Who names devices without a word is told which word.
fn bare_device(verb: &str, words: &str) -> Option<String> {
    let is_bare = words.starts_with("unexpected argument '") && !words.starts_with("unexpected argument '-");
    let is_level = ["'--level'", "'--raid-level'", "'--raid-devices'", "'-l'", "'-n'"]
        .iter()
        .any(|word| words.contains(word));
    if verb == "create" && is_level {
        return Some(
            " (what others call raid5 is --parity 1, raid6 is --parity 2; devices are counted)".to_owned(),
        );
    }
    let is_more = ["'--raid-devices'", "'--data'", "'--add'", "'--devices'", "'-n'"];
    if verb == "grow" && is_more.iter().any(|word| words.contains(word)) {
        return Some(format!(" ({NOT_BY_ADDED_DEVICES})"));
    }
    let text = match verb {
        "create" => " (devices are named after --data and --log)",
        "examine" => " (one device at a time)",
        _ => return None,
    };
    is_bare.then(|| text.to_owned())
}

/// What a verb of another program is called here.
fn hint(verb: &str) -> Option<&'static str> {
    Some(match verb {
        "assemble" | "import" | "start" | "run" | "up" | "attach" | "mount" => "serve",
        "detail" | "query" | "show" | "list" | "iostat" | "mdstat" | "info" => "status",
        "history" | "events" => "status --watch",
        "monitor" | "notify" => "serve --on-event",
        "re-add" | "readd" => "online",
        "labelclear" | "zero-superblock" | "zero" => "wipe",
        "export" | "shutdown" | "down" | "unmount" | "detach" => "stop",
        "offline" | "faulty" | "set-faulty" => "fail",
        "resilver" | "rebuild" => "replace",
        "check" | "verify" | "repair" | "fsck" => "scrub",
        "label" | "dump" | "dumpe2fs" => "examine",
        "speed" | "speed-limit" => "rate",
        "simulator" | "sim" => "simulate",
        "expand" | "resize" | "extend" | "enlarge" => "grow",
        "new" | "make" | "mkraid" | "init" | "format" => "create",
        _ => return None,
    })
}
