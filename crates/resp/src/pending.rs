//! Commands of one connection that are not answered yet, in the order in which they came.

use crate::commands::{Gather, Outcome, Said, Shape, Steps};
use crate::wire::Version;
use kv::ask::{Answer, Ask, Refused};
use std::collections::VecDeque;

/// A command that is not answered yet.
#[derive(Debug)]
pub(crate) struct Pending {
    /// How far it is.
    pub state: State,
    /// Its place in the table.
    pub spec: Option<usize>,
    /// What the client understood when it came.
    pub version: Version,
    /// When it came.
    pub came_ns: u64,
    /// Bytes of its arguments.
    pub sent_bytes: usize,
    /// What it holds of the budget.
    pub held_bytes: usize,
}

/// How far a command is.
#[derive(Debug)]
pub(crate) enum State {
    /// It is done.
    Ended(Outcome),
    /// It was answered when it came, in these bytes.
    Answered(Vec<u8>),
    /// One answer is awaited.
    Waiting(Shape),
    /// Several are, in any order.
    Gathering(Gathered),
    /// One of several is, and then the next is asked for.
    Stepping(Steps),
}

/// Many answers that become one.
#[derive(Debug)]
pub(crate) struct Gathered {
    /// How.
    pub gather: Gather,
    /// What is still to be asked.
    pub asks: VecDeque<Ask>,
    /// Questions whose answers are awaited.
    pub open: usize,
    /// The first that failed.
    pub failed: Option<Said>,
    /// Of a list: what was asked for and not sent, in order.
    pub list: VecDeque<Option<Outcome>>,
    /// Of a list: how many were sent.
    pub sent: usize,
    /// How many there are.
    pub total: usize,
}

impl Gathered {
    pub(crate) fn new(gather: Gather, asks: VecDeque<Ask>) -> Self {
        let total = asks.len();
        Self { gather, asks, open: 0, failed: None, list: VecDeque::new(), sent: 0, total }
    }

    /// The next question, if no more than `open_max` are without an answer that was sent; with its number.
    pub(crate) fn next(&mut self, open_max: usize) -> Option<(Ask, usize)> {
        let open = match self.gather {
            Gather::List => self.list.len(),
            Gather::Sum(_) | Gather::All => self.open,
        };
        if open >= open_max {
            return None;
        }
        let part = self.total - self.asks.len();
        let ask = self.asks.pop_front()?;
        self.open += 1;
        if matches!(self.gather, Gather::List) {
            self.list.push_back(None);
        }
        Some((ask, part))
    }

    /// An answer has come; how many bytes it has the list hold.
    pub(crate) fn take(&mut self, part: usize, answer: Result<Answer, Refused>) -> usize {
        self.open -= 1;
        match &mut self.gather {
            Gather::List => {
                let outcome = Shape::Value.outcome(answer);
                let bytes = length_of(&outcome);
                self.list[part - self.sent] = Some(outcome);
                return bytes;
            }
            Gather::Sum(sum) => match Shape::WasThere.outcome(answer) {
                Outcome::Integer(one) => *sum += one,
                Outcome::Failed(said) => self.failed = self.failed.take().or(Some(said)),
                Outcome::Ok
                | Outcome::Word(_)
                | Outcome::Null
                | Outcome::Value(_)
                | Outcome::Names(_)
                | Outcome::Scan(..)
                | Outcome::Pair(..) => {}
            },
            Gather::All => {
                if let Outcome::Failed(said) = Shape::Stored.outcome(answer) {
                    self.failed = self.failed.take().or(Some(said));
                }
            }
        }
        0
    }

    /// What became of it, when nothing is awaited.
    pub(crate) fn end(&mut self) -> Option<Outcome> {
        if self.open > 0 || !self.asks.is_empty() {
            return None;
        }
        match (self.failed.take(), &self.gather) {
            (_, Gather::List) => None,
            // Redis could not have failed half-way, so there is no word for it: what was done stays done.
            (Some(said), _) => Some(Outcome::Failed(said)),
            (None, Gather::Sum(sum)) => Some(Outcome::Integer(*sum)),
            (None, Gather::All) => Some(Outcome::Ok),
        }
    }
}

/// Bytes that an outcome holds.
pub(crate) fn length_of(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Value(value) => value.parts().iter().map(|part| part.len()).sum(),
        Outcome::Names(names) | Outcome::Scan(_, names) => {
            names.iter().map(|name| name.len() + size_of::<Box<[u8]>>()).sum()
        }
        Outcome::Ok
        | Outcome::Word(_)
        | Outcome::Integer(_)
        | Outcome::Null
        | Outcome::Pair(..)
        | Outcome::Failed(_) => 0,
    }
}
