//! Values with units: sizes, rates, durations and shares, as options take them and as output shows them.

use block::Geometry;
use std::time::Duration;

const BINARY: [(&str, u64); 5] =
    [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40), ("PiB", 1 << 50)];
/// Without `iB`, as `fio`, `qemu`, `mdadm` and `truncate` take it: binary.
const SHORT: [(&str, u64); 5] =
    [("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40), ("P", 1 << 50)];
const DECIMAL: [(&str, u64); 5] = [
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("PB", 1_000_000_000_000_000),
];

/// A number of bytes: `4KiB`, `1.5GiB`, `512B`; `64M` is 64 MiB, `64MB` is 64 million bytes.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let expected = || format!("found {text:?}, expected a size with its unit, such as 4KiB, 64M or 1.5GiB");
    let (number, unit) = split_unit(text).ok_or_else(expected)?;
    let known = BINARY.iter().chain(&SHORT).chain(&DECIMAL).find(|(name, _)| name.eq_ignore_ascii_case(unit));
    let factor = match (unit, known) {
        ("B" | "b", _) => 1,
        (_, Some(&(_, factor))) => factor,
        (_, None) => return Err(expected()),
    };
    let bytes = scale(number, factor).ok_or_else(expected)?;
    small_enough(bytes).ok_or_else(|| format!("found {text:?}, expected less than 8192PiB"))
}

/// Bytes of a chunk: a size that chunks can have.
pub fn parse_chunk_size(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text)?;
    // The columns are right.
    Geometry::new(1, 1, bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Bytes per second: `100MiB/s`.
pub fn parse_rate(text: &str) -> Result<u64, String> {
    let expected = || format!("found {text:?}, expected a rate such as 100MiB/s");
    let size = text.strip_suffix("/s").ok_or_else(expected)?;
    parse_size(size)
        .map_err(|_| expected())
        .and_then(|rate| if rate > 0 { Ok(rate) } else { Err(expected()) })
}

/// A rate, or `off` for none.
pub fn parse_rate_or_off(text: &str) -> Result<Option<u64>, String> {
    if text == "off" { Ok(None) } else { parse_rate(text).map(Some) }
}

/// A span of time: `500ms`, `1s`, `2min`, `1h`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("found {text:?}, expected a time with its unit, such as 500ms, 1s or 2min");
    let (number, unit) = split_unit(text).ok_or_else(expected)?;
    let factor_ns = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" | "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(expected()),
    };
    scale(number, factor_ns).and_then(small_enough).map(Duration::from_nanos).ok_or_else(expected)
}

/// A span of time, or `off` for none.
pub fn parse_duration_or_off(text: &str) -> Result<Option<Duration>, String> {
    if text == "off" { Ok(None) } else { parse_duration(text).map(Some) }
}

/// A share in thousandths: `10%`, `7.5%`.
pub fn parse_permille(text: &str) -> Result<u32, String> {
    let expected = || format!("found {text:?}, expected a share such as 10% or 7.5%");
    let number = text.strip_suffix('%').ok_or_else(expected)?;
    let permille = scale(number, 10).ok_or_else(expected)?;
    u32::try_from(permille).map_err(|_| expected())
}

fn split_unit(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    (!number.is_empty()).then_some((number, unit.trim_start()))
}

/// `number` times `factor`, when that is a whole number.
fn scale(number: &str, factor: u64) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.len() > 9 || (number.contains('.') && fraction.is_empty()) {
        return None;
    }
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let divisor = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let scaled = digits.checked_mul(u128::from(factor))?;
    scaled.is_multiple_of(divisor).then(|| scaled / divisor)
}

/// As a number that sums and differences of can be made.
fn small_enough(value: u128) -> Option<u64> {
    u64::try_from(value).ok().filter(|&value| value < 1 << 63)
}

/// A size for people: `4 KiB`, `1.50 GiB`, `512 B`.
pub fn show_size(bytes: u64) -> String {
    match BINARY.iter().rev().find(|&&(_, factor)| bytes >= factor) {
        None => format!("{bytes} B"),
        Some(&(unit, factor)) if bytes.is_multiple_of(factor) => format!("{} {unit}", bytes / factor),
        Some(&(unit, factor)) => {
            let hundredths = u128::from(bytes) * 100 / u128::from(factor);
            format!("{}.{:02} {unit}", hundredths / 100, hundredths % 100)
        }
    }
}

/// A rate for people: `120.25 MiB/s`.
pub fn show_rate(bytes_per_s: u64) -> String {
    format!("{}/s", show_size(bytes_per_s))
}

/// A span of time for people, to the second: `1h 02min`, `3min 20s`, `12s`.
pub fn show_seconds(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}min {:02}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h {:02}min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {:02}h", seconds / 86400, seconds / 3600 % 24),
    }
}

/// A count with separators: `1,234,567`.
pub fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// A moment, given in seconds since 1970, as `2026-03-01 12:30:05 UTC`.
pub fn show_time(unix_s: u64) -> String {
    // Days to a date of the Gregorian calendar, in eras of 400 years that begin on 1 March.
    let (days, second) = (unix_s / 86400, unix_s % 86400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// A moment, given in milliseconds since 1970, as `2026-03-01T12:30:05.250Z`.
pub fn show_moment(unix_ms: u64) -> String {
    let time = show_time(unix_ms / 1000);
    format!("{}.{:03}Z", time.trim_end_matches(" UTC").replace(' ', "T"), unix_ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_need_a_unit_and_must_be_whole_bytes() {
        assert_eq!(parse_size("4KiB"), Ok(4096));
        assert_eq!(parse_size("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse_size("64 MiB"), Ok(64 << 20));
        assert_eq!(parse_size("1MB"), Ok(1_000_000));
        assert_eq!(
            [parse_size("64M"), parse_size("64k"), parse_size("2T")],
            [Ok(64 << 20), Ok(64 << 10), Ok(2 << 40)]
        );
        assert_eq!(parse_size("512B"), Ok(512));
        for bad in
            ["", "4096", "KiB", "-4KiB", "4XB", "0.3B", "1.KiB", ".5KiB", "1e3KiB", "99999999PiB", "4KiBs"]
        {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_size("8192PiB"), Err("found \"8192PiB\", expected less than 8192PiB".to_owned()));
    }

    #[test]
    fn chunks_have_a_power_of_two_of_bytes() {
        assert_eq!([parse_chunk_size("4KiB"), parse_chunk_size("1MiB")], [Ok(4096), Ok(1 << 20)]);
        for bad in ["0B", "3KiB", "2KiB", "2MiB", "4096"] {
            assert!(parse_chunk_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rates_durations_and_shares() {
        assert_eq!(parse_rate("100MiB/s"), Ok(100 << 20));
        assert!(parse_rate("100MiB").is_err() && parse_rate("0B/s").is_err());
        assert_eq!(parse_rate_or_off("off"), Ok(None));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration_or_off("off"), Ok(None));
        assert!(parse_duration("1").is_err() && parse_duration("s").is_err());
        assert_eq!(parse_permille("10%"), Ok(100));
        assert_eq!(parse_permille("7.5%"), Ok(75));
        assert!(parse_permille("10").is_err() && parse_permille("1.23%").is_err());
    }

    #[test]
    fn output_for_people() {
        assert_eq!(show_size(0), "0 B");
        assert_eq!(show_size(4096), "4 KiB");
        assert_eq!(show_size(3 << 29), "1.50 GiB");
        assert_eq!(show_seconds(59), "59s");
        assert_eq!(show_seconds(3725), "1h 02min");
        assert_eq!(show_count(1_234_567), "1,234,567");
        assert_eq!(show_count(123), "123");
        assert_eq!(show_time(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(show_moment(1_767_225_599_007), "2025-12-31T23:59:59.007Z");
        assert_eq!(show_time(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(show_time(1_767_225_599), "2025-12-31 23:59:59 UTC");
    }
}
