//! Cells that no load is needed for: closed forms, and drives of which only bandwidths are known.

use super::super::view::Figures;
use crate::failure::Failure;
use crate::number::float;
use block::{Random as _, XoshiroPlusPlus};
use flash::{Device, Queue, Tag, presets};
use placement::{HotnessKind, PlacementKind, PlacementOptions, Tuning};
use reliability::closed;

fn number(words: &[&str], at: usize) -> Result<f64, Failure> {
    let found = words.get(at).copied().unwrap_or_default();
    found.parse().map_err(|_| Failure::new(format!("found {found:?} as word {at}, expected a number")))
}

fn figures<const N: usize>(named: [(&str, f64); N]) -> Figures {
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Mean time to data loss by W-44 or W-45 with the parameters of W-47: level, alpha, repairs per year.
pub fn mean_time_to_loss(words: &[&str]) -> Result<Figures, Failure> {
    const DEVICES: u32 = 8;
    const FAILURES_PER_YEAR: f64 = 0.25;
    let form = match words.first().copied() {
        Some("raid5") => closed::raid5,
        Some("raid6") => closed::raid6,
        other => return Err(Failure::new(format!("found {other:?}, expected raid5 or raid6"))),
    };
    let (alpha, repairs) = (number(words, 1)?, number(words, 2)?);
    let (before, now) =
        (form(DEVICES, FAILURES_PER_YEAR, repairs), form(DEVICES, alpha * FAILURES_PER_YEAR, repairs));
    Ok(figures([("years", now), ("years_of_elastic", before), ("times", now / before)]))
}

/// What collecting a unit costs by W-37: share of its hot chunks that are invalid; N is 1. Mixed units keep
/// cold chunks in hot ones' company, p_c = p_h / 16 under 80/20.
pub fn collection_cost(words: &[&str]) -> Result<Figures, Failure> {
    let hot = number(words, 0)?;
    let (mixed, separated) = (1.0 - 17.0 / 32.0 * hot, 1.0 - hot);
    Ok(figures([("mixed", mixed), ("separated", separated), ("saved", 100.0 * (mixed - separated) / mixed)]))
}

/// A drive alone: preset, pattern, MiB. 4 KiB requests, 32 of them under way.
pub fn drive(words: &[&str]) -> Result<Figures, Failure> {
    const DEPTH: u32 = 32;
    let name = words.first().copied().unwrap_or_default();
    let config = presets::by_name(name).ok_or_else(|| Failure::new(format!("found no drive {name:?}")))?;
    let mut drive = Device::new(config)?;
    let (pattern, mib) = (words.get(1).copied().unwrap_or_default(), number(words, 2)?);
    // At most what 32 bits count, all of it within the drive.
    let requests = (0..u64::from(u32::MAX)).take_while(|&request| float(request) < mib * 256.0).count();
    let requests = u64::try_from(requests)?;
    let (is_random, is_write) = match pattern {
        "sequential-write" => (false, true),
        "random-write" => (true, true),
        "sequential-read" => (false, false),
        "random-read" => (true, false),
        other => {
            return Err(Failure::new(format!("found {other:?}, expected a pattern such as random-write")));
        }
    };
    let (mut random, mut queue) = (XoshiroPlusPlus::new(1), Queue::new(DEPTH));
    for request in 0..requests {
        let page = if is_random { random.below(drive.pages()) } else { request % drive.pages() };
        let now_ns = queue.enter();
        let end_ns = if is_write {
            drive.write(page, 1, Tag::Data(0), now_ns)?
        } else {
            drive.read(page, 1, now_ns)?
        };
        queue.leave(end_ns);
    }
    let bytes = float(requests) * f64::from(drive.page_bytes());
    let seconds = float(queue.end_ns().max(1)) / 1e9;
    Ok(figures([("mb_per_s", bytes / seconds / 1e6)]))
}

/// Memory of what tells hot chunks from cold ones in a volume of 1 GiB of 4 KiB chunks: glru or hca.
pub fn hotness_memory(words: &[&str]) -> Result<Figures, Failure> {
    const CHUNKS: u64 = 1 << 18;
    let hotness = match words.first().copied() {
        Some("glru") => HotnessKind::Glru,
        Some("hca") => HotnessKind::Hca,
        other => return Err(Failure::new(format!("found {other:?}, expected glru or hca"))),
    };
    let options = PlacementOptions {
        tuning: Tuning { hotness, ..Tuning::default() },
        ..PlacementOptions::new(PlacementKind::Was, CHUNKS)
    };
    let bytes = float(u64::try_from(options.build()?.memory_bytes())?);
    Ok(figures([("kib", bytes / 1024.0)]))
}

#[cfg(test)]
mod tests {
    use super::collection_cost;

    /// W-37, from its assumptions: of a mixed unit's chunks half are hot, a share `hot` of which is
    /// invalid, half are cold, a sixteenth of that; a separate unit is hot throughout.
    #[test]
    fn collecting_separate_units_costs_what_the_paper_says() {
        for (word, hot) in [("0", 0.0), ("0.2", 0.2), ("0.8", 0.8), ("1", 1.0)] {
            let found = collection_cost(&[word]).expect("a number");
            let mixed = 1.0 - (hot + hot / 16.0) / 2.0;
            assert!((found["mixed"] - mixed).abs() < 1e-12, "{word}");
            assert!((found["separated"] - (1.0 - hot)).abs() < 1e-12, "{word}");
            assert!(found["separated"] <= found["mixed"], "{word}");
        }
        assert!(collection_cost(&["hot"]).is_err());
    }
}
