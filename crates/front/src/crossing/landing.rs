//! The side of the volume.

use super::queue::{Consumer, Producer, PushError};
use super::{Answer, Ask, Bell, ExtentsAsk};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

/// Where requests from a thread of sockets arrive, and answers leave.
pub struct Landing {
    asks: Consumer<Ask>,
    answers: Producer<Answer>,
    extents: mpsc::Receiver<ExtentsAsk>,
    /// Questions about extents that are on their way.
    extents_asked: Arc<AtomicUsize>,
    /// Answers for which the queue had no room.
    overflow: VecDeque<Answer>,
    far: Arc<Bell>,
    /// The other side has not been told of all answers.
    answered: bool,
}

impl Landing {
    pub(super) fn new(
        asks: Consumer<Ask>,
        answers: Producer<Answer>,
        extents: mpsc::Receiver<ExtentsAsk>,
        extents_asked: Arc<AtomicUsize>,
        far: Arc<Bell>,
    ) -> Self {
        Self { asks, answers, extents, extents_asked, overflow: VecDeque::new(), far, answered: false }
    }

    /// The next request.
    #[inline]
    pub fn next_ask(&mut self) -> Option<Ask> {
        self.asks.pop().ok()
    }

    /// The next question about extents.
    pub fn next_extents_ask(&self) -> Option<ExtentsAsk> {
        if self.extents_asked.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let ask = self.extents.try_recv().ok()?;
        self.extents_asked.fetch_sub(1, Ordering::Relaxed);
        Some(ask)
    }

    /// Whether there is a request, or a question about extents.
    pub fn has_asks(&self) -> bool {
        !self.asks.is_empty() || self.extents_asked.load(Ordering::Relaxed) > 0
    }

    /// Sends an answer on its way; the other side is told by [`Landing::tell`].
    pub fn answer(&mut self, answer: Answer) {
        self.answered = true;
        if !self.overflow.is_empty() {
            return self.overflow.push_back(answer);
        }
        if let Err(PushError::Full(answer)) = self.answers.push(answer) {
            self.overflow.push_back(answer);
        }
    }

    /// Wakes the other side if there is something for it; `false` if answers are left that the queue has no
    /// room for.
    pub fn tell(&mut self) -> bool {
        while let Some(answer) = self.overflow.pop_front() {
            self.answered = true;
            if let Err(PushError::Full(answer)) = self.answers.push(answer) {
                self.overflow.push_front(answer);
                break;
            }
        }
        if std::mem::take(&mut self.answered) {
            self.far.ring();
        }
        self.overflow.is_empty()
    }

    /// Whether answers wait for room in the queue.
    pub fn is_full(&self) -> bool {
        !self.overflow.is_empty()
    }
}
