//! The server's side of everything but block I/O: signals, the control socket, the command of `--run`,
//! spares, and the log.

mod asker;
mod child;
mod commits;
mod drives;
mod growing;
mod hangup;
mod opening;
mod report;
mod standing;
mod users;

use asker::Client;
use child::RunCommand;
use commits::AskedCommits;
use drives::Physician;
use opening::Doors;
pub use opening::Opening;

use crate::checks::{Caution, Consent, Manner};
use crate::control::{Reply, Request};
use crate::error::Error;
use crate::event::Event;
use crate::logbook::{Level, log, log_as};
use crate::naming::check_name;
use crate::notify::Watchdog;
use crate::open::member_name;
use crate::operate::Operator;
use crate::reactions::Reactions;
use crate::registry::ControlSocket;
use crate::reloading::Reloading;
use crate::running::{Plant, Running};
use crate::signals::{Signals, Wish, name_of};
use crate::sockets::Census;
use crate::status::{Clientele, StoreStatus, of_running};
use crate::trouble::TroubleLog;
use crate::ublk::Attendant;
use array::EngineError;
use block::DevIndex;
use device::Identity;
use format::CheckpointKind;
use front::{Fault, Flow, Hooks, Interest, Meter};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};
use users::Users;

/// Control connections at a time.
const CLIENTS_MAX: usize = 32;

/// How long the array is left alone at most, if its threads tell of nothing and somebody wakes this one.
const REST: Duration = Duration::from_secs(1);

/// How long who comes waits if this process may open no more files.
const DEAF: Duration = Duration::from_millis(100);

/// How long those who are told of the end have to take that, and how often it is tried.
const LAST_WORDS: Duration = Duration::from_secs(2);
const LAST_WORDS_RETRY: Duration = Duration::from_millis(10);

/// How often the log looks at members in trouble.
const LOOK_NS: u64 = 1_000_000_000;

/// How often, and how many times at most, a device that is taking over is looked at before the array stops.
const HAND_OVER: Duration = Duration::from_millis(1);
const HAND_OVER_LOOKS: u32 = 60_000;

/// What an answer waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    /// A control request of the engine.
    Tag(u64),
    /// A replacement taking this place.
    Place(DevIndex),
    /// The array that grows.
    Growth,
    /// The end of serving, if no clients are connected when this turn is over, or whatever they do.
    StopAsked {
        /// Whatever they do.
        force: bool,
    },
    /// The end of serving.
    Stop,
}

/// What a steward is led by.
pub(crate) type Reins = (Signals, ControlSocket, Reloading);

/// See the module's documentation.
pub struct Steward {
    signals: Signals,
    control: ControlSocket,
    clients: Vec<Client>,
    operator: Operator,
    stale: Vec<PathBuf>,
    uris: Vec<String>,
    child: RunCommand,
    events: Vec<Event>,
    reactions: Reactions,
    rewatch: bool,
    /// When to look after the array if nothing happens; `None` before the first time.
    look_at: Option<Instant>,
    /// Why serving ended.
    failure: Option<Error>,
    stopping: bool,
    users: Users,
    trouble: TroubleLog,
    watchdog: Option<Watchdog>,
    /// When and where clients find the volume.
    doors: Doors,
    /// Whom the drives tell of their age.
    physician: Physician,
    reloading: Reloading,
    commits: AskedCommits,
}

impl Steward {
    /// A steward of an array whose clients find it at `uris`.
    pub fn new(
        (signals, control, reloading): Reins,
        operator: Operator,
        stale: Vec<PathBuf>,
        uris: Vec<String>,
        reactions: Reactions,
    ) -> Self {
        Self {
            signals,
            control,
            clients: Vec::new(),
            operator,
            stale,
            uris,
            child: RunCommand::default(),
            events: Vec::new(),
            reactions,
            rewatch: false,
            look_at: None,
            failure: None,
            stopping: false,
            users: Users::default(),
            trouble: TroubleLog::default(),
            watchdog: Watchdog::of_environment(),
            doors: Doors::default(),
            physician: Physician::default(),
            reloading,
            commits: AskedCommits::default(),
        }
    }

    /// A store of keys is being opened.
    pub fn note_opening(&mut self) {
        self.users.opens_store = true;
    }

    /// How the store of keys is; somebody may ask in this turn.
    pub fn note_store(&mut self, store: StoreStatus) {
        if let Some(trouble) = self.users.note_store(store) {
            log_as(Level::Error, trouble);
        }
    }

    /// Clients are on this thread.
    pub fn watch_own_clients(&mut self, meter: Arc<Meter>) {
        self.users.meters = vec![meter];
    }

    /// Clients are on other threads.
    pub fn watch_clients(&mut self, census: Arc<Census>, meters: Vec<Arc<Meter>>) {
        (self.users.elsewhere, self.users.meters) = (Some(census), meters);
    }

    /// How the process of `--run` ended; waits for it if the server was stopped first.
    pub fn finish_child(&mut self) -> Option<ExitStatus> {
        self.child.finish()
    }

    /// Why serving ended, if nobody asked for it.
    pub fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    /// Answers those who asked for the stop. Called when the array is closed.
    pub fn say_stopped(&mut self, error: Option<&str>) {
        for client in &mut self.clients {
            if client.wait == Some(Wait::Stop) {
                client.answer(&error.map_or_else(Reply::done, Reply::refused));
            }
        }
        let by = Instant::now() + LAST_WORDS;
        while self.clients.iter().any(Client::is_behind) && Instant::now() < by {
            sleep(LAST_WORDS_RETRY);
            self.clients.iter_mut().for_each(Client::send);
        }
        self.clients.clear();
    }

    fn accept(&mut self) {
        loop {
            let stream = match self.control.listener().accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(_) => {
                    // This process may open no more: who comes waits, or we would be told of him for ever.
                    self.doors.deaf_until = Some(Instant::now() + DEAF);
                    return self.rewatch = true;
                }
            };
            let Ok(mut client) = Client::new(stream) else { continue };
            if self.clients.len() >= CLIENTS_MAX {
                // Some may have left, and nobody has looked yet.
                self.clients.retain(|client| !client.has_left());
            }
            if self.clients.len() >= CLIENTS_MAX {
                let text = format!("{CLIENTS_MAX} commands are connected to this server already; try again");
                client.answer(&Reply::refused(text));
                continue;
            }
            self.clients.push(client);
            self.rewatch = true;
        }
    }

    /// Carries out the complete lines of a client. Who does not read the answers is asked no more questions.
    fn serve_client(&mut self, index: usize, running: &mut Running) {
        while self.clients[index].wait.is_none() && self.clients[index].output.is_empty() {
            let Some(line) = self.clients[index].next_line() else { return };
            let outcome = match serde_json::from_slice::<Request>(&line) {
                Ok(request) => self.carry_out(request, running),
                Err(error) => Err(Error::NotARequest(error)),
            };
            let client = &mut self.clients[index];
            match outcome {
                Ok(Outcome::Answer(reply)) => client.answer(&reply),
                Ok(Outcome::Later(wait)) => client.wait = Some(wait),
                Err(error) => client.answer(&Reply::refused(error.to_string())),
            }
        }
    }

    fn replace(
        &mut self,
        running: &mut Running,
        device: &str,
        path: &Path,
        caution: Caution,
        consent: (Consent, Manner),
    ) -> Result<Outcome, Error> {
        let dev = self.operator.find(running, device)?;
        if !self.operator.replace(running, dev, path, caution, consent)? {
            return Ok(Outcome::Later(Wait::Place(dev)));
        }
        let name = member_name(running.lead().store().main_count(), dev);
        log(&format!("{} becomes what {name} is, which stays in service until then", path.display()));
        Ok(Outcome::Answer(Reply::done()))
    }

    fn online(
        &mut self,
        running: &mut Running,
        device: &str,
        path: Option<PathBuf>,
        full: bool,
    ) -> Result<Outcome, Error> {
        let dev = self.operator.find(running, device)?;
        let path = path.or_else(|| self.operator.device_among(running, dev, &self.stale));
        self.operator.online(running, dev, path, full)?;
        Ok(Outcome::Later(Wait::Place(dev)))
    }

    fn rename(&mut self, running: &mut Running, name: String) -> Result<Outcome, Error> {
        check_name(&name).map_err(Error::Name)?;
        if !running.accepts_writes() {
            return Err(Error::Engine(EngineError::ArrayFailed));
        }
        let tag = running.control(|engine, tag| engine.rename(tag, &name));
        self.note("renamed", &format!("the array is called {name:?} from now on"));
        self.reactions.rename(&name);
        if let Err(error) = self.control.note_name(name) {
            log_record(&error);
        }
        Ok(Outcome::Later(Wait::Tag(tag)))
    }

    fn status(&self, running: &Running) -> Reply {
        let mut status = of_running(running, &self.operator, &self.stale);
        status.uris.clone_from(&self.uris);
        let read_only = self.operator.is_read_only();
        let (clients, requests) = (Some(self.users.count()), Some(self.users.requests()));
        status.clientele = Clientele { clients, requests, read_only, store: self.users.store };
        status.notes.extend(self.users.notes_of_store().map(str::to_owned));
        status.engine.last_ended = self.reactions.last_ended().cloned();
        self.commits.tell(&mut status.engine.commit, &mut status.engine.last_commit_failed);
        self.physician.drives.iter().for_each(|drives| drives.tell(&mut status));
        Reply { status: Some(Box::new(status)), ..Reply::done() }
    }

    fn carry_out(&mut self, request: Request, running: &mut Running) -> Result<Outcome, Error> {
        self.check_may_ask(&request)?;
        match request {
            Request::Status => Ok(Outcome::Answer(self.asked_status(running))),
            Request::Watch => {
                let lately = Some(self.reactions.lately());
                Ok(Outcome::Answer(Reply { lately, ..self.status(running) }))
            }
            Request::Fail { device, force, yes } => {
                let dev = self.operator.find(running, &device)?;
                self.operator.fail(running, dev, Caution::of_flag(force), Consent::of_flag(yes))?;
                Ok(Self::when_known(running))
            }
            Request::Replace { device, path, force, yes, fail_first } => {
                let consent = (Consent::of_flag(yes), Manner::of_flag(fail_first));
                self.replace(running, &device, &path, Caution::of_flag(force), consent)
            }
            Request::CallOff { device } => {
                let dev = self.operator.find(running, &device)?;
                self.operator.call_off(running, dev)?;
                Ok(Outcome::Answer(Reply::done()))
            }
            Request::Online { device, path, full } => self.online(running, &device, path, full),
            Request::AddSpare { path, force } => {
                self.operator.add_spare(running, &path, Caution::of_flag(force))?;
                self.note("spare", &format!("{} is a spare now", path.display()));
                self.note_paths();
                Ok(Outcome::Answer(Reply::done()))
            }
            Request::RemoveSpare { spare } => {
                let path = self.operator.remove_spare(&spare)?;
                self.note("spare", &format!("{} is a spare no more", path.display()));
                self.note_paths();
                Ok(Outcome::Answer(Reply::done()))
            }
            Request::Scrub => {
                Operator::scrub(running)?;
                Ok(Outcome::Answer(Reply::done()))
            }
            Request::Steer { scrub } => {
                let what = Operator::steer(running, scrub)?;
                self.note("scrub", &format!("the scrub {what}"));
                Ok(Outcome::Answer(Reply::done()))
            }
            Request::Rate { bytes_per_s } => {
                running.set_rebuild_rate(bytes_per_s);
                Ok(Outcome::Answer(Reply::done()))
            }
            Request::Clear { device } => self.clear(running, device.as_deref()),
            Request::Rename { name } => self.rename(running, name),
            Request::Grow => self.grow(running),
            Request::Commit { at_once } => Ok(self.commit(running, at_once)),
            Request::SteerCommits { commits } => self.steer_commits(running, commits),
            Request::Checkpoint { full } => {
                let kind = if full { CheckpointKind::Full } else { CheckpointKind::Incremental };
                let tag = running.control(|engine, tag| engine.write_checkpoint(tag, kind));
                Ok(Outcome::Later(Wait::Tag(tag)))
            }
            Request::Belongs { identity, dev, serial } => {
                let (identity, dev) = (Identity::from_numbers(identity), DevIndex::new(dev));
                let original = self.operator.original_of(running, identity, dev, serial);
                Ok(Outcome::Answer(original.map_or_else(Reply::done, Reply::refused)))
            }
            Request::Stop { force } => Ok(Outcome::Later(Wait::StopAsked { force })),
        }
    }

    /// Answered when the other members know that one has failed; at once if it was one too many, and nothing
    /// is written any more.
    fn when_known(running: &mut Running) -> Outcome {
        if !running.accepts_writes() {
            return Outcome::Answer(Reply::done());
        }
        Outcome::Later(Wait::Tag(running.control(|engine, tag| engine.announce(tag))))
    }

    fn answer_waiting(&mut self, running: &mut Running) {
        for done in running.take_control_answers() {
            if self.operator.hears(&done) {
                continue;
            }
            self.report_commit(&done, running);
            let reply = match done.result {
                Ok(()) => Reply::done(),
                Err(error) => Reply::refused(running.named(error).to_string()),
            };
            self.answer(Wait::Tag(done.tag), &reply, running);
        }
    }

    fn answer(&mut self, wait: Wait, reply: &Reply, running: &mut Running) {
        for index in 0..self.clients.len() {
            if self.clients[index].wait == Some(wait) {
                self.clients[index].wait = None;
                self.clients[index].answer(reply);
                self.serve_client(index, running);
                self.rewatch = true;
            }
        }
        self.clients.retain(|client| !client.is_over());
    }

    /// What the operator asked for, or has begun by itself.
    fn note(&mut self, event: &str, message: &str) {
        self.reactions.note(Level::Info, event, "", message);
    }

    /// Keeps the record of this server true.
    fn note_paths(&mut self) {
        self.physician.is_stale = true;
        if let Err(error) = self.control.note_paths(self.operator.all_paths()) {
            log_record(&error);
        }
    }

    /// Stops, or says why not. Not at once when it is asked for: a client may have said goodbye in the same
    /// turn.
    fn decide_stop(&mut self) {
        let connected = self.users.count();
        for client in &mut self.clients {
            let Some(Wait::StopAsked { force }) = client.wait else { continue };
            let user = self.doors.disk.as_ref().and_then(Attendant::user);
            let why = if connected > 0 {
                Some(still_connected(connected))
            } else {
                user.map(|user| opening::still_used(&user))
            };
            match why {
                Some(why) if !force => {
                    client.wait = None;
                    client.answer(&Reply::refused(why));
                    self.rewatch = true;
                }
                Some(_) | None => {
                    client.wait = Some(Wait::Stop);
                    self.stopping = true;
                }
            }
        }
    }

    /// Ends serving because of something that nobody asked for.
    fn give_up(&mut self, error: Error) {
        self.stopping = true;
        if self.failure.is_none() {
            log_as(Level::Error, &format!("stopping: {error}"));
            self.failure = Some(error);
        }
    }

    /// Everything that is to be done from time to time.
    fn look_after(&mut self, running: &mut Running) {
        self.answer_waiting(running);
        let mut events = std::mem::take(&mut self.events);
        self.operator.step(running, &mut events);
        self.events = events;
        self.report(running);
        let reactions = &mut self.reactions;
        self.trouble
            .look(running, &mut |level, device, text| reactions.note(level, "suspended", device, text));
        self.report_errors(running);
        self.name_drives(running);
        if let Some(error) = self.operator.take_failure() {
            self.give_up(error);
        }
    }

    /// Before the array is stopped: a device that is taking over from a member does so to the end, others are
    /// let go.
    pub fn finish_successions(&mut self, plant: &mut Plant) -> Result<(), Error> {
        let mut events = Vec::new();
        for _ in 0..HAND_OVER_LOOKS {
            if !self.operator.is_handing_over() {
                break;
            }
            plant.visit(|running| {
                running.drive();
                self.operator.step(running, &mut events);
            })?;
            sleep(HAND_OVER);
        }
        self.events.append(&mut events);
        plant.visit(|running| {
            self.report(running);
            self.operator.let_successors_go(running)
        })?
    }

    /// In how many nanoseconds from the last look the next is due.
    fn due_in_ns(&self) -> Option<u64> {
        let look = self.trouble.is_waiting().then_some(LOOK_NS);
        let own = self.operator.waits_ns();
        let held_up = self.trouble.stands_still().then_some(standing::LOOK_NS);
        own.into_iter().chain(held_up).chain(look).chain(self.operator.errors_due_in_ns()).min()
    }

    fn take_signals(&mut self) -> Flow {
        for wish in self.signals.take() {
            match wish {
                Wish::Stop(why) => {
                    log(&format!("stopping: {why}"));
                    self.stopping = true;
                }
                Wish::LookAtChild => {
                    self.reactions.reap();
                    self.stopping |= self.child.has_ended();
                }
                Wish::Reload => self.reloading.read_again(),
                Wish::Nothing(signal) => {
                    log(&format!("{} means nothing here; serving goes on", name_of(signal)));
                }
            }
        }
        self.flow()
    }

    fn flow(&mut self) -> Flow {
        // Without an array that can go on there is nothing to wait for.
        let may_stop = self.operator.may_stop() || self.failure.is_some();
        if may_stop && std::mem::take(&mut self.stopping) {
            match self.stop() {
                Flow::Stop => return Flow::Stop,
                Flow::Continue | Flow::Rewatch => {}
            }
        }
        if std::mem::take(&mut self.rewatch) { Flow::Rewatch } else { Flow::Continue }
    }

    fn client_ready(&mut self, index: usize, running: &mut Running) {
        self.clients[index].send();
        self.clients[index].receive();
        self.serve_client(index, running);
        if self.clients[index].is_over() {
            self.clients.remove(index);
        }
        self.rewatch = true;
    }
}

/// Whoever finds the traces of this server may be misled.
fn log_record(error: &io::Error) {
    log_as(Level::Warning, &format!("the record of this server is not up to date any more: {error}"));
}

enum Outcome {
    Answer(Reply),
    Later(Wait),
}

fn as_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn still_connected(count: usize) -> String {
    let clients = if count == 1 { "1 client is".to_owned() } else { format!("{count} clients are") };
    format!(
        "{clients} connected to the volume and would lose it; unmount and disconnect first, or --force to stop all the same"
    )
}

impl Hooks<Plant> for Steward {
    fn extra_fds<'a>(&'a self, out: &mut Vec<(BorrowedFd<'a>, Interest)>) {
        out.extend(self.doors.disk.as_ref().map(|disk| (disk.news_fd(), Interest::Read)));
        out.extend(self.operator.shared_news().map(|news| (news, Interest::Read)));
        out.push((self.signals.as_fd(), Interest::Read));
        if self.trouble.stands_still() {
            return; // the array cannot be looked at for others now
        }
        out.extend(self.physician.drives.as_ref().map(|drives| (drives.news_fd(), Interest::Read)));
        if self.doors.deaf_until.is_none() {
            out.push((self.control.listener().as_fd(), Interest::Read));
        }
        for client in &self.clients {
            out.extend(client.interest().map(|interest| (client.stream.as_fd(), interest)));
        }
    }

    fn on_ready(&mut self, fd: RawFd, plant: &mut Plant) -> Flow {
        if fd == self.signals.as_fd().as_raw_fd() {
            return self.take_signals();
        }
        if self.doors.disk.as_ref().is_some_and(|disk| disk.news_fd().as_raw_fd() == fd) {
            return self.look_at_disk();
        }
        if self.is_of_drives(fd) {
            self.visit(plant, |steward, running| steward.hear_drives(running));
            return self.flow();
        }
        if self.operator.take_shared_news(fd) {
            self.look_at = None;
            return self.flow();
        }
        if fd == self.control.listener().as_raw_fd() {
            self.accept();
        } else if let Some(index) = self.clients.iter().position(|client| client.stream.as_raw_fd() == fd) {
            self.visit(plant, |steward, running| steward.client_ready(index, running));
        }
        self.flow()
    }

    fn on_turn(&mut self, plant: &mut Plant) -> Flow {
        self.watchdog.iter_mut().for_each(Watchdog::look);
        if self.doors.deaf_until.is_some_and(|until| Instant::now() >= until) {
            self.doors.deaf_until = None;
            self.rewatch = true;
        }
        self.pass_rate_on(plant);
        if plant.has_news() || self.look_at.is_none_or(|at| Instant::now() >= at) {
            self.visit(plant, Self::look_after);
            let soon = self.due_in_ns().map_or(REST, Duration::from_nanos);
            self.look_at = Some(Instant::now() + soon);
        }
        if self.users.has_lost_a_thread() {
            self.give_up(Error::SocketThread);
        }
        self.decide_stop();
        self.flow()
    }

    fn on_clients(&mut self, count: usize) {
        self.users.here = count;
    }

    fn idle_for(&self) -> Option<u64> {
        match self.look_at {
            // The first turn finds members out of service that a spare can take the place of, and nothing
            // else wakes it.
            None => Some(0),
            Some(_) => {
                let deaf = self.doors.deaf_until.map(|_| as_ns(DEAF));
                let watchdog = self.watchdog.as_ref().map(Watchdog::due_in_ns);
                self.due_in_ns().into_iter().chain(watchdog).chain(deaf).min()
            }
        }
    }

    fn on_fault(&mut self, peer: &str, fault: &Fault) {
        log(&format!("client {peer}: {fault}"));
    }
}
