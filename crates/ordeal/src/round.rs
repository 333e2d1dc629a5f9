//! One round: an array is made, served, written to, hurt and looked at, as its seed says. After every event
//! what the array holds and says is judged.
//!
//! What was done to members is noted (`Array::harmed`). While no more members are harmed than the array
//! bears, nothing may fail: no read, no start, no command. A harm is forgotten when the array says that it is
//! whole again: a rebuild has ended, or a scrub has, and `status` says healthy. From then on others may be
//! harmed, so a scrub that overlooks something is found out by the next loss.

use crate::array::{Array, Harm, Patience};
use crate::canary::Canary;
use crate::ledger::{Ledger, Promise, SECTOR};
use crate::nbd::Deadline;
use crate::program::{Binary, Running};
use crate::rng::Rng;
use crate::shape::{Scheme, Shape};
use crate::traffic::{self, Manner, Shared};
use crate::verdict::{Check, Verdict};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What can be left out of rounds, to look past a defect that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Members cut short.
    Truncate,
    /// Discards at once after a write to the same stripe, and all other discards.
    Discard,
    /// Waiting for the end of a rebuild without asking for it.
    Idle,
    /// Damage of metadata (superblocks, checkpoints, journal, log).
    Metadata,
    /// More harm than the array bears.
    Beyond,
}

impl Part {
    /// All of them.
    pub const ALL: [(&'static str, Self); 5] = [
        ("truncate", Self::Truncate),
        ("discard", Self::Discard),
        ("idle", Self::Idle),
        ("metadata", Self::Metadata),
        ("beyond", Self::Beyond),
    ];
}

/// What a round is drawn from.
#[derive(Clone, Debug)]
pub struct Options {
    /// What runs.
    pub binary: Binary,
    /// Where rounds have their directories.
    pub dir: PathBuf,
    /// Only this scheme.
    pub scheme: Option<Scheme>,
    /// How long a request may take.
    pub patience: Duration,
    /// What the harness lies about.
    pub canary: Option<Canary>,
    /// What does not happen.
    pub without: Vec<Part>,
}

/// What is left of a round.
#[derive(Debug)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// What was found wrong.
    pub verdict: Option<Verdict>,
    /// What happened, a line each.
    pub story: Vec<String>,
    /// Its directory.
    pub dir: PathBuf,
}

/// How far a round goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// Never more harm than the array bears.
    Within,
    /// Now and then more.
    Beyond,
}

/// How a server is ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    KillInTraffic,
    Kill,
    KillInCommand,
    Terminate,
    Stop,
}

/// See the module's documentation.
pub(crate) struct Round {
    pub(crate) array: Array,
    pub(crate) shared: Arc<Shared>,
    pub(crate) rng: Rng,
    pub(crate) reach: Reach,
    pub(crate) without: Vec<Part>,
    /// The last server was stopped in order.
    pub(crate) clean: bool,
    /// Members that were healed: others are harmed next.
    pub(crate) healed: Vec<usize>,
    /// Members that were damaged and have been in place ever since: where nothing was ever written no scrub
    /// has looked at them.
    pub(crate) scarred: BTreeSet<usize>,
    /// Files of members that a command was about to replace when it was killed.
    pub(crate) extras: Vec<String>,
    /// A command that is under way when the server is killed, and the file that it puts in a member's place.
    pub(crate) commands_left: Option<(Running, Option<(usize, String)>)>,
    /// What the last start said about records that it could not keep, or that it was forced.
    older: bool,
    lanes: u64,
}

/// Runs the round of a seed.
pub fn run(options: &Options, seed: u64) -> Outcome {
    let dir = options.dir.join(format!("{seed}"));
    let _ = std::fs::remove_dir_all(&dir); // what an earlier run of the same seed kept
    let mut rng = Rng::new(seed);
    let mut shape = Shape::draw(&mut rng, options.scheme);
    if let Some(patrol) = options.binary.patrol.filter(|_| rng.percent(30)) {
        shape.serve.extend([patrol.to_owned(), format!("{}ms", rng.between(20, 500))]);
    }
    let patience = Patience { request: options.patience, work: options.patience * 3 };
    let made = Array::create(dir.clone(), options.binary.clone(), shape, patience, options.canary);
    let mut array = match made {
        Ok(array) => array,
        Err(verdict) => return Outcome { seed, verdict: Some(verdict), story: Vec::new(), dir },
    };
    let beyond = rng.percent(25) && !array.shape.resync && !options.without.contains(&Part::Beyond);
    let reach = if beyond { Reach::Beyond } else { Reach::Within };
    array.tell(format!("reach: {reach:?}"));
    let manner = Manner {
        chunk_sectors: array.shape.chunk_bytes / SECTOR as u64,
        data_count: array.shape.data_count as u64,
        durable_writes: array.shape.durable_writes,
        patience: options.patience,
        canary: options.canary,
        discards: !options.without.contains(&Part::Discard),
    };
    let shared = Shared::new(Ledger::new(seed, array.volume_bytes / SECTOR as u64), manner);
    let mut round = Round {
        array,
        shared,
        rng,
        reach,
        without: options.without.clone(),
        clean: true,
        healed: Vec::new(),
        scarred: BTreeSet::new(),
        extras: Vec::new(),
        commands_left: None,
        older: false,
        lanes: 0,
    };
    let verdict = round.run().err();
    Outcome { seed, verdict, story: round.array.story, dir }
}

impl Round {
    fn run(&mut self) -> Result<(), Verdict> {
        let sessions = self.rng.between(2, 4);
        for session in 0..sessions {
            let Some(server) = self.bring_up()? else { return Ok(()) };
            self.session(server)?;
            self.while_stopped(session)?;
        }
        // What is left must be whole, twice: what the first start made of it is what the second one finds.
        for _ in 0..2 {
            let Some(server) = self.bring_up()? else { return Ok(()) };
            self.end(server, End::Terminate, Vec::new())?;
        }
        Ok(())
    }

    /// Starts a server and looks at all of it. `None`: more is lost than the array bears, and it says so.
    fn bring_up(&mut self) -> Result<Option<Running>, Verdict> {
        self.kill_starts()?;
        let Some(server) = self.start()? else {
            if self.array.beyond && self.give_back()? {
                return self.bring_up();
            }
            return Ok(None);
        };
        self.shared.set_ending(false);
        self.shared.set_lenient(self.array.beyond);
        let any = vec![self.array.any_path()];
        self.array.check_status(any.clone(), true)?;
        let unread = traffic::read_all(&self.shared, &self.socket(), self.promise())?;
        if unread > 0 {
            self.array.tell(format!("{unread} sectors cannot be read"));
            let status = self.array.check_status(any, true)?;
            if status["state"] == "healthy" {
                let what = format!("status says healthy although {unread} sectors cannot be read");
                return Err(Verdict::new(Check::FalselyHealthy, what));
            }
        }
        Ok(Some(server))
    }

    /// What is promised about writes that no flush covered.
    fn promise(&self) -> Promise {
        let Shape { chunk_bytes, data_count, resync, .. } = self.array.shape;
        let chunk = chunk_bytes / SECTOR as u64;
        let older = self.older || self.array.may_be_older();
        Promise {
            chunk_sectors: (!resync && !older).then_some(chunk),
            stripe_sectors: (self.array.shape.whole_stripes() && !older).then_some(chunk * data_count as u64),
            older,
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.array.dir.join("nbd")
    }

    /// Whether a server or command may be killed. Without a journal a kill beside a loss may cost
    /// data, as documented; and what was never written reads after a kill as what the members hold
    /// there, damage included.
    pub(crate) fn may_kill(&self) -> bool {
        let unmarked = self.array.harmed.is_empty() && self.healed.is_empty() && self.scarred.is_empty();
        !self.array.shape.resync || unmarked
    }

    /// Starts that are killed at some moment.
    fn kill_starts(&mut self) -> Result<(), Verdict> {
        while self.may_kill() && !self.array.beyond && self.rng.percent(20) {
            let args = self.serve_args(&[]);
            let server = self.array.launch(args)?;
            thread::sleep(Duration::from_micros(self.rng.below(40_000)));
            server.kill();
            server.wait(self.array.patience.request)?;
            self.array.tell("  killed while starting");
            self.clean = false;
        }
        Ok(())
    }

    fn serve_args(&mut self, more: &[&str]) -> Vec<String> {
        let with_gone = !more.is_empty() && self.rng.percent(50);
        let mut args = vec!["serve".to_owned()];
        args.extend(self.array.paths(&mut self.rng, with_gone));
        args.extend(self.extras.clone());
        args.extend(["--nbd".to_owned(), "unix:nbd".to_owned()]);
        args.extend(self.array.shape.serve.clone());
        args.extend(more.iter().map(|&option| option.to_owned()));
        args
    }

    /// Starts a server, without what is missing if need be.
    fn start(&mut self) -> Result<Option<Running>, Verdict> {
        let before = self.array.harmed.clone();
        for more in [&[][..], &["--degraded"][..]] {
            let reason = match self.try_start(more)? {
                Ok(server) => return Ok(Some(server)),
                Err(reason) => reason,
            };
            let borne = !self.array.beyond && (!more.is_empty() || before.is_empty());
            if borne {
                let what = format!("serve {}refused: {reason}", more.join(" ") + " ");
                return Err(Verdict::new(Check::NeedlessRefusal, what));
            }
        }
        if !self.rng.percent(30) {
            return Ok(None);
        }
        // What can be had by force may be older, and is right all the same.
        let forced = self.try_start(&["--degraded", "--force"])?.ok();
        self.older = forced.is_some();
        Ok(forced)
    }

    fn try_start(&mut self, more: &[&str]) -> Result<Result<Running, String>, Verdict> {
        let deadline = Deadline::after(self.array.patience.request);
        loop {
            let args = self.serve_args(more);
            let mut server = self.array.launch(args)?;
            while !server.said().0.contains("serving at") && !server.has_ended() {
                if deadline.has_passed() {
                    let seconds = self.array.patience.request.as_secs();
                    return Err(Verdict::new(Check::Hang, format!("serve was not ready within {seconds} s")));
                }
                thread::sleep(Duration::from_millis(2));
            }
            if !server.has_ended() {
                let recovery = server.said().0;
                let line = recovery.lines().find(|line| line.contains("recovery")).unwrap_or_default();
                // The newest records may be dropped, said so, if what they name is damaged beyond what the
                // array bears.
                self.older = self.array.beyond && line.contains("dropped");
                self.array.away.values_mut().for_each(|same| *same = false);
                self.array.tell(format!("  serving; {line}"));
                return Ok(Ok(server));
            }
            let ran = server.wait(self.array.patience.request)?;
            self.array.tell(format!("  code {}: {}", ran.code, ran.reason()));
            if ran.code == 0 {
                return Err(Verdict::new(Check::Lost, "serve ended by itself with code 0"));
            }
            // The kernel may still be closing the files of a server that was killed.
            if !ran.err.contains("in use") || deadline.has_passed() {
                return Ok(Err(ran.reason()));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Traffic, with things happening beside it, and an end.
    fn session(&mut self, server: Running) -> Result<(), Verdict> {
        if !self.array.harmed.is_empty() && self.rng.percent(75) {
            self.heal(&server)?;
        }
        if self.array.canary == Some(Canary::SaysHealthy) {
            self.fail_one()?;
        }
        if self.array.canary == Some(Canary::StaleReturn) {
            self.lie_about_return()?;
        }
        if self.array.canary == Some(Canary::BlankSuccessor) {
            self.lie_about_successor()?;
        }
        for _ in 0..self.rng.between(0, 2) {
            let lanes = self.start_lanes();
            if self.array.canary == Some(Canary::LostServer) {
                server.kill();
            }
            thread::sleep(Duration::from_micros(self.rng.below(30_000)));
            let done = self.act(&server);
            join(lanes);
            self.shared.verdict()?;
            done?;
        }
        let end = self.draw_end();
        let lanes = self.start_lanes();
        let lanes = if end == End::KillInTraffic || self.rng.percent(30) {
            thread::sleep(Duration::from_micros(self.rng.below(60_000)));
            lanes
        } else {
            join(lanes);
            Vec::new()
        };
        self.shared.verdict()?;
        self.end(server, end, lanes)
    }

    pub(crate) fn start_lanes(&mut self) -> Vec<JoinHandle<()>> {
        let count = if self.rng.percent(50) { 1 } else { self.rng.between(2, 4) };
        let requests = self.rng.between(20, 200) / count;
        let mut lanes = Vec::new();
        for _ in 0..count {
            self.lanes += 1;
            lanes.push(traffic::start(&self.shared, &self.socket(), self.rng.fork(self.lanes), requests));
        }
        self.array.tell(format!("traffic: {count} connections, {requests} requests each"));
        lanes
    }

    fn draw_end(&mut self) -> End {
        let end = *self.rng.pick(&[
            End::KillInTraffic,
            End::KillInTraffic,
            End::Kill,
            End::KillInCommand,
            End::Terminate,
            End::Stop,
        ]);
        let orderly = self.array.canary == Some(Canary::RolledBack);
        if self.may_kill() && !orderly { end } else { End::Terminate }
    }

    fn end(&mut self, server: Running, end: End, lanes: Vec<JoinHandle<()>>) -> Result<(), Verdict> {
        self.array.tell(format!("end: {end:?}"));
        if end == End::KillInCommand {
            self.begin_command()?;
        }
        self.shared.set_ending(true);
        let orderly = match end {
            End::KillInTraffic | End::Kill | End::KillInCommand => {
                server.kill();
                false
            }
            End::Terminate => {
                server.terminate();
                true
            }
            End::Stop => {
                let mut args = vec!["stop".to_owned(), self.array.any_path()];
                args.extend(self.array.binary.stop_force.map(str::to_owned));
                let ran = self.array.run(args, self.array.patience.work)?;
                if ran.code != 0 {
                    server.terminate();
                }
                true
            }
        };
        let ran = server.wait(self.array.patience.work)?;
        join(lanes);
        self.finish_command()?;
        self.shared.verdict()?;
        self.array.tell(format!("  serve ended with code {}: {}", ran.code, ran.reason()));
        if orderly && ran.code != 0 && !self.array.beyond {
            let what = format!("serve ended with code {} after an orderly stop: {}", ran.code, ran.reason());
            return Err(Verdict::new(Check::Lost, what));
        }
        self.clean = orderly && ran.code == 0;
        self.shared.ledger().ended(self.clean);
        Ok(())
    }
}

pub(crate) fn join(lanes: Vec<JoinHandle<()>>) {
    for lane in lanes {
        // A thread that panicked has left a request without an answer, which is found out.
        let _ = lane.join();
    }
}

/// Harm that leaves the file where it is.
pub(crate) fn scratch(records: bool) -> Harm {
    Harm { gone: false, out: false, records, replaced: false, since: false }
}
