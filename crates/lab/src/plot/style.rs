//! What tells series apart: colour, hatch, dash, marker.

use format::SchemeKind;

/// How a series looks, as bars and as a line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Style {
    /// Of Okabe and Ito's palette ("Color Universal Design", 2008).
    pub colour: &'static str,
    /// Lines over a bar, as the path of a tile of 6 points; empty for none.
    pub hatch: &'static str,
    /// Their colour, which is seen on the bar's.
    pub ink: &'static str,
    /// Dashes of a line in points, empty for none.
    pub dash: &'static str,
    /// Outline of a marker around the origin, some 5 points wide.
    pub marker: &'static str,
}

const LIGHT: &str = "#ffffff";
const DARK: &str = "#1a1a1a";

/// The styles, in the order in which series take them. Neighbours differ in lightness too; yellow,
/// which is faint as a line, comes last.
pub const STYLES: [Style; 8] = [
    Style {
        colour: "#0072B2",
        hatch: "",
        ink: LIGHT,
        dash: "",
        marker: "M-2.4,0a2.4,2.4 0 1,0 4.8,0a2.4,2.4 0 1,0 -4.8,0z",
    },
    Style {
        colour: "#E69F00",
        hatch: "M-1,1L1,-1M0,6L6,0M5,7L7,5",
        ink: DARK,
        dash: "5 2",
        marker: "M-2.2,-2.2H2.2V2.2H-2.2z",
    },
    Style {
        colour: "#009E73",
        hatch: "M-1,5L1,7M0,0L6,6M5,-1L7,1",
        ink: LIGHT,
        dash: "1.5 1.5",
        marker: "M0,-2.8L2.7,2H-2.7z",
    },
    Style {
        colour: "#56B4E9",
        hatch: "M0,1.5H6M0,4.5H6",
        ink: DARK,
        dash: "6 2 1.5 2",
        marker: "M0,-3.1L3.1,0L0,3.1L-3.1,0z",
    },
    Style {
        colour: "#D55E00",
        hatch: "M0,0L6,6M6,0L0,6M-1,5L1,7M5,-1L7,1M-1,1L1,-1M5,7L7,5",
        ink: LIGHT,
        dash: "3 1.5",
        marker: "M0,2.8L2.7,-2H-2.7z",
    },
    Style {
        colour: "#CC79A7",
        hatch: "M1,1.5h1M4,1.5h1M2.5,4.5h1M5.5,4.5h1M-0.5,4.5h1",
        ink: DARK,
        dash: "6 1.5 1.5 1.5 1.5 1.5",
        marker: "M0,-3.1L0.8,-0.9L3,-0.9L1.2,0.5L1.9,2.7L0,1.4L-1.9,2.7L-1.2,0.5L-3,-0.9L-0.8,-0.9z",
    },
    Style {
        colour: "#000000",
        hatch: "M0,3H6M3,0V6",
        ink: LIGHT,
        dash: "1 2.5",
        marker: "M-2.8,-1L0,-2.8L2.8,-1L1.8,2.4H-1.8z",
    },
    Style {
        colour: "#F0E442",
        hatch: "M1.5,0V6M4.5,0V6",
        ink: DARK,
        dash: "8 2",
        marker: "M-0.9,-2.7H0.9V-0.9H2.7V0.9H0.9V2.7H-0.9V0.9H-2.7V-0.9H-0.9z",
    },
];

/// What bars start from that is no part of them: paper.
pub const BENEATH: Style =
    Style { colour: "#ffffff", hatch: "M0,6L6,0", ink: "#bdbdbd", dash: "1 1", marker: "M-2.4,0H2.4" };

/// The schemes, in the order in which papers list them: what is improved on comes first.
const LISTED: [SchemeKind; 5] =
    [SchemeKind::Raid, SchemeKind::ParityLog, SchemeKind::Eplog, SchemeKind::Elastic, SchemeKind::Was];

/// Where a scheme stands among others; nothing for other names.
pub fn scheme_rank(name: &str) -> Option<usize> {
    LISTED.iter().position(|scheme| scheme.name() == name)
}

/// The style of each of these names: if all are schemes, that of the scheme, which looks alike in all
/// figures.
pub fn of(names: &[String]) -> Vec<&'static Style> {
    let scheme = |name: &String| SchemeKind::OFFERED.iter().position(|scheme| scheme.name() == *name);
    let schemes: Option<Vec<usize>> = names.iter().map(scheme).collect();
    let indexes = schemes.unwrap_or_else(|| (0..names.len()).collect());
    indexes.iter().map(|index| &STYLES[index % STYLES.len()]).collect()
}
