//! Arrays of several shards: how one is laid out, and its first bytes.
//!
//! A shard is an array in itself, on a slice of every member, so that each has an engine, a journal, tables
//! and superblocks of its own and knows nothing of the others (docs/decisions/0031-shards.md).

mod replace;
mod shown;
mod succeed;

pub use replace::{ReplaceStep, Replacing, Seat};
pub use shown::shown_to_others;
pub use succeed::{GivenUp, PairSeat, SucceedStep, Succession};

use crate::create::{CreateError, CreateOptions, NewArray, create, plan_config};
use crate::health::Health;
use crate::planted::{Planted, planted};
use block::{DevIndex, DeviceSet, Slice};
use format::{ArrayConfig, DATA_ALIGN_BYTES, MemberState, SHARDS_MAX, Shard, UNIT_BYTES_MIN};

/// Lays an array of `count` shards out on main devices of at least `main_bytes` and log devices of at least
/// `log_bytes`: the shape of the first of them.
pub fn plan_shards(
    options: &CreateOptions,
    main_bytes: u64,
    log_bytes: u64,
    log_count: usize,
    count: u16,
) -> Result<ArrayConfig, CreateError> {
    if count == 1 {
        return plan_config(options, main_bytes, log_bytes, log_count);
    }
    if !(1..=SHARDS_MAX).contains(&count) {
        return Err(CreateError::ShardCount { found: count });
    }
    let stride = |bytes: u64| bytes / u64::from(count) / DATA_ALIGN_BYTES * DATA_ALIGN_BYTES;
    let (main_stride_bytes, log_stride_bytes) = (stride(main_bytes), stride(log_bytes));
    let config = plan_config(options, main_stride_bytes, log_stride_bytes, log_count)?;
    let log_stride_bytes = if log_count > 0 { log_stride_bytes } else { 0 };
    let unit_bytes = unit_bytes(&config);
    let shard = Shard { index: 0, count, unit_bytes, main_stride_bytes, log_stride_bytes };
    let config = ArrayConfig { shard, ..config };
    if config.volume_bytes() < unit_bytes || config.validate().is_err() {
        return Err(CreateError::ShardTooSmall { count, found_bytes: config.volume_bytes(), unit_bytes });
    }
    Ok(config)
}

/// The unit in which addresses go to the shards: whole stripes, so that a write of whole stripes stays one,
/// and a multiple of what an untorn write may be aligned to.
pub fn unit_bytes(config: &ArrayConfig) -> u64 {
    unit_of(config.volume_bytes() / config.stripe_count)
}

/// The same of stripes of that many bytes.
pub fn unit_of(stripe_bytes: u64) -> u64 {
    // A chunk is a power of two, so the odd part of k is all that 1 MiB lacks.
    let twos = stripe_bytes.trailing_zeros();
    (stripe_bytes >> twos) * UNIT_BYTES_MIN.max(1 << twos)
}

/// Writes an empty array of all shards of `config` onto the devices. The first shard, by which a device is
/// known as a member, comes last: without it there is no array.
pub fn create_shards(
    devices: &mut dyn DeviceSet,
    config: &ArrayConfig,
    array: &NewArray,
) -> Result<(), CreateError> {
    let count = config.shard.count;
    for turn in 0..count {
        let index = if planted(Planted::FirstShardFirst) { turn } else { count - 1 - turn };
        let config = config.sibling(index);
        let array = NewArray { uuid: array.uuid.of_shard(index), ..array.clone() };
        create(&mut Slice::new(&mut *devices, config.slice_extents()), config, &array)?;
    }
    Ok(())
}

/// Members that some shards have given up and others have not, and that these bear to lose: which shard is
/// to fail which member, so that all are of one opinion. A shard that has lost as many members as it bears
/// keeps its own: what it holds cannot be had without them.
///
/// The member that a shard is rebuilding is in service there, and to be failed, too: callers ask only while
/// no replacement is being put in its place.
pub fn members_to_fail(shards: &[&Health]) -> Vec<(usize, DevIndex)> {
    let count = shards.first().map_or(0, |health| health.members().len());
    let count = if planted(Planted::TellNobody) { 0 } else { count };
    let devs = (0u16..).take(count).map(DevIndex::new);
    let given_up = devs.filter(|&dev| shards.iter().any(|health| !health.is_writable(dev)));
    let mut lost: Vec<usize> = shards.iter().map(|health| health.missing_count()).collect();
    let mut found = Vec::new();
    for dev in given_up {
        for (shard, health) in shards.iter().enumerate() {
            let counts_already = health.state(dev) != MemberState::Healthy;
            let bears = lost[shard] < health.tolerated() || planted(Planted::TellPastTolerance);
            if health.is_writable(dev) && (counts_already || bears) {
                lost[shard] += usize::from(!counts_already);
                found.push((shard, dev));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FailCause;
    use block::Geometry;
    use format::MemberEntry;

    fn shape() -> ArrayConfig {
        let options = CreateOptions {
            scheme: format::SchemeKind::Raid,
            code: format::CodeKind::Cauchy,
            layout: format::LayoutKind::Spread,
            consistency: format::Consistency::Resync,
            geometry: Geometry::new(4, 2, 4096).expect("valid"),
            reserve_permille: 100,
            unit_rows: None,
        };
        plan_config(&options, 64 << 20, 0, 0).expect("large enough")
    }

    fn health(failed: &[u16], rebuilding: &[u16]) -> Health {
        let entries: Vec<MemberEntry> = (0..6u16)
            .map(|index| {
                let state = match (failed.contains(&index), rebuilding.contains(&index)) {
                    (true, _) => MemberState::Failed,
                    (false, true) => MemberState::Rebuilding,
                    (false, false) => MemberState::Healthy,
                };
                MemberEntry { serial: u32::from(index) + 1, state }
            })
            .collect();
        Health::new(&shape(), &entries, 1)
    }

    fn leveled(shards: &[Health]) -> Vec<(usize, u16)> {
        let found = members_to_fail(&shards.iter().collect::<Vec<_>>());
        found.into_iter().map(|(shard, dev)| (shard, dev.get())).collect()
    }

    #[test]
    fn what_one_shard_gives_up_all_give_up_that_bear_it() {
        assert_eq!(leveled(&[health(&[], &[]), health(&[], &[])]), []);
        assert_eq!(leveled(&[health(&[3], &[]), health(&[], &[]), health(&[], &[])]), [(1, 3), (2, 3)]);
        // Two losses are what a shard bears: it keeps the third.
        assert_eq!(leveled(&[health(&[3], &[]), health(&[0, 1], &[])]), [(0, 0)]);
        // What is being rebuilt counts as lost already.
        assert_eq!(leveled(&[health(&[3], &[]), health(&[1], &[3])]), [(0, 1), (1, 3)]);
    }

    #[test]
    fn after_that_nothing_is_left_to_level() {
        let mut shards = [health(&[3], &[]), health(&[], &[]), health(&[5], &[])];
        for (shard, dev) in members_to_fail(&shards.iter().collect::<Vec<_>>()) {
            shards[shard].fail(dev, FailCause::Asked);
        }
        assert_eq!(leveled(&shards), []);
        assert!(shards.iter().all(|health| health.missing_count() == 2));
    }

    #[test]
    fn units_are_whole_stripes_and_whole_mebibytes() {
        let units = [(6, 4096), (8, 4096), (7, 65_536), (4, 1 << 20), (12, 1 << 20)];
        let mib = units.map(|(k, chunk_bytes)| unit_of(k * chunk_bytes) >> 20);
        assert_eq!(mib, [3, 1, 7, 4, 12]);
    }
}
