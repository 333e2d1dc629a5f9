//! SVG elements: the only place that writes them.

use super::super::Figure;
use super::super::style::{BENEATH, STYLES, Style};
use super::super::text::{escaped, width};
use super::{INK, Styles};
use std::fmt::Write as _;

/// Where a text stands in relation to its point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Anchor {
    /// Begins there.
    Start,
    /// Is centred on it.
    Middle,
    /// Ends there.
    End,
}

/// Elements so far.
#[derive(Default)]
pub struct Sheet {
    body: String,
}

/// A length in hundredths of a point.
fn n(number: f64) -> String {
    let text = format!("{number:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

impl Sheet {
    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.body.write_fmt(element);
        self.body.push('\n');
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, thickness: f64) {
        self.push(format_args!(
            r#"<path d="M{} {}L{} {}" stroke="{colour}" stroke-width="{}" fill="none"/>"#,
            n(from.0),
            n(from.1),
            n(to.0),
            n(to.1),
            n(thickness)
        ));
    }

    /// A rectangle: left, top, width, height.
    pub fn rectangle(&mut self, at: (f64, f64, f64, f64), fill: &str, outline: Option<&str>) {
        let outline =
            outline.map_or_else(String::new, |colour| format!(r#" stroke="{colour}" stroke-width="0.5""#));
        self.push(format_args!(
            r#"<rect x="{}" y="{}" width="{}" height="{}" fill="{fill}"{outline}/>"#,
            n(at.0),
            n(at.1),
            n(at.2),
            n(at.3)
        ));
    }

    /// A rectangle in the colour and hatch of a series.
    pub fn bar(&mut self, at: (f64, f64, f64, f64), style: &Style) {
        self.rectangle(at, &fill(style), Some(INK));
    }

    /// The line of a series.
    pub fn path(&mut self, points: &[(f64, f64)], style: &Style) {
        let mut d = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            d.push_str(if index == 0 { "M" } else { "L" });
            d.push_str(&format!("{} {}", n(*x), n(*y)));
        }
        let dash = match style.dash {
            "" => String::new(),
            dash => format!(r#" stroke-dasharray="{dash}""#),
        };
        self.push(format_args!(
            r#"<path d="{d}" stroke="{}" stroke-width="1.2" stroke-linejoin="round" fill="none"{dash}/>"#,
            style.colour
        ));
    }

    /// The marker of a series.
    pub fn mark(&mut self, at: (f64, f64), style: &Style) {
        self.push(format_args!(
            r##"<path transform="translate({} {})" d="{}" fill="none" stroke="{}" stroke-width="0.9"/>"##,
            n(at.0),
            n(at.1),
            style.marker,
            style.colour
        ));
    }

    /// How far a value spreads, with caps of some width.
    pub fn spread(&mut self, x: f64, (low, high): (f64, f64), cap: f64) {
        let (left, right, low, high) = (n(x - cap / 2.0), n(x + cap / 2.0), n(low), n(high));
        let x = n(x);
        self.push(format_args!(
            r#"<path d="M{x} {low}L{x} {high}M{left} {low}H{right}M{left} {high}H{right}" stroke="{INK}" stroke-width="0.7" fill="none"/>"#
        ));
    }

    /// A line of text on its base line; `whole` is its tooltip if it says more.
    pub fn text(&mut self, at: (f64, f64), anchor: Anchor, size: f64, text: &str, whole: &str) {
        self.turned(at, anchor, size, 0.0, (text, whole));
    }

    /// The same, turned by some degrees.
    pub fn turned(
        &mut self,
        (x, y): (f64, f64),
        anchor: Anchor,
        size: f64,
        degrees: f64,
        (text, whole): (&str, &str),
    ) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let place = if degrees == 0.0 {
            format!(r#"x="{}" y="{}""#, n(x), n(y))
        } else {
            format!(r#"transform="translate({} {}) rotate({})""#, n(x), n(y), n(degrees))
        };
        // Laid out for the bundled font: with another one a line is as long.
        let length = n(width(text, size));
        let tip = if text == whole { String::new() } else { format!("<title>{}</title>", escaped(whole)) };
        self.push(format_args!(
            r#"<text {place}{anchor} textLength="{length}" lengthAdjust="spacingAndGlyphs" font-size="{}">{tip}{}</text>"#,
            n(size),
            escaped(text)
        ));
    }

    /// The whole document.
    pub fn finish(self, width: f64, height: f64, styles: &Styles, figure: &Figure) -> String {
        let (width, height) = (n(width), n(height.ceil()));
        let mut hatches = String::new();
        for (index, style) in STYLES.iter().chain([&BENEATH]).enumerate() {
            if !style.hatch.is_empty() && styles.0.iter().any(|(_, used)| *used == style) {
                hatches.push_str(&format!(
                    concat!(
                        r#"<pattern id="hatch{}" width="6" height="6" patternUnits="userSpaceOnUse">"#,
                        r#"<rect width="6" height="6" fill="{}"/>"#,
                        r#"<path d="{}" stroke="{}" stroke-width="0.7" fill="none"/></pattern>"#,
                        "\n"
                    ),
                    index, style.colour, style.hatch, style.ink
                ));
            }
        }
        let title = figure
            .title
            .as_ref()
            .map_or_else(String::new, |title| format!("<title>{}</title>\n", escaped(title)));
        format!(
            concat!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" width="{w}pt" height="{h}pt" viewBox="0 0 {w} {h}" "#,
                r#"font-family="Roboto, Helvetica, Arial, sans-serif" fill="{ink}">"#,
                "\n{title}<desc>{about}</desc>\n<defs>\n{hatches}</defs>\n",
                r##"<rect width="{w}" height="{h}" fill="#ffffff"/>"##,
                "\n{body}</svg>\n"
            ),
            w = width,
            h = height,
            ink = INK,
            title = title,
            about = escaped(&figure.about),
            hatches = hatches,
            body = self.body
        )
    }
}

fn fill(style: &Style) -> String {
    if style.hatch.is_empty() {
        return style.colour.to_owned();
    }
    let index = STYLES.iter().chain([&BENEATH]).position(|known| known == style).unwrap_or(0);
    format!("url(#hatch{index})")
}
