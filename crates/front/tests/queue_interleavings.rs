//! The queues between two threads, in every interleaving and with every reordering that the memory model
//! permits: what is asked is answered once, in order, however short the queues are and whoever sleeps when;
//! what is handed over is touched by one thread at a time.
//!
//! Both ends and the flag are those of the crate. Under them is a ring of this file, with the order of memory
//! accesses that `rtrb` has (a slot is written before the tail is released, and read before the head is),
//! since a model must know of every access; `rtrb` itself is run under Miri and thread sanitizer
//! (`scripts/race-detector.sh`).
#![allow(dead_code, reason = "questions about extents and statistics are not modelled")]

use block::Share;
use loom::thread;
use std::sync::Arc;
use std::sync::mpsc;

mod atomics {
    pub(super) use loom::sync::atomic::{Ordering, fence};

    /// One whose owner stores by exchange. The checker lets a store of one thread come before the exchange of
    /// another that has already read what was there before it, which no memory model permits: an exchange
    /// writes directly behind what it reads.
    pub(super) struct AtomicBool(loom::sync::atomic::AtomicBool);

    impl AtomicBool {
        pub(super) fn new(value: bool) -> Self {
            Self(loom::sync::atomic::AtomicBool::new(value))
        }

        pub(super) fn load(&self, order: Ordering) -> bool {
            self.0.load(order)
        }

        pub(super) fn store(&self, value: bool, order: Ordering) {
            self.0.swap(value, order);
        }

        pub(super) fn swap(&self, value: bool, order: Ordering) -> bool {
            self.0.swap(value, order)
        }
    }
}

#[path = "../src/crossing/flag.rs"]
mod flag;
#[path = "../src/crossing/landing.rs"]
mod landing;
#[path = "../src/crossing/lane.rs"]
mod lane;

use landing::Landing;
use lane::Lane;

/// Of each direction: so short that both find it full.
const QUEUE_LENGTH: usize = 1;
/// Requests that are under way at once.
const ASKS: u32 = 3;

/// What travels; the model looks at each access to it.
struct Ask(loom::cell::Cell<u32>);
struct Answer(loom::cell::Cell<u32>);
struct ExtentsAsk {
    share: Share,
    answer: mpsc::SyncSender<Vec<(u64, bool)>>,
}

/// A bounded ring of one producer and one consumer.
mod queue {
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::Arc;

    struct Ring<T> {
        slots: Vec<UnsafeCell<Option<T>>>,
        head: AtomicUsize,
        tail: AtomicUsize,
    }

    // JUSTIFICATION: the model's cell is shared by nothing else, and tells of any two accesses at once.
    // SAFETY: a slot is touched by the producer until the tail has passed it, and by the consumer from then
    // on until the head has.
    unsafe impl<T: Send> Sync for Ring<T> {}
    // JUSTIFICATION: as above.
    // SAFETY: as above.
    unsafe impl<T: Send> Send for Ring<T> {}

    pub(super) struct RingBuffer;
    pub(super) struct Producer<T>(Arc<Ring<T>>);
    pub(super) struct Consumer<T>(Arc<Ring<T>>);
    pub(super) enum PushError<T> {
        Full(T),
    }

    impl RingBuffer {
        #[expect(clippy::new_ret_no_self, reason = "as the crate in whose place this stands has it")]
        pub(super) fn new<T>(length: usize) -> (Producer<T>, Consumer<T>) {
            let slots = (0..length).map(|_| UnsafeCell::new(None)).collect();
            let ring = Ring { slots, head: AtomicUsize::new(0), tail: AtomicUsize::new(0) };
            let ring = Arc::new(ring);
            (Producer(Arc::clone(&ring)), Consumer(ring))
        }
    }

    impl<T> Producer<T> {
        pub(super) fn push(&mut self, value: T) -> Result<(), PushError<T>> {
            let Ring { slots, head, tail } = &*self.0;
            let at = tail.load(Ordering::Relaxed);
            if at - head.load(Ordering::Acquire) == slots.len() {
                return Err(PushError::Full(value));
            }
            // JUSTIFICATION: the model has no other way to its cell.
            // SAFETY: the consumer has left the slot, and does not look at it before the tail says so.
            slots[at % slots.len()].with_mut(|slot| unsafe { *slot = Some(value) });
            tail.store(at + 1, Ordering::Release);
            Ok(())
        }
    }

    impl<T> Consumer<T> {
        pub(super) fn pop(&mut self) -> Result<T, ()> {
            let Ring { slots, head, tail } = &*self.0;
            let at = head.load(Ordering::Relaxed);
            if at == tail.load(Ordering::Acquire) {
                return Err(());
            }
            // JUSTIFICATION: the model has no other way to its cell.
            // SAFETY: the producer has left the slot, and does not look at it before the head says so.
            let value = slots[at % slots.len()].with_mut(|slot| unsafe { (*slot).take() });
            head.store(at + 1, Ordering::Release);
            value.ok_or(())
        }

        pub(super) fn is_empty(&self) -> bool {
            self.0.head.load(Ordering::Relaxed) == self.0.tail.load(Ordering::Acquire)
        }
    }
}

/// A bell whose event is a lock and a condition, so that the model sees who sleeps for ever.
struct Bell {
    flag: flag::Flag,
    rung: loom::sync::Mutex<bool>,
    waiting: loom::sync::Condvar,
}

impl Bell {
    fn new() -> Arc<Self> {
        let (flag, rung) = (flag::Flag::new(), loom::sync::Mutex::new(false));
        Arc::new(Self { flag, rung, waiting: loom::sync::Condvar::new() })
    }

    fn ring(&self) {
        if self.flag.must_ring() {
            *self.rung.lock().expect("nobody panics with it") = true;
            self.waiting.notify_one();
        }
    }

    /// Goes to sleep unless there is work after it has said so, and wakes up when it is rung.
    fn sleep_unless(&self, has_work: impl FnOnce() -> bool) {
        self.flag.doze();
        if !has_work() {
            let mut rung = self.rung.lock().expect("nobody panics with it");
            while !*rung {
                rung = self.waiting.wait(rung).expect("nobody panics with it");
            }
        }
        self.flag.wake();
        *self.rung.lock().expect("nobody panics with it") = false;
    }
}

/// What a mistake would be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// The side of the volume does not look again before it sleeps.
    SleepAtOnce,
    /// It does not tell of its answers.
    TellNobody,
    /// It forgets answers for which the queue has no room.
    ForgetFull,
}

/// As `Room` does it: takes what is asked, answers, tells, sleeps.
fn answer_all(mut landing: Landing, own: &Bell, mistake: Mistake) {
    let (mut answered, mut told) = (0, false);
    while answered < ASKS || !told {
        while let Some(Ask(value)) = landing.next_ask() {
            let value = value.get();
            landing.answer(Answer(loom::cell::Cell::new(value + 100)));
            answered += 1;
        }
        told = mistake == Mistake::TellNobody || landing.tell();
        if answered == ASKS && (told || mistake == Mistake::ForgetFull) {
            return;
        }
        own.sleep_unless(|| {
            let has_work = mistake != Mistake::SleepAtOnce && (landing.has_asks() || landing.is_full());
            if landing.is_full() {
                thread::yield_now();
            }
            has_work
        });
    }
}

/// As `RemoteVolume` does it: asks, tells, takes answers, sleeps.
fn ask_all(mut lane: Lane, own: &Bell) {
    for value in 0..ASKS {
        lane.push(Ask(loom::cell::Cell::new(value)));
    }
    let mut found = 0;
    loop {
        while let Some(Answer(value)) = lane.next_answer() {
            assert_eq!(value.get(), found + 100, "answers come in the order of what was asked");
            found += 1;
        }
        lane.tell();
        if found == ASKS {
            return;
        }
        if !lane.has_news_for_other_side() {
            own.sleep_unless(|| lane.has_answers());
        }
    }
}

fn model(mistake: Mistake) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(move || {
        let (far, own) = (Bell::new(), Bell::new());
        let (lane, landing) = Lane::new(Arc::clone(&far), Arc::clone(&own));
        let volume = thread::spawn(move || answer_all(landing, &far, mistake));
        ask_all(lane, &own);
        volume.join().expect("it cannot fail");
    });
}

#[test]
fn what_is_asked_is_answered_whoever_sleeps() {
    model(Mistake::None);
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_sleeps_at_once_is_found() {
    model(Mistake::SleepAtOnce);
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_tells_nobody_is_found() {
    model(Mistake::TellNobody);
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_forgets_what_found_no_room_is_found() {
    model(Mistake::ForgetFull);
}
