//! Bars by category, side by side or on each other, and the names of the categories below them.

use super::super::scale::{Range, short};
use super::super::text::{fitted, width, wrapped};
use super::super::{Arrangement, Bars, Scale, Value};
use super::sheet::{Anchor, Sheet};
use super::{Area, GAP, INK, Styles, TICK_SIZE, VALUE_SIZE, horizontal_label, line_height};

/// Share of a category's room that its bars take.
const FILLED: f64 = 0.8;
/// Widest bar.
const BAR_MAX: f64 = 30.0;
/// Lines of a category's name.
const NAME_LINES: usize = 3;
/// Slant of names that do not fit.
const SLANT: f64 = 35.0;
/// Longest slanted name.
const SLANTED_MAX: f64 = 90.0;

/// Room of a category, and width of a bar.
fn widths(area: Area, bars: &Bars) -> (f64, f64) {
    let slot = area.width / bars.categories.len().max(1) as f64;
    let side_by_side = match bars.arrangement {
        Arrangement::Grouped => bars.series.len().max(1) as f64,
        Arrangement::Stacked => 1.0,
    };
    (slot, (slot * FILLED / side_by_side).min(BAR_MAX))
}

/// The bars and the values above them.
pub fn draw(sheet: &mut Sheet, area: Area, range: &Range, bars: &Bars, styles: &Styles) {
    let (slot, bar) = widths(area, bars);
    let base = match range.scale {
        Scale::Linear => area.y(range, 0.0),
        Scale::Log => area.bottom(),
    };
    let label = labels_fit(bars, slot, bar);
    for index in 0..bars.categories.len() {
        let middle = area.left + slot * (index as f64 + 0.5);
        match bars.arrangement {
            Arrangement::Stacked => {
                let mut below = 0.0;
                for series in &bars.series {
                    let part = series.values.get(index).and_then(|value| value.value).unwrap_or(0.0);
                    let (from, to) = (area.y(range, below), area.y(range, below + part));
                    if part > 0.0 {
                        sheet.bar((middle - bar / 2.0, to, bar, from - to), styles.get(&series.name));
                    }
                    below += part;
                }
                // The value is that of the parts, wherever they end.
                if let Some(sum) = bars.sum(index).filter(|_| label) {
                    let text = short(sum);
                    let at = (middle, area.y(range, below) - 1.8);
                    sheet.text(at, Anchor::Middle, VALUE_SIZE, &text, &text);
                } else if bars.sum(index).is_none() {
                    above(sheet, area, range, (middle, bar, base), Value::default(), label);
                }
            }
            Arrangement::Grouped => {
                let left = middle - bar * bars.series.len() as f64 / 2.0;
                for (at, series) in bars.series.iter().enumerate() {
                    let value = series.values.get(index).copied().unwrap_or_default();
                    let x = left + bar * at as f64;
                    if let Some(number) = value.value {
                        let y = area.y(range, number);
                        sheet.bar((x, y.min(base), bar, (y - base).abs()), styles.get(&series.name));
                    }
                    above(sheet, area, range, (x + bar / 2.0, bar, base), value, label);
                }
            }
        }
    }
}

/// Whether a value can stand above every bar.
fn labels_fit(bars: &Bars, slot: f64, bar: f64) -> bool {
    let fits = |number: f64, room: f64| width(&short(number), VALUE_SIZE) <= room;
    match bars.arrangement {
        Arrangement::Stacked => bars.sums().iter().all(|&sum| fits(sum, slot - 1.0)),
        Arrangement::Grouped => {
            let room = if bars.series.len() == 1 { slot - 1.0 } else { bar - 1.0 };
            let values = bars.series.iter().flat_map(|series| &series.values);
            values.filter_map(|value| value.value).all(|number| fits(number, room))
        }
    }
}

/// Spread and value of a bar, or that it has none.
fn above(
    sheet: &mut Sheet,
    area: Area,
    range: &Range,
    (x, bar, base): (f64, f64, f64),
    value: Value,
    label: bool,
) {
    let Some(number) = value.value else {
        // Upright if it fits.
        let turn = if width("n/a", VALUE_SIZE) <= bar { 0.0 } else { -90.0 };
        let anchor = if turn == 0.0 { Anchor::Middle } else { Anchor::Start };
        let at = if turn == 0.0 { (x, base - 2.0) } else { (x + VALUE_SIZE * 0.35, base - 2.0) };
        sheet.turned(at, anchor, VALUE_SIZE, turn, ("n/a", "n/a"));
        return;
    };
    let mut end = number;
    if let Some((low, high)) = value.range {
        sheet.spread(x, (area.y(range, low), area.y(range, high)), (bar * 0.5).min(6.0));
        end = if number < 0.0 { end.min(low) } else { end.max(high) };
    }
    if label {
        let y = area.y(range, end);
        let y = if number < 0.0 { y + VALUE_SIZE + 0.5 } else { y - 1.8 };
        let text = short(number);
        sheet.text((x, y), Anchor::Middle, VALUE_SIZE, &text, &text);
    }
}

/// How the names of the categories are set.
enum Names {
    /// Level, each in some lines.
    Level(Vec<Vec<String>>),
    /// Slanted, each in one line.
    Slanted(Vec<String>),
}

fn names(bars: &Bars, slot: f64) -> Names {
    let room = slot - 2.0;
    let fits = |name: &String| {
        let lines = wrapped(name, TICK_SIZE, f64::INFINITY, NAME_LINES);
        let words = lines.iter().flat_map(|line| line.split_whitespace());
        let longest = words.map(|word| width(word, TICK_SIZE)).fold(0.0, f64::max);
        // Broken again at this width, nothing may be cut.
        let broken = wrapped(name, TICK_SIZE, room, NAME_LINES);
        longest <= room
            && broken.iter().all(|line| width(line, TICK_SIZE) <= room && !line.ends_with('\u{2026}'))
    };
    if bars.categories.iter().all(fits) {
        Names::Level(bars.categories.iter().map(|name| wrapped(name, TICK_SIZE, room, NAME_LINES)).collect())
    } else {
        let name = |name: &String| {
            let line = name.split_whitespace().collect::<Vec<_>>().join(" ");
            fitted(&line, TICK_SIZE, SLANTED_MAX)
        };
        Names::Slanted(bars.categories.iter().map(name).collect())
    }
}

/// What slanted names need on the left, if the axes were to reach from `left` to `right`.
pub fn left_of(bars: &Bars, left: f64, right: f64) -> f64 {
    let slot = (right - left) / bars.categories.len().max(1) as f64;
    match names(bars, slot) {
        Names::Level(_) => left,
        Names::Slanted(names) => {
            let out = |(index, name): (usize, &String)| {
                width(name, TICK_SIZE) * SLANT.to_radians().cos() + 2.0 * GAP - slot * (index as f64 + 0.5)
            };
            names.iter().enumerate().map(out).fold(left, f64::max)
        }
    }
}

/// The horizontal axis and what stands below it; answers where it ends.
pub fn below(sheet: &mut Sheet, area: Area, range: &Range, bars: &Bars) -> f64 {
    let (slot, _) = widths(area, bars);
    let zero = if range.scale == Scale::Linear { area.y(range, 0.0) } else { area.bottom() };
    sheet.line((area.left, zero), (area.right(), zero), INK, 0.6);
    let top = area.bottom() + 2.0;
    let middle = |index: usize| area.left + slot * (index as f64 + 0.5);
    let end = match names(bars, slot) {
        Names::Level(names) => {
            for (index, (lines, whole)) in names.iter().zip(&bars.categories).enumerate() {
                let whole = if lines.join(" ") == whole.replace('\n', " ") { None } else { Some(whole) };
                for (row, line) in lines.iter().enumerate() {
                    let y = top + line_height(TICK_SIZE) * (row as f64 + 1.0) - 1.5;
                    sheet.text((middle(index), y), Anchor::Middle, TICK_SIZE, line, whole.unwrap_or(line));
                }
            }
            let rows = names.iter().map(Vec::len).max().unwrap_or(1) as f64;
            top + line_height(TICK_SIZE) * rows
        }
        Names::Slanted(names) => {
            let mut lowest = 0.0_f64;
            for (index, (name, whole)) in names.iter().zip(&bars.categories).enumerate() {
                let at = (middle(index) + TICK_SIZE * 0.3, top + TICK_SIZE * 0.8);
                let whole = whole.replace('\n', " ");
                sheet.turned(at, Anchor::End, TICK_SIZE, -SLANT, (name, &whole));
                lowest = lowest.max(width(name, TICK_SIZE) * SLANT.to_radians().sin());
            }
            top + lowest + TICK_SIZE
        }
    };
    match &bars.label {
        Some(label) => horizontal_label(sheet, area, label, end + 1.0),
        None => end,
    }
}
