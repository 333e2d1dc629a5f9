//! Members that some shards have given up and others cannot do without: the shards have lost different ones,
//! together more than one of them bears. No other device can take such a place; its own comes back to the
//! shards that gave it up, each of which rebuilds its slice.

use super::{Operator, Pending, absolute};
use crate::checks::{View, same_file};
use crate::error::Error;
use crate::refusal::Refusal;
use crate::running::Running;
use array::Replacing;
use block::DevIndex;
use device::{Member, Membership as _};
use format::Superblock;
use std::path::{Path, PathBuf};

impl Operator {
    /// Where the device of a member that left is, if that is among those that are not in service; of several
    /// that were the member the one that was it last.
    pub fn device_among(&self, running: &Running, dev: DevIndex, stale: &[PathBuf]) -> Option<PathBuf> {
        let view = self.view(running);
        let last = |path: &PathBuf| {
            let papers = view.check_online(dev, path).ok()?;
            Some((papers.iter().map(Superblock::update).max()?, path.clone()))
        };
        let device = stale.iter().filter_map(last).max_by_key(|(update, _)| *update);
        device.map(|(_, path)| absolute(&path)).filter(|_| self.shown_path(dev).is_none())
    }

    /// Takes the device of such a member, which is at `path`, back into the shards that have given it up.
    pub(super) fn take_again(
        &mut self,
        running: &mut Running,
        dev: DevIndex,
        path: &Path,
    ) -> Result<(), Error> {
        let replacing: Replacing = running.returning(dev);
        Self::check_is_in_use(running, &self.view(running), dev, path)?;
        self.pending.push(Pending::new(replacing, path.to_owned(), None));
        Ok(())
    }

    /// That the device at `path` is the one that shards have in service as this member, if any has.
    pub(super) fn check_is_in_use(
        running: &Running,
        view: &View,
        dev: DevIndex,
        path: &Path,
    ) -> Result<(), Refusal> {
        let member = running.device_of(dev).filter(|_| running.is_in_service(dev));
        if member.is_none_or(|member| same_file(member.path(), path)) {
            return Ok(());
        }
        let found = "it is not the one that the other shards have in service".to_owned();
        Err(Refusal::NotItsDevice { path: path.to_owned(), name: view.name_of(dev), found })
    }
}

/// A shard gets a member's device again, which others have.
pub(super) fn reinstall(running: &mut Running, shard: usize, dev: DevIndex) -> Result<(), Error> {
    let member: Option<Member> = running.device_of(dev);
    if let Some(member) = member {
        running.with_devices(shard, move |devices| devices.install(dev, member))??;
    }
    Ok(())
}
