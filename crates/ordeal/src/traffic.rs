//! Clients of a served array: each connection sends bursts of requests and waits for all answers of a
//! burst. Nothing else wakes the server in between, so a request that is forgotten stays forgotten until it
//! is found out.

use crate::canary::Canary;
use crate::ledger::{Change, Instant as Tick, Ledger, Promise, SECTOR, Version};
use crate::nbd::{self, Command, Deadline, Received, Receiver, Reply, Request, Sender};
use crate::rng::Rng;
use crate::verdict::{Check, Verdict};
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What all connections of a server share.
pub struct Shared {
    /// What the volume may hold.
    pub ledger: Mutex<Ledger>,
    /// What the array is like, as far as requests are drawn by it.
    pub manner: Manner,
    /// The first thing that was found wrong.
    verdict: Mutex<Option<Verdict>>,
    /// The server is being ended by the harness: connections may break and requests stay unanswered.
    ending: AtomicBool,
    /// Errors are allowed: more was damaged than the array bears.
    lenient: AtomicBool,
}

/// See [`Shared`].
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Sectors of a chunk.
    pub chunk_sectors: u64,
    /// Data chunks of a stripe.
    pub data_count: u64,
    /// An answered write is durable without a flush.
    pub durable_writes: bool,
    /// How long a request may take.
    pub patience: Duration,
    /// What the harness lies about, to see whether it is found out.
    pub canary: Option<Canary>,
    /// Whether there are discards.
    pub discards: bool,
}

/// A poisoned lock belongs to a thread that panicked; its round fails anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// For one server.
    pub fn new(ledger: Ledger, manner: Manner) -> Arc<Self> {
        Arc::new(Self {
            ledger: Mutex::new(ledger),
            manner,
            verdict: Mutex::new(None),
            ending: AtomicBool::new(false),
            lenient: AtomicBool::new(false),
        })
    }

    /// The ledger.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.ledger)
    }

    /// From now on connections may break.
    pub fn set_ending(&self, ending: bool) {
        self.ending.store(ending, Ordering::SeqCst);
    }

    /// Whether errors are allowed from now on.
    pub fn set_lenient(&self, lenient: bool) {
        self.lenient.store(lenient, Ordering::SeqCst);
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    fn is_lenient(&self) -> bool {
        self.lenient.load(Ordering::SeqCst)
    }

    fn find(&self, verdict: Verdict) {
        lock(&self.verdict).get_or_insert(verdict);
    }

    /// What was found wrong so far.
    pub fn verdict(&self) -> Result<(), Verdict> {
        lock(&self.verdict).clone().map_or(Ok(()), Err)
    }
}

/// A request without an answer yet.
struct Pending {
    request: Request,
    version: Option<Version>,
    sent: Tick,
    since: Instant,
}

/// What the two halves of a connection share.
struct Lane {
    shared: Arc<Shared>,
    pending: Mutex<HashMap<u64, Pending>>,
    answered: Condvar,
    closed: AtomicBool,
}

/// Starts a connection that sends some requests. It ends with the last answer, or with the server.
pub fn start(shared: &Arc<Shared>, socket: &Path, rng: Rng, requests: u64) -> JoinHandle<()> {
    let (shared, socket): (Arc<Shared>, PathBuf) = (Arc::clone(shared), socket.to_owned());
    thread::spawn(move || {
        if let Err(error) = drive(&shared, &socket, rng, requests)
            && !shared.is_ending()
        {
            shared.find(Verdict::new(Check::Lost, format!("a connection broke: {error}")));
        }
    })
}

fn drive(shared: &Arc<Shared>, socket: &Path, rng: Rng, requests: u64) -> io::Result<()> {
    let (sender, receiver, size_bytes) = nbd::connect(socket, shared.manner.patience)?;
    let sector_count = shared.ledger().sector_count();
    if size_bytes != sector_count * SECTOR as u64 {
        shared.find(Verdict::new(Check::WrongData, format!("the volume has {size_bytes} bytes")));
        return Ok(());
    }
    let lane = Lane {
        shared: Arc::clone(shared),
        pending: Mutex::new(HashMap::new()),
        answered: Condvar::new(),
        closed: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        let receiving = scope.spawn(|| lane.receive(receiver));
        let mut client = Client { lane: &lane, sender, rng, next_cookie: 1, sent_writes: 0 };
        let sent = client.send_bursts(requests);
        client.sender.close();
        let received = receiving.join().unwrap_or_else(|_| Err(io::Error::other("a receiver panicked")));
        if lane.closed.load(Ordering::SeqCst) && !shared.is_ending() && shared.verdict().is_ok() {
            shared.find(Verdict::new(Check::Lost, "the server closed a connection"));
        }
        sent.and(received)
    })
}

impl Lane {
    fn receive(&self, mut receiver: Receiver) -> io::Result<()> {
        loop {
            let bytes = |cookie| {
                lock(&self.pending).get(&cookie).map_or(0, |pending| match pending.request.command {
                    Command::Read => pending.request.length as usize,
                    Command::Write | Command::Flush | Command::Trim | Command::WriteZeroes => 0,
                })
            };
            match receiver.receive(bytes) {
                Ok(Received::Reply(reply)) => self.take(reply),
                Ok(Received::Nothing) => {}
                Ok(Received::Closed) | Err(_) => {
                    let left = !lock(&self.pending).is_empty();
                    self.closed.store(left, Ordering::SeqCst);
                    self.answered.notify_all();
                    return Ok(());
                }
            }
        }
    }

    fn take(&self, mut reply: Reply) {
        let Some(pending) = lock(&self.pending).remove(&reply.cookie) else {
            return self.shared.find(Verdict::new(Check::WrongData, "a reply to no request"));
        };
        let shared = &self.shared;
        if reply.error != 0 {
            if let Some(version) = pending.version {
                shared.ledger().refused(version);
            }
            if !shared.is_lenient() && !shared.is_ending() {
                let what = format!("{} was answered with error {}", show(&pending.request), reply.error);
                shared.find(Verdict::new(Check::NeedlessError, what));
            }
        } else if pending.request.command == Command::Read {
            if shared.manner.canary == Some(Canary::FlippedBit) && reply.data[0] != 0 {
                reply.data[17] ^= 4;
            }
            let first = pending.request.offset / SECTOR as u64;
            if let Err(wrong) = shared.ledger().check_read(first, &reply.data, pending.sent) {
                shared.find(wrong.into());
            }
        } else if let Some(version) = pending.version {
            let request = &pending.request;
            let durable = request.fua || (shared.manner.durable_writes && request.command == Command::Write);
            shared.ledger().answered(version, durable);
        } else {
            shared.ledger().flushed(pending.sent);
        }
        self.answered.notify_all();
    }
}

fn show(request: &Request) -> String {
    let Request { command, fua, offset, length } = *request;
    let fua = if fua { " FUA" } else { "" };
    format!("{command:?}{fua} of {length} bytes at {offset}")
}

/// The sending half.
struct Client<'a> {
    lane: &'a Lane,
    sender: Sender,
    rng: Rng,
    next_cookie: u64,
    sent_writes: u64,
}

impl Client<'_> {
    fn send_bursts(&mut self, requests: u64) -> io::Result<()> {
        let mut left = requests;
        while left > 0 && !self.is_over() {
            let sent = if self.lane.shared.manner.discards && self.rng.percent(20) {
                self.write_then_discard()?
            } else {
                self.burst()?
            };
            left = left.saturating_sub(sent);
            self.await_answers();
            if self.rng.percent(20) {
                thread::sleep(Duration::from_micros(self.rng.below(4000)));
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.lane.closed.load(Ordering::SeqCst)
            || self.lane.shared.is_ending()
            || self.lane.shared.verdict().is_err()
    }

    /// Some requests to a small area, so that they meet.
    fn burst(&mut self) -> io::Result<u64> {
        let manner = self.lane.shared.manner;
        let stripe = manner.chunk_sectors * manner.data_count;
        let sector_count = self.lane.shared.ledger().sector_count();
        let stripes = (sector_count / stripe).max(1);
        // Half of all bursts go to the first stripes, so that there are updates and not only new writes.
        let hot = if self.rng.percent(50) { stripes.min(16) } else { stripes };
        let start = self.rng.below(hot) * stripe;
        let area = start..(start + stripe * self.rng.between(1, 6)).min(sector_count);
        let count = self.rng.between(1, 20);
        for _ in 0..count {
            let request = self.draw(&area);
            self.send(request)?;
            self.pause();
        }
        Ok(count)
    }

    /// A write of the first half of a stripe, and at once a discard of the other half.
    fn write_then_discard(&mut self) -> io::Result<u64> {
        let manner = self.lane.shared.manner;
        let stripe = manner.chunk_sectors * manner.data_count;
        let stripes = (self.lane.shared.ledger().sector_count() / stripe).max(1);
        let start = self.rng.below(stripes.min(64)) * stripe;
        let half = manner.chunk_sectors * (manner.data_count / 2).max(1);
        let change = |command, sectors: Range<u64>| make(command, false, &sectors);
        self.send(change(Command::Write, start..start + half))?;
        thread::sleep(Duration::from_micros(self.rng.below(600)));
        let discard = *self.rng.pick(&[Command::Trim, Command::WriteZeroes]);
        if half < stripe {
            self.send(change(discard, start + half..start + stripe))?;
        }
        Ok(2)
    }

    fn pause(&mut self) {
        if self.rng.percent(15) {
            let most = if self.rng.percent(80) { 600 } else { 3000 };
            thread::sleep(Duration::from_micros(self.rng.below(most)));
        }
    }

    fn draw(&mut self, area: &Range<u64>) -> Request {
        let rng = &mut self.rng;
        let command = match rng.below(100) {
            0..45 => Command::Write,
            45..65 => Command::Read,
            65..75 => Command::Flush,
            _ if !self.lane.shared.manner.discards => Command::Write,
            75..88 => Command::Trim,
            _ => Command::WriteZeroes,
        };
        let chunk = self.lane.shared.manner.chunk_sectors;
        let length = area.end - area.start;
        let (first, count) = match rng.below(10) {
            // Within a chunk, at any sector.
            0..3 => (rng.below(length), rng.between(1, chunk)),
            // Whole chunks.
            3..8 => (rng.below(length) / chunk * chunk, chunk * rng.between(1, 4)),
            // The whole area, or as much as a request should have.
            _ => (0, length),
        };
        let first = area.start + first;
        let end = (first + count.min(512)).min(area.end);
        let fua = command != Command::Read && command != Command::Flush && rng.percent(10);
        make(command, fua, &(first..end))
    }

    fn send(&mut self, request: Request) -> io::Result<()> {
        let sectors =
            request.offset / SECTOR as u64..(request.offset + u64::from(request.length)) / SECTOR as u64;
        let change = match request.command {
            Command::Read | Command::Flush => None,
            Command::Write => Some(Change::Data),
            Command::Trim | Command::WriteZeroes => Some(Change::Zeros),
        };
        let mut ledger = self.lane.shared.ledger();
        let (mut version, mut payload) = (None, Vec::new());
        if let Some(change) = change {
            let Some(begun) = ledger.begin(sectors, change) else { return Ok(()) };
            if change == Change::Data {
                payload = ledger.payload(begun);
            }
            version = Some(begun);
        }
        let sent = ledger.now();
        drop(ledger);
        let cookie = self.next_cookie;
        self.next_cookie += 1;
        if request.command == Command::Write {
            self.sent_writes += 1;
        }
        let nth = self.sent_writes == 3 && request.command == Command::Write;
        let lie = self.lane.shared.manner.canary.filter(|_| nth);
        if let (Some(Canary::LostWrite), Some(version)) = (lie, version) {
            self.lane.shared.ledger().answered(version, true);
            return Ok(());
        }
        let pending = Pending { request, version, sent, since: Instant::now() };
        lock(&self.lane.pending).insert(cookie, pending);
        if lie == Some(Canary::LostRequest) {
            return Ok(());
        }
        let bare =
            Request { length: if request.command == Command::Flush { 0 } else { request.length }, ..request };
        let offset = if request.command == Command::Flush { 0 } else { request.offset };
        self.sender.send(cookie, Request { offset, ..bare }, &payload)
    }

    /// Waits until nothing is pending. What takes too long is a hang.
    fn await_answers(&self) {
        let shared = &self.lane.shared;
        let mut pending = lock(&self.lane.pending);
        while !pending.is_empty() {
            if self.lane.closed.load(Ordering::SeqCst) || shared.verdict().is_err() {
                return;
            }
            let oldest = pending.values().min_by_key(|pending| pending.since);
            if let Some(oldest) = oldest.filter(|oldest| oldest.since.elapsed() > shared.manner.patience) {
                let what = format!(
                    "{} was not answered within {} s; {} requests wait",
                    show(&oldest.request),
                    shared.manner.patience.as_secs(),
                    pending.len()
                );
                return shared.find(Verdict::new(Check::Hang, what));
            }
            let waited = self.lane.answered.wait_timeout(pending, Duration::from_millis(20));
            pending = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn make(command: Command, fua: bool, sectors: &Range<u64>) -> Request {
    let length = u32::try_from((sectors.end - sectors.start) * SECTOR as u64).expect("a request is small");
    Request { command, fua, offset: sectors.start * SECTOR as u64, length }
}

/// Reads the whole volume and holds it to the ledger. The answer is how many sectors could not be read.
pub fn read_all(shared: &Shared, socket: &Path, promise: Promise) -> Result<u64, Verdict> {
    let manner = shared.manner;
    let (mut sender, mut receiver, _) = nbd::connect(socket, manner.patience).map_err(|error| {
        Verdict::new(Check::Lost, format!("connecting to a server that is ready: {error}"))
    })?;
    let stripe = manner.chunk_sectors * manner.data_count;
    let piece = stripe * (256 / stripe).max(1);
    let sector_count = shared.ledger().sector_count();
    let mut unread = 0;
    for first in (0..sector_count).step_by(usize::try_from(piece).unwrap_or(1)) {
        let sectors = first..(first + piece).min(sector_count);
        let outcome = read(&mut sender, &mut receiver, &sectors, manner.patience)?;
        let Err(error) = anchor(shared, &sectors, outcome, promise)? else { continue };
        if !shared.is_lenient() {
            let what = format!("sectors {sectors:?} cannot be read: error {error}");
            return Err(Verdict::new(Check::NeedlessError, what));
        }
        for first in sectors.clone().step_by(usize::try_from(manner.chunk_sectors).unwrap_or(1)) {
            let chunk = first..(first + manner.chunk_sectors).min(sectors.end);
            let outcome = read(&mut sender, &mut receiver, &chunk, manner.patience)?;
            if anchor(shared, &chunk, outcome, promise)?.is_err() {
                unread += chunk.end - chunk.start;
            }
        }
    }
    sender.close();
    Ok(unread)
}

fn anchor(
    shared: &Shared,
    sectors: &Range<u64>,
    outcome: Result<Vec<u8>, u32>,
    promise: Promise,
) -> Result<Result<(), u32>, Verdict> {
    match outcome {
        Ok(bytes) => Ok(Ok(shared.ledger().anchor(sectors.start, &bytes, promise)?)),
        Err(error) => Ok(Err(error)),
    }
}

fn read(
    sender: &mut Sender,
    receiver: &mut Receiver,
    sectors: &Range<u64>,
    patience: Duration,
) -> Result<Result<Vec<u8>, u32>, Verdict> {
    let request = make(Command::Read, false, sectors);
    let broke = |what: &str| Verdict::new(Check::Lost, format!("{}: {what}", show(&request)));
    sender.send(sectors.start, request, &[]).map_err(|error| broke(&error.to_string()))?;
    let deadline = Deadline::after(patience);
    loop {
        match receiver.receive(|_| request.length as usize).map_err(|error| broke(&error.to_string()))? {
            Received::Reply(Reply { error: 0, data, .. }) => return Ok(Ok(data)),
            Received::Reply(Reply { error, .. }) => return Ok(Err(error)),
            Received::Closed => return Err(broke("the server closed the connection")),
            Received::Nothing if deadline.has_passed() => {
                return Err(Verdict::new(
                    Check::Hang,
                    format!("{} was not answered within {} s", show(&request), patience.as_secs()),
                ));
            }
            Received::Nothing => {}
        }
    }
}
