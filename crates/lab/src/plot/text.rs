//! Text: how long it gets in the bundled font, and how it goes into XML.

/// Advance widths of the characters from space to tilde in Roboto Regular, in units of 1/2048 em.
const ADVANCES: [u16; 95] = [
    508, 528, 656, 1261, 1151, 1500, 1274, 358, 701, 713, 882, 1162, 403, 566, 540, 845, 1151, 1151, 1151,
    1151, 1151, 1151, 1151, 1151, 1151, 1151, 496, 433, 1041, 1124, 1071, 968, 1839, 1336, 1276, 1333, 1344,
    1164, 1132, 1395, 1461, 557, 1130, 1285, 1103, 1788, 1461, 1409, 1292, 1409, 1262, 1216, 1222, 1328,
    1304, 1817, 1284, 1230, 1227, 543, 841, 543, 856, 924, 633, 1114, 1150, 1072, 1155, 1086, 712, 1150,
    1128, 498, 490, 1038, 498, 1796, 1131, 1168, 1150, 1164, 694, 1057, 670, 1129, 992, 1539, 1016, 969,
    1016, 693, 500, 693, 1393,
];
/// All others, on average.
const ADVANCE: u16 = 1200;

/// Length of a line of text at a font size, in the unit of the size.
pub fn width(text: &str, size: f64) -> f64 {
    let advance = |c: char| {
        let index = u32::from(c).checked_sub(32).and_then(|index| usize::try_from(index).ok());
        f64::from(index.and_then(|index| ADVANCES.get(index)).copied().unwrap_or(ADVANCE))
    };
    text.chars().map(advance).sum::<f64>() * size / 2048.0
}

/// The text, or as much of it as fits, with an ellipsis.
pub fn fitted(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if width(&kept, size) + width(&format!("{c}\u{2026}"), size) > room {
            break;
        }
        kept.push(c);
    }
    format!("{}\u{2026}", kept.trim_end())
}

/// Lines of at most `room`, broken at spaces and line ends; the last of `most` lines takes what fits of the
/// rest.
pub fn wrapped(text: &str, size: f64, room: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.split('\n') {
        let mut line = String::new();
        for word in part.split_whitespace() {
            let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if line.is_empty() || width(&longer, size) <= room || lines.len() + 1 >= most {
                line = longer;
            } else {
                lines.push(std::mem::replace(&mut line, word.to_owned()));
            }
        }
        if lines.len() < most {
            lines.push(line);
        } else if let Some(last) = lines.last_mut() {
            last.push_str(&format!(" {line}"));
        }
    }
    lines.iter().map(|line| fitted(line, size, room)).collect()
}

/// The same of an axis label, whose unit in brackets stays together where that is possible.
pub fn wrapped_label(text: &str, size: f64, room: f64, most: usize) -> Vec<String> {
    if width(text, size) <= room {
        return vec![text.to_owned()];
    }
    match text.rfind(" (").filter(|_| text.ends_with(')')) {
        Some(at) if width(&text[at + 1..], size) <= room => {
            let mut lines = wrapped(&text[..at], size, room, most.saturating_sub(1).max(1));
            lines.push(text[at + 1..].to_owned());
            lines
        }
        Some(_) | None => wrapped(text, size, room, most),
    }
}

/// As text or value of an attribute in XML; characters that XML has not become the one for unknown ones.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{0}'..'\u{20}' | '\u{7f}'..'\u{a0}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
