//! Does it help the SSD if `eplog` keeps a frontier for each class of chunks (requirement L-09)?
//!
//! One SSD of an `eplog` array: updates go to free chunks, old versions are free again after a commit. Hot
//! chunks are told from cold ones without error, which is more than any policy can. Prints the SSD's own
//! write amplification.
//!
//! `cargo run --release -p elastripe-flash --example frontier`

use flash::{Random, Separation, Ssd, SsdConfig, StreamOptions, Tag};
use std::process::ExitCode;

/// Chunks of the volume on the SSD, and chunks that `eplog` keeps spare beside them (10 %).
const CHUNKS: u32 = 1 << 18;
const SPARE: u32 = CHUNKS / 10;
/// Updates between two commits.
const COMMIT_EVERY: u32 = SPARE / 2;
/// A fifth of the chunks gets four fifths of the updates.
const HOT: u32 = CHUNKS / 5;

/// Where the next free chunk for a class is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frontiers {
    /// One for all.
    One,
    /// One for each class; both sweep over the whole SSD.
    EachItsOwn,
}

struct Space {
    used: Vec<bool>,
    frontiers: [u32; 2],
}

impl Space {
    /// The next free chunk; `commit` keeps some free.
    fn take(&mut self, frontier: usize) -> u32 {
        let count = CHUNKS + SPARE;
        loop {
            let chunk = self.frontiers[frontier];
            self.frontiers[frontier] = (chunk + 1) % count;
            if !std::mem::replace(&mut self.used[chunk as usize], true) {
                return chunk;
            }
        }
    }
}

fn run(frontiers: Frontiers, streams: bool, device_spare: f64, seed: u64) -> Result<f64, String> {
    let mut config =
        SsdConfig::counting((CHUNKS + SPARE).into(), device_spare, 64, 4096).map_err(|e| e.to_string())?;
    if streams {
        config.streams = StreamOptions { separation: Separation::Class, ..StreamOptions::default() };
    }
    let mut ssd = Ssd::new(config).map_err(|e| e.to_string())?;
    let mut space = Space { used: vec![false; (CHUNKS + SPARE) as usize], frontiers: [0, CHUNKS / 2] };
    let mut random = Random::new(seed);
    let mut map: Vec<u32> = (0..CHUNKS).collect();
    space.used[..CHUNKS as usize].fill(true);
    let write = |ssd: &mut Ssd, chunk: u32, class: u8| {
        ssd.write(chunk.into(), 1, Tag::Data(class), 0).map(drop).map_err(|e| e.to_string())
    };
    for chunk in 0..CHUNKS {
        write(&mut ssd, chunk, u8::from(chunk < HOT))?;
    }
    let mut old = Vec::new();
    let total = 12 * CHUNKS;
    for update in 0..total {
        if update == total / 2 {
            ssd.reset_counters();
        }
        let is_hot = random.below(5) > 0;
        let logical = if is_hot { random.below(HOT) } else { HOT + random.below(CHUNKS - HOT) };
        let frontier = usize::from(is_hot && frontiers == Frontiers::EachItsOwn);
        let chunk = space.take(frontier);
        old.push(std::mem::replace(&mut map[logical as usize], chunk));
        write(&mut ssd, chunk, u8::from(is_hot))?;
        if old.len() == COMMIT_EVERY as usize {
            old.drain(..).for_each(|chunk| space.used[chunk as usize] = false);
        }
    }
    Ok(ssd.counters().write_amplification())
}

fn main() -> ExitCode {
    println!("80 % of updates to 20 % of the chunks, seed 1; write amplification of the SSD");
    println!("{:>12} {:>8} {:>14} {:>12}", "device spare", "streams", "one frontier", "one a class");
    for device_spare in [1.07, 1.15, 1.28] {
        for streams in [false, true] {
            let both = run(Frontiers::One, streams, device_spare, 1)
                .and_then(|one| Ok((one, run(Frontiers::EachItsOwn, streams, device_spare, 1)?)));
            match both {
                Ok((one, two)) => {
                    println!(
                        "{device_spare:>12} {:>8} {one:>14.3} {two:>12.3}",
                        if streams { "class" } else { "none" }
                    );
                }
                Err(error) => {
                    eprintln!("frontier: {error}");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}
