//! The flag by which threads wake each other, and the count of what they ring by, in every interleaving and
//! with every reordering that the memory model permits: work that is brought is found by whoever sleeps, or
//! he is woken.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use loom::thread;

mod atomics {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
}

#[path = "../src/crossing/flag.rs"]
mod flag;

#[path = "../src/crossing/rings.rs"]
mod rings;

/// The same without its fences, to see that the models can fail.
mod careless {
    use loom::sync::atomic::{AtomicBool, Ordering};

    pub(super) struct Flag {
        asleep: AtomicBool,
    }

    impl Flag {
        pub(super) fn new() -> Self {
            Self { asleep: AtomicBool::new(false) }
        }

        pub(super) fn doze(&self) {
            self.asleep.store(true, Ordering::Relaxed);
        }

        pub(super) fn wake(&self) {
            self.asleep.store(false, Ordering::Relaxed);
        }

        pub(super) fn must_ring(&self) -> bool {
            self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed)
        }
    }
}

macro_rules! model {
    ($flag:ident, $bringers:expr) => {
        loom::model(|| {
            let flag = Arc::new($flag::Flag::new());
            // What a queue's end is to both sides, and how often the bell rang.
            let (work, rung) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let bringers: Vec<_> = (0..$bringers)
                .map(|_| {
                    let (flag, work, rung) = (Arc::clone(&flag), Arc::clone(&work), Arc::clone(&rung));
                    thread::spawn(move || {
                        work.fetch_add(1, Ordering::Release);
                        if flag.must_ring() {
                            rung.fetch_add(1, Ordering::Release);
                        }
                    })
                })
                .collect();
            // The sleeper: asleep for good if it finds nothing and nobody rings.
            flag.doze();
            let found = work.load(Ordering::Acquire);
            bringers.into_iter().for_each(|bringer| bringer.join().expect("it cannot fail"));
            let rung = rung.load(Ordering::Acquire);
            assert!(rung <= 1, "rung {rung} times for one sleep");
            assert!(found == $bringers || rung == 1, "it sleeps, and {} are not done", $bringers - found);
            flag.wake();
            assert!(!flag.must_ring(), "it is awake");
        })
    };
}

/// Of an event that counts, everything that rang is taken in the end, and the event is silent then.
fn take_all(note_first: bool) {
    loom::model(move || {
        let rings = Arc::new(rings::Rings::new());
        let event = Arc::new(AtomicU64::new(0));
        let ringers: Vec<_> = (0..2)
            .map(|_| {
                let (rings, event) = (Arc::clone(&rings), Arc::clone(&event));
                thread::spawn(move || {
                    if note_first {
                        rings.note();
                    }
                    // The event is the system's, whose lock orders what both sides do around it.
                    event.fetch_add(1, Ordering::AcqRel);
                    if !note_first {
                        rings.note();
                    }
                })
            })
            .collect();
        let wake = || {
            if rings.are_due() {
                rings.take(event.swap(0, Ordering::AcqRel));
            }
        };
        // The sleeper wakes as soon as the event is told of something: it sees why.
        if event.load(Ordering::Acquire) > 0 {
            assert!(rings.are_due(), "it rings, and the sleeper does not look");
        }
        wake();
        ringers.into_iter().for_each(|ringer| ringer.join().expect("it cannot fail"));
        wake();
        assert_eq!(event.load(Ordering::Acquire), 0, "it rings for ever");
        assert!(!rings.are_due(), "it is read in vain for ever");
    });
}

#[test]
fn who_is_woken_knows_that_it_rang() {
    take_all(true);
}

#[test]
#[should_panic(expected = "the sleeper does not look")]
fn rings_noted_too_late_keep_the_sleeper_awake() {
    take_all(false);
}

#[test]
fn work_is_found_or_the_sleeper_is_woken() {
    model!(flag, 1);
    model!(flag, 2);
}

#[test]
#[should_panic(expected = "it sleeps")]
fn without_fences_somebody_sleeps_for_ever() {
    model!(careless, 1);
}
