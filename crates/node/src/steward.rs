//! The server's side of everything but block I/O: signals, the control socket, the command of `--run`,
//! spares, and the log.

use crate::checks::{Caution, Consent};
use crate::control::{LINE_BYTES_MAX, Reply, Request};
use crate::error::Error;
use crate::event::{Event, describe_lost_page, work_name};
use crate::faults::describe_cause;
use crate::logbook::{Level, log, log_as};
use crate::open::member_name;
use crate::operate::Operator;
use crate::reactions::Reactions;
use crate::registry::ControlSocket;
use crate::running::{Plant, Running};
use crate::signals::{Signals, Wish, name_of};
use crate::sockets::Census;
use crate::status::{Clientele, LastScrub, Requests, of_running};
use crate::trouble::TroubleLog;
use crate::units::show_seconds;
use crate::watch::describe_unfit;
use array::{MaintenanceReport, WorkKind};
use block::DevIndex;
use device::Identity;
use format::CheckpointKind;
use front::{Fault, Flow, Hooks, Interest, Meter};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Control connections at a time.
const CLIENTS_MAX: usize = 32;

/// How long the array is left alone at most, if its threads tell of nothing and somebody wakes this one.
const REST: Duration = Duration::from_secs(1);

/// How often the log looks at members in trouble.
const LOOK_NS: u64 = 1_000_000_000;

/// A control connection.
struct Client {
    stream: UnixStream,
    input: Vec<u8>,
    output: Vec<u8>,
    /// What the present request waits for; no other is read meanwhile.
    wait: Option<Wait>,
    /// It will send nothing more.
    ended: bool,
    /// It is of no use any more.
    broken: bool,
}

/// What an answer waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    /// A control request of the engine.
    Tag(u64),
    /// A replacement taking this place.
    Place(DevIndex),
    /// The end of serving, if no clients are connected when this turn is over, or whatever they do.
    StopAsked {
        /// Whatever they do.
        force: bool,
    },
    /// The end of serving.
    Stop,
}

/// See the module's documentation.
pub struct Steward {
    signals: Signals,
    control: ControlSocket,
    clients: Vec<Client>,
    operator: Operator,
    stale: Vec<PathBuf>,
    uris: Vec<String>,
    child: Option<Child>,
    child_exit: Option<ExitStatus>,
    events: Vec<Event>,
    reactions: Reactions,
    rewatch: bool,
    /// When to look after the array if nothing happens; `None` before the first time.
    look_at: Option<Instant>,
    /// Why serving ended.
    failure: Option<Error>,
    stopping: bool,
    /// Clients of the volume on this thread, and who knows of those on others.
    connected: usize,
    elsewhere: Option<Arc<Census>>,
    /// What they ask for, of each thread that serves them.
    meters: Vec<Arc<Meter>>,
    trouble: TroubleLog,
}

impl Steward {
    /// A steward of an array whose clients find it at `uris`.
    pub fn new(
        signals: Signals,
        control: ControlSocket,
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
            child: None,
            child_exit: None,
            events: Vec::new(),
            reactions,
            rewatch: false,
            look_at: None,
            failure: None,
            stopping: false,
            connected: 0,
            elsewhere: None,
            meters: Vec::new(),
            trouble: TroubleLog::default(),
        }
    }

    /// Clients are on this thread.
    pub fn watch_own_clients(&mut self, meter: Arc<Meter>) {
        self.meters = vec![meter];
    }

    /// Clients are on other threads.
    pub fn watch_clients(&mut self, census: Arc<Census>, meters: Vec<Arc<Meter>>) {
        (self.elsewhere, self.meters) = (Some(census), meters);
    }

    /// Clients of the volume.
    fn connected(&self) -> usize {
        self.connected + self.elsewhere.as_ref().map_or(0, |census| census.total())
    }

    /// Serve until this process ends.
    pub fn watch_child(&mut self, child: Child) {
        self.child = Some(child);
    }

    /// How the process of `--run` ended; waits for it if the server was stopped first.
    pub fn finish_child(&mut self) -> Option<ExitStatus> {
        if let Some(mut child) = self.child.take() {
            if let Some(pid) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
                // It may have ended by itself already.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            self.child_exit = child.wait().ok();
        }
        self.child_exit
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
                let _ = client.stream.set_nonblocking(false);
                let _ = client.stream.write_all(&client.output);
            }
        }
        self.clients.clear();
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.control.listener().accept() {
            if self.clients.len() < CLIENTS_MAX && stream.set_nonblocking(true).is_ok() {
                let (input, output) = (Vec::new(), Vec::new());
                self.clients.push(Client { stream, input, output, wait: None, ended: false, broken: false });
                self.rewatch = true;
            }
        }
    }

    /// Carries out the complete lines of a client. Who does not read the answers is asked no more questions.
    fn serve_client(&mut self, index: usize, running: &mut Running) {
        while self.clients[index].wait.is_none() && self.clients[index].output.is_empty() {
            let Some(line) = self.clients[index].next_line() else { return };
            let request = serde_json::from_slice::<Request>(&line);
            let outcome = match request {
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

    fn online(
        &mut self,
        running: &mut Running,
        device: &str,
        path: Option<PathBuf>,
        full: bool,
    ) -> Result<Outcome, Error> {
        let dev = self.operator.find(running, device)?;
        self.operator.online(running, dev, path, full)?;
        Ok(Outcome::Later(Wait::Place(dev)))
    }

    fn carry_out(&mut self, request: Request, running: &mut Running) -> Result<Outcome, Error> {
        match request {
            Request::Status => {
                let mut status = of_running(running, &self.operator, &self.stale);
                status.uris.clone_from(&self.uris);
                let requests = Some(Requests::read(&self.meters));
                status.clientele = Clientele { clients: Some(self.connected()), requests };
                Ok(Outcome::Answer(Reply { error: None, status: Some(Box::new(status)) }))
            }
            Request::Fail { device, force, yes } => {
                let dev = self.operator.find(running, &device)?;
                self.operator.fail(running, dev, Caution::of_flag(force), Consent::of_flag(yes))?;
                if !running.accepts_writes() {
                    // It was one too many, and nothing is written any more.
                    return Ok(Outcome::Answer(Reply::done()));
                }
                // Answered when the other members know.
                Ok(Outcome::Later(Wait::Tag(running.control(|engine, tag| engine.announce(tag)))))
            }
            Request::Replace { device, path, force, yes } => {
                let dev = self.operator.find(running, &device)?;
                let (caution, consent) = (Caution::of_flag(force), Consent::of_flag(yes));
                self.operator.replace(running, dev, &path, caution, consent)?;
                Ok(Outcome::Later(Wait::Place(dev)))
            }
            Request::Online { device, path, full } => self.online(running, &device, path, full),
            Request::AddSpare { path, force } => {
                self.operator.add_spare(running, &path, Caution::of_flag(force))?;
                log(&format!("{} is a spare now", path.display()));
                self.note_paths();
                Ok(Outcome::Answer(Reply::done()))
            }
            Request::RemoveSpare { spare } => {
                let path = self.operator.remove_spare(&spare)?;
                log(&format!("{} is a spare no more", path.display()));
                self.note_paths();
                Ok(Outcome::Answer(Reply::done()))
            }
            Request::Scrub => {
                Operator::scrub(running)?;
                Ok(Outcome::Answer(Reply::done()))
            }
            Request::Steer { scrub } => {
                let what = Operator::steer(running, scrub)?;
                log(&format!("the scrub {what}"));
                Ok(Outcome::Answer(Reply::done()))
            }
            Request::Rate { bytes_per_s } => {
                running.set_rebuild_rate(bytes_per_s);
                Ok(Outcome::Answer(Reply::done()))
            }
            Request::Clear { device } => {
                let dev = device.map(|device| self.operator.find(running, &device)).transpose()?;
                Ok(Outcome::Later(Wait::Tag(running.control(|engine, tag| engine.clear_errors(tag, dev)))))
            }
            Request::Commit => {
                Ok(Outcome::Later(Wait::Tag(running.control(|engine, tag| engine.commit(tag)))))
            }
            Request::Checkpoint { full } => {
                let kind = if full { CheckpointKind::Full } else { CheckpointKind::Incremental };
                Ok(Outcome::Later(Wait::Tag(
                    running.control(|engine, tag| engine.write_checkpoint(tag, kind)),
                )))
            }
            Request::Belongs { identity, dev, serial } => {
                let identity = Identity::from_numbers(identity);
                match self.operator.original_of(running, identity, DevIndex::new(dev), serial) {
                    None => Ok(Outcome::Answer(Reply::done())),
                    Some(original) => Ok(Outcome::Answer(Reply::refused(original))),
                }
            }
            Request::Stop { force } => Ok(Outcome::Later(Wait::StopAsked { force })),
        }
    }

    fn answer_waiting(&mut self, running: &mut Running) {
        for done in running.take_control_answers() {
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

    /// Keeps the record of this server true.
    fn note_paths(&mut self) {
        if let Err(error) = self.control.note_paths(self.operator.all_paths()) {
            log_as(Level::Warning, &format!("the record of this server is not up to date any more: {error}"));
        }
    }

    fn report(&mut self, running: &mut Running) {
        let main_count = running.lead().store().main_count();
        let name = |dev: DevIndex| member_name(main_count, dev);
        for event in std::mem::take(&mut self.events) {
            let missing = running.missing_count();
            match event {
                Event::Failed { dev, cause } => {
                    let bears = running.lead().health().tolerated();
                    let why = describe_cause(cause, running.now_ns());
                    let text = format!(
                        "{} failed{why}; {missing} out of service, the array bears {bears}",
                        name(dev)
                    );
                    self.reactions.tell(Level::Warning, "failed", &name(dev), &text);
                }
                Event::PageLost(page) => {
                    self.reactions.tell(Level::Error, "lost", "", &describe_lost_page(page));
                }
                Event::Replaced { dev, path } => {
                    let text = format!("{} takes the place of {}; rebuilding", path.display(), name(dev));
                    self.reactions.tell(Level::Info, "replaced", &name(dev), &text);
                    self.note_paths();
                    self.answer(Wait::Place(dev), &Reply::done(), running);
                }
                Event::CameBack { dev, path } => {
                    let text =
                        format!("{} is {} again; rebuilding what it missed", path.display(), name(dev));
                    self.reactions.tell(Level::Info, "online", &name(dev), &text);
                    self.note_paths();
                    self.answer(Wait::Place(dev), &Reply::done(), running);
                }
                Event::NotReplaced { dev, path, why } => {
                    let text = format!("{} cannot take the place of {}: {why}", path.display(), name(dev));
                    self.reactions.tell(Level::Error, "not-replaced", &name(dev), &text);
                    self.answer(Wait::Place(dev), &Reply::refused(why), running);
                }
                Event::Rebuilt(dev) => {
                    let text = format!("{} is rebuilt", name(dev));
                    self.reactions.tell(Level::Info, "rebuilt", &name(dev), &text);
                }
                Event::Unfit { dev, why, failed } => {
                    let path = self.operator.paths()[dev.index()].as_ref();
                    let text = describe_unfit(&name(dev), path, why, failed);
                    self.reactions.tell(Level::Error, "unfit", &name(dev), &text);
                }
                Event::HeldUp { dev, why } => self.trouble.note(dev, why, true),
                Event::HoldUpEnded { dev, why } => self.trouble.note(dev, why, false),
                Event::WorkBegan { kind, resumed } => {
                    log(&describe_begin(kind, resumed, running.rebuilt_percent()));
                }
                Event::WorkEnded { kind, found, seconds } => {
                    let text = describe_end(kind, &found, seconds);
                    if found.errors_left() > 0 {
                        let (lost, mismatches) = (found.lost, found.code_mismatches);
                        let what = format!(
                            "{lost} code words are lost, {mismatches} stripes had parity that did not match"
                        );
                        self.reactions.tell(Level::Error, "lost", "", &format!("{text}; {what}"));
                    } else {
                        self.reactions.tell(Level::Info, work_name(kind), "", &text);
                    }
                }
            }
        }
    }

    /// Tells of the members' errors, now and then.
    fn report_errors(&mut self, running: &Running) {
        for (device, text) in self.operator.error_lines(running) {
            self.reactions.tell(Level::Warning, "checksum-errors", &device, &text);
        }
    }

    /// Stops, or says why not. Not at once when it is asked for: a client may have said goodbye in the same
    /// turn.
    fn decide_stop(&mut self) {
        let connected = self.connected();
        for client in &mut self.clients {
            let Some(Wait::StopAsked { force }) = client.wait else { continue };
            if connected == 0 || force {
                client.wait = Some(Wait::Stop);
                self.stopping = true;
            } else {
                client.wait = None;
                client.answer(&Reply::refused(still_connected(connected)));
                self.rewatch = true;
            }
        }
    }

    /// Does something with the array. If a thread that runs part of it is gone, serving ends.
    fn visit(&mut self, plant: &mut Plant, look: impl FnOnce(&mut Self, &mut Running)) {
        if let Err(error) = plant.visit(|running| look(self, running)) {
            self.give_up(error);
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
        self.trouble.look(running);
        self.report_errors(running);
    }

    /// In how many nanoseconds from the last look the next is due.
    fn due_in_ns(&self) -> Option<u64> {
        let look = self.trouble.is_waiting().then_some(LOOK_NS);
        let own = self.operator.is_waiting().then_some(1_000_000);
        own.into_iter().chain(look).chain(self.operator.errors_due_in_ns()).min()
    }

    fn take_signals(&mut self) -> Flow {
        let mut flow = Flow::Continue;
        for wish in self.signals.take() {
            match wish {
                Wish::Stop(why) => {
                    log(&format!("stopping: {why}"));
                    flow = Flow::Stop;
                }
                Wish::LookAtChild => {
                    self.reactions.reap();
                    if let Some(exit) = self.child.as_mut().and_then(|child| child.try_wait().ok()).flatten()
                    {
                        self.child = None;
                        self.child_exit = Some(exit);
                        flow = Flow::Stop;
                    }
                }
                Wish::Nothing(signal) => {
                    log(&format!("{} means nothing here; serving goes on", name_of(signal)));
                }
            }
        }
        flow
    }

    fn flow(&mut self) -> Flow {
        if std::mem::take(&mut self.stopping) {
            return Flow::Stop;
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

/// That work on the whole array begins; of so many percent of it a rebuild finds its part done.
fn describe_begin(kind: WorkKind, resumed: bool, percent: u64) -> String {
    match (kind, resumed) {
        (WorkKind::Scrub, false) => "scrub begins".to_owned(),
        (WorkKind::Scrub, true) => "scrub goes on where it was interrupted".to_owned(),
        (WorkKind::Rebuild, false) => "rebuild begins".to_owned(),
        (WorkKind::Rebuild, true) => format!("rebuild goes on after the restart, at {percent} %"),
    }
}

/// What came of it.
fn describe_end(kind: WorkKind, found: &MaintenanceReport, seconds: u64) -> String {
    // Whoever found what cannot be mended says so, and need not have come to the end for it.
    let ended = found.completed || found.errors_left() > 0;
    match kind {
        WorkKind::Scrub => LastScrub::of_report(found, seconds, ended).line(),
        WorkKind::Rebuild if ended => {
            format!("rebuild ended after {} with {} errors left", show_seconds(seconds), found.errors_left())
        }
        WorkKind::Rebuild => format!("rebuild was given up after {}", show_seconds(seconds)),
    }
}

enum Outcome {
    Answer(Reply),
    Later(Wait),
}

impl Client {
    fn answer(&mut self, reply: &Reply) {
        match serde_json::to_vec(reply) {
            Ok(line) => self.output.extend(line),
            Err(_) => self.broken = true,
        }
        self.output.push(b'\n');
        self.send();
    }

    fn next_line(&mut self) -> Option<Vec<u8>> {
        let end = self.input.iter().position(|&byte| byte == b'\n')?;
        let rest = self.input.split_off(end + 1);
        Some(std::mem::replace(&mut self.input, rest))
    }

    /// Whether there is nothing left to be done for it.
    fn is_over(&self) -> bool {
        self.broken || (self.ended && self.wait.is_none() && self.output.is_empty())
    }

    /// What the client is waited for; nothing while it waits for us.
    fn interest(&self) -> Option<Interest> {
        match (self.ended, self.output.is_empty()) {
            (false, true) => Some(Interest::Read),
            (false, false) => Some(Interest::ReadWrite),
            (true, false) => Some(Interest::Write),
            (true, true) => None,
        }
    }

    /// Receives what has come.
    fn receive(&mut self) {
        let mut bytes = [0u8; 4096];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return self.ended = true,
                Ok(count) if self.input.len() + count <= LINE_BYTES_MAX => self.input.extend(&bytes[..count]),
                Ok(_) => return self.broken = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.broken = true,
            }
        }
    }

    /// Sends what the socket takes now.
    fn send(&mut self) {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) if count > 0 => drop(self.output.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => return self.broken = true,
            }
        }
    }
}

fn still_connected(count: usize) -> String {
    let clients = if count == 1 { "1 client is".to_owned() } else { format!("{count} clients are") };
    format!(
        "{clients} connected to the volume and would lose it; unmount and disconnect first, or --force to stop all the same"
    )
}

impl Hooks<Plant> for Steward {
    fn extra_fds<'a>(&'a self, out: &mut Vec<(BorrowedFd<'a>, Interest)>) {
        out.push((self.signals.as_fd(), Interest::Read));
        out.push((self.control.listener().as_fd(), Interest::Read));
        for client in &self.clients {
            out.extend(client.interest().map(|interest| (client.stream.as_fd(), interest)));
        }
    }

    fn on_ready(&mut self, fd: RawFd, plant: &mut Plant) -> Flow {
        if fd == self.signals.as_fd().as_raw_fd() {
            return self.take_signals();
        }
        if fd == self.control.listener().as_raw_fd() {
            self.accept();
        } else if let Some(index) = self.clients.iter().position(|client| client.stream.as_raw_fd() == fd) {
            self.visit(plant, |steward, running| steward.client_ready(index, running));
        }
        self.flow()
    }

    fn on_turn(&mut self, plant: &mut Plant) -> Flow {
        if plant.has_news() || self.look_at.is_none_or(|at| Instant::now() >= at) {
            self.visit(plant, Self::look_after);
            let soon = self.due_in_ns().map_or(REST, Duration::from_nanos);
            self.look_at = Some(Instant::now() + soon);
        }
        if self.elsewhere.as_ref().is_some_and(|census| census.has_lost_a_thread()) {
            self.give_up(Error::SocketThread);
        }
        self.decide_stop();
        self.flow()
    }

    fn on_clients(&mut self, count: usize) {
        self.connected = count;
    }

    fn idle_for(&self) -> Option<u64> {
        match self.look_at {
            // The first turn finds members out of service that a spare can take the place of, and nothing
            // else wakes it.
            None => Some(0),
            Some(_) => self.due_in_ns(),
        }
    }

    fn on_fault(&mut self, peer: &str, fault: &Fault) {
        log(&format!("client {peer}: {fault}"));
    }
}
