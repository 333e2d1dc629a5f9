//! How much memory an array may take on this machine, and what is said of it.

use crate::failure::Failure;
use crate::units::{parse_size, show_size};
use array::{EngineOptions, MemoryNeed};
use clap::Args;
use format::ArrayConfig;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A modest guess where the system does not say.
const GUESS_BYTES: u64 = 2 << 30;
/// An array whose chunk size is chosen takes at most one in so many bytes of the machine's memory: others want some, too.
const SHARE_DIVISOR: u64 = 2;
/// Chunk sizes that can be chosen.
pub const CHUNK_BYTES: std::ops::RangeInclusive<u64> = 4 << 10..=1 << 20;

/// The option by which an operator says what an array may take.
#[derive(Args, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryLimit {
    /// Memory that the array may take once all of it is written; instead of what this machine has.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    memory: Option<u64>,
}

impl MemoryLimit {
    /// Bytes that an array may take at most.
    pub fn bytes(self) -> u64 {
        self.memory.unwrap_or_else(machine_bytes)
    }

    /// Bytes that an array whose chunk size is chosen may take at most.
    pub fn bytes_if_chosen(self) -> u64 {
        self.memory.unwrap_or_else(|| machine_bytes() / SHARE_DIVISOR)
    }

    /// `--memory 1 GiB`, or `this machine has 23.43 GiB`.
    pub fn show(self) -> String {
        match self.memory {
            Some(bytes) => format!("--memory allows {}", show_size(bytes)),
            None => format!("this machine has {}", show_size(machine_bytes())),
        }
    }

    /// Refuses an array that can never be served with as much memory.
    pub fn check(self, config: &ArrayConfig, options: &EngineOptions) -> Result<MemoryNeed, Failure> {
        let need = MemoryNeed::of(config, options)?;
        if need.total_bytes() > self.bytes() {
            return Err(Failure::new(format!(
                "the array takes {}, {}: serve it where there is more, or, if much of it is not written, go on at the \
                 risk of running out of memory with --memory {}",
                show_need(&need),
                self.show(),
                ceil_size(need.total_bytes())
            )));
        }
        Ok(need)
    }
}

/// `4.35 GiB of memory when all of it is written`.
pub fn show_need(need: &MemoryNeed) -> String {
    format!("{} of memory when all of it is written", show_size(need.total_bytes()))
}

/// As an option takes it, and not less: whole MiB.
pub fn ceil_size(bytes: u64) -> String {
    format!("{}MiB", bytes.div_ceil(1 << 20))
}

/// For output in JSON.
pub fn to_json(need: &MemoryNeed) -> Value {
    json!({
        "tables_bytes": need.tables_bytes,
        "uncommitted_bytes": need.uncommitted_bytes,
        "checkpoint_bytes": need.checkpoint_bytes,
        "rebuild_bytes": need.rebuild_bytes,
        "placement_bytes": need.placement_bytes,
        "buffers_bytes": need.buffers_bytes,
        "total_bytes": need.total_bytes(),
    })
}

/// Memory of this machine, or of the control group that this process is in if that has less.
pub fn machine_bytes() -> u64 {
    let total = meminfo_bytes("MemTotal:").unwrap_or(GUESS_BYTES);
    group_limit_bytes().map_or(total, |limit| limit.min(total))
}

/// What the kernel says can still be had.
pub fn available_bytes() -> u64 {
    let available = meminfo_bytes("MemAvailable:").unwrap_or(GUESS_BYTES);
    group_limit_bytes().map_or(available, |limit| limit.min(available))
}

fn meminfo_bytes(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The lowest `memory.max` from this process's control group (version 2) up.
fn group_limit_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    let group: PathBuf = root.join(own);
    let limit = |dir: &Path| fs::read_to_string(dir.join("memory.max")).ok()?.trim().parse::<u64>().ok();
    group.ancestors().take_while(|dir| dir.starts_with(root)).filter_map(limit).min()
}
