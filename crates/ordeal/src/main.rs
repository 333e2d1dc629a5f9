//! `elastripe-ordeal`: rounds of seeded harm against the shipped binary, or one round again.

use ordeal::round::Part;
use ordeal::shape::Scheme;
use ordeal::{Binary, Canary, Options, Outcome, run};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const USAGE: &str = "\
elastripe-ordeal --rounds N [--seed S]    rounds of the seeds S, S + 1, ...
elastripe-ordeal --seconds T [--seed S]   as many as begin in that time
elastripe-ordeal --seed S                 one round, with what happened in it
  --elastripe FILE   the binary, by default the one beside this program
  --scheme NAME      only eplog, raid, parity-log, elastic or was
  --jobs N           rounds side by side, 2 by default
  --patience N       seconds that a request may take, 20 by default; a command that works through the array has three times that
  --failures N       stop after so many failures, 1 by default
  --dir DIR          where rounds have their files, by default a directory of this run in the one for temporary files
  --keep             keep the directories of rounds that failed
  --without NAME     leave something out: truncate, discard, idle, metadata, beyond; may be given several times
  --canary NAME      the harness lies, and must find itself out: lost-write, lost-request, flipped-bit, rolled-back,
                     says-healthy, says-panic, lost-member, lost-server, lost-chunks, stale-return, blank-successor";

struct Args {
    seed: u64,
    rounds: Option<u64>,
    seconds: Option<Duration>,
    elastripe: Option<PathBuf>,
    scheme: Option<Scheme>,
    jobs: u64,
    patience: Duration,
    failures: u64,
    dir: Option<PathBuf>,
    keep: bool,
    canary: Option<Canary>,
    without: Vec<Part>,
}

fn number(name: &str, value: Option<String>) -> Result<u64, String> {
    let value = value.ok_or_else(|| format!("{name} needs a number"))?;
    value.parse().map_err(|_| format!("{name} {value}: expected a number"))
}

fn named<T: Copy>(name: &str, value: Option<String>, all: &[(&str, T)]) -> Result<T, String> {
    let value = value.ok_or_else(|| format!("{name} needs a name"))?;
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let found = all.iter().find(|(name, _)| *name == value).map(|(_, one)| *one);
    found.ok_or_else(|| format!("{name} {value}: expected one of {}", names.join(", ")))
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut parsed = Args {
        seed: 1,
        rounds: None,
        seconds: None,
        elastripe: None,
        scheme: None,
        jobs: 2,
        patience: Duration::from_secs(20),
        failures: 1,
        dir: None,
        keep: false,
        canary: None,
        without: Vec::new(),
    };
    while let Some(name) = args.next() {
        match name.as_str() {
            "--seed" => parsed.seed = number(&name, args.next())?,
            "--rounds" => parsed.rounds = Some(number(&name, args.next())?),
            "--seconds" => parsed.seconds = Some(Duration::from_secs(number(&name, args.next())?)),
            "--elastripe" => parsed.elastripe = Some(args.next().ok_or("--elastripe needs a path")?.into()),
            "--dir" => parsed.dir = Some(args.next().ok_or("--dir needs a path")?.into()),
            "--scheme" => parsed.scheme = Some(named(&name, args.next(), &Scheme::ALL)?),
            "--canary" => parsed.canary = Some(named(&name, args.next(), &Canary::ALL)?),
            "--without" => parsed.without.push(named(&name, args.next(), &Part::ALL)?),
            "--jobs" => parsed.jobs = number(&name, args.next())?.clamp(1, 64),
            "--patience" => parsed.patience = Duration::from_secs(number(&name, args.next())?.max(1)),
            "--failures" => parsed.failures = number(&name, args.next())?.max(1),
            "--keep" => parsed.keep = true,
            "--help" => return Err(USAGE.into()),
            other => return Err(format!("unknown option {other}\n{USAGE}")),
        }
    }
    Ok(parsed)
}

/// Prints a line. If nobody reads it any more, the exit code still tells how it went.
fn say(line: std::fmt::Arguments<'_>) {
    _ = writeln!(std::io::stdout(), "{line}");
}

fn options(args: &Args) -> Result<Options, String> {
    let beside = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join("elastripe")));
    let path = args.elastripe.clone().or(beside).ok_or("--elastripe is needed")?;
    let binary = Binary::probe(&path)
        .map_err(|error| format!("{}: {error}; name the binary with --elastripe", path.display()))?;
    let own = std::env::temp_dir().join(format!("ordeal-{}", std::process::id()));
    let dir = args.dir.clone().unwrap_or(own);
    fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok(Options {
        binary,
        dir,
        scheme: args.scheme,
        patience: args.patience,
        canary: args.canary,
        without: args.without.clone(),
    })
}

fn replay_command(args: &Args, seed: u64) -> String {
    let mut text = format!("elastripe-ordeal --seed {seed} --keep");
    if let Some(scheme) = args.scheme {
        text.push_str(&format!(" --scheme {}", scheme.name()));
    }
    if let Some((name, _)) = Canary::ALL.iter().find(|(_, canary)| Some(*canary) == args.canary) {
        text.push_str(&format!(" --canary {name}"));
    }
    for (name, _) in Part::ALL.iter().filter(|(_, part)| args.without.contains(part)) {
        text.push_str(&format!(" --without {name}"));
    }
    text
}

/// Tells how a round went, and removes its files.
fn report(args: &Args, outcome: &Outcome) -> bool {
    let alone = args.rounds.is_none() && args.seconds.is_none();
    if let Some(verdict) = &outcome.verdict {
        say(format_args!("seed {}: {verdict}", outcome.seed));
        outcome.story.iter().for_each(|line| say(format_args!("    {line}")));
        say(format_args!("    replay: {}", replay_command(args, outcome.seed)));
        if args.keep {
            say(format_args!("    kept: {}", outcome.dir.display()));
            return true;
        }
    } else if alone {
        outcome.story.iter().for_each(|line| say(format_args!("    {line}")));
        say(format_args!("seed {}: ok", outcome.seed));
    }
    let _ = fs::remove_dir_all(&outcome.dir); // it is a temporary directory
    outcome.verdict.is_some()
}

fn explore(args: &Args, options: &Options) -> (u64, u64) {
    let (next, failed, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let (begun, output) = (Instant::now(), Mutex::new(()));
    let count = args.rounds.unwrap_or(if args.seconds.is_some() { u64::MAX } else { 1 });
    thread::scope(|scope| {
        for _ in 0..args.jobs.min(count) {
            scope.spawn(|| {
                loop {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    let late = args.seconds.is_some_and(|limit| begun.elapsed() >= limit);
                    if nth >= count || late || failed.load(Ordering::Relaxed) >= args.failures {
                        return;
                    }
                    let outcome = run(options, args.seed.wrapping_add(nth));
                    let _held = output.lock().unwrap_or_else(PoisonError::into_inner);
                    failed.fetch_add(u64::from(report(args, &outcome)), Ordering::Relaxed);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    (done.into_inner(), failed.into_inner())
}

fn main() -> ExitCode {
    let ready =
        parse(std::env::args().skip(1)).and_then(|args| options(&args).map(|options| (args, options)));
    let (args, options) = match ready {
        Ok(ready) => ready,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let begun = Instant::now();
    let (done, failed) = explore(&args, &options);
    let _ = fs::remove_dir(&options.dir); // not if something in it was kept
    let seconds = begun.elapsed().as_secs_f64();
    say(format_args!("{done} rounds from seed {} in {seconds:.1} s: {failed} failed", args.seed));
    if failed == 0 && done > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
