//! The queue: keeps requests in flight against a target, measures and verifies them.
//!
//! A request longer than the target takes at once is cut into parts; it is done when all parts are. When
//! content is verified, a request waits until no request in flight overlaps it if either of them writes:
//! what overlapping writes in flight leave behind is for a device to choose.

use super::progress::Progress;
use super::series::{Done, Every, Moment, Row, Series};
use super::verify::{Initially, Verifier};
use crate::failure::Failure;
use crate::subject::target::{Finished, Part, Target};
use hdrhistogram::Histogram;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use trace::{Op, Request};

/// Longer latencies count as this, 292 years: in virtual time, at the times of a trace, hours are nothing.
const LATENCY_NS_MAX: u64 = i64::MAX.cast_unsigned();
/// How long one wait lasts at most.
const WAIT_NS: u64 = 50_000_000;
/// A sleep may end so much too late.
const SLEEP_LATE_NS: u64 = 200_000;
/// Parts in flight beyond one per request, so that long requests are not sent part after part.
const EXTRA_PARTS: usize = 64;

/// The end of time: requests of which a trace says that they came later, after 146 years, come then.
const END_NS: u64 = 1 << 62;

/// When requests are sent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pace {
    /// As soon as there is a place in the queue (closed loop).
    Full,
    /// The same, while the clock of the target shows the times of the trace, which makes the run repeatable
    ///
    Simulated,
    /// At the times of the trace divided by `speed`, if there is a place in the queue (open loop).
    Timed {
        /// Times faster than recorded.
        speed: f64,
    },
}

fn latencies() -> Result<Histogram<u64>, Failure> {
    Ok(Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)?)
}

fn simulated_ns(request: &Request) -> u64 {
    request.time_us.saturating_mul(1000).min(END_NS)
}

/// What a run of the queue came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Requests done.
    pub requests: u64,
    /// Chunks that writes touched, each time.
    pub chunks_written: u64,
    /// Chunks that reads touched, each time.
    pub chunks_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// How long it took, the flush at the end included.
    pub seconds: f64,
    /// Of all requests, in nanoseconds.
    pub latency: Histogram<u64>,
}

impl Outcome {
    fn done(&self) -> Done {
        Done { requests: self.requests, chunks_written: self.chunks_written, chunks_read: self.chunks_read }
    }
}

#[derive(Clone, Copy)]
struct Flight {
    op: Op,
    offset: u64,
    length: u64,
    /// Bytes handed to the target.
    sent: u64,
    parts: u32,
    started_ns: u64,
    version: u32,
}

/// See the module's documentation.
pub struct Driver<'a> {
    target: &'a mut dyn Target,
    verifier: Option<Verifier>,
    depth: usize,
    chunk_bytes: u64,
    origin: Instant,
    /// What the target's clock shows with [`Pace::Simulated`].
    simulated_ns: u64,
    flights: Vec<Option<Flight>>,
    free_flights: Vec<usize>,
    /// Flights with something left to hand over, oldest first.
    sending: VecDeque<usize>,
    /// The flight and range of each part, by tag.
    parts: Vec<(usize, u64, u64)>,
    free_parts: Vec<usize>,
    finished: Vec<Finished>,
    series: Option<Series>,
    /// Requests that are sent before members are lost, and how many are.
    loss: Option<(u64, usize)>,
}

impl<'a> Driver<'a> {
    /// A queue of `depth` requests.
    pub fn new(
        target: &'a mut dyn Target,
        depth: usize,
        chunk_bytes: u64,
        verifier: Option<Verifier>,
    ) -> Self {
        let part_count = depth + EXTRA_PARTS;
        target.prepare(part_count);
        Self {
            target,
            verifier,
            depth,
            chunk_bytes,
            origin: Instant::now(),
            simulated_ns: 0,
            flights: vec![None; depth],
            free_flights: (0..depth).rev().collect(),
            sending: VecDeque::new(),
            parts: vec![(0, 0, 0); part_count],
            free_parts: (0..part_count).rev().collect(),
            finished: Vec::new(),
            series: None,
            loss: None,
        }
    }

    /// The target.
    pub fn target(&mut self) -> &mut dyn Target {
        self.target
    }

    /// The map of what was written, if content is verified.
    pub fn verifier(&self) -> Option<&Verifier> {
        self.verifier.as_ref()
    }

    /// When so many more requests have been sent, loses members of the array, the first ones.
    pub fn lose(&mut self, requests: u64, members: usize) {
        self.loss = Some((requests, members));
    }

    /// From now on keeps rows of what is done.
    pub fn sample(&mut self, every: Every, pace: Pace) -> Result<(), Failure> {
        let now = self.moment(self.clock_of(pace));
        self.series = Some(Series::new(every, self.chunk_bytes, now, latencies()?));
        Ok(())
    }

    /// The rows since then, with one of what was done since the last one.
    pub fn take_series(&mut self, pace: Pace, outcome: &Outcome) -> Result<Vec<Row>, Failure> {
        let now = self.clock_of(pace);
        match self.series.take() {
            Some(series) => series.finish(self.moment(now), outcome.done()),
            None => Ok(Vec::new()),
        }
    }

    fn moment(&self, now_ns: u64) -> Moment {
        let target = &*self.target;
        Moment {
            now_ns,
            snapshot: target.snapshot(),
            flash: target.flash(),
            free_chunks: target.free_chunks(),
        }
    }

    /// The clock that a row is measured by.
    fn clock_of(&self, pace: Pace) -> u64 {
        match pace {
            Pace::Simulated => self.simulated_ns,
            Pace::Full | Pace::Timed { .. } => self.now_ns(),
        }
    }

    /// Ends a row, if one is due.
    fn row(&mut self, pace: Pace, outcome: &Outcome) -> Result<(), Failure> {
        let Some(mut series) = self.series.take() else { return Ok(()) };
        let now = self.clock_of(pace);
        if series.is_due(now, outcome.done()) {
            series.end_row(self.moment(now), outcome.done())?;
        }
        self.series = Some(series);
        Ok(())
    }

    /// The time: that of the target's devices if they are simulated.
    pub fn now_ns(&self) -> u64 {
        // 584 years.
        self.target.clock_ns().unwrap_or_else(|| self.origin.elapsed().as_nanos() as u64)
    }

    /// Sends `requests` and waits for all of them, then makes them durable.
    pub fn run(
        &mut self,
        requests: impl IntoIterator<Item = Request>,
        pace: Pace,
        progress: &mut Progress<'_>,
    ) -> Result<Outcome, Failure> {
        let mut outcome = Outcome {
            requests: 0,
            chunks_written: 0,
            chunks_read: 0,
            bytes_written: 0,
            bytes_read: 0,
            seconds: 0.0,
            latency: latencies()?,
        };
        let start = self.now_ns();
        let (mut now, mut latest_due) = (start, start);
        let mut requests = requests.into_iter();
        let mut next = requests.next();
        while next.is_some() || self.free_flights.len() < self.depth {
            let mut wait_ns = WAIT_NS;
            while let Some(request) = next {
                let due = match pace {
                    Pace::Full | Pace::Simulated => now,
                    // Rounds to the nanosecond; whatever comes later has time left to be carried out.
                    Pace::Timed { speed } => {
                        start.saturating_add((request.time_us as f64 * 1e3 / speed) as u64).min(END_NS)
                    }
                };
                // A request whose time lies before that of one in front of it is sent with that.
                let due = latest_due.max(due);
                if due > now {
                    wait_ns = self.rest(self.wait_ns(due, now));
                    break;
                }
                latest_due = due;
                if self.free_flights.is_empty() || self.conflicts(&request) {
                    break;
                }
                self.pass_to(&request, pace)?;
                self.admit(&request, due, &mut outcome);
                self.lose_if_due();
                next = requests.next();
                // One moment at a time: what waits until then must not see what comes later.
                let is_later = |later: Request| simulated_ns(&later) > self.simulated_ns;
                if pace == Pace::Simulated && next.is_some_and(is_later) {
                    break;
                }
            }
            self.send();
            let clock_ns = if pace == Pace::Simulated { self.simulated_ns } else { now };
            self.target.turn(clock_ns, wait_ns)?;
            now = self.now_ns();
            self.finish(now, &mut outcome)?;
            self.row(pace, &outcome)?;
            progress.show(outcome.requests)?;
        }
        self.target.settle()?;
        outcome.seconds = (self.now_ns() - start) as f64 / 1e9;
        Ok(outcome)
    }

    /// The simulated clock goes on to a request's time, by way of every moment at which something in the
    /// target has waited for long enough: that is over before the request comes, which might overwrite it
    ///
    fn pass_to(&mut self, request: &Request, pace: Pace) -> Result<(), Failure> {
        if pace == Pace::Simulated && simulated_ns(request) > self.simulated_ns {
            self.simulated_ns = simulated_ns(request);
            self.target.pass_to(self.simulated_ns)?;
        }
        Ok(())
    }

    /// How long to wait for a request that is due later. Time that is simulated passes in one step, but for
    /// the end of a row; what the target has to do meanwhile, it does when it is due.
    fn wait_ns(&self, due: u64, now: u64) -> u64 {
        if self.target.clock_ns().is_none() {
            return WAIT_NS.min(due - now);
        }
        let row = self.series.as_ref().and_then(|series| series.row_due_ns()).filter(|&row| row > now);
        row.map_or(due, |row| row.min(due)) - now
    }

    /// With nothing in flight there is nothing to turn: sleeps through most of `wait_ns` and returns the
    /// rest.
    fn rest(&self, wait_ns: u64) -> u64 {
        if self.free_flights.len() < self.depth
            || wait_ns <= SLEEP_LATE_NS
            || self.target.clock_ns().is_some()
        {
            return wait_ns;
        }
        std::thread::sleep(Duration::from_nanos(wait_ns - SLEEP_LATE_NS));
        0
    }

    fn lose_if_due(&mut self) {
        let Some((left, members)) = &mut self.loss else { return };
        *left -= 1;
        if *left == 0 {
            self.target.lose(*members);
            self.loss = None;
        }
    }

    fn conflicts(&self, request: &Request) -> bool {
        if self.verifier.is_none() {
            return false;
        }
        let changes = |op| match op {
            Op::Write | Op::Trim => true,
            Op::Read | Op::Flush => false,
        };
        let overlaps = |flight: &Flight| {
            flight.offset < request.end_bytes() && request.offset_bytes < flight.offset + flight.length
        };
        self.flights
            .iter()
            .flatten()
            .any(|flight| (changes(flight.op) || changes(request.op)) && overlaps(flight))
    }

    fn admit(&mut self, request: &Request, started_ns: u64, outcome: &mut Outcome) {
        let (offset, length) = match request.op {
            Op::Flush => (0, 0),
            Op::Read | Op::Write | Op::Trim => (request.offset_bytes, request.length_bytes),
        };
        let chunks = request.chunks(self.chunk_bytes);
        let mut version = 0;
        match request.op {
            Op::Write => {
                outcome.chunks_written += chunks.end - chunks.start;
                outcome.bytes_written += length;
                version = self.verifier.as_mut().map_or(0, |verifier| verifier.begin_write(offset, length));
            }
            Op::Read => {
                outcome.chunks_read += chunks.end - chunks.start;
                outcome.bytes_read += length;
            }
            Op::Trim => {
                let promised =
                    if self.target.trims_to_zeros() { Initially::Zeros } else { Initially::Unknown };
                if let Some(verifier) = &mut self.verifier {
                    verifier.trim(offset, length, promised);
                }
            }
            Op::Flush => {}
        }
        let place = self.free_flights.pop().expect("the caller saw a free place");
        self.flights[place] =
            Some(Flight { op: request.op, offset, length, sent: 0, parts: 0, started_ns, version });
        self.sending.push_back(place);
    }

    /// Hands over what the target takes.
    fn send(&mut self) {
        while let Some(&place) = self.sending.front() {
            let Some(flight) = self.flights[place] else { break };
            let Some(&tag) = self.free_parts.last() else { break };
            let whole = flight.length - flight.sent;
            let at = flight.offset + flight.sent;
            let length = match flight.op {
                Op::Read | Op::Write => {
                    // Cut at a chunk, so that no chunk is written in two halves.
                    whole.min(self.target.part_bytes_max() - at % self.chunk_bytes)
                }
                Op::Trim | Op::Flush => whole,
            };
            let part = Part { tag, offset_bytes: at, length_bytes: length };
            let started = match flight.op {
                Op::Write => {
                    let seed = self.verifier.as_ref().map(Verifier::seed);
                    let mut payload = |offset: u64, bytes: &mut [u8]| {
                        if let Some(seed) = seed {
                            Verifier::payload(seed, flight.version, offset, bytes);
                        }
                    };
                    self.target.start_write(part, &mut payload)
                }
                Op::Read => self.target.start_read(part),
                Op::Flush => self.target.start_flush(tag),
                Op::Trim => self.target.start_trim(part),
            };
            if !started {
                break;
            }
            self.free_parts.pop();
            self.parts[tag] = (place, at, length);
            let sent = Flight { sent: flight.sent + length, parts: flight.parts + 1, ..flight };
            self.flights[place] = Some(sent);
            if sent.sent == sent.length {
                self.sending.pop_front();
            }
        }
    }

    /// Takes what has ended.
    fn finish(&mut self, now: u64, outcome: &mut Outcome) -> Result<(), Failure> {
        let mut finished = std::mem::take(&mut self.finished);
        self.target.take_finished(&mut finished);
        for end in finished.drain(..) {
            let (place, at, length) = self.parts[end.tag];
            let mut flight = self.flights[place].take().expect("a part belongs to a request in flight");
            if let Err(reason) = end.result {
                let what = match flight.op {
                    Op::Read => "read",
                    Op::Write => "write",
                    Op::Flush => "flush",
                    Op::Trim => "trim",
                };
                return Err(Failure::new(format!(
                    "{what} of {length} bytes at byte {at} of the volume: {reason}"
                )));
            }
            if let (Op::Read, Some(verifier)) = (flight.op, &mut self.verifier) {
                self.target.content(end.tag, &mut |offset, bytes| verifier.check(offset, bytes));
            }
            self.target.release(end.tag);
            self.free_parts.push(end.tag);
            flight.parts -= 1;
            if flight.parts > 0 || flight.sent < flight.length {
                self.flights[place] = Some(flight);
                continue;
            }
            self.free_flights.push(place);
            outcome.requests += 1;
            let latency_ns = now.saturating_sub(flight.started_ns).max(1);
            outcome.latency.saturating_record(latency_ns);
            if let Some(series) = &mut self.series {
                series.note(latency_ns);
            }
        }
        self.finished = finished;
        Ok(())
    }

    /// Reads back everything of which something is known, and checks it.
    pub fn read_back(&mut self, bytes_per_read: u64, progress: &mut Progress<'_>) -> Result<(), Failure> {
        let Some(verifier) = &mut self.verifier else { return Ok(()) };
        let end = verifier.covered_bytes();
        let mut reads = Vec::new();
        let mut offset_bytes = 0;
        while offset_bytes < end {
            let length_bytes = bytes_per_read.min(end - offset_bytes);
            if verifier.knows(offset_bytes, length_bytes) {
                reads.push(Request { time_us: 0, dev: 0, op: Op::Read, offset_bytes, length_bytes });
            }
            offset_bytes += length_bytes;
        }
        progress.set_total(reads.len() as u64)?;
        self.run(reads, Pace::Full, progress).map(|_| ())
    }
}
