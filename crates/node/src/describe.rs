//! Superblocks for people and machines.

use crate::open::{member_name, state_name};
use block::DevIndex;
use format::{Role, Superblock};
use serde_json::{Value, json};

/// What the device is called.
pub fn role_of(superblock: &Superblock) -> String {
    let main_count = superblock.config.geometry.device_count();
    match superblock.role {
        Role::Main | Role::Log => member_name(main_count, superblock.dev),
        Role::Spare => "spare".to_owned(),
    }
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
