//! `elastripe-sim`: explores seeded worlds, or replays one.

use sim::{
    Outcome, Pinned, Reduction, Scarce, Until, Violation, explore, replay_command, run_caught, run_reduced,
    shrink,
};
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
elastripe-sim --seed S [--scheme eplog|raid|parity-log|elastic|was] [--verbose]      replay one world
elastripe-sim --seed S --shrink [--scheme ..] [...]           find a much smaller world that fails in the same way
elastripe-sim --seconds N [--from S] [--scheme ..] [...]      explore for some time
elastripe-sim --worlds N [--from S] [--scheme ..] [...]       explore so many worlds
  --shards N     1 to 4: only worlds with an array of so many
  --scarce S     space|stripes|journal: only worlds that have hardly any
  --blackouts    more devices than the code tolerates stop answering in every session that begins with a whole array
  --ruin         every world ends with damage beyond what the code tolerates
  --rot          most damage is done to metadata, and scrubs are many
  --returns      members leave and come back over and over
  --succeeds     members that work get successors over and over
  --hangs        most faults are devices that do not answer, or late
  --grows        the devices become larger before most sessions, and the array grows
  --maims        devices lose their ends before every other start
  --keep LIST    with --seed: only these parts of the world, as --shrink prints them
  --with LIST    with --seed: simpler than drawn, as --shrink prints it
  --threads N    threads, all cores by default
  --failures N   stop after so many failures, 1 by default";

struct Args {
    seed: Option<u64>,
    until: Option<Until>,
    from: u64,
    pinned: Pinned,
    verbose: bool,
    shrink: bool,
    reduction: Option<Reduction>,
    /// The bug that is planted, as an option.
    planted: String,
    threads: usize,
    failures: usize,
}

fn number(name: &str, value: Option<String>) -> Result<u64, String> {
    let value = value.ok_or_else(|| format!("{name} needs a number"))?;
    value.parse().map_err(|_| format!("{name} {value}: expected a number"))
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Args, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut parsed = Args {
        seed: None,
        until: None,
        from: 0,
        pinned: Pinned::default(),
        verbose: false,
        shrink: false,
        reduction: None,
        planted: String::new(),
        threads,
        failures: 1,
    };
    while let Some(name) = args.next() {
        let small = |value: u64| usize::try_from(value).map_err(|_| format!("{name} {value}: too large"));
        match name.as_str() {
            "--seed" => parsed.seed = Some(number(&name, args.next())?),
            "--seconds" => parsed.until = Some(Until::Time(Duration::from_secs(number(&name, args.next())?))),
            "--worlds" => parsed.until = Some(Until::Worlds(number(&name, args.next())?)),
            "--from" => parsed.from = number(&name, args.next())?,
            "--threads" => parsed.threads = small(number(&name, args.next())?)?.max(1),
            "--failures" => parsed.failures = small(number(&name, args.next())?)?,
            "--verbose" => parsed.verbose = true,
            "--shrink" => parsed.shrink = true,
            "--keep" => {
                let kept: Reduction = args.next().ok_or("--keep needs a list")?.parse()?;
                parsed.reduction = Some(Reduction { settings: settings(parsed.reduction), ..kept });
            }
            "--with" => {
                let value = args.next().ok_or("--with needs a list")?;
                let settings = value.split(',').map(str::parse).collect::<Result<_, String>>()?;
                parsed.reduction = Some(Reduction { settings, ..parsed.reduction.unwrap_or_default() });
            }
            "--scheme" => {
                let value = args.next().ok_or("--scheme needs a name")?;
                parsed.pinned.scheme = Some(value.parse().map_err(|e| format!("--scheme: {e}"))?);
            }
            "--shards" => {
                let shards = number(&name, args.next())?;
                let shards = u16::try_from(shards).ok().filter(|shards| (1..=4).contains(shards));
                parsed.pinned.shards = Some(shards.ok_or("--shards: 1 to 4")?);
            }
            "--ruin" => parsed.pinned.ruin = true,
            "--blackouts" => parsed.pinned.blackouts = true,
            "--rot" => parsed.pinned.rot = true,
            "--returns" => parsed.pinned.returns = true,
            "--succeeds" => parsed.pinned.succeeds = true,
            "--hangs" => parsed.pinned.hangs = true,
            "--grows" => parsed.pinned.grows = true,
            "--maims" => parsed.pinned.maims = true,
            "--scarce" => {
                let value = args.next().ok_or("--scarce needs a name")?;
                let scarce = Scarce::ALL.iter().find(|(name, _)| *name == value);
                let (_, scarce) = scarce.ok_or(format!("--scarce {value}: space, stripes or journal"))?;
                parsed.pinned.scarce = Some(*scarce);
            }
            #[cfg(feature = "planted-bugs")]
            "--plant" => {
                let value = args.next().ok_or("--plant needs a name")?;
                let bug = array::Planted::ALL.iter().find(|bug| format!("{bug:?}") == value);
                parsed.planted = format!(" --plant {value}");
                array::plant(Some(
                    *bug.ok_or_else(|| format!("--plant {value}: one of {:?}", array::Planted::ALL))?,
                ));
            }
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

fn settings(reduction: Option<Reduction>) -> Vec<sim::Setting> {
    reduction.map(|reduction| reduction.settings).unwrap_or_default()
}

/// The command that replays a world, or what is left of it.
fn command(seed: u64, args: &Args, reduction: Option<&Reduction>) -> String {
    let features = if args.planted.is_empty() { " -- " } else { " --features planted-bugs -- " };
    let whole = replay_command(seed, args.pinned).replace(" -- ", features) + &args.planted;
    let Some(reduction) = reduction else { return whole };
    let settings: Vec<String> = reduction.settings.iter().map(ToString::to_string).collect();
    let with = if settings.is_empty() { String::new() } else { format!(" --with {}", settings.join(",")) };
    format!("{whole} --keep {reduction}{with}")
}

fn shrink_seed(seed: u64, args: &Args) -> ExitCode {
    let shrunk = match shrink(seed, args.pinned) {
        Ok(shrunk) => shrunk,
        Err(outcome) => return report(seed, args, Ok(*outcome)),
    };
    say(format_args!("seed {seed}: {}", shrunk.violation));
    say(format_args!("whole:  {}", shrunk.before));
    say(format_args!("shrunk: {}, after {} worlds; what happens in it:", shrunk.after, shrunk.runs));
    let result = run_reduced(seed, args.pinned, &shrunk.reduction, true);
    let args = Args { reduction: Some(shrunk.reduction), planted: args.planted.clone(), ..*args };
    report(seed, &args, result)
}

fn replay(seed: u64, args: &Args) -> ExitCode {
    if args.shrink {
        return shrink_seed(seed, args);
    }
    let result = match &args.reduction {
        Some(reduction) => run_reduced(seed, args.pinned, reduction, args.verbose),
        None => run_caught(seed, args.pinned, args.verbose),
    };
    report(seed, args, result)
}

fn report(seed: u64, args: &Args, result: Result<Outcome, Violation>) -> ExitCode {
    match result {
        Ok(outcome) => {
            say(format_args!(
                "seed {seed}: ok, {} requests, {} operations, {} power cuts, state {:016x}",
                outcome.requests, outcome.events, outcome.crashes, outcome.hash
            ));
            ExitCode::SUCCESS
        }
        Err(violation) => {
            let command = command(seed, args, args.reduction.as_ref());
            say(format_args!("seed {seed}: {violation}; replay: {command}"));
            ExitCode::FAILURE
        }
    }
}

fn main() -> ExitCode {
    let args = match parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    if let Some(seed) = args.seed {
        return replay(seed, &args);
    }
    // A bug is planted for one thread, which must do all the work.
    let threads = if args.planted.is_empty() { args.threads } else { 1 };
    let Some(until) = args.until else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let seen = explore(args.from, until, args.pinned, threads, args.failures);
    for failure in &seen.failures {
        say(format_args!(
            "seed {}: {}; replay: {}",
            failure.seed,
            failure.what,
            command(failure.seed, &args, None)
        ));
    }
    let rate = seen.worlds as f64 / seen.seconds;
    say(format_args!(
        "{} worlds from seed {} in {:.1} s ({rate:.0} worlds/s): {} failed; {} requests, {} operations, {} power cuts, \
         {} blocks of several chunks that a cut might have torn in {} worlds ({} of them there), {} stripes replaced, {} kept by rebuilds, {} members back, {} succeeded, {} times grown, {} times commits paused or given up, {} pages read again, {} checkpoints beside full ones, {} records replayed, {} dropped, {} devices healed; beyond the promise {} started and {} were refused; state {:016x}",
        seen.worlds,
        args.from,
        seen.seconds,
        seen.failures.len(),
        seen.total.requests,
        seen.total.events,
        seen.total.crashes,
        seen.total.tearable,
        seen.tearing,
        seen.total.untorn,
        seen.total.replaced,
        seen.total.kept,
        seen.total.returned,
        seen.total.succeeded,
        seen.total.grown,
        seen.total.steered,
        seen.total.pages_read,
        seen.total.beside,
        seen.total.replayed,
        seen.total.dropped,
        seen.total.healed,
        seen.total.ruined,
        seen.total.refused,
        seen.total.hash
    ));
    if seen.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
