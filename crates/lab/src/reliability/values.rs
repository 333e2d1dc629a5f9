//! Rates, long spans of time and other numbers with units, as the options of `reliability` take them and as
//! its output shows them. Years have 365.25 days.

use node::units::parse_size;
use reliability::HOURS_PER_YEAR;

/// Years of a unit of time.
fn years_of(unit: &str) -> Option<f64> {
    let hours = match unit {
        "s" => 1.0 / 3600.0,
        "min" | "m" => 1.0 / 60.0,
        "h" => 1.0,
        "d" => 24.0,
        "w" => 7.0 * 24.0,
        "y" => HOURS_PER_YEAR,
        _ => return None,
    };
    Some(hours / HOURS_PER_YEAR)
}

/// A number of digits, a point and an exponent; finite and not negative.
fn number(text: &str) -> Option<f64> {
    let digits = text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || ".e-+".contains(c));
    text.parse().ok().filter(|value: &f64| digits && value.is_finite())
}

/// Times in a year: `0.25/y`, `3/d`.
pub fn parse_frequency(text: &str) -> Result<f64, String> {
    let expected = || format!("found {text:?}, expected a rate such as 0.25/y, 1e-6/h or 10000/y");
    let (count, unit) = text.split_once('/').ok_or_else(expected)?;
    Ok(number(count).ok_or_else(expected)? / years_of(unit).ok_or_else(expected)?)
}

/// A span in years: `12h`, `7d`, `4y`.
pub fn parse_span(text: &str) -> Result<f64, String> {
    let expected = || format!("found {text:?}, expected a time with its unit, such as 30min, 12h, 7d or 4y");
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(expected)?;
    let (count, unit) = text.split_at(end);
    Ok(number(count).ok_or_else(expected)? * years_of(unit.trim_start()).ok_or_else(expected)?)
}

/// A share: `5%`, `0.05`.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let expected = || format!("found {text:?}, expected a share from 0 to 1, such as 5% or 0.05");
    let share = match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => number(text),
    };
    share.filter(|share| *share <= 1.0).ok_or_else(expected)
}

/// A bare number that is not negative: `1e-17`, `0.37`.
pub fn parse_number(text: &str) -> Result<f64, String> {
    number(text).ok_or_else(|| format!("found {text:?}, expected a number such as 0.5 or 1e-17"))
}

/// A size in bytes.
pub fn parse_bytes(text: &str) -> Result<f64, String> {
    parse_size(text).map(whole)
}

/// Bytes per second.
pub fn parse_bytes_per_s(text: &str) -> Result<f64, String> {
    let expected = || format!("found {text:?}, expected a rate such as 100MB/s or 1GiB/s");
    let size = text.strip_suffix("/s").ok_or_else(expected)?;
    parse_bytes(size).ok().filter(|rate| *rate > 0.0).ok_or_else(expected)
}

/// A whole number as one that can be reckoned with.
pub fn whole(value: u64) -> f64 {
    let [high, low] =
        [value >> 32, value & u64::from(u32::MAX)].map(|half| u32::try_from(half).unwrap_or(u32::MAX));
    f64::from(high) * 4_294_967_296.0 + f64::from(low)
}

/// Four digits that count, whatever the size: `2858`, `0.1234`, `1.234e-9`; `never` for what takes for ever.
pub fn show(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if value.is_infinite() => "never".to_owned(),
        _ if value.is_nan() => "n/a".to_owned(),
        0.0 => "0".to_owned(),
        1000.0..1e7 => format!("{value:.0}"),
        100.0..1000.0 => format!("{value:.1}"),
        10.0..100.0 => format!("{value:.2}"),
        1.0..10.0 => format!("{value:.3}"),
        0.1..1.0 => format!("{value:.4}"),
        0.01..0.1 => format!("{value:.5}"),
        0.001..0.01 => format!("{value:.6}"),
        _ => format!("{value:.3e}"),
    }
}

/// The same without zeros at the end: for what was given.
pub fn brief(value: f64) -> String {
    let shown = show(value);
    if shown.contains('.') && !shown.contains('e') {
        return shown.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    shown
}

/// Bytes, parts of one too.
pub fn show_bytes(bytes: f64) -> String {
    const UNITS: [(&str, f64); 4] = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    match UNITS.into_iter().find(|(_, factor)| bytes >= *factor) {
        Some((unit, factor)) => format!("{} {unit}", show(bytes / factor)),
        None => format!("{} B", show(bytes)),
    }
}

/// Years as a span that reads well.
pub fn show_span(years: f64) -> String {
    let hours = years * HOURS_PER_YEAR;
    match hours {
        0.0..1.0 => format!("{} min", brief(hours * 60.0)),
        1.0..96.0 => format!("{} h", brief(hours)),
        96.0..8766.0 => format!("{} d", brief(hours / 24.0)),
        _ => format!("{} y", brief(years)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_units() {
        assert_eq!(parse_frequency("0.25/y"), Ok(0.25));
        assert!((parse_frequency("1/h").unwrap_or(0.0) - 8766.0).abs() < 1e-9);
        assert!((parse_span("7d").unwrap_or(0.0) * 365.25 - 7.0).abs() < 1e-9);
        assert_eq!(parse_share("5%"), Ok(0.05));
        assert_eq!(parse_number("1e-17"), Ok(1e-17));
        assert_eq!(parse_bytes_per_s("100MB/s"), Ok(1e8));
        assert_eq!(whole(u64::MAX), 1.844_674_407_370_955_2e19);
        for bad in ["", "1", "/y", "-1/y", "nan/y", "inf/y", "1/", "1/fortnight", "1e999/y", "x/y"] {
            assert!(parse_frequency(bad).is_err(), "{bad}");
        }
        for bad in ["", "7", "d", "-7d", "1e3d", "7 days", "NaNd"] {
            assert!(parse_span(bad).is_err(), "{bad}");
        }
        for bad in ["101%", "1.5", "-1", "%", "NaN"] {
            assert!(parse_share(bad).is_err(), "{bad}");
        }
        assert!(parse_number("NaN").is_err() && parse_number("inf").is_err());
        assert!(parse_bytes_per_s("0B/s").is_err() && parse_bytes_per_s("100MB").is_err());
    }

    #[test]
    fn numbers_have_four_digits() {
        let shown = [0.0, 2858.2, 0.001_234_3, 1.234_3e-9, 19.74, 1.9e7].map(show);
        assert_eq!(shown, ["0", "2858", "0.001234", "1.234e-9", "19.74", "1.900e7"]);
        assert_eq!(show(f64::INFINITY), "never");
        assert_eq!(show(f64::NAN), "n/a");
        assert_eq!([0.5, 1500.0].map(show_bytes), ["0.5000 B", "1.500 kB"]);
        assert_eq!(show_span(1.0 / 365.25), "24 h");
    }
}
