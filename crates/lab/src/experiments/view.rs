//! What cells have counted, by what they are: the ground on which figures and verdicts are computed.

use std::collections::BTreeMap;

/// A label on an axis of a grid.
pub type Label = (&'static str, &'static str);

/// Which cell: its grid, and where it stands on each axis.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    /// Name of the grid.
    pub grid: &'static str,
    /// Axis and label, in the order of the grid.
    pub labels: Vec<Label>,
}

impl Key {
    /// Where it stands on an axis; empty if its grid has no such axis.
    pub fn label(&self, axis: &str) -> &'static str {
        self.labels.iter().find(|(name, _)| *name == axis).map_or("", |(_, label)| label)
    }

    /// The cell that differs from this one in these labels.
    pub fn with(&self, changes: &[Label]) -> Self {
        let labels = self.labels.iter().map(|&(axis, label)| {
            let changed = changes.iter().find(|(name, _)| *name == axis);
            (axis, changed.map_or(label, |(_, new)| new))
        });
        Self { grid: self.grid, labels: labels.collect() }
    }

    /// The same labels in another grid.
    pub fn in_grid(&self, grid: &'static str, labels: &[Label]) -> Self {
        let at = |axis: &str, label| if label == "=" { self.label(axis) } else { label };
        Self { grid, labels: labels.iter().map(|&(axis, label)| (axis, at(axis, label))).collect() }
    }

    /// Its labels, for people.
    pub fn text(&self) -> String {
        self.labels.iter().map(|(_, label)| *label).collect::<Vec<_>>().join(" ")
    }
}

/// Numbers with names.
pub type Figures = BTreeMap<String, f64>;

/// What was counted under one seed.
#[derive(Clone, Debug, Default)]
pub struct View {
    cells: BTreeMap<Key, Figures>,
}

impl View {
    /// Adds a cell.
    pub fn add(&mut self, key: Key, figures: Figures) {
        self.cells.insert(key, figures);
    }

    /// Whether there is such a cell.
    pub fn has(&self, key: &Key) -> bool {
        self.cells.contains_key(key)
    }

    /// A figure of a cell.
    pub fn get(&self, key: &Key, figure: &str) -> Option<f64> {
        self.cells.get(key)?.get(figure).copied()
    }

    /// All figures of a cell.
    pub fn figures(&self, key: &Key) -> Option<&Figures> {
        self.cells.get(key)
    }
}

/// A part of a whole in percent; none of nothing.
pub fn percent(part: f64, whole: f64) -> Option<f64> {
    (whole != 0.0).then(|| 100.0 * part / whole)
}
