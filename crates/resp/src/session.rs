//! One client's connection, as a state machine without sockets.
//!
//! The owner feeds received bytes to [`Session::receive`], tells it what the store has answered
//! ([`Session::told`]), and sends what is in its output. Commands are begun as they come, many at a time;
//! answers leave in the order of the commands.
//!
//! # Invariants
//! - Two commands about one key take effect in their order: the store keeps it for what is asked of it, and
//!   no command is begun while one before it has not asked all it has to.
//! - What a command does with a key it asks of the store at once. Two questions, one after the other, would
//!   undo what others do in between.
//! - What a client holds is counted in the budget of all, and given back by [`Session::abandon`] at the
//!   latest.

use crate::commands::{
    COMMANDS, Call, Flag, Gather, Here, Order, Outcome, Plan, Run, Said, Shape, Spec, Turn, bound, find,
    is_known_to_redis, why_not,
};
use crate::desk::{Asked, ClientId, Desk};
use crate::fault::Fault;
use crate::output::Output;
use crate::pending::{Gathered, Pending, State, length_of};
use crate::wire::{Arguments, Parser, Reply, Trust, Version};
use front::Command;
use kv::ask::{Answer, Ask, Keys, Refused, Told};
use std::collections::VecDeque;

/// What a session needs before it can go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wants {
    /// More bytes from the client.
    Bytes,
    /// That the store answers or answers are sent. Call [`Session::receive`] again then.
    Room,
    /// Nothing: no more input is looked at.
    Nothing,
}

/// What a session works with.
pub struct Context<'a> {
    /// What all clients share.
    pub desk: &'a mut Desk,
    /// The store.
    pub keys: &'a mut dyn Keys,
}

/// Values that one client has on their way to the store, in bytes; more stay in its socket.
const UNDER_WAY_BYTES: usize = 64 << 20;
/// Values that one client has on their way from the store; how many those are follows from the sizes it has
/// met.
const AWAITED_BYTES: usize = 16 << 20;
/// The size that a client is thought to ask for before it has asked for any.
const FIRST_GUESS_BYTES: usize = 64 << 10;
/// So much of a name that there is not is said back.
const QUOTED_BYTES: usize = 128;

/// See the module's documentation.
#[derive(Debug)]
pub struct Session {
    id: ClientId,
    parser: Parser,
    pending: VecDeque<Pending>,
    /// The number of the first of those.
    first: u64,
    /// Whether the last of them has more to ask.
    has_more: bool,
    /// Whether one of them stands alone.
    is_alone: bool,
    output: Output,
    /// Bytes of answers that wait for those before them.
    kept_bytes: usize,
    /// What of both is counted in the budget.
    counted_bytes: usize,
    /// What commands hold.
    held_bytes: usize,
    /// The size of values that are expected.
    guess_bytes: usize,
    /// No more input is looked at.
    ends: bool,
    fault: Option<Fault>,
}

/// What became of a command that was looked at.
enum Begun {
    Yes,
    Later,
}

impl Session {
    /// The session of a client that was [welcomed](Desk::welcome).
    pub fn new(id: ClientId) -> Self {
        Self {
            id,
            parser: Parser::default(),
            pending: VecDeque::new(),
            first: 0,
            has_more: false,
            is_alone: false,
            output: Output::default(),
            kept_bytes: 0,
            counted_bytes: 0,
            held_bytes: 0,
            guess_bytes: FIRST_GUESS_BYTES,
            ends: false,
            fault: None,
        }
    }

    /// Takes bytes from the start of `input`, as many as it can use now; says how many, and what it wants
    /// next.
    pub fn receive(&mut self, input: &[u8], cx: &mut Context<'_>) -> Result<(usize, Wants), Fault> {
        let mut used = 0;
        let wants = loop {
            if self.ends {
                used = input.len();
                break Wants::Nothing;
            }
            if !self.has_room(cx) {
                break Wants::Room;
            }
            let rest = &input[used..];
            let trust = cx.desk.who(self.id).trust;
            let Desk { limits, budget, .. } = &mut *cx.desk;
            match self.parser.step(rest, limits, trust, budget) {
                Ok(step) if !step.complete => {
                    used += step.consumed;
                    break Wants::Bytes;
                }
                Ok(step) => match self.begin(rest, cx)? {
                    Begun::Yes => used += step.consumed,
                    Begun::Later => break Wants::Room,
                },
                Err(violation) => {
                    self.push(
                        State::Ended(Outcome::Failed(Said::of(format!("ERR {violation}")))),
                        None,
                        (0, 0),
                        cx,
                    );
                    self.fault = Some(violation.into());
                    self.ends = true;
                }
            }
            self.advance(cx);
        };
        self.account(cx)?;
        Ok((used, wants))
    }

    /// The store has answered.
    pub(crate) fn told(
        &mut self,
        asked: Asked,
        answer: Result<Answer, Refused>,
        cx: &mut Context<'_>,
    ) -> Result<(), Fault> {
        self.note(&answer, cx);
        let index = usize::try_from(asked.sequence - self.first).expect("what waits fits memory");
        let pending = &mut self.pending[index];
        match &mut pending.state {
            State::Waiting(shape) => {
                let shape = std::mem::replace(shape, Shape::Done);
                if matches!(shape, Shape::Saved | Shape::DurableHere) && answer.is_ok() {
                    cx.desk.saved_ms = cx.desk.now_ms;
                }
                let outcome = shape.outcome(answer);
                self.kept_bytes += length_of(&outcome);
                pending.state = State::Ended(outcome);
            }
            State::Gathering(gathered) => self.kept_bytes += gathered.take(asked.part, answer),
            State::Stepping(steps) => match steps.next(answer) {
                Turn::Ask(ask) => start(asked, ask, cx),
                Turn::End(outcome) => {
                    self.kept_bytes += length_of(&outcome);
                    pending.state = State::Ended(outcome);
                }
            },
            State::Ended(_) | State::Answered(_) => {
                debug_assert!(false, "an answer to what was not asked");
            }
        }
        self.advance(cx);
        self.account(cx)
    }

    /// Has the store answer what was asked for this session, which is its only one: what tests and fuzzers
    /// have instead of a server.
    pub fn work(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        let mut told = Vec::new();
        cx.keys.drive(cx.desk.now_ms, &mut told);
        for Told { tag, answer } in told {
            let asked = cx.desk.told(tag);
            if asked.client == Some(self.id) {
                self.told(asked, answer, cx)?;
            }
        }
        Ok(())
    }

    /// The first `count_bytes` of the output were sent.
    pub fn sent(&mut self, count_bytes: usize, cx: &mut Context<'_>) {
        self.output.sent(count_bytes);
        cx.desk.statistics.sent_bytes += u64::try_from(count_bytes).unwrap_or(0);
        self.advance(cx);
        self.count(cx);
    }

    /// What is to be sent.
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// No more commands are begun; those that were are answered. Half a command is forgotten.
    pub fn end(&mut self) {
        self.ends = true;
    }

    /// Whether the session is over and everything is answered and sent.
    pub fn is_finished(&self) -> bool {
        self.ends && self.pending.is_empty() && self.output.is_empty()
    }

    /// Whether commands are not answered.
    pub fn is_busy(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether a command has begun to come, and is not there as a whole.
    pub fn is_within_command(&self) -> bool {
        self.parser.is_within_command()
    }

    /// Commands that were begun so far.
    pub fn begun_count(&self) -> u64 {
        self.first + u64::try_from(self.pending.len()).expect("what waits is bounded")
    }

    /// Why the session is over, if it is the client's fault.
    pub fn take_fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }

    /// Gives everything back. What the store answers later is nobody's, and need not be read for that.
    pub fn abandon(&mut self, cx: &mut Context<'_>) {
        let held = self.parser.reset();
        cx.desk.budget.give(held + self.held_bytes + self.counted_bytes);
        (self.held_bytes, self.counted_bytes) = (0, 0);
        self.pending.clear();
        cx.keys.forget(&cx.desk.tags_of(self.id));
        self.ends = true;
        cx.desk.farewell(self.id);
    }

    /// Answers that may be awaited at once, for the sizes that were met.
    fn window(&self, cx: &Context<'_>) -> usize {
        (AWAITED_BYTES / self.guess_bytes.max(1)).clamp(1, cx.desk.limits.asks_in_flight_max)
    }

    fn has_room(&self, cx: &Context<'_>) -> bool {
        let limits = &cx.desk.limits;
        !self.has_more
            && !self.is_alone
            && self.pending.len() < self.window(cx).min(limits.commands_in_flight_max)
            && self.output.length_bytes() + self.kept_bytes < limits.output_pause_bytes
            && self.held_bytes < UNDER_WAY_BYTES
    }

    /// Looks at a complete command.
    fn begin(&mut self, input: &[u8], cx: &mut Context<'_>) -> Result<Begun, Fault> {
        let mut parser = std::mem::take(&mut self.parser);
        // What a plan holds is counted anew, and must not be counted twice.
        let held_bytes = parser.hand_over();
        cx.desk.budget.give(held_bytes);
        let begun = self.command(parser.arguments(input), cx);
        if let Ok(Begun::Yes) = begun {
            cx.desk.budget.give(parser.reset());
        } else {
            cx.desk.budget.note(held_bytes);
            parser.take_back(held_bytes);
        }
        self.parser = parser;
        begun
    }

    fn command(&mut self, arguments: Arguments<'_>, cx: &mut Context<'_>) -> Result<Begun, Fault> {
        if arguments.is_refused() {
            self.without_room(cx);
            return Ok(Begun::Yes);
        }
        let name = arguments.get(0).unwrap_or_default();
        if name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:") {
            return Err(Fault::Http);
        }
        let Some((place, spec)) = find(name, cx.desk.who(self.id).command) else {
            cx.desk.statistics.unknown += 1;
            let said = match cx.desk.who(self.id).trust {
                Trust::Known => unknown(&arguments),
                Trust::Stranger => NO_AUTH,
            };
            self.fail(said, None, cx);
            return Ok(Begun::Yes);
        };
        let now_ms = cx.desk.now_ms;
        let who = cx.desk.who(self.id);
        (who.heard_ms, who.command) = (now_ms, Some(place));
        if who.trust == Trust::Stranger && !spec.has(Flag::NoAuth) {
            self.fail(NO_AUTH, Some(place), cx);
        } else if !spec.takes(arguments.count()) {
            let said = format!("ERR wrong number of arguments for '{}' command", spec.name);
            self.fail(Said::of(said), Some(place), cx);
        } else {
            match spec.run {
                Run::Here(run) => self.here(run, arguments, spec, place, cx),
                Run::Store(plan, order) => return Ok(self.ask(plan, order, arguments, spec, place, cx)),
            }
        }
        Ok(Begun::Yes)
    }

    /// A command that is answered at once.
    fn here(
        &mut self,
        run: fn(&mut Here<'_, '_>) -> Result<(), Said>,
        arguments: Arguments<'_>,
        spec: &Spec,
        place: usize,
        cx: &mut Context<'_>,
    ) {
        let mut out = Vec::new();
        let keys = &*cx.keys;
        let client = self.id;
        let mut here = Here {
            arguments,
            spec,
            table: &COMMANDS,
            client,
            desk: &mut *cx.desk,
            keys,
            out: &mut out,
            ends: false,
        };
        let result = run(&mut here);
        let ends = here.ends;
        if let Err(Said(text)) = result {
            out.clear();
            Reply::new(&mut out, Version::Two).error(&text);
        }
        self.kept_bytes += out.len();
        self.push(State::Answered(out), Some(place), (0, 0), cx);
        self.ends |= ends;
    }

    /// A command that asks the store.
    fn ask(
        &mut self,
        plan: fn(&mut Call<'_, '_>) -> Result<Plan, Said>,
        order: Order,
        arguments: Arguments<'_>,
        spec: &Spec,
        place: usize,
        cx: &mut Context<'_>,
    ) -> Begun {
        if order == Order::Alone && !self.pending.is_empty() {
            return Begun::Later;
        }
        let sent_bytes = (0..arguments.count()).map(|index| arguments.length(index)).sum();
        let now_ms = cx.desk.now_ms;
        let plan = match plan(&mut Call { arguments, spec, now_ms }) {
            Ok(plan) => plan,
            Err(said) => {
                self.fail(said, Some(place), cx);
                return Begun::Yes;
            }
        };
        let held_bytes = plan.memory_bytes().saturating_add(sent_bytes);
        if cx.desk.budget.take(held_bytes) {
            self.held_bytes += held_bytes;
            self.is_alone = order == Order::Alone;
            self.carry_out(plan, place, (sent_bytes, held_bytes), cx);
        } else {
            self.without_room(cx);
        }
        Begun::Yes
    }

    fn carry_out(&mut self, plan: Plan, place: usize, bytes: (usize, usize), cx: &mut Context<'_>) {
        let sequence = self.begun_count();
        let asked = Asked { client: Some(self.id), sequence, ..Asked::default() };
        let state = match plan {
            Plan::Now(outcome, ask) => {
                if let Some(ask) = ask {
                    start(Asked { client: None, ..asked }, ask, cx);
                }
                State::Ended(outcome)
            }
            Plan::One(ask, shape) => {
                start(asked, ask, cx);
                State::Waiting(shape)
            }
            Plan::Steps(mut steps) => {
                bound(&mut steps, cx.desk.limits.keys_answer_bytes_max);
                start(asked, steps.first(), cx);
                State::Stepping(steps)
            }
            Plan::Each(asks, gather) => {
                self.has_more = true;
                State::Gathering(Gathered::new(gather, asks))
            }
        };
        self.push(state, Some(place), bytes, cx);
    }

    fn without_room(&mut self, cx: &mut Context<'_>) {
        cx.desk.statistics.without_room += 1;
        let text = format!(
            "OOM command not allowed: the clients of this server hold {} bytes, at most {} are possible",
            cx.desk.budget.used_bytes(),
            cx.desk.limits.all_bytes_max
        );
        self.fail(Said::of(text), None, cx);
    }

    fn fail(&mut self, said: Said, place: Option<usize>, cx: &mut Context<'_>) {
        self.push(State::Ended(Outcome::Failed(said)), place, (0, 0), cx);
    }

    /// A command that has come, with the bytes that it has and that it holds.
    fn push(
        &mut self,
        state: State,
        spec: Option<usize>,
        (sent_bytes, held_bytes): (usize, usize),
        cx: &mut Context<'_>,
    ) {
        let (version, came_ns) = (cx.desk.who(self.id).version, cx.desk.now_ns);
        self.pending.push_back(Pending { state, spec, version, came_ns, sent_bytes, held_bytes });
    }

    /// Learns from an answer.
    fn note(&mut self, answer: &Result<Answer, Refused>, cx: &mut Context<'_>) {
        match answer {
            Ok(Answer::Value(Some(value))) => {
                let length = usize::try_from(value.len()).unwrap_or(usize::MAX);
                self.guess_bytes = length.max((self.guess_bytes - self.guess_bytes / 8).max(1));
                cx.desk.statistics.hits += 1;
            }
            Ok(Answer::Value(None)) => cx.desk.statistics.misses += 1,
            Ok(
                Answer::Set { .. }
                | Answer::Described(_)
                | Answer::Deleted { .. }
                | Answer::Sum(_)
                | Answer::Length(_)
                | Answer::Scanned { .. }
                | Answer::Count(_)
                | Answer::Done,
            )
            | Err(_) => {}
        }
    }

    /// Sends what is answered, in order, and asks for more.
    fn advance(&mut self, cx: &mut Context<'_>) {
        loop {
            self.write(cx);
            if !self.ask_more(cx) {
                break;
            }
        }
    }

    /// Moves answers to the output until one is awaited.
    fn write(&mut self, cx: &mut Context<'_>) {
        while let Some(pending) = self.pending.front_mut() {
            let version = pending.version;
            let before = self.output.length_bytes();
            let failed = match &mut pending.state {
                State::Waiting(_) | State::Stepping(_) => return,
                State::Answered(bytes) => {
                    let bytes = std::mem::take(bytes);
                    self.kept_bytes -= bytes.len();
                    self.output.put(version, |reply| reply.raw(&bytes));
                    bytes.first() == Some(&b'-')
                }
                State::Ended(outcome) => {
                    let outcome = std::mem::replace(outcome, Outcome::Null);
                    self.kept_bytes -= length_of(&outcome);
                    put(&mut self.output, version, outcome)
                }
                State::Gathering(gathered) => {
                    if let Some(outcome) = gathered.end() {
                        put(&mut self.output, version, outcome)
                    } else if !write_list(gathered, &mut self.output, &mut self.kept_bytes, version) {
                        return;
                    } else {
                        false
                    }
                }
            };
            self.ended(failed, self.output.length_bytes().saturating_sub(before), cx);
        }
    }

    /// The first command is answered; by so many bytes.
    fn ended(&mut self, failed: bool, answer_bytes: usize, cx: &mut Context<'_>) {
        let Some(pending) = self.pending.pop_front() else { return };
        self.first += 1;
        self.is_alone = false;
        self.held_bytes -= pending.held_bytes;
        cx.desk.budget.give(pending.held_bytes);
        if let Some(place) = pending.spec {
            let waited_ns = cx.desk.now_ns.saturating_sub(pending.came_ns);
            let kind = COMMANDS.get(place).and_then(kind_of);
            cx.desk.count(place, kind, pending.sent_bytes.max(answer_bytes), failed, waited_ns);
        }
    }

    /// Asks what the last command has still to ask, as far as there is room; whether that was anything.
    fn ask_more(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.has_more {
            return false;
        }
        let window = self.window(cx);
        let is_paused = self.output.length_bytes() >= cx.desk.limits.output_pause_bytes;
        let sequence = self.first + u64::try_from(self.pending.len()).expect("what waits is bounded") - 1;
        let Some(Pending { state: State::Gathering(gathered), .. }) = self.pending.back_mut() else {
            self.has_more = false;
            return false;
        };
        let open_max = if is_paused && matches!(gathered.gather, Gather::List) { 0 } else { window };
        let mut asked_any = false;
        while let Some((ask, part)) = gathered.next(open_max) {
            start(Asked { client: Some(self.id), sequence, part, ..Asked::default() }, ask, cx);
            asked_any = true;
        }
        self.has_more = !gathered.asks.is_empty();
        asked_any
    }

    /// Counts what waits for the client; too much of it ends the connection.
    fn account(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        self.count(cx);
        let (waiting_bytes, max_bytes) = (self.counted_bytes, cx.desk.limits.output_bytes_max);
        if waiting_bytes > max_bytes {
            return Err(Fault::NotTaken { waiting_bytes, max_bytes });
        }
        if cx.desk.budget.is_over() && waiting_bytes > cx.desk.limits.output_pause_bytes {
            return Err(Fault::NoRoom { waiting_bytes });
        }
        Ok(())
    }

    fn count(&mut self, cx: &mut Context<'_>) {
        let waiting_bytes = self.output.length_bytes() + self.kept_bytes;
        cx.desk.budget.give(std::mem::replace(&mut self.counted_bytes, waiting_bytes));
        cx.desk.budget.note(waiting_bytes);
    }
}

const NO_AUTH: Said = Said(std::borrow::Cow::Borrowed("NOAUTH Authentication required."));

fn start(asked: Asked, ask: Ask, cx: &mut Context<'_>) {
    let tag = cx.desk.ask(asked);
    cx.keys.start(tag, ask);
}

/// What a command is to whoever counts requests to volumes alike.
fn kind_of(spec: &Spec) -> Option<Command> {
    if spec.has(Flag::Write) {
        Some(Command::Write)
    } else if spec.has(Flag::Readonly) {
        Some(Command::Read)
    } else {
        matches!(spec.run, Run::Store(..)).then_some(Command::Flush)
    }
}

fn quoted(word: &[u8]) -> String {
    word.get(..QUOTED_BYTES).unwrap_or(word).escape_ascii().to_string()
}

/// What is said of a command that there is not.
fn unknown(arguments: &Arguments<'_>) -> Said {
    let name = arguments.get(0).unwrap_or_default();
    let small = quoted(name).to_ascii_lowercase();
    if is_known_to_redis(small.as_bytes()) {
        return Said::of(why_not(&small));
    }
    let mut text = format!("ERR unknown command '{}', with args beginning with: ", quoted(name));
    for index in 1..arguments.count() {
        if text.len() >= 2 * QUOTED_BYTES {
            break;
        }
        text.push_str(&format!("'{}' ", quoted(arguments.get(index).unwrap_or_default())));
    }
    Said::of(text)
}

/// Moves what is there of a list, in order; whether that was the last.
fn write_list(gathered: &mut Gathered, output: &mut Output, kept: &mut usize, version: Version) -> bool {
    if gathered.sent == 0 && !gathered.list.is_empty() && gathered.list[0].is_some() {
        output.put(version, |reply| reply.array(gathered.total));
    }
    while let Some(Some(outcome)) = gathered.list.front_mut().map(Option::take) {
        gathered.list.pop_front();
        gathered.sent += 1;
        *kept -= length_of(&outcome);
        put(output, version, outcome);
    }
    gathered.sent == gathered.total
}

/// Queues an answer; whether it is an error.
fn put(output: &mut Output, version: Version, outcome: Outcome) -> bool {
    let names = |reply: &mut Reply<'_>, names: &[Box<[u8]>]| {
        reply.array(names.len());
        names.iter().for_each(|name| reply.bulk(name));
    };
    match outcome {
        Outcome::Ok => output.put(version, |reply| reply.simple("OK")),
        Outcome::Word(word) => output.put(version, |reply| reply.simple(word)),
        Outcome::Integer(value) => output.put(version, |reply| reply.integer(value)),
        Outcome::Null => output.put(version, |reply| reply.null()),
        Outcome::Value(value) => output.put_value(version, &value),
        Outcome::Names(found) => output.put(version, |reply| names(reply, &found)),
        Outcome::Scan(cursor, found) => output.put(version, |reply| {
            reply.array(2);
            reply.bulk(cursor.to_string().as_bytes());
            names(reply, &found);
        }),
        Outcome::Pair(one, two) => output.put(version, |reply| {
            reply.array(2);
            reply.integer(one);
            reply.integer(two);
        }),
        Outcome::Failed(Said(text)) => {
            output.put(version, |reply| reply.error(&text));
            return true;
        }
    }
    false
}
