//! The cells of grids: every combination of their axes, each with all that it depends on.

use super::declare::{Engine, Experiment, Grid, Source, Workload};
use super::loads::ssd_mib;
use super::scale::Scale;
use super::view::{Key, Label};
use crate::failure::Failure;
use std::collections::BTreeSet;

/// A cell: a pure function of what is in it.
pub struct Cell {
    /// Which one.
    pub key: Key,
    /// What runs it.
    pub engine: Engine,
    /// What is replayed.
    pub load: Option<&'static Workload>,
    /// The options.
    pub words: Vec<String>,
    /// Seed of load and run.
    pub seed: u64,
    /// Length of the load.
    pub scale: Scale,
}

impl Cell {
    /// All that its figures depend on, but the program, as a line.
    pub fn inputs(&self) -> String {
        let load = self.load.map_or_else(|| "nothing".to_owned(), Workload::inputs);
        let (engine, words) = (self.engine.name(), self.words.join(" "));
        format!("{engine} {words}; load {load}; scale {}; seed {}", self.scale, self.seed)
    }
}

/// The grids of some experiments, each once.
pub fn grids<'a>(experiments: impl IntoIterator<Item = &'a Experiment>) -> Vec<&'static Grid> {
    let mut seen = BTreeSet::new();
    let grids = experiments.into_iter().flat_map(|experiment| experiment.grids.iter().copied());
    grids.filter(|grid| seen.insert(grid.name)).collect()
}

/// The same over these traces, where a grid has the traces of a folder.
pub fn grids_over<'a>(
    experiments: impl IntoIterator<Item = &'a Experiment>,
    traces: &[&'static Workload],
) -> Vec<&'static Grid> {
    let over = |grid: &'static Grid| -> &'static Grid {
        if traces.is_empty() || !grid.is_of_folder() {
            return grid;
        }
        // Keys refer to what lives as long as the program, as declared grids do.
        Box::leak(Box::new(Grid { loads: traces.to_vec().leak(), ..*grid }))
    };
    grids(experiments).into_iter().map(over).collect()
}

impl Grid {
    /// Whether it wants the traces of a folder, and has none.
    pub fn is_of_folder(&self) -> bool {
        self.loads.iter().any(|load| load.source == Source::Folder)
    }
}

/// The keys of a grid, the last axis fastest; none of one that wants a folder.
pub fn keys(grid: &'static Grid) -> Vec<(Key, Option<&'static Workload>, Vec<usize>)> {
    if grid.is_of_folder() {
        return Vec::new();
    }
    let loads: Vec<Option<&'static Workload>> =
        if grid.loads.is_empty() { vec![None] } else { grid.loads.iter().copied().map(Some).collect() };
    let count: usize = grid.axes.iter().map(|axis| axis.points.len()).product();
    let mut keys = Vec::new();
    for load in loads {
        for index in 0..count {
            let mut rest = index;
            let mut places = vec![0; grid.axes.len()];
            for (place, axis) in places.iter_mut().zip(grid.axes).rev() {
                *place = rest % axis.points.len();
                rest /= axis.points.len();
            }
            let trace = load.map(|load| ("trace", load.name));
            let axes =
                grid.axes.iter().zip(&places).map(|(axis, &place)| (axis.name, axis.points[place].label));
            let labels: Vec<Label> = trace.into_iter().chain(axes).collect();
            let key = Key { grid: grid.name, labels };
            if !grid.without.iter().any(|out| super::declare::is_picked(&key, out)) {
                keys.push((key, load, places));
            }
        }
    }
    keys
}

/// The cells of a grid.
pub fn cells(grid: &'static Grid, scale: Scale, seeds: &[u64]) -> Result<Vec<Cell>, Failure> {
    let mut cells = Vec::new();
    for (key, load, places) in keys(grid) {
        let mut sets: Vec<(&str, String)> = load.map_or_else(Vec::new, |load| load.sets(scale));
        sets.push(("ssd-mib", ssd_mib(scale).to_string()));
        sets.extend(
            grid.scaled.iter().map(|number| (number.name, scale.of(number.full, number.least).to_string())),
        );
        let points = || grid.axes.iter().zip(&places).map(|(axis, &place)| &axis.points[place]);
        sets.extend(points().flat_map(|point| point.sets).map(|&(name, value)| (name, value.to_owned())));
        let mut text = grid.words.to_owned();
        for point in points().filter(|point| !point.words.is_empty()) {
            text.push(' ');
            text.push_str(point.words);
        }
        for (name, value) in &sets {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        if text.contains('{') {
            let labels = key.text();
            return Err(Failure::new(format!(
                "{}, {labels}: found {text:?}, expected every brace set",
                grid.name
            )));
        }
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        for &seed in seeds {
            cells.push(Cell {
                key: key.clone(),
                engine: grid.engine,
                load,
                words: words.clone(),
                seed,
                scale,
            });
        }
    }
    // Neighbours share a load, so that it is made once.
    cells.sort_by_key(|cell| cell.seed);
    Ok(cells)
}
