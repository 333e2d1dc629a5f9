//! How much memory an array may take on this machine, and what is said of it.

use crate::units::show_size;
use array::MemoryNeed;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A modest guess where the system does not say.
const GUESS_BYTES: u64 = 2 << 30;

/// `4.35 GiB of memory when all of it is written`.
pub fn show_need(need: &MemoryNeed) -> String {
    format!("{} of memory when all of it is written", show_size(need.total_bytes()))
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

/// Of the bytes that an array may take, those that its table of chunks takes at most, unless it is said
/// otherwise: a quarter.
pub fn table_bytes(array_bytes: u64) -> u64 {
    array_bytes / 4
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
