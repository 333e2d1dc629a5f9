//! Options of the elastic schemes, the same wherever an array is run.

use crate::failure::Failure;
use array::{EngineOptions, SchemeOptions};
use clap::Args;
use format::{SchemeKind, UNIT_ROWS_MAX};
use node::units::parse_duration;
use placement::{GcGroup, GcThreshold, HotnessKind, PlacementKind, Thresholds, Tuning, VictimKind};

/// What elastic schemes write together, how long a chunk waits for that, and what they collect when.
#[derive(Args, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ElasticChoices {
    /// Which chunks are written together: `single` (all), `was` (those of one hotness), `sepbit` (those of
    /// one likely lifetime) or `midas` (those of one age, in groups that adapt); by default `was` with the
    /// scheme was, and with elastic `sepbit` in serve, kv serve and bench, `single` (eSAP) in replay and
    /// simulate, which count as the papers do.
    #[arg(long, value_name = "POLICY")]
    pub placement: Option<PlacementKind>,
    /// Groups that the placement was tells apart, 2 to 4 (default 2).
    #[arg(long, value_parser = clap::value_parser!(u64).range(2..=4), value_name = "N")]
    pub groups: Option<u64>,
    /// How the placement was tells hot chunks from cold ones: `glru` (default) or `hca`.
    #[arg(long, value_name = "IDENTIFIER")]
    pub hotness: Option<HotnessKind>,
    /// Which unit garbage collection takes next: `greedy` (default), `cost-benefit`, `cost-benefit-root`
    /// (age counts by its square root), `age` (the oldest), `windowed` (greedy among the oldest quarter) or
    /// `d-choices` (greedy among ten drawn).
    #[arg(long, value_name = "POLICY")]
    pub gc: Option<VictimKind>,
    /// Share of units in use from which on garbage is collected, 1% to 99% (default 90%); not before half
    /// of the spare units are in use, so that with a reserve of 20% nothing below that changes anything.
    #[arg(long, value_parser = parse_threshold, value_name = "PERCENT")]
    pub gc_threshold: Option<GcThreshold>,
    /// Where the placements single and was put chunks that garbage collection moves: with the `coldest`
    /// (default), or into a group of their `own`.
    #[arg(long, value_name = "GROUP")]
    pub gc_group: Option<GcGroup>,
    /// Chunks of a group that wait to be written together; by default a stripe with the scheme elastic, a
    /// unit with was.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 20), value_name = "CHUNKS")]
    pub group_chunks: Option<u32>,
    /// How long a chunk waits for its group at most (volatile until the next flush, like everything
    /// acknowledged): a time such as 200ms, or never (until the group is full, a flush or idle time); by
    /// default 200ms with the scheme elastic, never with was.
    #[arg(long, value_parser = parse_wait, value_name = "TIME")]
    pub p_wait: Option<Wait>,
    /// Chunks of which the placement sepbit remembers when they were written last, 8 bytes each: for old
    /// versions whose unit does not tell, such as those written before the start (default 0).
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=1 << 28), value_name = "CHUNKS")]
    pub recent_entries: Option<u64>,
    /// Groups that the placement midas uses at most, 2 to 8 (default 8); each keeps a unit open and one free.
    #[arg(long, value_parser = clap::value_parser!(u64).range(2..=8), value_name = "N")]
    pub midas_groups: Option<u64>,
    /// Lists of the table of `glru`, K of the paper (default 128).
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65_536), value_name = "N")]
    pub glru_lists: Option<u32>,
    /// Items of each list, N of the paper (default 8).
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64), value_name = "N")]
    pub glru_items: Option<u32>,
    /// How probably a chunk that `glru` does not know evicts another, 0% to 100% (default 50%).
    #[arg(long, value_parser = parse_percent, value_name = "PERCENT")]
    pub glru_insert: Option<u8>,
    /// Writes from which on `glru` takes a chunk for hotter, one number for each group but the coldest
    /// (default 2, or 2,4, or 2,4,8).
    #[arg(long, value_parser = parse_thresholds, value_name = "N,...")]
    pub hot_thresholds: Option<Thresholds>,
}

/// How long a chunk waits at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// In nanoseconds; `u64::MAX` is never.
    pub ns: u64,
}

fn parse_wait(text: &str) -> Result<Wait, String> {
    if text == "never" {
        return Ok(Wait { ns: u64::MAX });
    }
    let wait = parse_duration(text).map_err(|_| {
        format!("found {text:?}, expected a time with its unit, such as 200ms or 0ms, or never")
    })?;
    // A duration that was parsed is below 2^63 ns.
    Ok(Wait { ns: u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX - 1) })
}

fn parse_percent(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<u8>().ok();
    number
        .filter(|&percent| percent <= 100)
        .ok_or_else(|| format!("found {text:?}, expected a share from 0% to 100%"))
}

fn parse_thresholds(text: &str) -> Result<Thresholds, String> {
    let numbers = text.split(',').map(str::parse).collect::<Result<Vec<u8>, _>>();
    let numbers =
        numbers.map_err(|_| format!("found {text:?}, expected one to three numbers such as 2,4"))?;
    Thresholds::new(&numbers).map_err(|error| error.to_string())
}

fn parse_threshold(text: &str) -> Result<GcThreshold, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    let percent: u64 = number.parse().map_err(|_| format!("found {text:?}, expected a share such as 90%"))?;
    GcThreshold::new(percent).map_err(|error| error.to_string())
}

/// Rows of a unit, of an array that is made.
#[derive(Args, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GcUnit {
    /// Chunks of each device that are collected together, 2 to 65536, such as those of an erase block
    /// (schemes elastic and was; by default 64, more on large devices).
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=i64::try_from(UNIT_ROWS_MAX).unwrap_or(i64::MAX)), value_name = "ROWS")]
    pub gc_unit: Option<u32>,
}

impl GcUnit {
    /// Refuses it for a scheme that has no units.
    pub fn check(self, scheme: SchemeKind) -> Result<(), Failure> {
        match self.gc_unit {
            Some(rows) if !scheme.is_elastic() => Err(Failure::new(format!(
                "--gc-unit {rows}: scheme {scheme} collects no garbage; only elastic and was do"
            ))),
            Some(_) | None => Ok(()),
        }
    }

    /// The rows; `None` is what fits the devices.
    pub fn rows(self) -> Option<u32> {
        self.gc_unit
    }
}

impl ElasticChoices {
    /// Refuses what means nothing to a scheme.
    pub fn check(self, scheme: SchemeKind) -> Result<(), Failure> {
        self.check_any(&[scheme])
    }

    /// What an array that is served runs with where nothing is said (decision 0052); commands that count as
    /// the papers do keep eSAP's one group.
    pub fn served(self, scheme: SchemeKind) -> Self {
        let own = (scheme == SchemeKind::Elastic).then_some(PlacementKind::SepBit);
        Self { placement: self.placement.or(own), ..self }
    }

    /// Refuses what means nothing to any of some schemes.
    pub fn check_any(self, schemes: &[SchemeKind]) -> Result<(), Failure> {
        self.check_as(schemes, |_| self)
    }

    /// Refuses what means nothing to any of some schemes where they run as if they were served.
    pub fn check_served(self, schemes: &[SchemeKind]) -> Result<(), Failure> {
        self.check_as(schemes, |scheme| self.served(scheme))
    }

    /// `run` is what a scheme runs with.
    fn check_as(self, schemes: &[SchemeKind], run: impl Fn(SchemeKind) -> Self) -> Result<(), Failure> {
        for (given, concern) in self.given() {
            let why_not = |&scheme: &SchemeKind| run(scheme).why_not(scheme, concern);
            let reasons: Vec<String> = schemes.iter().map_while(why_not).collect();
            if let Some(first) = reasons.first().filter(|_| reasons.len() == schemes.len()) {
                return Err(Failure::new(format!("{given}: {first}")));
            }
        }
        Ok(())
    }

    /// The options that were given, with whom they concern.
    fn given(self) -> impl Iterator<Item = (String, Concern)> {
        let wait = |wait: Wait| if wait.ns == u64::MAX { "never".to_owned() } else { show_ms(wait.ns) };
        [
            self.placement.map(|kind| (format!("--placement {kind}"), Concern::Elastic)),
            self.groups.map(|groups| (format!("--groups {groups}"), Concern::Was)),
            self.hotness.map(|kind| (format!("--hotness {kind}"), Concern::Was)),
            self.gc.map(|kind| (format!("--gc {kind}"), Concern::Elastic)),
            self.gc_threshold.map(|at| (format!("--gc-threshold {}%", at.percent()), Concern::Elastic)),
            self.gc_group.map(|kind| (format!("--gc-group {kind}"), Concern::Joined)),
            self.group_chunks.map(|chunks| (format!("--group-chunks {chunks}"), Concern::Elastic)),
            self.p_wait.map(|ns| (format!("--p-wait {}", wait(ns)), Concern::Elastic)),
            self.recent_entries.map(|count| (format!("--recent-entries {count}"), Concern::SepBit)),
            self.midas_groups.map(|count| (format!("--midas-groups {count}"), Concern::Midas)),
            self.glru_lists.map(|count| (format!("--glru-lists {count}"), Concern::Glru)),
            self.glru_items.map(|count| (format!("--glru-items {count}"), Concern::Glru)),
            self.glru_insert.map(|percent| (format!("--glru-insert {percent}%"), Concern::Glru)),
            self.hot_thresholds.map(|counts| (format!("--hot-thresholds {}", show(counts)), Concern::Glru)),
        ]
        .into_iter()
        .flatten()
    }

    fn why_not(self, scheme: SchemeKind, concern: Concern) -> Option<String> {
        if !scheme.is_elastic() {
            return Some(format!(
                "scheme {scheme} has no groups of chunks and collects no garbage; only elastic and was do"
            ));
        }
        let kind = self.used_placement(scheme);
        match concern {
            Concern::Was if kind != PlacementKind::Was => Some(format!(
                "scheme {scheme} is to place chunks by {kind}; this is an option of --placement was"
            )),
            Concern::Glru if kind != PlacementKind::Was || self.hotness == Some(HotnessKind::Hca) => {
                Some(format!(
                    "scheme {scheme} does not tell hot chunks by glru; this is an option of --placement was with --hotness glru"
                ))
            }
            Concern::Midas if kind != PlacementKind::Midas => Some(format!(
                "scheme {scheme} is to place chunks by {kind}; this is an option of --placement midas"
            )),
            Concern::Joined if matches!(kind, PlacementKind::SepBit | PlacementKind::Midas) => {
                Some(format!("the placement {kind} has classes of its own for what garbage collection moves"))
            }
            Concern::SepBit if kind != PlacementKind::SepBit => Some(format!(
                "scheme {scheme} is to place chunks by {kind}; this is an option of --placement sepbit"
            )),
            Concern::Elastic
            | Concern::Was
            | Concern::Glru
            | Concern::Joined
            | Concern::SepBit
            | Concern::Midas => None,
        }
    }

    /// The placement that an elastic scheme will use.
    pub fn used_placement(self, scheme: SchemeKind) -> PlacementKind {
        SchemeOptions { placement: self.placement, ..SchemeOptions::default() }.used_placement(scheme)
    }

    /// The same options with these; `seed` is that of the placement.
    pub fn apply(self, options: EngineOptions, seed: u64) -> EngineOptions {
        let own = options.scheme;
        let scheme = SchemeOptions {
            untorn_bytes: own.untorn_bytes,
            rewrites: own.rewrites,
            list_bytes: own.list_bytes,
            stripe_cache: own.stripe_cache,
            placement: self.placement.or(own.placement),
            tuning: Tuning {
                hotness: self.hotness.unwrap_or(own.tuning.hotness),
                groups: self.groups.unwrap_or(own.tuning.groups),
                gc_group: self.gc_group.unwrap_or(own.tuning.gc_group),
                recent_entries: self.recent_entries.unwrap_or(own.tuning.recent_entries),
                midas_groups: self.midas_groups.unwrap_or(own.tuning.midas_groups),
                glru_lists: self.glru_lists.unwrap_or(own.tuning.glru_lists),
                glru_items: self.glru_items.unwrap_or(own.tuning.glru_items),
                glru_insert_percent: self.glru_insert.unwrap_or(own.tuning.glru_insert_percent),
                thresholds: self.hot_thresholds.or(own.tuning.thresholds),
                seed,
            },
            gc: self.gc.unwrap_or(own.gc),
            gc_threshold: self.gc_threshold.unwrap_or(own.gc_threshold),
            group_chunks: self.group_chunks.or(own.group_chunks),
            p_wait_ns: self.p_wait.map(|wait| wait.ns).or(own.p_wait_ns),
        };
        EngineOptions { scheme, ..options }
    }
}

/// What an option is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Concern {
    /// Every elastic scheme.
    Elastic,
    /// The placement `was`.
    Was,
    /// The placements that have no classes of their own for garbage collection.
    Joined,
    /// The placement `sepbit`.
    SepBit,
    /// The placement `midas`.
    Midas,
    /// The placement `was` with the table of hot data.
    Glru,
}

fn show(thresholds: Thresholds) -> String {
    let numbers: Vec<String> = thresholds.values().iter().map(u8::to_string).collect();
    numbers.join(",")
}

fn show_ms(ns: u64) -> String {
    if ns.is_multiple_of(1_000_000) { format!("{}ms", ns / 1_000_000) } else { format!("{ns}ns") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn thresholds_and_waits_have_their_ranges() {
        assert_eq!(parse_threshold("90%").unwrap(), GcThreshold::default());
        assert_eq!(parse_threshold("90").unwrap(), GcThreshold::default());
        for bad in ["", "%", "0", "100%", "-1", "90.5%", "ninety"] {
            assert!(parse_threshold(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_wait("200ms").unwrap().ns, array::P_WAIT_NS_DEFAULT);
        assert_eq!(parse_wait("0ms").unwrap().ns, 0);
        assert_eq!(parse_wait("never").unwrap().ns, u64::MAX);
        assert_eq!(parse_thresholds("2,4").unwrap().values(), [2, 4]);
        for bad in ["", "2,", "4,2", "0", "16", "1,2,3,4"] {
            assert!(parse_thresholds(bad).is_err(), "{bad}");
        }
        assert_eq!((parse_percent("7%"), parse_percent("100")), (Ok(7), Ok(100)));
        assert!(parse_percent("101%").is_err() && parse_percent("x").is_err());
        for bad in ["", "200", "off", "-1ms", "forever"] {
            assert!(parse_wait(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn options_that_change_nothing_are_refused() {
        let refused = |choices: ElasticChoices, schemes: &[SchemeKind]| {
            choices.check_any(schemes).err().map(|failure| failure.to_string())
        };
        let groups = ElasticChoices { groups: Some(3), ..ElasticChoices::default() };
        assert_eq!(refused(groups, &[SchemeKind::Was]), None);
        assert_eq!(refused(groups, &[SchemeKind::Elastic, SchemeKind::Was]), None);
        assert!(refused(groups, &[SchemeKind::Elastic]).unwrap().starts_with("--groups 3: scheme elastic"));
        let was = ElasticChoices { placement: Some(PlacementKind::Was), ..groups };
        assert_eq!(refused(was, &[SchemeKind::Elastic]), None);
        let own = ElasticChoices {
            placement: Some(PlacementKind::SepBit),
            gc_group: Some(GcGroup::Own),
            ..ElasticChoices::default()
        };
        assert!(
            refused(own, &[SchemeKind::Was]).unwrap().starts_with("--gc-group own: the placement sepbit")
        );
        let midas = ElasticChoices { placement: Some(PlacementKind::Midas), ..own };
        assert!(refused(midas, &[SchemeKind::Was]).unwrap().contains("the placement midas has classes"));
        let lists = ElasticChoices { glru_lists: Some(9), ..ElasticChoices::default() };
        assert_eq!(refused(lists, &[SchemeKind::Was]), None);
        let hca = ElasticChoices { hotness: Some(HotnessKind::Hca), ..lists };
        assert!(refused(hca, &[SchemeKind::Was]).unwrap().starts_with("--glru-lists 9: scheme was does not"));
        let few = ElasticChoices { midas_groups: Some(3), ..ElasticChoices::default() };
        assert!(refused(few, &[SchemeKind::Was]).unwrap().starts_with("--midas-groups 3: scheme was is to"));
        let recent = ElasticChoices { recent_entries: Some(9), ..ElasticChoices::default() };
        assert!(refused(recent, &[SchemeKind::Was]).unwrap().starts_with("--recent-entries 9: scheme was"));
        let sepbit = ElasticChoices { placement: Some(PlacementKind::SepBit), ..recent };
        assert_eq!(refused(sepbit, &[SchemeKind::Was]), None);
        let wait = ElasticChoices { p_wait: Some(Wait { ns: u64::MAX }), ..ElasticChoices::default() };
        for scheme in [SchemeKind::Raid, SchemeKind::Eplog, SchemeKind::ParityLog] {
            let line = refused(wait, &[scheme]).unwrap();
            assert!(line.starts_with("--p-wait never: scheme") && line.contains(scheme.name()), "{line}");
            assert_eq!(refused(ElasticChoices::default(), &[scheme]), None);
            assert!(GcUnit { gc_unit: Some(64) }.check(scheme).is_err());
        }
        assert!(GcUnit { gc_unit: Some(64) }.check(SchemeKind::Elastic).is_ok());
    }
}
