//! Superblocks for people and machines.

use crate::open::{member_name, name_of, state_name};
use crate::units::show_size;
use block::{DevIndex, Epoch};
use format::{ArrayConfig, Role, Superblock};
use serde_json::{Value, json};

/// What the device is called.
pub fn role_of(superblock: &Superblock) -> String {
    let main_count = superblock.config.geometry.device_count();
    match superblock.role {
        Role::Main | Role::Log => member_name(main_count, superblock.dev),
        Role::Spare => "spare".to_owned(),
    }
}

/// An array in a line: `tank: eplog 6+2 with 2 log devices, code cauchy, 4 KiB chunks, volume 5.31 GiB`.
pub fn describe(superblock: &Superblock) -> String {
    let config = &superblock.config;
    format!(
        "array {}: {}, volume {}",
        name_of(superblock),
        shape(config),
        show_size(config.whole_volume_bytes())
    )
}

/// `eplog 6+2 with 2 log devices, code cauchy, 4 KiB chunks`.
pub fn shape(config: &ArrayConfig) -> String {
    let geometry = config.geometry;
    let logs = match config.log_count {
        0 => String::new(),
        1 => " with 1 log device".to_owned(),
        count => format!(" with {count} log devices"),
    };
    let chunk = show_size(geometry.chunk_bytes() as u64);
    let (k, m) = (geometry.data_count(), geometry.parity_count());
    let units =
        if config.unit_rows > 0 { format!(", units of {} rows", config.unit_rows) } else { String::new() };
    let shards = show_shards(config.shard.count);
    format!("{} {k}+{m}{logs}, code {}, {chunk} chunks{units}{shards}", config.scheme, config.code)
}

/// `, 3 shards`; nothing of an array that has one, or from before there were any.
pub fn show_shards(count: u16) -> String {
    if count > 1 { format!(", {count} shards") } else { String::new() }
}

/// A superblock as JSON.
pub fn superblock_json(superblock: &Superblock) -> Value {
    let config = &superblock.config;
    let main_count = config.geometry.device_count();
    let members: Vec<Value> = superblock
        .members
        .iter()
        .zip(0u16..)
        .map(|(entry, index)| {
            json!({
                "name": member_name(main_count, DevIndex::new(index)),
                "serial": entry.serial,
                "state": state_name(entry.state),
            })
        })
        .collect();
    json!({
        "uuid": superblock.array.to_string(),
        "name": superblock.name,
        "member": role_of(superblock),
        "role": superblock.role.to_string(),
        "serial": superblock.serial,
        "config_seq": superblock.config_seq,
        "epoch": superblock.epoch.get(),
        "clean": superblock.clean,
        "forced_epoch": superblock.losses.forced.map(Epoch::get),
        "created_unix_s": superblock.created_unix_s,
        "scheme": config.scheme.to_string(),
        "code": config.code.to_string(),
        "consistency": config.consistency.to_string(),
        "data_count": config.geometry.data_count(),
        "parity_count": config.geometry.parity_count(),
        "log_count": config.log_count,
        "chunk_bytes": config.geometry.chunk_bytes(),
        "stripe_count": config.stripe_count,
        "chunks_per_device": config.chunks_per_device,
        "log_blocks": config.log_blocks,
        "unit_rows": config.unit_rows,
        "volume_bytes": config.whole_volume_bytes(),
        "members": members,
    })
}
