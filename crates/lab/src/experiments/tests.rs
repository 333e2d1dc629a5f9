//! The catalogue is whole: every row is declared once, names what there is, and says why.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::catalogue::{experiments, headlines};
use super::cells::{cells, grids, keys};
use super::declare::{Check, is_picked};
use super::parse_seeds;
use std::collections::BTreeSet;

const SCALES: [&str; 3] = ["1", "0.02", "0.000001"];

#[test]
fn every_experiment_and_headline_is_declared_once_and_in_order() {
    let ids: Vec<&str> = experiments().iter().map(|experiment| experiment.id).collect();
    let wanted: Vec<String> = (1..=25).map(|number| format!("X-{number:02}")).collect();
    assert_eq!(ids, wanted);
    let ids: Vec<&str> = headlines().iter().map(|headline| headline.id).collect();
    let wanted: Vec<String> = (1..=62).map(|number| format!("H-{number:02}")).collect();
    assert_eq!(ids, wanted);
}

#[test]
fn every_headline_belongs_to_an_experiment_and_says_why() {
    let (experiments, headlines) = (experiments(), headlines());
    let grids = grids(experiments.iter().copied());
    for headline in headlines {
        let id = headline.id;
        assert!(experiments.iter().any(|experiment| experiment.id == headline.experiment), "{id}");
        match &headline.check {
            Check::NotPossible(why) => assert!(!why.is_empty(), "{id}"),
            Check::Measured { parts, why } => {
                assert!(!why.is_empty() && !parts.is_empty(), "{id}");
                for part in *parts {
                    let grid = grids.iter().find(|grid| grid.name == part.grid);
                    let grid = grid.unwrap_or_else(|| panic!("{id}: no grid {}", part.grid));
                    let keys = keys(grid);
                    for (axis, labels) in part.pick {
                        for label in *labels {
                            assert!(
                                keys.iter().any(|(key, ..)| key.label(axis) == *label),
                                "{id}: {axis} {label}"
                            );
                        }
                    }
                    assert!(keys.iter().any(|(key, ..)| is_picked(key, part.pick)), "{id}");
                }
            }
        }
    }
}

#[test]
fn grids_and_columns_have_names_of_their_own_and_plots_have_cells() {
    let experiments = experiments();
    let grids = grids(experiments.iter().copied());
    for grid in &grids {
        let names: BTreeSet<&str> = grid.columns.iter().map(|column| column.name).collect();
        assert_eq!(names.len(), grid.columns.len(), "{}", grid.name);
    }
    for plot in experiments.iter().flat_map(|experiment| experiment.plots) {
        let grid = grids.iter().find(|grid| grid.name == plot.grid).unwrap();
        assert!(keys(grid).iter().any(|(key, ..)| is_picked(key, plot.pick)), "{}", plot.title);
    }
}

#[test]
fn cells_are_all_different_at_every_scale() {
    for scale in SCALES {
        let scale = scale.parse().unwrap();
        let mut seen = BTreeSet::new();
        for grid in grids(experiments()) {
            for cell in cells(grid, scale, &[1, 2]).unwrap() {
                let key = super::folder::key_text(&cell);
                assert!(seen.insert((key.clone(), cell.seed)), "{key}");
                assert!(
                    !cell.inputs().contains('{')
                        || cell.inputs().contains("Random {")
                        || cell.inputs().contains("Pages {")
                        || cell.inputs().contains("Application {")
                        || cell.inputs().contains("Plain {")
                );
            }
        }
        assert!(seen.len() > 1000, "{}", seen.len());
    }
}

#[test]
fn seeds_are_a_number_a_range_or_a_list() {
    assert_eq!(parse_seeds("3").unwrap().0, [3]);
    assert_eq!(parse_seeds("1..5").unwrap().0, [1, 2, 3, 4, 5]);
    assert_eq!(parse_seeds("4,1,4").unwrap().0, [1, 4]);
    for bad in ["", "a", "5..1", "1..", "..3", "1..5000", "1,,2", "-1"] {
        assert!(parse_seeds(bad).is_err(), "{bad}");
    }
}
