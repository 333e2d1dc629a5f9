//! `flash run --placement`: an SSD whose FTL places pages by a policy of arrays, in counts. Blocks are its
//! units.
//!
//! By the same model of a log-structured store that public simulators of such policies are
//! (`placement::model`): so theirs and ours can be held against each other, and policies compared on one SSD
//! as in an array.

use super::RunArguments;
use super::workload::Source;
use crate::drive::load::Memory;
use crate::failure::Failure;
use crate::number::float;
use crate::provenance;
use block::{Random as _, XoshiroPlusPlus};
use clap::{Args, ValueEnum};
use flash::{Pattern, SsdConfig};
use node::units::parse_permille;
use placement::model::{Counts, Model, ModelOptions, Space, Times};
use placement::{GcGroup, PlacementKind, PlacementOptions, Sequence, Tuning, VictimKind};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use trace::{Op, ReadOptions, Request, TraceError, TraceSequence};

/// What places pages.
#[derive(Args, Debug)]
pub struct PlacedOptions {
    /// Place pages by a policy of arrays, and only count: single, was, sepbit or midas.
    #[arg(long, value_name = "POLICY")]
    pub placement: Option<PlacementKind>,
    /// Which block is collected next: greedy, cost-benefit, cost-benefit-root, age, windowed or d-choices.
    #[arg(long, value_name = "POLICY", requires = "placement", default_value = "greedy")]
    victim: VictimKind,
    /// Where the placements single and was put pages that GC moves.
    #[arg(long, value_name = "GROUP", requires = "placement", default_value = "coldest")]
    gc_group: GcGroup,
    /// Blocks as many as it takes, one collected after a write that leaves a larger share of garbage, such
    /// as 15%.
    #[arg(long, value_name = "PERCENT", value_parser = parse_garbage, requires = "placement")]
    garbage: Option<u32>,
    /// How it is known when a page was written.
    #[arg(long, value_enum, value_name = "HOW", requires = "placement", default_value = "stamps")]
    times: Known,
    /// With zipf: the pages of this share of the ranks are shuffled among each other again and again, such
    /// as 20%:1% for the hottest fifth whenever 1 % of the pages have been written; ranks are in the order
    /// of pages.
    #[arg(long, value_name = "SHARE:EVERY", value_parser = parse_moves, requires = "placement")]
    hot_moves: Option<Moves>,
}

/// How times are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Known {
    /// Of every page.
    Exact,
    /// The mean of its block, as elastic arrays have it.
    Stamps,
}

/// A hot set that moves, in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Moves {
    share: u32,
    every: u32,
}

fn parse_garbage(text: &str) -> Result<u32, String> {
    let permille = parse_permille(text)?;
    let percent = permille / 10;
    if permille.is_multiple_of(10) && (1..=90).contains(&percent) {
        Ok(percent)
    } else {
        Err(format!("found {text:?}, expected whole percent from 1% to 90%"))
    }
}

fn parse_moves(text: &str) -> Result<Moves, String> {
    let expected = || format!("found {text:?}, expected two shares such as 20%:1%");
    let (share, every) = text.split_once(':').ok_or_else(expected)?;
    let part = |text| parse_permille(text).ok().filter(|part| (1..=1000).contains(part)).ok_or_else(expected);
    Ok(Moves { share: part(share)?, every: part(every)? })
}

/// Runs it; what was counted. A trace in memory takes the place of the one that the workload names.
pub fn measure(
    arguments: &RunArguments,
    config: &SsdConfig,
    memory: Option<&Memory>,
) -> Result<Value, Failure> {
    check(arguments, config)?;
    let kind = arguments.placed.placement.unwrap_or(PlacementKind::Single);
    let (pages, mut writes) = match &arguments.workload {
        Source::Pattern(pattern) => {
            let pages = u32::try_from(config.logical_pages)?;
            (pages, Writes::Drawn(Drawn::new(*pattern, pages, arguments)))
        }
        Source::Trace(path) => match memory {
            Some(memory) => recorded(memory.requests.iter().copied().map(Ok), path)?,
            None => {
                recorded(TraceSequence::open(std::slice::from_ref(path), &ReadOptions::default())?, path)?
            }
        },
    };
    let options = PlacementOptions {
        tuning: Tuning { gc_group: arguments.placed.gc_group, seed: arguments.seed, ..Tuning::default() },
        ..PlacementOptions::new(kind, u64::from(pages))
    };
    let placement = options.build().map_err(|error| Failure::new(error.to_string()))?;
    let memory_bytes = placement.memory_bytes();
    let shape = shape(arguments, config, pages)?;
    let model = Model::new(&shape, placement, arguments.placed.victim.build());
    let mut model = model.map_err(|error| Failure::new(format!("--placement {kind}: {error}")))?;
    for page in 0..pages {
        model.write(page, Sequence::Random)?;
    }
    let share = |part: f64| drive_writes(part, pages);
    writes.give(share(arguments.warmup)?, &mut model)?;
    let before = model.counts();
    writes.give(share(arguments.drive_writes)?, &mut model)?;
    if arguments.check && !model.is_sound() {
        return Err(Failure::new(
            "a law of conservation is broken: the model's counts and its places differ",
        ));
    }
    Ok(report(arguments, &shape, model.counts().since(before), model.counts(), memory_bytes))
}

/// Pages of so many drive writes.
fn drive_writes(part: f64, pages: u32) -> Result<u64, Failure> {
    if !(0.0..=1e6).contains(&part) {
        return Err(Failure::new(format!("--warmup, --drive-writes: found {part}, expected 0 to 1000000")));
    }
    // Thousandths of a drive write are fine enough, and a number of them below 10^9 is exact.
    let thousandths = (0..30).rev().fold(0_u64, |sum, bit| {
        let next = sum | 1 << bit;
        if float(next) <= part * 1000.0 + 0.5 { next } else { sum }
    });
    Ok(thousandths * u64::from(pages) / 1000)
}

fn report(
    arguments: &RunArguments,
    shape: &ModelOptions,
    counted: Counts,
    all: Counts,
    memory_bytes: usize,
) -> Value {
    let amplification = |counts: Counts| {
        (counts.written > 0).then(|| float(counts.written + counts.copied) / float(counts.written))
    };
    let placed = &arguments.placed;
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "provenance": provenance::json(),
        "seed": arguments.seed,
        "placement": placed.placement.map(PlacementKind::name),
        "victim": placed.victim.name(),
        "warmup_drive_writes": arguments.warmup,
        "drive_writes": arguments.drive_writes,
        "logical_pages": shape.chunks,
        "pages_per_block": shape.unit_chunks,
        "blocks": match shape.space {
            Space::Units { count, .. } => Some(count),
            Space::Garbage { .. } => None,
        },
        "write_amplification": amplification(counted),
        "write_amplification_with_fill": amplification(all),
        "host_pages_written": counted.written,
        "page_copies": counted.copied,
        "gc_operations": counted.collected,
        "placement_memory_bytes": memory_bytes,
    })
}

/// The lines for people.
pub fn text(report: &Value) -> String {
    let keys = [
        "placement",
        "victim",
        "logical_pages",
        "blocks",
        "host_pages_written",
        "page_copies",
        "gc_operations",
        "placement_memory_bytes",
        "write_amplification",
        "write_amplification_with_fill",
    ];
    let line = |key: &&str| {
        let value = &report[*key];
        match (value.as_str(), value.as_f64().filter(|_| value.is_f64())) {
            (Some(text), _) => format!("{key:30} {text}"),
            (None, Some(number)) => format!("{key:30} {number:.3}"),
            (None, None) if value.is_null() => format!("{key:30} n/a"),
            (None, None) => format!("{key:30} {value}"),
        }
    };
    keys.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// What of the SSD means nothing here.
fn check(arguments: &RunArguments, config: &SsdConfig) -> Result<(), Failure> {
    let plain = SsdConfig::counting(config.logical_pages, 1.0, config.geometry.pages_per_block, 4096)?;
    let same = SsdConfig {
        geometry: config.geometry,
        free_blocks_min: config.free_blocks_min,
        seed: config.seed,
        ..plain
    };
    if *config != same || arguments.parity_writes != 0.0 || arguments.utilization != 1.0 {
        return Err(Failure::new(
            "--placement: found options of streams, timing, mapping, wear, convertible cells, presets, --gc or parity beside it, \
             expected sizes and --victim only: pages are placed in counts",
        ));
    }
    if arguments.placed.garbage.is_some() && arguments.placed.placement == Some(PlacementKind::Midas) {
        return Err(Failure::new(
            "--garbage: found with --placement midas, which shares out a fixed space among its groups",
        ));
    }
    let is_zipf = matches!(arguments.workload, Source::Pattern(Pattern::Zipf(_)));
    if arguments.placed.hot_moves.is_some() && !is_zipf {
        return Err(Failure::new("--hot-moves: found without --workload zipf:THETA, which alone has ranks"));
    }
    Ok(())
}

/// The space of a fixed number of blocks keeps its share where a trace's footprint says the logical size.
fn shape(arguments: &RunArguments, config: &SsdConfig, pages: u32) -> Result<ModelOptions, Failure> {
    let unit_chunks = config.geometry.pages_per_block;
    let space = match arguments.placed.garbage {
        Some(percent) => Space::Garbage { percent },
        None if u64::from(pages) == config.logical_pages => {
            Space::Units { count: config.geometry.blocks(), free: config.free_blocks_min }
        }
        None => {
            let scaled = SsdConfig::counting(
                u64::from(pages),
                config.spare(),
                unit_chunks,
                config.geometry.page_bytes,
            )?;
            let free = config.free_blocks_min;
            Space::Units { count: scaled.geometry.blocks() - scaled.free_blocks_min + free, free }
        }
    };
    let times = match arguments.placed.times {
        Known::Exact => Times::Exact,
        Known::Stamps => Times::Stamps,
    };
    Ok(ModelOptions { chunks: pages, unit_chunks, space, times })
}

/// Where writes come from.
enum Writes {
    Drawn(Drawn),
    /// A trace again and again: for each request its pages, numbered without those that it never writes.
    Recorded {
        requests: Vec<Vec<u32>>,
        next: usize,
    },
}

impl Writes {
    fn give(&mut self, pages: u64, model: &mut Model) -> Result<(), Failure> {
        match self {
            Self::Drawn(drawn) => {
                for _ in 0..pages {
                    model.write(drawn.next(), Sequence::Random)?;
                }
            }
            Self::Recorded { requests, next } => {
                let mut written = 0;
                let mut end = None;
                while written < pages {
                    let request = &requests[*next];
                    *next = (*next + 1) % requests.len();
                    let continues = end.is_some() && end == request.first().copied();
                    let sequence = if continues { Sequence::Continues } else { Sequence::Random };
                    for &page in request {
                        model.write(page, sequence)?;
                        written += 1;
                        end = Some(page + 1);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The writes of a trace, and how many pages it writes.
fn recorded(
    given: impl Iterator<Item = Result<Request, TraceError>>,
    path: &Path,
) -> Result<(u32, Writes), Failure> {
    const PAGE_BYTES: u64 = 4096;
    let mut places = BTreeMap::new();
    let mut ranges = Vec::new();
    for request in given {
        let request = request?;
        if request.op == Op::Write {
            let pages = request.chunks(PAGE_BYTES);
            places.extend(pages.clone().map(|page| ((request.dev, page), 0_u32)));
            ranges.push((request.dev, pages));
        }
    }
    for (number, place) in (0..).zip(places.values_mut()) {
        *place = number;
    }
    let number = |dev, page| places.get(&(dev, page)).copied();
    let requests: Vec<Vec<u32>> = ranges
        .into_iter()
        .map(|(dev, pages)| pages.filter_map(|page| number(dev, page)).collect::<Vec<u32>>())
        .filter(|pages| !pages.is_empty())
        .collect();
    if requests.is_empty() {
        return Err(Failure::new(format!("{}: found no writes, expected some", path.display())));
    }
    Ok((u32::try_from(places.len())?, Writes::Recorded { requests, next: 0 }))
}

/// Pages drawn by rank.
struct Drawn {
    /// Share of the writes that go to this rank or a hotter one; empty for uniform ones.
    ranks: Vec<f64>,
    pages: Vec<u32>,
    random: XoshiroPlusPlus,
    /// Ranks that are shuffled, whenever so many pages were drawn.
    moves: Option<(usize, u64)>,
    drawn: u64,
}

impl Drawn {
    fn new(pattern: Pattern, count: u32, arguments: &RunArguments) -> Self {
        let mut random = XoshiroPlusPlus::new(arguments.seed);
        let mut pages: Vec<u32> = (0..count).collect();
        let part = |permille: u32| u64::from(count) * u64::from(permille) / 1000;
        let moves = arguments.placed.hot_moves.map(|moves| {
            (usize::try_from(part(moves.share)).unwrap_or(usize::MAX), part(moves.every).max(1))
        });
        if moves.is_none() {
            shuffle(&mut pages, &mut random);
        }
        let ranks = match pattern {
            Pattern::Uniform => Vec::new(),
            Pattern::Zipf(theta) => {
                let mut sum = 0.0;
                let mut ranks: Vec<f64> = Vec::with_capacity(pages.len());
                for rank in 1..=count {
                    sum += f64::from(rank).powf(-theta);
                    ranks.push(sum);
                }
                ranks.iter_mut().for_each(|share| *share /= sum);
                ranks
            }
        };
        Self { ranks, pages, random, moves, drawn: 0 }
    }

    fn next(&mut self) -> u32 {
        if let Some((hot, every)) = self.moves
            && self.drawn > 0
            && self.drawn.is_multiple_of(every)
        {
            shuffle(&mut self.pages[..hot], &mut self.random);
        }
        self.drawn += 1;
        if self.ranks.is_empty() {
            return self.pages[self.random.index(self.pages.len())];
        }
        let part = float(self.random.word() >> 11) / float(1 << 53);
        let rank = self.ranks.partition_point(|&share| share < part);
        self.pages[rank.min(self.pages.len() - 1)]
    }
}

fn shuffle(pages: &mut [u32], random: &mut XoshiroPlusPlus) {
    for place in (1..pages.len()).rev() {
        pages.swap(place, random.index(place + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_and_refused() {
        assert_eq!(parse_garbage("15%"), Ok(15));
        assert_eq!(parse_moves("20%:1%"), Ok(Moves { share: 200, every: 10 }));
        for bad in ["", "0%", "15.5%", "91%", "x"] {
            assert!(parse_garbage(bad).is_err(), "{bad}");
        }
        for bad in ["", "20%", "0%:1%", "20%:x"] {
            assert!(parse_moves(bad).is_err(), "{bad}");
        }
    }
}
