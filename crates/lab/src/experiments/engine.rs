//! How a cell is run: by the library's own commands, with their words as options.

use super::cells::Cell;
use super::declare::{Engine, Workload};
use super::loads::Loads;
use super::parity_cache::ParityCache;
use super::view::Figures;
use crate::drive::load::{Loaded, Memory, TraceOptions, hash};
use crate::failure::Failure;
use crate::misuse::in_a_line;
use crate::number::float;
use crate::{flash, keys, replay, simulate};
use block::Lcn;
use clap::{Args, Command, FromArgMatches};
use placement::{Class, Glru, GlruOptions, Placement as _, Sequence, UserWrite, Was};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use trace::{Op, PrepareOptions, Request, StatsCollector, StatsOptions, compare, prepare_slice};

/// What says how long the machine took, and where: no part of what a cell comes to.
const NOT_COUNTED: [&str; 13] = [
    "seconds",
    "requests_per_second",
    "latency_us",
    "provenance",
    "config",
    "memory",
    "cpu_seconds",
    "flash_pages_written_per_cpu_second",
    "seed",
    "version",
    "synthetic",
    "series",
    "verify",
];

/// Of each device, what it was given.
const OF_DEVICES: [&str; 4] =
    ["data_chunks_written", "parity_chunks_written", "log_chunks_written", "metadata_bytes_written"];

/// Of the fill, beside its sums.
const OF_FILL: [&str; 2] = ["metadata_write_amplification", "checkpoint_at_end.main_bytes_written"];

/// Runs a cell; what it counted, and the hash of the requests that it was given.
pub fn run(cell: &Cell, loads: &Loads) -> Result<(Figures, Option<u64>), Failure> {
    let run = Run { cell, loads, hash: std::cell::Cell::new(None) };
    let figures = run.count()?;
    Ok((figures, run.hash.get()))
}

/// A cell that is run.
struct Run<'a> {
    cell: &'a Cell,
    loads: &'a Loads,
    /// Of the requests that were asked for.
    hash: std::cell::Cell<Option<u64>>,
}

impl Run<'_> {
    fn count(&self) -> Result<Figures, Failure> {
        let cell = self.cell;
        match cell.engine {
            Engine::Simulate => {
                let arguments: simulate::Arguments = parse("simulate", cell)?;
                let named =
                    simulate::measure(&arguments, |trace, chunk_bytes| self.prepared(trace, chunk_bytes))?;
                Ok(named.into_iter().collect())
            }
            Engine::Replay => {
                let arguments: replay::Arguments = parse("replay", cell)?;
                let counted =
                    replay::measure(&arguments, |trace, chunk_bytes| self.prepared(trace, chunk_bytes))?;
                Ok(numbers(&counted))
            }
            Engine::Flash => {
                let arguments: flash::RunArguments = parse("flash run", cell)?;
                let given = cell.load.map(|_| self.requests()).transpose()?;
                let memory = given.map(|(requests, name)| Memory { requests, name, synthetic: None });
                Ok(numbers(&flash::measure(&arguments, memory.as_ref())?))
            }
            Engine::Store => {
                let arguments: keys::Arguments = parse("kv bench", cell)?;
                Ok(keys::figures(&arguments)?.into_iter().collect())
            }
            Engine::Statistics => statistics(cell, self.load()?),
            Engine::Disks => self.disks(),
            Engine::FreePlacement => self.free_placement(),
            Engine::Stripes => self.stripes(),
            Engine::ParityCache => self.parity_cache(),
            Engine::Hotness => self.hotness(),
            Engine::Reckoned(compute) => {
                let words: Vec<&str> = cell.words.iter().map(String::as_str).collect();
                compute(&words)
            }
        }
    }

    fn load(&self) -> Result<&'static Workload, Failure> {
        self.cell
            .load
            .ok_or_else(|| Failure::new(format!("{}: found no load, expected one", self.cell.key.grid)))
    }

    /// The load's requests, and what they are.
    fn requests(&self) -> Result<(Vec<Request>, String), Failure> {
        let (requests, said) = self.load()?.requests(self.cell.scale, self.cell.seed)?;
        self.hash.set(Some(hash(&requests)));
        Ok((requests, said))
    }

    /// The load, prepared as the options say.
    fn prepared(&self, trace: &TraceOptions, chunk_bytes: u64) -> Result<Arc<Loaded>, Failure> {
        let at = (self.cell.scale, self.cell.seed);
        let (loaded, hash) = self.loads.get(self.load()?, at, trace, chunk_bytes)?;
        self.hash.set(Some(hash));
        Ok(loaded)
    }

    /// Pages written to each of the data disks of an array whose parity is on one disk, and to that one. The
    /// words are the number of data disks and the bytes of a page.
    fn disks(&self) -> Result<Figures, Failure> {
        let [count, page] = two_numbers(self.cell, "a number of disks and bytes of a page")?;
        let (requests, _) = self.requests()?;
        let mut disks = vec![0_u64; usize::try_from(count)?];
        let mut parity = 0_u64;
        for request in requests.iter().filter(|request| request.op == Op::Write) {
            let pages = request.chunks(page);
            parity += pages.end.div_ceil(count) - pages.start / count;
            for page in pages {
                let disk = usize::try_from(page % count)?;
                disks[disk] += 1;
            }
        }
        let mut figures: Figures = disks
            .iter()
            .enumerate()
            .map(|(disk, &pages)| (format!("data{disk}_pages"), float(pages)))
            .collect();
        let sum = float(disks.iter().sum());
        figures.insert("parity_pages".to_owned(), float(parity));
        figures.insert("parity_times_mean".to_owned(), float(parity) * float(count) / sum.max(1.0));
        Ok(figures)
    }

    /// Parity chunks written if the parity of the stripes written last stays in memory, and what that puts at
    /// risk (L-16). The words are data and parity chunks of a stripe, and how many stripes that are.
    fn parity_cache(&self) -> Result<Figures, Failure> {
        let [columns, parities, room] =
            numbers_of(self.cell, "data and parity chunks of a stripe, and stripes")?;
        let (requests, _) = self.requests()?;
        let options = PrepareOptions::default();
        let mut cache = ParityCache::new(columns.max(1), parities, usize::try_from(room)?);
        for request in prepare_slice(&requests, &options)? {
            cache.write(request?.chunks(options.chunk_bytes));
        }
        Ok(cache.end())
    }

    /// Log and parity chunks of new writes whose chunks may go to any device: of a request whole
    /// stripes are written as such, the rest takes one log stripe, and in the end all chunks lie in full
    /// stripes. With a buffer of stripes all but what is in it at the end are whole. The words are data and
    /// parity chunks of a stripe.
    fn free_placement(&self) -> Result<Figures, Failure> {
        let [columns, parities] = two_numbers(self.cell, "data and parity chunks of a stripe")?;
        let (requests, _) = self.requests()?;
        let (mut chunks, mut rests) = (0_u64, 0_u64);
        for request in prepare_slice(&requests, &PrepareOptions::default())? {
            let touched = request?.chunks(PrepareOptions::default().chunk_bytes);
            let count = touched.end - touched.start;
            chunks += count;
            rests += u64::from(!count.is_multiple_of(columns));
        }
        Ok([
            ("chunks".to_owned(), float(chunks)),
            ("log_chunks".to_owned(), float(parities * rests)),
            ("parity_chunks".to_owned(), float(parities * chunks.div_ceil(columns))),
        ]
        .into())
    }

    /// Distinct stripes that each whole interval of writes touches, summed up: what a commit after each
    /// interval has to write parity of. The words are the data chunks of a stripe and the writes of an
    /// interval.
    fn stripes(&self) -> Result<Figures, Failure> {
        let [columns, every] = two_numbers(self.cell, "chunks of a stripe and writes of an interval")?;
        let (requests, _) = self.requests()?;
        let options = PrepareOptions::default();
        let (mut distinct, mut intervals, mut writes) = (0_usize, 0_u64, 0_u64);
        let mut seen = HashSet::new();
        for request in prepare_slice(&requests, &options)? {
            let chunks = request?.chunks(options.chunk_bytes);
            seen.extend(chunks.map(|chunk| chunk / columns));
            writes += 1;
            if writes == every {
                distinct += seen.len();
                intervals += 1;
                writes = 0;
                seen.clear();
            }
        }
        let distinct = float(u64::try_from(distinct)?);
        Ok([("stripes".to_owned(), distinct), ("intervals".to_owned(), float(intervals))].into())
    }

    /// What WAS's table (GLRU, W-06 to W-12; 128 lists of 8, threshold 2, probability 1/2) calls hot of the
    /// first writes, and what it would if they knew nothing of each other: an item comes in with half of
    /// its chunk's share of the writes and stays for twice as many writes as there are items, so of all
    /// writes the items times the sum of squared shares are found. What is beyond that is temporal
    /// locality. The word is the number of writes.
    fn hotness(&self) -> Result<Figures, Failure> {
        let count = self.cell.words.first().and_then(|word| word.parse::<usize>().ok());
        let count = count.ok_or_else(|| {
            Failure::new(format!("found {:?}, expected a number of writes", self.cell.words))
        })?;
        let options = GlruOptions { seed: self.cell.seed, ..GlruOptions::default() };
        let items = float(u64::from(options.lists) * u64::from(options.items_per_list));
        let mut policy = Was::new(Glru::new(options)?);
        let (requests, _) = self.requests()?;
        // Of each chunk: its writes, and those that were called hot.
        let mut seen: HashMap<u64, (u64, u64)> = HashMap::new();
        let (mut now, mut end) = (0, None);
        for request in prepare_slice(&requests, &PrepareOptions::default())?.take(count) {
            let chunks = request?.chunks(PrepareOptions::default().chunk_bytes);
            let sequence = if end == Some(chunks.start) { Sequence::Continues } else { Sequence::Random };
            end = Some(chunks.end);
            for chunk in chunks {
                let write = UserWrite { lcn: Lcn::new(chunk), sequence, now, previous: None };
                let (writes, hot) = seen.entry(chunk).or_default();
                *hot += u64::from(policy.place_user(write) == Class::new(0));
                *writes += 1;
                now += 1;
            }
        }
        let mut by_writes: Vec<(u64, u64)> = seen.into_values().collect();
        by_writes.sort_unstable_by(|one, other| other.cmp(one));
        let hot: u64 = by_writes.iter().map(|(_, hot)| hot).sum();
        let (top, top_hot) = by_writes
            .iter()
            .take(by_writes.len() / 5)
            .fold((0, 0), |(writes, hot), (more, more_hot)| (writes + more, hot + more_hot));
        let all = float(now);
        let squares: f64 = by_writes.iter().map(|&(writes, _)| (float(writes) / all).powi(2)).sum();
        let percent = |part: u64, whole: u64| 100.0 * float(part) / float(whole.max(1));
        let figures = [
            ("chunk_writes", all),
            ("hot_percent", percent(hot, now)),
            ("by_chance_percent", 100.0 * items * squares),
            ("hot_in_top_fifth_percent", percent(top_hot, hot)),
            ("top_fifth_called_hot_percent", percent(top_hot, top)),
        ];
        Ok(figures.map(|(name, value)| (name.to_owned(), value)).into())
    }
}

/// The options of a command from a cell's words.
fn parse<A: Args + FromArgMatches>(command: &'static str, cell: &Cell) -> Result<A, Failure> {
    let seed = ["--seed".to_owned(), cell.seed.to_string()];
    let words = cell.words.iter().cloned().chain(seed);
    let parser = A::augment_args(Command::new(command).no_binary_name(true));
    let wrong = |error: clap::Error| {
        let (grid, words) = (&cell.key.grid, cell.words.join(" "));
        Failure::new(format!("{grid}: {command} {words}: {}", in_a_line(&error)))
    };
    let matches = parser.try_get_matches_from(words).map_err(wrong)?;
    A::from_arg_matches(&matches).map_err(wrong)
}

/// All numbers of an object that depend on nothing but the inputs, named by their way; of the fill the sums
/// only.
fn numbers(counted: &Value) -> Figures {
    let mut found = Figures::new();
    collect(counted, "", &mut found);
    found.retain(|name, _| {
        let is_wanted_of_device = || OF_DEVICES.iter().any(|wanted| name.ends_with(wanted));
        match name.split_once('.') {
            Some(("fill", rest)) => rest.starts_with("totals.") || OF_FILL.contains(&rest),
            Some(("devices", _)) => is_wanted_of_device(),
            Some(_) | None => true,
        }
    });
    found
}

fn collect(value: &Value, name: &str, found: &mut Figures) {
    let below = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Value::Number(number) => {
            found.extend(number.as_f64().map(|number| (name.to_owned(), number)));
        }
        Value::Object(map) => {
            for (key, value) in map.iter().filter(|(key, _)| !NOT_COUNTED.contains(&key.as_str())) {
                collect(value, &below(key), found);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                collect(value, &below(&index.to_string()), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The figures that papers print of a load: reached, printed, and how far apart in percent.
fn statistics(cell: &Cell, load: &Workload) -> Result<Figures, Failure> {
    let mut generator = load.generator(cell.scale, cell.seed)?;
    let label = *generator.label();
    let mut collector = StatsCollector::new(StatsOptions::default())?;
    for request in &mut generator {
        collector.add(&request)?;
    }
    let (stats, comparisons) = compare(&label, collector);
    let mut figures = Figures::new();
    figures.insert("chunk_writes".to_owned(), float(stats.chunk_write_count));
    figures.insert("unique_chunks".to_owned(), float(stats.unique_chunk_count));
    figures.insert("top_fifth_percent".to_owned(), stats.top_fifth_percent());
    let mut worst: f64 = 0.0;
    for comparison in comparisons.into_iter().flatten() {
        let name = format!("{} ({})", comparison.target.statistic.name(), comparison.target.source.name());
        figures.insert(format!("{name}: reached"), comparison.reached);
        figures.insert(format!("{name}: printed"), comparison.target.value);
        worst = worst.max(comparison.deviation_percent.abs());
    }
    figures.insert("largest deviation".to_owned(), worst);
    Ok(figures)
}

/// Two positive numbers, which are the words.
fn two_numbers(cell: &Cell, expected: &str) -> Result<[u64; 2], Failure> {
    let numbers = numbers_of(cell, expected)?;
    if numbers.contains(&0) { Err(wrong_words(cell, expected)) } else { Ok(numbers) }
}

fn wrong_words(cell: &Cell, expected: &str) -> Failure {
    Failure::new(format!("found {:?}, expected {expected}", cell.words.join(" ")))
}

/// So many numbers, which are the words.
fn numbers_of<const COUNT: usize>(cell: &Cell, expected: &str) -> Result<[u64; COUNT], Failure> {
    let numbers = cell.words.iter().map(|word| word.parse::<u64>().ok());
    let numbers = numbers.collect::<Option<Vec<u64>>>().and_then(|numbers| numbers.try_into().ok());
    numbers.ok_or_else(|| wrong_words(cell, expected))
}
