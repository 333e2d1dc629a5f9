//! What devices are called, and which of them can be asked how worn they are.

use super::Operator;
use crate::error::Error;
use crate::running::Running;
use block::DevIndex;
use device::{Kind, Member};
use std::path::{Path, PathBuf};

impl Operator {
    /// The member that a name (`data3`, `log0`) or a path stands for.
    pub fn find(&self, running: &Running, wanted: &str) -> Result<DevIndex, Error> {
        Ok(self.view(running).find(wanted)?)
    }

    /// What the member or spare at a path is called.
    pub fn name_of_device(&self, running: &Running, path: &Path) -> String {
        let member = running.members().find(|&dev| self.shown_path(dev) == Some(path));
        let spare = || self.spares.iter().position(|held| held.spare.path == path);
        match (member, spare()) {
            (Some(dev), _) => self.view(running).name_of(dev),
            (None, Some(index)) => format!("spare{index}"),
            (None, None) => path.display().to_string(),
        }
    }

    /// Of what the bytes count whose places got another device since serving began, if any did: they are
    /// those of places, not of devices.
    pub fn whose_bytes(&self, running: &Running) -> Option<String> {
        let view = self.view(running);
        let names: Vec<String> = self.refilled.iter().map(|&dev| view.name_of(dev)).collect();
        (!names.is_empty()).then(|| {
            let names = names.join(", ");
            format!("bytes read and written of {names}: since serving began, those of the device before it included")
        })
    }

    /// Where the block devices are among the members that are in use and the spares.
    pub fn block_devices(&self, running: &Running) -> Vec<PathBuf> {
        let is_block = |member: Option<&Member>| member.is_some_and(|member| member.kind() == Kind::Block);
        let open = running.open_members();
        let members = running.members().filter(|&dev| is_block(open.get(dev)));
        let members = members.filter_map(|dev| self.shown_path(dev));
        let spares = self.spares.iter().filter(|held| is_block(held.lock.get(DevIndex::new(0))));
        let own = members.chain(spares.map(|held| held.spare.path.as_path()));
        own.chain(self.shared_devices()).map(Path::to_owned).collect()
    }
}
