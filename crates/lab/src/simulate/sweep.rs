//! Many runs: side by side on all processors, one line of results.csv per cell, in one table.
//!
//! A cell is known by a hash of everything that it depends on: the build of the program, options, trace.

use super::effect;
use super::figures::{Figures, NAMES, Row, number};
use super::grid::{Axis, Cell, axes, cells, refuse_scheme};
use super::picture::Picture;
use super::rig::simulate;
use super::store::Store;
use super::{Arguments, SsdChoices, StreamChoices};
use crate::Exit;
use crate::drive::load::{Loaded, Memory};
use crate::failure::Failure;
use crate::provenance;
use crate::subject::choices::ArrayChoices;
use crate::terms::{ACCOUNTS, Terms};
use crate::watch::Shown;
use comfy_table::{CellAlignment, Table, presets};
use format::SchemeKind;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use node::output;
use node::units::show_count;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs all cells and prints their table.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let axes = axes(arguments);
    let picture = Picture::new(arguments, &axes)?;
    let line: Vec<OsString> = std::env::args_os().skip(2).collect();
    let Found { rows, terms, seeds } = found(arguments, &axes, &line, None, Shown::Progress)?;
    if arguments.json {
        output::line(format_args!("{:#}", json(&axes, &rows, &terms)));
    } else {
        output::line(table(&axes, &rows));
        terms.iter().chain(&seeds).for_each(output::line);
        output::line(format_args!("made by {}", provenance::text()));
    }
    picture.draw(&axes, &rows)?;
    Ok(0)
}

/// Runs all cells in another program, over a trace in memory if there is one; their table as JSON.
pub fn embedded(
    arguments: &Arguments,
    line: &[OsString],
    memory: Option<&Memory>,
    shown: Shown<'_>,
) -> Result<Value, Failure> {
    let axes = axes(arguments);
    if memory.is_some() && axes.iter().any(|axis| axis.option == "trace") {
        return Err(Failure::new("--sweep trace: found a trace in memory, expected files"));
    }
    let found = found(arguments, &axes, line, memory, shown)?;
    Ok(json(&axes, &found.rows, &found.terms))
}

/// What cells came to.
struct Found {
    rows: Vec<Row>,
    terms: Vec<String>,
    seeds: Option<String>,
}

fn found(
    arguments: &Arguments,
    axes: &[Axis],
    line: &[OsString],
    memory: Option<&Memory>,
    shown: Shown<'_>,
) -> Result<Found, Failure> {
    let mut cells = cells(axes, line)?;
    refuse_scheme(axes, line)?;
    effect::check_grid(arguments, &cells)?;
    refuse_own_terms(arguments, axes, &cells)?;
    let equal = if arguments.cells.own_terms || axes.iter().any(|axis| axis.option == "sync") {
        None
    } else {
        put_on_equal_terms(&mut cells)
    };
    if let Some(shard) = arguments.cells.shard {
        let mut index = 0;
        cells.retain(|_| {
            index += 1;
            shard.has(index - 1)
        });
    }
    let traces = Traces { memory, shown, loaded: Mutex::default() };
    let mut keyed = Vec::new();
    for cell in cells {
        shown.check()?;
        let key = key(&cell.arguments, &*traces.of(&cell.arguments)?);
        keyed.push((key, cell));
    }
    let store = match &arguments.cells.out {
        Some(folder) => Some(Store::open(folder, axes, arguments.cells.shard)?),
        None => None,
    };
    let count = u64::try_from(keyed.len())?;
    shown.begin("cells", count)?;
    let board = Board { store: store.map(Mutex::new), bar: bar(count, shown), shown };
    let found = work(arguments, &keyed, &traces, &board);
    board.bar.finish_and_clear();
    let (keys, cells): (Vec<String>, Vec<Cell>) = keyed.into_iter().unzip();
    let terms = equal.into_iter().chain(terms(&cells, arguments.cells.own_terms)).collect();
    let seeds = seeds_without_effect(axes, &cells, line);
    let rows = rows(cells.into_iter().zip(found?), arguments.cells.baseline);
    if let Some(store) = board.store {
        let lifespans = rows.iter().map(|row| row.lifespan);
        let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
        store.finish(&keys.iter().map(String::as_str).zip(lifespans).collect::<Vec<_>>())?;
    }
    Ok(Found { rows, terms, seeds })
}

/// Traces that were read, by how; each is read once.
struct Traces<'a> {
    /// Read already, and the only one.
    memory: Option<&'a Memory>,
    shown: Shown<'a>,
    loaded: Mutex<HashMap<String, Arc<Loaded>>>,
}

impl Traces<'_> {
    fn of(&self, arguments: &Arguments) -> Result<Arc<Loaded>, Failure> {
        let how = format!("{:?} {}", arguments.trace, arguments.chunk_size);
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = loaded.get(&how) {
            return Ok(Arc::clone(found));
        }
        let fresh = Arc::new(arguments.trace.load_or(self.memory, arguments.chunk_size, self.shown)?);
        loaded.insert(how, Arc::clone(&fresh));
        Ok(fresh)
    }
}

/// What a cell is known by.
fn key(arguments: &Arguments, loaded: &Loaded) -> String {
    // How cells are run is no part of what they are; nor is where the trace lies.
    let Arguments {
        trace,
        array,
        chunk_size,
        ssds,
        log_device: _,
        untimed,
        streaming,
        fill,
        queue_depth: _,
        timed,
        speed,
        buffers,
        seed,
        recovery,
        check: _,
        cells: _,
        rows: _,
        plot: _,
        json: _,
    } = arguments;
    let SsdChoices { ssd, ssd_size, ssd_gc, mapping_cache, endurance, prefill, utilization } = ssds;
    let StreamChoices { streams, stream_limit, parity_classes, slc_cap, stress_ratio } = streaming;
    let ArrayChoices {
        geometry,
        scheme,
        code,
        layout,
        consistency,
        log_devices,
        device_size,
        commit_every,
        sync,
        rewrites,
        cache,
        elastic,
        unit,
    } = array;
    let text = format!(
        "{} {:016x} of {} {} {geometry} {scheme} {code:?} {layout:?} {consistency:?} {log_devices:?} {device_size:?} {chunk_size} {ssd} {ssd_size:?} \
         {ssd_gc:?} {mapping_cache:?} {endurance:?} {} {untimed} {streams:?} {stream_limit:?} {parity_classes:?} {slc_cap:?} {stress_ratio} {prefill} \
         {utilization} {fill} {} {timed} {speed} {commit_every:?} {sync} {rewrites:?} {buffers:?} {cache:?} {elastic:?} {unit:?} {seed} {recovery:?}",
        provenance::build(),
        loaded.hash(),
        // Of a head of a trace, the volume is that of the whole.
        loaded.footprint_bytes,
        trace.sectors,
        arguments.log_preset(),
        arguments.depth(),
    );
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Where workers report.
struct Board<'a> {
    store: Option<Mutex<Store>>,
    bar: ProgressBar,
    shown: Shown<'a>,
}

impl<'a> Board<'a> {
    /// How far each cell is is not told.
    fn in_cells(&self) -> Shown<'a> {
        self.shown.watch().map_or(Shown::Nothing, Shown::Stoppable)
    }
}

fn bar(cells: u64, shown: Shown<'_>) -> ProgressBar {
    let target = if shown.watch().is_none() && std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr_with_hz(5)
    } else {
        ProgressDrawTarget::hidden()
    };
    let template = "cells [{bar:40}] {pos}/{len}, {eta} left";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(cells), target).with_style(style)
}

/// Runs the cells that are not known yet; the first failure ends it when the cells under way have ended.
fn work(
    arguments: &Arguments,
    cells: &[(String, Cell)],
    traces: &Traces<'_>,
    board: &Board<'_>,
) -> Result<Vec<Figures>, Failure> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.cells.jobs.map_or(processors, |jobs| jobs as usize).min(cells.len().max(1));
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let found: Vec<Mutex<Option<Figures>>> = cells.iter().map(|_| Mutex::new(None)).collect();
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((key, cell)) = cells.get(index) else { break };
            let known = board
                .store
                .as_ref()
                .and_then(|store| store.lock().unwrap_or_else(PoisonError::into_inner).known(key));
            let figures = match known {
                Some(figures) => Ok(figures),
                None => one(key, cell, traces, board),
            };
            match figures {
                Ok(figures) => *found[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(figures),
                Err(failure) => {
                    next.store(cells.len(), Ordering::Relaxed);
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
                }
            }
            board.bar.inc(1);
            if let Some(watch) = board.shown.watch() {
                watch.step();
            }
        }
    };
    std::thread::scope(|scope| {
        (0..jobs).for_each(|_| {
            scope.spawn(worker);
        });
    });
    if let Some(failure) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(failure);
    }
    let figures =
        found.into_iter().filter_map(|cell| cell.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(figures.collect())
}

fn one(key: &str, cell: &Cell, traces: &Traces<'_>, board: &Board<'_>) -> Result<Figures, Failure> {
    let loaded = traces.of(&cell.arguments)?;
    let what = |failure: Failure| Failure::new(format!("cell {}: {failure}", cell.values.join(",")));
    let outcome = simulate(&cell.arguments, &loaded, board.in_cells()).map_err(what)?;
    let figures = outcome.figures();
    if let Some(store) = &board.store {
        let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
        store.add(key, cell, &outcome.to_json(), &figures)?;
    }
    if board.bar.is_hidden() && board.shown.watch().is_none() {
        output::warn(format_args!(
            "{}: {} requests in {:.1} virtual s, {:.1} s of processor time",
            cell.values.join(" "),
            show_count(figures.get("requests") as u64),
            figures.get("virtual_seconds"),
            outcome.cpu_seconds
        ));
    }
    Ok(figures)
}

/// The baseline of a cell is the one that differs from it in the scheme alone.
fn rows(cells: impl Iterator<Item = (Cell, Figures)>, baseline: Option<SchemeKind>) -> Vec<Row> {
    let cells: Vec<(Cell, Figures)> = cells.collect();
    let baseline = baseline.or_else(|| cells.first().map(|(cell, _)| cell.arguments.array.scheme));
    let others = |cell: &Cell| -> Vec<String> {
        let name = cell.arguments.array.scheme.to_string();
        cell.values.iter().filter(|value| **value != name).cloned().collect()
    };
    let lifespan = |cell: &Cell, figures: &Figures| {
        let same = |(other, _): &&(Cell, Figures)| {
            Some(other.arguments.array.scheme) == baseline && others(other) == others(cell)
        };
        let (_, base) = cells.iter().find(same)?;
        let wear = figures.get("wear_max");
        (wear > 0.0).then(|| base.get("wear_max") / wear)
    };
    cells
        .iter()
        .map(|(cell, figures)| Row {
            values: cell.values.clone(),
            figures: figures.clone(),
            lifespan: lifespan(cell, figures),
        })
        .collect()
}

/// Says so where repetitions under other seeds must come out alike: nothing in them is left to chance.
fn seeds_without_effect(axes: &[Axis], cells: &[Cell], line: &[OsString]) -> Option<String> {
    if line.iter().any(|word| word.to_string_lossy().contains("{seed}")) {
        return None;
    }
    let swept = axes.iter().any(|axis| axis.option == "seed" && axis.values.len() > 1);
    let mut alike: Vec<&str> = Vec::new();
    for cell in cells.iter().filter(|cell| !cell.arguments.has_chance()) {
        if !alike.contains(&cell.arguments.array.scheme.name()) {
            alike.push(cell.arguments.array.scheme.name());
        }
    }
    (swept && !alike.is_empty()).then(|| {
        format!(
            "seed: nothing is left to chance under {}, so all seeds give the same; make a trace for each seed and name it with \
             {{seed}}, as in --trace zipf-{{seed}}.csv",
            alike.join(", ")
        )
    })
}

/// Where some cells would acknowledge from memory and others cannot, none does; what is said of it.
fn put_on_equal_terms(cells: &mut [Cell]) -> Option<String> {
    let line = acknowledged(cells).equalized("--own-terms runs each scheme as it is served.")?;
    cells.iter_mut().for_each(|cell| cell.arguments.array.sync = true);
    Some(line)
}

/// Refuses to leave terms as they are where nothing would change them.
fn refuse_own_terms(arguments: &Arguments, axes: &[Axis], cells: &[Cell]) -> Result<(), Failure> {
    if !arguments.cells.own_terms {
        return Ok(());
    }
    let why = if axes.iter().any(|axis| axis.option == "sync") {
        "found beside --sweep sync, which says when each run acknowledges writes"
    } else if arguments.array.sync {
        "found beside --sync, with which all runs acknowledge what is durable"
    } else if acknowledged(cells).equalized("").is_none() {
        "found no runs that acknowledge writes otherwise than the others"
    } else {
        return Ok(());
    };
    Err(Failure::new(format!("--own-terms: {why}; leave it out")))
}

/// When the schemes of the cells acknowledge a write.
fn acknowledged(cells: &[Cell]) -> Terms {
    let mut terms = Terms::default();
    for cell in cells {
        terms.add(cell.arguments.array.scheme.name(), cell.arguments.answers_from_memory());
    }
    terms
}

/// What differs between the rows beside what their columns say.
fn terms(cells: &[Cell], own_terms: bool) -> Vec<String> {
    let line = acknowledged(cells).line(match own_terms {
        true => "Without --own-terms all of them acknowledge what is durable.",
        false => "Compare only rows that acknowledge what is durable: `sync` is swept.",
    });
    line.into_iter().chain([ACCOUNTS.to_owned()]).collect()
}

fn json(axes: &[Axis], rows: &[Row], terms: &[String]) -> Value {
    let row = |row: &Row| {
        let mut map = Map::new();
        for (axis, value) in axes.iter().zip(&row.values) {
            map.insert(axis.option.clone(), value.clone().into());
        }
        for (name, value) in NAMES.iter().zip(row.figures.values()) {
            map.insert((*name).to_owned(), number(*value));
        }
        map.insert("lifespan".to_owned(), row.lifespan.into());
        Value::Object(map)
    };
    let mut map = Map::new();
    map.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    map.insert("provenance".to_owned(), provenance::json());
    map.insert("notes".to_owned(), terms.into());
    map.insert("cells".to_owned(), Value::Array(rows.iter().map(row).collect()));
    Value::Object(map)
}

/// Columns of the table: heading, figure, digits behind the point.
const COLUMNS: [(&str, &str, usize); 15] = [
    ("absorbed", "absorbed_share", 3),
    ("SSD chunks", "ssd_chunks_written", 0),
    ("log chunks", "log_chunks_written", 0),
    ("copies", "page_copies", 0),
    ("GC ops/SSD with fill", "gc_operations_mean_with_fill", 1),
    ("erases/SSD", "erases_mean", 1),
    ("RAID WA", "raid_write_amplification", 3),
    ("of it metadata", "metadata_write_amplification", 3),
    ("x device", "device_write_amplification", 3),
    ("= WA", "write_amplification", 3),
    ("log WA", "log_write_amplification", 3),
    ("requests/s", "requests_per_second", 0),
    ("mean us", "latency_us_mean", 1),
    ("p99 us", "latency_us_p99", 1),
    ("p99.9 us", "latency_us_p999", 1),
];

fn table(axes: &[Axis], rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let names = axes.iter().map(|axis| axis.option.as_str());
    table.set_header(names.chain(COLUMNS.map(|(name, ..)| name)).chain(["lifespan"]));
    for row in rows {
        let show = |(_, figure, digits): (&str, &str, usize)| row.figures.show(figure, digits);
        let lifespan = row.lifespan.map_or_else(|| "-".to_owned(), |lifespan| format!("{lifespan:.2}"));
        table.add_row(row.values.iter().cloned().chain(COLUMNS.map(show)).chain([lifespan]));
    }
    let skip = axes.len();
    table.column_iter_mut().skip(skip).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.trim_fmt()
}
