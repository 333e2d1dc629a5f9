//! Members that were taken out of service come back with what is on them.

use crate::array::Harm;
use crate::members::{self, Area};
use crate::round::{Round, scratch};
use crate::verdict::{Check, Verdict};

impl Round {
    /// Half of the members out of service whose device is there come back by `online` instead of being
    /// replaced; whether this one did. One to which nothing else was done must be taken back by the server
    /// that took it out, and is whole then; any other may be refused, and is hurt still.
    pub(crate) fn bring_back(&mut self, index: usize) -> Result<bool, Verdict> {
        let (path, member) = (self.array.path(index), self.array.members[index].clone());
        let harm = self.array.harmed.get(&index).cloned();
        let is_whole = path.metadata().is_ok_and(|data| data.len() >= self.array.file_bytes);
        let there = is_whole && members::has_superblock(&path);
        let comes = harm.is_some_and(|harm| harm.out && !harm.gone && !harm.replaced);
        if !self.array.binary.online || !there || !comes || !self.rng.percent(50) {
            return Ok(false);
        }
        let known = self.array.away.get(&index).copied();
        let any = self.array.any_path();
        let args = ["online", &any, "--device", &member.name, "--with", &member.file, "--wait"];
        let ran = self.array.run(args.map(str::to_owned).to_vec(), self.array.patience.work)?;
        if ran.code != 0 {
            // Without a journal nobody knows what was missed once a server was killed.
            if known == Some(true) && !self.array.beyond && !self.array.shape.resync {
                return Err(Verdict::new(Check::NeedlessRefusal, format!("online: {}", ran.reason())));
            }
            return Ok(false);
        }
        self.array.away.remove(&index);
        self.array.harmed.remove(&index);
        if known.is_some() {
            self.healed.push(index);
        } else {
            self.array.harm(index, scratch(true));
        }
        self.array.tell(format!("{} is back", member.name));
        Ok(true)
    }

    /// A member is taken out, misses what is written, and comes back; then the harness takes from it, and
    /// from as many others as the array bears, what they hold, and says so of the others alone: as if the
    /// return had restored nothing.
    pub(crate) fn lie_about_return(&mut self) -> Result<(), Verdict> {
        let parity = self.array.shape.parity_count;
        if !self.array.harmed.is_empty() || self.array.shape.resync {
            return Ok(());
        }
        let name = self.array.members[0].name.clone();
        let mut args = vec!["fail".to_owned(), self.array.any_path(), "--device".to_owned(), name];
        args.extend(self.array.binary.fail_yes.map(str::to_owned));
        let out = Harm { gone: false, out: true, records: true, replaced: false, since: false };
        self.array.harm(0, out);
        self.array.run(args, self.array.patience.request)?;
        self.array.away.insert(0, true);
        let lanes = self.start_lanes();
        crate::round::join(lanes);
        for _ in 0..20 {
            if self.bring_back(0)? {
                break;
            }
        }
        for index in 0..=parity {
            let member = self.array.members[index].clone();
            if index > 0 {
                self.array.harm(index, scratch(true));
            }
            members::blank(&self.array.path(index), &member.layout, Area::Data)?;
        }
        Ok(())
    }
}
