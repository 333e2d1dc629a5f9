//! Members that work are replaced, and stay in service until their successors are whole.

use crate::members::{self, Area};
use crate::round::{Round, scratch};
use crate::verdict::{Check, Verdict};
use std::fs;

impl Round {
    /// A member that nothing was done to, if the binary keeps such a member in service while it is replaced.
    pub(crate) fn worker(&mut self) -> Option<usize> {
        let whole = |index: &usize| !self.array.harmed.contains_key(index) && !self.scarred.contains(index);
        let workers: Vec<usize> = (0..self.array.members.len()).filter(whole).collect();
        let may = self.array.binary.succeeds && !self.array.beyond && !workers.is_empty();
        may.then(|| *self.rng.pick(&workers))
    }

    /// A member that works is replaced while the array is served. From then on everything it held is in the
    /// new file alone.
    pub(crate) fn succeed_one(&mut self) -> Result<(), Verdict> {
        let Some(index) = self.worker() else { return Ok(()) };
        let any = vec![self.array.any_path()];
        let (mut args, new) = self.replace_args(any, index);
        args.push("--wait".to_owned());
        let ran = self.array.run(args, self.array.patience.work)?;
        self.judge_succession(index, new, ran.code == 0, &ran.reason())
    }

    /// The same while nobody serves it.
    pub(crate) fn succeed_in_stopped(&mut self) -> Result<(), Verdict> {
        let Some(index) = self.worker() else { return Ok(()) };
        let mut paths = self.array.paths(&mut self.rng, false);
        paths.extend(self.extras.clone());
        let (args, new) = self.replace_args(paths, index);
        if self.may_kill() && self.rng.percent(40) {
            self.kill_soon(args)?;
            self.stand_beside(index, new);
            return Ok(());
        }
        let ran = self.run_when_free(args)?;
        self.judge_succession(index, new, ran.code == 0, &ran.reason())
    }

    fn judge_succession(&mut self, index: usize, new: String, done: bool, why: &str) -> Result<(), Verdict> {
        if !done && self.array.harmed.is_empty() {
            return Err(Verdict::new(Check::NeedlessRefusal, format!("replace: {why}")));
        }
        if !done {
            self.stand_beside(index, new);
            return Ok(());
        }
        let old = self.array.path(index);
        let name = self.array.members[index].file.clone();
        self.moved(index, new);
        if self.rng.percent(50) {
            fs::remove_file(old)?;
        } else {
            self.extras.push(name);
        }
        Ok(())
    }

    /// A succession was cut off. Once the new file says that it is the member, it holds everything; until
    /// then it is nobody's. The old one may be named as well, and counts or not.
    pub(crate) fn stand_beside(&mut self, index: usize, new: String) {
        if !members::has_superblock(&self.array.dir.join(&new)) {
            return;
        }
        let old = std::mem::replace(&mut self.array.members[index].file, new);
        self.array.members[index].older = None;
        self.extras.push(old);
    }

    /// A member is succeeded; then the harness takes from the successor, and from as many others as the
    /// array bears, what they hold, and says so of the others alone: as if nothing had been copied.
    pub(crate) fn lie_about_successor(&mut self) -> Result<(), Verdict> {
        let parity = self.array.shape.parity_count;
        if !self.array.harmed.is_empty() || self.array.shape.resync {
            return Ok(());
        }
        let lanes = self.start_lanes();
        crate::round::join(lanes);
        let before = self.array.members[0].file.clone();
        for _ in 0..100 {
            if self.array.members[0].file != before {
                break;
            }
            self.succeed_one()?;
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
