//! What a folder has of the declared cells.

use super::cells::{cells, grids_over};
use super::declare::{Experiment, Grid};
use super::folder::{Build, Folder, Found, key_text};
use super::recorded;
use super::scale::Scale;
use super::traces;
use super::view::View;
use crate::failure::Failure;
use std::collections::{BTreeMap, BTreeSet};

/// See the module's documentation.
pub struct Results {
    /// What made them.
    pub build: Build,
    /// Others that some cells are of.
    pub other_builds: BTreeSet<Build>,
    /// Where.
    pub hosts: BTreeSet<String>,
    /// How long the loads were.
    pub scale: Scale,
    /// The seeds, ascending.
    pub seeds: Vec<u64>,
    /// What each seed counted.
    pub views: Vec<View>,
    /// The declared grids, over the traces that cells replayed.
    pub grids: Vec<&'static Grid>,
    /// Cells that are there, and that are declared, of all seeds.
    pub cells: (usize, usize),
}

impl Results {
    /// What each seed counted, ascending.
    pub fn by_seed(&self) -> impl Iterator<Item = (u64, &View)> {
        self.seeds.iter().copied().zip(&self.views)
    }
}

/// Whose cells count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Builds {
    /// Those of one build.
    One,
    /// Those of others too, where the one has none.
    All,
}

/// Reads a folder: cells of one scale.
pub fn load(
    folder: &Folder,
    scale: Option<Scale>,
    experiments: &[&Experiment],
    builds: Builds,
) -> Result<Results, Failure> {
    let named = |what: String| Failure::new(format!("{}: {what}", folder.path().display()));
    let all: Vec<Found> = folder.all()?.into_iter().map(|(_, found)| found).collect();
    let build = match (the_build(&all), builds) {
        (Ok(build), _) => build,
        (Err(what), Builds::One) => return Err(named(what)),
        (Err(what), Builds::All) => {
            all.first().map(|found| found.build.clone()).ok_or_else(|| named(what))?
        }
    };
    let counts = |found: &Found| builds == Builds::All || found.build == build;
    let scales: BTreeSet<Scale> = all.iter().filter(|found| counts(found)).map(|found| found.scale).collect();
    let scale = match (scale, scales.len()) {
        (Some(scale), _) if scales.contains(&scale) => scale,
        (Some(scale), _) => {
            let found: Vec<String> = scales.iter().map(Scale::to_string).collect();
            return Err(named(format!(
                "found cells of the scale {}, expected some of {scale}",
                found.join(", ")
            )));
        }
        (None, 1) => *scales.first().expect("it has one element"),
        (None, _) => {
            let found: Vec<String> = scales.iter().map(Scale::to_string).collect();
            return Err(named(format!(
                "found cells of the scales {}; say which with --scale",
                found.join(", ")
            )));
        }
    };
    let mut of_run: Vec<Found> =
        all.into_iter().filter(|found| counts(found) && found.scale == scale).collect();
    // Of the same inputs the last one is taken: that of the build.
    of_run.sort_by_key(|found| found.build == build);
    let seeds: Vec<u64> =
        of_run.iter().map(|found| found.seed).collect::<BTreeSet<_>>().into_iter().collect();
    let hosts = of_run.iter().map(|found| found.host.clone()).collect();
    let replayed = of_run.iter().filter_map(|found| found.trace.clone());
    let loads = traces::loads(recorded::distinct(replayed).map_err(named)?);
    let grids = grids_over(experiments.iter().copied(), &loads);
    let mut known: BTreeMap<(String, String), Found> =
        of_run.into_iter().map(|found| ((found.key.clone(), found.inputs.clone()), found)).collect();
    let mut other_builds = BTreeSet::new();
    let mut views: BTreeMap<u64, View> = seeds.iter().map(|&seed| (seed, View::default())).collect();
    let (mut there, mut declared) = (0, 0);
    for &grid in &grids {
        for cell in cells(grid, scale, &seeds)? {
            declared += 1;
            let found = known.remove(&(key_text(&cell), cell.inputs()));
            if let Some((found, view)) = found.zip(views.get_mut(&cell.seed)) {
                there += 1;
                if found.build != build {
                    other_builds.insert(found.build.clone());
                }
                view.add(cell.key, found.figures);
            }
        }
    }
    Ok(Results {
        build,
        other_builds,
        hosts,
        scale,
        seeds,
        views: views.into_values().collect(),
        grids,
        cells: (there, declared),
    })
}

/// This program's cells, or, if there are none, those of the only other one.
fn the_build(all: &[Found]) -> Result<Build, String> {
    let builds: BTreeSet<&Build> = all.iter().map(|found| &found.build).collect();
    let own = Build::own();
    match builds.len() {
        0 => Err("found no cells, expected what `elastripe lab run --out` leaves".to_owned()),
        _ if builds.contains(&own) => Ok(own),
        1 => Ok((*builds.first().expect("it has one element")).clone()),
        _ => {
            let names: Vec<String> =
                builds.iter().map(|build| format!("{} (program {})", build.version, build.hash)).collect();
            Err(format!("found cells of several other builds and none of this one: {}", names.join("; ")))
        }
    }
}
