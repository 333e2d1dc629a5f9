//! What leads from a thread of sockets to a thread that runs shards, and back.

use super::queue::{Consumer, Producer, PushError, RingBuffer};
use super::{Answer, Ask, Bell, ExtentsAsk, Landing, QUEUE_LENGTH};
use block::Share;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long a shard is waited for to say what lies behind a range; then it counts as data.
const EXTENTS_PATIENCE: Duration = Duration::from_secs(1);
/// How often whoever waits looks whether it is to go on.
const EXTENTS_LOOK: Duration = Duration::from_micros(200);

/// The socket's end of it; the other is a [`Landing`].
pub(super) struct Lane {
    asks: Producer<Ask>,
    answers: Consumer<Answer>,
    extents: mpsc::Sender<ExtentsAsk>,
    extents_asked: Arc<AtomicUsize>,
    /// Asks for which the queue had no room.
    overflow: VecDeque<Ask>,
    far: Arc<Bell>,
    /// The other side has not been told of all asks.
    pushed: bool,
}

impl Lane {
    /// Both ends; `far` wakes the landing's thread, `own` the one of the sockets.
    pub(super) fn new(far: Arc<Bell>, own: Arc<Bell>) -> (Self, Landing) {
        let (asks, asked) = RingBuffer::new(QUEUE_LENGTH);
        let (answer, answers) = RingBuffer::new(QUEUE_LENGTH);
        let (extents, questions) = mpsc::channel();
        let extents_asked = Arc::new(AtomicUsize::new(0));
        let landing = Landing::new(asked, answer, questions, Arc::clone(&extents_asked), own);
        let overflow = VecDeque::new();
        (Self { asks, answers, extents, extents_asked, overflow, far, pushed: false }, landing)
    }

    pub(super) fn push(&mut self, ask: Ask) {
        self.pushed = true;
        if !self.overflow.is_empty() {
            return self.overflow.push_back(ask);
        }
        if let Err(PushError::Full(ask)) = self.asks.push(ask) {
            self.overflow.push_back(ask);
        }
    }

    pub(super) fn next_answer(&mut self) -> Option<Answer> {
        self.answers.pop().ok()
    }

    pub(super) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Whether the other side is still to be told of something.
    pub(super) fn has_news_for_other_side(&self) -> bool {
        self.pushed
    }

    /// Wakes the other side if there is something for it.
    pub(super) fn tell(&mut self) {
        while let Some(ask) = self.overflow.pop_front() {
            if let Err(PushError::Full(ask)) = self.asks.push(ask) {
                self.overflow.push_front(ask);
                break;
            }
            self.pushed = true;
        }
        if std::mem::take(&mut self.pushed) {
            self.far.ring();
        }
    }

    /// What lies behind a share of a range: data, if the shard does not say in time, or `goes_on` says that
    /// there is none; at once, if it has not even heard what it was asked before.
    pub(super) fn extents(&self, share: Share, goes_on: impl Fn() -> bool) -> Vec<(u64, bool)> {
        if self.extents_asked.load(Ordering::Relaxed) > 0 {
            return vec![(share.length_bytes, false)];
        }
        let (answer, answered) = mpsc::sync_channel(1);
        let asked = self.extents.send(ExtentsAsk { share, answer });
        self.extents_asked.fetch_add(1, Ordering::Relaxed);
        self.far.ring();
        let until = Instant::now() + EXTENTS_PATIENCE;
        while asked.is_ok() {
            match answered.recv_timeout(EXTENTS_LOOK) {
                Ok(extents) => return extents,
                Err(RecvTimeoutError::Timeout) if Instant::now() < until && goes_on() => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        vec![(share.length_bytes, false)]
    }
}
