//! What happens to the array of a round: commands beside the traffic, damage, losses, and what an operator
//! does about them.

use crate::array::Harm;
use crate::canary::Canary;
use crate::members::{self, Area};
use crate::nbd::Deadline;
use crate::program::Running;
use crate::round::{Part, Reach, Round, scratch};
use crate::verdict::{Check, Verdict};
use std::fs;
use std::thread;
use std::time::Duration;

/// What happens beside the traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Act {
    Damage,
    Truncate,
    Scrub,
    Commit,
    Checkpoint,
    Fail,
    Succeed,
    Status,
}

/// What happens while nobody serves the array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    Damage,
    Gone,
    Stale,
    Truncate,
    Swap,
    Status,
    Scrub,
    Replace,
    Succeed,
    Commit,
}

impl Round {
    /// Something happens beside the traffic.
    pub(crate) fn act(&mut self, server: &Running) -> Result<(), Verdict> {
        let acts = [
            Act::Damage,
            Act::Damage,
            Act::Damage,
            Act::Truncate,
            Act::Scrub,
            Act::Commit,
            Act::Checkpoint,
            Act::Fail,
            Act::Succeed,
            Act::Status,
        ];
        let act = *self.rng.pick(&acts);
        match act {
            Act::Damage => self.damage()?,
            Act::Truncate => self.truncate()?,
            Act::Scrub => self.work(&["scrub"], &["--wait"])?,
            Act::Commit => self.work(&["commit"], &[])?,
            Act::Checkpoint => {
                let kind = *self.rng.pick(&["--full", "--incremental"]);
                self.work(&["checkpoint"], &[kind])?;
            }
            Act::Fail => self.fail_one()?,
            Act::Succeed => self.succeed_one()?,
            Act::Status => {}
        }
        let any = vec![self.array.any_path()];
        self.array.check_status(any, true)?;
        if !self.array.harmed.is_empty() && self.rng.percent(50) {
            self.heal(server)?;
        }
        Ok(())
    }

    /// A command on the served array; it succeeds if nothing is the matter.
    fn work(&mut self, command: &[&str], options: &[&str]) -> Result<(), Verdict> {
        let mut args: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
        args.push(self.array.any_path());
        args.extend(options.iter().map(|&option| option.to_owned()));
        let ran = self.array.run(args, self.array.patience.work)?;
        if ran.code != 0 && self.array.harmed.is_empty() && !self.array.beyond {
            let what = format!("{} of an array without harm: {}", command.join(" "), ran.reason());
            return Err(Verdict::new(Check::NeedlessRefusal, what));
        }
        Ok(())
    }

    /// Whom it hits: never more members than the array bears, unless the round goes beyond; rather not those
    /// that were healed, so that what the healing overlooked is missed.
    fn victim(&mut self) -> Option<usize> {
        if self.array.shape.resync && !self.clean {
            return None;
        }
        let harmed: Vec<usize> = self.array.harmed.keys().copied().collect();
        let full = harmed.len() >= self.array.shape.parity_count;
        if (full && self.reach == Reach::Within) || (!harmed.is_empty() && self.rng.percent(30)) {
            return Some(*self.rng.pick(&harmed));
        }
        let fresh: Vec<usize> =
            (0..self.array.members.len()).filter(|index| !harmed.contains(index)).collect();
        let spared: Vec<usize> = fresh.iter().copied().filter(|index| !self.healed.contains(index)).collect();
        let from = if spared.is_empty() || self.rng.percent(10) { &fresh } else { &spared };
        (!from.is_empty()).then(|| *self.rng.pick(from))
    }

    /// Writes over parts of a member.
    fn damage(&mut self) -> Result<(), Verdict> {
        let Some(index) = self.victim() else { return Ok(()) };
        if self.array.harmed.get(&index).is_some_and(|harm| harm.gone) {
            return Ok(());
        }
        let (path, member) = (self.array.path(index), self.array.members[index].clone());
        let mut areas: Vec<Area> = member.layout.areas.iter().map(|(area, _)| *area).collect();
        areas.dedup();
        if self.without.contains(&Part::Metadata) {
            areas.retain(|area| matches!(area, Area::Data | Area::Payload));
        }
        if areas.is_empty() {
            return Ok(());
        }
        for _ in 0..self.rng.between(1, 3) {
            let area = *self.rng.pick(&areas);
            self.array.harm(index, scratch(area.holds_records()));
            self.shared.set_lenient(self.array.beyond);
            let how = members::damage(&path, &member.layout, area, &mut self.rng)?;
            self.array.tell(format!("damage of {}: {how}", member.name));
        }
        Ok(())
    }

    fn truncate(&mut self) -> Result<(), Verdict> {
        let Some(index) = self.victim() else { return Ok(()) };
        let gone = self.array.harmed.get(&index).is_some_and(|harm| harm.gone);
        if gone || self.without.contains(&Part::Truncate) {
            return Ok(());
        }
        let size_bytes = self.rng.below(self.array.file_bytes / 4096) * 4096;
        self.array.harm(index, scratch(true));
        self.shared.set_lenient(self.array.beyond);
        members::truncate(&self.array.path(index), size_bytes)?;
        let name = &self.array.members[index].name;
        self.array.tell(format!("{name} truncated to {size_bytes} bytes"));
        Ok(())
    }

    /// Takes a member out of service, as an operator does.
    pub(crate) fn fail_one(&mut self) -> Result<(), Verdict> {
        let Some(index) = self.victim() else { return Ok(()) };
        let known = self.array.harmed.get(&index).is_some_and(|harm| harm.out || harm.gone);
        if known
            || self.array.harmed.len() + usize::from(!self.array.harmed.contains_key(&index))
                > self.array.shape.parity_count
        {
            return Ok(());
        }
        let was_whole = !self.array.harmed.contains_key(&index);
        let name = self.array.members[index].name.clone();
        let mut args = vec!["fail".to_owned(), self.array.any_path(), "--device".to_owned(), name];
        args.extend(self.array.binary.fail_yes.map(str::to_owned));
        self.array
            .harm(index, Harm { gone: false, out: false, records: true, replaced: false, since: false });
        let ran = self.array.run(args, self.array.patience.request)?;
        let there = self.array.path(index).metadata().is_ok_and(|data| data.len() >= self.array.file_bytes);
        if ran.code == 0 {
            self.array
                .harm(index, Harm { gone: false, out: true, records: true, replaced: false, since: false });
            if was_whole && there {
                self.array.away.insert(index, true);
            }
        } else if there && !self.array.beyond && !ran.reason().contains("already") {
            return Err(Verdict::new(Check::NeedlessRefusal, format!("fail: {}", ran.reason())));
        }
        let any = vec![self.array.any_path()];
        self.array.check_status(any, true).map(|_| ())
    }

    /// What an operator does about harm while the array is served: replace what is out of service,
    /// scrub the rest.
    pub(crate) fn heal(&mut self, server: &Running) -> Result<(), Verdict> {
        for _ in 0..3 {
            let out: Vec<usize> = self
                .array
                .harmed
                .iter()
                .filter(|(_, harm)| harm.out || harm.gone)
                .map(|(&index, _)| index)
                .collect();
            for index in out {
                if !self.bring_back(index)? {
                    self.replace(server, index)?;
                }
            }
            if self.array.harmed.is_empty() || self.array.beyond {
                return Ok(());
            }
            self.work(&["scrub"], &["--wait"])?;
            let any = vec![self.array.any_path()];
            let status = self.array.check_status(any, true)?;
            if status["state"] == "healthy" {
                return self.trust();
            }
        }
        self.array.tell("not healed");
        Ok(())
    }

    /// The array says that it is whole after it was asked to look. That is believed, and put to the test by
    /// the next harm.
    fn trust(&mut self) -> Result<(), Verdict> {
        for &index in self.array.harmed.keys() {
            let size_bytes = self.array.path(index).metadata()?.len();
            if size_bytes < self.array.file_bytes {
                let what = format!(
                    "status says healthy after a scrub although {} has {size_bytes} of {} bytes",
                    self.array.members[index].name, self.array.file_bytes
                );
                return Err(Verdict::new(Check::FalselyHealthy, what));
            }
        }
        self.healed = self.array.harmed.keys().copied().collect();
        self.scarred.extend(&self.healed);
        self.array.harmed.clear();
        self.array.tell("healed, as the array says");
        Ok(())
    }

    pub(crate) fn replace_args(&mut self, paths: Vec<String>, index: usize) -> (Vec<String>, String) {
        let member = &mut self.array.members[index];
        member.generation += 1;
        let new = format!("new{}-{}", member.name, member.generation);
        let mut args = vec!["replace".to_owned()];
        args.extend(paths);
        args.extend(["--device".to_owned(), member.name.clone(), "--with".to_owned(), new.clone()]);
        args.extend(["--file-size".to_owned(), format!("{}B", self.array.file_bytes)]);
        args.extend(self.array.binary.replace_yes.map(str::to_owned));
        (args, new)
    }

    /// The member has this file from now on.
    pub(crate) fn moved(&mut self, index: usize, new: String) {
        let member = &mut self.array.members[index];
        member.file = new;
        member.older = None;
        self.array.away.remove(&index);
        self.array.harmed.remove(&index);
        self.healed.push(index);
        self.scarred.remove(&index);
    }

    /// Puts a new file in a member's place and waits until it is rebuilt: by the command, or by the server's
    /// words alone, as asking would wake it.
    fn replace(&mut self, server: &Running, index: usize) -> Result<(), Verdict> {
        let any = vec![self.array.any_path()];
        let (mut args, new) = self.replace_args(any, index);
        let ask = self.rng.percent(60) || self.array.beyond || self.without.contains(&Part::Idle);
        if ask {
            args.push("--wait".to_owned());
        }
        let said = server.said().1.len();
        let ran = self.array.run(args, self.array.patience.work)?;
        if ran.code != 0 && !self.array.beyond {
            return Err(Verdict::new(Check::NeedlessRefusal, format!("replace: {}", ran.reason())));
        }
        if ran.code != 0 {
            // With too much lost a rebuild ends in vain, but the place is taken; when what was lost is
            // written anew, the rebuild is tried again.
            if members::has_superblock(&self.array.dir.join(&new)) {
                self.displace(index, new);
            }
            return Ok(());
        }
        let name = self.array.members[index].name.clone();
        let deadline = Deadline::after(self.array.patience.work);
        while !ask && !server.said().1.get(said..).unwrap_or_default().contains(&format!("{name} is rebuilt"))
        {
            if deadline.has_passed() {
                let seconds = self.array.patience.work.as_secs();
                let what = format!("an idle server has not rebuilt {name} within {seconds} s");
                return Err(Verdict::new(Check::Hang, what));
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.moved(index, new);
        Ok(())
    }

    /// A command that is under way when the server is killed.
    pub(crate) fn begin_command(&mut self) -> Result<(), Verdict> {
        let any = self.array.any_path();
        let out = self.array.harmed.iter().find(|(_, harm)| harm.out).map(|(&index, _)| index);
        let works = self.worker().filter(|_| self.rng.percent(60));
        let out = out.or(works);
        let mut replaced = None;
        let args = match (out, self.rng.below(4)) {
            (Some(index), 0..2) => {
                let (mut args, new) = self.replace_args(vec![any], index);
                args.push("--wait".to_owned());
                replaced = Some((index, new));
                args
            }
            (_, 0..2) => vec!["scrub".to_owned(), any, "--wait".to_owned()],
            (_, 2) => vec!["commit".to_owned(), any],
            _ => vec!["checkpoint".to_owned(), any, "--full".to_owned()],
        };
        let running = self.array.launch(args)?;
        thread::sleep(Duration::from_micros(self.rng.below(30_000)));
        self.commands_left = Some((running, replaced));
        Ok(())
    }

    /// The command that was under way when the server was killed ends, too, and takes nothing away that
    /// is in service.
    pub(crate) fn finish_command(&mut self) -> Result<(), Verdict> {
        let Some((running, replaced)) = self.commands_left.take() else { return Ok(()) };
        let in_service = |round: &Self, new: &str| members::has_superblock(&round.array.dir.join(new));
        let was_there = replaced.as_ref().is_some_and(|(_, new)| in_service(self, new));
        let ran = running.wait(self.array.patience.work)?;
        let Some((index, new)) = replaced else { return Ok(()) };
        let succeeds = !self.array.harmed.contains_key(&index);
        if ran.code == 0 {
            // It came to its end before the kill, and said that the replacement is whole. The one before may
            // still be named.
            self.extras.extend(succeeds.then(|| self.array.members[index].file.clone()));
            self.moved(index, new);
            return Ok(());
        }
        if !in_service(self, &new) {
            if was_there {
                let what = format!("{new} carried a superblock, and `replace` has deleted it");
                return Err(Verdict::new(Check::Lost, what));
            }
            return Ok(());
        }
        if succeeds {
            self.stand_beside(index, new);
        } else {
            self.displace(index, new);
        }
        Ok(())
    }

    /// A replacement has a superblock; whether it counts, the superblocks of the others say.
    fn displace(&mut self, index: usize, new: String) {
        let harm = Harm { gone: false, out: true, records: true, replaced: true, since: false };
        let old = std::mem::replace(&mut self.array.members[index].file, new);
        let was_gone = self.array.harmed.get(&index).is_some_and(|harm| harm.gone);
        if !was_gone && members::has_superblock(&self.array.dir.join(&old)) {
            self.extras.push(old);
        }
        self.array.members[index].older = None;
        self.array.away.remove(&index);
        self.array.harmed.insert(index, harm);
    }

    /// Things happen to files that nobody serves.
    pub(crate) fn while_stopped(&mut self, session: u64) -> Result<(), Verdict> {
        self.lie_while_stopped(session)?;
        if self.rng.percent(40) {
            self.keep_older()?;
        }
        for _ in 0..self.rng.between(0, 3) {
            let events = [
                Event::Damage,
                Event::Damage,
                Event::Damage,
                Event::Gone,
                Event::Gone,
                Event::Stale,
                Event::Truncate,
                Event::Swap,
                Event::Status,
                Event::Scrub,
                Event::Replace,
                Event::Succeed,
                Event::Commit,
            ];
            match *self.rng.pick(&events) {
                Event::Damage => self.damage()?,
                Event::Gone => self.take_away()?,
                Event::Stale => self.make_stale()?,
                Event::Truncate => self.truncate()?,
                Event::Swap => self.swap_files()?,
                Event::Status => self.look_at_stopped()?,
                Event::Scrub => self.work_on_stopped("scrub")?,
                Event::Commit => self.work_on_stopped("commit")?,
                Event::Replace => self.replace_in_stopped()?,
                Event::Succeed => self.succeed_in_stopped()?,
            }
        }
        Ok(())
    }

    fn lie_while_stopped(&mut self, session: u64) -> Result<(), Verdict> {
        let bears = self.array.shape.parity_count;
        match self.array.canary {
            Some(Canary::RolledBack) if session == 0 => self.keep_older()?,
            Some(Canary::RolledBack) => {
                for member in self.array.members.clone() {
                    if let Some(older) = &member.older {
                        members::copy(older, &self.array.dir.join(&member.file))?;
                    }
                }
            }
            Some(Canary::LostMember) if session == 0 => {
                for index in 0..=bears {
                    fs::remove_file(self.array.path(index))?;
                    if index > 0 {
                        self.array.harm(
                            index,
                            Harm { gone: true, out: false, records: true, replaced: false, since: false },
                        );
                    }
                }
            }
            Some(Canary::LostChunks) => {
                for index in 0..=bears {
                    let member = self.array.members[index].clone();
                    members::blank(&self.array.path(index), &member.layout, Area::Data)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Keeps a copy of every member, to come back later.
    fn keep_older(&mut self) -> Result<(), Verdict> {
        for index in 0..self.array.members.len() {
            if self.array.harmed.contains_key(&index) {
                continue;
            }
            let older = self.array.dir.join(format!("{}.older", self.array.members[index].name));
            members::copy(&self.array.path(index), &older)?;
            self.array.members[index].older = Some(older);
        }
        Ok(())
    }

    /// A member comes back as it was a while ago.
    fn make_stale(&mut self) -> Result<(), Verdict> {
        let Some(index) = self.victim() else { return Ok(()) };
        let gone = self.array.harmed.get(&index).is_some_and(|harm| harm.gone);
        let (path, Some(older)) = (self.array.path(index), self.array.members[index].older.clone()) else {
            return Ok(());
        };
        if gone || self.array.harmed.get(&index).is_some_and(|harm| harm.out) {
            return Ok(());
        }
        self.array.harm(index, scratch(true));
        members::copy(&older, &path)?;
        self.array.tell(format!("{} is an older copy of itself", self.array.members[index].name));
        Ok(())
    }

    fn take_away(&mut self) -> Result<(), Verdict> {
        let Some(index) = self.victim() else { return Ok(()) };
        if self.array.harmed.get(&index).is_some_and(|harm| harm.gone) {
            return Ok(());
        }
        // Only a whole file can be given back and make the array whole.
        let whole = !self.array.harmed.contains_key(&index);
        let away = self.array.dir.join(format!("{}.away", self.array.members[index].file));
        fs::rename(self.array.path(index), &away)?;
        if !whole {
            fs::remove_file(away)?;
        }
        self.array.harm(index, Harm { gone: true, out: false, records: true, replaced: false, since: false });
        self.array.tell(format!("{} is gone", self.array.members[index].name));
        Ok(())
    }

    /// Members that were taken away and that the array has not gone on without come back. Whether so few are
    /// harmed now that the array must start.
    pub(crate) fn give_back(&mut self) -> Result<bool, Verdict> {
        let gone: Vec<usize> = self
            .array
            .harmed
            .iter()
            .filter(|(_, harm)| harm.gone && !harm.out)
            .map(|(&index, _)| index)
            .collect();
        for index in gone {
            let away = self.array.dir.join(format!("{}.away", self.array.members[index].file));
            if away.exists() {
                fs::rename(away, self.array.path(index))?;
                self.array.harmed.remove(&index);
                self.array.tell(format!("{} is back", self.array.members[index].name));
            }
        }
        let borne = self.array.harmed.len() <= self.array.shape.parity_count;
        self.array.beyond = !borne;
        Ok(borne)
    }

    fn swap_files(&mut self) -> Result<(), Verdict> {
        let count = self.array.members.len();
        let (a, b) = (self.rng.index(count), self.rng.index(count));
        let gone = |index| self.array.harmed.get(&index).is_some_and(|harm: &Harm| harm.gone);
        if a == b || gone(a) || gone(b) {
            return Ok(());
        }
        let (first, second) = (self.array.members[a].file.clone(), self.array.members[b].file.clone());
        members::swap(&self.array.dir, &first, &second)?;
        self.array.tell(format!("{first} and {second} have swapped their names"));
        self.array.members[a].file = second;
        self.array.members[b].file = first;
        Ok(())
    }

    fn look_at_stopped(&mut self) -> Result<(), Verdict> {
        let paths = self.array.paths(&mut self.rng, false);
        if paths.is_empty() {
            return Ok(());
        }
        self.array.check_status(paths, false).map(|_| ())
    }

    /// An offline command, killed now and then.
    fn work_on_stopped(&mut self, command: &str) -> Result<(), Verdict> {
        let mut args = vec![command.to_owned()];
        args.extend(self.array.paths(&mut self.rng, false));
        args.extend(self.extras.clone());
        if self.may_kill() && self.rng.percent(40) {
            let running = self.array.launch(args)?;
            thread::sleep(Duration::from_micros(self.rng.below(60_000)));
            running.kill();
            running.wait(self.array.patience.request)?;
            self.clean = false;
            self.array.tell("  killed");
            return Ok(());
        }
        let ran = self.run_when_free(args)?;
        if ran.code != 0 && self.array.harmed.is_empty() {
            let what = format!("{command} of an array without harm: {}", ran.reason());
            return Err(Verdict::new(Check::NeedlessRefusal, what));
        }
        if ran.code == 0 && command == "scrub" && !self.array.beyond {
            let paths = self.array.paths(&mut self.rng, false);
            let status = self.array.check_status(paths, false)?;
            if status["state"] == "healthy" {
                self.trust()?;
            }
        }
        self.clean |= ran.code == 0;
        Ok(())
    }

    /// The kernel may still be closing the files of a server that was killed.
    pub(crate) fn run_when_free(&mut self, args: Vec<String>) -> Result<crate::program::Ran, Verdict> {
        let deadline = Deadline::after(self.array.patience.request);
        loop {
            let ran = self.array.run(args.clone(), self.array.patience.work)?;
            if ran.code == 0 || !ran.err.contains("in use") || deadline.has_passed() {
                return Ok(ran);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// A command that is killed at some moment.
    pub(crate) fn kill_soon(&mut self, args: Vec<String>) -> Result<(), Verdict> {
        let running = self.array.launch(args)?;
        thread::sleep(Duration::from_micros(self.rng.below(60_000)));
        running.kill();
        running.wait(self.array.patience.request)?;
        self.array.tell("  killed");
        Ok(())
    }

    /// A member that is gone or out of service is replaced while nobody serves the array.
    fn replace_in_stopped(&mut self) -> Result<(), Verdict> {
        let out = self.array.harmed.iter().find(|(_, harm)| harm.out || harm.gone).map(|(&index, _)| index);
        let Some(index) = out.filter(|_| !self.array.beyond) else { return Ok(()) };
        let mut paths = self.array.paths(&mut self.rng, false);
        // One whose superblocks are gone is no member to the command, which says so.
        paths.retain(|path| members::has_superblock(&self.array.dir.join(path)));
        paths.extend(self.extras.clone());
        let (args, new) = self.replace_args(paths, index);
        if self.may_kill() && self.rng.percent(40) {
            self.kill_soon(args)?;
            if members::has_superblock(&self.array.dir.join(&new)) {
                self.displace(index, new);
            }
            return Ok(());
        }
        let only = self.array.harmed.len() == 1;
        let ran = self.run_when_free(args)?;
        if ran.code == 0 {
            self.moved(index, new);
        } else if only {
            return Err(Verdict::new(Check::NeedlessRefusal, format!("replace: {}", ran.reason())));
        } else if members::has_superblock(&self.array.dir.join(&new)) {
            self.displace(index, new);
        }
        Ok(())
    }
}
