//! Axes: which stretch of numbers they show, where their ticks are and what these are called.

use super::{LOG_MIN, Scale};

/// A stretch of numbers with ticks.
#[derive(Clone, PartialEq, Debug)]
pub struct Range {
    /// How numbers become places.
    pub scale: Scale,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Numbers with their names.
    pub ticks: Vec<(f64, String)>,
    /// Numbers without.
    pub small: Vec<f64>,
}

/// Room above the highest number, where the axis does not end on a tick.
const HEAD_ROOM: f64 = 0.1;
/// Share of the axis that a bar's value takes.
const VALUE_ROOM: f64 = 0.06;
/// The steps between ticks, and between ends of a logarithmic axis.
const STEPS: [f64; 3] = [1.0, 2.0, 5.0];

impl Range {
    /// Room for these numbers, with some `wanted` ticks. Bars stand on zero, or a step below the least on a
    /// logarithmic axis.
    pub fn of(scale: Scale, numbers: &[f64], wanted: usize, from_zero: bool) -> Self {
        let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Nothing to show: any axis will do.
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        match scale {
            Scale::Linear => Self::linear(low, high, wanted, from_zero),
            // Bars have a height, and room for their values. They stand on a power of ten, a whole decade
            // below the least where that is near one: the least may not look like nothing beside the
            // others.
            Scale::Log if from_zero => {
                let foot = 10f64.powf((low / 2.0).log10().floor()).max(LOG_MIN);
                Self::log(foot, high * (high / foot).powf(VALUE_ROOM), wanted)
            }
            Scale::Log => Self::log(low, high, wanted),
        }
    }

    fn linear(low: f64, high: f64, wanted: usize, from_zero: bool) -> Self {
        // A curve that comes near zero is shown from zero, so that ratios can be seen.
        let near_zero = low >= 0.0 && low <= high * 0.6;
        let (mut low, mut high) =
            if from_zero || near_zero { (low.min(0.0), high.max(0.0)) } else { (low, high) };
        let size = low.abs().max(high.abs());
        if high - low <= size * 1e-9 {
            let room = if size > 0.0 { size * 0.1 } else { 1.0 };
            (low, high) = if size == 0.0 { (0.0, room) } else { (low - room, high + room) };
        }
        let step = nice_step((high - low) / wanted.max(1) as f64);
        let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
        // An axis that would be empty above its last tick but one ends a little above its numbers instead;
        // and so does one whose bars would touch its end, as their values stand above them.
        let over = high + (high - low) * HEAD_ROOM;
        let cut = high > 0.0 && over < last * step;
        let last = if cut { last - 1.0 } else { last };
        let count = (last - first).clamp(1.0, 1000.0) as u32;
        let last = first + f64::from(count);
        let values: Vec<f64> = (0..=count).map(|index| (first + f64::from(index)) * step).collect();
        let close = |number: f64, end: f64| {
            from_zero && number != 0.0 && (end - number).abs() < (high - low) * VALUE_ROOM
        };
        let below =
            if low < 0.0 && close(low, first * step) { low - (high - low) * HEAD_ROOM } else { first * step };
        let above = if cut || close(high, last * step) { over.max(last * step) } else { last * step };
        let (low, high) = (below, above);
        let ticks = values.iter().map(|&value| (value, tick_name(value, step, low.abs().max(high.abs()))));
        Self { scale: Scale::Linear, low, high, ticks: ticks.collect(), small: Vec::new() }
    }

    fn log(low: f64, high: f64, wanted: usize) -> Self {
        let below = steps_from(low.log10().floor() as i32 - 1).take_while(|&step| step <= low * (1.0 + 1e-9));
        let low = below.last().unwrap_or(low);
        let end = steps_from(high.log10().floor() as i32 - 1);
        let high = end.into_iter().find(|&step| step >= high * (1.0 - 1e-9) && step > low).unwrap_or(high);
        let inside: Vec<f64> = steps_from(low.log10().floor() as i32 - 1)
            .skip_while(|&step| step < low * (1.0 - 1e-9))
            .take_while(|&step| step <= high * (1.0 + 1e-9))
            .collect();
        let decades: Vec<f64> = inside.iter().copied().filter(|&value| is_decade(value)).collect();
        let named: Vec<f64> = if inside.len() <= wanted + 3 {
            inside
        } else {
            let every = decades.len().div_ceil(wanted.max(1)).max(1);
            decades.iter().copied().step_by(every).collect()
        };
        let small = if decades.len() <= 7 { minor(low, high) } else { decades };
        let ticks = named.iter().map(|&value| (value, short(value))).collect();
        Self { scale: Scale::Log, low, high, ticks, small }
    }

    /// Where a number is: 0 at the lower end, 1 at the upper.
    pub fn place(&self, number: f64) -> f64 {
        match self.scale {
            Scale::Linear => (number - self.low) / (self.high - self.low),
            Scale::Log => (number / self.low).ln() / (self.high / self.low).ln(),
        }
    }

    /// The same with other ticks, and no wider than these numbers and a margin.
    pub fn around(mut self, numbers: &[f64], ticks: Vec<(f64, String)>) -> Self {
        let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if low < high {
            (self.low, self.high) = match self.scale {
                Scale::Linear => (low - (high - low) * 0.05, high + (high - low) * 0.05),
                Scale::Log => (low / (high / low).powf(0.05), high * (high / low).powf(0.05)),
            };
        }
        self.ticks = ticks;
        self.small.clear();
        self
    }
}

/// The smallest nice number that is not below.
fn nice_step(least: f64) -> f64 {
    let power = 10f64.powi(least.log10().floor() as i32);
    let steps = STEPS.iter().chain(&[10.0]).map(|step| step * power);
    steps.into_iter().find(|&step| step >= least * (1.0 - 1e-9)).unwrap_or(power * 10.0)
}

/// 1, 2, 5, 10, 20 ... times a power of ten.
fn steps_from(power: i32) -> impl Iterator<Item = f64> {
    (power..power + 70).flat_map(|power| STEPS.map(|step| decimal(step, power)))
}

/// A digit times a power of ten, as exact as it is when written.
fn decimal(digit: f64, power: i32) -> f64 {
    if power >= 0 { digit * 10f64.powi(power) } else { digit / 10f64.powi(-power) }
}

fn is_decade(value: f64) -> bool {
    let power = value.log10();
    (power - power.round()).abs() < 1e-6
}

/// All digits times powers of ten.
fn minor(low: f64, high: f64) -> Vec<f64> {
    let first = low.log10().floor() as i32;
    let all =
        (first..first + 12).flat_map(|power| (1..10).map(move |digit| decimal(f64::from(digit), power)));
    all.filter(|&value| value >= low * (1.0 - 1e-9) && value <= high * (1.0 + 1e-9)).collect()
}

/// Thousands, millions and so on have letters.
const LETTERS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];

/// A tick of an axis whose largest number is `largest`: all ticks of an axis have the same letter and
/// decimals.
fn tick_name(value: f64, step: f64, largest: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e15).contains(&largest) {
        return minus(&format!("{value:e}").replace("e-", "e\u{2212}"));
    }
    let (unit, letter) = match LETTERS.iter().find(|(unit, _)| largest >= *unit) {
        Some(&(unit, letter)) if largest >= 1e4 => (unit, letter),
        Some(_) | None => (1.0, ""),
    };
    let digits = (-(step / unit).log10() + 1e-9).ceil().clamp(0.0, 9.0) as usize;
    minus(&format!("{:.digits$}{letter}", value / unit))
}

/// A number in three digits, or as it is if it is shorter.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(9.995e-4..9.995e14).contains(&size) {
        let text = format!("{value:.2e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        return minus(&format!("{}e{power}", trimmed(digits)));
    }
    let (unit, letter) = LETTERS
        .iter()
        .copied()
        .find(|(unit, _)| size >= unit * 0.9995)
        .filter(|_| size >= 999.5)
        .unwrap_or((1.0, ""));
    let scaled = size / unit;
    let digits: usize = match scaled {
        _ if scaled >= 99.95 => 0,
        _ if scaled >= 9.995 => 1,
        _ if scaled >= 0.9995 => 2,
        _ if scaled >= 0.09995 => 3,
        _ if scaled >= 0.009995 => 4,
        _ => 5,
    };
    minus(&format!("{}{letter}", trimmed(&format!("{:.digits$}", value / unit))))
}

/// Without zeros behind the point.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// With the sign that printers use.
fn minus(text: &str) -> String {
    text.replacen('-', "\u{2212}", 1)
}
