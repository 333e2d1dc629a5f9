//! `examine`: what one device says of itself.

use super::Exit;
use block::META_BYTES;
use clap::Args;
use format::{SUPERBLOCK_OFFSETS, Superblock};
use lab::failure::Failure;
use node::describe::{role_of, shape, superblock_json};
use node::losses::describe_forced;
use node::open::{Candidate, look_at, member_name, state_name};
use node::output;
use node::units::{show_size, show_time};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Options of `examine`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The device or file.
    path: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Print lines KEY=VALUE for udev, as `blkid -o udev` does.
    #[arg(long, conflicts_with = "json")]
    export: bool,
}

/// Runs `examine`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let candidate = look_at(&arguments.path)?;
    if arguments.export {
        output::print(candidate.superblock().map(to_udev).unwrap_or_default());
    } else if arguments.json {
        output::line(format_args!("{:#}", to_json(&candidate)));
    } else {
        output::print(to_text(&candidate));
    }
    Ok(u8::from(candidate.superblock().is_none()))
}

/// What udev is to know of a member, so that `lsblk -f` and others do not take it for a blank device.
fn to_udev(superblock: &Superblock) -> String {
    // What udev has no room for in a value becomes an underscore.
    let plain = |c: char| if c.is_alphanumeric() || "-_.:".contains(c) { c } else { '_' };
    let name: String = superblock.name.chars().map(plain).collect();
    let mut text = format!(
        "ID_FS_TYPE=elastripe_member\nID_FS_USAGE=raid\nID_FS_UUID={}\nELASTRIPE_MEMBER={}\nELASTRIPE_SCHEME={}\n",
        superblock.array,
        role_of(superblock),
        superblock.config.scheme
    );
    if !name.is_empty() {
        text.push_str(&format!("ID_FS_LABEL={name}\n"));
    }
    text
}

fn to_json(candidate: &Candidate) -> Value {
    let copies: Vec<Value> = candidate
        .copies
        .iter()
        .map(|copy| match copy {
            Ok(superblock) => json!({ "config_seq": superblock.config_seq }),
            Err(error) => json!({ "error": error.to_string() }),
        })
        .collect();
    json!({
        "path": candidate.path,
        "size_bytes": candidate.size_bytes,
        "foreign_signature": candidate.signature,
        "copies": copies,
        "superblock": candidate.superblock().map(superblock_json),
    })
}

/// Whether a device has no room for such a copy of the superblock.
fn ends_before(candidate: &Candidate, slot: usize) -> bool {
    let left = candidate.size_bytes.saturating_sub(SUPERBLOCK_OFFSETS[slot]);
    usize::try_from(left).is_ok_and(|left| left < META_BYTES)
}

fn to_text(candidate: &Candidate) -> String {
    let mut text = format!("{}: {}", candidate.path.display(), show_size(candidate.size_bytes));
    text.push('\n');
    for (slot, copy) in candidate.copies.iter().enumerate() {
        match copy {
            Ok(superblock) => {
                text.push_str(&format!("  superblock {slot}: update {}\n", superblock.config_seq))
            }
            Err(_) if ends_before(candidate, slot) => {
                text.push_str(&format!("  superblock {slot}: no room for one, it ends before\n"));
            }
            Err(error) => text.push_str(&format!("  superblock {slot}: {error}\n")),
        }
    }
    if let Some(signature) = candidate.signature {
        text.push_str(&format!("  foreign content: {signature}\n"));
    }
    let Some(superblock) = candidate.superblock() else {
        text.push_str("  not a member of an array\n");
        return text;
    };
    let config = &superblock.config;
    let geometry = config.geometry;
    let rows = [
        ("array", superblock.array.to_string()),
        ("name", if superblock.name.is_empty() { "-".to_owned() } else { superblock.name.clone() }),
        ("member", format!("{}, serial {}", role_of(superblock), superblock.serial)),
        ("created", show_time(superblock.created_unix_s)),
        ("stopped", if superblock.clean { "in order" } else { "not in order, or still running" }.to_owned()),
        ("epoch", superblock.epoch.to_string()),
        ("shape", shape(config)),
        (
            "volume",
            format!("{} ({} bytes)", show_size(config.whole_volume_bytes()), config.whole_volume_bytes()),
        ),
    ];
    let forced = superblock.losses.forced.map(|epoch| ("LOST", describe_forced(epoch)));
    for (label, value) in rows.into_iter().chain(forced) {
        text.push_str(&format!("  {label:<8} {value}\n"));
    }
    text.push_str("  members as this device saw them:\n");
    for (entry, index) in superblock.members.iter().zip(0u16..) {
        let name = member_name(geometry.device_count(), block::DevIndex::new(index));
        let own = if index == superblock.dev.get() { "  <- this device" } else { "" };
        text.push_str(&format!(
            "    {name:<8} {:<11} serial {}{own}\n",
            state_name(entry.state),
            entry.serial
        ));
    }
    text
}
