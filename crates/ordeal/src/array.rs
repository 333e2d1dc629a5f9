//! An array of files in a directory of its own: its members, the commands that work on them, and what has
//! been done to them that the array has not yet made good.

use crate::canary::Canary;
use crate::members::{Layout, Member};
use crate::program::{Binary, Ran, Running};
use crate::rng::Rng;
use crate::shape::Shape;
use crate::verdict::{Check, Verdict};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// What was done to a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Harm {
    /// Its file was taken away.
    pub gone: bool,
    /// The array knows that it is out of service.
    pub out: bool,
    /// Its newest records may be gone.
    pub records: bool,
    /// A replacement is in its place, of which it is not known whether it was rebuilt: a kill came in
    /// between. If the array says so, that is believed, and put to the test by the next harm.
    pub replaced: bool,
    /// What took its place was harmed since: a rebuild that goes on after a restart does not write anew what
    /// it had written before.
    pub since: bool,
}

/// Something on it is not what it was.
const HURT: Harm = Harm { gone: false, out: false, records: true, replaced: false, since: false };

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// A request, a status, the start of a server.
    pub request: Duration,
    /// A command that works through the whole array.
    pub work: Duration,
}

/// See the module's documentation.
pub struct Array {
    /// Where the members are.
    pub dir: PathBuf,
    /// What runs.
    pub binary: Binary,
    /// What it is.
    pub shape: Shape,
    /// Places and files.
    pub members: Vec<Member>,
    /// Bytes of a member.
    pub file_bytes: u64,
    /// Bytes of the volume.
    pub volume_bytes: u64,
    /// By member, what the array has not yet made good.
    pub harmed: BTreeMap<usize, Harm>,
    /// Members to which nothing was done but that they were taken out of service; whether the same server has
    /// run since.
    pub away: BTreeMap<usize, bool>,
    /// More was harmed at some time than the array bears, and has not been given back.
    pub beyond: bool,
    /// How long things may take.
    pub patience: Patience,
    /// What the harness lies about.
    pub canary: Option<Canary>,
    /// What happened, a line each.
    pub story: Vec<String>,
    commands: usize,
}

impl Array {
    /// Makes an array of this shape.
    pub fn create(
        dir: PathBuf,
        binary: Binary,
        shape: Shape,
        patience: Patience,
        canary: Option<Canary>,
    ) -> Result<Self, Verdict> {
        fs::create_dir_all(&dir)?;
        let file_bytes = shape.file_bytes;
        let mut array = Self {
            dir,
            binary,
            shape,
            members: Vec::new(),
            file_bytes,
            volume_bytes: 0,
            harmed: BTreeMap::new(),
            away: BTreeMap::new(),
            beyond: false,
            patience,
            canary,
            story: Vec::new(),
            commands: 0,
        };
        array.tell(format!("array: {}", array.shape.clone()));
        let mut ran = array.try_create()?;
        if let Some(needed) = needed_bytes(&ran.err) {
            // What is said of one slice holds for each.
            let slice_bytes = needed.next_multiple_of(1 << 20);
            array.file_bytes = slice_bytes * array.shape.shards + (file_bytes - (6 << 20));
            ran = array.try_create()?;
        }
        if ran.code != 0 {
            return Err(Verdict::new(Check::NeedlessRefusal, format!("create: {}", ran.reason())));
        }
        let made: Value = parse(&ran)?;
        array.volume_bytes = made["volume_bytes"].as_u64().unwrap_or(0);
        for name in array.names() {
            let file = file_of(&name);
            let layout = Layout::read(&array.dir.join(&file))?;
            array.members.push(Member { name, file, layout, older: None, generation: 0 });
        }
        Ok(array)
    }

    fn names(&self) -> Vec<String> {
        let main = (0..self.shape.data_count + self.shape.parity_count).map(|i| format!("data{i}"));
        main.chain((0..self.shape.log_count()).map(|i| format!("log{i}"))).collect()
    }

    fn try_create(&mut self) -> Result<Ran, Verdict> {
        let (data, logs): (Vec<_>, Vec<_>) =
            self.names().iter().map(|name| file_of(name)).partition(|file| file.starts_with("ssd"));
        let mut args = vec!["create".to_owned()];
        args.extend(self.shape.create.clone());
        args.extend(["--parity".to_owned(), self.shape.parity_count.to_string(), "--data".to_owned()]);
        args.extend(data);
        if !logs.is_empty() {
            args.push("--log".to_owned());
            args.extend(logs);
        }
        args.extend(["--chunk-size".to_owned(), format!("{}KiB", self.shape.chunk_bytes >> 10)]);
        args.extend(["--file-size".to_owned(), format!("{}B", self.file_bytes), "--json".to_owned()]);
        self.run(args, self.patience.request)
    }

    /// Notes what happened.
    pub fn tell(&mut self, line: impl Into<String>) {
        self.story.push(line.into());
    }

    /// Starts a command.
    pub fn launch(&mut self, args: Vec<String>) -> Result<Running, Verdict> {
        self.commands += 1;
        self.tell(format!("$ elastripe {}", args.join(" ")));
        Ok(Running::start(&self.binary, &self.dir, self.commands, &args)?)
    }

    /// Runs a command to its end.
    pub fn run(&mut self, args: Vec<String>, patience: Duration) -> Result<Ran, Verdict> {
        let running = self.launch(args)?;
        let mut ran = running.wait(patience)?;
        if self.canary == Some(Canary::SaysPanic) && self.commands > 3 {
            ran.err.push_str("thread 'main' panicked at a lie of the harness");
            crate::program::judge_end("a command", &ran)?;
        }
        self.tell(format!("  code {}: {}", ran.code, ran.gist()));
        Ok(ran)
    }

    /// Files of the members that are there, in some order; now and then the ones that are gone
    /// are named, too.
    pub fn paths(&self, rng: &mut Rng, with_gone: bool) -> Vec<String> {
        let mut paths: Vec<String> = (0..self.members.len())
            .filter(|index| with_gone || !self.harmed.get(index).is_some_and(|harm| harm.gone))
            .map(|index| self.members[index].file.clone())
            .collect();
        rng.shuffle(&mut paths);
        paths
    }

    /// A member whose file is there and that nobody touched, for commands that need only one.
    pub fn any_path(&self) -> String {
        let untouched = (0..self.members.len()).find(|index| !self.harmed.contains_key(index));
        let there =
            (0..self.members.len()).find(|index| self.harmed.get(index).is_none_or(|harm| !harm.gone));
        untouched.or(there).map_or_else(String::new, |index| self.members[index].file.clone())
    }

    /// Where a member's file is.
    pub fn path(&self, index: usize) -> PathBuf {
        self.dir.join(&self.members[index].file)
    }

    /// Notes harm done to a member.
    pub fn harm(&mut self, index: usize, harm: Harm) {
        let before = self.harmed.entry(index).or_insert(Harm {
            gone: false,
            out: false,
            records: false,
            replaced: false,
            since: false,
        });
        before.gone |= harm.gone;
        before.out |= harm.out;
        before.records |= harm.records;
        if harm.gone || !harm.out {
            self.away.remove(&index);
        }
        // That it is out of service, `status` says of it while it is being rebuilt.
        before.since |= before.replaced && (harm.records || !harm.out);
        self.beyond |= self.harmed.len() > self.shape.parity_count;
    }

    /// Whether so many members lack their newest records that none may be left to tell.
    pub fn may_be_older(&self) -> bool {
        self.harmed.values().filter(|harm| harm.records || harm.gone).count() > self.shape.parity_count
    }

    /// Looks at what `status` says and holds it to what is known.
    pub fn check_status(&mut self, paths: Vec<String>, served: bool) -> Result<Value, Verdict> {
        let mut args = vec!["status".to_owned()];
        args.extend(paths);
        args.push("--json".to_owned());
        let mut ran = self.run(args, self.patience.request)?;
        let value: Value = match parse(&ran) {
            Ok(value) => value,
            // It may be unable to look, but then it does not say that all is well.
            Err(_) if !self.harmed.is_empty() && !served && ran.code != 0 => return Ok(Value::Null),
            Err(verdict) => return Err(verdict),
        };
        let mut state = value["state"].as_str().unwrap_or("none").to_owned();
        if self.canary == Some(Canary::SaysHealthy) {
            (ran.code, state) = (0, "healthy".to_owned());
        }
        let lie = |what: String| Err(Verdict::new(Check::FalselyHealthy, what));
        if (ran.code == 0) != (state == "healthy") {
            return lie(format!("status says {state} with exit code {}", ran.code));
        }
        let empty = Vec::new();
        let devices = value["devices"].as_array().unwrap_or(&empty);
        for (index, member) in self.members.clone().iter().enumerate() {
            let said = devices.iter().find(|device| device["name"] == member.name.as_str());
            let said = said.and_then(|device| device["state"].as_str()).unwrap_or("absent").to_owned();
            let harm = self.harmed.get(&index).cloned();
            if said != "healthy" && state == "healthy" {
                return lie(format!("status says healthy although {} is {said}", member.name));
            }
            if harm.as_ref().is_some_and(|harm| harm.replaced) && state == "healthy" {
                // It is a member like others now.
                match harm.is_some_and(|harm| harm.since) {
                    true => drop(self.harmed.insert(index, HURT)),
                    false => drop(self.harmed.remove(&index)),
                }
                continue;
            }
            if harm.as_ref().is_some_and(|harm| harm.out || harm.gone) && state == "healthy" {
                return lie(format!(
                    "status says healthy although {} is out of service or gone",
                    member.name
                ));
            }
            if said != "healthy" && served {
                if harm.is_none() && !self.beyond {
                    let what = format!("{} is {said} although nobody touched it", member.name);
                    return Err(Verdict::new(Check::Lost, what));
                }
                self.harm(
                    index,
                    Harm { gone: false, out: true, records: false, replaced: false, since: false },
                );
            }
        }
        Ok(value)
    }
}

/// The file of a member. It is not called as the member, so that the two cannot be confused when files swap
/// their names.
fn file_of(name: &str) -> String {
    name.replace("data", "ssd").replace("log", "hdd")
}

/// `create` says how large members must be.
fn needed_bytes(err: &str) -> Option<u64> {
    err.split("at least ").nth(1)?.split(' ').next()?.parse().ok()
}

/// Standard output as JSON.
pub fn parse(ran: &Ran) -> Result<Value, Verdict> {
    serde_json::from_str(&ran.out).map_err(|error| {
        Verdict::new(
            Check::NeedlessRefusal,
            format!("code {}, no JSON ({error}): {}", ran.code, ran.reason()),
        )
    })
}
