//! From a figure to SVG: where everything stands, in points.
//!
//! The figure has its width, and grows downwards: title, legend, panels. Room left of and below the axes is
//! what the labels take; a label that is too long is broken, slanted, and at last cut, with its full text
//! behind it as a tooltip.

mod bars;
mod lines;
mod sheet;

use super::scale::Range;
use super::style::{self, Style};
use super::text::{fitted, width, wrapped, wrapped_label};
use super::{Axis, Band, Body, Figure, Marks, Panel, Width};
use sheet::{Anchor, Sheet};

/// Sizes of type.
const TITLE_SIZE: f64 = 9.0;
const LABEL_SIZE: f64 = 8.0;
const TICK_SIZE: f64 = 7.0;
const VALUE_SIZE: f64 = 6.0;
/// Room between things, and around all.
const GAP: f64 = 4.0;
/// Right of the axes: half a tick's name.
const RIGHT: f64 = 10.0;
/// Length of a tick.
const TICK: f64 = 3.0;
/// Lines that an axis label may take.
const LABEL_LINES: usize = 3;
/// Ticks wanted on an axis.
const TICKS: usize = 5;
const INK: &str = "#1a1a1a";
const GRID: &str = "#d9d9d9";
/// Shades of bands, in turn.
const SHADES: [&str; 3] = ["#bdbdbd", "#8c8c8c", "#dedede"];

/// Distance of lines of text.
fn line_height(size: f64) -> f64 {
    size * 1.2
}

/// A rectangle for the axes.
#[derive(Clone, Copy, Debug)]
struct Area {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Area {
    fn right(self) -> f64 {
        self.left + self.width
    }

    fn bottom(self) -> f64 {
        self.top + self.height
    }

    /// Where a number of the vertical axis is.
    fn y(self, range: &Range, number: f64) -> f64 {
        self.bottom() - range.place(number).clamp(-0.01, 1.01) * self.height
    }

    /// Where a number of the horizontal axis is.
    fn x(self, range: &Range, number: f64) -> f64 {
        self.left + range.place(number) * self.width
    }
}

/// The names of all panels with their styles.
struct Styles(Vec<(String, &'static Style)>);

impl Styles {
    fn of(figure: &Figure) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut beneath: Vec<(String, &'static Style)> = Vec::new();
        for panel in &figure.panels {
            let apart = match &panel.body {
                Body::Bars(bars) => bars.beneath.as_deref(),
                Body::Lines(_) => None,
            };
            for name in panel.body.names() {
                if apart == Some(name) {
                    beneath.push((name.to_owned(), &style::BENEATH));
                } else if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
        }
        let styles = style::of(&names);
        Self(names.into_iter().zip(styles).chain(beneath).collect())
    }

    fn get(&self, name: &str) -> &'static Style {
        self.0.iter().find(|(known, _)| known == name).map_or(&style::STYLES[0], |(_, style)| style)
    }
}

/// Draws a figure that was checked.
pub fn draw(figure: &Figure) -> String {
    let styles = Styles::of(figure);
    let mut sheet = Sheet::default();
    let mut top = GAP;
    if let Some(title) = &figure.title {
        let room = figure.width.points() - 2.0 * GAP;
        for line in wrapped(title, TITLE_SIZE, room, 2) {
            top += line_height(TITLE_SIZE);
            sheet.text((figure.width.points() / 2.0, top - 2.0), Anchor::Middle, TITLE_SIZE, &line, title);
        }
        top += GAP;
    }
    top = legend(&mut sheet, figure, &styles, top);
    let left = figure.panels.iter().map(|panel| left_of(figure, panel)).fold(0.0, f64::max);
    for panel in &figure.panels {
        if let Some(heading) = &panel.heading {
            top += line_height(LABEL_SIZE) + 1.0;
            let text = fitted(heading, LABEL_SIZE, figure.width.points() - left - GAP);
            sheet.text((left, top - 2.0), Anchor::Start, LABEL_SIZE, &text, heading);
            top += 1.0;
        }
        // Room for half a tick's name, and values above bars.
        top += line_height(TICK_SIZE) / 2.0;
        let right = figure.width.points() - RIGHT;
        let height = height_of(figure);
        let area = Area { left, top, width: right - left, height };
        top = axes(&mut sheet, area, panel, &styles) + GAP;
    }
    sheet.finish(figure.width.points(), top, &styles, figure)
}

/// Of the axes of each panel.
fn height_of(figure: &Figure) -> f64 {
    match (figure.width, figure.panels.len()) {
        (Width::Column, 1) => 125.0,
        (Width::Column, _) => 95.0,
        (Width::Page, 1) => 160.0,
        (Width::Page, _) => 115.0,
    }
}

/// The stretch of the vertical axis.
fn vertical(panel: &Panel) -> Range {
    let mut numbers = panel.body.heights();
    numbers.extend(panel.bands.iter().flat_map(|band| [band.low, band.high]));
    let from_zero = matches!(panel.body, Body::Bars(_));
    Range::of(panel.y.scale, &numbers, TICKS, from_zero)
}

/// What the left margin of a panel must hold.
fn left_of(figure: &Figure, panel: &Panel) -> f64 {
    let widest = vertical(panel).ticks.iter().map(|(_, name)| width(name, TICK_SIZE)).fold(0.0, f64::max);
    let lines = wrapped_label(&panel.y.text(), LABEL_SIZE, height_of(figure), LABEL_LINES).len() as f64;
    let left = GAP + lines * line_height(LABEL_SIZE) + GAP + widest + TICK + 2.0;
    match &panel.body {
        Body::Bars(bars) => left.max(bars::left_of(bars, left, figure.width.points() - RIGHT)),
        Body::Lines(_) => left,
    }
}

/// A panel; answers where it ends.
fn axes(sheet: &mut Sheet, area: Area, panel: &Panel, styles: &Styles) -> f64 {
    let range = vertical(panel);
    for (index, band) in panel.bands.iter().enumerate() {
        let (from, to) = (area.y(&range, band.low.max(band.high)), area.y(&range, band.low.min(band.high)));
        // A range of one number is a line.
        let height = (to - from).max(0.8);
        sheet.rectangle((area.left, from, area.width, height), SHADES[index % SHADES.len()], None);
    }
    for (number, _) in &range.ticks {
        let y = area.y(&range, *number);
        sheet.line((area.left, y), (area.right(), y), GRID, 0.4);
    }
    match &panel.body {
        Body::Bars(bars) => bars::draw(sheet, area, &range, bars, styles),
        Body::Lines(lines) => lines::draw(sheet, area, &range, lines, styles),
    }
    sheet.line((area.left, area.top), (area.left, area.bottom()), INK, 0.6);
    for number in &range.small {
        let y = area.y(&range, *number);
        sheet.line((area.left - TICK * 0.5, y), (area.left, y), INK, 0.4);
    }
    for (number, name) in &range.ticks {
        let y = area.y(&range, *number);
        sheet.line((area.left - TICK, y), (area.left, y), INK, 0.6);
        let at = (area.left - TICK - 2.0, y + TICK_SIZE * 0.35);
        sheet.text(at, Anchor::End, TICK_SIZE, name, name);
    }
    vertical_label(sheet, area, &panel.y);
    match &panel.body {
        Body::Bars(bars) => bars::below(sheet, area, &range, bars),
        Body::Lines(lines) => lines::below(sheet, area, lines),
    }
}

fn vertical_label(sheet: &mut Sheet, area: Area, axis: &Axis) {
    let text = axis.text();
    let lines = wrapped_label(&text, LABEL_SIZE, area.height, LABEL_LINES);
    for (index, line) in lines.iter().enumerate() {
        let x = GAP + LABEL_SIZE + index as f64 * line_height(LABEL_SIZE);
        sheet.turned((x, area.top + area.height / 2.0), Anchor::Middle, LABEL_SIZE, -90.0, (line, &text));
    }
}

/// The label of the horizontal axis; answers where it ends.
fn horizontal_label(sheet: &mut Sheet, area: Area, text: &str, top: f64) -> f64 {
    let mut bottom = top;
    for line in wrapped_label(text, LABEL_SIZE, area.width, 2) {
        bottom += line_height(LABEL_SIZE);
        sheet.text((area.left + area.width / 2.0, bottom - 2.0), Anchor::Middle, LABEL_SIZE, &line, text);
    }
    bottom
}

/// What stands before a name in the legend.
enum Key<'a> {
    Bar(&'a Style),
    Line(&'a Style, Marks),
    Band(&'static str),
}

/// Width of that.
const KEY: f64 = 20.0;
/// Between two names.
const ENTRY_GAP: f64 = 8.0;

/// A name and what stands before it.
struct Entry<'a> {
    name: &'a str,
    key: Key<'a>,
    /// As much of the name as fits.
    text: String,
}

impl Entry<'_> {
    fn width(&self) -> f64 {
        KEY + 3.0 + width(&self.text, TICK_SIZE)
    }
}

/// The series of all panels, then their bands, each name once.
fn entries<'a>(figure: &'a Figure, styles: &Styles) -> Vec<Entry<'a>> {
    let room = figure.width.points() - 2.0 * GAP - KEY - 3.0;
    let mut entries: Vec<Entry<'a>> = Vec::new();
    let mut add = |name: &'a str, key: Key<'a>| {
        if !name.is_empty() && !entries.iter().any(|entry| entry.name == name) {
            entries.push(Entry { name, key, text: fitted(name, TICK_SIZE, room) });
        }
    };
    for panel in &figure.panels {
        for name in panel.body.names() {
            let style = styles.get(name);
            add(
                name,
                match &panel.body {
                    Body::Bars(_) => Key::Bar(style),
                    Body::Lines(lines) => Key::Line(style, lines.marks),
                },
            );
        }
    }
    for panel in &figure.panels {
        for (index, Band { name, .. }) in panel.bands.iter().enumerate() {
            add(name, Key::Band(SHADES[index % SHADES.len()]));
        }
    }
    entries
}

/// Names of series and bands in rows; answers where it ends.
fn legend(sheet: &mut Sheet, figure: &Figure, styles: &Styles, top: f64) -> f64 {
    let room = figure.width.points() - 2.0 * GAP;
    let mut rows: Vec<Vec<Entry<'_>>> = Vec::new();
    let mut used = 0.0;
    for entry in entries(figure, styles) {
        let longer = used + ENTRY_GAP + entry.width();
        match rows.last_mut() {
            Some(row) if longer <= room => {
                used = longer;
                row.push(entry);
            }
            Some(_) | None => {
                used = entry.width();
                rows.push(vec![entry]);
            }
        }
    }
    let mut top = top;
    if let Some(heading) = figure.legend.as_ref().filter(|_| !rows.is_empty()) {
        let at = (figure.width.points() / 2.0, top + TICK_SIZE);
        sheet.text(at, Anchor::Middle, TICK_SIZE, &fitted(heading, TICK_SIZE, room), heading);
        top += line_height(TICK_SIZE) + 1.0;
    }
    for row in rows {
        let length = row.iter().map(Entry::width).sum::<f64>() + ENTRY_GAP * (row.len() - 1) as f64;
        let mut x = GAP + (room - length) / 2.0;
        let middle = top + 5.0;
        for entry in row {
            draw_key(sheet, (x, middle), &entry.key);
            let at = (x + KEY + 3.0, middle + TICK_SIZE * 0.36);
            sheet.text(at, Anchor::Start, TICK_SIZE, &entry.text, entry.name);
            x += entry.width() + ENTRY_GAP;
        }
        top += 10.5;
    }
    top
}

fn draw_key(sheet: &mut Sheet, (x, y): (f64, f64), key: &Key<'_>) {
    match key {
        Key::Bar(style) => sheet.bar((x, y - 3.5, KEY, 7.0), style),
        Key::Line(style, marks) => {
            sheet.path(&[(x, y), (x + KEY, y)], style);
            if *marks == Marks::Points {
                sheet.mark((x + KEY / 2.0, y), style);
            }
        }
        Key::Band(shade) => sheet.rectangle((x, y - 3.5, KEY, 7.0), shade, None),
    }
}
