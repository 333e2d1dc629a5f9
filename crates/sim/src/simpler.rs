//! What can be made simpler about a world while it still fails: fewer devices, one request at a time, no
//! caches.

use crate::swarm::{Swarm, lay_out};
use array::CommitPolicy;
use block::Geometry;
use format::{CodeKind, SchemeKind};
use std::fmt;
use std::str::FromStr;

/// One thing that can be simpler; its values, the simplest first, and how a world gets one. `false` if that
/// is no change, or there is no such array.
struct Knob {
    name: &'static str,
    values: &'static [u64],
    turn: fn(&mut Swarm, u64) -> bool,
}

/// A step that is left out takes no time: the next follows at once.
const HURRY: &str = "hurry";

const KNOBS: [Knob; 14] = [
    Knob { name: "shards", values: &[1, 2, 3], turn: set_shards },
    Knob { name: "m", values: &[1, 2], turn: |swarm, m| set_columns(swarm, None, Some(m)) },
    Knob { name: "k", values: &[1, 2, 3, 4, 5, 6], turn: |swarm, k| set_columns(swarm, Some(k), None) },
    Knob { name: "logs", values: &[0, 1], turn: set_frame_logs },
    Knob { name: "stripes", values: &[4, 8, 16, 32], turn: set_stripes },
    Knob { name: HURRY, values: &[1], turn: |_, _| true },
    Knob { name: "depth", values: &[1, 2, 4, 8], turn: |swarm, depth| lower(&mut swarm.depth, small(depth)) },
    Knob { name: "chunks", values: &[1, 2, 4], turn: |swarm, chunks| lower(&mut swarm.chunks_max, chunks) },
    Knob { name: "delay", values: &[0, 1], turn: |swarm, delay| lower(&mut swarm.pace.delay_max, delay) },
    Knob { name: "slow", values: &[0], turn: |swarm, _| swarm.pace.slow.take().is_some() },
    Knob { name: "cache", values: &[0], turn: |swarm, _| lower(&mut swarm.options.cache_stripes, 0) },
    Knob { name: "commits", values: &[0], turn: forget_commits },
    Knob { name: "patrol", values: &[0], turn: |swarm, _| swarm.options.patrol.take().is_some() },
    Knob { name: "timeout", values: &[0], turn: forget_timeout },
];

fn small(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

fn lower<T: PartialOrd>(value: &mut T, to: T) -> bool {
    let lower = to < *value;
    if lower {
        *value = to;
    }
    lower
}

fn forget_commits(swarm: &mut Swarm, _: u64) -> bool {
    let none = CommitPolicy { every_requests: None, idle_ns: None, bytes_per_s: None };
    let before = std::mem::replace(&mut swarm.options.commit, none);
    before.every_requests.is_some() || before.idle_ns.is_some()
}

/// Devices have any time to answer, unless that is what the world is about.
fn forget_timeout(swarm: &mut Swarm, _: u64) -> bool {
    !swarm.hangs && swarm.options.device_timeout_ns.take().is_some()
}

/// Fewer devices.
fn set_columns(swarm: &mut Swarm, k: Option<u64>, m: Option<u64>) -> bool {
    let mut config = swarm.config;
    let old = config.geometry;
    let k = k.map_or(old.data_count(), small);
    let m = m.map_or(old.parity_count(), small);
    if k >= old.data_count() && m >= old.parity_count() {
        return false;
    }
    let Ok(geometry) = Geometry::new(k, m, old.chunk_bytes() as u64) else { return false };
    if config.log_count > 0 {
        config.log_count = u16::try_from(m + config.frame_logs()).unwrap_or(u16::MAX);
    }
    config.geometry = geometry;
    if config.code == CodeKind::Rdp && m != 2 {
        config.code = CodeKind::Cauchy;
    }
    accept(swarm, config)
}

/// Fewer log devices beyond one per parity.
fn set_frame_logs(swarm: &mut Swarm, frame_logs: u64) -> bool {
    let mut config = swarm.config;
    let Some(fewer) = config.frame_logs().checked_sub(small(frame_logs)).filter(|&fewer| fewer > 0) else {
        return false;
    };
    config.log_count -= u16::try_from(fewer).unwrap_or(u16::MAX);
    accept(swarm, config)
}

/// A smaller volume with as many spare chunks.
fn set_stripes(swarm: &mut Swarm, stripes: u64) -> bool {
    let mut config = swarm.config;
    let Some(fewer) = config.stripe_count.checked_sub(stripes).filter(|&fewer| fewer > 0) else {
        return false;
    };
    config.stripe_count = stripes;
    let elastic = matches!(config.scheme, SchemeKind::Elastic | SchemeKind::Was);
    if !elastic {
        config.chunks_per_device -= u32::try_from(fewer).unwrap_or(0);
    }
    accept(swarm, config)
}

/// Fewer shards.
fn set_shards(swarm: &mut Swarm, shards: u64) -> bool {
    let mut config = swarm.config;
    let fewer = u16::try_from(shards).is_ok_and(|shards| lower(&mut config.shard.count, shards));
    fewer && accept(swarm, config)
}

fn accept(swarm: &mut Swarm, config: format::ArrayConfig) -> bool {
    let config = lay_out(config);
    let valid = config.validate().is_ok();
    if valid {
        swarm.config = config;
        let sectors = config.whole_volume_bytes() / block::SECTOR_BYTES;
        swarm.hot_sectors = swarm.hot_sectors.min(sectors);
    }
    valid
}

/// Something that is simpler than drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    knob: usize,
    value: u64,
}

impl Setting {
    /// Every setting that may be tried: of each thing all values, the simplest first.
    pub(crate) fn all() -> impl Iterator<Item = impl Iterator<Item = Self>> {
        KNOBS
            .iter()
            .enumerate()
            .map(|(knob, Knob { values, .. })| values.iter().map(move |&value| Self { knob, value }))
    }

    /// Whether it is about the same thing as another.
    pub(crate) fn is_about(&self, other: &Self) -> bool {
        self.knob == other.knob
    }

    pub(crate) fn is_hurry(&self) -> bool {
        KNOBS[self.knob].name == HURRY
    }

    /// Gives it to a world; `false` if it changes nothing, or there is no such world.
    pub(crate) fn turn(&self, swarm: &mut Swarm) -> bool {
        (KNOBS[self.knob].turn)(swarm, self.value)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", KNOBS[self.knob].name, self.value)
    }
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let find = || {
            let (name, value) = text.split_once('=')?;
            let knob = KNOBS.iter().position(|knob| knob.name == name)?;
            Some(Self { knob, value: value.parse().ok()? })
        };
        find().ok_or_else(|| {
            let names: Vec<&str> = KNOBS.iter().map(|knob| knob.name).collect();
            format!("{text}: expected name=number, with one of the names {}", names.join(", "))
        })
    }
}
