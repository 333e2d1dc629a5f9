//! Options that would change nothing for any of the schemes and workloads are refused.

use super::Arguments;
use super::workload::Workload;
use crate::failure::Failure;
use crate::options::batches::Batches;
use node::units::show_size;
use std::collections::BTreeSet;

/// See the module's documentation.
pub fn check(arguments: &Arguments) -> Result<(), Failure> {
    let schemes = &arguments.schemes;
    refuse_twice("--schemes", schemes.iter().map(ToString::to_string))?;
    refuse_twice("--workload", arguments.workloads().iter().map(|workload| workload.name().to_owned()))?;
    arguments.elastic.check_served(schemes)?;
    arguments.consistency.check_any(schemes)?;
    arguments.rewrites.check_any(schemes)?;
    arguments.cache.stripes.check_any(schemes)?;
    let Some(&first) = schemes.first() else { return Ok(()) };
    if !schemes.iter().any(|scheme| scheme.is_elastic()) {
        arguments.unit.check(first)?;
    }
    if !schemes.iter().any(|&scheme| arguments.cache.check_write_cache(scheme).is_ok()) {
        arguments.cache.check_write_cache(first)?;
    }
    check_work(arguments)?;
    check_volume(arguments)
}

/// What is named twice would be measured twice, under one name.
fn refuse_twice(option: &str, names: impl Iterator<Item = String>) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    for name in names {
        if let Some(name) = seen.replace(name) {
            return Err(Failure::new(format!("{option}: found {name} twice, expected each once")));
        }
    }
    Ok(())
}

/// Work that no scheme does.
fn check_work(arguments: &Arguments) -> Result<(), Failure> {
    let (schemes, workloads) = (&arguments.schemes, arguments.workloads());
    let Some(&first) = schemes.first() else { return Ok(()) };
    let commits = schemes.iter().any(|scheme| scheme.has_log());
    if !commits && workloads.iter().all(|&workload| workload == Workload::Commit) {
        return Err(Failure::new(format!(
            "--workload commit: scheme {first} keeps its parity up to date and has nothing to commit"
        )));
    }
    let works = commits || workloads.contains(&Workload::Rebuild);
    if !works && arguments.batches != Batches::default() {
        return Err(arguments.batches.without_effect(first));
    }
    Ok(())
}

/// Sizes that the volume has no use for.
fn check_volume(arguments: &Arguments) -> Result<(), Failure> {
    let volume = &arguments.volume;
    let stripe_bytes = u64::try_from(arguments.geometry.data_count)?.saturating_mul(arguments.chunk_size);
    let sizes = [("--volume-size", Some(volume.volume_size)), ("--working-set", volume.working_set)];
    for (option, bytes) in sizes {
        if let Some(bytes) = bytes.filter(|&bytes| bytes < stripe_bytes) {
            return Err(Failure::new(format!(
                "{option} {}: expected at least a stripe of {}",
                show_size(bytes),
                show_size(stripe_bytes)
            )));
        }
    }
    if let Some(bytes) = volume.working_set.filter(|&bytes| bytes > volume.volume_size) {
        return Err(Failure::new(format!(
            "--working-set {}: expected at most the {} of --volume-size",
            show_size(bytes),
            show_size(volume.volume_size)
        )));
    }
    let all_elastic = arguments.schemes.iter().all(|scheme| scheme.is_elastic());
    if let Some((bytes, first)) = volume.table_memory.zip(arguments.schemes.first()).filter(|_| all_elastic) {
        return Err(Failure::new(format!(
            "--table-memory {}: scheme {first} has all of its table in memory",
            show_size(bytes)
        )));
    }
    Ok(())
}
