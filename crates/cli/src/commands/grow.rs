//! `grow`: an array takes the room of devices that have become larger.

use super::Exit;
use clap::Args;
use lab::failure::Failure;
use node::called::members;
use node::grow::{Growth, grow_array, plan_growth};
use node::open::{Candidate, look_at};
use node::output;
use node::session::{Reach, server_of};
use node::units::show_size;
use std::path::PathBuf;

/// What is not possible, why, and what to do instead.
pub const NOT_BY_ADDED_DEVICES: &str = "an array does not grow by added devices: on which device a chunk is follows from how many \
     there are, so all of them would have to move; make members larger (`replace` them by larger devices, one after the other), or \
     `create` a new array of more devices and copy the data";

/// Options of `grow`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Members of the array, all of them, or its name or UUID.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// Say what would come of it, and write nothing; also of an array that is being served.
    #[arg(long)]
    dry_run: bool,
    /// Print what came of it as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs `grow`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let called = members(&arguments.paths)?;
    let paths = &called.paths;
    refuse_added(paths)?;
    let growth = match server_of(&called)? {
        Reach::Copy(why) => return Err(Failure::new(why)),
        Reach::Server(mut client) if arguments.dry_run => {
            let devices = client.status()?.devices;
            plan_growth(&devices.into_iter().filter_map(|device| device.path).collect::<Vec<_>>())?
        }
        Reach::Server(mut client) => client.grow()?,
        Reach::Nobody if arguments.dry_run => plan_growth(paths)?,
        Reach::Nobody => grow_array(paths)?,
    };
    if arguments.json {
        output::line(serde_json::to_string_pretty(&as_json(&growth, arguments.dry_run)?)?);
    } else {
        describe(&growth, arguments.dry_run);
    }
    Ok(0)
}

/// A device that is no member, named beside members: somebody wants to add it.
fn refuse_added(paths: &[PathBuf]) -> Result<(), Failure> {
    let looks = || paths.iter().filter_map(|path| look_at(path).ok());
    if !looks().any(|candidate| candidate.superblock().is_some()) {
        return Ok(());
    }
    // What is damaged, or of another version, is no new device: that is said of it elsewhere.
    let is_new = |one: &Candidate| {
        one.superblock().is_none() && !one.looks_like_member && one.other_version().is_none()
    };
    match looks().find(is_new) {
        Some(added) => {
            Err(Failure::new(format!("{}: is no member: {NOT_BY_ADDED_DEVICES}", added.path.display())))
        }
        None => Ok(()),
    }
}

fn as_json(growth: &Growth, dry_run: bool) -> Result<serde_json::Value, Failure> {
    let mut value = serde_json::to_value(growth)?;
    value["dry_run"] = dry_run.into();
    Ok(value)
}

fn describe(growth: &Growth, dry_run: bool) {
    let (old, new) = (growth.volume_bytes_before, growth.volume_bytes);
    let (would, volume) = if dry_run { ("would grow", "would be") } else { ("has grown", "is") };
    output::line(format_args!(
        "array {} {would} by {}: its volume {volume} {}, before {}",
        growth.array,
        show_size(new.saturating_sub(old)),
        show_size(new),
        show_size(old)
    ));
    output::line(format_args!(
        "  of each data device {} are used, before {}; the smallest is {} ({}) with {}",
        show_size(growth.device_bytes),
        show_size(growth.device_bytes_before),
        growth.smallest,
        growth.smallest_path.display(),
        show_size(growth.smallest_bytes)
    ));
    if let Some(wait) = growth.show_wait() {
        output::line(format_args!(
            "  it is being served: what clients asked waited for {wait}; those of NBD see the new size when they connect, virtual machines at once"
        ));
    }
    for small in &growth.small_spares {
        output::line(format_args!("  {small}"));
    }
    if dry_run {
        output::line("  nothing was written");
    }
}
