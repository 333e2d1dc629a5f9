//! Lines over a number, and the axis below them.

use super::super::scale::Range;
use super::super::text::width;
use super::super::{Lines, Marks};
use super::sheet::{Anchor, Sheet};
use super::{Area, INK, Styles, TICK, TICK_SIZE, TICKS, horizontal_label, line_height};

/// The stretch of the horizontal axis.
fn horizontal(lines: &Lines) -> Range {
    let places = lines.series.iter().flat_map(|series| &series.values).map(|(x, _)| *x);
    let numbers: Vec<f64> = places.chain(lines.ticks.iter().map(|(x, _)| *x)).collect();
    let range = Range::of(lines.x.scale, &numbers, TICKS, false);
    if lines.ticks.is_empty() { range } else { range.around(&numbers, lines.ticks.clone()) }
}

/// The lines, and the marks on them.
pub fn draw(sheet: &mut Sheet, area: Area, range: &Range, lines: &Lines, styles: &Styles) {
    let across = horizontal(lines);
    // Dashed lines lie on solid ones, and marks are hollow, so that series that agree are all seen.
    let mut order: Vec<_> = lines.series.iter().collect();
    order.sort_by_key(|series| !styles.get(&series.name).dash.is_empty());
    for series in order {
        let style = styles.get(&series.name);
        let mut points = series.values.clone();
        points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        // Where nothing was measured the line is interrupted.
        let mut stretch: Vec<(f64, f64)> = Vec::new();
        let mut marks = Vec::new();
        for (x, value) in &points {
            let x = area.x(&across, *x);
            let Some(number) = value.value else {
                if stretch.len() > 1 {
                    sheet.path(&stretch, style);
                }
                stretch.clear();
                continue;
            };
            if let Some((low, high)) = value.range {
                sheet.spread(x, (area.y(range, low), area.y(range, high)), 4.0);
            }
            stretch.push((x, area.y(range, number)));
            marks.push((x, area.y(range, number)));
        }
        if stretch.len() > 1 {
            sheet.path(&stretch, style);
        }
        if lines.marks == Marks::Points || marks.len() == 1 {
            marks.into_iter().for_each(|at| sheet.mark(at, style));
        }
    }
}

/// The horizontal axis and its label; answers where it ends.
pub fn below(sheet: &mut Sheet, area: Area, lines: &Lines) -> f64 {
    let across = horizontal(lines);
    sheet.line((area.left, area.bottom()), (area.right(), area.bottom()), INK, 0.6);
    for number in &across.small {
        let x = area.x(&across, *number);
        sheet.line((x, area.bottom()), (x, area.bottom() + TICK * 0.5), INK, 0.4);
    }
    let top = area.bottom() + TICK;
    // Names that would run into the one before are left out; their ticks stay.
    let mut free = f64::NEG_INFINITY;
    for (number, name) in &across.ticks {
        let (x, half) = (area.x(&across, *number), width(name, TICK_SIZE) / 2.0);
        sheet.line((x, area.bottom()), (x, top), INK, 0.6);
        if x - half >= free {
            let y = top + line_height(TICK_SIZE) - 1.0;
            sheet.text((x, y), Anchor::Middle, TICK_SIZE, name, name);
            free = x + half + 3.0;
        }
    }
    horizontal_label(sheet, area, &lines.x.text(), top + line_height(TICK_SIZE) + 1.0)
}
